/* symbol_tables.c - see symbol_tables.h. */
#include "profile/model/symbol_tables.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/growing.h"
#include "base/order.h"
#include "profile/model/symbolised.h"

/* ---- strings ---- */

struct hw_string_slot {
    uint64_t hash;
    uint32_t offset; /* 0: free */
};

void hw_string_table_free(struct hw_string_table *table)
{
    free(table->bytes);
    free(table->slots);
    *table = (struct hw_string_table){0};
}

static struct hw_string_slot *string_slot(const struct hw_string_table *table, const char *text, uint64_t hash)
{
    for (size_t i = hash & (table->slot_count - 1);; i = (i + 1) & (table->slot_count - 1)) {
        struct hw_string_slot *slot = &table->slots[i];
        if (!slot->offset || (slot->hash == hash && !strcmp(table->bytes + slot->offset, text)))
            return slot;
    }
}

static bool make_slots(struct hw_string_table *table, size_t strings)
{
    table->slot_count = 1024;
    while (table->slot_count < 2 * strings)
        table->slot_count *= 2;
    table->slots = calloc(table->slot_count, sizeof *table->slots);
    return table->slots != NULL;
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
    if (!table->bytes || table->size >= HW_NONE || !make_slots(table, strings + 1))
        return false;
    if (size)
        memcpy(table->bytes, bytes, size);
    for (size_t at = 1; at < table->size; at += strlen(table->bytes + at) + 1) {
        const char *text = table->bytes + at;
        const uint64_t hash = XXH64(text, strlen(text), 0);
        struct hw_string_slot *slot = string_slot(table, text, hash);
        if (!*text || slot->offset)
            continue;
        *slot = (struct hw_string_slot){hash, (uint32_t)at};
        table->used++;
    }
    return true;
}

static bool grow_string_slots(struct hw_string_table *table)
{
    struct hw_string_slot *old = table->slots;
    const size_t count = table->slot_count;
    struct hw_string_slot *slots = calloc(2 * count, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!old[i].offset)
            continue;
        size_t at = old[i].hash & (2 * count - 1);
        while (slots[at].offset)
            at = (at + 1) & (2 * count - 1);
        slots[at] = old[i];
    }
    free(old);
    table->slots = slots;
    table->slot_count = 2 * count;
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
    const uint64_t hash = XXH64(text, length, 0);
    struct hw_string_slot *slot = string_slot(table, text, hash);
    if (slot->offset)
        return slot->offset;
    if (2 * table->used >= table->slot_count && !grow_string_slots(table))
        return HW_NONE;
    const uint32_t offset = hw_string_table_append(table, text, length + 1);
    if (offset == HW_NONE)
        return HW_NONE;
    *string_slot(table, text, hash) = (struct hw_string_slot){hash, offset};
    table->used++;
    return offset;
}

/* ---- source paths ---- */

void hw_file_tree_free(struct hw_file_tree *tree)
{
    free(tree->nodes);
    free(tree->slots);
    *tree = (struct hw_file_tree){0};
}

static uint32_t *file_slot(const struct hw_file_tree *tree, uint32_t name, uint32_t parent)
{
    uint64_t hash = ((uint64_t)name << 32 | parent) * 0x9e3779b97f4a7c15ull;
    for (size_t i = (hash ^ hash >> 32) & (tree->slot_count - 1);; i = (i + 1) & (tree->slot_count - 1)) {
        uint32_t *slot = &tree->slots[i];
        if (!*slot || (tree->nodes[*slot].name == name && tree->nodes[*slot].parent == parent))
            return slot;
    }
}

/* Room for one more node; the first call makes the root. */
static bool grow_files(struct hw_file_tree *tree)
{
    if (tree->nodes && tree->count < tree->capacity)
        return true;
    const size_t capacity = tree->capacity ? 2 * tree->capacity : 256;
    if (capacity >= HW_NONE)
        return false;
    struct hw_file_node *nodes = realloc(tree->nodes, capacity * sizeof *nodes);
    if (!nodes)
        return false;
    tree->nodes = nodes;
    uint32_t *slots = calloc(2 * capacity, sizeof *slots);
    if (!slots)
        return false;
    free(tree->slots);
    tree->slots = slots;
    tree->slot_count = 2 * capacity;
    tree->capacity = capacity;
    if (!tree->count)
        nodes[tree->count++] = (struct hw_file_node){0};
    for (uint32_t i = 1; i < tree->count; i++)
        *file_slot(tree, nodes[i].name, nodes[i].parent) = i;
    return true;
}

/* The node for a component of a path. */
static uint32_t add_component(struct hw_file_tree *tree, struct hw_string_table *strings, const char *name,
                              size_t length, uint32_t parent)
{
    char *copy = strndup(name, length);
    const uint32_t string = copy ? hw_string_table_add(strings, copy) : HW_NONE;
    free(copy);
    if (string == HW_NONE || !grow_files(tree))
        return HW_NONE;
    uint32_t *slot = file_slot(tree, string, parent);
    if (!*slot) {
        *slot = (uint32_t)tree->count;
        tree->nodes[tree->count++] = (struct hw_file_node){.name = string, .parent = parent};
    }
    return *slot;
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
