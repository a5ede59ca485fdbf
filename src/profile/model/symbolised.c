/* symbolised.c - see symbolised.h: tables -> checked symbols. */
#include "profile/model/symbolised.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "profile/model/model.h"

struct checker {
    struct hw_profile *profile;
    struct hw_arena *arena;
    const struct hw_tables *tables;
    struct hw_problems *problems;
    struct hw_symbolised *symbols;
};

static void *entries_of(const struct checker *checker, uint32_t type, size_t *count)
{
    *count = checker->tables->of[type].count;
    return checker->tables->of[type].entries;
}

static bool map_exists(const struct checker *checker, uint32_t map)
{
    return map < checker->profile->map_count;
}

/* ---- modules by map ---- */

struct sorted_map {
    const struct hw_map_entry *map;
    const char *path;
    uint32_t index;
};

static int compare_identity(const struct sorted_map *a, const struct sorted_map *b)
{
    const uint32_t size = a->map->build_id_size;
    int order = strcmp(a->path, b->path);
    if (order)
        return order;
    return HW_ORDER(size, b->map->build_id_size)
               ?: (memcmp(a->map->build_id, b->map->build_id,
                          size < sizeof a->map->build_id ? size : sizeof a->map->build_id));
}

static int compare_maps(const void *left, const void *right)
{
    const struct sorted_map *a = left, *b = right;
    int order = compare_identity(a, b);
    return order ? order : HW_ORDER(a->index, b->index);
}

bool hw_first_maps(const struct hw_map_entry *maps, size_t count, const char *strings, size_t string_size,
                   uint32_t *first_map)
{
    struct sorted_map *sorted = malloc((count + 1) * sizeof *sorted);
    if (!sorted)
        return false;
    for (size_t i = 0; i < count; i++)
        sorted[i] =
            (struct sorted_map){&maps[i], maps[i].path < string_size ? strings + maps[i].path : "", (uint32_t)i};
    if (count)
        qsort(sorted, count, sizeof *sorted, compare_maps);
    for (size_t i = 0, first = 0; i < count; i++) {
        if (i == 0 || compare_identity(&sorted[i - 1], &sorted[i]))
            first = i;
        first_map[sorted[i].index] = sorted[first].index;
    }
    free(sorted);
    return true;
}

/* ---- source paths ---- */

struct path_table {
    struct hw_file_node *nodes;
    uint32_t *sizes; /* by node, of its whole path; 0: not to be used */
    const char **paths;
    size_t count;
    size_t total; /* bytes of all paths made so far */
};

/* Nodes come after their parents, so that one pass gives all sizes and every walk ends. */
static void measure_paths(const struct checker *checker, struct path_table *table)
{
    const struct hw_table *files = &checker->tables->of[HW_SECTION_FILES];
    for (size_t i = 1; i < table->count; i++) {
        struct hw_file_node *node = &table->nodes[i];
        if (hw_table_missing(files, i))
            continue;
        if (node->parent >= i) {
            hw_problem(checker->problems, "The files section is damaged: a directory comes after what lies in it.");
            continue;
        }
        const uint32_t above = node->parent ? table->sizes[node->parent] : 0;
        if (node->parent && !above)
            continue;
        const char *name = hw_profile_string(checker->profile, node->name);
        const size_t size = above + strnlen(name, HW_SOURCE_PATH_MOST) + 1; /* with a separator or the end */
        if (size <= HW_SOURCE_PATH_MOST)
            table->sizes[i] = (uint32_t)size;
        else
            hw_problem(checker->problems, "The files section is damaged: a path is longer than any.");
    }
}

/* Makes the path of FILE; false when it has none. */
static bool make_path(const struct checker *checker, struct path_table *table, uint32_t file)
{
    if (table->paths[file])
        return true;
    const size_t size = table->sizes[file];
    if (!size)
        return false;
    if (table->total + size > HW_SOURCE_PATHS_MOST) {
        hw_problem(checker->problems, "The files section is damaged: its paths are longer than any.");
        return false;
    }
    char *path = hw_arena_allocate(checker->arena, size, 1);
    size_t end = size;
    for (uint32_t node = file; path && node; node = table->nodes[node].parent) {
        const char *name = hw_profile_string(checker->profile, table->nodes[node].name);
        const size_t length =
            table->sizes[node] - 1 - (table->nodes[node].parent ? table->sizes[table->nodes[node].parent] : 0);
        path[end - 1] = end == size ? '\0' : '/';
        end -= length + 1;
        memcpy(path + end, name, length);
    }
    table->paths[file] = path;
    table->total += size;
    return path != NULL;
}

