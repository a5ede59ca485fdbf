/* permitted_calls.c - see permitted_calls.h.
 *
 * The filters are run here, for each system call that the parked thread and the runtime make, as far as its arguments
 * are known beforehand. A filter that decides by the others (addresses, numbers of files) permits nothing. */
#include "cli/permitted_calls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/call_filter.h"
#include "cli/recorded.h"

#define STOP_NS     5000000000ull /* until a thread stops */
#define LATER_NS    10000000l
#define MOST_STATUS 8192
#define ADMIN       21 /* CAP_SYS_ADMIN */

enum need {
    NEEDED,
    HELPS,    /* where it fails something is missing in the profile, or done otherwise: it may fail, but not kill */
    IN_MEMORY /* needed where the runtime is brought as a file in memory */
};

#define A(n)     (1u << (n))
#define PRIVATE_ (MAP_PRIVATE | MAP_ANONYMOUS)
#define RW       (PROT_READ | PROT_WRITE)

static const struct call {
    const char *name; /* as a message gives it */
    uint16_t number;
    uint8_t need;
    uint8_t known; /* arguments */
    uint64_t argument[6];
} calls[] = {
    /* of the parked thread, and of dlopen in it */
    {"rt_sigprocmask", SYS_rt_sigprocmask, NEEDED, A(0) | A(3), {SIG_SETMASK, 0, 0, 8}},
    {"mmap", SYS_mmap, NEEDED, A(2) | A(3), {0, 0, RW, PRIVATE_ | MAP_FIXED_NOREPLACE}},
    {"mprotect with PROT_EXEC", SYS_mprotect, NEEDED, A(2), {0, 0, PROT_READ | PROT_EXEC}},
    {"munmap", SYS_munmap, NEEDED, 0, {0}},
    {"ppoll", SYS_ppoll, NEEDED, A(0) | A(1) | A(3), {0}},
    {"memfd_create", SYS_memfd_create, IN_MEMORY, A(1), {0, MFD_CLOEXEC}},
    {"openat", SYS_openat, NEEDED, A(2), {0, 0, O_RDONLY | O_CLOEXEC}},
    {"read", SYS_read, NEEDED, 0, {0}},
    {"close", SYS_close, NEEDED, 0, {0}},
    {"fstat", SYS_fstat, NEEDED, 0, {0}},
    {"newfstatat", SYS_newfstatat, NEEDED, 0, {0}},
    {"mmap", SYS_mmap, NEEDED, A(2) | A(3), {0, 0, PROT_READ, MAP_PRIVATE | MAP_DENYWRITE}},
    {"mmap with PROT_EXEC",
     SYS_mmap,
     NEEDED,
     A(2) | A(3),
     {0, 0, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE}},
    {"mmap", SYS_mmap, NEEDED, A(2) | A(3), {0, 0, PROT_READ, MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE}},
    {"mmap", SYS_mmap, NEEDED, A(2) | A(3), {0, 0, RW, MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE}},
    {"mmap", SYS_mmap, NEEDED, A(2) | A(3), {0, 0, RW, PRIVATE_ | MAP_FIXED}},
    {"mprotect", SYS_mprotect, NEEDED, A(2), {0, 0, PROT_READ}},
    {"mprotect with PROT_WRITE and PROT_EXEC", SYS_mprotect, NEEDED, A(2), {0, 0, RW | PROT_EXEC}},
    /* of the runtime */
    {"openat that creates a file",
     SYS_openat,
     NEEDED,
     A(2),
     {0, 0, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC}},
    {"fallocate", SYS_fallocate, NEEDED, A(1), {0}},
    {"mmap with MAP_SHARED", SYS_mmap, NEEDED, A(2) | A(3), {0, 0, RW, MAP_SHARED | MAP_FIXED}},
    {"mmap with MAP_NORESERVE", SYS_mmap, NEEDED, A(2) | A(3), {0, 0, RW, PRIVATE_ | MAP_NORESERVE}},
    {"mmap with PROT_NONE", SYS_mmap, NEEDED, A(2) | A(3), {0, 0, PROT_NONE, PRIVATE_ | MAP_NORESERVE}},
    {"mmap with MAP_GROWSDOWN",
     SYS_mmap,
     NEEDED,
     A(2) | A(3),
     {0, 0, RW, PRIVATE_ | MAP_NORESERVE | MAP_GROWSDOWN | MAP_FIXED}},
    {"madvise with MADV_DONTNEED", SYS_madvise, NEEDED, A(2), {0, 0, MADV_DONTNEED}},
    {"madvise with MADV_WIPEONFORK", SYS_madvise, NEEDED, A(2), {0, 0, MADV_WIPEONFORK}},
    {"madvise with MADV_NOHUGEPAGE", SYS_madvise, HELPS, A(2), {0, 0, MADV_NOHUGEPAGE}},
    {"madvise with MADV_HUGEPAGE", SYS_madvise, HELPS, A(2), {0, 0, MADV_HUGEPAGE}},
    {"madvise with MADV_DONTDUMP", SYS_madvise, HELPS, A(2), {0, 0, MADV_DONTDUMP}},
    {"rt_sigprocmask", SYS_rt_sigprocmask, NEEDED, A(0) | A(2) | A(3), {~0ull, 0, 0, 8}},
    {"futex", SYS_futex, NEEDED, A(1), {0, FUTEX_WAIT_PRIVATE}},
    {"futex", SYS_futex, NEEDED, A(1), {0, FUTEX_WAKE_PRIVATE}},
    {"getpid", SYS_getpid, NEEDED, 0, {0}},
    {"gettid", SYS_gettid, NEEDED, 0, {0}},
    {"clock_gettime", SYS_clock_gettime, NEEDED, A(0), {CLOCK_REALTIME}},
    {"clock_gettime", SYS_clock_gettime, NEEDED, A(0), {CLOCK_MONOTONIC}},
    {"nanosleep", SYS_nanosleep, NEEDED, 0, {0}},
    {"tgkill", SYS_tgkill, NEEDED, A(2), {0}},
    {"clock_gettime", SYS_clock_gettime, HELPS, A(0), {CLOCK_THREAD_CPUTIME_ID}},
    {"fcntl", SYS_fcntl, HELPS, A(1), {0, F_DUPFD_CLOEXEC}},
    {"fcntl", SYS_fcntl, HELPS, A(1), {0, F_GETFL}},
    {"getppid", SYS_getppid, HELPS, 0, {0}},
    {"getcwd", SYS_getcwd, HELPS, 0, {0}},
    {"lseek", SYS_lseek, HELPS, 0, {0}},
    {"membarrier", SYS_membarrier, HELPS, 0, {0}},
    {"mincore", SYS_mincore, HELPS, 0, {0}},
    {"prctl", SYS_prctl, HELPS, A(0), {PR_GET_NAME}},
    {"pread64", SYS_pread64, HELPS, 0, {0}},
    {"prlimit64", SYS_prlimit64, HELPS, A(0) | A(1) | A(2), {0, RLIMIT_AS}},
    {"prlimit64", SYS_prlimit64, HELPS, A(0) | A(1) | A(2), {0, RLIMIT_FSIZE}},
    {"prlimit64", SYS_prlimit64, HELPS, A(0) | A(1) | A(2), {0, RLIMIT_NOFILE}},
    {"readlink", SYS_readlink, HELPS, 0, {0}},
    {"sched_getaffinity", SYS_sched_getaffinity, HELPS, 0, {0}},
    {"sched_yield", SYS_sched_yield, HELPS, 0, {0}},
    {"sigaltstack", SYS_sigaltstack, HELPS, A(0), {0}},
    {"uname", SYS_uname, HELPS, 0, {0}},
    {"unlink", SYS_unlink, HELPS, 0, {0}},
    {"write", SYS_write, HELPS, 0, {0}},
    /* of heapwise dump */
    {"ftruncate", SYS_ftruncate, HELPS, 0, {0}},
    {"getdents64", SYS_getdents64, HELPS, 0, {0}},
    {"getrandom", SYS_getrandom, HELPS, 0, {0}},
    {"process_vm_readv", SYS_process_vm_readv, HELPS, 0, {0}},
    {"pwrite64", SYS_pwrite64, HELPS, 0, {0}},
};

