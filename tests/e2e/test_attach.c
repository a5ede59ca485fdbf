/* test_attach.c - heapwise attach and detach: counts against those that programs/attach.c is known to have, code that
 * is as before, and programs that check themselves while they are attached to, again and again. */
#include "support/attached.h"
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 3

static void test_counts_are_exact(void **state)
{
    (void)state;
    struct program program = start((const char *const[]){need_program("attach"), "count", NULL});
    const uint64_t before = sum_of_code(&program);
    for (int round = 0; round < ROUNDS; round++) {
        char name[32];
        snprintf(name, sizeof name, "%d.hwprof", round);
        char *profile = join_path(test_directory, name);
        ask(&program);
        attach(&program, profile, NULL);
        assert_true(sum_of_code(&program) != before);
        ask(&program);
        ask(&program);
        detach(&program);
        assert_true(sum_of_code(&program) == before);
        ask(&program);
        json_t *report = load_report(profile, 0);
        assert_int_equal(json_number(report, "totals.allocations"), 2000);
        assert_int_equal(json_number(report, "totals.frees"), 1500);
        assert_int_equal(json_number(report, "totals.reallocations"), 2);
        assert_int_equal(json_number(report, "totals.foreign_frees"), 500);
        assert_int_equal(json_number(report, "totals.live_allocations"), 500);
        assert_true(json_is_true(json_object_get(json_object_get(report, "process"), "attached")));
        const int64_t older = json_number(report, "process.older_bytes"); /* 500 blocks, and those of libc */
        assert_true(older >= 50000 && older < 5000000);
        assert_string_equal(json_text(report, "process.state"), "ended");
        assert_true(report_says(report, "blocks from before"));
        assert_contexts_sum_to_totals(report);
        json_decref(report);
        free(profile);
    }
    assert_int_equal(finish(&program), 0);
}

static void test_other_verbs_read_it(void **state)
{
    (void)state;
    struct program program = start((const char *const[]){need_program("attach"), "count", NULL});
    char *profile = join_path(test_directory, "verbs.hwprof");
    attach(&program, profile, NULL);
    ask(&program);
    const char *const dump[] = {"dump", program.number, NULL};
    struct run_result result = heapwise(dump, NULL);
    assert_exit(&result, 0, "dump");
    run_result_free(&result);
    const char *const leaks[] = {"leaks", program.number, NULL};
    assert_refused(leaks, "is recorded since heapwise attach");
    detach(&program);
    const char *const report[] = {"report", "--all", profile, NULL};
    result = heapwise(report, NULL);
    assert_exit(&result, 0, "report");
    assert_contains(result.out, "until heapwise detach");
    assert_contains(result.out, "count_once");
    run_result_free(&result);
    free(profile);
    assert_int_equal(finish(&program), 0);
}

static void assert_not_done(const char *verb, const char *number, const char *message)
{
    const char *const arguments[] = {verb, number, NULL};
    assert_refused(arguments, message);
}

/* A child knows no older blocks either. */
static void test_forked_child(void **state)
{
    (void)state;
    struct program program = start((const char *const[]){need_program("attach"), "family", NULL});
    char *profile = join_path(test_directory, "family.hwprof"), number[16], name[48];
    pid_t child = 0;
    attach(&program, profile, NULL);
    assert_int_equal(write(program.to, "x", 1), 1);
    assert_int_equal(read(program.from, &child, sizeof child), sizeof child);
    snprintf(number, sizeof number, "%d", (int)child);
    assert_not_done("leaks", number, "is recorded since heapwise attach");
    ask(&program);
    detach(&program);
    snprintf(name, sizeof name, "family.%s.hwprof", number);
    char *of_child = join_path(test_directory, name);
    json_t *report = load_report(of_child, 0);
    assert_int_equal(json_number(report, "totals.allocations"), 50);
    assert_true(json_is_true(json_object_get(json_object_get(report, "process"), "attached")));
    assert_true(json_is_true(json_object_get(json_object_get(report, "process"), "forked")));
    assert_false(json_is_integer(json_object_get(json_object_get(report, "process"), "older_bytes")));
    assert_true(report_says(report, "forked by one that was recorded since heapwise attach"));
    assert_false(report_says(report, "The recording began while"));
    json_decref(report);
    free(of_child);
    free(profile);
    assert_int_equal(finish(&program), 0);
}

