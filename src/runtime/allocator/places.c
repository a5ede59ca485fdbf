/* places.c - what is at each address: everything that is not the usual way (places.h).
 *
 * Nothing here takes a lock: bytes belong to the owner of the block, and so do entries of big blocks; listed blocks and
 * regions change by compare-and-exchange. A signal handler may come in between anywhere: it works on
 * blocks of its own. */
#include "runtime/allocator/places.h"
#include "runtime/hooks/hooks.h"

#ifndef HW_PLACE_WINDOW
#define HW_PLACE_WINDOW() ((void)0) /* a test has other threads come in between here */
#endif

#define REGION_SHIFT HW_PLACE_REGION_SHIFT
#define BIG_MOST     HW_PLACE_BIG_MOST

/* ---- usable sizes ---- */

struct extent {
    uint64_t usable;
    bool ask;      /* others of this size have another one */
    bool unmapped; /* a free gives the memory back to the system */
};

/* What the allocator says of the block at ADDRESS; 0: of one that it hands out for SIZE, and is given back. It may
 * allocate on the way: that is its own business. */
static uint64_t ask(uintptr_t address, uint64_t size)
{
    struct hw_operator *op = hw_operator_self;
    const uint8_t inside = op ? op->selector : 0;
    if (op)
        op->selector = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    void *block = address ? (void *)address : hw_real.malloc(size);
    uint64_t usable = block && hw_real.tells_usable ? hw_real.malloc_usable_size(block) : 0;
    if (!address)
        hw_real.free(block);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (op)
        op->selector = inside;
    if (usable < size || usable > 2 * size + (64 << 20)) /* not a block of that allocator itself */
        usable = size;
    return usable ? HW_ALIGN_UP(usable, 8) : 8;
}

static struct extent extent_of(uintptr_t address, uint64_t size, bool odd_one)
{
    struct extent extent = {0};
    if (hw_places.glibc) {
        uint64_t header = *(const uint64_t *)(address - 8);
        extent.unmapped = header & 2;
        extent.usable = (header & ~7ul) - (extent.unmapped ? 16 : 8);
        if (extent.usable < size || extent.usable >> HW_ARCH_ADDRESS_BITS)
            extent.usable = HW_ALIGN_UP(size, 8);
        return extent;
    }
    if (size >= HW_PLACE_BIG_BYTES) {
        extent.usable = ask(address, size);
        return extent;
    }
    uint64_t known = hw_places.units[size] * 8ul;
    if (!known && !odd_one) {
        known = ask(address, size);
        hw_places.units[size] = (uint16_t)(known / 8 > UINT16_MAX ? 0 : known / 8);
    }
    extent.usable = odd_one ? ask(address, size) : known;
    if (odd_one && extent.usable < 64) { /* too small to hold its size in another form: it counts as the others do */
        if (!known)
            known = ask(0, size);
        hw_places.units[size] = (uint16_t)(known / 8);
        extent.usable = known;
    }
    extent.ask = extent.usable != known;
    return extent;
}

/* By the planes alone: the block's memory may be somebody else's by now, or unmapped. */
static uint64_t usual_extent(uint64_t size)
{
    if (hw_places.glibc)
        return size <= 24 ? 24 : HW_ALIGN_UP(size + 8, 16) - 8;
    const uint64_t known = size < HW_PLACE_BIG_BYTES ? hw_places.units[size] * 8ul : 0;
    return known ? known : HW_ALIGN_UP(size, 8);
}

/* ---- payloads: four bits in each byte behind the first ---- */

static void put_payload(uint8_t *byte, unsigned count, uint64_t value)
{
    for (unsigned i = 1; i <= count; i++, value >>= 4)
        byte[i] = (uint8_t)((byte[i] & HW_PLACE_BEGUN) | HW_PLACE_BODY | (value & 15));
}

/* Of a MARK, the eight bytes from a block's first on. */
static uint64_t payload(uint64_t mark, unsigned count)
{
    uint64_t value = 0;
    for (unsigned i = count; i; i--)
        value = value << 4 | (mark >> i * 8 & 15);
    return value;
}

/* The same for blocks that own 8 bytes of a plane: 20 bits, in and out of the word that begins with the block's byte.
 */
#define PAYLOAD_BEGUN 0x2020202020202000ul
#define PAYLOAD_BODY  0x0000404040404000ul

static inline uint64_t spread(uint64_t value)
{
    uint64_t low = value & 0xffff;
    low = (low | low << 8) & 0x00ff00ff;
    low = (low | low << 4) & 0x0f0f0f0f;
    return low << 8 | (value >> 16 & 15) << 40;
}

static inline uint64_t gather(uint64_t word)
{
    uint64_t low = word >> 8 & 0x0f0f0f0f;
    low = (low | low >> 4) & 0x00ff00ff;
    low = (low | low >> 8) & 0xffff;
    return low | (word >> 40 & 15) << 16;
}

static bool is_mid(uint32_t code)
{
    return code >= HW_PLACE_SLACK && code <= HW_PLACE_SLACK + HW_PLACE_SLACK_MOST;
}

