/* merge.c - heapwise merge: profiles of many processes as one. */
#include "cli/cli.h"

#include <stdlib.h>

#include "cli/merge_files.h"

static int merge_files(const struct hw_merge_command *command)
{
    struct hw_merge_outcome outcome = {0};
    unsigned char *bytes = NULL;
    size_t size;
    if (!hw_merge_check_output(command))
        return HW_VERB_USAGE;
    struct hw_merge *merge = hw_merge_new();
    if (!merge)
        hw_say("merge: not enough memory");
    bool fine = merge && hw_merge_add_files(merge, command, command->files, command->file_count, &outcome);
    if (fine && !outcome.merged)
        hw_say("merge: no profile is left to be merged");
    else if (fine)
        bytes = hw_merge_bytes(merge, command, &size);
    hw_merge_free(merge);
    fine = bytes && hw_merge_write(command, bytes, size, &outcome);
    free(bytes);
    return fine ? HW_VERB_FINE : HW_VERB_USAGE;
}

int hw_verb_merge(int argc, char **argv)
{
    struct hw_merge_command command;
    const int parsed = hw_merge_parse(&command, argc, argv);
    const int code = parsed ? parsed - 1 : merge_files(&command);
    hw_merge_command_free(&command);
    return code;
}
