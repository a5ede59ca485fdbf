/* merge_symbols.c - the symbols that inputs of a merge bring along (symbolised.h), kept: the binaries may be gone.
 *
 * Inputs may disagree: one was symbolised without debug information, say. What stays does not depend on their order:
 * the answer with more places in source files, and of two such the greater one as texts compare. */
#include "profile/merge/merge_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/growing.h"
#include "base/order.h"
#include "profile/model/symbol_tables.h"
#include "profile/model/symbolised.h"

/* What is known of an address. */
struct chain {
    uint64_t address; /* number of LLVM's frame where MODULE is HW_NONE */
    uint32_t module;
    uint32_t first, count; /* in `frames` */
    uint32_t rank;         /* when finishing: of the module */
};

struct mark {
    uint32_t flags;         /* enum hw_module_mark_flags */
    uint32_t path, problem; /* strings; the problem without the module's path in front, if it begins with that */
    bool known, with_path, data_missing;
};

struct hw_merge_symbols {
    struct hw_string_table strings;
    struct hw_store chains, types, data; /* data: struct hw_data_name, `map` is a module */
    struct hw_symbol_frame *frames;      /* `file` is a string here */
    size_t frame_count, frame_room;
    struct mark *marks; /* by module */
    size_t mark_count;
};

/* An input's strings and paths in the merge, as far as they were needed: offset + 1. */
struct reader {
    struct hw_merge_symbols *symbols;
    const struct hw_merge_input *input;
    const struct hw_profile *profile;
    uint32_t *string, *path;
};

static struct hw_merge_symbols *new_symbols(void)
{
    struct hw_merge_symbols *symbols = calloc(1, sizeof *symbols);
    if (!symbols)
        return NULL;
    symbols->chains.size = sizeof(struct chain);
    symbols->types.size = sizeof(struct hw_type_name);
    symbols->data.size = sizeof(struct hw_data_name);
    if (hw_string_table_make(&symbols->strings, "", 1))
        return symbols;
    hw_merge_symbols_free(symbols);
    return NULL;
}

void hw_merge_symbols_free(struct hw_merge_symbols *symbols)
{
    if (!symbols)
        return;
    hw_string_table_free(&symbols->strings);
    hw_store_free(&symbols->chains);
    hw_store_free(&symbols->types);
    hw_store_free(&symbols->data);
    free(symbols->frames);
    free(symbols->marks);
    free(symbols);
}

static const char *text_of(const struct hw_merge_symbols *symbols, uint32_t string)
{
    return symbols->strings.bytes + string;
}

static int compare_texts(const struct hw_merge_symbols *symbols, uint32_t a, uint32_t b)
{
    return a == b ? 0 : strcmp(text_of(symbols, a), text_of(symbols, b));
}

/* ---- addresses ---- */

/* The input's text in the merge; HW_NONE when there is no memory. */
static uint32_t take_text(struct reader *reader, uint32_t *known, const char *text)
{
    if (!*known) {
        const uint32_t string = hw_string_table_add(&reader->symbols->strings, text);
        if (string == HW_NONE)
            return HW_NONE;
        *known = string + 1;
    }
    return *known - 1;
}

static uint32_t take_string(struct reader *reader, uint32_t string)
{
    return string ? take_text(reader, &reader->string[string], hw_profile_string(reader->profile, string)) : 0;
}

/* Puts the chain of LOCATION behind the frames. False when there is no memory. */
static bool take_frames(struct reader *reader, const struct hw_location *location)
{
    const struct hw_symbolised *from = reader->profile->symbolised;
    struct hw_merge_symbols *symbols = reader->symbols;
    if (!HW_GROW(symbols->frames, symbols->frame_room, symbols->frame_count + location->frame_count))
        return false;
    for (uint32_t i = 0; i < location->frame_count; i++) {
        struct hw_symbol_frame frame = from->frames[location->first_frame + i];
        const char *path = frame.file ? from->paths[frame.file] : NULL;
        frame.function = take_string(reader, frame.function);
        frame.linkage_name = take_string(reader, frame.linkage_name);
        frame.file = path ? take_text(reader, &reader->path[frame.file], path) : 0;
        if (frame.function == HW_NONE || frame.linkage_name == HW_NONE || frame.file == HW_NONE)
            return false;
        symbols->frames[symbols->frame_count + i] = frame;
    }
    return true;
}

