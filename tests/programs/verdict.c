/* verdict.c - programs of which it is known what the allocator does to them.
 *
 * verdict mapping: blocks of 8 MiB, one after the other. verdict rate: small blocks, in main_rate. verdict quiet: next
 * to none. verdict late: quiet, then mapping; early: rate, then quiet. These two say, in thousandths of their own time,
 * when the one gave way to the other. */
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
    for (int i = 0; i < 3000; i++) {
        char *block = seen(malloc(8u << 20));
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
    else
        return 2;
    return 0;
}
