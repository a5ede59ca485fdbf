/* verb_leaks.c - heapwise leaks: blocks that the program could not reach any more, at its end or, in a process, now. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/recorded.h"
#include "cli/reporting.h"
#include "cli/visiting.h"
#include "profile/profile.h"
#include "report/view/measure.h"

static const char help[] =
    "Usage: heapwise leaks [OPTION]... FILE...\n"
    "       heapwise leaks [OPTION]... PID\n"
    "Show which blocks the program could not reach any more, by place: at its end,\n"
    "from profiles that were recorded with heapwise record --leaks; or now, in a\n"
    "process that is being recorded. The process continues.\n"
    "\n"
    "  -o, --output FILE  with PID: keep the profile that the report is made of\n"
    "  -f, --force      overwrite FILE\n"
    "  --mapped         with PID: pointers in memory that the program mapped itself\n"
    "                   count, too\n"
    "  --keeps          also who keeps what is still reachable: with PID now, in\n"
    "                   files that were recorded with --keeps\n"
    "  --exit-code N    exit with N if blocks were lost (0 to 255, default: 1)\n"
    "  --suppressions FILE\n"
    "                   lost blocks that do not count: LeakSanitizer's or\n"
    "                   Valgrind's file of suppressions; may be repeated\n"
    "  --top N          show N places (default: 10; in JSON all)\n"
    "  --full           whole stacks, names and paths: fold and shorten nothing\n"
    "  --no-pager       do not send the text through a pager on a terminal\n" HW_REPORTING_HELP HW_STACK_OPTIONS_HELP
    "  -q, --quiet      no progress on a terminal\n"
    "  -h, --help       this text\n"
    "\n"
    "Lost: no pointer to the block is left (definitely), or only other lost blocks\n"
    "point to it (indirectly). Possibly lost blocks, which only pointers into their\n"
    "middle lead to, do not count. docs/leaks.md explains the search. Exit code: 0,\n"
    "N if blocks were lost, 2 for wrong usage, for files that are damaged or no\n"
    "profiles, for profiles without a search, and for processes that cannot be\n"
    "searched.\n";

struct leaks {
    struct hw_reporting reporting; /* the first: options are taken through it */
    uint64_t exit_code;
    const char *output;
    bool force;
    struct hw_visit_options visit;
};

static const struct hw_option verb_options[] = {
    HW_OPTION_NUMBER("exit-code", 0, struct leaks, exit_code, 0, 255),
    HW_OPTION_TEXT("output", 'o', struct leaks, output),
    HW_OPTION_FLAG("force", 'f', struct leaks, force),
    HW_OPTION_FLAG("mapped", 0, struct leaks, visit.mapped),
    HW_OPTION_FLAG("keeps", 0, struct leaks, visit.keeps),
    HW_SUPPRESSION_OPTIONS(struct hw_reporting, names),
    HW_STACK_OPTIONS(struct hw_reporting, names),
    HW_REPORTING_OPTIONS,
    {0},
};

static int judge(struct hw_reporting *command, const struct hw_view *view, const char *path)
{
    const char *unknown = hw_measure_unknown(view, HW_MEASURE_LOST);
    if (unknown)
        hw_say("leaks: %s: %s", path, unknown);
    return unknown                                              ? HW_VERB_USAGE
           : hw_measure_total(view, HW_MEASURE_LOST_COUNT) == 0 ? HW_VERB_FINE
                                                                : (int)((struct leaks *)command)->exit_code;
}

static int parse(struct leaks *leaks, int argc, char **argv)
{
    struct hw_reporting *command = &leaks->reporting;
    const int code = hw_reporting_parse(command, argc, argv, verb_options, help);
    command->report.sections = 1ull << HW_REPORT_LEAKS;
    if (leaks->visit.keeps)
        command->report.sections |= 1ull << HW_REPORT_KEEPS;
    command->judge = judge;
    return code ? code : hw_view_arguments_read_rules(&command->names);
}

/* ---- a process that runs ---- */

/* The file that a process's profile is copied to. */
struct moment {
    struct hw_recorded recorded;
    char folder[PATH_MAX]; /* made for it; empty: the name was asked for */
    char path[PATH_MAX + 32];
    pid_t keeper; /* the child that has made the folder, and removes it once LIFE is closed; 0: none */
    int life;
};

/* A number that no file has as its name. */
static bool is_process(const struct leaks *leaks, pid_t *pid)
{
    uint64_t number;
    const char *name = leaks->reporting.file_count == 1 ? leaks->reporting.files[0] : "";
    if (!hw_parse_number(name, 1, INT_MAX, &number) || access(name, F_OK) == 0)
        return false;
    *pid = (pid_t)number;
    return true;
}

static struct moment searched; /* of one process */

static void name_in_folder(struct moment *moment)
{
    snprintf(moment->path, sizeof moment->path, "%s/%d.hwprof", moment->folder, (int)moment->recorded.pid);
}

