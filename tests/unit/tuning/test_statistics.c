/* test_statistics.c - estimates and intervals of paired runs: against published values, and on simulated noise. */
#include <math.h>
#include <stdlib.h>

#include "support/check.h"
#include "noise.h"
#include "tuning/pairs.h"

static void near(double expected, double found)
{
    if (!(fabs(expected - found) <= 1e-9 * fabs(expected) + 1e-12))
        fail_msg("%.12g instead of %.12g", found, expected);
}

/* Hollander, Wolfe and Chicken, table 3.1 (Hamilton depression scale, nine patients before and after a tranquilizer):
 * estimate -0.46, interval of 96.1 % from -0.786 to -0.010. */
static void test_published(void **state)
{
    static const double before[] = {1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
    static const double after[] = {0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29};
    double base[9], one[9];
    for (int i = 0; i < 9; i++) {
        base[i] = exp(before[i]);
        one[i] = exp(after[i]);
    }
    const struct hw_ratio ratio = hw_ratio_of_pairs(base, one, 9, 0.95);
    assert_true(ratio.known);
    near(exp(-0.46), ratio.value);
    near(exp(-0.786), ratio.low);
    near(exp(-0.010), ratio.high);
}

static void test_few(void **state)
{
    static const double base[] = {1, 1, 1, 1, 1, 1}, one[] = {2, 2, 2, 2, 2, 2}, some[] = {2, 0, 4};
    assert_int_equal(hw_pairs_least(0.95), 6);
    assert_int_equal(hw_pairs_least(0.99), 8);
    struct hw_ratio ratio = hw_ratio_of_pairs(base, one, 6, 0.95);
    assert_true(ratio.known);
    near(2, ratio.low);
    near(2, ratio.high);
    ratio = hw_ratio_of_pairs(base, one, 5, 0.95);
    assert_false(ratio.known);
    near(2, ratio.value);
    ratio = hw_ratio_of_pairs(base, some, 3, 0.95); /* without the unknown one */
    assert_false(ratio.known);
    near(2, ratio.low);
    near(4, ratio.high);
    near(sqrt(8), ratio.value);
    near(0, hw_ratio_of_pairs(base, some, 0, 0.95).value);
}

/* As many pairs as there can be: nothing is written beyond its end. */
static void test_many(void **state)
{
    static double base[HW_PAIRS_MOST], one[HW_PAIRS_MOST];
    uint64_t random = 1;
    for (size_t i = 0; i < HW_PAIRS_MOST; i++) {
        base[i] = 1 + hw_random_unit(&random);
        one[i] = base[i] * (1.09 + 0.02 * hw_random_unit(&random));
    }
    const struct hw_ratio ratio = hw_ratio_of_pairs(base, one, HW_PAIRS_MOST, 0.95);
    assert_true(ratio.known && ratio.low > 1.09 && ratio.low < ratio.value && ratio.value < ratio.high &&
                ratio.high < 1.11);
}

static void test_order(void **state)
{
    size_t order[4], first[4] = {0};
    uint64_t random = 7;
    for (int i = 0; i < 4000; i++) {
        unsigned seen = 0;
        hw_random_order(&random, order, 4);
        for (int k = 0; k < 4; k++)
            seen |= 1u << order[k];
        assert_int_equal(seen, 15);
        first[order[0]]++;
    }
    for (int k = 0; k < 4; k++)
        assert_in_range(first[k], 900, 1100);
}

/* How many of 2000 comparisons of 20 pairs find a difference, when B takes RATIO times as long. */
static unsigned found(struct noise *noise, double ratio)
{
    unsigned differences = 0;
    for (int comparison = 0; comparison < 2000; comparison++) {
        static struct hw_pairs pairs;
        pairs.count = 0;
        for (int pair = 0; pair < 20; pair++) {
            struct hw_run_cost cost[2] = {0};
            size_t order[2];
            hw_random_order(&noise->random, order, 2);
            for (int i = 0; i < 2; i++)
                cost[order[i]].wall_s = noise_next(noise) * (order[i] ? ratio : 1);
            hw_pairs_add(&pairs, &cost[0], &cost[1]);
        }
        differences += hw_pairs_change(&pairs, HW_METRIC_WALL, 0).verdict != HW_CHANGE_NONE;
        assert_int_equal(hw_pairs_change(&pairs, HW_METRIC_RSS, 0).verdict, HW_CHANGE_UNKNOWN);
    }
    return differences;
}

static void test_noise_makes_no_difference(void **state)
{
    struct noise noise = {.random = 1};
    const unsigned differences = found(&noise, 1);
    if (differences > 130) /* 5 %, and three standard deviations */
        fail_msg("%u of 2000 comparisons of equals found a difference", differences);
    assert_true(found(&noise, 1.15) > 1000); /* and a difference is found */
}

static void test_changes(void **state)
{
    static struct hw_pairs pairs;
    pairs.count = 0;
    for (int i = 0; i < 10; i++)
        hw_pairs_add(&pairs, &(struct hw_run_cost){.wall_s = 1, .user_s = 1, .peak_rss_bytes = 100, .minor_faults = 10},
                     &(struct hw_run_cost){.wall_s = 1.2, .user_s = 0.5, .peak_rss_bytes = i ? 100 : 0});
    struct hw_change change = hw_pairs_change(&pairs, HW_METRIC_WALL, 0.1);
    assert_int_equal(change.verdict, HW_CHANGE_WORSE);
    assert_true(change.beyond);
    near(1.2, change.b);
    assert_false(hw_pairs_change(&pairs, HW_METRIC_WALL, 0.3).beyond);
    assert_int_equal(hw_pairs_change(&pairs, HW_METRIC_CPU, 0).verdict, HW_CHANGE_BETTER);
    change = hw_pairs_change(&pairs, HW_METRIC_RSS, 0); /* not known of all runs */
    assert_int_equal(change.verdict, HW_CHANGE_UNKNOWN);
    near(100, change.a);
    near(0, change.b);
}

TEST_LIST(cmocka_unit_test(test_published), cmocka_unit_test(test_few), cmocka_unit_test(test_many),
          cmocka_unit_test(test_order), cmocka_unit_test(test_noise_makes_no_difference),
          cmocka_unit_test(test_changes))
