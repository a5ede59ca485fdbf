/* heap_parts.c - what the allocator makes of its memory: sums over threads and classes, and the resident heap taken
 * apart.
 *
 * Internal fragmentation is what blocks have beyond the request, except whole pages at their end that were never
 * requested. Blowup is MemPerf's: of a class's free blocks all but the recently freed ones, whose number rises with
 * every free and falls, but not below 0, with every allocation. That number is the greatest number of live blocks so
 * far minus the present one, so it needs no counter. External fragmentation and metadata are the rest.
 *
 * Everything here happens under the runtime's lock, now and then; how often depends on what it costs (budgets.c). */
#include "runtime/allocator/places.h"
#include "runtime/core/budgets.h"
#include "runtime/core/core.h"
#include "runtime/core/memory.h"
#include "runtime/samples/samples.h"

#define LOOK_RATIO  12 /* without other reasons from one reading to the next: one part in so many of the run so far */
#define CHANGE_PART 8  /* of the peak: so much more or less is live */
#define LARGE_STEP  (1 << 20)
#define STEP_LEAST  (16 << 10)
#define WIDE_LEAST  HW_PLACE_BIG_BYTES

int64_t hw_places_look_above = STEP_LEAST;

static struct {
    struct hw_place_state now[HW_PLACE_CLASSES], peak[HW_PLACE_CLASSES];
    int64_t most[HW_PLACE_CLASSES], peak_most[HW_PLACE_CLASSES];
    int64_t requested;
    uint64_t next_sum;        /* ticks */
    uint64_t summing;         /* ticks that sums took */
    uint64_t spent;           /* on readings of the resident heap */
    uint64_t interval;        /* of points */
    uint64_t interval_first;  /* about a millisecond */
    int64_t moment_at;        /* requested bytes at the latest reading of the resident heap for the peak */
    uint64_t look, look_cost; /* the latest one at all: tick, ticks */
    int64_t look_at;          /* requested bytes then */
    uint64_t spent_old;       /* on readings that were not for the peak */
    uint64_t spent_last;      /* on readings out of turn: the last chance to see a peak */
    /* By that reading, for the next point. 0: there was none. */
    uint64_t resident;
    int64_t external;
} waste HW_LARGE;

/* What had happened until the latest reset: the threads' own counts go on. Free blocks that were listed then stay so.
 */
static struct {
    bool any;
    struct hw_place_state classes[HW_PLACE_CLASSES];
    struct hw_place_events events;
} before HW_LARGE;

static void subtract(struct hw_place_state *from, const struct hw_place_state *what)
{
    for (size_t i = 0; i < sizeof *from / sizeof(int64_t); i++)
        ((int64_t *)from)[i] -= ((const int64_t *)what)[i];
}

static bool is_zero(const struct hw_place_state *state)
{
    int64_t any = 0;
    for (size_t i = 0; i < sizeof *state / sizeof(int64_t); i++)
        any |= ((const int64_t *)state)[i];
    return !any;
}

/* ---- sums ---- */

static void sum_class(uint32_t c)
{
    struct hw_place_state *now = &waste.now[c], *peak = &waste.peak[c];
    *now = *peak = (struct hw_place_state){0};
    int64_t most = hw_places.totals[c].most, peak_most = INT64_MAX;
    const uint32_t threads = __atomic_load_n(&hw_places.threads_used, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < threads; i++) {
        if (!hw_place_touched(hw_places.threads[i], c))
            continue;
        const struct hw_place_class_counts *counts = &hw_places.threads[i]->classes[c];
        const bool kept = counts->epoch == hw_places.epoch;
        hw_place_add_state(now, &counts->now);
        hw_place_add_state(peak, kept ? &counts->peak : &counts->now);
        if (kept && counts->peak_most < peak_most)
            peak_most = counts->peak_most;
    }
    if (before.any) {
        subtract(now, &before.classes[c]);
        subtract(peak, &before.classes[c]);
    }
    waste.most[c] = now->live > most ? now->live : most;
    if (hw_places.many && now->live > most) /* all threads together know better than each alone */
        hw_places.totals[c].most = now->live;
    waste.peak_most[c] = peak_most != INT64_MAX ? peak_most : waste.most[c];
    if (waste.peak_most[c] < peak->live)
        waste.peak_most[c] = peak->live;
}

