/* owned_blocks.c - blocks that own the cells their accesses are counted in, whatever the allocator.
 *
 * A cell stands for 64 bytes of memory. Where blocks lie closer than that, accesses to one would be counted for the
 * other. So a wrapper around the real allocator hands out addresses that are multiples of 32, with 32 bytes before each
 * that belong to no block of the program: then no 64 bytes hold parts of two blocks.
 *
 *   glibc     chunks have 8 bytes of header, their addresses are 16 modulo 32 as long as all sizes are multiples of 32:
 *
 *               chunk's header (16, the first 8 may be the end of the one before) | record (16) | block …
 *                                                                                  ^ raw         ^ raw + 16
 *
 *             A chunk at the other parity (the first of an arena) is made 16 bytes longer, which puts its successor
 *             right, and the block begins at raw + 32.
 *   others    48 bytes more are asked for, and the block begins at the first multiple of 32 from raw + 16 on; the last
 *             16 bytes stay unused, because the next block may begin right behind.
 *   aligned   up to 512: a block that begins somewhere in a longer one; how far is written before it. From 1024 on
 *             the allocator's own: such a block begins with a granule, and its record is in the table of blocks.c.
 *
 * hw_layout_map knows which addresses are blocks of the layout: everything else is passed on as it is, always. */
#include "runtime/access/counting.h"
#include "runtime/core/memory.h"
#include "runtime/hooks/hooks.h"
#include "runtime/stacks/stacks.h"

#define MAP_HINT     0x340000000000ul /* right behind the planes: see planes.c */
#define MAP_BYTES    (1ul << (HW_ARCH_ADDRESS_BITS - 6))
#define SELF_ALIGNED 1024u /* from this alignment on the allocator's own address serves */
#define SIZE_LIMIT   ((size_t)1 << 62)

uint8_t *hw_layout_map;
static struct hw_real inner; /* the real allocator */

static inline uintptr_t round_32(uintptr_t x)
{
    return (x + 31) & ~(uintptr_t)31;
}

static void copy_up(char *to, const char *from, size_t bytes) /* to > from, may overlap */
{
    while (bytes >= 8) {
        uint64_t word;
        bytes -= 8;
        __builtin_memcpy(&word, from + bytes, 8);
        __builtin_memcpy(to + bytes, &word, 8);
    }
    while (bytes--)
        to[bytes] = from[bytes];
}

static void copy_down(char *to, const char *from, size_t bytes) /* to < from, or apart */
{
    size_t i = 0;
    for (; i + 8 <= bytes; i += 8) {
        uint64_t word;
        __builtin_memcpy(&word, from + i, 8);
        __builtin_memcpy(to + i, &word, 8);
    }
    for (; i < bytes; i++)
        to[i] = from[i];
}

/* ---- from the allocator's block to the program's, and back ---- */

static inline void *dress(char *block, uint8_t kind)
{
    uintptr_t address = (uintptr_t)block;
    hw_layout_map[address >> 6] = (uint8_t)(kind | (address & 32 ? HW_LAYOUT_UPPER : 0));
    return block;
}

static inline char *raw_of(char *block, uint8_t byte)
{
    switch (byte & HW_LAYOUT_KIND) {
    case HW_LAYOUT_16:
        return block - 16;
    case HW_LAYOUT_32:
        return block - 32;
    default:
        return block - *(uint64_t *)(block - 32);
    }
}

/* Bytes of BLOCK that no other block's cells reach into. */
static size_t capacity(char *block, const char *raw)
{
    size_t unused = (size_t)(block - raw) + (inner.is_glibc ? 8 : 16);
    size_t usable = inner.malloc_usable_size ? inner.malloc_usable_size((void *)raw) : unused;
    return usable > unused ? usable - unused : 0;
}

static inline size_t request_for(size_t size)
{
    return inner.is_glibc ? round_32(32 + size) - 8 : size + 48;
}

