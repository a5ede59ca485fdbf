/* test_samples.c - accesses that are sampled: shares against known and counted ones, and programs that must not notice.
 *
 * A sample is drawn at most at each tick of the kernel's (250 a second on most machines), so runs last a second or two.
 */
#include "support/check.h"
#include "support/recording.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct recording record_program(const char *name, const char *what, const char *how_often)
{
    const char *program = need_program(name);
    const char *const argv[] = {program, what, how_often, NULL};
    const char *const arguments[] = {"--sample-accesses=1000", "--single-steps", NULL};
    return record_and_load(argv, &(struct record_options){.arguments = arguments});
}

static int64_t of_samples(const struct recording *recording, const char *key)
{
    char path[128];
    snprintf(path, sizeof path, "sampled.accesses.%s", key);
    return json_number(recording->report, path);
}

/* Until there have been enough bursts in a run: a busy machine gives the program the processor between its own ticks.
 */
static struct recording record_bursts(const char *program, const char *what, const char *how_often, int64_t least)
{
    for (int tries = 1;; tries++) {
        struct recording recording = record_program(program, what, how_often);
        const int64_t bursts = recording.report ? of_samples(&recording, "bursts") : least;
        if (bursts >= least)
            return recording;
        if (tries == 100)
            fail_msg("%s %s: %lld bursts", program, what, (long long)bursts);
        recording_free(&recording);
    }
}

/* ---- shares ---- */

struct shares {
    double often, seldom, written, other, table; /* fields of records, and the table */
    double reads;                                /* of records */
    double quarter[4];                           /* of the records' block */
};

static double sum_of(const struct shares *shares)
{
    return shares->often + shares->seldom + shares->written + shares->other + shares->table;
}

/* The blocks of known_shares, by size: 32 KiB of records, and the table. */
static const json_t *context_of_size(const json_t *report, int64_t size)
{
    const json_t *contexts = json_object_get(report, "contexts"), *found = NULL;
    for (size_t i = 0; i < json_array_size(contexts); i++)
        if (json_number(json_array_get(contexts, i), "size.max") == size)
            found = json_array_get(contexts, i);
    assert_non_null(found);
    return found;
}

static void add_word(struct shares *shares, int64_t offset, double count)
{
    double *field[] = {&shares->often, &shares->other, &shares->seldom, &shares->written};
    int64_t position = offset % 64 / 8;
    *(position < 4 ? field[position] : &shares->other) += count;
    shares->quarter[offset / 8192] += count;
}

static struct shares sampled_shares(const json_t *report)
{
    struct shares shares = {0};
    const json_t *records = context_of_size(report, 32768), *table = context_of_size(report, 1056);
    const json_t *words = json_object_get(json_object_get(json_object_get(records, "sampled"), "accesses"), "words");
    for (size_t i = 0; i < json_array_size(words); i++) {
        const json_t *word = json_array_get(words, i);
        assert_int_equal(json_number(word, "bytes"), 8);
        add_word(&shares, json_number(word, "offset"),
                 (double)(json_number(word, "reads") + json_number(word, "writes")));
    }
    shares.reads =
        (double)json_number(records, "sampled.accesses.reads") /
        (double)(json_number(records, "sampled.accesses.reads") + json_number(records, "sampled.accesses.writes"));
    shares.table =
        (double)(json_number(table, "sampled.accesses.reads") + json_number(table, "sampled.accesses.writes"));
    return shares;
}

static struct shares counted_shares(const json_t *report)
{
    struct shares shares = {0};
    const json_t *records = context_of_size(report, 32768), *table = context_of_size(report, 1056);
    const json_t *words = json_object_get(records, "histogram");
    for (size_t i = 0; i < json_array_size(words); i++)
        add_word(&shares, (int64_t)i * 8, (double)json_integer_value(json_array_get(words, i)));
    shares.reads = (double)json_number(records, "accesses.reads") / (double)json_number(records, "accesses.total");
    shares.table = (double)json_number(table, "accesses.total");
    return shares;
}

static void assert_share(const char *what, double found, double expected, double tolerance)
{
    if (fabs(found - expected) > tolerance)
        fail_msg("%s: a share of %.4f instead of %.4f", what, found, expected);
}

