/* workload.c - a known mix of calls for every allocator: single-threaded, then with two threads. Each worker function
 * has known totals (test_allocators.c). Checks the contents of its blocks, so that a broken hook shows. */
#include "program.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>

enum { LIVE = 512, ROUNDS = 20000 };

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* ROUNDS allocations of 16 to 2063 bytes, of which LIVE live at a time; all are freed. */
NOINLINE static void work_churn(uint32_t seed)
{
    unsigned char *live[LIVE] = {0};
    size_t sizes[LIVE] = {0};
    for (int i = 0; i < ROUNDS; i++) {
        int slot = i % LIVE;
        if (live[slot]) {
            MUST(live[slot][0] == (unsigned char)slot && live[slot][sizes[slot] - 1] == (unsigned char)(slot + 1));
            free(live[slot]);
        }
        sizes[slot] = 16 + next_random(&seed) % 2048;
        live[slot] = malloc(sizes[slot]);
        MUST(live[slot]);
        live[slot][0] = (unsigned char)slot;
        live[slot][sizes[slot] - 1] = (unsigned char)(slot + 1);
    }
    for (int slot = 0; slot < LIVE; slot++)
        free(live[slot]);
    HERE();
}

/* 1,000 blocks that grow in 10 steps of 100 bytes; every other one stays. */
NOINLINE static void work_realloc(void)
{
    for (int i = 0; i < 1000; i++) {
        char *p = NULL;
        for (size_t size = 100; size <= 1000; size += 100) {
            p = realloc(p, size);
            MUST(p);
            p[size - 1] = (char)i;
        }
        KEEP(p);
        if (i % 2)
            free(p);
    }
    HERE();
}

/* 300 zeroed blocks of 10 times 100 bytes. */
NOINLINE static void work_calloc(void)
{
    for (int i = 0; i < 300; i++) {
        char *p = calloc(10, 100);
        MUST(p && p[0] == 0 && p[999] == 0);
        memset(p, 1, 1000);
        KEEP(p);
        free(p);
    }
    HERE();
}

/* 100 aligned blocks for each of three functions. */
NOINLINE static void work_aligned(void)
{
    for (int i = 0; i < 100; i++) {
        void *p = aligned_alloc(128, 256), *q = memalign(64, 100), *r = NULL;
        MUST(posix_memalign(&r, 4096, 500) == 0);
        MUST((uintptr_t)p % 128 == 0 && (uintptr_t)q % 64 == 0 && (uintptr_t)r % 4096 == 0);
        KEEP(p);
        KEEP(q);
        KEEP(r);
        free(p);
        free(q);
        free(r);
    }
    HERE();
}

/* 20 large blocks. */
NOINLINE static void work_large(void)
{
    for (int i = 0; i < 20; i++) {
        char *p = malloc(3 << 20);
        MUST(p && malloc_usable_size(p) >= 3 << 20);
        p[(3 << 20) - 1] = 1;
        KEEP(p);
        free(p);
    }
    HERE();
}

/* What cannot be satisfied fails cleanly. */
NOINLINE static void work_failing(void)
{
    volatile size_t impossible = (size_t)PTRDIFF_MAX - 4096;
    errno = 0;
    MUST(malloc(impossible) == NULL && errno == ENOMEM);
    MUST(realloc(NULL, impossible) == NULL);
    HERE();
}

static void *thread(void *argument)
{
    work_churn((uint32_t)(uintptr_t)argument);
    return NULL;
}

int main(int argc, char **argv)
{
    work_churn(1);
    work_realloc();
    work_calloc();
    work_aligned();
    work_large();
    work_failing();
    if (argc > 1) {
        pthread_t threads[2];
        for (uintptr_t i = 0; i < 2; i++)
            MUST(pthread_create(&threads[i], NULL, thread, (void *)(i + 2)) == 0);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
    }
    return 0;
}
