/* launch.c - see launch.h.
 *
 * While the program runs there are no signal handlers: everything that can be is blocked and taken one by one with
 * sigwaitinfo, so that nothing is interrupted and nothing can be lost between looking and waiting. */
#include "cli/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KERNEL_SIGNALS 8ul /* bytes of a set of signals */

/* Signals that mean a fault of our own are not for the program. */
static const int own_faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};

static void signals_to_take(sigset_t *set)
{
    sigfillset(set);
    for (size_t i = 0; i < sizeof own_faults / sizeof own_faults[0]; i++)
        sigdelset(set, own_faults[i]);
}

/* A pipe that is closed when execve succeeds. Above 2: the program may have been started without stdin, stdout or
 * stderr, and must not find ours in their place. */
static bool open_report_pipe(int ends[2])
{
    int low[2];
    if (pipe2(low, O_CLOEXEC) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        ends[i] = low[i] > 2 ? low[i] : fcntl(low[i], F_DUPFD_CLOEXEC, 3);
        if (ends[i] != low[i])
            close(low[i]);
    }
    return ends[0] >= 0 && ends[1] >= 0;
}

/* Files that are opened from now on must not become stdin, stdout or stderr of ours. */
static void fill_standard_files(void)
{
    for (int file = 0; file <= 2; file++) {
        if (fcntl(file, F_GETFD) < 0 && open("/dev/null", O_RDWR) != file)
            return;
    }
}

