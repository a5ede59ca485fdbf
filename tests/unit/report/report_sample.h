/* report_sample.h - a profile with everything a report has to cope with, written as a file from format.h alone, and the
 * names of its functions: recursion, inlined templates, a library at two addresses, generated code, unknown stacks. */
#ifndef HW_TESTS_REPORT_SAMPLE_H
#define HW_TESTS_REPORT_SAMPLE_H

#include "unit/profile/profile_writer.h"

#include "symbols/symbols.h"

/* ---- names: by module and address ---- */

struct named_address {
    const char *module;
    uint64_t address;
    struct hw_frame frames[4]; /* innermost first; up to the first without name and file */
};

#define PARSER "/opt/demo/bin/parser"
#define PLUGIN "/opt/demo/lib/libplugin.so"
#define LIBC   "/lib/x86_64-linux-gnu/libc.so.6"

#define FRAME(name, path, number)                                                                                      \
    {                                                                                                                  \
        .function = (name), .file = (path), .line = (number), .column = 9                                              \
    }
#define INLINED(name, linkage, path, number)                                                                           \
    {                                                                                                                  \
        .function = (name), .linkage_name = (linkage), .file = (path), .line = (number), .inlined = true               \
    }

/* Interned as the symbolizer interns: one pointer for one function. */
static const char parse_value[] = "parse_value", eval[] = "eval", apply[] = "apply";

static const struct named_address named_addresses[] = {
    {PARSER, 0x1000, {FRAME("_start", NULL, 0)}},
    {PARSER, 0x1010, {FRAME("main", "/src/demo/main.c", 88)}},
    {PARSER, 0x1020, {FRAME("load_config", "/src/demo/config.c", 31)}},
    {PARSER, 0x1030, {FRAME("xmalloc", "/src/demo/util.c", 12)}},
    {PARSER, 0x1040, {FRAME(parse_value, "/src/demo/parse.c", 140)}},
    {PARSER, 0x1048, {FRAME(parse_value, "/src/demo/parse.c", 166)}},
    {PARSER, 0x1050, {FRAME("new_node", "/src/demo/tree.c", 17)}},
    {PARSER, 0x1060, {FRAME(eval, "/src/demo/eval.c", 55)}},
    {PARSER, 0x1070, {FRAME(apply, "/src/demo/eval.c", 92)}},
    {PARSER, 0x1080, {FRAME("cons", "/src/demo/cell.c", 9)}},
    {PARSER,
     0x1090,
     {INLINED("std::__new_allocator<Token>::allocate(unsigned long, void const*)",
              "_ZNSt15__new_allocatorI5TokenE8allocateEmPKv", "/usr/include/c++/12/bits/new_allocator.h", 137),
      FRAME(
          "void std::vector<Token, std::allocator<Token> >::_M_realloc_insert<Token const&>(__gnu_cxx::__normal_iterator<Token*, "
          "std::vector<Token, std::allocator<Token> > >, Token const&)",
          "/usr/include/c++/12/bits/vector.tcc", 440)}},
    {PARSER,
     0x10a0,
     {INLINED("std::vector<Token, std::allocator<Token> >::push_back(Token const&)",
              "_ZNSt6vectorI5TokenSaIS0_EE9push_backERKS0_", "/usr/include/c++/12/bits/stl_vector.h", 1287),
      FRAME(
          "demo::lexer::Scanner<demo::utf8::Decoder, demo::lexer::Keywords<64> >::scan_line(std::basic_string_view<char>, int)",
          "/src/demo/scanner.cc", 204)}},
    {PARSER, 0x10b0, {FRAME("worker", "/src/demo/pool.c", 61)}},
    {PARSER, 0x10c0, {FRAME("bad\xff\xfename\033[31m", "/src/demo/caf\xc3\xa9.c", 3)}},
    {PARSER, 0x10d0, {FRAME("init_tables", "/src/demo/tables.c", 5)}},
    {PLUGIN, 0x2010, {FRAME("plugin_decode", NULL, 0)}},
    {PLUGIN, 0x2020, {FRAME("plugin_entry", NULL, 0)}},
    {LIBC, 0x3010, {FRAME("__libc_start_call_main", NULL, 0)}},
    {LIBC, 0x3020, {FRAME("__libc_start_main@@GLIBC_2.34", NULL, 0)}},
    {LIBC, 0x3030, {FRAME("start_thread", NULL, 0)}},
    {LIBC, 0x3040, {FRAME("clone3", NULL, 0)}},
    {LIBC, 0x3050, {FRAME("strdup", NULL, 0)}},
};

