/* verb_fields.c - heapwise fields: how structs lie in cache lines, and how they should. */
#include <stdio.h>

#include "cli/reporting.h"

static const char help[] =
    "Usage: heapwise fields [OPTION]... FILE...\n"
    "Show which fields of structs are hot, how they lie in cache lines, and a better\n"
    "layout where there is one, from profiles of programs built by heapwise cc\n"
    "--fields (counted), or recorded by heapwise record --fields (sampled).\n"
    "\n"
    "  --top N          show N structs and N findings (default: 5; in JSON all)\n"
    "  --struct NAME    only the structs of that name, as it is shown\n"
    "  --full           whole names, a row for every field, weights of field pairs\n"
    "  --no-pager       do not send the text through a pager on a terminal\n" HW_REPORTING_HELP HW_VIEW_OPTIONS_HELP
    "  -q, --quiet      no progress on a terminal\n"
    "  -h, --help       this text\n"
    "\n"
    "A use is an execution of accesses to one object that belong together; lines are\n"
    "64 bytes. docs/fields.md explains the model. Exit code: 0, or 2 for wrong usage\n"
    "and for files that are damaged or not profiles.\n";

static const struct hw_option verb_options[] = {
    HW_OPTION_TEXT("struct", 0, struct hw_reporting, report.structure),
    HW_REPORTING_OPTIONS,
    {0},
};

static int parse(struct hw_reporting *command, int argc, char **argv)
{
    const int code = hw_reporting_parse(command, argc, argv, verb_options, help);
    command->report.fields = true;
    command->report.sections = 1ull << HW_REPORT_FINDINGS | 1ull << HW_REPORT_FIELDS;
    if (command->json)
        command->report.sections |= 1ull << HW_REPORT_GLOBALS;
    return code;
}

int hw_verb_fields(int argc, char **argv)
{
    struct hw_reporting command = {.color = "auto"};
    int code = hw_view_arguments_init(&command.names, argc, argv) ? parse(&command, argc, argv) : HW_VERB_USAGE;
    if (!code)
        code = hw_reporting_run(&command);
    hw_view_arguments_free(&command.names);
    return code < 0 ? HW_VERB_FINE : code;
}
