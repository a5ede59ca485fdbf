/* hooks.c - the functions of malloc's family that programs call.
 *
 * They know the ABI and nothing else: each calls the real function, and reports the event to the observer (heap.c).
 * What a program can see of them is the real functions' behaviour: results, errno, alignment, failure.
 *
 * Sampling: hw_until_sample is the number of bytes up to the next sampled one. It is 0 in exact runs, so that one
 * comparison at the top of each hook decides in both modes. hw_filter excludes most pointers that are no sampled block
 * (a counting Bloom filter with one hash); in exact runs its mask is 0 and its only cell is never zero.
 *
 * In allocator mode all of them go to operations.c, which may begin in the middle of the first call.
 *
 * Each hook is a jump to where its `way` leads: to the function that counts, or, while the runtime waits for heapwise
 * start (periods.c), to one that only makes the call. */
#include "runtime/allocator/allocator.h"
#include "runtime/core/core.h"
#include "runtime/core/threads.h"
#include "runtime/heap/heap.h"
#include "runtime/hooks/calls.h"
#include "runtime/hooks/operators.h"

#define FILTER_CELLS 65536
uint8_t hw_filter[FILTER_CELLS] = {1};
uint64_t hw_filter_mask;

/* A hook with its declaration and a hidden name for it, which is sure to be the hook itself (see static_hooks.c), and
 * the head of the function that counts. */
#define HW_HOOK_AS(type, name, parameters, jump)                                                                       \
    HW_EXPORT type name parameters;                                                                                    \
    extern __typeof__(name) hw_hook_##name __attribute__((alias(#name), visibility("hidden")));                        \
    static type counting_##name parameters;                                                                            \
    static __typeof__(name) *way_##name = counting_##name;                                                             \
    HW_EXPORT type name parameters                                                                                     \
    {                                                                                                                  \
        jump;                                                                                                          \
    }                                                                                                                  \
    static type counting_##name parameters
#define HW_HOOK(type, name, parameters, arguments) HW_HOOK_AS(type, name, parameters, return way_##name arguments)
#define HW_HOOK_OF_FREE(name, parameters, arguments) HW_HOOK_AS(void, name, parameters, way_##name arguments)

#define FRAME ((uintptr_t)__builtin_frame_address(0))

static inline bool not_sampled(size_t size)
{
    if (size >= hw_until_sample)
        return false;
    hw_until_sample -= size;
    return true;
}

static inline bool surely_not_tracked(const void *pointer)
{
    return !hw_filter[((uintptr_t)pointer >> 4) & hw_filter_mask];
}

/* The counted part of an allocating hook. A function of its own, which the hook jumps to: the hook itself stays a few
 * instructions that save no register, and this one's frame has the return address and the stack of the hook's caller.
 */
#define COUNTED __attribute__((noinline)) static

/* Of an operator new that is the allocator's own it is call_real_new that counts. */
COUNTED void count_failed(struct hw_thread *thread, uintptr_t frame)
{
    thread->entry->failed += !hw_real.own_new || !hw_called_by_allocator(frame);
}

/* THREAD is in the hook whose frame is FRAME: makes the call, which asks for BYTES, and counts it. */
HW_INLINE void *counted(struct hw_thread *thread, struct hw_call call, size_t bytes, uintptr_t frame)
{
    hw_gate(thread, frame | HW_GATE_REAL);
    void *result = hw_call_through(call);
    hw_gate(thread, frame | HW_GATE_RUNTIME);
    if (hw_likely(result != NULL))
        hw_heap_allocated(thread, result, bytes, frame);
    else if (call.function != HW_POSIX_MEMALIGN || *call.error)
        count_failed(thread, frame);
    hw_leave(thread);
    return result;
}

/* Defines counted_NAME; OPERATION is the same in allocator mode, which may begin in the middle of the call. */
#define COUNTED_CALL(name, parameters, bytes, operation, ...)                                                          \
    COUNTED void *counted_##name parameters                                                                            \
    {                                                                                                                  \
        const struct hw_call call = {__VA_ARGS__};                                                                     \
        const uintptr_t frame = FRAME;                                                                                 \
        struct hw_thread *thread = hw_enter(frame, false);                                                             \
        if (hw_unlikely(!thread))                                                                                      \
            return hw_operations_on ? operation : hw_call_through(call);                                               \
        return counted(thread, call, bytes, frame);                                                                    \
    }