#define CALLS (sizeof calls / sizeof *calls)

/* What the filters of one thread do with them. */
struct decisions {
    uint32_t action[CALLS];
    bool unclear[CALLS];
};

#define FAIL(...) (hw_error_set(stop->error, __VA_ARGS__), false)

static struct hw_filtered_call prepare(const struct call *call)
{
    struct hw_filtered_call filtered = {.data = {.nr = call->number, .arch = AUDIT_ARCH_X86_64}, .unknown = 0xc};
    for (unsigned i = 0; i < 6; i++)
        if (call->known & A(i))
            filtered.data.args[i] = call->argument[i];
        else
            filtered.unknown |= 3u << (4 + 2 * i);
    return filtered;
}

static void add_filter(struct decisions *decisions, const struct sock_filter *code, size_t count)
{
    for (size_t i = 0; i < CALLS; i++) {
        const struct hw_filtered_call call = prepare(&calls[i]);
        uint32_t action;
        if (hw_call_filter_run(code, count, &call, &action))
            decisions->action[i] = hw_call_filter_stronger(decisions->action[i], action);
        else
            decisions->unclear[i] = true;
    }
}

/* ---- what is not permitted ---- */

static bool is_permitted(const struct call *call, uint32_t action, bool unclear, bool in_memory)
{
    const uint32_t kind = action & SECCOMP_RET_ACTION_FULL;
    if (call->need == IN_MEMORY && !in_memory)
        return true;
    if (unclear)
        return false;
    return kind == SECCOMP_RET_ALLOW || kind == SECCOMP_RET_LOG ||
           (kind == SECCOMP_RET_ERRNO && action & SECCOMP_RET_DATA && call->need == HELPS);
}

