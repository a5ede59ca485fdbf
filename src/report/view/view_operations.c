/* view_operations.c - call sites and slow operations of the allocator, by stack as a view has them. */
#include "report/view/view.h"

#include <stdlib.h>

#include "base/order.h"
#include "base/index.h"

static uint32_t leaf_of(const struct hw_profile *profile, const uint32_t *canonical, uint32_t context)
{
    const uint32_t leaf = context < profile->context_entry_count ? profile->context_entries[context].leaf : 0;
    return leaf < profile->node_count ? canonical[leaf] : 0;
}

const char *const hw_operation_kind_keys[HW_OPERATION_KINDS] = {"new",    "reused",  "free",
                                                                "calloc", "realloc", "aligned"};
const char *const hw_operation_kind_names[HW_OPERATION_KINDS] = {"malloc, new", "malloc, reused", "free",
                                                                 "calloc",      "realloc",        "aligned"};

static int by_ticks(const void *left, const void *right)
{
    const struct hw_view_site *a = left, *b = right;
    return HW_ORDER(b->ranked, a->ranked) ?: HW_ORDER(b->ticks, a->ticks) ?: HW_ORDER(a->context, b->context) ?: HW_ORDER(a->kind, b->kind);
}

static uint64_t scaled(uint64_t value, double by)
{
    const double result = (double)value * by + 0.5;
    return result < 0x1p63 ? (uint64_t)result : value;
}

/* Call sites are estimated from a sample, what all of one kind add up to is known: a ratio estimator makes them agree,
 * as contexts (hw_profile_fit_observed). */
static void fit_sites(struct hw_view *view)
{
    const struct hw_profile_allocator *allocator = view->profile->observed;
    struct hw_profile_kind all[HW_OPERATION_KINDS];
    double weight[HW_OPERATION_KINDS] = {0}, ticks[HW_OPERATION_KINDS] = {0};
    for (enum hw_operation_kind kind = 0; kind < HW_OPERATION_KINDS; kind++)
        all[kind] = hw_profile_kind_of(allocator, kind);
    for (size_t i = 0; i < view->site_count; i++) {
        weight[view->sites[i].kind] += (double)view->sites[i].weight;
        ticks[view->sites[i].kind] += (double)view->sites[i].ticks;
    }
    for (size_t i = 0; i < view->site_count; i++) {
        struct hw_view_site *site = &view->sites[i];
        site->ranked = site->samples >= HW_VIEW_TIMED_LEAST || !allocator->info.shift_most;
        view->sites_ranked += site->ranked;
        const double by = weight[site->kind] > 0 ? (double)all[site->kind].count / weight[site->kind] : 1;
        site->bytes = scaled(site->bytes, by);
        site->weight = scaled(site->weight, by);
        site->ticks = scaled(site->ticks, ticks[site->kind] > 0 ? all[site->kind].ticks / ticks[site->kind] : 1);
    }
}

bool hw_view_make_operations(struct hw_view *view, const uint32_t *canonical)
{
    const struct hw_profile *profile = view->profile;
    const struct hw_profile_allocator *allocator = profile->observed;
    struct hw_index pairs = {0};
    if (!allocator)
        return true;
    view->sites = calloc(allocator->site_count + 1, sizeof *view->sites);
    view->slowest = calloc(allocator->slowest_count + 1, sizeof *view->slowest);
    if (!view->sites || !view->slowest || !hw_index_make(&pairs, allocator->site_count + 1))
        return false;
    for (size_t i = 0; i < allocator->site_count; i++) {
        const struct hw_operation_site *from = &allocator->sites[i];
        const uint32_t leaf = leaf_of(profile, canonical, from->context);
        bool new;
        struct hw_view_site *to =
            &view->sites[hw_index_intern(&pairs, (struct hw_key){leaf, from->kind}, (uint32_t)view->site_count, &new)];
        if (new) {
            *to = (struct hw_view_site){.context = leaf, .kind = from->kind};
            view->site_count++;
        }
        to->samples = hw_add_saturating(to->samples, from->samples);
        to->weight = hw_add_saturating(to->weight, from->weight);
        to->ticks = hw_add_saturating(to->ticks, from->ticks);
        to->bytes = hw_add_saturating(to->bytes, from->bytes);
        to->most = from->most > to->most ? from->most : to->most;
    }
    hw_index_free(&pairs);
    fit_sites(view);
    qsort(view->sites, view->site_count, sizeof *view->sites, by_ticks);
    for (size_t i = 0; i < allocator->slowest_count; i++) {
        view->slowest[i] = allocator->slowest[i];
        view->slowest[i].context = leaf_of(profile, canonical, allocator->slowest[i].context);
    }
    view->slowest_count = allocator->slowest_count;
    return true;
}

void hw_view_free_operations(struct hw_view *view)
{
    free(view->sites);
    free(view->slowest);
}