/* Each burst sees one or two rounds of the loop whole, and is cut at its ends: the shares of one loop are nearly the
 * same in every burst, and the mean of hundreds is close. Positions in the block are drawn, once by each burst. */
static void assert_same_shares(const struct shares *found, const struct shares *expected, int64_t bursts)
{
    double all = sum_of(found), expected_all = sum_of(expected), tolerance = 0.01 + 0.3 / sqrt((double)bursts);
    double records = all - found->table;
    assert_share("often", found->often / all, expected->often / expected_all, tolerance);
    assert_share("seldom", found->seldom / all, expected->seldom / expected_all, tolerance);
    assert_share("written", found->written / all, expected->written / expected_all, tolerance);
    assert_share("other", found->other / all, expected->other / expected_all, 0.005);
    assert_share("table", found->table / all, expected->table / expected_all, tolerance);
    assert_share("reads", found->reads, expected->reads, tolerance);
    for (int i = 0; i < 4; i++)
        assert_share("a quarter of the block", found->quarter[i] / records, 0.25, 2.5 / sqrt((double)bursts));
}

static void test_known_shares(void **state)
{
    const struct shares known = {.often = 4, .seldom = 2, .written = 2, .table = 8, .reads = 0.75};
    struct recording recording = record_bursts("samples", "shares", "800000", 50);
    assert_exit(&recording.run, 0, "samples");
    struct shares shares = sampled_shares(recording.report);
    int64_t bursts = of_samples(&recording, "bursts");
    assert_same_shares(&shares, &known, bursts);
    /* The harness sees a deviation. */
    shares.often *= 1.5;
    assert_true(fabs(shares.often / sum_of(&shares) - 0.25) > 0.01 + 0.3 / sqrt((double)bursts));
    /* Samples never look like counts. */
    const json_t *records = context_of_size(recording.report, 32768);
    assert_null(json_object_get(records, "accesses"));
    assert_null(json_object_get(json_object_get(recording.report, "totals"), "accesses"));
    assert_null(json_object_get(recording.report, "globals"));
    assert_true(report_says(recording.report, "sampled"));
    assert_string_equal(json_text(recording.report, "sampled.accesses.source"), "trap flag");
    assert_int_equal(of_samples(&recording, "where.heap.reads") + of_samples(&recording, "where.globals.reads") +
                         of_samples(&recording, "where.stack.reads") +
                         of_samples(&recording, "where.thread_local.reads") +
                         of_samples(&recording, "where.elsewhere.reads"),
                     of_samples(&recording, "reads"));
    recording_free(&recording);
}

/* The same program built so that it counts each access, in words of 8 bytes. */
static void test_counted_shares(void **state)
{
    const char *program = need_program("samples-counted");
    const char *const argv[] = {program, "shares", "30" /* so that no cell overflows */, NULL};
    struct recording counted = record_and_load(argv, &(struct record_options){0});
    struct recording sampled = record_bursts("samples", "shares", "800000", 50);
    assert_exit(&counted.run, 0, "samples-counted");
    struct shares exact = counted_shares(counted.report), shares = sampled_shares(sampled.report);
    assert_same_shares(&shares, &exact, of_samples(&sampled, "bursts"));
    recording_free(&counted);
    recording_free(&sampled);
}

/* Runs of one program until accesses have been seen that often. */
#define ENOUGH_SEEN 1000

static int64_t see_branches(int64_t seen[4])
{
    int64_t all = 0;
    for (int tries = 0; all < ENOUGH_SEEN; tries++) {
        if (tries == 100)
            fail_msg("%lld accesses in %d runs", (long long)all, tries);
        struct recording recording = record_program("samples", "branches", NULL);
        assert_exit(&recording.run, 0, "samples");
        for (int i = 0; i < 4; i++) { /* each reads a word and writes it */
            const int64_t writes =
                json_number(context_of_size(recording.report, 5000 + 1000 * i), "sampled.accesses.writes");
            seen[i] += writes;
            all += writes;
        }
        recording_free(&recording);
    }
    return all;
}

/* Bursts begin where time is spent. What is seen is how often instructions are executed all the same: ways that the
 * processor does not foresee were seen twice as often as they are taken when all steps were counted.
 *
 * Each access goes to one of the blocks by chance, and one in 26 to the last: what is seen differs from that by chance,
 * too, hardly ever by five standard deviations, and by one hundredth for what bursts still prefer. */
