/* merge_fields.c - counted fields in a merge: types are one by identity and name, groups by all but their executions.
 *
 * Everything comes from the models of the inputs, in which that is done already for one process. Flags are those of any
 * input, of places in sources the smallest stays. */
#include "profile/merge/merge_internal.h"
#include "profile/model/symbol_tables.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

struct hw_merge_fields {
    struct hw_string_table strings;
    struct hw_fields_info info;
    struct hw_store structs; /* struct hw_struct: first_field into `fields` */
    struct hw_store fields;  /* struct hw_field */
    struct hw_store groups;  /* struct hw_field_group */
    struct hw_store members; /* struct hw_group_member: `field` a number within its struct, or HW_NONE */
    struct hw_store windows; /* struct hw_field_window: fields likewise */
};

void hw_merge_fields_free(struct hw_merge_fields *fields)
{
    if (!fields)
        return;
    hw_string_table_free(&fields->strings);
    hw_store_free(&fields->structs);
    hw_store_free(&fields->fields);
    hw_store_free(&fields->groups);
    hw_store_free(&fields->members);
    hw_store_free(&fields->windows);
    free(fields);
}

static struct hw_merge_fields *start(void)
{
    struct hw_merge_fields *fields = calloc(1, sizeof *fields);
    if (!fields)
        return NULL;
    fields->structs.size = sizeof(struct hw_struct);
    fields->fields.size = sizeof(struct hw_field);
    fields->groups.size = sizeof(struct hw_field_group);
    fields->members.size = sizeof(struct hw_group_member);
    fields->windows.size = sizeof(struct hw_field_window);
    if (hw_string_table_make(&fields->strings, "", 1))
        return fields;
    hw_merge_fields_free(fields);
    return NULL;
}

/* ---- an input ---- */

struct reader {
    struct hw_merge_fields *to;
    const struct hw_profile_fields *from;
    uint32_t *number; /* by struct of the input: in the merge */
    bool failed;
};

static uint32_t text(struct reader *reader, const char *string)
{
    const uint32_t offset = hw_string_table_add(&reader->to->strings, string);
    reader->failed |= offset == HW_NONE;
    return offset;
}

static const char *text_at(const struct hw_merge_fields *fields, uint32_t offset)
{
    return fields->strings.bytes + offset;
}

static void new_struct(struct reader *reader, struct hw_struct *to, const struct hw_profile_struct *from)
{
    *to = (struct hw_struct){.identity = from->identity,
                             .size = from->size,
                             .name = text(reader, from->name),
                             .file = text(reader, from->file),
                             .line = from->line,
                             .alignment = from->alignment,
                             .first_field = reader->to->fields.count,
                             .field_count = (uint32_t)from->field_count};
    for (size_t i = 0; i < from->field_count && !reader->failed; i++) {
        const struct hw_profile_field *field = &reader->from->fields[from->first_field + i];
        struct hw_field *entry = hw_store_push(&reader->to->fields);
        if (!entry) {
            reader->failed = true;
            return;
        }
        *entry = (struct hw_field){.name = text(reader, field->name),
                                   .type_name = text(reader, field->type_name),
                                   .declaration = text(reader, field->declaration),
                                   .offset = field->offset,
                                   .size = field->size,
                                   .bit_offset = field->bit_offset,
                                   .bit_size = field->bit_size,
                                   .alignment = field->alignment,
                                   .line = field->line,
                                   .member_offset = field->member_offset,
                                   .member_size = field->member_size,
                                   .member_alignment = field->member_alignment};
    }
}

static void take_struct(struct reader *reader, size_t index)
{
    const struct hw_profile_struct *from = &reader->from->structs[index];
    const uint64_t words[3] = {from->identity, from->size, from->field_count};
    bool added;
    const uint32_t number =
        hw_store_number(&reader->to->structs, hw_key_of(from->name, strlen(from->name), words, sizeof words), &added);
    reader->number[index] = number;
    reader->failed |= number == HW_NONE;
    if (reader->failed)
        return;
    struct hw_struct *to = hw_store_at(&reader->to->structs, number);
    if (added)
        new_struct(reader, to, from);
    if (reader->failed)
        return;
    to->flags |= from->flags;
    const int order = strcmp(from->file, text_at(reader->to, to->file));
    if (order < 0 || (order == 0 && from->line < to->line)) {
        to->file = text(reader, from->file);
        to->line = from->line;
    }
    for (uint32_t i = 0; i < to->field_count; i++) {
        const struct hw_profile_field *field = &reader->from->fields[from->first_field + i];
        struct hw_field *entry = hw_store_at(&reader->to->fields, to->first_field + i);
        entry->flags |= field->flags;
        entry->line = field->line < entry->line ? field->line : entry->line;
        if (field->part > entry->part || (field->part == entry->part && field->part_offset > entry->part_offset)) {
            entry->part = field->part; /* files of older versions have none */
            entry->part_offset = field->part_offset;
        }
        hw_sum(&entry->reads, field->apart_reads);
        hw_sum(&entry->writes, field->apart_writes);
    }
}

