/* output_name.c - see output_name.h. */
#include "cli/output_name.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_PATTERN "%e.%p.hwprof"
#define LONGEST_PATTERN 1000                          /* the runtime has room for 1024 */
#define MOST_CHARACTERS ((size_t)4 * LONGEST_PATTERN) /* with every sequence replaced and every character escaped */

/* Text of limited length that says when it did not fit. */
struct text {
    char *characters;
    size_t used;
    bool full;
};

static void append(struct text *text, const char *piece, size_t length)
{
    if (text->used + length >= MOST_CHARACTERS) {
        text->full = true;
        return;
    }
    memcpy(text->characters + text->used, piece, length);
    text->used += length;
    text->characters[text->used] = '\0';
}

static void append_string(struct text *text, const char *piece)
{
    append(text, piece, strlen(piece));
}

bool hw_output_name_from_options(const char *options, char *value, size_t size)
{
    static const char key[] = "output=";
    bool found = false;
    while (options && *options) {
        size_t length = strcspn(options, ":");
        if (strncmp(options, key, sizeof key - 1) == 0 && length > sizeof key - 1) {
            int fits = snprintf(value, size, "%.*s", (int)(length - (sizeof key - 1)), options + sizeof key - 1);
            found = fits > 0 && (size_t)fits < size;
        }
        options += length + (options[length] == ':');
    }
    return found;
}

/* A literal path as a pattern. */
static void append_literal(struct text *pattern, const char *path)
{
    for (; *path; path++) {
        if (*path == '%')
            append_string(pattern, "%%");
        else if (*path == ':')
            append_string(pattern, "%c");
        else
            append(pattern, path, 1);
    }
}

static bool make_pattern(struct text *pattern, const char *given, struct hw_error *error)
{
    if (*given != '/') {
        char *here = getcwd(NULL, 0);
        if (!here) {
            hw_error_set(error, "cannot find the current directory: %s", strerror(errno));
            return false;
        }
        append_literal(pattern, strcmp(here, "/") == 0 ? "" : here);
        append_string(pattern, "/");
        free(here);
    }
    for (const char *at = given; *at; at++) {
        if (*at == ':') {
            append_string(pattern, "%c");
        } else if (*at == '%') {
            if (!at[1] || !strchr("pehnc%", at[1])) {
                hw_error_set(
                    error,
                    "%s: unknown placeholder '%%%.1s' in the profile name; use %%p, %%e, %%h, %%n, or %%%% for a "
                    "percent sign",
                    given, at + 1);
                return false;
            }
            append(pattern, at++, 2);
        } else {
            append(pattern, at, 1);
        }
    }
    if (pattern->full || pattern->used > LONGEST_PATTERN) {
        hw_error_set(error, "the name of the profile, with its directory, is longer than %d characters",
                     LONGEST_PATTERN);
        return false;
    }
    return true;
}

/* Replaces what is the same in every process of the tree (%c, %%), what this machine says (%h) and %e. UNIQUE is set
 * when something else is in it. */
static void expand(struct text *out, const char *pattern, const char *executable, bool *unique)
{
    for (; *pattern; pattern++) {
        if (*pattern != '%') {
            append(out, pattern, 1);
            continue;
        }
        char host[HOST_NAME_MAX + 1] = "";
        switch (*++pattern) {
        case 'c':
            append_string(out, ":");
            break;
        case '%':
            append_string(out, "%");
            break;
        case 'e':
            append_string(out, executable);
            break;
        case 'h':
            gethostname(host, sizeof host - 1);
            append_string(out, host);
            break;
        default:
            *unique = true;
        }
    }
}

/* Every sequence that may differ becomes a star, and one more stands before the extension, where the runtime inserts.
 */
