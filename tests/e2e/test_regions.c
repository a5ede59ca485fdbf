/* test_regions.c - what programs measure and name themselves (heapwise/heapwise.h): see programs/regions.c. */
#include "support/check.h"
#include "support/recording.h"

#include <stdio.h>
#include <string.h>

static struct recording record_case(const char *name, const char *options, const char *const *arguments)
{
    const char *const argv[] = {need_program("regions"), name, NULL};
    return record_and_load(argv, &(struct record_options){.options = options, .arguments = arguments});
}

/* The line of a region that the program has printed; fails the test when there is none, or several. */
static void assert_line(const struct recording *recording, const char *name, const char *numbers)
{
    char wanted[200];
    const size_t length = strlen(name);
    int found = 0;
    snprintf(wanted, sizeof wanted, "%s %s", name, numbers);
    for (const char *line = recording->run.out; line && *line;) {
        const char *end = strchr(line, '\n');
        const size_t size = end ? (size_t)(end - line) : strlen(line);
        if (size > length && !strncmp(line, name, length) && line[length] == ' ') {
            found++;
            if (size != strlen(wanted) || strncmp(line, wanted, size))
                fail_msg("%.*s instead of %s", (int)size, line, wanted);
        }
        line = end ? end + 1 : NULL;
    }
    if (!found)
        fail_msg("no line of %s in %s", name, recording->run.out);
}

static const json_t *region_of(const json_t *report, const char *name)
{
    return json_entry(report, "regions", "name", name);
}

static void nested(const char *scope)
{
    struct recording recording = record_case(scope, NULL, NULL);
    assert_exit(&recording.run, 0, scope);
    /* allocations frees reallocations bytes live_blocks live_bytes peak_bytes measured. realloc(p, 0) is a free. */
    assert_line(&recording, "inner", "2 2 2 740 0 -900 700 2");
    assert_line(&recording, "empty", "0 0 0 0 0 0 0 2");
    assert_line(&recording, "outer", "4 3 2 2040 1 300 1700 2");
    assert_line(&recording, "first", "2 1 0 2100 1 100 2100 2");
    assert_contains(recording.run.out, "second 2 2 0 2300 0 200 2000 2\n");
    assert_contains(recording.run.out, "not ended\nsecond 0 0 0 0 0 0 0 0\n");
    const json_t *inner = region_of(recording.report, "inner");
    assert_string_equal(json_text(inner, "scope"), scope);
    assert_int_equal(json_number(inner, "begun"), 1);
    assert_int_equal(json_number(inner, "ended"), 1);
    assert_int_equal(json_number(inner, "allocations"), 2);
    assert_int_equal(json_number(inner, "frees"), 2);
    assert_int_equal(json_number(inner, "reallocations"), 2);
    assert_int_equal(json_number(inner, "bytes"), 740);
    assert_int_equal(json_number(inner, "live_blocks"), 0);
    assert_int_equal(json_number(inner, "live_bytes"), -900);
    assert_int_equal(json_number(inner, "most_live_bytes"), -900);
    assert_int_equal(json_number(inner, "peak_bytes"), 700);
    assert_true(json_number(inner, "total_ns") <= json_number(region_of(recording.report, "outer"), "total_ns"));
    recording_free(&recording);
}

static void test_regions_of_a_thread(void **state)
{
    nested("thread");
}

static void test_regions_of_the_process(void **state)
{
    nested("process");
}

