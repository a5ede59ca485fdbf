/* check.h - a profile against limits, for continuous integration: is it kept, and who broke it. */
#ifndef HW_REPORT_COMPARE_CHECK_H
#define HW_REPORT_COMPARE_CHECK_H

#include "report/compare/diff.h"
#include "report/compare/growth.h"

enum hw_verdict {
    HW_KEPT,
    HW_UNCERTAIN, /* of a sample: the true value may be on either side */
    HW_BROKEN,    /* of a sample: for certain, as far as samples go */
    HW_VERDICTS
};

#define HW_CHECK_SHOWN 3

struct hw_check {
    /* What is asked. */
    const char *name; /* "max-peak", or "baseline" */
    enum hw_measure_id id;
    bool baseline; /* the limit is the old value and TOLERANCE percent */
    double tolerance;
    uint64_t limit;                 /* of a baseline set by hw_check_run */
    const struct hw_growth *growth; /* of what the rate is limited, in bytes by second; NULL: ID is */
    bool pinned; /* limited is what live blocks pin (record --pinned), not ID */
    /* What came of it. */
    uint64_t value, old;
    double uncertainty; /* of value - limit; 0: none. Of a rate the farther end of its interval */
    enum hw_verdict verdict;
    bool steady;                       /* VALUE is that of the places that grow steadily, not of the whole heap */
    uint32_t contexts[HW_CHECK_SHOWN]; /* of the view, with most of it; against a baseline, and of a rate, those that
                                          grew most */
    uint64_t shares[HW_CHECK_SHOWN];   /* their values; against a baseline by how much they grew */
    size_t context_count;
};

/* Decides all checks. DIFF compares the baseline with VIEW; NULL without a baseline. Both must know the measures. */
void hw_check_run(const struct hw_view *view, const struct hw_diff *diff, struct hw_check *checks, size_t count);

/* Print to STREAM, as hw_report_text and hw_report_json. */
bool hw_check_text(const struct hw_view *view, const struct hw_check *checks, size_t count,
                   const struct hw_report_options *options, FILE *stream, struct hw_error *error);
bool hw_check_json(const struct hw_view *view, const struct hw_check *checks, size_t count,
                   const struct hw_report_options *options, FILE *stream, struct hw_error *error);

/* Prints commands that make annotations of what is not kept: "::error file=…,line=…::…". Paths below WORKSPACE (or
 * NULL) are relative to it. */
bool hw_check_github(const struct hw_view *view, const struct hw_check *checks, size_t count, const char *workspace,
                     FILE *stream, struct hw_error *error);

#endif
