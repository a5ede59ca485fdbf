/* groups.c - see groups.h: sums by group. */
#include "report/view/groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/order.h"
#include "report/view/call_walk.h"
#include "report/view/frame_roles.h"
#include "report/view/rules.h"

const struct hw_by_key hw_by_keys[HW_BYS] = {
#define HW_BY(id, key, title, of_frames, sentence) [HW_BY_##id] = {key, title, of_frames, sentence},
#include "report/view/groups.def"
};

enum hw_by hw_by_find(const char *key)
{
    enum hw_by by = 0;
    while (by < HW_BYS && strcmp(hw_by_keys[by].key, key))
        by++;
    return by;
}

enum hw_measure_id hw_sums_measure(const struct hw_view *view, const struct hw_sums *sums, struct hw_error *error)
{
    const enum hw_measure_id id = sums->chosen ? sums->measure : hw_measure_usual(view);
    const char *unknown = hw_measure_unknown(view, id);
    if (!unknown)
        return id;
    hw_error_set(error, "%s: this profile has no '%s': %s", view->profile->path ? view->profile->path : "profile",
                 hw_measures[id].key, unknown);
    return HW_MEASURES;
}

/* ---- sums by group ---- */

struct summing {
    struct hw_group *known;
    uint32_t *active;               /* by group: times on the stack */
    unsigned __int128 *before, sum; /* by group: the sum when it was entered; the running sum */
};

static void sum_enter(void *closure, uint32_t group)
{
    struct summing *summing = closure;
    if (!summing->active[group]++)
        summing->before[group] = summing->sum;
}

static void sum_own(void *closure, uint32_t group, uint64_t value)
{
    struct summing *summing = closure;
    summing->known[group].self = hw_add_saturating(summing->known[group].self, value);
    summing->sum += value;
}

static void sum_leave(void *closure, uint32_t group)
{
    struct summing *summing = closure;
    if (--summing->active[group])
        return;
    const unsigned __int128 inside = summing->sum - summing->before[group];
    summing->known[group].total =
        hw_add_saturating(summing->known[group].total, inside > UINT64_MAX ? UINT64_MAX : (uint64_t)inside);
}

static int compare_groups(const void *left, const void *right)
{
    const struct hw_group *a = left, *b = right;
    return HW_ORDER(b->total, a->total) ?: HW_ORDER(b->self, a->self) ?: HW_ORDER(a->location, b->location)
        ?: HW_ORDER(a->frame, b->frame) ?: HW_ORDER(a->size_most, b->size_most);
}

/* Those with a total, greatest first; returns their number. */
size_t hw_groups_sort(struct hw_group *group, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (group[i].total)
            group[kept++] = group[i];
    qsort(group, kept, sizeof *group, compare_groups);
    return kept;
}

static bool sum_frames(struct hw_groups *groups, const struct hw_view *view, enum hw_by by, enum hw_measure_id measure,
                       bool full)
{
    static const struct hw_call_visitor visitor = {sum_enter, sum_own, sum_leave};
    struct hw_call_walk walk;
    bool fine = hw_call_walk_make(&walk, view, by, measure, full);
    struct summing summing = {.known = walk.known,
                              .active = calloc(walk.known_count + 1, sizeof *summing.active),
                              .before = malloc((walk.known_count + 1) * sizeof *summing.before)};
    fine = fine && summing.active && summing.before;
    if (fine) {
        hw_call_walk_visit(&walk, &visitor, &summing);
        *groups = (struct hw_groups){.group = walk.known,
                                     .count = hw_groups_sort(walk.known, walk.known_count),
                                     .total = walk.total,
                                     .none = walk.none};
        walk.known = NULL;
    }
    free(summing.active);
    free(summing.before);
    hw_call_walk_free(&walk);
    return fine;
}

/* ---- sums by what a place as a whole is ---- */

static bool starts(const char *text, const char *beginning)
{
    return !strncmp(text, beginning, strlen(beginning));
}

enum thread_start { NO_START, MAIN_START, THREAD_START };

