/* merged.h - what a report says of a profile that is the sum of several (heapwise merge). */
#ifndef HW_REPORT_VIEW_MERGED_H
#define HW_REPORT_VIEW_MERGED_H

#include <jansson.h>

#include "report/buffer.h"
#include "report/view/view.h"

static inline bool hw_is_merged(const struct hw_profile *profile)
{
    return profile->process.flags & HW_PROCESS_MERGED;
}

/* Lines of the summary. */
void hw_merged_run(const struct hw_profile *profile, bool utf8, struct hw_buffer *out);
void hw_merged_peak(const struct hw_profile *profile, struct hw_buffer *out);

/* Sentences about what a sum lacks. */
void hw_merged_not_observed(const struct hw_profile *profile, struct hw_buffer *out);

/* The array of runs; NULL when there is no memory. TEXT makes a value of foreign text. */
json_t *hw_merged_json(const struct hw_profile *profile, json_t *(*text)(void *closure, const char *text),
                       void *closure);

#endif
