/* test_places.c - what an allocator makes of its memory, where that is known: waste of known size, blocks of two
 * threads on one line on purpose and never, peaks, many threads, forked children; and by the kernel's own account. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct recording record_places(const char *which, const char *preload, const char *lineheap, const char *extra)
{
    char variable[1024], mode[64];
    if (preload && TEST_SANITIZED)
        SKIP("an allocator cannot be preloaded into tools built with AddressSanitizer");
    snprintf(variable, sizeof variable, "LD_PRELOAD=%s", preload ? preload : "");
    snprintf(mode, sizeof mode, "LINEHEAP=%s", lineheap ? lineheap : "");
    const char *const environment[] = {mode, preload ? variable : NULL, NULL};
    const char *const argv[] = {program_path("places"), which, NULL};
    const char *const arguments[] = {"--mode", "allocator", "--no-prediction", extra, NULL};
    struct recording recording =
        record_and_load(argv, &(struct record_options){.arguments = arguments, .run.environment = environment});
    assert_exit(&recording.run, 0, "the program under heapwise record");
    return recording;
}

static int64_t number(const struct recording *recording, const char *path)
{
    char full[256];
    snprintf(full, sizeof full, "allocator.%s", path);
    return json_number(recording->report, full);
}

static void assert_between(const char *what, int64_t value, int64_t least, int64_t most)
{
    if (value < least || value > most)
        fail_msg("%s is %lld, not between %lld and %lld", what, (long long)value, (long long)least, (long long)most);
}

/* The parts are the whole; at the end the whole is what was read. */
static void check_parts(const struct recording *recording)
{
    static const char *const moments[] = {"memory_at_peak", "memory_at_end"};
    const json_t *allocator = json_object_get(recording->report, "allocator");
    for (int i = 0; i < 2; i++) {
        const json_t *parts = json_object_get(allocator, moments[i]);
        assert_true(json_is_object(parts));
        if (json_is_null(json_object_get(parts, "total")))
            continue;
        assert_int_equal(json_number(parts, "real") - json_number(parts, "absent") + json_number(parts, "internal") +
                             json_number(parts, "blowup") + json_number(parts, "external"),
                         json_number(parts, "total"));
    }
    assert_int_equal(number(recording, "memory_at_end.total"), number(recording, "memory_at_end.resident"));
}

static void test_internal(void **unused)
{
    (void)unused;
    struct recording recording = record_places("internal", NULL, NULL, NULL);
    const json_t *class = usable_class(recording.report, 24);
    assert_int_equal(json_number(class, "at_end.live"), 100000);
    assert_int_equal(json_number(class, "at_end.real_bytes"), 400000);
    assert_int_equal(json_number(class, "at_end.usable_bytes"), 2400000);
    assert_int_equal(json_number(class, "at_end.new"), 100000);
    assert_between("internal fragmentation", number(&recording, "memory_at_end.internal"), 2000000, 2010000);
    assert_between("the whole", number(&recording, "memory_at_end.total"), strtoll(recording.run.out, NULL, 10) - 65536,
                   strtoll(recording.run.out, NULL, 10) + 65536);
    check_parts(&recording);
    recording_free(&recording);
}

static void test_external(void **unused)
{
    (void)unused;
    struct recording recording = record_places("external", NULL, NULL, NULL);
    const json_t *class = usable_class(recording.report, 104);
    assert_int_equal(json_number(class, "at_end.live"), 25000);
    assert_int_equal(json_number(class, "at_end.free_list"), 75000);
    assert_int_equal(json_number(class, "at_end.recently_freed"), 75000);
    assert_int_equal(json_number(class, "at_end.most_live"), 100000);
    assert_int_equal(json_number(class, "at_peak.live"), 100000);
    assert_int_equal(json_number(class, "at_peak.free_list"), 0);
    assert_between("the peak", number(&recording, "memory_at_peak.real"), 10000000, 10010000);
    assert_int_equal(number(&recording, "memory_at_end.blowup"), 0);
    /* 112 bytes for each of 100,000, of which 104 in a quarter of them are in other parts */
    assert_between("what is between", number(&recording, "memory_at_end.external"), 11200000 - 2600000,
                   11200000 - 2600000 + 200000);
    assert_between("the whole", number(&recording, "memory_at_end.total"), strtoll(recording.run.out, NULL, 10) - 65536,
                   strtoll(recording.run.out, NULL, 10) + 65536);
    check_parts(&recording);
    recording_free(&recording);
}