/* What the frames from END on start. The main thread's have names, or lie in the dynamic linker; those of other threads
 * are two, which libraries without a symbol table do not name. */
static enum thread_start start_of(const struct hw_view_stack *stack, size_t end)
{
    static const char *const beginnings[] = {"_start", "__libc_start_", "libc_start_", "_dl_", "call_init"};
    const char *last = end ? stack->frames[end - 1].symbol->function : NULL;
    bool named = false;
    if (last && !strcmp(last, "main"))
        return MAIN_START;
    for (size_t i = end; i < stack->count; i++) {
        const struct hw_view_frame *frame = &stack->frames[i];
        const char *function = frame->symbol->function;
        if (frame->module && starts(frame->module->name, "ld-"))
            return MAIN_START;
        named |= function != NULL;
        for (size_t k = 0; function && k < sizeof beginnings / sizeof *beginnings; k++)
            if (starts(function, beginnings[k]))
                return MAIN_START;
    }
    return named || stack->count - end >= 2 ? THREAD_START : NO_START;
}

/* The function that the thread of the stack started with, as far as the stack reaches that. */
static void group_by_thread(const struct hw_view *view, const struct hw_view_stack *stack, struct hw_group *group,
                            struct hw_key *key)
{
    const size_t end = stack->count ? hw_stack_without_start(stack) : 0;
    const enum thread_start start = start_of(stack, end);
    group->main = start == MAIN_START;
    *key = (struct hw_key){start, 1};
    if (start != THREAD_START)
        return;
    const struct hw_view_frame *frame = &stack->frames[end - 1];
    const struct hw_view_location *location = &view->locations[frame->location];
    group->location = frame->location;
    group->frame = (uint32_t)(frame->symbol - location->frames.frame);
    *key = hw_call_group_key(view, location, frame->symbol, HW_BY_FUNCTION);
}

bool hw_stack_thread_start(const struct hw_view *view, const struct hw_view_stack *stack, uint32_t *location,
                           uint32_t *frame)
{
    struct hw_group group = {.location = HW_NONE};
    struct hw_key key;
    group_by_thread(view, stack, &group, &key);
    *location = group.location;
    *frame = group.frame;
    return group.location != HW_NONE;
}

/* ---- sums by thread ---- */

/* What the thread itself has of the measure, if that is kept. */
static bool thread_value(const struct hw_profile_thread *thread, enum hw_measure_id measure, uint64_t *value)
{
    switch (measure) {
    case HW_MEASURE_PEAK:
        *value = thread->peak_bytes > 0 ? (uint64_t)thread->peak_bytes : 0;
        return true;
    case HW_MEASURE_BYTES:
        *value = thread->bytes;
        return true;
    case HW_MEASURE_COUNT:
        *value = thread->allocations;
        return true;
    case HW_MEASURE_LEAKED:
        *value = thread->live_bytes > 0 ? (uint64_t)thread->live_bytes : 0;
        return true;
    case HW_MEASURE_LIVE_COUNT:
        *value = thread->live_blocks > 0 ? (uint64_t)thread->live_blocks : 0;
        return true;
    default:
        return false;
    }
}

/* All of the profile is shown, so that the threads' own numbers are those of the view. */
static bool has_threads(const struct hw_view *view, enum hw_measure_id measure)
{
    uint64_t value;
    const struct hw_rules *rules = view->rules;
    return hw_view_has_threads(view) && (!rules || (!rules->of[HW_RULE_IGNORE] && !rules->of[HW_RULE_FOCUS])) &&
           !view->profile->observed && thread_value(view->threads[0].is, measure, &value);
}

