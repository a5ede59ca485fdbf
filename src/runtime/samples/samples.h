/* samples.h - sampled accesses: who is sampled, and where samples go. */
#ifndef HW_RUNTIME_SAMPLES_SAMPLES_H
#define HW_RUNTIME_SAMPLES_SAMPLES_H

#include "runtime/runtime.h"

/* ---- samples.c: where sampled accesses go ---- */

/* In allocator mode: accesses to live blocks, as hw_places_info has them (line_use.c). */
struct hw_place_hits {
    uint64_t samples, line_bytes, page_bytes;
    uint64_t writes, contended_word, contended_object, contended_blocks;
    uint64_t active_writes, active_contended, passive_writes, passive_contended;
};
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
/* At the end of a hook: continues a burst that it interrupted. */
void hw_trap_resume(void);
/* The calling thread is sampled from now on. */
void hw_trap_attach(void);
/* For good, in all threads; returns when no burst is on its way. */
void hw_trap_stop(enum hw_sample_end reason);
/* Whether SIGNAL is one that the sampler lives on. */
bool hw_trap_uses(int signal);
/* Whether HANDLER is one of the sampler's. */
bool hw_trap_is_handler(const void *handler);

/* ---- line_use.c: what is around a sampled access ---- */

/* Requested live bytes in the page that begins at PAGE, and how many blocks have any there. */
uint64_t hw_places_page_used(uintptr_t page, uint32_t *blocks);

#endif