static int compare_frames(const struct hw_merge_symbols *symbols, const struct hw_symbol_frame *a,
                          const struct hw_symbol_frame *b)
{
    const uint32_t numbers[][2] = {{a->line, b->line},
                                   {a->column, b->column},
                                   {a->discriminator, b->discriminator},
                                   {a->start_line, b->start_line},
                                   {a->relative_line, b->relative_line},
                                   {a->flags, b->flags}};
    int order = compare_texts(symbols, a->function, b->function);
    order = order ? order : compare_texts(symbols, a->linkage_name, b->linkage_name);
    order = order ? order : compare_texts(symbols, a->file, b->file);
    for (size_t i = 0; !order && i < sizeof numbers / sizeof *numbers; i++)
        order = HW_ORDER(numbers[i][0], numbers[i][1]);
    return order;
}

/* How many frames of a chain have a name, and, worth more, a place in a source file. */
static uint64_t worth(const struct hw_symbol_frame *frame, uint32_t count)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < count; i++)
        value += (frame[i].file && frame[i].line ? 1ull << 32 : 0) + (frame[i].function != 0);
    return value;
}

static bool is_better(const struct hw_merge_symbols *symbols, const struct chain *old, uint32_t first, uint32_t count)
{
    const struct hw_symbol_frame *a = symbols->frames + old->first, *b = symbols->frames + first;
    const uint64_t old_worth = worth(a, old->count), new_worth = worth(b, count);
    if (old_worth != new_worth)
        return new_worth > old_worth;
    if (old->count != count)
        return count > old->count;
    for (uint32_t i = 0; i < count; i++) {
        const int order = compare_frames(symbols, &b[i], &a[i]);
        if (order)
            return order > 0;
    }
    return false;
}

static bool take_location(struct reader *reader, const struct hw_location *location)
{
    struct hw_merge_symbols *symbols = reader->symbols;
    struct chain chain = {.address = location->address, .module = HW_NONE, .count = location->frame_count};
    if (location->map != HW_NONE) {
        if (location->map >= reader->input->map_count)
            return true;
        chain.module = reader->input->map[location->map].module;
    } else {
        if (location->address >= reader->input->frame_count)
            return true;
        chain.address = reader->input->frame[location->address];
    }
    bool added;
    struct chain *to = hw_store_intern(&symbols->chains, (struct hw_key){chain.address, chain.module}, &added);
    if (!to || symbols->frame_count >= HW_NONE - HW_CHAIN_MOST || !take_frames(reader, location))
        return false;
    chain.first = (uint32_t)symbols->frame_count;
    if (!added && !is_better(symbols, to, chain.first, chain.count))
        return true; /* what was put behind the frames is overwritten */
    *to = chain;
    symbols->frame_count += chain.count;
    return true;
}

/* ---- types and data ---- */

static bool take_types(struct reader *reader)
{
    const struct hw_symbolised *from = reader->profile->symbolised;
    struct hw_merge_symbols *symbols = reader->symbols;
    for (size_t i = 0; i < from->type_count; i++) {
        const uint32_t name = take_string(reader, from->types[i].name);
        bool added;
        struct hw_type_name *to = hw_store_intern(&symbols->types, (struct hw_key){from->types[i].id, 0}, &added);
        if (!to || name == HW_NONE)
            return false;
        if (added || compare_texts(symbols, name, to->name) < 0)
            *to = (struct hw_type_name){.id = from->types[i].id, .name = name};
    }
    return true;
}

static bool take_data(struct reader *reader)
{
    const struct hw_symbolised *from = reader->profile->symbolised;
    struct hw_merge_symbols *symbols = reader->symbols;
    for (size_t i = 0; i < from->data_count; i++) {
        struct hw_data_name data = from->data[i];
        data.name = take_string(reader, data.name);
        data.map = reader->input->map[data.map].module;
        const uint64_t words[3] = {data.address, data.size, (uint64_t)data.map << 32 | data.flags};
        bool added;
        struct hw_data_name *to = hw_store_intern(&symbols->data, hw_key_of("d", 1, words, sizeof words), &added);
        if (!to || data.name == HW_NONE)
            return false;
        if (added || compare_texts(symbols, data.name, to->name) < 0)
            *to = data;
    }
    return true;
}

