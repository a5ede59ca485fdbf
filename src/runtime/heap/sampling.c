/* sampling.c - which blocks a sampled run records, what each of them stands for, and with which variance.
 *
 * Points are drawn on the bytes that a thread requests, at exponential distances of sample_bytes on average: a Poisson
 * process. A block is drawn when a point falls on it, with the probability p = 1 - exp(-size / sample_bytes); each
 * block of sample_bytes or more is always drawn (p = 1), since they are few and each matters. It stands for 1 / p
 * blocks (Horvitz and Thompson): for a whole number of them, rounded by chance so that the mean is right, and for size
 * / p bytes. Blocks are drawn independently of each other, so that the variance of a sum of 1 / p is the sum of (1 - p)
 * / p over all blocks; the sum of (1 - p) / p^2 over those that were drawn estimates it without bias, whatever the mix
 * of sizes, plus what the rounding adds: f (1 - f), where f is the fraction of 1 / p. For bytes it is size^2 (1 - p) /
 * p^2. Those sums are kept with each context.
 *
 * The peak needs more: the greatest of many estimates lies above the truth, since the moment is chosen by their errors.
 * So each block that was drawn is given to one of two halves, or to both, as if each half had points of its own, half
 * as many: they are independent of each other. The moment at which one half knows most says nothing of the errors of
 * the other, whose estimate at that moment has no bias. The mean of both ways is the peak; it costs nothing in
 * precision. The moment of a half lasts until that half changes: of the other one's estimates meanwhile the greatest
 * is taken, so that what is allocated last before the top is in it.
 *
 * The unit test of the estimator is made of this file: it uses nothing of the rest. */
#include "runtime/core/core.h"
#include "runtime/core/threads.h"
#include "runtime/heap/heap.h"

__thread uint64_t hw_sample_rest;

/* 1 - exp(-x), x >= 0, to about 1e-12: Taylor on x / 2^k, then 1 - (1 - y)^2 = 2y - y^2, k times. */
static double one_minus_exp(double x)
{
    if (x > 40)
        return 1;
    int k = 0;
    while (x > 0.05) {
        x *= 0.5;
        k++;
    }
    double y = x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5 * (1 - x / 6)))));
    while (k--)
        y = y * (2 - y);
    return y;
}

/* -ln(u), 0 < u <= 1. */
double hw_minus_log(double u)
{
    double result = 0;
    while (u < 0.5) {
        u *= 2;
        result += 0.69314718055994530942;
    }
    double z = (1 - u) / (1 + u), z2 = z * z, term = z, sum = 0; /* -ln(u) = 2 atanh(z) */
    for (int i = 1; i < 40; i += 2) {
        sum += term / i;
        term *= z2;
    }
    return result + 2 * sum;
}

uint64_t hw_mix(uint64_t x) /* splitmix64 */
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/* ---- which ---- */

/* The next point is DISTANCE bytes ahead. Blocks of sample_bytes or more must reach the counted part of the hook. */
static void set_distance(uint64_t distance)
{
    hw_until_sample = distance < hw_options.sample_bytes ? distance : hw_options.sample_bytes;
    hw_sample_rest = distance - hw_until_sample;
}

void hw_sample_begin(struct hw_thread *thread)
{
    thread->random = hw_mix(thread->random);
    const double u = (double)((thread->random >> 11) + 1) * 0x1p-53;
    set_distance((uint64_t)(hw_minus_log(u) * (double)hw_options.sample_bytes) + 1);
}

bool hw_sample_drawn(struct hw_thread *thread, size_t size)
{
    if (size >= hw_options.sample_bytes)
        return true;
    const uint64_t distance = hw_until_sample + hw_sample_rest;
    if (size < distance) {
        set_distance(distance - size);
        return false;
    }
    hw_sample_begin(thread);
    return true;
}

/* ---- what it stands for ---- */

static double chance_of(const struct hw_block *block, uint64_t salt)
{
    return (double)(hw_mix(block->stamp ^ block->size ^ salt) >> 11) * 0x1p-53;
}

static uint64_t rounded(double value, double chance)
{
    return value < 0x1p63 ? (uint64_t)(value + chance) : UINT64_MAX >> 1;
}

struct hw_sample hw_sample_of(const struct hw_block *block)
{
    const double size = block->size ? (double)block->size : 1;
    if (block->size >= hw_options.sample_bytes)
        return (struct hw_sample){.weight = 1, .bytes = block->size};
    const double p = one_minus_exp(size / (double)hw_options.sample_bytes), number = 1 / p;
    const double variance = (1 - p) * number * number, fraction = number - (double)(uint64_t)number;
    return (struct hw_sample){
        .weight = rounded(number, chance_of(block, 0)),
        .bytes = rounded((double)block->size * number, 0.5),
        .count_variance =
            rounded((variance + fraction * (1 - fraction)) * HW_COUNT_VARIANCE_UNIT, chance_of(block, 0x5bd1e995)),
        .bytes_variance = rounded((double)block->size * (double)block->size * variance / HW_BYTES_VARIANCE_UNIT,
                                  chance_of(block, 0x27d4eb2f)),
    };
}

