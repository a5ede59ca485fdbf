/* visit.h - how `heapwise leaks PID` makes one thread of a recorded process call the runtime.
 *
 * The visitor stops all threads by ptrace, notes their registers, fills `registers` below with those that the chosen
 * thread is to go on with, and lets it run at `enter`, on a stack of the runtime's own. When that has done what was
 * asked it goes back by itself to where it was, so that nothing is left undone if the visitor is killed. */
#ifndef HW_PROFILE_VISIT_H
#define HW_PROFILE_VISIT_H

#include <stdbool.h>

#include "profile/format.h"

#define HW_VISIT_VERSION 0x3454495349564857ull /* "WHVISIT4" */

enum {
    HW_VISIT_RAX,
    HW_VISIT_RBX,
    HW_VISIT_RCX,
    HW_VISIT_RDX,
    HW_VISIT_RSI,
    HW_VISIT_RDI,
    HW_VISIT_RBP,
    HW_VISIT_RSP,
    HW_VISIT_R8, /* to R15 */
    HW_VISIT_RIP = 16,
    HW_VISIT_FLAGS,
    HW_VISIT_REGISTERS,
};

enum hw_visit_stage {
    HW_VISIT_IDLE,
    HW_VISIT_ASKED,
    HW_VISIT_DONE, /* `result` is valid; the thread is on its way back */
};

enum hw_visit_what {
    HW_VISIT_SEARCH, /* makes a copy of the process, which searches when the room is filled; the result is its pid */
    HW_VISIT_CLEAN,  /* gives its room back */
    /* Writes into the profile what RSS is made of, as of a dump: at once, or at the next event if a thread is in the
     * middle of one. `measured` rises then. */
    HW_VISIT_MEASURE,
};

/* Results, beside pids, 0 and -errno. */
enum hw_visit_result {
    HW_VISIT_BUSY = -5001,    /* a thread is in the middle of an event: try again */
    HW_VISIT_QUIET = -5002,   /* the program has given up system calls */
    HW_VISIT_OFF = -5003,     /* the runtime does not record */
    HW_VISIT_RUNNING = -5004, /* a copy that was made before has not ended */
};

struct hw_visit {
    uint64_t registers[HW_VISIT_REGISTERS]; /* the first member: visit.c of the machine */
    uint64_t version;
    uint64_t enter, enter_end; /* addresses; no thread may be there, or have its stack there, when a visit begins */
    uint64_t stack, stack_end;
    uint64_t measured;                      /* address of a uint32_t that counts what HW_VISIT_MEASURE has written */
    uint64_t room, room_bytes;              /* memory that the process and its copy share */
    uint32_t records_keeps, records_mapped; /* 1: the process is recorded with --keeps, with --leaks=mapped */
    uint64_t thread_count;                  /* in the room */
    uint32_t stage;                         /* enum hw_visit_stage */
    uint32_t what;                          /* enum hw_visit_what */
    int32_t result;                         /* enum hw_visit_result */
    uint32_t insist;                        /* 1: also when a thread is in the middle of an event */
    uint32_t mapped;                        /* 1: what the program mapped itself is searched for pointers, too */
    uint32_t keeps;                         /* 1: who keeps what is reached is searched for, too */
    uint32_t records_examined;              /* 1: recorded with --contents or --pinned, which only it can examine */
};

#define HW_REGISTERS 96 /* words of a thread's registers: general ones, and those of floating point */
struct hw_stopped_thread {
    int tid;                                 /* as the process numbers it */
    int signal;                              /* that it was about to receive */
    bool known;                              /* its registers are */
    uintptr_t stack_pointer, thread_pointer; /* 0: not known; of a thread in vfork the first may be known alone */
    uint64_t registers[HW_REGISTERS];
};

/* A section of who keeps what is reached: its entries lie behind this, filled up to 8 bytes. Threads have no names. */
struct hw_visit_part {
    uint32_t section, entry_size; /* enum hw_section_type */
    uint64_t bytes;
};

/* The begin of the room. */
struct hw_visit_room {
    uint32_t done;   /* 1: the rest is valid */
    uint32_t owner;  /* the copy's number; the kernel adds FUTEX_OWNER_DIED when it has ended */
    uint32_t filled; /* the visitor has put the threads here: the copy waits for that, nobody else does */
    int32_t error;   /* enum hw_visit_result, or errno */
    uint64_t leaks;  /* where they begin in the room */
    uint64_t leak_count, leaks_most;
    uint64_t keeps, keeps_bytes, keeps_most; /* the same of struct hw_visit_part, one behind the other */
    uint64_t keeps_failed;                   /* 1: there was no memory for them */
    uint64_t threads_missed, missed_error;   /* filled in by the visitor */
    struct hw_leak_info info;
    struct hw_stopped_thread thread[];
};

#endif
