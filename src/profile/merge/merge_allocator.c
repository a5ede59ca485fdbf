/* merge_allocator.c - what was observed of the allocator itself, in a merge: counts, times, call sites, lives, system
 * calls, locks and events of operations add up, the slowest ones of all stay, and of how the allocator works what all
 * runs agree on. Stages are of one run: of them only what they sum up to stays (struct hw_allocator_info). */
#include "profile/merge/merge_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/growing.h"
#include "base/order.h"

/* From so many on the slow operations are reduced to those that may be among the slowest. */
#define SLOW_MOST 4096u

struct hw_merge_allocator {
    /* ---- by admissions ---- */
    struct hw_allocator_info info;
    struct hw_profile_operation *operations; /* by hw_profile_operation's order */
    struct hw_operation_lives lives[HW_SIZE_BUCKETS];
    struct hw_profile_call calls[HW_SYSTEM_CALLS][HW_PHASES][HW_OPERATION_KINDS];
    struct hw_profile_events events[HW_PHASES][HW_OPERATION_KINDS][HW_SIZE_BUCKETS];
    uint64_t bytes[HW_PHASES][HW_SIZE_BUCKETS];
    uint32_t events_present; /* in all runs in which there were any */
    bool events_counted, calls_present, locks_present;
    struct hw_merge_text facts, predictions; /* with size classes behind them */
    struct hw_store locks;                   /* struct hw_operation_lock: `map` is a module */
    /* ---- by sums: contexts are references ---- */
    struct hw_store sites; /* struct hw_operation_site */
    struct hw_slow_operation *slow;
    size_t slow_count, slow_room;
};

#define OPERATIONS ((size_t)HW_PHASES * HW_OPERATION_KINDS * HW_SIZE_BUCKETS)

static struct hw_merge_allocator *start(void)
{
    struct hw_merge_allocator *all = calloc(1, sizeof *all);
    if (!all)
        return NULL;
    all->operations = calloc(OPERATIONS, sizeof *all->operations);
    all->locks.size = sizeof(struct hw_operation_lock);
    all->sites.size = sizeof(struct hw_operation_site);
    if (all->operations)
        return all;
    free(all);
    return NULL;
}

void hw_merge_allocator_free(struct hw_merge_allocator *all)
{
    if (!all)
        return;
    free(all->operations);
    free(all->facts.text);
    free(all->predictions.text);
    hw_store_free(&all->locks);
    hw_store_free(&all->sites);
    free(all->slow);
    free(all);
}

/* ---- how it was observed ---- */

static uint64_t whole(double value)
{
    return value >= 0x1p64 ? UINT64_MAX : value > 0 ? (uint64_t)(value + 0.5) : 0;
}

/* What is true of a sum if it is of each part. */
#define AGREED ((uint32_t)(HW_ALLOCATOR_PLACES | HW_ALLOCATOR_BYTES))

/* One run in the form of merged ones. */
static struct hw_allocator_info single(const struct hw_profile *profile)
{
    const struct hw_profile_allocator *from = profile->observed;
    struct hw_allocator_info info = from->info;
    const double rate = profile->ns_per_tick > 0 ? 1 / profile->ns_per_tick : 0;
    info.flags &= AGREED;
    info.runs = 1;
    const uint64_t from_ns = hw_profile_counted_from_ns(profile);
    info.duration_ns = profile->duration_ns > from_ns ? profile->duration_ns - from_ns : 0;
    info.duration_ticks = whole((double)info.duration_ns * rate);
    info.rate_least = info.rate_most = whole(1e9 * rate);
    info.critical_ticks = whole(hw_profile_critical_ticks(from));
    info.own_critical_ticks = whole(hw_profile_own_critical_ticks(from));
    info.runs_staged = from->stage_count != 0;
    info.thread_ticks = from->stage_count ? whole(hw_profile_thread_ticks(from)) : 0;
    return info;
}