HELPER struct hw_frames sample_resolve(void *closure, const char *module, uint64_t address)
{
    for (size_t i = 0; i < sizeof named_addresses / sizeof *named_addresses; i++) {
        const struct named_address *named = &named_addresses[i];
        uint32_t count = 0;
        if (strcmp(named->module, module) || named->address != address)
            continue;
        while (count < 4 && named->frames[count].function)
            count++;
        return (struct hw_frames){named->frames, count};
    }
    return (struct hw_frames){NULL, 0};
}

/* ---- the file ---- */

enum { MAP_PARSER, MAP_LIBC, MAP_RUNTIME, MAP_PLUGIN, MAP_PLUGIN_AGAIN, MAP_JIT, MAP_COUNT };

struct report_sample {
    char strings[2048];
    size_t string_size;
    struct hw_map_entry maps[MAP_COUNT];
    struct hw_stack_node nodes[512];
    uint32_t node_count;
    struct hw_context_entry contexts[64];
    struct hw_mib mibs[64];
    uint32_t context_count;
    struct hw_thread_entry thread;
    struct hw_process_info process;
    struct hw_free_stack free_stacks[8];
    size_t free_stack_count;
    struct hw_timeline_point timeline[200];
    size_t timeline_count;
    struct hw_memory_breakdown memory[4];
    size_t memory_count;
    struct hw_note notes[8];
    size_t note_count;
    struct hw_access_info access_info; /* granule 0: accesses were not counted */
    struct hw_access accesses[64];     /* parallel to mibs */
    struct hw_access live[8];
    size_t live_count;
    struct hw_global_granule globals[32];
    size_t global_count;
    struct hw_histogram histogram[4];
    size_t histogram_count;
};

HELPER uint32_t add_string(struct report_sample *sample, const char *text)
{
    const size_t at = sample->string_size, size = strlen(text) + 1;
    if (at + size > sizeof sample->strings)
        abort();
    memcpy(sample->strings + at, text, size);
    sample->string_size += size;
    return (uint32_t)at;
}

/* A call from PARENT at ADDRESS (as in the ELF file) of a map; the same call is the same node. */
HELPER uint32_t call(struct report_sample *sample, uint32_t parent, uint32_t map, uint64_t address)
{
    const struct hw_stack_node node = {.pc = address + sample->maps[map].bias, .map = map, .parent = parent};
    for (uint32_t i = 1; i < sample->node_count; i++)
        if (!memcmp(&sample->nodes[i], &node, sizeof node))
            return i;
    sample->nodes[sample->node_count] = node;
    return sample->node_count++;
}

/* COUNT blocks of SIZE bytes each were allocated at LEAF, of which LIVE are left; half of the rest lived 1 ms, half 3
 * ms. */
HELPER struct hw_mib *allocate(struct report_sample *sample, uint32_t leaf, uint64_t count, uint64_t size,
                               uint64_t live)
{
    const uint32_t id = leaf ? sample->context_count++ : 0;
    struct hw_mib *mib = &sample->mibs[id];
    struct hw_thread_entry *thread = &sample->thread;
    sample->contexts[id] = (struct hw_context_entry){.leaf = leaf, .first_tick = id * 1000};
    *mib = (struct hw_mib){.context = id,
                           .allocations = count,
                           .samples = count,
                           .bytes = count * size,
                           .size_min = size,
                           .size_max = size,
                           .frees = count - live,
                           .live_blocks = (int64_t)live,
                           .live_bytes = (int64_t)(live * size),
                           .live_ticks = live * 1000000,
                           .lifetime_total = (count - live) * 2000000,
                           .lifetime_min = count > live ? 1000000 : UINT64_MAX,
                           .lifetime_max = count > live ? 3000000 : 0,
                           .alloc_threads = 1,
                           .free_threads = count > live,
                           .alloc_thread = 1,
                           .free_thread = 1,
                           .last_alloc_tick = 1500000000,
                           .last_free_tick = 1600000000,
                           .peak_epoch = 1};
    thread->allocations += count;
    thread->frees += count - live;
    thread->bytes += count * size;
    thread->live_blocks += mib->live_blocks;
    thread->live_bytes += mib->live_bytes;
    return mib;
}

