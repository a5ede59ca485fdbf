/* baremalloc.c - a program with an allocator of its own that maps memory by bare system calls, which nothing can hook:
 * only the blocks say whose memory it is. Keeps 16 MiB in blocks of 1024 bytes, all written. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { ARENA = 64 << 20, BLOCKS = 16 << 10, BLOCK = 1024 };

static long map_anonymous(size_t bytes)
{
    register long flags __asm__("r10") = MAP_PRIVATE | MAP_ANONYMOUS, file __asm__("r8") = -1, offset __asm__("r9") = 0;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_mmap), "D"(0), "S"(bytes), "d"(PROT_READ | PROT_WRITE), "r"(flags), "r"(file),
                       "r"(offset)
                     : "rcx", "r11", "memory");
    return result;
}

static char *next, *end;

void *malloc(size_t size)
{
    if (!next) {
        next = (char *)map_anonymous(ARENA);
        end = next + ARENA;
    }
    const size_t whole = (size + 31) / 16 * 16;
    if (size > ARENA || whole > (size_t)(end - next))
        return NULL;
    char *block = next + 16;
    next += whole;
    *(size_t *)(block - 16) = size;
    return block;
}

static volatile size_t freed;

void free(void *block) /* not so short that it has no room for a hook */
{
    if (block)
        freed += ((volatile size_t *)block)[-2];
}

void *calloc(size_t count, size_t size)
{
    return malloc(count * size); /* fresh memory is zero, and none is used again */
}

void *realloc(void *block, size_t size)
{
    char *other = malloc(size);
    if (block && other) {
        const size_t old = ((size_t *)block)[-2];
        memcpy(other, block, old < size ? old : size);
    }
    return other;
}

static char *blocks[BLOCKS];

int main(void)
{
    for (int i = 0; i < BLOCKS; i++)
        memset(blocks[i] = malloc(BLOCK), 1, BLOCK);
    return blocks[BLOCKS - 1][0] - 1;
}
