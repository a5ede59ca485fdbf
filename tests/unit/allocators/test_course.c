/* test_course.c - traces made by hand become courses: slots, waits, walks; damaged traces; what is predicted of
 * replays. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "allocators/course.h"
#include "allocators/course_predict.h"
#include "support/check.h"

#define CHUNKS  8
#define RECORDS (CHUNKS * HW_TRACE_CHUNK)

static char trace_path[64], course_path[64];
static struct {
    struct hw_trace_header header;
    struct hw_trace_record records[RECORDS];
} trace;
static struct {
    struct hw_course_header header;
    struct hw_course_event events[RECORDS * 2];
} course;
static size_t next_record[CHUNKS];

static int set_up(void **state)
{
    strcpy(trace_path, "/tmp/heapwise-trace-XXXXXX");
    strcpy(course_path, "/tmp/heapwise-course-XXXXXX");
    const int one = mkstemp(trace_path), other = mkstemp(course_path);
    memset(&trace, 0, sizeof trace);
    memset(&course, 0, sizeof course);
    memset(next_record, 0, sizeof next_record);
    trace.header.magic = HW_TRACE_MAGIC;
    return one < 0 || other < 0 || close(one) || close(other);
}

static int tear_down(void **state)
{
    unlink(trace_path);
    unlink(course_path);
    return 0;
}

/* A record of THREAD, whose chunk is the one of its number. */
static void add(unsigned thread, enum hw_course_kind kind, uint64_t tick, uint64_t address, uint64_t size,
                uint64_t before)
{
    trace.records[thread * HW_TRACE_CHUNK].size = thread;
    if (trace.header.threads <= thread) {
        trace.header.threads = thread + 1;
        trace.header.taken = (thread + 1) * HW_TRACE_CHUNK;
    }
    trace.records[thread * HW_TRACE_CHUNK + ++next_record[thread]] =
        (struct hw_trace_record){tick, (uint64_t)kind << 56 | address, size, before};
}

static bool make_of(size_t bytes, uint64_t live_most, struct hw_course *made)
{
    struct hw_error error = {""};
    const int file = open(trace_path, O_WRONLY | O_TRUNC);
    assert_int_equal(write(file, &trace, bytes), bytes);
    close(file);
    const bool fine = hw_course_make(trace_path, course_path, live_most, made, &error);
    assert_true(fine || error.message[0]);
    return fine;
}

static struct hw_course make(uint64_t live_most)
{
    struct hw_course made;
    assert_true(make_of(sizeof trace, live_most, &made));
    const int file = open(course_path, O_RDONLY);
    assert_true(read(file, &course, sizeof course) >= (ssize_t)sizeof course.header);
    close(file);
    assert_int_equal(course.header.magic, HW_COURSE_MAGIC);
    return made;
}

static void check_event(unsigned worker, size_t index, enum hw_course_kind kind, uint32_t slot, uint64_t size)
{
    assert_true(index < course.header.count[worker]);
    const struct hw_course_event *event = &course.events[course.header.first[worker] + index];
    if (event->kind != kind || event->slot != slot || event->size != size)
        fail_msg("event %zu of %u: kind %u, slot %u, size %llu", index, worker, event->kind, event->slot,
                 (unsigned long long)event->size);
}

static void test_blocks_become_slots(void **state)
{
    add(0, HW_COURSE_MALLOC, 10, 0x1000, 100, 0);
    add(0, HW_COURSE_CALLOC, 20, 0x2000, 200, 0);
    add(0, HW_COURSE_FREE, 30, 0x1000, 0, 0);
    add(0, HW_COURSE_FREE, 35, 0x7000, 0, 0); /* from before the trace */
    add(0, HW_COURSE_ALIGNED, 40, 0x1000, 300, 4096);
    add(0, HW_COURSE_REALLOC, 50, 0x3000, 500, 0x2000);
    add(0, HW_COURSE_REALLOC, 60, 0x4000, 600, 0x8000); /* of an unknown block */
    add(0, HW_COURSE_FREE, 70, 0x3000, 0, 0);
    trace.header.operations = 14;
    const struct hw_course made = make(1 << 20);
    assert_int_equal(made.operations, 7);
    assert_int_equal(made.missing, 14);
    assert_int_equal(made.workers, 1);
    assert_int_equal(course.header.count[0], 7);
    check_event(0, 0, HW_COURSE_MALLOC, 0, 100);
    check_event(0, 1, HW_COURSE_CALLOC, 1, 200);
    check_event(0, 2, HW_COURSE_FREE, 0, 100);
    check_event(0, 3, HW_COURSE_ALIGNED, 0, 300);
    assert_int_equal(course.events[3].align, 12);
    check_event(0, 4, HW_COURSE_REALLOC, 1, 500);
    check_event(0, 5, HW_COURSE_MALLOC, 2, 600);
    check_event(0, 6, HW_COURSE_FREE, 1, 500);
}

