/* one_arena.c - four threads that allocate and free a block of 2,000 to 3,023 bytes, one at a time: with
 * GLIBC_TUNABLES=glibc.malloc.arena_max=1 all of them want one lock for each operation.
 *
 * The argument is the number of pairs of each thread (default 3,000,000). Printed: the time from the first thread's
 * begin to the last one's end, in ns. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define THREADS 4

static long pairs = 3000000;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *work(void *unused)
{
    for (long i = 0; i < pairs; i++) {
        void *volatile block = malloc(2000 + ((size_t)i & 1023));
        free((void *)block);
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    if (argc > 1)
        pairs = atol(argv[1]);
    const uint64_t begin = now_ns();
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, NULL))
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("took %lu ns\n", (unsigned long)(now_ns() - begin));
    return 0;
}
