/* memory.h - private memory of the runtime, what RSS is made of, and the program's own limits. */
#ifndef HW_RUNTIME_CORE_MEMORY_H
#define HW_RUNTIME_CORE_MEMORY_H

#include "runtime/runtime.h"

/* ---- memory.c: private memory of the runtime, and what RSS is made of ---- */

void hw_own_start(void);
/* Private pages that are remembered as the runtime's own. NULL when there are none. WIPE: a forked child sees zeros. */
void *hw_own_pages(size_t bytes, bool wipe_on_fork);
/* They are not needed any more. */
void hw_own_give_back(void *pages, size_t bytes);
/* Address space, writable and zero, that counts against no limit but RLIMIT_AS; at HINT if that is free. NULL: none. */
void *hw_own_reserve(uintptr_t hint, uint64_t bytes);
/* Where the next BYTES of the runtime should lie: away from what the program maps. */
uintptr_t hw_own_hint(size_t bytes);
void hw_own_range(const void *start, size_t bytes);
/* All that has been reserved. */
uint64_t hw_own_bytes(void);
/* RLIMIT_AS, ~0 when there is none. */
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
    bool writable, own, shared, file;
};
/* Likewise. */
void hw_areas_each(void (*each)(const struct hw_area *area));
/* Calls EACH for the parts of [start, end) whose pages are there. */
void hw_resident_each(uintptr_t start, uintptr_t end, void (*each)(uintptr_t start, uintptr_t end));
/* Takes RSS apart, all but the tick and live bytes, and calls EACH (or NULL) for every mapping that is counted as heap;
 * rss is 0 when that is not possible. Lock held. */
typedef void hw_heap_mapping_visitor(uintptr_t start, uintptr_t end, uint64_t resident);
void hw_memory_measure(struct hw_memory_breakdown *result, enum hw_memory_moment moment, hw_heap_mapping_visitor *each);
/* Appends a breakdown of RSS. Lock held. */
void hw_memory_take(enum hw_memory_moment moment, uint64_t tick, int64_t live_bytes);
/* What was measured is that of MOMENT from now on. Lock held. */
void hw_memory_keep(const struct hw_memory_breakdown *result, enum hw_memory_moment moment, uint64_t tick,
                    int64_t live_bytes);
uint64_t hw_memory_rss(void);
uint64_t hw_memory_peak_rss(void);
uint64_t hw_memory_peak_rss_in(char *buffer, size_t size); /* for small stacks: with a buffer of the caller's */
/* Whether a debugger or tracer is attached to the calling thread. BUFFER: 2 KiB. */
bool hw_is_traced(char *buffer, size_t size);

/* ---- limits.c ---- */

/* A mapping has failed, perhaps for a limit of address space that was set unseen. True: it is to
 * be tried again. */
bool hw_limits_make_way(void);
/* After posix_spawn. */
void hw_limits_of_started(int pid);

/* Before exec, and after one that failed: the program's own limits instead of the widened ones, and back. */
void hw_limits_for_exec(bool begin);

#endif
