/* options.c - see options.h. */
#include "cli/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/suggest.h"

#define OPTIONS_MOST 64
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
    return hw_option_needs(option, value, "a number from %" PRIu64 " to %" PRIu64, option->least, option->most);
}

bool hw_take_percentage(void *at, const char *value, const struct hw_option *option)
{
    double *percentage = at;
    char *end;
    errno = 0;
    *percentage = strtod(value, &end);
    if (!errno && end > value && (!*end || !strcmp(end, "%")) && *percentage >= 0 && *percentage <= 1e6)
        return true;
    return hw_option_needs(option, value, "a percentage");
}

/* ---- what is wrong ---- */

static const char *verb_of_options = "";

void hw_options_of(const char *verb)
{
    verb_of_options = verb;
}

bool hw_option_unknown(const struct hw_option *option, const char *value, const char *choices)
{
    size_t size;
    const char *nearest = hw_nearest_in(value, choices, &size);
    if (nearest)
        hw_say("%s: --%s does not know '%s': did you mean '%.*s'? (%s)", verb_of_options, option->name, value,
               (int)size, nearest, choices);
    else
        hw_say("%s: --%s does not know '%s' (%s)", verb_of_options, option->name, value, choices);
    return false;
}

bool hw_option_needs(const struct hw_option *option, const char *value, const char *what, ...)
{
    char text[160];
    va_list arguments;
    va_start(arguments, what);
    vsnprintf(text, sizeof text, what, arguments);
    va_end(arguments);
    hw_say("%s: --%s takes %s, not '%s'", verb_of_options, option->name, text, value);
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

/* WORD is "--NAME" or "--NAME=VALUE" with a name that there is not, or that begins several. */
static void say_unknown(const struct hw_option *options, const char *word)
{
    const char *name = word + 2;
    const size_t size = strcspn(name, "=");
    const struct hw_option *nearest = NULL;
    char several[256] = "";
    size_t used = 0, best = size / 3 > 1 ? size / 3 + 1 : 2;
    for (; options->name; options++) {
        const size_t distance = hw_word_distance(name, size, options->name);
        if (size && !strncmp(options->name, name, size) && used < sizeof several)
            used += (size_t)snprintf(several + used, sizeof several - used, "%s--%s", used ? ", " : "", options->name);
        if (distance < best && distance < size) {
            best = distance;
            nearest = options;
        }
    }
    if (used)
        hw_say("%s: '%.*s' is ambiguous: %s", verb_of_options, (int)(2 + size), word, several);
    else if (nearest)
        hw_say("%s: unknown option '%.*s': did you mean --%s? (see heapwise %s --help)", verb_of_options,
               (int)(2 + size), word, nearest->name, verb_of_options);
    else
        hw_say("%s: unknown option '%.*s' (see heapwise %s --help)", verb_of_options, (int)(2 + size), word,
               verb_of_options);
}

/* getopt_long has returned FOUND, '?' or ':', for what ends before argv[optind]. */
static void say_wrong(const struct hw_option *options, int found, char **argv)
{
    const struct hw_option *option = optopt ? option_of(options, optopt) : NULL;
    if (found == ':' && optopt >= LONG)
        hw_say("%s: --%s needs a value", verb_of_options, option->name);
    else if (found == ':')
        hw_say("%s: -%c needs a value", verb_of_options, optopt);
    else if (optopt >= LONG || (option && option->name))
        hw_say("%s: --%s takes no value", verb_of_options, option->name);
    else if (optopt)
        hw_say("%s: unknown option '-%c' (see heapwise %s --help)", verb_of_options, optopt, verb_of_options);
    else
        say_unknown(options, argv[optind - 1]);
}

int hw_options_take(const struct hw_option *options, bool in_order, const char *help, int argc, char **argv,
                    void *command)
{
    struct option names[OPTIONS_MOST + 1] = {{0}};
    char letters[2 * OPTIONS_MOST + 3], *end = stpcpy(letters, in_order ? "+:" : ":");
    for (int i = 0; options[i].name; i++) {
        if (i == OPTIONS_MOST)
            abort(); /* a verb with more: at its first call */
        names[i] = (struct option){options[i].name, options[i].value, NULL, LONG + i};
        if (options[i].letter)
            end = stpcpy(end, (char[]){options[i].letter, options[i].value ? ':' : '\0', '\0'});
    }
    int code = HW_VERB_FINE;
    optind = 0; /* getopt starts anew */
    opterr = 0; /* messages are those above */
    hw_options_of(argv[0]);
    for (int found; !code && (found = getopt_long(argc, argv, letters, names, NULL)) != -1;) {
        const bool wrong = found == '?' || found == ':';
        const struct hw_option *option = wrong ? NULL : option_of(options, found);
        if (wrong) {
            say_wrong(options, found, argv);
            code = HW_VERB_USAGE;
        } else if (option->take) {
            code = option->take((char *)command + option->at, optarg, option) ? HW_VERB_FINE : HW_VERB_USAGE;
        } else {
            fputs(help, stdout);
            code = -1;
        }
    }
    return code;
}
