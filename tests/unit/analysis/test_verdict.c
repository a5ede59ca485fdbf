/* test_verdict.c - from the numbers of a run to what is said of its allocator: each cause alone, none where there is
 * none, nothing from what was not observed. */

#include "analysis/share.h"
#include "analysis/verdict.h"
#include "report/words/verdict_words.h"
#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1024.0 * 1024.0)

/* Ten seconds, of which two in operations: half a second of them with new places. */
static struct hw_verdict_input slow(void)
{
    struct hw_verdict_input input = hw_verdict_input_none();
    input.wall = input.run = 10;
    input.threads = 10;
    input.count = 40000000;
    input.operations = input.critical = 2;
    input.fresh = (struct hw_operation_cost){5000000, 0.5};
    input.reused = (struct hw_operation_cost){15000000, 1.0};
    input.allocator = "glibc 2.36";
    input.threads_most = 1;
    input.largest = 3000000;
    return input;
}

static const struct hw_verdict_finding *find(const struct hw_verdict *verdict, enum hw_verdict_cause cause)
{
    for (size_t i = 0; i < verdict->finding_count; i++)
        if (verdict->findings[i].cause == cause)
            return &verdict->findings[i];
    return NULL;
}

static void test_nothing_observed(void **state)
{
    (void)state;
    const struct hw_verdict_input input = hw_verdict_input_none();
    struct hw_verdict verdict;
    hw_verdict_make(&verdict, &input);
    assert_int_equal(verdict.time, HW_VERDICT_NOT_KNOWN);
    assert_int_equal(verdict.memory, HW_VERDICT_NOT_KNOWN);
    assert_int_equal(verdict.finding_count, 0);
    assert_false(verdict.another);
}

static void test_no_problem(void **state)
{
    (void)state;
    struct hw_verdict_input input = slow();
    input.operations = input.critical = 0.29; /* 2.9 % */
    input.map.calls = 1000;
    input.map.seconds = 0.2;
    input.total = 100 * MIB;
    input.real = 80 * MIB;
    input.internal = 15 * MIB;
    input.blowup = 0;
    input.external = 5 * MIB;
    input.active_lines = input.passive_lines = 0;
    input.lines = 1000;
    struct hw_verdict verdict;
    hw_verdict_make(&verdict, &input);
    assert_int_equal(verdict.time, HW_VERDICT_NO);
    assert_int_equal(verdict.memory, HW_VERDICT_NO);
    assert_int_equal(verdict.finding_count, 0);
}

static void test_rate(void **state)
{
    (void)state;
    struct hw_verdict_input input = slow();
    input.site = 7;
    input.site_seconds = 1.2;
    struct hw_verdict verdict;
    hw_verdict_make(&verdict, &input);
    assert_int_equal(verdict.time, HW_VERDICT_YES);
    assert_int_equal(verdict.finding_count, 1);
    assert_int_equal(verdict.findings[0].cause, HW_CAUSE_RATE);
    assert_int_equal(verdict.findings[0].site, 7);
    assert_true(fabs(verdict.findings[0].seconds - 2) < 1e-9);
    assert_string_equal(verdict.findings[0].tunable, "");
    input.site_seconds = 0.1; /* no place stands out */
    hw_verdict_make(&verdict, &input);
    assert_true(verdict.findings[0].site == SIZE_MAX);
}

/* Shares are of what they say, and at most all of it. */
static void test_shares(void **state)
{
    (void)state;
    assert_true(hw_share(1, 4) == 0.25);
    assert_true(hw_share(282, 100) == 1);
    assert_true(hw_share(-1, 4) == 0);
    assert_true(isnan(hw_share(1, 0)) && isnan(hw_share(NAN, 1)) && isnan(hw_share(1, NAN)));
}

/* Waiting is known exactly, and sampling has missed most of it; Heapwise's own time is no time of the run; nothing
 * takes longer than threads were alive; no gain is more than the run. */
