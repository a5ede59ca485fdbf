/* terminal.h - `heapwise top` on a terminal, and printed once. */
#ifndef HW_TOP_TERMINAL_H
#define HW_TOP_TERMINAL_H

#include "top/screen.h"

struct hw_top_options {
    struct hw_view_options view; /* where names come from, and rules */
    uint64_t interval_ms;        /* between two readings */
    bool color, utf8;
    /* When the process that LIVE is of has ended or has become another program: opens the profile of what is process PID
     * now. NULL: there is none. */
    struct hw_live *(*follow)(pid_t pid);
};

/* Until the user quits. False with ERROR: the terminal cannot be used, or there is no memory. */
bool hw_top_run(struct hw_top_screen *screen, const struct hw_top_options *options, struct hw_error *error);

/* Prints the screen, WIDTH columns wide with ROWS rows of the table, to stdout. */
bool hw_top_print(struct hw_top_screen *screen, const struct hw_top_options *options, unsigned width, size_t rows,
                  struct hw_error *error);

/* Reads the profile again. A failure is noted in screen->trouble, and the older numbers stay. */
void hw_top_read(struct hw_top_screen *screen);

#endif
