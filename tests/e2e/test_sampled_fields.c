/* test_sampled_fields.c - record --fields: fields of structs from sampled accesses and debug information, in programs
 * whose accesses are known (programs/sampled_fields.c and .cpp).
 *
 * A sample is drawn at most at each tick of the kernel's (250 a second on most machines), so runs last a second or two,
 * and are repeated until there have been enough bursts. */
#include "support/check.h"
#include "support/recording.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BURSTS = 60 };

/* `heapwise fields --json` of a run; *FILE, if it is not NULL, gets the profile's name, in DIRECTORY. */
static json_t *fields_of(const char *directory, const char *program, const char *what, const char *rounds)
{
    for (int tries = 1;; tries++) {
        char *file = join_path(directory, "fields.hwprof");
        struct run_result result = heapwise((const char *const[]){"record", "-q", "-f", "--fields=1000",
                                                                  "--single-steps", "-o", file, "--", program, what,
                                                                  rounds, NULL},
                                            NULL);
        assert_exit(&result, 0, "record");
        run_result_free(&result);
        json_t *report = json_of((const char *const[]){"fields", "--json", file, NULL}, 0);
        free(file);
        if (json_number(report, "sampled_fields.bursts") >= BURSTS)
            return report;
        if (tries == 100)
            fail_msg("%s %s: %lld bursts", program, what,
                     (long long)json_number(report, "sampled_fields.bursts"));
        json_decref(report);
    }
}

static const json_t *struct_of(const json_t *report, const char *name)
{
    const json_t *structs = json_object_get(json_object_get(report, "sampled_fields"), "structs");
    for (size_t i = 0; i < json_array_size(structs); i++)
        if (!strcmp(json_string_value(json_object_get(json_array_get(structs, i), "struct")), name))
            return json_array_get(structs, i);
    fail_msg("no struct %s", name);
    return NULL;
}

static const json_t *field_of(const json_t *structure, const char *name)
{
    const json_t *fields = json_object_get(structure, "fields");
    for (size_t i = 0; i < json_array_size(fields); i++)
        if (!strcmp(json_string_value(json_object_get(json_array_get(fields, i), "name")), name))
            return json_array_get(fields, i);
    fail_msg("no field %s", name);
    return NULL;
}

static double reads_of(const json_t *structure, const char *name)
{
    return (double)json_number(field_of(structure, name), "reads");
}

static double writes_of(const json_t *structure, const char *name)
{
    return (double)json_number(field_of(structure, name), "writes");
}

static void assert_about(const char *what, double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance))
        fail_msg("%s: %.3f instead of %.3f", what, found, expected);
}

/* Bursts see some rounds of a loop whole and are cut at their ends. */
static double tolerance_of(const json_t *report)
{
    return 0.02 + 0.5 / sqrt((double)json_number(report, "sampled_fields.bursts"));
}

static void test_fields_of_c(void **state)
{
    json_t *report = fields_of(test_directory, need_program("sampled_fields-O2"), "items", "150000");
    const json_t *item = struct_of(report, "item");
    const double tolerance = tolerance_of(report);
    const double value = reads_of(item, "value") + writes_of(item, "value"), key = reads_of(item, "key"),
                 count = writes_of(item, "count"), loop = value + key + count;
    assert_about("key", key / loop, 0.25, tolerance);
    assert_about("value", value / loop, 0.5, tolerance);
    assert_about("count", count / loop, 0.25, tolerance);
    assert_about("value written", writes_of(item, "value") / value, 0.5, tolerance);
    assert_true(reads_of(item, "name") > 0); /* by libc */
    assert_true(reads_of(item, "kind, state") == 0); /* the program clears items when it makes them */
    assert_int_equal(json_number(field_of(item, "kind, state"), "bit_size"), 8);
    const double share = json_real_value(json_object_get(field_of(item, "value"), "share"));
    const double error = json_real_value(json_object_get(field_of(item, "value"), "share_error"));
    assert_true(share > 0.3 && share <= 0.5 + tolerance);
    assert_true(error > 0 && error < 0.2);
    /* Most uses are of the three together, and they belong into one line. */
    const json_t *use = json_array_get(json_object_get(item, "most_frequent_uses"), 0);
    assert_int_equal(json_array_size(json_object_get(use, "fields")), 3);
    assert_int_equal(json_number(item, "objects.allocated"), 4000);
    const json_t *suggestion = json_object_get(item, "suggestion");
    assert_true(json_is_object(suggestion));
    assert_true(json_real_value(json_object_get(suggestion, "lines_after")) <
                0.7 * json_real_value(json_object_get(suggestion, "lines_before")));
    assert_true(json_number(report, "sampled_fields.accesses.to_fields") > 0);
    assert_true(json_number(report, "sampled_fields.accesses.to_scalars") > 0);
    json_decref(report);
}

