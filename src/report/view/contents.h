/* contents.h - what live blocks hold (record --contents), for reports. */
#ifndef HW_REPORT_VIEW_CONTENTS_H
#define HW_REPORT_VIEW_CONTENTS_H

#include "report/buffer.h"
#include "report/view/view.h"

/* Entries of contexts that the view has, most avoidable bytes first. To be freed; *COUNT. NULL: no memory. */
const struct hw_contents **hw_contents_sorted(const struct hw_view *view, size_t *count);
/* The entry of each context of the view, or NULL. To be freed. NULL: no memory. */
const struct hw_contents **hw_contents_by_context(const struct hw_view *view);
/* The sum over them without pools, whose memory belongs to other blocks. */
struct hw_contents hw_contents_sum(const struct hw_view *view);
/* The examples of a context, or of all (HW_NONE), most frequent first; how many. */
const struct hw_content_example *hw_contents_examples(const struct hw_view *view, uint32_t context, size_t *count);
/* They were examined near the peak, when less was live than at it. */
bool hw_contents_before_peak(const struct hw_profile *profile);
/* "at the end", "before the peak" …: when. Only if they were examined. */
const char *hw_contents_moment(const struct hw_profile *profile);
/* Appends the known bytes as text, if they are UTF-8 with nothing but zeros behind it, else as hex. True: text. */
bool hw_content_text(const struct hw_content_example *example, struct hw_buffer *out);
/* Appends them for people: in quotes and escaped if most of them are text, without zeros behind, else as hex. True: in
 * quotes. */
bool hw_content_quote(const struct hw_content_example *example, struct hw_buffer *out, enum hw_clean clean);

#endif
