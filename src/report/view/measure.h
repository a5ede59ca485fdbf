/* measure.h - what contexts can be weighed by: numbers that add up over contexts, so that a flame graph, a table or a
 * difference can be made of them. */
#ifndef HW_REPORT_VIEW_MEASURE_H
#define HW_REPORT_VIEW_MEASURE_H

#include <math.h>

#include "report/view/view.h"

enum hw_measure_unit { HW_UNIT_BYTES, HW_UNIT_COUNT, HW_UNIT_NS };

struct hw_measure {
    const char *key;   /* of --value and --sort: that of report --sort where it has one */
    const char *json;  /* its key in the JSON report, or NULL: understood as well */
    const char *title; /* "live at the peak" */
    const char *name;  /* as a sample type: "peak_space" */
    enum hw_measure_unit unit;
    const char *sentence; /* what it is, for documents */
};

/* Indexes of hw_measures. All before POOLS leave out pools of the program; those from ACCESSES on need counted
 * accesses.
 */
enum hw_measure_id {
#define HW_BOTH(id, ...)  HW_MEASURE_##id,
#define HW_VALUE(id, ...) HW_MEASURE_##id,
#include "report/view/measures.def"
    HW_MEASURES
};

extern const struct hw_measure hw_measures[HW_MEASURES];

/* The lists of a report. */
struct hw_list_key {
    const char *key, *sentence;
};
extern const struct hw_list_key hw_list_keys[HW_SORT_KEYS];

/* The measure called NAME, by its key or that of the JSON report; HW_MEASURES when there is none. *NOW: NULL, or the
 * new key where NAME is an old one. */
enum hw_measure_id hw_measure_find(const char *name, const char **now);
/* The same for the list called NAME (SIZE bytes); HW_SORT_KEYS when there is none. */
enum hw_sort_key hw_list_find(const char *name, size_t size, const char **now);

/* All keys, separated by ", ". */
const char *hw_measure_keys(char *buffer, size_t size);

/* "bytes", "count", "nanoseconds". */
const char *hw_measure_unit_name(enum hw_measure_unit unit);

/* NULL when the profile has it; else why not, as the end of a sentence: "the run was sampled". */
const char *hw_measure_unknown(const struct hw_view *view, enum hw_measure_id id);

/* Why nobody searched for lost blocks: a sentence without its full stop. */
const char *hw_not_searched(const struct hw_profile *profile);
/* The same of contents of blocks. */
const char *hw_not_examined(const struct hw_profile *profile);
/* The same of who keeps blocks, and of pages. */
const char *hw_not_kept(const struct hw_profile *profile);
const char *hw_not_walked(const struct hw_profile *profile);
/* Never below zero. 0 where it is not known: ask hw_measure_unknown first. */
uint64_t hw_measure_value(const struct hw_view *view, enum hw_measure_id id, const struct hw_view_context *context);

/* Sum over all contexts; UINT64_MAX when that does not fit. */
uint64_t hw_measure_total(const struct hw_view *view, enum hw_measure_id id);

/* Of the whole process: also what is in no context, where that is known. Of a view of one function, of that. */
uint64_t hw_measure_whole(const struct hw_view *view, enum hw_measure_id id);

/* How far a number of a sampled run may be from the truth, 19 times out of 20 or more. VARIANCE and THIRD: of the
 * number, second and third cumulant, as the samples give them; LEAST: what one block that was not seen may stand for.
 * The third one divided by the second is what one sample stands for: so many times as many blocks as have a deviation
 * of two from what was seen (for k samples k + 2 + 2 sqrt(k + 1), a score interval). With many samples it is two
 * standard deviations; with few of them those are as uncertain as the number itself. */
static inline double hw_measure_within(double variance, double third, double least)
{
    const double step = fmax(variance > 0 ? third / variance : 0, least);
    return 2 * step + 2 * sqrt(variance + step * step);
}

/* The least blocks that many programs have: how many of them may be there unseen. */
#define HW_MEASURE_TINY 16

/* How far hw_measure_whole may be from the truth in a sampled run (hw_measure_within). 0 in a run that was not sampled.
 * From the sums that the runtime keeps for each context (runtime/heap/sampling.c); older files lack them, and it is a
 * wider bound there, made of mean sizes. In allocator mode the probability is the share of a context's allocations that
 * were sampled, and the peak and the number of allocations are exact: 0. */
double hw_measure_uncertainty(const struct hw_view *view, enum hw_measure_id id);

/* What is asked for first: bytes live at the peak, or bytes where the peak is not known. */
enum hw_measure_id hw_measure_usual(const struct hw_view *view);

#endif
