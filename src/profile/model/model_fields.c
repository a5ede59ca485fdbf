/* model_fields.c - counted fields: sections STRUCTS to CONTEXT_TYPES -> the profile's structs, fields, groups and
 * windows.
 *
 * A program has a type as often as it has translation units that use it, a merged profile as often as it has programs:
 * entries of one identity are one here, and so are groups that only differ in their executions. */
#include "profile/model/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

struct taker {
    struct hw_profile *profile;
    struct hw_profile_fields *fields;
    struct hw_arena *arena;
    const struct hw_tables *tables;
    struct hw_problems *problems;
    uint32_t *struct_of; /* by entry of STRUCTS: index of the merged one, or HW_NONE */
    uint32_t *field_of;  /* by entry of FIELDS, in the same way */
};

static void add(uint64_t *sum, uint64_t value)
{
    *sum = hw_add_saturating(*sum, value);
}

static void add_times(uint64_t *sum, uint64_t number, uint64_t times)
{
    uint64_t product;
    add(sum, __builtin_mul_overflow(number, times, &product) ? UINT64_MAX : product);
}

/* What clang and the plugin name a type by, see base/abi.h: FNV-1a. */
static uint64_t type_id(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3;
    return hash;
}

/* ---- structs and their fields ---- */

struct named {
    const char *name;
    uint64_t identity;
    uint32_t entry;
};

static int compare_named(const void *left, const void *right)
{
    const struct named *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    if (order == 0)
        order = HW_ORDER(a->identity, b->identity);
    return order ? order : HW_ORDER(a->entry, b->entry);
}

/* False: the entry names fields that are not there. */
static bool fields_exist(struct taker *taker, const struct hw_struct *entry)
{
    const struct hw_table *fields = &taker->tables->of[HW_SECTION_FIELDS];
    if (entry->first_field > fields->count || entry->field_count > fields->count - entry->first_field)
        return false;
    for (uint32_t i = 0; i < entry->field_count; i++)
        if (hw_table_missing(fields, entry->first_field + i))
            return false;
    return true;
}

static void take_field(struct taker *taker, struct hw_profile_field *to, const struct hw_field *entry)
{
    uint64_t end;
    *to = (struct hw_profile_field){
        .name = hw_profile_string(taker->profile, entry->name),
        .type_name = hw_profile_string(taker->profile, entry->type_name),
        .declaration = hw_profile_string(taker->profile, entry->declaration),
        .flags = entry->flags,
        .alignment = entry->alignment,
        .line = entry->line,
        .bit_offset = entry->bit_offset,
        .bit_size = entry->bit_size,
        .offset = entry->offset,
        .size = entry->size,
        .member_offset = entry->member_offset,
        .member_size = entry->member_size,
        .member_alignment = entry->member_alignment,
        .part = entry->part,
        .part_offset = entry->part_offset,
    };
    if (__builtin_add_overflow(entry->offset, entry->size, &end) ||
        __builtin_add_overflow(entry->member_offset, entry->member_size, &end)) {
        hw_problem(taker->problems, "The fields section is damaged: a field ends before it begins.");
        to->size = to->member_size = 0;
    }
}

static void take_new_struct(struct taker *taker, const struct hw_struct *entry)
{
    struct hw_profile_fields *fields = taker->fields;
    struct hw_profile_struct *to = &fields->structs[fields->struct_count++];
    const struct hw_field *table = taker->tables->of[HW_SECTION_FIELDS].entries;
    *to = (struct hw_profile_struct){
        .identity = entry->identity,
        .name = hw_profile_string(taker->profile, entry->name),
        .file = hw_profile_string(taker->profile, entry->file),
        .line = entry->line,
        .alignment = entry->alignment,
        .size = entry->size,
        .first_field = fields->field_count,
        .field_count = entry->field_count,
    };
    to->type = type_id(to->name);
    for (uint32_t i = 0; i < entry->field_count; i++) {
        struct hw_profile_field *field = &fields->fields[fields->field_count++];
        take_field(taker, field, &table[entry->first_field + i]);
        if (i && (field[-1].offset > field->offset ||
                  (field[-1].offset == field->offset && field[-1].bit_offset > field->bit_offset)))
            hw_problem(taker->problems, "The fields section is damaged: fields are not in their order.");
    }
}

