/* test_processes.c - threads, fork and its kin, exec, the ends of processes, signals: see programs/processes.c. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct recording record_case(const char *name, const char *argument, const struct record_options *options)
{
    const char *program = need_program("processes");
    const char *const argv[] = {program, name, argument, NULL};
    return record_and_load(argv, options);
}

static struct recording record_ok(const char *name, const char *argument)
{
    struct recording recording = record_case(name, argument, NULL);
    assert_exit(&recording.run, 0, name);
    return recording;
}

/* allocate_some(COUNT) TIMES times by FUNCTION. */
static void assert_some(const json_t *report, const char *function, int64_t count, int64_t times)
{
    int64_t all = count * times, freed = count / 2 * times;
    struct totals expected = {
        .allocations = all,
        .frees = freed,
        .bytes = all * 100,
        .live_allocations = all - freed,
        .live_bytes = (all - freed) * 100,
    };
    assert_function_totals(report, function, expected);
}

/* The index of the only report in which FUNCTION allocated. */
static size_t report_with(const struct recording *recording, const char *function)
{
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < recording->file_count; i++) {
        if (report_sums(recording->reports[i], function).allocations > 0) {
            if (found != SIZE_MAX)
                fail_msg("%s allocates in two profiles: %s and %s", function, recording->files[found],
                         recording->files[i]);
            found = i;
        }
    }
    if (found == SIZE_MAX)
        fail_msg("%s allocates in none of %zu profiles", function, recording->file_count);
    return found;
}

/* ---- threads ---- */

static void test_2000_threads(void **state)
{
    struct recording recording = record_ok("threads", NULL);
    assert_some(recording.report, "thread_work", 10, 2000);
    assert_true(json_number(recording.report, "totals.threads") >= 2000);
    assert_contexts_sum_to_totals(recording.report);
    recording_free(&recording);
}

static void test_10000_threads_in_sequence(void **state)
{
    struct recording recording = record_ok("sequence", NULL);
    assert_some(recording.report, "thread_work", 10, 10000);
    assert_true(json_number(recording.report, "totals.threads") >= 10000);
    assert_contexts_sum_to_totals(recording.report);
    struct stat status;
    assert_int_equal(stat(recording.files[0], &status), 0);
    assert_true(status.st_size < 16 << 20); /* grows with contexts, not with threads that are gone */
    recording_free(&recording);
}

static void test_detached_threads(void **state)
{
    struct recording recording = record_ok("detached", NULL);
    assert_some(recording.report, "thread_work", 10, 200);
    recording_free(&recording);
}

static void test_cancelled_threads(void **state)
{
    struct recording recording = record_ok("cancel", NULL);
    assert_some(recording.report, "thread_work", 10, 200);
    recording_free(&recording);
}

static void test_key_destructors(void **state)
{
    struct recording recording = record_ok("keys", NULL);
    assert_some(recording.report, "thread_work", 10, 100);
    assert_some(recording.report, "key_destructor", 10, 100);
    recording_free(&recording);
}

static void test_clone_sharing_memory(void **state)
{
    struct recording recording = record_ok("clone_vm", NULL);
    assert_int_equal(recording.file_count, 1);
    assert_some(recording.report, "thread_work", 10, 2);
    assert_some(recording.report, "clone_work", 100, 1);
    recording_free(&recording);
}

static void test_clone_as_fork(void **state)
{
    struct recording recording = record_ok("clone_fork", NULL);
    assert_int_equal(recording.file_count, 2);
    assert_some(recording.report, "thread_work", 10, 2);
    assert_int_equal(report_sums(recording.report, "clone_work").allocations, 0);
    size_t child = report_with(&recording, "clone_work");
    assert_some(recording.reports[child], "clone_work", 100, 1);
    assert_int_equal(report_sums(recording.reports[child], "thread_work").allocations, 0);
    recording_free(&recording);
}

/* ---- fork and exec ---- */

