/* reporting.h - what the verbs share that print reports of files: report and fields. */
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

/* The values of --top and --color. False, with a message, when they are none. */
bool hw_reporting_set_top(struct hw_reporting *command, const char *value);
bool hw_reporting_set_color(struct hw_reporting *command, const char *value);

/* Reports all files, in the order given, to stdout. Returns the exit code; when stdout cannot be written errno says
 * why. */
int hw_reporting_run(struct hw_reporting *command);

#endif
