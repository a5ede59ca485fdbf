/* lookup.c - see lookup.h.
 *
 * What belongs to the contexts that were found is copied into tables of their own, with new numbers, and model.c makes
 * a profile of these. Nothing here trusts a byte of the file. */
#include "profile/model/lookup.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/growing.h"
#include "base/index.h"
#include "base/order.h"
#include "profile/model/model.h"
#include "profile/container/pack.h"
#include "profile/model/symbol_tables.h"
#include "profile/model/symbolised.h"

/* ---- sections, by blocks ---- */

#define BLOCK_BYTES 4096u /* where sections are not packed */

/* A section of which blocks are read when they are needed. */
struct part {
    struct hw_section_reader *reader;
    uint64_t count;   /* entries */
    size_t size;      /* of an entry as this reader knows it */
    size_t per_block; /* entries: a chunk of a packed section; 0: not known before the first block is needed */
    char **blocks;    /* NULL: not read so far */
};

struct hw_lookup {
    struct hw_container container;
    struct hw_problems problems;
    struct hw_arena arena; /* of problems */
    struct part parts[HW_SECTION_KNOWN];
    uint32_t *first_map; /* by map: the first of its module */
    bool complete;
};

static bool open_part(struct hw_lookup *lookup, uint32_t type, struct hw_error *error)
{
    struct part *part = &lookup->parts[type];
    part->reader = hw_section_open(&lookup->container, type, error);
    part->size = hw_section_rule(type)->size;
    part->count = part->reader ? hw_section_entries(part->reader) : 0;
    return part->reader && part->count < HW_NONE;
}

/* Makes room for blocks. */
static bool divide(struct part *part)
{
    if (part->per_block)
        return true;
    size_t chunk = hw_section_chunk(part->reader, NULL);
    if (chunk == 1)
        chunk = BLOCK_BYTES / part->size ? BLOCK_BYTES / part->size : 1;
    part->blocks = chunk ? calloc(part->count / chunk + 1, sizeof *part->blocks) : NULL;
    part->per_block = part->blocks ? chunk : 0;
    return part->blocks;
}

/* An entry of a section; NULL when it does not exist or cannot be read. */
static const void *entry_at(struct hw_lookup *lookup, uint32_t type, uint64_t index)
{
    struct part *part = &lookup->parts[type];
    if (index >= part->count || !divide(part))
        return NULL;
    const uint64_t block = index / part->per_block, first = block * part->per_block;
    if (!part->blocks[block]) {
        const uint64_t rest = part->count - first;
        const size_t count = rest < part->per_block ? (size_t)rest : part->per_block;
        char *bytes = malloc(count * part->size);
        if (!bytes || !hw_section_read(part->reader, first, count, bytes, NULL)) {
            free(bytes);
            return NULL;
        }
        part->blocks[block] = bytes;
    }
    return part->blocks[block] + (index - first) * part->size;
}

#define STRING_MOST (1u << 20) /* longer names are damage */

/* A string, to be freed; NULL when it is not there, too long, or there is no memory. */
static char *string_at(struct hw_lookup *lookup, uint32_t offset)
{
    const struct part *part = &lookup->parts[HW_SECTION_STRINGS];
    char *text = NULL;
    size_t length = 0;
    while (length < STRING_MOST) {
        const uint64_t at = offset + length;
        const char *bytes = entry_at(lookup, HW_SECTION_STRINGS, at);
        if (!bytes)
            break;
        const uint64_t in_block = part->per_block - at % part->per_block, rest = part->count - at;
        const size_t size = (size_t)(in_block < rest ? in_block : rest), found = strnlen(bytes, size);
        char *longer = realloc(text, length + found + 1);
        if (!longer)
            break;
        text = longer;
        memcpy(text + length, bytes, found);
        length += found;
        text[length] = '\0';
        if (found < size || at + found == part->count)
            return text;
    }
    free(text);
    return NULL;
}

/* ---- opening ---- */

