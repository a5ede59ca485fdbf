/* access.c - from the cells of a block to what the profile says of its context.
 *
 * A block is harvested when it is freed: its cells in all planes are added up and cleared, which leaves them clean for
 * the next block at that place. They are looked at once more when a block is handed out, since what lay there before
 * may have been something else (a stack, a mapping). Long blocks are gone through by pages of the shadow that are there
 * at all; those are given back afterwards.
 *
 * A harvest of the live ones only reads, and writes its result over that of the one before.
 *
 * When realloc moves a block, the old place may belong to another thread before its cells could be looked at. So it is
 * announced before (struct moving), and whoever gets memory there waits. */
#include "runtime/runtime.h"

#include "base/abi.h"
#include "runtime/count.h"

typedef uint64_t cell_64 __attribute__((may_alias));

#define LONG_BYTES  (128ul << 10)                /* of the program's memory */
#define SHADOW_PAGE (HW_PAGE << 3)               /* program memory that one page of shadow stands for */
#define WORDS_MOST  (HW_HISTOGRAM_WORDS * 256ul) /* of a block in histograms: 124 KiB */
#define LANE_LOW    0x0101010101010101ull
#define LANE_HIGH   0x8080808080808080ull

/* What was found in the cells of a range. */
struct sum {
    uint64_t reads, writes, unsplit;
    uint64_t granules, touched;
    uint64_t shared, shared_written, shared_writers;
    uint64_t lines_false, lines_true, saturated;
};

/* Planes that are looked at. */
struct list {
    const uintptr_t *plane;
    uint32_t count;
    uintptr_t memprof; /* 0: not */
};

static inline struct list all_planes(void)
{
    return (struct list){hw_shadow.plane, __atomic_load_n(&hw_shadow.planes_used, __ATOMIC_ACQUIRE),
                         hw_shadow.memprof_used ? hw_shadow.memprof : 0};
}

/* ---- histograms, with 8-byte granules ---- */

struct histogram {
    enum hw_pool_id pool;
    uint32_t context;
    uint32_t *chunk; /* index + 1 of the entry of each run of words; 256 */
    uintptr_t start; /* of the block */
};

/* For each MIB (freed blocks) or context (live ones): which table of chunks; tables are carved from one range. */
static struct {
    uint32_t *freed, *live; /* table + 1 */
    uint32_t (*tables)[256];
    uint32_t used;
} histograms;

static void add_word(struct histogram *histogram, uintptr_t address, uint64_t count, bool saturated)
{
    uint64_t word = (address - histogram->start) / 8, chunk = word / HW_HISTOGRAM_WORDS;
    if (!histogram->chunk || word >= WORDS_MOST)
        return;
    if (hw_unlikely(!histogram->chunk[chunk])) {
        hw_sigset old = 0;
        bool live = histogram->pool == HW_POOL_HISTOGRAM_LIVE; /* then the lock is held */
        if (!live)
            old = hw_lock_take(&hw_runtime.lock);
        uint32_t index = hw_pool_take(histogram->pool, 1);
        if (index != HW_NONE) {
            *HW_ENTRY(histogram->pool, struct hw_histogram, index) = (struct hw_histogram){
                .context = histogram->context, .first_word = (uint32_t)(chunk * HW_HISTOGRAM_WORDS)};
            hw_pool_publish(histogram->pool);
            histogram->chunk[chunk] = index + 1;
        }
        if (!live)
            hw_lock_drop(&hw_runtime.lock, old);
        if (index == HW_NONE)
            return;
    }
    struct hw_histogram *entry = HW_ENTRY(histogram->pool, struct hw_histogram, histogram->chunk[chunk] - 1);
    entry->words[word % HW_HISTOGRAM_WORDS] += count;
    entry->saturated += saturated;
}

/* OWNER is an index into TABLE_OF. */
static uint32_t *chunks_of(uint32_t *table_of, uint32_t owner)
{
    if (!table_of)
        return NULL;
    if (!table_of[owner]) {
        uint32_t table = __atomic_fetch_add(&histograms.used, 1, __ATOMIC_RELAXED);
        if (table >= 1u << 22)
            return NULL;
        table_of[owner] = table + 1;
    }
    return histograms.tables[table_of[owner] - 1];
}

/* ---- cells ---- */

static inline void share(struct sum *sum, uint32_t users, uint32_t writers)
{
    if (users > 1) {
        sum->shared++;
        sum->shared_written += writers > 0;
        sum->shared_writers += writers > 1;
    }
}

static inline void scan_granule_64(const struct list *list, uintptr_t granule, bool take, struct sum *sum)
{
    uint32_t users = 0, writers = 0;
    bool touched = false;
    for (uint32_t i = 0; i < list->count; i++) {
        cell_64 *cell = (cell_64 *)(list->plane[i] + (granule << 3));
        uint64_t value = *cell;
        if (!value)
            continue;
        if (take)
            *cell = 0;
        sum->reads += (uint32_t)value;
        sum->writes += value >> 32;
        users++;
        writers += value >> 32 != 0;
    }
    if (hw_unlikely(list->memprof != 0)) {
        cell_64 *cell = (cell_64 *)(list->memprof + (granule << 3));
        uint64_t value = *cell;
        if (value && take)
            *cell = 0;
        sum->unsplit += value;
        touched = value != 0;
    }
    if (users || touched)
        sum->touched++;
    share(sum, users, writers);
}

/* The usual case: one plane, a few granules. Which cells are zero, and how many there are, cannot be predicted: so
 * there are no conditions, and up to UNROLLED cells the last one is looked at again instead of stopping there. When it
 * is, it is zero. */
