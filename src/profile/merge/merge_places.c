/* merge_places.c - what the allocators of several runs made of their memory, in a merge. Size classes, false sharing
 * and pinned pages add up; so do the heaps in parts, each at its own peak. Memory over time is of one run. */
#include "profile/merge/merge_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

enum { MOMENTS = HW_MOMENT_END + 1 };

struct hw_merge_places {
    /* ---- by admissions ---- */
    struct hw_places_info info;
    struct hw_places_moment moment[MOMENTS]; /* `runs` 0: there is none */
    struct hw_store classes;                 /* struct hw_usable_class */
    /* ---- by sums: contexts are references ---- */
    struct hw_store pinned, pairs; /* struct hw_pinned, hw_line_pair */
};

void hw_merge_places_free(struct hw_merge_places *all)
{
    if (!all)
        return;
    hw_store_free(&all->classes);
    hw_store_free(&all->pinned);
    hw_store_free(&all->pairs);
    free(all);
}

/* ---- the whole ---- */

static void add_info(struct hw_places_info *to, const struct hw_profile *profile)
{
    const struct hw_places_info *from = &profile->places->info;
    struct hw_heap_parts peak;
    hw_profile_heap_parts(profile->places, HW_MOMENT_PEAK, &peak);
    to->flags |= from->flags;
    const uint64_t end = hw_profile_ticks_to_ns(profile, from->tick);
    hw_keep_greater(&to->tick, end ? end : 1); /* 0 would be: there is nothing */
    const bool merged =
        profile->process.flags & HW_PROCESS_MERGED; /* of one run: also what operations left at its end */
    hw_sum_signed(&to->requested_bytes, merged ? from->requested_bytes : profile->totals.live_bytes);
    hw_sum_signed(&to->peak_blowup_bytes, peak.blowup);
    hw_sum(&to->peak_bytes, from->peak_bytes);
    hw_sum(&to->active_lines, from->active_lines);
    hw_sum(&to->passive_lines, from->passive_lines);
    hw_sum(&to->active_blocks, from->active_blocks);
    hw_sum(&to->passive_blocks, from->passive_blocks);
    hw_sum(&to->unaligned, from->unaligned);
    hw_sum(&to->unseen_frees, from->unseen_frees);
    hw_sum(&to->skipped, from->skipped);
    hw_sum(&to->samples, from->samples);
    hw_sum(&to->line_bytes, from->line_bytes);
    hw_sum(&to->page_bytes, from->page_bytes);
    hw_sum(&to->writes, from->writes);
    hw_sum(&to->contended_word, from->contended_word);
    hw_sum(&to->contended_object, from->contended_object);
    hw_sum(&to->contended_blocks, from->contended_blocks);
    hw_sum(&to->active_writes, from->active_writes);
    hw_sum(&to->active_contended, from->active_contended);
    hw_sum(&to->passive_writes, from->passive_writes);
    hw_sum(&to->passive_contended, from->passive_contended);
    hw_sum(&to->runs, from->runs ? from->runs : 1);
}

/* Of one run a peak counts when the resident heap was read near enough to it. */
static void add_moment(struct hw_merge_places *all, const struct hw_profile *profile, enum hw_memory_moment kind)
{
    const struct hw_profile_places *places = profile->places;
    const struct hw_places_moment *from = hw_profile_places_moment(places, kind);
    struct hw_places_moment *to = &all->moment[kind];
    struct hw_heap_parts parts;
    const bool merged = places->info.runs != 0;
    if (!from || (!merged && !hw_profile_heap_parts(places, kind, &parts)))
        return;
    const uint64_t runs = merged ? from->runs : 1, read = merged ? from->runs_read : parts.measured;
    if (kind == HW_MOMENT_PEAK && !read)
        return;
    to->moment = kind;
    hw_keep_greater(&to->tick, kind == HW_MOMENT_PEAK ? 0 : hw_profile_ticks_to_ns(profile, from->tick));
    hw_sum_signed(&to->requested_bytes, from->requested_bytes);
    hw_sum_signed(&to->internal_bytes, from->internal_bytes);
    hw_sum_signed(&to->blowup_bytes, from->blowup_bytes);
    hw_sum_signed(&to->free_bytes, from->free_bytes);
    hw_sum(&to->absent_requested, from->absent_requested);
    hw_sum(&to->absent_free, from->absent_free);
    hw_sum(&to->resident_bytes, from->resident_bytes);
    hw_sum(&to->elsewhere_bytes, from->elsewhere_bytes);
    hw_sum(&to->runs, runs);
    hw_sum(&to->runs_read, read);
}

static void add_state(struct hw_usable_class_state *to, const struct hw_usable_class_state *from)
{
    hw_sum_signed(&to->live_blocks, from->live_blocks);
    hw_sum_signed(&to->live_bytes, from->live_bytes);
    hw_sum_signed(&to->usable_bytes, from->usable_bytes);
    hw_sum_signed(&to->untouched_bytes, from->untouched_bytes);
    hw_sum_signed(&to->free_blocks, from->free_blocks);
    hw_sum_signed(&to->free_bytes, from->free_bytes);
    hw_sum_signed(&to->most_blocks, from->most_blocks);
    hw_sum_signed(&to->new_blocks, from->new_blocks);
    hw_sum_signed(&to->reused_blocks, from->reused_blocks);
}

static bool add_class(struct hw_merge_places *all, const struct hw_usable_class *from)
{
    bool added;
    const struct hw_key key = {from->usable_least, from->usable_most};
    struct hw_usable_class *to = hw_store_intern(&all->classes, key, &added);
    if (!to)
        return false;
    to->usable_least = from->usable_least;
    to->usable_most = from->usable_most;
    add_state(&to->now, &from->now);
    add_state(&to->peak, &from->peak);
    return true;
}

