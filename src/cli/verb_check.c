/* verb_check.c - heapwise check: does a profile keep to limits, for continuous integration. */
#include "base/size.h"
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/growth.h"
#include "cli/open_view.h"
#include "cli/reporting.h"
#include "report/compare/check.h"
#include "report/view/pins.h"

#define USUAL_TOLERANCE 5.0

static const char help[] = "Usage: heapwise check [OPTION]... FILE\n"
                           "Exit with 1 when a profile breaks a limit, and say which places broke it.\n"
                           "\n"
                           "  --max-peak N         bytes live at the peak: at most N (16M, 2G)\n"
                           "  --max-leaked N       bytes not freed\n"
                           "  --max-lost N         bytes that the program could not reach any more, in\n"
                           "                       profiles of heapwise record --leaks\n"
                           "  --suppressions FILE  lost blocks that do not count: LeakSanitizer's or\n"
                           "                       Valgrind's file of suppressions; may be repeated\n"
                           "  --max-bytes N        bytes allocated over the whole run\n"
                           "  --max-allocations N  allocations (5000, or 20K, which is 20,480)\n"
                           "  --max-temporary N    blocks freed before their thread allocated again\n"
                           "  --max-growth N       bytes by second that the heap grows over the dumps of the\n"
                           "                       run, which are found beside FILE: five or more\n"
                           "  --max-pinned N       free bytes in pages that live blocks pin, in profiles of\n"
                           "                       heapwise record --pinned\n"
                           "  --baseline FILE      another profile: peak, leaked, bytes and allocations may\n"
                           "                       grow by the tolerance only\n"
                           "  --tolerance PCT      how many percent they may grow (default: 5)\n"
                           "  --github             also print annotations for GitHub's workflows\n"
                           "  --json               one object for a program to read (see docs/json.md)\n"
                           "  --color=WHEN         auto (default: on a terminal, unless NO_COLOR is set),\n"
                           "                       always, never\n" HW_STACK_OPTIONS_HELP_4
                           "  -q, --quiet          print only limits that are broken, or unsure\n"
                           "  -h, --help           this text\n"
                           "\n"
                           "In sampled profiles values are estimates: a limit is broken only if that is 95 %\n"
                           "certain; an estimate too close to the limit is reported as \"unsure\", and the\n"
                           "check does not fail. Exit code: 0, 1 when a limit is broken, 2 for wrong usage\n"
                           "and for files that are damaged or not profiles.\n";

static const struct {
    const char *name;
    enum hw_measure_id id;
    bool baseline; /* compared with it */
    bool growth;   /* of the whole run */
    bool pinned;   /* by live blocks; ID gives the unit */
} measures[] = {
    {"max-peak", HW_MEASURE_PEAK, .baseline = true},         {"max-leaked", HW_MEASURE_LEAKED, .baseline = true},
    {"max-lost", HW_MEASURE_LOST, .baseline = false},        {"max-bytes", HW_MEASURE_BYTES, .baseline = true},
    {"max-allocations", HW_MEASURE_COUNT, .baseline = true}, {"max-temporary", HW_MEASURE_TEMPORARY, .baseline = false},
    {"max-growth", HW_MEASURE_LEAKED, .growth = true},       {"max-pinned", HW_MEASURE_LEAKED, .pinned = true},
};

#define MEASURE_COUNT (sizeof measures / sizeof *measures)

struct command {
    struct hw_reporting reporting; /* the first: options are taken through it */
    struct hw_check checks[2 * MEASURE_COUNT];
    size_t check_count;
    const char *baseline;
    double tolerance; /* below 0: not given */
    bool github;
    bool max_growth;
};

/* ---- the command line ---- */

