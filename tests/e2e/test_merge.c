/* test_merge.c - heapwise merge on files of real runs: sums are those of the reports, bad files stop it or are skipped,
 * and what llvm-profdata drops of clang's files is kept. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *directory;

static int set_up(void **state)
{
    directory = make_directory();
    return 0;
}

static int tear_down(void **state)
{
    remove_directory(directory);
    return 0;
}

static char *in_directory(const char *name)
{
    return join_path(directory, name);
}

/* heapwise merge -f -o NAME ARGUMENTS…; fails the test unless it ends with CODE. The path of NAME. */
static char *merge(const char *name, const char *const arguments[], int code, struct run_result *result)
{
    const char *argv[600] = {heapwise_path(), "merge", "-f", "-o"};
    char *path = in_directory(name);
    size_t count = 5;
    argv[4] = path;
    while (*arguments)
        argv[count++] = *arguments++;
    struct run_result own = run(argv, NULL);
    if (own.code != code)
        fail_msg("%s: ended with %d, should be %d: %s", run_describe(argv), own.code, code, own.err);
    if (result)
        *result = own;
    else
        run_result_free(&own);
    return path;
}

static char *contents(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s was not written", path);
    char *bytes = malloc(10 << 20);
    *size = fread(bytes, 1, 10 << 20, file);
    fclose(file);
    return bytes;
}

static void assert_same_files(const char *one, const char *other)
{
    size_t sizes[2];
    char *bytes[2] = {contents(one, &sizes[0]), contents(other, &sizes[1])};
    if (sizes[0] != sizes[1] || memcmp(bytes[0], bytes[1], sizes[0]))
        fail_msg("%s and %s differ", one, other);
    free(bytes[0]);
    free(bytes[1]);
}

/* Files of COUNT runs of PROGRAM with forked children. */
static char **record_runs(const char *program, const char *argument, int count, size_t *files)
{
    char *folder = in_directory(program);
    char pattern[600];
    snprintf(pattern, sizeof pattern, "%s.%%e.%%p.%%n.hwprof", folder);
    for (int i = 0; i < count; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i + 1);
        const char *const argv[] = {
            heapwise_path(), "record", "-q", "-o", pattern, "--", program_path(program), argument ? argument : number,
            number,          NULL};
        struct run_result result = run(argv, NULL);
        run_result_free(&result);
    }
    free(folder);
    return list_files(directory, ".hwprof", files);
}

/* ---- sums ---- */

/* The stack by modules and offsets. */
static char *key_of(const json_t *context)
{
    json_t *stack = json_object_get(context, "stack"), *frame;
    char *key = calloc(1, 40000), *end = key;
    size_t index;
    json_array_foreach(stack, index, frame)
    {
        if (end - key > 39000)
            break;
        end += sprintf(end, "%s+%lld ", json_text(frame, "module"), (long long)json_number_or_none(frame, "offset"));
    }
    sprintf(end, "%d", json_is_true(json_object_get(context, "pool")));
    return key;
}

static const char *const summed[] = {"allocations",
                                     "frees",
                                     "reallocations",
                                     "temporary",
                                     "bytes",
                                     "live_bytes",
                                     "live_allocations",
                                     "peak_allocations",
                                     "peak_bytes",
                                     "migrated_cpu",
                                     "threads",
                                     "free_threads",
                                     "lifetime_overlaps",
                                     "same_alloc_cpu",
                                     "same_free_cpu"};
enum { SUMMED = sizeof summed / sizeof *summed };

struct context_sum {
    char *key;
    int64_t value[SUMMED], size_min, size_max, lifetime;
};

struct sums_of {
    struct context_sum *sum;
    size_t count;
};

/* Sums over the contexts of a report, by stack. */
static void add_report(struct sums_of *sums, const json_t *report)
{
    json_t *context;
    size_t index;
    json_array_foreach(json_object_get(report, "contexts"), index, context)
    {
        char *key = key_of(context);
        size_t i = 0;
        while (i < sums->count && strcmp(sums->sum[i].key, key))
            i++;
        if (i == sums->count) {
            sums->sum = realloc(sums->sum, ++sums->count * sizeof *sums->sum);
            sums->sum[i] = (struct context_sum){.key = strdup(key), .size_min = INT64_MAX};
        }
        struct context_sum *sum = &sums->sum[i];
        for (size_t k = 0; k < SUMMED; k++)
            sum->value[k] += json_number(context, summed[k]);
        const int64_t least = json_number_or_none(context, "size.min"), most = json_number_or_none(context, "size.max"),
                      lifetime = json_number_or_none(context, "lifetime_ns.total");
        if (json_number(context, "allocations")) {
            sum->size_min = least < sum->size_min ? least : sum->size_min;
            sum->size_max = most > sum->size_max ? most : sum->size_max;
        }
        sum->lifetime += lifetime == INT64_MIN ? 0 : lifetime;
        free(key);
    }
}

