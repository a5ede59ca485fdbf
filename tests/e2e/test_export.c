/* test_export.c - heapwise export in formats of other people's tools. Every file is read by a reader that is not
 * Heapwise's (tests/exports/check.mjs) and compared with the report of the same profile. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const formats[] = {"pprof", "dhat", "collapsed", "speedscope", "sqlite", "csv", NULL};
static char *directory, *plain, *plain_report;

static char *keep_report(const char *profile, const char *name)
{
    char *path = join_path(directory, name);
    struct run_result result = heapwise((const char *const[]){"report", "--json", profile, NULL}, NULL);
    assert_exit(&result, 0, "report --json");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(result.out, 1, result.out_size, file), result.out_size);
    assert_int_equal(fclose(file), 0);
    run_result_free(&result);
    return path;
}

/* Records ARGV into DIRECTORY/NAME. */
static char *record(const char *name, const char *const options[], const char *const argv[])
{
    const char *arguments[32] = {"record", "-f", "-o", NULL};
    char *path = join_path(directory, name);
    size_t count = 4;
    arguments[3] = path;
    for (size_t i = 0; options && options[i]; i++)
        arguments[count++] = options[i];
    arguments[count++] = "--";
    for (size_t i = 0; argv[i]; i++)
        arguments[count++] = argv[i];
    arguments[count] = NULL;
    struct run_result result = heapwise(arguments, NULL);
    assert_int_equal(result.code, 0);
    run_result_free(&result);
    return path;
}

static int make_place(void **state)
{
    const char *program = program_path("new");
    directory = make_directory();
    if (!program)
        program = "/bin/ls";
    plain = record("plain.hwprof", NULL, (const char *const[]){program, NULL});
    plain_report = keep_report(plain, "plain.json");
    return 0;
}

static int remove_place(void **state)
{
    free(plain);
    free(plain_report);
    remove_directory(directory);
    return 0;
}

static void need_readers(void)
{
    if (!have_command("node") || access(TEST_SOURCES "/exports/node_modules/pprof-format", R_OK) != 0)
        SKIP("the readers are not installed (scripts/setup test)");
}

/* Exports whole stacks, as JSON has them, and has the other reader compare. */
static void check(const char *format, const char *profile, const char *report, const char *key)
{
    char *out = join_path(directory, "exported");
    const char *const argv[] = {
        "export", "--format", format, "--no-fold", "-f", "-q", "-o", out, key ? "--value" : profile,
        key,      profile,    NULL};
    struct run_result result = heapwise(argv, NULL);
    assert_exit(&result, 0, format);
    assert_string_equal(result.err, "");
    run_result_free(&result);
    const char *const reader[] = {"node", TEST_SOURCES "/exports/check.mjs", format, out, report, key, NULL};
    result = run(reader, NULL);
    if (result.code != 0)
        fail_msg("%s of %s: %s%s", format, profile, result.out, result.err);
    run_result_free(&result);
    free(out);
}

static void check_all(const char *profile, const char *report)
{
    need_readers();
    for (size_t i = 0; formats[i]; i++)
        check(formats[i], profile, report, !strcmp(formats[i], "collapsed") ? "bytes" : NULL);
}

/* ---- what is exported ---- */

static void test_heap(void **state)
{
    check_all(plain, plain_report);
}

static void test_values(void **state)
{
    static const char *const keys[] = {"peak",      "peak-count", "count",          "leaked",
                                       "temporary", "realloc",    "total-lifetime", NULL};
    need_readers();
    for (size_t i = 0; keys[i]; i++)
        check("collapsed", plain, plain_report, keys[i]);
    check("pprof", plain, plain_report, "count");
    check("speedscope", plain, plain_report, "leaked");
    /* the keys of the JSON report are understood, too */
    struct run_result one = heapwise(
                          (const char *const[]){"export", "--format", "collapsed", "--value", "leaked", plain, NULL},
                          NULL),
                      other = heapwise((const char *const[]){"export", "--format", "collapsed", "--value", "live_bytes",
                                                             plain, NULL},
                                       NULL);
    assert_exit(&one, 0, "leaked");
    assert_string_equal(one.out, other.out);
    run_result_free(&one);
    run_result_free(&other);
}

