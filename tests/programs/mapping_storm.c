/* mapping_storm.c - maps and unmaps without a pause in two threads, while a third one interrupts the first by signals,
 * whose handler maps, too, and waits until the second thread has gone on; and forks.
 *
 * Prints how often each of them has mapped something. With "jump", the handler leaves by siglongjmp, also from the
 * middle of a call; then 8 MiB are mapped and stay. */
#include "program.h"

#include <pthread.h>
#include <setjmp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB  (1ul << 20)
#define HITS 200

static unsigned long main_pairs, other_pairs, handler_pairs;
static int over, jumps;
static pthread_t first;
static sigjmp_buf begin;

NOINLINE static char *map(size_t bytes)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

NOINLINE static void pair_of_main(void)
{
    char *memory = map(4 * 4096);
    munmap(memory + 4096, 4096); /* in three parts */
    munmap(memory, 4096);
    munmap(memory + 2 * 4096, 2 * 4096);
    main_pairs++;
}

NOINLINE static void pair_of_other(void)
{
    char *memory = map(4 * 4096);
    mmap(memory + 4096, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    munmap(memory, 4 * 4096);
    __atomic_add_fetch(&other_pairs, 1, __ATOMIC_SEQ_CST);
}

NOINLINE static void pair_of_handler(void)
{
    munmap(map(4096), 4096);
    handler_pairs++;
}

static void handle(int signal)
{
    (void)signal;
    const unsigned long seen = __atomic_load_n(&other_pairs, __ATOMIC_SEQ_CST);
    pair_of_handler();
    while (__atomic_load_n(&other_pairs, __ATOMIC_SEQ_CST) < seen + 10 && !__atomic_load_n(&over, __ATOMIC_SEQ_CST))
        sched_yield();
    if (jumps)
        siglongjmp(begin, 1);
}

static void *go_on(void *nothing)
{
    while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST))
        pair_of_other();
    return nothing;
}

/* The child maps as well, where another thread of its parent was in the middle of it. */
static void fork_one(void)
{
    int status = 0;
    const pid_t child = fork();
    if (!child) {
        for (int i = 0; i < 100; i++)
            pair_of_main();
        _exit(0);
    }
    if (child > 0 && (waitpid(child, &status, 0) != child || status))
        abort();
}

static void *disturb(void *nothing)
{
    for (int i = 0; i < HITS; i++) {
        pthread_kill(first, SIGUSR1);
        usleep(300);
        if (!jumps && i % 20 == 0)
            fork_one();
    }
    __atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
    return nothing;
}

NOINLINE static char *map_and_stay(void)
{
    char *memory = map(8 * MIB);
    memset(memory, 1, 8 * MIB);
    return memory;
}

int main(int argc, char **argv)
{
    pthread_t other, third;
    alarm(300);
    jumps = argc > 1 && !strcmp(argv[1], "jump");
    first = pthread_self();
    signal(SIGUSR1, handle);
    pthread_create(&other, NULL, go_on, NULL);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    if (!sigsetjmp(begin, 1))
        pthread_create(&third, NULL, disturb, NULL);
    while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST))
        pair_of_main();
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    pthread_join(third, NULL);
    pthread_join(other, NULL);
    free(malloc(100)); /* after a jump, Heapwise sees by this that the call before is over */
    map_and_stay();
    printf("main %lu other %lu handler %lu\n", main_pairs, other_pairs, handler_pairs);
    return 0;
}
