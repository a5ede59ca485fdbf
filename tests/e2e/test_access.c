/* Counted accesses, exactly: programs that count by hand (tests/programs/access.c) have the figures that are expected
 * here. What clang's runtime gets wrong (docs/accuracy.md) is asked for by name. */
#include "support/check.h"
#include "support/recording.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

static struct recording run_mode(const char *program, const char *mode, const char *count, const char *way)
{
    const char *path = program_path(program);
    if (!path)
        SKIP("no compiler for %s", program);
    const char *const argv[] = {path, mode, count ? count : "0", way, NULL};
    return record_and_load(argv, NULL);
}

/* The sum of a figure over the contexts that FUNCTION allocated. */
static int64_t sum_of(const json_t *report, const char *function, const char *key)
{
    int64_t sum = 0;
    size_t i;
    json_t *context;
    json_array_foreach(json_object_get(report, "contexts"), i,
                       context) if (stack_depth(context) && is_function(stack_function(context, 0), function)) sum +=
        json_number(context, key);
    return sum;
}

#define CHECK(report, function, key, expected) assert_int_equal(sum_of(report, function, key), expected)

static void test_plain(void **state)
{
    (void)state;
    struct recording r = run_mode("access", "plain", NULL, NULL);
    assert_exit(&r.run, 0, "access plain");
    assert_string_equal(json_text(r.report, "process.mode"), "access");
    CHECK(r.report, "plain_hot", "accesses.reads", 999 * 1000 / 2);
    CHECK(r.report, "plain_hot", "accesses.writes", 3000);
    CHECK(r.report, "plain_hot", "accesses.min", 3);
    CHECK(r.report, "plain_hot", "accesses.max", 1002);
    CHECK(r.report, "plain_hot", "accesses.blocks", 1000);
    CHECK(r.report, "plain_hot", "blocks_sharing_cells", 0);
    CHECK(r.report, "plain_live", "accesses.reads", 5);
    CHECK(r.report, "plain_live", "accesses.writes", 7);
    CHECK(r.report, "plain_live", "accesses.live_blocks", 1);
    CHECK(r.report, "plain_live", "granules_touched", 2);
    CHECK(r.report, "plain_never", "accesses.total", 0);
    CHECK(r.report, "plain_never", "never_accessed", 1);
    CHECK(r.report, "plain_written", "accesses.writes", 9);
    CHECK(r.report, "plain_written", "written_never_read", 1);
    CHECK(r.report, "plain_written", "granules_touched", 1);
    assert_int_equal(json_number(r.report, "totals.accesses"), 999 * 1000 / 2 + 3000 + 12 + 9);
    recording_free(&r);
}

static void check_bleed(const char *program)
{
    static const int sizes[] = {1, 8, 16, 24, 31, 32, 33, 40, 48, 63, 64, 65, 96, 100, 128};
    int64_t bytes = 0;
    for (int i = 0; i < 15; i++)
        bytes += 64 * sizes[i];
    struct recording r = run_mode(program, "bleed", NULL, NULL);
    assert_exit(&r.run, 0, "access bleed");
    CHECK(r.report, "bleed_cold", "accesses.total", 0);
    CHECK(r.report, "bleed_cold", "never_accessed", 64 * 15);
    CHECK(r.report, "bleed_hot", "accesses.reads", bytes);
    CHECK(r.report, "bleed_hot", "accesses.min", 1);
    CHECK(r.report, "bleed_hot", "accesses.max", 128);
    CHECK(r.report, "bleed_hot", "accesses.blocks", 64 * 15);
    recording_free(&r);
}

static void test_bleed(void **state)
{
    (void)state;
    check_bleed("access");
}

static void test_bleed_other_allocators(void **state)
{
    (void)state;
    check_bleed("access-jemalloc");
    check_bleed("access-tcmalloc");
}

