/* parking.h - one thread of another process makes calls for this command, and then continues as if nothing had
 * happened, also when this command is killed meanwhile: see base/parked.h. */
#ifndef HW_CLI_PARKING_H
#define HW_CLI_PARKING_H

#include "base/parked.h"
#include "cli/safe_point.h"

#define HW_GATE_ROOM 1024u /* at least the bytes of the gate */

struct hw_parking {
    struct hw_safe_points *points;
    int memory;                   /* /proc/PID/mem, which also writes code */
    struct hw_stop_thread thread; /* a copy: the list of stopped threads has it as `held` */
    bool held;
    bool late; /* it is still in a call that nobody waits for any more, and leaves behind it by itself */
    uint64_t gate, room;
    uint8_t under_gate[HW_GATE_ROOM];
    bool stop_later; /* SIGSTOP came, which cannot be blocked */
};

enum hw_park_result { HW_PARKED, HW_PARK_FAILED, HW_PARK_AGAIN };

/* THREAD, which is stopped at a safe point, waits for calls from now on. HW_PARK_AGAIN: it was not parked, since a
 * signal came first; it runs. HW_PARK_FAILED: stop->error says why; hw_unpark is still to be called. */
enum hw_park_result hw_park(struct hw_parking *parking, struct hw_stop_thread *thread);
/* It continues where it was, with its registers, signals and errno. Nothing is done when none is parked. */
void hw_unpark(struct hw_parking *parking);
/* RESULT: may be NULL. False: the thread ended, or crashed, or does not come back in time (`late`; then no further call
 * is possible); stop->error says which. */
bool hw_parked_call(struct hw_parking *parking, uint64_t function, uint64_t first, uint64_t second, uint64_t *result);
/* errno, an int at PLACE, is VALUE when the thread continues. */
bool hw_parked_keep_errno(struct hw_parking *parking, uint64_t place, int value);
/* Writes to memory that may be code. */
bool hw_write_code(struct hw_parking *parking, uint64_t address, const void *bytes, size_t size);

/* Address of a member of struct hw_parked. */
#define HW_PARKED_AT(parking, member) ((parking)->room + HW_PARKED_CODE + offsetof(struct hw_parked, member))

#endif
