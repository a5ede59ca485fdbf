/* test_perf_match.c - samples and blocks of a made-up run, compared with a search that looks at every block. */
#include "support/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "perf/perf_match.h"

#define START     5000000000ul /* ns at tick 0; a tick is 2 ns */
#define BLOCKS    400
#define SAMPLES   2000
#define CONTEXTS  7
#define LOWEST    0x7f0000001000ul
#define TIMES     1000

struct block {
    uint64_t address, size, begin, end; /* ticks */
    uint32_t context;
};

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (seed >> 33) % below;
}

struct run {
    struct hw_tables tables;
    struct hw_process_info process;
    struct hw_block_log_info log;
    struct hw_block_event events[2 * BLOCKS + 8];
    struct block blocks[BLOCKS];
    size_t event_count, block_count;
};

static void add_event(struct run *run, uint64_t address, uint64_t size, uint32_t context, uint64_t tick)
{
    run->events[run->event_count++] = (struct hw_block_event){.address = address | size >> 32 << 48,
                                                              .tick = tick,
                                                              .context = context,
                                                              .size = (uint32_t)size};
}

/* Blocks that never lie on each other at the same time; what does not fit is left out. */
static void make_run(struct run *run)
{
    *run = (struct run){.process = {.pid = 77, .clock_ticks = 1, .clock_ns = 2, .end_tick = TIMES}};
    run->log.start_monotonic_ns = START;
    for (int i = 0; i < BLOCKS; i++) {
        struct block new = {LOWEST + draw(64) * 16, 1 + draw(100), 1 + draw(TIMES - 1), 0, (uint32_t)draw(CONTEXTS)};
        new.end = draw(5) ? new.begin + 1 + draw(200) : UINT64_MAX;
        bool free = true;
        for (size_t k = 0; k < run->block_count; k++) {
            const struct block *old = &run->blocks[k];
            free &= old->address + old->size <= new.address || new.address + new.size <= old->address ||
                    old->end <= new.begin || new.end <= old->begin;
            /* begins and ends of one tick are in the order of their threads, which is not known */
            free &= old->address != new.address || (old->end != new.begin && new.end != old->begin);
        }
        if (!free)
            continue;
        run->blocks[run->block_count++] = new;
        add_event(run, new.address, new.size, new.context, new.begin);
        if (new.end != UINT64_MAX)
            add_event(run, new.address, 0, HW_NONE, new.end);
    }
    run->event_count++; /* one that was not written */
    add_event(run, LOWEST - 64, 0, HW_NONE, 7); /* of a block from before the log */
    add_event(run, LOWEST + 8, 8, CONTEXTS, 7); /* damaged */
    run->tables.of[HW_SECTION_PROCESS] = (struct hw_table){.entries = &run->process, .count = 1};
    run->tables.of[HW_SECTION_BLOCK_LOG_INFO] = (struct hw_table){.entries = &run->log, .count = 1};
    run->tables.of[HW_SECTION_BLOCK_LOG] = (struct hw_table){.entries = run->events, .count = run->event_count};
    run->tables.of[HW_SECTION_CONTEXTS].count = CONTEXTS;
}

