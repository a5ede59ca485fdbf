/* objects.c - how many objects of a type there are, and whether they lie by themselves or in arrays: from the contexts
 * whose blocks are of the type. */
#include "analysis/internal.h"

#include <stdlib.h>

#include "base/order.h"

static int compare_type(const void *left, const void *right, void *closure)
{
    const struct hw_analysis_input *input = closure;
    const struct hw_profile_context *a = input->contexts[*(const uint32_t *)left],
                                    *b = input->contexts[*(const uint32_t *)right];
    return HW_ORDER(a->type, b->type) ?: HW_ORDER(a->id, b->id);
}

static int compare_size(const void *left, const void *right, void *closure)
{
    const struct hw_analysis_input *input = closure;
    const struct hw_profile_context *a = input->contexts[*(const uint32_t *)left],
                                    *b = input->contexts[*(const uint32_t *)right];
    return HW_ORDER(a->size_min, b->size_min) ?: HW_ORDER(a->id, b->id);
}

bool hw_object_index_make(struct hw_object_index *index, const struct hw_analysis_input *input, struct hw_pool *pool)
{
    *index = (struct hw_object_index){.input = input,
                                      .by_type = hw_pool_take(pool, input->context_count, sizeof *index->by_type),
                                      .by_size = hw_pool_take(pool, input->context_count, sizeof *index->by_size)};
    if (!index->by_type || !index->by_size)
        return false;
    for (size_t i = 0; i < input->context_count; i++) {
        const struct hw_profile_context *context = input->contexts[i];
        if (context->type && !context->types_differ)
            index->by_type[index->type_count++] = (uint32_t)i;
        else if (!context->type && context->allocations && context->size_min == context->size_max)
            index->by_size[index->size_count++] = (uint32_t)i;
    }
    qsort_r(index->by_type, index->type_count, sizeof *index->by_type, compare_type, (void *)input);
    qsort_r(index->by_size, index->size_count, sizeof *index->by_size, compare_size, (void *)input);
    return true;
}

static uint64_t type_of(const struct hw_profile_context *context)
{
    return context->type;
}

static uint64_t size_of(const struct hw_profile_context *context)
{
    return context->size_min;
}

/* The first of ORDER, which is sorted by KEY, whose key is not below VALUE. */
static size_t lower_bound(const struct hw_analysis_input *input, const uint32_t *order, size_t count,
                          uint64_t (*key)(const struct hw_profile_context *), uint64_t value)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (key(input->contexts[order[middle]]) < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t hw_live_blocks(const struct hw_profile *profile, const struct hw_profile_context *context)
{
    uint64_t most = context->peak_blocks > 0 ? (uint64_t)context->peak_blocks : 0;
    if (context->live_blocks > 0 && (uint64_t)context->live_blocks > most)
        most = (uint64_t)context->live_blocks;
    const unsigned __int128 mean = profile->duration_ns ? context->lifetime_total_ns / profile->duration_ns : 0;
    return mean > most && mean < UINT64_MAX ? (uint64_t)mean : most;
}

/* Adds the objects in a context's blocks; says whether they are arrays. */
static bool add_context(struct hw_objects *objects, const struct hw_profile *profile,
                        const struct hw_profile_context *context, const struct hw_profile_struct *structure)
{
    const uint64_t live = hw_live_blocks(profile, context);
    const double mean = context->allocations ? (double)context->bytes / (double)context->allocations : 0;
    double each = structure->size ? mean / (double)structure->size : 1;
    const bool array = each >= 2 && !(structure->flags & HW_STRUCT_FLEXIBLE);
    if (!array)
        each = 1;
    objects->allocated = hw_add_saturating(objects->allocated, hw_count_of((double)context->allocations * each));
    objects->live = hw_add_saturating(objects->live, hw_count_of((double)live * each));
    objects->live_bytes = hw_add_saturating(objects->live_bytes, hw_count_of((double)live * mean));
    return array;
}

struct hw_objects hw_objects_of(const struct hw_object_index *index, const struct hw_profile_struct *structure,
                                struct hw_pool *pool)
{
    const struct hw_analysis_input *input = index->input;
    struct hw_objects objects = {.placement = HW_PLACE_UNKNOWN, .usual_start = HW_LINE};
    const uint32_t *order = index->by_type;
    size_t first = lower_bound(input, order, index->type_count, type_of, structure->type), end = first;
    while (end < index->type_count && type_of(input->contexts[order[end]]) == structure->type)
        end++;
    if (first == end && structure->size) {
        order = index->by_size;
        first = end = lower_bound(input, order, index->size_count, size_of, structure->size);
        while (end < index->size_count && size_of(input->contexts[order[end]]) == structure->size)
            end++;
        objects.by_size = end > first;
    }
    objects.contexts = hw_pool_take(pool, end - first, sizeof *objects.contexts);
    if (first == end || !objects.contexts)
        return objects;
    uint64_t single = 0, in_arrays = 0;
    for (size_t i = first; i < end; i++) {
        const uint64_t before = objects.live;
        const bool array = add_context(&objects, input->profile, input->contexts[order[i]], structure);
        *(array ? &in_arrays : &single) += objects.live - before + 1;
        objects.contexts[objects.context_count++] = order[i];
    }
    if (!objects.live)
        objects.live = 1; /* one after the other */
    objects.placement = in_arrays > single ? HW_PLACE_ARRAY : HW_PLACE_SINGLE;
    return objects;
}