/* How TYPE is taken; in the entries of sections that are not known any context may be named. */
static enum hw_look_up way_of(uint32_t type)
{
    return hw_section_rule(type) ? hw_section_rule(type)->look_up : HW_LOOK_UP_HINDERS;
}

static bool has_only_parts(const struct hw_container *container)
{
    for (size_t i = 0; i < container->extent_count; i++)
        if (way_of(container->extents[i].entry.type) == HW_LOOK_UP_HINDERS)
            return false;
    return true;
}

static bool open_parts(struct hw_lookup *lookup, struct hw_error *error)
{
    bool fine = true;
    for (uint32_t type = 0; fine && type < HW_SECTION_KNOWN; type++)
        if (way_of(type) == HW_LOOK_UP_BLOCKS || way_of(type) == HW_LOOK_UP_WHOLE)
            fine = open_part(lookup, type, error);
    lookup->complete = has_only_parts(&lookup->container);
    /* Sums over all contexts that reports show need all contexts. */
    const struct hw_process_info *process = fine ? entry_at(lookup, HW_SECTION_PROCESS, 0) : NULL;
    lookup->complete &= process && !process->sample_bytes && !lookup->parts[HW_SECTION_ACCESS_INFO].count;
    /* What LLVM's profiles say of a context is kept by its number. */
    fine = fine && process && !(process->flags & HW_PROCESS_LLVM);
    const uint64_t slots = lookup->parts[HW_SECTION_FUNCTIONS].count;
    if (fine && lookup->container.sealed && slots && !(slots & (slots - 1)))
        return true;
    hw_error_set(error, "'%s' has no index of functions: it was not symbolised", lookup->container.path);
    return false;
}

/* All entries of a section, to be freed; NULL when there is no memory or they cannot be read. */
static void *read_whole(struct hw_lookup *lookup, uint32_t type)
{
    const struct part *part = &lookup->parts[type];
    char *bytes = calloc((size_t)part->count + 1, part->size);
    if (bytes && part->count && !hw_section_read(part->reader, 0, (size_t)part->count, bytes, NULL)) {
        free(bytes);
        return NULL;
    }
    return bytes;
}

/* Which maps are one module. Locations name it by its first map. */
static bool group_maps(struct hw_lookup *lookup)
{
    const size_t count = (size_t)lookup->parts[HW_SECTION_MAPS].count;
    struct hw_map_entry *maps = read_whole(lookup, HW_SECTION_MAPS);
    struct hw_string_table strings = {0};
    lookup->first_map = malloc((count + 1) * sizeof *lookup->first_map);
    bool fine = maps && lookup->first_map && hw_string_table_make(&strings, "", 1);
    for (size_t i = 0; fine && i < count; i++) {
        char *path = string_at(lookup, maps[i].path);
        maps[i].path = hw_string_table_add(&strings, path);
        fine = maps[i].path != HW_NONE;
        free(path);
    }
    fine = fine && hw_first_maps(maps, count, strings.bytes, strings.size, lookup->first_map);
    hw_string_table_free(&strings);
    free(maps);
    return fine;
}

struct hw_lookup *hw_lookup_open(const char *path, struct hw_error *error)
{
    struct hw_lookup *lookup = calloc(1, sizeof *lookup);
    char *copy = strdup(path);
    hw_error_set(error, "cannot read '%s': not enough memory", path);
    if (!lookup || !copy) {
        free(lookup);
        free(copy);
        return NULL;
    }
    lookup->problems.arena = &lookup->arena;
    lookup->container = (struct hw_container){.path = copy, .problems = &lookup->problems};
    lookup->container.fd = hw_container_open(path, false, error);
    if (lookup->container.fd >= 0 && hw_container_load(&lookup->container, error) && open_parts(lookup, error)) {
        if (group_maps(lookup))
            return lookup;
        hw_error_set(error, "cannot read '%s': it is damaged, or there is not enough memory", path);
    }
    hw_lookup_close(lookup);
    return NULL;
}

