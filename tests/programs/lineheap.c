/* lineheap.c - an allocator to preload whose places are known: blocks of 16 bytes and more, one behind the other,
 * without anything between them. LINEHEAP says which:
 *
 *   shared   one row for all threads: two threads that take turns get parts of one line
 *   apart    each thread has rows of its own, of 64 KiB, and gets again what it freed itself
 *   passed   each thread has rows of its own; a freed block goes to whoever asks next for that size */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ROW     65536ul
#define CLASSES 128 /* multiples of 16 */
#define EXPORT  __attribute__((visibility("default")))

struct free_block {
    struct free_block *next;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *shared_row, *shared_end;
static struct free_block *passed[CLASSES];
static __thread char *row, *row_end;
static __thread struct free_block *own[CLASSES];
static int mode; /* 0 not known; s, a, p */

static size_t rounded(size_t size)
{
    return size ? (size + 15) & ~(size_t)15 : 16;
}

static char *fresh(char **at, char **end, size_t bytes)
{
    if (!*at || (size_t)(*end - *at) < bytes) {
        size_t length = (bytes + ROW - 1) & ~(ROW - 1);
        *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (*at == MAP_FAILED)
            abort();
        *end = *at + length;
    }
    char *result = *at;
    *at += bytes;
    return result;
}

/* The size of a block is known from a table by address: nothing is written before it. */
#define SLOTS (1u << 16)
static struct {
    uintptr_t address;
    size_t size;
} sizes[SLOTS];

static size_t *size_slot(uintptr_t address)
{
    for (uint32_t i = (uint32_t)(address >> 4);; i++) {
        if (sizes[i % SLOTS].address == address)
            return &sizes[i % SLOTS].size;
        if (!sizes[i % SLOTS].address) {
            sizes[i % SLOTS].address = address;
            return &sizes[i % SLOTS].size;
        }
    }
}

EXPORT void *malloc(size_t size)
{
    size_t bytes = rounded(size), class = bytes / 16;
    pthread_mutex_lock(&lock);
    if (!mode) {
        const char *name = getenv("LINEHEAP");
        mode = name ? name[0] : 's';
    }
    struct free_block **list = class < CLASSES ? (mode == 'p' ? &passed[class] : &own[class]) : NULL;
    void *result = list ? *list : NULL;
    if (result)
        *list = ((struct free_block *)result)->next;
    else
        result = mode == 's' ? fresh(&shared_row, &shared_end, bytes) : fresh(&row, &row_end, bytes);
    *size_slot((uintptr_t)result) = bytes;
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT void free(void *pointer)
{
    if (!pointer)
        return;
    pthread_mutex_lock(&lock);
    size_t class = *size_slot((uintptr_t)pointer) / 16;
    if (class < CLASSES && mode != 's') { /* a shared row is never used again */
        struct free_block **list = mode == 'p' ? &passed[class] : &own[class], *block = pointer;
        block->next = *list;
        *list = block;
    }
    pthread_mutex_unlock(&lock);
}

EXPORT size_t malloc_usable_size(void *pointer)
{
    pthread_mutex_lock(&lock);
    size_t size = pointer ? *size_slot((uintptr_t)pointer) : 0;
    pthread_mutex_unlock(&lock);
    return size;
}

EXPORT void *calloc(size_t count, size_t size)
{
    void *result = malloc(count * size);
    memset(result, 0, count * size);
    return result;
}

EXPORT void *realloc(void *pointer, size_t size)
{
    void *result = malloc(size);
    if (pointer) {
        size_t old = malloc_usable_size(pointer);
        memcpy(result, pointer, old < size ? old : size);
        free(pointer);
    }
    return result;
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    char *raw = malloc(size + alignment);
    uintptr_t up = ((uintptr_t)raw + alignment - 1) & ~(alignment - 1);
    *size_slot(up) = size;
    return (void *)up;
}

EXPORT int posix_memalign(void **pointer, size_t alignment, size_t size)
{
    *pointer = memalign(alignment, size);
    return 0;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}
