/* test_sampling.c - what is estimated (--sample-bytes) and what is bounded (--table): against exact runs of the same
 * program. */
#include "support/check.h"
#include "support/recording.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of sampled runs stand under "sampled". */
static int64_t sampled(const json_t *object, const char *key)
{
    return json_number(json_object_get(object, "sampled"), key);
}

static const json_t *context_of(const json_t *report, const char *function)
{
    return only_context(report, function);
}

static struct recording record_sizes(const char *argument)
{
    const char *program = program_path("sizes");
    if (!program)
        SKIP("sizes was not built");
    const char *const argv[] = {program, NULL};
    const char *const arguments[] = {argument, NULL};
    struct recording recording = record_and_load(argv, &(struct record_options){.arguments = arguments});
    assert_exit(&recording.run, 0, "sizes");
    return recording;
}

/* A sample each 64 KiB on average, so a context of 64 MiB rests on about 1,024 samples (fewer for blocks larger than
 * that, which are all seen): six standard deviations are 19 %. */
static void test_estimates(void **state)
{
    static const long sizes[] = {16, 24, 48, 100, 200, 512, 1000, 3000, 8192, 20000, 65536, 100000, 300000, 1048576};
    struct recording recording = record_sizes("--sample-bytes=64K");
    double ratios = 0;
    int count = (int)(sizeof sizes / sizeof *sizes);
    for (int i = 0; i < count; i++) {
        char function[64];
        snprintf(function, sizeof function, "of_size_%ld", sizes[i]);
        const json_t *context = context_of(recording.report, function);
        int64_t allocations = ((64 << 20) + sizes[i] - 1) / sizes[i], bytes = allocations * sizes[i];
        double p = 1 - exp(-(double)sizes[i] / 65536); /* that one block is sampled */
        double tolerance = 6 * sqrt((1 - p) / p / (double)allocations);
        double ratio = (double)sampled(context, "allocations") / (double)allocations;
        double byte_ratio = (double)sampled(context, "bytes") / (double)bytes;
        if (fabs(ratio - 1) > tolerance + 0.001 || fabs(byte_ratio - 1) > tolerance + 0.001)
            fail_msg("blocks of %ld bytes: estimated %.3f of their number and %.3f of their bytes, tolerance %.3f",
                     sizes[i], ratio, byte_ratio, tolerance);
        /* all are freed, those that were sampled too */
        assert_int_equal(sampled(context, "live_allocations"), 0);
        assert_int_equal(sampled(context, "live_bytes"), 0);
        assert_int_equal(sampled(context, "frees"), sampled(context, "allocations"));
        ratios += byte_ratio;
    }
    /* without bias: the mean over all sizes is much closer */
    if (fabs(ratios / count - 1) > 0.05)
        fail_msg("the mean estimate is %.4f of the truth", ratios / count);
    const json_t *live = context_of(recording.report, "of_live");
    double ratio = (double)sampled(live, "live_bytes") / (32 << 20);
    if (fabs(ratio - 1) > 0.27)
        fail_msg("live bytes are estimated as %.3f of the truth", ratio);
    /* an estimate never stands where an exact number is expected */
    assert_true(json_number_or_none(recording.report, "totals.allocations") == INT64_MIN);
    assert_true(json_number_or_none(live, "allocations") == INT64_MIN);
    assert_true(report_says(recording.report, "sample"));
    recording_free(&recording);
}

/* Different runs take different samples. */
static void test_samples_differ(void **state)
{
    struct recording first = record_sizes("--sample-bytes=1M"), second = record_sizes("--sample-bytes=1M");
    char *a = json_dumps(json_object_get(json_object_get(first.report, "totals"), "sampled"), JSON_SORT_KEYS);
    char *b = json_dumps(json_object_get(json_object_get(second.report, "totals"), "sampled"), JSON_SORT_KEYS);
    assert_string_not_equal(a, b);
    free(a);
    free(b);
    recording_free(&first);
    recording_free(&second);
}

static double check_number(const char *file, const char *limit, const char *key)
{
    const char *const arguments[] = {"check", "--json", limit, file, NULL};
    struct run_result result = heapwise(arguments, NULL);
    json_t *checks = json_loadb(result.out, result.out_size, 0, NULL);
    const double number = json_number_value(json_object_get(json_array_get(json_object_get(checks, "checks"), 0), key));
    json_decref(checks);
    run_result_free(&result);
    return number;
}

/* What `check` says of its uncertainty is true of mixed sizes: the squares of the errors, in standard deviations, add
 * up to their number. More than 40 of 16 comes once in a thousand times; with mean sizes it was four times as much. */
static void test_uncertainty(void **state)
{
    const char *program = program_path("totals");
    if (!program)
        SKIP("totals was not built");
    const char *const argv[] = {program, "mixed", NULL}, *const arguments[] = {"-q", "--sample-bytes=64K", NULL};
    double squares = 0;
    for (int i = 0; i < 16; i++) {
        struct recording recording =
            record_and_load(argv, &(struct record_options){.arguments = arguments, .no_report = true});
        const double value = check_number(recording.files[0], "--max-allocations=100000", "value");
        const double uncertainty = check_number(recording.files[0], "--max-allocations=100000", "uncertainty");
        assert_true(uncertainty > 0);
        squares += pow((value - 100000) / (uncertainty / 2), 2);
        recording_free(&recording);
    }
    print_message("sum of 16 squares: %.1f\n", squares);
    assert_true(squares < 40);
}

