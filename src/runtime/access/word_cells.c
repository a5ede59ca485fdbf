/* word_cells.c - the cells of words of 4 bytes: in how many periods each was used. What cells.c is for other granules.
 *
 * A cell is a byte: bit 7 says "used since the last scan", bits 0 to 6 in how many periods before. So a word was used
 * in
 *
 *     bits 0 to 6  +  bit 7  +  64 * what has been carried (below)
 *
 * periods, at any moment: folding bit 7 into the count changes nothing of that. The sampler does so by
 * compare-and-exchange of eight cells, without knowing whose they are: a block that is freed meanwhile is harvested
 * before or after, with the same sum; a new block in its place that happens to have the same bits has used these words
 * itself. A mark that another thread sets at the same instant stays, because the exchange fails; a fold that this
 * thread's store undoes is made up for by the next scan.
 *
 * A count ends at 127. Before, what is above 64 is carried into a table by address, for all planes together. There the
 * moment does matter: so nobody is in the middle of an event then (hw_threads_stop), and events of blocks in whose
 * pages something was carried take it along. A cell keeps 1 at least: it shows who used the word. */
#include "base/abi.h"
#include "runtime/access/cells.h"
#include "runtime/core/memory.h"

#define ALL        0x0101010101010101ull
#define RECENTS    0x8080808080808080ull
#define COUNTS     0x7f7f7f7f7f7f7f7full
#define FULL       127u
#define CARRIED    64u
#define LINE       64u /* bytes of memory: 16 cells */
#define LINE_WORDS 16u

/* ---- what was carried ---- */

#define PAGE_WORDS   (HW_PAGE / 4)
#define CHUNKS_MOST  (1u << 24)
#define INDEX_BYTES  ((1ul << (HW_ARCH_ADDRESS_BITS - 12)) * sizeof(uint32_t))
#define CARRIES_MOST 65535u

/* In units of CARRIED, of one page of memory. */
struct carries {
    uint16_t of[PAGE_WORDS][2]; /* reads, writes */
};

static struct {
    uint32_t *index; /* by page of memory: chunk + 1 */
    struct carries *chunks;
    uint32_t used;
} carried;

static inline struct carries *carries_of(uintptr_t address)
{
    uint32_t chunk = carried.index[(address & ((1ul << HW_ARCH_ADDRESS_BITS) - 1)) >> 12];
    return chunk ? &carried.chunks[chunk - 1] : NULL;
}

