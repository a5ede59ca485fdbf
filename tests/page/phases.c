/* phases.c - a program of which is known what each phase allocates and frees. It writes a dump after the first and the
 * second one. Argument: the milliseconds of a pause. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "heapwise.h"

static void pause_for(long milliseconds)
{
    nanosleep(&(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000}, NULL);
}

static void *blocks[3000];

__attribute__((noinline)) static void *early(size_t i) { return blocks[i] = memset(malloc(1000), 1, 1000); }
__attribute__((noinline)) static void *middle(size_t i) { return blocks[i] = memset(malloc(2000), 1, 2000); }
__attribute__((noinline)) static void *late(size_t i) { return blocks[i] = memset(malloc(500), 1, 500); }

int main(int argc, char **argv)
{
    const long milliseconds = argc > 1 ? atol(argv[1]) : 40;
    for (size_t i = 0; i < 1000; i++)
        early(i);
    pause_for(milliseconds);
    heapwise_dump();
    pause_for(milliseconds);
    for (size_t i = 1000; i < 2000; i++)
        middle(i);
    for (size_t i = 0; i < 400; i++)
        free(blocks[i]);
    pause_for(milliseconds);
    heapwise_dump();
    pause_for(milliseconds);
    for (size_t i = 2000; i < 3000; i++)
        late(i);
    for (size_t i = 1000; i < 2000; i++)
        free(blocks[i]);
    pause_for(milliseconds);
    return 0;
}
