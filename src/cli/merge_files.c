/* merge_files.c - see merge_files.h.
 *
 * Files are read and added up by several threads. They are admitted in the order of the command line, so that what is
 * said, and which file decides what others must agree with, does not depend on which thread is faster. */
#include "cli/merge_files.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/growing.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/view_options.h"
#include "profile/tables.h"
#include "profile/container/write.h"
#include "report/view/symbolise.h"

static const char help[] = "Usage: heapwise merge [-o FILE] [OPTION]... FILE...\n"
                           "Add up profiles of any number of processes, machines and programs into one.\n"
                           "\n"
                           "  -o, --output FILE  the profile to write; - or none: standard output\n"
                           "  -f, --force        overwrite it\n"
                           "  --inputs LIST      merge also the files whose names are the lines of LIST (-:\n"
                           "                     standard input); @LIST is the same\n"
                           "  --keep-going       skip files that cannot be read, are damaged or do not fit;\n"
                           "                     without this option one such file stops the merge\n"
                           "  --symbolize        store the names of functions, files and lines in the\n"
                           "                     result, so that it can be read without the programs;\n"
                           "                     names that FILEs already have are always kept\n"
                           "  --no-debuginfod    with --symbolize: do not fetch debug information, even when\n"
                           "                     DEBUGINFOD_URLS is set\n"
                           "  --sysroot DIR      with --symbolize: look for programs, libraries and debug\n"
                           "                     files below DIR\n"
                           "  --binary FILE      a program or library that one of LLVM's heap profiles\n"
                           "                     refers to; may be repeated\n"
                           "  -j, --threads N    use N threads (default: one for each processor)\n"
                           "  --local            under mpirun: every process merges all the named files of\n"
                           "                     its own machine; %h is its name, %r its rank\n"
                           "  -q, --quiet        no progress and no summary\n"
                           "  -h, --help         this text\n"
                           "\n"
                           "FILE is a profile of Heapwise, merged or of one process (ended, killed or still\n"
                           "running), or a heap profile of LLVM. Numbers of the same call stack in the same\n"
                           "build of a program are added up, wherever it was loaded.\n"
                           "\n"
                           "Exit code: 0, or 2 for wrong usage and for files that cannot be merged.\n";

/* ---- the command line ---- */

static bool add_file(struct hw_merge_command *command, const char *name)
{
    char *file = strdup(name);
    if (!file || !HW_GROW(command->files, command->file_room, command->file_count + 1)) {
        hw_say("merge: not enough memory");
        free(file);
        return false;
    }
    command->files[command->file_count++] = file;
    return true;
}

static bool take_list(void *closure, const char *name, const struct hw_option *option)
{
    struct hw_merge_command *command = closure;
    const bool standard = !strcmp(name, "-");
    FILE *list = standard ? stdin : fopen(name, "re");
    char *line = NULL;
    size_t room = 0;
    bool fine = list != NULL;
    command->listed = true;
    for (ssize_t size; fine && (size = getline(&line, &room, list)) >= 0;) {
        if (size > 0 && line[size - 1] == '\n')
            line[--size] = '\0';
        if (size > 0)
            fine = add_file(command, line);
    }
    fine = fine && !ferror(list);
    if (!fine)
        hw_say("merge: cannot read the list '%s': %s", name, strerror(errno));
    free(line);
    if (list && !standard)
        fclose(list);
    return fine;
}

static bool take_threads(void *threads, const char *value, const struct hw_option *option)
{
    uint64_t number;
    if (!hw_parse_number(value, 1, 1024, &number))
        return hw_option_needs(option, value, "a number from 1 to 1024");
    *(unsigned *)threads = (unsigned)number;
    return true;
}

static bool take_binary(void *closure, const char *value, const struct hw_option *option)
{
    struct hw_merge_command *command = closure;
    command->binaries[command->names.binary_count++] = value; /* there are not more of them than arguments */
    return true;
}

