/* test_distributions.c - sizes and lifetimes as distributions, against what a program counts of itself. */
#include "support/check.h"
#include "support/recording.h"

#include <stdio.h>
#include <string.h>

struct bar {
    int64_t least, most, allocations, reallocations, bytes, live, live_bytes;
};

enum { BARS = 200 };

/* The bars that REPORT has for FUNCTION: those of its contexts added up; a context with one bar is that bar. */
static size_t reported_bars(const json_t *report, const char *function, struct bar bars[BARS])
{
    size_t index, count = 0;
    json_t *context;
    json_array_foreach(json_object_get(report, "contexts"), index, context)
    {
        if (!is_function(stack_function(context, 0), function))
            continue;
        const json_t *list = json_object_get(context, "size_distribution");
        struct bar one = {-1,
                          -1,
                          json_number(context, "allocations"),
                          json_number(context, "reallocations"),
                          json_number(context, "bytes"),
                          json_number(context, "live_allocations"),
                          json_number(context, "live_bytes")};
        if (!list) {
            assert_int_equal(count, 0);
            bars[count++] = one;
        }
        size_t at;
        json_t *from;
        json_array_foreach(list, at, from)
        {
            struct bar bar = {json_number_or_none(from, "least"), json_number_or_none(from, "most"),
                              json_number(from, "allocations"),   json_number(from, "reallocations"),
                              json_number(from, "bytes"),         json_number(from, "live_allocations"),
                              json_number(from, "live_bytes")};
            size_t i = 0;
            if (!(bar.allocations | bar.reallocations | bar.bytes | bar.live | bar.live_bytes))
                continue; /* there were some at the peak */
            while (i < count && bars[i].least != bar.least)
                i++;
            if (i == count)
                bars[count++] = (struct bar){.least = bar.least, .most = bar.most};
            bars[i].allocations += bar.allocations;
            bars[i].reallocations += bar.reallocations;
            bars[i].bytes += bar.bytes;
            bars[i].live += bar.live;
            bars[i].live_bytes += bar.live_bytes;
        }
    }
    return count;
}

/* What the program printed for FUNCTION is what REPORT has, to the block. */
static void check_function(const json_t *report, const char *out, const char *function)
{
    struct bar bars[BARS];
    const size_t count = reported_bars(report, function, bars);
    size_t printed = 0;
    char name[64];
    for (const char *line = out; (line = strstr(line, "size ")); line++) {
        struct bar bar;
        if (sscanf(line, "size %63s %ld %ld %ld %ld %ld %ld %ld", name, &bar.least, &bar.most, &bar.allocations,
                   &bar.reallocations, &bar.bytes, &bar.live, &bar.live_bytes) != 8 ||
            strcmp(name, function) != 0)
            continue;
        size_t i = 0;
        while (i < count && bars[i].least != bar.least && bars[i].least >= 0)
            i++;
        if (i == count)
            fail_msg("%s: no bar from %ld to %ld", function, bar.least, bar.most);
        if (bars[i].least >= 0)
            assert_int_equal(bars[i].most, bar.most);
        const int64_t *is = &bars[i].allocations, *should = &bar.allocations;
        static const char *const names[] = {"allocations", "reallocations", "bytes", "live blocks", "live bytes"};
        for (size_t k = 0; k < 5; k++)
            if (is[k] != should[k])
                fail_msg("%s, %ld to %ld: %ld %s, should be %ld", function, bar.least, bar.most, is[k], names[k],
                         should[k]);
        printed++;
    }
    if (printed != count)
        fail_msg("%s: %zu bars, should be %zu", function, count, printed);
}

static void check_all(const json_t *report, const char *out)
{
    static const char *const functions[] = {"sizes_make", "one_size_make", "realloc_make", "fail_make", "thread_make"};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        check_function(report, out, functions[i]);
}