/* ---- modules ---- */

static struct mark *mark_of(struct hw_merge_symbols *symbols, uint32_t module)
{
    const size_t known = symbols->mark_count;
    if (!HW_GROW(symbols->marks, symbols->mark_count, (size_t)module + 1))
        return NULL;
    memset(symbols->marks + known, 0, (symbols->mark_count - known) * sizeof *symbols->marks);
    return &symbols->marks[module];
}

/* Of two inputs the one that knew more says what the problem is. */
static void keep_problem(const struct hw_merge_symbols *symbols, struct mark *to, const struct mark *from)
{
    const uint32_t quality = HW_MARK_USABLE | HW_MARK_DEBUG_INFO;
    const uint32_t old = to->flags & quality, new = from->flags &quality;
    if (to->known && (old > new || (old == new &&compare_texts(symbols, to->problem, from->problem) <= 0)))
        return;
    to->problem = from->problem;
    to->with_path = from->with_path;
}

static bool take_mark(struct reader *reader, const struct hw_module_mark *mark)
{
    struct hw_merge_symbols *symbols = reader->symbols;
    const struct hw_map_entry *map = &reader->profile->maps[mark->map];
    struct mark *to = mark_of(symbols, reader->input->map[mark->map].module);
    const char *path = hw_profile_string(reader->profile, mark->path ? mark->path : map->path);
    const char *problem = hw_profile_string(reader->profile, mark->problem);
    const size_t length = strlen(path);
    struct mark from = {.flags = mark->flags, .path = take_string(reader, mark->path)};
    from.with_path = !strncmp(problem, path, length) && !strncmp(problem + length, ": ", 2);
    from.problem = hw_string_table_add(&symbols->strings, from.with_path ? problem + length + 2 : problem);
    if (!to || from.path == HW_NONE || from.problem == HW_NONE)
        return false;
    keep_problem(symbols, to, &from);
    if (from.path && (!to->path || compare_texts(symbols, from.path, to->path) < 0))
        to->path = from.path;
    to->flags |= from.flags;
    return to->known = true;
}

/* Modules with accesses to data in some input that does not name the variables. */
static bool note_missing_data(struct hw_merge_symbols *symbols, const struct hw_merge_input *input,
                              const struct hw_profile *profile, const struct hw_global_granule *globals, size_t count)
{
    uint32_t last = HW_NONE;
    for (size_t i = 0; i < count; i++) {
        const uint32_t map = globals[i].map;
        if (map == last || map >= input->map_count)
            continue;
        const struct hw_module_mark *mark = NULL;
        for (uint32_t k = 0; profile->symbolised && k <= map && !mark; k++) /* its first map has the mark */
            if (input->map[k].module == input->map[map].module)
                mark = hw_symbolised_module(profile->symbolised, k);
        struct mark *to = mark_of(symbols, input->map[map].module);
        if (!to)
            return false;
        to->data_missing |= !mark || !(mark->flags & HW_MARK_DATA);
        last = map;
    }
    return true;
}

bool hw_merge_symbols_add(struct hw_merge *merge, const struct hw_merge_input *input, const struct hw_profile *profile)
{
    const struct hw_symbolised *from = profile->symbolised;
    const bool data = profile->global_count || profile->sampled_global_count;
    if (!merge->symbols && (from || data))
        merge->symbols = new_symbols();
    struct reader reader = {.symbols = merge->symbols, .input = input, .profile = profile};
    if (!from && !data)
        return true;
    if (!merge->symbols ||
        !note_missing_data(merge->symbols, input, profile, profile->globals, profile->global_count) ||
        !note_missing_data(merge->symbols, input, profile, profile->sampled_globals, profile->sampled_global_count))
        return false;
    if (!from)
        return true;
    reader.string = calloc(profile->string_size + 1, sizeof *reader.string);
    reader.path = calloc(from->path_count + 1, sizeof *reader.path);
    bool fine = reader.string && reader.path && take_types(&reader) && take_data(&reader);
    for (size_t i = 0; fine && i < from->location_count; i++)
        fine = take_location(&reader, &from->locations[i]);
    for (size_t i = 0; fine && i < from->module_count; i++)
        fine = take_mark(&reader, &from->modules[i]);
    free(reader.string);
    free(reader.path);
    return fine;
}