/* LIBRARY: an allocator for LD_PRELOAD, or "". Functions that call others inside it are counted once. */
static void check_arrays(const char *library, const char *allocator)
{
    char preload[PATH_MAX + 16];
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library);
    struct program program =
        start((const char *const[]){"/usr/bin/env", preload, need_program("attach"), "arrays", NULL});
    char *profile = join_path(test_directory, allocator);
    attach(&program, profile, NULL);
    ask(&program);
    detach(&program);
    json_t *report = load_report(profile, 0);
    assert_int_equal(strncmp(json_text(report, "process.allocator"), allocator, strlen(allocator)), 0);
    assert_int_equal(json_number(report, "totals.allocations"), 200);
    assert_int_equal(json_number(report, "totals.reallocations"), 200);
    assert_int_equal(json_number(report, "totals.frees"), 200);
    assert_int_equal(json_number(report, "totals.bytes_allocated"),
                     100 * (600 + 640)); /* reallocations: what they add */
    assert_int_equal(json_number(report, "totals.foreign_frees"), 0);
    assert_int_equal(json_number(report, "totals.nested_calls"), 0);
    assert_false(report_says(report, "no room for the map"));
    assert_contexts_sum_to_totals(report);
    json_decref(report);
    free(profile);
    assert_int_equal(finish(&program), 0);
}

static void test_calls_inside_the_allocator(void **state)
{
    (void)state;
    check_arrays("", "glibc");
}

static void test_calls_inside_mimalloc(void **state)
{
    (void)state;
    const char *library = program_path("libmimalloc.so");
    if (!library)
        SKIP("%s is not installed", "libmimalloc.so");
    check_arrays(library, "mimalloc");
}

static void test_sampled(void **state)
{
    (void)state;
    /* as of servers that write their state over their arguments: what is empty at the end is left out */
    struct program program = start((const char *const[]){need_program("attach"), "count", "", "", NULL});
    char *profile = join_path(test_directory, "sampled.hwprof");
    attach(&program, profile, "--sample-bytes=4K");
    for (int i = 0; i < 20; i++)
        ask(&program);
    detach(&program);
    json_t *report = load_report(profile, 0);
    assert_int_equal(json_number(report, "process.sample_bytes"), 4096);
    assert_int_equal(json_array_size(json_object_get(json_object_get(report, "process"), "command")), 2);
    const int64_t estimate = json_number(report, "totals.sampled.allocations");
    assert_true(estimate > 10000 && estimate < 40000); /* 20,000 of them */
    json_decref(report);
    free(profile);
    assert_int_equal(finish(&program), 0);
}

static void test_threads_notice_nothing(void **state)
{
    (void)state;
    struct program program = start((const char *const[]){need_program("attach"), "busy", "4", NULL});
    const uint64_t before = sum_of_code(&program);
    for (int round = 0; round < 10; round++) {
        char name[32];
        snprintf(name, sizeof name, "busy-%d-%%p.hwprof", round);
        char *profile = join_path(test_directory, name);
        attach(&program, profile, round % 3 == 2 ? "--sample-bytes=10K" : NULL);
        usleep(20000);
        detach(&program);
        free(profile);
    }
    assert_true(sum_of_code(&program) == before);
    assert_int_equal(write(program.to, "x", 1), 1);
    assert_int_equal(finish(&program), 0);
}

/* `heapwise VERB PID`, in the directory of this test. */
static pid_t begin_verb(const struct program *program, const char *verb)
{
    const pid_t pid = fork();
    if (pid == 0) {
        const int null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        dup2(null, 2);
        if (chdir(test_directory) == 0)
            execl(heapwise_path(), "heapwise", verb, "-q", program->number, (char *)NULL);
        _exit(127);
    }
    return pid;
}

