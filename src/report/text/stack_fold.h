/* stack_fold.h - which frames of a stack a person should see first.
 *
 * Folding is for text only: JSON keeps every frame; exports fold wrappers (cut.c). */
#ifndef HW_REPORT_TEXT_STACK_FOLD_H
#define HW_REPORT_TEXT_STACK_FOLD_H

#include "report/view/frame_roles.h"
#include "report/view/view.h"

enum hw_fold_kind {
    HW_FOLD_FRAME,    /* one frame; with `times` > 1 one that calls itself */
    HW_FOLD_REPEAT,   /* the `frames` frames above occur `times` times */
    HW_FOLD_GAP,      /* `frames` frames were left out */
    HW_FOLD_WRAPPERS, /* the first `frames` frames are allocation wrappers */
};

struct hw_fold_item {
    enum hw_fold_kind kind;
    uint32_t times;
    size_t frame;  /* HW_FOLD_FRAME: index into the stack */
    size_t frames; /* of the stack that the item stands for; HW_FOLD_REPEAT: length of the group */
};

/* Zero-initialise, use for any number of stacks, free with hw_fold_free. */
struct hw_fold {
    struct hw_fold_item *items;
    size_t count, capacity;
    size_t headline; /* index into the stack of the frame that names it; 0 in an empty stack */
};

/* Leaves out start code, folds allocation wrappers and recursion, and folds the middle of what is longer than LIMIT
 * items. With FULL every frame is an item. False when there is no memory. */
bool hw_fold_stack(struct hw_fold *fold, const struct hw_view_stack *stack, size_t limit, bool full);
void hw_fold_free(struct hw_fold *fold);

#endif
