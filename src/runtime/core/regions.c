/* regions.c - heapwise_region_begin(), heapwise_region_end(), heapwise_mark(): what the program allocates between two
 * points of its own, and names for moments.
 *
 * A region is a difference of counts that are kept anyway: those of the calling thread, or of all threads, which wait
 * for that moment (hw_threads_stop), so that each event belongs to one side. Only the greatest rise of the live bytes
 * has to be followed: while a region is open, heap.c reports each new total (hw_regions_rise). There is one maximum for
 * the process and one for each thread; each begin and end of a region takes it for all that are open, so that regions
 * may nest and overlap.
 *
 * The program's memory holds a number only: regions that are never ended (exceptions, longjmp) harm nobody. Regions are
 * void after heapwise_reset and in a forked child: the counts begin anew. */
#include "runtime/allocator/places.h"
#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/core/threads.h"

/* As in include/heapwise/heapwise.h. */
struct heapwise_region {
    size_t hidden[2]; /* number, and index into `regions.open` */
};
enum { MEASURED_NOT = 0, MEASURED_ESTIMATED = 1, MEASURED_EXACT = 2 };
struct heapwise_totals {
    size_t allocations, frees, reallocations, bytes;
    int64_t live_blocks, live_bytes;
    size_t peak_bytes;
    size_t measured;
    size_t reserved[8];
};

#define OPEN_MOST  1024
#define NAMES_MOST 1024
#define MARKS_MOST 4096

struct counts {
    uint64_t allocations, frees, reallocations, bytes;
    int64_t live_blocks, live_bytes;
};

struct open_region {
    size_t number;            /* 0: none */
    struct hw_thread *thread; /* NULL: all */
    uint32_t thread_serial;
    uint32_t entry; /* in REGIONS, or HW_NONE */
    bool estimated;
    uint64_t begin_tick;
    struct counts begin;
    int64_t base, most; /* live bytes, as hw_regions_rise gets them */
};

/* Under hw_runtime.lock. */
static struct {
    struct open_region open[OPEN_MOST];
    uint32_t used; /* those behind have never been open */
    size_t number; /* of the latest */
    uint32_t of_process;
} regions HW_LARGE;

void hw_regions_forget(void)
{
    for (uint32_t i = 0; i < regions.used; i++)
        regions.open[i].number = 0;
    regions.used = regions.of_process = 0;
    hw_runtime.regions_open = hw_runtime.regions_of_process = 0;
}

static struct counts counts_of(const struct hw_thread_entry *entry)
{
    return (struct counts){entry->allocations, entry->frees,       entry->reallocations,
                           entry->bytes,       entry->live_blocks, entry->live_bytes};
}

static struct counts counts_now(const struct hw_thread *thread)
{
    struct counts sum = {0};
    if (thread)
        return counts_of(thread->entry);
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_THREADS); i++) {
        const struct counts of = counts_of(HW_ENTRY(HW_POOL_THREADS, struct hw_thread_entry, i));
        sum.allocations += of.allocations;
        sum.frees += of.frees;
        sum.reallocations += of.reallocations;
        sum.bytes += of.bytes;
        sum.live_blocks += of.live_blocks;
        sum.live_bytes += of.live_bytes;
    }
    return sum;
}

/* ---- maxima ---- */

void hw_regions_rise(struct hw_thread *thread, int64_t live)
{
    int64_t most = __atomic_load_n(&hw_runtime.regions_most, __ATOMIC_RELAXED);
    while (live > most && !__atomic_compare_exchange_n(&hw_runtime.regions_most, &most, live, true, __ATOMIC_RELAXED,
                                                       __ATOMIC_RELAXED)) {
    }
    if (thread && thread->entry->live_bytes > thread->regions_most)
        thread->regions_most = thread->entry->live_bytes;
}

/* What was the maximum until now counts for all that are open; it starts again from what is live now. */
static void take_maximum(struct hw_thread *thread, int64_t live)
{
    int64_t *most = thread ? &thread->regions_most : &hw_runtime.regions_most;
    for (uint32_t i = 0; i < regions.used; i++) {
        struct open_region *open = &regions.open[i];
        if (open->number && open->thread == thread && open->most < *most)
            open->most = *most;
    }
    *most = live;
}

/* ---- open regions ---- */

static void close_region(struct open_region *open)
{
    open->number = 0;
    hw_runtime.regions_open--;
    if (!open->thread)
        hw_runtime.regions_of_process--;
}

