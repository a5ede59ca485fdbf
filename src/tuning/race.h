/* race.h - which of several configurations is the best, and is it really better than the plain one?
 *
 * First rounds select: each round runs the plain configuration and all that are still in the race, in an order drawn by
 * lot; after some rounds the better half stays, by the median ratio to the plain run of the same round (successive
 * halving: Jamieson and Talwalkar, Non-stochastic Best Arm Identification and Hyperparameter Optimization, AISTATS
 * 2016). The best of many noisy ones looks better than it is; so the last two are then run in rounds of their own,
 * which had no part in the selection, and only these decide whether a finalist is better than the plain one; if both
 * are, all rounds decide which one wins. The confidence of 95 % is divided by the number of comparisons and of looks at
 * the data (Bonferroni).
 *
 * Between the two, the best settings are combined, and the combinations are selected from in the same way, together
 * with the best of the others. A combination wins only if it is also better than the best of those, in the rounds that
 * decide. Runs nothing itself: trials come from a source, in tests from a simulated one. */
#ifndef HW_TUNING_RACE_H
#define HW_TUNING_RACE_H

#include "tuning/pairs.h"

#define HW_RACE_MOST     256  /* configurations */
#define HW_RACE_EFFECT   0.99 /* scores above are not worth a change */
#define HW_RACE_FINAL    2
#define HW_RACE_PLAIN    0 /* its index */
#define HW_RACE_PROBLEM  320
#define HW_RACE_FAR      1.5 /* a ratio to the plain run from which a configuration is given up at once */
#define HW_RACE_CONFIRM  40  /* rounds that decide, at most */
#define HW_RACE_COMBINED 8   /* combinations at most */

struct hw_race_trial {
    struct hw_run_cost cost;
    double score;                  /* less is better; above 0 */
    char problem[HW_RACE_PROBLEM]; /* why the configuration cannot be used; "": nothing is wrong */
};

struct hw_race;

struct hw_race_source {
    void *closure;
    /* One run under configuration INDEX. False with ERROR: the race ends here. */
    bool (*run)(void *closure, size_t index, struct hw_race_trial *trial, struct hw_error *error);
    /* Seconds since some moment; the same when the same trials are repeated from a record. */
    double (*now_s)(void *closure);
    /* Adds at most HW_RACE_COMBINED configurations that combine the best ones so far, behind the others, and returns
     * how many there are then. Each time the same for the same trials. May be NULL. */
    size_t (*combine)(void *closure, const struct hw_race *race);
    /* What is going on, for people; DONE: the part of the work that is done, at most 1. May be NULL. */
    void (*progress)(void *closure, const char *what, size_t round, size_t rounds, size_t racing);
};

enum hw_race_state { HW_RACE_IN, HW_RACE_LEFT, HW_RACE_EXCLUDED };

/* What is known of one configuration. */
struct hw_entrant {
    enum hw_race_state state;
    size_t stage;                  /* in which it left, from 1; 0: it is in */
    char problem[HW_RACE_PROBLEM]; /* excluded: why */
    struct hw_pairs selection;     /* rounds of the selection: with the plain run of the same round */
    struct hw_pairs confirmation;  /* the rounds that decide */
    double base[HW_PAIRS_MOST], score[HW_PAIRS_MOST];             /* of the selection */
    double base_again[HW_PAIRS_MOST], score_again[HW_PAIRS_MOST]; /* of the rounds that decide */
    struct hw_ratio selected;                                     /* of the selection's scores */
    struct hw_ratio confirmed; /* of the deciding rounds' scores, at the confidence that decided */
};

enum hw_race_end {
    HW_RACE_WINNER,     /* confirmed in fresh rounds */
    HW_RACE_NO_GAIN,    /* none is better beyond the noise */
    HW_RACE_NO_TIME,    /* the budget was too small to confirm the best one */
    HW_RACE_NONE,       /* no other configuration can be used */
    HW_RACE_UNFINISHED, /* interrupted */
};

struct hw_race {
    double budget_s; /* in: of time for all trials */
    uint64_t random; /* in: the seed */
    size_t count;    /* in: configurations, the plain one included; at most HW_RACE_MOST. Combinations are added */
    struct hw_entrant *of;
    size_t finalists[HW_RACE_FINAL], finalist_count;
    enum hw_race_end end;
    size_t winner;               /* HW_RACE_PLAIN: none */
    size_t single_count;         /* configurations from here on are combinations */
    struct hw_ratio over_single; /* of a combination in the final to the other finalist; value 0: there was none */
    size_t trials;               /* that were run */
    double begin_s, trial_s;     /* seconds of a trial, about */
};

/* RACE: budget_s, random and count are set, the rest is zero. False with ERROR when the source ended the race, or
 * without memory: what is known so far is there nevertheless. Free in any case. */
bool hw_race_run(struct hw_race *race, const struct hw_race_source *source, struct hw_error *error);
void hw_race_free(struct hw_race *race);

/* The ratio of METRIC to the plain configuration, from the rounds that decided or, where there are none, from the
 * selection: an estimate only, for those that were selected. */
struct hw_ratio hw_race_ratio(const struct hw_entrant *entrant, enum hw_metric metric);

#endif
