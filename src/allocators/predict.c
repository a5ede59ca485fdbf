/* predict.c - see predict.h. */
#include "allocators/predict.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "allocators/helper.h"

#define REPLAY         "heapwise-replay"
#define REPLAY_SECONDS 40
#define OVERLAP_LEAST  0.1 /* corrections beyond these are noise */
#define OVERLAP_MOST   3.0
#define HIDDEN_MOST    0.6 /* of a program's own operations at least so much counts */
#define RATIO_MOST     1000.0
#define WAITER         50 /* threads with so many times fewer operations than the busiest one wait for it */
#define REPLAYS_USED   3
#define REPLAYS_S      6    /* seconds after which no more replays than those begin */
#define LEAST_LEFT     0.02 /* of the time: less is no prediction */
/* Where blocks lie changes how fast the program itself gets to them. No replay of a profile knows by how much; it was
 * up to so many times what the operations take (as logarithms, in 31 of 33 predictions: docs/benchmarks.md), and there
 * is always something that nobody knows. */
#define UNSEEN_GAIN  2.0
#define UNSEEN_LOSS  1.2
#define UNSEEN_LEAST 0.02

/* ---- replays ---- */

static bool take_line(struct hw_replay *replay, const char *line, double ns_per_tick)
{
    char kind[16];
    unsigned phase, bucket;
    double count, ticks, cpu_ns;
    if (sscanf(line, "phase %u %lf %lf %lf", &phase, &count, &ticks, &cpu_ns) == 4) {
        if (phase >= HW_MIX_PHASES)
            return false;
        replay->measured[phase] = count > 0;
        replay->ticks_per_allocation[phase] = count > 0 ? cpu_ns / ns_per_tick / count : 0;
        return true;
    }
    if (sscanf(line, "touch %u %u %lf %lf", &phase, &bucket, &count, &ticks) == 4) {
        if (phase >= HW_MIX_PHASES || bucket >= HW_SIZE_BUCKETS)
            return false;
        replay->touches[phase][bucket] = (struct hw_cost){count, ticks};
        return true;
    }
    if (sscanf(line, "op %u %15s %u %lf %lf", &phase, kind, &bucket, &count, &ticks) != 5 || phase >= HW_MIX_PHASES ||
        bucket >= HW_SIZE_BUCKETS)
        return false;
    for (int i = 0; i < HW_MIX_KINDS; i++) {
        if (strcmp(kind, hw_mix_kind_names[i]) != 0)
            continue;
        replay->operations[phase][i][bucket] = (struct hw_cost){count, ticks};
        return true;
    }
    return false;
}

