/* observe.h - completes a profile of allocator mode after its run: how the allocator works, what others would do. */
#ifndef HW_ALLOCATORS_OBSERVE_H
#define HW_ALLOCATORS_OBSERVE_H

#include "allocators/installed.h"
#include "profile/profile.h"

/* What was found out for the profile before: the processes of a run mostly have one allocator. All zeros at first. */
struct hw_remembered_facts {
    char path[PATH_MAX]; /* of the allocator; "": none yet */
    struct hw_facts facts;
    bool probed;
};

struct hw_observe_options {
    const struct hw_facts *told;  /* instead of what would be found out; NULL: none */
    struct hw_remembered_facts *known; /* NULL: nothing is remembered */
    bool predict;                 /* replay with all installed allocators: takes some seconds */
};

/* How the allocator of PROFILE's process works: from the profile, or from a probe. Never fails: `why` says why a fact
 * is not known. *PROBED: a probe could use it. */
void hw_facts_of_profile(const struct hw_profile *profile, struct hw_facts *facts, bool *probed);

#define HW_PREDICTIONS_MOST HW_ALLOCATORS_MOST

/* What the run of PROFILE would have been with each of ALLOCATORS but its own, by replays here. NOW_S: what the program
 * takes without being observed, 0 when that is not known. Returns how many there are. Takes some seconds. */
size_t hw_predict_profile(const struct hw_profile *profile, const struct hw_allocators *allocators, double now_s,
                          struct hw_allocator_prediction predictions[HW_PREDICTIONS_MOST]);

/* Had the program of PROFILE more threads at work at once than there are processors here? */
bool hw_fewer_processors(const struct hw_profile *profile);

/* Adds the sections to the sealed profile PATH of allocator mode. False with ERROR; the file is as it was then. */
bool hw_observe(const char *path, const struct hw_observe_options *options, struct hw_error *error);

#endif
