/* test_inside.c - what happens inside operations of the allocator: system calls and locks that are known, none of those
 * outside, and programs that must not notice. programs/inside.c and programs/insidemalloc.c are what is recorded. */
#include "support/check.h"
#include "support/recording.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_config.h"

/* With the known allocator (or what PRELOAD names), or without. */
static struct recording record_inside(const char *what, const char *times, const char *preload, const char *options,
                                      bool may_fail)
{
    const char *program = program_path("inside"), *library = preload ? program_path(preload) : NULL;
    static char environment[4096];
    if (!program || (preload && !library))
        SKIP("inside was not built, or %s is not installed", preload ? preload : "nothing else");
    if (preload && TEST_SANITIZED)
        SKIP("an allocator cannot be preloaded into tools built with AddressSanitizer");
    snprintf(environment, sizeof environment, "LD_PRELOAD=%s", library ? library : "");
    const char *const argv[] = {program, what, times, NULL};
    static const char *const arguments[] = {"--mode", "allocator", "--no-prediction", NULL};
    const char *const variables[] = {preload ? environment : NULL, NULL};
    struct recording recording =
        record_and_load(argv, &(struct record_options){.arguments = arguments,
                                                       .options = options,
                                                       .may_fail = may_fail,
                                                       .run = {.environment = variables, .timeout_s = 120}});
    if (!may_fail) {
        assert_exit(&recording.run, 0, what);
        assert_contains(recording.run.out, "done");
    }
    return recording;
}

static const json_t *allocator(const json_t *report)
{
    const json_t *found = json_object_get(report, "allocator");
    assert_non_null(found);
    return found;
}

/* The call NAME inside operations; NULL: none was seen. */
static const json_t *find_call(const json_t *report, const char *name)
{
    const json_t *calls = json_object_get(allocator(report), "syscalls");
    assert_true(json_is_array(calls));
    for (size_t i = 0; i < json_array_size(calls); i++)
        if (strcmp(json_text(json_array_get(calls, i), "name"), name) == 0)
            return json_array_get(calls, i);
    return NULL;
}

static int64_t calls(const json_t *report, const char *name)
{
    const json_t *call = find_call(report, name);
    return call ? json_number(call, "count") : 0;
}

static int64_t calls_in(const json_t *report, const char *name, const char *kind)
{
    char path[64];
    snprintf(path, sizeof path, "by_kind.%s.count", kind);
    const json_t *call = find_call(report, name);
    const int64_t count = call ? json_number_or_none(call, path) : 0;
    return count < 0 ? 0 : count;
}

/* The lock with this name and type. */
static const json_t *lock(const json_t *report, const char *type, const char *symbol)
{
    const json_t *locks = json_object_get(allocator(report), "locks");
    for (size_t i = 0; i < json_array_size(locks); i++)
        if (strcmp(json_text(json_array_get(locks, i), "symbol"), symbol) == 0 &&
            strcmp(json_text(json_array_get(locks, i), "type"), type) == 0)
            return json_array_get(locks, i);
    fail_msg("no %s called %s", type, symbol);
    return NULL;
}

/* Nothing can be said where the kernel lacks it: told once, and the rest is skipped. */
static void need_dispatch(struct recording *recording)
{
    if (!json_is_null(json_object_get(allocator(recording->report), "syscalls")))
        return;
    assert_true(report_says(recording->report, "system calls inside the allocator"));
    recording_free(recording);
    SKIP("%s", "this kernel has no syscall user dispatch");
}

/* ---- system calls ---- */

static void test_large_blocks(void **state)
{
    struct recording recording = record_inside("large", "50", NULL, NULL, false);
    need_dispatch(&recording);
    assert_int_equal(calls(recording.report, "mmap"), 50);
    assert_int_equal(calls(recording.report, "munmap"), 50);
    assert_int_equal(calls_in(recording.report, "mmap", "new") + calls_in(recording.report, "mmap", "reused"), 50);
    assert_int_equal(calls_in(recording.report, "munmap", "free"), 50);
    const json_t *call = find_call(recording.report, "mmap");
    const int64_t bytes = json_number(call, "bytes"), block = 40ll << 20;
    assert_true(bytes >= 50 * block && bytes <= 50 * (block + 8192));
    assert_int_equal(json_number(call, "errors"), 0);
    assert_true(json_number(call, "cycles") > 0);
    recording_free(&recording);
}