/* A limit given twice: the last one counts. */
static bool take_limit(void *closure, const char *value, const struct hw_option *option)
{
    struct command *command = closure;
    uint64_t limit;
    if (!hw_size_read(value, &limit))
        return hw_option_needs(option, value, "a whole number, optionally with K, M or G");
    size_t measure = 0, at = 0;
    while (strcmp(measures[measure].name, option->name))
        measure++;
    while (at < command->check_count && strcmp(command->checks[at].name, option->name))
        at++;
    command->check_count += at == command->check_count;
    command->max_growth |= measures[measure].growth;
    command->checks[at] = (struct hw_check){
        .name = measures[measure].name, .id = measures[measure].id, .pinned = measures[measure].pinned, .limit = limit};
    return true;
}

static const struct hw_option verb_options[] = {
    HW_OPTION_CALL("max-peak", 0, take_limit),
    HW_OPTION_CALL("max-leaked", 0, take_limit),
    HW_OPTION_CALL("max-lost", 0, take_limit),
    HW_OPTION_CALL("max-bytes", 0, take_limit),
    HW_OPTION_CALL("max-allocations", 0, take_limit),
    HW_OPTION_CALL("max-temporary", 0, take_limit),
    HW_OPTION_CALL("max-growth", 0, take_limit),
    HW_OPTION_CALL("max-pinned", 0, take_limit),
    HW_OPTION_TEXT("baseline", 0, struct command, baseline),
    HW_OPTION_KEPT("tolerance", 0, hw_take_percentage, double, struct command, tolerance),
    HW_OPTION_FLAG("github", 0, struct command, github),
    HW_SUPPRESSION_OPTIONS(struct hw_reporting, names),
    HW_STACK_OPTIONS(struct hw_reporting, names),
    HW_REPORTING_FORM,
    {0},
};

static int parse(struct command *command, int argc, char **argv)
{
    const int code = hw_reporting_parse(&command->reporting, argc, argv, verb_options, help);
    if (code)
        return code;
    if (command->reporting.file_count != 1)
        hw_say("check: one FILE at a time, not %d", command->reporting.file_count);
    else if (!command->check_count && !command->baseline)
        hw_say("check: no limit was given, such as --max-peak 64M (see heapwise check --help)");
    else if (command->tolerance >= 0 && !command->baseline)
        hw_say("check: --tolerance is of no use without --baseline");
    else if (command->github && command->reporting.json)
        hw_say("check: --github and --json exclude each other");
    else
        return hw_view_arguments_read_rules(&command->reporting.names);
    return HW_VERB_USAGE;
}

/* ---- the verb ---- */

static void add_baseline(struct command *command, const struct hw_diff *diff)
{
    for (size_t i = 0; i < MEASURE_COUNT; i++)
        if (measures[i].baseline && !hw_diff_unknown(diff, measures[i].id))
            command->checks[command->check_count++] =
                (struct hw_check){.name = "baseline",
                                  .id = measures[i].id,
                                  .baseline = true,
                                  .tolerance = command->tolerance < 0 ? USUAL_TOLERANCE : command->tolerance};
}

static bool can_be_checked(const struct command *command, const struct hw_view *view)
{
    for (size_t i = 0; i < command->check_count; i++) {
        const struct hw_check *limit = &command->checks[i];
        const char *why = !limit->pinned                 ? hw_measure_unknown(view, limit->id)
                          : hw_pins_pages(view->profile) ? NULL
                                                         : hw_not_walked(view->profile);
        if (why) {
            hw_say("check: %s: --%s cannot be checked: %s", command->reporting.files[0], limit->name, why);
            return false;
        }
    }
    return true;
}

static bool print(struct command *command, const struct hw_view *view, struct hw_error *error)
{
    const struct hw_report_options *options = &command->reporting.report;
    struct hw_check shown[2 * MEASURE_COUNT];
    size_t count = 0;
    if (command->reporting.json)
        return hw_check_json(view, command->checks, command->check_count, options, stdout, error);
    for (size_t i = 0; i < command->check_count; i++)
        if (!command->reporting.names.quiet || command->checks[i].verdict != HW_KEPT)
            shown[count++] = command->checks[i];
    return hw_check_text(view, shown, count, options, stdout, error) &&
           (!command->github || hw_check_github(view, shown, count, getenv("GITHUB_WORKSPACE"), stdout, error));
}