static void test_agreement(void **state)
{
    (void)state;
    struct hw_verdict_input input = slow();
    input.threads = 40; /* four of them */
    input.threads_most = 4;
    input.own = 4;
    input.waiting = input.exact = 8;
    input.acquired = 1000;
    input.contended = 900;
    hw_verdict_settle(&input);
    struct hw_verdict verdict;
    hw_verdict_make(&verdict, &input);
    assert_true(input.run == 6);
    assert_true(input.operations == 8); /* as much as is known exactly */
    assert_true(input.critical == 6);
    assert_true(verdict.time_share == 1);
    assert_int_equal(verdict.finding_count, 1);
    assert_int_equal(verdict.findings[0].cause, HW_CAUSE_LOCKS);
    assert_true(verdict.findings[0].share == 1);
    assert_true(verdict.findings[0].gain == 6);

    input = slow(); /* others had the processor most of the time: what is left is what Heapwise's own is a share of */
    input.runnable = 8;
    input.own = 1.5;
    hw_verdict_settle(&input);
    assert_true(input.run == 0.5 && input.own == 1.5 && input.runnable == 8);

    input = slow(); /* operations look longer one by one than they are */
    input.operations = input.critical = 12;
    input.fresh.seconds = 2;
    input.reused.seconds = 10;
    input.own = 4;
    hw_verdict_settle(&input);
    hw_verdict_make(&verdict, &input);
    assert_true(verdict.time_share == 1);
    assert_true(fabs(input.operations - 6) < 1e-9 && fabs(input.reused.seconds - 5) < 1e-9);
    assert_int_equal(verdict.findings[0].cause, HW_CAUSE_RATE);
    assert_true(verdict.findings[0].gain <= 6);

    input = slow();
    input.waiting = input.in_syscalls = input.exact = 5000; /* of one thread in 10 s: it cannot be */
    hw_verdict_settle(&input);
    hw_verdict_make(&verdict, &input);
    assert_true(input.waiting == 10 && input.operations == 10);
    for (size_t i = 0; i < verdict.finding_count; i++)
        assert_true(verdict.findings[i].share <= 1 && verdict.findings[i].gain <= input.run);
    input = hw_verdict_input_none();
    hw_verdict_settle(&input);
    assert_true(isnan(input.run) && isnan(input.operations));
}

/* Two in three seconds are 400 callocs of 4 ms; or reallocations; or operations of which nothing else is known. */
static void test_slow_operations(void **state)
{
    (void)state;
    struct hw_verdict_input input = slow();
    struct hw_verdict verdict;
    input.count = 1000;
    hw_verdict_make(&verdict, &input);
    assert_int_equal(verdict.finding_count, 1);
    assert_int_equal(verdict.findings[0].cause, HW_CAUSE_SLOW);
    input.clearing = (struct hw_operation_cost){400, 1.6};
    input.clearing_site = 5;
    hw_verdict_make(&verdict, &input);
    assert_int_equal(verdict.finding_count, 1);
    assert_int_equal(verdict.findings[0].cause, HW_CAUSE_CLEARING);
    assert_int_equal(verdict.findings[0].site, 5);
    input.copying = input.clearing;
    input.clearing = (struct hw_operation_cost){HW_NOT_OBSERVED, NAN};
    hw_verdict_make(&verdict, &input);
    assert_int_equal(verdict.finding_count, 1);
    assert_int_equal(verdict.findings[0].cause, HW_CAUSE_COPYING);
}

static void test_system_calls(void **state)
{
    (void)state;
    struct hw_verdict_input input = slow();
    input.map.seconds = 1.5;
    input.advise.seconds = 0.1; /* 5 % of the time in operations: not worth a word */
    struct hw_verdict verdict;
    hw_verdict_make(&verdict, &input);
    assert_int_equal(verdict.finding_count, 1); /* what is left is less than half */
    assert_int_equal(verdict.findings[0].cause, HW_CAUSE_MAPPING);
    assert_string_equal(verdict.findings[0].tunable,
                        "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=4194304:glibc.malloc.trim_threshold=16777216");
    input.advise.seconds = 1.6;
    input.map.seconds = 0.3;
    input.allocator = "jemalloc 5.3.0";
    hw_verdict_make(&verdict, &input);
    assert_int_equal(verdict.finding_count, 2);
    assert_int_equal(verdict.findings[0].cause, HW_CAUSE_ADVICE);
    assert_int_equal(verdict.findings[1].cause, HW_CAUSE_MAPPING);
    assert_string_equal(verdict.findings[0].tunable, "MALLOC_CONF=dirty_decay_ms:60000,muzzy_decay_ms:60000");
    input.allocator = "one of its own";
    hw_verdict_make(&verdict, &input);
    assert_string_equal(verdict.findings[0].tunable, "");
}