void hw_lookup_close(struct hw_lookup *lookup)
{
    if (!lookup)
        return;
    for (size_t i = 0; i < HW_SECTION_KNOWN; i++) {
        struct part *part = &lookup->parts[i];
        for (uint64_t k = 0; part->blocks && k <= part->count / part->per_block; k++)
            free(part->blocks[k]);
        free(part->blocks);
        hw_section_close(part->reader);
    }
    if (lookup->container.fd >= 0)
        close(lookup->container.fd);
    free((char *)lookup->container.path);
    free(lookup->first_map);
    hw_container_free(&lookup->container);
    hw_arena_free(&lookup->arena);
    free(lookup);
}

bool hw_lookup_is_complete(const struct hw_lookup *lookup)
{
    return lookup->complete;
}

/* ---- what belongs to the contexts ---- */

/* Entries that grow in number. */
struct list {
    char *entries;
    size_t count, capacity, size;
};

static void *push(struct list *list, const void *entry)
{
    if (!hw_grow(&list->entries, &list->capacity, list->count + 1, list->size))
        return NULL;
    return memcpy(list->entries + list->count++ * list->size, entry, list->size);
}

/* The new number of an old one; 0: not known yet. */
static uint32_t new_number(const struct hw_index *numbers, uint32_t old)
{
    const uint32_t new = hw_index_find(numbers, (struct hw_key){old, 0});
    return new == HW_INDEX_NONE ? 0 : new;
}

/* False when there is no memory. */
static bool renumber(struct hw_index *numbers, uint32_t old, uint32_t new)
{
    bool added;
    return hw_index_intern(numbers, (struct hw_key){old, 0}, new, &added) != HW_INDEX_NONE;
}

struct extract {
    struct hw_lookup *lookup;
    struct hw_string_table strings;
    struct hw_index string_numbers, node_numbers, file_numbers; /* from old ones */
    struct list list[HW_SECTION_KNOWN];
    struct list ids;    /* of the contexts, in the file */
    struct list places; /* (map, address) of frames, as locations name them */
    bool damaged;       /* else, when something fails, there is no memory */
};

struct place {
    uint64_t address;
    uint32_t map;
};

static bool damaged(struct extract *extract)
{
    extract->damaged = true;
    return false;
}

/* Takes a string over: *STRING becomes its new offset. One that is not there becomes empty. */
static bool take_string(struct extract *extract, uint32_t *string)
{
    if (!*string)
        return true;
    uint32_t new = new_number(&extract->string_numbers, *string);
    if (!new) {
        char *text = string_at(extract->lookup, *string);
        new = hw_string_table_add(&extract->strings, text ? text : "");
        free(text);
        if (new == HW_NONE || (new && !renumber(&extract->string_numbers, *string, new)))
            return false;
    }
    *string = new;
    return true;
}

/* Takes the stack that ends in LEAF, whose new number goes into *NEW. The way to a node that is there already is noted
 * first, then the new nodes are made from the outermost on. */
static bool take_stack(struct extract *extract, uint32_t leaf, uint32_t *new)
{
    struct list way = {.size = sizeof(uint32_t)};
    struct list *nodes = &extract->list[HW_SECTION_STACKS];
    const uint64_t count = extract->lookup->parts[HW_SECTION_STACKS].count;
    uint32_t at = leaf, parent = 0;
    bool fine = true;
    while (fine && at) {
        const struct hw_stack_node *node = entry_at(extract->lookup, HW_SECTION_STACKS, at);
        parent = new_number(&extract->node_numbers, at);
        if (parent)
            break;
        if (!node || node->parent >= at || at >= count)
            fine = damaged(extract);
        else
            fine = push(&way, &at) && (at = node->parent, true);
    }
    while (fine && way.count) {
        const uint32_t old = ((const uint32_t *)way.entries)[--way.count];
        const struct hw_stack_node *from = entry_at(extract->lookup, HW_SECTION_STACKS, old);
        struct hw_stack_node node = {.map = HW_NONE, .parent = parent};
        struct place place = {.map = HW_NONE};
        fine = from;
        if (!fine)
            break;
        node.pc = place.address = from->pc;
        node.map = from->map;
        if (from->map < extract->lookup->parts[HW_SECTION_MAPS].count) {
            place.map = extract->lookup->first_map[from->map];
            place.address -= ((const struct hw_map_entry *)extract->list[HW_SECTION_MAPS].entries)[from->map].bias;
        }
        parent = (uint32_t)nodes->count;
        fine = push(nodes, &node) && push(&extract->places, &place) && renumber(&extract->node_numbers, old, parent);
    }
    free(way.entries);
    *new = parent;
    return fine;
}

