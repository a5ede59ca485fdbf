/* totals.c - all ways to obtain, change and give up blocks whose counting could be disputed, by one thread or several;
 * `totals grow` is a vector's growth, `totals null` what Lua does: realloc for everything. */
#include "program.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

extern int heapwise_reset(void) __attribute__((weak));

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Grows, shrinks, moves; ends by free, by realloc to 0, or stays. */
NOINLINE static void changes(uint32_t seed)
{
    enum { LIVE = 300 };
    void *live[LIVE] = {0};
    for (int i = 0; i < 20000; i++) {
        const int slot = (int)(next_random(&seed) % LIVE);
        const size_t size = next_random(&seed) % 37 ? next_random(&seed) % 3000 : next_random(&seed) % 400000;
        switch (next_random(&seed) % 8) {
        case 0:
            free(live[slot]);
            live[slot] = NULL;
            break;
        case 1:
            if (live[slot]) {
                live[slot] = realloc(live[slot], 0); /* glibc: a free */
                break;
            } /* fall through */
        case 2:
            free(live[slot]);
            live[slot] = calloc(1 + size / 7, 7);
            break;
        case 3:
            free(live[slot]);
            MUST(posix_memalign(&live[slot], 64, size) == 0);
            break;
        default: /* of NULL as well */
            live[slot] = realloc(live[slot], size + 1);
            MUST(live[slot]);
        }
        KEEP(live[slot]);
    }
    for (int i = 0; i < LIVE; i += 2)
        free(live[i]);
    HERE();
}

NOINLINE static void nothing_and_impossible(void)
{
    volatile size_t impossible = (size_t)PTRDIFF_MAX - 4096, many = SIZE_MAX / 3;
    void *block = malloc(100), *aligned = NULL;
    for (int i = 0; i < 10; i++) {
        void *empty = malloc(0), *other = realloc(NULL, 0);
        KEEP(empty);
        KEEP(other);
        free(empty);
        free(other);
        free(NULL);
        MUST(!malloc(impossible) && !realloc(NULL, impossible) && !realloc(block, impossible));
        MUST(!calloc(many, 7) && !reallocarray(block, many, 7) && posix_memalign(&aligned, 64, impossible) == ENOMEM);
    }
    block = reallocarray(block, 20, 30);
    KEEP(block);
    free(block);
    free(valloc(100));
    free(memalign(256, 3000));
    free(aligned_alloc(32, 64));
    HERE();
}

NOINLINE static void grow(void)
{
    for (int i = 0; i < 200; i++) {
        char *vector = NULL;
        for (size_t size = 8; size <= 1 << 20; size += size / 2 + i % 7) {
            vector = realloc(vector, size);
            MUST(vector);
            KEEP(vector);
        }
        free(vector);
    }
    HERE();
}

NOINLINE static void null(void)
{
    void *volatile none = NULL;
    for (int i = 0; i < 10000; i++) {
        void *block = realloc(none, 100);
        KEEP(block);
        block = realloc(block, 0);
        KEEP(block);
    }
    HERE();
}

/* For sampled runs: 99,900 blocks of 32 and 100 of 100,000 bytes from one place. */
NOINLINE static void mixed(void)
{
    for (int i = 0; i < 100000; i++) {
        void *block = malloc(i % 1000 ? 32 : 100000);
        KEEP(block);
        free(block);
    }
    HERE();
}

NOINLINE static void one_at_a_time(void)
{
    for (int i = 0; i < 1000; i++) {
        void *block = malloc(100000);
        KEEP(block);
        free(block);
    }
    HERE();
}

/* 2,000 blocks of 4,000 bytes live at each moment, ten times as many in all: the heap is at its peak most of the time.
 * RESET: counts begin anew then, and nothing more happens. */
