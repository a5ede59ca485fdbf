/* verb_report.c - heapwise report: what is in profile files, as text or as JSON. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/growth.h"
#include "cli/measure_keys.h"
#include "cli/reporting.h"

static const char help[] =
    "Usage: heapwise report [OPTION]... FILE...\n"
    "Show what is in profile files, also in those of programs that are still running:\n"
    "the summary, why RSS is larger than the heap, what was found, and the places\n"
    "that matter most. \"heapwise FILE\" is the same.\n"
    "\n"
    "  --all            the whole report: all lists with their stacks\n"
    "  --top N          show N places in each list (default: 5; with --all 10; in\n"
    "                   JSON all)\n"
    "  --sort KEY       show only the list of places by KEY, with --json the order:\n"
    "{lists}\n"
    "  --section NAME   show only this part: summary, findings, fields, functions,\n"
    "                   timeline, memory, access, globals, sampled, allocator,\n"
    "                   regions, sizes, lifetimes, leaks, keeps, contents,\n"
    "                   pinned, types, threads, another\n"
    "                   KEY of --sort, not-observed; may be repeated, or\n"
    "                   NAME,NAME\n"
    "  --function NAME  only the places with NAME on their stacks (as shown, or as in\n"
    "                   the symbol table), and whether it allocates or calls\n"
    "  --by KEY         show sums instead of places, by function (self, and total\n"
    "                   with what it calls), file, line, module, type, thread or\n"
    "                   size\n"
    "  --sandwich FUNCTION\n"
    "                   the callers and callees of FUNCTION, with their shares\n"
    "  --tree[=WAY]     the call tree: top-down (default), or bottom-up from the\n"
    "                   functions that allocate\n"
    "  --source FUNCTION\n"
    "                   the source of FUNCTION with what its lines allocate\n"
    "  --suppressions FILE\n"
    "                   lost blocks that do not count: LeakSanitizer's or\n"
    "                   Valgrind's file of suppressions; may be repeated\n"
    "  --growth         the FILEs are dumps of one run (of one FILE the others are\n"
    "                   found): the places that grew, how fast, and how certain that\n"
    "                   is; with --by KEY sums of them\n"
    "  --source-path OLD=NEW\n"
    "                   read source files below NEW whose paths begin with OLD;\n"
    "                   may be repeated\n"
    "  --min-share N    leave out branches of the tree with less than N percent of\n"
    "                   the whole (default: 1)\n"
    "  --value KEY      what --by, --sandwich, --tree and --source add up (default:\n"
    "                   peak); heapwise export --help lists the KEYs\n"
    "  --full           whole stacks, names and paths: fold and shorten nothing;\n"
    "                   implies --all\n"
    "  --no-pager       do not send the text through a pager on a terminal (see\n"
    "                   $HEAPWISE_PAGER in heapwise(1))\n" HW_REPORTING_HELP HW_STACK_OPTIONS_HELP
    "  -q, --quiet      no progress on a terminal\n"
    "  -h, --help       this text\n"
    "\n"
    "A place is a call stack that allocates. \"leaked\" is what was not freed when the\n"
    "profile ends, whether or not it is still reachable; \"temporary\" is what was\n"
    "freed before its thread allocated again. Exit code: 0, or 2 for wrong usage and\n"
    "for files that are damaged or not profiles.\n";

/* ---- the command line ---- */

/* The section of that name; -1. */
static int find_section(const char *name, size_t size)
{
    for (int i = 0; i < HW_REPORT_SECTIONS; i++)
        if (strlen(hw_report_section_names[i]) == size && !strncmp(hw_report_section_names[i], name, size))
            return i;
    const enum hw_sort_key key = hw_take_list("report", name, size); /* an old name */
    return key < HW_SORT_KEYS ? HW_REPORT_LISTS + (int)key : -1;
}

