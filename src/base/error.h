/* error.h - how the libraries outside the profiled process say what went wrong.
 *
 * A function that can fail takes a struct hw_error *, returns an error value (NULL, -1, false) and has then filled in
 * a message for the person who can act: what was tried, on which file, why it failed. Libraries never print or exit. */
#ifndef HW_BASE_ERROR_H
#define HW_BASE_ERROR_H

#include <stdarg.h>
#include <stdio.h>

struct hw_error {
    char message[512]; /* one line without a newline, "" when there is none */
};

/* Formats the message (cut to fit). ERROR may be NULL. */
__attribute__((format(printf, 2, 3))) static inline void hw_error_set(struct hw_error *error, const char *format, ...)
{
    if (!error)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
}

#endif
