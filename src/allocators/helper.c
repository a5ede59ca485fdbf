/* helper.c - see helper.h.
 *
 * Output goes to a file in memory, not to a pipe: nothing waits for anything but the end of the program. */
#include "allocators/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/preload.h"

#define ARGUMENTS_MOST 8

struct helper {
    const char *name;
    char path[PATH_MAX];
    char *arguments[ARGUMENTS_MOST + 2];
    char **environment;
    char *preload; /* "LD_PRELOAD=..." or NULL */
    int input, output;
    struct hw_error *error;
};

/* The program gets what the user's allocators are configured by, but no library that is not meant. */
static bool make_environment(struct helper *helper, const char *preload)
{
    size_t count = 0, used = 0;
    while (environ && environ[count])
        count++;
    helper->environment = calloc(count + 2, sizeof *helper->environment);
    if (!helper->environment)
        return false;
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0 && strncmp(environ[i], "HEAPWISE_OPTIONS=", 17) != 0)
            helper->environment[used++] = environ[i];
    if (!preload || !*preload)
        return true;
    if (asprintf(&helper->preload, "LD_PRELOAD=%s", preload) < 0)
        return false;
    helper->environment[used] = helper->preload;
    return true;
}

static bool make_files(struct helper *helper, const char *input)
{
    helper->output = memfd_create("output", MFD_CLOEXEC);
    helper->input = input ? memfd_create("input", MFD_CLOEXEC) : open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (helper->output < 0 || helper->input < 0)
        return false;
    for (size_t done = 0, size = input ? strlen(input) : 0; done < size;) {
        const ssize_t written = write(helper->input, input + done, size - done);
        if (written <= 0)
            return false;
        done += (size_t)written;
    }
    return lseek(helper->input, 0, SEEK_SET) >= 0 || !input;
}

_Noreturn static void run_child(const struct helper *helper, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (getppid() != parent || nothing < 0 || dup2(helper->input, 0) < 0 || dup2(helper->output, 1) < 0 ||
        dup2(nothing, 2) < 0)
        _exit(126);
    execve(helper->path, helper->arguments, helper->environment);
    _exit(127);
}

static void ending_signals(sigset_t *set)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigemptyset(set);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaddset(set, signals[i]);
}

int hw_helper_interrupted(void)
{
    sigset_t set, pending, blocked;
    ending_signals(&set);
    sigpending(&pending);
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    for (int signal = 1; signal < SIGRTMIN; signal++)
        if (sigismember(&set, signal) && sigismember(&pending, signal) && sigismember(&blocked, signal))
            return signal;
    return 0;
}

/* Waits for the end of CHILD; kills it after SECONDS, or when this process is asked to end. False: it was killed. */
static bool wait_for(pid_t child, unsigned seconds, int *status)
{
    const int handle = (int)syscall(SYS_pidfd_open, child, 0);
    sigset_t signals;
    ending_signals(&signals);
    const int asked = signalfd(-1, &signals, SFD_CLOEXEC); /* reads those that are blocked */
    struct pollfd end[] = {{.fd = handle, .events = POLLIN}, {.fd = asked, .events = POLLIN}};
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    long left_ms = (long)seconds * 1000;
    while (handle >= 0 && left_ms > 0 && !end[0].revents) {
        poll(end, 2, (int)left_ms);
        if (end[1].revents) {
            left_ms = 0;
            break;
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
        left_ms = (long)seconds * 1000 - (now.tv_sec - begin.tv_sec) * 1000 - (now.tv_nsec - begin.tv_nsec) / 1000000;
    }
    if (asked >= 0)
        close(asked);
    if (handle >= 0) {
        close(handle);
        if (left_ms <= 0)
            kill(child, SIGKILL);
    } /* without such handles (before Linux 5.3) the program's own alarm ends it */
    while (waitpid(child, status, 0) < 0 && errno == EINTR)
        ;
    return left_ms > 0;
}

static char *read_output(const struct helper *helper, size_t most)
{
    struct stat status;
    if (fstat(helper->output, &status) != 0 || (size_t)status.st_size > most) {
        hw_error_set(helper->error, "%s printed too much", helper->name);
        return NULL;
    }
    char *text = malloc((size_t)status.st_size + 1);
    const ssize_t got = text ? pread(helper->output, text, (size_t)status.st_size, 0) : -1;
    if (got < 0) {
        hw_error_set(helper->error, "what %s printed cannot be read", helper->name);
        free(text);
        return NULL;
    }
    text[got] = '\0';
    return text;
}

static char *run_prepared(struct helper *helper, unsigned seconds, size_t most)
{
    int status = -1;
    const pid_t parent = getpid(), child = fork();
    if (child == 0)
        run_child(helper, parent);
    if (child < 0)
        hw_error_set(helper->error, "cannot start %s: %s", helper->name, strerror(errno));
    else if (!wait_for(child, seconds, &status))
        hw_error_set(helper->error, hw_helper_interrupted() ? "%s was interrupted" : "%s did not end within %u s",
                     helper->name, seconds);
    else if (WIFSIGNALED(status))
        hw_error_set(helper->error, "%s was killed by signal %d (%s)", helper->name, WTERMSIG(status),
                     strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) == 127 && access(helper->path, X_OK) != 0)
        hw_error_set(helper->error, "%s cannot be run: %s; is the installation complete?", helper->path,
                     strerror(errno));
    else if (WEXITSTATUS(status) != 0)
        hw_error_set(helper->error, "%s failed (exit code %d)", helper->name, WEXITSTATUS(status));
    else
        return read_output(helper, most);
    return NULL;
}

char *hw_helper_run(const char *name, const char *const arguments[], const char *preload, const char *input,
                    unsigned seconds, size_t most, struct hw_error *error)
{
    struct helper helper = {.name = name, .input = -1, .output = -1, .error = error};
    char relative[64];
    char *text = NULL;
    snprintf(relative, sizeof relative, HEAPWISE_LIBDIR "/%s", name);
    hw_error_set(error, "cannot prepare to run %s: not enough memory or files", name);
    if (hw_helper_interrupted())
        hw_error_set(error, "%s was interrupted", name);
    else if (!hw_installed_path(helper.path, sizeof helper.path, relative)) {
        hw_error_set(error, "cannot find %s: %s", name, strerror(errno));
    } else if (make_environment(&helper, preload) && make_files(&helper, input)) {
        helper.arguments[0] = helper.path;
        for (size_t i = 0; i < ARGUMENTS_MOST && arguments && arguments[i]; i++)
            helper.arguments[i + 1] = (char *)(uintptr_t)arguments[i];
        text = run_prepared(&helper, seconds, most);
    }
    if (helper.input >= 0)
        close(helper.input);
    if (helper.output >= 0)
        close(helper.output);
    free(helper.environment);
    free(helper.preload);
    return text;
}