static void test_other_allocators(void **unused)
{
    (void)unused;
    static const char *const libraries[] = {"libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2.0"};
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        char path[256];
        snprintf(path, sizeof path, "/usr/lib/x86_64-linux-gnu/%s", libraries[i]);
        FILE *there = fopen(path, "r");
        if (!there) {
            LEAVE_OUT("%s is not installed", libraries[i]);
            continue;
        }
        fclose(there);
        struct recording recording = record_places("internal", path, NULL, NULL);
        const json_t *class = usable_class(recording.report, 8);
        assert_between("blocks", json_number(class, "at_end.live"), 100000, 100010);
        assert_between("usable", json_number(class, "at_end.usable_bytes"), 800000, 800100);
        check_parts(&recording);
        recording_free(&recording);
        recording = record_places("external", path, NULL, NULL);
        class = usable_class(recording.report, 112);
        assert_between("blocks", json_number(class, "at_end.live"), 25000, 25010);
        assert_between("free", json_number(class, "at_end.free_list"), 75000 - 10, 75000);
        check_parts(&recording);
        recording_free(&recording);
    }
}

static void test_blowup(void **unused)
{
    (void)unused;
    struct recording recording = record_places("produce", program_path("liblineheap.so"), "apart", NULL);
    /* Each of 20,000 blocks has a place of its own; 100 were enough. Greatest numbers are told in steps. */
    const json_t *class = usable_class(recording.report, 1008);
    assert_int_equal(json_number(class, "at_end.new"), 20000);
    assert_int_equal(json_number(class, "at_end.free_list"), 20000);
    assert_between("most", json_number(class, "at_end.most_live"), 84, 116);
    assert_between("blowup", number(&recording, "memory_at_end.blowup"), 19880 * 1008, 19920 * 1008);
    check_parts(&recording);
    recording_free(&recording);

    recording = record_places("produce", program_path("liblineheap.so"), "passed", NULL);
    class = usable_class(recording.report, 1008);
    assert_int_equal(json_number(class, "at_end.new"), 100);
    assert_int_equal(json_number(class, "at_end.reused"), 19900);
    assert_between("blowup", number(&recording, "memory_at_end.blowup"), 0, 16 * 1008);
    recording_free(&recording);
}

static void check_sharing(const char *which, const char *lineheap, int64_t active, int64_t passive)
{
    struct recording recording = record_places(which, program_path("liblineheap.so"), lineheap, NULL);
    const int64_t most = active ? 4 : 0; /* beside these, what libc has for the threads, in the same row */
    assert_between("active blocks", number(&recording, "false_sharing.active_blocks"), active - most / 2,
                   active + most);
    assert_between("active lines", number(&recording, "false_sharing.active_lines"), active / 3, active / 3 + most);
    assert_int_equal(number(&recording, "false_sharing.passive_blocks"), passive);
    assert_int_equal(number(&recording, "false_sharing.passive_lines"), passive / 2);
    recording_free(&recording);
}

static void test_lines(void **unused)
{
    (void)unused;
    check_sharing("turns", "shared", 1500, 0); /* the first of each four blocks is alone on its line */
    check_sharing("turns", "apart", 0, 0);
    check_sharing("turns", "passed", 0, 0);
    check_sharing("pass", "apart", 0, 0);
    check_sharing("pass", "passed", 0, 500);
    check_sharing("reset", "passed", 0, 500); /* again, on the same lines */
}

/* Few blocks are followed, and what they say of those from before the reset is more than some places can have had:
 * places are together the process all the same. That no profile contradicts itself is checked wherever one is read. */
static void test_reset(void **unused)
{
    (void)unused;
    for (int i = 0; i < 20; i++) {
        struct recording recording = record_places("reset", program_path("liblineheap.so"), "passed", NULL);
        recording_free(&recording);
    }
}

static void test_peaks(void **unused)
{
    (void)unused;
    struct recording recording = record_places("peaks", NULL, NULL, NULL);
    assert_int_equal(number(&recording, "memory_at_peak.real"), 3000000);
    const json_t *class = usable_class(recording.report, 1000);
    assert_int_equal(json_number(class, "at_peak.live"), 3000);
    assert_int_equal(json_number(class, "at_peak.new"), 3000);
    assert_int_equal(json_number(class, "at_peak.reused"), 1900);
    assert_int_equal(json_number(class, "at_end.live"), 1000);
    assert_int_equal(json_number(class, "at_end.free_list"), 2000);
    recording_free(&recording);
}

