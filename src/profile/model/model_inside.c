/* model_inside.c - what was seen inside operations of the allocator: sections OPERATION_CALLS, OPERATION_LOCKS and
 * OPERATION_EVENTS -> the profile. Nothing in the file is believed that would not fit: numbers of newer versions are
 * added to what is known as "other", the rest is left out. */
#include <stdlib.h>
#include <string.h>

#include "profile/model/model.h"

static void add(uint64_t *to, uint64_t value)
{
    *to = hw_add_saturating(*to, value);
}

void hw_profile_call_add(struct hw_profile_call *to, const struct hw_profile_call *from)
{
    add(&to->count, from->count);
    add(&to->errors, from->errors);
    add(&to->ticks, from->ticks);
    add(&to->bytes, from->bytes);
}

static void take_calls(struct hw_profile_inside *inside, const struct hw_table *table)
{
    const struct hw_operation_call *entry = table->entries;
    for (size_t i = 0; i < table->count; i++) {
        if (entry[i].phase >= HW_PHASES || entry[i].kind >= HW_OPERATION_KINDS)
            continue;
        const uint32_t call = entry[i].call < HW_SYSTEM_CALLS ? entry[i].call : HW_CALL_OTHER;
        const struct hw_profile_call one = {entry[i].count, entry[i].errors, entry[i].ticks, entry[i].bytes};
        hw_profile_call_add(&inside->calls[call][entry[i].phase][entry[i].kind], &one);
    }
}

static void take_events(struct hw_profile_inside *inside, const struct hw_table *table)
{
    const struct hw_operation_events *entry = table->entries;
    for (size_t i = 0; i < table->count; i++) {
        if (entry[i].phase >= HW_PHASES || entry[i].kind >= HW_OPERATION_KINDS || entry[i].bucket >= HW_SIZE_BUCKETS ||
            !entry[i].samples)
            continue;
        struct hw_profile_events one = {.samples = entry[i].samples};
        memcpy(one.sum, entry[i].sum, sizeof one.sum);
        inside->events_present |= (uint32_t)entry[i].present & ((1u << HW_OPERATION_EVENTS) - 1);
        hw_profile_events_add(&inside->events[entry[i].phase][entry[i].kind][entry[i].bucket], &one);
    }
}

void hw_lock_use_add(struct hw_lock_use *to, const struct hw_lock_use *from)
{
    add(&to->count, from->count);
    add(&to->contended, from->contended);
    add(&to->refused, from->refused);
    add(&to->wait_ticks, from->wait_ticks);
    add(&to->held_ticks, from->held_ticks);
    add(&to->critical_ticks, from->critical_ticks);
}

struct hw_lock_use hw_lock_use_of(const struct hw_operation_lock *lock)
{
    struct hw_lock_use sum = {0};
    for (int phase = 0; phase < HW_PHASES; phase++)
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
            hw_lock_use_add(&sum, &lock->use[phase][kind]);
    return sum;
}

/* Those that cost most first: by waiting, then by use. */
static int compare_locks(const void *left, const void *right)
{
    const struct hw_operation_lock *a = left, *b = right;
    const struct hw_lock_use x = hw_lock_use_of(a), y = hw_lock_use_of(b);
    const uint64_t order[][2] = {{y.wait_ticks, x.wait_ticks},
                                 {y.contended, x.contended},
                                 {y.count, x.count},
                                 {a->offset, b->offset},
                                 {a->kind, b->kind}};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (order[i][0] != order[i][1])
            return order[i][0] < order[i][1] ? -1 : 1;
    return 0;
}

static bool is_used(const struct hw_operation_lock *lock)
{
    const struct hw_lock_use use = hw_lock_use_of(lock);
    return use.count || use.contended || use.refused;
}

