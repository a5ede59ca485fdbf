/* test_periods.c - record --paused, heapwise start, heapwise stop: see programs/periods.c, whose numbers are known. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct victim {
    char *directory, *until, *profile;
    char options[512], preload[600], pid[16];
    struct run_process process;
};

static const char *output_of(const struct victim *victim)
{
    static char text[4096];
    ssize_t got = pread(victim->process.out, text, sizeof text - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    return text;
}

static void wait_for(const struct victim *victim, const char *text)
{
    for (int i = 0; i < 60000 && !strstr(output_of(victim), text); i++)
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    assert_contains(output_of(victim), text);
}

static void wait_for_step(const struct victim *victim, int number)
{
    char text[32];
    snprintf(text, sizeof text, "step %d\n", number);
    wait_for(victim, text);
}

static void go_on(const struct victim *victim, int number)
{
    char name[700];
    snprintf(name, sizeof name, "%s.%d", victim->until, number);
    int file = open(name, O_WRONLY | O_CREAT, 0600);
    assert_true(file >= 0);
    close(file);
}

static struct victim begin(const char *name, const char *file, const char *options)
{
    struct victim victim = {.directory = make_directory()};
    const char *program = need_program("periods");
    victim.until = join_path(victim.directory, "until");
    victim.profile = join_path(victim.directory, file);
    snprintf(victim.options, sizeof victim.options, "HEAPWISE_OPTIONS=output=%s%s", victim.profile, options);
    snprintf(victim.preload, sizeof victim.preload, "LD_PRELOAD=%s", runtime_path());
    const char *const environment[] = {victim.options, victim.preload, NULL};
    const char *const argv[] = {program, name, victim.until, NULL};
    victim.process = run_start(argv, &(struct run_options){.environment = environment, .timeout_s = 300});
    snprintf(victim.pid, sizeof victim.pid, "%d", (int)victim.process.pid);
    return victim;
}

static void end(struct victim *victim)
{
    struct run_result result = run_finish(&victim->process, 120);
    assert_exit(&result, 0, "the program that was started and stopped");
    run_result_free(&result);
}

static void clean_up(struct victim *victim)
{
    remove_directory(victim->directory);
    free(victim->until);
    free(victim->profile);
}

/* heapwise VERB PID must succeed, and prints the profile's name; what it says is TOLD ("": nothing). */
static void ask(const struct victim *victim, const char *verb, const char *pid, const char *told)
{
    struct run_result result = heapwise((const char *const[]){verb, pid, NULL}, NULL);
    assert_exit(&result, 0, verb);
    if (*told)
        assert_contains(result.err, told);
    else
        assert_string_equal(result.err, "");
    assert_contains(result.out, victim->directory);
    run_result_free(&result);
}

static void assert_period(const char *file, const char *state, struct totals expected, int64_t foreign_frees,
                          int64_t foreign_reallocations)
{
    json_t *report = load_report(file, 0);
    const struct totals totals = report_totals(report);
    assert_string_equal(json_text(report, "process.counting.state"), state);
    assert_int_equal(totals.allocations, expected.allocations);
    assert_int_equal(totals.frees, expected.frees);
    assert_int_equal(totals.reallocations, expected.reallocations);
    assert_int_equal(totals.bytes, expected.bytes);
    assert_int_equal(totals.live_allocations, expected.live_allocations);
    assert_int_equal(totals.live_bytes, expected.live_bytes);
    assert_int_equal(totals.peak_bytes, expected.peak_bytes);
    assert_int_equal(json_number(report, "totals.foreign_frees"), foreign_frees);
    assert_int_equal(json_number(report, "totals.foreign_reallocations"), foreign_reallocations);
    assert_contexts_sum_to_totals(report);
    assert_false(report_says(report, "defect"));
    assert_int_equal(report_sums(report, "before").allocations, 0);
    assert_int_equal(report_sums(report, "between").allocations, 0);
    json_decref(report);
}

