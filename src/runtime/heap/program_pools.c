/* program_pools.c - blocks of the program's own allocators, as <heapwise/heapwise.h> and requests to Valgrind
 * (client_requests.c) announce them.
 *
 * They are blocks like others, with a context, sizes, lifetimes and accesses, but for two things. Their memory is part
 * of a block that is counted already, so that they are in no total of a thread or the process: their MIBs carry
 * HW_MIB_POOL. And they may lie anywhere, also at the very address of the block around them, so that they have a
 * store of their own instead of the cells of blocks.c.
 *
 * The store is cut into shards by pool. A shard is a hash table of records by (pool, address); the records of one pool
 * form a ring, which its head record (address POOL_HEAD) holds together. A shard's lock is held for some tens of
 * instructions, with nothing but memory of ours touched. Its owner is written into it, so that a signal handler that
 * has interrupted its own thread here gives up instead of waiting, and so that what is left of a thread that jumped
 * out, or of another thread of a forked child's parent, is seen: the state of the shard is not known then, and its
 * records are forgotten. */
#include "runtime/access/access.h"
#include "runtime/core/core.h"
#include "runtime/core/memory.h"
#include "runtime/core/threads.h"
#include "runtime/heap/blocks.h"

#include <time.h>

#define SHARD_BITS    6
#define SHARDS        (1u << SHARD_BITS)
#define POOL_HEAD     UINT64_MAX
#define FIRST_CHUNK   1024u /* records; each chunk is twice as large as the one before */
#define CHUNKS        20u
#define FIRST_TABLE   1024u
#define PATIENCE      20000 /* rounds of waiting for a lock: some in sched_yield, */
#define YIELDS        1000  /* most of them asleep for NAP_NS, two seconds in all: the owner may not have a processor */
#define NAP_NS        100000
#define CLEAR_AT_ONCE 32u

struct record {
    uint64_t pool, address;
    struct hw_block block;
    uint32_t next, previous; /* in the ring of the pool */
    uint32_t chain;          /* in the hash table, or in the list of free records */
    uint32_t pass;           /* of take_some: the latest that has left it in the pool */
};

struct shard {
    uint64_t lock; /* 0, or process id << 32 | thread id of the owner */
    uint32_t *table;
    uint32_t mask, count;
    uint32_t used, free_list;
    struct record *chunk[CHUNKS];
} __attribute__((aligned(64)));

static struct shard shards[SHARDS] HW_LARGE;
static uint32_t pools_in_use; /* a block of a pool has been seen */

/* Temporary blocks: allocated last of all pools by this thread. */
static __thread const void *last_block __attribute__((tls_model("initial-exec")));
static __thread uint64_t last_stamp __attribute__((tls_model("initial-exec")));

/* ---- records: index 0 means none ---- */

static struct record *record_at(struct shard *shard, uint32_t index)
{
    uint32_t chunk = 31 - (uint32_t)__builtin_clz(index / FIRST_CHUNK + 1);
    return &shard->chunk[chunk][index - ((1u << chunk) - 1) * FIRST_CHUNK];
}

static uint32_t take_record(struct shard *shard)
{
    uint32_t index = shard->free_list;
    if (index) {
        shard->free_list = record_at(shard, index)->chain;
        return index;
    }
    index = shard->used ? shard->used : 1;
    uint32_t chunk = 31 - (uint32_t)__builtin_clz(index / FIRST_CHUNK + 1);
    if (chunk >= CHUNKS)
        return 0;
    if (!shard->chunk[chunk])
        shard->chunk[chunk] = hw_own_pages(((uint64_t)FIRST_CHUNK << chunk) * sizeof(struct record), false);
    if (!shard->chunk[chunk])
        return 0;
    shard->used = index + 1;
    return index;
}

static void put_record(struct shard *shard, uint32_t index)
{
    record_at(shard, index)->chain = shard->free_list;
    shard->free_list = index;
}

static uint64_t hash_of(uint64_t pool, uint64_t address)
{
    uint64_t hash = (address ^ pool << 7) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 32;
}