static bool take_locks(struct hw_profile_inside *inside, const struct hw_profile *profile, struct hw_arena *arena,
                       const struct hw_table *table)
{
    const struct hw_operation_lock *entry = table->entries;
    struct hw_operation_lock *locks = hw_arena_allocate(arena, table->count + 1, sizeof *locks);
    if (!locks)
        return false;
    for (size_t i = 0; i < table->count; i++) {
        if (!is_used(&entry[i]))
            continue;
        struct hw_operation_lock *lock = &locks[inside->lock_count++];
        *lock = entry[i];
        lock->kind = lock->kind > HW_LOCK_FUTEX ? HW_LOCK_OTHERS : lock->kind;
        if (lock->map != HW_NONE && lock->map >= profile->map_count) {
            lock->map = HW_NONE;
            lock->offset = lock->address;
        }
    }
    qsort(locks, inside->lock_count, sizeof *locks, compare_locks);
    inside->locks = locks;
    return true;
}

/* Calls of futexes are written down twice: by kind of call, and by lock. A run that is cut off in between has one more
 * there than here, so that numbers of calls are those of the locks, unless locks without an entry, which are of all
 * kinds, or other calls of futexes (among the waits of locks) are in them. */
static void take_futexes(struct hw_profile_inside *inside)
{
    struct hw_lock_use sum[HW_PHASES][HW_OPERATION_KINDS] = {0};
    for (size_t i = 0; i < inside->lock_count; i++) {
        if (inside->locks[i].kind == HW_LOCK_OTHERS)
            return;
        for (int phase = 0; inside->locks[i].kind == HW_LOCK_FUTEX && phase < HW_PHASES; phase++)
            for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
                hw_lock_use_add(&sum[phase][kind], &inside->locks[i].use[phase][kind]);
    }
    if (hw_profile_call_of(inside, HW_CALL_FUTEX_OTHER, -1).count)
        return;
    for (int phase = 0; phase < HW_PHASES; phase++)
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++) {
            struct hw_profile_call *waits = &inside->calls[HW_CALL_FUTEX_WAIT][phase][kind];
            waits->count = sum[phase][kind].contended;
            waits->ticks = sum[phase][kind].wait_ticks;
            waits->errors = waits->errors < waits->count ? waits->errors : waits->count;
            inside->calls[HW_CALL_FUTEX_WAKE][phase][kind].count = sum[phase][kind].count;
        }
}

/* Whether system calls were observed at all. */
static bool were_calls_observed(const struct hw_profile *profile, const struct hw_profile_inside *inside)
{
    for (size_t i = 0; i < profile->note_count; i++)
        if (profile->notes[i].code == HW_NOTE_NO_DISPATCH)
            return inside->calls_seen;
    return true;
}

bool hw_profile_take_inside(struct hw_profile_inside *inside, const struct hw_profile *profile, struct hw_arena *arena,
                            const struct hw_tables *tables)
{
    inside->calls_present = tables->of[HW_SECTION_OPERATION_CALLS].count != 0;
    inside->present = tables->of[HW_SECTION_OPERATION_LOCKS].count != 0;
    take_calls(inside, &tables->of[HW_SECTION_OPERATION_CALLS]);
    take_events(inside, &tables->of[HW_SECTION_OPERATION_EVENTS]);
    if (!take_locks(inside, profile, arena, &tables->of[HW_SECTION_OPERATION_LOCKS]))
        return false;
    if (inside->present && inside->calls_present &&
        !(profile->process.flags & HW_PROCESS_MERGED)) /* of those it is done */
        take_futexes(inside);
    for (int call = 0; call < HW_SYSTEM_CALLS; call++)
        inside->calls_seen |= hw_profile_call_of(inside, (enum hw_system_call)call, -1).count != 0;
    inside->calls_observed = inside->calls_present && were_calls_observed(profile, inside);
    return true;
}

struct hw_profile_call hw_profile_call_of(const struct hw_profile_inside *inside, enum hw_system_call call, int kind)
{
    struct hw_profile_call sum = {0};
    for (int phase = 0; phase < HW_PHASES; phase++)
        for (int k = 0; k < HW_OPERATION_KINDS; k++)
            if (kind < 0 || k == kind)
                hw_profile_call_add(&sum, &inside->calls[call][phase][k]);
    return sum;
}

void hw_profile_events_add(struct hw_profile_events *to, const struct hw_profile_events *from)
{
    add(&to->samples, from->samples);
    for (int event = 0; event < HW_OPERATION_EVENTS; event++)
        add(&to->sum[event], from->sum[event]);
}