static void assert_sums_equal(const struct sums_of *expected, const struct sums_of *actual)
{
    assert_int_equal(expected->count, actual->count);
    for (size_t i = 0; i < expected->count; i++) {
        size_t k = 0;
        while (k < actual->count && strcmp(expected->sum[i].key, actual->sum[k].key))
            k++;
        if (k == actual->count)
            fail_msg("the merged profile lacks the stack %s", expected->sum[i].key);
        for (size_t v = 0; v < SUMMED; v++)
            if (expected->sum[i].value[v] != actual->sum[k].value[v])
                fail_msg("%s of %s: %lld, should be %lld", summed[v], expected->sum[i].key,
                         (long long)actual->sum[k].value[v], (long long)expected->sum[i].value[v]);
        assert_int_equal(expected->sum[i].size_min, actual->sum[k].size_min);
        assert_int_equal(expected->sum[i].size_max, actual->sum[k].size_max);
        assert_int_equal(expected->sum[i].lifetime, actual->sum[k].lifetime);
    }
}

static void free_sums(struct sums_of *sums)
{
    for (size_t i = 0; i < sums->count; i++)
        free(sums->sum[i].key);
    free(sums->sum);
}

/* The merged file says what the reports of all files say together, wherever the modules were loaded; the same bytes
 * come of any order, any number of threads, and any grouping. */
static void check_sums(const char *program, const char *argument)
{
    static const char *const totals[] = {"allocations", "frees",      "bytes_allocated",
                                         "peak_bytes",  "live_bytes", "threads"};
    size_t count;
    struct sums_of expected = {0}, actual = {0};
    int64_t sum[6] = {0};
    char **files = record_runs(program, argument, 3, &count);
    assert_true(count >= 3 && count < 500);
    for (size_t i = 0; i < count; i++) {
        json_t *report = load_report(files[i], 0);
        add_report(&expected, report);
        for (size_t k = 0; k < 6; k++) {
            char path[64];
            snprintf(path, sizeof path, "totals.%s", totals[k]);
            sum[k] += json_number(report, path);
        }
        json_decref(report);
    }
    char *whole = merge("whole", (const char *const *)files, 0, NULL);
    json_t *report = load_report(whole, 0);
    add_report(&actual, report);
    assert_sums_equal(&expected, &actual);
    for (size_t k = 0; k < 6; k++) {
        char path[64];
        snprintf(path, sizeof path, "totals.%s", totals[k]);
        assert_int_equal(json_number(report, path), sum[k]);
    }
    assert_int_equal(json_number(report, "process.runs"), count);
    assert_string_equal(json_text(report, "process.state"), "merged");
    assert_true(json_is_null(json_object_get(json_object_get(report, "process"), "pid")));
    assert_true(json_is_null(json_object_get(json_object_get(report, "totals"), "peak_time_ns")));
    assert_true(report_says(report, "sum of the processes' own peaks"));
    json_decref(report);
    const char *backwards[600] = {"-j1"};
    for (size_t i = 0; i < count; i++)
        backwards[1 + i] = files[count - 1 - i];
    char *other = merge("other", backwards, 0, NULL);
    assert_same_files(whole, other);
    char *first = merge("first", (const char *const[]){files[1], files[2], NULL}, 0, NULL);
    const char *grouped[600] = {files[0], first};
    for (size_t i = 3; i < count; i++)
        grouped[i - 1] = files[i];
    char *by_groups = merge("groups", grouped, 0, NULL);
    assert_same_files(whole, by_groups);
    free(whole);
    free(other);
    free(first);
    free(by_groups);
    free_list(files);
    free_sums(&expected);
    free_sums(&actual);
}

static void test_sums_of_runs(void **state)
{
    check_sums("hello", NULL);
}

static void test_sums_of_forked_children(void **state)
{
    check_sums("processes", "fork");
}

/* ---- bad files ---- */