/* How a live block that is not big is written down. */
static uint32_t code_of(uint64_t usable, uint64_t size)
{
    if (usable <= HW_PLACE_SHORT_UNITS * 8)
        return (uint32_t)size;
    return usable <= HW_PLACE_MID_UNITS * 8 && usable - size <= HW_PLACE_SLACK_MOST
               ? HW_PLACE_SLACK + (uint32_t)(usable - size)
               : HW_PLACE_LONG;
}

/* The first byte of a free block that is not big, without HW_PLACE_BEGUN. */
static uint32_t free_code_of(uint32_t units)
{
    return units <= HW_PLACE_SHORT_UNITS ? units : units <= HW_PLACE_MID_UNITS ? HW_PLACE_FREE_MID : HW_PLACE_FREE_LONG;
}

/* Bytes of payload of a live block: one that is neither short nor long has 8 bits of its usable size, a long one 16
 * bits of its size and 4 of untouched pages, one that is asked for 8 bits of its size, if it is short, and a big one
 * the 32 bits of its entry's number. */
static unsigned payload_bytes(uint32_t code, uint64_t size)
{
    return is_mid(code)            ? 2
           : code == HW_PLACE_BIG  ? 8
           : code == HW_PLACE_LONG ? 5
           : code != HW_PLACE_ASK  ? 0
           : size < 256            ? 3
                                   : 5;
}

/* ---- parts of the address space ---- */

#define REGION     ((uintptr_t)HW_PLACE_BIG_BYTES)
#define AREA_SHIFT HW_PLACE_AREA_SHIFT
#define AREA       (1ul << AREA_SHIFT)

/* The part of [low, end) that begins at LOW: a whole area, or what lies in one region. */
struct part {
    uintptr_t low, end;
    bool whole;                     /* an area, or all of a region */
    struct hw_place_area *area;     /* in which it lies */
    struct hw_place_region *region; /* NULL: it is the area */
};

static inline struct part part_of(uintptr_t low, uintptr_t end)
{
    struct part part = {.low = low, .area = &hw_places.areas[low >> AREA_SHIFT]};
    const bool area = !(low & (AREA - 1)) && end - low >= AREA;
    const uintptr_t next = area ? low + AREA : (low | (REGION - 1)) + 1;
    part.whole = next <= end && !(low & (REGION - 1));
    part.end = next < end ? next : end;
    part.region = area ? NULL : &hw_places.regions[low >> REGION_SHIFT];
    return part;
}

/* The parts of [START, END) from the first begin of a region on. */
#define EACH_PART_BEHIND(part, start, stop)                                                                            \
    for (struct part part = {.end = ((start) | (REGION - 1)) + 1};                                                     \
         part.end < (stop) && (part = part_of(part.end, stop), true);)

/* Whose big block, live or free, covers the begin of the region; 0: none's. */
static inline uint32_t big_at(uintptr_t address)
{
    const uint32_t index = hw_places.areas[address >> AREA_SHIFT].big;
    return index ? index : hw_places.regions[address >> REGION_SHIFT].big;
}

/* ---- big blocks ---- */

static uint32_t take_big(struct hw_place_thread *self)
{
    uint32_t index = self->big_free;
    if (index) {
        self->big_free = hw_places.bigs[index].next_free;
        return index;
    }
    index = __atomic_fetch_add(&hw_places.bigs_used, 1, __ATOMIC_RELAXED);
    return index < BIG_MOST ? index : 0;
}

static void put_big(struct hw_place_thread *self, uint32_t index)
{
    struct hw_place_big *big = &hw_places.bigs[index];
    EACH_PART_BEHIND(part, big->address, big->address + big->usable)
    {
        uint32_t *where = part.region ? &part.region->big : &part.area->big;
        if (*where == index)
            *where = 0;
    }
    __atomic_store_n(&big->address, 0, __ATOMIC_RELEASE);
    big->next_free = self->big_free;
    self->big_free = index;
}

/* ---- blocks as the planes have them ---- */

static uint8_t *byte_of(uintptr_t address)
{
    return hw_place_byte(address);
}

struct mark {
    uint8_t bytes[8];
};

struct found {
    struct hw_place place;
    uint64_t mark;        /* its byte and those that follow, as they were read: all at once */
    uint32_t code, index; /* index: of its entry, if it is big */
    uint64_t untouched;   /* bytes */
    bool unmapped;
};

/* A live block, or one that is listed as free. */
static inline bool begins(uint8_t value)
{
    return (value & HW_PLACE_START) || (!(value & HW_PLACE_BODY) && (value & HW_PLACE_FREE_LONG));
}

#define BIG_PAYLOAD 7u /* bytes that say which entry */

static inline uint64_t read_mark(const uint8_t *byte)
{
    uint64_t mark;
    __asm__ volatile("movq %1, %0" : "=r"(mark) : "m"(*(const struct mark *)byte)); /* in one instruction */
    return mark;
}

