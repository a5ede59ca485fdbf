/* test_verdict_numbers.c - since when there were holes in the heap, which is known only where its resident pages were
 * read: from points that are given here, since a run decides itself when it reads them. */
#include "report/view/verdict_numbers.h"
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1024 * 1024)

enum { POINTS = 100, PEAK = 80 }; /* one point in each tenth of a second of ten */

static struct hw_profile_allocator observed;
static struct hw_places_point points[POINTS];
static struct hw_places_moment peak;
static struct hw_profile_places places;
static struct hw_profile profile;
static struct hw_view view;

/* A heap of 40 MiB, of which 20 are holes at its peak; nobody has read its pages in between so far. */
static int set_up(void **state)
{
    memset(points, 0, sizeof points);
    for (int i = 0; i < POINTS; i++)
        points[i] = (struct hw_places_point){.tick = (uint64_t)i * 100000000, .requested_bytes = 20 * MIB};
    peak = (struct hw_places_moment){.tick = (uint64_t)PEAK * 100000000,
                                     .moment = HW_MOMENT_PEAK,
                                     .requested_bytes = 20 * MIB,
                                     .resident_bytes = 40 * MIB};
    places = (struct hw_profile_places){.info = {.peak_bytes = 20 * MIB, .peak_tick = peak.tick},
                                        .points = points,
                                        .point_count = POINTS,
                                        .moments = &peak,
                                        .moment_count = 1};
    observed = (struct hw_profile_allocator){.runs = 1, .ns_per_tick = 1};
    observed.operations = calloc(HW_PHASES * HW_OPERATION_KINDS * HW_SIZE_BUCKETS, sizeof *observed.operations);
    profile = (struct hw_profile){.process = {.clock_ns = 1, .clock_ticks = 1, .threads_most = 1},
                                  .duration_ns = 10000000000,
                                  .allocator = "glibc 2.36",
                                  .observed = &observed,
                                  .places = &places};
    view = (struct hw_view){.profile = &profile};
    return observed.operations == NULL;
}

static int tear_down(void **state)
{
    free(observed.operations);
    return 0;
}

/* At point I the resident pages were read, and HOLES bytes of them were in holes. */
static void read_at(int i, int64_t holes)
{
    points[i].resident_bytes = (uint64_t)(20 * MIB + holes);
    points[i].external_bytes = holes;
}

/* The finding about holes, and its words. */
static struct hw_verdict_finding find(struct hw_advice *words)
{
    struct hw_view_verdict of;
    assert_true(hw_view_verdict(&of, &view));
    for (size_t i = 0; i < of.verdict.finding_count; i++)
        if (of.verdict.findings[i].cause == HW_CAUSE_EXTERNAL) {
            hw_verdict_finding_words(words, &of.verdict.findings[i], &of.input, "");
            return of.verdict.findings[i];
        }
    fail_msg("no finding about holes");
    return (struct hw_verdict_finding){0};
}

/* From SINCE to UNTIL, after LOOKS readings, and SENTENCE says so; NAN: it is not known. */
static void expect(double since, double until, uint64_t looks, const char *sentence)
{
    struct hw_advice words = {0};
    const struct hw_verdict_finding found = find(&words);
    const char *why = hw_buffer_text(&words.why);
    assert_true(isnan(since) ? isnan(found.when.since) : fabs(found.when.since - since) < 1e-6);
    assert_true(isnan(until) ? isnan(found.when.until) : fabs(found.when.until - until) < 1e-6);
    if (!isnan(since))
        assert_int_equal(found.when.looks, looks);
    if (sentence ? !strstr(why, sentence) : strstr(why, "It ") != NULL)
        fail_msg("%s: %s", sentence ? sentence : "nothing", why);
    assert_true(hw_advice_free(&words));
}

static void test_begins(void **state)
{
    for (int i = 0; i < POINTS; i += 5)
        read_at(i, i >= 50 ? 20 * MIB : 1 * MIB);
    expect(5, 9.5, 20, "It lasts from 5.00 s to the end");
}

static void test_lasts(void **state)
{
    for (int i = 0; i < POINTS; i += 5)
        read_at(i, i >= 50 && i <= 85 ? 20 * MIB : 1 * MIB);
    expect(5, 8.5, 20, "It lasts from 5.0");
}

/* Half as much as at the peak is enough. */
static void test_all_the_time(void **state)
{
    for (int i = 0; i < POINTS; i += 10)
        read_at(i, i % 20 ? 11 * MIB : 20 * MIB);
    expect(0, 9, 10, "It lasts the whole run, by 10 readings");
}

static void test_never_read(void **state)
{
    expect(NAN, NAN, 0, NULL);
}

/* A fifth of the run between what was not yet so, and what was, is too much to say since when. */
static void test_read_too_seldom(void **state)
{
    read_at(10, 1 * MIB);
    for (int i = 35; i < POINTS; i += 5)
        read_at(i, 20 * MIB);
    expect(NAN, NAN, 0, NULL);
    read_at(20, 1 * MIB);
    expect(3.5, 9.5, 15, "It lasts from 3.50 s to the end");
}

/* The latest reading before the peak decides. */
static void test_none_at_the_peak(void **state)
{
    for (int i = 0; i < POINTS; i += 5)
        read_at(i, i == 80 ? 1 * MIB : 20 * MIB);
    expect(NAN, NAN, 0, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
TEST_LIST(TEST(test_begins), TEST(test_lasts), TEST(test_all_the_time), TEST(test_never_read),
          TEST(test_read_too_seldom), TEST(test_none_at_the_peak))
