/* terminal.h - `heapwise top` on a terminal, and printed once. */
#ifndef HW_TOP_TERMINAL_H
#define HW_TOP_TERMINAL_H

#include "top/screen.h"

struct hw_top_options {
    struct hw_view_options view; /* where names come from, and rules */
    uint64_t interval_ms;        /* between two readings */
    bool color, utf8, json;
    /* Opens the profile that process PID writes now. NULL with ERROR: there is none. */
    struct hw_live *(*follow)(pid_t pid, struct hw_error *error);
};

/* Until the user quits. False with ERROR: the terminal cannot be used, or there is no memory. */
bool hw_top_run(struct hw_top_screen *screen, const struct hw_top_options *options, struct hw_error *error);

/* Prints the screen, WIDTH columns wide with ROWS rows of the table, to stdout. */
bool hw_top_print(struct hw_top_screen *screen, const struct hw_top_options *options, unsigned width, size_t rows,
                  struct hw_error *error);

/* The same as one object, docs/json.md: what was drawn last, at most ROWS call stacks. False: no memory, or stdout. */
bool hw_top_print_json(const struct hw_top_screen *screen, size_t rows);

/* When the process has executed another program: shows the profile of that one from now on, and names it in
 * screen->message. False when it has not, or when there is no such profile: screen->trouble says why. */
bool hw_top_follow(struct hw_top_screen *screen, const struct hw_top_options *options);

/* Reads the profile again. A failure is noted in screen->trouble, and the older numbers stay. */
void hw_top_read(struct hw_top_screen *screen);

#endif