static const struct totals nothing;
static const struct totals first = {.allocations = 5,
                                    .reallocations = 1,
                                    .bytes = 700,
                                    .live_allocations = 5,
                                    .live_bytes = 700,
                                    .peak_bytes = 700};
static const struct totals second = {
    .allocations = 3, .frees = 1, .bytes = 300, .live_allocations = 2, .live_bytes = 200, .peak_bytes = 300};

static void check_steps(const char *options)
{
    struct victim victim = begin("steps", "p.hwprof", options);
    char *dump = join_path(victim.directory, "p.dump1.hwprof");
    wait_for_step(&victim, 1);
    assert_period(victim.profile, "waits", nothing, 0, 0);
    assert_refused((const char *const[]){"stop", victim.pid, NULL}, "does not count");
    ask(&victim, "start", victim.pid, "");
    assert_refused((const char *const[]){"start", victim.pid, NULL}, "counts already");
    go_on(&victim, 1);
    wait_for_step(&victim, 2);
    assert_period(victim.profile, "on", first, 12, 2);
    ask(&victim, "stop", victim.pid, "");
    assert_refused((const char *const[]){"stop", victim.pid, NULL}, "does not count");
    go_on(&victim, 2);
    wait_for_step(&victim, 3);
    assert_period(victim.profile, "stopped", first, 12, 2);
    ask(&victim, "start", victim.pid, "p.dump1.hwprof");
    assert_period(dump, "stopped", first, 12, 2);
    assert_period(victim.profile, "on", nothing, 0, 0);
    go_on(&victim, 3);
    wait_for_step(&victim, 4);
    assert_period(victim.profile, "on", second, 7, 0);
    go_on(&victim, 4);
    end(&victim);
    assert_period(victim.profile, "on", second, 7, 0);
    assert_period(dump, "stopped", first, 12, 2);
    json_t *report = load_report(victim.profile, 0);
    assert_true(report_says(report, "Counting began"));
    assert_true(report_says(report, "1 period"));
    assert_int_equal(json_number(report, "process.counting.periods"), 2);
    json_decref(report);
    free(dump);
    clean_up(&victim);
}

static void test_exact_numbers(void **state)
{
    check_steps(":start=off");
}

static void test_exact_numbers_in_the_table(void **state)
{
    check_steps(":start=off:block-table=1");
}

static void test_exact_numbers_with_bounds(void **state)
{
    check_steps(":start=off:table=64:free-stacks=1");
}

/* Points are drawn so densely that every block is found. */
static void test_sampled(void **state)
{
    struct victim victim = begin("steps", "p.hwprof", ":start=off:sample-bytes=1");
    for (int i = 1; i <= 4; i++) {
        wait_for_step(&victim, i);
        if (i < 4)
            ask(&victim, i == 2 ? "stop" : "start", victim.pid, i == 3 ? "p.dump1" : "");
        json_t *report = load_report(victim.profile, 0);
        if (i == 4) {
            assert_int_equal(json_number(report, "totals.sampled.allocations"), 3);
            assert_int_equal(json_number(report, "totals.sampled.live_bytes"), 200);
        } else if (i == 2) { /* a reallocated block is a new one in sampled runs, whatever it was */
            assert_int_equal(json_number(report, "totals.sampled.live_bytes"), 4 * 100 + 300 + 5000);
        }
        assert_false(report_says(report, "defect"));
        json_decref(report);
        go_on(&victim, i);
    }
    end(&victim);
    clean_up(&victim);
}

/* Stopped while the program runs: what was live stays so; and discarded at the next start. */
static void test_discard(void **state)
{
    struct victim victim = begin("steps", "p.hwprof", ":start=off");
    for (int i = 1; i <= 3; i++) {
        wait_for_step(&victim, i);
        if (i == 3) {
            struct run_result result =
                heapwise((const char *const[]){"start", "--discard", victim.pid, NULL}, NULL);
            assert_exit(&result, 0, "start --discard");
            assert_string_equal(result.err, "");
            run_result_free(&result);
        } else
            ask(&victim, i == 2 ? "stop" : "start", victim.pid, "");
        go_on(&victim, i);
    }
    wait_for_step(&victim, 4);
    ask(&victim, "stop", victim.pid, "");
    go_on(&victim, 4);
    end(&victim);
    size_t count;
    free_list(list_files(victim.directory, ".hwprof", &count));
    assert_int_equal(count, 1);
    assert_period(victim.profile, "stopped", second, 7, 0);
    clean_up(&victim);
}

