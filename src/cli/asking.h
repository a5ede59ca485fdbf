/* asking.h - a request to a recorded process, which it serves itself: a word in the process section of its profile, and
 * the signal that it handles for this. */
#ifndef HW_CLI_ASKING_H
#define HW_CLI_ASKING_H

#include "cli/recorded.h"

struct hw_asking {
    uint32_t request;             /* what is written; the answer is that number, or a later one */
    size_t request_at, answer_at; /* members of struct hw_process_info */
    uint32_t signal_value;        /* goes along with the signal */
    uint64_t timeout_s;
    const char *what; /* "a dump" */
};

/* Asks and waits; recorded->process is that of the answer. The signal is only sent to a thread that handles it. False:
 * recorded->error says why. */
bool hw_ask(struct hw_recorded *recorded, const struct hw_asking *asking);

#endif
