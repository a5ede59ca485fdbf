/* two_threads.c - two threads allocate and free mixed sizes from call stacks of different depths.
 *
 * Each thread keeps a table of live blocks and replaces one at random in every step; one block in 64 goes through a
 * mailbox to the other thread, which frees it. Every block is written to in full. The arguments are the number of steps
 * of a thread (default 4,000,000) and of threads (default 2).
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS     4096
#define MAILBOXES 64
#define THREADS   16

struct worker {
    pthread_t thread;
    uint64_t random; /* xorshift state */
    uint64_t bytes;
    long steps;
    void *slots[SLOTS];
};

static _Atomic(void *) mailboxes[MAILBOXES];
static struct worker workers[THREADS];

static uint32_t next_random(struct worker *w)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (uint32_t)(w->random >> 32);
}

/* Mostly small; 1 in 16 up to 4 KiB; 1 in 4096 up to 256 KiB. In steps, as the sizes of structs and buffers come. */
static size_t mixed_size(uint32_t r)
{
    if (r % 4096 == 0)
        return 4096 * (1 + (r >> 12) % 64);
    if (r % 16 == 0)
        return 256 * (1 + (r >> 8) % 16);
    return 8 * (1 + (r >> 8) % 31);
}

__attribute__((noinline)) static void *make_zeroed(size_t size)
{
    return calloc(1, size);
}

__attribute__((noinline)) static void *make_grown(size_t size)
{
    void *block = malloc(size / 2 + 1);
    return block ? realloc(block, size) : NULL;
}

__attribute__((noinline)) static void *make_block(size_t size)
{
    return malloc(size);
}

/* The empty asm keeps the compiler from turning the recursions into loops. */
__attribute__((noinline)) static void *descend_left(size_t size, unsigned depth, uint32_t path);

__attribute__((noinline)) static void *descend_right(size_t size, unsigned depth, uint32_t path)
{
    void *block;
    if (depth == 0)
        block = path % 8 == 0 ? make_grown(size) : make_block(size);
    else
        block = path & 1 ? descend_left(size, depth - 1, path >> 1) : descend_right(size, depth - 1, path >> 1);
    __asm__ volatile("" ::: "memory");
    return block;
}

static void *descend_left(size_t size, unsigned depth, uint32_t path)
{
    void *block;
    if (depth == 0)
        block = path % 8 == 0 ? make_zeroed(size) : make_block(size);
    else
        block = path & 1 ? descend_right(size, depth - 1, path >> 1) : descend_left(size, depth - 1, path >> 1);
    __asm__ volatile("" ::: "memory");
    return block;
}

/* 16 depths from 2 to 32, each with 4 paths: 64 stacks. */
static void *allocate(struct worker *w, size_t size)
{
    uint32_t r = next_random(w);
    unsigned depth = 2 + 2 * (r % 16);
    uint32_t path = ((r >> 4) & 3) * 0x5a5a5a5au;
    return descend_left(size, depth, path);
}

static void *work(void *argument)
{
    struct worker *w = argument;
    for (long i = 0; i < w->steps; i++) {
        uint32_t r = next_random(w);
        void **slot = &w->slots[r % SLOTS];
        if (r >> 26 == 0)
            *slot = atomic_exchange(&mailboxes[(r >> 12) % MAILBOXES], *slot);
        free(*slot);
        size_t size = mixed_size(next_random(w));
        *slot = allocate(w, size);
        if (!*slot)
            abort();
        memset(*slot, (int)i, size);
        w->bytes += size;
    }
    for (size_t i = 0; i < SLOTS; i++)
        free(w->slots[i]);
    return NULL;
}

int main(int argc, char **argv)
{
    long steps = argc > 1 ? atol(argv[1]) : 4000000;
    int threads = argc > 2 ? atoi(argv[2]) : 2;
    if (threads < 1 || threads > THREADS || steps < 0)
        return 2;
    uint64_t bytes = 0;
    for (int i = 0; i < threads; i++) {
        workers[i].random = 0x9e3779b97f4a7c15ull * (uint64_t)(i + 1);
        workers[i].steps = steps;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            return 1;
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        bytes += workers[i].bytes;
    }
    for (size_t i = 0; i < MAILBOXES; i++)
        free(mailboxes[i]);
    printf("%d threads, %ld steps each, %llu bytes\n", threads, steps, (unsigned long long)bytes);
    return 0;
}
