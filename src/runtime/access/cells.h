/* cells.h - what the files share that make figures of cells; what other rooms need of them stands in access.h.
 *
 *   cells.c        the cells of a range, in all planes: sums, clearing, moving
 *   word_cells.c   the same for words of 4 bytes, whose cells say in which periods they were used
 *   histograms.c   the counts of single words of a block, where granules have 8 or 4 bytes
 *   access.c       the entries of contexts, and the events that change them
 *   harvest.c      what is live, in the profile's file */
#ifndef HW_RUNTIME_ACCESS_CELLS_H
#define HW_RUNTIME_ACCESS_CELLS_H

#include "runtime/access/access.h"
#include "runtime/core/file.h"

typedef uint64_t cell_64 __attribute__((may_alias));

#define HW_CELLS_LONG (128ul << 10) /* of the program's memory: a range that is gone through by pages of the shadow */

/* What was found in the cells of a range. */
struct hw_cell_sum {
    uint64_t reads, writes, unsplit;
    uint64_t granules, touched;
    uint64_t shared, shared_written, shared_writers;
    uint64_t lines_false, lines_true, saturated;
    uint64_t lines_handed, lines_hot, passes; /* see struct hw_access */
    /* Whose block it is, if threads' use of shared lines is reported by itself (start: of the block; else 0). */
    struct hw_cell_owner {
        uintptr_t start;
        uint32_t context;
        bool live; /* it is only read, with hw_runtime.lock held */
    } owner;
};

struct hw_histogram_target;

/* ---- sharing.c ---- */

/* What was in the cells of one plane, of the words of a 64-byte line that is used in several planes. */
#define HW_LINE_WORDS 16 /* of 4 bytes; 8 of 8 bytes */
struct hw_line_use {
    uintptr_t plane;
    uint32_t reads[HW_LINE_WORDS], writes[HW_LINE_WORDS];
};
#define HW_LINE_USERS 8 /* more threads at one line are ignored */

/* What several threads do in one line that some of them write. */
struct hw_line_verdict {
    enum hw_side_sharing sharing; /* 0: they do not share it */
    bool handed;                  /* one thread uses it, others only fill it or go through it */
    bool hot;          /* falsely shared, and how often is not known: two threads' counts are at their limit */
    uint64_t passes;   /* shared falsely, or in an unknown way: so often, at most, it went to another thread */
    uint32_t counting; /* uses that count, a bit each */
};
/* Judges the line, of WORDS words (1, 8 or 16: granules of 64, 8 and 4 bytes). A thread counts if it uses some word of
 * the line at least a sixteenth as often as another thread uses some word, and does more than pass once over words that
 * others use: a thread that fills the block, or reads once what another one has filled, does not share it. The same for
 * each word. */
struct hw_line_verdict hw_line_judge(const struct hw_line_use *uses, uint32_t count, unsigned words);
/* The same, added to SUM; if that is a block's, it is recorded which threads do what in the line at ADDRESS. */
void hw_line_add(struct hw_cell_sum *sum, uintptr_t address, const struct hw_line_use *uses, uint32_t count,
                 unsigned words);

/* ---- plane_pages.c ---- */

/* Which pages of the shadow of a range are there, in several planes: asked of the kernel for many at a time. All pages
 * are, when it must not be asked. */
struct hw_shadow_pages {
    const uintptr_t *plane;
    uint32_t planes;
    uintptr_t memprof;            /* one more plane, without cells of writes; 0: none */
    uintptr_t begin;              /* the shadow of the range: from so far behind each plane's begin on */
    uint64_t count;               /* its pages */
    uint64_t first, known, batch; /* THERE is known of [first, first + known): BATCH bytes for each plane, bit 0 */
    uint8_t there[2048];
};
/* The first page from PAGE on that some plane has; COUNT if there is none. */
uint64_t hw_shadow_pages_next(struct hw_shadow_pages *pages, uint64_t page);
/* Gives all of the range's pages back: they read as zero. */
void hw_shadow_pages_drop(const struct hw_shadow_pages *pages);
/* Of the page that hw_shadow_pages_next has found. PLANE: an index; that of memprof's is behind the others. */
bool hw_shadow_page_is_there(const struct hw_shadow_pages *pages, uint32_t plane, uint64_t page);

/* ---- cells.c ---- */

/* Adds up the cells of [start, end) in all planes; TAKE: they are zero then. HISTOGRAM may be NULL. */
void hw_cells_scan(uintptr_t start, uintptr_t end, bool take, struct hw_cell_sum *sum,
                   struct hw_histogram_target *histogram);
/* Takes what is in a block that may share its first and last granule with others: what is counted there is added, and
 * stays there for them. */
