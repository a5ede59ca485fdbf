/* model_allocator.c - what was observed of the allocator itself: sections ALLOCATOR_INFO and those that follow it ->
 * the profile. Slots of threads and entries for the same thing are added up; references are checked. */
#include "profile/model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"

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

/* Where the number of a column of hw_operation_counts goes. */
static uint64_t *counted(struct hw_profile_allocator *to, int phase, int column, uint32_t bucket)
{
    return column == HW_OPERATION_BYTES         ? &to->bytes[phase][bucket]
           : column == HW_OPERATION_BYTES_FREED ? &to->bytes_freed
                                                : &hw_profile_operation(to, phase, column, bucket)->count;
}

static void take_counts(struct taker *taker)
{
    const struct hw_table *table = &taker->of[HW_SECTION_OPERATION_COUNTS];
    const struct hw_operation_counts *entry = table->entries;
    const uint64_t kept = taker->to->info.reset_slot - 1; /* of no slot: the greatest number */
    taker->to->bytes_known = taker->to->info.flags & HW_ALLOCATOR_BYTES;
    taker->to->bytes_freed_known = taker->to->info.flags & HW_ALLOCATOR_BYTES_FREED;
    for (size_t i = 0; i < table->count; i++)
        for (int phase = 0; phase < HW_PHASES && i / HW_SIZE_BUCKETS != kept; phase++)
            for (int column = 0; column < HW_OPERATION_KINDS_ROOM; column++)
                add(counted(taker->to, phase, column, (uint32_t)(i % HW_SIZE_BUCKETS)), entry[i].count[phase][column]);
    if (kept >= table->count / HW_SIZE_BUCKETS)
        return;
    for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++)
        for (int phase = 0; phase < HW_PHASES; phase++)
            for (int column = 0; column < HW_OPERATION_KINDS_ROOM; column++) {
                uint64_t *count = counted(taker->to, phase, column, bucket);
                const uint64_t before = entry[kept * HW_SIZE_BUCKETS + bucket].count[phase][column];
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
        struct hw_profile_operation one = {.samples = from->samples,
                                           .weight = from->weight,
                                           .ticks = from->ticks,
                                           .most = from->most,
                                           .inside_ticks = from->inside_ticks,
                                           .exact_ticks = from->exact_ticks};
        memcpy(one.histogram, from->histogram, sizeof one.histogram);
        hw_profile_operation_add(hw_profile_operation(taker->to, (int)from->phase, (int)from->kind, from->bucket),
                                 &one);
    }
}

void hw_profile_operation_add(struct hw_profile_operation *to, const struct hw_profile_operation *from)
{
    add(&to->count, from->count);
    add(&to->exact_ticks, from->exact_ticks);
    if (!from->samples)
        return;
    add(&to->samples, from->samples);
    add(&to->weight, from->weight);
    add(&to->ticks, from->ticks);
    add(&to->inside_ticks, from->inside_ticks);
    to->most = from->most > to->most ? from->most : to->most;
    for (size_t bin = 0; bin < HW_TIME_BINS; bin++)
        add(&to->histogram[bin], from->histogram[bin]);
}

double hw_profile_operation_mean(const struct hw_profile_operation *operation)
{
    return operation->weight && operation->count ? hw_profile_operation_total(operation) / (double)operation->count
                                                 : (double)NAN;
}

double hw_profile_operation_total(const struct hw_profile_operation *operation)
{
    const uint64_t rest = operation->ticks > operation->inside_ticks ? operation->ticks - operation->inside_ticks : 0;
    return (operation->weight ? (double)rest / (double)operation->weight * (double)operation->count : 0) +
           (double)operation->exact_ticks;
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
    const bool followed = to->info.flags & HW_ALLOCATOR_PLACES;
    for (int phase = 0; phase < HW_PHASES; phase++)
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
            for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++)
                add(kind == HW_OPERATION_FREE
                        ? (followed && bucket == HW_SIZE_BUCKET_UNKNOWN ? &to->foreign_frees : &to->frees)
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
    return HW_ORDER(a->context, b->context) ?: HW_ORDER(a->kind, b->kind);
}

