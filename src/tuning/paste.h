/* paste.h - a configuration in the forms in which a program can be given it for good. */
#ifndef HW_TUNING_PASTE_H
#define HW_TUNING_PASTE_H

#include "tuning/configuration.h"

enum hw_paste_form {
    HW_PASTE_SHELL,   /* export NAME=VALUE */
    HW_PASTE_SYSTEMD, /* a drop-in of a unit */
    HW_PASTE_DOCKER,  /* an ENV line */
    HW_PASTE_CMAKE,   /* a link line */
    HW_PASTE_FORMS
};

extern const char *const hw_paste_names[HW_PASTE_FORMS]; /* "shell", "systemd", "docker", "cmake" */

/* The text of CONFIGURATION in FORM, which ends with a newline. Lines that explain it begin with '#'. To be freed;
 * NULL: no memory. */
char *hw_paste(const struct hw_configuration *configuration, enum hw_paste_form form);

#endif