/* ---- frames and locations ---- */

static bool take_frames(struct checker *checker)
{
    struct path_table table = {0};
    struct hw_symbol_frame *frames = entries_of(checker, HW_SECTION_FRAMES, &checker->symbols->frame_count);
    table.nodes = entries_of(checker, HW_SECTION_FILES, &table.count);
    table.sizes = hw_arena_allocate(checker->arena, table.count + 1, sizeof *table.sizes);
    table.paths = hw_arena_allocate(checker->arena, table.count + 1, sizeof *table.paths);
    if (!table.sizes || !table.paths)
        return false;
    measure_paths(checker, &table);
    for (size_t i = 0; i < checker->symbols->frame_count; i++) {
        if (frames[i].file >= table.count && frames[i].file)
            hw_problem(checker->problems, "The frames section is damaged: it names a file that does not exist.");
        if (frames[i].file >= table.count || (frames[i].file && !make_path(checker, &table, frames[i].file)))
            frames[i].file = 0;
    }
    checker->symbols->frames = frames;
    checker->symbols->paths = table.paths;
    checker->symbols->path_count = table.count;
    return !checker->arena->failed;
}

static int compare_places(uint32_t map_a, uint64_t address_a, uint32_t map_b, uint64_t address_b)
{
    return HW_ORDER(map_a, map_b) ?: HW_ORDER(address_a, address_b);
}

static bool frames_are_there(const struct checker *checker, const struct hw_location *location)
{
    const struct hw_table *frames = &checker->tables->of[HW_SECTION_FRAMES];
    if (location->frame_count == 0 || location->frame_count > HW_CHAIN_MOST ||
        location->first_frame > checker->symbols->frame_count ||
        location->frame_count > checker->symbols->frame_count - location->first_frame) {
        hw_problem(checker->problems, "The locations section is damaged: it names frames that do not exist.");
        return false;
    }
    for (uint32_t i = 0; i < location->frame_count; i++)
        if (hw_table_missing(frames, location->first_frame + i))
            return false;
    return true;
}

static void take_locations(struct checker *checker)
{
    size_t count, kept = 0;
    struct hw_location *locations = entries_of(checker, HW_SECTION_LOCATIONS, &count);
    for (size_t i = 0; i < count; i++) {
        const struct hw_location location = locations[i];
        if (hw_table_missing(&checker->tables->of[HW_SECTION_LOCATIONS], i) || !frames_are_there(checker, &location))
            continue;
        const struct hw_location *last = kept ? &locations[kept - 1] : NULL;
        if (last && compare_places(last->map, last->address, location.map, location.address) >= 0) {
            hw_problem(checker->problems, "The locations section is damaged: it is out of order.");
            continue;
        }
        locations[kept++] = location;
    }
    checker->symbols->locations = locations;
    checker->symbols->location_count = kept;
}

/* ---- types, data, modules ---- */

static void take_types(struct checker *checker)
{
    size_t count, kept = 0;
    struct hw_type_name *types = entries_of(checker, HW_SECTION_TYPES, &count);
    for (size_t i = 0; i < count; i++) {
        if (kept && types[kept - 1].id >= types[i].id) {
            hw_problem(checker->problems, "The types section is damaged: it is out of order.");
            continue;
        }
        types[kept++] = types[i];
    }
    checker->symbols->types = types;
    checker->symbols->type_count = kept;
}

/* Types that the code which allocates says, of contexts of which the program itself said none. */
static void take_block_types(struct checker *checker)
{
    size_t count, at = 0;
    struct hw_profile *profile = checker->profile;
    const struct hw_block_type *types = entries_of(checker, HW_SECTION_BLOCK_TYPES, &count);
    for (size_t i = 0; i < count; i++) {
        if (i && types[i - 1].context >= types[i].context) {
            hw_problem(checker->problems, "The section of types of blocks is damaged: it is out of order.");
            return;
        }
        while (at < profile->context_count && profile->contexts[at].id < types[i].context)
            at++;
        if (at == profile->context_count)
            return;
        struct hw_profile_context *context = &profile->contexts[at];
        if (context->id != types[i].context || context->type)
            continue;
        context->type = types[i].type;
        context->type_evidence = types[i].flags & HW_BLOCK_TYPE_EVIDENCE;
        context->type_many = types[i].flags & HW_BLOCK_TYPE_MANY;
        context->type_size = types[i].size;
    }
}

