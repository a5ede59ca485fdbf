/* field_windows.c - which fields are used at nearly the same time: a sampler that reads the counters of fields.
 *
 * A thread of the runtime sleeps most of the time. Once a period it reads all counters that have lately risen, in every
 * plane, and again a short window later: fields of one struct that both rose, in one plane, were used close together,
 * if not on the same object. It goes through all other counters a few at a time, to learn which rise, and keeps the
 * profile's sums up to date on the way, so that they are not far behind after kill -9. */
#include "runtime/access/counting.h"
#include "runtime/core/budgets.h"
#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/core/memory.h"
#include "runtime/core/threads.h"

#include <linux/prctl.h>
#include <time.h>

#define PERIOD_NS     10000000ull /* at least */
#define WINDOW_NS     20000ull
#define HOT_MOST      512u  /* counters in planes that are read in a window */
#define SCAN_WORDS    2048u /* that are read in a period, to find those */
#define PAIRS_KNOWN   (1u << 16)
#define RISEN_MOST    64u /* fields of one struct in a window */
#define STALE_PERIODS 16u /* without a rise: not hot any more */

static struct {
    bool running;
    uint32_t generation; /* raised by a reset */
    uint64_t taken, taken_ns,
        begun_ns;            /* windows, however little rose in them, and how long they were; the first one */
    uint32_t plane, counter; /* where the scan is */
    uint32_t hot_count;
    struct hot {
        uint32_t plane, counter, idle;
        uint64_t before, risen;
    } hot[HOT_MOST];
    uint64_t *seen[HW_PLANES_MOST]; /* by plane and counter: the value at the latest scan */
    uint32_t *pairs;                /* index + 1 into FIELD_WINDOWS, by hash */
} sampler;

static void run(void);
static struct hw_helper thread = {.run = run};

static struct risen {
    uint32_t field;
    uint64_t count;
} risen[RISEN_MOST];

/* ---- a window ---- */

static uint64_t value_of(const struct hot *hot)
{
    return __atomic_load_n((const uint64_t *)hw_fields_counter(hw_shadow.plane[hot->plane], hot->counter),
                           __ATOMIC_RELAXED);
}

/* Lock held. */
static void add_weight(uint32_t structure, uint32_t a, uint32_t b, uint64_t weight)
{
    uint64_t hash = (a * 0x9e3779b97f4a7c15ull) ^ (b * 0xc2b2ae3d27d4eb4full);
    for (uint32_t n = 0; n < 16; n++) {
        uint32_t *slot = &sampler.pairs[((hash >> 20) + n) % PAIRS_KNOWN];
        if (!*slot) {
            uint32_t index = hw_pool_take(HW_POOL_FIELD_WINDOWS, 1);
            if (index == HW_NONE)
                return;
            *HW_ENTRY(HW_POOL_FIELD_WINDOWS, struct hw_field_window, index) =
                (struct hw_field_window){.structure = structure, .field_a = a, .field_b = b};
            hw_pool_publish(HW_POOL_FIELD_WINDOWS);
            *slot = index + 1;
        }
        struct hw_field_window *window = HW_ENTRY(HW_POOL_FIELD_WINDOWS, struct hw_field_window, *slot - 1);
        if (window->field_a == a && window->field_b == b) {
            window->weight += weight;
            return;
        }
    }
}

static uint32_t add_risen(uint32_t count, uint32_t field, uint64_t times)
{
    for (uint32_t i = 0; i < count; i++)
        if (risen[i].field == field) {
            risen[i].count += times;
            return count;
        }
    if (count < RISEN_MOST)
        risen[count++] = (struct risen){field, times};
    return count;
}

/* What GROUP's executions since the window began are for the fields of its struct. */
static uint32_t add_group(uint32_t count, const struct hw_field_group *group, uint64_t executions)
{
    const struct hw_struct *structure = HW_ENTRY(HW_POOL_STRUCTS, struct hw_struct, group->structure);
    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct hw_group_member *member =
            HW_ENTRY(HW_POOL_GROUP_MEMBERS, struct hw_group_member, group->first_member + i);
        uint64_t times = executions * ((uint64_t)member->reads + member->writes);
        uint32_t first = member->field == HW_NONE ? structure->first_field : member->field;
        uint32_t fields = member->field == HW_NONE ? structure->field_count : 1;
        for (uint32_t n = 0; n < fields; n++)
            count = add_risen(count, first + n, times);
    }
    return count;
}

