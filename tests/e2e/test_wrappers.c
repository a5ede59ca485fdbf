/* test_wrappers.c - who holds the memory of a program that allocates through functions of its own: programs/wrapped.c.
 */
#include "support/check.h"
#include "support/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char *directory, *by_name, *by_structure;

static char *record(const char *name, const char *argument)
{
    char *path = join_path(directory, name);
    struct run_result result = heapwise(
        (const char *const[]){"record", "-q", "-o", path, "--", program_path("wrapped"), argument, NULL}, NULL);
    assert_exit(&result, 0, "record");
    run_result_free(&result);
    return path;
}

static int make_place(void **state)
{
    directory = make_directory();
    by_name = record("by_name.hwprof", "z");
    by_structure = record("by_structure.hwprof", "take");
    return 0;
}

static int remove_place(void **state)
{
    free(by_name);
    free(by_structure);
    remove_directory(directory);
    return 0;
}

/* What heapwise prints in the directory of the test, without line ends: one blank between words. */
static struct run_result in_place(const char *const arguments[], int code)
{
    struct run_result result = heapwise(arguments, &(struct run_options){.directory = directory});
    char *to = result.out;
    assert_exit(&result, code, arguments[0]);
    for (const char *at = result.out; *at; at++) {
        if (!strchr(" \n", *at))
            *to++ = *at;
        else if (to > result.out && to[-1] != ' ')
            *to++ = ' ';
    }
    *to = '\0';
    return result;
}

#define HEAPWISE(code, ...) in_place((const char *const[]){__VA_ARGS__, NULL}, code)

/* Heapwise refuses, and says WHY and (or NULL) MORE. */
static void refuses(struct run_result result, const char *why, const char *more)
{
    assert_contains(result.err, why);
    if (more)
        assert_contains(result.err, more);
    run_result_free(&result);
}

/* Heapwise prints WITH (or NULL), and not WITHOUT. */
static void prints(struct run_result result, const char *with, const char *without)
{
    if (with)
        assert_contains(result.out, with);
    if (without)
        assert_lacks(result.out, without);
    run_result_free(&result);
}

/* ---- folding ---- */

static void test_the_holder_is_named(void **state)
{
    struct run_result result = HEAPWISE(0, "report", "--section", "functions,peak", by_name);
    assert_contains(result.out, "allocations function 97.7 KiB 97.6 % 97.7 KiB 1 holder ");
    assert_contains(result.out, "2 allocation wrappers folded: ztrymalloc_usable_internal, zmalloc > holder");
    assert_lacks(result.out, "> zmalloc");
    assert_lacks(result.out, "Shown "); /* names say so: nothing to explain */
    run_result_free(&result);
    prints(HEAPWISE(0, "report", "--section", "functions,peak", "--no-fold", by_name), "> ztrymalloc_usable_internal",
           "wrapper");
    prints(HEAPWISE(0, "report", "--section", "peak", "--full", by_name), " zmalloc ", "folded");
}

static void test_wrappers_without_a_known_name_are_found(void **state)
{
    struct run_result result = HEAPWISE(0, "report", "--section", "functions,peak", by_structure);
    assert_contains(result.out, "since many functions allocate through them: take_memory, raw_memory (--no-fold");
    assert_contains(result.out, "2 allocation wrappers folded: raw_memory, take_memory");
    assert_contains(result.out, "> holder");
    run_result_free(&result);
    prints(HEAPWISE(0, "report", "--section", "functions,peak", "--no-fold", by_structure), "> raw_memory", "folded");
    prints(HEAPWISE(0, "report", "--section", "summary", by_structure), "Allocated", "Shown"); /* names nothing */
}

static void test_json_marks_wrappers(void **state)
{
    json_t *report = json_of((const char *const[]){"report", "--json", by_structure, NULL}, 0);
    const json_t *stack = json_object_get(only_context(report, "holder"), "stack");
    assert_true(json_is_true(json_object_get(json_array_get(stack, 0), "wrapper")));
    assert_true(json_is_true(json_object_get(json_array_get(stack, 1), "wrapper")));
    assert_string_equal(json_text(json_array_get(stack, 2), "function"), "holder");
    assert_null(json_object_get(json_array_get(stack, 2), "wrapper"));
    const json_t *selection = json_object_get(report, "selection");
    assert_true(json_is_true(json_object_get(selection, "folded")));
    assert_int_equal(json_array_size(json_object_get(selection, "wrappers_by_structure")), 2);
    assert_true(json_is_null(json_object_get(selection, "function")));
    json_decref(report);
}

