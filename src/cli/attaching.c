/* attaching.c - see attaching.h, profile/attach.h for what the runtime does.
 *
 * Nothing is done by a debugger. One thread that is at a safe point is parked: it waits in a little code of its own,
 * with all signals blocked, on a stack of its own, and makes the calls that it is asked for: dlopen, then the runtime.
 * The other threads run meanwhile, so that whoever holds a lock gives it back. Then all threads stop for a moment, and
 * the functions of the allocator get their jumps; nobody may be in the bytes that change. At last the parked thread has
 * its registers back, as if nothing had happened. If this command is killed, a parked thread goes back by itself. */
#include "cli/attaching.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/parked.h"
#include "cli/attachable.h"
#include "cli/recorded.h"
#include "cli/safe_point.h"

#define SEARCH_NS   10000000000ull /* for a safe point, and for a moment in which code can change */
#define INSIDE_NS   20000000000ull /* until no thread is in the runtime any more */
#define CALL_NS     20000000000ull /* for a call of the parked thread */
#define STOP_NS     500000000ull
#define SOONER_NS   50000l
#define LATER_NS    3000000l
#define STACK_BYTES (1u << 20) /* of a thread's stack that is searched */
#define TRUST       20         /* rounds, until stacks are unwound that only seem to lead to a place */
#define ROOM        (sizeof(struct hw_parked) + HW_PARKED_CODE)

struct attach {
    struct hw_attaching *out;
    struct hw_stop stop;
    struct hw_target_code code;
    struct hw_safe_points points;
    struct hw_image *runtime;     /* NULL: not loaded */
    uint64_t variable;            /* heapwise_attach in it */
    int memory;                   /* /proc/PID/mem */
    struct hw_stop_thread thread; /* the parked one */
    struct user_regs_struct back; /* what it is to go on with */
    uint64_t room;                /* its code and data; 0: none */
    struct iovec vectors;         /* its vector registers */
    uint64_t signals;             /* that it blocks */
    bool kept;                    /* they are known */
    int signal;                   /* it is to receive when it continues; 0: none */
    char vector_room[HW_PARKED_XSAVE];
};

#define FAIL(attach, ...) (hw_error_set(&(attach)->out->error, __VA_ARGS__), false)

/* ---- the process ---- */

/* What is mapped now. */
static bool read_code(struct attach *attach, uint64_t base)
{
    hw_safe_points_close(&attach->points);
    hw_target_code_free(&attach->code);
    if (!hw_target_code_read(&attach->code, &attach->stop))
        return false;
    attach->points.stop = &attach->stop;
    attach->points.code = &attach->code;
    attach->points.loader = hw_target_image(&attach->code, base);
    attach->points.libc = NULL;
    attach->runtime = NULL;
    for (size_t i = 0; i < attach->code.count; i++) {
        struct hw_image *image = &attach->code.images[i];
        const char *name = strrchr(image->path, '/');
        if (name && (strncmp(name, "/libc.so", 8) == 0 || strncmp(name, "/libc-2.", 8) == 0) &&
            hw_image_symbol(&attach->stop, image, "gnu_get_libc_version"))
            attach->points.libc = image;
        if (name && strncmp(name, "/libheapwise", 12) == 0)
            attach->runtime = image;
    }
    if (!attach->points.libc || !attach->points.loader)
        return FAIL(attach, "process %d does not use glibc: it can only be recorded from its start (heapwise record)",
                    (int)attach->stop.pid);
    return hw_safe_points_open(&attach->points);
}

static bool read_info(struct attach *attach)
{
    struct hw_attach *info = &attach->out->info;
    attach->variable = attach->runtime ? hw_image_symbol(&attach->stop, attach->runtime, HW_ATTACH_VARIABLE) : 0;
    if (!attach->variable)
        return FAIL(attach, "process %d has the runtime of another version of Heapwise", (int)attach->stop.pid);
    if (!hw_stop_read(&attach->stop, attach->variable, info, sizeof *info))
        return false;
    if (info->version != HW_ATTACH_VERSION || info->patch_count > HW_ATTACH_PATCHES)
        return FAIL(attach, "process %d has the runtime of another version of Heapwise", (int)attach->stop.pid);
    info->path[sizeof info->path - 1] = info->problem[sizeof info->problem - 1] = '\0';
    return true;
}