static bool grow_table(struct shard *shard)
{
    uint32_t capacity = shard->table ? (shard->mask + 1) * 2 : FIRST_TABLE;
    uint32_t *table = hw_own_pages(capacity * sizeof *table, false);
    if (!table)
        return false;
    for (uint32_t i = 0; shard->table && i <= shard->mask; i++)
        for (uint32_t at = shard->table[i], next; at; at = next) {
            struct record *record = record_at(shard, at);
            uint32_t *bucket = &table[hash_of(record->pool, record->address) & (capacity - 1)];
            next = record->chain;
            record->chain = *bucket;
            *bucket = at;
        }
    if (shard->table)
        hw_own_give_back(shard->table, (shard->mask + 1) * sizeof *table);
    shard->table = table;
    shard->mask = capacity - 1;
    return true;
}

static uint32_t find(struct shard *shard, uint64_t pool, uint64_t address)
{
    if (!shard->table)
        return 0;
    uint32_t at = shard->table[hash_of(pool, address) & shard->mask];
    while (at && (record_at(shard, at)->address != address || record_at(shard, at)->pool != pool))
        at = record_at(shard, at)->chain;
    return at;
}

/* A new record in the table and in no ring; 0 when there is no memory. */
static uint32_t insert(struct shard *shard, uint64_t pool, uint64_t address)
{
    if ((!shard->table || shard->count > shard->mask) && !grow_table(shard) && !shard->table)
        return 0;
    uint32_t index = take_record(shard);
    if (!index)
        return 0;
    uint32_t *bucket = &shard->table[hash_of(pool, address) & shard->mask];
    *record_at(shard, index) =
        (struct record){.pool = pool, .address = address, .chain = *bucket, .next = index, .previous = index};
    *bucket = index;
    shard->count++;
    return index;
}

/* The head of the pool's ring, made if there is none; 0 when there is no memory. */
static uint32_t head_of(struct shard *shard, const void *pool)
{
    const uint32_t head = find(shard, (uint64_t)pool, POOL_HEAD);
    return head ? head : insert(shard, (uint64_t)pool, POOL_HEAD);
}

/* Rings: INDEX comes behind BEFORE, or into no ring. */
static void link_behind(struct shard *shard, uint32_t before, uint32_t index)
{
    struct record *first = record_at(shard, before), *record = record_at(shard, index);
    record->next = first->next;
    record->previous = before;
    record_at(shard, record->next)->previous = index;
    first->next = index;
}

static void unlink_record(struct shard *shard, uint32_t index)
{
    const struct record *record = record_at(shard, index);
    record_at(shard, record->next)->previous = record->previous;
    record_at(shard, record->previous)->next = record->next;
}

static void erase(struct shard *shard, uint32_t index)
{
    struct record *record = record_at(shard, index);
    unlink_record(shard, index);
    uint32_t *link = &shard->table[hash_of(record->pool, record->address) & shard->mask];
    while (*link != index)
        link = &record_at(shard, *link)->chain;
    *link = record->chain;
    shard->count--;
    put_record(shard, index);
}

/* ---- the lock ---- */

static struct shard *shard_of(const void *pool)
{
    return &shards[(uint64_t)(uintptr_t)pool * 0x9e3779b97f4a7c15ull >> (64 - SHARD_BITS)];
}

static void forget_all(struct shard *shard)
{
    shard->table = NULL; /* its memory is left where it is: somebody was in the middle of it */
    shard->mask = shard->count = shard->used = shard->free_list = 0;
    for (uint32_t i = 0; i < CHUNKS; i++)
        shard->chunk[i] = NULL;
    hw_note(HW_NOTE_OTHER, "blocks of pools were lost: a jump or a fork left a call of heapwise_pool_…");
}

