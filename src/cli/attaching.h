/* attaching.h - a recording of a process that runs already: begins, and ends. */
#ifndef HW_CLI_ATTACHING_H
#define HW_CLI_ATTACHING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "profile/attach.h"

struct hw_attaching {
    pid_t pid;
    const char *runtime;   /* the library to be loaded */
    const char *options;   /* HEAPWISE_OPTIONS of the recording */
    struct hw_attach info; /* the result: what the runtime says */
    uint64_t variable;     /* likewise: heapwise_attach in the process */
    bool other_files;      /* likewise: the process sees other files than this command, the names in `info` are its own */
    struct hw_error error;
};

/* Begins to record the process. False: `error` says why not, and the process is as it was. */
bool hw_attach_begin(struct hw_attaching *attaching);
/* Ends it: no code is patched any more, and the profile is complete. False: `error` says why not. */
bool hw_attach_end(struct hw_attaching *attaching);
/* Whether the process has executed another program since it was recorded. */
bool hw_attach_is_lost(const struct hw_attaching *attaching);

/* ---- verb_attach.c: from begin to end, for attach --for and record -p ---- */

struct hw_running {
    pid_t pid;
    const char *output; /* NULL: the usual name */
    uint64_t sample_bytes, seconds;
    bool quiet;
};

/* Records the process until SECONDS have passed (0: no limit), SIGINT, SIGTERM or SIGHUP comes, or it has ended. PATH
 * becomes the name of the profile. */
bool hw_record_running(const struct hw_running *command, char *path, size_t size, struct hw_error *error);

struct hw_option;
/* A time in seconds: 90, 60s, 10m, 1h. */
bool hw_take_time(void *seconds, const char *value, const struct hw_option *option);

#endif
