/* places.h - mode=allocator: what is at each address, and what the allocator makes of its memory.
 *
 * Two planes of one byte for each 16 bytes of address space: the even one for the first half of the 16, the odd one for
 * the second. A block that begins at a multiple of 8 has its byte where it begins, and owns, in that plane, those of
 * the 16 bytes that follow. The odd plane is touched by allocators alone that have blocks of 8 bytes or at distances
 * of 24.
 *
 *  1sssssss  a live block begins. Short ones, of up to HW_PLACE_SHORT_UNITS times 8 usable bytes: the requested size.
 *            Others: HW_PLACE_SLACK and the bytes that were not asked for, or one of HW_PLACE_ASK, _BIG, _LONG
 *  01b.pppp  payload of a block, live or free
 *  00buuuuu  no live block begins; u: one was freed here, and its memory has not been handed out since: so many times
 *            8 usable bytes of a short one, or _FREE_MID, _FREE_BIG, _FREE_LONG; 0: none
 *    b       a block began here once (with 1sssssss: certainly)
 *
 * Blocks of more than HW_PLACE_SHORT_UNITS, up to HW_PLACE_MID_UNITS, have their usable size in two bytes of payload
 * that stay when the block is freed: to free it and to hand it out again changes its first byte alone.
 *
 * Invariants: bytes are written by the owner of the block that they belong to, so that plain stores suffice. Listed
 * free blocks and live blocks do not overlap: handing out memory takes those out of the list that lie in it. Those may
 * begin before that memory, and their begin may be another thread's by then: they are taken by compare-and-exchange of
 * all that says what they are. What lies in front of other threads' blocks is not read: it may be gone.
 *
 * Lines: two bytes for each 64 bytes of address space say whose live blocks are there (line_owners.c); they are
 * read when there is more than one thread. 0 stands for the first thread, so a program with one thread touches none.
 *
 * Per thread and class of usable size there are counters; sums over threads are computed when they are needed. */
#ifndef HW_RUNTIME_ALLOCATOR_PLACES_H
#define HW_RUNTIME_ALLOCATOR_PLACES_H

#include "runtime/allocator/operations.h"

#define HW_PLACE_START        0x80u
#define HW_PLACE_BODY         0x40u
#define HW_PLACE_BEGUN        0x20u
#define HW_PLACE_SHORT_UNITS  11u  /* of 8 usable bytes: the first byte holds the requested size */
#define HW_PLACE_MID_UNITS    128u /* of 8 usable bytes: two bytes of payload hold their number */
#define HW_PLACE_SLACK        89u  /* usable bytes less requested ones, up to HW_PLACE_SLACK_MOST */
#define HW_PLACE_SLACK_MOST   35u
#define HW_PLACE_ASK          125u /* usable bytes are not what others of this size have */
#define HW_PLACE_BIG          126u /* usable bytes from HW_PLACE_BIG_BYTES on: an entry of its own */
#define HW_PLACE_LONG         127u
#define HW_PLACE_FREE_MID     29u
#define HW_PLACE_FREE_BIG     30u
#define HW_PLACE_FREE_LONG    31u
#define HW_PLACE_BIG_BYTES    65536u
#define HW_PLACE_BIG_MOST     (1u << 26) /* entries */
#define HW_PLACE_REGION_SHIFT 16         /* a region has one page of each plane */
#define HW_PLACE_AREA_SHIFT   21
#define HW_PLACE_MIXED_MOST   (1u << 22) /* times 64 KiB of address space in which lines had several owners */