int64_t hw_places_live(void)
{
    int64_t requested = 0;
    for (uint32_t i = 0; i < hw_places.threads_used; i++)
        requested += hw_places.threads[i]->requested;
    return requested;
}

static void sum_all(void)
{
    const int64_t requested = hw_places_live();
    waste.requested = requested;
    if (requested > hw_places.peak) { /* it is at its peak right now: otherwise it is noted when it is left */
        hw_places.peak_limit = requested - 1;
        hw_places_note_peak(requested);
    }
    for (uint32_t c = 0; c < HW_PLACE_CLASSES; c++)
        sum_class(c);
}

static int64_t usable_of(const struct hw_place_state *state, uint32_t c)
{
    return c <= HW_PLACE_EXACT ? state->live * (int64_t)hw_place_class_most(c) : state->usable;
}

static int64_t free_bytes_of(const struct hw_place_state *state, uint32_t c)
{
    return c <= HW_PLACE_EXACT ? hw_place_listed(state) * (int64_t)hw_place_class_most(c) : state->free_bytes;
}

static int64_t blowup_of(const struct hw_place_state *state, int64_t most, uint32_t c)
{
    const int64_t listed = hw_place_listed(state), recent = most - state->live;
    if (listed <= 0 || listed <= recent)
        return 0;
    return (int64_t)((double)free_bytes_of(state, c) * (double)(listed - recent) / (double)listed);
}

struct parts {
    int64_t internal, blowup, free_bytes;
    int64_t blowup_wide, free_wide; /* of them, of blocks that the system may have taken back */
};

static struct parts parts_of(const struct hw_place_state states[], const int64_t most[])
{
    struct parts parts = {0};
    for (uint32_t c = 0; c < HW_PLACE_CLASSES; c++) {
        const struct hw_place_state *state = &states[c];
        if (is_zero(state))
            continue;
        const int64_t blowup = blowup_of(state, most[c], c), free_bytes = free_bytes_of(state, c);
        parts.internal += usable_of(state, c) - state->requested - state->untouched;
        parts.blowup += blowup;
        parts.free_bytes += free_bytes;
        if (hw_place_class_most(c) > WIDE_LEAST) {
            parts.blowup_wide += blowup;
            parts.free_wide += free_bytes;
        }
    }
    return parts;
}

/* ---- the resident heap ---- */

static struct hw_places_moment *measured; /* what is being measured */

bool hw_places_hold(uintptr_t start, uintptr_t end)
{
    const uint64_t most = 1ul << 36; /* what is larger has blocks at its begin, or at its end */
    return !hw_places_none(start, end - start < most ? end : start + most) ||
           (end - start > most && !hw_places_none(end - most, end));
}

static void take_mapping(uintptr_t start, uintptr_t end, uint64_t resident)
{
    if (resident && end <= 1ul << HW_ARCH_ADDRESS_BITS)
        *(hw_places_hold(start, end) ? &measured->resident_bytes : &measured->elsewhere_bytes) += resident;
}

static uint64_t there; /* bytes */

static void take_resident(uintptr_t start, uintptr_t end)
{
    there += end - start;
}

/* Large blocks, live or freed, may not be there: never touched, or given back. */
static void look_at_big(struct hw_places_moment *moment)
{
    const uint32_t used = hw_places.bigs_used;
    for (uint32_t i = 1; i < used; i++) {
        const struct hw_place_big big = hw_places.bigs[i];
        const uint64_t bytes = big.live ? big.requested : big.usable;
        if (!big.address || big.address >> HW_ARCH_ADDRESS_BITS || bytes >> HW_ARCH_ADDRESS_BITS)
            continue;
        there = 0;
        hw_resident_each(big.address, big.address + bytes, take_resident);
        *(big.live ? &moment->absent_requested : &moment->absent_free) += bytes > there ? bytes - there : 0;
    }
}

