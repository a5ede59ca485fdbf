/* model_pins.c - the live heap page by page: HEAP_PAGES, PINS, OCCUPANCY and PAGE_GROUPS, checked. */
#include "profile/model/model.h"

static bool are_pins(const struct hw_profile *profile, const struct hw_table *table)
{
    const struct hw_pin *pin = table->entries;
    for (size_t i = 0; i < table->count; i++)
        if (pin[i].context >= profile->context_entry_count)
            return false;
    return true;
}

static bool are_pieces(const struct hw_table *table)
{
    const struct hw_occupancy *in = table->entries;
    for (size_t i = 0; i < table->count; i++)
        if (in[i].unit >= HW_PIECE_UNITS || in[i].tenths > 10)
            return false;
    return true;
}

static bool are_groups(const struct hw_profile *profile, const struct hw_table *table)
{
    const struct hw_page_group *group = table->entries;
    for (size_t i = 0; i < table->count; i++)
        for (size_t n = 0; n < HW_PAGE_GROUP_CONTEXTS; n++)
            if (group[i].contexts[n] != HW_NONE && group[i].contexts[n] >= profile->context_entry_count)
                return false;
    return true;
}

void hw_profile_take_pins(struct hw_profile *profile, const struct hw_tables *tables, struct hw_problems *problems)
{
    const struct hw_table *info = &tables->of[HW_SECTION_HEAP_PAGES], *pins = &tables->of[HW_SECTION_PINS],
                          *pieces = &tables->of[HW_SECTION_OCCUPANCY], *groups = &tables->of[HW_SECTION_PAGE_GROUPS];
    if (!info->count)
        return;
    if (!are_pins(profile, pins) || !are_pieces(pieces) || !are_groups(profile, groups)) {
        hw_problem(problems, "The file is damaged: what keeps pages refers to what is not there.");
        return;
    }
    profile->heap_pages = info->entries;
    profile->pins = pins->entries;
    profile->pin_count = pins->count;
    profile->occupancy = pieces->entries;
    profile->occupancy_count = pieces->count;
    profile->page_groups = groups->entries;
    profile->page_group_count = groups->count;
}