/* All bars of the whole, in all columns, are the totals. */
static void check_whole(const json_t *report)
{
    static const char *const columns[][2] = {{"allocations", "totals.allocations"},
                                             {"bytes", "totals.bytes_allocated"},
                                             {"live_allocations", "totals.live_allocations"},
                                             {"live_bytes", "totals.live_bytes"}};
    size_t index;
    json_t *bar;
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        int64_t sum = 0;
        json_array_foreach(json_object_get(json_object_get(report, "size_distribution"), "bars"), index, bar) sum +=
            json_number(bar, columns[i][0]);
        assert_int_equal(sum, json_number(report, columns[i][1]));
    }
    int64_t frees = 0;
    json_array_foreach(json_object_get(json_object_get(report, "lifetime_distribution"), "bars"), index, bar) frees +=
        json_number(bar, "frees");
    assert_int_equal(frees, json_number(report, "totals.frees"));
    assert_int_equal(json_array_size(json_object_get(report, "contradictions")), 0);
}

static struct recording record(const char *what, const char *options)
{
    const char *const argv[] = {need_program("distributions"), what, NULL};
    return record_and_load(argv, &(struct record_options){.options = options});
}

static void test_exact(void **state)
{
    struct recording recording = record("", NULL);
    assert_int_equal(recording.run.code, 0);
    check_all(recording.report, recording.run.out);
    check_whole(recording.report);
    recording_free(&recording);
}

/* Other stores of blocks and contexts: entries of a bounded table are pushed out, with their bars. */
static void test_stores(void **state)
{
    static const char *const options[] = {"table=8", "block-table=1"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        struct recording recording = record("", options[i]);
        check_all(recording.report, recording.run.out);
        check_whole(recording.report);
        recording_free(&recording);
    }
}

static void test_dump_and_merge(void **state)
{
    struct recording recording = record("dump", NULL);
    size_t count;
    char **files = list_files(recording.directory, ".hwprof", &count);
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++) {
        json_t *report = load_report(files[i], 0);
        check_all(report, recording.run.out);
        json_decref(report);
    }
    /* merged with itself everything is there twice, also in a second merge of that */
    char *once = join_path(recording.directory, "once.merged"), *twice = join_path(recording.directory, "twice.merged");
    const char *const merge[] = {"merge", "-o", once, files[0], NULL};
    const char *const again[] = {"merge", "-o", twice, once, files[0], NULL};
    struct run_result result = heapwise(merge, NULL);
    assert_exit(&result, 0, "merge");
    run_result_free(&result);
    json_t *report = load_report(once, 0);
    check_all(report, recording.run.out);
    check_whole(report);
    json_decref(report);
    result = heapwise(again, NULL);
    assert_exit(&result, 0, "merge");
    run_result_free(&result);
    report = load_report(twice, 0);
    check_whole(report);
    struct bar one[BARS], two[BARS];
    const size_t bars = reported_bars(recording.report, "sizes_make", one);
    assert_int_equal(reported_bars(report, "sizes_make", two), bars);
    for (size_t i = 0; i < bars; i++) {
        assert_int_equal(two[i].allocations, 2 * one[i].allocations);
        assert_int_equal(two[i].live_bytes, 2 * one[i].live_bytes);
    }
    json_decref(report);
    free(once);
    free(twice);
    free_list(files);
    recording_free(&recording);
}

static void test_reset(void **state)
{
    struct recording recording = record("reset", NULL);
    check_function(recording.report, recording.run.out, "period_make");
    check_whole(recording.report);
    recording_free(&recording);
}

static void test_fork(void **state)
{
    struct recording recording = record("fork", NULL);
    assert_int_equal(recording.file_count, 2);
    check_all(recording.reports[0], recording.run.out);
    check_function(recording.reports[1], recording.run.out, "period_make");
    check_whole(recording.reports[1]);
    recording_free(&recording);
}

/* Of each block it is known how long it lived at least and at most: so many lie below each limit at least, and at most.
 */