/* The first entry of a section, sorted by the context that its entries begin with, that is of CONTEXT or a later one.
 * As most contexts have one entry, it is looked for first where it is then, and from there on in growing steps. */
static uint64_t first_of_context(struct extract *extract, uint32_t type, uint32_t context)
{
    struct hw_lookup *lookup = extract->lookup;
    const uint64_t count = lookup->parts[type].count, contexts = lookup->parts[HW_SECTION_CONTEXTS].count;
    uint64_t low = 0, high = count; /* entries before LOW are smaller, those from HIGH on are not */
    uint64_t at = contexts ? (uint64_t)((unsigned __int128)context * count / contexts) : 0;
    for (uint64_t step = 1; low < high;) {
        at = at < low ? low : at >= high ? high - 1 : at;
        const uint32_t *found = entry_at(lookup, type, at);
        if (!found) {
            damaged(extract);
            return count;
        }
        if (*found < context) {
            low = at + 1;
            at = step < (high - low) / 2 ? low + step : low + (high - low) / 2;
        } else {
            high = at;
            at = step < (high - low) / 2 ? high - step : low + (high - low) / 2;
        }
        step = step < count ? 2 * step : step;
    }
    return low;
}

/* Takes what was counted for contexts [FIRST, END), which have new numbers from NEW on. */
static bool take_counts(struct extract *extract, uint32_t type, uint32_t first, uint32_t end, uint32_t new)
{
    struct list *list = &extract->list[type];
    const uint64_t count = extract->lookup->parts[type].count;
    if (!count)
        return true;
    for (uint64_t i = first_of_context(extract, type, first); i < count && !extract->damaged; i++) {
        const void *from = entry_at(extract->lookup, type, i);
        uint32_t context;
        if (!from)
            return damaged(extract);
        memcpy(&context, from, sizeof context);
        if (context < first || context >= end)
            break;
        context = context - first + new;
        void *to = push(list, from);
        if (!to)
            return false;
        memcpy(to, &context, sizeof context);
    }
    return !extract->damaged;
}

static bool take_contexts(struct extract *extract, uint32_t first, uint32_t end)
{
    struct list *contexts = &extract->list[HW_SECTION_CONTEXTS];
    const uint32_t new = (uint32_t)contexts->count;
    for (uint32_t id = first; id < end; id++) {
        const struct hw_context_entry *from = entry_at(extract->lookup, HW_SECTION_CONTEXTS, id);
        struct hw_context_entry entry;
        if (!from)
            return damaged(extract);
        entry = *from;
        if (!take_stack(extract, entry.leaf, &entry.leaf) || !push(contexts, &entry) || !push(&extract->ids, &id))
            return false;
    }
    return take_counts(extract, HW_SECTION_MIBS, first, end, new) &&
           take_counts(extract, HW_SECTION_SIZE_BARS, first, end, new) &&
           take_counts(extract, HW_SECTION_LIFETIME_BARS, first, end, new) &&
           take_counts(extract, HW_SECTION_BLOCK_TYPES, first, end, new) &&
           take_counts(extract, HW_SECTION_ACCESS, first, end, new) &&
           take_counts(extract, HW_SECTION_ACCESS_LIVE, first, end, new);
}

