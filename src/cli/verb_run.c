/* verb_run.c - heapwise run: a program under a configuration of an allocator, without profiling. Heapwise is not loaded
 * into it: this process becomes the program. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocators/installed.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/target.h"
#include "tuning/paste.h"

struct command {
    const char *config, *settings_folder;
    size_t form; /* HW_PASTE_FORMS: none, the program is run */
};

static const char help[] = "Usage: heapwise run --config=FILE [--] PROGRAM [ARGUMENT...]\n"
                           "       heapwise run --config=FILE --show=FORM\n"
                           "\n"
                           "Runs PROGRAM with the allocator and the settings of FILE, as a tuned.conf of\n"
                           "heapwise tune. Nothing is recorded: heapwise becomes the program.\n"
                           "\n"
                           "  -c, --config=FILE    the configuration\n"
                           "      --show=FORM      print it as text to paste instead: shell (environment),\n"
                           "                       systemd (a drop-in of a unit), docker (an ENV line) or\n"
                           "                       cmake (a link line)\n"
                           "      --settings=DIR   also know the settings of DIR/*.conf\n"
                           "  -h, --help           this text\n"
                           "\n"
                           "Exits with the code of PROGRAM; 2 for wrong usage and a wrong FILE, 125 when the\n"
                           "configuration cannot be given to PROGRAM, 126 when PROGRAM cannot be executed,\n"
                           "127 when it is not found. docs/settings.md describes FILE.\n";

static bool take_form(void *at, const char *value, const struct hw_option *option)
{
    size_t *form = at;
    for (*form = 0; *form < HW_PASTE_FORMS; ++*form)
        if (strcmp(value, hw_paste_names[*form]) == 0)
            return true;
    return hw_option_unknown(option, value, "shell, systemd, docker, cmake");
}

static const struct hw_option verb_options[] = {
    HW_OPTION_TEXT("config", 'c', struct command, config),
    HW_OPTION_KEPT("show", 0, take_form, size_t, struct command, form),
    HW_OPTION_TEXT("settings", 0, struct command, settings_folder),
    HW_OPTION_HELP('h'),
    {0},
};

/* The dynamic linker only warns of a library that it cannot load, and allocators ignore settings that they do not know:
 * both would be a run without the configuration. */
static bool is_usable(const struct hw_configuration *configuration, struct hw_error *error)
{
    struct hw_facts facts, libc;
    const char *library = configuration->library;
    if (!*library && !configuration->count)
        return true;
    if (!hw_configuration_reaches(configuration, error))
        return false;
    if (!hw_facts_where(&libc, NULL, error) || !hw_facts_where(&facts, library, error))
        return false;
    if (*library && strcmp(facts.path, libc.path) == 0 && strcmp(library, "libc.so.6") != 0) {
        const char *package = hw_allocator_package(library);
        hw_error_set(error, "%s cannot be loaded, or has no malloc%s%s%s", library, package ? " (Debian: " : "",
                     package ? package : "", package ? ")" : "");
        return false;
    }
    for (size_t i = 0; i < configuration->count; i++) {
        const struct hw_setting *setting = configuration->of[i].setting;
        if (strcmp(setting->allocator, facts.name) != 0 || hw_setting_in_version(setting, facts.version))
            continue;
        hw_error_set(error, "%s %s has no setting %s (%s %s)", facts.name, facts.version, setting->name,
                     setting->since[0] && hw_version_compare(facts.version, setting->since) < 0 ? "since" : "before",
                     setting->since[0] && hw_version_compare(facts.version, setting->since) < 0 ? setting->since
                                                                                                : setting->before);
        return false;
    }
    return true;
}

/* Looks the program up. Returns 0, or the exit code with ERROR. Settings alone also reach programs into which nothing
 * can be loaded. */
