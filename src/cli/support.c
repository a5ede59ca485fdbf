/* support.c - what the verbs share: messages, the runtime's place, numbers and words. */
#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void hw_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    flockfile(stderr);
    fputs("heapwise: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    funlockfile(stderr);
    va_end(arguments);
}

bool hw_find_runtime(char *path, size_t size, struct hw_error *error)
{
    const char *chosen = getenv("HEAPWISE_RUNTIME");
    if (chosen && *chosen) {
        char *whole = realpath(chosen, NULL);
        snprintf(path, size, "%s", whole ? whole : chosen);
        free(whole);
    } else if (!hw_installed_path(path, size, HEAPWISE_LIBDIR "/libheapwise.so")) {
        hw_error_set(error, "cannot find the runtime library: /proc/self/exe: %s", strerror(errno));
        return false;
    }
    if (access(path, R_OK) != 0) {
        hw_error_set(error, "the runtime library %s: %s", path,
                     errno == ENOENT ? "not there; is the installation complete?" : strerror(errno));
        return false;
    }
    return true;
}

void hw_say_input_waits(void)
{
    hw_say("reading the standard input to its end, since every run gets it (</dev/null gives none)");
}

bool hw_parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
    if (!isdigit((unsigned char)*text))
        return false;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno || *end || number < least || number > most)
        return false;
    *value = number;
    return true;
}

const char *hw_shell_word(const char *name, char *buffer, size_t size)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
    if (*name && name[strspn(name, plain)] == '\0') {
        snprintf(buffer, size, "%s", name);
        return buffer;
    }
    size_t used = (size_t)snprintf(buffer, size, "'");
    for (; *name && used + 6 < size; name++) {
        if (*name == '\'') {
            memcpy(buffer + used, "'\\''", 4);
            used += 4;
        } else {
            buffer[used++] = *name;
        }
    }
    buffer[used++] = '\'';
    buffer[used] = '\0';
    return buffer;
}

const char *hw_shell_file(const char *name, char *buffer, size_t size)
{
    char path[4096];
    if (*name != '-')
        return hw_shell_word(name, buffer, size);
    snprintf(path, sizeof path, "./%s", name);
    return hw_shell_word(path, buffer, size);
}
