/* tracer.c - libheapwise-tracer.so: notes each operation of the allocator in a file (course.h), and hands it on.
 *
 * Preloaded into one run of `heapwise allocators`. The allocator stays the program's own. Each thread fills chunks of
 * its own; when the file is full only the operations beyond it are counted. A forked child notes nothing, a program
 * that another one became by exec begins anew. Errors of any kind end the noting, never the program. */
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
#include "allocators/next.h"

static struct hw_trace_header *header;
static struct hw_trace_record *records;

struct own {
    struct hw_trace_record *at, *end;
    uint64_t thread; /* + 1; 0: not known yet */
};
static __thread struct own own __attribute__((tls_model("initial-exec")));

static void stop_in_child(void)
{
    header = NULL;
}

static void hw_next_found(void)
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

HW_EXPORT void *malloc(size_t size)
{
    if (!hw_next_ready())
        return hw_early_take(size);
    void *block = hw_next.malloc(size);
    note(HW_COURSE_MALLOC, ticks(), block, size, 0);
    return block;
}

HW_EXPORT void *calloc(size_t count, size_t each)
{
    if (!hw_next_ready())
        return each && count > HW_EARLY / each ? NULL : hw_early_take(count * each);
    void *block = hw_next.calloc(count, each);
    note(HW_COURSE_CALLOC, ticks(), block, count * each, 0);
    return block;
}

HW_EXPORT void free(void *block)
{
    if (!block || hw_early_is(block) || !hw_next_ready())
        return;
    note(HW_COURSE_FREE, ticks(), block, 0, 0);
    hw_next.free(block);
}

HW_EXPORT void *realloc(void *before, size_t size)
{
    if (hw_early_is(before) || !hw_next_ready()) {
        const size_t had = before ? hw_early_size(before) : 0;
        void *block = malloc(size);
        if (block && before)
            memcpy(block, before, had < size ? had : size);
        return block;
    }
    if (before && size == 0)
        note(HW_COURSE_FREE, ticks(), before, 0, 0);
    void *block = hw_next.realloc(before, size);
    note(before && size ? HW_COURSE_REALLOC : HW_COURSE_MALLOC, ticks(), block, size, (uint64_t)(uintptr_t)before);
    return block;
}

HW_EXPORT void *memalign(size_t alignment, size_t size)
{
    if (!hw_next_ready() || !hw_next.memalign)
        return NULL;
    void *block = hw_next.memalign(alignment, size);
    note(HW_COURSE_ALIGNED, ticks(), block, size, alignment);
    return block;
}

HW_EXPORT int posix_memalign(void **block, size_t alignment, size_t size)
{
    if (!hw_next_ready() || !hw_next.posix_memalign)
        return ENOMEM;
    const int problem = hw_next.posix_memalign(block, alignment, size);
    if (problem == 0)
        note(HW_COURSE_ALIGNED, ticks(), *block, size, alignment);
    return problem;
}

HW_EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    if (!hw_next_ready() || !hw_next.aligned_alloc)
        return NULL;
    void *block = hw_next.aligned_alloc(alignment, size);
    note(HW_COURSE_ALIGNED, ticks(), block, size, alignment);
    return block;
}
