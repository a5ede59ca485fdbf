/* visiting.c - see visiting.h and profile/visit.h.
 *
 * All threads of the process are stopped by ptrace, which needs no help of theirs: they may sleep in the kernel, hold
 * any lock, or block all signals. A stop without a signal is not to be noticed: most system calls go on by themselves
 * afterwards, and those that would return EINTR are begun again here. */
#include "cli/visiting.h"

#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "profile/visit.h"

#define STOP_NS     500000000ull   /* for all threads to stop: some system calls cannot be interrupted */
#define RUNNABLE_NS 10000000000ull /* the same of one that only waits for a processor */
#define SOONER_NS   20000l         /* from one look to the next, while the program waits */
#define LATER_NS    2000000l       /* the same while it does not */
#define GIVEN_UP_NS 60000000000ull /* the copy has not begun by then: it was killed */
#define MEASURED_NS 2000000000ull  /* until a thread has ended what it was in the middle of */
#define CALL_NS     10000000000ull /* for the thread that is sent */
#define ATTEMPTS    400            /* to find nobody in the middle of an event */
#define INSIST      100            /* attempts, until that does not matter any more */
#define ROUNDS      64             /* of listing threads */

/* Of the machine: what the kernel does when it begins an interrupted system call again. */
#define SYSCALL_BYTES         2
#define ERESTARTSYS           512
#define ERESTARTNOINTR        513
#define ERESTARTNOHAND        514
#define ERESTART_RESTARTBLOCK 516
#define FLAG_TRAP             0x100ull

struct thread {
    struct hw_stopped_thread stopped;
    pid_t tid; /* as it is numbered here */
    bool gone, by_signal;
    bool running;                    /* it has been sent */
    bool listed;                     /* …in the room */
    bool mended;                     /* its system call will be begun again */
    struct user_regs_struct general; /* as they were at the stop */
};

/* Why an attempt had no result. */
enum obstacle { NONE, TAKEN, NOBODY };

struct visit {
    struct hw_recorded *recorded;
    pid_t pid;
    struct thread *threads; /* that are traced: after they were let go, those that have not stopped yet */
    size_t count, room;
    size_t missed;
    int missed_error;
    uint64_t begin_ns; /* when the first one was stopped */
    struct hw_visit call;
};