bool hw_replay_parse(struct hw_replay *replay, const char *text, double ns_per_tick, struct hw_error *error)
{
    while (*text) {
        if (!take_line(replay, text, ns_per_tick)) {
            hw_error_set(error, "what " REPLAY " printed is not understood: %.*s", (int)strcspn(text, "\n"), text);
            return false;
        }
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return true;
}

/* The timed one first: the phases of the plain one are those that stay. */
static bool replay_once(struct hw_replay *replay, const char *text, const struct hw_allocator *allocator,
                        double ns_per_tick, struct hw_error *error)
{
    static const char *const ways[][2] = {{"timed", NULL}, {"plain", NULL}};
    memset(replay, 0, sizeof *replay);
    for (size_t i = 0; i < 2; i++) {
        char *printed = hw_helper_run(REPLAY, ways[i], allocator->preload.path, text, REPLAY_SECONDS, 1 << 20, error);
        const bool fine = printed && hw_replay_parse(replay, printed, ns_per_tick, error);
        free(printed);
        if (!fine)
            return false;
    }
    return true;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void hw_replay_all(const struct hw_mix *mix, double ns_per_tick, const struct hw_allocator *const allocators[],
                   size_t count, size_t rounds, struct hw_replays *results, char (*problems)[256])
{
    enum { ROOM = 1 << 20 };
    char *text = malloc(ROOM);
    const bool printed = text && hw_mix_print(mix, text, ROOM);
    for (size_t i = 0; i < count; i++) {
        results[i].count = 0;
        snprintf(problems[i], sizeof *problems, "%s", printed ? "" : "not enough memory");
    }
    const uint64_t begin = now_ns();
    bool interrupted = false;
    for (size_t round = 0; printed && !interrupted && round < rounds && round < HW_REPLAYS_MOST; round++) {
        if (round >= REPLAYS_USED && now_ns() - begin > REPLAYS_S * 1000000000ull)
            break;
        for (size_t k = 0; k < count; k++) {
            const size_t i = round % 2 ? count - 1 - k : k;
            struct hw_error error = {""};
            if (!allocators[i] || problems[i][0] || interrupted)
                continue;
            if (replay_once(&results[i].of[round], text, allocators[i], ns_per_tick, &error)) {
                results[i].count = round + 1;
            } else if (hw_helper_interrupted()) {
                interrupted = true;
            } else {
                results[i].count = 0;
                snprintf(problems[i], sizeof *problems, "%.250s", error.message);
            }
        }
    }
    for (size_t i = 0; interrupted && i < count; i++)
        if (allocators[i] && results[i].count < REPLAYS_USED && !problems[i][0]) {
            results[i].count = 0; /* too few for a range */
            snprintf(problems[i], sizeof *problems, REPLAY " was interrupted");
        }
    free(text);
}

/* ---- stages ---- */

static double mean(const struct hw_cost *cost)
{
    return cost->count > 0 ? cost->ticks / cost->count : 0;
}

static double within(double value, double least, double most)
{
    return value < least ? least : value > most ? most : value;
}

/* What really happens of what is timed one by one. */
static double overlap(const struct hw_replay *replay, int phase)
{
    double timed = 0, allocations = 0;
    for (unsigned b = 0; b < HW_SIZE_BUCKETS; b++) {
        for (int kind = 0; kind < HW_MIX_KINDS; kind++) {
            timed += replay->operations[phase][kind][b].ticks;
            allocations += kind == HW_MIX_FREE ? 0 : replay->operations[phase][kind][b].count;
        }
        timed += replay->touches[phase][b].ticks;
    }
    if (timed <= 0 || allocations <= 0 || replay->ticks_per_allocation[phase] <= 0)
        return 1;
    return within(replay->ticks_per_allocation[phase] / (timed / allocations), OVERLAP_LEAST, OVERLAP_MOST);
}

/* Replays may lack what is rare in the program: then neighbouring sizes are used, at last all of the kind. */
static double ratio_of(const struct hw_replay *present, const struct hw_replay *x, int phase, int kind, unsigned bucket)
{
    for (unsigned reach = 0; reach <= HW_SIZE_BUCKETS; reach = reach ? reach * 2 : 2) {
        struct hw_cost one = {0, 0}, other = {0, 0};
        const unsigned first = bucket > reach ? bucket - reach : 0;
        for (unsigned b = first; b <= bucket + reach && b < HW_SIZE_BUCKETS; b++) {
            const struct hw_cost *p = &present->operations[phase][kind][b], *q = &x->operations[phase][kind][b];
            if (p->count <= 0 || q->count <= 0)
                continue;
            one.count += p->count;
            one.ticks += p->ticks;
            other.count += p->count; /* weighted alike */
            other.ticks += mean(q) * p->count;
        }
        if (one.ticks > 0)
            return within(other.ticks / one.ticks, 1 / RATIO_MOST, RATIO_MOST);
    }
    return 1;
}

/* What X changes in the operations of one kind in a phase. */
struct change {
    double factor;  /* of their own time */
    double touches; /* ticks that touching costs more, for each of them */
};

/* Touches are those of new blocks and those before they are freed: per allocation of the replay. */
static double touch_change(const struct hw_replay *present, const struct hw_replay *x, int phase, unsigned bucket,
                           double present_overlap, double x_overlap)
{
    const struct hw_cost *p = &present->touches[phase][bucket], *q = &x->touches[phase][bucket];
    double replayed = 0;
    for (int kind = 0; kind < HW_MIX_FREE; kind++)
        replayed += present->operations[phase][kind][bucket].count;
    if (p->count <= 0 || q->count <= 0 || replayed <= 0)
        return 0;
    return p->count / replayed * (mean(q) * x_overlap - mean(p) * present_overlap);
}

/* In a program the operations find caches cold and lie among other work: less of them is hidden than in a replay. */
static double in_program(double overlap_there)
{
    return fmax(overlap_there, HIDDEN_MOST);
}

static struct change change_of(const struct hw_program_phase *program, const struct hw_replay *present,
                               const struct hw_replay *x, int phase, int kind)
{
    const double present_overlap = overlap(present, phase), x_overlap = overlap(x, phase);
    double ticks = 0, count = 0, replaced = 0, touches = 0;
    for (unsigned b = 0; b < HW_SIZE_BUCKETS; b++) {
        const struct hw_cost *own = &program->operations[kind][b];
        if (own->count <= 0)
            continue;
        count += own->count;
        ticks += own->ticks;
        replaced += own->ticks * ratio_of(present, x, phase, kind, b);
        if (kind != HW_MIX_FREE)
            touches += own->count * touch_change(present, x, phase, b, present_overlap, x_overlap);
    }
    return (struct change){
        .factor = ticks > 0 ? replaced / ticks * in_program(x_overlap) - in_program(present_overlap) : 0,
        .touches = count > 0 ? touches / count : 0,
    };
}

static double operations_of(const struct hw_stage_thread *thread)
{
    double count = 0;
    for (int kind = 0; kind < HW_MIX_KINDS; kind++)
        count += thread->kinds[kind].count;
    return count;
}

static double busiest_of(const struct hw_stage *stage)
{
    double busiest = 0;
    for (size_t i = 0; i < stage->thread_count; i++)
        busiest = fmax(busiest, operations_of(&stage->threads[i]));
    return busiest;
}

/* Threads that do hardly anything beside the BUSIEST one wait for it. */
static bool waits(const struct hw_stage_thread *thread, double busiest)
{
    return operations_of(thread) * WAITER < busiest;
}

size_t hw_stage_working(const struct hw_stage *stage)
{
    const double busiest = busiest_of(stage);
    size_t count = 0;
    for (size_t i = 0; i < stage->thread_count; i++)
        count += !waits(&stage->threads[i], busiest);
    return count;
}

/* The time of the slowest thread; CHANGES by kind, NULL: as it is. */
static double stage_time(const struct hw_stage *stage, const struct change *changes)
{
    const double busiest = busiest_of(stage);
    double slowest = 0;
    for (size_t i = 0; i < stage->thread_count; i++) {
        const struct hw_stage_thread *thread = &stage->threads[i];
        double time = thread->wall;
        if (waits(thread, busiest))
            continue;
        for (int kind = 0; changes && kind < HW_MIX_KINDS; kind++)
            time +=
                thread->kinds[kind].ticks * changes[kind].factor + thread->kinds[kind].count * changes[kind].touches;
        slowest = fmax(slowest, fmax(time, thread->wall * LEAST_LEFT));
    }
    return slowest;
}

double hw_program_time(const struct hw_program *program)
{
    double sum = 0;
    for (size_t i = 0; i < program->stage_count; i++)
        sum += stage_time(&program->stages[i], NULL);
    return sum;
}

/* Of the time of threads that work, what their operations took. */
static double share_of_operations(const struct hw_program *program)
{
    double ticks = 0, wall = 0;
    for (size_t i = 0; i < program->stage_count; i++) {
        const struct hw_stage *stage = &program->stages[i];
        const double busiest = busiest_of(stage);
        for (size_t k = 0; k < stage->thread_count; k++) {
            const struct hw_stage_thread *thread = &stage->threads[k];
            if (waits(thread, busiest))
                continue;
            wall += thread->wall;
            for (int kind = 0; kind < HW_MIX_KINDS; kind++)
                ticks += thread->kinds[kind].ticks;
        }
    }
    return wall > 0 ? fmin(ticks / wall, 1) : 1;
}

double hw_program_difference(const struct hw_program *program, const struct hw_replay *present,
                             const struct hw_replay *x)
{
    struct change changes[HW_MIX_PHASES][HW_MIX_KINDS];
    double sum = 0;
    for (int phase = 0; phase < HW_MIX_PHASES; phase++)
        for (int kind = 0; kind < HW_MIX_KINDS; kind++)
            changes[phase][kind] = change_of(&program->phases[phase], present, x, phase, kind);
    for (size_t i = 0; i < program->stage_count; i++) {
        const struct hw_stage *stage = &program->stages[i];
        if (present->measured[stage->phase] && x->measured[stage->phase])
            sum += stage_time(stage, changes[stage->phase]) - stage_time(stage, NULL);
    }
    return sum;
}

/* The replays that were disturbed least come first: what else the machine does only ever adds time. */
static size_t best_replays(const struct hw_program *program, const struct hw_replays *replays,
                           const struct hw_replay *best[HW_REPLAYS_MOST])
{
    double costs[HW_REPLAYS_MOST], allocations[HW_MIX_PHASES] = {0};
    for (int phase = 0; phase < HW_MIX_PHASES; phase++)
        for (int kind = 0; kind < HW_MIX_FREE; kind++)
            for (unsigned b = 0; b < HW_SIZE_BUCKETS; b++)
                allocations[phase] += program->phases[phase].operations[kind][b].count;
    for (size_t i = 0; i < replays->count; i++) {
        const struct hw_replay *replay = &replays->of[i];
        double cost = 0;
        for (int phase = 0; phase < HW_MIX_PHASES; phase++)
            cost += replay->ticks_per_allocation[phase] * allocations[phase];
        size_t at = i;
        for (; at > 0 && costs[at - 1] > cost; at--) {
            costs[at] = costs[at - 1];
            best[at] = best[at - 1];
        }
        costs[at] = cost;
        best[at] = replay;
    }
    return replays->count < REPLAYS_USED ? replays->count : REPLAYS_USED;
}

struct hw_speedup hw_predict(const struct hw_program *program, double now, const struct hw_replays *present,
                             const struct hw_replays *x)
{
    const struct hw_replay *ours[HW_REPLAYS_MOST], *theirs[HW_REPLAYS_MOST];
    double values[REPLAYS_USED * REPLAYS_USED], low = INFINITY, high = 0;
    const size_t own = best_replays(program, present, ours), others = best_replays(program, x, theirs);
    if (now <= 0)
        now = hw_program_time(program);
    if (own == 0 || others == 0 || now <= 0)
        return (struct hw_speedup){0, 0, 0};
    for (size_t i = 0; i < own * others; i++) {
        const double then = now + hw_program_difference(program, ours[i / others], theirs[i % others]);
        values[i] = now / fmax(then, now * LEAST_LEFT);
        low = fmin(low, values[i]);
        high = fmax(high, values[i]);
    }
    const double value = hw_median(values, own * others);
    if (value >= 1 / LEAST_LEFT) { /* a bound is no measurement: half as much, or half as much more (as logarithms) */
        low = sqrt(value);
        high = pow(value, 1.5);
    }
    const double more = fabs(value - 1) * program->own_error, share = share_of_operations(program);
    return (struct hw_speedup){value, fmax(low - more, 0) * exp(-UNSEEN_LEAST - UNSEEN_LOSS * share),
                               (high + more) * exp(UNSEEN_LEAST + UNSEEN_GAIN * share)};
}
