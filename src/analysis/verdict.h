/* verdict.h - is the allocator the problem? The numbers of one run in allocator mode -> what it costs, and why.
 *
 * From the top down: how much of the run's time and memory the allocator takes; then which operation, system call,
 * lock, size, line or place of the program it is. Numbers only: sentences are made by the report (verdict_words.c).
 * A number that was not observed is NAN, a count UINT64_MAX. docs/allocators.md explains the thresholds. */
#ifndef HW_ANALYSIS_VERDICT_H
#define HW_ANALYSIS_VERDICT_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_NOT_OBSERVED        UINT64_MAX
#define HW_VERDICT_CAUSES_MOST 16

/* A size group of one kind in one phase, or a sum of them. */
struct hw_operation_cost {
    uint64_t count;
    double seconds; /* in all threads; estimated where operations were sampled */
};

/* What the verdict is made of. Times are seconds, sums over all threads unless said otherwise; sizes are bytes. */
struct hw_verdict_input {
    uint64_t runs;     /* of how many what follows is the sum */
    double begin;      /* of what is counted, seconds from the start of the run: 0, or a reset */
    double wall;       /* of the run from there on, or of all */
    double own;        /* of it, what Heapwise itself took on the critical way, as far as that is known */
    double runnable;   /* of it, without a processor although it could have run: the first thread; 0: not known */
    double run;        /* what is left: set by hw_verdict_settle */
    double threads;    /* time that threads were alive, added up */
    double operations; /* in operations, all threads */
    uint64_t count;    /* of operations */
    double critical;   /* in operations, on the critical way: serial stages, and the slowest thread of parallel ones */
    double error;      /* relative standard error of `operations` */
    struct hw_operation_cost fresh, reused,
        large; /* new and reused addresses below the large threshold; large: all kinds */

    struct hw_operation_cost clearing, copying; /* of 4 KiB and more: calloc, realloc; without what they wait for */

    /* Inside operations. */
    double in_syscalls;
    double exact; /* all that is known exactly: in system calls, and waiting without any */
    struct {
        uint64_t calls, bytes; /* bytes: as the calls name them */
        double seconds;
    } map, advise, heap_end, protect; /* mmap, munmap and mremap; madvise; brk; mprotect */
    double waiting;                   /* for locks: futex waits, contended mutexes and spinlocks */
    uint64_t acquired, contended;     /* locks that can be seen */
    double faults;                    /* page faults in an operation, mean; NAN */

    /* At the peak; or at another moment, MEMORY_AT seconds from the start, at which much more was resident (NAN: the
     * peak). */
    double memory_at;
    bool memory_at_end;
    double total, real, internal, blowup, external; /* total is the allocator's resident memory */
    uint64_t memory_runs;                           /* of how many runs; of the others the whole is not known */
    struct {
        uint64_t least, most; /* sizes of the bucket */
        double wasted;
    } worst_class; /* of internal fragmentation */
    double pinned; /* otherwise free pages that some contexts keep */
    double kept;   /* of external: freed blocks in pages without live ones */

    /* Resident beyond what was requested for live blocks, for a fifth of the run or longer: at least so much; at the
     * end of those times so much was resident in all. NAN: not known. */
    double lasting, lasting_total, lasting_seconds;

    uint64_t active_lines, passive_lines, lines; /* `lines`: of the resident heap at the peak */

    /* The place of the program where most time in operations is spent. SIZE_MAX: not known. */
    size_t site;
    double site_seconds;
    uint64_t site_count;
    size_t clearing_site, copying_site; /* the same of calloc and realloc alone */
    size_t pinning_site;                /* that pins most */

    struct hw_verdict_when {
        /* When in the run it was, seconds from the start: nearly all of it between these two. NAN: not known. */
        double since, until;
        uint64_t looks;             /* number of times it was sampled; 0: always observed */
    } when[HW_VERDICT_CAUSES_MOST]; /* by enum hw_verdict_cause */