static void add_info(struct hw_allocator_info *to, const struct hw_allocator_info *from, bool first)
{
    const uint32_t all = to->flags & from->flags, any = to->flags | from->flags;
    to->flags = first ? from->flags : (all & AGREED) | (any & ~AGREED);
    hw_keep_greater_short(&to->phase, from->phase);
    hw_keep_greater_short(&to->shift_most, from->shift_most);
    hw_keep_greater_short(&to->threads_alive, from->threads_alive);
    hw_keep_greater(&to->clock_ticks, from->clock_ticks);
    hw_keep_greater(&to->hook_ticks, from->hook_ticks);
    hw_keep_greater(&to->call_ticks, from->call_ticks);
    hw_keep_greater(&to->rate_most, from->rate_most);
    to->rate_least = first || from->rate_least < to->rate_least ? from->rate_least : to->rate_least;
    hw_sum(&to->timed, from->timed);
    hw_sum(&to->timed_weight, from->timed_weight);
    hw_sum(&to->own_ticks, from->own_ticks);
    hw_sum(&to->first_left_out, from->first_left_out);
    hw_sum(&to->interrupted, from->interrupted);
    hw_sum(&to->interrupted_ticks, from->interrupted_ticks);
    hw_sum(&to->tracked, from->tracked);
    hw_sum(&to->tracked_live, from->tracked_live);
    hw_sum(&to->stages, from->stages);
    hw_sum(&to->runs, from->runs);
    hw_sum(&to->duration_ns, from->duration_ns);
    hw_sum(&to->duration_ticks, from->duration_ticks);
    hw_sum(&to->critical_ticks, from->critical_ticks);
    hw_sum(&to->runnable_ns, from->runnable_ns);
    hw_sum(&to->own_critical_ticks, from->own_critical_ticks);
    hw_sum(&to->thread_ticks, from->thread_ticks);
    hw_sum(&to->runs_staged, from->runs_staged);
}

/* ---- what all agree on ---- */

/* Two arrays, one behind the other, as one text; without the first there is none, and that is something to agree on. */
static bool agree(struct hw_merge_text *text, const void *first, size_t first_size, const void *second,
                  size_t second_size, uint32_t count)
{
    char *both = malloc(first_size + second_size + 1);
    if (!both)
        return false;
    if (first_size)
        memcpy(both, first, first_size);
    if (second_size)
        memcpy(both + first_size, second, second_size);
    const bool fine = hw_merge_agree(text, both, first_size + second_size, count);
    free(both);
    return fine;
}

static bool add_facts(struct hw_merge_allocator *all, const struct hw_profile_allocator *from)
{
    const size_t size = from->facts_known ? sizeof from->facts : 0;
    const bool fine = agree(&all->facts, &from->facts, size, from->classes,
                            size ? from->class_count * sizeof *from->classes : 0, (uint32_t)from->class_count) &&
                      agree(&all->predictions, from->predictions, from->prediction_count * sizeof *from->predictions,
                            NULL, 0, (uint32_t)from->prediction_count);
    all->facts.differs |= (from->info.flags & HW_ALLOCATOR_FACTS_DIFFER) != 0;
    all->predictions.differs |= (from->info.flags & HW_ALLOCATOR_PREDICTIONS_DIFFER) != 0;
    return fine;
}

/* ---- inside operations ---- */

static void add_calls(struct hw_merge_allocator *all, const struct hw_profile_inside *from)
{
    all->calls_present |= from->calls_present;
    for (int call = 0; call < HW_SYSTEM_CALLS; call++)
        for (int phase = 0; phase < HW_PHASES; phase++)
            for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
                hw_profile_call_add(&all->calls[call][phase][kind], &from->calls[call][phase][kind]);
}

/* An event that some run did not count would be a mean over too many samples: it is left out. */
static void add_events(struct hw_merge_allocator *all, const struct hw_profile_inside *from)
{
    bool counted = false;
    for (int phase = 0; phase < HW_PHASES; phase++)
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
            for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++) {
                counted |= from->events[phase][kind][bucket].samples != 0;
                hw_profile_events_add(&all->events[phase][kind][bucket], &from->events[phase][kind][bucket]);
            }
    if (counted)
        all->events_present = all->events_counted ? all->events_present & from->events_present : from->events_present;
    all->events_counted |= counted;
}

