/* verb_export.c - heapwise export: a profile in somebody else's format. */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/measure_keys.h"
#include "cli/view_options.h"
#include "profile/container/write.h"
#include "report/export/export.h"
#include "report/text/human.h"
#include "report/export/llvm_export.h"
#include "report/export/symbol_order.h"
#include "report/words/selection.h"

static const char help[] = "Usage: heapwise export --format FORMAT [OPTION]... FILE\n"
                           "Write a profile in a format of other tools, to standard output.\n"
                           "\n"
                           "  --format FORMAT  what to write, one of\n"
#define HW_FORMAT(name, about, ...) "                   " name ": " about "\n"
#include "cli/export_formats.def"
                           "  --value KEY      of collapsed: what is written; of pprof and speedscope: what\n"
                           "                   is shown first (default: peak). KEY is one of\n"
                           "{measures}\n"
                           "  --version N      of memprofraw: 3, 4 or 5 (default); of profdata and\n"
                           "                   memprof-yaml: 3 or 4 (default); variables need 4\n"
                           "  -o, --output OUT write to OUT, which must not exist\n"
                           "  -f, --force      overwrite OUT\n"
                           "  --module NAME    of memprof-yaml, profdata and symbol-order: keep only frames\n"
                           "                   and variables of the program or library NAME (a file name\n"
                           "                   or a path); may be repeated. Default: the program\n"
                           "                   (symbol-order), or it and the libraries that are not the\n"
                           "                   system's\n"
                           "  --cold-after S   of LLVM's formats, where accesses were not counted: mark\n"
                           "                   blocks as cold that live S seconds or longer on average\n"
                           "                   (default: mark none, since they may have been used)\n" HW_STACK_OPTIONS_HELP
                           "  -q, --quiet      no notes about what the format cannot hold\n"
                           "  -h, --help       this text\n"
                           "\n"
                           "Exit code: 0, or 2 for wrong usage and for files that are damaged or not\n"
                           "profiles.\n";

enum kind { RAW, YAML, INDEXED, ORDER, OTHER }; /* of LLVM's, for linkers, or of anybody else's */

#define IS_LLVM(format) ((format)->kind <= INDEXED)

static const struct format {
    const char *name;
    enum kind kind;
    uint32_t oldest, newest; /* versions; 0: there are none */
    hw_export_format *make;  /* of OTHER */
    bool text;               /* fit for a terminal */
    bool value;              /* takes --value */
    bool whole;              /* has allocation wrappers, too, and marks the frame that names a stack */
    const char *note;        /* what it cannot hold */
} formats[] = {
#define HW_FORMAT(name_, about, ...) {.name = name_, __VA_ARGS__},
#include "cli/export_formats.def"
};

#define FORMATS (sizeof formats / sizeof *formats)

static const char format_names[] =
#define HW_FORMAT(name, ...) ", " name
#include "cli/export_formats.def"
    ;

struct command {
    const struct format *format;
    uint32_t version;
    const char *output, *file;
    enum hw_measure_id value; /* HW_MEASURES: not asked for */
    const char *of_llvm;      /* an option that was given and only LLVM's formats (--module: and symbol-order) take */
    const char **modules;
    struct hw_llvm_export_options export;
    struct hw_view_arguments names;
    bool force;
};

/* ---- the command line ---- */

static bool take_format(void *closure, const char *value, const struct hw_option *option)
{
    struct command *command = closure;
    for (size_t i = 0; i < FORMATS; i++)
        if (!strcmp(formats[i].name, value))
            command->format = &formats[i];
    return (command->format && !strcmp(command->format->name, value)) ||
           hw_option_unknown(option, value, format_names + 2);
}

static bool take_version(void *closure, const char *value, const struct hw_option *option)
{
    struct command *command = closure;
    uint64_t version;
    if (!hw_parse_number(value, 1, UINT32_MAX, &version))
        return hw_option_unknown(option, value, "3, 4, 5");
    command->version = (uint32_t)version;
    return true;
}

static bool take_cold_after(void *closure, const char *value, const struct hw_option *option)
{
    struct command *command = closure;
    char *end;
    errno = 0;
    const double seconds = strtod(value, &end);
    if (errno || end == value || *end || !(seconds > 0) || seconds > 1e9)
        return hw_option_needs(option, value, "a number of seconds above 0");
    command->of_llvm = "--cold-after";
    command->export.cold_after_ns = (uint64_t)(seconds * 1e9);
    return true;
}

static bool take_value(void *closure, const char *value, const struct hw_option *option)
{
    struct command *command = closure;
    char keys[512];
    command->value = hw_take_measure("export", value);
    return command->value < HW_MEASURES || hw_option_unknown(option, value, hw_measure_keys(keys, sizeof keys));
}

static bool take_module(void *closure, const char *value, const struct hw_option *option)
{
    struct command *command = closure;
    command->of_llvm = "--module";
    command->modules[command->export.module_count++] = value; /* there are no more of them than arguments */
    return true;
}

