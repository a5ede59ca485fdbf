/* test_dump.c - dumps of running processes, resets: see programs/dump.c. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- a program that runs while the test acts ---- */

struct victim {
    char *directory, *until, *profile;
    char options[512], preload[600];
    struct run_process process;
};

static void nap(long milliseconds)
{
    nanosleep(&(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000}, NULL);
}

static const char *output_of(const struct victim *victim)
{
    static char text[4096];
    ssize_t got = pread(victim->process.out, text, sizeof text - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    return text;
}

static void start_program(struct victim *victim, const char *program, const char *name, const char *more_options)
{
    memset(victim, 0, sizeof *victim);
    victim->directory = make_directory();
    victim->until = join_path(victim->directory, "until");
    victim->profile = join_path(victim->directory, "p.hwprof");
    snprintf(victim->options, sizeof victim->options, "HEAPWISE_OPTIONS=output=%s%s", victim->profile, more_options);
    snprintf(victim->preload, sizeof victim->preload, "LD_PRELOAD=%s", runtime_path());
    const char *const environment[] = {victim->options, victim->preload, NULL};
    const char *const argv[] = {program, name, victim->until, NULL};
    victim->process = run_start(argv, &(struct run_options){.environment = environment});
}

/* The program `dump` built by heapwise cc. */
static const char *counting_program(void)
{
    static char *program;
    if (program)
        return program;
    char *path = join_path(make_directory(), "dump-cc"), *source = join_path(TEST_SOURCES, "programs/dump.c"),
         *headers = join_path(TEST_SOURCES, "../include");
    const char *const argv[] = {heapwise_path(), "cc", "-O2", "-g",   "-w", "-pthread", "-D_GNU_SOURCE", "-I",
                                headers,         "-o", path,  source, NULL};
    struct run_result built = run(argv, &(struct run_options){.timeout_s = 120});
    if (built.code != 0)
        SKIP("heapwise cc does not work here: %.300s", built.err);
    run_result_free(&built);
    free(source);
    free(headers);
    return program = path;
}

static struct victim wait_until_ready(const char *program, const char *name, const char *more_options)
{
    struct victim victim;
    start_program(&victim, program, name, more_options);
    for (int i = 0; i < 6000 && !strstr(output_of(&victim), "ready"); i++)
        nap(10);
    return victim;
}

/* Starts a case of the program `dump`; waits until it says that it is ready. */
static struct victim start(const char *name, const char *more_options)
{
    const char *program = need_program("dump");
    return wait_until_ready(program, name, more_options);
}

static struct run_result tell_to_end(struct victim *victim)
{
    int file = open(victim->until, O_WRONLY | O_CREAT, 0600);
    assert_true(file >= 0);
    close(file);
    return run_finish(&victim->process, 60);
}

static void clean_up(struct victim *victim)
{
    remove_directory(victim->directory);
    free(victim->until);
    free(victim->profile);
}

static void finish(struct victim *victim)
{
    struct run_result result = tell_to_end(victim);
    assert_exit(&result, 0, "the program that was dumped");
    run_result_free(&result);
    clean_up(victim);
}

static struct victim run_program(const char *program, const char *name, const char *more_options)
{
    struct victim victim;
    start_program(&victim, program, name, more_options);
    struct run_result result = run_finish(&victim.process, 120);
    assert_exit(&result, 0, name);
    if (*result.out)
        print_message("%s: %s", name, result.out);
    run_result_free(&result);
    return victim;
}

/* Runs a case to its end. */
static struct victim run_case(const char *name, const char *more_options)
{
    const char *program = need_program("dump");
    return run_program(program, name, more_options);
}

static char *dump_name(const struct victim *victim, int number)
{
    char name[32];
    snprintf(name, sizeof name, "p.dump%d.hwprof", number);
    return join_path(victim->directory, name);
}

static json_t *load_dump(const struct victim *victim, int number)
{
    char *path = dump_name(victim, number);
    json_t *report = load_report(path, 0);
    free(path);
    return report;
}

static struct run_result dump_pid(pid_t pid, const char *file, const struct run_options *options)
{
    char number[16];
    snprintf(number, sizeof number, "%d", (int)pid);
    const char *const with_file[] = {"dump", "-o", file, number, NULL}, *const without[] = {"dump", number, NULL};
    return heapwise(file ? with_file : without, options);
}

/* heapwise dump of the victim must succeed; the report. FILE: that name was asked for, else the next number is. */
static json_t *dump_and_load(const struct victim *victim, const char *file, int number)
{
    char *path = file ? join_path(victim->directory, file) : dump_name(victim, number);
    struct run_result result = dump_pid(victim->process.pid, file ? path : NULL, NULL);
    assert_exit(&result, 0, "heapwise dump");
    assert_string_equal(result.err, "");
    assert_int_equal(strncmp(result.out, path, strlen(path)), 0);
    assert_string_equal(result.out + strlen(path), "\n");
    run_result_free(&result);
    json_t *report = load_report(path, 0);
    free(path);
    return report;
}

static void assert_one_block(const json_t *report)
{
    const json_t *context = only_context(report, "one_block");
    assert_int_equal(json_number(context, "allocations"), 1);
    assert_int_equal(json_number(context, "live_allocations"), 1);
    assert_int_equal(json_number(context, "live_bytes"), 100);
}

static size_t count_files(const struct victim *victim)
{
    size_t count;
    free_list(list_files(victim->directory, ".hwprof", &count));
    return count;
}

/* ---- by the program ---- */

static void test_three_dumps_of_one_block(void **state)
{
    struct victim victim = run_case("three", "");
    assert_int_equal(count_files(&victim), 4);
    for (int i = 0; i < 4; i++) {
        json_t *report = i ? load_dump(&victim, i) : load_report(victim.profile, 0);
        assert_one_block(report);
        assert_int_equal(report_totals(report).live_bytes, 100);
        assert_contexts_sum_to_totals_but_peak(report);
        assert_string_equal(json_text(report, "process.exit.code"), "");
        json_decref(report);
    }
    clean_up(&victim);
}

static void test_record_tells_dumps_from_processes(void **state)
{
    const char *program = need_program("dump");
    const char *const argv[] = {program, "three", NULL};
    char *directory = make_directory(), *file = join_path(directory, "p.hwprof");
    struct recording recording = record_and_load(argv, &(struct record_options){.file = file, .no_report = true});
    assert_exit(&recording.run, 0, "three");
    assert_contains(recording.run.err, "wrote 3 dumps");
    assert_lacks(recording.run.err, "more profile");
    assert_contains(recording.run.err, "p.hwprof: 1 allocation");
    recording_free(&recording);
    free(file);
    remove_directory(directory);
}

static void test_reset(void **state)
{
    struct victim victim = run_case("reset", "");
    for (int i = 0; i < 2; i++) {
        json_t *report = i ? load_dump(&victim, 1) : load_report(victim.profile, 0);
        struct sums before = report_sums(report, "before_reset"), after = report_sums(report, "after_reset");
        /* Nothing is left of the allocations; the block that grew afterwards is one of 80 bytes. */
        assert_int_equal(before.allocations, 0);
        assert_int_equal(before.frees, 0);
        assert_int_equal(before.live_allocations, 2);
        assert_int_equal(before.live_bytes, 1080);
        assert_int_equal(after.allocations, 5);
        assert_int_equal(after.frees, 2);
        assert_int_equal(after.live_bytes, 30);
        struct totals totals = report_totals(report);
        assert_int_equal(totals.allocations, 5);
        assert_int_equal(totals.frees, 2);
        assert_int_equal(totals.reallocations, 1);
        assert_int_equal(totals.live_allocations, 5);
        assert_int_equal(totals.live_bytes, 1110);
        assert_int_equal(totals.peak_bytes, 2050); /* live at the reset: what was before is forgotten */
        assert_contexts_sum_to_totals_but_peak(report);
        assert_int_equal(json_number(report, "totals.inherited.allocations"), 3);
        assert_int_equal(json_number(report, "totals.inherited.bytes"), 2050);
        assert_int_equal(json_number(report, "totals.inherited.frees"), 1);
        assert_int_equal(json_number(report, "totals.inherited.freed_bytes"), 1000);
        /* The two lines of reset() that call before_reset: two of 1000 bytes, one freed since; one of 50. */
        int64_t allocations = 0, bytes = 0, frees = 0, freed_bytes = 0;
        size_t index;
        json_t *context;
        json_array_foreach(json_object_get(report, "contexts"), index, context)
        {
            allocations += json_number(context, "inherited.allocations");
            bytes += json_number(context, "inherited.bytes");
            frees += json_number(context, "inherited.frees");
            freed_bytes += json_number(context, "inherited.freed_bytes");
        }
        assert_int_equal(allocations, 3);
        assert_int_equal(bytes, 2050);
        assert_int_equal(frees, 1);
        assert_int_equal(freed_bytes, 1000);
        json_decref(report);
    }
    clean_up(&victim);
}

/* The same numbers in allocator mode, where frees of older blocks are among the others. */
static void test_allocator_mode(void **state)
{
    struct victim victim = run_case("reset", ":mode=allocator");
    for (int i = 0; i < 2; i++) {
        json_t *report = i ? load_dump(&victim, 1) : load_report(victim.profile, 0);
        assert_string_equal(json_text(report, "process.mode"), "allocator");
        assert_int_equal(json_number(report, "totals.allocations"), 5);
        assert_int_equal(json_number(report, "totals.frees"), 3);
        assert_int_equal(json_number(report, "totals.reallocations"), 1);
        assert_int_equal(json_number(report, "totals.sampled.live_allocations"), 5);
        assert_int_equal(json_number(report, "totals.sampled.live_bytes"), 1110);
        assert_int_equal(json_number(report, "totals.sampled.peak_bytes"), 2050);
        assert_int_equal(json_number(report, "totals.inherited.allocations"), 3);
        assert_int_equal(json_number(report, "totals.inherited.bytes"), 2050);
        json_decref(report);
    }
    clean_up(&victim);
}

static void test_reset_in_a_forked_child(void **state)
{
    struct victim victim = run_case("reset_in_child", "");
    size_t count;
    char **files = list_files(victim.directory, ".hwprof", &count);
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++) {
        json_t *report = load_report(files[i], 0);
        struct totals totals = report_totals(report);
        struct sums before = report_sums(report, "before_reset"), after = report_sums(report, "after_reset");
        if (strcmp(files[i], victim.profile) == 0) {
            assert_int_equal(before.allocations, 3);
            assert_int_equal(totals.live_bytes, 3000);
        } else {
            assert_int_equal(before.live_bytes, 1000); /* one was freed before the first reset, one after it */
            assert_int_equal(before.allocations, 0);
            assert_int_equal(after.allocations, 1);
            assert_int_equal(after.live_bytes, 40);
            assert_int_equal(totals.live_allocations, 3);
            assert_int_equal(totals.live_bytes, 1040);
            assert_int_equal(totals.peak_bytes, 1040);
            assert_contexts_sum_to_totals_but_peak(report);
        }
        json_decref(report);
    }
    free_list(files);
    clean_up(&victim);
}

