/* mappings.c - see mappings.h.
 *
 * Two sorted lists of their own lock, in memory of the runtime. A call of the allocator itself (inside of one of the
 * program's, or from the allocator's library) is entered without a context. What the dynamic linker and libc map for
 * themselves never comes here: they do not call the functions that have hooks. When a list is full, or was cut short by
 * a fork in the middle of a change, what is missing in it is reported as not explained, never as somebody's.
 *
 * The lock is held with all signals blocked, which takes two system calls. Where calls follow each other closely, their
 * changes wait in a ring (mapping_ring.h) and are entered together. Every reader enters them first. */
#include "runtime/core/mappings.h"
#include "base/order.h"
#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/core/mapping_ring.h"
#include "runtime/core/memory.h"
#include "runtime/core/threads.h"
#include "runtime/heap/heap.h"
#include "runtime/hooks/hooks.h"
#include "runtime/stacks/stacks.h"

#define RANGES_MOST (1u << 20)
#define STACKS_MOST (1u << 17)
#define SLOTS       4096u /* of contexts that map memory; those beyond are not in MAPPINGS */
#define PROBES      64u
#define AT_ONCE     16u         /* changes that are entered at once, each MILLISECOND */
#define MILLISECOND 2500000u    /* ticks, some */
#define LARGE       (1ul << 20) /* mappings that are always entered at once */

static struct {
    struct hw_lock lock;
    bool changing; /* not in order, if this is seen by a forked child */
    struct hw_mapped *range;
    struct hw_thread_stack *stack;
    uint32_t ranges, stacks;
} maps;

static uintptr_t first_pointer;

/* Context -> its entry of MAPPINGS + 1. Entries are added under hw_runtime.lock. */
static struct {
    uint32_t context, entry;
} slots[SLOTS] HW_LARGE;
static bool slots_used;

/* ---- counts by call stack ---- */

static uint32_t slot_of(uint32_t context)
{
    uint32_t slot = (uint32_t)hw_mix(context) % SLOTS;
    for (uint32_t i = 0; i < PROBES; i++, slot = (slot + 1) % SLOTS) {
        const uint32_t entry = __atomic_load_n(&slots[slot].entry, __ATOMIC_ACQUIRE);
        if (!entry || slots[slot].context == context)
            return slot;
    }
    return HW_NONE;
}

static struct hw_mapping *entry_of(uint32_t context)
{
    const uint32_t slot = slot_of(context);
    const uint32_t entry = slot == HW_NONE ? 0 : __atomic_load_n(&slots[slot].entry, __ATOMIC_ACQUIRE);
    return entry ? HW_ENTRY(HW_POOL_MAPPINGS, struct hw_mapping, entry - 1) : NULL;
}

/* Lock held. */
static void make_entry(uint32_t context)
{
    const uint32_t slot = slot_of(context);
    if (slot == HW_NONE || slots[slot].entry)
        return;
    const uint32_t index = hw_pool_take(HW_POOL_MAPPINGS, 1);
    if (index == HW_NONE)
        return;
    HW_ENTRY(HW_POOL_MAPPINGS, struct hw_mapping, index)->context = context;
    hw_pool_publish(HW_POOL_MAPPINGS);
    slots[slot].context = context;
    slots_used = true;
    __atomic_store_n(&slots[slot].entry, index + 1, __ATOMIC_RELEASE);
}

/* The list's lock is held from here on. */
static void count_gone(uint32_t context, uint64_t bytes)
{
    struct hw_mapping *entry = context == HW_MAPPED_BY_ALLOCATOR ? NULL : entry_of(context);
    if (entry)
        entry->mapped_bytes -= bytes < entry->mapped_bytes ? bytes : entry->mapped_bytes;
}

static void count_there(uint32_t context, uint64_t bytes)
{
    struct hw_mapping *entry = context == HW_MAPPED_BY_ALLOCATOR ? NULL : entry_of(context);
    if (!entry)
        return;
    entry->mapped_bytes += bytes;
    if (entry->mapped_bytes > entry->peak_bytes)
        entry->peak_bytes = entry->mapped_bytes;
}

