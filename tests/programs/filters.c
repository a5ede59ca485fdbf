/* filters.c - see filters.h. */
#include "filters.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define MOST 256

/* What container engines permit by default, as far as these programs and the runtime need it: everything else fails. */
static const short usual[] = {
    SYS_access,
    SYS_arch_prctl,
    SYS_brk,
    SYS_clock_gettime,
    SYS_clock_nanosleep,
    SYS_close,
    SYS_dup,
    SYS_dup2,
    SYS_exit,
    SYS_exit_group,
    SYS_fallocate,
    SYS_fcntl,
    SYS_fork,
    SYS_fstat,
    SYS_ftruncate,
    SYS_futex,
    SYS_getcwd,
    SYS_getdents64,
    SYS_getpid,
    SYS_getppid,
    SYS_getrandom,
    SYS_getrlimit,
    SYS_gettid,
    SYS_getuid,
    SYS_kill,
    SYS_lseek,
    SYS_madvise,
    SYS_membarrier,
    SYS_memfd_create,
    SYS_mincore,
    SYS_mmap,
    SYS_mprotect,
    SYS_mremap,
    SYS_munlock,
    SYS_munmap,
    SYS_nanosleep,
    SYS_newfstatat,
    SYS_openat,
    SYS_pipe2,
    SYS_poll,
    SYS_ppoll,
    SYS_prctl,
    SYS_pread64,
    SYS_prlimit64,
    SYS_pwrite64,
    SYS_read,
    SYS_readlink,
    SYS_rseq,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sched_getaffinity,
    SYS_sched_yield,
    SYS_seccomp,
    SYS_set_robust_list,
    SYS_set_tid_address,
    SYS_sigaltstack,
    SYS_stat,
    SYS_statx,
    SYS_tgkill,
    SYS_uname,
    SYS_unlink,
    SYS_wait4,
    SYS_write,
    SYS_process_vm_readv,
    SYS_restart_syscall,
};

struct filter {
    struct sock_filter code[MOST];
    unsigned count;
};

static void add(struct filter *filter, unsigned code, uint32_t k, unsigned jt, unsigned jf)
{
    filter->code[filter->count++] = (struct sock_filter){(uint16_t)code, (uint8_t)jt, (uint8_t)jf, k};
}

static void load(struct filter *filter, size_t offset)
{
    add(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void answer(struct filter *filter, uint32_t action)
{
    add(filter, BPF_RET | BPF_K, action, 0, 0);
}

/* NUMBER: ACTION. */
static void decide(struct filter *filter, int number, uint32_t action)
{
    add(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1);
    answer(filter, action);
}

#define REFUSE(number) (SECCOMP_RET_ERRNO | (number))
#define ARGUMENT(n)    offsetof(struct seccomp_data, args[n])

static void as_containers(struct filter *filter)
{
    load(filter, offsetof(struct seccomp_data, arch));
    add(filter, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
    answer(filter, SECCOMP_RET_KILL_PROCESS);
    load(filter, offsetof(struct seccomp_data, nr));
    add(filter, BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1); /* x32 */
    answer(filter, REFUSE(ENOSYS));
    decide(filter, SYS_clone3, REFUSE(ENOSYS)); /* its flags cannot be seen */
    add(filter, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 5);
    load(filter, ARGUMENT(0));
    add(filter, BPF_ALU | BPF_AND | BPF_K, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET, 0, 0);
    add(filter, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1);
    answer(filter, SECCOMP_RET_ALLOW);
    answer(filter, REFUSE(EPERM));
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        decide(filter, usual[i], SECCOMP_RET_ALLOW);
    answer(filter, REFUSE(EPERM));
}

/* What helps a recording, but is not needed, fails. */
static void only_needed(struct filter *filter)
{
    static const short calls[] = {SYS_membarrier,  SYS_prlimit64,   SYS_uname,     SYS_sched_getaffinity,
                                  SYS_readlink,    SYS_getppid,     SYS_mincore,   SYS_getcwd,
                                  SYS_sigaltstack, SYS_sched_yield, SYS_unlink,    SYS_process_vm_readv,
                                  SYS_fcntl,       SYS_lseek,       SYS_prctl,     SYS_pread64,
                                  SYS_ftruncate,   SYS_getdents64,  SYS_getrandom, SYS_pwrite64};
    load(filter, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        decide(filter, calls[i], REFUSE(EPERM));
    answer(filter, SECCOMP_RET_ALLOW);
}

static void forbid(struct filter *filter, int number, uint32_t action)
{
    load(filter, offsetof(struct seccomp_data, nr));
    decide(filter, number, action);
    answer(filter, SECCOMP_RET_ALLOW);
}

static void forbid_mmap(struct filter *filter)
{
    forbid(filter, SYS_mmap, REFUSE(EPERM));
}

static void kill_for_fallocate(struct filter *filter)
{
    forbid(filter, SYS_fallocate, SECCOMP_RET_KILL_PROCESS);
}

static void trap_membarrier(struct filter *filter)
{
    forbid(filter, SYS_membarrier, SECCOMP_RET_TRAP);
}

static void pretend_fcntl(struct filter *filter)
{
    forbid(filter, SYS_fcntl, REFUSE(0));
}

/* By which sleeps continue after a stop. */
static void kill_for_restart(struct filter *filter)
{
    forbid(filter, SYS_restart_syscall, SECCOMP_RET_KILL_PROCESS);
}

static void kill_for_socket(struct filter *filter)
{
    forbid(filter, SYS_socket, SECCOMP_RET_KILL_PROCESS);
}

/* As of services that may have no new code. */
static void forbid_code(struct filter *filter)
{
    load(filter, offsetof(struct seccomp_data, nr));
    add(filter, BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3);
    load(filter, ARGUMENT(2));
    add(filter, BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1);
    answer(filter, REFUSE(EPERM));
    answer(filter, SECCOMP_RET_ALLOW);
}

/* Decides by the number of a file. */
static void read_from_one(struct filter *filter)
{
    load(filter, offsetof(struct seccomp_data, nr));
    add(filter, BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 0, 3);
    load(filter, ARGUMENT(0));
    add(filter, BPF_JMP | BPF_JGT | BPF_K, 100, 0, 1);
    answer(filter, REFUSE(EPERM));
    answer(filter, SECCOMP_RET_ALLOW);
}

static const struct {
    const char *name;
    void (*make)(struct filter *filter);
} kinds[] = {
    {"containers", as_containers},          {"only-needed", only_needed},         {"no-mmap", forbid_mmap},
    {"kill-fallocate", kill_for_fallocate}, {"trap-membarrier", trap_membarrier}, {"pretend-fcntl", pretend_fcntl},
    {"kill-restart", kill_for_restart},     {"kill-socket", kill_for_socket},     {"no-code", forbid_code},
    {"read-from-one", read_from_one}};

static bool set_one(const char *name, size_t length)
{
    static struct filter filter;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strlen(kinds[i].name) != length || strncmp(kinds[i].name, name, length) != 0)
            continue;
        filter.count = 0;
        kinds[i].make(&filter);
        const struct sock_fprog program = {(unsigned short)filter.count, filter.code};
        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
    }
    return false;
}

bool set_filters(const char *kind)
{
    while (true) {
        const size_t length = strcspn(kind, "+");
        if (!set_one(kind, length))
            return false;
        if (!kind[length])
            return true;
        kind += length + 1;
    }
}
