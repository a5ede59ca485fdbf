/* Merging, on random profiles: sums do not depend on order or grouping, down to the bytes of the file; nothing is lost;
 * what cannot be mixed is refused. */
#include "support/check.h"

#include <stdio.h>
#include <string.h>

#include "profile/container.h"
#include "profile/llvm.h"
#include "profile/merge.h"
#include "profile/write.h"

/* ---- chance ---- */

static uint64_t state;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint64_t below(uint64_t limit)
{
    return next_random() % limit;
}

/* Mostly small, sometimes as great as can be. */
static uint64_t any_count(void)
{
    switch (below(40)) {
    case 0:
        return UINT64_MAX;
    case 1:
        return UINT64_MAX - below(3);
    case 2:
        return next_random();
    case 3:
        return 0;
    default:
        return below(1000);
    }
}

/* ---- bytes and profiles ---- */

struct bytes {
    unsigned char *data;
    size_t size;
};

static struct bytes serialize(const struct hw_tables *tables, bool packed)
{
    const struct hw_write_options options = {.packed = packed, .zstd_level = packed ? 3 : 0};
    struct hw_error error = {""};
    struct bytes bytes;
    bytes.data = hw_tables_serialize(tables, &options, &bytes.size, &error);
    if (!bytes.data)
        fail_msg("%s", error.message);
    return bytes;
}

static struct hw_profile *read_back(const struct bytes *bytes)
{
    struct hw_error error = {""};
    struct hw_profile *profile = hw_profile_read_bytes(bytes->data, bytes->size, "test", &error);
    if (!profile)
        fail_msg("%s", error.message);
    for (size_t i = 0; i < profile->problem_count; i++)
        fail_msg("%s", profile->problems[i]);
    return profile;
}

/* The sum of COUNT profiles as a file. */
static struct bytes merged(struct hw_profile *const *profiles, size_t count)
{
    struct hw_merge *merge = hw_merge_new();
    struct hw_arena arena = {0};
    struct hw_tables tables;
    struct hw_error error = {""};
    assert_non_null(merge);
    for (size_t i = 0; i < count; i++)
        if (!hw_merge_add(merge, profiles[i], &error))
            fail_msg("%s", error.message);
    if (!hw_merge_finish(merge, &arena, &tables, &error))
        fail_msg("%s", error.message);
    const struct bytes bytes = serialize(&tables, false);
    hw_merge_free(merge);
    hw_arena_free(&arena);
    return bytes;
}

static struct hw_profile *merged_profile(struct hw_profile *const *profiles, size_t count)
{
    struct bytes bytes = merged(profiles, count);
    struct hw_profile *profile = read_back(&bytes);
    free(bytes.data);
    return profile;
}

static void assert_same(const struct bytes *expected, struct bytes actual, const char *what)
{
    if (expected->size != actual.size || memcmp(expected->data, actual.data, actual.size))
        fail_msg("%s: the files differ", what);
    free(actual.data);
}

/* ---- random profiles of Heapwise's own ---- */

enum { MODULES = 6, SITES = 5, MOST_CONTEXTS = 24, STRINGS = 4096 };

/* What may differ between profiles of the same content. */
struct placing {
    uint64_t bias; /* of the first module; the others follow */
    bool reversed; /* the order of maps */
};

struct maker {
    struct hw_arena arena;
    struct hw_tables tables;
    size_t string_size;
};

static void *make_table(struct maker *maker, uint32_t type, size_t count)
{
    struct hw_table *table = &maker->tables.of[type];
    table->entries = hw_arena_allocate(&maker->arena, count + 1, hw_section_rule(type)->size);
    table->count = count;
    assert_non_null(table->entries);
    return table->entries;
}

static uint32_t add_string(struct maker *maker, const char *text)
{
    char *strings = maker->tables.of[HW_SECTION_STRINGS].entries;
    const uint32_t place = (uint32_t)maker->string_size;
    assert_true(maker->string_size + strlen(text) + 1 < STRINGS);
    strcpy(strings + maker->string_size, text);
    maker->string_size += strlen(text) + 1;
    return place;
}

static uint64_t code_start(uint32_t module)
{
    return 0x1000 * (module + 1);
}

static uint64_t bias_of(const struct placing *placing, uint32_t module)
{
    return placing->bias + 0x1000000ull * (placing->reversed ? MODULES - module : module);
}

static uint32_t map_of(const struct placing *placing, uint32_t module)
{
    return placing->reversed ? MODULES - 1 - module : module;
}

/* Two builds of one path, one without a build id, generated code, the runtime itself. */
static void make_maps(struct maker *maker, const struct placing *placing)
{
    static const char *const paths[MODULES] = {"/bin/program", "/bin/program",       "/lib/libplain.so", "",
                                               "/lib/libz.so", "/lib/libheapwise.so"};
    struct hw_map_entry *maps = make_table(maker, HW_SECTION_MAPS, MODULES);
    for (uint32_t i = 0; i < MODULES; i++) {
        struct hw_map_entry *map = &maps[map_of(placing, i)];
        *map = (struct hw_map_entry){.start = code_start(i) + bias_of(placing, i),
                                     .end = code_start(i) + 0x1000 + bias_of(placing, i),
                                     .bias = bias_of(placing, i),
                                     .offset = 0x1000,
                                     .path = *paths[i] ? add_string(maker, paths[i]) : 0,
                                     .flags = i == 0   ? HW_MAP_MAIN
                                              : i == 3 ? HW_MAP_ANONYMOUS
                                              : i == 5 ? HW_MAP_RUNTIME
                                                       : 0};
        if (i != 2 && i != 3) {
            map->build_id_size = 20;
            memset(map->build_id, 'a' + (int)i, 20);
        }
    }
}

