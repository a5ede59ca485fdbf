/* safe_point.c - see safe_point.h. The stack is unwound by the tables of the program's own libraries; what cannot be
 * unwound is not safe. */
#include "cli/safe_point.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/attachable.h"

#define STACK_BYTES (1u << 20) /* of a thread's stack that is searched */
#define DEPTH       4096

static pid_t searched; /* find_file: the process */

static int no_debug_file(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, const char *file,
                         const char *link, GElf_Word crc, char **found)
{
    (void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)found;
    return -1; /* unwinding needs none, and nothing is to be searched for */
}

/* The number of the file that is mapped at BASE; 0: none. */
static unsigned long inode_at(Dwarf_Addr base)
{
    char path[64], *line = NULL;
    size_t size = 0;
    unsigned long inode = 0, start, number;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)searched);
    FILE *maps = fopen(path, "re");
    while (maps && !inode && getline(&line, &size, maps) > 0)
        if (sscanf(line, "%lx-%*x %*s %*x %*s %lu", &start, &number) == 2 && start == base)
            inode = number;
    free(line);
    if (maps)
        fclose(maps);
    return inode;
}

/* The process may see other files by the names of its mappings than this command does, and the names may be those of
 * either. What is in neither place, or is deleted, is read from memory. */
static int find_file(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, char **found, Elf **elf)
{
    char path[PATH_MAX + 32];
    const unsigned long inode = *name == '/' ? inode_at(base) : 0;
    for (int way = 0; inode && way < 2; way++) {
        struct stat status;
        if (way == 0)
            snprintf(path, sizeof path, "/proc/%d/root%s", (int)searched, name);
        else
            snprintf(path, sizeof path, "%s", name);
        const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_ino == inode &&
            (*found = strdup(path)))
            return file;
        if (file >= 0)
            close(file);
    }
    if (*name != '/' || strstr(name, " (deleted)"))
        return dwfl_linux_proc_find_elf(module, data, name, base, found, elf);
    snprintf(path, sizeof path, "/proc/%d/no file of this name (deleted)", (int)searched); /* then memory is read */
    return dwfl_linux_proc_find_elf(module, data, path, base, found, elf);
}

bool hw_safe_points_open(struct hw_safe_points *points)
{
    static const Dwfl_Callbacks own = {.find_elf = dwfl_linux_proc_find_elf, .find_debuginfo = no_debug_file},
                                others = {.find_elf = find_file, .find_debuginfo = no_debug_file};
    searched = points->stop->pid;
    points->unwinder = dwfl_begin(hw_sees_other_files(searched) ? &others : &own);
    if (points->unwinder && dwfl_linux_proc_report(points->unwinder, points->stop->pid) == 0 &&
        dwfl_report_end(points->unwinder, NULL, NULL) == 0 &&
        dwfl_linux_proc_attach(points->unwinder, points->stop->pid, true) == 0)
        return true;
    hw_error_set(points->stop->error, "the stacks of process %d cannot be read: %s", (int)points->stop->pid,
                 dwfl_errmsg(-1));
    return false;
}

void hw_safe_points_close(struct hw_safe_points *points)
{
    if (points->unwinder)
        dwfl_end(points->unwinder);
    points->unwinder = NULL;
}

/* ---- the frames of a thread ---- */

struct frames {
    uint64_t pc[DEPTH]; /* inside the call, not behind it */
    bool interrupted;   /* a signal handler is among them */
    size_t count;
};

static int add_frame(Dwfl_Frame *frame, void *closure)
{
    struct frames *frames = closure;
    Dwarf_Addr pc;
    bool exact;
    if (frames->count == DEPTH || !dwfl_frame_pc(frame, &pc, &exact))
        return DWARF_CB_ABORT;
    frames->interrupted |= exact && frames->count;
    frames->pc[frames->count++] = exact ? pc : pc - 1;
    return DWARF_CB_OK;
}