static void count_call(uint32_t context, uint64_t bytes)
{
    struct hw_mapping *entry = context == HW_MAPPED_BY_ALLOCATOR ? NULL : entry_of(context);
    if (!entry)
        return;
    entry->calls++;
    entry->bytes += bytes;
}

/* ---- the list ---- */

static bool has_lists(void)
{
    if (maps.range)
        return true;
    struct hw_mapped *range = hw_own_pages(RANGES_MOST * sizeof *range, false);
    maps.stack = range ? hw_own_pages(STACKS_MOST * sizeof *maps.stack, false) : NULL;
    if (maps.stack)
        __atomic_store_n(&maps.range, range, __ATOMIC_RELEASE);
    return maps.stack != NULL;
}

/* Index of the first range that ends above ADDRESS. */
static uint32_t first_above(uintptr_t address)
{
    return (uint32_t)HW_AT_LEAST(maps.range, maps.ranges, end, address + 1);
}

/* The ranges from AT on, COUNT of them, become FRESH others, to be filled by the caller. */
static bool replace(uint32_t at, uint32_t count, uint32_t fresh)
{
    if (maps.ranges - count + fresh > RANGES_MOST)
        return false;
    __builtin_memmove(maps.range + at + fresh, maps.range + at + count,
                      (maps.ranges - at - count) * sizeof *maps.range);
    maps.ranges += fresh - count;
    return true;
}

static void take_out(uintptr_t start, uintptr_t end)
{
    const uint32_t first = first_above(start);
    uint32_t count = 0;
    for (; first + count < maps.ranges && maps.range[first + count].start < end; count++) {
        const struct hw_mapped *range = &maps.range[first + count];
        const uintptr_t from = range->start > start ? range->start : start, to = range->end < end ? range->end : end;
        count_gone(range->context, to - from);
    }
    if (!count)
        return;
    struct hw_mapped rest[2];
    uint32_t left = 0;
    const struct hw_mapped head = maps.range[first], tail = maps.range[first + count - 1];
    if (head.start < start)
        rest[left++] = (struct hw_mapped){head.start, start, head.context};
    if (tail.end > end)
        rest[left++] = (struct hw_mapped){end, tail.end, tail.context};
    if (!replace(first, count, left)) /* full: one piece more would not fit */
        left = 0;
    for (uint32_t i = 0; i < left; i++)
        maps.range[first + i] = rest[i];
}

static void put_in(uintptr_t start, uintptr_t end, uint32_t context)
{
    take_out(start, end);
    const uint32_t at = first_above(start);
    struct hw_mapped *before = at ? &maps.range[at - 1] : NULL, *behind = at < maps.ranges ? &maps.range[at] : NULL;
    const bool joins = before && before->end == start && before->context == context;
    count_there(context, end - start);
    if (joins && behind && behind->start == end && behind->context == context) {
        before->end = behind->end;
        replace(at, 1, 0);
    } else if (joins) {
        before->end = end;
    } else if (behind && behind->start == end && behind->context == context) {
        behind->start = start;
    } else if (replace(at, 0, 1)) {
        maps.range[at] = (struct hw_mapped){start, end, context};
    }
}

static void enter(struct hw_mapping_change change)
{
    if (change.gone)
        take_out(change.start, change.end);
    else {
        put_in(change.start, change.end, change.context);
        count_call(change.context, change.end - change.start);
    }
}

static void catch_up(void)
{
    struct hw_mapping_change change;
    for (uint32_t i = 0; i < HW_MAPPING_RING && hw_mapping_ring_take(&change); i++)
        enter(change);
}

/* What was changed before is in the list then. */
static hw_sigset begin_change(void)
{
    const hw_sigset old = hw_lock_take(&maps.lock);
    __atomic_store_n(&maps.changing, true, __ATOMIC_SEQ_CST);
    if (maps.range)
        catch_up();
    return old;
}

static void end_change(hw_sigset old)
{
    __atomic_store_n(&maps.changing, false, __ATOMIC_SEQ_CST);
    hw_lock_drop(&maps.lock, old);
}

