/* verb_attach.c - heapwise attach and heapwise detach: recording a process that runs already. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/size.h"
#include "cli/attachable.h"
#include "cli/attaching.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/output_name.h"
#include "profile/profile.h"

static const char attach_help[] = "Usage: heapwise attach [OPTION]... PID\n"
                                  "Begin to record a process that runs already. It continues; its threads stop for\n"
                                  "some milliseconds. heapwise detach PID ends the recording.\n"
                                  "\n"
                                  "  -o, --output FILE  the profile (default: %e.%p.hwprof, in this directory; %e\n"
                                  "                   is the name of the program, %p its process ID). A file of\n"
                                  "                   that name is kept: the new one gets a number, or the process\n"
                                  "                   ID, before its extension\n"
                                  "  --sample-bytes SIZE\n"
                                  "                   record on average one allocation per SIZE bytes; it\n"
                                  "                   costs less, the numbers are estimates\n"
                                  "  --for TIME       record for TIME (whole seconds: 90 or 60s; minutes: 10m),\n"
                                  "                   then detach; Ctrl-C ends sooner\n"
                                  "  -q, --quiet      print errors only\n"
                                  "  -h, --help       this text\n"
                                  "\n"
                                  "Blocks from before are not known: when they are freed or reallocated, the\n"
                                  "report says how many. Needs the right to trace the process: its user, or root.\n"
                                  "docs/attach.md says what is done to the process. Exit code: 0, or 2 if the\n"
                                  "process cannot be recorded; it continues in any case.\n";

static const char detach_help[] = "Usage: heapwise detach [OPTION]... PID\n"
                                  "End the recording of a process that heapwise attach began. The process gets its\n"
                                  "original code back and continues at full speed; the profile is complete.\n"
                                  "\n"
                                  "  -q, --quiet      print errors only\n"
                                  "  -h, --help       this text\n"
                                  "\n"
                                  "Exit code: 0; 2 if the process was not being recorded by attach.\n";

static bool take_size(void *at, const char *value, const struct hw_option *option)
{
    struct hw_running *command = at;
    return (hw_size_read(value, &command->sample_bytes) && command->sample_bytes) ||
           hw_option_needs(option, value, "a number of bytes (512K)");
}

bool hw_take_time(void *seconds, const char *value, const struct hw_option *option)
{
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(value, &end, 10);
    const uint64_t unit = strcmp(end, "m") == 0 ? 60 : strcmp(end, "h") == 0 ? 3600 : 1;
    *(uint64_t *)seconds = number * unit;
    return (end != value && *value != '-' && !errno && number && number < 1000000000 &&
            (!*end || strcmp(end, "s") == 0 || unit > 1)) ||
           hw_option_needs(option, value, "whole seconds or minutes, at least 1 (90, 60s, 10m)");
}

static const struct hw_option attach_options[] = {
    HW_OPTION_TEXT("output", 'o', struct hw_running, output),
    HW_OPTION_CALL("sample-bytes", 0, take_size),
    HW_OPTION_KEPT("for", 0, hw_take_time, uint64_t, struct hw_running, seconds),
    HW_OPTION_FLAG("quiet", 'q', struct hw_running, quiet),
    HW_OPTION_HELP('h'),
    {0},
};

static const struct hw_option detach_options[] = {
    HW_OPTION_FLAG("quiet", 'q', struct hw_running, quiet),
    HW_OPTION_HELP('h'),
    {0},
};

static bool parse_process(int argc, char **argv, pid_t *pid)
{
    uint64_t number;
    if (argc - optind != 1) {
        hw_say(optind < argc ? "%s: one process at a time" : "%s: which process? Give its number (heapwise %s --help)",
               argv[0], argv[0]);
        return false;
    }
    if (!hw_parse_number(argv[optind], 1, INT_MAX, &number)) {
        hw_say("%s: '%s' is not the number of a process", argv[0], argv[optind]);
        return false;
    }
    *pid = (pid_t)number;
    return true;
}

/* The process has another current directory; in a container it creates the profile where it can. */
static bool make_options(const struct hw_running *command, char *options, size_t size, struct hw_error *error)
{
    struct hw_output_name name;
    struct stat status;
    const bool other = hw_sees_other_files(command->pid);
    const char *output = command->output ? command->output : other ? "/tmp/%e.%p.hwprof" : NULL;
    if (other && *output != '/') {
        hw_error_set(error,
                     "process %d sees other files than this command (a container, or chroot): give a name with -o "
                     "that begins with / and that it can create, such as /tmp/%%e.%%p.hwprof",
                     (int)command->pid);
        return false;
    }
    if (!hw_output_name_init(&name, output, "%e", error))
        return false;
    if (!other && name.name && stat(name.name, &status) == 0 && S_ISDIR(status.st_mode)) {
        hw_error_set(error, "%s is a directory: -o takes the name of a file", name.name);
        hw_output_name_free(&name);
        return false;
    }
    const int length = snprintf(options, size, "output=%s", name.pattern);
    hw_output_name_free(&name);
    const bool fits = length > 0 && (size_t)length + 64 < size;
    if (fits && command->sample_bytes)
        snprintf(options + length, size - (size_t)length, ":sample-bytes=%" PRIu64, command->sample_bytes);
    if (!fits)
        hw_error_set(error, "the name of the profile is too long");
    return fits;
}

/* Signals that ask for the end are kept until wait_for_end. */
static sigset_t block_ends(void)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    return ends;
}

enum end { END_ASKED_FOR, END_OF_PROCESS, END_BY_EXEC };

/* Until the time has passed (SECONDS is 0: for as long as it takes), a signal asks for the end, or there is nothing to
 * be recorded any more. */