static bool fail(struct visit *visit, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(struct visit *visit, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(visit->recorded->error.message, sizeof visit->recorded->error.message, format, arguments);
    va_end(arguments);
    return false;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void sleep_ns(long ns)
{
    const struct timespec moment = {.tv_nsec = ns};
    nanosleep(&moment, NULL);
}

/* ---- its memory ---- */

static bool read_memory(struct visit *visit, uint64_t address, void *buffer, size_t size)
{
    for (size_t done = 0; done < size;) {
        const struct iovec to = {(char *)buffer + done, size - done},
                           from = {(char *)(uintptr_t)address + done, size - done};
        const ssize_t got = process_vm_readv(visit->recorded->alive, &to, 1, &from, 1, 0);
        if (got <= 0)
            return fail(visit, "process %d ended, or its memory cannot be read: %s", (int)visit->pid,
                        got ? strerror(errno) : "it is not there");
        done += (size_t)got;
    }
    return true;
}

static bool write_memory(struct visit *visit, uint64_t address, const void *buffer, size_t size)
{
    for (size_t done = 0; done < size;) {
        const struct iovec from = {(char *)(uintptr_t)buffer + done, size - done},
                           to = {(char *)(uintptr_t)address + done, size - done};
        const ssize_t put = process_vm_writev(visit->recorded->alive, &from, 1, &to, 1, 0);
        if (put <= 0)
            return fail(visit, "process %d ended, or its memory cannot be written to: %s", (int)visit->pid,
                        put ? strerror(errno) : "it is not there");
        done += (size_t)put;
    }
    return true;
}

/* ---- its threads ---- */

static bool thread_status(const struct visit *visit, pid_t tid, char *status, size_t size)
{
    char name[64];
    snprintf(name, sizeof name, "task/%d/status", (int)tid);
    return hw_read_proc(visit->pid, name, status, size);
}

static uint64_t signal_set(const char *status, const char *name)
{
    const char *value = hw_status_value(status, name);
    return value ? strtoull(value, NULL, 16) : 0;
}

/* A signal is on its way to the thread, which may be why its system call has ended. */
static bool is_signalled(const struct visit *visit, pid_t tid)
{
    char status[4096];
    return !thread_status(visit, tid, status, sizeof status) ||
           ((signal_set(status, "SigPnd") | signal_set(status, "ShdPnd")) & ~signal_set(status, "SigBlk"));
}

static bool is_listed(const struct visit *visit, pid_t tid)
{
    for (size_t i = 0; i < visit->count; i++)
        if (visit->threads[i].tid == tid)
            return true;
    return false;
}

static bool say_not_traced(struct visit *visit, int error)
{
    char status[4096];
    const int pid = (int)visit->pid;
    const bool known = hw_read_proc(visit->pid, "status", status, sizeof status);
    const char *tracer = known ? hw_status_value(status, "TracerPid") : NULL;
    if (!known || error == ESRCH)
        return fail(visit, "process %d has ended", pid);
    if (tracer && strtol(tracer, NULL, 10))
        return fail(visit, "process %d is traced by process %ld (a debugger, strace, or another heapwise leaks)", pid,
                    strtol(tracer, NULL, 10));
    if (error == EPERM || error == EACCES)
        return fail(visit,
                    "no permission to stop process %d: only its user or root may, and a setting of the kernel "
                    "(kernel.yama.ptrace_scope) or of a container (CAP_SYS_PTRACE) can forbid it to the user. Run this "
                    "command as root, or search at the end of the program with heapwise record --leaks",
                    pid);
    return fail(visit, "process %d cannot be stopped: %s", pid, strerror(error));
}

/* Begins to stop a thread. */
static bool seize(struct visit *visit, pid_t tid)
{
    if (visit->count == visit->room) {
        const size_t room = visit->room ? 2 * visit->room : 64;
        struct thread *grown = realloc(visit->threads, room * sizeof *grown);
        if (!grown)
            return fail(visit, "not enough memory");
        visit->threads = grown;
        visit->room = room;
    }
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0) {
        const int error = errno;
        char status[4096];
        const char *state = thread_status(visit, tid, status, sizeof status) ? hw_status_value(status, "State") : NULL;
        return !state || *state == 'Z' || *state == 'X' ? true : say_not_traced(visit, error);
    }
    ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
    struct thread *thread = &visit->threads[visit->count++];
    memset(thread, 0, sizeof *thread);
    thread->tid = tid;
    thread->stopped.tid = tid;
    return true;
}

static bool seize_listed(struct visit *visit, DIR *list)
{
    rewinddir(list);
    for (struct dirent *entry; (entry = readdir(list));) {
        const pid_t tid = isdigit((unsigned char)*entry->d_name) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
        if (tid && !is_listed(visit, tid) && !seize(visit, tid))
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

/* Makes GENERAL what the thread would go on with, had nothing but the stop happened: the kernel does the same for calls
 * that it restarts, which ALL are. False: nothing to do. */
static bool mend(const struct visit *visit, const struct thread *thread, struct user_regs_struct *general, bool all)
{
    const long result = (long)general->rax, call = (long)general->orig_rax;
    if (call < 0 || thread->by_signal)
        return false;
    if (result == -EINTR && is_begun_again(call) && !is_signalled(visit, thread->tid))
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

static void set_registers(const struct thread *thread, const struct user_regs_struct *general)
{
    const struct iovec part = {(void *)(uintptr_t)general, sizeof *general};
    ptrace(PTRACE_SETREGSET, thread->tid, NT_PRSTATUS, &part);
}

/* A stop was reported, or an end. System calls are mended at once: this command may be killed. */
static void note_stop(const struct visit *visit, struct thread *thread, int status)
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
    thread->mended = mend(visit, thread, &mended, false);
    if (thread->mended)
        set_registers(thread, &mended);
}

_Static_assert(sizeof(struct user_regs_struct) + sizeof(struct user_fpregs_struct) <= HW_REGISTERS * sizeof(uint64_t),
               "room for registers");

/* It will stop as soon as it gets a processor. */
static bool is_runnable(const struct visit *visit, pid_t tid)
{
    char status[4096];
    const char *state = thread_status(visit, tid, status, sizeof status) ? hw_status_value(status, "State") : NULL;
    return state && *state == 'R';
}

/* In vfork, and as long as the child wants: the kernel shows the call and its arguments, and last the stack pointer. */
static bool is_in_vfork(const struct visit *visit, struct thread *thread)
{
    char name[64], text[256];
    unsigned long long call, arguments[6], stack_pointer;
    snprintf(name, sizeof name, "task/%d/syscall", (int)thread->tid);
    if (!hw_read_proc(visit->pid, name, text, sizeof text) ||
        sscanf(text, "%llu %llx %llx %llx %llx %llx %llx %llx", &call, &arguments[0], &arguments[1], &arguments[2],
               &arguments[3], &arguments[4], &arguments[5], &stack_pointer) != 8)
        return false;
    uint64_t flags = arguments[0];
    if (call == SYS_clone3) { /* a structure begins with them */
        const struct iovec to = {&flags, sizeof flags}, from = {(void *)(uintptr_t)arguments[0], sizeof flags};
        if (process_vm_readv(visit->recorded->alive, &to, 1, &from, 1, 0) != (ssize_t)sizeof flags)
            return false;
    }
    if (call != SYS_vfork && !((call == SYS_clone || call == SYS_clone3) && flags & CLONE_VFORK))
        return false;
    thread->stopped.stack_pointer = stack_pointer;
    return true;
}

/* Whether it has stopped, or ended, by UNTIL (0: now). */
static bool wait_for(const struct visit *visit, struct thread *thread, uint64_t until)
{
    unsigned looks = 0;
    for (int status;;) {
        const pid_t got = waitpid(thread->tid, &status, __WALL | WNOHANG);
        if (got == thread->tid) {
            note_stop(visit, thread, status);
            return true;
        }
        if (got < 0 && errno != EINTR) {
            thread->gone = true;
            return true;
        }
        if (now_ns() > until && !(until && now_ns() < until + RUNNABLE_NS && is_runnable(visit, thread->tid)))
            return false;
        if (++looks % 8 == 0 && is_in_vfork(visit, thread))
            return false;
        sleep_ns(SOONER_NS);
    }
}

/* Stops all threads, also those that others make until they stop. */
static bool stop_all(struct visit *visit)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)visit->pid);
    DIR *list = opendir(path);
    if (!list)
        return fail(visit, "process %d has ended", (int)visit->pid);
    visit->begin_ns = now_ns();
    visit->missed = 0;
    bool fine = true;
    const uint64_t until = visit->begin_ns + STOP_NS;
    for (size_t before = 0, round = 0; fine && round < ROUNDS && (!round || visit->count != before); round++) {
        before = round ? visit->count : 0; /* some are traced since the attempt before */
        fine = seize_listed(visit, list);
        for (size_t i = before; i < visit->count; i++)
            if (!wait_for(visit, &visit->threads[i], until)) {
                visit->missed++;
                visit->missed_error = ETIMEDOUT;
            }
    }
    closedir(list);
    return fine && (visit->count || fail(visit, "process %d has ended", (int)visit->pid));
}