/* ---- the result ---- */

struct writer {
    struct hw_merge *merge;
    struct hw_merge_symbols *symbols;
    struct hw_arena *arena;
    struct hw_tables *tables;
    struct hw_string_table strings;
    struct hw_file_tree files;
    bool failed;
};

static void *make_table(struct writer *writer, uint32_t type, size_t count)
{
    void *entries = hw_table_make(writer->tables, writer->arena, type, count);
    writer->failed |= !entries;
    return entries;
}

static uint32_t put_text(struct writer *writer, const char *text)
{
    const uint32_t string = hw_string_table_add(&writer->strings, text);
    writer->failed |= string == HW_NONE;
    return string;
}

static uint32_t put_string(struct writer *writer, uint32_t string)
{
    return string ? put_text(writer, text_of(writer->symbols, string)) : 0;
}

static int compare_chains(const void *left, const void *right)
{
    const struct chain *a = left, *b = right;
    return HW_ORDER(a->rank, b->rank) ?: HW_ORDER(a->address, b->address);
}

static void put_locations(struct writer *writer)
{
    struct hw_merge_symbols *symbols = writer->symbols;
    struct chain *chains = malloc((symbols->chains.count + 1) * sizeof *chains);
    size_t frames = 0, used = 0;
    writer->failed |= !chains;
    for (uint32_t i = 0; chains && i < symbols->chains.count; i++) {
        chains[i] = *(struct chain *)hw_store_at(&symbols->chains, i);
        chains[i].rank = hw_merge_rank(writer->merge, chains[i].module);
        if (chains[i].module == HW_NONE)
            chains[i].address =
                ((struct hw_merge_llvm_frame *)hw_store_at(&writer->merge->frames, (uint32_t)chains[i].address))->rank;
        frames += chains[i].count;
    }
    if (chains)
        qsort(chains, symbols->chains.count, sizeof *chains, compare_chains);
    struct hw_location *locations = make_table(writer, HW_SECTION_LOCATIONS, symbols->chains.count);
    struct hw_symbol_frame *to = make_table(writer, HW_SECTION_FRAMES, frames);
    for (uint32_t i = 0; !writer->failed && i < symbols->chains.count; i++) {
        locations[i] = (struct hw_location){.address = chains[i].address,
                                            .map = chains[i].rank,
                                            .first_frame = (uint32_t)used,
                                            .frame_count = chains[i].count};
        for (uint32_t k = 0; k < chains[i].count; k++) {
            struct hw_symbol_frame frame = symbols->frames[chains[i].first + k];
            const char *path = frame.file ? text_of(symbols, frame.file) : NULL;
            frame.file = hw_file_tree_add(&writer->files, &writer->strings, path);
            frame.function = put_string(writer, frame.function);
            frame.linkage_name = put_string(writer, frame.linkage_name);
            writer->failed |= frame.file == HW_NONE;
            to[used++] = frame;
        }
    }
    free(chains);
    struct hw_file_node *nodes = make_table(writer, HW_SECTION_FILES, writer->files.count);
    if (nodes && writer->files.count)
        memcpy(nodes, writer->files.nodes, writer->files.count * sizeof *nodes);
}

static int compare_types(const void *left, const void *right)
{
    const struct hw_type_name *a = left, *b = right;
    return HW_ORDER(a->id, b->id);
}

static int compare_data(const void *left, const void *right)
{
    const struct hw_data_name *a = left, *b = right;
    return HW_ORDER(a->map, b->map) ?: HW_ORDER(a->flags, b->flags) ?: HW_ORDER(a->address, b->address) ?:
           HW_ORDER(a->size, b->size);
}