/* What a thread has freed last is known, also when it does nothing more. */
static void test_peak_of_threads(void **unused)
{
    (void)unused;
    struct recording recording = record_places("alternate", NULL, NULL, NULL);
    assert_between("the peak", number(&recording, "memory_at_peak.real"), 10 << 20, (10 << 20) + (10 << 20) / 50);
    recording_free(&recording);
}

/* Runs of some milliseconds, too: with one thread the resident heap is looked at in the moment in which a peak is left,
 * if that has not been done too shortly before: in two runs of five, in fewer on a busy machine. */
static void test_short_runs(void **unused)
{
    (void)unused;
    for (int i = 0; i < 50; i++) {
        struct recording recording = record_places("peaks", NULL, NULL, NULL);
        const json_t *total =
            json_object_get(json_object_get(json_object_get(recording.report, "allocator"), "memory_at_peak"), "total");
        const int64_t value = json_is_integer(total) ? (int64_t)json_integer_value(total) : 0;
        if (value) {
            assert_between("the whole", value, 3000000, 3400000);
            assert_true(json_real_value(json_object_get(
                            json_object_get(json_object_get(recording.report, "allocator"), "memory_at_peak"),
                            "resident_read_at_percent")) >= 90);
            check_parts(&recording);
        }
        recording_free(&recording);
        if (value)
            return;
    }
    fail_msg("the heap was never looked at near the peak");
}

static void test_odd_ones(void **unused)
{
    (void)unused;
    struct recording recording = record_places("odd", NULL, NULL, NULL);
    assert_between("the peak", number(&recording, "memory_at_peak.real"), 5ll << 30, (5ll << 30) + 20000);
    assert_between("what is live", number(&recording, "memory_at_end.real"), 562, 5000);
    check_parts(&recording);
    recording_free(&recording);
}

static void test_many_threads(void **unused)
{
    (void)unused;
    struct recording recording = record_places("many", NULL, NULL, NULL);
    const json_t *class = usable_class(recording.report, 200);
    assert_int_equal(json_number(class, "at_end.live"), 50000);
    assert_int_equal(json_number(class, "at_end.new") + json_number(class, "at_end.reused"), 100000);
    check_parts(&recording);
    recording_free(&recording);
}

static void test_fork(void **unused)
{
    (void)unused;
    struct recording recording = record_places("fork", NULL, NULL, NULL);
    assert_int_equal(recording.file_count, 2);
    const json_t *parent = usable_class(recording.reports[0], 104), *child = usable_class(recording.reports[1], 104);
    assert_int_equal(json_number(parent, "at_end.live"), 10000);
    assert_int_equal(json_number(parent, "at_end.new"), 10000);
    assert_int_equal(json_number(child, "at_end.live"), 5000);
    assert_int_equal(json_number(child, "at_end.free_list"), 5000);
    assert_int_equal(json_number(child, "at_end.new"), 0);
    recording_free(&recording);
}

static void test_samples(void **unused)
{
    (void)unused;
    struct recording recording = record_places("fight", NULL, NULL, NULL);
    const json_t *allocator = json_object_get(recording.report, "allocator");
    assert_true(json_is_null(json_object_get(allocator, "cache_utilization_percent")));
    assert_true(json_is_null(json_object_get(allocator, "contention")));
    recording_free(&recording);
    recording = record_places("fight", NULL, NULL, "--sample-accesses=1000");
    allocator = json_object_get(recording.report, "allocator");
    if (json_is_object(json_object_get(allocator, "contention"))) { /* else samples cannot be had here */
        const double used = json_number_value(json_object_get(allocator, "cache_utilization_percent"));
        assert_true(used > 99);
        assert_true(json_number_value(json_object_get(allocator, "page_utilization_percent")) < 10);
        assert_int_equal(number(&recording, "contention.between_blocks"), 0);
        assert_int_equal(number(&recording, "contention.true_sharing"), 0);
        assert_int_equal(number(&recording, "false_sharing.active_writes"), 0);
    }
    recording_free(&recording);
}

TEST_LIST(cmocka_unit_test(test_internal), cmocka_unit_test(test_external), cmocka_unit_test(test_other_allocators),
          cmocka_unit_test(test_blowup), cmocka_unit_test(test_lines), cmocka_unit_test(test_reset),
          cmocka_unit_test(test_peaks), cmocka_unit_test(test_short_runs), cmocka_unit_test(test_peak_of_threads),
          cmocka_unit_test(test_odd_ones), cmocka_unit_test(test_many_threads), cmocka_unit_test(test_fork),
          cmocka_unit_test(test_samples))
