/* view_options.c - the options that verbs share which name what is in profiles. */
#include "cli/view_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

bool hw_view_arguments_init(struct hw_view_arguments *arguments, int argc)
{
    *arguments = (struct hw_view_arguments){.binaries = calloc((size_t)argc + 1, sizeof *arguments->binaries)};
    arguments->view.binaries = arguments->binaries;
    if (!arguments->binaries)
        hw_say("not enough memory");
    return arguments->binaries != NULL;
}

void hw_view_arguments_free(struct hw_view_arguments *arguments)
{
    free(arguments->binaries);
}

int hw_view_arguments_each(int argc, char **argv, const char *letters, const struct option *options,
                           int (*take)(void *command, int option, char **argv), void *command)
{
    optind = 0;
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, letters, options, NULL)) != -1;) {
        const int code = take(command, option, argv);
        if (code)
            return code;
    }
    return HW_VERB_FINE;
}

static int is_there(const char *verb, const char *option, const char *path)
{
    if (access(path, R_OK) == 0)
        return HW_VERB_FINE;
    hw_say("%s: %s %s: %s", verb, option, path, strerror(errno));
    return HW_VERB_USAGE;
}

int hw_view_arguments_take(struct hw_view_arguments *arguments, int option, char **argv, const char *help)
{
    switch (option) {
    case HW_OPTION_NO_DEBUGINFOD:
        arguments->view.symbolizer.no_debuginfod = true;
        return HW_VERB_FINE;
    case HW_OPTION_SYSROOT:
        arguments->view.symbolizer.sysroot = optarg;
        return is_there(argv[0], "--sysroot", optarg);
    case HW_OPTION_BINARY:
        if (is_there(argv[0], "--binary", optarg))
            return HW_VERB_USAGE;
        arguments->binaries[arguments->view.binary_count++] = optarg;
        return HW_VERB_FINE;
    case 'q':
        arguments->quiet = true;
        return HW_VERB_FINE;
    case 'h':
        fputs(help, stdout);
        return -1;
    case ':':
        hw_say("%s: %s needs a value", argv[0], argv[optind - 1]);
        return HW_VERB_USAGE;
    default:
        hw_say("%s: unknown option '%s' (see heapwise %s --help)", argv[0], argv[optind - 1], argv[0]);
        return HW_VERB_USAGE;
    }
}

static void show_progress(void *closure, size_t done, size_t total)
{
    (void)closure;
    fprintf(stderr, "\rResolving names: %zu %%", total ? done * 100 / total : 100);
    fflush(stderr);
}

void hw_view_arguments_show_progress(struct hw_view_arguments *arguments)
{
    if (!arguments->quiet && isatty(STDERR_FILENO))
        arguments->view.symbolizer.progress = show_progress;
}

void hw_view_arguments_clear_progress(const struct hw_view_arguments *arguments)
{
    if (arguments->view.symbolizer.progress)
        fputs("\r\033[K", stderr);
}

void hw_say_contradictions(const struct hw_profile *profile, const char *path)
{
    if (profile && profile->contradiction_count) /* the report has all of them, under what was not observed */
        hw_say("%s: %s", path, profile->contradictions[0]);
}