static void keep_moment(struct hw_places_moment *moment, enum hw_memory_moment kind)
{
    uint32_t index = HW_NONE, count = (uint32_t)HW_ENTRIES(HW_POOL_PLACES_MOMENTS);
    for (uint32_t i = 0; i < count; i++)
        if (HW_ENTRY(HW_POOL_PLACES_MOMENTS, struct hw_places_moment, i)->moment == (uint32_t)kind)
            index = i;
    if (index == HW_NONE)
        index = hw_pool_take(HW_POOL_PLACES_MOMENTS, 1);
    if (index == HW_NONE)
        return;
    moment->moment = kind;
    hw_places_pin(moment, hw_allocator_info()->tracked_live);
    *HW_ENTRY(HW_POOL_PLACES_MOMENTS, struct hw_places_moment, index) = *moment;
    hw_pool_publish(HW_POOL_PLACES_MOMENTS);
}

/* One reading of what is resident, for the peak, the end, or both. */
static void measure(uint64_t tick, bool peak, bool end)
{
    struct hw_places_moment moment = {.tick = tick, .requested_bytes = waste.requested};
    struct hw_memory_breakdown all;
    const struct parts parts = parts_of(waste.now, waste.most);
    measured = &moment;
    hw_memory_measure(&all, end ? HW_MOMENT_END : HW_MOMENT_PEAK, take_mapping);
    look_at_big(&moment);
    moment.internal_bytes = parts.internal;
    moment.free_bytes = parts.free_bytes;
    moment.blowup_bytes = parts.blowup;
    if (parts.free_wide > 0 && moment.absent_free) { /* what is not there is no waste */
        double absent = (double)moment.absent_free / (double)parts.free_wide;
        moment.blowup_bytes -= (int64_t)((absent < 1 ? absent : 1) * (double)parts.blowup_wide);
    }
    waste.resident = moment.resident_bytes;
    waste.external = (int64_t)(moment.resident_bytes + moment.absent_requested) - moment.requested_bytes -
                     moment.internal_bytes - moment.blowup_bytes;
    if (peak) {
        waste.moment_at = waste.requested;
        keep_moment(&moment, HW_MOMENT_PEAK);
        hw_memory_keep(&all, HW_MOMENT_PEAK, tick, waste.requested);
    }
    hw_memory_keep_time(&all, tick, waste.requested);
    if (end) {
        keep_moment(&moment, HW_MOMENT_END);
        hw_memory_keep(&all, HW_MOMENT_END, tick, waste.requested);
    }
}

/* ---- the profile ---- */

static void write_state(struct hw_usable_class_state *to, const struct hw_place_state *from, int64_t most, uint32_t c)
{
    *to = (struct hw_usable_class_state){
        .live_blocks = from->live,
        .live_bytes = from->requested,
        .usable_bytes = usable_of(from, c),
        .untouched_bytes = from->untouched,
        .free_blocks = hw_place_listed(from),
        .free_bytes = free_bytes_of(from, c),
        .most_blocks = most,
        .new_blocks = from->fresh,
        .reused_blocks = from->again + from->other,
    };
}

static void write_classes(void)
{
    uint32_t used = (uint32_t)HW_ENTRIES(HW_POOL_PLACE_CLASSES), next = 0;
    for (uint32_t c = 0; c < HW_PLACE_CLASSES; c++) {
        if (is_zero(&waste.now[c]) && is_zero(&waste.peak[c]))
            continue;
        if (next >= used && hw_pool_take(HW_POOL_PLACE_CLASSES, 1) == HW_NONE)
            break;
        struct hw_usable_class *class = HW_ENTRY(HW_POOL_PLACE_CLASSES, struct hw_usable_class, next++);
        class->usable_least = c ? hw_place_class_most(c - 1) + 1 : 0;
        class->usable_most = hw_place_class_most(c);
        write_state(&class->now, &waste.now[c], waste.most[c], c);
        write_state(&class->peak, &waste.peak[c], waste.peak_most[c], c);
    }
    hw_pool_publish(HW_POOL_PLACE_CLASSES);
}

static struct hw_places_info *information(void)
{
    return hw_pools[HW_POOL_PLACES].used ? HW_ENTRY(HW_POOL_PLACES, struct hw_places_info, 0) : NULL;
}

