/* tune.h - what the files of the verb `heapwise tune` share. */
#ifndef HW_CLI_TUNE_H
#define HW_CLI_TUNE_H

#include "tuning/race.h"
#include "tuning/trial_log.h"

struct hw_tuned {
    struct hw_trial_plan plan;
    struct hw_race race;
    const char *output;     /* the file in which the winner is; NULL: none */
    bool unsteady;          /* the program does not print the same each time: its output was not compared */
    bool input_replaced;    /* a terminal, by nothing */
    bool too_short;         /* runs are mostly the start of the program */
    char profile_note[512]; /* why there is no profile; "": there is one */
};

void hw_tuned_print(const struct hw_tuned *tuned);
/* False: no memory, or stdout cannot be written. */
bool hw_tuned_print_json(const struct hw_tuned *tuned);

#endif
