/* parked.h - a thread of another process that waits for calls to make.
 *
 * Two pieces of code, both position independent, are copied into the other process. The gate is put where no code of
 * the program is, behind the end of a code segment. The thread is sent to its entry by one change of its registers;
 * from then on it does everything itself: it blocks signals, maps a room, and waits there for calls. Whoever sent it
 * may be killed at any moment: when nobody asks for anything for some seconds, the thread leaves by the gate, which
 * unmaps the room and gives it its signals and registers back. */
#ifndef HW_BASE_PARKED_H
#define HW_BASE_PARKED_H

#include <stdint.h>

#define HW_PARKED_CODE  4096u /* bytes of code in the room; the data lies behind them */
#define HW_PARKED_XSAVE 16384u
#define HW_PARKED_STACK (512u * 1024u)

#define HW_PARKED_PATIENCE 3500u /* rounds: 2000 of 100 microseconds, then 1500 of 10 milliseconds */

/* Data in the room. The thread calls `function` when it is not 0, then sets it to 0 and `done` to 1. It leaves after
 * `patience` rounds without a call, or at once behind one during which that was set to 0: nobody waits any more. */
struct hw_parked {
    uint64_t function, argument[3], result, done, patience;
    uint64_t begin;              /* written from outside: 1, the code is there; by the thread: 2, it runs that code */
    uint64_t error_place, error; /* errno's address, or 0 */
    uint64_t leave;              /* address of the gate's way out */
    uint64_t moment[2];
    uint64_t reserved[3];
    uint8_t xsave[HW_PARKED_XSAVE] __attribute__((aligned(64)));
    char text[4096];
    uint8_t stack[HW_PARKED_STACK] __attribute__((aligned(64)));
};

/* The gate begins with this; its code follows. */
struct hw_gate {
    uint64_t magic;
    uint64_t room, room_bytes; /* address that the room must get */
    uint64_t all;              /* signals */
    uint64_t signals;          /* blocked before */
    uint64_t registers[18];    /* before, as in struct hw_visit */
};

#define HW_GATE_MAGIC 0x657461672d776568ull

/* In the gate: the thread waits at `failed` with -errno in rbx when there can be no room, until it is sent to
 * `out`. */
extern const char hw_gate[], hw_gate_entry[], hw_gate_failed[], hw_gate_out[], hw_gate_end[];
extern const char hw_gate_unmap[]; /* `leave` of the room */
extern const char hw_parked_code[], hw_parked_leave[], hw_parked_code_end[];

#endif