/* Locks in no module's data lie elsewhere in each run: those of one kind are one entry. */
static bool add_lock(struct hw_merge_allocator *all, const struct hw_merge_input *input,
                     const struct hw_operation_lock *from)
{
    const struct hw_merge_map *map = from->map < input->map_count ? &input->map[from->map] : NULL;
    struct hw_operation_lock lock = {.kind = from->kind, .map = HW_NONE};
    if (map && !map->generated) {
        lock.map = map->module;
        lock.offset = lock.address = from->offset;
    } else if (from->kind != HW_LOCK_OTHERS) {
        lock.locks = from->locks ? from->locks : 1;
    }
    bool added;
    const struct hw_key key = {lock.offset, (uint64_t)lock.map << 32 | lock.kind};
    struct hw_operation_lock *to = hw_store_intern(&all->locks, key, &added);
    if (!to)
        return false;
    const uint64_t locks = added ? 0 : to->locks;
    if (added)
        *to = lock;
    to->locks = hw_add_saturating(locks, lock.locks);
    hw_keep_greater(&to->waiting_most, from->waiting_most);
    hw_keep_greater(&to->wait_ticks_most, from->wait_ticks_most);
    hw_keep_greater(&to->critical_ticks_most, from->critical_ticks_most);
    for (int phase = 0; phase < HW_PHASES; phase++)
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
            hw_lock_use_add(&to->use[phase][kind], &from->use[phase][kind]);
    return true;
}

/* ---- admission ---- */

bool hw_merge_allocator_admit(struct hw_merge *merge, const struct hw_merge_input *input,
                              const struct hw_profile *profile)
{
    const struct hw_profile_allocator *from = profile->observed;
    if (!from)
        return true;
    const bool first = !merge->observed;
    if (first && !(merge->observed = start()))
        return false;
    struct hw_merge_allocator *all = merge->observed;
    const struct hw_allocator_info info = from->info.runs ? from->info : single(profile);
    add_info(&all->info, &info, first);
    for (size_t i = 0; i < OPERATIONS; i++)
        hw_profile_operation_add(&all->operations[i], &from->operations[i]);
    for (int phase = 0; phase < HW_PHASES; phase++)
        for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++)
            hw_sum(&all->bytes[phase][bucket], from->bytes[phase][bucket]);
    for (size_t i = 0; i < from->lives_count; i++)
        hw_operation_lives_add(&all->lives[from->lives[i].bucket], &from->lives[i]);
    add_calls(all, &from->inside);
    add_events(all, &from->inside);
    all->locks_present |= from->inside.present;
    bool fine = add_facts(all, from);
    for (size_t i = 0; fine && i < from->inside.lock_count; i++)
        fine = add_lock(all, input, &from->inside.locks[i]);
    return fine;
}

/* ---- by call stack ---- */

static bool add_site(struct hw_merge_allocator *all, const struct hw_operation_site *from, uint32_t reference)
{
    bool added;
    const struct hw_key key = {reference, from->kind};
    struct hw_operation_site *to = hw_store_intern(&all->sites, key, &added);
    if (!to)
        return false;
    to->context = reference;
    to->kind = from->kind;
    hw_sum(&to->samples, from->samples);
    hw_sum(&to->weight, from->weight);
    hw_sum(&to->ticks, from->ticks);
    hw_sum(&to->bytes, from->bytes);
    hw_keep_greater(&to->most, from->most);
    return true;
}

/* Slowest first; by everything but the context, whose order is not known until the end. */
static int compare_slow(const void *left, const void *right)
{
    const struct hw_slow_operation *a = left, *b = right;
    const uint64_t order[][2] = {{b->ticks, a->ticks}, {a->tick, b->tick},     {a->size, b->size},  {a->kind, b->kind},
                                 {a->phase, b->phase}, {a->thread, b->thread}, {a->shift, b->shift}};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (order[i][0] != order[i][1])
            return order[i][0] < order[i][1] ? -1 : 1;
    return 0;
}