bool hw_merge_places_admit(struct hw_merge *merge, const struct hw_profile *profile)
{
    const struct hw_profile_places *from = profile->places;
    if (!from)
        return true;
    if (!merge->places) {
        merge->places = calloc(1, sizeof *merge->places);
        if (!merge->places)
            return false;
        merge->places->classes.size = sizeof(struct hw_usable_class);
        merge->places->pinned.size = sizeof(struct hw_pinned);
        merge->places->pairs.size = sizeof(struct hw_line_pair);
    }
    bool fine = true;
    add_info(&merge->places->info, profile);
    for (int kind = 0; kind < MOMENTS; kind++)
        add_moment(merge->places, profile, (enum hw_memory_moment)kind);
    for (size_t i = 0; fine && i < from->class_count; i++)
        fine = add_class(merge->places, &from->classes[i]);
    return fine;
}

/* ---- by call stack ---- */

static bool add_pinned(struct hw_merge_places *all, const struct hw_pinned *from, uint32_t reference)
{
    bool added;
    const struct hw_key key = {reference, from->moment};
    struct hw_pinned *to = hw_store_intern(&all->pinned, key, &added);
    if (!to)
        return false;
    to->context = reference;
    to->moment = from->moment;
    hw_sum(&to->blocks, from->blocks);
    hw_sum(&to->bytes, from->bytes);
    hw_sum(&to->samples, from->samples);
    return true;
}

static bool add_pair(struct hw_merge_places *all, const struct hw_line_pair *from, uint32_t context, uint32_t other)
{
    bool added;
    const struct hw_key key = {context, other};
    struct hw_line_pair *to = hw_store_intern(&all->pairs, key, &added);
    if (!to)
        return false;
    to->context = context;
    to->other = other;
    hw_sum(&to->active, from->active);
    hw_sum(&to->passive, from->passive);
    return true;
}

bool hw_merge_places_add(struct hw_merge *merge, const struct hw_profile *profile, const uint32_t *reference)
{
    const struct hw_profile_places *from = profile->places;
    bool fine = true;
    for (size_t i = 0; from && fine && i < from->pinned_count; i++)
        fine = add_pinned(merge->places, &from->pinned[i], reference[from->pinned[i].context]);
    for (size_t i = 0; from && fine && i < from->pair_count; i++) {
        const struct hw_line_pair *pair = &from->pairs[i];
        fine = add_pair(merge->places, pair, pair->context == HW_NONE ? HW_NONE : reference[pair->context],
                        pair->other == HW_NONE ? HW_NONE : reference[pair->other]);
    }
    return fine;
}

/* ---- the tables ---- */

static int compare_classes(const void *left, const void *right)
{
    const struct hw_usable_class *a = left, *b = right;
    return HW_ORDER(a->usable_most, b->usable_most) ?: HW_ORDER(a->usable_least, b->usable_least);
}

static int compare_pinned(const void *left, const void *right)
{
    const struct hw_pinned *a = left, *b = right;
    return HW_ORDER(a->context, b->context) ?: HW_ORDER(a->moment, b->moment);
}

static int compare_pairs(const void *left, const void *right)
{
    const struct hw_line_pair *a = left, *b = right;
    return HW_ORDER(a->context, b->context) ?: HW_ORDER(a->other, b->other);
}

static uint32_t context_of(const struct hw_merge *merge, uint32_t reference)
{
    return reference == HW_NONE ? HW_NONE : hw_merge_entry_at(merge, reference)->id;
}

bool hw_merge_places_finish(struct hw_merge *merge, struct hw_arena *arena, struct hw_tables *tables)
{
    const struct hw_merge_places *all = merge->places;
    if (!all)
        return true;
    const uint32_t class_count = all->classes.count, pinned_count = all->pinned.count, pair_count = all->pairs.count;
    size_t moment_count = 0;
    for (int kind = 0; kind < MOMENTS; kind++)
        moment_count += all->moment[kind].runs != 0;
    struct hw_places_info *info = hw_table_make(tables, arena, HW_SECTION_PLACES, 1);
    struct hw_usable_class *classes = hw_table_make(tables, arena, HW_SECTION_PLACE_CLASSES, class_count);
    struct hw_places_moment *moments = hw_table_make(tables, arena, HW_SECTION_PLACES_MOMENTS, moment_count);
    struct hw_pinned *pinned = hw_table_make(tables, arena, HW_SECTION_PINNED, pinned_count);
    struct hw_line_pair *pairs = hw_table_make(tables, arena, HW_SECTION_LINE_PAIRS, pair_count);
    if (!info || !classes || !moments || !pinned || !pairs)
        return false;
    *info = all->info;
    for (int kind = 0; kind < MOMENTS; kind++)
        if (all->moment[kind].runs)
            *moments++ = all->moment[kind];
    for (uint32_t i = 0; i < class_count; i++)
        classes[i] = *(struct hw_usable_class *)hw_store_at(&all->classes, i);
    for (uint32_t i = 0; i < pinned_count; i++) {
        pinned[i] = *(struct hw_pinned *)hw_store_at(&all->pinned, i);
        pinned[i].context = context_of(merge, pinned[i].context);
    }
    for (uint32_t i = 0; i < pair_count; i++) {
        pairs[i] = *(struct hw_line_pair *)hw_store_at(&all->pairs, i);
        pairs[i].context = context_of(merge, pairs[i].context);
        pairs[i].other = context_of(merge, pairs[i].other);
    }
    qsort(classes, class_count, sizeof *classes, compare_classes);
    qsort(pinned, pinned_count, sizeof *pinned, compare_pinned);
    qsort(pairs, pair_count, sizeof *pairs, compare_pairs);
    return true;
}
