/* helper.h - runs one of Heapwise's own small programs (lib/heapwise/) and keeps what it prints. */
#ifndef HW_ALLOCATORS_HELPER_H
#define HW_ALLOCATORS_HELPER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Runs lib/heapwise/NAME with ARGUMENTS (behind its name; ended by NULL) and LD_PRELOAD=PRELOAD (NULL or "": without),
 * for at most SECONDS. INPUT, if not NULL, is its standard input; what it prints on stderr is dropped. Returns its
 * output, NUL-terminated, to be freed; NULL with ERROR when it could not be run, ran too long, failed or printed more
 * than MOST bytes. Not for use while other threads fork. */
char *hw_helper_run(const char *name, const char *const arguments[], const char *preload, const char *input,
                    unsigned seconds, size_t most, struct hw_error *error);

/* The signal (SIGINT, SIGTERM, SIGHUP, SIGQUIT) that asks this process to end, and that it has blocked; 0: there is
 * none. Helpers are not run then, or killed. */
int hw_helper_interrupted(void);

#endif
