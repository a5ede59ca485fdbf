/* block_types.c - see block_types.h.
 *
 * From the leaf on, each physical frame of a context is asked. A frame that returns the block leads to its caller, and
 * so does an allocation wrapper of which nothing is known. Types that fit:
 *
 *   the block is as large as the type, or ends with its flexible array: certain, whatever the evidence. Of several
 *   types the one that begins with the others (a derived class) is right; others contradict each other, and the
 *   context has no type.
 *   all sizes are multiples of the type's: an array, if a variable of the calling function itself, the member that it
 *   is stored to, or the function's declaration says so, and if the sizes of all contexts fit that come here: a
 *   pointer to a common header does not make an array of headers. */
#include "report/view/block_types.h"

#include <stdlib.h>
#include <string.h>

#include "report/view/frame_roles.h"
#include "report/view/sampled_fields.h"

enum { FRAMES_MOST = 12 };

#define STRONG                                                                                                        \
    (1u << HW_TYPE_ALLOCATOR | 1u << HW_TYPE_VARIABLE | 1u << HW_TYPE_MEMBER | 1u << HW_TYPE_RESULT)

/* What is known of the call at a location. */
struct answer {
    struct hw_call_query query;
    bool wanted, asked;
    uint16_t refuted; /* bits of types: some size does not fit */
};

struct finder {
    struct hw_view *view;
    struct answer *answer; /* by location */
};

/* A frame on the way up: what the call there returned begins at OFFSET in the block. */
struct at {
    uint32_t node;
    int64_t offset;
};

static const struct hw_view_location *location_of(const struct finder *finder, struct at at)
{
    return &finder->view->locations[finder->view->nodes[at.node].location];
}

static struct answer *answer_of(const struct finder *finder, struct at at)
{
    return &finder->answer[finder->view->nodes[at.node].location];
}

static bool is_wrapper(const struct hw_view_location *location)
{
    for (uint32_t i = 0; i < location->frames.count; i++)
        if (!(hw_location_role(location, i) & HW_FRAME_WRAPPER))
            return false;
    return true;
}

/* The frame that the block goes to next; node 0: none is known. */
static struct at next_of(const struct finder *finder, struct at at)
{
    const struct answer *answer = answer_of(finder, at);
    const uint32_t parent = finder->view->nodes[at.node].parent;
    if (answer->query.returned)
        return (struct at){parent, at.offset + answer->query.returned_offset};
    if (!answer->query.count && is_wrapper(location_of(finder, at)))
        return (struct at){parent, at.offset};
    return (struct at){0, 0};
}

/* The type was stored in the profile, or the program said it. Where single accesses were sampled, the members are
 * needed as well, which are not stored. */
static bool is_answered(const struct hw_view *view, size_t context)
{
    return view->contexts[context].sum.type &&
           !(view->profile->sample_access_count && view->sampled &&
             (view->sampled[context].reads || view->sampled[context].writes));
}

/* ---- asking ---- */

static bool ask_module(struct finder *finder, struct hw_call_types *types, size_t module, struct hw_error *error)
{
    struct hw_view *view = finder->view;
    size_t count = 0;
    struct hw_call_query *query = malloc((view->location_count + 1) * sizeof *query);
    bool fine = query != NULL;
    for (size_t i = 0; fine && i < view->location_count; i++)
        if (finder->answer[i].wanted && view->locations[i].module == module)
            query[count++] = (struct hw_call_query){.address = view->locations[i].address};
    fine = fine && (!count || hw_call_types_ask(types, view->modules[module].symbols, query, count, error));
    for (size_t i = 0, k = 0; fine && i < view->location_count; i++)
        if (finder->answer[i].wanted && view->locations[i].module == module) {
            finder->answer[i].query = query[k++];
            finder->answer[i].wanted = false;
        }
    free(query);
    return fine;
}

/* Asks about the frames at AT, by context. */
static bool ask(struct finder *finder, struct hw_call_types *types, const struct at *at, struct hw_error *error)
{
    struct hw_view *view = finder->view;
    bool *modules = calloc(view->module_count + 1, sizeof *modules);
    bool fine = modules != NULL;
    for (size_t i = 0; fine && i < view->context_count; i++) {
        if (!at[i].node)
            continue;
        const uint32_t module = location_of(finder, at[i])->module;
        struct answer *answer = answer_of(finder, at[i]);
        if (answer->asked)
            continue;
        answer->asked = true;
        answer->wanted = module != HW_NONE && view->modules[module].symbols >= 0;
        if (answer->wanted)
            modules[module] = true;
    }
    for (size_t i = 0; fine && i < view->module_count; i++)
        if (modules[i])
            fine = ask_module(finder, types, i, error);
    free(modules);
    return fine;
}

