/* perf_source.h - the processor's events for sampling accesses, from sysfs.
 *
 * Intel: precise events for loads and stores (PEBS). Where stores are counted by MEM_INST_RETIRED.ALL_STORES, all loads
 * are by its sister, and one sample in so many accesses is of either; otherwise mem-loads is used, which samples only
 * some of the loads. AMD: one in so many operations (IBS), of which those are used that access memory.
 *
 * No libc: the runtime uses it as well as `heapwise doctor`. */
#ifndef HW_RUNTIME_SAMPLES_PERF_SOURCE_H
#define HW_RUNTIME_SAMPLES_PERF_SOURCE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#define HW_PERF_DEVICES "/sys/bus/event_source/devices"
#define HW_PERF_EVENTS  6u /* of one thread: three for each kind of core of a hybrid processor */

struct hw_perf_event {
    uint32_t type;
    uint64_t config, config1, config2;
    uint8_t precise;
    bool with_kernel; /* the processor cannot leave the kernel out: needs more rights */
    bool leader;      /* only counts, next to the following event, which needs it in its group */
};

struct hw_perf_source {
    const char *name; /* PEBS, IBS */
    uint32_t count;
    uint32_t unsaid_flags; /* enum hw_touch_flags of samples that do not say what they are; 0: of no access */
    bool exact;            /* a sample stands for as many accesses as the period says */
    bool estimated_loads;  /* another choice of events exists: with mem-loads */
    struct hw_perf_event event[HW_PERF_EVENTS];
};

/* False: there is none. ESTIMATED asks for mem-loads where all loads could be had, for processors that refuse that. */
bool hw_perf_source_find(const char *devices, bool estimated, struct hw_perf_source *source);

/* For one thread, disabled unless it is a leader, a signal SIGTRAP with DATA for each sample. */
void hw_perf_attributes(const struct hw_perf_event *event, uint64_t period, uint64_t data,
                        struct perf_event_attr *attributes);

/* Whether a blocked SIGTRAP waits instead of killing: Linux 5.18 and later. RELEASE: as uname says. */
bool hw_perf_kernel_will_do(const char *release);

#endif
