/* stuckmalloc.c - an allocator with one lock, in which a thread can stay: malloc(STUCK) never returns, and from then on
 * nobody gets a block. Preloaded by test_leaks.c with programs/states.c. */
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

#include "stuckmalloc.h"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int stuck_is_inside __attribute__((visibility("default")));

void *malloc(size_t size)
{
    pthread_mutex_lock(&lock);
    if (size == STUCK) {
        __atomic_store_n(&stuck_is_inside, 1, __ATOMIC_SEQ_CST);
        for (;;)
            pause();
    }
    void *block = __libc_malloc(size);
    pthread_mutex_unlock(&lock);
    return block;
}

void *calloc(size_t count, size_t size)
{
    pthread_mutex_lock(&lock);
    void *block = __libc_calloc(count, size);
    pthread_mutex_unlock(&lock);
    return block;
}
