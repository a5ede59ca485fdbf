/* merge_distributions.c - sizes and lifetimes as distributions in a merge.
 *
 * Bars are summed up by context. What the file gets is what the runtime writes, but of a context's sizes the smallest
 * stands for the rest (those that are not known, if there are any), and of lifetimes all bars are written: what was
 * freed is not in the numbers of the context alone. */
#include "profile/merge/merge_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

/* The bar of that number in the merge; NULL: its context is left out, or (*FINE false) there is no memory. */
static void *bar_of(struct hw_store *bars, uint32_t context, uint32_t number, bool *fine)
{
    bool added;
    void *bar = context == HW_NONE ? NULL : hw_store_intern(bars, (struct hw_key){context, number}, &added);
    *fine &= bar || context == HW_NONE;
    return bar;
}

bool hw_merge_distributions_add(struct hw_merge *merge, const struct hw_profile *profile, const uint32_t *reference)
{
    bool fine = true;
    for (size_t i = 0; fine && i < profile->size_bar_count; i++) {
        const struct hw_profile_size_bar *from = &profile->size_bars[i];
        struct hw_profile_size_bar *to = bar_of(&merge->size_bars, reference[from->context], from->bucket, &fine);
        if (!to)
            continue;
        to->context = reference[from->context];
        to->bucket = from->bucket;
        hw_sum(&to->allocations, from->allocations);
        hw_sum(&to->reallocations, from->reallocations);
        hw_sum(&to->bytes, from->bytes);
        hw_sum_signed(&to->live_blocks, from->live_blocks);
        hw_sum_signed(&to->live_bytes, from->live_bytes);
        hw_sum_signed(&to->peak_blocks, from->peak_blocks);
        hw_sum_signed(&to->peak_bytes, from->peak_bytes);
    }
    for (size_t i = 0; fine && i < profile->life_bar_count; i++) {
        const struct hw_profile_life_bar *from = &profile->life_bars[i];
        struct hw_profile_life_bar *to = bar_of(&merge->life_bars, reference[from->context], from->life, &fine);
        if (!to)
            continue;
        to->context = reference[from->context];
        to->life = from->life;
        hw_sum(&to->frees, from->frees);
        hw_sum(&to->bytes, from->bytes);
    }
    return fine;
}

/* Those that are not known first: they stand for the rest then. */
static int compare_sizes(const void *left, const void *right)
{
    const struct hw_profile_size_bar *a = *(struct hw_profile_size_bar *const *)left,
                                     *b = *(struct hw_profile_size_bar *const *)right;
    const bool a_known = a->bucket != HW_SIZE_BUCKET_UNKNOWN, b_known = b->bucket != HW_SIZE_BUCKET_UNKNOWN;
    return HW_ORDER(a->context, b->context) ?: HW_ORDER(a_known, b_known) ?: HW_ORDER(a->bucket, b->bucket);
}

static int compare_lives(const void *left, const void *right)
{
    const struct hw_profile_life_bar *a = *(struct hw_profile_life_bar *const *)left,
                                     *b = *(struct hw_profile_life_bar *const *)right;
    return HW_ORDER(a->context, b->context) ?: HW_ORDER(a->life, b->life);
}

/* Elements of STORE, with the contexts of the result, sorted; entries of both kinds begin with it. */
static void **sorted(const struct hw_merge *merge, const struct hw_store *store,
                     int (*compare)(const void *, const void *))
{
    void **rows = malloc(((size_t)store->count + 1) * sizeof *rows);
    for (uint32_t i = 0; rows && i < store->count; i++) {
        uint32_t *context = rows[i] = hw_store_at(store, i);
        *context = hw_merge_entry_at(merge, *context)->id;
    }
    if (rows)
        qsort(rows, store->count, sizeof *rows, compare);
    return rows;
}

static struct hw_mib *find_mib(struct hw_table *mibs, uint32_t context, size_t *at)
{
    struct hw_mib *mib = mibs->entries;
    while (*at < mibs->count && mib[*at].context < context)
        ++*at;
    return *at < mibs->count && mib[*at].context == context ? &mib[*at] : NULL;
}

bool hw_merge_distributions_finish(struct hw_merge *merge, struct hw_arena *arena, struct hw_tables *tables)
{
    struct hw_table *mibs = &tables->of[HW_SECTION_MIBS];
    const bool recorded = merge->process.flags & HW_PROCESS_BARS;
    void **sizes = sorted(merge, &merge->size_bars, compare_sizes),
         **lives = sorted(merge, &merge->life_bars, compare_lives);
    const size_t size_count = recorded ? merge->size_bars.count : 0, life_count = recorded ? merge->life_bars.count : 0;
    size_t used = 0, at = 0;
    struct hw_mib *mib = mibs->entries;
    struct hw_size_bar *size = hw_table_make(tables, arena, HW_SECTION_SIZE_BARS, size_count);
    struct hw_lifetime_bar *life = hw_table_make(tables, arena, HW_SECTION_LIFETIME_BARS, life_count);
    const bool fine = sizes && lives && size && life;
    for (size_t i = 0; fine && i < mibs->count; i++) {
        mib[i].size_first = UINT64_MAX;
        mib[i].first_life = HW_NO_FIRST_LIFE;
    }
    for (size_t i = 0; fine && i < size_count; i++) {
        const struct hw_profile_size_bar *from = sizes[i];
        mib = find_mib(mibs, from->context, &at);
        if (!mib)
            continue;
        if (mib->size_first == UINT64_MAX) {
            mib->size_first = hw_size_bucket_least(from->bucket);
            mib->first_bucket = (uint16_t)from->bucket;
            continue;
        }
        size[used++] = (struct hw_size_bar){.context = from->context,
                                            .first = mib->first_bucket,
                                            .bucket = (uint16_t)from->bucket,
                                            .allocations = from->allocations,
                                            .reallocations = from->reallocations,
                                            .bytes = from->bytes,
                                            .live_blocks = from->live_blocks,
                                            .live_bytes = from->live_bytes,
                                            .peak_blocks = from->peak_blocks,
                                            .peak_bytes = from->peak_bytes};
    }
    if (fine)
        tables->of[HW_SECTION_SIZE_BARS].count = used;
    for (size_t i = 0; fine && i < life_count; i++) {
        const struct hw_profile_life_bar *from = lives[i];
        life[i] = (struct hw_lifetime_bar){.context = from->context,
                                           .first = HW_NO_FIRST_LIFE,
                                           .life = (uint16_t)from->life,
                                           .frees = from->frees,
                                           .bytes = from->bytes};
    }
    free(sizes);
    free(lives);
    return fine;
}