static void test_regions_of_several_threads(void **state)
{
    struct recording recording = record_case("threads", NULL, NULL);
    assert_exit(&recording.run, 0, "threads");
    assert_line(&recording, "turns", "4 4 0 10000 0 0 10000 2");
    assert_line(&recording, "t0", "1 1 0 1000 0 -1000 1000 2");
    assert_line(&recording, "t1", "1 1 0 2000 0 -1000 2000 2");
    assert_line(&recording, "t2", "1 1 0 3000 0 -1000 3000 2");
    assert_line(&recording, "t3", "1 1 0 4000 0 3000 4000 2");
    const int rounds = 2000, bytes = 4 * (rounds * 96 + rounds / 7 * 28 + 1 + 2 + 3 + 4 + 5);
    char sum[100];
    snprintf(sum, sizeof sum, "%d %d %d %d 0 0 0 2", 8 * rounds, 8 * rounds, 4 * rounds, bytes);
    assert_line(&recording, "sum", sum);
    const json_t *busy = region_of(recording.report, "busy");
    assert_int_equal(json_number(busy, "ended"), 4);
    assert_int_equal(json_number(busy, "allocations"), 8 * rounds);
    assert_int_equal(json_number(busy, "most_allocations"), 2 * rounds);
    assert_int_equal(json_number(busy, "bytes"), bytes);
    assert_int_equal(json_number(busy, "most_bytes"), bytes / 4);
    assert_int_equal(json_number(busy, "peak_bytes"), 96 + 7);
    /* The process has those of pthread_create beside them. */
    const json_t *all = region_of(recording.report, "all");
    assert_int_equal(json_number(all, "frees") - json_number(busy, "frees"), 0);
    assert_int_equal(json_number(all, "reallocations"), json_number(busy, "reallocations"));
    assert_int_equal(json_number(all, "allocations") - json_number(busy, "allocations"),
                     json_number(all, "live_blocks"));
    assert_int_equal(json_number(all, "bytes") - json_number(busy, "bytes"), json_number(all, "live_bytes"));
    recording_free(&recording);
}

static void test_regions_across_fork_and_reset(void **state)
{
    struct recording recording = record_case("fork", NULL, NULL);
    assert_exit(&recording.run, 0, "fork");
    assert_int_equal(recording.file_count, 2);
    assert_line(&recording, "child-void", "0 0 0 0 0 0 0 0");
    assert_line(&recording, "child-own", "1 0 0 50 1 50 50 2");
    assert_line(&recording, "parent", "1 0 0 100 1 100 100 2");
    assert_line(&recording, "reset-void", "0 0 0 0 0 0 0 0");
    assert_line(&recording, "behind-reset", "0 0 0 0 -1 -100 0 2");
    const json_t *child = recording.reports[1];
    assert_int_equal(json_array_size(json_object_get(child, "regions")), 1);
    assert_int_equal(json_number(region_of(child, "own"), "bytes"), 50);
    assert_int_equal(json_number(region_of(recording.report, "void"), "begun"), 1);
    assert_int_equal(json_number(region_of(recording.report, "void"), "ended"), 0);
    recording_free(&recording);
}

static void test_misuse_harms_nobody(void **state)
{
    struct recording recording = record_case("misuse", NULL, NULL);
    assert_exit(&recording.run, 0, "misuse");
    assert_line(&recording, "never-begun", "0 0 0 0 0 0 0 0");
    assert_line(&recording, "wild", "0 0 0 0 0 0 0 0");
    assert_line(&recording, "elsewhere", "0 0 0 0 0 0 0 0");
    assert_contains(recording.run.out, "after 0 0 0 0 0 0 0 2\n");
    assert_contains(recording.run.out, "not begun\nnot ended\ntoo-many 0 0 0 0 0 0 0 0\n");
    assert_line(&recording, "first-of-many", "0 0 0 0 0 0 0 2");
    assert_int_equal(json_number(region_of(recording.report, "left"), "begun"), 1034);
    assert_int_equal(json_number(region_of(recording.report, "left"), "ended"), 0);
    assert_int_equal(json_number(region_of(recording.report, "again"), "ended"), 1);
    assert_lacks(recording.run.out, "errno");
    recording_free(&recording);
}

static void test_sampled_regions_are_estimates(void **state)
{
    struct recording recording = record_case("thread", "sample-bytes=100", NULL);
    assert_exit(&recording.run, 0, "sampled");
    assert_contains(recording.run.out, " 1\n");
    assert_lacks(recording.run.out, " 2\n");
    const json_t *outer = region_of(recording.report, "outer");
    assert_null(json_object_get(outer, "bytes"));
    assert_true(json_number(outer, "sampled.bytes") >= 1000); /* blocks of 100 bytes or more are all drawn */
    recording_free(&recording);
}

static void test_allocator_mode_measures_no_regions(void **state)
{
    static const char *const arguments[] = {"--mode=allocator", NULL};
    struct recording recording = record_case("process", NULL, arguments);
    assert_exit(&recording.run, 0, "allocator mode");
    assert_line(&recording, "outer", "0 0 0 0 0 0 0 0");
    assert_int_equal(json_array_size(json_object_get(recording.report, "regions")), 0);
    assert_true(report_says(recording.report, "heapwise_region_begin"));
    recording_free(&recording);
}