/* Eight threads allocate, reallocate and free all the time. In the end they free all, so that of what was counted since
 * the last start nothing may be left. */
static void test_many_periods_and_threads(void **state)
{
    struct victim victim = begin("threads", "p.hwprof", ":start=off");
    wait_for_step(&victim, 1);
    for (int i = 0; i < 6; i++) {
        ask(&victim, "start", victim.pid, i ? ".dump" : "");
        ask(&victim, "stop", victim.pid, "");
        json_t *report = load_report(victim.profile, 0);
        const struct totals totals = report_totals(report);
        assert_int_equal(totals.allocations - totals.frees, totals.live_allocations);
        assert_in_range(totals.live_allocations, 0, 8 * 16 + 8);
        assert_contexts_sum_to_totals_but_peak(report);
        assert_false(report_says(report, "defect"));
        json_decref(report);
    }
    ask(&victim, "start", victim.pid, ".dump6");
    go_on(&victim, 1);
    end(&victim);
    json_t *report = load_report(victim.profile, 0);
    const struct totals totals = report_totals(report);
    assert_true(totals.allocations > 0);
    assert_int_equal(totals.allocations, totals.frees);
    assert_int_equal(totals.live_allocations, 0);
    assert_int_equal(totals.live_bytes, 0);
    assert_int_equal(json_number(report, "process.counting.periods"), 7);
    assert_contexts_sum_to_totals_but_peak(report);
    assert_false(report_says(report, "defect"));
    json_decref(report);
    clean_up(&victim);
}

static int child_of(const struct victim *victim, int number)
{
    const char *at = output_of(victim);
    int child = 0;
    for (int i = 0; i < number; i++)
        at = strstr(at, "child ") + strlen("child ");
    assert_int_equal(sscanf(at, "%d", &child), 1);
    return child;
}

static json_t *load_child(const struct victim *victim, int child)
{
    char name[32];
    snprintf(name, sizeof name, "%d.hwprof", child);
    char *path = join_path(victim->directory, name);
    json_t *report = load_report(path, 0);
    free(path);
    return report;
}

static void test_children(void **state)
{
    struct victim victim = begin("children", "%p.hwprof", ":start=off");
    int children[3];
    char pid[16];
    for (int i = 1; i <= 3; i++) {
        wait_for_step(&victim, 10 * i);
        children[i - 1] = child_of(&victim, i);
        snprintf(pid, sizeof pid, "%d", children[i - 1]);
        if (i == 1) /* the parent waits, and so does the child */
            ask(&victim, "start", pid, "");
        if (i == 2)
            assert_refused((const char *const[]){"start", pid, NULL}, "counts already");
        if (i == 3)
            assert_refused((const char *const[]){"stop", pid, NULL}, "does not count");
        go_on(&victim, 10 * i);
        wait_for_step(&victim, i);
        if (i < 3)
            ask(&victim, i == 1 ? "start" : "stop", victim.pid, "");
        go_on(&victim, i);
    }
    end(&victim);
    json_t *report = load_child(&victim, children[0]);
    assert_int_equal(report_totals(report).allocations, 4);
    assert_int_equal(report_totals(report).live_bytes, 40);
    assert_int_equal(json_number(report, "totals.foreign_frees"), 1);
    json_decref(report);
    report = load_child(&victim, children[1]);
    assert_int_equal(report_totals(report).allocations, 5);
    assert_int_equal(report_totals(report).frees, 1);
    assert_int_equal(report_totals(report).live_bytes, 40);
    assert_int_equal(json_number(report, "totals.inherited.allocations"), 1);
    assert_int_equal(json_number(report, "totals.inherited.frees"), 1);
    json_decref(report);
    report = load_child(&victim, children[2]);
    assert_int_equal(report_totals(report).allocations, 0);
    assert_string_equal(json_text(report, "process.counting.state"), "waits");
    json_decref(report);
    report = load_child(&victim, (int)victim.process.pid);
    assert_int_equal(report_totals(report).allocations, 1);
    assert_int_equal(report_totals(report).live_bytes, 30);
    json_decref(report);
    clean_up(&victim);
}