static size_t make_stacks(struct maker *maker, const struct placing *placing)
{
    const size_t count = 2 + below(40);
    struct hw_stack_node *nodes = make_table(maker, HW_SECTION_STACKS, count);
    nodes[0].map = HW_NONE;
    for (size_t i = 1; i < count; i++) {
        const uint32_t module = (uint32_t)below(MODULES), parent = (uint32_t)below(i < 4 ? 1 : i);
        const uint64_t site = below(SITES);
        const bool known = below(20);
        nodes[i] = (struct hw_stack_node){.map = known ? map_of(placing, module) : HW_NONE,
                                          /* generated code lies anywhere */
                                          .pc = code_start(module) + 16 * site + bias_of(placing, module) +
                                                (module == 3 ? placing->bias >> 40 : 0),
                                          .parent = parent};
    }
    return count;
}

static struct hw_mib make_mib(uint32_t context, uint64_t end)
{
    const uint64_t size = below(20) ? below(5000) : any_count() / 2,
                   lifetime = below(20) ? below(5000) : any_count() / 2;
    return (struct hw_mib){.context = context,
                           .allocations = any_count(),
                           .bytes = any_count(),
                           .size_min = size / 2,
                           .size_max = size,
                           .live_bytes = (int64_t)below(5000) - 100,
                           .live_blocks = (int64_t)below(50) - 2,
                           .last_alloc_tick = below(2) ? 500 : below(end), /* often the same */
                           .last_alloc_cpu = (uint16_t)below(4),
                           .peak_epoch = below(3),
                           .peak_bytes = (int64_t)below(9000),
                           .peak_blocks = (int64_t)below(90),
                           .live_ticks = below(10) ? below(5 * end) : next_random(),
                           .alloc_threads = (uint32_t)below(4),
                           .free_threads = (uint32_t)below(4),
                           .samples = any_count(),
                           .temporary = any_count(),
                           .frees = any_count(),
                           .lifetime_total = any_count(),
                           .lifetime_total_high = below(30) ? (uint32_t)below(3) : UINT32_MAX,
                           .lifetime_min = lifetime / 3,
                           .lifetime_max = lifetime,
                           .last_free_tick = below(2) ? 500 : below(end),
                           .last_free_cpu = (uint16_t)below(4),
                           .migrated_cpu = any_count(),
                           .lifetime_overlaps = any_count(),
                           .same_alloc_cpu = any_count(),
                           .same_free_cpu = any_count(),
                           .reallocations = any_count(),
                           .realloc_moved = any_count(),
                           .realloc_grown_bytes = any_count(),
                           .realloc_shrunk_bytes = any_count(),
                           .inherited_frees = below(5),
                           .inherited_freed_bytes = any_count(),
                           .flags = below(8) ? 0 : HW_MIB_POOL};
}

static uint64_t part_of(uint64_t whole)
{
    return whole == UINT64_MAX ? next_random() : below(whole + 1);
}

static struct hw_access make_access(uint32_t context)
{
    const uint64_t blocks = below(6) ? 1 + below(1000) : 0, granules = any_count(), most = any_count();
    struct hw_access access = {.context = context,
                               .type = below(3) ? below(4) : 0,
                               .blocks = blocks,
                               .reads = any_count(),
                               .writes = any_count(),
                               .unsplit = any_count(),
                               .accesses_min = blocks ? part_of(most) : UINT64_MAX,
                               .accesses_max = blocks ? most : 0,
                               .granules = granules,
                               .granules_touched = part_of(granules),
                               .utilization_total = part_of(blocks * 10000),
                               .utilization_min = blocks ? (uint32_t)below(5000) : UINT32_MAX,
                               .utilization_max = blocks ? 5000 + (uint32_t)below(5001) : 0,
                               .density_total = any_count(),
                               .density_min = below(100),
                               .density_max = 100 + below(100),
                               .lifetime_density_total = any_count(),
                               .lifetime_density_min = below(100),
                               .lifetime_density_max = 100 + below(100),
                               .never_accessed = part_of(blocks),
                               .written_never_read = part_of(blocks),
                               .shared_granules = 200 + below(100),
                               .shared_written = 100 + below(100),
                               .shared_writers = below(100),
                               .lines_false_shared = any_count(),
                               .lines_true_shared = any_count(),
                               .saturated_cells = below(5) ? 0 : below(10),
                               .not_owned = part_of(blocks)};
    return access;
}