static void test_known_calls(void **state)
{
    struct recording recording = record_inside("calls", "100", "libinsidemalloc.so", NULL, false);
    need_dispatch(&recording);
    assert_int_equal(calls(recording.report, "mmap"), 100);
    assert_int_equal(calls(recording.report, "madvise"), 200);
    assert_int_equal(calls(recording.report, "mprotect"), 100);
    assert_int_equal(calls(recording.report, "mremap"), 100);
    assert_int_equal(calls(recording.report, "munmap"), 200);
    assert_int_equal(json_number(find_call(recording.report, "munmap"), "errors"), 100);
    assert_int_equal(json_number(find_call(recording.report, "madvise"), "bytes"), 200 * 4096);
    recording_free(&recording);
}

static void test_futex(void **state)
{
    struct recording recording = record_inside("wake", "20", "libinsidemalloc.so", NULL, false);
    need_dispatch(&recording);
    assert_int_equal(json_number(allocator(recording.report), "futex.waits.count"), 20);
    assert_int_equal(json_number(allocator(recording.report), "futex.waits.errors"), 20);
    assert_int_equal(json_number(allocator(recording.report), "futex.wakes.count"), 20);
    const json_t *futex = lock(recording.report, "futex", "known_futex");
    assert_int_equal(json_number(futex, "waits"), 20);
    assert_int_equal(json_number(futex, "wakes"), 20);
    recording_free(&recording);
}

/* Few operations are timed, and most of those that waited are not: all of KIND together took no less than these waited.
 */
static void check_not_less(const json_t *report, const char *kind)
{
    char path[64];
    double inside = 0, all = 0;
    for (int wakes = 0; wakes < 2; wakes++) {
        snprintf(path, sizeof path, "futex.%s.by_kind.%s.cycles", wakes ? "wakes" : "waits", kind);
        const int64_t cycles = json_number_or_none(allocator(report), path);
        inside += cycles > 0 ? (double)cycles : 0;
    }
    const json_t *operations = json_object_get(allocator(report), "operations");
    for (size_t i = 0; i < json_array_size(operations); i++) {
        const json_t *one = json_array_get(operations, i);
        if (strcmp(json_text(one, "kind"), kind) != 0)
            continue;
        const json_t *mean = json_object_get(json_object_get(one, "cycles"), "mean");
        if (!json_is_number(mean)) /* none of them was timed */
            return;
        all += json_number_value(mean) * (double)json_number(one, "count");
    }
    assert_true(all >= 0.99 * inside);
}

/* glibc's own locks: who waits is known, and no longer than there was time. */
static void test_arena(void **state)
{
    struct recording recording = record_inside("fork-locks", "40", NULL, NULL, false);
    need_dispatch(&recording);
    unsigned long spent, whole;
    const char *said = strstr(recording.run.out, "spent ");
    assert_true(said && sscanf(said, "spent %lu of %lu ns", &spent, &whole) == 2);
    int64_t waits = 0, wakes = 0;
    const json_t *locks = json_object_get(allocator(recording.report), "locks");
    for (size_t i = 0; i < json_array_size(locks); i++) {
        const json_t *one = json_array_get(locks, i);
        if (strcmp(json_text(one, "type"), "futex") != 0)
            continue;
        waits += json_number(one, "waits");
        wakes += json_number(one, "wakes");
        if (json_number(one, "waits"))
            assert_in_range(json_number(one, "waiting_most"), 1, 3);
    }
    assert_true(waits > 0);
    assert_int_equal(json_number(allocator(recording.report), "futex.waits.count"), waits);
    assert_int_equal(json_number(allocator(recording.report), "futex.wakes.count"), wakes);
    const int64_t waited = json_number(allocator(recording.report), "futex.waits.time_ns");
    assert_true(waited > 0 && (unsigned long)waited <= spent + spent / 100 && spent <= 3 * whole);
    static const char *const kinds[] = {"new", "reused", "free"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        check_not_less(recording.report, kinds[i]);
    recording_free(&recording);
}

/* Threads that all want one arena: who waits for a mutex in its place waits for glibc's lock, too, and nobody longer
 * than there was time. How often and how long is up to chance: bench/run compares them. */
static void test_one_arena(void **state)
{
    enum { THREADS = 4 };
    const char *program = program_path("one-arena"), *library = program_path("libonelock.so");
    if (!program || !library)
        SKIP("%s", "one-arena was not built");
    if (TEST_SANITIZED)
        SKIP("%s", "an allocator cannot be preloaded into tools built with AddressSanitizer");
    static const char one_arena[] = "GLIBC_TUNABLES=glibc.malloc.arena_max=1";
    char preload[4096];
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library);
    unsigned long waits, ns, took;

    const char *const argv[] = {program, "300000", NULL}, *const with_mutex[] = {preload, one_arena, NULL};
    struct run_result mutex = run(argv, &(struct run_options){.environment = with_mutex, .timeout_s = 120});
    assert_exit(&mutex, 0, "one-arena with a mutex");
    assert_int_equal(sscanf(mutex.err, "one_lock: %lu waits, %lu ns", &waits, &ns), 2);
    assert_int_equal(sscanf(mutex.out, "took %lu ns", &took), 1);
    assert_true(ns <= THREADS * took);
    run_result_free(&mutex);

    static const char *const arguments[] = {"--mode", "allocator", "--no-prediction", NULL};
    const char *const variables[] = {one_arena, NULL};
    struct recording recording = record_and_load(
        argv, &(struct record_options){.arguments = arguments, .run = {.environment = variables, .timeout_s = 120}});
    assert_exit(&recording.run, 0, "one-arena");
    assert_int_equal(sscanf(recording.run.out, "took %lu ns", &took), 1);
    need_dispatch(&recording);
    const int64_t seen = json_number(allocator(recording.report), "futex.waits.count");
    const int64_t waited = json_number(allocator(recording.report), "futex.waits.time_ns");
    assert_true(waits < 20 || seen > 0);
    assert_true((seen > 0) == (waited > 0) && seen <= 2l * THREADS * 300000);
    assert_true(waited >= 0 && (double)waited <= 1.01 * THREADS * (double)took);
    if (seen) {
        const json_t *arena = lock(recording.report, "futex", "main_arena");
        int64_t by_kind = 0;
        static const char *const kinds[] = {"by_kind.new.waits", "by_kind.reused.waits", "by_kind.free.waits"};
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            by_kind += json_number_or_none(arena, kinds[i]) > 0 ? json_number(arena, kinds[i]) : 0;
        assert_true(json_number(arena, "waits") <= seen && by_kind == json_number(arena, "waits"));
        assert_in_range(json_number(arena, "waiting_most"), 1, THREADS);
        assert_true(json_number(arena, "wait_cycles_most") <= json_number(arena, "wait_cycles"));
    }
    recording_free(&recording);
}

