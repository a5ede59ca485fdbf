/* test_verdict.c - is it the allocator? Programs that are known to suffer from it, and one that does not; and the
 * setting that a report recommends takes away what it is recommended against. */
#include "support/check.h"
#include "support/recording.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_config.h"

/* With glibc's moving threshold off: without that the first free of a large block ends all mapping. */
#define NO_PRELOAD "an allocator cannot be preloaded into tools built with AddressSanitizer"
#define FIXED      "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072"

static struct recording record_any(const char *what, const char *const environment[])
{
    static const char *const arguments[] = {"--mode=allocator", "--no-prediction", NULL};
    const char *program = need_program("verdict");
    const char *const argv[] = {program, what, NULL};
    struct recording recording =
        record_and_load(argv, &(struct record_options){.arguments = arguments, .run.environment = environment});
    assert_exit(&recording.run, 0, what);
    return recording;
}

/* With an allocator of the tests preloaded. */
static struct recording record_with(const char *what, const char *library, const char *setting)
{
    char preload[4096];
    if (TEST_SANITIZED)
        SKIP(NO_PRELOAD);
    if (!program_path(library))
        SKIP("%s was not built", library);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", program_path(library));
    return record_any(what, (const char *const[]){preload, setting, NULL});
}

static struct recording record(const char *what, const char *setting)
{
    struct recording recording = record_any(what, (const char *const[]){setting, NULL});
    if (strncmp(json_text(recording.report, "process.allocator"), "glibc", 5) != 0) {
        recording_free(&recording);
        SKIP("the allocator is not glibc's");
    }
    return recording;
}

static const json_t *cause(const struct recording *recording, const char *name)
{
    const json_t *verdict = json_object_get(json_object_get(recording->report, "allocator"), "verdict"), *entry;
    size_t i;
    assert_non_null(verdict);
    json_array_foreach(json_object_get(verdict, "causes"), i, entry)
    {
        if (strcmp(json_text(entry, "cause"), name) == 0)
            return entry;
    }
    return NULL;
}

static void test_quiet(void **state)
{
    (void)state;
    struct recording recording = record("quiet", NULL);
    assert_string_equal(json_text(recording.report, "allocator.verdict.time"), "no");
    assert_int_equal(json_array_size(json_object_get(
                         json_object_get(json_object_get(recording.report, "allocator"), "verdict"), "causes")),
                     0);
    recording_free(&recording);
}

/* The run without Heapwise is none in which others have the processor: beside two of these, all on one processor, it is
 * no longer than the processor time of whoever records and is recorded. */
static void test_busy(void **state)
{
    (void)state;
    cpu_set_t all, one;
    struct rusage before, after;
    pid_t spinning[2];
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    for (int i = 0; i < 2; i++) {
        spinning[i] = fork();
        if (!spinning[i]) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;)
                ;
        }
    }
    getrusage(RUSAGE_CHILDREN, &before);
    struct recording recording = record("quiet", NULL);
    getrusage(RUSAGE_CHILDREN, &after);
    for (int i = 0; i < 2; i++) {
        kill(spinning[i], SIGKILL);
        waitpid(spinning[i], NULL, 0);
    }
    sched_setaffinity(0, sizeof all, &all);
    const double processor = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
                             (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
                             1e-6 * (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) +
                             1e-6 * (double)(after.ru_stime.tv_usec - before.ru_stime.tv_usec);
    const double run = json_number(recording.report, "allocator.verdict.run_seconds");
    if (access("/proc/self/schedstat", R_OK) != 0)
        LEAVE_OUT("the kernel has no schedstat");
    else if (run > 1.1 * processor)
        fail_msg("a run of %g s, for %g s of processor time", run, processor);
    recording_free(&recording);
}