/* At the process's peak BLOCKS of the context's blocks were live. */
HELPER void at_peak(struct report_sample *sample, struct hw_mib *mib, uint64_t blocks)
{
    mib->peak_blocks = (int64_t)blocks;
    mib->peak_bytes = (int64_t)(blocks * mib->size_max);
    sample->process.peak_bytes += (uint64_t)mib->peak_bytes;
}

HELPER void make_maps(struct report_sample *sample)
{
    static const struct {
        const char *path;
        uint64_t start, bias;
        uint8_t build_id;
        uint32_t flags;
    } rows[MAP_COUNT] = {
        [MAP_PARSER] = {PARSER, 0x401000, 0x400000, 0xa1, HW_MAP_MAIN},
        [MAP_LIBC] = {LIBC, 0x7f0000003000, 0x7f0000000000, 0xb2, HW_MAP_ALLOCATOR},
        [MAP_RUNTIME] = {"/opt/heapwise/libheapwise.so", 0x7f1000001000, 0x7f1000000000, 0xc3, HW_MAP_RUNTIME},
        [MAP_PLUGIN] = {PLUGIN, 0x7f2000002000, 0x7f2000000000, 0xd4, 0},
        [MAP_PLUGIN_AGAIN] = {PLUGIN, 0x7f3000002000, 0x7f3000000000, 0xd4, 0},
        [MAP_JIT] = {"", 0x7f4000000000, 0, 0, HW_MAP_ANONYMOUS},
    };
    for (size_t i = 0; i < MAP_COUNT; i++)
        sample->maps[i] = (struct hw_map_entry){.start = rows[i].start,
                                                .end = rows[i].start + 0x1000,
                                                .bias = rows[i].bias,
                                                .build_id = {rows[i].build_id, 1},
                                                .build_id_size = rows[i].build_id ? 2 : 0,
                                                .path = add_string(sample, rows[i].path),
                                                .unloaded_tick = i == MAP_PLUGIN ? 900000000 : 0,
                                                .flags = rows[i].flags};
}

