/* access.c - from the cells of a block to what the profile says of its context: the entries, and the events.
 *
 * A block is harvested when it is freed: its cells in all planes are added up and cleared, which leaves them clean for
 * the next block at that place. They are read once more when a block is handed out, since other data
 * may have been there before (a stack, a mapping).
 *
 * When realloc moves a block, the old place may belong to another thread before its cells could be read. So it is
 * announced before (struct moving), and a thread that gets memory there waits. */
#include "base/abi.h"
#include "runtime/access/cells.h"
#include "runtime/access/counting.h"
#include "runtime/core/core.h"
#include "runtime/core/threads.h"
#include "runtime/hooks/hooks.h"

/* ---- granules of 64 bytes ---- */

/* The usual case: one plane, a few granules. Which cells are zero, and how many there are, cannot be predicted: so
 * there are no conditions, and up to UNROLLED cells the last one is read again instead of stopping there.
 * When it is, it is zero. */
#define UNROLLED 5
static inline __attribute__((always_inline)) void scan_one_plane(uintptr_t plane, uintptr_t start, uintptr_t end,
                                                                 struct hw_cell_sum *sum)
{
    uint64_t first = start >> 6, more = ((end - 1) >> 6) - first;
    uint64_t reads = 0, writes = 0, touched = 0;
    cell_64 *cell = (cell_64 *)(plane + (first << 3));
#define TAKE(index)                                                                                                    \
    do {                                                                                                               \
        uint64_t value = cell[index];                                                                                  \
        cell[index] = 0;                                                                                               \
        reads += (uint32_t)value;                                                                                      \
        writes += value >> 32;                                                                                         \
        touched += value != 0;                                                                                         \
    } while (0)
    if (hw_likely(more < UNROLLED)) {
        TAKE(0);
        TAKE(more < 1 ? more : 1);
        TAKE(more < 2 ? more : 2);
        TAKE(more < 3 ? more : 3);
        TAKE(more);
    } else
        for (uint64_t i = 0; i <= more; i++)
            TAKE(i);
#undef TAKE
    sum->reads = reads;
    sum->writes = writes;
    sum->touched = touched;
    sum->granules = more + 1;
}

static inline bool are_usual(uintptr_t start, uintptr_t end)
{
    return hw_likely(end - start < HW_CELLS_LONG && !(hw_shadow.memprof_used | hw_shadow.carried) &&
                     hw_shadow.granule == 64);
}

static inline bool are_clear_in(uintptr_t plane, uintptr_t start, uintptr_t end)
{
    uint64_t first = start >> 6, more = ((end - 1) >> 6) - first;
    const cell_64 *cell = (const cell_64 *)(plane + (first << 3));
    if (hw_likely(more < UNROLLED))
        return !(cell[0] | cell[more < 1 ? more : 1] | cell[more < 2 ? more : 2] | cell[more < 3 ? more : 3] |
                 cell[more]);
    for (uint64_t i = 0; i <= more; i++)
        if (cell[i])
            return false;
    return true;
}

static inline bool are_clear_64(uintptr_t start, uintptr_t end)
{
    uint32_t count = __atomic_load_n(&hw_shadow.planes_used, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++)
        if (!are_clear_in(hw_shadow.plane[i], start, end))
            return false;
    return true;
}

/* The one plane in which there are counts of the block (any, if there are none); 0 if there are several. Most blocks
 * are one thread's. */
static inline uintptr_t only_plane(uintptr_t start, uintptr_t end)
{
    uint32_t count = __atomic_load_n(&hw_shadow.planes_used, __ATOMIC_ACQUIRE);
    uintptr_t plane = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!are_clear_in(hw_shadow.plane[i], start, end)) {
            if (plane)
                return 0;
            plane = hw_shadow.plane[i];
        }
    return plane ? plane : hw_shadow.base;
}

/* ---- entries ---- */

static inline struct hw_access *entry_of(const struct hw_mib *mib)
{
    return HW_ENTRY(HW_POOL_ACCESS, struct hw_access, mib - HW_ENTRY(HW_POOL_MIBS, struct hw_mib, 0));
}

void hw_access_clear_entry(struct hw_access *entry, uint32_t context)
{
    *entry = (struct hw_access){
        .context = context,
        .accesses_min = UINT64_MAX,
        .utilization_min = UINT32_MAX,
        .density_min = UINT64_MAX,
        .lifetime_density_min = UINT64_MAX,
    };
}

void hw_access_reset_entry(const struct hw_mib *mib, uint32_t context)
{
    if (hw_access_on())
        hw_access_clear_entry(entry_of(mib), context);
}

