/* permitted_calls.h - whether the filters of system calls (seccomp) of another process permit a recording. */
#ifndef HW_CLI_PERMITTED_CALLS_H
#define HW_CLI_PERMITTED_CALLS_H

#include "cli/stopping.h"

/* Reads the filters of all threads, which are stopped for it one after the other. IN_MEMORY: the runtime is brought as a
 * file in memory. False: stop->error says which calls are not permitted, or why it is not known. */
bool hw_calls_are_permitted(struct hw_stop *stop, bool in_memory);

/* Sets a filter in a child, and reads it. NULL, or why this process cannot read the filters of others: the end of a
 * sentence. */
const char *hw_why_no_filters(void);

#endif
