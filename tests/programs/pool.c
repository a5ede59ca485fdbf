/* pool.c - a library with operators new and delete of its own, that keeps small blocks in lists by size and never asks
 * the allocator for them: see hostile.c. Deleted blocks are linked through their first word. */
#include "program.h"

void *operator_new(size_t size) __asm__("_Znwm");
void operator_delete(void *block) __asm__("_ZdlPv");
void operator_delete_sized(void *block, size_t size) __asm__("_ZdlPvm");

enum { POOL_SIZE = 1 << 20, UNIT = 16, LARGEST = 1024 };
static _Alignas(UNIT) char pool[POOL_SIZE];
static size_t used;
static void *lists[LARGEST / UNIT + 1];

void *operator_new(size_t size)
{
    MUST(size > 0 && size <= LARGEST);
    size_t units = (size + UNIT - 1) / UNIT;
    void *block = lists[units];
    if (block) {
        lists[units] = *(void **)block;
        return block;
    }
    MUST(used + units * UNIT <= POOL_SIZE);
    block = pool + used;
    used += units * UNIT;
    return block;
}

void operator_delete_sized(void *block, size_t size)
{
    size_t units = (size + UNIT - 1) / UNIT;
    *(void **)block = lists[units];
    lists[units] = block;
}

/* The size is not known: the block is lost. */
void operator_delete(void *block)
{
}