void hw_access_move_entry(const struct hw_mib *to, const struct hw_mib *from)
{
    if (!hw_access_on())
        return;
    uint32_t context = entry_of(to)->context;
    *entry_of(to) = *entry_of(from);
    entry_of(to)->context = context;
}

static inline void take_bounds(uint64_t value, uint64_t *total, uint64_t *min, uint64_t *max)
{
    if (__builtin_add_overflow(*total, value, total))
        *total = UINT64_MAX;
    if (value < *min)
        *min = value;
    if (value > *max)
        *max = value;
}

/* Of numbers that are not negative; signed conversions are one instruction. */
static inline double real(uint64_t x)
{
    return (double)(int64_t)(x & INT64_MAX);
}

static inline uint64_t whole(double x)
{
    return hw_likely(x < 9.2e18) ? (uint64_t)(int64_t)x : UINT64_MAX;
}

/* TOUCHED * 10000 / GRANULES without a division for small blocks: the reciprocal is too large by less than one part in
 * 2^32 / GRANULES, TOUCHED * 10000 * GRANULES is below 2^32. */
static inline uint32_t utilization_of(uint64_t touched, uint64_t granules)
{
#define RECIPROCAL(n) (uint32_t)(((1ull << 32) + (n)-1) / (n))
    static const uint32_t reciprocal[] = {0,
                                          UINT32_MAX,
                                          RECIPROCAL(2),
                                          RECIPROCAL(3),
                                          RECIPROCAL(4),
                                          RECIPROCAL(5),
                                          RECIPROCAL(6),
                                          RECIPROCAL(7),
                                          RECIPROCAL(8)};
    if (touched == granules)
        return 10000;
    if (hw_likely(granules < sizeof reciprocal / sizeof *reciprocal))
        return (uint32_t)(touched * 10000 * reciprocal[granules] >> 32);
    return (uint32_t)(touched * 10000 / granules);
}

static inline void add_sum(struct hw_access *entry, const struct hw_cell_sum *sum)
{
    entry->reads += sum->reads;
    entry->writes += sum->writes;
    entry->unsplit += sum->unsplit;
    entry->saturated_cells += sum->saturated;
    if (hw_unlikely(sum->shared | sum->lines_false | sum->lines_handed)) {
        entry->shared_granules += sum->shared;
        entry->shared_written += sum->shared_written;
        entry->shared_writers += sum->shared_writers;
        entry->lines_false_shared += sum->lines_false;
        entry->lines_true_shared += sum->lines_true;
        entry->lines_handed_over += sum->lines_handed;
        entry->lines_hot += sum->lines_hot;
        entry->line_passes += sum->passes;
    }
}

/* LIFETIME in ticks. */
static inline __attribute__((always_inline)) void add_block(struct hw_access *entry, const struct hw_cell_sum *sum,
                                                            uint64_t size, uint64_t lifetime, bool owned)
{
    uint64_t accesses = sum->reads + sum->writes + sum->unsplit, density = 0, lifetime_density = 0;
    uint32_t utilization = utilization_of(sum->touched, sum->granules);
    entry->blocks++;
    add_sum(entry, sum);
    entry->granules += sum->granules;
    entry->granules_touched += sum->touched;
    if (accesses) {
        const struct hw_process_info *process = hw_runtime.process;
        double thousand = real(accesses) * 1000, bytes = real(size ? size : 1);
        density = whole(thousand / bytes);
        lifetime_density = whole(thousand * 1e9 * real(process->clock_ticks) /
                                 (bytes * real(lifetime ? lifetime : 1) * real(process->clock_ns)));
    }
    if (accesses < entry->accesses_min)
        entry->accesses_min = accesses;
    if (accesses > entry->accesses_max)
        entry->accesses_max = accesses;
    entry->utilization_total += utilization;
    if (utilization < entry->utilization_min)
        entry->utilization_min = utilization;
    if (utilization > entry->utilization_max)
        entry->utilization_max = utilization;
    take_bounds(density, &entry->density_total, &entry->density_min, &entry->density_max);
    take_bounds(lifetime_density, &entry->lifetime_density_total, &entry->lifetime_density_min,
                &entry->lifetime_density_max);
    entry->never_accessed += !accesses;
    entry->written_never_read += sum->writes && !sum->reads && !sum->unsplit;
    entry->not_owned += !owned;
}

static inline bool owns_cells(const void *address, const struct hw_block *block)
{
    return hw_likely(block->layout) || hw_layout_is_own(address);
}

void hw_access_add_block(struct hw_access *entry, const struct hw_cell_sum *sum, const void *address,
                         const struct hw_block *block, uint64_t age)
{
    add_block(entry, sum, block->size, age, owns_cells(address, block));
}