/* What one operation did is not told again of later ones whose blocks come onto lines of other threads. */
static void test_shared_lines(void **state)
{
    struct recording recording = record_inside("share", "1000", "libinsidemalloc.so", NULL, false);
    assert_true(json_number(allocator(recording.report), "false_sharing.passive_blocks") >= 1000);
    const json_t *mutex = lock(recording.report, "mutex", "known_mutex");
    assert_int_equal(json_number(mutex, "acquisitions"), 1);
    need_dispatch(&recording);
    assert_int_equal(json_number(allocator(recording.report), "futex.waits.count"), 1);
    assert_int_equal(json_number(allocator(recording.report), "futex.wakes.count"), 1);
    recording_free(&recording);
}

/* Calls that nobody but the program can make. */
static void test_handed_back(void **state)
{
    struct recording recording = record_inside("fork-inside", "5", "libinsidemalloc.so", NULL, false);
    need_dispatch(&recording);
    assert_int_equal(calls(recording.report, "unseen"), 5);
    assert_int_equal(calls(recording.report, "madvise"), 0); /* after the fork */
    recording_free(&recording);
    recording = record_inside("thread", "5", "libinsidemalloc.so", NULL, false);
    assert_true(calls(recording.report, "unseen") >= 5);
    recording_free(&recording);
    recording = record_inside("mask", "5", "libinsidemalloc.so", NULL, false);
    assert_int_equal(calls(recording.report, "madvise"), 5);
    assert_int_equal(calls(recording.report, "unseen"), 0);
    recording_free(&recording);
}

/* ---- signals ---- */

static void test_handlers(void **state)
{
    struct recording recording = record_inside("interrupted", "20", "libinsidemalloc.so", NULL, false);
    need_dispatch(&recording);
    assert_int_equal(calls(recording.report, "madvise"), 20); /* the allocator's, none of the handler's */
    assert_int_equal(calls(recording.report, "mmap"), 20);    /* blocks that the handler allocates */
    assert_int_equal(calls(recording.report, "munmap"), 20);
    recording_free(&recording);
    recording = record_inside("jumped", "20", "libinsidemalloc.so", NULL, false);
    assert_int_equal(calls(recording.report, "madvise"), 0);
    assert_int_equal(calls(recording.report, "mmap"), 20);
    recording_free(&recording);
}

