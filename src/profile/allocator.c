/* allocator.c - what was observed of the allocator itself: sections ALLOCATOR_INFO and those that follow it -> the
 * profile. Slots of threads and entries for the same thing are added up; references are checked. */
#include "profile/container.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where nothing better is known of the allocator: glibc's threshold of mmap. */
#define LARGE_USUALLY (128u << 10)

struct taker {
    struct hw_profile *profile;
    struct hw_profile_allocator *to;
    struct hw_arena *arena;
    const struct hw_table *of; /* by type */
    struct hw_problems *problems;
    uint64_t end_tick; /* the latest moment that the file speaks of */
};

static void take_info(struct taker *taker)
{
    const struct hw_table *table = &taker->of[HW_SECTION_ALLOCATOR_INFO];
    if (table->count)
        memcpy(&taker->to->info, table->entries, sizeof taker->to->info);
    else
        hw_problem(taker->problems, "The section that says how the allocator was observed is missing.");
    const struct hw_allocator_info *info = &taker->to->info;
    taker->to->runs = info->runs ? info->runs : 1;
    taker->to->ns_per_tick = info->duration_ns && info->duration_ticks
                                 ? (double)info->duration_ns / (double)info->duration_ticks
                                 : taker->profile->ns_per_tick;
}

/* ---- operations ---- */

static void add(uint64_t *to, uint64_t value)
{
    *to = hw_add_saturating(*to, value);
}

static void take_counts(struct taker *taker)
{
    const struct hw_table *table = &taker->of[HW_SECTION_OPERATION_COUNTS];
    const struct hw_operation_counts *entry = table->entries;
    const uint64_t kept = taker->to->info.reset_slot - 1; /* of no slot: the greatest number */
    for (size_t i = 0; i < table->count; i++)
        for (int phase = 0; phase < HW_PHASES && i / HW_SIZE_BUCKETS != kept; phase++)
            for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
                add(&hw_profile_operation(taker->to, phase, kind, (uint32_t)(i % HW_SIZE_BUCKETS))->count,
                    entry[i].count[phase][kind]);
    if (kept >= table->count / HW_SIZE_BUCKETS)
        return;
    for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++)
        for (int phase = 0; phase < HW_PHASES; phase++)
            for (int kind = 0; kind < HW_OPERATION_KINDS; kind++) {
                uint64_t *count = &hw_profile_operation(taker->to, phase, kind, bucket)->count;
                const uint64_t before = entry[kept * HW_SIZE_BUCKETS + bucket].count[phase][kind];
                *count = *count > before ? *count - before : 0;
            }
}

static void take_times(struct taker *taker)
{
    const struct hw_table *table = &taker->of[HW_SECTION_OPERATION_TIMES];
    const struct hw_operation_times *entry = table->entries;
    for (size_t i = 0; i < table->count; i++) {
        const struct hw_operation_times *from = &entry[i];
        if (from->phase >= HW_PHASES || from->kind >= HW_OPERATION_KINDS || from->bucket >= HW_SIZE_BUCKETS) {
            hw_problem(taker->problems, "The times of operations are damaged: some are of a kind that does not exist.");
            continue;
        }
        struct hw_profile_operation one = {
            .samples = from->samples, .weight = from->weight, .ticks = from->ticks, .most = from->most};
        memcpy(one.histogram, from->histogram, sizeof one.histogram);
        hw_profile_operation_add(hw_profile_operation(taker->to, (int)from->phase, (int)from->kind, from->bucket),
                                 &one);
    }
}

void hw_profile_operation_add(struct hw_profile_operation *to, const struct hw_profile_operation *from)
{
    add(&to->count, from->count);
    if (!from->samples)
        return;
    add(&to->samples, from->samples);
    add(&to->weight, from->weight);
    add(&to->ticks, from->ticks);
    to->most = from->most > to->most ? from->most : to->most;
    for (size_t bin = 0; bin < HW_TIME_BINS; bin++)
        add(&to->histogram[bin], from->histogram[bin]);
}

double hw_profile_operation_mean(const struct hw_profile_operation *operation)
{
    return operation->weight ? (double)operation->ticks / (double)operation->weight : (double)NAN;
}