#define EVENTS (sizeof(struct hw_place_events) / sizeof(uint64_t))

/* Of all threads. */
static struct hw_place_events sum_events(void)
{
    struct hw_place_events sum = {0};
    for (uint32_t i = 0; i < hw_places.threads_used; i++)
        for (size_t n = 0; n < EVENTS; n++)
            ((uint64_t *)&sum)[n] += ((const uint64_t *)&hw_places.threads[i]->events)[n];
    return sum;
}

static void write_information(uint64_t tick)
{
    struct hw_places_info *info = information();
    if (!info)
        return;
    const struct hw_place_events sum = sum_events();
    info->flags = (hw_places.many ? HW_PLACES_THREADS : 0) | (hw_places.owners_wrapped ? HW_PLACES_WRAPPED : 0);
    info->tick = tick;
    info->requested_bytes = waste.requested;
    info->peak_bytes = hw_places.peak > 0 ? (uint64_t)hw_places.peak : 0;
    info->peak_tick = hw_places.peak_tick;
    for (size_t n = 0; n < EVENTS; n++) /* in the same order */
        (&info->active_lines)[n] = ((const uint64_t *)&sum)[n] - ((const uint64_t *)&before.events)[n];
}
_Static_assert(sizeof(struct hw_place_events) ==
                   offsetof(struct hw_places_info, samples) - offsetof(struct hw_places_info, active_lines),
               "what threads count is what the profile holds");

void hw_places_add_hits(struct hw_place_hits *hits)
{
    struct hw_places_info *info = information();
    if (!info || !hits->samples)
        return;
    uint64_t *to = &info->samples, *from = (uint64_t *)hits;
    for (size_t i = 0; i < sizeof *hits / sizeof *from; i++) { /* in the same order */
        to[i] += from[i];
        from[i] = 0;
    }
}
_Static_assert(sizeof(struct hw_place_hits) ==
                   offsetof(struct hw_places_info, runs) - offsetof(struct hw_places_info, samples),
               "what samples count is what the profile holds");

/* Sums up to now, so that readers see when most of it happened. */
static void add_events(struct hw_places_point *point)
{
    for (uint32_t c = 0; c < HW_PLACE_CLASSES; c++) {
        const struct hw_place_state *state = &waste.now[c];
        point->handed_out += (uint64_t)(state->fresh + state->again + state->other);
        point->handed_out_new += (uint64_t)state->fresh;
    }
    const uint32_t rows = (uint32_t)HW_ENTRIES(HW_POOL_OPERATION_CALLS);
    for (uint32_t i = 0; i < rows; i++) {
        const struct hw_operation_call *row = HW_ENTRY(HW_POOL_OPERATION_CALLS, struct hw_operation_call, i);
        const uint64_t ticks = __atomic_load_n(&row->ticks, __ATOMIC_RELAXED);
        if (row->call == HW_CALL_MMAP || row->call == HW_CALL_MUNMAP || row->call == HW_CALL_MREMAP)
            point->mapping_ticks += ticks;
        else if (row->call == HW_CALL_BRK)
            point->heap_end_ticks += ticks;
        else if (row->call == HW_CALL_MADVISE)
            point->advice_ticks += ticks;
    }
    point->waiting_ticks = hw_dispatch_waited();
    const struct hw_places_info *info = information();
    point->shared_lines = info ? info->active_lines + info->passive_lines : 0;
}

/* Every second one goes; of two the one at which the resident heap was read stays. */
static void thin_out(void)
{
    struct hw_places_point *points = HW_ENTRY(HW_POOL_PLACES_TIME, struct hw_places_point, 0);
    for (uint32_t i = 0; i < HW_PLACES_POINTS / 2; i++)
        points[i] = points[2 * i + (!points[2 * i].resident_bytes && points[2 * i + 1].resident_bytes)];
    hw_pool_set_count(HW_POOL_PLACES_TIME, HW_PLACES_POINTS / 2);
    waste.interval *= 2;
}