static void take_group(struct reader *reader, const struct hw_profile_field_group *from)
{
    const struct hw_profile_group_member *members = &reader->from->members[from->first_member];
    const size_t first = from->structure == HW_NONE ? 0 : reader->from->structs[from->structure].first_field;
    const uint32_t structure = from->structure == HW_NONE ? HW_NONE : reader->number[from->structure];
    const uint32_t function = text(reader, from->function), file = text(reader, from->file);
    struct hw_group_member *list = calloc(from->member_count + 1, sizeof *list);
    if (!list || reader->failed) {
        reader->failed = true;
        free(list);
        return;
    }
    for (size_t i = 0; i < from->member_count; i++)
        list[i] =
            (struct hw_group_member){members[i].field == HW_NONE ? HW_NONE : members[i].field - (uint32_t)first,
                                     members[i].reads, members[i].writes, from->inherited ? HW_MEMBER_INHERITED : 0};
    const uint32_t place[5] = {structure, function, file, from->line, from->object};
    bool added;
    struct hw_field_group *to = hw_store_intern(
        &reader->to->groups, hw_key_of(place, sizeof place, list, from->member_count * sizeof *list), &added);
    if (to && added) {
        *to = (struct hw_field_group){.structure = structure,
                                      .function = function,
                                      .file = file,
                                      .line = from->line,
                                      .object = from->object,
                                      .first_member = reader->to->members.count,
                                      .member_count = (uint32_t)from->member_count};
        for (size_t i = 0; i < from->member_count; i++) {
            struct hw_group_member *member = hw_store_push(&reader->to->members);
            reader->failed |= !member;
            if (member)
                *member = list[i];
        }
    }
    reader->failed |= !to;
    if (to)
        hw_sum(&to->executions, from->executions);
    free(list);
}

static void take_window(struct reader *reader, const struct hw_profile_field_window *from)
{
    const uint32_t first = (uint32_t)reader->from->structs[from->structure].first_field;
    const uint32_t key[3] = {reader->number[from->structure], from->field_a - first, from->field_b - first};
    bool added;
    struct hw_field_window *to = hw_store_intern(&reader->to->windows, hw_key_of("w", 1, key, sizeof key), &added);
    reader->failed |= !to;
    if (!to)
        return;
    to->structure = key[0];
    to->field_a = key[1];
    to->field_b = key[2];
    hw_sum(&to->weight, from->weight);
}

static void take_info(struct hw_fields_info *to, const struct hw_fields_info *from)
{
    to->flags |= from->flags;
    to->modules = from->modules > to->modules ? from->modules : to->modules;
    hw_sum(&to->before_registration, from->before_registration);
    hw_sum(&to->windows, from->windows);
    hw_keep_greater(&to->period_ns, from->period_ns);
    hw_keep_greater(&to->window_ns, from->window_ns);
    hw_keep_greater(&to->groups, from->groups);
    hw_sum(&to->groups_lost, from->groups_lost);
}

bool hw_merge_fields_add(struct hw_merge *merge, const struct hw_profile *profile)
{
    const struct hw_profile_fields *from = &profile->fields;
    if (!from->counted)
        return true;
    if (!merge->fields)
        merge->fields = start();
    struct reader reader = {.to = merge->fields, .from = from};
    reader.number = calloc(from->struct_count + 1, sizeof *reader.number);
    reader.failed = !reader.to || !reader.number;
    for (size_t i = 0; i < from->struct_count && !reader.failed; i++)
        take_struct(&reader, i);
    for (size_t i = 0; i < from->group_count && !reader.failed; i++)
        take_group(&reader, &from->groups[i]);
    for (size_t i = 0; i < from->window_count && !reader.failed; i++)
        take_window(&reader, &from->windows[i]);
    if (!reader.failed)
        take_info(&reader.to->info, &from->info);
    free(reader.number);
    return !reader.failed;
}

