/* verb_cc.c - heapwise cc and heapwise c++: compilers whose programs count their accesses to memory.
 *
 * Reads its own options out of the command line, lets cc_arguments.c find out what the rest asks for, cc_compiler.c
 * find a compiler and cc_command.c make the command, and becomes the compiler: its output and its exit code are all
 * that a build sees. */
#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cc_command.h"

static void print_usage(FILE *out)
{
    fputs("Usage: heapwise cc  [OPTION...] [COMPILER'S ARGUMENTS...]\n"
          "       heapwise c++ [OPTION...] [COMPILER'S ARGUMENTS...]\n"
          "\n"
          "Compiles and links like clang. The programs and libraries count every access to\n"
          "the heap and to global variables. When they run they write a profile; read it\n"
          "with heapwise report. In builds:\n"
          "\n"
          "    CC=\"heapwise cc\" CXX=\"heapwise c++\" ./configure    or cmake, or make\n"
          "\n"
          "      --granule=64|8|4       bytes per counter (default 64); 8 shows which parts\n"
          "                             of a block are used; 4 shows which 4-byte words are\n"
          "                             used and when, but not how often. All parts of a\n"
          "                             program need the same\n"
          "      --fields               count accesses to the fields of structs; accesses to\n"
          "                             blocks only if --granule is given, too\n"
          "      --profile-output=NAME  where its programs write their profiles: a folder\n"
          "                             or a pattern as that of heapwise record -o\n"
          "      --ignore-list=FILE     a list of functions and sources not to count\n"
          "      --no-consolidate       count each access on its own, which is slower\n"
          "      --compiler=PROGRAM     the compiler: a clang with a plugin of Heapwise, or\n"
          "                             gcc (default: the newest such clang)\n"
          "      --verbose              show the command; the compiler shows its own\n"
          "      --help                 this text\n"
          "\n"
          "All other arguments go to the compiler unchanged. HEAPWISE_CC and HEAPWISE_CXX\n"
          "choose the compiler as well.\n"
          "\n"
          "Exits with the compiler's code; 1 when Heapwise cannot build this, 2 for wrong\n"
          "usage, 126 when the compiler cannot be executed, 127 when there is none.\n",
          out);
}

/* ---- own options ---- */

#define UNSAID 1u /* a granule that there is not */

static bool take_granule(struct hw_cc_options *options, const char *value)
{
    uint64_t granule;
    if (!hw_parse_number(value, 1, 64, &granule) || (granule != 64 && granule != 8 && granule != 4)) {
        hw_say("--granule=%s: 64, 8 or 4 is needed", value);
        return false;
    }
    options->granule = (unsigned)granule;
    return true;
}

static bool take_text(const char **place, const char *option, const char *value)
{
    *place = value;
    if (*value)
        return true;
    hw_say("%s: a value is needed", option);
    return false;
}

static bool take_compiler(struct hw_cc_options *options, const char *value)
{
    return take_text(&options->compiler, "--compiler", value);
}

static bool take_output(struct hw_cc_options *options, const char *value)
{
    return take_text(&options->output, "--profile-output", value);
}

static bool take_ignore_list(struct hw_cc_options *options, const char *value)
{
    if (!take_text(&options->ignore_list, "--ignore-list", value))
        return false;
    if (access(value, R_OK) == 0)
        return true;
    hw_say("--ignore-list=%s: %s", value, strerror(errno));
    return false;
}

static bool take_no_consolidate(struct hw_cc_options *options, const char *value)
{
    return options->no_consolidate = true;
}

static bool take_fields(struct hw_cc_options *options, const char *value)
{
    return options->fields = true;
}

static const struct own_option {
    const char *name;
    bool has_value;
    bool (*take)(struct hw_cc_options *options, const char *value);
} own_options[] = {
    {"--granule", true, take_granule},
    {"--profile-output", true, take_output},
    {"--ignore-list", true, take_ignore_list},
    {"--compiler", true, take_compiler},
    {"--no-consolidate", false, take_no_consolidate},
    {"--fields", false, take_fields},
};

/* Is WORD this option, alone or as NAME=VALUE? *VALUE: what is behind the "=", or NULL. */
static bool is_own(const struct own_option *option, const char *word, const char **value)
{
    size_t length = strlen(option->name);
    if (strncmp(word, option->name, length) != 0)
        return false;
    *value = option->has_value && word[length] == '=' ? word + length + 1 : NULL;
    return word[length] == '\0' || *value;
}

