/* wrapmalloc.c - a wrapper of the next malloc: 32 bytes in front of each block are its own, and it has no
 * malloc_usable_size. What libc's function would read there leads nowhere. Preloaded; see test_totals.c. */
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct front {
    size_t size;
    void *raw;
    size_t unused, nowhere;
};

static void *(*next_malloc)(size_t);
static void (*next_free)(void *);

__attribute__((constructor)) static void find_next(void)
{
    *(void **)&next_free = dlsym(RTLD_NEXT, "free");
    *(void **)&next_malloc = dlsym(RTLD_NEXT, "malloc");
}

static void *allocate(size_t alignment, size_t size)
{
    if (!next_malloc)
        find_next();
    char *raw = size > PTRDIFF_MAX - alignment - 64 ? NULL : next_malloc(size + alignment + sizeof(struct front));
    if (!raw) {
        errno = ENOMEM;
        return NULL;
    }
    struct front *front =
        (struct front *)(((uintptr_t)raw + sizeof *front + alignment - 1) / alignment * alignment) - 1;
    *front = (struct front){size, raw, 0, 0xffffffff0};
    return front + 1;
}

static void release(void *block)
{
    if (block)
        next_free(((struct front *)block - 1)->raw);
}

void *malloc(size_t size)
{
    return allocate(16, size);
}

void free(void *block)
{
    release(block);
}

void *calloc(size_t count, size_t size)
{
    size_t bytes;
    void *block = __builtin_mul_overflow(count, size, &bytes) ? NULL : allocate(16, bytes);
    return block ? memset(block, 0, bytes) : NULL;
}

void *realloc(void *block, size_t size)
{
    void *fresh = allocate(16, size);
    if (block && fresh) {
        const size_t before = ((struct front *)block - 1)->size;
        memcpy(fresh, block, before < size ? before : size);
        release(block);
    }
    return fresh;
}

void *memalign(size_t alignment, size_t size)
{
    return allocate(alignment < 16 ? 16 : alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return allocate(alignment < 16 ? 16 : alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size)
{
    *result = allocate(alignment < 16 ? 16 : alignment, size);
    return *result ? 0 : ENOMEM;
}