static void add_point(uint64_t tick)
{
    if (HW_ENTRIES(HW_POOL_PLACES_TIME) >= HW_PLACES_POINTS)
        thin_out();
    uint32_t index = hw_pool_take(HW_POOL_PLACES_TIME, 1);
    if (index == HW_NONE)
        return;
    const struct parts parts = parts_of(waste.now, waste.most);
    struct hw_places_point *point = HW_ENTRY(HW_POOL_PLACES_TIME, struct hw_places_point, index);
    *point = (struct hw_places_point){
        .tick = tick,
        .requested_bytes = waste.requested,
        .internal_bytes = parts.internal,
        .blowup_bytes = parts.blowup,
        .free_bytes = parts.free_bytes,
        .resident_bytes = waste.resident,
        .external_bytes = waste.resident ? waste.external : 0,
    };
    waste.resident = 0; /* of that point only */
    add_events(point);
    hw_pool_publish(HW_POOL_PLACES_TIME);
}

/* Near enough to be reported: readers demand nine tenths of the peak. */
static int64_t near_peak(void)
{
    return hw_places.peak - hw_places.peak / 10;
}

/* Requested bytes from which the resident heap is read again. */
static int64_t next_look(void)
{
    const int64_t step = waste.moment_at / 10;
    return waste.moment_at + (step > STEP_LEAST ? step : STEP_LEAST);
}

/* Looks for a peak of LIVE bytes, which may not be the last one: small steps do not take the time of later ones. */
static bool can_look(uint64_t tick, int64_t live)
{
    const bool small = live - waste.moment_at < LARGE_STEP;
    return hw_budget_allows(small ? HW_BUDGET_HEAP_SMALL : HW_BUDGET_HEAP_GROWN, waste.spent, tick,
                            waste.interval_first);
}

/* In the moment in which a peak is left near which the resident heap was not read: the next point in time may be too
 * late. */
static bool can_look_at_last(uint64_t tick)
{
    return waste.moment_at < near_peak() &&
           hw_budget_allows(HW_BUDGET_HEAP_LAST, waste.spent_last, tick, waste.interval_first);
}

/* Whether the resident heap is to be read for the peak: it has grown since, or it is near a peak near which that was
 * not done, in particular if it begins to fall. */
static bool is_look_due(uint64_t tick)
{
    const bool unread = waste.requested > near_peak() && waste.moment_at < near_peak();
    const uint64_t ms = waste.interval_first;
    const bool falls = unread && waste.requested < hw_places.peak - hw_places.peak / 64;
    return (waste.requested > next_look() && can_look(tick, waste.requested)) ||
           (unread && hw_budget_allows(HW_BUDGET_HEAP_UNREAD, waste.spent, tick, ms)) ||
           (falls && hw_budget_allows(HW_BUDGET_HEAP_FALLS, waste.spent, tick, ms));
}

/* Or only to know when it was what: after some time, or since live bytes are others now, for which some of the time is
 * left; when it is known what a look takes. */
static bool is_look_old(uint64_t tick)
{
    const int64_t change = waste.requested - waste.look_at, much = hw_places.peak / CHANGE_PART;
    const bool changed = change > much || change < -much;
    return waste.requested >= STEP_LEAST && (changed || tick - waste.look > tick / LOOK_RATIO) && waste.look_cost &&
           hw_budget_allows(changed ? HW_BUDGET_HEAP_CHANGED : HW_BUDGET_HEAP_OLD, waste.spent_old + waste.look_cost,
                            tick, 0);
}

/* It is no time of the program's. */
static void note_own(uint64_t ticks)
{
    __atomic_fetch_add(&hw_allocator_info()->own_ticks, ticks, __ATOMIC_RELAXED);
}

/* Reads the resident heap, after sum_all. */
static void look(uint64_t tick, bool peak)
{
    const uint64_t begin = hw_ticks_raw();
    measure(tick, peak, false);
    waste.look = tick;
    waste.look_at = waste.requested;
    waste.look_cost = hw_ticks_raw() - begin;
    *(peak ? &waste.spent : &waste.spent_old) += waste.look_cost;
    note_own(waste.look_cost);
}

static void write_all(uint64_t tick)
{
    write_information(tick);
    add_point(tick);
    write_classes();
}