/* In the child: makes the folder, says so by COMMAND, and removes it when the command has ended. */
static _Noreturn void keep_folder(int command)
{
    char byte;
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    int why = mkdtemp(searched.folder) ? 0 : errno;
    if (!why) {
        name_in_folder(&searched);
        if (write(command, &why, sizeof why) == sizeof why &&
            write(command, searched.folder, sizeof searched.folder) == sizeof searched.folder)
            while (read(command, &byte, 1) < 0 && errno == EINTR)
                ;
        unlink(searched.path);
        rmdir(searched.folder);
    } else if (write(command, &why, sizeof why) < 0)
        _exit(1);
    _exit(0);
}

static bool read_all(int file, void *to, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t got = read(file, (char *)to + done, size - done);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

/* A folder that goes with the command, also when it is killed. False with errno. */
static bool make_folder(struct moment *moment, const char *place)
{
    int ends[2], why = 0;
    char folder[sizeof moment->folder];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    snprintf(moment->folder, sizeof moment->folder, "%s/heapwise-XXXXXX", place);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        keep_folder(ends[1]);
    }
    why = child < 0 ? errno : 0;
    moment->folder[0] = '\0';
    close(ends[1]);
    if (child > 0) {
        moment->keeper = child;
        moment->life = ends[0];
        if (!read_all(ends[0], &why, sizeof why))
            why = ECHILD;
        if (!why && !read_all(ends[0], folder, sizeof folder))
            why = ECHILD;
        if (!why)
            memcpy(moment->folder, folder, sizeof folder);
    } else
        close(ends[0]);
    errno = why;
    return !why;
}

static bool name_output(const struct leaks *leaks, struct moment *moment)
{
    const char *place = getenv("TMPDIR");
    if (leaks->output) {
        snprintf(moment->path, sizeof moment->path, "%s", leaks->output);
        return true;
    }
    place = place && *place ? place : "/tmp";
    if (!make_folder(moment, place)) {
        hw_error_set(&moment->recorded.error, "cannot make a folder in %s: %s", place, strerror(errno));
        return false;
    }
    name_in_folder(moment);
    return true;
}

/* The profile as it is now: places are in it that the search will name. */
static bool copy_profile(void *closure)
{
    struct moment *moment = closure;
    struct hw_recorded *recorded = &moment->recorded;
    const struct hw_snapshot_memory memory = {0, 0};
    const int file = open(moment->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, hw_recorded_mode(recorded));
    if (file < 0) {
        hw_error_set(&recorded->error, "%s cannot be written: %s%s", moment->path, strerror(errno),
                     errno == EEXIST ? "; use -f to overwrite it" : "");
        return false;
    }
    const bool fine = hw_profile_snapshot(recorded->profile, recorded->path, &memory, file, &recorded->error);
    if (close(file) == 0 && fine)
        return true;
    unlink(moment->path);
    return false;
}

static bool search(const struct leaks *leaks, struct moment *moment)
{
    struct hw_recorded *recorded = &moment->recorded;
    struct hw_visited found = {.leaks = NULL};
    struct stat status;
    if (!hw_recorded_find(recorded) || !name_output(leaks, moment))
        return false;
    if (leaks->force && leaks->output && lstat(leaks->output, &status) == 0 && S_ISREG(status.st_mode))
        unlink(leaks->output);
    bool fine = hw_visit_search(recorded, &leaks->visit, copy_profile, moment, &found);
    if (fine) {
        if (found.keeps_failed)
            hw_say("leaks: who keeps blocks was not searched for: there was no memory for it");
        fine = hw_visited_add(recorded, &found, moment->path);
        if (!fine)
            unlink(moment->path);
    }
    hw_visited_free(&found);
    return fine;
}

static int report_process(struct leaks *leaks, pid_t pid)
{
    char *file = searched.path;
    searched = (struct moment){.recorded = {.pid = pid, .profile = -1}};
    int code = HW_VERB_USAGE;
    if (search(leaks, &searched)) {
        leaks->reporting.files = &file;
        code = hw_reporting_run(&leaks->reporting);
    } else
        hw_say("leaks: %s", searched.recorded.error.message);
    if (searched.keeper > 0) {
        close(searched.life);
        waitpid(searched.keeper, NULL, 0);
    }
    if (searched.recorded.profile >= 0)
        close(searched.recorded.profile);
    return code;
}

static int run(struct leaks *leaks)
{
    pid_t pid;
    if (is_process(leaks, &pid))
        return report_process(leaks, pid);
    if (leaks->output || leaks->force || leaks->visit.mapped) {
        hw_say("leaks: --output, --force and --mapped are for a process, given by its number");
        return HW_VERB_USAGE;
    }
    return hw_reporting_run(&leaks->reporting);
}

int hw_verb_leaks(int argc, char **argv)
{
    struct leaks leaks = {.reporting = {.color = "auto"}, .exit_code = HW_VERB_NEGATIVE};
    struct hw_reporting *command = &leaks.reporting;
    int code = hw_view_arguments_init(&command->names, argc, argv) ? parse(&leaks, argc, argv) : HW_VERB_USAGE;
    if (!code)
        code = run(&leaks);
    hw_view_arguments_free(&command->names);
    return code < 0 ? HW_VERB_FINE : code;
}
