/* symbolise.c - see symbolise.h.
 *
 * A view of the profile does the looking-up; what it came to is written down here, keyed as symbolised.h says. So a
 * symbolised profile says what a report would have said, no more and no less. */
#include "report/view/symbolise.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/order.h"
#include "profile/model/symbol_tables.h"
#include "profile/model/symbolised.h"
#include "profile/container/write.h"
#include "report/view/keeps.h"

struct symboliser {
    struct hw_tables *tables;
    struct hw_arena *arena;
    const struct hw_view *view;
    struct hw_string_table strings;
    struct hw_file_tree files;
    bool failed;
};

static void *replace_table(struct symboliser *symboliser, uint32_t type, size_t count)
{
    void *entries = hw_table_make(symboliser->tables, symboliser->arena, type, count);
    symboliser->failed |= !entries;
    return entries;
}

static uint32_t add_string(struct symboliser *symboliser, const char *text)
{
    const uint32_t string = hw_string_table_add(&symboliser->strings, text);
    symboliser->failed |= string == HW_NONE;
    return string;
}

/* ---- locations ---- */

static uint32_t map_of(const struct hw_view *view, const struct hw_view_location *location)
{
    return location->module == HW_NONE ? HW_NONE : view->modules[location->module].map;
}

struct sorted_location {
    const struct hw_view_location *location;
    uint32_t map;
};

static int compare_locations(const void *left, const void *right)
{
    const struct sorted_location *a = left, *b = right;
    return HW_ORDER(a->map, b->map) ?: HW_ORDER(a->location->address, b->location->address);
}

/* Frames of LLVM's profiles have no module; whether they have a name depends on the binaries that were given. */
static bool has_answer(const struct hw_view *view, const struct hw_view_location *location)
{
    return location->answered ||
           (view->profile->llvm && view->profile->llvm->frames && location->frames.frame->linkage_name);
}

static struct sorted_location *sort_locations(const struct hw_view *view, size_t *count, size_t *frames)
{
    struct sorted_location *sorted = malloc((view->location_count + 1) * sizeof *sorted);
    *count = *frames = 0;
    for (size_t i = 0; sorted && i < view->location_count; i++) {
        const struct hw_view_location *location = &view->locations[i];
        if (!has_answer(view, location))
            continue;
        sorted[(*count)++] = (struct sorted_location){location, map_of(view, location)};
        *frames += location->frames.count < HW_CHAIN_MOST ? location->frames.count : HW_CHAIN_MOST;
    }
    if (sorted)
        qsort(sorted, *count, sizeof *sorted, compare_locations);
    return sorted;
}

static struct hw_symbol_frame make_frame(struct symboliser *symboliser, const struct hw_frame *from)
{
    const uint32_t file = hw_file_tree_add(&symboliser->files, &symboliser->strings, from->file);
    symboliser->failed |= file == HW_NONE;
    return (struct hw_symbol_frame){.function = add_string(symboliser, from->function),
                                    .linkage_name = add_string(symboliser, from->linkage_name),
                                    .file = file,
                                    .line = from->line,
                                    .column = from->column,
                                    .discriminator = from->discriminator,
                                    .start_line = from->start_line,
                                    .relative_line = from->relative_line,
                                    .flags = from->inlined ? HW_SYMBOL_INLINED : 0};
}

static void add_locations(struct symboliser *symboliser)
{
    size_t count, frame_count, used = 0;
    struct sorted_location *sorted = sort_locations(symboliser->view, &count, &frame_count);
    struct hw_location *locations = sorted ? replace_table(symboliser, HW_SECTION_LOCATIONS, count) : NULL;
    struct hw_symbol_frame *frames = locations ? replace_table(symboliser, HW_SECTION_FRAMES, frame_count) : NULL;
    symboliser->failed |= !frames || frame_count >= HW_NONE;
    for (size_t i = 0; !symboliser->failed && i < count; i++) {
        const struct hw_frames *from = &sorted[i].location->frames;
        const uint32_t chain = from->count < HW_CHAIN_MOST ? from->count : HW_CHAIN_MOST;
        locations[i] = (struct hw_location){.address = sorted[i].location->address,
                                            .map = sorted[i].map,
                                            .first_frame = (uint32_t)used,
                                            .frame_count = chain};
        for (uint32_t k = 0; k < chain; k++)
            frames[used++] = make_frame(symboliser, &from->frame[k]);
    }
    free(sorted);
}

static void add_files(struct symboliser *symboliser)
{
    const size_t count = symboliser->files.count;
    struct hw_file_node *nodes = replace_table(symboliser, HW_SECTION_FILES, count);
    if (nodes && count)
        memcpy(nodes, symboliser->files.nodes, count * sizeof *nodes);
}

