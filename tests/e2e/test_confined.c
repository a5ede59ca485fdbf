/* test_confined.c - programs that give up system calls by a filter that kills for any other, and go on with threads,
 * children and libraries: see programs/confined.c. In every mode the runtime makes none that the program alone would
 * not have made; builds for development end where it would (hw_sys_refuse). */
#include "support/check.h"
#include "support/recording.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "test_config.h"

enum { OF_ONE_LIST = 20020 }; /* blocks */

static const char *plain(void)
{
    const char *path = need_program("confined");
    return path;
}

static const char *counting(const char *name, const char *const *arguments)
{
    char *directory = make_directory(), *program = join_path(directory, name);
    char *source = join_path(TEST_SOURCES, "programs/confined.c");
    const char *argv[20] = {heapwise_path(), "cc"};
    size_t used = 2;
    for (size_t i = 0; arguments[i]; i++)
        argv[used++] = arguments[i];
    const char *const common[] = {"-D_GNU_SOURCE", "-O2", "-g", "-w", "-pthread", "-o", program, source, NULL};
    for (size_t i = 0; common[i]; i++)
        argv[used++] = common[i];
    argv[used] = NULL;
    compile_or_skip(argv, name);
    free(source);
    return program;
}

/* Does WHAT alone, and then recorded: the same must come of it. */
static struct recording record(const char *program, const char *what, const char *const *arguments)
{
    const char *const library = strcmp(what, "library") == 0 ? program_path("libplugin_one.so") : NULL;
    const char *const argv[] = {program, what, library, NULL};
    if (program == plain()) {
        struct run_result alone = run(argv, NULL);
        if (alone.code != 0)
            SKIP("%s: not without Heapwise either: %s", what, alone.out);
        run_result_free(&alone);
    }
    struct recording recording = record_and_load(argv, &(struct record_options){.arguments = arguments});
    if (recording.run.code == 77) {
        recording_free(&recording);
        SKIP("%s: no filters here", what);
    }
    assert_exit(&recording.run, 0, what);
    assert_string_equal(recording.run.out, "ok\n");
    assert_int_equal(recording.file_count, strcmp(what, "forked") == 0 ? 2 : 1);
    const json_t *const confined = recording.reports[recording.file_count - 1];
    assert_true(report_says(confined, "seccomp"));
    assert_int_equal(json_number(confined, "totals.lost_events"), 0);
    assert_int_equal(json_number(confined, "totals.foreign_frees"), 0);
    return recording;
}

/* All blocks and their stacks are known: of threads from before and of new ones, on stacks of any size and depth. */
static void check_counts(const char *program)
{
    struct recording recording = record(program, "threads", NULL);
    const json_t *report = recording.report;
    assert_int_equal(report_sums(report, "free_work").allocations, OF_ONE_LIST);
    assert_int_equal(report_sums(report, "confined_work").allocations, OF_ONE_LIST);
    assert_true(report_sums(report, "main").allocations >= 2 * OF_ONE_LIST);
    assert_int_equal(report_sums(report, "thread_work").allocations, 5 * OF_ONE_LIST);
    assert_int_equal(report_sums(report, "thread_work").frees, 5 * OF_ONE_LIST);
    assert_int_equal(report_sums(report, "in_thread").allocations, 4 * OF_ONE_LIST);
    assert_int_equal(report_sums(report, "waits").allocations, OF_ONE_LIST + 1001);
    recording_free(&recording);
    recording = record(program, "many", NULL);
    assert_int_equal(report_sums(recording.report, "in_thread").allocations, 7 * (OF_ONE_LIST + 1));
    recording_free(&recording);
    /* A child has none, but for one that was made before and had done nothing by then. */
    recording = record(program, "fork", NULL);
    assert_int_equal(report_sums(recording.report, "child_work").allocations, 0);
    recording_free(&recording);
    recording = record(program, "forked", NULL);
    assert_int_equal(report_sums(recording.reports[1], "confined_work").allocations, OF_ONE_LIST);
    assert_int_equal(report_sums(recording.reports[1], "in_thread").allocations, 4 * OF_ONE_LIST);
    recording_free(&recording);
    recording = record(program, "library", NULL);
    assert_int_equal(report_sums(recording.report, "confined_work").allocations, OF_ONE_LIST);
    recording_free(&recording);
}

