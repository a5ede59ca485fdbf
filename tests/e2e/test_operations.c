/* test_operations.c - record --mode allocator: exact numbers of operations by kind, size and phase, and times. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Operations of PHASE and KIND (NULL: any) whose size bucket holds SIZE; -1: of which the size is not known. */
static int64_t operations(const json_t *report, const char *phase, const char *kind, int64_t size)
{
    int64_t sum = 0;
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(json_object_get(report, "allocator"), "operations_by_size"), i, entry)
    {
        const json_t *most = json_object_get(entry, "most"), *least = json_object_get(entry, "least");
        if ((phase && strcmp(json_text(entry, "phase"), phase)) || (kind && strcmp(json_text(entry, "kind"), kind)))
            continue;
        if (size < 0 ? json_is_integer(least)
                     : !json_is_integer(least) || json_integer_value(least) > size ||
                           (json_is_integer(most) && json_integer_value(most) < size))
            continue;
        sum += json_number(entry, "count");
    }
    return sum;
}

static int64_t mallocs(const json_t *report, const char *phase, int64_t size)
{
    return operations(report, phase, "new", size) + operations(report, phase, "reused", size);
}

static struct recording record_mode(const char *mode, const char *argument, const char *preload)
{
    static const char *const arguments[] = {"--mode=allocator", "--no-prediction", NULL};
    char variable[1024];
    const char *program = need_program("operations");
    if (preload && TEST_SANITIZED)
        SKIP("an allocator cannot be preloaded into tools built with AddressSanitizer");
    snprintf(variable, sizeof variable, "LD_PRELOAD=%s", preload ? preload : "");
    const char *const environment[] = {preload ? variable : NULL, NULL};
    const char *const argv[] = {program, mode, argument, NULL};
    return record_and_load(argv, &(struct record_options){.arguments = arguments, .run.environment = environment});
}

static void check_kinds(const char *preload)
{
    struct recording recording = record_mode("kinds", NULL, preload);
    const json_t *report = recording.report;
    assert_exit(&recording.run, 0, "operations kinds");
    assert_string_equal(json_text(report, "process.mode"), "allocator");
    assert_int_equal(mallocs(report, "serial", 700), 2000);
    assert_int_equal(operations(report, NULL, "free", 700), 2000);
    if (!preload) /* glibc gives out again what was freed */
        assert_int_equal(operations(report, NULL, "reused", 700), 1000);
    assert_int_equal(operations(report, NULL, "calloc", 770), 300);
    assert_int_equal(operations(report, NULL, "free", 770), 0);
    assert_int_equal(operations(report, NULL, "realloc", 900), 300);
    assert_int_equal(operations(report, NULL, "free", 900), 300);
    assert_int_equal(operations(report, NULL, "realloc", 930), 0); /* of NULL: as malloc */
    assert_int_equal(mallocs(report, NULL, 930), 10);
    assert_int_equal(operations(report, NULL, "free", 930), 10);
    assert_int_equal(operations(report, NULL, "aligned", 960), 60);
    assert_int_equal(operations(report, NULL, "free", 960), 60);
    assert_int_equal(mallocs(report, NULL, 0), 17);
    assert_int_equal(operations(report, NULL, "free", 0), 17);
    assert_int_equal(mallocs(report, NULL, 3 << 20), 5);
    assert_int_equal(operations(report, NULL, "free", 3 << 20), 5);
    assert_int_equal(mallocs(report, NULL, 5ll << 30), 1);
    assert_int_equal(mallocs(report, NULL, INT64_MAX), 0); /* it failed */
    assert_int_equal(operations(report, "parallel", NULL, 700), 0);
    assert_true(json_number(report, "totals.failed_allocations") >= 1);
    recording_free(&recording);
}

static void test_kinds(void **state)
{
    check_kinds(NULL);
}

static void test_other_allocators(void **state)
{
    static const char *const names[] = {"libjemalloc.so", "libtcmalloc.so", "libmimalloc.so"};
    int tried = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *library = program_path(names[i]);
        if (!library) {
            LEAVE_OUT("%s is not installed", names[i]);
            continue;
        }
        char path[1024];
        snprintf(path, sizeof path, "%s", library);
        check_kinds(path);
        tried++;
    }
    if (!tried)
        SKIP("no other allocator is installed");
}