static bool open_process(struct attach *attach, uint64_t *base)
{
    char path[64];
    if (!hw_is_attachable(&attach->stop, base))
        return false;
    snprintf(path, sizeof path, "/proc/%d/mem", (int)attach->stop.pid);
    attach->memory = open(path, O_RDWR | O_CLOEXEC);
    if (attach->memory < 0)
        return hw_stop_say_why(&attach->stop, errno);
    return read_code(attach, *base);
}

static void close_process(struct attach *attach)
{
    hw_safe_points_close(&attach->points);
    hw_target_code_free(&attach->code);
    if (attach->memory >= 0)
        close(attach->memory);
    free(attach->stop.threads);
}

/* Code, which cannot be written to in another way. */
static bool write_code(struct attach *attach, uint64_t address, const void *bytes, size_t size)
{
    return pwrite(attach->memory, bytes, size, (off_t)address) == (ssize_t)size ||
           FAIL(attach, "the code of process %d cannot be changed: %s", (int)attach->stop.pid, strerror(errno));
}

/* ---- a thread is parked ---- */

/* The thread, which is stopped, makes one system call. -errno as the kernel has it. */
static long call_kernel(struct attach *attach, uint64_t instruction, const uint64_t arguments[7])
{
    struct user_regs_struct there = attach->back;
    struct iovec part = {&there, sizeof there};
    const pid_t tid = attach->thread.tid;
    there.rip = instruction;
    there.orig_rax = ~0ul;
    there.rax = arguments[0];
    there.rdi = arguments[1];
    there.rsi = arguments[2];
    there.rdx = arguments[3];
    there.r10 = arguments[4];
    there.r8 = arguments[5];
    there.r9 = arguments[6];
    there.eflags &= ~0x500ul;
    hw_stop_set_registers(&attach->thread, &there);
    long result = -EINTR;
    int status;
    /* Signals are blocked: what comes is the end of the step, a group stop, or the end of the process. */
    for (int tries = 0; tries < 100; tries++) {
        if (ptrace(PTRACE_SINGLESTEP, tid, NULL, NULL) != 0 || waitpid(tid, &status, __WALL) != tid ||
            !WIFSTOPPED(status)) {
            attach->thread.gone = true;
            return -ESRCH;
        }
        if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &part) == 0 && there.rip == instruction + 2) {
            result = (long)there.rax;
            break;
        }
    }
    hw_stop_set_registers(&attach->thread, &attach->back);
    return result;
}

/* An instruction `syscall` in libc. 0: there is none where one is expected. */
static uint64_t find_instruction(struct attach *attach)
{
    uint8_t code[64];
    const uint64_t function = hw_image_symbol(&attach->stop, attach->points.libc, "syscall");
    if (!function || !hw_stop_read(&attach->stop, function, code, sizeof code))
        return 0;
    for (size_t i = 0; i + 1 < sizeof code; i++)
        if (code[i] == 0x0f && code[i + 1] == 0x05)
            return function + i;
    return 0;
}

#define DATA(attach, member) ((attach)->room + HW_PARKED_CODE + offsetof(struct hw_parked, member))

static bool begin_room(struct attach *attach)
{
    const uint64_t instruction = find_instruction(attach);
    const uint64_t map[7] = {SYS_mmap, 0, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0};
    const long got = instruction ? call_kernel(attach, instruction, map) : -ENOSYS;
    if (got < 0 && got > -4096)
        return FAIL(attach, "process %d has no memory for it: %s", (int)attach->stop.pid, strerror((int)-got));
    attach->room = (uint64_t)got;
    const uint64_t protect[7] = {SYS_mprotect, attach->room, HW_PARKED_CODE, PROT_READ | PROT_EXEC};
    const long done = call_kernel(attach, instruction, protect);
    return done == 0 ||
           FAIL(attach, "process %d may have no new code: %s", (int)attach->stop.pid, strerror((int)-done));
}

static void end_room(struct attach *attach)
{
    const uint64_t unmap[7] = {SYS_munmap, attach->room, ROOM};
    if (attach->room && !attach->thread.gone)
        call_kernel(attach, find_instruction(attach), unmap);
    attach->room = 0;
}

