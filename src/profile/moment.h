/* moment.h - what was live at the moment of a profile, by context, and nothing else of it: for many dumps of one run.
 *
 * Contexts keep their numbers during a run, so those of its dumps are the same ones. */
#ifndef HW_PROFILE_MOMENT_H
#define HW_PROFILE_MOMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "profile/format.h"

struct hw_moment {
    struct hw_process_info process; /* as in the file */
    uint64_t session;               /* of the recording; 0: not known */
    uint64_t time_ns; /* since the start of the process; of a process that still runs as of its latest event */
};

/* What was live of a context. */
struct hw_moment_count {
    int64_t bytes, blocks;
    /* Of sampled runs: variance of BYTES, and of all that was ever allocated (struct hw_mib), in bytes squared. */
    double variance, added_variance;
};

/* False with ERROR: the file at PATH is no profile, or its process section is lost. */
bool hw_moment_read(const char *path, struct hw_moment *moment, struct hw_error *error);

/* Whether they are of one run of one process: a forked child has another one, and so has the program after an exec. */
bool hw_moment_same_run(const struct hw_moment *one, const struct hw_moment *other);

/* Adds what was live to COUNTS, by context: INDEX_OF (IDS entries) has the number of each, HW_NONE for those that do
 * not matter, as ids beyond IDS do not. *ALL: the same of all contexts but pools of the program, whose blocks lie in
 * others; its variances are sums. False with ERROR when it is damaged, or there is no memory. */
bool hw_moment_count(const char *path, const uint32_t *index_of, size_t ids, struct hw_moment_count *counts,
                     struct hw_moment_count *all, struct hw_error *error);

#endif
