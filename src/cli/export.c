/* export.c - heapwise export: a profile in somebody else's format. */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/view_options.h"
#include "profile/write.h"
#include "report/human.h"
#include "report/llvm_export.h"

static const char help[] = "Usage: heapwise export --format FORMAT [OPTION]... FILE\n"
                           "Write a profile in a format of LLVM's tools, to standard output.\n"
                           "\n"
                           "  --format FORMAT  memprofraw: for llvm-profdata, with the program at hand\n"
                           "                   memprof-yaml: for llvm-profdata merge, and for people\n"
                           "                   profdata: for clang -fmemory-profile-use=\n"
                           "  --version N      of memprofraw: 3, 4 or 5 (default); of profdata: 3 or 4\n"
                           "                   (default)\n"
                           "  -o, --output OUT write to OUT, which must not exist\n"
                           "  -f, --force      overwrite OUT\n"
                           "  --module NAME    keep only frames of the program or library NAME (a file name\n"
                           "                   or a path); may be repeated. Default: the program and the\n"
                           "                   libraries with debug information that are not the\n"
                           "                   system's. memprofraw keeps all frames.\n"
                           "  --cold-after S   where accesses were not counted: call blocks cold that live S\n"
                           "                   seconds or longer on average (default: no block is called\n"
                           "                   cold that may have been used)\n" HW_VIEW_OPTIONS_HELP
                           "  -q, --quiet      no notes about what the format cannot hold\n"
                           "  -h, --help       this text\n"
                           "\n"
                           "Exit code: 0, or 2 for wrong usage and for files that are damaged or no profiles.\n";

enum kind { RAW, YAML, INDEXED };

static const struct format {
    const char *name;
    enum kind kind;
    uint32_t oldest, newest; /* versions; 0: there are none */
} formats[] = {
    {"memprofraw", RAW, HW_LLVM_RAW_VERSION_V3, HW_LLVM_RAW_VERSION},
    {"memprof-yaml", YAML, 0, 0},
    {"profdata", INDEXED, HW_LLVM_INDEXED_WRITABLE, HW_LLVM_INDEXED_VERSION},
};

#define FORMATS (sizeof formats / sizeof *formats)

struct command {
    const struct format *format;
    uint32_t version;
    const char *output, *file;
    const char **modules;
    struct hw_llvm_export_options export;
    struct hw_view_arguments names;
    bool force;
};

/* ---- the command line ---- */

static bool set_format(struct command *command, const char *value)
{
    for (size_t i = 0; i < FORMATS; i++)
        if (!strcmp(formats[i].name, value))
            command->format = &formats[i];
    if (command->format && !strcmp(command->format->name, value))
        return true;
    hw_say("export: --format does not know '%s' (memprofraw, memprof-yaml, profdata)", value);
    return false;
}

static bool set_version(struct command *command, const char *value)
{
    uint64_t version;
    if (!hw_parse_number(value, 1, UINT32_MAX, &version)) {
        hw_say("export: --version takes a number, not '%s'", value);
        return false;
    }
    command->version = (uint32_t)version;
    return true;
}

static bool set_cold_after(struct command *command, const char *value)
{
    char *end;
    errno = 0;
    const double seconds = strtod(value, &end);
    if (errno || end == value || *end || !(seconds > 0) || seconds > 1e9) {
        hw_say("export: --cold-after takes a number of seconds above 0, not '%s'", value);
        return false;
    }
    command->export.cold_after_ns = (uint64_t)(seconds * 1e9);
    return true;
}

enum export_option { OPTION_FORMAT = 256, OPTION_VERSION, OPTION_MODULE, OPTION_COLD_AFTER };

static const struct option options[] = {{"format", required_argument, NULL, OPTION_FORMAT},
                                        {"version", required_argument, NULL, OPTION_VERSION},
                                        {"output", required_argument, NULL, 'o'},
                                        {"force", no_argument, NULL, 'f'},
                                        {"module", required_argument, NULL, OPTION_MODULE},
                                        {"cold-after", required_argument, NULL, OPTION_COLD_AFTER},
                                        HW_VIEW_OPTIONS,
                                        {0}};

/* One option; -1 when help was printed. */
static int take_option(struct command *command, int option, char **argv)
{
    bool fine = true;
    switch (option) {
    case OPTION_FORMAT:
        fine = set_format(command, optarg);
        break;
    case OPTION_VERSION:
        fine = set_version(command, optarg);
        break;
    case 'o':
        command->output = strcmp(optarg, "-") ? optarg : NULL;
        break;
    case 'f':
        command->force = true;
        break;
    case OPTION_MODULE: /* there are no more of them than arguments */
        command->modules[command->export.module_count++] = optarg;
        break;
    case OPTION_COLD_AFTER:
        fine = set_cold_after(command, optarg);
        break;
    default:
        return hw_view_arguments_take(&command->names, option, argv, help);
    }
    return fine ? HW_VERB_FINE : HW_VERB_USAGE;
}

static bool check_version(struct command *command)
{
    const struct format *format = command->format;
    if (!command->version) {
        command->version = format->newest;
        return true;
    }
    if (command->version >= format->oldest && command->version <= format->newest)
        return true;
    if (format->oldest)
        hw_say("export: --version of %s can be %u to %u, not %u", format->name, format->oldest, format->newest,
               command->version);
    else
        hw_say("export: %s has no versions", format->name);
    return false;
}

