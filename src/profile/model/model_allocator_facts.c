/* model_allocator_facts.c - how the allocator of the run works, and what others would do: sections ALLOCATOR_FACTS,
 * SIZE_CLASSES and PREDICTIONS -> the profile. Texts are terminated here, whatever is in the file. */
#include "profile/model/model.h"

#include <string.h>

/* Bytes that end a line or a terminal's sequence have no place in what is shown. */
static void clean(char *text, size_t size)
{
    text[size - 1] = '\0';
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            *at = '?';
}

static bool take_classes(struct hw_profile_allocator *allocator, struct hw_arena *arena, const struct hw_table *table,
                         struct hw_problems *problems)
{
    struct hw_size_class *classes = hw_arena_allocate(arena, table->count + 1, sizeof *classes);
    if (!classes)
        return false;
    const struct hw_size_class *from = table->entries;
    bool lost = false;
    for (size_t i = 0; i < table->count; i++) {
        const size_t count = allocator->class_count;
        if (from[i].size && (count == 0 || classes[count - 1].size < from[i].size))
            classes[allocator->class_count++] = from[i];
        else
            lost = true;
    }
    if (lost)
        hw_problem(problems, "Size classes of the allocator that are not in order are left out.");
    allocator->classes = classes;
    return true;
}

static bool take_predictions(struct hw_profile_allocator *allocator, struct hw_arena *arena,
                             const struct hw_table *table)
{
    struct hw_allocator_prediction *predictions = hw_arena_allocate(arena, table->count + 1, sizeof *predictions);
    if (!predictions)
        return false;
    if (table->count)
        memcpy(predictions, table->entries, table->count * sizeof *predictions);
    for (size_t i = 0; i < table->count; i++) {
        clean(predictions[i].allocator, sizeof predictions[i].allocator);
        clean(predictions[i].version, sizeof predictions[i].version);
        clean(predictions[i].problem, sizeof predictions[i].problem);
    }
    allocator->predictions = predictions;
    allocator->prediction_count = table->count;
    return true;
}

bool hw_profile_take_facts(struct hw_profile_allocator *allocator, struct hw_arena *arena,
                           const struct hw_tables *tables, struct hw_problems *problems)
{
    const struct hw_table *table = &tables->of[HW_SECTION_ALLOCATOR_FACTS];
    if (table->count) {
        struct hw_allocator_facts *facts = &allocator->facts;
        memcpy(facts, table->entries, sizeof *facts);
        clean(facts->name, sizeof facts->name);
        clean(facts->version, sizeof facts->version);
        clean(facts->build_id, sizeof facts->build_id);
        clean(facts->why, sizeof facts->why);
        if (facts->style > HW_STYLE_BIBOP)
            facts->style = HW_STYLE_UNKNOWN;
        if (facts->reuse > HW_REUSE_DEFERRED)
            facts->reuse = HW_REUSE_UNKNOWN;
        if (facts->thread_cache > HW_CACHE_OWNING)
            facts->thread_cache = HW_CACHE_UNKNOWN;
        allocator->facts_known = true;
        if (facts->flags & (HW_FACTS_PROBED | HW_FACTS_TOLD)) {
            allocator->medium_least = facts->medium;
            allocator->large_least = facts->large ? facts->large : UINT64_MAX;
        }
    }
    return take_classes(allocator, arena, &tables->of[HW_SECTION_SIZE_CLASSES], problems) &&
           take_predictions(allocator, arena, &tables->of[HW_SECTION_PREDICTIONS]);
}
