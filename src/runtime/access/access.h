/* access.h - counted accesses and fields: what other rooms call. The files that make figures of cells share cells.h and
 * counting.h. */
#ifndef HW_RUNTIME_ACCESS_ACCESS_H
#define HW_RUNTIME_ACCESS_ACCESS_H

#include "runtime/heap/heap.h"

/* ---- planes.c: where accesses are counted ---- */

#define HW_PLANES_MOST 256u

/* What base/abi.h promises to instrumented code. The first plane is the main thread's, and that of threads which have
 * none of their own yet (made by a bare clone): the initial value of __heapwise_plane is its usual address. The second
 * one is for objects of clang -fmemory-profile. Others follow as threads come. */
extern HW_VARIABLE __thread uintptr_t __heapwise_plane __attribute__((tls_model("initial-exec")));
extern HW_VARIABLE __thread uint64_t __heapwise_type __attribute__((tls_model("initial-exec")));

/* Planes overlap: plane i begins i * stride behind the first one. Set under the lock. A plane that has been in use
 * stays in the list, since it may hold counts. */
struct hw_shadow {
    uint32_t granule;      /* 64, 8 or 4; 0: accesses are not counted (heap mode) */
    uint32_t shift;        /* a cell lies (address >> shift) behind the begin of its plane */
    uint32_t planes_used;  /* entries of `plane` */
    uint32_t memprof_used; /* the plane of hw_shadow_memprof_plane may hold counts */
    uint32_t planes_most;
    uint64_t sweep_next; /* tick of the profile's clock: when hw_shadow_sweep is due */
    uint64_t words_next; /* the same of hw_word_sampler_event */
    uintptr_t base;      /* 0: no address space for planes */
    uint64_t bytes;      /* of the reservation */
    uint64_t stride;
    uintptr_t memprof;               /* see hw_shadow_memprof_plane */
    uintptr_t plane[HW_PLANES_MOST]; /* of threads */
    uint64_t threads_sharing;
    uint64_t carried;      /* entries of the side table, see hw_shadow_carry */
    uint32_t fields;       /* fields are counted, too, or alone */
    uint32_t modules;      /* instrumented ones, as of the latest scan */
    uint32_t access_flags; /* enum hw_access_info_flags that stand for the whole run */
};
extern HW_HIDDEN struct hw_shadow hw_shadow;

/* Accesses are counted: blocks have the layout of owned_blocks.c, the profile has the sections of counted accesses. */
static inline bool hw_access_on(void)
{
    return hw_shadow.granule != 0;
}
/* Something is counted in planes: threads need one of their own. */
static inline bool hw_planes_on(void)
{
    return (hw_shadow.granule | hw_shadow.fields) != 0;
}
/* Reserves the planes. First thing of hw_start: also programs that are not profiled need it. */
void hw_shadow_start(void);
/* Granule of the notes in the modules that are loaded, 0 when none is instrumented. Ends the process with a message
 * when they differ, or when there are no planes. */
uint32_t hw_shadow_granule_of_modules(void);
/* Ends the process: this program cannot run without the runtime. */
__attribute__((noreturn)) void hw_shadow_refuse(const char *text, const char *detail);
/* GRANULE is counted with from now on, or 0: none. */
void hw_shadow_set_granule(uint32_t granule);
void hw_shadow_fork(void);
/* Of the calling thread: which plane in the order of addresses, from 1; 0: none of its own. */
extern HW_HIDDEN __thread uint32_t hw_self_plane __attribute__((tls_model("initial-exec")));
/* The calling thread gets a plane of its own. */
void hw_shadow_attach(void);
/* Adds AMOUNT to a 32-bit half (0 reads, 1 writes) of a 64-byte granule's cell; what does not fit there goes into a
 * side table of 64-bit counts. CELL is a cell of the calling thread's plane. */
void hw_shadow_carry(void *cell, unsigned half, uint64_t amount);
/* Notes it when cells may have overflowed since the last sweep. Not under the lock. */
void hw_shadow_check_sweeps(void);
/* Notes areas of memory that share cells. Not under the lock. */
void hw_shadow_look_for_folds(void);

/* ---- sharing.c: who uses lines that threads share ---- */

/* Of the calling thread: index into ROLES. */
extern HW_HIDDEN __thread uint32_t hw_self_role __attribute__((tls_model("initial-exec")));
/* The role of threads that are started with ROUTINE at the call stack CONTEXT. */
uint32_t hw_role_of(uintptr_t routine, uint32_t context);
/* The calling thread is one of these. */
void hw_role_begin(uint32_t role);
/* Adds to the entry of what KEY says up to `bytes`, or makes it; LIVE: of SIDES_LIVE. LOCKED: hw_runtime.lock is held.
 */
void hw_side_note(const struct hw_side *key, bool live, bool locked);
/* Sections are there: at the start, from now on; in a forked child. */
void hw_sharing_start(void);
void hw_sharing_fork(void);
/* Counts from zero. As hw_access_reset. */
void hw_sharing_reset(void);

/* ---- owned_blocks.c: blocks that own their cells ---- */

/* Replaces hw_real by functions that keep 32 bytes free before each block; called again when hw_real has changed. */
bool hw_layout_start(void);
/* Before system calls are given up: room in glibc's heap for what blocks take more than without the layout. */
void hw_layout_make_room(void);

/* How the block at an address is laid out: one byte for each 64 bytes of address space, because blocks begin at least
 * that far from each other. */
