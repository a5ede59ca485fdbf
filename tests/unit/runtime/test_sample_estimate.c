/* test_sample_estimate.c - estimates of sampled runs lie where they say they do: over 500 seeds they are right on
 * average, spread as much as the sums for the variance say, and the truth is within two standard deviations as often as
 * it should be. For mixed sizes, too, where the mean size says too little; and of the peak, which is the greatest of
 * many values, however they come and go.
 *
 * What is tested is the runtime's own source. */
#include "support/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profile/model/sampled_peak.c"
#include "report/view/measure.h"
#include "runtime/heap/sampling.c"

struct hw_options hw_options;
struct hw_runtime hw_runtime;
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
typedef uint64_t size_of_number(uint64_t i);

struct mix {
    const char *name;
    uint64_t distance, number;
    size_of_number *size;
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

/* ---- few samples ---- */

static uint64_t mostly_tiny(uint64_t i)
{
    static const uint64_t sizes[] = {24, 200, 200, 3000, 24, 24};
    const uint64_t drawn = hw_mix(i);
    return drawn % 140 ? sizes[drawn / 140 % 6] : 90000;
}

/* What `check` says of numbers and bytes, of places with blocks of one size each. LEAST, MOST: percent that are
 * covered. With few samples more are than 19 of 20: what lies below the truth cannot be as far away as what lies above
 * it. */
static void check_within(uint64_t distance, uint64_t number, size_of_number *size, int least, int most)
{
    int covered[2] = {0}, by_deviations = 0;
    double truth[2] = {(double)number, 0};
    hw_options.sample_bytes = distance;
    for (uint64_t i = 0; i < number; i++)
        truth[1] += (double)size(i);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct hw_thread thread = {.random = hw_mix(seed * 7 + distance)};
        struct totals places[64] = {{0}};
        double variance[2] = {0}, third[2] = {0}, value[2] = {0};
        hw_sample_begin(&thread);
        for (uint64_t i = 0; i < number; i++)
            if (looked_at(&thread, size(i)))
                add(&places[63 - __builtin_clzll(size(i))], seed, i, size(i));
        for (size_t k = 0; k < 64; k++) {
            const struct totals *place = &places[k];
            if (!(place->count > 0))
                continue;
            value[0] += place->count;
            value[1] += place->bytes;
            variance[0] += place->count_variance;
            variance[1] += place->bytes_variance;
            third[0] += place->count_variance * place->count_variance / place->count;
            third[1] += place->bytes_variance * place->bytes_variance / place->bytes;
        }
        for (size_t n = 0; n < 2; n++)
            covered[n] += fabs(value[n] - truth[n]) <=
                          hw_measure_within(variance[n], third[n], n ? 0 : (double)distance / HW_MEASURE_TINY);
        by_deviations += fabs(value[0] - truth[0]) <= 2 * sqrt(variance[0]);
    }
    print_message("%llu blocks every %llu bytes: %.1f %% of numbers and %.1f %% of bytes covered; by two deviations "
                  "%.1f %% of numbers\n",
                  (unsigned long long)number, (unsigned long long)distance, 100. * covered[0] / SEEDS,
                  100. * covered[1] / SEEDS, 100. * by_deviations / SEEDS);
    for (size_t n = 0; n < 2; n++)
        assert_in_range(covered[n] * 100, least * SEEDS, most * SEEDS);
}

