/* counting.h - what the files of this room call of each other: planes, fields, samplers, globals. cells.h has what
 * makes figures of cells, access.h what other rooms call. */
#ifndef HW_RUNTIME_ACCESS_COUNTING_H
#define HW_RUNTIME_ACCESS_COUNTING_H

#include "runtime/access/access.h"

/* ---- planes.c ---- */

void hw_shadow_threads_start(void);
/* From now on accesses are counted: layout, sections and notes. Nothing happens when that was so before; a message and
 * exit(1) when the granule was another one. Called by __heapwise_init_v1, and by what serves other ABIs. */
void hw_access_enable(uint32_t granule);
/* The plane of clang's ABI: one for all threads, cells u64 at (address >> 6 << 3), or, when the granule is 8, u8 at
 * (address >> 3). Its counts are reported in the `unsplit` field. After hw_access_enable; may be called again. 0: no
 * planes. */
uintptr_t hw_shadow_memprof_plane(void);
/* The sum of the side table's counts for cells [first, end) in one plane, which is taken out or left; false: none. */
bool hw_shadow_side(uintptr_t first, uintptr_t end, bool take, uint64_t more[2]);
void hw_shadow_side_add(uintptr_t cell, const uint64_t more[2]);
void hw_shadow_side_clear(void);
/* Moves what has grown beyond 2^31 in any cell into the side table, and sets sweep_next. Not under the lock. */
void hw_shadow_sweep(void);
/* The role of the threads that have counted in PLANE, one of hw_shadow.plane. */
uint32_t hw_shadow_role(uintptr_t plane);

/* ---- sharing.c, access.c ---- */

/* Forgets what a harvest wrote. Lock held. */
void hw_sharing_forget_harvest(void);
/* Accesses are counted from now on: makes the sections. */
void hw_access_late(uint32_t granule);

/* ---- cells.c: sums over planes ---- */

/* Calls EACH for every granule that was touched of those that [start, end) reaches into; map and offset are not set.
 * Without TAKE the cells stay, and granules of blocks of pools are left out: after hw_pool_harvest_begin. */
void hw_cells_each_granule(uintptr_t start, uintptr_t end, bool take,
                           void (*each)(uintptr_t address, const struct hw_global_granule *counts));

/* ---- fields.c ---- */

void hw_fields_harvest_counters(uint32_t first, uint32_t end);
/* How many counters there are; where one is in a plane; its groups, which lie one behind the other. */
uint32_t hw_fields_counters(void);
uintptr_t hw_fields_counter(uintptr_t plane, uint32_t counter);
uint32_t hw_fields_first_group(uint32_t counter);
bool hw_fields_has_counter(uint32_t group, uint32_t counter);

/* ---- field_windows.c: which fields are used at nearly the same time ---- */

void hw_windows_start(void);
/* Lock held. */
void hw_windows_reset(void);
void hw_windows_fork(void);

/* ---- word_sampler.c: with 4-byte granules, in which periods words were used ---- */

/* A thread of the runtime scans the shadow once a period; where there can be no thread, allocations do. Again in a
 * forked child. */
void hw_word_sampler_start(void);
/* Without a thread: a look, if one is due. Not under the lock. */
void hw_word_sampler_event(uint64_t tick);
/* What the profile says of it. */
void hw_word_sampler_tell(struct hw_access_info *info);
/* Forgets how long it has been looking. */
void hw_word_sampler_reset(void);

/* ---- globals.c ---- */

/* Rewrites GLOBALS; libraries that are gone give up their cells for good. Lock held. */
void hw_globals_harvest(void);
void hw_globals_forget_harvest(void);

#endif
