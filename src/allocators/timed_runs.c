/* timed_runs.c - see timed_runs.h. */
#include "allocators/timed_runs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GRACE_S 5 /* between the signal that asks a run to end and SIGKILL */

/* ---- input ---- */

/* Everything that comes out of FD, in a file without a name. -1 with errno. */
static int keep(int fd)
{
    const char *place = getenv("TMPDIR");
    char name[4096], bytes[1 << 16];
    if (!place || *place != '/')
        place = "/tmp";
    snprintf(name, sizeof name, "%s/heapwise-XXXXXX", place);
    const int file = mkostemp(name, O_CLOEXEC);
    if (file < 0)
        return -1;
    unlink(name);
    ssize_t got;
    while ((got = read(fd, bytes, sizeof bytes)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 || write(file, bytes, (size_t)got) != got) {
            close(file);
            return -1;
        }
    }
    return file;
}

bool hw_input_take(struct hw_input *input, struct hw_error *error)
{
    struct stat status;
    *input = (struct hw_input){.fd = -1, .terminal = isatty(0)};
    if (input->terminal || fstat(0, &status) != 0 || S_ISDIR(status.st_mode) || S_ISCHR(status.st_mode)) {
        const bool device =
            !input->terminal && fcntl(0, F_GETFD) >= 0 && fstat(0, &status) == 0 && S_ISCHR(status.st_mode);
        input->start = -1;
        input->fd = device ? fcntl(0, F_DUPFD_CLOEXEC, 3) : open("/dev/null", O_RDONLY | O_CLOEXEC);
    } else if (S_ISREG(status.st_mode)) {
        input->fd = fcntl(0, F_DUPFD_CLOEXEC, 3);
        input->start = lseek(0, 0, SEEK_CUR);
    } else {
        input->fd = keep(0);
    }
    if (input->fd < 0)
        hw_error_set(error, "the standard input cannot be kept for several runs: %s", strerror(errno));
    return input->fd >= 0;
}

void hw_input_free(struct hw_input *input)
{
    if (input->fd >= 0)
        close(input->fd);
    input->fd = -1;
}

/* For one run: an open file of its own at the start. -1 with errno. */
static int open_input(const struct hw_input *input)
{
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", input->fd);
    if (input->start < 0)
        return fcntl(input->fd, F_DUPFD_CLOEXEC, 3);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) /* it was handed to us open, we may not open it: runs are one after the other, and rewind it */
        fd = fcntl(input->fd, F_DUPFD_CLOEXEC, 3);
    if (fd >= 0 && lseek(fd, (off_t)input->start, SEEK_SET) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* ---- one run ---- */

static void signals_taken(sigset_t *set)
{
    static const int taken[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD};
    sigemptyset(set);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        struct sigaction action;
        sigaction(taken[i], NULL, &action); /* ignored and blocked, it would be kept all the same */
        if (action.sa_handler != SIG_IGN || taken[i] == SIGCHLD)
            sigaddset(set, taken[i]);
    }
}

static double seconds_since(const struct timespec *begin)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - begin->tv_sec) + (double)(now.tv_nsec - begin->tv_nsec) * 1e-9;
}

/* LD_PRELOAD of the run: the allocator, and behind it what is there already. False: no memory. */
static bool set_preload(const char *preload)
{
    const char *given = getenv("LD_PRELOAD");
    char *value = NULL;
    if (!preload)
        return true;
    if (!given || !*given)
        return setenv("LD_PRELOAD", preload, 1) == 0;
    return asprintf(&value, "%s:%s", preload, given) >= 0 && setenv("LD_PRELOAD", value, 1) == 0;
}

static void run_as_text(const struct hw_run_request *request)
{
    size_t count = 0;
    while (request->arguments[count])
        count++;
    char **command = calloc(count + 2, sizeof *command);
    static char shell[] = "/bin/sh";
    if (!command)
        return;
    command[0] = shell;
    command[1] = (char *)(uintptr_t)request->path;
    for (size_t i = 1; i < count; i++)
        command[i + 1] = request->arguments[i];
    execve(shell, command, environ);
}

_Noreturn static void run_child(const struct hw_run_request *request, int input, const sigset_t *mask, int report)
{
    int problem = 0;
    setpgid(0, 0);
    sigprocmask(SIG_SETMASK, mask, NULL);
    const int output = request->show ? STDERR_FILENO : open("/dev/null", O_WRONLY | O_CLOEXEC);
    const bool ready = dup2(input, 0) == 0 && dup2(output, 1) == 1 && dup2(output, 2) == 2 &&
                       unsetenv("HEAPWISE_OPTIONS") == 0 && set_preload(request->preload);
    if (ready) {
        execve(request->path, request->arguments, environ);
        problem = errno;
        if (problem == ENOEXEC && request->text)
            run_as_text(request);
    } else {
        problem = errno;
    }
    const ssize_t ignored = write(report, &problem, sizeof problem);
    (void)ignored;
    _exit(127);
}

/* Asks the run to end: by signal SIGNAL first, by SIGKILL when it was asked before. */
static void end_run(pid_t child, int signal, bool *asked)
{
    kill(-child, *asked ? SIGKILL : signal);
    kill(-child, SIGCONT);
    *asked = true;
}

/* How long to wait at most for something to happen. */
static double time_left(const struct hw_run_request *request, double spent, bool asked, double asked_at)
{
    if (asked)
        return asked_at + GRACE_S - spent;
    return request->seconds_most > 0 ? request->seconds_most - spent : 3600;
}

