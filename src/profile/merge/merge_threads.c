/* merge_threads.c - threads in a merge: those of one name and one start function are added up, over all processes. What
 * they did by place is not kept. */
#include "profile/merge/merge_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

#define NAMES_MOST 10000u /* from here on only start functions are distinguished */

static bool add_thread(struct hw_merge *merge, const struct hw_merge_input *input, const struct hw_profile_thread *from)
{
    const struct hw_merge_map *map = from->map < input->map_count ? &input->map[from->map] : NULL;
    const bool routine = map && !map->generated;
    const bool named = merge->threads.count < NAMES_MOST;
    const uint32_t kind = from->flags & (HW_THREAD_MAIN | HW_THREAD_HANDLERS | HW_THREAD_INHERITED);
    struct {
        uint64_t routine;
        uint32_t module, kind;
        char name[HW_THREAD_NAME];
    } key = {.routine = routine ? from->routine : 0, .module = routine ? map->module : HW_NONE, .kind = kind};
    if (named)
        memcpy(key.name, from->name, strnlen(from->name, sizeof key.name));
    bool added;
    struct hw_merge_thread *to = hw_store_intern(&merge->threads, hw_key_of("t", 1, &key, sizeof key), &added);
    if (!to)
        return false;
    if (added) {
        *to = (struct hw_merge_thread){0};
        to->detail.map = key.module;
        to->detail.routine = key.routine;
        to->detail.flags = kind | (routine ? HW_THREAD_ROUTINE : 0);
        to->detail.slot = to->detail.previous = HW_NONE;
        memcpy(to->detail.name, from->name, strnlen(from->name, HW_THREAD_NAME));
    }
    to->detail.flags |= from->flags & (HW_THREAD_NAMES | HW_THREAD_ROUTINES);
    if (strncmp(to->detail.name, from->name, HW_THREAD_NAME) != 0)
        to->detail.flags |= HW_THREAD_NAMES;
    hw_sum(&to->detail.threads, from->threads);
    hw_sum(&to->entry.allocations, from->allocations);
    hw_sum(&to->entry.frees, from->frees);
    hw_sum(&to->entry.reallocations, from->reallocations);
    hw_sum(&to->entry.temporary, from->temporary);
    hw_sum(&to->entry.bytes, from->bytes);
    hw_sum_signed(&to->entry.live_blocks, from->live_blocks - (int64_t)(from->freed_of_others - from->freed_by_others));
    hw_sum_signed(&to->entry.live_bytes,
                  from->live_bytes - (int64_t)(from->freed_of_others_bytes - from->freed_by_others_bytes));
    hw_sum_signed(&to->detail.peak_bytes, from->peak_bytes);
    hw_sum(&to->detail.freed_by_others, from->freed_by_others);
    hw_sum(&to->detail.freed_by_others_bytes, from->freed_by_others_bytes);
    hw_sum(&to->detail.freed_of_others, from->freed_of_others);
    hw_sum(&to->detail.freed_of_others_bytes, from->freed_of_others_bytes);
    hw_sum(&to->detail.owner_unknown, from->owner_unknown);
    return true;
}

bool hw_merge_threads_admit(struct hw_merge *merge, const struct hw_merge_input *input,
                            const struct hw_profile *profile)
{
    bool fine = true;
    for (size_t i = 0; fine && i < profile->thread_count; i++)
        fine = add_thread(merge, input, &profile->threads[i]);
    return fine;
}

static int compare_threads(const void *left, const void *right)
{
    const struct hw_merge_thread *a = left, *b = right;
    const int names = memcmp(a->detail.name, b->detail.name, HW_THREAD_NAME);
    return HW_ORDER(b->entry.bytes, a->entry.bytes) ?: HW_ORDER(a->detail.map, b->detail.map)
        ?: HW_ORDER(a->detail.routine, b->detail.routine) ?: names ?: HW_ORDER(a->detail.flags, b->detail.flags);
}

/* What is in the totals and in no entry of ENTRIES. */
static void take_out(struct hw_thread_entry *totals, const struct hw_thread_entry *entry)
{
    totals->allocations = hw_without(totals->allocations, entry->allocations);
    totals->frees = hw_without(totals->frees, entry->frees);
    totals->reallocations = hw_without(totals->reallocations, entry->reallocations);
    totals->temporary = hw_without(totals->temporary, entry->temporary);
    totals->bytes = hw_without(totals->bytes, entry->bytes);
    hw_sum_signed(&totals->live_blocks, -entry->live_blocks);
    hw_sum_signed(&totals->live_bytes, -entry->live_bytes);
}

bool hw_merge_threads_finish(struct hw_merge *merge, struct hw_arena *arena, struct hw_tables *tables)
{
    /* In allocator mode these are estimates, which totals that are exact do not contain. */
    const bool known = merge->class == HW_MERGE_OWN && !merge->observed;
    const uint32_t count = known ? merge->threads.count : 0;
    struct hw_merge_thread *sorted = malloc(((size_t)count + 1) * sizeof *sorted);
    struct hw_thread_entry *entries = hw_table_make(tables, arena, HW_SECTION_THREADS, (size_t)count + 1);
    struct hw_thread_detail *list = count ? hw_table_make(tables, arena, HW_SECTION_THREAD_LIST, count) : NULL;
    const bool fine = sorted && entries && (list || !count);
    for (uint32_t i = 0; fine && i < count; i++) {
        sorted[i] = *(struct hw_merge_thread *)hw_store_at(&merge->threads, i);
        sorted[i].detail.map = hw_merge_rank(merge, sorted[i].detail.map);
    }
    if (fine) {
        qsort(sorted, count, sizeof *sorted, compare_threads);
        entries[count] = merge->totals;
    }
    for (uint32_t i = 0; fine && i < count; i++) {
        list[i] = sorted[i].detail;
        entries[i] = sorted[i].entry;
        take_out(&entries[count], &entries[i]);
    }
    free(sorted);
    return fine;
}
