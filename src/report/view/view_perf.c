/* view_perf.c - see perf.h. */
#include "report/view/perf.h"

#include <stdlib.h>

#include "base/order.h"

const char *const hw_perf_level_keys[HW_PERF_LEVELS] = {
    [HW_PERF_L1] = "l1",
    [HW_PERF_LFB] = "lfb",
    [HW_PERF_L2] = "l2",
    [HW_PERF_L3] = "l3",
    [HW_PERF_DRAM] = "dram",
    [HW_PERF_REMOTE_CACHE] = "remote_cache",
    [HW_PERF_REMOTE_DRAM] = "remote_dram",
    [HW_PERF_OTHER_MEMORY] = "other",
    [HW_PERF_MISS] = "miss",
    [HW_PERF_UNKNOWN] = "unknown",
};
const char *const hw_perf_level_words[HW_PERF_LEVELS] = {
    [HW_PERF_L1] = "L1",
    [HW_PERF_LFB] = "LFB",
    [HW_PERF_L2] = "L2",
    [HW_PERF_L3] = "L3",
    [HW_PERF_DRAM] = "DRAM",
    [HW_PERF_REMOTE_CACHE] = "remote cache",
    [HW_PERF_REMOTE_DRAM] = "remote DRAM",
    [HW_PERF_OTHER_MEMORY] = "other",
    [HW_PERF_MISS] = "miss",
    [HW_PERF_UNKNOWN] = "not known",
};
const char *const hw_perf_scope_keys[HW_PERF_SCOPES] = {
    [HW_PERF_ALL] = "all",           [HW_PERF_BLOCKS] = "blocks",       [HW_PERF_STACK] = "stack",
    [HW_PERF_MODULES] = "files",     [HW_PERF_ELSEWHERE] = "elsewhere", [HW_PERF_PLACE] = "place",
    [HW_PERF_WORD] = "word",
};
const char *const hw_perf_scope_words[HW_PERF_SCOPES] = {
    [HW_PERF_ALL] = "All samples",      [HW_PERF_BLOCKS] = "Known blocks", [HW_PERF_STACK] = "First thread's stack",
    [HW_PERF_MODULES] = "Mapped files", [HW_PERF_ELSEWHERE] = "Elsewhere", [HW_PERF_PLACE] = "Place",
    [HW_PERF_WORD] = "Word",
};

const struct hw_perf_count *hw_perf_scope_sum(const struct hw_profile *profile, enum hw_perf_scope scope)
{
    for (size_t i = 0; i < profile->perf_count; i++)
        if (profile->perf_counts[i].scope == scope)
            return &profile->perf_counts[i];
    return NULL;
}

static int compare(const void *left, const void *right)
{
    const struct hw_perf_count *a = *(const struct hw_perf_count *const *)left,
                               *b = *(const struct hw_perf_count *const *)right;
    return HW_ORDER(b->samples, a->samples) ?: HW_ORDER(a->context, b->context);
}

const struct hw_perf_count **hw_perf_places(const struct hw_view *view, size_t *count)
{
    const struct hw_profile *profile = view->profile;
    const struct hw_perf_count **sorted = calloc(profile->perf_count + 1, sizeof *sorted);
    *count = 0;
    for (size_t i = 0; sorted && i < profile->perf_count; i++)
        if (profile->perf_counts[i].scope == HW_PERF_PLACE && hw_view_context_of(view, profile->perf_counts[i].context))
            sorted[(*count)++] = &profile->perf_counts[i];
    if (sorted)
        qsort(sorted, *count, sizeof *sorted, compare);
    return sorted;
}

const struct hw_perf_count *hw_perf_words(const struct hw_profile *profile, const struct hw_perf_count *place,
                                          size_t *count)
{
    const struct hw_perf_count *end = profile->perf_counts + profile->perf_count, *word = place + 1;
    *count = 0;
    while (word + *count < end && word[*count].scope == HW_PERF_WORD && word[*count].context == place->context)
        ++*count;
    return word;
}
