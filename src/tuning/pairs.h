/* pairs.h - pairs of runs, one of A and one of B each, and what they say of B. */
#ifndef HW_TUNING_PAIRS_H
#define HW_TUNING_PAIRS_H

#include "allocators/timed_runs.h"
#include "tuning/statistics.h"

#define HW_CONFIDENCE 0.95

/* What a run costs, and, from HW_METRIC_LOAD on, what the load generator of a server measured. */
enum hw_metric {
    HW_METRIC_WALL,
    HW_METRIC_CPU,
    HW_METRIC_RSS,
    HW_METRIC_RSS_AFTER,
    HW_METRIC_FAULTS,
    HW_METRIC_LOAD, /* throughput: of this one more is better, of the others less; then as enum hw_load_number */
    HW_METRICS = HW_METRIC_LOAD + HW_LOAD_NUMBERS
};

struct hw_metric_kind {
    const char *key, *title; /* "wall_time", "wall time" */
    enum hw_metric_unit { HW_UNIT_SECONDS, HW_UNIT_BYTES, HW_UNIT_COUNT, HW_UNIT_RATE } unit;
};
extern const struct hw_metric_kind hw_metric_kinds[HW_METRICS];

/* 0: not known. */
double hw_metric_of(const struct hw_run_cost *cost, enum hw_metric metric);

struct hw_pairs {
    size_t count;
    double a[HW_METRICS][HW_PAIRS_MOST], b[HW_METRICS][HW_PAIRS_MOST];
};

/* Without effect when there are HW_PAIRS_MOST. */
void hw_pairs_add(struct hw_pairs *pairs, const struct hw_run_cost *a, const struct hw_run_cost *b);

enum hw_change_verdict {
    HW_CHANGE_UNKNOWN, /* it was not measured, or in too few pairs */
    HW_CHANGE_NONE,    /* the interval holds 1: no difference beyond the noise */
    HW_CHANGE_BETTER,  /* B needs less, or serves more requests */
    HW_CHANGE_WORSE,
};

struct hw_change {
    double a, b;           /* medians; 0: not known */
    struct hw_ratio ratio; /* of B to A; interval of HW_CONFIDENCE */
    enum hw_change_verdict verdict;
    bool beyond; /* worse, and the whole interval is beyond the tolerance */
};

/* TOLERANCE: 0.05 lets B need 5 % more. */
struct hw_change hw_pairs_change(const struct hw_pairs *pairs, enum hw_metric metric, double tolerance);

#endif
