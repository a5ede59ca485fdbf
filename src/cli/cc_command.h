/* cc_command.h - the command that heapwise cc executes: the compiler's, with what counting needs put into it. */
#ifndef HW_CLI_CC_COMMAND_H
#define HW_CLI_CC_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/cc_arguments.h"
#include "cli/cc_compiler.h"
#include "base/error.h"

/* heapwise cc's own options. */
struct hw_cc_options {
    unsigned granule; /* 64 or 8; 0: only fields are counted */
    bool fields;
    bool no_consolidate, verbose;
    const char *compiler;    /* NULL: the newest clang */
    const char *output;      /* pattern of the profile's name; NULL: the runtime's own */
    const char *ignore_list; /* file; NULL: none */
};

struct hw_cc_request {
    bool cplusplus;
    struct hw_cc_options options;
    char *const *rest; /* the compiler's own words, ended by NULL */
    struct hw_cc_arguments arguments;
    struct hw_cc_compiler compiler;
};

/* Words, ended by NULL, all allocated. */
struct hw_cc_command {
    char **words;
    size_t count, room;
};

/* Can what is asked for be counted? False with ERROR, which says why not. */
bool hw_cc_acceptable(const struct hw_cc_request *request, struct hw_error *error);

/* Where RUNTIME is the library to link with. False with ERROR: no memory, or a part of Heapwise is missing. */
bool hw_cc_command_make(struct hw_cc_command *command, const struct hw_cc_request *request, const char *runtime,
                        struct hw_error *error);
void hw_cc_command_free(struct hw_cc_command *command);

#endif
