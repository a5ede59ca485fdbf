/* blocks.c - address of a block -> what is known of it. Two stores behind one seam.
 *
 * The map: four bytes for each 16 bytes of address space, in a reserved region that is touched lazily. A block of at
 * least three such granules keeps its record in the cells it owns anyway: that is a quarter of the heap's size and no
 * look-up. Smaller blocks have an index there, of a record in a pool. No lock, no hash; foreign pointers read as zero.
 *
 *   cell 0      kind (2 bits) | size modulo 64 (6) | home (24)          kind 1: three cells, 2: four cells
 *   cells 1, 2  stamp / 4 (54) | CPU (10)
 *   cell 3      size / 64
 *   cell 0      kind 3 | 0 (1) | index of a pool record (29)            one or two granules
 *   cell 0      kind 3 | 1 (1) | size (5) | home (16) | stamp (8)       two granules, when there are many such blocks:
 *   cell 1      stamp (26) | CPU (6)                                    the stamp in units of 4096 ticks, some 1.6 us
 *
 * The home stands for the context and the thread (homes.c).
 *
 * The last form keeps heaps of millions of tiny blocks at a quarter, too: it serves when the pool has grown to 8 MiB,
 * for homes and CPUs with small numbers, for 2^46 ticks (a day).
 *
 * The table: open addressing in a list of arrays, each twice as large as the one before; lock-free, because only one
 * thread can own an address. It serves where address space is limited, for blocks that share a granule (8-byte size
 * classes), for sizes the map cannot express, and in sampled runs and allocator mode, where few blocks are kept. */
#include "runtime/access/access.h"
#include "runtime/core/core.h"
#include "runtime/core/memory.h"
#include "runtime/core/threads.h"
#include "runtime/heap/blocks.h"
#include "runtime/hooks/hooks.h"

enum { KIND_NONE = 0, KIND_THREE = 1, KIND_FOUR = 2, KIND_POOL = 3 };

#define MAP_HINT         0x200000000000ul /* away from where programs, heaps, libraries and sanitizers' shadows live */
#define MAP_BYTES        (1ul << (HW_ARCH_ADDRESS_BITS - 4 + 2))
#define RECORD_BYTES     16ul
#define RECORD_MAX       (1u << 29)
#define RECORDS_GENEROUS (512u * 1024u) /* as many small blocks have records of full precision */
#define COMPACT          4u             /* bit of cell 0 */

uint32_t *hw_block_cells; /* NULL: everything is in the table, or before the blocks themselves */
static struct {
    uint32_t (*records)[4];
    uint32_t records_used;
    uint32_t *old_cells; /* of the map as it was when counting of accesses began */
} map;

static bool reserve_map(void)
{
    map.records = hw_own_pages(RECORD_BYTES * RECORD_MAX, false);
    if (map.records)
        hw_block_cells = hw_own_reserve(MAP_HINT, MAP_BYTES);
    return hw_block_cells != NULL;
}

/* Granules that belong to a block of SIZE alone: the next block cannot begin in them. */
static inline uint64_t granules(uint64_t size)
{
    if (hw_likely(hw_real.is_glibc)) /* chunks are 8 bytes of header and at least 32 bytes, in steps of 16 */
        return size < 24 ? 2 : (size + 8 + 15) >> 4;
    return (size + 15) >> 4;
}

static inline void pack(uint32_t *cell, uint32_t kind, const struct hw_block *block)
{
    cell[1] = (uint32_t)(block->stamp >> HW_STAMP_SHIFT);
    cell[2] = (uint32_t)((block->stamp >> HW_STAMP_SHIFT >> 32) & 0x3fffff) | block->cpu << 22;
    cell[0] = kind | (uint32_t)(block->size & 63) << 2 | block->home << 8;
}

static inline void set_home(struct hw_block *block, uint32_t home)
{
    block->home = home;
    hw_home_load(&block->at, home);
}

