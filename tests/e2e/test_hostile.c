/* test_hostile.c - programs that do what nobody expects of them: see programs/hostile.c. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Records hostile NAME FIRST SECOND; skips the test where the program says that it cannot be done here. */
static struct recording record_case(const char *name, const char *first, const char *second,
                                    const struct record_options *options)
{
    const char *const argv[] = {need_program("hostile"), name, first, second, NULL};
    struct recording recording = record_and_load(argv, options);
    if (recording.run.code == 77) {
        print_message("%s", recording.run.out);
        recording_free(&recording);
        SKIP("%s", name);
    }
    assert_exit(&recording.run, 0, name);
    return recording;
}

static struct recording record_preloading(const char *library, const char *name, const char *const *arguments)
{
    if (TEST_SANITIZED)
        SKIP("an allocator cannot be preloaded into tools built with AddressSanitizer");
    char variable[4200];
    snprintf(variable, sizeof variable, "LD_PRELOAD=%s", need_program(library));
    const char *const environment[] = {variable, NULL};
    return record_case(name, NULL, NULL,
                       &(struct record_options){.arguments = arguments, .run.environment = environment});
}

/* COUNT blocks of SIZE bytes by FUNCTION, all of them freed. */
static void assert_all_freed(const json_t *report, const char *function, int64_t count, int64_t size)
{
    assert_function_totals(report, function,
                           (struct totals){.allocations = count, .frees = count, .bytes = count * size});
}

/* Not an event passed by. */
static void assert_complete_under_way(const json_t *report, int64_t bytes)
{
    assert_int_equal(json_number(report, "totals.nested_calls"), 0);
    assert_int_equal(json_number(report, "totals.lost_events"), 0);
    assert_int_equal(json_number(report, "totals.foreign_frees"), 0);
    assert_contexts_sum_to_totals_under_way(report, bytes);
}

static void assert_complete(const json_t *report)
{
    assert_complete_under_way(report, 0);
}

/* ---- stacks ---- */

static void check_guard(const char *name)
{
    struct recording recording = record_case(name, NULL, NULL, NULL);
    assert_all_freed(recording.report, "coroutine_work", 20, 100);
    assert_complete(recording.report);
    recording_free(&recording);
}

/* Unwinding does not read past the end of a stack. */
static void test_stacks_next_to_guard_pages(void **state)
{
    check_guard("guard");
    check_guard("guard_thread");
}

/* ---- limits ---- */

static void check_limit(const char *name)
{
    struct recording recording = record_case(name, NULL, NULL, NULL);
    struct sums sums = report_sums(recording.report, "limited_work");
    assert_int_equal(sums.allocations, 1200);
    assert_int_equal(sums.live_bytes, (int64_t)1200 << 20);
    assert_complete(recording.report);
    recording_free(&recording);
}

/* A limit that a program sets on itself leaves it what it would have without the runtime. */
static void test_limits_of_its_own(void **state)
{
    check_limit("limit_address_space");
    check_limit("limit_data");
}

/* Also in children, with a profile and without; by every call and from outside. */
static void check_limited_children(const char *which, const struct record_options *options)
{
    struct recording recording = record_case("limited_children", which, NULL, options);
    for (size_t i = 1; !options && i < recording.file_count; i++) {
        struct sums sums = report_sums(recording.reports[i], "use_limited");
        assert_true(sums.contexts == 0 /* that of the child that sets a limit for another process */ ||
                    (sums.allocations >= 21 && sums.allocations <= 23));
    }
    recording_free(&recording);
}

static void test_limits_of_children(void **state)
{
    const char *const allocator[] = {"--mode=allocator", NULL}, *const sampled[] = {"--sample-bytes=10000", NULL};
    check_limited_children("on", NULL);
    check_limited_children("off", NULL);
    check_limited_children("on", &(struct record_options){.arguments = allocator});
    check_limited_children("off", &(struct record_options){.arguments = allocator});
    check_limited_children("on", &(struct record_options){.arguments = sampled});
    if (TEST_SANITIZED) {
        LEAVE_OUT("AddressSanitizer needs address space without limit");
        return;
    }
    /* where reservations are small, too, they are no data */
    const struct run_limit limits[] = {{RLIMIT_AS, (rlim_t)64 << 30}, {-1, 0}};
    check_limited_children("on", &(struct record_options){.run.limits = limits});
}