/* Whether something is known to begin at ADDRESS, live or listed as free. DEEP: with what only the allocator knows of
 * live blocks, the caller's alone; without, nothing but the planes is read. */
static bool look(uintptr_t address, struct found *found, bool deep)
{
    const uint64_t mark = read_mark(byte_of(address));
    const uint32_t value = mark & 0xff;
    *found = (struct found){.place = {.start = address}, .mark = mark};
    struct hw_place *place = &found->place;
    HW_PLACE_WINDOW();
    if (value & HW_PLACE_START) {
        place->live = true;
        found->code = value & 0x7f;
        bool by_size = found->code == HW_PLACE_ASK && payload(mark, 1) != 15;
        if (found->code == HW_PLACE_BIG)
            found->index = (uint32_t)payload(mark, BIG_PAYLOAD);
        else if (found->code == HW_PLACE_LONG)
            place->requested = payload(mark, 4);
        else if (found->code == HW_PLACE_ASK) /* the first four bits say which of the two */
            place->requested = payload(mark, by_size ? 3 : 5) >> 4;
        else if (!is_mid(found->code))
            place->requested = found->code;
        if (is_mid(found->code)) {
            place->usable = payload(mark, 2) * 8;
            place->requested = place->usable - (found->code - HW_PLACE_SLACK);
        } else if (!deep) {
            place->usable = place->requested;
        } else if (found->code == HW_PLACE_ASK) {
            place->usable = ask(address, place->requested);
        } else if (found->code != HW_PLACE_BIG) {
            struct extent extent = extent_of(address, place->requested, false);
            place->usable = extent.usable;
            found->unmapped = extent.unmapped;
        }
        if (found->code == HW_PLACE_LONG)
            found->untouched = payload(mark, 5) >> 16 << 12;
    } else if (!(value & HW_PLACE_BODY) && (value & 31)) {
        found->code = value & 31;
        if (found->code == HW_PLACE_FREE_BIG)
            found->index = (uint32_t)payload(mark, BIG_PAYLOAD);
        else if (found->code == HW_PLACE_FREE_MID) {
            place->usable = payload(mark, 2) * 8;
        } else if (found->code == HW_PLACE_FREE_LONG) {
            place->usable = payload(mark, 4) * 8;
            found->untouched = payload(mark, 5) >> 16 << 12;
        } else {
            place->usable = found->code * 8;
        }
    } else {
        return false;
    }
    if (found->index) {
        const struct hw_place_big *big = &hw_places.bigs[found->index < BIG_MOST ? found->index : 0];
        if (big->address != address) /* it has just become another one's */
            return false;
        place->usable = big->usable;
        place->requested = place->live ? big->requested : 0;
        found->untouched = (big->usable - big->touched) & ~(HW_PAGE - 1);
        if (place->live && deep && hw_places.glibc)
            found->unmapped = *(const uint64_t *)(address - 8) & 2;
    }
    return true;
}

/* ---- counters ---- */

static struct hw_place_class_counts *class_of(struct hw_place_thread *self, uint64_t usable)
{
    return &self->classes[hw_place_class(usable)];
}

static bool is_wide(const struct hw_place_thread *self, const struct hw_place_class_counts *class)
{
    return class > &self->classes[HW_PLACE_EXACT];
}

static void settle_before(struct hw_place_thread *self, struct hw_place_class_counts *class)
{
    if (hw_place_leaves_limits(self, class))
        hw_place_settle(self, class);
    hw_place_keep(self, class);
}

static void settle_after(struct hw_place_thread *self, struct hw_place_class_counts *class)
{
    if (class->now.live > class->high || self->requested > self->high)
        hw_place_settle(self, class);
}

/* With several threads: a thread that frees a long block may do nothing more for a while, and what it has is added to
 * what others have. With one limits below are out of reach. */
static inline void settle_freed(struct hw_place_thread *self, struct hw_place_class_counts *class)
{
    if (hw_unlikely(self->requested < self->low))
        hw_place_settle(self, class);
}

static void count_free(struct hw_place_thread *self, const struct found *found)
{
    struct hw_place_class_counts *class = class_of(self, found->place.usable);
    settle_before(self, class);
    hw_place_add(&class->now.live, -1);
    hw_place_add(&class->now.requested, -(int64_t)found->place.requested);
    hw_place_add(&self->requested, -(int64_t)found->place.requested);
    if (is_wide(self, class)) {
        hw_place_add(&class->now.usable, -(int64_t)found->place.usable);
        hw_place_add(&class->now.untouched, -(int64_t)found->untouched);
    }
    settle_freed(self, class);
}

/* A free block that leaves the list. AGAIN: its memory goes to a block of the same class at the same address. */
static void count_taken(struct hw_place_thread *self, const struct found *found, bool again)
{
    struct hw_place_class_counts *class = class_of(self, found->place.usable);
    hw_place_keep(self, class);
    if (!again)
        hw_place_add(&class->now.taken, 1);
    if (is_wide(self, class))
        hw_place_add(&class->now.free_bytes, -(int64_t)found->place.usable);
}

