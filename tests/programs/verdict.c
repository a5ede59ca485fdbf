/* verdict.c - programs of which it is known what the allocator does to them.
 *
 * verdict mapping: blocks of 1 MiB, one after the other. verdict rate: small blocks, in main_rate. verdict quiet: next
 * to none. verdict late: quiet, then mapping; early: rate, then quiet. contended: locks that nobody waits for, then
 * ones that are waited for (libinsidemalloc.so); shared: one of two threads allocates, then both in turns
 * (liblineheap.so); holes: a heap that is full, then one of which three of four blocks are freed and other sizes are
 * asked for; halved: every other block of one is freed, and nothing more happens. clear: calloc of blocks that are used
 * again; copy: blocks that cannot grow where they are; thin: blocks of 17 bytes; trim: the end of the heap; purge:
 * blocks of many pages; stacks: operations in 1,024 call stacks of at_leaf; pages: a heap of blocks that are each
 * touched once; phases: one size after the other; spread: one thread allocates, another frees; short: a heap that grows
 * for some milliseconds and is freed at once; short-threads: the same in two threads. late, early, contended, shared
 * and holes say, in thousandths of their own time, when the one gave way to the other; short and short-threads say how
 * many bytes were live at most. */
#include "insidemalloc.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Keeps the compiler from leaving allocations out. */
static void *seen(void *block)
{
    __asm__ volatile("" : "+r"(block)::"memory");
    return block;
}

static void main_mapping(void)
{
    for (int i = 0; i < 20000; i++) { /* too small for huge pages, which would take more time than the calls */
        char *block = seen(malloc(1u << 20));
        if (!block)
            exit(1);
        block[0] = 1;
        free(block);
    }
}

__attribute__((noinline)) static void main_rate(void)
{
    void *blocks[64];
    for (int i = 0; i < 40000; i++) {
        for (int k = 0; k < 64; k++)
            blocks[k] = seen(malloc((size_t)(16 + k * 4)));
        for (int k = 0; k < 64; k++)
            free(blocks[k]);
    }
}

static void main_pages(void)
{
    for (int i = 0; i < 640; i++) { /* below glibc's threshold for mappings */
        char *block = seen(malloc(100000));
        if (!block)
            exit(1);
        for (size_t at = 0; at < 100000; at += 4096)
            block[at] = 1;
    }
}

__attribute__((noinline)) static void at_leaf(void)
{
    for (int i = 0; i < 1000; i++)
        free(seen(malloc(100)));
}

/* 1,024 call stacks of one function. */
__attribute__((noinline)) static void descend(int depth)
{
    if (depth == 10) {
        at_leaf();
    } else {
        descend(depth + 1);
        __asm__ volatile("" ::: "memory");
        descend(depth + 1);
    }
    __asm__ volatile("" ::: "memory");
}

static void main_stacks(void)
{
    descend(0);
}

static void main_quiet(void)
{
    volatile uint64_t sum = 0;
    for (int i = 0; i < 20; i++) {
        char *block = seen(malloc(1000));
        for (uint64_t k = 0; k < 5000000; k++)
            sum += k;
        free(block);
    }
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void spin(uint64_t turns)
{
    for (volatile uint64_t k = 0; k < turns;)
        k = k + 1;
}

/* ---- locks ---- */

static void main_locked(void)
{
    const double begin = seconds(); /* as long as the other part, on any machine */
    for (int i = 0; i < 100; i++) {
        free(seen(malloc(SIZE_MUTEX)));
        while (seconds() < begin + (i + 1) * 0.003)
            spin(10000);
    }
}

static void *keep(void *unused)
{
    free(seen(malloc(SIZE_HOLD)));
    return unused;
}

static void main_waiting(void)
{
    const double begin = seconds();
    while (seconds() < begin + 0.3) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, keep, NULL) != 0)
            exit(1);
        free(seen(malloc(SIZE_WAIT)));
        pthread_join(thread, NULL);
    }
}

/* ---- lines ---- */

static pthread_barrier_t turn;
static int rounds;

static void *take_turns(void *argument)
{
    const int alone = rounds == 0, number = argument != NULL;
    for (int i = 0; i < 400; i++) {
        for (int k = 0; k < 20; k++) {
            if (k % 2 == number && !(alone && number))
                memset(seen(malloc(16)), 1, 16);
            pthread_barrier_wait(&turn);
        }
        if (!number)
            spin(200000);
    }
    return NULL;
}

static void with_two(void)
{
    pthread_t other;
    pthread_barrier_init(&turn, NULL, 2);
    if (pthread_create(&other, NULL, take_turns, &turn) != 0)
        exit(1);
    take_turns(NULL);
    pthread_join(other, NULL);
    rounds++;
}

/* ---- holes ---- */

#define BLOCKS 200000
static char *blocks[BLOCKS];

static void main_full(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        memset(blocks[i] = seen(malloc(100)), 1, 100);
        if (i % 2000 == 0)
            spin(4000000);
    }
}

static void main_holes(void)
{
    for (int i = 0; i < BLOCKS; i++)
        if (i % 4)
            free(blocks[i]);
    for (int i = 0; i < BLOCKS / 4; i++) {
        memset(seen(malloc(400)), 1, 400);
        if (i % 500 == 0)
            spin(4000000);
    }
}

/* Every other block is freed when all are there; then little happens, for more than twice as long as it took to make
 * them. */
static void main_halved(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        memset(blocks[i] = seen(malloc(200)), 1, 200);
        if (i % 4000 == 0)
            spin(4000000);
    }
    for (int i = 0; i < BLOCKS; i += 2)
        free(blocks[i]);
    for (int i = 0; i < 160; i++) {
        for (int k = 0; k < 100; k++)
            free(seen(malloc(50)));
        spin(4000000);
    }
}