static void test_reset_while_threads_allocate(void **state)
{
    struct victim victim = run_case("reset_with_threads", "");
    json_t *report = load_report(victim.profile, 0);
    struct sums churned = report_sums(report, "churn"), before = report_sums(report, "before_reset"),
                after = report_sums(report, "after_reset");
    assert_int_equal(churned.live_allocations, 0);
    assert_int_equal(churned.live_bytes, 0);
    assert_int_equal(churned.allocations, 0);
    assert_int_equal(before.live_bytes, 1000);
    assert_int_equal(after.live_bytes, 2000);
    assert_int_equal(after.live_allocations, 200);
    assert_contexts_sum_to_totals_but_peak(report);
    json_decref(report);
    clean_up(&victim);
}

static void test_periodic_dumps(void **state)
{
    struct victim victim = run_case("periodic", ":dump-interval=0.1");
    size_t files = count_files(&victim);
    json_t *whole = load_report(victim.profile, 0);
    int64_t tenths = json_number(whole, "process.duration_ns") / 100000000;
    const bool put_off = report_says(whole, "periodic dump was put off"); /* where the machine is busy */
    json_decref(whole);
    if ((files < 4 && !put_off) || files > (size_t)tenths + 2) /* of a second or, when the machine is busy, more */
        fail_msg("%zu dumps in %lld tenths of a second", files - 1, (long long)tenths);
    int64_t allocations = 0;
    for (int i = 1; i < (int)files; i++) {
        json_t *report = load_dump(&victim, i);
        int64_t now = report_sums(report, "one_block").allocations;
        assert_true(now > allocations);
        assert_int_equal(report_sums(report, "one_block").live_allocations, now);
        allocations = now;
        json_decref(report);
    }
    json_t *report = load_report(victim.profile, 0);
    assert_int_equal(report_sums(report, "one_block").allocations, 100);
    json_decref(report);
    clean_up(&victim);
}

