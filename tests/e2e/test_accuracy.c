/* test_accuracy.c - counts of accesses against known numbers, gcc's callbacks and DHAT; what naive shadow counting gets
 * wrong has a test each.
 *
 * programs/accuracy.c is built here, by `heapwise cc` itself: with 64-byte granules unless a test says otherwise. All
 * of its accesses are volatile: the numbers below are those that stand in its source. */
#include "support/check.h"
#include "support/recording.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_config.h"

/* ---- building and running ---- */

enum build { CLANG, CLANG_8, CLANG_EACH, GCC, PLAIN, BUILDS };

static const struct {
    const char *name;
    const char *const arguments[6];
} builds[BUILDS] = {
    [CLANG] = {"clang", {"cc", "-O2"}},
    [CLANG_8] = {"clang-8", {"cc", "--granule=8", "-O2"}},
    [CLANG_EACH] = {"clang-each", {"cc", "--no-consolidate", "-O2"}},
    [GCC] = {"gcc", {"cc", "--compiler=gcc", "-O2"}},
    [PLAIN] = {"plain", {NULL}},
};

static char *directory;
static char *programs[BUILDS];

/* The program as built so; NULL when that compiler is not there. */
static const char *program_of(enum build build)
{
    if (programs[build])
        return programs[build];
    if (!directory)
        directory = make_directory();
    char *program = join_path(directory, builds[build].name), *source = join_path(TEST_SOURCES, "programs/accuracy.c");
    const char *argv[20];
    size_t used = 0;
    if (build == PLAIN) {
        argv[used++] = "gcc";
        argv[used++] = "-O1";
    } else {
        argv[used++] = heapwise_path();
    }
    for (size_t i = 0; builds[build].arguments[i]; i++)
        argv[used++] = builds[build].arguments[i];
    const char *const common[] = {"-D_GNU_SOURCE", "-g", "-w", "-pthread", "-o", program, source, NULL};
    for (size_t i = 0; common[i]; i++)
        argv[used++] = common[i];
    argv[used] = NULL;
    struct run_result built = run(argv, NULL);
    if (built.code == 127)
        program = NULL;
    else if (built.code != 0)
        fail_msg("cannot be built: %s:\n%s", run_describe(argv), built.err);
    run_result_free(&built);
    free(source);
    return programs[build] = program;
}

struct outcome {
    struct run_result run;
    char *directory;
    char **files;
    size_t file_count;
    json_t *report; /* of the first profile, by name; NULL when there is none */
};

/* Runs the program with ARGUMENTS; without `heapwise record`. */
static struct outcome run_case(enum build build, const char *argument, const char *second)
{
    const char *program = program_of(build);
    if (!program)
        SKIP("the compiler for %s is not there", builds[build].name);
    struct outcome outcome = {.directory = make_directory()};
    char *options;
    if (asprintf(&options, "HEAPWISE_OPTIONS=output=%s/%%p.%%n.hwprof", outcome.directory) < 0)
        fail_msg("no memory");
    const char *const argv[] = {program, argument, second, NULL}, *const environment[] = {options, NULL};
    outcome.run = run(argv, &(struct run_options){.environment = environment});
    free(options);
    outcome.files = list_files(outcome.directory, ".hwprof", &outcome.file_count);
    if (outcome.file_count)
        outcome.report = load_report(outcome.files[0], 0);
    return outcome;
}

static void outcome_free(struct outcome *outcome)
{
    json_decref(outcome->report);
    free_list(outcome->files);
    run_result_free(&outcome->run);
    remove_directory(outcome->directory);
}

static struct outcome run_fine(enum build build, const char *name)
{
    struct outcome outcome = run_case(build, name, NULL);
    if (outcome.run.code != 0 || outcome.run.err_size || !outcome.report)
        fail_msg("%s: exit code %d, signal %d, %s; stdout and stderr:\n%s\n%s", name, outcome.run.code,
                 outcome.run.signal, outcome.report ? "a profile" : "no profile", outcome.run.out, outcome.run.err);
    return outcome;
}

