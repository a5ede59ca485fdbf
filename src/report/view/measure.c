/* measure.c - see measure.h. */
#include "report/view/measure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/text/human.h"

const struct hw_measure hw_measures[HW_MEASURES] = {
    [HW_MEASURE_PEAK] = {"peak", "peak_bytes", "live at the peak", "peak_space", HW_UNIT_BYTES},
    [HW_MEASURE_PEAK_COUNT] = {"peak-count", "peak_allocations", "blocks live at the peak", "peak_objects",
                               HW_UNIT_COUNT},
    [HW_MEASURE_BYTES] = {"bytes", "bytes_allocated", "allocated", "alloc_space", HW_UNIT_BYTES},
    [HW_MEASURE_COUNT] = {"count", "allocations", "allocations", "alloc_objects", HW_UNIT_COUNT},
    [HW_MEASURE_LEAKED] = {"leaked", "live_bytes", "not freed", "inuse_space", HW_UNIT_BYTES},
    [HW_MEASURE_LIVE_COUNT] = {"live-count", "live_allocations", "blocks not freed", "inuse_objects", HW_UNIT_COUNT},
    [HW_MEASURE_FREES] = {"frees", NULL, "frees", "freed_objects", HW_UNIT_COUNT},
    [HW_MEASURE_TEMPORARY] = {"temporary", "temporary_allocations", "temporary blocks", "temporary_objects",
                              HW_UNIT_COUNT},
    [HW_MEASURE_REALLOC] = {"realloc", "reallocations", "reallocations", "reallocations", HW_UNIT_COUNT},
    [HW_MEASURE_LIFETIME] = {"lifetime", "lifetime_ns", "lifetimes of freed blocks, summed", "lifetime", HW_UNIT_NS},
    [HW_MEASURE_POOLS] = {"pools", NULL, "in pools of the program", "pool_space", HW_UNIT_BYTES},
    [HW_MEASURE_ACCESSES] = {"accesses", NULL, "accesses", "accesses", HW_UNIT_COUNT},
    [HW_MEASURE_READS] = {"reads", NULL, "reads", "reads", HW_UNIT_COUNT},
    [HW_MEASURE_WRITES] = {"writes", NULL, "writes", "writes", HW_UNIT_COUNT},
    [HW_MEASURE_UNTOUCHED] = {"utilization", NULL, "bytes never touched", "untouched_space", HW_UNIT_BYTES},
    [HW_MEASURE_NEVER_ACCESSED] = {"never-accessed", "never_accessed", "blocks never accessed",
                                   "never_accessed_objects", HW_UNIT_COUNT},
    [HW_MEASURE_NEVER_READ] = {"never-read", "written_never_read", "blocks written, never read", "never_read_objects",
                               HW_UNIT_COUNT},
    [HW_MEASURE_SHARED] = {"shared", "shared_granules", "granules that several threads touched", "shared_granules",
                           HW_UNIT_COUNT},
};

enum hw_measure_id hw_measure_find(const char *name)
{
    enum hw_measure_id id = 0;
    while (id < HW_MEASURES && strcmp(hw_measures[id].key, name) &&
           (!hw_measures[id].json || strcmp(hw_measures[id].json, name)))
        id++;
    return id;
}