HELPER void make_calls(struct report_sample *sample)
{
    uint32_t start = call(sample, 0, MAP_PARSER, 0x1000);
    start = call(sample, start, MAP_LIBC, 0x3020);
    start = call(sample, start, MAP_LIBC, 0x3010);
    const uint32_t main = call(sample, start, MAP_PARSER, 0x1010);
    uint32_t at = call(sample, main, MAP_PARSER, 0x1020);
    /* strdup and xmalloc below load_config, the runtime's own frame below them */
    at = call(sample, call(sample, at, MAP_PARSER, 0x1030), MAP_LIBC, 0x3050);
    struct hw_mib *mib = allocate(sample, call(sample, at, MAP_RUNTIME, 0x1010), 1234, 24, 1234);
    at_peak(sample, mib, 1234);
    /* a function that calls itself, from two lines */
    at = main;
    for (int i = 0; i < 40; i++)
        at = call(sample, at, MAP_PARSER, i % 2 ? 0x1040 : 0x1048);
    mib = allocate(sample, call(sample, at, MAP_PARSER, 0x1050), 4100200, 56, 0);
    mib->lifetime_min = 900;
    mib->lifetime_max = 1100000000;
    at_peak(sample, mib, 1042000);
    /* the same place at another depth */
    at = main;
    for (int i = 0; i < 25; i++)
        at = call(sample, at, MAP_PARSER, i % 2 ? 0x1040 : 0x1048);
    allocate(sample, call(sample, at, MAP_PARSER, 0x1050), 1000, 56, 0);
    /* two that call each other */
    at = main;
    for (int i = 0; i < 12; i++)
        at = call(sample, call(sample, at, MAP_PARSER, 0x1060), MAP_PARSER, 0x1070);
    mib = allocate(sample, call(sample, at, MAP_PARSER, 0x1080), 800000, 16, 3);
    mib->temporary = 600000;
    sample->thread.temporary += mib->temporary;
    /* one library at two addresses */
    for (uint32_t map = MAP_PLUGIN; map <= MAP_PLUGIN_AGAIN; map++) {
        at = call(sample, call(sample, main, map, 0x2020), map, 0x2010);
        mib = allocate(sample, at, 1000, 4096, 5);
        at_peak(sample, mib, 500);
    }
    /* a thread that fills a vector */
    at = call(sample, call(sample, 0, MAP_LIBC, 0x3040), MAP_LIBC, 0x3030);
    at = call(sample, call(sample, at, MAP_PARSER, 0x10b0), MAP_PARSER, 0x10a0);
    mib = allocate(sample, call(sample, at, MAP_PARSER, 0x1090), 50000, 96, 0);
    mib->size_min = 32;
    mib->size_max = 1 << 20;
    mib->alloc_threads = 3;
    mib->free_threads = 2;
    mib->reallocations = sample->thread.reallocations = 1202;
    mib->realloc_moved = 30;
    mib->realloc_grown_bytes = 12 << 20;
    mib->bytes += mib->realloc_grown_bytes;
    sample->thread.bytes += mib->realloc_grown_bytes;
    mib->peak_blocks = 12;
    mib->peak_bytes = 12 << 20;
    sample->process.peak_bytes += 12 << 20;
    sample->free_stacks[sample->free_stack_count++] = (struct hw_free_stack){sample->context_count - 1, 1, 49000, 0};
    sample->free_stacks[sample->free_stack_count++] = (struct hw_free_stack){sample->context_count - 1, 4, 1000, 0};
    /* generated code, of which the callers are not known */
    at = call(sample, call(sample, 0, MAP_JIT, 0x7f4000000123), MAP_PARSER, 0x10c0);
    allocate(sample, at, 77, 1 << 10, 77);
    sample->contexts[sample->context_count - 1].flags = HW_CONTEXT_INCOMPLETE;
    /* a deep stack without recursion, mostly without names */
    at = main;
    for (uint64_t i = 0; i < 40; i++)
        at = call(sample, at, i < 38 ? MAP_PLUGIN : MAP_LIBC, 0x2100 + 16 * i);
    allocate(sample, at, 10, 100, 10);
    /* before main, in the dynamic linker's start */
    at = call(sample, call(sample, 0, MAP_LIBC, 0x3060), MAP_PARSER, 0x10d0);
    allocate(sample, at, 1, 72704, 1);
    /* no stack at all */
    allocate(sample, 0, 6, 500, 0);
}

HELPER void make_timeline(struct report_sample *sample)
{
    const double peak = (double)sample->process.peak_bytes, most = 1.5 * peak;
    for (int i = 0; i < 200; i++) {
        const double rising = i < 140 ? i / 140.0 : (200 - i) / 60.0;
        const double live = peak * rising * (0.9 + 0.1 * (i % 7) / 6), rss = i < 140 ? most * i / 140 : most;
        sample->timeline[sample->timeline_count++] = (struct hw_timeline_point){
            .tick = (uint64_t)i * 10000000,
            .live_bytes = (int64_t)live,
            .rss_bytes = i % 2 ? 0 : 4000000 + (uint64_t)rss,
            .allocations = (uint64_t)i * 20000,
            .frees = (uint64_t)i * 19000,
        };
    }
}

