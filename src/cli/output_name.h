/* output_name.h - where profiles go: from the name the user gave to the pattern the runtime gets, and back to the
 * files.
 *
 * In a pattern %p stands for the process id, %e the executable, %h the host, %n a number that makes the name unique,
 * %c a colon (options are separated by colons) and %% a percent sign. The runtime replaces them in each process of the
 * tree, and never overwrites: when the name is taken it inserts ".PID", then ".PID.N", before the extension; ".N" if
 * the name has PID. */
#ifndef HW_CLI_OUTPUT_NAME_H
#define HW_CLI_OUTPUT_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct hw_output_name {
    char *pattern;   /* absolute; fit to be the value of output= in HEAPWISE_OPTIONS */
    char *wildcard;  /* for glob(3): matches every file the pattern can lead to (and more) */
    char *directory; /* where the files go; NULL when that depends on the process */
    char *name;      /* the file of the program itself; NULL when the name is unique anyway (%p, %n) */
};

/* The value of the last output= in a HEAPWISE_OPTIONS string, into VALUE; false: there is none. */
bool hw_output_name_from_options(const char *options, char *value, size_t size);

/* GIVEN: the pattern the user chose, or NULL for "%e.%p.hwprof"; relative ones start at the current directory.
 * EXECUTABLE: what %e stands for in the program itself. False with ERROR when GIVEN is not a pattern. */
bool hw_output_name_init(struct hw_output_name *output, const char *given, const char *executable,
                         struct hw_error *error);
void hw_output_name_free(struct hw_output_name *output);

/* Can the file be made? Checks the directory. An existing file is deleted with FORCE, and an error without. False with
 * ERROR. */
bool hw_output_name_prepare(const struct hw_output_name *output, bool force, struct hw_error *error);

#endif
