/* view_options.c - the options that verbs share which name what is in profiles. */
#include "cli/view_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

bool hw_view_arguments_init(struct hw_view_arguments *arguments, int argc, char **argv)
{
    *arguments =
        (struct hw_view_arguments){.verb = argv[0], .binaries = calloc((size_t)argc + 1, sizeof *arguments->binaries)};
    arguments->view.binaries = arguments->binaries;
    if (!arguments->binaries)
        hw_say("not enough memory");
    return arguments->binaries != NULL;
}

void hw_view_arguments_free(struct hw_view_arguments *arguments)
{
    free(arguments->binaries);
}

static bool is_there(const struct hw_view_arguments *arguments, const char *path, const struct hw_option *option)
{
    if (access(path, R_OK) == 0)
        return true;
    hw_say("%s: --%s %s: %s", arguments->verb, option->name, path, strerror(errno));
    return false;
}

bool hw_take_sysroot(void *closure, const char *value, const struct hw_option *option)
{
    struct hw_view_arguments *arguments = closure;
    arguments->view.symbolizer.sysroot = value;
    return is_there(arguments, value, option);
}

bool hw_take_binary(void *closure, const char *value, const struct hw_option *option)
{
    struct hw_view_arguments *arguments = closure;
    arguments->binaries[arguments->view.binary_count++] = value;
    return is_there(arguments, value, option);
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