/* 1 ns a tick; 2 s. */
HELPER void make_run(struct report_sample *sample)
{
    struct hw_process_info *process = &sample->process;
    *process = (struct hw_process_info){.pid = 4711,
                                        .parent_pid = 4700,
                                        .cpus = 2,
                                        .start_realtime_ns = 1700000000000000000,
                                        .start_time_jiffies = 1,
                                        .clock_ticks = 1,
                                        .clock_ns = 1,
                                        .end_tick = 2000000000,
                                        .exit_kind = HW_EXIT_CODE,
                                        .peak_tick = 1400000000,
                                        .peak_epoch = 1,
                                        .threads_seen = 4,
                                        .threads_most = 3};
    process->executable = add_string(sample, PARSER);
    process->allocator = add_string(sample, "glibc 2.36");
    process->allocator_path = add_string(sample, LIBC);
    process->command = add_string(sample, "./parser");
    add_string(sample, "--check");
    add_string(sample, "my file.txt");
    process->command_count = 3;
}

HELPER struct report_sample *report_sample(void)
{
    struct report_sample *sample = calloc(1, sizeof *sample);
    if (!sample)
        abort();
    sample->string_size = 1;
    sample->node_count = sample->context_count = 1;
    sample->nodes[0].map = HW_NONE;
    sample->thread = (struct hw_thread_entry){.serial = 1, .tid = 4711, .foreign_frees = 3, .failed = 1};
    make_run(sample);
    make_maps(sample);
    make_calls(sample);
    make_timeline(sample);
    const uint64_t peak = sample->process.peak_bytes, mib = 1 << 20;
    sample->process.peak_rss_bytes = peak + 38 * mib;
    sample->process.live_bytes = sample->thread.live_bytes;
    sample->process.live_blocks = sample->thread.live_blocks;
    sample->memory[sample->memory_count++] = (struct hw_memory_breakdown){.tick = 1400000000,
                                                                          .moment = HW_MOMENT_PEAK,
                                                                          .rss = peak + 38 * mib,
                                                                          .heap = peak + 30 * mib,
                                                                          .file = 5 * mib,
                                                                          .stack = mib,
                                                                          .runtime = 2 * mib,
                                                                          .live_bytes = (int64_t)peak};
    sample->memory[sample->memory_count++] = (struct hw_memory_breakdown){.tick = 2000000000,
                                                                          .moment = HW_MOMENT_END,
                                                                          .rss = 9 * mib,
                                                                          .heap = mib,
                                                                          .file = 5 * mib,
                                                                          .stack = mib,
                                                                          .runtime = 2 * mib,
                                                                          .live_bytes = sample->thread.live_bytes};
    sample->notes[sample->note_count++] = (struct hw_note){HW_NOTE_JIT, 0, 77, 5000};
    sample->notes[sample->note_count++] = (struct hw_note){HW_NOTE_NO_UNWIND, add_string(sample, PLUGIN), 1, 5000};
    return sample;
}

/* ---- counted accesses ---- */

#define TYPE_NODE 4711

static const struct hw_data_symbol parser_symbols[] = {
    {0x5000, 4, "verbose", NULL},
    {0x5004, 4, "depth", NULL},
    {0x5008, 8, "limit", NULL},
    {0x5010, 8, "input", NULL},
    {0x5018, 8, "position", NULL},
    {0x5040, 4096, "keyword_table", NULL},
    {0x6050, 200, "demo::lexer::scanner_state", NULL},
    {0x6140, 8, "ready\033", NULL},
};
static const struct hw_data_section parser_sections[] = {{0x4000, 0x5000, ".rodata"}, {0x5000, 0x7000, ".data"}};

HELPER struct hw_data sample_data(void *closure, const char *module)
{
    if (strcmp(module, PARSER) != 0)
        return (struct hw_data){0};
    return (struct hw_data){.symbol = parser_symbols,
                            .symbol_count = sizeof parser_symbols / sizeof *parser_symbols,
                            .section = parser_sections,
                            .section_count = 2};
}

HELPER const char *sample_type(void *closure, uint64_t id)
{
    return id == TYPE_NODE ? "demo::node" : NULL;
}

