/* verb_diff.c - heapwise diff: what changed from one profile to another. */
#include "base/size.h"
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/measure_keys.h"
#include "cli/open_view.h"
#include "cli/pager.h"
#include "cli/reporting.h"
#include "report/compare/diff.h"
#include "report/text/human.h"

static const char help[] =
    "Usage: heapwise diff [OPTION]... OLD NEW\n"
    "Show what changed from one profile to another, by place; and who keeps more than\n"
    "before, if they were recorded with --keeps.\n"
    "\n"
    "  --sort KEY       what is compared (default: peak). KEY is one of\n"
    "{measures}\n"
    "  --max-increase [KEY=]N\n"
    "                   exit with 1 when the total of KEY (default: that of --sort)\n"
    "                   grows by more than N (1M, 500) or N%; may be repeated\n"
    "  --top N          show N places (default: 10; in JSON all)\n"
    "  --full           whole stacks, names and paths: fold and shorten nothing\n"
    "  --no-pager       do not send the text through a pager on a terminal\n"
    "  --json           one object for a program to read (see docs/json.md)\n"
    "  --color=WHEN     auto (default: on a terminal, unless NO_COLOR is set),\n"
    "                   always, never\n" HW_STACK_OPTIONS_HELP "  -q, --quiet      no progress on a terminal\n"
    "  -h, --help       this text\n"
    "\n"
    "Two places are the same when their stacks have the same functions; addresses and\n"
    "line numbers do not matter (see heapwise-diff(1)). Exit code: 0, 1 when a limit\n"
    "is broken, 2 for wrong usage and for files that are damaged or not profiles.\n";

struct command {
    struct hw_reporting reporting; /* the first: options are taken through it */
    enum hw_measure_id sort;       /* HW_MEASURES: not asked for */
    struct hw_diff_limit *limits;  /* id HW_MEASURES: that of --sort */
    size_t limit_count;
};

/* ---- the command line ---- */

static bool take_sort(void *closure, const char *value, const struct hw_option *option)
{
    struct command *command = closure;
    char keys[512];
    command->sort = hw_take_measure("diff", value);
    return command->sort < HW_MEASURES || hw_option_unknown(option, value, hw_measure_keys(keys, sizeof keys));
}

/* "5%", "1M", "300"; "0" forbids any growth. */
static bool parse_amount(struct hw_diff_limit *limit)
{
    const size_t size = strlen(limit->text);
    if (size && limit->text[size - 1] == '%') {
        char *end;
        errno = 0;
        limit->percent = true;
        limit->amount = strtod(limit->text, &end);
        return !errno && end == limit->text + size - 1 && end > limit->text && limit->amount >= 0 &&
               limit->amount < 1e9;
    }
    uint64_t amount;
    if (!hw_size_read(limit->text, &amount))
        return false;
    limit->amount = (double)amount;
    return true;
}

static bool take_limit(void *closure, const char *value, const struct hw_option *option)
{
    struct command *command = closure;
    char key[32];
    const char *equals = strchr(value, '=');
    struct hw_diff_limit *limit = &command->limits[command->limit_count++]; /* not more of them than arguments */
    *limit = (struct hw_diff_limit){.id = HW_MEASURES, .text = equals ? equals + 1 : value};
    if (equals) {
        snprintf(key, sizeof key, "%.*s", (int)(equals - value), value);
        limit->id = hw_take_measure("diff", key);
        if (limit->id == HW_MEASURES) {
            char keys[512];
            return hw_option_unknown(option, key, hw_measure_keys(keys, sizeof keys));
        }
    }
    return parse_amount(limit) || hw_option_needs(option, value, "[KEY=]N (1M, 500) or [KEY=]N%%");
}

static const struct hw_option verb_options[] = {
    HW_OPTION_CALL("sort", 0, take_sort),
    HW_OPTION_CALL("max-increase", 0, take_limit),
    HW_STACK_OPTIONS(struct hw_reporting, names),
    HW_REPORTING_OPTIONS,
    {0},
};

static int parse(struct command *command, int argc, char **argv)
{
    const int code = hw_reporting_parse(&command->reporting, argc, argv, verb_options, hw_help_with_keys(help));
    if (!code && command->reporting.file_count == 2)
        return hw_view_arguments_read_rules(&command->reporting.names);
    if (code)
        return code;
    hw_say("diff: two files are compared, OLD and NEW, not %d (see heapwise diff --help)",
           command->reporting.file_count);
    return HW_VERB_USAGE;
}

