/* type_sums.c - see block_types.h: the heap by type. */
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/order.h"
#include "report/view/block_types.h"

static int compare_sums(const void *left, const void *right)
{
    const struct hw_type_sum *a = left, *b = right;
    return HW_ORDER(b->sum.peak_bytes, a->sum.peak_bytes) ?: HW_ORDER(b->sum.bytes, a->sum.bytes)
        ?: strcmp(a->name, b->name);
}

bool hw_view_has_types(const struct hw_view *view)
{
    for (size_t i = 0; i < view->context_count; i++)
        if (!view->contexts[i].sum.pool && hw_view_type(view, &view->contexts[i].sum))
            return true;
    return false;
}

struct hw_type_sum *hw_type_sums(const struct hw_view *view, size_t *count)
{
    struct hw_index index = {0};
    struct hw_type_sum *sums = malloc((view->context_count + 1) * sizeof *sums);
    bool fine = sums && hw_index_make(&index, view->context_count);
    *count = 0;
    for (size_t i = 0; i < view->context_count && fine; i++) {
        const struct hw_profile_context *context = &view->contexts[i].sum;
        const char *name = context->pool ? NULL : hw_view_type(view, context);
        bool added;
        if (!name)
            continue;
        const uint32_t number =
            hw_index_intern(&index, hw_key_of(name, strlen(name), "", 0), (uint32_t)*count, &added);
        fine = number != HW_INDEX_NONE;
        if (!fine)
            break;
        if (added)
            sums[(*count)++] = (struct hw_type_sum){.name = name, .sum = {.live_age_total_ns = 0}};
        struct hw_type_sum *to = &sums[number];
        hw_profile_context_add(&to->sum, context);
        to->size = context->type_size > to->size ? context->type_size : to->size;
        to->contexts++;
        to->evidence |= context->type_evidence ? 1u << context->type_evidence : 1u << HW_TYPE_RUN;
    }
    hw_index_free(&index);
    if (!fine) {
        free(sums);
        return NULL;
    }
    if (*count)
        qsort(sums, *count, sizeof *sums, compare_sums);
    return sums;
}
