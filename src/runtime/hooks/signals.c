/* signals.c - signals that the runtime handles, and what the program sees of that: nothing.
 *
 * The signal by which `heapwise dump` asks for a dump. It is handled where accesses are counted (their cells can only
 * be read inside the process), with start=off (by which `heapwise start` asks), or where dump-signal= asks for it, and only if nobody else handles it. A program that
 * sets a handler of its own has the signal from then on, and the profile says that there is none any more.
 *
 * Signals that kill, where accesses are counted and the program leaves them at that: what lies in cells is harvested,
 * then the signal does what it would have done (SA_RESETHAND: the kernel has put back the default before the handler
 * runs, whatever happens there). SIGKILL remains.
 *
 * Asked what happens at such a signal, libc answers as if there were no handler. */
#include <signal.h>

#include "runtime/access/access.h"
#include "runtime/allocator/allocator.h"
#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/hooks/hooks.h"
#include "runtime/samples/samples.h"

#define USUAL_SIGNAL 62 /* SIGRTMAX - 2: a real-time signal in the middle of nowhere */

extern __typeof__(sigaction) sigaction __attribute__((weak));

static uint32_t installed; /* number of the signal; 0: none */

/* `heapwise dump` sends the number of its request along; a signal from anybody else asks for a dump, too. */
static void on_signal(int number, siginfo_t *information, void *context)
{
    (void)number;
    (void)context;
    hw_dump_signalled(information->si_code == SI_QUEUE, (uint32_t)information->si_value.sival_int);
}

/* ---- signals that kill ---- */

#define BIT(signal) (1u << (signal))
/* Bits are numbers of signals. */
#define KILLING                                                                                                        \
    (BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGILL) | BIT(SIGHUP) | BIT(SIGINT) | BIT(SIGQUIT) |               \
     BIT(SIGTRAP) | BIT(SIGABRT) | BIT(SIGUSR1) | BIT(SIGUSR2) | BIT(SIGPIPE) | BIT(SIGALRM) | BIT(SIGTERM) |          \
     BIT(SIGSTKFLT) | BIT(SIGXCPU) | BIT(SIGXFSZ) | BIT(SIGVTALRM) | BIT(SIGPROF) | BIT(SIGIO) | BIT(SIGPWR) |         \
     BIT(SIGSYS))

/* For handlers of the runtime's own. */
static int install(int number, const struct sigaction *action, struct sigaction *old)
{
    return hw_handlers_set(number, action, old, true);
}

static uint32_t stood_in_for; /* signals whose default action is ours to begin with */

static inline bool is_killing(int number)
{
    return number > 0 && number < 32 && (stood_in_for >> number & 1);
}

static void on_killing_signal(int number, siginfo_t *information, void *context)
{
    hw_dump_killed(number, context);
    /* Sent again with all that is known of it, it comes as soon as this function has returned. */
    long pid = hw_sys_program(SYS_getpid), thread = hw_sys_program(SYS_gettid);
    hw_sys_program(SYS_rt_tgsigqueueinfo, pid, thread, number, information);
}

static const struct sigaction killing_action = {
    .sa_sigaction = on_killing_signal,
    .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND,
    .sa_mask = {{~0ul, ~0ul, ~0ul, ~0ul, ~0ul, ~0ul, ~0ul, ~0ul, ~0ul, ~0ul, ~0ul, ~0ul, ~0ul, ~0ul, ~0ul, ~0ul}},
};

static void stand_in(void)
{
    struct sigaction old;
    if (!hw_libc(HW_LIBC_sigaction) || hw_runtime.pid == 1 /* the kernel ignores what init does not handle */)
        return;
    for (int number = 1; number < 32; number++)
        if ((KILLING & BIT(number)) && !is_killing(number) && install(number, NULL, &old) == 0 &&
            (old.sa_flags & SA_SIGINFO || old.sa_handler != SIG_DFL || install(number, &killing_action, NULL) == 0))
            stood_in_for |= BIT(number);
}

/* ---- the dump signal ---- */