NOINLINE static void steady(bool reset)
{
    enum { LIVE = 2000 };
    static void *live[LIVE];
    for (int i = 0; i < 10 * LIVE; i++) {
        free(live[i % LIVE]);
        live[i % LIVE] = malloc(4000);
        KEEP(live[i % LIVE]);
    }
    if (reset)
        MUST(heapwise_reset && heapwise_reset() == 0);
    for (int i = 0; !reset && i < LIVE; i++)
        free(live[i]);
    HERE();
}

static void *worker(void *seed)
{
    changes((uint32_t)(uintptr_t)seed);
    return NULL;
}

/* The first block of a size is an aligned one, which may have more room than others of that size. */
NOINLINE static void small(void)
{
    enum { BLOCKS = 1000 };
    static void *blocks[BLOCKS];
    for (size_t size = 1; size <= 8; size++) {
        void *aligned;
        MUST(posix_memalign(&aligned, 32, size) == 0);
        for (int i = 0; i < BLOCKS; i++)
            blocks[i] = malloc(size);
        for (int i = 0; i < BLOCKS; i++)
            blocks[i] = realloc(blocks[i], 500);
        for (int i = 0; i < BLOCKS; i++)
            free(blocks[i]);
        free(aligned);
    }
    HERE();
}

/* Threads take blocks from each other: what one splits off another one is given at once. */
enum { SLOTS = 512, TAKERS = 200 };
static void *slots[SLOTS];
static void *taker(void *closure)
{
    uint32_t seed = (uint32_t)(uintptr_t)closure * 2654435761u;
    for (int i = 0; i < 20000; i++) {
        void **slot = &slots[next_random(&seed) % SLOTS];
        const size_t size = 8 + next_random(&seed) % 24;
        void *block = __atomic_exchange_n(slot, NULL, __ATOMIC_ACQ_REL);
        if (block && next_random(&seed) % 4) {
            free(block);
            continue;
        }
        block = block ? realloc(block, size) : aligned_alloc(64, size);
        MUST(block);
        free(__atomic_exchange_n(slot, block, __ATOMIC_ACQ_REL));
    }
    return NULL;
}

static void run_threads(unsigned count, void *(*function)(void *))
{
    pthread_t threads[TAKERS];
    for (uintptr_t i = 0; i < count; i++)
        MUST(pthread_create(&threads[i], NULL, function, (void *)(i + 1)) == 0);
    for (unsigned i = 0; i < count; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
}

/* What is in a block stays there, whatever it is aligned to. */
NOINLINE static void contents(void)
{
    for (size_t size = 1; size < 1500; size += 37)
        for (size_t alignment = 8; alignment <= 8192; alignment *= 2) {
            unsigned char *block = alignment == 8 ? malloc(size) : aligned_alloc(alignment, size);
            MUST(block);
            memset(block, (int)(size ^ alignment), size);
            block = realloc(block, size * 5 + alignment);
            MUST(block);
            for (size_t i = 0; i < size; i++)
                MUST(block[i] == (unsigned char)(size ^ alignment));
            block = realloc(block, size / 2 + 1);
            for (size_t i = 0; i < size / 2 + 1; i++)
                MUST(block && block[i] == (unsigned char)(size ^ alignment));
            free(block);
        }
    HERE();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "grow"))
        grow();
    else if (!strcmp(what, "null"))
        null();
    else if (!strcmp(what, "mixed"))
        mixed();
    else if (!strcmp(what, "one"))
        one_at_a_time();
    else if (!strcmp(what, "steady") || !strcmp(what, "reset"))
        steady(!strcmp(what, "reset"));
    else if (!strcmp(what, "contents"))
        contents();
    else if (!strcmp(what, "small"))
        small();
    else if (!strcmp(what, "failing"))
        nothing_and_impossible();
    else if (!strcmp(what, "threads"))
        run_threads(4, worker);
    else if (!strcmp(what, "exchange")) {
        run_threads(TAKERS, taker);
        for (int i = 0; i < SLOTS; i++)
            free(slots[i]);
    } else {
        changes(7);
        nothing_and_impossible();
    }
    return 0;
}