static int find_program(const struct hw_configuration *configuration, const char *program, struct hw_target *target,
                        struct hw_error *error)
{
    const char *rights;
    if (hw_find_program(program, target->path, error) == 0 && (configuration->library[0] || configuration->count) &&
        (rights = hw_target_privileges(target->path)) != NULL) {
        hw_error_set(error,
                     "%s is %s: for such programs the system ignores LD_PRELOAD and GLIBC_TUNABLES; start a copy "
                     "without these rights (cp drops them), or as the user it runs as",
                     program, rights);
        return HW_VERB_CANNOT_START;
    }
    if (!configuration->library[0])
        return hw_find_program(program, target->path, error);
    const int code = hw_target_resolve(program, target, error);
    if (code || !(target->is_static || target->musl))
        return code;
    hw_error_set(error, "%s %s: %s cannot be loaded into it", program,
                 target->is_static ? "is statically linked" : "uses musl's C library", configuration->library);
    return HW_VERB_CANNOT_START;
}

static int become(const struct hw_configuration *configuration, const struct hw_target *target, char **arguments)
{
    char **environment = hw_configuration_environment(configuration, environ);
    if (!environment) {
        hw_say("run: not enough memory");
        return HW_VERB_CANNOT_START;
    }
    if (!hw_configuration_enter(configuration)) {
        hw_say("run: the kernel refuses a setting (kernel-thp, processors, numa): %s", strerror(errno));
        hw_configuration_strings_free(environment);
        return HW_VERB_CANNOT_START;
    }
    execve(target->path, arguments, environment);
    int problem = errno;
    if (problem == ENOEXEC) { /* as execvp does */
        size_t count = 0;
        while (arguments[count])
            count++;
        char **command = calloc(count + 2, sizeof *command), shell[] = "/bin/sh", path[PATH_MAX];
        if (command) {
            snprintf(path, sizeof path, "%s", target->path);
            command[0] = shell;
            command[1] = path;
            memcpy(command + 2, arguments + 1, count * sizeof *command); /* with the NULL */
            execve(shell, command, environment);
            problem = errno;
            free(command);
        }
    }
    hw_say("run: %s: %s", target->path, strerror(problem));
    hw_configuration_strings_free(environment);
    return problem == ENOENT ? HW_VERB_NOT_FOUND : HW_VERB_NOT_EXECUTABLE;
}

static int show(const struct hw_configuration *configuration, enum hw_paste_form form)
{
    char *text = hw_paste(configuration, form);
    if (!text)
        hw_say("run: not enough memory");
    else
        fputs(text, stdout);
    free(text);
    return text ? HW_VERB_FINE : HW_VERB_CANNOT_START;
}

static int run(const struct command *command, const struct hw_configuration *configuration, char **program)
{
    struct hw_error error = {""};
    struct hw_target target;
    if (command->form != HW_PASTE_FORMS)
        return show(configuration, (enum hw_paste_form)command->form);
    int code = find_program(configuration, program[0], &target, &error);
    if (!code && !is_usable(configuration, &error))
        code = HW_VERB_CANNOT_START;
    if (!code)
        return become(configuration, &target, program);
    hw_say("run: %s", error.message);
    return code;
}

int hw_verb_run(int argc, char **argv)
{
    struct command command = {.form = HW_PASTE_FORMS};
    const int taken = hw_options_take(verb_options, true, help, argc, argv, &command);
    if (taken)
        return taken < 0 ? HW_VERB_FINE : taken;
    const bool shows = command.form != HW_PASTE_FORMS;
    if (!command.config || shows == (optind < argc)) {
        hw_say("run: %s (see heapwise run --help)",
               !command.config ? "which configuration? --config=FILE is needed; to record a profile, "
                                 "use heapwise record -- PROGRAM"
               : shows         ? "--show takes no PROGRAM"
                               : "which PROGRAM?");
        return HW_VERB_USAGE;
    }
    struct hw_settings settings;
    struct hw_configuration configuration;
    struct hw_error error = {""};
    int code = HW_VERB_USAGE;
    if (hw_settings_read(&settings, command.settings_folder, &error) &&
        hw_configuration_read(&configuration, &settings, command.config, &error))
        code = run(&command, &configuration, argv + optind);
    else
        hw_say("run: %s", error.message);
    hw_settings_free(&settings);
    return code;
}
