/* sampled_fields.c - see sampled_fields.h.
 *
 * One pass over the accesses, burst by burst. An access to bytes of two fields counts for both, as in counted programs.
 * Accesses of a burst depend on each other, so the uncertainty of a field's share is that of a ratio of sums over
 * bursts: of x accesses to the field and n to the struct in a burst, the variance of X / N is
 * sum (x - n X / N)^2 / N^2. */
#include "report/view/sampled_fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/growing.h"
#include "base/index.h"
#include "base/order.h"

#define BURST_MOST   256 /* accesses */
#define BURSTS_LEAST 10  /* fewer do not say how much they differ */

#define REFUTED      (HW_NONE - 1) /* as the type of a context: the samples are against it */
#define WRONG_LEAST  8             /* accesses that must not be, */
#define WRONG_SHARE  10            /* and one in so many */

struct type {
    struct hw_profile_struct structure;
    struct hw_profile_field *field;
    uint64_t *burst;        /* by field: accesses in this burst */
    double *squares, *with; /* by field, over bursts: accesses squared, accesses times those to the struct */
    double own_squares;
    uint64_t own;    /* accesses to the struct in this burst */
    uint64_t bursts; /* with such accesses */
};

/* A use: what a burst did to an object. */
struct use {
    uint32_t type;
    uint8_t block;
    uint64_t element;
    size_t first, count; /* in `touch` */
};

struct touch {
    uint32_t field, reads, writes;
};

struct group {
    uint32_t type;
    size_t first, count; /* in `member` */
    uint64_t executions;
};

struct member {
    uint32_t field;
    uint64_t reads, writes;
};

struct maker {
    struct hw_view *view;
    const struct hw_context_layout *of;
    struct hw_sampled_fields *to;
    struct type *type;
    size_t type_count, type_room;
    uint32_t *type_of; /* by context; HW_NONE: no struct */
    struct use use[BURST_MOST];
    size_t use_count;
    struct touch *touch; /* of the burst, by use: field_count of its type each */
    size_t touch_count, touch_room;
    struct group *group;
    size_t group_count, group_room;
    struct member *member;
    size_t member_count, member_room;
    struct hw_index groups;
};

/* ---- types ---- */

static bool add_type(struct maker *maker, struct hw_call_types *types, uint32_t context, struct hw_index *known,
                     struct hw_error *error)
{
    const struct hw_call_type *type = maker->of[context].type;
    bool added;
    const uint32_t index = hw_index_intern(known, (struct hw_key){(uintptr_t)type->name, type->size},
                                           (uint32_t)maker->type_count, &added);
    maker->type_of[context] = index;
    if (index == HW_INDEX_NONE || !added)
        return index != HW_INDEX_NONE;
    if (!HW_GROW(maker->type, maker->type_room, maker->type_count + 1))
        return false;
    struct type *to = &maker->type[maker->type_count++];
    *to = (struct type){.own = 0};
    if (!hw_call_types_layout(types, type, &to->structure, &to->field, error))
        return false;
    const size_t count = to->structure.field_count + 1;
    to->structure.type = maker->view->contexts[context].sum.type;
    to->structure.identity = to->structure.type ^ to->structure.size;
    to->burst = calloc(count, sizeof *to->burst);
    to->squares = calloc(count, sizeof *to->squares);
    to->with = calloc(count, sizeof *to->with);
    return to->burst && to->squares && to->with;
}

static bool add_types(struct maker *maker, struct hw_call_types *types, struct hw_error *error)
{
    const struct hw_view *view = maker->view;
    struct hw_index known = {0};
    bool fine = true;
    for (uint32_t i = 0; fine && i < view->context_count; i++) {
        const struct hw_sample_context *sampled = &view->sampled[i];
        const struct hw_call_type *type = maker->of[i].type;
        maker->type_of[i] = HW_NONE;
        if (type && !type->scalar && type->entry && (sampled->reads || sampled->writes))
            fine = add_type(maker, types, i, &known, error);
    }
    hw_index_free(&known);
    return fine;
}

/* ---- one access ---- */

