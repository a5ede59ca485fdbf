/* test_symbolised.c - the sections of symbolised profiles: written, read, looked up, and damaged. */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "profile/container/container.h"
#include "profile/model/lookup.h"
#include "profile/model/symbol_tables.h"
#include "profile/model/symbolised.h"
#include "profile/container/write.h"
#include "profile_writer.h"
#include "report/report.h"
#include "support/check.h"

/* ---- source paths ---- */

/* The example of the heap profile RFC. */
static void paths_share_their_directories(void **state)
{
    struct hw_string_table strings;
    struct hw_file_tree tree = {0};
    assert_true(hw_string_table_make(&strings, "", 1));
    const uint32_t c = hw_file_tree_add(&tree, &strings, "abc/def/ghi/XY.c");
    const uint32_t h = hw_file_tree_add(&tree, &strings, "abc/def/ghi/XY.h");
    const uint32_t uv = hw_file_tree_add(&tree, &strings, "abc/def/jkl/UV.c");
    assert_int_equal(tree.count, 1 + 7);
    assert_int_equal(tree.nodes[c].parent, tree.nodes[h].parent);
    assert_int_equal(tree.nodes[tree.nodes[uv].parent].parent, tree.nodes[tree.nodes[c].parent].parent);
    assert_string_equal(strings.bytes + tree.nodes[c].name, "XY.c");
    assert_string_equal(strings.bytes + tree.nodes[tree.nodes[uv].parent].name, "jkl");
    assert_int_equal(hw_file_tree_add(&tree, &strings, "abc/def/ghi/XY.c"), c);
    assert_int_equal(hw_file_tree_add(&tree, &strings, NULL), 0);
    assert_int_equal(tree.count, 1 + 7);
    for (uint32_t i = 1; i < tree.count; i++)
        assert_true(tree.nodes[i].parent < i);
    hw_file_tree_free(&tree);
    hw_string_table_free(&strings);
}

/* ---- a profile with symbols ---- */

#define CONTEXTS 40u

static const char *const odd_paths[] = {"/usr/src/a.c", "relative/b.c", "//two//slashes/", "/",
                                        "c.c",          "/usr/src/a/",  "/usr/./../x",     NULL};

struct sample_names {
    struct hw_arena arena;
    struct hw_tables tables;
    struct hw_string_table strings;
    struct hw_file_tree files;
};

static void *table(struct sample_names *made, uint32_t type, size_t count)
{
    struct hw_table *table = &made->tables.of[type];
    table->entries = hw_arena_allocate(&made->arena, count + 1, hw_section_rule(type)->size);
    table->count = count;
    assert_non_null(table->entries);
    return table->entries;
}

static void copy_table(struct sample_names *made, uint32_t type, const void *bytes, size_t count)
{
    memcpy(table(made, type, count), bytes, count * hw_section_rule(type)->size);
}

/* Context i has the stack i, 100 + i % 3. Function names: NAME(k) of leaf k, as PREFIX says. Leaves of even number have
 * something inlined. */