/* ---- what a report says ---- */

struct accesses {
    int64_t contexts, allocations, total, reads, writes, min, max, never;
};

/* The sums over the contexts with FUNCTION in their stacks. */
static struct accesses accesses_of(const json_t *report, const char *function)
{
    struct accesses sum = {.min = INT64_MAX};
    size_t index;
    const json_t *context;
    json_array_foreach(json_object_get(report, "contexts"), index, context)
    {
        bool found = false;
        for (size_t i = 0; i < stack_depth(context); i++)
            found |= is_function(stack_function(context, i), function);
        if (!found)
            continue;
        /* Null when no block of the context could be harvested. */
        int64_t min = json_number_or_none(context, "accesses.min"), max = json_number_or_none(context, "accesses.max");
        min = min == INT64_MIN ? INT64_MAX : min;
        sum.contexts++;
        if (json_is_null(json_object_get(context, "accesses"))) /* live blocks that were not harvested */
            continue;
        sum.allocations += json_number(context, "allocations");
        sum.total += json_number(context, "accesses.total");
        sum.reads += json_number(context, "accesses.reads");
        sum.writes += json_number(context, "accesses.writes");
        sum.never += json_number(context, "never_accessed");
        sum.min = min < sum.min ? min : sum.min;
        sum.max = max > sum.max ? max : sum.max;
    }
    if (!sum.contexts)
        fail_msg("no context of %s", function);
    return sum;
}

static void assert_accesses(const json_t *report, const char *function, int64_t reads, int64_t writes)
{
    struct accesses sum = accesses_of(report, function);
    if (sum.reads != reads || sum.writes != writes || sum.total != reads + writes)
        fail_msg("%s: %" PRId64 " accesses, %" PRId64 " reads, %" PRId64 " writes; expected %" PRId64 " reads, %" PRId64
                 " writes",
                 function, sum.total, sum.reads, sum.writes, reads, writes);
}

/* The sum of a number over the contexts of FUNCTION. */
static int64_t number_of(const json_t *report, const char *function, const char *path)
{
    int64_t sum = 0;
    size_t index;
    const json_t *context;
    json_array_foreach(json_object_get(report, "contexts"), index, context)
    {
        for (size_t i = 0; i < stack_depth(context); i++) {
            if (is_function(stack_function(context, i), function)) {
                sum += json_number(context, path);
                break;
            }
        }
    }
    return sum;
}

/* ---- blocks own their cells ---- */

static void check_bleed(enum build build)
{
    struct outcome outcome = run_fine(build, "bleed");
    assert_accesses(outcome.report, "bleed_hot", 65 * 500, 65 * 500);
    assert_accesses(outcome.report, "bleed_cold", 0, 0);
    assert_int_equal(accesses_of(outcome.report, "bleed_cold").never, 64);
    /* Eleven walks read next and value, the end reads next once more. */
    assert_accesses(outcome.report, "bleed_node", 100 * (11 * 2 + 1), 100 * 2);
    assert_int_equal(accesses_of(outcome.report, "bleed_node").min, 25);
    assert_int_equal(accesses_of(outcome.report, "bleed_node").max, 25);
    outcome_free(&outcome);
}

static void test_bleed(void **state)
{
    check_bleed(CLANG);
    check_bleed(CLANG_EACH);
}

static void test_bleed_gcc(void **state)
{
    check_bleed(GCC);
}

static const int64_t reuse_sizes[] = {1,  4,  7,  8,   9,   16,  24,   31,   32,     33,    40,
                                      63, 64, 65, 100, 128, 200, 1000, 5000, 100000, 300000};
enum { REUSE_SIZES = sizeof reuse_sizes / sizeof *reuse_sizes };

