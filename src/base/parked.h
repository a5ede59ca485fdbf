/* parked.h - a thread of another process that waits for calls to make. */
#ifndef HW_BASE_PARKED_H
#define HW_BASE_PARKED_H

#include <stdint.h>

#define HW_PARKED_CODE  4096u /* bytes of code, position independent; the data lies behind them */
#define HW_PARKED_XSAVE 16384u
#define HW_PARKED_STACK (512u * 1024u)

/* The thread calls `function` when it is not 0, then sets it to 0 and `done` to 1. If nobody asks for anything in
 * `patience` rounds (of 100 microseconds), it goes back to `registers` by itself: who parked it was killed. */
struct hw_parked {
    uint64_t function, argument[3], result, done, patience;
    uint64_t signals;            /* blocked */
    uint64_t error_place, error; /* errno's address, or 0 */
    uint64_t registers[18];      /* as in struct hw_visit */
    uint64_t moment[2];
    uint64_t reserved[2];
    uint8_t xsave[HW_PARKED_XSAVE] __attribute__((aligned(64)));
    char text[4096];
    uint8_t stack[HW_PARKED_STACK] __attribute__((aligned(64)));
};

extern const char hw_parked_code[], hw_parked_code_end[];

#endif