static void test_lifetimes(void **state)
{
    struct recording recording = record("lives", NULL);
    int64_t frees[64] = {0}, all = 0, below = 0;
    size_t index, at;
    json_t *context, *bar;
    json_array_foreach(json_object_get(recording.report, "contexts"), index, context)
    {
        if (!is_function(stack_function(context, 0), "life_make"))
            continue;
        assert_true(json_array_size(json_object_get(context, "lifetime_distribution")) >= 2);
        json_array_foreach(json_object_get(context, "lifetime_distribution"), at, bar)
        {
            const int64_t limit = json_number(bar, "below_ns");
            assert_int_equal(json_number(bar, "bytes"), 48 * json_number(bar, "frees"));
            frees[63 - __builtin_clzll((unsigned long long)limit)] += json_number(bar, "frees");
        }
        all += json_number(context, "frees");
    }
    for (int log = 7; log < 63; log++) {
        const double limit = (double)(1ll << log);
        int64_t surely = 0, perhaps = 0;
        long least, most;
        below += frees[log];
        for (const char *line = recording.run.out; (line = strstr(line, "life ")); line++) {
            if (sscanf(line, "life %ld %ld", &least, &most) != 2)
                continue;
            surely += (double)most * 1.01 < limit;
            perhaps += (double)least * 0.99 < limit;
        }
        if (below < surely || below > perhaps)
            fail_msg("%ld blocks lived less than %.0f ns, should be %ld to %ld", below, limit, surely, perhaps);
    }
    assert_int_equal(all, 86);
    assert_int_equal(below, all);
    check_whole(recording.report);
    recording_free(&recording);
}

/* Estimates say that they are, and add up to the estimated totals. */
static void test_estimates(void **state)
{
    static const char *const options[] = {"sample-bytes=4096", "mode=allocator"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        struct recording recording = record("", options[i]);
        const json_t *sizes = json_object_get(recording.report, "size_distribution");
        assert_true(json_is_true(json_object_get(sizes, "estimated")));
        assert_true(json_array_size(json_object_get(sizes, "bars")) > 10);
        assert_int_equal(json_array_size(json_object_get(recording.report, "contradictions")), 0);
        recording_free(&recording);
    }
}

static void test_text(void **state)
{
    struct recording recording = record("", NULL);
    const char *const sizes[] = {"report", "--section", "sizes,lifetimes", recording.files[0], NULL};
    const char *const narrow[] = {"report",        "--section",        "sizes", "--function",
                                  "one_size_make", recording.files[0], NULL};
    struct run_result result = heapwise(sizes, NULL);
    assert_exit(&result, 0, "report");
    assert_contains(result.out, "Sizes of blocks");
    assert_contains(result.out, "513 to 1024 B");
    assert_contains(result.out, "Lifetimes of freed blocks");
    assert_contains(result.out, "Not freed, and in no line: ");
    run_result_free(&result);
    result = heapwise(narrow, NULL);
    assert_contains(result.out, "65 to 128 B       1,000   100 %    97.7 KiB   100 %");
    assert_lacks(result.out, "129 to 256 B");
    run_result_free(&result);
    recording_free(&recording);
}

/* Nothing is made up where it was not recorded. */
static void test_old_profiles(void **state)
{
    size_t count;
    char **files = list_files(KEPT, ".hwprof", &count);
    if (!count)
        SKIP("no kept profiles");
    const char *const argv[] = {"report", "--section", "sizes", files[0], NULL};
    struct run_result result = heapwise(argv, NULL);
    assert_exit(&result, 0, "report");
    assert_contains(result.out, "Not recorded");
    run_result_free(&result);
    json_t *report = load_report(files[0], 0);
    assert_true(json_is_null(json_object_get(report, "size_distribution")));
    json_decref(report);
    free_list(files);
}

TEST_LIST(cmocka_unit_test(test_exact), cmocka_unit_test(test_stores), cmocka_unit_test(test_dump_and_merge),
          cmocka_unit_test(test_reset), cmocka_unit_test(test_fork), cmocka_unit_test(test_lifetimes),
          cmocka_unit_test(test_estimates), cmocka_unit_test(test_text), cmocka_unit_test(test_old_profiles))
