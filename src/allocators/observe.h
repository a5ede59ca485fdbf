/* observe.h - completes a profile of allocator mode after its run: how the allocator works, what others would do. */
#ifndef HW_ALLOCATORS_OBSERVE_H
#define HW_ALLOCATORS_OBSERVE_H

#include "allocators/facts.h"
#include "profile/profile.h"

struct hw_observe_options {
    const struct hw_facts *told; /* instead of what would be found out; NULL: none */
    bool predict;                /* replay with all installed allocators: takes some seconds */
};

/* How the allocator works that the process of PROFILE used: what was told, or from a probe. Never fails: what cannot be
 * known is not, `why` says why. *PROBED: it could be tried out. */
void hw_facts_of_profile(const struct hw_profile *profile, struct hw_facts *facts, bool *probed);

/* Adds the sections to the sealed profile PATH of allocator mode. False with ERROR; the file is as it was then. */
bool hw_observe(const char *path, const struct hw_observe_options *options, struct hw_error *error);

#endif
