/* timed_runs.c - see timed_runs.h. */
#include "allocators/timed_runs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "allocators/helper.h"
#include "allocators/resident.h"

#define SLOW_S         2
#define INPUT_MOST     (4ull << 30)
#define OUTPUT_PAUSE_S 0.2
#define GRACE_S        5 /* between the signal that asks a run to end and SIGKILL */

/* ---- input ---- */

int hw_run_temporary(void)
{
    const char *place = getenv("TMPDIR");
    char name[4096];
    if (!place || *place != '/')
        place = "/tmp";
    snprintf(name, sizeof name, "%s/heapwise-XXXXXX", place);
    const int file = mkostemp(name, O_CLOEXEC);
    if (file >= 0)
        unlink(name);
    return file;
}

/* Everything that comes out of FD, in a file without a name. -1 with errno. */
static int keep(int fd, void (*slow)(void))
{
    char bytes[1 << 16];
    uint64_t kept = 0;
    time_t begin = time(NULL);
    const int file = hw_run_temporary();
    if (file < 0)
        return -1;
    while (true) {
        struct pollfd one = {.fd = fd, .events = POLLIN};
        if (slow && (poll(&one, 1, SLOW_S * 1000) == 0 || time(NULL) - begin > SLOW_S)) {
            slow();
            slow = NULL;
        }
        const ssize_t got = read(fd, bytes, sizeof bytes);
        if (got == 0)
            break;
        if (got < 0 && errno == EINTR)
            continue;
        kept += got > 0 ? (uint64_t)got : 0;
        if (kept > INPUT_MOST) {
            close(file);
            errno = EFBIG;
            return -1;
        }
        if (got < 0 || write(file, bytes, (size_t)got) != got) {
            close(file);
            return -1;
        }
    }
    return file;
}

bool hw_input_take(struct hw_input *input, void (*slow)(void), struct hw_error *error)
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
        input->fd = keep(0, slow);
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

/* What the child reports: first its own size, while it is a copy of this process, then why exec failed. */
struct child_report {
    long size_kib;
    int problem;
};

_Noreturn static void run_child(const struct hw_run_request *request, int input, const sigset_t *mask, int report)
{
    struct child_report said = {0};
    struct rusage usage;
    setpgid(0, 0);
    sigprocmask(SIG_SETMASK, mask, NULL);
    if (request->environment)
        environ = request->environment;
    const int other = request->show ? STDERR_FILENO : open("/dev/null", O_WRONLY | O_CLOEXEC);
    const bool ready = dup2(input, 0) == 0 && dup2(request->output ? request->output : other, 1) == 1 &&
                       dup2(other, 2) == 2 && unsetenv("HEAPWISE_OPTIONS") == 0 && set_preload(request->preload) &&
                       (!request->prepare || request->prepare(request->closure));
    if (ready) {
        said.size_kib = getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss : LONG_MAX / 1024;
        if (write(report, &said, sizeof said) != (ssize_t)sizeof said)
            _exit(127);
        execve(request->path, request->arguments, environ);
        said.problem = errno;
        if (said.problem == ENOEXEC && request->text)
            run_as_text(request);
    } else {
        said.problem = errno;
    }
    const ssize_t ignored = write(report, &said, sizeof said);
    (void)ignored;
    _exit(127);
}

/* The child's reports: SIZE_KIB, and errno when it could not be executed, else 0. */
static int read_reports(int report, long *size_kib)
{
    struct child_report said;
    *size_kib = LONG_MAX / 1024;
    while (true) {
        const ssize_t got = read(report, &said, sizeof said);
        if (got < 0 && errno == EINTR)
            continue;
        if (got != (ssize_t)sizeof said)
            return 0;
        *size_kib = said.size_kib;
        if (said.problem)
            return said.problem;
    }
}

/* How a run is waited for. */
struct waiting {
    bool asked;      /* it was asked to end, */
    double asked_at; /* then */
    struct hw_resident_course resident;
};

/* Asks the run to end: by signal SIGNAL first, by SIGKILL when it was asked before. */
static void end_run(struct waiting *waiting, pid_t child, int signal, double spent, struct hw_run_cost *cost)
{
    cost->killed |= waiting->asked;
    kill(-child, waiting->asked ? SIGKILL : signal);
    kill(-child, SIGCONT);
    waiting->asked = true;
    waiting->asked_at = spent;
}

/* How long it may still run. */
static double time_left(const struct hw_run_request *request, const struct waiting *waiting, double spent)
{
    if (waiting->asked)
        return waiting->asked_at + (request->grace_s > 0 ? request->grace_s : GRACE_S) - spent;
    return request->seconds_most > 0 ? request->seconds_most - spent : 3600;
}

/* Takes a sample when it is time. Returns the seconds to the next one. */
static double sample(struct waiting *waiting, pid_t child, double spent)
{
    if (spent >= hw_resident_next(&waiting->resident)) {
        const uint64_t bytes = hw_resident_of_tree(child, true);
        if (bytes > 0)
            hw_resident_add(&waiting->resident, spent, bytes);
        else
            waiting->resident.last_s = spent;
    }
    return hw_resident_next(&waiting->resident) - spent;
}

