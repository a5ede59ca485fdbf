/* view_threads.c - threads by name and start function.
 *
 * The start function is the one that was given to pthread_create or thrd_create. Where that is a library's own, as of
 * std::thread, or it has no name, it is the outermost function of the thread's stacks. */
#include "report/view/view.h"

#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/order.h"
#include "report/view/groups.h"

#define DIGITS "0123456789"

/* By context id of the profile: the leaf in the view. */
static uint32_t leaf_of(const struct hw_profile *profile, const uint32_t *canonical, uint32_t context)
{
    const uint32_t leaf = context < profile->context_entry_count ? profile->context_entries[context].leaf : 0;
    return leaf < profile->node_count ? canonical[leaf] : 0;
}

bool hw_view_make_threads(struct hw_view *view, const uint32_t *canonical, const uint32_t *module_of)
{
    const struct hw_profile *profile = view->profile;
    struct hw_view_adder adder;
    if (!profile->thread_count)
        return true;
    view->threads = calloc(profile->thread_count, sizeof *view->threads);
    view->thread_leaves = malloc((profile->thread_place_count + 1) * sizeof *view->thread_leaves);
    if (!view->threads || !view->thread_leaves || !hw_view_adder_make(&adder, view, module_of, profile->thread_count))
        return false;
    view->thread_count = profile->thread_count;
    for (size_t i = 0; i < profile->thread_count; i++) {
        const struct hw_profile_thread *from = &profile->threads[i];
        view->threads[i] = (struct hw_view_thread){
            .is = from,
            .location = from->map == HW_NONE ? HW_NONE : hw_view_adder_add(&adder, from->map, from->routine),
            .started = from->context ? leaf_of(profile, canonical, from->context) : 0};
    }
    for (size_t i = 0; i < profile->thread_place_count; i++)
        view->thread_leaves[i] = leaf_of(profile, canonical, profile->thread_places[i].context);
    hw_view_adder_free(&adder);
    return true;
}

static bool is_of_library(const struct hw_view *view, const struct hw_view_thread *thread)
{
    const struct hw_view_location *location = &view->locations[thread->location];
    const struct hw_view_module *module = location->module == HW_NONE ? NULL : &view->modules[location->module];
    return !location->frames.frame[0].function ||
           (module && (!strncmp(module->name, "libstdc++", 9) || !strncmp(module->name, "libc++", 6)));
}

/* The outermost function of stacks, by the first thread of a slot. */
struct start {
    bool known, differ;
    uint64_t bytes; /* allocated at the place that says so */
    uint32_t location, frame;
    struct hw_key key;
};

static bool find_start(const struct hw_view *view, const struct hw_profile_thread_place *place, uint32_t leaf,
                       struct hw_view_stack *stack, struct start *start)
{
    uint32_t location, frame;
    if (!hw_view_stack(view, leaf, stack))
        return false;
    if (!hw_stack_thread_start(view, stack, &location, &frame))
        return true;
    const struct hw_view_location *at = &view->locations[location];
    const struct hw_key key = hw_view_function_key(view, at, &at->frames.frame[frame]);
    start->differ |= start->known && (key.low != start->key.low || key.high != start->key.high);
    if (!start->known || place->bytes > start->bytes)
        *start = (struct start){true, start->differ, place->bytes, location, frame, key};
    return true;
}

/* By slot, less 1: the first of its threads, + 1. NULL: no memory. */
static uint32_t *first_threads(const struct hw_view *view, uint32_t *count)
{
    *count = 0;
    for (size_t i = 0; i < view->thread_count; i++)
        if (view->threads[i].is->slot < UINT16_MAX && view->threads[i].is->slot >= *count)
            *count = view->threads[i].is->slot + 1;
    uint32_t *first = calloc(*count + 1, sizeof *first);
    for (size_t i = 0; first && i < view->thread_count; i++) {
        const uint32_t slot = view->threads[i].is->slot;
        if (slot < *count && !first[slot])
            first[slot] = (uint32_t)i + 1;
    }
    return first;
}