#define UNROLLED 5
static inline __attribute__((always_inline)) void scan_one_plane(uintptr_t plane, uintptr_t start, uintptr_t end,
                                                                 struct sum *sum)
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

static inline bool is_usual(uintptr_t start, uintptr_t end)
{
    return hw_likely(end - start < LONG_BYTES && !(hw_shadow.memprof_used | hw_shadow.carried) &&
                     hw_shadow.granule == 64);
}

static inline bool is_clear(uintptr_t plane, uintptr_t start, uintptr_t end)
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

static inline bool all_clear(uintptr_t start, uintptr_t end)
{
    uint32_t count = __atomic_load_n(&hw_shadow.planes_used, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++)
        if (!is_clear(hw_shadow.plane[i], start, end))
            return false;
    return true;
}

/* The one plane in which there are counts of the block (any, if there are none); 0 if there are several. Most blocks
 * are one thread's. */
static uintptr_t only_plane(uintptr_t start, uintptr_t end)
{
    uint32_t count = __atomic_load_n(&hw_shadow.planes_used, __ATOMIC_ACQUIRE);
    uintptr_t plane = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!is_clear(hw_shadow.plane[i], start, end)) {
            if (plane)
                return 0;
            plane = hw_shadow.plane[i];
        }
    return plane ? plane : hw_shadow.base;
}

static void scan_64(const struct list *list, uintptr_t start, uintptr_t end, bool take, struct sum *sum)
{
    uintptr_t first = start >> 6, last = (end - 1) >> 6;
    sum->granules += last - first + 1;
    for (uintptr_t granule = first; granule <= last; granule++)
        scan_granule_64(list, granule, take, sum);
    if (hw_unlikely(hw_shadow.carried))
        for (uint32_t i = 0; i < list->count; i++) {
            uint64_t more[2];
            uintptr_t plane = list->plane[i];
            if (hw_shadow_side(plane + (first << 3), plane + ((last + 1) << 3), take, more)) {
                sum->reads += more[0];
                sum->writes += more[1];
            }
        }
}

static inline uint64_t lanes_set(uint64_t value) /* 0xff in each byte that is not 0 */
{
    uint64_t low = (value & ~LANE_HIGH) + ~LANE_HIGH;
    return (((low | value) & LANE_HIGH) >> 7) * 255;
}

static inline uint32_t lane_count(uint64_t value) /* bytes that are not 0 */
{
    return (uint32_t)((lanes_set(value) & LANE_LOW) * LANE_LOW >> 56);
}

static inline uint64_t lane_sum(uint64_t value)
{
    uint64_t pairs = (value & 0x00ff00ff00ff00ffull) + (value >> 8 & 0x00ff00ff00ff00ffull);
    return pairs * 0x0001000100010001ull >> 48;
}

static inline uint64_t saturated_lanes(uint64_t value)
{
    return ~lanes_set(~value);
}

/* The 8 words of one 64-byte line, of which MASK selects those of the block. */
static void scan_line_8(const struct list *list, uintptr_t line, uint64_t mask, bool take, struct sum *sum,
                        struct histogram *histogram)
{
    uint64_t touched = 0, twice = 0, written = 0, written_twice = 0, saturated = 0;
    uint32_t users = 0, writers = 0;
    uint32_t counts[8] = {0};
    bool keep_counts = histogram != NULL;
    for (uint32_t i = 0; i <= list->count; i++) {
        bool memprof = i == list->count;
        uintptr_t plane = memprof ? list->memprof : list->plane[i];
        if (!plane)
            continue;
        cell_64 *reads_cell = (cell_64 *)(plane + (line << 3));
        cell_64 *writes_cell = (cell_64 *)((uintptr_t)reads_cell + HW_ABI_WRITES_OFFSET);
        uint64_t reads = *reads_cell & mask, writes = memprof ? 0 : *writes_cell & mask;
        if (!(reads | writes))
            continue;
        if (take) {
            if (reads)
                *reads_cell &= ~mask;
            if (writes)
                *writes_cell &= ~mask;
        }
        *(memprof ? &sum->unsplit : &sum->reads) += lane_sum(reads);
        sum->writes += lane_sum(writes);
        uint64_t full_reads = saturated_lanes(reads), full_writes = saturated_lanes(writes);
        sum->saturated += lane_count(full_reads) + lane_count(full_writes);
        saturated |= full_reads | full_writes;
        uint64_t set = lanes_set(reads | writes), set_writes = lanes_set(writes);
        if (!memprof) {
            twice |= touched & set;
            written_twice |= written & set_writes;
            written |= set_writes;
            users++;
            writers += writes != 0;
        }
        touched |= set;
        if (keep_counts)
            for (int word = 0; word < 8; word++)
                counts[word] += (reads >> 8 * word & 255) + (writes >> 8 * word & 255);
    }
    if (!touched)
        return;
    sum->touched += lane_count(touched);
    sum->shared += lane_count(twice);
    sum->shared_written += lane_count(twice & written);
    sum->shared_writers += lane_count(written_twice);
    if (users > 1 && writers) {
        if (twice & written)
            sum->lines_true++;
        else
            sum->lines_false++;
    }
    for (int word = 0; keep_counts && word < 8; word++)
        if (counts[word])
            add_word(histogram, (line << 6) + 8 * (uintptr_t)word, counts[word], (saturated >> 8 * word & 255) != 0);
}

