/* thread_create.c - threads remember the function they were started with, by whom and
 * where (thread_list.c). Those of programs that count
 * accesses get a plane of their own before their first instruction, those whose accesses are sampled a timer, both a
 * role (sharing.c); where system calls are observed, SIGSYS is unblocked in them. In allocator mode threads are
 * counted.
 *
 * The start routine is reached by a jump: no frame of the runtime is on the new thread's stack. */
#include "runtime/access/access.h"
#include "runtime/allocator/allocator.h"
#include "runtime/core/core.h"
#include "runtime/core/mappings.h"
#include "runtime/core/memory.h"
#include "runtime/core/thread_list.h"
#include "runtime/hooks/hooks.h"
#include "runtime/samples/samples.h"
#include "runtime/stacks/stacks.h"

struct start {
    union {
        void *(*posix)(void *);
        int (*c11)(void *);
        struct start *next; /* free */
    };
    void *argument;
    size_t stack_bytes; /* only where it will be needed */
    struct hw_thread_origin origin;
    uint32_t role;
};

extern int pthread_attr_getstacksize(const void *, size_t *) __attribute__((weak));
extern int pthread_getattr_default_np(void *) __attribute__((weak));

static size_t stack_bytes(const void *attributes)
{
    uint64_t usual[16] = {0}; /* pthread_attr_t */
    size_t bytes = 0;
    if (!hw_quiet || !pthread_attr_getstacksize || (!attributes && !pthread_getattr_default_np))
        return 0;
    if (!attributes && pthread_getattr_default_np(usual) != 0)
        return 0;
    return pthread_attr_getstacksize(attributes ? attributes : usual, &bytes) == 0 ? bytes : 0;
}

static struct {
    struct hw_lock lock;
    struct start *free_list;
} starts;

static struct start *take_start(void)
{
    hw_sigset old = hw_lock_take(&starts.lock);
    if (!starts.free_list) {
        struct start *fresh = hw_own_pages(HW_PAGE, false);
        for (size_t i = 0; fresh && i < HW_PAGE / sizeof *fresh; i++) {
            fresh[i].next = starts.free_list;
            starts.free_list = &fresh[i];
        }
    }
    struct start *start = starts.free_list;
    if (start)
        starts.free_list = start->next;
    hw_lock_drop(&starts.lock, old);
    return start;
}

static struct start put_start(struct start *start)
{
    struct start copy = *start;
    hw_sigset old = hw_lock_take(&starts.lock);
    start->next = starts.free_list;
    starts.free_list = start;
    hw_lock_drop(&starts.lock, old);
    return copy;
}

/* Whether threads are seen before their first instruction. Not in a forked child without a profile. */
static bool looked_at(void)
{
    return hw_runtime.state == HW_STATE_ON;
}

static void attach(const struct start *start)
{
    hw_self_origin = start->origin;
    hw_stack_begun();
    if (start->stack_bytes)
        hw_unwind_thread(start->stack_bytes);
    if (hw_dispatch_on)
        hw_handlers_thread();
    hw_role_begin(start->role);
    hw_shadow_attach();
    hw_trap_attach();
    if (hw_operations_on)
        hw_stages_thread_begins();
}

/* What `attach` undoes or completes: a thread is about to be made. NULL: it needs nothing. */
static struct start *prepare(void)
{
    struct start *start = looked_at() ? take_start() : NULL;
    if (start && hw_operations_on)
        hw_stages_thread_coming();
    return start;
}

/* Who starts a thread, and where. FRAME: of the hook. */
static void note_origin(struct start *start, uintptr_t routine, uintptr_t frame)
{
    start->origin.routine = routine;
    start->role = HW_ROLE_UNKNOWN;
    struct hw_thread *thread = hw_enter(frame, false);
    if (!thread)
        return;
    start->origin.starter = thread->serial;
    start->origin.context = hw_walk_context(hw_walk_at(thread, frame));
    start->role = hw_role_of(routine, start->origin.context);
    hw_leave(thread);
}

static void give_up(struct start *start)
{
    put_start(start);
    if (hw_operations_on)
        hw_stages_thread_failed();
}

static void *run_posix(void *closure)
{
    struct start start = put_start(closure);
    attach(&start);
    return start.posix(start.argument);
}

static int run_c11(void *closure)
{
    struct start start = put_start(closure);
    attach(&start);
    return start.c11(start.argument);
}

void hw_thread_create_fork(void)
{
    starts.lock = (struct hw_lock){0};
}

/* Stacks are mapped inside of libc. EAGAIN, thrd_nomem or thrd_error: the numbers differ. */
#define TRY(error, statement)                                                                                          \
    do {                                                                                                               \
        statement;                                                                                                     \
        if (hw_unlikely(error) && hw_limits_make_way())                                                                \
            statement;                                                                                                 \
    } while (0)

HW_EXPORTED(int, pthread_create,
            (unsigned long *thread, const void *attributes, void *(*routine)(void *), void *argument))
{
    HW_REAL(int, pthread_create, (unsigned long *, const void *, void *(*)(void *), void *));
    hw_static_program_start(); /* else the first calls of several threads would race for it */
    struct start *start = prepare();
    int error;
    if (!start) {
        TRY(error, error = real(thread, attributes, routine, argument));
        return error;
    }
    *start = (struct start){.posix = routine, .argument = argument, .stack_bytes = stack_bytes(attributes)};
    note_origin(start, (uintptr_t)routine, (uintptr_t)__builtin_frame_address(0));
    TRY(error, error = real(thread, attributes, run_posix, start));
    if (error)
        give_up(start);
    return error;
}

HW_EXPORTED(int, thrd_create, (unsigned long *thread, int (*routine)(void *), void *argument))
{
    HW_REAL(int, thrd_create, (unsigned long *, int (*)(void *), void *));
    struct start *start = prepare();
    int error;
    if (!start) {
        TRY(error, error = real(thread, routine, argument));
        return error;
    }
    *start = (struct start){.c11 = routine, .argument = argument, .stack_bytes = stack_bytes(NULL)};
    note_origin(start, (uintptr_t)routine, (uintptr_t)__builtin_frame_address(0));
    TRY(error, error = real(thread, run_c11, start));
    if (error)
        give_up(start);
    return error;
}