/* ---- symbols ---- */

static bool take_file(struct extract *extract, uint32_t *file)
{
    struct list way = {.size = sizeof(uint32_t)};
    struct list *files = &extract->list[HW_SECTION_FILES];
    uint32_t at = *file, parent = 0;
    bool fine = true;
    while (fine && at) {
        const struct hw_file_node *node = entry_at(extract->lookup, HW_SECTION_FILES, at);
        parent = new_number(&extract->file_numbers, at);
        if (parent)
            break;
        if (!node || node->parent >= at || way.count >= HW_SOURCE_PATH_MOST)
            fine = damaged(extract);
        else
            fine = push(&way, &at) && (at = node->parent, true);
    }
    while (fine && way.count) {
        const uint32_t old = ((const uint32_t *)way.entries)[--way.count];
        const struct hw_file_node *from = entry_at(extract->lookup, HW_SECTION_FILES, old);
        struct hw_file_node node = {.name = from ? from->name : 0, .parent = parent};
        parent = (uint32_t)files->count;
        fine = from && take_string(extract, &node.name) && push(files, &node) &&
               renumber(&extract->file_numbers, old, parent);
    }
    free(way.entries);
    *file = parent;
    return fine;
}

static int compare_places(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    return HW_ORDER(a->map, b->map) ?: HW_ORDER(a->address, b->address);
}