static void detach(const struct visit *visit, struct thread *thread)
{
    if (thread->mended && is_signalled(visit, thread->tid)) /* now it is to return EINTR */
        set_registers(thread, &thread->general);
    ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(long)thread->stopped.signal);
}

/* All that have stopped. The others are when they do, or with this process. */
static void let_go(struct visit *visit)
{
    size_t left = 0;
    for (size_t i = 0; i < visit->count; i++) {
        struct thread *thread = &visit->threads[i];
        if (thread->running || !thread->stopped.known)
            wait_for(visit, thread, 0);
        if (!thread->gone && !thread->running && thread->stopped.known)
            detach(visit, thread);
        else if (!thread->gone)
            visit->threads[left++] = *thread;
    }
    visit->count = left;
}

/* ---- one of them is sent ---- */

static uint64_t in_process(const struct visit *visit, size_t offset)
{
    return visit->recorded->process.visit + offset;
}
#define FIELD(visit, member) in_process(visit, offsetof(struct hw_visit, member))

static bool in_runtime(const struct visit *visit, const struct thread *thread)
{
    const struct user_regs_struct *general = &thread->general;
    return (general->rip >= visit->call.enter && general->rip < visit->call.enter_end) ||
           (general->rsp >= visit->call.stack && general->rsp < visit->call.stack_end);
}

/* The thread that disturbs least: one that waits in the kernel. Those in the middle of a restartable sequence must not
 * be sent anywhere, and are not in the kernel. NULL: none now. A visitor that was killed may have left a call that
 * nobody answers; one that is answered has a thread there. */
