/* sandwich.c - who calls a function, and what it calls: see groups.h. */
#include "report/view/groups.h"

#include <stdlib.h>

#include "base/growing.h"
#include "report/view/call_walk.h"
#include "report/view/function_names.h"

/* ---- the function of a sandwich ---- */

static const struct hw_frame *symbol_of(const struct hw_call_walk *walk, size_t group)
{
    return &walk->view->locations[walk->known[group].location].frames.frame[walk->known[group].frame];
}

/* Fills TARGET, by group. Returns how many functions have the name, in the strictest sense in which there is one. */
static size_t find_function(const struct hw_call_walk *walk, const char *wanted, bool *target)
{
    size_t found = 0;
    for (int level = 0; level < HW_NAME_LEVELS && !found; level++)
        for (size_t i = 0; i < walk->known_count; i++) {
            target[i] = hw_is_called(symbol_of(walk, i), wanted, level);
            found += target[i];
        }
    return found;
}

/* ---- the sandwich ---- */

struct entered {
    uint32_t group, inner; /* the frame, and `inner` before it */
};

struct sandwiching {
    const bool *target;
    struct entered *stack;
    size_t count, room;
    size_t active;   /* how often the function is on the stack */
    uint32_t caller; /* of its outermost call; HW_NONE: it has none */
    uint32_t inner;  /* what its innermost call has called; HW_NONE: nothing */
    uint64_t *callers, *callees, self, total, uncalled;
    bool failed;
};

static void sandwich_enter(void *closure, uint32_t group)
{
    struct sandwiching *at = closure;
    if (at->failed || !HW_GROW(at->stack, at->room, at->count + 1)) {
        at->failed = true;
        return;
    }
    const uint32_t above = at->count ? at->stack[at->count - 1].group : HW_NONE;
    at->stack[at->count++] = (struct entered){group, at->inner};
    if (at->target[group]) {
        if (!at->active++)
            at->caller = above;
        at->inner = HW_NONE;
    } else if (at->active && above != HW_NONE && at->target[above]) {
        at->inner = group;
    }
}

static void sandwich_own(void *closure, uint32_t group, uint64_t value)
{
    struct sandwiching *at = closure;
    if (at->failed || !at->active)
        return;
    uint64_t *from = at->caller == HW_NONE ? &at->uncalled : &at->callers[at->caller];
    uint64_t *to = at->inner == HW_NONE ? &at->self : &at->callees[at->inner];
    *from = hw_add_saturating(*from, value);
    *to = hw_add_saturating(*to, value);
    at->total = hw_add_saturating(at->total, value);
}

static void sandwich_leave(void *closure, uint32_t group)
{
    struct sandwiching *at = closure;
    if (at->failed)
        return;
    at->inner = at->stack[--at->count].inner;
    at->active -= at->target[group];
}

/* Copies of the groups with a value; NULL when there is no memory. */
static struct hw_group *valued_groups(const struct hw_call_walk *walk, const uint64_t *values, size_t *count)
{
    struct hw_group *group = malloc((walk->known_count + 1) * sizeof *group);
    for (size_t i = 0; group && i < walk->known_count; i++) {
        group[i] = walk->known[i];
        group[i].self = 0;
        group[i].total = values[i];
    }
    *count = group ? hw_groups_sort(group, walk->known_count) : 0;
    return group;
}

static bool sandwich_lists(struct hw_sandwich *sandwich, const struct hw_call_walk *walk, const struct sandwiching *at)
{
    sandwich->callers = valued_groups(walk, at->callers, &sandwich->caller_count);
    sandwich->callees = valued_groups(walk, at->callees, &sandwich->callee_count);
    for (size_t i = walk->known_count; i-- > 0;)
        if (at->target[i])
            sandwich->function = walk->known[i];
    sandwich->function.self = at->self;
    sandwich->function.total = at->total;
    sandwich->uncalled = at->uncalled;
    return sandwich->callers && sandwich->callees;
}

bool hw_sandwich_make(struct hw_sandwich *sandwich, const struct hw_view *view, const char *function,
                      enum hw_measure_id measure, bool full, struct hw_error *error)
{
    static const struct hw_call_visitor visitor = {sandwich_enter, sandwich_own, sandwich_leave};
    struct hw_call_walk walk;
    *sandwich = (struct hw_sandwich){0};
    bool fine = hw_call_walk_make(&walk, view, HW_BY_FUNCTION, measure, full);
    bool *target = calloc(walk.known_count + 1, sizeof *target);
    struct sandwiching at = {.target = target,
                             .inner = HW_NONE,
                             .caller = HW_NONE,
                             .callers = calloc(walk.known_count + 1, sizeof *at.callers),
                             .callees = calloc(walk.known_count + 1, sizeof *at.callees)};
    fine = fine && target && at.callers && at.callees;
    if (fine && (sandwich->functions = find_function(&walk, function, target)) != 0) {
        hw_call_walk_visit(&walk, &visitor, &at);
        fine = !at.failed && sandwich_lists(sandwich, &walk, &at);
    }
    if (!fine)
        hw_error_set(error, "%s: not enough memory for the report",
                     view->profile->path ? view->profile->path : "profile");
    else if (!sandwich->functions)
        hw_say_no_function(view, function, error);
    fine = fine && sandwich->functions;
    free(at.stack);
    free(at.callers);
    free(at.callees);
    free(target);
    hw_call_walk_free(&walk);
    if (!fine)
        hw_sandwich_free(sandwich);
    return fine;
}

void hw_sandwich_free(struct hw_sandwich *sandwich)
{
    free(sandwich->callers);
    free(sandwich->callees);
    *sandwich = (struct hw_sandwich){0};
}
