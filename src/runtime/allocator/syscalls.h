/* syscalls.h - what happens inside an operation of the allocator: system calls (syscalls.c), locks (locks.c), events of
 * the processor (operation_events.c). struct hw_operator: operations.h.
 *
 * What is seen inside an operation is gathered by its thread alone, and added to the profile when the operation ends:
 * only then its kind is known. Events of an operation that turns out to be nobody's (a jump out of it) are dropped:
 * op->events is 0 at the begin of each operation. */
#ifndef HW_RUNTIME_ALLOCATOR_SYSCALLS_H
#define HW_RUNTIME_ALLOCATOR_SYSCALLS_H

#include <signal.h>

#include "runtime/runtime.h"

struct hw_operator;

#define HW_INSIDE_EVENTS 16u
#define HW_INSIDE_LOCKS  8u /* held at once that are followed */
#define HW_EVENT_FDS     4u /* of one thread */

/* System calls of one kind, or uses of one lock, inside one operation. */
struct hw_inside {
    uintptr_t lock; /* its address; 0: system calls */
    uint32_t what;  /* enum hw_system_call or enum hw_lock_kind */
    uint32_t count;
    uint32_t slow; /* failed calls, contended acquisitions */
    uint32_t busy; /* locks: attempts that were refused */
    uint64_t ticks;
    uint64_t more;     /* bytes; ticks for which the lock was held */
    uint64_t critical; /* ticks of critical sections that began with this lock */
};

/* A lock that is held inside the present operation. */
struct hw_held {
    uintptr_t lock;
    uint32_t kind;  /* enum hw_lock_kind */
    uint32_t depth; /* of recursive ones, from 1 */
    uint64_t since; /* ticks */
};

/* Waits for one of the allocator's own locks, and wakes of who waits, inside one operation. Written while the lock is
 * held and wanted by others, so that it is a few stores and no more. */
struct hw_own_lock {
    uintptr_t lock; /* the futex */
    uint32_t entry; /* its entry in the profile */
    uint32_t waits, wakes;
    uint64_t wait_ticks, wake_ticks;
};

/* The same of operations of one kind that have ended, until there are some: what threads that wait for one lock add to
 * the profile would be the next thing that they wait for. Others may take it (dumps), so it is added to atomically. */
struct hw_own_sum {
    uint32_t entry, phase, bucket;
    uint32_t since;  /* operations since the latest was added to the profile */
    uint64_t *exact; /* where times of this bucket go; NULL: what is before is not set */
    uint64_t waits, wakes;
    uint64_t wait_ticks, wake_ticks;
    uint64_t most; /* ticks that one operation waited */
};

/* Of one hw_operator. */
struct hw_dispatch_thread {
    struct hw_dispatch_thread *next; /* of all there are */
    bool armed;                      /* the kernel reads the selector */
    bool handed_back;                /* by a call: armed again at the end of the operation. Not so while it is lent */
    bool unwatched;                  /* inside an operation, but the selector says ALLOW for the moment */
    uint8_t inside_count;            /* [0] and [1] stand for all that found no place: locks, system calls */
    uint8_t held_count;
    uint8_t event_count;     /* descriptors; they belong together */
    bool events_tried;       /* to open them */
    uintptr_t critical_lock; /* held since it was the first, or 0 */
    uint64_t critical_since;
    uintptr_t busy_lock; /* the last one that an attempt was refused for, without success since; 0 */
    uint64_t busy_since;
    uint64_t events_next; /* tick: before it no events are read */
    int event_fd[HW_EVENT_FDS];
    uint64_t event_id[HW_EVENT_FDS];
    uint64_t event_begin[HW_EVENT_FDS + 2];
    struct hw_own_lock own_lock;
    struct hw_own_sum own_sums[HW_OPERATION_KINDS];
    struct hw_held held[HW_INSIDE_LOCKS];
    struct hw_inside inside[HW_INSIDE_EVENTS];
};

/* ---- syscalls.c ---- */

/* At the start and in a forked child. Where system calls cannot be seen a note says why, and all else works. False: no
 * room in the profile. */
bool hw_dispatch_start(void);
/* First operation of a thread, of the thread itself, and its end. */
void hw_dispatch_attach(struct hw_operator *op);
void hw_dispatch_detach(struct hw_operator *op);
/* Instead of the two, for one operation of a thread that has ended: locks are seen in it, system calls are not. */
void hw_dispatch_lend(struct hw_operator *op);
/* After an operation with op->events, which is 0 afterwards. Not inside it any more. Ticks that are known of it, timed
 * or not: in system calls, and waiting for locks. */
uint64_t hw_dispatch_operation_end(struct hw_operator *op, enum hw_phase phase, enum hw_operation_kind kind,
                                   uint32_t bucket);
/* What threads have not added to the profile yet. Lock held. */
void hw_dispatch_write(void);
/* Ticks that operations have waited so far: for locks, or giving way. */
uint64_t hw_dispatch_waited(void);
/* heapwise_reset: all that was seen is forgotten. Lock held. */
void hw_dispatch_reset(void);
/* The entry for LOCK (HW_LOCK_…) of the present operation, of OP. NULL: it is in no operation. Signal safe. */
struct hw_inside *hw_inside_lock(struct hw_operator *op, uint32_t kind, uintptr_t lock);
/* Where waits and wakes of LOCK, one of the allocator's own, are written down inside OP. NULL: nowhere. */
struct hw_own_lock *hw_inside_own_lock(struct hw_operator *op, uintptr_t lock);
/* How many wait for LOCK: BY is added to it. Of OWN: one less while it is held by the caller. */
void hw_inside_waiting(uint32_t kind, uintptr_t lock, int by);
void hw_own_lock_waiting(const struct hw_own_lock *own, int by);

/* ---- locks.c ---- */

/* At the start: what it takes by itself to see for how long a lock is held. */
void hw_locks_calibrate(void);

/* ---- program_handlers.c: signal handlers and masks of the program, while system calls are observed ---- */

/* The runtime's handler for SIGSYS. False: it cannot be had. */
bool hw_handlers_start(void (*on_sys)(int, siginfo_t *, void *));
/* Whether SIGSYS is still handled by it: nobody is sure to go through sigaction. */
bool hw_handlers_intact(void);
/* A SIGSYS that was not the runtime's. */
void hw_handlers_foreign(siginfo_t *information, void *context);
/* rt_sigprocmask inside an operation, whose CONTEXT is what counts: the kernel's answer. */
long hw_handlers_change_mask(ucontext_t *context, long how, const uint64_t *set, uint64_t *old, size_t size);

/* ---- operation_events.c ---- */

/* Which events there are; a note says what is missing. False: no room in the profile. */
bool hw_hardware_start(void);
/* Before a timed operation whose hardware events are to be read, outside of it: whether the counters run. */
bool hw_hardware_begin(struct hw_operator *op);
void hw_hardware_end(struct hw_operator *op, enum hw_phase phase, enum hw_operation_kind kind, uint32_t bucket);
/* Closes the descriptors. */
void hw_hardware_close(struct hw_dispatch_thread *thread);

#endif
