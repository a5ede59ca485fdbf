/* buffers.c - buffers of all sizes come, grow and go: half of them 64 to 1024 bytes, most others up to 32 KiB, one in
 * 64 up to 512 KiB. A buffer begins small, is grown by realloc to its size, written to in full and freed when its place
 * in a table of 512 is drawn again. The argument is the number of buffers (default 200,000). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACES 512

static uint64_t state = 88172645463325252u;

static uint32_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

static size_t draw_size(void)
{
    const uint32_t r = next_random();
    if (r % 64 == 0)
        return 32768 + next_random() % (512u * 1024 - 32768);
    return r % 2 ? 64 + next_random() % 960 : 1024 + next_random() % (31u * 1024);
}

int main(int argc, char **argv)
{
    static char *places[PLACES];
    const long buffers = argc > 1 ? atol(argv[1]) : 200000;
    uint64_t sum = 0;
    for (long i = 0; i < buffers; i++) {
        char **place = &places[next_random() % PLACES];
        const size_t size = draw_size();
        free(*place);
        char *buffer = malloc(size / 4 + 16);
        if (!buffer)
            return 1;
        memset(buffer, (int)i, size / 4 + 16);
        char *grown = realloc(buffer, size);
        if (!grown)
            return 1;
        memset(grown + size / 4, (int)i, size - size / 4);
        sum += (unsigned char)grown[size / 2];
        *place = grown;
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