/* The uncertainty goes along in a merge: as a sum of independent runs it grows by the root of their number,
 * nearly. */
static void test_uncertainty_of_a_merge(void **state)
{
    const char *program = program_path("totals");
    if (!program)
        SKIP("totals was not built");
    const char *const argv[] = {program, "mixed", NULL}, *const arguments[] = {"-q", "--sample-bytes=64K", NULL};
    struct recording recording =
        record_and_load(argv, &(struct record_options){.arguments = arguments, .no_report = true});
    char *merged = join_path(recording.directory, "merged");
    const char *const merge[] = {"merge", "-o", merged, recording.files[0], recording.files[0], NULL};
    struct run_result result = heapwise(merge, NULL);
    assert_exit(&result, 0, "merge");
    const double one = check_number(recording.files[0], "--max-allocations=100000", "uncertainty");
    const double two = check_number(merged, "--max-allocations=100000", "uncertainty");
    if (!(two / one > 1.2 && two / one < sqrt(2) + 0.001)) /* a little less: what one sample stands for stays */
        fail_msg("%.0f of one run, %.0f of two", one, two);
    run_result_free(&result);
    free(merged);
    recording_free(&recording);
}

/* The peak has no bias although it is the greatest of many estimates, and is as uncertain as it says. The greatest
 * estimate was 1.9 standard deviations too high. */
static void test_peak(void **state)
{
    enum { RUNS = 16 };
    const char *program = program_path("totals");
    if (!program)
        SKIP("totals was not built");
    const char *const argv[] = {program, "steady", NULL}, *const arguments[] = {"-q", "--sample-bytes=64K", NULL};
    double sum = 0, squares = 0;
    for (int i = 0; i < RUNS; i++) {
        struct recording recording = record_and_load(argv, &(struct record_options){.arguments = arguments});
        const double peak = check_number(recording.files[0], "--max-peak=1", "value");
        const double sigma = check_number(recording.files[0], "--max-peak=1", "uncertainty") / 2;
        assert_true(sigma > 0 && peak == (double)sampled(json_object_get(recording.report, "totals"), "peak_bytes"));
        int64_t shares = 0;
        size_t index;
        const json_t *context;
        json_array_foreach(json_object_get(recording.report, "contexts"), index, context) shares +=
            sampled(context, "peak_bytes");
        assert_int_equal(shares, (int64_t)peak);
        sum += (peak - 2000 * 4000) / sigma;
        squares += pow((peak - 2000 * 4000) / sigma, 2);
        recording_free(&recording);
    }
    print_message("mean of %d errors: %.2f standard deviations; sum of squares %.1f\n", RUNS, sum / RUNS, squares);
    assert_true(fabs(sum / RUNS) < 1);
    assert_true(squares < 40);
}

/* What is live at a reset is as uncertain afterwards as it was before. */
static void test_uncertainty_after_reset(void **state)
{
    const char *program = program_path("totals");
    if (!program)
        SKIP("totals was not built");
    const char *const argv[] = {program, "reset", NULL}, *const arguments[] = {"-q", "--sample-bytes=64K", NULL};
    struct recording recording =
        record_and_load(argv, &(struct record_options){.arguments = arguments, .no_report = true});
    char *merged = join_path(recording.directory, "merged");
    const char *const merge[] = {"merge", "-o", merged, recording.files[0], NULL};
    struct run_result result = heapwise(merge, NULL);
    assert_exit(&result, 0, "merge");
    /* of 8,000,000 bytes in blocks of 4,000, with 65,536 from one sample to the next */
    const double stated = 2 * sqrt(8e6 * 4000 * exp(-4000. / 65536) / -expm1(-4000. / 65536));
    for (int i = 0; i < 2; i++) {
        const char *file = i ? merged : recording.files[0];
        const double live = check_number(file, "--max-leaked=1", "uncertainty");
        if (fabs(live / stated - 1) > 0.35)
            fail_msg("live bytes are uncertain by %.0f, not %.0f", live, stated);
        assert_true(fabs(check_number(file, "--max-peak=1", "uncertainty") / stated - 1.1) < 0.35);
    }
    run_result_free(&result);
    free(merged);
    recording_free(&recording);
}

/* Blocks of the sample distance or more are all looked at: one at a time of 100,000 bytes is a peak of so many. */
static void test_peak_of_large_blocks(void **state)
{
    const char *program = program_path("totals");
    if (!program)
        SKIP("totals was not built");
    const char *const argv[] = {program, "one", NULL}, *const arguments[] = {"-q", "--sample-bytes=64K", NULL};
    for (int i = 0; i < 3; i++) {
        struct recording recording = record_and_load(argv, &(struct record_options){.arguments = arguments});
        assert_int_equal(json_number(recording.report, "totals.sampled.peak_bytes"), 100000);
        assert_int_equal(json_number(recording.report, "totals.sampled.allocations"), 1000);
        recording_free(&recording);
    }
}

