/* course_predict.h - what a run would have taken with another allocator, from its course of operations (course.h).
 *
 *     time with X = time now + (the course with X - the course with the present allocator)
 *
 * A course asks for the same blocks in the same order as the run did, so heaps grow, are trimmed, and become scattered
 * as they did there; it touches blocks when they are new and before they are freed, and one of a single thread walks to
 * all that are live, once for each allocation. It does not show how often the program uses its blocks again, and how
 * its threads disturb each other between operations. That is measured: by what the program gains when its small blocks
 * lie side by side (packer.c), and what its course gains by that. It is a weight: of walks, where there is one thread;
 * else of the operations. The default is HW_COURSE_WALKS walks, or HW_COURSE_SHARE of the operations, ± the _ERROR. The
 * measured weight is averaged with it by the squares of their errors, so runs that show nothing leave the default.
 */
#ifndef HW_ALLOCATORS_COURSE_PREDICT_H
#define HW_ALLOCATORS_COURSE_PREDICT_H

#include "allocators/compare.h"
#include "allocators/course.h"
#include "allocators/installed.h"

#define HW_COURSE_REPLAYS_MOST 9
#define HW_COURSE_WALKS        2.0
#define HW_COURSE_WALKS_ERROR  3.0 /* standard deviation */
#define HW_COURSE_WALKS_MOST   12.0
#define HW_COURSE_SHARE        1.0
#define HW_COURSE_SHARE_ERROR  1.0
#define HW_COURSE_SHARE_MOST   4.0

struct hw_course_cost {
    double critical_s; /* processor time of the threads that the others wait for, without walks */
    double walk_s;
    double start_s; /* of the process, before main */
};

/* The replay of a round has the index of the round, so replays of one index saw the same moments of the machine. */
struct hw_course_replays {
    size_t count;
    struct hw_course_cost of[HW_COURSE_REPLAYS_MOST];
};

/* How many times walks count, or operations do. */
struct hw_course_weight {
    double value, low, high; /* low, high: 90 % */
    bool measured;           /* rather than the rule */
};

/* The line that heapwise-course printed. False: malformed. */
bool hw_course_parse(const char *text, struct hw_course_cost *cost);

/* Replays the course PATH with ALLOCATOR once more. False with ERROR; so it is, and nothing is done, when there is no
 * room for another result. */
bool hw_course_replay(const char *path, const struct hw_allocator *allocator, struct hw_course_replays *replays,
                      struct hw_error *error);

/* The program as it is. What costs are compared with is the time of the same round: a machine that others use too is
 * slow for the program and the replay alike. */
struct hw_course_present {
    const struct hw_candidate *runs;
    const struct hw_course_replays *replays;
    double scale; /* operations of the run by those of the course */
    bool one_thread;
};

/* Of ROUND, s: processor time, and waiting of the program's own; beyond the last round the median. Of several threads,
 * which do not suffer alike from one moment to the next, it is the median of all rounds, in which the processor time is
 * spread over as many processors as the program was seen to use at once. 0: there are no runs. */
double hw_course_time(const struct hw_course_present *present, size_t round);

/* From what the program gained in the runs with its small blocks PACKED, and what its course did in REPLAYS of that.
 * With fewer than three pairs of rounds, the rule. */
struct hw_course_weight hw_course_weigh(const struct hw_course_present *present, const struct hw_candidate *packed,
                                        const struct hw_course_replays *replays);

/* Ratio of the present time of the program and of that with X. The median over the pairs of replays; the range is that
 * of the median, with the least and the greatest weight. */
struct hw_speedup hw_course_predict(const struct hw_course_present *present, const struct hw_course_replays *x,
                                    const struct hw_course_weight *weight);

#endif
