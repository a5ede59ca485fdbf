/* session.h - the profiles that one `heapwise record` led to: one for each process of the tree and each program that it
 * executed. The session number in their header identifies them, whatever their names are. */
#ifndef HW_CLI_SESSION_H
#define HW_CLI_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profile/format.h"

struct hw_session_file {
    char *path;
    struct hw_process_info process; /* as in the file; all 0 when the process was still writing it down */
    bool running;                   /* the process lives */
    bool closed;                    /* it has ended and the file was sealed: set by who does so */
};

struct hw_session {
    struct hw_session_file *files; /* sorted by start */
    size_t count;
    size_t dumps; /* snapshots besides (heapwise_dump, dump-interval): in no list */
};

/* Reads every file that matches WILDCARD (glob(3)). Files that cannot be read are not of this session. */
void hw_session_find(struct hw_session *session, const char *wildcard, uint64_t number);
void hw_session_free(struct hw_session *session);

/* The last program that process PID executed, or NULL. Forked children do not count: PID was not forked by a process of
 * the session but by us. */
const struct hw_session_file *hw_session_main(const struct hw_session *session, pid_t pid);

size_t hw_session_running(const struct hw_session *session);

/* Field 22 of /proc/PID/stat, which with the pid identifies a process; 0: no such process, or it has ended and only
 * waits to be collected. */
uint64_t hw_process_start_time(uint32_t pid);

#endif