/* Each process has a file of its own that starts from zero; what it inherited is no allocation of its own. */
static void test_fork_three_generations(void **state)
{
    struct recording recording = record_ok("fork", NULL);
    assert_int_equal(recording.file_count, 3);
    size_t parent = report_with(&recording, "after_fork"), child = report_with(&recording, "child_work"),
           grandchild = report_with(&recording, "grandchild_work");
    assert_true(parent != child && child != grandchild);
    assert_ptr_equal(recording.reports[parent], recording.report);

    struct sums before = report_sums(recording.reports[parent], "before_fork");
    assert_int_equal(before.allocations, 10);
    assert_int_equal(before.frees, 0); /* the child's frees are the child's */
    assert_int_equal(before.live_bytes, 10000);
    assert_some(recording.reports[parent], "after_fork", 40, 1);

    assert_some(recording.reports[child], "child_work", 20, 1);
    assert_some(recording.reports[grandchild], "grandchild_work", 30, 1);
    assert_int_equal(report_sums(recording.reports[child], "before_fork").allocations, 0);
    assert_int_equal(report_sums(recording.reports[grandchild], "before_fork").allocations, 0);
    for (size_t i = 0; i < 3; i++) {
        struct totals totals = report_totals(recording.reports[i]);
        assert_true(totals.frees <= totals.allocations);
        assert_true(totals.live_bytes >= 0);
        assert_contexts_sum_to_totals(recording.reports[i]);
        assert_int_equal(json_number(recording.reports[i], "process.exit.code"), 0);
    }
    /* It is known what was inherited. */
    json_t *text_owner = recording.reports[child];
    char *text = json_dumps(text_owner, 0);
    if (!strstr(text, "inherited"))
        fail_msg("the child's report does not mention inherited blocks");
    free(text);
    recording_free(&recording);
}

static void test_fork_with_allocating_threads(void **state)
{
    struct recording recording = record_ok("fork_threads", NULL);
    assert_int_equal(recording.file_count, 51);
    size_t children = 0;
    for (size_t i = 0; i < recording.file_count; i++) {
        int64_t allocations = report_sums(recording.reports[i], "child_work").allocations;
        if (recording.reports[i] == recording.report) {
            assert_int_equal(allocations, 0);
            assert_some(recording.reports[i], "after_fork", 40, 1);
            continue;
        }
        assert_some(recording.reports[i], "child_work", 20, 1);
        assert_int_equal(report_totals(recording.reports[i]).allocations, 20);
        children++;
    }
    assert_int_equal(children, 50);
    recording_free(&recording);
}

static void test_vfork(void **state)
{
    struct recording recording = record_ok("vfork", NULL);
    assert_some(recording.report, "thread_work", 10, 5);
    assert_some(recording.report, "after_fork", 40, 1);
    for (size_t i = 1; i < recording.file_count; i++)
        assert_contains(json_text(recording.reports[i], "process.executable"), "/true");
    recording_free(&recording);
}

static void test_posix_spawn(void **state)
{
    struct recording recording = record_ok("spawn", NULL);
    assert_int_equal(recording.file_count, 2);
    assert_some(recording.report, "thread_work", 10, 1);
    assert_some(recording.report, "after_fork", 40, 1);
    assert_some(recording.reports[report_with(&recording, "child_work")], "child_work", 20, 1);
    recording_free(&recording);
}

static void test_system_and_popen(void **state)
{
    struct recording recording = record_ok("system", NULL);
    assert_int_equal(recording.file_count, 3); /* two shells */
    assert_some(recording.report, "thread_work", 10, 1);
    assert_some(recording.report, "after_fork", 40, 1);
    recording_free(&recording);
}

static void test_exec_chain(void **state)
{
    struct recording recording = record_case("exec", "3", NULL);
    assert_exit(&recording.run, 5, "exec 3");
    assert_int_equal(recording.file_count, 4);
    int64_t pid = json_number(recording.report, "process.pid");
    for (size_t i = 0; i < 4; i++) {
        assert_some(recording.reports[i], "exec_work", 10, 1);
        assert_int_equal(json_number(recording.reports[i], "process.pid"), pid);
    }
    assert_int_equal(json_number(recording.reports[3], "process.exit.code"), 5);
    recording_free(&recording);
}

static void test_failing_exec(void **state)
{
    struct recording recording = record_ok("exec_fails", NULL);
    assert_int_equal(recording.file_count, 1);
    assert_some(recording.report, "exec_work", 10, 2);
    recording_free(&recording);
}

