/* statistics.c - see statistics.h. */
#include "tuning/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MEANS_MOST (HW_PAIRS_MOST * (HW_PAIRS_MOST + 1) / 2)

static int by_value(const void *a, const void *b)
{
    const double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* How many of the COUNT (COUNT + 1) / 2 sorted means lie outside the interval at each end: the greatest number C for
 * which P(T < C) is at most (1 - CONFIDENCE) / 2, T being the sum of the ranks of the positive ones, of 1 … COUNT each
 * positive with probability 1/2. 0: the least and the greatest mean do not hold it. */
static size_t means_outside(size_t count, double confidence)
{
    double chance[MEANS_MOST + 1] = {1};
    size_t highest = 0;
    for (size_t rank = 1; rank <= count; rank++) {
        highest += rank;
        for (size_t sum = highest + 1; sum-- > 0;)
            chance[sum] = (chance[sum] + (sum >= rank ? chance[sum - rank] : 0)) / 2;
    }
    double below = 0;
    size_t outside = 0;
    while (outside <= highest && below + chance[outside] <= (1 - confidence) / 2 * (1 + 1e-12))
        below += chance[outside++];
    return outside;
}

size_t hw_pairs_least(double confidence)
{
    size_t count = 1;
    while (count < HW_PAIRS_MOST && means_outside(count, confidence) == 0)
        count++;
    return count;
}

struct hw_ratio hw_ratio_of_pairs(const double *base, const double *one, size_t count, double confidence)
{
    double logs[HW_PAIRS_MOST], means[MEANS_MOST];
    size_t known = 0, made = 0;
    for (size_t i = 0; i < count && i < HW_PAIRS_MOST; i++)
        if (base[i] > 0 && one[i] > 0)
            logs[known++] = log(one[i] / base[i]);
    if (known == 0)
        return (struct hw_ratio){.value = 0};
    for (size_t i = 0; i < known; i++)
        for (size_t k = i; k < known; k++)
            means[made++] = (logs[i] + logs[k]) / 2;
    qsort(means, made, sizeof *means, by_value);
    const size_t outside = means_outside(known, confidence);
    struct hw_ratio ratio = {.value = exp(made % 2 ? means[made / 2] : (means[made / 2 - 1] + means[made / 2]) / 2),
                             .known = outside > 0};
    const size_t end = outside ? outside - 1 : 0;
    ratio.low = exp(means[end]);
    ratio.high = exp(means[made - 1 - end]);
    return ratio;
}

uint64_t hw_random(uint64_t *state)
{
    uint64_t mixed = *state += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

double hw_random_unit(uint64_t *state)
{
    return (double)(hw_random(state) >> 11) * 0x1p-53;
}

void hw_random_order(uint64_t *state, size_t *order, size_t count)
{
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    for (size_t i = count; i > 1; i--) {
        const size_t k = (size_t)(hw_random_unit(state) * (double)i), other = order[i - 1];
        order[i - 1] = order[k];
        order[k] = other;
    }
}
