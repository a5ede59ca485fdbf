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
    hw_rules_free(&arguments->rules);
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

bool hw_take_rule(void *closure, const char *value, const struct hw_option *option)
{
    struct hw_view_arguments *arguments = closure;
    struct hw_error error = {""};
    enum hw_rule rule = 0;
    while (strcmp(hw_rule_names[rule], option->name))
        rule++;
    if (hw_rules_add(&arguments->rules, rule, value, &error))
        return true;
    hw_say("%s: --%s: %s", arguments->verb, option->name, error.message);
    return false;
}

int hw_view_arguments_read_rules(struct hw_view_arguments *arguments)
{
    static const char usual[] = ".heapwiserc";
    const char *path = arguments->rules_file;
    struct hw_error error = {""};
    bool fine = true;
    if (!path && access(usual, F_OK) == 0)
        path = usual;
    if (path && strcmp(path, "none"))
        fine = hw_rules_read(&arguments->rules, path, &error);
    if (!fine)
        hw_say("%s: %s%s", arguments->verb, error.message,
               arguments->rules_file ? "" : " (--rules none does not read it)");
    if (arguments->rules.count)
        arguments->view.rules = &arguments->rules;
    return fine ? HW_VERB_FINE : HW_VERB_USAGE;
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
