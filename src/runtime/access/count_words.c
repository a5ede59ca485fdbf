/* count_words.c - the granule 4: which words of 4 bytes were used since the last sample (base/abi.h).
 *
 * A byte of shadow for each word: HW_ABI_RECENT, and seven bits of count that are the sampler's (word_cells.c). Marks
 * are set where they are not set yet; what is marked already is only read, so that its shadow stays clean in all
 * caches. Who marks is the plane's thread alone; the sampler changes the same bytes with compare-and-exchange, and
 * finds a mark sooner or later. */
#include "base/abi.h"
#include "runtime/access/count.h"

#define RECENTS 0x8080808080808080ull

typedef uint64_t cells_8 __attribute__((aligned(1), may_alias));
typedef char bytes16 __attribute__((vector_size(16), aligned(1), may_alias));

static __attribute__((noinline)) void mark_missing(uint8_t *cell, uint64_t words)
{
    for (; words >= 8; words -= 8, cell += 8)
        if ((*(const cells_8 *)cell & RECENTS) != RECENTS)
            *(cells_8 *)cell |= RECENTS;
    for (; words; words--, cell++)
        if (!(*cell & HW_ABI_RECENT))
            *cell |= HW_ABI_RECENT;
}

/* Nothing to do, most often. WORDS is not 0; up to 8 are tested by one load; of more the last load overlaps the one
 * before. */
static inline void mark(uint8_t *cell, uint64_t words)
{
    if (hw_likely(words <= 8)) {
        if (hw_unlikely(~*(const cells_8 *)cell & RECENTS >> (64 - 8 * words)))
            mark_missing(cell, words);
        return;
    }
    for (; words > 64; words -= 64, cell += 64) {
        const bytes16 *at = (const bytes16 *)cell;
        bytes16 all = at[0] & at[1] & at[2] & at[3];
        if (hw_unlikely(__builtin_ia32_pmovmskb128(all) != 0xffff))
            mark_missing(cell, 64);
    }
    uint64_t all = *(const cells_8 *)(cell + words - (words < 8 ? words : 8));
    if (words < 8)
        all |= ~(RECENTS >> (64 - 8 * words));
    for (uint64_t i = 0; i + 8 < words; i += 8)
        all &= *(const cells_8 *)(cell + i);
    if (hw_unlikely(~all & RECENTS))
        mark_missing(cell, words);
}

/* The words that BYTES bytes from ADDRESS reach into; BYTES is not 0. */
static inline void mark_bytes(uintptr_t plane, uint64_t address, uint64_t bytes, bool reads, bool writes)
{
    uint64_t last = address + bytes - 1;
    if (hw_unlikely(last < address))
        return;
    uint8_t *cell = (uint8_t *)(plane + (address >> 2));
    uint64_t words = (last >> 2) - (address >> 2) + 1;
    if (reads)
        mark(cell, words);
    if (writes)
        mark(cell + HW_ABI_WRITES_OFFSET, words);
}

/* One kind of access, of elements that lie apart. */
static void mark_each(uint8_t *plane, uint64_t address, uint64_t stride, uint64_t count, uint64_t bytes)
{
    for (; count; count--, address += stride) {
        uint64_t last = (address + bytes - 1) >> 2;
        for (uint64_t word = address >> 2; word <= last; word++)
            if (!(plane[word] & HW_ABI_RECENT))
                plane[word] |= HW_ABI_RECENT;
    }
}

HW_EXPORT void __heapwise_range_4(const void *start, int64_t stride, uint64_t count, uint64_t bytes, uint64_t kinds)
{
    uintptr_t plane = __heapwise_plane;
    if (hw_unlikely(!count || !bytes))
        return;
    uint64_t address = (uint64_t)start, last = address + (uint64_t)stride * (count - 1);
    if (stride < 0) {
        uint64_t lowest = last;
        last = address;
        address = lowest;
        stride = -stride;
    }
    if (hw_unlikely(last < address))
        return;
    if ((uint64_t)stride <= bytes || stride <= 4) { /* no word between is left out */
        mark_bytes(plane, address, last - address + bytes, kinds & HW_ABI_READS, kinds & HW_ABI_WRITES);
        return;
    }
    if (kinds & HW_ABI_READS)
        mark_each((uint8_t *)plane, address, (uint64_t)stride, count, bytes);
    if (kinds & HW_ABI_WRITES)
        mark_each((uint8_t *)(plane + HW_ABI_WRITES_OFFSET), address, (uint64_t)stride, count, bytes);
}

HW_EXPORT void __heapwise_touch_4(const void *start, uint64_t bytes, uint64_t reads, uint64_t writes)
{
    if (bytes)
        mark_bytes(__heapwise_plane, (uint64_t)start, bytes, reads, writes);
}

HW_EXPORT void __heapwise_copy_4(const void *destination, const void *source, uint64_t bytes)
{
    uintptr_t plane = __heapwise_plane;
    if (!bytes)
        return;
    mark_bytes(plane, (uint64_t)source, bytes, true, false);
    mark_bytes(plane, (uint64_t)destination, bytes, false, true);
}
