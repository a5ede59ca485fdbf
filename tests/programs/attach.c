/* attach.c - a program that is attached to while it runs.
 *
 * attach count: for each byte that it reads it allocates 1000 blocks, frees 500 of them and 500 older ones, reallocates
 * one, and writes the byte back.
 * attach arrays: for each byte, blocks by functions that may call others inside the allocator: 100 times allocated,
 * reallocated and freed by each of two.
 * attach family: for a first byte it forks a child, which allocates and writes its process ID; for a second one the
 * child ends, and the byte is written back.
 * attach exec: as count, but after the first byte it executes itself.
 * attach busy THREADS: threads allocate without a pause and check everything that they can see: contents, errno, vector
 * registers, results of calls that wait. Others fork, open libraries, jump out of signal handlers, start threads. Ends
 * with exit code 0, or the number of the first thing that was wrong, when it has read a byte.
 * attach filter KIND …: one of the others, with a filter of system calls (filters.c).
 * attach-slow slow: as count, but its allocator gives its numbers late: it has a function for them, as tcmalloc. When
 * that is called for the first time it writes an "s", and waits until SIGUSR1 has come. attach sleep: a thread sleeps
 * in nanosleep, another one in poll, with time limits; the exit code is not 0 when a call was interrupted or too short.
 * attach thread KIND: as count, and one of its threads has a filter. attach strict: may only read, write and end. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "filters.h"

/* ---- counting ---- */

static void count_once(void **older)
{
    for (int i = 0; i < 1000; i++) {
        void *block = malloc(64 + (size_t)i);
        memset(block, 1, 8);
        if (i % 2) {
            free(older[i / 2]);
            older[i / 2] = block;
        } else
            free(block);
    }
    older[0] = realloc(older[0], 5000);
}

static int count(void)
{
    static void *older[500];
    char byte;
    for (int i = 0; i < 500; i++)
        older[i] = malloc(100);
    if (write(1, "r", 1) != 1)
        return 1;
    ssize_t got;
    while ((got = read(0, &byte, 1)) == 1) {
        count_once(older);
        if (write(1, &byte, 1) != 1)
            return 1;
    }
    return got == 0 ? 0 : 2; /* EINTR: the call was not begun again */
}

static void arrays_once(void)
{
    for (int i = 0; i < 100; i++) {
        char *volatile block = reallocarray(NULL, 3, 100);
        block = reallocarray(block, 3, 200);
        free(block);
        block = aligned_alloc(16, 320);
        block = realloc(block, 640);
        free(block);
    }
}

static void family_once(void)
{
    const pid_t child = fork();
    if (child == 0) {
        const pid_t self = getpid();
        char byte;
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
        for (int i = 0; i < 50; i++)
            *(char *volatile *)malloc(700) = &byte;
        _exit(write(1, &self, sizeof self) == sizeof self && read(0, &byte, 1) == 1 ? 0 : 1);
    }
    waitpid(child, NULL, 0);
}

static int execute(char *self)
{
    char byte;
    if (write(1, "r", 1) == 1 && read(0, &byte, 1) == 1)
        execl(self, self, "count", (char *)NULL);
    return 1;
}

static int repeat(void (*once)(void))
{
    char byte;
    if (write(1, "r", 1) != 1)
        return 1;
    while (read(0, &byte, 1) == 1) {
        once();
        if (write(1, &byte, 1) != 1)
            return 1;
    }
    return 0;
}

/* ---- busy ---- */

static atomic_int stop, wrong;

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

#define SLOTS 64

struct slot {
    unsigned char *block;
    size_t size;
};

static void check_slot(const struct slot *slot)
{
    for (size_t i = 0; i < slot->size; i++)
        check(slot->block[i] == (unsigned char)slot->size, 10);
}