/* How much of a block was touched belongs to its allocation, or to what moved it last, and to its free. */
static void test_touched_pages(void **state)
{
    add(0, HW_COURSE_MALLOC, 10, 0x100000, 50000, 0);
    add(0, HW_COURSE_MALLOC, 20, 0x200000, 60000, 0);
    add(0, HW_COURSE_TOUCHED, 30, 0x100000, 2, 0);
    add(0, HW_COURSE_REALLOC, 40, 0x300000, 90000, 0x100000);
    add(0, HW_COURSE_TOUCHED, 50, 0x300000, 7, 0);
    add(0, HW_COURSE_FREE, 60, 0x300000, 0, 0);
    add(0, HW_COURSE_TOUCHED, 70, 0x200000, 100000, 0); /* at the end */
    add(0, HW_COURSE_TOUCHED, 80, 0x300000, 5, 0);      /* not live */
    assert_int_equal(make(1 << 20).operations, 4);
    assert_int_equal(course.header.count[0], 4);
    assert_int_equal(course.events[0].touched, 2);
    assert_int_equal(course.events[1].touched, HW_COURSE_PAGES);
    check_event(0, 2, HW_COURSE_REALLOC, 0, 90000);
    assert_int_equal(course.events[2].touched, 7);
    check_event(0, 3, HW_COURSE_FREE, 0, 90000);
    assert_int_equal(course.events[3].touched, 7);
}

static void test_it_ends_before_too_much_is_live(void **state)
{
    for (unsigned i = 0; i < 10; i++)
        add(0, HW_COURSE_MALLOC, 10 + i, 0x1000 * (i + 1), 100, 0);
    assert_int_equal(make(750).operations, 7);
}

/* The second thread begins when the first has come to where it was, waits for the blocks of others that it frees, and
 * is waited for. */
static void test_threads_wait_for_each_other(void **state)
{
    add(0, HW_COURSE_MALLOC, 10, 0x1000, 100, 0);
    add(0, HW_COURSE_MALLOC, 20, 0x2000, 100, 0);
    add(1, HW_COURSE_MALLOC, 30, 0x3000, 100, 0);
    add(1, HW_COURSE_FREE, 40, 0x1000, 0, 0);
    add(0, HW_COURSE_FREE, 50, 0x3000, 0, 0);
    assert_int_equal(make(1 << 20).workers, 2);
    assert_int_equal(course.header.joins, 1);
    check_event(0, 0, HW_COURSE_MALLOC, 0, 100);
    check_event(0, 1, HW_COURSE_MALLOC, 1, 100);
    check_event(0, 2, HW_COURSE_WAIT, 1, 4); /* the whole of it */
    check_event(0, 3, HW_COURSE_WAIT, 1, 2); /* the block */
    check_event(0, 4, HW_COURSE_FREE, 2, 100);
    check_event(1, 0, HW_COURSE_WAIT, 0, 2);
    check_event(1, 1, HW_COURSE_MALLOC, 2, 100);
    check_event(1, 2, HW_COURSE_WAIT, 0, 1);
    check_event(1, 3, HW_COURSE_FREE, 0, 100);
}

/* A thread takes the worker of one that has ended; threads that live at once have workers of their own. */
static void test_workers(void **state)
{
    add(0, HW_COURSE_MALLOC, 10, 0x1000, 100, 0);
    add(1, HW_COURSE_MALLOC, 20, 0x2000, 100, 0);
    add(1, HW_COURSE_FREE, 30, 0x2000, 0, 0);
    add(2, HW_COURSE_MALLOC, 40, 0x3000, 100, 0);
    add(3, HW_COURSE_MALLOC, 50, 0x4000, 100, 0);
    add(2, HW_COURSE_FREE, 60, 0x3000, 0, 0);
    assert_int_equal(make(1 << 20).workers, 3);
    assert_int_equal(course.header.joins, 0);
    check_event(1, 3, HW_COURSE_WAIT, 0, 1);
    check_event(1, 4, HW_COURSE_MALLOC, 1, 100); /* the slot is its own again */
    check_event(2, 1, HW_COURSE_MALLOC, 2, 100);
}