/* Classes of usable sizes: one for each multiple of 8 up to 1024, then four for each doubling. */
#define HW_PLACE_EXACT   128u
#define HW_PLACE_CLASSES (HW_PLACE_EXACT + 1 + 37 * 4)
static inline uint32_t hw_place_class(uint64_t usable)
{
    if (usable <= HW_PLACE_EXACT * 8)
        return (uint32_t)((usable + 7) >> 3);
    uint32_t log = 63u - (uint32_t)__builtin_clzll(usable - 1); /* from 10 */
    uint32_t index = HW_PLACE_EXACT + 1 + (log - 10) * 4 + ((uint32_t)((usable - 1) >> (log - 2)) & 3);
    return index < HW_PLACE_CLASSES ? index : HW_PLACE_CLASSES - 1;
}
/* The greatest usable size of a class. */
static inline uint64_t hw_place_class_most(uint32_t index)
{
    if (index <= HW_PLACE_EXACT)
        return index * 8;
    return (uint64_t)(5 + (index - HW_PLACE_EXACT - 1) % 4) << (8 + (index - HW_PLACE_EXACT - 1) / 4);
}

/* What was live and free of one class. Sums over threads count: one thread's may be negative. */
struct hw_place_state {
    int64_t live, requested;   /* blocks handed out and not freed; their requested bytes */
    int64_t again;             /* handed out where one of the same class was free */
    int64_t fresh;             /* handed out at addresses never handed out before */
    int64_t other;             /* handed out at other addresses where a block began once */
    int64_t taken;             /* free blocks whose memory went to other classes, or back to the system */
    int64_t usable, untouched; /* classes above HW_PLACE_EXACT: of live ones, all bytes; those in whole pages that were
                                * never asked for */
    int64_t free_bytes;        /* above HW_PLACE_EXACT: of free ones */
};
/* Blocks that were freed and not handed out since. */
static inline int64_t hw_place_listed(const struct hw_place_state *state)
{
    return state->fresh + state->other - state->live - state->taken;
}

/* One thread's share of a class. The first line is what a usual operation touches. */
struct hw_place_class_counts {
    int64_t high, low; /* settle (place_threads.c) when live is above, or… */
    uint64_t span;     /* …live - low is above this */
    uint64_t epoch;    /* of the peak whose state is in `peak` */
    struct hw_place_state now;
    int64_t flushed;             /* of `now.live`: in the total */
    struct hw_place_state peak;  /* as of the peak, if epoch is the present one; else it is `now` */
    int64_t peak_most;           /* the same of hw_place_total.most */
} __attribute__((aligned(256))); /* 192 would do; this many are found by shifting */
_Static_assert(offsetof(struct hw_place_class_counts, now.other) <= 64, "one line for a usual operation");

/* What happened to one thread, as hw_places_info has it. */
struct hw_place_events {
    uint64_t active_lines, passive_lines; /* lines on which it happened for the first time */
    uint64_t active_blocks, passive_blocks;
    uint64_t odd;     /* blocks at addresses that are no multiple of 8: nothing is known of them */
    uint64_t unseen;  /* blocks whose memory was handed out again although no free was seen */
    uint64_t skipped; /* checks of lines that a signal handler could not make */
};

struct hw_place_thread {
    int64_t requested; /* live bytes */
    int64_t high, low;
    uint64_t span;
    int64_t flushed;
    uint16_t owner;        /* of lines */
    uint8_t in_line;       /* inside line_owners.c: a signal handler must not wait for itself */
    uint8_t shared;        /* the latest block handed out shares a line: `shared_*` say with whom */
    uint32_t told;         /* how often it has published how much is live */
    uint32_t index;        /* among all */
    uintptr_t shared_with; /* address of the mark of another thread's block */
    uint64_t pairs_seen;
    struct hw_operator *op;
    uint32_t big_free; /* list of entries for big blocks, 0 at the end */
    uint32_t in_use;
    struct hw_place_events events;
    struct hw_place_thread *next_free;
    uint64_t touched[(HW_PLACE_CLASSES + 63) / 64]; /* a bit for each class that ever had an event */
    struct hw_place_class_counts classes[HW_PLACE_CLASSES];
};

/* What was handed out in 64 KiB of address space. Where a big block covers all of it, and does not begin there, no
 * other one begins: `high` is 0, and nothing need be looked for when that block goes. */
