/* format_allocator.h - sections of mode=allocator. Part of format.h, which includes it: same rules. */
#ifndef HW_PROFILE_FORMAT_ALLOCATOR_H
#define HW_PROFILE_FORMAT_ALLOCATOR_H

#include <stdint.h>

/* ---- the allocator itself (mode=allocator) ----
 *
 * An operation is a call of the allocator by the program: not one that the allocator makes itself. */

enum hw_operation_kind {
    HW_OPERATION_NEW = 0,     /* malloc, operator new, realloc of NULL: an address that was not handed out before */
    HW_OPERATION_REUSED = 1,  /* the same, at one that was */
    HW_OPERATION_FREE = 2,    /* free and operator delete, not of NULL; realloc to size 0 that frees */
    HW_OPERATION_CALLOC = 3,  /* whatever its address */
    HW_OPERATION_REALLOC = 4, /* other realloc and reallocarray, of blocks that are known; the new size counts */
    HW_OPERATION_ALIGNED = 5, /* memalign, aligned_alloc …, and the forms of operator new with an alignment */
    HW_OPERATION_KINDS = 6,
};
#define HW_OPERATION_KINDS_ROOM 8
/* In the place of a kind, in hw_operation_counts alone: the bytes that the operations of the bucket asked for, and that
 * reallocations to its sizes added. */
#define HW_OPERATION_BYTES 6
/* Bytes of freed blocks whose size is known, and by which reallocations shrank blocks. So live bytes are known up to
 * the last operation, too. */
#define HW_OPERATION_BYTES_FREED 7

enum hw_phase {
    HW_PHASE_SERIAL = 0,   /* one thread was alive */
    HW_PHASE_PARALLEL = 1, /* several */
    HW_PHASES = 2,
};

enum hw_allocator_flags {
    HW_ALLOCATOR_PLACES = 1u << 0, /* addresses were followed: NEW differs from REUSED, sizes of frees are known */
    /* Merged profiles: the runs do not agree on how the allocator works, on what others would do. Neither is there. */
    HW_ALLOCATOR_FACTS_DIFFER = 1u << 1,
    HW_ALLOCATOR_PREDICTIONS_DIFFER = 1u << 2,
    /* HW_OPERATION_BYTES is there. Older profiles lack it, and count reallocations of NULL and to size 0, and
     * operations that failed, among those of their kind. */
    HW_ALLOCATOR_BYTES = 1u << 3,
    HW_ALLOCATOR_BYTES_FREED = 1u << 4, /* HW_OPERATION_BYTES_FREED is there */
};

/* Times are ticks, of the real call alone: what reading the clock costs (clock_ticks) has been subtracted, and
 * Heapwise's own time inside it.
 *
 * Each operation is timed with a chance of 1 / 2^shift, drawn anew for each; a timed one has the weight 2^shift, so
 * that sums of weights and of weighted ticks are estimates without bias. With shift 0 all are timed. Shifts are chosen
 * thread by thread, so that timing takes little of its time; large operations have a smaller one. The first allocation
 * of each thread is never timed. */