/* Two of them at the same moment: one does it, the other one finds it done. */
static void do_twice_at_once(const struct program *program, const char *verb)
{
    const pid_t pids[2] = {begin_verb(program, verb), begin_verb(program, verb)};
    int status[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(waitpid(pids[i], &status[i], 0), pids[i]);
    assert_true(WIFEXITED(status[0]) && WIFEXITED(status[1]));
    assert_int_equal(WEXITSTATUS(status[0]) + WEXITSTATUS(status[1]), 2);
}

static void test_two_at_once(void **state)
{
    (void)state;
    struct program program = start((const char *const[]){need_program("attach"), "busy", "2", NULL});
    const uint64_t before = sum_of_code(&program);
    char *profile = join_path(test_directory, "at-once.hwprof");
    attach(&program, profile, NULL); /* skips the test where that is not possible */
    detach(&program);
    for (int round = 0; round < 6; round++) {
        do_twice_at_once(&program, "attach");
        do_twice_at_once(&program, "detach");
    }
    assert_true(sum_of_code(&program) == before);
    assert_int_equal(write(program.to, "x", 1), 1);
    assert_int_equal(finish(&program), 0);
    free(profile);
}

/* Begins VERB, and kills heapwise after a moment. */
static void kill_in_the_middle(const struct program *program, const char *verb, unsigned moment_us)
{
    int status = 0;
    const pid_t pid = begin_verb(program, verb);
    usleep(moment_us);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

/* A thread that was borrowed at that moment comes back by itself, after some seconds: the program can end. */
static void test_killed_in_the_middle(void **state)
{
    (void)state;
    struct program program = start((const char *const[]){need_program("attach"), "busy", "3", NULL});
    char *profile = join_path(test_directory, "killed.hwprof");
    attach(&program, profile, NULL);
    detach(&program);
    for (unsigned i = 0; i < 40; i++)
        kill_in_the_middle(&program, i % 3 == 2 ? "detach" : "attach", 2000 + i * 1700 % 40000);
    assert_int_equal(kill(program.pid, 0), 0);
    assert_int_equal(write(program.to, "x", 1), 1);
    assert_int_equal(finish(&program), 0);
    free(profile);
}

static bool has_ended(pid_t child)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid;
}

/* As soon as the process is done with an attempt before. */
static void attach_soon(const struct program *program, const char *profile)
{
    const char *const arguments[] = {"attach", "-q", "-o", profile, program->number, NULL};
    struct run_result result = heapwise(arguments, NULL);
    for (int i = 0; i < 200 && result.code && strstr(result.err, "is not done yet"); i++) {
        run_result_free(&result);
        usleep(50000);
        result = heapwise(arguments, NULL);
    }
    assert_exit(&result, 0, "attach");
    run_result_free(&result);
}

/* The process does not answer while it begins, and heapwise is interrupted: nothing of the recording stays. */
static void test_given_up(void **state)
{
    (void)state;
    struct program program = start((const char *const[]){need_program("attach-slow"), "slow", NULL});
    char *profile = join_path(test_directory, "given-up.hwprof"), *again = join_path(test_directory, "again.hwprof");
    const char *const argv[] = {heapwise_path(), "attach", "-o", profile, program.number, NULL};
    struct run_process command = run_start(argv, NULL);
    struct pollfd asked = {.fd = program.from, .events = POLLIN};
    for (int i = 0; i < 600 && poll(&asked, 1, 100) == 0 && !has_ended(command.pid); i++)
        ;
    kill(command.pid, SIGINT);
    struct run_result result = run_finish(&command, 120);
    if (strstr(result.err, "no permission to")) {
        kill(program.pid, SIGKILL);
        finish(&program);
        SKIP("processes cannot be traced here");
    }
    assert_int_equal(read_byte(&program), 's');
    assert_exit(&result, 2, "attach");
    assert_contains(result.err, "had not answered yet");
    assert_contains(result.err, "is undone as soon as it answers");
    run_result_free(&result);
    assert_not_done("detach", program.number, "is not recorded");
    kill(program.pid, SIGUSR1);
    for (int i = 0; i < 6000 && access(profile, F_OK) == 0; i++)
        usleep(10000);
    assert_int_equal(access(profile, F_OK), -1);
    ask(&program);
    attach_soon(&program, again);
    ask(&program);
    detach(&program);
    json_t *report = load_report(again, 0);
    assert_int_equal(json_number(report, "totals.allocations"), 1000);
    assert_int_equal(json_number(report, "process.older_bytes"), 100000);
    json_decref(report);
    assert_int_equal(finish(&program), 0);
    free(profile);
    free(again);
}

/* Until the command says WORDS; false: it may not trace processes, or has ended. */
static bool wait_for_words(const struct run_process *command, const char *words)
{
    char said[4096] = "";
    for (int i = 0; i < 6000 && !strstr(said, words) && !strstr(said, "no permission to"); i++) {
        usleep(10000);
        const ssize_t got = pread(command->err, said, sizeof said - 1, 0);
        said[got > 0 ? got : 0] = '\0';
    }
    return strstr(said, words);
}

/* What -o may be, and what happens where a file is already. */
static void test_names(void **state)
{
    (void)state;
    struct program program = start((const char *const[]){need_program("attach"), "count", NULL});
    assert_refused((const char *const[]){"attach", "-o", "", program.number, NULL}, "is not the name of a file");
    assert_refused((const char *const[]){"attach", "-o", "x/", program.number, NULL}, "is not the name of a file");
    assert_refused((const char *const[]){"attach", "-o", test_directory, program.number, NULL}, "is a directory");
    assert_refused((const char *const[]){"attach", "-o", "%z", program.number, NULL}, "unknown placeholder");
    assert_refused((const char *const[]){"attach", "--for", "0.5", program.number, NULL}, "whole seconds");
    assert_refused((const char *const[]){"attach", program.number, program.number, NULL}, "one process at a time");
    char *pattern = join_path(test_directory, "%e.%p.hwprof"), name[64];
    for (int i = 0; i < 3; i++) {
        attach(&program, pattern, NULL);
        detach(&program);
    }
    for (int i = 1; i <= 3; i++) {
        snprintf(name, sizeof name, i == 1 ? "attach.%s.hwprof" : "attach.%s.%d.hwprof", program.number, i);
        char *path = join_path(test_directory, name);
        assert_int_equal(access(path, F_OK), 0);
        free(path);
    }
    assert_int_equal(finish(&program), 0);
    free(pattern);
}

/* attach --for, and another command ends it. */
static void test_detached_by_another(void **state)
{
    (void)state;
    struct program program = start((const char *const[]){need_program("attach"), "count", NULL});
    char *profile = join_path(test_directory, "another.hwprof");
    const char *const argv[] = {heapwise_path(), "attach", "-o", profile, "--for", "1h", program.number, NULL};
    struct run_process command = run_start(argv, NULL);
    const bool recorded = wait_for_words(&command, "is recorded into");
    if (recorded) {
        detach(&program);
        kill(command.pid, SIGINT);
    }
    struct run_result result = run_finish(&command, 60);
    if (!recorded && strstr(result.err, "no permission to"))
        SKIP("processes cannot be traced here");
    assert_exit(&result, 0, "attach --for");
    assert_contains(result.err, "is not recorded any more");
    assert_contains(result.err, "another.hwprof");
    run_result_free(&result);
    json_decref(load_report(profile, 0));
    assert_int_equal(finish(&program), 0);
    free(profile);
}

/* attach --for, and the process executes another program. */
static void test_executed(void **state)
{
    (void)state;
    struct program program = start((const char *const[]){need_program("attach"), "exec", NULL});
    char *profile = join_path(test_directory, "executed.hwprof");
    const char *const argv[] = {heapwise_path(), "attach", "-o", profile, "--for", "1h", program.number, NULL};
    struct run_process command = run_start(argv, NULL);
    const bool recorded = wait_for_words(&command, "is recorded into");
    assert_int_equal(write(program.to, "x", 1), 1);
    assert_int_equal(read_byte(&program), 'r');
    struct run_result result = run_finish(&command, 60);
    if (!recorded && strstr(result.err, "no permission to"))
        SKIP("processes cannot be traced here");
    assert_exit(&result, 0, "attach --for");
    assert_contains(result.err, "has executed another program");
    run_result_free(&result);
    json_decref(load_report(profile, 0));
    assert_not_done("detach", program.number, "is not recorded");
    ask(&program);
    assert_int_equal(finish(&program), 0);
    free(profile);
}

static void test_refused(void **state)
{
    (void)state;
    struct program program = start((const char *const[]){need_program("attach"), "count", NULL});
    kill(program.pid, SIGSTOP);
    siginfo_t information;
    assert_int_equal(waitid(P_PID, (id_t)program.pid, &information, WSTOPPED | WNOWAIT), 0);
    assert_not_done("attach", program.number, "is stopped");
    kill(program.pid, SIGCONT);
    kill(program.pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)program.pid, &information, WEXITED | WNOWAIT), 0);
    assert_not_done("attach", program.number, "has ended");
    finish(&program);
    assert_not_done("attach", program.number, "there is no process");
    assert_not_done("attach", "x", "'x' is not the number of a process");
    assert_not_done("detach", "0", "'0' is not the number of a process");
}