static int by_ticks(const void *left, const void *right)
{
    const struct hw_operation_site *a = left, *b = right;
    return HW_ORDER(b->ticks, a->ticks) ?: by_site(left, right);
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
    return HW_ORDER(b->ticks, a->ticks) ?: HW_ORDER(a->tick, b->tick);
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
    return HW_ORDER(a->stage, b->stage) ?: HW_ORDER(a->begin, b->begin) ?: HW_ORDER(a->thread, b->thread);
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

/* The critical way: what the slowest thread of each stage did, and took. */
struct critical {
    double ticks, operations;
};

static struct critical critical_of(const struct hw_profile_allocator *allocator)
{
    struct critical sum = {0}, most = {0};
    for (size_t i = 0; i < allocator->stage_count; i++) {
        const struct hw_operation_stage *stage = &allocator->stages[i];
        const bool another = i == 0 || stage->stage != stage[-1].stage || (stage->flags & HW_STAGE_REST);
        struct critical one = {0};
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++) {
            one.ticks += (double)stage->kind[kind].ticks;
            one.operations += (double)stage->kind[kind].count;
        }
        if (another) {
            sum.ticks += most.ticks;
            sum.operations += most.operations;
            most = (struct critical){0};
        }
        most = one.ticks > most.ticks || (one.ticks >= most.ticks && one.operations > most.operations) ? one : most;
    }
    sum.ticks += most.ticks;
    sum.operations += most.operations;
    return sum;
}

double hw_profile_critical_ticks(const struct hw_profile_allocator *allocator)
{
    if (allocator->info.runs)
        return (double)allocator->info.critical_ticks;
    /* Stages and histograms are estimated by themselves: one cannot be more than the other. */
    const double all = hw_profile_operations_ticks(allocator), critical = critical_of(allocator).ticks;
    return allocator->stage_count && critical < all ? critical : all;
}

double hw_profile_own_critical_ticks(const struct hw_profile_allocator *allocator)
{
    const struct hw_allocator_info *info = &allocator->info;
    if (info->runs)
        return (double)info->own_critical_ticks;
    double all = 0, calls = 0;
    for (enum hw_operation_kind kind = 0; kind < HW_OPERATION_KINDS; kind++)
        all += (double)hw_profile_kind_of(allocator, kind).count;
    for (enum hw_system_call call = 0; call < HW_SYSTEM_CALLS; call++)
        calls += (double)hw_profile_call_of(&allocator->inside, call, -1).count;
    const double here = allocator->stage_count ? critical_of(allocator).operations : all;
    const double share = here < all ? here / all : 1;
    return here * (double)info->hook_ticks / 1000 +
           share * (calls * (double)info->call_ticks + (double)info->own_ticks);
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

/* ---- estimates beside exact totals ----
 *
 * Contexts are estimated from blocks that were followed, the totals are known: ratio estimators make them agree. They
 * have a bias of the order of 1 / samples, and take out the error that all contexts have in common. What a context has
 * live and what it has not any more are fitted apart and then added up, and no context has more at the peak than it
 * ever asked for: whatever the samples were, no row of a report is impossible. */

/* Parts of a whole, rounded so that their sum is the whole. */
struct rounding {
    double sum;
    uint64_t given;
};

static uint64_t next_part(struct rounding *rounding, double part)
{
    rounding->sum += part > 0 ? part : 0;
    const uint64_t whole = rounding->sum < 0x1p63 ? (uint64_t)(rounding->sum + 0.5) : rounding->given;
    const uint64_t value = whole - rounding->given;
    rounding->given = whole;
    return value;
}

static double ratio(double exact, double estimate)
{
    return exact > 0 && estimate > 0 ? exact / estimate : 1;
}

static double positive(double value)
{
    return value > 0 ? value : 0;
}

/* Live blocks that the process had not allocated itself, or not since the latest reset. */
static int64_t live_before(const struct hw_process_info *process)
{
    return process->flags & (HW_PROCESS_FORKED | HW_PROCESS_RESET) ? process->inherited_blocks : 0;
}

/* Blocks live now. Operations are counted in the file itself, up to the last one of every thread; what lies where is
 * written down now and then, and for the last time before an end that is seen. */
static int64_t live_blocks(const struct hw_profile *profile, const struct hw_thread_entry *totals)
{
    return (int64_t)(totals->allocations - totals->frees - (profile->places ? profile->places->info.unaligned : 0) +
                     (uint64_t)live_before(&profile->process));
}

/* Bytes of all blocks. Profiles of older versions: numbers by size bucket are exact, of a bucket the middle stands for
 * all. What reallocations add is not in that, but that as many bytes as were live at the peak were asked for is known.
 */
static double bytes_allocated(const struct hw_profile *profile)
{
    const struct hw_profile_allocator *observed = profile->observed;
    const int64_t older = profile->process.flags & HW_PROCESS_RESET ? profile->process.inherited_bytes : 0;
    const double least = (double)profile->process.peak_bytes - (double)older;
    double sum = 0;
    for (int phase = 0; phase < HW_PHASES; phase++)
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
            for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKET_LAST; bucket++)
                if (kind != HW_OPERATION_FREE && kind != HW_OPERATION_REALLOC)
                    sum += (double)hw_profile_operation(observed, phase, kind, bucket)->count * 0.5 *
                           ((double)hw_size_bucket_least(bucket) + (double)hw_size_bucket_most(bucket));
    return sum > least ? sum : least;
}

