/* llvm_records.c - which functions of a stack LLVM's indexed profile has what to say about. */
#include "profile/llvm/llvm.h"

#include <stdlib.h>
#include <string.h>

#include "base/growing.h"
#include "base/order.h"

struct builder {
    const struct hw_llvm_profile *profile;
    struct hw_llvm_site *site;
    size_t count, capacity;
    size_t *slot; /* call sites by function and frames: index + 1, open addressing */
    size_t slot_count, call_count;
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

static bool same_call(const struct builder *builder, const struct hw_llvm_site *a, const struct hw_llvm_site *b)
{
    const uint64_t *stacks = builder->profile->stacks;
    return a->function == b->function && a->count == b->count &&
           !memcmp(stacks + a->first, stacks + b->first, a->count * sizeof *stacks);
}

/* The slot of the call site, or the free one for it. */
static size_t *find_call(const struct builder *builder, const struct hw_llvm_site *call)
{
    uint64_t hash = call->function;
    for (uint32_t i = 0; i < call->count; i++)
        hash = (hash ^ builder->profile->stacks[call->first + i]) * 0x9e3779b97f4a7c15u;
    for (size_t i = (hash ^ hash >> 32) & (builder->slot_count - 1);; i = (i + 1) & (builder->slot_count - 1)) {
        size_t *slot = &builder->slot[i];
        if (!*slot || same_call(builder, &builder->site[*slot - 1], call))
            return slot;
    }
}

static bool grow_slots(struct builder *builder)
{
    struct builder larger = *builder;
    larger.slot_count = builder->slot_count ? builder->slot_count * 2 : 1024;
    larger.slot = calloc(larger.slot_count, sizeof *larger.slot);
    if (!larger.slot)
        return false;
    for (size_t i = 0; i < builder->slot_count; i++)
        if (builder->slot[i])
            *find_call(&larger, &builder->site[builder->slot[i] - 1]) = builder->slot[i];
    free(builder->slot);
    builder->slot = larger.slot;
    builder->slot_count = larger.slot_count;
    return true;
}

static bool add_call(struct builder *builder, struct hw_llvm_site call)
{
    if (builder->call_count >= builder->slot_count / 2 && !grow_slots(builder))
        return false;
    size_t *slot = find_call(builder, &call);
    if (*slot)
        return true;
    if (!append(builder, call))
        return false;
    *slot = builder->count;
    builder->call_count++;
    return true;
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
    free(builder.slot);
    if (!fine) {
        free(builder.site);
        return NULL;
    }
    qsort(builder.site, builder.count, sizeof *builder.site, compare_sites);
    *count = builder.count;
    return builder.site;
}