/* A followed block ends with its own free, also where its neighbour lies in the same 16 bytes. */
static void test_halves(void **state)
{
    static const char *const names[] = {NULL, "libjemalloc.so", "libtcmalloc.so", "libmimalloc.so"};
    for (size_t i = 0; i < (TEST_SANITIZED ? 1 : sizeof names / sizeof *names); i++) {
        const char *library = names[i] ? program_path(names[i]) : NULL;
        char path[1024];
        if (names[i] && !library) {
            LEAVE_OUT("%s is not installed", names[i]);
            continue;
        }
        snprintf(path, sizeof path, "%s", library ? library : "");
        struct recording recording = record_mode("halves", NULL, library ? path : NULL);
        assert_exit(&recording.run, 0, "operations halves");
        const json_t *note;
        size_t n;
        json_array_foreach(json_object_get(recording.report, "notes"), n, note)
            assert_string_not_equal(json_text(note, "kind"), "block-replaced");
        assert_true(json_number(recording.report, "allocator.timing.timed") > 50);
        recording_free(&recording);
    }
}

static void check_threads(const char *count, int64_t number)
{
    struct recording recording = record_mode("threads", count, NULL);
    const json_t *report = recording.report;
    assert_exit(&recording.run, 0, "operations threads");
    assert_int_equal(mallocs(report, "parallel", 400), 2 * number * 1000);
    assert_int_equal(operations(report, "parallel", "free", 400), 2 * number * 1000);
    for (int64_t size = 432; size <= 496; size += 32) { /* alone again, also after detached threads */
        assert_int_equal(mallocs(report, "serial", size), 100);
        assert_int_equal(operations(report, "parallel", NULL, size), 0);
    }
    recording_free(&recording);
}

static void test_threads(void **state)
{
    check_threads("3", 3);
}

static void test_2000_threads(void **state)
{
    check_threads("1000", 1000);
}

/* Threads whose ends nobody tells, and what threads free after their last destructors, which is counted with a state
 * that is lent for that: nothing is left by a jump, and each state is given back once. */
static void test_ending_threads(void **state)
{
    (void)state;
    struct recording recording = record_mode("ending", "200", NULL);
    const json_t *report = recording.report, *note;
    size_t i;
    assert_exit(&recording.run, 0, "operations ending");
    json_array_foreach(json_object_get(report, "notes"), i, note)
        assert_string_not_equal(json_text(note, "kind"), "left");
    assert_int_equal(mallocs(report, NULL, 400), 2000);
    assert_int_equal(operations(report, NULL, "free", 400), 2000);
    assert_int_equal(operations(report, NULL, "free", 464), 400000);
    assert_int_equal(mallocs(report, "serial", 432), 100); /* the threads are gone */
    assert_int_equal(operations(report, NULL, "free", 432), 100);
    recording_free(&recording);
}

/* What each thread did in each stage adds up to all. */
static void test_stages(void **state)
{
    struct recording recording = record_mode("threads", "3", NULL);
    const json_t *allocator = json_object_get(recording.report, "allocator");
    int64_t sum = 0, all = 0, last = 0, serial = 0;
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(allocator, "stages"), i, entry)
    {
        sum += json_number(entry, "operations");
        last = json_number(entry, "stage");
        if (last == 0) /* the main thread alone: its hundred pairs and what it needed before */
            serial += json_number(entry, "operations");
        assert_string_equal(json_text(entry, "phase"), last % 2 ? "parallel" : "serial");
    }
    json_array_foreach(json_object_get(allocator, "operations"), i, entry) all += json_number(entry, "count");
    assert_true(last >= 4 && last % 2 == 0); /* more where a thread ends before the next one is made */
    assert_true(serial >= 200 && serial < 300);
    /* what libc does when a thread has ended as far as programs can tell is in no stage */
    if (sum > all || sum < all - 30)
        fail_msg("stages have %lld operations of %lld", (long long)sum, (long long)all);
    recording_free(&recording);
}