/* At start, in a forked child, and when counting begins later. */
void hw_signals_start(void)
{
    if (hw_planes_on() || hw_options.leaks || hw_options.pinned)
        stand_in();
    bool wanted = hw_options.dump_signal != HW_NONE || hw_planes_on() || hw_options.pinned || hw_options.contents ||
                  hw_options.waits;
    uint32_t number = hw_options.dump_signal != HW_NONE ? hw_options.dump_signal : USUAL_SIGNAL;
    if (!installed && wanted && number) {
        struct sigaction old, action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
        for (size_t i = 0; i < sizeof action.sa_mask / 8; i++)
            ((uint64_t *)&action.sa_mask)[i] = ~0ull;
        if (hw_libc(HW_LIBC_sigaction) && install((int)number, NULL, &old) == 0 && !(old.sa_flags & SA_SIGINFO) &&
            old.sa_handler == SIG_DFL && install((int)number, &action, NULL) == 0)
            installed = number;
        else if (hw_options.dump_signal != HW_NONE)
            hw_trouble("dump-signal: the signal cannot be handled", NULL, 0);
    }
    hw_runtime.process->dump_signal = installed;
}

/* The program takes the signal for itself. */
static void give_up(void)
{
    installed = 0;
    if (hw_runtime.state == HW_STATE_ON && !hw_fork_pending())
        hw_runtime.process->dump_signal = 0;
}

void hw_signals_quiet(void)
{
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    struct sigaction now;
    for (int number = 1; number < 65; number++)
        if ((is_killing(number) || (uint32_t)number == installed) && install(number, NULL, &now) == 0 &&
            (now.sa_sigaction == on_signal || now.sa_sigaction == on_killing_signal))
            install(number, &usual, NULL);
    stood_in_for = 0;
    give_up();
}

/* ---- what the program asks for ---- */

static bool is_default(const struct sigaction *action)
{
    return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_DFL;
}

static bool is_own_handler(const void *handler)
{
    return handler == (void *)on_signal || handler == (void *)on_killing_signal || hw_trap_is_handler(handler);
}

/* A signal that samples of accesses need: left as it is when the program wants it to do what it does by default, given
 * up when the program wants anything else of it. True: left. */
static bool keep_for_samples(int number, bool usual)
{
    if (hw_likely(!hw_trap_uses(number)))
        return false;
    if (!usual)
        hw_trap_stop(number == SIGTRAP ? HW_SAMPLE_TRAP_TAKEN : HW_SAMPLE_SIGNAL_TAKEN);
    return usual;
}

HW_EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    bool ours = installed && (uint32_t)number == installed;
    if (is_killing(number) && action && is_default(action))
        action = &killing_action;
    if (action && keep_for_samples(number, is_default(action)))
        action = NULL;
    int result = hw_handlers_set(number, action, old, action == &killing_action);
    if (result != 0)
        return result;
    if (old && is_own_handler((void *)old->sa_sigaction))
        *old = (struct sigaction){.sa_handler = SIG_DFL};
    if (ours && action)
        give_up();
    return result;
}

static __sighandler_t as_program_sees(__sighandler_t handler)
{
    return is_own_handler((void *)handler) ? SIG_DFL : handler;
}

/* What libc's does. */
static __sighandler_t signal_by_sigaction(int number, __sighandler_t handler)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
    if (number > 0 && number < 65)
        ((uint64_t *)&action.sa_mask)[0] = 1ull << (number - 1);
    return hw_handlers_set(number, &action, &old, false) == 0 ? old.sa_handler : SIG_ERR;
}

HW_EXPORT __sighandler_t signal(int number, __sighandler_t handler)
{
    HW_REAL(__sighandler_t, signal, (int, __sighandler_t));
    bool ours = installed && (uint32_t)number == installed;
    if (is_killing(number) && handler == SIG_DFL) {
        struct sigaction old;
        return sigaction(number, &killing_action, &old) == 0 ? old.sa_handler : SIG_ERR;
    }
    if (keep_for_samples(number, handler == SIG_DFL))
        return SIG_DFL;
    __sighandler_t old = hw_dispatch_on ? signal_by_sigaction(number, handler) : real(number, handler);
    if (ours && old != SIG_ERR)
        give_up();
    return as_program_sees(old);
}
