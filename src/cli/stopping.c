/* stopping.c - see stopping.h.
 *
 * All threads of the process are stopped by ptrace, which needs no help of theirs: they may sleep in the kernel, hold
 * any lock, or block all signals. A stop without a signal is not to be noticed: most system calls go on by themselves
 * afterwards, and those that would return EINTR are begun again here. */
#include "cli/stopping.h"

#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <linux/audit.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "cli/call_filter.h"
#include "cli/recorded.h"

#define STOP_NS     500000000ull   /* for all threads to stop: some system calls cannot be interrupted */
#define RUNNABLE_NS 10000000000ull /* the same of one that only waits for a processor */
#define SOONER_NS   20000l         /* from one look to the next, while the program waits */
#define ROUNDS      64             /* of listing threads */

/* Of the machine: what the kernel does when it begins an interrupted system call again. */
#define SYSCALL_BYTES         2
#define ERESTARTSYS           512
#define ERESTARTNOINTR        513
#define ERESTARTNOHAND        514
#define ERESTART_RESTARTBLOCK 516

static bool fail(struct hw_stop *stop, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(struct hw_stop *stop, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(stop->error->message, sizeof stop->error->message, format, arguments);
    va_end(arguments);
    return false;
}

uint64_t hw_stop_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool hw_stop_is_cancelled(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM) || sigismember(&pending, SIGHUP));
}

void hw_stop_sleep_ns(long ns)
{
    const struct timespec moment = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    nanosleep(&moment, NULL);
}

/* ---- its memory ---- */

bool hw_stop_read(struct hw_stop *stop, uint64_t address, void *buffer, size_t size)
{
    for (size_t done = 0; done < size;) {
        const struct iovec to = {(char *)buffer + done, size - done},
                           from = {(char *)(uintptr_t)address + done, size - done};
        const ssize_t got = process_vm_readv(stop->alive, &to, 1, &from, 1, 0);
        if (got <= 0)
            return fail(stop, "process %d ended, or its memory cannot be read: %s", (int)stop->pid,
                        got ? strerror(errno) : "it is not there");
        done += (size_t)got;
    }
    return true;
}

bool hw_stop_write(struct hw_stop *stop, uint64_t address, const void *buffer, size_t size)
{
    for (size_t done = 0; done < size;) {
        const struct iovec from = {(char *)(uintptr_t)buffer + done, size - done},
                           to = {(char *)(uintptr_t)address + done, size - done};
        const ssize_t put = process_vm_writev(stop->alive, &from, 1, &to, 1, 0);
        if (put <= 0)
            return fail(stop, "process %d ended, or its memory cannot be written to: %s", (int)stop->pid,
                        put ? strerror(errno) : "it is not there");
        done += (size_t)put;
    }
    return true;
}

/* ---- its threads ---- */

static bool thread_status(const struct hw_stop *stop, pid_t tid, char *status, size_t size)
{
    char name[64];
    snprintf(name, sizeof name, "task/%d/status", (int)tid);
    return hw_read_proc(stop->pid, name, status, size);
}

static uint64_t signal_set(const char *status, const char *name)
{
    const char *value = hw_status_value(status, name);
    return value ? strtoull(value, NULL, 16) : 0;
}

/* A signal is on its way to the thread, which may be why its system call has ended. Where the kernel cannot continue
 * the call only signals count that have a handler. */
static bool is_signalled(const struct hw_stop *stop, const struct hw_stop_thread *thread)
{
    char status[4096];
    if (!thread_status(stop, thread->tid, status, sizeof status))
        return true;
    const uint64_t here = thread->by_signal ? 1ull << (thread->stopped.signal - 1) : 0,
                   coming =
                       (signal_set(status, "SigPnd") | signal_set(status, "ShdPnd")) & ~signal_set(status, "SigBlk");
    return (here | coming) & (thread->no_restart ? signal_set(status, "SigCgt") : ~0ull);
}

static bool is_listed(const struct hw_stop *stop, pid_t tid)
{
    for (size_t i = 0; i < stop->count; i++)
        if (stop->threads[i].tid == tid)
            return true;
    return false;
}

