// totals.hpp - what a part of a test allocates, as numbers, for any C++ test framework (C++11). README.md explains it.
//
//     Totals parsing("parse");
//     parse("input");
//     const heapwise_totals totals = parsing.end();  // totals.allocations, totals.live_bytes, totals.peak_bytes …
//
// Counted are the blocks of the calling thread, or with HEAPWISE_PROCESS those of all threads. totals.measured is
// HEAPWISE_EXACT under `heapwise record`, and HEAPWISE_NOT_MEASURED elsewhere.
#ifndef TOTALS_HPP
#define TOTALS_HPP

#include <heapwise/heapwise.h>

class Totals
{
  public:
    explicit Totals(const char *name, heapwise_scope scope = HEAPWISE_THREAD)
    {
        heapwise_region_begin(&region_, name, scope);
    }

    Totals(const Totals &) = delete;
    Totals &operator=(const Totals &) = delete;

    // An exception ends the part, too.
    ~Totals()
    {
        if (!ended_)
            heapwise_region_end(&region_, nullptr);
    }

    heapwise_totals end()
    {
        heapwise_totals totals;
        heapwise_region_end(&region_, &totals);
        ended_ = true;
        return totals;
    }

  private:
    heapwise_region region_;
    bool ended_ = false;
};

#endif