/* A chunk of glibc at the wrong parity: 16 bytes longer. Most often that is done in place. */
static __attribute__((noinline)) void *dress_odd(char *raw, size_t request, bool zero)
{
    char *grown = inner.realloc(raw, request + 16);
    if (!grown) {
        inner.free(raw);
        return NULL;
    }
    for (size_t i = 0; zero && i < 16; i++)
        grown[request + i] = 0;
    return (uintptr_t)grown & 16 ? dress(grown + 16, HW_LAYOUT_16) : dress(grown + 32, HW_LAYOUT_32);
}

static inline void *allocate(size_t size, bool zero)
{
    if (hw_unlikely(size >= SIZE_LIMIT))
        return inner.malloc(size); /* fails there, with the right errno */
    if (hw_unlikely(!size))
        size = 1;
    size_t request = request_for(size);
    char *raw = zero ? inner.calloc(1, request) : inner.malloc(request);
    if (hw_unlikely(!raw))
        return NULL;
    if (hw_likely((uintptr_t)raw & 16))
        return dress(raw + 16, HW_LAYOUT_16);
    if (inner.is_glibc)
        return dress_odd(raw, request, zero);
    return (uintptr_t)raw & 15 ? raw : dress(raw + 32, HW_LAYOUT_32);
}

static void *allocate_aligned(size_t alignment, size_t size)
{
    if (alignment <= 32)
        return allocate(size, false);
    if (size >= SIZE_LIMIT || alignment >= SIZE_LIMIT)
        return inner.memalign(alignment, size);
    if (alignment >= SELF_ALIGNED) {
        size_t bytes = inner.is_glibc ? round_32(32 + size) + 8 : size + 32;
        char *block = inner.memalign(alignment, bytes);
        if (block)
            hw_layout_map[(uintptr_t)block >> 6] = HW_LAYOUT_OWN;
        return block;
    }
    size_t bytes = size + alignment + 64;
    char *raw = inner.malloc(inner.is_glibc ? round_32(bytes) - 8 : bytes);
    if (!raw)
        return NULL;
    char *block = (char *)HW_ALIGN_UP((uintptr_t)raw + 32, alignment);
    *(uint64_t *)(block - 32) = (uint64_t)(block - raw);
    return dress(block, HW_LAYOUT_FAR);
}

/* ---- the functions that stand in hw_real ---- */

static void *layout_malloc(size_t size)
{
    return allocate(size, false);
}

static void *layout_calloc(size_t count, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? inner.calloc(count, size) : allocate(bytes, true);
}

static void layout_free(void *pointer)
{
    uint8_t *byte = hw_layout_of(pointer);
    if (hw_likely(byte != NULL)) {
        char *raw = raw_of(pointer, *byte);
        *byte = 0;
        inner.free(raw);
        return;
    }
    hw_layout_forget_own(pointer);
    inner.free(pointer);
}

static void *move_to_new(char *block, size_t old_capacity, size_t size)
{
    char *fresh = allocate(size, false);
    if (!fresh)
        return NULL;
    copy_down(fresh, block, old_capacity < size ? old_capacity : size);
    layout_free(block);
    return fresh;
}

/* RAW is a block of the allocator that was reallocated: its contents begin DISTANCE bytes behind. */
static void *dress_again(char *raw, size_t distance, size_t request, size_t bytes)
{
    size_t now = (uintptr_t)raw & 16 ? 16 : 32;
    if (inner.is_glibc && now == 32 && distance == 16 && !(raw = inner.realloc(raw, request + 16)))
        return NULL;
    now = (uintptr_t)raw & 16 ? 16 : 32;
    if (now > distance)
        copy_up(raw + now, raw + distance, bytes);
    else if (now < distance)
        copy_down(raw + now, raw + distance, bytes);
    return dress(raw + now, now == 16 ? HW_LAYOUT_16 : HW_LAYOUT_32);
}

/* Size 0: most allocators free the block, some hand out a smallest one. */
static void *realloc_to_nothing(uint8_t *byte, char *raw)
{
    *byte = 0;
    char *rest = inner.realloc(raw, 0);
    if (!rest)
        return NULL;
    void *block = allocate(1, false);
    inner.free(rest);
    return block;
}