struct hw_place_region {
    uint16_t high;  /* end of the farthest block that there was, in units of 16 bytes */
    uint16_t odd;   /* blocks began at odd multiples of 8 */
    uint32_t big;   /* entry of the big block, live or free, that covers the begin of the region; 0: none */
    uint32_t mixed; /* page of owners, if some line here had several; 0: none */
    uint32_t made;  /* the even plane has its page */
};

/* 2 MiB of address space. Where a big block covers all of it, and does not begin there, its entry stands here, and
 * regions know nothing of it: a mapping of a GiB is some hundred of these. */
struct hw_place_area {
    uint32_t big;  /* 0: none */
    uint32_t used; /* some region in it may have `high` or `big` */
};

/* Owners of single blocks, on lines of several, by the address of their mark: first those at multiples of 16. */
struct hw_place_owners {
    uint16_t owner[2][HW_PLACE_BIG_BYTES / 16];
};

struct hw_place_big {
    uintptr_t address;                   /* 0: not in use, or being written */
    uint64_t usable, requested, touched; /* touched: the largest request ever at this address, of this usable size */
    uint32_t live;
    uint32_t next_free;
};

/* A class in the whole process: in steps while there are several threads. */
struct hw_place_total {
    int64_t live, most;
};

struct hw_places {
    uint8_t *even;     /* NULL: places are not kept */
    uint64_t granules; /* of the program's part of the address space; 0: places are not kept */
    uint16_t *owners;  /* by line */
    uint32_t many;     /* there has been more than one thread */
    uint32_t glibc;
    uint64_t epoch;  /* as hw_process_info.peak_epoch */
    uint16_t *units; /* requested size below HW_PLACE_BIG_BYTES -> usable bytes / 8, 0 while it is not known */
    struct hw_place_region *regions;
    struct hw_place_area *areas;
    struct hw_place_owners *mixed;
    struct hw_place_big *bigs;
    struct hw_place_thread **threads;
    struct hw_place_total *totals;
    /* Above: what all read. From here on: what changes. */
    uint32_t bigs_used __attribute__((aligned(64))), threads_used;
    uint32_t mixed_used;
    int64_t requested, peak, peak_limit; /* live bytes; their greatest sum; a new one is noted above this */
    int64_t peak_clocked;                /* peak when peak_tick was read */
    int64_t left_below;                  /* several threads: the peak counts as left when less is live; 0: no look */
    uint64_t peak_tick;
    uint32_t odd_used, owners_wrapped;
};
extern HW_HIDDEN struct hw_places hw_places;

/* How blocks of so many units, up to HW_PLACE_MID_UNITS, are written down. */
struct hw_place_form {
    uint32_t mask, listed; /* what a listed one has in the four bytes from its first on, where MASK is */
    uint32_t flip, base;   /* (size ^ flip) + base is the code of a live one, (code ^ flip) + base its size */
};
extern HW_HIDDEN struct hw_place_form hw_place_forms[HW_PLACE_MID_UNITS + 1]; /* by number of units; of 0: nothing is */

#define HW_PLACE_SHARED_REUSED 1
#define HW_PLACE_SHARED_FRESH  2

#define HW_PLACE_PLANE_BYTES (1ul << (HW_ARCH_ADDRESS_BITS - 4))
#define HW_PLACE_OWNER_MASK  0x3fffu
#define HW_PLACE_MIXED       0x3ffeu
#define HW_PLACE_BUSY        0x3fffu
#define HW_PLACE_ACTIVE      0x8000u /* has happened on this line */
#define HW_PLACE_PASSIVE     0x4000u

/* ---- places.c ---- */

bool hw_place_allocated_slow(struct hw_operator *op, uintptr_t address, size_t size, bool aligned);
size_t hw_place_freed_slow(struct hw_operator *op, uintptr_t address);
/* A block, as the planes say. */
struct hw_place {
    uintptr_t start;
    uint64_t requested, usable;
    bool live; /* else free */
};
/* The block, live or free, that ADDRESS lies in (in its usable bytes). Reads only: signal safe, may be wrong about
 * blocks that are changing. */