/* ---- the tables ---- */

struct writer {
    struct hw_merge_fields *from;
    struct hw_arena *arena;
    struct hw_tables *tables;
    struct hw_string_table strings;
    uint32_t *order; /* structs, groups or windows, sorted */
    uint32_t *rank;  /* of structs */
    uint32_t *first; /* field, of structs in their order */
    bool failed;
};

static void *make_table(struct writer *writer, uint32_t type, size_t count)
{
    void *entries = hw_table_make(writer->tables, writer->arena, type, count);
    writer->failed |= !entries;
    return entries;
}

static uint32_t put(struct writer *writer, uint32_t offset)
{
    const uint32_t string = hw_string_table_add(&writer->strings, text_at(writer->from, offset));
    writer->failed |= string == HW_NONE;
    return string;
}

static int compare_structs(const void *left, const void *right, void *closure)
{
    const struct writer *writer = closure;
    const struct hw_struct *a = hw_store_at(&writer->from->structs, *(const uint32_t *)left);
    const struct hw_struct *b = hw_store_at(&writer->from->structs, *(const uint32_t *)right);
    int order = strcmp(text_at(writer->from, a->name), text_at(writer->from, b->name));
    order = order ? order : HW_ORDER(a->identity, b->identity);
    order = order ? order : HW_ORDER(a->size, b->size);
    return order ? order : HW_ORDER(a->field_count, b->field_count);
}

static uint32_t rank_of(const struct writer *writer, uint32_t structure)
{
    return structure == HW_NONE ? HW_NONE : writer->rank[structure];
}

static int compare_groups(const void *left, const void *right, void *closure)
{
    const struct writer *writer = closure;
    const struct hw_field_group *a = hw_store_at(&writer->from->groups, *(const uint32_t *)left);
    const struct hw_field_group *b = hw_store_at(&writer->from->groups, *(const uint32_t *)right);
    const uint32_t rank_a = rank_of(writer, a->structure), rank_b = rank_of(writer, b->structure);
    if (rank_a != rank_b)
        return rank_a < rank_b ? -1 : 1;
    int order = strcmp(text_at(writer->from, a->function), text_at(writer->from, b->function));
    order = order ? order : strcmp(text_at(writer->from, a->file), text_at(writer->from, b->file));
    order = order ? order : HW_ORDER(a->line, b->line);
    order = order ? order : HW_ORDER(a->object, b->object);
    order = order ? order : HW_ORDER(a->member_count, b->member_count);
    for (uint32_t i = 0; i < a->member_count && !order; i++) {
        const struct hw_group_member *of_a = hw_store_at(&writer->from->members, a->first_member + i);
        const struct hw_group_member *of_b = hw_store_at(&writer->from->members, b->first_member + i);
        order = HW_ORDER(of_a->field, of_b->field);
        order = order ? order : HW_ORDER(of_a->reads, of_b->reads);
        order = order ? order : HW_ORDER(of_a->writes, of_b->writes);
        order = order ? order : HW_ORDER(of_a->flags, of_b->flags);
    }
    return order;
}

static int compare_windows(const void *left, const void *right, void *closure)
{
    const struct writer *writer = closure;
    const struct hw_field_window *a = hw_store_at(&writer->from->windows, *(const uint32_t *)left);
    const struct hw_field_window *b = hw_store_at(&writer->from->windows, *(const uint32_t *)right);
    const uint32_t rank_a = rank_of(writer, a->structure), rank_b = rank_of(writer, b->structure);
    return HW_ORDER(rank_a, rank_b) ?: HW_ORDER(a->field_a, b->field_a) ?: HW_ORDER(a->field_b, b->field_b);
}

static void sort(struct writer *writer, uint32_t count, int (*compare)(const void *, const void *, void *))
{
    free(writer->order);
    writer->order = calloc((size_t)count + 1, sizeof *writer->order);
    writer->failed |= !writer->order;
    for (uint32_t i = 0; writer->order && i < count; i++)
        writer->order[i] = i;
    if (writer->order)
        qsort_r(writer->order, count, sizeof *writer->order, compare, writer);
}