static bool lock(struct hw_thread *thread, struct shard *shard)
{
    uint64_t self = (uint64_t)hw_runtime.pid << 32 | thread->tid;
    for (int round = 0; round < PATIENCE; round++) {
        uint64_t owner = 0;
        if (hw_likely(
                __atomic_compare_exchange_n(&shard->lock, &owner, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
            return true;
        bool left = owner >> 32 != hw_runtime.pid || (owner == self && !thread->interrupted);
        if (left &&
            __atomic_compare_exchange_n(&shard->lock, &owner, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            forget_all(shard);
            return true;
        }
        if (owner == self)
            break; /* the handler of a signal that came in the middle of it */
        if (round < 64)
            hw_arch_pause();
        else if (round < YIELDS || hw_quiet)
            hw_yield();
        else
            hw_sys(SYS_nanosleep, &(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
    thread->entry->lost++;
    return false;
}

static void unlock(struct shard *shard)
{
    __atomic_store_n(&shard->lock, 0, __ATOMIC_RELEASE);
}

/* ---- events ---- */

static void ended(struct hw_thread *thread, const void *address, const struct hw_block *block)
{
    bool temporary = last_block == address && last_stamp == block->stamp;
    if (temporary)
        last_block = NULL;
    hw_heap_pool_freed(thread, (void *)address, block, temporary);
}

/* Puts a block into the pool; in *OLD the one that was at its address, if *REPLACED. False: there is no room. */
static bool put(struct hw_thread *thread, const void *pool, const void *pointer, const struct hw_block *block,
                bool *replaced, struct hw_block *old)
{
    struct shard *shard = shard_of(pool);
    *replaced = false;
    if (!lock(thread, shard))
        return false;
    uint32_t index = find(shard, (uint64_t)pool, (uint64_t)pointer), head = 0;
    if (index) {
        *replaced = true;
        *old = record_at(shard, index)->block;
    } else if ((head = head_of(shard, pool)))
        index = insert(shard, (uint64_t)pool, (uint64_t)pointer);
    if (head && index)
        link_behind(shard, head, index);
    if (index)
        record_at(shard, index)->block = *block;
    else
        thread->entry->lost++;
    unlock(shard);
    return index != 0;
}

/* Takes the block at POINTER out of the pool. False: there is none. */
static bool take(struct hw_thread *thread, const void *pool, const void *pointer, struct hw_block *block)
{
    struct shard *shard = shard_of(pool);
    if (!lock(thread, shard))
        return false;
    uint32_t index = find(shard, (uint64_t)pool, (uint64_t)pointer);
    if (index) {
        *block = record_at(shard, index)->block;
        erase(shard, index);
    }
    unlock(shard);
    return index != 0;
}

void hw_pool_begin(struct hw_thread *thread, const void *pool, uint64_t flags)
{
    struct shard *shard = shard_of(pool);
    if (!lock(thread, shard))
        return;
    uint32_t head = head_of(shard, pool);
    if (head)
        record_at(shard, head)->block.size = flags;
    unlock(shard);
}

bool hw_pool_known(struct hw_thread *thread, const void *pool, uint64_t *flags)
{
    struct shard *shard = shard_of(pool);
    if (!lock(thread, shard))
        return false;
    const uint32_t head = find(shard, (uint64_t)pool, POOL_HEAD);
    *flags = head ? record_at(shard, head)->block.size : 0;
    unlock(shard);
    return head != 0;
}

void hw_pool_allocated(struct hw_thread *thread, const struct hw_walk *walk, const void *pool, const void *pointer,
                       size_t size)
{
    struct hw_block old, block = {.size = size, .context = hw_walk_context(walk), .cpu = hw_cpu()};
    block.stamp = hw_ticks_raw() - hw_runtime.family_base;
    bool replaced = false;
    pools_in_use = 1;
    /* The unknown place is not counted: it belongs to no pool. */
    const bool known = block.context && put(thread, pool, pointer, &block, &replaced, &old);
    if (replaced)
        ended(thread, pointer, &old);
    if (known) {
        hw_heap_pool_allocated(thread, (void *)pointer, &block);
        last_block = pointer;
        last_stamp = block.stamp;
    }
}

bool hw_pool_freed(struct hw_thread *thread, const void *pool, const void *pointer, uint64_t *size)
{
    struct hw_block block;
    if (!take(thread, pool, pointer, &block))
        return false;
    *size = block.size;
    ended(thread, pointer, &block);
    return true;
}

void hw_pool_changed(struct hw_thread *thread, const void *pool, const void *from, const void *to, size_t size)
{
    struct hw_block block, old;
    bool replaced = false;
    if (!take(thread, pool, from, &block))
        return;
    struct hw_block changed = block;
    changed.size = size;
    const bool known = put(thread, pool, to, &changed, &replaced, &old);
    if (replaced)
        ended(thread, to, &old);
    if (known)
        hw_heap_pool_resized(thread, (void *)from, (void *)to, &block, size);
    else
        ended(thread, from, &block);
}

/* Takes up to CLEAR_AT_ONCE blocks out of the pool, those that lie in RANGE or do not, or with no RANGE any; how many.
 * The lock is not held while they are counted. Blocks that stay go to the end of the ring and are marked with PASS, so
 * that the next call of this pass does not meet them again. */
static uint32_t take_some(struct hw_thread *thread, const void *pool, const struct hw_pool_range *range, uint32_t pass,
                          struct hw_block *blocks, uint64_t *addresses)
{
    struct shard *shard = shard_of(pool);
    uint32_t count = 0;
    if (!lock(thread, shard))
        return 0;
    const uint32_t head = find(shard, (uint64_t)pool, POOL_HEAD);
    while (head && count < CLEAR_AT_ONCE) {
        const uint32_t index = record_at(shard, head)->next;
        struct record *record = record_at(shard, index);
        if (index == head) {
            if (!range)
                erase(shard, head);
            break;
        }
        if (range && record->pass == pass)
            break;
        const bool inside = range && record->address < range->end &&
                            (record->address >= range->start || record->address + record->block.size > range->start);
        if (range && inside != range->inside) {
            record->pass = pass;
            unlink_record(shard, index);
            link_behind(shard, record_at(shard, head)->previous, index);
            continue;
        }
        addresses[count] = record->address;
        blocks[count++] = record->block;
        erase(shard, index);
    }
    unlock(shard);
    return count;
}

void hw_pool_end_blocks(struct hw_thread *thread, const void *pool, const struct hw_pool_range *range)
{
    static uint32_t passes;
    const uint32_t pass = __atomic_add_fetch(&passes, 1, __ATOMIC_RELAXED) | 1u << 31; /* never 0 */
    struct hw_block blocks[CLEAR_AT_ONCE];
    uint64_t addresses[CLEAR_AT_ONCE];
    for (uint32_t count; (count = take_some(thread, pool, range, pass, blocks, addresses)) > 0;)
        for (uint32_t i = 0; i < count; i++)
            ended(thread, (const void *)addresses[i], &blocks[i]);
}

void hw_pool_moved(struct hw_thread *thread, const void *from, const void *to)
{
    struct hw_block blocks[CLEAR_AT_ONCE], old;
    uint64_t addresses[CLEAR_AT_ONCE], flags;
    if (from == to || !hw_pool_known(thread, from, &flags))
        return;
    hw_pool_begin(thread, to, flags);
    for (uint32_t count; (count = take_some(thread, from, NULL, 0, blocks, addresses)) > 0;)
        for (uint32_t i = 0; i < count; i++) {
            bool replaced;
            if (!put(thread, to, (const void *)addresses[i], &blocks[i], &replaced, &old))
                ended(thread, (const void *)addresses[i], &blocks[i]);
            else if (replaced)
                ended(thread, (const void *)addresses[i], &old);
        }
}

/* ---- what programs call ---- */

static struct hw_thread *enter(uintptr_t frame, const void *pointer, bool is_free)
{
    if (!pointer || hw_options.sample_bytes)
        return NULL;
    return hw_enter(frame, is_free);
}

HW_EXPORTED(void, __heapwise_pool_alloc, (const void *pool, const void *pointer, size_t size))
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    struct hw_thread *thread = enter(frame, pointer, false);
    if (!thread)
        return;
    hw_pool_allocated(thread, hw_walk_at(thread, frame), pool, pointer, size);
    hw_leave(thread);
}

HW_EXPORTED(void, __heapwise_pool_free, (const void *pool, const void *pointer))
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    struct hw_thread *thread = enter(frame, pointer, true);
    if (!thread)
        return;
    uint64_t size;
    hw_pool_freed(thread, pool, pointer, &size);
    hw_leave(thread);
}

HW_EXPORTED(void, __heapwise_pool_clear, (const void *pool))
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    struct hw_thread *thread = enter(frame, &shards, true);
    if (!thread)
        return;
    hw_pool_end_blocks(thread, pool, NULL);
    hw_leave(thread);
}

void hw_pool_forget_blocks(void)
{
    for (struct shard *shard = shards; shard < shards + SHARDS; shard++) {
        if (shard->table)
            __builtin_memset(shard->table, 0, (shard->mask + 1) * sizeof *shard->table);
        shard->lock = 0;
        shard->count = shard->used = shard->free_list = 0;
    }
    last_block = NULL;
}

/* ---- the harvest of live blocks ----
 *
 * Cells stay as they are then, so the memory around a block of a pool has to be read without it: as the pieces between
 * the holes. A list of all blocks, sorted by address, serves for the time of a harvest. */

struct hole {
    uintptr_t start, end;
    uint64_t stamp;
};

static struct {
    struct hole *hole;
    uint64_t count, bytes;
} holes;

/* The threads may not all have stopped: a shard that stays locked is left out. */
static bool lock_for_harvest(struct shard *shard)
{
    for (int round = 0; round < PATIENCE; round++) {
        uint64_t owner = 0;
        if (__atomic_compare_exchange_n(&shard->lock, &owner, (uint64_t)hw_runtime.pid << 32 | UINT32_MAX, false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
        hw_arch_pause();
    }
    return false;
}

static void each_block(void (*each)(void *address, const struct hw_block *block))
{
    for (struct shard *shard = shards; shard < shards + SHARDS; shard++) {
        if (!shard->table || !lock_for_harvest(shard))
            continue;
        for (uint32_t i = 0; i <= shard->mask; i++)
            for (uint32_t at = shard->table[i]; at; at = record_at(shard, at)->chain)
                if (record_at(shard, at)->address != POOL_HEAD)
                    each((void *)record_at(shard, at)->address, &record_at(shard, at)->block);
        unlock(shard);
    }
}

static void count_hole(void *address, const struct hw_block *block)
{
    (void)address;
    (void)block;
    holes.count++;
}

static void note_hole(void *address, const struct hw_block *block)
{
    if ((holes.count + 1) * sizeof *holes.hole <= holes.bytes)
        holes.hole[holes.count++] = (struct hole){(uintptr_t)address, (uintptr_t)address + block->size, block->stamp};
}

/* Heap sort, by address. */
static void sift(uint64_t root, uint64_t count)
{
    struct hole *heap = holes.hole;
    for (uint64_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && heap[child].start < heap[child + 1].start)
            child++;
        if (heap[root].start >= heap[child].start)
            return;
        struct hole swap = heap[root];
        heap[root] = heap[child];
        heap[child] = swap;
    }
}

static void sort_holes(void)
{
    for (uint64_t i = holes.count / 2; i-- > 0;)
        sift(i, holes.count);
    for (uint64_t i = holes.count; i-- > 1;) {
        struct hole swap = holes.hole[0];
        holes.hole[0] = holes.hole[i];
        holes.hole[i] = swap;
        sift(0, i);
    }
}

void hw_pool_harvest_begin(void)
{
    holes.count = 0;
    if (!pools_in_use)
        return;
    each_block(count_hole);
    holes.bytes = HW_ALIGN_UP(holes.count * sizeof *holes.hole, HW_PAGE);
    holes.hole = holes.count ? hw_pages(holes.bytes) : NULL;
    holes.bytes = holes.hole ? holes.bytes : 0;
    holes.count = 0;
    if (holes.hole) {
        each_block(note_hole);
        sort_holes();
    }
}

void hw_pool_harvest(void (*each)(void *address, const struct hw_block *block))
{
    if (pools_in_use)
        each_block(each);
}

void hw_pool_harvest_end(void)
{
    if (holes.hole)
        hw_munmap(holes.hole, holes.bytes);
    holes.hole = NULL;
    holes.count = 0;
}

uintptr_t hw_pool_hole(uintptr_t from, uintptr_t end, uint64_t stamp, uintptr_t *hole_end)
{
    uint64_t low = 0, high = holes.count;
    uintptr_t granule = hw_shadow.granule, first = end, last = 0;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (HW_ALIGN_UP(holes.hole[middle].start, granule) < from)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < holes.count; low++) {
        const struct hole *hole = &holes.hole[low];
        uintptr_t start = HW_ALIGN_UP(hole->start, granule), stop = HW_ALIGN_UP(hole->end, granule);
        if (start >= end || (last && start > last))
            break;
        if (hole->stamp <= stamp || stop <= start)
            continue;
        first = last ? first : start;
        last = stop > last ? stop : last; /* blocks in blocks: one hole */
    }
    *hole_end = last < end ? last : end;
    return first;
}
