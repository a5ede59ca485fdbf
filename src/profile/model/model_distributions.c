/* model_distributions.c - sizes and lifetimes as distributions: bars from MIBS, SIZE_BARS and LIFETIME_BARS.
 *
 * What is in no entry is of the first bucket of its MIB (struct hw_mib): the numbers of the MIB are added there, and
 * those of an entry are added to its own bar and taken from that of the first. */
#include "profile/model/model.h"

#include <stdlib.h>
#include <string.h>

/* Which MIBs and entries are of a context: numbers of MIBs, behind them those of entries. */
struct items {
    uint32_t *start; /* by context: where its items begin; one more at the end */
    uint32_t *item;
};

struct taking {
    struct hw_profile *profile;
    struct hw_arena *arena;
    const struct hw_table *mibs;
    struct hw_problems *problems;
    bool estimated;
    bool moving; /* the process was writing: MIBs and bars are of slightly different moments */
};

/* Entries of both tables begin with their context. */
static uint32_t context_of(const struct taking *taking, const void *entry)
{
    uint32_t context;
    memcpy(&context, entry, sizeof context);
    return context < taking->profile->context_entry_count ? context : 0;
}

static const void *item_at(const struct taking *taking, const struct hw_table *bars, size_t size, size_t number)
{
    return number < taking->mibs->count ? (const char *)taking->mibs->entries + number * sizeof(struct hw_mib)
                                        : (const char *)bars->entries + (number - taking->mibs->count) * size;
}

static bool sort_items(const struct taking *taking, const struct hw_table *bars, size_t size, struct items *items)
{
    const size_t count = taking->mibs->count + bars->count, contexts = taking->profile->context_entry_count;
    items->start = calloc(contexts + 2, sizeof *items->start);
    items->item = malloc((count + 1) * sizeof *items->item);
    if (!items->start || !items->item || count >= UINT32_MAX)
        return false;
    for (size_t i = 0; i < count; i++)
        items->start[context_of(taking, item_at(taking, bars, size, i)) + 2]++;
    for (size_t i = 0; i < contexts; i++)
        items->start[i + 2] += items->start[i + 1];
    for (size_t i = 0; i < count; i++) /* start[n + 1] is where the next item of context n goes */
        items->item[items->start[context_of(taking, item_at(taking, bars, size, i)) + 1]++] = (uint32_t)i;
    return true;
}

static void free_items(struct items *items)
{
    free(items->start);
    free(items->item);
}

/* Room for one more of COUNT entries of SIZE bytes; NULL when there is no memory. */
static void *next_bar(void **bars, size_t count, size_t *capacity, size_t size)
{
    if (count == *capacity) {
        const size_t more = *capacity ? *capacity * 2 : 1024;
        void *larger = realloc(*bars, more * size);
        if (!larger)
            return NULL;
        *bars = larger;
        *capacity = more;
    }
    return (char *)*bars + count * size;
}

/* ---- estimates: bars that add up to what their context was fitted to ---- */

/* Scales VALUES[i] of COUNT bars, STRIDE bytes apart, to the sum TOTAL. */
static void fit(void *values, size_t count, size_t stride, int64_t total)
{
    double sum = 0, so_far = 0;
    int64_t given = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t *value = (int64_t *)(void *)((char *)values + i * stride);
        *value = *value > 0 ? *value : 0;
        sum += (double)*value;
    }
    for (size_t i = 0; i < count; i++) {
        int64_t *value = (int64_t *)(void *)((char *)values + i * stride);
        so_far += sum > 0 ? (double)*value : i == 0;
        const double share = so_far / (sum > 0 ? sum : 1);
        const int64_t next = i + 1 == count ? total : (int64_t)((double)total * share + 0.5);
        *value = next - given;
        given = next;
    }
}

static void fit_sizes(struct hw_profile_size_bar *bars, size_t count, const struct hw_profile_context *context)
{
#define FIT(member) fit(&bars->member, count, sizeof *bars, (int64_t)context->member)
    FIT(allocations);
    FIT(reallocations);
    FIT(bytes);
    FIT(live_blocks);
    FIT(live_bytes);
    FIT(peak_blocks);
    FIT(peak_bytes);
#undef FIT
}

