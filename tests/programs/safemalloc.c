/* safemalloc.c - an allocator whose functions may be interrupted, left by longjmp and called again anywhere: memory is
 * only ever handed out, by one atomic addition. Preloaded under the signal tests. */
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HEADER = 16 };
static const size_t arena_size = (size_t)64 << 30; /* of address space */
static _Atomic(char *) arena;
static atomic_size_t used;

static void *take(size_t alignment, size_t size)
{
    char *base = atomic_load(&arena);
    if (!base) {
        char *fresh =
            mmap(NULL, arena_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        char *none = NULL;
        if (fresh == MAP_FAILED)
            abort();
        if (atomic_compare_exchange_strong(&arena, &none, fresh))
            base = fresh;
        else
            base = none;
    }
    if (size > arena_size / 4) {
        errno = ENOMEM;
        return NULL;
    }
    size_t room = (size + alignment + HEADER + 15) & ~(size_t)15;
    size_t start = atomic_fetch_add(&used, room);
    if (start + room > arena_size) {
        errno = ENOMEM;
        return NULL;
    }
    char *block = base + ((start + HEADER + alignment - 1) & ~(alignment - 1));
    memcpy(block - sizeof size, &size, sizeof size);
    return block;
}

size_t malloc_usable_size(void *block)
{
    size_t size = 0;
    if (block)
        memcpy(&size, (char *)block - sizeof size, sizeof size);
    return size;
}

void *malloc(size_t size)
{
    return take(16, size);
}

void free(void *block)
{
}

void *calloc(size_t number, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(number, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return take(16, bytes);
}

void *realloc(void *block, size_t size)
{
    if (!block)
        return take(16, size);
    if (size == 0)
        return NULL;
    size_t old = malloc_usable_size(block);
    void *fresh = take(16, size);
    if (fresh)
        memcpy(fresh, block, old < size ? old : size);
    return fresh;
}

void *memalign(size_t alignment, size_t size)
{
    return take(alignment < 16 ? 16 : alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size)
{
    void *block = memalign(alignment, size);
    if (!block)
        return ENOMEM;
    *result = block;
    return 0;
}
