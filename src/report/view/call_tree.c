/* call_tree.c - trees of calls: see groups.h. */
#include "report/view/groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/growing.h"
#include "base/index.h"
#include "base/order.h"
#include "report/view/call_walk.h"

/* What a step from function to function has changed on the path, to be taken back. */
struct step {
    uint32_t group, depth, at; /* before it */
    uint32_t slot, node;       /* what stood on the path; slot 0: nothing was changed */
};

/* The tree from the root on, without detours, and the path to where the walk is. */
struct growing_tree {
    const struct hw_call_walk *walk;
    struct hw_tree *tree;
    struct hw_index known;
    uint32_t *path; /* by depth: nodes */
    size_t path_room;
    uint32_t *at; /* by group: its depth on the path; it is there only if the path has it there */
    uint32_t depth;
    struct step *steps;
    size_t step_count, step_room;
    bool failed;
};

static uint32_t add_node(struct hw_tree *tree, uint32_t parent, uint32_t function, const struct hw_group *group)
{
    if (tree->count >= HW_NONE || !HW_GROW(tree->node, tree->room, tree->count + 1))
        return HW_NONE;
    tree->node[tree->count] = (struct hw_tree_node){
        .parent = parent, .function = function, .location = group->location, .frame = group->frame};
    return (uint32_t)tree->count++;
}

static bool is_on_path(const struct growing_tree *growing, uint32_t group)
{
    const uint32_t depth = growing->at[group];
    return depth && depth <= growing->depth && growing->tree->node[growing->path[depth]].function == group;
}

static void tree_enter(void *closure, uint32_t group)
{
    struct growing_tree *growing = closure;
    struct hw_tree *tree = growing->tree;
    growing->failed = growing->failed || !HW_GROW(growing->steps, growing->step_room, growing->step_count + 1) ||
                      !HW_GROW(growing->path, growing->path_room, (size_t)growing->depth + 2);
    if (growing->failed)
        return;
    struct step *step = &growing->steps[growing->step_count++];
    *step = (struct step){.group = group, .depth = growing->depth, .at = growing->at[group]};
    if (is_on_path(growing, group)) {
        growing->depth = growing->at[group];
        tree->node[growing->path[growing->depth]].recurses = true;
        return;
    }
    bool new;
    const uint32_t parent = growing->path[growing->depth];
    const uint32_t node = hw_index_intern(&growing->known, (struct hw_key){parent, group}, (uint32_t)tree->count, &new);
    growing->failed =
        node == HW_INDEX_NONE || (new &&add_node(tree, parent, group, &growing->walk->known[group]) == HW_NONE);
    if (growing->failed)
        return;
    step->slot = ++growing->depth;
    step->node = growing->path[step->slot];
    growing->path[step->slot] = node;
    growing->at[group] = step->slot;
}

static void tree_own(void *closure, uint32_t group, uint64_t value)
{
    struct growing_tree *growing = closure;
    if (growing->failed)
        return;
    struct hw_tree_node *node = &growing->tree->node[growing->path[growing->depth]];
    node->self = hw_add_saturating(node->self, value);
}

static void tree_leave(void *closure, uint32_t group)
{
    struct growing_tree *growing = closure;
    if (growing->failed)
        return;
    const struct step *step = &growing->steps[--growing->step_count];
    growing->depth = step->depth;
    growing->at[group] = step->at;
    if (step->slot)
        growing->path[step->slot] = step->node;
}

static const struct hw_group no_group = {.location = HW_NONE, .frame = HW_NONE};

static bool grow_top_down(struct hw_tree *tree, const struct hw_call_walk *walk)
{
    static const struct hw_call_visitor visitor = {tree_enter, tree_own, tree_leave};
    struct growing_tree growing = {.walk = walk, .tree = tree, .at = calloc(walk->known_count + 1, sizeof *growing.at)};
    growing.failed =
        !growing.at || !HW_GROW(growing.path, growing.path_room, 1) || add_node(tree, 0, HW_NONE, &no_group) == HW_NONE;
    if (!growing.failed) {
        memset(growing.path, 0, growing.path_room * sizeof *growing.path);
        hw_call_walk_visit(walk, &visitor, &growing);
    }
    for (size_t i = growing.failed ? 0 : tree->count; i-- > 0;) { /* parents before children */
        struct hw_tree_node *node = &tree->node[i];
        node->total = hw_add_saturating(node->total, node->self);
        if (i)
            tree->node[node->parent].total = hw_add_saturating(tree->node[node->parent].total, node->total);
    }
    hw_index_free(&growing.known);
    free(growing.path);
    free(growing.at);
    free(growing.steps);
    return !growing.failed;
}

