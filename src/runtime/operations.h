/* operations.h - mode=allocator: what the files of this mode share.
 *
 * Every call of the allocator is an operation. operations.c counts all of them and times some; places.c knows what is
 * at each address; dispatch.c, locks.c and operation_events.c see what happens inside an operation. The allocator
 * itself is never replaced, and blocks are laid out as without Heapwise.
 *
 * The way of a usual operation is short: two comparisons, the real call between two stores of the selector, the bytes
 * of places.c, one counter. Everything else (the first operation of a thread, timed ones, signal handlers inside an
 * operation, forked children, something that was seen inside) goes the careful way. */
#ifndef HW_RUNTIME_OPERATIONS_H
#define HW_RUNTIME_OPERATIONS_H

#include "base/size_bucket.h"
#include "runtime/runtime.h"

struct hw_place_thread;    /* places.c */
struct hw_dispatch_thread; /* dispatch.c */

/* What is known of a thread's operations while they happen. Memory of the runtime that a forked child finds zeroed
 * (MADV_WIPEONFORK): until_timed is 0 then, so that its first operation goes the careful way. */
struct hw_operator {
    /* SYSCALL_DISPATCH_FILTER_BLOCK (1) inside an operation, _ALLOW (0) outside: what the kernel looks at, and what
     * tells locks and system calls inside an operation from those of the program. */
    volatile uint8_t selector;
    volatile uint8_t events;            /* something was recorded inside this operation: its end goes the careful way */
    uint8_t timed;                      /* this operation is timed: `begin` holds */
    uint8_t hardware;                   /* its hardware events are read */
    uint32_t until_timed;               /* operations up to the next that is timed; 0: this one goes the careful way */
    struct hw_operation_counts *counts; /* HW_SIZE_BUCKETS entries in the file, this thread's */
    uintptr_t frame;                    /* of the hook of this operation: tells nested calls from signal handlers */
    uint32_t serial;                    /* of the thread, from 1: hw_thread.serial */
    uint32_t period;                    /* one operation in so many is timed, at present */
    struct hw_place_thread *places;     /* of places.c, by hw_places_attach */
    struct hw_dispatch_thread *dispatch; /* of dispatch.c, by hw_dispatch_attach */
    uint64_t begin;                      /* ticks, of a timed operation */
    /* Heapwise's own time inside this operation: handlers and hooks add it, the end subtracts it. Set to 0 at the begin
     * of timed operations only. */
    uint64_t own_ticks;
    struct hw_thread *thread;
};
/* Of the calling thread; NULL before its first operation, after its last, and where the mode is off. */
extern HW_HIDDEN __thread struct hw_operator *hw_operator_self __attribute__((tls_model("initial-exec")));

/* Inside an operation of the calling thread. Signal safe. */
static inline bool hw_in_operation(void)
{
    const struct hw_operator *op = hw_operator_self;
    return op && op->selector;
}

/* ---- operations.c ---- */

extern HW_HIDDEN uint8_t hw_operations_on;
/* Where the counts of the present phase lie in struct hw_operation_counts: enum hw_phase * HW_OPERATION_KINDS_ROOM. */
extern HW_HIDDEN uint32_t hw_phase_offset;
static inline enum hw_phase hw_phase(void)
{
    return hw_phase_offset ? HW_PHASE_PARALLEL : HW_PHASE_SERIAL;
}

/* At the start, when mode=allocator was asked for; in a forked child. False: no memory. */
bool hw_operations_start(void);
void hw_operations_fork(void);
/* The calling thread's last word. */
void hw_operations_thread_ends(struct hw_thread *thread);
/* THREAD is known to have ended without one. Lock held. */
void hw_operations_thread_gone(struct hw_thread *thread);
/* The hooks of this mode. */
void *hw_operation_malloc(size_t size);
void *hw_operation_calloc(size_t count, size_t size);
void *hw_operation_realloc(void *pointer, size_t size); /* POINTER may be NULL */
void *hw_operation_memalign(size_t alignment, size_t size);
int hw_operation_posix_memalign(void **pointer, size_t alignment, size_t size);
void *hw_operation_aligned_alloc(size_t alignment, size_t size);
void *hw_operation_valloc(size_t size);
void *hw_operation_pvalloc(size_t size);
void hw_operation_free(void *pointer); /* not NULL */
void hw_operation_free_sized(void *pointer, size_t size);
void hw_operation_free_aligned_sized(void *pointer, size_t alignment, size_t size);
/* Operators of C++ libraries that have an allocator of their own: hw_real.op_new[FORM] and the like, which are there.
 */