/* The names of COUNT sections from FIRST on. */
static const char *names_from(int first, int count, char *buffer, size_t size)
{
    size_t used = 0;
    *buffer = '\0';
    for (int i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%s", i ? ", " : "", hw_report_section_names[first + i]);
    return buffer;
}

static bool take_sort(void *closure, const char *value, const struct hw_option *option)
{
    struct hw_reporting *command = closure;
    char names[512];
    const enum hw_sort_key key = hw_take_list("report", value, strlen(value));
    if (key >= HW_SORT_KEYS)
        return hw_option_unknown(option, value, names_from(HW_REPORT_LISTS, HW_SORT_KEYS, names, sizeof names));
    command->report.sort = key;
    command->report.sections |= 1ull << (HW_REPORT_LISTS + (unsigned)key);
    return true;
}

static bool take_sections(void *closure, const char *value, const struct hw_option *option)
{
    struct hw_reporting *command = closure;
    while (true) {
        const size_t size = strcspn(value, ",");
        const int section = find_section(value, size);
        if (section < 0) {
            char names[512], wrong[64];
            snprintf(wrong, sizeof wrong, "%.*s", (int)size, value);
            return hw_option_unknown(option, wrong, names_from(0, HW_REPORT_SECTIONS, names, sizeof names));
        }
        command->report.sections |= 1ull << section;
        if (!value[size])
            return true;
        value += size + 1;
    }
}

/* ---- sums instead of sections ---- */

static bool take_shape(struct hw_sums *sums, enum hw_sums_shape shape)
{
    if (sums->shape == HW_SUMS_NONE || sums->shape == shape) {
        sums->shape = shape;
        return true;
    }
    hw_say("report: --by, --sandwich, --tree and --source cannot be combined");
    return false;
}

static bool take_by(void *closure, const char *value, const struct hw_option *option)
{
    static const char keys[] =
#define HW_BY(id, key, ...) ", " key
#include "report/view/groups.def"
        ;
    struct hw_sums *sums = &((struct hw_reporting *)closure)->report.sums;
    sums->by = hw_by_find(value);
    return sums->by < HW_BYS ? take_shape(sums, HW_SUMS_GROUPS) : hw_option_unknown(option, value, keys + 2);
}

static bool take_sandwich(void *closure, const char *value, const struct hw_option *option)
{
    struct hw_sums *sums = &((struct hw_reporting *)closure)->report.sums;
    sums->function = value;
    return take_shape(sums, HW_SUMS_SANDWICH);
}

static bool take_source(void *closure, const char *value, const struct hw_option *option)
{
    struct hw_reporting *command = closure;
    command->names.source.function = value;
    command->report.sums.source = &command->names.source;
    return take_shape(&command->report.sums, HW_SUMS_SOURCE);
}

static bool take_tree(void *closure, const char *value, const struct hw_option *option)
{
    struct hw_sums *sums = &((struct hw_reporting *)closure)->report.sums;
    sums->bottom_up = value && !strcmp(value, "bottom-up");
    if (!value || sums->bottom_up || !strcmp(value, "top-down"))
        return take_shape(sums, HW_SUMS_TREE);
    return hw_option_unknown(option, value, "top-down, bottom-up");
}

static bool take_share(void *closure, const char *value, const struct hw_option *option)
{
    struct hw_sums *sums = &((struct hw_reporting *)closure)->report.sums;
    char *end;
    const double percent = strtod(value, &end);
    if (end == value || (*end && strcmp(end, "%")) || !(percent >= 0 && percent <= 100))
        return hw_option_needs(option, value, "a percentage from 0 to 100");
    sums->least = percent / 100;
    sums->share_given = true;
    return true;
}

static bool take_value(void *closure, const char *value, const struct hw_option *option)
{
    struct hw_sums *sums = &((struct hw_reporting *)closure)->report.sums;
    char keys[512];
    sums->measure = hw_take_measure("report", value);
    sums->chosen = true;
    return sums->measure < HW_MEASURES || hw_option_unknown(option, value, hw_measure_keys(keys, sizeof keys));
}

/* Whether the options fit together. --sort chooses the value where it adds up. */
static bool settle_sums(struct hw_reporting *command)
{
    struct hw_sums *sums = &command->report.sums;
    const uint64_t sort = 1ull << (HW_REPORT_LISTS + (unsigned)command->report.sort);
    const char *now, *key = hw_list_keys[command->report.sort].key;
    command->names.source.sysroot = command->names.view.symbolizer.sysroot;
    if (command->names.source.path_count && sums->shape != HW_SUMS_SOURCE) {
        hw_say("report: --source-path is for --source");
        return false;
    }
    if (sums->shape == HW_SUMS_NONE && !sums->chosen && !sums->share_given)
        return true;
    if (sums->shape == HW_SUMS_NONE) {
        hw_say("report: --%s is for %s", sums->chosen ? "value" : "min-share",
               sums->chosen ? "--by, --sandwich, --tree and --source" : "--tree");
    } else if (sums->share_given && sums->shape != HW_SUMS_TREE) {
        hw_say("report: --min-share is for --tree");
    } else if (command->json && sums->shape != HW_SUMS_GROUPS) {
        hw_say(sums->shape == HW_SUMS_SOURCE
                   ? "report: --json cannot be combined with --source; take --by line"
                   : "report: --json cannot be combined with --%s; take --by, or stacks from heapwise export",
               sums->shape == HW_SUMS_TREE ? "tree" : "sandwich");
    } else if (command->report.sections && command->report.sections != sort) {
        hw_say("report: --section cannot be combined with --by, --sandwich, --tree or --source");
    } else if (command->report.sections && !sums->chosen &&
               (sums->measure = hw_measure_find(key, &now)) == HW_MEASURES) {
        hw_say("report: '%s' cannot be added up; choose a --value (see heapwise export --help)", key);
    } else {
        sums->chosen |= command->report.sections != 0;
        command->report.sections = 0;
        if (!sums->share_given)
            sums->least = 0.01;
        return true;
    }
    return false;
}

/* --growth has a report of its own. */
static bool settle_growth(const struct hw_reporting *command)
{
    const struct hw_sums *sums = &command->report.sums;
    const char *other = command->report.sections                                    ? "--section and --sort"
                        : sums->chosen                                              ? "--value"
                        : sums->share_given                                         ? "--min-share"
                        : sums->shape > HW_SUMS_GROUPS                              ? "--sandwich, --tree and --source"
                        : sums->shape == HW_SUMS_GROUPS && sums->by == HW_BY_THREAD ? "--by thread"
                                                                                    : NULL;
    if (other)
        hw_say("report: --growth cannot be combined with %s", other);
    return !other;
}

static const struct hw_option verb_options[] = {
    HW_OPTION_CALL("sort", 0, take_sort),
    HW_OPTION_CALL("section", 0, take_sections),
    HW_OPTION_CALL("by", 0, take_by),
    HW_OPTION_CALL("sandwich", 0, take_sandwich),
    {.name = "tree", .value = optional_argument, .take = take_tree},
    HW_OPTION_CALL("source", 0, take_source),
    HW_SOURCE_OPTIONS(struct hw_reporting, names),
    HW_OPTION_CALL("min-share", 0, take_share),
    HW_OPTION_CALL("value", 0, take_value),
    HW_OPTION_TEXT("function", 0, struct hw_reporting, names.view.function),
    HW_SUPPRESSION_OPTIONS(struct hw_reporting, names),
    HW_STACK_OPTIONS(struct hw_reporting, names),
    HW_OPTION_FLAG("growth", 0, struct hw_reporting, growth),
    HW_OPTION_FLAG("all", 0, struct hw_reporting, all),
    HW_REPORTING_OPTIONS,
    {0},
};

int hw_verb_report(int argc, char **argv)
{
    struct hw_reporting command = {.color = "auto"};
    int code = hw_view_arguments_init(&command.names, argc, argv)
                   ? hw_reporting_parse(&command, argc, argv, verb_options, hw_help_with_keys(help))
                   : HW_VERB_USAGE;
    if (!code && !(command.growth ? settle_growth(&command) : settle_sums(&command)))
        code = HW_VERB_USAGE;
    if (!code)
        code = hw_view_arguments_read_rules(&command.names);
    if (!code)
        code = command.growth ? hw_growth_report(&command) : hw_reporting_run(&command);
    hw_view_arguments_free(&command.names);
    return code < 0 ? HW_VERB_FINE : code;
}