static void scan_8(const struct list *list, uintptr_t start, uintptr_t end, bool take, struct sum *sum,
                   struct histogram *histogram)
{
    sum->granules += ((end - 1) >> 3) - (start >> 3) + 1;
    for (uintptr_t line = start >> 6; line <= (end - 1) >> 6; line++) {
        uint64_t mask = ~0ull;
        if (line == start >> 6)
            mask &= ~0ull << 8 * (start >> 3 & 7);
        if (line == (end - 1) >> 6)
            mask &= ~0ull >> 8 * (7 - ((end - 1) >> 3 & 7));
        scan_line_8(list, line, mask, take, sum, histogram);
    }
}

static inline void scan_cells(const struct list *list, uintptr_t start, uintptr_t end, bool take, struct sum *sum,
                              struct histogram *histogram)
{
    if (hw_likely(hw_shadow.granule == 64))
        scan_64(list, start, end, take, sum);
    else
        scan_8(list, start, end, take, sum, histogram);
}

/* ---- long ranges: by pages of the shadow ---- */

/* Which of COUNT pages of shadow from AT on are there: a byte each, bit 0. */
static void resident(uintptr_t at, uint64_t count, uint8_t *there)
{
    if (hw_quiet || hw_sys(SYS_mincore, at, count * HW_PAGE, there) < 0)
        for (uint64_t i = 0; i < count; i++)
            there[i] = 1;
}

/* START and END are multiples of SHADOW_PAGE. */
static void scan_pages(const struct list *list, uintptr_t start, uintptr_t end, bool take, struct sum *sum,
                       struct histogram *histogram)
{
    bool writes_too = hw_shadow.granule == 8;
    uint8_t there[2048], more[sizeof there + 1];
    uintptr_t present[HW_PLANES_MOST];
    uint64_t all = (end - start) / SHADOW_PAGE, batch = sizeof there / (list->count + 1);
    for (uint64_t first = 0; first < all; first += batch) {
        uint64_t count = all - first < batch ? all - first : batch;
        uintptr_t offset = (start >> 3) + first * HW_PAGE;
        for (uint32_t i = 0; i <= list->count; i++) {
            uintptr_t plane = i < list->count ? list->plane[i] : list->memprof;
            uint8_t *row = there + i * batch;
            if (!plane)
                continue;
            resident(plane + offset, count, row);
            if (writes_too && i < list->count) { /* those cells lie in two pages: the offset is no multiple of one */
                uintptr_t at = plane + offset + HW_ABI_WRITES_OFFSET;
                resident(at & ~(HW_PAGE - 1), count + 1, more);
                for (uint64_t page = 0; page < count; page++)
                    row[page] |= more[page] | more[page + 1];
            }
        }
        for (uint64_t page = 0; page < count; page++) {
            struct list here = {present, 0, list->memprof && there[list->count * batch + page] & 1 ? list->memprof : 0};
            for (uint32_t i = 0; i < list->count; i++)
                if (there[i * batch + page] & 1)
                    present[here.count++] = list->plane[i];
            uintptr_t from = start + (first + page) * SHADOW_PAGE;
            if (here.count || here.memprof)
                scan_cells(&here, from, from + SHADOW_PAGE, take, sum, histogram);
            else
                sum->granules += SHADOW_PAGE / hw_shadow.granule;
        }
    }
}

/* Gives the shadow of [start, end) back: it reads as zero. Multiples of SHADOW_PAGE. */
static void drop_pages(const struct list *list, uintptr_t start, uintptr_t end)
{
    uintptr_t bytes = (end - start) >> 3;
    for (uint32_t i = 0; i <= list->count; i++) {
        uintptr_t plane = i < list->count ? list->plane[i] : list->memprof;
        if (!plane)
            continue;
        hw_sys(SYS_madvise, plane + (start >> 3), bytes, 4 /* MADV_DONTNEED */);
        if (hw_shadow.granule == 8 && i < list->count) {
            uintptr_t at = plane + (start >> 3) + HW_ABI_WRITES_OFFSET;
            uintptr_t first = HW_ALIGN_UP(at, HW_PAGE), last = (at + bytes) & ~(HW_PAGE - 1);
            if (last > first)
                hw_sys(SYS_madvise, first, last - first, 4);
        }
    }
}

static void scan(uintptr_t start, uintptr_t end, bool take, struct sum *sum, struct histogram *histogram)
{
    struct list list = all_planes();
    if (hw_likely(end - start < LONG_BYTES)) {
        scan_cells(&list, start, end, take, sum, histogram);
        return;
    }
    uintptr_t first = HW_ALIGN_UP(start, SHADOW_PAGE), last = end & ~(SHADOW_PAGE - 1);
    if (start < first)
        scan_cells(&list, start, first, take, sum, histogram);
    scan_pages(&list, first, last, take, sum, histogram);
    if (last < end)
        scan_cells(&list, last, end, take, sum, histogram);
    if (take && !hw_quiet)
        drop_pages(&list, first, last);
}

/* A block that may share its first and last granule with others: what is counted there stays there, for them. */
static void scan_shared(uintptr_t start, uintptr_t end, struct sum *sum, struct histogram *histogram)
{
    uintptr_t granule = hw_shadow.granule, first = HW_ALIGN_UP(start, granule), last = end & ~(granule - 1);
    if (first >= last) {
        scan(start, end, false, sum, histogram);
        return;
    }
    if (start < first)
        scan(start, first, false, sum, histogram);
    scan(first, last, true, sum, histogram);
    if (last < end)
        scan(last, end, false, sum, histogram);
}

/* ---- clearing ---- */

