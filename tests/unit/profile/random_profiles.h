/* random_profiles.h - profiles of chance, of Heapwise's own and of LLVM's, for tests of merging.
 *
 * The same state of chance makes the same content; make_own can place it elsewhere. */
#ifndef HW_TEST_RANDOM_PROFILES_H
#define HW_TEST_RANDOM_PROFILES_H

#include "support/check.h"

#include <string.h>

#include "profile/container/container.h"
#include "profile/llvm/llvm.h"
#include "profile/container/write.h"

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
                                                       : 0,
                                     .unseen_operations = (uint32_t)below(3)};
        map->flags |= below(2) ? HW_MAP_NOTES_READ | (below(2) ? HW_MAP_COUNTS | HW_MAP_COUNTS_FIELDS : 0) : 0;
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
                               .lines_handed_over = any_count(),
                               .line_passes = any_count(),
                               .saturated_cells = below(5) ? 0 : below(10),
                               .not_owned = part_of(blocks)};
    access.lines_hot = part_of(access.lines_false_shared);
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

static void make_used_words(struct hw_words *run, size_t contexts)
{
    run->context = (uint32_t)below(contexts);
    run->free_context = below(3) ? HW_NONE : (uint32_t)below(contexts);
    run->first_word = HW_WORDS_RUN * (uint32_t)below(3);
    run->saturated = below(3);
    for (size_t i = 0; i < HW_WORDS_RUN; i++) {
        run->read_periods[i] = below(4) ? 0 : any_count();
        run->written_periods[i] = below(4) ? 0 : any_count();
        run->read_blocks[i] = below(4) ? 0 : any_count();
        run->written_blocks[i] = below(4) ? 0 : any_count();
    }
}

/* Roles that are alike in parts; the first two are what they always are. */
static void make_sides(struct maker *maker, const struct placing *placing, size_t contexts, bool live)
{
    const size_t roles = 2 + below(6), count = below(40);
    struct hw_thread_role *role = make_table(maker, HW_SECTION_ROLES, roles);
    struct hw_side *side = make_table(maker, HW_SECTION_SIDES, count),
                   *living = make_table(maker, HW_SECTION_SIDES_LIVE, live ? count : 0);
    for (size_t i = 0; i < roles; i++) {
        const uint32_t module = (uint32_t)below(MODULES - 1);
        role[i] = (struct hw_thread_role){.map = HW_NONE, .context = HW_NONE, .threads = any_count()};
        if (i < 2)
            continue;
        role[i].map = map_of(placing, module);
        role[i].routine = code_start(module) + 16 * below(2) + (module == 3 ? placing->bias >> 40 : 0);
        role[i].context = below(4) ? (uint32_t)below(contexts) : HW_NONE;
    }
    for (size_t i = 0; i < count; i++) {
        const uint32_t module = (uint32_t)below(MODULES - 1);
        side[i] = (struct hw_side){.context = (uint32_t)below(contexts),
                                   .role = (uint32_t)below(roles),
                                   .kind = 1 + (uint16_t)below(2),
                                   .sharing = 1 + (uint16_t)below(3),
                                   .map = HW_NONE,
                                   .offset = 8 * below(4),
                                   .bytes = below(5) ? 8 : 4096,
                                   .reads = any_count(),
                                   .writes = any_count(),
                                   .lines = any_count()};
        if (side[i].kind == HW_SIDE_SAMPLED) {
            side[i].map = map_of(placing, module);
            side[i].code = code_start(module) + 16 * below(SITES) + (module == 3 ? placing->bias >> 40 : 0);
        }
        if (live) {
            living[i] = side[i];
            living[i].reads = any_count();
        }
    }
}