static void make_words(struct hw_histogram *run, uint32_t context)
{
    run->context = context;
    run->first_word = HW_HISTOGRAM_WORDS * (uint32_t)below(3);
    run->saturated = below(3);
    for (size_t i = 0; i < HW_HISTOGRAM_WORDS; i++)
        run->words[i] = below(4) ? 0 : any_count();
}

static void make_accesses(struct maker *maker, const struct placing *placing, size_t contexts, uint32_t granule,
                          uint64_t end)
{
    const struct hw_mib *mibs = maker->tables.of[HW_SECTION_MIBS].entries;
    const size_t count = maker->tables.of[HW_SECTION_MIBS].count, live = below(contexts), globals = below(20),
                 runs = granule == 8 ? below(20) : 0;
    struct hw_access_info *info = make_table(maker, HW_SECTION_ACCESS_INFO, 1);
    struct hw_access *access = make_table(maker, HW_SECTION_ACCESS, count);
    struct hw_access *living = make_table(maker, HW_SECTION_ACCESS_LIVE, live);
    struct hw_global_granule *global = make_table(maker, HW_SECTION_GLOBALS, globals);
    struct hw_histogram *freed_run = make_table(maker, HW_SECTION_HISTOGRAM, runs),
                        *live_run = make_table(maker, HW_SECTION_HISTOGRAM_LIVE, runs);
    *info = (struct hw_access_info){.flags = HW_ACCESS_SPLIT | (below(4) ? HW_ACCESS_HARVESTED : 0),
                                    .granule = granule,
                                    .planes = (uint32_t)below(9),
                                    .planes_most = 256,
                                    .harvest_tick = below(2) ? end : below(end),
                                    .threads_sharing = below(3),
                                    .modules = below(5)};
    for (size_t i = 0; i < count; i++)
        access[i] = make_access(mibs[i].context);
    for (size_t i = 0; i < live; i++)
        living[i] = make_access((uint32_t)i + 1);
    for (size_t i = 0; i < globals; i++)
        global[i] = (struct hw_global_granule){.map = map_of(placing, (uint32_t)below(3)),
                                               .flags = (uint32_t)below(16),
                                               .offset = 64 * below(6),
                                               .reads = any_count(),
                                               .writes = any_count()};
    for (size_t i = 0; i < runs; i++) {
        make_words(&freed_run[i], (uint32_t)below(contexts));
        make_words(&live_run[i], (uint32_t)below(contexts));
    }
}

static void make_process(struct maker *maker, uint64_t end, bool accesses)
{
    static const char *const programs[] = {"/bin/program", "/bin/other"};
    struct hw_process_info *process = make_table(maker, HW_SECTION_PROCESS, 1);
    struct hw_thread_entry *threads = make_table(maker, HW_SECTION_THREADS, 2);
    *process = (struct hw_process_info){.pid = (uint32_t)below(30000),
                                        .flags = below(3) ? 0 : HW_PROCESS_FORKED,
                                        .mode = accesses ? HW_MODE_ACCESS : HW_MODE_HEAP,
                                        .executable = add_string(maker, programs[below(2)]),
                                        .allocator = add_string(maker, "glibc 2.36"),
                                        .command = add_string(maker, "program"),
                                        .command_count = 2,
                                        .cpus = 1 + (uint32_t)below(8),
                                        .start_realtime_ns = below(4) ? 1700000000000000000 + below(1000) : 0,
                                        .clock_ticks = below(3) ? 1000 : 1000 + below(50),
                                        .clock_ns = 2000,
                                        .end_tick = end,
                                        .exit_kind = (uint32_t)below(4),
                                        .exit_value = (int32_t)below(2),
                                        .peak_rss_bytes = below(1000000),
                                        .sample_bytes = below(4) ? 0 : 512 * below(3),
                                        .live_bytes = (int64_t)below(1000),
                                        .peak_bytes = any_count(),
                                        .peak_tick = below(end),
                                        .peak_epoch = 1,
                                        .threads_seen = any_count(),
                                        .threads_most = any_count(),
                                        .inherited_blocks = (int64_t)below(10)};
    add_string(maker, below(3) ? "-x" : "-y"); /* the second argument */
    for (int i = 0; i < 2; i++)
        threads[i] = (struct hw_thread_entry){.serial = 1,
                                              .allocations = any_count() / 2,
                                              .frees = any_count() / 2,
                                              .bytes = any_count() / 2,
                                              .live_bytes = (int64_t)below(1000),
                                              .failed = below(3),
                                              .lost = below(2)};
}

static void make_notes(struct maker *maker)
{
    static const char *const texts[] = {"", "/lib/libplain.so", "something"};
    const size_t count = below(5);
    struct hw_note *notes = make_table(maker, HW_SECTION_NOTES, count);
    for (size_t i = 0; i < count; i++)
        notes[i] = (struct hw_note){.code = 1 + (uint32_t)below(3),
                                    .text = add_string(maker, texts[below(3)]),
                                    .count = any_count(),
                                    .tick = below(1000)};
}

