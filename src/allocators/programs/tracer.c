/* tracer.c - libheapwise-tracer.so: notes each operation of the allocator in a file (course.h), and hands it on.
 *
 * Preloaded into one run of `heapwise allocators`. The allocator stays the program's own. Each thread fills chunks of
 * its own; when the file is full only the operations beyond it are counted. A forked child notes nothing, a program
 * that another one became by exec begins anew. Errors of any kind end the noting, never the program.
 *
 * Of large blocks it notes how many of their pages are there when they are freed, or move, or when the run ends: pages
 * of a fresh mapping that the program never touched are not. Memory that is used again may be there from before: then
 * it is more than was touched. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "allocators/course.h"
#include "allocators/programs/next.h"

#define PAGE      4096u
#define LOOK_MOST 1024u /* pages, at once */

static struct hw_trace_header *header;
static struct hw_trace_record *records;

struct own {
    struct hw_trace_record *at, *end;
    uint64_t thread; /* + 1; 0: not known yet */
};
static __thread struct own own __attribute__((tls_model("initial-exec")));
static bool confined; /* the program is about to give up system calls: pages are no longer counted */

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
        if (kind != HW_COURSE_TOUCHED)
            __atomic_add_fetch(&header->operations, 1, __ATOMIC_RELAXED);
        return;
    }
    *own.at++ = (struct hw_trace_record){tick, (uint64_t)kind << 56 | (uint64_t)(uintptr_t)address, size, before};
}

/* ---- pages ---- */

/* The pages that are there, from the first one of SIZE bytes at START to the last one that is theirs alone,
 * HW_COURSE_PAGES at most; 0: not known. The next block's header would count otherwise. */
static size_t resident_pages(uintptr_t start, size_t size)
{
    unsigned char there[LOOK_MOST];
    const size_t all = (start + size) / PAGE - start / PAGE, most = all < HW_COURSE_PAGES ? all : HW_COURSE_PAGES;
    size_t found = 0;
    for (size_t at = 0; at < most; at += LOOK_MOST) {
        const size_t count = most - at < LOOK_MOST ? most - at : LOOK_MOST;
        if (mincore((void *)((start / PAGE + at) * PAGE), count * PAGE, there) != 0)
            return 0;
        for (size_t i = 0; i < count; i++)
            found += there[i] & 1u;
    }
    return found ? found : 1;
}

static void note_touched(const void *block, size_t size)
{
    const int problem = errno;
    const size_t pages = resident_pages((uintptr_t)block, size);
    if (pages)
        note(HW_COURSE_TOUCHED, ticks(), block, pages, 0);
    errno = problem;
}

/* BLOCK is about to be freed, or to move. */
static inline void note_last(void *block)
{
    if (!header || confined || !hw_next.malloc_usable_size)
        return;
    const size_t size = hw_next.malloc_usable_size(block);
    if (size >= HW_TRACE_LARGE)
        note_touched(block, size);
}

/* Has the ADDRESS been seen? For looking back: now it has. Some look as if they had. */
static bool seen(uint64_t address)
{
    static uint8_t bits[1u << 17];
    const uint64_t hash = (address >> 4) * 0x9e3779b97f4a7c15ull >> 44;
    const uint8_t bit = (uint8_t)(1u << (hash & 7));
    const bool found = bits[hash >> 3] & bit;
    bits[hash >> 3] |= bit;
    return found;
}

/* At the end: the large blocks that are live are those of which, from the end on, an allocation comes first. */
__attribute__((destructor)) static void note_live(void)
{
    if (!header || confined)
        return;
    const uint64_t taken = __atomic_load_n(&header->taken, __ATOMIC_RELAXED);
    for (uint64_t i = taken < HW_TRACE_MOST ? taken : HW_TRACE_MOST; i-- > 0;) {
        const struct hw_trace_record record = records[i];
        const unsigned kind = (unsigned)(record.what >> 56);
        const uint64_t address = record.what & HW_TRACE_ADDRESS;
        if (i % HW_TRACE_CHUNK == 0 || !record.tick || kind == HW_COURSE_TOUCHED)
            continue;
        if (!seen(address) && kind != HW_COURSE_FREE && record.size >= HW_TRACE_LARGE)
            note_touched((const void *)(uintptr_t)address, record.size);
        if (kind == HW_COURSE_REALLOC)
            seen(record.before);
    }
}

/* Filters of system calls, which know nothing of mincore, come after one of these. */
HW_EXPORT int prctl(int option, ...)
{
    unsigned long argument[4];
    va_list rest;
    va_start(rest, option);
    for (int i = 0; i < 4; i++)
        argument[i] = va_arg(rest, unsigned long);
    va_end(rest);
    if (option == PR_SET_NO_NEW_PRIVS || option == PR_SET_SECCOMP)
        confined = true;
    return (int)syscall(SYS_prctl, option, argument[0], argument[1], argument[2], argument[3]);
}

/* ---- operations ---- */

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
    note_last(block);
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
    if (before)
        note_last(before);
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
