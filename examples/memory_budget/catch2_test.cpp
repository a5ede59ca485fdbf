// A memory budget in Catch2, version 2 or 3.
#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_test_macros.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include "budget.hpp"
#include "table.hpp"
#include "totals.hpp"

TEST_CASE("parse keeps its budget", "[memory]")
{
    REQUIRE(Budget::measured()); // under heapwise record
    const std::string text = example(100);
    Budget budget("leaked=0 peak=64K count=1000");
    parse(text);
    const bool kept = budget.kept();
    INFO(budget.text());
    CHECK(kept);
}

TEST_CASE("parse_wastefully keeps its budget", "[memory]")
{
    REQUIRE(Budget::measured());
    const std::string text = example(100);
    Budget budget("leaked=0 peak=64K bytes=256K");
    parse_wastefully(text);
    const bool kept = budget.kept();
    INFO(budget.text());
    CHECK(kept);
}

// Numbers instead of limits: exact, and without a comparison of profiles.
TEST_CASE("parse in numbers", "[memory]")
{
    const std::string text = example(100);
    Totals parsing("parse");
    parse(text);
    const heapwise_totals totals = parsing.end();
    REQUIRE(totals.measured == HEAPWISE_EXACT); // under heapwise record
    CHECK(totals.live_blocks == 0);
    CHECK(totals.allocations == totals.frees);
    CHECK(totals.allocations <= 1000);
    CHECK(totals.peak_bytes <= 64 << 10);
}
