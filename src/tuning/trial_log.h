/* trial_log.h - the trials of a race in a file, so that it can be continued later. A line of JSON for what is raced,
 * and one for each trial, written as soon as it is done: whatever ends the process, at most the last line is damaged.
 *
 * The race draws lots from a seed and reads no other clock than that of the trials: with the same trials it is the
 * same. To continue, it is run again, and takes the trials from the file until they are used up. */
#ifndef HW_TUNING_TRIAL_LOG_H
#define HW_TUNING_TRIAL_LOG_H

#include "tuning/candidates.h"
#include "tuning/race.h"

/* What the race is of. */
struct hw_trial_plan {
    char **command;     /* ended by NULL */
    const char *goal;   /* "time" */
    const char *limits; /* what else decides whether a trial is valid: other options, as text */
    double budget_s;
    uint64_t seed;
    struct hw_candidates candidates;
};

struct hw_logged_trial {
    size_t index;   /* of the configuration */
    double clock_s; /* of the race, after it */
    bool steady;    /* so far the plain configuration printed the same each time */
    struct hw_race_trial trial;
};

struct hw_trial_log {
    int file; /* open for appending; -1: nothing is kept */
    struct hw_logged_trial *of;
    size_t count, used; /* read from the file; and of them, already run again */
};

/* Opens PATH. If it exists, the log has its trials, and *FOUND is true: PLAN's budget, seed and candidates are then
 * those of the file (settings are found in SETTINGS). False with ERROR: it cannot be read, or is of another command or
 * goal. Free in any case. */
bool hw_trial_log_open(struct hw_trial_log *log, const char *path, struct hw_trial_plan *plan,
                       const struct hw_settings *settings, bool *found, struct hw_error *error);
/* Writes what is raced: first, and only if it was not found. */
bool hw_trial_log_begin(struct hw_trial_log *log, const struct hw_trial_plan *plan, struct hw_error *error);
/* The next trial of the file, if it is one of INDEX; NULL: there is none. */
const struct hw_logged_trial *hw_trial_log_next(struct hw_trial_log *log, size_t index);
bool hw_trial_log_add(struct hw_trial_log *log, const struct hw_logged_trial *trial, struct hw_error *error);
void hw_trial_log_free(struct hw_trial_log *log);

#endif