/* … and the hook. */
#define ALLOCATING_HOOK(name, constant, parameters, arguments, alignment)                                              \
    COUNTED_CALL(name, parameters, size, hw_operation_##name arguments, constant, .size = size, .second = alignment)   \
    static void *waiting_##name parameters                                                                             \
    {                                                                                                                  \
        return hw_call_through((struct hw_call){constant, .size = size, .second = alignment});                         \
    }                                                                                                                  \
    HW_HOOK(void *, name, parameters, arguments)                                                                       \
    {                                                                                                                  \
        const struct hw_call call = {constant, .size = size, .second = alignment};                                     \
        if (hw_unlikely(hw_operations_on))                                                                             \
            return hw_operation_##name arguments;                                                                      \
        return not_sampled(size) ? hw_call_through(call) : counted_##name arguments;                                   \
    }

ALLOCATING_HOOK(malloc, HW_MALLOC, (size_t size), (size), 0)
HW_ALIGNED_FUNCTIONS(ALLOCATING_HOOK)

COUNTED_CALL(calloc, (size_t count, size_t size), count *size, hw_operation_calloc(count, size), HW_CALLOC,
             .second = count, .size = size)
static void *waiting_calloc(size_t count, size_t size)
{
    return hw_call_through((struct hw_call){HW_CALLOC, .second = count, .size = size});
}

HW_HOOK(void *, calloc, (size_t count, size_t size), (count, size))
{
    size_t bytes;
    const bool fails = __builtin_mul_overflow(count, size, &bytes);
    if (hw_unlikely(hw_operations_on))
        return hw_operation_calloc(count, size);
    if (!fails && not_sampled(bytes))
        return hw_call_through((struct hw_call){HW_CALLOC, .second = count, .size = size});
    return counted_calloc(count, size);
}

static __attribute__((noinline)) int passed_posix_memalign(void **pointer, size_t alignment, size_t size)
{
    int error;
    hw_call_through(
        (struct hw_call){HW_POSIX_MEMALIGN, .place = pointer, .second = alignment, .size = size, .error = &error});
    return error;
}

COUNTED int counted_posix_memalign(void **pointer, size_t alignment, size_t size)
{
    int error;
    const uintptr_t frame = FRAME;
    struct hw_thread *thread = hw_enter(frame, false);
    if (hw_unlikely(!thread))
        return hw_operations_on ? hw_operation_posix_memalign(pointer, alignment, size)
                                : passed_posix_memalign(pointer, alignment, size);
    counted(thread,
            (struct hw_call){HW_POSIX_MEMALIGN, .place = pointer, .second = alignment, .size = size, .error = &error},
            size, frame);
    return error;
}

HW_HOOK(int, posix_memalign, (void **pointer, size_t alignment, size_t size), (pointer, alignment, size))
{
    if (hw_unlikely(hw_operations_on))
        return hw_operation_posix_memalign(pointer, alignment, size);
    return not_sampled(size) ? passed_posix_memalign(pointer, alignment, size)
                             : counted_posix_memalign(pointer, alignment, size);
}

/* ---- realloc ---- */

/* POINTER is not NULL. */
static __attribute__((noinline)) void *passed_realloc(void *pointer, size_t size)
{
    return hw_call_through((struct hw_call){HW_REALLOC, .pointer = pointer, .size = size});
}

COUNTED void *counted_realloc(void *pointer, size_t size)
{
    if (hw_unlikely(hw_real_is_startup_block(pointer)))
        return hw_call_through((struct hw_call){HW_MOVE_STARTUP_BLOCK, .pointer = pointer, .size = size});
    uintptr_t frame = FRAME;
    struct hw_thread *thread = hw_enter(frame, true);
    if (hw_unlikely(!thread))
        return hw_operations_on ? hw_operation_realloc(pointer, size) : passed_realloc(pointer, size);
    struct hw_block block;
    const bool sampled = hw_options.sample_bytes != 0;
    const bool known =
        !(hw_unlikely(sampled) && surely_not_tracked(pointer)) && hw_heap_realloc_begin(thread, pointer, &block);
    hw_gate(thread, frame | HW_GATE_REAL);
    void *result = passed_realloc(pointer, size);
    hw_gate(thread, frame | HW_GATE_RUNTIME);
    if (hw_likely(known && !sampled)) {
        if (hw_unlikely(!result && size))
            thread->entry->failed++;
        hw_heap_realloc_end(thread, pointer, result, size, &block);
    } else if (sampled) { /* a free and an allocation, each as likely as its size says */
        if (known)
            hw_heap_realloc_end(thread, pointer, NULL, result ? 0 : size, &block);
        if (result && !not_sampled(size))
            hw_heap_allocated(thread, result, size, frame);
    } else {
        thread->entry->foreign_reallocs += result != NULL;
    }
    hw_leave(thread);
    return result;
}

COUNTED_CALL(realloc_null, (size_t size), size, hw_operation_realloc(NULL, size), HW_REALLOC, .size = size)

static inline void *realloc_null(size_t size)
{
    return not_sampled(size) ? hw_call_through((struct hw_call){HW_REALLOC, .size = size}) : counted_realloc_null(size);
}

static void *waiting_realloc(void *pointer, size_t size)
{
    if (hw_unlikely(hw_real_is_startup_block(pointer)))
        return hw_call_through((struct hw_call){HW_MOVE_STARTUP_BLOCK, .pointer = pointer, .size = size});
    return hw_call_through((struct hw_call){HW_REALLOC, .pointer = pointer, .size = size});
}

HW_HOOK(void *, realloc, (void *pointer, size_t size), (pointer, size))
{
    if (hw_unlikely(hw_operations_on))
        return hw_operation_realloc(pointer, size);
    if (!pointer)
        return realloc_null(size);
    return surely_not_tracked(pointer) && not_sampled(size) ? passed_realloc(pointer, size)
                                                            : counted_realloc(pointer, size);
}

static void *waiting_reallocarray(void *pointer, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return hw_real.calloc(count, size); /* fails as well */
    return waiting_realloc(pointer, bytes);
}

HW_HOOK(void *, reallocarray, (void *pointer, size_t count, size_t size), (pointer, count, size))
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return hw_operations_on ? hw_operation_calloc(count, size) : counted_calloc(count, size); /* fails as well */
    if (hw_unlikely(hw_operations_on))
        return hw_operation_realloc(pointer, bytes);
    return pointer ? counted_realloc(pointer, bytes) : realloc_null(bytes);
}

