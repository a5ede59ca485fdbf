/* pairs.c - does nothing but allocate: the tightest pair of malloc and free, then pairs among 10,000 live blocks of
 * mixed sizes. For what looking at the allocator costs (bench/allocator.sh). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252ull;

static unsigned draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 16);
}

static void tight(long rounds)
{
    for (long i = 0; i < rounds; i++) {
        void *volatile block = malloc(64);
        free(block);
    }
}

static void mixed(long rounds)
{
    static void *live[10000];
    for (int i = 0; i < 10000; i++)
        live[i] = malloc(16 + draw() % 500);
    for (long i = 0; i < rounds; i++) {
        const unsigned at = draw() % 10000;
        free(live[at]);
        live[at] = malloc(16 + draw() % 500);
    }
}

int main(int argc, char **argv)
{
    const long rounds = argc > 2 ? atol(argv[2]) : 10000000;
    if (argc > 1 && !strcmp(argv[1], "mixed"))
        mixed(rounds);
    else
        tight(rounds);
    return 0;
}
