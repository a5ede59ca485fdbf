/* perf.h - samples of perf (heapwise import perf), for reports. */
#ifndef HW_REPORT_VIEW_PERF_H
#define HW_REPORT_VIEW_PERF_H

#include "report/view/view.h"

/* Keys of JSON, and short words for the same. */
extern const char *const hw_perf_level_keys[HW_PERF_LEVELS];
extern const char *const hw_perf_level_words[HW_PERF_LEVELS];
extern const char *const hw_perf_scope_keys[HW_PERF_SCOPES];
extern const char *const hw_perf_scope_words[HW_PERF_SCOPES];

/* The sum of SCOPE, which is none of blocks; NULL: there is none. */
const struct hw_perf_count *hw_perf_scope_sum(const struct hw_profile *profile, enum hw_perf_scope scope);
/* Entries PLACE of contexts that the view has, those with most samples first. Their words follow each in the profile.
 * To be freed; *COUNT. NULL: no memory. */
const struct hw_perf_count **hw_perf_places(const struct hw_view *view, size_t *count);
/* The words behind PLACE, by offset; *COUNT. */
const struct hw_perf_count *hw_perf_words(const struct hw_profile *profile, const struct hw_perf_count *place,
                                          size_t *count);

#endif
