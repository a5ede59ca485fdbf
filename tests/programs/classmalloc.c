/* classmalloc.c - an allocator whose facts are known: BiBOP with classes 16, 32, 64 … 4096, each in slabs of 64 KiB;
 * all that is larger in mappings of its own, given back when freed; one list of free blocks for each class, first freed
 * first reused, shared by all threads. Blocks are aligned to 16 bytes. */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { CLASSES = 9, SLAB = 65536, LARGEST = 4096, PAGE = 4096 };

struct slab { /* at its begin, SLAB aligned; of a large block: in front of it */
    size_t size;
    size_t mapped;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void **first[CLASSES], **last[CLASSES]; /* free blocks: each holds the next one */
static char *fresh[CLASSES], *end[CLASSES];

static void *map_aligned(size_t bytes)
{
    char *all = mmap(NULL, bytes + SLAB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return NULL;
    char *start = (char *)(((uintptr_t)all + SLAB - 1) / SLAB * SLAB);
    if (start > all)
        munmap(all, (size_t)(start - all));
    munmap(start + bytes, (size_t)(all + SLAB - start));
    return start;
}

static struct slab *slab_of(void *block)
{
    return (struct slab *)((uintptr_t)block / SLAB * SLAB);
}

static void *allocate_large(size_t size, size_t alignment)
{
    size_t front = alignment > PAGE ? alignment : PAGE;
    if (size > PTRDIFF_MAX - 2 * SLAB || front > PAGE) {
        errno = ENOMEM;
        return NULL;
    }
    size_t mapped = (size + front + PAGE - 1) / PAGE * PAGE;
    struct slab *slab = map_aligned(mapped);
    if (!slab)
        return NULL;
    *slab = (struct slab){mapped - front, mapped};
    return (char *)slab + front;
}

static void *allocate(size_t size, size_t alignment)
{
    unsigned class = 0;
    if (size < alignment)
        size = alignment;
    if (size > LARGEST)
        return allocate_large(size, alignment);
    while ((size_t)16 << class < size)
        class ++;
    size_t bytes = (size_t)16 << class;
    void **block = NULL;
    pthread_mutex_lock(&lock);
    if (first[class]) {
        block = first[class];
        first[class] = *block;
    } else {
        if (!fresh[class]) {
            char *slab = map_aligned(SLAB);
            if (slab) {
                *(struct slab *)slab = (struct slab){bytes, 0};
                fresh[class] = slab + (bytes < sizeof(struct slab) ? sizeof(struct slab) : bytes);
                end[class] = slab + SLAB;
            }
        }
        if (fresh[class]) {
            block = (void **)fresh[class];
            fresh[class] += bytes;
            if (fresh[class] + bytes > end[class])
                fresh[class] = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    if (!block)
        errno = ENOMEM;
    return block;
}

void *malloc(size_t size)
{
    return allocate(size, 16);
}

size_t malloc_usable_size(void *block)
{
    return block ? slab_of(block)->size : 0;
}

void free(void *block)
{
    if (!block)
        return;
    struct slab *slab = slab_of(block);
    if (slab->mapped) {
        int before = errno;
        munmap(slab, slab->mapped);
        errno = before;
        return;
    }
    unsigned class = 0;
    while ((size_t)16 << class < slab->size)
        class ++;
    pthread_mutex_lock(&lock);
    *(void **)block = NULL;
    if (first[class])
        *last[class] = block;
    else
        first[class] = block;
    last[class] = block;
    pthread_mutex_unlock(&lock);
}

void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    void *block = malloc(bytes);
    return block ? memset(block, 0, bytes) : NULL;
}

void *realloc(void *block, size_t size)
{
    size_t old = malloc_usable_size(block);
    void *moved = malloc(size);
    if (moved && block) {
        memcpy(moved, block, size < old ? size : old);
        free(block);
    }
    return moved;
}

void *memalign(size_t alignment, size_t size)
{
    return allocate(size, alignment < 16 ? 16 : alignment);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size)
{
    int before = errno;
    *result = memalign(alignment, size);
    errno = before;
    return *result ? 0 : ENOMEM;
}
