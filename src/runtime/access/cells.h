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

/* Adds to SUM how the threads of USES share the line of WORDS words (1, 8 or 16: granules of 64, 8 and 4 bytes); if
 * that is a block's, it is recorded which threads do what in the line at ADDRESS. */
void hw_line_add(struct hw_cell_sum *sum, uintptr_t address, const struct hw_line_use *uses, uint32_t count,
                 unsigned words);

/* ---- plane_pages.c ---- */

/* Planes that are gone through. */
struct hw_plane_list {
    const uintptr_t *plane;
    uint32_t count;
    uintptr_t memprof; /* one more, without cells of writes; 0: none */
};
static inline struct hw_plane_list hw_all_planes(void)
{
    return (struct hw_plane_list){hw_shadow.plane, __atomic_load_n(&hw_shadow.planes_used, __ATOMIC_ACQUIRE),
                                  hw_shadow.memprof_used ? hw_shadow.memprof : 0};
}

#define HW_SHADOW_PAGE (HW_PAGE << hw_shadow.shift) /* program memory that one page of shadow stands for */

/* Which pages of the shadow of a range are there, in several planes: asked of the kernel for many at a time. All pages
 * are, when it must not be asked. */
struct hw_shadow_pages {
    const struct hw_plane_list *list;
    uintptr_t begin;              /* the shadow of the range: from so far behind each plane's begin on */
    uint64_t count;               /* its pages */
    uint64_t first, known, batch; /* THERE is known of [first, first + known): BATCH bytes for each plane, bit 0 */
    uint8_t there[2048];
};
/* Of the shadow for [start, end). START is a multiple of HW_SHADOW_PAGE. */
struct hw_shadow_pages hw_shadow_pages_of(const struct hw_plane_list *list, uintptr_t start, uintptr_t end);
/* The first page from PAGE on that some plane has; COUNT if there is none. */
uint64_t hw_shadow_pages_next(struct hw_shadow_pages *pages, uint64_t page);
/* The planes that have PAGE, which hw_shadow_pages_next has found. PRESENT: room for HW_PLANES_MOST. */
struct hw_plane_list hw_shadow_planes_in(const struct hw_shadow_pages *pages, uint64_t page, uintptr_t *present);
/* Gives all of the range's pages back: they read as zero. */
void hw_shadow_pages_drop(const struct hw_shadow_pages *pages);

/* ---- cells.c ---- */

/* Adds up the cells of [start, end) in all planes; TAKE: they are zero then. HISTOGRAM may be NULL. */
void hw_cells_scan(uintptr_t start, uintptr_t end, bool take, struct hw_cell_sum *sum,
                   struct hw_histogram_target *histogram);
/* Takes what is in a block that may share its first and last granule with others: what is counted there is added, and
 * stays there for them. */
void hw_cells_scan_shared(uintptr_t start, uintptr_t end, struct hw_cell_sum *sum,
                          struct hw_histogram_target *histogram);
void hw_cells_clear(uintptr_t start, uintptr_t end);
/* The cells of [from, end) go to where [to, …) is. The two do not overlap, but with the granule 4, where [to, …) is
 * clean apart from what they have in common. */
void hw_cells_move(uintptr_t from, uintptr_t to, uintptr_t end);
/* The cells of [start, end) are added to that of TO; false, and nothing has happened, where that is no place for them:
 * small granules, long ranges. */
bool hw_cells_gather(uintptr_t start, uintptr_t end, uintptr_t to);

/* ---- watched_blocks.c: blocks that code writes to which does not count ---- */

#define HW_WATCHED       2048u
#define HW_WATCHED_WORDS 128 /* of 4 bytes, from a block's begin on */
struct hw_watched {
    uintptr_t address; /* 0: free; 1: being filled */
    uint32_t words;
    uint8_t digest[HW_WATCHED_WORDS]; /* as they were when it was allocated */
};
extern HW_HIDDEN struct hw_watched hw_watched[HW_WATCHED];

static inline struct hw_watched *hw_watched_at(uintptr_t address)
{
    return &hw_watched[(address >> 5) * 0x9e3779b97f4a7c15ull >> 53];
}
_Static_assert(HW_WATCHED == 1u << (64 - 53), "hash");

void hw_watch_begin(uintptr_t address, size_t size);
/* A block is allocated: the NUMBERth of its MIB, from 0. */
static inline void hw_watch_allocated(uint64_t number, uintptr_t address, size_t size)
{
    struct hw_watched *block = hw_watched_at(address);
    if (hw_unlikely(__atomic_load_n(&block->address, __ATOMIC_RELAXED) == address)) /* of one that was reallocated */
        __atomic_store_n(&block->address, 0, __ATOMIC_RELAXED);
    if (hw_unlikely((number & (number + 1)) == 0))
        hw_watch_begin(address, size);
}
/* Whether uncounted code has written to it so far, as far as that is known. Its cells have not been taken. */
bool hw_watch_changed(uintptr_t address, size_t size);
/* A block ends: the same, and it is watched no more. */
static inline bool hw_watch_freed(uintptr_t address, size_t size)
{
    struct hw_watched *block = hw_watched_at(address);
    if (hw_likely(__atomic_load_n(&block->address, __ATOMIC_RELAXED) != address))
        return false;
    const bool changed = hw_watch_changed(address, size);
    __atomic_store_n(&block->address, 0, __ATOMIC_RELEASE);
    return changed;
}
/* No block is watched: cells are about to be cleared. */
void hw_watch_forget(void);

/* ---- word_cells.c: what the functions of cells.c do with the granule 4, in some planes ---- */

void hw_words_scan(const struct hw_plane_list *list, uintptr_t start, uintptr_t end, bool take, struct hw_cell_sum *sum,
                   struct hw_histogram_target *histogram);
void hw_words_clear(const struct hw_plane_list *list, uintptr_t start, uintptr_t end);
void hw_words_move(const struct hw_plane_list *list, uintptr_t from, uintptr_t to, uintptr_t end);
void hw_words_each(const struct hw_plane_list *list, uintptr_t start, uintptr_t end, bool take,
                   void (*each)(uintptr_t address, const struct hw_global_granule *counts));
/* What was carried of words in [start, end) is cleared; that of [from, end) goes to where [to, …) is. */
void hw_words_clear_carries(uintptr_t start, uintptr_t end);
void hw_words_move_carries(uintptr_t from, uintptr_t to, uintptr_t end);
/* A block of the layout that is freed: its cells are taken, and added to the words of the MIB. */
void hw_words_freed(const struct hw_mib *mib, uint32_t free_context, uintptr_t start, uintptr_t end,
                    struct hw_cell_sum *sum);
/* Whether a new block's cells are clean; false: perhaps not. */
bool hw_words_are_clear(uintptr_t start, uintptr_t end);
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
