/* perf.h - samples of accesses that the processor picks (perf.c). For single_steps.c. Errors are positive errnos. */
#ifndef HW_RUNTIME_SAMPLES_PERF_H
#define HW_RUNTIME_SAMPLES_PERF_H

#include "runtime/samples/perf_ring.h"
#include "runtime/samples/perf_source.h"
#include "runtime/samples/hits.h"

struct hw_perf_thread {
    void *mapping; /* NULL: none */
    struct hw_perf_ring ring;
    int fd[HW_PERF_EVENTS];
    uint64_t id[HW_PERF_EVENTS]; /* what the kernel calls them */
    uint32_t count;
} __attribute__((aligned(64))); /* its address plus an event's index is what signals carry */

/* Chooses the events. 0, or why there are none: ECANCELED when they are not wanted, ENODEV where the processor has
 * nothing, ENOSYS where the kernel is too old, whatever perf_event_open says. */
int hw_perf_begin(void);
/* Accesses that a sample stands for; 0: not known. */
uint64_t hw_perf_period(void);
/* Events of the calling thread, not armed yet. 0, or an error. */
int hw_perf_open(struct hw_perf_thread *thread);
/* The next sample of each event will come. */
void hw_perf_arm(struct hw_perf_thread *thread);
/* Reads the ring. STACK: the stack pointer where a sample does not say. Signal safe, no lock. */
void hw_perf_take(struct hw_perf_thread *thread, uint64_t stack, struct hw_hits *hits);
/* Arms the event again whose signal carried DATA. False when the program has closed it. */
bool hw_perf_again(struct hw_perf_thread *thread, uint64_t data);
/* Closes them, also those of another thread. */
void hw_perf_close(struct hw_perf_thread *thread);
/* In a forked child, which has the descriptors and not the mapping. */
void hw_perf_forget(struct hw_perf_thread *thread);

#endif
