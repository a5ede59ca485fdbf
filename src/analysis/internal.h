/* internal.h - what the files of the analysis give each other. */
#ifndef HW_ANALYSIS_INTERNAL_H
#define HW_ANALYSIS_INTERNAL_H

#include "analysis/analysis.h"

/* Memory that lives as long as the analysis: hw_pool_take returns zeroed room for COUNT items, NULL (and sets `failed`)
 * when there is none. */
struct hw_pool {
    void **pieces;
    size_t count, capacity;
    bool failed;
};
void *hw_pool_take(struct hw_pool *pool, size_t count, size_t size);
void hw_pool_free(struct hw_pool *pool);

/* ---- objects.c ---- */

/* Contexts by type, and those of unknown type by size. */
struct hw_object_index {
    const struct hw_analysis_input *input;
    uint32_t *by_type, *by_size;
    size_t type_count, size_count;
};
bool hw_object_index_make(struct hw_object_index *index, const struct hw_analysis_input *input, struct hw_pool *pool);
struct hw_objects hw_objects_of(const struct hw_object_index *index, const struct hw_profile_struct *structure,
                                struct hw_pool *pool);
/* Blocks of a context that are there at once: at the peak, at the end, or on average. */
uint64_t hw_live_blocks(const struct hw_profile *profile, const struct hw_profile_context *context);

/* ---- visits.c ---- */

struct hw_visits hw_visits_of(const struct hw_profile_fields *fields, const struct hw_profile_struct *structure,
                              const struct hw_objects *objects, struct hw_pool *pool);
void hw_affinity_of(struct hw_struct_analysis *of, const struct hw_profile_fields *fields, struct hw_pool *pool);

/* ---- line_counts.c ---- */

/* Where objects begin in lines. */
struct hw_ground {
    enum hw_placement placement;
    uint64_t live;   /* objects; 0: not known */
    double share[8]; /* of blocks that begin 8 * i bytes behind the begin of a line */
    /* Where that was counted, of single objects: what it is of objects of another size, */
    bool counted, chunks; /* with glibc's chunks, one behind the other; else anywhere */
    uint64_t size;        /* it was counted for this one */
    uint64_t beside;      /* bytes of a chunk that each object has beside its own: the other part of a split */
    uint64_t stride;      /* not 0: blocks so many bytes apart are visited one after the other */
};
struct hw_ground hw_ground_of(const struct hw_analysis_input *input, const struct hw_struct_analysis *of);

#define HW_LINES_LARGEST 65536 /* bytes of a struct whose lines are counted */

/* Scratch memory of the counting. Zero-initialise, give `seen` room for HW_LINES_SEEN entries, zeroed. */
#define HW_LINES_SEEN (3 * HW_LINES_LARGEST)
struct hw_line_counter {
    uint32_t *seen;
    uint32_t stamp;
    uint64_t work; /* touches examined so far */
};

/* Distinct lines per use that a visit brings in where fields lie at OFFSETS in objects of SIZE bytes. Fields that are
 * not there are passed over; EXTRA: 8 bytes at this offset are touched too (UINT64_MAX: none). */
double hw_lines_of_visit(struct hw_line_counter *counter, const struct hw_ground *ground,
                         const struct hw_visits *visits, const struct hw_visit *visit, const uint64_t *offsets,
                         uint64_t size, uint64_t extra);

/* Share of those lines that a first-level cache does not hold. */
double hw_miss_share(const struct hw_ground *ground, double lines);

/* Sums over all visits; LINES (of as many, or NULL) gets those of each. Of a split COLD is the other part and POINTER
 * what leads there; else NULL. */
struct hw_lines hw_lines_measure(struct hw_line_counter *counter, const struct hw_ground *ground,
                                 const struct hw_visits *visits, const struct hw_layout *layout,
                                 const struct hw_layout *cold, uint64_t pointer, double *lines);

/* ---- search.c ---- */

/* Fills in of->suggestion; examines at most BUDGET touches. */
void hw_suggest(struct hw_struct_analysis *of, const struct hw_profile_fields *fields, const struct hw_ground *ground,
                struct hw_line_counter *counter, uint64_t budget, struct hw_pool *pool);

/* ---- structs.c, block_findings.c, content_findings.c, pin_findings.c, end_findings.c: findings ---- */

struct hw_finder {
    struct hw_analysis *analysis;
    struct hw_pool *pool;
    size_t capacity;
};
/* A new finding, or NULL when there is no memory. */
struct hw_finding *hw_finding_add(struct hw_finder *finder, enum hw_finding_kind kind, double cost);

bool hw_structs_analyse(struct hw_analysis *analysis, struct hw_pool *pool);
void hw_struct_findings(struct hw_finder *finder);
void hw_block_findings(struct hw_finder *finder);
void hw_content_findings(struct hw_finder *finder);
void hw_pin_findings(struct hw_finder *finder);
void hw_end_findings(struct hw_finder *finder);
/* Whether so many BYTES of memory are worth a finding. */
bool hw_is_worth(const struct hw_finder *finder, double bytes);

#endif
