/* sampled_fields.h - which fields of structs sampled accesses fell on: for programs that were not built by heapwise cc.
 *
 * The type of each context's blocks is known from the code that allocates them (block_types.h), the members of the
 * type from the debug information, and of each sampled access the position in its block. So every access has a field,
 * also those by code without debug information. Accesses that one burst of samples made to one object are a use of
 * it. */
#ifndef HW_REPORT_VIEW_SAMPLED_FIELDS_H
#define HW_REPORT_VIEW_SAMPLED_FIELDS_H

#include "report/view/view.h"
#include "symbols/symbols.h"

/* What the blocks of a context are: TYPE (NULL: not known) begins at BEGIN, once or, with ARRAY, as often as there is
 * room. */
struct hw_context_layout {
    const struct hw_call_type *type;
    uint64_t begin;
    bool array;
};

/* Reads and writes of sampled accesses to the heap, all and by what is known of the blocks. */
struct hw_sampled_kinds {
    uint64_t all;
    uint64_t fields;  /* to fields of structs */
    uint64_t scalars; /* to arrays of numbers or pointers */
    uint64_t unknown; /* to blocks without a type; the rest is beside what the type has */
};

struct hw_sampled_fields {
    struct hw_profile_fields fields;
    struct hw_sampled_kinds kinds;
    uint64_t bursts; /* with accesses to blocks */
};

/* Makes view->sampled_fields, of OF by index of the context. Nothing is made where no single accesses were recorded.
 * False with ERROR when there is no memory. */
bool hw_view_make_sampled_fields(struct hw_view *view, struct hw_call_types *types,
                                 const struct hw_context_layout *of, struct hw_error *error);
void hw_view_free_sampled_fields(struct hw_view *view);

/* The fields that were counted, or those that were sampled, or empty. */
const struct hw_profile_fields *hw_view_fields(const struct hw_view *view);

#endif
