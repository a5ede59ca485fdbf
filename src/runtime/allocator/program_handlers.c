/* program_handlers.c - signal handlers and masks of the program, while system calls inside operations are observed.
 *
 * Three things have to hold there (syscalls.c says why):
 *
 *  - SIGSYS is the runtime's. What the program sets for it is kept and carried out for every SIGSYS that comes for
 *    another reason.
 *  - SIGSYS is never blocked. Masks lose it on their way to the kernel, and get it back when the program asks; one that
 *    comes while the program thinks it blocked waits here until it is not.
 *  - A handler of the program that interrupts an operation is outside of it: what it calls is the program's. The
 *    kernel calls on_signal, which steps out of the operation, calls the handler, and steps in again. Handlers return
 *    into the runtime's own code, since rt_sigreturn could not be made by another handler.
 *
 * All of this is only so once hw_handlers_start has been called: allocator mode, on kernels that can do it. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <time.h>

#include "base/arch/x86_64/signal.h"
#include "runtime/allocator/operations.h"
#include "runtime/core/core.h"
#include "runtime/hooks/hooks.h"

#define SIGNALS 65
#define SYS_BIT (1ull << (SIGSYS - 1))

static struct {
    bool on;
    struct hw_lock lock;
    void *own_handler;             /* of SIGSYS */
    void *handler[SIGNALS];        /* of the program, behind on_signal */
    uint64_t masks_sys;            /* signals whose handlers are meant to run with SIGSYS blocked */
    struct hw_arch_action program; /* what the program wants of SIGSYS */
} handlers;

/* The program means to have SIGSYS blocked in this thread; one that came meanwhile. */
static __thread bool sys_meant_blocked __attribute__((tls_model("initial-exec")));
static __thread bool sys_waits __attribute__((tls_model("initial-exec")));
static __thread siginfo_t sys_waiting __attribute__((tls_model("initial-exec")));

extern int *__errno_location(void) __attribute__((weak));
extern int __libc_current_sigrtmin(void) __attribute__((weak));

static int answer(long result)
{
    if (!hw_sys_failed(result))
        return (int)result;
    if (__errno_location)
        *__errno_location() = (int)-result;
    return -1;
}

/* ---- handlers ---- */

typedef void handler(int, siginfo_t *, void *);

/* Inside an operation: its state is put aside, so that calls of the allocator from the handler are operations too. */
static __attribute__((noinline)) void call_outside(handler *function, struct hw_operator *op, int number,
                                                   siginfo_t *information, void *context)
{
    struct hw_operator kept = *op;
    struct hw_dispatch_thread *thread = op->dispatch;
    uint32_t count = thread && op->events & HW_EVENTS_INSIDE ? thread->inside_count : 0;
    struct hw_inside seen[HW_INSIDE_EVENTS];
    struct hw_held held[HW_INSIDE_LOCKS];
    uintptr_t critical_lock = thread ? thread->critical_lock : 0;
    uint64_t critical_since = thread ? thread->critical_since : 0;
    uint32_t held_count = count ? thread->held_count : 0;
    bool unwatched = thread && thread->unwatched;
    const struct hw_own_lock own_lock = thread ? thread->own_lock : (struct hw_own_lock){0};
    uint64_t begin = hw_ticks_raw();
    for (uint32_t i = 0; i < count; i++)
        seen[i] = thread->inside[i];
    for (uint32_t i = 0; i < held_count; i++)
        held[i] = thread->held[i];
    op->selector = 0;
    op->events = 0;
    if (thread)
        thread->unwatched = false;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    function(number, information, context);
    for (uint32_t i = 0; i < count; i++)
        thread->inside[i] = seen[i];
    for (uint32_t i = 0; i < held_count; i++)
        thread->held[i] = held[i];
    if (count) {
        thread->inside_count = (uint8_t)count;
        thread->held_count = (uint8_t)held_count;
        thread->critical_lock = critical_lock;
        thread->critical_since = critical_since;
    }
    if (thread) {
        thread->unwatched = unwatched;
        thread->own_lock = own_lock;
    }
    op->timed = kept.timed;
    op->hardware = kept.hardware;
    op->frame = kept.frame;
    op->begin = kept.begin;
    op->own_ticks = kept.own_ticks + (hw_ticks_raw() - begin);
    op->events = kept.events;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    op->selector = kept.selector;
}