_Noreturn static void run_child(const struct hw_launch *launch, char **shell_arguments, int report)
{
    int problem = 0;
    if (launch->before && ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        problem = ECANCELED;
    else
        execve(launch->path, launch->arguments, launch->environment);
    problem = problem ? problem : errno;
    if (problem == ENOEXEC && launch->text) {
        execve(shell_arguments[0], shell_arguments, launch->environment);
        problem = errno;
    }
    /* If this fails, the parent sees the pipe close: nobody else could be informed. */
    ssize_t ignored = write(report, &problem, sizeof problem);
    (void)ignored;
    _exit(127);
}

/* Without a copy of this process, which takes longer to make than the program to start. The child only calls the kernel,
 * on this stack, which waits until it is another program; a function of its own keeps nothing in registers meanwhile. */
static __attribute__((noinline)) pid_t start_child(const struct hw_launch *launch, char **shell_arguments, int report,
                                                   const struct sigaction *on_child, const sigset_t *mask)
{
    const pid_t pid = vfork();
    if (pid == 0) {
        sigaction(SIGCHLD, on_child, NULL);
        sigprocmask(SIG_SETMASK, mask, NULL);
        run_child(launch, shell_arguments, report);
    }
    return pid;
}

/* What execvp does with a text: /bin/sh FILE ARGUMENT... NULL when there is no memory. */
static char **shell_command(const struct hw_launch *launch)
{
    static char shell[] = "/bin/sh";
    size_t count = 0;
    while (launch->arguments[count])
        count++;
    char **command = calloc(count + 3, sizeof *command);
    if (!command)
        return NULL;
    command[0] = shell;
    command[1] = (char *)(uintptr_t)launch->path;
    for (size_t i = 1; i < count; i++)
        command[i + 1] = launch->arguments[i];
    return command;
}

/* Has the child started its program? Returns 0 or the errno of execve. */
static int read_report(int report)
{
    int problem = 0;
    ssize_t got;
    do {
        got = read(report, &problem, sizeof problem);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof problem ? problem : 0;
}

/* Did only we get this signal, so that the program has to get it from us? Those of the terminal (SI_KERNEL) went to the
 * whole process group: the program has them already. */
static bool meant_for_program(const siginfo_t *info, pid_t child, bool stopped)
{
    switch (info->si_signo) {
    case SIGCHLD:
        return false;
    case SIGALRM: /* a timer set before we were executed: the program would have had it */
        return true;
    case SIGPIPE: /* of our own writing */
        return info->si_code <= 0 && info->si_pid != getpid();
    case SIGCONT: /* else it came with the one that continued both */
        return stopped && info->si_code <= 0;
    default:
        return info->si_code <= 0 && info->si_pid != child;
    }
}

static void pass_on(const siginfo_t *info, pid_t child)
{
    if (info->si_code == SI_QUEUE)
        sigqueue(child, info->si_signo, info->si_value);
    else
        kill(child, info->si_signo);
}

/* The program was stopped from the terminal: stop as well, for the shell to see it, until both are continued. False:
 * somebody stopped it by hand (SIGSTOP), and will continue it. */
static bool stop_with(pid_t child, int signal)
{
    if (signal != SIGTSTP && signal != SIGTTIN && signal != SIGTTOU)
        return false;
    kill(getpid(), SIGSTOP);
    kill(child, SIGCONT);
    return true;
}

static void note_end(struct hw_launch *launch, int status, const struct rusage *usage, long own_rss_kib)
{
    bool killed = WIFSIGNALED(status);
    launch->exit_kind = killed ? HW_EXIT_SIGNAL : HW_EXIT_CODE;
    launch->exit_value = killed ? WTERMSIG(status) : WEXITSTATUS(status);
    /* Before execve the child had the memory of this process, whose size counts too: less than that says nothing. */
    if (usage->ru_maxrss > own_rss_kib)
        launch->peak_rss_bytes = (uint64_t)usage->ru_maxrss * 1024;
}

static void wait_for_end(struct hw_launch *launch, const sigset_t *taken, long own_rss_kib)
{
    bool stopped = false;
    while (true) {
        int status;
        struct rusage usage;
        pid_t got = wait4(launch->pid, &status, WNOHANG | WUNTRACED | WCONTINUED, &usage);
        if (got < 0 && errno != EINTR)
            return; /* cannot be, SIGCHLD is not ignored: exit_kind stays unknown */
        if (got == launch->pid) {
            if (WIFEXITED(status) || WIFSIGNALED(status)) {
                note_end(launch, status, &usage, own_rss_kib);
                return;
            }
            stopped = WIFSTOPPED(status) && !stop_with(launch->pid, WSTOPSIG(status));
            continue;
        }
        siginfo_t info;
        if (sigwaitinfo(taken, &info) > 0 && meant_for_program(&info, launch->pid, stopped))
            pass_on(&info, launch->pid);
    }
}

/* The program has stopped behind execve. False: it was killed. */
static bool prepare(const struct hw_launch *launch, struct hw_error *error)
{
    int status;
    bool fine = waitpid(launch->pid, &status, __WALL) == launch->pid && WIFSTOPPED(status);
    if (!fine)
        hw_error_set(error, "%s was killed before it began", launch->path);
    fine = fine && launch->before(launch->pid, launch->closure, error);
    if (fine && ptrace(PTRACE_SETSIGMASK, launch->pid, (void *)KERNEL_SIGNALS, &launch->inherited_mask) == 0 &&
        ptrace(PTRACE_DETACH, launch->pid, NULL, NULL) == 0)
        return true;
    if (fine)
        hw_error_set(error, "%s was killed before it began", launch->path);
    kill(launch->pid, SIGKILL);
    return false;
}

int hw_launch(struct hw_launch *launch, bool *executed, struct hw_error *error)
{
    *executed = false;
    int report[2] = {-1, -1};
    char **shell_arguments = shell_command(launch);
    if (!shell_arguments || !open_report_pipe(report)) {
        int problem = errno;
        hw_error_set(error, "cannot prepare the start of the program: %s", strerror(problem));
        free(shell_arguments);
        return problem;
    }
    sigset_t taken;
    signals_to_take(&taken);
    sigprocmask(SIG_BLOCK, &taken, &launch->inherited_mask);
    /* Ignored SIGCHLD would make the exit status vanish. The child gets back what we inherited. */
    struct sigaction standard = {.sa_handler = SIG_DFL}, inherited_action;
    sigaction(SIGCHLD, &standard, &inherited_action);

    /* A signal would stop the traced child where nobody waits for that. The trap is the end of execve. */
    sigset_t until_traced;
    sigfillset(&until_traced);
    sigdelset(&until_traced, SIGTRAP);
    launch->pid = start_child(launch, shell_arguments, report[1], &inherited_action,
                              launch->before ? &until_traced : &launch->inherited_mask);
    int problem = errno;
    struct rusage own = {0};
    getrusage(RUSAGE_SELF, &own);
    close(report[1]);
    free(shell_arguments);
    if (launch->pid < 0) {
        hw_error_set(error, "cannot start a process: %s", strerror(problem));
        close(report[0]);
        return problem;
    }
    fill_standard_files();
    problem = read_report(report[0]);
    close(report[0]);
    if (!problem && launch->before && !prepare(launch, error)) {
        waitpid(launch->pid, NULL, __WALL);
        return ECANCELED;
    }
    wait_for_end(launch, &taken, own.ru_maxrss);
    if (problem == ECANCELED) {
        hw_error_set(error,
                     "no permission to trace the program, which a statically linked one needs: a debugger traces "
                     "heapwise itself, or the container or machine forbids it (seccomp, kernel.yama.ptrace_scope)");
    } else if (problem) {
        *executed = true;
        hw_error_set(error, "%s: %s", launch->path, strerror(problem));
    }
    return problem;
}

void hw_launch_forget_signals(void)
{
    sigset_t taken;
    signals_to_take(&taken);
    struct timespec at_once = {0};
    while (sigtimedwait(&taken, NULL, &at_once) > 0)
        ; /* they were for the program, which has ended */
}

void hw_launch_release(const struct hw_launch *launch)
{
    hw_launch_forget_signals();
    sigprocmask(SIG_SETMASK, &launch->inherited_mask, NULL);
}