static void test_fork(void **state)
{
    struct recording recording = record_mode("fork", NULL, NULL);
    assert_int_equal(recording.file_count, 2);
    const json_t *parent = recording.reports[0], *child = recording.reports[1];
    assert_int_equal(mallocs(parent, "serial", 400), 150);
    assert_int_equal(operations(parent, NULL, "free", 400), 150);
    assert_int_equal(mallocs(child, "serial", 400), 30);
    assert_int_equal(operations(child, NULL, "free", 400), 30);
    assert_int_equal(operations(parent, NULL, "free", 800), 1);
    assert_int_equal(operations(child, NULL, "free", 800) + operations(child, NULL, "free", -1), 1);
    recording_free(&recording);
}

static void test_kill(void **state)
{
    struct recording recording = record_mode("kill", NULL, NULL);
    assert_exit(&recording.run, 128 + SIGKILL, "operations kill");
    assert_int_equal(mallocs(recording.report, "serial", 400), 100000);
    assert_int_equal(operations(recording.report, "serial", "free", 400), 100000);
    recording_free(&recording);
}

/* Killed ones, with threads and forked: what is live is what their operations leave, up to the last one. */
static void test_killed_holding(void **state)
{
    struct recording recording = record_mode("killed_holding", NULL, NULL);
    assert_exit(&recording.run, 128 + SIGKILL, "operations killed_holding");
    assert_int_equal(recording.file_count, 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *report = recording.reports[i];
        const bool child = json_is_true(json_object_get(json_object_get(report, "process"), "forked"));
        const double allocations = json_number(report, "totals.allocations"),
                     frees = json_number(report, "totals.frees");
        const double inherited = child ? json_number(report, "totals.inherited.allocations") : 0;
        const double live = json_number(report, "totals.live_allocations");
        assert_int_equal(mallocs(report, NULL, 400), child ? 6000 : 3000);
        assert_int_equal(live, allocations - frees + inherited);
        assert_true(live >= (child ? 9000 : 3001));
        const int64_t bytes = json_number(report, "totals.live_bytes"), least = child ? 9000 * 400 : 3000 * 400 + 800;
        assert_in_range(bytes, least, least + 3000); /* what libc has for threads */
        assert_true(json_number(report, "totals.peak_bytes") >= bytes);
        int64_t at_peak = 0;
        size_t k;
        const json_t *context;
        json_array_foreach(json_object_get(report, "contexts"), k, context) at_peak +=
            json_number(context, "sampled.peak_bytes");
        if (!child) /* a child's places are its own blocks alone */
            assert_in_range(at_peak, bytes * 9 / 10, json_number(report, "totals.peak_bytes"));
    }
    recording_free(&recording);
}

