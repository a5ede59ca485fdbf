/* operations.c - the observer of the allocator itself: counts every operation, and times some.
 *
 * malloc and free have a short way of their own; everything else, and what is unusual about those two, goes the careful
 * way: operation_begin to operation_end. No gate is closed around the real call: hw_operator.selector says that the
 * thread is inside, and hw_operator.frame tells an allocator that calls itself from a signal handler and from what was
 * left by a jump. */
#include "runtime/operations.h"

#define FRAME ((uintptr_t)__builtin_frame_address(0))

__thread struct hw_operator *hw_operator_self;
uint8_t hw_operations_on;
uint32_t hw_phase_offset;

#define NEVER_TIMED UINT32_MAX

static struct hw_allocator_info *info(void)
{
    return HW_ENTRY(HW_POOL_ALLOCATOR_INFO, struct hw_allocator_info, 0);
}

/* ---- start, fork ---- */

static bool start(void)
{
    hw_phase_offset = 0;
    if (hw_pool_take(HW_POOL_ALLOCATOR_INFO, 1) == HW_NONE)
        return false;
    info()->flags = HW_HAVE_PLACES ? HW_ALLOCATOR_PLACES : 0;
    hw_pool_publish(HW_POOL_ALLOCATOR_INFO);
    return hw_places_start() && hw_dispatch_start();
}

bool hw_operations_start(void)
{
    if (hw_runtime.mode != HW_MODE_ALLOCATOR)
        return true;
    hw_operations_on = start();
    return hw_operations_on;
}

void hw_operations_fork(void)
{
    hw_operator_self = NULL;
    if (hw_operations_on && !start()) {
        hw_operations_on = 0;
        hw_note(HW_NOTE_NO_MEMORY, NULL);
    }
}

/* ---- threads ---- */

/* Where the counts go when the file cannot grow: nobody reads them. */
static struct hw_operation_counts nowhere[HW_SIZE_BUCKETS];

static void take_counts(struct hw_operator *op)
{
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    uint32_t index = hw_pool_take(HW_POOL_OPERATION_COUNTS, HW_SIZE_BUCKETS);
    if (index != HW_NONE)
        hw_pool_publish(HW_POOL_OPERATION_COUNTS);
    hw_lock_drop(&hw_runtime.lock, old);
    op->counts = index == HW_NONE ? nowhere : HW_ENTRY(HW_POOL_OPERATION_COUNTS, struct hw_operation_counts, index);
    if (index == HW_NONE)
        hw_note(HW_NOTE_FILE_FULL, hw_file_problem());
}

/* The calling thread, which has the state THREAD from now on. */
static void attach(struct hw_thread *thread)
{
    struct hw_operator *op = thread->operator;
    op->thread = thread;
    op->serial = thread->serial;
    op->selector = op->events = op->timed = op->hardware = 0;
    op->until_timed = NEVER_TIMED;
    if (!op->counts)
        take_counts(op);
    hw_places_attach(op);
    hw_dispatch_attach(op);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    hw_operator_self = op;
}

void hw_operations_thread_ends(struct hw_thread *thread)
{
    struct hw_operator *op = hw_operator_self;
    if (!op || op != thread->operator)
        return;
    hw_dispatch_detach(op);
    hw_places_detach(op);
    hw_operator_self = NULL;
}

void hw_operations_thread_gone(struct hw_thread *thread)
{
    if (thread->operator->thread)
        hw_places_detach(thread->operator);
    if (thread->operator->dispatch)
        hw_hardware_close(thread->operator->dispatch);
}

/* ---- one operation, the careful way ---- */

struct operation {
    struct hw_operator *op;
    struct hw_thread *lent; /* a state for this call only: the thread has ended as far as libc tells */
    uintptr_t outer;        /* a handler inside an operation: the frame of that one */
    uint8_t inside;         /* the selector as it was */
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
    if (thread->interrupted) { /* lent: there is no thread any more */
        attach(thread);
        operation->lent = thread;
    } else {
        attach(thread);
        hw_leave(thread);
    }
    return true;
}

/* A call inside an operation of the thread: the allocator's own, a signal handler's, or the operation has been left by
 * a jump. False: it passes through. */
static bool enter_again(struct operation *operation, struct hw_operator *op)
{
    enum hw_caller caller = hw_caller_of_hook(op->thread, op->frame);
    if (caller == HW_CALLER_ALLOCATOR) {
        op->thread->entry->nested++;
        return false;
    }
    if (caller == HW_CALLER_HANDLER) {
        operation->inside = op->selector;
        operation->outer = op->frame;
    } else {
        op->selector = op->events = op->timed = 0;
    }
    return true;
}