/* GRANULE 0: accesses are not counted. The same state of chance gives the same content wherever it is placed. */
static struct hw_profile *make_own(uint32_t granule, const struct placing *placing)
{
    struct maker maker = {.string_size = 1};
    const uint64_t end = 5000 + below(5000);
    const size_t contexts = 2 + below(MOST_CONTEXTS);
    make_table(&maker, HW_SECTION_STRINGS, STRINGS);
    make_process(&maker, end, granule != 0);
    make_maps(&maker, placing);
    const size_t nodes = make_stacks(&maker, placing);
    struct hw_context_entry *entries = make_table(&maker, HW_SECTION_CONTEXTS, contexts);
    for (size_t i = 1; i < contexts; i++)
        entries[i] = (struct hw_context_entry){
            .leaf = (uint32_t)below(nodes), .flags = (uint16_t)(below(8) ? 0 : 1 + below(2)), .first_tick = below(end)};
    struct hw_mib *mibs = make_table(&maker, HW_SECTION_MIBS, contexts);
    for (size_t i = 0; i < contexts; i++) {
        mibs[i] = make_mib((uint32_t)below(contexts), end);
        if (!mibs[i].allocations)
            mibs[i].allocations = 1;
    }
    struct hw_inherited *inherited = make_table(&maker, HW_SECTION_INHERITED, 3);
    for (size_t i = 0; i < 3; i++)
        inherited[i] = (struct hw_inherited){(uint32_t)below(contexts), 0, (int64_t)below(9), (int64_t)below(99)};
    struct hw_free_stack *freed = make_table(&maker, HW_SECTION_FREE_STACKS, 4);
    for (size_t i = 0; i < 4; i++)
        freed[i] =
            (struct hw_free_stack){(uint32_t)below(contexts), (uint32_t)below(contexts), any_count(), any_count()};
    make_notes(&maker);
    if (granule)
        make_accesses(&maker, placing, contexts, granule, end);
    struct bytes bytes = serialize(&maker.tables, below(2));
    hw_arena_free(&maker.arena);
    struct hw_error error = {""};
    struct hw_profile *profile = hw_profile_read_bytes(bytes.data, bytes.size, "random", &error);
    if (!profile)
        fail_msg("%s", error.message);
    free(bytes.data);
    return profile;
}

/* ---- random profiles of LLVM's ---- */

static struct hw_llvm_mib make_block(void)
{
    struct hw_llvm_mib block = {{0}};
    for (int i = 1; i < HW_LLVM_HISTOGRAM_SIZE; i++)
        block.field[i] = hw_llvm_saturated((enum hw_llvm_field)i, any_count());
    block.field[HW_LLVM_ALLOC_TIME] = below(5); /* often the same */
    block.field[HW_LLVM_FREE_TIME] = below(5);
    block.field[HW_LLVM_ALLOC_CPU] = below(50) ? below(4) : 70000;
    block.field[HW_LLVM_FREE_CPU] = below(4);
    block.field[HW_LLVM_DATA_TYPE] = 0;
    block.field[HW_LLVM_MIN_ACCESSES] /= 2;
    if (block.field[HW_LLVM_MIN_ACCESSES] > block.field[HW_LLVM_MAX_ACCESSES])
        block.field[HW_LLVM_MIN_ACCESSES] = block.field[HW_LLVM_MAX_ACCESSES];
    block.field[HW_LLVM_MIN_DENSITY] = block.field[HW_LLVM_MIN_LIFETIME_DENSITY] = 0;
    block.field[HW_LLVM_MIN_SIZE] = block.field[HW_LLVM_MIN_LIFETIME] = 0;
    return block;
}

/* One dump of a run with its modules at random addresses, in VERSION. */
static void write_raw(struct hw_llvm_bytes *out, uint32_t version, bool clang)
{
    struct hw_llvm_segment segments[3];
    struct hw_llvm_context contexts[MOST_CONTEXTS];
    uint64_t stacks[MOST_CONTEXTS * 8], cells[MOST_CONTEXTS * 100];
    struct hw_llvm_profile profile = {.segments = segments, .segment_count = 3, .contexts = contexts, .stacks = stacks};
    const size_t count = 1 + below(MOST_CONTEXTS - 1), start = out->used;
    for (uint32_t i = 0; i < 3; i++) {
        const uint64_t bias = 0x10000000ull * (1 + i) + 0x1000 * below(256);
        segments[i] = (struct hw_llvm_segment){
            .start = code_start(i) + bias, .end = code_start(i) + 0x1000 + bias, .bias = bias, .build_id_size = 20};
        memset(segments[i].build_id, 'a' + (int)i, 20);
    }
    for (size_t i = 0; i < count; i++) {
        struct hw_llvm_context *context = &contexts[profile.context_count++];
        *context =
            (struct hw_llvm_context){.first = profile.stack_size, .count = 1 + (uint32_t)below(6), .mib = make_block()};
        for (uint32_t k = 0; k < context->count; k++) {
            const uint32_t module = (uint32_t)below(3);
            stacks[profile.stack_size++] = code_start(module) + 16 * below(3) + segments[module].bias;
        }
        if (version > 3 && below(3) == 0) {
            context->mib.field[HW_LLVM_HISTOGRAM_SIZE] = 1 + below(100);
            context->histogram = cells + 100 * i;
            for (size_t k = 0; k < 100; k++)
                cells[100 * i + k] = below(4095);
        }
    }
    assert_true(hw_llvm_raw_write(&profile, version, out));
    /* Stack ids as those of clang's runtime: the leaf is taken off then. */
    for (uint64_t at = start; clang && at + 8 <= out->used; at++)
        if (hw_llvm_get(out->data + at, 8) >> 16 == 0x4857ull << 32)
            hw_llvm_set(out, at, hw_llvm_get(out->data + at, 8) & 0xffff);
}

