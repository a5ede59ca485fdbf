/* heapwise.h - what a program can ask of Heapwise: record the blocks of the program's own allocators, write a dump,
 * reset the counts, measure a part of the run, name a moment, leave a function uncounted.
 *
 * Nothing has to be linked. When the program runs under `heapwise record`, or was built by `heapwise cc`, the calls
 * reach the runtime; otherwise each costs a comparison and does nothing. C99 or newer, C++98 or newer, gcc and clang,
 * ELF. (In executables that are not position-independent, -no-pie, the linker decides whether the calls reach the
 * runtime: they do only if `heapwise cc` links the program.)
 *
 * All functions may be called from any thread, from signal handlers, and while the program holds any lock: they never
 * call malloc, never wait for a lock of the program, leave errno alone and do not throw.
 *
 * Pools
 *
 *     A pool (arena, slab, region, free list) takes memory in large pieces, from malloc or mmap, and hands it out in
 *     small ones. Heapwise sees the pieces. These calls show it the blocks:
 *
 *         void *arena_get(struct arena *arena, size_t size)
 *         {
 *             void *pointer = …;
 *             heapwise_pool_alloc(arena, pointer, size);
 *             return pointer;
 *         }
 *
 *     Each block of a pool is counted under the call stack of heapwise_pool_alloc: allocations, sizes, lifetime, live
 *     bytes, and, where accesses are counted, its reads and writes. These contexts are marked as a pool's. Their bytes
 *     lie in memory that is counted already, so no total of the process includes them: live bytes, peak, allocations
 *     and bytes are those of malloc and its family. In sampled runs (sample-bytes=N) pools are not recorded.
 *
 *     Accesses to a block of a pool are counted for the block, not for the piece around it. Accesses to its memory
 *     before the block began are dropped; accesses after its end are counted for the piece. A counter covers 64 (or 8)
 *     bytes of memory and belongs to the block that holds the first of these bytes. A block that does not begin and end
 *     at multiples of that may share counters with its neighbours: it is also counted under `not_owned`. Pools that
 *     align their blocks are counted exactly.
 *
 *     Programs that announce their blocks to Valgrind or AddressSanitizer: see annotations.h.
 *
 * Regions
 *
 *     A region is a part of the run, from one call to another, of one thread or of the whole process. Its totals are
 *     what was allocated meanwhile: for a test with a memory budget, or a phase of a program.
 *
 *         struct heapwise_region region;
 *         struct heapwise_totals totals;
 *         heapwise_region_begin(&region, "parse", HEAPWISE_THREAD);
 *         parse(text);
 *         heapwise_region_end(&region, &totals);
 *         if (totals.measured)
 *             assert(totals.allocations <= 1000 && totals.live_blocks == 0);
 *
 *     The totals are exact (totals.measured says so), with any number of threads. Regions may nest and overlap. Those
 *     of one name are added up in the profile: `heapwise report --section regions`, `regions` in JSON. */
#ifndef HEAPWISE_HEAPWISE_H
#define HEAPWISE_HEAPWISE_H

#include <stddef.h>

#define HEAPWISE_API_VERSION 1

/* Put before a function: its loads and stores are not counted. (In C++ also on member functions; functions it calls are
 * counted, unless they are inlined.) */
#if defined __clang__
#define HEAPWISE_NO_COUNT __attribute__((noinline, annotate("heapwise:no-count")))
#elif defined __GNUC__
#define HEAPWISE_NO_COUNT __attribute__((noinline, no_sanitize_thread))
#else
#define HEAPWISE_NO_COUNT
#endif

/* HEAPWISE_ABI(struct header); at file scope, after the definition of a type: other code or files depend on its layout
 * (a file format, a protocol, a library that is compiled elsewhere). heapwise fields suggests no other order for it. */
#if defined __clang__
#define HEAPWISE_ABI(type)                                                                                             \
    static __attribute__((used, annotate("heapwise:abi"))) type *const HEAPWISE_ABI_NAME(__COUNTER__) = 0
