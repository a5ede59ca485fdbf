/* pairs.h - a table from a pair of numbers to an index: for finding equal things in linear time. */
#ifndef HW_REPORT_VIEW_PAIRS_H
#define HW_REPORT_VIEW_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hw_pair {
    uint64_t a;
    uint32_t b;
    uint32_t index; /* UINT32_MAX: the place is free */
};

struct hw_pairs {
    struct hw_pair *places;
    size_t mask;
};

/* Room for at most EXPECTED different pairs; it does not grow. False when there is no memory. */
bool hw_pairs_make(struct hw_pairs *pairs, size_t expected);
void hw_pairs_free(struct hw_pairs *pairs);

/* The index stored for (A, B). When there is none, NEXT is stored and returned, and *NEW is set, else cleared. */
uint32_t hw_pairs_intern(struct hw_pairs *pairs, uint64_t a, uint32_t b, uint32_t next, bool *new);

#endif