static void test_heap(void **state)
{
    check_counts(plain());
}

static void test_allocator(void **state)
{
    static const char *const cases[] = {"threads", "many", "fork", "forked", "library"};
    static const char *const mode[] = {"--mode=allocator", NULL};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct recording recording = record(plain(), cases[i], mode);
        const json_t *const report = recording.reports[recording.file_count - 1];
        const int64_t left = json_number(report, "totals.allocations") - json_number(report, "totals.frees");
        const int64_t least = strcmp(cases[i], "many") == 0 ? 9 * OF_ONE_LIST : OF_ONE_LIST;
        assert_true(json_number(report, "totals.allocations") >= least); /* of every thread */
        assert_false(report_says(report, "could not grow"));
        assert_true(left >= 0 && left <= 30); /* threads' vectors, and what a library leaves */
        assert_true(json_number(report, "totals.sampled.live_allocations") <= 30);
        recording_free(&recording);
    }
}

static void test_sampled(void **state)
{
    static const char *const options[][2] = {{"--sample-bytes=10000"}, {"--sample-accesses"}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        struct recording recording = record(plain(), "threads", options[i]);
        recording_free(&recording);
        recording = record(plain(), "fork", options[i]);
        recording_free(&recording);
    }
}

static void test_lines_and_fields(void **state)
{
    check_counts(counting("lines", (const char *const[]){"--fields", NULL}));
}

static void test_bytes(void **state)
{
    struct recording recording = record(counting("bytes", (const char *const[]){"--granule=8", NULL}), "threads", NULL);
    assert_int_equal(report_sums(recording.report, "thread_work").allocations, 5 * OF_ONE_LIST);
    recording_free(&recording);
}

static void test_words(void **state)
{
    check_counts(counting("words", (const char *const[]){"--granule=4", NULL}));
}

/* Blocks are further apart where accesses are counted: the heap must not grow for that, or be trimmed, when the program
 * may not ask for it any more. */
static void test_strict(void **state)
{
    (void)state;
    static const char *const ways[][3] = {
        {"--granule=64"}, {"--granule=8"}, {"--granule=4"}, {"--compiler=gcc", "--granule=64"}};
    const char *const alone[] = {plain(), "strict", NULL};
    struct run_result result = run(alone, NULL);
    if (result.code != 0)
        SKIP("not without Heapwise either: %d", result.code);
    run_result_free(&result);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const char *const argv[] = {counting("strict", ways[i]), "strict", NULL};
        char *directory = make_directory(), *output;
        assert_true(asprintf(&output, "HEAPWISE_OPTIONS=output=%s/strict.hwprof", directory) > 0);
        result = run(argv, &(struct run_options){.environment = (const char *const[]){output, NULL}});
        assert_exit(&result, 0, ways[i][0]);
        assert_string_equal(result.out, "ok\n");
        run_result_free(&result);
        remove_directory(directory);
        free(output);
    }
}

/* A filter that is set by an instruction cannot be seen: a call of the runtime ends the program, and the report says
 * so. If the program announces it, nothing is lost. */
static void test_bare(void **state)
{
    struct recording recording = record(plain(), "announced", NULL);
    assert_int_equal(report_sums(recording.report, "confined_work").allocations, OF_ONE_LIST);
    assert_false(report_says(recording.report, "may have been Heapwise's own"));
    recording_free(&recording);
    const char *const argv[] = {plain(), "bare", NULL};
    struct run_result alone = run(argv, NULL);
    assert_exit(&alone, 0, "bare, without Heapwise");
    run_result_free(&alone);
    recording = record_and_load(argv, NULL);
    assert_int_equal(recording.run.code, 128 + SIGSYS);
    assert_true(report_says(recording.report, "may have been Heapwise's own"));
    assert_int_equal(report_sums(recording.report, "free_work").allocations, OF_ONE_LIST);
    recording_free(&recording);
}

TEST_LIST(cmocka_unit_test(test_heap), cmocka_unit_test(test_bare), cmocka_unit_test(test_allocator),
          cmocka_unit_test(test_sampled), cmocka_unit_test(test_lines_and_fields), cmocka_unit_test(test_bytes),
          cmocka_unit_test(test_words), cmocka_unit_test(test_strict))
