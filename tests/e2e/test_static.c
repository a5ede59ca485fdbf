/* test_static.c - statically linked programs: counts against those that programs/static.c is known to have, and a
 * program that finds its thread-local data, its children and its ends as it would without Heapwise. */
#include "support/check.h"
#include "support/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IN_THREADS 16000 /* calls of in_thread in programs/static.c: 20 rounds, 8 threads, 100 each */

static struct recording record_static(const char *program, const char *way, const char *const *arguments)
{
    const char *const argv[] = {program, way, NULL};
    struct recording recording =
        record_and_load(argv, &(struct record_options){.arguments = arguments, .may_fail = true});
    if (strstr(recording.run.err, "no permission to trace"))
        SKIP("processes cannot be traced here");
    return recording;
}

/* The report of the process that ended by fork and in_child. */
static const json_t *child_of(const struct recording *recording)
{
    for (size_t i = 0; i < recording->file_count; i++)
        if (recording->reports[i] && report_sums(recording->reports[i], "in_child").contexts)
            return recording->reports[i];
    fail_msg("the forked child has no profile");
    return NULL;
}

static void check_counts(const json_t *report)
{
    const struct sums threads = report_sums(report, "in_thread"), here = report_sums(report, "in_main");
    assert_int_equal(threads.allocations, 3 * IN_THREADS);
    assert_int_equal(threads.frees, 3 * IN_THREADS);
    assert_int_equal(threads.reallocations, IN_THREADS);
    assert_int_equal(threads.live_allocations, 0);
    assert_int_equal(here.allocations, 10);
    assert_int_equal(here.frees, 5);
    assert_int_equal(here.bytes, 5500);
    assert_int_equal(here.live_bytes, 3000);
    assert_contexts_sum_to_totals(report);
}

static void check_program(const char *name)
{
    static const struct {
        const char *way;
        int code;
    } ways[] = {{"exit", 8}, {"_exit", 9}, {"exec", 7}, {"kill", 137}, {"abort", 134}};
    const char *program = need_program(name);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct recording recording = record_static(program, ways[i].way, NULL);
        assert_string_equal(recording.run.out, "");
        assert_exit(&recording.run, ways[i].code, ways[i].way);
        const json_t *report = NULL;
        for (size_t k = 0; k < recording.file_count; k++) {
            const json_t *other = recording.reports[k];
            const bool forked = other && json_is_true(json_object_get(json_object_get(other, "process"), "forked"));
            if (other && !forked && report_sums(other, "in_main").allocations)
                report = other;
        }
        assert_non_null(report);
        check_counts(report);
        assert_int_equal(json_number(report, "totals.foreign_frees"), 0);
        const struct sums child = report_sums(child_of(&recording), "in_child");
        assert_int_equal(child.allocations, 2);
        assert_int_equal(child.frees, 1);
        assert_int_equal(child.bytes, 176);
        recording_free(&recording);
    }
}

static void test_glibc(void **state)
{
    check_program("static-glibc");
}

static void test_glibc_pie(void **state)
{
    check_program("static-pie");
}

static void test_musl(void **state)
{
    check_program("static-musl");
}

static void test_musl_pie(void **state)
{
    check_program("static-pie-musl");
}

/* The same program, with musl's dynamic linker. */
static void test_musl_dynamic(void **state)
{
    const char *program = need_program("dynamic-musl");
    struct run_result plain = run((const char *const[]){program, "quiet", NULL}, NULL);
    if (plain.code != 2)
        SKIP("musl's dynamic linker is not installed");
    run_result_free(&plain);
    check_program("dynamic-musl");
}

static void test_another_allocator(void **state)
{
    struct recording recording = record_static(need_program("static-jemalloc"), "exit", NULL);
    assert_exit(&recording.run, 8, "static-jemalloc");
    check_counts(recording.report);
    assert_contains(json_text(recording.report, "process.allocator"), "jemalloc");
    recording_free(&recording);
}

/* SQLite's calls pass functions of the program, which count them. */
static void test_sqlite(void **state)
{
    struct recording recording = record_static(need_program("static-sqlite"), NULL, NULL);
    long long allocations, frees, reallocations, bytes;
    assert_exit(&recording.run, 0, "static-sqlite");
    assert_int_equal(sscanf(recording.run.out, "%lld %lld %lld %lld", &allocations, &frees, &reallocations, &bytes), 4);
    const struct sums here = report_sums(recording.report, "counted_malloc");
    assert_true(allocations > 1000 && reallocations > 0);
    assert_int_equal(here.allocations, allocations);
    assert_int_equal(here.frees, frees);
    assert_int_equal(here.reallocations, reallocations);
    recording_free(&recording);
}