static void put_structs(struct writer *writer)
{
    const struct hw_merge_fields *from = writer->from;
    const uint32_t count = from->structs.count;
    struct hw_struct *structs = make_table(writer, HW_SECTION_STRUCTS, count);
    struct hw_field *fields = make_table(writer, HW_SECTION_FIELDS, from->fields.count);
    uint32_t used = 0;
    writer->rank = calloc((size_t)count + 1, sizeof *writer->rank);
    writer->first = calloc((size_t)count + 1, sizeof *writer->first);
    writer->failed |= !writer->rank || !writer->first;
    sort(writer, count, compare_structs);
    for (uint32_t i = 0; i < count && !writer->failed; i++) {
        const struct hw_struct *entry = hw_store_at(&from->structs, writer->order[i]);
        writer->rank[writer->order[i]] = i;
        writer->first[i] = used;
        structs[i] = *entry;
        structs[i].name = put(writer, entry->name);
        structs[i].file = put(writer, entry->file);
        structs[i].first_field = used;
        for (uint32_t n = 0; n < entry->field_count; n++, used++) {
            fields[used] = *(struct hw_field *)hw_store_at(&from->fields, entry->first_field + n);
            fields[used].name = put(writer, fields[used].name);
            fields[used].type_name = put(writer, fields[used].type_name);
            fields[used].declaration = put(writer, fields[used].declaration);
        }
    }
}

static void put_groups(struct writer *writer)
{
    const struct hw_merge_fields *from = writer->from;
    const uint32_t count = from->groups.count;
    struct hw_field_group *groups = make_table(writer, HW_SECTION_FIELD_GROUPS, count);
    struct hw_group_member *members = make_table(writer, HW_SECTION_GROUP_MEMBERS, from->members.count);
    uint32_t used = 0;
    sort(writer, count, compare_groups);
    for (uint32_t i = 0; i < count && !writer->failed; i++) {
        const struct hw_field_group *entry = hw_store_at(&from->groups, writer->order[i]);
        groups[i] = *entry;
        groups[i].structure = rank_of(writer, entry->structure);
        groups[i].function = put(writer, entry->function);
        groups[i].file = put(writer, entry->file);
        groups[i].first_member = used;
        for (uint32_t n = 0; n < entry->member_count; n++, used++) {
            members[used] = *(struct hw_group_member *)hw_store_at(&from->members, entry->first_member + n);
            if (members[used].field != HW_NONE)
                members[used].field += writer->first[groups[i].structure];
        }
    }
}

static void put_windows(struct writer *writer)
{
    const struct hw_merge_fields *from = writer->from;
    const uint32_t count = from->windows.count;
    struct hw_field_window *windows = make_table(writer, HW_SECTION_FIELD_WINDOWS, count);
    sort(writer, count, compare_windows);
    for (uint32_t i = 0; i < count && !writer->failed; i++) {
        windows[i] = *(struct hw_field_window *)hw_store_at(&from->windows, writer->order[i]);
        windows[i].structure = rank_of(writer, windows[i].structure);
        windows[i].field_a += writer->first[windows[i].structure];
        windows[i].field_b += writer->first[windows[i].structure];
    }
}

bool hw_merge_fields_finish(struct hw_merge *merge, struct hw_arena *arena, struct hw_tables *tables)
{
    struct writer writer = {.from = merge->fields, .arena = arena, .tables = tables};
    const struct hw_table *strings = &tables->of[HW_SECTION_STRINGS];
    if (!merge->fields)
        return true;
    writer.failed = !hw_string_table_make(&writer.strings, strings->entries, strings->count);
    if (!writer.failed)
        put_structs(&writer);
    if (!writer.failed)
        put_groups(&writer);
    if (!writer.failed)
        put_windows(&writer);
    struct hw_fields_info *info = writer.failed ? NULL : make_table(&writer, HW_SECTION_FIELDS_INFO, 1);
    if (info) {
        *info = merge->fields->info;
        info->harvest_tick = merge->duration_ns;
    }
    char *bytes = info ? make_table(&writer, HW_SECTION_STRINGS, writer.strings.size) : NULL;
    if (bytes)
        memcpy(bytes, writer.strings.bytes, writer.strings.size);
    hw_string_table_free(&writer.strings);
    free(writer.order);
    free(writer.rank);
    free(writer.first);
    return !writer.failed;
}
