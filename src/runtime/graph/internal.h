/* internal.h - what the files of this room call of each other. */
#ifndef HW_RUNTIME_GRAPH_INTERNAL_H
#define HW_RUNTIME_GRAPH_INTERNAL_H

#include "profile/visit.h"
#include "runtime/graph/blocks_index.h"
#include "runtime/graph/graph.h"

/* ---- stop.c: the program's other threads, wherever they are ---- */

struct hw_stopped_threads {
    struct hw_stopped_thread *thread; /* see profile/visit.h */
    uint32_t count;
    uint32_t missed; /* threads that could not be stopped, or have no place here */
    int error;       /* errno: why, of the first */
};
/* Stops all threads but the calling one, with the registers of each. Lock held. The list is valid until the other
 * function is called. */
const struct hw_stopped_threads *hw_threads_freeze(void);
void hw_threads_thaw(void);

/* ---- interrupted.c: system calls that the stop has interrupted ---- */

struct user_regs_struct;
/* The stopped thread goes on with the call that it was in, where that would return EINTR only because of the stop. */
void hw_call_begin_again(int tid, const struct user_regs_struct *registers);
/* It is about to go on: a signal that has come since lets the call return EINTR after all. REGISTERS as before. */
void hw_call_leave_if_signalled(int tid, const struct user_regs_struct *registers);

/* ---- leaks.c ---- */

/* In a copy of the process, which has this thread only: what its THREADS and memory reach. The result is in ROOM, which
 * says how many entries it has place for. MAPPED: memory that the program mapped itself is a root, too. KEEPS: also who
 * keeps what is reached. False: the room's `error` says why. */
bool hw_leaks_find_in_copy(const struct hw_stopped_threads *threads, struct hw_visit_room *room, bool mapped,
                           bool keeps);

/* ---- cpp_pointers.c: pointers into blocks that are as good as those to their begins ---- */

/* ADDRESS lies in the block from BEGIN on, of SIZE bytes, and C++ keeps pointers to that place instead. */
bool hw_cpp_points_inside(uintptr_t begin, uint64_t size, uintptr_t address);

/* ---- words.c: words of the program's memory, read without a fault ---- */

/* An area of /proc/self/maps as of hw_scan_begin. */
struct hw_span {
    uintptr_t start, end;
    bool readable, writable, file, shared, own, heap;
};
/* False: no memory, or no /proc. Lock held. */
bool hw_scan_begin(void);
void hw_scan_end(void);
/* The area that ADDRESS lies in, or NULL. */
const struct hw_span *hw_span_of(uintptr_t address);
void hw_spans_each(void (*each)(const struct hw_span *span));
/* Calls EACH for aligned words of [start, end), in pieces; leaves out what cannot be read. */
void hw_scan_words(uintptr_t start, uintptr_t end, void (*each)(const uint64_t *words, size_t count));
/* One word, also while others are scanned. False: it cannot be read. */
bool hw_scan_word(uintptr_t address, uint64_t *word);
/* Where the first of the words lies that EACH has just got. */
uintptr_t hw_scan_address(void);

/* ---- page_states.c: which pages are in memory, without touching them ---- */

enum hw_page_state {
    HW_PAGE_ABSENT, /* never touched, or only read: all zeros, and no memory */
    HW_PAGE_THERE,
    HW_PAGE_SWAPPED,
    HW_PAGE_UNKNOWN,
};
/* Of an entry of /proc/self/pagemap. A guard page of the program is marked like a page in swap. */
static inline enum hw_page_state hw_page_state_of(uint64_t entry)
{
    return entry >> 63 ? HW_PAGE_THERE : entry >> 62 ? HW_PAGE_SWAPPED : HW_PAGE_ABSENT;
}
/* It is there, of no file, and not this process's alone: the kernel's page of zeros, or shared after a fork. */
static inline bool hw_page_may_be_zero(uint64_t entry)
{
    return entry >> 63 && !(entry >> 61 & 1) && !(entry >> 56 & 1);
}
/* False: the kernel does not say it; all are unknown then. Lock held until the end. */
bool hw_page_states_begin(void);
void hw_page_states_end(void);
enum hw_page_state hw_page_state(uintptr_t address);

/* ---- leaks.c: the search, and where it begins ---- */

enum hw_root_kind { HW_ROOT_DATA, HW_ROOT_POOLS, HW_ROOT_REGISTERS, HW_ROOT_STACK, HW_ROOT_THREAD_LOCAL };
struct hw_root {
    enum hw_root_kind kind;
    uint32_t tid;                   /* of a thread's */
    const struct hw_module *module; /* of data; NULL: of a library that is not known yet */
    uintptr_t thread_pointer;       /* of thread-local data */
    const uint64_t *registers;      /* of a stack: its thread's, by DWARF number; NULL: not known */
    bool begins_only;               /* pointers into blocks do not count: libc's data */
};
/* Calls EACH for all words outside of blocks, piece by piece. It must not scan. Only during a search. */
typedef void hw_root_visitor(const struct hw_root *root, const uint64_t *words, size_t count);
void hw_roots_each(hw_root_visitor *each);

/* ---- frames.c: the function of a word of a stack ---- */

struct hw_stack_frame {
    uintptr_t start, end; /* of it on the stack */
    uintptr_t address;    /* of its code - bias, in the call instruction */
    uint32_t map;         /* HW_NONE: the runtime's own */
    uint32_t keeper;      /* keeps.c's; 0: none yet */
};
/* Finds the frames of the thread with these registers (NULL: none), which stands still. During a search. */
void hw_frames_make(const uint64_t *registers);
/* The frame that ADDRESS lies in, or NULL. */
struct hw_stack_frame *hw_frame_of(uintptr_t address);

/* ---- thread_local.c: the thread-local data of a thread ---- */

#define HW_LOCAL_BLOCKS 64
struct hw_local_block {
    uintptr_t start, end;
    uint32_t map; /* of its module */
};
/* Fills in where modules have theirs below THREAD_POINTER, at most MOST of them; returns how many. 0: libc is none that
 * is known. During a search. */
uint32_t hw_local_blocks(uintptr_t thread_pointer, struct hw_local_block *block, uint32_t most);

/* ---- keeps.c: who keeps what can be reached ---- */

/* During a search, when it is known which blocks are reached: writes the sections KEEPERS, KEPT, KEEP_EDGES, KEEP_INFO
 * into the file, or into ROOM. LIVE_BYTES: of all blocks. False: no memory. Lock held. */
bool hw_keeps_find(uint64_t tick, uint64_t live_bytes, struct hw_visit_room *room);
/* How many bytes a room needs for them at most. */
uint64_t hw_keeps_room(void);

/* ---- variables.c: where the variables of modules lie ---- */

/* Calls EACH for the variables of the module MAP, from the symbols of its file: addresses in memory. False: the file
 * is gone, or another one. */
bool hw_variables_each(uint32_t map, void (*each)(uintptr_t start, uint64_t size));

#endif