static void test_walks(void **state)
{
    for (unsigned i = 0; i < 1100; i++) {
        const unsigned thread = i / 250; /* a chunk's records; all of the first thread */
        add(thread, HW_COURSE_MALLOC, 10 + i, 0x1000 + 0x100 * (uint64_t)i, i == 3 ? 0 : 16, 0);
    }
    for (unsigned i = 0; i < 5; i++)
        trace.records[i * HW_TRACE_CHUNK].size = 0;
    trace.header.threads = 1;
    make(1 << 20);
    assert_int_equal(course.header.count[0], 1100); /* 511 blocks are too few */
    const uint64_t before = course.header.walked;
    assert_int_equal(before, 0);
    add(5, HW_COURSE_FREE, 5000, 0x1000, 0, 0);
    for (unsigned i = 1; i < 240; i++)
        add(5, HW_COURSE_MALLOC, 5000 + i, 0x100000 + 0x100 * (uint64_t)i, 16, 0);
    for (unsigned i = 0; i < 240; i++)
        add(6, HW_COURSE_MALLOC, 6000 + i, 0x200000 + 0x100 * (uint64_t)i, 16, 0);
    trace.records[5 * HW_TRACE_CHUNK].size = 0;
    trace.records[6 * HW_TRACE_CHUNK].size = 0;
    trace.header.threads = 1;
    make(1 << 20);
    assert_int_equal(course.header.count[0], 1100 + 480 + 1);
    /* 511 of the first 512 blocks had bytes, too few for a walk; when there are 512 + 2 * 511, one is free. */
    assert_int_equal(course.header.walked, 1534 - 1);
}

static void test_damaged_traces(void **state)
{
    struct hw_course made;
    assert_false(make_of(0, 1 << 20, &made));
    assert_false(make_of(sizeof trace.header, 1 << 20, &made));
    assert_false(make_of(sizeof trace, 1 << 20, &made)); /* nothing in it */
    uint64_t random = 1;
    for (int round = 0; round < 300; round++) { /* anything may be in it: it is read, or refused */
        uint64_t *words = (uint64_t *)&trace;
        for (size_t i = 0; i < sizeof trace / sizeof *words; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            words[i] = random >> (random % 64);
        }
        trace.header = (struct hw_trace_header){HW_TRACE_MAGIC, random % (2 * RECORDS), random % 3, 1 + random % 4};
        for (size_t i = 0; i < RECORDS; i++) {
            trace.records[i].what = (random * i % 9) << 56 | (trace.records[i].what & 0xff0);
            if (i % HW_TRACE_CHUNK == 0)
                trace.records[i].size = (random >> (i % 50)) % 5;
        }
        make_of(round % 2 ? sizeof trace : random % sizeof trace, UINT64_MAX >> (random % 60), &made);
    }
    trace.header.magic++;
    assert_false(make_of(sizeof trace, 1 << 20, &made));
}

static void near(double expected, double found)
{
    if (!(fabs(expected - found) <= 1e-9 * fabs(expected) + 1e-12))
        fail_msg("%.12g instead of %.12g", found, expected);
}

static void test_costs_are_read(void **state)
{
    struct hw_course_cost cost;
    assert_true(hw_course_parse("course 10 9 2000000000 500000000 7 1 3000000\n", &cost));
    near(2, cost.critical_s);
    near(0.5, cost.walk_s);
    near(0.003, cost.start_s);
    assert_false(hw_course_parse("course 10 9 2000000000 500000000 7 1\n", &cost));
    assert_false(hw_course_parse("course 10 9 -1 5 7 1 1\n", &cost));
    assert_false(hw_course_parse("course 10 9 1 5 7 1 -1\n", &cost));
    assert_false(hw_course_parse("", &cost));
}