/* Whether the changes in the ring are to be entered now. Threads may come here together: then there are a few more. */
static bool due(const struct hw_mapping_change *latest)
{
    static uint64_t since;
    static uint32_t entered;
    if (!latest->gone && latest->end - latest->start >= LARGE)
        return true;
    const uint64_t now = hw_ticks_raw();
    if (now - __atomic_load_n(&since, __ATOMIC_RELAXED) > MILLISECOND) {
        __atomic_store_n(&since, now, __ATOMIC_RELAXED);
        __atomic_store_n(&entered, 0, __ATOMIC_RELAXED);
    }
    const uint32_t count = __atomic_load_n(&entered, __ATOMIC_RELAXED);
    if (count < AT_ONCE)
        __atomic_store_n(&entered, count + 1, __ATOMIC_RELAXED);
    return count < AT_ONCE || hw_mapping_ring_count() >= HW_MAPPING_RING / 2;
}

static void change(struct hw_mapping_change change)
{
    const bool waits = __atomic_load_n(&maps.range, __ATOMIC_ACQUIRE) && hw_mapping_ring_put(change);
    if (hw_fork_pending() || (waits && !due(&change))) /* the lock may be held by a thread that is not here */
        return;
    const hw_sigset old = begin_change();
    if (!waits && has_lists())
        enter(change);
    end_change(old);
}

void hw_mappings_catch_up(void)
{
    if (hw_mapping_ring_count())
        end_change(begin_change());
}

void hw_mappings_tick(uint64_t tick)
{
    (void)tick;
    hw_mappings_catch_up();
}

/* ---- who calls ---- */

/* A library with the allocator maps for that; an executable that has one of its own maps for other things, too. */
static bool by_allocator(uintptr_t frame)
{
    const struct hw_thread *self = hw_self;
    if (!frame || (self && self->gate != HW_GATE_OPEN && self->gate != HW_GATE_CLOSED))
        return true;
    return !hw_real_home && hw_called_by_allocator(frame);
}

/* HW_MAPPED_BY_ALLOCATOR, or a context that has an entry. */
static uint32_t context_of(uintptr_t frame)
{
    if (by_allocator(frame))
        return HW_MAPPED_BY_ALLOCATOR;
    struct hw_thread *thread = hw_enter(frame, false);
    if (!thread)
        return 0;
    const uint32_t context = hw_walk_context(hw_walk_at(thread, frame));
    hw_leave(thread);
    return context;
}

static bool is_on(void)
{
    return hw_runtime.state == HW_STATE_ON && !hw_quiet;
}

static void need_entry(uint32_t context)
{
    if (context == HW_MAPPED_BY_ALLOCATOR || entry_of(context))
        return;
    const hw_sigset old = hw_lock_take(&hw_runtime.lock);
    make_entry(context);
    hw_lock_drop(&hw_runtime.lock, old);
}

void hw_mapping_made(uintptr_t start, size_t bytes, uintptr_t frame)
{
    if (!is_on())
        return;
    const uint32_t context = context_of(frame);
    if (!is_on()) /* a forked child that has no profile */
        return;
    if (!hw_fork_pending())
        need_entry(context);
    change((struct hw_mapping_change){start, start + HW_ALIGN_UP(bytes, HW_PAGE), context, false});
}

void hw_mapping_gone(uintptr_t start, size_t bytes)
{
    if (is_on() && __atomic_load_n(&maps.range, __ATOMIC_ACQUIRE))
        change((struct hw_mapping_change){start, start + HW_ALIGN_UP(bytes, HW_PAGE), 0, true});
}