static inline void unpack(const uint32_t *cell, struct hw_block *block)
{
    set_home(block, cell[0] >> 8);
    block->size = (cell[0] >> 2) & 63;
    block->stamp = ((uint64_t)(cell[2] & 0x3fffff) << 32 | cell[1]) << HW_STAMP_SHIFT;
    block->cpu = cell[2] >> 22;
}

/* A block of two granules in their two cells, with a coarse stamp; false when it does not fit. */
static bool pack_compact(uint32_t *cell, const struct hw_block *block)
{
    uint64_t stamp = block->stamp >> HW_STAMP_COARSE_SHIFT, size = hw_real.is_glibc ? block->size : block->size - 1;
    if (block->home >> 16 || block->cpu >> 6 || stamp >> 34 || size >> 5)
        return false;
    cell[1] = (uint32_t)(stamp >> 8) | block->cpu << 26;
    cell[0] = KIND_POOL | COMPACT | (uint32_t)size << 3 | block->home << 8 | (uint32_t)stamp << 24;
    return true;
}

static void unpack_compact(uint32_t *cell, struct hw_block *block)
{
    uint64_t size = cell[0] >> 3 & 31;
    block->size = hw_real.is_glibc ? size : size + 1;
    set_home(block, cell[0] >> 8 & 0xffff);
    block->stamp = ((uint64_t)(cell[1] & 0x3ffffff) << 8 | cell[0] >> 24) << HW_STAMP_COARSE_SHIFT;
    block->cpu = cell[1] >> 26;
    cell[0] = cell[1] = 0;
}

/* ---- pool records of small blocks ---- */

static uint32_t take_record(struct hw_thread *thread)
{
    uint32_t index = thread->free_records;
    if (hw_likely(index != HW_NONE)) {
        thread->free_records = map.records[index][0];
        return index;
    }
    /* A page of them at a time, so that threads do not share lines. */
    uint32_t first = __atomic_fetch_add(&map.records_used, 256, __ATOMIC_RELAXED);
    if (first >= RECORD_MAX - 256)
        return HW_NONE;
    for (uint32_t i = first + 1; i < first + 255; i++)
        map.records[i][0] = i + 1;
    map.records[first + 255][0] = HW_NONE;
    thread->free_records = first + 1;
    return first;
}

static void put_record(struct hw_thread *thread, uint32_t index)
{
    map.records[index][0] = thread->free_records;
    thread->free_records = index;
}

/* ---- the table ---- */

struct table_entry {
    uint64_t address; /* 0 empty, TOMB deleted, odd while it is being written */
    struct hw_block block;
};
#define TOMB         2ul
#define PROBES       16u
#define TABLE_LEVELS 40

static struct {
    struct table_entry *level[TABLE_LEVELS];
    uint64_t mask[TABLE_LEVELS];
    uint32_t levels;
} table;

static inline uint64_t address_hash(uint64_t address)
{
    return (address >> 3) * 0x9e3779b97f4a7c15ull >> 20;
}

static bool add_level(uint32_t have)
{
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    bool done = table.levels > have;
    if (!done && have < TABLE_LEVELS) {
        uint64_t capacity = have ? (table.mask[have - 1] + 1) * 2 : 1024;
        struct table_entry *entries = hw_own_pages(capacity * sizeof *entries, false);
        if (entries) {
            table.mask[have] = capacity - 1;
            table.level[have] = entries;
            __atomic_store_n(&table.levels, have + 1, __ATOMIC_RELEASE);
            done = true;
        }
    }
    hw_lock_drop(&hw_runtime.lock, old);
    return done;
}

static bool table_find(uint64_t address, struct table_entry **found)
{
    for (uint32_t i = __atomic_load_n(&table.levels, __ATOMIC_ACQUIRE); i-- > 0;) {
        uint64_t at = address_hash(address);
        for (uint32_t n = 0; n < PROBES; n++, at++) {
            struct table_entry *entry = &table.level[i][at & table.mask[i]];
            uint64_t key = __atomic_load_n(&entry->address, __ATOMIC_ACQUIRE);
            if (key == address) {
                *found = entry;
                return true;
            }
            if (!key)
                break;
        }
    }
    return false;
}