bool hw_place_at(uintptr_t address, struct hw_place *place);
/* Nothing was handed out in [start, end), as far as that is still known. */
bool hw_places_none(uintptr_t start, uintptr_t end);
/* Whether blocks lie in [start, end), or lay there. Asked of anonymous mappings with resident pages. */
bool hw_places_hold(uintptr_t start, uintptr_t end);
/* Calls EACH for the blocks that begin in [start, end). */
void hw_places_each(uintptr_t start, uintptr_t end, void (*each)(void *closure, const struct hw_place *place),
                    void *closure);

/* ---- place_threads.c: what each thread counts, greatest numbers and the peak ---- */

bool hw_places_start(void);
void hw_places_attach(struct hw_operator *op);
/* Lock held. */
void hw_places_detach(struct hw_operator *op);
/* A limit was passed: totals, greatest totals, the peak. */
void hw_place_settle(struct hw_place_thread *self, struct hw_place_class_counts *class);
/* The state of a class is about to change for the first time since the peak. */
void hw_place_keep_now(struct hw_place_thread *self, struct hw_place_class_counts *class);
void hw_place_add_state(struct hw_place_state *to, const struct hw_place_state *from);
/* Live blocks of a class, of all threads. */
int64_t hw_place_class_live(uint32_t class);
/* So many bytes are live; exact only while nobody changes that. */
void hw_places_note_peak(int64_t live);

/* ---- line_owners.c: whose live blocks are on a line ---- */

/* SELF was given the block from ADDRESS to LAST, which bears its marks already. REUSED: the address was handed out
 * before. Only when there has been more than one thread. */
void hw_place_lines(struct hw_place_thread *self, uintptr_t address, uintptr_t last, bool reused);
/* What happened on a line so far: HW_PLACE_ACTIVE, HW_PLACE_PASSIVE. */
uint32_t hw_place_line_events(uintptr_t address);
/* Nothing has happened yet on the lines of the program's memory: they are counted again. Lock held. */
void hw_place_lines_forget(void);

/* ---- heap_parts.c: sums, the heap taken apart, the profile ---- */

/* operation_reset.c: heapwise_reset of all that is known of places. Lock held. */
void hw_places_restart(void);
/* What classes were and are, into the profile; with a point in time, and, if it is due, with the resident heap taken
 * apart. Lock held. */
void hw_places_tick(uint64_t tick);
/* A peak of more than so many requested bytes is worth a reading of the resident heap… */
extern HW_HIDDEN int64_t hw_places_look_above;
/* …when it is left: with one thread in that very moment, with several soon after it. Not under the lock. */
void hw_places_leave_peak(void);
/* The same at once, but for the resident heap. Lock held. */
void hw_places_write(uint64_t tick);
/* The same, certainly, at the end (HW_MOMENT_END). Lock held. */
void hw_places_end(uint64_t tick);
/* After hw_places_reset: what is in the profile, and counts of events, begin again. Lock held. */
void hw_places_forget(void);
/* A new file: nothing is in it yet. */
void hw_places_file_begin(void);

/* What samples say of places goes into the profile, and out of HITS. Lock held. */
struct hw_place_hits; /* samples/samples.h */
void hw_places_add_hits(struct hw_place_hits *hits);

/* Live requested bytes of all threads. */
int64_t hw_places_live(void);
/* Live blocks of all threads. */
int64_t hw_places_live_blocks(void);
/* heapwise_reset: greatest numbers from now on; hw_places_forget is for the rest. Lock held; others count meanwhile. */
void hw_places_reset(void);

/* ---- place_contexts.c: by call stack ---- */

/* Who pins pages now, and how much is free in pages with live blocks, into MOMENT; FOLLOWED: about how many blocks are
 * followed. Lock held. */
void hw_places_pin(struct hw_places_moment *moment, uint64_t followed);
/* At the end of an operation with op->events: if its block shares a line, with whose. */
void hw_places_operation_end(struct hw_operator *op);
void hw_place_contexts_file_begin(void);
void hw_place_contexts_reset(void);

