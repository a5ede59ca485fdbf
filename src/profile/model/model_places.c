/* model_places.c - what lies where: sections PLACES to LINE_PAIRS -> the profile, and the heap of a moment in parts. */
#include "profile/model/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;
    return !__builtin_add_overflow(a, b, &sum) ? sum : a < 0 ? INT64_MIN : INT64_MAX;
}

static int64_t minus(int64_t a, int64_t b)
{
    return plus(a, b == INT64_MIN ? INT64_MAX : -b);
}

static int64_t whole(uint64_t value)
{
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static int compare_classes(const void *left, const void *right)
{
    const struct hw_usable_class *a = left, *b = right;
    return HW_ORDER(a->usable_most, b->usable_most);
}

static int compare_points(const void *left, const void *right)
{
    const struct hw_places_point *a = left, *b = right;
    return HW_ORDER(a->tick, b->tick);
}

static int compare_pinned(const void *left, const void *right)
{
    const struct hw_pinned *a = left, *b = right;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return HW_ORDER(a->context, b->context);
}

static int compare_pairs(const void *left, const void *right)
{
    const struct hw_line_pair *a = left, *b = right;
    const uint64_t blocks_a = hw_add_saturating(a->active, a->passive);
    const uint64_t blocks_b = hw_add_saturating(b->active, b->passive);
    if (blocks_a != blocks_b)
        return blocks_a < blocks_b ? 1 : -1;
    return HW_ORDER(a->context, b->context) ?: HW_ORDER(a->other, b->other);
}

static bool exists(const struct hw_profile *profile, uint32_t context)
{
    return context < profile->context_entry_count;
}

/* A copy of the section's entries; NULL when there is no memory. */
static void *copy(struct hw_arena *arena, const struct hw_table *table, size_t size)
{
    void *all = hw_arena_allocate(arena, table->count + 1, size);
    if (all && table->count)
        memcpy(all, table->entries, table->count * size);
    return all;
}

static enum hw_taken take_pin(const void *profile, void *entry)
{
    return exists(profile, ((const struct hw_pinned *)entry)->context) ? HW_TAKEN : HW_TAKEN_DAMAGED;
}

static enum hw_taken take_pair(const void *profile, void *entry)
{
    const struct hw_line_pair *pair = entry;
    return (exists(profile, pair->context) || pair->context == HW_NONE) &&
                   (exists(profile, pair->other) || pair->other == HW_NONE)
               ? HW_TAKEN
               : HW_TAKEN_DAMAGED;
}

static bool take_contexts(struct hw_profile_places *places, const struct hw_profile *profile, struct hw_arena *arena,
                          const struct hw_tables *tables, struct hw_problems *problems)
{
    static const char damage[] =
        "What is known of places is damaged: some of it belongs to a context that does not exist.";
    places->pinned = hw_profile_take_list(arena, &tables->of[HW_SECTION_PINNED], sizeof *places->pinned, take_pin,
                                          profile, compare_pinned, problems, damage, &places->pinned_count);
    places->pairs = hw_profile_take_list(arena, &tables->of[HW_SECTION_LINE_PAIRS], sizeof *places->pairs, take_pair,
                                         profile, compare_pairs, problems, damage, &places->pair_count);
    return places->pinned && places->pairs;
}

bool hw_profile_take_places(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                            struct hw_problems *problems)
{
    const struct hw_table *info = &tables->of[HW_SECTION_PLACES], *classes = &tables->of[HW_SECTION_PLACE_CLASSES];
    const struct hw_table *points = &tables->of[HW_SECTION_PLACES_TIME];
    const struct hw_table *moments = &tables->of[HW_SECTION_PLACES_MOMENTS];
    if (!info->count || !((const struct hw_places_info *)info->entries)->tick)
        return true;
    struct hw_profile_places *places = hw_arena_allocate(arena, 1, sizeof *places);
    struct hw_usable_class *sizes = copy(arena, classes, sizeof *sizes);
    struct hw_places_point *times = copy(arena, points, sizeof *times);
    struct hw_places_moment *heap = copy(arena, moments, sizeof *heap);
    if (!places || !sizes || !times || !heap)
        return false;
    memcpy(&places->info, info->entries, sizeof places->info);
    qsort(sizes, classes->count, sizeof *sizes, compare_classes);
    qsort(times, points->count, sizeof *times, compare_points);
    places->classes = sizes;
    places->class_count = classes->count;
    places->points = times;
    places->point_count = points->count;
    places->moments = heap;
    places->moment_count = moments->count;
    profile->places = places;
    return take_contexts(places, profile, arena, tables, problems);
}

/* ---- the heap in parts ---- */

const struct hw_places_moment *hw_profile_places_moment(const struct hw_profile_places *places,
                                                        enum hw_memory_moment moment)
{
    const struct hw_places_moment *found = NULL;
    for (size_t i = 0; i < places->moment_count; i++)
        if (places->moments[i].moment == (uint32_t)moment)
            found = &places->moments[i];
    return found;
}

/* Of free blocks those that were not freed recently: docs/places.md. */
static double blowup_of(const struct hw_usable_class_state *state)
{
    const double listed = (double)state->free_blocks, recent = (double)state->most_blocks - (double)state->live_blocks;
    return listed > 0 && listed > recent ? (double)state->free_bytes * (listed - recent) / listed : 0;
}

#define NEAR_PEAK 0.9
/* Blocks that the system may have taken back. */
#define WIDE_LEAST 65536u

static void sum_peak(const struct hw_profile_places *places, const struct hw_places_moment *moment,
                     struct hw_heap_parts *parts)
{
    double blowup = 0, blowup_wide = 0, free_wide = 0;
    for (size_t i = 0; i < places->class_count; i++) {
        const struct hw_usable_class_state *state = &places->classes[i].peak;
        parts->internal =
            plus(parts->internal, minus(minus(state->usable_bytes, state->live_bytes), state->untouched_bytes));
        parts->free_bytes = plus(parts->free_bytes, state->free_bytes);
        blowup += blowup_of(state);
        if (places->classes[i].usable_most > WIDE_LEAST) {
            blowup_wide += blowup_of(state);
            free_wide += (double)state->free_bytes;
        }
    }
    if (moment && moment->absent_free && free_wide > 0) { /* what is not there is no waste */
        const double absent = (double)moment->absent_free / free_wide;
        blowup -= (absent < 1 ? absent : 1) * blowup_wide;
    }
    parts->blowup = blowup > 0x1p62 ? INT64_MAX : (int64_t)blowup;
}

bool hw_profile_heap_parts(const struct hw_profile_places *places, enum hw_memory_moment kind,
                           struct hw_heap_parts *parts)
{
    *parts = (struct hw_heap_parts){0};
    const struct hw_places_moment *moment = places ? hw_profile_places_moment(places, kind) : NULL;
    if (!places || (!moment && kind != HW_MOMENT_PEAK))
        return false;
    if (kind != HW_MOMENT_PEAK && moment->runs != places->info.runs) /* of the others it is not known */
        return false;
    if (moment) {
        parts->measured = moment->resident_bytes != 0 && moment->runs_read == places->info.runs;
        parts->resident = whole(moment->resident_bytes);
        parts->elsewhere = whole(moment->elsewhere_bytes);
        parts->measured_real = moment->requested_bytes;
        parts->absent = whole(moment->absent_requested);
        parts->external =
            minus(minus(minus(parts->resident, minus(moment->requested_bytes, parts->absent)), moment->internal_bytes),
                  moment->blowup_bytes);
    }
    if (kind == HW_MOMENT_PEAK) {
        /* Far below the peak the rest of the heap was another one. */
        parts->measured &= (double)parts->measured_real >= NEAR_PEAK * (double)places->info.peak_bytes;
        parts->real = whole(places->info.peak_bytes);
        parts->tick = places->info.peak_tick;
        sum_peak(places, moment, parts);
        if (places->info.runs)
            parts->blowup = places->info.peak_blowup_bytes;
    } else {
        parts->real = moment->requested_bytes;
        parts->internal = moment->internal_bytes;
        parts->blowup = moment->blowup_bytes;
        parts->free_bytes = moment->free_bytes;
        parts->tick = moment->tick;
    }
    parts->total = plus(plus(minus(parts->real, parts->absent), parts->internal), plus(parts->blowup, parts->external));
    return true;
}