/* An estimate that may as well be nothing is no reason to change anything; what was counted exactly is. */
static void test_doubt(void **state)
{
    (void)state;
    struct hw_verdict_input input = slow();
    input.error = 0.9; /* 20 % of the run, or 2 % */
    struct hw_verdict verdict;
    hw_verdict_make(&verdict, &input);
    assert_int_equal(verdict.time, HW_VERDICT_NO);
    assert_int_equal(verdict.finding_count, 0);
    input.in_syscalls = input.map.seconds = 0.6;
    hw_verdict_make(&verdict, &input);
    assert_int_equal(verdict.time, HW_VERDICT_SOMEWHAT);
    assert_int_equal(verdict.finding_count, 1);
    assert_int_equal(verdict.findings[0].cause, HW_CAUSE_MAPPING);
    input.error = 0.2;
    hw_verdict_make(&verdict, &input);
    assert_int_equal(verdict.time, HW_VERDICT_YES);
}

static void test_locks(void **state)
{
    (void)state;
    struct hw_verdict_input input = slow();
    input.threads_most = 8;
    input.waiting = 1.4;
    struct hw_verdict verdict;
    hw_verdict_make(&verdict, &input);
    assert_int_equal(verdict.findings[0].cause, HW_CAUSE_LOCKS);
    assert_string_equal(verdict.findings[0].tunable, "GLIBC_TUNABLES=glibc.malloc.arena_max=16");
}

static void test_new_memory(void **state)
{
    (void)state;
    struct hw_verdict_input input = slow();
    input.fresh.seconds = 1.5; /* 300 ns each; reused ones 67 ns */
    struct hw_verdict verdict;
    hw_verdict_make(&verdict, &input);
    const struct hw_verdict_finding *finding = find(&verdict, HW_CAUSE_NEW_MEMORY);
    assert_non_null(finding);
    assert_true(fabs(finding->seconds - (1.5 - 5e6 * (1.0 / 15e6))) < 1e-9);
    input.faults = 0.001; /* it is something else */
    hw_verdict_make(&verdict, &input);
    assert_null(find(&verdict, HW_CAUSE_NEW_MEMORY));
}

/* The heap's pages in a run of 10 s: named from 2 % on, with the range of what page faults cost. */
static void test_small_pages(void **state)
{
    (void)state;
    struct hw_verdict_input input = slow();
    struct hw_verdict verdict;
    input.operations = input.critical = 0.1; /* the allocator itself takes no time */
    input.total = input.real = 400 * MIB;    /* 102,400 pages */
    input.small_pages = true;
    hw_verdict_make(&verdict, &input);
    const struct hw_verdict_finding *finding = find(&verdict, HW_CAUSE_SMALL_PAGES);
    assert_int_equal(verdict.time, HW_VERDICT_NO);
    assert_int_equal(verdict.finding_count, 1);
    assert_non_null(finding);
    assert_string_equal(finding->tunable, "GLIBC_TUNABLES=glibc.malloc.hugetlb=1");
    assert_true(fabs(finding->gain_least - 0.01024) < 1e-9 && fabs(finding->gain - 0.3072) < 1e-9);
    input.total = input.real = 200 * MIB; /* 1.5 % */
    hw_verdict_make(&verdict, &input);
    assert_int_equal(verdict.finding_count, 0);
    input.total = input.real = 400 * MIB;
    input.small_pages = false;
    hw_verdict_make(&verdict, &input);
    assert_int_equal(verdict.finding_count, 0);
    input.small_pages = true;
    input.allocator = "glibc 2.31"; /* it cannot */
    hw_verdict_make(&verdict, &input);
    assert_int_equal(verdict.finding_count, 0);
    input.allocator = "mimalloc 2.0.9";
    hw_verdict_make(&verdict, &input);
    assert_string_equal(verdict.findings[0].tunable, "MIMALLOC_LARGE_OS_PAGES=1");
    input.allocator = "mimalloc 3.0.1";
    hw_verdict_make(&verdict, &input);
    assert_string_equal(verdict.findings[0].tunable, "MIMALLOC_ALLOW_LARGE_OS_PAGES=1");
    input.run = input.wall = 0.1; /* so short a run that it could be nothing else */
    hw_verdict_make(&verdict, &input);
    assert_true(fabs(find(&verdict, HW_CAUSE_SMALL_PAGES)->gain - 0.08) < 1e-9);
}