/* One that is free, or was left open by a thread that has ended. */
static struct open_region *free_region(void)
{
    struct open_region *found = NULL;
    for (uint32_t i = 0; i < regions.used && !found; i++)
        if (!regions.open[i].number)
            found = &regions.open[i];
    if (!found && regions.used < OPEN_MOST)
        return &regions.open[regions.used++];
    for (uint32_t i = 0; i < OPEN_MOST && !found; i++) {
        struct open_region *open = &regions.open[i];
        if (open->thread && (!open->thread->entry || open->thread->entry->serial != open->thread_serial)) {
            close_region(open);
            found = open;
        }
    }
    return found;
}

/* The entry of that name, made when it is new. */
static uint32_t entry_of(const char *name, bool thread, uint64_t tick)
{
    const uint32_t count = (uint32_t)HW_ENTRIES(HW_POOL_REGIONS), flags = thread ? HW_REGION_THREAD : 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct hw_region *entry = HW_ENTRY(HW_POOL_REGIONS, struct hw_region, i);
        if ((entry->flags & HW_REGION_THREAD) == flags && hw_streq(hw_pools[HW_POOL_STRINGS].base + entry->name, name))
            return i;
    }
    const uint32_t index = count < NAMES_MOST ? hw_pool_take(HW_POOL_REGIONS, 1) : HW_NONE;
    if (index != HW_NONE) {
        *HW_ENTRY(HW_POOL_REGIONS, struct hw_region, index) =
            (struct hw_region){.name = hw_file_string(name), .flags = flags, .first_tick = tick};
        hw_pool_publish(HW_POOL_REGIONS);
    }
    return index;
}

/* Live bytes as hw_regions_rise gets them. Nobody is in the middle of an event of what is measured. */
static int64_t live_now(struct hw_thread *thread)
{
    if (thread)
        return thread->entry->live_bytes;
    hw_threads_each(hw_heap_flush);
    return hw_runtime.process->live_bytes;
}

/* Nobody is in the middle of an event of what is measured; lock held. */
static bool begin(struct heapwise_region *region, const char *name, struct hw_thread *thread, bool stopped)
{
    struct open_region *open = free_region();
    if (!open)
        return false;
    hw_runtime.regions_open++;
    hw_runtime.regions_of_process += !thread; /* from now on each event adds to the totals at once */
    const uint64_t tick = hw_ticks_raw() - hw_runtime.tick_base;
    const int64_t live = live_now(thread);
    take_maximum(thread, live);
    *open = (struct open_region){.number = ++regions.number,
                                 .thread = thread,
                                 .thread_serial = thread ? thread->entry->serial : 0,
                                 .entry = entry_of(name, thread != NULL, tick),
                                 .estimated = !stopped || hw_options.sample_bytes,
                                 .begin_tick = tick,
                                 .begin = counts_now(thread),
                                 .base = live,
                                 .most = live};
    if (open->entry != HW_NONE)
        HW_ENTRY(HW_POOL_REGIONS, struct hw_region, open->entry)->begun++;
    region->hidden[0] = open->number;
    region->hidden[1] = (size_t)(open - regions.open);
    return true;
}

static void keep_greater(uint64_t *to, uint64_t value)
{
    if (value > *to)
        *to = value;
}

static void record(struct hw_region *entry, const struct heapwise_totals *of, uint64_t begin_tick, uint64_t tick)
{
    const uint64_t ticks = tick > begin_tick ? tick - begin_tick : 0;
    entry->ended++;
    entry->flags |= of->measured == MEASURED_EXACT ? 0 : HW_REGION_ESTIMATED;
    entry->allocations += of->allocations;
    entry->frees += of->frees;
    entry->reallocations += of->reallocations;
    entry->bytes += of->bytes;
    entry->live_blocks += of->live_blocks;
    entry->live_bytes += of->live_bytes;
    entry->ticks += ticks;
    keep_greater(&entry->most_ticks, ticks);
    keep_greater(&entry->most_allocations, of->allocations);
    keep_greater(&entry->most_bytes, of->bytes);
    keep_greater(&entry->peak_bytes, of->peak_bytes);
    if (entry->ended == 1 || of->live_bytes > entry->most_live_bytes)
        entry->most_live_bytes = of->live_bytes;
    entry->last_tick = tick;
}

/* The open one that REGION means, if it can be ended by this thread. */
static struct open_region *find(const struct heapwise_region *region, const struct hw_thread *thread)
{
    const size_t index = region->hidden[1];
    struct open_region *open = index < regions.used ? &regions.open[index] : NULL;
    if (!open || !region->hidden[0] || open->number != region->hidden[0] ||
        (open->thread && (open->thread != thread || open->thread_serial != thread->entry->serial)))
        return NULL;
    return open;
}

