/* cc_compiler.h - the compilers that heapwise cc can stand in for, and the plugins there are for them. */
#ifndef HW_CLI_CC_COMPILER_H
#define HW_CLI_CC_COMPILER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum hw_cc_kind { HW_CC_CLANG, HW_CC_GCC };

struct hw_cc_compiler {
    enum hw_cc_kind kind;
    unsigned version;      /* major */
    char path[PATH_MAX];   /* what to execute */
    char plugin[PATH_MAX]; /* clang: the pass made for this version */
    bool must_be_told;     /* clang: it is C++ that is wanted, and the name of the program does not say so */
};

/* The newest clang for which there is a plugin, or, when NAME is not NULL, the compiler of that name or path, which is
 * asked what it is. CPLUSPLUS: the one for C++. Returns 0, or an exit code with ERROR: 127 not found, 126 it cannot be
 * executed, 1 it cannot be used. */
int hw_cc_compiler_find(struct hw_cc_compiler *compiler, const char *name, bool cplusplus, struct hw_error *error);

/* The versions of clang for which there are plugins, newest first; at most ROOM. Returns how many. */
size_t hw_cc_plugin_versions(unsigned *versions, size_t room);

/* Where a clang of this version is: clang-N, clang++-N in PATH, else in /usr/lib/llvm-N/bin, else a clang in PATH that
 * says that this is its version. */
bool hw_cc_find_clang(struct hw_cc_compiler *compiler, unsigned version, bool cplusplus);

#endif
