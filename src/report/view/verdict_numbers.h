/* verdict_numbers.h - the verdict on the allocator of the run that a view shows. */
#ifndef HW_REPORT_VIEW_VERDICT_NUMBERS_H
#define HW_REPORT_VIEW_VERDICT_NUMBERS_H

#include "report/words/verdict_words.h"
#include "report/view/view.h"

struct hw_view_verdict {
    struct hw_verdict_input input; /* site: index into view->sites; pinning_site: stack (leaf) */
    struct hw_verdict verdict;
};

/* False when the allocator was not observed. */
bool hw_view_verdict(struct hw_view_verdict *of, const struct hw_view *view);

/* Appends the function and the place of that stack that a reader looks for, "insert (tree.c:17)"; nothing when it is
 * not known. False: no memory. */
bool hw_view_verdict_site(const struct hw_view *view, const struct hw_verdict_finding *finding, enum hw_clean clean,
                          struct hw_buffer *out);

#endif
