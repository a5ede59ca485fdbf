/* costs.c - a program that needs a known amount of memory.
 *
 *     costs MIB          writes to a block of that many MiB
 *     costs MIB twice    before that, to as much in blocks of 16 KiB, of which it keeps the last one: a heap that ends
 *                        with it cannot be returned to the system */
#include <stdlib.h>
#include <string.h>

#define SMALL (16u << 10)

static char *written(size_t size)
{
    char *block = malloc(size);
    for (size_t i = 0; block && i < size; i += 4096)
        ((volatile char *)block)[i] = 1;
    return block;
}

int main(int argc, char **argv)
{
    const size_t size = (size_t)(argc > 1 ? atoi(argv[1]) : 0) << 20, count = argc > 2 ? size / SMALL : 0;
    char **small = calloc(count + 1, sizeof *small);
    for (size_t i = 0; i < count; i++)
        if (!small || !(small[i] = written(SMALL)))
            return 1;
    for (size_t i = 0; i + 1 < count; i++)
        free(small[i]);
    return written(size + 1) ? 0 : 1;
}
