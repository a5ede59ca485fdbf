/* heap.c - the observer that counts: every allocation and free is added to the MIB of its context.
 *
 * MIBs belong to a thread slot (or, in bounded tables, to a set with a lock); the reader adds them up. Live totals are
 * kept per thread and flushed: exactly while there is one thread, in steps of a fraction of the peak when there are
 * more, so that threads do not fight over one line (the peak is then exact to less than 1 %).
 *
 * The share of each context in the peak is taken lazily: a new peak raises peak_epoch; the first change of a MIB after
 * that keeps its live values. A MIB that does not change still has them. */
#include "runtime/access/access.h"
#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/core/memory.h"
#include "runtime/core/threads.h"
#include "runtime/heap/blocks.h"
#include "runtime/heap/distributions.h"

/* What a block counts for: as many blocks and bytes as it stands for in sampled runs (the chance in that comes from its
 * stamp, so that its free finds the same). */
static inline struct hw_sample sample_of(const struct hw_block *block)
{
    if (hw_likely(!hw_runtime.weighted))
        return (struct hw_sample){.weight = 1, .bytes = block->size};
    if (hw_options.sample_bytes)
        return hw_sample_of(block);
    return (struct hw_sample){.weight = 1ull << block->shift, .bytes = block->size << block->shift};
}

/* ---- free stacks: the index of the pairs, see the end of the file ---- */

static struct {
    uint32_t *slots; /* pair index + 1, 0 empty; open addressing; under the lock */
    uint32_t mask, count;
} pairs;

/* What few runs want of each event, so that the others have one test for it all. */
enum { ALSO_SAMPLED = 1, ALSO_FREE_STACKS = 2, ALSO_LOG = 4 };
static uint32_t also;

static uint32_t peak_busy; /* a thread is noting a new peak */

/* ---- MIBs ---- */

static struct {
    uint32_t sets;    /* bounded table: number of sets, a prime; 0: unbounded */
    uint32_t first;   /* MIB index of the first way of the first set */
    uint32_t *owners; /* state (owner_id) that holds the set, 0 none */
    uint32_t lost;    /* MIB of context 0, taken at the start: where counts go when there is no room */
} store;

static struct hw_mib *lost_mib(void)
{
    return HW_ENTRY(HW_POOL_MIBS, struct hw_mib, store.lost);
}

static void reset_mib(struct hw_mib *mib, uint32_t context)
{
    *mib = (struct hw_mib){
        .context = context,
        .size_min = UINT64_MAX,
        .lifetime_min = UINT64_MAX,
        .peak_epoch = hw_runtime.process->peak_epoch,
        .size_first = UINT64_MAX,
    };
    mib->home = hw_home_of_context(context);
    hw_access_reset_entry(mib, context);
}

static bool is_prime(uint32_t n)
{
    for (uint32_t d = 2; d <= n / d; d++)
        if (n % d == 0)
            return false;
    return n > 1;
}

void hw_heap_start(void)
{
    hw_runtime.peak_limit = 0;
    peak_busy = 0;
    hw_runtime.flush_limit = INT64_MAX;
    hw_runtime.threads_many = 0;
    hw_homes_start();
    store.lost = hw_pool_take(HW_POOL_MIBS, 1);
    reset_mib(lost_mib(), 0);
    hw_distributions_start();
    hw_distributions_lost(lost_mib());
    hw_pool_publish(HW_POOL_MIBS);
    store.sets = 0;
    pairs.slots = NULL; /* a forked child starts anew */
    pairs.mask = pairs.count = 0;
    also = (hw_options.sample_bytes ? ALSO_SAMPLED : 0) | (hw_options.free_stacks ? ALSO_FREE_STACKS : 0) |
           (hw_options.block_log && !hw_runtime.weighted ? ALSO_LOG : 0);
    if (hw_options.sample_bytes)
        hw_sample_peaks_start();
    if (!hw_options.table_entries)
        return;
    uint32_t sets = (uint32_t)(hw_options.table_entries / 4);
    while (sets > 1 && !is_prime(sets))
        sets--;
    if (sets < 1)
        sets = 1;
    store.first = hw_pool_take(HW_POOL_MIBS, sets * 4);
    if (store.first == HW_NONE)
        return;
    hw_pool_publish(HW_POOL_MIBS);
    for (uint32_t i = 0; i < sets * 4; i++)
        reset_mib(HW_ENTRY(HW_POOL_MIBS, struct hw_mib, store.first + i), HW_NONE);
    store.owners = hw_own_pages(sets * sizeof *store.owners, false);
    if (store.owners)
        store.sets = sets;
}

