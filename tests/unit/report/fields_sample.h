/* fields_sample.h - profiles of programs whose fields were counted, made by hand: structs, uses, contexts with types.
 *
 * Layouts are given as the compiler has them, not computed. */
#ifndef HW_TESTS_FIELDS_SAMPLE_H
#define HW_TESTS_FIELDS_SAMPLE_H

#include "report_sample.h"

#include <stdarg.h>

#define MAKER_STRUCTS 64
#define MAKER_FIELDS  2048
#define MAKER_GROUPS  1024

struct field_maker {
    struct report_sample *sample;
    char strings[65536];
    size_t string_size, string_base;
    struct hw_struct structs[MAKER_STRUCTS];
    uint32_t struct_count;
    struct hw_field fields[MAKER_FIELDS];
    uint32_t field_count;
    struct hw_field_group groups[MAKER_GROUPS];
    uint32_t group_count;
    struct hw_group_member members[8 * MAKER_GROUPS];
    uint32_t member_count;
    struct hw_field_window windows[256];
    uint32_t window_count;
    struct hw_context_type types[64];
    uint32_t type_count;
    struct hw_fields_info info;
};

HELPER uint32_t maker_string(struct field_maker *maker, const char *text)
{
    const size_t at = maker->string_size, size = strlen(text) + 1;
    if (at + size > sizeof maker->strings)
        abort();
    memcpy(maker->strings + at, text, size);
    maker->string_size += size;
    return (uint32_t)(maker->string_base + at);
}

/* A program that allocated nothing yet, unless FULL: then the run of report_sample. */
HELPER struct field_maker *maker_new(bool full)
{
    struct field_maker *maker = calloc(1, sizeof *maker);
    maker->sample = report_sample();
    if (!full) {
        maker->sample->context_count = 1;
        maker->sample->thread = (struct hw_thread_entry){0};
        maker->sample->process.peak_bytes = 0;
        maker->sample->note_count = maker->sample->free_stack_count = maker->sample->memory_count = 0;
    }
    maker->string_base = maker->sample->string_size;
    maker->info = (struct hw_fields_info){
        .modules = 1, .harvest_tick = 2000000000, .windows = 190, .period_ns = 10000000, .window_ns = 20000};
    return maker;
}

/* The struct that later fields and uses belong to. */
HELPER uint32_t maker_struct(struct field_maker *maker, const char *name, uint64_t size, uint32_t alignment,
                             uint32_t flags)
{
    const uint32_t index = maker->struct_count++;
    maker->structs[index] = (struct hw_struct){.identity = 1000 + index,
                                               .size = size,
                                               .name = maker_string(maker, name),
                                               .file = maker_string(maker, "/src/demo/walk.h"),
                                               .line = 12 + 10 * index,
                                               .flags = flags,
                                               .alignment = alignment,
                                               .first_field = maker->field_count};
    return index;
}

/* A member of plain type that is one field; returns it for changes. */
HELPER struct hw_field *maker_field(struct field_maker *maker, const char *name, const char *declaration,
                                    uint64_t offset, uint64_t size, uint32_t alignment)
{
    struct hw_struct *owner = &maker->structs[maker->struct_count - 1];
    struct hw_field *field = &maker->fields[maker->field_count++];
    *field = (struct hw_field){.name = maker_string(maker, name),
                               .type_name = maker_string(maker, "type"),
                               .declaration = maker_string(maker, declaration),
                               .offset = offset,
                               .size = size,
                               .alignment = alignment,
                               .line = owner->line + ++owner->field_count,
                               .member_offset = offset,
                               .member_size = size,
                               .member_alignment = alignment};
    return field;
}

/* EXECUTIONS of a group of FUNCTION in which the named fields of the last struct are read, those behind "=" written.
 * The names end with NULL. */
HELPER struct hw_field_group *maker_use(struct field_maker *maker, const char *function, uint64_t executions, ...)
{
    const struct hw_struct *owner = &maker->structs[maker->struct_count - 1];
    struct hw_field_group *group = &maker->groups[maker->group_count++];
    *group = (struct hw_field_group){.structure = maker->struct_count - 1,
                                     .function = maker_string(maker, function),
                                     .file = maker_string(maker, "/src/demo/walk.c"),
                                     .line = 100 + maker->group_count,
                                     .first_member = maker->member_count,
                                     .executions = executions};
    va_list names;
    va_start(names, executions);
    bool write = false;
    for (const char *name; (name = va_arg(names, const char *));) {
        if (strcmp(name, "=") == 0) {
            write = true;
            continue;
        }
        uint32_t field = HW_NONE;
        for (uint32_t i = 0; i < owner->field_count; i++)
            if (strcmp(maker->strings + (maker->fields[owner->first_field + i].name - maker->string_base), name) == 0)
                field = owner->first_field + i;
        if (field == HW_NONE && strcmp(name, "*") != 0)
            abort();
        maker->members[maker->member_count++] =
            (struct hw_group_member){.field = field, .reads = !write, .writes = write};
        group->member_count++;
    }
    va_end(names);
    return group;
}

