/* operation_events.c - events of the processor during single operations of the allocator.
 *
 * Each thread that comes here opens a group of counters (perf_event_open), which is read before and after an operation;
 * what reading adds by itself was measured at the start and is subtracted. Without counters of the processor, faults
 * and switches come from getrusage, which needs no descriptor. One operation in a hundred is measured, at most a
 * thousand a second in each thread.
 *
 * The program may close our descriptors, and have their numbers for something else: before each read the kernel is
 * asked whether it is still the counter. */
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/resource.h>

#include "runtime/allocator/operations.h"
#include "runtime/core/core.h"
#include "runtime/core/memory.h"

#define DISTANCE_NS         1000000ull /* from one measured operation of a thread to the next */
#define GROUPS_MOST         64u        /* threads with descriptors at once */
#define TRIALS              8
#define ROWS                (HW_SIZE_BUCKETS * HW_PHASES * HW_OPERATION_KINDS)
#define BY_RUSAGE           (1u << HW_EVENT_PAGE_FAULTS | 1u << HW_EVENT_SWITCHES)
#define CACHE_MISSES(cache) ((cache) | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16)

/* The leader of a group comes first: of those of the processor if there are any. */
static const struct event {
    uint8_t event; /* enum hw_operation_event */
    uint32_t type;
    uint64_t config;
} by_processor[HW_EVENT_FDS] =
    {
        {HW_EVENT_INSTRUCTIONS, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
        {HW_EVENT_CACHE_MISSES, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
        {HW_EVENT_DTLB_MISSES, PERF_TYPE_HW_CACHE, CACHE_MISSES(PERF_COUNT_HW_CACHE_DTLB)},
        {HW_EVENT_PAGE_FAULTS, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
},
  by_kernel[] = {
      {HW_EVENT_PAGE_FAULTS, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
      {HW_EVENT_CPU_NS, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
      {HW_EVENT_SWITCHES, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
};

static struct {
    struct event event[HW_EVENT_FDS];
    uint32_t count;   /* of them; 0: getrusage serves */
    uint32_t present; /* bits 1 << enum hw_operation_event */
    bool off;
    uint32_t groups;   /* open */
    uint64_t distance; /* DISTANCE_NS in ticks */
    uint64_t of_reading[HW_OPERATION_EVENTS];
    uint16_t *row; /* entry + 1 of each bucket, phase and kind */
} events;

/* What a group of counters gives when it is read. */
struct reading {
    uint64_t count, enabled, running;
    uint64_t value[HW_EVENT_FDS];
};

/* ---- descriptors ---- */

/* The descriptor of a new counter of the calling thread, in the group of LEADER unless that is -1; or -errno. */
static int open_event(const struct event *event, int leader)
{
    struct perf_event_attr attributes = {
        .type = event->type,
        .size = sizeof attributes,
        .config = event->config,
        .read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    return hw_fd_out_of_the_way((int)hw_sys(SYS_perf_event_open, &attributes, 0, -1, leader, PERF_FLAG_FD_CLOEXEC));
}

static bool is_event(const struct hw_dispatch_thread *thread, uint32_t i)
{
    uint64_t id = 0;
    return hw_sys(SYS_ioctl, thread->event_fd[i], PERF_EVENT_IOC_ID, &id) == 0 && id == thread->event_id[i];
}

void hw_hardware_close(struct hw_dispatch_thread *thread)
{
    if (!thread->event_count)
        return;
    for (uint32_t i = 0; i < thread->event_count; i++)
        if (is_event(thread, i))
            hw_close(thread->event_fd[i]);
    thread->event_count = 0;
    thread->events_tried = false;
    __atomic_fetch_sub(&events.groups, 1, __ATOMIC_RELAXED);
}

/* False: the thread has no counters. */
static bool open_group(struct hw_dispatch_thread *thread)
{
    if (thread->event_count || thread->events_tried)
        return thread->event_count != 0;
    thread->events_tried = true;
    if (__atomic_fetch_add(&events.groups, 1, __ATOMIC_RELAXED) >= GROUPS_MOST) {
        __atomic_fetch_sub(&events.groups, 1, __ATOMIC_RELAXED);
        return false;
    }
    thread->event_count = 1; /* for _close: groups counts it */
    for (uint32_t i = 0; i < events.count; i++) {
        int fd = open_event(&events.event[i], i ? thread->event_fd[0] : -1);
        if (fd < 0 || hw_sys(SYS_ioctl, fd, PERF_EVENT_IOC_ID, &thread->event_id[i]) != 0) {
            if (fd >= 0)
                hw_close(fd);
            if (i == 0)
                thread->event_fd[0] = -1;
            hw_hardware_close(thread);
            thread->events_tried = true;
            return false;
        }
        thread->event_fd[i] = fd;
        thread->event_count = (uint8_t)(i + 1);
    }
    return true;
}

/* ---- reading ---- */

static bool read_group(struct hw_dispatch_thread *thread, uint64_t values[HW_OPERATION_EVENTS])
{
    struct reading reading;
    if (!open_group(thread) || !is_event(thread, 0))
        return false;
    long size = hw_sys(SYS_read, thread->event_fd[0], &reading, sizeof reading);
    if (size < (long)(3 + events.count) * 8 || reading.count != events.count || reading.running != reading.enabled)
        return false; /* counters that take turns with others' count nothing now and then */
    for (uint32_t i = 0; i < events.count; i++)
        values[events.event[i].event] = reading.value[i];
    return true;
}

static bool read_usage(uint64_t values[HW_OPERATION_EVENTS])
{
    struct rusage usage;
    if (hw_sys(SYS_getrusage, RUSAGE_THREAD, &usage) != 0)
        return false;
    values[HW_EVENT_PAGE_FAULTS] = (uint64_t)usage.ru_minflt + (uint64_t)usage.ru_majflt;
    values[HW_EVENT_SWITCHES] = (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
    return true;
}

static bool read_events(struct hw_dispatch_thread *thread, uint64_t values[HW_OPERATION_EVENTS])
{
    for (uint32_t i = 0; i < HW_OPERATION_EVENTS; i++)
        values[i] = 0;
    return events.count ? read_group(thread, values) : read_usage(values);
}

bool hw_hardware_begin(struct hw_operator *op)
{
    struct hw_dispatch_thread *thread = op->dispatch;
    uint64_t now = hw_ticks_raw();
    if (events.off || hw_quiet || !thread || now < thread->events_next)
        return false;
    thread->events_next = now + events.distance;
    return read_events(thread, thread->event_begin);
}

/* ---- where they go ---- */

static struct hw_operation_events *row_of(uint32_t bucket, enum hw_phase phase, enum hw_operation_kind kind)
{
    uint16_t *row = &events.row[(bucket * HW_PHASES + phase) * HW_OPERATION_KINDS + kind];
    uint32_t index = __atomic_load_n(row, __ATOMIC_ACQUIRE);
    if (!index) {
        hw_sigset old = hw_lock_take(&hw_runtime.lock);
        uint32_t fresh = *row ? HW_NONE : hw_pool_take(HW_POOL_OPERATION_EVENTS, 1);
        if (fresh != HW_NONE) {
            *HW_ENTRY(HW_POOL_OPERATION_EVENTS, struct hw_operation_events, fresh) = (struct hw_operation_events){
                .bucket = bucket, .phase = (uint16_t)phase, .kind = (uint16_t)kind, .present = events.present};
            hw_pool_publish(HW_POOL_OPERATION_EVENTS);
            __atomic_store_n(row, (uint16_t)(fresh + 1), __ATOMIC_RELEASE);
        }
        index = *row;
        hw_lock_drop(&hw_runtime.lock, old);
    }
    return index ? HW_ENTRY(HW_POOL_OPERATION_EVENTS, struct hw_operation_events, index - 1) : NULL;
}

static uint64_t less(uint64_t value, uint64_t by)
{
    return value > by ? value - by : 0;
}

void hw_hardware_end(struct hw_operator *op, enum hw_phase phase, enum hw_operation_kind kind, uint32_t bucket)
{
    uint64_t now[HW_OPERATION_EVENTS];
    struct hw_dispatch_thread *thread = op->dispatch;
    if (!thread || !read_events(thread, now))
        return;
    struct hw_operation_events *row = row_of(bucket, phase, kind);
    if (!row)
        return;
    __atomic_fetch_add(&row->samples, 1, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < HW_OPERATION_EVENTS; i++)
        if (events.present >> i & 1)
            __atomic_fetch_add(&row->sum[i], less(now[i] - thread->event_begin[i], events.of_reading[i]),
                               __ATOMIC_RELAXED);
}

/* ---- start ---- */

static void add_event(const struct event *event)
{
    events.event[events.count++] = *event;
    events.present |= 1u << event->event;
}

/* Which of the processor's events can be had; why not, if none can: 0 or a positive errno. */
static int choose(void)
{
    int problem = 0, leader = -1;
    events.count = events.present = 0;
    if (hw_streq(hw_options.operation_events, "software")) {
        for (size_t i = 0; i < sizeof by_kernel / sizeof *by_kernel; i++)
            add_event(&by_kernel[i]);
        leader = open_event(&by_kernel[0], -1);
        problem = leader < 0 ? -leader : 0;
    } else {
        for (size_t i = 0; i < HW_EVENT_FDS; i++) {
            if (leader < 0 && by_processor[i].type == PERF_TYPE_SOFTWARE) /* alone: getrusage does as well */
                break;
            int fd = open_event(&by_processor[i], leader);
            if (fd < 0) {
                problem = problem ? problem : -fd;
                continue;
            }
            add_event(&by_processor[i]);
            if (leader < 0)
                leader = fd;
            else
                hw_close(fd);
        }
        problem = events.count ? 0 : problem;
    }
    if (leader >= 0)
        hw_close(leader);
    if (problem)
        events.count = events.present = 0;
    return problem;
}

static void say_why(int problem)
{
    hw_note(HW_NOTE_NO_EVENTS, problem == EACCES || problem == EPERM
                                   ? "the kernel does not permit them (kernel.perf_event_paranoid is above 2)"
                               : problem == ENOENT || problem == EOPNOTSUPP || problem == ENODEV
                                   ? "the processor, or the virtual machine, has no counters"
                               : problem == ENOSYS ? "the kernel has no perf events"
                                                   : "perf_event_open failed");
}

static void measure_reading(void)
{
    static struct hw_dispatch_thread trial;
    uint64_t before[HW_OPERATION_EVENTS], after[HW_OPERATION_EVENTS];
    trial = (struct hw_dispatch_thread){0};
    for (uint32_t i = 0; i < HW_OPERATION_EVENTS; i++)
        events.of_reading[i] = ~0ull;
    for (int i = 0; i < TRIALS; i++)
        if (read_events(&trial, before) && read_events(&trial, after))
            for (uint32_t k = 0; k < HW_OPERATION_EVENTS; k++)
                if (after[k] - before[k] < events.of_reading[k])
                    events.of_reading[k] = after[k] - before[k];
    for (uint32_t i = 0; i < HW_OPERATION_EVENTS; i++)
        if (events.of_reading[i] == ~0ull)
            events.of_reading[i] = 0;
    hw_hardware_close(&trial);
}

/* Ticks of DISTANCE_NS, nearly: measured for a moment where they are the processor's. */
static uint64_t ticks_of_distance(void)
{
    if (!hw_runtime.clock_is_tsc)
        return DISTANCE_NS;
    uint64_t ns = hw_clock_monotonic_ns(), ticks = hw_ticks_raw(), passed;
    do
        passed = hw_clock_monotonic_ns() - ns;
    while (passed < 20000);
    return (hw_ticks_raw() - ticks) * DISTANCE_NS / passed;
}

bool hw_hardware_start(void)
{
    events.groups = 0;
    events.off = hw_streq(hw_options.operation_events, "none");
    if (!events.row)
        events.row = hw_own_pages(ROWS * sizeof *events.row, true);
    if (!events.row)
        return false;
    if (events.off || hw_quiet) {
        events.off = true;
        hw_note(HW_NOTE_NO_EVENTS, "they were switched off (operation-events=none)");
        return true;
    }
    int problem = choose();
    if (problem)
        say_why(problem);
    if (!events.count)
        events.present = BY_RUSAGE;
    if (!events.distance)
        events.distance = ticks_of_distance();
    measure_reading();
    return true;
}
