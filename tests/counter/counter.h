/* counter.h - the independent count of a process's heap: what it measures and where it leaves it.
 *
 * libcounter.so is preloaded into a program of which Heapwise counts the same. It shares no code and no idea with
 * Heapwise: one lock, one table of live blocks, plain sums. Each process leaves a file PID.N.count in the directory
 * named by HEAPWISE_TEST_COUNTER, which is the struct below, mapped: it is complete however the process ends.
 *
 * What is counted:
 *   allocations    successful malloc, calloc, memalign, posix_memalign, aligned_alloc, valloc, pvalloc, and
 *                  realloc and reallocarray of NULL (operator new ends up here, too)
 *   reallocations  successful realloc of a block to a size > 0; it stays one block, bytes grow by max(0, new - old)
 *   frees          of blocks that were counted; realloc to size 0 where it frees
 *   temporary      blocks freed by the thread that made them, with no allocation or reallocation of it between */
#ifndef TESTS_COUNTER_COUNTER_H
#define TESTS_COUNTER_COUNTER_H

#include <stdint.h>

#define COUNTER_MAGIC 0x31746e756f637768ull

struct counter {
    uint64_t magic;
    uint64_t pid;
    uint64_t started_ns; /* CLOCK_REALTIME */
    uint64_t allocations, frees, reallocations, temporary;
    uint64_t bytes;
    uint64_t live_blocks, live_bytes, peak_bytes;
    uint64_t peak_most; /* with blocks that a call is obtaining or giving back at that moment */
    uint64_t foreign_frees, foreign_reallocations, failed;
    char executable[512];
};

#endif
