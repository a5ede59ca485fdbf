/* timeline.c - the run as at most HW_TIMELINE_POINTS points.
 *
 * The thread that allocates or frees when a point is due takes it: the runtime has no thread for that. When the list is
 * full every second point is dropped and the distance doubles. The clock's pair for readers is refreshed on the way. */
#include "runtime/allocator/places.h"
#include "runtime/core/core.h"
#include "runtime/core/memory.h"
#include "runtime/core/threads.h"
#include "runtime/samples/samples.h"

#define FIRST_INTERVAL_NS 1000000ull

static struct {
    uint64_t interval;       /* ticks */
    uint64_t next;           /* when the next point is due; hw_runtime.timeline_next may come earlier, for a dump */
    uint64_t breakdown_live; /* live bytes at the latest breakdown of RSS */
    uint64_t rss, rss_tick;  /* latest reading, and when */
} timeline;

void hw_timeline_start(void)
{
    timeline.breakdown_live = 256 << 10;
    timeline.rss_tick = 0;
    timeline.rss = 0;
    timeline.next = 0;
    /* Before the first pair is known, guess 2.5 GHz: it only decides when the first points come. */
    timeline.interval = hw_runtime.clock_is_tsc ? FIRST_INTERVAL_NS * 5 / 2 : FIRST_INTERVAL_NS;
    hw_runtime.timeline_next = 0;
    hw_runtime.process->timeline_interval_ticks = timeline.interval;
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

void hw_timeline_tick(struct hw_thread *thread, uint64_t tick)
{
    if (hw_unlikely(hw_trap_in_burst())) /* which its system calls would end: the next event will do */
        return;
    if (hw_runtime.threads_many)
        hw_heap_flush(thread);
    if (!hw_address_space_limited())
        hw_limits_make_way(); /* before what cannot be tried again fails: a stack that grows, dlopen */
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    if (tick >= timeline.next) {
        timeline.next = tick - tick % timeline.interval + timeline.interval;
        hw_clock_refresh();
        add_point(tick);
        hw_parts_tick(tick);
        /* RSS taken apart near the peak: each time it has grown by half, from 8 MiB on by a quarter. Places do it
         * themselves, with what they look for in the same reading. */
        uint64_t live = live_bytes() > 0 ? (uint64_t)live_bytes() : 0;
        if (!hw_places.even && live > timeline.breakdown_live) {
            timeline.breakdown_live = live < 8 << 20 ? live + live / 2 : live + live / 4;
            hw_memory_take(HW_MOMENT_PEAK, tick, (int64_t)live);
        }
    }
    uint64_t due = hw_dump_due_tick(tick);
    /* Sequentially consistent: who asks for a dump raises his mark, then sets this to 0. */
    __atomic_store_n(&hw_runtime.timeline_next, timeline.next < due ? timeline.next : due, __ATOMIC_SEQ_CST);
    hw_lock_drop(&hw_runtime.lock, old);
    hw_dump_tick(thread);
}

void hw_timeline_reset(void)
{
    hw_pool_set_count(HW_POOL_TIMELINE, 0);
    hw_pool_set_count(HW_POOL_MEMORY, 0);
    hw_timeline_start();
}

/* The last point of the run. Lock held. */
void hw_timeline_end(void)
{
    hw_clock_refresh();
    add_point(hw_runtime.process->end_tick);
    hw_places_end(hw_runtime.process->end_tick);
    if (!hw_places.even)
        hw_memory_take(HW_MOMENT_END, hw_runtime.process->end_tick, live_bytes());
}
