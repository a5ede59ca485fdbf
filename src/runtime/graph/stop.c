/* stop.c - all other threads of the program stopped where they are, with their registers.
 *
 * A signal would not do: threads may block it, or sit in code that must not be interrupted by a handler. So a helper
 * process that shares all memory with this one attaches to each thread by ptrace, as debuggers do; it may do that to
 * its parent's threads. Whatever locks they hold, nothing here needs one. It detaches when it is asked to, and the
 * kernel does so if it dies. */
#include "runtime/core/core.h"
#include "runtime/core/memory.h"
#include "runtime/core/threads.h"
#include "runtime/graph/internal.h"

#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#define THREADS_MOST 65536u
#define STACK_BYTES  (64ul << 10)
#define PATIENCE_NS  500000000ull   /* for all threads: some system calls cannot be interrupted */
#define RUNNABLE_NS  10000000000ull /* the same of one that only waits for a processor */
#define SOONER_NS    20000ull

enum { NEW, BEGIN, FROZEN, THAW };
static struct {
    struct hw_stopped_threads list;
    char *stack;
    uint32_t stage;
    int pid, caller; /* of the program, and its thread that asks */
    int tracer;
    uint8_t entries[4096]; /* of a directory */
} freeze;

_Static_assert(sizeof(struct user_regs_struct) + sizeof(struct user_fpregs_struct) <= HW_REGISTERS * sizeof(uint64_t),
               "room for registers");

static void set_stage(uint32_t stage)
{
    __atomic_store_n(&freeze.stage, stage, __ATOMIC_SEQ_CST);
    hw_sys(SYS_futex, &freeze.stage, FUTEX_WAKE, 1);
}

static void wait_while(uint32_t stage)
{
    const uint64_t moment[2] = {0, 100000000};
    while (__atomic_load_n(&freeze.stage, __ATOMIC_SEQ_CST) == stage)
        hw_sys(SYS_futex, &freeze.stage, FUTEX_WAIT, stage, moment);
}

/* ---- the tracer ---- */

static bool is_in_list(int tid)
{
    for (uint32_t i = 0; i < freeze.list.count; i++)
        if (freeze.list.thread[i].tid == tid)
            return true;
    return false;
}

static void miss(int error)
{
    freeze.list.missed++;
    if (!freeze.list.error)
        freeze.list.error = error;
}

/* What /proc says of a thread. False: it is gone. */
static bool read_task(int tid, const char *name, char *text, size_t size)
{
    char path[96], process[24], thread[24];
    struct hw_text number;
    hw_text_init(&number, process, sizeof process);
    hw_text_u64(&number, (uint64_t)freeze.pid);
    hw_text_init(&number, thread, sizeof thread);
    hw_text_u64(&number, (uint64_t)tid);
    hw_text_join(path, sizeof path, "/proc/", process, "/task/", thread, name);
    return hw_read_file(path, text, size) > 0;
}

static char state_of(int tid)
{
    char text[512];
    return read_task(tid, "/stat", text, sizeof text) ? *hw_stat_field(text, 3) : 'X';
}

/* Where a thread that sleeps has its stack, without stopping it. Returns its system call, with the first ARGUMENT, or
 * -1: it is in none, or not known. */
static long read_stack_pointer(struct hw_stopped_thread *thread, uint64_t *argument)
{
    char text[256];
    uint64_t shown[7] = {0};
    if (!read_task(thread->tid, "/syscall", text, sizeof text) || text[0] == 'r') /* "running" */
        return -1;
    const bool in_call = text[0] != '-'; /* the call and its six arguments, or -1; then the stack pointer */
    const char *at = text + !in_call;
    const long call = (long)hw_parse_u64(&at, 10);
    for (size_t i = 0; i < (in_call ? 7 : 1) && *at; i++) {
        at += hw_starts_with(at, " 0x") ? 3 : 0;
        shown[i] = hw_parse_u64(&at, 16);
    }
    *argument = shown[0];
    thread->stack_pointer = shown[in_call ? 6 : 0];
    return in_call ? call : -1;
}

