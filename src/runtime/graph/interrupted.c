/* interrupted.c - system calls that stop.c has interrupted are begun again, so that no thread sees that it was stopped.
 *
 * The kernel does that itself for most calls, but not for those of the table. One with a timeout has its whole timeout
 * again: what was left of it is not known. */
#include "runtime/core/memory.h"
#include "runtime/graph/internal.h"

#include <elf.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#define SYSCALL_BYTES 2

/* It returns EINTR, and nothing but the stop is the reason as far as its registers say. */
static bool may_begin_again(const struct user_regs_struct *registers)
{
    static const long calls[] = {
#define HW_CALL(name) SYS_##name,
#include "profile/calls_begun_again.def"
    };
    if ((long)registers->orig_rax < 0 || (long)registers->rax != -EINTR)
        return false;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i] == (long)registers->orig_rax)
            return true;
    return false;
}

/* A signal is on its way to the thread, which may be why its call has ended. */
static bool is_signalled(int tid)
{
    static const char *const keys[] = {"SigPnd:", "ShdPnd:", "SigBlk:"};
    static char status[4096];
    char path[64], number[24];
    uint64_t sets[3] = {0};
    struct hw_text text;
    hw_text_init(&text, number, sizeof number);
    hw_text_u64(&text, (uint64_t)tid);
    hw_text_join(path, sizeof path, "/proc/", number, "/status");
    for (size_t i = 0; i < 3; i++) {
        const char *value = hw_status_of(path, keys[i], status, sizeof status);
        if (!value)
            return true;
        sets[i] = hw_parse_u64(&value, 16);
    }
    return (sets[0] | sets[1]) & ~sets[2];
}

static void set_registers(int tid, const struct user_regs_struct *registers)
{
    const struct iovec part = {(void *)(uintptr_t)registers, sizeof *registers};
    hw_sys(SYS_ptrace, PTRACE_SETREGSET, tid, NT_PRSTATUS, &part);
}

void hw_call_begin_again(int tid, const struct user_regs_struct *registers)
{
    if (!may_begin_again(registers) || is_signalled(tid))
        return;
    struct user_regs_struct again = *registers;
    again.rax = again.orig_rax;
    again.rip -= SYSCALL_BYTES;
    again.orig_rax = ~0ul; /* in no call: the kernel must not restart it as well */
    set_registers(tid, &again);
}

void hw_call_leave_if_signalled(int tid, const struct user_regs_struct *registers)
{
    if (may_begin_again(registers) && is_signalled(tid))
        set_registers(tid, registers);
}