static void test_exports_fold(void **state)
{
    static const char *const formats[] = {"collapsed", "speedscope", "dhat"};
    for (size_t i = 0; i < 3; i++) {
        prints(HEAPWISE(0, "export", "-q", "--format", formats[i], by_name), "holder", "zmalloc");
        prints(HEAPWISE(0, "export", "-q", "--format", formats[i], "--no-fold", by_name), "zmalloc", NULL);
    }
    prints(HEAPWISE(0, "export", "-q", "--format", "collapsed", "--value", "bytes", by_name),
           "main;work;holder 100000 ", NULL);
    prints(HEAPWISE(0, "export", "-q", "--format", "collapsed", "--value", "bytes", "--hide", "^work$", by_name),
           "main;holder 100000 ", ";work;");
    prints(HEAPWISE(0, "export", "-q", "--format", "csv", by_name), "zmalloc;ztrymalloc_usable_internal", NULL);
    struct run_result result = HEAPWISE(0, "export", "--format", "collapsed", "--ignore", "holder", by_structure);
    assert_contains(result.err, "export: Left out: 1 place with 97.6 % of the bytes at the peak");
    assert_contains(result.err, "export: Allocation wrappers are folded, since");
    run_result_free(&result);
    refuses(HEAPWISE(2, "export", "--format", "profdata", "--hide", "x", by_name), "--hide is not for profdata", NULL);
}

/* Two ways to wrap the allocator: the same places. */
static void test_diff_and_check_name_the_caller(void **state)
{
    json_t *diff = json_of((const char *const[]){"diff", "--json", "--sort", "bytes", by_name, by_structure, NULL}, 0);
    assert_int_equal(json_number(diff, "places_changed"), 0);
    json_decref(diff);
    diff = json_of((const char *const[]){"diff", "--json", "--no-fold", "--sort", "bytes", by_name, by_structure, NULL},
                   0);
    assert_int_equal(json_number(diff, "places_changed"), 24);
    json_decref(diff);
    prints(HEAPWISE(0, "diff", by_structure, by_structure), "Both profiles: Allocation wrappers are folded", "The old");
    prints(HEAPWISE(1, "check", "--max-peak", "1K", by_name), "holder", "zmalloc");
    prints(HEAPWISE(1, "check", "--max-peak", "1K", "--no-fold", by_name), "zmalloc", NULL);
}

/* ---- hide, ignore, focus ---- */

static void test_places_are_left_out(void **state)
{
    struct run_result result = HEAPWISE(0, "report", "--ignore", "^caller_[0-4]$", by_name);
    assert_contains(result.out, "Left out: 5 places with");
    assert_contains(result.out, "by ignore '^caller_[0-4]$'. Totals include");
    assert_lacks(result.out, "> caller_4");
    assert_contains(result.out, "100.0 KiB in 12 blocks"); /* the totals of the program */
    assert_contains(result.out, "left out, or without a call stack");
    assert_lacks(result.out, "recorded without a call stack");
    run_result_free(&result);
    result = HEAPWISE(0, "report", "--section", "peak", "--focus", "holder", by_name);
    assert_contains(result.out, "Left out: 11 places with");
    assert_contains(result.out, "> holder");
    assert_lacks(result.out, "> caller_");
    run_result_free(&result);
    json_t *report = json_of((const char *const[]){"report", "--json", "--focus", "caller_1", "--focus", "holder",
                                                   "--hide", "^work$", by_name, NULL},
                             0);
    assert_int_equal(json_array_size(json_object_get(report, "contexts")), 2);
    assert_int_equal(json_number(report, "selection.left_out.places"), 10);
    assert_int_equal(json_number(report, "selection.left_out.bytes"),
                     json_number(report, "totals.bytes_allocated") - 110 - 100000);
    assert_int_equal(json_number(report, "selection.places_with_hidden_frames"), 2);
    assert_string_equal(stack_function(only_context(report, "holder"), 3), "main");
    json_decref(report);
    prints(HEAPWISE(0, "diff", "--sort", "bytes", "--focus", "nothing_has_this", by_name, by_structure),
           "The old profile: Left out: 12 places", NULL);
    prints(HEAPWISE(1, "check", "--max-peak", "1K", "--ignore", "holder", by_name), "Left out: 1 place", "  holder");
    prints(HEAPWISE(0, "export", "-q", "--format", "collapsed", "--ignore", "holder", by_name), "caller_1", "holder");
}

