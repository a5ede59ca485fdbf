/* test_groups.c - report --by, --sandwich and --tree on a program whose sums are known: programs/recursing.c. */
#include "support/check.h"
#include "support/recording.h"

#include <stdio.h>
#include <string.h>

static char *directory, *file;

static int make_place(void **state)
{
    const char *program = program_path("recursing");
    assert_non_null(program);
    directory = make_directory();
    file = join_path(directory, "recursing.hwprof");
    const char *const arguments[] = {"record", "-f", "-o", file, "--", program, NULL};
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, 0, "record");
    run_result_free(&result);
    return 0;
}

static int remove_place(void **state)
{
    free(file);
    remove_directory(directory);
    return 0;
}

static json_t *groups_by(const char *by, json_t **report)
{
    const char *const arguments[] = {"report", "--json", "--value", "bytes", "--by", by, file, NULL};
    *report = json_of(arguments, 0);
    return json_object_get(json_object_get(*report, "groups"), "rows");
}

static const json_t *row_of(const json_t *rows, const char *key, const char *end)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const char *text = json_string_value(json_object_get(json_array_get(rows, i), key));
        if (text && strlen(text) >= strlen(end) && !strcmp(text + strlen(text) - strlen(end), end))
            return json_array_get(rows, i);
    }
    fail_msg("no row has the %s %s", key, end);
    return NULL;
}

static void test_sums(void **state)
{
    static const struct {
        const char *function;
        int64_t self, total;
    } expected[] = {{"make_node", 15000, 15000},
                    {"build_tree", 0, 15000},
                    {"count_odd", 500, 500},
                    {"count_even", 0, 500},
                    {"thread_work", 1000, 1000}};
    json_t *report, *rows = groups_by("function", &report);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const json_t *row = row_of(rows, "function", expected[i].function);
        assert_int_equal(json_number(row, "self"), expected[i].self);
        assert_int_equal(json_number(row, "total"), expected[i].total);
    }
    assert_true(json_number(row_of(rows, "function", "main"), "total") >= 15500);
    json_decref(report);
    rows = groups_by("file", &report);
    assert_int_equal(json_number(row_of(rows, "file", "/recursing.c"), "total") -
                         json_number(row_of(rows, "file", "/recursing.c"), "self"),
                     0);
    json_decref(report);
    rows = groups_by("thread", &report);
    assert_int_equal(json_number(row_of(rows, "function", "thread_work"), "total"), 1000);
    json_decref(report);
    rows = groups_by("size", &report);
    int64_t of_nodes = 0;
    for (size_t i = 0; i < json_array_size(rows); i++)
        if (json_number(json_array_get(rows, i), "size_most") == 1024)
            of_nodes = json_number(json_array_get(rows, i), "total");
    assert_true(of_nodes >= 15000);
    json_decref(report);
}

static size_t occurrences(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
        count++;
    return count;
}

static struct run_result report_with(const char *first, const char *second)
{
    const char *const arguments[] = {"report", "--value", "bytes", first, second ? second : file, second ? file : NULL,
                                     NULL};
    return heapwise(arguments, NULL);
}

static void test_trees(void **state)
{
    struct run_result result = report_with("--tree", NULL);
    assert_exit(&result, 0, "--tree");
    assert_int_equal(occurrences(result.out, "build_tree"), 1);
    assert_int_equal(occurrences(result.out, "recursing\n"), 2); /* build_tree, and the two that count */
    assert_contains(result.out, "make_node\n");
    assert_contains(result.out, "below 1 %");
    run_result_free(&result);
    result = report_with("--tree=bottom-up", "--min-share=0");
    assert_exit(&result, 0, "--tree=bottom-up");
    assert_true(strstr(result.out, "make_node\n") < strstr(result.out, "build_tree"));
    assert_true(strstr(result.out, "build_tree") < strstr(result.out, "main\n"));
    assert_lacks(result.out, "left out");
    run_result_free(&result);
}

static void test_sandwich(void **state)
{
    struct run_result result = report_with("--sandwich", "build_tree");
    assert_exit(&result, 0, "--sandwich");
    const char *called = strstr(result.out, "Called by\n"), *calls = strstr(result.out, "\nCalls\n");
    assert_non_null(called);
    assert_non_null(calls);
    assert_contains(called, "  14.6 KiB    100 %  main\n");
    assert_contains(calls, "  14.6 KiB    100 %  make_node\n");
    assert_lacks(called + 10, "  build_tree\n");
    run_result_free(&result);
}

/* The code that starts threads is no caller. */
static void test_check_names_callers(void **state)
{
    struct run_result result =
        heapwise((const char *const[]){"check", "--max-bytes", "1", "--focus", "thread_work", file, NULL}, NULL);
    assert_exit(&result, 1, "check");
    assert_contains(result.out, "  thread_work");
    assert_lacks(result.out, "called by");
    run_result_free(&result);
    result = heapwise((const char *const[]){"check", "--max-bytes", "1", "--focus", "count_odd", file, NULL}, NULL);
    assert_contains(result.out, "called by count_even");
    run_result_free(&result);
}

static void test_errors(void **state)
{
    static const struct {
        const char *const arguments[4];
        const char *message;
    } rows[] = {
        {{"--by", "class"}, "'class'"},
        {{"--by", "class"}, "function, file, line, module, type, thread, size"},
        {{"--by=function", "--tree"}, "--by, --sandwich, --tree and --source cannot be combined"},
        {{"--tree=sideways"}, "top-down, bottom-up"},
        {{"--tree", "--min-share=200"}, "from 0 to 100"},
        {{"--by=file", "--min-share=2"}, "--min-share is for --tree"},
        {{"--value=bytes"}, "--value is for --by, --sandwich, --tree and --source"},
        {{"--by=file", "--value=height"}, "peak, peak-count, bytes"},
        {{"--by=file", "--sort=mean-lifetime"}, "'mean-lifetime' cannot be added up"},
        {{"--by=file", "--section=summary"}, "cannot be combined"},
        {{"--by=file", "--value=accesses"}, "accesses were not counted"},
        {{"--tree", "--json"}, "cannot be combined with --tree"},
        {{"--sandwich", "bild_tree"}, "no place has 'bild_tree' on its stack; nearest: build_tree"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *arguments[8] = {"report"};
        size_t used = 1;
        for (size_t k = 0; k < 4 && rows[i].arguments[k]; k++)
            arguments[used++] = rows[i].arguments[k];
        arguments[used] = file;
        struct run_result result = heapwise(arguments, NULL);
        assert_exit(&result, 2, rows[i].message);
        assert_contains(result.err, rows[i].message);
        assert_string_equal(result.out, "");
        run_result_free(&result);
    }
    struct run_result result = report_with("--by=function", "--sort=count"); /* --value is stronger */
    assert_exit(&result, 0, "--sort");
    assert_contains(result.out, "By function: bytes allocated over the whole run");
    run_result_free(&result);
    const char *const sorted[] = {"report", "--by=function", "--sort=count", file, NULL};
    result = heapwise(sorted, NULL);
    assert_exit(&result, 0, "--sort");
    assert_contains(result.out, "By function: blocks allocated over the whole run");
    run_result_free(&result);
}

TEST_LIST_WITH(make_place, remove_place, cmocka_unit_test(test_sums), cmocka_unit_test(test_trees),
               cmocka_unit_test(test_sandwich), cmocka_unit_test(test_check_names_callers),
               cmocka_unit_test(test_errors))