/* On a busy machine its time may be known too roughly: one run of three is enough. */
static void test_rate(void **state)
{
    (void)state;
    struct recording recording = record("rate", NULL);
    const json_t *found = cause(&recording, "rate");
    for (int i = 0; i < 2 && !found; i++) {
        recording_free(&recording);
        recording = record("rate", NULL);
        found = cause(&recording, "rate");
    }
    assert_string_not_equal(json_text(recording.report, "allocator.verdict.time"), "no");
    assert_non_null(found);
    assert_non_null(strstr(json_text(found, "site"), "main_rate"));
    assert_null(cause(&recording, "mapping"));
    assert_null(cause(&recording, "locks"));
    recording_free(&recording);
}

/* A heap that costs page faults, and none with the setting against it: where the kernel gives huge pages to those that
 * ask. */
static void test_small_pages_and_their_setting(void **state)
{
    (void)state;
    char line[64] = "";
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    const bool asked = file && fgets(line, sizeof line, file) && strstr(line, "[madvise]");
    if (file)
        fclose(file);
    struct recording recording = record("pages", NULL);
    const json_t *found = cause(&recording, "small-pages");
    for (int tries = 0; asked && !found && tries < 4; tries++) { /* who loses the processor may not read the heap */
        recording_free(&recording);
        recording = record("pages", NULL);
        found = cause(&recording, "small-pages");
    }
    if (!asked) {
        assert_null(found);
        recording_free(&recording);
        return;
    }
    assert_non_null(found);
    const double least = json_real_value(json_object_get(found, "gain_least_seconds")),
                 most = json_real_value(json_object_get(found, "gain_seconds"));
    assert_true(least > 0.001 && least < 0.0025); /* 15,625 pages, of which the heap may keep some more */
    assert_true(most > least);
    char setting[256];
    snprintf(setting, sizeof setting, "%s", json_text(found, "setting"));
    assert_string_equal(setting, "GLIBC_TUNABLES=glibc.malloc.hugetlb=1");
    recording_free(&recording);
    recording = record("pages", setting);
    assert_null(cause(&recording, "small-pages"));
    recording_free(&recording);
    recording = record("quiet", NULL);
    assert_null(cause(&recording, "small-pages"));
    recording_free(&recording);
}

/* Call stacks with few timed calls each: their function has a share. */
static void test_few_timed_calls(void **state)
{
    (void)state;
    struct recording recording = record("stacks", NULL);
    const char *const argv[] = {heapwise_path(), "report", "--section", "allocator", recording.files[0], NULL};
    struct run_result result = run(argv, NULL);
    assert_exit(&result, 0, "heapwise report");
    const char *merged = strstr(result.out, "Call stacks with few timed calls, added up by the function");
    if (!merged || !strstr(merged, "at_leaf: "))
        fail_msg("not added up: %s", result.out);
    assert_null(strstr(merged, " 0 call stacks"));
    run_result_free(&result);
    recording_free(&recording);
}

static void test_mapping_and_its_setting(void **state)
{
    (void)state;
    struct recording recording = record("mapping", FIXED);
    if (!json_is_array(json_object_get(json_object_get(recording.report, "allocator"), "syscalls"))) {
        recording_free(&recording);
        SKIP("system calls cannot be observed here");
    }
    const json_t *found = cause(&recording, "mapping");
    assert_string_not_equal(json_text(recording.report, "allocator.verdict.time"), "no");
    assert_non_null(found);
    char setting[256];
    snprintf(setting, sizeof setting, "%s", json_text(found, "setting"));
    assert_memory_equal(setting, "GLIBC_TUNABLES=", 15);
    recording_free(&recording);

    recording = record("mapping", setting);
    assert_null(cause(&recording, "mapping"));
    assert_null(cause(&recording, "heap-end"));
    recording_free(&recording);
}

/* Records until it is known since when the cause NAME is one, and it is not since the begin where LATE. On a busy
 * machine points in time may be too far apart: one of five runs is enough. */