static void make_wildcard(struct text *out, const char *pattern)
{
    const char *slash = strrchr(pattern, '/');
    const char *dot = strrchr(slash, '.');
    if (dot == slash + 1)
        dot = NULL; /* a hidden file without an extension */
    for (const char *at = pattern; *at; at++) {
        if (at == dot)
            append_string(out, "*");
        if (*at == '%') {
            at++;
            append_string(out, *at == 'c' ? ":" : *at == '%' ? "%" : "*");
        } else {
            if (strchr("*?[\\", *at))
                append_string(out, "\\");
            append(out, at, 1);
        }
    }
    if (!dot)
        append_string(out, "*");
}

static bool has_own_directory(const char *pattern)
{
    const char *slash = strrchr(pattern, '/');
    for (const char *at = pattern; at < slash; at++) {
        if (*at == '%' && strchr("pen", at[1]))
            return true;
        at += *at == '%';
    }
    return false;
}

bool hw_output_name_init(struct hw_output_name *output, const char *given, const char *executable,
                         struct hw_error *error)
{
    memset(output, 0, sizeof *output);
    struct text pattern = {.characters = calloc(1, MOST_CHARACTERS)};
    struct text name = {.characters = calloc(1, MOST_CHARACTERS)};
    struct text wildcard = {.characters = calloc(1, MOST_CHARACTERS)};
    output->pattern = pattern.characters;
    output->name = name.characters;
    output->wildcard = wildcard.characters;
    bool made = false;
    if (!pattern.characters || !name.characters || !wildcard.characters) {
        hw_error_set(error, "no memory");
    } else if (given && (!*given || given[strlen(given) - 1] == '/')) {
        hw_error_set(error, "'%s' is not the name of a file", given);
    } else {
        made = make_pattern(&pattern, given ? given : DEFAULT_PATTERN, error);
    }
    if (!made) {
        hw_output_name_free(output);
        return false;
    }
    bool unique = false;
    expand(&name, output->pattern, executable, &unique);
    make_wildcard(&wildcard, output->pattern);
    if (!has_own_directory(output->pattern)) {
        output->directory = strdup(output->name);
        if (output->directory) {
            char *slash = strrchr(output->directory, '/');
            slash[slash == output->directory] = '\0'; /* "/" stays "/" */
        }
    }
    if (unique) {
        free(output->name);
        output->name = NULL;
    }
    return true;
}

void hw_output_name_free(struct hw_output_name *output)
{
    free(output->pattern);
    free(output->wildcard);
    free(output->directory);
    free(output->name);
    memset(output, 0, sizeof *output);
}

static bool prepare_directory(const char *directory, struct hw_error *error)
{
    struct stat status;
    if (stat(directory, &status) != 0) {
        hw_error_set(error, "the profile cannot be written to %s: %s", directory,
                     errno == ENOENT ? "there is no such directory" : strerror(errno));
        return false;
    }
    if (!S_ISDIR(status.st_mode))
        errno = ENOTDIR;
    else if (access(directory, W_OK | X_OK) == 0)
        return true;
    hw_error_set(error, "the profile cannot be written to %s: %s; choose another place with -o", directory,
                 strerror(errno));
    return false;
}

bool hw_output_name_prepare(const struct hw_output_name *output, bool force, struct hw_error *error)
{
    if (output->directory && !prepare_directory(output->directory, error))
        return false;
    struct stat status;
    if (!output->name || lstat(output->name, &status) != 0)
        return true;
    if (S_ISDIR(status.st_mode)) {
        hw_error_set(error, "%s is a directory: -o takes the name of a file", output->name);
        return false;
    }
    if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)) {
        hw_error_set(error, "%s is not a regular file: a profile cannot be written to it", output->name);
        return false;
    }
    if (!force) {
        hw_error_set(error, "%s exists already: choose another name, or use -f to overwrite it", output->name);
        return false;
    }
    if (unlink(output->name) != 0) {
        hw_error_set(error, "%s cannot be overwritten: %s", output->name, strerror(errno));
        return false;
    }
    return true;
}
