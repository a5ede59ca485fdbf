/* llvm_records.c - which functions of a stack LLVM's indexed profile has what to say about. */
#include "profile/llvm/llvm.h"

#include <stdlib.h>
#include <string.h>

#include "base/growing.h"
#include "base/index.h"
#include "base/order.h"

struct builder {
    const struct hw_llvm_profile *profile;
    struct hw_llvm_site *site;
    size_t count, capacity;
    struct hw_index calls; /* by function and frames: those that are there already */
};

static const struct hw_llvm_frame *frame_at(const struct hw_llvm_profile *profile, size_t place)
{
    return &profile->frames[profile->stacks[place]];
}

static bool append(struct builder *builder, struct hw_llvm_site site)
{
    if (!HW_GROW(builder->site, builder->capacity, builder->count + 1))
        return false;
    builder->site[builder->count++] = site;
    return true;
}

static bool add_call(struct builder *builder, struct hw_llvm_site call)
{
    const struct hw_key key = hw_key_of(&call.function, sizeof call.function, builder->profile->stacks + call.first,
                                        call.count * sizeof *builder->profile->stacks);
    bool added;
    if (hw_index_intern(&builder->calls, key, 0, &added) == HW_INDEX_NONE)
        return false;
    return !added || append(builder, call);
}

static bool add_context(struct builder *builder, uint32_t index)
{
    const struct hw_llvm_profile *profile = builder->profile;
    const struct hw_llvm_context *context = &profile->contexts[index];
    const size_t begin = context->first, end = begin + context->count;
    for (size_t group = begin, next; group < end; group = next) {
        /* What was inlined into one function that was not: the frames of one address. */
        for (next = group; next < end && frame_at(profile, next)->inlined; next++) {
        }
        next += next < end;
        for (size_t i = group; i < next; i++) {
            struct hw_llvm_site site = {
                .function = frame_at(profile, i)->function, .first = begin, .count = context->count, .context = index};
            if (group == begin && !append(builder, site))
                return false;
            site.first = group;
            site.count = (uint32_t)(next - group);
            site.context = HW_LLVM_CALL;
            if (i > begin && !add_call(builder, site))
                return false;
        }
    }
    return true;
}

static int compare_sites(const void *left, const void *right)
{
    const struct hw_llvm_site *a = left, *b = right;
    return HW_ORDER(a->function, b->function) ?: HW_ORDER(a->context, b->context) ?: HW_ORDER(a->first, b->first);
}

struct hw_llvm_site *hw_llvm_sites(const struct hw_llvm_profile *profile, size_t *count)
{
    struct builder builder = {.profile = profile};
    bool fine = profile->context_count < HW_LLVM_CALL && append(&builder, (struct hw_llvm_site){0});
    builder.count = 0;
    for (size_t i = 0; fine && i < profile->context_count; i++)
        fine = add_context(&builder, (uint32_t)i);
    hw_index_free(&builder.calls);
    if (!fine) {
        free(builder.site);
        return NULL;
    }
    qsort(builder.site, builder.count, sizeof *builder.site, compare_sites);
    *count = builder.count;
    return builder.site;
}
