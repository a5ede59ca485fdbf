/* cut.c - takes frames out of the stacks of a view: those that the rules hide, and, for exports, folded wrappers.
 *
 * Works on the tree of calls: a node whose frames are all hidden is passed by, nodes that become the same are one.
 * Nodes and locations keep their numbers; those that no stack leads through any more stay in the arrays. A stack of
 * which every frame is hidden keeps its outermost one: it is not an unknown stack. */
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "report/view/frame_roles.h"
#include "report/view/rules.h"

struct hw_view_cut {
    struct hw_frame *frames; /* of locations that have lost some */
    uint8_t *roles;          /* of `frames` */
};

void hw_view_free_cut(struct hw_view *view)
{
    if (!view->cut)
        return;
    free(view->cut->frames);
    free(view->cut->roles);
    free(view->cut);
}

/* ---- hidden frames ---- */

static size_t shown_frames(const struct hw_view_location *location)
{
    size_t count = 0;
    for (uint32_t i = 0; i < location->frames.count; i++)
        count += !(hw_location_role(location, i) & HW_FRAME_HIDDEN);
    return count;
}

/* Leaves locations the frames that are shown; those without any keep theirs. HIDDEN (by location) says which they are,
 * TOUCHED which have lost frames. */
static bool hide_frames(struct hw_view *view, bool *hidden, bool *touched)
{
    size_t count = 0;
    for (size_t i = 0; i < view->location_count; i++) {
        const struct hw_view_location *location = &view->locations[i];
        const size_t shown = shown_frames(location);
        hidden[i] = !shown;
        touched[i] = shown < location->frames.count;
        count += touched[i] ? shown : 0;
    }
    struct hw_frame *frames = view->cut->frames = malloc((count + 1) * sizeof *frames);
    uint8_t *roles = view->cut->roles = malloc(count + 1);
    if (!frames || !roles)
        return false;
    for (size_t i = 0; i < view->location_count; i++) {
        struct hw_view_location *location = &view->locations[i];
        if (!touched[i] || hidden[i])
            continue;
        struct hw_view_location less = {.frames = {frames, 0}, .roles = roles};
        for (uint32_t k = 0; k < location->frames.count; k++)
            if (!(location->roles[k] & HW_FRAME_HIDDEN)) {
                *frames++ = location->frames.frame[k];
                *roles++ = location->roles[k];
                less.frames.count++;
            }
        location->frames = less.frames;
        location->roles = less.roles;
    }
    return true;
}

/* By node: what stands for it. */
struct passing {
    uint32_t *node, *outermost;
};

/* Stacks of free calls, of thread starts and of operations too: everything that names a node. */
static void rename_leaves(struct hw_view *view, const struct passing *passing)
{
#define RENAME(leaf) ((leaf) = !(leaf) || passing->node[leaf] ? passing->node[leaf] : passing->outermost[leaf])
    for (size_t i = 0; i < view->context_count; i++)
        RENAME(view->contexts[i].sum.leaf);
    for (size_t i = 0; i < view->free_stack_count; i++)
        RENAME(view->free_stacks[i].leaf);
    for (size_t i = 0; i < view->freed_words.count; i++)
        if (view->freed_words.runs[i].free_context != HW_NONE)
            RENAME(view->freed_words.runs[i].free_context);
    for (size_t i = 0; i < view->role_count; i++)
        RENAME(view->roles[i].leaf);
    for (size_t i = 0; i < view->site_count; i++)
        RENAME(view->sites[i].context);
    for (size_t i = 0; i < view->slowest_count; i++)
        RENAME(view->slowest[i].context);
#undef RENAME
}

/* How many contexts have lost frames. */
static size_t count_hidden(const struct hw_view *view, const bool *touched)
{
    bool *lost = calloc(view->node_count, sizeof *lost);
    size_t count = 0;
    for (size_t i = 1; lost && i < view->node_count; i++)
        lost[i] = lost[view->nodes[i].parent] || touched[view->nodes[i].location];
    for (size_t i = 0; lost && i < view->context_count; i++)
        count += lost[view->contexts[i].sum.leaf];
    free(lost);
    return count;
}