bool hw_profile_is_library_type(const char *name)
{
    static const char *const known[] = {
#define HW_LIBRARY_TYPE(type) type,
#include "profile/library_types.def"
    };
    const size_t length = strcspn(name, "<");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i]) == length && !strncmp(known[i], name, length))
            return true;
    return false;
}

/* Adds what ENTRY, a struct that is the last one of those taken, has of its own. */
static void add_struct(struct taker *taker, uint32_t index, const struct hw_struct *entry)
{
    struct hw_profile_fields *fields = taker->fields;
    uint32_t number = (uint32_t)fields->struct_count - 1;
    struct hw_profile_struct *to = &fields->structs[number];
    const struct hw_field *table = taker->tables->of[HW_SECTION_FIELDS].entries;
    to->flags |= entry->flags | (hw_profile_is_library_type(to->name) ? HW_STRUCT_OUTSIDE : 0);
    taker->struct_of[index] = number;
    for (uint32_t i = 0; i < entry->field_count; i++) {
        struct hw_profile_field *field = &fields->fields[to->first_field + i];
        const struct hw_field *from = &table[entry->first_field + i];
        if (taker->field_of[entry->first_field + i] != HW_NONE) {
            hw_problem(taker->problems, "The structs section is damaged: two structs have the same fields.");
            continue;
        }
        taker->field_of[entry->first_field + i] = (uint32_t)(to->first_field + i);
        field->flags |= from->flags;
        add(&field->reads, from->reads);
        add(&field->writes, from->writes);
        add(&field->apart_reads, from->reads);
        add(&field->apart_writes, from->writes);
        add(&to->reads, from->reads);
        add(&to->writes, from->writes);
    }
}

static bool take_structs(struct taker *taker)
{
    struct hw_profile_fields *fields = taker->fields;
    const struct hw_table *structs = &taker->tables->of[HW_SECTION_STRUCTS];
    const struct hw_table *table = &taker->tables->of[HW_SECTION_FIELDS];
    const struct hw_struct *entries = structs->entries;
    struct named *order = hw_arena_allocate(taker->arena, structs->count + 1, sizeof *order);
    fields->structs = hw_arena_allocate(taker->arena, structs->count + 1, sizeof *fields->structs);
    fields->fields = hw_arena_allocate(taker->arena, table->count + 1, sizeof *fields->fields);
    taker->struct_of = hw_arena_allocate(taker->arena, structs->count + 1, sizeof *taker->struct_of);
    taker->field_of = hw_arena_allocate(taker->arena, table->count + 1, sizeof *taker->field_of);
    if (!order || !fields->structs || !fields->fields || !taker->struct_of || !taker->field_of)
        return false;
    memset(taker->struct_of, 0xff, structs->count * sizeof *taker->struct_of);
    memset(taker->field_of, 0xff, table->count * sizeof *taker->field_of);
    size_t count = 0;
    for (size_t i = 0; i < structs->count; i++) {
        if (hw_table_missing(structs, i) || (!entries[i].identity && !entries[i].size))
            continue;
        if (fields_exist(taker, &entries[i]))
            order[count++] =
                (struct named){hw_profile_string(taker->profile, entries[i].name), entries[i].identity, (uint32_t)i};
        else
            hw_problem(taker->problems, "The structs section is damaged: fields of a struct are not there.");
    }
    if (count)
        qsort(order, count, sizeof *order, compare_named);
    for (size_t i = 0; i < count; i++) {
        const struct hw_struct *entry = &entries[order[i].entry];
        struct hw_profile_struct *last = fields->struct_count ? &fields->structs[fields->struct_count - 1] : NULL;
        if (last && last->identity == entry->identity && strcmp(last->name, order[i].name) == 0) {
            if (last->field_count != entry->field_count || last->size != entry->size) {
                hw_problem(taker->problems, "The structs section is damaged: two types have the same identity.");
                continue;
            }
        } else if (fields->field_count + entry->field_count > table->count) {
            hw_problem(taker->problems, "The structs section is damaged: two structs have the same fields.");
            continue;
        } else
            take_new_struct(taker, entry);
        add_struct(taker, order[i].entry, entry);
    }
    return true;
}