#define HEAPWISE_ABI_NAME(number)  HEAPWISE_ABI_NAME_(number)
#define HEAPWISE_ABI_NAME_(number) heapwise_abi_##number
#else
#define HEAPWISE_ABI(type) extern int heapwise_abi_unused
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Defined by the runtime. Programs call the functions below. */
#define HEAPWISE_WEAK __attribute__((weak))
extern HEAPWISE_WEAK void __heapwise_pool_alloc(const void *pool, const void *pointer, size_t size);
extern HEAPWISE_WEAK void __heapwise_pool_free(const void *pool, const void *pointer);
extern HEAPWISE_WEAK void __heapwise_pool_clear(const void *pool);
extern HEAPWISE_WEAK int __heapwise_dump(void) __asm__("heapwise_dump");
extern HEAPWISE_WEAK int __heapwise_reset(void) __asm__("heapwise_reset");
struct heapwise_region;
struct heapwise_totals;
extern HEAPWISE_WEAK int __heapwise_region_begin(struct heapwise_region *region, const char *name,
                                                 int scope) __asm__("heapwise_region_begin");
extern HEAPWISE_WEAK int __heapwise_region_end(struct heapwise_region *region,
                                               struct heapwise_totals *totals) __asm__("heapwise_region_end");
extern HEAPWISE_WEAK int __heapwise_mark(const char *name) __asm__("heapwise_mark");
#undef HEAPWISE_WEAK

/* Inlined into the caller, without debug information of their own: call stacks begin with the caller. */
#if defined __clang__
#define HEAPWISE_INLINE static __inline__ __attribute__((always_inline, nodebug, unused))
#else
#define HEAPWISE_INLINE static __inline__ __attribute__((always_inline, artificial, unused))
#endif

/* Whether the program runs with Heapwise. */
HEAPWISE_INLINE int heapwise_present(void)
{
    return __heapwise_pool_alloc != 0;
}

/* The pool has handed out SIZE bytes (0 is allowed) at POINTER.
 *
 * POOL identifies the pool: any address that no other pool uses while this one lives, such as that of its descriptor.
 * POINTER may have any alignment; NULL is ignored, so failures need no test. An earlier block of the pool at the same
 * POINTER that was not freed ends now. Pools may nest: a block of one may be the memory of another, also at the same
 * address. */
HEAPWISE_INLINE void heapwise_pool_alloc(const void *pool, const void *pointer, size_t size)
{
    if (__heapwise_pool_alloc)
        __heapwise_pool_alloc(pool, pointer, size);
}

/* The block at POINTER was returned to POOL. Ignored when POINTER is NULL or no block of POOL. Call it before the
 * memory can be handed out again, and before the memory itself is freed or unmapped. */
HEAPWISE_INLINE void heapwise_pool_free(const void *pool, const void *pointer)
{
    if (__heapwise_pool_free)
        __heapwise_pool_free(pool, pointer);
}

/* All blocks of POOL end at this moment: an arena that is reset, or destroyed. The pool may be used again. Takes time
 * in proportion to the number of its blocks. Call it before the memory of the blocks is freed or unmapped. */
HEAPWISE_INLINE void heapwise_pool_clear(const void *pool)
{
    if (__heapwise_pool_clear)
        __heapwise_pool_clear(pool);
}

HEAPWISE_INLINE void heapwise_pool_destroy(const void *pool)
{
    heapwise_pool_clear(pool);
}

/* Writes a complete profile of this moment into a file of its own, beside the profile of the process: NAME.dumpN.hwprof
 * for NAME.hwprof. The program continues and no count changes; other threads wait at their next allocation while
 * the counts are copied. In a signal handler that has interrupted an allocation, the dump is written after that
 * allocation.
 *
 * Returns 0, also when the program runs without Heapwise; -1 when it cannot be written. */
HEAPWISE_INLINE int heapwise_dump(void) __asm__("heapwise_dump_inline");
HEAPWISE_INLINE int heapwise_dump(void)
{
    return __heapwise_dump ? __heapwise_dump() : 0;
}

