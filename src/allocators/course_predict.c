/* course_predict.c - see course_predict.h. */
#include "allocators/course_predict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "allocators/helper.h"

#define REPLAY         "heapwise-course"
#define REPLAY_SECONDS 40
#define REPLAYS_USED   3
#define LEAST_LEFT     0.02 /* of the time: less is no prediction */

bool hw_course_parse(const char *text, struct hw_course_cost *cost)
{
    double operations, cpu_ns, critical_ns, walk_ns, walked, faults;
    if (sscanf(text, "course %lf %lf %lf %lf %lf %lf", &operations, &cpu_ns, &critical_ns, &walk_ns, &walked,
               &faults) != 6 ||
        !(critical_ns >= 0) || !(walk_ns >= 0))
        return false;
    *cost = (struct hw_course_cost){critical_ns * 1e-9, walk_ns * 1e-9};
    return true;
}

bool hw_course_replay(const char *path, const struct hw_allocator *allocator, struct hw_course_replays *replays,
                      struct hw_error *error)
{
    const char *const arguments[] = {path, NULL};
    hw_error_set(error, "it was replayed often enough");
    if (replays->count == HW_COURSE_REPLAYS_MOST)
        return false;
    char *printed = hw_helper_run(REPLAY, arguments, allocator->preload.path, NULL, REPLAY_SECONDS, 4096, error);
    const bool fine = printed && hw_course_parse(printed, &replays->of[replays->count]);
    if (printed && !fine)
        hw_error_set(error, "what " REPLAY " printed is not understood: %.60s", printed);
    replays->count += fine;
    free(printed);
    return fine;
}

/* What else the machine does only ever adds time. */
static int by_time(const void *a, const void *b)
{
    const struct hw_course_cost *one = a, *other = b;
    const double difference = one->critical_s + one->walk_s - other->critical_s - other->walk_s;
    return (difference > 0) - (difference < 0);
}

static double speed(const struct hw_course_cost *present, const struct hw_course_cost *x, double now, double scale,
                    double walks)
{
    const double more = x->critical_s - present->critical_s + walks * (x->walk_s - present->walk_s);
    return now / fmax(now + scale * more, now * LEAST_LEFT);
}

struct hw_speedup hw_course_predict(const struct hw_course_replays *present, const struct hw_course_replays *x,
                                    double now, double scale)
{
    struct hw_course_replays ours = *present, theirs = *x;
    if (ours.count == 0 || theirs.count == 0 || !(now > 0))
        return (struct hw_speedup){0, 0, 0};
    qsort(ours.of, ours.count, sizeof *ours.of, by_time);
    qsort(theirs.of, theirs.count, sizeof *theirs.of, by_time);
    const double value = speed(&ours.of[0], &theirs.of[0], now, scale, HW_COURSE_WALKS);
    struct hw_speedup speedup = {value, value, value};
    for (size_t i = 0; i < REPLAYS_USED * REPLAYS_USED; i++) {
        const size_t own = i / REPLAYS_USED, other = i % REPLAYS_USED;
        for (int walks = 0; own < ours.count && other < theirs.count && walks <= 2 * HW_COURSE_WALKS;
             walks += 2 * HW_COURSE_WALKS) {
            const double found = speed(&ours.of[own], &theirs.of[other], now, scale, walks);
            speedup.low = fmin(speedup.low, found);
            speedup.high = fmax(speedup.high, found);
        }
    }
    return speedup;
}
