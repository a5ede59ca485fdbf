/* test_kept_profiles.c - profiles that an earlier version wrote are read, and say what that version said of them.
 *
 * tests/kept has one of each kind, made by its script `make`, and a part of that version's report. Keys that were added
 * since then do not matter; each that was there has its value. */
#include "support/check.h"
#include "support/recording.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* All of EXPECTED is in ACTUAL; PATH says where that is. Arrays may have further entries. */
static void expect_holds(const json_t *actual, const json_t *expected, const char *path)
{
    char below[512];
    const char *key;
    json_t *value;
    size_t i;
    if (json_is_object(expected)) {
        json_object_foreach((json_t *)expected, key, value)
        {
            snprintf(below, sizeof below, "%s.%s", path, key);
            if (!json_object_get(actual, key))
                fail_msg("%s is missing", below);
            expect_holds(json_object_get(actual, key), value, below);
        }
    } else if (json_is_array(expected)) {
        json_array_foreach(expected, i, value)
        {
            snprintf(below, sizeof below, "%s[%zu]", path, i);
            if (i >= json_array_size(actual))
                fail_msg("%s is missing", below);
            expect_holds(json_array_get(actual, i), value, below);
        }
    } else if (json_is_number(expected) && json_is_number(actual) && (json_is_real(expected) || json_is_real(actual))) {
        const double a = json_number_value(actual), b = json_number_value(expected);
        if (fabs(a - b) > 1e-9 * fabs(b))
            fail_msg("%s is %.12g, and was %.12g", path, a, b);
    } else if (!json_equal(actual, expected)) {
        char *a = json_dumps(actual, JSON_ENCODE_ANY), *b = json_dumps(expected, JSON_ENCODE_ANY);
        fail_msg("%s is %s, and was %s", path, a, b);
    }
}

static char *beside(const char *file, const char *ending)
{
    char name[4096];
    snprintf(name, sizeof name, "%.*s%s", (int)(strlen(file) - strlen(".hwprof")), file, ending);
    return strdup(name);
}

/* The report of FILE says all that EXPECTATION, a file, says. */
static void expect_report(const char *file, const char *expectation)
{
    json_error_t error;
    json_t *expected = json_load_file(expectation, 0, &error);
    if (!expected)
        fail_msg("%s: %s", expectation, error.text);
    assert_true(json_array_size(json_object_get(expected, "contexts")) > 0);
    const char *const report[] = {"report", "--json", "--no-debuginfod", file, NULL};
    json_t *actual = json_of(report, 0);
    expect_holds(actual, expected, strrchr(expectation, '/') + 1);
    json_decref(actual);
    json_decref(expected);
}

static void test_kept(void **state)
{
    size_t count;
    char **files = list_files(KEPT, ".hwprof", &count);
    assert_true(count >= 10);
    for (size_t i = 0; i < count; i++) {
        char *expectation = beside(files[i], ".json");
        expect_report(files[i], expectation);
        free(expectation);
    }
    free_list(files);
}

/* Merged, in entries of today, they say what that version's merge said. */
static void test_merged(void **state)
{
    char *directory = make_directory(), *merged = join_path(directory, "merged.hwprof");
    size_t count, seen = 0;
    char **files = list_files(KEPT, ".hwprof", &count);
    for (size_t i = 0; i < count; i++) {
        char *expectation = beside(files[i], ".again.json");
        if (access(expectation, R_OK) == 0) {
            const char *const merge[] = {"merge", "-q", "-f", "-o", merged, files[i], NULL};
            struct run_result run = heapwise(merge, NULL);
            assert_exit(&run, 0, "merge");
            run_result_free(&run);
            expect_report(merged, expectation);
            seen++;
        }
        free(expectation);
    }
    assert_true(seen >= 8);
    free_list(files);
    free(merged);
    remove_directory(directory);
}

TEST_LIST(cmocka_unit_test(test_kept), cmocka_unit_test(test_merged))