static struct bytes make_raw(void)
{
    struct hw_llvm_bytes out = {0};
    const uint32_t version = 3 + (uint32_t)below(3);
    const bool clang = below(2);
    for (uint64_t dumps = 1 + below(3); dumps > 0; dumps--)
        write_raw(&out, version, clang);
    return (struct bytes){out.data, out.used};
}

static struct bytes make_indexed(void)
{
    struct hw_llvm_bytes out = {0};
    struct hw_llvm_frame frames[8];
    struct hw_llvm_context contexts[MOST_CONTEXTS];
    uint64_t stacks[MOST_CONTEXTS * 8];
    struct hw_llvm_profile profile = {.symbolized = true,
                                      .known = below(2) ? HW_LLVM_KNOWN_ALL
                                                        : 1u << HW_LLVM_ALLOC_COUNT | 1u << HW_LLVM_TOTAL_SIZE |
                                                              1u << HW_LLVM_TOTAL_LIFETIME |
                                                              1u << HW_LLVM_TOTAL_LIFETIME_DENSITY,
                                      .frames = frames,
                                      .frame_count = 8,
                                      .contexts = contexts,
                                      .stacks = stacks};
    for (uint32_t i = 0; i < 8; i++)
        frames[i] = (struct hw_llvm_frame){.function = 1000 + below(6), .line_offset = i, .column = (uint32_t)below(3)};
    const size_t count = 1 + below(MOST_CONTEXTS - 1);
    for (size_t i = 0; i < count; i++) {
        struct hw_llvm_context *context = &contexts[profile.context_count++];
        *context =
            (struct hw_llvm_context){.first = profile.stack_size, .count = 1 + (uint32_t)below(6), .mib = make_block()};
        for (uint32_t k = 0; k < context->count; k++)
            stacks[profile.stack_size++] = below(8);
    }
    assert_true(hw_llvm_indexed_write(&profile, below(2) ? 3 : 4, &out));
    return (struct bytes){out.data, out.used};
}

static struct hw_profile *read_any(struct bytes bytes)
{
    struct hw_error error = {""};
    struct hw_profile *profile = hw_profile_read_bytes(bytes.data, bytes.size, "random", &error);
    if (!profile)
        fail_msg("%s", error.message);
    free(bytes.data);
    return profile;
}

/* ---- the laws ---- */

enum kind { HEAP, COARSE, FINE, RAW, INDEXED, KINDS };

static struct hw_profile *make_any(enum kind kind)
{
    const struct placing placing = {0x400000 * (1 + below(100)), below(2)};
    return kind == RAW       ? read_any(make_raw())
           : kind == INDEXED ? read_any(make_indexed())
                             : make_own(kind == COARSE ? 64
                                        : kind == FINE ? 8
                                                       : 0,
                                        &placing);
}

static void check_laws(enum kind kind)
{
    struct hw_profile *p[4];
    for (size_t i = 0; i < 4; i++)
        p[i] = make_any(kind);
    struct bytes all = merged(p, 4);
    assert_same(&all, merged((struct hw_profile *[]){p[3], p[1], p[0], p[2]}, 4), "another order");
    struct hw_profile *left = merged_profile(p, 3), *right = merged_profile(p + 2, 2),
                      *middle = merged_profile(p + 1, 2), *one = merged_profile(p, 1);
    assert_same(&all, merged((struct hw_profile *[]){left, p[3]}, 2), "(a b c) d");
    assert_same(&all, merged((struct hw_profile *[]){p[1], right, p[0]}, 3), "b (c d) a");
    assert_same(&all, merged((struct hw_profile *[]){p[3], one, middle}, 3), "d (a) (b c)");
    struct hw_profile *again = read_back(&all);
    assert_same(&all, merged(&again, 1), "a merged one alone");
    struct bytes once = merged(p, 1);
    assert_same(&once, merged(&one, 1), "one alone, twice over");
    free(once.data);
    free(all.data);
    hw_profile_free(left);
    hw_profile_free(right);
    hw_profile_free(middle);
    hw_profile_free(one);
    hw_profile_free(again);
    for (size_t i = 0; i < 4; i++)
        hw_profile_free(p[i]);
}

static void test_order_and_grouping(void **unused)
{
    for (uint64_t seed = 1; seed <= 400; seed++) {
        state = seed * 0x9e3779b97f4a7c15u;
        check_laws((enum kind)(seed % KINDS));
    }
}

