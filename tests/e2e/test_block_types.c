/* test_block_types.c - types of blocks that nothing but the debug information says: programs/block_types.c and .cpp,
 * whose comments say what each line allocates. */
#include "support/check.h"
#include "support/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINES_MOST = 400, TYPE_BYTES = 100 };

struct truth {
    char type[LINES_MOST][TYPE_BYTES]; /* by line; "": the line allocates nothing, "?": nothing says what */
    size_t lines;                      /* with a type */
};

/* Comments "= TYPE" of NAME, among the sources of test programs. */
static void read_truth(struct truth *truth, const char *name)
{
    char path[4096], line[1024];
    snprintf(path, sizeof path, "%s/%s", PROGRAM_SOURCES, name);
    FILE *stream = fopen(path, "r");
    memset(truth, 0, sizeof *truth);
    assert_non_null(stream);
    for (size_t number = 1; fgets(line, sizeof line, stream); number++) {
        const char *begin = strstr(line, "/* = ");
        begin = begin ? begin : strstr(line, "// = ");
        if (!begin)
            continue;
        assert_true(number < LINES_MOST);
        snprintf(truth->type[number], TYPE_BYTES, "%s", begin + 5);
        truth->type[number][strcspn(truth->type[number], "\n")] = '\0';
        char *end = strstr(truth->type[number], " */");
        if (end)
            *end = '\0';
        truth->lines += strcmp(truth->type[number], "?") != 0;
    }
    fclose(stream);
}

/* What the innermost line of SOURCE on the stack that allocates does allocate; NULL: none is known. */
static const char *true_type(const struct truth *truth, const json_t *context, const char *source, size_t *line)
{
    size_t i;
    json_t *frame;
    json_array_foreach(json_object_get(context, "stack"), i, frame)
    {
        const char *file = json_string_value(json_object_get(frame, "file"));
        const json_int_t number = json_integer_value(json_object_get(frame, "line"));
        const char *name = file ? strrchr(file, '/') : NULL;
        if (!name || strcmp(name + 1, source) || number <= 0 || number >= LINES_MOST || !*truth->type[number])
            continue;
        *line = (size_t)number;
        return truth->type[number];
    }
    return NULL;
}

/* No context of REPORT has a wrong type. Returns how many lines have a context with the right one. */
static size_t compare(const json_t *report, const char *source)
{
    struct truth truth;
    bool right[LINES_MOST] = {false};
    size_t i, line, count = 0;
    json_t *context;
    read_truth(&truth, source);
    json_array_foreach(json_object_get(report, "contexts"), i, context)
    {
        const char *is = true_type(&truth, context, source, &line);
        const char *said = json_string_value(json_object_get(context, "type"));
        if (!is || !said || !strcmp(is, "?"))
            continue;
        if (strcmp(said, is) != 0)
            fail_msg("%s:%zu allocates %s, and not %s", source, line, is, said);
        count += !right[line];
        right[line] = true;
    }
    print_message("%s: %zu of %zu lines have a type\n", source, count, truth.lines);
    return count;
}

static json_t *report_of(const char *program)
{
    struct recording recording =
        record_and_load((const char *const[]){need_program(program), NULL}, &(struct record_options){0});
    json_t *report = json_incref(recording.report);
    recording_free(&recording);
    return report;
}

/* At least LEAST lines have a type, and none a wrong one. */
static void program_has_types(const char *program, const char *source, size_t least)
{
    json_t *report = report_of(program);
    const size_t count = compare(report, source);
    assert_true(count >= least);
    json_decref(report);
}

static void test_types_of_c(void **state)
{
    program_has_types("block_types-O0", "block_types.c", 14);
    program_has_types("block_types-O2", "block_types.c", 14);
}

static void test_types_of_c_by_clang(void **state)
{
    program_has_types("block_types-clang", "block_types.c", 10);
}

static void test_types_of_cpp(void **state)
{
    program_has_types("block_types++-O0", "block_types.cpp", 7);
    program_has_types("block_types++-O2", "block_types.cpp", 7);
}

static void test_types_from_a_separate_debug_file(void **state)
{
    program_has_types("block_types-stripped", "block_types.c", 14);
}

static const json_t *type_entry(const json_t *report, const char *type)
{
    return json_entry(report, "types", "type", type);
}

/* What is stored by --symbolize is there without the program; merge adds it up; a look-up of one function has it. */
static void test_types_are_stored(void **state)
{
    char *directory = make_directory(), *copy = join_path(directory, "program"),
         *file = join_path(directory, "a.hwprof"), *merged = join_path(directory, "b.hwprof");
    struct run_result result = run((const char *const[]){"cp", need_program("block_types-O2"), copy, NULL}, NULL);
    assert_exit(&result, 0, "cp");
    run_result_free(&result);
    result =
        heapwise((const char *const[]){"record", "-q", "--symbolize", "-o", file, "--", copy, NULL}, NULL);
    assert_exit(&result, 0, "record");
    run_result_free(&result);
    assert_int_equal(unlink(copy), 0);

    json_t *report = load_report(file, 0);
    assert_true(compare(report, "block_types.c") >= 14);
    const json_t *node = type_entry(report, "struct node"), *text = type_entry(report, "struct message");
    assert_int_equal(json_number(node, "size"), 40);
    assert_true(json_number(node, "allocations") >= 100);
    assert_int_equal(json_number(text, "allocations"), 100);
    const json_int_t allocations = json_number(node, "allocations");
    json_decref(report);

    result = heapwise((const char *const[]){"merge", "-o", merged, file, file, NULL}, NULL);
    assert_exit(&result, 0, "merge");
    run_result_free(&result);
    report = load_report(merged, 0);
    assert_int_equal(json_number(type_entry(report, "struct node"), "allocations"), 2 * allocations);
    json_decref(report);

    result = heapwise((const char *const[]){"report", "--function", "plain", "--by", "type", file, NULL}, NULL);
    assert_exit(&result, 0, "report");
    assert_contains(result.out, "100 %  struct node");
    run_result_free(&result);
    result = heapwise((const char *const[]){"report", "--section", "types", file, NULL}, NULL);
    assert_exit(&result, 0, "report");
    assert_contains(result.out, "Heap by type");
    assert_contains(result.out, "struct message");
    run_result_free(&result);
    /* What is compared does not depend on types that only one side knows. */
    result = heapwise((const char *const[]){"diff", file, merged, NULL}, NULL);
    assert_lacks(result.out, "new place");
    run_result_free(&result);
    free(copy);
    free(file);
    free(merged);
    remove_directory(directory);
}

TEST_LIST(cmocka_unit_test(test_types_of_c), cmocka_unit_test(test_types_of_c_by_clang), cmocka_unit_test(test_types_of_cpp),
          cmocka_unit_test(test_types_from_a_separate_debug_file), cmocka_unit_test(test_types_are_stored))