/* The thread, which is stopped at a safe point, waits for calls from now on. */
static bool park(struct attach *attach)
{
    static const uint64_t all = ~0ull;
    const pid_t tid = attach->thread.tid;
    static struct hw_parked data;
    attach->back = attach->thread.general;
    hw_stop_mend(&attach->stop, &attach->thread, &attach->back, true);
    attach->thread.mended = false;
    attach->vectors = (struct iovec){attach->vector_room, sizeof attach->vector_room};
    if (ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &attach->vectors) != 0 ||
        ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof attach->signals, &attach->signals) != 0 ||
        ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof all, &all) != 0)
        return FAIL(attach, "the registers of process %d cannot be read: %s", (int)attach->stop.pid, strerror(errno));
    attach->kept = true;
    if (!begin_room(attach))
        return false;
    const struct user_regs_struct *back = &attach->back;
    const uint64_t registers[18] = {back->rax, back->rbx, back->rcx, back->rdx, back->rsi, back->rdi,
                                    back->rbp, back->rsp, back->r8,  back->r9,  back->r10, back->r11,
                                    back->r12, back->r13, back->r14, back->r15, back->rip, back->eflags};
    data = (struct hw_parked){.patience = 100000, .signals = attach->signals};
    memcpy(data.registers, registers, sizeof registers);
    memcpy(data.xsave, attach->vector_room, attach->vectors.iov_len);
    if (!write_code(attach, attach->room, hw_parked_code, (size_t)(hw_parked_code_end - hw_parked_code)) ||
        !hw_stop_write(&attach->stop, attach->room + HW_PARKED_CODE, &data, offsetof(struct hw_parked, text)))
        return false;
    struct user_regs_struct there = attach->back;
    there.rip = attach->room;
    there.rsp = attach->room + ROOM - 64;
    there.orig_rax = ~0ul;
    there.eflags &= ~0x500ul;
    hw_stop_set_registers(&attach->thread, &there);
    attach->thread.running = true;
    return ptrace(PTRACE_CONT, tid, NULL, NULL) == 0 || hw_stop_say_why(&attach->stop, errno);
}

/* It has its registers and signals back, and continues. */
static void unpark(struct attach *attach)
{
    struct hw_stop_thread *thread = &attach->thread;
    if (!thread->held)
        return;
    if (thread->running) {
        ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL);
        hw_stop_wait(&attach->stop, thread, hw_stop_now_ns() + STOP_NS);
        thread->running = false;
    }
    if (!thread->gone && !attach->kept)
        hw_stop_detach(&attach->stop, thread);
    else if (!thread->gone) {
        end_room(attach);
        hw_stop_set_registers(thread, &attach->back);
        ptrace(PTRACE_SETREGSET, thread->tid, NT_X86_XSTATE, &attach->vectors);
        ptrace(PTRACE_SETSIGMASK, thread->tid, (void *)sizeof attach->signals, &attach->signals);
        ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(long)attach->signal);
    }
    thread->held = false;
}

/* False: the thread ended, or crashed, or does not come back. */
static bool call(struct attach *attach, uint64_t function, uint64_t first, uint64_t second, uint64_t *result)
{
    const uint64_t request[4] = {function, first, second, 0};
    uint64_t done = 0;
    int status;
    if (!attach->thread.running || attach->thread.gone)
        return false; /* a call before has failed */
    if (!hw_stop_write(&attach->stop, DATA(attach, done), &done, sizeof done) ||
        !hw_stop_write(&attach->stop, DATA(attach, argument), &request[1], 3 * sizeof *request) ||
        !hw_stop_write(&attach->stop, DATA(attach, function), &request[0], sizeof *request))
        return false;
    for (const uint64_t until = hw_stop_now_ns() + CALL_NS; !done;) {
        if (waitpid(attach->thread.tid, &status, __WALL | WNOHANG) == attach->thread.tid) {
            if (!WIFSTOPPED(status)) {
                attach->thread.gone = true;
                return FAIL(attach, "process %d has ended", (int)attach->stop.pid);
            }
            if (status >> 16 == 0 && (WSTOPSIG(status) == SIGSEGV || WSTOPSIG(status) == SIGBUS ||
                                      WSTOPSIG(status) == SIGILL || WSTOPSIG(status) == SIGFPE)) {
                attach->thread.running = false;
                return FAIL(attach, "the call in process %d failed with signal %d; the process continues",
                            (int)attach->stop.pid, WSTOPSIG(status));
            }
            if (status >> 16 == 0 && WSTOPSIG(status) != SIGTRAP)
                attach->signal = WSTOPSIG(status);
            ptrace(PTRACE_CONT, attach->thread.tid, NULL, NULL);
        }
        if (!hw_stop_read(&attach->stop, DATA(attach, done), &done, sizeof done))
            return false;
        if (!done && hw_stop_now_ns() > until)
            return FAIL(attach, "process %d did not answer", (int)attach->stop.pid);
        if (!done)
            hw_stop_sleep_ns(SOONER_NS);
    }
    return !result || hw_stop_read(&attach->stop, DATA(attach, result), result, sizeof *result);
}

