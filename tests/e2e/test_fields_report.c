/* test_fields_report.c - heapwise fields: the example under examples/layout from profile to suggested layout, its lines
 * counted by cachegrind; what the verb says of wrong usage and of other profiles. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *directory;

static int make_place(void **state)
{
    directory = make_directory();
    return 0;
}

static int remove_place(void **state)
{
    remove_directory(directory);
    return 0;
}

/* ---- the example ---- */

/* The number behind "LABEL: " in what the example printed. */
static double counted(const char *out, const char *label)
{
    const char *at = strstr(out, label);
    if (!at)
        fail_msg("the example says nothing of '%s':\n%s", label, out);
    return strtod(at + strlen(label), NULL);
}

static json_t *fields_of(const char *file)
{
    struct run_result result = heapwise((const char *const[]){"fields", "--json", file, NULL}, NULL);
    json_error_t error;
    if (result.code)
        fail_msg("fields ended with %d: %s", result.code, result.err);
    json_t *object = json_loads(result.out, 0, &error);
    if (!object)
        fail_msg("fields --json: %s", error.text);
    run_result_free(&result);
    return object;
}

static const json_t *struct_of(const json_t *report, const char *name)
{
    json_t *entry;
    size_t index;
    json_array_foreach(json_object_get(report, "fields"), index, entry)
    {
        if (!strcmp(json_text(entry, "struct"), name))
            return entry;
    }
    fail_msg("no struct %s", name);
    return NULL;
}

static void example_suggests_what_cachegrind_counts(void **state)
{
    char *script = join_path(TEST_SOURCES, "../examples/layout/run"),
         *profile = join_path(directory, "profiled.hwprof");
    char variable[4096];
    if (!have_command("valgrind") || !have_command("cc"))
        SKIP("valgrind or cc is missing");
    snprintf(variable, sizeof variable, "HEAPWISE=%s", heapwise_path());
    const char *const environment[] = {variable, "ORDERS=20000", "ROUNDS=3", "SIMULATE=yes", NULL};
    const struct run_options options = {.environment = environment, .timeout_s = 300};
    struct run_result ran = run((const char *const[]){script, directory, NULL}, &options);
    if (ran.code && (strstr(ran.err, "not found") || strstr(ran.err, "--fields")))
        SKIP("no compiler for heapwise cc --fields");
    if (ran.code)
        fail_msg("the example ended with %d: %s%s", ran.code, ran.out, ran.err);

    json_t *report = fields_of(profile);
    const json_t *order = struct_of(report, "order"), *suggestion = json_object_get(order, "suggestion");
    const json_t *use = json_array_get(json_object_get(order, "most_frequent_uses"), 0);
    assert_int_equal(json_number(order, "size"), 296);
    assert_int_equal(json_number(order, "objects.at_once"), 20000);
    assert_string_equal(json_text(suggestion, "kind"), "reorder");
    assert_int_equal(json_array_size(json_object_get(use, "fields")), 4);
    assert_true(json_real_value(json_object_get(use, "executions")) == 60000);
    const double before = json_real_value(json_object_get(use, "lines")),
                 after = json_real_value(json_object_get(use, "lines_suggested"));
    const double before_counted = counted(ran.out, "   before: "), after_counted = counted(ran.out, "   after: ");
    if (fabs(before / before_counted - 1) > 0.1 || fabs(after / after_counted - 1) > 0.1)
        fail_msg("predicted %.3f and %.3f lines, counted %.3f and %.3f", before, after, before_counted, after_counted);
    const json_t *finding = json_array_get(json_object_get(report, "findings"), 0);
    assert_string_equal(json_text(finding, "kind"), "layout");
    assert_string_equal(json_text(finding, "struct"), "order");
    assert_int_equal(json_array_size(json_object_get(finding, "contexts")), 1);
    json_decref(report);
    run_result_free(&ran);
    free(script);
    free(profile);
}

/* ---- the verb ---- */

static void expect(const char *const arguments[], int code, const char *out, const char *err)
{
    struct run_result result = heapwise(arguments, NULL);
    if (result.code != code || !strstr(result.out, out) || !strstr(result.err, err))
        fail_msg("%s: ended with %d\n%s%s", run_describe(arguments), result.code, result.out, result.err);
    run_result_free(&result);
}

static void usage(void **state)
{
    expect((const char *const[]){"fields", NULL}, 2, "", "which FILE?");
    expect((const char *const[]){"fields", "--help", NULL}, 0, "Usage: heapwise fields", "");
    expect((const char *const[]){"fields", "--top", "none", "x", NULL}, 2, "", "fields: --top takes a number");
    expect((const char *const[]){"fields", "--color=red", "x", NULL}, 2, "", "fields: --color takes");
    expect((const char *const[]){"fields", "--struct", NULL}, 2, "", "fields: --struct needs a value");
    expect((const char *const[]){"fields", "--wrong", "x", NULL}, 2, "", "unknown option '--wrong'");
    expect((const char *const[]){"fields", "/does/not/exist", NULL}, 2, "", "/does/not/exist");
    expect((const char *const[]){"fields", heapwise_path(), NULL}, 2, "", "not a");
}

/* A program that was not built so: said, and the rest of the report is as ever. */
static void nothing_counted(void **state)
{
    const char *program = program_path("hello");
    if (!program)
        SKIP("hello could not be built");
    struct recording recording = record_and_load((const char *const[]){program, NULL}, NULL);
    expect((const char *const[]){"fields", recording.files[0], NULL}, 0, "heapwise cc --fields", "");
    json_t *report = fields_of(recording.files[0]);
    assert_null(json_object_get(report, "fields"));
    assert_null(json_object_get(report, "findings"));
    assert_non_null(json_object_get(report, "process"));
    json_decref(report);
    recording_free(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(example_suggests_what_cachegrind_counts, make_place, remove_place),
        cmocka_unit_test(usage),
        cmocka_unit_test(nothing_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
