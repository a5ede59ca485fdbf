/* annotations.h - macros that announce the blocks of a program's own allocators to Heapwise, with the arguments of the
 * macros that programs use for Valgrind (valgrind/memcheck.h) and AddressSanitizer (sanitizer/asan_interface.h).
 *
 * A program that announces its blocks to one of these needs one more line beside each, or the HEAPWISE_ name in its own
 * wrapper macro:
 *
 *     VALGRIND_MEMPOOL_ALLOC(pool, address, size);     HEAPWISE_MEMPOOL_ALLOC(pool, address, size);
 *     ASAN_UNPOISON_MEMORY_REGION(address, size);      HEAPWISE_UNPOISON_MEMORY_REGION(address, size);
 *
 * What they cost, when nothing is linked, and from where they may be called: as in heapwise.h. What is counted: as for
 * the pools there, which they share: an address names the same pool in both.
 *
 * `heapwise record --valgrind-requests` records what a program announces to Valgrind without these macros. A program
 * that does both should be recorded without that option, or its blocks are counted twice.
 *
 * Arguments that say what a tool has to check are not used: red zones (rzB), is_zeroed. Each macro is a statement. */
#ifndef HEAPWISE_ANNOTATIONS_H
#define HEAPWISE_ANNOTATIONS_H

#include <heapwise/heapwise.h>

/* ---- pools ---- */

/* A pool needs no beginning. FLAGS of Valgrind: if AUTO_FREE (1) is among them, MEMPOOL_FREE of a block ends the blocks
 * that MALLOCLIKE_BLOCK has announced in it. */
#define HEAPWISE_CREATE_MEMPOOL(pool, rzB, is_zeroed) HEAPWISE_CREATE_MEMPOOL_EXT(pool, rzB, is_zeroed, 0)
#define HEAPWISE_CREATE_MEMPOOL_EXT(pool, rzB, is_zeroed, flags)                                                       \
    ((void)(rzB), (void)(is_zeroed), HEAPWISE_EVENT(0x1303, pool, 0, 0, flags))
/* All blocks of the pool end. */
#define HEAPWISE_DESTROY_MEMPOOL(pool) HEAPWISE_EVENT(0x1304, pool, 0, 0, 0)
#define HEAPWISE_MEMPOOL_ALLOC(pool, addr, size) HEAPWISE_EVENT(0x1305, pool, addr, size, 0)
#define HEAPWISE_MEMPOOL_FREE(pool, addr) HEAPWISE_EVENT(0x1306, pool, addr, 0, 0)
/* All blocks of the pool end, except those that overlap the range ADDR … ADDR+SIZE, even partly: these keep their
 * size. */
#define HEAPWISE_MEMPOOL_TRIM(pool, addr, size) HEAPWISE_EVENT(0x1307, pool, addr, size, 0)
/* The pool has another name: its descriptor has moved. */
#define HEAPWISE_MOVE_MEMPOOL(poolA, poolB) HEAPWISE_EVENT(0x1308, poolA, poolB, 0, 0)
/* The block at ADDRA lies at ADDRB now, with SIZE bytes: a reallocation. */
#define HEAPWISE_MEMPOOL_CHANGE(pool, addrA, addrB, size) HEAPWISE_EVENT(0x1309, pool, addrA, addrB, size)

/* ---- blocks of no pool ---- */

#define HEAPWISE_MALLOCLIKE_BLOCK(addr, sizeB, rzB, is_zeroed)                                                         \
    ((void)(rzB), (void)(is_zeroed), HEAPWISE_EVENT(0x1301, addr, sizeB, 0, 0))
#define HEAPWISE_RESIZEINPLACE_BLOCK(addr, oldSizeB, newSizeB, rzB)                                                    \
    ((void)(rzB), HEAPWISE_EVENT(0x130b, addr, oldSizeB, newSizeB, 0))
#define HEAPWISE_FREELIKE_BLOCK(addr, rzB) ((void)(rzB), HEAPWISE_EVENT(0x1302, addr, 0, 0, 0))

/* ---- regions that are poisoned while nothing is in them ---- */

/* A block begins: SIZE bytes at ADDR. */
#define HEAPWISE_UNPOISON_MEMORY_REGION(addr, size) HEAPWISE_EVENT(1, addr, size, 0, 0)
/* The blocks end that UNPOISON_MEMORY_REGION has announced, and that lie in the region, also in part. One block from
 * its begin to its end costs little. Everything else takes time in proportion to all such blocks: a chunk that is
 * poisoned as a whole when it is new, or reset. */
#define HEAPWISE_POISON_MEMORY_REGION(addr, size) HEAPWISE_EVENT(2, addr, size, 0, 0)

/* ---- how ---- */

#ifdef __cplusplus
extern "C" {
#endif

/* Defined by the runtime. EVENT: Valgrind's number of the request, or one of the two above. */
extern __attribute__((weak)) void __heapwise_pool_event(unsigned long event, unsigned long a, unsigned long b,
                                                        unsigned long c, unsigned long d);

#ifdef __cplusplus
}
#endif

/* Addresses and numbers alike. */
#define HEAPWISE_EVENT(event, a, b, c, d)                                                                              \
    (__heapwise_pool_event ? __heapwise_pool_event(event, (unsigned long)(a), (unsigned long)(b), (unsigned long)(c),  \
                                                   (unsigned long)(d))                                                 \
                           : (void)0)

#endif
