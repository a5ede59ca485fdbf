/* sampled_peak.c - the peak of a sampled run: from the greatest of many estimates, which is biased upwards, to what its
 * two halves say (runtime/heap/sampling.c), and the shares of contexts to what adds up to that.
 *
 * What the greatest estimate has too much is error, and of an error that is known in all the part of each context is
 * expected to be as its variance. Blocks that are certain have none, and keep their share. */
#include "profile/model/model.h"

static double positive(double value)
{
    return value > 0 ? value : 0;
}

/* The variance of a byte of this context: as if its sizes at the peak were those of the whole run. Of few blocks it may
 * be less than the unit, and 0 then: it is about what blocks much smaller than the distance of samples have. */
static double variance_of_byte(const struct hw_profile *profile, const struct hw_profile_context *context)
{
    const double bytes = (double)context->bytes + positive((double)context->inherited_bytes);
    const double variance = (double)context->bytes_variance + (double)context->inherited_bytes_variance;
    if (context->pool || !(bytes > 0))
        return 0;
    if (!(variance > 0) && context->samples < context->allocations)
        return (double)profile->process.sample_bytes;
    return variance * HW_BYTES_VARIANCE_UNIT / bytes;
}

/* What a unit of variance has to give so that all give EXCESS, and nobody more than he has. */
static double part_to_give(const struct hw_profile *profile, double excess)
{
    double part = 0;
    for (int round = 0; round < 64; round++) {
        double given = 0, rest = 0;
        for (size_t i = 0; i < profile->context_count; i++) {
            const double share = positive((double)profile->contexts[i].peak_bytes);
            const double variance = variance_of_byte(profile, &profile->contexts[i]);
            given += part * variance < 1 ? 0 : share;
            rest += part * variance < 1 ? variance * share : 0;
        }
        const double next = rest > 0 ? (excess - given) / rest : part;
        if (!(next > part))
            break;
        part = next;
    }
    return part;
}

static void fit_contexts(struct hw_profile *profile, double excess)
{
    const double part = part_to_give(profile, excess);
    double sum = 0, given = 0; /* rounded so that the sum is right */
    for (size_t i = 0; i < profile->context_count; i++) {
        struct hw_profile_context *context = &profile->contexts[i];
        if (context->pool || context->peak_bytes <= 0)
            continue;
        const double left = positive(1 - part * variance_of_byte(profile, context));
        sum += (double)context->peak_bytes * left;
        context->peak_blocks = (int64_t)((double)context->peak_blocks * left + 0.5);
        context->peak_bytes = (int64_t)positive(sum - given + 0.5);
        context->peak_blocks += context->peak_bytes && !context->peak_blocks;
        given += (double)context->peak_bytes;
    }
}

/* Within one distance of samples nothing is known: so much may stand between the moments of the halves and the peak.
 * Both moments may come to lie near each other, where each half is high; then the two estimates are not independent,
 * and their mean spreads more: at most 1.2 times in the simulations of test_sample_estimate. */
#define SPREAD_OF_MOMENTS 1.25 /* of the variance */
static uint64_t peak_variance(const struct hw_profile *profile)
{
    const struct hw_process_info *process = &profile->process;
    const double distance = (double)process->sample_bytes;
    const double halves =
        positive((double)process->peak_half_variance[0]) + positive((double)process->peak_half_variance[1]);
    bool uncertain = false;
    for (size_t i = 0; i < profile->context_count; i++)
        uncertain |= profile->contexts[i].peak_bytes > 0 && variance_of_byte(profile, &profile->contexts[i]) > 0;
    const double variance = SPREAD_OF_MOMENTS * halves / 4 + distance * distance / HW_BYTES_VARIANCE_UNIT + 1;
    return !uncertain ? 0 : variance < 0x1p63 ? (uint64_t)variance : UINT64_MAX >> 1;
}

uint64_t hw_sampled_peak(const struct hw_process_info *process, int64_t live_bytes)
{
    const double greatest = (double)process->peak_bytes;
    double peak = (double)process->peak_by_half[0] / 2 + (double)process->peak_by_half[1] / 2;
    const double least[] = {(double)process->peak_seen_bytes, (double)live_bytes};
    if (!process->sample_bytes || !process->peak_seen_bytes)
        return process->peak_bytes;
    for (size_t i = 0; i < sizeof least / sizeof *least; i++)
        peak = peak > least[i] ? peak : least[i];
    return peak < greatest ? (uint64_t)peak : process->peak_bytes;
}

void hw_profile_fit_sampled_peak(struct hw_profile *profile)
{
    struct hw_process_info *process = &profile->process;
    if (!process->sample_bytes || !process->peak_seen_bytes)
        return;
    const uint64_t peak = hw_sampled_peak(process, profile->totals.live_bytes);
    process->peak_variance = peak_variance(profile);
    if (process->peak_variance) {
        fit_contexts(profile, (double)process->peak_bytes - (double)peak);
        process->peak_bytes = peak;
    }
    process->peak_seen_bytes = 0;
    for (int half = 0; half < 2; half++)
        process->peak_by_half[half] = process->peak_half_variance[half] = 0;
}
