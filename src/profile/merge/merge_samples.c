/* merge_samples.c - sampled accesses in a merge: samples of one thing add up, of how they were taken what all agree on,
 * or the greatest, stays. */
#include "profile/merge/merge_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

/* ---- how they were taken ---- */

static void keep_end(struct hw_sample_info *to, const struct hw_sample_info *from)
{
    if (from->ended < to->ended || (from->ended == to->ended && from->error <= to->error))
        return;
    to->ended = from->ended;
    to->error = from->error;
}

void hw_merge_samples_admit(struct hw_merge *merge, const struct hw_profile *profile)
{
    const struct hw_sample_info *from = &profile->sample_info;
    struct hw_sample_info *to = &merge->sample_info;
    if (!profile->accesses_sampled)
        return;
    const bool merged = profile->process.flags & HW_PROCESS_MERGED;
    to->period = !merge->sampled || to->period == from->period ? from->period : 0;
    merge->sampled = true;
    to->source |= from->source;
    keep_end(to, from);
    hw_keep_greater_short(&to->signal, from->signal);
    hw_keep_greater(&to->frequency, from->frequency);
    hw_keep_greater(&to->burst_length, from->burst_length);
    hw_sum(&to->runs, merged ? from->runs : 1);
    hw_sum(&to->runs_ended, merged ? from->runs_ended : from->ended != HW_SAMPLE_GOES_ON);
    hw_sum(&to->threads, from->threads);
    hw_sum(&to->bursts, from->bursts);
    hw_sum(&to->instructions, from->instructions);
    hw_sum(&to->steps, from->steps);
    hw_sum(&to->reads, from->reads);
    hw_sum(&to->writes, from->writes);
    hw_sum(&to->heap_reads, from->heap_reads);
    hw_sum(&to->heap_writes, from->heap_writes);
    hw_sum(&to->global_reads, from->global_reads);
    hw_sum(&to->global_writes, from->global_writes);
    hw_sum(&to->stack_reads, from->stack_reads);
    hw_sum(&to->stack_writes, from->stack_writes);
    hw_sum(&to->thread_reads, from->thread_reads);
    hw_sum(&to->thread_writes, from->thread_writes);
    hw_sum(&to->in_runtime, from->in_runtime);
    hw_sum(&to->in_kernel, from->in_kernel);
    hw_sum(&to->blocked, from->blocked);
    hw_sum(&to->cut, from->cut);
    hw_sum(&to->unknown, from->unknown);
    hw_sum(&to->lost, from->lost);
    hw_sum(&to->throttled, from->throttled);
}

/* ---- where they fell ---- */

static bool add_context(struct hw_merge *merge, const struct hw_sample_context *from, uint32_t reference)
{
    bool added;
    struct hw_sample_context *to = hw_store_intern(&merge->sampled_contexts, (struct hw_key){reference, 0}, &added);
    if (!to)
        return false;
    to->context = reference;
    hw_sample_context_add(to, from);
    return true;
}

/* CONTEXT is a reference; the map becomes the module. */
static bool add_count(struct hw_merge *merge, const struct hw_merge_input *input, const struct hw_sample_count *from,
                      uint32_t context)
{
    struct hw_sample_count count = *from;
    count.context = context;
    if (count.map < input->map_count) {
        const struct hw_merge_map *map = &input->map[count.map];
        count.map = map->module;
        count.offset = map->generated ? 0 : count.offset;
    } else if (count.kind != HW_SAMPLE_WORD) {
        count.map = HW_NONE;
        count.offset = 0; /* where it lay in a process that is gone says nothing */
    }
    const uint32_t place[4] = {count.kind, count.context, count.map, count.bytes};
    bool added;
    struct hw_sample_count *to =
        hw_store_intern(&merge->samples, hw_key_of(place, sizeof place, &count.offset, sizeof count.offset), &added);
    if (!to)
        return false;
    if (added) {
        *to = count;
        to->reads = to->writes = 0;
    }
    hw_sum(&to->reads, from->reads);
    hw_sum(&to->writes, from->writes);
    return true;
}

bool hw_merge_samples_add(struct hw_merge *merge, const struct hw_merge_input *input, const uint32_t *reference)
{
    const struct hw_profile *profile = input->profile;
    bool fine = true;
    for (size_t i = 0; fine && i < profile->sample_context_count; i++)
        fine = add_context(merge, &profile->sample_contexts[i], reference[profile->sample_contexts[i].context]);
    for (size_t i = 0; fine && i < profile->sample_count_count; i++)
        fine = add_count(merge, input, &profile->sample_counts[i], reference[profile->sample_counts[i].context]);
    for (size_t i = 0; fine && i < profile->sampled_global_count; i++) {
        const struct hw_global_granule *global = &profile->sampled_globals[i];
        const struct hw_sample_count count = {.kind = HW_SAMPLE_GLOBAL,
                                              .map = global->map,
                                              .bytes = 8,
                                              .offset = global->offset,
                                              .reads = global->reads,
                                              .writes = global->writes};
        fine = add_count(merge, input, &count, HW_NONE);
    }
    return fine;
}

/* ---- the tables ---- */

static int compare_contexts(const void *left, const void *right)
{
    const struct hw_sample_context *a = left, *b = right;
    return HW_ORDER(a->context, b->context);
}

static int compare_counts(const void *left, const void *right)
{
    return hw_sample_count_compare(left, right);
}

bool hw_merge_samples_finish(struct hw_merge *merge, struct hw_arena *arena, struct hw_tables *tables)
{
    const uint32_t context_count = merge->sampled_contexts.count, count = merge->samples.count;
    if (!merge->sampled)
        return true;
    struct hw_sample_info *info = hw_table_make(tables, arena, HW_SECTION_SAMPLE_INFO, 1);
    struct hw_sample_context *contexts = hw_table_make(tables, arena, HW_SECTION_SAMPLE_CONTEXTS, context_count);
    struct hw_sample_count *counts = hw_table_make(tables, arena, HW_SECTION_SAMPLE_COUNTS, count);
    if (!info || !contexts || !counts)
        return false;
    *info = merge->sample_info;
    for (uint32_t i = 0; i < context_count; i++) {
        contexts[i] = *(struct hw_sample_context *)hw_store_at(&merge->sampled_contexts, i);
        contexts[i].context = hw_merge_entry_at(merge, contexts[i].context)->id;
    }
    for (uint32_t i = 0; i < count; i++) {
        counts[i] = *(struct hw_sample_count *)hw_store_at(&merge->samples, i);
        if (counts[i].context != HW_NONE)
            counts[i].context = hw_merge_entry_at(merge, counts[i].context)->id;
        counts[i].map = hw_merge_rank(merge, counts[i].map);
    }
    qsort(contexts, context_count, sizeof *contexts, compare_contexts);
    qsort(counts, count, sizeof *counts, compare_counts);
    return true;
}