static int compare_slow_contexts(const void *left, const void *right)
{
    const int order = compare_slow(left, right);
    const uint32_t a = ((const struct hw_slow_operation *)left)->context,
                   b = ((const struct hw_slow_operation *)right)->context;
    return order ? order : HW_ORDER(a, b);
}

/* The slowest, and those as slow as the last of them. */
static void reduce_slow(struct hw_merge_allocator *all)
{
    qsort(all->slow, all->slow_count, sizeof *all->slow, compare_slow);
    size_t count = all->slow_count < HW_SLOWEST ? all->slow_count : HW_SLOWEST;
    while (count && count < all->slow_count && !compare_slow(&all->slow[count - 1], &all->slow[count]))
        count++;
    all->slow_count = count;
}

static bool add_slow(struct hw_merge_allocator *all, const struct hw_profile *profile,
                     const struct hw_slow_operation *from, uint32_t reference)
{
    if (all->slow_count == all->slow_room && all->slow_count >= SLOW_MOST)
        reduce_slow(all);
    if (!HW_GROW(all->slow, all->slow_room, all->slow_count + 1))
        return false;
    all->slow[all->slow_count++] = (struct hw_slow_operation){.ticks = from->ticks,
                                                              .tick = hw_profile_ticks_to_ns(profile, from->tick),
                                                              .size = from->size,
                                                              .context = reference,
                                                              .kind = from->kind,
                                                              .phase = from->phase,
                                                              .thread = from->thread,
                                                              .shift = from->shift};
    return true;
}

bool hw_merge_allocator_add(struct hw_merge *merge, const struct hw_profile *profile, const uint32_t *reference)
{
    const struct hw_profile_allocator *from = profile->observed;
    const size_t contexts = profile->context_entry_count;
    bool fine = true;
    for (size_t i = 0; from && fine && i < from->site_count; i++)
        fine = add_site(merge->observed, &from->sites[i],
                        from->sites[i].context < contexts ? reference[from->sites[i].context] : HW_NONE);
    for (size_t i = 0; from && fine && i < from->slowest_count; i++)
        fine = add_slow(merge->observed, profile, &from->slowest[i],
                        from->slowest[i].context < contexts ? reference[from->slowest[i].context] : HW_NONE);
    return fine;
}

/* ---- the tables ---- */

static uint32_t context_of(const struct hw_merge *merge, uint32_t reference)
{
    return reference == HW_NONE ? 0 : hw_merge_entry_at(merge, reference)->id;
}

static bool make_operations(const struct hw_merge_allocator *all, struct hw_arena *arena, struct hw_tables *tables)
{
    size_t timed = 0, lived = 0;
    for (size_t i = 0; i < OPERATIONS; i++)
        timed += all->operations[i].samples != 0 || all->operations[i].exact_ticks != 0;
    for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++)
        lived += all->lives[bucket].samples != 0;
    struct hw_operation_counts *counts = hw_table_make(tables, arena, HW_SECTION_OPERATION_COUNTS, HW_SIZE_BUCKETS);
    struct hw_operation_times *times = hw_table_make(tables, arena, HW_SECTION_OPERATION_TIMES, timed);
    struct hw_operation_lives *lives = hw_table_make(tables, arena, HW_SECTION_OPERATION_LIVES, lived);
    if (!counts || !times || !lives)
        return false;
    for (uint32_t i = 0; i < OPERATIONS; i++) {
        const struct hw_profile_operation *from = &all->operations[i];
        const uint32_t bucket = i % HW_SIZE_BUCKETS, kind = i / HW_SIZE_BUCKETS % HW_OPERATION_KINDS,
                       phase = i / HW_SIZE_BUCKETS / HW_OPERATION_KINDS;
        counts[bucket].count[phase][kind] = from->count;
        if (!from->samples && !from->exact_ticks)
            continue;
        *times = (struct hw_operation_times){.phase = phase,
                                             .kind = kind,
                                             .bucket = bucket,
                                             .samples = from->samples,
                                             .weight = from->weight,
                                             .ticks = from->ticks,
                                             .most = from->most,
                                             .inside_ticks = from->inside_ticks,
                                             .exact_ticks = from->exact_ticks};
        memcpy(times++->histogram, from->histogram, sizeof from->histogram);
    }
    for (int phase = 0; phase < HW_PHASES; phase++)
        for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++)
            counts[bucket].count[phase][HW_OPERATION_BYTES] = all->bytes[phase][bucket];
    for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++)
        if (all->lives[bucket].samples) {
            *lives = all->lives[bucket];
            lives++->bucket = bucket;
        }
    return true;
}

