/* mappings.h - who mapped what: the program's own mmap, mremap and sbrk by call stack, the allocator's, and the stacks
 * of threads. For the ledger of resident memory (ledger.c). */
#ifndef HW_RUNTIME_CORE_MAPPINGS_H
#define HW_RUNTIME_CORE_MAPPINGS_H

#include "runtime/runtime.h"

#define HW_MAPPED_BY_ALLOCATOR HW_NONE /* in place of a context */

struct hw_mapped {
    uintptr_t start, end;
    uint32_t context;
};

/* The hook whose frame is FRAME (0: inside an operation of the allocator) has mapped [start, start + bytes), or moved
 * [old, old + old_bytes) there; the old range STAYS, empty (MREMAP_DONTUNMAP). */
void hw_mapping_made(uintptr_t start, size_t bytes, uintptr_t frame);
void hw_mapping_moved(uintptr_t old, size_t old_bytes, uintptr_t start, size_t bytes, bool stays, uintptr_t frame);
/* Before it is unmapped: what is mapped there next may be another thread's. */
void hw_mapping_gone(uintptr_t start, size_t bytes);
/* The first one that ends above ADDRESS. */
bool hw_mapping_above(uintptr_t address, struct hw_mapped *found);

/* A thread began on the stack that SP lies in; its thread pointer, which lies at its upper end, is POINTER. */
struct hw_thread_stack {
    uintptr_t pointer, sp;
    uint32_t tid;
};
void hw_stack_begun(void);
/* The one with the smallest thread pointer in [start, end). */
bool hw_stack_in(uintptr_t start, uintptr_t end, struct hw_thread_stack *found);

/* Of the thread that the process began with: its thread-local data lies there. */
uintptr_t hw_first_thread_pointer(void);

/* Enters the changes that wait: at each point of the timeline, and before a profile is complete. */
void hw_mappings_tick(uint64_t tick);
void hw_mappings_catch_up(void);

/* Whether no thread is in the middle of a change. Only while all others are stopped. */
bool hw_mappings_calm(void);

void hw_mappings_start(void);
/* In a forked child, before it has a file and when it has one. */
void hw_mappings_forget(void);
void hw_mappings_fork(void);
/* heapwise_reset: counts begin with what is mapped. Lock held. */
void hw_mappings_reset(void);

#endif