/* Copied from a process that was writing: bars that are newer than their MIB leave less than nothing for the first one.
 */
static bool sizes_clash(const struct hw_profile_size_bar *bars, size_t count)
{
    bool clash = false;
    for (size_t i = 0; i < count; i++)
        clash |= (int64_t)bars[i].allocations < 0 || (int64_t)bars[i].reallocations < 0 || (int64_t)bars[i].bytes < 0 ||
                 bars[i].live_blocks < 0 || bars[i].live_bytes < 0 || bars[i].peak_blocks < 0 || bars[i].peak_bytes < 0;
    return clash;
}

/* ---- sizes ---- */

static void add_live(struct hw_profile_size_bar *to, int64_t sign, int64_t blocks, int64_t bytes, int64_t peak_blocks,
                     int64_t peak_bytes)
{
    to->live_blocks += sign * blocks;
    to->live_bytes += sign * bytes;
    to->peak_blocks += sign * peak_blocks;
    to->peak_bytes += sign * peak_bytes;
}

static void add_mib(const struct taking *taking, struct hw_profile_size_bar *to, const struct hw_mib *mib)
{
    const bool saved = mib->peak_epoch == taking->profile->process.peak_epoch;
    to->allocations += mib->allocations;
    to->reallocations += taking->profile->process.sample_bytes ? 0 : mib->reallocations;
    to->bytes += mib->bytes;
    add_live(to, 1, mib->live_blocks, mib->live_bytes, saved ? mib->peak_blocks : mib->live_blocks,
             saved ? mib->peak_bytes : mib->live_bytes);
}

/* SIGN -1: they are not of the first bucket. */
static void add_entry(const struct taking *taking, struct hw_profile_size_bar *to, int64_t sign,
                      const struct hw_size_bar *from)
{
    const bool saved = from->peak_epoch == taking->profile->process.peak_epoch;
    to->allocations += (uint64_t)sign * from->allocations;
    to->reallocations += (uint64_t)sign * from->reallocations;
    to->bytes += (uint64_t)sign * from->bytes;
    add_live(to, sign, from->live_blocks, from->live_bytes, saved ? from->peak_blocks : from->live_blocks,
             saved ? from->peak_bytes : from->live_bytes);
}

static void add_bar(struct hw_profile_size_bar *to, const struct hw_profile_size_bar *from)
{
    to->allocations += from->allocations;
    to->reallocations += from->reallocations;
    to->bytes += from->bytes;
    add_live(to, 1, from->live_blocks, from->live_bytes, from->peak_blocks, from->peak_bytes);
}

static bool is_empty(const struct hw_profile_size_bar *bar)
{
    return !(bar->allocations | bar->reallocations | bar->bytes) &&
           !(bar->live_blocks | bar->live_bytes | bar->peak_blocks | bar->peak_bytes);
}

/* The bars of one context, by bucket: all are zero before. */
static void sum_sizes(const struct taking *taking, const struct hw_table *table, const struct items *items,
                      uint32_t context, struct hw_profile_size_bar bars[HW_SIZE_BUCKETS])
{
    bool mixed[HW_SIZE_BUCKETS] = {false};
    for (uint32_t i = items->start[context]; i < items->start[context + 1]; i++) {
        const void *item = item_at(taking, table, sizeof(struct hw_size_bar), items->item[i]);
        if (items->item[i] < taking->mibs->count) {
            const struct hw_mib *mib = item;
            const uint32_t first = mib->size_first == UINT64_MAX || mib->first_bucket >= HW_SIZE_BUCKETS
                                       ? HW_SIZE_BUCKET_UNKNOWN
                                       : mib->first_bucket;
            add_mib(taking, &bars[first], mib);
            mixed[first] |= mib->flags & HW_MIB_SIZES_MIXED;
            continue;
        }
        const struct hw_size_bar *bar = item;
        if (bar->first >= HW_SIZE_BUCKETS || bar->bucket >= HW_SIZE_BUCKETS) {
            hw_problem(taking->problems, "The distribution of sizes is damaged: there is no such size.");
            continue;
        }
        add_entry(taking, &bars[bar->first], -1, bar);
        add_entry(taking, &bars[bar->bucket], 1, bar);
    }
    for (uint32_t i = 0; i < HW_SIZE_BUCKET_UNKNOWN; i++)
        if (mixed[i]) {
            add_bar(&bars[HW_SIZE_BUCKET_UNKNOWN], &bars[i]);
            memset(&bars[i], 0, sizeof bars[i]);
        }
}

