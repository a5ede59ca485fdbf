/* parking.c - see parking.h.
 *
 * The thread is changed by single calls of ptrace that set all its registers at once: before such a call it is as it
 * was, afterwards it finds its way back by itself. So it does not matter when this command is killed. */
#include "cli/parking.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALL_NS   60000000000ull  /* for a call of the parked thread, and until it is parked */
#define BUSY_NS   180000000000ull /* the same while it waits for a processor or a disk */
#define CANCEL_NS 1000000000ull   /* the same when this command is to end */
#define LEAVE_NS  2000000000ull
#define LOOK_NS   20000000ull /* until a thread that does not come is looked for */
#define SOONER_NS 50000l
#define ROOM      (HW_PARKED_CODE + (uint64_t)sizeof(struct hw_parked))

#define FAIL(parking, ...) (hw_error_set((parking)->points->stop->error, __VA_ARGS__), false)
#define PID(parking)       ((int)(parking)->points->stop->pid)

/* Addresses in the other process. */
#define GATE(parking, label) ((parking)->gate + (uint64_t)((label)-hw_gate))
#define CODE(parking, label) ((parking)->room + (uint64_t)((label)-hw_parked_code))
#define STACK(parking)       ((parking)->room + ROOM - 64)

/* Without a message: what is asked for may not be mapped. */
static bool peek(const struct hw_parking *parking, uint64_t address, uint64_t *word)
{
    const struct iovec to = {word, sizeof *word}, from = {(void *)(uintptr_t)address, sizeof *word};
    return process_vm_readv(parking->points->stop->alive, &to, 1, &from, 1, 0) == (ssize_t)sizeof *word;
}

bool hw_write_code(struct hw_parking *parking, uint64_t address, const void *bytes, size_t size)
{
    return pwrite(parking->memory, bytes, size, (off_t)address) == (ssize_t)size ||
           FAIL(parking, "the code of process %d cannot be changed: %s", PID(parking), strerror(errno));
}

static bool is_busy(const struct hw_parking *parking)
{
    return hw_stop_has_state(parking->points->stop, parking->thread.tid, "RD");
}

/* Since BEGIN, and it does not only wait for the machine. */
static bool is_overdue(const struct hw_parking *parking, uint64_t begin)
{
    const uint64_t spent = hw_stop_now_ns() - begin;
    return spent > BUSY_NS || (spent > CALL_NS && !is_busy(parking)) || (spent > CANCEL_NS && hw_stop_is_cancelled());
}

static bool say_late(const struct hw_parking *parking, uint64_t begin)
{
    if (hw_stop_is_cancelled())
        return FAIL(parking, "process %d had not answered yet", PID(parking));
    return FAIL(parking, "process %d did not answer for %d seconds (%s)", PID(parking),
                (int)((hw_stop_now_ns() - begin) / 1000000000u),
                is_busy(parking) ? "it gets no processor time" : "it waits for a lock or a file");
}

/* ---- the gate ---- */

static bool is_in(uint64_t address, uint64_t start, uint64_t end)
{
    return address >= start && address < end;
}

enum gate_state { FRESH, LEFT, USED };

/* A command that was killed leaves a gate behind, and may have a thread in it while its room is there. */
static enum gate_state state_of(struct hw_parking *parking, uint64_t gate)
{
    struct hw_gate old;
    uint64_t word;
    if (!hw_stop_read(parking->points->stop, gate, &old, sizeof old))
        return USED;
    return old.magic != HW_GATE_MAGIC ? FRESH : peek(parking, old.room + HW_PARKED_CODE, &word) ? USED : LEFT;
}

/* Behind GATE in the same page; 0: it ends there. */
static uint64_t next_gate(uint64_t gate, size_t size)
{
    const uint64_t next = (gate + size + 63) & ~63ul;
    return next & 4095 ? next : 0;
}

/* In an image that cannot be unloaded while a thread is in the gate. */
static bool take_gate(struct hw_parking *parking, const struct hw_image *image, enum gate_state state)
{
    const size_t size = (size_t)(hw_gate_end - hw_gate);
    uint64_t gate = hw_image_spare_code(parking->points->stop, image, size);
    for (; gate && (gate & 4095) + size <= 4096; gate = next_gate(gate, size))
        if (state_of(parking, gate) == state && hw_stop_read(parking->points->stop, gate, parking->under_gate, size)) {
            parking->gate = gate;
            return true;
        }
    return false;
}

