/* test_allocators.c - facts as text, what measured runs say, and what is predicted: against numbers worked out by hand.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "allocators/compare.h"
#include "allocators/facts.h"
#include "allocators/mix.h"
#include "allocators/predict.h"
#include "support/check.h"

static void near(double expected, double found)
{
    if (!(fabs(expected - found) <= 1e-9 * fabs(expected) + 1e-12))
        fail_msg("%.12g instead of %.12g", found, expected);
}

/* ---- facts ---- */

static void test_facts_are_read(void **state)
{
    static const char text[] = "# a comment\n"
                               "name = mine\n"
                               "  version=1.2 beta  \r\n"
                               "style = bibop\n"
                               "classes = 8 16  4096\n"
                               "medium = 1033\n"
                               "large = unknown (never seen)\n"
                               "reuse = fifo\n"
                               "thread_cache = owning\n"
                               "large_by = brk\n"
                               "of_the_future = yes\n";
    struct hw_facts facts;
    struct hw_error error = {""};
    assert_true(hw_facts_parse(&facts, text, "here", &error));
    assert_string_equal(facts.name, "mine");
    assert_string_equal(facts.version, "1.2 beta");
    assert_int_equal(facts.style, HW_STYLE_BIBOP);
    assert_int_equal(facts.class_count, 3);
    assert_int_equal(facts.classes[2], 4096);
    assert_int_equal(facts.medium, 1033);
    assert_int_equal(facts.large, 0);
    assert_string_equal(facts.why, "large: never seen");
    assert_int_equal(facts.reuse, HW_REUSE_FIFO);
    assert_int_equal(facts.thread_cache, HW_CACHE_OWNING);
    assert_true(facts.large_by_brk);
}