/* Several threads may do so at once, for words of their own. */
static bool carry(uintptr_t address, unsigned kind)
{
    uint32_t *chunk = &carried.index[address >> 12], none = 0;
    if (!__atomic_load_n(chunk, __ATOMIC_ACQUIRE)) {
        if (carried.used >= CHUNKS_MOST - HW_PLANES_MOST)
            return false;
        uint32_t fresh = __atomic_add_fetch(&carried.used, 1, __ATOMIC_SEQ_CST);
        __atomic_compare_exchange_n(chunk, &none, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    }
    uint16_t *count = &carried.chunks[*chunk - 1].of[address / 4 % PAGE_WORDS][kind];
    if (*count == CARRIES_MOST)
        return false;
    ++*count;
    return true;
}

static inline uint64_t take_carries(uintptr_t address, unsigned kind, bool take, bool *full)
{
    struct carries *page = carries_of(address);
    if (!page)
        return 0;
    uint16_t *count = &page->of[address / 4 % PAGE_WORDS][kind];
    uint64_t value = *count;
    *full |= value == CARRIES_MOST;
    if (take)
        *count = 0;
    return value * CARRIED;
}

static bool any_carried(uintptr_t start, uintptr_t end)
{
    if (hw_likely(!carried.used))
        return false;
    for (uintptr_t page = start & ~(HW_PAGE - 1); page < end; page += HW_PAGE)
        if (carries_of(page))
            return true;
    return false;
}

void hw_words_clear_carries(uintptr_t start, uintptr_t end)
{
    if (hw_likely(!carried.used))
        return;
    bool unused = false;
    for (uintptr_t page = start & ~(HW_PAGE - 1); page < end; page += HW_PAGE) {
        if (!carries_of(page))
            continue;
        uintptr_t first = page < start ? start & ~3ul : page, last = page + HW_PAGE < end ? page + HW_PAGE : end;
        for (uintptr_t word = first; word < last; word += 4) {
            take_carries(word, 0, true, &unused);
            take_carries(word, 1, true, &unused);
        }
    }
}

void hw_words_move_carries(uintptr_t from, uintptr_t to, uintptr_t end)
{
    if (hw_likely(!carried.used))
        return;
    bool unused = false;
    uintptr_t words = (end - from + 3) / 4;
    for (uintptr_t k = 0; k < words; k++) {
        uintptr_t word = to > from ? words - 1 - k : k, in_page = (from / 4 + word) % PAGE_WORDS;
        if (!carries_of(from + 4 * word)) { /* on to the next page */
            k += to > from ? in_page : PAGE_WORDS - 1 - in_page;
            continue;
        }
        for (unsigned kind = 0; kind < 2; kind++)
            for (uint64_t rest = take_carries(from + 4 * word, kind, true, &unused); rest; rest -= CARRIED)
                carry(to + 4 * word, kind); /* both places belong to the block of this event */
    }
}

/* ---- eight cells ---- */

static inline cell_64 *cells_at(uintptr_t plane, uintptr_t address, unsigned kind)
{
    return (cell_64 *)(plane + (address >> 5 << 3) + (kind ? HW_ABI_WRITES_OFFSET : 0));
}

/* 0x80 in each byte that is not 0. */
static inline uint64_t in_use(uint64_t cells)
{
    return (((cells & COUNTS) + COUNTS) | cells) & RECENTS;
}

static inline uint64_t full(uint64_t cells)
{
    return ((cells & COUNTS) + ALL) & RECENTS;
}

static inline unsigned how_many(uint64_t high_bits)
{
    return (unsigned)((high_bits >> 7) * ALL >> 56);
}

/* Zeros the bytes of MASK. Those of others may be written to meanwhile. */
static inline void clear_bytes(cell_64 *cells, uint64_t mask)
{
    typedef uint8_t byte __attribute__((may_alias));
    if (hw_likely(mask == ~0ull)) {
        *cells = 0;
        return;
    }
    for (int i = 0; i < 8; i++)
        if (mask >> 8 * i & 255)
            ((byte *)cells)[i] = 0;
}

bool hw_words_fold(uint64_t *at, bool *to_carry)
{
    uint64_t old = __atomic_load_n(at, __ATOMIC_RELAXED);
    for (int i = 0; i < 4 && old & RECENTS; i++) {
        uint64_t recent = (old & RECENTS) >> 7, counts = old & COUNTS;
        uint64_t changed = counts + (recent & ~(full(old) >> 7));
        if (__atomic_compare_exchange_n(at, &old, changed, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            *to_carry = (changed + 0x2020202020202020ull) & RECENTS; /* some count is 96 or more */
            return true;
        }
    }
    return false;
}

void hw_words_carry(uint64_t *at, uintptr_t address, unsigned kind)
{
    uint8_t *cell = (uint8_t *)at;
    for (unsigned i = 0; i < 8; i++) {
        uint8_t old = __atomic_load_n(&cell[i], __ATOMIC_RELAXED);
        if ((old & FULL) <= CARRIED || (old & FULL) == FULL || !carry(address + 4 * i, kind))
            continue;
        while (!__atomic_compare_exchange_n(&cell[i], &old, (uint8_t)(old - CARRIED), true, __ATOMIC_RELAXED,
                                            __ATOMIC_RELAXED))
            ;
    }
}

/* ---- summing ---- */

/* Periods of each word of a line, by kind. */
struct line {
    uint32_t periods[2][LINE_WORDS];
    uint64_t used[2][2];  /* RECENTS bits, by kind and half */
    uint64_t twice[2][2]; /* by two planes: [0] anyhow, [1] written by both */
    uint64_t any[2];
    uint64_t saturated[2];
    uint32_t users, writers;
    struct words_seen {
        uintptr_t plane;
        uint64_t cells[2][2]; /* by kind and half */
    } seen[HW_LINE_USERS];    /* by the first users */
};

static inline void add_cells(struct line *line, unsigned kind, unsigned half, uint64_t cells, uint64_t used)
{
    uint32_t *periods = line->periods[kind] + 8 * half;
    line->saturated[half] |= full(cells);
    for (uint64_t left = used; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left) / 8;
        uint8_t cell = (uint8_t)(cells >> 8 * i);
        periods[i] += (cell & FULL) + (cell >> 7);
    }
}

/* Of [address, address + 64) the words that MASK (a byte each) selects. False: none was used. */
static bool read_line(const struct hw_plane_list *list, uintptr_t address, const uint64_t mask[2], bool take,
                      struct line *line)
{
    bool found = false;
    for (uint32_t p = 0; p < list->count; p++) {
        bool uses = false, writes = false;
        struct words_seen seen = {.plane = list->plane[p]};
        for (unsigned half = 0; half < 2; half++) {
            uint64_t used[2];
            for (unsigned kind = 0; kind < 2; kind++) {
                cell_64 *at = cells_at(list->plane[p], address + 32 * half, kind);
                uint64_t cells = mask[half] ? *at & mask[half] : 0;
                used[kind] = 0;
                if (!cells)
                    continue;
                if (!found) {
                    *line = (struct line){0};
                    found = true;
                }
                if (take)
                    clear_bytes(at, mask[half]);
                seen.cells[kind][half] = cells;
                used[kind] = in_use(cells);
                add_cells(line, kind, half, cells, used[kind]);
            }
            uint64_t both = used[0] | used[1];
            if (!both)
                continue;
            line->twice[0][half] |= line->any[half] & both;
            line->twice[1][half] |= line->used[1][half] & used[1];
            line->any[half] |= both;
            line->used[0][half] |= used[0];
            line->used[1][half] |= used[1];
            uses = true;
            writes |= used[1] != 0;
        }
        if (uses) {
            if (line->users < HW_LINE_USERS)
                line->seen[line->users] = seen;
            line->users++;
            line->writers += writes;
        }
    }
    return found;
}

/* How often a word was used, of its cell. */
static inline uint32_t periods_in(uint64_t cells, unsigned i)
{
    uint8_t cell = (uint8_t)(cells >> 8 * i);
    return (cell & FULL) + (cell >> 7);
}

/* A line that several threads use, and some writes. */
static __attribute__((noinline)) void add_shared_words(const struct line *line, uintptr_t address,
                                                       struct hw_cell_sum *sum)
{
    struct hw_line_use uses[HW_LINE_USERS];
    uint32_t count = line->users < HW_LINE_USERS ? line->users : HW_LINE_USERS;
    for (uint32_t i = 0; i < count; i++) {
        uses[i] = (struct hw_line_use){.plane = line->seen[i].plane};
        for (unsigned word = 0; word < LINE_WORDS; word++) {
            uses[i].reads[word] = periods_in(line->seen[i].cells[0][word / 8], word % 8);
            uses[i].writes[word] = periods_in(line->seen[i].cells[1][word / 8], word % 8);
        }
    }
    hw_line_add(sum, address, uses, count, LINE_WORDS);
}

static void add_line(const struct line *line, struct hw_cell_sum *sum)
{
    for (unsigned half = 0; half < 2; half++) {
        uint64_t written = line->twice[0][half] & line->used[1][half];
        sum->touched += how_many(line->any[half]);
        sum->shared += how_many(line->twice[0][half]);
        sum->shared_written += how_many(written);
        sum->shared_writers += how_many(line->twice[1][half]);
        sum->saturated += how_many(line->saturated[half]);
    }
    for (unsigned i = 0; i < LINE_WORDS; i++) {
        sum->reads += line->periods[0][i];
        sum->writes += line->periods[1][i];
    }
}

static void add_line_carries(struct line *line, uintptr_t address, const uint64_t mask[2], bool take)
{
    for (unsigned i = 0; i < LINE_WORDS; i++) {
        if (!(mask[i / 8] >> 8 * (i % 8) & 255))
            continue;
        bool full = false;
        line->periods[0][i] += (uint32_t)take_carries(address + 4 * i, 0, take, &full);
        line->periods[1][i] += (uint32_t)take_carries(address + 4 * i, 1, take, &full);
        if (full)
            line->saturated[i / 8] |= 0x80ull << 8 * (i % 8);
    }
}

/* ---- runs of words: the usual case ----
 *
 * Most blocks of a context are used like the one before: then its entry counts one more of the same pattern, and that
 * is all. A block that was used otherwise has what the pattern stands for added up, and makes the next pattern. */

typedef uint64_t cells_16 __attribute__((vector_size(16), aligned(1), may_alias));

/* The cells of HW_WORDS_RUN words: of reads, then of writes. */
struct run {
    cells_16 of[2][2];
};
_Static_assert(sizeof(struct run) == 2 * HW_WORDS_RUN, "a run of cells");

static inline bool is_zero(cells_16 cells)
{
    return !(cells[0] | cells[1]);
}

/* Bytes of both, added up. */
static inline uint64_t total(cells_16 a, cells_16 b)
{
    const cells_16 even = {0x00ff00ff00ff00ffull, 0x00ff00ff00ff00ffull};
    cells_16 pairs = (a & even) + (a >> 8 & even) + (b & even) + (b >> 8 & even);
    return (pairs[0] + pairs[1]) * 0x0001000100010001ull >> 48;
}

static inline uint64_t periods_of(const cells_16 cells[2])
{
    const cells_16 counts = {COUNTS, COUNTS}, ones = {ALL, ALL};
    return total((cells[0] & counts) + (cells[0] >> 7 & ones), (cells[1] & counts) + (cells[1] >> 7 & ones));
}

static inline cells_16 ones_in_use(cells_16 cells)
{
    const cells_16 counts = {COUNTS, COUNTS}, ones = {ALL, ALL};
    return (((cells & counts) + counts) | cells) >> 7 & ones;
}

/* How many cells are at their limit. */
static inline uint64_t saturated_in(const struct run *run)
{
    const cells_16 counts = {COUNTS, COUNTS}, ones = {ALL, ALL};
    uint64_t found = 0;
    for (int kind = 0; kind < 2; kind++)
        found +=
            total(((run->of[kind][0] & counts) + ones) >> 7 & ones, ((run->of[kind][1] & counts) + ones) >> 7 & ones);
    return found;
}

/* Adds TIMES blocks with these eight cells. */
static inline void add_counts(uint64_t *periods, uint64_t *blocks, uint64_t cells, uint64_t times)
{
    if (cells == RECENTS) { /* all of them, and no look came between */
        for (int i = 0; i < 8; i++)
            periods[i] += times;
        for (int i = 0; i < 8; i++)
            blocks[i] += times;
        return;
    }
    for (uint64_t used = in_use(cells); used; used &= used - 1) {
        unsigned i = (unsigned)__builtin_ctzll(used) / 8;
        uint8_t cell = (uint8_t)(cells >> 8 * i);
        periods[i] += times * ((cell & FULL) + (cell >> 7));
        blocks[i] += times;
    }
}

/* The cells stand FROM words behind the begin of the entry. */
static void add_cells_to(struct hw_words *entry, const struct run *run, unsigned from, uint64_t times)
{
    for (unsigned i = from / 8; i < HW_WORDS_RUN / 8; i++) {
        uint64_t read = run->of[0][(i - from / 8) / 2][(i - from / 8) % 2];
        uint64_t written = run->of[1][(i - from / 8) / 2][(i - from / 8) % 2];
        if (read)
            add_counts(entry->read_periods + 8 * i, entry->read_blocks + 8 * i, read, times);
        if (written)
            add_counts(entry->written_periods + 8 * i, entry->written_blocks + 8 * i, written, times);
    }
}

/* A run that is not like the one before. ENTRY: NULL when words are not counted. What its pattern stands for is added
 * up, and RUN is the next one. The order matters to those who read the file of a process that was killed meanwhile:
 * better some blocks are lost than counted twice. */
static __attribute__((noinline)) void count_unlike(struct hw_words *entry, const struct run *run, unsigned from,
                                                   struct hw_cell_sum *sum)
{
    uint64_t reads = periods_of(run->of[0]), writes = periods_of(run->of[1]), saturated = saturated_in(run);
    uint64_t touched = total(ones_in_use(run->of[0][0] | run->of[1][0]), ones_in_use(run->of[0][1] | run->of[1][1]));
    sum->reads += reads;
    sum->writes += writes;
    sum->touched += touched;
    sum->saturated += saturated;
    if (!entry)
        return;
    if (hw_unlikely(from || saturated)) {
        add_cells_to(entry, run, from, 1);
        entry->saturated += saturated;
        return;
    }
    struct run *pattern = (struct run *)entry->read_cells;
    uint64_t times = entry->repeats;
    entry->repeats = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (times)
        add_cells_to(entry, pattern, 0, times);
    *pattern = *run;
    entry->pattern_reads = (uint32_t)reads;
    entry->pattern_writes = (uint32_t)writes;
    entry->pattern_touched = touched;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    entry->repeats = 1;
}

/* How many of COUNT groups of eight words have no cell in use, from the first one on: in steps of eight groups. Large
 * blocks are mostly not used everywhere. */
static inline uint64_t count_clear(const cell_64 *reads, const cell_64 *writes, uint64_t count)
{
    uint64_t clear = 0;
    for (; clear + 8 <= count; clear += 8) {
        uint64_t any = 0;
        for (unsigned i = 0; i < 8; i++)
            any |= reads[clear + i] | writes[clear + i];
        if (any)
            break;
    }
    return clear;
}

static inline void zero_groups(cell_64 *cells, unsigned last)
{
    cells[0] = 0;
    cells[last < 1 ? last : 1] = 0;
    cells[last < 2 ? last : 2] = 0;
    cells[last] = 0;
}

/* The usual case: a block that one thread has used, of which nothing was carried. START is a multiple of 32. WHOLE:
 * what follows the block up to the next such multiple is nobody's. Which cells are zero, and how many there are, cannot
 * be predicted: so there are few conditions. Reading the cells of what follows does no harm. */
static inline __attribute__((always_inline)) void scan_one_plane(uintptr_t plane, uintptr_t start, uintptr_t end,
                                                                 bool take, bool whole, struct hw_cell_sum *sum,
                                                                 struct hw_histogram_target *histogram)
{
    static const uint8_t selected[2 * HW_WORDS_RUN] = {
#define EIGHT 255, 255, 255, 255, 255, 255, 255, 255
        EIGHT, EIGHT, EIGHT, EIGHT};
    _Static_assert(HW_WORDS_RUN == 32, "a row of cells");
    sum->granules += ((end - 1) >> 2) - (start >> 2) + 1;
    for (uintptr_t at = start, next; at < end; at = next) {
        unsigned from = histogram ? (unsigned)((at - histogram->start) / 32 % (HW_WORDS_RUN / 8)) : 0;
        next = at + 4 * HW_WORDS_RUN - 32 * from;
        uintptr_t words = ((next < end ? next : end) - at + 3) / 4;
        const cells_16 *reads_at = (const cells_16 *)cells_at(plane, at, 0);
        const cells_16 *writes_at = (const cells_16 *)cells_at(plane, at, 1);
        const cells_16 *mask = (const cells_16 *)(selected + HW_WORDS_RUN - words);
        struct run run = {
            {{reads_at[0] & mask[0], reads_at[1] & mask[1]}, {writes_at[0] & mask[0], writes_at[1] & mask[1]}}};
        bool read = !is_zero(run.of[0][0] | run.of[0][1]), written = !is_zero(run.of[1][0] | run.of[1][1]);
        if (!read && !written) {
            if (next < end)
                next += 32 * count_clear(cells_at(plane, next, 0), cells_at(plane, next, 1), (end - next) / 32);
            continue;
        }
        if (take && whole) {
            unsigned last = (unsigned)(words - 1) / 8;
            if (hw_likely(read))
                zero_groups((cell_64 *)reads_at, last);
            if (hw_likely(written))
                zero_groups((cell_64 *)writes_at, last);
        } else if (take) {
            for (unsigned i = 0; i < HW_WORDS_RUN / 8; i++) {
                cell_64 group = ((const cell_64 *)mask)[i];
                if (group && ((cell_64 *)reads_at)[i] & group)
                    clear_bytes((cell_64 *)reads_at + i, group);
                if (group && ((cell_64 *)writes_at)[i] & group)
                    clear_bytes((cell_64 *)writes_at + i, group);
            }
        }
        struct hw_words *entry = histogram ? hw_histogram_words(histogram, at) : NULL;
        if (entry && hw_likely(!from)) {
            const struct run *pattern = (const struct run *)entry->read_cells;
            cells_16 other = (run.of[0][0] ^ pattern->of[0][0]) | (run.of[0][1] ^ pattern->of[0][1]) |
                             (run.of[1][0] ^ pattern->of[1][0]) | (run.of[1][1] ^ pattern->of[1][1]);
            if (is_zero(other)) {
                entry->repeats++;
                sum->reads += entry->pattern_reads;
                sum->writes += entry->pattern_writes;
                sum->touched += entry->pattern_touched;
                continue;
            }
        }
        count_unlike(entry, &run, from, sum);
    }
}

/* The one plane in which the block was used (any, if there is none); 0 if there are several. */
static inline uintptr_t only_plane(const struct hw_plane_list *list, uintptr_t start, uintptr_t end)
{
    uintptr_t only = 0;
    if (list->count == 1)
        return list->plane[0];
    for (uint32_t i = 0; i < list->count; i++) {
        uint64_t any = 0;
        for (uintptr_t at = start; at < end; at += 32)
            any |= *cells_at(list->plane[i], at, 0) | *cells_at(list->plane[i], at, 1);
        if (any && only)
            return 0;
        only = any ? list->plane[i] : only;
    }
    return only ? only : list->plane[0];
}

void hw_words_scan(const struct hw_plane_list *list, uintptr_t start, uintptr_t end, bool take, struct hw_cell_sum *sum,
                   struct hw_histogram_target *histogram)
{
    bool carries = any_carried(start, end);
    uintptr_t plane;
    if (hw_likely(!carries && !(start & 31) && (!histogram || !(histogram->start & 31))) &&
        (plane = only_plane(list, start, end)) != 0) {
        if (take && hw_likely(hw_layout_of((const void *)start) != NULL))
            scan_one_plane(plane, start, end, true, true, sum, histogram);
        else
            scan_one_plane(plane, start, end, take, false, sum, histogram);
        return;
    }
    sum->granules += ((end - 1) >> 2) - (start >> 2) + 1;
    for (uintptr_t at = start & ~(uintptr_t)(LINE - 1); at < end; at += LINE) {
        struct line line;
        uint64_t mask[2] = {~0ull, ~0ull};
        for (unsigned half = 0; half < 2; half++) {
            uintptr_t first = at + 32 * half, behind = first + 32;
            if (start >= behind || end <= first) {
                mask[half] = 0;
                continue;
            }
            if (start > first)
                mask[half] &= ~0ull << 8 * ((start - first) / 4);
            if (end < behind)
                mask[half] &= ~0ull >> 8 * ((behind - end) / 4);
        }
        if (!read_line(list, at, mask, take, &line))
            continue;
        if (hw_unlikely(carries))
            add_line_carries(&line, at, mask, take);
        add_line(&line, sum);
        if (hw_unlikely(line.users > 1 && line.writers))
            add_shared_words(&line, at, sum);
        if (histogram)
            for (unsigned half = 0; half < 2; half++)
                for (uint64_t left = line.any[half]; left; left &= left - 1) {
                    unsigned i = (unsigned)__builtin_ctzll(left) / 8 + 8 * half;
                    hw_histogram_add_word(histogram, at + 4 * i, line.periods[0][i], line.periods[1][i],
                                          line.saturated[half] >> 8 * (i % 8) & 0x80);
                }
    }
}

void hw_words_freed(const struct hw_mib *mib, uint32_t free_context, uintptr_t start, uintptr_t end,
                    struct hw_cell_sum *sum)
{
    struct hw_histogram_target target, *counts = hw_histogram_of_freed(&target, mib, free_context, (const void *)start);
    const struct hw_plane_list list = hw_all_planes();
    uintptr_t plane;
    if (hw_likely(!carried.used && end - start < HW_CELLS_LONG) && (plane = only_plane(&list, start, end)) != 0)
        scan_one_plane(plane, start, end, true, true, sum, counts);
    else
        hw_cells_scan(start, end, true, sum, counts);
}

/* ---- clearing ---- */

void hw_words_clear(const struct hw_plane_list *list, uintptr_t start, uintptr_t end)
{
    for (uint32_t i = 0; i < list->count; i++)
        for (uintptr_t at = start & ~31ul; at < end; at += 32) {
            const cell_64 *reads = cells_at(list->plane[i], at, 0), *writes = cells_at(list->plane[i], at, 1);
            if (!(*reads | *writes)) {
                at += 32 * count_clear(reads + 1, writes + 1, (end - at - 1) / 32);
                continue;
            }
            uint64_t mask = ~0ull;
            if (start > at)
                mask &= ~0ull << 8 * ((start - at) / 4);
            if (end < at + 32)
                mask &= ~0ull >> 8 * ((at + 32 - end) / 4);
            for (unsigned kind = 0; kind < 2; kind++) {
                cell_64 *cells = cells_at(list->plane[i], at, kind);
                if (hw_unlikely(*cells & mask))
                    clear_bytes(cells, mask);
            }
        }
}

bool hw_words_are_clear(uintptr_t start, uintptr_t end)
{
    const struct hw_plane_list list = hw_all_planes();
    if (hw_unlikely(end - start > 4096 || carried.used))
        return false;
    uint64_t any = 0, last = (end - 1) / 32 - start / 32;
    for (uint32_t i = 0; i < list.count; i++) {
        const cell_64 *reads = cells_at(list.plane[i], start, 0), *writes = cells_at(list.plane[i], start, 1);
#define BOTH(index) (reads[index] | writes[index])
        if (hw_likely(last < 4))
            any |= BOTH(0) | BOTH(last < 1 ? last : 1) | BOTH(last < 2 ? last : 2) | BOTH(last);
        else
            for (uint64_t at = 0; at <= last; at++)
                any |= BOTH(at);
#undef BOTH
    }
    return !any;
}

/* ---- single words, of data ---- */

void hw_words_each(const struct hw_plane_list *list, uintptr_t start, uintptr_t end, bool take,
                   void (*each)(uintptr_t address, const struct hw_global_granule *counts))
{
    const uintptr_t first = start & ~3ul;
    uintptr_t judged = 0;
    struct hw_cell_sum line = {0};
    for (uintptr_t at = first & ~31ul; at < end; at += 32) {
        uint64_t any = 0;
        for (uint32_t i = 0; i < list->count; i++)
            any |= *cells_at(list->plane[i], at, 0) | *cells_at(list->plane[i], at, 1);
        if (any && list->count > 1 && (at & ~(LINE - 1ul)) != judged) { /* before anything is taken from it */
            judged = at & ~(LINE - 1ul);
            line = (struct hw_cell_sum){0};
            hw_words_scan(list, judged, judged + LINE, false, &line, NULL);
        }
        for (uintptr_t word = at; any && word < at + 32; word += 4, any >>= 8) {
            uintptr_t hole_end;
            if (!(any & 255) || word < first || word >= end)
                continue;
            struct hw_cell_sum sum = {0};
            hw_words_scan(list, word, word + 4, take, &sum, NULL);
            if (!sum.touched || (!take && hw_pool_hole(word, word + 4, 0, &hole_end) == word))
                continue;
            struct hw_global_granule counts = {.reads = sum.reads, .writes = sum.writes};
            counts.flags = hw_access_granule_flags(&sum, judged == (at & ~(LINE - 1ul)) ? &line : NULL);
            each(word, &counts);
        }
    }
}

/* ---- moving ---- */

void hw_words_move(const struct hw_plane_list *list, uintptr_t from, uintptr_t to, uintptr_t end)
{
    typedef uint8_t byte __attribute__((may_alias));
    const uintptr_t count = ((end - 1) >> 2) - (from >> 2) + 1;
    for (uint32_t i = 0; i < list->count; i++)
        for (unsigned kind = 0; kind < 2; kind++) {
            byte *cells = (byte *)(list->plane[i] + (from >> 2) + (kind ? HW_ABI_WRITES_OFFSET : 0));
            byte *target = cells + (to >> 2) - (from >> 2);
            for (uintptr_t k = 0; k < count; k++) {
                uintptr_t word = to > from ? count - 1 - k : k;
                if (cells[word]) {
                    target[word] = cells[word];
                    cells[word] = 0;
                }
            }
        }
}

/* ---- start ---- */

bool hw_words_start(void)
{
    if (hw_shadow.granule != 4)
        return true;
    carried.used = 0; /* a forked child finds the tables empty */
    if (carried.index)
        return true;
    carried.index = hw_own_pages(INDEX_BYTES, true);
    carried.chunks = hw_own_pages((uint64_t)CHUNKS_MOST * sizeof *carried.chunks, true);
    return carried.index && carried.chunks;
}

void hw_words_reset(void)
{
    for (uint32_t i = 0; i < carried.used; i++)
        for (size_t word = 0; word < PAGE_WORDS; word++)
            carried.chunks[i].of[word][0] = carried.chunks[i].of[word][1] = 0;
}
