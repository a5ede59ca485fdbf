/* merge_sharing.c - who uses lines that threads share, in a merge: threads of several processes are of one role when
 * the same routine was started by the same stack. */
#include "profile/merge/merge_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

/* ROLE with a module for its map and a reference for its context, in the merge; HW_NONE when there is no memory. */
static uint32_t add_role(struct hw_merge *merge, const struct hw_merge_input *input, size_t number,
                         const uint32_t *reference)
{
    struct hw_thread_role role = input->profile->roles[number];
    const struct hw_merge_map *map = role.map < input->map_count ? &input->map[role.map] : NULL;
    role.map = map ? map->module : HW_NONE;
    role.routine = map && !map->generated ? role.routine : 0;
    role.context = role.context == HW_NONE ? HW_NONE : reference[role.context];
    const uint32_t origin[3] = {number < HW_ROLE_FIRST ? (uint32_t)number : HW_ROLE_FIRST, role.map, role.context};
    bool added;
    const uint32_t index =
        hw_store_number(&merge->roles, hw_key_of(origin, sizeof origin, &role.routine, sizeof role.routine), &added);
    if (index == HW_NONE)
        return HW_NONE;
    struct hw_thread_role *to = hw_store_at(&merge->roles, index);
    const uint64_t threads = added ? 0 : to->threads;
    if (added)
        *to = role;
    to->threads = hw_add_saturating(threads, role.threads);
    return index;
}

static bool add_side(struct hw_merge *merge, const struct hw_merge_input *input, const struct hw_side *from,
                     const uint32_t *reference, const uint32_t *role)
{
    struct hw_side side = *from;
    const struct hw_merge_map *map = side.map < input->map_count ? &input->map[side.map] : NULL;
    side.context = reference[side.context];
    side.role = role[side.role];
    side.map = map ? map->module : HW_NONE;
    side.code = map && !map->generated ? side.code : 0;
    side.reads = side.writes = side.lines = 0;
    bool added;
    struct hw_side *to =
        hw_store_intern(&merge->sides, hw_key_of("s", 1, &side, offsetof(struct hw_side, reads)), &added);
    if (!to)
        return false;
    if (added)
        *to = side;
    hw_side_add(to, from);
    return true;
}

bool hw_merge_sharing_add(struct hw_merge *merge, const struct hw_merge_input *input, const uint32_t *reference)
{
    const struct hw_profile *profile = input->profile;
    uint32_t *role = malloc((profile->role_count + 1) * sizeof *role);
    bool fine = role != NULL;
    for (size_t i = 0; fine && i < profile->role_count; i++)
        fine = (role[i] = add_role(merge, input, i, reference)) != HW_NONE;
    for (size_t i = 0; fine && i < profile->side_count; i++)
        fine = add_side(merge, input, &profile->sides[i], reference, role);
    free(role);
    return fine;
}

/* ---- the tables ---- */

/* Those that are always there come first: they have neither routine nor context, and are made first. */
static int compare_roles(const void *left, const void *right, void *closure)
{
    const struct hw_merge *merge = closure;
    const uint32_t one = *(const uint32_t *)left, other = *(const uint32_t *)right;
    const struct hw_thread_role *a = hw_store_at(&merge->roles, one), *b = hw_store_at(&merge->roles, other);
    if (one < HW_ROLE_FIRST || other < HW_ROLE_FIRST)
        return HW_ORDER(one, other);
    const uint32_t ranks[2] = {hw_merge_rank(merge, a->map), hw_merge_rank(merge, b->map)};
    if (ranks[0] != ranks[1])
        return ranks[0] < ranks[1] ? -1 : 1;
    if (a->routine != b->routine)
        return a->routine < b->routine ? -1 : 1;
    const uint32_t ids[2] = {a->context == HW_NONE ? HW_NONE : hw_merge_entry_at(merge, a->context)->id,
                             b->context == HW_NONE ? HW_NONE : hw_merge_entry_at(merge, b->context)->id};
    return HW_ORDER(ids[0], ids[1]);
}

bool hw_merge_sharing_finish(struct hw_merge *merge, struct hw_arena *arena, struct hw_tables *tables)
{
    const uint32_t count = merge->roles.count;
    /* The starts of threads are of use only where it is known what threads share. */
    if (merge->class != HW_MERGE_OWN || (!merge->access_counted && !merge->sampled))
        return true;
    uint32_t *order = malloc(((size_t)count + 1) * sizeof *order), *place = malloc(((size_t)count + 1) * sizeof *place);
    struct hw_thread_role *roles = hw_table_make(tables, arena, HW_SECTION_ROLES, count);
    struct hw_side *sides = hw_table_make(tables, arena, HW_SECTION_SIDES, merge->sides.count);
    const bool fine = order && place && roles && sides;
    for (uint32_t i = 0; fine && i < count; i++)
        order[i] = i;
    if (fine)
        qsort_r(order, count, sizeof *order, compare_roles, merge);
    for (uint32_t i = 0; fine && i < count; i++) {
        roles[i] = *(struct hw_thread_role *)hw_store_at(&merge->roles, order[i]);
        roles[i].map = hw_merge_rank(merge, roles[i].map);
        if (roles[i].context != HW_NONE)
            roles[i].context = hw_merge_entry_at(merge, roles[i].context)->id;
        place[order[i]] = i;
    }
    for (uint32_t i = 0; fine && i < merge->sides.count; i++) {
        sides[i] = *(struct hw_side *)hw_store_at(&merge->sides, i);
        sides[i].context = hw_merge_entry_at(merge, sides[i].context)->id;
        sides[i].role = place[sides[i].role];
        sides[i].map = hw_merge_rank(merge, sides[i].map);
    }
    if (fine)
        qsort(sides, merge->sides.count, sizeof *sides, hw_side_compare);
    free(order);
    free(place);
    return fine;
}