static void test_exact_without_sampling(void **state)
{
    const char *program = program_path("sizes");
    if (!program)
        SKIP("sizes was not built");
    const char *const argv[] = {program, NULL};
    struct recording recording = record_and_load(argv, NULL);
    struct sums sums = report_sums(recording.report, "of_size_1000");
    assert_int_equal(sums.allocations, ((64 << 20) + 999) / 1000);
    assert_int_equal(sums.bytes, sums.allocations * 1000);
    recording_free(&recording);
}

/* ---- the bounded store ---- */

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Each context as one line of its stack and its numbers, sorted. */
static char **context_lines(const json_t *report, size_t *count)
{
    const json_t *contexts = json_object_get(report, "contexts"), *context;
    char **lines = calloc(json_array_size(contexts) + 1, sizeof *lines);
    *count = 0;
    size_t index;
    json_array_foreach(contexts, index, context)
    {
        /* only what main does: start-up differs by the environment */
        const char *stack = stack_line(context);
        if (!strstr(stack, "< main"))
            continue;
        if (asprintf(&lines[*count], "%s: %lld %lld %lld %lld %lld %lld %lld %lld", stack,
                     (long long)json_number(context, "allocations"), (long long)json_number(context, "frees"),
                     (long long)json_number(context, "reallocations"), (long long)json_number(context, "bytes"),
                     (long long)json_number(context, "live_bytes"), (long long)json_number(context, "temporary"),
                     (long long)json_number(context, "size.min"), (long long)json_number(context, "size.max")) < 0)
            fail_msg("no memory");
        (*count)++;
    }
    qsort(lines, *count, sizeof *lines, compare_lines);
    return lines;
}

/* What was pushed out of a table had the same threads. */
static void check_threads_of_contexts(const json_t *report)
{
    int64_t threads = json_number(report, "totals.threads");
    size_t index;
    json_t *context;
    json_array_foreach(json_object_get(report, "contexts"), index, context)
    {
        assert_in_range(json_number(context, "threads"), 0, threads);
        assert_in_range(json_number(context, "free_threads"), 0, threads);
    }
}

static void test_bounded_table(void **state)
{
    const char *program = program_path("stacks");
    if (!program)
        SKIP("stacks was not built");
    const char *const argv[] = {program, ".", "walks", "recursion", "qsort", "alloca", "asprintf", NULL};
    struct recording free_run = record_and_load(argv, NULL);
    assert_exit(&free_run.run, 0, "unbounded");
    size_t expected_count;
    char **expected = context_lines(free_run.report, &expected_count);
    assert_true(expected_count > 500);
    static const char *const tables[] = {"--table=16", "--table=64", "--table=1000", "--table=100000"};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const char *const arguments[] = {tables[i], NULL};
        struct recording bounded = record_and_load(argv, &(struct record_options){.arguments = arguments});
        assert_exit(&bounded.run, 0, tables[i]);
        size_t count;
        char **lines = context_lines(bounded.report, &count);
        assert_contexts_sum_to_totals(bounded.report);
        check_threads_of_contexts(bounded.report);
        for (size_t k = 0; k < count && k < expected_count; k++)
            if (strcmp(lines[k], expected[k]) != 0)
                fail_msg("%s:\n  %s\ninstead of\n  %s", tables[i], lines[k], expected[k]);
        assert_int_equal(count, expected_count);
        free_list(lines);
        recording_free(&bounded);
    }
    free_list(expected);
    recording_free(&free_run);
}

/* With threads, too: the workload's known totals. */
static void test_bounded_table_with_threads(void **state)
{
    const char *program = program_path("workload");
    if (!program)
        SKIP("workload was not built");
    const char *const argv[] = {program, "threads", NULL};
    const char *const arguments[] = {"--table=4", NULL};
    struct recording recording = record_and_load(argv, &(struct record_options){.arguments = arguments});
    assert_exit(&recording.run, 0, "--table=4");
    struct sums churn = report_sums(recording.report, "work_churn");
    assert_int_equal(churn.allocations, 60000);
    assert_int_equal(churn.frees, 60000);
    assert_int_equal(churn.live_bytes, 0);
    assert_int_equal(report_sums(recording.report, "work_realloc").live_bytes, 500000);
    assert_contexts_sum_to_totals(recording.report);
    check_threads_of_contexts(recording.report);
    recording_free(&recording);
}

TEST_LIST(cmocka_unit_test(test_estimates), cmocka_unit_test(test_samples_differ), cmocka_unit_test(test_uncertainty),
          cmocka_unit_test(test_uncertainty_of_a_merge), cmocka_unit_test(test_peak),
          cmocka_unit_test(test_uncertainty_after_reset), cmocka_unit_test(test_peak_of_large_blocks),
          cmocka_unit_test(test_exact_without_sampling), cmocka_unit_test(test_bounded_table),
          cmocka_unit_test(test_bounded_table_with_threads))