/* In the middle of an operation: also where a lock is waited for, of which the kernel need not inform us. */
static bool is_inside(const struct hw_operator *op)
{
    return op && (op->selector || (op->dispatch && op->dispatch->unwatched));
}

static void on_signal(int number, siginfo_t *information, void *context)
{
    struct hw_operator *op = hw_operator_self;
    handler *function = __atomic_load_n((handler **)&handlers.handler[number], __ATOMIC_ACQUIRE);
    if (!function)
        return;
    if (is_inside(op))
        call_outside(function, op, number, information, context);
    else
        function(number, information, context);
    ((uint64_t *)&((ucontext_t *)context)->uc_sigmask)[0] &= ~SYS_BIT; /* it may have been changed there */
}

static void to_kernel(const struct sigaction *action, struct hw_arch_action *kernel)
{
    *kernel = (struct hw_arch_action){
        .handler = (void *)action->sa_sigaction,
        .flags = ((uint64_t)(uint32_t)action->sa_flags & ~HW_ARCH_SA_RESTORER) | HW_ARCH_SA_RESTORER,
        .restorer = (void *)hw_arch_restorer,
        .mask = ((const uint64_t *)&action->sa_mask)[0],
    };
}

static void from_kernel(const struct hw_arch_action *kernel, struct sigaction *action)
{
    *action = (struct sigaction){.sa_flags = (int)(kernel->flags & ~HW_ARCH_SA_RESTORER)};
    action->sa_sigaction = (handler *)kernel->handler;
    ((uint64_t *)&action->sa_mask)[0] = kernel->mask;
}

/* libc keeps some real-time signals for itself. */
static bool is_libcs(int number)
{
    return number < 1 || number >= SIGNALS ||
           (number >= 32 && number < (__libc_current_sigrtmin ? __libc_current_sigrtmin() : 35));
}

/* Lock held. */
static long set_program_handler(int number, struct hw_arch_action *kernel, struct hw_arch_action *old)
{
    void *function = kernel ? kernel->handler : NULL, *before = handlers.handler[number];
    bool masks_sys = kernel && (kernel->mask & SYS_BIT), masked_before = handlers.masks_sys >> (number - 1) & 1;
    if (kernel) {
        kernel->mask &= ~SYS_BIT;
        if (function != (void *)SIG_DFL && function != (void *)SIG_IGN) {
            __atomic_store_n(&handlers.handler[number], function, __ATOMIC_RELEASE);
            kernel->handler = (void *)on_signal;
        }
    }
    long result = hw_sys_program(SYS_rt_sigaction, number, kernel, old, 8);
    if (result < 0)
        handlers.handler[number] = before;
    else if (kernel)
        handlers.masks_sys = (handlers.masks_sys & ~(1ull << (number - 1))) | (uint64_t)masks_sys << (number - 1);
    if (result >= 0 && old->handler == (void *)on_signal)
        old->handler = before;
    if (result >= 0 && masked_before)
        old->mask |= SYS_BIT;
    return result;
}

int hw_handlers_set(int number, const struct sigaction *action, struct sigaction *old, bool own)
{
    HW_REAL(int, sigaction, (int, const struct sigaction *, struct sigaction *));
    struct hw_arch_action kernel, before = {0};
    if (!handlers.on || is_libcs(number))
        return real(number, action, old);
    if (action)
        to_kernel(action, &kernel);
    long result = 0;
    hw_sigset mask = hw_lock_take(&handlers.lock);
    if (number == SIGSYS && !own) {
        before = handlers.program;
        if (action)
            handlers.program = kernel;
    } else if (own)
        result = hw_sys_program(SYS_rt_sigaction, number, action ? &kernel : NULL, &before, 8);
    else
        result = set_program_handler(number, action ? &kernel : NULL, &before);
    hw_lock_drop(&handlers.lock, mask);
    if (result >= 0 && old)
        from_kernel(&before, old);
    return answer(result);
}

/* ---- SIGSYS ---- */

static struct hw_arch_action own_action(void)
{
    return (struct hw_arch_action){
        .handler = handlers.own_handler,
        .flags = SA_SIGINFO | SA_NODEFER | SA_RESTART | HW_ARCH_SA_RESTORER,
        .restorer = (void *)hw_arch_restorer,
    };
}