/* An interval that is shorter than any dump leaves the program its time, and the report says so. */
static void test_short_interval(void **state)
{
    struct victim victim = run_case("periodic", ":pinned=1:dump-interval=0.000002");
    assert_in_range(count_files(&victim), 2, 102); /* one at most for each of the program's blocks, and one before */
    json_t *report = load_report(victim.profile, 0);
    assert_true(report_says(report, "a periodic dump was put off"));
    assert_int_equal(report_sums(report, "one_block").allocations, 100);
    json_decref(report);
    clean_up(&victim);
}

static void test_dumps_in_a_signal_handler(void **state)
{
    struct victim victim = run_case("handler", "");
    assert_true(count_files(&victim) > 2);
    size_t count;
    char **files = list_files(victim.directory, ".hwprof", &count);
    for (size_t i = 0; i < count && i < 10; i++) {
        json_t *report = load_report(files[i], 0);
        assert_contexts_sum_to_totals_but_peak(report);
        json_decref(report);
    }
    free_list(files);
    clean_up(&victim);
}

static void test_dumps_and_forks(void **state)
{
    struct victim victim = run_case("forks", "");
    size_t count, children = 0;
    char **files = list_files(victim.directory, ".hwprof", &count);
    for (size_t i = 0; i < count; i++) {
        const char *name = strrchr(files[i], '/') + 1;
        bool of_parent = strncmp(name, "p.dump", 6) == 0 || strcmp(name, "p.hwprof") == 0;
        if (of_parent && i % 50)
            continue; /* there are many */
        json_t *report = load_report(files[i], 0);
        assert_contexts_sum_to_totals_but_peak(report);
        if (of_parent) {
            assert_int_equal(report_sums(report, "after_reset").allocations, 0);
            assert_one_block(report);
        } else {
            assert_int_equal(report_sums(report, "one_block").allocations, 0);
            if (!strstr(name, "dump")) {
                children++;
                assert_in_range(report_totals(report).allocations, 1, 2);
            } else {
                assert_in_range(report_totals(report).allocations, 0, 1);
            }
        }
        json_decref(report);
    }
    assert_int_equal(children, 20);
    free_list(files);
    clean_up(&victim);
}

