/* course.h - the course of a run's operations: what was asked of the allocator, one by one, in which order.
 *
 * A run under libheapwise-tracer.so (tracer.c) leaves a trace: records of the first operations of each process. It is
 * made into a course (course.c), in which blocks are slots instead of addresses; heapwise-course (replay_course.c) does
 * the same under any allocator. Both files are of this machine and of one run of `heapwise allocators`: they are not
 * kept. */
#ifndef HW_ALLOCATORS_COURSE_H
#define HW_ALLOCATORS_COURSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* ---- the trace ---- */

#define HW_TRACE_VARIABLE "HEAPWISE_TRACE" /* in the environment: the folder that traces go to, as PID.trace */
#define HW_TRACE_MAGIC    0x3165636172747768ull
#define HW_TRACE_CHUNK                                                                                                 \
    256u /* records of one thread; of the first one only `size` is used: the thread's number, from 0 */
#define HW_TRACE_MOST    (4u << 20) /* records of a process, 128 MiB */
#define HW_TRACE_ADDRESS 0x00ffffffffffffffull
#define HW_TRACE_LARGE   16384u /* bytes of a block of which it is noted how much of it was touched */

enum hw_course_kind {
    HW_COURSE_NONE,
    HW_COURSE_MALLOC,
    HW_COURSE_CALLOC,
    HW_COURSE_ALIGNED,
    HW_COURSE_REALLOC,
    HW_COURSE_FREE,
    HW_COURSE_TOUCHED, /* only in traces: a large block was touched in `size` pages, before it is freed or moves, or at
                        * the end of the run */
    HW_COURSE_WAIT,    /* these only in courses */
    HW_COURSE_WALK,
};

struct hw_trace_header {
    uint64_t magic;
    uint64_t taken;      /* records, chunk by chunk; may exceed HW_TRACE_MOST */
    uint64_t operations; /* that were not recorded, since there was no room */
    uint64_t threads;
};

/* An operation; `tick` is read before a block is freed and after one is allocated, so that ticks put them in an order
 * that is possible. */
struct hw_trace_record {
    uint64_t tick; /* 0: not used */
    uint64_t what; /* kind << 56 | address */
    uint64_t size;
    uint64_t before; /* REALLOC: the block that was given; ALIGNED: the alignment */
};

/* ---- the course ---- */

#define HW_COURSE_MAGIC   0x31657372756f6377ull
#define HW_COURSE_WORKERS 16
#define HW_COURSE_PAGES   UINT16_MAX /* or more, of one block */

/* Of a worker, one after the other. WAIT: until worker `slot` has done `size` events. One stands before each free of a
 * block of another worker. WALK: to the live blocks of `slot` slots of the list behind the events, from entry `size`.
 */
struct hw_course_event {
    uint64_t size;
    uint32_t slot;
    uint8_t kind;
    uint8_t align;    /* ALIGNED: logarithm of the alignment */
    uint16_t touched; /* pages of the block that the program touched, also in its FREE; 0: that is not known */
};

struct hw_course_header {
    uint64_t magic;
    uint64_t slots, operations, walked; /* walked: length of the list of slots behind the events, of 4 bytes each */
    uint32_t workers;
    uint32_t joins; /* the first worker waits for others: what it does is not done beside them */
    uint64_t first[HW_COURSE_WORKERS], count[HW_COURSE_WORKERS]; /* of the events behind this header */
};

struct hw_course {
    uint64_t operations, missing; /* in the course; in the run beyond it */
    unsigned workers;
};

/* Makes the file COURSE_PATH of the trace TRACE_PATH. LIVE_MOST: bytes that may be allocated at once; the course ends
 * before there are more. False with ERROR when the trace cannot be used. */
bool hw_course_make(const char *trace_path, const char *course_path, uint64_t live_most, struct hw_course *course,
                    struct hw_error *error);

#endif
