/* cc_command.c - see cc_command.h.
 *
 * Order matters. What the user's own words may override or add to comes in front of them; what must hold whatever they
 * say comes behind. The runtime is the first input of the linker: the dynamic linker then finds its malloc before the C
 * library's, and its operators before those of libstdc++. */
#include "cli/cc_command.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/growing.h"
#include "cli/cli.h"

#define GCC_SPECS        HEAPWISE_DATADIR "/gcc.specs"
#define GCC_HEADER       HEAPWISE_DATADIR "/gcc.h"
#define GCC_OUTPUT       HEAPWISE_DATADIR "/gcc_output.h"
#define FIRST_WITH_TYPES 22 /* the first clang that gives the types of blocks */

/* ---- what cannot be ---- */

static const char *first_sanitizer(unsigned sanitizers)
{
    for (size_t i = 0; hw_cc_sanitizers[i]; i++) {
        if (sanitizers & 1u << i)
            return hw_cc_sanitizers[i];
    }
    return NULL;
}

bool hw_cc_acceptable(const struct hw_cc_request *request, struct hw_error *error)
{
    const struct hw_cc_arguments *arguments = &request->arguments;
    if (arguments->stage <= HW_CC_STAGE_CHECK || arguments->sources + arguments->link_inputs == 0)
        return true; /* no code comes of it */
    bool links = arguments->stage == HW_CC_STAGE_LINK && arguments->link_inputs > 0;
    const char *sanitizer = first_sanitizer(arguments->sanitizers);
    if (arguments->offload)
        hw_error_set(error, "CUDA and HIP cannot be counted: compile such files with the compiler itself");
    else if (arguments->other_machine)
        hw_error_set(error, "accesses can be counted on 64-bit x86 Linux only: not with -m32 or for another --target");
    else if (arguments->memory_profile)
        hw_error_set(error,
                     "-fmemory-profile counts accesses itself: leave it out (objects that were compiled with it "
                     "can be linked by heapwise %s)",
                     request->cplusplus ? "c++" : "cc");
    else if (sanitizer)
        hw_error_set(error, "-fsanitize=%s and Heapwise both replace malloc: a program can have only one of them",
                     sanitizer);
    else if (links && arguments->fixed_static)
        hw_error_set(error,
                     "accesses cannot be counted in statically linked programs: link without -static and -static-pie "
                     "(-static-libgcc and -static-libstdc++ are fine)");
    else if (request->compiler.kind == HW_CC_GCC && request->options.no_consolidate)
        hw_error_set(error, "--no-consolidate is for clang: with gcc every access is counted by a call");
    else if (request->compiler.kind == HW_CC_GCC && request->options.fields)
        hw_error_set(error, "--fields is for clang: gcc does not say which fields are accessed");
    else if (request->compiler.kind == HW_CC_GCC && request->options.ignore_list)
        hw_error_set(error, "--ignore-list is for clang: with gcc, mark functions with HEAPWISE_NO_COUNT");
    else
        return true;
    return false;
}

/* ---- words ---- */

/* Once memory has run out the list stays as it is, with COUNT set to what it should be: see hw_cc_command_make. */
__attribute__((format(printf, 2, 3))) static void add(struct hw_cc_command *command, const char *format, ...)
{
    size_t index = command->count++;
    const size_t known = command->room;
    if (!HW_GROW(command->words, command->room, command->count + 1))
        return;
    memset(command->words + known, 0, (command->room - known) * sizeof *command->words);
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&command->words[index], format, arguments) < 0)
        command->words[index] = NULL;
    va_end(arguments);
}

static void add_all(struct hw_cc_command *command, const char *const *words)
{
    for (; *words; words++)
        add(command, "%s", *words);
}

void hw_cc_command_free(struct hw_cc_command *command)
{
    for (size_t i = 0; i < command->room; i++)
        free(command->words[i]);
    free(command->words);
    *command = (struct hw_cc_command){0};
}

/* ---- compiling ---- */

/* An argument of clang's that neither its linker nor its assembler must see. */
static void add_for_clang(struct hw_cc_command *command, const char *word)
{
    add(command, "-Xclang");
    add(command, "%s", word);
}

static void add_pass_option(struct hw_cc_command *command, const char *name, const char *value)
{
    add_for_clang(command, "-mllvm");
    add(command, "-Xclang");
    add(command, "-heapwise-%s%s%s", name, value ? "=" : "", value ? value : "");
}

/* The pattern of the profile's name; a directory means the usual name in it. To be freed. */
static char *output_pattern(const char *given)
{
    struct stat status;
    size_t length = strlen(given);
    bool slash = length > 0 && given[length - 1] == '/';
    bool folder = slash || (stat(given, &status) == 0 && S_ISDIR(status.st_mode));
    char *pattern;
    return asprintf(&pattern, "%s%s%s", given, folder && !slash ? "/" : "", folder ? "%e.%p.hwprof" : "") < 0 ? NULL
                                                                                                              : pattern;
}

static void add_pass(struct hw_cc_command *command, const struct hw_cc_request *request)
{
    const struct hw_cc_options *options = &request->options;
    char granule[16];
    snprintf(granule, sizeof granule, "%u", options->granule);
    add(command, "-fplugin=%s", request->compiler.plugin); /* before the pass is run: for its options to be known */
    add(command, "-fpass-plugin=%s", request->compiler.plugin);
    add_pass_option(command, "granule", granule);
    if (options->fields)
        add_pass_option(command, "fields", NULL);
    if (options->no_consolidate)
        add_pass_option(command, "no-consolidate", NULL);
    if (options->ignore_list)
        add_pass_option(command, "ignore-list", options->ignore_list);
    if (options->output) {
        char *pattern = output_pattern(options->output);
        add_pass_option(command, "output", pattern ? pattern : "");
        free(pattern);
    }
    if (request->compiler.version >= FIRST_WITH_TYPES) /* past the driver, which would want a library for it */
        add_for_clang(command, "-fsanitize=alloc-token");
}