static void test_bad_files(void **state)
{
    size_t count;
    char **files = record_runs("hello", NULL, 2, &count), *text = in_directory("text"), *cut = in_directory("cut");
    struct run_result result;
    assert_true(count >= 2);
    FILE *file = fopen(text, "w");
    fputs("no profile\n", file);
    fclose(file);
    size_t size;
    char *bytes = contents(files[0], &size);
    file = fopen(cut, "w");
    fwrite(bytes, 1, size / 2, file);
    fclose(file);
    free(bytes);
    const char *const bad[] = {text, cut, "/nonexistent", directory};
    for (size_t i = 0; i < 4; i++) {
        char *path = merge("none", (const char *const[]){files[0], bad[i], files[1], NULL}, 2, &result);
        assert_contains(result.err, bad[i]);
        assert_int_equal(access(path, F_OK), -1);
        run_result_free(&result);
        free(path);
    }
    char *good = merge("good", (const char *const[]){files[0], files[1], NULL}, 0, NULL);
    char *rest = merge("rest", (const char *const[]){"--keep-going", text, files[0], cut, directory, files[1], NULL}, 0,
                       &result);
    assert_same_files(good, rest);
    assert_contains(result.err, "merged 2 profiles, skipped 3: wrote ");
    run_result_free(&result);
    free(rest);
    rest = merge("nothing", (const char *const[]){"--keep-going", text, cut, NULL}, 2, &result);
    assert_contains(result.err, "no profile is left");
    assert_int_equal(access(rest, F_OK), -1);
    run_result_free(&result);
    /* What exists is left alone, also when it is one of the files; -f writes it aside first. */
    const char *const over[] = {heapwise_path(), "merge", "-o", good, good, files[0], NULL};
    result = run(over, NULL);
    assert_int_equal(result.code, 2);
    assert_contains(result.err, "exists already");
    run_result_free(&result);
    free(merge("good", (const char *const[]){good, files[0], NULL}, 0, NULL));
    json_t *report = load_report(good, 0);
    assert_int_equal(json_number(report, "process.runs"), 3);
    json_decref(report);
    free(rest);
    free(good);
    free(text);
    free(cut);
    free_list(files);
}

/* Names in a list, and a list on standard input. */
static void test_lists(void **state)
{
    size_t count;
    char **files = record_runs("hello", NULL, 2, &count), *list = in_directory("list"), *at = NULL, *text = NULL;
    FILE *file = fopen(list, "w");
    fprintf(file, "%s\n\n%s\n", files[0], files[1]);
    fclose(file);
    char *good = merge("good", (const char *const[]){files[0], files[1], NULL}, 0, NULL);
    assert_true(asprintf(&at, "@%s", list) > 0);
    char *listed = merge("listed", (const char *const[]){at, NULL}, 0, NULL);
    assert_same_files(good, listed);
    assert_true(asprintf(&text, "%s\n%s\n", files[1], files[0]) > 0);
    const char *const argv[] = {heapwise_path(), "merge", "-f", "-o", listed, "--inputs", "-", NULL};
    struct run_result result = run(argv, &(struct run_options){.input = text});
    assert_int_equal(result.code, 0);
    assert_same_files(good, listed);
    run_result_free(&result);
    free(good);
    free(listed);
    free(list);
    free(at);
    free(text);
    free_list(files);
}

/* ---- LLVM's files ---- */

static size_t count_of(const char *text, const char *word)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        count++;
    return count;
}

static int64_t allocations_of(const char *file, int64_t *contexts)
{
    json_t *report = load_report(file, 0);
    const int64_t allocations = json_number(report, "totals.allocations");
    *contexts = json_number(report, "totals.contexts");
    json_decref(report);
    return allocations;
}

