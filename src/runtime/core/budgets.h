/* budgets.h - what reading the program's memory now and then may cost: all shares of the time in one table (budgets.c).
 *
 * Times are of any unit, the same in one call: ticks, or nanoseconds. MS: a millisecond in that unit. */
#ifndef HW_RUNTIME_CORE_BUDGETS_H
#define HW_RUNTIME_CORE_BUDGETS_H

#include <stdbool.h>
#include <stdint.h>

enum hw_budget {
    HW_BUDGET_SUMS,
    HW_BUDGET_HEAP_SMALL,
    HW_BUDGET_HEAP_GROWN,
    HW_BUDGET_HEAP_UNREAD,
    HW_BUDGET_HEAP_FALLS,
    HW_BUDGET_HEAP_LAST,
    HW_BUDGET_HEAP_CHANGED,
    HW_BUDGET_HEAP_OLD,
    HW_BUDGET_WORDS_ONCE,
    HW_BUDGET_WORDS_CPU,
    HW_BUDGET_WORDS_IDLE,
    HW_BUDGET_WORDS_LIST,
    HW_BUDGET_WINDOWS,
    HW_BUDGET_SWEEP,
    HW_BUDGET_LEDGER,
    HW_BUDGET_LEDGER_PEAK,
    HW_BUDGET_LEDGER_LEFT,
    HW_BUDGET_CONTENTS,
    HW_BUDGET_LIMITS,
    HW_BUDGET_COUNT
};

/* What may have been spent when TIME has passed. */
uint64_t hw_budget_limit(enum hw_budget budget, uint64_t time, uint64_t ms);
/* Whether something may be done now that SPENT has been spent on it in TIME. */
bool hw_budget_allows(enum hw_budget budget, uint64_t spent, uint64_t time, uint64_t ms);
/* How long to wait after something that took COST, so that it keeps to its share; at least LEAST. */
uint64_t hw_budget_pause(enum hw_budget budget, uint64_t cost, uint64_t least);

#endif