static void test_against_search(void **state)
{
    static struct run run;
    for (seed = 1; seed < 60;) {
        const uint64_t first_seed = seed;
        struct hw_perf_match match;
        struct hw_error error;
        uint64_t samples[CONTEXTS] = {0}, words[CONTEXTS][16] = {{0}}, inside = 0;
        make_run(&run);
        assert_true(hw_perf_match_begin(&match, &run.tables, 0, "profile", &error));
        for (int i = 0; i < SAMPLES; i++) {
            char line[200];
            const uint64_t tick = draw(TIMES), address = LOWEST - 32 + draw(1300);
            snprintf(line, sizeof line, "77/%d 5.%09" PRIu64 ": mem: %" PRIx64 " 142 |OP LOAD|LVL L1 hit %d 401136\n",
                     78 + (int)draw(3), tick * 2 + 1, address, 1 + (int)draw(1000));
            hw_perf_match_line(&match, line);
            for (size_t k = 0; k < run.block_count; k++) {
                const struct block *block = &run.blocks[k];
                if (address - block->address < block->size && block->begin <= tick && tick < block->end) {
                    samples[block->context]++;
                    words[block->context][(address - block->address) / 8]++;
                    inside++;
                }
            }
        }
        assert_true(hw_perf_match_end(&match, "samples", &error));
        assert_int_equal(match.info.samples, SAMPLES);
        assert_int_equal(match.info.in_blocks, inside);
        assert_int_equal(match.info.elsewhere, SAMPLES - inside);
        assert_int_equal(match.info.blocks, run.block_count);
        for (size_t i = 0; i < match.count_count; i++) {
            const struct hw_perf_count *count = &match.counts[i];
            if (count->scope == HW_PERF_PLACE)
                assert_int_equal(count->samples, samples[count->context]);
            if (count->scope == HW_PERF_PLACE)
                samples[count->context] = 0;
            if (count->scope == HW_PERF_WORD) {
                assert_int_equal(count->samples, words[count->context][count->word]);
                words[count->context][count->word] = 0;
            }
        }
        for (int context = 0; context < CONTEXTS; context++) {
            assert_int_equal(samples[context], 0);
            for (int word = 0; word < 16; word++)
                assert_int_equal(words[context][word], 0);
        }
        hw_perf_match_free(&match);
        seed = first_seed + 1;
    }
}

/* Two blocks of two places on one line, again and again in other blocks: one row for each word. */
static void test_shared_lines(void **state)
{
    static struct run run;
    struct hw_perf_match match;
    struct hw_error error;
    make_run(&run);
    run.event_count = 0;
    for (uint64_t i = 0; i < 5; i++) {
        add_event(&run, LOWEST + i * 256, 32, 1, 10);
        add_event(&run, LOWEST + i * 256 + 32, 32, 2, 10);
    }
    add_event(&run, LOWEST, 0, HW_NONE, 500);
    add_event(&run, LOWEST, 32, 3, 501); /* later, another block in the same place: none of its users is a side */
    run.tables.of[HW_SECTION_BLOCK_LOG].count = run.event_count;
    assert_true(hw_perf_match_begin(&match, &run.tables, 0, "profile", &error));
    for (uint64_t i = 0; i < 5; i++) {
        char line[200];
        snprintf(line, sizeof line, "77/78 5.000000100: m: %" PRIx64 " 800842 |OP LOAD 30 401136", LOWEST + i * 256 + 8);
        hw_perf_match_line(&match, line);
        snprintf(line, sizeof line, "77/79 5.000000101: m: %" PRIx64 " 144 |OP STORE 0 401136", LOWEST + i * 256 + 40);
        hw_perf_match_line(&match, line);
    }
    char late[200];
    snprintf(late, sizeof late, "77/80 5.000001800: m: %" PRIx64 " 144 |OP STORE 0 401136", LOWEST + 16);
    hw_perf_match_line(&match, late);
    assert_true(hw_perf_match_end(&match, "samples", &error));
    assert_int_equal(match.side_count, 2);
    assert_int_equal(match.sides[0].context, 1);
    assert_int_equal(match.sides[0].word, 1);
    assert_int_equal(match.sides[0].hitm, 5);
    assert_int_equal(match.sides[0].lines, 5);
    assert_int_equal(match.sides[1].context, 2);
    assert_int_equal(match.sides[1].word, 1);
    assert_int_equal(match.sides[1].stores, 5);
    assert_int_equal(match.sides[1].threads, 1);
    assert_int_equal(match.sides[1].first_thread, 79);
    hw_perf_match_free(&match);
}