static void make_samples(struct maker *maker, const struct placing *placing, size_t contexts)
{
    const size_t sampled = below(contexts), count = below(60);
    struct hw_sample_info *info = make_table(maker, HW_SECTION_SAMPLE_INFO, 1);
    struct hw_sample_context *context = make_table(maker, HW_SECTION_SAMPLE_CONTEXTS, sampled);
    struct hw_sample_count *counts = make_table(maker, HW_SECTION_SAMPLE_COUNTS, count);
    *info = (struct hw_sample_info){.source = 1 + (uint32_t)below(2),
                                    .ended = below(2) ? 0 : (uint32_t)below(9),
                                    .error = (int32_t)below(3),
                                    .signal = 30 + (uint32_t)below(3),
                                    .frequency = 50 + below(3),
                                    .burst_length = below(2) ? 64 : 0,
                                    .period = below(3) ? 1000 : below(3),
                                    .threads = any_count(),
                                    .bursts = any_count(),
                                    .instructions = any_count(),
                                    .steps = any_count(),
                                    .reads = any_count(),
                                    .writes = any_count(),
                                    .heap_reads = any_count(),
                                    .thread_writes = any_count(),
                                    .in_kernel = any_count(),
                                    .lost = any_count(),
                                    .throttled = below(3)};
    for (size_t i = 0; i < sampled; i++)
        context[i] = (struct hw_sample_context){.context = (uint32_t)below(contexts),
                                                .reads = any_count(),
                                                .writes = any_count(),
                                                .lines = any_count(),
                                                .lines_shared = any_count(),
                                                .lines_true_shared = any_count(),
                                                .lines_false_shared = any_count(),
                                                .lines_writers = any_count()};
    for (size_t i = 0; i < count; i++) {
        const uint32_t kind = 1 + (uint32_t)below(3), module = (uint32_t)below(MODULES - 1);
        counts[i] = (struct hw_sample_count){
            .kind = kind,
            .context = kind == HW_SAMPLE_GLOBAL ? HW_NONE : (uint32_t)below(contexts),
            .map = kind == HW_SAMPLE_WORD || !below(9) ? HW_NONE : map_of(placing, module),
            .bytes = kind == HW_SAMPLE_WORD && !below(5) ? 4096 : 8,
            .offset = kind == HW_SAMPLE_PLACE ? code_start(module) + 16 * below(SITES) : 8 * below(9),
            .reads = any_count(),
            .writes = any_count()};
        if (kind != HW_SAMPLE_WORD && module == 3) /* generated code lies anywhere */
            counts[i].offset += placing->bias >> 40;
        if (kind != HW_SAMPLE_WORD && counts[i].map == HW_NONE)
            counts[i].offset += placing->bias;
    }
}