static const struct hw_option verb_options[] = {
    HW_OPTION_OUTPUT("output", 'o', struct hw_merge_command, output),
    HW_OPTION_FLAG("force", 'f', struct hw_merge_command, force),
    HW_OPTION_CALL("inputs", 0, take_list),
    HW_OPTION_FLAG("keep-going", 0, struct hw_merge_command, keep_going),
    HW_OPTION_KEPT("threads", 'j', take_threads, unsigned, struct hw_merge_command, threads),
    HW_OPTION_FLAG("symbolize", 0, struct hw_merge_command, symbolize),
    HW_OPTION_FLAG("no-debuginfod", 0, struct hw_merge_command, names.symbolizer.no_debuginfod),
    HW_OPTION_TEXT("sysroot", 0, struct hw_merge_command, names.symbolizer.sysroot),
    HW_OPTION_CALL("binary", 0, take_binary),
    HW_OPTION_FLAG("local", 0, struct hw_merge_command, local),
    HW_OPTION_FLAG("quiet", 'q', struct hw_merge_command, quiet),
    HW_OPTION_HELP('h'),
    {0},
};

int hw_merge_parse(struct hw_merge_command *command, int argc, char **argv)
{
    *command = (struct hw_merge_command){.binaries = calloc((size_t)argc + 1, sizeof *command->binaries)};
    if (!command->binaries) {
        hw_say("merge: not enough memory");
        return HW_VERB_USAGE + 1;
    }
    command->names.binaries = command->binaries;
    const int code = hw_options_take(verb_options, false, help, argc, argv, command);
    if (code)
        return (code < 0 ? HW_VERB_FINE : code) + 1;
    for (int i = optind; i < argc; i++) {
        const bool list = argv[i][0] == '@' && argv[i][1];
        if (!(list ? take_list(command, argv[i] + 1, NULL) : add_file(command, argv[i])))
            return HW_VERB_USAGE + 1;
    }
    if (command->file_count)
        return 0;
    hw_say(command->listed ? "merge: the list names no file" : "merge: which FILEs? (see heapwise merge --help)");
    return HW_VERB_USAGE + 1;
}

void hw_merge_command_free(struct hw_merge_command *command)
{
    for (size_t i = 0; i < command->file_count; i++)
        free(command->files[i]);
    free(command->files);
    free(command->binaries);
    *command = (struct hw_merge_command){0};
}

/* ---- reading and adding ---- */

struct job {
    struct hw_merge *merge;
    const struct hw_merge_command *command;
    char *const *files;
    size_t count;
    struct hw_merge_outcome *outcome;
    pthread_mutex_t lock; /* for what follows */
    pthread_cond_t turned;
    size_t next; /* file to be read */
    size_t turn; /* file to be admitted */
    bool stopped;
};

