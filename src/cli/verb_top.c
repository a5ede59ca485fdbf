/* verb_top.c - heapwise top: the heap of a process that is being recorded, as it changes. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/recorded.h"
#include "cli/reporting.h"
#include "profile/profile.h"
#include "top/terminal.h"

static const char help[] =
    "Usage: heapwise top [OPTION]... PID\n"
    "       heapwise top [OPTION]... FILE\n"
    "Show which call stacks hold memory, grow and allocate, in a process that is\n"
    "being recorded (heapwise record, heapwise attach), while it runs. FILE is the\n"
    "profile that the process writes. The process is not touched: only its file is\n"
    "read. Press ? for the keys.\n"
    "\n"
    "  --once           print the table once and exit, for scripts\n"
    "  --json           with --once: one object for a program to read (docs/json.md)\n"
    "  --sort KEY       first rows: live (default), growth, allocations, churn (bytes\n"
    "                   allocated a second) or blocks\n"
    "  --filter TEXT    only call stacks with a function or file whose name has TEXT\n"
    "  --threads        begin with threads\n"
    "  --interval N     seconds between two readings (0.1 to 3600, default: 1);\n"
    "                   with --once rates are measured over this time\n"
    "  --top N          with --once: N rows (default: 20)\n"
    "  --color=WHEN     auto (default: on a terminal, unless NO_COLOR is set),\n"
    "                   always, never\n" HW_STACK_OPTIONS_HELP
    "  -q, --quiet      nothing on standard error but errors\n"
    "  -h, --help       this text\n"
    "\n"
    "Exit code: 0, or 2 for wrong usage, if there is no such process or profile, and\n"
    "if the profile is damaged.\n";

struct top {
    struct hw_reporting reporting; /* the first: options are taken through it */
    bool once, threads;
    bool damaged; /* the profile: something is left out */
    enum hw_top_column sort;
    const char *filter;
    uint64_t interval_ms;
};

static bool take_sort(void *at, const char *value, const struct hw_option *option)
{
    for (enum hw_top_column i = 0; i < HW_TOP_COLUMNS; i++) {
        if (!strcmp(value, hw_top_keys[i])) {
            *(enum hw_top_column *)at = i;
            return true;
        }
    }
    return hw_option_unknown(option, value, "live, growth, allocations, churn, blocks");
}

static bool take_interval(void *at, const char *value, const struct hw_option *option)
{
    char *end;
    const double seconds = strtod(value, &end);
    if (end == value || *end || !(seconds >= 0.1 && seconds <= 3600))
        return hw_option_needs(option, value, "seconds from 0.1 to 3600");
    *(uint64_t *)at = (uint64_t)(seconds * 1000 + 0.5);
    return true;
}

static const struct hw_option verb_options[] = {
    HW_OPTION_FLAG("once", 0, struct top, once),
    HW_OPTION_FLAG("json", 0, struct top, reporting.json),
    HW_OPTION_KEPT("sort", 0, take_sort, enum hw_top_column, struct top, sort),
    HW_OPTION_TEXT("filter", 0, struct top, filter),
    HW_OPTION_FLAG("threads", 0, struct top, threads),
    HW_OPTION_KEPT("interval", 0, take_interval, uint64_t, struct top, interval_ms),
    HW_OPTION_CALL("top", 0, hw_take_top),
    {.name = "color", .value = optional_argument, .take = hw_take_color},
    HW_STACK_OPTIONS(struct hw_reporting, names),
    HW_VIEW_OPTIONS(struct hw_reporting, names),
    {0},
};

/* ---- the profile ---- */

static struct hw_live *open_process(pid_t pid, struct hw_error *error)
{
    static struct hw_recorded recorded;
    recorded = (struct hw_recorded){.pid = pid, .profile = -1};
    if (hw_recorded_find(&recorded))
        return hw_live_open(recorded.profile, recorded.path, pid, error);
    *error = recorded.error;
    return NULL;
}

static struct hw_live *open_file(const char *path, struct hw_error *error)
{
    struct stat status;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0 || fstat(file, &status) != 0) {
        hw_error_set(error, "cannot open '%s': %s", path, strerror(errno));
    } else if (!S_ISREG(status.st_mode)) {
        hw_error_set(error, "'%s' is not a file", path);
    } else {
        return hw_live_open(file, path, 0, error);
    }
    if (file >= 0)
        close(file);
    return NULL;
}