void hw_access_add_pool_block(struct hw_access *entry, struct hw_cell_sum *sum, const void *address,
                              const struct hw_block *block, uint64_t age)
{
    uintptr_t start = (uintptr_t)address;
    sum->granules += sum->granules == 0;
    add_block(entry, sum, block->size, age, ((start | (start + block->size)) & (hw_shadow.granule - 1)) == 0);
}

/* ---- reallocations under way ---- */

#define MOVING_MOST 32

static struct moving {
    const struct hw_thread *thread; /* NULL: free */
    uintptr_t start, end;           /* start is 0 until both are set */
} moving[MOVING_MOST];
static uint32_t moving_count;

static struct moving *moving_of(const struct hw_thread *thread)
{
    for (int i = 0; i < MOVING_MOST; i++)
        if (__atomic_load_n(&moving[i].thread, __ATOMIC_RELAXED) == thread)
            return &moving[i];
    return NULL;
}

static inline void change_moving_count(uint32_t change)
{
    if (hw_likely(!hw_runtime.threads_many)) /* a handler that comes between leaves it as it was */
        moving_count += change;
    else
        __atomic_fetch_add(&moving_count, change, __ATOMIC_SEQ_CST);
}

/* Without atomic instructions while there is one thread: the second one waits until this one is outside, where all that
 * has been stored is seen. */
void hw_access_realloc_begin(struct hw_thread *thread, void *address, const struct hw_block *block)
{
    struct moving *mine = NULL;
    for (uint32_t i = 0; !mine; i = (i + 1) % MOVING_MOST) {
        const struct hw_thread *none = NULL;
        if (hw_likely(!hw_runtime.threads_many) && !moving[i].thread) {
            mine = &moving[i];
            mine->thread = thread;
        } else if (__atomic_compare_exchange_n(&moving[i].thread, &none, thread, false, __ATOMIC_ACQ_REL,
                                               __ATOMIC_RELAXED))
            mine = &moving[i];
        else
            hw_arch_pause();
    }
    mine->end = hw_access_end(address, block->size);
    __atomic_store_n(&mine->start, (uintptr_t)address, __ATOMIC_RELEASE);
    change_moving_count(1);
}

void hw_access_realloc_end(struct hw_thread *thread)
{
    struct moving *mine = moving_of(thread);
    if (!mine)
        return;
    __atomic_store_n(&mine->start, 0, __ATOMIC_RELEASE);
    change_moving_count(-1u);
    __atomic_store_n(&mine->thread, NULL, __ATOMIC_RELEASE);
}

/* Until nobody moves counts out of [start, end). */
static __attribute__((noinline)) void wait_for_moving(uintptr_t start, uintptr_t end)
{
    for (int i = 0; i < MOVING_MOST; i++)
        for (;;) {
            uintptr_t from = __atomic_load_n(&moving[i].start, __ATOMIC_ACQUIRE);
            const struct hw_thread *thread = __atomic_load_n(&moving[i].thread, __ATOMIC_ACQUIRE);
            bool other = thread && thread != hw_self && !(hw_self && hw_self->interrupted == thread);
            if (!from || !other || from >= end || moving[i].end <= start)
                break;
            hw_arch_pause();
        }
}

/* ---- events ---- */

static inline bool are_clear(uintptr_t start, uintptr_t end)
{
    if (hw_shadow.granule == 4)
        return hw_words_are_clear(start, end);
    return are_usual(start, end) && are_clear_64(start, end);
}

void hw_access_allocated(const struct hw_mib *mib, void *address, size_t size, uint64_t tick)
{
    if (hw_unlikely(tick >= hw_shadow.sweep_next))
        hw_shadow_sweep();
    if (hw_unlikely(tick >= hw_shadow.words_next))
        hw_word_sampler_event(tick);
    uintptr_t start = (uintptr_t)address, end = hw_access_end(address, size);
    if (hw_unlikely(__atomic_load_n(&moving_count, __ATOMIC_SEQ_CST) != 0))
        wait_for_moving(start, end);
    if (hw_unlikely(!hw_layout_of(address)) && !hw_layout_is_own(address)) {
        start = HW_ALIGN_UP(start, (uintptr_t)hw_shadow.granule);
        end &= ~((uintptr_t)hw_shadow.granule - 1);
    }
    if (hw_likely(start < end) && hw_unlikely(!are_clear(start, end)))
        hw_cells_clear(start, end);
    hw_watch_allocated(mib->allocations, (uintptr_t)address, size);
    uint64_t type = __heapwise_type;
    if (hw_unlikely(type != 0)) {
        struct hw_access *entry = entry_of(mib);
        __heapwise_type = 0;
        if (!entry->type)
            entry->type = type;
        else if (entry->type != type)
            entry->flags |= HW_ACCESS_TYPES_DIFFER;
    }
    if (hw_unlikely(!hw_self_plane))
        hw_shadow_attach();
}

