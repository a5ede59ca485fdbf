/* lookup.h - the contexts of one function out of a symbolised profile, without reading the rest of it.
 *
 * A context belongs to every function of its leaf's inline chain, as compilers need it: whatever was inlined where,
 * what a function allocates is found under its name. Reads a few blocks (or chunks, of packed sections) and keeps them
 * for later look-ups. Not thread-safe per object. No verb uses it: report --function finds callers, too, which the index
 * does not have. */
#ifndef HW_PROFILE_MODEL_LOOKUP_H
#define HW_PROFILE_MODEL_LOOKUP_H

#include "profile/profile.h"

struct hw_lookup;

/* NULL with ERROR when the file cannot be read or has no index of functions (it was not symbolised, or is not sealed).
 * Damage is found only in parts that are read: hw_profile_read reads everything. */
struct hw_lookup *hw_lookup_open(const char *path, struct hw_error *error);
void hw_lookup_close(struct hw_lookup *lookup);

/* True when a report of hw_lookup_function's profile says all that one of the whole file says of these contexts and of
 * the process: there are no free stacks, accesses or estimates, which need sections or sums of the whole. */
bool hw_lookup_is_complete(const struct hw_lookup *lookup);

/* The contexts of FUNCTION, by its readable or its linkage name, as a profile of their own: counts and stacks, and,
 * with NAMES, the symbols of all frames. Ids are those of the file, and what is said of the process is of all of it.
 * There are no contexts when none belongs to FUNCTION. Does not refer to LOOKUP. NULL with ERROR when there is no
 * memory or the file is damaged there. */
struct hw_profile *hw_lookup_function(struct hw_lookup *lookup, const char *function, bool names,
                                      struct hw_error *error);

#endif