double hw_profile_operation_total(const struct hw_profile_operation *operation)
{
    return operation->weight ? hw_profile_operation_mean(operation) * (double)operation->count : 0;
}

double hw_profile_operation_percentile(const struct hw_profile_operation *operation, double share)
{
    double all = 0, below = 0;
    for (size_t bin = 0; bin < HW_TIME_BINS; bin++)
        all += (double)operation->histogram[bin];
    const double wanted = all * share, most = (double)operation->most;
    for (uint32_t bin = 0; bin < HW_TIME_BINS; bin++) {
        const double here = (double)operation->histogram[bin];
        if (here > 0 && below + here >= wanted) {
            const double least = (double)hw_time_bin_least(bin), end = (double)hw_time_bin_least(bin + 1);
            const double value = bin < 16 ? least : least + (end - least) * (wanted - below) / here;
            return value < most ? value : most;
        }
        below += here;
    }
    return all > 0 ? most : (double)NAN;
}

static void take_totals(struct hw_profile_allocator *to)
{
    for (int phase = 0; phase < HW_PHASES; phase++)
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
            for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++)
                add(kind == HW_OPERATION_FREE      ? &to->frees
                    : kind == HW_OPERATION_REALLOC ? &to->reallocations
                                                   : &to->allocations,
                    hw_profile_operation(to, phase, kind, bucket)->count);
}

enum hw_size_group hw_profile_size_group(const struct hw_profile_allocator *allocator, uint32_t bucket)
{
    if (bucket == HW_SIZE_BUCKET_UNKNOWN)
        return HW_SIZE_NOT_KNOWN;
    /* A bucket belongs to where its smallest size does: thresholds lie at its begin, or a little inside. */
    const uint64_t least = hw_size_bucket_least(bucket);
    return least >= allocator->large_least                               ? HW_SIZE_LARGE
           : allocator->medium_least && least >= allocator->medium_least ? HW_SIZE_MEDIUM
                                                                         : HW_SIZE_SMALL;
}

/* ---- lists ---- */

void *hw_profile_take_list(struct hw_arena *arena, const struct hw_table *table, size_t size,
                           enum hw_taken (*take)(const void *closure, void *entry), const void *closure,
                           int (*compare)(const void *, const void *), struct hw_problems *problems, const char *damage,
                           size_t *count)
{
    char *list = hw_arena_allocate(arena, table->count + 1, size), *to = list;
    bool damaged = false;
    *count = 0;
    if (!list)
        return NULL;
    for (size_t i = 0; i < table->count; i++) {
        memcpy(to, (const char *)table->entries + i * size, size);
        const enum hw_taken taken = take(closure, to);
        to += taken == HW_TAKEN ? size : 0;
        damaged |= taken == HW_TAKEN_DAMAGED;
    }
    memset(to, 0, size);
    *count = (size_t)(to - list) / size;
    if (damaged)
        hw_problem(problems, "%s", damage);
    qsort(list, *count, size, compare);
    return list;
}

static bool context_exists(const struct taker *taker, uint32_t context)
{
    return context < taker->profile->context_entry_count || context == 0;
}

static int by_site(const void *left, const void *right)
{
    const struct hw_operation_site *a = left, *b = right;
    if (a->context != b->context)
        return a->context < b->context ? -1 : 1;
    return (a->kind > b->kind) - (a->kind < b->kind);
}

static int by_ticks(const void *left, const void *right)
{
    const struct hw_operation_site *a = left, *b = right;
    if (a->ticks != b->ticks)
        return a->ticks > b->ticks ? -1 : 1;
    return by_site(left, right);
}

size_t hw_operation_sites_join(struct hw_operation_site *sites, size_t count)
{
    size_t sum = 0;
    qsort(sites, count, sizeof *sites, by_site);
    for (size_t i = 0; i < count; i++) {
        if (sum == 0 || by_site(&sites[sum - 1], &sites[i])) {
            sites[sum++] = sites[i];
            continue;
        }
        struct hw_operation_site *to = &sites[sum - 1];
        add(&to->samples, sites[i].samples);
        add(&to->weight, sites[i].weight);
        add(&to->ticks, sites[i].ticks);
        add(&to->bytes, sites[i].bytes);
        to->most = sites[i].most > to->most ? sites[i].most : to->most;
    }
    return sum;
}