/* Of several raw profiles llvm-profdata 22 keeps the first; heapwise merge adds up all of them. */
static void test_clang_raw_profiles(void **state)
{
    enum { RUNS = 4 };
    const char *program = program_path("llvm-memprof");
    if (!program || !have_command("llvm-profdata-22"))
        SKIP("clang++-22 -fmemory-profile or llvm-profdata-22 is missing");
    char *raw[RUNS + 1] = {NULL}, *lossy = in_directory("lossy.profdata"), *exported = in_directory("sum.profraw"),
                     *complete = in_directory("complete.profdata");
    int64_t allocations = 0, contexts, most = 0;
    for (int i = 0; i < RUNS; i++) {
        char folder[32], option[700], *path;
        snprintf(folder, sizeof folder, "run%d", i);
        path = in_directory(folder);
        snprintf(option, sizeof option, "MEMPROF_OPTIONS=log_path=%s", path);
        const char *const argv[] = {program, NULL}, *const environment[] = {option, NULL};
        struct run_result result = run(argv, &(struct run_options){.environment = environment});
        run_result_free(&result);
        size_t count;
        char **found = list_files(directory, "", &count);
        for (size_t k = 0; k < count; k++)
            if (!strncmp(found[k], path, strlen(path)) && !raw[i])
                raw[i] = strdup(found[k]);
        if (!raw[i])
            SKIP("clang's runtime wrote no profile");
        allocations += allocations_of(raw[i], &contexts);
        most = contexts > most ? contexts : most;
        free_list(found);
        free(path);
    }
    char *sum = merge("sum.hwprof", (const char *const *)raw, 0, NULL);
    assert_int_equal(allocations_of(sum, &contexts), allocations);
    assert_true(contexts >= most);
    /* The same by llvm-profdata: from all files at once the others are dropped; from ours none is. */
    const char *const merge_all[] = {"llvm-profdata-22",
                                     "merge",
                                     "--memprof-full-schema",
                                     "--profiled-binary",
                                     program,
                                     "-j",
                                     "1",
                                     "-o",
                                     lossy,
                                     raw[0],
                                     raw[1],
                                     raw[2],
                                     raw[3],
                                     NULL};
    struct run_result result = run(merge_all, NULL);
    assert_int_equal(result.code, 0);
    run_result_free(&result);
    const char *const export[] = {heapwise_path(), "export", "-q", "--format", "memprofraw", "-o", exported, sum, NULL};
    result = run(export, NULL);
    assert_int_equal(result.code, 0);
    run_result_free(&result);
    const char *const merge_one[] = {
        "llvm-profdata-22", "merge", "--memprof-full-schema", "--profiled-binary", program, "-o", complete,
        exported,           NULL};
    result = run(merge_one, NULL);
    assert_int_equal(result.code, 0);
    run_result_free(&result);
    int64_t kept, whole, lossy_contexts;
    kept = allocations_of(lossy, &lossy_contexts);
    whole = allocations_of(complete, &contexts);
    /* llvm-profdata leaves out allocations of system libraries: so in both. */
    assert_true(whole >= 3 * kept);
    for (int i = 0; i < RUNS; i++)
        free(raw[i]);
    free(lossy);
    free(exported);
    free(complete);
    free(sum);
}

/* ---- mpirun ---- */

static const struct run_options as_root = {
    .environment = (const char *const[]){"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", NULL},
    .timeout_s = 60};

static void need_mpirun(void)
{
    char path[600];
    snprintf(path, sizeof path, "%.500s/../lib/heapwise/heapwise-merge-mpi", heapwise_path());
    char *slash = strstr(path, "/bin/heapwise/..");
    if (slash)
        memmove(slash, slash + strlen("/bin/heapwise/.."), strlen(slash + strlen("/bin/heapwise/..")) + 1);
    if (!have_command("mpirun") || access(path, X_OK) != 0)
        SKIP("no mpirun, or built without MPI");
}