/* ---- free ---- */

/* Counts a free. False when the pointer must not reach the real allocator. */
static inline bool count_free(struct hw_thread *thread, void *pointer, uintptr_t frame)
{
    if (hw_likely(hw_heap_freed(thread, pointer, frame)))
        return true;
    if (hw_real_is_startup_block(pointer))
        return false;
    if (!hw_options.sample_bytes && !thread->nested && !hw_static_program_frees_itself(frame))
        thread->entry->foreign_frees++;
    return true;
}

static inline bool enter_and_count_free(void *pointer, uintptr_t frame)
{
    struct hw_thread *thread = hw_enter(frame, true);
    if (hw_unlikely(!thread))
        return !hw_real_is_startup_block(pointer);
    const bool pass = count_free(thread, pointer, frame);
    hw_leave(thread);
    return pass;
}

COUNTED void counted_free(void *pointer)
{
    if (enter_and_count_free(pointer, FRAME))
        hw_real.free(pointer);
    else
        hw_real_startup_freed();
}

static void waiting_free(void *pointer)
{
    if (hw_likely(!hw_real_is_startup_block(pointer)))
        hw_real.free(pointer);
}

HW_HOOK_OF_FREE(free, (void *pointer), (pointer))
{
    if (!pointer)
        return;
    if (hw_unlikely(hw_operations_on))
        hw_operation_free(pointer);
    else if (surely_not_tracked(pointer))
        hw_real.free(pointer);
    else
        counted_free(pointer);
}

/* One that says more than the pointer. */
HW_INLINE void release(struct hw_call call, uintptr_t frame)
{
    if (surely_not_tracked(call.pointer) || enter_and_count_free(call.pointer, frame))
        hw_real_call(&hw_real, call);
}

static void waiting_free_sized(void *pointer, size_t size)
{
    if (!hw_real_is_startup_block(pointer))
        hw_real_call(&hw_real, (struct hw_call){HW_FREE_SIZED, .pointer = pointer, .size = size});
}

static void waiting_free_aligned_sized(void *pointer, size_t alignment, size_t size)
{
    if (!hw_real_is_startup_block(pointer))
        hw_real_call(&hw_real,
                     (struct hw_call){HW_FREE_ALIGNED_SIZED, .pointer = pointer, .second = alignment, .size = size});
}

HW_HOOK_OF_FREE(free_sized, (void *pointer, size_t size), (pointer, size))
{
    if (pointer && hw_unlikely(hw_operations_on))
        hw_operation_free_sized(pointer, size);
    else if (pointer)
        release((struct hw_call){HW_FREE_SIZED, .pointer = pointer, .size = size}, FRAME);
}

HW_HOOK_OF_FREE(free_aligned_sized, (void *pointer, size_t alignment, size_t size), (pointer, alignment, size))
{
    if (pointer && hw_unlikely(hw_operations_on))
        hw_operation_free_aligned_sized(pointer, alignment, size);
    else if (pointer)
        release((struct hw_call){HW_FREE_ALIGNED_SIZED, .pointer = pointer, .second = alignment, .size = size}, FRAME);
}

