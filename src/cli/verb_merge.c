/* verb_merge.c - heapwise merge: profiles of many processes as one. */
#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/merge_files.h"

static int merge_files(const struct hw_merge_command *command)
{
    struct hw_merge_outcome outcome = {0};
    struct hw_error *error = &outcome.error;
    unsigned char *bytes = NULL;
    size_t size;
    if (!hw_merge_check_output(command))
        return HW_VERB_USAGE;
    struct hw_merge *merge = hw_merge_new();
    if (!merge)
        hw_error_set(error, "not enough memory");
    if (merge && hw_merge_add_files(merge, command, command->files, command->file_count, &outcome)) {
        if (outcome.merged)
            bytes = hw_merge_bytes(merge, command, &size, error);
        else
            hw_error_set(error, "no profile is left to merge");
    }
    hw_merge_free(merge);
    if (!bytes)
        hw_say("merge: %s", error->message);
    const bool fine = bytes && hw_merge_write(command, bytes, size, &outcome);
    free(bytes);
    return fine ? HW_VERB_FINE : HW_VERB_USAGE;
}

/* Under mpirun (Open MPI) a sibling takes over, so that heapwise itself does not need MPI. */
static int run_under_mpi(int argc, char **argv)
{
    char path[PATH_MAX];
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (hw_installed_path(path, sizeof path, HEAPWISE_LIBDIR "/heapwise-merge-mpi"))
        execv(path, argv);
    if (!rank || !strcmp(rank, "0")) /* once, not by every process */
        hw_say(errno == ENOENT ? "merge: cannot run under mpirun: this heapwise was built without MPI (it takes "
                                 "libopenmpi-dev; see scripts/setup)"
                               : "merge: cannot run under mpirun: %s",
               strerror(errno));
    return HW_VERB_USAGE;
}

int hw_verb_merge(int argc, char **argv)
{
    struct hw_merge_command command;
    const char *processes = getenv("OMPI_COMM_WORLD_SIZE");
    if (processes && strtol(processes, NULL, 10) > 1)
        return run_under_mpi(argc, argv);
    const int parsed = hw_merge_parse(&command, argc, argv);
    int code = parsed - 1;
    if (!parsed && command.local && processes)
        code = run_under_mpi(argc, argv);
    else if (!parsed && command.local) {
        hw_say("merge: --local is for mpirun heapwise merge");
        code = HW_VERB_USAGE;
    } else if (!parsed)
        code = merge_files(&command);
    hw_merge_command_free(&command);
    return code;
}
