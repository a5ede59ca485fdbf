/* verb_import.c - heapwise import perf: samples that perf took of a recorded run, by the blocks that they fell into.
 *
 * perf.data is read by perf itself (perf script), its text as it is. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/options.h"
#include "perf/perf_match.h"
#include "profile/container/write.h"
#include "report/text/human.h"

extern char **environ;

#define PERF_SCRIPT "perf script --header --show-mmap-events --ns -G -F "

struct import {
    /* as asked for */
    const char *output;
    bool force, quiet;
    uint64_t pid;
    const char *samples, *profile;
    char name[PATH_MAX]; /* of the output, if none was given */
    struct hw_perf_match match;
    struct hw_arena arena;
    struct hw_tables tables;
    struct hw_write_options write;
    struct hw_error error;
};

static const char help[] =
    "Usage: heapwise import perf [OPTION...] SAMPLES PROFILE\n"
    "\n"
    "Joins samples of memory accesses that Linux's perf took with the profile of the\n"
    "same run: which blocks they fell into, how long loads took, where the data came\n"
    "from, and which cache lines threads took from each other. Writes a copy of\n"
    "PROFILE with the result; read it with heapwise report --section perf.\n"
    "\n"
    "SAMPLES is perf.data, as perf mem record or perf c2c record wrote it, or the\n"
    "text that perf script prints of it (- is standard input). Record so:\n"
    "\n"
    "    perf mem record -k CLOCK_MONOTONIC -- \\\n"
    "        heapwise record --log-blocks -- PROGRAM\n"
    "    heapwise import perf perf.data PROGRAM.PID.hwprof\n"
    "\n"
    "  -o, --output=FILE   name of the result (default: PROFILE with .perf before the\n"
    "                      extension)\n"
    "  -f, --force         overwrite FILE\n"
    "      --pid=N         number of the process in perf's samples, if it has another\n"
    "                      one there, as in containers\n"
    "  -q, --quiet         print no summary\n"
    "  -h, --help          this text\n"
    "\n"
    "Exits with 0, or with 2 for wrong usage and if no sample is of this run.\n";

/* ---- samples ---- */

static void read_lines(struct import *import, FILE *from)
{
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, from) >= 0)
        hw_perf_match_line(&import->match, line);
    if (ferror(from))
        hw_error_set(&import->error, "%s cannot be read: %s", import->samples, strerror(errno));
    free(line);
}

static bool starts_with_magic(const char *path)
{
    char magic[8] = "";
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const bool fine = file >= 0 && pread(file, magic, sizeof magic, 0) == sizeof magic;
    if (file >= 0)
        close(file);
    return fine && (!memcmp(magic, "PERFILE2", sizeof magic) || !memcmp(magic, "2ELIFREP", sizeof magic));
}