/* Where somebody looked, and there were none, one entry says so. */
static bool make_calls(const struct hw_merge_allocator *all, struct hw_arena *arena, struct hw_tables *tables)
{
    size_t count = 0;
    const struct hw_profile_call *calls = &all->calls[0][0][0];
    for (size_t i = 0; i < sizeof all->calls / sizeof *calls; i++)
        count += (calls[i].count | calls[i].errors | calls[i].ticks | calls[i].bytes) != 0;
    struct hw_operation_call *to =
        hw_table_make(tables, arena, HW_SECTION_OPERATION_CALLS, count ? count : all->calls_present);
    for (uint32_t i = 0; to && i < sizeof all->calls / sizeof *calls; i++)
        if (calls[i].count | calls[i].errors | calls[i].ticks | calls[i].bytes)
            *to++ = (struct hw_operation_call){.call = i / (HW_PHASES * HW_OPERATION_KINDS),
                                               .phase = (uint16_t)(i / HW_OPERATION_KINDS % HW_PHASES),
                                               .kind = (uint16_t)(i % HW_OPERATION_KINDS),
                                               .count = calls[i].count,
                                               .errors = calls[i].errors,
                                               .ticks = calls[i].ticks,
                                               .bytes = calls[i].bytes};
    return to != NULL;
}

static bool make_events(const struct hw_merge_allocator *all, struct hw_arena *arena, struct hw_tables *tables)
{
    size_t count = 0;
    const struct hw_profile_events *from = &all->events[0][0][0];
    for (size_t i = 0; i < OPERATIONS; i++)
        count += from[i].samples != 0;
    struct hw_operation_events *to = hw_table_make(tables, arena, HW_SECTION_OPERATION_EVENTS, count);
    for (uint32_t i = 0; to && i < OPERATIONS; i++) {
        if (!from[i].samples)
            continue;
        *to = (struct hw_operation_events){.bucket = i % HW_SIZE_BUCKETS,
                                           .phase = (uint16_t)(i / HW_SIZE_BUCKETS / HW_OPERATION_KINDS),
                                           .kind = (uint16_t)(i / HW_SIZE_BUCKETS % HW_OPERATION_KINDS),
                                           .present = all->events_present,
                                           .samples = from[i].samples};
        for (int event = 0; event < HW_OPERATION_EVENTS; event++)
            to->sum[event] = all->events_present >> event & 1 ? from[i].sum[event] : 0;
        to++;
    }
    return to != NULL;
}

/* That of all others comes first: in the file it is always there. */
static int compare_locks(const void *left, const void *right)
{
    const struct hw_operation_lock *a = left, *b = right;
    const uint64_t order[][2] = {{a->kind, b->kind}, {a->map, b->map}, {a->offset, b->offset}};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (order[i][0] != order[i][1])
            return order[i][0] < order[i][1] ? -1 : 1;
    return 0;
}