static void make_accesses(struct maker *maker, const struct placing *placing, size_t contexts, uint32_t granule,
                          uint64_t end)
{
    const struct hw_mib *mibs = maker->tables.of[HW_SECTION_MIBS].entries;
    const size_t count = maker->tables.of[HW_SECTION_MIBS].count, live = below(contexts), globals = below(20),
                 runs = granule == 8 ? below(20) : 0, word_runs = granule == 4 ? below(20) : 0;
    struct hw_access_info *info = make_table(maker, HW_SECTION_ACCESS_INFO, 1);
    struct hw_access *access = make_table(maker, HW_SECTION_ACCESS, count);
    struct hw_access *living = make_table(maker, HW_SECTION_ACCESS_LIVE, live);
    struct hw_global_granule *global = make_table(maker, HW_SECTION_GLOBALS, globals);
    struct hw_histogram *freed_run = make_table(maker, HW_SECTION_HISTOGRAM, runs),
                        *live_run = make_table(maker, HW_SECTION_HISTOGRAM_LIVE, runs);
    struct hw_words *freed_words = make_table(maker, HW_SECTION_WORDS, word_runs),
                    *live_words = make_table(maker, HW_SECTION_WORDS_LIVE, word_runs);
    *info = (struct hw_access_info){.flags = HW_ACCESS_SPLIT | (below(4) ? HW_ACCESS_HARVESTED : 0),
                                    .granule = granule,
                                    .planes = (uint32_t)below(9),
                                    .planes_most = 256,
                                    .harvest_tick = below(2) ? end : below(end),
                                    .threads_sharing = below(3),
                                    .modules = below(5)};
    if (granule == 4) {
        info->word_period_ns = below(3) ? 20000000 : 10000000;
        info->word_rounds = any_count();
        info->word_span_ns = any_count();
        info->word_longest_ns = any_count();
        info->word_cost_ns = any_count();
    }
    for (size_t i = 0; i < word_runs; i++) {
        make_used_words(&freed_words[i], contexts);
        make_used_words(&live_words[i], contexts);
    }
    for (size_t i = 0; i < count; i++)
        access[i] = make_access(mibs[i].context);
    for (size_t i = 0; i < live; i++)
        living[i] = make_access((uint32_t)i + 1);
    for (size_t i = 0; i < globals; i++)
        global[i] = (struct hw_global_granule){.map = map_of(placing, (uint32_t)below(3)),
                                               .flags = (uint32_t)below(256),
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
                                        .inherited_blocks = (int64_t)below(10),
                                        .children_lost = (uint32_t)below(3),
                                        .children_error = (uint32_t)below(30)};
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

/* Of blocks whose type is known, and of what code that counts fields knows of their places. */
static void make_types(struct maker *maker, size_t contexts)
{
    const size_t count = below(2) ? below(30) : 0;
    struct hw_context_type *types = make_table(maker, HW_SECTION_CONTEXT_TYPES, count);
    for (size_t i = 0; i < count; i++) {
        types[i] = (struct hw_context_type){
            .context = (uint32_t)below(contexts), .flags = (uint32_t)!below(9), .type = 1 + below(3)};
        for (size_t k = 0; k < 8; k++)
            types[i].starts[k] = below(2) ? any_count() : 0;
    }
}

#include "random_allocator.h"

/* In place of a granule: the allocator was observed, and accesses were not counted. */
#define OBSERVES 1

/* GRANULE 0: accesses are not counted, but sampled in most. The same state of chance gives the same content wherever it
 * is placed. */
static struct hw_profile *make_own(uint32_t wanted, const struct placing *placing)
{
    const uint32_t granule = wanted == OBSERVES ? 0 : wanted;
    struct maker maker = {.string_size = 1};
    const uint64_t end = 5000 + below(5000);
    const size_t contexts = 2 + below(MOST_CONTEXTS);
    make_table(&maker, HW_SECTION_STRINGS, STRINGS);
    make_process(&maker, end, granule != 0);
    make_maps(&maker, placing);
    const size_t nodes = make_stacks(&maker, placing);
    struct hw_context_entry *entries = make_table(&maker, HW_SECTION_CONTEXTS, contexts);
    static const uint16_t not_whole[] = {HW_CONTEXT_TRUNCATED, HW_CONTEXT_INCOMPLETE, HW_CONTEXT_GAP};
    for (size_t i = 1; i < contexts; i++)
        entries[i] = (struct hw_context_entry){
            .leaf = (uint32_t)below(nodes), .flags = below(8) ? 0 : not_whole[below(3)], .first_tick = below(end)};
    struct hw_mib *mibs = make_table(&maker, HW_SECTION_MIBS, contexts);
    for (size_t i = 0; i < contexts; i++) {
        mibs[i] = make_mib((uint32_t)below(contexts), end);
        if (!mibs[i].allocations)
            mibs[i].allocations = 1;
    }
    struct hw_inherited *inherited = make_table(&maker, HW_SECTION_INHERITED, 3);
    for (size_t i = 0; i < 3; i++)
        inherited[i] = (struct hw_inherited){.context = (uint32_t)below(contexts),
                                             .blocks = (int64_t)below(9),
                                             .bytes = (int64_t)below(99),
                                             .count_variance = below(999),
                                             .bytes_variance = below(999)};
    struct hw_free_stack *freed = make_table(&maker, HW_SECTION_FREE_STACKS, 4);
    for (size_t i = 0; i < 4; i++)
        freed[i] =
            (struct hw_free_stack){(uint32_t)below(contexts), (uint32_t)below(contexts), any_count(), any_count()};
    make_notes(&maker);
    make_types(&maker, contexts);
    const bool sampled = !granule && below(4);
    if (granule)
        make_accesses(&maker, placing, contexts, granule, end);
    else if (sampled)
        make_samples(&maker, placing, contexts);
    if ((granule || sampled) && below(5))
        make_sides(&maker, placing, contexts, granule != 0);
    if (wanted == OBSERVES)
        make_observed(&maker, placing, contexts, end);
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

#endif