enum hw_layout {
    HW_LAYOUT_NONE = 0, /* not a block of the layout */
    HW_LAYOUT_16 = 1,   /* the allocator's block begins 16 bytes before */
    HW_LAYOUT_32 = 2,   /* …32 bytes before */
    HW_LAYOUT_FAR = 3,  /* …as many bytes before as is written 32 bytes before the block */
    HW_LAYOUT_KIND = 3,
    HW_LAYOUT_UPPER = 4,  /* the block begins in the upper half of the 64 bytes */
    HW_LAYOUT_RECORD = 8, /* 16 bytes before it there is a record (blocks.c) */
    HW_LAYOUT_OWN = 16,   /* alone, at a multiple of 64: the allocator's own block, which shares no cell either */
};
extern HW_HIDDEN uint8_t *hw_layout_map;
/* The byte of a block at ADDRESS, NULL when no block of the layout begins there. */
static inline uint8_t *hw_layout_of(const void *address)
{
    uintptr_t a = (uintptr_t)address;
    if (hw_unlikely((a & 31) || a >> HW_ARCH_ADDRESS_BITS || !hw_layout_map))
        return NULL;
    uint8_t *byte = &hw_layout_map[a >> 6];
    return hw_likely((*byte & HW_LAYOUT_KIND) && ((*byte & HW_LAYOUT_UPPER) != 0) == ((a & 32) != 0)) ? byte : NULL;
}
static inline bool hw_layout_is_own(const void *address)
{
    uintptr_t a = (uintptr_t)address;
    return !(a & 63) && !(a >> HW_ARCH_ADDRESS_BITS) && hw_layout_map && hw_layout_map[a >> 6] == HW_LAYOUT_OWN;
}
static inline void hw_layout_forget_own(const void *address)
{
    if (hw_unlikely(hw_layout_is_own(address)))
        hw_layout_map[(uintptr_t)address >> 6] = 0;
}
/* Calls EACH for every block of the layout that has a record. SAFELY: memory may vanish meanwhile. Lock held. */
void hw_layout_each(void (*each)(void *address), bool safely);

/* ---- access.c: from cells to the profile, event by event (access.h has what its files share) ---- */

/* Where accesses are counted (parts.c): their sections. */
bool hw_access_start(void);
void hw_access_fork(void);
/* Events of heap.c, in access mode only. A new block's cells are cleared in all planes. */
void hw_access_allocated(const struct hw_mib *mib, void *address, size_t size, uint64_t tick);
/* What is in the block's cells is taken out of them and added to the entry of MIB as one block. FREE_CONTEXT: HW_NONE
 * when it is not recorded. */
void hw_access_freed(const struct hw_mib *mib, void *address, const struct hw_block *block, uint64_t lifetime,
                     uint32_t free_context);
/* Around a reallocation: from _begin to _end no other block gets the cells of the old address. */
void hw_access_realloc_begin(struct hw_thread *thread, void *address, const struct hw_block *block);
/* The block's counts go with it. NEW_ADDRESS may be the old one. */
void hw_access_realloc_moved(const struct hw_mib *mib, void *old_address, size_t old_size, void *new_address,
                             size_t size);
void hw_access_realloc_end(struct hw_thread *thread);
/* The same for blocks of pools. */
void hw_access_pool_allocated(void *address, size_t size);
void hw_access_pool_freed(const struct hw_mib *mib, void *address, const struct hw_block *block, uint64_t lifetime);
/* The entry of ACCESS that belongs to MIB, as it is before anything was counted. */
void hw_access_reset_entry(const struct hw_mib *mib, uint32_t context);
/* What was counted for one MIB goes to another: bounded tables. */
void hw_access_move_entry(const struct hw_mib *to, const struct hw_mib *from);
/* Forgets all counts: cells, and the entries of freed blocks. Conditions as of hw_access_harvest. */
void hw_access_reset(void);

/* ---- harvest.c: what is live, for the profile ---- */

/* The cells of live blocks and of globals, as they are now, into ACCESS_LIVE, HISTOGRAM_LIVE, GLOBALS and ACCESS_INFO,
 * in place of what a former harvest wrote there. The cells stay as they are. After hw_threads_stop (STOPPED: its
 * result), with hw_runtime.lock held. Libraries that came since hw_modules_rescan are left out. */
void hw_access_harvest(bool stopped);
/* Takes the result of a harvest out of the file again: of blocks that are freed later it would be counted twice. Lock
 * held. */
void hw_access_forget_harvest(void);

/* ---- fields.c: counters of fields of structs ---- */

/* Where fields are counted (parts.c); in a forked child. Lock held, or alone. */
bool hw_fields_start(void);
void hw_fields_fork(void);
/* An allocation, where fields are counted: the type of its block. */
void hw_fields_allocated(const struct hw_mib *mib, const void *address);
/* Writes what the counters say into the profile, over what was there. Lock held. */
void hw_fields_harvest(bool stopped);
/* Counts from zero. As hw_access_reset. */
void hw_fields_reset(void);
/* ---- field_windows.c, word_sampler.c: samplers, each with a thread of the runtime's own ---- */

/* Stops the thread; no system call from now on. */
void hw_windows_stop(void);
void hw_word_sampler_stop(void);
/* ---- globals.c: data of executables and libraries ---- */

/* A module that was seen, with its segments. Lock held. */
void hw_globals_module(uint32_t map, uintptr_t bias, const void *headers, size_t header_count);
/* Removes the counts of libraries that were unloaded. Lock held. */
void hw_globals_gone(void);
void hw_globals_reset(void);

/* ---- memprof.c: objects of clang -fmemory-profile ---- */

/* Their granule, 0 when there are none among the modules that are loaded (needs no state: reads symbols). */
uint32_t hw_memprof_granule(void);
/* After hw_access_enable: sets the addresses where such objects count. */
void hw_memprof_start(void);
/* The name pattern of the profile that such an object gives; false when it gives no directory. */
bool hw_memprof_output(char *pattern, size_t size);

#endif
