/* test_fields_report.c - heapwise fields: the example under examples/layout from profile to suggested layout, its lines
 * counted by cachegrind; what the verb says of wrong usage and of other profiles. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    return json_of((const char *const[]){"fields", "--json", file, NULL}, 0);
}

static void example_suggests_what_cachegrind_counts(void **state)
{
    char *script = join_path(TEST_SOURCES, "../examples/layout/run"),
         *profile = join_path(test_directory, "profiled.hwprof");
    char variable[4096];
    if (!have_command("valgrind") || !have_command("cc"))
        SKIP("valgrind or cc is missing");
    snprintf(variable, sizeof variable, "HEAPWISE=%s", heapwise_path());
    const char *const environment[] = {variable, "ORDERS=20000", "ROUNDS=3", "SIMULATE=yes", NULL};
    const struct run_options options = {.environment = environment, .timeout_s = 300};
    struct run_result ran = run((const char *const[]){script, test_directory, NULL}, &options);
    if (ran.code && strstr(ran.err, "not found"))
        SKIP("no compiler for heapwise cc --fields");
    if (ran.code)
        fail_msg("the example ended with %d: %s%s", ran.code, ran.out, ran.err);

    json_t *report = fields_of(profile);
    const json_t *order = json_entry(report, "fields", "struct", "order"),
                 *suggestion = json_object_get(order, "suggestion");
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

/* Misses of a first-level cache of 32 KiB that cachegrind counts in PROGRAM. ARGUMENT may be NULL. */
static double misses_of(const char *program, const char *argument)
{
    struct run_result ran =
        run((const char *const[]){"valgrind", "--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null",
                                  "--D1=32768,8,64", "--LL=8388608,16,64", program, argument, NULL},
            &(const struct run_options){.timeout_s = 300});
    const char *at = strstr(ran.err, "D1  misses:");
    double misses = 0;
    if (ran.code || !at)
        fail_msg("cachegrind says of %s: %s", program, ran.err);
    for (at += strlen("D1  misses:"); *at == ' ' || *at == ',' || (*at >= '0' && *at <= '9'); at++)
        if (*at >= '0' && *at <= '9')
            misses = 10 * misses + (*at - '0');
    run_result_free(&ran);
    return misses;
}

/* Blocks of 256 bytes all begin at the same place of a line: lines before and after are those of that place, and not
 * the mean over all places. Cachegrind runs the plain program, as it is and with the layout that is suggested; and once
 * more with blocks visited in the order in which they lie, which then share lines. */
static void lines_are_of_where_blocks_begin(void **state)
{
    if (!have_command("valgrind") || !have_command("gcc"))
        SKIP("valgrind or gcc is missing");
    char *source = join_path(TEST_SOURCES, "programs/placement.c"), *counting = join_path(test_directory, "placement"),
         *profile = join_path(test_directory, "placement.hwprof"), *header = join_path(test_directory, "layout.h");
    char *plain[2] = {join_path(test_directory, "before"), join_path(test_directory, "after")}, variable[4096];
    const char *const build[] = {heapwise_path(), "cc", "--fields", "-O1", "-g", "-o", counting, source, NULL};
    compile_or_skip(build, "heapwise cc --fields");
    snprintf(variable, sizeof variable, "HEAPWISE_OPTIONS=output=%s", profile);
    const char *const environment[] = {variable, NULL};
    struct run_result ran =
        run((const char *const[]){counting, NULL}, &(const struct run_options){.environment = environment});
    assert_exit(&ran, 0, "placement");
    json_t *report = fields_of(profile);
    const json_t *rec = json_entry(report, "fields", "struct", "rec"),
                 *starts = json_object_get(json_object_get(rec, "objects"), "starts");
    if (strncmp(json_text(report, "process.allocator"), "glibc", 5))
        SKIP("the allocator is not glibc's");
    int64_t all = 0, most = 0;
    for (size_t i = 0; i < 8; i++) {
        const int64_t here = json_integer_value(json_array_get(starts, i));
        all += here;
        most = here > most ? here : most;
    }
    assert_int_equal(all, 20000);
    assert_int_equal(most, 20000);
    const char *begin = strrchr(strtok(strdup(ran.out), "\n"), ' '); /* what the program itself says */
    assert_int_equal(json_integer_value(json_array_get(starts, (size_t)atoi(begin) / 8)), 20000);

    FILE *file = fopen(header, "w");
    assert_non_null(file);
    fputs(json_text(rec, "suggestion.definition"), file);
    fclose(file);
    snprintf(variable, sizeof variable, "-I%s", test_directory);
    for (int after = 0; after < 2; after++) {
        const char *const compile[] = {"gcc", "-O1",        variable, after ? "-DLAYOUT" : "-UNOTHING",
                                       "-o",  plain[after], source,   NULL};
        compile_or_skip(compile, "gcc");
    }
    const json_t *finding = json_array_get(json_object_get(report, "findings"), 0);
    static const struct {
        const char *key, *argument;
    } orders[] = {{"gain_lines", NULL}, {"gain_lines_in_order", "in-order"}};
    for (size_t i = 0; i < 2; i++) {
        const double predicted = json_real_value(json_object_get(finding, orders[i].key)),
                     counted_gain = misses_of(plain[0], orders[i].argument) - misses_of(plain[1], orders[i].argument);
        if (fabs(predicted / counted_gain - 1) > 0.05)
            fail_msg("%s: predicted are %.0f lines less, counted %.0f", orders[i].key, predicted, counted_gain);
    }
    assert_contains(json_text(finding, "expected_gain"), "if blocks are visited in the order in which they lie");
    json_decref(report);
    run_result_free(&ran);
    for (int after = 0; after < 2; after++)
        free(plain[after]);
    free(source);
    free(counting);
    free(profile);
    free(header);
}