/* THREAD: whose it is; NULL: of no one in particular. */
static struct hw_mib *new_mib(struct hw_thread *thread, uint32_t context)
{
    if (thread && hw_runtime.threads_many)
        hw_thread_take_peak(thread, hw_runtime.process->peak_epoch);
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    struct hw_mib *mib = lost_mib();
    uint32_t index = hw_pool_take(HW_POOL_MIBS, 1);
    if (index != HW_NONE) {
        mib = HW_ENTRY(HW_POOL_MIBS, struct hw_mib, index);
        reset_mib(mib, context);
        if (thread) {
            mib->slot = thread->slot + 1;
            mib->home = hw_home_new(context, thread->slot);
        }
        hw_pool_publish(HW_POOL_MIBS);
    }
    hw_lock_drop(&hw_runtime.lock, old);
    if (index == HW_NONE)
        hw_note(HW_NOTE_FILE_FULL, hw_file_problem());
    return mib;
}

struct hw_mib *hw_mib_get(struct hw_thread *thread, uint32_t context)
{
    if (hw_unlikely(context >= thread->mib_index_size))
        context = 0;
    uint32_t index = thread->mib_index[context];
    if (hw_likely(index))
        return HW_ENTRY(HW_POOL_MIBS, struct hw_mib, index);
    struct hw_mib *mib = new_mib(thread, context);
    if (mib == lost_mib())
        thread->entry->lost++; /* a context, with all its events from now on: they are reported under "unknown stack" */
    thread->mib_index[context] = (uint32_t)(mib - HW_ENTRY(HW_POOL_MIBS, struct hw_mib, 0));
    return mib;
}

static uint32_t owner_id(const struct hw_thread *thread)
{
    return (uint32_t)((uintptr_t)thread / HW_PAGE); /* states begin on pages */
}

static uint64_t last_use(const struct hw_mib *mib)
{
    return mib->last_alloc_tick > mib->last_free_tick ? mib->last_alloc_tick : mib->last_free_tick;
}

/* Bounded table (MemProf's RFC: multi-way associative, indexed by the context id modulo a prime): the way of CONTEXT,
 * with its set held. A new context pushes out the way that was allocated to longest ago, into an entry of its own. */