/* ---- freeing ---- */

/* The live block is one no more; it is in the list of free ones if LISTED. */
static void release(struct hw_place_thread *self, const struct found *found, bool listed)
{
    const struct hw_place *place = &found->place;
    uint8_t *byte = byte_of(place->start);
    count_free(self, found);
    if (found->code != HW_PLACE_BIG)
        put_payload(byte, payload_bytes(found->code, place->requested), 0);
    if (found->code == HW_PLACE_BIG) {
        if (listed) {
            hw_places.bigs[found->index].live = 0;
            put_payload(byte, 8, found->index);
            *byte = HW_PLACE_BEGUN | HW_PLACE_FREE_BIG;
        } else {
            put_payload(byte, 8, 0);
            *byte = HW_PLACE_BEGUN;
            put_big(self, found->index);
        }
    } else if (!listed) {
        *byte = HW_PLACE_BEGUN;
    } else if (place->usable <= HW_PLACE_MID_UNITS * 8) {
        const uint32_t units = (uint32_t)(place->usable + 7) >> 3;
        put_payload(byte, units > HW_PLACE_SHORT_UNITS ? 2 : 0, units);
        *byte = (uint8_t)(HW_PLACE_BEGUN | free_code_of(units));
    } else {
        put_payload(byte, 5, (place->usable >> 3 & 0xffff) | found->untouched >> 12 << 16);
        *byte = HW_PLACE_BEGUN | HW_PLACE_FREE_LONG;
    }
    struct hw_place_class_counts *class = class_of(self, place->usable);
    if (!listed)
        hw_place_add(&class->now.taken, 1);
    else if (is_wide(self, class))
        hw_place_add(&class->now.free_bytes, (int64_t)place->usable);
}

/* A usual block that the first byte cannot hold: long, or its usable size is. False: it is not that simple. */
static inline bool free_long(struct hw_place_thread *self, uintptr_t address, size_t *size)
{
    uint8_t *byte = byte_of(address);
    uint64_t word;
    if (*byte != (HW_PLACE_START | HW_PLACE_LONG))
        return false;
    __builtin_memcpy(&word, byte, 8);
    const uint64_t value = gather(word), requested = value & 0xffff;
    if (hw_places.glibc && (*(const uint64_t *)(address - 8) & 2))
        return false;
    const uint32_t units = hw_place_units(address, requested);
    if (hw_unlikely(units < 16 || units >= HW_PLACE_BIG_BYTES / 8))
        return false;
    struct hw_place_class_counts *class = class_of(self, units * 8ul);
    settle_before(self, class);
    word = (word & PAYLOAD_BEGUN) | PAYLOAD_BODY | spread(units | value >> 16 << 16) | HW_PLACE_BEGUN |
           free_code_of(units);
    __builtin_memcpy(byte, &word, 8);
    hw_place_add(&class->now.live, -1);
    hw_place_add(&class->now.requested, -(int64_t)requested);
    hw_place_add(&self->requested, -(int64_t)requested);
    if (is_wide(self, class)) {
        hw_place_add(&class->now.usable, -(int64_t)(units * 8ul));
        hw_place_add(&class->now.untouched, -(int64_t)(value >> 16 << 12));
        hw_place_add(&class->now.free_bytes, (int64_t)(units * 8ul));
    }
    settle_freed(self, class);
    *size = requested;
    return true;
}

/* A long block where one of the same usable size was. False: it is something else, nothing was done. */
static inline bool allocate_long(struct hw_place_thread *self, uintptr_t address, size_t size)
{
    if (size >= HW_PLACE_BIG_BYTES)
        return false;
    const uint32_t units = hw_place_units(address, size);
    if (units < 16 || units >= HW_PLACE_BIG_BYTES / 8 || units * 8ul < size ||
        code_of(units * 8ul, size) != HW_PLACE_LONG || (hw_places.glibc && (*(const uint64_t *)(address - 8) & 2)))
        return false;
    uint8_t *byte = byte_of(address);
    uint64_t word, untouched = (units * 8ul - size) >> 12;
    __builtin_memcpy(&word, byte, 8);
    if ((word & 0xff) != (HW_PLACE_BEGUN | free_code_of(units)))
        return false;
    const uint64_t value = gather(word);
    if (units <= HW_PLACE_MID_UNITS) {
        if ((value & 0xff) != units)
            return false;
    } else {
        if ((value & 0xffff) != units)
            return false;
        untouched = untouched < value >> 16 ? untouched : value >> 16;
    }
    word = (word & PAYLOAD_BEGUN) | PAYLOAD_BODY | spread(size | untouched << 16) | HW_PLACE_START | HW_PLACE_LONG;
    const uintptr_t last = address + size - (size != 0);
    __builtin_memcpy(byte, &word, 8);
    struct hw_place_class_counts *class = class_of(self, units * 8ul);
    hw_place_keep(self, class);
    hw_place_add(&class->now.live, 1);
    hw_place_add(&class->now.requested, (int64_t)size);
    hw_place_add(&class->now.again, 1);
    hw_place_add(&self->requested, (int64_t)size);
    if (is_wide(self, class)) {
        hw_place_add(&class->now.usable, (int64_t)(units * 8ul));
        hw_place_add(&class->now.untouched, (int64_t)(untouched << 12));
        hw_place_add(&class->now.free_bytes, -(int64_t)(units * 8ul));
    }
    settle_after(self, class);
    if (hw_unlikely(hw_places.many) && (!hw_place_owned(self, address) || !hw_place_owned(self, last)))
        hw_place_lines(self, address, last, true);
    return true;
}

