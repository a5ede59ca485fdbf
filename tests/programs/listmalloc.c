/* listmalloc.c - an allocator with one list of free blocks for each thread and power of two: a block goes to the list
 * of the thread that frees it. A thread that only frees keeps all it ever gets. Preloaded. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { HEADER = 16, CHUNK = 1 << 22 };

static __thread void *lists[48] __attribute__((tls_model("initial-exec")));
static __thread char *next __attribute__((tls_model("initial-exec")));
static __thread char *end __attribute__((tls_model("initial-exec")));

static unsigned power_of(size_t bytes)
{
    unsigned power = 5;
    while ((size_t)1 << power < bytes)
        power++;
    return power;
}

void *malloc(size_t size)
{
    const unsigned power = power_of(size + HEADER);
    const size_t bytes = (size_t)1 << power;
    char *block = lists[power];
    if (block) {
        memcpy(&lists[power], block + HEADER, sizeof(void *));
        return block + HEADER;
    }
    if (!next || (size_t)(end - next) < bytes) {
        const size_t room = bytes > CHUNK ? bytes : CHUNK;
        next = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (next == MAP_FAILED)
            return next = NULL;
        end = next + room;
    }
    block = next;
    next += bytes;
    *(unsigned *)block = power;
    return block + HEADER;
}

void free(void *pointer)
{
    if (!pointer)
        return;
    const unsigned power = *(unsigned *)((char *)pointer - HEADER);
    memcpy(pointer, &lists[power], sizeof(void *));
    lists[power] = (char *)pointer - HEADER;
}

size_t malloc_usable_size(void *pointer)
{
    return pointer ? ((size_t)1 << *(unsigned *)((char *)pointer - HEADER)) - HEADER : 0;
}

void *calloc(size_t count, size_t size)
{
    size_t bytes;
    void *block = __builtin_mul_overflow(count, size, &bytes) ? NULL : malloc(bytes);
    return block ? memset(block, 0, bytes) : NULL;
}

void *realloc(void *pointer, size_t size)
{
    const size_t usable = malloc_usable_size(pointer);
    if (size <= usable && pointer)
        return pointer;
    void *block = malloc(size);
    if (block && pointer)
        memcpy(block, pointer, usable);
    if (block)
        free(pointer);
    return block;
}

/* Alignments above 16 are not for this one: the first blocks of a program have none. */
void *memalign(size_t alignment, size_t size)
{
    return alignment <= HEADER ? malloc(size) : NULL;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **pointer, size_t alignment, size_t size)
{
    *pointer = memalign(alignment, size);
    return *pointer ? 0 : 12;
}