static void test_recorded_already(void **state)
{
    (void)state;
    struct program program = start((const char *const[]){need_program("attach"), "count", NULL});
    char *profile = join_path(test_directory, "twice.hwprof"), *nowhere = join_path(*state, "no/such/folder.hwprof");
    const char *const failing[] = {"attach", "-o", nowhere, program.number, NULL};
    const uint64_t before = sum_of_code(&program);
    struct run_result result = heapwise(failing, NULL);
    if (strstr(result.err, "no permission to"))
        SKIP("processes cannot be traced here");
    assert_exit(&result, 2, "attach");
    assert_contains(result.err, "a profile cannot be written");
    run_result_free(&result);
    assert_true(sum_of_code(&program) == before);
    assert_not_done("detach", program.number, "is not recorded");
    attach(&program, profile, NULL);
    assert_not_done("attach", program.number, "is recorded already");
    assert_not_done("start", program.number, "is recorded since heapwise attach");
    detach(&program);
    assert_not_done("detach", program.number, "is not recorded any more");
    assert_not_done("stop", program.number, "is not recorded any more, since heapwise detach");
    assert_not_done("dump", program.number, "is not recorded any more, since heapwise detach");
    ask(&program);
    assert_int_equal(finish(&program), 0);
    free(profile);
    free(nowhere);
}