static void test_masks(void **state)
{
    struct recording recording = record_inside("masked", "10", NULL, NULL, false);
    need_dispatch(&recording);
    assert_true(calls(recording.report, "mmap") >= 33);
    recording_free(&recording);
    recording = record_inside("alternate", "10", NULL, NULL, false);
    assert_int_equal(calls(recording.report, "mmap"), 20);
    recording_free(&recording);
}

static void test_own_sigsys(void **state)
{
    struct recording recording = record_inside("own-sys", "10", NULL, NULL, false);
    need_dispatch(&recording);
    assert_int_equal(calls(recording.report, "mmap"), 30);
    assert_int_equal(calls(recording.report, "munmap"), 30);
    recording_free(&recording);
    recording = record_inside("die", "10", NULL, NULL, true);
    assert_int_equal(recording.run.code, 128 + SIGSYS);
    assert_int_equal(calls(recording.report, "mmap"), 10);
    recording_free(&recording);
}

static void test_filters(void **state)
{
    struct recording recording = record_inside("filtered", "10", NULL, NULL, false);
    need_dispatch(&recording);
    assert_int_equal(calls(recording.report, "mmap"), 10);
    assert_true(report_says(recording.report, "allocator were not observed, "));
    recording_free(&recording);
    recording = record_inside("trapped", "10", NULL, NULL, false);
    assert_int_equal(calls(recording.report, "mmap"), 10);
    recording_free(&recording);
}

/* ---- processes and threads ---- */

