/* filters.h - filters of system calls (seccomp), which the program sets for itself. */
#ifndef TESTS_PROGRAMS_FILTERS_H
#define TESTS_PROGRAMS_FILTERS_H

#include <stdbool.h>

/* KIND: a row of filters.c, or several with '+' between them. False: there is none of that name, or it cannot be set. */
bool set_filters(const char *kind);

#endif