static const struct own_option *find_own(const char *word, const char **value)
{
    for (size_t i = 0; i < sizeof own_options / sizeof own_options[0]; i++) {
        if (is_own(&own_options[i], word, value))
            return &own_options[i];
    }
    return NULL;
}

/* Takes our own options out of ARGV; what stays is *REST. Returns -1 to go on, or the exit code. */
static int read_options(struct hw_cc_options *options, char **argv, char **rest)
{
    size_t used = 0;
    for (size_t i = 0; argv[i];) {
        const char *value = NULL;
        const struct own_option *own = find_own(argv[i], &value);
        if (strcmp(argv[i], "--") == 0) {
            while (argv[i])
                rest[used++] = argv[i++];
            break;
        }
        if (strcmp(argv[i], "--help") == 0) {
            print_usage(stdout);
            return HW_VERB_FINE;
        }
        options->verbose |= strcmp(argv[i], "--verbose") == 0; /* the compilers' word for -v, too: it stays */
        if (own) {
            if (own->has_value && !value)
                value = argv[i + 1] ? argv[++i] : "";
            if (!own->take(options, value))
                return HW_VERB_USAGE;
            i++;
        } else {
            bool pair = hw_cc_takes_value(argv[i]) && argv[i + 1]; /* the value of another option is none of ours */
            rest[used++] = argv[i++];
            if (pair)
                rest[used++] = argv[i++];
        }
    }
    rest[used] = NULL;
    return -1;
}

/* ---- the compiler ---- */

/* As it could be given to a shell. */
static void show(const struct hw_cc_command *command)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
    for (size_t i = 0; i < command->count; i++) {
        const char *word = command->words[i];
        bool quoted = !*word || word[strspn(word, plain)];
        fputs(i ? " " : "", stderr);
        fputs(quoted ? "'" : "", stderr);
        for (; *word; word++)
            fputs(*word == '\'' ? "'\\''" : (char[]){*word, '\0'}, stderr);
        fputs(quoted ? "'" : "", stderr);
    }
    fputc('\n', stderr);
    fflush(stderr);
}

static const char *chosen_compiler(const struct hw_cc_request *request)
{
    const char *chosen = request->options.compiler;
    if (!chosen)
        chosen = getenv(request->cplusplus ? "HEAPWISE_CXX" : "HEAPWISE_CC");
    return chosen && *chosen ? chosen : NULL;
}

/* Finds and checks everything. Returns 0 with COMMAND, or the exit code with ERROR. */
static int prepare(struct hw_cc_request *request, struct hw_cc_command *command, struct hw_error *error)
{
    char runtime[PATH_MAX];
    if (!hw_cc_arguments_read(&request->arguments, request->rest, error))
        return HW_VERB_NEGATIVE;
    int code = hw_cc_compiler_find(&request->compiler, chosen_compiler(request), request->cplusplus, error);
    if (code)
        return code;
    if (!hw_cc_acceptable(request, error) || !hw_find_runtime(runtime, sizeof runtime, error) ||
        !hw_cc_command_make(command, request, runtime, error))
        return HW_VERB_NEGATIVE;
    return 0;
}

static int become(const struct hw_cc_request *request, const struct hw_cc_command *command)
{
    if (request->options.verbose)
        show(command);
    execv(command->words[0], command->words);
    int problem = errno;
    hw_say("%s: %s", command->words[0], strerror(problem));
    return problem == ENOENT ? HW_VERB_NOT_FOUND : HW_VERB_NOT_EXECUTABLE;
}

int hw_verb_cc(int argc, char **argv)
{
    struct hw_cc_request request = {.cplusplus = strcmp(argv[0], "c++") == 0, .options.granule = UNSAID};
    struct hw_cc_command command = {0};
    struct hw_error error = {""};
    char **rest = calloc((size_t)argc + 1, sizeof *rest);
    if (!rest) {
        hw_say("no memory");
        return HW_VERB_NEGATIVE;
    }
    request.rest = rest;
    int code = read_options(&request.options, argv + 1, rest);
    if (request.options.granule == UNSAID)
        request.options.granule = request.options.fields ? 0 : 64;
    if (code < 0) {
        code = prepare(&request, &command, &error);
        if (code)
            hw_say("%s: %s", request.cplusplus ? "c++" : "cc", error.message);
        else
            code = become(&request, &command);
    }
    hw_cc_command_free(&command);
    free(rest);
    return code;
}
