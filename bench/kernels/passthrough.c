/* passthrough.c - a preload library that hands every allocation call straight to the next allocator.
 *
 * It does nothing else, so it shows what interception by LD_PRELOAD costs in itself: no profiler that works this way
 * can add less. Calls made while dlsym() looks for the real functions get memory from a small static area. With
 * -DPAUSE=N each malloc and free takes N turns of an empty loop more: what is to be expected of that much work.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void (*next_free)(void *);

#ifndef PAUSE
#define PAUSE 0
#endif
static inline void pause_here(void)
{
    for (volatile int i = 0; i < PAUSE; i++)
        ;
}

static _Alignas(16) char area[4096];
static size_t area_used;

__attribute__((constructor)) static void find_next(void)
{
    *(void **)&next_calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&next_malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&next_realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&next_free = dlsym(RTLD_NEXT, "free");
}

static void *early(size_t size)
{
    void *block = area + area_used;
    area_used += (size + 15) & ~(size_t)15;
    return area_used <= sizeof area ? block : NULL;
}

void *malloc(size_t size)
{
    if (__builtin_expect(!next_malloc, 0))
        return early(size);
    void *block = next_malloc(size);
    if (PAUSE)
        pause_here();
    return block;
}

void *calloc(size_t count, size_t size)
{
    if (__builtin_expect(!next_calloc, 0))
        return early(count * size);
    return next_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
    if (__builtin_expect(!next_realloc, 0))
        return early(size);
    return next_realloc(block, size);
}

void free(void *block)
{
    if (__builtin_expect((char *)block >= area && (char *)block < area + sizeof area, 0))
        return;
    if (__builtin_expect(!next_free, 0))
        return;
    if (PAUSE)
        pause_here();
    next_free(block);
}
