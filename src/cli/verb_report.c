/* verb_report.c - heapwise report: what is in profile files, as text or as JSON. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/measure_keys.h"
#include "cli/reporting.h"

static const char help[] =
    "Usage: heapwise report [OPTION]... FILE...\n"
    "Show what is in profile files, also in those of programs that are still running.\n"
    "\n"
    "  --top N          show N places in each list (default: 10; in JSON all)\n"
    "  --sort KEY       show only the list of places by KEY, with --json the order:\n"
    "{lists}\n"
    "  --section NAME   show only this part: summary, findings, fields, functions,\n"
    "                   timeline, memory, access, globals, sampled, a KEY of\n"
    "                   --sort, not-observed; may be repeated, or NAME,NAME\n"
    "  --function NAME  only the places with NAME on their stacks (as shown, or as in\n"
    "                   the symbol table), and whether it allocates or calls\n"
    "  --full           whole stacks, names and paths: fold and cut nothing\n"
    "  --json           one object for a program to read (see docs/json.md); an array\n"
    "                   of them for several FILEs\n"
    "  --color=WHEN     auto (default: on a terminal, unless NO_COLOR is set), always,\n"
    "                   never\n" HW_STACK_OPTIONS_HELP "  -q, --quiet      no progress on a terminal\n"
    "  -h, --help       this text\n"
    "\n"
    "A place is a call stack that allocates. \"leaked\" is what was not freed when the\n"
    "profile ends, whether or not it is still reachable; \"temporary\" is what was\n"
    "freed before its thread allocated again. Exit code: 0, or 2 for wrong usage and\n"
    "for files that are damaged or no profiles.\n";

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
    if (key >= HW_SORT_KEYS) {
        hw_say("report: --sort does not know '%s' (%s)", value,
               names_from(HW_REPORT_LISTS, HW_SORT_KEYS, names, sizeof names));
        return false;
    }
    command->report.sort = key;
    command->report.sections |= 1u << (HW_REPORT_LISTS + (unsigned)key);
    return true;
}

static bool take_sections(void *closure, const char *value, const struct hw_option *option)
{
    struct hw_reporting *command = closure;
    while (true) {
        const size_t size = strcspn(value, ",");
        const int section = find_section(value, size);
        if (section < 0) {
            char names[512];
            hw_say("report: --section does not know '%.*s' (%s)", (int)size, value,
                   names_from(0, HW_REPORT_SECTIONS, names, sizeof names));
            return false;
        }
        command->report.sections |= 1u << section;
        if (!value[size])
            return true;
        value += size + 1;
    }
}

static const struct hw_option verb_options[] = {
    HW_OPTION_CALL("sort", 0, take_sort),
    HW_OPTION_CALL("section", 0, take_sections),
    HW_OPTION_TEXT("function", 0, struct hw_reporting, names.view.function),
    HW_STACK_OPTIONS(struct hw_reporting, names),
    HW_REPORTING_OPTIONS,
    {0},
};

int hw_verb_report(int argc, char **argv)
{
    struct hw_reporting command = {.color = "auto"};
    int code = hw_view_arguments_init(&command.names, argc, argv)
                   ? hw_reporting_parse(&command, argc, argv, verb_options, hw_help_with_keys(help))
                   : HW_VERB_USAGE;
    if (!code)
        code = hw_view_arguments_read_rules(&command.names);
    if (!code)
        code = hw_reporting_run(&command);
    hw_view_arguments_free(&command.names);
    return code < 0 ? HW_VERB_FINE : code;
}
