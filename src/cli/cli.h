/* cli.h - the verbs of the command line and what they share.
 *
 * A verb is `int hw_verb_NAME(int argc, char **argv)` with argv[0] the verb itself; it returns the exit code of the
 * process. Results go to stdout, everything else to stderr through hw_say. */
#ifndef HW_CLI_CLI_H
#define HW_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/preload.h"

enum hw_verb_code {
    HW_VERB_FINE = 0,
    HW_VERB_NEGATIVE = 1,         /* diff, check: a limit is broken; doctor: nothing can be recorded; cc: this cannot be
                                     built so */
    HW_VERB_USAGE = 2,            /* wrong usage, or input that cannot be read */
    HW_VERB_CANNOT_START = 125,   /* record: Heapwise could not start the program */
    HW_VERB_NOT_EXECUTABLE = 126, /* record: the program; cc: the compiler */
    HW_VERB_NOT_FOUND = 127,
};

int hw_verb_record(int argc, char **argv);
int hw_verb_report(int argc, char **argv);
int hw_verb_merge(int argc, char **argv);
int hw_verb_fields(int argc, char **argv);
int hw_verb_leaks(int argc, char **argv);
int hw_verb_check(int argc, char **argv);
int hw_verb_diff(int argc, char **argv);
int hw_verb_export(int argc, char **argv);
int hw_verb_import(int argc, char **argv);
int hw_verb_view(int argc, char **argv);
int hw_verb_attach(int argc, char **argv);
int hw_verb_detach(int argc, char **argv);
int hw_verb_dump(int argc, char **argv);
int hw_verb_start(int argc, char **argv);
int hw_verb_stop(int argc, char **argv);
int hw_verb_top(int argc, char **argv);
int hw_verb_allocators(int argc, char **argv);
int hw_verb_compare(int argc, char **argv);
int hw_verb_run(int argc, char **argv);
int hw_verb_tune(int argc, char **argv);
int hw_verb_doctor(int argc, char **argv);
int hw_verb_cc(int argc, char **argv); /* cc and c++ */

int hw_verb_complete(int argc, char **argv); /* for shells: not in the table */

/* main.c: all verbs, in the order in which they are shown. */
struct hw_verb {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
};
extern const struct hw_verb hw_verbs[];
extern const size_t hw_verb_count;

/* Prints "heapwise: " and the message as one line to stderr. */
__attribute__((format(printf, 1, 2))) void hw_say(const char *format, ...);

/* Where the library is that is loaded into programs: $HEAPWISE_RUNTIME, else the one that was installed with this
 * executable. PATH is filled in also on failure, as long as
 * it is known where the library should be. */
bool hw_find_runtime(char *path, size_t size, struct hw_error *error);

/* For hw_input_take. */
void hw_say_input_waits(void);

/* A decimal number in [least, most]. */
bool hw_parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *value);

/* NAME as a word of the shell: quoted when it needs to be. Cut to fit SIZE. */
const char *hw_shell_word(const char *name, char *buffer, size_t size);
/* The same for the name of a file, which must not look like an option: "./-x". */
const char *hw_shell_file(const char *name, char *buffer, size_t size);

#endif