static inline void clear_cells(const struct list *list, uintptr_t start, uintptr_t end)
{
    if (hw_likely(hw_shadow.granule == 64)) {
        for (uint32_t i = 0; i < list->count; i++)
            for (uintptr_t granule = start >> 6; granule <= (end - 1) >> 6; granule++) {
                cell_64 *cell = (cell_64 *)(list->plane[i] + (granule << 3));
                if (hw_unlikely(*cell))
                    *cell = 0;
            }
        if (hw_unlikely(list->memprof != 0))
            for (uintptr_t granule = start >> 6; granule <= (end - 1) >> 6; granule++)
                *(cell_64 *)(list->memprof + (granule << 3)) = 0;
        return;
    }
    struct sum unused = {0};
    scan_8(list, start, end, true, &unused, NULL);
}

static void clear_range(uintptr_t start, uintptr_t end)
{
    struct list list = all_planes();
    if (hw_likely(end - start < LONG_BYTES || hw_quiet)) {
        clear_cells(&list, start, end);
    } else {
        uintptr_t first = HW_ALIGN_UP(start, SHADOW_PAGE), last = end & ~(SHADOW_PAGE - 1);
        if (start < first)
            clear_cells(&list, start, first);
        if (hw_shadow.granule == 8) { /* cells of writes at the edges of pages */
            struct sum unused = {0};
            scan_pages(&list, first, last, true, &unused, NULL);
        }
        drop_pages(&list, first, last);
        if (last < end)
            clear_cells(&list, last, end);
    }
    uint64_t more[2];
    for (uint32_t i = 0; hw_unlikely(hw_shadow.carried) && i < list.count; i++)
        hw_shadow_side(list.plane[i] + (start >> 6 << 3), list.plane[i] + (((end - 1) >> 6) + 1) * 8, true, more);
}

/* ---- single granules ---- */

void hw_access_each_granule(uintptr_t start, uintptr_t end, bool take,
                            void (*each)(uintptr_t address, const struct hw_global_granule *counts))
{
    struct list list = all_planes();
    uintptr_t present[HW_PLANES_MOST], size = hw_shadow.granule;
    for (uintptr_t page = start & ~(SHADOW_PAGE - 1); page < end; page += SHADOW_PAGE) {
        struct list here = {present, 0, 0};
        for (uint32_t i = 0; i <= list.count; i++) {
            uintptr_t plane = i < list.count ? list.plane[i] : list.memprof, at = plane + (page >> 3);
            uint8_t there[3] = {0};
            if (!plane)
                continue;
            resident(at, 1, there);
            if (size == 8 && i < list.count)
                resident((at + HW_ABI_WRITES_OFFSET) & ~(HW_PAGE - 1), 2, there + 1);
            if (!((there[0] | there[1] | there[2]) & 1))
                continue;
            if (i < list.count)
                present[here.count++] = plane;
            else
                here.memprof = plane;
        }
        uintptr_t first = page < start ? start & ~(size - 1) : page;
        for (uintptr_t at = first; (here.count || here.memprof) && at < end && at < page + SHADOW_PAGE; at += size) {
            struct sum sum = {0};
            scan_cells(&here, at, at + size, take, &sum, NULL);
            uintptr_t hole_end;
            if (!sum.touched || (!take && hw_pool_hole(at, at + size, 0, &hole_end) == at))
                continue;
            struct hw_global_granule counts = {.reads = sum.reads, .writes = sum.writes, .unsplit = sum.unsplit};
            counts.flags = (sum.shared ? 1u : 0) | (sum.shared_written ? 2u : 0) | (sum.shared_writers ? 4u : 0) |
                           (sum.saturated ? 8u : 0);
            each(at, &counts);
        }
    }
}

/* ---- entries ---- */

static inline struct hw_access *entry_of(const struct hw_mib *mib)
{
    return HW_ENTRY(HW_POOL_ACCESS, struct hw_access, mib - HW_ENTRY(HW_POOL_MIBS, struct hw_mib, 0));
}

static void reset_entry(struct hw_access *entry, uint32_t context)
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
        reset_entry(entry_of(mib), context);
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

static inline void add_sum(struct hw_access *entry, const struct sum *sum)
{
    entry->reads += sum->reads;
    entry->writes += sum->writes;
    entry->unsplit += sum->unsplit;
    entry->saturated_cells += sum->saturated;
    if (hw_unlikely(sum->shared | sum->lines_false)) {
        entry->shared_granules += sum->shared;
        entry->shared_written += sum->shared_written;
        entry->shared_writers += sum->shared_writers;
        entry->lines_false_shared += sum->lines_false;
        entry->lines_true_shared += sum->lines_true;
    }
}