static void check_reuse(enum build build)
{
    struct outcome outcome = run_fine(build, "reuse");
    int64_t bytes = 0;
    for (size_t i = 0; i < REUSE_SIZES; i++)
        bytes += reuse_sizes[i];
    assert_accesses(outcome.report, "reuse_new", 0, 0);
    assert_int_equal(accesses_of(outcome.report, "reuse_new").never, 40 * REUSE_SIZES + 50 * 40);
    assert_accesses(outcome.report, "reuse_once", 0, REUSE_SIZES);
    assert_int_equal(accesses_of(outcome.report, "reuse_once").min, 1);
    assert_int_equal(accesses_of(outcome.report, "reuse_once").max, 1);
    assert_accesses(outcome.report, "reuse_old", 0, 40 * 2 * bytes);
    assert_accesses(outcome.report, "reuse_shrunk", 0, 50 * 4000);
    outcome_free(&outcome);
}

static void test_reuse(void **state)
{
    check_reuse(CLANG);
}

static void test_small(void **state)
{
    struct outcome outcome = run_fine(CLANG, "small");
    for (int size = 0; size <= 8; size++) {
        char function[32];
        snprintf(function, sizeof function, "small_%d", size);
        assert_accesses(outcome.report, function, 0, 50 * size * size);
        assert_int_equal(accesses_of(outcome.report, function).min, size * size);
        assert_int_equal(accesses_of(outcome.report, function).max, size * size);
    }
    outcome_free(&outcome);
    outcome = run_fine(CLANG_8, "small");
    for (int size = 0; size <= 8; size++) {
        char function[32];
        snprintf(function, sizeof function, "small_%d", size);
        assert_accesses(outcome.report, function, 0, 50 * size * size);
    }
    outcome_free(&outcome);
}

static void test_aligned(void **state)
{
    struct outcome outcome = run_fine(CLANG, "aligned");
    assert_accesses(outcome.report, "aligned_make", 0, 2 * 65536 - 16);
    assert_accesses(outcome.report, "zeroed_make", 2 * 65536 - 16, 0);
    outcome_free(&outcome);
}

/* ---- threads: nothing is lost ---- */

static void check_threads(enum build build, const char *name, int64_t count, int64_t each)
{
    struct outcome outcome = run_fine(build, name);
    assert_accesses(outcome.report, "threads_common", count * each, 0);
    assert_accesses(outcome.report, "threads_own", 0, count * each);
    assert_int_equal(accesses_of(outcome.report, "threads_own").min, accesses_of(outcome.report, "threads_own").max);
    outcome_free(&outcome);
}

static void test_two_threads(void **state)
{
    check_threads(CLANG, "two_threads", 2, 20000000);
    check_threads(CLANG_EACH, "two_threads", 2, 20000000);
}

static void test_two_threads_gcc(void **state)
{
    check_threads(GCC, "two_threads", 2, 20000000);
}

static void test_sixteen_threads(void **state)
{
    check_threads(CLANG, "sixteen_threads", 16, 500000);
}

/* More threads than planes lose little, and the report says so; fewer lose nothing. */
static void test_many_threads(void **state)
{
    struct outcome outcome = run_fine(CLANG, "many_threads");
    struct accesses common = accesses_of(outcome.report, "threads_common"),
                    own = accesses_of(outcome.report, "threads_own");
    int64_t expected = 200 * 20000;
    bool said = report_says(outcome.report, "thread");
    if (!said) {
        assert_int_equal(common.reads, expected);
        assert_int_equal(own.writes, expected);
    }
    assert_in_range(common.reads, expected - expected / 1000, expected);
    assert_in_range(own.writes, expected - expected / 1000, expected);
    outcome_free(&outcome);
}

