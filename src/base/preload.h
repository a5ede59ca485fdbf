/* preload.h - where Heapwise is installed, and the environment that brings its runtime into a program. */
#ifndef HW_BASE_PRELOAD_H
#define HW_BASE_PRELOAD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* RELATIVE ("lib/heapwise/…") as seen from the folder above this executable's: that holds in the build tree and after
 * installation. False with errno when the executable cannot be found or SIZE is too small; the file may be missing. */
bool hw_installed_path(char *path, size_t size, const char *relative);

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
