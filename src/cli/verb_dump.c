/* verb_dump.c - heapwise dump: a complete profile of a process that goes on running.
 *
 * The process's own profile is found through its mapping of the file. Where blocks only are counted, the file is all
 * there is: it is copied from outside and the process is not touched. Where accesses are counted, what they were since
 * the latest harvest lies in the process's memory, and what is in blocks (record --contents) and on pages (--pinned) only
 * the process can walk: it is asked to write the dump itself, by the signal that it handles for this (its profile says
 * which). Nothing is sent to a thread that does not handle it.
 *
 * Where the process is recorded with --keeps, it is searched, too, as `heapwise leaks PID` does. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/asking.h"
#include "cli/options.h"
#include "cli/recorded.h"
#include "cli/visiting.h"
#include "profile/profile.h"

#define DUMPS_MOST      1000000u
#define USUAL_TIMEOUT_S 10

struct dump {
    /* as asked for */
    const char *output;
    bool force, quiet;
    bool examined; /* the process is recorded with --contents or --pinned */
    uint64_t timeout_s;
    struct hw_recorded recorded; /* its pid is as asked for, too */
    char written[PATH_MAX + 64];
    bool tried, done; /* to write it */
};

static const char help[] = "Usage: heapwise dump [OPTION...] PID\n"
                           "\n"
                           "Writes a complete profile of a process that is being recorded, as it is at this\n"
                           "moment, and prints the name of the file. The process continues. Read the file\n"
                           "with heapwise report.\n"
                           "\n"
                           "  -o, --output=FILE   name of the dump (default: that of the process's profile\n"
                           "                      with .dump1, .dump2 … before the extension)\n"
                           "  -f, --force         overwrite FILE\n"
                           "      --timeout=N     wait at most N seconds for the process to answer, where\n"
                           "                      accesses are counted (default 10)\n"
                           "  -q, --quiet         no note about what the dump lacks\n"
                           "  -h, --help          this text\n"
                           "\n"
                           "Exits with 0, or with 2 for wrong usage and if no dump was written.\n";

static bool fail(struct dump *dump, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(struct dump *dump, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(dump->recorded.error.message, sizeof dump->recorded.error.message, format, arguments);
    va_end(arguments);
    return false;
}

static uint64_t status_kilobytes(const char *status, const char *name)
{
    const char *value = hw_status_value(status, name);
    return value ? strtoull(value, NULL, 10) * 1024 : 0;
}

/* ---- the new file ---- */

static int create(const struct dump *dump, const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, hw_recorded_mode(&dump->recorded));
}

/* The name without its extension. */
static int stem_length(const char *path)
{
    size_t length = strlen(path), extension = strlen(".hwprof");
    return (int)(length > extension && strcmp(path + length - extension, ".hwprof") == 0 ? length - extension : length);
}

/* Creates the dump's file: the name that was asked for, or the first number that is free. -1: the reason has been set.
 */
static int create_output(struct dump *dump)
{
    int file = -1;
    if (dump->output) {
        snprintf(dump->written, sizeof dump->written, "%s", dump->output);
        struct stat status;
        if (stat(dump->output, &status) == 0 && S_ISDIR(status.st_mode)) {
            fail(dump, "%s is a directory: -o takes the name of a file", dump->output);
            return -1;
        }
        if (dump->force && lstat(dump->output, &status) == 0 && S_ISREG(status.st_mode))
            unlink(dump->output);
        file = create(dump, dump->output);
        if (file < 0 && errno == EEXIST)
            fail(dump, "%s exists already: choose another name, or use -f to overwrite it", dump->output);
        else if (file < 0)
            fail(dump, "the dump cannot be written to %s: %s", dump->output, strerror(errno));
        return file;
    }
    for (uint32_t number = 1; number <= DUMPS_MOST; number++) {
        snprintf(dump->written, sizeof dump->written, "%.*s.dump%" PRIu32 ".hwprof", stem_length(dump->recorded.reach),
                 dump->recorded.reach, number);
        file = create(dump, dump->written);
        if (file >= 0 || errno != EEXIST)
            break;
    }
    if (file < 0)
        fail(dump, "the dump cannot be written to %s: %s; choose another place with -o", dump->written,
             strerror(errno));
    return file;
}

/* ---- from outside ---- */

static bool copy_from_outside(struct dump *dump)
{
    char status[4096];
    struct hw_snapshot_memory memory = {0, 0};
    if (hw_read_proc(dump->recorded.pid, "status", status, sizeof status)) {
        memory.rss_bytes = status_kilobytes(status, "VmRSS");
        memory.peak_rss_bytes = status_kilobytes(status, "VmHWM");
    }
    int file = create_output(dump);
    if (file < 0)
        return false;
    /* In allocator mode the process reads that itself, beside what its allocator has. */
    if (dump->recorded.process.mode != HW_MODE_ALLOCATOR && !hw_visit_measure(&dump->recorded) && !dump->quiet)
        hw_say("dump: what resident memory is made of now is not in the dump: %s", dump->recorded.error.message);
    bool fine = hw_profile_snapshot(dump->recorded.profile, dump->recorded.path, &memory, file, &dump->recorded.error);
    if (close(file) < 0 && fine)
        fine = fail(dump, "the dump cannot be written to %s: %s", dump->written, strerror(errno));
    if (!fine)
        unlink(dump->written);
    return fine;
}

/* ---- by the process itself ---- */

/* Asks the process for a dump and waits until it is written. */
static bool ask(struct dump *dump)
{
    const struct hw_asking asking = {
        .request = dump->recorded.process.dump_request + 1,
        .request_at = offsetof(struct hw_process_info, dump_request),
        .answer_at = offsetof(struct hw_process_info, dump_answer),
        .signal_value = dump->recorded.process.dump_request + 1,
        .timeout_s = dump->timeout_s,
        .what = "a dump",
    };
    return hw_ask(&dump->recorded, &asking);
}