static uint64_t total_bytes(const struct hw_profile *profile)
{
    uint64_t sum = 0;
    if (!profile->observed->bytes_known) {
        const double bytes = bytes_allocated(profile);
        return bytes < 0x1p63 ? (uint64_t)(bytes + 0.5) : UINT64_MAX;
    }
    for (int phase = 0; phase < HW_PHASES; phase++)
        for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++)
            add(&sum, profile->observed->bytes[phase][bucket]);
    return sum;
}

/* What contexts say, added up; what all of them are known to be; how the one becomes the other. Obtained is what was
 * allocated, and before that inherited; gone is what was obtained and is not live any more. Where there is nothing gone
 * among the samples it is shared out by what was obtained. */
struct fit {
    double older, live, gone, obtained;
    double by_older, by_live, by_gone, by_obtained;
    struct rounding older_parts, live_parts, gone_parts;
    uint64_t owed; /* of what was inherited: more than contexts so far can have had */
};

static void fit_add(struct fit *fit, double allocated, int64_t older, int64_t live)
{
    const double obtained = allocated + positive((double)older), here = positive((double)live);
    fit->older += positive((double)older);
    fit->live += here;
    fit->gone += positive(obtained - here);
    fit->obtained += obtained;
}

static void fit_to(struct fit *fit, double allocated, double older, double live)
{
    const double obtained = allocated + positive(older), gone = positive(obtained - live);
    fit->by_older = fit->older > 0 ? positive(older) / fit->older : 0;
    fit->by_live = fit->live > 0 ? positive(live) / fit->live : 0;
    fit->by_gone = fit->gone > 0 ? gone / fit->gone : 0;
    fit->by_obtained = fit->gone > 0 || !(fit->obtained > 0) ? 0 : gone / fit->obtained;
}

/* Of LIVE ones so many may have been inherited: as near to ESTIMATE as that allows. */
static double own_live(double estimate, double live, double inherited)
{
    const double most = positive(live), least = positive(live - positive(inherited));
    return estimate < least ? least : estimate < most ? estimate : most;
}

