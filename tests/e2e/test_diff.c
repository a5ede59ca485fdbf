/* test_diff.c - heapwise diff and heapwise check on two builds of one program: programs/growing.c says what has
 * changed.
 */
#include "support/check.h"
#include "support/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *directory, *old_file, *new_file;

static char *record(const char *name, const char *option, const char *program)
{
    char *path = join_path(directory, name);
    const char *const plain[] = {"record", "-f", "-o", path, "--", program, NULL};
    const char *const with[] = {"record", "-f", "-o", path, option, "--", program, NULL};
    struct run_result result = heapwise(option ? with : plain, NULL);
    assert_int_equal(result.code, 0);
    run_result_free(&result);
    return path;
}

static int make_place(void **state)
{
    const char *before = program_path("growing"), *after = program_path("growing-grown");
    assert_non_null(before);
    assert_non_null(after);
    directory = make_directory();
    old_file = record("old.hwprof", NULL, before);
    new_file = record("new.hwprof", NULL, after);
    return 0;
}

static int remove_place(void **state)
{
    free(old_file);
    free(new_file);
    remove_directory(directory);
    return 0;
}

static const json_t *place(const json_t *diff, size_t index, const char *function, const char *state, int64_t change)
{
    const json_t *object = json_array_get(json_object_get(diff, "places"), index);
    assert_non_null(object);
    assert_string_equal(json_text(object, "state"), state);
    assert_int_equal(json_number(object, "change"), change);
    assert_true(is_function(stack_function(object, 0), "keep") || is_function(stack_function(object, 0), function));
    assert_contains(stack_line(object), function);
    return object;
}

/* Every change, in order, and nothing else: not what has only moved, and not the other depth of recursion. */
static void test_changes(void **state)
{
    json_t *diff = json_of((const char *const[]){"diff", "--json", "--sort", "bytes", old_file, new_file, NULL}, 0);
    assert_int_equal(json_number(diff, "totals.old.bytes"), 430760);
    assert_int_equal(json_number(diff, "totals.new.bytes"), 465960);
    assert_int_equal(json_number(diff, "totals.old.count"), 212);
    assert_int_equal(json_number(diff, "totals.new.count"), 362);
    assert_int_equal(json_number(diff, "places_changed"), 4);
    const json_t *caches = place(diff, 0, "make_caches", "both", -204800);
    assert_int_equal(json_number(caches, "old.count"), 60);
    assert_int_equal(json_number(caches, "new.count"), 10);
    place(diff, 1, "make_buffers", "both", 200000);
    const json_t *extras = place(diff, 2, "make_extras", "appeared", 70000);
    assert_true(json_is_null(json_object_get(extras, "old")));
    assert_int_equal(json_number(extras, "old_contexts"), 0);
    const json_t *leftovers = place(diff, 3, "make_leftovers", "gone", -30000);
    assert_true(json_is_null(json_object_get(leftovers, "new")));
    assert_int_equal(json_array_size(json_object_get(diff, "notes")), 1); /* the names of the programs differ */
    json_decref(diff);
}

/* A program that was built anew since: its names are missing, and the comparison says so. */
static void test_names_missing(void **state)
{
    char *program = join_path(directory, "growing");
    const char *const copies[] = {program_path("growing"), program_path("growing-grown")};
    char *profiles[2];
    for (int i = 0; i < 2; i++) {
        struct run_result copied = run((const char *const[]){"cp", "-f", copies[i], program, NULL}, NULL);
        assert_exit(&copied, 0, "cp");
        run_result_free(&copied);
        profiles[i] = record(i ? "second.hwprof" : "first.hwprof", NULL, program);
    }
    json_t *diff = json_of((const char *const[]){"diff", "--json", profiles[0], profiles[1], NULL}, 0);
    const json_t *notes = json_object_get(diff, "notes");
    assert_int_equal(json_array_size(notes), 1);
    assert_contains(json_string_value(json_array_get(notes, 0)), "In the old profile the names are missing of ");
    assert_contains(json_string_value(json_array_get(notes, 0)), "growing: the file has changed since the run");
    json_decref(diff);
    diff = json_of((const char *const[]){"diff", "--json", profiles[1], profiles[1], NULL}, 0);
    assert_int_equal(json_array_size(json_object_get(diff, "notes")), 0);
    json_decref(diff);
    free(profiles[0]);
    free(profiles[1]);
    free(program);
}