/* One that was left is the second choice: a thread may be at its last instructions. */
static bool find_gate(struct hw_parking *parking)
{
    const struct hw_safe_points *points = parking->points;
    for (enum gate_state state = FRESH; state <= LEFT; state++)
        for (size_t i = 0; i < points->code->count; i++) {
            const struct hw_image *image = &points->code->images[i];
            if ((!i || image == points->libc || image == points->loader) && take_gate(parking, image, state))
                return true;
        }
    return FAIL(parking,
                "no library of process %d has room for some instructions: record it from its start with heapwise "
                "record",
                PID(parking));
}

/* SIGNALS: that it blocks. */
static bool write_gate(struct hw_parking *parking, uint64_t signals)
{
    struct user_regs_struct back = parking->thread.general;
    uint8_t bytes[HW_GATE_ROOM];
    struct hw_gate gate = {
        .magic = HW_GATE_MAGIC, .room = parking->room, .room_bytes = ROOM, .all = ~0ull, .signals = signals};
    hw_stop_mend(parking->points->stop, &parking->thread, &back, true);
    const uint64_t registers[18] = {back.rax, back.rbx, back.rcx, back.rdx, back.rsi, back.rdi,
                                    back.rbp, back.rsp, back.r8,  back.r9,  back.r10, back.r11,
                                    back.r12, back.r13, back.r14, back.r15, back.rip, back.eflags};
    memcpy(gate.registers, registers, sizeof registers);
    memcpy(bytes, hw_gate, (size_t)(hw_gate_end - hw_gate));
    memcpy(bytes, &gate, sizeof gate);
    return hw_write_code(parking, parking->gate, bytes, (size_t)(hw_gate_end - hw_gate));
}

/* ---- the thread ---- */

/* It continues at PC. STACK: 0: its own. */
static void send(struct hw_parking *parking, uint64_t pc, uint64_t stack)
{
    struct user_regs_struct there = parking->thread.general;
    there.rip = pc;
    there.rsp = stack ? stack : there.rsp;
    there.orig_rax = ~0ul;
    there.eflags &= ~0x500ul;
    hw_stop_set_registers(&parking->thread, &there);
    parking->thread.running = ptrace(PTRACE_CONT, parking->thread.tid, NULL, NULL) == 0;
}

static bool resume(struct hw_parking *parking, int signal)
{
    parking->thread.running = ptrace(PTRACE_CONT, parking->thread.tid, NULL, (void *)(long)signal) == 0;
    return parking->thread.running;
}

/* Whether it has stopped or ended by UNTIL (0: now). */
static bool has_stopped(struct hw_parking *parking, uint64_t until)
{
    struct hw_stop_thread *thread = &parking->thread;
    if (!hw_stop_wait(parking->points->stop, thread, until))
        return false;
    if (!thread->gone && thread->stopped.signal == SIGSTOP) {
        parking->stop_later = true;
        thread->stopped.signal = 0;
    }
    return true;
}

/* Stops it; its registers are known then. */
static bool halt(struct hw_parking *parking)
{
    struct hw_stop_thread *thread = &parking->thread;
    if (!thread->running)
        return !thread->gone;
    ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL);
    return has_stopped(parking, hw_stop_now_ns() + CALL_NS) && !thread->gone;
}

static bool is_crash(int signal)
{
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE;
}

/* The thread is stopped. Whether it waits where it can have no room. */
static bool has_failed(struct hw_parking *parking)
{
    const struct user_regs_struct *now = &parking->thread.general;
    if (!is_in(now->rip, GATE(parking, hw_gate_failed), GATE(parking, hw_gate_out)))
        return false;
    hw_error_set(parking->points->stop->error,
                 now->r13 ? "process %d forbids new executable code (PR_SET_MDWE, SELinux): %s"
                          : "Heapwise found no room in the memory of process %d (ulimit -v, ulimit -d): %s",
                 PID(parking), strerror(-(int)now->rbx));
    return true;
}