static struct thread *choose(struct visit *visit, bool any, enum obstacle *obstacle)
{
    struct thread *best = NULL;
    *obstacle = NONE;
    for (size_t i = 0; i < visit->count; i++) {
        struct thread *thread = &visit->threads[i];
        if (thread->gone || !thread->stopped.known)
            continue;
        if (in_runtime(visit, thread)) {
            *obstacle = TAKEN;
            return NULL;
        }
        if (thread->by_signal || (thread->general.eflags & FLAG_TRAP))
            continue;
        const bool waits = (long)thread->general.orig_rax >= 0;
        if (!best && (waits || any))
            best = thread;
        else if (best && waits && (long)best->general.orig_rax < 0)
            best = thread;
    }
    if (!best)
        *obstacle = NOBODY;
    return best;
}

/* The copy waits for that. */
static bool fill_room(struct visit *visit)
{
    const uint64_t missed[2] = {visit->missed, (uint64_t)visit->missed_error}, room = visit->call.room;
    const uint32_t filled = 1;
    struct hw_stopped_thread *list = calloc(visit->count + 1, sizeof *list);
    if (!list)
        return fail(visit, "not enough memory");
    size_t count = 0;
    for (size_t i = 0; i < visit->count; i++)
        if (visit->threads[i].listed)
            list[count++] = visit->threads[i].stopped;
    const bool fine =
        write_memory(visit, room + offsetof(struct hw_visit_room, threads_missed), missed, sizeof missed) &&
        write_memory(visit, room + offsetof(struct hw_visit_room, thread), list, count * sizeof *list) &&
        write_memory(visit, room + offsetof(struct hw_visit_room, filled), &filled, sizeof filled);
    free(list);
    return fine;
}

/* While it runs: signals go on to it. False: it has ended. */
static bool pass_signals(const struct visit *visit, struct thread *thread)
{
    int status;
    const pid_t got = waitpid(thread->tid, &status, __WALL | WNOHANG);
    (void)visit;
    if (got == 0 || (got < 0 && errno == EINTR))
        return true;
    if (got < 0 || !WIFSTOPPED(status)) {
        thread->gone = true;
        return false;
    }
    return ptrace(PTRACE_CONT, thread->tid, NULL, (void *)(long)(status >> 16 ? 0 : WSTOPSIG(status))) == 0;
}

/* The thread goes there and back, with the others stopped. */
static bool send(struct visit *visit, struct thread *thread, enum hw_visit_what what, bool insist,
                 const struct hw_visit_options *options)
{
    struct user_regs_struct back = thread->general, there;
    mend(visit, thread, &back, true);
    struct hw_visit *call = &visit->call;
    const uint64_t registers[HW_VISIT_REGISTERS] = {back.rax, back.rbx, back.rcx, back.rdx, back.rsi, back.rdi,
                                                    back.rbp, back.rsp, back.r8,  back.r9,  back.r10, back.r11,
                                                    back.r12, back.r13, back.r14, back.r15, back.rip, back.eflags};
    memcpy(call->registers, registers, sizeof registers);
    call->thread_count = 0;
    for (size_t i = 0; i < visit->count; i++) {
        visit->threads[i].listed = !visit->threads[i].gone;
        call->thread_count += visit->threads[i].listed;
    }
    call->stage = HW_VISIT_ASKED;
    call->what = what;
    call->result = 0;
    call->insist = insist;
    call->mapped = options->mapped;
    call->keeps = options->keeps;
    if (!write_memory(visit, FIELD(visit, registers), registers, sizeof registers) ||
        !write_memory(visit, FIELD(visit, thread_count), &call->thread_count,
                      sizeof *call - offsetof(struct hw_visit, thread_count)))
        return false;
    there = back;
    there.rip = call->enter;
    there.orig_rax = ~0ul;
    set_registers(thread, &there);
    thread->running = true;
    if (ptrace(PTRACE_CONT, thread->tid, NULL, NULL) != 0)
        return say_not_traced(visit, errno);
    for (const uint64_t until = now_ns() + CALL_NS;;) {
        if (!read_memory(visit, FIELD(visit, stage), &call->stage, sizeof call->stage) || !pass_signals(visit, thread))
            return fail(visit, "process %d ended during the search", (int)visit->pid);
        if (call->stage == HW_VISIT_DONE)
            break;
        if (now_ns() > until)
            return fail(visit, "process %d did not answer", (int)visit->pid);
        sleep_ns(SOONER_NS);
    }
    return read_memory(visit, FIELD(visit, result), &call->result, sizeof call->result) &&
           (what != HW_VISIT_SEARCH || call->result <= 0 ||
            (read_memory(visit, FIELD(visit, room), &call->room, sizeof call->room) && fill_room(visit)));
}