static struct hw_mib *bounded_begin(struct hw_thread *thread, uint32_t context)
{
    uint32_t set = context % store.sets;
    uint32_t *owner = &store.owners[set], none = 0;
    if (hw_runtime.threads_many)
        hw_thread_take_peak(thread, hw_runtime.process->peak_epoch);
    while (!__atomic_compare_exchange_n(owner, &none, owner_id(thread), false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        for (const struct hw_thread *below = thread->interrupted; below; below = below->interrupted)
            if (none ==
                owner_id(below)) /* interrupted by this signal handler: count in an entry that the reader adds */
                return new_mib(NULL, context);
        none = 0;
        hw_arch_pause();
    }
    struct hw_mib *ways = HW_ENTRY(HW_POOL_MIBS, struct hw_mib, store.first + set * 4), *victim = ways;
    for (int i = 0; i < 4; i++) {
        if (ways[i].context == context)
            return &ways[i];
        if (ways[i].context == HW_NONE) {
            reset_mib(&ways[i], context);
            return &ways[i];
        }
        if (last_use(&ways[i]) < last_use(victim))
            victim = &ways[i];
    }
    struct hw_mib *evicted = new_mib(NULL, victim->context);
    if (evicted != lost_mib()) {
        struct hw_mib copy = *victim;
        copy.flags |= HW_MIB_EVICTED;
        hw_distributions_evicted(&copy);
        hw_access_move_entry(evicted, victim);
        /* Empty the way first: a kill between the two loses an entry instead of counting it twice. */
        reset_mib(victim, context);
        *evicted = copy;
        __atomic_fetch_add(&hw_runtime.process->evictions, 1, __ATOMIC_RELAXED);
        return victim;
    }
    thread->entry->lost++;
    return lost_mib();
}

static inline struct hw_mib *mib_begin(struct hw_thread *thread, uint32_t context)
{
    return hw_unlikely(store.sets) ? bounded_begin(thread, context) : hw_mib_get(thread, context);
}

static inline void mib_end(struct hw_thread *thread, uint32_t context)
{
    if (hw_unlikely(store.sets)) {
        uint32_t *owner = &store.owners[context % store.sets];
        if (*owner == owner_id(thread))
            __atomic_store_n(owner, 0, __ATOMIC_RELEASE);
    }
}

/* A MIB of the present epoch: its thread has taken its own share, too (new_mib, bounded_begin). */
static inline void take_peak_share(struct hw_thread *thread, struct hw_mib *mib)
{
    uint64_t epoch = hw_runtime.process->peak_epoch;
    if (mib->peak_epoch != epoch) {
        mib->peak_bytes = mib->live_bytes;
        mib->peak_blocks = mib->live_blocks;
        mib->peak_epoch = epoch;
        if (hw_runtime.threads_many)
            hw_thread_take_peak(thread, epoch);
    }
}

/* ---- totals and the peak ---- */

#define TICK_LATER UINT64_MAX /* the clock has not been read: reading it costs as much as the rest of an event */

/* With one thread: every new maximum. With many: steps of a thousandth, as seen with this thread's own delta. */
static __attribute__((noinline)) void new_peak(uint64_t live, uint64_t tick)
{
    struct hw_process_info *process = hw_runtime.process;
    uint32_t idle = 0;
    if (tick == TICK_LATER)
        tick = hw_ticks_raw() - hw_runtime.tick_base;
    /* Another thread may be here, perhaps with a higher total: this one is added within the same step. */
    if (hw_runtime.threads_many &&
        !__atomic_compare_exchange_n(&peak_busy, &idle, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    if (live > hw_runtime.peak_limit) {
        process->peak_bytes = live;
        process->peak_tick = tick;
        process->peak_epoch++;
        hw_runtime.peak_limit = hw_runtime.threads_many ? live + live / 1024 : live;
        if (live > hw_runtime.peak_read_above && !hw_runtime.threads_many)
            __atomic_store_n(&hw_runtime.timeline_fall, 0, __ATOMIC_RELAXED);
    }
    if (hw_runtime.threads_many)
        __atomic_store_n(&peak_busy, 0, __ATOMIC_RELEASE);
}

void hw_heap_flush(struct hw_thread *thread)
{
    struct hw_process_info *process = hw_runtime.process;
    const int64_t live = __atomic_add_fetch(&process->live_bytes, thread->delta_bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(&process->live_blocks, thread->delta_blocks, __ATOMIC_RELAXED);
    if (hw_unlikely(hw_runtime.regions_open != 0))
        hw_regions_rise(NULL, live);
    thread->delta_bytes = thread->delta_blocks = 0;
    if (hw_runtime.threads_many) {
        uint64_t most = process->threads_most ? process->threads_most : 1;
        const int64_t limit = hw_runtime.regions_of_process ? 0 : (int64_t)(process->peak_bytes / 512 / most);
        if (hw_runtime.flush_limit != limit) /* all read this line at each event */
            hw_runtime.flush_limit = limit;
    }
}

/* The second thread has come. The first one has kept the totals by plain additions so far: after the barrier it sees
 * threads_many at its next event, and an event that it is in the middle of is waited for. */
void hw_heap_threads_many(void)
{
    if (!hw_runtime.threads_many)
        hw_runtime.flush_limit = 0;
    __atomic_store_n(&hw_runtime.threads_many, 1, __ATOMIC_SEQ_CST);
    hw_threads_barrier();
    hw_threads_wait_outside();
    hw_runtime.threads_settled = 1;
}

/* A handler that has interrupted another event takes no peak: that event may have changed its context and not yet the
 * total, or the other way round, and the shares would not add up. */
static inline void change_live(struct hw_thread *thread, int64_t bytes, int64_t blocks, uint64_t tick)
{
    struct hw_process_info *process = hw_runtime.process;
    struct hw_thread_entry *entry = thread->entry;
    entry->live_bytes += bytes;
    entry->live_blocks += blocks;
    if (hw_likely(!hw_runtime.threads_many)) {
        /* One instruction each: a signal handler in between may do the same. */
        uint64_t live = (uint64_t)hw_arch_add(&process->live_bytes, bytes);
        hw_arch_add(&process->live_blocks, blocks);
        if (hw_unlikely(hw_runtime.regions_open != 0))
            hw_regions_rise(thread, (int64_t)live);
        if (bytes > 0 && live > hw_runtime.peak_limit && hw_likely(!thread->interrupted))
            new_peak(live, tick);
        return;
    }
    thread->delta_bytes += bytes;
    thread->delta_blocks += blocks;
    int64_t delta = thread->delta_bytes;
    if (delta > hw_runtime.flush_limit || -delta > hw_runtime.flush_limit)
        hw_heap_flush(thread);
    int64_t live = process->live_bytes + thread->delta_bytes;
    if (hw_unlikely(hw_runtime.regions_open != 0))
        hw_regions_rise(thread, INT64_MIN);
    if (bytes > 0 && live > 0 && (uint64_t)live > hw_runtime.peak_limit && hw_likely(!thread->interrupted))
        new_peak((uint64_t)live, tick);
}

/* ---- events ---- */

static inline uint64_t file_tick(uint64_t stamp)
{
    return stamp - (hw_runtime.tick_base - hw_runtime.family_base);
}

/* Prefetches what an event will need of a block's record and cells while its stack is being walked. */
static inline void prefetch(const void *address)
{
    uintptr_t user = (uintptr_t)address & ((1ul << HW_ARCH_ADDRESS_BITS) - 1);
    if (hw_likely(hw_block_cells != NULL))
        __builtin_prefetch(hw_block_cells + (user >> 4), 1);
    else if (hw_access_on())
        __builtin_prefetch((const void *)(hw_shadow.base + (user >> hw_shadow.shift)));
}

static inline void note_alloc_thread(struct hw_mib *mib, const struct hw_thread *thread)
{
    if (hw_unlikely(mib->alloc_thread != thread->serial)) {
        mib->alloc_thread = thread->serial;
        mib->alloc_threads++;
    }
}

static inline void note_free_thread(struct hw_mib *mib, const struct hw_thread *thread)
{
    if (hw_unlikely(mib->free_thread != thread->serial)) {
        mib->free_thread = thread->serial;
        mib->free_threads++;
    }
}

static inline void change_mib(struct hw_thread *thread, struct hw_mib *mib, int64_t bytes, int64_t blocks)
{
    take_peak_share(thread, mib);
    mib->live_bytes += bytes;
    mib->live_blocks += blocks;
}

/* Everything a new block means to the MIB. */
static inline void add_block(struct hw_mib *mib, struct hw_thread *thread, uint64_t size, uint64_t tick, uint32_t cpu,
                             uint64_t weight, int64_t bytes)
{
    change_mib(thread, mib, bytes, (int64_t)weight);
    mib->allocations += weight;
    mib->samples++;
    mib->bytes += (uint64_t)bytes;
    if (size < mib->size_min)
        mib->size_min = size;
    if (size > mib->size_max)
        mib->size_max = size;
    mib->last_alloc_tick = tick;
    mib->last_alloc_cpu = (uint16_t)cpu;
    mib->live_ticks += weight * tick;
    hw_distributions_allocated(mib, size, weight, bytes);
    note_alloc_thread(mib, thread);
}

/* A block whose free was not seen (the program freed it behind the runtime's back) gives way to a new one. */
static __attribute__((noinline)) void replaced(struct hw_thread *thread, void *address, const struct hw_block *old);

static __attribute__((noinline)) void also_allocated(struct hw_thread *thread, const void *address,
                                                     const struct hw_block *block, const struct hw_sample *sample,
                                                     struct hw_mib *mib, uint32_t context)
{
    if (also & ALSO_LOG) {
        hw_block_log_add(thread, address, block->size, context, file_tick(block->stamp));
        return;
    }
    mib->count_variance += sample->count_variance;
    mib->bytes_variance += sample->bytes_variance;
    hw_sample_live(block, 1, thread->interrupted);
}

HW_INLINE void allocated(struct hw_thread *thread, void *address, size_t size, struct hw_walk *walk,
                         const struct hw_block *like)
{
    uint64_t stamp = hw_ticks_raw() - hw_runtime.family_base;
    uint64_t tick = file_tick(stamp);
    struct hw_block block = {.size = size,
                             .stamp = stamp,
                             .home = walk->home,
                             .cpu = hw_cpu(),
                             .shift = like->shift,
                             .slot = like->slot,
                             .clock = like->clock},
                    old;
    if (hw_unlikely(hw_block_put(thread, address, &block, &old)))
        replaced(thread, address, &old);
    const struct hw_sample sample = sample_of(&block);
    uint64_t weight = sample.weight;
    int64_t bytes = (int64_t)sample.bytes;
    struct hw_mib *mib = hw_likely(walk->mib != NULL) ? walk->mib : mib_begin(thread, hw_walk_context(walk));
    if (hw_access_on())
        hw_access_allocated(mib, address, size, tick);
    else if (hw_unlikely(hw_shadow.fields))
        hw_fields_allocated(mib, address);
    add_block(mib, thread, size, tick, block.cpu, weight, bytes);
    if (hw_unlikely(also & (ALSO_SAMPLED | ALSO_LOG)))
        also_allocated(thread, address, &block, &sample, mib, hw_walk_context(walk));
    if (hw_unlikely(!walk->mib))
        mib_end(thread, hw_walk_context(walk));
    thread->last_block = address;
    thread->last_stamp = stamp;
    thread->allocation_serial++;
    thread->entry->allocations += weight;
    thread->entry->bytes += (uint64_t)bytes;
    change_live(thread, bytes, (int64_t)weight, tick);
    if (hw_unlikely(tick >= hw_runtime.timeline_next))
        hw_timeline_tick(thread, tick, bytes);
}

void hw_heap_allocated(struct hw_thread *thread, void *address, size_t size, uintptr_t frame)
{
    if (hw_unlikely(hw_options.sample_bytes != 0) && !hw_sample_drawn(thread, size))
        return;
    prefetch(address);
    allocated(thread, address, size, hw_walk_at(thread, frame), &(struct hw_block){.shift = 0});
}

void hw_heap_followed(struct hw_thread *thread, void *address, size_t size, struct hw_walk *walk,
                      const struct hw_block *like)
{
    allocated(thread, address, size, walk, like);
}

/* Ticks since the block was allocated; clocks of two CPUs may differ a little. */
static inline uint64_t age_of(const struct hw_block *block, uint64_t now)
{
    uint64_t stamp = now - hw_runtime.family_base;
    return stamp > block->stamp ? stamp - block->stamp : 0;
}

/* Everything a free means to the MIB, but for live bytes and blocks. */
static inline void add_lifetime(struct hw_mib *mib, const struct hw_block *block, uint64_t now, uint32_t cpu,
                                uint64_t weight, int64_t bytes)
{
    uint64_t lifetime = age_of(block, now);
    uint64_t tick = file_tick(now - hw_runtime.family_base), born = file_tick(block->stamp);
    uint16_t born_cpu = (uint16_t)block->cpu;
    if (mib->frees) {
        mib->lifetime_overlaps += born < mib->last_free_tick ? weight : 0;
        mib->same_alloc_cpu += born_cpu == mib->previous_alloc_cpu ? weight : 0;
        mib->same_free_cpu += cpu == mib->last_free_cpu ? weight : 0;
    }
    mib->frees += weight;
    unsigned __int128 total = ((unsigned __int128)mib->lifetime_total_high << 64 | mib->lifetime_total) +
                              (unsigned __int128)weight * lifetime;
    mib->lifetime_total = (uint64_t)total;
    mib->lifetime_total_high = (uint32_t)(total >> 64);
    if (lifetime < mib->lifetime_min)
        mib->lifetime_min = lifetime;
    if (lifetime > mib->lifetime_max)
        mib->lifetime_max = lifetime;
    mib->migrated_cpu += cpu != born_cpu ? weight : 0;
    mib->last_free_tick = tick;
    mib->last_free_cpu = (uint16_t)cpu;
    mib->previous_alloc_cpu = born_cpu;
    mib->live_ticks -= weight * born;
    hw_distributions_released(mib, block->size, weight, bytes);
    hw_distributions_lived(mib, lifetime, weight, bytes);
}

/* Which stacks free the blocks of a context: a table of pairs, in the file; its index is private. */
static void count_free_stack(uint32_t alloc_context, uint32_t free_context, uint64_t weight, uint64_t bytes);

static inline bool is_inherited(const struct hw_block *block)
{
    return block->stamp < hw_runtime.tick_base - hw_runtime.family_base;
}

static __attribute__((noinline)) void freed_others(struct hw_thread *thread, const struct hw_block *block,
                                                   struct hw_mib *mib, uint64_t weight, int64_t bytes)
{
    if (hw_thread_freed_others(thread, block, weight, (uint64_t)bytes))
        mib->freed_by_others += weight;
}

static __attribute__((noinline)) void resized_others(struct hw_thread *thread, const struct hw_block *block,
                                                     struct hw_mib *mib, int64_t growth)
{
    if (hw_thread_resized_others(thread, block, growth))
        mib->flags |= HW_MIB_RESIZED;
}

/* Of a block from before the fork or the latest reset. After a reset all blocks are among the live ones. */
static __attribute__((noinline)) void freed_old(struct hw_thread *thread, void *address, const struct hw_block *block,
                                                uint64_t now)
{
    struct hw_mib *mib = mib_begin(thread, block->context);
    const struct hw_sample sample = sample_of(block);
    const uint64_t weight = sample.weight;
    const int64_t bytes = (int64_t)sample.bytes;
    bool live = hw_runtime.process->flags & HW_PROCESS_RESET;
    if (live) {
        change_mib(thread, mib, -bytes, -(int64_t)weight);
        mib->live_ticks -= is_inherited(block) ? 0 : weight * file_tick(block->stamp);
        if (!is_inherited(block)) /* of these no size is known: see take_over_inherited of reset.c */
            hw_distributions_released(mib, block->size, weight, bytes);
    }
    if (hw_options.sample_bytes && live) {
        mib->freed_count_variance += sample.count_variance;
        mib->freed_bytes_variance += sample.bytes_variance;
        hw_sample_live(block, -1, true);
    } else if (hw_options.sample_bytes)
        hw_sample_inherited_freed(block);
    mib->inherited_frees += weight;
    mib->inherited_freed_bytes += (uint64_t)bytes;
    if (hw_access_on()) /* what was counted since */
        hw_access_freed(mib, address, block, age_of(block, now), HW_NONE);
    if (live)
        hw_thread_freed_others(thread, block, weight, (uint64_t)bytes);
    mib_end(thread, block->context);
    if (live)
        change_live(thread, -bytes, -(int64_t)weight, TICK_LATER);
}

/* FRAME is 0 where the block was reported before: in reallocations, and where another one has taken its place. In a
 * child what it has inherited begins here: it was not live for its log. */
static __attribute__((noinline)) void log_freed(struct hw_thread *thread, const void *address,
                                                const struct hw_block *block, uint64_t now)
{
    if (is_inherited(block))
        hw_block_log_add(thread, address, block->size, block->context, 0);
    hw_block_log_add(thread, address, 0, HW_NONE, now - hw_runtime.tick_base);
}

static void account_free(struct hw_thread *thread, void *address, const struct hw_block *block, uint64_t now,
                         bool temporary, uintptr_t frame)
{
    bool of_others = block->owner != thread->slot;
    if (hw_unlikely(block->stamp < thread->born)) { /* old, or of a thread that had this slot before */
        if (block->stamp < hw_runtime.old_below) {
            freed_old(thread, address, block, now);
            if (also & ALSO_LOG && frame)
                log_freed(thread, address, block, now);
            return;
        }
        of_others = true;
    }
    const struct hw_sample sample = sample_of(block);
    const uint64_t weight = sample.weight;
    const int64_t bytes = (int64_t)sample.bytes;
    uint32_t free_context = HW_NONE;
    if (hw_unlikely(also & ALSO_FREE_STACKS))
        free_context = frame ? hw_walk_context(hw_walk_at(thread, frame)) : 0;
    struct hw_mib *mib = mib_begin(thread, block->context);
    if (hw_access_on())
        hw_access_freed(mib, address, block, age_of(block, now), free_context);
    take_peak_share(thread, mib);
    mib->live_bytes -= bytes;
    mib->live_blocks -= (int64_t)weight;
    add_lifetime(mib, block, now, hw_cpu(), weight, bytes);
    if (hw_unlikely(hw_options.sample_bytes != 0)) {
        mib->freed_count_variance += sample.count_variance;
        mib->freed_bytes_variance += sample.bytes_variance;
        hw_sample_live(block, -1, true);
    }
    if (temporary) {
        mib->temporary += weight;
        thread->entry->temporary += weight;
    }
    note_free_thread(mib, thread);
    if (hw_unlikely(of_others))
        freed_others(thread, block, mib, weight, bytes);
    mib_end(thread, block->context);
    thread->entry->frees += weight;
    uint64_t tick = now - hw_runtime.tick_base;
    change_live(thread, -bytes, -(int64_t)weight, tick);
    if (hw_unlikely(also & (ALSO_FREE_STACKS | ALSO_LOG))) {
        if (also & ALSO_FREE_STACKS)
            count_free_stack(block->context, free_context, weight, (uint64_t)bytes);
        if (also & ALSO_LOG && frame)
            log_freed(thread, address, block, now);
    }
    if (hw_unlikely(tick >= hw_runtime.timeline_fall))
        hw_timeline_tick(thread, tick, -bytes);
}

/* Whether this is what the thread allocated last: a temporary allocation. (The stamp distinguishes it from a later
 * block of another thread at the same address.) */
static inline bool take_temporary(struct hw_thread *thread, const void *address, const struct hw_block *block)
{
    if (thread->last_block != address)
        return false;
    thread->last_block = NULL;
    uint64_t difference = thread->last_stamp ^ block->stamp;
    bool coarse = !(block->stamp & ((1u << HW_STAMP_COARSE_SHIFT) - 1));
    return !(difference >> (coarse ? HW_STAMP_COARSE_SHIFT : HW_STAMP_SHIFT));
}

bool hw_heap_freed(struct hw_thread *thread, void *address, uintptr_t frame)
{
    struct hw_block block;
    prefetch(address);
    uint64_t now = hw_ticks_raw(); /* while the record is on its way */
    if (!hw_block_take(thread, address, &block))
        return false;
    account_free(thread, address, &block, now, take_temporary(thread, address, &block), frame);
    return true;
}

bool hw_heap_follow_freed(struct hw_thread *thread, void *address, struct hw_block *block)
{
    if (!hw_block_take(thread, address, block))
        return false;
    account_free(thread, address, block, hw_ticks_raw(), false, 0);
    return true;
}

static void replaced(struct hw_thread *thread, void *address, const struct hw_block *old)
{
    account_free(thread, address, old, hw_ticks_raw(), false, 0);
    hw_note(HW_NOTE_BLOCK_REPLACED, NULL);
}

bool hw_heap_realloc_begin(struct hw_thread *thread, void *address, struct hw_block *block)
{
    if (hw_unlikely(!hw_runtime.timeline_fall))
        hw_timeline_tick(thread, hw_ticks_raw() - hw_runtime.tick_base, 0);
    if (!hw_block_take(thread, address, block))
        return false;
    if (hw_unlikely(also & ALSO_LOG)) /* before the allocator may give the address to another thread */
        log_freed(thread, address, block, hw_ticks_raw());
    if (hw_access_on())
        hw_access_realloc_begin(thread, address, block);
    return true;
}

/* It begins again, after the end that was logged before the reallocation. */
static __attribute__((noinline)) void log_resized(struct hw_thread *thread, const void *address,
                                                  const struct hw_block *block)
{
    hw_block_log_add(thread, address, block->size, block->context, hw_ticks_raw() - hw_runtime.tick_base);
}

/* The block was freed, or (SIZE is not 0) stays where it is. */
static __attribute__((noinline)) void reallocated_to_nothing(struct hw_thread *thread, void *address, size_t size,
                                                             const struct hw_block *block)
{
    struct hw_block old;
    if (size && also & ALSO_LOG)
        log_resized(thread, address, block);
    if (size)
        hw_block_put(thread, address, block, &old);
    else
        account_free(thread, address, block, hw_ticks_raw(), take_temporary(thread, address, block), 0);
    if (hw_access_on())
        hw_access_realloc_end(thread);
}

/* Everything another size means to the MIB, but for the distributions; how many bytes more are live. */
static int64_t add_resized(struct hw_mib *mib, struct hw_thread *thread, bool moved, uint64_t old_size, uint64_t size,
                           uint64_t weight)
{
    mib->reallocations += weight;
    if (moved) {
        mib->realloc_moved += weight;
        mib->realloc_moved_bytes += weight * (size < old_size ? size : old_size);
    }
    const int64_t growth = (int64_t)weight * ((int64_t)size - (int64_t)old_size);
    if (growth > 0) {
        mib->realloc_grown_bytes += (uint64_t)growth;
        mib->bytes += (uint64_t)growth;
    } else
        mib->realloc_shrunk_bytes += (uint64_t)-growth;
    if (size > mib->size_max)
        mib->size_max = size;
    change_mib(thread, mib, growth, 0);
    return growth;
}

/* The block stays the same one: its context, its birth; its size and address change. */
void hw_heap_realloc_end(struct hw_thread *thread, void *old_address, void *new_address, size_t size,
                         struct hw_block *block)
{
    struct hw_block old;
    if (hw_unlikely(!new_address)) {
        reallocated_to_nothing(thread, old_address, size, block);
        return;
    }
    uint64_t old_size = block->size;
    bool inherited = is_inherited(block) && !(hw_runtime.process->flags & HW_PROCESS_RESET);
    block->size = size;
    if (hw_unlikely(hw_block_put(thread, new_address, block, &old)))
        replaced(thread, new_address, &old);
    if (hw_unlikely(also & ALSO_LOG))
        log_resized(thread, new_address, block);
    thread->last_block = NULL;
    if (inherited && !hw_access_on())
        return; /* the parent's block; what it grew by is neither */
    struct hw_mib *mib = mib_begin(thread, block->context);
    if (hw_access_on()) {
        hw_access_realloc_moved(mib, old_address, old_size, new_address, size);
        hw_access_realloc_end(thread);
    }
    if (inherited) {
        mib_end(thread, block->context);
        return;
    }
    const uint64_t weight = sample_of(block).weight; /* never of a sampled run */
    const int64_t growth = add_resized(mib, thread, old_address != new_address, old_size, size, weight);
    thread->entry->bytes += growth > 0 ? (uint64_t)growth : 0;
    if (!is_inherited(block))
        hw_distributions_resized(mib, old_size, size, weight);
    note_alloc_thread(mib, thread);
    if (hw_unlikely(block->owner != thread->slot || block->stamp < thread->born))
        resized_others(thread, block, mib, growth);
    mib_end(thread, block->context);
    thread->entry->reallocations += weight;
    change_live(thread, growth, 0, TICK_LATER);
    if (thread->entry->reallocations % 16 == 0) { /* a program may do nothing else for a while */
        uint64_t tick = hw_ticks_raw() - hw_runtime.tick_base;
        if (tick >= hw_runtime.timeline_next)
            hw_timeline_tick(thread, tick, growth);
    }
}

/* ---- blocks of the program's own allocators (program_pools.c): in a MIB, but in no total; never sampled ---- */

void hw_heap_pool_allocated(struct hw_thread *thread, void *address, const struct hw_block *block)
{
    struct hw_mib *mib = mib_begin(thread, block->context);
    if (hw_likely(mib != lost_mib())) { /* else it is reported as lost */
        mib->flags |= HW_MIB_POOL;
        add_block(mib, thread, block->size, file_tick(block->stamp), block->cpu, 1, (int64_t)block->size);
        if (hw_access_on())
            hw_access_pool_allocated(address, block->size);
    }
    mib_end(thread, block->context);
}

void hw_heap_pool_freed(struct hw_thread *thread, void *address, const struct hw_block *block, bool temporary)
{
    struct hw_mib *mib = mib_begin(thread, block->context);
    uint64_t now = hw_ticks_raw();
    if (hw_unlikely(mib == lost_mib())) {
        mib_end(thread, block->context);
        return;
    }
    bool old = block->stamp < hw_runtime.old_below;
    mib->flags |= HW_MIB_POOL;
    if (!old || (hw_runtime.process->flags & HW_PROCESS_RESET))
        change_mib(thread, mib, -(int64_t)block->size, -1);
    if (old && (hw_runtime.process->flags & HW_PROCESS_RESET) && !is_inherited(block))
        hw_distributions_released(mib, block->size, 1, (int64_t)block->size);
    if (old) {
        mib->inherited_frees++;
        mib->inherited_freed_bytes += block->size;
    } else {
        add_lifetime(mib, block, now, hw_cpu(), 1, (int64_t)block->size);
        mib->temporary += temporary;
        note_free_thread(mib, thread);
    }
    if (hw_access_on())
        hw_access_pool_freed(mib, address, block, age_of(block, now));
    mib_end(thread, block->context);
}

/* ---- free stacks ---- */

static uint64_t pair_hash(uint32_t a, uint32_t b)
{
    return hw_mix(((uint64_t)a << 32) | b);
}

static bool grow_pairs(void)
{
    uint32_t capacity = pairs.mask ? (pairs.mask + 1) * 2 : 4096;
    uint32_t *slots = hw_own_pages(capacity * sizeof *slots, false);
    if (!slots)
        return false;
    for (uint32_t i = 0; i < pairs.count; i++) {
        struct hw_free_stack *pair = HW_ENTRY(HW_POOL_FREE_STACKS, struct hw_free_stack, i);
        uint64_t at = pair_hash(pair->alloc_context, pair->free_context) & (capacity - 1);
        while (slots[at])
            at = (at + 1) & (capacity - 1);
        slots[at] = i + 1;
    }
    if (pairs.slots)
        hw_own_give_back(pairs.slots, (pairs.mask + 1) * sizeof *slots);
    pairs.slots = slots;
    pairs.mask = capacity - 1;
    return true;
}

static void count_free_stack(uint32_t alloc_context, uint32_t free_context, uint64_t weight, uint64_t bytes)
{
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    struct hw_free_stack *pair = NULL;
    if ((pairs.slots && pairs.count * 2 <= pairs.mask) || grow_pairs()) {
        uint64_t at = pair_hash(alloc_context, free_context) & pairs.mask;
        for (; pairs.slots[at]; at = (at + 1) & pairs.mask) {
            pair = HW_ENTRY(HW_POOL_FREE_STACKS, struct hw_free_stack, pairs.slots[at] - 1);
            if (pair->alloc_context == alloc_context && pair->free_context == free_context)
                break;
            pair = NULL;
        }
        uint32_t index = pair ? 0 : hw_pool_take(HW_POOL_FREE_STACKS, 1);
        if (!pair && index != HW_NONE) {
            pair = HW_ENTRY(HW_POOL_FREE_STACKS, struct hw_free_stack, index);
            pair->alloc_context = alloc_context;
            pair->free_context = free_context;
            pairs.slots[at] = index + 1;
            pairs.count++;
            hw_pool_publish(HW_POOL_FREE_STACKS);
        }
    }
    if (pair) {
        pair->count += weight;
        pair->bytes += bytes;
    }
    hw_lock_drop(&hw_runtime.lock, old);
}

void hw_heap_pool_resized(struct hw_thread *thread, void *old_address, void *new_address, const struct hw_block *block,
                          size_t size)
{
    const bool old = block->stamp < hw_runtime.old_below;
    if (old && !(hw_runtime.process->flags & HW_PROCESS_RESET))
        return; /* the parent's block; what it grew by is neither */
    struct hw_mib *mib = mib_begin(thread, block->context);
    if (hw_likely(mib != lost_mib())) {
        if (hw_access_on()) { /* accesses count as those of two blocks */
            hw_access_pool_freed(mib, old_address, block, age_of(block, hw_ticks_raw()));
            hw_access_pool_allocated(new_address, size);
        }
        add_resized(mib, thread, old_address != new_address, block->size, size, 1);
        if (!is_inherited(block))
            hw_distributions_resized(mib, block->size, size, 1);
        note_alloc_thread(mib, thread);
    }
    mib_end(thread, block->context);
}