static __attribute__((noinline)) void freed_unusual(const struct hw_mib *mib, void *address,
                                                    const struct hw_block *block, uint64_t lifetime,
                                                    uint32_t free_context)
{
    struct hw_cell_sum sum = {.owner = {.context = block->context, .start = (uintptr_t)address}};
    struct hw_histogram_target target, *counts = hw_histogram_of_freed(&target, mib, free_context, address);
    bool owned = owns_cells(address, block);
    if (hw_likely(owned))
        hw_cells_scan((uintptr_t)address, hw_access_end(address, block->size), true, &sum, counts);
    else
        hw_cells_scan_shared((uintptr_t)address, hw_access_end(address, block->size), &sum, counts);
    add_block(entry_of(mib), &sum, block->size, lifetime, owned);
}

void hw_access_freed(const struct hw_mib *mib, void *address, const struct hw_block *block, uint64_t lifetime,
                     uint32_t free_context)
{
    uintptr_t start = (uintptr_t)address, end = hw_access_end(address, block->size), plane;
    if (hw_unlikely(hw_watch_freed(start, block->size)))
        entry_of(mib)->unseen_writes++;
    if (hw_likely(block->layout) && are_usual(start, end) &&
        (plane = hw_likely(hw_shadow.planes_used == 1) ? hw_shadow.base : only_plane(start, end)) != 0) {
        struct hw_cell_sum sum = {0};
        scan_one_plane(plane, start, end, &sum);
        add_block(entry_of(mib), &sum, block->size, lifetime, owns_cells(address, block));
        return;
    }
    if (hw_shadow.granule == 4 && hw_likely(block->layout)) {
        struct hw_cell_sum sum = {.owner = {.context = block->context, .start = start}};
        hw_words_freed(mib, free_context, start, end, &sum);
        add_block(entry_of(mib), &sum, block->size, lifetime, true);
        return;
    }
    freed_unusual(mib, address, block, lifetime, free_context);
}

/* ---- blocks of the program's own allocators ---- */

void hw_access_pool_allocated(void *address, size_t size)
{
    struct hw_cell_range range = hw_access_pool_range(address, size);
    if (range.start < range.end)
        hw_cells_clear(range.start, range.end);
    hw_shadow_attach();
}

void hw_access_pool_freed(const struct hw_mib *mib, void *address, const struct hw_block *block, uint64_t lifetime)
{
    struct hw_cell_range range = hw_access_pool_range(address, block->size);
    struct hw_cell_sum sum = {.owner = {.context = block->context, .start = (uintptr_t)address}};
    struct hw_histogram_target target, *counts = hw_histogram_of_freed(&target, mib, HW_NONE, address);
    if (range.start < range.end)
        hw_cells_scan(range.start, range.end, true, &sum, counts);
    hw_access_add_pool_block(entry_of(mib), &sum, address, block, lifetime);
}

/* ---- a block that was moved ---- */

/* What was counted beyond the block's new end stays with it: in its last granule, or, where cells are too small for
 * that, in the entry at once. */
static void keep_tail(const struct hw_mib *mib, uintptr_t start, uintptr_t cut, uintptr_t old_end)
{
    uintptr_t first = HW_ALIGN_UP(cut, (uintptr_t)hw_shadow.granule);
    struct hw_cell_sum sum = {0};
    if (first >= old_end || hw_cells_gather(first, old_end, cut - 1))
        return;
    struct hw_histogram_target target, *counts = NULL;
    if (hw_shadow.granule == 4)
        counts = hw_histogram_of_freed(&target, mib, HW_NONE, (const void *)start);
    hw_cells_scan(first, old_end, true, &sum, counts);
    add_sum(entry_of(mib), &sum);
}