/* ---- types ---- */

static int compare_types(const void *left, const void *right)
{
    const struct hw_type_name *a = left, *b = right;
    return HW_ORDER(a->id, b->id);
}

/* Those that were found for the view's contexts. */
static void add_block_types(struct symboliser *symboliser)
{
    const struct hw_view *view = symboliser->view;
    const struct hw_profile *profile = view->profile;
    struct hw_block_type *types = malloc((profile->context_count + 1) * sizeof *types);
    size_t count = 0;
    symboliser->failed |= !types;
    for (size_t i = 0; types && i < profile->context_count; i++) {
        const uint32_t id = profile->contexts[i].id, index = id < view->id_count ? view->index_of[id] : HW_NONE;
        const struct hw_profile_context *sum = index == HW_NONE ? NULL : &view->contexts[index].sum;
        if (sum && sum->type && sum->type_evidence && !sum->types_differ)
            types[count++] = (struct hw_block_type){
                .context = id,
                .flags = sum->type_evidence | (sum->type_many ? (uint32_t)HW_BLOCK_TYPE_MANY : 0u),
                .type = sum->type,
                .size = sum->type_size};
    }
    struct hw_block_type *table = types ? replace_table(symboliser, HW_SECTION_BLOCK_TYPES, count) : NULL;
    if (table && count)
        memcpy(table, types, count * sizeof *types);
    free(types);
}

/* Those that contexts have, and those that were named before. */
static void add_types(struct symboliser *symboliser)
{
    const struct hw_profile *profile = symboliser->view->profile;
    const struct hw_symbolised *old = profile->symbolised;
    const size_t old_count = old ? old->type_count : 0;
    const struct hw_view *view = symboliser->view;
    struct hw_type_name *types =
        malloc((profile->context_count + view->context_count + old_count + 1) * sizeof *types);
    size_t count = 0, kept = 0;
    symboliser->failed |= !types;
    if (symboliser->failed)
        goto out;
    for (size_t i = 0; i < old_count; i++)
        types[count++].id = old->types[i].id;
    for (size_t i = 0; i < profile->context_count; i++)
        if (profile->contexts[i].type)
            types[count++].id = profile->contexts[i].type;
    for (size_t i = 0; i < view->context_count; i++)
        if (view->contexts[i].sum.type)
            types[count++].id = view->contexts[i].sum.type;
    if (count)
        qsort(types, count, sizeof *types, compare_types);
    for (size_t i = 0; i < count; i++) {
        const uint64_t id = types[i].id;
        const uint32_t name =
            i && types[i - 1].id == id ? 0 : add_string(symboliser, hw_view_type_name(symboliser->view, id));
        if (name)
            types[kept++] = (struct hw_type_name){.id = id, .name = name};
    }
    struct hw_type_name *table = replace_table(symboliser, HW_SECTION_TYPES, kept);
    if (table && kept)
        memcpy(table, types, kept * sizeof *types);
out:
    free(types);
}

/* ---- data ---- */

static int compare_data(const void *left, const void *right)
{
    const struct hw_data_name *a = left, *b = right;
    return HW_ORDER(a->map, b->map) ?: HW_ORDER(a->flags, b->flags) ?: HW_ORDER(a->address, b->address) ?:
           HW_ORDER(a->size, b->size) ?: HW_ORDER(a->name, b->name);
}

static struct hw_data_name make_data(struct symboliser *symboliser, uint32_t map, uint32_t flags, uint64_t address,
                                     uint64_t size, const char *name)
{
    return (struct hw_data_name){
        .address = address, .size = size, .map = map, .flags = flags, .name = add_string(symboliser, name)};
}

#define KEEPER_NAMES 4

/* The variable of a keeper, its field, and what it points to: at most KEEPER_NAMES; returns how many. */
static size_t make_keeper(struct symboliser *symboliser, const struct hw_view_keeper *keeper,
                          struct hw_data_name *names)
{
    const struct hw_view *view = symboliser->view;
    const uint32_t flags = keeper->in_tls ? HW_DATA_LOCAL : 0, map = view->modules[keeper->module].map;
    const uint32_t whole = keeper->kind == HW_KEEPER_VARIABLE ? HW_DATA_WHOLE : 0;
    const struct hw_data *data = &view->data[keeper->module];
    const struct hw_data local = {.symbol = data->local, .symbol_count = data->local_count};
    const struct hw_data_symbol *symbol = hw_view_symbol_at(keeper->in_tls ? &local : data, keeper->address);
    const uint64_t at = keeper->address, size = sizeof(uint64_t);
    size_t count = 0;
    if (symbol)
        names[count++] = make_data(symboliser, map, flags, symbol->address, symbol->size, symbol->name);
    if (keeper->field_of)
        names[count++] = make_data(symboliser, map, flags | HW_DATA_FIELD_OF | whole, at, size, keeper->field_of);
    if (keeper->field && *keeper->field)
        names[count++] = make_data(symboliser, map, flags | HW_DATA_FIELD, at, size, keeper->field);
    if (keeper->type)
        names[count++] = make_data(symboliser, map, flags | HW_DATA_TYPE | whole, at, size, keeper->type);
    return count;
}