static void test_limits_of_children_that_count(void **state)
{
    char *directory = make_directory(), *program = join_path(directory, "hostile");
    char *source = join_path(TEST_SOURCES, "programs/hostile.c");
    const char *const compile[] = {heapwise_path(), "cc", "-D_GNU_SOURCE", "-O2",  "-w",
                                   "-pthread",      "-o", program,         source, NULL};
    compile_or_skip(compile, "hostile");
    for (int off = 0; off < 2; off++) {
        const char *const argv[] = {program, "limited_children", off ? "off" : "on", NULL};
        struct recording recording = record_and_load(argv, NULL);
        assert_exit(&recording.run, 0, argv[2]);
        recording_free(&recording);
    }
    free(source);
    free(program);
    remove_directory(directory);
}

/* Programs that are started, by exec or beside the one that limited itself, get the limit as that set it. */
static void test_limit_is_handed_on(void **state)
{
    if (TEST_SANITIZED)
        SKIP("AddressSanitizer needs address space without limit");
    struct recording recording = record_case("limit_handed_on", NULL, NULL, NULL);
    assert_int_equal(recording.file_count, 1);
    recording_free(&recording);
}

static void test_limit_that_is_lowered(void **state)
{
    if (TEST_SANITIZED)
        SKIP("AddressSanitizer needs address space without limit");
    const struct run_limit limits[] = {{RLIMIT_AS, (rlim_t)8 << 30}, {-1, 0}};
    struct recording recording =
        record_case("limit_lowered", "first", NULL, &(struct record_options){.run.limits = limits});
    assert_int_equal(recording.file_count, 2);
    recording_free(&recording);
}

static void test_mlockall(void **state)
{
    struct recording recording = record_case("lock", NULL, NULL, NULL);
    assert_int_equal(report_sums(recording.report, "allocate_in_thread").allocations, 10);
    assert_true(report_sums(recording.report, "case_lock").live_bytes >= 700 * 1000);
    assert_true(report_says(recording.report, "mlockall"));
    recording_free(&recording);
}

/* ---- forks ---- */

/* A child has room for as many contexts as any process, where address space is limited, too. */
static void test_fork_with_little_address_space(void **state)
{
    if (TEST_SANITIZED)
        SKIP("AddressSanitizer needs address space without limit");
    const struct run_limit limits[] = {{RLIMIT_AS, (rlim_t)8000000 << 10}, {-1, 0}};
    struct recording recording = record_case("fork_grows", NULL, NULL, &(struct record_options){.run.limits = limits});
    assert_int_equal(recording.file_count, 2);
    const json_t *child = recording.reports[0] == recording.report ? recording.reports[1] : recording.reports[0];
    assert_all_freed(child, "child_tree", 1 << 13, 100);
    assert_int_equal(report_sums(child, "child_tree").contexts, 1 << 13);
    assert_complete(child);
    assert_int_equal(report_sums(recording.report, "child_tree").allocations, 0);
    recording_free(&recording);
}

/* How many blocks of take_block were freed at the stacks that are known. */
static int64_t freed_at_known_places(const json_t *report)
{
    int64_t count = 0;
    size_t i;
    json_t *place;
    json_array_foreach(json_object_get(only_context(report, "take_block"), "free_stacks"), i, place) count +=
        json_number(place, "count");
    return count;
}

/* What a child frees is not told of its parent. */
static void test_fork_with_free_stacks(void **state)
{
    const char *const arguments[] = {"--free-stacks", NULL};
    struct recording recording =
        record_case("fork_frees", NULL, NULL, &(struct record_options){.arguments = arguments});
    assert_int_equal(recording.file_count, 2);
    const json_t *child = recording.reports[0] == recording.report ? recording.reports[1] : recording.reports[0];
    assert_all_freed(recording.report, "take_block", 10, 100);
    assert_int_equal(freed_at_known_places(recording.report), 10);
    assert_all_freed(child, "take_block", 1000, 100);
    assert_int_equal(freed_at_known_places(child), 1000);
    assert_complete(recording.report);
    assert_complete(child);
    recording_free(&recording);
}

/* ---- signals ---- */

/* After a handler has left the allocator by siglongjmp every call counts, however deep the stack. */
static void test_jump_out_of_the_allocator(void **state)
{
    struct recording recording = record_preloading("libsignalmalloc.so", "jump", NULL);
    assert_all_freed(recording.report, "after_jump_work", 1000, 100);
    assert_int_equal(json_number(recording.report, "totals.nested_calls"), 0);
    recording_free(&recording);
}

