/* reporting.h - what the verbs share that print reports of files: report and
 * fields; diff and check take their options and the terminal from here. */
#ifndef HW_CLI_REPORTING_H
#define HW_CLI_REPORTING_H

#include "cli/cli.h"
#include "cli/view_options.h"
#include "report/report.h"

struct hw_reporting {
    const char *verb;                /* for messages */
    struct hw_report_options report; /* terminal excepted */
    struct hw_view_arguments names;
    bool json;
    const char *color; /* "auto", "always", "never" */
    char **files;
    int file_count;
};

enum {
    HW_OPTION_TOP = 480, /* a verb's own options have smaller numbers */
    HW_OPTION_FULL,
    HW_OPTION_JSON,
    HW_OPTION_COLOR,
};

/* Entries of a verb's table of long options; HW_VIEW_OPTIONS among them. */
#define HW_REPORTING_OPTIONS                                                                                           \
    {"top", required_argument, NULL, HW_OPTION_TOP}, {"full", no_argument, NULL, HW_OPTION_FULL},                      \
        {"json", no_argument, NULL, HW_OPTION_JSON}, {"color", optional_argument, NULL, HW_OPTION_COLOR},              \
        HW_VIEW_OPTIONS

/* Parses a verb's arguments. OPTIONS has HW_REPORTING_OPTIONS; TAKE takes the verb's own ones (value in optarg): false,
 * with a message, when the value is none. HW_VERB_FINE to go on, HW_VERB_USAGE, or -1 when HELP was printed. */
int hw_reporting_parse(struct hw_reporting *command, int argc, char **argv, const struct option *options,
                       bool (*take)(struct hw_reporting *command, int option), const char *help);

/* Finds out what standard output can show: width, colour, characters. Shows on stderr how far names are. */
void hw_reporting_terminal(struct hw_reporting *command);

/* Reports all files, in the order given, to stdout. Returns the exit code; when stdout cannot be written errno says
 * why. */
int hw_reporting_run(struct hw_reporting *command);

#endif
