/* analysis.h - a profile -> how its data lies in cache lines, and what is worth changing.
 *
 * Numbers only: sentences are made by the report. docs/fields.md explains the model and where its formulas come from.
 * Memory and time are linear in the profile, but for the search of layouts, which has a bound for each struct. */
#ifndef HW_ANALYSIS_ANALYSIS_H
#define HW_ANALYSIS_ANALYSIS_H

#include "analysis/layout.h"
#include "profile/profile.h"

/* What fits into a first-level cache stays there: data that is smaller costs nothing however it lies. */
#define HW_CACHE_BYTES (32 * 1024)

/* Sampled fields: of fewer uses of a struct no layout is suggested. */
#define HW_SAMPLED_USES 100

/* What is analysed. Everything must outlive the analysis. */
struct hw_analysis_input {
    const struct hw_profile *profile;
    const struct hw_profile_fields *fields; /* NULL: the profile's */
    double field_weight; /* sampled fields: accesses that one stands for, about: only to rank findings; 0: 1 */
    const struct hw_profile_context *const *contexts; /* those of the report; `access` may be NULL */
    size_t context_count;
    /* Adds the accesses to the blocks of a context, by word from the first one on, to WORDS (COUNT of them, zeroed);
     * false: they are not known. */
    bool (*words)(const void *closure, size_t context, uint64_t *words, size_t count);
    unsigned word_bytes; /* 8, or 4; 0: words are not distinguished */
    bool periods;        /* not accesses, but how often a sampler saw that there were some */
    bool (*unseen)(const void *closure,
                   size_t context); /* its blocks may be used by code that does not count; or NULL */
    /* Where accesses were sampled: how many samples fell on lines of a context's blocks that threads share falsely, and
     * how many such lines were seen; NULL: they were not. SAMPLES: those in all blocks. */
    uint64_t (*shared_samples)(const void *closure, size_t context, uint64_t *lines);
    uint64_t samples, sample_weight; /* weight: accesses that one stands for; 0: not known */
    uint64_t global_lines; /* with global variables that threads share falsely, so often that it is not known how often
                            */
    const struct hw_contents *const *contents; /* by context, what its blocks hold, or NULL; NULL: not known */
    const uint32_t *context_of; /* by a context's id in the file: index into contexts, or more; NULL: not known */
    const void *closure;
};

/* ---- objects of a type (objects.c) ---- */

enum hw_placement {
    HW_PLACE_UNKNOWN, /* no block is known to be of that type: global variables, parts of others, allocations whose type
                         the compiler did not see */
    HW_PLACE_SINGLE,  /* a block each */
    HW_PLACE_ARRAY,   /* side by side in larger blocks */
};

struct hw_objects {
    enum hw_placement placement;
    bool by_size;       /* no block has the type: those of unknown type with exactly its size are taken for it */
    uint32_t *contexts; /* indexes into the input's; context_count of them */
    size_t context_count;
    uint64_t allocated; /* objects in all blocks of the run; at least 1 each block */
    uint64_t live;      /* of them at the peak of the process, at its end, or on average: the greatest of the three */
    uint64_t live_bytes;
    bool starts_assumed;  /* where in a line blocks begin was not counted: all places that are possible are taken as
                           * equally likely, and what is said of lines is a mean over them */
    unsigned usual_start; /* counted: nine blocks in ten begin so many bytes behind the begin of a line; else HW_LINE */
};

/* ---- structs ---- */

/* A use of one object: what is accessed between coming to it and leaving it (visits.c). */
struct hw_touch {
    uint32_t field; /* of the struct, from 0 */
    uint32_t bytes; /* from the field's start */
};
struct hw_visit {
    double executions;
    size_t first_touch, touch_count; /* sorted by field, each once */
    uint64_t bytes;                  /* sum */
    bool walk;                       /* of an array: often enough that all elements may be visited in order */
    double lines, suggested_lines;   /* that one brings in: as it is, and under the suggestion (0: there is none) */
};

struct hw_visits {
    struct hw_visit *visits; /* most executions first */
    size_t count;
    struct hw_touch *touches;
    double executions; /* of all */
    double bytes;      /* executions times bytes, of all */
};

/* Lines that the uses of a struct bring in, under one layout. Means over uses. */
struct hw_lines {
    double per_use;         /* 64-byte lines with a byte that the use touches */
    double needed;          /* lines that as many bytes take if they lie together: bytes / 64, at least 1 for a use that
                               comes to the object by itself */
    double bytes_needed;    /* bytes touched */
    double missed;          /* sum over all uses of lines brought into a first-level cache */
    double missed_in_order; /* the same, if each use is part of a walk through blocks that lie side by side, from one to
                               the next: they share lines. Where it is not known how blocks lie: as `missed` */
};

/* Which fields are used together. */
struct hw_affinity {
    uint32_t a, b;     /* fields of the struct, a < b */
    uint64_t together; /* uses that touch both */
    uint64_t weight;   /* in sampled windows */
};

enum hw_suggestion_kind { HW_SUGGEST_NOTHING, HW_SUGGEST_REORDER, HW_SUGGEST_SPLIT };