static struct sample_names make_sample(const char *prefix)
{
    struct sample_names made = {0};
    char name[8192];
    assert_true(hw_string_table_make(&made.strings, "", 1));
    struct hw_process_info *process = table(&made, HW_SECTION_PROCESS, 1);
    *process = sample_process();
    process->executable = process->allocator = process->allocator_path = process->options = process->command = 0;
    process->command_count = 0;
    struct hw_map_entry *maps = table(&made, HW_SECTION_MAPS, 3);
    for (uint32_t i = 0; i < 3; i++) /* the third one is the first module again, elsewhere */
        maps[i] = (struct hw_map_entry){.start = 0x10000 * (i + 1),
                                        .end = 0x10000 * (i + 1) + 0x8000,
                                        .bias = 0x10000 * (i + 1),
                                        .path = hw_string_table_add(&made.strings, i == 1 ? "/lib/b.so" : "/bin/a")};
    struct hw_stack_node *nodes = table(&made, HW_SECTION_STACKS, 1 + 3 + CONTEXTS);
    struct hw_context_entry *contexts = table(&made, HW_SECTION_CONTEXTS, CONTEXTS + 1);
    struct hw_mib *mibs = table(&made, HW_SECTION_MIBS, CONTEXTS);
    nodes[0].map = HW_NONE;
    for (uint32_t i = 0; i < 3; i++)
        nodes[1 + i] = (struct hw_stack_node){.pc = 0x10000 + 100 + i, .map = 0};
    for (uint32_t i = 0; i < CONTEXTS; i++) {
        const uint32_t map = i % 3;
        nodes[4 + i] = (struct hw_stack_node){.pc = maps[map].bias + i / 2, .map = map, .parent = 1 + i % 3};
        contexts[1 + i] = (struct hw_context_entry){.leaf = 4 + i, .depth = 2};
        mibs[i] = sample_mib(1 + i);
        mibs[i].allocations = mibs[i].samples = 1 + i;
    }
    struct hw_location *locations = table(&made, HW_SECTION_LOCATIONS, 2 * CONTEXTS);
    struct hw_symbol_frame *frames = table(&made, HW_SECTION_FRAMES, 4 * CONTEXTS);
    size_t location_count = 0, frame_count = 0;
    for (uint32_t map = 0; map < 2; map++) {
        for (uint32_t address = 0; address < 103; address += address == CONTEXTS / 2 - 1 ? 100 - CONTEXTS / 2 + 1 : 1) {
            if (map == 1 && address >= 100)
                break;
            const uint32_t count = address % 2 ? 1 : 2;
            locations[location_count++] = (struct hw_location){
                .address = address, .map = map, .first_frame = (uint32_t)frame_count, .frame_count = count};
            for (uint32_t k = 0; k < count; k++) {
                snprintf(name, sizeof name, "%s%u(%u)", prefix, address + k, map);
                frames[frame_count++] = (struct hw_symbol_frame){
                    .function = hw_string_table_add(&made.strings, name),
                    .linkage_name = hw_string_table_add(&made.strings, k ? NULL : "_Zsame"),
                    .file = hw_file_tree_add(&made.files, &made.strings, odd_paths[address % 8]),
                    .line = 1 + address,
                    .discriminator = 7,
                    .flags = k + 1 < count ? HW_SYMBOL_INLINED | 0x80000000u : 0x40000000u}; /* and what is not known */
            }
        }
    }
    made.tables.of[HW_SECTION_LOCATIONS].count = location_count;
    made.tables.of[HW_SECTION_FRAMES].count = frame_count;
    struct hw_type_name *types = table(&made, HW_SECTION_TYPES, 2);
    types[0] = (struct hw_type_name){.id = 5, .name = hw_string_table_add(&made.strings, "struct five")};
    types[1] = (struct hw_type_name){.id = 7, .name = hw_string_table_add(&made.strings, "struct seven")};
    struct hw_data_name *data = table(&made, HW_SECTION_DATA_SYMBOLS, 3);
    data[0] = (struct hw_data_name){.address = 8, .size = 8, .name = hw_string_table_add(&made.strings, "variable")};
    data[1] = (struct hw_data_name){
        .address = 0, .size = 64, .flags = HW_DATA_SECTION, .name = hw_string_table_add(&made.strings, ".data")};
    data[2] = (struct hw_data_name){.address = 8, .size = 8, .map = 1, .name = data[0].name};
    struct hw_module_mark *marks = table(&made, HW_SECTION_MODULES, 2);
    for (uint32_t i = 0; i < 2; i++)
        marks[i] = (struct hw_module_mark){
            .map = i, .flags = HW_MARK_USABLE | HW_MARK_DEBUG_INFO | 0x10000u, .problem = types[0].name};
    copy_table(&made, HW_SECTION_FILES, made.files.nodes, made.files.count);
    copy_table(&made, HW_SECTION_STRINGS, made.strings.bytes, made.strings.size);
    assert_true(hw_function_index_build(&made.tables, &made.arena));
    return made;
}

