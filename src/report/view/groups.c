/* groups.c - see groups.h.
 *
 * Everything is one walk over the tree of calls, depth first: frames are entered and left, and what contexts allocated
 * is met in between. So the sum behind a frame is the difference of two running sums, and what is on the stack is known
 * without any stack being read. */
#include "report/view/groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/growing.h"
#include "base/index.h"
#include "base/order.h"
#include "report/buffer.h"
#include "report/text/stack_fold.h"
#include "report/view/frame_roles.h"

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

/* ---- groups of frames ---- */

/* What frames are in, and where in the tree of calls contexts stand. */
struct walk {
    const struct hw_view *view;
    size_t *offset;         /* by location: of its innermost frame in `group` */
    uint32_t *group;        /* by frame of a location */
    struct hw_group *known; /* by group */
    size_t known_count;
    uint32_t *first, *next; /* by node: its first child, the next one of its parent; 0: none */
    uint64_t *own;          /* by node: what contexts allocated whose headline is there */
    uint32_t *place;        /* by node: the frame that is the headline; HW_NONE: none */
    uint32_t *start;        /* by node: how many of its outermost frames are start code */
    uint64_t total, none;   /* as in struct hw_groups */
};

/* Equal keys mean the same group. NUMBER is that of the location. */
static struct hw_key key_of(const struct hw_view_location *location, const struct hw_frame *symbol, size_t number,
                            enum hw_by by)
{
    const struct hw_key module = {location->module, (uint64_t)1 << 63};
    if (by == HW_BY_MODULE)
        return module;
    if (by == HW_BY_FUNCTION)
        return symbol->function ? (struct hw_key){(uintptr_t)symbol->function, location->module}
                                : (struct hw_key){number, (uint64_t)1 << 62};
    if (!symbol->file)
        return module;
    const uint32_t line = by == HW_BY_LINE ? symbol->line : 0;
    return hw_key_of(symbol->file, strlen(symbol->file), &line, sizeof line);
}

static bool number_frames(struct walk *walk, enum hw_by by)
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
            const struct hw_key key = key_of(location, &location->frames.frame[k], i, by);
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
static void mark(struct walk *walk, uint32_t leaf, struct extent extent, uint64_t value)
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

static bool mark_contexts(struct walk *walk, enum hw_measure_id measure, bool full)
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

static void walk_free(struct walk *walk)
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