static bool ask_all(struct finder *finder, struct hw_call_types *types, struct hw_error *error)
{
    const struct hw_view *view = finder->view;
    struct at *at = malloc((view->context_count + 1) * sizeof *at);
    bool fine = at != NULL, more = fine;
    for (size_t i = 0; fine && i < view->context_count; i++)
        at[i] = (struct at){is_answered(view, i) ? 0 : view->contexts[i].sum.leaf, 0};
    for (int round = 0; fine && more && round < FRAMES_MOST; round++) {
        fine = ask(finder, types, at, error);
        more = false;
        for (size_t i = 0; fine && i < view->context_count; i++)
            if (at[i].node) {
                at[i] = next_of(finder, at[i]);
                more |= at[i].node != 0;
            }
    }
    free(at);
    return fine;
}

/* ---- sizes ---- */

enum fit { NO_FIT, MANY, WHOLE };

static enum fit fit_of(const struct hw_view *view, const struct hw_profile_context *sum,
                       const struct hw_call_type *type, int64_t offset)
{
    const int64_t begin = offset + type->offset;
    if (begin < 0 || sum->size_min <= (uint64_t)begin)
        return NO_FIT;
    const uint64_t least = sum->size_min - (uint64_t)begin, most = sum->size_max - (uint64_t)begin;
    if (least == most && least == type->size)
        return type->scalar ? MANY : WHOLE;
    if (type->tail_size && least >= type->tail && (least - type->tail) % type->tail_size == 0 &&
        (most - type->tail) % type->tail_size == 0)
        return WHOLE;
    if (least % type->size || most % type->size)
        return NO_FIT;
    if (!hw_view_sampled(view) && !sum->reallocations && (sum->bytes - sum->allocations * (uint64_t)begin) % type->size)
        return NO_FIT;
    return MANY;
}

static void refute(struct finder *finder, const struct hw_profile_context *sum)
{
    struct at at = {sum->leaf, 0};
    for (int i = 0; at.node && i < FRAMES_MOST; i++, at = next_of(finder, at)) {
        struct answer *answer = answer_of(finder, at);
        for (uint32_t k = 0; k < answer->query.count && k < 16; k++)
            if (fit_of(finder->view, sum, &answer->query.types[k], at.offset) == NO_FIT)
                answer->refuted |= (uint16_t)(1u << k);
    }
}

/* Parts within a block have types, too. What is meant is the whole of it, or what a function returns that puts something
 * before it, or the elements behind the number of them that new T[n] stores. */
static bool begins_there(const struct answer *answer, const struct hw_call_type *type, enum fit fit)
{
    if (!type->offset || (answer->query.returned && answer->query.returned_offset == type->offset))
        return true;
    return type->offset == sizeof(uint64_t) && fit == MANY && !type->scalar && !answer->query.single &&
           type->evidence & 1u << HW_TYPE_VARIABLE;
}

/* ---- choosing ---- */

/* A block of type A begins with one of type B. */
static bool begins_with(const struct hw_call_type *a, const struct hw_call_type *b)
{
    for (size_t i = 0; i < HW_FIRST_PARTS && a->first[i]; i++)
        if (a->first[i] == b->name && a->offset == b->offset)
            return true;
    return false;
}

struct choice {
    const struct hw_call_type *whole, *many;
    bool conflict, many_conflict;
};

/* Of several that are as large as the block. */
static void take_whole(struct choice *choice, const struct hw_call_type *type)
{
    const struct hw_call_type *old = choice->whole;
    if (!old || begins_with(type, old) || (!(old->evidence & ~(1u << HW_TYPE_ARGUMENT)) &&
                                           type->evidence & ~(1u << HW_TYPE_ARGUMENT) && !begins_with(old, type)))
        choice->whole = type;
    else if (!begins_with(old, type) &&
             (type->evidence & ~(1u << HW_TYPE_ARGUMENT) || !(old->evidence & ~(1u << HW_TYPE_ARGUMENT))))
        choice->conflict = true;
}

/* Bytes are what anything can be seen as. */
static void take_many(struct choice *choice, const struct hw_call_type *type)
{
    const struct hw_call_type *old = choice->many;
    if (!old || (old->size == 1 && type->size > 1) || (old->scalar && !type->scalar) || begins_with(type, old))
        choice->many = type;
    else if (!(type->size == 1 && old->size > 1) && !(type->scalar && !old->scalar) && !begins_with(old, type))
        choice->many_conflict = true;
}

static bool may_be_many(const struct answer *answer, uint32_t index, bool wrapper)
{
    const struct hw_call_type *type = &answer->query.types[index];
    if (answer->refuted >> index & 1 || !(type->evidence & STRONG))
        return false;
    if (answer->query.single && !(type->evidence & 1u << HW_TYPE_ALLOCATOR))
        return false;
    if (wrapper && !(type->evidence & 1u << HW_TYPE_ALLOCATOR))
        return false;
    /* The caller of a function that returns void * knows better. */
    return !answer->query.returned || type->evidence & (1u << HW_TYPE_RESULT | 1u << HW_TYPE_ALLOCATOR);
}

/* Whether frames below AT, on the way from LEAF, have blocks of a type in whose sizes it is not: it is the begin of
 * others, then. */