static bool fill_room(struct hw_parking *parking, const struct iovec *vectors)
{
    static struct hw_parked data;
    static const uint64_t begin = 1;
    data = (struct hw_parked){.patience = HW_PARKED_PATIENCE, .leave = GATE(parking, hw_gate_unmap)};
    memcpy(data.xsave, vectors->iov_base, vectors->iov_len);
    return hw_write_code(parking, parking->room, hw_parked_code, (size_t)(hw_parked_code_end - hw_parked_code)) &&
           hw_stop_write(parking->points->stop, parking->room + HW_PARKED_CODE, &data,
                         offsetof(struct hw_parked, text)) &&
           hw_stop_write(parking->points->stop, HW_PARKED_AT(parking, begin), &begin, sizeof begin);
}

/* A signal came before they were blocked: it is delivered where the thread was. */
static enum hw_park_result let_go_first(struct hw_parking *parking, const struct user_regs_struct *before)
{
    hw_stop_set_registers(&parking->thread, before);
    ptrace(PTRACE_DETACH, parking->thread.tid, NULL, (void *)(long)parking->thread.stopped.signal);
    parking->held = false;
    return HW_PARK_AGAIN;
}

/* The thread was sent to the gate. */
static enum hw_park_result meet(struct hw_parking *parking, const struct user_regs_struct *before,
                                const struct iovec *vectors)
{
    const uint64_t begin = hw_stop_now_ns();
    uint64_t look = begin + LOOK_NS, word;
    bool filled = false;
    for (; !is_overdue(parking, begin); hw_stop_sleep_ns(SOONER_NS)) {
        if (has_stopped(parking, 0)) {
            if (parking->thread.gone)
                break;
            if (parking->thread.stopped.signal)
                return let_go_first(parking, before);
            if (has_failed(parking))
                return HW_PARK_FAILED;
            resume(parking, 0);
        }
        if (peek(parking, HW_PARKED_AT(parking, begin), &word)) {
            if (word == 2)
                return HW_PARKED;
            if (!filled && !fill_room(parking, vectors))
                return HW_PARK_FAILED;
            filled = true;
        }
        if (hw_stop_now_ns() > look) {
            ptrace(PTRACE_INTERRUPT, parking->thread.tid, NULL, NULL);
            look = hw_stop_now_ns() + LOOK_NS;
        }
    }
    if (parking->thread.gone)
        hw_error_set(parking->points->stop->error, "process %d has ended", PID(parking));
    else
        say_late(parking, begin);
    return HW_PARK_FAILED;
}

enum hw_park_result hw_park(struct hw_parking *parking, struct hw_stop_thread *thread)
{
    static char vector_room[HW_PARKED_XSAVE];
    struct iovec vectors = {vector_room, sizeof vector_room};
    uint64_t signals;
    thread->held = true;
    parking->thread = *thread;
    parking->held = true;
    parking->gate = 0;
    parking->late = parking->stop_later = false;
    parking->room = hw_target_unmapped(parking->points->code, ROOM);
    if (ptrace(PTRACE_GETREGSET, thread->tid, NT_X86_XSTATE, &vectors) != 0 ||
        ptrace(PTRACE_GETSIGMASK, thread->tid, (void *)sizeof signals, &signals) != 0) {
        hw_error_set(parking->points->stop->error, "the registers of process %d cannot be read: %s", PID(parking),
                     strerror(errno));
        return HW_PARK_FAILED;
    }
    if (!find_gate(parking))
        return HW_PARK_FAILED;
    const struct user_regs_struct before = parking->thread.general;
    if (!write_gate(parking, signals)) {
        parking->gate = 0;
        return HW_PARK_FAILED;
    }
    send(parking, GATE(parking, hw_gate_entry), 0);
    return meet(parking, &before, &vectors);
}

/* ---- out again ---- */

/* It leaves by the gate. */
static void send_out(struct hw_parking *parking)
{
    static const uint64_t patience = 0;
    uint64_t function;
    if (parking->late)
        return;
    const bool waits = parking->thread.running && peek(parking, HW_PARKED_AT(parking, function), &function) &&
                       !function && hw_stop_write(parking->points->stop, HW_PARKED_AT(parking, patience), &patience, 8);
    if (waits || !halt(parking))
        return;
    const uint64_t pc = parking->thread.general.rip;
    if (is_in(pc, GATE(parking, hw_gate_failed), GATE(parking, hw_gate_out)))
        send(parking, GATE(parking, hw_gate_out), 0);
    else if (is_in(pc, parking->gate, GATE(parking, hw_gate_end)))
        resume(parking, 0); /* it goes on, and out after a while */
    else
        send(parking, CODE(parking, hw_parked_leave), STACK(parking));
}