static void test_arrays_of_structs(void **state)
{
    json_t *report = fields_of(test_directory, need_program("sampled_fields-O2"), "points", "150000");
    const json_t *point = struct_of(report, "point");
    assert_about("x", reads_of(point, "x") / (reads_of(point, "x") + reads_of(point, "y")), 2.0 / 3,
                 tolerance_of(report));
    assert_true(reads_of(point, "unused") == 0);
    assert_int_equal(json_number(point, "objects.allocated"), 6144);
    json_decref(report);
}

static void test_fields_of_cpp(void **state)
{
    json_t *report = fields_of(test_directory, need_program("sampled_fields++-O2"), "circles", "100000");
    const json_t *circle = struct_of(report, "app::circle");
    const double radius = reads_of(circle, "radius"),
                 id = reads_of(circle, "shape::id") + writes_of(circle, "shape::id");
    assert_about("radius", radius / (radius + id), 2.0 / 3, tolerance_of(report));
    assert_int_equal(json_number(field_of(circle, "shape::_vptr"), "offset"), 0);
    assert_true(reads_of(circle, "colour") == 0);
    json_decref(report);

    report = fields_of(test_directory, need_program("sampled_fields++-O2"), "points", "200000");
    const json_t *point = struct_of(report, "app::point");
    assert_about("x", reads_of(point, "x") / (reads_of(point, "x") + reads_of(point, "y")), 0.5,
                 tolerance_of(report));
    json_decref(report);
}

/* Text: what a reader needs to know that these are samples. */
static void test_text(void **state)
{
    char *file = join_path(test_directory, "text.hwprof");
    const char *program = need_program("sampled_fields-O2");
    struct run_result result;
    for (int tries = 0; tries < 100; tries++) {
        result = heapwise((const char *const[]){"record", "-q", "-f", "--fields=1000", "--single-steps", "-o", file,
                                                "--", program, "items", "100000", NULL},
                          NULL);
        assert_exit(&result, 0, "record");
        run_result_free(&result);
        result = heapwise((const char *const[]){"fields", file, NULL}, NULL);
        assert_exit(&result, 0, "fields");
        if (strstr(result.out, "struct item"))
            break;
        run_result_free(&result);
    }
    assert_non_null(strstr(result.out, "sampled accesses ("));
    assert_non_null(strstr(result.out, "\nSampled: "));
    assert_null(strstr(result.out, "never accessed"));
    run_result_free(&result);
    free(file);
}

/* Without debug information, without samples, without either. */
static void test_what_is_missing(void **state)
{
    char *copy = join_path(test_directory, "program"), *file = join_path(test_directory, "missing.hwprof");
    struct run_result result =
        run((const char *const[]){"strip", "-o", copy, need_program("sampled_fields-O2"), NULL}, NULL);
    if (result.code)
        SKIP("no strip");
    run_result_free(&result);
    json_t *report = fields_of(test_directory, copy, "items", "150000");
    assert_int_equal(json_array_size(json_object_get(json_object_get(report, "sampled_fields"), "structs")), 0);
    assert_true(json_number(report, "sampled_fields.accesses.to_unknown_types") > 0);
    json_decref(report);

    result = heapwise((const char *const[]){"record", "-q", "-f", "-o", file, "--", copy, NULL}, NULL);
    assert_exit(&result, 0, "record");
    run_result_free(&result);
    result = heapwise((const char *const[]){"fields", file, NULL}, NULL);
    assert_exit(&result, 0, "fields");
    assert_non_null(strstr(result.out, "record --fields"));
    run_result_free(&result);
    free(copy);
    free(file);
}

TEST_LIST_WITH(make_test_directory, remove_test_directory, cmocka_unit_test(test_fields_of_c),
               cmocka_unit_test(test_arrays_of_structs), cmocka_unit_test(test_fields_of_cpp),
               cmocka_unit_test(test_text), cmocka_unit_test(test_what_is_missing))
