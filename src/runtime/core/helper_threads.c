/* helper_threads.c - threads of the runtime's own, which the program does not see.
 *
 * They are made by the bare system call: libc does not know them, all signals are blocked in them, and no code of the
 * program runs there. They must not touch thread-local variables but those of the runtime, which read as zero: no state
 * in the runtime, no plane. */
#include "runtime/core/memory.h"
#include "runtime/core/threads.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <sys/stat.h>

#define STACK_BYTES (64ul << 10)
#define TLS_BYTES   (256ul << 10) /* below the thread pointer: static TLS of all modules */
#define ABOVE_BYTES (16ul << 10)  /* above it: what libc has there, and nobody uses here */

static struct hw_helper *helpers[4]; /* all that were ever started */

/* Several may begin at once: in different slots. */
static bool register_helper(struct hw_helper *helper)
{
    for (size_t i = 0; i < sizeof helpers / sizeof *helpers; i++) {
        struct hw_helper *none = NULL;
        if (__atomic_compare_exchange_n(&helpers[i], &none, helper, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
            none == helper)
            return true;
    }
    return false;
}

bool hw_helper_start(struct hw_helper *helper)
{
    uintptr_t tls = hw_arch_thread_pointer() - (uintptr_t)&hw_self;
    if (hw_quiet || tls > TLS_BYTES / 2 || !register_helper(helper))
        return false;
    if (!helper->memory)
        helper->memory = hw_own_pages(STACK_BYTES + TLS_BYTES + ABOVE_BYTES, true);
    if (!helper->memory)
        return false;
    char *pointer = helper->memory + STACK_BYTES + TLS_BYTES;
    *(void **)pointer = pointer;
    const unsigned long flags = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
                                CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID |
                                (helper->own_descriptors ? 0 : CLONE_FS | CLONE_FILES);
    helper->stop = 0;
    hw_sigset old = hw_signals_block();
    long result =
        hw_arch_clone(flags, helper->memory + STACK_BYTES, &helper->tid, &helper->tid, (uintptr_t)pointer, helper->run);
    hw_signals_restore(old);
    if (result < 0)
        helper->tid = 0;
    return result > 0;
}

bool hw_helper_goes_on(const struct hw_helper *helper)
{
    return !__atomic_load_n(&helper->stop, __ATOMIC_ACQUIRE);
}

void hw_helper_sleep(struct hw_helper *helper, uint64_t ns)
{
    const uint64_t time[2] = {ns / 1000000000, ns % 1000000000};
    hw_futex_wait(&helper->stop, 0, time);
}

void hw_helper_stop(struct hw_helper *helper)
{
    const uint64_t moment[2] = {0, 1000000};
    __atomic_store_n(&helper->stop, 1, __ATOMIC_SEQ_CST);
    if (hw_quiet)
        return;
    hw_futex_wake(&helper->stop, 1);
    for (int i = 0, tid; i < 2000 && (tid = __atomic_load_n(&helper->tid, __ATOMIC_ACQUIRE)) != 0; i++)
        hw_sys(SYS_futex, &helper->tid, FUTEX_WAIT, tid, moment);
}

void hw_helper_fork(struct hw_helper *helper)
{
    helper->stop = 0;
    helper->tid = 0;
}

/* No descriptor is needed while threads of the program may be there: a helper may share its table of them. */
void hw_helpers_end_alone(uint32_t *wakes)
{
    struct stat tasks; /* one link for each thread, and two */
    char text[1024];
    unsigned running = 0;
    for (size_t i = 0; i < sizeof helpers / sizeof *helpers; i++)
        running += helpers[i] && __atomic_load_n(&helpers[i]->tid, __ATOMIC_RELAXED);
    if (++*wakes % 64 != 0 || hw_sys(SYS_readlink, "/proc/self/exe", text, 1) != -ENOENT ||
        hw_sys(SYS_stat, "/proc/self/task", &tasks) != 0 || tasks.st_nlink > 3u + running)
        return;
    hw_read_file("/proc/self/stat", text, sizeof text);
    const char *field = hw_stat_field(text, 52); /* exit_code: a status as wait gives it */
    hw_sys(SYS_exit_group, (int)(hw_parse_u64(&field, 10) >> 8 & 0xff));
}
