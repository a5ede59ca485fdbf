/* mix.h - what a program asks of its allocator, as numbers: which sizes, how, for how long, by which threads.
 *
 * Made from a profile (predict_profile.c), written as text, read by heapwise-replay, which allocates like that. Shared
 * by both: no allocation, nothing of Heapwise's libraries. */
#ifndef HW_ALLOCATORS_MIX_H
#define HW_ALLOCATORS_MIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/size_bucket.h"

enum hw_mix_kind { HW_MIX_MALLOC, HW_MIX_CALLOC, HW_MIX_REALLOC, HW_MIX_ALIGNED, HW_MIX_FREE, HW_MIX_KINDS };
extern const char *const hw_mix_kind_names[HW_MIX_KINDS];
enum { HW_MIX_SERIAL, HW_MIX_PARALLEL, HW_MIX_PHASES };
#define HW_MIX_LIFE_BITS    48
#define HW_MIX_THREADS_MOST 16

/* Blocks of sizes of one bucket (size_bucket.h). */
struct hw_mix_bucket {
    uint64_t count[HW_MIX_PHASES][HW_MIX_FREE]; /* allocations, by phase and kind */
    /* How long blocks live: lives[0] are freed before the next operation of their thread, lives[k] after 2^(k-1) to
     * 2^k - 1 of them; `kept` ones not at all; `crossed` of those that are freed are so by another thread. */
    uint64_t lives[HW_MIX_LIFE_BITS], kept, crossed;
};

struct hw_mix {
    uint64_t seed;
    uint32_t threads;   /* in the parallel phase */
    uint64_t live_most; /* bytes that may be allocated at once */
    uint64_t limit;     /* allocations to replay at most, of each phase */
    uint64_t fresh;     /* of 1000 reallocations: those that are first allocations (of NULL) */
    struct hw_mix_bucket of[HW_SIZE_BUCKETS];
};

/* Writes MIX as text; the length, or 0 when SIZE does not suffice. */
size_t hw_mix_print(const struct hw_mix *mix, char *text, size_t size);
/* Reads it again. False: malformed. */
bool hw_mix_parse(struct hw_mix *mix, const char *text);

uint64_t hw_mix_allocations(const struct hw_mix *mix, int phase);

#endif