/* Nothing else need be read of classes that a thread has not touched: their pages stay untouched, too. */
static inline bool hw_place_touched(const struct hw_place_thread *thread, uint32_t class)
{
    return thread->touched[class / 64] >> (class % 64) & 1;
}

/* ---- the fast path ----
 *
 * hw_place_allocated comes after the real call (true: this address was handed out before), hw_place_freed before it:
 * the requested size, or SIZE_MAX when no block is known to begin there. Signals are open, no lock is held: a signal
 * handler may do the same for other blocks in between. A reallocation is _freed before the real call and _reallocated
 * after it (of the old address again when it failed). */

static inline uint8_t *hw_place_byte(uintptr_t address)
{
    return hw_places.even + (address >> 4) + (address & 8) * (HW_PLACE_PLANE_BYTES / 8);
}

/* The number of the byte of ADDRESS in the even plane; beyond hw_places.granules for those that have none there. */
static inline uintptr_t hw_place_granule(uintptr_t address)
{
    return address >> 4 | address << 60;
}

static inline void hw_place_add(int64_t *target, int64_t value) /* one instruction: signal handlers may do the same */
{
    __asm__("addq %1, %0" : "+m"(*target) : "er"(value) : "cc");
}

static inline uint32_t hw_place_units(uintptr_t address, size_t size)
{
    return hw_likely(hw_places.glibc) ? (uint32_t)(*(const uint64_t *)(address - 8) >> 3) - 1 : hw_places.units[size];
}

static inline bool hw_place_owned(const struct hw_place_thread *self, uintptr_t address)
{
    return (hw_places.owners[address >> 6] & HW_PLACE_OWNER_MASK) == self->owner;
}

/* One of two, without a branch: it could not be foreseen. */
static inline uint32_t hw_place_select(bool which, uint32_t yes, uint32_t no)
{
    __asm__("testb %2, %2\n\tcmovnel %1, %0" : "+r"(no) : "r"(yes), "q"(which) : "cc");
    return no;
}

/* The two bytes of payload of blocks that are neither short nor long. */
static inline uint32_t hw_place_mid(const uint8_t *byte)
{
    return (byte[1] & 15u) | (byte[2] & 15u) << 4;
}

static inline void hw_place_keep(struct hw_place_thread *self, struct hw_place_class_counts *class)
{
    if (hw_unlikely(class->epoch != hw_places.epoch))
        hw_place_keep_now(self, class);
}

static inline bool hw_place_leaves_limits(const struct hw_place_thread *self, const struct hw_place_class_counts *class)
{
    return (uint64_t)(class->now.live - class->low) > class->span ||
           (uint64_t)(self->requested - self->low) > self->span;
}

/* The usual ways have no call in them: where something else is to be done as well they do nothing, and the slow ones
 * try again with CAREFUL. */

/* A block of SIZE, at most 1024 bytes, where one of the same usable size was freed. False: it is something else,
 * nothing was done. ADDRESS may be 0. */
