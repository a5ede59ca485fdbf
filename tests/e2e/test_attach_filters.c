/* test_attach_filters.c - heapwise attach where programs have filters of system calls (seccomp): those that permit what
 * a recording needs change nothing; others are why a process is refused, and it goes on. */
#include "support/attached.h"
#include "support/check.h"
#include "support/recording.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void skip_where_not_possible(struct program *program, struct run_result *result)
{
    const bool unreadable = result->code && strstr(result->err, "what it permits is not known");
    if (!unreadable && !(result->code && strstr(result->err, "no permission to")))
        return;
    kill(program->pid, SIGKILL);
    finish(program);
    if (unreadable)
        SKIP("filters of other processes cannot be read here");
    SKIP("processes cannot be traced here");
}

static void begin(struct program *program, const char *profile)
{
    const char *const arguments[] = {"attach", "-q", "-o", profile, program->number, NULL};
    struct run_result result = heapwise(arguments, NULL);
    skip_where_not_possible(program, &result);
    assert_exit(&result, 0, "attach");
    run_result_free(&result);
}

/* Twice, since the runtime is there already the second time. */
static void check_recorded(const char *kind)
{
    struct program program = start((const char *const[]){need_program("attach"), "filter", kind, "count", NULL});
    const uint64_t before = sum_of_code(&program);
    for (int round = 0; round < 2; round++) {
        char name[64];
        snprintf(name, sizeof name, "%s-%d.hwprof", kind, round);
        char *profile = join_path(test_directory, name);
        begin(&program, profile);
        ask(&program);
        ask(&program);
        detach(&program);
        assert_true(sum_of_code(&program) == before);
        ask(&program);
        json_t *report = load_report(profile, 0);
        assert_int_equal(json_number(report, "totals.allocations"), 2000);
        assert_int_equal(json_number(report, "totals.frees"), 1500);
        assert_int_equal(json_number(report, "totals.reallocations"), 2);
        assert_string_equal(json_text(report, "process.state"), "ended");
        assert_contexts_sum_to_totals(report);
        json_decref(report);
        free(profile);
    }
    assert_int_equal(finish(&program), 0);
}

static void test_of_containers(void **state)
{
    (void)state;
    check_recorded("containers");
}

static void test_two_filters(void **state)
{
    (void)state;
    check_recorded("kill-socket+containers");
}

/* Everything else fails. */
static void test_only_what_is_needed(void **state)
{
    (void)state;
    check_recorded("only-needed");
}

static void test_dump(void **state)
{
    (void)state;
    struct program program =
        start((const char *const[]){need_program("attach"), "filter", "containers", "count", NULL});
    char *profile = join_path(test_directory, "dump.hwprof"), *dump = join_path(test_directory, "dumped.hwprof");
    begin(&program, profile);
    ask(&program);
    const char *const arguments[] = {"dump", "-q", "-o", dump, program.number, NULL};
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, 0, "dump");
    run_result_free(&result);
    json_t *report = load_report(dump, 0);
    assert_int_equal(json_number(report, "totals.allocations"), 1000);
    json_decref(report);
    detach(&program);
    ask(&program);
    assert_int_equal(finish(&program), 0);
    free(profile);
    free(dump);
}

/* Threads, forks, libraries, signals: with the filter of containers. */
static void test_busy(void **state)
{
    (void)state;
    struct program program =
        start((const char *const[]){need_program("attach"), "filter", "containers", "busy", "3", NULL});
    char *profile = join_path(test_directory, "busy-%p.hwprof");
    for (int round = 0; round < 5; round++) {
        begin(&program, profile);
        usleep(20000);
        detach(&program);
    }
    assert_int_equal(write(program.to, "x", 1), 1);
    assert_int_equal(finish(&program), 0);
    free(profile);
}

