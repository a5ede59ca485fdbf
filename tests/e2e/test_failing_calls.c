/* test_failing_calls.c - the first, the second, ... system call of the runtime in a profiled program fails: the program
 * does what it does without Heapwise.
 *
 * programs/failcalls.c makes the runs of programs/failing.c. The first calls fail one by one, then some of them;
 * where another test has seen the same calls, some from the start. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* PROGRAM with OPTIONS; PRELOAD: a setting of its environment, or NULL. In each process FIRST calls, then each STEPth.
 */
static void sweep(const char *program, const char *preload, const char *options, const char *first, const char *step)
{
    char *directory = make_directory(), *profiles = join_path(directory, "profiles"), setting[4200];
    unsigned runs = 0, calls = 0, failed = 0;
    if (TEST_SANITIZED) /* the runtime is as in release, and the tools that read its files are slow */
        first = "20";
    assert_int_equal(mkdir(profiles, 0700), 0);
    snprintf(setting, sizeof setting, "HEAPWISE_OPTIONS=output=%s/%%p.%%n.hwprof%s", profiles, options);
    const char *const argv[] = {
        need_program("failcalls"),     first,   step, heapwise_path(), profiles, "/usr/bin/env", setting,
        preload ? preload : "TESTS=1", program, NULL};
    struct run_result result = run(argv, &(struct run_options){.timeout_s = 1200});
    assert_exit(&result, 0, options);
    if (sscanf(result.out, "%u runs, %u calls, %u failed", &runs, &calls, &failed) != 3)
        fail_msg("%s", result.out);
    /* With dumps by time a run may end before the call that should fail: how many fail is no fixed share of the runs. */
    if (runs < 30 || calls < 200 || failed < 10)
        fail_msg("%s: %u runs, %u calls, %u failed", options, runs, calls, failed);
    run_result_free(&result);
    free(profiles);
    remove_directory(directory);
}

static void sweep_plain(const char *options, const char *first, const char *step)
{
    char preload[4200];
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", runtime_path());
    sweep(need_program("failing"), preload, options, first, step);
}

static void test_heap(void **state)
{
    sweep_plain("", "100", "23");
}

static void test_sampled_and_dumped(void **state)
{
    sweep_plain(":sample-bytes=4096:free-stacks=1:table=100:dump-interval=0.005", "1", "11");
}

static void test_allocator(void **state)
{
    sweep_plain(":mode=allocator", "100", "41");
}

static void test_sampled_accesses(void **state)
{
    sweep_plain(":sample-accesses=1000", "1", "7");
}

static void sweep_counting(const char *option, const char *first, const char *step)
{
    char *directory = make_directory(), *program = join_path(directory, "failing"),
         *source = join_path(TEST_SOURCES, "programs/failing.c");
    const char *const build[] = {heapwise_path(), "cc", option,  "-O1",  "-g", "-w", "-pthread",
                                 "-D_GNU_SOURCE", "-o", program, source, NULL};
    compile_or_skip(build, option);
    sweep(program, NULL, "", first, step);
    free(source);
    free(program);
    remove_directory(directory);
}

static void test_counted(void **state)
{
    sweep_counting("--granule=64", "100", "23");
}

static void test_words(void **state)
{
    sweep_counting("--granule=4", "1", "5");
}

static void test_fields(void **state)
{
    sweep_counting("--fields", "1", "5");
}

TEST_LIST(cmocka_unit_test(test_heap), cmocka_unit_test(test_sampled_and_dumped), cmocka_unit_test(test_allocator),
          cmocka_unit_test(test_sampled_accesses), cmocka_unit_test(test_counted), cmocka_unit_test(test_words),
          cmocka_unit_test(test_fields))
