/* memory.h - private memory of the runtime, what RSS is made of, and the program's own limits. */
#ifndef HW_RUNTIME_CORE_MEMORY_H
#define HW_RUNTIME_CORE_MEMORY_H

#include "runtime/runtime.h"

/* ---- memory.c: private memory of the runtime, and what RSS is made of ---- */

void hw_own_start(void);
/* Private pages that are remembered as the runtime's own. NULL when there are none. WIPE: a forked child sees zeros. */
void *hw_own_pages(size_t bytes, bool wipe_on_fork);
/* Unmaps all that was reserved, and the profile: the recording is over, and its data is forgotten next. */
void hw_own_give_all_back(void);
/* They are not needed any more. */
void hw_own_give_back(void *pages, size_t bytes);
/* Address space, writable and zero, that counts against no limit but RLIMIT_AS; at HINT if that is free. NULL: none. */
void *hw_own_reserve(uintptr_t hint, uint64_t bytes);
/* Where the next BYTES of the runtime should lie: away from what the program maps. */
uintptr_t hw_own_hint(size_t bytes);
void hw_own_range(const void *start, size_t bytes);
/* All that has been reserved. */
uint64_t hw_own_bytes(void);
/* RLIMIT_AS, or what the machine may still promise if it never overcommits; ~0 when there is none. */
uint64_t hw_address_space_limit(void);
/* At the start there was one, or the kernel counts every reservation (overcommit 2): large ones are out of the
 * question. */
bool hw_address_space_limited(void);
/* The program locks what is mapped later: memory of the runtime is unlocked at once. */
extern HW_HIDDEN bool hw_own_unlocked;
/* Calls EACH for the lines of a file of /proc, without their ends, until it says false. Lock held; not again from
 * inside EACH. */
void hw_lines_each(const char *path, bool (*each)(void *closure, const char *line), void *closure);
/* A mapping of /proc/self/maps. */
struct hw_area {
    uintptr_t start, end;
    bool readable, writable, own, shared, file;
};
/* Likewise. */
/* The first thread may have ended, which the process itself is listed as. */
#define HW_MAPS "/proc/thread-self/maps"
void hw_areas_each(void (*each)(const struct hw_area *area));
/* Calls EACH for the parts of [start, end) whose pages are there. */
void hw_resident_each(uintptr_t start, uintptr_t end, void (*each)(uintptr_t start, uintptr_t end));
/* Does a mapping that begins there belong to the runtime? The kernel may have joined neighbours: the start counts. */
bool hw_is_own(uintptr_t start);
/* Up to which address, at most END, everything from START on is the runtime's own, or nothing is. The kernel joins
 * neighbours: the end of the runtime's zeroed data and the thread-local data of the first thread, for example. */
uintptr_t hw_own_until(uintptr_t start, uintptr_t end);
/* What stands behind KEY ("VmHWM:") in a status file of /proc, without blanks; NULL when it is not there. */
const char *hw_status_of(const char *path, const char *key, char *buffer, size_t size);

/* ---- ledger.c: what RSS is made of ---- */

/* Takes RSS apart, all but the tick and live bytes, and calls EACH (or NULL) for every mapping that is counted as heap;
 * rss is 0 when that is not possible. Lock held. */
typedef void hw_heap_mapping_visitor(uintptr_t start, uintptr_t end, uint64_t resident);
void hw_memory_measure(struct hw_memory_breakdown *result, enum hw_memory_moment moment, hw_heap_mapping_visitor *each);
/* Appends a breakdown of RSS. Lock held. */
/* The moment of a dump from outside. No other thread runs: what one of them holds must not be waited for, so that it may
 * be left to the next event of any thread. hw_memory_dumps counts those that were taken. */
extern uint32_t hw_memory_dumps HW_HIDDEN;
void hw_memory_take_stopped(void);
/* The first range that ends above ADDRESS and that the program has mapped itself, not its allocator. False: none, or a
 * thread is in the middle of changing one. */
bool hw_program_mapping_above(uintptr_t address, uintptr_t *start, uintptr_t *end);
/* Before the process is copied: the copy must not write to the profile, where calls are counted. Others are stopped. */
void hw_program_mappings_settle(void);
/* Takes it if it was left. Lock held. */
void hw_memory_take_late(uint64_t tick, int64_t live_bytes);

void hw_memory_take(enum hw_memory_moment moment, uint64_t tick, int64_t live_bytes);
/* What was measured is that of MOMENT from now on. Lock held. */
void hw_memory_keep(const struct hw_memory_breakdown *result, enum hw_memory_moment moment, uint64_t tick,
                    int64_t live_bytes);
/* It is also one of the moments over time, if it is time for one: MOMENT is HW_MOMENT_TIME then. Lock held. */
void hw_memory_keep_time(const struct hw_memory_breakdown *result, uint64_t tick, int64_t live_bytes);
bool hw_memory_time_due(uint64_t tick);
/* Measures, if that is due and does not take too much of the time. Lock held. */
void hw_memory_take_time(uint64_t tick, int64_t live_bytes);
/* What hw_memory_measure has found last belongs to MOMENT in LEDGER; and takes it out again. Lock held. */
void hw_ledger_keep(enum hw_memory_moment moment, uint64_t tick);
void hw_ledger_forget(enum hw_memory_moment moment);
/* At the start, in a forked child and at a reset: moments over time begin anew. */
void hw_memory_start(void);
uint64_t hw_memory_rss(void);
uint64_t hw_memory_peak_rss(void);
uint64_t hw_memory_peak_rss_in(char *buffer, size_t size); /* for small stacks: with a buffer of the caller's */
/* Whether a debugger or tracer is attached to the calling thread. BUFFER: 2 KiB. */
bool hw_is_traced(char *buffer, size_t size);

/* ---- dump_at.c: dump-at=PERCENT ---- */

/* Memory of the cgroup and its limit; FROM: see hw_cgroup_read. False: not known. Lock held. */
struct hw_cgroup_memory;
bool hw_limits_cgroup(unsigned from, struct hw_cgroup_memory *memory);
/* At the start, in a forked child and at a reset. */
void hw_dump_at_start(void);
/* Reads memory and limits, if that is due. True: a limit has been passed, a dump is to be written. Lock held. */
bool hw_dump_at_due(uint64_t tick, int64_t live_bytes);
/* When that is to be asked again; UINT64_MAX: never. */
uint64_t hw_dump_at_next(uint64_t tick);

/* ---- limits.c ---- */

/* The limit of address space as the program has it, and by how much it was widened for the runtime's reservations. False:
 * there is none. */
bool hw_limits_space(uint64_t *limit, uint64_t *own);

/* A mapping has failed, perhaps for a limit of address space that was set unseen. True: it is to
 * be tried again. */
bool hw_limits_make_way(void);
/* After posix_spawn. */
void hw_limits_of_started(int pid);

/* Before exec, and after one that failed: the program's own limits instead of the widened ones, and back. */
void hw_limits_for_exec(bool begin);

#endif
