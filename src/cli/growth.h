/* growth.h - dumps of one run: which files those are, and the report of what grew. */
#ifndef HW_CLI_GROWTH_H
#define HW_CLI_GROWTH_H

#include "cli/open_view.h"
#include "cli/reporting.h"
#include "report/compare/growth.h"

/* Files of one run, in the order of time, with the view of the newest. */
struct hw_growth_run {
    struct hw_growth_file *files;
    char **paths; /* owned: those that were found */
    size_t count, room;
    bool damaged; /* a sister could not be read, as was said */
    struct hw_opened newest;
};

/* Reads the heads of the COUNT files; of one file also of its sisters (NAME.dump1.hwprof … and NAME.hwprof, in its
 * directory) that are of the same run. Opens the newest. HW_VERB_FINE, or HW_VERB_USAGE with a message: a file cannot
 * be read (of a sister: the others are used), they are of different runs, or there are not two moments. Close it in any case. */
int hw_growth_run_open(struct hw_growth_run *run, const struct hw_view_arguments *names, char **paths, int count);
/* The same without opening a file; LEAST: so many moments are needed. */
int hw_growth_run_find(struct hw_growth_run *run, const struct hw_view_arguments *names, char **paths, int count,
                       size_t least);
void hw_growth_run_close(struct hw_growth_run *run);

/* `heapwise report --growth`. Returns the exit code. */
int hw_growth_report(struct hw_reporting *command);

#endif
