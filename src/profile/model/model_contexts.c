/* model_contexts.c - MIBs, what was inherited and what was lost -> contexts: one for each id that has numbers. */
#include "profile/add_numbers.h"
#include "profile/model/model.h"

#include <stdlib.h>

/* Ticks in ns, for sums of many lifetimes, which need more than 64 bits: never a product of more than 128. */
static unsigned __int128 scale_sum(unsigned __int128 ticks, uint64_t clock_ns, uint64_t clock_ticks)
{
    if (clock_ticks == 0 || clock_ns == 0 || clock_ns == clock_ticks)
        return ticks;
    const unsigned __int128 most = ~(unsigned __int128)0 >> 1;
    const unsigned __int128 whole = ticks / clock_ticks, rest = ticks % clock_ticks;
    if (whole > most / clock_ns)
        return most; /* only in damaged files */
    return whole * clock_ns + rest * clock_ns / clock_ticks;
}

/* What is in ticks before it becomes ns, beside the context that it belongs to. */
struct sum {
    bool told; /* it has numbers */
    unsigned __int128 lifetime_total;
    uint64_t live_ticks, last_alloc_tick, last_free_tick;
    bool aged; /* live_age_total_ns is known already */
};

/* Counters wrap instead of overflowing: a damaged file may hold any number. */
static void add_signed(int64_t *sum, int64_t value)
{
    *sum = (int64_t)((uint64_t)*sum + (uint64_t)value);
}

static bool mib_is_empty(const struct hw_mib *mib)
{
    return !(mib->allocations | mib->frees | mib->reallocations | mib->bytes | mib->inherited_frees | mib->samples) &&
           mib->live_blocks == 0 && mib->live_bytes == 0;
}

/* What has a rule in numbers.def. Bounds come first: they depend on the counts of before. */
static void add_numbers(struct hw_profile_context *context, const struct hw_mib *mib, bool sampled)
{
#define HW_STORED_MIB(step, member, adds, of, as)   HW_##step##_##adds(context, mib, member, as, of)
#define HW_STORED_TICKS(step, member, adds, of, as) HW_##step##_##adds(context, mib, member, as, of)
#define HW_STORED_ADDED(step, member, adds, of, as) HW_##step##_##adds(context, mib, member, member, of)
#define HW_STORED_EVENT(step, member, adds, of, variance)                                                              \
    if (sampled) { /* the same place in the file */                                                                    \
        HW_##step##_SUM(context, mib, variance, variance, of)                                                          \
    } else {                                                                                                           \
        HW_##step##_SUM(context, mib, member, member, of)                                                              \
    }
#define HW_STORED_CODE(step, member, adds, of, as)
#define HW_NUMBER(type, member, adds, of, stored, as, ...) HW_STORED_##stored(BOUND, member, adds, of, as)
#include "profile/numbers.def"
#define HW_NUMBER(type, member, adds, of, stored, as, ...) HW_STORED_##stored(TOTAL, member, adds, of, as)
#include "profile/numbers.def"
}

static void add_threads(struct hw_profile_context *context, const struct hw_mib *mib)
{
    context->alloc_threads += mib->alloc_threads; /* a slot's threads have no other */
    context->free_threads += mib->free_threads;
}

static void add_times(struct hw_profile_context *context, struct sum *sum, const struct hw_mib *mib)
{
    if (mib->allocations && mib->last_alloc_tick >= sum->last_alloc_tick) {
        sum->last_alloc_tick = mib->last_alloc_tick;
        context->last_alloc_cpu = mib->last_alloc_cpu;
    }
    if (mib->frees == 0)
        return;
    sum->lifetime_total += (unsigned __int128)mib->lifetime_total_high << 64 | mib->lifetime_total;
    if (mib->last_free_tick >= sum->last_free_tick) {
        sum->last_free_tick = mib->last_free_tick;
        context->last_free_cpu = mib->last_free_cpu;
    }
}

static void add_live(struct hw_profile_builder *builder, struct hw_profile_context *context, struct sum *sum,
                     const struct hw_mib *mib)
{
    /* Of another epoch: nothing has changed here since the peak, so what is live now was live then. An epoch that is
     * later than the process's can only be seen while the process runs: its peak is the later one. */
    bool saved = mib->peak_epoch >= builder->profile->process.peak_epoch;
    add_signed(&context->live_blocks, mib->live_blocks);
    add_signed(&context->live_bytes, mib->live_bytes);
    add_signed(&context->peak_blocks, saved ? mib->peak_blocks : mib->live_blocks);
    add_signed(&context->peak_bytes, saved ? mib->peak_bytes : mib->live_bytes);
    sum->aged |= mib->flags & HW_MIB_LIVE_AGE;
    if (mib->flags & HW_MIB_LIVE_AGE)
        context->live_age_total_ns = hw_add_saturating(context->live_age_total_ns, mib->live_ticks);
    else
        sum->live_ticks += mib->live_ticks;
}