/* Pairs of fields of STRUCTURE that rose in PLANE. Hot counters are gone through again: there are few that rise. */
static void add_pairs(uint32_t structure, uint32_t plane)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < sampler.hot_count; i++) {
        const struct hot *hot = &sampler.hot[i];
        if (hot->plane != plane || !hot->risen)
            continue;
        for (uint32_t group = hw_fields_first_group(hot->counter); hw_fields_has_counter(group, hot->counter);
             group++) {
            const struct hw_field_group *entry = HW_ENTRY(HW_POOL_FIELD_GROUPS, struct hw_field_group, group);
            if (entry->structure == structure)
                count = add_group(count, entry, hot->risen);
        }
    }
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < i; j++) {
            uint64_t weight = risen[i].count < risen[j].count ? risen[i].count : risen[j].count;
            bool ordered = risen[j].field < risen[i].field;
            add_weight(structure, risen[ordered ? j : i].field, risen[ordered ? i : j].field, weight);
        }
}

/* Each struct and plane once: at the first hot counter that has it. Lock held. */
static void add_window(void)
{
    struct done {
        uint32_t structure, plane;
    } done[128];
    uint32_t done_count = 0;
    for (uint32_t i = 0; i < sampler.hot_count; i++) {
        const struct hot *hot = &sampler.hot[i];
        if (!hot->risen)
            continue;
        for (uint32_t group = hw_fields_first_group(hot->counter); hw_fields_has_counter(group, hot->counter);
             group++) {
            uint32_t structure = HW_ENTRY(HW_POOL_FIELD_GROUPS, struct hw_field_group, group)->structure;
            bool known = structure == HW_NONE || done_count == sizeof done / sizeof *done;
            for (uint32_t n = 0; n < done_count && !known; n++)
                known = done[n].structure == structure && done[n].plane == hot->plane;
            if (known)
                continue;
            done[done_count++] = (struct done){structure, hot->plane};
            add_pairs(structure, hot->plane);
        }
    }
}

static void take_window(void)
{
    uint32_t generation = sampler.generation;
    bool any = false;
    for (uint32_t i = 0; i < sampler.hot_count; i++)
        sampler.hot[i].before = value_of(&sampler.hot[i]);
    uint64_t begin = hw_clock_monotonic_ns();
    hw_helper_sleep(&thread, WINDOW_NS); /* not in a loop: the sampled thread may need this very processor */
    for (uint32_t i = 0; i < sampler.hot_count; i++) {
        struct hot *hot = &sampler.hot[i];
        uint64_t now = value_of(hot);
        hot->risen = now > hot->before ? now - hot->before : 0;
        hot->idle = hot->risen ? 0 : hot->idle + 1;
        any |= hot->risen != 0;
    }
    uint64_t end = hw_clock_monotonic_ns();
    if (!sampler.taken++)
        sampler.begun_ns = begin;
    sampler.taken_ns += end - begin;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    if (generation == sampler.generation) {
        if (any)
            add_window();
        struct hw_fields_info *info = HW_ENTRY(HW_POOL_FIELDS_INFO, struct hw_fields_info, 0);
        info->windows += any;
        info->period_ns = sampler.taken > 1 ? (begin - sampler.begun_ns) / (sampler.taken - 1) : PERIOD_NS;
        info->window_ns = sampler.taken_ns / sampler.taken;
    }
    hw_lock_drop(&hw_runtime.lock, old);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < sampler.hot_count; i++)
        if (sampler.hot[i].idle < STALE_PERIODS)
            sampler.hot[kept++] = sampler.hot[i];
    sampler.hot_count = kept;
}

/* ---- which counters rise ---- */