static void show_progress(const struct job *job)
{
    if (job->command->quiet || !isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\rMerging: %zu of %zu", job->turn, job->count);
    fflush(stderr);
}

static void clear_progress(const struct hw_merge_command *command)
{
    if (!command->quiet && isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

/* It is this file's turn, and the lock is held. NULL: it is not merged. */
static struct hw_merge_input *admit(struct job *job, const struct hw_merge_source *source, bool read,
                                    struct hw_error *error)
{
    struct hw_merge_input *input = read ? hw_merge_admit_source(job->merge, source, error) : NULL;
    if (input) {
        if (source->profile && source->profile->running && !job->command->quiet) {
            clear_progress(job->command);
            hw_say("merge: '%s': its process is still running: merged as it is now", source->path);
        }
        job->outcome->merged++;
        return input;
    }
    clear_progress(job->command);
    if (job->command->keep_going) {
        hw_say("merge: skipped: %s", error->message);
        job->outcome->skipped++;
    } else {
        const size_t length = strlen(error->message),
                     end = length && error->message[length - 1] == '.' ? length - 1 : length;
        hw_error_set(&job->outcome->error, "%.*s; nothing was written (--keep-going skips such files)", (int)end,
                     error->message);
        job->stopped = true;
    }
    return NULL;
}

/* Reads a file and adds it. */
static void merge_file(struct job *job, size_t number)
{
    struct hw_merge_source source;
    struct hw_error error = {""};
    const bool read = hw_merge_read(job->files[number], &source, &error);
    hw_say_contradictions(read ? source.profile : NULL, job->files[number]);
    pthread_mutex_lock(&job->lock);
    while (job->turn != number && !job->stopped)
        pthread_cond_wait(&job->turned, &job->lock);
    struct hw_merge_input *input = job->stopped ? NULL : admit(job, &source, read, &error);
    job->turn++;
    show_progress(job);
    pthread_cond_broadcast(&job->turned);
    pthread_mutex_unlock(&job->lock);
    if (input && !hw_merge_sum(job->merge, input, &error)) {
        pthread_mutex_lock(&job->lock);
        if (!job->stopped)
            job->outcome->error = error;
        job->stopped = true;
        pthread_cond_broadcast(&job->turned);
        pthread_mutex_unlock(&job->lock);
    }
    if (read)
        hw_merge_source_free(&source);
}

static void *work(void *closure)
{
    struct job *job = closure;
    for (;;) {
        pthread_mutex_lock(&job->lock);
        const bool done = job->stopped || job->next == job->count;
        const size_t number = job->next;
        job->next += !done;
        pthread_mutex_unlock(&job->lock);
        if (done)
            return NULL;
        merge_file(job, number);
    }
}

bool hw_merge_add_files(struct hw_merge *merge, const struct hw_merge_command *command, char *const *files,
                        size_t count, struct hw_merge_outcome *outcome)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned threads = command->threads ? command->threads : processors > 0 ? (unsigned)processors : 1, started = 0;
    struct job job = {.merge = merge,
                      .command = command,
                      .files = files,
                      .count = count,
                      .outcome = outcome,
                      .lock = PTHREAD_MUTEX_INITIALIZER,
                      .turned = PTHREAD_COND_INITIALIZER};
    /* The memory of one file serves for the next: it is not given back in between. */
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    if (threads > count)
        threads = (unsigned)count;
    pthread_t *thread = calloc(threads ? threads : 1, sizeof *thread);
    while (thread && started + 1 < threads && !pthread_create(&thread[started], NULL, work, &job))
        started++;
    work(&job);
    for (unsigned i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    free(thread);
    clear_progress(command);
    return !job.stopped;
}

/* ---- the result ---- */

/* Completes the names: the inputs may have brought some along. */
static bool symbolise(const struct hw_merge_command *command, struct hw_tables *tables, struct hw_arena *arena,
                      struct hw_error *error)
{
    struct hw_view_arguments names = {.view = command->names, .quiet = command->quiet};
    hw_view_arguments_show_progress(&names);
    const bool done = hw_symbolise(tables, arena, command->output ? command->output : "merge", &names.view, error);
    hw_view_arguments_clear_progress(&names);
    return done;
}

unsigned char *hw_merge_bytes(struct hw_merge *merge, const struct hw_merge_command *command, size_t *size,
                              struct hw_error *error)
{
    const struct hw_write_options options = {.packed = true, .zstd_level = 3};
    struct hw_arena arena = {0};
    struct hw_tables tables;
    unsigned char *bytes = NULL;
    if (hw_merge_finish(merge, &arena, &tables, error) &&
        (!command || !command->symbolize || symbolise(command, &tables, &arena, error)))
        bytes = hw_tables_serialize(&tables, &options, size, error);
    hw_arena_free(&arena);
    return bytes;
}

bool hw_merge_check_output(const struct hw_merge_command *command)
{
    struct stat status;
    if (!command->output && isatty(STDOUT_FILENO)) {
        hw_say("merge: a profile is not for a terminal: -o FILE writes it to a file");
        return false;
    }
    if (!command->output || command->force || lstat(command->output, &status) != 0)
        return true;
    hw_say("merge: '%s' exists already (-f overwrites it)", command->output);
    return false;
}

bool hw_merge_write(const struct hw_merge_command *command, const unsigned char *bytes, size_t size,
                    const struct hw_merge_outcome *outcome)
{
    struct hw_error error = {""};
    if (command->output && !hw_file_write(command->output, command->force, bytes, size, &error)) {
        hw_say("merge: %s", error.message);
        return false;
    }
    if (!command->output && !hw_write_all(STDOUT_FILENO, bytes, size, -1)) {
        hw_say("merge: cannot write standard output: %s", strerror(errno));
        return false;
    }
    if (!command->quiet && outcome->skipped)
        hw_say("merged %zu profile%s, skipped %zu%s%s", outcome->merged, outcome->merged == 1 ? "" : "s",
               outcome->skipped, command->output ? ": wrote " : "", command->output ? command->output : "");
    else if (!command->quiet)
        hw_say("merged %zu profile%s%s%s", outcome->merged, outcome->merged == 1 ? "" : "s",
               command->output ? ": wrote " : "", command->output ? command->output : "");
    return true;
}