static void describe(char *text, size_t size, uint32_t action, bool unclear)
{
    const uint32_t data = action & SECCOMP_RET_DATA;
    const char *name;
    switch (unclear ? SECCOMP_RET_ALLOW : action & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
        name = "is permitted with some arguments only";
        break;
    case SECCOMP_RET_ERRNO:
        name = data ? NULL : "returns 0 without being done";
        break;
    case SECCOMP_RET_TRAP:
        name = "sends SIGSYS";
        break;
    case SECCOMP_RET_TRACE:
        name = "asks a tracer";
        break;
    case SECCOMP_RET_USER_NOTIF:
        name = "asks another process";
        break;
    default:
        name = "kills the process";
    }
    snprintf(text, size, name ? "%s" : "fails (%s)", name ? name : strerror((int)data));
}

/* Whether another row says the same of the call: the first one of those without arguments in their names, if any. */
static bool is_said(const struct decisions *decisions, size_t row)
{
    const bool plain = !strchr(calls[row].name, ' ');
    for (size_t i = 0; i < CALLS; i++)
        if ((plain ? i < row : i != row) && calls[i].number == calls[row].number && calls[i].need == calls[row].need &&
            !strchr(calls[i].name, ' ') && decisions->action[i] == decisions->action[row] &&
            decisions->unclear[i] == decisions->unclear[row])
            return true;
    return false;
}

static bool judge(struct hw_stop *stop, const struct decisions *decisions, bool in_memory)
{
    char list[256] = "", action[64];
    unsigned more = 0;
    for (size_t i = 0; i < CALLS; i++) {
        char item[128];
        if (is_permitted(&calls[i], decisions->action[i], decisions->unclear[i], in_memory) || is_said(decisions, i))
            continue;
        describe(action, sizeof action, decisions->action[i], decisions->unclear[i]);
        snprintf(item, sizeof item, "%s %s", calls[i].name, action);
        const size_t used = strlen(list);
        if (used + strlen(item) + 3 > sizeof list - 32)
            more++;
        else
            snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", item);
    }
    if (more)
        snprintf(list + strlen(list), sizeof list - strlen(list), " and %u more", more);
    return !*list ||
           FAIL("the filter of system calls (seccomp) of process %d does not permit what a recording needs: %s. "
                "Record it from its start with heapwise record, or without this filter",
                (int)stop->pid, list);
}

/* ---- reading ---- */

static unsigned long number_of(const char *status, const char *name, int base)
{
    const char *value = hw_status_value(status, name);
    return value ? strtoul(value, NULL, base) : 0;
}

/* Why ptrace does not read filters, as far as that is known before a thread is stopped for it; or NULL. */
static const char *why_never(void)
{
    char own[MOST_STATUS];
    if (!hw_read_proc(getpid(), "status", own, sizeof own))
        return "/proc is not there";
    if (number_of(own, "Seccomp", 10))
        return "this command has such a filter itself, as in most containers";
    return number_of(own, "CapEff", 16) >> ADMIN & 1 ? NULL : "only root can read it (CAP_SYS_ADMIN)";
}

/* Of those that ptrace gives as EACCES. */
static const char *why_forbidden(void)
{
    const char *why = why_never();
    return why ? why : "this command is in a user namespace";
}

static bool thread_status(const struct hw_stop *stop, const char *tid, char status[MOST_STATUS])
{
    char name[300];
    snprintf(name, sizeof name, "task/%s/status", tid);
    return hw_read_proc(stop->pid, name, status, MOST_STATUS);
}