/* ---- groups ---- */

/* Members of one group in the order of fields, each field once. */
static int compare_members(const void *left, const void *right)
{
    const struct hw_profile_group_member *a = left, *b = right;
    return HW_ORDER(a->field, b->field);
}

/* Copies the members of a group; false when one of them is none of its struct's. */
static bool take_members(struct taker *taker, const struct hw_field_group *entry, struct hw_profile_field_group *to)
{
    struct hw_profile_fields *fields = taker->fields;
    const struct hw_table *table = &taker->tables->of[HW_SECTION_GROUP_MEMBERS];
    const struct hw_group_member *members = table->entries;
    const struct hw_profile_struct *owner = to->structure == HW_NONE ? NULL : &fields->structs[to->structure];
    if (entry->first_member > table->count || entry->member_count > table->count - entry->first_member)
        return false;
    struct hw_profile_group_member *into = &fields->members[fields->member_count];
    for (uint32_t i = 0; i < entry->member_count; i++) {
        const struct hw_group_member *member = &members[entry->first_member + i];
        uint32_t field = HW_NONE;
        if (hw_table_missing(table, entry->first_member + i))
            return false;
        if (member->field != HW_NONE) {
            field =
                member->field < taker->tables->of[HW_SECTION_FIELDS].count ? taker->field_of[member->field] : HW_NONE;
            if (!owner || field == HW_NONE || field < owner->first_field ||
                field - owner->first_field >= owner->field_count)
                return false;
        }
        into[i] = (struct hw_profile_group_member){field, member->reads, member->writes};
        to->inherited |= owner && (member->flags & HW_MEMBER_INHERITED);
    }
    if (entry->member_count)
        qsort(into, entry->member_count, sizeof *into, compare_members);
    to->first_member = fields->member_count;
    to->member_count = entry->member_count;
    fields->member_count += entry->member_count;
    return true;
}

static int compare_places(const void *left, const void *right, void *closure)
{
    const struct hw_profile_fields *fields = closure;
    const struct hw_profile_field_group *a = left, *b = right;
    const struct hw_profile_group_member *of_a = &fields->members[a->first_member];
    const struct hw_profile_group_member *of_b = &fields->members[b->first_member];
    if (a->structure != b->structure)
        return a->structure < b->structure ? -1 : 1;
    int order = strcmp(a->function, b->function);
    order = order ? order : strcmp(a->file, b->file);
    if (order)
        return order;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    if (a->object != b->object)
        return a->object < b->object ? -1 : 1;
    if (a->inherited != b->inherited)
        return a->inherited ? 1 : -1;
    if (a->member_count != b->member_count)
        return a->member_count < b->member_count ? -1 : 1;
    for (size_t i = 0; i < a->member_count; i++) {
        if (of_a[i].field != of_b[i].field)
            return of_a[i].field < of_b[i].field ? -1 : 1;
        if (of_a[i].reads != of_b[i].reads)
            return of_a[i].reads < of_b[i].reads ? -1 : 1;
        if (of_a[i].writes != of_b[i].writes)
            return of_a[i].writes < of_b[i].writes ? -1 : 1;
    }
    return 0;
}

static int compare_groups(const void *left, const void *right, void *closure)
{
    const struct hw_profile_field_group *a = left, *b = right;
    if (a->structure == b->structure && a->executions != b->executions)
        return a->executions > b->executions ? -1 : 1;
    return compare_places(left, right, closure);
}

