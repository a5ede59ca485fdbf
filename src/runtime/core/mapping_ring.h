/* mapping_ring.h - changes of mappings on their way to the sorted list of mappings.c.
 *
 * Threads and their signal handlers put changes in, without a lock and without a system call; whoever holds the list's
 * lock takes them out, in their order. Nobody waits for anybody: a thread that is stopped in the middle of putting, for
 * however long, has its change taken from the ring and enters it itself when it goes on. If it never does (its handler
 * jumped away, or it is a thread of the parent in a forked child), the ring is full from then on. */
#ifndef HW_RUNTIME_CORE_MAPPING_RING_H
#define HW_RUNTIME_CORE_MAPPING_RING_H

#include "runtime/runtime.h"

#define HW_MAPPING_RING 64u /* changes that have room; a power of two */

struct hw_mapping_change {
    uintptr_t start, end;
    uint32_t context;
    bool gone; /* unmapped, else mapped */
};

/* False: the caller has to enter it into the list. */
bool hw_mapping_ring_put(struct hw_mapping_change change);
/* The oldest; false: none. One caller at a time. */
bool hw_mapping_ring_take(struct hw_mapping_change *change);
/* How many have been put and not been taken, roughly. */
uint32_t hw_mapping_ring_count(void);

#endif
