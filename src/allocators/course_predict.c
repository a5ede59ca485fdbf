/* course_predict.c - see course_predict.h. */
#include "allocators/course_predict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "allocators/helper.h"

#define REPLAY         "heapwise-course"
#define REPLAY_SECONDS 40
#define LEAST_LEFT     0.02 /* of the time: less is no prediction */
#define LEAST_ERROR    0.01 /* of the time: what is measured of a program is not better known */
#define ROUNDS_LEAST   3    /* to measure a weight */
#define SIDES_90       1.645

bool hw_course_parse(const char *text, struct hw_course_cost *cost)
{
    double operations, cpu_ns, critical_ns, walk_ns, walked, faults, start_ns;
    if (sscanf(text, "course %lf %lf %lf %lf %lf %lf %lf", &operations, &cpu_ns, &critical_ns, &walk_ns, &walked,
               &faults, &start_ns) != 7 ||
        !(critical_ns >= 0) || !(walk_ns >= 0) || !(start_ns >= 0))
        return false;
    *cost = (struct hw_course_cost){critical_ns * 1e-9, walk_ns * 1e-9, start_ns * 1e-9};
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

/* What the run of ROUND took of the time that others wait for; beyond the last round the median. Of several threads:
 * the processor time by as many processors as they were seen to have at once, where the machine gave them what they
 * need. */
static double busy(const struct hw_candidate *runs, bool one_thread, size_t round)
{
    const double cpu = round < runs->rounds ? runs->cpu_s[round] : hw_median(runs->cpu_s, runs->rounds);
    double shortest = INFINITY;
    for (size_t i = 0; !one_thread && i < runs->rounds; i++)
        shortest = fmin(shortest, runs->wall_s[i] / fmax(runs->cpu_s[i], 1e-9));
    return one_thread ? cpu : cpu * shortest;
}

double hw_course_time(const struct hw_course_present *present, size_t round)
{
    const struct hw_candidate *runs = present->runs;
    double waiting = INFINITY;
    if (runs->rounds == 0)
        return 0;
    if (!present->one_thread)
        return busy(runs, false, SIZE_MAX);
    for (size_t i = 0; i < runs->rounds; i++)
        waiting = fmin(waiting, runs->wall_s[i] - runs->cpu_s[i] - runs->runnable_s[i]); /* the rest is the machine's */
    return fmax(waiting, 0) + busy(runs, true, round);
}

/* What the course says of one round, with WEIGHT: of operations and walks. */
static double course_of(const struct hw_course_present *present, double operations, double walk, double weight)
{
    return present->scale * (present->one_thread ? operations + weight * walk : weight * operations);
}

/* 1, or by how much less the course counts: under the present allocator it cannot take longer than the program did. It
 * does where it touches memory that the program does not. */
static double part_that_counts(const struct hw_course_present *present, size_t round, double weight)
{
    const struct hw_course_cost *ours = &present->replays->of[round];
    const double whole = course_of(present, ours->critical_s, ours->walk_s, weight);
    return fmin(1, hw_course_time(present, round) / whole); /* of nothing, too */
}

/* What X costs more than the present allocator in one round, of the present time. */
static double more(const struct hw_course_present *present, const struct hw_course_replays *x, size_t round,
                   double weight)
{
    const struct hw_course_cost *ours = &present->replays->of[round], *theirs = &x->of[round];
    const double operations = theirs->critical_s - ours->critical_s, walk = theirs->walk_s - ours->walk_s;
    const double course = course_of(present, operations, walk, weight) * part_that_counts(present, round, weight);
    return (theirs->start_s - ours->start_s + course) / hw_course_time(present, round);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* What the mean of VALUES may be wrong by: a standard deviation. */
static double error_of(const double *values, size_t count)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - sum / (double)count) * (values[i] - sum / (double)count);
    return sqrt(squares / (double)(count - 1) / (double)count);
}