static const char *const frame_flags[] = {"-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer",
                                          "-fno-optimize-sibling-calls", NULL};

/* Behind the user's words. */
static void add_compiling_clang(struct hw_cc_command *command, const struct hw_cc_request *request)
{
    add(command, "--start-no-unused-arguments");
    add_pass(command, request);
    add_all(command, frame_flags);
    if (request->options.fields) { /* names and layouts of types, also of those that the file only refers to */
        add(command, "-g");
        add(command, "-fstandalone-debug");
    } else if (!request->arguments.debug)
        add(command, "-gline-tables-only");
    add(command, "--end-no-unused-arguments");
}

/* What our files give gcc. */
struct gcc_parts {
    char specs[PATH_MAX], header[PATH_MAX], output[PATH_MAX];
};

/* A macro whose value is a string. */
static void add_text_macro(struct hw_cc_command *command, const char *name, const char *text)
{
    char *literal = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&literal, &size);
    if (!out)
        return;
    for (; *text; text++)
        fprintf(out, strchr("\\\"", *text) ? "\\%c" : "%c", *text);
    if (fclose(out) == 0 && literal)
        add(command, "-D%s=\"%s\"", name, literal);
    free(literal);
}

/* Before the user's words: our headers are to be the first. */
static void add_preprocessing_gcc(struct hw_cc_command *command, const struct hw_cc_request *request,
                                  const struct gcc_parts *parts)
{
    const struct hw_cc_options *options = &request->options;
    if (options->granule != 64)
        add(command, "-DHEAPWISE_GRANULE=%u", options->granule);
    add(command, "-include");
    add(command, "%s", parts->header);
    if (options->output) {
        char *pattern = output_pattern(options->output);
        add_text_macro(command, "HEAPWISE_OUTPUT", pattern ? pattern : "");
        free(pattern);
        add(command, "-include");
        add(command, "%s", parts->output);
    }
}

/* The specs give only cc1 the option: the driver would link with libtsan. */
static void add_compiling_gcc(struct hw_cc_command *command, const struct hw_cc_request *request,
                              const struct gcc_parts *parts)
{
    add(command, "-specs=%s", parts->specs);
    add_all(command, frame_flags);
    if (!request->arguments.debug)
        add(command, "-g1");
    if (request->arguments.link_time_code)
        add(command, "-fno-lto"); /* cc1 counts, lto1 would not */
}

/* ---- linking ---- */

static void add_linking(struct hw_cc_command *command, const struct hw_cc_request *request, const char *runtime)
{
    add(command, "-Wl,--push-state,--no-as-needed");
    add(command, "%s", runtime);
    add(command, "-Wl,--pop-state");
    add(command, "-Xlinker");
    add(command, "-rpath");
    add(command, "-Xlinker");
    add(command, "%.*s", (int)(strrchr(runtime, '/') - runtime), runtime);
    if (!request->arguments.build_id)
        add(command, "-Wl,--build-id");
}

/* ---- all of it ---- */

static bool find_part(char path[PATH_MAX], const char *relative, struct hw_error *error)
{
    if (hw_installed_path(path, PATH_MAX, relative) && access(path, R_OK) == 0)
        return true;
    hw_error_set(error, "%s: not there; is the installation complete?", *path ? path : relative);
    return false;
}

static bool is_complete(const struct hw_cc_command *command)
{
    if (command->count >= command->room)
        return false;
    for (size_t i = 0; i < command->count; i++) {
        if (!command->words[i])
            return false;
    }
    return true;
}

bool hw_cc_command_make(struct hw_cc_command *command, const struct hw_cc_request *request, const char *runtime,
                        struct hw_error *error)
{
    const struct hw_cc_arguments *arguments = &request->arguments;
    const bool gcc = request->compiler.kind == HW_CC_GCC;
    const bool compiles = !arguments->asks && arguments->sources > 0 && arguments->stage > HW_CC_STAGE_PREPROCESS;
    const bool preprocesses = !arguments->asks && arguments->sources > 0;
    const bool links = !arguments->asks && arguments->link_inputs > 0 && arguments->stage == HW_CC_STAGE_LINK;
    struct gcc_parts parts;
    *command = (struct hw_cc_command){0};
    if (gcc && preprocesses &&
        (!find_part(parts.specs, GCC_SPECS, error) || !find_part(parts.header, GCC_HEADER, error) ||
         !find_part(parts.output, GCC_OUTPUT, error)))
        return false;

    add(command, "%s", request->compiler.path);
    if (request->compiler.must_be_told)
        add(command, "--driver-mode=g++");
    if (links)
        add_linking(command, request, runtime);
    if (gcc && preprocesses)
        add_preprocessing_gcc(command, request, &parts);
    size_t end = arguments->unsure_end ? 0 : arguments->options_end;
    for (size_t i = 0; i < end; i++)
        add(command, "%s", request->rest[i]);
    if (compiles && gcc)
        add_compiling_gcc(command, request, &parts);
    else if (compiles)
        add_compiling_clang(command, request);
    for (size_t i = end; request->rest[i]; i++)
        add(command, "%s", request->rest[i]);
    if (is_complete(command))
        return true;
    hw_error_set(error, "no memory");
    return false;
}