/* A setting against system calls removes half of them at least; the pages that they took away need page faults. */
static void test_range_of_gains(void **state)
{
    (void)state;
    struct hw_verdict_input input = slow();
    struct hw_verdict verdict;
    input.map.calls = 2000;
    input.map.seconds = 0.8;
    input.map.bytes = (uint64_t)(1000 * MIB); /* 256,000 pages: 0.768 s at most */
    hw_verdict_make(&verdict, &input);
    const struct hw_verdict_finding *finding = find(&verdict, HW_CAUSE_MAPPING);
    assert_non_null(finding);
    assert_true(fabs(finding->gain_least - 0.4) < 1e-9 && fabs(finding->gain - 1.568) < 1e-9);
    input.allocator = "another 1.0"; /* no setting is known */
    hw_verdict_make(&verdict, &input);
    finding = find(&verdict, HW_CAUSE_MAPPING);
    assert_true(isnan(finding->gain_least) && fabs(finding->gain - 0.8) < 1e-9);
}

static void test_memory(void **state)
{
    (void)state;
    struct hw_verdict_input input = hw_verdict_input_none();
    input.allocator = "glibc 2.36";
    input.total = 100 * MIB;
    input.real = 30 * MIB;
    input.internal = 5 * MIB;
    input.blowup = 20 * MIB;
    input.external = 45 * MIB;
    input.pinning_site = 3;
    struct hw_verdict verdict;
    hw_verdict_make(&verdict, &input);
    assert_int_equal(verdict.memory, HW_VERDICT_YES);
    assert_int_equal(verdict.time, HW_VERDICT_NOT_KNOWN);
    assert_int_equal(verdict.finding_count, 2);
    assert_int_equal(verdict.findings[0].cause, HW_CAUSE_EXTERNAL);
    assert_int_equal(verdict.findings[0].site, 3);
    assert_int_equal(verdict.findings[1].cause, HW_CAUSE_BLOWUP);
    assert_string_equal(verdict.findings[1].tunable, "GLIBC_TUNABLES=glibc.malloc.arena_max=1");
    input.kept = 40 * MIB; /* and most of what lies between blocks are free pages */
    hw_verdict_make(&verdict, &input);
    assert_int_equal(verdict.finding_count, 2);
    assert_int_equal(verdict.findings[0].cause, HW_CAUSE_KEPT);
    assert_true(verdict.findings[0].bytes == 40 * MIB);
    assert_int_equal(verdict.findings[1].cause, HW_CAUSE_BLOWUP);
    input.total = 6 * MIB; /* too little to matter */
    input.real = 1 * MIB;
    hw_verdict_make(&verdict, &input);
    assert_int_equal(verdict.memory, HW_VERDICT_NO);
}

/* After the peak: named where it is clearly more than at the peak, whatever that wastes. */
static void test_lasting(void **state)
{
    (void)state;
    struct hw_verdict_input input = hw_verdict_input_none();
    struct hw_verdict verdict;
    hw_verdict_make(&verdict, &input); /* nothing is known */
    assert_int_equal(verdict.finding_count, 0);
    input.total = 100 * MIB;
    input.real = 95 * MIB;
    input.lasting = 50 * MIB;
    input.lasting_total = 100 * MIB;
    hw_verdict_make(&verdict, &input);
    assert_int_equal(verdict.memory, HW_VERDICT_NO);
    assert_int_equal(verdict.finding_count, 1);
    assert_int_equal(verdict.findings[0].cause, HW_CAUSE_LASTING);
    assert_true(verdict.findings[0].bytes == 50 * MIB && verdict.findings[0].share == 0.5);
    input.real = 55 * MIB; /* only 5 MiB more than at the peak */
    hw_verdict_make(&verdict, &input);
    assert_null(find(&verdict, HW_CAUSE_LASTING));
    input.real = 95 * MIB;
    input.lasting = 20 * MIB; /* as much as is usual */
    hw_verdict_make(&verdict, &input);
    assert_int_equal(verdict.finding_count, 0);
}

