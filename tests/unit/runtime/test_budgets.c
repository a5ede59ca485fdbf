/* test_budgets.c - what reading the program's memory may cost, on a clock that the test moves. */
#include "support/check.h"

#include "runtime/core/budgets.c"

enum { MS = 2500000 /* ticks */ };

/* Something that costs COST each time, tried every STEP until END: what is spent. */
static uint64_t spend(enum hw_budget budget, uint64_t cost, uint64_t step, uint64_t end)
{
    uint64_t spent = 0;
    for (uint64_t now = step; now <= end; now += step)
        if (hw_budget_allows(budget, spent, now, MS))
            spent += cost;
    return spent;
}

/* A long run: no more than the share, and what a short run may have; but also not much less. */
static void test_shares(void **state)
{
    static const struct {
        enum hw_budget budget;
        uint64_t part, start; /* start: half milliseconds */
    } rows[] = {
        {HW_BUDGET_SUMS, 400, 1},        {HW_BUDGET_HEAP_SMALL, 200, 1}, {HW_BUDGET_HEAP_GROWN, 200, 2},
        {HW_BUDGET_HEAP_UNREAD, 200, 2}, {HW_BUDGET_HEAP_FALLS, 200, 6}, {HW_BUDGET_HEAP_CHANGED, 600, 0},
        {HW_BUDGET_HEAP_OLD, 900, 0},    {HW_BUDGET_WORDS_CPU, 25, 0},   {HW_BUDGET_WORDS_IDLE, 200, 0},
    };
    const uint64_t cost = MS / 10, end = 10000ull * MS;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint64_t spent = spend(rows[i].budget, cost, MS, end), share = end / rows[i].part;
        assert_true(spent <= share + rows[i].start * MS / 2 + cost);
        assert_true(spent >= share - cost);
    }
}

/* Short runs: one part in 32 at most, and not all at once. */
static void test_start(void **state)
{
    assert_false(hw_budget_allows(HW_BUDGET_HEAP_GROWN, 0, 0, MS));
    assert_true(hw_budget_allows(HW_BUDGET_HEAP_GROWN, 0, MS, MS));
    assert_int_equal(hw_budget_limit(HW_BUDGET_HEAP_GROWN, MS, MS), MS / 32 + MS / 200);
    assert_int_equal(hw_budget_limit(HW_BUDGET_HEAP_GROWN, 3200ull * MS, MS), MS + 16ull * MS);
    assert_int_equal(hw_budget_limit(HW_BUDGET_HEAP_SMALL, 3200ull * MS, MS), MS / 2 + 16ull * MS);
    /* When live bytes fall: three milliseconds, from the first moment on. */
    assert_true(hw_budget_allows(HW_BUDGET_HEAP_FALLS, 3 * MS - 1, 0, MS));
    assert_false(hw_budget_allows(HW_BUDGET_HEAP_FALLS, 3 * MS, 0, MS));
    /* In the moment of the fall: a sixteenth, three milliseconds in a whole run. */
    assert_int_equal(spend(HW_BUDGET_HEAP_LAST, MS, MS, 10000ull * MS), 3 * MS);
    assert_int_equal(hw_budget_limit(HW_BUDGET_HEAP_LAST, 16, MS), 1);
}

/* What may take half a millisecond is not begun when less is left. */
static void test_reserve(void **state)
{
    const uint64_t limit = hw_budget_limit(HW_BUDGET_HEAP_UNREAD, 1000ull * MS, MS);
    assert_true(hw_budget_allows(HW_BUDGET_HEAP_UNREAD, limit - MS / 2 - 1, 1000ull * MS, MS));
    assert_false(hw_budget_allows(HW_BUDGET_HEAP_UNREAD, limit - MS / 2, 1000ull * MS, MS));
}

/* With pauses a sampler keeps to its share, however long one time takes. */
static void test_pauses(void **state)
{
    static const struct {
        enum hw_budget budget;
        uint64_t part;
    } rows[] = {
        {HW_BUDGET_WINDOWS, 100}, {HW_BUDGET_SWEEP, 200}, {HW_BUDGET_WORDS_ONCE, 20}, {HW_BUDGET_WORDS_LIST, 50}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t now = 0, spent = 0;
        for (uint64_t cost = 1; cost < 1000000000; cost = cost * 3 + 1) {
            spent += cost;
            now += cost + hw_budget_pause(rows[i].budget, cost, 10000);
            assert_true(spent <= now / rows[i].part);
        }
        assert_int_equal(hw_budget_pause(rows[i].budget, 1, 10000), 10000);
    }
    assert_int_equal(hw_budget_limit(HW_BUDGET_WORDS_ONCE, 20000000, 0), 1000000);
}

TEST_LIST(cmocka_unit_test(test_shares), cmocka_unit_test(test_start), cmocka_unit_test(test_reserve),
          cmocka_unit_test(test_pauses))
