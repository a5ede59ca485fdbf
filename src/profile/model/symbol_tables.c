/* symbol_tables.c - see symbol_tables.h. */
#include "profile/model/symbol_tables.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/growing.h"
#include "base/order.h"
#include "profile/model/symbolised.h"

/* ---- strings ---- */

void hw_string_table_free(struct hw_string_table *table)
{
    free(table->bytes);
    hw_index_free(&table->index);
    *table = (struct hw_string_table){0};
}

/* What equal strings have in common. */
static struct hw_key key_of(const char *text, size_t length)
{
    return hw_key_of("", 0, text, length);
}

bool hw_string_table_make(struct hw_string_table *table, const char *bytes, size_t size)
{
    /* Offset 0 is the empty string, also where there was none; a string without an end gets one. */
    const bool open = size == 0 || bytes[size - 1] != 0;
    size_t strings = 0;
    *table = (struct hw_string_table){.size = size + open};
    table->capacity = 2 * table->size + 4096;
    table->bytes = calloc(table->capacity, 1);
    for (size_t i = 0; i < size; i++)
        strings += !bytes[i];
    if (!table->bytes || table->size >= HW_NONE || !hw_index_make(&table->index, strings))
        return false;
    if (size)
        memcpy(table->bytes, bytes, size);
    for (size_t at = 1; at < table->size; at += strlen(table->bytes + at) + 1) {
        const char *text = table->bytes + at;
        bool added;
        if (*text)
            hw_index_intern(&table->index, key_of(text, strlen(text)), (uint32_t)at, &added);
    }
    return true;
}

uint32_t hw_string_table_append(struct hw_string_table *table, const char *bytes, size_t size)
{
    const size_t offset = table->size;
    if (offset + size >= HW_NONE || !HW_GROW(table->bytes, table->capacity, offset + size))
        return HW_NONE;
    memcpy(table->bytes + offset, bytes, size);
    table->size += size;
    return (uint32_t)offset;
}

uint32_t hw_string_table_add(struct hw_string_table *table, const char *text)
{
    if (!text || !*text)
        return 0;
    const size_t length = strlen(text);
    bool added;
    if (table->size + length + 1 >= HW_NONE || !HW_GROW(table->bytes, table->capacity, table->size + length + 1))
        return HW_NONE;
    const uint32_t offset = hw_index_intern(&table->index, key_of(text, length), (uint32_t)table->size, &added);
    return added ? hw_string_table_append(table, text, length + 1) : offset;
}

/* ---- source paths ---- */

void hw_file_tree_free(struct hw_file_tree *tree)
{
    free(tree->nodes);
    hw_index_free(&tree->index);
    *tree = (struct hw_file_tree){0};
}

/* The node for a component of a path. */
static uint32_t add_component(struct hw_file_tree *tree, struct hw_string_table *strings, const char *name,
                              size_t length, uint32_t parent)
{
    char *copy = strndup(name, length);
    const uint32_t string = copy ? hw_string_table_add(strings, copy) : HW_NONE;
    free(copy);
    /* Node 0 is the root. */
    if (string == HW_NONE || tree->count >= HW_NONE - 1 || !HW_GROW(tree->nodes, tree->capacity, tree->count + 2))
        return HW_NONE;
    if (!tree->count)
        tree->nodes[tree->count++] = (struct hw_file_node){0};
    bool added;
    const uint32_t node = hw_index_intern(&tree->index, (struct hw_key){string, parent}, (uint32_t)tree->count, &added);
    if (added)
        tree->nodes[tree->count++] = (struct hw_file_node){.name = string, .parent = parent};
    return node;
}

uint32_t hw_file_tree_add(struct hw_file_tree *tree, struct hw_string_table *strings, const char *path)
{
    uint32_t node = 0;
    if (!path)
        return 0;
    while (node != HW_NONE) {
        const size_t length = strcspn(path, "/");
        node = add_component(tree, strings, path, length, node);
        if (!path[length])
            break;
        path += length + 1;
    }
    return node;
}

/* ---- functions ---- */

uint64_t hw_function_hash(const char *name)
{
    return XXH64(name, strlen(name), 0);
}

/* Contexts [first, end) belong to a function. */
struct member {
    uint32_t name, first, end;
};

struct index_builder {
    struct hw_tables *tables;
    struct hw_arena *arena;
    uint32_t *module_map; /* by map: the first one of its module, as locations name it */
    struct member *members;
    size_t count, capacity;
};

static const void *entries(const struct hw_tables *tables, uint32_t type)
{
    return tables->of[type].entries;
}

static size_t count_of(const struct hw_tables *tables, uint32_t type)
{
    return tables->of[type].count;
}

static bool add_member(struct index_builder *builder, uint32_t name, uint32_t first, uint32_t end)
{
    if (!name || name >= count_of(builder->tables, HW_SECTION_STRINGS))
        return true;
    if (!HW_GROW(builder->members, builder->capacity, builder->count + 1))
        return false;
    builder->members[builder->count++] = (struct member){name, first, end};
    return true;
}