static void test_passing_threads(void **state)
{
    struct outcome outcome = run_fine(CLANG, "passing_threads");
    assert_accesses(outcome.report, "threads_common", 300 * 200, 0);
    assert_accesses(outcome.report, "threads_own", 0, 300 * 200);
    assert_int_equal(accesses_of(outcome.report, "threads_common").min, 200);
    assert_int_equal(accesses_of(outcome.report, "threads_own").max, 100);
    /* Whoever ends gives his counters to others: they are never short. */
    assert_int_equal(json_number(outcome.report, "process.access.threads_sharing_planes"), 0);
    outcome_free(&outcome);
}

/* ---- who shares ---- */

#define SHARED_GRANULES "sharing.granules"
#define SHARED_WRITTEN  "sharing.written"
#define SHARED_WRITERS  "sharing.writers"
#define FALSE_SHARED    "sharing.false_shared_lines"
#define TRUE_SHARED     "sharing.true_shared_lines"

static void test_sharing(void **state)
{
    static const struct {
        const char *function;
        int granules, written, writers;
    } expected[] = {
        {"share_none", 0, 0, 0},       {"share_readers", 1, 0, 0}, {"share_handed", 1, 1, 1},
        {"share_one_writer", 1, 1, 0}, {"share_writers", 1, 1, 1}, {"share_words", 1, 1, 1},
        {"share_padded", 0, 0, 0},
    };
    struct outcome outcome = run_fine(CLANG, "share");
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        if (number_of(outcome.report, expected[i].function, SHARED_GRANULES) != expected[i].granules ||
            number_of(outcome.report, expected[i].function, SHARED_WRITTEN) != expected[i].written ||
            number_of(outcome.report, expected[i].function, SHARED_WRITERS) != expected[i].writers)
            fail_msg("%s: %d shared granules, %d written, %d by several", expected[i].function,
                     (int)number_of(outcome.report, expected[i].function, SHARED_GRANULES),
                     (int)number_of(outcome.report, expected[i].function, SHARED_WRITTEN),
                     (int)number_of(outcome.report, expected[i].function, SHARED_WRITERS));
    }
    outcome_free(&outcome);
}

static void test_false_sharing(void **state)
{
    static const struct {
        const char *function;
        int truly, falsely;
    } expected[] = {
        {"share_none", 0, 0},    {"share_readers", 0, 0}, {"share_one_writer", 1, 0},
        {"share_writers", 1, 0}, {"share_words", 0, 1},   {"share_padded", 0, 0},
    };
    struct outcome outcome = run_fine(CLANG_8, "share");
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        if (number_of(outcome.report, expected[i].function, TRUE_SHARED) != expected[i].truly ||
            number_of(outcome.report, expected[i].function, FALSE_SHARED) != expected[i].falsely)
            fail_msg("%s: %d lines truly shared, %d falsely", expected[i].function,
                     (int)number_of(outcome.report, expected[i].function, TRUE_SHARED),
                     (int)number_of(outcome.report, expected[i].function, FALSE_SHARED));
    }
    outcome_free(&outcome);
}

/* ---- sizes and numbers ---- */

static void check_huge(enum build build)
{
    static const int64_t G = (int64_t)1 << 30;
    static const struct {
        const char *function;
        int64_t size;
    } blocks[] = {{"huge_4g", 4 * G}, {"huge_4g_16", 4 * G + 16}, {"huge_6g", 6 * G}};
    struct outcome outcome = run_fine(build, "huge");
    if (strstr(outcome.run.out, "no memory")) {
        outcome_free(&outcome);
        SKIP("blocks of 6 GiB cannot be had here");
    }
    for (size_t i = 0; i < 3; i++) {
        assert_accesses(outcome.report, blocks[i].function, 1, 2);
        assert_true(report_sums(outcome.report, blocks[i].function).size_min == blocks[i].size);
        assert_true(report_sums(outcome.report, blocks[i].function).size_max == blocks[i].size);
        assert_int_equal(accesses_of(outcome.report, blocks[i].function).never, 1);
        assert_int_equal(accesses_of(outcome.report, blocks[i].function).max, 3);
    }
    assert_true(json_number(outcome.report, "totals.peak_rss_bytes") < 300 << 20);
    outcome_free(&outcome);
}

