/* stopping.h - all threads of a process are stopped from outside, and let go again as if nothing had happened. */
#ifndef HW_CLI_STOPPING_H
#define HW_CLI_STOPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/error.h"
#include "profile/visit.h"

struct hw_stop_thread {
    struct hw_stopped_thread stopped;
    pid_t tid; /* as it is numbered here */
    bool gone, by_signal;
    bool running;                    /* it has been sent */
    bool listed;                     /* …in the room */
    bool held;                       /* it is not let go with the others */
    bool mended;                     /* its system call will be begun again */
    bool no_restart;                 /* restart_syscall, by which the kernel does that, would end it (seccomp) */
    struct user_regs_struct general; /* as they were at the stop */
};

struct hw_stop {
    pid_t pid;
    pid_t alive;                    /* a thread that has not ended: it has the process's memory */
    struct hw_error *error;         /* why something failed */
    const char *otherwise;          /* what to do where stopping is not permitted: the end of that sentence, or NULL */
    struct hw_stop_thread *threads; /* that are traced: after they were let go, those that have not stopped yet */
    size_t count, room;
    size_t missed;
    int missed_error;
    uint64_t begin_ns; /* when the first one was stopped */
};

/* SIGINT, SIGTERM or SIGHUP waits for this command, which blocks them: long waits end then. */
bool hw_stop_is_cancelled(void);
uint64_t hw_stop_now_ns(void);
void hw_stop_sleep_ns(long ns);

bool hw_stop_read(struct hw_stop *stop, uint64_t address, void *buffer, size_t size);
bool hw_stop_write(struct hw_stop *stop, uint64_t address, const void *buffer, size_t size);

/* Stops all threads, also those that others make until they stop. `missed`: those that did not in time. */
bool hw_stop_all(struct hw_stop *stop);
/* Stops the threads TIDS, as far as they are there still. */
bool hw_stop_these(struct hw_stop *stop, const pid_t *tids, size_t count);
/* Stops the thread TID alone. NULL: it has ended, or does not stop now; or stop->error says why not. */
struct hw_stop_thread *hw_stop_one(struct hw_stop *stop, pid_t tid);
/* Lets all go that have stopped. The others are when they do, or with this process. */
void hw_stop_let_go(struct hw_stop *stop);
void hw_stop_detach(const struct hw_stop *stop, struct hw_stop_thread *thread);
/* Whether it has stopped, or ended, by UNTIL (0: now). */
bool hw_stop_wait(const struct hw_stop *stop, struct hw_stop_thread *thread, uint64_t until);
/* Whether /proc shows one of the letters STATES for the thread: R runs or waits for a processor, D waits for a disk. */
bool hw_stop_has_state(const struct hw_stop *stop, pid_t tid, const char *states);
/* Blocked in a system call: when that ends it stops before it runs code of the program. */
bool hw_stop_is_in_call(const struct hw_stop *stop, const struct hw_stop_thread *thread);
/* In vfork, and as long as the child wants. */
bool hw_stop_is_in_vfork(const struct hw_stop *stop, struct hw_stop_thread *thread);
/* Makes GENERAL what the thread would go on with, had nothing but the stop happened: the kernel does the same for calls
 * that it restarts, which ALL are. False: nothing to do. */
bool hw_stop_mend(const struct hw_stop *stop, const struct hw_stop_thread *thread, struct user_regs_struct *general,
                  bool all);
void hw_stop_set_registers(const struct hw_stop_thread *thread, const struct user_regs_struct *general);
/* Why ptrace failed with ERROR. Returns false. */
bool hw_stop_say_why(struct hw_stop *stop, int error);

#endif