static struct recording record_when(const char *what, const char *library, const char *setting, const char *name,
                                    bool late)
{
    for (int tries = 0; tries < 5; tries++) {
        struct recording recording = library ? record_with(what, library, setting) : record(what, setting);
        const json_t *found = cause(&recording, name), *since = found ? json_object_get(found, "since_seconds") : NULL;
        if (json_is_real(since) &&
            (!late || 5e9 * json_real_value(since) > (double)json_number(recording.report, "process.duration_ns")))
            return recording;
        recording_free(&recording);
    }
    fail_msg("%s: it is never known since when there is %s", what, name);
    abort();
}

/* The moment KEY of the cause, in thousandths of the run; what the program said of it, in CLAIMED. */
static double moment_of(const struct recording *recording, const char *name, const char *key, double *claimed)
{
    const json_t *moment = json_object_get(cause(recording, name), key);
    assert_true(json_is_real(moment));
    *claimed = atof(recording->run.out);
    return 1e12 * json_real_value(moment) / (double)json_number(recording->report, "process.duration_ns");
}

static void assert_near(double found, double claimed)
{
    if (found < claimed - 300 || found > claimed + 300) /* points in time may be far apart on a busy machine */
        fail_msg("%.0f thousandths of the run, not %.0f", found, claimed);
}

/* Since when: the program knows when it has begun, or ended, to be slow. */
static void test_when(void **state)
{
    (void)state;
    double claimed;
    struct recording recording = record_when("late", NULL, FIXED, "mapping", false);
    const double since = moment_of(&recording, "mapping", "since_seconds", &claimed);
    assert_near(since, claimed);
    assert_near(moment_of(&recording, "mapping", "until_seconds", &claimed), 1000);
    assert_null(strstr(json_text(cause(&recording, "mapping"), "why"), "all the time"));
    recording_free(&recording);

    recording = record_when("early", NULL, NULL, "rate", false);
    const double until = moment_of(&recording, "rate", "until_seconds", &claimed);
    assert_near(until, claimed);
    assert_near(moment_of(&recording, "rate", "since_seconds", &claimed), 0);
    assert_null(strstr(json_text(cause(&recording, "rate"), "why"), "all the time"));
    recording_free(&recording);
}

/* It has begun in the middle, when the program says so, and went on. */
static void assert_from_the_middle(struct recording *recording, const char *name)
{
    double claimed;
    const double since = moment_of(recording, name, "since_seconds", &claimed);
    assert_near(since, claimed);
    assert_true(since > 200);
    const double until = moment_of(recording, name, "until_seconds", &claimed);
    const char *why = json_text(cause(recording, name), "why");
    assert_near(until, 1000);
    assert_non_null(strstr(why, "It lasts from"));
    if (until > 910) /* the last tenth is no part of a run */
        assert_non_null(strstr(why, " to the end"));
    recording_free(recording);
}

static void test_when_locks(void **state)
{
    (void)state;
    struct recording recording = record_when("contended", "libinsidemalloc.so", NULL, "locks", true);
    assert_from_the_middle(&recording, "locks");
}

static void test_when_lines(void **state)
{
    (void)state;
    struct recording recording = record_when("shared", "liblineheap.so", "LINEHEAP=shared", "false-sharing", true);
    const json_t *allocator = json_object_get(recording.report, "allocator");
    /* Its rows are mapped next to the thread-local memory of the first thread, which is no stack. */
    assert_true(json_is_integer(json_object_get(json_object_get(allocator, "memory_at_end"), "total")));
    assert_from_the_middle(&recording, "false-sharing");
}