static void test_few_samples(void **state)
{
    (void)state;
    check_within(524288, 60001, mostly_tiny, 93, 100);
    check_within(524288, 60001, small, 75, 100); /* of bytes, where no block at all was seen, nothing is known */
    check_within(524288, 300000, small, 93, 100);
    check_within(65536, 60001, mostly_tiny, 93, 100);
    check_within(65536, 1000000, small, 93, 99);
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

/* ---- the peak ---- */

enum { DISTANCE = 65536, BLOCKS_MOST = 400000 };

/* A program's heap, of which blocks of these sizes come and go. */
struct heap {
    uint64_t seed, number;
    struct hw_thread *thread;
    struct hw_block *live; /* those that are looked at, by the number of the block; size 0: not */
    int64_t bytes, most, estimate, estimate_most;
};

static void obtain(struct heap *heap, uint64_t size)
{
    struct hw_block *block = &heap->live[heap->number];
    assert_true(heap->number < BLOCKS_MOST);
    *block = (struct hw_block){0};
    heap->bytes += (int64_t)size;
    heap->most = heap->bytes > heap->most ? heap->bytes : heap->most;
    if (looked_at(heap->thread, size)) {
        *block = (struct hw_block){.size = size, .stamp = hw_mix(heap->seed << 32 ^ heap->number)};
        heap->estimate += (int64_t)hw_sample_of(block).bytes;
        heap->estimate_most = heap->estimate > heap->estimate_most ? heap->estimate : heap->estimate_most;
        hw_sample_live(block, 1, false);
    }
    heap->number++;
}

static void release(struct heap *heap, uint64_t number, uint64_t size)
{
    const struct hw_block *block = &heap->live[number];
    heap->bytes -= (int64_t)size;
    if (!block->size)
        return;
    heap->estimate -= (int64_t)hw_sample_of(block).bytes;
    hw_sample_live(block, -1, true);
}

/* Sizes of 1 to 64 KiB with the distance, so that some are as good as certain; by the number of the block. */
static uint64_t mixed_size(uint64_t i)
{
    return 64 + hw_mix(i) % (i % 50 ? 4000 : 60000);
}

static uint64_t small_size(uint64_t i)
{
    return 100;
}

static uint64_t medium_size(uint64_t i) /* two thirds of the distance: most of them are looked at */
{
    return 40000;
}

/* As many live as COUNT says at each moment. First in first out. */
static void steady(struct heap *heap, size_of_number *size, uint64_t count)
{
    for (uint64_t i = 0; i < 6 * count; i++) {
        if (i >= count)
            release(heap, i - count, size(i - count));
        obtain(heap, size(i));
    }
    for (uint64_t i = 5 * count; i < 6 * count; i++)
        release(heap, i, size(i));
}

static void ramp(struct heap *heap, size_of_number *size, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        obtain(heap, size(i));
    for (uint64_t i = count; i-- > 0;)
        release(heap, i, size(i));
}

static void growing(struct heap *heap, size_of_number *size, uint64_t count) /* what is live at the end is the peak */
{
    for (uint64_t i = 0; i < count; i++)
        obtain(heap, size(i));
}

static void sawtooth(struct heap *heap, size_of_number *size, uint64_t count) /* down to half, ten times */
{
    uint64_t first = 0, next = 0;
    for (int tooth = 0; tooth < 10; tooth++) {
        for (; next - first < count; next++)
            obtain(heap, size(next));
        for (; next - first > count / 2; first++)
            release(heap, first, size(first));
    }
}

static void kept_steady(struct heap *heap, size_of_number *size, uint64_t count) /* as much at the end as ever */
{
    for (uint64_t i = 0; i < 6 * count; i++) {
        if (i >= count)
            release(heap, i - count, size(i - count));
        obtain(heap, size(i));
    }
}

static const struct {
    const char *name;
    void (*run)(struct heap *heap, size_of_number *size, uint64_t count);
    size_of_number *size;
    uint64_t count;
    double bias; /* in standard deviations of one run: most. Where the heap itself wavers, the moment that a half finds
                  * is not quite the greatest one. */
} courses[] = {
    {"steady, 100 bytes", steady, small_size, 40000, 0.2},
    {"steady, 100 bytes, little", steady, small_size, 3000, 0.3},
    {"steady, mixed sizes", steady, mixed_size, 5000, 0.45},
    {"steady, 40,000 bytes", steady, medium_size, 1000, 0.2},
    {"ramp, 100 bytes", ramp, small_size, 40000, 0.2},
    {"ramp, mixed sizes", ramp, mixed_size, 5000, 0.2},
    {"ramp, 40,000 bytes", ramp, medium_size, 1000, 0.2},
    {"growing, mixed sizes", growing, mixed_size, 5000, 0.2},
    {"sawtooth, 100 bytes", sawtooth, small_size, 40000, 0.2},
    {"sawtooth, mixed sizes", sawtooth, mixed_size, 5000, 0.4},
    {"kept steady, mixed sizes", kept_steady, mixed_size, 5000, 0.8}, /* never less than what is live at the end */
};

static void check_course(size_t which)
{
    static struct hw_block live[BLOCKS_MOST];
    double error = 0, squares = 0, stated = 0, greatest = 0, truth = 0;
    int covered = 0;
    hw_options.sample_bytes = DISTANCE;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct hw_thread thread = {.random = hw_mix(seed * 31 + which)};
        struct hw_process_info process = {.sample_bytes = DISTANCE};
        struct heap heap = {.seed = seed, .thread = &thread, .live = live};
        hw_runtime.process = &process;
        peaks.live[0] = peaks.live[1] = (struct half){0};
        peaks.seen = 0;
        hw_sample_peaks_start();
        hw_sample_begin(&thread);
        courses[which].run(&heap, courses[which].size, courses[which].count);
        process.peak_bytes = (uint64_t)heap.estimate_most;
        struct hw_profile_context context = {.bytes = 1 << 20, .bytes_variance = 1, .peak_bytes = heap.estimate_most};
        struct hw_profile profile = {.process = process, .contexts = &context, .context_count = 1};
        profile.totals.live_bytes = heap.estimate;
        hw_profile_fit_sampled_peak(&profile);
        assert_true(context.peak_bytes == (int64_t)profile.process.peak_bytes);
        truth = (double)heap.most;
        const double off = (double)profile.process.peak_bytes - truth;
        const double variance = (double)profile.process.peak_variance * HW_BYTES_VARIANCE_UNIT;
        error += off;
        squares += off * off;
        stated += variance;
        greatest += (double)heap.estimate_most - truth;
        covered += fabs(off) <= 2 * sqrt(variance);
    }
    const double sigma = sqrt(stated / SEEDS);
    print_message("%s: bias %.2f standard deviations (of the greatest estimate %.2f), spread %.2f of what is stated, "
                  "%.1f %% covered; %.2f MiB\n",
                  courses[which].name, error / SEEDS / sigma, greatest / SEEDS / sigma, sqrt(squares / SEEDS) / sigma,
                  100. * covered / SEEDS, truth / 0x1p20);
    assert_true(fabs(error / SEEDS / sigma) < courses[which].bias);
    assert_true(covered >= SEEDS * 92 / 100);
    assert_true(sqrt(squares / SEEDS) / sigma > 0.75 && sqrt(squares / SEEDS) / sigma < 1.12);
}

