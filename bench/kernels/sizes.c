/* sizes.c - what a pair of malloc and free takes, by size: nanoseconds of the best of some batches, one line for each
 * size. Each block is written to at its first byte. With "ring": sixteen blocks live at once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RING 16

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double batch(size_t size, int pairs, int live)
{
    char *volatile block[RING] = {0};
    const double begin = now_ns();
    for (int i = 0; i < pairs; i++) {
        char *volatile *slot = &block[i % live];
        free(*slot);
        *slot = malloc(size);
        if (!*slot)
            exit(1);
        **slot = 1;
    }
    for (int i = 0; i < live; i++)
        free(block[i]);
    return (now_ns() - begin) / pairs;
}

int main(int argc, char **argv)
{
    const int live = argc > 1 && strcmp(argv[1], "ring") == 0 ? RING : 1;
    for (size_t size = 16; size <= 1ul << 30; size *= 4) {
        const double until = now_ns() + 60e6;
        double least = 1e18;
        for (int i = 0; i < 400 && (i < 3 || now_ns() < until); i++) {
            const double took = batch(size, 100, live);
            least = took < least ? took : least;
        }
        printf("%zu %.1f\n", size, least);
    }
    return 0;
}