bool hw_stop_say_why(struct hw_stop *stop, int error)
{
    char status[4096];
    const int pid = (int)stop->pid;
    const bool known = hw_read_proc(stop->pid, "status", status, sizeof status);
    const char *tracer = known ? hw_status_value(status, "TracerPid") : NULL;
    if (!known || error == ESRCH)
        return fail(stop, "process %d has ended", pid);
    if (tracer && strtol(tracer, NULL, 10))
        return fail(stop, "process %d is traced by process %ld (a debugger, strace, or another heapwise)", pid,
                    strtol(tracer, NULL, 10));
    if ((error == EPERM || error == EACCES) && geteuid() == 0)
        return fail(stop,
                    "no permission to stop process %d, not even for root: the kernel protects it, or a container "
                    "(CAP_SYS_PTRACE), kernel.yama.ptrace_scope or a security module forbids it%s",
                    pid, stop->otherwise ? stop->otherwise : "");
    if (error == EPERM || error == EACCES)
        return fail(stop,
                    "no permission to stop process %d: only its user or root may, and a setting of the kernel "
                    "(kernel.yama.ptrace_scope) or of a container (CAP_SYS_PTRACE) can forbid it to the user. Run this "
                    "command as root%s",
                    pid, stop->otherwise ? stop->otherwise : "");
    return fail(stop, "process %d cannot be stopped: %s", pid, strerror(error));
}

/* Begins to stop a thread. */
static bool seize(struct hw_stop *stop, pid_t tid)
{
    if (stop->count == stop->room) {
        const size_t room = stop->room ? 2 * stop->room : 64;
        struct hw_stop_thread *grown = realloc(stop->threads, room * sizeof *grown);
        if (!grown)
            return fail(stop, "not enough memory");
        stop->threads = grown;
        stop->room = room;
    }
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0) {
        const int error = errno;
        char status[4096];
        const char *state = thread_status(stop, tid, status, sizeof status) ? hw_status_value(status, "State") : NULL;
        return !state || *state == 'Z' || *state == 'X' ? true : hw_stop_say_why(stop, error);
    }
    ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
    struct hw_stop_thread *thread = &stop->threads[stop->count++];
    memset(thread, 0, sizeof *thread);
    thread->tid = tid;
    thread->stopped.tid = tid;
    return true;
}

static bool seize_listed(struct hw_stop *stop, DIR *list)
{
    rewinddir(list);
    for (struct dirent *entry; (entry = readdir(list));) {
        const pid_t tid = isdigit((unsigned char)*entry->d_name) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
        if (tid && !is_listed(stop, tid) && !seize(stop, tid))
            return false;
    }
    return true;
}

/* ---- system calls that the stop has interrupted ---- */

static bool is_begun_again(long call)
{
    static const long calls[] = {
#define HW_CALL(name) SYS_##name,
#include "profile/calls_begun_again.def"
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i] == call)
            return true;
    return false;
}

/* nanosleep, poll and a few others go on by the system call restart_syscall, which a filter may forbid. Filters that
 * cannot be read permit it. */
static bool may_restart(const struct hw_stop *stop, pid_t tid)
{
    static struct sock_filter code[BPF_MAXINSNS];
    const struct hw_filtered_call call = {.data = {.nr = SYS_restart_syscall, .arch = AUDIT_ARCH_X86_64},
                                          .unknown = ~3u};
    char status[8192];
    const char *mode = thread_status(stop, tid, status, sizeof status) ? hw_status_value(status, "Seccomp") : NULL;
    if (!mode || *mode != '0' + SECCOMP_MODE_FILTER)
        return true;
    uint32_t strongest = SECCOMP_RET_ALLOW, action;
    for (unsigned long i = 0;; i++) {
        const long count = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)i, NULL);
        if (count <= 0 || count > BPF_MAXINSNS || ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)i, code) != count)
            break;
        if (!hw_call_filter_run(code, (size_t)count, &call, &action))
            return false;
        strongest = hw_call_filter_stronger(strongest, action);
    }
    strongest &= SECCOMP_RET_ACTION_FULL;
    return strongest == SECCOMP_RET_ALLOW || strongest == SECCOMP_RET_LOG;
}

/* Makes GENERAL what the thread would go on with, had nothing but the stop happened: the kernel does the same for calls
 * that it restarts, which ALL are. False: nothing to do. */