/* With an environment of its own the new program is either profiled, or record says that it was not.
 */
static void test_exec_with_empty_environment(void **state)
{
    struct recording recording = record_ok("exec_bare", NULL);
    assert_some(recording.report, "exec_work", 10, 1);
    if (recording.file_count == 2)
        assert_some(recording.reports[1], "child_work", 20, 1);
    else
        assert_contains(recording.run.err, "executed another program");
    recording_free(&recording);
}

/* ---- descriptors, directories, users ---- */

static void check_new_contexts(const json_t *report)
{
    struct sums sums = report_sums(report, "new_contexts");
    assert_int_equal(sums.allocations, 250);
    assert_int_equal(sums.frees, 250);
    assert_true(sums.contexts >= 240); /* contexts of their own, not "unknown" */
}

static void test_daemon(void **state)
{
    struct recording recording = record_ok("daemon", NULL);
    assert_int_equal(recording.file_count, 2);
    assert_some(recording.report, "thread_work", 10, 1);
    check_new_contexts(recording.reports[report_with(&recording, "new_contexts")]);
    recording_free(&recording);
}

static void test_closes_all_descriptors(void **state)
{
    char *directory = make_directory();
    struct recording recording = record_ok("close_all", directory);
    assert_int_equal(recording.file_count, 1);
    check_new_contexts(recording.report);
    assert_some(recording.report, "thread_work", 10, 101);
    recording_free(&recording);
    remove_directory(directory);
}

static void test_chroot_and_setuid(void **state)
{
    if (geteuid() != 0)
        SKIP("needs root");
    char *directory = make_directory();
    struct recording recording = record_ok("chroot", directory);
    check_new_contexts(recording.report);
    assert_some(recording.report, "thread_work", 10, 101);
    /* The child can make no file, neither there nor with its rights: record makes it. */
    assert_int_equal(recording.file_count, 2);
    assert_some(recording.reports[report_with(&recording, "child_work")], "child_work", 20, 1);
    size_t count;
    char **inside = list_files(directory, "", &count);
    assert_int_equal(count, 0); /* and nothing is left inside */
    free_list(inside);
    recording_free(&recording);
    remove_directory(directory);
}

/* Names and numbers are those outside, whatever the processes take themselves for. */
static void test_namespaces(void **state)
{
    char *directory = make_directory();
    struct recording recording = record_case("namespaces", directory, NULL);
    if (recording.run.code == 77)
        SKIP("namespaces cannot be made here");
    assert_exit(&recording.run, 0, "namespaces");
    assert_int_equal(recording.file_count, 3);
    size_t inner = report_with(&recording, "grandchild_work");
    assert_some(recording.reports[report_with(&recording, "child_work")], "child_work", 20, 1);
    assert_some(recording.reports[inner], "grandchild_work", 30, 1);
    check_new_contexts(recording.reports[inner]);
    int64_t outer = json_number(recording.report, "process.pid");
    for (size_t i = 0; i < 3; i++) {
        char name[64];
        int64_t pid = json_number(recording.reports[i], "process.pid");
        assert_true(pid >= outer || outer - pid > 1000); /* not 1 and 2; numbers may have begun again */
        snprintf(name, sizeof name, "/processes.%lld.", (long long)pid);
        assert_contains(recording.files[i], name);
    }
    recording_free(&recording);
    remove_directory(directory);
}

/* Programs that do what the runtime must not disturb go on as they would without it; the profile has all. */
static void test_undisturbed(void **state)
{
    static const char *const cases[] = {"raw_close", "sockets", "wrong_addresses"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct recording recording = record_case(cases[i], NULL, NULL);
        if (recording.run.code != 77) {
            assert_exit(&recording.run, 0, cases[i]);
            assert_some(recording.report, "thread_work", 10, 1);
            assert_some(recording.report, "child_work", 20, 1);
        }
        recording_free(&recording);
    }
}

