/* told.c - what a report of counted accesses tells, each kind once: built by heapwise cc in test_access_report.c.
 *
 * All accesses are volatile, so that their numbers do not depend on the compiler. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline, noclone))

struct item {
    volatile long value;
    char rest[56];
};

/* A variable with granules of its own, and two that may share one. */
volatile long hot[64] __attribute__((aligned(64)));
volatile int left = 1;
volatile int right = 2;

APART struct item *hot_item(void)
{
    return malloc(sizeof(struct item));
}

APART char *cold_buffer(void)
{
    return malloc(1 << 20);
}

APART void *never_used(void)
{
    return malloc(200);
}

APART volatile int *only_written(void)
{
    return malloc(64);
}

APART volatile long *shared_words(void)
{
    return aligned_alloc(64, 128);
}

static volatile long *words;

static void *count_up(void *which)
{
    for (int i = 0; i < 1000; i++)
        words[(long)which]++;
    return NULL;
}

int main(void)
{
    struct item *item = hot_item();
    char *buffer = cold_buffer();
    void *unused[10];
    pthread_t threads[2];
    item->value = 1;
    for (int i = 0; i < 20000; i++)
        (void)item->value;
    *(volatile char *)buffer = 1;
    (void)*(volatile char *)buffer;
    for (int i = 0; i < 10; i++)
        unused[i] = never_used();
    volatile int *log = only_written();
    for (int i = 0; i < 16; i++)
        log[i] = i;
    words = shared_words();
    words[0] = words[1] = words[8] = 0;
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, count_up, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 5000; i++)
        hot[i % 64] = i;
    for (int i = 0; i < 300; i++) {
        left = i;
        (void)right;
    }
    free((void *)log);
    for (int i = 0; i < 10; i++)
        free(unused[i]);
    free(item);
    return (int)words[8]; /* buffer and words stay */
}
