/* preload.h - the environment that brings the runtime into the program. */
#ifndef HW_CLI_PRELOAD_H
#define HW_CLI_PRELOAD_H

#include <limits.h>
#include <stdbool.h>

#include "profile/error.h"

/* The runtime under a name that LD_PRELOAD can express: there spaces and colons separate, and "$" is special. */
struct hw_preload {
    char path[PATH_MAX];   /* what to write into LD_PRELOAD */
    char folder[PATH_MAX]; /* temporary folder with a link to the runtime; "" when none was needed */
};

bool hw_preload_init(struct hw_preload *preload, const char *runtime, struct hw_error *error);
/* Deletes the temporary folder. Programs executed from then on cannot load the runtime by that name. */
void hw_preload_free(struct hw_preload *preload);

/* A copy of environ with LD_PRELOAD (ours first, what was there behind it) and HEAPWISE_OPTIONS (what was there first:
 * of two equal keys the later wins). The strings of the result are partly environ's; free with hw_environment_free. */
char **hw_environment_new(const struct hw_preload *preload, const char *options, struct hw_error *error);
void hw_environment_free(char **environment);

#endif
