/* view_sides.c - who uses lines that threads share: roles of threads and what they do, for the contexts of a view. */
#include "report/view/view.h"

#include <stdlib.h>

#include "base/order.h"

/* ---- code that is in no stack ---- */

bool hw_view_adder_make(struct hw_view_adder *adder, struct hw_view *view, const uint32_t *module_of, size_t most)
{
    *adder = (struct hw_view_adder){.view = view, .module_of = module_of};
    const size_t room = view->location_count + most;
    struct hw_view_location *locations = realloc(view->locations, (room + 1) * sizeof *locations);
    if (!locations)
        return false;
    view->locations = locations;
    if (!hw_index_make(&adder->known, room))
        return false;
    bool new;
    for (size_t i = 0; i < view->location_count; i++)
        hw_index_intern(&adder->known, (struct hw_key){locations[i].address, locations[i].module}, (uint32_t)i, &new);
    return true;
}

uint32_t hw_view_adder_add(struct hw_view_adder *adder, uint32_t map, uint64_t offset)
{
    struct hw_view *view = adder->view;
    const uint32_t module = map < view->profile->map_count ? adder->module_of[map] : HW_NONE;
    const bool generated = module != HW_NONE && view->modules[module].kind == HW_MODULE_GENERATED;
    const uint64_t address = generated ? offset + view->profile->maps[map].bias : offset;
    bool new;
    const uint32_t location =
        hw_index_intern(&adder->known, (struct hw_key){address, module}, (uint32_t)view->location_count, &new);
    if (new)
        view->locations[view->location_count++] = (struct hw_view_location){.address = address, .module = module};
    return location;
}

void hw_view_adder_free(struct hw_view_adder *adder)
{
    hw_index_free(&adder->known);
}

/* ---- sides ---- */

static uint32_t leaf_of(const struct hw_profile *profile, const uint32_t *canonical, uint32_t context)
{
    const uint32_t leaf = context < profile->context_entry_count ? profile->context_entries[context].leaf : 0;
    return leaf < profile->node_count ? canonical[leaf] : 0;
}

bool hw_view_make_sides(struct hw_view *view, const uint32_t *canonical, const uint32_t *module_of,
                        const uint32_t *context_of, size_t ids)
{
    const struct hw_profile *profile = view->profile;
    struct hw_view_adder adder;
    if (!profile->side_count)
        return true;
    view->roles = calloc(profile->role_count + 1, sizeof *view->roles);
    view->sides = malloc((profile->side_count + 1) * sizeof *view->sides);
    bool done = view->roles && view->sides &&
                hw_view_adder_make(&adder, view, module_of, profile->role_count + profile->side_count);
    if (!done)
        return false;
    for (size_t i = 0; i < profile->role_count; i++) {
        const struct hw_thread_role *from = &profile->roles[i];
        view->roles[i] = (struct hw_view_role){
            .routine = from->map == HW_NONE ? HW_NONE : hw_view_adder_add(&adder, from->map, from->routine),
            .leaf = leaf_of(profile, canonical, from->context),
            .threads = from->threads};
    }
    view->role_count = profile->role_count;
    for (size_t i = 0; i < profile->side_count; i++) {
        struct hw_side side = profile->sides[i];
        if (side.context >= ids || context_of[side.context] == HW_NONE)
            continue;
        side.context = context_of[side.context];
        side.map = side.kind == HW_SIDE_SAMPLED ? hw_view_adder_add(&adder, side.map, side.code) : HW_NONE;
        side.code = 0;
        view->sides[view->side_count++] = side;
    }
    hw_view_adder_free(&adder);
    view->side_count = hw_sides_join(view->sides, view->side_count);
    return true;
}

static int compare_sides(const void *left, const void *right)
{
    const struct hw_view_side *a = left, *b = right;
    return HW_ORDER(a->entries->sharing, b->entries->sharing) ?: HW_ORDER(b->writes, a->writes) ?:
           HW_ORDER(b->reads, a->reads) ?: HW_ORDER(a->entries, b->entries);
}

static void add_entry(struct hw_view_side *side, const struct hw_side *entry)
{
    const uint64_t end = hw_add_saturating(entry->offset, entry->bytes);
    side->count++;
    side->reads = hw_add_saturating(side->reads, entry->reads);
    side->writes = hw_add_saturating(side->writes, entry->writes);
    side->lines = entry->lines > side->lines ? entry->lines : side->lines;
    side->first_byte = entry->offset < side->first_byte ? entry->offset : side->first_byte;
    side->end_byte = end > side->end_byte ? end : side->end_byte;
}

size_t hw_view_sides(const struct hw_view *view, size_t context, enum hw_side_sharing sharing,
                     struct hw_view_side *sides, size_t capacity)
{
    const struct hw_side key = {.context = (uint32_t)context};
    size_t low = 0, high = view->side_count, count = 0;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (hw_side_compare(&view->sides[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (const struct hw_side *last = NULL; low < view->side_count && view->sides[low].context == context; low++) {
        const struct hw_side *entry = &view->sides[low];
        if (sharing && entry->sharing != sharing)
            continue;
        if (!last || last->sharing != entry->sharing || last->kind != entry->kind || last->role != entry->role) {
            if (count == capacity)
                break;
            sides[count++] = (struct hw_view_side){.entries = entry, .first_byte = UINT64_MAX};
        }
        last = entry;
        add_entry(&sides[count - 1], entry);
    }
    qsort(sides, count, sizeof *sides, compare_sides);
    return count;
}