/* Mappings that cover others in part, before and after them. */
static void test_regions(void **state)
{
    static struct run run;
    static const char *const lines[] = {
        "77/77 5.0: PERF_RECORD_MMAP2 77/77: [0x10000(0x10000) @ 0]: r--p /file\n",
        "77/77 5.0: PERF_RECORD_MMAP2 77/77: [0x14000(0x2000) @ 0]: rw-p //anon\n",
        "77/77 5.0: PERF_RECORD_MMAP2 77/77: [0x1e000(0x4000) @ 0]: rw-p /file\n",
        "77/77 5.0: PERF_RECORD_MMAP2 77/77: [0x22000(0x1000) @ 0]: rw-p //anon\n", /* .bss */
        "77/77 5.0: PERF_RECORD_MMAP2 77/77: [0x40000000(0x1000) @ 0]: rw-p [stack]\n",
        "77/77 5.0: PERF_RECORD_MMAP2 77/77: [0x3f000000(0x1000) @ 0]: rw-p //anon\n",
        "77/77 5.000001000: PERF_RECORD_MMAP2 77/77: [0x10000(0x1000) @ 0]: rw-p //anon\n", /* after the samples */
        "77/77 5.0: PERF_RECORD_MMAP2 77/77: [0x50000(0x0) @ 0]: rw-p //anon\n",
    };
    static const struct {
        uint64_t address;
        int kind; /* 0 elsewhere, 1 file, 2 stack */
    } samples[] = {{0x10000, 1}, {0x13fff, 1}, {0x14000, 0}, {0x15fff, 0}, {0x16000, 1}, {0x1ffff, 1}, {0x21fff, 1},
                   {0x22fff, 1}, {0x23000, 0}, {0xffff, 0},  {0x40000fff, 2}, {0x3ffff000, 2}, {0x3f000000, 0},
                   {0x3efff000, 2}, {0x40001000, 0}};
    struct hw_perf_match match;
    struct hw_error error;
    uint64_t want[3] = {0};
    make_run(&run);
    assert_true(hw_perf_match_begin(&match, &run.tables, 0, "profile", &error));
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        hw_perf_match_line(&match, lines[i]);
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        char line[100];
        snprintf(line, sizeof line, "77/77 5.000000500: m: %" PRIx64 " 401136\n", samples[i].address);
        hw_perf_match_line(&match, line);
        want[samples[i].kind]++;
    }
    assert_true(hw_perf_match_end(&match, "samples", &error));
    assert_int_equal(match.info.elsewhere, want[0]);
    assert_int_equal(match.info.in_modules, want[1]);
    assert_int_equal(match.info.in_stack, want[2]);
    assert_true(match.info.flags & HW_PERF_MAPPINGS);
    assert_false(match.info.flags & (HW_PERF_SOURCES | HW_PERF_WEIGHTS | HW_PERF_CLOCK));
    hw_perf_match_free(&match);
}

/* With the wrong clock most samples fall into blocks of other times. */
static void test_doubt(void **state)
{
    static struct run run;
    struct hw_perf_match match;
    struct hw_error error;
    make_run(&run);
    run.event_count = 0;
    add_event(&run, LOWEST, 64, 1, 10);
    add_event(&run, LOWEST, 0, HW_NONE, 20);
    run.tables.of[HW_SECTION_BLOCK_LOG].count = run.event_count;
    assert_true(hw_perf_match_begin(&match, &run.tables, 0, "profile", &error));
    for (int i = 0; i < 30; i++)
        hw_perf_match_line(&match, "77/77 5.000000500: m: 7f0000001008 401136\n");
    assert_true(hw_perf_match_end(&match, "samples", &error));
    assert_int_equal(match.info.was_block, 30);
    assert_true(match.info.flags & HW_PERF_SYNC);
    hw_perf_match_free(&match);
}

TEST_LIST(cmocka_unit_test(test_against_search), cmocka_unit_test(test_shared_lines), cmocka_unit_test(test_regions),
          cmocka_unit_test(test_doubt))