void *hw_operation_new(int form, size_t size, size_t second, const void *third, bool aligned);
void hw_operation_delete(int form, void *pointer, size_t second, size_t third); /* not NULL */

/* ---- places.c: what is at each address (places.h defines HW_HAVE_PLACES as 1) ----
 *
 *  bool hw_places_start(void);               at the start and, with what it has inherited, in a forked child
 *  void hw_places_attach(struct hw_operator *op);    first operation of a thread: sets op->places. Not under the lock
 *  void hw_places_detach(struct hw_operator *op);    its end; a later thread gets the same op
 *  bool hw_place_allocated(struct hw_operator *op, void *address, size_t size);
 *          after the real call; ADDRESS is not NULL. True: this address was handed out before
 *  size_t hw_place_freed(struct hw_operator *op, void *address);
 *          before the real call. The requested size; SIZE_MAX when no block is known to begin there
 *
 * The last two are called with signals open and without any lock; a signal handler may be in between them and do the
 * same for other blocks. A reallocation is _freed before the real call and _allocated after it (of the old address
 * again when it failed). */
#if __has_include("runtime/places.h")
#include "runtime/places.h"
#else
#define HW_HAVE_PLACES 0
static inline bool hw_places_start(void)
{
    return true;
}
static inline void hw_places_attach(struct hw_operator *op)
{
    (void)op;
}
static inline void hw_places_detach(struct hw_operator *op)
{
    (void)op;
}
static inline bool hw_place_allocated(struct hw_operator *op, void *address, size_t size)
{
    (void)op;
    (void)address;
    (void)size;
    return false;
}
static inline size_t hw_place_freed(struct hw_operator *op, void *address)
{
    (void)op;
    (void)address;
    return SIZE_MAX;
}
#endif

/* ---- dispatch.c, locks.c, operation_events.c: what happens inside an operation ----
 *
 *  bool hw_dispatch_start(void);             once, at the start and in a forked child, before any attach
 *  void hw_dispatch_attach(struct hw_operator *op);  first operation of a thread: sets op->dispatch, arms the kernel
 *  void hw_dispatch_detach(struct hw_operator *op);  its end, in the thread itself where that is possible
 *  void hw_dispatch_operation_end(struct hw_operator *op, enum hw_phase phase, enum hw_operation_kind kind,
 *                                 uint32_t bucket);  after an operation with op->events, which is 0 afterwards
 *  bool hw_hardware_begin(struct hw_operator *op);   before a timed operation that is to be looked at closely (one in
 *                                                    100): true when the counters run
 *  void hw_hardware_end(struct hw_operator *op, enum hw_phase phase, enum hw_operation_kind kind, uint32_t bucket);
 *
 * What they write goes into sections 65 to 67. Events that are recorded inside an operation which turns out to be
 * nobody's (a jump out of it) are dropped: op->events is 0 at the begin of each operation. */
#if __has_include("runtime/dispatch.h")
#include "runtime/dispatch.h"
#else
static inline bool hw_dispatch_start(void)
{
    return true;
}
static inline void hw_dispatch_attach(struct hw_operator *op)
{
    (void)op;
}
static inline void hw_dispatch_detach(struct hw_operator *op)
{
    (void)op;
}
static inline void hw_dispatch_operation_end(struct hw_operator *op, enum hw_phase phase, enum hw_operation_kind kind,
                                             uint32_t bucket)
{
    (void)phase;
    (void)kind;
    (void)bucket;
    op->events = 0;
}
static inline bool hw_hardware_begin(struct hw_operator *op)
{
    (void)op;
    return false;
}
static inline void hw_hardware_end(struct hw_operator *op, enum hw_phase phase, enum hw_operation_kind kind,
                                   uint32_t bucket)
{
    (void)op;
    (void)phase;
    (void)kind;
    (void)bucket;
}
#endif

#endif