/* Stacks lead to main through functions of libc. */
static void test_stacks(void **state)
{
    struct recording recording = record_static(need_program("static-glibc"), "exit", NULL);
    const json_t *context = only_context(recording.report, "in_main");
    assert_string_equal(stack_function(context, 0), "in_main");
    assert_string_equal(stack_function(context, 1), "main");
    assert_int_equal(json_number(recording.report, "totals.threads"), 161);
    recording_free(&recording);
}

static void test_nothing_allocated(void **state)
{
    struct recording recording = record_static(need_program("static-musl"), "quiet", NULL);
    assert_exit(&recording.run, 2, "static-musl quiet");
    assert_int_equal(json_number(recording.report, "totals.allocations"), 0);
    recording_free(&recording);
}

static void test_sampled(void **state)
{
    const char *const arguments[] = {"--sample-bytes=1K", NULL};
    struct recording recording = record_static(need_program("static-glibc"), "exit", arguments);
    assert_exit(&recording.run, 8, "static-glibc");
    const int64_t estimate = json_number(recording.report, "totals.sampled.allocations");
    assert_true(estimate > 3 * IN_THREADS / 2 && estimate < 3 * IN_THREADS * 2);
    recording_free(&recording);
}

/* The address of a function of the same program with symbols. */
static unsigned long long address_of(const char *program, const char *name)
{
    struct run_result result = run((const char *const[]){"nm", program, NULL}, NULL);
    unsigned long long address = 0;
    char line[64];
    snprintf(line, sizeof line, " %s\n", name);
    const char *found = strstr(result.out, line);
    assert_non_null(found);
    while (found > result.out && found[-1] != '\n')
        found--;
    assert_int_equal(sscanf(found, "%llx", &address), 1);
    run_result_free(&result);
    return address;
}

static void test_addresses(void **state)
{
    const char *stripped = need_program("static-stripped"), *program = need_program("static-glibc");
    char option[256];
    snprintf(option, sizeof option, "--malloc-at=0x%llx,free=0x%llx,calloc=0x%llx,realloc=0x%llx",
             address_of(program, "malloc"), address_of(program, "free"), address_of(program, "calloc"),
             address_of(program, "realloc"));
    struct recording recording = record_static(stripped, "exit", (const char *const[]){option, NULL});
    assert_exit(&recording.run, 8, "static-stripped");
    assert_true(recording.file_count > 0 && recording.report != NULL);
    /* Those of the program, and a few of libc, which have no names here. */
    const int64_t allocations = json_number(recording.report, "totals.allocations");
    assert_true(allocations >= 3 * IN_THREADS + 10 && allocations < 3 * IN_THREADS + 3000);
    assert_int_equal(json_number(recording.report, "totals.reallocations"), IN_THREADS);
    recording_free(&recording);
}

static void test_debug_file(void **state)
{
    struct recording recording = record_static(need_program("static-debuglink"), "exit", NULL);
    assert_exit(&recording.run, 8, "static-debuglink");
    check_counts(recording.report);
    recording_free(&recording);
}

static void check_refused(const char *option, const char *program, const char *reason)
{
    const char *const arguments[] = {"record", "-o", join_path(test_directory, "refused.hwprof"), option, "--",
                                     program,  NULL};
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, 125, reason);
    assert_contains(result.err, reason);
    assert_string_equal(result.out, "");
    run_result_free(&result);
    free((char *)(uintptr_t)arguments[2]);
}

static void test_refused(void **state)
{
    static const char *const options[] = {"--mode=allocator", "--sample-accesses",   "--leaks", "--keeps", "--contents",
                                          "--pinned",         "--valgrind-requests", "--paused"};
    check_refused("-q", need_program("static-stripped"), "no symbols");
    check_refused("--malloc-at=here", need_program("static-stripped"), "takes ADDRESS");
    check_refused("--malloc-at=0x401001", need_program("static-stripped"), "no function begins at 0x401001");
    check_refused("--malloc-at=puts=1", need_program("static-stripped"), "'puts' is none of the functions");
    check_refused("--malloc-at=1", need_program("hello"), "only for statically linked programs");
    check_refused("--malloc-at=1", need_program("static-musl"), "is for programs with glibc");
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        check_refused(options[i], need_program("static-glibc"), "only with programs that are linked dynamically");
}

TEST_LIST_WITH(make_test_directory, remove_test_directory, cmocka_unit_test(test_glibc),
               cmocka_unit_test(test_glibc_pie), cmocka_unit_test(test_musl), cmocka_unit_test(test_musl_pie),
               cmocka_unit_test(test_musl_dynamic), cmocka_unit_test(test_another_allocator),
               cmocka_unit_test(test_sqlite), cmocka_unit_test(test_stacks), cmocka_unit_test(test_nothing_allocated),
               cmocka_unit_test(test_sampled), cmocka_unit_test(test_addresses), cmocka_unit_test(test_debug_file),
               cmocka_unit_test(test_refused))
