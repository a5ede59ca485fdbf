/* view_options.h - the options that verbs share which name what is in profiles: where names come from, and how much is
 * said meanwhile. */
#ifndef HW_CLI_VIEW_OPTIONS_H
#define HW_CLI_VIEW_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>

#include "report/view/view.h"

struct hw_view_arguments {
    struct hw_view_options view;
    bool quiet;            /* -q: what is not said then is up to the verb */
    const char **binaries; /* owned; view.binaries */
};

enum {
    HW_OPTION_NO_DEBUGINFOD = 512, /* a verb's own options have smaller numbers */
    HW_OPTION_SYSROOT,
    HW_OPTION_BINARY,
};

/* Entries of a verb's table of long options, and of its short options, which begin with ':'. */
#define HW_VIEW_OPTIONS                                                                                                \
    {"no-debuginfod", no_argument, NULL, HW_OPTION_NO_DEBUGINFOD},                                                     \
        {"sysroot", required_argument, NULL, HW_OPTION_SYSROOT},                                                       \
        {"binary", required_argument, NULL, HW_OPTION_BINARY}, {"quiet", no_argument, NULL, 'q'},                      \
    {                                                                                                                  \
        "help", no_argument, NULL, 'h'                                                                                 \
    }
#define HW_VIEW_SHORT_OPTIONS "qh"

/* Lines of a verb's help; -q and -h are its own. */
#define HW_VIEW_OPTIONS_HELP                                                                                           \
    "  --no-debuginfod  do not fetch debug information, even when DEBUGINFOD_URLS is\n"                                \
    "                   set\n"                                                                                         \
    "  --sysroot DIR    look for programs, libraries and debug files below DIR\n"                                      \
    "  --binary FILE    a program or library that one of LLVM's heap profiles refers\n"                                \
    "                   to; may be repeated\n"

/* ARGC: of the verb; there are not more binaries than arguments. False, with a message, when there is no memory. The
 * view's other options are the verb's to set. */
bool hw_view_arguments_init(struct hw_view_arguments *arguments, int argc);
void hw_view_arguments_free(struct hw_view_arguments *arguments);

/* Hands all options of the command line to TAKE, one by one, until it gives something else than HW_VERB_FINE, which is
 * given back. LETTERS begin with ':'; messages are left to TAKE. */
int hw_view_arguments_each(int argc, char **argv, const char *letters, const struct option *options,
                           int (*take)(void *command, int option, char **argv), void *command);

/* Takes OPTION, as getopt_long has returned it, where it is none of the verb's own: also one that is unknown or lacks
 * its value. Messages begin with argv[0]; HELP is printed for -h. HW_VERB_FINE, HW_VERB_USAGE, or -1 when help was
 * printed. */
int hw_view_arguments_take(struct hw_view_arguments *arguments, int option, char **argv, const char *help);

/* Shows on stderr how far names are, when that is a terminal and -q was not given. */
void hw_view_arguments_show_progress(struct hw_view_arguments *arguments);

/* Removes what is shown. To be called after each hw_view_new, before anything else is printed. */
void hw_view_arguments_clear_progress(const struct hw_view_arguments *arguments);

/* Says that numbers of PROFILE (or NULL) cannot all be true, if that is so. */
void hw_say_contradictions(const struct hw_profile *profile, const char *path);

#endif