/* ---- a process that sees other files ---- */

/* The loader and the C library that this test uses, into ROOT; the program; places for /proc and the profile. */
static bool make_root(const char *root, const char *program)
{
    char command[3 * PATH_MAX];
    snprintf(
        command, sizeof command,
        "cd '%s' && mkdir proc tmp lib64 libraries && cp '%s' program && "
        "cp -L /lib64/ld-linux-x86-64.so.2 lib64/ && "
        "for f in $(sed -n 's,^[^/]*\\(/.*/lib\\(c\\|pthread\\|dl\\)[.-][^/]*$\\),\\1,p' /proc/self/maps | sort -u); "
        "do cp -L $f libraries/; done && test -e libraries/libc.so.6",
        root, program);
    const char *const argv[] = {"sh", "-c", command, NULL};
    struct run_result made = run(argv, NULL);
    const bool fine = made.code == 0;
    run_result_free(&made);
    return fine;
}

/* The process whose root directory is ROOT; 0: none. */
static pid_t find_by_root(const char *root)
{
    pid_t found = 0;
    DIR *list = opendir("/proc");
    for (struct dirent *entry; list && !found && (entry = readdir(list));) {
        char path[300], link[4096];
        const long number = strtol(entry->d_name, NULL, 10);
        snprintf(path, sizeof path, "/proc/%ld/root", number);
        const ssize_t length = number > 0 ? readlink(path, link, sizeof link - 1) : -1;
        link[length > 0 ? length : 0] = '\0';
        found = strcmp(link, root) == 0 ? (pid_t)number : 0;
    }
    if (list)
        closedir(list);
    return found;
}