/* It has been sent: stops once more to be let go. */
static void stop_again(struct visit *visit, struct thread *thread)
{
    ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL);
    wait_for(visit, thread, now_ns() + STOP_NS);
}

static bool say_result(struct visit *visit)
{
    const int pid = (int)visit->pid, result = visit->call.result;
    switch (result) {
    case HW_VISIT_QUIET:
        return fail(visit, "process %d has given up system calls (seccomp): it cannot be searched", pid);
    case HW_VISIT_OFF:
        return fail(visit, "process %d is not recorded any more", pid);
    case HW_VISIT_RUNNING:
        return fail(visit, "another search of process %d is still under way", pid);
    case HW_VISIT_BUSY:
        return fail(visit, "process %d was in the middle of an allocation whenever it was stopped", pid);
    default:
        return fail(visit, "process %d could not be copied: %s", pid, strerror(-result));
    }
}

/* One call, in as many attempts as it takes. *STOPPED_NS: how long the program waited in the last one. */
static bool call(struct visit *visit, enum hw_visit_what what, const struct hw_visit_options *options,
                 uint64_t *stopped_ns)
{
    enum obstacle obstacle = NOBODY;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        if (attempt)
            sleep_ns(LATER_NS);
        bool fine = stop_all(visit), sent = false;
        struct thread *thread = NULL;
        fine = fine && read_memory(visit, visit->recorded->process.visit, &visit->call, sizeof visit->call);
        if (fine && visit->call.version != HW_VISIT_VERSION)
            fine = fail(visit, "process %d is recorded by another version of Heapwise", (int)visit->pid);
        if (fine)
            thread = choose(visit, attempt >= INSIST / 2, &obstacle);
        if (fine && thread) {
            fine = send(visit, thread, what, attempt >= INSIST, options);
            sent = fine;
            stop_again(visit, thread);
        }
        let_go(visit);
        *stopped_ns = now_ns() - visit->begin_ns;
        if (!fine)
            return false;
        if (sent && visit->call.result != HW_VISIT_BUSY &&
            !(what == HW_VISIT_CLEAN && visit->call.result == HW_VISIT_RUNNING))
            return visit->call.result >= 0 || say_result(visit);
    }
    return obstacle == NONE    ? say_result(visit)
           : obstacle == TAKEN ? fail(visit, "another search of process %d is at work", (int)visit->pid)
                               : fail(visit,
                                      "process %d could not be stopped: its threads are in system calls that nothing "
                                      "interrupts",
                                      (int)visit->pid);
}

/* ---- the copy ---- */

static bool process_is_there(const struct visit *visit)
{
    char status[4096];
    const char *state;
    return hw_read_proc(visit->recorded->alive, "status", status, sizeof status) &&
           (state = hw_status_value(status, "State")) && *state != 'Z' && *state != 'X';
}

static bool wait_for_copy(struct visit *visit, struct hw_visit_room *room)
{
    const uint64_t begin = now_ns();
    for (bool over = false;; over = room->owner ? room->owner & FUTEX_OWNER_DIED : now_ns() - begin > GIVEN_UP_NS) {
        if (!process_is_there(visit) || !read_memory(visit, visit->call.room, room, sizeof *room))
            return fail(visit, "process %d ended during the search", (int)visit->pid);
        if (room->done)
            return true;
        if (over)
            return fail(visit, "the search of process %d was killed (is memory short?)", (int)visit->pid);
        let_go(visit);
        sleep_ns(LATER_NS);
    }
}

static bool read_result(struct visit *visit, const struct hw_visit_room *room, struct hw_visited *visited)
{
    if (room->error)
        return fail(visit, "process %d could not be searched: %s", (int)visit->pid,
                    room->error == ENOMEM ? "there was no memory for it" : "it cannot read /proc (chroot?)");
    if (room->leak_count > room->leaks_most || room->keeps_bytes > room->keeps_most)
        return fail(visit, "process %d has given a result that cannot be", (int)visit->pid);
    visited->info = room->info;
    visited->leak_count = room->leak_count;
    visited->leaks = calloc(visited->leak_count + 1, sizeof *visited->leaks);
    visited->keeps_size = room->keeps_bytes;
    visited->keeps = malloc(visited->keeps_size + 1);
    visited->keeps_failed = room->keeps_failed;
    if (!visited->leaks || !visited->keeps)
        return fail(visit, "not enough memory");
    return read_memory(visit, visit->call.room + room->leaks, visited->leaks,
                       visited->leak_count * sizeof *visited->leaks) &&
           read_memory(visit, visit->call.room + room->keeps, visited->keeps, visited->keeps_size);
}

