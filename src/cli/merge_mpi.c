/* merge_mpi.c - heapwise merge under mpirun: the files are divided over the processes of the job, and their sums are
 * added up along a tree. A program of its own, so that heapwise itself does not need MPI.
 *
 * A process in trouble goes on with the protocol, and hands on its error instead of a sum: nobody waits for what does
 * not come, and rank 0 says the first error. */
#include <limits.h>
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/merge_files.h"
#include "profile/profile.h"

enum { TAG_STATE = 1, TAG_BYTES = 2, PART_MOST = 1 << 28 };

/* What a process hands on, before the bytes of its sum. */
struct state {
    uint64_t size; /* of the sum; 0: there is none */
    uint64_t merged, skipped;
    uint64_t failed;
    struct hw_error error;
};

struct job {
    int rank, size;
    struct hw_merge_command command;
    struct hw_merge *merge;
    struct state state;
};

static void fail(struct job *job, const char *message)
{
    if (!job->state.failed)
        hw_error_set(&job->state.error, "%s", message);
    job->state.failed = 1;
}

/* ---- the command ---- */

/* The names of all files, one behind the other, from rank 0 to all others. */
static bool share_files(struct job *job)
{
    struct hw_merge_command *command = &job->command;
    uint64_t counts[2] = {0}; /* files, bytes */
    for (size_t i = 0; job->rank == 0 && i < command->file_count; i++)
        counts[1] += strlen(command->files[i]) + 1;
    counts[0] = command->file_count;
    MPI_Bcast(counts, 2, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    char *names = counts[1] <= INT_MAX ? malloc(counts[1] + 1) : NULL;
    int fine = names != NULL, all;
    MPI_Allreduce(&fine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!all) {
        free(names);
        return false;
    }
    char *end = names;
    for (size_t i = 0; job->rank == 0 && i < command->file_count; i++)
        end = stpcpy(end, command->files[i]) + 1;
    MPI_Bcast(names, (int)counts[1], MPI_CHAR, 0, MPI_COMM_WORLD);
    if (job->rank) {
        command->files = calloc(counts[0] + 1, sizeof *command->files);
        for (const char *name = names; command->files && command->file_count < counts[0]; name += strlen(name) + 1) {
            command->files[command->file_count] = strdup(name);
            if (!command->files[command->file_count])
                break;
            command->file_count++;
        }
        fine = command->file_count == counts[0];
    }
    free(names);
    if (!fine)
        fail(job, "not enough memory");
    return true;
}

/* The options that matter beside the files. */
static void share_options(struct job *job)
{
    struct hw_merge_command *command = &job->command;
    uint32_t options[4] = {command->keep_going, command->quiet, command->threads, command->local};
    MPI_Bcast(options, 4, MPI_UINT32_T, 0, MPI_COMM_WORLD);
    if (job->rank == 0)
        return;
    command->keep_going = options[0];
    command->quiet = options[1];
    command->threads = options[2];
    command->local = options[3];
}

/* NAME with %h as the machine's name, %r as the rank and %% as %; to be freed. */
static char *expanded(const char *name, int rank)
{
    char host[256] = "", number[16];
    gethostname(host, sizeof host - 1);
    snprintf(number, sizeof number, "%d", rank);
    char *text = malloc(strlen(name) * (strlen(host) + sizeof number) + 1), *end = text;
    for (const char *at = name; text && *at; at++) {
        const char *part = *at != '%' ? NULL : at[1] == 'h' ? host : at[1] == 'r' ? number : at[1] == '%' ? "%" : NULL;
        if (part)
            end = stpcpy(end, part);
        else
            *end++ = *at;
        at += part != NULL;
    }
    if (text)
        *end = '\0';
    return text;
}

static void expand_files(struct job *job)
{
    for (size_t i = 0; i < job->command.file_count; i++) {
        char *name = expanded(job->command.files[i], job->rank);
        if (!name) {
            fail(job, "not enough memory");
            return;
        }
        free(job->command.files[i]);
        job->command.files[i] = name;
    }
}

/* 0 to go on, else the exit code + 1; the same in all processes. Only rank 0 reads the command line, unless each has
 * lists of its own. */
static int take_command(struct job *job, int argc, char **argv)
{
    int code = 0, most;
    if (job->rank == 0) {
        code = hw_merge_parse(&job->command, argc, argv);
        if (!code && !hw_merge_check_output(&job->command))
            code = HW_VERB_USAGE + 1;
    }
    MPI_Bcast(&code, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (code)
        return code;
    share_options(job);
    if (!job->command.local) {
        if (share_files(job))
            return 0;
        if (job->rank == 0)
            hw_say("merge: not enough memory");
        return HW_VERB_USAGE + 1;
    }
    if (job->rank)
        code = hw_merge_parse(&job->command, argc, argv);
    if (!code)
        expand_files(job);
    MPI_Allreduce(&code, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

/* ---- the sum ---- */

/* Processes on one machine share its processors. */
static void choose_threads(struct hw_merge_command *command)
{
    const char *text = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    const long here = text ? strtol(text, NULL, 10) : 1, processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (!command->threads)
        command->threads = here > 0 && processors > here ? (unsigned)(processors / here) : 1;
}

static void add_own_files(struct job *job)
{
    const size_t count = job->command.file_count, rank = (size_t)job->rank, size = (size_t)job->size;
    const size_t first = job->command.local ? 0 : count * rank / size,
                 end = job->command.local ? count : count * (rank + 1) / size;
    struct hw_merge_outcome outcome = {0};
    job->merge = hw_merge_new();
    choose_threads(&job->command);
    if (!job->merge)
        fail(job, "not enough memory");
    else if (!job->state.failed &&
             !hw_merge_add_files(job->merge, &job->command, job->command.files + first, end - first, &outcome))
        fail(job, outcome.error.message);
    job->state.merged = outcome.merged;
    job->state.skipped = outcome.skipped;
}

static void send_bytes(const unsigned char *bytes, uint64_t size, int to)
{
    for (uint64_t at = 0; at < size; at += PART_MOST)
        MPI_Send(bytes + at, (int)(size - at < PART_MOST ? size - at : PART_MOST), MPI_BYTE, to, TAG_BYTES,
                 MPI_COMM_WORLD);
}

static void send_sum(struct job *job, int to)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    struct hw_error error = {""};
    if (!job->state.failed && job->state.merged) {
        bytes = hw_merge_bytes(job->merge, NULL, &size, &error);
        if (!bytes)
            fail(job, error.message);
    }
    job->state.size = bytes ? size : 0;
    MPI_Send(&job->state, sizeof job->state, MPI_BYTE, to, TAG_STATE, MPI_COMM_WORLD);
    send_bytes(bytes, job->state.size, to);
    free(bytes);
}

static void receive_sum(struct job *job, int from)
{
    struct state state;
    struct hw_error error = {""};
    MPI_Recv(&state, sizeof state, MPI_BYTE, from, TAG_STATE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    unsigned char *bytes = malloc(state.size ? state.size : 1), *part = bytes ? NULL : malloc(PART_MOST);
    if (!bytes)
        fail(job, "not enough memory");
    if (!bytes && !part) /* not even room to throw it away */
        MPI_Abort(MPI_COMM_WORLD, HW_VERB_USAGE);
    for (uint64_t at = 0; at < state.size; at += PART_MOST)
        MPI_Recv(bytes ? bytes + at : part, (int)(state.size - at < PART_MOST ? state.size - at : PART_MOST), MPI_BYTE,
                 from, TAG_BYTES, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (state.failed)
        fail(job, state.error.message);
    if (bytes && state.size && !job->state.failed) {
        struct hw_profile *profile = hw_profile_read_bytes(bytes, state.size, "the sum of other processes", &error);
        if (!profile || !hw_merge_add(job->merge, profile, &error))
            fail(job, error.message);
        hw_profile_free(profile);
    }
    job->state.merged += state.merged;
    job->state.skipped += state.skipped;
    free(bytes);
    free(part);
}

/* To rank 0, in as many steps as the number of processes has bits. Lower ranks have earlier files: the error that
 * arrives is that of the first bad one. */
static void reduce(struct job *job)
{
    for (int step = 1; step < job->size; step *= 2) {
        if (job->rank % (2 * step) == step) {
            send_sum(job, job->rank - step);
            return;
        }
        if (job->rank + step < job->size)
            receive_sum(job, job->rank + step);
    }
}

static int write_sum(struct job *job)
{
    const struct hw_merge_outcome outcome = {.merged = job->state.merged, .skipped = job->state.skipped};
    struct hw_error error = {""};
    unsigned char *bytes = NULL;
    size_t size = 0;
    if (!job->state.failed && !job->state.merged)
        fail(job, "no profile is left to merge");
    if (!job->state.failed) {
        bytes = hw_merge_bytes(job->merge, &job->command, &size, &error);
        if (!bytes)
            fail(job, error.message);
    }
    if (job->state.failed)
        hw_say("merge: %s", job->state.error.message);
    const bool fine = bytes && hw_merge_write(&job->command, bytes, size, &outcome);
    free(bytes);
    return fine ? HW_VERB_FINE : HW_VERB_USAGE;
}

int main(int argc, char **argv)
{
    struct job job = {0};
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS) {
        hw_say("merge: MPI cannot be started");
        return HW_VERB_USAGE;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.size);
    int code = take_command(&job, argc, argv);
    if (code) {
        code--;
    } else {
        add_own_files(&job);
        reduce(&job);
        code = job.rank == 0 ? write_sum(&job) : HW_VERB_FINE;
        MPI_Bcast(&code, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    hw_merge_free(job.merge);
    hw_merge_command_free(&job.command);
    MPI_Finalize();
    return code;
}
