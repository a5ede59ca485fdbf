/* model_samples.c - sampled accesses: sections SAMPLE_INFO to SAMPLE_COUNTS -> the profile. Entries for the same thing
 * are added up; references are checked. */
#include "profile/model/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

static int compare_contexts(const void *left, const void *right)
{
    const struct hw_sample_context *a = left, *b = right;
    return HW_ORDER(a->context, b->context);
}

int hw_sample_count_compare(const struct hw_sample_count *a, const struct hw_sample_count *b)
{
    return HW_ORDER(a->kind, b->kind) ?: HW_ORDER(a->context, b->context) ?: HW_ORDER(a->map, b->map) ?:
           HW_ORDER(a->offset, b->offset) ?: HW_ORDER(a->bytes, b->bytes);
}

static int compare_counts(const void *left, const void *right)
{
    return hw_sample_count_compare(left, right);
}

void hw_sample_context_add(struct hw_sample_context *to, const struct hw_sample_context *from)
{
    to->reads = hw_add_saturating(to->reads, from->reads);
    to->writes = hw_add_saturating(to->writes, from->writes);
    to->lines = hw_add_saturating(to->lines, from->lines);
    to->lines_shared = hw_add_saturating(to->lines_shared, from->lines_shared);
    to->lines_true_shared = hw_add_saturating(to->lines_true_shared, from->lines_true_shared);
    to->lines_false_shared = hw_add_saturating(to->lines_false_shared, from->lines_false_shared);
    to->lines_writers = hw_add_saturating(to->lines_writers, from->lines_writers);
}

static bool take_contexts(struct hw_profile *profile, struct hw_arena *arena, const struct hw_table *table,
                          struct hw_problems *problems)
{
    const struct hw_sample_context *from = table->entries;
    struct hw_sample_context *all = hw_arena_allocate(arena, table->count + 1, sizeof *all);
    size_t kept = 0;
    if (!all)
        return false;
    for (size_t i = 0; i < table->count; i++) {
        if (from[i].context >= profile->context_entry_count)
            hw_problem(problems, "The samples of accesses are damaged: some belong to a context that does not exist.");
        else if (from[i].reads || from[i].writes)
            all[kept++] = from[i];
    }
    qsort(all, kept, sizeof *all, compare_contexts);
    profile->sample_contexts = all;
    for (size_t i = 0; i < kept; i++) {
        struct hw_sample_context *last = profile->sample_context_count ? &all[profile->sample_context_count - 1] : NULL;
        if (last && last->context == all[i].context)
            hw_sample_context_add(last, &all[i]);
        else
            all[profile->sample_context_count++] = all[i];
    }
    return true;
}

static bool is_sound(const struct hw_profile *profile, const struct hw_sample_count *count)
{
    const bool map = count->map < profile->map_count || count->map == HW_NONE;
    if (count->kind == HW_SAMPLE_GLOBAL)
        return map;
    return (count->kind == HW_SAMPLE_WORD || count->kind == HW_SAMPLE_PLACE) &&
           count->context < profile->context_entry_count && map;
}

/* Data of modules in the form in which counted data comes. */
static bool take_globals(struct hw_profile *profile, struct hw_arena *arena)
{
    size_t first = 0;
    while (first < profile->sample_count_count && profile->sample_counts[first].kind != HW_SAMPLE_GLOBAL)
        first++;
    const size_t count = profile->sample_count_count - first;
    struct hw_global_granule *all = hw_arena_allocate(arena, count + 1, sizeof *all);
    if (!all)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct hw_sample_count *from = &profile->sample_counts[first + i];
        all[i] = (struct hw_global_granule){
            .map = from->map, .offset = from->offset, .reads = from->reads, .writes = from->writes};
    }
    profile->sampled_globals = all;
    profile->sampled_global_count = count;
    profile->sample_count_count = first;
    return true;
}

static bool take_counts(struct hw_profile *profile, struct hw_arena *arena, const struct hw_table *table,
                        struct hw_problems *problems)
{
    const struct hw_sample_count *from = table->entries;
    struct hw_sample_count *all = hw_arena_allocate(arena, table->count + 1, sizeof *all);
    size_t kept = 0;
    if (!all)
        return false;
    for (size_t i = 0; i < table->count; i++) {
        if (!is_sound(profile, &from[i]))
            hw_problem(problems, "The samples of accesses are damaged: some lie in unknown memory.");
        else if (from[i].reads || from[i].writes)
            all[kept++] = from[i];
    }
    for (size_t i = 0; i < kept; i++) {
        if (all[i].kind == HW_SAMPLE_WORD)
            all[i].map = HW_NONE;
        else if (all[i].kind == HW_SAMPLE_GLOBAL)
            all[i].context = HW_NONE;
    }
    qsort(all, kept, sizeof *all, compare_counts);
    profile->sample_counts = all;
    for (size_t i = 0; i < kept; i++) {
        struct hw_sample_count *last = profile->sample_count_count ? &all[profile->sample_count_count - 1] : NULL;
        if (last && hw_sample_count_compare(last, &all[i]) == 0) {
            last->reads = hw_add_saturating(last->reads, all[i].reads);
            last->writes = hw_add_saturating(last->writes, all[i].writes);
        } else {
            all[profile->sample_count_count++] = all[i];
        }
    }
    return take_globals(profile, arena);
}

static bool take_accesses(struct hw_profile *profile, struct hw_arena *arena, const struct hw_table *table,
                          struct hw_problems *problems)
{
    const struct hw_sample_access *from = table->entries;
    struct hw_sample_access *all = hw_arena_allocate(arena, table->count + 1, sizeof *all);
    if (!all)
        return false;
    profile->sample_accesses = all;
    for (uint64_t i = profile->sample_info.accesses_from; i < table->count; i++) {
        if (from[i].context >= profile->context_entry_count ||
            (from[i].map >= profile->map_count && from[i].map != HW_NONE))
            hw_problem(problems, "The samples of accesses are damaged: some belong to unknown blocks or code.");
        else if (from[i].burst)
            all[profile->sample_access_count++] = from[i];
    }
    return true;
}

bool hw_profile_take_samples(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                             struct hw_problems *problems)
{
    const struct hw_table *info = &tables->of[HW_SECTION_SAMPLE_INFO];
    if (!info->count)
        return true;
    profile->accesses_sampled = true;
    memcpy(&profile->sample_info, info->entries, sizeof profile->sample_info);
    return take_contexts(profile, arena, &tables->of[HW_SECTION_SAMPLE_CONTEXTS], problems) &&
           take_counts(profile, arena, &tables->of[HW_SECTION_SAMPLE_COUNTS], problems) &&
           take_accesses(profile, arena, &tables->of[HW_SECTION_SAMPLE_ACCESSES], problems);
}