static void change_slot(struct slot *slot, unsigned what, size_t size)
{
    void *aligned = NULL;
    if (what % 5 == 0) {
        slot->block = realloc(slot->block, size);
    } else {
        free(slot->block);
        if (what % 5 == 1)
            slot->block = malloc(size);
        else if (what % 5 == 2)
            slot->block = malloc(200000 + size);
        else if (what % 5 == 3) {
            slot->block = calloc(1, size);
            for (size_t i = 0; i < size; i++)
                check(slot->block[i] == 0, 11);
        } else {
            check(posix_memalign(&aligned, 64, size) == 0 && (uintptr_t)aligned % 64 == 0, 12);
            slot->block = aligned;
        }
    }
    slot->size = size;
    memset(slot->block, (unsigned char)size, size);
}

static void *allocate(void *argument)
{
    struct slot slots[SLOTS] = {{NULL, 0}};
    unsigned state = (unsigned)(uintptr_t)argument;
    volatile double number = state;
    while (!stop) {
        const double expected = number * 1.5;
        struct slot *slot = &slots[next(&state) % SLOTS];
        check_slot(slot);
        errno = 77;
        const unsigned what = next(&state);
        change_slot(slot, what, 1 + next(&state) % 600);
        check(errno == 77, 13);
        check(number * 1.5 == expected, 14);
        const struct timespec moment = {.tv_nsec = 1000000};
        if (next(&state) % 2000 == 0)
            check(nanosleep(&moment, NULL) == 0, 15);
    }
    for (size_t i = 0; i < SLOTS; i++)
        free(slots[i].block);
    return NULL;
}

/* Waits in calls that return EINTR after a signal. */
static void *wait_often(void *argument)
{
    const int file = (int)(intptr_t)argument;
    while (!stop) {
        struct pollfd waited = {.fd = file, .events = POLLIN};
        const struct timespec moment = {.tv_nsec = 30000000};
        check(poll(&waited, 1, 30) == 0, 20);
        check(nanosleep(&moment, NULL) == 0, 21);
    }
    return NULL;
}

static sigjmp_buf place;

static void jump(int number)
{
    siglongjmp(place, number);
}

static void *end_at_once(void *argument)
{
    free(malloc((size_t)(uintptr_t)argument));
    return NULL;
}

static void fork_once(void)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        for (size_t i = 0; i < 200; i++)
            free(malloc(i));
        _exit(7);
    }
    check(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7, 30);
}

static void jump_once(void)
{
    if (sigsetjmp(place, 1) == 0)
        raise(SIGUSR2);
}

static void *do_other_things(void *argument)
{
    unsigned state = 5;
    pthread_t thread;
    void *library;
    (void)argument;
    while (!stop) {
        switch (next(&state) % 4) {
        case 0:
            fork_once();
            break;
        case 1:
            library = dlopen("libm.so.6", RTLD_NOW);
            check(library && dlsym(library, "cos") && dlclose(library) == 0, 31);
            break;
        case 2:
            check(pthread_create(&thread, NULL, end_at_once, (void *)100) == 0 && pthread_join(thread, NULL) == 0, 32);
            break;
        default:
            jump_once();
        }
        usleep(1000);
    }
    return NULL;
}

static int be_busy(int count_of_threads)
{
    pthread_t threads[256], others, waiting;
    int nothing[2];
    char byte;
    signal(SIGUSR2, jump);
    if (pipe(nothing) != 0 || count_of_threads > 256)
        return 1;
    for (int i = 0; i < count_of_threads; i++)
        pthread_create(&threads[i], NULL, allocate, (void *)(uintptr_t)(i * 7919 + 1));
    pthread_create(&others, NULL, do_other_things, NULL);
    pthread_create(&waiting, NULL, wait_often, (void *)(intptr_t)nothing[0]);
    check(write(1, "r", 1) == 1, 2);
    check(read(0, &byte, 1) == 1, 3);
    stop = 1;
    for (int i = 0; i < count_of_threads; i++)
        pthread_join(threads[i], NULL);
    pthread_join(others, NULL);
    pthread_join(waiting, NULL);
    return wrong;
}

