/* model_keeps.c - who keeps blocks: KEEPERS, KEPT, KEEP_EDGES and KEEP_INFO, checked. */
#include "profile/model/model.h"

static bool are_keepers(const struct hw_profile *profile, const struct hw_table *table)
{
    const struct hw_keeper *keeper = table->entries;
    for (size_t i = 0; i < table->count; i++)
        if ((i && keeper[i].parent >= i) || (!i && keeper[i].parent) || keeper[i].kind >= HW_KEEPER_KINDS ||
            (keeper[i].map != HW_NONE && keeper[i].map >= profile->map_count))
            return false;
    return true;
}

static bool are_kept(const struct hw_profile *profile, const struct hw_table *table, size_t keepers)
{
    const struct hw_kept *kept = table->entries;
    for (size_t i = 0; i < table->count; i++)
        if (kept[i].context >= profile->context_entry_count || kept[i].keeper >= keepers)
            return false;
    return true;
}

static bool are_edges(const struct hw_table *table, size_t keepers, size_t kept)
{
    const struct hw_keep_edge *edge = table->entries;
    for (size_t i = 0; i < table->count; i++)
        if (edge[i].to >= kept || edge[i].from >= (edge[i].flags & HW_KEEP_FROM_KEEPER ? keepers : kept))
            return false;
    return true;
}

void hw_profile_take_keeps(struct hw_profile *profile, const struct hw_tables *tables, struct hw_problems *problems)
{
    const struct hw_table *keepers = &tables->of[HW_SECTION_KEEPERS], *kept = &tables->of[HW_SECTION_KEPT],
                          *edges = &tables->of[HW_SECTION_KEEP_EDGES], *info = &tables->of[HW_SECTION_KEEP_INFO];
    if (!info->count)
        return;
    if (!are_keepers(profile, keepers) || !are_kept(profile, kept, keepers->count) ||
        !are_edges(edges, keepers->count, kept->count)) {
        hw_problem(problems, "The file is damaged: who keeps blocks refers to what is not there.");
        return;
    }
    profile->keep_search = info->entries;
    profile->keepers = keepers->entries;
    profile->keeper_count = keepers->count;
    profile->kept = kept->entries;
    profile->kept_count = kept->count;
    profile->keep_edges = edges->entries;
    profile->keep_edge_count = edges->count;
}
