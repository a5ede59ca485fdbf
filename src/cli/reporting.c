/* reporting.c - see reporting.h. */
#include "cli/reporting.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/pager.h"

/* ---- options ---- */

bool hw_take_top(void *closure, const char *value, const struct hw_option *option)
{
    struct hw_reporting *command = closure;
    char *end;
    errno = 0;
    unsigned long long top = strtoull(value, &end, 10);
    if (errno || *end || end == value || *value == '-' || top == 0 || top > UINT32_MAX)
        return hw_option_needs(option, value, "a number from 1 on");
    command->report.top = (size_t)top;
    return true;
}

bool hw_take_color(void *closure, const char *given, const struct hw_option *option)
{
    struct hw_reporting *command = closure;
    const char *value = given ? given : "always";
    if (strcmp(value, "auto") && strcmp(value, "always") && strcmp(value, "never"))
        return hw_option_unknown(option, value, "auto, always, never");
    command->color = value;
    return true;
}

int hw_reporting_parse(struct hw_reporting *command, int argc, char **argv, const struct hw_option *options,
                       const char *help)
{
    const int code = hw_options_take(options, false, help, argc, argv, command);
    if (code)
        return code;
    command->files = argv + optind;
    command->file_count = argc - optind;
    if (command->file_count)
        return HW_VERB_FINE;
    hw_say("%s: which %s? (see heapwise %s --help)", argv[0], command->what ? command->what : "FILE", argv[0]);
    return HW_VERB_USAGE;
}

/* ---- the terminal ---- */

#define NARROWEST 60 /* tables do not fit into less */
#define WIDEST    1000

/* Columns of the page: COLUMNS where it is a number, also in files and pipes; else the terminal's; else 80. */
static unsigned columns_of(bool terminal)
{
    struct winsize size;
    uint64_t width = 80;
    const char *columns = getenv("COLUMNS");
    if (!(columns && hw_parse_number(columns, 1, 10000, &width)) && terminal &&
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
        width = size.ws_col;
    return width < NARROWEST ? NARROWEST : width > WIDEST ? WIDEST : (unsigned)width;
}

void hw_reporting_terminal(struct hw_reporting *command)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    const bool terminal = isatty(STDOUT_FILENO);
    setlocale(LC_CTYPE, "");
    command->report.width = columns_of(terminal);
    command->report.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
    command->report.color =
        !strcmp(command->color, "always") ||
        (!strcmp(command->color, "auto") && terminal && !(no_color && *no_color) && !(term && !strcmp(term, "dumb")));
    hw_view_arguments_show_progress(&command->names);
}

void hw_reporting_page(struct hw_reporting *command)
{
    if (!command->no_pager && !hw_pager_runs())
        hw_pager_start();
    if (hw_pager_runs())
        command->names.view.symbolizer.progress = NULL;
}

/* ---- the reports ---- */

/* True when what was printed so far has been written; else errno says why not. */
static bool written(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    errno = errno ? errno : EIO;
    return false;
}

/* The sections that are made without names of functions. Memory has the call stacks of those who mapped it. */
static bool needs_symbols(const struct hw_reporting *command, const struct hw_profile *profile)
{
    if (command->names.view.function || command->names.view.rules)
        return true;
    const uint64_t without =
        1ull << HW_REPORT_SUMMARY | 1ull << HW_REPORT_TIMELINE | (profile->ledger_count ? 0 : 1ull << HW_REPORT_MEMORY);
    return !command->report.sections || (command->report.sections & ~without);
}

/* Reports one file. PRINTED counts those that are in the output. */
static int report_file(struct hw_reporting *command, const char *path, size_t *printed)
{
    struct hw_error error = {""};
    struct hw_profile *profile = hw_profile_read(path, &error);
    if (!profile) {
        hw_say("%s: %s", command->names.verb, error.message);
        return HW_VERB_USAGE;
    }
    int code = HW_VERB_FINE;
    if (profile->problem_count) { /* one line; the report has the others, under what was not observed */
        char more[64] = "";
        if (profile->problem_count > 1)
            snprintf(more, sizeof more, " %zu more problem%s in the report.", profile->problem_count - 1,
                     profile->problem_count == 2 ? "" : "s");
        hw_say("%s: %s: %s%s", command->names.verb, path, profile->problems[0], more);
        code = HW_VERB_USAGE;
    }
    hw_say_contradictions(profile, path);
    command->names.view.no_symbols = !needs_symbols(command, profile);
    struct hw_view *view = hw_view_new(profile, &command->names.view, &error);
    hw_view_arguments_clear_progress(&command->names);
    bool done = view != NULL, empty = false;
    if (done && command->names.view.function && !view->context_count) {
        hw_say_no_function(view, command->names.view.function, &error);
        hw_say("%s: %s", command->names.verb, error.message);
        code = HW_VERB_USAGE;
    }
    if (done && command->judge) {
        const int judged = command->judge(command, view, path);
        code = code ? code : judged;
        empty = judged == HW_VERB_USAGE;
    }
    if (done && !command->json && (empty || (code && command->names.view.function && !view->context_count))) {
        /* nothing to report */
    } else if (done && command->json) {
        hw_reporting_page(command);
        fputs(*printed ? "," : command->file_count > 1 ? "[" : "", stdout);
        done = hw_report_json(view, &command->report, stdout, &error);
    } else if (done) {
        hw_reporting_page(command);
        fputs(*printed ? "\n\n" : "", stdout);
        done = hw_report_text(view, &command->report, stdout, &error);
    }
    *printed += view != NULL;
    if (!done && !ferror(stdout)) {
        hw_say("%s: %s", command->names.verb, error.message);
        code = HW_VERB_USAGE;
    }
    hw_view_free(view);
    hw_profile_free(profile);
    return code;
}

int hw_reporting_run(struct hw_reporting *command)
{
    int code = HW_VERB_FINE;
    const bool whole = command->all || command->report.full || command->names.view.function;
    hw_reporting_terminal(command);
    command->report.brief = !whole && !command->json && !command->report.sections && !command->report.fields;
    command->report.packages = !command->json && !command->report.fields && !command->names.view.symbolizer.sysroot;
    size_t printed = 0;
    for (int i = 0; i < command->file_count; i++) {
        const int outcome = report_file(command, command->files[i], &printed);
        code = outcome ? outcome : code;
        if (!written())
            return hw_pager_runs() ? code : HW_VERB_USAGE; /* main says why: errno is the reason */
    }
    if (command->json && command->file_count > 1)
        fputs(printed ? "]\n" : "[]\n", stdout);
    return code;
}