static void test_hundred_dumps_leave_nothing_behind(void **state)
{
    struct victim victim = run_case("hundred", "");
    assert_int_equal(count_files(&victim), 111);
    json_t *report = load_dump(&victim, 110);
    assert_contexts_sum_to_totals_but_peak(report);
    json_decref(report);
    clean_up(&victim);
}

static void test_a_million_blocks(void **state)
{
    struct victim victim = run_case("million", "");
    json_t *report = load_dump(&victim, 1);
    assert_int_equal(report_sums(report, "one_block").live_allocations, 1000000);
    assert_contexts_sum_to_totals_but_peak(report);
    json_decref(report);
    clean_up(&victim);
}

/* A full disk, a directory that may not be written to: the program goes on, and there is no half file. */
static void limit_files(void *unused)
{
    signal(SIGXFSZ, SIG_DFL);
}

static void test_dump_without_room(void **state)
{
    const char *program = need_program("dump");
    struct victim victim;
    memset(&victim, 0, sizeof victim);
    victim.directory = make_directory();
    victim.until = join_path(victim.directory, "until");
    victim.profile = join_path(victim.directory, "p.hwprof");
    char options[512], preload[600];
    snprintf(options, sizeof options, "HEAPWISE_OPTIONS=output=%s", victim.profile);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", runtime_path());
    const char *const environment[] = {options, preload, NULL};
    const char *const argv[] = {program, "three", NULL};
    const struct run_limit limits[] = {{RLIMIT_FSIZE, 65536}, {-1, 0}};
    struct run_result result =
        run(argv, &(struct run_options){.environment = environment, .limits = limits, .prepare = limit_files});
    assert_int_equal(result.signal, 0);
    if (result.code == 0) { /* the profile itself found no room: then there is nothing to dump */
        assert_contains(result.err, "cannot write");
    } else {
        assert_int_equal(result.code, 98); /* heapwise_dump said -1 */
        assert_contains(result.err, "file size limit");
    }
    char *dump = dump_name(&victim, 1);
    assert_int_equal(access(dump, F_OK), -1);
    free(dump);
    run_result_free(&result);
    clean_up(&victim);
}