bool hw_handlers_start(void (*on_sys)(int, siginfo_t *, void *))
{
    handlers.own_handler = (void *)on_sys;
    handlers.lock = (struct hw_lock){0};
    struct hw_arch_action action = own_action(), old;
    if (hw_sys(SYS_rt_sigaction, SIGSYS, &action, &old, 8) < 0)
        return false;
    if (!handlers.on)
        handlers.program = old;
    handlers.on = true;
    return true;
}

bool hw_handlers_intact(void)
{
    struct hw_arch_action now = {0};
    return hw_sys(SYS_rt_sigaction, SIGSYS, 0, &now, 8) == 0 && now.handler == handlers.own_handler;
}

void hw_handlers_thread(void)
{
    uint64_t sys = SYS_BIT, old = 0;
    hw_sys(SYS_rt_sigprocmask, SIG_UNBLOCK, &sys, &old, 8);
    if (old & SYS_BIT)
        sys_meant_blocked = true;
}

static void send_again(const siginfo_t *information)
{
    long pid = hw_sys_program(SYS_getpid), thread = hw_sys_program(SYS_gettid);
    hw_sys_program(SYS_rt_tgsigqueueinfo, pid, thread, SIGSYS, information);
}

/* What would have happened without the runtime. */
static void die(siginfo_t *information)
{
    struct hw_arch_action usual = {.handler = (void *)SIG_DFL};
    hw_sys_program(SYS_rt_sigaction, SIGSYS, &usual, 0, 8);
    send_again(information);
}

void hw_handlers_foreign(siginfo_t *information, void *context)
{
    struct hw_arch_action program = handlers.program;
    handler *function = (handler *)program.handler;
    bool forced = information->si_code > 0; /* by a seccomp filter: no mask keeps it back */
    if (sys_meant_blocked && !forced) {
        sys_waiting = *information;
        sys_waits = true;
        return;
    }
    if (program.handler == (void *)SIG_IGN && !forced)
        return;
    if (program.handler == (void *)SIG_DFL || program.handler == (void *)SIG_IGN || (sys_meant_blocked && forced)) {
        die(information);
        return;
    }
    if (program.flags & (uint64_t)(uint32_t)SA_RESETHAND)
        handlers.program.handler = (void *)SIG_DFL;
    uint64_t mask = program.mask & ~SYS_BIT, old = 0;
    bool meant = sys_meant_blocked;
    sys_meant_blocked = !(program.flags & SA_NODEFER) || (program.mask & SYS_BIT);
    hw_sys_program(SYS_rt_sigprocmask, SIG_BLOCK, &mask, &old, 8);
    struct hw_operator *op = hw_operator_self;
    if (is_inside(op))
        call_outside(function, op, SIGSYS, information, context);
    else
        function(SIGSYS, information, context);
    hw_sys_program(SYS_rt_sigprocmask, SIG_SETMASK, &old, 0, 8);
    sys_meant_blocked = meant;
    ((uint64_t *)&((ucontext_t *)context)->uc_sigmask)[0] &= ~SYS_BIT;
    if (sys_waits && !meant) {
        sys_waits = false;
        send_again(&sys_waiting);
    }
}

/* ---- masks ---- */

static void mean(bool blocked)
{
    sys_meant_blocked = blocked;
    if (!blocked && sys_waits) {
        sys_waits = false;
        send_again(&sys_waiting);
    }
}

/* What is meant for SIGSYS after a change of the mask that succeeded. */
static void follow_mask(long how, uint64_t set)
{
    if (how == SIG_SETMASK)
        mean(set & SYS_BIT);
    else if (set & SYS_BIT)
        mean(how == SIG_BLOCK);
}

long hw_handlers_change_mask(ucontext_t *context, long how, const uint64_t *set, uint64_t *old, size_t size)
{
    uint64_t *mask = (uint64_t *)&context->uc_sigmask, before = mask[0];
    if (size != 8 || (set && how != SIG_BLOCK && how != SIG_UNBLOCK && how != SIG_SETMASK))
        return -EINVAL;
    if (set) {
        uint64_t wanted = *set & ~SYS_BIT & ~(1ull << (SIGKILL - 1)) & ~(1ull << (SIGSTOP - 1));
        mask[0] = how == SIG_BLOCK ? before | wanted : how == SIG_UNBLOCK ? before & ~wanted : wanted;
    }
    if (old)
        *old = before;
    return 0;
}

typedef int mask_function(int, const sigset_t *, sigset_t *);

