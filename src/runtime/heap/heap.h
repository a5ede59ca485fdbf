/* heap.h - blocks, what is known of each, and what is counted of them by context. */
#ifndef HW_RUNTIME_HEAP_HEAP_H
#define HW_RUNTIME_HEAP_HEAP_H

#include "runtime/runtime.h"

struct hw_thread; /* core/threads.h */
struct hw_walk;   /* stacks/stacks.h */

/* ---- homes.c: what a block remembers of who allocated it ----
 *
 * A number of 24 bits for the context and the thread's slot. The greater half of these numbers are contexts themselves,
 * whose thread is not known: where MIBs are of no thread (bounded tables), and when there are no more numbers. The
 * others are given to MIBs, and never to another one: a forked child goes on with numbers of its own, and knows its
 * parent's. */

#define HW_HOME_BITS 24
#define HW_HOMES     HW_CONTEXT_MAX
_Static_assert(HW_HOMES * 2u == 1u << HW_HOME_BITS, "half of them are contexts");

struct hw_home {
    uint32_t context, slot;
};
extern HW_HIDDEN struct hw_homes {
    struct hw_home *of; /* by number; NULL: there is no memory */
    uint32_t limit;     /* of numbers for MIBs, 0 without memory */
    uint32_t count;
} hw_homes;

void hw_homes_start(void);
/* A new number. Lock held. */
uint32_t hw_home_new(uint32_t context, uint32_t slot);
uint32_t hw_home_of_context(uint32_t context);

static inline struct hw_home hw_home_of(uint32_t home)
{
    return hw_likely(hw_homes.of != NULL) ? hw_homes.of[home] : (struct hw_home){home & (HW_HOMES - 1), HW_NONE};
}

/* Where there is memory for sure: blocks are in the map. */
static inline void hw_home_load(struct hw_home *to, uint32_t home)
{
    __builtin_memcpy(to, &hw_homes.of[home], sizeof *to);
}

/* ---- blocks.c: address -> what is known of the block ---- */

#define HW_STAMP_SHIFT        2  /* blocks remember ticks to the fourth: about a nanosecond */
#define HW_STAMP_COARSE_SHIFT 12 /* tiny blocks in very large numbers: about 1.6 us */

struct hw_block {
    uint64_t size;
    uint64_t stamp; /* ticks since family_base */
    union {         /* out of a store; what is put into one needs the number below */
        struct {
            uint32_t context;
            uint32_t owner; /* slot of the thread that allocated it, HW_NONE: not known */
        };
        struct hw_home at;
    };
    uint32_t home; /* see homes.c */
    uint32_t cpu;
    bool layout;    /* its record lies before it: a block of owned_blocks.c */
    uint8_t shift;  /* from here on in allocator mode only, and in the table only: it stands for 2^shift blocks */
    uint16_t slot;  /* of the thread that allocated it */
    uint32_t clock; /* of that thread's operations, modulo 2^32 */
};
bool hw_blocks_start(void);
enum hw_block_store hw_blocks_store(void);
/* All blocks but those in the map. SAFELY: memory may vanish meanwhile. Lock held. */
void hw_blocks_each(void (*each)(void *address, const struct hw_block *block), bool safely);
/* The others: those of the map that begin in [start, end). No event is under way. */
void hw_blocks_each_mapped(uintptr_t start, uintptr_t end, void (*each)(void *address, const struct hw_block *block));
/* Calls EACH if blocks of the map begin in [start, end), or have begun there. Lock held. */
void hw_blocks_trace(uintptr_t start, uintptr_t end, void (*each)(uintptr_t start, uintptr_t end));
/* What is known of the block that begins at ADDRESS. No event is under way. */
bool hw_block_at(uintptr_t address, struct hw_block *block);
bool hw_block_size(uintptr_t address, uint64_t *size);
extern HW_HIDDEN uint32_t *hw_block_cells; /* of the map; NULL when there is none */
/* One of these will be asked for soon. */
static inline void hw_block_prefetch(uintptr_t address)
{
    if (hw_block_cells)
        __builtin_prefetch(hw_block_cells + (address >> 4));
}
/* No block is known any more. False: that is not possible, and all are still known. Lock held, no event under way;
 * accesses are neither counted nor sampled, and it is not allocator mode. */
bool hw_blocks_forget(void);
/* Accesses are counted from now on: blocks carry their records with them. */
void hw_blocks_access(void);
/* Where the block begins that ADDRESS lies in, and what is known of it; 0: in none. Only while hw_block_starts_on. No
 * lock. Another thread may be freeing it: what is in *BLOCK has to be checked. */
uintptr_t hw_block_containing(uintptr_t address, struct hw_block *block);
extern HW_HIDDEN uint8_t hw_filter[]; /* see hooks.c */
extern HW_HIDDEN uint64_t hw_filter_mask;

/* ---- block_starts.c: the nearest begin of a block below an address ---- */

extern HW_HIDDEN bool hw_block_starts_on;
extern HW_HIDDEN uint64_t *hw_block_start_bits; /* the lowest level: one for each 16 bytes; NULL while off */
/* False when there is no address space for it. */
bool hw_block_starts_begin(void);

/* ---- heap.c: the observer that counts ---- */

