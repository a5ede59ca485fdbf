/* open_view.h - for verbs that read whole profiles: from a path to a view. */
#ifndef HW_CLI_OPEN_VIEW_H
#define HW_CLI_OPEN_VIEW_H

#include "cli/view_options.h"

struct hw_opened {
    struct hw_profile *profile; /* NULL when there is nothing */
    struct hw_view *view;
};

/* Reads the profile at PATH and joins it with its names. What is wrong with it is said. HW_VERB_FINE; or HW_VERB_USAGE,
 * when the file is damaged (OPENED has what could be saved of it) or cannot be read (OPENED->view is NULL). */
int hw_open_view(struct hw_opened *opened, const struct hw_view_arguments *names, const char *path);
void hw_opened_close(struct hw_opened *opened);

#endif