/* Who knows how long an aligned block is? Only the allocator, which copies it. */
static void *own_grown_unknown(char *block, size_t size)
{
    const size_t request = request_for(size);
    char *grown = inner.realloc(block, request);
    if (!grown)
        return NULL;
    hw_layout_forget_own(block);
    return dress_again(grown, 0, request, size);
}

static void *layout_realloc(void *pointer, size_t size)
{
    if (!pointer)
        return allocate(size, false);
    char *block = pointer;
    uint8_t *byte = hw_layout_of(block), kept;
    if (hw_unlikely(!byte)) {
        bool own = hw_layout_is_own(block);
        if (!own || !size || size >= SIZE_LIMIT)
            return inner.realloc(block, size);
        return inner.tells_usable ? move_to_new(block, inner.malloc_usable_size(block), size)
                                  : own_grown_unknown(block, size);
    }
    if (size >= SIZE_LIMIT)
        return inner.malloc(size); /* fails; the block stays */
    char *raw = raw_of(block, kept = *byte);
    if (!size)
        return realloc_to_nothing(byte, raw);
    if ((kept & HW_LAYOUT_KIND) == HW_LAYOUT_FAR && inner.tells_usable)
        return move_to_new(block, capacity(block, raw), size);
    size_t distance = (size_t)(block - raw), old_capacity = inner.tells_usable ? capacity(block, raw) : size;
    size_t request = request_for(size) + (inner.is_glibc && distance == 32 ? 16 : 0);
    if (!inner.tells_usable) /* SIZE bytes may be copied, whatever was there */
        request += distance;
    *byte = 0;
    char *grown = inner.realloc(raw, request);
    if (!grown) {
        *byte = (uint8_t)(kept & ~HW_LAYOUT_RECORD);
        return NULL;
    }
    return dress_again(grown, distance, request, old_capacity < size ? old_capacity : size);
}

static bool is_power_of_two(size_t x)
{
    return x && !(x & (x - 1));
}

static void *layout_memalign(size_t alignment, size_t size)
{
    return is_power_of_two(alignment) ? allocate_aligned(alignment, size) : inner.memalign(alignment, size);
}

static void *layout_aligned_alloc(size_t alignment, size_t size)
{
    return is_power_of_two(alignment) ? allocate_aligned(alignment, size) : inner.aligned_alloc(alignment, size);
}

static int layout_posix_memalign(void **result, size_t alignment, size_t size)
{
    if (!is_power_of_two(alignment) || alignment % sizeof(void *) || size >= SIZE_LIMIT)
        return inner.posix_memalign(result, alignment, size);
    void *block = allocate_aligned(alignment, size);
    if (!block)
        return inner.posix_memalign(result, alignment, SIZE_LIMIT); /* fails: the error is the allocator's */
    *result = block;
    return 0;
}

static void *layout_valloc(size_t size)
{
    return allocate_aligned(HW_PAGE, size);
}

static void *layout_pvalloc(size_t size)
{
    return size < SIZE_LIMIT ? allocate_aligned(HW_PAGE, HW_ALIGN_UP(size, HW_PAGE)) : inner.pvalloc(size);
}

static size_t layout_malloc_usable_size(void *pointer)
{
    const uint8_t *byte = hw_layout_of(pointer);
    if (byte)
        return capacity(pointer, raw_of(pointer, *byte));
    size_t usable = inner.malloc_usable_size(pointer);
    if (hw_layout_is_own(pointer)) /* 32 bytes behind it are nobody's */
        return usable > 32 ? (usable - 32) & ~(size_t)7 : usable;
    return usable;
}

static bool reserve_map(void)
{
    hw_layout_map = hw_own_reserve(MAP_HINT, MAP_BYTES);
    return hw_layout_map != NULL;
}

