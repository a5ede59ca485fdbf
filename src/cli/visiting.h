/* visiting.h - a search for leaks in a process that goes on: profile/visit.h, from outside. */
#ifndef HW_CLI_VISITING_H
#define HW_CLI_VISITING_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/recorded.h"

struct hw_visit_options {
    bool mapped;   /* memory that the program mapped itself is searched for pointers, too */
    bool keeps;    /* also who keeps what is reached */
    bool examined; /* recorded with --contents or --pinned; not for a search */
};

struct hw_visited {
    struct hw_leak_info info;
    struct hw_leak *leaks;
    size_t leak_count;
    void *keeps; /* struct hw_visit_part, one behind the other */
    size_t keeps_size;
    bool keeps_failed; /* there was no memory for them */
};

/* Has RECORDED copied and the copy searched, and calls COPIED (with CLOSURE) while that goes on, as soon as the process
 * does. False: recorded->error says why not; COPIED says so, too, if it fails. */
bool hw_visit_search(struct hw_recorded *recorded, const struct hw_visit_options *options,
                     bool (*copied)(void *closure), void *closure, struct hw_visited *visited);
/* How it is recorded: with --keeps, with --leaks=mapped. All false where its memory cannot be read. */
struct hw_visit_options hw_visit_recorded(struct hw_recorded *recorded);

/* Has the process write into its profile what RSS is made of now; it stands still meanwhile. False: it cannot, and
 * recorded->error says why. */
bool hw_visit_measure(struct hw_recorded *recorded);

/* visited.c: writes what was found into the sealed profile PATH of that moment, as if the process had done so. */
bool hw_visited_add(struct hw_recorded *recorded, const struct hw_visited *visited, const char *path);
void hw_visited_free(struct hw_visited *visited);

#endif
