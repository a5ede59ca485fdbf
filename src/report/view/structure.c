/* structure.c - allocation wrappers by structure: what a profile shows of functions that no table names.
 *
 * Stacks do not show whether a function returns what the allocator returned. A function is taken for a wrapper when
 *
 * 1. it stands directly above the allocator, or above another wrapper, in at least 90 % of the contexts that it is in
 * at all, and nowhere else on their stacks: main, event loops and recursive functions do not;
 * 2. at least 8 functions call it, and at least 90 % of what its module allocates passes through it; or at least 64
 *    functions call it, and 50 % passes through it. What a module allocates are contexts, or bytes, or bytes at the
 * peak;
 * 3. it allocates blocks of at least WRAPPER_SIZES sizes: what makes objects of one type is none.
 *
 * Fewer than 8 functions call the inner one of two wrappers that call each other. It is one if all else is true of it,
 * and a function above it is one (at most WRAPPER_INNER of them).
 *
 * Nameless code is part of a wrapper that calls it on the way to the allocator: in a stripped program the exported
 * PyMem_Realloc has a name, and the static function below it, which calls realloc, has none. It is folded when, in more
 * than half of the contexts that it is in, nothing but wrappers and nameless code stands below it, and the next frame
 * above the nameless code is a wrapper of the same module. Not in all of them: others jump to it (a call in tail
 * position leaves no frame). What a wrapper calls back is its own place if a function with a name is on the way to the
 * allocator, or if the code mostly runs elsewhere.
 *
 * Time is linear in contexts and nodes, for each of at most WRAPPER_ROUNDS wrappers. */
#include <stdlib.h>
#include <string.h>

#include "base/growing.h"
#include "report/view/frame_roles.h"

#define WRAPPER_SIZES  4
#define WRAPPER_ROUNDS 16
#define WRAPPER_INNER  2
#define AT_THE_END     90 /* per cent */

static const struct {
    uint32_t callers;
    unsigned percent;
} evidence[] = {{8, 90}, {64, 50}};

/* A frame on a stack: NODE 0 is behind its end. */
struct at {
    uint32_t node, frame;
};

static const struct hw_view_location *location_at(const struct hw_view *view, struct at at)
{
    return &view->locations[view->nodes[at.node].location];
}

static struct at caller_of(const struct hw_view *view, struct at at)
{
    if (at.frame + 1 < location_at(view, at)->frames.count)
        return (struct at){at.node, at.frame + 1};
    return (struct at){view->nodes[at.node].parent, 0};
}

/* The innermost frame that is no wrapper. */
static struct at allocating_frame(const struct hw_view *view, uint32_t leaf)
{
    struct at at = {leaf, 0};
    while (at.node && hw_location_role(location_at(view, at), at.frame) & HW_FRAME_WRAPPER)
        at = caller_of(view, at);
    return at;
}

/* ---- nameless code below a wrapper ---- */

static bool is_nameless(const struct hw_view *view, const struct hw_view_location *location)
{
    return location->frames.count == 1 && !location->frames.frame[0].function && location->module != HW_NONE &&
           view->modules[location->module].kind == HW_MODULE_PROGRAM;
}

/* Adds 1 to INSIDE, by location, for nameless code between the allocator and a wrapper of the same module. */
static void count_inside(const struct hw_view *view, uint32_t leaf, uint64_t *inside)
{
    struct at first = {leaf, 0}; /* the innermost frame that no wrapper was found above */
    for (struct at at = first; at.node; at = caller_of(view, at)) {
        const struct hw_view_location *location = location_at(view, at);
        const bool wrapper = hw_location_role(location, at.frame) & HW_FRAME_WRAPPER;
        if (!wrapper && !is_nameless(view, location))
            return;
        if (first.node != at.node && location_at(view, first)->module != location->module)
            return;
        for (; wrapper && first.node != at.node; first = caller_of(view, first))
            inside[view->nodes[first.node].location]++;
        if (wrapper)
            first = caller_of(view, at);
    }
}