static void test_uneven_pace(void **state)
{
    const double known[] = {90 * 25 / 2600.0, 9 * 25 / 2600.0, 25 / 2600.0, 1 / 26.0};
    const double all_steps[] = {0.757, 0.169, 0.019, 0.055}; /* what was seen when all of them were counted */
    int64_t seen[4] = {0}, all = see_branches(seen);
    print_message("of %lld accesses %lld, %lld, %lld and %lld\n", (long long)all, (long long)seen[0],
                  (long long)seen[1], (long long)seen[2], (long long)seen[3]);
    double tolerance[4];
    for (int i = 0; i < 4; i++)
        tolerance[i] = 0.01 + 5 * sqrt(known[i] * (1 - known[i]) / (double)all);
    for (int i = 0; i < 4; i++)
        assert_share("a block", (double)seen[i] / (double)all, known[i], tolerance[i]);
    assert_true(known[0] - all_steps[0] > tolerance[0] && all_steps[1] - known[1] > tolerance[1]);
}

static void test_sharing(void **state)
{
    struct recording recording = record_program("samples", "sharing", NULL);
    assert_exit(&recording.run, 0, "samples");
    const json_t *context = context_of_size(recording.report, 136);
    assert_int_equal(json_number(context, "sampled.accesses.lines.seen"), 2);
    assert_int_equal(json_number(context, "sampled.accesses.lines.false_shared"), 1);
    assert_int_equal(json_number(context, "sampled.accesses.lines.true_shared"), 1);
    assert_int_equal(json_number(context, "sampled.accesses.lines.several_writers"), 2);
    assert_int_equal(of_samples(&recording, "threads"), 2);
    recording_free(&recording);
}

/* Two runs as one: sums of samples, by context, word and place. */
static void test_merged(void **state)
{
    struct recording a = record_program("samples", "sharing", NULL), b = record_program("samples", "sharing", NULL);
    char *directory = make_directory(), *file = join_path(directory, "merged.hwprof");
    const char *const arguments[] = {"merge", "-o", file, a.files[0], b.files[0], NULL};
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, 0, "merge");
    json_t *report = load_report(file, 0);
    const json_t *reports[3] = {a.report, b.report, report};
    int64_t samples[3], reads[3], lines[3], words[3], places[3];
    for (int i = 0; i < 3; i++) {
        const json_t *context = context_of_size(reports[i], 136), *list;
        samples[i] = json_number(reports[i], "sampled.accesses.samples");
        reads[i] = json_number(context, "sampled.accesses.reads");
        lines[i] = json_number(context, "sampled.accesses.lines.false_shared");
        list = json_object_get(json_object_get(json_object_get(context, "sampled"), "accesses"), "words");
        words[i] = json_number(json_array_get(list, 0), "writes") + json_number(json_array_get(list, 0), "reads");
        list = json_object_get(json_object_get(json_object_get(context, "sampled"), "accesses"), "places");
        places[i] = 0;
        for (size_t k = 0; k < json_array_size(list); k++) {
            places[i] += json_number(json_array_get(list, k), "writes");
            assert_true(json_is_string(json_object_get(json_array_get(list, k), "function")));
        }
    }
    assert_int_equal(samples[2], samples[0] + samples[1]);
    assert_int_equal(reads[2], reads[0] + reads[1]);
    assert_int_equal(lines[2], lines[0] + lines[1]);
    assert_int_equal(words[2], words[0] + words[1]);
    assert_int_equal(places[2], places[0] + places[1]);
    assert_true(places[2] > 0);
    assert_int_equal(json_number(report, "sampled.accesses.runs"), 2);
    assert_int_equal(json_number(report, "sampled.accesses.runs_ended"), 0);
    json_decref(report);
    run_result_free(&result);
    free(file);
    remove_directory(directory);
    recording_free(&a);
    recording_free(&b);
}

/* A string instruction is not followed through all its iterations, and counts what it does within a burst. */
static void test_strings(void **state)
{
    struct recording recording = record_bursts("samples", "strings", NULL, 20);
    assert_exit(&recording.run, 0, "samples");
    assert_true(of_samples(&recording, "steps") <= of_samples(&recording, "instructions"));
    assert_true(of_samples(&recording, "where.heap.writes") > of_samples(&recording, "bursts"));
    recording_free(&recording);
}

