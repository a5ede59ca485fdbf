/* model_threads.c - which threads there were: sections THREADS and THREAD_LIST, and the slots of MIBS -> the profile.
 */
#include "profile/model/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

static uint64_t ns_of(const struct hw_profile *profile, uint64_t tick)
{
    return hw_profile_ticks_to_ns(profile, tick);
}

static const char *name_of(struct hw_arena *arena, const struct hw_thread_detail *detail)
{
    char *name = hw_arena_allocate(arena, HW_THREAD_NAME + 1, 1);
    if (!name)
        return NULL;
    memcpy(name, detail->name, HW_THREAD_NAME);
    name[HW_THREAD_NAME] = 0;
    return name;
}

/* As in thread_list.c of the runtime. */
static int64_t own_live(const struct hw_thread_entry *entry, const struct hw_thread_detail *detail)
{
    return (int64_t)((uint64_t)entry->live_bytes + detail->freed_of_others_bytes - (uint64_t)detail->resized_of_others);
}

static uint64_t others_took(const struct hw_thread_detail *detail)
{
    return detail->freed_by_others_bytes - (uint64_t)detail->resized_by_others;
}

/* What the threads of the entry allocated that was live at the peak: of another epoch nothing has changed since. */
static int64_t peak_of(const struct hw_profile *profile, const struct hw_thread_entry *entry,
                       const struct hw_thread_detail *detail, bool alone)
{
    const uint64_t epoch = profile->process.peak_epoch;
    const int64_t own = detail->peak_epoch >= epoch ? detail->peak_bytes : own_live(entry, detail);
    const uint64_t others = detail->others_epoch >= epoch ? detail->others_peak_bytes : others_took(detail);
    return alone ? (int64_t)profile->process.peak_bytes : (int64_t)((uint64_t)own - others);
}

static bool take_thread(struct hw_profile *profile, struct hw_arena *arena, const struct hw_thread_entry *entry,
                        const struct hw_thread_detail *detail, bool alone, struct hw_profile_thread *to)
{
    *to = (struct hw_profile_thread){
        .name = name_of(arena, detail),
        .flags = detail->flags,
        .map = detail->flags & HW_THREAD_ROUTINE ? detail->map : HW_NONE,
        .routine = detail->routine,
        .threads = detail->threads,
        .start_ns = ns_of(profile, detail->start_tick),
        .end_ns = detail->end_tick ? ns_of(profile, detail->end_tick) : 0,
        .slot = detail->slot,
        .starter = HW_NONE,
        .context = detail->context,
        .allocations = entry->allocations,
        .frees = entry->frees,
        .reallocations = entry->reallocations,
        .temporary = entry->temporary,
        .bytes = entry->bytes,
        .live_blocks = entry->live_blocks + (int64_t)(detail->freed_of_others - detail->freed_by_others),
        .live_bytes = (int64_t)((uint64_t)own_live(entry, detail) - others_took(detail)),
        .peak_bytes = peak_of(profile, entry, detail, alone),
        .freed_by_others = detail->freed_by_others,
        .freed_by_others_bytes = detail->freed_by_others_bytes,
        .freed_of_others = detail->freed_of_others,
        .freed_of_others_bytes = detail->freed_of_others_bytes,
        .owner_unknown = detail->owner_unknown,
    };
    return to->name != NULL;
}

/* What handlers, and threads after their end, did not do is no row. */
static bool is_used(const struct hw_thread_entry *entry, const struct hw_thread_detail *detail)
{
    return detail->threads && (!(detail->flags & (HW_THREAD_HANDLERS | HW_THREAD_INHERITED)) || entry->allocations ||
                               entry->frees || entry->live_blocks || detail->freed_by_others);
}

struct serial {
    uint32_t serial, index;
};

static int compare_serials(const void *left, const void *right)
{
    const struct serial *a = left, *b = right;
    return HW_ORDER(a->serial, b->serial);
}

/* Who started whom: SERIALS are those of the threads, and STARTERS the serials of those who started them. */
static void find_starters(struct hw_profile_thread *threads, struct serial *serials, const uint32_t *starters,
                          size_t count)
{
    qsort(serials, count, sizeof *serials, compare_serials);
    for (size_t i = 0; i < count; i++) {
        const struct serial key = {.serial = starters[i]};
        const struct serial *found =
            starters[i] ? bsearch(&key, serials, count, sizeof *serials, compare_serials) : NULL;
        if (found && found->index != i)
            threads[i].starter = found->index;
    }
}