static __attribute__((noinline)) bool begin_slow(struct operation *operation, uintptr_t frame)
{
    if (hw_runtime.state != HW_STATE_ON && hw_runtime.state != HW_STATE_NEW)
        return false;
    struct hw_operator *op = hw_operator_self;
    if (op && !op->thread && hw_fork_pending())
        hw_operator_self = op = NULL;
    if (!op && !find_operator(operation, frame))
        return false;
    if (op && op->selector && !enter_again(operation, op))
        return false;
    op = operation->op = hw_operator_self;
    if (op->until_timed)
        op->until_timed--;
    return true;
}

/* False: the call passes through, nothing else is to be done. */
static inline bool operation_begin(struct operation *operation, uintptr_t frame)
{
    struct hw_operator *op = hw_operator_self;
    *operation = (struct operation){.op = op};
    if (hw_likely(op && op->until_timed && !op->selector))
        op->until_timed--;
    else if (!begin_slow(operation, frame))
        return false;
    operation->op->frame = frame;
    return true;
}

static inline void count(struct hw_operator *op, enum hw_operation_kind kind, uint32_t bucket)
{
    hw_arch_increment(&op->counts[bucket].count[0][hw_phase_offset + kind]);
}

static inline void operation_end(struct operation *operation, enum hw_operation_kind kind, uint32_t bucket)
{
    struct hw_operator *op = operation->op;
    count(op, kind, bucket);
    if (hw_unlikely(op->events && !operation->inside))
        hw_dispatch_operation_end(op, hw_phase(), kind, bucket);
    if (hw_unlikely(operation->lent != NULL)) {
        hw_operations_thread_ends(operation->lent);
        hw_leave(operation->lent);
    }
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

/* The result of an allocation: REUSED instead of NEW where the address is known. */
static inline enum hw_operation_kind placed(struct hw_operator *op, enum hw_operation_kind kind, void *result,
                                            size_t size)
{
    if (hw_unlikely(!result)) {
        op->thread->entry->failed++;
        return kind;
    }
    bool known = kind == HW_OPERATION_ALIGNED ? hw_place_allocated_slow(op, (uintptr_t)result, size, true)
                                              : hw_place_allocated(op, result, size);
    return kind == HW_OPERATION_NEW && known ? HW_OPERATION_REUSED : kind;
}

#define ALLOCATE(kind, size, call)                                                                                     \
    do {                                                                                                               \
        struct operation operation;                                                                                    \
        if (!operation_begin(&operation, FRAME))                                                                       \
            return (call);                                                                                             \
        enter_real(operation.op);                                                                                      \
        void *result = (call);                                                                                         \
        leave_real(&operation);                                                                                        \
        operation_end(&operation, placed(operation.op, (kind), result, (size)), hw_size_bucket(size));                 \
        return result;                                                                                                 \
    } while (0)

static __attribute__((noinline)) void *careful_malloc(size_t size)
{
    ALLOCATE(HW_OPERATION_NEW, size, hw_real.malloc(size));
}

void *hw_operation_calloc(size_t count, size_t size)
{
    ALLOCATE(HW_OPERATION_CALLOC, count * size, hw_real.calloc(count, size));
}

void *hw_operation_memalign(size_t alignment, size_t size)
{
    ALLOCATE(HW_OPERATION_ALIGNED, size, hw_real.memalign(alignment, size));
}

void *hw_operation_aligned_alloc(size_t alignment, size_t size)
{
    ALLOCATE(HW_OPERATION_ALIGNED, size, hw_real.aligned_alloc(alignment, size));
}

void *hw_operation_valloc(size_t size)
{
    ALLOCATE(HW_OPERATION_ALIGNED, size, hw_real.valloc(size));
}

void *hw_operation_pvalloc(size_t size)
{
    ALLOCATE(HW_OPERATION_ALIGNED, size, hw_real.pvalloc(size));
}

int hw_operation_posix_memalign(void **pointer, size_t alignment, size_t size)
{
    struct operation operation;
    if (!operation_begin(&operation, FRAME))
        return hw_real.posix_memalign(pointer, alignment, size);
    enter_real(operation.op);
    int error = hw_real.posix_memalign(pointer, alignment, size);
    leave_real(&operation);
    placed(operation.op, HW_OPERATION_ALIGNED, error ? NULL : *pointer, size);
    operation_end(&operation, HW_OPERATION_ALIGNED, hw_size_bucket(size));
    return error;
}

/* The block of the start-up allocator at POINTER moves to the real one. */
static void *move_startup_block(void *pointer, size_t size)
{
    size_t old = *(size_t *)((char *)pointer - 8);
    void *fresh = hw_real.malloc(size);
    if (fresh)
        __builtin_memcpy(fresh, pointer, old < size ? old : size);
    return fresh;
}

void *hw_operation_realloc(void *pointer, size_t size)
{
    struct operation operation;
    bool startup = hw_real_is_startup_block(pointer);
    if (!operation_begin(&operation, FRAME))
        return startup ? move_startup_block(pointer, size) : hw_real.realloc(pointer, size);
    struct hw_operator *op = operation.op;
    size_t old_size = pointer && !startup ? hw_place_freed(op, pointer) : SIZE_MAX;
    enter_real(op);
    void *result = startup ? move_startup_block(pointer, size) : hw_real.realloc(pointer, size);
    leave_real(&operation);
    if (result)
        hw_place_allocated(op, result, size);
    else if (size || !pointer) {
        op->thread->entry->failed++;
        if (old_size != SIZE_MAX)
            hw_place_allocated(op, pointer, old_size);
    }
    operation_end(&operation, HW_OPERATION_REALLOC, hw_size_bucket(size));
    return result;
}

static inline uint32_t bucket_of_freed(size_t size)
{
    return hw_unlikely(size == SIZE_MAX) ? HW_SIZE_BUCKET_UNKNOWN : hw_size_bucket(size);
}

#define RELEASE(pointer, call)                                                                                         \
    do {                                                                                                               \
        struct operation operation;                                                                                    \
        if (!operation_begin(&operation, FRAME)) {                                                                     \
            if (!hw_real_is_startup_block(pointer))                                                                    \
                (call);                                                                                                \
            return;                                                                                                    \
        }                                                                                                              \
        size_t size = hw_place_freed(operation.op, pointer);                                                           \
        if (hw_likely(size != SIZE_MAX) || !hw_real_is_startup_block(pointer)) {                                       \
            enter_real(operation.op);                                                                                  \
            (call);                                                                                                    \
            leave_real(&operation);                                                                                    \
        }                                                                                                              \
        operation_end(&operation, HW_OPERATION_FREE, bucket_of_freed(size));                                           \
    } while (0)

static __attribute__((noinline)) void careful_free(void *pointer)
{
    RELEASE(pointer, hw_real.free(pointer));
}

void hw_operation_free_sized(void *pointer, size_t bytes)
{
    RELEASE(pointer, hw_real.free_sized ? hw_real.free_sized(pointer, bytes) : hw_real.free(pointer));
}

void hw_operation_free_aligned_sized(void *pointer, size_t alignment, size_t bytes)
{
    RELEASE(pointer,
            hw_real.free_aligned_sized ? hw_real.free_aligned_sized(pointer, alignment, bytes) : hw_real.free(pointer));
}

void *hw_operation_new(int form, size_t size, size_t second, const void *third, bool aligned)
{
    ALLOCATE(aligned ? HW_OPERATION_ALIGNED : HW_OPERATION_NEW, size, hw_real.op_new[form](size, second, third));
}

void hw_operation_delete(int form, void *pointer, size_t second, size_t third)
{
    RELEASE(pointer, hw_real.op_delete[form](pointer, second, third));
}

/* ---- the short way ---- */

void *hw_operation_malloc(size_t size)
{
    struct hw_operator *op = hw_operator_self;
    if (hw_unlikely(!op || !op->until_timed || op->selector || size > HW_SIZE_SMALL_MOST))
        return careful_malloc(size);
    op->until_timed--;
    op->frame = FRAME;
    enter_real(op);
    void *result = hw_real.malloc(size);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    op->selector = 0;
    enum hw_operation_kind kind = placed(op, HW_OPERATION_NEW, result, size);
    uint32_t bucket = (uint32_t)(size + 15) >> 4;
    count(op, kind, bucket);
    if (hw_unlikely(op->events))
        hw_dispatch_operation_end(op, hw_phase(), kind, bucket);
    return result;
}

void hw_operation_free(void *pointer)
{
    struct hw_operator *op = hw_operator_self;
    if (hw_unlikely(!op || !op->until_timed || op->selector)) {
        careful_free(pointer);
        return;
    }
    size_t size = hw_place_freed(op, pointer);
    if (hw_unlikely(size == SIZE_MAX)) {
        careful_free(pointer); /* asks again: nothing was known before, nothing is now */
        return;
    }
    op->until_timed--;
    op->frame = FRAME;
    uint32_t bucket = hw_size_bucket(size);
    count(op, HW_OPERATION_FREE, bucket);
    enter_real(op);
    hw_real.free(pointer);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    op->selector = 0;
    if (hw_unlikely(op->events))
        hw_dispatch_operation_end(op, hw_phase(), HW_OPERATION_FREE, bucket);
}