/* Threads of one function have one location for it, wherever it calls. */
static bool unite(struct start *starts, size_t count)
{
    struct hw_index index = {0};
    uint32_t *united = malloc((count + 1) * sizeof *united), next = 0;
    const bool fine = united && hw_index_make(&index, count);
    for (size_t i = 0; fine && i < count; i++) {
        bool new;
        if (!starts[i].known)
            continue;
        const uint32_t number = hw_index_intern(&index, starts[i].key, next, &new);
        if (new)
            united[next++] = (uint32_t)i;
        starts[i].location = starts[united[number]].location;
        starts[i].frame = starts[united[number]].frame;
    }
    hw_index_free(&index);
    free(united);
    return fine;
}

/* Stacks are known by slot. Where several threads had a slot, all stacks must begin with one function. */
bool hw_view_name_threads(struct hw_view *view)
{
    const struct hw_profile *profile = view->profile;
    struct hw_view_stack stack = {0};
    uint32_t slots;
    uint32_t *first = first_threads(view, &slots);
    struct start *starts = calloc(view->thread_count + 1, sizeof *starts);
    bool fine = first && starts;
    for (size_t i = 0; fine && i < profile->thread_place_count; i++) {
        const struct hw_profile_thread_place *place = &profile->thread_places[i];
        const struct hw_view_thread *thread = &view->threads[place->thread];
        if (thread->location != HW_NONE && is_of_library(view, thread) && place->allocations &&
            view->thread_leaves[i] && (!starts[place->thread].differ || !place->several))
            fine = find_start(view, place, view->thread_leaves[i], &stack, &starts[place->thread]);
    }
    for (size_t i = 0; fine && i < profile->thread_place_count; i++)
        if (profile->thread_places[i].several && starts[profile->thread_places[i].thread].differ)
            starts[profile->thread_places[i].thread].known = false;
    fine = fine && unite(starts, view->thread_count);
    for (size_t i = 0; fine && i < view->thread_count; i++) {
        struct hw_view_thread *thread = &view->threads[i];
        const uint32_t slot = thread->is->slot;
        if (thread->location == HW_NONE || slot >= slots || !is_of_library(view, thread))
            continue;
        const struct start *start = &starts[first[slot] - 1];
        if (start->known) {
            thread->location = start->location;
            thread->frame = start->frame;
        }
    }
    hw_view_stack_free(&stack);
    free(first);
    free(starts);
    return fine;
}

bool hw_view_has_threads(const struct hw_view *view)
{
    return view->thread_count > 1 && !view->function;
}

const char *hw_view_thread_kind(const struct hw_view_thread *thread)
{
    const uint32_t flags = thread->is->flags;
    return flags & HW_THREAD_MAIN        ? "main thread"
           : flags & HW_THREAD_HANDLERS  ? "signal handlers and ends of threads"
           : flags & HW_THREAD_INHERITED ? "inherited from the parent process"
                                         : NULL;
}

const char *hw_view_thread_key(uint32_t flags)
{
    return flags & HW_THREAD_MAIN        ? "main"
           : flags & HW_THREAD_HANDLERS  ? "handlers"
           : flags & HW_THREAD_INHERITED ? "inherited"
           : flags & HW_THREAD_ROUTINE   ? "started"
                                         : "unknown";
}

/* ---- rows ---- */

/* With NUMBERED a number is equal to any other. */
static int compare_names(const char *a, const char *b, bool numbered)
{
    while (numbered && *a) {
        const size_t left = strspn(a, DIGITS), right = strspn(b, DIGITS);
        if (!left != !right || (!left && *a != *b))
            break;
        a += left ? left : 1;
        b += right ? right : 1;
    }
    if (numbered && *a && *b) /* a number is less than any other character */
        return HW_ORDER(strspn(b, DIGITS), strspn(a, DIGITS)) ?: strcmp(a, b);
    return strcmp(a, b);
}

static int compare_kinds(const void *left, const void *right, void *numbered)
{
    const struct hw_view_thread_row *a = left, *b = right;
    const uint32_t kinds = HW_THREAD_MAIN | HW_THREAD_HANDLERS | HW_THREAD_INHERITED;
    return HW_ORDER(a->sum.flags & kinds, b->sum.flags & kinds) ?: HW_ORDER(a->thread->location, b->thread->location)
        ?: HW_ORDER(a->thread->frame, b->thread->frame) ?: compare_names(a->sum.name, b->sum.name, *(bool *)numbered);
}