static void free_sample(struct sample_names *made)
{
    hw_string_table_free(&made->strings);
    hw_file_tree_free(&made->files);
    hw_arena_free(&made->arena);
}

static struct image make_image(const char *prefix, bool packed)
{
    struct sample_names made = make_sample(prefix);
    const struct hw_write_options options = {.packed = packed, .zstd_level = packed ? 3 : 0};
    struct hw_error error = {""};
    struct image image = {0};
    image.bytes = hw_tables_serialize(&made.tables, &options, &image.size, &error);
    assert_non_null(image.bytes);
    free_sample(&made);
    return image;
}

static void everything_comes_back(void **state)
{
    for (int packed = 0; packed < 2; packed++) {
        struct image image = make_image("f", packed);
        struct hw_error error = {""};
        struct hw_profile *profile = hw_profile_read_bytes(image.bytes, image.size, "sample", &error);
        assert_non_null(profile);
        assert_int_equal(profile->problem_count, 0);
        const struct hw_symbolised *symbols = profile->symbolised;
        assert_non_null(symbols);
        for (uint32_t address = 0; address < 8; address++) {
            const struct hw_location *location = hw_symbolised_location(symbols, 0, address);
            assert_non_null(location);
            assert_int_equal(location->frame_count, address % 2 ? 1 : 2);
            const struct hw_symbol_frame *frame = &symbols->frames[location->first_frame];
            const char *path = frame->file ? symbols->paths[frame->file] : NULL;
            if (odd_paths[address])
                assert_string_equal(path, odd_paths[address]);
            else
                assert_null(path);
            assert_int_equal(frame->discriminator, 7);
            assert_int_equal(frame->line, 1 + address);
        }
        assert_null(hw_symbolised_location(symbols, 0, 60));
        assert_null(hw_symbolised_location(symbols, 2, 0));
        assert_null(hw_symbolised_location(symbols, HW_NONE, 0));
        assert_string_equal(hw_profile_string(profile, hw_symbolised_type(symbols, 7)), "struct seven");
        assert_int_equal(hw_symbolised_type(symbols, 6), 0);
        size_t count;
        assert_int_equal(hw_symbolised_data(symbols, 0, HW_DATA_SECTION, &count)->size, 64);
        assert_int_equal(count, 1);
        hw_symbolised_data(symbols, 2, 0, &count);
        assert_int_equal(count, 0);
        assert_non_null(hw_symbolised_module(symbols, 1));
        assert_null(hw_symbolised_module(symbols, 2));
        hw_profile_free(profile);
        image_free(&image);
    }
}

/* ---- the index ---- */

/* How many contexts have a leaf with NAME, and the sum of their allocations. */
static size_t count_contexts(const struct hw_profile *profile, const char *name, uint64_t *allocations)
{
    struct hw_error error = {""};
    struct hw_view *view = hw_view_new(profile, NULL, &error);
    assert_non_null(view);
    size_t count = 0;
    *allocations = 0;
    for (size_t i = 0; i < view->context_count; i++) {
        const struct hw_profile_context *sum = &view->contexts[i].sum;
        const struct hw_frames *frames = &view->locations[view->nodes[sum->leaf].location].frames;
        bool found = false;
        for (uint32_t k = 0; sum->leaf && k < frames->count; k++)
            found |= (frames->frame[k].function && !strcmp(frames->frame[k].function, name)) ||
                     (frames->frame[k].linkage_name && !strcmp(frames->frame[k].linkage_name, name));
        count += found;
        *allocations += found ? sum->allocations : 0;
    }
    hw_view_free(view);
    return count;
}