/* A program that a counting one executes waits again. */
static void test_exec(void **state)
{
    struct victim victim = begin("becomes", "%p.%n.hwprof", ":start=off");
    wait_for_step(&victim, 1);
    ask(&victim, "start", victim.pid, "");
    go_on(&victim, 1);
    wait_for_step(&victim, 2);
    ask(&victim, "start", victim.pid, "");
    go_on(&victim, 2);
    end(&victim);
    size_t count;
    char **files = list_files(victim.directory, ".hwprof", &count);
    assert_int_equal(count, 2);
    int during = 0, again = 0;
    for (size_t i = 0; i < count; i++) {
        json_t *report = load_report(files[i], 0);
        assert_int_equal(report_totals(report).allocations, 1);
        during += report_sums(report, "during").allocations == 1;
        again += report_sums(report, "again").allocations == 1;
        json_decref(report);
    }
    assert_int_equal(during, 1);
    assert_int_equal(again, 1);
    free_list(files);
    clean_up(&victim);
}

/* heapwise_reset and pools know periods. */
static void test_calls_of_the_program(void **state)
{
    struct victim victim = begin("calls", "p.hwprof", ":start=off");
    for (int i = 1; i <= 3; i++) {
        wait_for_step(&victim, i);
        ask(&victim, i == 2 ? "stop" : "start", victim.pid, i == 3 ? "p.dump1" : "");
        go_on(&victim, i);
    }
    end(&victim);
    json_t *report = load_report(victim.profile, 0);
    const json_t *context = only_context(report, "again");
    assert_int_equal(json_number(context, "live_allocations"), 1);
    assert_int_equal(report_sums(report, "during").live_allocations, 0);
    assert_int_equal(report_totals(report).live_bytes, 10);
    assert_false(report_says(report, "defect"));
    json_decref(report);
    clean_up(&victim);
}

static void assert_not_paused(const char *options, const char *why)
{
    char text[64];
    snprintf(text, sizeof text, ":start=off%s", options);
    struct victim victim = begin("steps", "p.hwprof", text);
    wait_for_step(&victim, 1);
    assert_refused((const char *const[]){"start", victim.pid, NULL}, "from its start to its end");
    assert_refused((const char *const[]){"stop", victim.pid, NULL}, "--paused");
    for (int i = 1; i <= 4; i++)
        go_on(&victim, i);
    end(&victim);
    json_t *report = load_report(victim.profile, 0);
    assert_true(report_says(report, "start=off has no effect"));
    assert_true(report_says(report, why));
    json_decref(report);
    clean_up(&victim);
}

static void test_what_cannot_wait(void **state)
{
    assert_not_paused(":leaks=1", "leaks");
    assert_not_paused(":contents=1", "contents");
    assert_not_paused(":mode=allocator", "mode=allocator");
    static const char *const options[] = {"--mode=allocator", "--leaks", "--keeps", "--contents", "--pinned",
                                          "--sample-accesses"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        struct run_result result =
            heapwise((const char *const[]){"record", "--paused", options[i], "--", "true", NULL}, NULL);
        assert_exit(&result, 125, options[i]);
        assert_contains(result.err, "--paused cannot be combined with");
        run_result_free(&result);
    }
}

static void become_nobody(void *closure)
{
    (void)closure;
    if (setgid(65534) != 0 || setuid(65534) != 0)
        _exit(98);
}

