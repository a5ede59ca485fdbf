/* candidates.h - the configurations worth a trial for a program: every installed allocator as it comes, and with each
 * value of each of its settings that its version has and that may matter for this program. */
#ifndef HW_TUNING_CANDIDATES_H
#define HW_TUNING_CANDIDATES_H

#include "allocators/installed.h"
#include "profile/profile.h"
#include "tuning/configuration.h"
#include "tuning/race.h"

/* A setting that is not tried. */
struct hw_untried {
    char name[2 * HW_SETTING_TEXT + 2]; /* "glibc arena_max" */
    char why[512];
};

struct hw_candidates {
    struct hw_configuration *of; /* the first: the program as it is */
    size_t count;
    struct hw_untried *untried;
    size_t untried_count;
};

/* What PROFILE (allocator mode; NULL: there is none) and COST of a plain run say of the program, for the conditions of
 * settings. */
void hw_known_facts_of_run(struct hw_known_facts *facts, const struct hw_profile *profile,
                           const struct hw_run_cost *cost);

/* PRESENT: index in ALLOCATORS of what the program uses; their count: none of them. PRELOAD: whether others can be
 * loaded into the program. False with ERROR. Free in any case. */
bool hw_candidates_make(struct hw_candidates *candidates, const struct hw_settings *settings,
                        const struct hw_allocators *allocators, size_t present, bool preload,
                        const struct hw_known_facts *facts, struct hw_error *error);

/* Adds combinations of the settings that did best in RACE so far, at most HW_RACE_COMBINED: of an allocator's settings
 * those that are better than it is without, and the best setting of the kernel. Returns the count of configurations. */
size_t hw_candidates_combine(struct hw_candidates *candidates, const struct hw_race *race);

/* Adds CONFIGURATION, or a setting that is not tried. False with ERROR: too many, or no memory. */
bool hw_candidates_add(struct hw_candidates *candidates, const struct hw_configuration *configuration,
                       struct hw_error *error);
bool hw_candidates_add_untried(struct hw_candidates *candidates, const char *name, const char *why,
                               struct hw_error *error);
void hw_candidates_free(struct hw_candidates *candidates);

#endif
