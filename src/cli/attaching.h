/* attaching.h - a recording of a process that runs already: begins, and ends. */
#ifndef HW_CLI_ATTACHING_H
#define HW_CLI_ATTACHING_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "profile/attach.h"

struct hw_attaching {
    pid_t pid;
    const char *runtime;   /* the library to be loaded */
    const char *options;   /* HEAPWISE_OPTIONS of the recording */
    struct hw_attach info; /* the result: what the runtime says */
    struct hw_error error;
};

/* Begins to record the process. False: `error` says why not, and the process is as it was. */
bool hw_attach_begin(struct hw_attaching *attaching);
/* Ends it: no code is patched any more, and the profile is complete. False: `error` says why not. */
bool hw_attach_end(struct hw_attaching *attaching);

#endif
