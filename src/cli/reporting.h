/* reporting.h - what the verbs share that print reports of files: report and
 * fields; diff and check take their options and the terminal from here. */
#ifndef HW_CLI_REPORTING_H
#define HW_CLI_REPORTING_H

#include "cli/cli.h"
#include "cli/view_options.h"
#include "report/report.h"

/* Options that all verbs with reports have, in their help. */
#define HW_REPORTING_HELP                                                                                              \
    "  --json           one object for a program to read (see docs/json.md); an array\n"                               \
    "                   of them for several FILEs\n"                                                                   \
    "  --color=WHEN     auto (default: on a terminal, unless NO_COLOR is set),\n"                                      \
    "                   always, never\n"

struct hw_reporting {
    struct hw_report_options report; /* terminal excepted */
    struct hw_view_arguments names;
    bool json;
    bool all, no_pager, growth;
    const char *color; /* "auto", "always", "never" */
    const char *what; /* the arguments are: NULL: "FILE" */
    char **files;
    int file_count;
    /* Or NULL. The exit code for a file that could be read; it may also say that there is nothing to report. */
    int (*judge)(struct hw_reporting *command, const struct hw_view *view, const char *path);
};

/* Rows of the options of a verb whose command begins with a struct hw_reporting. */
#define HW_REPORTING_OPTIONS                                                                                           \
    HW_OPTION_CALL("top", 0, hw_take_top), HW_OPTION_FLAG("full", 0, struct hw_reporting, report.full),                \
        HW_OPTION_FLAG("no-pager", 0, struct hw_reporting, no_pager), HW_REPORTING_FORM
/* Those of them that `check` has, too. */
#define HW_REPORTING_FORM                                                                                              \
    HW_OPTION_FLAG("json", 0, struct hw_reporting, json),                                                              \
        {.name = "color", .value = optional_argument, .take = hw_take_color},                                          \
        HW_VIEW_OPTIONS(struct hw_reporting, names)
bool hw_take_top(void *reporting, const char *value, const struct hw_option *option);
bool hw_take_color(void *reporting, const char *value, const struct hw_option *option);

/* Parses a verb's arguments. OPTIONS has the rows above. HW_VERB_FINE to go on, HW_VERB_USAGE, or -1 when HELP was
 * printed. */
int hw_reporting_parse(struct hw_reporting *command, int argc, char **argv, const struct hw_option *options,
                       const char *help);

/* Finds out what standard output can show: width, colour, characters. Shows on stderr how far names are. */
void hw_reporting_terminal(struct hw_reporting *command);

/* To be called when the first output is ready: starts the pager on a terminal, and ends the showing of progress. */
void hw_reporting_page(struct hw_reporting *command);

/* Reports all files, in the order given, to stdout. Returns the exit code; when stdout cannot be written errno says
 * why. */
int hw_reporting_run(struct hw_reporting *command);

#endif
