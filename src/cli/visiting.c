/* visiting.c - see visiting.h and profile/visit.h. */
#include "cli/visiting.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/stopping.h"
#include "profile/visit.h"

#define STOP_NS     500000000ull   /* for the thread to stop that was sent */
#define SOONER_NS   20000l         /* from one look to the next, while the program waits */
#define LATER_NS    2000000l       /* the same while it does not */
#define GIVEN_UP_NS 60000000000ull /* the copy has not begun by then: it was killed */
#define MEASURED_NS 2000000000ull  /* until a thread has ended what it was in the middle of */
#define CALL_NS     10000000000ull /* for the thread that is sent */
#define ATTEMPTS    400            /* to find nobody in the middle of an event */
#define INSIST      100            /* attempts, until that does not matter any more */
#define FLAG_TRAP   0x100ull

/* Why an attempt had no result. */
enum obstacle { NONE, TAKEN, NOBODY };

struct visit {
    struct hw_recorded *recorded;
    pid_t pid;
    struct hw_stop stop;
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

static struct visit visit_of(struct hw_recorded *recorded)
{
    return (struct visit){
        .recorded = recorded,
        .pid = recorded->pid,
        .stop = {.pid = recorded->pid,
                 .alive = recorded->alive,
                 .error = &recorded->error,
                 .otherwise = ", or search at the end of the program with heapwise record --leaks"},
    };
}

/* ---- one thread is sent ---- */

static uint64_t in_process(const struct visit *visit, size_t offset)
{
    return visit->recorded->process.visit + offset;
}
#define FIELD(visit, member) in_process(visit, offsetof(struct hw_visit, member))

static bool in_runtime(const struct visit *visit, const struct hw_stop_thread *thread)
{
    const struct user_regs_struct *general = &thread->general;
    return (general->rip >= visit->call.enter && general->rip < visit->call.enter_end) ||
           (general->rsp >= visit->call.stack && general->rsp < visit->call.stack_end);
}

/* The thread that disturbs least: one that waits in the kernel. Those in the middle of a restartable sequence must not
 * be sent anywhere, and are not in the kernel. NULL: none now. A visitor that was killed may have left a call that
 * nobody answers; one that is answered has a thread there. */
static struct hw_stop_thread *choose(struct visit *visit, bool any, enum obstacle *obstacle)
{
    struct hw_stop_thread *best = NULL;
    *obstacle = NONE;
    for (size_t i = 0; i < visit->stop.count; i++) {
        struct hw_stop_thread *thread = &visit->stop.threads[i];
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
    const uint64_t missed[2] = {visit->stop.missed, (uint64_t)visit->stop.missed_error}, room = visit->call.room;
    const uint32_t filled = 1;
    struct hw_stopped_thread *list = calloc(visit->stop.count + 1, sizeof *list);
    if (!list)
        return fail(visit, "not enough memory");
    size_t count = 0;
    for (size_t i = 0; i < visit->stop.count; i++)
        if (visit->stop.threads[i].listed)
            list[count++] = visit->stop.threads[i].stopped;
    const bool fine =
        hw_stop_write(&visit->stop, room + offsetof(struct hw_visit_room, threads_missed), missed, sizeof missed) &&
        hw_stop_write(&visit->stop, room + offsetof(struct hw_visit_room, thread), list, count * sizeof *list) &&
        hw_stop_write(&visit->stop, room + offsetof(struct hw_visit_room, filled), &filled, sizeof filled);
    free(list);
    return fine;
}

/* While it runs: signals go on to it. False: it has ended. */
static bool pass_signals(const struct visit *visit, struct hw_stop_thread *thread)
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
static bool send(struct visit *visit, struct hw_stop_thread *thread, enum hw_visit_what what, bool insist,
                 const struct hw_visit_options *options)
{
    struct user_regs_struct back = thread->general, there;
    hw_stop_mend(&visit->stop, thread, &back, true);
    struct hw_visit *call = &visit->call;
    const uint64_t registers[HW_VISIT_REGISTERS] = {back.rax, back.rbx, back.rcx, back.rdx, back.rsi, back.rdi,
                                                    back.rbp, back.rsp, back.r8,  back.r9,  back.r10, back.r11,
                                                    back.r12, back.r13, back.r14, back.r15, back.rip, back.eflags};
    memcpy(call->registers, registers, sizeof registers);
    call->thread_count = 0;
    for (size_t i = 0; i < visit->stop.count; i++) {
        visit->stop.threads[i].listed = !visit->stop.threads[i].gone;
        call->thread_count += visit->stop.threads[i].listed;
    }
    call->stage = HW_VISIT_ASKED;
    call->what = what;
    call->result = 0;
    call->insist = insist;
    call->mapped = options->mapped;
    call->keeps = options->keeps;
    if (!hw_stop_write(&visit->stop, FIELD(visit, registers), registers, sizeof registers) ||
        !hw_stop_write(&visit->stop, FIELD(visit, thread_count), &call->thread_count,
                       sizeof *call - offsetof(struct hw_visit, thread_count)))
        return false;
    there = back;
    there.rip = call->enter;
    there.orig_rax = ~0ul;
    hw_stop_set_registers(thread, &there);
    thread->running = true;
    if (ptrace(PTRACE_CONT, thread->tid, NULL, NULL) != 0)
        return hw_stop_say_why(&visit->stop, errno);
    for (const uint64_t until = hw_stop_now_ns() + CALL_NS;;) {
        if (!hw_stop_read(&visit->stop, FIELD(visit, stage), &call->stage, sizeof call->stage) ||
            !pass_signals(visit, thread))
            return fail(visit, "process %d ended during the search", (int)visit->pid);
        if (call->stage == HW_VISIT_DONE)
            break;
        if (hw_stop_now_ns() > until)
            return fail(visit, "process %d did not answer", (int)visit->pid);
        hw_stop_sleep_ns(SOONER_NS);
    }
    return hw_stop_read(&visit->stop, FIELD(visit, result), &call->result, sizeof call->result) &&
           (what != HW_VISIT_SEARCH || call->result <= 0 ||
            (hw_stop_read(&visit->stop, FIELD(visit, room), &call->room, sizeof call->room) && fill_room(visit)));
}

/* It has been sent: stops once more to be let go. */
static void stop_again(struct visit *visit, struct hw_stop_thread *thread)
{
    ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL);
    hw_stop_wait(&visit->stop, thread, hw_stop_now_ns() + STOP_NS);
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
            hw_stop_sleep_ns(LATER_NS);
        bool fine = hw_stop_all(&visit->stop), sent = false;
        struct hw_stop_thread *thread = NULL;
        fine = fine && hw_stop_read(&visit->stop, visit->recorded->process.visit, &visit->call, sizeof visit->call);
        if (fine && visit->call.version != HW_VISIT_VERSION)
            fine = fail(visit, "process %d is recorded by another version of Heapwise", (int)visit->pid);
        if (fine)
            thread = choose(visit, attempt >= INSIST / 2, &obstacle);
        if (fine && thread) {
            fine = send(visit, thread, what, attempt >= INSIST, options);
            sent = fine;
            stop_again(visit, thread);
        }
        hw_stop_let_go(&visit->stop);
        *stopped_ns = hw_stop_now_ns() - visit->stop.begin_ns;
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
    const uint64_t begin = hw_stop_now_ns();
    for (bool over = false;;
         over = room->owner ? room->owner & FUTEX_OWNER_DIED : hw_stop_now_ns() - begin > GIVEN_UP_NS) {
        if (!process_is_there(visit) || !hw_stop_read(&visit->stop, visit->call.room, room, sizeof *room))
            return fail(visit, "process %d ended during the search", (int)visit->pid);
        if (room->done)
            return true;
        if (over)
            return fail(visit, "the search of process %d was killed (is memory short?)", (int)visit->pid);
        hw_stop_let_go(&visit->stop);
        hw_stop_sleep_ns(LATER_NS);
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
    return hw_stop_read(&visit->stop, visit->call.room + room->leaks, visited->leaks,
                        visited->leak_count * sizeof *visited->leaks) &&
           hw_stop_read(&visit->stop, visit->call.room + room->keeps, visited->keeps, visited->keeps_size);
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
    if (process->flags & HW_PROCESS_ATTACHED)
        return fail(visit, "process %d is recorded since heapwise attach: blocks from before are not known", pid);
    if (!process->visit)
        return fail(visit, "process %d is recorded by a version of Heapwise that cannot search it", pid);
    return true;
}

struct hw_visit_options hw_visit_recorded(struct hw_recorded *recorded)
{
    struct visit visit = visit_of(recorded);
    const bool known = recorded->process.visit &&
                       hw_stop_read(&visit.stop, recorded->process.visit, &visit.call, sizeof visit.call) &&
                       visit.call.version == HW_VISIT_VERSION;
    return (struct hw_visit_options){.mapped = known && visit.call.records_mapped,
                                     .keeps = known && visit.call.records_keeps,
                                     .examined = known && visit.call.records_examined};
}

bool hw_visit_search(struct hw_recorded *recorded, const struct hw_visit_options *options,
                     bool (*copied)(void *closure), void *closure, struct hw_visited *visited)
{
    struct visit visit = visit_of(recorded);
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
    free(visit.stop.threads);
    return fine;
}

bool hw_visit_measure(struct hw_recorded *recorded)
{
    static const struct hw_visit_options none;
    struct visit visit = visit_of(recorded);
    uint64_t stopped_ns;
    uint32_t before = 0, after = 0;
    sigset_t all, old;
    if (!recorded->process.visit ||
        !hw_stop_read(&visit.stop, recorded->process.visit, &visit.call, sizeof visit.call) ||
        visit.call.version != HW_VISIT_VERSION)
        return fail(&visit, "process %d is recorded by another version of Heapwise, or may not be read",
                    (int)visit.pid);
    const uint64_t counter = visit.call.measured;
    if (!hw_stop_read(&visit.stop, counter, &before, sizeof before))
        return false;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);
    bool fine = call(&visit, HW_VISIT_MEASURE, &none, &stopped_ns);
    sigprocmask(SIG_SETMASK, &old, NULL);
    free(visit.stop.threads);
    for (const uint64_t until = hw_stop_now_ns() + MEASURED_NS; fine; hw_stop_sleep_ns(LATER_NS)) {
        fine = hw_stop_read(&visit.stop, counter, &after, sizeof after);
        if (fine && after != before)
            return true;
        if (fine && hw_stop_now_ns() > until)
            fine = fail(&visit, "process %d was in the middle of an allocation, and has not used the heap since",
                        (int)visit.pid);
    }
    return false;
}