void hw_heap_start(void);
void hw_heap_allocated(struct hw_thread *thread, void *address, size_t size, uintptr_t frame);
/* Allocator mode: the same, of a block that is followed; of LIKE the last three fields count. */
void hw_heap_followed(struct hw_thread *thread, void *address, size_t size, struct hw_walk *walk,
                      const struct hw_block *like);
/* Frees it, which is in *BLOCK then. */
bool hw_heap_follow_freed(struct hw_thread *thread, void *address, struct hw_block *block);
/* True when the block was known. */
bool hw_heap_freed(struct hw_thread *thread, void *address, uintptr_t frame);
/* Around a reallocation: the block is taken before, and put back at its new address. NEW_ADDRESS is NULL: it was freed
 * if SIZE is 0, as every allocator does that returns NULL then; else it stays. */
bool hw_heap_realloc_begin(struct hw_thread *thread, void *address, struct hw_block *block);
void hw_heap_realloc_end(struct hw_thread *thread, void *old_address, void *new_address, size_t size,
                         struct hw_block *block);
struct hw_mib *hw_mib_get(struct hw_thread *thread, uint32_t context);
/* Adds the thread's delta to the totals. */
void hw_heap_flush(struct hw_thread *thread);
void hw_heap_threads_many(void);

/* ---- block_log.c: when and where blocks begin and end ---- */

void hw_block_log_start(void);

/* ---- distributions.c: for resets; no event is under way ---- */

/* Counts of sizes and lifetimes begin again at zero; what is live stays, and is what was live at the peak number EPOCH.
 */
void hw_distributions_reset(uint64_t epoch);
/* Nothing is live any more, nor known to have been live. */
void hw_distributions_forget_live(void);
/* Blocks of unknown sizes are live in MIB: those that a forked child has inherited. */
void hw_distributions_mix(struct hw_mib *mib);

/* ---- sampling.c ---- */

/* -ln(u), 0 < u <= 1; and a generator of random numbers. */
double hw_minus_log(double u);
uint64_t hw_mix(uint64_t x);
/* Draws the distance to the next sampled byte. */
void hw_sample_begin(struct hw_thread *thread);
/* Whether a block that the hook has not ruled out is sampled. */
bool hw_sample_drawn(struct hw_thread *thread, size_t size);
/* What a sampled block stands for, and its part in the estimates of the variances (see hw_mib). */
struct hw_sample {
    uint64_t weight, bytes;
    uint64_t count_variance, bytes_variance;
};
struct hw_sample hw_sample_of(const struct hw_block *block);
/* Peaks of sampled runs. A process begins: what was live so far, in its parent, is inherited. */
void hw_sample_peaks_start(void);
/* A block is live, or not any more (SIGN -1). QUIET: in the middle of another event, when no peak is noted. */
void hw_sample_live(const struct hw_block *block, int sign, bool quiet);
void hw_sample_inherited_freed(const struct hw_block *block);
/* From now on what was inherited is live, too. No event is under way, in this and the next. */
void hw_sample_take_inherited(void);
/* Nothing is live any more, nor inherited. */
void hw_sample_forget_live(void);
/* The peak begins anew, with what is live now. */
void hw_sample_peaks_reset(void);

/* ---- program_pools.c: blocks of the program's own allocators ---- */

/* Events of a pool; THREAD is in the middle of one. A pool needs no beginning; FLAGS are kept for the caller. */
void hw_pool_begin(struct hw_thread *thread, const void *pool, uint64_t flags);
bool hw_pool_known(struct hw_thread *thread, const void *pool, uint64_t *flags);
void hw_pool_allocated(struct hw_thread *thread, const struct hw_walk *walk, const void *pool, const void *pointer,
                       size_t size);
/* False: no block of the pool begins there. In *SIZE its bytes. */
bool hw_pool_freed(struct hw_thread *thread, const void *pool, const void *pointer, uint64_t *size);
/* The block at FROM lies at TO now, or is of another size. It stays the same block. */
void hw_pool_changed(struct hw_thread *thread, const void *pool, const void *from, const void *to, size_t size);
/* All blocks of the pool end (RANGE is NULL), or those that lie, also in part, in the range (INSIDE), or those that do
 * not. Takes time in proportion to the blocks of the pool. */
struct hw_pool_range {
    uintptr_t start, end;
    bool inside;
};
void hw_pool_end_blocks(struct hw_thread *thread, const void *pool, const struct hw_pool_range *range);
/* The pool has another name. */
void hw_pool_moved(struct hw_thread *thread, const void *from, const void *to);

/* ---- client_requests.c: what programs announce to Valgrind ---- */

void hw_requests_start(void);
void hw_requests_end(void);

/* No block of a pool is known any more. Lock held, no event under way. */
void hw_pool_forget_blocks(void);
/* For a harvest of live blocks: between _begin and _end the blocks of pools are known by address. _harvest calls EACH
 * for all of them. Lock held. */
void hw_pool_harvest_begin(void);
void hw_pool_harvest(void (*each)(void *address, const struct hw_block *block));
void hw_pool_harvest_end(void);
/* The first granule in [from, end) that belongs to a block of a pool which began after STAMP, and in *HOLE_END where
 * these end; END when there is none. */
uintptr_t hw_pool_hole(uintptr_t from, uintptr_t end, uint64_t stamp, uintptr_t *hole_end);

#endif