static void test_peaks(void **state)
{
    for (size_t i = 0; i < sizeof courses / sizeof *courses; i++)
        check_course(i);
}

/* One block at a time, of less than the distance: it is certain that so much was live at once. */
static void test_peak_of_one_block(void **state)
{
    static struct hw_block live[BLOCKS_MOST];
    int right = 0;
    hw_options.sample_bytes = DISTANCE;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct hw_thread thread = {.random = hw_mix(seed)};
        struct hw_process_info process = {.sample_bytes = DISTANCE};
        struct heap heap = {.seed = seed, .thread = &thread, .live = live};
        hw_runtime.process = &process;
        hw_sample_peaks_start();
        hw_sample_begin(&thread);
        for (uint64_t i = 0; i < 1000; i++) {
            obtain(&heap, 20000);
            release(&heap, i, 20000);
        }
        process.peak_bytes = (uint64_t)heap.estimate_most;
        const uint64_t peak = hw_sampled_peak(&process, 0);
        assert_true(peak >= 20000 && heap.estimate_most > 60000);
        right += peak == 20000;
    }
    print_message("%d of 100 are exact\n", right);
    assert_true(right > 60);
}

/* Shares add up to the peak, also those of contexts whose variance is less than the unit; what is certain stays. */
static void test_shares_of_small_contexts(void **state)
{
    (void)state;
    struct hw_profile_context contexts[5] = {
        {.samples = 1, .allocations = 8, .bytes = 545, .bytes_variance = 1, .peak_bytes = 545, .peak_blocks = 8},
        {.samples = 1, .allocations = 17, .bytes = 528, .peak_bytes = 528, .peak_blocks = 17},
        {.samples = 1, .allocations = 16, .bytes = 528, .peak_bytes = 528, .peak_blocks = 16},
        {.samples = 1, .allocations = 32, .bytes = 520, .peak_bytes = 520, .peak_blocks = 32},
        {.samples = 1, .allocations = 1, .bytes = 600, .peak_bytes = 600, .peak_blocks = 1},
    };
    struct hw_profile profile = {.contexts = contexts, .context_count = 5};
    profile.process = (struct hw_process_info){
        .sample_bytes = 512, .peak_bytes = 2721, .peak_by_half = {1500, 1700}, .peak_seen_bytes = 700};
    hw_profile_fit_sampled_peak(&profile);
    int64_t sum = 0;
    for (size_t i = 0; i < 5; i++)
        sum += contexts[i].peak_bytes;
    assert_int_equal(profile.process.peak_bytes, 1600);
    assert_int_equal(sum, 1600);
    assert_int_equal(contexts[4].peak_bytes, 600);
}

TEST_LIST(cmocka_unit_test(test_shares_of_small_contexts), cmocka_unit_test(test_estimates),
          cmocka_unit_test(test_few_samples), cmocka_unit_test(test_large_blocks), cmocka_unit_test(test_peaks),
          cmocka_unit_test(test_peak_of_one_block))
