/* allocator.c - what was observed of the allocator itself: sections ALLOCATOR_INFO and those that follow it -> the
 * profile. Slots of threads are added up. */
#include "profile/container.h"

#include <string.h>

/* Where nothing better is known of the allocator: glibc's threshold of mmap. */
#define LARGE_USUALLY (128u << 10)

static void take_info(struct hw_profile_allocator *allocator, const struct hw_tables *tables,
                      struct hw_problems *problems)
{
    const struct hw_table *table = &tables->of[HW_SECTION_ALLOCATOR_INFO];
    if (table->count)
        memcpy(&allocator->info, table->entries, sizeof allocator->info);
    else
        hw_problem(problems, "The section that says how the allocator was observed is missing.");
}

static void take_counts(struct hw_profile_allocator *allocator, const struct hw_table *table)
{
    const struct hw_operation_counts *entry = table->entries;
    for (size_t i = 0; i < table->count; i++)
        for (int phase = 0; phase < HW_PHASES; phase++)
            for (int kind = 0; kind < HW_OPERATION_KINDS; kind++) {
                struct hw_profile_operation *sum = &allocator->operations[phase][kind][i % HW_SIZE_BUCKETS];
                sum->count = hw_add_saturating(sum->count, entry[i].count[phase][kind]);
            }
}

bool hw_profile_take_allocator(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                               struct hw_problems *problems)
{
    if (profile->process.mode != HW_MODE_ALLOCATOR && !tables->of[HW_SECTION_ALLOCATOR_INFO].count)
        return true;
    struct hw_profile_allocator *allocator = hw_arena_allocate(arena, 1, sizeof *allocator);
    if (!allocator)
        return false;
    profile->observed = allocator;
    allocator->large_least = LARGE_USUALLY;
    take_info(allocator, tables, problems);
    take_counts(allocator, &tables->of[HW_SECTION_OPERATION_COUNTS]);
    return hw_profile_take_facts(allocator, arena, tables, problems) &&
           hw_profile_take_inside(&allocator->inside, profile, arena, tables);
}

enum hw_size_group hw_profile_size_group(const struct hw_profile_allocator *allocator, uint32_t bucket)
{
    if (bucket == HW_SIZE_BUCKET_UNKNOWN)
        return HW_SIZE_NOT_KNOWN;
    /* A bucket belongs to where its smallest size does: thresholds lie at its begin, or a little inside. */
    const uint64_t least = hw_size_bucket_least(bucket);
    return least >= allocator->large_least                               ? HW_SIZE_LARGE
           : allocator->medium_least && least >= allocator->medium_least ? HW_SIZE_MEDIUM
                                                                         : HW_SIZE_SMALL;
}

void hw_profile_operation_add(struct hw_profile_operation *to, const struct hw_profile_operation *from)
{
    to->count = hw_add_saturating(to->count, from->count);
}
