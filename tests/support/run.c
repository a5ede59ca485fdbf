/* run.c - see run.h. */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "tests/support/run: %s: %s\n", what, strerror(errno));
    abort();
}

static void apply_environment(const char *const *environment)
{
    for (; environment && *environment; environment++) {
        if (strchr(*environment, '='))
            putenv((char *)*environment);
        else
            unsetenv(*environment);
    }
}

static _Noreturn void run_child(const char *const argv[], const struct run_options *options, int out, int err)
{
    setpgid(0, 0);
    int in = open("/dev/null", O_RDONLY);
    if (options->input) {
        in = memfd_create("input", 0);
        size_t size = strlen(options->input);
        if (in < 0 || write(in, options->input, size) != (ssize_t)size || lseek(in, 0, SEEK_SET) != 0)
            _exit(127);
    }
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
        _exit(127);
    closefrom(3);
    if (options->directory && chdir(options->directory) != 0)
        _exit(127);
    apply_environment(options->environment);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (const struct run_limit *limit = options->limits; limit && limit->resource >= 0; limit++)
        if (setrlimit((__rlimit_resource_t)limit->resource, &(struct rlimit){limit->value, limit->value}) != 0)
            _exit(127);
    if (options->prepare)
        options->prepare(options->closure);
    execvp(argv[0], (char *const *)argv);
    dprintf(2, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

struct run_process run_start(const char *const argv[], const struct run_options *options)
{
    static const struct run_options defaults;
    struct run_process process = {.out = memfd_create("out", MFD_CLOEXEC), .err = memfd_create("err", MFD_CLOEXEC)};
    if (process.out < 0 || process.err < 0)
        die("memfd_create");
    fflush(NULL);
    process.pid = fork();
    if (process.pid < 0)
        die("fork");
    if (process.pid == 0)
        run_child(argv, options ? options : &defaults, process.out, process.err);
    setpgid(process.pid, process.pid);
    return process;
}

static char *take_output(int file, size_t *size)
{
    off_t end = lseek(file, 0, SEEK_END);
    char *text = malloc((size_t)end + 1);
    if (!text)
        die("malloc");
    ssize_t got = pread(file, text, (size_t)end, 0);
    *size = got < 0 ? 0 : (size_t)got;
    text[*size] = 0;
    close(file);
    return text;
}

struct run_result run_finish(struct run_process *process, unsigned timeout_s)
{
    struct run_result result = {.code = -1};
    int pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    if (pidfd < 0)
        die("pidfd_open");
    struct pollfd wait = {.fd = pidfd, .events = POLLIN};
    int ready;
    do
        ready = poll(&wait, 1, (int)(timeout_s ? timeout_s : 60) * 1000);
    while (ready < 0 && errno == EINTR);
    if (ready == 0) {
        result.timed_out = true;
        kill(-process->pid, SIGKILL);
    }
    close(pidfd);
    int status;
    while (waitpid(process->pid, &status, 0) < 0)
        if (errno != EINTR)
            die("waitpid");
    if (WIFEXITED(status))
        result.code = WEXITSTATUS(status);
    else
        result.signal = WTERMSIG(status);
    result.out = take_output(process->out, &result.out_size);
    result.err = take_output(process->err, &result.err_size);
    return result;
}

struct run_result run(const char *const argv[], const struct run_options *options)
{
    struct run_process process = run_start(argv, options);
    return run_finish(&process, options ? options->timeout_s : 0);
}

void run_result_free(struct run_result *result)
{
    free(result->out);
    free(result->err);
    *result = (struct run_result){0};
}

const char *run_describe(const char *const argv[])
{
    static char line[1024];
    size_t used = 0;
    line[0] = 0;
    for (; *argv && used < sizeof line - 1; argv++)
        used += (size_t)snprintf(line + used, sizeof line - used, "%s%s", used ? " " : "", *argv);
    return line;
}