void hw_mapping_moved(uintptr_t was, size_t old_bytes, uintptr_t start, size_t bytes, bool stays, uintptr_t frame)
{
    if (!is_on())
        return;
    const uint32_t caller = context_of(frame);
    if (!is_on() || hw_fork_pending())
        return;
    need_entry(caller);
    const hw_sigset old = begin_change();
    if (has_lists()) {
        const uint32_t at = first_above(was);
        const bool known = at < maps.ranges && maps.range[at].start <= was;
        const uint32_t context = known ? maps.range[at].context : caller; /* whose it was it stays */
        const uint64_t whole = HW_ALIGN_UP(bytes, HW_PAGE), before = HW_ALIGN_UP(old_bytes, HW_PAGE);
        if (!stays)
            take_out(was, was + before);
        put_in(start, start + whole, context);
        count_call(caller, stays ? whole : whole > before ? whole - before : 0);
    }
    end_change(old);
}

bool hw_mapping_above(uintptr_t address, struct hw_mapped *found)
{
    if (!maps.range)
        return false;
    hw_mappings_catch_up();
    const hw_sigset old = hw_lock_take(&maps.lock);
    const uint32_t at = first_above(address);
    const bool there = at < maps.ranges;
    if (there)
        *found = maps.range[at];
    hw_lock_drop(&maps.lock, old);
    return there;
}

bool hw_mappings_calm(void)
{
    return !__atomic_load_n(&maps.lock.state, __ATOMIC_SEQ_CST);
}

/* ---- stacks ---- */

static uint32_t first_stack(uintptr_t pointer)
{
    return (uint32_t)HW_AT_LEAST(maps.stack, maps.stacks, pointer, pointer);
}

void hw_stack_begun(void)
{
    const struct hw_thread_stack self = {hw_arch_thread_pointer(), (uintptr_t)__builtin_frame_address(0),
                                         hw_quiet ? 0 : hw_gettid()};
    if (!is_on() || hw_fork_pending() || self.sp > self.pointer)
        return;
    const hw_sigset old = begin_change();
    if (has_lists()) {
        const uint32_t at = first_stack(self.pointer);
        const bool again = at < maps.stacks && maps.stack[at].pointer == self.pointer; /* of one that has ended */
        if (!again && maps.stacks < STACKS_MOST)
            __builtin_memmove(maps.stack + at + 1, maps.stack + at, (maps.stacks++ - at) * sizeof *maps.stack);
        if (again || at < maps.stacks)
            maps.stack[at] = self;
    }
    end_change(old);
}

bool hw_stack_in(uintptr_t start, uintptr_t end, struct hw_thread_stack *found)
{
    if (!maps.range)
        return false;
    const hw_sigset old = hw_lock_take(&maps.lock);
    const uint32_t at = first_stack(start);
    const bool there = at < maps.stacks && maps.stack[at].pointer < end;
    if (there)
        *found = maps.stack[at];
    hw_lock_drop(&maps.lock, old);
    return there;
}

/* ---- fork and reset ---- */

static void forget_entries(void)
{
    if (slots_used)
        __builtin_memset(slots, 0, sizeof slots);
    slots_used = false;
}

void hw_mappings_forget(void)
{
    if (maps.changing)
        maps.ranges = maps.stacks = 0;
    maps.changing = false;
    maps.lock = (struct hw_lock){0};
    forget_entries(); /* they are the parent's */
    hw_mappings_catch_up();
}

/* Lock held, or alone. */
static void count_anew(void)
{
    forget_entries();
    for (uint32_t i = 0; i < maps.ranges; i++) {
        const struct hw_mapped *range = &maps.range[i];
        if (range->context == HW_MAPPED_BY_ALLOCATOR)
            continue;
        make_entry(range->context);
        count_there(range->context, range->end - range->start);
    }
}

/* Only the thread that has forked is there. */
void hw_mappings_fork(void)
{
    const uintptr_t pointer = hw_arch_thread_pointer();
    for (uint32_t i = 0; i < maps.stacks; i++)
        maps.stack[i].tid = maps.stack[i].pointer == pointer ? hw_runtime.pid : 0;
    count_anew();
}

void hw_mappings_start(void)
{
    first_pointer = hw_arch_thread_pointer();
}

uintptr_t hw_first_thread_pointer(void)
{
    return first_pointer;
}

void hw_mappings_reset(void)
{
    const hw_sigset old = begin_change();
    hw_pool_forget(HW_POOL_MAPPINGS);
    count_anew();
    end_change(old);
}