static void check_name(struct hw_lookup *lookup, const struct hw_profile *whole, const char *name)
{
    struct hw_error error = {""};
    uint64_t expected, actual;
    const size_t count = count_contexts(whole, name, &expected);
    for (int names = 0; names < 2; names++) {
        struct hw_profile *found = hw_lookup_function(lookup, name, names, &error);
        assert_non_null(found);
        assert_int_equal(found->problem_count, 0);
        actual = 0;
        for (size_t i = 0; i < found->context_count; i++) {
            const uint32_t id = found->contexts[i].id;
            actual += found->contexts[i].allocations;
            assert_int_equal(found->contexts[i].allocations, id); /* as the sample has it */
            assert_int_equal(found->contexts[i].depth, 2);
            assert_int_equal(found->nodes[found->contexts[i].leaf].pc,
                             whole->nodes[whole->context_entries[id].leaf].pc);
        }
        assert_int_equal(actual, expected);
        if (names)
            assert_int_equal(count_contexts(found, name, &actual), count);
        assert_int_equal(found->symbolised != NULL, names);
        hw_profile_free(found);
    }
}

/* 60 names in 128 slots: many do not have the first slot that their hash names. */
static void functions_are_found(void **state)
{
    for (int packed = 0; packed < 2; packed++) {
        struct image image = make_image("f", packed);
        struct memory_file file = memory_file(image.bytes, image.size);
        struct hw_error error = {""};
        struct hw_profile *whole = hw_profile_read(file.path, &error);
        struct hw_lookup *lookup = hw_lookup_open(file.path, &error);
        assert_non_null(whole);
        if (!lookup)
            fail_msg("%s", error.message);
        assert_true(hw_lookup_is_complete(lookup));
        char name[64];
        uint64_t allocations;
        for (uint32_t i = 0; i < 30; i++) {
            for (uint32_t map = 0; map < 3; map++) {
                snprintf(name, sizeof name, "f%u(%u)", i, map);
                check_name(lookup, whole, name);
            }
        }
        assert_true(count_contexts(whole, "f3(0)", &allocations) > 1);
        check_name(lookup, whole, "_Zsame"); /* all of them */
        assert_int_equal(count_contexts(whole, "_Zsame", &allocations), CONTEXTS);
        check_name(lookup, whole, "f100(0)"); /* a caller only */
        assert_int_equal(count_contexts(whole, "f100(0)", &allocations), 0);
        check_name(lookup, whole, "");
        check_name(lookup, whole, "nothing");
        hw_lookup_close(lookup);
        hw_profile_free(whole);
        close(file.fd);
        image_free(&image);
    }
}

static void files_without_an_index(void **state)
{
    struct sample sample = sample_new();
    struct hw_error error = {""};
    image_seal(&sample.image);
    struct memory_file file = memory_file(sample.image.bytes, sample.image.size);
    assert_null(hw_lookup_open(file.path, &error));
    assert_non_null(strstr(error.message, "has no index of functions"));
    assert_null(hw_lookup_open("/nowhere/at/all", &error));
    close(file.fd);
    image_free(&sample.image);
}

/* A file that was written without any of the code under test. */
static void an_independent_writer(void **state)
{
    struct sample sample = sample_new();
    struct hw_error error = {""};
    sample_add_symbols(&sample);
    image_seal(&sample.image);
    struct memory_file file = memory_file(sample.image.bytes, sample.image.size);
    struct hw_profile *profile = hw_profile_read(file.path, &error);
    assert_non_null(profile);
    assert_int_equal(profile->problem_count, 0);
    assert_non_null(profile->symbolised);
    const struct hw_location *location = hw_symbolised_location(profile->symbolised, 1, 0x7ffee010);
    assert_non_null(location);
    const struct hw_symbol_frame *frame = &profile->symbolised->frames[location->first_frame];
    assert_string_equal(hw_profile_string(profile, frame->function), "allocate(int)");
    assert_string_equal(hw_profile_string(profile, frame->linkage_name), "_Z8allocatei");
    assert_string_equal(profile->symbolised->paths[frame->file], "src/a.c");
    struct hw_lookup *lookup = hw_lookup_open(file.path, &error);
    if (!lookup)
        fail_msg("%s", error.message);
    static const char *const names[] = {"allocate(int)", "_Z8allocatei", "main"};
    for (size_t i = 0; i < 3; i++) {
        struct hw_profile *found = hw_lookup_function(lookup, names[i], true, &error);
        assert_non_null(found);
        assert_int_equal(found->context_count, 1);
        assert_int_equal(found->contexts[0].id, 1);
        hw_profile_free(found);
    }
    hw_lookup_close(lookup);
    hw_profile_free(profile);
    close(file.fd);
    image_free(&sample.image);
}

