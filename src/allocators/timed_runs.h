/* timed_runs.h - really runs a program, and says what a run cost. Nothing is loaded into it but the allocator. */
#ifndef HW_ALLOCATORS_TIMED_RUNS_H
#define HW_ALLOCATORS_TIMED_RUNS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "profile/format.h"

/* The standard input of the runs: each gets the same, from the beginning. A file is opened anew, what comes from a pipe
 * is read to its end and kept in a temporary file; a terminal is replaced by nothing. */
struct hw_input {
    int fd;        /* owned; what runs read */
    int64_t start; /* where they begin; -1: it has no position (/dev/null) */
    bool terminal; /* there was one: the runs get an empty input */
};

/* SLOW is called once when a pipe has not ended after two seconds. False with ERROR when the input cannot be kept, or
 * is larger than 4 GiB. */
bool hw_input_take(struct hw_input *input, void (*slow)(void), struct hw_error *error);
void hw_input_free(struct hw_input *input);

struct hw_run_request {
    const char *path;                     /* the file to execute */
    char **arguments;                     /* argv[0] and the rest */
    bool text;                            /* as hw_launch.text */
    const char *preload;                  /* first in LD_PRELOAD; NULL: LD_PRELOAD stays as it is */
    char **environment;                   /* as environ, before that; NULL: that of this process */
    bool (*prepare)(const void *closure); /* in the child, async-signal-safe; false with errno. NULL: nothing */
    const void *closure;
    const struct hw_input *input;
    int output;                           /* where its standard output goes; 0: as the rest */
    uint64_t output_most;                 /* bytes in that file: then the run is ended; 0: no limit */
    bool show;                            /* its output goes to our stderr, else nowhere */
    double seconds_most;                  /* then it is killed, with its process group; 0: no limit */
    double grace_s;                       /* between the signal that asks it to end and SIGKILL; 0: 5 */
    bool sample;                          /* its resident memory */
    bool (*abandon)(const void *closure); /* asked from time to time, and after each SIGCHLD: true ends it; NULL: no */
    const void *abandon_closure;
    const sigset_t *mask; /* of the run; NULL: as this process has it */
};

/* What a load generator measures of a server. */
enum hw_load_number { HW_LOAD_THROUGHPUT, HW_LOAD_MEAN, HW_LOAD_P50, HW_LOAD_P99, HW_LOAD_P999, HW_LOAD_NUMBERS };

struct hw_run_cost {
    double wall_s, user_s, system_s; /* of it and the children that it waited for */
    double runnable_s;               /* in which its first thread had no processor, though it wanted one */
    uint64_t peak_rss_bytes;         /* of the largest process; 0: less than a copy of this process has before exec */
    uint64_t rss_after_bytes; /* mean from the peak to the end, of it and its descendants; of a server: when the load
                                 generator ended. 0: not sampled, or too few samples */
    uint64_t minor_faults, major_faults;
    double load[HW_LOAD_NUMBERS]; /* requests per second, and seconds; 0: not known, or not a server */
    enum hw_exit_kind exit_kind;  /* HW_EXIT_CODE or HW_EXIT_SIGNAL */
    int exit_value;
    bool timed_out;
    bool printed_too_much; /* and was ended */
    bool killed;           /* by SIGKILL, since it did not end when it was asked to */
    int interrupted;       /* the signal that this process got meanwhile and passed on; 0: none */
};

/* Runs it and waits for its end. False with ERROR when it could not be started. SIGINT, SIGTERM, SIGHUP and SIGQUIT
 * that come meanwhile end the run. The process gets a group of its own; what is left of the group when the process has
 * ended is killed. */
bool hw_run_measure(const struct hw_run_request *request, struct hw_run_cost *cost, struct hw_error *error);

/* Whether two runs ended in the same way, and neither was ended by its time limit. */
bool hw_run_same_end(const struct hw_run_cost *a, const struct hw_run_cost *b);
/* "it exited with code 3". Returns BUFFER. */
const char *hw_run_describe_end(const struct hw_run_cost *cost, char *buffer, size_t size);

/* A temporary file without a name, open for reading and writing. -1 with errno. */
int hw_run_temporary(void);

/* For a series of runs: SIGINT, SIGTERM, SIGHUP and SIGQUIT, unless ignored, are blocked from now on and are noticed
 * by hw_run_measure and hw_helper_interrupted; MASK is what was blocked before, and what the runs should have. */
void hw_runs_block_signals(sigset_t *mask);
/* Those that came meanwhile count as taken. */
void hw_runs_release_signals(const sigset_t *mask);

#endif
