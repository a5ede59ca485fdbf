/* call_walk.c - see call_walk.h. */
#include "report/view/call_walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "report/view/frame_roles.h"

/* ---- groups of frames ---- */

/* Equal keys mean the same group. */
struct hw_key hw_call_group_key(const struct hw_view *view, const struct hw_view_location *location,
                                const struct hw_frame *symbol, enum hw_by by)
{
    const struct hw_key module = {location->module, (uint64_t)1 << 63};
    if (by == HW_BY_MODULE)
        return module;
    if (by == HW_BY_FUNCTION)
        return hw_view_function_key(view, location, symbol);
    if (!symbol->file)
        return module;
    const uint32_t line = by == HW_BY_LINE ? symbol->line : 0;
    return hw_key_of(symbol->file, strlen(symbol->file), &line, sizeof line);
}

static bool number_frames(struct hw_call_walk *walk, enum hw_by by)
{
    const struct hw_view *view = walk->view;
    struct hw_index index = {0};
    size_t count = 0;
    walk->offset = malloc((view->location_count + 1) * sizeof *walk->offset);
    if (!walk->offset)
        return false;
    for (size_t i = 0; i < view->location_count; i++) {
        walk->offset[i] = count;
        count += view->locations[i].frames.count;
    }
    walk->group = malloc((count + 1) * sizeof *walk->group);
    walk->known = malloc((count + 1) * sizeof *walk->known);
    if (!walk->group || !walk->known || !hw_index_make(&index, count))
        return false;
    for (size_t i = 0; i < view->location_count; i++) {
        const struct hw_view_location *location = &view->locations[i];
        for (uint32_t k = 0; k < location->frames.count; k++) {
            bool new;
            const struct hw_key key = hw_call_group_key(view, location, &location->frames.frame[k], by);
            const uint32_t group = hw_index_intern(&index, key, (uint32_t)walk->known_count, &new);
            walk->group[walk->offset[i] + k] = group;
            if (new)
                walk->known[walk->known_count++] = (struct hw_group){.location = (uint32_t)i, .frame = k};
        }
    }
    hw_index_free(&index);
    return true;
}

/* ---- where contexts stand ---- */

/* The frames that count of a loaded stack: from its headline to the code that starts the thread. */
struct extent {
    size_t headline, end;
};

static struct extent extent_of(const struct hw_view_stack *stack, bool full)
{
    if (full)
        return (struct extent){0, stack->count};
    const size_t headline = hw_stack_headline(stack), end = hw_stack_without_start(stack);
    return (struct extent){headline, end > headline ? end : headline + 1};
}

/* Marks the nodes of LEAF's stack: the headline's gets VALUE. */
static void mark(struct hw_call_walk *walk, uint32_t leaf, struct extent extent, uint64_t value)
{
    size_t at = 0; /* of the node's innermost frame in the stack */
    for (uint32_t node = leaf; node; node = walk->view->nodes[node].parent) {
        const uint32_t count = walk->view->locations[walk->view->nodes[node].location].frames.count;
        if (extent.headline >= at && extent.headline < at + count) {
            walk->place[node] = (uint32_t)(extent.headline - at);
            walk->own[node] = hw_add_saturating(walk->own[node], value);
        }
        at += count;
        const size_t start = at > extent.end ? at - extent.end : 0, most = start < count ? start : count;
        if (most > walk->start[node])
            walk->start[node] = (uint32_t)most;
    }
}

static bool mark_contexts(struct hw_call_walk *walk, enum hw_measure_id measure, bool full)
{
    const struct hw_view *view = walk->view;
    struct hw_view_stack stack = {0};
    bool fine = true;
    for (size_t i = 0; i < view->context_count && fine; i++) {
        const uint32_t leaf = view->contexts[i].sum.leaf;
        const uint64_t value = hw_measure_value(view, measure, &view->contexts[i]);
        if (!value)
            continue;
        walk->total = hw_add_saturating(walk->total, value);
        fine = hw_view_stack(view, leaf, &stack);
        if (fine && stack.count)
            mark(walk, leaf, extent_of(&stack, full), value);
        else
            walk->none = hw_add_saturating(walk->none, value);
    }
    hw_view_stack_free(&stack);
    return fine;
}

void hw_call_walk_free(struct hw_call_walk *walk)
{
    free(walk->offset);
    free(walk->group);
    free(walk->known);
    free(walk->first);
    free(walk->next);
    free(walk->own);
    free(walk->place);
    free(walk->start);
}

bool hw_call_walk_make(struct hw_call_walk *walk, const struct hw_view *view, enum hw_by by, enum hw_measure_id measure,
                       bool full)
{
    const size_t nodes = view->node_count + 1;
    *walk = (struct hw_call_walk){.view = view,
                                  .first = calloc(nodes, sizeof *walk->first),
                                  .next = calloc(nodes, sizeof *walk->next),
                                  .own = calloc(nodes, sizeof *walk->own),
                                  .place = malloc(nodes * sizeof *walk->place),
                                  .start = calloc(nodes, sizeof *walk->start)};
    if (!walk->first || !walk->next || !walk->own || !walk->place || !walk->start)
        return false;
    for (size_t i = 0; i < nodes; i++)
        walk->place[i] = HW_NONE;
    for (size_t i = view->node_count; i-- > 1;) {
        const uint32_t parent = view->nodes[i].parent;
        walk->next[i] = walk->first[parent];
        walk->first[parent] = (uint32_t)i;
    }
    return number_frames(walk, by) && mark_contexts(walk, measure, full);
}

/* ---- the walk ---- */

/* The groups of a node's frames, and how many of them count where other frames are called. */
static const uint32_t *groups_of(const struct hw_call_walk *walk, uint32_t node, uint32_t *count)
{
    const uint32_t location = walk->view->nodes[node].location;
    *count = walk->view->locations[location].frames.count - walk->start[node];
    return walk->group + walk->offset[location];
}

static void enter_node(const struct hw_call_walk *walk, uint32_t node, const struct hw_call_visitor *visitor,
                       void *closure)
{
    uint32_t count;
    const uint32_t *group = groups_of(walk, node, &count), place = walk->place[node];
    if (place != HW_NONE && place >= count) { /* start code that allocates by itself */
        visitor->enter(closure, group[place]);
        visitor->own(closure, group[place], walk->own[node]);
        visitor->leave(closure, group[place]);
    }
    for (uint32_t i = count; i-- > 0;) {
        visitor->enter(closure, group[i]);
        if (i == place)
            visitor->own(closure, group[i], walk->own[node]);
    }
}

static void leave_node(const struct hw_call_walk *walk, uint32_t node, const struct hw_call_visitor *visitor,
                       void *closure)
{
    uint32_t count;
    const uint32_t *group = groups_of(walk, node, &count);
    for (uint32_t i = 0; i < count; i++)
        visitor->leave(closure, group[i]);
}

void hw_call_walk_visit(const struct hw_call_walk *walk, const struct hw_call_visitor *visitor, void *closure)
{
    for (uint32_t node = walk->first[0]; node;) {
        enter_node(walk, node, visitor, closure);
        if (walk->first[node]) {
            node = walk->first[node];
            continue;
        }
        while (node) {
            leave_node(walk, node, visitor, closure);
            if (walk->next[node]) {
                node = walk->next[node];
                break;
            }
            node = walk->view->nodes[node].parent;
        }
    }
}
