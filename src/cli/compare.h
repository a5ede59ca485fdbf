/* compare.h - what the files of the verb `heapwise compare` share. */
#ifndef HW_CLI_COMPARE_H
#define HW_CLI_COMPARE_H

#include "tuning/pairs.h"
#include "tuning/trial.h"

enum { HW_SIDE_A, HW_SIDE_B, HW_SIDES };

struct hw_ab_side {
    char **command;
    const char *config;    /* the file of its configuration; NULL: none */
    struct hw_trial first; /* the warm-up run */
    bool unsteady;         /* it does not print the same in each run */
};

struct hw_ab {
    struct hw_ab_side side[HW_SIDES];
    struct hw_pairs pairs;
    uint64_t wanted; /* pairs */
    double tolerance;
    bool judged[HW_METRICS]; /* decides about the exit code */
    bool output_kept, output_differs;
    bool input_replaced; /* a terminal, by nothing */
    char failure[512];   /* what is wrong with a run of B; "": nothing */
};

/* Whether B failed, or is worse beyond the tolerance in what is judged. */
bool hw_ab_worse(const struct hw_ab *ab);

void hw_ab_print(const struct hw_ab *ab);
/* Only that the two print different output, if they do. */
void hw_ab_print_output(const struct hw_ab *ab);
/* False: no memory, or stdout cannot be written. */
bool hw_ab_print_json(const struct hw_ab *ab);

#endif
