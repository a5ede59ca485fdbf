/* tune.h - what the files of the verb `heapwise tune` share. */
#ifndef HW_CLI_TUNE_H
#define HW_CLI_TUNE_H

#include <jansson.h>

#include "cli/options.h"
#include "profile/profile.h"
#include "tuning/race.h"
#include "tuning/server.h"
#include "tuning/trial_log.h"

#define HW_INSIDE 4

/* What a profile in allocator mode says of the allocator; NAN: not known. */
struct hw_tuned_inside {
    bool known;
    double of[HW_INSIDE];
};

struct hw_tuned {
    struct hw_trial_plan plan;
    struct hw_race race;
    const char *output;               /* the file in which the winner is; NULL: none */
    enum hw_metric metric;            /* that the goal stands for; not for "both" */
    bool server, server_killed;       /* it did not end by its signal */
    bool unsteady;                    /* the program does not print the same each time: its output was not compared */
    bool input_replaced;              /* a terminal, by nothing */
    bool too_short;                   /* runs are mostly the start of the program */
    struct hw_tuned_inside inside[2]; /* of the program as it is, and of the winner */
    char profile_note[512];           /* why there is no profile; "": there is one */
};

/* ---- tune_load.c: goals and servers ---- */

/* For hw_option: --for into a const char *, --stop into an int. */
bool hw_tune_take_goal(void *at, const char *value, const struct hw_option *option);
bool hw_tune_take_processors(void *at, const char *value,
                             const struct hw_option *option); /* --pin: into a const char * */
bool hw_tune_take_stop(void *at, const char *value, const struct hw_option *option);

/* The kernel's setting NAME is tried, with VALUE; NULL: without effect. */
void hw_tune_request(struct hw_settings *settings, const char *name, const char *value);

/* Whether the options of servers fit together and to GOAL. False with a message. */
bool hw_tune_check_server(const struct hw_server *server, const char *goal, bool check);

/* The metric that GOAL stands for, by what the first PLAIN run measured. False with ERROR: it did not measure it. */
bool hw_tune_find_metric(const char *goal, const struct hw_run_cost *plain, enum hw_metric *metric,
                         struct hw_error *error);
/* Less is better. */
double hw_tune_score(const char *goal, enum hw_metric metric, const struct hw_run_cost *cost);

/* ---- tune_inside.c ---- */

/* PROFILE: NULL: there is none. */
void hw_tuned_inside_take(struct hw_tuned_inside *inside, const struct hw_profile *profile);
void hw_tuned_inside_print(const struct hw_tuned_inside inside[2]);
json_t *hw_tuned_inside_json(const struct hw_tuned_inside *inside);

/* ---- tune_report.c ---- */

void hw_tuned_print(const struct hw_tuned *tuned);
/* False: no memory, or stdout cannot be written. */
bool hw_tuned_print_json(const struct hw_tuned *tuned);

#endif
