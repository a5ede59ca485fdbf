/* samples.h - sampled accesses: who is sampled, and where samples go. */
#ifndef HW_RUNTIME_SAMPLES_SAMPLES_H
#define HW_RUNTIME_SAMPLES_SAMPLES_H

#include "runtime/runtime.h"

/* ---- samples.c: where sampled accesses go ---- */

#define HW_HITS_MOST 256u

/* A sampled access, after it has been found out where it fell. */
struct hw_hit {
    uint64_t offset; /* in the block, or address - bias */
    uint64_t line;   /* address / 64; 0: of no block */
    uint64_t stamp;  /* of the block */
    uint64_t pc;
    uint32_t context; /* HW_NONE: no block */
    uint32_t map;     /* of data; HW_NONE: neither block nor data of a module */
    uint8_t flags;    /* enum hw_touch_flags */
    uint8_t word;     /* of the line */
};
/* In allocator mode: accesses to live blocks, as hw_places_info has them (line_use.c). */
struct hw_place_hits {
    uint64_t samples, line_bytes, page_bytes;
    uint64_t writes, contended_word, contended_object, contended_blocks;
    uint64_t active_writes, active_contended, passive_writes, passive_contended;
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
/* One access by the instruction at PC, STACK being where the stack pointer is. FLAGS: enum hw_touch_flags. Signal
 * safe, no lock. */
void hw_samples_take(struct hw_hits *hits, uint64_t address, uint32_t flags, uint64_t pc, uint64_t stack);
/* Forgets the accesses that were gathered. */
void hw_samples_forget(struct hw_hits *hits);
/* Adds what was gathered to the profile. Takes the lock, in a signal handler as well. */
void hw_samples_flush(struct hw_hits *hits);
/* No more samples, for this reason. */
void hw_samples_ended(enum hw_sample_end reason, int error);
/* Forgets what was counted. Lock held. */
void hw_samples_reset(void);

/* ---- single_steps.c: who is sampled, and the sampler that needs nothing but the trap flag ---- */

/* Begins to sample the calling thread and those that come. */
void hw_trap_start(void);
/* In a forked child. */
void hw_trap_fork(void);
bool hw_trap_on(void);
/* Whether the calling thread is stepping now. */
bool hw_trap_in_burst(void);
/* At the end of a hook: a burst that was interrupted by it goes on. */
void hw_trap_resume(void);
/* The calling thread is sampled from now on / not any more: a signal that waits for it is taken back. */
void hw_trap_attach(void);
void hw_trap_detach(void);
/* For good, in all threads; returns when no burst is on its way. */
void hw_trap_stop(enum hw_sample_end reason);
/* Whether SIGNAL is one that the sampler lives on. */
bool hw_trap_uses(int signal);
/* Whether HANDLER is one of the sampler's. */
bool hw_trap_is_handler(const void *handler);

/* ---- line_use.c: what is around a sampled access ---- */

/* Accesses are sampled from now on. */
void hw_places_sampled(void);
/* One access by THREAD (a number above 0). Signal safe. */
void hw_places_access(struct hw_place_hits *hits, uintptr_t address, bool write, uint32_t thread);
/* Requested live bytes in the page that begins at PAGE, and how many blocks have any there. */
uint64_t hw_places_page_used(uintptr_t page, uint32_t *blocks);

#endif