/* As long as the child wants. */
static bool is_in_vfork(struct hw_stopped_thread *thread)
{
    uint64_t flags = 0;
    const long call = read_stack_pointer(thread, &flags);
    if (call == SYS_clone3) { /* a structure begins with them */
        const struct iovec to = {&flags, sizeof flags}, from = {(void *)(uintptr_t)flags, sizeof flags};
        if (hw_sys(SYS_process_vm_readv, freeze.pid, &to, 1, &from, 1, 0) != (long)sizeof flags)
            return false;
    }
    return call == SYS_vfork || ((call == SYS_clone || call == SYS_clone3) && flags & CLONE_VFORK);
}

/* False: it did not stop by UNTIL, or has ended. */
static bool wait_for(struct hw_stopped_thread *thread, uint64_t until)
{
    const uint64_t moment[2] = {0, SOONER_NS};
    unsigned looks = 0;
    for (int status;;) {
        const long got = hw_sys(SYS_wait4, thread->tid, &status, __WALL | WNOHANG, 0);
        if (got == thread->tid && WIFSTOPPED(status)) {
            const bool by_event = status >> 16 != 0;
            thread->signal = by_event ? 0 : WSTOPSIG(status); /* else it is about to receive one */
            return true;
        }
        if (got < 0 && got != -EINTR)
            return false;
        if (got == thread->tid)
            return false;
        const uint64_t now = hw_clock_monotonic_ns();
        if (now > until && !(now < until + RUNNABLE_NS && state_of(thread->tid) == 'R'))
            return false;
        if (++looks % 8 == 0 && is_in_vfork(thread))
            return false;
        hw_sys(SYS_nanosleep, moment, 0);
    }
}

static void read_registers(struct hw_stopped_thread *thread)
{
    struct user_regs_struct general;
    struct iovec part = {&general, sizeof general};
    if (hw_sys(SYS_ptrace, PTRACE_GETREGSET, thread->tid, NT_PRSTATUS, &part) != 0 || part.iov_len != sizeof general)
        return;
    thread->known = true;
    thread->stack_pointer = general.rsp;
    thread->thread_pointer = general.fs_base;
    __builtin_memcpy(thread->registers, &general, sizeof general);
    part = (struct iovec){(char *)thread->registers + sizeof general, sizeof(struct user_fpregs_struct)};
    hw_sys(SYS_ptrace, PTRACE_GETREGSET, thread->tid, NT_PRFPREG, &part);
    if (!thread->signal)
        hw_call_begin_again(thread->tid, &general);
}

/* Threads that end meanwhile are no loss. It stops soon. Of one that somebody else traces the stack is read. */
static void stop(int tid)
{
    if (freeze.list.count == THREADS_MOST) {
        miss(EAGAIN);
        return;
    }
    struct hw_stopped_thread *thread = &freeze.list.thread[freeze.list.count];
    *thread = (struct hw_stopped_thread){.tid = tid};
    const long result = hw_sys(SYS_ptrace, PTRACE_SEIZE, tid, 0, 0);
    if (result < 0) {
        const char state = state_of(tid);
        uint64_t unused;
        if (result == -ESRCH || state == 'Z' || state == 'X')
            return;
        read_stack_pointer(thread, &unused);
        if (!freeze.list.error)
            freeze.list.error = (int)-result;
        freeze.list.count++;
        return;
    }
    hw_sys(SYS_ptrace, PTRACE_INTERRUPT, tid, 0, 0);
    freeze.list.count++;
}

/* All that are listed now. */
static void stop_listed(int directory)
{
    hw_sys(SYS_lseek, directory, 0, SEEK_SET);
    for (long size; (size = hw_sys(SYS_getdents64, directory, freeze.entries, sizeof freeze.entries)) > 0;)
        for (long at = 0; at < size;) {
            const uint8_t *entry = freeze.entries + at; /* struct linux_dirent64 */
            const char *name = (const char *)entry + 19;
            const int tid = (int)hw_parse_u64(&name, 10);
            if (tid && tid != freeze.caller && !is_in_list(tid))
                stop(tid);
            at += entry[16] | entry[17] << 8;
        }
}