/* Where nothing can be done the parent's report says it, and record, in one line; nobody else says anything. */
static void test_children_without_profile(void **state)
{
    struct recording recording = record_ok("seccomp", NULL);
    assert_int_equal(recording.file_count, 1);
    assert_some(recording.report, "thread_work", 10, 1);
    assert_true(report_says(recording.report, "No profile was written of 3 processes that it forked: it had given up system calls"));
    assert_contains(recording.run.err, "3 processes left no profile");
    assert_lacks(recording.run.err, "Free space");
    recording_free(&recording);
    const char *const quiet[] = {"-q", NULL};
    recording = record_case("seccomp", NULL, &(struct record_options){.arguments = quiet});
    assert_exit(&recording.run, 0, "seccomp, -q");
    assert_string_equal(recording.run.err, "");
    recording_free(&recording);
}

static void test_no_folder(void **state)
{
    const char *program = need_program("processes");
    char *directory = make_directory(), *folder = join_path(directory, "a"), *away = join_path(directory, "b"),
         *file = join_path(folder, "%e.%p.hwprof");
    assert_int_equal(mkdir(folder, 0700), 0);
    const char *const arguments[] = {"record", "-o", file, program, "no_folder", folder, away, NULL};
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, 0, "no_folder");
    assert_contains(result.err, "1 process left no profile: No such file or directory");
    size_t count;
    char **files = list_files(folder, ".hwprof", &count);
    assert_int_equal(count, 1);
    json_t *report = load_report(files[0], 0);
    assert_true(report_says(report, "No profile was written of 1 process that it forked: no such file or directory"));
    json_decref(report);
    free_list(files);
    run_result_free(&result);
    free(file);
    free(folder);
    free(away);
    remove_directory(directory);
}

static void test_name_of_a_program_without_file(void **state)
{
    struct recording recording = record_ok("memory_file", NULL);
    assert_int_equal(recording.file_count, 2);
    char name[64];
    snprintf(name, sizeof name, "/me.%lld.", (long long)json_number(recording.reports[1], "process.pid"));
    assert_contains(recording.files[1], name);
    recording_free(&recording);
}

static void test_cleared_environment(void **state)
{
    struct recording recording = record_ok("environment", NULL);
    check_new_contexts(recording.report);
    recording_free(&recording);
}

/* ---- ends ---- */

static void check_end(const char *how, int code, int signal)
{
    struct recording recording = record_case("end", how, NULL);
    char what[64];
    snprintf(what, sizeof what, "end %s", how);
    assert_exit(&recording.run, signal ? 128 + signal : code, what);
    assert_some(recording.report, "thread_work", 10, 1);
    if (signal)
        assert_int_equal(json_number(recording.report, "process.exit.signal"), signal);
    else
        assert_int_equal(json_number(recording.report, "process.exit.code"), code);
    recording_free(&recording);
}

static void test_ends(void **state)
{
    check_end("return", 0, 0);
    check_end("exit", 9, 0);
    check_end("_exit", 7, 0);
    check_end("quick_exit", 8, 0);
    check_end("pthread_exit", 0, 0);
    check_end("abort", 0, SIGABRT);
    check_end("null", 0, SIGSEGV);
    check_end("stack", 0, SIGSEGV);
}

static void test_fatal_signals(void **state)
{
    static const int signals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGILL,  SIGTRAP,   SIGABRT, SIGBUS,  SIGFPE,
                                  SIGKILL, SIGUSR1, SIGSEGV, SIGUSR2, SIGPIPE,   SIGALRM, SIGTERM, SIGSTKFLT,
                                  SIGXCPU, SIGXFSZ, SIGPROF, SIGIO,   SIGVTALRM, SIGSYS,  SIGPWR};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", signals[i]);
        check_end(number, 0, signals[i]);
    }
}

static void test_own_handler_of_a_fatal_signal(void **state)
{
    struct recording recording = record_case("own_handler", NULL, NULL);
    assert_exit(&recording.run, 42, "own_handler");
    assert_some(recording.report, "thread_work", 10, 1);
    assert_int_equal(report_sums(recording.report, "on_segv").allocations, 10);
    recording_free(&recording);
}

static void test_exit_while_threads_allocate(void **state)
{
    for (int i = 0; i < 100; i++) {
        struct recording recording = record_ok("exit_while_allocating", NULL);
        assert_some(recording.report, "thread_work", 10, 1);
        struct totals totals = report_totals(recording.report);
        assert_true(totals.live_allocations >= 0 && totals.live_bytes >= 0);
        recording_free(&recording);
    }
}

