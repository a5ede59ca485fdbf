/* recorded.h - a process that is being recorded, found by its number. */
#ifndef HW_CLI_RECORDED_H
#define HW_CLI_RECORDED_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "profile/format.h"

struct hw_recorded {
    pid_t pid;
    pid_t alive;               /* a thread that has not ended, as the first one may have: has the process's memory */
    int profile;               /* the process's own, open for reading */
    char path[PATH_MAX];       /* as the process names it */
    char reach[PATH_MAX + 64]; /* under which it can be reached from here */
    struct hw_process_info process;
    uint64_t process_offset;
    struct hw_error error;
};

/* Finds and opens the profile of process `pid`, by its mapping of the file. False: `error` says why. */
bool hw_recorded_find(struct hw_recorded *recorded);
/* For open(2): copies of a profile that only its owner may read are his alone. */
mode_t hw_recorded_mode(const struct hw_recorded *recorded);

/* A file of /proc/PID, up to SIZE - 1 bytes. False: there is none, or it is empty. */
bool hw_read_proc(pid_t pid, const char *name, char *buffer, size_t size);
/* The value of a line "NAME:\tvalue" of a status file, or NULL. */
const char *hw_status_value(const char *status, const char *name);
/* The pid that the process itself sees: the last of its namespaces. */
uint32_t hw_inner_pid(pid_t pid, const char *status);

#endif
