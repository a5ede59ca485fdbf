/* perf.c - samples of accesses that the processor picks: perf_event_open for each thread.
 *
 * An event is armed for one sample. When it has come the kernel disables the event, puts a record into the thread's
 * ring and has a SIGTRAP delivered on the way back to the program: so a block is looked up right after it was touched,
 * no system call of the program is interrupted, what the handler does is not sampled, and if the signal does not arrive
 * (a debugger has kept it, or the program blocks it) nothing more comes. The handler reads the ring and arms again.
 *
 * single_steps.c owns the threads and the signal. */
#include "base/arch/x86_64/decode.h"
#include "runtime/core/core.h"
#include "runtime/samples/perf.h"

#include <errno.h>
#include <sys/utsname.h>

#define RING_PAGES 2u  /* the first is the kernel's */
#define RATE       16u /* samples wanted for each burst there would be, in code of 10^9 accesses a second */

static struct {
    struct hw_perf_source source;
    uint64_t period;
} perf;

/* ---- period ---- */

static bool is_prime(uint64_t n)
{
    for (uint64_t d = 3; d * d <= n; d += 2)
        if (n % d == 0)
            return false;
    return n & 1;
}

/* No loop keeps step with a prime. IBS wants a multiple of 16, and draws the low bits itself. */
static uint64_t usual_period(bool ibs)
{
    uint64_t period = 1000000000 / (hw_options.sample_accesses * RATE);
    if (ibs)
        return period & ~15ull;
    for (period |= 1; !is_prime(period); period += 2)
        ;
    return period;
}

/* ---- one thread ---- */

/* Whether the I-th descriptor is still what was opened: the program may have closed it, and have the number for
 * something else. */
static bool is_event(const struct hw_perf_thread *thread, uint32_t i)
{
    uint64_t id = 0;
    return hw_sys(SYS_ioctl, thread->fd[i], PERF_EVENT_IOC_ID, &id) == 0 && id == thread->id[i];
}

static int open_event(const struct hw_perf_event *event, uint64_t data, int group)
{
    struct perf_event_attr attributes;
    hw_perf_attributes(event, perf.period, data, &attributes);
    return hw_fd_out_of_the_way((int)hw_sys(SYS_perf_event_open, &attributes, 0, -1, group, PERF_FLAG_FD_CLOEXEC));
}

/* The ring belongs to the first event that samples; the others write into it as well. */
static int map_ring(struct hw_perf_thread *thread, int fd)
{
    long mapping = hw_mmap(0, RING_PAGES * HW_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (hw_sys_failed(mapping))
        return (int)mapping;
    thread->mapping = (void *)mapping;
    return hw_perf_ring_open(&thread->ring, thread->mapping, RING_PAGES) ? 0 : -EINVAL;
}

static int open_events(struct hw_perf_thread *thread)
{
    const struct hw_perf_source *source = &perf.source;
    int group = -1, ring = -1;
    for (uint32_t i = 0; i < source->count; i++) {
        int fd = open_event(&source->event[i], (uint64_t)(uintptr_t)thread + i, group);
        if (fd < 0)
            return fd;
        hw_sys(SYS_ioctl, fd, PERF_EVENT_IOC_ID, &thread->id[thread->count]);
        thread->fd[thread->count++] = fd;
        group = source->event[i].leader ? fd : -1;
        if (source->event[i].leader)
            continue;
        int problem = ring < 0 ? map_ring(thread, fd) : (int)hw_sys(SYS_ioctl, fd, PERF_EVENT_IOC_SET_OUTPUT, ring);
        if (problem < 0)
            return problem;
        ring = ring < 0 ? fd : ring;
    }
    return 0;
}

int hw_perf_open(struct hw_perf_thread *thread)
{
    *thread = (struct hw_perf_thread){0};
    int problem = open_events(thread);
    if (problem < 0)
        hw_perf_close(thread);
    return -problem;
}

void hw_perf_forget(struct hw_perf_thread *thread)
{
    for (uint32_t i = 0; i < thread->count; i++)
        if (is_event(thread, i))
            hw_close(thread->fd[i]);
    thread->count = 0;
    thread->mapping = NULL;
}

void hw_perf_close(struct hw_perf_thread *thread)
{
    void *mapping = thread->mapping;
    hw_perf_forget(thread);
    if (mapping)
        hw_munmap(mapping, RING_PAGES * HW_PAGE);
}

void hw_perf_arm(struct hw_perf_thread *thread)
{
    for (uint32_t i = 0; i < thread->count; i++)
        if (!perf.source.event[i].leader)
            hw_sys(SYS_ioctl, thread->fd[i], PERF_EVENT_IOC_REFRESH, 1);
}

/* ---- samples ---- */

static void take(const struct hw_perf_sample *sample, uint64_t stack, struct hw_hits *hits)
{
    struct hw_sample_info *sums = &hits->sums;
    uint32_t flags = hw_perf_sample_flags(sample);
    flags = flags ? flags : perf.source.unsaid_flags;
    bool in_runtime = sample->pc >= hw_runtime.text_start && sample->pc < hw_runtime.text_end;
    sums->in_runtime += in_runtime;
    sums->in_kernel += sample->in_kernel;
    if (in_runtime || sample->in_kernel)
        return;
    sums->instructions++;
    if (flags && sample->address)
        hw_samples_take(hits, &(struct hw_touch){.address = sample->address, .flags = flags}, sample->pc,
                        sample->stack ? sample->stack : stack);
}

void hw_perf_take(struct hw_perf_thread *thread, uint64_t stack, struct hw_hits *hits)
{
    struct hw_perf_sample sample;
    uint64_t lost = 0;
    enum hw_perf_read what;
    if (!thread->mapping)
        return;
    while ((what = hw_perf_ring_next(&thread->ring, &sample, &lost)) != HW_PERF_EMPTY) {
        if (what == HW_PERF_SAMPLE)
            take(&sample, stack, hits);
        hits->sums.lost += what == HW_PERF_LOST ? lost : what == HW_PERF_BROKEN;
        hits->sums.throttled += what == HW_PERF_THROTTLE;
    }
}

bool hw_perf_again(struct hw_perf_thread *thread, uint64_t data)
{
    uint64_t index = data - (uint64_t)(uintptr_t)thread;
    if (index >= thread->count)
        return true; /* of events that have been closed since */
    return is_event(thread, (uint32_t)index) && hw_sys(SYS_ioctl, thread->fd[index], PERF_EVENT_IOC_REFRESH, 1) == 0;
}

/* ---- start ---- */

/* 0, or why this choice of events cannot be had. */
static int try_source(bool estimated)
{
    static struct hw_perf_thread trial;
    const char *devices = *hw_options.event_sources ? hw_options.event_sources : HW_PERF_DEVICES;
    if (!hw_perf_source_find(devices, estimated, &perf.source))
        return ENODEV;
    perf.period = hw_options.sample_period ? hw_options.sample_period : usual_period(perf.source.event[0].precise == 0);
    int problem = hw_perf_open(&trial);
    if (!problem)
        hw_perf_close(&trial);
    return problem;
}

int hw_perf_begin(void)
{
    struct utsname name;
    if (hw_streq(hw_options.event_sources, "none"))
        return ECANCELED;
    if (hw_sys(SYS_uname, &name) != 0 || !hw_perf_kernel_will_do(name.release))
        return ENOSYS;
    int problem = try_source(false);
    if (problem && perf.source.estimated_loads && try_source(true) == 0)
        problem = 0;
    return problem;
}

uint64_t hw_perf_period(void)
{
    return perf.source.exact ? perf.period : 0;
}
