/* call_walk.h - for groups.c, sandwich.c and call_tree.c: one walk over the tree of calls, depth first.
 *
 * Frames are entered and left, and what contexts allocated is met in between. So the sum behind a frame is the
 * difference of two running sums, and what is on the stack is known without any stack being read. */
#ifndef HW_REPORT_VIEW_CALL_WALK_H
#define HW_REPORT_VIEW_CALL_WALK_H

#include "report/view/groups.h"

/* What frames are in, and where in the tree of calls contexts stand. */
struct hw_call_walk {
    const struct hw_view *view;
    size_t *offset;         /* by location: of its innermost frame in `group` */
    uint32_t *group;        /* by frame of a location */
    struct hw_group *known; /* by group */
    size_t known_count;
    uint32_t *first, *next; /* by node: its first child, the next one of its parent; 0: none */
    uint64_t *own;          /* by node: what contexts allocated whose headline is there */
    uint32_t *place;        /* by node: the frame that is the headline; HW_NONE: none */
    uint32_t *start;        /* by node: how many of its outermost frames are start code */
    uint64_t total, none;   /* as in struct hw_groups */
};

/* FULL: as in hw_groups_make. False when there is no memory; free it then, too. */
bool hw_call_walk_make(struct hw_call_walk *walk, const struct hw_view *view, enum hw_by by, enum hw_measure_id measure,
                       bool full);
void hw_call_walk_free(struct hw_call_walk *walk);

struct hw_call_visitor {
    void (*enter)(void *closure, uint32_t group);
    void (*own)(void *closure, uint32_t group, uint64_t value); /* GROUP: the one entered last */
    void (*leave)(void *closure, uint32_t group);
};

void hw_call_walk_visit(const struct hw_call_walk *walk, const struct hw_call_visitor *visitor, void *closure);

/* Equal keys mean the same group. */
struct hw_key hw_call_group_key(const struct hw_view *view, const struct hw_view_location *location,
                                const struct hw_frame *symbol, enum hw_by by);

/* groups.c: those with a total, greatest first; returns their number. */
size_t hw_groups_sort(struct hw_group *group, size_t count);

#endif