/* Numbers of the process are exact: a limit is kept or not. */
static void test_check(void **state)
{
    struct recording recording = record_mode("killed_first", NULL, NULL);
    static const char *const numbers[][2] = {{"--max-leaked", "totals.live_bytes"},
                                             {"--max-bytes", "totals.bytes_allocated"},
                                             {"--max-allocations", "totals.allocations"},
                                             {"--max-peak", "totals.peak_bytes"}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        for (int less = 0; less < 2; less++) {
            char limit[32];
            snprintf(limit, sizeof limit, "%lld", (long long)json_number(recording.reports[0], numbers[i][1]) - less);
            struct run_result result =
                heapwise((const char *[]){"check", numbers[i][0], limit, recording.files[0], NULL}, NULL);
            assert_exit(&result, less, numbers[i][0]);
            run_result_free(&result);
        }
    recording_free(&recording);
}

/* Before anything else was written down. */
static void test_killed_first(void **state)
{
    struct recording recording = record_mode("killed_first", NULL, NULL);
    const json_t *report = recording.reports[0];
    assert_int_equal(json_number(report, "totals.live_allocations"), json_number(report, "totals.allocations"));
    assert_true(json_number(report, "totals.live_bytes") >= 1000000);
    assert_true(json_number(report, "totals.peak_bytes") >= 1000000);
    recording_free(&recording);
}

/* A handler inside an operation does operations of its own; an operation that a handler jumps out of is none, and those
 * that follow count as ever. */
static void test_signals(void **state)
{
    const char *library = program_path("libsignalmalloc.so");
    char path[1024];
    if (!library)
        SKIP("libsignalmalloc.so was not built");
    snprintf(path, sizeof path, "%s", library);
    struct recording recording = record_mode("signals", NULL, path);
    assert_exit(&recording.run, 0, "operations signals");
    assert_int_equal(mallocs(recording.report, NULL, 600), 60);
    assert_int_equal(operations(recording.report, NULL, "free", 600), 60);
    assert_int_equal(mallocs(recording.report, NULL, 54321), 10);
    assert_int_equal(operations(recording.report, NULL, "free", 54321), 10);
    assert_int_equal(mallocs(recording.report, NULL, 632), 100);
    recording_free(&recording);
}

static double mean_of(const json_t *report, const char *kind, int64_t size, int64_t *timed)
{
    double ticks = 0, count = 0;
    size_t i;
    json_t *entry;
    *timed = 0;
    json_array_foreach(json_object_get(json_object_get(report, "allocator"), "operations_by_size"), i, entry)
    {
        const char *name = json_text(entry, "kind");
        const bool wanted =
            !strcmp(kind, "malloc") ? !strcmp(name, "new") || !strcmp(name, "reused") : !strcmp(name, kind);
        if (!wanted || json_number_or_none(entry, "least") > size || json_number_or_none(entry, "most") < size)
            continue;
        const json_t *mean = json_object_get(json_object_get(entry, "cycles"), "mean");
        if (!json_is_number(mean))
            continue;
        ticks += json_number_value(mean) * (double)json_number(entry, "count");
        count += (double)json_number(entry, "count");
        *timed += json_number(entry, "timed");
    }
    return count > 0 ? ticks / count : NAN;
}

/* One run; false, with what differs in WHY, when a mean is off by more than 5 %. */
static bool times_agree(const char *preload, char *why, size_t size)
{
    static const struct {
        const char *kind;
        int64_t size;
    } compared[] = {{"malloc", 200}, {"malloc", 800}, {"free", 200}};
    unsigned long long own[3][2];
    bool agree = true;
    struct recording recording = record_mode("timed", NULL, preload);
    assert_exit(&recording.run, 0, "operations timed");
    assert_int_equal(sscanf(recording.run.out, "%llu %llu\n%llu %llu\n%llu %llu", &own[0][0], &own[0][1], &own[1][0],
                            &own[1][1], &own[2][0], &own[2][1]),
                     6);
    for (int i = 0; i < 3; i++) {
        int64_t timed;
        const double mean = mean_of(recording.report, compared[i].kind, compared[i].size, &timed);
        if (timed > 50 && fabs(mean / (double)own[i][1] - 1) < 0.05)
            continue;
        snprintf(why, size, "%s of %lld bytes: %.1f cycles (%lld timed), by itself %llu", compared[i].kind,
                 (long long)compared[i].size, mean, (long long)timed, own[i][1]);
        agree = false;
    }
    recording_free(&recording);
    return agree;
}

/* The allocator measures itself in the same run, and leaves out what took much too long. On a virtual machine that
 * loses its processor to others unseen a run may be spoilt: a mean that is wrong is so each time. */
static void test_times(void **state)
{
    const char *library = program_path("libslowmalloc.so");
    char path[1024], why[200];
    if (!library)
        SKIP("libslowmalloc.so was not built");
    snprintf(path, sizeof path, "%s", library);
    for (int attempt = 0; attempt < 5; attempt++)
        if (times_agree(path, why, sizeof why))
            return;
    fail_msg("%s", why);
}

/* Call stacks with few timed operations come last, and have no share; what the order of the others says stays. */
static void test_few_timed(void **state)
{
    if (!have_command("perl"))
        SKIP("no perl");
    const char *const argv[] = {"perl", "-e", "$h{$_} = \"x$_\" for 1 .. 200000", NULL};
    const char *const mode[] = {"--mode=allocator", NULL};
    struct recording recording = record_and_load(argv, &(struct record_options){.arguments = mode});
    const json_t *sites = json_object_get(json_object_get(recording.report, "allocator"), "call_sites");
    size_t ranked = 0, few = 0, i;
    json_t *entry;
    json_array_foreach(sites, i, entry)
    {
        const bool enough = json_number(entry, "timed") >= 30;
        assert_int_equal(json_is_true(json_object_get(entry, "ranked")), enough);
        assert_false(enough && few);
        ranked += enough;
        few += !enough;
    }
    assert_true(ranked > 0 && few > 0);
    struct run_result text =
        heapwise((const char *const[]){"report", "--section=allocator", "--top=100", recording.files[0], NULL}, NULL);
    assert_exit(&text, 0, "report");
    assert_contains(text.out, "too few timed calls (");
    for (int timed = 1; timed < 30; timed++) {
        char part[40];
        snprintf(part, sizeof part, " each (%d timed)", timed);
        assert_lacks(text.out, part);
    }
    run_result_free(&text);
    recording_free(&recording);
}

/* Frequent operations are sampled; the estimates of all call sites together stand for all. */
static void test_sampled(void **state)
{
    struct recording recording = record_mode("many", NULL, NULL);
    const json_t *allocator = json_object_get(recording.report, "allocator");
    const int64_t timed = json_number(allocator, "timing.timed");
    double sites = 0;
    size_t i;
    json_t *entry;
    assert_int_equal(mallocs(recording.report, "serial", 400), 300000);
    assert_true(timed > 100);
    json_array_foreach(json_object_get(allocator, "call_sites"), i, entry) sites += (double)json_number(entry, "count");
    /* each sample stands for 2^shift operations: an unbiased estimate, with a wide margin */
    if (sites < 300000 || sites > 1200000)
        fail_msg("call sites stand for %.0f operations of 600000, from %lld samples", sites, (long long)timed);
    entry = json_array_get(json_object_get(allocator, "call_sites"), 0);
    assert_string_equal(stack_function(entry, 0), "pairs");
    assert_true(json_array_size(json_object_get(allocator, "slowest")) > 0);
    assert_int_equal(json_number(recording.report, "totals.allocations"),
                     json_number(recording.report, "totals.frees"));
    assert_true(report_says(recording.report, "exact"));
    recording_free(&recording);
}

static void test_refusals(void **state)
{
    const char *const wrong[][6] = {{"record", "--mode=allocator", "--sample-bytes=1M", "true", NULL},
                                    {"record", "--mode=allocator", "--table=100", "true", NULL},
                                    {"record", "--mode=allocator", "--free-stacks", "true", NULL}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *argv[7] = {heapwise_path()};
        for (int k = 0; wrong[i][k]; k++)
            argv[k + 1] = wrong[i][k];
        struct run_result result = run(argv, &(struct run_options){0});
        assert_exit(&result, 125, "record");
        assert_contains(result.err, "--mode allocator");
        run_result_free(&result);
    }
}

static int64_t sum_of(const json_t *report, const char *list, const char *key)
{
    const json_t *entry;
    int64_t sum = 0;
    size_t i;
    json_array_foreach(json_object_get(json_object_get(report, "allocator"), list), i, entry)
    {
        sum += json_number(entry, key);
    }
    return sum;
}

/* heapwise_reset: known numbers are of what came after it, what is live stays known. */
static void test_reset(void **state)
{
    (void)state;
    struct recording recording = record_mode("reset", NULL, NULL);
    const json_t *report = recording.report, *class;
    assert_exit(&recording.run, 0, "operations reset");
    assert_contains(recording.run.err, "wrote");
    assert_int_equal(mallocs(report, "serial", 700), 0);
    assert_int_equal(mallocs(report, "parallel", 700), 0);
    assert_int_equal(operations(report, NULL, "free", 700), 200);
    assert_int_equal(mallocs(report, NULL, 500), 0);
    assert_int_equal(operations(report, "parallel", "free", 500), 4 * 30);
    assert_int_equal(mallocs(report, "parallel", 400), 4 * 70);
    assert_int_equal(operations(report, NULL, "free", 400), 4 * 70);
    assert_int_equal(mallocs(report, "serial", 400), 0);
    assert_int_equal(mallocs(report, NULL, 532), 4 * 5);
    assert_int_equal(mallocs(report, "serial", 432), 100);
    class = usable_class(report, 712);
    if (json_number(class, "at_end.live") == 760) { /* glibc's: a class of its own */
        assert_int_equal(json_number(class, "at_peak.live"), 960);
        assert_int_equal(json_number(class, "at_end.most_live"), 960);
        assert_int_equal(json_number(class, "at_end.new"), 0);
        assert_int_equal(json_number(class, "at_end.reused"), 0);
        assert_int_equal(json_number(usable_class(report, 504), "at_end.live"), 4 * 20);
    }
    assert_true(json_number(report, "totals.inherited.allocations") >= 960 + 4 * 50);
    assert_true(json_number(report, "totals.inherited.allocations") < 960 + 4 * 50 + 100);
    assert_int_equal(json_number(report, "totals.sampled.live_allocations"),
                     json_number(report, "totals.allocations") - json_number(report, "totals.frees") +
                         json_number(report, "totals.inherited.allocations"));
    assert_int_equal(sum_of(report, "call_sites", "timed"), json_number(report, "allocator.timing.timed"));
    assert_true(json_number(report, "allocator.timing.timed") <= 2 * (4 * 79 + 100 + 300) + 200);
    /* The time since then: from the reset on there are stages, and points in time. */
    const json_t *stages = json_object_get(json_object_get(report, "allocator"), "stages");
    assert_string_equal(json_text(json_array_get(stages, 0), "phase"), "parallel");
    assert_int_equal(json_number(json_array_get(stages, 0), "stage"), 0);
    assert_true(json_number(json_array_get(stages, 0), "begin_ns") > 0);
    assert_int_equal(sum_of(report, "stages", "operations"),
                     json_number(report, "totals.allocations") + json_number(report, "totals.frees"));
    const json_t *calls = json_object_get(json_object_get(report, "allocator"), "syscalls"), *call;
    size_t i;
    json_array_foreach(calls, i, call)
    {
        if (strcmp(json_text(call, "name"), "munmap") == 0)
            assert_int_equal(json_number(call, "count"), 4 * 4);
    }
    recording_free(&recording);
}

static void test_reset_while_busy(void **state)
{
    (void)state;
    struct recording recording = record_mode("reset_busy", NULL, NULL);
    const json_t *report = recording.report;
    assert_exit(&recording.run, 0, "operations reset_busy");
    assert_int_equal(mallocs(report, NULL, 400), 0);
    assert_int_equal(operations(report, NULL, "free", 400), 0);
    assert_int_equal(mallocs(report, "serial", 432), 100);
    assert_int_equal(operations(report, NULL, "free", 432), 100);
    assert_int_equal(mallocs(report, NULL, 3 << 20), 0);
    assert_int_equal(json_number(usable_class(report, 440), "at_end.live"), 0);
    assert_true(json_number(report, "totals.sampled.live_allocations") < 100);
    assert_true(json_number(report, "totals.sampled.peak_bytes") < 200000); /* not what the threads had before */
    assert_int_equal(json_number(report, "totals.sampled.live_allocations"),
                     json_number(report, "totals.allocations") - json_number(report, "totals.frees") +
                         json_number(report, "totals.inherited.allocations"));
    recording_free(&recording);
}

TEST_LIST(cmocka_unit_test(test_reset), cmocka_unit_test(test_reset_while_busy), cmocka_unit_test(test_kinds),
          cmocka_unit_test(test_other_allocators), cmocka_unit_test(test_halves), cmocka_unit_test(test_threads),
          cmocka_unit_test(test_2000_threads), cmocka_unit_test(test_ending_threads), cmocka_unit_test(test_stages),
          cmocka_unit_test(test_fork), cmocka_unit_test(test_kill), cmocka_unit_test(test_killed_holding),
          cmocka_unit_test(test_killed_first), cmocka_unit_test(test_check), cmocka_unit_test(test_signals),
          cmocka_unit_test(test_times), cmocka_unit_test(test_sampled), cmocka_unit_test(test_few_timed),
          cmocka_unit_test(test_refusals))