static void test_container(void **state)
{
    const char *attached = need_program("attach");
    char *directory = make_directory(), root[PATH_MAX], command[3 * PATH_MAX];
    assert_non_null(realpath(directory, root));
    if (geteuid() != 0 || !have_command("unshare") || !make_root(root, attached))
        SKIP("no container can be made here");
    snprintf(command, sizeof command,
             "mount -t proc proc '%s/proc' && LD_LIBRARY_PATH=/libraries exec chroot '%s' /program count", root, root);
    int to[2], from[2];
    assert_int_equal(pipe2(to, O_CLOEXEC), 0);
    assert_int_equal(pipe2(from, O_CLOEXEC), 0);
    struct program program = {.to = to[1], .from = from[0], .pid = fork()};
    if (program.pid == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        execlp("unshare", "unshare", "-mpf", "sh", "-c", command, NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    if (read_byte(&program) != 'r') {
        finish(&program);
        SKIP("no container can be made here");
    }
    snprintf(program.number, sizeof program.number, "%d", (int)find_by_root(root));
    assert_string_not_equal(program.number, "0");
    const char *const relative[] = {"attach", "-o", "p.hwprof", program.number, NULL};
    assert_refused(relative, "sees other files than this command");
    for (int round = 0; round < 2; round++) {
        char name[64];
        snprintf(name, sizeof name, "/tmp/%d.hwprof", round);
        const char *const arguments[] = {"attach", "-o", name, program.number, NULL};
        struct run_result result = heapwise(arguments, NULL);
        if (result.code && strstr(result.err, "no permission to"))
            SKIP("processes cannot be traced here");
        assert_exit(&result, 0, "attach");
        assert_contains(result.err, "/root/tmp/");
        run_result_free(&result);
        ask(&program);
        detach(&program);
        ask(&program);
        char *profile = join_path(root, name);
        json_t *report = load_report(profile, 0);
        assert_int_equal(json_number(report, "totals.allocations"), 1000);
        assert_string_equal(json_text(report, "process.state"), "ended");
        json_decref(report);
        free(profile);
    }
    assert_int_equal(finish(&program), 0);
    remove_directory(directory);
}

/* record -p: begins, waits for the end that it is asked for, and ends. */
static void test_record_until_signal(void **state)
{
    struct program program = start((const char *const[]){need_program("attach"), "count", NULL});
    char *profile = join_path(test_directory, "until.hwprof");
    const uint64_t before = sum_of_code(&program);
    const char *const argv[] = {heapwise_path(), "record", "-o", profile, "-p", program.number, NULL};
    struct run_process record = run_start(argv, NULL);
    const bool recorded = wait_for_words(&record, "until Ctrl-C");
    if (recorded) {
        assert_true(sum_of_code(&program) != before);
        ask(&program);
        kill(record.pid, SIGINT);
    }
    struct run_result result = run_finish(&record, 60);
    if (!recorded && strstr(result.err, "no permission to"))
        SKIP("processes cannot be traced here");
    assert_exit(&result, 0, "record -p");
    assert_contains(result.err, "wrote ");
    assert_true(sum_of_code(&program) == before);
    json_t *report = load_report(profile, 0);
    assert_true(json_number(report, "totals.allocations") > 0);
    assert_true(json_is_true(json_object_get(json_object_get(report, "process"), "attached")));
    json_decref(report);
    run_result_free(&result);
    /* The same for a time. */
    const char *const timed[] = {"record", "-q", "-f", "--for", "1", "-p", program.number, NULL};
    result = heapwise(timed, NULL);
    assert_exit(&result, 125, "record -p");
    assert_contains(result.err, "-p can only be combined with");
    run_result_free(&result);
    char *second = join_path(test_directory, "for.hwprof");
    const char *const again[] = {"record", "-q", "-o", second, "--for", "1", "-p", program.number, NULL};
    result = heapwise(again, NULL);
    assert_exit(&result, 0, "record -p --for");
    assert_string_equal(result.err, "");
    run_result_free(&result);
    json_decref(load_report(second, 0));
    assert_true(sum_of_code(&program) == before);
    ask(&program);
    assert_int_equal(finish(&program), 0);
    free(second);
    free(profile);
}

static void test_record_wrong_use(void **state)
{
    static const struct {
        const char *arguments[6], *message;
    } rows[] = {{{"record", "-p", "1", "true", NULL}, "either -p PID or PROGRAM"},
                {{"record", "-p", "1", "--leaks", NULL}, "-p can only be combined with"},
                {{"record", "--for", "1", "true", NULL}, "--for needs -p"},
                {{"record", "-p", "2147483647", NULL}, "there is no process"},
                {{"record", "-p", "x", NULL}, "pid"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct run_result result = heapwise(rows[i].arguments, NULL);
        assert_exit(&result, 125, rows[i].message);
        assert_contains(result.err, rows[i].message);
        run_result_free(&result);
    }
}

TEST_LIST_WITH(make_test_directory, remove_test_directory, cmocka_unit_test(test_counts_are_exact),
               cmocka_unit_test(test_other_verbs_read_it), cmocka_unit_test(test_forked_child),
               cmocka_unit_test(test_calls_inside_the_allocator), cmocka_unit_test(test_calls_inside_mimalloc),
               cmocka_unit_test(test_sampled), cmocka_unit_test(test_threads_notice_nothing),
               cmocka_unit_test(test_two_at_once), cmocka_unit_test(test_given_up),
               cmocka_unit_test(test_killed_in_the_middle), cmocka_unit_test(test_refused),
               cmocka_unit_test(test_names), cmocka_unit_test(test_detached_by_another),
               cmocka_unit_test(test_executed), cmocka_unit_test(test_recorded_already),
               cmocka_unit_test(test_container), cmocka_unit_test(test_record_until_signal),
               cmocka_unit_test(test_record_wrong_use))
