/* statistics.h - what paired runs say: by how much one of two differs from the other, and how sure that is. Arithmetic
 * only.
 *
 * Two runs are a pair when they were made one soon after the other, in an order drawn by lot. If the two do not
 * differ, each log ratio of a pair is then as likely above 0 as below, whatever the machine did meanwhile: drift,
 * bursts and heavy tails fall on both alike. The interval rests on that alone (Fisher's randomisation; Edgington and
 * Onghena, Randomization Tests, 4th ed., 2007). */
#ifndef HW_TUNING_STATISTICS_H
#define HW_TUNING_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/compare.h"

#define HW_PAIRS_MOST HW_ROUNDS_MOST

/* A ratio: below 1 is less. */
struct hw_ratio {
    double value;
    bool known;       /* there is an interval: enough pairs for the confidence */
    double low, high; /* of it; else the least and the greatest ratio of a pair */
};

/* The ratio of ONE to BASE, pair by pair: the Hodges-Lehmann estimate (the median of the means of any two log ratios,
 * each with itself too) and the interval of at least CONFIDENCE that the Wilcoxon signed-rank test does not reject,
 * from its exact distribution (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3rd ed., 2014, sections
 * 3.2 and 3.3). Pairs with a value that is not above 0 are left out; value is 0 when there are none.
 * COUNT: at most HW_PAIRS_MOST. CONFIDENCE: 0.5 to 0.9999. */
struct hw_ratio hw_ratio_of_pairs(const double *base, const double *one, size_t count, double confidence);

/* The fewest pairs for which there is an interval of CONFIDENCE: 6 for 0.95. */
size_t hw_pairs_least(double confidence);

/* Random numbers, the same for the same SEED (splitmix64: Steele, Lea and Flood, Fast Splittable Pseudorandom Number
 * Generators, OOPSLA 2014). The state may begin with any value. */
uint64_t hw_random(uint64_t *state);
/* In [0, 1). */
double hw_random_unit(uint64_t *state);
/* ORDER: 0 … COUNT - 1 in an order drawn by lot, each order as likely (Fisher-Yates). */
void hw_random_order(uint64_t *state, size_t *order, size_t count);

#endif