/* Sets what a context has live, had inherited and allocated; returns what is gone. */
static uint64_t fit_part(struct fit *fit, uint64_t *allocated, int64_t *older, int64_t *live)
{
    const double obtained = (double)*allocated + positive((double)*older), here = positive((double)*live);
    const uint64_t gone =
        next_part(&fit->gone_parts, positive(obtained - here) * fit->by_gone + obtained * fit->by_obtained);
    *live = (int64_t)next_part(&fit->live_parts, here * fit->by_live);
    const uint64_t all = gone + (uint64_t)*live;
    uint64_t before = next_part(&fit->older_parts, positive((double)*older) * fit->by_older) + fit->owed;
    fit->owed = before > all ? before - all : 0; /* the next ones have had it */
    before -= fit->owed;
    *older = (int64_t)before;
    *allocated = all - before;
    return gone;
}

/* After all parts: what is still owed is what contexts before had inherited rather than allocated. */
static void fit_rest(struct fit *fit, uint64_t *allocated, int64_t *older)
{
    const uint64_t part = fit->owed < *allocated ? fit->owed : *allocated;
    *allocated -= part;
    *older += (int64_t)part;
    fit->owed -= part;
}

/* The most that a context may have had at the peak. */
static double peak_most(const struct hw_profile_context *context)
{
    return (double)context->bytes + positive((double)context->inherited_bytes);
}

/* By what the shares in the peak are to be multiplied so that, none being above its most, they add up to it. */
static double peak_factor(const struct hw_profile *profile)
{
    double factor = 0;
    for (int round = 0; round < 64; round++) {
        double full = 0, rest = 0;
        for (size_t i = 0; i < profile->context_count; i++) {
            const double share = positive((double)profile->contexts[i].peak_bytes);
            const double most = peak_most(&profile->contexts[i]);
            *(share * factor < most ? &rest : &full) += share * factor < most ? share : most;
        }
        const double next = rest > 0 ? ((double)profile->process.peak_bytes - full) / rest : factor;
        if (!(next > factor))
            break;
        factor = next;
    }
    return factor;
}

static void fit_peaks(struct hw_profile *profile, double factor)
{
    struct rounding bytes = {0}, blocks = {0};
    for (size_t i = 0; i < profile->context_count; i++) {
        struct hw_profile_context *context = &profile->contexts[i];
        const double share = positive((double)context->peak_bytes), most = peak_most(context);
        const double here = share * factor < most ? share * factor : most;
        const double number = positive((double)context->peak_blocks) * (share > 0 ? here / share : factor);
        const double number_most = (double)context->allocations + positive((double)context->inherited_blocks);
        context->peak_bytes = (int64_t)next_part(&bytes, here);
        if ((double)context->peak_bytes > most)
            context->peak_bytes = (int64_t)most;
        context->peak_blocks = (int64_t)next_part(&blocks, number);
        if ((double)context->peak_blocks > number_most)
            context->peak_blocks = (int64_t)number_most;
    }
}

/* Requested bytes that are live now, as live_blocks. */
static int64_t live_bytes(const struct hw_profile *profile, uint64_t bytes)
{
    const struct hw_process_info *process = &profile->process;
    const bool older = process->flags & (HW_PROCESS_FORKED | HW_PROCESS_RESET);
    if (!profile->observed->bytes_freed_known || (profile->places && profile->places->info.unaligned))
        return profile->places->info.requested_bytes;
    return (int64_t)(bytes - profile->observed->bytes_freed) + (older ? process->inherited_bytes : 0);
}