/* ---- from outside ---- */

static void test_dump_of_a_sleeping_process(void **state)
{
    struct victim victim = start("sleeping", "");
    for (int i = 1; i <= 2; i++) {
        json_t *report = dump_and_load(&victim, NULL, i);
        assert_one_block(report);
        assert_contexts_sum_to_totals_but_peak(report);
        assert_true(json_number(report, "totals.peak_rss_bytes") > 0);
        json_decref(report);
    }
    json_t *report = dump_and_load(&victim, "named.hwprof", 0);
    assert_one_block(report);
    json_decref(report);
    char *path = join_path(victim.directory, "named.hwprof"), number[16];
    struct run_result result = dump_pid(victim.process.pid, path, NULL);
    assert_exit(&result, 2, "a name that is taken");
    assert_contains(result.err, "exists already");
    run_result_free(&result);
    snprintf(number, sizeof number, "%d", (int)victim.process.pid);
    const char *const forced[] = {"dump", "-f", "-o", path, number, NULL};
    result = heapwise(forced, NULL);
    assert_exit(&result, 0, "-f");
    run_result_free(&result);
    free(path);
    finish(&victim);
}

/* What resident memory is made of at the moment of a dump: all of what the kernel says. */
static void assert_ledger_of_dump(const json_t *report, int64_t mapped)
{
    size_t index;
    json_t *moment, *row;
    int64_t rss = 0, rows = 0, found = 0;
    json_array_foreach(json_object_get(report, "memory"), index,
                       moment) if (!strcmp(json_text(moment, "moment"), "dump"))
    {
        rss = json_number(moment, "rss_bytes");
        found = json_number(moment, "mapped_bytes");
    }
    assert_true(rss > 0);
    json_array_foreach(json_object_get(report, "ledger"), index, row) if (!strcmp(json_text(row, "moment"), "dump"))
        rows += json_number(row, "resident_bytes");
    assert_int_equal(rows, rss);
    assert_int_equal(found, mapped);
}

/* The program maps memory before each dump, and uses its heap no more. */
static void test_ledger_of_a_sleeping_process(void **state)
{
    struct victim victim = start("maps", "");
    for (int i = 1; i <= 3; i++) {
        json_t *report = dump_and_load(&victim, NULL, i);
        assert_one_block(report);
        assert_ledger_of_dump(report, i << 20);
        json_decref(report);
        kill(victim.process.pid, SIGUSR1);
        for (int wait = 0; wait < 6000 && !strchr(output_of(&victim), '0' + i); wait++)
            nap(10);
    }
    struct run_result result = tell_to_end(&victim);
    assert_exit(&result, 0, "the program that was dumped");
    run_result_free(&result);
    /* In the process's own profile the moments of dumps are none. */
    json_t *report = load_report(victim.profile, 0), *moment;
    size_t index;
    json_array_foreach(json_object_get(report, "memory"), index, moment)
        assert_string_not_equal(json_text(moment, "moment"), "dump");
    json_array_foreach(json_object_get(report, "ledger"), index, moment)
        assert_string_not_equal(json_text(moment, "moment"), "dump");
    json_decref(report);
    clean_up(&victim);
}

static void test_dump_of_a_busy_process(void **state)
{
    struct victim victim = start("busy", "");
    int64_t allocations = 0;
    for (int i = 1; i <= 10; i++) {
        json_t *report = dump_and_load(&victim, NULL, i);
        assert_one_block(report);
        int64_t now = report_sums(report, "churn").allocations;
        assert_true(now >= allocations); /* the machine may be busy with others */
        allocations = now;
        /* Four threads, two blocks each at most: what is live cannot be more. */
        struct sums churned = report_sums(report, "churn");
        assert_in_range(churned.live_allocations + 4, 0, 16);
        json_decref(report);
    }
    finish(&victim);
}

