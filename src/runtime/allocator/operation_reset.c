/* operation_reset.c - heapwise_reset in allocator mode: operations are counted from zero.
 *
 * The fast path of an operation passes no gate, so no thread can wait for others that are in the middle of it, and
 * counters that they add to without atomic instructions must not be written by another thread. So counters of
 * operations and of places go on; what they were at the reset is kept and subtracted, here by readers
 * (hw_allocator_info.reset_slot), of places by heap_parts.c. All else is added to under a gate, which is closed
 * meanwhile, or by atomic instructions. An operation that is under way at the reset may be counted on one side and have
 * its system calls on the other. */
#include "runtime/allocator/places.h"

/* The sum of all slots at this moment, in a slot of its own. */
static bool keep_counts(struct hw_allocator_info *info)
{
    if (!info->reset_slot) {
        const uint32_t first = hw_pool_take(HW_POOL_OPERATION_COUNTS, HW_SIZE_BUCKETS);
        if (first == HW_NONE)
            return false;
        info->reset_slot = first / HW_SIZE_BUCKETS + 1; /* the slot is still zero */
        hw_pool_publish(HW_POOL_OPERATION_COUNTS);
    }
    struct hw_operation_counts *entries = HW_ENTRY(HW_POOL_OPERATION_COUNTS, struct hw_operation_counts, 0);
    struct hw_operation_counts *kept = entries + (info->reset_slot - 1) * HW_SIZE_BUCKETS;
    const uint32_t slots = (uint32_t)(HW_ENTRIES(HW_POOL_OPERATION_COUNTS) / HW_SIZE_BUCKETS);
    for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++)
        for (int phase = 0; phase < HW_PHASES; phase++)
            for (int kind = 0; kind < HW_OPERATION_KINDS_ROOM; kind++) {
                uint64_t sum = 0;
                for (uint32_t slot = 0; slot < slots; slot++)
                    if (slot + 1 != info->reset_slot)
                        sum += __atomic_load_n(&entries[slot * HW_SIZE_BUCKETS + bucket].count[phase][kind],
                                               __ATOMIC_RELAXED);
                __atomic_store_n(&kept[bucket].count[phase][kind], sum, __ATOMIC_RELAXED);
            }
    return true;
}

/* What lies where is known exactly; what contexts say of it are estimates. */
void hw_places_restart(void)
{
    struct hw_process_info *process = hw_runtime.process;
    hw_places_reset();
    hw_places_forget();
    hw_place_lines_forget();
    process->inherited_blocks = hw_places_live_blocks();
    process->inherited_bytes = hw_places_live();
    hw_places_tick(process->reset_tick); /* the times of places have no gap */
}

bool hw_operations_reset(void)
{
    struct hw_allocator_info *info = hw_allocator_info();
    if (!keep_counts(info))
        return false;
    info->timed = info->timed_weight = info->own_ticks = info->first_left_out = 0;
    info->interrupted = info->interrupted_ticks = 0;
    info->tracked = info->tracked_live;
    hw_times_reset();
    hw_dispatch_reset();
    hw_stages_reset();
    return true;
}
