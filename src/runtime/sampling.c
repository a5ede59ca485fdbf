/* sampling.c - which blocks a sampled run looks at, what each of them stands for, and how sure that is.
 *
 * Points are drawn on the bytes that a thread requests, at exponential distances of sample_bytes on average: a Poisson
 * process. A block is looked at when a point falls on it, with the probability p = 1 - exp(-size / sample_bytes); each
 * block of sample_bytes or more is looked at anyway (p = 1), since there are few of them and each says much. It stands
 * for 1 / p blocks (Horvitz and Thompson): for a whole number of them, rounded by chance so that the mean is right, and
 * for size / p bytes. Blocks are drawn independently of each other, so that the variance of a sum of 1 / p is the sum
 * of (1 - p) / p over all blocks; the sum of (1 - p) / p^2 over those that were drawn estimates it without bias,
 * whatever the mix of sizes, plus what the rounding adds: f (1 - f), where f is the fraction of 1 / p. For bytes it is
 * size^2 (1 - p) / p^2. Those sums are kept with each context.
 *
 * The unit test of the estimator is made of this file: it uses nothing of the rest. */
#include "runtime/runtime.h"

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
