/* view_distributions.c - sizes and lifetimes as distributions, by the contexts of a view. */
#include "report/view/view.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

void hw_size_bar_add(struct hw_profile_size_bar *to, const struct hw_profile_size_bar *from)
{
    to->allocations = hw_add_saturating(to->allocations, from->allocations);
    to->reallocations = hw_add_saturating(to->reallocations, from->reallocations);
    to->bytes = hw_add_saturating(to->bytes, from->bytes);
    to->live_blocks += from->live_blocks;
    to->live_bytes += from->live_bytes;
    to->peak_blocks += from->peak_blocks;
    to->peak_bytes += from->peak_bytes;
}

static void add_size(void *to, const void *from)
{
    hw_size_bar_add(to, from);
}

static void add_life(void *sum, const void *bar)
{
    struct hw_profile_life_bar *to = sum;
    const struct hw_profile_life_bar *from = bar;
    to->frees = hw_add_saturating(to->frees, from->frees);
    to->bytes = hw_add_saturating(to->bytes, from->bytes);
}

static int compare_sizes(const void *left, const void *right)
{
    const struct hw_profile_size_bar *a = left, *b = right;
    return HW_ORDER(a->context, b->context) ?: HW_ORDER(a->bucket, b->bucket);
}

static int compare_lives(const void *left, const void *right)
{
    const struct hw_profile_life_bar *a = left, *b = right;
    return HW_ORDER(a->context, b->context) ?: HW_ORDER(a->life, b->life);
}

/* Both kinds of bars begin with their context. Contexts of the profile become those of the view, and bars of the same
 * thing one bar. Returns how many there are. */
static size_t take_bars(void *bars, size_t count, size_t size, const uint32_t *context_of, size_t ids,
                        int (*compare)(const void *, const void *), void (*add)(void *, const void *))
{
    char *all = bars;
    size_t kept = 0, joined = 0;
    bool sorted = true;
    for (size_t i = 0; i < count; i++) {
        uint32_t *context = memmove(all + kept * size, all + i * size, size);
        if (*context >= ids || context_of[*context] == HW_NONE)
            continue;
        *context = context_of[*context];
        sorted &= !kept || compare(all + (kept - 1) * size, context) < 0;
        kept++;
    }
    if (!sorted)
        qsort(all, kept, size, compare);
    for (size_t i = 0; i < kept; i++) {
        if (joined && !compare(all + (joined - 1) * size, all + i * size))
            add(all + (joined - 1) * size, all + i * size);
        else
            memmove(all + joined++ * size, all + i * size, size);
    }
    return joined;
}

static void *copy_of(const void *bars, size_t count, size_t size)
{
    void *copy = malloc((count + 1) * size);
    return copy && count ? memcpy(copy, bars, count * size) : copy;
}

static bool make_bars(struct hw_view *view, const uint32_t *context_of, size_t ids)
{
    const struct hw_profile *profile = view->profile;
    view->size_bars = copy_of(profile->size_bars, profile->size_bar_count, sizeof *view->size_bars);
    view->life_bars = copy_of(profile->life_bars, profile->life_bar_count, sizeof *view->life_bars);
    if (!view->size_bars || !view->life_bars)
        return false;
    view->size_bar_count = take_bars(view->size_bars, profile->size_bar_count, sizeof *view->size_bars, context_of, ids,
                                     compare_sizes, add_size);
    view->life_bar_count = take_bars(view->life_bars, profile->life_bar_count, sizeof *view->life_bars, context_of, ids,
                                     compare_lives, add_life);
    return true;
}

bool hw_view_make_distributions(struct hw_view *view, const uint32_t *context_of, size_t ids)
{
    return !view->profile->bars_recorded || make_bars(view, context_of, ids);
}

const struct hw_profile_size_bar *hw_view_size_bars(const struct hw_view *view, size_t context, size_t *count)
{
    return view->size_bars + HW_RUN(view->size_bars, view->size_bar_count, context, context, count);
}

const struct hw_profile_life_bar *hw_view_life_bars(const struct hw_view *view, size_t context, size_t *count)
{
    return view->life_bars + HW_RUN(view->life_bars, view->life_bar_count, context, context, count);
}

void hw_view_sum_sizes(const struct hw_view *view, struct hw_profile_size_bar sums[HW_SIZE_BUCKETS])
{
    for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++)
        sums[bucket] = (struct hw_profile_size_bar){.context = HW_NONE, .bucket = bucket};
    for (size_t i = 0; i < view->size_bar_count; i++)
        if (!view->contexts[view->size_bars[i].context].sum.pool)
            hw_size_bar_add(&sums[view->size_bars[i].bucket], &view->size_bars[i]);
}

void hw_view_sum_lives(const struct hw_view *view, struct hw_profile_life_bar sums[HW_LIFETIME_UNKNOWN + 1])
{
    for (uint32_t life = 0; life <= HW_LIFETIME_UNKNOWN; life++)
        sums[life] = (struct hw_profile_life_bar){.context = HW_NONE, .life = life};
    for (size_t i = 0; i < view->life_bar_count; i++)
        if (!view->contexts[view->life_bars[i].context].sum.pool)
            add_life(&sums[view->life_bars[i].life], &view->life_bars[i]);
}