static void test_no_change(void **state)
{
    json_t *diff = json_of((const char *const[]){"diff", "--json", old_file, old_file, NULL}, 0);
    assert_int_equal(json_number(diff, "places_changed"), 0);
    assert_int_equal(json_array_size(json_object_get(diff, "notes")), 0);
    json_decref(diff);
    struct run_result result = heapwise(
        (const char *const[]){"diff", "--max-increase", "0", "--max-increase", "bytes=0%", old_file, old_file, NULL},
        NULL);
    assert_exit(&result, 0, "no change");
    assert_contains(result.out, "0 of 5 places changed");
    run_result_free(&result);
}

static void assert_narrow(const char *text, size_t most)
{
    for (const char *line = text; *line;) {
        const size_t size = strcspn(line, "\n");
        size_t columns = 0;
        for (size_t i = 0; i < size; i++)
            columns += ((unsigned char)line[i] & 0xc0) != 0x80;
        if (columns > most)
            fail_msg("%zu columns: %.*s", columns, (int)size, line);
        line += size + (line[size] != '\0');
    }
}

static void test_text(void **state)
{
    struct run_result result =
        heapwise((const char *const[]){"diff", "--sort", "bytes", old_file, new_file, NULL}, NULL);
    assert_exit(&result, 0, "diff");
    assert_contains(result.out, "4 of 6 places changed; 1 appeared, 1 gone.");
    assert_contains(result.out, "make_caches");
    assert_contains(result.out, "-200.0 KiB");
    assert_contains(result.out, "+195.3 KiB");
    assert_lacks(result.out, "make_tables");
    assert_lacks(result.out, "descend");
    assert_lacks(result.out, "\033");
    /* the path of the file may be longer than a line */
    const char *places = strstr(result.out, "What changed");
    assert_non_null(places);
    assert_narrow(places, 80);
    run_result_free(&result);
    result = heapwise((const char *const[]){"diff", "--color=always", "--top", "1", old_file, new_file, NULL}, NULL);
    assert_exit(&result, 0, "diff --color");
    assert_contains(result.out, "\033[");
    assert_contains(result.out, "more places that changed");
    run_result_free(&result);
}

