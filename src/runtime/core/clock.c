/* clock.c - ticks and how they become nanoseconds.
 *
 * Ticks are the time stamp counter where it is invariant and the kernel itself keeps time by it, else nanoseconds of
 * CLOCK_MONOTONIC. The pair (ticks, ns since the start) in the file is refreshed during the run: the ratio over the
 * whole run is what readers convert with, so that no calibration time is spent at the start. */
#include "runtime/core/core.h"

#include <sys/auxv.h>
#include <time.h>

#define CLOCK_SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

intptr_t hw_rseq_cpu_offset, hw_rseq_watch_offset;

/* libc's vDSO function: takes no lock, allocates nothing. */
extern int clock_gettime(clockid_t, struct timespec *) __attribute__((weak));
/* glibc 2.35 and newer register the rseq area and say where it is. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

uint64_t hw_clock_monotonic_ns(void)
{
    struct timespec now = {0, 0};
    if (!clock_gettime || clock_gettime(CLOCK_MONOTONIC, &now) != 0)
        return hw_clock_read(CLOCK_MONOTONIC);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static uint64_t frozen; /* ticks; 0: the clock runs */

void hw_clock_freeze(void)
{
    frozen = hw_ticks_raw();
    hw_runtime.clock_is_tsc = false;
}

void hw_clock_quiet(void)
{
    static const char *const sources[] = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page"};
    char source[64];
    hw_read_file(CLOCK_SOURCE, source, sizeof source);
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        if (hw_starts_with(source, sources[i]))
            return;
    if (!hw_runtime.clock_is_tsc) {
        hw_note(HW_NOTE_OTHER, "the program gave up system calls, and here the clock needs one: no times from then on");
        hw_clock_freeze();
    }
}

uint64_t hw_clock_slow(void)
{
    return frozen ? frozen : hw_clock_monotonic_ns();
}

void hw_clock_start(void)
{
    char source[32];
    bool kernel_trusts = hw_read_file(CLOCK_SOURCE, source, sizeof source) > 0 && hw_starts_with(source, "tsc");
    hw_runtime.clock_is_tsc = kernel_trusts && hw_arch_ticks_invariant();
    if (&__rseq_offset && &__rseq_size && __rseq_size) { /* struct rseq: cpu_id_start, cpu_id, rseq_cs */
        hw_rseq_cpu_offset = __rseq_offset + 4;
        hw_rseq_watch_offset = __rseq_offset + 8;
    }
    hw_runtime.ns_per_tick = 1ull << 32; /* of a time stamp counter: until the start has taken its time */
    hw_runtime.clock_start_ns = hw_clock_monotonic_ns();
    hw_runtime.tick_base = hw_ticks_raw();
}

void hw_clock_refresh(void)
{
    uint64_t ns = hw_clock_monotonic_ns() - hw_runtime.clock_start_ns;
    uint64_t ticks = hw_ticks_raw() - hw_runtime.tick_base;
    struct hw_process_info *process = hw_runtime.process;
    if (process->counting != HW_COUNTING_STOPPED)
        process->end_tick = ticks;
    if (hw_runtime.clock_is_tsc && ns > 0) {
        /* A reader may come between the two stores: it then uses a pair that is a few parts in a thousand off at most,
         * because both grow by one timeline interval. */
        process->clock_ticks = ticks;
        process->clock_ns = ns;
        hw_runtime.ns_per_tick = (uint64_t)((double)ns / (double)ticks * 0x1p32);
    } else if (!hw_runtime.clock_is_tsc) {
        process->clock_ticks = 1;
        process->clock_ns = 1;
    }
}