/* ---- names that are hostile ---- */

static void names_are_only_names(void **state)
{
    char prefix[5000];
    const char *const prefixes[] = {"\x1b[31mred\x1b[0m\n\r\t", "\xff\xfe\x80 not UTF-8 \xc3", "\"},{\"x\":[", "%s%n%d",
                                    prefix};
    memset(prefix, 'x', sizeof prefix - 1);
    prefix[sizeof prefix - 1] = '\0';
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        struct image image = make_image(prefixes[i], i % 2);
        struct hw_error error = {""};
        struct hw_profile *profile = hw_profile_read_bytes(image.bytes, image.size, "sample", &error);
        struct hw_view *view = hw_view_new(profile, NULL, &error);
        assert_non_null(view);
        const struct hw_report_options options = {.top = 100, .width = 80, .full = true, .utf8 = true};
        char *text = NULL, *json = NULL;
        size_t text_size, json_size;
        FILE *out = open_memstream(&text, &text_size);
        assert_true(hw_report_text(view, &options, out, &error));
        fclose(out);
        for (size_t k = 0; k < text_size; k++)
            assert_true(text[k] == '\n' || (unsigned char)text[k] >= ' ');
        out = open_memstream(&json, &json_size);
        assert_true(hw_report_json(view, &options, out, &error));
        fclose(out);
        json_t *parsed = json_loads(json, 0, NULL);
        assert_non_null(parsed);
        json_decref(parsed);
        free(text);
        free(json);
        hw_view_free(view);
        hw_profile_free(profile);
        image_free(&image);
    }
}

/* ---- damage ---- */

static uint64_t seed = 0x9e3779b97f4a7c15u;

