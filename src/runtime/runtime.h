/* runtime.h - what every file of the runtime knows: its rules, its limits, its state. Functions stand in the header of
 * their room, which is its manual:
 *
 *   core/core.h, file.h, memory.h, modules.h, threads.h   start, end and fork; the file; private memory; code; threads
 *   hooks/hooks.h          the real allocator, and other functions of libc that have hooks
 *   stacks/stacks.h        from a hook's frame to a context
 *   heap/heap.h            blocks, and what is counted of them by context
 *   access/access.h        counted accesses and fields
 *   samples/samples.h      sampled accesses
 *   allocator/allocator.h, places.h       mode=allocator
 *   graph/graph.h          which blocks the program can still reach
 *
 * The runtime is loaded into the program that is profiled. It wraps the program's own allocator, counts by call stack
 * and keeps the counts in a profile file that is mapped and valid at every moment. Rules for everything here:
 *
 *  - no libc allocation, no stdio, no errno, no lock that the program can hold;
 *  - the fast paths take no lock; slow paths take hw_runtime.lock with all signals blocked (base/sys.h);
 *  - trouble never reaches the program: the runtime steps aside, notes what was lost and passes calls through.
 */
#ifndef HW_RUNTIME_RUNTIME_H
#define HW_RUNTIME_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sys.h"
#include "profile/format.h"

#define HW_EXPORT __attribute__((visibility("default"), noinline))
#define HW_HIDDEN __attribute__((visibility("hidden")))
/* Of zeros, and more than some pages: behind the other variables, which then share few pages. Each page that a short
 * program touches is a page fault. */
#ifdef __clang__ /* it would write the zeros into the file */
#define HW_LARGE
#else
#define HW_LARGE __attribute__((section(".lbss.heapwise")))
#endif
/* The head of a function that is exported and called by nobody here: with its prototype. */
#define HW_EXPORTED(type, name, arguments)                                                                             \
    HW_EXPORT type name arguments;                                                                                     \
    HW_EXPORT type name arguments
#define HW_VARIABLE     __attribute__((visibility("default")))
#define HW_DEPTH_MAX    256
#define HW_CONTEXT_MAX  (1u << 23)
/* A function that is part of a fast path, or folds away where it is called. */
#define HW_INLINE static inline __attribute__((always_inline))

enum hw_state {
    HW_STATE_NEW = 0,      /* nothing has happened yet */
    HW_STATE_STARTING = 1, /* in hw_start */
    HW_STATE_ON = 2,
    HW_STATE_OFF = 3, /* could not start, or gave up: everything is passed through */
};

enum hw_stopped {
    HW_STOPPED_WAIT = 1u << 0, /* they wait: hw_threads_stop */
    HW_STOPPED_PASS = 1u << 1, /* they are passed through and not counted: periods.c */
};

struct hw_runtime {
    uint32_t state;                  /* enum hw_state */
    uint32_t threads_many;           /* more than one thread has been seen: deltas are flushed, see heap.c */
    uint32_t threads_settled;        /* nobody adds without atomic instructions any more */
    uint64_t timeline_next;          /* ticks: when the next point is due */
    uint64_t timeline_fall;          /* likewise for frees: 0 while RSS is to be read at the peak, before it is left */
    uint64_t peak_read_above;        /* a new peak above this total is worth that */
    uint64_t code_generation;        /* raised when code was unmapped: cached walks and rules are void */
    uint64_t peak_limit;             /* a new peak is noted above this total */
    int64_t flush_limit;             /* a thread adds its delta to the totals when it is greater than this */
    struct hw_process_info *process; /* in the file */
    uint64_t tick_base;              /* tick 0 of the file */
    uint64_t family_base; /* tick 0 of the first process of a family of forks: what blocks are stamped with */
    uint32_t pid;
    uint32_t clock_is_tsc;
    uint64_t ns_per_tick;           /* times 2^32; as far as it is known so far */
    uintptr_t text_start, text_end; /* the runtime's own code */
    struct hw_lock lock;            /* all slow paths */
    uint64_t clock_start_ns;        /* CLOCK_MONOTONIC at tick 0 */
    uint64_t old_below;             /* blocks with a smaller stamp: inherited, or older than the latest reset */
    uint32_t stopped;               /* enum hw_stopped: what events find at their begin */
    uint32_t mode;                  /* enum hw_mode, as of the start */
    uint32_t weighted;              /* blocks stand for others like them: sampled runs, allocator mode */
    uint32_t regions_open;          /* regions.c: how many, */
    uint32_t regions_of_process;    /* of them of all threads */
    int64_t regions_most;           /* live bytes of the process since the latest begin or end of one */
};
extern HW_HIDDEN struct hw_runtime hw_runtime;

#endif