static void test_processes(void **state)
{
    struct recording recording = record_inside("forked", "10", NULL, NULL, false);
    need_dispatch(&recording);
    assert_true(recording.file_count >= 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(calls(recording.reports[i], "mmap"), 20);
    recording_free(&recording);
}

static void test_threads(void **state)
{
    struct recording recording = record_inside("threads", "2000", NULL, NULL, false);
    need_dispatch(&recording);
    assert_true(calls(recording.report, "mmap") >= 2000);
    assert_true(calls(recording.report, "mmap") <= 2200); /* heaps of threads */
    recording_free(&recording);
    recording = record_inside("small-stacks", "10", NULL, NULL, false);
    assert_true(calls(recording.report, "mmap") >= 10);
    recording_free(&recording);
    recording = record_inside("last-calls", "3", "libinsidemalloc.so", NULL, false); /* which SIGSYS killed */
    assert_int_equal(json_number(lock(recording.report, "mutex", "known_mutex"), "acquisitions"), 9);
    recording_free(&recording);
}

/* ---- locks ---- */

/* How long a lock is held, against a timing inside of it in the same run: no less, and no more than calls take. Who
 * loses the processor between the two is seen in one of them alone: one of three runs is enough. */
static void test_held(void **state)
{
    double by = 0;
    for (int tries = 0; tries < 3; tries++) {
        struct recording recording = record_inside("held", "3000", "libinsidemalloc.so", NULL, false);
        unsigned long ticks, sections;
        const char *said = strstr(recording.run.out, "held ");
        assert_true(said && sscanf(said, "held %lu in %lu", &ticks, &sections) == 2);
        const json_t *mutex = lock(recording.report, "mutex", "known_mutex");
        assert_int_equal(json_number(mutex, "acquisitions"), sections);
        by = (double)json_number(mutex, "held_cycles") / (double)ticks;
        recording_free(&recording);
        if (by > 0.97 && by < 1.15)
            return;
    }
    fail_msg("the lock is held %.3f times as long as it is", by);
}

static void test_locks(void **state)
{
    struct recording recording = record_inside("mutex", "100", "libinsidemalloc.so", NULL, false);
    assert_int_equal(json_array_size(json_object_get(allocator(recording.report), "locks")), 3);
    const json_t *mutex = lock(recording.report, "mutex", "known_mutex");
    const json_t *spin = lock(recording.report, "spinlock", "known_spin");
    const json_t *rwlock = lock(recording.report, "rwlock", "known_rwlock");
    assert_int_equal(json_number(mutex, "acquisitions"), 100);
    assert_int_equal(json_number(spin, "acquisitions"), 100);
    assert_int_equal(json_number(rwlock, "acquisitions"), 200);
    assert_int_equal(json_number(mutex, "contended"), 0);
    assert_int_equal(json_number(mutex, "waiting_most"), 0);
    assert_true(json_number(mutex, "held_cycles") >=
                json_number(spin, "held_cycles") + json_number(rwlock, "held_cycles"));
    assert_int_equal(json_number(mutex, "critical_cycles"), json_number(mutex, "held_cycles"));
    assert_int_equal(json_number(spin, "critical_cycles"), 0);
    recording_free(&recording);
    recording = record_inside("recursive", "100", "libinsidemalloc.so", NULL, false);
    assert_int_equal(json_number(lock(recording.report, "mutex", "known_recursive"), "acquisitions"), 300);
    recording_free(&recording);
    recording = record_inside("checked", "10", "libinsidemalloc.so", NULL, false);
    assert_int_equal(json_number(lock(recording.report, "mutex", "known_checked"), "acquisitions"), 10);
    recording_free(&recording);
    recording = record_inside("timed", "10", "libinsidemalloc.so", NULL, false);
    assert_int_equal(json_number(lock(recording.report, "mutex", "known_mutex"), "acquisitions"), 10);
    recording_free(&recording);
}

static void test_contention(void **state)
{
    struct recording recording = record_inside("contend", "10", "libinsidemalloc.so", NULL, false);
    const json_t *mutex = lock(recording.report, "mutex", "known_mutex");
    assert_int_equal(json_number(mutex, "acquisitions"), 20);
    assert_int_equal(json_number(mutex, "contended"), 10);
    assert_int_equal(json_number(mutex, "refused"), 10);
    assert_int_equal(json_number(mutex, "waiting_most"), 1);
    assert_true(json_number(mutex, "wait_cycles") > 0);
    recording_free(&recording);
}

/* ---- events ---- */

/* Eight pages are touched inside each malloc, none in free: whoever counts. */
static void check_events(const char *options)
{
    struct recording recording = record_inside("faults", "20000", "libinsidemalloc.so", options, false);
    const json_t *operations = json_object_get(allocator(recording.report), "operations");
    int64_t samples = 0;
    for (size_t i = 0; i < json_array_size(operations); i++) {
        const json_t *operation = json_array_get(operations, i);
        if (json_number_or_none(operation, "events.samples") < 10)
            continue;
        const double faults = json_number_value(json_object_get(json_object_get(operation, "events"), "page_faults"));
        const double known = strcmp(json_text(operation, "kind"), "free") == 0 ? 0 : 8;
        samples += json_number(operation, "events.samples");
        if (faults < known || faults > known + 0.5)
            fail_msg("%f faults in %s", faults, json_text(operation, "kind"));
    }
    assert_true(samples > 20);
    assert_true(samples < 20000 / 10);
    recording_free(&recording);
}

static void test_events(void **state)
{
    check_events(NULL);
    check_events("operation-events=software");
    struct recording recording = record_inside("large", "10", NULL, "operation-events=none", false);
    assert_true(report_says(recording.report, "operation-events=none"));
    recording_free(&recording);
}

/* ---- without ---- */

static void test_not_observed(void **state)
{
    struct recording recording = record_inside("mutex", "10", "libinsidemalloc.so", "dispatch=0", false);
    assert_true(json_is_null(json_object_get(allocator(recording.report), "syscalls")));
    assert_true(json_is_null(json_object_get(allocator(recording.report), "futex")));
    assert_true(report_says(recording.report, "system calls inside the allocator were not observed"));
    assert_int_equal(json_number(lock(recording.report, "mutex", "known_mutex"), "acquisitions"), 10);
    recording_free(&recording);
}

/* The text report, and what a merged or packed profile keeps. */
static void test_text(void **state)
{
    struct recording recording = record_inside("calls", "10", "libinsidemalloc.so", NULL, false);
    need_dispatch(&recording);
    const char *const arguments[] = {"report", "--all", recording.files[0], NULL};
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, 0, "report");
    assert_contains(result.out, "System calls inside the allocator");
    assert_contains(result.out, "mprotect");
    assert_contains(result.out, "Locks inside the allocator");
    run_result_free(&result);
    recording_free(&recording);
}

TEST_LIST(cmocka_unit_test(test_large_blocks), cmocka_unit_test(test_known_calls), cmocka_unit_test(test_futex),
          cmocka_unit_test(test_handed_back), cmocka_unit_test(test_handlers), cmocka_unit_test(test_masks),
          cmocka_unit_test(test_shared_lines), cmocka_unit_test(test_arena), cmocka_unit_test(test_one_arena),
          cmocka_unit_test(test_own_sigsys), cmocka_unit_test(test_filters), cmocka_unit_test(test_processes),
          cmocka_unit_test(test_threads), cmocka_unit_test(test_held), cmocka_unit_test(test_locks),
          cmocka_unit_test(test_contention), cmocka_unit_test(test_events), cmocka_unit_test(test_not_observed),
          cmocka_unit_test(test_text))
