/* timeline.c - the run as at most HW_TIMELINE_POINTS points.
 *
 * The thread that allocates or frees when a point is due takes it: the runtime has no thread for that. When the list is
 * full every second point is dropped and the distance doubles. The clock's pair for readers is refreshed on the way. */
#include "runtime/allocator/places.h"
#include "runtime/core/budgets.h"
#include "runtime/core/core.h"
#include "runtime/core/memory.h"
#include "runtime/core/threads.h"
#include "runtime/samples/samples.h"

#include <time.h>

#define FIRST_INTERVAL_NS 1000000ull
#define PEAK_LEAST        (256u << 10) /* live bytes: RSS is not read for smaller peaks */
#define PEAK_STEP         64           /* a peak that is greater by one part in so many is another one */
#define PEAK_LEAST_STEP   512          /* …and worth a reading if it is left by a fall as great */
#define PAUSE_PARTS       4            /* of a millisecond: the longest pause between looks at the peak is one */
#define RSS_PAUSE         2            /* ms, likewise of looks at RSS */

static struct {
    uint64_t interval;      /* ticks */
    uint64_t next;          /* when the next point is due; hw_runtime.timeline_next may come earlier, for a dump */
    uint64_t rss, rss_tick; /* latest reading, and when */
} timeline;

/* The latest reading of what RSS is made of that counts as the one at the peak. */
static struct {
    uint64_t live, rss;
    uint64_t spent;        /* ticks of processor time, on readings for small steps */
    bool wanted;           /* it could not be read at this peak: it is when the peak is left */
    uint64_t again, pause; /* when a free looks again: it is wanted, or blocks were not resident; 0: it does not */
    uint64_t looked;       /* at RSS: when */
} peak;

static uint32_t tick_busy; /* a thread is in hw_timeline_tick, where there are several */

void hw_timeline_start(void)
{
    peak.live = hw_runtime.peak_read_above = PEAK_LEAST;
    peak.rss = peak.spent = peak.again = peak.looked = 0;
    peak.wanted = false;
    timeline.rss_tick = 0;
    timeline.rss = 0;
    timeline.next = 0;
    /* Before the first pair is known, guess 2.5 GHz: it only decides when the first points come. */
    timeline.interval = hw_runtime.clock_is_tsc ? FIRST_INTERVAL_NS * 5 / 2 : FIRST_INTERVAL_NS;
    hw_runtime.timeline_next = hw_runtime.timeline_fall = 0;
    tick_busy = 0; /* the thread that made a reading at a fork is not in the child */
    hw_runtime.process->timeline_interval_ticks = timeline.interval;
    hw_memory_start();
}

static void thin_out(void)
{
    struct hw_timeline_point *points = HW_ENTRY(HW_POOL_TIMELINE, struct hw_timeline_point, 0);
    for (uint32_t i = 0; i < HW_TIMELINE_POINTS / 2; i++)
        points[i] = points[2 * i];
    hw_pool_set_count(HW_POOL_TIMELINE, HW_TIMELINE_POINTS / 2);
    timeline.interval *= 2;
    hw_runtime.process->timeline_interval_ticks = timeline.interval;
}

/* In allocator mode the totals are estimates (of followed blocks): exact is what places say. */
static int64_t live_bytes(void)
{
    return hw_places.even ? hw_places_live() : hw_runtime.process->live_bytes;
}

/* Lock held. */
static void add_point(uint64_t tick)
{
    if (HW_ENTRIES(HW_POOL_TIMELINE) >= HW_TIMELINE_POINTS)
        thin_out();
    uint32_t index = hw_pool_take(HW_POOL_TIMELINE, 1);
    if (index == HW_NONE)
        return;
    /* Reading RSS costs a few microseconds: not more often than every 10 ms or so. */
    if (!timeline.rss || tick - timeline.rss_tick >= 8 * FIRST_INTERVAL_NS * 5 / 2 ||
        timeline.interval > tick - timeline.rss_tick) {
        timeline.rss = hw_memory_rss();
        timeline.rss_tick = tick;
    }
    struct hw_timeline_point *point = HW_ENTRY(HW_POOL_TIMELINE, struct hw_timeline_point, index);
    point->tick = tick;
    point->live_bytes = live_bytes();
    point->rss_bytes = timeline.rss;
    point->allocations = hw_threads_sum(&point->frees);
    hw_pool_publish(HW_POOL_TIMELINE);
}

