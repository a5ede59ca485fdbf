/* server.c - see server.h.
 *
 * The server is run by a copy of this process, as hw_run_measure waits for the end of what it runs, and passes on the
 * signal that it gets meanwhile: that is how the server is stopped. */
#include "tuning/server.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "allocators/helper.h"
#include "allocators/resident.h"

#define READY_SECONDS    60
#define GRACE_SECONDS    10 /* between the signal that stops a server and SIGKILL */
#define PORT_SECONDS     5  /* in which the port of the run before becomes free */
#define LOAD_OUTPUT_MOST (1ull << 30)
#define OUTPUT_MOST      (16u << 20) /* bytes of the load generator's output that are read */

/* ---- the server ---- */

/* What the copy of this process reports. */
struct served {
    bool fine;
    struct hw_run_cost cost;
    struct hw_error error;
};

struct serving {
    pid_t copy;
    int pipe; /* its report */
};

/* Of a server that went into the background, or whose processes have sessions of their own: this process inherits
 * them. */
static void end_descendants(void)
{
    char path[64];
    int child, status;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)getpid(), (int)getpid());
    for (int tries = 0; tries < 100; tries++) {
        FILE *file = fopen(path, "re");
        bool found = false;
        while (file && fscanf(file, "%d", &child) == 1) {
            found = true;
            kill(child, SIGKILL);
        }
        if (file)
            fclose(file);
        if (!found)
            return;
        while (waitpid(-1, &status, 0) < 0 && errno == EINTR)
            ;
    }
}

static bool start(const struct hw_run_request *server, int stop, struct serving *serving, struct hw_error *error)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        hw_error_set(error, "cannot start the server: %s", strerror(errno));
        return false;
    }
    fflush(NULL);
    const pid_t parent = getpid();
    serving->copy = fork();
    if (serving->copy == 0) {
        struct served served = {.fine = false};
        signal(stop, SIG_DFL); /* nohup ignores one */
        setpgid(0, 0);         /* Ctrl-C is for its parent, which stops the server */
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        if (getppid() == parent)
            served.fine = hw_run_measure(server, &served.cost, &served.error);
        end_descendants();
        const ssize_t ignored = write(ends[1], &served, sizeof served);
        (void)ignored;
        _exit(0);
    }
    const int problem = errno;
    close(ends[1]);
    serving->pipe = ends[0];
    if (serving->copy > 0)
        return true;
    close(ends[0]);
    hw_error_set(error, "cannot start the server: %s", strerror(problem));
    return false;
}

static bool has_ended(const void *server)
{
    const struct serving *serving = server;
    struct pollfd one = {.fd = serving->pipe, .events = POLLIN};
    return poll(&one, 1, 0) > 0;
}

/* Stops it by the signal STOP (0: it has ended), and waits for its end. */
static void finish(struct serving *serving, int stop, struct served *served)
{
    size_t got = 0;
    int status;
    if (stop)
        kill(serving->copy, stop);
    while (got < sizeof *served) {
        const ssize_t more = read(serving->pipe, (char *)served + got, sizeof *served - got);
        if (more < 0 && errno == EINTR)
            continue;
        if (more <= 0)
            break;
        got += (size_t)more;
    }
    if (got < sizeof *served) {
        memset(served, 0, sizeof *served);
        hw_error_set(&served->error, "what ran the server was killed");
    }
    close(serving->pipe);
    while (waitpid(serving->copy, &status, 0) < 0 && errno == EINTR)
        ;
}

static bool is_number(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

static bool can_connect(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool fine = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0)
        close(fd);
    return fine;
}

/* Runs TEXT until it ends, or the server does. */
static bool run_shell(const struct hw_run_request *server, const struct serving *serving, const char *text, int output,
                      double seconds, struct hw_run_cost *cost, struct hw_error *error)
{
    char shell[] = "sh", option[] = "-c";
    char *arguments[] = {shell, option, (char *)(uintptr_t)text, NULL};
    const struct hw_run_request request = {.path = "/bin/sh",
                                           .arguments = arguments,
                                           .input = server->input,
                                           .output = output,
                                           .output_most = output ? LOAD_OUTPUT_MOST : 0,
                                           .show = server->show,
                                           .seconds_most = seconds,
                                           .abandon = has_ended,
                                           .abandon_closure = serving,
                                           .mask = server->mask};
    return hw_run_measure(&request, cost, error);
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void pause_shortly(void)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    nanosleep(&pause, NULL);
}

/* Waits until the server can be used. False with PROBLEM, or with ERROR and *FAILED. */
static bool wait_until_ready(const struct hw_run_request *server, const struct hw_server *how,
                             const struct serving *serving, struct hw_run_cost *last, char *problem, size_t size,
                             bool *failed, struct hw_error *error)
{
    const double most = how->ready_most > 0 ? how->ready_most : READY_SECONDS, end = seconds_now() + most;
    while (true) {
        bool ready = false;
        if (is_number(how->ready)) {
            ready = can_connect((unsigned)strtoul(how->ready, NULL, 10));
        } else {
            const double left = end - seconds_now();
            *failed = !run_shell(server, serving, how->ready, 0, left > 0.1 ? left : 0.1, last, error);
            ready = !*failed && !last->timed_out && last->exit_kind == HW_EXIT_CODE && last->exit_value == 0;
        }
        if (!last->interrupted)
            last->interrupted = hw_helper_interrupted();
        if (*failed || last->interrupted)
            return false;
        if (has_ended(serving))
            return false;
        if (ready)
            return true;
        if (seconds_now() >= end) {
            snprintf(problem, size, "it was not ready within %g s", most);
            return false;
        }
        pause_shortly();
    }
}

