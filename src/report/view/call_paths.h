/* call_paths.h - the contexts as a person counts them: what differs only in how often it recursed is one place.
 *
 * A recursive function of two calls makes as many contexts as a tree has paths: each of them next to nothing, half of
 * the memory together. For text their sums stand in one entry; JSON and exports keep every context. */
#ifndef HW_REPORT_VIEW_CALL_PATHS_H
#define HW_REPORT_VIEW_CALL_PATHS_H

#include "report/view/view.h"

struct hw_places {
    struct hw_view_context *place; /* `stacks` is their number; leaf and `index` are those of the greatest one */
    size_t count;
    struct hw_profile_accesses *accesses; /* private: what `place` points to where sums were made */
};

/* Stacks without recursion stay by themselves. Of the others those are one place that allocate at the same address and
 * have the same functions once every detour from a function to itself is cut out. With EACH every context is a place.
 * False when there is no memory. */
bool hw_places_make(struct hw_places *places, const struct hw_view *view, bool each);
void hw_places_free(struct hw_places *places);

#endif
