/* target.h - the program to be recorded: which file runs, and whether the runtime can be loaded into it.
 *
 * Everything that would end in a silent empty profile, or in a program that does not start, is found here, before
 * anything is started: the dynamic linker ignores LD_PRELOAD, or a library of another machine, without failing. */
#ifndef HW_CLI_TARGET_H
#define HW_CLI_TARGET_H

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"

struct hw_target {
    char path[PATH_MAX];  /* what to execute: the file that execvp would have chosen */
    char image[PATH_MAX]; /* the file whose code runs, symbolic links resolved: PATH, or a script's interpreter */
    bool text;            /* neither a binary nor "#!": the system refuses it, execvp and shells hand it to /bin/sh */
    bool unchecked;       /* may be executed but not read: nothing is known of it */
    bool musl;            /* its dynamic linker is musl's */
    bool is_static;       /* there is none: nothing can be preloaded */
};

/* Looks PROGRAM up as execvp does. Returns 0, or 127 or 126 with ERROR. */
int hw_find_program(const char *program, char path[PATH_MAX], struct hw_error *error);

/* The rights that executing the file PATH would give and the caller has not ("set-user-id", …): the system ignores
 * LD_PRELOAD and settings of allocators in the environment then. NULL: none, or it may not be read. */
const char *hw_target_privileges(const char *path);

/* Looks PROGRAM up as execvp does and checks what will run. Returns 0, or the exit code for `heapwise record` (127 not
 * found, 126 not executable, 125 the runtime cannot be loaded into it) with ERROR. */
int hw_target_resolve(const char *program, struct hw_target *target, struct hw_error *error);

#endif
