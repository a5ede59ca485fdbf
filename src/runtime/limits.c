/* limits.c - limits that a program sets on itself, and what the runtime's reservations would do to them.
 *
 * The runtime reserves address space in the terabytes, of which next to nothing is ever touched. Limits on address
 * space and locked memory count reservations, so they are widened by that much, and the program sees its own figures.
 */
#include "runtime/runtime.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/prctl.h>

#define RLIMIT_DATA_ 2
#define RLIMIT_AS_   9

struct limit {
    uint64_t soft, hard;
};

static uint64_t widening; /* what was added to a limit that the program has set; put back before exec */

static bool is_widened(int resource)
{
    return resource == RLIMIT_AS_ || resource == RLIMIT_DATA_;
}

static uint64_t plus(uint64_t value, uint64_t more)
{
    return value > ~0ull - 1 - more ? ~0ull : value + more; /* ~0 stays "no limit" */
}

static struct limit widen(const struct limit *limit)
{
    widening = hw_own_bytes();
    return (struct limit){plus(limit->soft, widening), plus(limit->hard, widening)};
}

static void narrow(struct limit *limit)
{
    if (limit->soft != ~0ull && limit->soft > widening)
        limit->soft -= widening;
    if (limit->hard != ~0ull && limit->hard > widening)
        limit->hard -= widening;
}

static bool on(void)
{
    return hw_runtime.state == HW_STATE_ON;
}

HW_EXPORT int setrlimit(int resource, const struct limit *limit);
HW_EXPORT int setrlimit(int resource, const struct limit *limit)
{
    HW_REAL(int, setrlimit, (int, const struct limit *));
    if (!on() || !is_widened(resource) || !limit)
        return real(resource, limit);
    struct limit wider = widen(limit);
    return real(resource, &wider);
}
extern __typeof__(setrlimit) setrlimit64 __attribute__((alias("setrlimit"), visibility("default")));

HW_EXPORT int getrlimit(int resource, struct limit *limit);
HW_EXPORT int getrlimit(int resource, struct limit *limit)
{
    HW_REAL(int, getrlimit, (int, struct limit *));
    int result = real(resource, limit);
    if (result == 0 && on() && is_widened(resource) && widening)
        narrow(limit);
    return result;
}
extern __typeof__(getrlimit) getrlimit64 __attribute__((alias("getrlimit"), visibility("default")));

HW_EXPORT int prlimit(int pid, int resource, const struct limit *fresh, struct limit *old);
HW_EXPORT int prlimit(int pid, int resource, const struct limit *fresh, struct limit *old)
{
    HW_REAL(int, prlimit, (int, int, const struct limit *, struct limit *));
    bool own = on() && is_widened(resource) && (pid == 0 || pid == (int)hw_sys(SYS_getpid));
    uint64_t before = widening;
    struct limit wider;
    if (own && fresh)
        wider = widen(fresh);
    int result = real(pid, resource, own && fresh ? &wider : fresh, old);
    if (result == 0 && own && old && before)
        narrow(old);
    return result;
}
extern __typeof__(prlimit) prlimit64 __attribute__((alias("prlimit"), visibility("default")));

/* The next program gets the limits as this one set them. False when there is nothing to put back. */
bool hw_limits_for_exec(bool begin)
{
    if (!widening)
        return false;
    static const int resources[] = {RLIMIT_AS_, RLIMIT_DATA_};
    for (int i = 0; i < 2; i++) {
        struct limit limit;
        if (hw_sys(SYS_prlimit64, 0, resources[i], 0, &limit) != 0)
            continue;
        if (begin)
            narrow(&limit);
        else
            limit.soft = plus(limit.soft, widening); /* the hard limit stays down: it cannot be raised again */
        hw_sys(SYS_prlimit64, 0, resources[i], &limit, 0);
    }
    return true;
}

/* Locking all memory would fill every reservation: pages are locked as they are touched instead. Where even that is
 * refused because of the size of the reservations, nothing is locked. */
HW_EXPORT int mlockall(int flags);
HW_EXPORT int mlockall(int flags)
{
    HW_REAL(int, mlockall, (int));
    if (!on())
        return real(flags);
    long result = hw_sys(SYS_mlockall, flags | 4 /* MCL_ONFAULT */);
    if (result == -ENOMEM) {
        hw_note(HW_NOTE_OTHER, "mlockall was not carried out: it would have to lock what Heapwise reserves, too");
        return 0;
    }
    return result < 0 ? real(flags) : 0; /* an old kernel, a wrong flag: as it is */
}

/* ---- programs that give up system calls ---- */

/* From now on the runtime makes none: a filter might kill the program for it. */
static void become_quiet(void)
{
    if (!on() || hw_fork_pending() || hw_quiet)
        return;
    hw_trap_stop(HW_SAMPLE_SECCOMP);
    hw_dispatch_quiet();
    hw_file_make_room();
    hw_word_sampler_stop();
    hw_note(HW_NOTE_OTHER, "the program gave up system calls (seccomp): no timeline from then on, and no room for more "
                           "stacks than had been prepared");
    hw_runtime.timeline_next = ~0ull;
    hw_quiet = true;
}

HW_EXPORT int prctl(int option, ...);
HW_EXPORT int prctl(int option, ...)
{
    HW_REAL(int, prctl, (int, unsigned long, unsigned long, unsigned long, unsigned long));
    va_list list;
    va_start(list, option);
    unsigned long a = va_arg(list, unsigned long), b = va_arg(list, unsigned long), c = va_arg(list, unsigned long),
                  d = va_arg(list, unsigned long);
    va_end(list);
    if (option == PR_SET_SECCOMP)
        become_quiet();
    if ((option == PR_SET_SECCOMP && a == 1 /* strict: without the counter, too */) ||
        (option == PR_SET_TSC && a == PR_TSC_SIGSEGV)) {
        hw_note(HW_NOTE_OTHER, "the program gave up the time stamp counter: no times from then on");
        hw_clock_freeze();
    }
    return real(option, a, b, c, d);
}

/* libseccomp's way. */
HW_EXPORT long syscall(long number, ...);
HW_EXPORT long syscall(long number, ...)
{
    HW_REAL(long, syscall, (long, long, long, long, long, long, long));
    va_list list;
    va_start(list, number);
    long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long), d = va_arg(list, long),
         e = va_arg(list, long), f = va_arg(list, long);
    va_end(list);
    if (number == SYS_seccomp && a != 2 /* SECCOMP_GET_ACTION_AVAIL */ && a != 3 /* SECCOMP_GET_NOTIF_SIZES */)
        become_quiet();
    if (number == SYS_exit_group)
        hw_process_end(HW_EXIT_CODE, (int)a & 0xff);
    return real(number, a, b, c, d, e, f);
}