static bool take_list(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                      struct hw_problems *problems)
{
    const struct hw_table *table = &tables->of[HW_SECTION_THREAD_LIST], *entries = &tables->of[HW_SECTION_THREADS];
    const struct hw_thread_detail *details = table->entries;
    const size_t count = table->count < entries->count ? table->count : entries->count;
    struct hw_profile_thread *threads = hw_arena_allocate(arena, count + 1, sizeof *threads);
    struct serial *serials = hw_arena_allocate(arena, count + 1, sizeof *serials);
    uint32_t *starters = hw_arena_allocate(arena, count + 1, sizeof *starters);
    size_t used = 0;
    if (!threads || !serials || !starters)
        return false;
    for (size_t i = 0; i < count; i++)
        used += is_used((const struct hw_thread_entry *)entries->entries + i, &details[i]);
    const bool alone = used == 1 && !(profile->process.flags & HW_PROCESS_MERGED);
    for (size_t i = 0; i < count; i++) {
        const struct hw_thread_entry *entry = (const struct hw_thread_entry *)entries->entries + i;
        struct hw_thread_detail detail = details[i];
        if (!is_used(entry, &detail))
            continue;
        if (detail.flags & HW_THREAD_ROUTINE && detail.map >= profile->map_count) {
            hw_problem(problems, "The list of threads is damaged: a start function is in a file that is not listed.");
            detail.flags &= ~(uint32_t)HW_THREAD_ROUTINE;
        }
        if (detail.context >= profile->context_entry_count) {
            hw_problem(problems, "The list of threads is damaged: one was started at a place that is not listed.");
            detail.context = 0;
        }
        const uint32_t index = (uint32_t)profile->thread_count;
        serials[index] = (struct serial){detail.serial, index};
        starters[index] = detail.starter;
        if (!take_thread(profile, arena, entry, &detail, alone, &threads[profile->thread_count++]))
            return false;
    }
    find_starters(threads, serials, starters, profile->thread_count);
    profile->threads = threads;
    return true;
}

static int compare_places(const void *left, const void *right)
{
    const struct hw_profile_thread_place *a = left, *b = right;
    return HW_ORDER(a->context, b->context) ?: HW_ORDER(a->thread, b->thread);
}

/* By slot: the first of its threads; and whether there were others. */
struct slot {
    uint32_t thread;
    bool several;
};

static uint32_t greatest_slot(const struct hw_profile *profile)
{
    uint32_t most = 0;
    for (size_t i = 0; i < profile->thread_count; i++)
        if (profile->threads[i].slot != HW_NONE && profile->threads[i].slot >= most)
            most = profile->threads[i].slot + 1;
    return most;
}

static void find_slots(const struct hw_profile *profile, struct slot *slots, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        slots[i] = (struct slot){.thread = HW_NONE};
    for (size_t i = 0; i < profile->thread_count; i++) {
        const struct hw_profile_thread *thread = &profile->threads[i];
        if (thread->slot == HW_NONE)
            continue;
        struct slot *slot = &slots[thread->slot];
        slot->several |= slot->thread != HW_NONE || thread->threads > 1 || thread->flags & HW_THREAD_NEXT;
        slot->thread = slot->thread == HW_NONE ? (uint32_t)i : slot->thread;
    }
}

static void add_place(const struct hw_profile *profile, const struct hw_mib *mib, const struct slot *slot,
                      struct hw_profile_thread_place *to)
{
    const bool saved = mib->peak_epoch >= profile->process.peak_epoch;
    *to = (struct hw_profile_thread_place){
        .context = mib->context,
        .thread = slot->thread,
        .several = slot->several,
        .allocations = mib->allocations,
        .frees = mib->frees,
        .bytes = mib->bytes,
        .freed_by_others = mib->freed_by_others,
        .resized = mib->flags & HW_MIB_RESIZED,
        .live_bytes = mib->live_bytes,
        .peak_bytes = saved ? mib->peak_bytes : mib->live_bytes,
    };
}

static bool take_places(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables)
{
    const struct hw_table *table = &tables->of[HW_SECTION_MIBS];
    const struct hw_mib *mibs = table->entries;
    const uint32_t slot_count = greatest_slot(profile);
    if (profile->thread_count < 2 || !slot_count || slot_count > 65536)
        return true;
    struct slot *slots = hw_arena_allocate(arena, slot_count, sizeof *slots);
    struct hw_profile_thread_place *places = hw_arena_allocate(arena, table->count + 1, sizeof *places);
    if (!slots || !places)
        return false;
    find_slots(profile, slots, slot_count);
    for (size_t i = 0; i < table->count; i++) {
        const struct hw_mib *mib = &mibs[i];
        if (!mib->slot || mib->slot > slot_count || slots[mib->slot - 1].thread == HW_NONE ||
            mib->context >= profile->context_entry_count || mib->flags & HW_MIB_POOL ||
            !(mib->allocations | mib->frees | mib->reallocations | (uint64_t)mib->live_blocks))
            continue;
        add_place(profile, mib, &slots[mib->slot - 1], &places[profile->thread_place_count++]);
    }
    qsort(places, profile->thread_place_count, sizeof *places, compare_places);
    for (size_t i = 0, end; i < profile->thread_place_count; i = end) {
        bool resized = false;
        for (end = i; end < profile->thread_place_count && places[end].context == places[i].context; end++)
            resized |= places[end].resized;
        for (size_t k = i; k < end; k++)
            places[k].resized = resized;
    }
    profile->thread_places = places;
    return true;
}

bool hw_profile_take_threads(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                             struct hw_problems *problems)
{
    return take_list(profile, arena, tables, problems) && take_places(profile, arena, tables);
}
