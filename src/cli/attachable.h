/* attachable.h - which processes a recording can begin in while they run. */
#ifndef HW_CLI_ATTACHABLE_H
#define HW_CLI_ATTACHABLE_H

#include "cli/stopping.h"

/* False: stop->error says why not. *BASE: where the dynamic linker is. */
bool hw_is_attachable(struct hw_stop *stop, uint64_t *base);

/* Whether a process sees other files than this command: it is in a container, or has another root directory. */
bool hw_sees_other_files(pid_t pid);
/* Opens, for reading and writing, what such a process calls PATH. Links in there do not lead out of its files. -1: it
 * cannot be opened. */
int hw_open_inside(pid_t pid, const char *path);

#endif