bool hw_layout_start(void)
{
    if (!hw_layout_map && !reserve_map())
        return false;
    if (!hw_real_home)
        hw_real_home = (const void *)hw_real.malloc;
        /* Who hands out comes last: another thread may be in the middle of a call. */
#define WRAP(name)                                                                                                     \
    if (hw_real.name != layout_##name) {                                                                               \
        inner.name = hw_real.name;                                                                                     \
        __atomic_store_n(&hw_real.name, layout_##name, __ATOMIC_SEQ_CST);                                              \
    }
    hw_real.free_sized = NULL;
    hw_real.free_aligned_sized = NULL;
    WRAP(malloc_usable_size)
    WRAP(free)
    WRAP(realloc)
    WRAP(memalign)
    WRAP(posix_memalign)
    WRAP(aligned_alloc)
    WRAP(valloc)
    WRAP(pvalloc)
    WRAP(calloc)
    WRAP(malloc)
#undef WRAP
    inner.is_glibc = hw_real.is_glibc;
    inner.tells_usable = hw_real.tells_usable;
    hw_real.new_is_malloc = true; /* also where the allocator has operators of its own */
    return true;
}

/* ---- programs that give up system calls ---- */

/* As <malloc.h> has it. */
struct mallinfo2 {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

/* Blocks take up to twice as much here as without the layout, so that glibc's heap would grow, or be trimmed, where
 * that of the program alone would not: a filter might kill the program for it. So twice what is free in the heap is
 * made free, and what glibc keeps at its end at most beside that. A block that stays divides all of it from the end:
 * what is freed later does not make the end long enough to be given back. None of it is touched but for a word in each
 * piece. */
void hw_layout_make_room(void)
{
    enum { PIECE = 100000 /* not mapped alone */, AT_END = 300000, GUARD = 24 };
    if (!hw_layout_map || !inner.is_glibc)
        return;
    HW_REAL(struct mallinfo2, mallinfo2, (void));
    const size_t wanted = (real ? 2 * real().fordblks : 0) + AT_END;
    void **pieces = NULL, **last = NULL; /* the one at the end of the heap is not in the list */
    for (size_t bytes = 0; bytes < wanted; bytes += PIECE) {
        void **piece = inner.malloc(PIECE);
        if (!piece || ((size_t *)piece)[-1] & 2 /* mapped */) {
            inner.free(piece);
            break;
        }
        if (piece > last) {
            void **lower = last;
            last = piece;
            piece = lower;
        }
        if (piece) {
            *piece = pieces;
            pieces = piece;
        }
    }
    if (last)
        inner.realloc(last, GUARD);
    while (pieces) {
        void **next = *pieces;
        inner.free(pieces);
        pieces = next;
    }
}

/* ---- all of them ---- */

static struct {
    void (*each)(void *address);
    bool safely;
} walk;

static void visit(uintptr_t unit)
{
    uint8_t byte = hw_layout_map[unit];
    if (!(byte & HW_LAYOUT_RECORD))
        return;
    char *block = (char *)((unit << 6) + (byte & HW_LAYOUT_UPPER ? 32 : 0));
    if (walk.safely && (!hw_readable((uintptr_t)block - 16) || !hw_readable((uintptr_t)block - 8)))
        return;
    walk.each(block);
}

/* The map's bytes [start, end), in pages that are there. */
static void visit_bytes(uintptr_t start, uintptr_t end)
{
    typedef uint64_t __attribute__((may_alias)) word;
    for (uintptr_t at = start; at < end;) {
        if (at % 8 == 0 && at + 8 <= end) {
            if (*(const word *)at)
                for (int i = 0; i < 8; i++)
                    visit(at + (uintptr_t)i - (uintptr_t)hw_layout_map);
            at += 8;
        } else
            visit(at++ - (uintptr_t)hw_layout_map);
    }
}

static void visit_area(const struct hw_area *area)
{
    if (area->own || !area->writable || area->end >> HW_ARCH_ADDRESS_BITS)
        return;
    uintptr_t base = (uintptr_t)hw_layout_map;
    hw_resident_each(base + (area->start >> 6), base + ((area->end + 63) >> 6), visit_bytes);
}

void hw_layout_each(void (*each)(void *address), bool safely)
{
    walk.each = each;
    walk.safely = safely;
    if (hw_layout_map)
        hw_areas_each(visit_area);
}