static void test_dump_by_signal(void **state)
{
    struct victim victim = start("busy", ":dump-signal=62");
    for (int i = 1; i <= 20; i++) {
        json_t *report = dump_and_load(&victim, NULL, i);
        assert_one_block(report);
        assert_contexts_sum_to_totals_but_peak(report); /* exactly: nobody is in the middle of an event */
        json_decref(report);
    }
    json_t *report = dump_and_load(&victim, "named.hwprof", 0);
    assert_one_block(report);
    json_decref(report);
    char *taken = dump_name(&victim, 21);
    assert_int_equal(access(taken, F_OK), -1); /* it was moved to the name that was asked for */
    free(taken);
    kill(victim.process.pid, 62);
    for (int i = 0; i < 500; i++) {
        char *path = dump_name(&victim, 22);
        bool there = access(path, F_OK) == 0;
        free(path);
        if (there)
            break;
        nap(10);
    }
    nap(100);
    report = load_dump(&victim, 22);
    assert_one_block(report);
    json_decref(report);
    finish(&victim);
}

static void test_signal_of_the_program(void **state)
{
    static const char *const names[] = {"takes_signal", "takes_signal_simply"};
    for (int i = 0; i < 2; i++) {
        struct victim victim = start(names[i], ":dump-signal=62");
        json_t *report = dump_and_load(&victim, NULL, 1);
        assert_one_block(report);
        json_decref(report);
        finish(&victim);
    }
}

static void test_reading_goes_on(void **state)
{
    struct victim victim = start("keeps_reading", ":dump-signal=62");
    for (int i = 1; i <= 8; i++) {
        struct run_result result = dump_pid(victim.process.pid, NULL, NULL);
        assert_exit(&result, 0, "heapwise dump");
        run_result_free(&result);
    }
    json_t *report = load_dump(&victim, 8);
    assert_one_block(report);
    json_decref(report);
    finish(&victim);
}

static void test_no_answer(void **state)
{
    struct victim victim = start("blocks_signal", ":dump-signal=62");
    char number[16];
    snprintf(number, sizeof number, "%d", (int)victim.process.pid);
    const char *const arguments[] = {"dump", "--timeout=1", number, NULL};
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, 2, "a process that blocks the signal");
    assert_contains(result.err, "block signal 62");
    run_result_free(&result);
    finish(&victim);
    victim = start("sleeping", ":dump-signal=62");
    kill(victim.process.pid, SIGSTOP);
    snprintf(number, sizeof number, "%d", (int)victim.process.pid);
    result = heapwise(arguments, NULL);
    assert_exit(&result, 2, "a process that is stopped");
    assert_contains(result.err, "did not answer within 1 s");
    assert_contains(result.err, "The request for a dump stays");
    run_result_free(&result);
    kill(victim.process.pid, SIGCONT);
    finish(&victim);
}