/* The port must be free before the server is started: else another server would be measured. */
static bool wait_for_port(const struct hw_server *how, struct hw_error *error)
{
    if (!is_number(how->ready))
        return true;
    const unsigned port = (unsigned)strtoul(how->ready, NULL, 10);
    for (const double end = seconds_now() + (how->port_s > 0 ? how->port_s : PORT_SECONDS); can_connect(port);
         pause_shortly())
        if (seconds_now() >= end || hw_helper_interrupted()) {
            hw_error_set(error, "port %u is in use before the server is started", port);
            return false;
        }
    return true;
}

/* The beginning of FILE as text, to be freed. */
static char *text_of(int file)
{
    char *text = malloc(OUTPUT_MOST + 1);
    size_t size = 0;
    ssize_t got;
    while (text && size < OUTPUT_MOST && (got = pread(file, text + size, OUTPUT_MOST - size, (off_t)size)) > 0)
        size += (size_t)got;
    if (text)
        text[size] = '\0';
    return text;
}

/* The load generator's numbers, for TRIAL. */
static void take_numbers(const struct hw_server *how, int output, bool show, struct hw_trial *trial, char *problem,
                         size_t size)
{
    char *text = text_of(output);
    if (!text)
        return;
    if (show)
        fputs(text, stderr);
    hw_load_numbers(&how->expressions, text, trial->cost.load);
    free(text);
    for (int i = 0; i < HW_LOAD_NUMBERS && !*problem; i++)
        if (how->expressions.of[i] && !(trial->cost.load[i] > 0))
            snprintf(problem, size, "the load generator printed no number that fits %s", how->expressions.of[i]);
}

/* What is wrong with the server's end, EARLY: before it was stopped. */
static void judge_end(const struct hw_server *how, const struct hw_run_cost *cost, bool early, bool ready,
                      char *problem, size_t size)
{
    char end[128];
    hw_run_describe_end(cost, end, sizeof end);
    if (early && !ready)
        snprintf(problem, size, "it ended before it was ready: %s%s", end,
                 cost->exit_kind == HW_EXIT_CODE && cost->exit_value == 0 ? " (it must stay in the foreground)" : "");
    else if (early)
        snprintf(problem, size, "it ended under load: %s", end);
    else if (cost->exit_kind == HW_EXIT_SIGNAL && !cost->killed && cost->exit_value != how->stop)
        snprintf(problem, size, "it crashed when it was stopped: %s", end);
}

bool hw_server_trial(const struct hw_run_request *server, const struct hw_server *how, struct hw_trial *trial,
                     char *problem, size_t size, struct hw_error *error)
{
    struct hw_run_request request = *server;
    struct serving serving;
    struct served served;
    struct hw_run_cost load = {0};
    char end[128];
    request.grace_s = how->grace_s > 0 ? how->grace_s : GRACE_SECONDS;
    memset(trial, 0, sizeof *trial);
    *problem = '\0';
    if (!wait_for_port(how, error))
        return false;
    const int output = hw_run_temporary();
    if (output < 0) {
        hw_error_set(error, "cannot make a temporary file for what the load generator prints: %s", strerror(errno));
        return false;
    }
    if (!start(&request, how->stop, &serving, error)) {
        close(output);
        return false;
    }
    bool failed = false;
    const bool ready = wait_until_ready(server, how, &serving, &load, problem, size, &failed, error);
    if (ready)
        failed = !run_shell(server, &serving, how->load, output, how->seconds_most, &load, error);
    const uint64_t resident = hw_resident_of_tree(serving.copy, false);
    const bool early = has_ended(&serving);
    finish(&serving, early ? 0 : how->stop, &served);
    trial->cost = served.cost;
    trial->cost.rss_after_bytes = resident;
    trial->cost.wall_s = load.wall_s;
    trial->cost.timed_out = false;
    trial->cost.interrupted = load.interrupted; /* of the server it is the signal that stops it */
    if (!failed && !served.fine && !load.interrupted) {
        *error = served.error;
        failed = true;
    }
    if (!failed && !*problem)
        judge_end(how, &served.cost, early, ready, problem, size);
    if (ready && !failed && !*problem &&
        (load.timed_out || load.printed_too_much || load.exit_kind == HW_EXIT_SIGNAL || load.exit_value != 0))
        snprintf(problem, size, "the load generator failed: %s", hw_run_describe_end(&load, end, sizeof end));
    if (ready && !failed)
        take_numbers(how, output, server->show, trial, problem, size);
    close(output);
    return !failed;
}