static bool take_sizes(struct taking *taking, const struct hw_table *table)
{
    struct hw_profile *profile = taking->profile;
    struct items items = {0};
    struct hw_profile_size_bar bars[HW_SIZE_BUCKETS] = {{0}};
    void *all = NULL;
    size_t count = 0, capacity = 0;
    bool fine = sort_items(taking, table, sizeof(struct hw_size_bar), &items);
    for (size_t i = 0; fine && i < profile->context_count; i++) {
        const struct hw_profile_context *context = &profile->contexts[i];
        const size_t first = count;
        sum_sizes(taking, table, &items, context->id, bars);
        for (uint32_t bucket = 0; fine && bucket < HW_SIZE_BUCKETS; bucket++) {
            if (is_empty(&bars[bucket]))
                continue;
            struct hw_profile_size_bar *to = next_bar(&all, count, &capacity, sizeof *to);
            fine = to != NULL;
            if (fine) {
                bars[bucket].context = context->id;
                bars[bucket].bucket = bucket;
                *to = bars[bucket];
                count++;
            }
            memset(&bars[bucket], 0, sizeof bars[bucket]);
        }
        /* Fitted to totals although none of its blocks was seen: of sizes that are not known. */
        if (fine && taking->estimated && count == first &&
            (context->allocations || context->reallocations || context->bytes || context->live_bytes)) {
            struct hw_profile_size_bar *to = next_bar(&all, count, &capacity, sizeof *to);
            fine = to != NULL;
            if (fine) {
                *to = (struct hw_profile_size_bar){.context = context->id, .bucket = HW_SIZE_BUCKET_UNKNOWN};
                count++;
            }
        }
        struct hw_profile_size_bar *own = (struct hw_profile_size_bar *)all + first;
        if (fine && count > first && (taking->estimated || (taking->moving && sizes_clash(own, count - first))))
            fit_sizes(own, count - first, context);
    }
    free_items(&items);
    profile->size_bars = hw_arena_allocate(taking->arena, count + 1, sizeof *profile->size_bars);
    fine = fine && profile->size_bars;
    if (fine && count)
        memcpy(profile->size_bars, all, count * sizeof *profile->size_bars);
    profile->size_bar_count = fine ? count : 0;
    free(all);
    return fine;
}

/* ---- lifetimes ---- */

/* Bytes of blocks that were freed, at their size then. */
static uint64_t bytes_freed(const struct taking *taking, const struct hw_mib *mib)
{
    return mib->bytes - (uint64_t)mib->live_bytes -
           (taking->profile->process.sample_bytes ? 0 : mib->realloc_shrunk_bytes);
}

static void sum_lives(const struct taking *taking, const struct hw_table *table, const struct items *items,
                      uint32_t context, struct hw_profile_life_bar bars[HW_LIFETIME_UNKNOWN + 1])
{
    bool mixed[HW_LIFETIME_UNKNOWN + 1] = {false};
    memset(bars, 0, (HW_LIFETIME_UNKNOWN + 1) * sizeof *bars);
    for (uint32_t i = items->start[context]; i < items->start[context + 1]; i++) {
        const void *item = item_at(taking, table, sizeof(struct hw_lifetime_bar), items->item[i]);
        if (items->item[i] < taking->mibs->count) {
            const struct hw_mib *mib = item;
            if (!mib->first_life || mib->first_life == HW_NO_FIRST_LIFE)
                continue;
            const uint32_t first = mib->first_life < HW_LIFETIME_UNKNOWN ? mib->first_life : HW_LIFETIME_UNKNOWN;
            bars[first].frees += mib->frees;
            bars[first].bytes += bytes_freed(taking, mib);
            mixed[first] |= mib->flags & HW_MIB_LIVES_MIXED;
            continue;
        }
        const struct hw_lifetime_bar *bar = item;
        if (bar->life > HW_LIFETIME_UNKNOWN || (bar->first >= HW_LIFETIME_UNKNOWN && bar->first != HW_NO_FIRST_LIFE)) {
            hw_problem(taking->problems, "The distribution of lifetimes is damaged: there is no such lifetime.");
            continue;
        }
        bars[bar->life].frees += bar->frees;
        bars[bar->life].bytes += bar->bytes;
        if (bar->first != HW_NO_FIRST_LIFE) {
            bars[bar->first].frees -= bar->frees;
            bars[bar->first].bytes -= bar->bytes;
        }
    }
    for (uint32_t i = 0; i < HW_LIFETIME_UNKNOWN; i++)
        if (mixed[i]) {
            bars[HW_LIFETIME_UNKNOWN].frees += bars[i].frees;
            bars[HW_LIFETIME_UNKNOWN].bytes += bars[i].bytes;
            bars[i].frees = bars[i].bytes = 0;
        }
}