/* The sentence has all of WORDS. The program is as before. */
static void check_refused(const char *const argv[], const char *const words[])
{
    struct program program = start(argv);
    char *profile = join_path(test_directory, "refused.hwprof");
    const char *const arguments[] = {"attach", "-o", profile, program.number, NULL};
    struct run_result result = heapwise(arguments, NULL);
    skip_where_not_possible(&program, &result);
    assert_exit(&result, 2, "attach");
    for (; *words; words++)
        assert_contains(result.err, *words);
    assert_int_equal(access(profile, F_OK), -1);
    run_result_free(&result);
    if (strcmp(argv[1], "strict") != 0)
        ask(&program);
    assert_int_equal(finish(&program), 0);
    free(profile);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *words[4];
    } rows[] = {
        {"no-mmap",
         {"does not permit what a recording needs", "recording needs: mmap fails (Operation not permitted). Record it",
          NULL}},
        {"kill-fallocate", {"fallocate kills the process", NULL}},
        {"trap-membarrier", {"membarrier sends SIGSYS", NULL}},
        {"pretend-fcntl", {"fcntl returns 0 without being done", NULL}},
        {"no-code", {"recording needs: mprotect with PROT_EXEC fails (Operation not permitted)", NULL}},
        {"read-from-one", {"read is permitted with some arguments only", NULL}},
        {"containers+kill-fallocate", {"fallocate kills the process", NULL}},
        {"kill-fallocate+containers", {"fallocate kills the process", NULL}},
        {"no-mmap+trap-membarrier", {"mmap fails (Operation not permitted)", "membarrier sends SIGSYS", NULL}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_refused((const char *const[]){need_program("attach"), "filter", rows[i].kind, "count", NULL},
                      rows[i].words);
    check_refused((const char *const[]){need_program("attach"), "strict", NULL},
                  (const char *const[]){"seccomp, strict mode", NULL});
}

/* Only one thread, which is not the first one, has it. */
static void test_of_one_thread(void **state)
{
    (void)state;
    check_refused((const char *const[]){need_program("attach"), "thread", "kill-fallocate", NULL},
                  (const char *const[]){"fallocate kills the process", NULL});
}

/* The kernel continues sleeps after a stop by a call of its own, for which this filter kills. */
static void test_sleepers(void **state)
{
    (void)state;
    struct program program =
        start((const char *const[]){need_program("attach"), "filter", "kill-restart", "sleep", NULL});
    char *profile = join_path(test_directory, "sleepers.hwprof");
    begin(&program, profile);
    ask(&program);
    detach(&program);
    ask(&program);
    json_t *report = load_report(profile, 0);
    assert_int_equal(json_number(report, "totals.allocations"), 1000);
    json_decref(report);
    free(profile);
    assert_int_equal(finish(&program), 0);
    check_refused((const char *const[]){need_program("attach"), "filter", "kill-restart+kill-fallocate", "sleep", NULL},
                  (const char *const[]){"fallocate kills the process", NULL});
}

/* A user who is not root cannot read filters. */
static void test_of_users(void **state)
{
    (void)state;
    if (geteuid() != 0)
        SKIP("needs root");
    if (!have_command("setpriv"))
        SKIP("there is no setpriv");
    struct program program =
        start((const char *const[]){need_program("attach"), "filter", "containers", "count", NULL});
    const char *const argv[] = {
        "setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", heapwise_path(), "attach", program.number,
        NULL};
    struct run_result result = run(argv, NULL);
    if (strstr(result.err, "no permission to") || strstr(result.err, "setpriv")) {
        kill(program.pid, SIGKILL);
        finish(&program);
        SKIP("processes cannot be traced here");
    }
    assert_exit(&result, 2, "attach");
    assert_contains(result.err, "what it permits is not known");
    run_result_free(&result);
    ask(&program);
    assert_int_equal(finish(&program), 0);
}

TEST_LIST_WITH(make_test_directory, remove_test_directory, cmocka_unit_test(test_of_containers),
               cmocka_unit_test(test_two_filters), cmocka_unit_test(test_only_what_is_needed),
               cmocka_unit_test(test_dump), cmocka_unit_test(test_busy), cmocka_unit_test(test_refused),
               cmocka_unit_test(test_of_one_thread), cmocka_unit_test(test_sleepers), cmocka_unit_test(test_of_users))
