/* operations.c - the observer of the allocator itself: counts every operation, and has some timed.
 *
 * malloc and free have a fast path; all other calls, and unusual ones of these two, take the slow path: operation_begin
 * to operation_end. No gate is closed around the real call: hw_operator.selector says that the thread is inside, and
 * hw_operator.frame distinguishes an allocator that calls itself from a signal handler and from an operation that was
 * left by a jump. */
#include "runtime/allocator/places.h"
#include "runtime/core/core.h"
#include "runtime/core/threads.h"
#include "runtime/hooks/calls.h"

#define FRAME ((uintptr_t)__builtin_frame_address(0))

__thread struct hw_operator *hw_operator_self;
uint8_t hw_operations_on;
uint64_t hw_phase_offset;

/* ---- start, fork, end ---- */

static bool start(void)
{
    if (hw_pool_take(HW_POOL_ALLOCATOR_INFO, 1) == HW_NONE)
        return false;
    const bool places = hw_block_starts_begin() && hw_places_start();
    hw_allocator_info()->flags = HW_ALLOCATOR_BYTES | (places ? HW_ALLOCATOR_PLACES | HW_ALLOCATOR_BYTES_FREED : 0);
    hw_pool_publish(HW_POOL_ALLOCATOR_INFO);
    if (!places)
        hw_note(
            HW_NOTE_OTHER,
            "the address space had no room (a limit, or mappings of the program): what lies where was not followed, so that reused addresses are "
            "not distinguished from new ones, sizes of frees and what reallocations added are not known, and call stacks "
            "were not sampled");
    return hw_stages_start() && hw_times_start() && hw_dispatch_start();
}

bool hw_operations_start(void)
{
    hw_operations_on = start();
    return hw_operations_on;
}

void hw_operations_fork(void)
{
    hw_operator_self = NULL;
    if (hw_operations_on && !start()) {
        hw_operations_on = 0;
        hw_places.even = NULL; /* those of the parent: there is no section that could hold what they say */
        hw_places.granules = 0;
        hw_note(HW_NOTE_NO_MEMORY, NULL);
    }
}

void hw_operations_end(void)
{
    if (hw_operations_on) {
        hw_dispatch_write();
        hw_stages_end();
        hw_times_write();
    }
}

void hw_operations_dump(void)
{
    hw_operations_end();
    if (hw_operations_on)
        hw_places_write(hw_ticks_raw() - hw_runtime.tick_base);
}

/* ---- threads ---- */

/* Where the counts go when the file cannot grow: nobody reads them. */
static struct hw_operation_counts nowhere[HW_SIZE_BUCKETS] HW_LARGE;

static void take_counts(struct hw_operator *op)
{
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    uint32_t index = hw_pool_take(HW_POOL_OPERATION_COUNTS, HW_SIZE_BUCKETS);
    if (index != HW_NONE)
        hw_pool_publish(HW_POOL_OPERATION_COUNTS);
    hw_lock_drop(&hw_runtime.lock, old);
    op->counts = index == HW_NONE ? nowhere : HW_ENTRY(HW_POOL_OPERATION_COUNTS, struct hw_operation_counts, index);
    if (index == HW_NONE) {
        hw_note(HW_NOTE_FILE_FULL, hw_file_problem());
        hw_note(HW_NOTE_OTHER, "operations of threads for which the profile file could not grow are not counted");
    }
}

