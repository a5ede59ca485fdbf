/* moments.c - a program that heapwise attach finds at any moment of what programs do, and that counts for itself.
 *
 * moments SEED THREADS: the threads (0: only the main one) allocate, fork, execute other programs, load libraries,
 * start threads, jump out of signal handlers, and sleep in system calls, which nothing may interrupt. Writes an "r",
 * then reads commands: "m": from now on the function `marked` runs as well, and is counted; answered when it has run;
 * "u": it runs no more; answered by struct count. moments again SEED GENERATIONS: executes itself so many times, at any
 * moment, then writes an "r" and waits. The exit code is 0, or the number of what was wrong first. */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "moments.h"

#define MOST 16

static atomic_bool marking, stop;
static atomic_int inside, wrong;
static atomic_long allocations, frees, reallocations;
static int nothing[2]; /* a pipe into which nobody writes */

static void check(bool right, int number)
{
    int none = 0;
    if (!right)
        atomic_compare_exchange_strong(&wrong, &none, number);
}

static unsigned next(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

/* ---- what is counted ---- */

__attribute__((noinline)) static void marked(unsigned *state)
{
    char *volatile blocks[20] = {NULL};
    const size_t count = 1 + next(state) % 20;
    for (size_t i = 0; i < count; i++) {
        const size_t size = 1 + next(state) % 3000;
        void *aligned = NULL;
        switch (next(state) % 3) {
        case 0:
            blocks[i] = malloc(size);
            break;
        case 1:
            blocks[i] = calloc(1, size);
            break;
        default:
            check(posix_memalign(&aligned, 64, size) == 0, 10);
            blocks[i] = aligned;
        }
        memset(blocks[i], (int)i, size);
        allocations++;
        if (next(state) % 4 == 0) {
            blocks[i] = realloc(blocks[i], size + 1000);
            reallocations++;
        }
        check(blocks[i][0] == (char)i, 11);
    }
    for (size_t i = 0; i < count; i++) {
        free(blocks[i]);
        frees++;
    }
}

/* ---- what is not ---- */

static void allocate(unsigned *state)
{
    for (int i = 0; i < 50; i++) {
        const size_t size = 1 + next(state) % 600;
        unsigned char *volatile block = malloc(size);
        memset(block, (int)size, size);
        block = realloc(block, size + 100);
        check(block[0] == (unsigned char)size && block[size - 1] == (unsigned char)size, 12);
        free(block);
    }
}

static void sleep_somewhere(unsigned *state)
{
    const struct timespec moment = {.tv_nsec = 1000000 + next(state) % 4000 * 1000};
    struct pollfd waited = {.fd = nothing[0], .events = POLLIN};
    if (next(state) % 2)
        check(nanosleep(&moment, NULL) == 0, 20);
    else
        check(poll(&waited, 1, 1 + (int)(next(state) % 5)) == 0, 21);
}

static void fork_once(unsigned *state)
{
    int status = 0;
    const bool execute = next(state) % 2;
    const pid_t child = fork();
    if (child == 0) {
        for (size_t i = 0; i < 20; i++)
            free(malloc(i));
        if (execute)
            execl("/bin/true", "true", (char *)NULL);
        _exit(execute ? 1 : 0);
    }
    check(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, 22);
}

static __thread sigjmp_buf place;

static void jump(int number)
{
    siglongjmp(place, number);
}

static void jump_once(unsigned *state)
{
    (void)state;
    if (sigsetjmp(place, 1) == 0)
        raise(SIGUSR2);
}

static void load_once(unsigned *state)
{
    void *library = dlopen("libm.so.6", RTLD_NOW);
    (void)state;
    check(library && dlsym(library, "cos") && dlclose(library) == 0, 23);
}

static void *end_at_once(void *block)
{
    free(block);
    return NULL;
}

static void start_thread(unsigned *state)
{
    pthread_t thread;
    check(pthread_create(&thread, NULL, end_at_once, malloc(1 + next(state) % 100)) == 0 &&
              pthread_join(thread, NULL) == 0,
          24);
}

static void do_anything(unsigned *state, bool alone)
{
    static void (*const things[])(unsigned *state) = {allocate,  allocate,  allocate,  sleep_somewhere,
                                                      jump_once, load_once, fork_once, start_thread};
    inside++;
    if (marking)
        marked(state);
    inside--;
    errno = 77;
    things[next(state) % (alone ? 7 : 8)](state);
}

static void *run(void *seed)
{
    unsigned state = (unsigned)(uintptr_t)seed;
    while (!stop)
        do_anything(&state, false);
    return NULL;
}

/* ---- commands ---- */

/* ALONE: no other thread does anything. */
static bool obey(char command, unsigned *state, bool alone)
{
    if (command == 'm') {
        marking = true;
        while (!frees && !wrong)
            if (alone)
                do_anything(state, true);
            else
                usleep(1000);
        return write(1, "m", 1) == 1;
    }
    marking = false;
    while (inside)
        usleep(100);
    const struct count count = {allocations, frees, reallocations};
    return write(1, &count, sizeof count) == sizeof count;
}

static int work(unsigned seed, int threads)
{
    pthread_t others[MOST];
    unsigned state = seed;
    char command;
    signal(SIGUSR2, jump);
    if (pipe(nothing) != 0 || threads > MOST)
        return 1;
    for (int i = 0; i < threads; i++)
        pthread_create(&others[i], NULL, run, (void *)(uintptr_t)(seed + 7919u * (unsigned)(i + 1)));
    check(write(1, "r", 1) == 1, 2);
    for (;;) {
        struct pollfd ready = {.fd = 0, .events = POLLIN};
        if (!threads && poll(&ready, 1, 0) == 0) {
            do_anything(&state, true);
            continue;
        }
        const ssize_t got = read(0, &command, 1);
        check(got >= 0, 3);
        if (got != 1 || !obey(command, &state, !threads))
            break;
    }
    stop = true;
    for (int i = 0; i < threads; i++)
        pthread_join(others[i], NULL);
    return wrong;
}

static int execute_again(char **argv)
{
    unsigned state = (unsigned)atoi(argv[2]);
    const int left = atoi(argv[3]);
    char seed[16], generations[16], byte;
    for (unsigned i = next(&state) % 20; i; i--)
        allocate(&state);
    if (wrong)
        return wrong;
    if (!left)
        return write(1, "r", 1) == 1 && read(0, &byte, 1) == 0 ? 0 : 4;
    snprintf(seed, sizeof seed, "%u", state % 1000000);
    snprintf(generations, sizeof generations, "%d", left - 1);
    execl(argv[0], argv[0], "again", seed, generations, (char *)NULL);
    return 5;
}

int main(int argc, char **argv)
{
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* where only a parent may trace */
    return argc == 4 ? execute_again(argv) : argc == 3 ? work((unsigned)atoi(argv[1]), atoi(argv[2])) : 1;
}