/* Resets the counts: allocations, lifetimes, accesses. Live blocks stay live. The profile records the reset. Returns 0,
 * also without Heapwise; -1 when it fails. */
HEAPWISE_INLINE int heapwise_reset(void) __asm__("heapwise_reset_inline");
HEAPWISE_INLINE int heapwise_reset(void)
{
    return __heapwise_reset ? __heapwise_reset() : 0;
}

/* ---- regions ---- */

struct heapwise_region {
    size_t hidden[2];
};

enum heapwise_scope {
    HEAPWISE_PROCESS = 0, /* all threads */
    HEAPWISE_THREAD = 1   /* the calling thread: what it allocates, frees and reallocates, whosever the blocks */
};

enum heapwise_measured {
    HEAPWISE_NOT_MEASURED = 0, /* all numbers are 0 */
    HEAPWISE_ESTIMATED = 1,    /* a sampled run (sample-bytes), or a thread that did not stop in time */
    HEAPWISE_EXACT = 2
};

/* What happened in a region. A reallocation keeps its block: it counts neither as an allocation nor as a free. `bytes`
 * are those requested by allocations, and what reallocations added. Blocks from before a fork or a reset are in the
 * live numbers after a reset, and never in `frees`. */
struct heapwise_totals {
    size_t allocations, frees, reallocations, bytes;
    ptrdiff_t live_blocks, live_bytes; /* at the end less at the begin: below 0 if older blocks were freed */
    size_t peak_bytes;                 /* the most that the live bytes rose over those at the begin */
    size_t measured;                   /* enum heapwise_measured */
    size_t reserved[8];
};

/* A region begins. NAME is copied (up to 1,024 names; those beyond are measured, and not recorded). The cost of a begin
 * or end is about a microsecond for a thread. For the process, the other threads wait at their next allocation for some
 * ten microseconds, and each allocation costs more until the end.
 *
 * Returns 0, also when the program runs without Heapwise; -1 when it cannot be measured: in `--mode allocator`, after
 * seccomp, in a signal handler that has interrupted an allocation, with more than 1,024 open regions. */
HEAPWISE_INLINE int heapwise_region_begin(struct heapwise_region *region, const char *name,
                                          enum heapwise_scope scope) __asm__("heapwise_region_begin_inline");
HEAPWISE_INLINE int heapwise_region_begin(struct heapwise_region *region, const char *name, enum heapwise_scope scope)
{
    region->hidden[0] = region->hidden[1] = 0;
    return __heapwise_region_begin ? __heapwise_region_begin(region, name, (int)scope) : 0;
}

/* The region ends; *TOTALS (or NULL) gets its numbers. That of a thread must be ended by this thread, that of the
 * process by any. A region that is never ended costs nothing but its place among the open ones; those of threads that
 * have ended are reused.
 *
 * Returns 0, also when the program runs without Heapwise; -1 when it was not measured: see _begin, and after a
 * heapwise_reset or in a forked child, where counts have begun anew. Both times totals->measured says so. */
HEAPWISE_INLINE int heapwise_region_end(struct heapwise_region *region,
                                        struct heapwise_totals *totals) __asm__("heapwise_region_end_inline");
HEAPWISE_INLINE int heapwise_region_end(struct heapwise_region *region, struct heapwise_totals *totals)
{
    static const struct heapwise_totals none = {0, 0, 0, 0, 0, 0, 0, 0, {0, 0, 0, 0, 0, 0, 0, 0}};
    if (totals)
        *totals = none;
    return __heapwise_region_end ? __heapwise_region_end(region, totals) : 0;
}

/* This moment gets a name in the profile: `marks` in JSON, and `heapwise report --section regions`. A profile holds
 * 4,096 of them. Returns 0, also when the program runs without Heapwise; -1 when it is not recorded. */
HEAPWISE_INLINE int heapwise_mark(const char *name) __asm__("heapwise_mark_inline");
HEAPWISE_INLINE int heapwise_mark(const char *name)
{
    return __heapwise_mark ? __heapwise_mark(name) : 0;
}

#undef HEAPWISE_INLINE

#ifdef __cplusplus
}
#endif

#endif
