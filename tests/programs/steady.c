/* steady.c - allocates until it is killed, in two threads, at ever new places. Before and after each call it raises
 * counters in the file that its first argument names: whatever the profile says must lie between them. */
#include "program.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

struct progress {
    _Atomic uint64_t begun, done;           /* allocations */
    _Atomic uint64_t free_begun, free_done; /* frees */
};

enum { THREADS = 2, LIVE = 1000 };

NOINLINE static void *steady_allocate(unsigned depth, unsigned way, size_t size, struct progress *progress)
{
    void *block;
    if (depth > 0) {
        /* two different calls: the stacks are as many as the numbers of DEPTH bits */
        if (way & 1)
            block = steady_allocate(depth - 1, way >> 1, size, progress);
        else
            block = steady_allocate(depth - 1, way >> 1, size, progress);
        KEEP(block);
        return block;
    }
    atomic_fetch_add(&progress->begun, 1);
    block = malloc(size);
    atomic_fetch_add(&progress->done, 1);
    KEEP(block);
    return block;
}

static void *work(void *argument)
{
    struct progress *progress = argument;
    static _Thread_local void *live[LIVE];
    for (uint64_t i = 0;; i++) {
        unsigned slot = (unsigned)(i % LIVE);
        if (live[slot]) {
            atomic_fetch_add(&progress->free_begun, 1);
            free(live[slot]);
            atomic_fetch_add(&progress->free_done, 1);
        }
        live[slot] = steady_allocate(12, (unsigned)(i / 50), 1 + i % 500, progress);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    MUST(argc == 2);
    int file = open(argv[1], O_RDWR | O_CREAT, 0600);
    MUST(file >= 0 && ftruncate(file, 4096) == 0);
    struct progress *progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    MUST(progress != MAP_FAILED);
    close(file);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], NULL, work, &progress[i]) == 0);
    pthread_join(threads[0], NULL);
    return 0;
}