void hw_cells_scan_shared(uintptr_t start, uintptr_t end, struct hw_cell_sum *sum,
                          struct hw_histogram_target *histogram);
void hw_cells_clear(uintptr_t start, uintptr_t end);
/* The cells of [from, end) go to where [to, ...) is; the two do not overlap. */
void hw_cells_move(uintptr_t from, uintptr_t to, uintptr_t end);
/* The cells of [start, end) are added to that of TO; false, and nothing has happened, where that is no place for them:
 * small granules, long ranges. */
bool hw_cells_gather(uintptr_t start, uintptr_t end, uintptr_t to);

/* The usual case: one plane, a few granules. Which cells are zero, and how many there are, cannot be predicted: so
 * there are no conditions, and up to HW_CELLS_UNROLLED cells the last one is read again instead of stopping there.
 * When it is, it is zero. */
#define HW_CELLS_UNROLLED 5
static inline __attribute__((always_inline)) void hw_cells_scan_one_plane(uintptr_t plane, uintptr_t start,
                                                                          uintptr_t end, struct hw_cell_sum *sum)
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
    if (hw_likely(more < HW_CELLS_UNROLLED)) {
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

static inline bool hw_cells_are_usual(uintptr_t start, uintptr_t end)
{
    return hw_likely(end - start < HW_CELLS_LONG && !(hw_shadow.memprof_used | hw_shadow.carried) &&
                     hw_shadow.granule == 64);
}

static inline bool hw_cells_are_clear_in(uintptr_t plane, uintptr_t start, uintptr_t end)
{
    uint64_t first = start >> 6, more = ((end - 1) >> 6) - first;
    const cell_64 *cell = (const cell_64 *)(plane + (first << 3));
    if (hw_likely(more < HW_CELLS_UNROLLED))
        return !(cell[0] | cell[more < 1 ? more : 1] | cell[more < 2 ? more : 2] | cell[more < 3 ? more : 3] |
                 cell[more]);
    for (uint64_t i = 0; i <= more; i++)
        if (cell[i])
            return false;
    return true;
}

static inline bool hw_cells_are_clear(uintptr_t start, uintptr_t end)
{
    uint32_t count = __atomic_load_n(&hw_shadow.planes_used, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++)
        if (!hw_cells_are_clear_in(hw_shadow.plane[i], start, end))
            return false;
    return true;
}

/* The one plane in which there are counts of the block (any, if there are none); 0 if there are several. Most blocks
 * are one thread's. */
static inline uintptr_t hw_cells_only_plane(uintptr_t start, uintptr_t end)
{
    uint32_t count = __atomic_load_n(&hw_shadow.planes_used, __ATOMIC_ACQUIRE);
    uintptr_t plane = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!hw_cells_are_clear_in(hw_shadow.plane[i], start, end)) {
            if (plane)
                return 0;
            plane = hw_shadow.plane[i];
        }
    return plane ? plane : hw_shadow.base;
}

/* ---- word_cells.c: what the functions of cells.c do with the granule 4 ---- */

void hw_words_scan(uintptr_t start, uintptr_t end, bool take, struct hw_cell_sum *sum,
                   struct hw_histogram_target *histogram);
/* A block of the layout that is freed: its cells are taken, and added to the words of the MIB. */
void hw_words_freed(const struct hw_mib *mib, uint32_t free_context, uintptr_t start, uintptr_t end,
                    struct hw_cell_sum *sum);
void hw_words_clear(uintptr_t start, uintptr_t end);
/* Whether a new block's cells are clean; false: perhaps not. */
bool hw_words_are_clear(uintptr_t start, uintptr_t end);
void hw_words_move(uintptr_t from, uintptr_t to, uintptr_t end);
void hw_words_each(uintptr_t start, uintptr_t end, bool take,
                   void (*each)(uintptr_t address, const struct hw_global_granule *counts));
/* Adds what was used since the last scan of the eight cells AT to their counts; false: nothing was, or another thread
 * came between. *TO_CARRY: some count comes near its end. */
bool hw_words_fold(uint64_t *at, bool *to_carry);
/* Carries counts of the eight cells AT, of reads or writes (0, 1) of the words from ADDRESS on, into a table. Nobody is
 * in the middle of an event. */
void hw_words_carry(uint64_t *at, uintptr_t address, unsigned kind);
/* False when there is no memory. Again in a forked child. */
bool hw_words_start(void);
void hw_words_reset(void);

/* ---- histograms.c ---- */

struct hw_histogram_target {
    enum hw_pool_id pool;
    uint32_t context;
    uint32_t free_context;
    bool locked;                      /* hw_runtime.lock is held, or has to be taken for each addition */
    uint32_t *chunk;                  /* index + 1 of the entry of each run of words */
    uintptr_t start;                  /* of the block */
    struct hw_histogram_owner *owner; /* of freed blocks; else NULL */
};