struct hw_allocator_info {
    uint32_t flags HW_TAG(1);         /* enum hw_allocator_flags */
    uint32_t phase HW_TAG(2);         /* enum hw_phase, now */
    uint64_t clock_ticks;             /* that reading the clock twice takes */
    uint64_t timed;                   /* operations */
    uint64_t timed_weight;            /* sum of their weights */
    uint32_t shift_most HW_TAG(3);    /* the greatest shift that any thread has had; 0: every operation was timed */
    uint32_t threads_alive HW_TAG(4); /* now, also of those that have done no operation */
    uint64_t own_ticks;               /* what timing took, and reading the resident heap */
    uint64_t first_left_out;          /* first allocations of threads */
    uint64_t interrupted; /* timed ones inside which another thread had the processor, although they waited for
                           * nothing: short ones are in no time, long ones with their processor time */
    uint64_t interrupted_ticks;
    uint64_t tracked, tracked_live; /* blocks whose life is followed, so far and now; they are those of the MIBs */
    uint64_t stages;                /* so far, with the present one */
    /* Merged profiles alone: sums over the runs in which the allocator was observed. Ticks of several clocks are added
     * up as they are; how long they are on average is duration_ns / duration_ticks. Moments are ns. */
    uint64_t runs; /* 0: not merged */
    uint64_t duration_ns, duration_ticks;
    uint64_t rate_least, rate_most; /* ticks a second, of the slowest and the fastest clock */
    uint64_t critical_ticks;        /* in operations, of serial stages and the slowest thread of parallel ones */
    uint64_t thread_ticks;          /* that threads were alive, added up… */
    uint64_t runs_staged;           /* …of so many runs */
    /* After a reset: 1 + the number of the slot of OPERATION_COUNTS that holds what all others together had counted
     * until then, and is subtracted. 0: none. */
    uint64_t reset_slot;
    /* What Heapwise itself takes, measured at the start: ticks in 1000 usual operations; for one system call.
     * 0: not known. */
    uint64_t hook_ticks, call_ticks;
    uint64_t own_critical_ticks; /* merged profiles alone: Heapwise's own, on the way that critical_ticks is of */
    uint64_t runnable_ns;        /* that the first thread could have run and another one had the processor */
    uint64_t reserved[7];
};

/* Exact numbers of operations of one slot that did not fail for one size bucket (base/size_bucket.h): entry i is bucket
 * i modulo HW_SIZE_BUCKETS. By phase and kind. Slots are those of threads that did an operation, one after the other,
 * in any order; the reader adds them up (all but reset_slot). Frees are counted by the size that was requested for the
 * block; the last bucket is for blocks whose size is not known, since they are older than the profile. */
struct hw_operation_counts {
    uint64_t count[HW_PHASES][HW_OPERATION_KINDS_ROOM];
};

enum hw_allocator_style { HW_STYLE_UNKNOWN = 0, HW_STYLE_SEQUENTIAL = 1, HW_STYLE_BIBOP = 2 };

enum hw_reuse_order {
    HW_REUSE_UNKNOWN = 0,
    HW_REUSE_LIFO = 1,
    HW_REUSE_FIFO = 2,
    HW_REUSE_MIXED = 3,
    HW_REUSE_DEFERRED = 4, /* freed blocks do not come back at once */
};

enum hw_thread_cache {
    HW_CACHE_UNKNOWN = 0,
    HW_CACHE_NONE = 1,    /* a freed block goes to the next thread that asks */
    HW_CACHE_FREEING = 2, /* to the thread that freed it */
    HW_CACHE_OWNING = 3,  /* back to the thread that allocated it */
};

enum hw_allocator_facts_flags {
    HW_FACTS_PROBED = 1u << 0,         /* the allocator was tried out; else only what it is called is known */
    HW_FACTS_TOLD = 1u << 1,           /* they come from a file (record --facts) */
    HW_FACTS_LARGE_BY_BRK = 1u << 2,   /* large blocks are taken from the end of the heap, not by mmap */
    HW_FACTS_LARGE_RETURNED = 1u << 3, /* their memory goes back to the system when they are freed */
    HW_FACTS_SMALL_PAGES = 1u << 4, /* huge pages were for those that ask for them, and the run's environment did not */
};

/* How the allocator of the run works: docs/allocators.md. Sizes in bytes, as requested; 0: not known. */
struct hw_allocator_facts {
    char name[64], version[64];         /* "" when not known */
    char build_id[136];                 /* of the file it is in, hexadecimal */
    char why[256];                      /* a reason for something that is not known */
    uint32_t flags HW_TAG(1);           /* enum hw_allocator_facts_flags */
    uint32_t style HW_TAG(2);           /* enum hw_allocator_style */
    uint32_t reuse HW_TAG(3);           /* enum hw_reuse_order: of blocks of 64 bytes, in one thread */
    uint32_t thread_cache HW_TAG(4);    /* enum hw_thread_cache */
    uint64_t alignment HW_TAG(5);       /* divides the address of every block of more than 8 bytes */
    uint64_t alignment_small HW_TAG(6); /* of every block */
    uint64_t medium HW_TAG(7);          /* the smallest size that takes another path than small ones */
    uint64_t large HW_TAG(8);           /* the smallest size of which each block has memory mapped for itself */
    /* freeing such a block raises the threshold to its size, up to this; 0: it does not */
    uint64_t large_rises_to HW_TAG(9);
    uint64_t least HW_TAG(10), step HW_TAG(11); /* sequential: usable sizes are least + k * step */
    uint64_t header HW_TAG(12);                 /* sequential: bytes between blocks */
    uint64_t classes_step HW_TAG(13);           /* beyond the last of SIZE_CLASSES: multiples of this; 0: not known */
    uint64_t reserved[8];
};