void hw_access_realloc_moved(const struct hw_mib *mib, void *old_address, size_t old_size, void *new_address,
                             size_t size)
{
    uintptr_t from = (uintptr_t)old_address, to = (uintptr_t)new_address;
    uintptr_t old_end = hw_access_end(old_address, old_size), end = hw_access_end(new_address, size);
    uintptr_t kept = end - to < old_end - from ? end - to : old_end - from; /* bytes */
    uintptr_t granule = hw_shadow.granule;
    if (!hw_layout_of(new_address)) { /* one from before accesses were counted, which stays like that */
        struct hw_cell_sum sum = {0};
        if (from != to) {
            hw_cells_scan_shared(from, old_end, &sum, NULL);
            add_sum(entry_of(mib), &sum);
        }
        to = HW_ALIGN_UP(from == to ? old_end : to, granule);
        end &= ~(granule - 1);
        if (to < end)
            hw_cells_clear(to, end);
        return;
    }
    if (from + kept < old_end)
        keep_tail(mib, from, from + kept, old_end);
    if (from == to) { /* what it grew by is clean from now on, but for the granule that was the block's already */
        uintptr_t first = HW_ALIGN_UP(old_end, granule);
        if (first < end) {
            if (moving_count > 1) /* others than this one */
                wait_for_moving(first, end);
            hw_cells_clear(first, end);
        }
        return;
    }
    if (moving_count > 1)
        wait_for_moving(to, end);
    if (from < end && to < old_end && hw_shadow.granule == 4) {
        if (to < from)
            hw_cells_clear(to, from);
        if (old_end < end)
            hw_cells_clear(old_end, end);
        hw_cells_move(from, to, from + kept);
        return;
    }
    if (from < end && to < old_end) { /* shifted by 16 bytes: the cells are the same but for the first and last */
        struct hw_cell_sum sum = {0};
        hw_cells_scan(from, from + kept, true, &sum, NULL);
        hw_cells_clear(to, end);
        add_sum(entry_of(mib), &sum);
        return;
    }
    hw_cells_clear(to, end);
    hw_cells_move(from, to, from + kept);
}

/* ---- start and reset ---- */

bool hw_access_start(void)
{
    hw_watch_forget();
    moving_count = 0;
    for (int i = 0; i < MOVING_MOST; i++)
        moving[i] = (struct moving){0};
    if (!hw_histograms_start() || !hw_words_start() || !hw_layout_start())
        return false;
    if (HW_ENTRIES(HW_POOL_ACCESS_INFO) == 0 && hw_pool_take(HW_POOL_ACCESS_INFO, 1) == HW_NONE)
        return false;
    hw_pool_publish(HW_POOL_ACCESS_INFO);
    hw_harvest_write_info();
    hw_shadow_threads_start();
    hw_word_sampler_start();
    return true;
}

/* Without memory for words the child goes on, as far as it gets. */
void hw_access_fork(void)
{
    hw_access_start();
}

/* A library came that counts. What was allocated before does not own its cells. */
void hw_access_late(uint32_t granule)
{
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    bool fine = hw_file_add_access();
    uint32_t mibs = (uint32_t)HW_ENTRIES(HW_POOL_MIBS);
    if (fine && hw_pool_take(HW_POOL_ACCESS, mibs) != HW_NONE) {
        for (uint32_t i = 0; i < mibs; i++)
            hw_access_clear_entry(HW_ENTRY(HW_POOL_ACCESS, struct hw_access, i),
                                  HW_ENTRY(HW_POOL_MIBS, struct hw_mib, i)->context);
        hw_pool_publish(HW_POOL_ACCESS);
        hw_shadow_set_granule(granule);
        hw_blocks_access();
        fine = hw_access_start();
        hw_sharing_start();
        hw_runtime.process->mode = HW_MODE_ACCESS;
    }
    int64_t before = hw_runtime.process->live_blocks;
    hw_lock_drop(&hw_runtime.lock, old);
    if (!fine)
        hw_note(HW_NOTE_FILE_FULL, hw_file_problem());
    if (before > 0)
        hw_note(HW_NOTE_NOT_OWNED, "allocated before the first library that counts accesses was loaded");
    if (hw_memprof_granule())
        hw_memprof_start();
    hw_shadow_attach();
    hw_signals_start();
}

void hw_access_reset(void)
{
    if (!hw_pools[HW_POOL_ACCESS_INFO].used)
        return;
    /* Everything in one go: the reservation holds nothing but planes. */
    hw_watch_forget();
    hw_madvise(hw_shadow.base, hw_shadow.bytes, MADV_DONTNEED);
    hw_shadow_side_clear();
    hw_word_sampler_reset();
    for (uint32_t i = 1; i < HW_ENTRIES(HW_POOL_ACCESS); i++) {
        struct hw_access *entry = HW_ENTRY(HW_POOL_ACCESS, struct hw_access, i);
        uint64_t type = entry->type;
        uint32_t flags = entry->flags;
        hw_access_clear_entry(entry, entry->context);
        entry->type = type; /* of blocks that live on */
        entry->flags = flags;
    }
    hw_histograms_reset();
    hw_words_reset();
    hw_globals_reset();
    hw_access_forget_harvest();
}