struct rule {
    double value, error, most;
};

static const struct rule walks_rule = {HW_COURSE_WALKS, HW_COURSE_WALKS_ERROR, HW_COURSE_WALKS_MOST},
                         share_rule = {HW_COURSE_SHARE, HW_COURSE_SHARE_ERROR, HW_COURSE_SHARE_MOST};

static struct hw_course_weight weight_near(const struct rule *rule, double value, double error, bool measured)
{
    return (struct hw_course_weight){fmin(fmax(value, 0), rule->most),
                                     fmin(fmax(value - SIDES_90 * error, 0), rule->most),
                                     fmin(fmax(value + SIDES_90 * error, 0), rule->most), measured};
}

struct hw_course_weight hw_course_weigh(const struct hw_course_present *present, const struct hw_candidate *packed,
                                        const struct hw_course_replays *replays)
{
    double unexplained[HW_COURSE_REPLAYS_MOST], weighed[HW_COURSE_REPLAYS_MOST];
    const struct rule *rule = present->one_thread ? &walks_rule : &share_rule;
    const struct hw_candidate *runs = present->runs;
    const size_t rounds = least(least(runs->rounds, packed->rounds), least(present->replays->count, replays->count));
    if (packed->failed || rounds < ROUNDS_LEAST || !(hw_course_time(present, SIZE_MAX) > 0))
        return weight_near(rule, rule->value, rule->error, false);
    for (size_t i = 0; i < rounds; i++) {
        const double gained = busy(packed, present->one_thread, i) - busy(runs, present->one_thread, i);
        unexplained[i] = gained / hw_course_time(present, i) - more(present, replays, i, 0);
        weighed[i] = more(present, replays, i, 1) - more(present, replays, i, 0);
    }
    const double by = hw_median(weighed, rounds);
    if (by == 0)
        return weight_near(rule, rule->value, rule->error, false);
    const double found = hw_median(unexplained, rounds) / by;
    const double error = hypot(error_of(unexplained, rounds), LEAST_ERROR) / fabs(by);
    const double trust = rule->error / hypot(error, rule->error); /* each counts by the square of its error */
    return weight_near(rule, rule->value + trust * trust * (found - rule->value), error * trust, error < rule->error);
}

static struct hw_speedup speedup(const struct hw_course_present *present, const struct hw_course_replays *x,
                                 double weight)
{
    double speeds[HW_COURSE_REPLAYS_MOST];
    const size_t rounds = least(present->replays->count, x->count);
    for (size_t i = 0; i < rounds; i++)
        speeds[i] = 1 / fmax(1 + more(present, x, i, weight), LEAST_LEFT);
    return hw_median_range(speeds, rounds);
}

struct hw_speedup hw_course_predict(const struct hw_course_present *present, const struct hw_course_replays *x,
                                    const struct hw_course_weight *weight)
{
    if (present->replays->count == 0 || x->count == 0 || !(hw_course_time(present, SIZE_MAX) > 0))
        return (struct hw_speedup){0, 0, 0};
    const struct hw_speedup middle = speedup(present, x, weight->value);
    const struct hw_speedup few = speedup(present, x, weight->low), many = speedup(present, x, weight->high);
    struct hw_speedup all = {middle.value, fmin(fmin(few.low, many.low), middle.low),
                             fmax(fmax(few.high, many.high), middle.high)};
    bool bounded = all.value >= 1 / LEAST_LEFT;
    for (size_t i = 0; i < least(present->replays->count, x->count); i++)
        bounded |= part_that_counts(present, i, weight->value) < 1;
    if (bounded) { /* a bound is no measurement: half as much, or half as much more (as logarithms) */
        all.low = fmin(all.low, fmin(sqrt(all.value), pow(all.value, 1.5)));
        all.high = fmax(all.high, fmax(sqrt(all.value), pow(all.value, 1.5)));
    }
    return all;
}