static bool pass_nodes(struct hw_view *view, const bool *hidden, struct passing *passing)
{
    struct hw_index known = {0};
    bool fine = hw_index_make(&known, view->node_count);
    for (size_t i = 1; fine && i < view->node_count; i++) {
        struct hw_view_node *node = &view->nodes[i];
        const uint32_t parent = passing->node[node->parent];
        passing->outermost[i] = node->parent ? passing->outermost[node->parent] : (uint32_t)i;
        bool new;
        passing->node[i] = hidden[node->location]
                               ? parent
                               : hw_index_intern(&known, (struct hw_key){node->location, parent}, (uint32_t)i, &new);
        fine = passing->node[i] != HW_INDEX_NONE;
        if (!hidden[node->location])
            node->parent = parent;
    }
    hw_index_free(&known);
    return fine;
}

static bool hide(struct hw_view *view)
{
    bool *hidden = malloc((view->location_count + 1) * sizeof *hidden),
         *touched = malloc((view->location_count + 1) * sizeof *touched);
    struct passing passing = {calloc(view->node_count, sizeof *passing.node),
                              calloc(view->node_count, sizeof *passing.outermost)};
    bool fine = hidden && touched && passing.node && passing.outermost;
    if (fine) {
        fine = hide_frames(view, hidden, touched);
        view->hidden = count_hidden(view, touched);
        fine = fine && pass_nodes(view, hidden, &passing);
    }
    if (fine)
        rename_leaves(view, &passing);
    free(hidden);
    free(touched);
    free(passing.node);
    free(passing.outermost);
    return fine;
}

/* ---- folded wrappers ---- */

/* Where a stack is left to begin: a node, and frames of its location that are left out. */
struct begin {
    uint32_t node, frames;
};

static struct begin behind_wrappers(const struct hw_view *view, uint32_t leaf, size_t wrappers)
{
    struct begin begin = {leaf, 0};
    while (wrappers) {
        const uint32_t frames = view->locations[view->nodes[begin.node].location].frames.count;
        if (wrappers < frames)
            return (struct begin){begin.node, (uint32_t)wrappers};
        wrappers -= frames;
        begin.node = view->nodes[begin.node].parent;
    }
    return begin;
}

/* The node for a stack that begins within the frames of a location; HW_INDEX_NONE when there is no memory. */
static uint32_t shortened(struct hw_view *view, struct hw_index *locations, struct hw_index *nodes, struct begin begin)
{
    const struct hw_view_node *node = &view->nodes[begin.node];
    bool new;
    const uint32_t location =
        hw_index_intern(locations, (struct hw_key){node->location, begin.frames}, (uint32_t)view->location_count, &new);
    if (new) {
        struct hw_view_location *made = &view->locations[view->location_count++];
        *made = view->locations[node->location];
        made->frames.frame += begin.frames;
        made->frames.count -= begin.frames;
        made->roles += begin.frames;
    }
    if (location == HW_INDEX_NONE)
        return HW_INDEX_NONE;
    const uint32_t made =
        hw_index_intern(nodes, (struct hw_key){location, node->parent}, (uint32_t)view->node_count, &new);
    if (new)
        view->nodes[view->node_count++] = (struct hw_view_node){.parent = node->parent, .location = location};
    return made;
}

static bool cut_wrappers(struct hw_view *view)
{
    struct hw_index locations = {0}, nodes = {0};
    struct hw_view_stack stack = {0};
    struct hw_view_node *more_nodes =
        realloc(view->nodes, (view->node_count + view->context_count + 1) * sizeof *more_nodes);
    view->nodes = more_nodes ? more_nodes : view->nodes;
    struct hw_view_location *more_locations =
        realloc(view->locations, (view->location_count + view->context_count + 1) * sizeof *more_locations);
    view->locations = more_locations ? more_locations : view->locations;
    bool fine = more_nodes && more_locations;
    for (size_t i = 0; fine && i < view->context_count; i++) {
        uint32_t *leaf = &view->contexts[i].sum.leaf;
        fine = hw_view_stack(view, *leaf, &stack);
        if (!fine)
            break;
        const struct begin begin = behind_wrappers(view, *leaf, hw_stack_wrappers(&stack));
        *leaf = begin.frames ? shortened(view, &locations, &nodes, begin) : begin.node;
        fine = *leaf != HW_INDEX_NONE;
    }
    hw_index_free(&locations);
    hw_index_free(&nodes);
    hw_view_stack_free(&stack);
    return fine;
}

bool hw_view_cut_stacks(struct hw_view *view, bool wrappers)
{
    const bool hides = view->rules && view->rules->of[HW_RULE_HIDE];
    if (hides && !(view->cut = calloc(1, sizeof *view->cut)))
        return false;
    return (!hides || hide(view)) && (!wrappers || cut_wrappers(view));
}
