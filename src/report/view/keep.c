/* keep.c - reduces a view to the contexts that were asked for: those of one function, wherever it stands on their
 * stacks, and those that the rules leave. */
#include <stdlib.h>
#include <string.h>

#include "report/view/frame_roles.h"
#include "report/view/keeps.h"
#include "report/view/rules.h"

static uint64_t positive(int64_t value)
{
    return value > 0 ? (uint64_t)value : 0;
}

static void add_part(struct hw_view_part *part, const struct hw_profile_context *sum)
{
    part->count++;
    if (sum->pool)
        return;
    part->peak = hw_add_saturating(part->peak, positive(sum->peak_bytes));
    part->bytes = hw_add_saturating(part->bytes, sum->bytes);
    part->leaked = hw_add_saturating(part->leaked, positive(sum->live_bytes));
    part->allocations = hw_add_saturating(part->allocations, sum->allocations);
}

/* The roles of all frames of the stack that ends at a node, by node; to be freed. */
static uint8_t *roles_by_node(const struct hw_view *view)
{
    uint8_t *roles = calloc(view->node_count, sizeof *roles);
    for (size_t i = 1; roles && i < view->node_count; i++) {
        const struct hw_view_location *location = &view->locations[view->nodes[i].location];
        roles[i] = roles[view->nodes[i].parent];
        for (uint32_t k = 0; k < location->frames.count; k++)
            roles[i] |= hw_location_role(location, k);
    }
    return roles;
}

/* Whether the function of the view is the one that names the stack, or nearer to the allocator. */
static bool allocates_itself(const struct hw_view_stack *stack)
{
    for (size_t i = hw_stack_headline(stack) + 1; i-- > 0 && i < stack->count;)
        if (stack->frames[i].role & HW_FRAME_NAMED)
            return true;
    return false;
}

/* Fills KEPT (by context): its new index, or HW_NONE. */
static bool keep_contexts(struct hw_view *view, const uint8_t *roles, uint32_t *kept)
{
    const bool focus = view->rules && view->rules->of[HW_RULE_FOCUS];
    struct hw_view_stack stack = {0};
    size_t count = 0;
    bool fine = true;
    for (size_t i = 0; fine && i < view->context_count; i++) {
        const struct hw_profile_context *sum = &view->contexts[i].sum;
        const uint8_t role = roles[sum->leaf];
        kept[i] = HW_NONE;
        if ((focus && !(role & HW_FRAME_FOCUSED)) || role & HW_FRAME_IGNORED) {
            add_part(&view->left_out, sum);
            continue;
        }
        if (view->function && !(role & HW_FRAME_NAMED))
            continue;
        if (view->function) {
            fine = hw_view_stack(view, sum->leaf, &stack);
            add_part(&view->named[!allocates_itself(&stack)], sum);
        }
        kept[i] = (uint32_t)count;
        view->contexts[count] = view->contexts[i];
        view->contexts[count].index = (uint32_t)count;
        count++;
    }
    view->context_count = count;
    hw_view_stack_free(&stack);
    return fine;
}

/* Leaves of COUNT elements of SIZE bytes those whose context, at OFFSET, is kept. */
static size_t keep_elements(void *elements, size_t count, size_t size, size_t offset, const uint32_t *kept)
{
    char *from = elements, *to = elements;
    for (size_t i = 0; i < count; i++, from += size) {
        uint32_t context;
        memcpy(&context, from + offset, sizeof context);
        if (kept[context] == HW_NONE)
            continue;
        memmove(to, from, size);
        memcpy(to + offset, &kept[context], sizeof context);
        to += size;
    }
    return (size_t)(to - (char *)elements) / size;
}

#define KEEP(array, count)                                                                                             \
    ((count) = keep_elements((array), (count), sizeof *(array), offsetof(typeof(*(array)), context), kept))

static void keep_details(struct hw_view *view, size_t contexts, const uint32_t *kept)
{
    KEEP(view->free_stacks, view->free_stack_count);
    KEEP(view->histogram, view->histogram_count);
    KEEP(view->size_bars, view->size_bar_count);
    KEEP(view->life_bars, view->life_bar_count);
    KEEP(view->sample_counts, view->sample_count_count);
    KEEP(view->sides, view->side_count);
    hw_view_keep_words(view, kept);
    hw_view_keep_keeps(view, kept);
    for (size_t i = 0; i < view->id_count; i++)
        if (view->index_of[i] != HW_NONE)
            view->index_of[i] = kept[view->index_of[i]];
    for (size_t i = 0; view->sampled && i < contexts; i++)
        if (kept[i] != HW_NONE)
            view->sampled[kept[i]] = view->sampled[i];
}

static void use_stack(struct hw_view *view, uint32_t leaf)
{
    for (uint32_t node = leaf; node; node = view->nodes[node].parent) {
        const uint32_t module = view->locations[view->nodes[node].location].module;
        if (module != HW_NONE)
            view->modules[module].used = true;
    }
}

bool hw_view_keep(struct hw_view *view)
{
    const size_t contexts = view->context_count;
    if (!view->function && !(view->rules && (view->rules->of[HW_RULE_FOCUS] || view->rules->of[HW_RULE_IGNORE])))
        return true;
    uint32_t *kept = malloc((contexts + 1) * sizeof *kept);
    uint8_t *roles = roles_by_node(view);
    const bool fine = kept && roles && keep_contexts(view, roles, kept);
    if (fine)
        keep_details(view, contexts, kept);
    free(kept);
    free(roles);
    for (size_t i = 0; i < view->module_count; i++)
        view->modules[i].used = false;
    for (size_t i = 0; i < view->context_count; i++)
        use_stack(view, view->contexts[i].sum.leaf);
    for (size_t i = 0; i < view->free_stack_count; i++)
        use_stack(view, view->free_stacks[i].leaf);
    return fine;
}