static struct hw_candidate runs_of(size_t rounds, const double *cpu_s, double waiting_s)
{
    struct hw_candidate runs = {.rounds = rounds};
    for (size_t i = 0; i < rounds; i++) {
        runs.cpu_s[i] = cpu_s[i];
        runs.wall_s[i] = cpu_s[i] + waiting_s;
    }
    return runs;
}

static void test_prediction(void **state)
{
    const double cpu[] = {10, 20, 30};
    struct hw_candidate runs = runs_of(3, cpu, 0);
    const struct hw_course_replays now = {3, {{3, 1, 0.1}, {6, 2, 0.2}, {9, 3, 0.3}}},
                                   then = {3, {{2.5, 0.75, 0.2}, {5, 1.5, 0.4}, {8, 3, 0.2}}}, none = {0};
    struct hw_course_present present = {&runs, &now, 2, true};
    const struct hw_course_weight weight = {2, 0, 4, true};
    /* 2 * (0.5 + 2 * 0.25) less and 0.1 more, of 10; the same of 20; 2 * 1 less and 0.1 less, of 30 */
    struct hw_speedup speedup = hw_course_predict(&present, &then, &weight);
    near(1 / (1 - 0.19), speedup.value);
    /* with a weight of 4 the course would take 14 of 10, and 42 of 30: it counts for as much less */
    near(1 / (1 - (30 / 42.0 * 2 + 0.1) / 30), speedup.low);
    near(1 / (1 - (10 / 14.0 * 2 * (0.5 + 4 * 0.25) - 0.1) / 10), speedup.high);
    runs.wall_s[1] = 29; /* the program waits in all rounds, the machine lets it wait in some */
    runs.wall_s[0] = 15;
    runs.wall_s[2] = 34;
    near(14, hw_course_time(&present, 0));
    near(24, hw_course_time(&present, 3));
    runs.runnable_s[2] = 3; /* of the 4 s in which it did not run it waited for a processor */
    near(11, hw_course_time(&present, 0));
    present.one_thread = false; /* of threads operations count as often as the weight says, walks do not */
    runs.wall_s[1] = 12;        /* the most that they had at once: 20 s by 12 */
    near(20 * 12 / 20.0, hw_course_time(&present, 0));
    near(1 / (1 + (0.1 - 2 * 2 * 0.5) / 12),
         hw_course_predict(&present, &(struct hw_course_replays){1, {then.of[0]}}, &weight).value);
    near(0, hw_course_predict(&present, &none, &weight).value);
    runs.rounds = 0;
    near(0, hw_course_predict(&present, &then, &weight).value);
    const double short_runs[] = {0.1};
    runs = runs_of(1, short_runs, 0);
    near(1 / 0.02, hw_course_predict(&present, &then, &weight).high); /* less than nothing is left */
}

/* The course takes 2 s, of a program that takes 1: it touches more than that. What is predicted is no bound with a
 * range of nothing around it. */
static void test_bounded_prediction(void **state)
{
    (void)state;
    const double cpu[] = {1, 1, 1};
    const struct hw_candidate runs = runs_of(3, cpu, 0);
    const struct hw_course_cost one = {2, 0, 0}, other = {0.1, 0, 0}, nothing = {0.001, 0, 0};
    const struct hw_course_replays now = {3, {one, one, one}}, then = {3, {other, other, other}},
                                   least = {3, {nothing, nothing, nothing}};
    const struct hw_course_present present = {&runs, &now, 1, true};
    const struct hw_course_weight weight = {2, 0, 4, true};
    struct hw_speedup speedup = hw_course_predict(&present, &then, &weight);
    near(20, speedup.value);
    near(sqrt(20), speedup.low);
    near(pow(20, 1.5), speedup.high);
    speedup = hw_course_predict(&present, &least, &weight);
    near(50, speedup.value);
    near(sqrt(50), speedup.low);
    assert_true(speedup.high > 50);
}

/* What is found counts against 2 +- 3 by the square of its error, which is 1 % of the time, and more where rounds
 * differ. */
