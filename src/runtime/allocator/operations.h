/* operations.h - mode=allocator: what the files of this mode share.
 *
 * Every call of the allocator is an operation. operations.c counts all of them and times some; places.c knows what is
 * at each address; syscalls.c, locks.c and operation_events.c see what happens inside an operation. The allocator
 * itself is never replaced, and blocks are laid out as without Heapwise.
 *
 * A usual operation takes the fast path: two comparisons, the real call between two stores of the selector, the bytes
 * of places.c, one counter. Everything else (the first operation of a thread, timed ones, signal handlers inside an
 * operation, forked children, an event recorded inside) takes the slow path. */
#ifndef HW_RUNTIME_ALLOCATOR_OPERATIONS_H
#define HW_RUNTIME_ALLOCATOR_OPERATIONS_H

#include "base/size_bucket.h"
#include "runtime/allocator/allocator.h"
#include "runtime/allocator/syscalls.h"
#include "runtime/core/file.h"
#include "runtime/heap/heap.h"

struct hw_place_thread; /* places.h */

/* What is known of a thread's operations while they happen. Memory of the runtime that a forked child finds zeroed
 * (MADV_WIPEONFORK): until_timed is 0 then, so its first operation takes the slow path. */
struct hw_operator {
    /* SYSCALL_DISPATCH_FILTER_BLOCK (1) inside an operation, _ALLOW (0) outside: what the kernel reads, and what
     * distinguishes locks and system calls inside an operation from those of the program. */
    volatile uint8_t selector;
    volatile uint8_t events;             /* HW_EVENTS_…: if not 0, the end takes the slow path */
    uint8_t timed;                       /* this operation is timed: `begin` holds */
    uint8_t hardware;                    /* its hardware events are read; HW_HARDWARE_NEXT: the next one's will be */
    uint32_t until_timed;                /* operations up to the next one on the slow path; 0: this one */
    struct hw_operation_counts *counts;  /* HW_SIZE_BUCKETS entries in the file, this thread's */
    uintptr_t frame;                     /* of the hook of this operation: a nested call or a signal handler? */
    uint32_t serial;                     /* of the thread, from 1: hw_thread.serial */
    uint32_t shift;                      /* one operation in 2^shift is timed, at present */
    struct hw_place_thread *places;      /* of places.c, by hw_places_attach */
    struct hw_dispatch_thread *dispatch; /* of syscalls.c, by hw_dispatch_attach */
    uint64_t begin;                      /* ticks, of a timed operation */
    /* Heapwise's own time inside this operation: handlers and hooks add it, the end subtracts it. Set to 0 at the begin
     * of timed operations only. */
    uint64_t own_ticks;
    /* From here on: not touched by usual operations. */
    struct hw_thread *thread; /* NULL: of no thread now */
    uint32_t slot;            /* of the state, among all */
    uint32_t until_large;     /* until_timed of large operations, which are timed more often */
    uint32_t until_hardware;  /* timed operations up to the next whose hardware events are read */
    uint8_t allocated;        /* the thread's first allocation is over */
    bool failed;              /* an allocation has failed, and is not known to be tried again */
    uint8_t in_new;           /* the operation is one of an allocator's own operators new, which may throw */
    uint8_t guest;            /* the end of this thread is not announced: see operation_threads.c */
    uint64_t random;
    uint64_t clock;       /* operations done, when until_timed is subtracted; kept for the next thread */
    uint64_t clock_begin; /* as of the thread's begin */
    uint64_t window_begin, window_cpu_ns, window_own; /* see operation_times.c */
    uint32_t window_timed;
    uint32_t stage;                                      /* its entry in STAGES + 1; 0: none */
    uint64_t stage_begin;                                /* ticks of the file */
    struct hw_stage_kind stage_base[HW_OPERATION_KINDS]; /* counts at its begin; ticks since */
};
#define HW_HARDWARE_NEXT 2
#define HW_EVENTS_INSIDE 1 /* syscalls.c has recorded something inside this operation */
#define HW_EVENTS_LINE   2 /* line_owners.c: its block shares a line */
#define HW_EVENTS_OWN    4 /* locks.c: a thread waited for one of the allocator's own locks, or woke a waiting one */
/* Of the calling thread; NULL before its first operation, after its last, and where the mode is off. */
extern HW_HIDDEN __thread struct hw_operator *hw_operator_self __attribute__((tls_model("initial-exec")));

/* Inside an operation of the calling thread. Signal safe. */
static inline bool hw_in_operation(void)
{
    const struct hw_operator *op = hw_operator_self;
    return op && op->selector;
}

/* ---- operations.c ---- */

/* Where the counts of the present phase lie in struct hw_operation_counts: enum hw_phase * HW_OPERATION_KINDS_ROOM. */
extern HW_HIDDEN uint64_t hw_phase_offset;
static inline enum hw_phase hw_phase(void)
{
    return hw_phase_offset ? HW_PHASE_PARALLEL : HW_PHASE_SERIAL;
}

static inline struct hw_allocator_info *hw_allocator_info(void)
{
    return HW_ENTRY(HW_POOL_ALLOCATOR_INFO, struct hw_allocator_info, 0);
}
/* BYTES of a live block are nobody's any more, although no free was seen. */
void hw_operation_given_back(struct hw_operator *op, uint64_t bytes);
/* Operations of this thread so far. */
static inline uint64_t hw_operator_clock(const struct hw_operator *op)
{
    return op->clock - op->until_timed;
}