/* The thread is stopped. Whether it is out; then it has the bytes back that were under the gate. */
static bool is_out(struct hw_parking *parking)
{
    const uint64_t range[1][2] = {{parking->gate, GATE(parking, hw_gate_end)}}, pc = parking->thread.general.rip;
    if (is_in(pc, range[0][0], range[0][1]) || is_in(pc, parking->room, parking->room + ROOM))
        return false;
    if (!hw_may_lead_to(parking->points, &parking->thread, range, 1))
        hw_write_code(parking, parking->gate, parking->under_gate, (size_t)(hw_gate_end - hw_gate));
    return true;
}

void hw_unpark(struct hw_parking *parking)
{
    struct hw_stop_thread *thread = &parking->thread;
    struct hw_stop *stop = parking->points->stop;
    if (!parking->held)
        return;
    parking->held = false;
    if (!thread->gone && !parking->gate) {
        hw_stop_detach(stop, thread);
        return;
    }
    const struct hw_error error = *stop->error;
    send_out(parking);
    for (const uint64_t until = hw_stop_now_ns() + LEAVE_NS; !thread->gone && hw_stop_now_ns() < until;) {
        uint64_t word;
        if (peek(parking, parking->room + HW_PARKED_CODE, &word) && !has_stopped(parking, 0)) {
            hw_stop_sleep_ns(SOONER_NS);
            continue;
        }
        if (!halt(parking))
            break;
        if (is_out(parking)) {
            hw_stop_detach(stop, thread);
            break;
        }
        resume(parking, thread->stopped.signal);
    }
    if (parking->stop_later)
        kill(stop->pid, SIGSTOP);
    *stop->error = error;
}

/* ---- calls ---- */

bool hw_parked_keep_errno(struct hw_parking *parking, uint64_t place, int value)
{
    const uint64_t kept = (uint64_t)value;
    return hw_stop_write(parking->points->stop, HW_PARKED_AT(parking, error), &kept, sizeof kept) &&
           hw_stop_write(parking->points->stop, HW_PARKED_AT(parking, error_place), &place, sizeof place);
}

bool hw_parked_call(struct hw_parking *parking, uint64_t function, uint64_t first, uint64_t second, uint64_t *result)
{
    struct hw_stop *stop = parking->points->stop;
    struct hw_stop_thread *thread = &parking->thread;
    const uint64_t arguments[3] = {first, second, 0};
    uint64_t done = 0;
    int status;
    if (!thread->running || thread->gone || parking->late)
        return false; /* a call before has failed */
    if (!hw_stop_write(stop, HW_PARKED_AT(parking, done), &done, sizeof done) ||
        !hw_stop_write(stop, HW_PARKED_AT(parking, argument), arguments, sizeof arguments) ||
        !hw_stop_write(stop, HW_PARKED_AT(parking, function), &function, sizeof function))
        return false;
    for (const uint64_t begin = hw_stop_now_ns(); !done;) {
        if (waitpid(thread->tid, &status, __WALL | WNOHANG) == thread->tid) {
            if (!WIFSTOPPED(status)) {
                thread->gone = true;
                return FAIL(parking, "process %d has ended", PID(parking));
            }
            if (status >> 16 == 0 && is_crash(WSTOPSIG(status))) {
                thread->running = false;
                return FAIL(parking, "the call in process %d failed with signal %d; the process continues",
                            PID(parking), WSTOPSIG(status));
            }
            parking->stop_later |= status >> 16 == 0 && WSTOPSIG(status) == SIGSTOP;
            resume(parking, 0);
        }
        if (!hw_stop_read(stop, HW_PARKED_AT(parking, done), &done, sizeof done))
            return false;
        if (!done && is_overdue(parking, begin)) {
            static const uint64_t patience = 0;
            parking->late = true;
            return hw_stop_write(stop, HW_PARKED_AT(parking, patience), &patience, sizeof patience) &&
                   say_late(parking, begin);
        }
        if (!done)
            hw_stop_sleep_ns(SOONER_NS);
    }
    return !result || hw_stop_read(stop, HW_PARKED_AT(parking, result), result, sizeof *result);
}