/* ---- what RSS is made of at the peak ----
 *
 * A block is written after it was allocated. So RSS is read when the peak is left: by the first free after a new
 * maximum, whose block is still there. On the way up it is read each time live memory has grown by half, from 8 MiB on
 * by a quarter, by the event after that: the program may end without a free. It is read again when much more is
 * resident, and as much still live. */

static uint64_t a_ms(void)
{
    return hw_runtime.clock_is_tsc ? FIRST_INTERVAL_NS * 5 / 2 : FIRST_INTERVAL_NS;
}

static bool is_near(uint64_t live, uint64_t most)
{
    return live >= most - most / PEAK_STEP;
}

static void look_again(uint64_t tick)
{
    peak.pause = a_ms() / 64;
    peak.again = tick + peak.pause;
}

static void note_reading(const struct hw_memory_breakdown *result, uint64_t tick, uint64_t live)
{
    peak.live = live;
    peak.rss = result->rss;
    peak.again = 0;
    peak.wanted = false;
    if (result->allocator < live - live / 16)
        look_again(tick);
    if (hw_runtime.peak_read_above < live + live / PEAK_LEAST_STEP)
        hw_runtime.peak_read_above = live + live / PEAK_LEAST_STEP;
}

static void read_peak(uint64_t tick, uint64_t live)
{
    struct hw_memory_breakdown result;
    hw_memory_measure(&result, HW_MOMENT_PEAK, NULL);
    hw_memory_keep(&result, HW_MOMENT_PEAK, tick, (int64_t)live);
    hw_memory_keep_time(&result, tick, (int64_t)live);
    note_reading(&result, tick, live);
}

/* RSS was read before blocks were written that are still there. */
static bool is_better(uint64_t live, uint64_t rss)
{
    return is_near(live, peak.live) && is_near(live, hw_runtime.process->peak_bytes) &&
           rss > peak.rss + peak.rss / 8 + PEAK_LEAST;
}

/* LIVE: after the event. */
static bool leaves_peak(int64_t live, int64_t change)
{
    const int64_t most = (int64_t)hw_runtime.process->peak_bytes;
    return change < 0 && (live < most - most / PEAK_STEP || -change > most / PEAK_LEAST_STEP);
}

/* A maximum that is greater by a small step only: what it may cost. */
static bool may_read(uint64_t tick, uint64_t live, int64_t change)
{
    return (live > peak.live + peak.live / PEAK_STEP &&
            hw_budget_allows(HW_BUDGET_LEDGER_PEAK, peak.spent, tick, a_ms())) ||
           (leaves_peak((int64_t)live + change, change) &&
            hw_budget_allows(HW_BUDGET_LEDGER_LEFT, peak.spent, tick, a_ms()));
}

/* Whether to look at RSS again, which takes some microseconds: after a while, or since much is freed. */
static bool is_rss_old(uint64_t tick, uint64_t live, int64_t change)
{
    const bool old = tick - peak.looked >= RSS_PAUSE * a_ms();
    if (old)
        peak.looked = tick;
    return old || (change < 0 && (uint64_t)-change > live / 64);
}

/* LIVE bytes are there, as before this event. */
static void look_at_peak(uint64_t tick, uint64_t live, int64_t change)
{
    const uint64_t most = hw_runtime.process->peak_bytes;
    const bool looks = peak.again && tick >= peak.again, at_peak = is_near(live, most);
    /* With several threads the others are in the middle of events that wait for the reading: the peak itself would be
     * less by their blocks. */
    const bool step = !hw_runtime.threads_many && at_peak && change <= 0 && live > peak.live + peak.live / PEAK_LEAST_STEP;
    if (looks) {
        peak.pause = peak.pause < a_ms() / PAUSE_PARTS ? peak.pause * 2 : peak.pause;
        peak.again = tick + peak.pause;
    }
    if (!at_peak)
        peak.again = peak.wanted = 0;
    if (live > (peak.live < 8 << 20 ? peak.live + peak.live / 2 : peak.live + peak.live / 4)) {
        read_peak(tick, live);
    } else if (step && may_read(tick, live, change)) {
        const uint64_t begin = hw_clock_read(CLOCK_THREAD_CPUTIME_ID);
        read_peak(tick, live);
        peak.spent += (hw_clock_read(CLOCK_THREAD_CPUTIME_ID) - begin) * a_ms() / FIRST_INTERVAL_NS;
    } else if (step && !peak.wanted) {
        peak.wanted = true;
        look_again(tick);
    } else if (at_peak && is_near(live, peak.live) && is_rss_old(tick, live, change) &&
               is_better(live, hw_memory_rss())) {
        read_peak(tick, live);
    }
    if (change <= 0 && hw_runtime.peak_read_above < most) /* it has been left */
        hw_runtime.peak_read_above = most + most / PEAK_LEAST_STEP;
}