/* The location of a context's leaf, or NULL. Frames of the runtime do not count. */
static const struct hw_location *leaf_of(const struct index_builder *builder, const struct hw_context_entry *context)
{
    const struct hw_stack_node *nodes = entries(builder->tables, HW_SECTION_STACKS);
    const struct hw_map_entry *maps = entries(builder->tables, HW_SECTION_MAPS);
    const size_t node_count = count_of(builder->tables, HW_SECTION_STACKS);
    const size_t map_count = count_of(builder->tables, HW_SECTION_MAPS);
    uint32_t at = context->leaf;
    while (at && at < node_count && nodes[at].map < map_count && maps[nodes[at].map].flags & HW_MAP_RUNTIME)
        at = nodes[at].parent < at ? nodes[at].parent : 0;
    if (!at || at >= node_count)
        return NULL;
    const uint32_t map = nodes[at].map < map_count ? nodes[at].map : HW_NONE;
    const struct hw_symbolised symbols = {.locations = entries(builder->tables, HW_SECTION_LOCATIONS),
                                          .location_count = count_of(builder->tables, HW_SECTION_LOCATIONS)};
    return hw_symbolised_location(&symbols, map == HW_NONE ? HW_NONE : builder->module_map[map],
                                  map == HW_NONE ? nodes[at].pc : nodes[at].pc - maps[map].bias);
}

static bool add_chain(struct index_builder *builder, const struct hw_location *leaf, uint32_t first, uint32_t end)
{
    const struct hw_symbol_frame *frames = entries(builder->tables, HW_SECTION_FRAMES);
    for (uint32_t i = 0; leaf && i < leaf->frame_count; i++) {
        if (leaf->first_frame + i >= count_of(builder->tables, HW_SECTION_FRAMES))
            return true;
        const struct hw_symbol_frame *frame = &frames[leaf->first_frame + i];
        if (!add_member(builder, frame->function, first, end) ||
            (frame->linkage_name != frame->function && !add_member(builder, frame->linkage_name, first, end)))
            return false;
    }
    return true;
}

/* Contexts with the same leaf that follow each other, as all do in a merged profile, become one member. */
static bool collect_members(struct index_builder *builder)
{
    const struct hw_context_entry *contexts = entries(builder->tables, HW_SECTION_CONTEXTS);
    const size_t count = count_of(builder->tables, HW_SECTION_CONTEXTS);
    const struct hw_location *last = NULL;
    uint32_t first = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct hw_location *leaf = leaf_of(builder, &contexts[i]);
        if (leaf == last)
            continue;
        if (!add_chain(builder, last, first, i))
            return false;
        last = leaf;
        first = i;
    }
    return add_chain(builder, last, first, (uint32_t)count);
}

static int compare_members(const void *left, const void *right)
{
    const struct member *a = left, *b = right;
    return HW_ORDER(a->name, b->name) ?: HW_ORDER(a->first, b->first) ?: HW_ORDER(a->end, b->end);
}

/* Joins ranges of one function that overlap or touch; returns how many functions there are. */
static size_t join_members(struct index_builder *builder)
{
    size_t kept = 0, functions = 0;
    if (builder->count)
        qsort(builder->members, builder->count, sizeof *builder->members, compare_members);
    for (size_t i = 0; i < builder->count; i++) {
        const struct member member = builder->members[i];
        struct member *last = kept ? &builder->members[kept - 1] : NULL;
        if (last && last->name == member.name && member.first <= last->end) {
            last->end = member.end > last->end ? member.end : last->end;
            continue;
        }
        functions += !last || last->name != member.name;
        builder->members[kept++] = member;
    }
    builder->count = kept;
    return functions;
}

static bool fill_table(struct index_builder *builder, size_t functions)
{
    const char *strings = entries(builder->tables, HW_SECTION_STRINGS);
    struct hw_table *table = &builder->tables->of[HW_SECTION_FUNCTIONS];
    struct hw_table *list = &builder->tables->of[HW_SECTION_POSTINGS];
    size_t slots = 8;
    while (slots < functions + functions / 2 + 1)
        slots *= 2;
    struct hw_function_slot *slot = hw_arena_allocate(builder->arena, slots + 1, sizeof *slot);
    struct hw_posting *postings = hw_arena_allocate(builder->arena, builder->count + 1, sizeof *postings);
    if (!slot || !postings)
        return false;
    for (size_t i = 0, end; i < builder->count; i = end) {
        const uint32_t name = builder->members[i].name;
        const uint64_t hash = hw_function_hash(strings + name);
        size_t at = hash & (slots - 1);
        while (slot[at].name)
            at = (at + 1) & (slots - 1);
        for (end = i; end < builder->count && builder->members[end].name == name; end++)
            postings[end] = (struct hw_posting){builder->members[end].first,
                                                builder->members[end].end - builder->members[end].first};
        slot[at] = (struct hw_function_slot){
            .hash = hash, .name = name, .first_posting = (uint32_t)i, .posting_count = (uint32_t)(end - i)};
    }
    *table = (struct hw_table){.entries = slot, .count = slots};
    *list = (struct hw_table){.entries = postings, .count = builder->count};
    return true;
}

bool hw_function_index_build(struct hw_tables *tables, struct hw_arena *arena)
{
    struct index_builder builder = {.tables = tables, .arena = arena};
    builder.module_map = malloc((count_of(tables, HW_SECTION_MAPS) + 1) * sizeof *builder.module_map);
    bool done =
        builder.module_map &&
        hw_first_maps(entries(tables, HW_SECTION_MAPS), count_of(tables, HW_SECTION_MAPS),
                      entries(tables, HW_SECTION_STRINGS), count_of(tables, HW_SECTION_STRINGS), builder.module_map) &&
        collect_members(&builder) && fill_table(&builder, join_members(&builder));
    free(builder.members);
    free(builder.module_map);
    return done;
}
