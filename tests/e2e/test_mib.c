/* test_mib.c - the fields of the memory info block, against blocks whose lives are known. */
#include "support/check.h"
#include "support/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct recording recording; /* of one run, for all tests */

static int record_once(void **state)
{
    const char *program = program_path("mib");
    if (!program)
        return 0;
    const char *const argv[] = {program, NULL};
    recording = record_and_load(argv, NULL);
    return recording.report && recording.run.code == 0 ? 0 : -1;
}

static int forget(void **state)
{
    recording_free(&recording);
    return 0;
}

static struct sums sums_of(const char *function)
{
    if (!recording.report)
        SKIP("mib was not built");
    return report_sums(recording.report, function);
}

/* Within ONE_IN of EXPECTED. */
static void assert_near(const char *what, int64_t expected, int64_t actual, int64_t one_in)
{
    int64_t difference = llabs(expected - actual);
    if (difference > expected / one_in)
        fail_msg("%s: %lld, should be %lld", what, (long long)actual, (long long)expected);
}

/* The program measured each life from inside (at least) and from outside (at most). */
static void test_lifetimes(void **state)
{
    struct sums sums = sums_of("lifetime_make");
    assert_int_equal(sums.allocations, 3);
    assert_int_equal(sums.frees, 3);
    int64_t least_total = 0, most_total = 0, least[3] = {0}, most[3] = {0};
    const char *line = recording.run.out;
    for (int i = 0; i < 3; i++) {
        line = strstr(line, "lifetime ");
        assert_non_null(line);
        assert_int_equal(sscanf(line, "lifetime %ld %ld", &least[i], &most[i]), 2);
        least_total += least[i];
        most_total += most[i];
        line++;
    }
    /* the two clocks agree to a thousandth */
#define WITHIN(value, low, high)                                                                                       \
    if ((value) < (low) - (low) / 1000 - 1000 || (value) > (high) + (high) / 1000 + 1000)                              \
    fail_msg(#value ": %lld, should be from %lld to %lld", (long long)(value), (long long)(low), (long long)(high))
    WITHIN(sums.lifetime_min_ns, least[0], most[0]);
    WITHIN(sums.lifetime_max_ns, least[2], most[2]);
    WITHIN(sums.lifetime_total_ns, least_total, most_total);
    int64_t duration = json_number(recording.report, "process.duration_ns");
    assert_true(duration >= least_total);
}

static void test_overlaps(void **state)
{
    assert_int_equal(sums_of("overlap_none_make").lifetime_overlaps, 0);
    assert_int_equal(sums_of("overlap_fifo_make").lifetime_overlaps, 9);
    assert_int_equal(sums_of("overlap_lifo_make").lifetime_overlaps, 9);
}

static void test_cpus(void **state)
{
    struct sums same = sums_of("cpu_same_make");
    if (strstr(recording.run.out, "cpus one"))
        SKIP("there is only one CPU here");
    assert_int_equal(same.allocations, 10);
    assert_int_equal(same.migrated_cpu, 0);
    assert_int_equal(same.same_alloc_cpu, 9);
    assert_int_equal(same.same_free_cpu, 9);
    struct sums migrating = sums_of("cpu_migrating_make");
    assert_int_equal(migrating.migrated_cpu, 10);
    assert_int_equal(migrating.same_alloc_cpu, 9);
    assert_int_equal(migrating.same_free_cpu, 9);
    struct sums alternating = sums_of("cpu_alternating_make");
    assert_int_equal(alternating.migrated_cpu, 0);
    assert_int_equal(alternating.same_alloc_cpu, 0);
    assert_int_equal(alternating.same_free_cpu, 0);
}

static void test_reallocation(void **state)
{
    struct sums growth = sums_of("case_realloc_growth");
    assert_int_equal(growth.allocations, 1);
    assert_int_equal(growth.reallocations, 9);
    assert_int_equal(growth.frees, 1);
    assert_int_equal(growth.bytes, 100);
    assert_int_equal(growth.live_bytes, 0);
    struct sums shrink = sums_of("case_realloc_shrink");
    assert_int_equal(shrink.allocations, 1);
    assert_int_equal(shrink.reallocations, 9);
    assert_int_equal(shrink.frees, 0);
    assert_int_equal(shrink.bytes, 1000);
    assert_int_equal(shrink.live_allocations, 1);
    assert_int_equal(shrink.live_bytes, 100);
    struct sums elsewhere = sums_of("realloc_elsewhere_make");
    assert_int_equal(elsewhere.allocations, 10);
    assert_int_equal(elsewhere.reallocations, 10);
    assert_int_equal(elsewhere.frees, 10);
    assert_int_equal(elsewhere.bytes, 50000);
}

/* Bytes that reallocations took along, as the program has counted them. */
static void test_moved_bytes(void **state)
{
    long expected = 0;
    int64_t found = 0;
    size_t index;
    json_t *context;
    sums_of("case_realloc_moves");
    assert_int_equal(sscanf(strstr(recording.run.out, "moved "), "moved %ld", &expected), 1);
    json_array_foreach(json_object_get(recording.report, "contexts"), index, context)
    {
        const json_t *frame = json_array_get(json_object_get(context, "stack"), 0);
        const char *function = frame ? json_text(frame, "function") : NULL;
        if (function && !strcmp(function, "case_realloc_moves"))
            found += json_number(context, "realloc.moved_bytes");
    }
    assert_true(expected > 0);
    assert_int_equal(found, expected);
}

static void test_temporary(void **state)
{
    assert_int_equal(sums_of("case_temporary_all").temporary, 10);
    assert_int_equal(sums_of("case_temporary_one_of_two").temporary, 1);
    assert_int_equal(sums_of("case_temporary_none").temporary, 0);
}

static void test_threads(void **state)
{
    struct sums handed = sums_of("handed_over_make");
    assert_int_equal(handed.allocations, 1000);
    assert_int_equal(handed.frees, 1000);
    assert_int_equal(handed.temporary, 0); /* another thread freed them */
    assert_int_equal(handed.live_bytes, 0);
    assert_int_equal(json_number(only_context(recording.report, "handed_over_make"), "threads"), 1);
    assert_int_equal(json_number(only_context(recording.report, "handed_over_make"), "free_threads"), 1);
    struct sums many = sums_of("many_threads_work");
    assert_int_equal(many.allocations, 500);
    assert_int_equal(many.temporary, 500);
    assert_int_equal(json_number(only_context(recording.report, "many_threads_work"), "threads"), 5);
    assert_true(json_number(recording.report, "totals.threads") >= 8);
}

static void test_live_at_exit(void **state)
{
    struct sums live = sums_of("case_live");
    assert_int_equal(live.allocations, 7);
    assert_int_equal(live.frees, 0);
    assert_int_equal(live.live_allocations, 7);
    assert_int_equal(live.live_bytes, 7000);
    struct totals totals = report_totals(recording.report);
    assert_int_equal(totals.allocations - totals.frees, totals.live_allocations);
}

static void test_peak(void **state)
{
    struct sums first = sums_of("peak_first_make"), second = sums_of("peak_second_make"), all = sums_of(NULL);
    struct totals totals = report_totals(recording.report);
    assert_near("share of the first", 4000000, first.peak_bytes, 100);
    assert_near("share of the second", 12000000, second.peak_bytes, 100);
    assert_near("all shares", totals.peak_bytes, all.peak_bytes, 100);
    assert_near("peak", 16000000 + 7000 + 100, totals.peak_bytes, 100);
    int64_t when = json_number(recording.report, "totals.peak_time_ns");
    assert_true(when > 122000000); /* after the sleeps */
    assert_true(when <= json_number(recording.report, "process.duration_ns"));
}

static void test_peak_of_two_threads(void **state)
{
    const char *program = need_program("mib");
    const char *const argv[] = {program, "shared", NULL};
    struct recording shared = record_and_load(argv, NULL);
    assert_exit(&shared.run, 0, "mib shared");
    struct sums sums = report_sums(shared.report, "shared_peak_make");
    assert_int_equal(sums.allocations, 40000);
    assert_near("peak", 40320000, report_totals(shared.report).peak_bytes, 100);
    assert_near("share", 40000000, sums.peak_bytes, 100);
    recording_free(&shared);
}

static void test_timeline(void **state)
{
    sums_of(NULL);
    const json_t *timeline = json_object_get(recording.report, "timeline"), *point;
    assert_true(json_array_size(timeline) >= 2);
    assert_true(json_array_size(timeline) <= 4096);
    int64_t time = -1, allocations = -1, most = 0;
    size_t index;
    json_array_foreach(timeline, index, point)
    {
        assert_true(json_number(point, "time_ns") >= time);
        assert_true(json_number(point, "allocations") >= allocations);
        time = json_number(point, "time_ns");
        allocations = json_number(point, "allocations");
        if (json_number(point, "live_bytes") > most)
            most = json_number(point, "live_bytes");
    }
    struct totals totals = report_totals(recording.report);
    assert_true(allocations <= totals.allocations);
    assert_true(most <= totals.peak_bytes + totals.peak_bytes / 100); /* with several threads it rises in steps */
    assert_true(json_number(recording.report, "totals.peak_rss_bytes") >= 16000000);
}

static void test_process(void **state)
{
    sums_of(NULL);
    assert_contains(json_text(recording.report, "process.executable"), "/mib");
    assert_string_equal(json_text(recording.report, "process.mode"), "heap");
    assert_contains(json_text(recording.report, "process.allocator"), "glibc 2.");
    assert_int_equal(json_number(recording.report, "process.exit.code"), 0);
    assert_int_equal(json_array_size(json_object_get(json_object_get(recording.report, "process"), "command")), 1);
    assert_int_equal(json_number(recording.report, "format"), 1);
    assert_int_equal(json_number(recording.report, "totals.contexts"),
                     json_array_size(json_object_get(recording.report, "contexts")));
    /* What was not measured is null or absent, never 0. */
    assert_true(json_number_or_none(recording.report, "totals.accesses") == INT64_MIN);
    assert_contexts_sum_to_totals(recording.report);
}

TEST_LIST_WITH(record_once, forget, cmocka_unit_test(test_lifetimes), cmocka_unit_test(test_overlaps),
               cmocka_unit_test(test_cpus), cmocka_unit_test(test_reallocation), cmocka_unit_test(test_moved_bytes),
               cmocka_unit_test(test_temporary), cmocka_unit_test(test_threads), cmocka_unit_test(test_live_at_exit),
               cmocka_unit_test(test_peak), cmocka_unit_test(test_peak_of_two_threads), cmocka_unit_test(test_timeline),
               cmocka_unit_test(test_process))