static void add_total(struct hw_thread_entry *totals, const struct hw_mib *mib, bool sampled)
{
    totals->allocations += mib->allocations;
    totals->frees += mib->frees;
    totals->reallocations += sampled ? 0 : mib->reallocations;
    totals->temporary += mib->temporary;
    totals->bytes += mib->bytes;
    add_signed(&totals->live_blocks, mib->live_blocks);
    add_signed(&totals->live_bytes, mib->live_bytes);
}

static void merge_mibs(struct hw_profile_builder *builder, struct hw_profile_context *contexts, struct sum *sums)
{
    const struct hw_table *table = &builder->tables->of[HW_SECTION_MIBS];
    const struct hw_mib *mibs = table->entries;
    const bool sampled = builder->profile->process.sample_bytes;
    for (size_t i = 0; i < table->count; i++) {
        const struct hw_mib *mib = &mibs[i];
        uint32_t id = mib->context;
        if (mib_is_empty(mib))
            continue; /* a slot that nobody has used so far */
        if (id >= builder->profile->context_entry_count) {
            hw_problem(builder->problems,
                       "The file is damaged: numbers of a call stack that is not there count as of an unknown stack.");
            id = 0;
        }
        sums[id].told = true;
        add_numbers(&contexts[id], mib, sampled);
        add_threads(&contexts[id], mib);
        add_times(&contexts[id], &sums[id], mib);
        add_live(builder, &contexts[id], &sums[id], mib);
        if (mib->flags & HW_MIB_POOL)
            contexts[id].pool = true;
        else
            add_total(&builder->profile->context_totals, mib, sampled);
        hw_profile_note_tick(builder, mib->last_alloc_tick);
        hw_profile_note_tick(builder, mib->last_free_tick);
    }
}

static void add_inherited(struct hw_profile_builder *builder, struct hw_profile_context *contexts, struct sum *sums)
{
    const struct hw_table *table = &builder->tables->of[HW_SECTION_INHERITED];
    const struct hw_inherited *inherited = table->entries;
    for (size_t i = 0; i < table->count; i++) {
        uint32_t id = inherited[i].context;
        if (inherited[i].blocks == 0 && inherited[i].bytes == 0)
            continue;
        if (id >= builder->profile->context_entry_count) {
            hw_problem(builder->problems,
                       "The file is damaged: inherited blocks are of a call stack that is not there.");
            id = 0;
        }
        sums[id].told = true;
        add_signed(&contexts[id].inherited_blocks, inherited[i].blocks);
        add_signed(&contexts[id].inherited_bytes, inherited[i].bytes);
        if (builder->profile->process.flags & HW_PROCESS_RESET) {
            contexts[id].inherited_count_variance += inherited[i].count_variance;
            contexts[id].inherited_bytes_variance += inherited[i].bytes_variance;
        }
    }
}

static void add_leaks(struct hw_profile_builder *builder, struct hw_profile_context *contexts, struct sum *sums)
{
    struct hw_profile *profile = builder->profile;
    const struct hw_table *table = &builder->tables->of[HW_SECTION_LEAKS];
    const struct hw_table *info = &builder->tables->of[HW_SECTION_LEAK_INFO];
    struct hw_leak *leaks = table->entries;
    profile->leaks = leaks;
    profile->leak_search = info->count ? info->entries : NULL;
    for (size_t i = 0; i < table->count; i++) {
        if (leaks[i].context >= profile->context_entry_count || leaks[i].kind >= HW_LEAK_CLASSES) {
            hw_problem(builder->problems,
                       "The file is damaged: what was still reachable is of a call stack that is not "
                       "there.");
            continue;
        }
        struct hw_profile_context *context = &contexts[leaks[i].context];
        uint64_t *const sum[HW_LEAK_CLASSES][2] = {
            [HW_LEAK_DEFINITE] = {&context->definite_blocks, &context->definite_bytes},
            [HW_LEAK_INDIRECT] = {&context->indirect_blocks, &context->indirect_bytes},
            [HW_LEAK_POSSIBLE] = {&context->possible_blocks, &context->possible_bytes},
            [HW_LEAK_REACHABLE] = {&context->reachable_blocks, &context->reachable_bytes},
        };
        *sum[leaks[i].kind][0] = hw_add_saturating(*sum[leaks[i].kind][0], leaks[i].blocks);
        *sum[leaks[i].kind][1] = hw_add_saturating(*sum[leaks[i].kind][1], leaks[i].bytes);
        sums[leaks[i].context].told = true;
        leaks[profile->leak_count++] = leaks[i];
    }
}