/* Globals are looked up in ranges that ascend and do not lie within each other. */
static bool follows(const struct hw_data_name *last, const struct hw_data_name *next)
{
    if (last->map != next->map || last->flags != next->flags)
        return last->map < next->map || (last->map == next->map && last->flags < next->flags);
    return last->address <= next->address && last->address + last->size <= next->address + next->size;
}

static void take_data(struct checker *checker)
{
    size_t count, kept = 0;
    uint64_t end;
    struct hw_data_name *data = entries_of(checker, HW_SECTION_DATA_SYMBOLS, &count);
    for (size_t i = 0; i < count; i++) {
        struct hw_data_name entry = data[i];
        entry.flags &= HW_DATA_FLAGS;
        if (!map_exists(checker, entry.map) || !entry.size || !entry.name ||
            __builtin_add_overflow(entry.address, entry.size, &end) || (kept && !follows(&data[kept - 1], &entry))) {
            hw_problem(checker->problems,
                       "The data symbols section is damaged: an entry is impossible or out of order.");
            continue;
        }
        data[kept++] = entry;
    }
    checker->symbols->data = data;
    checker->symbols->data_count = kept;
}

static void take_modules(struct checker *checker)
{
    size_t count, kept = 0;
    struct hw_module_mark *modules = entries_of(checker, HW_SECTION_MODULES, &count);
    for (size_t i = 0; i < count; i++) {
        struct hw_module_mark mark = modules[i];
        if (!map_exists(checker, mark.map) || (kept && modules[kept - 1].map >= mark.map)) {
            hw_problem(checker->problems, "The modules section is damaged: an entry is impossible or out of order.");
            continue;
        }
        modules[kept++] = mark;
    }
    checker->symbols->modules = modules;
    checker->symbols->module_count = kept;
}

bool hw_profile_take_symbols(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                             struct hw_problems *problems)
{
    struct checker checker = {.profile = profile, .arena = arena, .tables = tables, .problems = problems};
    if (!tables->of[HW_SECTION_MODULES].count && !tables->of[HW_SECTION_LOCATIONS].count &&
        !tables->of[HW_SECTION_TYPES].count)
        return true;
    checker.symbols = hw_arena_allocate(arena, 1, sizeof *checker.symbols);
    if (!checker.symbols || !take_frames(&checker))
        return false;
    take_locations(&checker);
    take_types(&checker);
    take_block_types(&checker);
    take_data(&checker);
    take_modules(&checker);
    profile->symbolised = checker.symbols;
    return true;
}

/* ---- look-up ---- */

const struct hw_location *hw_symbolised_location(const struct hw_symbolised *symbols, uint32_t map, uint64_t address)
{
    size_t low = 0, high = symbols->location_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct hw_location *location = &symbols->locations[middle];
        const int order = compare_places(location->map, location->address, map, address);
        if (order == 0)
            return location;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const struct hw_module_mark *hw_symbolised_module(const struct hw_symbolised *symbols, uint32_t map)
{
    for (size_t low = 0, high = symbols->module_count; low < high;) {
        const size_t middle = low + (high - low) / 2;
        if (symbols->modules[middle].map == map)
            return &symbols->modules[middle];
        if (symbols->modules[middle].map < map)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

uint32_t hw_symbolised_type(const struct hw_symbolised *symbols, uint64_t id)
{
    for (size_t low = 0, high = symbols->type_count; low < high;) {
        const size_t middle = low + (high - low) / 2;
        if (symbols->types[middle].id == id)
            return symbols->types[middle].name;
        if (symbols->types[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

const struct hw_data_name *hw_symbolised_data(const struct hw_symbolised *symbols, uint32_t map, uint32_t flags,
                                              size_t *count)
{
    const struct hw_data_name *data = symbols->data;
    size_t low = 0, high = symbols->data_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (data[middle].map < map || (data[middle].map == map && data[middle].flags < flags))
            low = middle + 1;
        else
            high = middle;
    }
    *count = 0;
    while (low + *count < symbols->data_count && data[low + *count].map == map && data[low + *count].flags == flags)
        ++*count;
    return data ? data + low : NULL;
}