/* A file of that name comes first: "./1234" is always one. */
static struct hw_live *open_what(const char *what, struct hw_error *error)
{
    uint64_t pid;
    if (access(what, F_OK) != 0 && hw_parse_number(what, 1, INT_MAX, &pid))
        return open_process((pid_t)pid, error);
    return open_file(what, error);
}

/* ---- the verb ---- */

static void read_again(struct hw_top_screen *screen, uint64_t interval_ms)
{
    const struct timespec pause = {(time_t)(interval_ms / 1000), (long)(interval_ms % 1000) * 1000000};
    nanosleep(&pause, NULL);
    hw_top_read(screen);
}

static bool show(struct top *top, struct hw_live *live, struct hw_error *error)
{
    static struct hw_top_screen screen;
    struct hw_reporting *reporting = &top->reporting;
    const struct hw_top_options options = {.view = reporting->names.view,
                                           .interval_ms = top->interval_ms,
                                           .color = reporting->report.color,
                                           .utf8 = reporting->report.utf8 || reporting->json,
                                           .json = reporting->json,
                                           .follow = open_process};
    screen = (struct hw_top_screen){.history.live = live,
                                    .sort = top->sort,
                                    .selective = reporting->names.rules.of[HW_RULE_IGNORE] ||
                                                 reporting->names.rules.of[HW_RULE_FOCUS],
                                    .page = top->threads && !reporting->json ? HW_TOP_THREADS : HW_TOP_CALL_STACKS};
    snprintf(screen.filter, sizeof screen.filter, "%s", top->filter ? top->filter : "");
    hw_top_read(&screen);
    bool fine = screen.history.live->map_count || !screen.trouble;
    if (!fine)
        hw_error_set(error, "%s", screen.trouble);
    struct hw_profile *ended = fine && !live->running ? hw_profile_read(live->path, error) : NULL;
    fine = fine && (live->running || ended);
    for (size_t i = 0; ended && i < ended->problem_count; i++)
        hw_say("top: %s", ended->problems[i]);
    top->damaged = ended && ended->problem_count;
    screen.symbolised = ended ? ended->symbolised : NULL;
    if (fine && top->once) {
        if (live->running)
            read_again(&screen, top->interval_ms);
        const char *trouble = screen.trouble;
        if (!trouble && hw_top_follow(&screen, &options)) { /* else the numbers are those of before, and the title says so */
            read_again(&screen, top->interval_ms);
            trouble = screen.trouble;
        }
        if (trouble)
            hw_error_set(error, "%s", trouble);
        fine = !trouble && hw_top_print(&screen, &options, reporting->report.width, reporting->report.top, error);
    } else if (fine) {
        fine = hw_top_run(&screen, &options, error);
    }
    hw_live_close(screen.history.live);
    hw_top_screen_free(&screen);
    hw_profile_free(ended);
    return fine;
}

static int run(struct top *top)
{
    struct hw_error error = {""};
    struct hw_reporting *reporting = &top->reporting;
    hw_reporting_terminal(reporting);
    reporting->names.view.symbolizer.progress = NULL; /* it would be drawn into the table */
    if (reporting->file_count != 1) {
        hw_say("top: one process or profile at a time, not %d", reporting->file_count);
        return HW_VERB_USAGE;
    }
    if (reporting->json && !top->once) {
        hw_say("top: --json is for --once");
        return HW_VERB_USAGE;
    }
    if (!top->once && !(isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))) {
        hw_say("top: standard input and output are not both a terminal; heapwise top --once prints the table");
        return HW_VERB_USAGE;
    }
    struct hw_live *live = open_what(reporting->files[0], &error);
    const bool fine = live && show(top, live, &error);
    if (!fine)
        hw_say("top: %s", error.message);
    return fine && !top->damaged ? HW_VERB_FINE : HW_VERB_USAGE;
}

int hw_verb_top(int argc, char **argv)
{
    static struct top top;
    top = (struct top){.reporting = {.color = "auto", .what = "PID or FILE", .report.top = 20}, .interval_ms = 1000};
    if (!hw_view_arguments_init(&top.reporting.names, argc, argv))
        return HW_VERB_USAGE;
    int code = hw_reporting_parse(&top.reporting, argc, argv, verb_options, help);
    if (code == HW_VERB_FINE)
        code = hw_view_arguments_read_rules(&top.reporting.names);
    if (code == HW_VERB_FINE)
        code = run(&top);
    hw_view_arguments_free(&top.reporting.names);
    return code < 0 ? HW_VERB_FINE : code;
}
