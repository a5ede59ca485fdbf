/* perf_ring.h - records of the kernel's ring of samples (perf_event_open), read one by one.
 *
 * No libc and no allocation: safe in a signal handler. What lies in the ring is not trusted. */
#ifndef HW_RUNTIME_SAMPLES_PERF_RING_H
#define HW_RUNTIME_SAMPLES_PERF_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

/* What each sample holds, in the kernel's order; of the registers the stack pointer alone. */
#define HW_PERF_SAMPLE_TYPE                                                                                            \
    (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU |                        \
     PERF_SAMPLE_REGS_USER | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC)
#define HW_PERF_SAMPLE_REGISTERS (1ull << 7) /* PERF_REG_X86_SP */

struct hw_perf_ring {
    const uint64_t *head; /* where the kernel will write next: rises without end */
    uint64_t *tail;       /* where to read next */
    const uint8_t *data;
    uint64_t size; /* bytes of it, a power of two */
};

struct hw_perf_sample {
    uint64_t pc, time, address;
    uint64_t stack;          /* stack pointer; 0: not known */
    uint64_t weight, source; /* as the kernel reports them: cycles on Intel; union perf_mem_data_src */
    uint32_t pid, tid, cpu;
    bool in_kernel;
};

enum hw_perf_read {
    HW_PERF_EMPTY,
    HW_PERF_SAMPLE,   /* one sample */
    HW_PERF_LOST,     /* so many records found no room */
    HW_PERF_THROTTLE, /* the kernel slowed the samples down */
    HW_PERF_OTHER,    /* a record of another kind: skipped */
    HW_PERF_BROKEN,   /* no record of the expected form; when lengths made no sense, all that was there is skipped */
};

/* The ring behind a mapping of a perf event, PAGES of 4096 bytes the first one included. False when it has no data or
 * says things about itself that cannot be. */
bool hw_perf_ring_open(struct hw_perf_ring *ring, void *mapping, uint64_t pages);

/* Takes the next record: *SAMPLE after HW_PERF_SAMPLE, *LOST after HW_PERF_LOST. */
enum hw_perf_read hw_perf_ring_next(struct hw_perf_ring *ring, struct hw_perf_sample *sample, uint64_t *lost);

/* HW_TOUCH_READ, HW_TOUCH_WRITE or both as the sample's source says; 0: it does not say, or no access. */
uint32_t hw_perf_sample_flags(const struct hw_perf_sample *sample);

#endif