const char *hw_measure_keys(char *buffer, size_t size)
{
    size_t used = 0;
    *buffer = '\0';
    for (size_t i = 0; i < HW_MEASURES && used < size; i++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%s", i ? ", " : "", hw_measures[i].key);
    return buffer;
}

const char *hw_measure_unit_name(enum hw_measure_unit unit)
{
    static const char *const names[] = {
        [HW_UNIT_BYTES] = "bytes", [HW_UNIT_COUNT] = "count", [HW_UNIT_NS] = "nanoseconds"};
    return names[unit];
}

static const char *access_unknown(const struct hw_view *view, enum hw_measure_id id)
{
    const struct hw_profile *profile = view->profile;
    const bool of_granules = id >= HW_MEASURE_UNTOUCHED;
    if (!profile->access_counted)
        return "accesses were not counted (heapwise cc)";
    if (of_granules && !hw_view_measured(view, HW_MEASURED_GRANULES))
        return "this kind of profile does not record it";
    if (!of_granules && hw_profile_counts_periods(profile))
        return "it was made with --granule=4, which does not count accesses";
    if ((id == HW_MEASURE_READS || id == HW_MEASURE_WRITES || id == HW_MEASURE_NEVER_READ) &&
        !(profile->access_info.flags & HW_ACCESS_SPLIT) && profile->access.all.unsplit)
        return "reads and writes were not distinguished";
    return NULL;
}

const char *hw_measure_unknown(const struct hw_view *view, enum hw_measure_id id)
{
    if (id >= HW_MEASURE_ACCESSES)
        return access_unknown(view, id);
    if (hw_view_sampled(view) && (id == HW_MEASURE_TEMPORARY || id == HW_MEASURE_REALLOC))
        return "the run was sampled";
    static const enum hw_measured needed[HW_MEASURE_ACCESSES] = {
        [HW_MEASURE_PEAK] = HW_MEASURED_PEAK,      [HW_MEASURE_PEAK_COUNT] = HW_MEASURED_PEAK,
        [HW_MEASURE_BYTES] = HW_MEASURED_TOTALS,   [HW_MEASURE_COUNT] = HW_MEASURED_TOTALS,
        [HW_MEASURE_LEAKED] = HW_MEASURED_LIVE,    [HW_MEASURE_LIVE_COUNT] = HW_MEASURED_LIVE,
        [HW_MEASURE_FREES] = HW_MEASURED_EVENTS,   [HW_MEASURE_TEMPORARY] = HW_MEASURED_EVENTS,
        [HW_MEASURE_REALLOC] = HW_MEASURED_EVENTS, [HW_MEASURE_LIFETIME] = HW_MEASURED_LIFETIMES,
        [HW_MEASURE_POOLS] = HW_MEASURED_TOTALS,
    };
    return hw_view_measured(view, needed[id]) ? NULL
           : view->profile->llvm              ? "this kind of profile does not record it"
           : view->profile->totals_lost       ? "that part of the file is damaged"
           : view->profile->process_lost
               ? "that part of the file is damaged"
               : "the address space had no room (ulimit -v, or mappings of the program), so sizes of freed blocks "
                 "are not known";
}

static uint64_t of_accesses(const struct hw_view *view, enum hw_measure_id id, const struct hw_profile_access *access)
{
    switch (id) {
    case HW_MEASURE_ACCESSES:
        return hw_profile_access_total(access);
    case HW_MEASURE_READS:
        return access->reads;
    case HW_MEASURE_WRITES:
        return access->writes;
    case HW_MEASURE_UNTOUCHED:
        return hw_untouched_granules(access) * view->profile->access_info.granule;
    case HW_MEASURE_NEVER_ACCESSED:
        return access->never_accessed;
    case HW_MEASURE_NEVER_READ:
        return access->written_never_read;
    default:
        return access->shared_granules;
    }
}

uint64_t hw_measure_value(const struct hw_view *view, enum hw_measure_id id, const struct hw_view_context *context)
{
    const struct hw_profile_context *sum = &context->sum;
    if (id >= HW_MEASURE_ACCESSES)
        return sum->access ? of_accesses(view, id, &sum->access->all) : 0;
    if (sum->pool != (id == HW_MEASURE_POOLS))
        return 0;
    const uint64_t values[HW_MEASURE_ACCESSES] = {
        [HW_MEASURE_PEAK] = hw_not_negative(sum->peak_bytes),
        [HW_MEASURE_PEAK_COUNT] = hw_not_negative(sum->peak_blocks),
        [HW_MEASURE_BYTES] = sum->bytes,
        [HW_MEASURE_COUNT] = sum->allocations,
        [HW_MEASURE_LEAKED] = hw_not_negative(sum->live_bytes),
        [HW_MEASURE_LIVE_COUNT] = hw_not_negative(sum->live_blocks),
        [HW_MEASURE_FREES] = sum->frees,
        [HW_MEASURE_TEMPORARY] = sum->temporary,
        [HW_MEASURE_REALLOC] = sum->reallocations,
        [HW_MEASURE_LIFETIME] = sum->lifetime_total_ns > UINT64_MAX ? UINT64_MAX : (uint64_t)sum->lifetime_total_ns,
        [HW_MEASURE_POOLS] = sum->bytes,
    };
    return values[id];
}

uint64_t hw_measure_total(const struct hw_view *view, enum hw_measure_id id)
{
    uint64_t total = 0;
    for (size_t i = 0; i < view->context_count; i++)
        total = hw_add_saturating(total, hw_measure_value(view, id, &view->contexts[i]));
    return total;
}

uint64_t hw_measure_whole(const struct hw_view *view, enum hw_measure_id id)
{
    const struct hw_profile_totals *totals = &view->totals;
    if (view->function)
        return hw_measure_total(view, id);
    switch (id) {
    case HW_MEASURE_PEAK:
        return view->profile->process.peak_bytes;
    case HW_MEASURE_BYTES:
        return totals->bytes;
    case HW_MEASURE_COUNT:
        return totals->allocations;
    case HW_MEASURE_LEAKED:
        return hw_not_negative(totals->live_bytes);
    case HW_MEASURE_LIVE_COUNT:
        return hw_not_negative(totals->live_blocks);
    default:
        return hw_measure_total(view, id);
    }
}

/* The probability that a block of a context is in the sample: by its size; or, where that is not how they were drawn,
 * as many as there are of them. */
static double drawn(const struct hw_view *view, const struct hw_profile_context *sum)
{
    const double distance = (double)view->profile->process.sample_bytes;
    if (distance > 0)
        return -expm1(-(double)sum->bytes / (double)sum->allocations / distance);
    return sum->samples < sum->allocations ? (double)sum->samples / (double)sum->allocations : 1;
}

/* Blocks taken for ones of their context's mean size: value / weight of them, each in the sample or not. */
static double rough_variance(const struct hw_view *view, enum hw_measure_id id, const struct hw_profile_context *sum,
                             double value)
{
    const double size = (double)sum->bytes / (double)sum->allocations, p = drawn(view, sum);
    const double weight = hw_measures[id].unit == HW_UNIT_BYTES ? size : 1;
    return p > 0 ? weight * value * (1 - p) / p : 0;
}

/* By the sums that sampled runs keep: what is live is what is not freed; the peak is taken to have the context's usual
 * mix of sizes. */
static double kept_variance(enum hw_measure_id id, const struct hw_profile_context *sum, double value)
{
    const double count = (double)sum->count_variance / HW_COUNT_VARIANCE_UNIT;
    const double freed = (double)sum->freed_count_variance / HW_COUNT_VARIANCE_UNIT;
    const double bytes = (double)sum->bytes_variance * HW_BYTES_VARIANCE_UNIT;
    const double freed_bytes = (double)sum->freed_bytes_variance * HW_BYTES_VARIANCE_UNIT;
    const double older = (double)sum->inherited_count_variance / HW_COUNT_VARIANCE_UNIT;
    const double older_bytes = (double)sum->inherited_bytes_variance * HW_BYTES_VARIANCE_UNIT;
    switch (id) {
    case HW_MEASURE_COUNT:
        return count;
    case HW_MEASURE_FREES:
        return freed;
    case HW_MEASURE_LIVE_COUNT:
        return count + older > freed ? count + older - freed : 0;
    case HW_MEASURE_LEAKED:
        return bytes + older_bytes > freed_bytes ? bytes + older_bytes - freed_bytes : 0;
    case HW_MEASURE_BYTES:
        return bytes;
    case HW_MEASURE_PEAK:
        return (bytes + older_bytes) * value / ((double)sum->bytes + (double)hw_not_negative(sum->inherited_bytes));
    default:
        return sum->allocations ? count * value / (double)sum->allocations : 0;
    }
}

/* Allocator mode counts some numbers of the process apart from its samples; other runs that are merged with it are
 * exact if they are not sampled. */
static bool counted_apart(const struct hw_view *view, enum hw_measure_id id)
{
    const struct hw_profile *profile = view->profile;
    const struct hw_profile_allocator *observed = profile->observed;
    const bool merged = profile->process.flags & HW_PROCESS_MERGED;
    const bool others = merged && observed && observed->runs != profile->process.runs;
    if (!observed || view->function || (others && profile->process.sample_bytes))
        return false;
    switch (id) {
    case HW_MEASURE_COUNT:
    case HW_MEASURE_FREES:
        return true;
    case HW_MEASURE_BYTES:
        return hw_profile_bytes_exact(profile);
    case HW_MEASURE_PEAK:
    case HW_MEASURE_LEAKED:
    case HW_MEASURE_LIVE_COUNT:
        return hw_profile_measured(profile, HW_MEASURED_LIVE);
    default:
        return false;
    }
}

double hw_measure_uncertainty(const struct hw_view *view, enum hw_measure_id id)
{
    double variance = 0, rough = 0;
    if (counted_apart(view, id))
        return 0;
    for (size_t i = 0; hw_view_sampled(view) && i < view->context_count; i++) {
        const struct hw_profile_context *sum = &view->contexts[i].sum;
        const double value = (double)hw_measure_value(view, id, &view->contexts[i]);
        if (!(value > 0))
            continue;
        if (sum->count_variance | sum->bytes_variance | sum->inherited_count_variance | sum->inherited_bytes_variance)
            variance += kept_variance(id, sum, value);
        else if (sum->allocations && sum->bytes)
            rough += rough_variance(view, id, sum, value);
    }
    const struct hw_process_info *process = &view->profile->process;
    if (id == HW_MEASURE_PEAK && !view->function && process->peak_variance) {
        const double peak = (double)process->peak_variance * HW_BYTES_VARIANCE_UNIT;
        if (!(process->flags & HW_PROCESS_MERGED) || peak > variance) /* some of them may be older files */
            return 2 * sqrt(peak);
    }
    /* Older files have no sums; with mixed sizes the truth was up to 2.6 times as uncertain as the mean size says. */
    const double wider = view->profile->process.sample_bytes ? 2.6 * 2.6 : 1;
    return 2 * sqrt(variance + wider * rough);
}

enum hw_measure_id hw_measure_usual(const struct hw_view *view)
{
    return !hw_measure_unknown(view, HW_MEASURE_PEAK) && hw_measure_total(view, HW_MEASURE_PEAK) ? HW_MEASURE_PEAK
                                                                                                 : HW_MEASURE_BYTES;
}