/* ---- operation_times.c: how long operations take ---- */

#define HW_OPERATION_LARGE       (32u << 10) /* bytes: large operations are timed more often */
#define HW_OPERATION_LARGE_SHIFT 6           /* by 2^this */

/* A timed operation, as the slow path passes it on. */
struct hw_timed {
    uint64_t called; /* ticks: when the hook began */
    uint64_t begin, end;
    uint64_t cpu_ns;     /* processor time of the thread at the begin; 0: not asked */
    uint8_t interrupted; /* the thread lost the processor inside, or a signal came */
    uint8_t events;      /* something was recorded inside: it may have waited */
    uint32_t shift;      /* of its weight */
    enum hw_phase phase;
    enum hw_operation_kind kind;
    uint32_t bucket;
    uint64_t inside; /* ticks, as of hw_dispatch_operation_end */
    uint64_t size;   /* UINT64_MAX: not known */
    void *allocated; /* a block that may be followed; NULL: none */
};

/* Operations of blocks of so many bytes may take long enough to be interrupted each time. */
#define HW_OPERATION_LONG (256u << 10)

bool hw_times_start(void);
/* What is known at the end alone, or when a profile of the run so far is asked for. */
void hw_times_write(void);
/* Processor time of the calling thread; 0: not known. */
uint64_t hw_thread_cpu_ns(void);
/* The thread of OP begins. */
void hw_times_attach(struct hw_operator *op);
/* The present operation is the drawn one: draws the next. */
void hw_times_draw(struct hw_operator *op);
/* Whether an operation of SIZE (large) is timed although it was not drawn. */
bool hw_times_large(struct hw_operator *op);
static inline uint32_t hw_times_large_shift(const struct hw_operator *op)
{
    return op->shift > HW_OPERATION_LARGE_SHIFT ? op->shift - HW_OPERATION_LARGE_SHIFT : 0;
}
/* Adds it to all that is known of times. FRAME: of the hook. Outside of the real call. */
void hw_times_add(struct hw_operator *op, uintptr_t frame, const struct hw_timed *timed);
/* An operation, timed or not, had these TICKS in system calls and waiting for locks. Outside of it. */
void hw_times_inside(struct hw_operator *op, enum hw_phase phase, enum hw_operation_kind kind, uint32_t bucket,
                     uint64_t ticks);
/* Where such ticks are added up, atomically, until heapwise_reset; NULL: no room. */
uint64_t *hw_times_exact(enum hw_phase phase, enum hw_operation_kind kind, uint32_t bucket);
/* A followed block is about to be freed: takes it out of the store. */
void hw_times_freed(struct hw_operator *op, void *pointer, uintptr_t frame);
/* A followed block is about to be reallocated, and was. */
bool hw_times_realloc_begin(struct hw_operator *op, void *pointer, uintptr_t frame, struct hw_block *block);
void hw_times_realloc_end(struct hw_operator *op, void *pointer, void *result, size_t size, uintptr_t frame,
                          struct hw_block *block);
/* heapwise_reset. Lock held, gates closed. */
void hw_times_reset(void);
/* operation_own.c: ticks that Heapwise takes in 1000 usual operations; 0: not measurable. At the start. */
uint64_t hw_own_ticks_of_operations(void);
/* (operations.c) */
void hw_operation_trial(struct hw_operator *op, void *(*real_malloc)(size_t), void (*real_free)(void *));
void *hw_operation_trial_malloc(size_t size);
void hw_operation_trial_free(void *pointer);
/* Whether the block at POINTER may be one that is followed; of one whose place is known. */
static inline bool hw_times_followed_known(const void *pointer)
{
    return hw_block_start_bits[(uint64_t)pointer >> 10] >> ((uint64_t)pointer >> 4 & 63) & 1;
}
static inline bool hw_times_followed(const void *pointer)
{
    return hw_block_start_bits && !((uint64_t)pointer >> HW_ARCH_ADDRESS_BITS) && hw_times_followed_known(pointer);
}

/* ---- operation_threads.c: which threads are alive, and what each did in each stage ---- */

bool hw_stages_start(void);
/* At the first operation of a thread, and its end. Not under the lock / lock held. */
void hw_stages_attach(struct hw_operator *op);
void hw_stages_detach(struct hw_operator *op);
/* OP is of a thread that ended without its hook being called. Lock held. */
void hw_stages_gone(struct hw_operator *op);
/* Called at intervals: writes the thread's counts; searches for threads that are gone. */
void hw_stages_look(struct hw_operator *op, uint64_t now);
/* Updates all open entries. Lock held. */
void hw_stages_end(void);
/* heapwise_reset: the present stage is the first one, and begins now. Lock held, gates closed. */
void hw_stages_reset(void);

/* ---- what happens inside an operation (syscalls.h) ---- */

/* Between _begin and _end, inside an operation, the kernel lets all calls pass. */
static inline void hw_unwatched_begin(struct hw_operator *op)
{
    if (op->dispatch)
        op->dispatch->unwatched = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    op->selector = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void hw_unwatched_end(struct hw_operator *op)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    op->selector = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (op->dispatch)
        op->dispatch->unwatched = false;
}

#endif
