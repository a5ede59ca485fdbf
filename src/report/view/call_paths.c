/* call_paths.c - see call_paths.h.
 *
 * Works on the tree of calls, not on stacks: for each node the path from the root without detours is known as soon as
 * its parent's is, so the time is linear in nodes (times the depth of a path, which each function is on once). */
#include "report/view/call_paths.h"

#include <stdlib.h>
#include <string.h>

#include "base/index.h"

/* A path without detours: its last function, and the path to that. Path 0 is the empty one. */
struct path {
    uint32_t parent;
    uint32_t function;
};

struct paths {
    struct path *path;
    size_t count;
    uint32_t *of_node;  /* by node of the view */
    bool *recurses;     /* by node: a detour was cut out on the way */
    uint32_t *function; /* by location: a number for its (outermost, not inlined) function */
};

/* Nameless code is its own function at each address. */
static bool number_functions(struct paths *paths, const struct hw_view *view)
{
    struct hw_index functions;
    paths->function = malloc((view->location_count + 1) * sizeof *paths->function);
    if (!paths->function || !hw_index_make(&functions, view->location_count))
        return false;
    for (size_t i = 0; i < view->location_count; i++) {
        const struct hw_view_location *location = &view->locations[i];
        const struct hw_frame *outermost = &location->frames.frame[location->frames.count - 1];
        bool new;
        paths->function[i] =
            hw_index_intern(&functions, hw_view_function_key(view, location, outermost), (uint32_t)i, &new);
    }
    hw_index_free(&functions);
    return true;
}

/* The path's prefix that ends with FUNCTION, or 0. */
static uint32_t find_on_path(const struct paths *paths, uint32_t path, uint32_t function)
{
    while (path && paths->path[path].function != function)
        path = paths->path[path].parent;
    return path;
}

static bool make_paths(struct paths *paths, const struct hw_view *view)
{
    struct hw_index known;
    paths->path = malloc((view->node_count + 1) * sizeof *paths->path);
    paths->of_node = malloc((view->node_count + 1) * sizeof *paths->of_node);
    paths->recurses = calloc(view->node_count + 1, sizeof *paths->recurses);
    if (!paths->path || !paths->of_node || !paths->recurses || !number_functions(paths, view) ||
        !hw_index_make(&known, view->node_count))
        return false;
    paths->path[0] = (struct path){0, HW_NONE};
    paths->of_node[0] = 0;
    paths->count = 1;
    for (size_t i = 1; i < view->node_count; i++) {
        const struct hw_view_node *node = &view->nodes[i];
        const uint32_t function = paths->function[node->location], parent = paths->of_node[node->parent];
        const uint32_t found = find_on_path(paths, parent, function);
        bool new = false;
        paths->recurses[i] = found || paths->recurses[node->parent];
        paths->of_node[i] =
            found ? found : hw_index_intern(&known, (struct hw_key){parent, function}, (uint32_t)paths->count, &new);
        if (new)
            paths->path[paths->count++] = (struct path){parent, function};
    }
    hw_index_free(&known);
    return true;
}

static void free_paths(struct paths *paths)
{
    free(paths->path);
    free(paths->of_node);
    free(paths->recurses);
    free(paths->function);
}

static void add_to_place(struct hw_view_context *place, const struct hw_view_context *context, uint64_t *greatest)
{
    if (context->sum.bytes > *greatest) {
        *greatest = context->sum.bytes;
        place->sum.leaf = context->sum.leaf;
        place->index = context->index;
    }
    hw_view_add_context(&place->sum, &context->sum);
    place->stacks += context->stacks;
    place->merged = context->merged > place->merged ? context->merged : place->merged;
}

static bool group(struct hw_places *places, const struct hw_view *view, const struct paths *paths, uint64_t *greatest)
{
    struct hw_index known;
    if (!hw_index_make(&known, view->context_count))
        return false;
    for (size_t i = 0; i < view->context_count; i++) {
        const struct hw_view_context *context = &view->contexts[i];
        const uint32_t leaf = context->sum.leaf;
        const bool recurses = paths->recurses[leaf];
        /* A path and the address of the allocation; or the node itself, marked by a bit that locations do not have. */
        const uint64_t a = recurses ? paths->of_node[leaf] : (uint64_t)1 << 32 | leaf;
        const uint32_t b = recurses ? view->nodes[leaf].location : 0;
        bool new;
        const uint32_t index = hw_index_intern(&known, (struct hw_key){a, b}, (uint32_t)places->count, &new);
        if (new) {
            greatest[index] = context->sum.bytes;
            places->place[places->count] = *context;
            if (context->sum.access) {
                places->accesses[index] = *context->sum.access;
                places->place[index].sum.access = &places->accesses[index];
            }
            places->count++;
        } else {
            add_to_place(&places->place[index], context, &greatest[index]);
        }
    }
    hw_index_free(&known);
    return true;
}

bool hw_places_make(struct hw_places *places, const struct hw_view *view, bool each)
{
    struct paths paths = {0};
    uint64_t *greatest =
        malloc((view->context_count + 1) * sizeof *greatest); /* bytes of the greatest stack of a place */
    *places = (struct hw_places){.place = malloc((view->context_count + 1) * sizeof *places->place)};
    if (view->accesses && !each)
        places->accesses = malloc((view->context_count + 1) * sizeof *places->accesses);
    bool done = greatest && places->place && (places->accesses || !view->accesses || each);
    if (done && each) {
        if (view->context_count)
            memcpy(places->place, view->contexts, view->context_count * sizeof *places->place);
        places->count = view->context_count;
    } else {
        done = done && make_paths(&paths, view) && group(places, view, &paths, greatest);
    }
    free_paths(&paths);
    free(greatest);
    if (!done)
        hw_places_free(places);
    return done;
}

void hw_places_free(struct hw_places *places)
{
    free(places->place);
    free(places->accesses);
    *places = (struct hw_places){0};
}