static bool sum_threads(struct hw_groups *groups, const struct hw_view *view, enum hw_measure_id measure, bool full)
{
    size_t count;
    struct hw_view_thread_row *rows = hw_view_thread_rows(view, HW_THREADS_EACH, !full, &count);
    *groups = (struct hw_groups){.group = malloc((count + 1) * sizeof *groups->group)};
    for (size_t i = 0; rows && groups->group && i < count; i++) {
        struct hw_group *group = &groups->group[i];
        *group = (struct hw_group){.location = rows[i].thread->location,
                                   .frame = rows[i].thread->frame,
                                   .main = rows[i].sum.flags & HW_THREAD_MAIN,
                                   .thread = rows[i].index + 1};
        thread_value(&rows[i].sum, measure, &group->total);
        group->self = group->total;
        group->threads = rows[i].sum.threads;
        group->names = rows[i].names;
        groups->total = hw_add_saturating(groups->total, group->total);
    }
    const bool fine = rows && groups->group;
    if (fine)
        groups->count = hw_groups_sort(groups->group, count);
    else
        hw_groups_free(groups);
    free(rows);
    return fine;
}

/* The least power of two, from 16 on, that the mean size is not above. */
static uint64_t size_class(const struct hw_view *view, const struct hw_profile_context *sum)
{
    if (!sum->allocations || !hw_view_mean_fits(view, sum))
        return 0;
    const uint64_t mean = sum->bytes / sum->allocations + (sum->bytes % sum->allocations != 0);
    uint64_t most = 16;
    while (most < mean && most < (uint64_t)1 << 62)
        most *= 2;
    return most;
}

static bool group_context(const struct hw_view *view, enum hw_by by, const struct hw_profile_context *sum,
                          struct hw_view_stack *stack, struct hw_group *group, struct hw_key *key)
{
    *group = (struct hw_group){.location = HW_NONE, .frame = HW_NONE};
    if (by == HW_BY_TYPE) {
        group->name = hw_view_type(view, sum);
        *key = group->name ? hw_key_of(group->name, strlen(group->name), "", 0) : (struct hw_key){0, 1};
    } else if (by == HW_BY_SIZE) {
        group->size_most = size_class(view, sum);
        *key = (struct hw_key){group->size_most, 1};
    } else {
        if (!hw_view_stack(view, sum->leaf, stack))
            return false;
        group_by_thread(view, stack, group, key);
    }
    return true;
}

static bool sum_contexts(struct hw_groups *groups, const struct hw_view *view, enum hw_by by,
                         enum hw_measure_id measure)
{
    struct hw_index index = {0};
    struct hw_view_stack stack = {0};
    *groups = (struct hw_groups){.group = malloc((view->context_count + 1) * sizeof *groups->group)};
    bool fine = groups->group && hw_index_make(&index, view->context_count);
    for (size_t i = 0; i < view->context_count && fine; i++) {
        const uint64_t value = hw_measure_value(view, measure, &view->contexts[i]);
        struct hw_group group;
        struct hw_key key;
        bool new;
        if (!value)
            continue;
        fine = group_context(view, by, &view->contexts[i].sum, &stack, &group, &key);
        const uint32_t number = fine ? hw_index_intern(&index, key, (uint32_t)groups->count, &new) : 0;
        if (!fine)
            break;
        if (new)
            groups->group[groups->count++] = group;
        struct hw_group *to = &groups->group[number];
        to->self = to->total = hw_add_saturating(to->total, value);
        groups->total = hw_add_saturating(groups->total, value);
    }
    hw_index_free(&index);
    hw_view_stack_free(&stack);
    if (fine)
        groups->count = hw_groups_sort(groups->group, groups->count);
    else
        hw_groups_free(groups);
    return fine;
}

bool hw_groups_make(struct hw_groups *groups, const struct hw_view *view, enum hw_by by, enum hw_measure_id measure,
                    bool full)
{
    *groups = (struct hw_groups){0};
    if (by == HW_BY_THREAD && has_threads(view, measure))
        return sum_threads(groups, view, measure, full);
    return hw_by_keys[by].of_frames ? sum_frames(groups, view, by, measure, full)
                                    : sum_contexts(groups, view, by, measure);
}

void hw_groups_free(struct hw_groups *groups)
{
    free(groups->group);
    *groups = (struct hw_groups){0};
}
