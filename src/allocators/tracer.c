/* tracer.c - libheapwise-tracer.so: notes each operation of the allocator in a file (course.h), and hands it on.
 *
 * Preloaded into one run of `heapwise allocators`. The allocator stays the program's own. Each thread fills chunks of
 * its own; when the file is full only the operations beyond it are counted. A forked child notes nothing, a program
 * that another one became by exec begins anew. Errors of any kind end the noting, never the program. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "allocators/course.h"

#define EXPORT __attribute__((visibility("default")))
#define EARLY  (64u << 10) /* bytes of blocks that are asked for while the next allocator is looked up */

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*memalign)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void (*free)(void *);
} next;

static _Alignas(16) char early[EARLY];
static size_t early_used;
static int looking; /* 1: the next allocator is being looked up; 2: found */
static struct hw_trace_header *header;
static struct hw_trace_record *records;

struct own {
    struct hw_trace_record *at, *end;
    uint64_t thread; /* + 1; 0: not known yet */
};
static __thread struct own own __attribute__((tls_model("initial-exec")));

static void *take_early(size_t size)
{
    const size_t at = __atomic_fetch_add(&early_used, (size + 31) & ~(size_t)15, __ATOMIC_RELAXED);
    if (size > EARLY || at + size + 16 > EARLY)
        return NULL;
    memcpy(early + at, &size, sizeof size);
    return early + at + 16;
}

static bool is_early(const void *pointer)
{
    return (const char *)pointer >= early && (const char *)pointer < early + EARLY;
}

static void stop_in_child(void)
{
    header = NULL;
}

static void open_trace(void)
{
    const char *folder = getenv(HW_TRACE_VARIABLE);
    char path[4096];
    const size_t size = sizeof(struct hw_trace_record) * ((size_t)HW_TRACE_MOST + 1);
    const int problem = errno;
    if (folder && (size_t)snprintf(path, sizeof path, "%s/%d.trace", folder, (int)getpid()) < sizeof path) {
        const int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        void *found = MAP_FAILED;
        if (file >= 0 && ftruncate(file, (off_t)size) == 0)
            found = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (file >= 0)
            close(file);
        if (found != MAP_FAILED) {
            struct hw_trace_header *made = found;
            made->magic = HW_TRACE_MAGIC;
            records = (struct hw_trace_record *)found + 1;
            pthread_atfork(NULL, NULL, stop_in_child);
            header = made;
        }
    }
    errno = problem;
}

static void look_up(void)
{
    int expected = 0;
    if (!__atomic_compare_exchange_n(&looking, &expected, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return;
    *(void **)&next.malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&next.calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&next.realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&next.memalign = dlsym(RTLD_NEXT, "memalign");
    *(void **)&next.posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
    *(void **)&next.aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
    *(void **)&next.free = dlsym(RTLD_NEXT, "free");
    __atomic_store_n(&looking, 2, __ATOMIC_RELEASE);
    open_trace();
}

/* False: the next allocator is not known yet. */
static inline bool ready(void)
{
    if (__builtin_expect(__atomic_load_n(&looking, __ATOMIC_ACQUIRE) != 2, 0))
        look_up();
    return __atomic_load_n(&looking, __ATOMIC_ACQUIRE) == 2;
}

static inline uint64_t ticks(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high)::"memory");
    return (uint64_t)high << 32 | low;
}

static __attribute__((noinline)) bool take_chunk(void)
{
    if (own.thread == 0)
        own.thread = __atomic_add_fetch(&header->threads, 1, __ATOMIC_RELAXED);
    if (__atomic_load_n(&header->taken, __ATOMIC_RELAXED) + HW_TRACE_CHUNK > HW_TRACE_MOST)
        return false;
    const uint64_t at = __atomic_fetch_add(&header->taken, HW_TRACE_CHUNK, __ATOMIC_RELAXED);
    if (at + HW_TRACE_CHUNK > HW_TRACE_MOST)
        return false;
    records[at].size = own.thread - 1;
    own.at = &records[at + 1];
    own.end = &records[at + HW_TRACE_CHUNK];
    return true;
}

static inline void note(enum hw_course_kind kind, uint64_t tick, const void *address, size_t size, uint64_t before)
{
    if (!header || !address)
        return;
    if (own.at == own.end && !take_chunk()) {
        __atomic_add_fetch(&header->operations, 1, __ATOMIC_RELAXED);
        return;
    }
    *own.at++ = (struct hw_trace_record){tick, (uint64_t)kind << 56 | (uint64_t)(uintptr_t)address, size, before};
}

EXPORT void *malloc(size_t size)
{
    if (!ready())
        return take_early(size);
    void *block = next.malloc(size);
    note(HW_COURSE_MALLOC, ticks(), block, size, 0);
    return block;
}

EXPORT void *calloc(size_t count, size_t each)
{
    if (!ready())
        return each && count > EARLY / each ? NULL : take_early(count * each);
    void *block = next.calloc(count, each);
    note(HW_COURSE_CALLOC, ticks(), block, count * each, 0);
    return block;
}

EXPORT void free(void *block)
{
    if (!block || is_early(block) || !ready())
        return;
    note(HW_COURSE_FREE, ticks(), block, 0, 0);
    next.free(block);
}

EXPORT void *realloc(void *before, size_t size)
{
    if (is_early(before) || !ready()) {
        size_t had = 0;
        if (before)
            memcpy(&had, (char *)before - 16, sizeof had);
        void *block = malloc(size);
        if (block && before)
            memcpy(block, before, had < size ? had : size);
        return block;
    }
    if (before && size == 0)
        note(HW_COURSE_FREE, ticks(), before, 0, 0);
    void *block = next.realloc(before, size);
    note(before && size ? HW_COURSE_REALLOC : HW_COURSE_MALLOC, ticks(), block, size, (uint64_t)(uintptr_t)before);
    return block;
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    if (!ready() || !next.memalign)
        return NULL;
    void *block = next.memalign(alignment, size);
    note(HW_COURSE_ALIGNED, ticks(), block, size, alignment);
    return block;
}

EXPORT int posix_memalign(void **block, size_t alignment, size_t size)
{
    if (!ready() || !next.posix_memalign)
        return ENOMEM;
    const int problem = next.posix_memalign(block, alignment, size);
    if (problem == 0)
        note(HW_COURSE_ALIGNED, ticks(), *block, size, alignment);
    return problem;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    if (!ready() || !next.aligned_alloc)
        return NULL;
    void *block = next.aligned_alloc(alignment, size);
    note(HW_COURSE_ALIGNED, ticks(), block, size, alignment);
    return block;
}
