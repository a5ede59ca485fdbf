/* view_options.c - the options that verbs share which name what is in profiles. */
#include "cli/view_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "report/text/human.h"

bool hw_view_arguments_init(struct hw_view_arguments *arguments, int argc, char **argv)
{
    *arguments = (struct hw_view_arguments){.verb = argv[0],
                                            .binaries = calloc((size_t)argc + 1, sizeof *arguments->binaries),
                                            .source_paths = calloc((size_t)argc + 1, sizeof *arguments->source_paths)};
    arguments->view.binaries = arguments->binaries;
    arguments->source.paths = arguments->source_paths;
    if (arguments->binaries && arguments->source_paths)
        return true;
    hw_say("not enough memory");
    return false;
}

void hw_view_arguments_free(struct hw_view_arguments *arguments)
{
    free(arguments->binaries);
    for (size_t i = 0; i < arguments->source.path_count; i++)
        free(arguments->source_paths[i].old);
    free(arguments->source_paths);
    hw_rules_free(&arguments->rules);
    hw_suppressions_free(&arguments->suppressions);
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

bool hw_take_source_path(void *closure, const char *value, const struct hw_option *option)
{
    struct hw_view_arguments *arguments = closure;
    const char *sign = strchr(value, '=');
    if (!sign || sign == value || !sign[1])
        return hw_option_needs(option, value, "OLD=NEW, the beginning of a path and what stands there now");
    struct hw_source_path *path = &arguments->source_paths[arguments->source.path_count];
    path->old = strdup(value);
    if (!path->old) {
        hw_say("%s: not enough memory", arguments->verb);
        return false;
    }
    path->old[sign - value] = '\0';
    path->new = path->old + (sign - value) + 1;
    arguments->source.path_count++;
    return true;
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

bool hw_take_suppressions(void *closure, const char *value, const struct hw_option *option)
{
    struct hw_view_arguments *arguments = closure;
    struct hw_error error = {""};
    arguments->view.suppressions = &arguments->suppressions;
    if (hw_suppressions_read(&arguments->suppressions, value, &error))
        return true;
    hw_say("%s: --%s: %s", arguments->verb, option->name, error.message);
    return false;
}

void hw_say_suppressed(const struct hw_view *view, const char *verb)
{
    for (size_t i = 0; view->suppressions && i < view->suppressions->count; i++) {
        const struct hw_suppression *by = &view->suppressions->of[i];
        const char *const doubt = hw_suppression_doubt(by, view->suppressed[i].blocks),
                          *const colon = doubt ? ": " : "";
        if (view->suppressed[i].blocks)
            hw_say("%s: suppressed: %s in %s, by \"%s\" (%s:%u)%s%s", verb, HW_BYTES(view->suppressed[i].bytes),
                   HW_OF(view->suppressed[i].blocks, "block"), by->name, by->file, by->line, colon,
                   doubt ? doubt : "");
        else
            hw_say("%s: suppresses nothing: \"%s\" (%s:%u)%s%s", verb, by->name, by->file, by->line, colon,
                   doubt ? doubt : "");
    }
}

int hw_view_arguments_read_rules(struct hw_view_arguments *arguments)
{
    static const char usual[] = ".heapwiserc";
    const char *path = arguments->rules_file;
    struct hw_error error = {""};
    struct stat status;
    bool fine = true;
    if (!path && stat(usual, &status) == 0)
        path = usual;
    if (path == usual && !S_ISREG(status.st_mode)) { /* a pipe that nobody writes would be waited for */
        fine = false;
        hw_error_set(&error, "%s: not a regular file", usual);
    } else if (path && strcmp(path, "none")) {
        fine = hw_rules_read(&arguments->rules, path, &error);
    }
    if (!fine)
        hw_say("%s: %s%s", arguments->verb, error.message,
               arguments->rules_file ? "" : "; --rules none skips this file");
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