static const struct hw_option verb_options[] = {
    HW_OPTION_CALL("format", 0, take_format),
    HW_OPTION_CALL("value", 0, take_value),
    HW_OPTION_CALL("version", 0, take_version),
    HW_OPTION_OUTPUT("output", 'o', struct command, output),
    HW_OPTION_FLAG("force", 'f', struct command, force),
    HW_OPTION_CALL("module", 0, take_module),
    HW_OPTION_CALL("cold-after", 0, take_cold_after),
    HW_STACK_OPTIONS(struct command, names),
    HW_VIEW_OPTIONS(struct command, names),
    {0},
};

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

/* Options that would have no effect are mistakes. */
static bool check_options(const struct command *command)
{
    const struct format *format = command->format;
    if (command->value < HW_MEASURES && !format->value)
        hw_say(format->kind == OTHER ? "export: %s has all values: --value is of no use"
                                     : "export: --value is not for %s",
               format->name);
    else if (command->of_llvm && !IS_LLVM(format) && !(format->kind == ORDER && !command->export.cold_after_ns))
        hw_say("export: %s is not for %s", command->of_llvm, format->name);
    else
        return true;
    return false;
}

/* LLVM's formats have the stacks as the compiler knows them: their frames stay. */
static int set_stacks(struct command *command)
{
    struct hw_view_options *view = &command->names.view;
    const bool llvm = IS_LLVM(command->format);
    if (llvm && command->names.rules.of[HW_RULE_HIDE]) {
        hw_say("export: --hide is not for %s", command->format->name);
        return HW_VERB_USAGE;
    }
    view->keep_frames = llvm;
    view->cut_wrappers = !llvm && !command->format->whole;
    return hw_view_arguments_read_rules(&command->names);
}

/* HW_VERB_FINE to go on, HW_VERB_USAGE, or -1 when help was printed. */
static int parse(struct command *command, int argc, char **argv)
{
    const int code = hw_options_take(verb_options, false, hw_help_with_keys(help), argc, argv, command);
    if (code)
        return code;
    command->export.modules = command->modules;
    if (!command->format)
        hw_say("export: which --format? (%s)", format_names + 2);
    else if (argc - optind != 1)
        hw_say(argc == optind ? "export: which FILE? (see heapwise export --help)"
                              : "export: one FILE at a time, not %d",
               argc - optind);
    else if (check_version(command) && check_options(command)) {
        command->file = argv[optind];
        return set_stacks(command);
    }
    return HW_VERB_USAGE;
}

/* ---- output ---- */

static bool is_for_terminal(const struct command *command)
{
    if (command->output || command->format->text || !isatty(STDOUT_FILENO))
        return true;
    hw_say("export: %s is not for a terminal: -o OUT writes it to a file", command->format->name);
    return false;
}

static bool write_output(const struct command *command, const void *bytes, size_t size)
{
    struct hw_error error = {""};
    if (command->output) {
        if (hw_file_write(command->output, command->force, bytes, size, &error))
            return true;
        hw_say("export: %s", error.message);
        return false;
    }
    if (hw_write_all(STDOUT_FILENO, bytes, size, -1))
        return true;
    hw_say("export: cannot write 'standard output': %s", strerror(errno));
    return false;
}

/* ---- what the format cannot hold ---- */