static int change_mask(mask_function *real, int how, const sigset_t *set, sigset_t *old)
{
    sigset_t without;
    bool meant = sys_meant_blocked;
    if (hw_likely(!handlers.on))
        return real(how, set, old);
    uint64_t wanted = set ? ((const uint64_t *)set)[0] : 0;
    if (set) {
        without = *set;
        ((uint64_t *)&without)[0] &= ~SYS_BIT;
    }
    int result = real(how, set ? &without : NULL, old);
    if (result != 0)
        return result;
    if (old && meant)
        ((uint64_t *)old)[0] |= SYS_BIT;
    if (set)
        follow_mask(how, wanted);
    return 0;
}

HW_EXPORTED(int, pthread_sigmask, (int how, const sigset_t *set, sigset_t *old))
{
    return change_mask((mask_function *)hw_libc(HW_LIBC_pthread_sigmask), how, set, old);
}

HW_EXPORTED(int, sigprocmask, (int how, const sigset_t *set, sigset_t *old))
{
    return change_mask((mask_function *)hw_libc(HW_LIBC_sigprocmask), how, set, old);
}

/* SET without SIGSYS, in *COPY; as it is where nothing has to be changed. */
static const sigset_t *without_sys(const sigset_t *set, sigset_t *copy)
{
    if (hw_likely(!handlers.on) || !set || !(((const uint64_t *)set)[0] & SYS_BIT))
        return set;
    *copy = *set;
    ((uint64_t *)copy)[0] &= ~SYS_BIT;
    return copy;
}

HW_EXPORTED(int, sigsuspend, (const sigset_t *set))
{
    HW_REAL(int, sigsuspend, (const sigset_t *));
    sigset_t copy;
    return real(without_sys(set, &copy));
}

struct pollfd;
HW_EXPORTED(int, ppoll, (struct pollfd * fds, unsigned long count, const struct timespec *timeout, const sigset_t *set))
{
    HW_REAL(int, ppoll, (struct pollfd *, unsigned long, const struct timespec *, const sigset_t *));
    sigset_t copy;
    return real(fds, count, timeout, without_sys(set, &copy));
}

HW_EXPORTED(int, __ppoll_chk,
            (struct pollfd * fds, unsigned long count, const struct timespec *timeout, const sigset_t *set,
             size_t size))
{
    HW_REAL(int, __ppoll_chk, (struct pollfd *, unsigned long, const struct timespec *, const sigset_t *, size_t));
    sigset_t copy;
    return real(fds, count, timeout, without_sys(set, &copy), size);
}

HW_EXPORTED(int, pselect,
            (int count, void *read, void *write, void *other, const struct timespec *timeout, const sigset_t *set))
{
    HW_REAL(int, pselect, (int, void *, void *, void *, const struct timespec *, const sigset_t *));
    sigset_t copy;
    return real(count, read, write, other, timeout, without_sys(set, &copy));
}

struct epoll_event;
HW_EXPORTED(int, epoll_pwait, (int epoll, struct epoll_event *events, int most, int timeout, const sigset_t *set))
{
    HW_REAL(int, epoll_pwait, (int, struct epoll_event *, int, int, const sigset_t *));
    sigset_t copy;
    return real(epoll, events, most, timeout, without_sys(set, &copy));
}

HW_EXPORTED(int, epoll_pwait2,
            (int epoll, struct epoll_event *events, int most, const struct timespec *timeout, const sigset_t *set))
{
    HW_REAL(int, epoll_pwait2, (int, struct epoll_event *, int, const struct timespec *, const sigset_t *));
    sigset_t copy;
    if (!real) /* an older libc: asked for by name, perhaps */
        return answer(-ENOSYS);
    return real(epoll, events, most, timeout, without_sys(set, &copy));
}

/* ---- exec ---- */

void hw_handlers_for_exec(bool begin)
{
    if (!handlers.on || hw_quiet)
        return;
    uint64_t sys = SYS_BIT;
    if (handlers.program.handler == (void *)SIG_IGN) { /* that is handed on */
        const struct hw_arch_action action = begin ? handlers.program : own_action();
        hw_sys(SYS_rt_sigaction, SIGSYS, &action, 0, 8);
    }
    if (sys_meant_blocked)
        hw_sys(SYS_rt_sigprocmask, begin ? SIG_BLOCK : SIG_UNBLOCK, &sys, 0, 8);
}