/* What the executions of GROUP add to its fields and to its struct. */
static void add_group(struct hw_profile_fields *fields, const struct hw_profile_field_group *group)
{
    struct hw_profile_struct *owner = group->structure == HW_NONE ? NULL : &fields->structs[group->structure];
    for (size_t i = 0; i < group->member_count; i++) {
        const struct hw_profile_group_member *member = &fields->members[group->first_member + i];
        if (!owner) {
            add_times(&fields->unattributed_reads, member->reads, group->executions);
            add_times(&fields->unattributed_writes, member->writes, group->executions);
            continue;
        }
        bool whole = member->field == HW_NONE;
        size_t first = whole ? owner->first_field : member->field, count = whole ? owner->field_count : 1;
        if (whole) {
            add_times(&owner->whole_reads, member->reads, group->executions);
            add_times(&owner->whole_writes, member->writes, group->executions);
        }
        for (size_t field = first; field < first + count; field++) {
            add_times(&fields->fields[field].reads, member->reads, group->executions);
            add_times(&fields->fields[field].writes, member->writes, group->executions);
            add_times(&owner->reads, member->reads, group->executions);
            add_times(&owner->writes, member->writes, group->executions);
            if (!group->inherited)
                continue;
            add_times(&fields->fields[field].inherited_reads, member->reads, group->executions);
            add_times(&fields->fields[field].inherited_writes, member->writes, group->executions);
            add_times(&owner->inherited_reads, member->reads, group->executions);
            add_times(&owner->inherited_writes, member->writes, group->executions);
        }
    }
}

static bool take_groups(struct taker *taker)
{
    struct hw_profile_fields *fields = taker->fields;
    const struct hw_table *table = &taker->tables->of[HW_SECTION_FIELD_GROUPS];
    const struct hw_table *members = &taker->tables->of[HW_SECTION_GROUP_MEMBERS];
    const struct hw_field_group *entries = table->entries;
    size_t count = 0;
    fields->groups = hw_arena_allocate(taker->arena, table->count + 1, sizeof *fields->groups);
    fields->members = hw_arena_allocate(taker->arena, members->count + 1, sizeof *fields->members);
    if (!fields->groups || !fields->members)
        return false;
    for (size_t i = 0; i < table->count; i++) {
        const struct hw_field_group *entry = &entries[i];
        struct hw_profile_field_group *to = &fields->groups[count];
        if (!entry->executions)
            continue;
        uint32_t structure = HW_NONE;
        bool good = fields->member_count + entry->member_count <= members->count;
        if (entry->structure != HW_NONE) {
            good &= entry->structure < taker->tables->of[HW_SECTION_STRUCTS].count;
            structure = good ? taker->struct_of[entry->structure] : HW_NONE;
            good &= structure != HW_NONE;
        }
        *to = (struct hw_profile_field_group){
            .structure = structure,
            .line = entry->line,
            .function = hw_profile_string(taker->profile, entry->function),
            .file = hw_profile_string(taker->profile, entry->file),
            .object = entry->object,
            .executions = entry->executions,
        };
        if (good && take_members(taker, entry, to))
            count++;
        else
            hw_problem(taker->problems, "The field groups section is damaged: a group names what is not there; its "
                                        "accesses are missing.");
    }
    if (count)
        qsort_r(fields->groups, count, sizeof *fields->groups, compare_places, fields);
    for (size_t i = 0; i < count; i++) {
        struct hw_profile_field_group *to = fields->group_count ? &fields->groups[fields->group_count - 1] : NULL;
        if (to && compare_places(to, &fields->groups[i], fields) == 0)
            add(&to->executions, fields->groups[i].executions);
        else
            fields->groups[fields->group_count++] = fields->groups[i];
    }
    if (count)
        qsort_r(fields->groups, fields->group_count, sizeof *fields->groups, compare_groups, fields);
    for (size_t i = 0; i < fields->group_count; i++) {
        const struct hw_profile_field_group *group = &fields->groups[i];
        add_group(fields, group);
        if (group->structure == HW_NONE)
            continue;
        struct hw_profile_struct *owner = &fields->structs[group->structure];
        if (!owner->group_count++)
            owner->first_group = i;
    }
    return true;
}

/* ---- parts: bases, and structs by value ---- */

#define DEEPEST_PART 16
#define SIDE_BY_SIDE 256 /* fields at one offset: of unions, and bit-fields */

static int compare_identity(const void *left, const void *right, void *closure)
{
    const struct hw_profile_struct *structs = closure;
    const uint32_t one = *(const uint32_t *)left, other = *(const uint32_t *)right;
    const uint64_t a = structs[one].identity, b = structs[other].identity;
    return a != b ? HW_ORDER(a, b) : HW_ORDER(one, other);
}

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

