/* compare.c - see compare.h. */
#include "allocators/compare.h"

#include <string.h>

#define CONFIDENCE 0.9

static void sort(double *values, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t k = i; k > 0 && values[k - 1] > values[k]; k--) {
            const double other = values[k];
            values[k] = values[k - 1];
            values[k - 1] = other;
        }
}

static double middle_of(const double *sorted, size_t count)
{
    if (count == 0)
        return 0;
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

double hw_median(const double *values, size_t count)
{
    double sorted[HW_ROUNDS_MOST];
    if (count > HW_ROUNDS_MOST)
        count = HW_ROUNDS_MOST;
    memcpy(sorted, values, count * sizeof *values);
    sort(sorted, count);
    return middle_of(sorted, count);
}

/* How many values can be left out at each end so that the median lies between those that stay with CONFIDENCE: each of
 * COUNT values lies above or below it like a coin. */
static size_t left_out(size_t count)
{
    double part = 1, below = 0;
    for (size_t i = 0; i < count; i++)
        part /= 2;
    for (size_t k = 0; k < count / 2; k++) {
        below += part;
        if (2 * below > 1 - CONFIDENCE)
            return k ? k - 1 : 0;
        part *= (double)(count - k) / (double)(k + 1);
    }
    return count ? (count - 1) / 2 : 0;
}

struct hw_speedup hw_median_range(double *values, size_t count)
{
    if (count == 0)
        return (struct hw_speedup){0, 0, 0};
    const size_t out = left_out(count);
    sort(values, count);
    return (struct hw_speedup){middle_of(values, count), values[out], values[count - 1 - out]};
}

static struct hw_speedup speedup(const struct hw_candidate *one, const struct hw_candidate *present)
{
    double ratios[HW_ROUNDS_MOST];
    const size_t count = one->rounds < present->rounds ? one->rounds : present->rounds;
    for (size_t i = 0; i < count; i++)
        ratios[i] = one->wall_s[i] > 0 ? present->wall_s[i] / one->wall_s[i] : 1;
    return hw_median_range(ratios, count);
}

static void summarise(struct hw_candidate *one)
{
    double sizes[HW_ROUNDS_MOST];
    size_t known = 0;
    one->time_s = hw_median(one->wall_s, one->rounds);
    one->least_s = one->most_s = one->rounds ? one->wall_s[0] : 0;
    one->cpu_least_s = one->rounds ? one->cpu_s[0] : 0;
    for (size_t i = 0; i < one->rounds; i++) {
        if (one->cpu_s[i] < one->cpu_least_s)
            one->cpu_least_s = one->cpu_s[i];
        if (one->wall_s[i] < one->least_s)
            one->least_s = one->wall_s[i];
        if (one->wall_s[i] > one->most_s)
            one->most_s = one->wall_s[i];
        if (one->rss_bytes[i])
            sizes[known++] = (double)one->rss_bytes[i];
    }
    one->peak_rss_bytes = (uint64_t)hw_median(sizes, known);
    one->cpu_time_s = hw_median(one->cpu_s, one->rounds);
    one->page_faults = hw_median(one->faults, one->rounds);
}

void hw_compare(struct hw_candidate *candidates, size_t count, size_t present)
{
    for (size_t i = 0; i < count; i++) {
        summarise(&candidates[i]);
        candidates[i].measured = speedup(&candidates[i], &candidates[present]);
    }
}

static double memory_ratio(const struct hw_candidate *one, const struct hw_candidate *present)
{
    return present->peak_rss_bytes ? (double)one->peak_rss_bytes / (double)present->peak_rss_bytes : 0;
}

struct hw_choice hw_choose(const struct hw_candidate *candidates, size_t count, size_t present)
{
    struct hw_choice choice = {.reason = HW_CHOICE_KEEP, .index = present, .least_memory = count};
    for (size_t i = 0; i < count; i++) {
        const struct hw_candidate *one = &candidates[i];
        if (one->failed || one->rounds == 0)
            continue;
        if (one->measured.low > 1 && one->measured.value >= HW_LEAST_EFFECT &&
            one->measured.value > candidates[choice.index].measured.value)
            choice.index = i;
        if (one->peak_rss_bytes &&
            (choice.least_memory == count || one->peak_rss_bytes < candidates[choice.least_memory].peak_rss_bytes))
            choice.least_memory = i;
    }
    if (candidates[present].time_s < HW_SHORTEST_S) {
        choice.reason = HW_CHOICE_TOO_SHORT;
        choice.index = present;
    } else if (choice.index != present) {
        choice.reason = HW_CHOICE_FASTER;
    }
    choice.memory = memory_ratio(&candidates[choice.index], &candidates[present]);
    if (choice.least_memory < count)
        choice.least_memory_ratio = memory_ratio(&candidates[choice.least_memory], &candidates[present]);
    return choice;
}