static enum hw_taken take_site(const void *taker, void *entry)
{
    const struct hw_operation_site *site = entry;
    return context_exists(taker, site->context) && site->kind < HW_OPERATION_KINDS ? HW_TAKEN : HW_TAKEN_DAMAGED;
}

static bool take_sites(struct taker *taker)
{
    struct hw_operation_site *sites = hw_profile_take_list(
        taker->arena, &taker->of[HW_SECTION_OPERATION_SITES], sizeof *sites, take_site, taker, by_site, taker->problems,
        "The times of call sites are damaged: some are of one that does not exist.", &taker->to->site_count);
    if (!sites)
        return false;
    taker->to->site_count = hw_operation_sites_join(sites, taker->to->site_count);
    qsort(sites, taker->to->site_count, sizeof *sites, by_ticks);
    taker->to->sites = sites;
    return true;
}

void hw_operation_lives_add(struct hw_operation_lives *to, const struct hw_operation_lives *from)
{
    add(&to->samples, from->samples);
    add(&to->weight, from->weight);
    add(&to->freed, from->freed);
    add(&to->freed_elsewhere, from->freed_elsewhere);
    for (size_t bin = 0; bin < HW_LIFE_BINS; bin++)
        add(&to->histogram[bin], from->histogram[bin]);
}

static bool take_lives(struct taker *taker)
{
    const struct hw_table *table = &taker->of[HW_SECTION_OPERATION_LIVES];
    const struct hw_operation_lives *entry = table->entries;
    struct hw_operation_lives *sums = hw_arena_allocate(taker->arena, HW_SIZE_BUCKETS, sizeof *sums);
    size_t count = 0;
    if (!sums)
        return false;
    for (size_t i = 0; i < table->count; i++) {
        if (entry[i].bucket < HW_SIZE_BUCKETS)
            hw_operation_lives_add(&sums[entry[i].bucket], &entry[i]);
        else
            hw_problem(taker->problems, "The lives of blocks are damaged: some are of a size that does not exist.");
    }
    for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++)
        if (sums[bucket].samples) {
            sums[count] = sums[bucket];
            sums[count++].bucket = bucket;
        }
    taker->to->lives = sums;
    taker->to->lives_count = count;
    return true;
}

static int by_slowness(const void *left, const void *right)
{
    const struct hw_slow_operation *a = left, *b = right;
    if (a->ticks != b->ticks)
        return a->ticks > b->ticks ? -1 : 1;
    return (a->tick > b->tick) - (a->tick < b->tick);
}

static enum hw_taken take_slow(const void *taker, void *entry)
{
    const struct hw_slow_operation *slow = entry;
    if (!slow->ticks)
        return HW_TAKEN_NOT;
    return context_exists(taker, slow->context) && slow->kind < HW_OPERATION_KINDS && slow->phase < HW_PHASES
               ? HW_TAKEN
               : HW_TAKEN_DAMAGED;
}

static bool take_slowest(struct taker *taker)
{
    taker->to->slowest = hw_profile_take_list(
        taker->arena, &taker->of[HW_SECTION_SLOWEST], sizeof *taker->to->slowest, take_slow, taker, by_slowness,
        taker->problems, "The slowest operations are damaged: one is of a kind that does not exist.",
        &taker->to->slowest_count);
    return taker->to->slowest != NULL;
}

static int by_stage(const void *left, const void *right)
{
    const struct hw_operation_stage *a = left, *b = right;
    if (a->stage != b->stage)
        return a->stage < b->stage ? -1 : 1;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return (a->thread > b->thread) - (a->thread < b->thread);
}

static enum hw_taken take_stage(const void *closure, void *entry)
{
    const struct taker *taker = closure;
    struct hw_operation_stage *stage = entry;
    if (!stage->end) /* it goes on */
        stage->end = taker->end_tick > stage->begin ? taker->end_tick : stage->begin;
    return stage->phase < HW_PHASES && stage->begin <= stage->end ? HW_TAKEN : HW_TAKEN_DAMAGED;
}

static bool take_stages(struct taker *taker)
{
    taker->to->stages = hw_profile_take_list(taker->arena, &taker->of[HW_SECTION_STAGES], sizeof *taker->to->stages,
                                             take_stage, taker, by_stage, taker->problems,
                                             "The stages are damaged: one ends before it begins, or is of no phase.",
                                             &taker->to->stage_count);
    return taker->to->stages != NULL;
}

