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
#include "cli/options.h"

static const char help[] = "Usage: heapwise cc  [OPTION...] [COMPILER'S ARGUMENTS...]\n"
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
                           "      --fields               count accesses to the fields of structs; accesses\n"
                           "                             to blocks only if --granule is given, too\n"
                           "      --profile-output=NAME  where its programs write their profiles: a folder\n"
                           "                             or a pattern as that of heapwise record -o\n"
                           "      --ignore-list=FILE     a list of functions and sources not to count\n"
                           "      --no-consolidate       count each access on its own, which is slower\n"
                           "      --compiler=PROGRAM     the compiler: a clang with a plugin of Heapwise, or\n"
                           "                             gcc (default: the newest such clang)\n"
                           "      --verbose              show the command; the compiler shows its own\n"
                           "  -h, --help                 this text (-h: as the only argument)\n"
                           "\n"
                           "All other arguments go to the compiler unchanged. HEAPWISE_CC and HEAPWISE_CXX\n"
                           "choose the compiler as well.\n"
                           "\n"
                           "Exits with the compiler's code; 1 when Heapwise cannot build this, 2 for wrong\n"
                           "usage, 126 when the compiler cannot be executed, 127 when there is none.\n";

/* ---- own options ---- */

#define UNSAID 1u /* a granule that there is not */

static bool take_granule(void *granule, const char *value, const struct hw_option *option)
{
    uint64_t number;
    if (!hw_parse_number(value, 1, 64, &number) || (number != 64 && number != 8 && number != 4))
        return hw_option_unknown(option, value, "64, 8, 4");
    *(unsigned *)granule = (unsigned)number;
    return true;
}

static bool take_some_text(void *text, const char *value, const struct hw_option *option)
{
    *(const char **)text = value;
    if (*value)
        return true;
    return hw_option_needs(option, value, "a value");
}

static bool take_ignore_list(void *path, const char *value, const struct hw_option *option)
{
    if (!take_some_text(path, value, option))
        return false;
    if (access(value, R_OK) == 0)
        return true;
    return hw_option_needs(option, value, "a file that can be read (%s)", strerror(errno));
}

static const struct hw_option own_options[] = {
    HW_OPTION_KEPT("granule", 0, take_granule, unsigned, struct hw_cc_options, granule),
    HW_OPTION_KEPT("profile-output", 0, take_some_text, const char *, struct hw_cc_options, output),
    HW_OPTION_KEPT("ignore-list", 0, take_ignore_list, const char *, struct hw_cc_options, ignore_list),
    HW_OPTION_KEPT("compiler", 0, take_some_text, const char *, struct hw_cc_options, compiler),
    HW_OPTION_FLAG("no-consolidate", 0, struct hw_cc_options, no_consolidate),
    HW_OPTION_FLAG("fields", 0, struct hw_cc_options, fields),
    {0},
};

/* The option that WORD is, alone or as --NAME=VALUE; NULL: none of ours. *VALUE: what is behind the "=", or NULL. */
static const struct hw_option *find_own(const char *word, const char **value)
{
    if (strncmp(word, "--", 2))
        return NULL;
    for (const struct hw_option *option = own_options; option->name; option++) {
        const char *end = word + 2 + strlen(option->name);
        if (strncmp(word + 2, option->name, strlen(option->name)))
            continue;
        *value = option->value && *end == '=' ? end + 1 : NULL;
        if (!*end || *value)
            return option;
    }
    return NULL;
}

/* Takes our own options out of ARGV; what stays is *REST. Returns -1 to go on, or the exit code. */
static int read_options(struct hw_cc_options *options, char **argv, char **rest)
{
    size_t used = 0;
    for (size_t i = 0; argv[i];) {
        const char *value = NULL;
        const struct hw_option *own = find_own(argv[i], &value);
        if (strcmp(argv[i], "--") == 0) {
            while (argv[i])
                rest[used++] = argv[i++];
            break;
        }
        const bool help_alone = i == 0 && !argv[1] && strcmp(argv[i], "-h") == 0; /* else it may be the linker's */
        if (help_alone || strcmp(argv[i], "--help") == 0) {
            fputs(help, stdout);
            return HW_VERB_FINE;
        }
        options->verbose |= strcmp(argv[i], "--verbose") == 0; /* the compilers' word for -v, too: it stays */
        if (own) {
            if (own->value && !value)
                value = argv[i + 1] ? argv[++i] : "";
            if (!own->take((char *)options + own->at, value, own))
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
    hw_say("%s: %s: %s", request->cplusplus ? "c++" : "cc", command->words[0], strerror(problem));
    return problem == ENOENT ? HW_VERB_NOT_FOUND : HW_VERB_NOT_EXECUTABLE;
}

int hw_verb_cc(int argc, char **argv)
{
    struct hw_cc_request request = {.cplusplus = strcmp(argv[0], "c++") == 0, .options.granule = UNSAID};
    struct hw_cc_command command = {0};
    struct hw_error error = {""};
    char **rest = calloc((size_t)argc + 1, sizeof *rest);
    if (!rest) {
        hw_say("%s: not enough memory", argv[0]);
        return HW_VERB_NEGATIVE;
    }
    request.rest = rest;
    hw_options_of(argv[0]);
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