static bool call_libc(struct attach *attach, const char *name, uint64_t first, uint64_t second, uint64_t *result)
{
    const uint64_t function = hw_image_symbol(&attach->stop, attach->points.libc, name);
    return function ? call(attach, function, first, second, result)
                    : FAIL(attach, "the libc of process %d has no %s", (int)attach->stop.pid, name);
}

/* Looks at one thread after the other, waiting ones first, until one is at a safe point: it stays stopped. */
static bool find_safe_point(struct attach *attach)
{
    const char *why = "not there any more";
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)attach->stop.pid);
    const uint64_t until = hw_stop_now_ns() + SEARCH_NS;
    for (int round = 0; hw_stop_now_ns() < until; round++) {
        DIR *list = opendir(path);
        bool any = false;
        if (!list)
            return FAIL(attach, "process %d has ended", (int)attach->stop.pid);
        for (struct dirent *entry; (entry = readdir(list));) {
            char name[300], status[4096];
            const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
            snprintf(name, sizeof name, "task/%s/status", entry->d_name);
            if (!tid || !hw_read_proc(attach->stop.pid, name, status, sizeof status))
                continue;
            const char *state = hw_status_value(status, "State");
            if (!state || (*state != 'S' && !(round % 4 == 3 && *state == 'R')))
                continue;
            any = true;
            attach->out->error.message[0] = '\0';
            struct hw_stop_thread *thread = hw_stop_one(&attach->stop, tid);
            if (!thread && attach->out->error.message[0]) {
                closedir(list);
                return false;
            }
            if (thread && hw_is_safe_point(&attach->points, thread, &why)) {
                thread->held = true;
                attach->thread = *thread;
                closedir(list);
                return true;
            }
            hw_stop_let_go(&attach->stop);
        }
        closedir(list);
        if (!any || round % 4 == 3)
            hw_stop_sleep_ns(LATER_NS);
    }
    return FAIL(attach,
                "no thread of process %d was where it can be interrupted within %d seconds (the last one was %s): try "
                "again, or record it from its start with heapwise record",
                (int)attach->stop.pid, (int)(SEARCH_NS / 1000000000u), why);
}

/* The list of stopped threads has a copy of the parked one, which is not let go with the others. */
static bool find_and_park(struct attach *attach)
{
    return find_safe_point(attach) && park(attach);
}

static void forget_parked(struct attach *attach)
{
    unpark(attach);
    size_t left = 0;
    for (size_t i = 0; i < attach->stop.count; i++)
        if (!attach->stop.threads[i].held)
            attach->stop.threads[left++] = attach->stop.threads[i];
    attach->stop.count = left;
}

/* ---- all threads, for a moment ---- */

/* Whether the thread is, or comes back to, or has been interrupted by a signal in, [start, end): the stack is searched
 * for such a number. The parked one was at a safe point. */
static bool leads_to(struct attach *attach, const struct hw_stop_thread *thread, const uint64_t (*range)[2],
                     size_t count)
{
    static uint64_t words[8192];
    for (size_t k = 0; k < count; k++)
        if (thread->general.rip >= range[k][0] && thread->general.rip < range[k][1])
            return true;
    uint64_t at = (thread->general.rsp - 128) & ~7ul, end = hw_target_writable_end(&attach->code, at + 128);
    if (!end)
        return true; /* mapped since */
    end = end - at > STACK_BYTES ? at + STACK_BYTES : end;
    for (at += 128; at < end; at += sizeof words) {
        const size_t bytes = end - at < sizeof words ? end - at : sizeof words;
        if (!hw_stop_read(&attach->stop, at, words, bytes))
            return true;
        for (size_t i = 0; i < bytes / 8; i++)
            for (size_t k = 0; k < count; k++)
                if (words[i] >= range[k][0] && words[i] < range[k][1])
                    return true;
    }
    return false;
}