/* A thread may have made another one before it stopped: until there is no new one. */
static void stop_all(int directory)
{
    const uint64_t until = hw_clock_monotonic_ns() + PATIENCE_NS;
    for (uint32_t before = 0, rounds = 0; rounds < 64 && (!rounds || freeze.list.count != before); rounds++) {
        before = freeze.list.count;
        freeze.list.missed = 0;
        stop_listed(directory);
        for (uint32_t i = before; i < freeze.list.count; i++)
            if (wait_for(&freeze.list.thread[i], until))
                read_registers(&freeze.list.thread[i]);
    }
    for (uint32_t i = 0; i < freeze.list.count; i++)
        if (!freeze.list.thread[i].known && hw_sys(SYS_tgkill, freeze.pid, freeze.list.thread[i].tid, 0) == 0)
            miss(ETIMEDOUT);
}

static void trace(void)
{
    char path[64], number[24];
    struct hw_text text;
    hw_sys(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
    wait_while(NEW);
    hw_text_init(&text, number, sizeof number);
    hw_text_u64(&text, (uint64_t)freeze.pid);
    hw_text_join(path, sizeof path, "/proc/", number, "/task");
    const int directory = hw_open(path, O_RDONLY | O_DIRECTORY, 0);
    if (directory < 0)
        miss(-directory);
    else {
        stop_all(directory);
        hw_close(directory);
    }
    set_stage(FROZEN);
    wait_while(FROZEN);
    for (uint32_t i = 0; i < freeze.list.count; i++) {
        const struct hw_stopped_thread *thread = &freeze.list.thread[i];
        if (thread->known && !thread->signal)
            hw_call_leave_if_signalled(thread->tid, (const struct user_regs_struct *)thread->registers);
        hw_sys(SYS_ptrace, PTRACE_DETACH, thread->tid, 0, thread->signal);
    }
}

/* ---- the program's side ---- */

const struct hw_stopped_threads *hw_threads_freeze(void)
{
    static char *memory;
    if (!memory)
        memory = hw_own_pages(STACK_BYTES + THREADS_MOST * sizeof(struct hw_stopped_thread), true);
    freeze.list = (struct hw_stopped_threads){0};
    freeze.tracer = 0;
    if (!memory) {
        freeze.list.missed = 1;
        freeze.list.error = ENOMEM;
        return &freeze.list;
    }
    freeze.list.thread = (struct hw_stopped_thread *)(memory + STACK_BYTES);
    freeze.stage = NEW;
    freeze.pid = (int)hw_getpid();
    freeze.caller = (int)hw_gettid();
    const long tracer =
        hw_arch_clone(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_UNTRACED, memory + STACK_BYTES, NULL, NULL, 0, trace);
    if (tracer < 0) {
        freeze.list.missed = 1;
        freeze.list.error = (int)-tracer;
        return &freeze.list;
    }
    freeze.tracer = (int)tracer;
    hw_sys(SYS_prctl, PR_SET_PTRACER, tracer); /* where only ancestors may trace: its child may, too */
    set_stage(BEGIN);
    for (int status; __atomic_load_n(&freeze.stage, __ATOMIC_SEQ_CST) == BEGIN;) {
        const uint64_t moment[2] = {0, 10000000};
        hw_sys(SYS_futex, &freeze.stage, FUTEX_WAIT, BEGIN, moment);
        if (hw_sys(SYS_wait4, tracer, &status, __WALL | WNOHANG, 0) == tracer) { /* killed */
            freeze.tracer = 0;
            miss(ESRCH);
            break;
        }
    }
    return &freeze.list;
}

void hw_threads_thaw(void)
{
    int status;
    if (!freeze.tracer)
        return;
    set_stage(THAW);
    while (hw_sys(SYS_wait4, freeze.tracer, &status, __WALL, 0) == -EINTR)
        ;
    freeze.tracer = 0;
}