/* Keys that meant several things have new ones; the old ones work and say so. */
static void test_old_keys(void **state)
{
    static const struct {
        const char *verb, *option, *old, *now;
    } keys[] = {{"export", "--value", "lifetime", "total-lifetime"},
                {"report", "--sort", "lifetime", "mean-lifetime"},
                {"report", "--section", "shared", "sharing"},
                {"report", "--sort", "utilization", "untouched"},
                {"diff", "--sort", "lifetime", "total-lifetime"}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const bool export = !strcmp(keys[i].verb, "export"), diff = !strcmp(keys[i].verb, "diff");
        char said[100];
        snprintf(said, sizeof said, "heapwise: %s: '%s' is now called '%s'\n", keys[i].verb, keys[i].old, keys[i].now);
        char *out[2];
        for (int old = 0; old < 2; old++) {
            const char *const argv[] = {keys[i].verb,
                                        keys[i].option,
                                        old ? keys[i].old : keys[i].now,
                                        export ? "--format=collapsed" : "--color=never",
                                        plain,
                                        diff ? plain : NULL,
                                        NULL};
            struct run_result result = heapwise(argv, NULL);
            assert_exit(&result, 0, keys[i].old);
            assert_string_equal(result.err, old ? said : "");
            out[old] = result.out;
            free(result.err);
        }
        assert_string_equal(out[0], out[1]);
        free(out[0]);
        free(out[1]);
    }
}

static void test_sampled(void **state)
{
    const char *program = need_program("workload");
    char *profile = record("sampled.hwprof", (const char *const[]){"--sample-bytes=16K", NULL},
                           (const char *const[]){program, "2", "20000", NULL});
    char *report = keep_report(profile, "sampled.json");
    check_all(profile, report);
    struct run_result result = heapwise((const char *const[]){"export", "--format", "csv", profile, NULL}, NULL);
    assert_exit(&result, 0, "csv");
    assert_contains(result.err, "estimates");
    run_result_free(&result);
    result =
        heapwise((const char *const[]){"export", "--format", "collapsed", "--value", "temporary", profile, NULL}, NULL);
    assert_exit(&result, 2, "temporary of a sample");
    assert_contains(result.err, "the run was sampled");
    run_result_free(&result);
    free(profile);
    free(report);
}

static void test_merged(void **state)
{
    char *merged = join_path(directory, "merged.hwprof");
    struct run_result result =
        heapwise((const char *const[]){"merge", "-q", "-f", "-o", merged, plain, plain, NULL}, NULL);
    assert_exit(&result, 0, "merge");
    run_result_free(&result);
    char *report = keep_report(merged, "merged.json");
    check_all(merged, report);
    free(merged);
    free(report);
}

static void test_accesses(void **state)
{
    static const char *const programs[] = {"access", "access-8", NULL};
    for (size_t i = 0; programs[i]; i++) {
        const char *program = need_program(programs[i]);
        char *profile = record("access.hwprof", NULL, (const char *const[]){program, "types", "0", "0", NULL});
        char *report = keep_report(profile, "access.json");
        check_all(profile, report);
        check("collapsed", profile, report, "accesses");
        check("collapsed", profile, report, "untouched");
        free(profile);
        free(report);
    }
}

/* go tool pprof, where it is installed: the format's own reader. */
static void test_go_pprof(void **state)
{
    char *out = join_path(directory, "go.pb.gz");
    if (!have_command("go"))
        SKIP("there is no go");
    struct run_result result =
        heapwise((const char *const[]){"export", "--format", "pprof", "-f", "-o", out, plain, NULL}, NULL);
    assert_exit(&result, 0, "pprof");
    run_result_free(&result);
    const char *const environment[] = {"HOME=/tmp", "GOFLAGS=-mod=mod", NULL};
    result = run((const char *const[]){"go", "tool", "pprof", "-sample_index=alloc_space", "-unit=B", "-top",
                                       "-nodecount=1000000", "-nodefraction=0", out, NULL},
                 &(struct run_options){.environment = environment});
    assert_exit(&result, 0, "go tool pprof");
    assert_contains(result.out, "Type: alloc_space");
    char total[64];
    json_t *report = json_load_file(plain_report, 0, NULL);
    snprintf(total, sizeof total, "of %lldB total", (long long)json_number(report, "totals.bytes_allocated"));
    assert_contains(result.out, total);
    json_decref(report);
    run_result_free(&result);
    free(out);
}

/* ---- where it goes ---- */