/* False: it could not be followed to its end. */
static bool unwind(struct hw_safe_points *points, const struct hw_stop_thread *thread, struct frames *frames)
{
    frames->count = 0;
    frames->interrupted = false;
    return dwfl_getthread_frames(points->unwinder, thread->tid, add_frame, frames) == 0 && frames->count;
}

/* ---- what is known of functions ---- */

static const char *const allocator[] = {"malloc*",       "calloc",         "realloc*",        "free*",
                                        "memalign",      "aligned_alloc",  "posix_memalign",  "valloc",
                                        "pvalloc",       "cfree",          "__libc_malloc",   "__libc_free",
                                        "__libc_calloc", "__libc_realloc", "__libc_memalign", "_Zn*",
                                        "_Zd*",          "mallinfo*",      "mallopt",         NULL};

/* In libc: they hold locks of the allocator, the dynamic linker or the list of threads, or begin and end processes. */
static const char *const holding[] = {"dl*",
                                      "__libc_dl*",
                                      "_dl_*",
                                      "fork",
                                      "_Fork",
                                      "__libc_fork",
                                      "__fork",
                                      "vfork",
                                      "__vfork",
                                      "posix_spawn*",
                                      "system",
                                      "popen",
                                      "clone",
                                      "__clone*",
                                      "exit",
                                      "_exit",
                                      "_Exit",
                                      "quick_exit",
                                      "abort",
                                      "on_exit",
                                      "atexit",
                                      "__cxa_*",
                                      "__libc_freeres",
                                      "pthread_create",
                                      "pthread_exit",
                                      "thrd_create",
                                      "thrd_exit",
                                      "pthread_getattr_np",
                                      "pthread_setattr*",
                                      "setuid",
                                      "setgid",
                                      "setre*",
                                      "setres*",
                                      "setgroups",
                                      "seteuid",
                                      "setegid",
                                      "exec*",
                                      "daemon",
                                      "_setjmp",
                                      "longjmp",
                                      "siglongjmp",
                                      "__longjmp_chk",
                                      "raise",
                                      NULL};

/* Functions that wait for what the program does, in futex. */
static const char *const waiting[] = {"pthread_cond_*",
                                      "pthread_mutex_*",
                                      "pthread_rwlock_*",
                                      "pthread_barrier_wait",
                                      "pthread_join",
                                      "pthread_timedjoin_np",
                                      "pthread_clockjoin_np",
                                      "sem_*",
                                      "cnd_*",
                                      "mtx_*",
                                      "thrd_join",
                                      "syscall",
                                      "aio_suspend*",
                                      NULL};

/* System calls in which a thread waits, and that libc makes with no lock of its own that dlopen takes. */
static bool is_resting(long call)
{
    static const short calls[] = {SYS_read,          SYS_write,           SYS_pread64,
                                  SYS_pwrite64,      SYS_readv,           SYS_writev,
                                  SYS_preadv,        SYS_pwritev,         SYS_poll,
                                  SYS_ppoll,         SYS_select,          SYS_pselect6,
                                  SYS_epoll_wait,    SYS_epoll_pwait,     SYS_epoll_pwait2,
                                  SYS_nanosleep,     SYS_clock_nanosleep, SYS_accept,
                                  SYS_accept4,       SYS_connect,         SYS_recvfrom,
                                  SYS_recvmsg,       SYS_recvmmsg,        SYS_sendto,
                                  SYS_sendmsg,       SYS_sendmmsg,        SYS_wait4,
                                  SYS_waitid,        SYS_pause,           SYS_rt_sigtimedwait,
                                  SYS_rt_sigsuspend, SYS_sched_yield,     SYS_flock,
                                  SYS_fcntl,         SYS_fsync,           SYS_fdatasync,
                                  SYS_io_getevents,  SYS_msgrcv,          SYS_msgsnd,
                                  SYS_semop,         SYS_semtimedop,      SYS_sendfile,
                                  SYS_splice,        SYS_restart_syscall, SYS_futex};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i] == call)
            return true;
    return false;
}