static void test_wrong_patterns_are_refused(void **state)
{
    static const char *const options[] = {"--hide", "--ignore", "--focus"};
    for (size_t i = 0; i < 3; i++) {
        refuses(HEAPWISE(2, "report", options[i], "a(b", by_name), options[i], ": invalid regular expression 'a(b': ");
        refuses(HEAPWISE(2, "report", options[i], "", by_name), "a pattern is missing", NULL);
    }
    static const char *const verbs[] = {"diff", "check", "view"};
    for (size_t i = 0; i < 3; i++) {
        refuses(HEAPWISE(2, verbs[i], "--hide", "*(", by_name), "invalid regular expression", NULL);
    }
}

static void write_rules(const char *name, const char *text)
{
    char *path = join_path(directory, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    free(path);
}

static void test_rules_of_a_project(void **state)
{
    write_rules(".heapwiserc", "# ours\nwrapper ^holder$\nhide ^work$\n");
    struct run_result result = HEAPWISE(0, "report", "--section", "peak", by_name);
    assert_contains(result.out, "Rules from .heapwiserc apply (--rules none ignores them).");
    assert_contains(result.out, "Frames are hidden in 12 places, by hide '^work$'.");
    assert_contains(result.out, "3 allocation wrappers folded: ztrymalloc_usable_internal, zmalloc");
    assert_contains(result.out, "> main");
    run_result_free(&result);
    prints(HEAPWISE(0, "report", "--section", "peak", "--rules", "none", by_name), "> holder", "Shown");
    prints(HEAPWISE(0, "export", "-q", "--format", "collapsed", "--value", "bytes", by_name), "main 100000 ", ";work");
    write_rules("other.rules", "ignore holder\n");
    prints(HEAPWISE(0, "report", "--section", "peak", "--rules", "other.rules", by_name), "ignore 'holder'",
           "> holder");
    write_rules(".heapwiserc", "hide ^work$\nfold x\n");
    refuses(HEAPWISE(2, "report", by_name),
            "report: .heapwiserc:2: unknown rule 'fold' (known: wrapper, hide, ignore, focus)", "--rules none");
    refuses(HEAPWISE(2, "report", "--rules", "nowhere", by_name), "report: nowhere: No such file", NULL);
    char *path = join_path(directory, ".heapwiserc");
    assert_int_equal(remove(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    refuses(HEAPWISE(2, "report", by_name), "report: .heapwiserc: not a regular file; --rules none skips this file",
            NULL);
    assert_int_equal(remove(path), 0);
    free(path);
}

/* ---- a function wherever it stands ---- */

static void test_a_function_anywhere(void **state)
{
    prints(HEAPWISE(0, "report", "--section", "peak", "--function", "work", by_name),
           "Only places with work on their stacks. It allocates nothing itself; functions that it calls do, in 12",
           NULL);
    prints(HEAPWISE(0, "report", "--section", "peak", "--function", "holder", by_name),
           "Only places with holder on their stacks. It allocates in 1 place:", "caller_");
    json_t *report = json_of((const char *const[]){"report", "--json", "--function", "work", by_name, NULL}, 0);
    assert_int_equal(json_number(report, "selection.function.allocates.places"), 0);
    assert_int_equal(json_number(report, "selection.function.calls.places"), 12);
    json_decref(report);
    refuses(HEAPWISE(2, "report", "--function", "wor", by_name), "no place has 'wor' on its stack", NULL);
}

TEST_LIST_WITH(make_place, remove_place, cmocka_unit_test(test_the_holder_is_named),
               cmocka_unit_test(test_wrappers_without_a_known_name_are_found),
               cmocka_unit_test(test_json_marks_wrappers), cmocka_unit_test(test_exports_fold),
               cmocka_unit_test(test_diff_and_check_name_the_caller), cmocka_unit_test(test_places_are_left_out),
               cmocka_unit_test(test_wrong_patterns_are_refused), cmocka_unit_test(test_rules_of_a_project),
               cmocka_unit_test(test_a_function_anywhere))
