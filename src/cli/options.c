/* options.c - see options.h. */
#include "cli/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

#define OPTIONS_MOST 32
#define LONG         256 /* what getopt_long returns of long options begins here */

bool hw_take_flag(void *at, const char *value, const struct hw_option *option)
{
    return *(bool *)at = true;
}

bool hw_take_text(void *at, const char *value, const struct hw_option *option)
{
    *(const char **)at = value;
    return true;
}

bool hw_take_output(void *at, const char *value, const struct hw_option *option)
{
    *(const char **)at = strcmp(value, "-") ? value : NULL;
    return true;
}

bool hw_take_number(void *at, const char *value, const struct hw_option *option)
{
    if (hw_parse_number(value, option->least, option->most, at))
        return true;
    hw_say("--%s=%s: a number from %" PRIu64 " to %" PRIu64 " is needed", option->name, value, option->least,
           option->most);
    return false;
}

/* The option that getopt_long has FOUND; the one behind the last where it is none. */
static const struct hw_option *option_of(const struct hw_option *options, int found)
{
    if (found >= LONG)
        return &options[found - LONG];
    while (options->name && options->letter != found)
        options++;
    return options;
}

static void say_wrong(const char *verb, int found, char **argv)
{
    if (opterr) /* getopt has said what is wrong */
        fprintf(stderr, "Try heapwise %s --help.\n", verb);
    else if (found == ':')
        hw_say("%s: %s needs a value", verb, argv[optind - 1]);
    else
        hw_say("%s: unknown option '%s' (see heapwise %s --help)", verb, argv[optind - 1], verb);
}

int hw_options_take(const struct hw_option *options, const char *mode, const char *help, int argc, char **argv,
                    void *command)
{
    struct option names[OPTIONS_MOST + 1] = {{0}};
    char letters[2 * OPTIONS_MOST + 2], *end = stpcpy(letters, mode), *verb = argv[0], heading[64];
    for (int i = 0; options[i].name; i++) {
        names[i] = (struct option){options[i].name, options[i].value, NULL, LONG + i};
        if (options[i].letter)
            end = stpcpy(end, (char[]){options[i].letter, options[i].value ? ':' : '\0', '\0'});
    }
    int code = HW_VERB_FINE;
    optind = 0; /* getopt starts anew */
    opterr = *mode != ':';
    snprintf(heading, sizeof heading, "heapwise %s", verb);
    argv[0] = heading; /* getopt's messages begin with it */
    for (int found; !code && (found = getopt_long(argc, argv, letters, names, NULL)) != -1;) {
        const struct hw_option *option = option_of(options, found);
        if (option->take) {
            code = option->take((char *)command + option->at, optarg, option) ? HW_VERB_FINE : HW_VERB_USAGE;
        } else if (option->name) {
            fputs(help, stdout);
            code = -1;
        } else {
            say_wrong(verb, found, argv);
            code = HW_VERB_USAGE;
        }
    }
    argv[0] = verb;
    return code;
}