/* What some stacks allocate, and how far up they were followed. */
struct strand {
    uint32_t node, function; /* of the tree from the root on; 0: its end */
    uint64_t value;
};

static int compare_strands(const void *left, const void *right)
{
    const struct strand *a = left, *b = right;
    return HW_ORDER(a->function, b->function) ?: HW_ORDER(a->node, b->node);
}

/* The strands that follow the first one with the same function, and their sum. */
static size_t same_function(const struct strand *strands, size_t count, uint64_t *sum)
{
    size_t same = 0;
    for (*sum = 0; same < count && strands[same].function == strands[0].function; same++)
        *sum = hw_add_saturating(*sum, strands[same].value);
    return same;
}

/* Adds what calls PARENT by the strands, as far as it is at least LEAST. */
static bool split(struct hw_tree *tree, const struct hw_tree *down, uint32_t parent, struct strand *strands,
                  size_t count, double least)
{
    uint64_t sum;
    if (same_function(strands, count, &sum) < count)
        qsort(strands, count, sizeof *strands, compare_strands);
    for (size_t i = 0, same; i < count; i += same) {
        same = same_function(strands + i, count - i, &sum);
        const struct hw_tree_node *from = &down->node[strands[i].node];
        if (!strands[i].node || (double)sum < least)
            continue;
        const struct hw_group group = {.location = from->location, .frame = from->frame};
        const uint32_t node = add_node(tree, parent, from->function, &group);
        if (node == HW_NONE)
            return false;
        tree->node[node].total = sum;
        for (size_t k = i; k < i + same; k++) {
            const struct hw_tree_node *here = &down->node[strands[k].node];
            tree->node[node].recurses |= here->recurses;
            strands[k].node = here->parent;
            strands[k].function = down->node[here->parent].function;
        }
        if (!split(tree, down, node, strands + i, same, least))
            return false;
    }
    return true;
}

/* The same paths, from the functions that allocate on. */
static bool grow_bottom_up(struct hw_tree *tree, const struct hw_tree *down, double least)
{
    struct strand *strands = malloc((down->count + 1) * sizeof *strands);
    size_t count = 0;
    for (size_t i = 1; strands && i < down->count; i++)
        if (down->node[i].self)
            strands[count++] = (struct strand){(uint32_t)i, down->node[i].function, down->node[i].self};
    const bool fine =
        strands && add_node(tree, 0, HW_NONE, &no_group) != HW_NONE && split(tree, down, 0, strands, count, least);
    free(strands);
    return fine;
}

static int compare_children(const void *left, const void *right, void *closure)
{
    const struct hw_tree *tree = closure;
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    const struct hw_tree_node *x = &tree->node[a], *y = &tree->node[b];
    return HW_ORDER(x->parent, y->parent) ?: HW_ORDER(y->total, x->total) ?: HW_ORDER(a, b);
}

/* Children of at least LEAST, with something in them. */
static bool order_children(struct hw_tree *tree, double least)
{
    tree->child = malloc((tree->count + 1) * sizeof *tree->child);
    if (!tree->child)
        return false;
    for (size_t i = 1; i < tree->count; i++)
        if (tree->node[i].total && (double)tree->node[i].total >= least)
            tree->child[tree->child_count++] = (uint32_t)i;
    qsort_r(tree->child, tree->child_count, sizeof *tree->child, compare_children, tree);
    for (size_t i = 0; i < tree->child_count; i++) {
        struct hw_tree_node *parent = &tree->node[tree->node[tree->child[i]].parent];
        if (!parent->children++)
            parent->child = (uint32_t)i;
    }
    return true;
}

bool hw_tree_make(struct hw_tree *tree, const struct hw_view *view, enum hw_measure_id measure, bool bottom_up,
                  double least, bool full)
{
    struct hw_call_walk walk;
    struct hw_tree down = {0};
    *tree = (struct hw_tree){.whole = hw_measure_whole(view, measure)};
    bool fine = hw_call_walk_make(&walk, view, HW_BY_FUNCTION, measure, full) && grow_top_down(&down, &walk);
    if (walk.total > tree->whole)
        tree->whole = walk.total;
    const double smallest = least * (double)tree->whole;
    if (fine && bottom_up) {
        fine = grow_bottom_up(tree, &down, smallest);
        free(down.node);
    } else {
        tree->node = down.node;
        tree->count = down.count;
        tree->room = down.room;
    }
    fine = fine && order_children(tree, smallest);
    hw_call_walk_free(&walk);
    if (!fine)
        hw_tree_free(tree);
    return fine;
}

void hw_tree_free(struct hw_tree *tree)
{
    free(tree->node);
    free(tree->child);
    *tree = (struct hw_tree){0};
}
