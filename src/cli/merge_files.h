/* merge_files.h - what `heapwise merge` does with files; shared with its sibling for many machines. */
#ifndef HW_CLI_MERGE_FILES_H
#define HW_CLI_MERGE_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "profile/merge/merge.h"
#include "report/view/view.h"

struct hw_merge_command {
    const char *output; /* NULL: standard output */
    char **files;       /* owned, as their names */
    size_t file_count, file_room;
    unsigned threads; /* 0: one for each processor */
    bool force, keep_going, quiet, local, symbolize;
    bool listed;                  /* a list of files was read */
    struct hw_view_options names; /* for `symbolize` */
    const char **binaries;        /* owned; names.binaries */
};

/* 0 to go on, the exit code + 1 when nothing is left to do (help was printed, or the message that something is wrong).
 */
int hw_merge_parse(struct hw_merge_command *command, int argc, char **argv);
void hw_merge_command_free(struct hw_merge_command *command);

struct hw_merge_outcome {
    size_t merged, skipped;
    struct hw_error error; /* why nothing is written */
};

/* Adds the COUNT files from FILES on. Says which ones are skipped; false with the outcome's error when there is a bad
 * one that may not be skipped, or no memory. */
bool hw_merge_add_files(struct hw_merge *merge, const struct hw_merge_command *command, char *const *files,
                        size_t count, struct hw_merge_outcome *outcome);

/* The sum as the bytes of a profile, to be freed; symbolised if COMMAND asks for it. It is NULL for the sum of a part,
 * which another process adds to its own. NULL with ERROR. */
unsigned char *hw_merge_bytes(struct hw_merge *merge, const struct hw_merge_command *command, size_t *size,
                              struct hw_error *error);
/* Before the work: false (and said) when the output is in the way. */
bool hw_merge_check_output(const struct hw_merge_command *command);
bool hw_merge_write(const struct hw_merge_command *command, const unsigned char *bytes, size_t size,
                    const struct hw_merge_outcome *outcome);

#endif
