/* report.c - heapwise report: what is in profile files, as text or as JSON. */
#include "cli/cli.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/view_options.h"
#include "profile/lookup.h"
#include "report/report.h"

static const char help[] =
    "Usage: heapwise report [OPTION]... FILE...\n"
    "Show what is in profile files, also in those of programs that are still running.\n"
    "\n"
    "  --top N          show N places in each list (default: 10; in JSON all)\n"
    "  --sort KEY       show only the list of places by KEY: peak, bytes, count,\n"
    "                   leaked, temporary, lifetime, realloc, threads, pools; where\n"
    "                   accesses were counted (heapwise cc) also accesses, density,\n"
    "                   cold, utilization, never-accessed, never-read, shared;\n"
    "                   with --json the order\n"
    "  --section NAME   show only this part: summary, functions, timeline, memory,\n"
    "                   access, globals, a KEY of --sort, not-observed; may be\n"
    "                   repeated, or NAME,NAME\n"
    "  --function NAME  only the places in NAME (as shown, or as in the symbol table),\n"
    "                   wherever it was inlined\n"
    "  --full           whole stacks, names and paths: fold and cut nothing\n"
    "  --json           one object for a program to read (see docs/json.md); an array\n"
    "                   of them for several FILEs\n"
    "  --color=WHEN     auto (default: on a terminal, unless NO_COLOR is set), always,\n"
    "                   never\n" HW_VIEW_OPTIONS_HELP "  -q, --quiet      no progress on a terminal\n"
    "  -h, --help       this text\n"
    "\n"
    "A place is a call stack that allocates. \"leaked\" is what was not freed when the\n"
    "profile ends, whether or not it is still reachable; \"temporary\" is what was\n"
    "freed before its thread allocated again. Exit code: 0, or 2 for wrong usage and\n"
    "for files that are damaged or no profiles.\n";

struct command {
    struct hw_report_options report;
    struct hw_view_arguments names;
    bool json;
    const char *color; /* "auto", "always", "never" */
    char **files;
    int file_count;
};

/* ---- the command line ---- */

/* The section of that name, of those from FIRST on; -1. */
static int find_section(const char *name, size_t size, int first)
{
    for (int i = first; i < HW_REPORT_SECTIONS; i++)
        if (strlen(hw_report_section_names[i]) == size && !strncmp(hw_report_section_names[i], name, size))
            return i;
    return -1;
}

static bool set_top(struct command *command, const char *value)
{
    char *end;
    errno = 0;
    unsigned long long top = strtoull(value, &end, 10);
    if (errno || *end || end == value || *value == '-' || top == 0 || top > UINT32_MAX) {
        hw_say("report: --top takes a number from 1 on, not '%s'", value);
        return false;
    }
    command->report.top = (size_t)top;
    return true;
}

static bool set_sort(struct command *command, const char *value)
{
    const int section = find_section(value, strlen(value), HW_REPORT_LISTS);
    if (section < 0 || section >= HW_REPORT_LISTS + HW_SORT_KEYS) {
        hw_say("report: --sort does not know '%s' (peak, bytes, count, leaked, temporary, lifetime, realloc, threads, "
               "pools, accesses, density, cold, utilization, never-accessed, never-read, shared)",
               value);
        return false;
    }
    command->report.sort = (enum hw_sort_key)(section - HW_REPORT_LISTS);
    command->report.sections |= 1u << section;
    return true;
}

static bool set_sections(struct command *command, const char *value)
{
    while (true) {
        const size_t size = strcspn(value, ",");
        const int section = find_section(value, size, 0);
        if (section < 0) {
            hw_say("report: --section does not know '%.*s' (see heapwise report --help)", (int)size, value);
            return false;
        }
        command->report.sections |= 1u << section;
        if (!value[size])
            return true;
        value += size + 1;
    }
}

static bool set_color(struct command *command, const char *value)
{
    if (strcmp(value, "auto") && strcmp(value, "always") && strcmp(value, "never")) {
        hw_say("report: --color takes auto, always or never, not '%s'", value);
        return false;
    }
    command->color = value;
    return true;
}

enum report_option {
    OPTION_TOP = 256,
    OPTION_SORT,
    OPTION_SECTION,
    OPTION_FUNCTION,
    OPTION_FULL,
    OPTION_JSON,
    OPTION_COLOR
};

static const struct option options[] = {{"top", required_argument, NULL, OPTION_TOP},
                                        {"sort", required_argument, NULL, OPTION_SORT},
                                        {"section", required_argument, NULL, OPTION_SECTION},
                                        {"function", required_argument, NULL, OPTION_FUNCTION},
                                        {"full", no_argument, NULL, OPTION_FULL},
                                        {"json", no_argument, NULL, OPTION_JSON},
                                        {"color", optional_argument, NULL, OPTION_COLOR},
                                        HW_VIEW_OPTIONS,
                                        {0}};