struct hw_size_class {
    uint64_t size HW_TAG(1, PREVIOUS); /* usable bytes of a block */
};

enum hw_prediction_flags {
    HW_PREDICTION_FEWER_PROCESSORS = 1u << 0, /* than threads of the program worked at once: contention is not seen */
};

/* What the run would have been with another allocator; or that nothing was predicted (`replays` 0), and why. */
struct hw_allocator_prediction {
    char allocator[64], version[64];
    char problem[256];
    uint32_t replays HW_TAG(1);
    uint32_t flags HW_TAG(2);   /* enum hw_prediction_flags */
    uint64_t speedup HW_TAG(3); /* time now by the time then, in millionths: above 1,000,000 it is faster */
    uint64_t low HW_TAG(4, FIELD, speedup), high HW_TAG(5, FIELD, speedup); /* its range */
    uint64_t reserved[8];
};

/* System calls, in the kinds that are distinguished. */
enum hw_system_call {
    HW_CALL_OTHER = 0,
    HW_CALL_UNSEEN = 1, /* calls that could not be carried out for the program (clone, exec, …): after each of them, no
                         * more were seen in the same operation */
    HW_CALL_MMAP = 2,
    HW_CALL_MUNMAP = 3,
    HW_CALL_MREMAP = 4,
    HW_CALL_BRK = 5,
    HW_CALL_MADVISE = 6,
    HW_CALL_MPROTECT = 7,
    HW_CALL_FUTEX_WAIT = 8, /* of locks that libc or the allocator made by themselves, as the next two */
    HW_CALL_FUTEX_WAKE = 9,
    HW_CALL_FUTEX_OTHER = 10,
    HW_CALL_SCHED_YIELD = 11,
    HW_CALL_SLEEP = 12, /* nanosleep, clock_nanosleep */
    HW_CALL_GETRANDOM = 13,
    HW_CALL_OPEN = 14,
    HW_CALL_READ = 15,
    HW_SYSTEM_CALLS = 16,
};

/* Exact. Entries for the same thing add up. */
struct hw_operation_call {
    uint32_t call HW_TAG(1, PREVIOUS);                            /* enum hw_system_call */
    uint16_t phase HW_TAG(2, PREVIOUS), kind HW_TAG(3, PREVIOUS); /* enum hw_phase, enum hw_operation_kind */
    uint64_t count HW_TAG(4), errors HW_TAG(5);
    uint64_t ticks HW_TAG(6); /* in the kernel; without what it costs to observe */
    uint64_t bytes HW_TAG(7); /* the lengths that were asked for; of brk by how much the end moved */
    uint64_t reserved[3];
};

enum hw_lock_kind {
    HW_LOCK_OTHERS = 0, /* all that found no entry of their own */
    HW_LOCK_MUTEX = 1,
    HW_LOCK_SPIN = 2,
    HW_LOCK_RWLOCK = 3, /* taken for reading or writing */
    HW_LOCK_FUTEX = 4,  /* one that libc or the allocator made by itself: only waits and wakes are known */
};

struct hw_lock_use {
    uint64_t count;          /* acquisitions; of FUTEX wakes */
    uint64_t contended;      /* of them, those that had to wait; of FUTEX waits */
    uint64_t refused;        /* attempts (trylock) that found it taken */
    uint64_t wait_ticks;     /* for contended ones, waiting and trying */
    uint64_t held_ticks;     /* between acquisition and release in the same operation */
    uint64_t critical_ticks; /* of sections in which one lock or several were held, and this one was the first */
};