struct hw_suggestion {
    enum hw_suggestion_kind kind;
    struct hw_layout hot;  /* the struct; of a split with a pointer to the rest at the end, which is no unit */
    struct hw_layout cold; /* of a split */
    uint64_t pointer;      /* of a split: its offset in the hot part */
    struct hw_lines lines; /* cold part included */
    double aligned_lines;  /* per use, if objects begin at lines and end at them as well */
};

struct hw_struct_analysis {
    const struct hw_profile_struct *structure;
    struct hw_objects objects;
    struct hw_visits visits;
    struct hw_units units;        /* of its definition */
    uint32_t prefix;              /* fields that another struct begins with, too: they may be used through that one */
    struct hw_lines lines;        /* as it is */
    double least_lines;           /* per use, if all objects began where it is best; where that is not counted */
    double aligned_lines;         /* per use, as it would be with objects that begin at lines and end at them */
    double fragmentation;         /* share of the bytes brought in that is not used: 0 to 1 */
    uint64_t rfc_ratio;           /* disparity of adjacent fields: sum of greater / lesser count (of at least 1) */
    uint64_t padding;             /* bytes of no member */
    struct hw_affinity *affinity; /* strongest first */
    size_t affinity_count;
    bool affinity_cut; /* there are more */
    struct hw_suggestion suggestion;
};

/* ---- findings ---- */

enum hw_finding_kind {
    HW_FINDING_LAYOUT,        /* fields used together lie in more lines than they need */
    HW_FINDING_ASTRIDE,       /* objects begin in the midst of a line */
    HW_FINDING_PADDING,       /* bytes of no member that another order saves */
    HW_FINDING_UNUSED_FIELDS, /* never accessed */
    HW_FINDING_UNREAD_FIELDS, /* written, never read */
    HW_FINDING_SPARSE,        /* blocks of which less than half is ever touched */
    HW_FINDING_UNUSED_WORDS,  /* bytes at the same place of all blocks that none touches */
    HW_FINDING_HEADER,        /* blocks of which only the beginning is hot */
    HW_FINDING_FALSE_SHARING, /* threads write different words of one line */
    HW_FINDING_SHARED_WRITES, /* several threads write one 64-byte granule: words are not distinguished */
    HW_FINDING_COPIES,        /* blocks that hold the same as others */
    HW_FINDING_ZEROS,         /* blocks, and pages of blocks, that hold zeros only */
    HW_FINDING_ENDS,          /* blocks that are larger than what they hold */
    HW_FINDING_UNWRITTEN,     /* blocks in memory that were never written */
    HW_FINDING_PINNED,        /* a few blocks keep pages resident that are mostly free */
    HW_FINDING_OUT_OF_MEMORY, /* the OOM killer ended the process; not certain: it may have */
    HW_FINDING_KINDS
};

struct hw_finding {
    enum hw_finding_kind kind;
    bool may_lie_well; /* a layout: there is nothing to gain if all blocks begin where it is best, which is not known */
    bool certain; /* false: how many objects there are, or where in lines they begin, is not known, so that it may cost
                   * nothing */
    double cost;  /* bytes moved into the cache, or held, for nothing: what findings are ranked by */
    size_t structure;       /* index into structs, or SIZE_MAX */
    const uint32_t *fields; /* of the struct, concerned; field_count of them */
    size_t field_count;
    const uint32_t *contexts; /* indexes into the input's; context_count of them */
    size_t context_count;
    double lines;          /* gain: lines not brought in any more; 0: none */
    double lines_in_order; /* layout: that gain with hw_lines.missed_in_order */
    double bytes;          /* gain: memory not needed any more; 0: none */
    /* Of blocks: */
    uint64_t blocks, block_bytes;  /* how many at once, bytes of each (mean) */
    uint64_t first_byte, end_byte; /* unused words: the longest run; header: the hot bytes */
    uint64_t part, whole; /* untouched bytes of all; accesses to the header of all; lines falsely shared of touched; out of
                           * memory: of the cgroup and its limit, at the last reading */
    uint64_t writes;
    uint64_t hot;     /* false sharing: lines among `part` of which it is not known how often they are passed on */
    uint64_t samples; /* false sharing that samples show: `part` lines, so many of `whole` samples; else 0 */
    uint64_t arena_bytes, arena_most_bytes; /* pinned: pages that the blocks need in an arena; after frees in no order
                                             */
    double times;                           /* copies: how often each content occurs; 0: not known */
    uint64_t periods; /* unused words: those in which others of the blocks' words were used; input's `periods` only */
};

struct hw_analysis {
    struct hw_analysis_input input;
    struct hw_struct_analysis *structs; /* most lines brought in first; only those with accesses */
    size_t struct_count;
    struct hw_finding *findings; /* by rank */
    size_t finding_count;
    void *storage; /* private */
};

/* NULL with ERROR when there is no memory. */
struct hw_analysis *hw_analysis_new(const struct hw_analysis_input *input, struct hw_error *error);
void hw_analysis_free(struct hw_analysis *analysis);

/* A sum of counts, as a count: sums are kept as doubles, which may pass what fits. */
static inline uint64_t hw_count_of(double value)
{
    return value > 0 ? value < 0x1p64 ? (uint64_t)value : UINT64_MAX : 0;
}

/* "layout", "padding", … as JSON has them. */
extern const char *const hw_finding_kind_names[HW_FINDING_KINDS];

#endif