/* The same content at other addresses, its modules in another order. */
static void test_placing(void **unused)
{
    static const struct placing placings[2] = {{0x400000, false}, {0x7f0000000000, true}};
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct hw_profile *p[2];
        for (int i = 0; i < 2; i++) {
            state = seed * 0x9e3779b97f4a7c15u;
            p[i] = make_own(seed % 3 == 0 ? 0 : seed % 3 == 1 ? 8 : 64, &placings[i]);
        }
        struct bytes first = merged(&p[0], 1);
        assert_same(&first, merged(&p[1], 1), "elsewhere");
        free(first.data);
        hw_profile_free(p[0]);
        hw_profile_free(p[1]);
    }
}

static uint64_t twice(uint64_t value)
{
    return hw_add_saturating(value, value);
}

static void assert_doubled(const struct hw_profile_context *one, const struct hw_profile_context *two)
{
    assert_int_equal(two->leaf, one->leaf);
    assert_int_equal(two->pool, one->pool);
    assert_int_equal(two->flags, one->flags);
    assert_int_equal(two->allocations, twice(one->allocations));
    assert_int_equal(two->bytes, twice(one->bytes));
    assert_int_equal(two->frees, twice(one->frees));
    assert_int_equal(two->temporary, twice(one->temporary));
    assert_int_equal(two->samples, twice(one->samples));
    assert_int_equal(two->peak_bytes, 2 * one->peak_bytes);
    assert_int_equal(two->peak_blocks, 2 * one->peak_blocks);
    assert_int_equal(two->live_bytes, 2 * one->live_bytes);
    assert_int_equal(two->live_age_total_ns, twice(one->live_age_total_ns));
    assert_int_equal(two->alloc_threads, 2 * one->alloc_threads);
    assert_int_equal(two->inherited_blocks, 2 * one->inherited_blocks);
    assert_int_equal(two->size_min, one->size_min);
    assert_int_equal(two->size_max, one->size_max);
    assert_int_equal(two->lifetime_min_ns, one->lifetime_min_ns);
    assert_int_equal(two->lifetime_max_ns, one->lifetime_max_ns);
    assert_int_equal(two->last_alloc_ns, one->last_alloc_ns);
    assert_int_equal(two->last_alloc_cpu, one->last_alloc_cpu);
    assert_int_equal(two->first_ns, one->first_ns);
    const unsigned __int128 most = ((unsigned __int128)1 << 96) - 1, sum = 2 * one->lifetime_total_ns;
    assert_true(two->lifetime_total_ns == (sum < most ? sum : most));
    assert_int_equal(two->access != NULL, one->access != NULL);
    if (!one->access)
        return;
    assert_int_equal(two->access->all.reads, twice(one->access->all.reads));
    assert_int_equal(two->access->live.writes, twice(one->access->live.writes));
    assert_int_equal(two->access->all.blocks, twice(one->access->all.blocks));
    assert_int_equal(two->access->all.granules_touched, twice(one->access->all.granules_touched));
    assert_int_equal(two->access->all.accesses_min, one->access->all.accesses_min);
    assert_int_equal(two->access->all.accesses_max, one->access->all.accesses_max);
    assert_int_equal(two->access->live.density_min, one->access->live.density_min);
}

static void test_doubling(void **unused)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        state = seed * 0x2545f4914f6cdd1du;
        struct hw_profile *profile = make_any((enum kind)(seed % 3));
        struct hw_profile *pair[2] = {profile, profile};
        struct hw_profile *one = merged_profile(pair, 1), *two = merged_profile(pair, 2);
        assert_int_equal(two->process.runs, 2);
        assert_int_equal(two->process.peak_bytes, twice(one->process.peak_bytes));
        assert_int_equal(two->process.peak_bytes_most, one->process.peak_bytes_most);
        assert_int_equal(two->totals.allocations, twice(one->totals.allocations));
        assert_int_equal(two->context_count, one->context_count);
        assert_int_equal(two->node_count, one->node_count);
        for (size_t i = 0; i < one->context_count; i++)
            assert_doubled(&one->contexts[i], &two->contexts[i]);
        assert_int_equal(two->global_count, one->global_count);
        for (size_t i = 0; i < one->global_count; i++)
            assert_int_equal(two->globals[i].reads, twice(one->globals[i].reads));
        assert_int_equal(two->histogram_count, one->histogram_count);
        for (size_t i = 0; i < one->histogram_count; i++)
            assert_int_equal(two->histogram[i].words[7], twice(one->histogram[i].words[7]));
        assert_int_equal(two->free_stack_count, one->free_stack_count);
        for (size_t i = 0; i < one->free_stack_count; i++)
            assert_int_equal(two->free_stacks[i].count, twice(one->free_stacks[i].count));
        hw_profile_free(one);
        hw_profile_free(two);
        hw_profile_free(profile);
    }
}

