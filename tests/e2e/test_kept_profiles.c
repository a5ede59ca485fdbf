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

#define KEPT TEST_SOURCES "/kept"

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
    } else if (json_is_real(expected) && json_is_number(actual)) {
        const double a = json_number_value(actual), b = json_number_value(expected);
        if (fabs(a - b) > 1e-9 * fabs(b))
            fail_msg("%s is %.12g, and was %.12g", path, a, b);
    } else if (!json_equal(actual, expected)) {
        char *a = json_dumps(actual, JSON_ENCODE_ANY), *b = json_dumps(expected, JSON_ENCODE_ANY);
        fail_msg("%s is %s, and was %s", path, a, b);
    }
}

static void test_kept(void **state)
{
    size_t count;
    char **files = list_files(KEPT, ".hwprof", &count);
    assert_true(count >= 10);
    for (size_t i = 0; i < count; i++) {
        char name[4096];
        json_error_t error;
        snprintf(name, sizeof name, "%.*s.json", (int)(strlen(files[i]) - strlen(".hwprof")), files[i]);
        json_t *expected = json_load_file(name, 0, &error);
        if (!expected)
            fail_msg("%s: %s", name, error.text);
        assert_true(json_array_size(json_object_get(expected, "contexts")) > 0);
        const char *const report[] = {"report", "--json", "--no-debuginfod", files[i], NULL};
        json_t *actual = json_of(report, 0);
        expect_holds(actual, expected, strrchr(name, '/') + 1);
        json_decref(actual);
        json_decref(expected);
    }
    free_list(files);
}

/* Merged with nothing else they say the same: what is written is what was read, in entries of today. */
static void test_written_again(void **state)
{
    char *directory = make_directory(), *merged = join_path(directory, "merged.hwprof");
    const char *const alone[] = {"heap", "unpacked", "sampled", "access", "words", "fields"};
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++) {
        char file[4096], expectation[4096];
        snprintf(file, sizeof file, KEPT "/%s.hwprof", alone[i]);
        snprintf(expectation, sizeof expectation, KEPT "/%s.json", alone[i]);
        const char *const merge[] = {"merge", "-f", "-o", merged, file, NULL};
        struct run_result run = heapwise(merge, NULL);
        assert_exit(&run, 0, "merge");
        run_result_free(&run);
        json_t *expected = json_load_file(expectation, 0, NULL), *actual = load_report(merged, 0);
        assert_non_null(expected);
        expect_holds(json_object_get(actual, "totals"), json_object_get(expected, "totals"), alone[i]);
        json_decref(actual);
        json_decref(expected);
    }
    free(merged);
    remove_directory(directory);
}

TEST_LIST(cmocka_unit_test(test_kept), cmocka_unit_test(test_written_again))