/* Threads that have not stopped wait in the kernel for a child of vfork: they are in no code that changes. */
static bool have_all_stopped(struct attach *attach)
{
    for (size_t i = 0; i < attach->stop.count; i++) {
        struct hw_stop_thread *thread = &attach->stop.threads[i];
        if (!thread->gone && !thread->held && !thread->stopped.known && !hw_stop_is_in_vfork(&attach->stop, thread))
            return false;
    }
    return true;
}

/* AFTER: the jumps, or what was there before. Where neither of them stands nothing is changed. */
static bool write_patches(struct attach *attach, bool after)
{
    const struct hw_attach *info = &attach->out->info;
    for (uint32_t i = 0; i < info->patch_count; i++) {
        const struct hw_attach_patch *patch = &info->patch[i];
        uint8_t now[sizeof patch->before];
        if (patch->size > sizeof now || !hw_stop_read(&attach->stop, patch->address, now, patch->size))
            return FAIL(attach, "code of process %d is gone", (int)attach->stop.pid);
        if (memcmp(now, patch->before, patch->size) != 0 && memcmp(now, patch->after, patch->size) != 0)
            return FAIL(attach, "the code of process %d was changed by something else", (int)attach->stop.pid);
    }
    for (uint32_t i = 0; i < info->patch_count; i++) {
        const struct hw_attach_patch *patch = &info->patch[i];
        if (write_code(attach, patch->address, after ? patch->after : patch->before, patch->size))
            continue;
        const struct hw_error error = attach->out->error;
        while (after && i-- > 0)
            write_code(attach, info->patch[i].address, info->patch[i].before, info->patch[i].size);
        attach->out->error = error;
        return false;
    }
    return true;
}

static bool change_code(struct attach *attach)
{
    const struct hw_attach *info = &attach->out->info;
    uint64_t range[HW_ATTACH_PATCHES][2];
    for (uint32_t i = 0; i < info->patch_count; i++) {
        range[i][0] = info->patch[i].address + 1;
        range[i][1] = info->patch[i].address + info->patch[i].size;
    }
    for (const uint64_t until = hw_stop_now_ns() + SEARCH_NS; hw_stop_now_ns() < until;) {
        if (!hw_stop_all(&attach->stop)) {
            hw_stop_let_go(&attach->stop);
            return false;
        }
        bool possible = have_all_stopped(attach);
        for (size_t i = 0; possible && i < attach->stop.count; i++) {
            const struct hw_stop_thread *thread = &attach->stop.threads[i];
            possible = thread->gone || thread->held || !thread->stopped.known ||
                       !leads_to(attach, thread, (const uint64_t(*)[2])range, info->patch_count);
        }
        const bool done = possible && write_patches(attach, true);
        hw_stop_let_go(&attach->stop);
        if (possible)
            return done;
        hw_stop_sleep_ns(LATER_NS);
        hw_target_code_refresh(&attach->code, &attach->stop); /* threads may have new stacks */
    }
    return FAIL(attach, "the threads of process %d could not be stopped outside of the allocator's first instructions",
                (int)attach->stop.pid);
}

/* ---- begin ---- */