static void test_stale(void **state)
{
    (void)state;
    struct recording r = run_mode("access", "stale", NULL, NULL);
    assert_exit(&r.run, 0, "access stale");
    CHECK(r.report, "stale_first", "accesses.writes", 600);
    CHECK(r.report, "stale_first", "accesses.reads", 299 * 5);
    CHECK(r.report, "stale_second", "accesses.total", 299 + 4);
    recording_free(&r);
}

static void test_large(void **state)
{
    (void)state;
    struct recording r = run_mode("access", "large", NULL, NULL);
    assert_exit(&r.run, 0, "access large");
    static const char *const functions[] = {"large_freed", "large_live"};
    for (int i = 0; i < 2; i++) {
        CHECK(r.report, functions[i], "bytes", (5ll << 30) + 16);
        CHECK(r.report, functions[i], "accesses.reads", 12);
        CHECK(r.report, functions[i], "accesses.writes", 3);
        CHECK(r.report, functions[i], "granules_touched", 6);
        CHECK(r.report, functions[i], "granules", (5ll << 24) + 1);
    }
    recording_free(&r);
}

static void check_sparse(const char *program, int64_t granule)
{
    const int64_t size = 300 << 20, step = (1 << 20) + (3 << 15);
    int64_t reads = 0;
    for (int64_t shift = 0; shift < 4; shift++)
        reads += (size - (shift << 18) + step - 1) / step;
    struct recording r = run_mode(program, "sparse", NULL, NULL);
    assert_exit(&r.run, 0, program);
    CHECK(r.report, "sparse", "accesses.writes", 400);
    CHECK(r.report, "sparse", "granules_touched", 400);
    CHECK(r.report, "sparse_large", "accesses.reads", reads);
    CHECK(r.report, "sparse_large", "accesses.writes", 4);
    CHECK(r.report, "sparse_large", "granules_touched", reads + 4);
    CHECK(r.report, "sparse_large", "granules", 4 * (size / granule + (granule == 64))); /* they begin within one */
    recording_free(&r);
}

static void test_sparse(void **state)
{
    check_sparse("access", 64);
    check_sparse("access-8", 8);
}

static void check_reallocs(const char *program)
{
    struct recording r = run_mode(program, "reallocs", NULL, NULL);
    assert_exit(&r.run, 0, "access reallocs");
    long counted = 0;
    assert_int_equal(sscanf(r.run.out, "counted %ld", &counted), 1);
    CHECK(r.report, "grown", "accesses.total", 3 * counted);
    CHECK(r.report, "grown", "accesses.blocks", 3);
    CHECK(r.report, "grown", "accesses.min", counted);
    CHECK(r.report, "grown", "accesses.max", counted);
    CHECK(r.report, "shrunk", "accesses.writes", 3000);
    CHECK(r.report, "shrunk", "accesses.reads", 3);
    CHECK(r.report, "shrunk", "accesses.live_blocks", 1);
    CHECK(r.report, "in_between", "accesses.total", 0);
    recording_free(&r);
}

static void test_reallocs(void **state)
{
    (void)state;
    check_reallocs("access");
    check_reallocs("access-jemalloc");
}

static void check_threads(const char *program, int count)
{
    char text[8];
    snprintf(text, sizeof text, "%d", count);
    struct recording r = run_mode(program, "threads", text, NULL);
    assert_exit(&r.run, 0, "access threads");
    CHECK(r.report, "common_block", "accesses.reads", 2 * 200000 * count);
    CHECK(r.report, "common_block", "accesses.writes", 200000 * count);
    CHECK(r.report, "common_block", "sharing.granules", 3);
    CHECK(r.report, "common_block", "sharing.written", 1);
    CHECK(r.report, "common_block", "sharing.writers", 1);
    CHECK(r.report, "own_block", "accesses.writes", 4 * 2000 * count);
    CHECK(r.report, "own_block", "sharing.granules", 0);
    CHECK(r.report, "handed_over", "accesses.reads", count * count);
    CHECK(r.report, "handed_over", "accesses.max", count);
    assert_int_equal(json_number(r.report, "process.access.threads_sharing_planes"), 0);
    recording_free(&r);
}