static void test_limits(void **state)
{
    static const struct {
        const char *limit;
        int code;
    } cases[] = {{"bytes=10%", 0},   {"bytes=5%", 1},  {"bytes=35200", 0},
                 {"bytes=35199", 1}, {"count=100", 1}, {"count=150", 0},
                 {"leaked=1M", 0},   {"70%", 0},       {"0", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct run_result result =
            heapwise((const char *const[]){"diff", "--max-increase", cases[i].limit, old_file, new_file, NULL}, NULL);
        assert_exit(&result, cases[i].code, cases[i].limit);
        assert_contains(result.out, cases[i].code ? "BROKEN" : "OK");
        if (cases[i].code)
            assert_contains(result.err, "grew by");
        run_result_free(&result);
    }
    json_t *diff = json_of((const char *const[]){"diff", "--json", "--max-increase", "bytes=5%", "--max-increase",
                                                 "count=1K", old_file, new_file, NULL},
                           1);
    const json_t *limits = json_object_get(diff, "limits");
    assert_true(json_is_true(json_object_get(json_array_get(limits, 0), "broken")));
    assert_true(json_is_false(json_object_get(json_array_get(limits, 1), "broken")));
    json_decref(diff);
}

static void test_sampled(void **state)
{
    char *sampled = record("sampled.hwprof", "--sample-bytes=4K", program_path("growing"));
    struct run_result result = heapwise((const char *const[]){"diff", sampled, new_file, NULL}, NULL);
    assert_exit(&result, 0, "diff of a sample");
    assert_contains(result.out, "The old profile was sampled");
    run_result_free(&result);
    result = heapwise((const char *const[]){"diff", "--sort", "temporary", sampled, new_file, NULL}, NULL);
    assert_exit(&result, 2, "temporary of a sample");
    assert_contains(result.err, "cannot be compared by temporary: the run was sampled");
    run_result_free(&result);
    /* far above, far below, and where the estimate does not tell */
    result = heapwise((const char *const[]){"check", "--max-peak", "10K", sampled, NULL}, NULL);
    assert_exit(&result, 1, "far above");
    assert_contains(result.out, "estimated to within");
    assert_contains(result.err, "values are estimates");
    run_result_free(&result);
    result = heapwise((const char *const[]){"check", "--max-peak", "10M", sampled, NULL}, NULL);
    assert_exit(&result, 0, "far below");
    run_result_free(&result);
    json_t *check = json_of((const char *const[]){"check", "-q", "--json", "--max-peak", "10M", sampled, NULL}, 0);
    char limit[32];
    const json_t *only = json_array_get(json_object_get(check, "checks"), 0);
    const int64_t value = json_number(only, "value"), uncertainty = json_number(only, "uncertainty");
    assert_true(uncertainty > 0 && llabs(value - 430760) < 4 * uncertainty); /* chance: one in thousands is at 2 */
    snprintf(limit, sizeof limit, "%lld", (long long)(value - uncertainty / 2));
    json_decref(check);
    result = heapwise((const char *const[]){"check", "--max-peak", limit, sampled, NULL}, NULL);
    assert_exit(&result, 0, "not for certain");
    assert_contains(result.out, "unsure");
    run_result_free(&result);
    free(sampled);
}

/* ---- check ---- */

static void test_check(void **state)
{
    struct run_result result =
        heapwise((const char *const[]){"check", "--max-peak", "1M", "--max-leaked", "1G", "--max-bytes", "465960",
                                       "--max-allocations", "362", new_file, NULL},
                 NULL);
    assert_exit(&result, 0, "kept");
    assert_lacks(result.out, "BROKEN");
    run_result_free(&result);
    result =
        heapwise((const char *const[]){"check", "--max-allocations", "361", "--max-peak", "1M", new_file, NULL}, NULL);
    assert_exit(&result, 1, "broken");
    assert_contains(result.out, "BROKEN      max-allocations: 362 allocations, more than 361");
    assert_contains(result.out, "make_buffers");
    assert_contains(result.out, "OK          max-peak");
    assert_narrow(result.out, 80);
    run_result_free(&result);
    result = heapwise((const char *const[]){"check", "-q", "--max-peak", "1M", new_file, NULL}, NULL);
    assert_exit(&result, 0, "quiet");
    assert_int_equal(result.out_size, 0);
    run_result_free(&result);
    json_t *check = json_of((const char *const[]){"check", "--json", "--max-bytes", "100000", new_file, NULL}, 1);
    const json_t *only = json_array_get(json_object_get(check, "checks"), 0);
    assert_string_equal(json_text(only, "verdict"), "broken");
    assert_int_equal(json_number(only, "value"), 465960);
    assert_int_equal(json_number(only, "limit"), 100000);
    assert_int_equal(json_number(json_array_get(json_object_get(only, "contexts"), 0), "value"), 300000);
    assert_int_equal(json_number(check, "broken"), 1);
    json_decref(check);
}

static void test_baseline(void **state)
{
    struct run_result result =
        heapwise((const char *const[]){"check", "--baseline", old_file, "--tolerance", "10", new_file, NULL}, NULL);
    assert_exit(&result, 1, "allocations have grown by 71 %");
    assert_contains(result.out, "OK          baseline: 455.0 KiB allocated");
    assert_contains(result.out, "BROKEN      baseline: 362 allocations");
    assert_contains(result.out, "+200");
    run_result_free(&result);
    result =
        heapwise((const char *const[]){"check", "--baseline", old_file, "--tolerance", "75%", new_file, NULL}, NULL);
    assert_exit(&result, 0, "75 %");
    run_result_free(&result);
    result = heapwise((const char *const[]){"check", "--baseline", old_file, old_file, NULL}, NULL);
    assert_exit(&result, 0, "itself");
    run_result_free(&result);
}

/* Values of the place with most of it, escaped as the commands want it. */
static void test_annotations(void **state)
{
    struct run_result result = heapwise(
        (const char *const[]){"check", "--github", "--max-bytes", "1K", "--max-peak", "1G", new_file, NULL}, NULL);
    assert_exit(&result, 1, "--github");
    const char *command = strstr(result.out, "\n::");
    assert_non_null(command);
    assert_memory_equal(command, "\n::error file=", 14);
    assert_contains(command, "growing.c,line=");
    assert_contains(command, ",title=heapwise max-bytes::455.0 KiB allocated, more than 1.0 KiB; most of it: ");
    assert_contains(command, "by make_buffers (growing.c:");
    assert_null(strstr(command + 3, "\n::"));
    run_result_free(&result);
}

/* ---- what goes wrong ---- */

static void test_wrong_arguments(void **state)
{
    assert_refused((const char *const[]){"diff", old_file, NULL}, "two files are compared");
    assert_refused((const char *const[]){"diff", NULL}, "which FILE?");
    assert_refused((const char *const[]){"diff", old_file, old_file, old_file, NULL}, "not 3");
    assert_refused((const char *const[]){"diff", "--sort", "size", old_file, new_file, NULL}, "does not know 'size'");
    assert_refused((const char *const[]){"diff", "--max-increase", "lots", old_file, new_file, NULL}, "not 'lots'");
    assert_refused((const char *const[]){"diff", "--max-increase", "weight=1", old_file, new_file, NULL},
                   "does not know 'weight'");
    assert_refused((const char *const[]){"diff", "--max-increase", "-5%", old_file, new_file, NULL}, "not '-5%'");
    assert_refused((const char *const[]){"diff", "--sort", "accesses", old_file, new_file, NULL},
                   "accesses were not counted");
    assert_refused((const char *const[]){"diff", old_file, "/nowhere", NULL}, "cannot open '/nowhere'");
    assert_refused((const char *const[]){"diff", "/nowhere", new_file, NULL}, "cannot open '/nowhere'");
    assert_refused((const char *const[]){"check", new_file, NULL}, "no limit was given");
    assert_refused((const char *const[]){"check", "--max-peak", "1M", NULL}, "which FILE?");
    assert_refused((const char *const[]){"check", "--max-peak", "many", new_file, NULL}, "not 'many'");
    assert_refused((const char *const[]){"check", "--tolerance", "5", "--max-peak", "1M", new_file, NULL},
                   "without --baseline");
    assert_refused((const char *const[]){"check", "--tolerance", "-1", "--baseline", old_file, new_file, NULL},
                   "takes a percentage");
    assert_refused((const char *const[]){"check", "--json", "--github", "--max-peak", "1M", new_file, NULL},
                   "exclude each other");
    assert_refused((const char *const[]){"check", "--max-peak", "1M", old_file, new_file, NULL}, "one FILE at a time");
    assert_refused((const char *const[]){"check", "--max-peak", "1M", "/nowhere", NULL}, "cannot open '/nowhere'");
    assert_refused((const char *const[]){"check", "--baseline", "/nowhere", new_file, NULL}, "cannot open '/nowhere'");
}

/* A file that was cut short is never taken for a whole one. */
static void test_cut_files(void **state)
{
    char *cut = join_path(directory, "cut.hwprof");
    struct stat status;
    assert_int_equal(stat(new_file, &status), 0);
    for (off_t size = 0; size < status.st_size; size += 1 + status.st_size / 9) {
        struct run_result result = run((const char *const[]){"cp", new_file, cut, NULL}, NULL);
        run_result_free(&result);
        assert_int_equal(truncate(cut, size), 0);
        result = heapwise((const char *const[]){"diff", old_file, cut, NULL}, NULL);
        assert_exit(&result, 2, "diff of a cut file");
        assert_true(result.err_size > 0);
        run_result_free(&result);
        result = heapwise((const char *const[]){"check", "--max-peak", "1G", cut, NULL}, NULL);
        assert_exit(&result, 2, "check of a cut file");
        assert_true(result.err_size > 0);
        run_result_free(&result);
    }
    free(cut);
}

/* ---- the allocator ---- */

static void assert_operations(const json_t *side, const char *file)
{
    static const char *const kinds[] = {"new", "reused", "free", "calloc", "realloc", "aligned"};
    json_t *report = json_of((const char *const[]){"report", "--json", file, NULL}, 0);
    int64_t all = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char path[64];
        snprintf(path, sizeof path, "by_kind.%s.count", kinds[i]);
        all += json_number(side, path);
    }
    assert_int_equal(all, json_number(side, "operations"));
    assert_int_equal(all, json_number(report, "totals.allocations") + json_number(report, "totals.frees") +
                              json_number(report, "totals.reallocations"));
    assert_int_equal(json_number(side, "memory_at_peak.real"), json_number(report, "allocator.memory_at_peak.real"));
    assert_string_equal(json_text(side, "memory"), json_text(report, "allocator.verdict.memory"));
    json_decref(report);
}

