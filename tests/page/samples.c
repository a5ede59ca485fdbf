/* samples.c - for tests of the page: reads and writes one word of many blocks for a while, and parts of a large one. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct record {
    long key, rest[6], hot;
};

static struct record *records[2000];

__attribute__((noinline)) static void make(void)
{
    for (int i = 0; i < 2000; i++)
        records[i] = calloc(1, sizeof *records[i]);
}

int main(void)
{
    make();
    long *large = calloc(1 << 19, sizeof *large), sum = 0;
    const clock_t end = clock() + CLOCKS_PER_SEC / 3;
    while (large && clock() < end)
        for (int i = 0; i < 2000; i++) {
            records[i]->hot += i;
            sum += records[i]->key;
            large[i * 256] += sum;
        }
    printf("%ld\n", sum);
    return 0;
}