static void test_threads(void **state)
{
    (void)state;
    check_threads("access", 2);
    check_threads("access", 16);
    check_threads("access", 50);
}

/* The frame that starts a thread's counting is not in its stacks. */
static void test_thread_stack(void **state)
{
    (void)state;
    struct recording r = run_mode("access", "threads", "2", NULL);
    const json_t *context = only_context(r.report, "own_block");
    assert_true(is_function(stack_function(context, 1), "worker"));
    assert_true(json_is_true(json_object_get(context, "stack_complete")));
    recording_free(&r);
}

static void test_fork(void **state)
{
    (void)state;
    struct recording r = run_mode("access", "fork", NULL, NULL);
    assert_exit(&r.run, 0, "access fork");
    assert_int_equal(r.file_count, 2);
    CHECK(r.reports[0], "before_fork", "accesses.reads", 11);
    CHECK(r.reports[0], "before_fork", "accesses.writes", 1);
    CHECK(r.reports[1], "before_fork", "accesses.reads", 3);
    CHECK(r.reports[1], "before_fork", "accesses.writes", 0);
    CHECK(r.reports[1], "in_child", "accesses.writes", 2);
    recording_free(&r);
}

static void check_aligned(const char *program)
{
    struct recording r = run_mode(program, "aligned", NULL, NULL);
    assert_exit(&r.run, 0, "access aligned");
    /* sizes 1, 4, 13, 40, … below 20000: 9 of them; 18 alignments; 2 blocks */
    assert_int_equal(json_number(r.report, "totals.accesses"), 9 * 18 * 2 * 2);
    recording_free(&r);
}

static void test_aligned(void **state)
{
    (void)state;
    check_aligned("access");
    check_aligned("access-8");
    check_aligned("access-jemalloc");
    check_aligned("access-tcmalloc");
    check_aligned("access-mimalloc");
}

static void test_globals(void **state)
{
    (void)state;
    struct recording r = run_mode("access", "globals", NULL, NULL);
    int64_t one = 0, two = 0, never = 0;
    size_t i;
    json_t *global;
    json_array_foreach(json_object_get(r.report, "globals"), i, global)
    {
        const char *symbol = json_text(global, "symbol");
        one += strcmp(symbol, "access_global_one") == 0 ? json_number(global, "reads") : 0;
        two += strcmp(symbol, "access_global_two") == 0
                   ? 100 * json_number(global, "writes") + json_number(global, "reads")
                   : 0;
        never += strcmp(symbol, "access_global_never") == 0 ? json_number(global, "accesses") : 0;
    }
    assert_int_equal(one, 12);
    assert_int_equal(two, 506);
    assert_int_equal(never, 0);
    recording_free(&r);
}

static void test_dumps_count_a_live_block_once(void **state)
{
    (void)state;
    const char *path = program_path("access");
    const char *const argv[] = {path, "dumps", NULL};
    char *directory = make_directory(), *file = join_path(directory, "run.hwprof");
    struct record_options options = {.file = file, .no_report = true};
    struct recording r = record_and_load(argv, &options);
    assert_exit(&r.run, 0, "access dumps");
    for (int i = 1; i <= 4; i++) {
        char name[64];
        snprintf(name, sizeof name, i == 4 ? "run.hwprof" : "run.dump%d.hwprof", i);
        char *dump = join_path(directory, name);
        json_t *report = load_report(dump, 0);
        CHECK(report, "dumped", "allocations", 1);
        CHECK(report, "dumped", "accesses.blocks", 1);
        CHECK(report, "dumped", "accesses.reads", i == 4 ? 6 : 2 * i);
        json_decref(report);
        free(dump);
    }
    recording_free(&r);
    remove_directory(directory);
    free(file);
}

static void test_reset(void **state)
{
    (void)state;
    struct recording r = run_mode("access", "resets", NULL, NULL);
    CHECK(r.report, "dumped", "accesses.total", 7);
    assert_int_equal(json_number(r.report, "totals.globals.accesses"), 0);
    recording_free(&r);
}