    unsigned threads_most;      /* threads at once */
    bool small_pages;           /* it could have had huge ones, and did not ask for them */
    uint64_t largest;           /* size of the largest block that was asked for */
    const char *allocator;      /* "glibc 2.36" */
    double best_gain;           /* share of the run's time that the best other allocator is predicted to save; NAN */
    const char *best;           /* its name */
    double best_low, best_high; /* of the interval */
};

enum hw_verdict_answer { HW_VERDICT_NOT_KNOWN, HW_VERDICT_NO, HW_VERDICT_SOMEWHAT, HW_VERDICT_YES };

enum hw_verdict_cause {
    HW_CAUSE_MAPPING,       /* blocks with a mapping of their own: mmap and munmap */
    HW_CAUSE_HEAP_END,      /* the heap's end moves to and fro: brk */
    HW_CAUSE_ADVICE,        /* pages are given back and taken again: madvise */
    HW_CAUSE_LOCKS,         /* threads wait for each other */
    HW_CAUSE_NEW_MEMORY,    /* new places cost much more than reused ones: page faults */
    HW_CAUSE_RATE,          /* none of these: there are too many operations */
    HW_CAUSE_CLEARING,      /* large callocs set their memory to zero, and touch it first */
    HW_CAUSE_COPYING,       /* large blocks are copied when they grow */
    HW_CAUSE_SLOW,          /* none of these: some operations take long in the allocator's own code */
    HW_CAUSE_SMALL_PAGES,   /* the heap is large for the length of the run: each of its pages costs a page fault */
    HW_CAUSE_INTERNAL,      /* blocks are larger than what was asked for */
    HW_CAUSE_BLOWUP,        /* free blocks that other threads or sizes cannot use */
    HW_CAUSE_EXTERNAL,      /* holes between blocks, pages that a few blocks keep, and the allocator's own data */
    HW_CAUSE_KEPT,          /* freed blocks in pages without live ones, which the allocator keeps */
    HW_CAUSE_LASTING,       /* what is not needed any more stays resident: more than was too much at the peak */
    HW_CAUSE_FALSE_SHARING, /* threads have blocks on one cache line */
    HW_CAUSES
};

struct hw_verdict_finding {
    enum hw_verdict_cause cause;
    double share;      /* of the time in operations, or of the resident memory; lines: of lines with blocks */
    double seconds;    /* that it costs, in all threads; NAN */
    double gain;       /* seconds by which the run could be shorter at most; NAN */
    double gain_least; /* with `tunable` it is predicted to be shorter by so many seconds at least; NAN: not known */
    double bytes;      /* the same */
    size_t site;       /* place of the program that is concerned, SIZE_MAX: none */
    struct hw_verdict_when when;
    char tunable[96]; /* "GLIBC_TUNABLES=glibc.malloc.arena_max=2"; "" when this allocator has none for it */
};

struct hw_verdict {
    enum hw_verdict_answer time, memory;
    double time_share;                             /* of the run's wall time, on the critical way */
    double memory_share;                           /* of the allocator's resident memory that no block asked for */
    struct hw_verdict_finding findings[HW_CAUSES]; /* most costly first: time, then memory */
    size_t finding_count;
    bool another; /* another allocator is worth a try: `best` of the input */
};

/* An input of which nothing was observed. */
struct hw_verdict_input hw_verdict_input_none(void);
/* What several ways of measuring say is made to agree: nothing takes longer than its whole, and nothing less than its
 * parts that are known exactly. Once, before the rest. */
void hw_verdict_settle(struct hw_verdict_input *input);
void hw_verdict_make(struct hw_verdict *verdict, const struct hw_verdict_input *input);

/* ---- tunables.c ---- */

/* What the allocator called NAME ("glibc 2.36") has to be given in its environment against CAUSE, with a value for this
 * run: appended to OUT (of SIZE bytes); "" when there is nothing. */
void hw_tunable(char *out, size_t size, const struct hw_verdict_input *input, enum hw_verdict_cause cause);

extern const char *const hw_verdict_cause_names[HW_CAUSES]; /* "mapping", "heap-end", … as JSON has them */
extern const char *const hw_verdict_answer_names[];         /* "unknown", "no", "somewhat", "yes" */

#endif