/* Exact: a lock that was used inside operations. Locks at one address that are of one kind are one. */
struct hw_operation_lock {
    uint64_t address HW_TAG(1, PREVIOUS);
    uint64_t offset HW_TAG(2, FIELD, address); /* address - bias in its module; the address where it is in none */
    uint32_t map HW_TAG(3, PREVIOUS);          /* index into MAPS of the module whose data it is; HW_NONE: of none */
    uint32_t kind HW_TAG(4, PREVIOUS);         /* enum hw_lock_kind */
    uint64_t waiting_most HW_TAG(5);           /* threads at once */
    uint64_t wait_ticks_most HW_TAG(6), critical_ticks_most HW_TAG(7); /* in one operation */
    uint64_t locks; /* merged profiles: so many, of no module's data, of which only the sum is kept; 0: one */
    uint64_t reserved;
    struct hw_lock_use use[HW_PHASES][HW_OPERATION_KINDS];
};

enum hw_operation_event {
    HW_EVENT_INSTRUCTIONS = 0, /* of the program, as all of them */
    HW_EVENT_CACHE_MISSES = 1, /* of the last level */
    HW_EVENT_DTLB_MISSES = 2,  /* of loads */
    HW_EVENT_PAGE_FAULTS = 3,
    HW_EVENT_CPU_NS = 4,
    HW_EVENT_SWITCHES = 5, /* to other threads */
    HW_OPERATION_EVENTS = 6,
};

/* Sums over a sample of the operations of one size bucket, phase and kind. */
struct hw_operation_events {
    uint32_t bucket HW_TAG(1, PREVIOUS);      /* base/size_bucket.h */
    uint16_t phase HW_TAG(2), kind HW_TAG(3); /* enum hw_phase, enum hw_operation_kind */
    uint64_t present HW_TAG(4, PREVIOUS);     /* bits 1 << enum hw_operation_event: what was counted */
    uint64_t samples HW_TAG(5);
    uint64_t sum[HW_OPERATION_EVENTS];
    uint64_t reserved[3];
};

/* The times of one phase, kind and bucket; entries for the same thing add up. */
struct hw_operation_times {
    uint32_t phase HW_TAG(1, PREVIOUS), kind HW_TAG(2, PREVIOUS), bucket HW_TAG(3, PREVIOUS);
    uint32_t reserved0 HW_TAG(4);
    uint64_t samples;
    uint64_t weight; /* sum of weights: how many operations they stand for */
    uint64_t ticks;  /* sum of ticks, weighted */
    uint64_t most;   /* the longest one that was timed */
    /* What is seen inside every operation, timed or not: system calls, and waiting for locks of pthreads. Weighted, of
     * the timed ones alone, and part of `ticks`; exactly, of all. What they took altogether is (ticks - inside_ticks),
     * made up to their number, and exact_ticks: it is never less than what was seen. Entries may have nothing else. */
    uint64_t inside_ticks, exact_ticks;
    uint64_t reserved[8];
    uint64_t histogram[240]; /* weights, by hw_time_bin (base/log_histogram.h) */
};

/* The times of one kind by call stack; entries for the same thing add up. */
struct hw_operation_site {
    uint32_t context HW_TAG(1, PREVIOUS); /* of the call, also of free */
    uint32_t kind HW_TAG(2);
    uint64_t samples, weight, ticks, most;
    uint64_t bytes; /* sum of sizes, weighted: 0 for blocks of which it is not known */
};

#define HW_LIFE_BINS 48

/* Lives of followed blocks of one bucket (of the size at their allocation), weighted. Lives are counted in operations
 * of the thread that allocated the block, done between its allocation and its end. */
struct hw_operation_lives {
    uint32_t bucket HW_TAG(1, PREVIOUS);
    uint32_t reserved0 HW_TAG(2);
    uint64_t samples, weight; /* allocations */
    uint64_t freed;           /* of `weight` */
    uint64_t freed_elsewhere; /* of those, by another thread */
    uint64_t reserved[3];
    uint64_t histogram[HW_LIFE_BINS]; /* of freed ones: bin 0 for 0, bin n for 2^(n-1) up to 2^n - 1 */
};

#define HW_SLOWEST 64

