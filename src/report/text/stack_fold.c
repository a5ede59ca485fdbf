/* stack_fold.c - see stack_fold.h. */
#include "report/text/stack_fold.h"

#include <stdlib.h>
#include <string.h>

#include "base/growing.h"

/* ---- folding ---- */

static bool add_item(struct hw_fold *fold, struct hw_fold_item item)
{
    if (!HW_GROW(fold->items, fold->capacity, fold->count + 1))
        return false;
    fold->items[fold->count++] = item;
    return true;
}

/* Names are interned: equal functions have equal pointers. Calls from different lines of a function are its recursion
 * too; nameless frames are equal only at the same address. */
static bool same_function(const struct hw_view_frame *a, const struct hw_view_frame *b)
{
    if (a->symbol->function || b->symbol->function)
        return a->symbol->function == b->symbol->function && a->module == b->module;
    return a->location == b->location;
}

#define LONGEST_GROUP 12

/* The group at FIRST whose repetition saves most lines: its length, or 0; sets TIMES. */
static size_t find_group(const struct hw_view_stack *stack, size_t first, size_t end, size_t *times)
{
    size_t best = 0, best_saved = 0;
    for (size_t length = 1; length <= LONGEST_GROUP && first + 2 * length <= end; length++) {
        size_t equal = 0;
        while (first + length + equal < end &&
               same_function(&stack->frames[first + equal], &stack->frames[first + length + equal]))
            equal++;
        const size_t repeated = 1 + equal / length;
        const size_t saved = (repeated - 1) * length - (length > 1); /* the line that says so costs one */
        if (repeated > 1 && saved > best_saved) {
            best = length;
            best_saved = saved;
            *times = repeated;
        }
    }
    return best;
}

static bool fold_recursion(struct hw_fold *fold, const struct hw_view_stack *stack, size_t first, size_t end)
{
    for (size_t i = first; i < end;) {
        size_t times = 1;
        const size_t group = find_group(stack, i, end, &times);
        bool done = true;
        if (group <= 1) {
            done = add_item(fold, (struct hw_fold_item){HW_FOLD_FRAME, (uint32_t)times, i, times});
        } else {
            for (size_t k = 0; done && k < group; k++)
                done = add_item(fold, (struct hw_fold_item){HW_FOLD_FRAME, 1, i + k, times});
            done = done && add_item(fold, (struct hw_fold_item){HW_FOLD_REPEAT, (uint32_t)times, i, group});
        }
        if (!done)
            return false;
        i += group ? group * times : 1;
    }
    return true;
}

#define SHOWN_AT_END 3

/* Keeps the beginning, the headline with what is around it, and the end; LIMIT is at least 10. */
static void fold_middle(struct hw_fold *fold, size_t limit)
{
    size_t headline = 0, out = 0;
    for (size_t i = 0; i < fold->count; i++)
        if (fold->items[i].kind == HW_FOLD_FRAME && fold->items[i].frame <= fold->headline)
            headline = i;
    size_t first = limit - SHOWN_AT_END;
    if (headline + 3 > first)
        first -= 5; /* room for the headline, the frame it calls and two callers */
    for (size_t i = 0; i < fold->count;) {
        size_t end = i, frames = 0;
        for (; end >= first && end + SHOWN_AT_END < fold->count && (end + 1 < headline || end > headline + 2); end++)
            if (fold->items[end].kind == HW_FOLD_FRAME)
                frames += fold->items[end].frames;
        if (end - i > 1) {
            fold->items[out++] = (struct hw_fold_item){HW_FOLD_GAP, 1, 0, frames};
            i = end;
        } else {
            fold->items[out++] = fold->items[i++];
        }
    }
    fold->count = out;
}

bool hw_fold_stack(struct hw_fold *fold, const struct hw_view_stack *stack, size_t limit, bool full)
{
    fold->count = 0;
    fold->headline = hw_stack_headline(stack);
    if (full) {
        for (size_t i = 0; i < stack->count; i++)
            if (!add_item(fold, (struct hw_fold_item){HW_FOLD_FRAME, 1, i, 1}))
                return false;
        return true;
    }
    size_t end = hw_stack_without_start(stack);
    if (stack->count && end <= fold->headline)
        end = fold->headline + 1;
    const size_t wrappers = hw_stack_wrappers(stack);
    if (wrappers && !add_item(fold, (struct hw_fold_item){HW_FOLD_WRAPPERS, 1, 0, wrappers}))
        return false;
    if (!fold_recursion(fold, stack, wrappers, end))
        return false;
    if (fold->count > limit && limit >= 10)
        fold_middle(fold, limit);
    return true;
}

void hw_fold_free(struct hw_fold *fold)
{
    free(fold->items);
    *fold = (struct hw_fold){0};
}
