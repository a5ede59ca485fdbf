/* team.c - threads, regions and marks with numbers that are known. Of two threads at once the reader allocates 100
 * blocks of 64 bytes; then the writer 50 of 1000, of which it frees 20. Then main allocates 10 of 16, and frees 5 of
 * the reader's. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "heapwise/heapwise.h"

static void *volatile read_blocks[100], *volatile written[50], *volatile own[10];
static pthread_barrier_t both;

static void *read_all(void *unused)
{
    struct heapwise_region region;
    heapwise_region_begin(&region, "reading", HEAPWISE_THREAD);
    for (int i = 0; i < 100; i++)
        read_blocks[i] = malloc(64);
    heapwise_region_end(&region, NULL);
    pthread_barrier_wait(&both); /* the writer begins */
    pthread_barrier_wait(&both);
    return unused;
}

static void *write_all(void *unused)
{
    pthread_barrier_wait(&both);
    for (int i = 0; i < 50; i++)
        written[i] = malloc(1000);
    for (int i = 0; i < 20; i++)
        free(written[i]);
    pthread_barrier_wait(&both);
    return unused;
}

static void wait_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

int main(void)
{
    pthread_t threads[2];
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&threads[0], NULL, read_all, NULL);
    pthread_create(&threads[1], NULL, write_all, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    heapwise_mark("joined");
    wait_ms(40);
    for (int i = 0; i < 10; i++)
        own[i] = malloc(16);
    for (int i = 0; i < 5; i++)
        free(read_blocks[i]);
    heapwise_mark("all <b>done</b>");
    wait_ms(40);
    return 0;
}