static bool load_runtime(struct attach *attach, uint64_t base)
{
    uint64_t handle = 0, problem = 0;
    char text[512] = "";
    struct iovec to = {text, sizeof text - 1};
    const char *name = strrchr(attach->out->runtime, '/');
    char path[sizeof((struct hw_parked *)NULL)->text];
    const int directory = name ? (int)(name - attach->out->runtime) : 0;
    const int length = snprintf(path, sizeof path, "%.*s/.%s", directory, attach->out->runtime, name ? name : "") + 1;
    const char *open = hw_image_symbol(&attach->stop, attach->points.libc, "dlopen") ? "dlopen" : "__libc_dlopen_mode";
    const bool internal = *open == '_';
    if (length > (int)sizeof path)
        return FAIL(attach, "the name of the runtime library is too long");
    if (!hw_stop_write(&attach->stop, DATA(attach, text), path, (size_t)length) ||
        !call_libc(attach, open, DATA(attach, text), internal ? 0x80000002ul : 2, &handle))
        return false;
    if (!handle) {
        if (!internal && call_libc(attach, "dlerror", 0, 0, &problem) && problem) {
            const struct iovec from = {(void *)problem, sizeof text - 1};
            if (process_vm_readv(attach->stop.alive, &to, 1, &from, 1, 0) < 0)
                text[0] = '\0';
        }
        return FAIL(attach, "process %d could not load %s: %s", (int)attach->stop.pid, attach->out->runtime,
                    *text ? text : "dlopen failed");
    }
    return read_code(attach, base);
}

/* dlsym leaves a message behind when it finds nothing; asked twice, libc forgets it. */
static bool forget_message(struct attach *attach)
{
    if (!hw_image_symbol(&attach->stop, attach->points.libc, "dlerror"))
        return true;
    return call_libc(attach, "dlerror", 0, 0, NULL) && call_libc(attach, "dlerror", 0, 0, NULL);
}

static bool call_runtime(struct attach *attach, enum hw_attach_what what)
{
    uint64_t result = 0;
    if (!call(attach, attach->out->info.call, what, 0, &result) || !read_info(attach))
        return false;
    return (int64_t)result == 0 || FAIL(attach, "process %d: %s", (int)attach->stop.pid, attach->out->info.problem);
}

/* errno is a variable of the thread. */
static bool keep_error(struct attach *attach, uint64_t *place, int *value)
{
    uint64_t kept = 0;
    if (!call_libc(attach, "__errno_location", 0, 0, place) ||
        !hw_stop_read(&attach->stop, *place, value, sizeof *value))
        return false;
    kept = (uint64_t)*value;
    return hw_stop_write(&attach->stop, DATA(attach, error), &kept, sizeof kept) &&
           hw_stop_write(&attach->stop, DATA(attach, error_place), place, sizeof *place);
}

static bool begin(struct attach *attach)
{
    uint64_t base = 0, place = 0;
    int value = 0;
    const struct hw_attach *info = &attach->out->info;
    const size_t length = strlen(attach->out->options) + 1;
    if (!open_process(attach, &base))
        return false;
    if (length > sizeof info->options)
        return FAIL(attach, "the options are too long");
    if (attach->runtime && !read_info(attach))
        return false;
    if (attach->runtime && info->stage != HW_ATTACH_IDLE)
        return FAIL(attach,
                    info->stage == HW_ATTACH_COUNTING
                        ? "process %d is recorded already, since an earlier heapwise attach (heapwise detach "
                          "ends that)"
                        : "process %d has the runtime since its start (heapwise record): it needs no attach",
                    (int)attach->stop.pid);
    if (!find_and_park(attach))
        return false;
    bool fine = keep_error(attach, &place, &value);
    const bool kept = fine;
    fine = fine && (attach->runtime || load_runtime(attach, base)) && read_info(attach);
    fine = fine && hw_stop_write(&attach->stop, attach->variable + offsetof(struct hw_attach, options),
                                 attach->out->options, length);
    const bool begun = fine && call_runtime(attach, HW_ATTACH_BEGIN);
    if (kept && !attach->thread.gone) {
        const struct hw_error error = attach->out->error;
        forget_message(attach);
        if (!begun)
            attach->out->error = error;
    }
    fine = begun && change_code(attach);
    if (begun && !fine && !attach->thread.gone) {
        const struct hw_error error = attach->out->error;
        call_runtime(attach, HW_ATTACH_END);
        unlink(info->path);
        attach->out->error = error;
    }
    if (kept && !attach->thread.gone)
        fine = hw_stop_write(&attach->stop, place, &value, sizeof value) && fine;
    forget_parked(attach);
    return fine;
}

/* ---- end ---- */

/* The runtime's data of the thread is as in a new thread. */
static bool reset_thread(struct attach *attach, const struct hw_stop_thread *thread, uint64_t offset, const void *image)
{
    const struct hw_attach *info = &attach->out->info;
    return hw_stop_write(&attach->stop, thread->stopped.thread_pointer + (uint64_t)info->plane - offset, image,
                         info->tls_bytes);
}