/* Contexts leave the table for the file while handlers allocate: sums stay exact. */
static void test_handlers_and_a_full_table(void **state)
{
    const char *const arguments[] = {"--table=4", NULL};
    struct recording recording = record_preloading("libsafemalloc.so", "evicting_handlers", arguments);
    long tree = 0, handler = 0;
    assert_int_equal(sscanf(recording.run.out, "tree %ld handler %ld", &tree, &handler), 2);
    assert_all_freed(recording.report, "handler_work", handler, 100);
    struct totals totals = report_totals(recording.report);
    assert_true(totals.allocations >= tree + handler && totals.allocations < tree + handler + 100);
    assert_complete_under_way(recording.report, 200); /* a block of the other thread, and one of its handler */
    recording_free(&recording);
}

/* ---- code that comes and goes ---- */

/* The runtime does not wait for the linker in a thread for which the linker waits. */
static void test_close_while_a_library_is_opened(void **state)
{
    struct recording recording =
        record_case("closer", need_program("libcloser.so"), NULL, &(struct record_options){.run.timeout_s = 10});
    assert_all_freed(recording.report, "closer_work", 10, 100);
    assert_complete(recording.report);
    recording_free(&recording);
}

/* Generated code is in no module, and nothing is said of it. */
static void check_generated(const json_t *report)
{
    int64_t allocations = 0, bytes = 0;
    size_t i;
    json_t *context;
    json_array_foreach(json_object_get(report, "contexts"), i, context)
    {
        const json_t *leaf = json_array_get(json_object_get(context, "stack"), 0);
        if (leaf && json_is_null(json_object_get(leaf, "module")) && !stack_function(context, 0)[0]) {
            allocations += json_number(context, "allocations");
            bytes += json_number(context, "bytes");
        }
    }
    assert_int_equal(allocations, 10);
    assert_int_equal(bytes, 1000);
}

/* Each of three pieces of code in one place gets what it did itself. */
static void test_other_code_in_the_same_place(void **state)
{
    struct recording recording =
        record_case("same_place", need_program("libplugin_one.so"), need_program("libplugin_two.so"), NULL);
    assert_all_freed(recording.report, "plugin_one_run", 10, 1000);
    check_generated(recording.report);
    assert_all_freed(recording.report, "plugin_two_run", 10, 2000);
    assert_contexts_sum_to_totals(recording.report);
    assert_string_equal(recording.run.out, "same place\n");
    recording_free(&recording);
}

/* ---- operators ---- */

/* operator new of a shared library is an allocator like any other. */
static void test_operators_of_a_library(void **state)
{
    struct recording recording = record_case("pool", NULL, NULL, NULL);
    assert_all_freed(recording.report, "pool_work", 10000, 30);
    assert_complete(recording.report);
    recording_free(&recording);
}

/* ---- seccomp ---- */

/* Where next to no system call is allowed the runtime makes none, and counts on. */
static void test_strict_seccomp(void **state)
{
    struct recording recording = record_case("confined", NULL, NULL, NULL);
    assert_string_equal(recording.run.out, "ok\n");
    assert_all_freed(recording.report, "unconfined_work", 1, 100);
    assert_all_freed(recording.report, "confined_work", 3000000, 100);
    assert_complete(recording.report);
    recording_free(&recording);
}

/* The program that takes the place of one with a filter cannot say that it has no profile: the other one does. */
static void test_exec_after_seccomp(void **state)
{
    struct recording recording = record_case("exec_confined", "exec", NULL, NULL);
    assert_int_equal(recording.file_count, 1);
    assert_true(report_says(recording.report, "was started after system calls had been given up"));
    recording_free(&recording);
    recording = record_case("exec_confined", "fork", NULL, NULL);
    assert_int_equal(recording.file_count, 1);
    assert_contains(recording.run.err, "1 process left no profile");
    recording_free(&recording);
}

TEST_LIST(cmocka_unit_test(test_exec_after_seccomp), cmocka_unit_test(test_stacks_next_to_guard_pages),
          cmocka_unit_test(test_limits_of_its_own), cmocka_unit_test(test_limits_of_children),
          cmocka_unit_test(test_limits_of_children_that_count), cmocka_unit_test(test_limit_is_handed_on),
          cmocka_unit_test(test_limit_that_is_lowered), cmocka_unit_test(test_mlockall),
          cmocka_unit_test(test_fork_with_little_address_space), cmocka_unit_test(test_fork_with_free_stacks),
          cmocka_unit_test(test_jump_out_of_the_allocator), cmocka_unit_test(test_handlers_and_a_full_table),
          cmocka_unit_test(test_close_while_a_library_is_opened), cmocka_unit_test(test_other_code_in_the_same_place),
          cmocka_unit_test(test_operators_of_a_library), cmocka_unit_test(test_strict_seccomp))