/* FILTERS: how many the thread has. This command has as many: then both are in the same container. */
static bool say_unreadable(struct hw_stop *stop, unsigned long filters, int error)
{
    char own[MOST_STATUS];
    if (error == EACCES && filters && hw_read_proc(getpid(), "status", own, sizeof own) &&
        number_of(own, "Seccomp_filters", 10) == filters)
        return true;
    return FAIL(
        "process %d has a filter of system calls (seccomp), and what it permits is not known: %s. Run heapwise as "
        "root outside of containers, or record the process from its start with heapwise record",
        (int)stop->pid, error == EACCES ? why_forbidden() : strerror(error));
}

/* Index 0 is the oldest one. */
static bool read_filters(struct hw_stop *stop, pid_t tid, unsigned long filters, bool in_memory)
{
    static struct sock_filter code[BPF_MAXINSNS];
    static struct decisions decisions;
    decisions = (struct decisions){.unclear = {false}};
    for (size_t i = 0; i < CALLS; i++)
        decisions.action[i] = SECCOMP_RET_ALLOW;
    for (unsigned long i = 0;; i++) {
        const long count = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)i, NULL);
        if (count < 0 && errno == ENOENT && i)
            return judge(stop, &decisions, in_memory);
        if (count < 0)
            return say_unreadable(stop, filters, errno);
        if (count > BPF_MAXINSNS || ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)i, code) != count)
            return say_unreadable(stop, 0, EINVAL);
        add_filter(&decisions, code, (size_t)count);
    }
}

static bool check_thread(struct hw_stop *stop, const char *name, bool in_memory)
{
    char status[MOST_STATUS];
    const pid_t tid = (pid_t)strtol(name, NULL, 10);
    for (const uint64_t until = hw_stop_now_ns() + STOP_NS; thread_status(stop, name, status);) {
        const unsigned long mode = number_of(status, "Seccomp", 10);
        const char *state = hw_status_value(status, "State");
        if (!mode || (state && (*state == 'Z' || *state == 'X')))
            return true;
        if (mode == SECCOMP_MODE_STRICT)
            return FAIL("process %d may only read, write and end (seccomp, strict mode): record it from its start with "
                        "heapwise record",
                        (int)stop->pid);
        const unsigned long filters = number_of(status, "Seccomp_filters", 10);
        if (why_never())
            return say_unreadable(stop, filters, EACCES);
        stop->error->message[0] = '\0';
        if (hw_stop_one(stop, tid)) {
            const bool fine = read_filters(stop, tid, filters, in_memory);
            hw_stop_let_go(stop);
            return fine;
        }
        hw_stop_let_go(stop);
        if (stop->error->message[0])
            return false;
        if (hw_stop_now_ns() > until)
            return FAIL("a thread of process %d does not stop, so its filter of system calls (seccomp) cannot be read: "
                        "try again",
                        (int)stop->pid);
        hw_stop_sleep_ns(LATER_NS);
    }
    return true; /* it has ended */
}

bool hw_calls_are_permitted(struct hw_stop *stop, bool in_memory)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)stop->pid);
    DIR *list = opendir(path);
    bool fine = list || FAIL("process %d has ended", (int)stop->pid);
    for (struct dirent *entry; fine && (entry = readdir(list));)
        fine = strtol(entry->d_name, NULL, 10) <= 0 || check_thread(stop, entry->d_name, in_memory);
    if (list)
        closedir(list);
    return fine;
}

/* ---- whether it is possible here ---- */

const char *hw_why_no_filters(void)
{
    static struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {1, &all};
    int ready[2], status;
    char byte;
    if (pipe(ready) != 0)
        return strerror(errno);
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
            write(ready[1], "", 1) == 1)
            pause();
        _exit(1);
    }
    close(ready[1]);
    const char *why = "filters cannot be set";
    if (child > 0 && read(ready[0], &byte, 1) == 1) {
        why = "processes cannot be traced";
        if (ptrace(PTRACE_SEIZE, child, NULL, NULL) == 0 && ptrace(PTRACE_INTERRUPT, child, NULL, NULL) == 0 &&
            waitpid(child, &status, __WALL) == child && WIFSTOPPED(status))
            why = ptrace(PTRACE_SECCOMP_GET_FILTER, child, NULL, NULL) == 1 ? NULL
                  : errno == EACCES                                         ? why_forbidden()
                                                                            : strerror(errno);
    }
    close(ready[0]);
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, &status, __WALL);
    }
    return why;
}