/* Known only where the resident heap was looked at. */
static void test_when_holes(void **state)
{
    (void)state;
    struct recording recording = record("holes", NULL);
    const json_t *found = cause(&recording, "external"), *point;
    double first = -1, last = 0;
    size_t i, looks = 0;
    json_array_foreach(json_object_get(json_object_get(recording.report, "allocator"), "memory_over_time"), i, point)
    {
        assert_int_equal(json_is_null(json_object_get(point, "external")),
                         json_is_null(json_object_get(point, "resident")));
        if (json_is_null(json_object_get(point, "external")))
            continue;
        last = json_number(point, "external");
        first = first < 0 ? last : first;
        looks++;
    }
    assert_true(first < 1e6 && last > 12e6); /* three of four blocks of 112 bytes */
    assert_non_null(found);
    if (json_is_null(json_object_get(found, "since_seconds"))) {
        LEAVE_OUT("the resident heap was sampled too seldom to know since when");
        recording_free(&recording);
        return;
    }
    assert_int_equal(json_number(found, "looked_at_moments"), looks);
    assert_from_the_middle(&recording, "external");
}

/* ---- the heap in parts of a run of some milliseconds ---- */

/* Its peak lasts for a moment, and is seen. */
static bool is_peak_known(const char *what)
{
    struct recording recording = record(what, NULL);
    const json_t *heap = json_object_get(json_object_get(recording.report, "allocator"), "memory_at_peak");
    const double claimed = atof(recording.run.out), real = json_number(heap, "real");
    const bool known = json_is_integer(json_object_get(heap, "total"));
    assert_true(real > 0.98 * claimed && real < claimed + 100000); /* of threads nearly; and what libraries have */
    if (known) {
        const double total = json_number(heap, "total");
        assert_true(total >= real && total < 1.3 * real); /* all of it was written to; headers, sizes rounded up */
        assert_true(total == real - json_number(heap, "absent") + json_number(heap, "internal") +
                                 json_number(heap, "blowup") + json_number(heap, "external"));
        assert_true(json_number(heap, "resident_read_at_percent") >= 90);
    }
    recording_free(&recording);
    return known;
}

/* Who loses the processor while he looks has no time left for another look: one of five runs is enough. */
static void assert_peak_known(const char *what)
{
    for (int tries = 0; tries < 5; tries++)
        if (is_peak_known(what))
            return;
    fail_msg("%s: the resident heap at the peak is never known", what);
}

static void test_short_peak(void **state)
{
    (void)state;
    assert_peak_known("short");
}

static void test_short_peak_of_threads(void **state)
{
    (void)state;
    assert_peak_known("short-threads");
}

/* ---- each cause, and no other ---- */

/* By construction; memory under the four allocators as their size classes are. Names of causes; in parentheses those
 * that programs have beside, which do nothing but allocate. */
#define BESIDE "(rate) (heap-end) (new-memory) (small-pages)"
static const struct {
    const char *program, *library, *setting;
    const char *causes;
} known[] = {
    {"quiet", NULL, NULL, ""},
    {"quiet", "libjemalloc.so", NULL, ""},
    {"quiet", "libtcmalloc.so", NULL, ""},
    {"quiet", "libmimalloc.so", NULL, ""},
    {"rate", NULL, NULL, "rate"},
    {"rate", "libjemalloc.so", NULL, "rate"},
    {"rate", "libtcmalloc.so", NULL, "rate"},
    {"rate", "libmimalloc.so", NULL, "rate"},
    {"clear", NULL, NULL, "clearing"},
    {"clear", "libjemalloc.so", NULL, "clearing"},
    {"clear", "libtcmalloc.so", NULL, "clearing"},
    {"clear", "libmimalloc.so", NULL, "clearing"},
    {"copy", NULL, NULL, "copying"},
    {"copy", "libjemalloc.so", NULL, "copying"},
    {"copy", "libtcmalloc.so", NULL, "copying"},
    {"copy", "libmimalloc.so", NULL, "copying"},
    {"thin", NULL, NULL, "internal external " BESIDE}, /* 7 bytes, and a header of 8 */
    {"thin", "libjemalloc.so", NULL, "internal " BESIDE},
    {"thin", "libtcmalloc.so", NULL, "internal " BESIDE},
    {"thin", "libmimalloc.so", NULL, "internal " BESIDE},
    {"phases", NULL, NULL, BESIDE}, /* blocks are joined and used again */
    {"phases", "libjemalloc.so", NULL, "kept (advice) " BESIDE},
    {"phases", "libtcmalloc.so", NULL, BESIDE},
    {"phases", "libmimalloc.so", NULL, BESIDE},
    {"holes", "libjemalloc.so", NULL, "external " BESIDE},
    {"holes", "libtcmalloc.so", NULL, "external " BESIDE},
    {"holes", "libmimalloc.so", NULL, "external " BESIDE},
    {"halved", NULL, NULL, "lasting " BESIDE},
    {"halved", "libjemalloc.so", NULL, "lasting " BESIDE},
    {"halved", "libtcmalloc.so", NULL, "lasting " BESIDE},
    {"halved", "libmimalloc.so", NULL, "lasting " BESIDE},
    /* In the next two what is left besides that cause is about half, and a matter of the machine. */
    {"trim", NULL, NULL, "heap-end (slow-operations) (rate)"},
    {"purge", "libjemalloc.so", "MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0", "advice (slow-operations) (rate)"},
    {"spread", "liblistmalloc.so", NULL, "blowup " BESIDE},
    {"spread", NULL, NULL, BESIDE},
};