/* The variables that entries of the report name, those that keep blocks, and locks (granules that they share are in
 * several), and all sections of modules with data that has no symbol. */
static void add_data(struct symboliser *symboliser)
{
    const struct hw_view *view = symboliser->view;
    const size_t keepers = view->keeps ? view->keeps->keeper_count : 0;
    size_t most = view->lock_count + KEEPER_NAMES * keepers, count = 0, kept = 0;
    for (size_t i = 0; i < view->global_count; i++)
        most += view->globals[i].symbol_count;
    for (size_t i = 0; view->data && i < view->module_count; i++)
        most += view->data[i].section_count;
    struct hw_data_name *data = malloc((most + 1) * sizeof *data);
    symboliser->failed |= !data;
    for (size_t i = 0; !symboliser->failed && i < view->global_count; i++) {
        const struct hw_view_global *global = &view->globals[i];
        for (uint32_t k = 0; global->module != HW_NONE && k < global->symbol_count; k++)
            data[count++] = make_data(symboliser, view->modules[global->module].map, 0, global->symbols[k].address,
                                      global->symbols[k].size, global->symbols[k].name);
    }
    for (size_t i = 0; !symboliser->failed && i < view->lock_count; i++) {
        const struct hw_view_lock *lock = &view->locks[i];
        if (lock->symbol)
            data[count++] = make_data(symboliser, view->modules[lock->module].map, 0, lock->symbol->address,
                                      lock->symbol->size, lock->symbol->name);
    }
    for (size_t i = 0; !symboliser->failed && i < keepers; i++) {
        const struct hw_view_keeper *keeper = &view->keeps->keepers[i];
        if (keeper->module != HW_NONE && keeper->kind != HW_KEEPER_FRAME && view->data)
            count += make_keeper(symboliser, keeper, &data[count]);
    }
    for (size_t i = 0; !symboliser->failed && view->data && i < view->module_count; i++)
        for (size_t k = 0; k < view->data[i].section_count; k++) {
            const struct hw_data_section *section = &view->data[i].section[k];
            data[count++] = make_data(symboliser, view->modules[i].map, HW_DATA_SECTION, section->start,
                                      section->end - section->start, section->name);
        }
    if (data && count)
        qsort(data, count, sizeof *data, compare_data);
    for (size_t i = 0; data && i < count; i++)
        if (!kept || compare_data(&data[kept - 1], &data[i]))
            data[kept++] = data[i];
    struct hw_data_name *table = data ? replace_table(symboliser, HW_SECTION_DATA_SYMBOLS, kept) : NULL;
    if (table && kept)
        memcpy(table, data, kept * sizeof *data);
    free(data);
}

/* ---- modules ---- */

static uint32_t mark_flags(const struct hw_view *view, size_t index)
{
    const struct hw_view_module *module = &view->modules[index];
    const bool data = view->data && (view->data[index].symbol_count || view->data[index].section_count);
    return (module->usable ? HW_MARK_USABLE : 0) | (module->has_debug_info ? HW_MARK_DEBUG_INFO : 0) |
           (module->counting == HW_COUNTING_YES ? HW_MARK_COUNTS : 0) |
           (module->counting == HW_COUNTING_NO ? HW_MARK_COUNTS_NOT : 0) | (data ? HW_MARK_DATA : 0);
}

static void add_modules(struct symboliser *symboliser)
{
    const struct hw_view *view = symboliser->view;
    struct hw_module_mark *marks = replace_table(symboliser, HW_SECTION_MODULES, view->module_count);
    size_t count = 0;
    for (size_t i = 0; marks && i < view->module_count; i++) { /* in the order of their first maps */
        const struct hw_view_module *module = &view->modules[i];
        const char *path = hw_profile_string(view->profile, view->profile->maps[module->map].path);
        if (!module->examined)
            continue;
        marks[count++] =
            (struct hw_module_mark){.map = module->map,
                                    .flags = mark_flags(view, i),
                                    .path = strcmp(path, module->path) ? add_string(symboliser, module->path) : 0,
                                    .problem = add_string(symboliser, module->problem)};
    }
    symboliser->tables->of[HW_SECTION_MODULES].count = count;
}

