/* surroundings.c - see surroundings.h. */
#include "surroundings.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

/* What would change what Heapwise, compilers or programs print or do. Names that end in a star: all that begin so. */
static const char *const unset[] = {
    "HEAPWISE_OPTIONS", "HEAPWISE_RUNTIME", "LD_PRELOAD", "MALLOC_*", "GLIBC_TUNABLES",  "LC_*",   "LANG", "LANGUAGE",
    "NO_COLOR",         "CLICOLOR*",        "COLUMNS",    "LINES",    "POSIXLY_CORRECT", "CDPATH", "ENV",  "BASH_ENV",
    "DEBUGINFOD_URLS"};

static int matches(const char *variable, const char *name)
{
    size_t length = strlen(name);
    if (name[length - 1] == '*')
        return strncmp(variable, name, length - 1) == 0;
    return strncmp(variable, name, length) == 0 && variable[length] == '=';
}

static void set_environment(void)
{
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++)
        for (char **at = environ; at && *at;) {
            if (!matches(*at, unset[i])) {
                at++;
                continue;
            }
            char *name = strndup(*at, strcspn(*at, "="));
            unsetenv(name);
            free(name);
            at = environ;
        }
    setenv("LANG", "C.UTF-8", 1);
    setenv("TERM", "xterm", 1);
    if (!getenv("HOME"))
        setenv("HOME", "/tmp", 1);
}

/* Soft limits at least as usual, as far as the hard ones permit it. */
static void set_limits(void)
{
    static const struct {
        int resource;
        rlim_t usual;
    } limits[] = {{RLIMIT_NOFILE, 1024},          {RLIMIT_STACK, 8 << 20},       {RLIMIT_AS, RLIM_INFINITY},
                  {RLIMIT_DATA, RLIM_INFINITY},   {RLIMIT_FSIZE, RLIM_INFINITY}, {RLIMIT_CPU, RLIM_INFINITY},
                  {RLIMIT_MEMLOCK, RLIM_INFINITY}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit now;
        if (getrlimit((__rlimit_resource_t)limits[i].resource, &now) != 0 || now.rlim_cur >= limits[i].usual)
            continue;
        now.rlim_cur = limits[i].usual < now.rlim_max ? limits[i].usual : now.rlim_max;
        setrlimit((__rlimit_resource_t)limits[i].resource, &now);
        if (limits[i].resource == RLIMIT_AS && now.rlim_cur != RLIM_INFINITY)
            fprintf(stderr, "address space has a hard limit (ulimit -Hv): tests of counted accesses fail under it\n");
    }
}

void set_surroundings(void)
{
    for (int number = 1; number < SIGRTMIN; number++)
        if (number != SIGKILL && number != SIGSTOP)
            signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int file = 0; file <= 2; file++)
        if (fcntl(file, F_GETFD) < 0 && open("/dev/null", O_RDWR) != file)
            abort();
    umask(022);
    set_environment();
    set_limits();
}