static __attribute__((noinline)) size_t freed_otherwise(struct hw_place_thread *self, uintptr_t address)
{
    struct found found;
    if (!look(address, &found, true))
        return SIZE_MAX;
    release(self, &found, !found.unmapped);
    return found.place.requested;
}

size_t hw_place_freed_slow(struct hw_operator *op, uintptr_t address)
{
    struct hw_place_thread *self = op->places;
    size_t size;
    if (!self || (address & 7) || address >> HW_ARCH_ADDRESS_BITS || !(*byte_of(address) & HW_PLACE_START))
        return SIZE_MAX;
    if (free_long(self, address, &size) || (size = hw_place_given_back(self, address, true)) != SIZE_MAX)
        return size;
    return freed_otherwise(self, address);
}

/* ---- handing out ---- */

/* Puts VALUE in the place of *OLD; on mismatch it returns false and stores the current value in *OLD. With one thread
 * it need only be one instruction, for signal handlers. */
#define REPLACE(suffix)                                                                                                \
    (hw_places.many ? __atomic_compare_exchange_n(where, old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) : ({   \
        bool done;                                                                                                     \
        __asm__("cmpxchg" suffix " %3, %1\n\tsete %0" : "=q"(done), "+m"(*where), "+a"(*old) : "q"(value) : "cc");     \
        done;                                                                                                          \
    }))
static inline bool replace_8(uint8_t *where, uint8_t *old, uint8_t value)
{
    return REPLACE("b");
}

static inline bool replace_64(uint8_t *where, uint64_t old, uint64_t value)
{
    bool done;
    __asm__ volatile("lock cmpxchgq %3, %1\n\tsete %0"
                     : "=q"(done), "+m"(*(struct mark *)where), "+a"(old)
                     : "r"(value)
                     : "cc");
    return done;
}

static inline bool replace_16(uint16_t *where, uint16_t *old, uint16_t value)
{
    return REPLACE("w");
}

/* The bytes of a mark that say what the block is. */
static uint64_t mark_bytes(const struct found *found)
{
    const bool live = found->place.live;
    const uint32_t code = found->code;
    const unsigned payload = code == (live ? HW_PLACE_BIG : HW_PLACE_FREE_BIG) ? BIG_PAYLOAD
                             : live                       ? payload_bytes(code, found->place.requested)
                             : code == HW_PLACE_FREE_LONG ? 5
                             : code == HW_PLACE_FREE_MID  ? 2
                                                          : 0;
    return payload == 7 ? UINT64_MAX : (1ul << (payload + 1) * 8) - 1;
}

/* Nothing begins there any more: false if it is another mark by now. One of several threads compares all of it, since
 * the first byte alone may be the same again when the block has been handed out and freed; but where it lies on two
 * lines of the cache, on which no instruction works at once. */
static bool take_mark(const struct found *found)
{
    uint8_t *byte = byte_of(found->place.start), old = (uint8_t)found->mark;
    const uint64_t ours = mark_bytes(found);
    HW_PLACE_WINDOW();
    if (!hw_places.many)
        return replace_8(byte, &old, HW_PLACE_BEGUN);
    for (;;) {
        uint64_t mark = read_mark(byte);
        if ((mark ^ found->mark) & ours)
            return false;
        if (((uintptr_t)byte & 63) > 64 - sizeof mark)
            return replace_8(byte, &old, HW_PLACE_BEGUN);
        if (replace_64(byte, mark, (mark & ~0xfful) | HW_PLACE_BEGUN))
            return true;
    }
}

/* What is known of FOUND gives way to a new block. AGAIN: as of count_taken. KEEP: its entry is used again. False:
 * another thread was faster. The allocator has split a free block, say, and both were given a part: the one with the
 * begin may have written its own byte by now. */
static bool give_way(struct hw_place_thread *self, struct found *found, bool again, bool keep)
{
    if (!take_mark(found))
        return false;
    if (found->place.live) {
        if (found->code != HW_PLACE_BIG && !is_mid(found->code))
            found->place.usable = usual_extent(found->place.requested);
        self->events.unseen++;
        hw_operation_given_back(self->op, found->place.requested);
        release(self, found, false);
        return true;
    }
    count_taken(self, found, again);
    if (found->code == HW_PLACE_FREE_BIG && !keep)
        put_big(self, found->index);
    return true;
}