static void test_allocator(void **state)
{
    static const char *const names[] = {"old", "new"}, *const runs[] = {"quiet", "holes"};
    char *files[2];
    if (!program_path("verdict"))
        SKIP("verdict was not built");
    for (int i = 0; i < 2; i++) {
        files[i] = join_path(directory, names[i]);
        struct run_result result =
            heapwise((const char *const[]){"record", "-q", "-f", "--mode=allocator", "--no-prediction", "-o", files[i],
                                           "--", program_path("verdict"), runs[i], NULL},
                     NULL);
        assert_exit(&result, 0, runs[i]);
        run_result_free(&result);
    }
    json_t *diff = json_of((const char *const[]){"diff", "--json", files[0], files[1], NULL}, 0);
    const json_t *allocator = json_object_get(diff, "allocator");
    for (int i = 0; i < 2; i++)
        assert_operations(json_object_get(allocator, names[i]), files[i]);
    const bool glibc = strncmp(json_text(diff, "new.allocator"), "glibc", 5) == 0;
    assert_true(json_is_real(json_object_get(allocator, "seconds_change_error")));
    assert_int_equal(json_number(allocator, "new.by_kind.free.count"), 150000);
    json_decref(diff);
    struct run_result result = heapwise((const char *const[]){"diff", files[0], files[1], NULL}, NULL);
    assert_exit(&result, 0, "diff");
    assert_contains(result.out, "The allocator\n");
    assert_contains(result.out, "estimates in allocator mode");
    if (glibc) {
        assert_contains(result.out, "somewhat");
        const char *causes = strstr(result.out, "new: "); /* on a slow machine there may be others before it */
        assert_non_null(causes);
        assert_contains(causes, "external");
    }
    run_result_free(&result);
    /* Of one side alone nothing is compared. */
    diff = json_of((const char *const[]){"diff", "--json", old_file, files[1], NULL}, 0);
    assert_null(json_object_get(diff, "allocator"));
    json_decref(diff);
    free(files[0]);
    free(files[1]);
}