struct hw_slow_operation {
    uint64_t ticks; /* that it took; 0: the entry is not in use */
    uint64_t tick;  /* when it began */
    uint64_t size;  /* UINT64_MAX: not known */
    uint32_t context HW_TAG(1, PREVIOUS);
    uint32_t kind HW_TAG(2), phase HW_TAG(3);
    uint32_t thread HW_TAG(4, PREVIOUS); /* serial */
    uint32_t shift HW_TAG(5);            /* of its weight: others as slow may not have been timed */
    uint32_t reserved0 HW_TAG(6);
};

enum hw_stage_flags {
    HW_STAGE_REST = 1u << 0, /* stands for several: there were too many. `begin` and `end` are as far apart as those
                              * took together, of parallel ones each time the slowest thread */
};

struct hw_stage_kind {
    uint64_t count; /* exact */
    uint64_t ticks; /* estimated, as in struct hw_operation_times */
};

/* What one thread did in one stage: a stage ends when the second thread begins, or the last but one ends. The thread
 * took part from `begin` to `end`, ticks from the start. Stages that still go on have no entry. */
struct hw_operation_stage {
    uint32_t stage HW_TAG(1, PREVIOUS); /* number, from 0 */
    uint32_t phase HW_TAG(2);
    uint32_t thread HW_TAG(3, PREVIOUS); /* serial */
    uint32_t flags HW_TAG(4);            /* enum hw_stage_flags */
    uint64_t begin HW_TAG(5, PREVIOUS), end HW_TAG(6, FIELD, begin);
    struct hw_stage_kind kind[HW_OPERATION_KINDS];
};

/* ---- what lies where (mode=allocator): exact unless it says otherwise ---- */

enum hw_places_flags {
    HW_PLACES_THREADS =
        1u << 0, /* there were several threads: greatest numbers are known in steps, see docs/places.md */
    HW_PLACES_WRAPPED = 1u << 1, /* so many threads that two had one number: false sharing between these is not seen */
};

/* Sums over all blocks. Values of events are of the whole run; the others as of `tick`. */
struct hw_places_info {
    uint32_t flags HW_TAG(1); /* enum hw_places_flags */
    uint32_t reserved0 HW_TAG(2);
    uint64_t tick;
    int64_t requested_bytes; /* live */
    uint64_t peak_bytes, peak_tick;
    /* Lines on which a block was handed out while another thread's lived there: at a new address (active), at one that
     * was handed out before (passive); and those blocks. */
    uint64_t active_lines, passive_lines, active_blocks, passive_blocks;
    uint64_t unaligned;    /* blocks that were not followed: at no multiple of 8, or beyond the address space */
    uint64_t unseen_frees; /* blocks whose memory was handed out again although no free was seen */
    uint64_t skipped;      /* blocks whose lines a signal handler could not check */
    /* Sampled accesses to live blocks: how many, and the sums of requested live bytes in their lines and pages. */
    uint64_t samples, line_bytes, page_bytes;
    /* Sampled writes to live blocks; those to lines that were last seen written by another thread: both within one
     * block, in one 8-byte word (true sharing) or not (sharing inside an object); of different blocks. */
    uint64_t writes, contended_word, contended_object, contended_blocks;
    /* Sampled writes to lines on which active or passive false sharing has happened, and the contended ones of these.
     */
    uint64_t active_writes, active_contended, passive_writes, passive_contended;
    /* Merged profiles alone: of how many runs this is the sum (0: not merged); the sum of the blowups at their peaks,
     * which those of the classes do not show. Peaks are sums of the runs' own ones, each at its own moment. */
    uint64_t runs;
    int64_t peak_blowup_bytes;
    uint64_t reserved[11];
};

/* One class of usable sizes, at one moment. */
struct hw_usable_class_state {
    int64_t live_blocks, live_bytes; /* bytes: requested */
    int64_t usable_bytes;            /* of the live blocks, by the allocator's own account */
    int64_t untouched_bytes; /* of these: whole pages at the end of blocks, behind all that was ever asked for there */
    int64_t free_blocks, free_bytes;   /* freed, and their memory not handed out since */
    int64_t most_blocks;               /* the most that were live at once, up to then */
    int64_t new_blocks, reused_blocks; /* handed out so far: at new addresses, at those that were handed out before */
};