/* Starts perf script with FIELDS; its messages go to COMPLAINTS. NULL with the error. */
static FILE *start_perf(struct import *import, const char *fields, int complaints, pid_t *child)
{
    char file[PATH_MAX + 2];
    const char *arguments[] = {"perf", "script", "--header", "--show-mmap-events", "--ns",   "-G",
                               "-F",   fields,   "-i",       file,                 NULL};
    posix_spawn_file_actions_t actions;
    int ends[2];
    snprintf(file, sizeof file, "%s%s", import->samples[0] == '-' ? "./" : "", import->samples);
    if (pipe2(ends, O_CLOEXEC) != 0) {
        hw_error_set(&import->error, "perf cannot be started: %s", strerror(errno));
        return NULL;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, complaints, 2);
    const int problem = posix_spawnp(child, "perf", &actions, NULL, (char **)(uintptr_t)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    FILE *from = problem ? NULL : fdopen(ends[0], "re");
    if (problem == ENOENT)
        hw_error_set(&import->error,
                     "%s is read by perf, which is not installed here. Where it is: " PERF_SCRIPT HW_PERF_FIELDS
                     " -i %s > samples.txt; then give samples.txt instead",
                     import->samples, import->samples);
    else if (problem || !from)
        hw_error_set(&import->error, "perf cannot be started: %s", strerror(problem ? problem : errno));
    if (!from)
        close(ends[0]);
    return from;
}

/* The last line of what perf complained about. */
static void read_complaint(int complaints, char *text, size_t size)
{
    char all[4096];
    const ssize_t got = pread(complaints, all, sizeof all - 1, 0);
    char *line = all;
    all[got > 0 ? got : 0] = '\0';
    for (size_t length = strlen(all); length && all[length - 1] == '\n'; length--)
        all[length - 1] = '\0';
    for (char *next; (next = strchr(line, '\n'));)
        line = next + 1;
    snprintf(text, size, "%.200s", line);
}

/* perf refuses fields that no event of the file has. False with the error. */
static bool read_perf_data(struct import *import)
{
    static const char *const fields[] = {HW_PERF_FIELDS, "pid,tid,time,event,ip,addr,data_src",
                                         "pid,tid,time,event,ip,addr,weight", "pid,tid,time,event,ip,addr"};
    char complaint[256] = "";
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        pid_t child;
        int status = 0;
        const int complaints = memfd_create("perf", MFD_CLOEXEC);
        FILE *from = complaints < 0 ? NULL : start_perf(import, fields[i], complaints, &child);
        if (from) {
            read_lines(import, from);
            fclose(from);
            while (waitpid(child, &status, 0) < 0 && errno == EINTR)
                ;
            read_complaint(complaints, complaint, sizeof complaint);
        } else if (complaints < 0)
            hw_error_set(&import->error, "perf cannot be started: %s", strerror(errno));
        if (complaints >= 0)
            close(complaints);
        if (!from || import->error.message[0])
            return false;
        if (!status)
            return true;
        if (import->match.all_samples)
            break;
    }
    hw_error_set(&import->error, "perf script cannot read %s: %s", import->samples,
                 complaint[0] ? complaint : "it does not say why");
    return false;
}

static bool read_samples(struct import *import)
{
    if (!strcmp(import->samples, "-")) {
        read_lines(import, stdin);
        return !import->error.message[0];
    }
    if (starts_with_magic(import->samples))
        return read_perf_data(import);
    FILE *from = fopen(import->samples, "re");
    if (!from) {
        hw_error_set(&import->error, "%s cannot be read: %s", import->samples, strerror(errno));
        return false;
    }
    read_lines(import, from);
    fclose(from);
    return !import->error.message[0];
}

/* ---- the result ---- */

static void name_output(struct import *import)
{
    static const char extension[] = ".hwprof";
    size_t length = strlen(import->profile);
    const size_t end = sizeof extension - 1;
    if (length > end && !strcmp(import->profile + length - end, extension))
        length -= end;
    snprintf(import->name, sizeof import->name, "%.*s.perf%s", (int)length, import->profile, extension);
    import->output = import->name;
}

static bool put_table(struct import *import, uint32_t type, const void *entries, size_t count, size_t size)
{
    void *to = hw_table_make(&import->tables, &import->arena, type, count);
    if (to && count)
        memcpy(to, entries, count * size);
    return to || !count;
}

/* The log is left out: it is large, and only needed here. */
static bool write_result(struct import *import)
{
    const struct hw_perf_match *match = &import->match;
    size_t size;
    import->tables.of[HW_SECTION_BLOCK_LOG].count = import->tables.of[HW_SECTION_BLOCK_LOG_INFO].count = 0;
    if (!put_table(import, HW_SECTION_PERF_INFO, &match->info, 1, sizeof match->info) ||
        !put_table(import, HW_SECTION_PERF_COUNTS, match->counts, match->count_count, sizeof *match->counts) ||
        !put_table(import, HW_SECTION_PERF_SIDES, match->sides, match->side_count, sizeof *match->sides)) {
        hw_error_set(&import->error, "not enough memory");
        return false;
    }
    unsigned char *bytes = hw_tables_serialize(&import->tables, &import->write, &size, &import->error);
    const bool fine = bytes && hw_file_write(import->output, import->force, bytes, size, &import->error);
    free(bytes);
    return fine;
}

