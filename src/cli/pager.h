/* pager.h - long text on a terminal goes through the user's pager, as git has it. */
#ifndef HW_CLI_PAGER_H
#define HW_CLI_PAGER_H

#include <stdbool.h>

/* Sends stdout, if it is a terminal, to $HEAPWISE_PAGER, else $PAGER, else less; not where that is empty or "cat", or
 * cannot be started. From then on SIGPIPE is ignored. */
void hw_pager_start(void);

/* Closes stdout and waits until the pager has ended, if there is one. A pager that was left early is no error. */
void hw_pager_end(void);

/* Whether a pager reads stdout. */
bool hw_pager_runs(void);

#endif