/* Sums of all counts of all contexts, in the order of the structure. */
static void add_up(const struct hw_profile *profile, uint64_t sums[32])
{
    memset(sums, 0, 32 * sizeof *sums);
    for (size_t i = 0; i < profile->context_count; i++) {
        const struct hw_profile_context *c = &profile->contexts[i];
        static const struct hw_profile_accesses none;
        const struct hw_profile_accesses *a = c->access ? c->access : &none;
        const uint64_t values[] = {c->allocations,
                                   c->frees,
                                   c->reallocations,
                                   c->temporary,
                                   c->bytes,
                                   c->samples,
                                   c->migrated_cpu,
                                   c->lifetime_overlaps,
                                   c->same_alloc_cpu,
                                   c->same_free_cpu,
                                   c->realloc_moved,
                                   c->realloc_grown_bytes,
                                   c->realloc_shrunk_bytes,
                                   c->inherited_frees,
                                   c->inherited_freed_bytes,
                                   a->all.reads,
                                   a->all.writes,
                                   a->all.unsplit,
                                   a->all.blocks,
                                   a->live.blocks,
                                   a->all.granules,
                                   a->all.granules_touched,
                                   a->all.density_total,
                                   a->all.lifetime_density_total,
                                   a->all.never_accessed,
                                   a->all.written_never_read,
                                   a->all.shared_granules,
                                   a->all.shared_writers,
                                   a->all.lines_false_shared,
                                   a->all.not_owned,
                                   a->live.reads,
                                   a->all.utilization_total};
        _Static_assert(sizeof values == 32 * sizeof *sums, "sums");
        for (size_t k = 0; k < 32; k++)
            sums[k] = hw_add_saturating(sums[k], values[k]);
    }
}

/* A profile and what merging it alone makes of it say the same. */
static void test_nothing_is_lost(void **unused)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        state = seed * 0xd1342543de82ef95u;
        struct hw_profile *from = make_any((enum kind)(seed % 3)), *to = merged_profile(&from, 1);
        uint64_t allocations[2] = {0}, bytes[2] = {0}, reads[2] = {0}, words[2] = {0}, freed[2] = {0}, noted[2] = {0};
        struct hw_profile *const both[2] = {from, to};
        for (int k = 0; k < 2; k++) {
            for (size_t i = 0; i < both[k]->context_count; i++) {
                allocations[k] = hw_add_saturating(allocations[k], both[k]->contexts[i].allocations);
                bytes[k] = hw_add_saturating(bytes[k], both[k]->contexts[i].bytes);
                if (both[k]->contexts[i].access)
                    reads[k] = hw_add_saturating(reads[k], both[k]->contexts[i].access->all.reads);
            }
            for (size_t i = 0; i < both[k]->histogram_count; i++)
                words[k] = hw_add_saturating(words[k], both[k]->histogram[i].words[3]);
            for (size_t i = 0; i < both[k]->free_stack_count; i++)
                freed[k] = hw_add_saturating(freed[k], both[k]->free_stacks[i].count);
            for (size_t i = 0; i < both[k]->note_count; i++)
                noted[k] = hw_add_saturating(noted[k], both[k]->notes[i].count);
        }
        uint64_t sums[2][32];
        int64_t signed_sums[2][6] = {{0}};
        for (int k = 0; k < 2; k++) {
            add_up(both[k], sums[k]);
            for (size_t i = 0; i < both[k]->context_count; i++) {
                const struct hw_profile_context *c = &both[k]->contexts[i];
                const int64_t values[] = {c->live_blocks, c->live_bytes,       c->peak_blocks,
                                          c->peak_bytes,  c->inherited_blocks, c->inherited_bytes};
                for (size_t v = 0; v < 6; v++)
                    signed_sums[k][v] += values[v];
            }
        }
        for (size_t k = 0; k < 32; k++)
            if (sums[0][k] != sums[1][k])
                fail_msg("sum %zu: %#llx became %#llx", k, (unsigned long long)sums[0][k],
                         (unsigned long long)sums[1][k]);
        assert_memory_equal(signed_sums[0], signed_sums[1], sizeof signed_sums[0]);
        assert_int_equal(allocations[0], allocations[1]);
        assert_int_equal(bytes[0], bytes[1]);
        assert_int_equal(reads[0], reads[1]);
        assert_int_equal(words[0], words[1]);
        assert_int_equal(freed[0], freed[1]);
        assert_int_equal(noted[0], noted[1]);
        assert_int_equal(from->duration_ns, to->duration_ns);
        assert_int_equal(from->totals.allocations, to->totals.allocations);
        hw_profile_free(from);
        hw_profile_free(to);
    }
}

/* ---- LLVM's files ---- */

/* What LLVM's own rules make of all blocks of one stack is what the merged file has; the way past the model gives the
 * same bytes as the way through it. */
static void test_llvm_both_ways(void **unused)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct hw_llvm_profile raw[2];
        struct hw_profile *profiles[2];
        struct hw_merge *merge = hw_merge_new();
        struct hw_arena arena = {0};
        struct hw_tables tables;
        struct hw_error error = {""};
        state = seed * 0x9e3779b97f4a7c15u;
        for (int i = 0; i < 2; i++) {
            struct bytes bytes = seed % 2 ? make_raw() : make_indexed();
            assert_true(
                (seed % 2 ? hw_llvm_raw_read : hw_llvm_indexed_read)(bytes.data, bytes.size, "x", &raw[i], &error));
            profiles[i] = read_any(bytes);
            struct hw_merge_input *input = hw_merge_admit_llvm(merge, &raw[i], "x", &error);
            assert_non_null(input);
            assert_true(hw_merge_sum(merge, input, &error));
        }
        assert_true(hw_merge_finish(merge, &arena, &tables, &error));
        struct bytes past = serialize(&tables, false);
        assert_same(&past, merged(profiles, 2), "the way through the model");
        free(past.data);
        hw_merge_free(merge);
        hw_arena_free(&arena);
        for (int i = 0; i < 2; i++) {
            hw_llvm_profile_free(&raw[i]);
            hw_profile_free(profiles[i]);
        }
    }
}