void hw_places_tick(uint64_t tick)
{
    if (tick < waste.next_sum)
        return;
    uint64_t begin = hw_ticks_raw();
    sum_all();
    uint64_t cost = hw_ticks_raw() - begin;
    const bool due = is_look_due(tick);
    if (due || is_look_old(tick))
        look(tick, due);
    begin = hw_ticks_raw();
    write_all(tick);
    cost += hw_ticks_raw() - begin;
    waste.summing += cost;
    note_own(cost);
    const bool rare = !hw_budget_allows(HW_BUDGET_SUMS, waste.summing, tick, waste.interval_first);
    waste.next_sum = tick + hw_budget_pause(HW_BUDGET_SUMS, rare ? cost : 0, waste.interval);
    hw_places_look_above = next_look();
}

static void look_at_left(uint64_t tick)
{
    hw_places.left_below = 0;
    hw_places_look_above = INT64_MAX; /* until the next point in time */
    const bool in_turn = can_look(tick, hw_places_live());
    if (!in_turn && !can_look_at_last(tick))
        return;
    sum_all();
    look(tick, true);
    if (!in_turn) {
        waste.spent -= waste.look_cost;
        waste.spent_last += waste.look_cost;
    }
    write_all(tick);
    hw_places_look_above = next_look();
}

void hw_places_leave_peak(void)
{
    if (hw_quiet || hw_trap_in_burst())
        return;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    if (!hw_places.many || hw_places.left_below) /* else another thread has seen it, just now */
        look_at_left(hw_ticks_raw() - hw_runtime.tick_base);
    hw_lock_drop(&hw_runtime.lock, old);
}

void hw_places_write(uint64_t tick)
{
    if (!hw_places.even)
        return;
    sum_all();
    write_all(tick);
}

void hw_places_end(uint64_t tick)
{
    if (!hw_places.even)
        return;
    sum_all();
    measure(tick, waste.requested > waste.moment_at && waste.requested > near_peak(), true);
    write_all(tick);
}

static void begin_looks(void)
{
    waste.next_sum = waste.summing = waste.look = waste.look_cost = 0;
    waste.spent = waste.spent_old = waste.spent_last = 0;
    waste.moment_at = waste.look_at = 0;
    hw_places_look_above = STEP_LEAST;
}

void hw_places_file_begin(void)
{
    before.any = false;
    before.events = (struct hw_place_events){0};
    begin_looks();
    waste.resident = 0;
    hw_place_contexts_file_begin();
    waste.interval = waste.interval_first = hw_runtime.clock_is_tsc ? 2500000 : 1000000;
    if (hw_pool_take(HW_POOL_PLACES, 1) != HW_NONE)
        hw_pool_publish(HW_POOL_PLACES);
}

/* At a reset: sums begin at zero from here on. */
static void keep_before(void)
{
    before.any = true;
    before.events = sum_events();
    for (uint32_t c = 0; c < HW_PLACE_CLASSES; c++) {
        struct hw_place_state *events = &before.classes[c];
        *events = (struct hw_place_state){0};
        for (uint32_t i = 0; i < hw_places.threads_used; i++) {
            if (!hw_place_touched(hw_places.threads[i], c))
                continue;
            const struct hw_place_state *now = &hw_places.threads[i]->classes[c].now;
            events->again += now->again;
            events->fresh += now->fresh;
            events->other += now->other;
        }
        events->taken = events->fresh + events->other; /* as many are listed as before */
    }
}

int64_t hw_places_live_blocks(void)
{
    int64_t live = 0;
    for (uint32_t c = 0; c < HW_PLACE_CLASSES; c++)
        live += hw_place_class_live(c);
    return live;
}

void hw_places_forget(void)
{
    keep_before();
    waste.interval = waste.interval_first;
    struct hw_places_info *info = information();
    if (info)
        *info = (struct hw_places_info){0};
    hw_pool_set_count(HW_POOL_PLACE_CLASSES, 0);
    hw_pool_set_count(HW_POOL_PLACES_TIME, 0);
    hw_pool_set_count(HW_POOL_PLACES_MOMENTS, 0);
    hw_place_contexts_reset();
    begin_looks();
}