/* The field of the part that FIELD lies in, by the type of that part; NULL: nobody has accessed one of that type. */
static struct hw_profile_field *field_of_part(const struct taker *taker, const uint32_t *order,
                                              const struct hw_profile_field *field,
                                              const struct hw_profile_struct **owner)
{
    const struct hw_profile_fields *fields = taker->fields;
    size_t low = 0, high = fields->struct_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (fields->structs[order[middle]].identity < field->part)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == fields->struct_count || fields->structs[order[low]].identity != field->part)
        return NULL;
    *owner = &fields->structs[order[low]];
    struct hw_profile_field *first = &fields->fields[(*owner)->first_field];
    const uint64_t offset = field->offset - field->part_offset;
    size_t from = 0, end = (*owner)->field_count;
    while (from < end) {
        const size_t middle = from + (end - from) / 2;
        if (first[middle].offset < offset)
            from = middle + 1;
        else
            end = middle;
    }
    for (size_t i = from; i < (*owner)->field_count && i < from + SIDE_BY_SIDE && first[i].offset == offset; i++)
        if (first[i].bit_offset == field->bit_offset && first[i].size == field->size &&
            ends_with(field->name, first[i].name))
            return &first[i];
    return NULL;
}

/* What is accessed by the type of a part may be a part of any object that has one. */
static bool take_parts(struct taker *taker)
{
    struct hw_profile_fields *fields = taker->fields;
    uint32_t *order = hw_arena_allocate(taker->arena, fields->struct_count + 1, sizeof *order);
    if (!order)
        return false;
    for (uint32_t i = 0; i < fields->struct_count; i++)
        order[i] = i;
    if (fields->struct_count)
        qsort_r(order, fields->struct_count, sizeof *order, compare_identity, fields->structs);
    for (size_t i = 0; i < fields->struct_count; i++) {
        const struct hw_profile_struct *whole = &fields->structs[i];
        for (size_t k = 0; k < whole->field_count; k++) {
            struct hw_profile_field *field = &fields->fields[whole->first_field + k], *inner = field;
            const struct hw_profile_struct *owner = whole;
            field->unseen |= (whole->flags & HW_STRUCT_OUTSIDE) != 0;
            for (int depth = 0; depth < DEEPEST_PART && inner->part; depth++) {
                inner = field_of_part(taker, order, inner, &owner);
                field->unseen |= (owner->flags & HW_STRUCT_OUTSIDE) != 0;
                if (!inner)
                    break;
                inner->unseen |= (whole->flags & HW_STRUCT_OUTSIDE) != 0;
                add(&field->possible_reads, inner->reads - inner->inherited_reads);
                add(&field->possible_writes, inner->writes - inner->inherited_writes);
            }
        }
    }
    return true;
}

/* ---- windows ---- */

static int compare_windows(const void *left, const void *right)
{
    const struct hw_profile_field_window *a = left, *b = right;
    if (a->field_a != b->field_a) /* which is in the order of structs, too */
        return a->field_a < b->field_a ? -1 : 1;
    return HW_ORDER(a->field_b, b->field_b);
}

