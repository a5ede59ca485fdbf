/* block_types.h - types of blocks from the code that allocates them, for programs that were not built by heapwise cc.
 *
 * No access is needed: each context's innermost frames are asked (symbols/call_types.c) what they use the block as, and
 * the sizes that were requested must fit. Where that is not enough, or evidence disagrees, a context has no type. */
#ifndef HW_REPORT_VIEW_BLOCK_TYPES_H
#define HW_REPORT_VIEW_BLOCK_TYPES_H

#include "report/view/view.h"

/* Gives contexts their types, from the binaries that the view has read names from. After roles are known. False with
 * ERROR when there is no memory. */
bool hw_view_make_types(struct hw_view *view, struct hw_error *error);

/* How a type is known, enum hw_type_evidence, for programs; NULL: no such evidence. */
const char *hw_type_evidence_key(uint32_t evidence);

/* ---- type_sums.c ---- */

/* What was allocated of a type. */
struct hw_type_sum {
    const char *name;
    uint64_t size;     /* sizeof; 0: not known */
    size_t contexts;
    uint32_t evidence; /* a bit for each enum hw_type_evidence */
    struct hw_profile_context sum;
};

bool hw_view_has_types(const struct hw_view *view);

/* The types of the contexts that have one, most bytes at the peak first; pools are left out, as their blocks lie in
 * others. To be freed; NULL when there is no memory. */
struct hw_type_sum *hw_type_sums(const struct hw_view *view, size_t *count);

#endif