/* ---- sums of all operations ---- */

struct hw_profile_kind hw_profile_kind_of(const struct hw_profile_allocator *allocator, enum hw_operation_kind kind)
{
    struct hw_profile_kind sum = {0};
    for (int phase = 0; phase < HW_PHASES; phase++)
        for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++) {
            const struct hw_profile_operation *operation = hw_profile_operation(allocator, phase, kind, bucket);
            sum.count = hw_add_saturating(sum.count, operation->count);
            sum.timed = hw_add_saturating(sum.timed, operation->samples ? operation->count : 0);
            sum.ticks += hw_profile_operation_total(operation);
        }
    return sum;
}

double hw_profile_operations_ticks(const struct hw_profile_allocator *allocator)
{
    double sum = 0;
    for (enum hw_operation_kind kind = 0; kind < HW_OPERATION_KINDS; kind++)
        sum += hw_profile_kind_of(allocator, kind).ticks;
    return sum;
}

static double ticks_of_stages(const struct hw_profile_allocator *allocator)
{
    double sum = 0, most = 0;
    for (size_t i = 0; i < allocator->stage_count; i++) {
        const struct hw_operation_stage *stage = &allocator->stages[i];
        const bool another = i == 0 || stage->stage != stage[-1].stage || (stage->flags & HW_STAGE_REST);
        double ticks = 0;
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
            ticks += (double)stage->kind[kind].ticks;
        if (another) {
            sum += most;
            most = 0;
        }
        most = ticks > most ? ticks : most;
    }
    return sum + most;
}

double hw_profile_critical_ticks(const struct hw_profile_allocator *allocator)
{
    if (allocator->info.runs)
        return (double)allocator->info.critical_ticks;
    /* Stages and histograms are estimated by themselves: one cannot be more than the other. */
    const double all = hw_profile_operations_ticks(allocator), critical = ticks_of_stages(allocator);
    return allocator->stage_count && critical < all ? critical : all;
}

double hw_profile_thread_ticks(const struct hw_profile_allocator *allocator)
{
    double sum = 0;
    if (allocator->info.runs)
        return allocator->info.runs_staged == allocator->info.runs ? (double)allocator->info.thread_ticks : (double)NAN;
    for (size_t i = 0; i < allocator->stage_count; i++)
        sum += (double)(allocator->stages[i].end - allocator->stages[i].begin);
    return allocator->stage_count ? sum : (double)NAN;
}

uint64_t hw_profile_operation_ns(const struct hw_profile_allocator *allocator, uint64_t ticks)
{
    const double ns = (double)ticks * allocator->ns_per_tick;
    return ns < 0x1p63 ? (uint64_t)ns : UINT64_MAX;
}

/* ---- the whole ---- */

bool hw_profile_take_allocator(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                               struct hw_problems *problems, uint64_t end_tick)
{
    if (profile->process.mode != HW_MODE_ALLOCATOR && !tables->of[HW_SECTION_ALLOCATOR_INFO].count)
        return true;
    if ((profile->process.flags & HW_PROCESS_MERGED) && !tables->of[HW_SECTION_ALLOCATOR_INFO].count)
        return true; /* all runs were of other modes */
    struct hw_profile_allocator *allocator = hw_arena_allocate(arena, 1, sizeof *allocator);
    struct taker taker = {profile, allocator, arena, tables->of, problems, end_tick};
    if (!allocator)
        return false;
    allocator->operations = hw_arena_allocate(arena, (size_t)HW_PHASES * HW_OPERATION_KINDS * HW_SIZE_BUCKETS,
                                              sizeof *allocator->operations);
    if (!allocator->operations || !take_sites(&taker) || !take_lives(&taker) || !take_slowest(&taker) ||
        !take_stages(&taker))
        return false;
    profile->observed = allocator;
    allocator->large_least = LARGE_USUALLY;
    take_info(&taker);
    take_counts(&taker);
    take_times(&taker);
    take_totals(allocator);
    return hw_profile_take_facts(allocator, arena, tables, problems) &&
           hw_profile_take_inside(&allocator->inside, profile, arena, tables);
}