/* One option: HW_VERB_FINE, HW_VERB_USAGE, or -1 when help was printed. */
static int take_option(struct command *command, int option, char **argv)
{
    bool fine = true;
    switch (option) {
    case OPTION_TOP:
        fine = set_top(command, optarg);
        break;
    case OPTION_SORT:
        fine = set_sort(command, optarg);
        break;
    case OPTION_SECTION:
        fine = set_sections(command, optarg);
        break;
    case OPTION_COLOR:
        fine = set_color(command, optarg ? optarg : "always");
        break;
    case OPTION_FUNCTION:
        command->names.view.function = optarg;
        break;
    case OPTION_FULL:
        command->report.full = true;
        break;
    case OPTION_JSON:
        command->json = true;
        break;
    default:
        return hw_view_arguments_take(&command->names, option, argv, help);
    }
    return fine ? HW_VERB_FINE : HW_VERB_USAGE;
}

/* HW_VERB_FINE to go on, HW_VERB_USAGE, or -1 when help was printed. */
static int parse(struct command *command, int argc, char **argv)
{
    hw_view_arguments_begin();
    for (int option; (option = getopt_long(argc, argv, ":" HW_VIEW_SHORT_OPTIONS, options, NULL)) != -1;) {
        const int code = take_option(command, option, argv);
        if (code)
            return code;
    }
    command->files = argv + optind;
    command->file_count = argc - optind;
    if (command->file_count)
        return HW_VERB_FINE;
    hw_say("report: which FILE? (see heapwise report --help)");
    return HW_VERB_USAGE;
}

/* ---- the terminal ---- */

static void measure_terminal(struct command *command)
{
    struct winsize size;
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    const bool terminal = isatty(STDOUT_FILENO);
    unsigned width = 80;
    if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
        width = size.ws_col < 60 ? 60 : size.ws_col > 120 ? 120 : size.ws_col;
    setlocale(LC_CTYPE, "");
    command->report.width = width;
    command->report.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
    command->report.color =
        !strcmp(command->color, "always") ||
        (!strcmp(command->color, "auto") && terminal && !(no_color && *no_color) && !(term && !strcmp(term, "dumb")));
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

/* The sections that are made without names of functions. */
static bool needs_symbols(const struct command *command)
{
    if (command->names.view.function)
        return true;
    const uint32_t without = 1u << HW_REPORT_SUMMARY | 1u << HW_REPORT_TIMELINE | 1u << HW_REPORT_MEMORY;
    return !command->report.sections || (command->report.sections & ~without);
}

/* The profile, or as much of it as is asked for, where an index leads there. */
static struct hw_profile *read_profile(const struct command *command, const char *path, struct hw_error *error)
{
    const char *function = command->names.view.function;
    struct hw_lookup *lookup = function ? hw_lookup_open(path, error) : NULL;
    struct hw_profile *profile = NULL;
    if (lookup && hw_lookup_is_complete(lookup))
        profile = hw_lookup_function(lookup, function, error);
    hw_lookup_close(lookup);
    return profile ? profile : hw_profile_read(path, error);
}

/* Reports one file. PRINTED counts those that are in the output. */
static int report_file(struct command *command, const char *path, size_t *printed)
{
    struct hw_error error = {""};
    struct hw_profile *profile = read_profile(command, path, &error);
    if (!profile) {
        hw_say("%s", error.message);
        return HW_VERB_USAGE;
    }
    int code = HW_VERB_FINE;
    if (profile->problem_count) { /* one line; the report has the others, under what was not observed */
        char more[64] = "";
        if (profile->problem_count > 1)
            snprintf(more, sizeof more, " %zu more problem%s in the report.", profile->problem_count - 1,
                     profile->problem_count == 2 ? "" : "s");
        hw_say("%s: %s%s", path, profile->problems[0], more);
        code = HW_VERB_USAGE;
    }
    command->names.view.no_symbols = !needs_symbols(command);
    struct hw_view *view = hw_view_new(profile, &command->names.view, &error);
    hw_view_arguments_clear_progress(&command->names);
    bool done = view != NULL;
    if (done && command->names.view.function && !view->context_count) {
        hw_say("%s: nothing was allocated by a function '%s'", path, command->names.view.function);
        code = HW_VERB_USAGE;
    }
    if (done && command->json) {
        fputs(*printed ? "," : command->file_count > 1 ? "[" : "", stdout);
        done = hw_report_json(view, &command->report, stdout, &error);
    } else if (done) {
        fputs(*printed ? "\n\n" : "", stdout);
        done = hw_report_text(view, &command->report, stdout, &error);
    }
    *printed += view != NULL;
    if (!done && !ferror(stdout)) {
        hw_say("%s", error.message);
        code = HW_VERB_USAGE;
    }
    hw_view_free(view);
    hw_profile_free(profile);
    return code;
}

static int report_files(struct command *command)
{
    int code = HW_VERB_FINE;
    measure_terminal(command);
    hw_view_arguments_show_progress(&command->names);
    size_t printed = 0;
    for (int i = 0; i < command->file_count; i++) {
        const int outcome = report_file(command, command->files[i], &printed);
        code = outcome ? outcome : code;
        if (!written())
            return HW_VERB_USAGE; /* main says why: errno is the reason */
    }
    if (command->json && command->file_count > 1)
        fputs(printed ? "]\n" : "[]\n", stdout);
    return code;
}

int hw_verb_report(int argc, char **argv)
{
    struct command command = {.color = "auto"};
    int code = hw_view_arguments_init(&command.names, argc) ? parse(&command, argc, argv) : HW_VERB_USAGE;
    if (!code)
        code = report_files(&command);
    hw_view_arguments_free(&command.names);
    return code < 0 ? HW_VERB_FINE : code;
}