static void say_lines(struct hw_buffer *sentences)
{
    for (char *at = sentences->data, *end; at && (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        hw_say("export: %s", at);
    }
    hw_buffer_free(sentences);
}

/* What rules leave out, and wrappers that no name shows. */
static void say_selection(const struct hw_view *view)
{
    struct hw_buffer sentences = {0};
    hw_selection(view, &sentences);
    say_lines(&sentences);
}

static void say_llvm_notes(const struct command *command, const struct hw_llvm_export *export,
                           const struct hw_view *view)
{
    if (command->names.quiet)
        return;
    say_selection(view);
    if (export->no_build_id)
        hw_say("export: the program has no build id (link it with -Wl,--build-id): llvm-profdata will not find it");
    if (export->no_debug_info)
        hw_say("export: no selected module has debug information, or no module has that name: the output has no "
               "contexts");
    if (export->left_out)
        hw_say("export: %s left out: none of their frames is known", HW_OF(export->left_out, "context"));
    if (hw_profile_counts_periods(view->profile))
        hw_say("export: made with --granule=4: blocks that were never used are written with 0 accesses; for the others "
               "words, periods and numbers of accesses are left out");
    if (export->uncounted && hw_profile_counts_periods(view->profile) && !command->export.cold_after_ns)
        hw_say("export: no context that was used is written as cold (--cold-after decides by lifetime)");
    else if (export->uncounted && !command->export.cold_after_ns)
        hw_say("export: accesses were not counted: no context is written as cold (--cold-after decides by lifetime)");
    else if (export->uncounted)
        hw_say("export: accesses were not counted: %s of %s cold by lifetime alone", HW_COUNT(export->cold_by_time),
               HW_OF(export->profile.context_count, "context"));
    if (hw_view_sampled(view))
        hw_say("export: the profile was sampled: all counts are estimates");
    if (export->variables.known && command->version >= 4) {
        struct hw_buffer sentences = {0};
        hw_variables_notes(&export->variables, &sentences);
        say_lines(&sentences);
    }
    if (view->profile->observed)
        hw_say("export: times of operations of the allocator, and everything else observed of it, are left out");
}

/* ---- the verb ---- */

/* What readers of the output must know; formats with room for it contain it, too. */
static void say_notes(const struct command *command, const struct hw_view *view)
{
    if (command->names.quiet)
        return;
    say_selection(view);
    if (command->format->note)
        hw_say("export: %s", command->format->note);
    if (hw_view_sampled(view))
        hw_say("export: the profile was sampled: all counts are estimates, scaled up already");
}

static bool export_other(const struct command *command, const struct hw_view *view)
{
    const struct hw_export_options what = {.value = command->value, .version = HEAPWISE_VERSION};
    struct hw_buffer out = {0};
    struct hw_error error = {""};
    const char *unknown = command->value < HW_MEASURES ? hw_measure_unknown(view, command->value) : NULL;
    if (unknown) {
        hw_say("export: %s: there is no --value %s: %s", command->file, hw_measures[command->value].key, unknown);
        return false;
    }
    bool fine = command->format->make(view, &what, &out, &error);
    if (fine)
        say_notes(command, view);
    else
        hw_say("export: %s", error.message);
    fine = fine && write_output(command, hw_buffer_text(&out), out.used);
    hw_buffer_free(&out);
    return fine;
}

static bool export_llvm(const struct command *command, const struct hw_view *view)
{
    struct hw_llvm_export export;
    struct hw_llvm_bytes bytes = {0};
    struct hw_error error = {""};
    const enum kind kind = command->format->kind;
    if (!(kind == RAW ? hw_llvm_export_raw : hw_llvm_export_frames)(&export, view, &command->export, &error)) {
        hw_say("export: %s", error.message);
        return false;
    }
    bool fine = kind == RAW    ? hw_llvm_raw_write(&export.profile, command->version, &bytes)
                : kind == YAML ? hw_llvm_yaml_write(&export.profile, command->version, &bytes)
                               : hw_llvm_indexed_write(&export.profile, command->version, &bytes);
    if (fine)
        say_llvm_notes(command, &export, view);
    else
        hw_say("export: not enough memory");
    fine = fine && write_output(command, bytes.data, bytes.used);
    free(bytes.data);
    hw_llvm_export_free(&export);
    return fine;
}

static bool export_order(const struct command *command, const struct hw_view *view)
{
    struct hw_buffer out = {0}, notes = {0};
    struct hw_error error = {""};
    bool fine =
        hw_export_symbol_order(view, command->export.modules, command->export.module_count, &out, &notes, &error);
    if (!fine)
        hw_say("export: %s", error.message);
    else if (!command->names.quiet)
        say_lines(&notes);
    fine = fine && write_output(command, hw_buffer_text(&out), out.used);
    hw_buffer_free(&out);
    hw_buffer_free(&notes);
    return fine;
}

static int export_file(struct command *command)
{
    struct hw_error error = {""};
    if (!is_for_terminal(command))
        return HW_VERB_USAGE;
    hw_view_arguments_show_progress(&command->names);
    struct hw_profile *profile = hw_profile_read(command->file, &error);
    if (!profile) {
        hw_say("export: %s", error.message);
        return HW_VERB_USAGE;
    }
    int code = HW_VERB_FINE;
    for (size_t i = 0; i < profile->problem_count; i++) {
        hw_say("export: %s: %s", command->file, profile->problems[i]);
        code = HW_VERB_USAGE;
    }
    hw_say_contradictions(profile, command->file);
    const struct hw_rules *rules = command->names.view.rules;
    command->names.view.no_symbols =
        command->format->kind == RAW && !(rules && (rules->of[HW_RULE_IGNORE] || rules->of[HW_RULE_FOCUS]));
    struct hw_view *view = hw_view_new(profile, &command->names.view, &error);
    if (!view)
        hw_say("export: %s", error.message);
    hw_view_arguments_clear_progress(&command->names);
    if (!view || !(IS_LLVM(command->format)         ? export_llvm
                   : command->format->kind == ORDER ? export_order
                                                    : export_other)(command, view))
        code = HW_VERB_USAGE;
    hw_view_free(view);
    hw_profile_free(profile);
    return code;
}

int hw_verb_export(int argc, char **argv)
{
    struct command command = {.value = HW_MEASURES, .modules = calloc((size_t)argc + 1, sizeof *command.modules)};
    const bool memory = hw_view_arguments_init(&command.names, argc, argv) && command.modules;
    if (!command.modules)
        hw_say("export: not enough memory");
    int code = memory ? parse(&command, argc, argv) : HW_VERB_USAGE;
    if (!code)
        code = export_file(&command);
    free(command.modules);
    hw_view_arguments_free(&command.names);
    return code < 0 ? HW_VERB_FINE : code;
}