/* ---- estimates beside exact totals ---- */

static double ratio(double exact, double estimate)
{
    return exact > 0 && estimate > 0 ? exact / estimate : 1;
}

static uint64_t scaled(uint64_t count, double by)
{
    const double value = (double)count * by + 0.5;
    return value < 0x1p63 ? (uint64_t)value : count;
}

static int64_t scaled_signed(int64_t value, double by)
{
    return value < 0 ? value : (int64_t)scaled((uint64_t)value, by);
}

/* Blocks live now, of all classes. */
static int64_t live_blocks(const struct hw_profile_places *places)
{
    int64_t sum = 0;
    for (size_t i = 0; i < places->class_count; i++)
        sum += places->classes[i].now.live_blocks;
    return sum;
}

/* Bytes of all blocks: numbers by size bucket are exact, of a bucket the middle stands for all. What reallocations add
 * is not in it, but that as many bytes as were live at the peak were asked for is known. */
static double bytes_allocated(const struct hw_profile *profile)
{
    double sum = 0;
    for (int phase = 0; phase < HW_PHASES; phase++)
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
            for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKET_LAST; bucket++)
                if (kind != HW_OPERATION_FREE && kind != HW_OPERATION_REALLOC)
                    sum += (double)hw_profile_operation(profile->observed, phase, kind, bucket)->count * 0.5 *
                           ((double)hw_size_bucket_least(bucket) + (double)hw_size_bucket_most(bucket));
    const int64_t older = profile->process.flags & HW_PROCESS_RESET ? profile->process.inherited_bytes : 0;
    const double least = (double)profile->process.peak_bytes - (double)older;
    return sum > least ? sum : least;
}

/* Contexts are estimated from blocks that were followed, the totals are known: a ratio estimator makes them agree. It
 * has a bias of the order of 1 / samples, and takes out the error that all contexts have in common. */
void hw_profile_fit_observed(struct hw_profile *profile)
{
    const struct hw_profile_allocator *observed = profile->observed;
    const struct hw_profile_places *places = profile->places;
    double allocations = 0, bytes = 0, live = 0, blocks = 0, peak = 0;
    if (!observed || (profile->process.flags & HW_PROCESS_MERGED))
        return;
    for (size_t i = 0; i < profile->context_count; i++) {
        const struct hw_profile_context *context = &profile->contexts[i];
        allocations += (double)context->allocations;
        bytes += (double)context->bytes;
        live += context->live_bytes > 0 ? (double)context->live_bytes : 0;
        blocks += context->live_blocks > 0 ? (double)context->live_blocks : 0;
        peak += context->peak_bytes > 0 ? (double)context->peak_bytes : 0;
    }
    const double by_count = ratio((double)observed->allocations, allocations);
    const double by_bytes = ratio(bytes_allocated(profile), bytes);
    const double by_live = places ? ratio((double)places->info.requested_bytes, live) : 1;
    const double by_blocks = places ? ratio((double)live_blocks(places), blocks) : 1;
    const double by_peak = ratio((double)profile->process.peak_bytes, peak);
    for (size_t i = 0; i < profile->context_count; i++) {
        struct hw_profile_context *context = &profile->contexts[i];
        context->allocations = scaled(context->allocations, by_count);
        context->frees = scaled(context->frees, by_count);
        context->bytes = scaled(context->bytes, by_bytes);
        context->live_bytes = scaled_signed(context->live_bytes, by_live);
        context->live_blocks = scaled_signed(context->live_blocks, by_blocks);
        context->peak_bytes = scaled_signed(context->peak_bytes, by_peak);
        context->peak_blocks = scaled_signed(context->peak_blocks, by_peak);
    }
    struct hw_profile_totals *const totals[] = {&profile->totals, &profile->context_totals};
    for (size_t i = 0; i < 2; i++) {
        totals[i]->allocations = observed->allocations;
        totals[i]->frees = observed->frees;
        totals[i]->reallocations = observed->reallocations;
        totals[i]->bytes = scaled((uint64_t)bytes, by_bytes);
        totals[i]->live_bytes = places ? places->info.requested_bytes : totals[i]->live_bytes;
        totals[i]->live_blocks = places ? live_blocks(places) : totals[i]->live_blocks;
    }
}