static void test_refused(void **state)
{
    char own[16];
    snprintf(own, sizeof own, "%d", (int)getpid());
    assert_refused((const char *const[]){"start", NULL}, "which PID?");
    assert_refused((const char *const[]){"stop", "x", NULL}, "is not the number of a process");
    assert_refused((const char *const[]){"start", "1", "2", NULL}, "one process at a time");
    assert_refused((const char *const[]){"start", "4194304", NULL}, "there is no process");
    assert_refused((const char *const[]){"stop", own, NULL}, "is not recorded");
    struct victim victim = begin("steps", "p.hwprof", "");
    wait_for_step(&victim, 1);
    assert_refused((const char *const[]){"start", victim.pid, NULL}, "record --paused");
    for (int i = 1; i <= 4; i++)
        go_on(&victim, i);
    end(&victim);
    clean_up(&victim);
    victim = begin("steps", "p.hwprof", ":start=off:dump-signal=0");
    wait_for_step(&victim, 1);
    assert_refused((const char *const[]){"start", victim.pid, NULL}, "handles no signal");
    assert_refused((const char *const[]){"leaks", victim.pid, NULL}, "not every block is known");
    if (getuid() == 0) {
        struct run_result result = heapwise((const char *const[]){"start", victim.pid, NULL},
                                            &(struct run_options){.prepare = become_nobody, .directory = "/"});
        assert_exit(&result, 2, "as another user");
        assert_contains(result.err, "no permission");
        run_result_free(&result);
    }
    for (int i = 1; i <= 4; i++)
        go_on(&victim, i);
    end(&victim);
    json_t *report = load_report(victim.profile, 0);
    assert_true(report_says(report, "Nothing was counted"));
    json_decref(report);
    clean_up(&victim);
}

/* record --paused is start=off. */
static void test_record_paused(void **state)
{
    const char *program = need_program("hello");
    struct recording recording = record_and_load(
        (const char *const[]){program, NULL},
        &(struct record_options){.arguments = (const char *const[]){"--paused", NULL}});
    assert_int_equal(report_totals(recording.report).allocations, 0);
    assert_contains(recording.run.err, "nothing was counted, as no heapwise start came");
    assert_string_equal(json_text(recording.report, "process.counting.state"), "waits");
    recording_free(&recording);
}

/* Every allocator, also one in the executable, whose functions are redirected: what is allocated there is freed there. */
static void test_every_allocator_while_it_waits(void **state)
{
    static const char *const programs[] = {
        "workload",         "workload-jemalloc",        "workload-tcmalloc",        "workload-mimalloc",
        "workload-static",  "workload-jemalloc-static", "workload-tcmalloc-static", "new-gcc",
        "new-clang",        "new-static-libstdc++",     "calls-O0",                 "calls-no-pie",
    };
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        const char *program = program_path(programs[i]);
        if (!program)
            continue;
        struct run_result plain = run((const char *const[]){program, NULL}, NULL);
        struct recording recording = record_and_load(
            (const char *const[]){program, NULL},
            &(struct record_options){.arguments = (const char *const[]){"--paused", NULL}, .may_fail = true});
        assert_int_equal(recording.run.code, plain.code);
        if (recording.report)
            assert_string_equal(json_text(recording.report, "process.counting.state"), "waits");
        run_result_free(&plain);
        recording_free(&recording);
    }
}

TEST_LIST(cmocka_unit_test(test_exact_numbers), cmocka_unit_test(test_exact_numbers_in_the_table),
          cmocka_unit_test(test_exact_numbers_with_bounds), cmocka_unit_test(test_sampled),
          cmocka_unit_test(test_discard), cmocka_unit_test(test_many_periods_and_threads),
          cmocka_unit_test(test_children), cmocka_unit_test(test_exec), cmocka_unit_test(test_calls_of_the_program),
          cmocka_unit_test(test_what_cannot_wait), cmocka_unit_test(test_refused),
          cmocka_unit_test(test_record_paused), cmocka_unit_test(test_every_allocator_while_it_waits))