static void test_lines(void **state)
{
    (void)state;
    struct hw_verdict_input input = hw_verdict_input_none();
    input.lines = 1000;
    input.active_lines = 9;
    input.passive_lines = 0;
    struct hw_verdict verdict;
    hw_verdict_make(&verdict, &input);
    assert_int_equal(verdict.finding_count, 0);
    input.passive_lines = 1;
    hw_verdict_make(&verdict, &input);
    assert_int_equal(verdict.finding_count, 1);
    assert_int_equal(verdict.findings[0].cause, HW_CAUSE_FALSE_SHARING);
    assert_true(fabs(verdict.findings[0].share - 0.01) < 1e-9);
}

static void test_another(void **state)
{
    (void)state;
    struct hw_verdict_input input = slow();
    struct hw_verdict verdict;
    input.best = "jemalloc";
    input.best_gain = 0.08;
    input.best_low = 0.02;
    hw_verdict_make(&verdict, &input);
    assert_true(verdict.another);
    input.best_low = -0.01; /* it may as well lose */
    hw_verdict_make(&verdict, &input);
    assert_false(verdict.another);
}

/* glibc's names are those that its dynamic linker lists; a value that is out of range would be ignored without a word.
 */
static void test_names_of_glibc(void **state)
{
    (void)state;
    FILE *list = popen("/lib64/ld-linux-x86-64.so.2 --list-tunables 2>/dev/null", "r");
    static char text[65536];
    const size_t size = list ? fread(text, 1, sizeof text - 1, list) : 0;
    text[size] = '\0';
    if (list)
        pclose(list);
    if (!strstr(text, "glibc.malloc."))
        SKIP("glibc's dynamic linker lists no tunables");
    const struct hw_verdict_input input = slow();
    for (int cause = 0; cause < HW_CAUSES; cause++) {
        char tunable[96], *rest = tunable;
        hw_tunable(tunable, sizeof tunable, &input, cause);
        if (!*tunable)
            continue;
        assert_memory_equal(tunable, "GLIBC_TUNABLES=", 15);
        rest += 15;
        for (char *one; (one = strsep(&rest, ":"));) {
            char *value = strchr(one, '=');
            assert_non_null(value);
            *value = '\0';
            assert_non_null(strstr(text, one));
            assert_true(strtoull(value + 1, NULL, 10) > 0);
        }
    }
}

/* However few operations were timed, no percentage is above 100. What is subtracted is said, each by itself. */
static void test_words_of_doubt(void **state)
{
    (void)state;
    static const struct {
        double error;
        const char *said;
        double own, runnable;
    } cases[] = {
        {0.05, ": 20.0 % of 10.0 s, with a standard error of 1.0 %. ", 0, 0},
        {0.6, ": 20.0 % of 10.0 s, a rough estimate, since few operations were timed: at most 44.0 %. ", 0, 0},
        {3, ": 20.0 % of 10.0 s, a rough estimate, since few operations were timed: at most 100 %. ", 0, 0},
        {0, ": 20.0 % of 10.0 s. Heapwise's own 1.00 s are subtracted. How", 1, 0},
        {0, ": 20.0 % of 10.0 s. Time in which other threads had the processor is subtracted: 2.00 s. ", 0, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hw_verdict_input input = slow();
        struct hw_buffer out = {0};
        struct hw_verdict verdict;
        input.error = cases[i].error;
        input.own = cases[i].own;
        input.runnable = cases[i].runnable;
        hw_verdict_make(&verdict, &input);
        hw_verdict_summary(&out, &verdict, &input);
        if (!strstr(hw_buffer_text(&out), cases[i].said))
            fail_msg("\"%s\" has no \"%s\"", hw_buffer_text(&out), cases[i].said);
        hw_buffer_free(&out);
    }
}

TEST_LIST(cmocka_unit_test(test_nothing_observed), cmocka_unit_test(test_shares), cmocka_unit_test(test_agreement),
          cmocka_unit_test(test_slow_operations), cmocka_unit_test(test_no_problem), cmocka_unit_test(test_rate),
          cmocka_unit_test(test_system_calls), cmocka_unit_test(test_doubt), cmocka_unit_test(test_words_of_doubt),
          cmocka_unit_test(test_locks), cmocka_unit_test(test_new_memory), cmocka_unit_test(test_small_pages),
          cmocka_unit_test(test_range_of_gains), cmocka_unit_test(test_memory), cmocka_unit_test(test_lasting),
          cmocka_unit_test(test_lines), cmocka_unit_test(test_another), cmocka_unit_test(test_names_of_glibc))