static void test_more_than_32_bits(void **state)
{
    (void)state;
    struct recording r = run_mode("access", "many", NULL, NULL);
    assert_exit(&r.run, 0, "access many");
    CHECK(r.report, "plain_hot", "accesses.reads", 7000000001);
    CHECK(r.report, "plain_hot", "accesses.writes", 21000000000);
    CHECK(r.report, "plain_live", "accesses.reads", 35);
    CHECK(r.report, "plain_live", "accesses.writes", 7ll << 33);
    recording_free(&r);
}

static void test_words(void **state)
{
    (void)state;
    struct recording r = run_mode("access-8", "words", NULL, NULL);
    assert_exit(&r.run, 0, "access-8 words");
    CHECK(r.report, "words_full", "accesses.reads", 255);
    CHECK(r.report, "words_full", "saturated_cells", 1);
    CHECK(r.report, "words_full", "accesses.writes", 3);
    CHECK(r.report, "words_full", "granules", 8);
    CHECK(r.report, "words_full", "granules_touched", 2);
    const json_t *each = only_context(r.report, "words_each");
    assert_int_equal(json_number(each, "accesses.writes"), 3 * 125);
    assert_int_equal(json_number(each, "accesses.reads"), 3 * (2 * 1225 + 300));
    CHECK(r.report, "lines_apart", "sharing.false_shared_lines", 1);
    CHECK(r.report, "lines_apart", "sharing.true_shared_lines", 0);
    CHECK(r.report, "lines_together", "sharing.false_shared_lines", 0);
    CHECK(r.report, "lines_together", "sharing.true_shared_lines", 1);
    CHECK(r.report, "lines_together", "accesses.writes", 20);
    recording_free(&r);
}

static void test_granule_8(void **state)
{
    (void)state;
    check_bleed("access-8");
    struct recording r = run_mode("access-8", "large", NULL, NULL);
    CHECK(r.report, "large_live", "accesses.reads", 12);
    CHECK(r.report, "large_freed", "accesses.writes", 3);
    recording_free(&r);
    r = run_mode("access-8", "stale", NULL, NULL);
    CHECK(r.report, "stale_second", "accesses.total", 299 + 4);
    recording_free(&r);
}

/* However a program ends, what live blocks counted is there. */
static void test_ends(void **state)
{
    (void)state;
    static const struct {
        const char *way;
        int code, signal;
    } ends[] = {{"_exit", 0, 0},        {"_Exit", 0, 0},  {"quick_exit", 0, 0}, {"exit_group", 0, 0}, {"errx", 0, 0},
                {"pthread_exit", 0, 0}, {"daemon", 0, 0}, {"vfork", 0, 0},      {"exec fails", 0, 0}, {"exec", 0, 0},
                {"abort", 0, 6},        {"15", 0, 15},    {"2", 0, 2},          {"11", 0, 11}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct recording r = run_mode("access", "plain", NULL, ends[i].way);
        print_message("end: %s\n", ends[i].way);
        assert_int_equal(r.run.code, ends[i].signal ? 128 + ends[i].signal : ends[i].code);
        CHECK(r.report, "plain_live", "accesses.reads", 5);
        recording_free(&r);
    }
    /* A forked child that never allocates: its accesses are told at its end, whatever that is. */
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct recording r = run_mode("access", "child", NULL, ends[i].way);
        print_message("child's end: %s\n", ends[i].way);
        assert_int_equal(r.run.code, 0);
        CHECK(r.report, "before_fork", "accesses.reads", 11);
        int64_t children = 0;
        for (size_t k = 1; k < r.file_count; k++)
            if (sum_of(r.reports[k], "before_fork", "accesses.reads") == 3) {
                children++;
                assert_int_equal(
                    json_number_or_none(r.reports[k], ends[i].signal ? "process.exit.signal" : "process.exit.code"),
                    ends[i].signal);
            }
        assert_int_equal(children, strcmp(ends[i].way, "exec") != 0); /* what it did before exec is not kept */
        recording_free(&r);
    }
}

