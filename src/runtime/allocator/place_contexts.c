/* place_contexts.c - whose blocks keep pages that are otherwise free, and whose share cache lines: by call stack.
 *
 * Pinned pages are estimated from the followed blocks (operation_times.c), each of which stands for 2^shift. Pairs on
 * lines are exact up to the first 4096 events of a thread; of later ones every 2^n-th is taken, and counts 2^n times.
 * The stack of the new block is walked then; that of the other one is known if it is a followed block. */
#include "runtime/allocator/places.h"
#include "runtime/core/memory.h"
#include "runtime/core/threads.h"
#include "runtime/samples/samples.h"

#define SLOTS      2048u /* a power of two; three quarters of them are used at most */
#define EXACT_BITS 12u
#define LOOKS_MOST 4096u /* followed blocks that are examined at the end; near the peak an eighth of that */

/* ---- pinned pages ---- */

struct pins {
    uint16_t index[SLOTS]; /* open addressing by context: number of the pin + 1; 0: empty */
    uint32_t used;
    struct hw_pinned pin[SLOTS / 4 * 3];
};
static struct pins *pins[2]; /* by moment: peak, end */
static struct {
    struct pins *pins;
    uint64_t stride, seen;
    uint64_t looks, pages_free; /* blocks that were examined; weighted: free bytes in their pages, shared by blocks */
} pinning;

static struct hw_pinned *pin_of(struct pins *all, uint32_t context)
{
    uint32_t at = (context * 2654435761u >> 8) % SLOTS;
    for (; all->index[at]; at = (at + 1) % SLOTS)
        if (all->pin[all->index[at] - 1].context == context)
            return &all->pin[all->index[at] - 1];
    if (all->used == SLOTS / 4 * 3)
        return NULL;
    all->index[at] = (uint16_t)++all->used;
    all->pin[all->used - 1] = (struct hw_pinned){.context = context};
    return &all->pin[all->used - 1];
}

static void look_at_block(void *address, const struct hw_block *block)
{
    struct hw_place place;
    if (pinning.seen++ % pinning.stride)
        return;
    if (!hw_place_at((uintptr_t)address, &place) || !place.live || place.start != (uintptr_t)address ||
        place.requested != block->size || block->shift > 40)
        return; /* it is just being freed */
    const uintptr_t first = place.start & ~(HW_PAGE - 1);
    const uintptr_t last = (place.start + (place.requested ? place.requested - 1 : 0)) & ~(HW_PAGE - 1);
    const uint64_t weight = pinning.stride << block->shift;
    uint64_t pinned = 0, share = 0;
    for (uintptr_t page = first;; page = last) { /* those between are full */
        uint32_t blocks;
        const uint64_t used = hw_places_page_used(page, &blocks);
        if (blocks)
            share += (HW_PAGE - used) / blocks;
        if (blocks && used <= HW_PAGE / 4)
            pinned += (HW_PAGE - used) / blocks;
        if (page == last)
            break;
    }
    pinning.looks++;
    pinning.pages_free += weight * share;
    struct hw_pinned *slot = pinned ? pin_of(pinning.pins, block->context) : NULL;
    if (!slot)
        return;
    slot->samples++;
    slot->blocks += weight;
    slot->bytes += weight * pinned;
}