/* ---- filters ---- */

static sem_t filtered;

static void *be_filtered(void *kind)
{
    const bool set = set_filters(kind);
    sem_post(&filtered);
    if (set)
        pause();
    _exit(96);
}

static int have_filtered_thread(char *kind)
{
    pthread_t thread;
    if (sem_init(&filtered, 0, 0) != 0 || pthread_create(&thread, NULL, be_filtered, kind) != 0)
        return 96;
    sem_wait(&filtered);
    return count();
}

static int be_strict(void)
{
    char byte = 'r';
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0 && write(1, &byte, 1) == 1)
        while (read(0, &byte, 1) == 1)
            ;
    syscall(SYS_exit, 0);
    return 0;
}

/* ---- slow ---- */

#ifdef WITH_SLOW_ALLOCATOR

static bool is_slow;
static atomic_bool may_answer;

static void permit_answer(int number)
{
    (void)number;
    may_answer = true;
}

/* tcmalloc's, of which the runtime asks for bytes in use. */
int MallocExtension_GetNumericProperty(const char *name, size_t *value);
int MallocExtension_GetNumericProperty(const char *name, size_t *value)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    (void)name;
    if (is_slow && !may_answer && write(1, "s", 1) == 1)
        while (!may_answer)
            nanosleep(&moment, NULL);
    *value = 100000;
    return 1;
}

static void *take_signals(void *unused)
{
    while (true)
        pause();
    return unused;
}

static int be_slow(void)
{
    pthread_t thread;
    is_slow = true;
    signal(SIGUSR1, permit_answer);
    return pthread_create(&thread, NULL, take_signals, NULL) == 0 ? count() : 1;
}
#endif

/* ---- sleep ---- */

#define SLEEP_MS 2000

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void *sleep_in_poll(void *unused)
{
    const int64_t begin = now_ms();
    check(poll(NULL, 0, SLEEP_MS) == 0 && now_ms() - begin >= SLEEP_MS, 40);
    return unused;
}

static void *sleep_in_nanosleep(void *unused)
{
    const struct timespec time = {.tv_sec = SLEEP_MS / 1000};
    const int64_t begin = now_ms();
    check(nanosleep(&time, NULL) == 0 && now_ms() - begin >= SLEEP_MS, 41);
    return unused;
}

static int sleep_twice(void)
{
    pthread_t threads[2];
    if (pthread_create(&threads[0], NULL, sleep_in_poll, NULL) != 0 ||
        pthread_create(&threads[1], NULL, sleep_in_nanosleep, NULL) != 0)
        return 1;
    usleep(50000);
    const int code = count();
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return code ? code : wrong;
}

int main(int argc, char **argv)
{
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* where only a parent may trace */
    if (argc == 2 && strcmp(argv[1], "strict") == 0)
        return be_strict();
    if (argc == 2 && strcmp(argv[1], "exec") == 0)
        return execute(argv[0]);
    if (argc == 3 && strcmp(argv[1], "thread") == 0)
        return have_filtered_thread(argv[2]);
    if (argc > 3 && strcmp(argv[1], "filter") == 0) {
        if (!set_filters(argv[2]))
            return 96;
        argc -= 2;
        argv += 2;
    }
#ifdef WITH_SLOW_ALLOCATOR
    if (argc == 2 && strcmp(argv[1], "slow") == 0)
        return be_slow();
#endif
    if (argc == 2 && strcmp(argv[1], "sleep") == 0)
        return sleep_twice();
    if (argc == 2 && strcmp(argv[1], "arrays") == 0)
        return repeat(arrays_once);
    if (argc == 2 && strcmp(argv[1], "family") == 0)
        return repeat(family_once);
    return argc > 2 && strcmp(argv[1], "busy") == 0 ? be_busy(atoi(argv[2])) : count();
}
