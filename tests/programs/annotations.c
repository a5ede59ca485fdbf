/* annotations.c - pools announced with <heapwise/annotations.h>: see test_requests.c. */
#include <heapwise/annotations.h>
#include <stdio.h>

#define SITE __attribute__((noinline))

#ifdef __cplusplus
extern "C" { /* names without parameters */
#endif

static char memory[64 * 1024] __attribute__((aligned(64)));

static SITE void pool_block(int i)
{
    HEAPWISE_MEMPOOL_ALLOC(memory, memory + 64 * i, 48);
    __asm__ volatile("");
}

/* 60 blocks: 20 are left by the trim, one of which grows by 8 bytes and ends, the others end with the pool, by its new
 * name. */
static void pools(void)
{
    HEAPWISE_CREATE_MEMPOOL(memory, 0, 0);
    for (int i = 0; i < 60; i++)
        pool_block(i);
    HEAPWISE_MEMPOOL_TRIM(memory, memory + 64 * 10, 64 * 20);
    HEAPWISE_MEMPOOL_CHANGE(memory, memory + 64 * 12, memory + 64 * 50, 56);
    HEAPWISE_MEMPOOL_FREE(memory, memory + 64 * 50);
    HEAPWISE_MOVE_MEMPOOL(memory, memory + 8);
    HEAPWISE_DESTROY_MEMPOOL(memory + 8);
}

static SITE void malloclike_block(int i)
{
    HEAPWISE_MALLOCLIKE_BLOCK(memory + 64 * i, 40, 0, 0);
    __asm__ volatile("");
}

static SITE void super_block(void)
{
    HEAPWISE_MEMPOOL_ALLOC(memory, memory, 640);
    __asm__ volatile("");
}

/* 30 blocks, one of which grows by 10 bytes: 10 end with the block of a pool that they lie in, 5 alone. */
static void blocks(void)
{
    HEAPWISE_CREATE_MEMPOOL_EXT(memory, 0, 0, 1);
    super_block();
    for (int i = 0; i < 30; i++)
        malloclike_block(i);
    HEAPWISE_RESIZEINPLACE_BLOCK(memory, 40, 50, 0);
    HEAPWISE_MEMPOOL_FREE(memory, memory);
    for (int i = 10; i < 15; i++)
        HEAPWISE_FREELIKE_BLOCK(memory + 64 * i, 0);
}

static SITE void region(int i)
{
    HEAPWISE_UNPOISON_MEMORY_REGION(memory + 64 * i, 30);
    __asm__ volatile("");
}

/* 100 regions: 10 end one by one, 40 with a chunk. */
static void regions(void)
{
    HEAPWISE_POISON_MEMORY_REGION(memory, sizeof memory);
    for (int i = 0; i < 100; i++)
        region(i);
    for (int i = 0; i < 10; i++)
        HEAPWISE_POISON_MEMORY_REGION(memory + 64 * i, i % 2 ? 30 : 32);
    HEAPWISE_POISON_MEMORY_REGION(memory + 64 * 20, 64 * 40);
}

int main(void)
{
    pools();
    blocks();
    regions();
    printf("%d\n", heapwise_present());
    return 0;
}

#ifdef __cplusplus
}
#endif