static bool walk_make(struct walk *walk, const struct hw_view *view, enum hw_by by, enum hw_measure_id measure,
                      bool full)
{
    const size_t nodes = view->node_count + 1;
    *walk = (struct walk){.view = view,
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

struct visitor {
    void (*enter)(void *closure, uint32_t group);
    void (*own)(void *closure, uint32_t group, uint64_t value); /* GROUP: the one entered last */
    void (*leave)(void *closure, uint32_t group);
};

/* The groups of a node's frames, and how many of them count where other frames are called. */
static const uint32_t *groups_of(const struct walk *walk, uint32_t node, uint32_t *count)
{
    const uint32_t location = walk->view->nodes[node].location;
    *count = walk->view->locations[location].frames.count - walk->start[node];
    return walk->group + walk->offset[location];
}

static void enter_node(const struct walk *walk, uint32_t node, const struct visitor *visitor, void *closure)
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

static void leave_node(const struct walk *walk, uint32_t node, const struct visitor *visitor, void *closure)
{
    uint32_t count;
    const uint32_t *group = groups_of(walk, node, &count);
    for (uint32_t i = 0; i < count; i++)
        visitor->leave(closure, group[i]);
}

static void walk_nodes(const struct walk *walk, const struct visitor *visitor, void *closure)
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
static size_t sort_groups(struct hw_group *group, size_t count)
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
    static const struct visitor visitor = {sum_enter, sum_own, sum_leave};
    struct walk walk;
    bool fine = walk_make(&walk, view, by, measure, full);
    struct summing summing = {.known = walk.known,
                              .active = calloc(walk.known_count + 1, sizeof *summing.active),
                              .before = malloc((walk.known_count + 1) * sizeof *summing.before)};
    fine = fine && summing.active && summing.before;
    if (fine) {
        walk_nodes(&walk, &visitor, &summing);
        *groups = (struct hw_groups){.group = walk.known,
                                     .count = sort_groups(walk.known, walk.known_count),
                                     .total = walk.total,
                                     .none = walk.none};
        walk.known = NULL;
    }
    free(summing.active);
    free(summing.before);
    walk_free(&walk);
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
    *key = key_of(location, frame->symbol, frame->location, HW_BY_FUNCTION);
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
        groups->count = sort_groups(groups->group, groups->count);
    else
        hw_groups_free(groups);
    return fine;
}

bool hw_groups_make(struct hw_groups *groups, const struct hw_view *view, enum hw_by by, enum hw_measure_id measure,
                    bool full)
{
    *groups = (struct hw_groups){0};
    return hw_by_keys[by].of_frames ? sum_frames(groups, view, by, measure, full)
                                    : sum_contexts(groups, view, by, measure);
}

void hw_groups_free(struct hw_groups *groups)
{
    free(groups->group);
    *groups = (struct hw_groups){0};
}

/* ---- the function of a sandwich ---- */

/* NAME without the returned type and the parameters: where it begins, and its SIZE. */
static const char *plain_name(const char *name, size_t *size)
{
    const char *at = hw_qualified_name(name);
    int depth = 0;
    *size = 0;
    while (at[*size]) {
        const char here = at[*size];
        if (here == '(' && depth == 0 && *size && !starts(at + *size, "(anonymous namespace)"))
            break;
        depth += here == '<' ? 1 : here == '>' ? -1 : 0;
        ++*size;
    }
    return at;
}

/* The part behind the last "::" that is not between brackets. */
static const char *last_part(const char *name, size_t *size)
{
    size_t from = 0;
    int depth = 0;
    for (size_t i = 0; i + 1 < *size; i++) {
        depth += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
        if (depth == 0 && name[i] == ':' && name[i + 1] == ':')
            from = i + 2;
    }
    *size -= from;
    return name + from;
}

#define NAME_LEVELS 3

static bool is_called(const struct hw_frame *symbol, const char *wanted, int level)
{
    size_t size;
    if (!symbol->function)
        return false;
    if (level == 0)
        return !strcmp(symbol->function, wanted) || (symbol->linkage_name && !strcmp(symbol->linkage_name, wanted));
    const char *name = plain_name(symbol->function, &size);
    if (level == 2)
        name = last_part(name, &size);
    return strlen(wanted) == size && !strncmp(name, wanted, size);
}

static const struct hw_frame *symbol_of(const struct walk *walk, size_t group)
{
    return &walk->view->locations[walk->known[group].location].frames.frame[walk->known[group].frame];
}

/* Fills TARGET, by group. Returns how many functions have the name, in the strictest sense in which there is one. */
static size_t find_function(const struct walk *walk, const char *wanted, bool *target)
{
    size_t found = 0;
    for (int level = 0; level < NAME_LEVELS && !found; level++)
        for (size_t i = 0; i < walk->known_count; i++) {
            target[i] = is_called(symbol_of(walk, i), wanted, level);
            found += target[i];
        }
    return found;
}

#define LONGEST_COMPARED 63
#define NEAREST          3

static char lower(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? (char)(letter + 'a' - 'A') : letter;
}

/* How many letters must be changed, added or left out between A and B. */
static size_t distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
    size_t row[LONGEST_COMPARED + 1];
    if (a_size > LONGEST_COMPARED || b_size > LONGEST_COMPARED)
        return SIZE_MAX;
    for (size_t k = 0; k <= b_size; k++)
        row[k] = k;
    for (size_t i = 1; i <= a_size; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t k = 1; k <= b_size; k++) {
            const size_t changed = diagonal + (lower(a[i - 1]) != lower(b[k - 1]));
            const size_t added = (row[k] < row[k - 1] ? row[k] : row[k - 1]) + 1;
            diagonal = row[k];
            row[k] = changed < added ? changed : added;
        }
    }
    return row[b_size];
}

static bool contains(const char *text, size_t size, const char *part)
{
    const size_t length = strlen(part);
    for (size_t i = 0; i + length <= size; i++)
        if (!strncasecmp(text + i, part, length))
            return true;
    return false;
}