static void test_kill_says_what_is_missing(void **state)
{
    (void)state;
    struct recording r = run_mode("access", "plain", NULL, "9");
    CHECK(r.report, "plain_hot", "accesses.reads", 999 * 1000 / 2);
    assert_true(
        json_is_false(json_object_get(json_object_get(json_object_get(r.report, "process"), "access"), "harvested")));
    recording_free(&r);
}

static void test_no_address_space(void **state)
{
    (void)state;
    const char *path = program_path("access");
    const char *const argv[] = {path, "plain", NULL};
    struct run_limit limits[] = {{RLIMIT_AS, 4ul << 30}, {-1, 0}};
    struct run_options options = {.limits = limits};
    struct run_result result = run(argv, &options);
    assert_exit(&result, 1, "access under ulimit -v");
    assert_contains(result.err, "address space");
    run_result_free(&result);
}

/* A library that counts, in a program that does not: from then on, and after the library has gone. */
static void test_late_library(void **state)
{
    (void)state;
    const char *program = program_path("late"), *library = program_path("liblate.so");
    if (!program || !library)
        SKIP("no compiler for late");
    const char *const argv[] = {program, library, NULL};
    struct recording r = record_and_load(argv, NULL);
    assert_exit(&r.run, 0, "late");
    CHECK(r.report, "late_block", "accesses.reads", 3 * 8);
    CHECK(r.report, "late_block", "blocks_sharing_cells", 0);
    CHECK(r.report, "early_block", "allocations", 2000);
    CHECK(r.report, "early_block", "frees", 1999);
    /* Those share granules with their neighbours: what is counted there may be told of both. */
    assert_in_range(sum_of(r.report, "early_block", "accesses.reads"), 30, 40);
    CHECK(r.report, "early_block", "blocks_sharing_cells", 2000);
    /* Told of both is not taken away: also when the neighbour is freed first. */
    assert_in_range(sum_of(r.report, "early_hot", "accesses.reads"), 3 * 100, 3 * 300);
    assert_int_equal(json_number(r.report, "totals.globals.reads"), 9);
    recording_free(&r);
    /* Without record the runtime comes with the library, and must stay when that goes. */
    char *directory = make_directory();
    struct run_options options = {.directory = directory};
    struct run_result result = run(argv, &options);
    assert_exit(&result, 0, "late without record");
    run_result_free(&result);
    remove_directory(directory);
}

static void test_mixed_granules(void **state)
{
    (void)state;
    const char *program = program_path("late"), *library = program_path("liblate.so");
    const char *other = program_path("liblate-8.so");
    if (!program || !library || !other)
        SKIP("no compiler for late");
    char preload[9000];
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s:%s", library, other);
    struct run_result result = run((const char *const[]){program, library, NULL},
                                   &(struct run_options){.environment = (const char *const[]){preload, NULL}});
    assert_exit(&result, 1, "libraries of different granules");
    assert_contains(result.err, "--granule");
    run_result_free(&result);
}

TEST_LIST(cmocka_unit_test(test_late_library), cmocka_unit_test(test_mixed_granules), cmocka_unit_test(test_plain),
          cmocka_unit_test(test_bleed), cmocka_unit_test(test_bleed_other_allocators), cmocka_unit_test(test_stale),
          cmocka_unit_test(test_large), cmocka_unit_test(test_sparse), cmocka_unit_test(test_reallocs),
          cmocka_unit_test(test_threads), cmocka_unit_test(test_thread_stack), cmocka_unit_test(test_fork),
          cmocka_unit_test(test_aligned), cmocka_unit_test(test_globals),
          cmocka_unit_test(test_dumps_count_a_live_block_once), cmocka_unit_test(test_reset),
          cmocka_unit_test(test_more_than_32_bits), cmocka_unit_test(test_words), cmocka_unit_test(test_granule_8),
          cmocka_unit_test(test_ends), cmocka_unit_test(test_kill_says_what_is_missing),
          cmocka_unit_test(test_no_address_space))