static void put_types_and_data(struct writer *writer)
{
    struct hw_merge_symbols *symbols = writer->symbols;
    struct hw_type_name *types = make_table(writer, HW_SECTION_TYPES, symbols->types.count);
    struct hw_data_name *data = make_table(writer, HW_SECTION_DATA_SYMBOLS, symbols->data.count);
    for (uint32_t i = 0; types && i < symbols->types.count; i++)
        types[i] = *(struct hw_type_name *)hw_store_at(&symbols->types, i);
    for (uint32_t i = 0; data && i < symbols->data.count; i++) {
        data[i] = *(struct hw_data_name *)hw_store_at(&symbols->data, i);
        data[i].map = hw_merge_rank(writer->merge, data[i].map);
    }
    if (writer->failed)
        return;
    qsort(types, symbols->types.count, sizeof *types, compare_types);
    qsort(data, symbols->data.count, sizeof *data, compare_data);
    for (uint32_t i = 0; i < symbols->types.count; i++)
        types[i].name = put_string(writer, types[i].name);
    for (uint32_t i = 0; i < symbols->data.count; i++)
        data[i].name = put_string(writer, data[i].name);
}

static uint32_t put_problem(struct writer *writer, const struct mark *mark, const char *module_path)
{
    const char *problem = text_of(writer->symbols, mark->problem);
    const char *path = mark->path ? text_of(writer->symbols, mark->path) : module_path;
    char *sentence = NULL;
    if (!mark->problem || !mark->with_path)
        return put_string(writer, mark->problem);
    if (asprintf(&sentence, "%s: %s", path, problem) < 0) {
        writer->failed = true;
        return 0;
    }
    const uint32_t string = put_text(writer, sentence);
    free(sentence);
    return string;
}

static int compare_marks(const void *left, const void *right)
{
    const struct hw_module_mark *a = left, *b = right;
    return HW_ORDER(a->map, b->map);
}

static void put_marks(struct writer *writer)
{
    struct hw_merge_symbols *symbols = writer->symbols;
    const uint32_t count = writer->merge->modules.count;
    struct hw_module_mark *marks = make_table(writer, HW_SECTION_MODULES, count);
    size_t used = 0;
    for (uint32_t i = 0; marks && i < count && i < symbols->mark_count; i++) {
        const struct mark *mark = &symbols->marks[i];
        if (mark->known)
            marks[used++] =
                (struct hw_module_mark){.map = i, .flags = mark->flags & ~(mark->data_missing ? HW_MARK_DATA : 0u)};
    }
    writer->tables->of[HW_SECTION_MODULES].count = used;
    for (size_t i = 0; i < used; i++) { /* `map` is the module until now */
        const struct mark *mark = &symbols->marks[marks[i].map];
        const struct hw_merge_module *module = hw_store_at(&writer->merge->modules, marks[i].map);
        marks[i].map = module->rank;
        marks[i].path = mark->path;
        marks[i].problem = (uint32_t)(mark - symbols->marks);
    }
    if (used)
        qsort(marks, used, sizeof *marks, compare_marks);
    for (size_t i = 0; i < used; i++) {
        const uint32_t number = marks[i].problem;
        const struct hw_merge_module *module = hw_store_at(&writer->merge->modules, number);
        marks[i].path = put_string(writer, marks[i].path);
        marks[i].problem = put_problem(writer, &symbols->marks[number], module->path);
    }
}

bool hw_merge_symbols_finish(struct hw_merge *merge, struct hw_arena *arena, struct hw_tables *tables)
{
    struct writer writer = {.merge = merge, .symbols = merge->symbols, .arena = arena, .tables = tables};
    const struct hw_table *strings = &tables->of[HW_SECTION_STRINGS];
    bool symbolised = merge->symbols && merge->symbols->chains.count;
    for (size_t i = 0; merge->symbols && i < merge->symbols->mark_count; i++)
        symbolised |= merge->symbols->marks[i].known;
    if (!symbolised)
        return true;
    writer.failed = !hw_string_table_make(&writer.strings, strings->entries, strings->count);
    if (!writer.failed)
        put_locations(&writer);
    if (!writer.failed)
        put_types_and_data(&writer);
    if (!writer.failed)
        put_marks(&writer);
    char *bytes = writer.failed ? NULL : make_table(&writer, HW_SECTION_STRINGS, writer.strings.size);
    if (bytes)
        memcpy(bytes, writer.strings.bytes, writer.strings.size);
    hw_string_table_free(&writer.strings);
    hw_file_tree_free(&writer.files);
    return !writer.failed && hw_function_index_build(tables, arena);
}
