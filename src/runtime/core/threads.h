/* threads.h - the state of a thread in the runtime, and its gate: who is in the middle of an event. */
#ifndef HW_RUNTIME_CORE_THREADS_H
#define HW_RUNTIME_CORE_THREADS_H

#include "runtime/stacks/stacks.h"

struct hw_block;    /* heap/heap.h */
struct hw_operator; /* allocator/operations.h */

/* ---- threads.c ---- */

/* Gate: who is inside. A hook sets it to its frame address + a reason, and back to open. A thread state of a forked
 * child reads as zero (MADV_WIPEONFORK): closed. */
enum { HW_GATE_CLOSED = 0, HW_GATE_OPEN = 1, HW_GATE_REAL = 2, HW_GATE_RUNTIME = 4, HW_GATE_REASON = 7 };

/* Addresses of a stack that are known to be readable. */
struct hw_stack {
    uintptr_t low, high;
};

/* The state of a thread in the runtime: private memory, owned by that thread alone; handed to another one when it ends.
 */
/* Entries of SIZE_BARS and LIFETIME_BARS, and tables, that no MIB has yet: distributions.c. */
struct hw_bar_stock {
    struct hw_bar_run {
        uint32_t next, end;
    } sizes, lives, tables;
};

struct hw_thread {
    uintptr_t gate;
    struct hw_thread_entry *entry; /* in the file, or an empty one while no thread has it; NULL: before a fork */
    const void *last_block;        /* allocated by the latest allocation of this thread: for temporary allocations */
    uint64_t last_stamp;           /* its stamp */
    int64_t delta_bytes, delta_blocks; /* live, not yet added to the totals */
    uint64_t generation;               /* code_generation the walks belong to */
    uint64_t born;                     /* stamp: older blocks of this slot are another thread's; not below old_below */
    uint64_t peak_epoch;               /* that of its detail */
    struct hw_thread_detail *detail,
        *sum;                   /* in the file (thread_list.c); what earlier threads were added to, or NULL */
    uintptr_t routine;          /* it was started with, 0: not known */
    uint32_t slot;              /* of the state, among all */
    uint32_t last_entry, spare; /* of the latest thread; for what it is borrowed for; HW_NONE: there is none */
    uint32_t serial;
    uint32_t tid;
    uint32_t ring_next, ring_lap;
    uint32_t log_next, log_end; /* of its piece of the log of blocks (block_log.c) */
    uint32_t free_records; /* list of free small block records, HW_NONE at the end */
    uint32_t *mib_index;   /* context -> MIB index, 0 none */
    uint32_t mib_index_size;
    uint32_t exit_rounds;
    struct hw_thread *interrupted; /* the state of the hook that a signal handler interrupted */
    bool nested;                   /* borrowed for a call of the allocator itself, inside one of the program's */
    uint8_t leave_slow;            /* there is more to do when the hook ends: `interrupted`, or */
    uint8_t resume;                /* a burst of single steps is continued then (single_steps.c) */
    struct hw_thread *next_free;
    struct hw_stack stack;
    struct hw_bar_stock bars;
    uint64_t random;              /* of the sampler */
    struct hw_operator *operator; /* operations.h; memory of this state */
    uint64_t allocation_serial;
    int64_t regions_most;   /* of its live bytes: regions.c */
    struct hw_walk *walks;  /* HW_WALK_SETS * HW_WALK_WAYS */
    uint64_t *ring;         /* HW_WALK_RING values of slots */
    uint16_t *ring_offset;  /* and where they lie, in words from the stack pointer */
    struct hw_walk scratch; /* result of a walk that cannot be remembered */
    uint64_t pcs[HW_DEPTH_MAX];
    uint64_t slots[2 * HW_DEPTH_MAX + 8];
};
extern HW_HIDDEN __thread struct hw_thread *hw_self __attribute__((tls_model("initial-exec")));
extern HW_HIDDEN __thread uint64_t hw_until_sample __attribute__((tls_model("initial-exec")));
/* Bytes from there to the next sampled one. */
extern HW_HIDDEN __thread uint64_t hw_sample_rest __attribute__((tls_model("initial-exec")));