static void end(struct open_region *open, bool stopped, struct heapwise_totals *totals)
{
    const uint64_t tick = hw_ticks_raw() - hw_runtime.tick_base;
    const struct counts now = counts_now(open->thread), *from = &open->begin;
    take_maximum(open->thread, live_now(open->thread));
    *totals = (struct heapwise_totals){
        .allocations = now.allocations - from->allocations,
        .frees = now.frees - from->frees,
        .reallocations = now.reallocations - from->reallocations,
        .bytes = now.bytes - from->bytes,
        .live_blocks = now.live_blocks - from->live_blocks,
        .live_bytes = now.live_bytes - from->live_bytes,
        .peak_bytes = (size_t)(open->most - open->base),
        .measured = open->estimated || !stopped ? MEASURED_ESTIMATED : MEASURED_EXACT,
    };
    if (open->entry != HW_NONE)
        record(HW_ENTRY(HW_POOL_REGIONS, struct hw_region, open->entry), totals, open->begin_tick, tick);
    close_region(open);
}

/* ---- what the program calls ---- */

static bool can_measure(void)
{
    if (!hw_dump_possible())
        return false;
    if (hw_runtime.mode != HW_MODE_ALLOCATOR)
        return true;
    hw_note(HW_NOTE_OTHER, "regions of the program (heapwise_region_begin) are not measured in allocator mode");
    return false;
}

/* A moment at which events of the process stand still, and the lock is held. */
struct standstill {
    hw_sigset outer, inner;
    bool stopped;
};

static struct standstill stand_still(void)
{
    struct standstill of = {.outer = hw_dump_lock()};
    of.stopped = hw_threads_stop();
    of.inner = hw_lock_take(&hw_runtime.lock);
    return of;
}

static void go_on(const struct standstill *of)
{
    hw_lock_drop(&hw_runtime.lock, of->inner);
    hw_threads_go();
    hw_dump_unlock(of->outer);
}

HW_EXPORTED(int, heapwise_region_begin, (struct heapwise_region * region, const char *name, int of_thread))
{
    bool begun = false;
    if (!region)
        return -1;
    *region = (struct heapwise_region){{0, 0}};
    if (!can_measure())
        return -1;
    name = name ? name : "";
    struct hw_thread *thread = of_thread ? hw_enter((uintptr_t)__builtin_frame_address(0), false) : NULL;
    if (thread) {
        hw_sigset old = hw_lock_take(&hw_runtime.lock);
        begun = begin(region, name, thread, true);
        hw_lock_drop(&hw_runtime.lock, old);
        hw_leave(thread);
    } else if (!of_thread) {
        const struct standstill still = stand_still();
        begun = begin(region, name, NULL, still.stopped);
        go_on(&still);
    }
    return begun ? 0 : -1;
}

HW_EXPORTED(int, heapwise_region_end, (struct heapwise_region * region, struct heapwise_totals *totals))
{
    struct heapwise_totals own;
    totals = totals ? totals : &own;
    *totals = (struct heapwise_totals){0};
    if (!region || !region->hidden[0] || !can_measure())
        return -1;
    struct hw_thread *self = hw_enter((uintptr_t)__builtin_frame_address(0), false);
    if (!self)
        return -1;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    struct open_region *open = find(region, self);
    const bool of_process = open && !open->thread;
    if (open && !of_process)
        end(open, true, totals);
    hw_lock_drop(&hw_runtime.lock, old);
    hw_leave(self);
    if (of_process) {
        const struct standstill still = stand_still();
        open = find(region, self); /* another thread may have been faster */
        if (open)
            end(open, still.stopped, totals);
        go_on(&still);
    }
    *region = (struct heapwise_region){{0, 0}};
    return totals->measured ? 0 : -1;
}

HW_EXPORTED(int, heapwise_mark, (const char *name))
{
    if (!hw_dump_possible())
        return -1;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    const uint32_t index = HW_ENTRIES(HW_POOL_MARKS) < MARKS_MOST ? hw_pool_take(HW_POOL_MARKS, 1) : HW_NONE;
    if (index != HW_NONE) {
        *HW_ENTRY(HW_POOL_MARKS, struct hw_mark, index) =
            (struct hw_mark){.tick = hw_ticks_raw() - hw_runtime.tick_base,
                             .live_bytes = hw_places.even ? hw_places_live() : counts_now(NULL).live_bytes,
                             .name = hw_file_string(name ? name : "")};
        hw_pool_publish(HW_POOL_MARKS);
    }
    hw_lock_drop(&hw_runtime.lock, old);
    if (index == HW_NONE)
        hw_note(HW_NOTE_OTHER,
                "the program set more marks (heapwise_mark) than a profile holds, 4,096: later ones are missing");
    return index == HW_NONE ? -1 : 0;
}