bool hw_stop_mend(const struct hw_stop *stop, const struct hw_stop_thread *thread, struct user_regs_struct *general,
                  bool all)
{
    const long result = (long)general->rax, call = (long)general->orig_rax;
    if (call < 0 || (thread->by_signal && !thread->no_restart))
        return false;
    if (((result == -EINTR && is_begun_again(call)) || (result == -ERESTART_RESTARTBLOCK && thread->no_restart)) &&
        !is_signalled(stop, thread))
        general->rax = (unsigned long)call;
    else if (all && (result == -ERESTARTSYS || result == -ERESTARTNOINTR || result == -ERESTARTNOHAND))
        general->rax = (unsigned long)call;
    else if (all && result == -ERESTART_RESTARTBLOCK)
        general->rax = SYS_restart_syscall;
    else
        return false;
    general->rip -= SYSCALL_BYTES;
    general->orig_rax = ~0ul;
    return true;
}

void hw_stop_set_registers(const struct hw_stop_thread *thread, const struct user_regs_struct *general)
{
    const struct iovec part = {(void *)(uintptr_t)general, sizeof *general};
    ptrace(PTRACE_SETREGSET, thread->tid, NT_PRSTATUS, &part);
}

/* A stop was reported, or an end. System calls are mended at once: this command may be killed. */
static void note_stop(const struct hw_stop *stop, struct hw_stop_thread *thread, int status)
{
    struct user_regs_struct *general = &thread->general;
    struct iovec part = {general, sizeof *general};
    thread->gone = !WIFSTOPPED(status);
    thread->running = false;
    if (thread->gone)
        return;
    thread->by_signal = status >> 16 == 0;
    thread->stopped.signal = thread->by_signal ? WSTOPSIG(status) : 0;
    if (ptrace(PTRACE_GETREGSET, thread->tid, NT_PRSTATUS, &part) != 0 || part.iov_len != sizeof *general)
        return;
    uint64_t *words = thread->stopped.registers;
    thread->stopped.known = true;
    thread->stopped.stack_pointer = general->rsp;
    thread->stopped.thread_pointer = general->fs_base;
    memcpy(words, general, sizeof *general);
    part = (struct iovec){words + sizeof *general / sizeof *words, sizeof(struct user_fpregs_struct)};
    ptrace(PTRACE_GETREGSET, thread->tid, NT_PRFPREG, &part);
    struct user_regs_struct mended = *general;
    thread->no_restart =
        (long)general->orig_rax >= 0 && (long)general->rax == -ERESTART_RESTARTBLOCK && !may_restart(stop, thread->tid);
    thread->mended = hw_stop_mend(stop, thread, &mended, false);
    if (thread->mended)
        hw_stop_set_registers(thread, &mended);
}

_Static_assert(sizeof(struct user_regs_struct) + sizeof(struct user_fpregs_struct) <= HW_REGISTERS * sizeof(uint64_t),
               "room for registers");

bool hw_stop_has_state(const struct hw_stop *stop, pid_t tid, const char *states)
{
    char status[4096];
    const char *state = thread_status(stop, tid, status, sizeof status) ? hw_status_value(status, "State") : NULL;
    return state && strchr(states, *state);
}

/* The kernel shows the call, its arguments, and last the stack pointer. */
struct shown_call {
    unsigned long long number, arguments[6], stack_pointer;
};

static bool read_call(const struct hw_stop *stop, pid_t tid, struct shown_call *call)
{
    char name[64], text[256];
    unsigned long long *arguments = call->arguments;
    snprintf(name, sizeof name, "task/%d/syscall", (int)tid);
    return hw_read_proc(stop->pid, name, text, sizeof text) &&
           sscanf(text, "%llu %llx %llx %llx %llx %llx %llx %llx", &call->number, &arguments[0], &arguments[1],
                  &arguments[2], &arguments[3], &arguments[4], &arguments[5], &call->stack_pointer) == 8;
}

bool hw_stop_is_in_call(const struct hw_stop *stop, const struct hw_stop_thread *thread)
{
    struct shown_call call;
    return read_call(stop, thread->tid, &call);
}