/* Slow part of hw_enter: first call of a thread, of a forked child, or from a signal handler inside the runtime. */
struct hw_thread *hw_enter_slow(uintptr_t frame, bool is_free);
void hw_leave_slow(struct hw_thread *thread);
void hw_threads_start(void);
void hw_threads_fork(void);
/* The calling thread ends. Nothing to do where libc says so by a destructor of thread-specific data. */
void hw_thread_ends(void);
/* Waits (not for ever) until no thread is in the middle of an event. */
void hw_threads_wait_outside(void);
/* Calls EACH for the states of all threads that are known to be alive. Lock held. */
void hw_threads_each(void (*each)(struct hw_thread *thread));
/* The state of the thread with that number, NULL: none. Lock held. */
struct hw_thread *hw_threads_find(uint32_t tid);
/* The state with that number, NULL: there is none. No lock. */
struct hw_thread *hw_threads_of_slot(uint32_t slot);
/* The number of a thread that exists, by libc's name of it; 0: not known. */
uint32_t hw_threads_tid(unsigned long thread);
uint64_t hw_threads_sum(uint64_t *frees);
/* From now on other threads wait at their next event, with signals open; returns when none is in the middle of one.
 * (Not for ever: false when one still seemed to be after PATIENCE_NS nanoseconds, which then is most often none that
 * runs.) The caller has all signals blocked and does not hold hw_runtime.lock; one at a time (hw_dump_lock). */
bool hw_threads_stop_within(uint64_t patience_ns);
static inline bool hw_threads_stop(void)
{
    return hw_threads_stop_within(100000000);
}
void hw_threads_go(void);
/* None is in the middle of an event at this moment. No lock. */
bool hw_threads_calm(void);
/* Every thread of the process passes a full barrier. */
void hw_threads_barrier(void);
/* Slow part of hw_enter: waits while events are stopped. False: the call has to be passed through, nothing was begun. */
bool hw_wait_stopped(struct hw_thread *thread);
/* No block is known any more: states remember none. Lock held, no event under way. */
void hw_threads_forget_blocks(void);

/* A hook begins: the state of the calling thread, or NULL when the call has to be passed through. */
static inline struct hw_thread *hw_enter(uintptr_t frame, bool is_free)
{
    struct hw_thread *thread = hw_self;
    if (hw_unlikely(!thread || thread->gate != HW_GATE_OPEN)) {
        thread = hw_enter_slow(frame, is_free);
        if (!thread)
            return NULL;
    }
    *(volatile uintptr_t *)&thread->gate = frame | HW_GATE_RUNTIME;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    /* Set the gate, then look: hw_threads_stop does it the other way round, with the barrier for both. */
    if (hw_unlikely(*(volatile uint32_t *)&hw_runtime.stopped) && !hw_wait_stopped(thread))
        return NULL;
    return thread;
}
static inline void hw_gate(struct hw_thread *thread, uintptr_t gate)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    *(volatile uintptr_t *)&thread->gate = gate;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
static inline void hw_leave(struct hw_thread *thread)
{
    if (hw_unlikely(*(volatile uint8_t *)&thread->leave_slow))
        hw_leave_slow(thread); /* closes it: another handler must not find it open */
    else
        hw_gate(thread, HW_GATE_OPEN);
}

/* ---- thread_list.c: the threads as the profile has them ---- */

/* Before what is live of the thread changes: when a new peak has been noted since the last time. */
void hw_thread_take_peak(struct hw_thread *thread, uint64_t epoch);
/* A block is freed that another thread allocated, or seems so. False: it is this thread's, or nobody knows. */
bool hw_thread_freed_others(struct hw_thread *thread, const struct hw_block *block, uint64_t blocks, uint64_t bytes);
/* THREAD reallocates a block, which grows by GROWTH: to be called before the live bytes change. Whether it is one of
 * another thread, whose it stays. */
bool hw_thread_resized_others(struct hw_thread *thread, const struct hw_block *block, int64_t growth);

/* ---- helper_threads.c: threads of the runtime's own ---- */

struct hw_helper {
    void (*run)(void);    /* while hw_helper_goes_on */
    bool own_descriptors; /* a table of its own, a copy of the program's; else it shares that */
    char *memory;
    int tid;       /* 0: no thread; the kernel clears it when the thread has ended */
    uint32_t stop; /* it is to end */
};
/* False: there is no thread. HELPER is static, there are few. */
bool hw_helper_start(struct hw_helper *helper);
/* Called by the thread: false when it has to end; waits for so long, or until it has to end. */
bool hw_helper_goes_on(const struct hw_helper *helper);
void hw_helper_sleep(struct hw_helper *helper, uint64_t ns);
/* No thread any more when it returns, and no system call from now on. */
void hw_helper_stop(struct hw_helper *helper);
/* In a forked child: there is none. */
void hw_helper_fork(struct hw_helper *helper);
/* The threads of the program may have ended one by one, without exit: the first one is a zombie, and only the runtime's
 * are left, which keep the process. Then the process ends, as the first thread did. They call this at each of their
 * WAKES; now and then it checks. */
void hw_helpers_end_alone(uint32_t *wakes);

#endif
