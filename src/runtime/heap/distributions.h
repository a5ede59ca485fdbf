/* distributions.h - how many blocks of a context have which size, and lived how long.
 *
 * A MIB remembers the size of the first block that it saw, and how long the first freed one lived. What is of that
 * bucket, or of that bar of lifetimes, is the rest that is in no entry: nothing is written for it, so that a context of
 * one size costs a comparison. Other buckets and bars have entries of SIZE_BARS and LIFETIME_BARS, which the MIB finds
 * by a private table (distributions.c).
 *
 * A block has the size that was requested last. A reallocation takes it from its old bucket to its new one, where it is
 * counted as a reallocation, with the bytes that it added. */
#ifndef HW_RUNTIME_HEAP_DISTRIBUTIONS_H
#define HW_RUNTIME_HEAP_DISTRIBUTIONS_H

#include "base/log_histogram.h"
#include "base/size_bucket.h"
#include "runtime/core/file.h"
#include "runtime/heap/heap.h"
#include "runtime/runtime.h"

void hw_distributions_start(void);
/* The MIB that several threads use, as there was no room for others: it has no bars. */
void hw_distributions_lost(struct hw_mib *mib);
/* Nothing more is counted in MIB, a copy. */
void hw_distributions_evicted(struct hw_mib *mib);
/* A bar of MIB that has none yet; NULL: there is no room, it is among the rest from now on. */
void *hw_bar_make(struct hw_mib *mib, uint32_t number);
void hw_size_resized(struct hw_mib *mib, uint64_t old_size, uint64_t size, uint64_t blocks);

/* Bars by number: buckets of sizes, behind them lifetimes. */
#define HW_BAR_LIVES   192u
#define HW_BAR_NUMBERS 256u

/* Tables of 16, 64 and 256 slots, in which each number has one place: a table where two bars would have the same one is
 * made larger, so that looking up is one load without a loop. A slot is where a bar lies in its pool, in units of 8
 * bytes, + 1, with HW_BAR_LIFE if it is a lifetime's; 0: empty. A MIB's `links` are the unit where its table begins,
 * shifted left, and the kind. */
#define HW_BAR_LIFE        (1u << 31)
#define HW_BAR_UNIT_SLOTS  16u
#define HW_BAR_TABLE_KINDS 3u
struct hw_bar_tables {
    uint32_t (*units)[HW_BAR_UNIT_SLOTS];
};
extern HW_HIDDEN struct hw_bar_tables hw_bar_tables;

static inline uint32_t hw_bar_table_slots(uint32_t kind)
{
    return HW_BAR_UNIT_SLOTS << 2 * kind;
}

static inline uint32_t *hw_bar_table_at(uint32_t links)
{
    return hw_bar_tables.units[links >> 2];
}

/* Its lowest 8 bits are different for all numbers. */
static inline uint32_t hw_bar_hash(uint32_t number)
{
    return number ^ number >> 4;
}

/* The only slot of the table LINKS where the bar with that number may be. */
static inline uint32_t *hw_bar_slot(uint32_t links, uint32_t number)
{
    return hw_bar_table_at(links) + (hw_bar_hash(number) & (hw_bar_table_slots(links & 3) - 1));
}

/* The bar of SLOT, if it is the one with that number. */
HW_INLINE void *hw_bar_in_slot(uint32_t slot, uint32_t number)
{
    if (number < HW_BAR_LIVES) {
        struct hw_size_bar *bar = (void *)((char *)hw_pools[HW_POOL_SIZE_BARS].base + (uint64_t)(slot - 1) * 8);
        return !(slot & HW_BAR_LIFE) && bar->bucket == number ? bar : NULL;
    }
    slot ^= HW_BAR_LIFE;
    struct hw_lifetime_bar *life = (void *)((char *)hw_pools[HW_POOL_LIFETIME_BARS].base + (uint64_t)(slot - 1) * 8);
    return !(slot & HW_BAR_LIFE) && life->life == number - HW_BAR_LIVES ? life : NULL;
}

/* The bar with that number; NULL: what is of it is among the rest. */
HW_INLINE void *hw_bar_of(struct hw_mib *mib, uint32_t number, uint32_t mixed)
{
    const uint32_t links = mib->links;
    if (hw_likely(links)) {
        const uint32_t slot = *hw_bar_slot(links, number);
        void *bar = hw_likely(slot) ? hw_bar_in_slot(slot, number) : NULL;
        if (hw_likely(bar))
            return bar;
    }
    return mib->flags & mixed ? NULL : hw_bar_make(mib, number);
}

HW_INLINE struct hw_size_bar *hw_size_bar_of(struct hw_mib *mib, uint64_t size)
{
    const uint32_t bucket = hw_size_bucket(size);
    if (hw_unlikely(mib->size_first == UINT64_MAX)) {
        mib->size_first = size;
        mib->first_bucket = (uint16_t)bucket;
    }
    return bucket == mib->first_bucket ? NULL : hw_bar_of(mib, bucket, HW_MIB_SIZES_MIXED);
}

HW_INLINE void hw_size_bar_live(struct hw_size_bar *bar, int64_t blocks, int64_t bytes)
{
    const uint64_t epoch = hw_runtime.process->peak_epoch;
    if (hw_unlikely(bar->peak_epoch != epoch)) { /* as take_peak_share of heap.c */
        bar->peak_bytes = bar->live_bytes;
        bar->peak_blocks = bar->live_blocks;
        bar->peak_epoch = epoch;
    }
    bar->live_blocks += blocks;
    bar->live_bytes += bytes;
}

/* A new block: BLOCKS of SIZE bytes, BYTES in all. */
HW_INLINE void hw_distributions_allocated(struct hw_mib *mib, uint64_t size, uint64_t blocks, int64_t bytes)
{
    struct hw_size_bar *bar = hw_likely(size == mib->size_first) ? NULL : hw_size_bar_of(mib, size);
    if (bar) {
        hw_size_bar_live(bar, (int64_t)blocks, bytes);
        bar->allocations += blocks;
        bar->bytes += (uint64_t)bytes;
    }
}

/* It is not live any more. */
HW_INLINE void hw_distributions_released(struct hw_mib *mib, uint64_t size, uint64_t blocks, int64_t bytes)
{
    struct hw_size_bar *bar = hw_likely(size == mib->size_first) ? NULL : hw_size_bar_of(mib, size);
    if (bar)
        hw_size_bar_live(bar, -(int64_t)blocks, -bytes);
}

/* It lived so many TICKS. */
HW_INLINE void hw_distributions_lived(struct hw_mib *mib, uint64_t ticks, uint64_t blocks, int64_t bytes)
{
    const uint32_t bar = hw_lifetime_bar((uint64_t)((unsigned __int128)ticks * hw_runtime.ns_per_tick >> 32));
    if (hw_likely(bar == mib->first_life))
        return;
    if (hw_unlikely(!mib->first_life)) {
        mib->first_life = (uint16_t)bar;
        return;
    }
    struct hw_lifetime_bar *life = hw_bar_of(mib, HW_BAR_LIVES + bar, HW_MIB_LIVES_MIXED);
    if (life) {
        life->frees += blocks;
        life->bytes += (uint64_t)bytes;
    }
}

HW_INLINE void hw_distributions_resized(struct hw_mib *mib, uint64_t old_size, uint64_t size, uint64_t blocks)
{
    if (old_size != size || size != mib->size_first)
        hw_size_resized(mib, old_size, size, blocks);
}

#endif