/* In vfork, and as long as the child wants. */
bool hw_stop_is_in_vfork(const struct hw_stop *stop, struct hw_stop_thread *thread)
{
    struct shown_call shown;
    if (!read_call(stop, thread->tid, &shown))
        return false;
    const unsigned long long call = shown.number;
    uint64_t flags = shown.arguments[0];
    if (call == SYS_clone3) { /* a structure begins with them */
        const struct iovec to = {&flags, sizeof flags}, from = {(void *)(uintptr_t)shown.arguments[0], sizeof flags};
        if (process_vm_readv(stop->alive, &to, 1, &from, 1, 0) != (ssize_t)sizeof flags)
            return false;
    }
    if (call != SYS_vfork && !((call == SYS_clone || call == SYS_clone3) && flags & CLONE_VFORK))
        return false;
    thread->stopped.stack_pointer = shown.stack_pointer;
    return true;
}

/* Whether it has stopped, or ended, by UNTIL (0: now). */
bool hw_stop_wait(const struct hw_stop *stop, struct hw_stop_thread *thread, uint64_t until)
{
    unsigned looks = 0;
    for (int status;;) {
        const pid_t got = waitpid(thread->tid, &status, __WALL | WNOHANG);
        if (got == thread->tid) {
            note_stop(stop, thread, status);
            return true;
        }
        if (got < 0 && errno != EINTR) {
            thread->gone = true;
            return true;
        }
        if (hw_stop_now_ns() > until &&
            !(until && hw_stop_now_ns() < until + RUNNABLE_NS && hw_stop_has_state(stop, thread->tid, "R")))
            return false;
        if (++looks % 8 == 0 && hw_stop_is_in_vfork(stop, thread))
            return false;
        hw_stop_sleep_ns(SOONER_NS);
    }
}

/* Those from FIRST on that are traced. */
static void wait_for_stops(struct hw_stop *stop, size_t first, uint64_t until)
{
    for (size_t i = first; i < stop->count; i++)
        if (!stop->threads[i].held && !hw_stop_wait(stop, &stop->threads[i], until)) {
            stop->missed++;
            stop->missed_error = ETIMEDOUT;
        }
}

bool hw_stop_these(struct hw_stop *stop, const pid_t *tids, size_t count)
{
    bool fine = true;
    for (size_t i = 0; fine && i < count; i++)
        fine = is_listed(stop, tids[i]) || seize(stop, tids[i]);
    wait_for_stops(stop, 0, hw_stop_now_ns() + STOP_NS);
    return fine;
}

/* Stops all threads, also those that others make until they stop. */
bool hw_stop_all(struct hw_stop *stop)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)stop->pid);
    DIR *list = opendir(path);
    if (!list)
        return fail(stop, "process %d has ended", (int)stop->pid);
    stop->begin_ns = hw_stop_now_ns();
    stop->missed = 0;
    bool fine = true;
    const uint64_t until = stop->begin_ns + STOP_NS;
    for (size_t before = 0, round = 0; fine && round < ROUNDS && (!round || stop->count != before); round++) {
        before = round ? stop->count : 0; /* some are traced since the attempt before */
        fine = seize_listed(stop, list);
        wait_for_stops(stop, before, until);
    }
    closedir(list);
    return fine && (stop->count || fail(stop, "process %d has ended", (int)stop->pid));
}

struct hw_stop_thread *hw_stop_one(struct hw_stop *stop, pid_t tid)
{
    const size_t before = stop->count;
    if (is_listed(stop, tid) || !seize(stop, tid) || stop->count == before)
        return NULL;
    struct hw_stop_thread *thread = &stop->threads[before];
    return hw_stop_wait(stop, thread, hw_stop_now_ns() + STOP_NS) && !thread->gone && thread->stopped.known ? thread
                                                                                                            : NULL;
}

void hw_stop_detach(const struct hw_stop *stop, struct hw_stop_thread *thread)
{
    if (thread->mended && is_signalled(stop, thread)) /* now it is to return EINTR */
        hw_stop_set_registers(thread, &thread->general);
    ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(long)thread->stopped.signal);
}

/* All that have stopped. The others are when they do, or with this process. */
void hw_stop_let_go(struct hw_stop *stop)
{
    size_t left = 0;
    for (size_t i = 0; i < stop->count; i++) {
        struct hw_stop_thread *thread = &stop->threads[i];
        if (thread->held) {
            stop->threads[left++] = *thread;
            continue;
        }
        if (thread->running || !thread->stopped.known)
            hw_stop_wait(stop, thread, 0);
        if (!thread->gone && !thread->running && thread->stopped.known)
            hw_stop_detach(stop, thread);
        else if (!thread->gone)
            stop->threads[left++] = *thread;
    }
    stop->count = left;
}
