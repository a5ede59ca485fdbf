/* verdict.c - programs of which it is known what the allocator does to them.
 *
 * verdict mapping: blocks of 1 MiB, one after the other. verdict rate: small blocks, in main_rate. verdict quiet: next
 * to none. verdict late: quiet, then mapping; early: rate, then quiet. contended: locks that nobody waits for, then
 * ones that are waited for (libinsidemalloc.so); shared: one of two threads allocates, then both in turns
 * (liblineheap.so); holes: a heap that is full, then one of which three of four blocks are freed and other sizes are
 * asked for. All of these say, in thousandths of their own time, when the one gave way to the other. */
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
    for (int i = 0; i < 100; i++) {
        free(seen(malloc(SIZE_MUTEX)));
        spin(1000000);
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

/* ---- the whole ---- */

static void main_parts(void (*first)(void), void (*second)(void))
{
    const double begin = seconds();
    first();
    const double middle = seconds();
    second();
    printf("%.0f\n", 1000 * (middle - begin) / (seconds() - begin));
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "mapping") == 0)
        main_mapping();
    else if (argc == 2 && strcmp(argv[1], "rate") == 0)
        main_rate();
    else if (argc == 2 && strcmp(argv[1], "quiet") == 0)
        main_quiet();
    else if (argc == 2 && strcmp(argv[1], "late") == 0)
        main_parts(main_quiet, main_mapping);
    else if (argc == 2 && strcmp(argv[1], "early") == 0)
        main_parts(main_rate, main_quiet);
    else if (argc == 2 && strcmp(argv[1], "contended") == 0)
        main_parts(main_locked, main_waiting);
    else if (argc == 2 && strcmp(argv[1], "shared") == 0)
        main_parts(with_two, with_two);
    else if (argc == 2 && strcmp(argv[1], "holes") == 0)
        main_parts(main_full, main_holes);
    else
        return 2;
    return 0;
}
