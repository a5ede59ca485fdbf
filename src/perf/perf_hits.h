/* perf_hits.h - samples of perf and where each of them fell, and what is added up from them. */
#ifndef HW_PERF_PERF_HITS_H
#define HW_PERF_PERF_HITS_H

#include "perf/perf_match.h"

/* A sample, and where it fell. */
struct hw_perf_hit {
    const struct hw_perf_sample *sample;
    enum hw_perf_scope scope;
    uint32_t context; /* these of blocks only */
    uint32_t block;   /* the event that began it */
    uint64_t word;    /* offset / 8; outside of blocks: address / 8 */
    bool used;
};

/* CLOCK_MONOTONIC. */
uint64_t hw_perf_ns_of_tick(const struct hw_perf_match *match, uint64_t tick);

/* Adds to match->counts: all samples, those of each scope, of each place, and of the words of places. HITS are sorted
 * anew. False: no memory. */
bool hw_perf_add_places(struct hw_perf_match *match, struct hw_perf_hit *hits, size_t hit_count);
/* Adds to match->sides: lines with HITM, and who else used them at that time. ENDED: by event, when its block ended;
 * UINT64_MAX: it did not. HITS are sorted anew. False: no memory. */
bool hw_perf_add_lines(struct hw_perf_match *match, struct hw_perf_hit *hits, size_t hit_count, const uint64_t *ended);

#endif