static struct hw_profile_life_bar *all_lives(void *bars)
{
    return bars;
}

static bool take_lives(struct taking *taking, const struct hw_table *table)
{
    struct hw_profile *profile = taking->profile;
    struct items items = {0};
    struct hw_profile_life_bar bars[HW_LIFETIME_UNKNOWN + 1];
    void *all = NULL;
    size_t count = 0, capacity = 0;
    bool fine = sort_items(taking, table, sizeof(struct hw_lifetime_bar), &items);
    for (size_t i = 0; fine && i < profile->context_count; i++) {
        const struct hw_profile_context *context = &profile->contexts[i];
        const size_t first = count;
        sum_lives(taking, table, &items, context->id, bars);
        for (uint32_t life = 0; fine && life <= HW_LIFETIME_UNKNOWN; life++) {
            if (!bars[life].frees && !bars[life].bytes)
                continue;
            struct hw_profile_life_bar *to = next_bar(&all, count, &capacity, sizeof *to);
            fine = to != NULL;
            if (fine) {
                bars[life].context = context->id;
                bars[life].life = life;
                *to = bars[life];
                count++;
            }
        }
        if (fine && taking->estimated && count == first && context->frees) { /* estimated of others that were freed */
            struct hw_profile_life_bar *to = next_bar(&all, count, &capacity, sizeof *to);
            fine = to != NULL;
            if (fine)
                all_lives(all)[count++] =
                    (struct hw_profile_life_bar){.context = context->id, .life = HW_LIFETIME_UNKNOWN};
        }
        bool clash = taking->estimated;
        for (size_t k = first; taking->moving && k < count; k++) {
            clash |= (int64_t)all_lives(all)[k].frees < 0;
            if ((int64_t)all_lives(all)[k].bytes < 0)
                all_lives(all)[k].bytes = 0;
        }
        if (fine && clash && count > first)
            fit(&all_lives(all)[first].frees, count - first, sizeof(struct hw_profile_life_bar),
                (int64_t)context->frees);
    }
    free_items(&items);
    profile->life_bars = hw_arena_allocate(taking->arena, count + 1, sizeof *profile->life_bars);
    fine = fine && profile->life_bars;
    if (fine && count)
        memcpy(profile->life_bars, all, count * sizeof *profile->life_bars);
    profile->life_bar_count = fine ? count : 0;
    free(all);
    return fine;
}

bool hw_profile_take_distributions(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                                   struct hw_problems *problems)
{
    const struct hw_process_info *process = &profile->process;
    struct taking taking = {
        .profile = profile, .arena = arena, .mibs = &tables->of[HW_SECTION_MIBS], .problems = problems};
    if (!(process->flags & HW_PROCESS_MERGED)) { /* else the parts were fitted already */
        taking.estimated = process->sample_bytes || profile->observed;
        taking.moving = !profile->sealed || process->flags & HW_PROCESS_DUMP || profile->threads_left > 1 ||
                        process->exit_kind != HW_EXIT_CODE;
    }
    profile->bars_recorded = !profile->llvm && profile->process.flags & HW_PROCESS_BARS;
    return !profile->bars_recorded || (take_sizes(&taking, &tables->of[HW_SECTION_SIZE_BARS]) &&
                                       take_lives(&taking, &tables->of[HW_SECTION_LIFETIME_BARS]));
}
