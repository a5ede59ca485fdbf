/* harvest.c - the cells of what is live, for the end of the process and for dumps.
 *
 * A harvest only reads cells, and writes its result over that of the one before. */
#include "runtime/access/cells.h"
#include "runtime/access/counting.h"
#include "runtime/core/core.h"

static struct {
    uint32_t *index; /* by context: entry + 1 */
    uint32_t contexts;
    uint64_t now; /* stamp */
} live;

/* Without the blocks of pools that have begun in there since STAMP: those are counted separately. */
static void peek(uintptr_t start, uintptr_t end, uint64_t stamp, struct hw_cell_sum *sum,
                 struct hw_histogram_target *histogram)
{
    for (uintptr_t from = start, hole, hole_end = end; from < end; from = hole < end ? hole_end : end) {
        hole = hw_pool_hole(from, end, stamp, &hole_end);
        if (hole > from)
            hw_cells_scan(from, hole, false, sum, histogram);
    }
}

static void harvest(void *address, const struct hw_block *block, bool of_pool)
{
    uint32_t context = block->context < live.contexts ? block->context : 0;
    if (!live.index[context]) {
        uint32_t index = hw_pool_take(HW_POOL_ACCESS_LIVE, 1);
        if (index == HW_NONE)
            return;
        hw_access_clear_entry(HW_ENTRY(HW_POOL_ACCESS_LIVE, struct hw_access, index), context);
        live.index[context] = index + 1;
    }
    struct hw_access *entry = HW_ENTRY(HW_POOL_ACCESS_LIVE, struct hw_access, live.index[context] - 1);
    struct hw_cell_sum sum = {.owner = {.context = context, .live = true, .start = (uintptr_t)address}};
    struct hw_histogram_target target, *counts = hw_histogram_of_live(&target, context, address);
    uint64_t age = live.now > block->stamp ? live.now - block->stamp : 0;
    if (of_pool) {
        struct hw_cell_range range = hw_access_pool_range(address, block->size);
        peek(range.start, range.end, block->stamp, &sum, counts);
        hw_access_add_pool_block(entry, &sum, address, block, age);
        return;
    }
    entry->unseen_writes += hw_watch_changed((uintptr_t)address, block->size);
    peek((uintptr_t)address, hw_access_end(address, block->size), block->stamp, &sum, counts);
    hw_access_add_block(entry, &sum, address, block, age);
}

static void harvest_block(void *address, const struct hw_block *block)
{
    harvest(address, block, false);
}

static void harvest_pool_block(void *address, const struct hw_block *block)
{
    harvest(address, block, true);
}

/* The types of contexts are known in the entries of freed blocks, where the allocations are counted, too. */
static void copy_types(void)
{
    for (uint32_t i = 1; i < HW_ENTRIES(HW_POOL_ACCESS); i++) {
        const struct hw_access *from = HW_ENTRY(HW_POOL_ACCESS, struct hw_access, i);
        if (!from->type || from->context >= live.contexts || !live.index[from->context])
            continue;
        struct hw_access *to = HW_ENTRY(HW_POOL_ACCESS_LIVE, struct hw_access, live.index[from->context] - 1);
        if (to->type && to->type != from->type)
            to->flags |= HW_ACCESS_TYPES_DIFFER;
        to->type = to->type ? to->type : from->type;
        to->flags |= from->flags & HW_ACCESS_TYPES_DIFFER;
    }
}

void hw_harvest_write_info(void)
{
    struct hw_access_info *info = HW_ENTRY(HW_POOL_ACCESS_INFO, struct hw_access_info, 0);
    info->flags = (info->flags & HW_ACCESS_HARVESTED) | hw_shadow.access_flags;
    info->granule = hw_shadow.granule;
    info->planes = hw_shadow.planes_used + hw_shadow.memprof_used;
    info->planes_most = hw_shadow.planes_most;
    info->threads_sharing = hw_shadow.threads_sharing;
    info->modules = hw_shadow.modules;
    if (hw_shadow.granule == 4)
        hw_word_sampler_tell(info);
}

static void forget_live(void)
{
    hw_pool_set_count(HW_POOL_ACCESS_LIVE, 0);
    hw_pool_set_count(HW_POOL_HISTOGRAM_LIVE, 0);
    hw_pool_set_count(HW_POOL_WORDS_LIVE, 0);
    hw_sharing_forget_harvest();
}

void hw_access_harvest(bool stopped)
{
    if (!hw_pools[HW_POOL_ACCESS_INFO].used)
        return;
    live.contexts = (uint32_t)HW_ENTRIES(HW_POOL_CONTEXTS);
    size_t bytes = HW_ALIGN_UP((live.contexts + 1) * sizeof *live.index, HW_PAGE);
    live.index = hw_quiet ? NULL : hw_pages(bytes);
    if (!live.index)
        return;
    live.now = hw_ticks_raw() - hw_runtime.family_base;
    forget_live();
    hw_histograms_forget_live(live.contexts);
    hw_pool_harvest_begin();
    hw_blocks_each(harvest_block, !stopped);
    hw_pool_harvest(harvest_pool_block);
    copy_types();
    hw_globals_harvest();
    hw_pool_harvest_end();
    hw_pool_publish(HW_POOL_ACCESS_LIVE);
    hw_pool_publish(HW_POOL_HISTOGRAM_LIVE);
    hw_pool_publish(HW_POOL_WORDS_LIVE);
    hw_munmap(live.index, bytes);
    struct hw_access_info *info = HW_ENTRY(HW_POOL_ACCESS_INFO, struct hw_access_info, 0);
    hw_harvest_write_info();
    info->harvest_tick = hw_ticks_raw() - hw_runtime.tick_base;
    info->flags |= HW_ACCESS_HARVESTED;
}

void hw_access_forget_harvest(void)
{
    if (!hw_pools[HW_POOL_ACCESS_INFO].used)
        return;
    forget_live();
    hw_globals_forget_harvest();
    HW_ENTRY(HW_POOL_ACCESS_INFO, struct hw_access_info, 0)->flags &= ~(uint32_t)HW_ACCESS_HARVESTED;
}