static bool copy_file(struct dump *dump, const char *from)
{
    static char buffer[1 << 16];
    int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), out = -1;
    if (in < 0)
        return fail(dump, "the dump %s cannot be read: %s", from, strerror(errno));
    ssize_t got = -1;
    out = create_output(dump);
    while (out >= 0 && (got = read(in, buffer, sizeof buffer)) > 0) {
        if (write(out, buffer, (size_t)got) != got) {
            fail(dump, "the dump cannot be written to %s: %s", dump->written, strerror(errno));
            break;
        }
    }
    bool fine = out >= 0 && got == 0;
    if (out >= 0)
        close(out);
    if (out >= 0 && !fine)
        unlink(dump->written);
    close(in);
    return fine;
}

/* The process writes beside its own profile; -o takes it from there. */
static bool dump_by_process(struct dump *dump)
{
    if (!ask(dump))
        return false;
    if (dump->recorded.process.dump_result < 0)
        return fail(dump, "process %d could not write the dump beside %s: %s", (int)dump->recorded.pid,
                    dump->recorded.path, strerror(-dump->recorded.process.dump_result));
    char path[sizeof dump->written];
    snprintf(path, sizeof path, "%.*s.dump%d.hwprof", stem_length(dump->recorded.reach), dump->recorded.reach,
             dump->recorded.process.dump_result);
    if (!dump->output) {
        snprintf(dump->written, sizeof dump->written, "%s", path);
        return true;
    }
    bool fine = copy_file(dump, path);
    if (fine)
        unlink(path);
    return fine;
}

static bool write_dump(void *closure)
{
    struct dump *dump = closure;
    dump->tried = true;
    if (dump->recorded.process.dump_signal)
        return dump->done = dump_by_process(dump);
    dump->done = copy_from_outside(dump);
    if (dump->done && dump->recorded.process.mode == HW_MODE_ACCESS && !dump->quiet)
        hw_say("dump: process %d handles no signal for dumps (dump-signal=0, or it uses that signal itself): accesses "
               "to live blocks and globals are not in the dump",
               (int)dump->recorded.pid);
    if (dump->done && dump->examined && !dump->quiet)
        hw_say("dump: process %d handles no signal for dumps (dump-signal=0, or it uses that signal itself): what is in "
               "the blocks (--contents) and what keeps pages resident (--pinned) are not in the dump",
               (int)dump->recorded.pid);
    return dump->done;
}

/* The dump is worth having without what a search finds. */
static bool dump_with_keeps(struct dump *dump)
{
    const struct hw_visit_options options = hw_visit_recorded(&dump->recorded);
    struct hw_visited found;
    dump->examined = options.examined;
    if (!options.keeps)
        return write_dump(dump);
    bool fine = hw_visit_search(&dump->recorded, &options, write_dump, dump, &found);
    if (fine)
        fine = hw_visited_add(&dump->recorded, &found, dump->written);
    const bool failed = fine && found.keeps_failed;
    hw_visited_free(&found);
    if (!fine && (dump->done || !dump->tried) && !dump->quiet)
        hw_say("dump: it is not in the dump who keeps blocks: %s", dump->recorded.error.message);
    else if (failed && !dump->quiet)
        hw_say("dump: it is not in the dump who keeps blocks: there was no memory for the search");
    return dump->tried ? dump->done : write_dump(dump);
}

/* ---- the verb ---- */

static bool take_timeout(void *seconds, const char *value, const struct hw_option *option)
{
    return hw_parse_number(value, 1, 86400, seconds) ||
           hw_option_needs(option, value, "a number of seconds from 1 to 86400");
}

static const struct hw_option verb_options[] = {
    HW_OPTION_TEXT("output", 'o', struct dump, output),
    HW_OPTION_FLAG("force", 'f', struct dump, force),
    HW_OPTION_FLAG("quiet", 'q', struct dump, quiet),
    HW_OPTION_KEPT("timeout", 0, take_timeout, uint64_t, struct dump, timeout_s),
    HW_OPTION_HELP('h'),
    {0},
};

/* Returns -1 to go on, or the exit code. */
static int read_options(struct dump *dump, int argc, char **argv)
{
    const int code = hw_options_take(verb_options, false, help, argc, argv, dump);
    if (code)
        return code < 0 ? HW_VERB_FINE : code;
    uint64_t pid = 0;
    if (optind + 1 != argc) {
        hw_say(optind < argc ? "dump: one process at a time, not %d" : "dump: which PID? (see heapwise dump --help)",
               argc - optind);
        return HW_VERB_USAGE;
    }
    if (!hw_parse_number(argv[optind], 1, INT_MAX, &pid)) {
        hw_say("dump: '%s' is not the number of a process", argv[optind]);
        return HW_VERB_USAGE;
    }
    dump->recorded.pid = (pid_t)pid;
    return -1;
}

int hw_verb_dump(int argc, char **argv)
{
    static struct dump dump;
    dump = (struct dump){.timeout_s = USUAL_TIMEOUT_S, .recorded.profile = -1};
    int code = read_options(&dump, argc, argv);
    if (code >= 0)
        return code;
    if (!hw_recorded_find(&dump.recorded)) {
        hw_say("dump: %s", dump.recorded.error.message);
        return HW_VERB_USAGE;
    }
    const bool fine = dump_with_keeps(&dump);
    close(dump.recorded.profile);
    if (fine)
        puts(dump.written);
    else
        hw_say("dump: %s", dump.recorded.error.message);
    return fine ? HW_VERB_FINE : HW_VERB_USAGE;
}
