/* filled_blocks.c - MIB mebibytes in blocks of SIZE bytes, each content TIMES times, in an order without one. They are
 * live at the end. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t mixed(uint64_t value)
{
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

int main(int argc, char **argv)
{
    const size_t size = argc > 1 ? strtoul(argv[1], NULL, 10) : 48, mib = argc > 2 ? strtoul(argv[2], NULL, 10) : 1024;
    const size_t times = argc > 3 ? strtoul(argv[3], NULL, 10) : 8, count = (mib << 20) / size;
    uint64_t **blocks = malloc(count * sizeof *blocks);
    if (size < 8 || !times || !blocks)
        return 2;
    for (size_t i = 0; i < count; i++) {
        uint64_t content = mixed(i) % (count / times + 1);
        blocks[i] = malloc(size);
        if (!blocks[i])
            return 1;
        for (size_t word = 0; word < size / 8; word++)
            blocks[i][word] = content = mixed(content + word);
        for (size_t at = size & ~(size_t)7; at < size; at++)
            ((char *)blocks[i])[at] = 'x';
    }
    printf("%zu blocks of %zu bytes\n", count, size);
    *(void *volatile *)&blocks = blocks;
    return 0;
}
