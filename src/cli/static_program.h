/* static_program.h - the runtime is put into a statically linked program, before its first instruction. */
#ifndef HW_CLI_STATIC_PROGRAM_H
#define HW_CLI_STATIC_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "cli/static_plan.h"

struct hw_static_start {
    const struct hw_static_plan *plan;
    const char *runtime; /* the library's file */
};

/* The process PID is traced, and has stopped at the exec of the program of START, a struct hw_static_start. It stays
 * stopped. False: ERROR says why not; it must not continue then. As hw_launch wants it. */
bool hw_static_program_begin(pid_t pid, void *start, struct hw_error *error);

#endif
