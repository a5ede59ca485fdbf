/* keep_function.c - reduces a view to the contexts of one function: those whose leaf's inline chain has it, as the
 * index of a symbolised profile (profile/model/lookup.h) has them. */
#include <stdlib.h>
#include <string.h>

#include "report/view/view.h"

static bool has_name(const struct hw_frames *frames, const char *function)
{
    for (uint32_t i = 0; i < frames->count; i++) {
        const struct hw_frame *frame = &frames->frame[i];
        if ((frame->function && !strcmp(frame->function, function)) ||
            (frame->linkage_name && !strcmp(frame->linkage_name, function)))
            return true;
    }
    return false;
}

/* Fills KEPT (by context): its new index, or HW_NONE. */
static void keep_contexts(struct hw_view *view, const char *function, uint32_t *kept)
{
    size_t count = 0;
    for (size_t i = 0; i < view->context_count; i++) {
        const uint32_t leaf = view->contexts[i].sum.leaf;
        kept[i] = HW_NONE;
        if (!leaf || !has_name(&view->locations[view->nodes[leaf].location].frames, function))
            continue;
        kept[i] = (uint32_t)count;
        view->contexts[count] = view->contexts[i];
        view->contexts[count].index = (uint32_t)count;
        count++;
    }
    view->context_count = count;
}

static void keep_details(struct hw_view *view, const uint32_t *kept)
{
    size_t count = 0;
    for (size_t i = 0; i < view->free_stack_count; i++) {
        struct hw_view_free_stack stack = view->free_stacks[i];
        if (kept[stack.context] == HW_NONE)
            continue;
        stack.context = kept[stack.context];
        view->free_stacks[count++] = stack;
    }
    view->free_stack_count = count;
    count = 0;
    for (size_t i = 0; i < view->histogram_count; i++) {
        if (kept[view->histogram[i].context] == HW_NONE)
            continue;
        view->histogram[count] = view->histogram[i];
        view->histogram[count].context = kept[view->histogram[i].context];
        count++;
    }
    view->histogram_count = count;
    hw_view_keep_words(view, kept);
}

static void use_stack(struct hw_view *view, uint32_t leaf)
{
    for (uint32_t node = leaf; node; node = view->nodes[node].parent) {
        const uint32_t module = view->locations[view->nodes[node].location].module;
        if (module != HW_NONE)
            view->modules[module].used = true;
    }
}

bool hw_view_keep_function(struct hw_view *view, const char *function, struct hw_error *error)
{
    uint32_t *kept = malloc((view->context_count + 1) * sizeof *kept);
    if (!kept) {
        hw_error_set(error, "%s: not enough memory for the report", view->profile->path);
        return false;
    }
    keep_contexts(view, function, kept);
    keep_details(view, kept);
    free(kept);
    for (size_t i = 0; i < view->module_count; i++)
        view->modules[i].used = false;
    for (size_t i = 0; i < view->context_count; i++)
        use_stack(view, view->contexts[i].sum.leaf);
    for (size_t i = 0; i < view->free_stack_count; i++)
        use_stack(view, view->free_stacks[i].leaf);
    return true;
}