/* ---- one cause each ---- */

static void main_clear(void)
{
    for (int i = 0; i < 30000; i++) /* so small that jemalloc sets them to zero itself */
        free(seen(calloc(1, 28000)));
}

static void main_copy(void)
{
    char *grows[4];
    for (int turn = 0; turn < 600; turn++) {
        for (int i = 0; i < 4; i++)
            memset(grows[i] = seen(malloc(8000)), 1, 8000);
        for (size_t size = 16000; size <= 112000; size += 16000)
            for (int i = 0; i < 4; i++)
                memset(grows[i] = seen(realloc(grows[i], size)), 1, 8000);
        for (int i = 0; i < 10 && turn == 0; i++)
            seen(malloc(120000)); /* one is at the end of the heap, which stays where it is */
        for (int i = 0; i < 4; i++)
            free(grows[i]);
    }
}

static void main_thin(void)
{
    static char *all;
    for (int i = 0; i < 1500000; i++) {
        char *block = seen(malloc(17));
        memcpy(block, &all, sizeof all);
        all = block;
    }
}

static void main_trim(void)
{
    for (int turn = 0; turn < 2000; turn++) {
        char *blocks_of_turn[16];
        for (int i = 0; i < 16; i++)
            (blocks_of_turn[i] = seen(malloc(100000)))[0] = 1;
        for (int i = 15; i >= 0; i--)
            free(blocks_of_turn[i]);
    }
}

static void main_purge(void)
{
    for (int i = 0; i < 30000; i++) {
        char *block = seen(malloc(65536));
        block[0] = block[40000] = 1;
        free(block);
    }
}

static void main_phases(void)
{
    for (size_t size = 100; size <= 400; size *= 2) {
        for (int i = 0; i < BLOCKS / 2; i++)
            memset(blocks[i] = seen(malloc(size)), 1, size);
        for (int i = 0; i < BLOCKS / 2 && size < 400; i++)
            free(blocks[i]);
    }
}

static void *free_turns(void *unused)
{
    for (int round = 0; round < 80; round++) {
        pthread_barrier_wait(&turn);
        for (int i = 0; i < 500; i++)
            free(blocks[i]);
        pthread_barrier_wait(&turn);
    }
    return unused;
}

static void main_spread(void)
{
    pthread_t other;
    pthread_barrier_init(&turn, NULL, 2);
    if (pthread_create(&other, NULL, free_turns, NULL) != 0)
        exit(1);
    for (int round = 0; round < 80; round++) {
        for (int i = 0; i < 500; i++)
            memset(blocks[i] = seen(malloc(1000)), 1, 1000);
        pthread_barrier_wait(&turn);
        pthread_barrier_wait(&turn);
    }
    pthread_join(other, NULL);
}

/* ---- a peak that does not last ---- */

#define SHORT_BLOCKS 25000u

static size_t short_size(size_t i)
{
    return 24 + i * 7919 % 200;
}

static void *grow_and_free(void *together)
{
    char **all = malloc(SHORT_BLOCKS * sizeof *all);
    if (!all)
        exit(1);
    for (size_t i = 0; i < SHORT_BLOCKS; i++)
        memset(all[i] = seen(malloc(short_size(i))), 1, short_size(i));
    if (together)
        pthread_barrier_wait(together);
    for (size_t i = 0; i < SHORT_BLOCKS; i++)
        free(all[i]);
    free(all);
    return NULL;
}

static void print_most(size_t times)
{
    size_t most = SHORT_BLOCKS * sizeof(char *);
    for (size_t i = 0; i < SHORT_BLOCKS; i++)
        most += short_size(i);
    printf("%zu\n", times * most);
}

static void main_short(void)
{
    grow_and_free(NULL);
    print_most(1);
}

static void main_short_threads(void)
{
    pthread_t other;
    pthread_barrier_init(&turn, NULL, 2);
    if (pthread_create(&other, NULL, grow_and_free, &turn) != 0)
        exit(1);
    grow_and_free(&turn);
    pthread_join(other, NULL);
    print_most(2);
}

/* ---- the whole ---- */

static void main_parts(void (*first)(void), void (*second)(void))
{
    const double begin = seconds();
    first();
    const double middle = seconds();
    second();
    printf("%.0f\n", 1000 * (middle - begin) / (seconds() - begin));
}

static void main_late(void)
{
    main_parts(main_quiet, main_mapping);
}

static void main_early(void)
{
    main_parts(main_rate, main_quiet);
}

static void main_contended(void)
{
    main_parts(main_locked, main_waiting);
}

static void main_shared(void)
{
    main_parts(with_two, with_two);
}

static void main_full_of_holes(void)
{
    main_parts(main_full, main_holes);
}

static const struct {
    const char *name;
    void (*run)(void);
} modes[] = {{"mapping", main_mapping}, {"rate", main_rate},
             {"quiet", main_quiet},     {"late", main_late},
             {"early", main_early},     {"contended", main_contended},
             {"shared", main_shared},   {"holes", main_full_of_holes},
             {"halved", main_halved},   {"clear", main_clear},
             {"copy", main_copy},       {"thin", main_thin},
             {"trim", main_trim},       {"purge", main_purge},
             {"phases", main_phases},   {"pages", main_pages},
             {"stacks", main_stacks},   {"spread", main_spread},
             {"short", main_short},     {"short-threads", main_short_threads}};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(argv[1], modes[i].name) == 0) {
            modes[i].run();
            return 0;
        }
    return 2;
}
