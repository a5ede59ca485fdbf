/* measure.h - what contexts can be weighed by: numbers that add up over contexts, so that a flame graph, a table or a
 * difference can be made of them. */
#ifndef HW_REPORT_VIEW_MEASURE_H
#define HW_REPORT_VIEW_MEASURE_H

#include "report/view/view.h"

enum hw_measure_unit { HW_UNIT_BYTES, HW_UNIT_COUNT, HW_UNIT_NS };

struct hw_measure {
    const char *key;   /* of --value and --sort: that of report --sort where it has one */
    const char *json;  /* its key in the JSON report, or NULL: understood as well */
    const char *title; /* "live at the peak" */
    const char *name;  /* as a sample type: "peak_space" */
    enum hw_measure_unit unit;
};

/* Indexes of hw_measures. */
enum hw_measure_id {
    HW_MEASURE_PEAK,
    HW_MEASURE_PEAK_COUNT,
    HW_MEASURE_BYTES,
    HW_MEASURE_COUNT,
    HW_MEASURE_LEAKED,
    HW_MEASURE_LIVE_COUNT,
    HW_MEASURE_FREES,
    HW_MEASURE_TEMPORARY,
    HW_MEASURE_REALLOC,
    HW_MEASURE_LIFETIME, /* of freed blocks, summed */
    HW_MEASURE_POOLS,    /* bytes in pools of the program; all measures before leave those out */
    HW_MEASURE_ACCESSES,
    HW_MEASURE_READS,
    HW_MEASURE_WRITES,
    HW_MEASURE_UNTOUCHED, /* bytes of granules that were never touched */
    HW_MEASURE_NEVER_ACCESSED,
    HW_MEASURE_NEVER_READ,
    HW_MEASURE_SHARED,
    HW_MEASURES
};

extern const struct hw_measure hw_measures[HW_MEASURES];

/* The measure called NAME, by its key or that of the JSON report; HW_MEASURES when there is none. */
enum hw_measure_id hw_measure_find(const char *name);

/* All keys, separated by ", ". */
const char *hw_measure_keys(char *buffer, size_t size);

/* "bytes", "count", "nanoseconds". */
const char *hw_measure_unit_name(enum hw_measure_unit unit);

/* NULL when the profile tells it; else why not, as the end of a sentence: "the run was sampled". */
const char *hw_measure_unknown(const struct hw_view *view, enum hw_measure_id id);

/* Never below zero. 0 where it is not known: ask hw_measure_unknown first. */
uint64_t hw_measure_value(const struct hw_view *view, enum hw_measure_id id, const struct hw_view_context *context);

/* Sum over all contexts; UINT64_MAX when that does not fit. */
uint64_t hw_measure_total(const struct hw_view *view, enum hw_measure_id id);

/* Of the whole process: also what is in no context, where that is known. Of a view of one function, of that. */
uint64_t hw_measure_whole(const struct hw_view *view, enum hw_measure_id id);

/* Two standard deviations of hw_measure_whole in a sampled run: the true value lies within that distance 19 times out
 * of 20. 0 in a run that was not sampled. From the sums that the runtime keeps for each context
 * (runtime/heap/sampling.c); older files lack them, and it is a wider bound there, made of mean sizes. In allocator
 * mode the probability is the share of a context's allocations that were looked at, and the peak and the number of
 * allocations are exact: 0. */
double hw_measure_uncertainty(const struct hw_view *view, enum hw_measure_id id);

/* What is asked for first: bytes live at the peak, or bytes where the peak is not known. */
enum hw_measure_id hw_measure_usual(const struct hw_view *view);

#endif