static void test_output(void **state)
{
    char *out = join_path(directory, "output.csv"), *nowhere = join_path(directory, "nowhere/output.csv");
    struct run_result result =
        heapwise((const char *const[]){"export", "--format", "csv", "-o", out, plain, NULL}, NULL);
    assert_exit(&result, 0, "-o");
    assert_int_equal(result.out_size, 0);
    run_result_free(&result);
    result = heapwise((const char *const[]){"export", "--format", "csv", "-o", out, plain, NULL}, NULL);
    assert_exit(&result, 2, "a file that exists");
    assert_contains(result.err, "exists already (-f overwrites it)");
    run_result_free(&result);
    result = heapwise((const char *const[]){"export", "--format", "csv", "-f", "-o", out, plain, NULL}, NULL);
    assert_exit(&result, 0, "-f");
    run_result_free(&result);
    result = heapwise((const char *const[]){"export", "--format", "csv", "-o", nowhere, plain, NULL}, NULL);
    assert_exit(&result, 2, "no directory");
    assert_contains(result.err, "cannot write");
    run_result_free(&result);
    for (size_t i = 0; formats[i] && access("/dev/full", W_OK) == 0; i++) {
        result = heapwise((const char *const[]){"export", "--format", formats[i], "-f", "-o", "/dev/full", plain, NULL},
                          NULL);
        assert_exit(&result, 2, "a full disk");
        assert_contains(result.err, "No space left on device");
        run_result_free(&result);
    }
    free(out);
    free(nowhere);
}

/* A terminal is no place for binary formats. */
static void test_terminal(void **state)
{
    if (!have_command("script"))
        SKIP("there is no script(1)");
    for (size_t i = 0; formats[i]; i++) {
        const bool binary = !strcmp(formats[i], "pprof") || !strcmp(formats[i], "sqlite");
        char line[9000];
        snprintf(line, sizeof line, "%s export -q --format %s %s", heapwise_path(), formats[i], plain);
        struct run_result result = run((const char *const[]){"script", "-qec", line, "/dev/null", NULL}, NULL);
        assert_int_equal(result.code, binary ? 2 : 0);
        if (binary)
            assert_contains(result.out, "is not for a terminal: -o OUT writes it to a file");
        run_result_free(&result);
    }
}

/* ---- what goes wrong ---- */

static void test_wrong_arguments(void **state)
{
    assert_refused((const char *const[]){"export", plain, NULL}, "which --format?");
    assert_refused((const char *const[]){"export", "--format", "pprof", NULL}, "which FILE?");
    assert_refused((const char *const[]){"export", "--format", "dot", plain, NULL}, "does not know 'dot'");
    assert_refused((const char *const[]){"export", "--format", "csv", plain, plain, NULL}, "one FILE at a time");
    assert_refused((const char *const[]){"export", "--format", "csv", "--value", "peak", plain, NULL},
                   "csv has all values");
    assert_refused((const char *const[]){"export", "--format", "profdata", "--value", "peak", plain, NULL},
                   "--value is not for profdata");
    assert_refused((const char *const[]){"export", "--format", "collapsed", "--value", "weight", plain, NULL},
                   "--value does not know 'weight'");
    assert_refused((const char *const[]){"export", "--format", "collapsed", "--value", "accesses", plain, NULL},
                   "accesses were not counted");
    assert_refused((const char *const[]){"export", "--format", "sqlite", "--version", "3", plain, NULL},
                   "sqlite has no versions");
    assert_refused((const char *const[]){"export", "--format", "csv", "--module", "x", plain, NULL},
                   "--module is not for csv");
    assert_refused((const char *const[]){"export", "--format", "csv", "/nowhere", NULL}, "cannot open '/nowhere'");
    assert_refused((const char *const[]){"export", "--format", "csv", heapwise_path(), NULL}, "is no");
}

/* Of a file that was cut short there is an export of what is left, and exit code 2; or one line that says why not. */
static void test_cut_files(void **state)
{
    char *cut = join_path(directory, "cut.hwprof"), *out = join_path(directory, "cut.out");
    struct stat status;
    assert_int_equal(stat(plain, &status), 0);
    for (off_t size = 0; size < status.st_size; size += 1 + status.st_size / 4) {
        struct run_result result = run((const char *const[]){"cp", plain, cut, NULL}, NULL);
        run_result_free(&result);
        assert_int_equal(truncate(cut, size), 0);
        for (size_t i = 0; formats[i]; i++) {
            result = heapwise((const char *const[]){"export", "--format", formats[i], "-q", "-f", "-o", out, cut, NULL},
                              NULL);
            assert_exit(&result, 2, formats[i]);
            assert_true(strchr(result.err, '\n') != NULL);
            run_result_free(&result);
        }
    }
    free(cut);
    free(out);
}

TEST_LIST_WITH(make_place, remove_place, cmocka_unit_test(test_heap), cmocka_unit_test(test_values),
               cmocka_unit_test(test_old_keys), cmocka_unit_test(test_sampled), cmocka_unit_test(test_merged),
               cmocka_unit_test(test_accesses), cmocka_unit_test(test_go_pprof), cmocka_unit_test(test_output),
               cmocka_unit_test(test_terminal), cmocka_unit_test(test_wrong_arguments),
               cmocka_unit_test(test_cut_files))