static bool refuted_below(const struct finder *finder, uint32_t leaf, struct at end, const struct hw_call_type *type)
{
    for (struct at at = {leaf, 0}; at.node && at.node != end.node; at = next_of(finder, at)) {
        const struct answer *answer = answer_of(finder, at);
        for (uint32_t k = 0; k < answer->query.count && k < 16; k++)
            if (answer->refuted >> k & 1 && answer->query.types[k].name == type->name)
                return true;
    }
    return false;
}

static bool is_string(const struct hw_view_location *location)
{
    const char *name = location->frames.frame[0].function;
    name = name ? hw_qualified_name(name) : "";
    return !strncmp(name, "std::__cxx11::basic_string<char,", 32) || !strncmp(name, "std::string::", 13) ||
           !strncmp(name, "std::basic_string<char,", 23);
}

/* TYPE, of a call whose result lies at OFFSET in the block. */
static struct hw_context_layout layout_at(const struct hw_call_type *type, int64_t offset)
{
    return (struct hw_context_layout){.type = type, .begin = (uint64_t)(offset + type->offset)};
}

/* What the blocks of a context are. */
static struct hw_context_layout choose(const struct finder *finder, const struct hw_profile_context *sum)
{
    static const struct hw_call_type characters = {
        .name = "char", .size = 1, .evidence = 1u << HW_TYPE_ALLOCATOR, .scalar = true};
    struct hw_context_layout many = {0};
    struct at at = {sum->leaf, 0};
    for (int i = 0; at.node && i < FRAMES_MOST; i++, at = next_of(finder, at)) {
        const struct answer *answer = answer_of(finder, at);
        const bool wrapper = is_wrapper(location_of(finder, at));
        struct choice choice = {0};
        for (uint32_t k = 0; k < answer->query.count; k++) {
            const struct hw_call_type *type = &answer->query.types[k];
            const enum fit fit = fit_of(finder->view, sum, type, at.offset);
            if (!begins_there(answer, type, fit))
                continue;
            if (fit == WHOLE)
                take_whole(&choice, type);
            else if (fit == MANY && k < 16 && may_be_many(answer, k, wrapper) &&
                     !refuted_below(finder, sum->leaf, at, type))
                take_many(&choice, type);
        }
        if (choice.whole)
            return choice.conflict ? (struct hw_context_layout){0} : layout_at(choice.whole, at.offset);
        if (!many.type && choice.many && choice.many_conflict)
            return (struct hw_context_layout){0};
        many = many.type || !choice.many ? many : layout_at(choice.many, at.offset);
        if (!many.type && !answer->query.known && is_string(location_of(finder, at)))
            many = layout_at(&characters, 0);
    }
    if (many.type && many.type->tail_size) /* there is one of it, and something else behind its flexible array */
        return (struct hw_context_layout){0};
    many.array = many.type && (many.type->size != sum->size_min || many.type->size != sum->size_max);
    return many;
}

/* ---- all of them ---- */

bool hw_view_make_types(struct hw_view *view, struct hw_error *error)
{
    const struct hw_profile *profile = view->profile;
    struct finder finder = {.view = view};
    if (!view->symbolizer || profile->llvm || profile->access_counted || profile->fields.counted ||
        !hw_view_measured(view, HW_MEASURED_SIZE_RANGE))
        return true;
    struct hw_call_types *types = hw_call_types_new(view->symbolizer, error);
    struct hw_context_layout *layout = calloc(view->context_count + 1, sizeof *layout);
    finder.answer = types ? calloc(view->location_count + 1, sizeof *finder.answer) : NULL;
    bool fine = layout && finder.answer && ask_all(&finder, types, error);
    for (size_t i = 0; fine && i < view->context_count; i++)
        if (!is_answered(view, i))
            refute(&finder, &view->contexts[i].sum);
    for (size_t i = 0; fine && i < view->context_count; i++) {
        struct hw_profile_context *sum = &view->contexts[i].sum;
        if (!is_answered(view, i))
            layout[i] = choose(&finder, sum);
        const struct hw_call_type *type = layout[i].type;
        if (!type || sum->type)
            continue;
        sum->type = hw_symbolizer_add_type(view->symbolizer, type->name);
        sum->type_size = type->size;
        sum->type_many = layout[i].array;
        sum->type_evidence = (uint32_t)__builtin_ctz(type->evidence);
        fine = sum->type != 0;
    }
    fine = fine && hw_view_make_sampled_fields(view, types, layout, error);
    free(finder.answer);
    free(layout);
    hw_call_types_free(types);
    return fine;
}

const char *hw_type_evidence_key(uint32_t evidence)
{
    static const char *const keys[HW_TYPE_EVIDENCES] = {[HW_TYPE_RUN] = "program",
                                                        [HW_TYPE_CONSTRUCTOR] = "constructor",
                                                        [HW_TYPE_ALLOCATOR] = "template",
                                                        [HW_TYPE_VARIABLE] = "variable",
                                                        [HW_TYPE_MEMBER] = "stored",
                                                        [HW_TYPE_RESULT] = "returned",
                                                        [HW_TYPE_ARGUMENT] = "argument"};
    return evidence < HW_TYPE_EVIDENCES ? keys[evidence] : NULL;
}
