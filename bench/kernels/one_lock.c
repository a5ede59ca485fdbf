/* one_lock.c - a preload library that has malloc and free take one pthread mutex, and times how long they wait for it.
 *
 * It stands for the lock of an allocator that has one: a mutex of pthreads waits and wakes as glibc's own locks do.
 * With GLIBC_TUNABLES=glibc.malloc.arena_max=1 nobody waits for the arena any more, and what was waited there is waited
 * here. At the end one line goes to standard error. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static void *(*next_malloc)(size_t);
static void (*next_free)(void *);
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t waits, waited_ns; /* who has the mutex changes them */

static _Alignas(16) char area[4096];
static size_t area_used;

__attribute__((constructor)) static void find_next(void)
{
    *(void **)&next_free = dlsym(RTLD_NEXT, "free");
    *(void **)&next_malloc = dlsym(RTLD_NEXT, "malloc");
}

__attribute__((destructor)) static void tell(void)
{
    fprintf(stderr, "one_lock: %lu waits, %lu ns\n", (unsigned long)waits, (unsigned long)waited_ns);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void take(void)
{
    if (pthread_mutex_trylock(&mutex) == 0)
        return;
    const uint64_t since = now_ns();
    pthread_mutex_lock(&mutex);
    waited_ns += now_ns() - since;
    waits++;
}

void *malloc(size_t size)
{
    if (!next_malloc) {
        void *block = area + area_used;
        area_used += (size + 15) & ~(size_t)15;
        return area_used <= sizeof area ? block : NULL;
    }
    take();
    void *block = next_malloc(size);
    pthread_mutex_unlock(&mutex);
    return block;
}

void free(void *block)
{
    if (!next_free || !block || ((char *)block >= area && (char *)block < area + sizeof area))
        return;
    take();
    next_free(block);
    pthread_mutex_unlock(&mutex);
}