/* Sequentially consistent: who asks for a dump raises his mark, who finds a new peak has noted it, then this is 0. */
static void set_next(uint64_t next)
{
    __atomic_store_n(&hw_runtime.timeline_next, next, __ATOMIC_SEQ_CST);
    __atomic_store_n(&hw_runtime.timeline_fall, peak.again && peak.again < next ? peak.again : next, __ATOMIC_SEQ_CST);
    if (!hw_runtime.threads_many && (peak.wanted || hw_runtime.process->peak_bytes > hw_runtime.peak_read_above))
        __atomic_store_n(&hw_runtime.timeline_fall, 0, __ATOMIC_RELAXED);
}

void hw_timeline_hurry(void)
{
    __atomic_store_n(&hw_runtime.timeline_next, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&hw_runtime.timeline_fall, 0, __ATOMIC_SEQ_CST);
}

/* Nobody waits for a reading that another thread makes: its block would be freed that much later. But for a dump, which
 * was asked for (timeline_next is 0). */
static bool begin_tick(void)
{
    uint32_t idle = 0;
    return __atomic_compare_exchange_n(&tick_busy, &idle, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED) ||
           !__atomic_load_n(&hw_runtime.timeline_next, __ATOMIC_SEQ_CST);
}

void hw_timeline_tick(struct hw_thread *thread, uint64_t tick, int64_t change)
{
    if (peak.wanted && tick < hw_runtime.timeline_next && tick < peak.again &&
        !leaves_peak(hw_runtime.process->live_bytes, change))
        return;
    if (hw_unlikely(hw_trap_in_burst())) /* which its system calls would end: the next event will do */
        return;
    if (hw_runtime.threads_many && !begin_tick())
        return;
    if (hw_runtime.threads_many)
        hw_heap_flush(thread);
    if (tick >= timeline.next && !hw_address_space_limited())
        hw_limits_make_way(); /* before what cannot be tried again fails: a stack that grows, dlopen */
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    const int64_t before = live_bytes() - change;
    const uint64_t live = before > 0 ? (uint64_t)before : 0;
    const bool due = tick >= timeline.next;
    if (due) {
        timeline.next = tick - tick % timeline.interval + timeline.interval;
        hw_clock_refresh();
        add_point(tick);
        hw_parts_tick(tick);
    }
    if (!hw_places.even) { /* places do it themselves, with what they look for in the same reading */
        look_at_peak(tick, live, change);
        if (due)
            hw_memory_take_time(tick, (int64_t)live);
    } else {
        hw_runtime.peak_read_above = ~0ull;
    }
    hw_memory_take_late(tick, live_bytes());
    const uint64_t dump = hw_dump_due_tick(tick, live_bytes());
    set_next(timeline.next < dump ? timeline.next : dump);
    __atomic_store_n(&tick_busy, 0, __ATOMIC_RELEASE);
    hw_lock_drop(&hw_runtime.lock, old);
    hw_dump_tick(thread);
}

void hw_timeline_reset(void)
{
    hw_pool_set_count(HW_POOL_TIMELINE, 0);
    hw_pool_forget(HW_POOL_MEMORY);
    hw_pool_forget(HW_POOL_LEDGER);
    hw_timeline_start();
}

/* The last point of the run. Lock held. */
void hw_timeline_end(void)
{
    if (hw_runtime.process->counting == HW_COUNTING_STOPPED) /* that was the end of what is counted */
        return;
    hw_clock_refresh();
    add_point(hw_runtime.process->end_tick);
    hw_places_end(hw_runtime.process->end_tick);
    if (hw_places.even)
        return;
    const uint64_t tick = hw_runtime.process->end_tick;
    const int64_t live = live_bytes();
    struct hw_memory_breakdown result;
    hw_memory_measure(&result, HW_MOMENT_END, NULL);
    hw_memory_keep(&result, HW_MOMENT_END, tick, live);
    if (live > PEAK_LEAST && ((uint64_t)live > peak.live || is_better((uint64_t)live, result.rss)))
        hw_memory_keep(&result, HW_MOMENT_PEAK, tick, live);
}