/* What was counted for BLOCKS blocks of a context, each with GRANULES granules of which TOUCHED are touched. */
HELPER void count_accesses(struct hw_access *access, uint64_t blocks, uint64_t size, uint64_t granules,
                           uint64_t touched, uint64_t reads, uint64_t writes)
{
    const uint64_t all = reads + writes, share = granules ? touched * 10000 / granules : 0;
    access->blocks = blocks;
    access->reads = reads * blocks;
    access->writes = writes * blocks;
    access->accesses_min = access->accesses_max = all;
    access->granules = granules * blocks;
    access->granules_touched = touched * blocks;
    access->utilization_total = share * blocks;
    access->utilization_min = access->utilization_max = (uint32_t)share;
    access->density_min = access->density_max = all * 1000 / size;
    access->density_total = access->density_min * blocks;
    access->lifetime_density_min = access->lifetime_density_max = access->density_min * 500;
    access->lifetime_density_total = access->lifetime_density_min * blocks;
    access->never_accessed = all ? 0 : blocks;
    access->written_never_read = writes && !reads ? blocks : 0;
}

HELPER void add_global(struct report_sample *sample, uint32_t map, uint64_t offset, uint64_t reads, uint64_t writes,
                       uint32_t flags)
{
    sample->globals[sample->global_count++] =
        (struct hw_global_granule){.map = map, .flags = flags, .offset = offset, .reads = reads, .writes = writes};
}

/* The same run, of a program that counts its accesses: 64-byte granules. */
HELPER struct report_sample *access_sample(void)
{
    struct report_sample *sample = report_sample();
    sample->process.mode = HW_MODE_ACCESS;
    sample->access_info = (struct hw_access_info){.flags = HW_ACCESS_SPLIT | HW_ACCESS_HARVESTED,
                                                  .granule = 64,
                                                  .planes = 4,
                                                  .planes_most = 256,
                                                  .harvest_tick = 2000000000,
                                                  .modules = 1};
    for (uint32_t i = 0; i < 64; i++)
        sample->accesses[i] = sample_access(i);
    for (size_t i = 0; i < 8; i++)
        sample->live[i] = sample_access(0);
    for (uint32_t i = 0; i < sample->context_count; i++) {
        const struct hw_mib *mib = &sample->mibs[i];
        struct hw_access *access = &sample->accesses[i];
        const uint64_t freed = mib->frees;
        if (freed && mib->size_max == 56) { /* nodes: read often */
            count_accesses(access, freed, 56, 1, 1, 290, 10);
            access->accesses_min = 12;
            access->accesses_max = 31000;
            access->type = TYPE_NODE;
        } else if (freed && mib->size_max == 16) { /* cons: some never, some never read */
            count_accesses(access, freed, 16, 1, 1, 3, 2);
            access->never_accessed = 20000;
            access->accesses_min = 0;
            access->written_never_read = 120000;
        } else if (freed && mib->size_max == 4096) { /* of the plugin: large and next to unused */
            count_accesses(access, freed, 4096, 64, 3, 2, 9);
        } else if (freed && mib->size_max == 1 << 20) { /* the vector: touched by several threads */
            count_accesses(access, freed, 96, 2, 2, 40, 31);
            access->shared_granules = 60000;
            access->shared_written = 45000;
            access->shared_writers = 12000;
        }
        if (mib->live_blocks == 1234) {
            struct hw_access *live = &sample->live[sample->live_count++];
            live->context = i;
            count_accesses(live, 1234, 24, 1, 1, 4, 1);
        } else if (mib->live_blocks && mib->size_max == 72704) { /* tables: a tenth is used */
            struct hw_access *live = &sample->live[sample->live_count++];
            live->context = i;
            count_accesses(live, 1, 72704, 1137, 113, 20000, 113);
        } else if (mib->live_blocks == 77) {
            struct hw_access *live = &sample->live[sample->live_count++];
            live->context = i;
            count_accesses(live, 77, 1024, 16, 0, 0, 0);
        }
    }
    add_global(sample, MAP_PARSER, 0x4f00, 900000, 0, 0); /* constants without a symbol */
    add_global(sample, MAP_PARSER, 0x4f40, 100000, 0, 0);
    add_global(sample, MAP_PARSER, 0x5000, 500000, 70000, 7); /* five variables */
    add_global(sample, MAP_PARSER, 0x5040, 33000000, 0, 1);
    add_global(sample, MAP_PARSER, 0x5080, 11000000, 0, 1);
    add_global(sample, MAP_PARSER, 0x6040, 4000000, 1000000,
               0); /* the last granule of the table and the scanner's first */
    add_global(sample, MAP_PARSER, 0x6080, 8000000, 2000000, 3);
    add_global(sample, MAP_PARSER, 0x6140, 10, 2000000, 0);
    add_global(sample, MAP_PLUGIN, 0x8000, 70000, 1, 0);
    for (uint32_t i = 0; i < MAP_COUNT; i++)
        sample->maps[i].flags |= HW_MAP_NOTES_READ | (i == MAP_PARSER ? HW_MAP_COUNTS : 0);
    return sample;
}