/* ---- signal handlers ---- */

static struct recording record_interruptible(const char *name)
{
    if (TEST_SANITIZED)
        SKIP("an allocator cannot be preloaded into tools built with AddressSanitizer");
    const char *library = need_program("libsafemalloc.so");
    char variable[4200];
    snprintf(variable, sizeof variable, "LD_PRELOAD=%s", library);
    const char *const environment[] = {variable, NULL};
    struct recording recording = record_case(name, NULL, &(struct record_options){.run.environment = environment});
    assert_exit(&recording.run, 0, name);
    return recording;
}

/* A handler that allocates interrupts the hooks at every instruction: not one event is lost or counted twice. */
static void test_allocation_in_handlers(void **state)
{
    struct recording recording = record_interruptible("storm");
    long done = 0, handled = 0;
    assert_int_equal(sscanf(recording.run.out, "main %ld handler %ld", &done, &handled), 2);
    struct sums handler = report_sums(recording.report, "storm_handler_work");
    assert_int_equal(handler.allocations, handled * 4);
    assert_int_equal(handler.frees, handled * 2);
    assert_int_equal(handler.bytes, handled * 400);
    assert_int_equal(handler.live_bytes, handled * 200);
    /* storm_main_work is in the handler's stacks, too */
    struct sums both = report_sums(recording.report, "storm_main_work");
    struct totals totals = report_totals(recording.report);
    int64_t main_only = totals.allocations - handler.allocations;
    assert_true(both.allocations >= main_only - 100);
    assert_int_equal(totals.reallocations, done);
    assert_int_equal(totals.live_allocations - handler.live_allocations, main_only - (totals.frees - handler.frees));
    assert_true(main_only >= done && main_only < done + 100);
    assert_true(totals.live_bytes - handler.live_bytes < 200000);
    assert_contexts_sum_to_totals(recording.report);
    recording_free(&recording);
}

static void test_jump_out_of_handlers(void **state)
{
    struct recording recording = record_ok("jump", NULL);
    assert_int_equal(report_sums(recording.report, "jump_handler_work").allocations, 1000);
    assert_some(recording.report, "after_jump_work", 1000, 1);
    recording_free(&recording);
}

static void test_jump_out_of_the_hooks(void **state)
{
    struct recording recording = record_interruptible("timed_jump");
    assert_some(recording.report, "after_jump_work", 1000, 1);
    recording_free(&recording);
}

TEST_LIST(cmocka_unit_test(test_2000_threads), cmocka_unit_test(test_10000_threads_in_sequence),
          cmocka_unit_test(test_detached_threads), cmocka_unit_test(test_cancelled_threads),
          cmocka_unit_test(test_key_destructors), cmocka_unit_test(test_clone_sharing_memory),
          cmocka_unit_test(test_clone_as_fork), cmocka_unit_test(test_fork_three_generations),
          cmocka_unit_test(test_fork_with_allocating_threads), cmocka_unit_test(test_vfork),
          cmocka_unit_test(test_posix_spawn), cmocka_unit_test(test_system_and_popen),
          cmocka_unit_test(test_exec_chain), cmocka_unit_test(test_failing_exec),
          cmocka_unit_test(test_exec_with_empty_environment), cmocka_unit_test(test_daemon),
          cmocka_unit_test(test_closes_all_descriptors), cmocka_unit_test(test_chroot_and_setuid),
          cmocka_unit_test(test_namespaces), cmocka_unit_test(test_undisturbed),
          cmocka_unit_test(test_children_without_profile), cmocka_unit_test(test_no_folder),
          cmocka_unit_test(test_name_of_a_program_without_file), cmocka_unit_test(test_cleared_environment),
          cmocka_unit_test(test_ends), cmocka_unit_test(test_fatal_signals),
          cmocka_unit_test(test_own_handler_of_a_fatal_signal), cmocka_unit_test(test_exit_while_threads_allocate),
          cmocka_unit_test(test_allocation_in_handlers), cmocka_unit_test(test_jump_out_of_handlers),
          cmocka_unit_test(test_jump_out_of_the_hooks))