static void test_weight_of_walks(void **state)
{
    const double cpu[] = {10, 10, 10, 10}, packed_cpu[] = {6, 6, 6, 6}, uneven[] = {3, 6, 6, 9};
    struct hw_candidate runs = runs_of(4, cpu, 0.5), packed = runs_of(4, packed_cpu, 0.5);
    const struct hw_course_cost one = {3, 1, 0.5}, other = {2.5, 0.75, 0.5};
    const struct hw_course_replays now = {4, {one, one, one, one}}, then = {4, {other, other, other, other}};
    const struct hw_course_present present = {&runs, &now, 2, true};
    struct hw_course_weight weight = hw_course_weigh(&present, &packed, &then);
    double error = 0.01 * 10.5 / 0.5; /* 3 s are not explained; a walk takes 0.5 s less */
    near(2 + 4 * 9 / (9 + error * error), weight.value);
    near(weight.value + 1.645 / sqrt(1 / 9.0 + 1 / (error * error)), weight.high);
    near(2 * weight.value - weight.high, weight.low);
    assert_true(weight.measured);
    packed = runs_of(4, uneven, 0.5);
    error = hypot(0.01 * 10.5, sqrt(18.0 / 3 / 4)) / 0.5;
    weight = hw_course_weigh(&present, &packed, &then);
    near(2 + 4 * 9 / (9 + error * error), weight.value);
    near(weight.value - 1.645 / sqrt(1 / 9.0 + 1 / (error * error)), weight.low);
    const double slower[] = {99, 99, 99, 99}, faster[] = {1, 1, 1, 1};
    packed = runs_of(4, slower, 0.5);
    near(0, hw_course_weigh(&present, &packed, &then).value);
    packed = runs_of(4, faster, 0.5);
    assert_true(hw_course_weigh(&present, &packed, &then).high <= HW_COURSE_WALKS_MOST);
}

static void test_weight_by_the_rule(void **state)
{
    const double cpu[] = {10, 10, 10}, packed_cpu[] = {6, 6, 6};
    struct hw_candidate runs = runs_of(3, cpu, 0), packed = runs_of(3, packed_cpu, 0);
    const struct hw_course_cost one = {3, 1, 0}, other = {2.5, 0.75, 0};
    const struct hw_course_replays now = {3, {one, one, one}}, then = {3, {other, other, other}};
    struct hw_course_present present = {&runs, &now, 1, true};
    assert_true(hw_course_weigh(&present, &packed, &then).measured);
    near(2, hw_course_weigh(&present, &packed, &now).value); /* packing changes nothing in the course */
    packed.failed = true;
    const struct hw_course_weight rule = hw_course_weigh(&present, &packed, &then);
    assert_false(rule.measured);
    near(2, rule.value);
    near(0, rule.low);
    near(2 + 1.645 * 3, rule.high);
    packed.failed = false;
    packed.rounds = 2;
    assert_false(hw_course_weigh(&present, &packed, &then).measured);
    packed.rounds = 3;
    runs.rounds = 0;
    assert_false(hw_course_weigh(&present, &packed, &then).measured);
}

/* Of a course of threads operations are weighed, by processors: 5 s less here, by 4 s that the course takes less. */
static void test_weight_of_operations(void **state)
{
    const double cpu[] = {10, 10, 10}, packed_cpu[] = {5, 5, 5};
    struct hw_candidate runs = runs_of(3, cpu, 0), packed = runs_of(3, packed_cpu, 0);
    const struct hw_course_cost one = {6, 1, 0}, other = {2, 9, 0};
    const struct hw_course_replays now = {3, {one, one, one}}, then = {3, {other, other, other}};
    const struct hw_course_present present = {&runs, &now, 1, false};
    struct hw_course_weight weight = hw_course_weigh(&present, &packed, &then);
    const double error = 0.01 * 10 / 4;
    near(1 + 0.25 / (1 + error * error), weight.value);
    packed.failed = true;
    near(1, hw_course_weigh(&present, &packed, &then).value);
}

#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

TEST_LIST(WITH_FILES(test_blocks_become_slots), WITH_FILES(test_touched_pages),
          WITH_FILES(test_it_ends_before_too_much_is_live), WITH_FILES(test_threads_wait_for_each_other),
          WITH_FILES(test_workers), WITH_FILES(test_walks), WITH_FILES(test_damaged_traces),
          cmocka_unit_test(test_costs_are_read), cmocka_unit_test(test_prediction),
          cmocka_unit_test(test_bounded_prediction), cmocka_unit_test(test_weight_of_walks),
          cmocka_unit_test(test_weight_by_the_rule), cmocka_unit_test(test_weight_of_operations))
