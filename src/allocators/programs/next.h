/* next.h - the allocator behind a preloaded library, which hands on what programs ask of it. For libheapwise-tracer.so
 * and libheapwise-packer.so, each of which is one file.
 *
 * The dynamic linker may itself allocate while it looks the next allocator up: such blocks come from a piece of static
 * memory, and are never given back. */
#ifndef HW_ALLOCATORS_PROGRAMS_NEXT_H
#define HW_ALLOCATORS_PROGRAMS_NEXT_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define HW_EXPORT __attribute__((visibility("default")))
#define HW_EARLY  (64u << 10) /* bytes of blocks that are asked for while the next allocator is looked up */

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*memalign)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void (*free)(void *);
    size_t (*malloc_usable_size)(void *);
} hw_next;

static _Alignas(16) char hw_early[HW_EARLY];
static size_t hw_early_used;
static int hw_next_state; /* 1: being looked up; 2: found */

/* What the library does, once, when the next allocator has been found: before it is used by others, or beside them. */
static void hw_next_found(void);

static inline void *hw_early_take(size_t size)
{
    const size_t at = __atomic_fetch_add(&hw_early_used, (size + 31) & ~(size_t)15, __ATOMIC_RELAXED);
    if (size > HW_EARLY || at + size + 16 > HW_EARLY)
        return NULL;
    memcpy(hw_early + at, &size, sizeof size);
    return hw_early + at + 16;
}

static inline bool hw_early_is(const void *pointer)
{
    return (const char *)pointer >= hw_early && (const char *)pointer < hw_early + HW_EARLY;
}

static inline size_t hw_early_size(const void *pointer)
{
    size_t size;
    memcpy(&size, (const char *)pointer - 16, sizeof size);
    return size;
}

static __attribute__((noinline)) void hw_next_look_up(void)
{
    int expected = 0;
    if (!__atomic_compare_exchange_n(&hw_next_state, &expected, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return;
    *(void **)&hw_next.malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&hw_next.calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&hw_next.realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&hw_next.memalign = dlsym(RTLD_NEXT, "memalign");
    *(void **)&hw_next.posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
    *(void **)&hw_next.aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
    *(void **)&hw_next.free = dlsym(RTLD_NEXT, "free");
    *(void **)&hw_next.malloc_usable_size = dlsym(RTLD_NEXT, "malloc_usable_size");
    __atomic_store_n(&hw_next_state, 2, __ATOMIC_RELEASE);
    hw_next_found();
}

/* False: the next allocator is not known yet. */
static inline bool hw_next_ready(void)
{
    if (__builtin_expect(__atomic_load_n(&hw_next_state, __ATOMIC_ACQUIRE) != 2, 0))
        hw_next_look_up();
    return __atomic_load_n(&hw_next_state, __ATOMIC_ACQUIRE) == 2;
}

#endif