static void test_huge(void **state)
{
    check_huge(CLANG);
    check_huge(CLANG_8);
}

static void test_density(void **state)
{
    struct outcome outcome = run_fine(CLANG, "dense");
    assert_accesses(outcome.report, "dense_byte", 30000000, 30000000);
    assert_accesses(outcome.report, "dense_live", 30000000, 30000000);
    assert_true(json_number(only_context(outcome.report, "dense_byte"), "access_density.max") == 60000000);
    assert_true(json_number(only_context(outcome.report, "dense_live"), "access_density.min") == 60000000);
    /* It lived for less than a second: more accesses a byte and second. */
    assert_true(json_number(only_context(outcome.report, "dense_byte"), "lifetime_access_density.max") > 60000000);
    outcome_free(&outcome);
}

static void test_more_than_32_bits(void **state)
{
    struct outcome outcome = run_fine(CLANG, "over");
    assert_accesses(outcome.report, "over_word", 5ll << 30, 1);
    outcome_free(&outcome);
}

/* ---- 8-byte granules ---- */

static void test_saturation(void **state)
{
    struct outcome outcome = run_fine(CLANG_8, "histogram");
    struct accesses hot = accesses_of(outcome.report, "hist_hot");
    assert_in_range(hot.total, 255, 2000000);
    assert_int_equal(number_of(outcome.report, "hist_hot", "saturated_cells"), 1);
    assert_accesses(outcome.report, "hist_cool", 28, 0);
    assert_int_equal(number_of(outcome.report, "hist_cool", "saturated_cells"), 0);
    const json_t *histogram = json_object_get(only_context(outcome.report, "hist_cool"), "histogram");
    assert_int_equal(json_array_size(histogram), 8);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(json_integer_value(json_array_get(histogram, i)), i);
    assert_true(report_says(outcome.report, "limit") || report_says(outcome.report, "saturat"));
    outcome_free(&outcome);

    outcome = run_fine(CLANG, "histogram");
    assert_accesses(outcome.report, "hist_hot", 2000000, 0);
    outcome_free(&outcome);
}

/* ---- how well used ---- */

static void check_use(enum build build)
{
    struct outcome outcome = run_fine(build, "use");
    assert_accesses(outcome.report, "use_never", 0, 0);
    assert_int_equal(number_of(outcome.report, "use_never", "never_accessed"), 10);
    assert_int_equal(number_of(outcome.report, "use_never", "written_never_read"), 0);
    assert_accesses(outcome.report, "use_written", 0, 10);
    assert_int_equal(number_of(outcome.report, "use_written", "written_never_read"), 10);
    assert_int_equal(number_of(outcome.report, "use_written", "never_accessed"), 0);
    assert_accesses(outcome.report, "use_read", 30, 10);
    assert_int_equal(number_of(outcome.report, "use_read", "written_never_read"), 0);
    assert_int_equal(number_of(outcome.report, "use_never", "utilization_percent.mean"), 0);
    if (build == CLANG) {
        /* 16 granules of 64, or of 65: blocks start at multiples of 32. */
        assert_in_range(number_of(outcome.report, "use_quarter", "utilization_percent.mean"), 24, 25);
        assert_in_range(number_of(outcome.report, "use_all", "utilization_percent.mean"), 98, 100);
    } else {
        assert_in_range(number_of(outcome.report, "use_all", "utilization_percent.mean"), 12, 13);
    }
    outcome_free(&outcome);
}

static void test_use(void **state)
{
    check_use(CLANG);
    check_use(CLANG_8);
}