static void test_wrong_facts_are_refused(void **state)
{
    static const struct {
        const char *text, *said;
    } wrong[] = {
        {"", "no line gives the name"},
        {"style = bibop\n", "no line gives the name"},
        {"name = a\nmedium = many\n", "here, line 2"},
        {"name = a\nmedium = -1\n", "not a number"},
        {"name = a\nmedium = 99999999999999999999999\n", "not a number"},
        {"name = a\nmedium = 12 bytes\n", "not a number"},
        {"name = a\nstyle = gothic\n", "none of the known words"},
        {"name = a\nclasses = 16 8\n", "ascending"},
        {"name = a\nclasses = 16, 32\n", "not a list"},
        {"name = a\nlarge_returned = maybe\n", "neither yes nor no"},
        {"name = a\nlarge_by = magic\n", "neither mmap nor brk"},
        {"name a\n", "key = value"},
        {"name = \x01\n", "control characters"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct hw_facts facts;
        struct hw_error error = {""};
        assert_false(hw_facts_parse(&facts, wrong[i].text, "here", &error));
        if (!strstr(error.message, wrong[i].said))
            fail_msg("\"%s\" lacks \"%s\"", error.message, wrong[i].said);
    }
}

static void test_too_many_classes(void **state)
{
    char *text = malloc(HW_FACTS_TEXT_MOST + 64), *at = text + sprintf(text, "name = a\nclasses =");
    for (int i = 1; i <= HW_FACTS_CLASSES_MOST + 1; i++)
        at += sprintf(at, " %d", i);
    struct hw_facts facts;
    struct hw_error error = {""};
    assert_false(hw_facts_parse(&facts, text, "here", &error));
    memset(text, '#', HW_FACTS_TEXT_MOST + 1);
    text[HW_FACTS_TEXT_MOST + 1] = '\0';
    assert_false(hw_facts_parse(&facts, text, "here", &error));
    assert_non_null(strstr(error.message, "too long"));
    free(text);
    assert_false(hw_facts_read(&facts, "/nowhere/at/all", &error));
    assert_false(hw_facts_read(&facts, "/tmp", &error));
}

/* ---- measured runs ---- */

static struct hw_candidate candidate(size_t rounds, const double *wall_s, uint64_t rss)
{
    struct hw_candidate one = {.rounds = rounds};
    for (size_t i = 0; i < rounds; i++) {
        one.wall_s[i] = wall_s[i];
        one.rss_bytes[i] = rss;
        one.faults[i] = (double)i;
    }
    return one;
}

static void test_runs_are_compared_round_by_round(void **state)
{
    /* The machine was half as fast in the second round: each ratio is the same all the same. */
    static const double slow[] = {1.0, 2.0, 1.1, 1.2, 1.0}, fast[] = {0.5, 1.0, 0.55, 0.6, 0.5};
    struct hw_candidate of[2] = {candidate(5, slow, 100), candidate(5, fast, 150)};
    hw_compare(of, 2, 0);
    near(1.1, of[0].time_s);
    near(0.55, of[1].time_s);
    near(1, of[0].measured.value);
    near(2, of[1].measured.value);
    near(2, of[1].measured.low);
    near(2, of[1].measured.high);
    near(2, of[1].page_faults);
    const struct hw_choice choice = hw_choose(of, 2, 0);
    assert_int_equal(choice.reason, HW_CHOICE_FASTER);
    assert_int_equal(choice.index, 1);
    near(1.5, choice.memory);
    assert_int_equal(choice.least_memory, 0);
}

static void test_noise_is_no_difference(void **state)
{
    static const double one[] = {1.0, 1.1, 1.0, 1.2, 1.0}, other[] = {0.9, 1.2, 0.8, 1.1, 0.9};
    struct hw_candidate of[2] = {candidate(5, one, 0), candidate(5, other, 0)};
    hw_compare(of, 2, 0);
    assert_true(of[1].measured.value > 1.05 && of[1].measured.low < 1);
    assert_int_equal(hw_choose(of, 2, 0).reason, HW_CHOICE_KEEP);
    assert_int_equal(hw_choose(of, 2, 0).least_memory, 2); /* not known */
}

/* Of nine ratios the least and the greatest can be left out: 1 - 2 * 10 / 512 is above 0.9, one more is not. */
static void test_outliers_of_many_rounds(void **state)
{
    static const double one[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const double other[] = {0.5, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 10};
    struct hw_candidate of[2] = {candidate(9, one, 0), candidate(9, other, 0)};
    hw_compare(of, 2, 0);
    near(1.25, of[1].measured.low);
    near(1.25, of[1].measured.high);
    of[0].rounds = of[1].rounds = 4; /* of four none can */
    hw_compare(of, 2, 0);
    near(2, of[1].measured.high);
}

static void test_short_and_failed_runs(void **state)
{
    static const double one[] = {0.01, 0.01, 0.01}, other[] = {0.005, 0.005, 0.005}, longer[] = {1, 1, 1};
    struct hw_candidate of[2] = {candidate(3, one, 0), candidate(3, other, 0)};
    hw_compare(of, 2, 0);
    assert_int_equal(hw_choose(of, 2, 0).reason, HW_CHOICE_TOO_SHORT);
    of[0] = candidate(3, longer, 0);
    of[1].failed = true;
    hw_compare(of, 2, 0);
    assert_int_equal(hw_choose(of, 2, 0).reason, HW_CHOICE_KEEP);
    of[1] = (struct hw_candidate){.rounds = 0};
    hw_compare(of, 2, 0);
    assert_int_equal(hw_choose(of, 2, 0).reason, HW_CHOICE_KEEP);
}

/* ---- the mix ---- */

static void test_mix_is_read_as_it_was_written(void **state)
{
    static struct hw_mix mix, again;
    static char text[1 << 20];
    mix = (struct hw_mix){.seed = 7, .threads = 3, .live_most = 1 << 30, .limit = 1000, .fresh = 250};
    mix.of[4].count[HW_MIX_SERIAL][HW_MIX_MALLOC] = 10;
    mix.of[4].lives[0] = 3;
    mix.of[4].lives[47] = 4;
    mix.of[4].crossed = 1;
    mix.of[190].count[HW_MIX_PARALLEL][HW_MIX_ALIGNED] = UINT64_MAX;
    mix.of[190].kept = 5;
    assert_true(hw_mix_print(&mix, text, sizeof text) > 0);
    assert_true(hw_mix_parse(&again, text));
    assert_memory_equal(&mix, &again, sizeof mix);
    assert_int_equal(hw_mix_allocations(&mix, HW_MIX_SERIAL), 10);
    assert_int_equal(hw_mix_print(&mix, text, 50), 0);
}

static void test_wrong_mixes_are_refused(void **state)
{
    static const char *const wrong[] = {"",
                                        "mix 1\n",
                                        "mix 2\nthreads 1\nend\n",
                                        "mix 1\nend\n",
                                        "mix 1\nthreads 1\ncount 192 0 1 1 1 1\nend\n",
                                        "mix 1\nthreads 1\ncount 1 2 1 1 1 1\nend\n",
                                        "mix 1\nthreads 1\ncount 1 1 1\nend\n",
                                        "mix 1\nthreads 1\nlives 1 1\nend\n",
                                        "mix 1\nthreads one\nend\n",
                                        "nonsense 1\nthreads 1\nend\n"};
    static struct hw_mix mix;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(hw_mix_parse(&mix, wrong[i]));
}

/* ---- predictions ---- */

enum { SIZE = 4 };

/* A replay in which nothing overlaps: what is timed adds up to what all takes. */
static void set_replay(struct hw_replay *replay, int phase, double allocate, double release, double touch)
{
    memset(replay, 0, sizeof *replay);
    replay->measured[phase] = true;
    replay->operations[phase][HW_MIX_MALLOC][SIZE] = (struct hw_cost){1000, 1000 * allocate};
    replay->operations[phase][HW_MIX_FREE][SIZE] = (struct hw_cost){1000, 1000 * release};
    replay->touches[phase][SIZE] = (struct hw_cost){2000, 2000 * touch};
    replay->ticks_per_allocation[phase] = allocate + release + 2 * touch;
}

static struct hw_stage_thread thread_of(double wall, double count, double allocate, double release)
{
    struct hw_stage_thread thread = {.wall = wall};
    thread.kinds[HW_MIX_MALLOC] = (struct hw_cost){count, count * allocate};
    thread.kinds[HW_MIX_FREE] = (struct hw_cost){count, count * release};
    return thread;
}

static void set_program(struct hw_program *program, const struct hw_stage *stages, size_t count)
{
    memset(program, 0, sizeof *program);
    program->stages = stages;
    program->stage_count = count;
    for (int phase = 0; phase < HW_MIX_PHASES; phase++) {
        program->phases[phase].operations[HW_MIX_MALLOC][SIZE] = (struct hw_cost){1000, 1000 * 100};
        program->phases[phase].operations[HW_MIX_FREE][SIZE] = (struct hw_cost){1000, 1000 * 40};
    }
}

static struct hw_program program;
static struct hw_replay present, other;

/* 1,000,000 ticks, in them 1000 times malloc (100) and free (40). The other's malloc takes half of the present one's in
 * the replay, free three times: 1,000,000 - 140,000 + 50,000 + 120,000; touching 10 more each, twice a block. */
static void test_serial_stage(void **state)
{
    const struct hw_stage_thread thread = thread_of(1e6, 1000, 100, 40);
    const struct hw_stage stage = {HW_MIX_SERIAL, &thread, 1};
    set_program(&program, &stage, 1);
    set_replay(&present, HW_MIX_SERIAL, 60, 20, 5);
    set_replay(&other, HW_MIX_SERIAL, 30, 60, 5);
    near(1e6, hw_program_time(&program));
    near(30000, hw_program_difference(&program, &present, &other));
    set_replay(&other, HW_MIX_SERIAL, 30, 60, 15);
    near(50000, hw_program_difference(&program, &present, &other));
    near(0, hw_program_difference(&program, &present, &present));
}

/* Two threads: the first one is slower now (1,000,000 against 900,000), but it hardly allocates. With an allocator ten
 * times as slow the other one is: 900,000 + 9 * 140 * 1000. */
static void test_parallel_stage_is_its_slowest_thread(void **state)
{
    const struct hw_stage_thread threads[] = {thread_of(1e6, 100, 100, 40), thread_of(9e5, 1000, 100, 40)};
    const struct hw_stage stages[] = {{HW_MIX_PARALLEL, threads, 2}, {HW_MIX_SERIAL, threads, 1}};
    set_program(&program, stages, 1);
    set_replay(&present, HW_MIX_PARALLEL, 50, 20, 5);
    set_replay(&other, HW_MIX_PARALLEL, 500, 200, 5);
    near(1e6, hw_program_time(&program));
    near(9e5 + 9 * 140 * 1000 - 1e6, hw_program_difference(&program, &present, &other));
    program.stage_count = 2; /* of serial stages nothing was replayed: they stay */
    near(2e6, hw_program_time(&program));
    near(9e5 + 9 * 140 * 1000 - 1e6, hw_program_difference(&program, &present, &other));
}

static void test_waiting_threads_do_not_count(void **state)
{
    const struct hw_stage_thread threads[] = {thread_of(1e6, 1, 100, 40), thread_of(9e5, 1000, 100, 40)};
    const struct hw_stage stage = {HW_MIX_PARALLEL, threads, 2};
    set_program(&program, &stage, 1);
    set_replay(&present, HW_MIX_PARALLEL, 50, 20, 5);
    set_replay(&other, HW_MIX_PARALLEL, 25, 10, 5);
    near(9e5, hw_program_time(&program));
    near(-70000, hw_program_difference(&program, &present, &other));
}

/* Where a fifth of what is timed is hidden behind other work, so much less of the difference is left; but of a
 * program's own operations three fifths count in any case. */
static void test_overlap(void **state)
{
    const struct hw_stage_thread thread = thread_of(1e6, 1000, 100, 40);
    const struct hw_stage stage = {HW_MIX_SERIAL, &thread, 1};
    set_program(&program, &stage, 1);
    set_replay(&present, HW_MIX_SERIAL, 60, 20, 5);
    set_replay(&other, HW_MIX_SERIAL, 30, 60, 5);
    present.ticks_per_allocation[HW_MIX_SERIAL] *= 0.8;
    other.ticks_per_allocation[HW_MIX_SERIAL] *= 0.8;
    near(24000, hw_program_difference(&program, &present, &other));
    present.ticks_per_allocation[HW_MIX_SERIAL] *= 0.1;
    other.ticks_per_allocation[HW_MIX_SERIAL] *= 0.1;
    near(18000, hw_program_difference(&program, &present, &other));
}

/* A size that was not replayed takes its ratio from its neighbours, a kind that was not stays as it is. */
static void test_what_was_not_replayed(void **state)
{
    struct hw_stage_thread thread = thread_of(1e6, 1000, 100, 0);
    const struct hw_stage stage = {HW_MIX_SERIAL, &thread, 1};
    set_program(&program, &stage, 1);
    set_replay(&present, HW_MIX_SERIAL, 60, 20, 0);
    set_replay(&other, HW_MIX_SERIAL, 30, 20, 0);
    memset(program.phases[0].operations, 0, sizeof program.phases[0].operations);
    program.phases[0].operations[HW_MIX_MALLOC][100] = (struct hw_cost){1000, 1e5};
    near(-50000, hw_program_difference(&program, &present, &other));
    memset(program.phases[0].operations, 0, sizeof program.phases[0].operations);
    program.phases[0].operations[HW_MIX_CALLOC][SIZE] = (struct hw_cost){1000, 1e5};
    memset(thread.kinds, 0, sizeof thread.kinds);
    thread.kinds[HW_MIX_CALLOC] = (struct hw_cost){1000, 1e5};
    near(0, hw_program_difference(&program, &present, &other));
}

static void test_interval(void **state)
{
    static struct hw_replays now, then;
    const struct hw_stage_thread thread = thread_of(1e6, 1000, 100, 100);
    const struct hw_stage stage = {HW_MIX_SERIAL, &thread, 1};
    set_program(&program, &stage, 1);
    program.phases[0].operations[HW_MIX_FREE][SIZE].ticks = 1e5;
    now.count = then.count = 3;
    static const double costs[] = {50, 25, 75};
    for (size_t i = 0; i < 3; i++) {
        set_replay(&now.of[i], HW_MIX_SERIAL, 100, 100, 0);
        set_replay(&then.of[i], HW_MIX_SERIAL, costs[i], costs[i], 0);
    }
    struct hw_speedup speedup = hw_predict(&program, 0, &now, &then);
    /* A fifth of the time is operations: what nobody knows of the rest may be 1.2 times that against, twice that for
     * it. */
    near(1 / 0.9, speedup.value);
    near(1 / 0.95 * exp(-0.02 - 1.2 * 0.2), speedup.low);
    near(1 / 0.85 * exp(0.02 + 2 * 0.2), speedup.high);
    program.own_error = 0.1;
    speedup = hw_predict(&program, 0, &now, &then);
    near((1 / 0.95 - (1 / 0.9 - 1) * 0.1) * exp(-0.02 - 1.2 * 0.2), speedup.low);
    /* Without counting the program takes half the time: the same difference weighs twice. */
    program.own_error = 0;
    near(1 / 0.8, hw_predict(&program, 5e5, &now, &then).value);
    then.count = 0;
    near(0, hw_predict(&program, 0, &now, &then).value);
}

static void test_replays_are_read(void **state)
{
    struct hw_error error = {""};
    memset(&present, 0, sizeof present);
    assert_true(hw_replay_parse(
        &present, "op 0 malloc 4 10 1000\nop 1 free 191 1 2\ntouch 0 4 20 40\nphase 0 10 99 500\n", 0.5, &error));
    near(1000, present.operations[0][HW_MIX_MALLOC][4].ticks);
    near(2, present.operations[1][HW_MIX_FREE][191].ticks);
    near(20, present.touches[0][4].count);
    near(100, present.ticks_per_allocation[0]);
    assert_true(present.measured[0] && !present.measured[1]);
    static const char *const wrong[] = {"op 2 malloc 4 1 1\n", "op 0 malloc 192 1 1\n", "op 0 mallow 4 1 1\n",
                                        "phase 2 1 1 1\n",     "touch 0 192 1 1\n",     "?\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(hw_replay_parse(&present, wrong[i], 1, &error));
}

TEST_LIST(cmocka_unit_test(test_facts_are_read), cmocka_unit_test(test_wrong_facts_are_refused),
          cmocka_unit_test(test_too_many_classes), cmocka_unit_test(test_runs_are_compared_round_by_round),
          cmocka_unit_test(test_noise_is_no_difference), cmocka_unit_test(test_outliers_of_many_rounds),
          cmocka_unit_test(test_short_and_failed_runs), cmocka_unit_test(test_mix_is_read_as_it_was_written),
          cmocka_unit_test(test_wrong_mixes_are_refused), cmocka_unit_test(test_serial_stage),
          cmocka_unit_test(test_parallel_stage_is_its_slowest_thread),
          cmocka_unit_test(test_waiting_threads_do_not_count), cmocka_unit_test(test_overlap),
          cmocka_unit_test(test_what_was_not_replayed), cmocka_unit_test(test_interval),
          cmocka_unit_test(test_replays_are_read))
