/* launch.h - runs one program and stands in for it towards the parent process.
 *
 * The program gets the terminal, process group, signal dispositions and mask that we were started with. While it runs,
 * signals sent to us go on to it, those of the terminal reach it by themselves, and we stop and continue with it. */
#ifndef HW_CLI_LAUNCH_H
#define HW_CLI_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "profile/format.h"

struct hw_launch {
    /* in */
    const char *path; /* the file to execute */
    char **arguments; /* argv[0] and the rest */
    char **environment;
    /* NULL, or called when the program is loaded, and stopped before its first instruction, with CLOSURE. The program is
     * traced by the calling process until then. False: ERROR says why it must not run; it is killed. */
    bool (*before)(pid_t pid, void *closure, struct hw_error *error);
    void *closure;
    bool text; /* when the system does not know the file's format, hand it to /bin/sh */
    /* out */
    pid_t pid;
    enum hw_exit_kind exit_kind;
    int exit_value;
    uint64_t peak_rss_bytes; /* of the program and the children it waited for; 0: not known */
    sigset_t inherited_mask;
};

/* Returns 0 when the program ran and ended; else an errno, with ERROR, when it could not be started: *EXECUTED says
 * whether it was execve that failed. ECANCELED: `before` refused it. Signals stay blocked, so that what is to be done after the run gets done. */
int hw_launch(struct hw_launch *launch, bool *executed, struct hw_error *error);

/* Takes signals as before hw_launch again; those that came for the program meanwhile are dropped. */
void hw_launch_release(const struct hw_launch *launch);

/* Takes back the signals that came so far and that nobody has taken. Those that come later are still blocked. */
void hw_launch_forget_signals(void);

#endif