static void test_reallocation(void **state)
{
    struct outcome outcome = run_fine(CLANG, "grow");
    struct accesses chain = accesses_of(outcome.report, "grow_chain");
    assert_int_equal(chain.writes, 51 * 10);
    assert_int_equal(chain.max, 51 * 10);
    assert_int_equal(chain.allocations, 13);
    assert_accesses(outcome.report, "grow_huge", 0, 12 * 100);
    assert_int_equal(accesses_of(outcome.report, "grow_huge").max, 1200);
    assert_int_equal(number_of(outcome.report, "grow_chain", "reallocations"), 50);
    outcome_free(&outcome);
}

static void test_lifetimes(void **state)
{
    struct outcome outcome = run_fine(CLANG, "lifetime");
    struct sums brief = report_sums(outcome.report, "life_short"), slow = report_sums(outcome.report, "life_long");
    assert_in_range(brief.lifetime_min_ns, 1, 1000000);
    assert_in_range(slow.lifetime_min_ns, 50000000, 5000000000);
    /* 1 access a byte in not much more than 0.05 s; accesses a byte and second. */
    const json_t *density = json_object_get(only_context(outcome.report, "life_long"), "lifetime_access_density");
    double accesses = json_number_value(json_object_get(density, "mean")) * (double)slow.lifetime_min_ns / 1e9;
    if (!(accesses > 0.99 && accesses < 1.01))
        fail_msg("%g accesses a byte in a lifetime, expected 1", accesses);
    assert_true(json_number(only_context(outcome.report, "life_short"), "lifetime_access_density.mean") > 1000);
    outcome_free(&outcome);
}

/* ---- processes ---- */

static void test_fork(void **state)
{
    struct outcome outcome = run_fine(CLANG, "fork");
    assert_int_equal(outcome.file_count, 2);
    json_t *other = load_report(outcome.files[1], 0), *parent = outcome.report, *child = other;
    if (json_number_or_none(parent, "process.started_ns") > json_number_or_none(child, "process.started_ns"))
        parent = other, child = outcome.report;
    assert_accesses(parent, "fork_parent", 5, 2000);
    assert_accesses(child, "fork_child", 0, 300);
    /* Nothing of the parent's: at most its own seven reads of a block that it got from it. */
    assert_in_range(json_number(child, "totals.accesses"), 300, 307);
    json_decref(other);
    outcome_free(&outcome);
}

static void test_ends(void **state)
{
    static const struct {
        const char *how;
        int code, signal;
        bool live; /* what lies in cells is harvested */
    } ends[] = {
        {"return", 3, 0, true},          {"exit", 3, 0, true},
        {"_exit", 3, 0, true},           {"quick_exit", 3, 0, true},
        {"thread", 3, 0, true},          {"exec", 0, 0, true},
        {"abort", -1, SIGABRT, true},    {"SIGTERM", -1, SIGTERM, true},
        {"SIGINT", -1, SIGINT, true},    {"SIGSEGV", -1, SIGSEGV, true},
        {"SIGKILL", -1, SIGKILL, false},
    };
    size_t failed = 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct outcome outcome = run_case(CLANG, "end", ends[i].how);
        if (outcome.run.code != ends[i].code || outcome.run.signal != ends[i].signal || !outcome.report) {
            print_error("%s: exit code %d, signal %d, %zu profiles: %s\n", ends[i].how, outcome.run.code,
                        outcome.run.signal, outcome.file_count, outcome.run.err);
            failed++;
        } else {
            struct accesses gone = accesses_of(outcome.report, "end_freed");
            if (gone.writes != 50) {
                print_error("%s: %d writes to the freed block\n", ends[i].how, (int)gone.writes);
                failed++;
            }
            if (ends[i].live && accesses_of(outcome.report, "end_live").writes != 30) {
                print_error("%s: %d writes to the live block\n", ends[i].how,
                            (int)accesses_of(outcome.report, "end_live").writes);
                failed++;
            }
        }
        outcome_free(&outcome);
    }
    assert_int_equal(failed, 0);
}

/* ---- against other counts ---- */

static const char *const kernels[] = {"kernel_matrix", "kernel_list", "kernel_table", "kernel_swap"};
enum { KERNELS = sizeof kernels / sizeof *kernels };