/* What makes values, or a comparison with the baseline, doubtful. */
static void say_notes(const struct command *command, const struct hw_view *view, const struct hw_diff *diff)
{
    struct hw_buffer notes = {0};
    if (!diff && hw_view_sampled(view) && !command->reporting.names.quiet)
        hw_say("check: the profile was sampled: values are estimates%s",
               view->profile->process.sample_bytes ? ", and reallocations count as allocations" : "");
    if (diff && !command->reporting.names.quiet)
        hw_diff_notes(diff, &notes);
    for (char *at = notes.data, *end; at && (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        hw_say("check: %s", at);
    }
    hw_buffer_free(&notes);
}

/* The growth of the run that FILE is of, by its places; NULL with CODE. */
static struct hw_growth *growth_of(struct command *command, struct hw_view *view, struct hw_growth_run *run, int *code)
{
    struct hw_error error = {""};
    struct hw_growth *growth = NULL;
    *code = hw_growth_run_find(run, &command->reporting.names, command->reporting.files, 1, HW_TREND_LEAST);
    if (!*code && !(growth = hw_growth_new(view, run->files, run->count, HW_BYS, false, &error))) {
        hw_say("check: %s", error.message);
        *code = HW_VERB_USAGE;
    } else if (run->damaged)
        *code = HW_VERB_USAGE;
    for (size_t i = 0; growth && i < command->check_count; i++)
        if (!strcmp(command->checks[i].name, "max-growth"))
            command->checks[i].growth = growth;
    return growth;
}

static int check(struct command *command, struct hw_view *view, struct hw_view *baseline)
{
    struct hw_error error = {""};
    int code = HW_VERB_USAGE;
    struct hw_diff *diff = baseline ? hw_diff_new(baseline, view, &error) : NULL;
    if (baseline && !diff) {
        hw_say("check: %s", error.message);
        return HW_VERB_USAGE;
    }
    if (can_be_checked(command, view)) {
        if (diff)
            add_baseline(command, diff);
        say_notes(command, view, diff);
        if (!command->reporting.names.quiet)
            hw_say_suppressed(view, "check");
        hw_check_run(view, diff, command->checks, command->check_count);
        code = HW_VERB_FINE;
        for (size_t i = 0; i < command->check_count; i++)
            if (command->checks[i].verdict == HW_BROKEN)
                code = HW_VERB_NEGATIVE;
        if (!print(command, view, &error)) {
            hw_say("check: %s", error.message);
            code = HW_VERB_USAGE;
        }
    }
    hw_diff_free(diff);
    return code;
}

static int run(struct command *command)
{
    struct hw_opened file, baseline = {0};
    hw_reporting_terminal(&command->reporting);
    int code = hw_open_view(&file, &command->reporting.names, command->reporting.files[0]);
    if (command->baseline) {
        const int outcome = hw_open_view(&baseline, &command->reporting.names, command->baseline);
        code = code ? code : outcome;
    }
    struct hw_growth_run growth_run = {0};
    struct hw_growth *growth = NULL;
    if (file.view && command->max_growth) {
        int outcome;
        growth = growth_of(command, file.view, &growth_run, &outcome);
        code = code ? code : outcome;
    }
    if (file.view && (baseline.view || !command->baseline) && (growth || !command->max_growth)) {
        const int outcome = check(command, file.view, baseline.view);
        code = code ? code : outcome;
    }
    hw_growth_free(growth);
    hw_growth_run_close(&growth_run);
    hw_opened_close(&file);
    hw_opened_close(&baseline);
    return code;
}

int hw_verb_check(int argc, char **argv)
{
    struct command command = {.reporting = {.color = "auto"}, .tolerance = -1};
    int code =
        hw_view_arguments_init(&command.reporting.names, argc, argv) ? parse(&command, argc, argv) : HW_VERB_USAGE;
    if (!code)
        code = run(&command);
    hw_view_arguments_free(&command.reporting.names);
    return code < 0 ? HW_VERB_FINE : code;
}