static bool mark_nameless(struct hw_view *view)
{
    uint64_t *inside = calloc(view->location_count + 1, sizeof *inside),
             *all = calloc(view->location_count + 1, sizeof *all),     /* contexts that it is in, by location */
                 *below = calloc(view->node_count + 1, sizeof *below); /* and by node */
    const bool fine = inside && all && below;
    for (size_t i = 0; fine && i < view->context_count; i++) {
        below[view->contexts[i].sum.leaf]++;
        count_inside(view, view->contexts[i].sum.leaf, inside);
    }
    for (size_t i = view->node_count; fine && i-- > 1;) {
        all[view->nodes[i].location] += below[i];
        below[view->nodes[i].parent] += below[i];
    }
    for (size_t i = 0; fine && i < view->location_count; i++)
        if (inside[i] > all[i] / 2)
            view->locations[i].roles[0] |= HW_FRAME_WRAPPER;
    free(inside);
    free(all);
    free(below);
    return fine;
}

/* ---- functions that allocate ---- */

struct amount {
    uint64_t contexts, bytes, peak;
};

struct function {
    struct amount amount; /* of contexts in which it is the innermost frame that is no wrapper */
    uint32_t callers, size_count;
    uint64_t sizes[WRAPPER_SIZES]; /* different ones */
    struct at at;                  /* one of its frames */
};

struct search {
    struct hw_view *view;
    struct function *functions;
    size_t count, room;
    struct hw_index numbers; /* of functions: by name and module */
    struct hw_index calls;   /* pairs of functions */
    struct amount *modules;
};

static struct hw_key key_of(const struct hw_view *view, const struct hw_view_location *location, uint32_t frame)
{
    return hw_view_function_key(view, location, &location->frames.frame[frame]);
}

static bool is_equal(struct hw_key a, struct hw_key b)
{
    return a.low == b.low && a.high == b.high;
}

/* The number of the function at AT; HW_INDEX_NONE when there is no memory. */
static uint32_t number_of(struct search *search, struct at at)
{
    bool new;
    const uint32_t number = hw_index_intern(
        &search->numbers, key_of(search->view, location_at(search->view, at), at.frame), (uint32_t)search->count, &new);
    if (number == HW_INDEX_NONE || !new)
        return number;
    if (!HW_GROW(search->functions, search->room, search->count + 1))
        return HW_INDEX_NONE;
    search->functions[search->count++] = (struct function){.at = at};
    return number;
}

static void add_size(struct function *function, uint64_t size)
{
    for (uint32_t i = 0; i < function->size_count; i++)
        if (function->sizes[i] == size)
            return;
    if (function->size_count < WRAPPER_SIZES)
        function->sizes[function->size_count++] = size;
}

static void add_amount(struct amount *amount, const struct hw_profile_context *sum)
{
    amount->contexts++;
    amount->bytes = hw_add_saturating(amount->bytes, sum->bytes);
    if (sum->peak_bytes > 0)
        amount->peak = hw_add_saturating(amount->peak, (uint64_t)sum->peak_bytes);
}

static bool add_context(struct search *search, const struct hw_profile_context *sum)
{
    const struct at at = allocating_frame(search->view, sum->leaf);
    if (!at.node || sum->pool || !sum->allocations)
        return true;
    const struct hw_view_location *location = location_at(search->view, at);
    const uint32_t number = number_of(search, at);
    const struct at above = caller_of(search->view, at);
    const uint32_t caller = above.node ? number_of(search, above) : number; /* a call by itself does not count */
    bool new = false;
    if (number == HW_INDEX_NONE || caller == HW_INDEX_NONE ||
        hw_index_intern(&search->calls, (struct hw_key){number, caller}, 0, &new) == HW_INDEX_NONE)
        return false;
    struct function *function = &search->functions[number];
    add_amount(&function->amount, sum);
    function->callers += new &&caller != number;
    add_size(function, sum->size_max);
    if (location->module != HW_NONE)
        add_amount(&search->modules[location->module], sum);
    return true;
}

