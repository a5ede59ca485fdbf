/* view_options.h - the options that verbs share which name what is in profiles: where names come from, and how much is
 * said meanwhile. */
#ifndef HW_CLI_VIEW_OPTIONS_H
#define HW_CLI_VIEW_OPTIONS_H

#include <stdbool.h>

#include "cli/options.h"
#include "report/view/function_names.h"
#include "report/view/rules.h"
#include "report/view/source.h"
#include "report/view/suppressions.h"
#include "report/view/view.h"

struct hw_view_arguments {
    const char *verb; /* for messages */
    struct hw_view_options view;
    bool quiet;             /* -q: what is not said then is up to the verb */
    const char **binaries;  /* owned; view.binaries */
    struct hw_rules rules;  /* view.rules */
    const char *rules_file; /* --rules; or NULL */
    struct hw_suppressions suppressions; /* view.suppressions */
    struct hw_source_options source;
    struct hw_source_path *source_paths; /* owned; source.paths */
};

/* Rows of a verb's options, whose command is a TYPE with hw_view_arguments as MEMBER. */
#define HW_VIEW_OPTIONS(type, member)                                                                                  \
    HW_OPTION_FLAG("no-debuginfod", 0, type, member.view.symbolizer.no_debuginfod),                                    \
        HW_OPTION_KEPT("sysroot", 0, hw_take_sysroot, struct hw_view_arguments, type, member),                         \
        HW_OPTION_KEPT("binary", 0, hw_take_binary, struct hw_view_arguments, type, member),                           \
        HW_OPTION_FLAG("quiet", 'q', type, member.quiet), HW_OPTION_HELP('h')
bool hw_take_sysroot(void *arguments, const char *value, const struct hw_option *option);
bool hw_take_binary(void *arguments, const char *value, const struct hw_option *option);

/* Rows of verbs that show stacks: which frames and contexts of them. */
#define HW_STACK_OPTIONS(type, member)                                                                                 \
    HW_OPTION_FLAG("no-fold", 0, type, member.view.no_fold),                                                           \
        HW_OPTION_KEPT("hide", 0, hw_take_rule, struct hw_view_arguments, type, member),                               \
        HW_OPTION_KEPT("ignore", 0, hw_take_rule, struct hw_view_arguments, type, member),                             \
        HW_OPTION_KEPT("focus", 0, hw_take_rule, struct hw_view_arguments, type, member),                              \
        HW_OPTION_TEXT("rules", 0, type, member.rules_file)
bool hw_take_rule(void *arguments, const char *value, const struct hw_option *option);

/* Rows of verbs that report lost blocks: which of them do not count. */
#define HW_SUPPRESSION_OPTIONS(type, member)                                                                           \
    HW_OPTION_KEPT("suppressions", 0, hw_take_suppressions, struct hw_view_arguments, type, member)
bool hw_take_suppressions(void *arguments, const char *value, const struct hw_option *option);
/* Says on stderr which suppressions were of no use in VIEW, and what the others took out. */
void hw_say_suppressed(const struct hw_view *view, const char *verb);

/* Rows of verbs that show source lines: where the files are. */
#define HW_SOURCE_OPTIONS(type, member)                                                                                \
    HW_OPTION_KEPT("source-path", 0, hw_take_source_path, struct hw_view_arguments, type, member)
bool hw_take_source_path(void *arguments, const char *value, const struct hw_option *option);

/* Reads the file of rules, after all options were taken: for verbs with HW_STACK_OPTIONS. HW_VERB_FINE or
 * HW_VERB_USAGE. */
int hw_view_arguments_read_rules(struct hw_view_arguments *arguments);

/* Lines of a verb's help; -q and -h are its own. _2, _4: its texts begin so many columns further right. */
#define HW_VIEW_OPTIONS_HELP_PADDED(pad)                                                                               \
    "  --no-debuginfod" pad "  do not fetch debug information, even when\n"                                            \
    "                 " pad "  DEBUGINFOD_URLS is set\n"                                                               \
    "  --sysroot DIR  " pad "  look for programs, libraries and debug files below DIR\n"                               \
    "  --binary FILE  " pad "  a program or library that one of LLVM's heap\n"                                         \
    "                 " pad "  profiles refers to; may be repeated\n"
#define HW_VIEW_OPTIONS_HELP   HW_VIEW_OPTIONS_HELP_PADDED("")
#define HW_VIEW_OPTIONS_HELP_2 HW_VIEW_OPTIONS_HELP_PADDED("  ")
#define HW_VIEW_OPTIONS_HELP_4 HW_VIEW_OPTIONS_HELP_PADDED("    ")
/* The same with those of HW_STACK_OPTIONS. */
#define HW_STACK_OPTIONS_HELP_PADDED(pad)                                                                              \
    "  --no-fold      " pad "  show allocation wrappers (zmalloc, operator new) like\n"                                \
    "                 " pad "  other functions (default: name their callers)\n"                                        \
    "  --hide REGEX   " pad "  remove matching functions from stacks\n"                                                \
    "  --ignore REGEX " pad "  leave out places with a matching function\n"                                            \
    "  --focus REGEX  " pad "  show only places with a matching function; all\n"                                       \
    "                 " pad "  three may be repeated, and leave totals unchanged\n"                                    \
    "  --rules FILE   " pad "  read such rules from FILE; none: from no file\n"                                        \
    "                 " pad "  (default: .heapwiserc in the current directory)\n" HW_VIEW_OPTIONS_HELP_PADDED(pad)
#define HW_STACK_OPTIONS_HELP   HW_STACK_OPTIONS_HELP_PADDED("")
#define HW_STACK_OPTIONS_HELP_2 HW_STACK_OPTIONS_HELP_PADDED("  ")
#define HW_STACK_OPTIONS_HELP_4 HW_STACK_OPTIONS_HELP_PADDED("    ")

/* ARGC and ARGV: of the verb; there are not more binaries than arguments. False, with a message, when there is no
 * memory. The view's other options are the verb's to set. */
bool hw_view_arguments_init(struct hw_view_arguments *arguments, int argc, char **argv);
void hw_view_arguments_free(struct hw_view_arguments *arguments);

/* Shows on stderr how far names are, when that is a terminal and -q was not given. */
void hw_view_arguments_show_progress(struct hw_view_arguments *arguments);

/* Removes what is shown. To be called after each hw_view_new, before anything else is printed. */
void hw_view_arguments_clear_progress(const struct hw_view_arguments *arguments);

/* Says that numbers of PROFILE (or NULL) cannot all be true, if that is so. */
void hw_say_contradictions(const struct hw_profile *profile, const char *path);

#endif