/* "no function of that name is on a stack; near: zslInsert, zslInsertNode". */
static void say_nearest(const struct walk *walk, const char *wanted, struct hw_error *error)
{
    const char *best[NEAREST] = {NULL};
    size_t far[NEAREST] = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
    const size_t length = strlen(wanted), most = length / 3 < 2 ? 2 : length / 3;
    struct hw_buffer text = {0};
    for (size_t i = 0; i < walk->known_count; i++) {
        const char *function = symbol_of(walk, i)->function;
        size_t size;
        if (!function)
            continue;
        const char *name = plain_name(function, &size), *part;
        size_t part_size = size;
        part = last_part(name, &part_size);
        const size_t whole = distance(name, size, wanted, length), last = distance(part, part_size, wanted, length);
        size_t apart = whole < last ? whole : last;
        if (apart > most)
            apart =
                length > 2 && contains(name, size, wanted) ? most + 1 + (size > length ? size - length : 0) : SIZE_MAX;
        bool known = apart == SIZE_MAX;
        for (size_t k = 0; k < NEAREST; k++)
            known |= best[k] && !strcmp(best[k], function);
        for (size_t k = 0; k < NEAREST && !known; k++) {
            if (apart >= far[k])
                continue;
            memmove(best + k + 1, best + k, (NEAREST - 1 - k) * sizeof *best);
            memmove(far + k + 1, far + k, (NEAREST - 1 - k) * sizeof *far);
            best[k] = function;
            far[k] = apart;
            break;
        }
    }
    for (size_t k = 0; k < NEAREST && best[k]; k++) {
        hw_buffer_add(&text, "%s", k ? ", " : "; nearest: ");
        hw_buffer_clean(&text, best[k], HW_CLEAN_UTF8);
    }
    hw_error_set(error, "%s: no stack has a function '%s'%s",
                 walk->view->profile->path ? walk->view->profile->path : "profile", wanted, hw_buffer_text(&text));
    hw_buffer_free(&text);
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
static struct hw_group *valued_groups(const struct walk *walk, const uint64_t *values, size_t *count)
{
    struct hw_group *group = malloc((walk->known_count + 1) * sizeof *group);
    for (size_t i = 0; group && i < walk->known_count; i++) {
        group[i] = walk->known[i];
        group[i].self = 0;
        group[i].total = values[i];
    }
    *count = group ? sort_groups(group, walk->known_count) : 0;
    return group;
}

static bool sandwich_lists(struct hw_sandwich *sandwich, const struct walk *walk, const struct sandwiching *at)
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
    static const struct visitor visitor = {sandwich_enter, sandwich_own, sandwich_leave};
    struct walk walk;
    *sandwich = (struct hw_sandwich){0};
    bool fine = walk_make(&walk, view, HW_BY_FUNCTION, measure, full);
    bool *target = calloc(walk.known_count + 1, sizeof *target);
    struct sandwiching at = {.target = target,
                             .inner = HW_NONE,
                             .caller = HW_NONE,
                             .callers = calloc(walk.known_count + 1, sizeof *at.callers),
                             .callees = calloc(walk.known_count + 1, sizeof *at.callees)};
    fine = fine && target && at.callers && at.callees;
    if (fine && (sandwich->functions = find_function(&walk, function, target)) != 0) {
        walk_nodes(&walk, &visitor, &at);
        fine = !at.failed && sandwich_lists(sandwich, &walk, &at);
    }
    if (!fine)
        hw_error_set(error, "%s: not enough memory for the report",
                     view->profile->path ? view->profile->path : "profile");
    else if (!sandwich->functions)
        say_nearest(&walk, function, error);
    fine = fine && sandwich->functions;
    free(at.stack);
    free(at.callers);
    free(at.callees);
    free(target);
    walk_free(&walk);
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

/* ---- trees ---- */

/* What a step from function to function has changed on the path, to be taken back. */
struct step {
    uint32_t group, depth, at; /* before it */
    uint32_t slot, node;       /* what stood on the path; slot 0: nothing was changed */
};

/* The tree from the root on, without detours, and the path to where the walk is. */
struct growing_tree {
    const struct walk *walk;
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

static bool grow_top_down(struct hw_tree *tree, const struct walk *walk)
{
    static const struct visitor visitor = {tree_enter, tree_own, tree_leave};
    struct growing_tree growing = {.walk = walk, .tree = tree, .at = calloc(walk->known_count + 1, sizeof *growing.at)};
    growing.failed =
        !growing.at || !HW_GROW(growing.path, growing.path_room, 1) || add_node(tree, 0, HW_NONE, &no_group) == HW_NONE;
    if (!growing.failed) {
        memset(growing.path, 0, growing.path_room * sizeof *growing.path);
        walk_nodes(walk, &visitor, &growing);
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
    struct walk walk;
    struct hw_tree down = {0};
    *tree = (struct hw_tree){.whole = hw_measure_whole(view, measure)};
    bool fine = walk_make(&walk, view, HW_BY_FUNCTION, measure, full) && grow_top_down(&down, &walk);
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
    walk_free(&walk);
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