/* Bit 7 of each byte of eight in which a block, live or listed, begins: begins() of all of them. */
static inline uint64_t begins_in(const uint8_t *bytes)
{
    uint64_t word;
    __builtin_memcpy(&word, bytes, 8);
    const uint64_t free = (word & 0x1f1f1f1f1f1f1f1ful) + 0x1f1f1f1f1f1f1f1ful; /* bit 5: if any of these is set */
    return (word | (free << 2 & ~word << 1)) & 0x8080808080808080ul;
}

/* All that begins in bytes [from, end) of a plane gives way. ODD: 8 for the odd plane. */
static void sweep(struct hw_place_thread *self, uintptr_t odd, uintptr_t from, uintptr_t end)
{
    const uint8_t *plane = byte_of(odd);
    struct found found;
    for (; from < end; from += 8) {
        uint64_t begin = begins_in(plane + from);
        if (end - from < 8)
            begin &= (1ul << (end - from) * 8) - 1;
        for (; begin; begin &= begin - 1)
            if (look(((from + ((uintptr_t)__builtin_ctzl(begin) >> 3)) << 4) + odd, &found, false))
                give_way(self, &found, false, false);
    }
}

/* All that begins in [low, high) of one region gives way. */
static void sweep_region(struct hw_place_thread *self, uintptr_t low, uintptr_t high)
{
    const struct hw_place_region *region = &hw_places.regions[low >> REGION_SHIFT];
    const uintptr_t farthest = (low & ~(REGION - 1)) + (uintptr_t)region->high * 16;
    high = high > farthest ? farthest : high;
    if (low >= high)
        return;
    sweep(self, 0, (low + 15) >> 4, (high + 15) >> 4);
    if (region->odd)
        sweep(self, 8, (low + 7) >> 4, (high + 7) >> 4);
}

/* All that begins in [start, end) gives way. What the new block covers wholly is marked in no way afterwards. */
static void sweep_extent(struct hw_place_thread *self, uintptr_t start, uintptr_t end)
{
    const uintptr_t next = (start | (REGION - 1)) + 1;
    sweep_region(self, start, next < end ? next : end);
    EACH_PART_BEHIND(part, start, end)
    {
        for (uintptr_t low = part.low; (part.region || part.area->used) && low < part.end; low += REGION) {
            struct hw_place_region *region = &hw_places.regions[low >> REGION_SHIFT];
            sweep_region(self, low, part.region ? part.end : low + REGION);
            if (part.whole)
                region->high = 0;
        }
        if (!part.region)
            part.area->used = 0;
    }
}

/* The nearest begin of a live or listed block before ADDRESS in a plane, as far as one that is not big can reach; 0. */
static uintptr_t nearest_before(uintptr_t address, uintptr_t odd)
{
    const uint8_t *plane = byte_of(odd);
    const uintptr_t farthest = address > HW_PLACE_BIG_BYTES ? (address - HW_PLACE_BIG_BYTES) >> 4 : 0;
    uintptr_t at = ((address + (odd ? 7 : 15)) >> 4) - 1;
    while (at > farthest) {
        if (at - farthest >= 8) {
            const uint64_t begin = begins_in(plane + at - 7);
            if (begin)
                return ((at - ((uintptr_t)__builtin_clzl(begin) >> 3)) << 4) + odd;
            at -= 8;
            continue;
        }
        if (begins(plane[at]))
            return (at << 4) + odd;
        at--;
    }
    return 0;
}

static bool covers(const struct found *found, uintptr_t address)
{
    return found->place.start < address && found->place.start + found->place.usable > address;
}

/* The block, live or listed, that began before ADDRESS and reaches beyond it. */
static bool look_before(uintptr_t address, struct found *found)
{
    const struct hw_place_region *region = &hw_places.regions[address >> REGION_SHIFT];
    const uint32_t index = big_at(address);
    if (index && index < BIG_MOST && look(hw_places.bigs[index].address, found, false) && covers(found, address))
        return true;
    const bool alone = !region->high || (address & (REGION - 1)) == 0;
    if (alone && address >= REGION && region[-1].high < REGION / 16)
        return false; /* nothing else reaches into this region */
    uintptr_t start = nearest_before(address, 0), other = hw_places.odd_used ? nearest_before(address, 8) : 0;
    start = other > start ? other : start;
    return start && look(start, found, false) && covers(found, address);
}

bool hw_place_at(uintptr_t address, struct hw_place *place)
{
    struct found found;
    if (!hw_places.even || address >> HW_ARCH_ADDRESS_BITS)
        return false;
    const uintptr_t unit = address & ~7ul;
    bool here = look(unit, &found, false) || look_before(unit, &found);
    *place = found.place;
    return here;
}