/* A search that leaves its loop early: what is counted apart (key, next, value) is one use of one item. */
static void a_search_is_one_use(void **state)
{
    static const char text[] =
        "#include <stdlib.h>\n"
        "struct item { long key; char pad[120]; long value; struct item *next; };\n"
        "__attribute__((noinline)) static long find(struct item *list, long key)\n"
        "{\n"
        "    for (struct item *at = list; at; at = at->next)\n"
        "        if (at->key == key)\n"
        "            return at->value;\n"
        "    return -1;\n"
        "}\n"
        "int main(void)\n"
        "{\n"
        "    struct item *list = NULL;\n"
        "    for (long i = 0; i < 1000; i++) {\n"
        "        struct item *one = calloc(1, sizeof *one);\n"
        "        one->key = i, one->value = i, one->next = list, list = one;\n"
        "    }\n"
        "    long sum = 0;\n"
        "    for (long i = 0; i < 100; i++)\n"
        "        sum += find(list, 10 * i);\n" /* 1000 - 10 i items each: 50,500; the last of them is the one */
        "    return sum != 49500;\n"
        "}\n";
    char *source = join_path(test_directory, "find.c"), *program = join_path(test_directory, "find");
    char *profile = join_path(test_directory, "find.hwprof"), variable[4096];
    FILE *file = fopen(source, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    const char *const build[] = {heapwise_path(), "cc", "--fields", "-O2", "-g", "-o", program, source, NULL};
    compile_or_skip(build, "heapwise cc --fields");
    snprintf(variable, sizeof variable, "HEAPWISE_OPTIONS=output=%s", profile);
    const char *const environment[] = {variable, NULL};
    const struct run_options options = {.environment = environment};
    struct run_result ran = run((const char *const[]){program, NULL}, &options);
    assert_int_equal(ran.code, 0);
    run_result_free(&ran);

    json_t *report = fields_of(profile);
    const json_t *uses = json_object_get(json_entry(report, "fields", "struct", "item"), "most_frequent_uses");
    const json_t *use = json_array_get(uses, 0), *fields = json_object_get(use, "fields");
    /* 50,500 times key, 50,400 times next, 100 times value: each of them in some of those before. */
    assert_int_equal(json_array_size(uses), 3);
    assert_int_equal(json_array_size(fields), 2);
    assert_string_equal(json_string_value(json_array_get(fields, 0)), "key");
    assert_string_equal(json_string_value(json_array_get(fields, 1)), "next");
    assert_true(json_real_value(json_object_get(use, "executions")) == 50400 - 100);
    use = json_array_get(uses, 1); /* and when the items were made */
    assert_int_equal(json_array_size(json_object_get(use, "fields")), 3);
    assert_true(json_real_value(json_object_get(use, "executions")) == 100 + 1000);
    json_decref(report);
    free(source);
    free(program);
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
    expect((const char *const[]){"fields", "--color=red", "x", NULL}, 2, "", "fields: --color does not know 'red'");
    expect((const char *const[]){"fields", "--struct", NULL}, 2, "", "fields: --struct needs a value");
    expect((const char *const[]){"fields", "--wrong", "x", NULL}, 2, "", "unknown option '--wrong'");
    expect((const char *const[]){"fields", "/does/not/exist", NULL}, 2, "", "/does/not/exist");
    expect((const char *const[]){"fields", heapwise_path(), NULL}, 2, "", "not a");
}

/* A program that was not built so: said, and the rest of the report is as ever. */
static void nothing_counted(void **state)
{
    const char *program = need_program("hello");
    struct recording recording = record_and_load((const char *const[]){program, NULL}, NULL);
    expect((const char *const[]){"fields", recording.files[0], NULL}, 0, "heapwise cc --fields", "");
    json_t *report = fields_of(recording.files[0]);
    assert_null(json_object_get(report, "fields"));
    assert_null(json_object_get(report, "findings"));
    assert_non_null(json_object_get(report, "process"));
    json_decref(report);
    recording_free(&recording);
}

TEST_LIST_WITH(make_test_directory, remove_test_directory, cmocka_unit_test(example_suggests_what_cachegrind_counts),
               cmocka_unit_test(lines_are_of_where_blocks_begin), cmocka_unit_test(a_search_is_one_use),
               cmocka_unit_test(usage), cmocka_unit_test(nothing_counted))