/* All but what is in parentheses are named, and nothing else is: else what is wrong, in WRONG. */
static void check_known(size_t which, char wrong[256])
{
    const char *program = known[which].program, *library = known[which].library, *setting = known[which].setting;
    struct recording recording = library ? record_with(program, library, setting) : record(program, setting);
    const json_t *verdict = json_object_get(json_object_get(recording.report, "allocator"), "verdict"), *entry;
    char wanted[128];
    size_t i;
    *wrong = '\0';
    json_array_foreach(json_object_get(verdict, "causes"), i, entry)
    {
        const char *name = json_text(entry, "cause");
        const json_t *gain = json_object_get(entry, "gain_seconds");
        assert_true(json_real_value(json_object_get(entry, "share")) <= 1);
        if (json_is_real(gain))
            assert_true(json_real_value(gain) <= json_real_value(json_object_get(verdict, "run_seconds")));
        if (!strstr(known[which].causes, name))
            snprintf(wrong + strlen(wrong), 256 - strlen(wrong), " %s", name);
    }
    snprintf(wanted, sizeof wanted, "%s", known[which].causes);
    for (char *rest = wanted, *name; (name = strsep(&rest, " "));)
        if (*name && *name != '(' && !cause(&recording, name))
            snprintf(wrong + strlen(wrong), 256 - strlen(wrong), " no %s", name);
    assert_true(json_real_value(json_object_get(verdict, "time_share")) <= 1);
    recording_free(&recording);
}

/* Where other programs have the processors most of the time, what is lost inside operations looks like theirs, and few
 * points in time are known: one of five runs is enough. */
static void test_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char wrong[256] = "";
        if (known[i].library && (TEST_SANITIZED || !program_path(known[i].library))) {
            LEAVE_OUT("%s", TEST_SANITIZED ? NO_PRELOAD : "an allocator that is not installed");
            continue;
        }
        for (int tries = 0; tries < 5 && (tries == 0 || *wrong); tries++)
            check_known(i, wrong);
        if (*wrong)
            fail_msg("%s under %s:%s; known: %s", known[i].program, known[i].library ? known[i].library : "glibc",
                     wrong, known[i].causes);
    }
}

TEST_LIST(cmocka_unit_test(test_quiet), cmocka_unit_test(test_busy), cmocka_unit_test(test_rate),
          cmocka_unit_test(test_small_pages_and_their_setting), cmocka_unit_test(test_few_timed_calls),
          cmocka_unit_test(test_mapping_and_its_setting), cmocka_unit_test(test_when),
          cmocka_unit_test(test_when_locks), cmocka_unit_test(test_when_lines), cmocka_unit_test(test_when_holes),
          cmocka_unit_test(test_short_peak), cmocka_unit_test(test_short_peak_of_threads), cmocka_unit_test(test_known))