/* Every build of the same source counts the same. */
static void test_builds_agree(void **state)
{
    struct outcome first = run_fine(CLANG, "kernels");
    assert_accesses(first.report, "kernel_matrix", 2 * 12 * 12 * 12 + 12 * 12 * 12, 3 * 144 + 12 * 12 * 12);
    assert_accesses(first.report, "kernel_table", 5000, 1024 + 5000);
    static const enum build others[] = {CLANG_EACH, GCC};
    for (size_t i = 0; i < 2; i++) {
        struct outcome other = run_fine(others[i], "kernels");
        for (size_t k = 0; k < KERNELS; k++) {
            struct accesses a = accesses_of(first.report, kernels[k]);
            assert_accesses(other.report, kernels[k], a.reads, a.writes);
            struct accesses b = accesses_of(other.report, kernels[k]);
            assert_int_equal(a.min, b.min);
            assert_int_equal(a.max, b.max);
        }
        outcome_free(&other);
    }
    outcome_free(&first);
}

/* DHAT counts bytes; all accesses here are of eight. */
static void test_against_dhat(void **state)
{
    if (!have_command("valgrind"))
        SKIP("valgrind is not installed");
    const char *program = program_of(PLAIN);
    if (!program)
        SKIP("gcc is not installed");
    char *scratch = make_directory(), *file = join_path(scratch, "dhat.json"), *option;
    if (asprintf(&option, "--dhat-out-file=%s", file) < 0)
        fail_msg("no memory");
    const char *const argv[] = {"valgrind", "-q", "--tool=dhat", option, program, "kernels", NULL};
    struct run_result result = run(argv, NULL);
    assert_exit(&result, 0, "DHAT");
    json_error_t error;
    json_t *dhat = json_load_file(file, 0, &error);
    assert_non_null(dhat);
    struct outcome outcome = run_fine(CLANG, "kernels");
    const json_t *names = json_object_get(dhat, "ftbl"), *point;
    for (size_t k = 0; k < KERNELS; k++) {
        int64_t read = 0, written = 0;
        size_t index;
        json_array_foreach(json_object_get(dhat, "pps"), index, point)
        {
            const json_t *frames = json_object_get(point, "fs");
            for (size_t i = 0; i < json_array_size(frames); i++) {
                size_t name = (size_t)json_integer_value(json_array_get(frames, i));
                if (strstr(json_string_value(json_array_get(names, name)), kernels[k])) {
                    read += json_number(point, "rb");
                    written += json_number(point, "wb");
                    break;
                }
            }
        }
        assert_accesses(outcome.report, kernels[k], read / 8, written / 8);
    }
    outcome_free(&outcome);
    json_decref(dhat);
    run_result_free(&result);
    free(option);
    free(file);
    remove_directory(scratch);
}

TEST_LIST(cmocka_unit_test(test_bleed), cmocka_unit_test(test_bleed_gcc), cmocka_unit_test(test_reuse),
          cmocka_unit_test(test_small), cmocka_unit_test(test_aligned), cmocka_unit_test(test_two_threads),
          cmocka_unit_test(test_two_threads_gcc), cmocka_unit_test(test_sixteen_threads),
          cmocka_unit_test(test_many_threads), cmocka_unit_test(test_passing_threads), cmocka_unit_test(test_sharing),
          cmocka_unit_test(test_false_sharing), cmocka_unit_test(test_huge), cmocka_unit_test(test_density),
          cmocka_unit_test(test_more_than_32_bits), cmocka_unit_test(test_saturation), cmocka_unit_test(test_use),
          cmocka_unit_test(test_reallocation), cmocka_unit_test(test_lifetimes), cmocka_unit_test(test_fork),
          cmocka_unit_test(test_ends), cmocka_unit_test(test_builds_agree), cmocka_unit_test(test_against_dhat))