/* ---- which of them are wrappers ---- */

static bool reaches(uint64_t part, uint64_t whole, unsigned percent)
{
    return whole && (double)part * 100 >= (double)whole * percent;
}

/* All but where it stands. INNER: whatever the number of its callers. */
static bool is_candidate(const struct search *search, const struct function *function, bool inner)
{
    const struct hw_view_location *location = location_at(search->view, function->at);
    if (location->module == HW_NONE || search->view->modules[location->module].kind != HW_MODULE_PROGRAM ||
        hw_location_role(location, function->at.frame) & HW_FRAME_LIBRARY)
        return false;
    const struct amount *own = &function->amount, *whole = &search->modules[location->module];
    const size_t rows = inner ? 1 : sizeof evidence / sizeof *evidence;
    for (size_t i = 0; i < rows && function->size_count >= WRAPPER_SIZES; i++)
        if ((function->callers >= evidence[i].callers) != inner &&
            (reaches(own->contexts, whole->contexts, evidence[i].percent) ||
             reaches(own->bytes, whole->bytes, evidence[i].percent) ||
             reaches(own->peak, whole->peak, evidence[i].percent)))
            return true;
    return false;
}

/* Whether a frame of LOCATION from FIRST on is of the function. */
static bool has_function(const struct hw_view *view, const struct hw_view_location *location, uint32_t first,
                         struct hw_key key)
{
    for (uint32_t i = first; i < location->frames.count; i++)
        if (is_equal(key_of(view, location, i), key))
            return true;
    return false;
}

/* Whether it stands at the allocating end, and nowhere else. ON_PATH has room for all nodes. */
static bool is_at_the_end(const struct hw_view *view, struct hw_key key, bool *on_path)
{
    uint64_t contexts = 0, elsewhere = 0;
    on_path[0] = false;
    for (size_t i = 1; i < view->node_count; i++)
        on_path[i] =
            on_path[view->nodes[i].parent] || has_function(view, &view->locations[view->nodes[i].location], 0, key);
    for (size_t i = 0; i < view->context_count; i++) {
        const uint32_t leaf = view->contexts[i].sum.leaf;
        if (!on_path[leaf])
            continue;
        const struct at at = allocating_frame(view, leaf);
        contexts++;
        elsewhere += at.node && (!is_equal(key_of(view, location_at(view, at), at.frame), key) ||
                                 on_path[view->nodes[at.node].parent] ||
                                 has_function(view, location_at(view, at), at.frame + 1, key));
    }
    return reaches(contexts - elsewhere, contexts, AT_THE_END);
}

/* Gives the function that KEY is of the role, or takes it away. */
static void set_role(struct hw_view *view, struct hw_key key, bool wrapper)
{
    for (size_t i = 0; i < view->location_count; i++)
        for (uint32_t k = 0; k < view->locations[i].frames.count; k++) {
            uint8_t *role = &view->locations[i].roles[k];
            if (is_equal(key_of(view, &view->locations[i], k), key))
                *role = (uint8_t)(wrapper ? *role | HW_FRAME_WRAPPER : *role & ~HW_FRAME_WRAPPER);
        }
}

static struct hw_view_frame frame_of(const struct hw_view *view, const struct hw_view_location *location,
                                     uint32_t frame)
{
    return (struct hw_view_frame){.symbol = &location->frames.frame[frame],
                                  .module = &view->modules[location->module],
                                  .address = location->address};
}

/* Makes the function that has frame FRAME of LOCATION a wrapper. */
static bool mark(struct hw_view *view, const struct hw_view_location *location, uint32_t frame)
{
    struct hw_view_frame *more = realloc(view->structural, (view->structural_count + 1) * sizeof *view->structural);
    if (!more)
        return false;
    view->structural = more;
    view->structural[view->structural_count++] = frame_of(view, location, frame);
    set_role(view, key_of(view, location, frame), true);
    return true;
}