/* ---- the width of the page ---- */

static void test_columns(void **state)
{
    static const struct {
        const char *columns;
        size_t width;
    } cases[] = {{"COLUMNS=100", 100}, {"COLUMNS=500", 500}, {"COLUMNS=80", 80}, {"COLUMNS=x", 80}, {"COLUMNS", 80}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const environment[] = {cases[i].columns, "LC_ALL=C", NULL};
        struct run_result result = heapwise((const char *const[]){"report", new_file, NULL},
                                            &(struct run_options){.environment = environment});
        assert_exit(&result, 0, "report");
        const char *rule = strchr(result.out, '\n') + 1; /* below the title */
        assert_int_equal(strspn(rule, "="), cases[i].width);
        run_result_free(&result);
    }
}

TEST_LIST_WITH(make_place, remove_place, cmocka_unit_test(test_changes), cmocka_unit_test(test_names_missing),
               cmocka_unit_test(test_no_change), cmocka_unit_test(test_text), cmocka_unit_test(test_limits),
               cmocka_unit_test(test_sampled), cmocka_unit_test(test_check), cmocka_unit_test(test_baseline),
               cmocka_unit_test(test_annotations), cmocka_unit_test(test_wrong_arguments),
               cmocka_unit_test(test_cut_files), cmocka_unit_test(test_columns), cmocka_unit_test(test_allocator))
