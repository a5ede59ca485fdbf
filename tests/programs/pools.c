/* pools.c - allocators of a program's own, announced with <heapwise/heapwise.h>: arenas that are cleared, slabs with
 * free lists, pools in pools, blocks that share granules. Says what it does in functions named after it. */
#include <heapwise/heapwise.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SITE __attribute__((noinline))

#ifdef __cplusplus
extern "C" { /* names without parameters */
#endif

static volatile long sink;
static char pool;

/* Volatile, so that each is one access: as the callbacks, the plugin and the count in the test see it. */
static void touch(volatile void *block, int reads, int writes)
{
    volatile long *at = (volatile long *)block;
    for (int i = 0; i < writes; i++)
        *at = i;
    for (int i = 0; i < reads; i++)
        sink = *at;
}

static SITE char *arena_memory(size_t size)
{
    char *memory = (char *)aligned_alloc(64, size);
    __asm__ volatile("" : "+r"(memory));
    return memory;
}

/* An arena over one block of malloc: 100 blocks of 128 bytes, 3 reads and 2 writes each, then cleared; twice. The
 * memory itself: 1 write before each block is handed out, which is forgotten, and 5 at its end, where no block lies. */
static SITE void *arena_block(char *memory, int i)
{
    volatile long *block = (long *)(memory + 128 * i);
    *block = 1;
    heapwise_pool_alloc(memory, (void *)block, 128);
    return (void *)block;
}

static void arena(void)
{
    char *memory = arena_memory(128 * 100 + 64);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 100; i++)
            touch(arena_block(memory, i), 3, 2);
        heapwise_pool_clear(memory);
    }
    touch(memory + 128 * 100, 0, 5);
    free(memory);
}

/* A slab in memory from mmap: 10 blocks of 64 bytes, each freed at once, 7 writes: temporary. Then one that is handed
 * out again and again without a free: 5 blocks, of which the last one stays. */
static SITE void slab_block(char *pool, char *block)
{
    heapwise_pool_alloc(pool, block, 64);
    touch(block, 0, 7);
    heapwise_pool_free(pool, block);
    heapwise_pool_free(pool, block); /* not there any more: ignored */
}

static SITE void again_block(char *pool, char *block)
{
    heapwise_pool_alloc(pool, block, 64);
    touch(block, 1, 0);
}

static char *slab(void)
{
    char *memory = (char *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 10; i++)
        slab_block(memory, memory + 64 * i);
    for (int i = 0; i < 5; i++)
        again_block(memory, memory + 1024);
    return memory;
}

/* A pool whose memory is a block of another pool, at the same address. */
static SITE char *outer_block(char *memory)
{
    heapwise_pool_alloc(memory + 1, memory, 2048);
    return memory;
}

static SITE void *inner_block(char *pool, int i)
{
    heapwise_pool_alloc(pool, pool + 256 * i, 256);
    return pool + 256 * i;
}

static void nested(void)
{
    char *memory = arena_memory(4096), *outer = outer_block(memory);
    for (int i = 0; i < 4; i++)
        touch(inner_block(outer, i), 11, 0);
    touch(outer + 2048 - 64, 0, 13);
    touch(memory + 4096 - 64, 17, 0);
    for (int i = 0; i < 4; i++)
        heapwise_pool_free(outer, outer + 256 * i);
    heapwise_pool_destroy(memory + 1);
    free(memory);
}

/* 24 bytes each, one behind the other from an odd address: they share granules. 40 blocks, one write each, 3 of them in
 * a granule whose first byte is no block's. */
static SITE void *tight_block(char *memory, int i)
{
    char *block = memory + 1 + 24 * i;
    heapwise_pool_alloc(memory, block, 24);
    heapwise_pool_free(NULL, block); /* another pool's: ignored */
    return block;
}

static SITE void tight(void)
{
    char *memory = arena_memory(1024);
    for (int i = 0; i < 40; i++)
        *(volatile char *)tight_block(memory, i) = 1;
    heapwise_pool_clear(memory);
    free(memory);
}

/* Many: the tables grow. 100000 blocks of 8 bytes at once. */
static SITE void many_block(char *memory, long i)
{
    heapwise_pool_alloc(&pool, memory + 8 * i, 8);
    __asm__ volatile(""); /* no jump there */
}

static void many(void)
{
    char *memory = (char *)mmap(NULL, 800000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long i = 0; i < 100000; i++)
        many_block(memory, i);
    for (long i = 0; i < 100000; i += 2)
        heapwise_pool_free(&pool, memory + 8 * i);
    heapwise_pool_clear(&pool);
    munmap(memory, 800000);
}

/* A block that lives to the end, in memory that does, too. */
static SITE void last_block(char *memory)
{
    heapwise_pool_alloc(memory, memory, 128);
    touch(memory, 4, 3);
    touch(memory + 256, 0, 6);
}

static char arena_in_data[1024] __attribute__((aligned(64)));

/* `sites`: more places than a small table of contexts has room for, in turn. */
#define ONE_SITE(n)                                                                                                    \
    static SITE void site_##n(void)                                                                                    \
    {                                                                                                                  \
        heapwise_pool_alloc(&pool, arena_in_data + 64 * n, 64);                                                        \
        __asm__ volatile("");                                                                                          \
    }
ONE_SITE(0)
ONE_SITE(1)
ONE_SITE(2)
ONE_SITE(3)
ONE_SITE(4)
ONE_SITE(5)

static int sites(void)
{
    static void (*const each[])(void) = {site_0, site_1, site_2, site_3, site_4, site_5};
    for (int i = 0; i < 60000; i++)
        each[i % 6]();
    return 0;
}

/* A live block of 512 bytes inside a variable: what is counted in any of its granules is the block's, what is counted
 * behind it the variable's. */
static SITE void data_block(void)
{
    heapwise_pool_alloc(arena_in_data, arena_in_data, 512);
    for (int i = 0; i < 512; i += 64)
        touch(arena_in_data + i, 2, 1);
    touch(arena_in_data + 512, 9, 0);
}

#ifdef __cplusplus
}
#endif

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return sites();
    heapwise_pool_alloc(&pool, NULL, 10);
    heapwise_pool_clear(&pool);
    arena();
    slab();
    nested();
    tight();
    many();
    last_block(arena_memory(512));
    data_block();
    printf("%d\n", heapwise_present());
    return 0;
}
