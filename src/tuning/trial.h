/* trial.h - one run of a program under one configuration: what it cost, and whether it did what it should. */
#ifndef HW_TUNING_TRIAL_H
#define HW_TUNING_TRIAL_H

#include "allocators/timed_runs.h"

struct hw_trial_program {
    struct hw_run_request run; /* its `output` is set here */
    bool keep_output;          /* its standard output is kept in a temporary file and hashed; else it is dropped */
    const char *check;         /* for sh: it reads the output, and its exit code is 0 when that is right; NULL: none */
};

struct hw_trial {
    struct hw_run_cost cost;
    uint64_t output_hash, output_bytes; /* of its standard output, where that was kept */
    bool checked;
    double check_s; /* after which it was ended; 0: it ended by itself */
    int check_code; /* exit code of the check; 128 + n when signal n ended it */
};

/* False with ERROR when it, or the check, could not be started. */
bool hw_trial_run(const struct hw_trial_program *program, struct hw_trial *trial, struct hw_error *error);

/* Writes what is wrong with TRIAL, where EXPECTED ended as a run should: "it exited with code 3 (A exited with code
 * 0)". NAME: what EXPECTED is called. SAME_OUTPUT: both must have printed the same. False: nothing is wrong. */
bool hw_trial_problem(const struct hw_trial *trial, const struct hw_trial *expected, const char *name, bool same_output,
                      char *problem, size_t size);

#endif
