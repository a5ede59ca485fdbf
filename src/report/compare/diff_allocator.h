/* diff_allocator.h - what was observed of the allocators of two profiles, side by side. */
#ifndef HW_REPORT_COMPARE_DIFF_ALLOCATOR_H
#define HW_REPORT_COMPARE_DIFF_ALLOCATOR_H

#include "report/compare/diff.h"
#include "report/text/text.h"
#include "report/view/verdict_numbers.h"

/* All sizes and phases of one kind. */
struct hw_diff_operation {
    uint64_t count;
    double mean_ns; /* NAN: none was timed */
};

enum { HW_DIFF_TOTAL, HW_DIFF_REAL, HW_DIFF_INTERNAL, HW_DIFF_BLOWUP, HW_DIFF_EXTERNAL, HW_DIFF_PARTS };

/* One profile. What was not observed is NAN in `of.input` and `memory`. */
struct hw_diff_allocator {
    struct hw_view_verdict of;
    struct hw_diff_operation kind[HW_OPERATION_KINDS];
    double memory[HW_DIFF_PARTS]; /* bytes, of the heap at the peak */
    uint64_t operations;
};

/* False unless the allocator was observed. */
bool hw_diff_allocator(struct hw_diff_allocator *side, const struct hw_view *view);

/* How the time in operations changed, in seconds, and two standard errors of that; NAN: not known. */
double hw_diff_allocator_change(const struct hw_diff_allocator side[HW_SIDES], double *error);

/* Whether CAUSE is named in the verdict. */
bool hw_diff_allocator_names(const struct hw_diff_allocator *side, enum hw_verdict_cause cause);

/* Prints the part of a comparison that is about the allocator; nothing unless both have it. */
void hw_diff_allocator_text(const struct hw_diff *diff, struct hw_text *text);

#endif