static bool take_windows(struct taker *taker)
{
    struct hw_profile_fields *fields = taker->fields;
    const struct hw_table *table = &taker->tables->of[HW_SECTION_FIELD_WINDOWS];
    const struct hw_field_window *entries = table->entries;
    const size_t known = taker->tables->of[HW_SECTION_FIELDS].count;
    size_t count = 0;
    fields->windows = hw_arena_allocate(taker->arena, table->count + 1, sizeof *fields->windows);
    if (!fields->windows)
        return false;
    for (size_t i = 0; i < table->count; i++) {
        const struct hw_field_window *entry = &entries[i];
        if (!entry->weight)
            continue;
        uint32_t a = entry->field_a < known ? taker->field_of[entry->field_a] : HW_NONE;
        uint32_t b = entry->field_b < known ? taker->field_of[entry->field_b] : HW_NONE;
        uint32_t structure = entry->structure < taker->tables->of[HW_SECTION_STRUCTS].count
                                 ? taker->struct_of[entry->structure]
                                 : HW_NONE;
        const struct hw_profile_struct *owner = structure == HW_NONE ? NULL : &fields->structs[structure];
        if (!owner || a == HW_NONE || b == HW_NONE || a == b || a < owner->first_field || b < owner->first_field ||
            a - owner->first_field >= owner->field_count || b - owner->first_field >= owner->field_count) {
            hw_problem(taker->problems, "The field windows section is damaged: it names what is not there.");
            continue;
        }
        fields->windows[count++] =
            (struct hw_profile_field_window){structure, a < b ? a : b, a < b ? b : a, entry->weight};
    }
    if (count)
        qsort(fields->windows, count, sizeof *fields->windows, compare_windows);
    for (size_t i = 0; i < count; i++) {
        struct hw_profile_field_window *window = &fields->windows[i];
        struct hw_profile_field_window *to = fields->window_count ? &fields->windows[fields->window_count - 1] : NULL;
        if (to && compare_windows(to, window) == 0) {
            add(&to->weight, window->weight);
            continue;
        }
        struct hw_profile_struct *owner = &fields->structs[window->structure];
        if (!owner->window_count++)
            owner->first_window = fields->window_count;
        fields->windows[fields->window_count++] = *window;
    }
    return true;
}

/* ---- types of contexts ---- */

static int compare_id(const void *key, const void *element)
{
    const uint32_t id = *(const uint32_t *)key, other = ((const struct hw_profile_context *)element)->id;
    return HW_ORDER(id, other);
}

static void add_type(struct hw_profile_context *context, uint64_t type, bool differ)
{
    if (!type)
        return;
    context->types_differ |= differ || (context->type && context->type != type);
    context->type = context->type && context->type < type ? context->type : type;
}

static void take_types(struct taker *taker)
{
    struct hw_profile *profile = taker->profile;
    const struct hw_table *table = &taker->tables->of[HW_SECTION_CONTEXT_TYPES];
    const struct hw_context_type *entries = table->entries;
    for (size_t i = 0; i < profile->context_count; i++) {
        struct hw_profile_context *context = &profile->contexts[i];
        if (context->access)
            add_type(context, context->access->all.type, context->access->all.flags & HW_ACCESS_TYPES_DIFFER);
    }
    for (size_t i = 0; i < table->count; i++) {
        uint32_t id = entries[i].context;
        if (id >= profile->context_entry_count) {
            hw_problem(taker->problems,
                       "The context types section is damaged: it names a context that does not exist.");
            continue;
        }
        struct hw_profile_context *context =
            profile->context_count
                ? bsearch(&id, profile->contexts, profile->context_count, sizeof *profile->contexts, compare_id)
                : NULL;
        if (!context)
            continue;
        add_type(context, entries[i].type, entries[i].flags & HW_CONTEXT_TYPES_DIFFER);
        for (size_t k = 0; k < 8; k++)
            context->starts[k] = hw_add_saturating(context->starts[k], entries[i].starts[k]);
    }
}

/* ---- the whole ---- */

bool hw_profile_take_fields(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                            struct hw_problems *problems)
{
    struct hw_profile_fields *fields = &profile->fields;
    struct taker taker = {.profile = profile, .fields = fields, .arena = arena, .tables = tables, .problems = problems};
    const struct hw_table *info = &tables->of[HW_SECTION_FIELDS_INFO];
    take_types(&taker);
    fields->counted = info->count || tables->of[HW_SECTION_STRUCTS].count;
    if (!fields->counted)
        return true;
    if (info->count)
        memcpy(&fields->info, info->entries, sizeof fields->info);
    else
        hw_problem(problems, "The fields info section is missing: how fields were counted is not known.");
    fields->harvest_ns = hw_profile_ticks_to_ns(profile, fields->info.harvest_tick);
    if (!take_structs(&taker) || !take_groups(&taker) || !take_parts(&taker) || !take_windows(&taker))
        return false;
    for (size_t i = 0; i < fields->struct_count; i++) {
        add(&fields->attributed_reads, fields->structs[i].reads - fields->structs[i].inherited_reads);
        add(&fields->attributed_writes, fields->structs[i].writes - fields->structs[i].inherited_writes);
    }
    return true;
}