/* A forked child may access blocks that even its parent had inherited: nothing else is known of them. */
static void tell_accessed(struct hw_profile_builder *builder, struct sum *sums)
{
    const struct hw_table *table = &builder->tables->of[HW_SECTION_ACCESS_LIVE];
    const struct hw_access *live = table->entries;
    for (size_t i = 0; i < table->count; i++)
        if (live[i].context < builder->profile->context_entry_count && live[i].blocks)
            sums[live[i].context].told = true;
}

/* Sum of the ages of live blocks, in ticks. live_ticks is kept modulo 2^64, so the difference is right modulo 2^64: it
 * is the age unless blocks were so many and so old that the age itself does not fit; then UINT64_MAX. */
static uint64_t live_age(int64_t blocks, uint64_t live_ticks, uint64_t first_tick, uint64_t now)
{
    if (blocks <= 0)
        return 0;
    uint64_t oldest = now > first_tick ? now - first_tick : 0;
    uint64_t age = (uint64_t)blocks * now - live_ticks;
    unsigned __int128 most = (unsigned __int128)(uint64_t)blocks * oldest;
    if (most > UINT64_MAX)
        return UINT64_MAX;
    /* Greater than possible: the clock of one CPU is ahead, or an event was in flight. */
    return age > most ? (age > UINT64_MAX - (UINT64_MAX >> 2) ? 0 : (uint64_t)most) : age;
}

static void finish_context(struct hw_profile_builder *builder, struct hw_profile_context *context,
                           const struct sum *sum)
{
    const struct hw_profile *profile = builder->profile;
    const struct hw_context_entry *entry = &profile->context_entries[context->id];
    context->leaf = entry->leaf;
    context->depth = builder->depths[entry->leaf];
    context->flags = entry->flags;
    context->first_ns = hw_profile_ticks_to_ns(profile, entry->first_tick);
    if (context->size_min > context->size_max)
        context->size_min = context->size_max; /* the first allocation was in flight */
    if (context->frees > 0) {
        const uint64_t most = context->lifetime_max_ns; /* so far in ticks */
        const uint64_t least = context->lifetime_min_ns < most ? context->lifetime_min_ns : most;
        context->lifetime_total_ns =
            scale_sum(sum->lifetime_total, profile->process.clock_ns, profile->process.clock_ticks);
        context->lifetime_min_ns = hw_profile_ticks_to_ns(profile, least);
        context->lifetime_max_ns = hw_profile_ticks_to_ns(profile, most);
        context->last_free_ns = hw_profile_ticks_to_ns(profile, sum->last_free_tick);
    }
    /* Entries of a bounded table are added up without knowing whether their threads are the same ones. */
    const uint64_t threads = profile->process.threads_seen;
    if (threads && context->alloc_threads > threads)
        context->alloc_threads = threads;
    if (threads && context->free_threads > threads)
        context->free_threads = threads;
    context->last_alloc_ns = hw_profile_ticks_to_ns(profile, sum->last_alloc_tick);
    if (sum->aged) /* of a merged profile: there a tick is a nanosecond */
        return;
    uint64_t age = live_age(context->live_blocks, sum->live_ticks, entry->first_tick, builder->last_tick);
    context->live_age_total_ns = age == UINT64_MAX ? age : hw_profile_ticks_to_ns(profile, age);
}

/* One context for each id that has numbers, sorted by id: made for all ids, then moved together. */
bool hw_profile_take_contexts(struct hw_profile_builder *builder)
{
    struct hw_profile *profile = builder->profile;
    const size_t count = profile->context_entry_count;
    struct hw_profile_context *contexts = hw_arena_allocate(builder->arena, count + 1, sizeof *contexts);
    struct sum *sums = calloc(count + 1, sizeof *sums);
    if (!contexts || !sums) {
        free(sums);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        contexts[i].id = (uint32_t)i;
    merge_mibs(builder, contexts, sums);
    add_inherited(builder, contexts, sums);
    add_leaks(builder, contexts, sums);
    if (profile->process.flags & HW_PROCESS_FORKED)
        tell_accessed(builder, sums);
    profile->contexts = contexts;
    for (size_t i = 0; i < count; i++) {
        if (!sums[i].told)
            continue;
        finish_context(builder, &contexts[i], &sums[i]);
        contexts[profile->context_count++] = contexts[i];
    }
    free(sums);
    return true;
}
