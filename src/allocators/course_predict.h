/* course_predict.h - what a run would have taken with another allocator, from its course of operations (course.h).
 *
 *     time with X = time now + (the course with X - the course with the present allocator)
 *
 * A course asks for the same blocks in the same order as the run did, so heaps grow, are trimmed, and become scattered
 * as they did there; it touches blocks when they are new and before they are freed, and walks to all that are live,
 * once for each allocation. Programs come back to their blocks twice as often (HW_COURSE_WALKS), as a rule; how often
 * this one does is not known: the range reaches from never to four times. */
#ifndef HW_ALLOCATORS_COURSE_PREDICT_H
#define HW_ALLOCATORS_COURSE_PREDICT_H

#include "allocators/compare.h"
#include "allocators/course.h"
#include "allocators/installed.h"

#define HW_COURSE_REPLAYS_MOST 9
#define HW_COURSE_WALKS        2

struct hw_course_cost {
    double critical_s; /* processor time of the threads that the others wait for, without walks */
    double walk_s;
};

struct hw_course_replays {
    size_t count;
    struct hw_course_cost of[HW_COURSE_REPLAYS_MOST];
};

/* The line that heapwise-course printed. False: malformed. */
bool hw_course_parse(const char *text, struct hw_course_cost *cost);

/* Replays the course PATH with ALLOCATOR once more. False with ERROR; so it is, and nothing is done, when there is no
 * room for another result. */
bool hw_course_replay(const char *path, const struct hw_allocator *allocator, struct hw_course_replays *replays,
                      struct hw_error *error);

/* Ratio of NOW_S, the present time of the program, and of that with X; SCALE: operations of the run by those of the
 * course. From the least disturbed replay of each; the range is that of the best three, with no walks and with twice as
 * many. */
struct hw_speedup hw_course_predict(const struct hw_course_replays *present, const struct hw_course_replays *x,
                                    double now_s, double scale);

#endif