/* For how long CHILD, if it has ended, was runnable and did not run; it has not been waited for. 0: not known. */
static double runnable_seconds(pid_t child)
{
    siginfo_t end = {0};
    char path[64];
    unsigned long long waited_ns = 0;
    if (waitid(P_PID, (id_t)child, &end, WEXITED | WNOHANG | WNOWAIT) != 0 || end.si_pid != child)
        return 0;
    snprintf(path, sizeof path, "/proc/%d/schedstat", (int)child);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%*u %llu", &waited_ns) != 1)
        waited_ns = 0;
    if (file)
        fclose(file);
    return (double)waited_ns * 1e-9;
}

static int wait_for_end(const struct hw_run_request *request, pid_t child, const struct timespec *begin,
                        const sigset_t *taken, struct hw_run_cost *cost, struct rusage *usage)
{
    bool asked = false;
    double asked_at = 0;
    int status = 0;
    while (true) {
        cost->runnable_s = runnable_seconds(child);
        const pid_t got = wait4(child, &status, WNOHANG | WUNTRACED, usage);
        const double spent = seconds_since(begin);
        if (got == child && !WIFSTOPPED(status))
            return status;
        if (got < 0 && errno != EINTR)
            return -1;
        const bool wants_terminal =
            got == child && (WSTOPSIG(status) == SIGTTOU || WSTOPSIG(status) == SIGTTIN || WSTOPSIG(status) == SIGTSTP);
        double left = time_left(request, spent, asked, asked_at);
        if (left <= 0 || wants_terminal) {
            cost->timed_out |= !asked;
            end_run(child, SIGTERM, &asked);
            asked_at = spent;
            left = GRACE_S;
        }
        const struct timespec most = {.tv_sec = (time_t)left, .tv_nsec = (long)((left - (double)(time_t)left) * 1e9)};
        const int signal = sigtimedwait(taken, NULL, &most);
        if (signal > 0 && signal != SIGCHLD) {
            cost->interrupted = signal;
            end_run(child, signal, &asked);
            asked_at = spent;
        }
    }
}

/* What this process has in memory now: its own greatest size does not count for a copy of it. */
static long resident_kib(void)
{
    const long unknown = LONG_MAX / sysconf(_SC_PAGESIZE);
    long pages = unknown;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%*d %ld", &pages) != 1)
        pages = unknown;
    if (file)
        fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void note_cost(struct hw_run_cost *cost, int status, const struct rusage *usage, long own_kib)
{
    cost->exit_kind = WIFSIGNALED(status) ? HW_EXIT_SIGNAL : HW_EXIT_CODE;
    cost->exit_value = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    cost->user_s = (double)usage->ru_utime.tv_sec + (double)usage->ru_utime.tv_usec * 1e-6;
    cost->system_s = (double)usage->ru_stime.tv_sec + (double)usage->ru_stime.tv_usec * 1e-6;
    cost->minor_faults = (uint64_t)usage->ru_minflt;
    cost->major_faults = (uint64_t)usage->ru_majflt;
    /* Before execve the child was a copy of this process, whose size then counts too: less than that says nothing. */
    if (usage->ru_maxrss > own_kib)
        cost->peak_rss_bytes = (uint64_t)usage->ru_maxrss * 1024;
}

static bool run_with_files(const struct hw_run_request *request, int input, int report[2], struct hw_run_cost *cost,
                           struct hw_error *error)
{
    sigset_t taken, mask;
    struct rusage usage;
    struct timespec begin;
    memset(cost, 0, sizeof *cost);
    memset(&usage, 0, sizeof usage);
    signals_taken(&taken);
    sigprocmask(SIG_BLOCK, &taken, &mask);
    struct sigaction standard = {.sa_handler = SIG_DFL}, before;
    sigaction(SIGCHLD, &standard, &before); /* ignored, it would take the exit status away */
    const long own_kib = resident_kib();
    fflush(NULL);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    const pid_t child = fork();
    int problem = child < 0 ? errno : 0;
    if (child == 0) {
        sigaction(SIGCHLD, &before, NULL);
        run_child(request, input, request->mask ? request->mask : &mask, report[1]);
    }
    close(report[1]);
    report[1] = -1;
    if (child > 0) {
        setpgid(child, child); /* whichever of the two comes first */
        if (read(report[0], &problem, sizeof problem) != (ssize_t)sizeof problem)
            problem = 0;
        const int status = wait_for_end(request, child, &begin, &taken, cost, &usage);
        cost->wall_s = seconds_since(&begin);
        note_cost(cost, status, &usage, own_kib);
    }
    sigaction(SIGCHLD, &before, NULL);
    const struct timespec at_once = {0};
    for (int signal; (signal = sigtimedwait(&taken, NULL, &at_once)) > 0;)
        if (signal != SIGCHLD)
            cost->interrupted = signal;
    sigprocmask(SIG_SETMASK, &mask, NULL);
    if (problem)
        hw_error_set(error, "%s: %s", request->path, strerror(problem));
    return problem == 0;
}

bool hw_run_measure(const struct hw_run_request *request, struct hw_run_cost *cost, struct hw_error *error)
{
    int report[2] = {-1, -1};
    bool fine = false;
    const int input = open_input(request->input);
    if (input >= 0 && pipe2(report, O_CLOEXEC) == 0)
        fine = run_with_files(request, input, report, cost, error);
    else
        hw_error_set(error, "cannot prepare a run of the program: %s", strerror(errno));
    if (input >= 0)
        close(input);
    for (int i = 0; i < 2; i++)
        if (report[i] >= 0)
            close(report[i]);
    return fine;
}
