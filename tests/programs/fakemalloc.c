/* fakemalloc.c - an allocator with settings of known effect: heapwise tune is to find them. Preloaded.
 *
 * Blocks of 4 KiB and more have pages of their own, in one region that is never used twice; small ones are the C
 * library's. FAKE_RELEASE=1: the pages of a block that is freed are returned to the system; else they stay.
 * FAKE_EXTRA=N: N MiB are mapped and written to at the start. FAKE_END=crash, hang, exit or print: what its name says,
 * at the start. */
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);

#define PAGE                                                                                                           \
    4096u /* blocks of this size or more have their own; of a block's first page the size is all that is used */
#define REGION ((size_t)512 << 20)

static char *region; /* NULL: not yet mapped */
static size_t used;
static int release;

static char *region_begin(void)
{
    char *begin = __atomic_load_n(&region, __ATOMIC_ACQUIRE), *none = NULL;
    if (begin)
        return begin;
    begin = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED)
        return NULL;
    madvise(begin, REGION, MADV_NOHUGEPAGE);
    if (__atomic_compare_exchange_n(&region, &none, begin, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return begin;
    munmap(begin, REGION);
    return none;
}

static int is_own(const void *block)
{
    const char *begin = __atomic_load_n(&region, __ATOMIC_ACQUIRE);
    return begin && (const char *)block >= begin && (const char *)block < begin + REGION;
}

static size_t size_of(const void *block)
{
    size_t size;
    memcpy(&size, (const char *)block - PAGE, sizeof size);
    return size;
}

__attribute__((constructor)) static void begin(void)
{
    const char *extra = getenv("FAKE_EXTRA"), *end = getenv("FAKE_END"), *given = getenv("FAKE_RELEASE");
    release = given && *given == '1';
    if (extra) {
        const size_t size = (size_t)atoi(extra) << 20;
        char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (bytes != MAP_FAILED)
            memset(bytes, 1, size);
    }
    if (end && strcmp(end, "crash") == 0)
        abort();
    if (end && strcmp(end, "hang") == 0)
        pause();
    if (end && strcmp(end, "exit") == 0)
        _exit(3);
    if (end && strcmp(end, "print") == 0 && write(1, "fake\n", 5) != 5)
        _exit(4);
}

void *malloc(size_t size)
{
    char *begin = size >= PAGE && size < REGION / 2 ? region_begin() : NULL;
    if (!begin)
        return __libc_malloc(size);
    const size_t pages = (size + 2 * PAGE - 1) / PAGE * PAGE;
    const size_t at = __atomic_fetch_add(&used, pages, __ATOMIC_RELAXED);
    if (at + pages > REGION)
        return __libc_malloc(size);
    memcpy(begin + at, &size, sizeof size);
    return begin + at + PAGE;
}

void free(void *block)
{
    if (!is_own(block))
        __libc_free(block);
    else if (release)
        madvise(block, (size_of(block) + PAGE - 1) / PAGE * PAGE, MADV_DONTNEED);
}

void *realloc(void *block, size_t size)
{
    if (!is_own(block))
        return __libc_realloc(block, size);
    if (size == 0) {
        free(block);
        return NULL;
    }
    const size_t before = size_of(block);
    void *moved = malloc(size);
    if (moved) {
        memcpy(moved, block, before < size ? before : size);
        free(block);
    }
    return moved;
}

size_t malloc_usable_size(void *block)
{
    return !block ? 0 : is_own(block) ? size_of(block) : ((size_t *)block)[-1] / 16 * 16 - 8;
}