/* The first field that ends behind OFFSET. */
static size_t field_at(const struct type *type, uint64_t offset)
{
    size_t low = 0, high = type->structure.field_count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const struct hw_profile_field *field = &type->field[middle];
        const bool flexible = field->flags & HW_FIELD_FLEXIBLE; /* reaches up to the end of the block */
        if (!flexible && field->offset + field->size <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* NULL: no memory, or a burst of too many objects. */
static struct touch *use_of(struct maker *maker, uint32_t index, uint8_t block, uint64_t element)
{
    const size_t fields = maker->type[index].structure.field_count;
    for (size_t i = 0; i < maker->use_count; i++) {
        const struct use *use = &maker->use[i];
        if (use->type == index && use->block == block && use->element == element)
            return maker->touch + use->first;
    }
    if (maker->use_count == BURST_MOST || !HW_GROW(maker->touch, maker->touch_room, maker->touch_count + fields + 1))
        return NULL;
    maker->use[maker->use_count++] =
        (struct use){.type = index, .block = block, .element = element, .first = maker->touch_count, .count = fields};
    for (size_t i = 0; i < fields; i++)
        maker->touch[maker->touch_count + i] = (struct touch){.field = (uint32_t)i};
    maker->touch_count += fields;
    return maker->touch + maker->use[maker->use_count - 1].first;
}

static uint64_t accesses_of(const struct hw_sample_access *access)
{
    return (access->flags & 1) + (access->flags >> 1 & 1);
}

/* To bytes [OFFSET, END) of an object. Returns whether a field is there. */
static bool take_part(struct maker *maker, const struct hw_sample_access *access, uint32_t index, uint64_t element,
                      uint64_t offset, uint64_t end)
{
    struct type *type = &maker->type[index];
    const bool reads = access->flags & 1, writes = access->flags & 2;
    bool any = false;
    for (size_t i = field_at(type, offset); i < type->structure.field_count; i++) {
        struct hw_profile_field *field = &type->field[i];
        if (field->offset >= end)
            break;
        struct touch *touch = use_of(maker, index, access->block, element);
        if (!touch)
            return any;
        touch[i].reads += reads;
        touch[i].writes += writes;
        field->reads += reads;
        field->writes += writes;
        type->structure.reads += reads;
        type->structure.writes += writes;
        type->burst[i] += accesses_of(access);
        type->own += accesses_of(access);
        any = true;
    }
    return any;
}

static uint32_t context_of(const struct maker *maker, const struct hw_sample_access *access)
{
    return access->context < maker->view->id_count ? maker->view->index_of[access->context] : HW_NONE;
}

static void take_access(struct maker *maker, const struct hw_sample_access *access)
{
    const struct hw_view *view = maker->view;
    struct hw_sampled_kinds *kinds = &maker->to->kinds;
    const uint32_t context = context_of(maker, access);
    const uint64_t accesses = accesses_of(access);
    if (context == HW_NONE)
        return;
    kinds->all += accesses;
    const struct hw_context_layout *of = &maker->of[context];
    const uint32_t index = maker->type_of[context];
    if (!of->type || index == REFUTED)
        kinds->unknown += accesses;
    else if (of->type->scalar)
        kinds->scalars += accesses;
    if (index >= REFUTED || access->offset < of->begin)
        return;
    const uint64_t size = maker->type[index].structure.size, offset = access->offset - of->begin;
    const uint64_t element = of->array ? offset / size : 0, within = offset - element * size;
    const uint64_t end = within + (access->bytes ? access->bytes : 1);
    bool any = take_part(maker, access, index, element, within, of->array && end > size ? size : end);
    if (of->array && end > size)
        any |= take_part(maker, access, index, element + 1, 0, end - size);
    if (any)
        kinds->fields += accesses;
    view->contexts[context].sum.starts[((access->flags >> 4) + of->begin / 8) & 7]++;
}

/* ---- samples that contradict a type ---- */

/* Begins within a number or a pointer, which no code does that knows the type (copies of whole blocks are wider). */
static bool is_wrong(const struct maker *maker, const struct hw_sample_access *access, uint32_t context)
{
    const struct hw_context_layout *of = &maker->of[context];
    const struct type *type = &maker->type[maker->type_of[context]];
    if (access->offset < of->begin || !access->bytes || access->bytes > 8)
        return false;
    const uint64_t offset = access->offset - of->begin;
    const uint64_t within = of->array ? offset % type->structure.size : offset;
    const size_t at = field_at(type, within);
    if (at == type->structure.field_count || type->field[at].offset > within)
        return true; /* padding */
    const struct hw_profile_field *field = &type->field[at];
    const bool simple = !(field->flags & (HW_FIELD_ARRAY | HW_FIELD_FLEXIBLE | HW_FIELD_BITS)) && *field->type_name;
    return simple && field->size <= 8 && field->offset < within;
}

/* Types that were concluded from the code, and that accesses do not fit: memory that is used as something else. */
static bool refute_types(struct maker *maker)
{
    struct hw_view *view = maker->view;
    const struct hw_profile *profile = view->profile;
    uint64_t (*seen)[2] = calloc(view->context_count + 1, sizeof *seen);
    for (size_t i = 0; seen && i < profile->sample_access_count; i++) {
        const uint32_t context = context_of(maker, &profile->sample_accesses[i]);
        if (context == HW_NONE || maker->type_of[context] == HW_NONE)
            continue;
        seen[context][0]++;
        seen[context][1] += is_wrong(maker, &profile->sample_accesses[i], context);
    }
    for (size_t i = 0; seen && i < view->context_count; i++)
        if (seen[i][1] >= WRONG_LEAST && seen[i][1] * WRONG_SHARE > seen[i][0]) {
            struct hw_profile_context *sum = &view->contexts[i].sum;
            maker->type_of[i] = REFUTED;
            sum->type = sum->type_size = 0;
            sum->type_many = false;
            sum->type_evidence = HW_TYPE_UNKNOWN;
        }
    const bool fine = seen != NULL;
    free(seen);
    return fine;
}

/* ---- one burst ---- */

static bool add_group(struct maker *maker, const struct use *use)
{
    const struct touch *touch = maker->touch + use->first;
    struct hw_key key = {use->type, 0};
    size_t count = 0;
    for (size_t i = 0; i < use->count; i++) {
        if (!touch[i].reads && !touch[i].writes)
            continue;
        const uint64_t number[3] = {key.low, key.high, i};
        key = hw_key_of(number, sizeof number, NULL, 0);
        count++;
    }
    bool added;
    const uint32_t index = hw_index_intern(&maker->groups, key, (uint32_t)maker->group_count, &added);
    if (index == HW_INDEX_NONE)
        return false;
    if (added) {
        if (!HW_GROW(maker->group, maker->group_room, maker->group_count + 1) ||
            !HW_GROW(maker->member, maker->member_room, maker->member_count + count + 1))
            return false;
        maker->group[maker->group_count++] =
            (struct group){.type = use->type, .first = maker->member_count, .count = count};
        for (size_t i = 0; i < use->count; i++)
            if (touch[i].reads || touch[i].writes)
                maker->member[maker->member_count++] = (struct member){.field = (uint32_t)i};
    }
    struct group *group = &maker->group[index];
    group->executions++;
    for (size_t i = 0; i < group->count; i++) {
        struct member *member = &maker->member[group->first + i];
        member->reads += touch[member->field].reads;
        member->writes += touch[member->field].writes;
    }
    return true;
}

static bool end_burst(struct maker *maker)
{
    bool fine = true;
    for (size_t i = 0; fine && i < maker->use_count; i++) {
        struct type *type = &maker->type[maker->use[i].type];
        fine = add_group(maker, &maker->use[i]);
        if (!type->own) /* it was the first use of the type that ended it */
            continue;
        for (size_t k = 0; k < type->structure.field_count; k++) {
            type->squares[k] += (double)type->burst[k] * (double)type->burst[k];
            type->with[k] += (double)type->burst[k] * (double)type->own;
            type->burst[k] = 0;
        }
        type->own_squares += (double)type->own * (double)type->own;
        type->bursts++;
        type->own = 0;
    }
    maker->use_count = maker->touch_count = 0;
    maker->to->bursts++;
    return fine;
}

static bool take_bursts(struct maker *maker)
{
    const struct hw_profile *profile = maker->view->profile;
    bool fine = true;
    for (size_t i = 0, next; fine && i < profile->sample_access_count; i = next) {
        for (next = i; next < profile->sample_access_count &&
                       profile->sample_accesses[next].burst == profile->sample_accesses[i].burst;
             next++)
            take_access(maker, &profile->sample_accesses[next]);
        fine = end_burst(maker);
    }
    return fine;
}

/* ---- the result ---- */

static void set_errors(struct type *type)
{
    const double all = (double)type->structure.reads + (double)type->structure.writes;
    for (size_t i = 0; all > 0 && i < type->structure.field_count; i++) {
        struct hw_profile_field *field = &type->field[i];
        const double share = ((double)field->reads + (double)field->writes) / all;
        const double sum = type->squares[i] - 2 * share * type->with[i] + share * share * type->own_squares;
        field->share_error = type->bursts < BURSTS_LEAST ? -1 : sum > 0 ? 2 * sqrt(sum) / all : 0;
    }
}

static int compare_groups(const void *left, const void *right)
{
    const struct group *a = left, *b = right;
    return HW_ORDER(a->type, b->type) ?: HW_ORDER(b->executions, a->executions) ?: HW_ORDER(a->first, b->first);
}

static uint32_t at_an_execution(uint64_t sum, uint64_t executions)
{
    const uint64_t each = (sum + executions - 1) / executions;
    return each < UINT32_MAX ? (uint32_t)each : UINT32_MAX;
}

static int compare_types(const void *left, const void *right)
{
    const struct hw_profile_struct *a = left, *b = right;
    return strcmp(a->name, b->name) ?: HW_ORDER(a->size, b->size);
}

static bool make_fields(struct maker *maker)
{
    struct hw_profile_fields *fields = &maker->to->fields;
    size_t field_count = 0;
    for (size_t i = 0; i < maker->type_count; i++)
        field_count += maker->type[i].structure.field_count;
    fields->structs = calloc(maker->type_count + 1, sizeof *fields->structs);
    fields->fields = calloc(field_count + 1, sizeof *fields->fields);
    fields->groups = calloc(maker->group_count + 1, sizeof *fields->groups);
    fields->members = calloc(maker->member_count + 1, sizeof *fields->members);
    if (!fields->structs || !fields->fields || !fields->groups || !fields->members)
        return false;
    if (maker->group_count)
        qsort(maker->group, maker->group_count, sizeof *maker->group, compare_groups);
    for (size_t i = 0, g = 0; i < maker->type_count; i++) {
        struct type *type = &maker->type[i];
        struct hw_profile_struct *to = &fields->structs[fields->struct_count++];
        set_errors(type);
        *to = type->structure;
        to->first_field = fields->field_count;
        to->first_group = fields->group_count;
        if (to->field_count)
            memcpy(fields->fields + fields->field_count, type->field, to->field_count * sizeof *type->field);
        fields->field_count += to->field_count;
        for (; g < maker->group_count && maker->group[g].type == i; g++) {
            const struct group *group = &maker->group[g];
            fields->groups[fields->group_count++] =
                (struct hw_profile_field_group){.structure = (uint32_t)i,
                                                .function = "",
                                                .file = "",
                                                .first_member = fields->member_count,
                                                .member_count = group->count,
                                                .executions = group->executions};
            for (size_t k = 0; k < group->count; k++) {
                const struct member *member = &maker->member[group->first + k];
                fields->members[fields->member_count++] = (struct hw_profile_group_member){
                    .field = (uint32_t)to->first_field + member->field,
                    .reads = at_an_execution(member->reads, group->executions),
                    .writes = at_an_execution(member->writes, group->executions)};
            }
        }
        to->group_count = fields->group_count - to->first_group;
        fields->attributed_reads += to->reads;
        fields->attributed_writes += to->writes;
    }
    if (fields->struct_count)
        qsort(fields->structs, fields->struct_count, sizeof *fields->structs, compare_types);
    fields->counted = fields->sampled = true;
    return true;
}

static void free_maker(struct maker *maker)
{
    for (size_t i = 0; i < maker->type_count; i++) {
        free(maker->type[i].field);
        free(maker->type[i].burst);
        free(maker->type[i].squares);
        free(maker->type[i].with);
    }
    free(maker->type);
    free(maker->type_of);
    free(maker->touch);
    free(maker->group);
    free(maker->member);
    hw_index_free(&maker->groups);
    free(maker);
}

bool hw_view_make_sampled_fields(struct hw_view *view, struct hw_call_types *types,
                                 const struct hw_context_layout *of, struct hw_error *error)
{
    if (!view->sampled || !view->profile->sample_access_count)
        return true;
    struct maker *maker = calloc(1, sizeof *maker);
    view->sampled_fields = calloc(1, sizeof *view->sampled_fields);
    bool fine = maker && view->sampled_fields;
    if (fine) {
        maker->view = view;
        maker->of = of;
        maker->to = view->sampled_fields;
        maker->type_of = malloc((view->context_count + 1) * sizeof *maker->type_of);
        fine = maker->type_of && add_types(maker, types, error) && refute_types(maker) &&
               take_bursts(maker) && make_fields(maker);
    }
    if (maker)
        free_maker(maker);
    if (!fine)
        hw_error_set(error, "not enough memory for the fields of structs");
    return fine;
}

void hw_view_free_sampled_fields(struct hw_view *view)
{
    if (!view->sampled_fields)
        return;
    free(view->sampled_fields->fields.structs);
    free(view->sampled_fields->fields.fields);
    free(view->sampled_fields->fields.groups);
    free(view->sampled_fields->fields.members);
    free(view->sampled_fields);
}

const struct hw_profile_fields *hw_view_fields(const struct hw_view *view)
{
    return view->sampled_fields && !view->profile->fields.counted ? &view->sampled_fields->fields
                                                                  : &view->profile->fields;
}