/* For how long CHILD, if it has ended, was runnable and did not run; it has not been waited for: its group is still its
 * own, and what is left of it is killed. 0: not known. */
static double runnable_seconds(pid_t child)
{
    siginfo_t end = {0};
    char path[64];
    unsigned long long waited_ns = 0;
    if (waitid(P_PID, (id_t)child, &end, WEXITED | WNOHANG | WNOWAIT) != 0 || end.si_pid != child)
        return 0;
    kill(-child, SIGKILL);
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
    struct waiting waiting = {0};
    int status = 0;
    while (true) {
        cost->runnable_s = runnable_seconds(child);
        const pid_t got = wait4(child, &status, WNOHANG | WUNTRACED, usage);
        const double spent = seconds_since(begin);
        if (got == child && !WIFSTOPPED(status)) {
            cost->rss_after_bytes = hw_resident_after_peak(&waiting.resident);
            return status;
        }
        if (got < 0 && errno != EINTR)
            return -1;
        const bool wants_terminal =
            got == child && (WSTOPSIG(status) == SIGTTOU || WSTOPSIG(status) == SIGTTIN || WSTOPSIG(status) == SIGTSTP);
        double left = time_left(request, &waiting, spent);
        if (left <= 0 || wants_terminal) {
            cost->timed_out |= !waiting.asked;
            end_run(&waiting, child, SIGTERM, spent, cost);
            left = time_left(request, &waiting, spent);
        } else if (!waiting.asked && request->abandon && request->abandon(request->abandon_closure)) {
            end_run(&waiting, child, SIGTERM, spent, cost);
            left = time_left(request, &waiting, spent);
        }
        if (request->output_most && !waiting.asked) {
            struct stat printed;
            if (fstat(request->output, &printed) == 0 && (uint64_t)printed.st_size > request->output_most) {
                cost->printed_too_much = true;
                end_run(&waiting, child, SIGKILL, spent, cost);
                continue;
            }
            left = left < OUTPUT_PAUSE_S ? left : OUTPUT_PAUSE_S;
        }
        if (request->sample && !waiting.asked) {
            const double pause = sample(&waiting, child, spent);
            left = pause < left ? pause : left;
        }
        left = left > 0 ? left : 0;
        const struct timespec most = {.tv_sec = (time_t)left, .tv_nsec = (long)((left - (double)(time_t)left) * 1e9)};
        const int signal = sigtimedwait(taken, NULL, &most);
        if (signal > 0 && signal != SIGCHLD) {
            cost->interrupted = signal;
            end_run(&waiting, child, signal, seconds_since(begin), cost);
        }
    }
}

static void note_cost(struct hw_run_cost *cost, int status, const struct rusage *usage, long copy_kib)
{
    cost->exit_kind = WIFSIGNALED(status) ? HW_EXIT_SIGNAL : HW_EXIT_CODE;
    cost->exit_value = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    cost->user_s = (double)usage->ru_utime.tv_sec + (double)usage->ru_utime.tv_usec * 1e-6;
    cost->system_s = (double)usage->ru_stime.tv_sec + (double)usage->ru_stime.tv_usec * 1e-6;
    cost->minor_faults = (uint64_t)usage->ru_minflt;
    cost->major_faults = (uint64_t)usage->ru_majflt;
    /* Before execve the child was a copy of this process, whose size then counts too: no more than that says nothing.
     */
    if (usage->ru_maxrss > copy_kib)
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
    long copy_kib = 0;
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
        problem = read_reports(report[0], &copy_kib);
        const int status = wait_for_end(request, child, &begin, &taken, cost, &usage);
        cost->wall_s = seconds_since(&begin);
        note_cost(cost, status, &usage, copy_kib);
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

/* ---- a series ---- */

bool hw_run_same_end(const struct hw_run_cost *a, const struct hw_run_cost *b)
{
    return !a->timed_out && !b->timed_out && !a->printed_too_much && !b->printed_too_much &&
           a->exit_kind == b->exit_kind && a->exit_value == b->exit_value;
}

const char *hw_run_describe_end(const struct hw_run_cost *cost, char *buffer, size_t size)
{
    if (cost->printed_too_much)
        snprintf(buffer, size, "it was ended, as it printed more than 1 GiB (--discard-output keeps nothing)");
    else if (cost->timed_out)
        snprintf(buffer, size, "it was ended after %.1f s", cost->wall_s);
    else if (cost->exit_kind == HW_EXIT_SIGNAL)
        snprintf(buffer, size, "it was killed by signal %d (%s)", cost->exit_value, strsignal(cost->exit_value));
    else
        snprintf(buffer, size, "it exited with code %d", cost->exit_value);
    return buffer;
}

void hw_runs_block_signals(sigset_t *mask)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction action;
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&set, signals[i]);
    sigprocmask(SIG_BLOCK, &set, mask);
}

void hw_runs_release_signals(const sigset_t *mask)
{
    const struct timespec at_once = {0};
    for (int signal; (signal = hw_helper_interrupted()) != 0;) {
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, signal);
        sigtimedwait(&one, NULL, &at_once);
    }
    sigprocmask(SIG_SETMASK, mask, NULL);
}
