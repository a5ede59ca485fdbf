/* preload.c - see preload.h. */
#include "base/preload.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOT_IN_PRELOAD " \t\n:;$"
#define LINK_NAME      "libheapwise.so"

bool hw_installed_path(char *path, size_t size, const char *relative)
{
    char self[PATH_MAX];
    path[0] = '\0';
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return false;
    self[length] = '\0';
    for (int level = 0; level < 2; level++) { /* take off the name and the folder bin */
        char *slash = strrchr(self, '/');
        if (slash)
            *slash = '\0';
    }
    errno = ENAMETOOLONG;
    return (size_t)snprintf(path, size, "%s/%s", self, relative) < size;
}

bool hw_preload_init(struct hw_preload *preload, const char *runtime, struct hw_error *error)
{
    preload->folder[0] = '\0';
    snprintf(preload->path, sizeof preload->path, "%s", runtime);
    if (!strpbrk(runtime, NOT_IN_PRELOAD))
        return true;
    const char *place = getenv("TMPDIR");
    if (!place || *place != '/' || strpbrk(place, NOT_IN_PRELOAD))
        place = "/tmp";
    snprintf(preload->folder, sizeof preload->folder, "%s/heapwise-XXXXXX", place);
    if (!mkdtemp(preload->folder)) {
        hw_error_set(error,
                     "the runtime library %s has a character in its name that LD_PRELOAD cannot express, and a link to "
                     "it cannot be made in %s: %s",
                     runtime, place, strerror(errno));
        preload->folder[0] = '\0';
        return false;
    }
    /* The folder is our own and nobody else may write to it: the link is what we made. Others may have to read it,
     * when the program changes its user and executes another one. */
    if (chmod(preload->folder, 0755) == 0 &&
        (size_t)snprintf(preload->path, sizeof preload->path, "%s/" LINK_NAME, preload->folder) <
            sizeof preload->path &&
        symlink(runtime, preload->path) == 0)
        return true;
    hw_error_set(error, "cannot link the runtime library into %s: %s", preload->folder, strerror(errno));
    hw_preload_free(preload);
    return false;
}

void hw_preload_free(struct hw_preload *preload)
{
    if (!preload->folder[0])
        return;
    unlink(preload->path);
    rmdir(preload->folder);
    preload->folder[0] = '\0';
}

/* "NAME=FIRST:SECOND"; SECOND may be NULL or "". */
static char *variable(const char *name, const char *first, const char *second)
{
    char *text = NULL;
    bool both = second && *second;
    if (asprintf(&text, "%s=%s%s%s", name, first, both ? ":" : "", both ? second : "") < 0)
        return NULL;
    return text;
}

static bool is_variable(const char *entry, const char *name)
{
    size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

char **hw_environment_new(const struct hw_preload *preload, const char *options, struct hw_error *error)
{
    size_t count = 0;
    while (environ && environ[count])
        count++;
    char **environment = calloc(count + 3, sizeof *environment);
    const char *given = getenv("HEAPWISE_OPTIONS");
    bool has_options = given && *given;
    if (environment) {
        /* Ours come first: hw_environment_free relies on it. */
        environment[0] = variable("LD_PRELOAD", preload->path, getenv("LD_PRELOAD"));
        environment[1] = variable("HEAPWISE_OPTIONS", has_options ? given : options, has_options ? options : NULL);
    }
    if (!environment || !environment[0] || !environment[1]) {
        hw_error_set(error, "no memory");
        hw_environment_free(environment);
        return NULL;
    }
    size_t used = 2;
    for (size_t i = 0; i < count; i++) {
        if (!is_variable(environ[i], "LD_PRELOAD") && !is_variable(environ[i], "HEAPWISE_OPTIONS"))
            environment[used++] = environ[i];
    }
    return environment;
}

void hw_environment_free(char **environment)
{
    if (!environment)
        return;
    free(environment[0]);
    free(environment[1]);
    free(environment);
}