void hw_places_each(uintptr_t start, uintptr_t end, void (*each)(void *closure, const struct hw_place *place),
                    void *closure)
{
    struct found found;
    for (uintptr_t at = start >> 4; at << 4 < end; at++) {
        if (!begins_in(hw_places.even + at) && (!hw_places.odd_used || !begins_in(byte_of(8) + at))) {
            at += 7;
            continue;
        }
        for (uintptr_t odd = 0; odd <= (hw_places.odd_used ? 8 : 0); odd += 8) {
            const uintptr_t address = (at << 4) + odd;
            if (address >= start && address < end && begins(*byte_of(address)) && look(address, &found, false))
                each(closure, &found.place);
        }
    }
}

bool hw_places_none(uintptr_t start, uintptr_t end)
{
    if ((start & (REGION - 1)) >> 4 < hw_places.regions[start >> REGION_SHIFT].high || big_at(start))
        return false;
    EACH_PART_BEHIND(part, start, end)
    if (part.area->big || (part.region ? part.region->high || part.region->big : part.area->used))
        return false;
    return true;
}

#define AHEAD 16u

/* The first block comes into REGION: its page of the plane, and those of some regions behind it if this is a heap that
 * grows, are made now. Later they would take two page faults each, one to look and one to write. */
static __attribute__((noinline)) void enter_region(struct hw_place_region *region)
{
    const uintptr_t index = (uintptr_t)(region - hw_places.regions);
    const uint32_t pages = index && region[-1].high && (index + AHEAD) * HW_PAGE <= hw_places.granules ? AHEAD : 1;
    if (region->made)
        return;
    if (!hw_quiet)
        hw_madvise(hw_places.even + index * HW_PAGE, pages * HW_PAGE, MADV_POPULATE_WRITE);
    for (uint32_t i = 0; i < pages; i++)
        region[i].made = 1;
}

static void raise_region(struct hw_place_region *region, uintptr_t bytes)
{
    const uint16_t high = (uint16_t)((bytes + 15) / 16);
    uint16_t old = __atomic_load_n(&region->high, __ATOMIC_RELAXED);
    if (!old && high < REGION / 16) /* others may begin behind it, or it began here */
        enter_region(region);
    while (old < high && !replace_16(&region->high, &old, high))
        ;
}

static inline void use_area(uintptr_t address)
{
    struct hw_place_area *area = &hw_places.areas[address >> AREA_SHIFT];
    if (!area->used)
        area->used = 1;
}

/* Regions and areas learn of the block from START to END; BIG: its entry, or 0. */
static void note_regions(uintptr_t start, uintptr_t end, uint32_t big)
{
    struct hw_place_region *region = &hw_places.regions[start >> REGION_SHIFT];
    const uintptr_t low = start & ~(REGION - 1);
    if ((start & 8) && !region->odd)
        region->odd = hw_places.odd_used = 1;
    raise_region(region, end - low < REGION ? end - low : REGION);
    use_area(start);
    EACH_PART_BEHIND(part, start, end)
    {
        if (!part.region) {
            part.area->big = big;
            continue;
        }
        if (!part.whole || !big)
            raise_region(part.region, part.end - part.low);
        if (big)
            part.region->big = big;
        use_area(part.low);
    }
}

/* What began before ADDRESS and reaches beyond it gives way. That may be another thread's block by now, which is just
 * being marked: a live one that has to go was freed in some other way, and stays as it is when its mark is read again.
 */
static void leave_before(struct hw_place_thread *self, uintptr_t address)
{
    struct found found, later;
    if (!look_before(address, &found))
        return;
    for (unsigned i = 0; hw_places.many && found.place.live && i < 64; i++)
        hw_arch_pause();
    if (!hw_places.many || !found.place.live ||
        (look_before(address, &later) && later.place.start == found.place.start && later.mark == found.mark))
        give_way(self, &found, false, false);
}

/* Makes room for the block; true: a free one of the same class was at the same address. *KEPT: its entry, which serves
 * again. TOUCHED is raised to what was asked for there before. */
static bool make_room(struct hw_place_thread *self, uintptr_t address, uint64_t usable, uint32_t *kept,
                      uint64_t *touched)
{
    struct found found;
    uintptr_t clear = address;
    bool again = false;
    if (look(address, &found, false)) {
        const bool same = !found.place.live && found.place.usable == usable;
        again = !found.place.live && hw_place_class(found.place.usable) == hw_place_class(usable);
        if (give_way(self, &found, again, same)) {
            *kept = same ? found.index : 0;
            if (same && *touched < usable - found.untouched)
                *touched = usable - found.untouched;
        } else {
            again = false;
        }
        clear = address + HW_ALIGN_UP(found.place.usable, 8) - 8;
    } else {
        leave_before(self, address);
    }
    if (clear + 8 < address + usable)
        sweep_extent(self, clear + 8, address + usable);
    return again;
}

