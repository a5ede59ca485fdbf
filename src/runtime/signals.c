/* signals.c - the signal by which `heapwise dump` asks for a dump, and what the program sees of it: nothing.
 *
 * It is handled where accesses are counted (their cells can only be read inside the process) or where dump-signal= asks
 * for it, and only if nobody else handles it. Asked what happens at this signal, libc answers as if there were no
 * handler; a program that sets one has it from then on, and the profile says that there is no signal any more. */
#include "runtime/runtime.h"

#include <signal.h>

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

/* At start, in a forked child, and when counting begins later. */
void hw_dump_signal_start(void)
{
    bool wanted = hw_options.dump_signal != HW_NONE || hw_runtime.process->mode == HW_MODE_ACCESS;
    uint32_t number = hw_options.dump_signal != HW_NONE ? hw_options.dump_signal : USUAL_SIGNAL;
    if (!installed && wanted && number) {
        HW_REAL(int, sigaction, (int, const struct sigaction *, struct sigaction *));
        struct sigaction old, action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
        for (size_t i = 0; i < sizeof action.sa_mask / 8; i++)
            ((uint64_t *)&action.sa_mask)[i] = ~0ull;
        if (real && real((int)number, NULL, &old) == 0 && !(old.sa_flags & SA_SIGINFO) && old.sa_handler == SIG_DFL &&
            real((int)number, &action, NULL) == 0)
            installed = number;
        else if (hw_options.dump_signal != HW_NONE)
            hw_message("dump-signal: the signal cannot be handled", NULL);
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

HW_EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    HW_REAL(int, sigaction, (int, const struct sigaction *, struct sigaction *));
    bool ours = installed && (uint32_t)number == installed;
    int result = real(number, action, old);
    if (hw_likely(!ours) || result != 0)
        return result;
    if (old && old->sa_sigaction == on_signal)
        *old = (struct sigaction){.sa_handler = SIG_DFL};
    if (action)
        give_up();
    return result;
}

HW_EXPORT __sighandler_t signal(int number, __sighandler_t handler)
{
    HW_REAL(__sighandler_t, signal, (int, __sighandler_t));
    bool ours = installed && (uint32_t)number == installed;
    __sighandler_t old = real(number, handler);
    if (hw_likely(!ours) || old == SIG_ERR)
        return old;
    give_up();
    return (void *)old == (void *)on_signal ? SIG_DFL : old;
}