static void say_result(const struct import *import)
{
    const struct hw_perf_info *info = &import->match.info;
    hw_say("%s of process %" PRIu32 ", %s in known blocks: wrote %s", HW_OF(info->samples, "sample"), import->match.pid,
           HW_PERCENT((double)info->in_blocks, (double)info->samples), import->output);
    if (info->flags & HW_PERF_OWN_CLOCK)
        hw_say("import: %s was recorded without -k CLOCK_MONOTONIC: perf's own clock may differ, and samples may be in the "
               "wrong blocks",
               import->samples);
    if (info->flags & HW_PERF_SYNC)
        hw_say("import: %s fell where a block was at another time: if perf's clock was not CLOCK_MONOTONIC (-k), the "
               "result is wrong",
               HW_OF(info->was_block, "sample"));
    if (info->log_full)
        hw_say("import: %s came after the log of blocks was full: heapwise record --log-blocks=SIZE",
               HW_OF(info->log_full, "sample"));
    if (info->unread_lines)
        hw_say("import: %s of %s could not be read as samples", HW_OF(info->unread_lines, "line"), import->samples);
}

static bool join(struct import *import)
{
    if (!hw_tables_load(import->profile, &import->arena, &import->tables, &import->write, &import->error) ||
        !hw_perf_match_begin(&import->match, &import->tables, (uint32_t)import->pid, import->profile, &import->error))
        return false;
    const char *name = strcmp(import->samples, "-") ? import->samples : "standard input";
    return read_samples(import) && hw_perf_match_end(&import->match, name, &import->error) && write_result(import);
}

/* ---- the verb ---- */

static const struct hw_option verb_options[] = {
    HW_OPTION_TEXT("output", 'o', struct import, output),
    HW_OPTION_FLAG("force", 'f', struct import, force),
    HW_OPTION_NUMBER("pid", 0, struct import, pid, 1, INT_MAX),
    HW_OPTION_FLAG("quiet", 'q', struct import, quiet),
    HW_OPTION_HELP('h'),
    {0},
};

/* Returns -1 to go on, or the exit code. */
static int read_options(struct import *import, int argc, char **argv)
{
    const int code = hw_options_take(verb_options, false, help, argc, argv, import);
    const int left = argc - optind;
    if (code)
        return code < 0 ? HW_VERB_FINE : code;
    if (left && strcmp(argv[optind], "perf"))
        hw_say("import: '%s' is not known; it is heapwise import perf SAMPLES PROFILE", argv[optind]);
    else if (!left)
        hw_say("import: of what? heapwise import perf SAMPLES PROFILE (see heapwise import --help)");
    else if (left < 2)
        hw_say("import: which SAMPLES and which PROFILE? (see heapwise import --help)");
    else if (left < 3)
        hw_say("import: which PROFILE? heapwise record --log-blocks wrote it (see heapwise import --help)");
    else if (left > 3)
        hw_say("import: one file of samples and one profile at a time, not %d files", left - 1);
    else {
        import->samples = argv[optind + 1];
        import->profile = argv[optind + 2];
        return -1;
    }
    return HW_VERB_USAGE;
}

int hw_verb_import(int argc, char **argv)
{
    static struct import import;
    import = (struct import){0};
    const int code = read_options(&import, argc, argv);
    if (code >= 0)
        return code;
    if (!import.output)
        name_output(&import);
    const bool fine = join(&import);
    if (!fine)
        hw_say("import: %s", import.error.message);
    else if (!import.quiet)
        say_result(&import);
    hw_perf_match_free(&import.match);
    hw_arena_free(&import.arena);
    return fine ? HW_VERB_FINE : HW_VERB_USAGE;
}
