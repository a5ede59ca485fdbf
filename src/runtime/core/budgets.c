/* budgets.c - see budgets.h.
 *
 * Not here: how often operations are timed follows from what that costs each thread (operation_times.c: COST), and
 * samples of accesses come at the rate that was asked for. */
#include "runtime/core/budgets.h"

static const struct {
    uint32_t part;       /* one part in so many of the time; 0: none */
    uint32_t start_part; /* more, so that short runs see something: one part in so many of the time; 0: all at once… */
    uint32_t start;      /* …up to so many half milliseconds */
    uint32_t reserve;    /* half milliseconds that must be left */
} budgets[HW_BUDGET_COUNT] = {
    /* heap_parts.c: sums over classes and threads for a point in time. When it is spent points get rarer. */
    [HW_BUDGET_SUMS] = {400, 0, 1, 0},
    /* Readings of the resident heap, since live bytes are at a new maximum: by a small step, by a large one… */
    [HW_BUDGET_HEAP_SMALL] = {200, 32, 1, 0},
    [HW_BUDGET_HEAP_GROWN] = {200, 32, 2, 0},
    /* …since it was not read near the maximum: there; when live bytes begin to fall… */
    [HW_BUDGET_HEAP_UNREAD] = {200, 64, 2, 1},
    [HW_BUDGET_HEAP_FALLS] = {200, 0, 6, 0},
    /* …in the moment of the fall, out of turn (its cost is counted by itself). */
    [HW_BUDGET_HEAP_LAST] = {0, 16, 6, 0},
    /* Readings without regard to the maximum: since other bytes are live, or after some time. */
    [HW_BUDGET_HEAP_CHANGED] = {600, 0, 0, 0},
    [HW_BUDGET_HEAP_OLD] = {900, 0, 0, 0},
    /* word_sampler.c: of a period, in one go; of the processor time of the program's own threads; of the time that
     * passes, in addition, for programs that mostly sleep; for the list of mappings to read. */
    [HW_BUDGET_WORDS_ONCE] = {20, 0, 0, 0},
    [HW_BUDGET_WORDS_CPU] = {25, 0, 0, 0},
    [HW_BUDGET_WORDS_IDLE] = {200, 0, 0, 0},
    [HW_BUDGET_WORDS_LIST] = {50, 0, 0, 0},
    /* field_windows.c: a window and what is read around it. */
    [HW_BUDGET_WINDOWS] = {100, 0, 0, 0},
    /* planes.c: a sweep over all cells, of processor time. */
    [HW_BUDGET_SWEEP] = {200, 0, 0, 0},
    /* ledger.c: RSS taken apart over time. */
    [HW_BUDGET_LEDGER] = {400, 0, 2, 0},
    /* timeline.c: when live bytes begin to fall from a maximum that is greater by a small step only. */
    [HW_BUDGET_LEDGER_PEAK] = {200, 16, 6, 0},
    /* …and when the maximum has been left by that. */
    [HW_BUDGET_LEDGER_LEFT] = {100, 8, 20, 0},
    /* contents.c: walks over what blocks hold near the peak, each pays for the time until the next. */
    [HW_BUDGET_CONTENTS] = {10, 0, 0, 0},
    /* dump_at.c: how near memory is to its limits. */
    [HW_BUDGET_LIMITS] = {200, 0, 0, 0},
};

uint64_t hw_budget_limit(enum hw_budget budget, uint64_t time, uint64_t ms)
{
    const uint64_t most = ms * budgets[budget].start / 2;
    const uint64_t start = budgets[budget].start_part ? time / budgets[budget].start_part : most;
    return (budgets[budget].part ? time / budgets[budget].part : 0) + (start < most ? start : most);
}

bool hw_budget_allows(enum hw_budget budget, uint64_t spent, uint64_t time, uint64_t ms)
{
    return spent + ms * budgets[budget].reserve / 2 < hw_budget_limit(budget, time, ms);
}

uint64_t hw_budget_pause(enum hw_budget budget, uint64_t cost, uint64_t least)
{
    const uint64_t pause = cost * budgets[budget].part;
    return pause > least ? pause : least;
}