/* ---- all of it ---- */

static bool can_be_searched(struct visit *visit)
{
    const struct hw_process_info *process = &visit->recorded->process;
    const int pid = (int)visit->pid;
    if (process->mode == HW_MODE_ALLOCATOR)
        return fail(visit, "process %d is recorded with --mode allocator, in which not every block is known", pid);
    if (process->counting)
        return fail(visit, "process %d is recorded with --paused: not every block is known", pid);
    if (process->sample_bytes)
        return fail(visit, "process %d is recorded with --sample-bytes: not every block is known", pid);
    if (!process->visit)
        return fail(visit, "process %d is recorded by a version of Heapwise that cannot search it", pid);
    return true;
}

struct hw_visit_options hw_visit_recorded(struct hw_recorded *recorded)
{
    struct visit visit = {.recorded = recorded, .pid = recorded->pid};
    const bool known = recorded->process.visit &&
                       read_memory(&visit, recorded->process.visit, &visit.call, sizeof visit.call) &&
                       visit.call.version == HW_VISIT_VERSION;
    return (struct hw_visit_options){.mapped = known && visit.call.records_mapped,
                                     .keeps = known && visit.call.records_keeps,
                                     .examined = known && visit.call.records_examined};
}

bool hw_visit_search(struct hw_recorded *recorded, const struct hw_visit_options *options,
                     bool (*copied)(void *closure), void *closure, struct hw_visited *visited)
{
    struct visit visit = {.recorded = recorded, .pid = recorded->pid};
    uint64_t stopped_ns = 0, unused;
    sigset_t all, old;
    *visited = (struct hw_visited){.leaks = NULL};
    if (!can_be_searched(&visit))
        return false;
    sigfillset(&all); /* who interrupts this command waits until the program runs again */
    sigprocmask(SIG_BLOCK, &all, &old);
    bool fine = call(&visit, HW_VISIT_SEARCH, options, &stopped_ns);
    sigprocmask(SIG_SETMASK, &old, NULL);
    if (fine) {
        struct hw_visit_room room;
        fine = copied(closure);
        fine = wait_for_copy(&visit, &room) && fine && read_result(&visit, &room, visited);
        visited->info.stopped_ns = stopped_ns;
        const struct hw_error error = recorded->error; /* collecting the copy may fail: the result is here */
        sigprocmask(SIG_BLOCK, &all, &old);
        call(&visit, HW_VISIT_CLEAN, options, &unused);
        sigprocmask(SIG_SETMASK, &old, NULL);
        recorded->error = error;
    }
    free(visit.threads);
    return fine;
}

bool hw_visit_measure(struct hw_recorded *recorded)
{
    static const struct hw_visit_options none;
    struct visit visit = {.recorded = recorded, .pid = recorded->pid};
    uint64_t stopped_ns;
    uint32_t before = 0, after = 0;
    sigset_t all, old;
    if (!recorded->process.visit || !read_memory(&visit, recorded->process.visit, &visit.call, sizeof visit.call) ||
        visit.call.version != HW_VISIT_VERSION)
        return fail(&visit, "process %d is recorded by another version of Heapwise, or may not be read",
                    (int)visit.pid);
    const uint64_t counter = visit.call.measured;
    if (!read_memory(&visit, counter, &before, sizeof before))
        return false;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);
    bool fine = call(&visit, HW_VISIT_MEASURE, &none, &stopped_ns);
    sigprocmask(SIG_SETMASK, &old, NULL);
    free(visit.threads);
    for (const uint64_t until = now_ns() + MEASURED_NS; fine; sleep_ns(LATER_NS)) {
        fine = read_memory(&visit, counter, &after, sizeof after);
        if (fine && after != before)
            return true;
        if (fine && now_ns() > until)
            fine = fail(&visit, "process %d was in the middle of an allocation, and has not used the heap since",
                        (int)visit.pid);
    }
    return false;
}