/* What was needed last for a MIB, by the one thread that counts in it. */
struct hw_histogram_owner {
    uint32_t context, free_context;
    uint32_t table; /* of chunks, + 1; 0: none yet */
    uint32_t first; /* index + 1 of the entry of the first run of words; 0: none yet */
};
extern HW_HIDDEN struct hw_histogram_owner *hw_histogram_owners;

/* Where the words of a block at ADDRESS are counted: sets up TARGET and returns it, or NULL when they are not. */
struct hw_histogram_target *hw_histogram_of_freed(struct hw_histogram_target *target, const struct hw_mib *mib,
                                                  uint32_t free_context, const void *address);
/* Of a live block. hw_runtime.lock is held, here and as long as TARGET is used. */
struct hw_histogram_target *hw_histogram_of_live(struct hw_histogram_target *target, uint32_t context,
                                                 const void *address);
void hw_histogram_add(struct hw_histogram_target *target, uintptr_t address, uint64_t count, bool saturated);
/* The same for a word of 4 bytes that was used in some block: with numbers of periods. */
void hw_histogram_add_word(struct hw_histogram_target *target, uintptr_t address, uint64_t reads, uint64_t writes,
                           bool saturated);
/* The entry of the run of words that holds ADDRESS, which this thread alone adds to; NULL when there is none. */
struct hw_words *hw_histogram_words_slow(struct hw_histogram_target *target, uintptr_t address);
static inline struct hw_words *hw_histogram_words(struct hw_histogram_target *target, uintptr_t address)
{
    const struct hw_histogram_owner *owner = target->owner;
    if (hw_likely(owner && owner->first && address - target->start < 4 * HW_WORDS_RUN))
        return HW_ENTRY(HW_POOL_WORDS, struct hw_words, owner->first - 1);
    return hw_histogram_words_slow(target, address);
}
/* Forgets which entries the words of live blocks of contexts below CONTEXTS have. */
void hw_histograms_forget_live(uint32_t contexts);
/* Empties the entries of freed blocks. */
void hw_histograms_reset(void);
/* False when there is no memory. Again in a forked child. */
bool hw_histograms_start(void);

/* ---- access.c ---- */

/* The granules of a block, and of a block of a pool: there a granule is of the block that holds its first byte. */
struct hw_cell_range {
    uintptr_t start, end;
};
static inline bool hw_access_owns(const void *address, const struct hw_block *block)
{
    return hw_likely(block->layout) || hw_layout_is_own(address);
}

static inline uintptr_t hw_access_end(const void *address, uint64_t size)
{
    return (uintptr_t)address + (size ? size : 1);
}

static inline struct hw_cell_range hw_access_pool_range(const void *address, uint64_t size)
{
    uintptr_t start = (uintptr_t)address, granule = hw_shadow.granule;
    return (struct hw_cell_range){HW_ALIGN_UP(start, granule), HW_ALIGN_UP(start + size, granule)};
}

/* An entry of ACCESS or ACCESS_LIVE as it is before anything was counted. */
void hw_access_clear_entry(struct hw_access *entry, uint32_t context);
/* The flags of struct hw_global_granule, of what was in a granule and in its line (NULL: of one thread alone). */
static inline uint32_t hw_access_granule_flags(const struct hw_cell_sum *granule, const struct hw_cell_sum *line)
{
    uint32_t flags = (granule->shared ? HW_GLOBAL_SHARED : 0) | (granule->shared_written ? HW_GLOBAL_WRITTEN : 0) |
                     (granule->shared_writers ? HW_GLOBAL_WRITERS : 0) | (granule->saturated ? HW_GLOBAL_SATURATED : 0);
    if (line)
        flags |= (line->lines_false ? HW_GLOBAL_FALSE : 0) | (line->lines_true ? HW_GLOBAL_TRUE : 0) |
                 (line->lines_handed ? HW_GLOBAL_HANDED : 0) | (line->lines_hot ? HW_GLOBAL_HOT : 0);
    return flags;
}

/* Adds one block, and what was in its cells. AGE in ticks. */
void hw_access_add_block(struct hw_access *entry, const struct hw_cell_sum *sum, const void *address,
                         const struct hw_block *block, uint64_t age);
void hw_access_add_pool_block(struct hw_access *entry, struct hw_cell_sum *sum, const void *address,
                              const struct hw_block *block, uint64_t age);

/* ---- harvest.c ---- */

/* Brings the entry of ACCESS_INFO up to date. */
void hw_harvest_write_info(void);

#endif
