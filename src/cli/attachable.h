/* attachable.h - which processes a recording can begin in while they run. */
#ifndef HW_CLI_ATTACHABLE_H
#define HW_CLI_ATTACHABLE_H

#include "cli/stopping.h"

/* False: stop->error says why not. *BASE: where the dynamic linker is. */
bool hw_is_attachable(struct hw_stop *stop, uint64_t *base);

#endif
