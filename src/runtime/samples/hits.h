/* hits.h - what the files of this room share: sampled accesses on their way into the profile. */
#ifndef HW_RUNTIME_SAMPLES_HITS_H
#define HW_RUNTIME_SAMPLES_HITS_H

#include "base/arch/x86_64/decode.h"
#include "runtime/samples/samples.h"

/* ---- samples.c ---- */

#define HW_HITS_MOST 256u

/* A sampled access, after it has been found out where it fell. */
struct hw_hit {
    uint64_t offset; /* in the block, or address - bias */
    uint64_t address; /* 0: of no block */
    uint64_t stamp;  /* of the block */
    uint64_t pc;
    uint32_t context; /* HW_NONE: no block */
    uint32_t map;     /* of data; HW_NONE: neither block nor data of a module */
    uint8_t flags;    /* enum hw_touch_flags */
    uint8_t bytes, step; /* as in struct hw_sample_access */
};
/* What one thread has gathered since it was last added to the profile. */
struct hw_hits {
    uint32_t count;
    uint16_t thread;      /* number of the thread among those sampled, from 1 */
    uint32_t role;        /* of the thread */
    uintptr_t stack_high; /* end of its stack */
    struct hw_sample_info sums;
    struct hw_place_hits places;
    struct hw_hit hit[HW_HITS_MOST];
};
/* Makes room for samples of SOURCE; false when there is none. PERIOD, BURST_LENGTH: as in the profile. ERROR: why the
 * processor's own samples cannot be had. */
bool hw_samples_begin(enum hw_sample_source source, uint64_t burst_length, uint64_t period, int error);
/* Another thread is sampled. */
void hw_samples_thread(void);
/* One access by the instruction at PC, STACK being where the stack pointer is; its size and flags are those of TOUCH
 * (size 0: not known). Signal safe, no lock. */
void hw_samples_take(struct hw_hits *hits, const struct hw_touch *touch, uint64_t pc, uint64_t stack);
/* Forgets the accesses that were gathered. */
void hw_samples_forget(struct hw_hits *hits);
/* Adds what was gathered to the profile. Takes the lock, in a signal handler as well. */
void hw_samples_flush(struct hw_hits *hits);
/* No more samples, for this reason. */
void hw_samples_ended(enum hw_sample_end reason, int error);

/* ---- line_use.c ---- */

/* Accesses are sampled from now on. */
void hw_places_sampled(void);
/* One access by THREAD (a number above 0). Signal safe. */
void hw_places_access(struct hw_place_hits *hits, uintptr_t address, bool write, uint32_t thread);

#endif