static bool make_locks(const struct hw_merge *merge, struct hw_arena *arena, struct hw_tables *tables)
{
    const struct hw_merge_allocator *all = merge->observed;
    uint32_t count = all->locks.count;
    bool others = false;
    for (uint32_t i = 0; i < count; i++)
        others |= ((struct hw_operation_lock *)hw_store_at(&all->locks, i))->kind == HW_LOCK_OTHERS;
    const bool empty = all->locks_present && !others;
    struct hw_operation_lock *to = hw_table_make(tables, arena, HW_SECTION_OPERATION_LOCKS, count + empty);
    if (!to)
        return false;
    if (empty)
        to[count].map = HW_NONE;
    for (uint32_t i = 0; i < count; i++) {
        to[i] = *(struct hw_operation_lock *)hw_store_at(&all->locks, i);
        to[i].map = hw_merge_rank(merge, to[i].map);
    }
    qsort(to, count + empty, sizeof *to, compare_locks);
    return true;
}

static bool make_stacked(struct hw_merge *merge, struct hw_arena *arena, struct hw_tables *tables)
{
    struct hw_merge_allocator *all = merge->observed;
    struct hw_operation_site *sites = hw_table_make(tables, arena, HW_SECTION_OPERATION_SITES, all->sites.count);
    for (size_t i = 0; i < all->slow_count; i++)
        all->slow[i].context = context_of(merge, all->slow[i].context);
    if (all->slow_count)
        qsort(all->slow, all->slow_count, sizeof *all->slow, compare_slow_contexts);
    const size_t count = all->slow_count < HW_SLOWEST ? all->slow_count : HW_SLOWEST;
    struct hw_slow_operation *slow = hw_table_make(tables, arena, HW_SECTION_SLOWEST, count);
    if (!sites || !slow)
        return false;
    for (uint32_t i = 0; i < all->sites.count; i++) {
        sites[i] = *(struct hw_operation_site *)hw_store_at(&all->sites, i);
        sites[i].context = context_of(merge, sites[i].context);
    }
    tables->of[HW_SECTION_OPERATION_SITES].count = hw_operation_sites_join(sites, all->sites.count);
    if (count)
        memcpy(slow, all->slow, count * sizeof *slow);
    return true;
}

static bool make_facts(const struct hw_merge_allocator *all, struct hw_arena *arena, struct hw_tables *tables)
{
    const bool known = !all->facts.differs && all->facts.size >= sizeof(struct hw_allocator_facts);
    struct hw_allocator_facts *facts = hw_table_make(tables, arena, HW_SECTION_ALLOCATOR_FACTS, known);
    struct hw_size_class *classes = hw_table_make(tables, arena, HW_SECTION_SIZE_CLASSES, known ? all->facts.count : 0);
    struct hw_allocator_prediction *predictions =
        hw_table_make(tables, arena, HW_SECTION_PREDICTIONS, all->predictions.differs ? 0 : all->predictions.count);
    if (!facts || !classes || !predictions)
        return false;
    if (known) {
        memcpy(facts, all->facts.text, sizeof *facts);
        memcpy(classes, all->facts.text + sizeof *facts, all->facts.size - sizeof *facts);
    }
    if (!all->predictions.differs)
        memcpy(predictions, all->predictions.text, all->predictions.size);
    return true;
}

bool hw_merge_allocator_finish(struct hw_merge *merge, struct hw_arena *arena, struct hw_tables *tables)
{
    const struct hw_merge_allocator *all = merge->observed;
    if (!all)
        return true;
    struct hw_allocator_info *info = hw_table_make(tables, arena, HW_SECTION_ALLOCATOR_INFO, 1);
    if (!info)
        return false;
    *info = all->info;
    info->flags |= (all->facts.differs ? HW_ALLOCATOR_FACTS_DIFFER : 0) |
                   (all->predictions.differs ? HW_ALLOCATOR_PREDICTIONS_DIFFER : 0);
    return make_operations(all, arena, tables) && make_calls(all, arena, tables) && make_events(all, arena, tables) &&
           make_locks(merge, arena, tables) && make_stacked(merge, arena, tables) && make_facts(all, arena, tables);
}