static inline __attribute__((always_inline)) bool hw_place_again(struct hw_place_thread *self, uintptr_t address,
                                                                 size_t size, bool careful)
{
    const uintptr_t granule = hw_place_granule(address);
    uint32_t word;
    if (hw_unlikely(granule >= hw_places.granules))
        return false;
    uint8_t *byte = hw_places.even + granule;
    __builtin_memcpy(&word, byte, 4);
    if (hw_unlikely(!(word & HW_PLACE_BEGUN)))
        return false;
    const uint32_t units = hw_place_units(address, size);
    const struct hw_place_form *form = &hw_place_forms[units];
    if (hw_unlikely(units > HW_PLACE_MID_UNITS || (word & form->mask) != form->listed))
        return false;
    const uint32_t code = ((uint32_t)size ^ form->flip) + form->base;
    struct hw_place_class_counts *class = &self->classes[units];
    if (hw_unlikely(code > HW_PLACE_SLACK + HW_PLACE_SLACK_MOST))
        return false;
    if (careful)
        hw_place_keep(self, class);
    else if (hw_unlikely(class->epoch != hw_places.epoch))
        return false;
    if (hw_unlikely(hw_places.many)) {
        const uintptr_t last = address + size - (size != 0);
        const bool owned = hw_place_owned(self, address) && hw_place_owned(self, last);
        if (!careful &&
            hw_unlikely(!owned || class->now.live >= class->high || self->requested + (int64_t)size > self->high))
            return false;
        *byte = (uint8_t)(HW_PLACE_START | code);
        if (!owned)
            hw_place_lines(self, address, last, true);
    } else {
        *byte = (uint8_t)(HW_PLACE_START | code);
    }
    hw_place_add(&class->now.live, 1);
    hw_place_add(&class->now.requested, (int64_t)size);
    hw_place_add(&class->now.again, 1);
    hw_place_add(&self->requested, (int64_t)size);
    if (careful && (class->now.live > class->high || self->requested > self->high))
        hw_place_settle(self, class);
    return true;
}

static inline bool hw_place_allocated(struct hw_operator *op, void *pointer, size_t size)
{
    return (hw_likely(op->places && size <= HW_SIZE_SMALL_MOST) &&
            hw_place_again(op->places, (uintptr_t)pointer, size, false)) ||
           hw_place_allocated_slow(op, (uintptr_t)pointer, size, false);
}

/* The same for the result of a reallocation, which may have more room than others of its size. */
static inline bool hw_place_reallocated(struct hw_operator *op, void *pointer, size_t size)
{
    return hw_places.glibc ? hw_place_allocated(op, pointer, size)
                           : hw_place_allocated_slow(op, (uintptr_t)pointer, size, true);
}

/* A block of up to HW_PLACE_MID_UNITS, which is known: its requested size. SIZE_MAX: something else, nothing was done.
 * ADDRESS may be 0. */
static inline __attribute__((always_inline)) size_t hw_place_given_back(struct hw_place_thread *self, uintptr_t address,
                                                                        bool careful)
{
    const uintptr_t granule = hw_place_granule(address);
    if (hw_unlikely(granule >= hw_places.granules))
        return SIZE_MAX;
    uint8_t *byte = hw_places.even + granule;
    const uint32_t code = *byte - HW_PLACE_START;
    if (hw_unlikely(code > HW_PLACE_SLACK + HW_PLACE_SLACK_MOST))
        return SIZE_MAX;
    uint32_t units;
    if (hw_likely(hw_places.glibc))
        units = hw_place_units(address, 0);
    else
        units = hw_place_select(code >= HW_PLACE_SLACK, hw_place_mid(byte), hw_places.units[code]);
    const struct hw_place_form *form = &hw_place_forms[units];
    if (hw_unlikely(units - 1 >= HW_PLACE_MID_UNITS))
        return SIZE_MAX;
    struct hw_place_class_counts *class = &self->classes[units];
    if (careful) {
        if (hw_place_leaves_limits(self, class))
            hw_place_settle(self, class);
        hw_place_keep(self, class);
    } else if (hw_unlikely(class->epoch != hw_places.epoch || hw_place_leaves_limits(self, class))) {
        return SIZE_MAX;
    }
    const uint32_t size = (code ^ form->flip) + form->base;
    *byte = (uint8_t)form->listed;
    hw_place_add(&class->now.live, -1);
    hw_place_add(&class->now.requested, -(int64_t)size);
    hw_place_add(&self->requested, -(int64_t)size);
    return size;
}

static inline size_t hw_place_freed(struct hw_operator *op, void *pointer)
{
    const size_t size = op->places ? hw_place_given_back(op->places, (uintptr_t)pointer, false) : SIZE_MAX;
    return hw_likely(size != SIZE_MAX) ? size : hw_place_freed_slow(op, (uintptr_t)pointer);
}

#endif