/* ---- programs that must not notice ---- */

static void assert_unnoticed(const char *program, const char *what, bool sampled)
{
    struct recording recording = record_bursts(program, what, NULL, sampled ? 5 : 0);
    if (recording.run.code != 0 || strcmp(recording.run.out, "fine\n") != 0)
        fail_msg("%s %s: exit code %d, %s%s", program, what, recording.run.code, recording.run.out, recording.run.err);
    recording_free(&recording);
}

static void test_unnoticed(void **state)
{
    static const struct {
        const char *what;
        bool sampled;
    } cases[] = {
        {"flags", true},      {"handlers", true},     {"hidden", true},    {"waiting", false}, {"interrupted", true},
        {"coroutines", true}, {"small-stack", false}, {"processes", true}, {"threads", true},  {"strings", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_unnoticed("samples", cases[i].what, cases[i].sampled);
}

static void test_musl(void **state)
{
    static const char *const cases[] = {"handlers", "processes", "threads"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_unnoticed("samples-musl", cases[i], true);
}

static void assert_steps_aside(const char *what, const char *reason)
{
    struct recording recording = record_bursts("samples", what, NULL, 5);
    assert_exit(&recording.run, 0, what);
    assert_string_equal(recording.run.out, "fine\n");
    assert_contains(json_text(recording.report, "sampled.accesses.ended_because"), reason);
    assert_true(report_says(recording.report, reason));
    recording_free(&recording);
}

static void test_steps_aside(void **state)
{
    assert_steps_aside("own-trap", "SIGTRAP");
    assert_steps_aside("seccomp", "seccomp");
}

/* Killed by a trap of its own, as it would be without. */
static void test_killed_by_a_trap(void **state)
{
    static const char *const cases[] = {"die", "breakpoint"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct recording recording = record_bursts("samples", cases[i], NULL, 5);
        assert_int_equal(recording.run.code, 128 + SIGTRAP);
        assert_int_equal(json_number(recording.report, "process.exit.signal"), SIGTRAP);
        recording_free(&recording);
    }
}

static void test_traced(void **state)
{
    const char *program = program_path("samples");
    if (!program || !have_command("strace"))
        SKIP("no program, or no strace");
    char options[64] = "sample-accesses=200:event-sources=none";
    char *directory = make_directory(), *file = join_path(directory, "traced.hwprof"), assignment[4096];
    snprintf(assignment, sizeof assignment, "LD_PRELOAD=%s", runtime_path());
    char variable[4096];
    snprintf(variable, sizeof variable, "HEAPWISE_OPTIONS=output=%s:%s", file, options);
    const char *const argv[] = {"strace", "-f",     "-o",    "/dev/null", "-E",    assignment,
                                "-E",     variable, program, "shares",    "30000", NULL};
    struct run_result result = run(argv, NULL);
    assert_exit(&result, 0, "strace");
    json_t *report = load_report(file, 0);
    assert_contains(json_text(report, "sampled.accesses.ended_because"), "debugger");
    assert_int_equal(json_number(report, "sampled.accesses.bursts"), 0);
    json_decref(report);
    run_result_free(&result);
    free(file);
    remove_directory(directory);
}

/* Where blocks cannot be found by what is inside them, nothing is sampled and the reason is said. */
static void test_limited(void **state)
{
    const char *program = need_program("samples");
    const char *const argv[] = {"sh", "-c", "ulimit -v 4000000; exec \"$0\" shares 200000", program, NULL};
    const char *const arguments[] = {"--sample-accesses", NULL};
    struct recording recording = record_and_load(argv, &(struct record_options){.arguments = arguments});
    assert_exit(&recording.run, 0, "samples");
    const json_t *report = recording.reports[recording.file_count - 1];
    assert_contains(json_text(report, "sampled.accesses.ended_because"), "address space");
    recording_free(&recording);
}

/* A program that counts its accesses needs no samples. */
static void test_counting_program(void **state)
{
    struct recording recording = record_program("samples-counted", "shares", "1000");
    assert_exit(&recording.run, 0, "samples-counted");
    assert_contains(json_text(recording.report, "sampled.accesses.ended_because"), "exactly");
    assert_true(json_number(recording.report, "totals.accesses") > 0);
    recording_free(&recording);
}

/* ---- accesses that are picked: page faults in place of what a processor would pick ---- */

/* ANY: else there is no event. */
static char *make_devices(bool any)
{
    static const char *const files[][2] = {{"type", "1\n" /* software */}, {"events/mem-stores", "event=0x2\n"}};
    char *directory = make_directory(), path[4096];
    if (!any)
        return directory;
    snprintf(path, sizeof path, "%s/cpu", directory);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/cpu/events", directory);
    assert_int_equal(mkdir(path, 0700), 0);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/cpu/%s", directory, files[i][0]);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(files[i][1], file);
        fclose(file);
    }
    return directory;
}

struct picked {
    struct run_result run;
    json_t *report, *child; /* NULL: it has none */
};

static struct picked pick(const char *name, const char *what, bool any)
{
    const char *program = need_program(name);
    char *devices = make_devices(any), *directory = make_directory(), *file = join_path(directory, "picked.hwprof");
    char preload[4096], options[8192];
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", runtime_path());
    snprintf(options, sizeof options, "HEAPWISE_OPTIONS=output=%s:sample-accesses=50:sample-period=1:event-sources=%s",
             file, devices);
    const char *const argv[] = {"env", preload, options, program, what, NULL};
    struct picked picked = {.run = run(argv, NULL)};
    picked.report = load_report(file, 0);
    snprintf(options, sizeof options, "cd %s && ls | grep -v '^picked.hwprof$' | head -1", directory);
    const char *const list[] = {"sh", "-c", options, NULL};
    struct run_result found = run(list, NULL);
    found.out[strcspn(found.out, "\n")] = '\0';
    if (*found.out) {
        char *other = join_path(directory, found.out);
        picked.child = load_report(other, 0);
        free(other);
    }
    run_result_free(&found);
    free(file);
    remove_directory(directory);
    remove_directory(devices);
    return picked;
}

static void picked_free(struct picked *picked)
{
    run_result_free(&picked->run);
    json_decref(picked->report);
    json_decref(picked->child);
}

static void need_picking(const json_t *report)
{
    const char *source = json_text(report, "sampled.accesses.source");
    if (!source || strcmp(source, "pmu") != 0)
        SKIP("page faults cannot be sampled on this machine");
}

/* Each page of each block once in every round, by the store to the page's own offset. */
static void assert_faults(const json_t *report, int64_t rounds)
{
    const json_t *contexts = json_object_get(report, "contexts");
    int64_t seen = 0, words_seen = 0;
    for (size_t i = 0; i < json_array_size(contexts); i++) {
        const json_t *context = json_array_get(contexts, i);
        if (json_integer_value(json_object_get(json_object_get(context, "size"), "max")) != 64 * 4096 + 123)
            continue;
        const json_t *words =
            json_object_get(json_object_get(json_object_get(context, "sampled"), "accesses"), "words");
        assert_int_equal(json_number(context, "sampled.accesses.reads"), 0);
        seen += json_number(context, "sampled.accesses.writes");
        for (size_t n = 0; n < json_array_size(words); n++) {
            const json_t *word = json_array_get(words, n);
            int64_t offset = json_number(word, "offset"), page = offset / 4096;
            if (json_number(word, "bytes") == 8)
                assert_int_equal(offset % 4096, page * 8);
            assert_int_equal(json_number(word, "writes") % 5, 0);
            words_seen += json_number(word, "writes");
        }
        const json_t *places =
            json_object_get(json_object_get(json_object_get(context, "sampled"), "accesses"), "places");
        assert_string_equal(json_text(json_array_get(places, 0), "function"), "touch_pages");
    }
    assert_int_equal(seen, 64 * rounds);
    assert_int_equal(words_seen, 64 * rounds);
}

static void test_picked(void **state)
{
    struct picked picked = pick("samples", "faults", true);
    assert_exit(&picked.run, 0, "samples");
    assert_string_equal(picked.run.out, "fine\n");
    need_picking(picked.report);
    assert_faults(picked.report, 3 * 5);
    assert_non_null(picked.child);
    assert_faults(picked.child, 5);
    assert_int_equal(json_number(picked.report, "sampled.accesses.threads"), 3);
    assert_int_equal(json_number(picked.report, "sampled.accesses.weight"), 1);
    assert_int_equal(json_number(picked.report, "sampled.accesses.lost"), 0);
    assert_int_equal(json_number(picked.report, "sampled.accesses.bursts"), 0);
    assert_true(report_says(picked.report, "sampled by the processor"));
    picked_free(&picked);
}

static void test_picked_unnoticed(void **state)
{
    static const char *const cases[][2] = {
        {"samples", "handlers"},   {"samples", "hidden"},      {"samples", "waiting"}, {"samples", "interrupted"},
        {"samples", "coroutines"}, {"samples", "small-stack"}, {"samples", "threads"}, {"samples", "processes"},
        {"samples", "own-trap"},   {"samples", "seccomp"},     {"samples", "closes"},  {"samples-musl", "faults"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!program_path(cases[i][0])) {
            LEAVE_OUT("%s was not built", cases[i][0]);
            continue;
        }
        struct picked picked = pick(cases[i][0], cases[i][1], true);
        if (picked.run.code != 0 || strcmp(picked.run.out, "fine\n") != 0)
            fail_msg("%s %s: exit code %d, %s%s", cases[i][0], cases[i][1], picked.run.code, picked.run.out,
                     picked.run.err);
        need_picking(picked.report);
        assert_true(json_number(picked.report, "sampled.accesses.samples") > 0);
        picked_free(&picked);
    }
}

static void test_picked_steps_aside(void **state)
{
    static const char *const cases[][2] = {{"own-trap", "SIGTRAP"}, {"seccomp", "seccomp"}};
    for (size_t i = 0; i < 2; i++) {
        struct picked picked = pick("samples", cases[i][0], true);
        need_picking(picked.report);
        assert_contains(json_text(picked.report, "sampled.accesses.ended_because"), cases[i][1]);
        picked_free(&picked);
    }
}

/* No such events: steps instead, and the reason is told. */
static void test_not_picked(void **state)
{
    struct picked picked = pick("samples", "faults", false);
    assert_exit(&picked.run, 0, "samples");
    assert_string_equal(json_text(picked.report, "sampled.accesses.source"), "trap flag");
    assert_true(report_says(picked.report, "not sampled by the processor itself: this machine"));
    picked_free(&picked);
}

static void test_wrong_numbers(void **state)
{
    static const char *const wrong[] = {"--sample-accesses=0", "--sample-accesses=x", "--sample-accesses=1001"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *const arguments[] = {"record", wrong[i], "true", NULL};
        struct run_result result = heapwise(arguments, NULL);
        assert_int_equal(result.code, 125);
        assert_contains(result.err, "--sample-accesses");
        run_result_free(&result);
    }
}

static void test_text(void **state)
{
    struct recording recording = record_program("samples", "shares", "300000");
    const char *const arguments[] = {"report", "--section", "sampled", recording.files[0], NULL};
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, 0, "report");
    assert_contains(result.out, "Sampled accesses");
    assert_contains(result.out, "known_shares");
    assert_contains(result.out, "use_records");
    assert_contains(result.out, "of the sampled accesses to blocks");
    run_result_free(&result);
    recording_free(&recording);
}

TEST_LIST(cmocka_unit_test(test_known_shares), cmocka_unit_test(test_counted_shares),
          cmocka_unit_test(test_uneven_pace), cmocka_unit_test(test_sharing), cmocka_unit_test(test_merged),
          cmocka_unit_test(test_strings), cmocka_unit_test(test_unnoticed), cmocka_unit_test(test_musl),
          cmocka_unit_test(test_steps_aside), cmocka_unit_test(test_killed_by_a_trap), cmocka_unit_test(test_traced),
          cmocka_unit_test(test_limited), cmocka_unit_test(test_counting_program), cmocka_unit_test(test_picked),
          cmocka_unit_test(test_picked_unnoticed), cmocka_unit_test(test_picked_steps_aside),
          cmocka_unit_test(test_not_picked), cmocka_unit_test(test_wrong_numbers), cmocka_unit_test(test_text))