static const struct hw_location *find_location(struct extract *extract, const struct place *place)
{
    uint64_t low = 0, high = extract->lookup->parts[HW_SECTION_LOCATIONS].count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        const struct hw_location *location = entry_at(extract->lookup, HW_SECTION_LOCATIONS, middle);
        if (!location) {
            damaged(extract);
            return NULL;
        }
        const int order = compare_places(&(struct place){location->address, location->map}, place);
        if (order == 0)
            return location;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static bool take_location(struct extract *extract, struct hw_location location)
{
    struct list *frames = &extract->list[HW_SECTION_FRAMES];
    const uint32_t first = location.first_frame;
    if (location.frame_count > HW_CHAIN_MOST)
        return damaged(extract);
    location.first_frame = (uint32_t)frames->count;
    for (uint32_t i = 0; i < location.frame_count; i++) {
        const struct hw_symbol_frame *from = entry_at(extract->lookup, HW_SECTION_FRAMES, (uint64_t)first + i);
        if (!from)
            return damaged(extract);
        struct hw_symbol_frame frame = *from;
        if (!take_string(extract, &frame.function) || !take_string(extract, &frame.linkage_name) ||
            !take_file(extract, &frame.file) || !push(frames, &frame))
            return false;
    }
    return push(&extract->list[HW_SECTION_LOCATIONS], &location);
}

static bool take_locations(struct extract *extract)
{
    struct place *places = (struct place *)extract->places.entries;
    if (extract->places.count)
        qsort(places, extract->places.count, sizeof *places, compare_places);
    for (size_t i = 0; i < extract->places.count; i++) {
        if (i && !compare_places(&places[i - 1], &places[i]))
            continue;
        const struct hw_location *location = find_location(extract, &places[i]);
        if (extract->damaged || (location && !take_location(extract, *location)))
            return false;
    }
    return true;
}

/* ---- the process ---- */

static bool take_command(struct extract *extract, struct hw_process_info *process)
{
    uint64_t at = process->command;
    uint32_t taken = 0;
    char *bytes = NULL;
    size_t size = 0;
    for (; at && taken < process->command_count && at < HW_NONE; taken++) {
        char *text = string_at(extract->lookup, (uint32_t)at);
        const size_t length = text ? strlen(text) + 1 : 0;
        char *longer = text ? realloc(bytes, size + length) : NULL;
        if (longer)
            memcpy(longer + size, text, length);
        free(text);
        if (!longer)
            break;
        bytes = longer;
        size += length;
        at += length;
    }
    process->command_count = taken;
    process->command = taken ? hw_string_table_append(&extract->strings, bytes, size) : 0;
    free(bytes);
    return process->command != HW_NONE;
}

/* All strings of an entry of a section that is taken whole. Contexts have other numbers here, and most are missing: it
 * refers to none. */
static bool take_strings(struct extract *extract, uint32_t type, char *entry)
{
    for (size_t i = 0; i < hw_reference_count; i++) {
        const struct hw_reference *reference = &hw_references[i];
        uint32_t *index = (uint32_t *)(void *)(entry + reference->offset);
        if (reference->from != type)
            continue;
        if (reference->to == HW_SECTION_CONTEXTS)
            *index = 0;
        else if (reference->to == HW_SECTION_STRINGS && !take_string(extract, index))
            return false;
    }
    return type != HW_SECTION_PROCESS || take_command(extract, (struct hw_process_info *)(void *)entry);
}

static bool take_whole(struct extract *extract, uint32_t type)
{
    struct list *list = &extract->list[type];
    list->entries = read_whole(extract->lookup, type);
    list->count = list->capacity = (size_t)extract->lookup->parts[type].count;
    for (size_t i = 0; list->entries && i < list->count; i++)
        if (!take_strings(extract, type, list->entries + i * list->size))
            return false;
    return list->entries || damaged(extract);
}

/* The names of the types that blocks of the contexts have. */
static bool take_types(struct extract *extract)
{
    struct list *types = &extract->list[HW_SECTION_TYPES];
    types->entries = read_whole(extract->lookup, HW_SECTION_TYPES);
    types->count = types->capacity = (size_t)extract->lookup->parts[HW_SECTION_TYPES].count;
    struct hw_type_name *type = (struct hw_type_name *)types->entries;
    size_t kept = 0;
    for (size_t i = 0; type && i < types->count; i++) {
        const struct list *blocks = &extract->list[HW_SECTION_BLOCK_TYPES];
        bool used = false;
        for (size_t k = 0; k < blocks->count && !used; k++)
            used = ((const struct hw_block_type *)blocks->entries)[k].type == type[i].id;
        for (int live = 0; live < 2 && !used; live++) {
            const struct list *list = &extract->list[live ? HW_SECTION_ACCESS_LIVE : HW_SECTION_ACCESS];
            for (size_t k = 0; k < list->count && !used; k++)
                used = ((const struct hw_access *)list->entries)[k].type == type[i].id;
        }
        if (!used)
            continue;
        type[kept] = type[i];
        if (!take_string(extract, &type[kept++].name))
            return false;
    }
    types->count = kept;
    return type || damaged(extract);
}

/* ---- the index ---- */

/* The slot of a name; a slot without a name when there is none. NULL when the table is damaged. */
static const struct hw_function_slot *find_slot(struct extract *extract, const char *function)
{
    const uint64_t hash = hw_function_hash(function), slots = extract->lookup->parts[HW_SECTION_FUNCTIONS].count;
    for (uint64_t i = 0; i < slots; i++) {
        const struct hw_function_slot *slot = entry_at(extract->lookup, HW_SECTION_FUNCTIONS, (hash + i) & (slots - 1));
        if (!slot || !slot->name)
            return slot;
        if (slot->hash != hash)
            continue;
        char *name = string_at(extract->lookup, slot->name);
        const bool found = name && !strcmp(name, function);
        free(name);
        if (found)
            return slot;
    }
    return NULL;
}

static bool take_function(struct extract *extract, const char *function)
{
    const uint64_t contexts = extract->lookup->parts[HW_SECTION_CONTEXTS].count;
    const struct hw_function_slot *found = find_slot(extract, function);
    uint64_t behind = 1; /* ranges ascend; context 0 is nobody's */
    if (!found)
        return damaged(extract);
    const struct hw_function_slot slot = *found;
    for (uint32_t i = 0; slot.name && i < slot.posting_count; i++) {
        const struct hw_posting *posting =
            entry_at(extract->lookup, HW_SECTION_POSTINGS, (uint64_t)slot.first_posting + i);
        if (!posting || posting->first_context < behind || (uint64_t)posting->first_context + posting->count > contexts)
            return damaged(extract);
        behind = (uint64_t)posting->first_context + posting->count;
        if (!take_contexts(extract, posting->first_context, (uint32_t)behind))
            return false;
    }
    return true;
}

/* ---- all of it ---- */

static bool start(struct extract *extract, bool names)
{
    const struct hw_stack_node root = {.map = HW_NONE};
    const struct hw_context_entry unknown = {0};
    const struct hw_file_node no_file = {0};
    const struct place no_place = {.map = HW_NONE};
    const uint32_t no_id = 0;
    for (uint32_t type = 0; type < HW_SECTION_KNOWN; type++)
        extract->list[type].size = hw_section_rule(type) ? hw_section_rule(type)->size : 1;
    extract->ids.size = sizeof no_id;
    extract->places.size = sizeof no_place;
    if (!hw_string_table_make(&extract->strings, "", 1) || !push(&extract->list[HW_SECTION_STACKS], &root) ||
        !push(&extract->list[HW_SECTION_CONTEXTS], &unknown) || !push(&extract->list[HW_SECTION_FILES], &no_file) ||
        !push(&extract->ids, &no_id))
        return false;
    for (uint32_t type = 0; type < HW_SECTION_KNOWN; type++)
        if (way_of(type) == HW_LOOK_UP_WHOLE && (names || type != HW_SECTION_MODULES) && !take_whole(extract, type))
            return false;
    return true;
}

/* Makes a profile of what was taken. */
static struct hw_profile *finish(struct extract *extract, struct hw_error *error)
{
    struct hw_tables tables = {0};
    struct hw_arena *arena = calloc(1, sizeof *arena);
    const struct list strings = {extract->strings.bytes, extract->strings.size, 0, 1};
    bool fine = arena != NULL;
    for (uint32_t type = 0; fine && type < HW_SECTION_KNOWN; type++) {
        const struct list *list = type == HW_SECTION_STRINGS ? &strings : &extract->list[type];
        tables.of[type].count = list->count;
        tables.of[type].entries = hw_arena_allocate(arena, list->count + 1, list->size);
        fine = tables.of[type].entries;
        if (fine && list->count)
            memcpy(tables.of[type].entries, list->entries, list->count * list->size);
    }
    struct hw_profile *profile =
        fine ? hw_profile_from_tables(&tables, arena, extract->lookup->container.path, error) : NULL;
    if (!fine && arena) {
        hw_arena_free(arena);
        free(arena);
    }
    for (size_t i = 0; profile && i < profile->context_count; i++)
        profile->contexts[i].id = ((const uint32_t *)extract->ids.entries)[profile->contexts[i].id];
    return profile;
}

struct hw_profile *hw_lookup_function(struct hw_lookup *lookup, const char *function, bool names,
                                      struct hw_error *error)
{
    struct extract extract = {.lookup = lookup};
    struct hw_profile *profile = NULL;
    const char *path = lookup->container.path;
    hw_error_set(error, "cannot read '%s': not enough memory", path);
    if (start(&extract, names) && take_function(&extract, function) &&
        (!names || (take_locations(&extract) && take_types(&extract))))
        profile = finish(&extract, error);
    else if (extract.damaged)
        hw_error_set(error, "'%s' is damaged: its index of functions leads nowhere", path);
    hw_string_table_free(&extract.strings);
    hw_index_free(&extract.string_numbers);
    hw_index_free(&extract.node_numbers);
    hw_index_free(&extract.file_numbers);
    for (uint32_t type = 0; type < HW_SECTION_KNOWN; type++)
        free(extract.list[type].entries);
    free(extract.ids.entries);
    free(extract.places.entries);
    return profile;
}