static bool reset_threads(struct attach *attach)
{
    const struct hw_attach *info = &attach->out->info;
    const uint64_t offset = hw_image_symbol(&attach->stop, attach->runtime, HW_ATTACH_PLANE);
    char *image =
        info->tls_bytes < 65536 && info->tls_image_bytes <= info->tls_bytes ? calloc(1, info->tls_bytes) : NULL;
    bool fine = image && hw_stop_read(&attach->stop, info->tls_image, image, info->tls_image_bytes);
    for (size_t i = 0; fine && i < attach->stop.count; i++) {
        const struct hw_stop_thread *thread = &attach->stop.threads[i];
        fine = thread->gone || reset_thread(attach, thread, offset, image);
    }
    free(image);
    return fine || FAIL(attach, "the threads of process %d cannot be reset", (int)attach->stop.pid);
}

/* Takes the jumps out, and waits until nobody is behind them. */
static bool restore_code(struct attach *attach)
{
    const struct hw_attach *info = &attach->out->info;
    const uint64_t range[2][2] = {{info->code, info->code_end}, {info->trampolines, info->trampolines_end}};
    bool restored = false;
    int round = 0;
    for (const uint64_t until = hw_stop_now_ns() + INSIDE_NS; hw_stop_now_ns() < until; round++) {
        bool fine = hw_stop_all(&attach->stop) && (restored || write_patches(attach, false));
        restored |= fine;
        bool outside = fine;
        for (size_t i = 0; outside && i < attach->stop.count; i++) {
            const struct hw_stop_thread *thread = &attach->stop.threads[i];
            outside = thread->gone ||
                      (thread->stopped.known &&
                       (!leads_to(attach, thread, range, 2) ||
                        (round > TRUST && thread->general.rip && !hw_is_inside(&attach->points, thread, range))));
        }
        if (outside)
            fine = reset_threads(attach);
        hw_stop_let_go(&attach->stop);
        if (!fine || outside)
            return fine;
        hw_stop_sleep_ns(LATER_NS);
        hw_target_code_refresh(&attach->code, &attach->stop);
    }
    return FAIL(attach,
                "nothing is counted any more in process %d, but a thread is still in the middle of a counted call: run "
                "heapwise detach again later",
                (int)attach->stop.pid);
}

static bool end(struct attach *attach)
{
    uint64_t base = 0, place = 0;
    int value = 0;
    if (!open_process(attach, &base))
        return false;
    if (!attach->runtime)
        return FAIL(attach, "process %d is not recorded", (int)attach->stop.pid);
    if (!read_info(attach))
        return false;
    if (attach->out->info.stage != HW_ATTACH_COUNTING)
        return FAIL(attach,
                    attach->out->info.stage == HW_ATTACH_IDLE
                        ? "process %d is not recorded any more"
                        : "process %d was started by heapwise record, and is recorded until it ends",
                    (int)attach->stop.pid);
    if (!restore_code(attach) || !find_and_park(attach))
        return false;
    bool fine = keep_error(attach, &place, &value);
    const bool kept = fine;
    fine = fine && call_runtime(attach, HW_ATTACH_END);
    if (kept && !attach->thread.gone)
        fine = hw_stop_write(&attach->stop, place, &value, sizeof value) && fine;
    forget_parked(attach);
    return fine;
}

static bool run(struct hw_attaching *attaching, bool (*what)(struct attach *attach))
{
    static struct attach attach;
    sigset_t all, old;
    attach = (struct attach){.out = attaching, .memory = -1};
    attach.stop = (struct hw_stop){.pid = attaching->pid, .alive = attaching->pid, .error = &attaching->error};
    sigfillset(&all); /* who interrupts this command waits until the program runs again */
    sigprocmask(SIG_BLOCK, &all, &old);
    const bool fine = what(&attach);
    forget_parked(&attach);
    hw_stop_let_go(&attach.stop);
    close_process(&attach);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return fine;
}

bool hw_attach_begin(struct hw_attaching *attaching)
{
    return run(attaching, begin);
}

bool hw_attach_end(struct hw_attaching *attaching)
{
    return run(attaching, end);
}