static uint64_t draw(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

/* Everything that readers of symbols rely on. */
static void check_symbols(const struct hw_profile *profile)
{
    const struct hw_symbolised *symbols = profile->symbolised;
    size_t used = 0;
    for (size_t i = 0; symbols && i < symbols->location_count; i++) {
        const struct hw_location *location = &symbols->locations[i];
        assert_true(location->frame_count > 0 && location->frame_count <= HW_CHAIN_MOST);
        assert_true((uint64_t)location->first_frame + location->frame_count <= symbols->frame_count);
        assert_ptr_equal(hw_symbolised_location(symbols, location->map, location->address), location);
    }
    for (size_t i = 0; symbols && i < symbols->frame_count; i++) {
        const struct hw_symbol_frame *frame = &symbols->frames[i];
        assert_true(frame->file == 0 || (frame->file < symbols->path_count && symbols->paths[frame->file]));
        used += frame->file ? strlen(symbols->paths[frame->file]) : 0;
        used += strlen(hw_profile_string(profile, frame->function));
    }
    for (size_t i = 0; symbols && i < symbols->data_count; i++)
        assert_true(symbols->data[i].map < profile->map_count);
    for (size_t i = 0; symbols && i < symbols->module_count; i++)
        assert_true(symbols->modules[i].map < profile->map_count);
    assert_true(used < SIZE_MAX);
}

static void use(const struct image *image)
{
    struct memory_file file = memory_file(image->bytes, image->size);
    struct hw_error error = {""};
    const struct hw_view_options options = {.symbolizer = {.threads = 1, .no_debuginfod = true}};
    struct hw_profile *profile = hw_profile_read(file.path, &error);
    if (profile) {
        check_symbols(profile);
        struct hw_view *view = hw_view_new(profile, &options, &error);
        assert_non_null(view);
        hw_view_free(view);
    }
    hw_profile_free(profile);
    struct hw_lookup *lookup = hw_lookup_open(file.path, &error);
    static const char *const names[] = {"f3(0)", "_Zsame", "nothing", "f0(1)"};
    for (size_t i = 0; lookup && i < 4; i++) {
        struct hw_profile *found = hw_lookup_function(lookup, names[i], true, &error);
        if (found)
            check_symbols(found);
        hw_profile_free(found);
    }
    hw_lookup_close(lookup);
    close(file.fd);
}

/* One to four fields of the symbols' sections get other values; checksums are right again. */
static void any_field_may_lie(void **state)
{
    static const uint64_t values[] = {0, 1, 2, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff, UINT64_MAX};
    struct image good = make_image("f", false);
    for (int round = 0; round < 3000; round++) {
        struct image bad = {.bytes = malloc(good.size), .size = good.size};
        memcpy(bad.bytes, good.bytes, good.size);
        const struct hw_section *directory = (const struct hw_section *)(bad.bytes + sizeof(struct hw_file_header));
        const uint32_t sections = image_header(&bad)->directory_used;
        for (uint64_t i = 0, changes = 1 + draw() % 4; i < changes; i++) {
            const struct hw_section *section = &directory[draw() % sections];
            if (section->type < HW_SECTION_LOCATIONS && draw() % 8)
                continue;
            const size_t width = draw() % 2 ? 4 : 8;
            const uint64_t value = draw() % 3 ? values[draw() % 8] : draw() % 200;
            if (section->used >= width)
                memcpy(bad.bytes + section->offset + draw() % (section->used / width) * width, &value, width);
        }
        image_seal(&bad);
        use(&bad);
        image_free(&bad);
    }
    image_free(&good);
}

/* A path of 100,000 components, and names without an end. */
static void paths_that_are_too_long(void **state)
{
    struct sample_names made = make_sample("f");
    const struct hw_write_options options = {0};
    struct hw_error error = {""};
    const uint32_t depth = 100000;
    struct hw_file_node *nodes = table(&made, HW_SECTION_FILES, depth);
    for (uint32_t i = 1; i < depth; i++)
        nodes[i] = (struct hw_file_node){.name = 1, .parent = i - 1};
    struct hw_symbol_frame *frames = made.tables.of[HW_SECTION_FRAMES].entries;
    frames[0].file = depth - 1;
    frames[1].file = 3;
    struct image image = {0};
    image.bytes = hw_tables_serialize(&made.tables, &options, &image.size, &error);
    assert_non_null(image.bytes);
    struct hw_profile *profile = hw_profile_read_bytes(image.bytes, image.size, "sample", &error);
    assert_non_null(profile);
    assert_int_equal(profile->problem_count, 1);
    assert_non_null(strstr(profile->problems[0], "a path is longer than any"));
    assert_int_equal(profile->symbolised->frames[0].file, 0);
    assert_int_equal(profile->symbolised->frames[1].file, 3);
    hw_profile_free(profile);
    use(&image);
    image_free(&image);
    free_sample(&made);
}

TEST_LIST(cmocka_unit_test(paths_share_their_directories), cmocka_unit_test(everything_comes_back),
          cmocka_unit_test(functions_are_found), cmocka_unit_test(an_independent_writer),
          cmocka_unit_test(files_without_an_index), cmocka_unit_test(names_are_only_names),
          cmocka_unit_test(any_field_may_lie), cmocka_unit_test(paths_that_are_too_long))
