/* graph.h - the heap as a graph: blocks, the pointers between them, and what else they hold. */
#ifndef HW_RUNTIME_GRAPH_GRAPH_H
#define HW_RUNTIME_GRAPH_GRAPH_H

#include "runtime/runtime.h"

/* Finds out which live blocks the program can still reach, and writes the sections LEAKS and LEAK_INFO, if option
 * `leaks` is set. The program's other threads are stopped meanwhile and go on afterwards. INTERRUPTED is the ucontext_t
 * of the signal handler that calls, else NULL. The caller is in the middle of no event, has all events stopped
 * (hw_threads_stop: CALM is its result) and does not hold hw_runtime.lock. */
void hw_leaks_find(const void *interrupted, bool calm);

/* ---- contents.c: record --contents ---- */

/* Examines what live blocks hold, and writes the sections CONTENTS, CONTENT_EXAMPLES and CONTENT_INFO, if option
 * `contents` is set. As of hw_leaks_find. What was found near the peak stays. */
void hw_contents_examine(enum hw_memory_moment moment, bool calm);
/* Fills BLOCK, which is new, if it is small. */
#define HW_CONTENTS_FILL_MOST (64ul << 10)
void hw_contents_fill(void *block, size_t size);
/* Live bytes are at a new maximum, with regard to option `contents-peak`. No lock. */
bool hw_contents_due(void);
/* After a dump. Lock held. */
void hw_contents_forget_dump(void);
/* For a reset, and in a forked child. */
void hw_contents_restart(void);

/* ---- pages.c: what lies between the blocks ---- */

/* Walks the pages of all mappings with live blocks once. The sums of OUT (profile/format.h) are true of the moment:
 * events are stopped (hw_threads_stop said true), lock held. False: not every block is known in this mode, or there is
 * no memory, or no /proc. */
bool hw_heap_pages_measure(struct hw_heap_pages *out);
/* Option `pinned`: the same, with what each context keeps, in the profile. */
void hw_pages_start(void);
void hw_pages_harvest(bool stopped);
void hw_pages_forget(void);
/* Divides `allocator` of MEMORY by the last walk, if it was for the same moment. */
void hw_pages_split(struct hw_memory_breakdown *memory);

/* ---- visitor.c: `heapwise leaks PID` ---- */

/* From now on a visitor may come: at the start, and in a forked child. */
void hw_visit_start(void);
void hw_visit_fork(void);

#endif
