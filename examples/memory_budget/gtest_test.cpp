// A memory budget in GoogleTest.
#include <gtest/gtest.h>

#include "budget.hpp"
#include "table.hpp"
#include "totals.hpp"

class TableBudget : public testing::Test
{
  protected:
    void SetUp() override
    {
        if (!Budget::measured())
            GTEST_SKIP() << "memory is measured under heapwise record only";
    }
    const std::string text = example(100);
};

TEST_F(TableBudget, Parse)
{
    Budget budget("leaked=0 peak=64K count=1000");
    parse(text);
    EXPECT_TRUE(budget.kept()) << budget.text();
}

TEST_F(TableBudget, ParseWastefully)
{
    Budget budget("leaked=0 peak=64K bytes=256K");
    parse_wastefully(text);
    EXPECT_TRUE(budget.kept()) << budget.text();
}

// Numbers instead of limits: exact, and without a comparison of profiles.
TEST_F(TableBudget, ParseInNumbers)
{
    Totals parsing("parse");
    parse(text);
    const heapwise_totals totals = parsing.end();
    EXPECT_EQ(totals.measured, HEAPWISE_EXACT);
    EXPECT_EQ(totals.live_blocks, 0);
    EXPECT_EQ(totals.allocations, totals.frees);
    EXPECT_LE(totals.allocations, 1000u);
    EXPECT_LE(totals.peak_bytes, 64u << 10);
}