void hw_places_pin(struct hw_places_moment *moment, uint64_t followed)
{
    const unsigned which = moment->moment == HW_MOMENT_PEAK ? 0 : 1;
    if (!pins[which])
        pins[which] = hw_own_pages(sizeof *pins[which], true);
    if (!pins[which])
        return;
    for (uint32_t i = 0; pins[which]->used && i < SLOTS; i++)
        pins[which]->index[i] = 0;
    pins[which]->used = 0;
    pinning.pins = pins[which];
    pinning.stride = followed / (which ? LOOKS_MOST : LOOKS_MOST / 8) + 1;
    pinning.seen = hw_runtime.process->peak_epoch; /* not always the same ones */
    pinning.looks = pinning.pages_free = 0;
    hw_blocks_each(look_at_block, false);
    moment->pages_looks = pinning.looks;
    moment->pages_free = pinning.pages_free;
    uint32_t next = 0, there = (uint32_t)HW_ENTRIES(HW_POOL_PINNED);
    for (unsigned m = 0; m < 2; m++)
        for (uint32_t i = 0; pins[m] && i < pins[m]->used; i++) {
            if (next >= there && hw_pool_take(HW_POOL_PINNED, 1) == HW_NONE)
                return;
            struct hw_pinned *entry = HW_ENTRY(HW_POOL_PINNED, struct hw_pinned, next++);
            *entry = pins[m]->pin[i];
            entry->moment = m ? HW_MOMENT_END : HW_MOMENT_PEAK;
        }
    if (next < there)
        hw_pool_set_count(HW_POOL_PINNED, next);
    hw_pool_publish(HW_POOL_PINNED);
}

/* ---- pairs on lines ---- */

static uint32_t pairs[SLOTS]; /* entry + 1; open addressing; under the lock */

static void add_pair(uint32_t context, uint32_t other, bool active, uint64_t weight)
{
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    struct hw_line_pair *entry = NULL;
    for (uint32_t at = (context * 2654435761u ^ other * 2246822519u) >> 8; !entry; at++) {
        uint32_t *slot = &pairs[at % SLOTS];
        if (*slot) {
            struct hw_line_pair *there = HW_ENTRY(HW_POOL_LINE_PAIRS, struct hw_line_pair, *slot - 1);
            entry = there->context == context && there->other == other ? there : NULL;
            continue;
        }
        if (HW_ENTRIES(HW_POOL_LINE_PAIRS) >= SLOTS / 4 * 3 - 1 && context != HW_NONE) {
            hw_lock_drop(&hw_runtime.lock, old);
            add_pair(HW_NONE, HW_NONE, active, weight); /* the rest */
            return;
        }
        uint32_t index = hw_pool_take(HW_POOL_LINE_PAIRS, 1);
        if (index == HW_NONE)
            break;
        *slot = index + 1;
        entry = HW_ENTRY(HW_POOL_LINE_PAIRS, struct hw_line_pair, index);
        *entry = (struct hw_line_pair){.context = context, .other = other};
        hw_pool_publish(HW_POOL_LINE_PAIRS);
    }
    if (entry)
        *(active ? &entry->active : &entry->passive) += weight;
    hw_lock_drop(&hw_runtime.lock, old);
}

void hw_places_operation_end(struct hw_operator *op)
{
    struct hw_place_thread *self = op->places;
    if (!self || !self->shared)
        return;
    const bool active = self->shared == HW_PLACE_SHARED_FRESH;
    self->shared = 0;
    const uint64_t seen = ++self->pairs_seen;
    const unsigned shift = seen >> EXACT_BITS ? 64 - EXACT_BITS - (unsigned)__builtin_clzll(seen) : 0;
    if (seen & ((1ull << shift) - 1))
        return;
    struct hw_thread *thread = hw_enter(op->frame, true);
    if (!thread)
        return;
    struct hw_walk *walk = hw_walk_at(thread, op->frame);
    struct hw_place place;
    struct hw_block block;
    uint32_t other = HW_NONE;
    if (hw_place_at(self->shared_with, &place) && hw_block_starts_on &&
        hw_block_containing(place.start, &block) == place.start)
        other = block.context;
    add_pair(hw_walk_context(walk), other, active, 1ull << shift);
    hw_leave(thread);
}

void hw_place_contexts_file_begin(void)
{
    for (uint32_t i = 0; i < SLOTS; i++)
        if (pairs[i])
            pairs[i] = 0;
}

void hw_place_contexts_reset(void)
{
    hw_pool_set_count(HW_POOL_LINE_PAIRS, 0);
    hw_pool_set_count(HW_POOL_PINNED, 0);
    hw_place_contexts_file_begin();
}