HELPER uint64_t maker_type_id(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3;
    return hash;
}

/* BLOCKS blocks of SIZE bytes, live to the end, of the type NAME (NULL: of none that is known). */
HELPER struct hw_mib *maker_blocks(struct field_maker *maker, const char *name, uint64_t blocks, uint64_t size)
{
    struct report_sample *sample = maker->sample;
    const uint32_t main = call(sample, 0, MAP_PARSER, 0x1010);
    const uint32_t leaf =
        call(sample, call(sample, main, MAP_PARSER, 0x1050), MAP_LIBC, 0x3100 + 16 * sample->context_count);
    struct hw_mib *mib = allocate(sample, leaf, blocks, size, blocks);
    at_peak(sample, mib, blocks);
    if (name)
        maker->types[maker->type_count++] =
            (struct hw_context_type){.context = mib->context, .type = maker_type_id(name)};
    return mib;
}

/* The file. Frees the maker. */
HELPER struct image maker_image(struct field_maker *maker, bool sealed)
{
    struct image image = report_image(maker->sample, false);
    const struct {
        uint32_t type;
        size_t size;
        const void *data;
        size_t count;
    } sections[] = {
        {HW_SECTION_STRINGS, 1, maker->strings, maker->string_size},
        {HW_SECTION_STRUCTS, sizeof *maker->structs, maker->structs, maker->struct_count},
        {HW_SECTION_FIELDS, sizeof *maker->fields, maker->fields, maker->field_count},
        {HW_SECTION_FIELD_GROUPS, sizeof *maker->groups, maker->groups, maker->group_count},
        {HW_SECTION_GROUP_MEMBERS, sizeof *maker->members, maker->members, maker->member_count},
        {HW_SECTION_FIELD_WINDOWS, sizeof *maker->windows, maker->windows, maker->window_count},
        {HW_SECTION_FIELDS_INFO, sizeof maker->info, &maker->info, 1},
        {HW_SECTION_CONTEXT_TYPES, sizeof *maker->types, maker->types, maker->type_count},
    };
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (sections[i].count)
            image_add(&image, sections[i].type, sections[i].size, sections[i].data,
                      sections[i].size * sections[i].count, 0);
    if (sealed)
        image_header(&image)->flags |= HW_FILE_EXITED, image_seal(&image);
    free(maker);
    return image;
}

/* ---- structs of tests ---- */

/* A list node whose key, value and next lie in three lines: 136 bytes. COUNT of them, a block each. */
HELPER void add_spread_node(struct field_maker *maker, uint64_t count, uint64_t uses)
{
    maker_struct(maker, "node", 136, 8, 0);
    maker_field(maker, "key", "long key", 0, 8, 8);
    maker_field(maker, "name", "char name[56]", 8, 56, 1)->flags = HW_FIELD_ARRAY;
    maker_field(maker, "value", "double value", 64, 8, 8);
    maker_field(maker, "note", "char note[48]", 72, 48, 1)->flags = HW_FIELD_ARRAY;
    maker_field(maker, "flags", "unsigned char flags", 120, 1, 1);
    maker_field(maker, "next", "struct node *next", 128, 8, 8)->flags = HW_FIELD_POINTER;
    maker_use(maker, "walk", uses, "key", "value", "next", NULL);
    maker_use(maker, "build", count, "=", "key", "value", "next", "flags", NULL);
    maker_use(maker, "print", count / 10, "name", "note", "flags", NULL);
    maker_blocks(maker, "node", count, 136);
}

/* A struct with nothing wrong: all of it is used together, in one line, in aligned blocks. */
HELPER void add_good_point(struct field_maker *maker, uint64_t count, uint64_t uses)
{
    maker_struct(maker, "point", 64, 64, 0);
    for (int i = 0; i < 8; i++) {
        char name[16], declaration[24];
        snprintf(name, sizeof name, "c%d", i);
        snprintf(declaration, sizeof declaration, "double c%d", i);
        maker_field(maker, name, declaration, 8 * (uint64_t)i, 8, 8);
    }
    /* alignas on the first member */
    maker->fields[maker->structs[maker->struct_count - 1].first_field].member_alignment = 64;
    maker_use(maker, "norm", uses, "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", NULL);
    maker_blocks(maker, "point", count, 64);
}

#endif
