// budget.cpp - examples/memory_budget/budget.hpp counts what a test allocates and nothing else: no block of its own,
// none of an earlier part. Each line that is printed is a mistake.
#include <cstdio>
#include <cstdlib>

#include "budget.hpp"

static int mistakes;

static void expect(bool wanted, bool kept, const char *what, const Budget &budget)
{
    if (kept == wanted)
        return;
    std::printf("%s: %s\n%s\n", what, kept ? "kept" : "broken", budget.text().c_str());
    mistakes++;
}

static void *volatile block, *volatile older;

static __attribute__((noinline)) void allocate_three()
{
    for (int i = 0; i < 3; i++)
        std::free(block = std::malloc(1000));
}

static __attribute__((noinline)) void leak_one()
{
    block = std::malloc(5000);
}

int main()
{
    if (!Budget::measured()) {
        Budget none("count=1000");
        const bool kept = none.kept();
        std::printf("not measured: %d, %s\n", kept, none.text().c_str());
        return 0;
    }
    older = std::malloc(100000);
    {
        Budget empty("count=0 bytes=0 leaked=0 peak=0");
        expect(true, empty.kept(), "nothing is allocated", empty);
    }
    {
        Budget exact("count=3 bytes=3000 peak=1000 leaked=0");
        allocate_three();
        expect(true, exact.kept(), "three blocks of 1000 bytes", exact);
    }
    for (const char *key : {"count=2", "bytes=2999", "peak=999"}) {
        Budget less(key);
        allocate_three();
        expect(false, less.kept(), key, less);
        if (less.text().find("allocate_three") == std::string::npos)
            expect(true, false, "the place is not named", less);
    }
    {
        Budget freed("leaked=0 peak=0");
        std::free(older); // of an earlier part: what is live sinks
        expect(true, freed.kept(), "an older block is freed", freed);
    }
    {
        // One inside another one: the reset of the inner one begins again for both.
        Budget outer("leaked=5000"), inner("leaked=4999");
        leak_one();
        expect(false, inner.kept(), "the inner one", inner);
        Budget empty("");
        expect(false, empty.kept(), "no limit", empty);
        Budget wrong("peek=1");
        expect(false, wrong.kept(), "no such measure", wrong);
        if (wrong.text().find("peek") == std::string::npos)
            expect(true, false, "what is wrong is not said", wrong);
    }
    std::free(block);
    setenv("HEAPWISE", "/none", 1);
    Budget lost("count=1");
    expect(false, lost.kept(), "there is no heapwise", lost);
    if (lost.text().find("/none: ") == std::string::npos)
        expect(true, false, "the missing program is not named", lost);
    return mistakes != 0;
}
