/* blocks.h - what the files of this room call of each other. heap.h has what other rooms call. */
#ifndef HW_RUNTIME_HEAP_BLOCKS_H
#define HW_RUNTIME_HEAP_BLOCKS_H

#include "runtime/heap/heap.h"

/* ---- blocks.c ---- */

/* Remembers a block. True when an older block at this address was never seen freed: it is then in *OLD. */
bool hw_block_put(struct hw_thread *thread, void *address, const struct hw_block *block, struct hw_block *old);
/* Forgets a block and returns it; false when the address is none of ours. */
bool hw_block_take(struct hw_thread *thread, void *address, struct hw_block *block);

/* ---- block_starts.c ---- */

void hw_block_starts_set(const void *address);
void hw_block_starts_clear(const void *address);
/* 0: there is none, or it cannot be found in reasonable time. */
uintptr_t hw_block_starts_find(uintptr_t address);

/* ---- block_log.c ---- */

/* A block begins, or (HW_NONE for CONTEXT, and 0 for SIZE) ends. */
void hw_block_log_add(struct hw_thread *thread, const void *address, uint64_t size, uint32_t context, uint64_t tick);

/* ---- heap.c: blocks of the program's own allocators ---- */

void hw_heap_pool_allocated(struct hw_thread *thread, void *address, const struct hw_block *block);
/* TEMPORARY: freed with no allocation between. */
void hw_heap_pool_freed(struct hw_thread *thread, void *address, const struct hw_block *block, bool temporary);
/* It stays the same block, of SIZE bytes from now on, at another address perhaps. */
void hw_heap_pool_resized(struct hw_thread *thread, void *old_address, void *new_address, const struct hw_block *block,
                          size_t size);

#endif
