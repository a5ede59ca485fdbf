// A memory budget in GoogleTest.
#include <gtest/gtest.h>

#include "budget.hpp"
#include "table.hpp"

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