static void note_hot(uint32_t plane, uint32_t counter)
{
    uint32_t oldest = 0;
    for (uint32_t i = 0; i < sampler.hot_count; i++) {
        if (sampler.hot[i].plane == plane && sampler.hot[i].counter == counter)
            return;
        if (sampler.hot[i].idle > sampler.hot[oldest].idle)
            oldest = i;
    }
    struct hot hot = {.plane = plane, .counter = counter};
    if (sampler.hot_count < HOT_MOST)
        sampler.hot[sampler.hot_count++] = hot;
    else if (sampler.hot[oldest].idle)
        sampler.hot[oldest] = hot;
}

/* Goes on through the planes, one after the other, a bounded number of counters further. */
static void scan(void)
{
    uint32_t counters = hw_fields_counters(), planes = __atomic_load_n(&hw_shadow.planes_used, __ATOMIC_ACQUIRE);
    for (uint32_t n = 0; n < SCAN_WORDS && counters; n++) {
        if (sampler.counter >= counters) {
            sampler.counter = 0;
            sampler.plane = sampler.plane + 1 < planes ? sampler.plane + 1 : 0;
        }
        if (sampler.plane >= planes)
            sampler.plane = 0;
        uint64_t **seen = &sampler.seen[sampler.plane];
        if (!*seen)
            *seen = hw_own_pages(8ul << 20, true); /* a million counters; those beyond are never hot */
        if (!*seen || sampler.counter >= 1u << 20)
            return;
        uint64_t value = __atomic_load_n(
            (const uint64_t *)hw_fields_counter(hw_shadow.plane[sampler.plane], sampler.counter), __ATOMIC_RELAXED);
        if (value != (*seen)[sampler.counter]) {
            (*seen)[sampler.counter] = value;
            note_hot(sampler.plane, sampler.counter);
        }
        sampler.counter++;
    }
}

/* The sums in the file of a few counters, in turn. */
static void refresh(void)
{
    static uint32_t next;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    uint32_t counters = hw_fields_counters(), planes = hw_shadow.planes_used;
    uint32_t batch = SCAN_WORDS / (planes ? planes : 1) + 1;
    next = next >= counters ? 0 : next;
    uint32_t end = counters - next < batch ? counters : next + batch;
    hw_fields_harvest_counters(next, end);
    next = end;
    hw_lock_drop(&hw_runtime.lock, old);
}

/* ---- the thread ---- */

/* Always less than a hundredth of the time. */
static void run(void)
{
    hw_sys(SYS_prctl, PR_SET_TIMERSLACK, 1000);
    uint64_t spent = 0;
    uint32_t wakes = 0;
    while (hw_helper_goes_on(&thread)) {
        hw_helpers_end_alone(&wakes);
        hw_helper_sleep(&thread, hw_budget_pause(HW_BUDGET_WINDOWS, spent, PERIOD_NS));
        if (hw_runtime.state != HW_STATE_ON)
            continue;
        uint64_t begin = hw_clock_read(CLOCK_THREAD_CPUTIME_ID);
        scan();
        if (sampler.hot_count)
            take_window();
        refresh();
        spent = hw_clock_read(CLOCK_THREAD_CPUTIME_ID) - begin;
    }
}

void hw_windows_start(void)
{
    if (!hw_pools[HW_POOL_FIELDS_INFO].used) /* a file that cannot grow has no place for what windows find */
        return;
    if (!hw_options.windows || hw_quiet || __atomic_exchange_n(&sampler.running, true, __ATOMIC_ACQ_REL))
        return;
    if (!sampler.pairs)
        sampler.pairs = hw_own_pages(PAIRS_KNOWN * sizeof *sampler.pairs, true);
    if (sampler.pairs)
        hw_helper_start(&thread);
}

/* For good; returns when the thread has ended. */
void hw_windows_stop(void)
{
    hw_helper_stop(&thread);
}

/* Lock held. */
void hw_windows_reset(void)
{
    sampler.generation++;
    for (uint32_t i = 0; sampler.pairs && i < PAIRS_KNOWN; i++)
        sampler.pairs[i] = 0;
}

void hw_windows_fork(void)
{
    sampler.running = false;
    hw_helper_fork(&thread);
    sampler.hot_count = sampler.plane = sampler.counter = 0;
    sampler.taken = sampler.taken_ns = 0;
}
