/* allocators.h - what the files of the verb `heapwise allocators` share. */
#ifndef HW_CLI_ALLOCATORS_H
#define HW_CLI_ALLOCATORS_H

#include <limits.h>

#include "allocators/compare.h"
#include "allocators/course_predict.h"
#include "allocators/installed.h"
#include "allocators/timed_runs.h"
#include "cli/options.h"
#include "profile/profile.h"

#define HW_ADDED_MOST 8

/* Values of --allocator, as hw_allocators_find takes them. */
struct hw_added {
    const char *names[HW_ADDED_MOST + 1]; /* ended by NULL */
    size_t count;
};

/* For HW_OPTION_KEPT with a struct hw_added. */
bool hw_take_allocator(void *added, const char *value, const struct hw_option *option);

/* Whether both names lead to one file. */
bool hw_same_file(const char *a, const char *b);

/* One allocator in the comparison. */
struct hw_compared {
    const struct hw_allocator *allocator;
    const char *preload; /* NULL: the program is run as it is */
    struct hw_run_cost last;
    bool predicted;
    struct hw_speedup prediction; /* of the time, against the present allocator */
    struct hw_course_replays replays;
    char replay_problem[256]; /* why there are none, "" when there are */
    char note[256];           /* what has to be said of its runs, "" when nothing */
};

struct hw_comparison {
    char **command;
    size_t rounds; /* as asked for */
    struct hw_compared of[HW_ALLOCATORS_MOST + 2];
    struct hw_candidate candidates[HW_ALLOCATORS_MOST + 2];
    size_t count, present;
    bool packed; /* at [count], no allocator of its own: the present one, with small blocks side by side */
    struct hw_course_weight weight; /* in the prediction, where */
    bool weighed;                   /* it is from a course; */
    bool one_thread;                /* of walks then, else of operations */
    double now_s;                   /* what predictions are against */
    struct hw_choice choice;
    char prediction_note[512]; /* why nothing was predicted, or what the prediction lacks; "" when all is well */
    bool empty_input;          /* the terminal was replaced by nothing */
};

/* How a run is made, where hw_run_measure is not enough. */
struct hw_runner {
    bool (*run)(void *closure, const struct hw_run_request *request, struct hw_run_cost *cost, struct hw_error *error);
    void *closure;
};

/* One run of PLAIN's program under heapwise record, by RUNNER (NULL: hw_run_measure); returns the profile of the one of
 * its *PROCESSES that used its allocator most. NULL with ERROR; COST says how the run ended, if it began. */
struct hw_profile *hw_comparison_profile(const struct hw_run_request *plain, const struct hw_runner *runner,
                                         struct hw_run_cost *cost, size_t *processes, struct hw_error *error);

/* Makes a temporary folder; its name without a % (which record would replace). False with errno. */
bool hw_comparison_folder(char *folder, size_t size);

/* The course of operations of one run, in a file (allocators/course.h). */
struct hw_traced {
    char folder[PATH_MAX]; /* temporary; "": there is none */
    char path[PATH_MAX];   /* "": there is no course */
    struct hw_course course;
    struct hw_preload packer;   /* path "": there is none */
    struct hw_allocator packed; /* for replays: the packer, and behind it the present allocator */
};

/* One run of PLAIN's program that notes its operations: of its processes those of the one that has most. False with
 * ERROR when there is no course; COST says how the run ended, if it began. hw_comparison_trace_free in either case.
 * PRESENT: the program's allocator; where the packer is missing the course is without it. */
bool hw_comparison_trace(struct hw_traced *traced, const struct hw_run_request *plain,
                         const struct hw_allocator *present, struct hw_run_cost *cost, struct hw_error *error);
void hw_comparison_trace_free(struct hw_traced *traced);

void hw_comparison_print(const struct hw_comparison *comparison);
/* False: no memory. */
bool hw_comparison_print_json(const struct hw_comparison *comparison);

#endif