static void filter_add(uint64_t address, int by)
{
    if (!hw_filter_mask)
        return;
    uint8_t *cell = &hw_filter[(address >> 4) & hw_filter_mask];
    uint8_t value = __atomic_load_n(cell, __ATOMIC_RELAXED);
    while (value != 0xff) /* a full cell stays full */
        if (__atomic_compare_exchange_n(cell, &value, (uint8_t)(value + by), true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            break;
}

static bool table_put(uint64_t address, const struct hw_block *block)
{
    for (;;) {
        uint32_t levels = __atomic_load_n(&table.levels, __ATOMIC_ACQUIRE);
        uint64_t at = address_hash(address);
        for (uint32_t n = 0; levels && n < PROBES; n++, at++) {
            struct table_entry *entry = &table.level[levels - 1][at & table.mask[levels - 1]];
            uint64_t key = __atomic_load_n(&entry->address, __ATOMIC_RELAXED);
            if ((key != 0 && key != TOMB) || !__atomic_compare_exchange_n(&entry->address, &key, address | 1, false,
                                                                          __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                continue;
            entry->block = *block;
            entry->block.layout = false;
            entry->block.at = hw_home_of(block->home);
            __atomic_store_n(&entry->address, address, __ATOMIC_RELEASE);
            filter_add(address, 1);
            return true;
        }
        if (!add_level(levels))
            return false;
    }
}

static bool table_take(uint64_t address, struct hw_block *block)
{
    struct table_entry *entry;
    if (!table_find(address, &entry))
        return false;
    *block = entry->block;
    __atomic_store_n(&entry->address, TOMB, __ATOMIC_RELEASE);
    filter_add(address, -1);
    return true;
}

/* ---- the seam ---- */

static uint32_t table_blocks; /* in the table although there is a map: nobody has to look there while it is 0 */

bool hw_blocks_start(void)
{
    bool want_map =
        !hw_options.block_table && !hw_options.sample_bytes && !hw_access_on() && hw_runtime.mode != HW_MODE_ALLOCATOR;
    if (want_map && !hw_address_space_limited() && hw_homes.of && reserve_map())
        return true;
    if (want_map && !hw_attached) /* there it is the rule */
        hw_note(HW_NOTE_TABLE_STORE, NULL);
    return add_level(0);
}

bool hw_blocks_forget(void)
{
    if (hw_block_cells && (hw_madvise(hw_block_cells, MAP_BYTES, MADV_DONTNEED) < 0 ||
                           hw_madvise(map.records, RECORD_BYTES * RECORD_MAX, MADV_DONTNEED) < 0))
        return false; /* both are locked, or none */
    map.records_used = 0;
    hw_threads_forget_blocks();
    for (uint32_t i = 0; i < table.levels; i++)
        __builtin_memset(table.level[i], 0, (table.mask[i] + 1) * sizeof *table.level[i]);
    table_blocks = 0;
    if (hw_filter_mask) {
        __builtin_memset(hw_filter, 0, hw_filter_mask + 1);
        hw_real_mark_startup_blocks();
    }
    return true;
}

/* Accesses are counted: a block of the layout (owned_blocks.c) has its record in the 16 bytes before it. */
#define LAYOUT_SIZE_MOST (1ull << 40)

static inline void pack_before(uint64_t address, const struct hw_block *block)
{
    uint64_t *record = (uint64_t *)(address - 16);
    record[0] = block->stamp >> HW_STAMP_SHIFT << 10 | block->cpu;
    record[1] = block->size << HW_HOME_BITS | block->home;
}

static inline void unpack_before(uint64_t address, struct hw_block *block)
{
    const uint64_t *record = (const uint64_t *)(address - 16);
    block->stamp = record[0] >> 10 << HW_STAMP_SHIFT;
    block->cpu = record[0] & 1023;
    block->layout = true;
    block->size = record[1] >> HW_HOME_BITS;
    block->home = record[1] & ((1u << HW_HOME_BITS) - 1);
    block->at = hw_home_of(block->home);
}

void hw_blocks_access(void)
{
    map.old_cells = hw_block_cells;
    hw_block_cells = NULL;
}

static void (*each_block)(void *address, const struct hw_block *block);

static void visit_layout(void *address)
{
    struct hw_block block;
    unpack_before((uint64_t)address, &block);
    each_block(address, &block);
}

void hw_blocks_each(void (*each)(void *address, const struct hw_block *block), bool safely)
{
    each_block = each;
    hw_layout_each(visit_layout, safely);
    for (uint32_t i = 0; i < table.levels; i++)
        for (uint64_t at = 0; at <= table.mask[i]; at++) {
            const struct table_entry *entry = &table.level[i][at];
            const struct hw_block block = entry->block;
            if (entry->address > TOMB && !(entry->address & 1))
                each((void *)entry->address, &block);
        }
}

static bool put_in_table(struct hw_thread *thread, uint64_t address, const struct hw_block *block, struct hw_block *old)
{
    bool replaced = table_take(address, old);
    if (!table_put(address, block)) {
        thread->entry->lost++;
        hw_note(HW_NOTE_NO_MEMORY, NULL);
    } else if (hw_block_cells && !replaced)
        __atomic_fetch_add(&table_blocks, 1, __ATOMIC_RELAXED);
    return replaced;
}

static bool take_from_table(uint64_t address, struct hw_block *block)
{
    if (hw_block_cells && !__atomic_load_n(&table_blocks, __ATOMIC_RELAXED))
        return false;
    if (!table_take(address, block))
        return false;
    if (hw_block_cells)
        __atomic_fetch_sub(&table_blocks, 1, __ATOMIC_RELAXED);
    return true;
}

HW_INLINE bool take_from_cells(struct hw_thread *thread, uint32_t *cell, struct hw_block *block)
{
    switch (cell[0] & 3) {
    case KIND_FOUR:
        unpack(cell, block);
        block->size |= (uint64_t)cell[3] << 6;
        cell[0] = cell[1] = cell[2] = cell[3] = 0;
        return true;
    case KIND_THREE:
        unpack(cell, block);
        cell[0] = cell[1] = cell[2] = 0;
        return true;
    case KIND_POOL: {
        if (cell[0] & COMPACT) {
            unpack_compact(cell, block);
            return true;
        }
        uint32_t index = cell[0] >> 3;
        cell[0] = 0;
        unpack(map.records[index], block);
        block->size |= (uint64_t)map.records[index][3] << 6;
        put_record(thread, index);
        return true;
    }
    default:
        return false;
    }
}

static inline bool put(struct hw_thread *thread, void *pointer, const struct hw_block *block, struct hw_block *old)
{
    uint64_t address = (uint64_t)pointer;
    if (hw_unlikely(!hw_block_cells || (address & 15) || address >> HW_ARCH_ADDRESS_BITS || block->size >> 38)) {
        uint8_t *layout = hw_layout_map ? hw_layout_of(pointer) : NULL;
        if (!layout || block->size >= LAYOUT_SIZE_MOST)
            return put_in_table(thread, address, block, old);
        pack_before(address, block);
        *layout |= HW_LAYOUT_RECORD;
        return false;
    }
    uint32_t *cell = hw_block_cells + (address >> 4);
    bool replaced = false;
    if (hw_unlikely(cell[0] & 3))
        replaced = take_from_cells(thread, cell, old);
    uint64_t own = granules(block->size);
    if (hw_likely(own >= 4)) {
        cell[3] = (uint32_t)(block->size >> 6);
        pack(cell, KIND_FOUR, block);
    } else if (own == 3 && block->size < 64) {
        pack(cell, KIND_THREE, block);
    } else if (own == 2 && map.records_used >= RECORDS_GENEROUS && thread->free_records == HW_NONE &&
               pack_compact(cell, block)) {
        return replaced;
    } else {
        uint32_t index = take_record(thread);
        if (index == HW_NONE)
            return put_in_table(thread, address, block, old);
        uint32_t *record = map.records[index];
        record[3] = (uint32_t)(block->size >> 6);
        pack(record, KIND_FOUR, block);
        cell[0] = KIND_POOL | index << 3;
    }
    return replaced;
}

/* A block from before accesses were counted: in the map, or in the table beside it. */
static __attribute__((noinline)) bool take_old(struct hw_thread *thread, void *pointer, struct hw_block *block)
{
    if (take_from_table((uint64_t)pointer, block))
        return true;
    block->layout = false;
    if (((uint64_t)pointer & 15) || (uint64_t)pointer >> HW_ARCH_ADDRESS_BITS ||
        !(map.old_cells[(uint64_t)pointer >> 4] & 3))
        return false;
    return take_from_cells(thread, map.old_cells + ((uint64_t)pointer >> 4), block);
}

static inline bool take(struct hw_thread *thread, void *pointer, struct hw_block *block)
{
    uint64_t address = (uint64_t)pointer;
    if (hw_unlikely(!hw_block_cells || (address & 15) || address >> HW_ARCH_ADDRESS_BITS)) {
        uint8_t *layout = hw_layout_map ? hw_layout_of(pointer) : NULL;
        if (!layout || !(*layout & HW_LAYOUT_RECORD))
            return map.old_cells ? take_old(thread, pointer, block) : take_from_table(address, block);
        unpack_before(address, block);
        *layout &= (uint8_t)~HW_LAYOUT_RECORD;
        return true;
    }
    uint32_t *cell = hw_block_cells + (address >> 4);
    if (hw_unlikely(!(cell[0] & 3)))
        return hw_unlikely(table_blocks) ? take_from_table(address, block) : false;
    return take_from_cells(thread, cell, block);
}

/* Whether a block begins in the 16 bytes at START: two may, of 8 bytes each. */
static bool any_begins(uint64_t start)
{
    struct table_entry *entry;
    if (hw_block_cells && !(start >> HW_ARCH_ADDRESS_BITS) && hw_block_cells[start >> 4] & 3)
        return true;
    if (hw_block_cells && !__atomic_load_n(&table_blocks, __ATOMIC_RELAXED))
        return false;
    return table_find(start, &entry) || table_find(start + 8, &entry);
}

/* The bit of block_starts.c belongs to both blocks of its 16 bytes. It is set after the record is there, and looked
 * after again once it was cleared: so it never stays clear while there is one. */
bool hw_block_put(struct hw_thread *thread, void *pointer, const struct hw_block *block, struct hw_block *old)
{
    bool replaced = put(thread, pointer, block, old);
    if (hw_unlikely(hw_block_starts_on))
        hw_block_starts_set(pointer);
    return replaced;
}

bool hw_block_take(struct hw_thread *thread, void *pointer, struct hw_block *block)
{
    if (hw_likely(!hw_block_starts_on))
        return take(thread, pointer, block);
    hw_block_starts_clear(pointer);
    bool taken = take(thread, pointer, block);
    if (any_begins((uint64_t)pointer & ~15ul))
        hw_block_starts_set(pointer);
    return taken;
}

/* ---- looking without taking: sampled accesses, and what is still reachable ---- */

/* The record of the block that begins at ADDRESS. Another thread may change it meanwhile: callers have to check that it
 * is plausible. */
static bool peek(uint64_t address, struct hw_block *block)
{
    const uint32_t *cells = hw_block_cells ? hw_block_cells : map.old_cells;
    const uint32_t *cell = cells && !(address & 15) ? cells + (address >> 4) : NULL;
    uint32_t copy[4], index;
    struct table_entry *entry;
    if (!cell || !(cell[0] & 3)) {
        if ((hw_block_cells && !__atomic_load_n(&table_blocks, __ATOMIC_RELAXED)) || !table_find(address, &entry))
            return false;
        *block = entry->block;
        return true;
    }
    for (int i = 0; i < 4; i++)
        copy[i] = __atomic_load_n(&cell[i], __ATOMIC_RELAXED);
    if ((copy[0] & (3 | COMPACT)) == KIND_POOL) { /* a record is packed like a block of four cells */
        index = copy[0] >> 3;
        for (int i = 0; i < 4; i++)
            copy[i] = __atomic_load_n(&map.records[index][i], __ATOMIC_RELAXED);
        copy[0] = (copy[0] & ~3u) | KIND_FOUR;
    }
    return take_from_cells(NULL, copy, block);
}

bool hw_block_at(uintptr_t address, struct hw_block *block)
{
    uint8_t *layout = hw_layout_map ? hw_layout_of((void *)address) : NULL;
    if (!layout || !(*layout & HW_LAYOUT_RECORD))
        return !(address >> HW_ARCH_ADDRESS_BITS) && peek(address, block);
    unpack_before(address, block);
    return true;
}

/* The same, but nothing else of it. */
bool hw_block_size(uintptr_t address, uint64_t *size)
{
    struct hw_block block;
    const uint32_t *cell = hw_block_cells && !hw_layout_map && !(address & 15) && !(address >> HW_ARCH_ADDRESS_BITS)
                               ? hw_block_cells + (address >> 4)
                               : NULL;
    if (cell && (*cell & (3 | COMPACT)) == KIND_POOL)
        cell = map.records[*cell >> 3];
    else if (!cell || !(*cell & 3) || (*cell & 3) == KIND_POOL) {
        const bool known = hw_block_at(address, &block);
        *size = block.size;
        return known;
    } else if ((*cell & 3) == KIND_THREE) {
        *size = *cell >> 2 & 63;
        return true;
    }
    *size = (*cell >> 2 & 63) | (uint64_t)cell[3] << 6;
    return true;
}

/* Cells that no block owns are zero, so that a walk from one block to the next meets begins only. */
static uintptr_t walked; /* so far, in the cells of the map */
static uint32_t *walked_cells;

static void walk_cells(uintptr_t start, uintptr_t end)
{
    for (uintptr_t cell = start > walked ? start : walked; cell < end; cell += sizeof *walked_cells) {
        struct hw_block block = {0};
        const uintptr_t address = (cell - (uintptr_t)walked_cells) / sizeof *walked_cells << 4;
        if (!(*(const uint32_t *)cell & 3) || !peek(address, &block))
            continue;
        each_block((void *)address, &block);
        const uint64_t own = granules(block.size);
        walked = cell + (own ? own : 1) * sizeof *walked_cells;
        cell = walked - sizeof *walked_cells;
    }
}

void hw_blocks_each_mapped(uintptr_t start, uintptr_t end, void (*each)(void *address, const struct hw_block *block))
{
    each_block = each;
    walked = 0;
    walked_cells = hw_block_cells ? hw_block_cells : map.old_cells;
    if (walked_cells && !(end >> HW_ARCH_ADDRESS_BITS))
        hw_resident_each((uintptr_t)(walked_cells + (start >> 4)), (uintptr_t)(walked_cells + (end >> 4)), walk_cells);
}

void hw_blocks_trace(uintptr_t start, uintptr_t end, void (*each)(uintptr_t start, uintptr_t end))
{
    const uint32_t *cells = hw_block_cells ? hw_block_cells : map.old_cells;
    if (cells && !(end >> HW_ARCH_ADDRESS_BITS))
        hw_resident_each((uintptr_t)(cells + (start >> 4)), (uintptr_t)(cells + (end >> 4)), each);
}

uintptr_t hw_block_containing(uintptr_t address, struct hw_block *block)
{
    uintptr_t start = hw_block_starts_find(address);
    if (!start)
        return 0;
    /* The table also holds blocks at distances of 8. */
    if (address - start >= 8 && !hw_block_cells && peek(start + 8, block) && address - start - 8 < block->size)
        return start + 8;
    return peek(start, block) && address - start < block->size ? start : 0;
}

/* A forked child inherits the records of blocks as they are. Free lists of small records go with the other threads'
 * states: those records are not used again, which costs a little memory in the child and nothing else. */
enum hw_block_store hw_blocks_store(void)
{
    return hw_block_cells || hw_access_on() ? HW_STORE_MAP : HW_STORE_TABLE;
}
