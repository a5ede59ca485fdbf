/* run.h - runs a command under a time limit and keeps what it printed and how it ended.
 *
 * Output goes to memory files, not pipes: nothing waits for a descendant that outlives the command, and a command can
 * print any amount. Nothing here knows Heapwise. */
#ifndef TESTS_SUPPORT_RUN_H
#define TESTS_SUPPORT_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

struct run_limit {
    int resource; /* RLIMIT_…, -1 ends the list */
    rlim_t value; /* soft and hard */
};

struct run_options {
    const char *const *environment; /* ended by NULL: "NAME=value" sets, "NAME" removes; NULL: as it is */
    const char *directory;          /* where to run; NULL: here */
    const char *input;              /* standard input; NULL: empty */
    unsigned timeout_s;             /* then the process group is killed; 0: 60 */
    const struct run_limit *limits;
    void (*prepare)(void *closure); /* in the child, just before exec: system calls only */
    void *closure;
};

struct run_result {
    int code;   /* exit code; -1 when a signal ended it */
    int signal; /* the signal that ended it, or 0 */
    bool timed_out;
    char *out, *err; /* NUL-terminated */
    size_t out_size, err_size;
};

/* Runs ARGV (ended by NULL; looked up in PATH). OPTIONS may be NULL. A command that cannot be started ends with 127. */
struct run_result run(const char *const argv[], const struct run_options *options);
void run_result_free(struct run_result *result);

/* The halves of run(), for commands that the test talks to while they run. */
struct run_process {
    pid_t pid;
    int out, err;
};
struct run_process run_start(const char *const argv[], const struct run_options *options);
struct run_result run_finish(struct run_process *process, unsigned timeout_s);

/* The command as one line, for messages; valid until the next call. */
const char *run_describe(const char *const argv[]);

#endif