/* Finds one wrapper, and inner ones below it. INNER: how many of those there may be. */
static bool find_layer(struct hw_view *view, bool *on_path, int inner, bool *found)
{
    struct search search = {.view = view, .modules = calloc(view->module_count + 1, sizeof *search.modules)};
    bool fine = search.modules != NULL;
    *found = false;
    for (size_t i = 0; fine && i < view->context_count; i++)
        fine = add_context(&search, &view->contexts[i].sum);
    for (int weak = 0; weak <= (inner > 0); weak++)
        for (size_t i = 0; fine && !*found && i < search.count; i++) {
            const struct at at = search.functions[i].at;
            const struct hw_key key = key_of(view, location_at(view, at), at.frame);
            if (!is_candidate(&search, &search.functions[i], weak) || !is_at_the_end(view, key, on_path))
                continue;
            *found = true;
            if (weak) {
                set_role(view, key, true);
                fine = find_layer(view, on_path, inner - 1, found);
                set_role(view, key, false);
            }
            if (fine && *found) /* what is directly above it may be one now, and others may be none any more */
                fine = mark(view, location_at(view, at), at.frame);
        }
    hw_index_free(&search.numbers);
    hw_index_free(&search.calls);
    free(search.functions);
    free(search.modules);
    return fine;
}

bool hw_view_find_wrappers(struct hw_view *view)
{
    bool *on_path = malloc(view->node_count * sizeof *on_path), found = true, fine = on_path && mark_nameless(view);
    for (int i = 0; fine && found && i < WRAPPER_ROUNDS; i++)
        fine = find_layer(view, on_path, WRAPPER_INNER, &found);
    free(on_path);
    return fine;
}

/* ---- two profiles of one program ---- */

static bool is_same(const struct hw_view_frame *wrapper, const struct hw_view *view,
                    const struct hw_view_location *location, uint32_t frame)
{
    const char *name = location->frames.frame[frame].function;
    const struct hw_view_module *module = location->module == HW_NONE ? NULL : &view->modules[location->module];
    if (!module || strcmp(module->name, wrapper->module->name))
        return false;
    if (name && wrapper->symbol->function)
        return !strcmp(name, wrapper->symbol->function);
    return !name && !wrapper->symbol->function && location->address == wrapper->address && module->build_id_size &&
           module->build_id_size == wrapper->module->build_id_size &&
           !memcmp(module->build_id, wrapper->module->build_id, module->build_id_size);
}

/* Marks in TO what is a wrapper by structure in the other one. */
static bool share(struct hw_view *to, const struct hw_view_frame *wrapper)
{
    for (size_t i = 0; i < to->location_count; i++)
        for (uint32_t k = 0; k < to->locations[i].frames.count; k++)
            if (is_same(wrapper, to, &to->locations[i], k))
                return hw_location_role(&to->locations[i], k) & HW_FRAME_WRAPPER || mark(to, &to->locations[i], k);
    return true;
}

/* Marks in TO nameless code that is a wrapper in FROM. */
static void share_nameless(struct hw_view *to, const struct hw_view *from)
{
    for (size_t i = 0; i < from->location_count; i++) {
        const struct hw_view_location *location = &from->locations[i];
        if (!is_nameless(from, location) || !(hw_location_role(location, 0) & HW_FRAME_WRAPPER))
            continue;
        const struct hw_view_frame wrapper = frame_of(from, location, 0);
        for (size_t k = 0; k < to->location_count; k++)
            if (is_nameless(to, &to->locations[k]) && is_same(&wrapper, to, &to->locations[k], 0))
                to->locations[k].roles[0] |= HW_FRAME_WRAPPER;
    }
}

bool hw_view_share_wrappers(struct hw_view *one, struct hw_view *other)
{
    bool fine = true;
    const size_t own = one->structural_count, others = other->structural_count;
    for (size_t i = 0; fine && i < own; i++)
        fine = share(other, &one->structural[i]);
    for (size_t i = 0; fine && i < others; i++)
        fine = share(one, &other->structural[i]);
    share_nameless(one, other);
    share_nameless(other, one);
    return fine;
}
