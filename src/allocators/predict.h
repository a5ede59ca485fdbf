/* predict.h - what a run would have taken with another allocator.
 *
 * The run is a sequence of stages: one thread alone, or several at once. Of a stage the program's time is that of its
 * slowest thread; of that time the operations' own part is replaced, kind by kind and size by size:
 *
 *     replaced = own * (replay with the other allocator / replay with the present one)
 *
 * and the difference in touching blocks (page faults, cache misses) is added, which no operation shows. As in MemPerf,
 * whose costs are constants from another machine.
 *
 * Operations that are timed one by one do not overlap with anything. Replays without timing show how much they really
 * overlap: own and replaced costs are corrected by that. */
#ifndef HW_ALLOCATORS_PREDICT_H
#define HW_ALLOCATORS_PREDICT_H

#include "allocators/compare.h"
#include "allocators/installed.h"
#include "allocators/mix.h"

#define HW_REPLAYS_MOST 9

struct hw_cost {
    double count, ticks; /* of all of them together */
};

/* What one replay measured. */
struct hw_replay {
    bool measured[HW_MIX_PHASES];
    double ticks_per_allocation[HW_MIX_PHASES]; /* without timing: all operations and touches of the slowest thread */
    struct hw_cost operations[HW_MIX_PHASES][HW_MIX_KINDS][HW_SIZE_BUCKETS];
    struct hw_cost touches[HW_MIX_PHASES][HW_SIZE_BUCKETS];
};

/* Adds the lines that heapwise-replay printed; NS_PER_TICK of the clock. False with ERROR when they are malformed. */
bool hw_replay_parse(struct hw_replay *replay, const char *text, double ns_per_tick, struct hw_error *error);

/* All replays of one allocator, the i-th of each at nearly the same time. */
struct hw_replays {
    size_t count;
    struct hw_replay of[HW_REPLAYS_MOST];
};

/* Replays MIX with the allocators (NULL entries are left out), in turn, ROUNDS times. RESULTS: one for each, count 0
 * where it failed; PROBLEMS: why, 256 bytes each. */
void hw_replay_all(const struct hw_mix *mix, double ns_per_tick, const struct hw_allocator *const allocators[],
                   size_t count, size_t rounds, struct hw_replays *results, char (*problems)[256]);

/* What the program did in one phase, by kind and size: how its operations divide up. */
struct hw_program_phase {
    struct hw_cost operations[HW_MIX_KINDS][HW_SIZE_BUCKETS];
};

/* One thread in one stage. */
struct hw_stage_thread {
    double wall;                        /* ticks, from its begin to its end in the stage */
    struct hw_cost kinds[HW_MIX_KINDS]; /* all that it did */
};

struct hw_stage {
    int phase; /* HW_MIX_SERIAL or _PARALLEL */
    const struct hw_stage_thread *threads;
    size_t thread_count;
};

struct hw_program {
    struct hw_program_phase phases[HW_MIX_PHASES];
    const struct hw_stage *stages;
    size_t stage_count;
    double own_error; /* relative error of the times of its operations, from sampling */
};

/* Threads of a stage that do not just wait for the others. */
size_t hw_stage_working(const struct hw_stage *stage);

/* The time of the stages as they were, ticks. Threads of a stage with fewer operations than a fiftieth of its busiest
 * one's are taken to wait for the others. */
double hw_program_time(const struct hw_program *program);
/* What it changes with X instead of PRESENT: negative when X is faster. */
double hw_program_difference(const struct hw_program *program, const struct hw_replay *present,
                             const struct hw_replay *x);

/* Ratio of the present time of the program, NOW ticks (0: that of the stages, which counting has made longer), and of
 * that with X: median over all pairs of the best three replays of each, with their range, widened by the program's own
 * error and by what replays cannot know, which grows with the share of the operations in the time. */
struct hw_speedup hw_predict(const struct hw_program *program, double now, const struct hw_replays *present,
                             const struct hw_replays *x);

#endif