/* ---- the peak ---- */

/* What one half makes of the live blocks, in bytes; its variance, in units of HW_BYTES_VARIANCE_UNIT. */
struct half {
    int64_t bytes, variance;
};

static struct {
    struct half live[2], inherited[2];
    int64_t seen, inherited_seen; /* bytes of the blocks themselves */
    int64_t most[2];              /* the greatest live[i].bytes so far */
    bool at_most[2];              /* … and it has not changed since */
} peaks;
static uint32_t noting; /* a thread is noting a peak */

/* What BLOCK is to each half. */
static void halve(const struct hw_block *block, struct half halves[2])
{
    const double size = block->size ? (double)block->size : 1;
    halves[0] = halves[1] = (struct half){0};
    if (block->size >= hw_options.sample_bytes) {
        halves[0].bytes = halves[1].bytes = (int64_t)block->size;
        return;
    }
    /* Chances: p, it is drawn; q, one half would draw it; one, it is in one half only, given that it is drawn. */
    const double x = size / (double)hw_options.sample_bytes, p = one_minus_exp(x), q = one_minus_exp(x / 2);
    const double one = q * (1 - q) / p, u = chance_of(block, 0x165667b1);
    const struct half half = {
        (int64_t)rounded((double)block->size / q, 0.5),
        (int64_t)rounded((double)block->size * (double)block->size * (1 - q) / (q * q) / HW_BYTES_VARIANCE_UNIT,
                         chance_of(block, 0xc2b2ae35))};
    if (u < one || u >= 2 * one)
        halves[0] = half;
    if (u >= one)
        halves[1] = half;
}

static int64_t change(struct half *half, const struct half *by, int sign)
{
    __atomic_fetch_add(&half->variance, sign * by->variance, __ATOMIC_RELAXED);
    return __atomic_add_fetch(&half->bytes, sign * by->bytes, __ATOMIC_RELAXED);
}

/* The other half has a moment of its own: what this one knows of it. */
static void note(int half)
{
    const int by = !half;
    hw_runtime.process->peak_by_half[by] = __atomic_load_n(&peaks.live[by].bytes, __ATOMIC_RELAXED);
    hw_runtime.process->peak_half_variance[by] = __atomic_load_n(&peaks.live[by].variance, __ATOMIC_RELAXED);
}

static void look_for_peaks(void)
{
    for (int half = 0; half < 2; half++) {
        const int64_t now = __atomic_load_n(&peaks.live[half].bytes, __ATOMIC_RELAXED);
        if (now > peaks.most[half]) {
            peaks.most[half] = now;
            peaks.at_most[half] = true;
            note(half);
        } else if (peaks.at_most[half] && __atomic_load_n(&peaks.live[!half].bytes, __ATOMIC_RELAXED) >
                                              hw_runtime.process->peak_by_half[!half])
            note(half);
    }
    if ((uint64_t)peaks.seen > hw_runtime.process->peak_seen_bytes)
        hw_runtime.process->peak_seen_bytes = (uint64_t)peaks.seen;
}

void hw_sample_live(const struct hw_block *block, int sign, bool quiet)
{
    struct half by[2];
    uint32_t idle = 0;
    halve(block, by);
    for (int half = 0; half < 2; half++)
        if (by[half].bytes && change(&peaks.live[half], &by[half], sign) < peaks.most[half])
            peaks.at_most[half] = false;
    __atomic_fetch_add(&peaks.seen, sign * (int64_t)block->size, __ATOMIC_RELAXED);
    /* Another thread that is here notes a moment that is as good. */
    if (quiet || !__atomic_compare_exchange_n(&noting, &idle, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    look_for_peaks();
    __atomic_store_n(&noting, 0, __ATOMIC_RELEASE);
}

void hw_sample_inherited_freed(const struct hw_block *block)
{
    struct half by[2];
    halve(block, by);
    for (int half = 0; half < 2; half++)
        change(&peaks.inherited[half], &by[half], -1);
    __atomic_fetch_sub(&peaks.inherited_seen, (int64_t)block->size, __ATOMIC_RELAXED);
}

void hw_sample_peaks_start(void)
{
    for (int half = 0; half < 2; half++) {
        peaks.inherited[half] = peaks.live[half];
        peaks.live[half] = (struct half){0};
        peaks.most[half] = 0;
        peaks.at_most[half] = false;
    }
    peaks.inherited_seen = peaks.seen;
    peaks.seen = 0;
    noting = 0;
}

void hw_sample_take_inherited(void)
{
    for (int half = 0; half < 2; half++)
        change(&peaks.live[half], &peaks.inherited[half], 1);
    peaks.seen += peaks.inherited_seen;
}

void hw_sample_forget_live(void)
{
    __builtin_memset(&peaks, 0, sizeof peaks);
    noting = 0;
}

void hw_sample_peaks_reset(void)
{
    peaks.most[0] = peaks.most[1] = INT64_MIN;
    hw_runtime.process->peak_seen_bytes = 0;
    look_for_peaks();
}
