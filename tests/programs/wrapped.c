/* wrapped.c - a program all of whose memory comes through functions of its own: zmalloc, which tables name, and
 * take_memory, which no table names and which calls raw_memory. `holder` has most of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTION __attribute__((noipa))

FUNCTION void *ztrymalloc_usable_internal(size_t size)
{
    void *block = malloc(size);
    if (block)
        memset(block, 1, size);
    return block;
}

FUNCTION void *zmalloc(size_t size)
{
    void *block = ztrymalloc_usable_internal(size);
    if (!block)
        abort();
    return block;
}

FUNCTION void *raw_memory(size_t size)
{
    void *block = malloc(size);
    if (block)
        memset(block, 2, size);
    return block;
}

FUNCTION void *take_memory(size_t size)
{
    void *block = raw_memory(size);
    if (!block)
        abort();
    return block;
}

static void *volatile kept[64];

#define CALLER(number)                                                                                                 \
    FUNCTION void *caller_##number(void *(*get)(size_t))                                                               \
    {                                                                                                                  \
        void *block = get(100 + 10 * (number));                                                                        \
        kept[number] = block;                                                                                          \
        return block;                                                                                                  \
    }
CALLER(0)
CALLER(1)
CALLER(2)
CALLER(3)
CALLER(4)
CALLER(5)
CALLER(6)
CALLER(7)
CALLER(8)
CALLER(9)

FUNCTION void *holder(void *(*get)(size_t))
{
    char *block = get(100000);
    kept[63] = block;
    return block + 1;
}

/* What it allocates is freed at once. */
FUNCTION void passing(void *(*get)(size_t))
{
    void *block = get(1000);
    kept[62] = block;
    free(block);
}

FUNCTION void work(void *(*get)(size_t))
{
    void *(*const callers[])(void *(*)(size_t)) = {caller_0, caller_1, caller_2, caller_3, caller_4,
                                                   caller_5, caller_6, caller_7, caller_8, caller_9};
    for (size_t i = 0; i < sizeof callers / sizeof *callers; i++)
        if (!callers[i](get))
            abort();
    if (!holder(get))
        abort();
    passing(get);
}

int main(int argc, char **argv)
{
    work(argc > 1 && !strcmp(argv[1], "take") ? take_memory : zmalloc);
    return 0;
}
