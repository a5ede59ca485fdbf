/* key_values.h - text of lines "key = value" in sections "[name]"; '#' at the begin of a line or behind a space begins
 * a comment. */
#ifndef HW_TUNING_KEY_VALUES_H
#define HW_TUNING_KEY_VALUES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct hw_key_value {
    const char *section; /* "": before the first one */
    const char *key;     /* NULL: the section begins */
    const char *value;
};

/* Calls TAKE for each line of TEXT; what is wrong with it (of a static text, or in ERROR), or NULL. False with ERROR:
 * "SOURCE, line N: …". */
bool hw_key_values_each(const char *text, const char *source,
                        const char *(*take)(void *context, const struct hw_key_value *line), void *context,
                        struct hw_error *error);

/* A file of at most 64 KiB as text. To be freed; NULL with ERROR. */
char *hw_key_values_file(const char *path, struct hw_error *error);

#endif