/* What was observed of allocators adds up to the same bytes, whoever adds up which part first. */
static void test_mpirun_allocator(void **state)
{
    static const char *const runs[][3] = {{"operations", "threads", "3"}, {"operations", "fork", NULL},
                                          {"operations", "kinds", NULL},  {"operations", "reset", NULL},
                                          {"verdict", "holes", NULL},     {"hello", "0", NULL}};
    size_t count;
    need_mpirun();
    char *pattern = in_directory("%e.%p.hwprof");
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        const bool heap = strcmp(runs[i][0], "hello") == 0;
        const char *const argv[] = {heapwise_path(),
                                    "record",
                                    "-q",
                                    heap ? "--mode=heap" : "--mode=allocator",
                                    heap ? "-q" : "--no-prediction",
                                    "-o",
                                    pattern,
                                    "--",
                                    program_path(runs[i][0]),
                                    runs[i][1],
                                    runs[i][2],
                                    NULL};
        struct run_result result = run(argv, NULL);
        assert_exit(&result, 0, runs[i][1]);
        run_result_free(&result);
    }
    free(pattern);
    char **files = list_files(directory, ".hwprof", &count);
    assert_int_equal(count, 7);
    char *good = merge("good", (const char *const *)files, 0, NULL), *by_ranks = in_directory("ranks");
    const char *argv[40] = {"mpirun", "--oversubscribe", "-n", "3", heapwise_path(), "merge", "-o", by_ranks};
    for (size_t i = 0; i < count; i++)
        argv[8 + i] = files[i];
    struct run_result result = run(argv, &as_root);
    if (result.code)
        fail_msg("mpirun: %s", result.err);
    assert_same_files(good, by_ranks);
    run_result_free(&result);
    json_t *report = load_report(by_ranks, 0);
    int64_t allocations = 0;
    assert_int_equal(json_number(report, "process.runs"), 7);
    assert_int_equal(json_number(report, "allocator.runs"), 6);
    for (size_t i = 0; i < count; i++) {
        json_t *one = load_report(files[i], 0);
        allocations += json_number(one, "totals.allocations");
        json_decref(one);
    }
    assert_int_equal(json_number(report, "totals.allocations"), allocations);
    /* What memory is wasted is told of the runs in which that is known: of the last one it is. */
    if (strncmp(json_text(report, "process.allocator"), "glibc", 5) == 0) {
        const int64_t known = json_number(report, "allocator.verdict.memory_runs");
        assert_true(known >= 1 && known <= 6);
        assert_true(json_real_value(json_object_get(json_object_get(json_object_get(report, "allocator"), "verdict"),
                                                    "memory_share")) > 0.2);
    }
    json_decref(report);
    free(by_ranks);
    free(good);
    free_list(files);
}

static void test_mpirun(void **state)
{
    const struct run_options options = as_root;
    size_t count;
    need_mpirun();
    char **files = record_runs("hello", NULL, 5, &count), *by_ranks = in_directory("ranks"),
         *local = in_directory("local");
    char *good = merge("good", (const char *const *)files, 0, NULL);
    const char *argv[600] = {"mpirun", "--oversubscribe", "-n", "3", heapwise_path(), "merge", "-o", by_ranks};
    for (size_t i = 0; i < count; i++)
        argv[8 + i] = files[i];
    struct run_result result = run(argv, &options);
    if (result.code)
        fail_msg("mpirun: %s", result.err);
    assert_same_files(good, by_ranks);
    assert_contains(result.err, "merged 5 profiles");
    run_result_free(&result);
    /* A bad file in the part of one rank ends all of them. */
    argv[7] = local;
    argv[8 + count] = "/nonexistent";
    result = run(argv, &options);
    assert_false(result.timed_out);
    assert_int_equal(result.code, 2);
    assert_int_equal(count_of(result.err, "cannot open '/nonexistent'"), 1);
    assert_int_equal(access(local, F_OK), -1);
    run_result_free(&result);
    argv[6] = "--keep-going";
    argv[7] = "-o";
    argv[8] = local;
    for (size_t i = 0; i < count; i++)
        argv[9 + i] = files[i];
    argv[9 + count] = "/nonexistent";
    result = run(argv, &options);
    assert_int_equal(result.code, 0);
    assert_same_files(good, local);
    assert_contains(result.err, "merged 5 profiles, skipped 1");
    run_result_free(&result);
    /* Each rank its own. */
    const char *const own[] = {"mpirun", "--oversubscribe", "-n", "2",      heapwise_path(), "merge",
                               "-f",     "--local",         "-o", by_ranks, files[0],        NULL};
    result = run(own, &options);
    assert_int_equal(result.code, 0);
    json_t *report = load_report(by_ranks, 0);
    assert_int_equal(json_number(report, "process.runs"), 2);
    json_decref(report);
    run_result_free(&result);
    free(by_ranks);
    free(local);
    free(good);
    free_list(files);
}

TEST_LIST(cmocka_unit_test_setup_teardown(test_sums_of_runs, set_up, tear_down),
          cmocka_unit_test_setup_teardown(test_sums_of_forked_children, set_up, tear_down),
          cmocka_unit_test_setup_teardown(test_bad_files, set_up, tear_down),
          cmocka_unit_test_setup_teardown(test_lists, set_up, tear_down),
          cmocka_unit_test_setup_teardown(test_clang_raw_profiles, set_up, tear_down),
          cmocka_unit_test_setup_teardown(test_mpirun, set_up, tear_down),
          cmocka_unit_test_setup_teardown(test_mpirun_allocator, set_up, tear_down))
