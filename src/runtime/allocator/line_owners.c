/* line_owners.c - whose live blocks are on a cache line: false sharing that the allocator causes, without observing
 * accesses.
 *
 * A block is handed out on a line on which another thread's block lives: at a new address that is active false sharing
 * (the allocator divides the line among threads), at an address that was handed out before passive (a block came to
 * another thread). Only the first and the last line of a block can have others on it.
 *
 * The word of a line holds one owner: this thread owns every live block on the line. It is not read when a block is
 * freed; a thread that gets a block on another thread's line checks by the marks in the planes whether a block still
 * lives there. Lines of several threads store the owner of each block, by the address of its mark.
 *
 * While a line is checked its word is HW_PLACE_BUSY; others wait. A block is marked before its line is checked, so
 * of two threads that are given parts of one line one sees the other; unless the line was already the one's, who then
 * does not wait: within some ten nanoseconds its block may be missed. */
#include "runtime/allocator/places.h"
#include "runtime/core/memory.h"

#define WAITS_MOST 100000u /* the thread that looked may be gone: a forked child */

/* Where the owner of the block with this mark is written down; NULL: nowhere, there is no more room. */
static uint16_t *mixed_of(uintptr_t mark)
{
    struct hw_place_region *region = &hw_places.regions[mark / HW_PLACE_BIG_BYTES];
    uint32_t page = __atomic_load_n(&region->mixed, __ATOMIC_ACQUIRE);
    if (hw_unlikely(!page)) {
        uint32_t fresh = __atomic_fetch_add(&hw_places.mixed_used, 1, __ATOMIC_RELAXED);
        if (fresh >= HW_PLACE_MIXED_MOST) {
            hw_places.mixed_used = HW_PLACE_MIXED_MOST;
            return NULL;
        }
        page = fresh;
        uint32_t none = 0;
        if (!__atomic_compare_exchange_n(&region->mixed, &none, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            page = none;
    }
    return &hw_places.mixed[page].owner[mark >> 3 & 1][(mark & (HW_PLACE_BIG_BYTES - 1)) >> 4];
}

uint32_t hw_place_line_events(uintptr_t address)
{
    return hw_places.owners[address >> 6] & (HW_PLACE_ACTIVE | HW_PLACE_PASSIVE);
}

static void forget_events(uintptr_t start, uintptr_t end)
{
    for (uint16_t *line = (uint16_t *)start; line < (uint16_t *)end; line++)
        if (*(volatile uint16_t *)line & (HW_PLACE_ACTIVE | HW_PLACE_PASSIVE))
            __atomic_fetch_and(line, (uint16_t) ~(HW_PLACE_ACTIVE | HW_PLACE_PASSIVE), __ATOMIC_RELAXED);
}

static void forget_area(const struct hw_area *area)
{
    const uintptr_t last = 1ul << HW_ARCH_ADDRESS_BITS, end = area->end < last ? area->end : last;
    if (area->writable && !area->own && area->start < end)
        hw_resident_each((uintptr_t)(hw_places.owners + (area->start >> 6)), (uintptr_t)(hw_places.owners + (end >> 6)),
                         forget_events);
}

void hw_place_lines_forget(void)
{
    if (hw_places.many)
        hw_areas_each(forget_area);
}

static uint16_t take(uint16_t *line)
{
    for (unsigned waits = 0;; waits++) {
        uint16_t word = __atomic_load_n(line, __ATOMIC_RELAXED);
        if ((word & HW_PLACE_OWNER_MASK) == HW_PLACE_BUSY) {
            if (waits < WAITS_MOST) {
                if (waits % 64 == 63)
                    hw_yield();
                hw_arch_pause();
                continue;
            }
            word = (uint16_t)((word & ~HW_PLACE_OWNER_MASK) | HW_PLACE_MIXED);
            return word;
        }
        if (__atomic_compare_exchange_n(line, &word, word | HW_PLACE_BUSY, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            return word;
    }
}

/* Where live blocks are on the line at FIRST (its first address), into MARKS: their begins, and FIRST of one that
 * begins before it and reaches into it. */
static unsigned live_marks(uintptr_t first, uintptr_t marks[8])
{
    unsigned count = 0;
    struct hw_place place;
    if (hw_place_at(first, &place) && place.live && place.start < first && place.start + place.requested > first)
        marks[count++] = first;
    for (unsigned i = 0; i < 4; i++) {
        if (*(volatile uint8_t *)hw_place_byte(first + i * 16) & HW_PLACE_START)
            marks[count++] = first + i * 16;
        if (hw_places.odd_used && (*(volatile uint8_t *)hw_place_byte(first + i * 16 + 8) & HW_PLACE_START))
            marks[count++] = first + i * 16 + 8;
    }
    return count;
}

static void write_down(uintptr_t mark, uint16_t owner)
{
    uint16_t *where = mixed_of(mark);
    if (where)
        *where = owner;
}

/* Is another thread's block on the line of MARK? MARK is that of the new block. */
static bool look_at(struct hw_place_thread *self, uintptr_t mark, bool reused)
{
    uint16_t *line = &hw_places.owners[mark >> 6];
    uint16_t word = take(line);
    uint32_t owner = word & HW_PLACE_OWNER_MASK, events = word & ~HW_PLACE_OWNER_MASK;
    uintptr_t marks[8];
    unsigned count = live_marks(mark & ~63ul, marks);
    bool shared = false;
    for (unsigned i = 0; i < count; i++) {
        if (marks[i] == mark)
            continue;
        const uint16_t *written = owner == HW_PLACE_MIXED ? mixed_of(marks[i]) : NULL;
        uint32_t who = written ? *written : owner;
        if (who == self->owner)
            continue;
        shared = true;
        self->shared_with = marks[i];
    }
    if (shared) {
        for (unsigned i = 0; i < count; i++)
            if (marks[i] == mark || owner != HW_PLACE_MIXED)
                write_down(marks[i], marks[i] == mark ? self->owner : (uint16_t)owner);
        const uint32_t event = reused ? HW_PLACE_PASSIVE : HW_PLACE_ACTIVE;
        if (!(events & event))
            ++*(reused ? &self->events.passive_lines : &self->events.active_lines);
        events |= event;
    }
    __atomic_store_n(line, (uint16_t)(events | (shared ? HW_PLACE_MIXED : self->owner)), __ATOMIC_RELEASE);
    return shared;
}

void hw_place_lines(struct hw_place_thread *self, uintptr_t address, uintptr_t last, bool reused)
{
    if (self->in_line) { /* a signal handler, in the middle of this */
        self->events.skipped++;
        return;
    }
    self->in_line = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    bool shared = !hw_place_owned(self, address) && look_at(self, address, reused);
    if ((address ^ last) >> 6 && !hw_place_owned(self, last))
        shared |= look_at(self, last & ~63ul, reused);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->in_line = 0;
    if (shared) {
        ++*(reused ? &self->events.passive_blocks : &self->events.active_blocks);
        self->shared = reused ? HW_PLACE_SHARED_REUSED : HW_PLACE_SHARED_FRESH;
        self->op->events |= HW_EVENTS_LINE; /* hw_places_operation_end */
    }
}
