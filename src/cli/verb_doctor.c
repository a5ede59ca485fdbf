/* verb_doctor.c - heapwise doctor: what works on this machine and what does not, and why. */
#include "cli/doctor.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"

static const struct check {
    const char *name;
    void (*run)(struct hw_finding *finding);
    bool essential; /* when it is missing, nothing can be recorded */
} checks[] = {
    {"architecture", hw_check_architecture, true},
    {"kernel", hw_check_kernel, true},
    {"runtime", hw_check_runtime, true},
    {"recording", hw_check_recording, true},
    {"clock", hw_check_clock, false},
    {"rseq", hw_check_rseq, false},
    {"address space", hw_check_address_space, false},
    {"descriptors", hw_check_descriptors, false},
    {"/proc", hw_check_proc, false},
    {"directory", hw_check_directory, false},
    {"hardware counters", hw_check_hardware_counters, false},
    {"software events", hw_check_software_events, false},
    {"access samples", hw_check_access_samples, false},
    {"syscall dispatch", hw_check_syscall_dispatch, false},
    {"call filters", hw_check_call_filters, false},
    {"debuginfod", hw_check_debuginfod, false},
    {"debug files", hw_check_debug_files, false},
    {"allocators", hw_check_allocators, false},
    {"plugins", hw_check_plugins, false},
    {"compilers", hw_check_compilers, false},
};

#define CHECK_COUNT (sizeof checks / sizeof checks[0])

static const char *const state_names[] = {"ok", "limited", "missing"};

void hw_finding_set(struct hw_finding *finding, enum hw_check_state state, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    finding->state = state;
    vsnprintf(finding->text, sizeof finding->text, format, arguments);
    va_end(arguments);
}

static const char help[] = "Usage: heapwise doctor [--json] [-q]\n"
                           "\n"
                           "Shows what works on this machine and what does not, and why: one line each, with\n"
                           "ok, limited (works, but something is missing) or missing.\n"
                           "\n"
                           "      --json   one JSON object instead of text\n"
                           "  -q, --quiet  only the exit code\n"
                           "  -h, --help   this text\n"
                           "\n"
                           "Exits with 0, 1 when nothing can be recorded here, or 2 for wrong usage.\n";

/* JSON is UTF-8; paths may be anything. */
static json_t *json_text(const char *text)
{
    json_t *string = json_string(text);
    if (string)
        return string;
    char plain[sizeof((struct hw_finding *)0)->text];
    snprintf(plain, sizeof plain, "%s", text);
    for (char *at = plain; *at; at++) {
        if (*at & 0x80)
            *at = '?';
    }
    return json_string(plain);
}

static bool print_json(const struct hw_finding *findings, bool can_record)
{
    json_t *list = json_array();
    for (size_t i = 0; i < CHECK_COUNT; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "name", checks[i].name, "state",
                                              state_names[findings[i].state], "text", json_text(findings[i].text)));
    json_t *object = json_pack("{s:i, s:s, s:b, s:o}", "format", 1, "version", HEAPWISE_VERSION, "can_record",
                               (int)can_record, "checks", list);
    bool printed = object && json_dumpf(object, stdout, JSON_INDENT(2)) == 0;
    putchar('\n');
    json_decref(object);
    return printed;
}

static void print_text(const struct hw_finding *findings, bool can_record)
{
    for (size_t i = 0; i < CHECK_COUNT; i++)
        printf("%-8s %-18s %s\n", state_names[findings[i].state], checks[i].name, findings[i].text);
    bool here = true;
    for (size_t i = 0; i < CHECK_COUNT; i++)
        here &= strcmp(checks[i].name, "directory") != 0 || findings[i].state != HW_CHECK_MISSING;
    puts(!can_record ? "\nNothing can be recorded here: see what is missing above."
         : here      ? "\nPrograms can be recorded here."
                     : "\nPrograms can be recorded, but not into this directory: choose another one with -o.");
}

struct command {
    bool json, quiet;
};

static const struct hw_option verb_options[] = {
    HW_OPTION_FLAG("json", 0, struct command, json),
    HW_OPTION_FLAG("quiet", 'q', struct command, quiet),
    HW_OPTION_HELP('h'),
    {0},
};

int hw_verb_doctor(int argc, char **argv)
{
    struct command command = {0};
    const int code = hw_options_take(verb_options, false, help, argc, argv, &command);
    if (code)
        return code < 0 ? HW_VERB_FINE : code;
    if (optind < argc) {
        hw_say("doctor: takes no arguments, not '%s' (see heapwise doctor --help)", argv[optind]);
        return HW_VERB_USAGE;
    }
    struct hw_finding findings[CHECK_COUNT];
    bool can_record = true;
    for (size_t i = 0; i < CHECK_COUNT; i++) {
        hw_finding_set(&findings[i], HW_CHECK_MISSING, "could not be found out");
        checks[i].run(&findings[i]);
        can_record &= !checks[i].essential || findings[i].state != HW_CHECK_MISSING;
    }
    if (!command.json && !command.quiet)
        print_text(findings, can_record);
    else if (command.json && !print_json(findings, can_record))
        return HW_VERB_USAGE;
    return can_record ? HW_VERB_FINE : HW_VERB_NEGATIVE;
}
