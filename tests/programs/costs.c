/* costs.c - a program that needs a known amount of memory.
 *
 *     costs MIB     writes to that many MiB, 4 KiB at a time */
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    const size_t size = (size_t)(argc > 1 ? atoi(argv[1]) : 0) << 20;
    volatile char *block = malloc(size + 1);
    if (!block)
        return 1;
    for (size_t i = 0; i < size; i += 4096)
        block[i] = 1;
    return 0;
}
