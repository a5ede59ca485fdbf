/* key_values.c - see key_values.h. */
#include "tuning/key_values.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MOST (64u << 10)

static char *trimmed(char *text)
{
    text += strspn(text, " \t\r");
    size_t length = strlen(text);
    while (length && strchr(" \t\r", text[length - 1]))
        text[--length] = '\0';
    return text;
}

static void cut_comment(char *line)
{
    for (char *at = strchr(line, '#'); at; at = strchr(at + 1, '#'))
        if (at == line || isspace((unsigned char)at[-1])) {
            *at = '\0';
            return;
        }
}

static bool has_control_characters(const char *text)
{
    for (; *text; text++)
        if (iscntrl((unsigned char)*text) && *text != '\t' && *text != '\r')
            return true;
    return false;
}

/* What is wrong with LINE, or NULL. Sets the section of IS when it begins one. */
static const char *take_line(char *line, struct hw_key_value *is,
                             const char *(*take)(void *context, const struct hw_key_value *line), void *context)
{
    if (has_control_characters(line))
        return "there are control characters";
    cut_comment(line);
    line = trimmed(line);
    const size_t length = strlen(line);
    is->key = is->value = NULL;
    if (!length)
        return NULL;
    if (*line == '[') {
        if (line[length - 1] != ']')
            return "a section is [NAME]";
        line[length - 1] = '\0';
        is->section = trimmed(line + 1);
        return *is->section ? take(context, is) : "a section has no name";
    }
    char *equals = strchr(line, '=');
    if (!equals)
        return "KEY = VALUE is needed";
    *equals = '\0';
    is->key = trimmed(line);
    is->value = trimmed(equals + 1);
    return *is->key ? take(context, is) : "KEY = VALUE is needed";
}

bool hw_key_values_each(const char *text, const char *source,
                        const char *(*take)(void *context, const struct hw_key_value *line), void *context,
                        struct hw_error *error)
{
    char *copy = strdup(text + (strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0)), *rest = copy; /* a byte order mark */
    struct hw_key_value is = {.section = ""};
    const char *wrong = copy ? NULL : "not enough memory";
    unsigned number = 0;
    for (char *line = strsep(&rest, "\n"); line && !wrong; line = strsep(&rest, "\n")) {
        number++;
        wrong = take_line(line, &is, take, context);
    }
    if (wrong) {
        char reason[sizeof error->message];
        snprintf(reason, sizeof reason, "%s", wrong); /* it may be in ERROR */
        hw_error_set(error, "%s, line %u: %.400s", source, number, reason);
    }
    free(copy);
    return !wrong;
}

char *hw_key_values_file(const char *path, struct hw_error *error)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    char *text = malloc(FILE_MOST + 1);
    size_t length = 0;
    ssize_t got = file < 0 ? -1 : 1;
    while (text && got > 0 && length <= FILE_MOST) {
        got = read(file, text + length, FILE_MOST + 1 - length);
        length += got > 0 ? (size_t)got : 0;
    }
    const int problem = errno;
    if (file >= 0)
        close(file);
    if (text && got == 0 && !memchr(text, '\0', length)) {
        text[length] = '\0';
        return text;
    }
    hw_error_set(error, "%s: %s", path,
                 !text     ? "not enough memory"
                 : got < 0 ? strerror(problem)
                           : "this is not a text file of Heapwise (more than 64 KiB, or binary)");
    free(text);
    return NULL;
}