struct hw_usable_class {
    uint64_t usable_least HW_TAG(1, PREVIOUS), usable_most HW_TAG(2, FIELD, usable_least);
    struct hw_usable_class_state now, peak; /* as of hw_places_info.tick; when most bytes were live */
};

#define HW_PLACES_POINTS 1024

struct hw_places_point {
    uint64_t tick HW_TAG(1, PREVIOUS);
    int64_t requested_bytes HW_TAG(2, PREVIOUS), internal_bytes HW_TAG(3, PREVIOUS), blowup_bytes HW_TAG(4, PREVIOUS),
        free_bytes HW_TAG(5, PREVIOUS);
    uint64_t resident_bytes HW_TAG(6, PREVIOUS); /* of mappings with blocks; 0: not read */
    /* Since the start; not in files of older versions: blocks handed out, those of them at new addresses, and ticks in
     * system calls: mmap, munmap and mremap; brk; madvise. */
    uint64_t handed_out HW_TAG(7, PREVIOUS), handed_out_new HW_TAG(8, PREVIOUS);
    uint64_t mapping_ticks HW_TAG(9, PREVIOUS), heap_end_ticks HW_TAG(10, PREVIOUS), advice_ticks HW_TAG(11, PREVIOUS);
    /* Ticks for which operations waited (for locks, contended ones and futexes; sched_yield, sleeps), when they ended;
     * lines on which active or passive false sharing has happened, each once. */
    uint64_t waiting_ticks HW_TAG(12, PREVIOUS), shared_lines HW_TAG(13, PREVIOUS);
    /* resident beyond all the others; where resident_bytes is 0 nothing is known of it */
    int64_t external_bytes HW_TAG(14, PREVIOUS);
};

/* The heap taken apart. All of one moment: resident = requested - absent_requested + internal + blowup + the rest. */
struct hw_places_moment {
    uint64_t tick HW_TAG(1, PREVIOUS);
    /* enum hw_memory_moment; HW_MOMENT_PEAK: the latest one before the peak; a later entry replaces an earlier one */
    uint32_t moment HW_TAG(2);
    uint32_t reserved0 HW_TAG(3);
    int64_t requested_bytes, internal_bytes, blowup_bytes;
    int64_t free_bytes;        /* freed, and their memory not handed out since: blowup is a part of it */
    uint64_t absent_requested; /* requested bytes of blocks of 64 KiB and more in pages that are not there */
    uint64_t absent_free;      /* the same of freed ones */
    uint64_t resident_bytes;   /* of anonymous mappings that hold blocks, [heap] included; 0: could not be read */
    uint64_t elsewhere_bytes;  /* of those that hold none: the program's own, memory that the allocator keeps */
    /* Merged profiles alone: of how many runs this is the sum; in how many the resident bytes were read (at the peak:
     * near enough to it). */
    uint64_t runs, runs_read;
    /* Of pages in which a live block has bytes: how many bytes in them are not requested and live. Estimated from so
     * many followed blocks; 0: it is not known. Not in merged profiles. */
    uint64_t pages_free, pages_looks;
    uint64_t reserved;
};

/* Sampled blocks, weighted: estimates. A page counts when at most a quarter of it is requested and live; each of the
 * blocks on it pins its share of the rest. */
struct hw_pinned {
    uint32_t context HW_TAG(1, PREVIOUS);
    uint32_t moment HW_TAG(2, PREVIOUS); /* enum hw_memory_moment */
    uint64_t blocks HW_TAG(3);           /* that are on such pages, weighted */
    uint64_t bytes HW_TAG(4);            /* that they pin, weighted */
    uint64_t samples HW_TAG(5);
};

/* A block of `context` was handed out on a line on which one of `other` lived, of another thread. */
struct hw_line_pair {
    uint32_t context HW_TAG(1, PREVIOUS), other HW_TAG(2, PREVIOUS); /* HW_NONE: not known */
    uint64_t active HW_TAG(3), passive HW_TAG(4);
};

#endif