static void test_nothing_without_heapwise(void **state)
{
    const char *const argv[] = {need_program("regions"), "process", NULL};
    struct run_result plain = run(argv, NULL);
    assert_exit(&plain, 0, "plain");
    assert_lacks(plain.out, "not ");
    assert_contains(plain.out, "inner 0 0 0 0 0 0 0 0\n");
    run_result_free(&plain);
}

static void test_marks(void **state)
{
    for (int mode = 0; mode < 2; mode++) {
        static const char *const arguments[] = {"--mode=allocator", NULL};
        struct recording recording = record_case("marks", NULL, mode ? arguments : NULL);
        assert_exit(&recording.run, 0, "marks");
        assert_string_equal(recording.run.out, "");
        const json_t *list = json_object_get(recording.report, "marks");
        assert_int_equal(json_array_size(list), 3);
        const json_t *empty = json_array_get(list, 0), *one = json_array_get(list, 1), *none = json_array_get(list, 2);
        assert_string_equal(json_text(empty, "name"), "empty");
        assert_string_equal(json_text(one, "name"), "one \"block\"");
        assert_string_equal(json_text(none, "name"), "");
        assert_int_equal(json_number(one, "live_bytes") - json_number(empty, "live_bytes"), 1000);
        assert_int_equal(json_number(none, "live_bytes"), json_number(empty, "live_bytes"));
        assert_true(json_number(empty, "time_ns") <= json_number(one, "time_ns"));
        assert_true(json_number(one, "time_ns") <= json_number(none, "time_ns"));
        assert_true(json_number(none, "time_ns") <= json_number(recording.report, "process.duration_ns"));
        recording_free(&recording);
    }
}

/* In the terminal, and added up. */
static void test_reports_show_regions(void **state)
{
    struct recording recording = record_case("thread", NULL, NULL), marks = record_case("marks", NULL, NULL);
    char *merged = join_path(recording.directory, "merged.hwprof");
    const char *const section[] = {"report", "--section=regions", recording.files[0], NULL};
    const char *const whole[] = {"report", "--all", marks.files[0], NULL};
    const char *const merge[] = {"merge", "-q", "-o", merged, recording.files[0], recording.files[0], NULL};
    struct run_result shown = heapwise(section, NULL), all = heapwise(whole, NULL), added = heapwise(merge, NULL);
    assert_exit(&shown, 0, "report");
    assert_contains(shown.out, "Regions and marks of the program");
    assert_contains(shown.out, "       740 B     -900 B     700 B\n");
    assert_exit(&all, 0, "report --all");
    assert_contains(all.out, "one \"block\"");
    assert_exit(&added, 0, "merge");
    json_t *report = load_report(merged, 0);
    const json_t *inner = region_of(report, "inner");
    assert_int_equal(json_number(inner, "ended"), 2);
    assert_int_equal(json_number(inner, "bytes"), 1480);
    assert_int_equal(json_number(inner, "live_bytes"), -1800);
    assert_int_equal(json_number(inner, "most_live_bytes"), -900);
    assert_int_equal(json_number(inner, "peak_bytes"), 700);
    assert_int_equal(json_number(inner, "total_ns"), 2 * json_number(region_of(recording.report, "inner"), "total_ns"));
    json_decref(report);
    run_result_free(&shown);
    run_result_free(&all);
    run_result_free(&added);
    free(merged);
    recording_free(&recording);
    recording_free(&marks);
}

TEST_LIST(cmocka_unit_test(test_regions_of_a_thread), cmocka_unit_test(test_regions_of_the_process),
          cmocka_unit_test(test_regions_of_several_threads), cmocka_unit_test(test_regions_across_fork_and_reset),
          cmocka_unit_test(test_misuse_harms_nobody), cmocka_unit_test(test_sampled_regions_are_estimates),
          cmocka_unit_test(test_allocator_mode_measures_no_regions), cmocka_unit_test(test_nothing_without_heapwise),
          cmocka_unit_test(test_marks), cmocka_unit_test(test_reports_show_regions))