/* HW_VERB_FINE to go on, HW_VERB_USAGE, or -1 when help was printed. */
static int parse(struct command *command, int argc, char **argv)
{
    hw_view_arguments_begin();
    for (int option; (option = getopt_long(argc, argv, ":o:f" HW_VIEW_SHORT_OPTIONS, options, NULL)) != -1;) {
        const int code = take_option(command, option, argv);
        if (code)
            return code;
    }
    command->export.modules = command->modules;
    if (!command->format)
        hw_say("export: which --format? (memprofraw, memprof-yaml, profdata)");
    else if (argc - optind != 1)
        hw_say(argc == optind ? "export: which FILE? (see heapwise export --help)"
                              : "export: one FILE at a time, not %d",
               argc - optind);
    else if (check_version(command)) {
        command->file = argv[optind];
        return HW_VERB_FINE;
    }
    return HW_VERB_USAGE;
}

/* ---- output ---- */

static bool write_file(const struct command *command, const struct hw_llvm_bytes *bytes)
{
    struct hw_error error = {""};
    if (hw_file_write(command->output, command->force, bytes->data, bytes->used, &error))
        return true;
    hw_say("export: %s", error.message);
    return false;
}

static bool write_output(const struct command *command, const struct hw_llvm_bytes *bytes)
{
    if (command->output)
        return write_file(command, bytes);
    if (command->format->kind != YAML && isatty(STDOUT_FILENO)) {
        hw_say("export: %s is not for a terminal: -o OUT writes it to a file", command->format->name);
        return false;
    }
    if (hw_write_all(STDOUT_FILENO, bytes->data, bytes->used, -1))
        return true;
    hw_say("export: cannot write 'standard output': %s", strerror(errno));
    return false;
}

/* ---- what the format cannot hold ---- */

static void say_notes(const struct command *command, const struct hw_llvm_export *export, const struct hw_view *view)
{
    if (command->names.quiet)
        return;
    if (export->no_build_id)
        hw_say("export: the program has no build id (link it with -Wl,--build-id): llvm-profdata will not find it");
    if (export->no_debug_info)
        hw_say("export: no debug information was found for any module that was asked for: nothing can be named");
    if (export->left_out)
        hw_say("export: %s left out: no frame of theirs is known", HW_OF(export->left_out, "context"));
    if (hw_profile_counts_periods(view->profile))
        hw_say("export: made with --granule=4: blocks that were never used are written with 0 accesses; how often the "
               "others were, which words of them, and in how many periods, is left out");
    if (export->uncounted && hw_profile_counts_periods(view->profile) && !command->export.cold_after_ns)
        hw_say("export: no context that was used is written as cold (--cold-after decides by lifetime)");
    else if (export->uncounted && !command->export.cold_after_ns)
        hw_say("export: accesses were not counted: no context is written as cold (--cold-after decides by lifetime)");
    else if (export->uncounted)
        hw_say("export: accesses were not counted: %s of %s cold by lifetime alone", HW_COUNT(export->cold_by_time),
               HW_OF(export->profile.context_count, "context"));
    if (hw_view_sampled(view))
        hw_say("export: the profile was sampled: all counts are estimates");
}

/* ---- the verb ---- */

static bool export_view(struct command *command, const struct hw_view *view)
{
    struct hw_llvm_export export;
    struct hw_llvm_bytes bytes = {0};
    struct hw_error error = {""};
    const enum kind kind = command->format->kind;
    if (!(kind == RAW ? hw_llvm_export_raw : hw_llvm_export_frames)(&export, view, &command->export, &error)) {
        hw_say("%s", error.message);
        return false;
    }
    bool fine = kind == RAW    ? hw_llvm_raw_write(&export.profile, command->version, &bytes)
                : kind == YAML ? hw_llvm_yaml_write(&export.profile, &bytes)
                               : hw_llvm_indexed_write(&export.profile, command->version, &bytes);
    if (fine)
        say_notes(command, &export, view);
    else
        hw_say("export: not enough memory");
    fine = fine && write_output(command, &bytes);
    free(bytes.data);
    hw_llvm_export_free(&export);
    return fine;
}

static int export_file(struct command *command)
{
    struct hw_error error = {""};
    struct hw_profile *profile = hw_profile_read(command->file, &error);
    if (!profile) {
        hw_say("%s", error.message);
        return HW_VERB_USAGE;
    }
    int code = HW_VERB_FINE;
    for (size_t i = 0; i < profile->problem_count; i++) {
        hw_say("%s: %s", command->file, profile->problems[i]);
        code = HW_VERB_USAGE;
    }
    command->names.view.no_symbols = command->format->kind == RAW;
    struct hw_view *view = hw_view_new(profile, &command->names.view, &error);
    if (!view)
        hw_say("%s", error.message);
    if (!view || !export_view(command, view))
        code = HW_VERB_USAGE;
    hw_view_free(view);
    hw_profile_free(profile);
    return code;
}

int hw_verb_export(int argc, char **argv)
{
    struct command command = {.modules = calloc((size_t)argc + 1, sizeof *command.modules)};
    const bool memory = hw_view_arguments_init(&command.names, argc) && command.modules;
    int code = memory ? parse(&command, argc, argv) : HW_VERB_USAGE;
    if (!code)
        code = export_file(&command);
    free(command.modules);
    hw_view_arguments_free(&command.names);
    return code < 0 ? HW_VERB_FINE : code;
}