static void test_processes_that_cannot_be_dumped(void **state)
{
    static const struct {
        const char *pid, *message;
    } cases[] = {{"4194303", "there is no process"}, {"nonsense", "is not the number"}, {"0", "is not the number"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const arguments[] = {"dump", cases[i].pid, NULL};
        struct run_result result = heapwise(arguments, NULL);
        assert_exit(&result, 2, cases[i].pid);
        assert_contains(result.err, cases[i].message);
        assert_string_equal(result.out, "");
        run_result_free(&result);
    }
    struct run_result result = dump_pid(getpid(), NULL, NULL);
    assert_exit(&result, 2, "a process that is not recorded");
    assert_contains(result.err, "is not recorded");
    run_result_free(&result);
    const char *const nothing[] = {"dump", NULL};
    result = heapwise(nothing, NULL);
    assert_exit(&result, 2, "no process");
    run_result_free(&result);
}

static void become_nobody(void *unused)
{
    if (setgid(65534) != 0 || setuid(65534) != 0)
        _exit(126);
}

static void test_no_permission(void **state)
{
    if (getuid() != 0)
        SKIP("only root can become another user");
    struct victim victim = start("sleeping", "");
    struct run_result result =
        dump_pid(victim.process.pid, NULL, &(struct run_options){.prepare = become_nobody, .directory = "/"});
    assert_exit(&result, 2, "as another user");
    assert_contains(result.err, "no permission");
    assert_contains(result.err, "root");
    run_result_free(&result);
    finish(&victim);
}

static void test_child_without_a_profile(void **state)
{
    struct victim victim = start("idle_child", "");
    int child = 0;
    assert_int_equal(sscanf(output_of(&victim), "child %d", &child), 1);
    struct run_result result = dump_pid(child, NULL, NULL);
    assert_exit(&result, 2, "a child that has not used its heap");
    assert_contains(result.err, "was forked");
    run_result_free(&result);
    finish(&victim);
}

static void test_deleted_profile(void **state)
{
    struct victim victim = start("sleeping", "");
    assert_int_equal(unlink(victim.profile), 0);
    json_t *report = dump_and_load(&victim, "named.hwprof", 0);
    assert_one_block(report);
    json_decref(report);
    finish(&victim);
}

/* It may end at any moment: there is a complete dump, or none and a reason. */
static void test_process_that_ends(void **state)
{
    const char *program = need_program("dump");
    for (int round = 0; round < 10; round++) {
        struct victim victim;
        start_program(&victim, program, "short_life", round % 2 ? ":dump-signal=62" : "");
        for (int i = 0; i < 40; i++) {
            struct run_result result = dump_pid(victim.process.pid, NULL, NULL);
            assert_int_equal(result.signal, 0);
            if (result.code != 0)
                assert_true(result.code == 2 && *result.err);
            run_result_free(&result);
        }
        struct run_result result = run_finish(&victim.process, 60);
        assert_exit(&result, 0, "short_life");
        run_result_free(&result);
        size_t count;
        char **files = list_files(victim.directory, ".hwprof", &count);
        for (size_t i = 0; i < count; i++) {
            struct run_result report = heapwise((const char *const[]){"report", files[i], NULL}, NULL);
            assert_exit(&report, 0, files[i]);
            run_result_free(&report);
        }
        free_list(files);
        clean_up(&victim);
    }
}

/* ---- counted accesses ---- */

/* TIMES times 10 writes and 20 reads, in one block or, after its end, of one. */
static void assert_used(const json_t *report, int64_t times)
{
    const json_t *context = only_context(report, "one_block");
    assert_int_equal(json_number(context, "accesses.writes"), 10 * times);
    assert_int_equal(json_number(context, "accesses.reads"), 20 * times);
    assert_int_equal(json_number(context, "accesses.blocks"), 1);
}

static void test_dumps_of_accesses(void **state)
{
    struct victim victim = run_program(counting_program(), "accesses", "");
    static const int64_t times[] = {1, 2, 3, 1, 1};
    for (int i = 0; i < 5; i++) {
        json_t *report = load_dump(&victim, i + 1);
        assert_used(report, times[i]);
        assert_contexts_sum_to_totals_but_peak(report);
        const json_t *globals = json_object_get(report, "globals"), *global;
        size_t index;
        int64_t writes = 0;
        json_array_foreach(globals, index, global) if (strcmp(json_text(global, "symbol"), "table") == 0) writes +=
            json_number(global, "writes");
        assert_int_equal(writes, times[i]);
        json_decref(report);
    }
    json_t *report = load_report(victim.profile, 0);
    assert_used(report, 1);
    json_decref(report);
    clean_up(&victim);
}

static void test_dump_of_counted_accesses_from_outside(void **state)
{
    struct victim victim = wait_until_ready(counting_program(), "accesses_and_wait", "");
    for (int i = 1; i <= 3; i++) {
        json_t *report = dump_and_load(&victim, NULL, i);
        assert_used(report, 1);
        json_decref(report);
    }
    json_t *report = dump_and_load(&victim, "named.hwprof", 0);
    assert_used(report, 1);
    json_decref(report);
    finish(&victim);
    /* Without the signal: the dump lacks what lies in cells, and that is said. */
    victim = wait_until_ready(counting_program(), "accesses_and_wait", ":dump-signal=0");
    struct run_result result = dump_pid(victim.process.pid, NULL, NULL);
    assert_exit(&result, 0, "without the signal");
    assert_contains(result.err, "are not in the dump");
    run_result_free(&result);
    finish(&victim);
}

/* What was dumped is not counted again in what kill -9 leaves behind. */
static void test_kill_after_a_dump(void **state)
{
    struct victim victim = wait_until_ready(counting_program(), "accesses_and_wait", "");
    json_t *report = dump_and_load(&victim, NULL, 1);
    assert_used(report, 1);
    json_decref(report);
    kill(victim.process.pid, SIGKILL);
    struct run_result result = run_finish(&victim.process, 60);
    assert_int_equal(result.signal, SIGKILL);
    run_result_free(&result);
    report = load_report(victim.profile, 0);
    assert_int_equal(json_number_or_none(only_context(report, "one_block"), "accesses.total"), INT64_MIN);
    assert_int_equal(json_number(only_context(report, "one_block"), "live_allocations"), 1);
    json_decref(report);
    clean_up(&victim);
}

static void test_accesses_of_busy_threads(void **state)
{
    struct victim victim = wait_until_ready(counting_program(), "accesses_in_threads", "");
    for (int i = 1; i <= 10; i++) {
        json_t *report = dump_and_load(&victim, NULL, i);
        const json_t *context = only_context(report, "one_block");
        int64_t allocations = json_number(context, "allocations"), frees = json_number(context, "frees"),
                writes = json_number(context, "accesses.writes"), reads = json_number(context, "accesses.reads");
        /* A thread is in the middle of one block at most. */
        assert_in_range(allocations - frees, 0, 4);
        assert_in_range(writes, 10 * frees, 10 * allocations);
        assert_in_range(reads, 20 * frees, 20 * allocations);
        assert_int_equal(json_number(context, "accesses.blocks"), allocations);
        assert_contexts_sum_to_totals_but_peak(report);
        json_decref(report);
    }
    finish(&victim);
}

static void test_accesses_and_fork(void **state)
{
    struct victim victim = run_program(counting_program(), "accesses_and_fork", "");
    size_t count, children = 0;
    char **files = list_files(victim.directory, ".hwprof", &count);
    assert_int_equal(count, 4);
    for (size_t i = 0; i < count; i++) {
        json_t *report = load_report(files[i], 0);
        if (report_sums(report, "after_reset").allocations) {
            children++;
            const json_t *context = only_context(report, "after_reset");
            int64_t times = strstr(files[i], ".dump") ? 1 : 2;
            assert_int_equal(json_number(context, "accesses.writes"), 10 * times);
            assert_int_equal(json_number(context, "accesses.reads"), 20 * times);
        } else {
            assert_used(report, 1);
        }
        json_decref(report);
    }
    assert_int_equal(children, 2);
    free_list(files);
    clean_up(&victim);
}

static void test_a_million_blocks_with_accesses(void **state)
{
    struct victim victim = run_program(counting_program(), "million", "");
    json_t *report = load_dump(&victim, 1);
    assert_int_equal(report_sums(report, "one_block").live_allocations, 1000000);
    json_decref(report);
    clean_up(&victim);
}

TEST_LIST(cmocka_unit_test(test_three_dumps_of_one_block), cmocka_unit_test(test_record_tells_dumps_from_processes),
          cmocka_unit_test(test_reset), cmocka_unit_test(test_allocator_mode),
          cmocka_unit_test(test_reset_in_a_forked_child), cmocka_unit_test(test_reset_while_threads_allocate),
          cmocka_unit_test(test_periodic_dumps), cmocka_unit_test(test_short_interval),
          cmocka_unit_test(test_dumps_in_a_signal_handler), cmocka_unit_test(test_dumps_and_forks),
          cmocka_unit_test(test_hundred_dumps_leave_nothing_behind), cmocka_unit_test(test_a_million_blocks),
          cmocka_unit_test(test_dump_without_room), cmocka_unit_test(test_dump_of_a_sleeping_process),
          cmocka_unit_test(test_ledger_of_a_sleeping_process), cmocka_unit_test(test_dump_of_a_busy_process),
          cmocka_unit_test(test_dump_by_signal), cmocka_unit_test(test_signal_of_the_program),
          cmocka_unit_test(test_reading_goes_on), cmocka_unit_test(test_no_answer),
          cmocka_unit_test(test_processes_that_cannot_be_dumped), cmocka_unit_test(test_no_permission),
          cmocka_unit_test(test_child_without_a_profile), cmocka_unit_test(test_deleted_profile),
          cmocka_unit_test(test_process_that_ends), cmocka_unit_test(test_dumps_of_accesses),
          cmocka_unit_test(test_dump_of_counted_accesses_from_outside), cmocka_unit_test(test_kill_after_a_dump),
          cmocka_unit_test(test_accesses_of_busy_threads), cmocka_unit_test(test_accesses_and_fork),
          cmocka_unit_test(test_a_million_blocks_with_accesses))