/* The same with 8-byte granules, and with all that can go wrong with counting. */
HELPER struct report_sample *fine_access_sample(void)
{
    struct report_sample *sample = access_sample();
    sample->access_info.granule = 8;
    sample->access_info.flags |= HW_ACCESS_UNSPLIT;
    sample->access_info.flags &= ~(uint32_t)HW_ACCESS_HARVESTED;
    sample->access_info.threads_sharing = 2;
    sample->live_count = sample->global_count = 0;
    for (uint32_t i = 0; i < sample->context_count; i++) {
        struct hw_access *access = &sample->accesses[i];
        if (sample->mibs[i].size_max == 56) {
            access->saturated_cells = 5;
            access->unsplit = access->writes;
            access->writes = 0;
            sample->histogram[sample->histogram_count++] =
                (struct hw_histogram){.context = i, .saturated = 5, .words = {[0] = 1000, [2] = 7}};
        }
        if (access->shared_granules) {
            access->lines_false_shared = 300;
            access->lines_true_shared = 20;
            access->not_owned = 3;
        }
    }
    sample->notes[sample->note_count++] = (struct hw_note){HW_NOTE_FOLDED, 0, 1, 0};
    return sample;
}

/* The profile file. Frees the sample. */
HELPER struct image report_image(struct report_sample *sample, bool sealed)
{
    struct image image = image_new();
    const bool access = sample->process.mode == HW_MODE_ACCESS;
    const struct {
        uint32_t type;
        size_t size;
        const void *data;
        size_t count;
    } sections[] = {
        {HW_SECTION_PROCESS, sizeof sample->process, &sample->process, 1},
        {HW_SECTION_STRINGS, 1, sample->strings, sample->string_size},
        {HW_SECTION_MAPS, sizeof *sample->maps, sample->maps, MAP_COUNT},
        {HW_SECTION_STACKS, sizeof *sample->nodes, sample->nodes, sample->node_count},
        {HW_SECTION_CONTEXTS, sizeof *sample->contexts, sample->contexts, sample->context_count},
        {HW_SECTION_THREADS, sizeof sample->thread, &sample->thread, 1},
        {HW_SECTION_TIMELINE, sizeof *sample->timeline, sample->timeline, sample->timeline_count},
        {HW_SECTION_FREE_STACKS, sizeof *sample->free_stacks, sample->free_stacks, sample->free_stack_count},
        {HW_SECTION_MEMORY, sizeof *sample->memory, sample->memory, sample->memory_count},
        {HW_SECTION_NOTES, sizeof *sample->notes, sample->notes, sample->note_count},
        {HW_SECTION_MIBS, sizeof *sample->mibs, sample->mibs, sample->context_count},
        {HW_SECTION_ACCESS_INFO, sizeof sample->access_info, &sample->access_info, access},
        {HW_SECTION_ACCESS, sizeof *sample->accesses, sample->accesses, access ? sample->context_count : 0},
        {HW_SECTION_ACCESS_LIVE, sizeof *sample->live, sample->live, sample->live_count},
        {HW_SECTION_GLOBALS, sizeof *sample->globals, sample->globals, sample->global_count},
        {HW_SECTION_HISTOGRAM, sizeof *sample->histogram, sample->histogram, sample->histogram_count},
    };
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (sections[i].count)
            image_add(&image, sections[i].type, sections[i].size, sections[i].data,
                      sections[i].size * sections[i].count, 0);
    if (sealed)
        image_header(&image)->flags |= HW_FILE_EXITED, image_seal(&image);
    free(sample);
    return image;
}

#endif
