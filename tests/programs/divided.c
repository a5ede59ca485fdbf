/* divided.c - has an allocator of its own that maps pages all over the address space before the runtime starts, as
 * those of browsers do: no piece of 32 TiB is left. Allocates 100 blocks. See test_limits.c. */
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

static _Alignas(16) char heap[1 << 22];
static size_t used;

static void divide(void)
{
    for (unsigned long at = 1; at < 32; at++)
        mmap((void *)(at << 42), 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
             0);
}

__attribute__((noinline)) void *malloc(size_t size)
{
    if (!used) /* the dynamic linker's first call */
        divide();
    char *block = heap + used + 16;
    memcpy(block - 16, &size, sizeof size);
    used += (size + 31) & ~(size_t)15;
    return block;
}

__attribute__((noinline)) void free(void *block)
{
    __asm__ volatile("" : : "r"(block));
}

__attribute__((noinline)) void *calloc(size_t count, size_t size)
{
    return memset(malloc(count * size), 0, count * size);
}

__attribute__((noinline)) void *realloc(void *block, size_t size)
{
    size_t before = 0;
    void *fresh = malloc(size);
    if (block) {
        memcpy(&before, (char *)block - 16, sizeof before);
        memcpy(fresh, block, before < size ? before : size);
    }
    return fresh;
}

int main(void)
{
    for (int i = 0; i < 100; i++)
        free(malloc(100));
    return 0;
}
