/* pairs.c - see pairs.h. */
#include "tuning/pairs.h"

const struct hw_metric_kind hw_metric_kinds[HW_METRICS] = {
    [HW_METRIC_WALL] = {"wall_time", "wall time", HW_UNIT_SECONDS},
    [HW_METRIC_CPU] = {"cpu_time", "CPU time", HW_UNIT_SECONDS},
    [HW_METRIC_RSS] = {"peak_rss", "peak RSS", HW_UNIT_BYTES},
    [HW_METRIC_RSS_AFTER] = {"rss_after_peak", "RSS after peak", HW_UNIT_BYTES},
    [HW_METRIC_FAULTS] = {"page_faults", "page faults", HW_UNIT_COUNT},
    [HW_METRIC_LOAD + HW_LOAD_THROUGHPUT] = {"throughput", "requests / s", HW_UNIT_RATE},
    [HW_METRIC_LOAD + HW_LOAD_MEAN] = {"latency_mean", "mean latency", HW_UNIT_SECONDS},
    [HW_METRIC_LOAD + HW_LOAD_P50] = {"latency_p50", "p50 latency", HW_UNIT_SECONDS},
    [HW_METRIC_LOAD + HW_LOAD_P99] = {"latency_p99", "p99 latency", HW_UNIT_SECONDS},
    [HW_METRIC_LOAD + HW_LOAD_P999] = {"latency_p999", "p99.9 latency", HW_UNIT_SECONDS},
};

double hw_metric_of(const struct hw_run_cost *cost, enum hw_metric metric)
{
    switch (metric) {
    case HW_METRIC_WALL:
        return cost->wall_s;
    case HW_METRIC_CPU:
        return cost->user_s + cost->system_s;
    case HW_METRIC_RSS:
        return (double)cost->peak_rss_bytes;
    case HW_METRIC_RSS_AFTER:
        return (double)cost->rss_after_bytes;
    case HW_METRIC_FAULTS:
        return (double)(cost->minor_faults + cost->major_faults);
    default:
        return metric < HW_METRICS ? cost->load[metric - HW_METRIC_LOAD] : 0;
    }
}

void hw_pairs_add(struct hw_pairs *pairs, const struct hw_run_cost *a, const struct hw_run_cost *b)
{
    if (pairs->count == HW_PAIRS_MOST)
        return;
    for (int metric = 0; metric < HW_METRICS; metric++) {
        pairs->a[metric][pairs->count] = hw_metric_of(a, (enum hw_metric)metric);
        pairs->b[metric][pairs->count] = hw_metric_of(b, (enum hw_metric)metric);
    }
    pairs->count++;
}

/* Where some values are not known the rest would be another sample than the whole: then there is none. */
static bool all_known(const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(values[i] > 0))
            return false;
    return count > 0;
}

struct hw_change hw_pairs_change(const struct hw_pairs *pairs, enum hw_metric metric, double tolerance)
{
    struct hw_change change = {.verdict = HW_CHANGE_UNKNOWN};
    const double *a = pairs->a[metric], *b = pairs->b[metric];
    if (all_known(a, pairs->count))
        change.a = hw_median(a, pairs->count);
    if (all_known(b, pairs->count))
        change.b = hw_median(b, pairs->count);
    if (!(change.a > 0) || !(change.b > 0))
        return change;
    change.ratio = hw_ratio_of_pairs(a, b, pairs->count, HW_CONFIDENCE);
    if (!change.ratio.known)
        return change;
    const bool more = metric == HW_METRIC_LOAD + HW_LOAD_THROUGHPUT;
    change.verdict = change.ratio.low > 1    ? more ? HW_CHANGE_BETTER : HW_CHANGE_WORSE
                     : change.ratio.high < 1 ? more ? HW_CHANGE_WORSE : HW_CHANGE_BETTER
                                             : HW_CHANGE_NONE;
    change.beyond = more ? change.ratio.high * (1 + tolerance) < 1 : change.ratio.low > 1 + tolerance;
    return change;
}
