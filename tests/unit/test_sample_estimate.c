/* test_sample_estimate.c - estimates of sampled runs lie where they say they do: over 500 seeds they are right on
 * average, spread as much as the sums for the variance say, and the truth is within two standard deviations as often as
 * it should be. For mixed sizes, too, where the mean size says too little.
 *
 * What is tested is the runtime's own source. */
#include "support/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/sampling.c"

struct hw_options hw_options;
__thread uint64_t hw_until_sample;

enum { SEEDS = 500 };

struct totals {
    double count, bytes, count_variance, bytes_variance;
};

/* As a hook does (hooks.c). */
static bool looked_at(struct hw_thread *thread, uint64_t size)
{
    if (size < hw_until_sample) {
        hw_until_sample -= size;
        return false;
    }
    return hw_sample_drawn(thread, size);
}

static void add(struct totals *totals, uint64_t seed, uint64_t number, uint64_t size)
{
    const struct hw_block block = {.size = size, .stamp = hw_mix(seed << 32 ^ number)};
    const struct hw_sample sample = hw_sample_of(&block);
    totals->count += (double)sample.weight;
    totals->bytes += (double)sample.bytes;
    totals->count_variance += (double)sample.count_variance / HW_COUNT_VARIANCE_UNIT;
    totals->bytes_variance += (double)sample.bytes_variance * HW_BYTES_VARIANCE_UNIT;
}

/* One way to mix sizes: that of block I of NUMBER. */
struct mix {
    const char *name;
    uint64_t distance, number;
    uint64_t (*size)(uint64_t i);
};

static uint64_t small(uint64_t i)
{
    return 16;
}

static uint64_t two_sizes(uint64_t i) /* many small ones, a few that are not */
{
    return i % 1000 ? 32 : 100000;
}

static uint64_t uniform(uint64_t i)
{
    return 100 + hw_mix(i) % 20000;
}

static uint64_t every_magnitude(uint64_t i) /* as many from 1 to 2 KiB as from 512 KiB to 1 MiB */
{
    const uint64_t low = 1024ull << hw_mix(i) % 10;
    return low + hw_mix(i * 3 + 1) % low;
}

static const struct mix mixes[] = {
    {"16 bytes", 65536, 300000, small},
    {"32 and 100,000 bytes, large ones certain", 65536, 100000, two_sizes},
    {"32 and 100,000 bytes, none certain", 131072, 100000, two_sizes},
    {"100 to 20,100 bytes", 65536, 5000, uniform},
    {"1 KiB to 1 MiB", 65536, 6000, every_magnitude},
};

/* Of numbers TRUTH is the true value: mean, spread and how often it is covered. */
static void check_estimate(const struct mix *mix, const char *what, const double *value, const double *variance,
                           double truth)
{
    double sum = 0, squares = 0, stated = 0;
    int covered = 0;
    for (int i = 0; i < SEEDS; i++) {
        sum += value[i] - truth;
        squares += (value[i] - truth) * (value[i] - truth);
        stated += variance[i];
        covered += fabs(value[i] - truth) <= 2 * sqrt(variance[i]);
    }
    const double spread = squares / SEEDS, bias = sum / SEEDS / sqrt(spread / SEEDS);
    print_message("%s, %s: bias %.1f standard errors, spread %.3f of what is stated, %.1f %% covered\n", mix->name,
                  what, bias, sqrt(spread / (stated / SEEDS)), 100. * covered / SEEDS);
    assert_true(fabs(bias) < 4);
    assert_true(spread / (stated / SEEDS) > 0.75 && spread / (stated / SEEDS) < 1.3);
    assert_true(covered >= SEEDS * 91 / 100 && covered <= SEEDS * 985 / 1000);
}

static void check_mix(const struct mix *mix)
{
    static double count[SEEDS], bytes[SEEDS], count_variance[SEEDS], bytes_variance[SEEDS];
    double truth = 0;
    hw_options.sample_bytes = mix->distance;
    for (uint64_t i = 0; i < mix->number; i++)
        truth += (double)mix->size(i);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct hw_thread thread = {.random = hw_mix(seed)};
        struct totals totals = {0};
        hw_sample_begin(&thread);
        for (uint64_t i = 0; i < mix->number; i++) {
            const uint64_t size = mix->size(i);
            if (looked_at(&thread, size))
                add(&totals, seed, i, size);
        }
        count[seed] = totals.count;
        bytes[seed] = totals.bytes;
        count_variance[seed] = totals.count_variance;
        bytes_variance[seed] = totals.bytes_variance;
    }
    check_estimate(mix, "numbers", count, count_variance, (double)mix->number);
    check_estimate(mix, "bytes", bytes, bytes_variance, truth);
}

static void test_estimates(void **state)
{
    for (size_t i = 0; i < sizeof mixes / sizeof *mixes; i++)
        check_mix(&mixes[i]);
}

/* What is as large as the distance is certain: it is looked at, counts once, and is not in the way of the others. */
static void test_large_blocks(void **state)
{
    hw_options.sample_bytes = 65536;
    struct hw_thread thread = {.random = 7};
    hw_sample_begin(&thread);
    for (uint64_t i = 0; i < 1000; i++) {
        const uint64_t until = hw_until_sample, rest = hw_sample_rest;
        assert_true(looked_at(&thread, 65536 + i * 1000));
        assert_true(hw_until_sample == until && hw_sample_rest == rest);
        const struct hw_sample sample = hw_sample_of(&(struct hw_block){.size = 65536 + i * 1000, .stamp = i});
        assert_true(sample.weight == 1 && sample.bytes == 65536 + i * 1000);
        assert_true(!sample.count_variance && !sample.bytes_variance);
        looked_at(&thread, 1 + i);
    }
}

TEST_MAIN(cmocka_unit_test(test_estimates), cmocka_unit_test(test_large_blocks))
