/* test_access_report.c - reports of programs that count their accesses: from heapwise cc to text and JSON. Numbers are
 * those in programs/told.c. */
#include "support/check.h"
#include "support/recording.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_config.h"

/* The program built with ARGUMENT besides; NULL when no compiler for it is there. */
static char *build(const char *name, const char *argument)
{
    char *program = join_path(test_directory, name), *source = join_path(TEST_SOURCES, "programs/told.c");
    const char *const argv[] = {heapwise_path(), "cc",   argument,   "-O1", "-g", "-std=gnu17", "-w", "-o",
                                program,         source, "-pthread", NULL};
    compile_or_skip(argv, argument);
    free(source);
    return program;
}

/* Sums of contexts and of globals are the totals. */
static void check_sums(const json_t *report)
{
    json_t *entry;
    size_t index;
    int64_t accesses = 0, globals = 0;
    json_array_foreach(json_object_get(report, "contexts"), index, entry) accesses +=
        json_is_null(json_object_get(entry, "accesses")) ? 0 : json_number(entry, "accesses.total");
    json_array_foreach(json_object_get(report, "globals"), index, entry) globals += json_number(entry, "accesses");
    assert_int_equal(accesses, json_number(report, "totals.accesses"));
    assert_int_equal(globals, json_number(report, "totals.globals.accesses"));
}

static void check_report(const json_t *report, int granule)
{
    assert_string_equal(json_text(report, "process.mode"), "access");
    assert_int_equal(json_number(report, "process.access.granule"), granule);
    assert_int_equal(json_number(report, "process.access.instrumented_modules"), 1);
    const json_t *item = only_context(report, "hot_item"), *cold = only_context(report, "cold_buffer"),
                 *unused = only_context(report, "never_used"), *log = only_context(report, "only_written"),
                 *words = only_context(report, "shared_words");
    const bool fine = granule == 8;
    if (!fine) {
        assert_int_equal(json_number(item, "accesses.reads"), 20000);
        assert_int_equal(json_number(words, "accesses.total"), 2 * 2000 + 3 + 1);
        assert_int_equal(json_number(json_entry(report, "globals", "symbol", "hot"), "accesses"), 5000);
    }
    assert_int_equal(json_number(item, "accesses.writes"), 1);
    assert_int_equal(json_is_true(json_object_get(item, "accesses_are_lower_bounds")), fine);
    assert_int_equal(json_number(cold, "accesses.total"), 2);
    assert_int_equal(json_number(cold, "accesses.live_blocks"), 1); /* never freed: harvested at exit */
    assert_int_equal(json_number(cold, "granules_touched"), 1);
    assert_int_equal(json_number(unused, "never_accessed"), 10);
    assert_int_equal(json_number(unused, "accesses.total"), 0);
    assert_int_equal(json_number(log, "accesses.writes"), 16);
    assert_int_equal(json_number(log, "written_never_read"), 1);
    /* Two threads write neighbouring words of a line: shared for 64 bytes, apart for 8. */
    assert_int_equal(json_number(words, "sharing.granules") > 0, true);
    assert_int_equal(json_number_or_none(words, "sharing.false_shared_lines") >= 0, fine);
    assert_int_equal(json_number(json_entry(report, "globals", "symbol", "hot"), "size"), 512);
    check_sums(report);
    assert_true(report_says(report, "libc.so.6"));
}

static void test_64(void **state)
{
    char *program = build("told", "--granule=64");
    const char *const argv[] = {program, NULL};
    struct recording recording = record_and_load(argv, NULL);
    assert_exit(&recording.run, 0, "told");
    check_report(recording.report, 64);
    /* Small variables may share their granule with others, as the linker has placed them: then all stand together. */
    json_t *global;
    size_t index;
    int64_t reads = 0, writes = 0;
    json_array_foreach(json_object_get(recording.report, "globals"), index, global)
    {
        char *names = json_dumps(json_object_get(global, "symbols"), 0);
        reads += strstr(names, "\"right\"") ? json_number(global, "reads") : 0;
        writes += strstr(names, "\"left\"") ? json_number(global, "writes") : 0;
        free(names);
    }
    assert_int_equal(reads, 300);
    assert_int_equal(writes, 300);
    recording_free(&recording);
    free(program);
}

static void test_8(void **state)
{
    char *program = build("told8", "--granule=8");
    const char *const argv[] = {program, NULL};
    struct recording recording = record_and_load(argv, NULL);
    check_report(recording.report, 8);
    const json_t *log = only_context(recording.report, "only_written");
    const json_t *histogram = json_object_get(log, "histogram");
    assert_int_equal(json_array_size(histogram), 8);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(json_integer_value(json_array_get(histogram, i)), 2);
    recording_free(&recording);
    free(program);
}

static void test_text(void **state)
{
    char *program = build("told_text", "--granule=64");
    const char *const argv[] = {program, NULL};
    struct recording recording = record_and_load(argv, NULL);
    const char *const arguments[] = {"report", "--all", recording.files[0], NULL};
    struct run_result report = heapwise(arguments, NULL);
    assert_exit(&report, 0, "report");
    assert_contains(report.out, "Accesses to blocks by the function that allocated them");
    assert_contains(report.out, "hot_item");
    assert_contains(report.out, "Cold: ");
    assert_contains(report.out, "Never accessed by code that counts: ");
    assert_contains(report.out, "Shared between threads: ");
    assert_contains(report.out, "Accesses to global variables: ");
    assert_lacks(report.out, "mode heap");
    run_result_free(&report);
    recording_free(&recording);
    free(program);
}

/* Without any heapwise: the program writes its profile by itself. */
static void test_alone(void **state)
{
    char *program = build("told_alone", "--granule=64"), *options;
    assert_true(asprintf(&options, "HEAPWISE_OPTIONS=output=%s/alone.hwprof", test_directory) > 0);
    const char *const argv[] = {program, NULL}, *const environment[] = {options, NULL};
    struct run_result ran = run(argv, &(struct run_options){.environment = environment});
    assert_exit(&ran, 0, "told");
    char *file = join_path(test_directory, "alone.hwprof");
    json_t *report = load_report(file, 0);
    assert_string_equal(json_text(report, "process.state"), "ended");
    check_report(report, 64);
    json_decref(report);
    run_result_free(&ran);
    free(file);
    free(options);
    free(program);
}

TEST_LIST_WITH(make_test_directory, remove_test_directory, cmocka_unit_test(test_64), cmocka_unit_test(test_8),
               cmocka_unit_test(test_text), cmocka_unit_test(test_alone))