/* ---- the verb ---- */

/* Gives what was not said its value. False when it cannot be compared. */
static bool settle(struct command *command, const struct hw_diff *diff)
{
    if (command->sort == HW_MEASURES)
        command->sort = hw_diff_usual(diff);
    const char *why = hw_diff_unknown(diff, command->sort);
    if (why)
        hw_say("diff: the profiles cannot be compared by %s: %s", hw_measures[command->sort].key, why);
    for (size_t i = 0; !why && i < command->limit_count; i++) {
        struct hw_diff_limit *limit = &command->limits[i];
        if (limit->id == HW_MEASURES)
            limit->id = command->sort;
        why = hw_diff_unknown(diff, limit->id);
        if (why)
            hw_say("diff: --max-increase %s: %s", hw_measures[limit->id].key, why);
    }
    return !why;
}

static void say_broken(const struct command *command, const struct hw_diff *diff)
{
    for (size_t i = 0; i < command->limit_count; i++) {
        const struct hw_diff_limit *limit = &command->limits[i];
        const uint64_t old = diff->total[HW_OLD][limit->id], new = diff->total[HW_NEW][limit->id];
        if (!limit->broken)
            continue;
        const bool bytes = hw_measures[limit->id].unit == HW_UNIT_BYTES;
        hw_say("diff: %s grew by %s, from %s to %s, more than %s", hw_measures[limit->id].key,
               bytes ? HW_BYTES(new - old) : HW_COUNT(new - old), bytes ? HW_BYTES(old) : HW_COUNT(old),
               bytes ? HW_BYTES(new) : HW_COUNT(new), limit->text);
    }
}

static int compare(struct command *command, const struct hw_opened opened[HW_SIDES])
{
    struct hw_error error = {""};
    struct hw_diff *diff = hw_diff_new(opened[HW_OLD].view, opened[HW_NEW].view, &error);
    int code = HW_VERB_USAGE;
    if (!diff)
        hw_say("diff: %s", error.message);
    if (diff && settle(command, diff)) {
        const size_t broken = hw_diff_check(diff, command->limits, command->limit_count);
        const struct hw_diff_options what = {.report = command->reporting.report,
                                             .sort = command->sort,
                                             .limits = command->limits,
                                             .limit_count = command->limit_count};
        code = broken ? HW_VERB_NEGATIVE : HW_VERB_FINE;
        hw_reporting_page(&command->reporting);
        if (!(command->reporting.json ? hw_diff_json : hw_diff_text)(diff, &what, stdout, &error)) {
            hw_say("diff: %s", error.message);
            code = HW_VERB_USAGE;
        }
        if (hw_pager_runs())
            hw_pager_end();
        else
            fflush(stdout);
        say_broken(command, diff);
    }
    hw_diff_free(diff);
    return code;
}

static int run(struct command *command)
{
    struct hw_opened opened[HW_SIDES] = {{0}};
    int code = HW_VERB_FINE;
    hw_reporting_terminal(&command->reporting);
    for (int side = 0; side < HW_SIDES; side++) {
        const int outcome = hw_open_view(&opened[side], &command->reporting.names, command->reporting.files[side]);
        code = outcome ? outcome : code;
    }
    if (opened[HW_OLD].view && opened[HW_NEW].view) {
        const int outcome = compare(command, opened);
        code = code ? code : outcome;
    }
    for (int side = 0; side < HW_SIDES; side++)
        hw_opened_close(&opened[side]);
    return code;
}

int hw_verb_diff(int argc, char **argv)
{
    struct command command = {.reporting = {.color = "auto"},
                              .sort = HW_MEASURES,
                              .limits = calloc((size_t)argc + 1, sizeof *command.limits)};
    const bool memory = hw_view_arguments_init(&command.reporting.names, argc, argv) && command.limits;
    int code = memory ? parse(&command, argc, argv) : HW_VERB_USAGE;
    if (!command.limits)
        hw_say("%s: not enough memory", argv[0]);
    else if (!code)
        code = run(&command);
    hw_view_arguments_free(&command.reporting.names);
    free(command.limits);
    return code < 0 ? HW_VERB_FINE : code;
}
