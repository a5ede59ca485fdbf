/* compare.h - what the measured runs of a program under several allocators say: medians, ratios, a choice. Arithmetic
 * only. */
#ifndef HW_ALLOCATORS_COMPARE_H
#define HW_ALLOCATORS_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_ROUNDS_MOST 101

/* A ratio of times: above 1 is faster. */
struct hw_speedup {
    double value, low, high;
};

/* The runs under one allocator. */
struct hw_candidate {
    size_t rounds;
    double wall_s[HW_ROUNDS_MOST];
    double cpu_s[HW_ROUNDS_MOST];       /* user and system time */
    double runnable_s[HW_ROUNDS_MOST];  /* in which the first thread waited for a processor */
    uint64_t rss_bytes[HW_ROUNDS_MOST]; /* 0: not known */
    double faults[HW_ROUNDS_MOST];
    bool failed; /* ended otherwise than under the present one: not to be chosen */
    /* out: */
    double time_s, least_s, most_s; /* median and range of wall_s */
    double cpu_time_s, cpu_least_s; /* median and least */
    uint64_t peak_rss_bytes;        /* median; 0: not known */
    double page_faults;             /* median */
    struct hw_speedup measured;     /* against the present one */
};

double hw_median(const double *values, size_t count);

/* Sorts VALUES, at most HW_ROUNDS_MOST: their median, and an interval of confidence of at least 90 % for it from their
 * order alone (with fewer than 5: from the least to the greatest). Zeros when there are none. */
struct hw_speedup hw_median_range(double *values, size_t count);

/* Fills what is `out` of all candidates. Rounds are paired: the speedup is the median of the ratios, round by round,
 * its range that of hw_median_range(). PRESENT: index of what the program uses now. */
void hw_compare(struct hw_candidate *candidates, size_t count, size_t present);

enum hw_choice_reason {
    HW_CHOICE_TOO_SHORT, /* the runs are too short for an answer */
    HW_CHOICE_KEEP,      /* no other one is faster beyond the noise */
    HW_CHOICE_FASTER,
};

struct hw_choice {
    enum hw_choice_reason reason;
    size_t index;        /* the one to use */
    double memory;       /* its peak RSS by that of the present one; 0: not known */
    size_t least_memory; /* the one that needs the least; count: none is known */
    double least_memory_ratio;
};

#define HW_SHORTEST_S   0.02 /* runs below are mostly the start of the process */
#define HW_LEAST_EFFECT 1.01 /* differences below are not worth a change */

struct hw_choice hw_choose(const struct hw_candidate *candidates, size_t count, size_t present);

#endif