static __attribute__((noinline)) bool allocated_otherwise(struct hw_place_thread *self, uintptr_t address, size_t size,
                                                          bool aligned)
{
    if ((address & 7) || address >> HW_ARCH_ADDRESS_BITS || size >> HW_ARCH_ADDRESS_BITS) {
        self->events.odd++;
        return false;
    }
    const struct extent extent = extent_of(address, size, aligned);
    uint8_t *byte = byte_of(address);
    const bool reused = (*byte & HW_PLACE_START) || (*byte & HW_PLACE_BEGUN);
    uint64_t touched = size;
    uint32_t big = 0;
    bool again =
        !hw_places_none(address, address + extent.usable) && make_room(self, address, extent.usable, &big, &touched);
    uint32_t code = extent.ask ? HW_PLACE_ASK : code_of(extent.usable, size);
    const bool kept = big != 0; /* regions know of it already */
    if (extent.usable >= HW_PLACE_BIG_BYTES) {
        big = big ? big : take_big(self);
        if (!big) {
            self->events.odd++;
            return reused;
        }
        hw_places.bigs[big] = (struct hw_place_big){address, extent.usable, size, touched, 1, 0};
        code = HW_PLACE_BIG;
    }
    if (!kept)
        note_regions(address, address + extent.usable, big);
    const uint64_t untouched = (extent.usable - touched) & ~(HW_PAGE - 1);
    put_payload(byte, payload_bytes(code, size),
                is_mid(code)                         ? extent.usable >> 3
                : code == HW_PLACE_BIG               ? big
                : code == HW_PLACE_LONG              ? size | untouched >> 12 << 16
                : code == HW_PLACE_ASK && size > 255 ? size << 4 | 15
                                                     : size << 4);
    *byte = (uint8_t)(HW_PLACE_START | code);

    struct hw_place_class_counts *class = class_of(self, extent.usable);
    hw_place_keep(self, class);
    hw_place_add(&class->now.live, 1);
    hw_place_add(&class->now.requested, (int64_t)size);
    hw_place_add(again ? &class->now.again : reused ? &class->now.other : &class->now.fresh, 1);
    if (is_wide(self, class)) {
        hw_place_add(&class->now.usable, (int64_t)extent.usable);
        hw_place_add(&class->now.untouched, code == HW_PLACE_BIG || code == HW_PLACE_LONG ? (int64_t)untouched : 0);
    }
    hw_place_add(&self->requested, (int64_t)size);
    settle_after(self, class);
    if (hw_places.many)
        hw_place_lines(self, address, address + size - (size != 0), reused);
    return reused;
}

/* A block of up to HW_PLACE_MID_UNITS within its 64 KiB. False: it is something else, nothing was done. REUSED: a block
 * began there once. */
static inline bool allocate_small(struct hw_place_thread *self, uintptr_t address, size_t size, bool *reused)
{
    const uint32_t units = hw_place_units(address, size);
    const uintptr_t end = address + units * 8ul, last = address + size - (size != 0);
    if (units - 1 >= HW_PLACE_MID_UNITS || units * 8ul < size || (address & 8) ||
        ((address ^ (end - 1)) >> REGION_SHIFT))
        return false;
    const uint32_t code = code_of(units * 8ul, size);
    struct hw_place_region *region = &hw_places.regions[address >> REGION_SHIFT];
    const uint16_t high = (uint16_t)(((end - 1) & (HW_PLACE_BIG_BYTES - 1)) / 16 + 1);
    uint16_t old = __atomic_load_n(&region->high, __ATOMIC_RELAXED);
    if (code == HW_PLACE_LONG)
        return false;
    uint8_t *byte = byte_of(address);
    *reused = *byte & (HW_PLACE_START | HW_PLACE_BEGUN);
    bool again = false;
    uint32_t kept = 0;
    uint64_t touched = 0;
    if (!old) {
        enter_region(region);
        use_area(address);
    }
    if ((address & (REGION - 1)) / 16 < old || big_at(address))
        again = make_room(self, address, units * 8ul, &kept, &touched);
    while (old < high && !replace_16(&region->high, &old, high))
        ;
    if (is_mid(code))
        put_payload(byte, 2, units);
    *byte = (uint8_t)(HW_PLACE_START | code);
    struct hw_place_class_counts *class = &self->classes[units];
    hw_place_keep(self, class);
    hw_place_add(&class->now.live, 1);
    hw_place_add(&class->now.requested, (int64_t)size);
    hw_place_add(again ? &class->now.again : *reused ? &class->now.other : &class->now.fresh, 1);
    hw_place_add(&self->requested, (int64_t)size);
    settle_after(self, class);
    if (hw_unlikely(hw_places.many))
        hw_place_lines(self, address, last, *reused);
    return true;
}

bool hw_place_allocated_slow(struct hw_operator *op, uintptr_t address, size_t size, bool aligned)
{
    struct hw_place_thread *self = op->places;
    if (!self)
        return false;
    if (!aligned && address - 8 < 1ul << HW_ARCH_ADDRESS_BITS && !(address & 7)) {
        bool reused;
        if (size <= HW_SIZE_SMALL_MOST) {
            if (hw_place_again(self, address, size, true))
                return true;
            if (allocate_small(self, address, size, &reused))
                return reused;
        }
        if (allocate_long(self, address, size))
            return true;
    }
    return allocated_otherwise(self, address, size, aligned);
}
