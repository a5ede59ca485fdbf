/* moments.h - what programs/moments.c says of itself. */
#ifndef TESTS_PROGRAMS_MOMENTS_H
#define TESTS_PROGRAMS_MOMENTS_H

/* Of the function `marked`, which frees what it has allocated. */
struct count {
    long allocations, frees, reallocations;
};

#endif