/* ---- order of counts ---- */

/* A look-up finds the counts of a context by halving. */
struct sorted_count {
    uint32_t context;
    uint32_t index;
};

static int compare_counts(const void *left, const void *right)
{
    const struct sorted_count *a = left, *b = right;
    return HW_ORDER(a->context, b->context) ?: HW_ORDER(a->index, b->index);
}

/* Sorts the entries, which begin with the number of their context, by it; equal ones stay in their order. */
static bool sort_by_context(struct hw_table *table, size_t size)
{
    const char *from = table->entries;
    struct sorted_count *order = malloc((table->count + 1) * sizeof *order);
    char *copy = malloc(table->count * size + 1);
    bool sorted = true;
    for (size_t i = 0; order && i < table->count; i++) {
        memcpy(&order[i].context, from + i * size, sizeof order[i].context);
        order[i].index = (uint32_t)i;
        sorted = sorted && (i == 0 || order[i - 1].context <= order[i].context);
    }
    if (order && copy && !sorted) {
        qsort(order, table->count, sizeof *order, compare_counts);
        for (size_t i = 0; i < table->count; i++)
            memcpy(copy + i * size, from + order[i].index * size, size);
        memcpy(table->entries, copy, table->count * size);
    }
    const bool done = order && copy;
    free(order);
    free(copy);
    return done;
}

/* Entry i of ACCESS belongs to entry i of MIBS: both have the same contexts, so both get the same order. Slots that
 * were never used name context 0. */
static bool sort_counts(struct hw_tables *tables)
{
    struct hw_table *mibs = &tables->of[HW_SECTION_MIBS], *accesses = &tables->of[HW_SECTION_ACCESS];
    _Static_assert(offsetof(struct hw_mib, context) == 0 && offsetof(struct hw_access, context) == 0, "first field");
    struct hw_access *access = accesses->entries;
    const struct hw_mib *mib = mibs->entries;
    for (size_t i = 0; i < accesses->count && i < mibs->count; i++)
        if (!access[i].blocks)
            access[i].context = mib[i].context;
    return sort_by_context(mibs, sizeof(struct hw_mib)) && sort_by_context(accesses, sizeof(struct hw_access)) &&
           sort_by_context(&tables->of[HW_SECTION_ACCESS_LIVE], sizeof(struct hw_access));
}

/* ---- all of it ---- */

static bool add_sections(struct symboliser *symboliser)
{
    struct hw_table *strings = &symboliser->tables->of[HW_SECTION_STRINGS];
    if (!hw_string_table_make(&symboliser->strings, strings->entries, strings->count))
        return false;
    add_locations(symboliser);
    add_files(symboliser);
    add_types(symboliser);
    add_block_types(symboliser);
    add_data(symboliser);
    add_modules(symboliser);
    if (symboliser->failed)
        return false;
    char *bytes = replace_table(symboliser, HW_SECTION_STRINGS, symboliser->strings.size);
    if (!bytes)
        return false;
    memcpy(bytes, symboliser->strings.bytes, symboliser->strings.size);
    return hw_function_index_build(symboliser->tables, symboliser->arena) && sort_counts(symboliser->tables);
}

bool hw_symbolise(struct hw_tables *tables, struct hw_arena *arena, const char *name,
                  const struct hw_view_options *options, struct hw_error *error)
{
    struct symboliser symboliser = {.tables = tables, .arena = arena};
    struct hw_profile *profile = hw_profile_from_tables(tables, NULL, name, error);
    struct hw_view *view = profile ? hw_view_new(profile, options, error) : NULL;
    bool done = view != NULL;
    if (done) {
        symboliser.view = view;
        done = add_sections(&symboliser);
        if (!done)
            hw_error_set(error, "%s: not enough memory to symbolise it", name);
    }
    hw_string_table_free(&symboliser.strings);
    hw_file_tree_free(&symboliser.files);
    hw_view_free(view);
    hw_profile_free(profile);
    return done;
}

bool hw_symbolise_file(const char *path, const struct hw_view_options *options, struct hw_error *error)
{
    struct hw_arena arena = {0};
    struct hw_tables tables;
    struct hw_write_options write = {0};
    bool done =
        hw_tables_load(path, &arena, &tables, &write, error) && hw_symbolise(&tables, &arena, path, options, error);
    size_t size;
    unsigned char *bytes = done ? hw_tables_serialize(&tables, &write, &size, error) : NULL;
    done = bytes && hw_file_write(path, true, bytes, size, error);
    free(bytes);
    hw_arena_free(&arena);
    return done;
}
