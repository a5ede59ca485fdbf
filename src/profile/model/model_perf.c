/* model_perf.c - samples of perf: PERF_INFO, PERF_COUNTS and PERF_SIDES, checked. */
#include "profile/model/model.h"

static bool are_counts(const struct hw_profile *profile, const struct hw_table *table)
{
    const struct hw_perf_count *count = table->entries;
    for (size_t i = 0; i < table->count; i++)
        if (count[i].scope >= HW_PERF_SCOPES ||
            (count[i].scope >= HW_PERF_PLACE && count[i].context >= profile->context_entry_count))
            return false;
    return true;
}

static bool are_sides(const struct hw_profile *profile, const struct hw_table *table)
{
    const struct hw_perf_side *side = table->entries;
    for (size_t i = 0; i < table->count; i++)
        if ((side[i].context != HW_NONE && side[i].context >= profile->context_entry_count) ||
            (i && side[i].line < side[i - 1].line))
            return false;
    return true;
}

void hw_profile_take_perf(struct hw_profile *profile, const struct hw_tables *tables, struct hw_problems *problems)
{
    const struct hw_table *info = &tables->of[HW_SECTION_PERF_INFO], *counts = &tables->of[HW_SECTION_PERF_COUNTS],
                          *sides = &tables->of[HW_SECTION_PERF_SIDES];
    if (!info->count)
        return;
    if (!are_counts(profile, counts) || !are_sides(profile, sides)) {
        hw_problem(problems, "The file is damaged: samples of perf refer to what is not there.");
        return;
    }
    profile->perf = info->entries;
    profile->perf_counts = counts->entries;
    profile->perf_count = counts->count;
    profile->perf_sides = sides->entries;
    profile->perf_side_count = sides->count;
}