HW_HOOK(size_t, malloc_usable_size, (void *pointer), (pointer))
{
    return hw_unlikely(hw_real_is_startup_block(pointer)) ? hw_real_startup_size(pointer)
                                                          : hw_real.malloc_usable_size(pointer);
}

/* ---- C++ ---- */

const char *const hw_new_names[HW_NEW_COUNT] = {
#define NAME(index, symbol, aligned, nothrow) [index] = #symbol,
    HW_NEW_FORMS(NAME)
#undef NAME
};
const char *const hw_delete_names[HW_DELETE_COUNT] = {
#define NAME(index, symbol) [index] = #symbol,
    HW_DELETE_FORMS(NAME)
#undef NAME
};

extern void *dlopen(const char *, int) __attribute__((weak));
extern void *dlsym(void *, const char *) __attribute__((weak));

/* A C++ library that came later, perhaps out of sight of the global search order. */
static void *find_late(const char *name)
{
    static const char *const libraries[] = {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"};
    void *found = hw_real_next(name);
    for (size_t i = 0; !found && dlopen && i < sizeof libraries / sizeof *libraries; i++) {
        void *library = dlopen(libraries[i], 4 /* RTLD_NOLOAD */ | 1 /* RTLD_LAZY */);
        if (library)
            found = dlsym(library, name);
    }
    return found;
}

static void find_real_new(int form)
{
    if (hw_real.op_new[form])
        return;
    void *found = find_late(hw_new_names[form]);
    if (!found)
        __builtin_trap(); /* out of memory in a program whose C++ library cannot be found to throw */
    __atomic_store_n((void **)&hw_real.op_new[form], found, __ATOMIC_RELEASE);
}

/* The library's own operator new: throws, calls the new-handler. What it gets from malloc is counted there; what it
 * gets elsewhere (allocators with operators of their own) is counted here. No gate is held: exceptions may pass. */
static void *call_real_new(int form, size_t size, size_t second, const void *third, uintptr_t frame)
{
    find_real_new(form);
    struct hw_thread *before = hw_self;
    uint64_t serial = before ? before->allocation_serial : 0, until = hw_until_sample;
    const bool own = before && hw_real.own_new >> form & 1;
    if (own) /* nobody else counts it when it throws */
        before->entry->failed++;
    void *result = hw_real.op_new[form](size, second, third);
    struct hw_thread *self = hw_self;
    if (own && result)
        before->entry->failed--;
    if (!result || (self && self->last_block == result && self->allocation_serial != serial) ||
        hw_until_sample != until)
        return result;
    if (not_sampled(size))
        return result;
    struct hw_thread *thread = hw_enter(frame, false);
    if (thread) {
        hw_heap_allocated(thread, result, size, frame);
        hw_leave(thread);
    }
    return result;
}

/* Allocator mode. The C++ library's own operator new is malloc; where that fails it is called itself: to call the
 * handler and to throw. What it then tries is counted as what it is, operations of malloc. */
static void *operation_new(int form, bool aligned, size_t size, size_t second, const void *third)
{
    if (!hw_real.new_is_malloc) {
        find_real_new(form);
        return hw_operation_new(form, size, second, third, aligned);
    }
    void *result = aligned ? hw_operation_memalign(second, size) : hw_operation_malloc(size);
    if (hw_likely(result != NULL))
        return result;
    hw_operation_tried_again();
    find_real_new(form);
    return hw_real.op_new[form](size, second, third);
}

static inline void *operator_new(int form, bool aligned, size_t size, size_t second, const void *third, uintptr_t frame)
{
    if (hw_unlikely(hw_runtime.state == HW_STATE_NEW))
        hw_start();
    if (hw_unlikely(hw_operations_on))
        return operation_new(form, aligned, size, second, third);
    if (!hw_real.new_is_malloc)
        return call_real_new(form, size, second, third, frame);
    const struct hw_call call = {aligned ? HW_MEMALIGN : HW_MALLOC, .size = size ? size : 1, .second = second};
    void *result;
    struct hw_thread *thread = not_sampled(size) ? NULL : hw_enter(frame, false);
    if (thread) {
        hw_gate(thread, frame | HW_GATE_REAL);
        result = hw_real_call(&hw_real, call);
        hw_gate(thread, frame | HW_GATE_RUNTIME);
        if (hw_likely(result != NULL))
            hw_heap_allocated(thread, result, size, frame);
        hw_leave(thread);
    } else
        result = hw_real_call(&hw_real, call);
    return hw_likely(result != NULL) ? result : call_real_new(form, size, second, third, frame);
}

static inline void *waiting_new(int form, bool aligned, size_t size, size_t second, const void *third)
{
    if (hw_likely(hw_real.new_is_malloc)) {
        void *result = aligned ? hw_real.memalign(second, size ? size : 1) : hw_real.malloc(size ? size : 1);
        if (hw_likely(result != NULL))
            return result;
    }
    find_real_new(form);
    return hw_real.op_new[form](size, second, third);
}

/* A jump in place of the last call would give up the frame that FRAME says: callers that were saved there are lost. */
#define DEFINE_NEW(index, symbol, aligned, nothrow)                                                                    \
    static void *waiting_##symbol(size_t size, size_t second, const void *third)                                       \
    {                                                                                                                  \
        return waiting_new(index, aligned, size, second, third);                                                       \
    }                                                                                                                  \
    HW_HOOK(void *, symbol, (size_t size, size_t second, const void *third), (size, second, third))                    \
    {                                                                                                                  \
        void *result = operator_new(index, aligned, size, second, third, FRAME);                                       \
        __asm__ volatile("" : "+r"(result));                                                                           \
        return result;                                                                                                 \
    }
HW_NEW_FORMS(DEFINE_NEW)

static inline void operator_delete(int form, void *pointer, size_t second, size_t third, uintptr_t frame)
{
    if (!pointer)
        return;
    const bool own = !hw_real.new_is_malloc && hw_real.op_delete[form];
    if (hw_unlikely(hw_operations_on)) {
        if (own)
            hw_operation_delete(form, pointer, second, third);
        else
            hw_operation_free(pointer);
        return;
    }
    if (!own) {
        release((struct hw_call){HW_FREE, .pointer = pointer}, frame);
        return;
    }
    struct hw_thread *thread = surely_not_tracked(pointer) ? NULL : hw_enter(frame, true);
    if (thread ? count_free(thread, pointer, frame) : !hw_real_is_startup_block(pointer)) {
        if (thread)
            hw_gate(thread, frame | HW_GATE_REAL); /* a free inside is this one */
        hw_real.op_delete[form](pointer, second, third);
    }
    if (thread)
        hw_leave(thread);
}

static inline void waiting_delete(int form, void *pointer, size_t second, size_t third)
{
    if (hw_unlikely(hw_real_is_startup_block(pointer)))
        return;
    if (hw_likely(hw_real.new_is_malloc || !hw_real.op_delete[form]))
        hw_real.free(pointer);
    else
        hw_real.op_delete[form](pointer, second, third);
}

#define DEFINE_DELETE(index, symbol)                                                                                   \
    static void waiting_##symbol(void *pointer, size_t second, size_t third)                                           \
    {                                                                                                                  \
        waiting_delete(index, pointer, second, third);                                                                 \
    }                                                                                                                  \
    HW_HOOK_OF_FREE(symbol, (void *pointer, size_t second, size_t third), (pointer, second, third))                    \
    {                                                                                                                  \
        operator_delete(index, pointer, second, third, FRAME);                                                         \
        __asm__ volatile("");                                                                                          \
    }
HW_DELETE_FORMS(DEFINE_DELETE)

/* ---- where hooks lead ---- */

/* While nothing is counted, the hook is a jump to the real function itself where no call needs anything more: where no
 * block of the start-up allocator is left, and no limit of address space is that of a smaller process. */
void hw_hooks_lead(bool counting)
{
    const bool straight = !counting && !hw_real_startup_left() && !hw_address_space_limited();
#define waiting_posix_memalign     passed_posix_memalign
#define waiting_malloc_usable_size counting_malloc_usable_size
#define LEAD_TO(name, real)                                                                                            \
    __atomic_store_n(&way_##name,                                                                                      \
                     counting             ? counting_##name                                                            \
                     : straight && (real) ? (__typeof__(way_##name))(real)                                             \
                                          : waiting_##name,                                                            \
                     __ATOMIC_RELEASE);
#define LEAD(name)                      LEAD_TO(name, hw_real.name)
#define LEAD_NEW(index, symbol, ...)    LEAD_TO(symbol, hw_real.op_new[index])
#define LEAD_DELETE(index, symbol, ...) LEAD_TO(symbol, hw_real.op_delete[index])
    HW_ALLOCATOR_FUNCTIONS(LEAD)
    LEAD_TO(reallocarray, NULL)
    LEAD(malloc_usable_size)
    HW_NEW_FORMS(LEAD_NEW)
    HW_DELETE_FORMS(LEAD_DELETE)
#undef LEAD_DELETE
#undef LEAD_NEW
#undef LEAD
#undef LEAD_TO
}