/* The calling thread has the state THREAD from now on; LENT: for one call. */
static void attach(struct hw_thread *thread, bool lent)
{
    struct hw_operator *op = thread->operator;
    op->thread = thread;
    op->serial = thread->serial;
    op->selector = op->events = op->timed = op->hardware = 0;
    op->guest = 0;
    if (!op->counts)
        take_counts(op);
    hw_times_attach(op);
    hw_places_attach(op);
    if (lent) {
        hw_dispatch_lend(op);
    } else {
        hw_stages_attach(op);
        hw_dispatch_attach(op);
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    hw_operator_self = op;
}

static void detach(struct hw_operator *op, bool lent)
{
    if (!lent)
        hw_dispatch_detach(op);
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    if (!lent)
        hw_stages_detach(op);
    hw_places_detach(op);
    hw_lock_drop(&hw_runtime.lock, old);
    hw_operator_self = NULL;
    op->thread = NULL;
}

void hw_operations_thread_ends(struct hw_thread *thread)
{
    struct hw_operator *op = hw_operator_self;
    if (op && op == thread->operator)
        detach(op, false);
}

void hw_operations_thread_gone(struct hw_thread *thread)
{
    struct hw_operator *op = thread->operator;
    if (!op->thread)
        return;
    hw_places_detach(op);
    if (op->dispatch)
        hw_hardware_close(op->dispatch);
    hw_stages_gone(op);
    op->thread = NULL;
}

/* ---- one operation, the slow path ---- */

struct operation {
    struct hw_operator *op;
    struct hw_thread *lent; /* a state for this call only: the thread has ended, says libc */
    uintptr_t frame;
    uintptr_t outer; /* a handler inside an operation: the frame of that one */
    uint8_t inside;  /* the selector as it was */
    uint8_t timed;
    struct hw_timed time; /* when it is */
};

/* The thread has none yet. False: the call passes through uncounted. */
static bool find_operator(struct operation *operation, uintptr_t frame)
{
    struct hw_thread *thread = hw_enter(frame, true);
    if (!thread && hw_runtime.state == HW_STATE_ON) /* it has only just started */
        thread = hw_enter(frame, true);
    if (!thread || !hw_operations_on) {
        if (thread)
            hw_leave(thread);
        return false;
    }
    const bool lent = thread->interrupted != NULL; /* there is no thread any more */
    if (lent) {
        operation->lent = thread;
        thread->leave_slow = 0; /* it is not given back before give_back_operator */
    }
    attach(thread, lent);
    hw_leave(thread); /* open between the events of the operation, like any other */
    return true;
}

static void give_back_operator(const struct operation *operation)
{
    struct hw_thread *thread = operation->lent;
    hw_gate(thread, operation->frame | HW_GATE_RUNTIME);
    detach(operation->op, true);
    thread->leave_slow = 1;
    hw_leave(thread);
}

/* A call inside an operation of the thread: the allocator's own, a signal handler's, or the operation has been left by
 * a jump. False: it passes through. */
static bool enter_again(struct operation *operation, struct hw_operator *op)
{
    enum hw_caller caller = hw_caller_of_hook(op->thread, op->frame, operation->frame);
    if (caller == HW_CALLER_ALLOCATOR && op->in_new && !hw_called_by_allocator(operation->frame))
        caller = HW_CALLER_HANDLER; /* the new-handler, or the exception that is thrown */
    if (caller == HW_CALLER_ALLOCATOR) {
        op->thread->entry->nested++;
        return false;
    }
    if (caller == HW_CALLER_HANDLER) {
        operation->inside = op->selector;
        operation->outer = op->frame;
    } else {
        op->selector = op->events = op->timed = op->in_new = 0;
    }
    return true;
}

/* Whether this one is timed: SIZE is UINT64_MAX while it is not known. */
static void choose_timed(struct operation *operation, uint64_t size, bool drawn)
{
    struct hw_operator *op = operation->op;
    const bool large = size >= HW_OPERATION_LARGE && size != UINT64_MAX;
    operation->timed = large ? hw_times_large(op) : drawn;
    operation->time.shift = large ? hw_times_large_shift(op) : op->shift;
    operation->time.cpu_ns = operation->timed && large && size >= HW_OPERATION_LONG ? hw_thread_cpu_ns() : 0;
}

/* Its hardware events are read instead: a draw of its own. */
static void begin_hardware(struct hw_operator *op)
{
    const uint64_t begin = hw_ticks_raw();
    op->hardware = hw_hardware_begin(op);
    op->window_own += hw_ticks_raw() - begin;
}

static __attribute__((noinline)) bool begin_slow(struct operation *operation, uintptr_t frame, uint64_t size,
                                                 bool allocates)
{
    if (hw_runtime.state != HW_STATE_ON && hw_runtime.state != HW_STATE_NEW)
        return false;
    struct hw_operator *op = hw_operator_self;
    if (op && !op->thread) /* of before the fork */
        hw_operator_self = op = NULL;
    const uint64_t called = hw_ticks_raw();
    if (!op && !find_operator(operation, frame))
        return false;
    if (op && op->selector && !enter_again(operation, op))
        return false;
    op = operation->op = hw_operator_self;
    const bool drawn = !op->until_timed;
    if (!drawn)
        op->until_timed--;
    if (operation->inside)
        return true;
    operation->time.called = called;
    if (hw_unlikely(op->hardware == HW_HARDWARE_NEXT)) {
        hw_times_draw(op);
        begin_hardware(op);
        return true;
    }
    choose_timed(operation, size, drawn);
    if (drawn)
        hw_times_draw(op);
    if (hw_unlikely(allocates && !op->allocated)) {
        op->allocated = 1;
        operation->timed = 0;
        __atomic_fetch_add(&hw_allocator_info()->first_left_out, 1, __ATOMIC_RELAXED);
    }
    return true;
}

/* SIZE: UINT64_MAX while it is not known. False: the call passes through, nothing else is to be done. */
static inline bool operation_begin(struct operation *operation, uintptr_t frame, uint64_t size, bool allocates)
{
    struct hw_operator *op = hw_operator_self;
    operation->op = op;
    operation->lent = NULL;
    operation->frame = frame;
    operation->inside = operation->timed = 0;
    if (hw_likely(op && op->until_timed && !op->selector && (size < HW_OPERATION_LARGE || size == UINT64_MAX)))
        op->until_timed--;
    else if (!begin_slow(operation, frame, size, allocates))
        return false;
    operation->op->frame = frame;
    return true;
}

static inline void count(struct hw_operator *op, enum hw_operation_kind kind, uint32_t bucket)
{
    uint64_t *counts = &op->counts[bucket].count[0][0] + kind; /* of both phases */
    hw_arch_increment(counts + hw_phase_offset);
}

/* An operation that asked for BYTES, or a reallocation for so many more: on the same line as its count. */
static inline void count_with(struct hw_operator *op, enum hw_operation_kind kind, uint32_t bucket, uint64_t bytes)
{
    count(op, kind, bucket);
    hw_arch_increase(&op->counts[bucket].count[0][HW_OPERATION_BYTES] + hw_phase_offset, bytes);
}

static inline void count_given_back(struct hw_operator *op, uint32_t bucket, uint64_t bytes)
{
    hw_arch_increase(&op->counts[bucket].count[0][HW_OPERATION_BYTES_FREED] + hw_phase_offset, bytes);
}

void hw_operation_given_back(struct hw_operator *op, uint64_t bytes)
{
    count_given_back(op, hw_size_bucket(bytes), bytes);
}

static __attribute__((noinline)) void end_slow(struct operation *operation, enum hw_operation_kind kind,
                                               uint32_t bucket, uint64_t size, void *allocated)
{
    struct hw_operator *op = operation->op;
    const enum hw_phase phase = hw_phase();
    operation->time.inside = op->events ? hw_dispatch_operation_end(op, phase, kind, bucket) : 0;
    if (op->hardware == 1) {
        const uint64_t begin = hw_ticks_raw();
        op->hardware = 0;
        hw_hardware_end(op, phase, kind, bucket);
        op->window_own += hw_ticks_raw() - begin;
    }
    if (operation->timed) {
        operation->time.phase = phase;
        operation->time.kind = kind;
        operation->time.bucket = bucket;
        operation->time.size = size;
        operation->time.allocated = allocated;
        hw_times_add(op, operation->frame, &operation->time);
    }
    if (operation->lent)
        give_back_operator(operation);
}

static inline void operation_end(struct operation *operation, enum hw_operation_kind kind, uint32_t bucket,
                                 uint64_t size, uint64_t bytes, void *allocated)
{
    const struct hw_operator *op = operation->op;
    count_with(operation->op, kind, bucket, bytes);
    if (hw_unlikely(operation->timed || op->events || op->hardware || operation->lent) && !operation->inside)
        end_slow(operation, kind, bucket, size, allocated);
}

/* One that is not counted: it returned no block (counted separately), or its block is foreign. What was observed inside
 * counts for KIND all the same. */
static __attribute__((noinline)) void operation_end_uncounted(struct operation *operation, enum hw_operation_kind kind,
                                                              uint64_t size)
{
    operation->timed = 0;
    if (!operation->inside)
        end_slow(operation, kind, hw_size_bucket(size), size, NULL);
}

static inline void enter_real(struct hw_operator *op)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    op->selector = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void leave_real(struct operation *operation)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    operation->op->selector = operation->inside;
    if (hw_unlikely(operation->inside))
        operation->op->frame = operation->outer;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void begin_timing(struct operation *operation)
{
    operation->op->own_ticks = 0;
    operation->op->timed = 1;
    hw_arch_watch(hw_rseq_watch_offset);
    operation->op->begin = operation->time.begin = hw_ticks_fenced();
}

static inline void end_timing(struct operation *operation)
{
    operation->time.end = hw_ticks_fenced();
    operation->op->timed = 0;
    operation->time.interrupted = hw_arch_watched(hw_rseq_watch_offset);
    operation->time.events = operation->op->events;
}

/* Operators of C++ libraries that have an allocator of their own. One that throws leaves the operation as a jump does:
 * it has failed until it returns. */
static __attribute__((noinline)) void *real_new(int form, size_t size, size_t second, const void *third)
{
    struct hw_operator *op = hw_operator_self;
    const uint8_t own = hw_real.own_new >> form & 1, before = op ? op->in_new : 0; /* in a new-handler */
    if (op) {
        op->in_new = own;
        op->thread->entry->failed += own;
    }
    void *result = hw_real.op_new[form](size, second, third);
    if (op)
        op->in_new = before;
    if (op && op->thread) /* not in a child that a new-handler has forked */
        op->thread->entry->failed -= own;
    return result;
}

HW_INLINE void *real_call(struct hw_call call)
{
    return call.function == HW_NEW ? real_new(call.form, call.size, call.second, call.third)
                                   : hw_real_call(&hw_real, call);
}

/* The real call, inside the operation. */
HW_INLINE void *perform(struct operation *operation, struct hw_call call)
{
    void *result;
    enter_real(operation->op);
    if (hw_unlikely(operation->timed)) {
        begin_timing(operation);
        result = real_call(call);
        end_timing(operation);
    } else {
        result = real_call(call);
    }
    leave_real(operation);
    return result;
}

/* One that allocates. */
HW_INLINE void *perform_surely(struct operation *operation, struct hw_call call)
{
    void *result = perform(operation, call);
    return hw_call_may_succeed_now(call, result) ? perform(operation, call) : result;
}

static void count_failed(struct hw_operator *op)
{
    op->thread->entry->failed++;
    op->failed = true;
}

void hw_operation_tried_again(void)
{
    struct hw_operator *op = hw_operator_self;
    if (!op || !op->failed)
        return;
    op->thread->entry->failed--;
    op->failed = false;
}

/* The end of an allocation: REUSED instead of NEW where the address is known. */
static inline void allocation_end(struct operation *operation, enum hw_operation_kind kind, size_t size, void *result)
{
    struct hw_operator *op = operation->op;
    if (hw_unlikely(!result)) {
        count_failed(op);
        operation_end_uncounted(operation, kind, size);
        return;
    }
    const bool known = kind == HW_OPERATION_ALIGNED ? hw_place_allocated_slow(op, (uintptr_t)result, size, true)
                                                    : hw_place_allocated(op, result, size);
    operation_end(operation, kind == HW_OPERATION_NEW && known ? HW_OPERATION_REUSED : kind, hw_size_bucket(size), size,
                  size, result);
}

/* CALL asks for SIZE bytes. */
HW_INLINE void *allocate(struct hw_call call, enum hw_operation_kind kind, size_t size, uintptr_t frame)
{
    struct operation operation;
    void *result;
    if (operation_begin(&operation, frame, size, true)) {
        result = perform_surely(&operation, call);
        allocation_end(&operation, kind, size, result);
    } else {
        result = real_call(call);
        if (hw_call_may_succeed_now(call, result))
            result = real_call(call);
    }
    return result;
}

static __attribute__((noinline)) void *slow_malloc(size_t size)
{
    return allocate((struct hw_call){HW_MALLOC, .size = size}, HW_OPERATION_NEW, size, FRAME);
}

static __attribute__((noinline)) void *slow_calloc(size_t number, size_t size)
{
    size_t all;
    if (__builtin_mul_overflow(number, size, &all))
        all = PTRDIFF_MAX; /* it will fail */
    return allocate((struct hw_call){HW_CALLOC, .second = number, .size = size}, HW_OPERATION_CALLOC, all, FRAME);
}

#define ALIGNED_OPERATION(name, constant, parameters, arguments, alignment)                                            \
    void *hw_operation_##name parameters                                                                               \
    {                                                                                                                  \
        return allocate((struct hw_call){constant, .size = size, .second = alignment}, HW_OPERATION_ALIGNED, size,     \
                        FRAME);                                                                                        \
    }
HW_ALIGNED_FUNCTIONS(ALIGNED_OPERATION)

void *hw_operation_new(int form, size_t size, size_t second, const void *third, bool aligned)
{
    return allocate((struct hw_call){HW_NEW, .form = form, .size = size, .second = second, .third = third},
                    aligned ? HW_OPERATION_ALIGNED : HW_OPERATION_NEW, size, FRAME);
}

int hw_operation_posix_memalign(void **pointer, size_t alignment, size_t size)
{
    int error;
    allocate((struct hw_call){HW_POSIX_MEMALIGN, .place = pointer, .second = alignment, .size = size, .error = &error},
             HW_OPERATION_ALIGNED, size, FRAME);
    return error;
}

/* ---- realloc ---- */

static __attribute__((noinline)) void *slow_realloc_null(size_t size)
{
    return allocate((struct hw_call){HW_REALLOC, .size = size}, HW_OPERATION_NEW, size, FRAME);
}

static inline uint32_t bucket_of_freed(size_t size)
{
    return hw_unlikely(size == SIZE_MAX) ? HW_SIZE_BUCKET_UNKNOWN : hw_size_bucket(size);
}

static inline uint64_t grown(size_t old_size, size_t size)
{
    return size > old_size ? size - old_size : 0; /* also where the old size is not known */
}

static inline uint64_t shrunk(size_t old_size, size_t size)
{
    return old_size > size && old_size != SIZE_MAX ? old_size - size : 0;
}

/* POINTER is not NULL. */
static __attribute__((noinline)) void *slow_realloc(void *pointer, size_t size)
{
    struct operation operation;
    struct hw_block block;
    const bool startup = hw_real_is_startup_block(pointer);
    const struct hw_call call = {startup ? HW_MOVE_STARTUP_BLOCK : HW_REALLOC, .pointer = pointer, .size = size};
    if (!operation_begin(&operation, FRAME, size, true))
        return hw_call_through(call);
    struct hw_operator *op = operation.op;
    const size_t old_size = startup ? SIZE_MAX : hw_place_freed(op, pointer);
    const bool foreign = startup || (op->places && old_size == SIZE_MAX);
    const bool in_two_places = hw_places.many && old_size != SIZE_MAX;
    if (in_two_places) /* it stays live for those who add up what all threads have */
        hw_place_add(&op->places->requested, (int64_t)old_size);
    const bool followed =
        hw_unlikely(hw_times_followed(pointer)) && hw_times_realloc_begin(op, pointer, operation.frame, &block);
    void *result = perform_surely(&operation, call);
    if (in_two_places)
        hw_place_add(&op->places->requested, -(int64_t)old_size);
    if (followed)
        hw_times_realloc_end(op, pointer, result, size, operation.frame, &block);
    if (!result && !size) { /* every allocator that returns NULL here has freed the block */
        count_given_back(op, bucket_of_freed(old_size), shrunk(old_size, 0));
        operation_end(&operation, HW_OPERATION_FREE, bucket_of_freed(old_size), old_size, 0, NULL);
    } else if (foreign) { /* stays so: passed through */
        op->thread->entry->foreign_reallocs += !startup && result;
        operation_end_uncounted(&operation, HW_OPERATION_REALLOC, size);
    } else if (result) {
        hw_place_reallocated(op, result, size);
        count_given_back(op, hw_size_bucket(size), shrunk(old_size, size));
        operation_end(&operation, HW_OPERATION_REALLOC, hw_size_bucket(size), size, grown(old_size, size), NULL);
    } else {
        count_failed(op);
        if (old_size != SIZE_MAX)
            hw_place_reallocated(op, pointer, old_size);
        operation_end_uncounted(&operation, HW_OPERATION_REALLOC, size);
    }
    return result;
}

/* ---- free ---- */

/* After operation_begin: the block is given up; false when it must not reach the real allocator. */
static bool give_up(struct operation *operation, void *pointer, size_t size)
{
    if (hw_unlikely(size == SIZE_MAX) && hw_real_is_startup_block(pointer))
        return false;
    if (size >= HW_OPERATION_LARGE && size != SIZE_MAX && !operation->inside)
        choose_timed(operation, size, false);
    if (operation->timed && !operation->time.called)
        operation->time.called = hw_ticks_raw();
    if (hw_unlikely(hw_times_followed(pointer)))
        hw_times_freed(operation->op, pointer, operation->frame);
    return true;
}

/* PLACED: places have recorded it already, as a block of SIZE bytes. */
HW_INLINE void release(struct hw_call call, bool placed, size_t size, uintptr_t frame)
{
    struct operation operation;
    operation.time.called = 0;
    if (!operation_begin(&operation, frame, UINT64_MAX, false)) {
        if (!hw_real_is_startup_block(call.pointer))
            hw_real_call(&hw_real, call);
        return;
    }
    if (!placed)
        size = hw_place_freed(operation.op, call.pointer);
    if (give_up(&operation, call.pointer, size))
        perform(&operation, call);
    else
        operation.timed = 0;
    count_given_back(operation.op, bucket_of_freed(size), shrunk(size, 0));
    operation_end(&operation, HW_OPERATION_FREE, bucket_of_freed(size), size, 0, NULL);
}

static __attribute__((noinline)) void slow_free(void *pointer)
{
    release((struct hw_call){HW_FREE, .pointer = pointer}, false, 0, FRAME);
}

static __attribute__((noinline)) void slow_free_placed(void *pointer, size_t size)
{
    release((struct hw_call){HW_FREE, .pointer = pointer}, true, size, FRAME);
}

void hw_operation_free_sized(void *pointer, size_t bytes)
{
    release((struct hw_call){HW_FREE_SIZED, .pointer = pointer, .size = bytes}, false, 0, FRAME);
}

void hw_operation_free_aligned_sized(void *pointer, size_t alignment, size_t bytes)
{
    release((struct hw_call){HW_FREE_ALIGNED_SIZED, .pointer = pointer, .second = alignment, .size = bytes}, false, 0,
            FRAME);
}

void hw_operation_delete(int form, void *pointer, size_t second, size_t third)
{
    release((struct hw_call){HW_DELETE, .form = form, .pointer = pointer, .second = second, .size = third}, false, 0,
            FRAME);
}

/* ---- the fast path ---- */

static inline bool takes_slow_path(const struct hw_operator *op)
{
    return hw_unlikely(!op || !op->until_timed || op->selector || !op->places);
}

/* Something was recorded inside an operation on the fast path. */
static __attribute__((noinline)) void *fast_end(struct hw_operator *op, enum hw_operation_kind kind, uint32_t bucket,
                                                void *result)
{
    hw_dispatch_operation_end(op, hw_phase(), kind, bucket);
    return result;
}

/* The block is not one that was freed here, of the same size; or there is none. */
static __attribute__((noinline)) void *allocated_otherwise(struct hw_operator *op, enum hw_operation_kind kind,
                                                           void *result, size_t size)
{
    const uint32_t bucket = hw_size_bucket(size);
    if (hw_unlikely(!result) && hw_limits_make_way())
        result = kind == HW_OPERATION_CALLOC ? hw_real.calloc(1, size) : hw_real.malloc(size);
    if (hw_unlikely(!result)) {
        count_failed(op);
    } else {
        if (hw_place_allocated_slow(op, (uintptr_t)result, size, false) && kind == HW_OPERATION_NEW)
            kind = HW_OPERATION_REUSED;
        count_with(op, kind, bucket, size);
    }
    return hw_unlikely(op->events) ? fast_end(op, kind, bucket, result) : result;
}

HW_INLINE void *fast_call(struct hw_operator *op, const struct hw_real *real, struct hw_call call, uintptr_t frame)
{
    op->until_timed--;
    op->frame = frame;
    enter_real(op);
    void *result = hw_real_call(real, call);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    op->selector = 0;
    return result;
}

/* KIND: of a block at a new address; AGAIN: of one of the same size. */
HW_INLINE void *fast_allocate(struct hw_operator *op, const struct hw_real *real, struct hw_call call,
                              enum hw_operation_kind kind, enum hw_operation_kind again, size_t size, uintptr_t frame)
{
    void *result = fast_call(op, real, call, frame);
    if (hw_unlikely(!hw_place_again(op->places, (uintptr_t)result, size, false)))
        return allocated_otherwise(op, kind, result, size);
    const uint32_t bucket = (uint32_t)(size + 15) >> 4;
    count_with(op, again, bucket, size);
    return hw_unlikely(op->events) ? fast_end(op, again, bucket, result) : result;
}

/* Of more than 1 KiB: the place is found in another way. */
static void *middle_malloc(struct hw_operator *op, size_t size)
{
    void *result = fast_call(op, &hw_real, (struct hw_call){HW_MALLOC, .size = size}, FRAME);
    return allocated_otherwise(op, HW_OPERATION_NEW, result, size);
}

/* REAL: not hw_real for hw_operation_trial_malloc. */
HW_INLINE void *fast_malloc(struct hw_operator *op, const struct hw_real *real, size_t size, uintptr_t frame)
{
    if (takes_slow_path(op) || hw_unlikely(size >= HW_OPERATION_LARGE))
        return slow_malloc(size);
    if (size > HW_SIZE_SMALL_MOST)
        return middle_malloc(op, size);
    return fast_allocate(op, real, (struct hw_call){HW_MALLOC, .size = size}, HW_OPERATION_NEW, HW_OPERATION_REUSED,
                         size, frame);
}

void *hw_operation_malloc(size_t size)
{
    return fast_malloc(hw_operator_self, &hw_real, size, FRAME);
}

void *hw_operation_calloc(size_t number, size_t size)
{
    struct hw_operator *op = hw_operator_self;
    size_t all;
    if (takes_slow_path(op) || __builtin_mul_overflow(number, size, &all) || hw_unlikely(all > HW_SIZE_SMALL_MOST))
        return slow_calloc(number, size);
    return fast_allocate(op, &hw_real, (struct hw_call){HW_CALLOC, .second = number, .size = size}, HW_OPERATION_CALLOC,
                         HW_OPERATION_CALLOC, all, FRAME);
}

HW_INLINE void fast_free_placed(struct hw_operator *op, const struct hw_real *real, void *pointer, uint32_t bucket,
                                uint64_t size, uintptr_t frame)
{
    count(op, HW_OPERATION_FREE, bucket);
    count_given_back(op, bucket, size);
    fast_call(op, real, (struct hw_call){HW_FREE, .pointer = pointer}, frame);
    if (hw_unlikely(op->events))
        fast_end(op, HW_OPERATION_FREE, bucket, NULL);
}

/* A block of more than 1 KiB, one that is not known, or one that is written down in another way. */
static __attribute__((noinline)) void free_otherwise(struct hw_operator *op, void *pointer)
{
    const size_t size = hw_place_freed_slow(op, (uintptr_t)pointer);
    if (hw_unlikely(size >= HW_OPERATION_LARGE || hw_times_followed(pointer))) /* also one that is not known */
        slow_free_placed(pointer, size);
    else
        fast_free_placed(op, &hw_real, pointer, hw_size_bucket(size), size, FRAME);
}

HW_INLINE void fast_free(struct hw_operator *op, const struct hw_real *real, void *pointer, uintptr_t frame)
{
    if (takes_slow_path(op)) {
        slow_free(pointer);
        return;
    }
    const size_t size = hw_place_given_back(op->places, (uintptr_t)pointer, false);
    if (hw_unlikely(size == SIZE_MAX))
        free_otherwise(op, pointer);
    else if (hw_unlikely(hw_times_followed_known(pointer)))
        slow_free_placed(pointer, size);
    else
        fast_free_placed(op, real, pointer, (uint32_t)(size + 15) >> 4, size, frame);
}

void hw_operation_free(void *pointer)
{
    fast_free(hw_operator_self, &hw_real, pointer, FRAME);
}

/* The same for operation_own.c: with a thread of its own, and stand-ins for the allocator. */
static struct hw_operator *trial;
static struct hw_real stand_ins;

void hw_operation_trial(struct hw_operator *op, void *(*stand_in_malloc)(size_t), void (*stand_in_free)(void *))
{
    trial = op;
    stand_ins.malloc = stand_in_malloc;
    stand_ins.free = stand_in_free;
}

__attribute__((noinline)) void *hw_operation_trial_malloc(size_t size)
{
    return fast_malloc(trial, &stand_ins, size, FRAME);
}

__attribute__((noinline)) void hw_operation_trial_free(void *pointer)
{
    fast_free(trial, &stand_ins, pointer, FRAME);
}

/* The result of a fast one that is not a block of the same size as one that was freed there; OLD: of POINTER. */
static __attribute__((noinline)) void *reallocated_otherwise(struct hw_operator *op, void *pointer, size_t old,
                                                             void *result, size_t size)
{
    const uint32_t bucket = hw_size_bucket(size);
    if (hw_unlikely(!result) && hw_limits_make_way())
        result = hw_real.realloc(pointer, size);
    if (hw_likely(result)) {
        hw_place_allocated_slow(op, (uintptr_t)result, size, !hw_places.glibc);
        count_with(op, HW_OPERATION_REALLOC, bucket, grown(old, size));
        count_given_back(op, bucket, shrunk(old, size));
    } else {
        count_failed(op);
        hw_place_reallocated(op, pointer, old);
    }
    return hw_unlikely(op->events) ? fast_end(op, HW_OPERATION_REALLOC, bucket, result) : result;
}

static __attribute__((noinline)) void *realloc_null(size_t size)
{
    struct hw_operator *op = hw_operator_self;
    if (takes_slow_path(op) || hw_unlikely(size > HW_SIZE_SMALL_MOST))
        return slow_realloc_null(size);
    return fast_allocate(op, &hw_real, (struct hw_call){HW_REALLOC, .size = size}, HW_OPERATION_NEW,
                         HW_OPERATION_REUSED, size, FRAME);
}

void *hw_operation_realloc(void *pointer, size_t size)
{
    struct hw_operator *op = hw_operator_self;
    if (!pointer)
        return realloc_null(size);
    if (takes_slow_path(op) || hw_unlikely(size - 1 >= HW_SIZE_SMALL_MOST) /* one of 0 may be a free */
        || hw_unlikely(hw_times_followed(pointer)))
        return slow_realloc(pointer, size);
    const size_t old = hw_place_given_back(op->places, (uintptr_t)pointer, false);
    if (hw_unlikely(old == SIZE_MAX))
        return slow_realloc(pointer, size);
    void *result = fast_call(op, &hw_real, (struct hw_call){HW_REALLOC, .pointer = pointer, .size = size}, FRAME);
    if (hw_unlikely(!hw_places.glibc || !hw_place_again(op->places, (uintptr_t)result, size, false)))
        return reallocated_otherwise(op, pointer, old, result, size);
    const uint32_t bucket = (uint32_t)(size + 15) >> 4;
    count_with(op, HW_OPERATION_REALLOC, bucket, grown(old, size));
    count_given_back(op, bucket, shrunk(old, size));
    return hw_unlikely(op->events) ? fast_end(op, HW_OPERATION_REALLOC, bucket, result) : result;
}