/* A restartable sequence is not to be left. In a system call nobody is in one. */
static bool is_in_sequence(struct hw_safe_points *points, const struct hw_stop_thread *thread)
{
    struct __ptrace_rseq_configuration rseq = {0};
    uint64_t sequence = 0;
    if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, thread->tid, (void *)sizeof rseq, &rseq) < 0 || !rseq.rseq_abi_pointer)
        return false;
    return !hw_stop_read(points->stop, rseq.rseq_abi_pointer + 8, &sequence, sizeof sequence) || sequence;
}

static bool has_allocator(struct hw_safe_points *points, struct hw_image *image)
{
    return image != points->libc && strstr(image->path, ".so") && hw_image_symbol(points->stop, image, "malloc");
}

bool hw_is_safe_point(struct hw_safe_points *points, const struct hw_stop_thread *thread, const char **why)
{
    static struct frames frames;
    const long call = (long)thread->general.orig_rax;
    const bool in_kernel = call >= 0;
    *why = "in a system call that must not be interrupted";
    if (thread->by_signal || (thread->general.eflags & 0x100) || (in_kernel && !is_resting(call)))
        return false;
    *why = "in a restartable sequence";
    if (!in_kernel && is_in_sequence(points, thread))
        return false;
    *why = "in code whose stack cannot be unwound";
    if (!unwind(points, thread, &frames))
        return false;
    *why = "in a signal handler";
    if (frames.interrupted)
        return false;
    uint64_t entered = 0; /* in the exported function of libc by which the innermost frames got there */
    bool innermost = true;
    for (size_t i = 0; i < frames.count; i++) {
        struct hw_image *image = hw_target_image(points->code, frames.pc[i]);
        const uint64_t pc = frames.pc[i];
        *why = "in the dynamic linker";
        if (image == points->loader && points->loader)
            return false;
        *why = "in the allocator";
        if (image && (hw_image_in_function(points->stop, image, pc, allocator) || has_allocator(points, image)))
            return false;
        *why = "in a function of libc that holds a lock";
        if (image == points->libc && hw_image_in_function(points->stop, image, pc, holding))
            return false;
        *why = "in libc";
        if (i == 0 && image == points->libc && !in_kernel)
            return false;
        innermost = innermost && image == points->libc;
        if (innermost && hw_image_in_function(points->stop, image, pc, NULL))
            entered = pc;
    }
    *why = "waiting for a lock of libc";
    if (in_kernel && call == SYS_futex && hw_target_image(points->code, frames.pc[0]) == points->libc)
        return entered && hw_image_in_function(points->stop, points->libc, entered, waiting);
    return true;
}

bool hw_is_inside(struct hw_safe_points *points, const struct hw_stop_thread *thread, const uint64_t range[2][2])
{
    static struct frames frames;
    if (!unwind(points, thread, &frames))
        return true;
    for (size_t i = 0; i < frames.count; i++)
        for (int k = 0; k < 2; k++)
            if (frames.pc[i] >= range[k][0] && frames.pc[i] < range[k][1])
                return true;
    return false;
}

bool hw_may_lead_to(struct hw_safe_points *points, const struct hw_stop_thread *thread, const uint64_t (*range)[2],
                    size_t count)
{
    static uint64_t words[8192];
    for (size_t k = 0; k < count; k++)
        if (thread->general.rip >= range[k][0] && thread->general.rip < range[k][1])
            return true;
    uint64_t at = (thread->general.rsp - 128) & ~7ul, end = hw_target_writable_end(points->code, at + 128);
    if (!end)
        return true; /* mapped since */
    end = end - at > STACK_BYTES ? at + STACK_BYTES : end;
    for (at += 128; at < end; at += sizeof words) {
        const size_t bytes = end - at < sizeof words ? end - at : sizeof words;
        if (!hw_stop_read(points->stop, at, words, bytes))
            return true;
        for (size_t i = 0; i < bytes / 8; i++)
            for (size_t k = 0; k < count; k++)
                if (words[i] >= range[k][0] && words[i] < range[k][1])
                    return true;
    }
    return false;
}