static int compare_rows(const void *left, const void *right)
{
    const struct hw_view_thread_row *a = left, *b = right;
    return HW_ORDER(b->sum.peak_bytes, a->sum.peak_bytes) ?: HW_ORDER(b->sum.bytes, a->sum.bytes)
        ?: HW_ORDER(a->index, b->index);
}

static void add_thread(struct hw_profile_thread *to, const struct hw_profile_thread *from)
{
    to->flags |= from->flags;
    to->threads = hw_add_saturating(to->threads, from->threads);
    to->start_ns = from->start_ns < to->start_ns ? from->start_ns : to->start_ns;
    to->end_ns = !to->end_ns || !from->end_ns ? 0 : from->end_ns > to->end_ns ? from->end_ns : to->end_ns;
    to->allocations = hw_add_saturating(to->allocations, from->allocations);
    to->frees = hw_add_saturating(to->frees, from->frees);
    to->reallocations = hw_add_saturating(to->reallocations, from->reallocations);
    to->temporary = hw_add_saturating(to->temporary, from->temporary);
    to->bytes = hw_add_saturating(to->bytes, from->bytes);
    to->live_blocks = (int64_t)((uint64_t)to->live_blocks + (uint64_t)from->live_blocks);
    to->live_bytes = (int64_t)((uint64_t)to->live_bytes + (uint64_t)from->live_bytes);
    to->peak_bytes = (int64_t)((uint64_t)to->peak_bytes + (uint64_t)from->peak_bytes);
    to->freed_by_others = hw_add_saturating(to->freed_by_others, from->freed_by_others);
    to->freed_by_others_bytes = hw_add_saturating(to->freed_by_others_bytes, from->freed_by_others_bytes);
    to->freed_of_others = hw_add_saturating(to->freed_of_others, from->freed_of_others);
    to->freed_of_others_bytes = hw_add_saturating(to->freed_of_others_bytes, from->freed_of_others_bytes);
    to->owner_unknown = hw_add_saturating(to->owner_unknown, from->owner_unknown);
    to->starter = to->starter == from->starter ? to->starter : HW_NONE;
    to->context = to->context == from->context ? to->context : 0;
}

/* Rows of one kind become one; returns how many are left. */
static size_t join_rows(struct hw_view_thread_row *rows, size_t count, bool numbered)
{
    size_t kept = 0;
    qsort_r(rows, count, sizeof *rows, compare_kinds, &numbered);
    for (size_t i = 0; i < count; i++) {
        struct hw_view_thread_row *to = kept ? &rows[kept - 1] : NULL;
        rows[i].joined = numbered ? 2 : 1;
        if (!to || compare_kinds(to, &rows[i], &numbered)) {
            rows[kept++] = rows[i];
            continue;
        }
        if (strcmp(to->sum.name, rows[i].sum.name) != 0 && to->names == HW_NAMES_ONE)
            to->names = HW_NAMES_NUMBERED;
        to->names = rows[i].names > to->names ? rows[i].names : to->names;
        add_thread(&to->sum, &rows[i].sum);
    }
    return kept;
}

struct hw_view_thread_row *hw_view_thread_rows(const struct hw_view *view, size_t most, bool numbered, size_t *count)
{
    struct hw_view_thread_row *rows = malloc((view->thread_count + 1) * sizeof *rows);
    size_t kept = view->thread_count;
    *count = 0;
    if (!rows)
        return NULL;
    for (size_t i = 0; i < view->thread_count; i++)
        rows[i] = (struct hw_view_thread_row){.thread = &view->threads[i],
                                              .index = (uint32_t)i,
                                              .names = view->threads[i].is->flags & HW_THREAD_NAMES ? HW_NAMES_DIFFER
                                                                                                    : HW_NAMES_ONE,
                                              .sum = *view->threads[i].is};
    if (kept > most)
        kept = join_rows(rows, kept, false);
    if (kept > most && numbered)
        kept = join_rows(rows, kept, true);
    qsort(rows, kept, sizeof *rows, compare_rows);
    *count = kept;
    return rows;
}

bool hw_view_thread_in_row(const struct hw_view *view, uint32_t thread, const struct hw_view_thread_row *row)
{
    const struct hw_view_thread_row one = {.thread = &view->threads[thread], .sum = *view->threads[thread].is};
    bool numbered = row->joined == 2;
    return row->joined ? !compare_kinds(&one, row, &numbered) : row->index == thread;
}
