/* analyse.h - the analysis of what a view shows: its contexts, its histograms. */
#ifndef HW_REPORT_VIEW_ANALYSE_H
#define HW_REPORT_VIEW_ANALYSE_H

#include "analysis/analysis.h"
#include "report/buffer.h"
#include "report/report.h"
#include "report/view/view.h"

struct hw_view_analysis {
    struct hw_analysis *analysis; /* context indexes are those of the view */
    const struct hw_profile_context **contexts;
    const struct hw_contents **contents;
    uint32_t *context_of; /* by id */
};

/* False with ERROR when there is no memory. The view must outlive it. */
bool hw_view_analyse(struct hw_view_analysis *of, const struct hw_view *view, struct hw_error *error);
void hw_view_analysis_free(struct hw_view_analysis *of);

/* ---- finding_words.c: findings as sentences, of clean text. ASCII: no typographic signs ---- */

/* Clears and fills WORDS. CLEAN: for names of the program. */
void hw_finding_words(const struct hw_view *view, const struct hw_analysis *analysis, const struct hw_finding *finding,
                      enum hw_clean clean, struct hw_advice *words);

/* "struct node", "demo::node", "a struct without a name". */
void hw_add_struct_name(struct hw_buffer *out, const struct hw_profile_struct *structure, enum hw_clean clean);

/* Why no other order is suggested: one sentence; NULL when nothing forbids one. */
const char *hw_layout_reason(enum hw_layout_verdict verdict);

/* Whether --struct asks for it. */
bool hw_report_wants_finding(const struct hw_report_options *options, const struct hw_analysis *analysis,
                             const struct hw_finding *finding);

/* ---- layout_text.c: suggestions as C text ---- */

/* Appends the definitions. Members whose declaration is not known or is no C stand in comments. */
void hw_add_definition(struct hw_buffer *out, const struct hw_struct_analysis *of);

#endif
