/* model_sharing.c - who uses lines that threads share: sections ROLES, SIDES and SIDES_LIVE -> the profile. Entries for
 * the same thing are added up; references are checked. */
#include "profile/model/model.h"

#include <stdlib.h>
#include <string.h>

int hw_side_compare(const void *left, const void *right)
{
    const struct hw_side *a = left, *b = right;
    const uint64_t keys[][2] = {{a->context, b->context}, {a->sharing, b->sharing}, {a->kind, b->kind},
                                {a->role, b->role},       {a->map, b->map},         {a->code, b->code},
                                {a->offset, b->offset},   {a->bytes, b->bytes}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

void hw_side_add(struct hw_side *to, const struct hw_side *from)
{
    to->reads = hw_add_saturating(to->reads, from->reads);
    to->writes = hw_add_saturating(to->writes, from->writes);
    to->lines = hw_add_saturating(to->lines, from->lines);
}

size_t hw_sides_join(struct hw_side *sides, size_t count)
{
    size_t kept = 0;
    if (count)
        qsort(sides, count, sizeof *sides, hw_side_compare);
    for (size_t i = 0; i < count; i++) {
        if (kept && hw_side_compare(&sides[kept - 1], &sides[i]) == 0)
            hw_side_add(&sides[kept - 1], &sides[i]);
        else
            sides[kept++] = sides[i];
    }
    return kept;
}

static bool take_roles(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                       struct hw_problems *problems)
{
    const struct hw_table *table = &tables->of[HW_SECTION_ROLES];
    const size_t count = table->count > HW_ROLE_FIRST ? table->count : HW_ROLE_FIRST;
    struct hw_thread_role *roles = hw_arena_allocate(arena, count, sizeof *roles);
    if (!roles)
        return false;
    for (size_t i = 0; i < count; i++) {
        const bool known = i < table->count && !hw_table_missing(table, i);
        if (known)
            roles[i] = ((const struct hw_thread_role *)table->entries)[i];
        if (!known || i < HW_ROLE_FIRST)
            roles[i].map = roles[i].context = HW_NONE;
        if ((roles[i].map != HW_NONE && roles[i].map >= profile->map_count) ||
            (roles[i].context != HW_NONE && roles[i].context >= profile->context_entry_count)) {
            hw_problem(problems, "The roles section is damaged: threads were started by what is not listed.");
            roles[i].map = roles[i].context = HW_NONE;
        }
        if (roles[i].map == HW_NONE)
            roles[i].routine = 0;
    }
    profile->roles = roles;
    profile->role_count = count;
    return true;
}

static bool is_sound(const struct hw_profile *profile, const struct hw_side *side)
{
    return side->context < profile->context_entry_count && side->role < profile->role_count &&
           (side->map == HW_NONE || side->map < profile->map_count) && side->kind >= HW_SIDE_COUNTED &&
           side->kind <= HW_SIDE_SAMPLED && side->sharing >= HW_SHARING_FALSE && side->sharing <= HW_SHARING_UNTOLD;
}

bool hw_profile_take_sharing(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                             struct hw_problems *problems)
{
    static const uint32_t types[] = {HW_SECTION_SIDES, HW_SECTION_SIDES_LIVE};
    struct hw_side *all = hw_arena_allocate(
        arena, tables->of[HW_SECTION_SIDES].count + tables->of[HW_SECTION_SIDES_LIVE].count + 1, sizeof *all);
    size_t count = 0;
    if (!all || !take_roles(profile, arena, tables, problems))
        return false;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        const struct hw_table *table = &tables->of[types[t]];
        const struct hw_side *from = table->entries;
        for (size_t i = 0; i < table->count; i++) {
            if (!(from[i].reads | from[i].writes))
                continue;
            if (!is_sound(profile, &from[i])) {
                hw_problem(problems, "The %s section is damaged: it names what does not exist.",
                           hw_section_rule(types[t])->name);
                continue;
            }
            if (types[t] == HW_SECTION_SIDES_LIVE && hw_profile_freed_since_harvest(profile, from[i].context))
                continue;
            all[count] = from[i];
            all[count].reserved0 = 0;
            if (all[count].map == HW_NONE && all[count].kind == HW_SIDE_COUNTED)
                all[count].code = 0;
            count++;
        }
    }
    profile->sides = all;
    profile->side_count = hw_sides_join(all, count);
    return true;
}