/* The blocks of a merged file are what they were; fields that are not known stay so. */
static void test_llvm_blocks(void **unused)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        state = seed * 0x9e3779b97f4a7c15u;
        struct hw_profile *from = read_any(seed % 2 ? make_raw() : make_indexed()), *to = merged_profile(&from, 1);
        assert_non_null(to->llvm);
        assert_string_equal(to->llvm->kind, from->llvm->kind);
        assert_int_equal(to->llvm->known, from->llvm->known);
        assert_int_equal(to->llvm->dumps, from->llvm->dumps);
        assert_int_equal(to->llvm->clang_runtime, from->llvm->clang_runtime);
        struct hw_llvm_mib sum[2] = {0};
        struct hw_profile *const both[2] = {from, to};
        for (int k = 0; k < 2; k++)
            for (size_t i = 0; i < both[k]->context_count; i++)
                hw_llvm_mib_add(&sum[k], &both[k]->llvm->mibs[both[k]->contexts[i].id]);
        for (int field = 1; field < HW_LLVM_FIELDS; field++) {
            const uint64_t most = field == HW_LLVM_TOTAL_DENSITY || field == HW_LLVM_TOTAL_LIFETIME_DENSITY
                                      ? UINT64_MAX / 10
                                      : UINT64_MAX;
            const bool cpu = field == HW_LLVM_ALLOC_CPU || field == HW_LLVM_FREE_CPU;
            if (from->llvm->known >> field & 1 && sum[0].field[field] <= most && !cpu)
                assert_int_equal(sum[1].field[field], sum[0].field[field]);
        }
        hw_profile_free(from);
        hw_profile_free(to);
    }
}

/* ---- what cannot be mixed ---- */

static void assert_refused(enum kind first, enum kind second, const char *why)
{
    struct hw_merge *merge = hw_merge_new();
    struct hw_error error = {""};
    state = 12345;
    struct hw_profile *a = make_any(first), *b = make_any(second);
    assert_true(hw_merge_add(merge, a, &error));
    assert_false(hw_merge_add(merge, b, &error));
    if (!strstr(error.message, why))
        fail_msg("'%s' was to be said, not '%s'", why, error.message);
    /* What was refused has left no trace. */
    struct hw_arena arena = {0};
    struct hw_tables tables;
    assert_true(hw_merge_finish(merge, &arena, &tables, &error));
    struct bytes bytes = serialize(&tables, false);
    assert_same(&bytes, merged(&a, 1), "after a refusal");
    free(bytes.data);
    hw_arena_free(&arena);
    hw_merge_free(merge);
    hw_profile_free(a);
    hw_profile_free(b);
}

static void test_refusals(void **unused)
{
    assert_refused(COARSE, FINE, "granules of 8 bytes and cannot be merged with profiles by granules of 64");
    assert_refused(HEAP, RAW, "a raw heap profile of LLVM's and cannot be merged with a profile of Heapwise's own");
    assert_refused(RAW, INDEXED, "an indexed heap profile of LLVM's and cannot be merged with a raw");
    assert_refused(INDEXED, FINE, "a profile of Heapwise's own and cannot be merged with an indexed");
    struct hw_merge *merge = hw_merge_new();
    struct hw_arena arena = {0};
    struct hw_tables tables;
    struct hw_error error = {""};
    assert_false(hw_merge_finish(merge, &arena, &tables, &error));
    assert_string_equal(error.message, "nothing was merged");
    hw_merge_free(merge);
}

/* Profiles with and without accesses add up: what was counted in one of them is known of its blocks. */
static void test_partly_counted(void **unused)
{
    state = 99;
    struct hw_profile *p[2] = {make_any(HEAP), make_any(FINE)};
    struct hw_profile *sum = merged_profile(p, 2);
    assert_true(sum->access_counted);
    assert_int_equal(sum->access_info.granule, 8);
    assert_int_equal(sum->process.mode, HW_MODE_ACCESS);
    assert_int_equal(sum->process.runs, 2);
    hw_profile_free(sum);
    hw_profile_free(p[0]);
    hw_profile_free(p[1]);
}

TEST_MAIN(cmocka_unit_test(test_order_and_grouping), cmocka_unit_test(test_placing), cmocka_unit_test(test_doubling),
          cmocka_unit_test(test_nothing_is_lost), cmocka_unit_test(test_llvm_both_ways),
          cmocka_unit_test(test_llvm_blocks), cmocka_unit_test(test_refusals), cmocka_unit_test(test_partly_counted))