static enum end wait_for_end(const struct hw_attaching *attaching, const sigset_t *ends, uint64_t seconds)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const time_t until = now.tv_sec + (time_t)seconds;
    for (;;) {
        const struct timespec moment = {.tv_nsec = 100000000};
        clock_gettime(CLOCK_MONOTONIC, &now);
        if ((seconds && now.tv_sec >= until) || sigtimedwait(ends, NULL, &moment) > 0)
            return END_ASKED_FOR;
        if (kill(attaching->pid, 0) != 0 && errno == ESRCH)
            return END_OF_PROCESS;
        if (hw_attach_is_lost(attaching))
            return END_BY_EXEC;
    }
}

/* A profile that is not sealed is as good, only larger. In a container that has ended it cannot be reached any more. */
static void close_profile(const struct hw_attaching *attaching)
{
    struct hw_error error = {""};
    const char *path = attaching->info.path;
    char name[64];
    const int file = attaching->other_files ? hw_open_inside(attaching->pid, path) : -1;
    if (!*path || (attaching->other_files && file < 0))
        return;
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    if (!hw_profile_close(attaching->other_files ? name : path, HW_EXIT_UNKNOWN, 0, 0, 0, &error))
        hw_say("%s", error.message);
    if (file >= 0)
        close(file);
}

static bool end_recording(struct hw_attaching *attaching)
{
    if (!hw_attach_end(attaching))
        return false;
    close_profile(attaching);
    return true;
}

/* The name of the profile here; valid until the next call. */
static const char *name_of(const struct hw_attaching *attaching)
{
    static char name[sizeof attaching->info.path + 32];
    if (!attaching->other_files)
        return attaching->info.path;
    snprintf(name, sizeof name, "/proc/%d/root%s", (int)attaching->pid, attaching->info.path);
    return name;
}

static bool begin_recording(const struct hw_running *command, struct hw_attaching *attaching)
{
    static char runtime[PATH_MAX], options[2048];
    attaching->pid = command->pid;
    attaching->runtime = runtime;
    attaching->options = options;
    return hw_find_runtime(runtime, sizeof runtime, &attaching->error) &&
           make_options(command, options, sizeof options, &attaching->error) && hw_attach_begin(attaching);
}

bool hw_record_running(const struct hw_running *command, char *path, size_t size, struct hw_error *error)
{
    struct hw_attaching attaching = {0};
    const sigset_t ends = block_ends();
    bool fine = begin_recording(command, &attaching);
    snprintf(path, size, "%s", fine ? name_of(&attaching) : "");
    if (fine && !command->quiet)
        hw_say(command->seconds ? "process %d is recorded into %s for %" PRIu64 " s, or until Ctrl-C"
                                : "process %d is recorded into %s until Ctrl-C",
               (int)command->pid, path, command->seconds);
    enum end end = fine ? wait_for_end(&attaching, &ends, command->seconds) : END_ASKED_FOR;
    if (fine && end == END_ASKED_FOR && !end_recording(&attaching)) {
        end = hw_attach_is_lost(&attaching) ? END_BY_EXEC : END_ASKED_FOR;
        /* or another command has ended it: the profile is complete */
        fine = end == END_BY_EXEC || attaching.info.stage == HW_ATTACH_IDLE;
        if (end == END_ASKED_FOR && fine && !command->quiet)
            hw_say("process %d is not recorded any more since an earlier heapwise detach", (int)command->pid);
    }
    if (end != END_ASKED_FOR)
        close_profile(&attaching);
    if (end == END_BY_EXEC && !command->quiet)
        hw_say("process %d has executed another program, which is not recorded: the profile ends there",
               (int)command->pid);
    if (end == END_OF_PROCESS && attaching.other_files && !command->quiet)
        hw_say("process %d has ended; its profile is %s where it ran", (int)command->pid, attaching.info.path);
    *error = attaching.error;
    return fine;
}

int hw_verb_attach(int argc, char **argv)
{
    struct hw_running command = {0};
    struct hw_attaching attaching = {0};
    char path[PATH_MAX];
    const int code = hw_options_take(attach_options, false, attach_help, argc, argv, &command);
    if (code)
        return code < 0 ? HW_VERB_FINE : code;
    if (!parse_process(argc, argv, &command.pid))
        return HW_VERB_USAGE;
    if (command.seconds ? !hw_record_running(&command, path, sizeof path, &attaching.error)
                        : !begin_recording(&command, &attaching)) {
        hw_say("attach: %s", attaching.error.message);
        return HW_VERB_USAGE;
    }
    if (command.seconds && !command.quiet)
        hw_say("profile: %s", path);
    else if (!command.quiet)
        hw_say("process %d is recorded into %s (heapwise detach %d ends that)", (int)command.pid, name_of(&attaching),
               (int)command.pid);
    return HW_VERB_FINE;
}

int hw_verb_detach(int argc, char **argv)
{
    struct hw_running command = {0};
    struct hw_attaching attaching = {0};
    const int code = hw_options_take(detach_options, false, detach_help, argc, argv, &command);
    if (code)
        return code < 0 ? HW_VERB_FINE : code;
    if (!parse_process(argc, argv, &attaching.pid))
        return HW_VERB_USAGE;
    if (!end_recording(&attaching)) {
        hw_say("detach: %s", attaching.error.message);
        return HW_VERB_USAGE;
    }
    if (!command.quiet && *attaching.info.path)
        hw_say("process %d is not recorded any more; profile: %s", (int)attaching.pid, name_of(&attaching));
    else if (!command.quiet)
        hw_say("process %d is not recorded any more; it has used its heap for nothing since it was forked",
               (int)attaching.pid);
    return HW_VERB_FINE;
}