static void fit_totals(struct hw_profile *profile)
{
    const struct hw_profile_allocator *observed = profile->observed;
    const struct hw_profile_places *places = profile->places;
    struct hw_thread_entry *const totals[] = {&profile->totals, &profile->context_totals};
    const uint64_t bytes = total_bytes(profile);
    const bool live_known =
        places || observed->bytes_freed_known; /* places are written down after the first operation */
    for (size_t i = 0; i < 2; i++) {
        totals[i]->allocations = observed->allocations;
        totals[i]->frees = observed->frees + (places ? places->info.unseen_frees : 0);
        totals[i]->foreign_frees = observed->foreign_frees;
        totals[i]->reallocations = observed->reallocations;
        totals[i]->temporary = 0; /* of followed ones alone */
        totals[i]->bytes = bytes;
        totals[i]->live_bytes = live_known ? live_bytes(profile, bytes) : totals[i]->live_bytes;
        totals[i]->live_blocks = live_known ? live_blocks(profile, totals[i]) : totals[i]->live_blocks;
    }
}

void hw_profile_fit_observed(struct hw_profile *profile)
{
    const struct hw_process_info *process = &profile->process;
    if (!profile->observed || (process->flags & HW_PROCESS_MERGED))
        return;
    /* Contexts of a forked child are of its own blocks, the totals of all: how many of its own live is not known. */
    const bool own = (process->flags & (HW_PROCESS_FORKED | HW_PROCESS_RESET)) == HW_PROCESS_FORKED;
    const bool older = !own && process->flags & HW_PROCESS_RESET;
    struct fit blocks = {0}, bytes = {0};
    fit_totals(profile);
    const bool live_known = profile->places || profile->observed->bytes_freed_known;
    /* A peak that was not left yet: it is what is live. */
    const bool at_peak = live_known && profile->totals.live_bytes > (int64_t)profile->process.peak_bytes;
    if (at_peak)
        profile->process.peak_bytes = (uint64_t)profile->totals.live_bytes;
    for (size_t i = 0; i < profile->context_count; i++) {
        const struct hw_profile_context *context = &profile->contexts[i];
        fit_add(&blocks, (double)context->allocations, older ? context->inherited_blocks : 0, context->live_blocks);
        fit_add(&bytes, (double)context->bytes, older ? context->inherited_bytes : 0, context->live_bytes);
    }
    const struct hw_thread_entry *all = &profile->totals;
    const double by_bytes = ratio((double)all->bytes, bytes.obtained);
    double live = blocks.live * ratio((double)all->allocations, blocks.obtained), live_bytes = bytes.live * by_bytes;
    if (live_known) {
        live = own_live(live, (double)all->live_blocks, own ? (double)process->inherited_blocks : 0);
        live_bytes = own_live(live_bytes, (double)all->live_bytes, own ? (double)process->inherited_bytes : 0);
    } else if (live < (double)all->allocations - (double)all->frees) {
        live = (double)all->allocations - (double)all->frees;
    }
    fit_to(&blocks, (double)all->allocations, older ? (double)process->inherited_blocks : 0, live);
    fit_to(&bytes, (double)all->bytes, older ? (double)process->inherited_bytes : 0, live_bytes);
    for (size_t i = 0; i < profile->context_count; i++) {
        struct hw_profile_context *context = &profile->contexts[i];
        int64_t none = 0;
        context->temporary = 0;
        context->frees =
            fit_part(&blocks, &context->allocations, older ? &context->inherited_blocks : &none, &context->live_blocks);
        fit_part(&bytes, &context->bytes, older ? &context->inherited_bytes : &none, &context->live_bytes);
    }
    for (size_t i = 0; older && i < profile->context_count; i++) {
        fit_rest(&blocks, &profile->contexts[i].allocations, &profile->contexts[i].inherited_blocks);
        fit_rest(&bytes, &profile->contexts[i].bytes, &profile->contexts[i].inherited_bytes);
    }
    if (!at_peak) {
        const double by_peak = peak_factor(profile);
        fit_peaks(profile, own && by_bytes < by_peak ? by_bytes : by_peak);
    }
    for (size_t i = 0; at_peak && i < profile->context_count; i++) {
        profile->contexts[i].peak_bytes = profile->contexts[i].live_bytes;
        profile->contexts[i].peak_blocks = profile->contexts[i].live_blocks;
    }
}