/* LIFETIME in ticks. */
static inline __attribute__((always_inline)) void add_block(struct hw_access *entry, const struct sum *sum,
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

static inline uintptr_t end_of(const void *address, uint64_t size)
{
    return (uintptr_t)address + (size ? size : 1);
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

void hw_access_realloc_begin(struct hw_thread *thread, void *address, const struct hw_block *block)
{
    struct moving *mine = NULL;
    for (uint32_t i = 0; !mine; i = (i + 1) % MOVING_MOST) {
        const struct hw_thread *none = NULL;
        if (__atomic_compare_exchange_n(&moving[i].thread, &none, thread, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            mine = &moving[i];
        else
            hw_arch_pause();
    }
    mine->end = end_of(address, block->size);
    __atomic_store_n(&mine->start, (uintptr_t)address, __ATOMIC_RELEASE);
    __atomic_fetch_add(&moving_count, 1, __ATOMIC_SEQ_CST);
}

void hw_access_realloc_end(struct hw_thread *thread)
{
    struct moving *mine = moving_of(thread);
    if (!mine)
        return;
    __atomic_store_n(&mine->start, 0, __ATOMIC_RELEASE);
    __atomic_fetch_sub(&moving_count, 1, __ATOMIC_SEQ_CST);
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

void hw_access_allocated(const struct hw_mib *mib, void *address, size_t size, uint64_t tick)
{
    if (hw_unlikely(tick >= hw_shadow.sweep_next))
        hw_shadow_sweep();
    uintptr_t start = (uintptr_t)address, end = end_of(address, size);
    if (hw_unlikely(__atomic_load_n(&moving_count, __ATOMIC_SEQ_CST) != 0))
        wait_for_moving(start, end);
    if (hw_unlikely(!hw_layout_of(address)) && !hw_layout_is_own(address)) {
        start = HW_ALIGN_UP(start, (uintptr_t)hw_shadow.granule);
        end &= ~((uintptr_t)hw_shadow.granule - 1);
    }
    if (hw_likely(start < end) && (!is_usual(start, end) || hw_unlikely(!all_clear(start, end))))
        clear_range(start, end);
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
                                                    const struct hw_block *block, uint64_t lifetime)
{
    struct sum sum = {0};
    struct histogram histogram, *counts = NULL;
    bool owned = owns_cells(address, block);
    if (hw_unlikely(hw_shadow.granule == 8)) {
        uint32_t *chunk = chunks_of(histograms.freed, (uint32_t)(mib - HW_ENTRY(HW_POOL_MIBS, struct hw_mib, 0)));
        histogram = (struct histogram){HW_POOL_HISTOGRAM, mib->context, chunk, (uintptr_t)address & ~7ul};
        counts = &histogram;
    }
    if (hw_likely(owned))
        scan((uintptr_t)address, end_of(address, block->size), true, &sum, counts);
    else
        scan_shared((uintptr_t)address, end_of(address, block->size), &sum, counts);
    add_block(entry_of(mib), &sum, block->size, lifetime, owned);
}

void hw_access_freed(const struct hw_mib *mib, void *address, const struct hw_block *block, uint64_t lifetime)
{
    uintptr_t start = (uintptr_t)address, end = end_of(address, block->size), plane;
    if (hw_likely(block->layout) && is_usual(start, end) &&
        (plane = hw_likely(hw_shadow.planes_used == 1) ? hw_shadow.base : only_plane(start, end)) != 0) {
        struct sum sum = {0};
        scan_one_plane(plane, start, end, &sum);
        add_block(entry_of(mib), &sum, block->size, lifetime, owns_cells(address, block));
        return;
    }
    freed_unusual(mib, address, block, lifetime);
}

/* ---- blocks of the program's own allocators: a granule is of the block that holds its first byte ---- */

struct range {
    uintptr_t start, end;
};

static struct range pool_range(const void *address, uint64_t size)
{
    uintptr_t start = (uintptr_t)address, granule = hw_shadow.granule;
    return (struct range){HW_ALIGN_UP(start, granule), HW_ALIGN_UP(start + size, granule)};
}

static void add_pool_block(struct hw_access *entry, struct sum *sum, const void *address, const struct hw_block *block,
                           uint64_t lifetime)
{
    uintptr_t start = (uintptr_t)address;
    sum->granules += sum->granules == 0;
    add_block(entry, sum, block->size, lifetime, ((start | (start + block->size)) & (hw_shadow.granule - 1)) == 0);
}

void hw_access_pool_allocated(void *address, size_t size)
{
    struct range range = pool_range(address, size);
    if (range.start < range.end)
        clear_range(range.start, range.end);
    hw_shadow_attach();
}

void hw_access_pool_freed(const struct hw_mib *mib, void *address, const struct hw_block *block, uint64_t lifetime)
{
    struct range range = pool_range(address, block->size);
    struct sum sum = {0};
    struct histogram histogram, *counts = NULL;
    if (hw_unlikely(hw_shadow.granule == 8)) {
        uint32_t *chunk = chunks_of(histograms.freed, (uint32_t)(mib - HW_ENTRY(HW_POOL_MIBS, struct hw_mib, 0)));
        histogram = (struct histogram){HW_POOL_HISTOGRAM, mib->context, chunk, (uintptr_t)address & ~7ul};
        counts = &histogram;
    }
    if (range.start < range.end)
        scan(range.start, range.end, true, &sum, counts);
    add_pool_block(entry_of(mib), &sum, address, block, lifetime);
}

/* ---- a block that was moved ---- */

/* Adds the counts of a granule's cell to another one's, in one plane. */
static void move_cell_64(uintptr_t plane, uintptr_t from, uintptr_t to)
{
    cell_64 *source = (cell_64 *)(plane + (from << 3)), *target = (cell_64 *)(plane + (to << 3));
    uint64_t value = *source;
    if (!value)
        return;
    *source = 0;
    if (hw_likely(!*target))
        *target = value;
    else {
        hw_shadow_carry(target, 0, (uint32_t)value);
        hw_shadow_carry(target, 1, value >> 32);
    }
    uint64_t more[2];
    if (hw_unlikely(hw_shadow.carried) && hw_shadow_side((uintptr_t)source, (uintptr_t)source + 8, true, more))
        hw_shadow_side_add((uintptr_t)target, more);
}

static void move_cells_8(uintptr_t plane, bool memprof, uintptr_t from, uintptr_t to, uintptr_t end)
{
    for (uintptr_t word = from >> 3; word <= (end - 1) >> 3; word++) {
        uint8_t *source = (uint8_t *)(plane + word), *target = (uint8_t *)(plane + (to >> 3) + word - (from >> 3));
        *target = *source;
        *source = 0;
        if (memprof)
            continue;
        target[HW_ABI_WRITES_OFFSET] = source[HW_ABI_WRITES_OFFSET];
        source[HW_ABI_WRITES_OFFSET] = 0;
    }
}

static struct {
    uintptr_t from, to, end; /* of the part that is moved */
    uintptr_t plane;
} move; /* under move_lock */
static struct hw_lock move_lock;

/* [start, end) of a plane's shadow is there: move the cells in it. */
static void move_present(uintptr_t start, uintptr_t end)
{
    uintptr_t first = (start - move.plane) >> 3, last = (end - move.plane - 1) >> 3;
    first = first < move.from >> 6 ? move.from >> 6 : first;
    last = last > (move.end - 1) >> 6 ? (move.end - 1) >> 6 : last;
    for (uintptr_t granule = first; granule <= last; granule++) {
        uintptr_t begin = granule << 6 < move.from ? move.from : granule << 6;
        uintptr_t target = (move.to + (begin - move.from)) >> 6;
        move_cell_64(move.plane, granule, target);
    }
}

/* The cells of [from, end) go to where [to, …) is; the two do not overlap. */
static void move_counts(uintptr_t from, uintptr_t to, uintptr_t end)
{
    struct list list = all_planes();
    if (hw_shadow.granule == 8) {
        for (uint32_t i = 0; i < list.count; i++)
            move_cells_8(list.plane[i], false, from, to, end);
        if (list.memprof)
            move_cells_8(list.memprof, true, from, to, end);
        return;
    }
    bool is_long = end - from >= LONG_BYTES && !hw_quiet;
    hw_sigset old = 0;
    if (is_long)
        old = hw_lock_take(&move_lock);
    for (uint32_t i = 0; i <= list.count; i++) {
        uintptr_t plane = i < list.count ? list.plane[i] : list.memprof;
        if (!plane)
            continue;
        if (!is_long) {
            for (uintptr_t granule = from >> 6; granule <= (end - 1) >> 6; granule++) {
                uintptr_t begin = granule << 6 < from ? from : granule << 6;
                move_cell_64(plane, granule, (to + (begin - from)) >> 6);
            }
            continue;
        }
        move.from = from;
        move.to = to;
        move.end = end;
        move.plane = plane;
        hw_resident_each(plane + (from >> 6 << 3), plane + ((end - 1) >> 6 << 3) + 8, move_present);
    }
    if (is_long)
        hw_lock_drop(&move_lock, old);
}

/* What was counted beyond the block's new end stays with it: in its last granule, or, where cells are too small for
 * that, in the entry at once. */
static void keep_tail(const struct hw_mib *mib, uintptr_t start, uintptr_t cut, uintptr_t old_end)
{
    uintptr_t first = HW_ALIGN_UP(cut, (uintptr_t)hw_shadow.granule);
    if (first >= old_end)
        return;
    struct list list = all_planes();
    struct sum sum = {0};
    if (hw_shadow.granule == 64 && !list.memprof && old_end - first < LONG_BYTES) {
        for (uint32_t i = 0; i < list.count; i++)
            for (uintptr_t granule = first >> 6; granule <= (old_end - 1) >> 6; granule++)
                move_cell_64(list.plane[i], granule, (cut - 1) >> 6);
        return;
    }
    (void)start;
    scan(first, old_end, true, &sum, NULL);
    add_sum(entry_of(mib), &sum);
}

void hw_access_realloc_moved(const struct hw_mib *mib, void *old_address, size_t old_size, void *new_address,
                             size_t size)
{
    uintptr_t from = (uintptr_t)old_address, to = (uintptr_t)new_address;
    uintptr_t old_end = end_of(old_address, old_size), end = end_of(new_address, size);
    uintptr_t kept = end - to < old_end - from ? end - to : old_end - from; /* bytes */
    uintptr_t granule = hw_shadow.granule;
    if (!hw_layout_of(new_address)) { /* one from before accesses were counted, which stays like that */
        struct sum sum = {0};
        if (from != to) {
            scan_shared(from, old_end, &sum, NULL);
            add_sum(entry_of(mib), &sum);
        }
        to = HW_ALIGN_UP(from == to ? old_end : to, granule);
        end &= ~(granule - 1);
        if (to < end)
            clear_range(to, end);
        return;
    }
    if (from + kept < old_end)
        keep_tail(mib, from, from + kept, old_end);
    if (from == to) { /* what it grew by is clean from now on, but for the granule that was the block's already */
        uintptr_t first = HW_ALIGN_UP(old_end, granule);
        if (first < end) {
            if (moving_count)
                wait_for_moving(first, end);
            clear_range(first, end);
        }
        return;
    }
    if (moving_count)
        wait_for_moving(to, end);
    if (from < end && to < old_end) { /* shifted by 16 bytes: the cells are the same but for the first and last */
        struct sum sum = {0};
        scan(from, from + kept, true, &sum, NULL);
        clear_range(to, end);
        add_sum(entry_of(mib), &sum);
        return;
    }
    clear_range(to, end);
    move_counts(from, to, from + kept);
}

/* ---- the harvest of what is live ---- */

static struct {
    uint32_t *index; /* by context: entry + 1 */
    uint32_t contexts;
    uint64_t now; /* stamp */
} live;

/* Without the blocks of pools that have begun in there since STAMP: those are told by themselves. */
static void peek(uintptr_t start, uintptr_t end, uint64_t stamp, struct sum *sum, struct histogram *histogram)
{
    for (uintptr_t from = start, hole, hole_end = end; from < end; from = hole < end ? hole_end : end) {
        hole = hw_pool_hole(from, end, stamp, &hole_end);
        if (hole > from)
            scan(from, hole, false, sum, histogram);
    }
}

static void harvest(void *address, const struct hw_block *block, bool of_pool)
{
    uint32_t context = block->context < live.contexts ? block->context : 0;
    if (!live.index[context]) {
        uint32_t index = hw_pool_take(HW_POOL_ACCESS_LIVE, 1);
        if (index == HW_NONE)
            return;
        reset_entry(HW_ENTRY(HW_POOL_ACCESS_LIVE, struct hw_access, index), context);
        live.index[context] = index + 1;
    }
    struct hw_access *entry = HW_ENTRY(HW_POOL_ACCESS_LIVE, struct hw_access, live.index[context] - 1);
    struct sum sum = {0};
    struct histogram histogram, *counts = NULL;
    if (hw_shadow.granule == 8) {
        uint32_t *chunk = chunks_of(histograms.live, context);
        histogram = (struct histogram){HW_POOL_HISTOGRAM_LIVE, context, chunk, (uintptr_t)address & ~7ul};
        counts = &histogram;
    }
    uint64_t age = live.now > block->stamp ? live.now - block->stamp : 0;
    if (of_pool) {
        struct range range = pool_range(address, block->size);
        peek(range.start, range.end, block->stamp, &sum, counts);
        add_pool_block(entry, &sum, address, block, age);
        return;
    }
    peek((uintptr_t)address, end_of(address, block->size), block->stamp, &sum, counts);
    add_block(entry, &sum, block->size, age, owns_cells(address, block));
}

static void harvest_block(void *address, const struct hw_block *block)
{
    harvest(address, block, false);
}

static void harvest_pool_block(void *address, const struct hw_block *block)
{
    harvest(address, block, true);
}

/* The types of contexts are known in the entries of freed blocks, where the allocations are counted, too. */
static void copy_types(void)
{
    for (uint32_t i = 1; i < HW_ENTRIES(HW_POOL_ACCESS); i++) {
        const struct hw_access *from = HW_ENTRY(HW_POOL_ACCESS, struct hw_access, i);
        if (!from->type || from->context >= live.contexts || !live.index[from->context])
            continue;
        struct hw_access *to = HW_ENTRY(HW_POOL_ACCESS_LIVE, struct hw_access, live.index[from->context] - 1);
        if (to->type && to->type != from->type)
            to->flags |= HW_ACCESS_TYPES_DIFFER;
        to->type = to->type ? to->type : from->type;
        to->flags |= from->flags & HW_ACCESS_TYPES_DIFFER;
    }
}

static void write_info(void)
{
    struct hw_access_info *info = HW_ENTRY(HW_POOL_ACCESS_INFO, struct hw_access_info, 0);
    info->flags = (info->flags & HW_ACCESS_HARVESTED) | hw_shadow.access_flags;
    info->granule = hw_shadow.granule;
    info->planes = hw_shadow.planes_used + hw_shadow.memprof_used;
    info->planes_most = hw_shadow.planes_most;
    info->threads_sharing = hw_shadow.threads_sharing;
    info->modules = hw_shadow.modules;
}

static void wipe_live_tables(void)
{
    if (hw_shadow.granule != 8)
        return;
    for (uint32_t i = 0; i < live.contexts; i++)
        if (histograms.live[i])
            for (int chunk = 0; chunk < 256; chunk++)
                histograms.tables[histograms.live[i] - 1][chunk] = 0;
}

void hw_access_harvest(bool stopped)
{
    if (!hw_access_on() || !hw_pools[HW_POOL_ACCESS_INFO].base)
        return;
    live.contexts = (uint32_t)HW_ENTRIES(HW_POOL_CONTEXTS);
    size_t bytes = HW_ALIGN_UP((live.contexts + 1) * sizeof *live.index, HW_PAGE);
    live.index = hw_quiet ? NULL : hw_pages(bytes);
    if (!live.index)
        return;
    live.now = hw_ticks_raw() - hw_runtime.family_base;
    hw_pool_set_count(HW_POOL_ACCESS_LIVE, 0);
    hw_pool_set_count(HW_POOL_HISTOGRAM_LIVE, 0);
    wipe_live_tables();
    hw_pool_harvest_begin();
    hw_layout_each(harvest_block, !stopped);
    hw_blocks_each_in_table(harvest_block);
    hw_pool_harvest(harvest_pool_block);
    copy_types();
    hw_globals_harvest();
    hw_pool_harvest_end();
    hw_pool_publish(HW_POOL_ACCESS_LIVE);
    hw_pool_publish(HW_POOL_HISTOGRAM_LIVE);
    hw_sys(SYS_munmap, live.index, bytes);
    struct hw_access_info *info = HW_ENTRY(HW_POOL_ACCESS_INFO, struct hw_access_info, 0);
    write_info();
    info->harvest_tick = hw_ticks_raw() - hw_runtime.tick_base;
    info->flags |= HW_ACCESS_HARVESTED;
}

void hw_access_forget_harvest(void)
{
    if (!hw_access_on() || !hw_pools[HW_POOL_ACCESS_INFO].base)
        return;
    hw_pool_set_count(HW_POOL_ACCESS_LIVE, 0);
    hw_pool_set_count(HW_POOL_HISTOGRAM_LIVE, 0);
    hw_globals_forget_harvest();
    HW_ENTRY(HW_POOL_ACCESS_INFO, struct hw_access_info, 0)->flags &= ~(uint32_t)HW_ACCESS_HARVESTED;
}

void hw_access_reset(void)
{
    if (!hw_access_on() || !hw_pools[HW_POOL_ACCESS_INFO].base)
        return;
    /* Everything in one go: the reservation holds nothing but planes. */
    uint64_t bytes = (1ul << (HW_ARCH_ADDRESS_BITS - 3)) + hw_shadow.planes_most * hw_shadow.stride;
    hw_sys(SYS_madvise, hw_shadow.base, HW_ALIGN_UP(bytes + HW_ABI_WRITES_OFFSET, HW_PAGE), 4 /* MADV_DONTNEED */);
    hw_shadow_side_clear();
    for (uint32_t i = 1; i < HW_ENTRIES(HW_POOL_ACCESS); i++) {
        struct hw_access *entry = HW_ENTRY(HW_POOL_ACCESS, struct hw_access, i);
        uint64_t type = entry->type;
        uint32_t flags = entry->flags;
        reset_entry(entry, entry->context);
        entry->type = type; /* of blocks that live on */
        entry->flags = flags;
    }
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_HISTOGRAM); i++) {
        struct hw_histogram *entry = HW_ENTRY(HW_POOL_HISTOGRAM, struct hw_histogram, i);
        *entry = (struct hw_histogram){.context = entry->context, .first_word = entry->first_word};
    }
    hw_globals_reset();
    hw_access_forget_harvest();
}

/* ---- start ---- */

static bool start_histograms(void)
{
    if (hw_shadow.granule != 8 || histograms.freed)
        return true;
    uint64_t contexts = hw_pools[HW_POOL_CONTEXTS].reserved / sizeof(struct hw_context_entry);
    histograms.freed = hw_own_pages(hw_pools[HW_POOL_MIBS].reserved / sizeof(struct hw_mib) * 4, true);
    histograms.live = hw_own_pages(contexts * 4, true);
    histograms.tables = hw_own_pages((1ul << 22) * sizeof *histograms.tables, true);
    return histograms.freed && histograms.live && histograms.tables;
}

bool hw_access_start(void)
{
    if (!hw_access_on())
        return true;
    moving_count = 0;
    for (int i = 0; i < MOVING_MOST; i++)
        moving[i] = (struct moving){0};
    move_lock = (struct hw_lock){0};
    histograms.used = 0;
    if (!start_histograms() || !hw_layout_start())
        return false;
    if (HW_ENTRIES(HW_POOL_ACCESS_INFO) == 0 && hw_pool_take(HW_POOL_ACCESS_INFO, 1) == HW_NONE)
        return false;
    hw_pool_publish(HW_POOL_ACCESS_INFO);
    write_info();
    hw_shadow_threads_start();
    return true;
}

/* A library came that counts. What was allocated before does not own its cells. */
void hw_access_late(uint32_t granule)
{
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    bool fine = hw_file_add_access();
    uint32_t mibs = (uint32_t)HW_ENTRIES(HW_POOL_MIBS);
    if (fine && hw_pool_take(HW_POOL_ACCESS, mibs) != HW_NONE) {
        for (uint32_t i = 0; i < mibs; i++)
            reset_entry(HW_ENTRY(HW_POOL_ACCESS, struct hw_access, i),
                        HW_ENTRY(HW_POOL_MIBS, struct hw_mib, i)->context);
        hw_pool_publish(HW_POOL_ACCESS);
        hw_shadow.granule = granule;
        hw_blocks_access();
        fine = hw_access_start();
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

/* ---- areas that share cells ---- */

#define AREAS_MOST 1024u
static struct {
    uintptr_t start, end;
} areas[AREAS_MOST];
static uint32_t area_count;

static void add_area(const struct hw_area *area)
{
    if (!area->own && area->writable && !area->shared && area_count < AREAS_MOST) {
        areas[area_count].start = area->start;
        areas[area_count++].end = area->end;
    }
}

/* Is a multiple (1 to MOST) of PERIOD, shifted by SHIFT, a distance of addresses of the two? */
static bool meet(uint32_t a, uint32_t b, uint64_t period, uint64_t most, int64_t shift)
{
    uintptr_t least = areas[b].start - areas[a].end - (uintptr_t)shift + 1;
    uintptr_t longest = areas[b].end - areas[a].start - (uintptr_t)shift - 1;
    if ((int64_t)longest < 0)
        return false;
    uint64_t times = (int64_t)least <= 0 ? 0 : (least + period - 1) / period;
    if (times == 0 && shift == 0)
        times = 1;
    return times <= most && times * period <= longest;
}

void hw_access_look_for_folds(void)
{
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    area_count = 0;
    hw_areas_each(add_area);
    uint64_t period = 8 * hw_shadow.stride, most = 0;
    for (uint32_t i = 0; i < hw_shadow.planes_used; i++) {
        uint64_t plane = (hw_shadow.plane[i] - hw_shadow.base) / hw_shadow.stride;
        most = plane > most ? plane : most;
    }
    most = hw_shadow.memprof_used && !most ? 1 : most;
    bool folded = false;
    for (uint32_t a = 0; a < area_count && !folded; a++)
        for (uint32_t b = a; b < area_count && !folded; b++) {
            folded = meet(a, b, period, most, 0);
            if (hw_shadow.granule == 8)
                folded = folded || meet(a, b, period, most, (int64_t)HW_ABI_WRITES_OFFSET * 8) ||
                         meet(a, b, period, most, -(int64_t)HW_ABI_WRITES_OFFSET * 8);
        }
    hw_lock_drop(&hw_runtime.lock, old);
    if (folded)
        hw_note(HW_NOTE_FOLDED, NULL);
}
