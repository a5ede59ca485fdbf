/* asking.c - see asking.h. */
#include "cli/asking.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define POLL_NS          2000000
#define SEND_AGAIN_POLLS 100 /* a signal may come where nothing can be done, in an allocator call that never ends */

static bool signal_in(const char *status, const char *set, uint32_t number)
{
    const char *value = hw_status_value(status, set);
    return value && (strtoull(value, NULL, 16) >> (number - 1) & 1);
}

/* How little a signal disturbs a thread: 2 when it runs, or sleeps in a call that goes on afterwards; 1 when its call
 * may return early; 0 when it would not get the signal. */
static int thread_fitness(pid_t pid, pid_t thread, uint32_t number)
{
    static const long restarted[] = {SYS_read,   SYS_write,   SYS_readv,   SYS_writev, SYS_futex,    SYS_wait4,
                                     SYS_waitid, SYS_recvmsg, SYS_sendmsg, SYS_accept, SYS_recvfrom, SYS_flock};
    char name[64], text[4096];
    snprintf(name, sizeof name, "task/%d/status", (int)thread);
    if (!hw_read_proc(pid, name, text, sizeof text) || signal_in(text, "SigBlk", number))
        return 0;
    snprintf(name, sizeof name, "task/%d/syscall", (int)thread);
    if (!hw_read_proc(pid, name, text, sizeof text))
        return 1;
    if (strncmp(text, "running", 7) == 0)
        return 2;
    long call = strtol(text, NULL, 10);
    for (size_t i = 0; i < sizeof restarted / sizeof *restarted; i++)
        if (call == restarted[i])
            return 2;
    return 1;
}

/* The thread to send it to; 0: none would get it. */
static pid_t choose_thread(pid_t pid, uint32_t number)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *list = opendir(path);
    pid_t best = 0;
    int best_fitness = 0;
    for (struct dirent *entry; list && best_fitness < 2 && (entry = readdir(list));) {
        if (!isdigit((unsigned char)*entry->d_name))
            continue;
        pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
        int fitness = thread_fitness(pid, thread, number);
        if (fitness > best_fitness) {
            best_fitness = fitness;
            best = thread;
        }
    }
    if (list)
        closedir(list);
    return best;
}

enum sent { SENT, ALL_BLOCK_IT, NOT_HANDLED, NOT_SENT };

static enum sent send_signal(struct hw_recorded *recorded, uint32_t value)
{
    char status[4096];
    uint32_t number = recorded->process.dump_signal;
    if (!hw_read_proc(recorded->pid, "status", status, sizeof status) || number > 64 ||
        !signal_in(status, "SigCgt", number)) /* it would kill the process */
        return NOT_HANDLED;
    pid_t thread = choose_thread(recorded->pid, number);
    if (!thread)
        return ALL_BLOCK_IT;
    siginfo_t information = {.si_signo = (int)number, .si_code = SI_QUEUE};
    information.si_pid = getpid();
    information.si_uid = getuid();
    information.si_value.sival_int = (int)value; /* it may be answered already when the signal arrives */
    return syscall(SYS_rt_tgsigqueueinfo, recorded->pid, thread, number, &information) == 0 ? SENT : NOT_SENT;
}

static bool process_is_there(const struct hw_recorded *recorded)
{
    char status[4096];
    const char *state;
    return hw_read_proc(recorded->pid, "status", status, sizeof status) &&
           (state = hw_status_value(status, "State")) && *state != 'Z' && *state != 'X';
}

static bool read_process(struct hw_recorded *recorded)
{
    return pread(recorded->profile, &recorded->process, sizeof recorded->process,
                 (off_t)recorded->process_offset) == (ssize_t)sizeof recorded->process;
}

static bool raise_request(struct hw_recorded *recorded, const struct hw_asking *asking)
{
    const int file = open(recorded->reach, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const off_t offset = (off_t)(recorded->process_offset + asking->request_at);
    const bool fine = file >= 0 && pwrite(file, &asking->request, sizeof asking->request, offset) ==
                                       (ssize_t)sizeof asking->request;
    if (!fine)
        hw_error_set(&recorded->error, "cannot ask process %d for %s: its profile %s cannot be written to: %s",
                     (int)recorded->pid, asking->what, recorded->reach, strerror(errno));
    if (file >= 0)
        close(file);
    return fine;
}

static uint32_t answer_of(const struct hw_recorded *recorded, const struct hw_asking *asking)
{
    uint32_t answer;
    memcpy(&answer, (const char *)&recorded->process + asking->answer_at, sizeof answer);
    return answer;
}

static void say_no_answer(struct hw_recorded *recorded, const struct hw_asking *asking, enum sent sent)
{
    const int pid = (int)recorded->pid;
    if (sent == ALL_BLOCK_IT)
        hw_error_set(&recorded->error,
                     "process %d did not answer within %" PRIu64
                     " s: all its threads block signal %u, and none has used the heap meanwhile. The request for %s stays: it "
                     "is served as soon as one does",
                     pid, asking->timeout_s, recorded->process.dump_signal, asking->what);
    else
        hw_error_set(&recorded->error,
                     "process %d did not answer within %" PRIu64
                     " s: is it stopped, or in the middle of a long call? The request for %s stays: it is served as "
                     "soon as the process can",
                     pid, asking->timeout_s, asking->what);
}

/* False: it makes no sense to go on waiting. */
static bool remind(struct hw_recorded *recorded, const struct hw_asking *asking, enum sent *sent)
{
    if (!process_is_there(recorded)) {
        hw_error_set(&recorded->error, "process %d ended before it could serve a request for %s; its profile is %s",
                     (int)recorded->pid, asking->what, recorded->path);
        return false;
    }
    *sent = send_signal(recorded, asking->signal_value);
    if (*sent != NOT_SENT || errno != EPERM)
        return true;
    hw_error_set(&recorded->error, "no permission to send a signal to process %d: run this command as its user",
                 (int)recorded->pid);
    return false;
}

bool hw_ask(struct hw_recorded *recorded, const struct hw_asking *asking)
{
    const struct timespec moment = {.tv_nsec = POLL_NS};
    const uint64_t polls = asking->timeout_s * (1000000000 / POLL_NS);
    enum sent sent = SENT;
    if (!raise_request(recorded, asking))
        return false;
    for (uint64_t poll = 0; poll < polls; poll++) {
        if (poll % SEND_AGAIN_POLLS == 0 && !remind(recorded, asking, &sent))
            return false;
        nanosleep(&moment, NULL);
        if (!read_process(recorded)) {
            hw_error_set(&recorded->error, "%s cannot be read any more", recorded->path);
            return false;
        }
        if ((int32_t)(answer_of(recorded, asking) - asking->request) >= 0)
            return true;
    }
    say_no_answer(recorded, asking, sent);
    return false;
}
