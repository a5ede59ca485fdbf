/* failcalls.c - runs a program again and again, each time with one system call of the runtime in it that fails, the
 * first, the second and so on until there are no more, then the same in the processes that it forks: failcalls ALL STEP
 * HEAPWISE DIRECTORY PROGRAM [ARGUMENT...]
 *
 * The first ALL calls fail one by one, then each STEPth. Profiles are in DIRECTORY, and gone afterwards. Right is: what
 * the program prints and how it ends are the same, nobody but Heapwise writes on standard error, and what there is of a
 * profile can be read, or is refused. Prints what is wrong, a line each, and at the end how many runs there were, calls
 * in the one without failures, and runs in which one failed.
 *
 * A filter hands the calls to this process, which lets them go on or has them fail: not a tracer, under which the
 * runtime leaves out what needs signals. Which code makes a call is seen from its address. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What may fail, and how it does. */
static const struct {
    unsigned number;
    int error;
} calls[] = {
    {SYS_mmap, ENOMEM},
    {SYS_mprotect, ENOMEM},
    {SYS_mremap, ENOMEM},
    {SYS_madvise, ENOMEM},
    {SYS_mincore, EAGAIN},
    {SYS_openat, EMFILE},
    {SYS_read, EIO},
    {SYS_pread64, EIO},
    {SYS_write, ENOSPC},
    {SYS_pwrite64, ENOSPC},
    {SYS_fallocate, ENOSPC},
    {SYS_ftruncate, ENOSPC},
    {SYS_fcntl, EMFILE},
    {SYS_stat, EIO},
    {SYS_fstat, EIO},
    {SYS_newfstatat, EIO},
    {SYS_readlink, ENOENT},
    {SYS_rename, EACCES},
    {SYS_perf_event_open, EMFILE},
    {SYS_timer_create, EAGAIN},
    {SYS_clone, EAGAIN},
    {SYS_prctl, EINVAL},
    {SYS_prlimit64, EPERM},
    {SYS_sched_getaffinity, EINVAL},
    {SYS_memfd_create, EMFILE},
    {SYS_ioctl, EINVAL},
    {SYS_uname, EFAULT},
    {SYS_link, EPERM},
};
enum { CALLS = sizeof calls / sizeof *calls };

static const char *heapwise, *directory;
static volatile sig_atomic_t too_long;
static pid_t child;

static void must(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "failcalls: %s: %s\n", what, strerror(errno));
    exit(2);
}

static void on_alarm(int signal)
{
    (void)signal;
    too_long = 1;
    kill(-child, SIGKILL);
}

/* ---- the filter ---- */

static int filter_calls(void)
{
    struct sock_filter code[2 * CALLS + 4], *next = code;
    *next++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < CALLS; i++) {
        *next++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1);
        *next++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    }
    *next++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {(unsigned short)(next - code), code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

/* Tells the number of its listener, and goes on when its parent has fetched it. */
static _Noreturn void run_child(char **argv, int out, int err, int tell)
{
    setpgid(0, 0);
    dup2(out, 1);
    dup2(err, 2);
    int listener = filter_calls();
    if (send(tell, &listener, sizeof listener, 0) == sizeof listener && recv(tell, &listener, 1, 0) == 1)
        execv(argv[0], argv);
    _exit(126);
}

/* ---- whose call it is ---- */

static uintptr_t runtime_first, runtime_end;

static bool by_runtime(pid_t thread, uintptr_t address)
{
    char line[4400];
    if (!runtime_end) {
        snprintf(line, sizeof line, "/proc/%d/maps", (int)thread);
        FILE *maps = fopen(line, "re");
        while (maps && fgets(line, sizeof line, maps)) {
            unsigned long first, end;
            if (strstr(line, "/libheapwise.so") && strstr(line, " r-xp ") &&
                sscanf(line, "%lx-%lx", &first, &end) == 2) {
                runtime_first = first;
                runtime_end = end;
            }
        }
        if (maps)
            fclose(maps);
    }
    return address >= runtime_first && address < runtime_end;
}

static bool in_first_process(pid_t thread)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d", (int)child, (int)thread);
    return access(path, F_OK) == 0;
}

/* ---- a run ---- */

struct output {
    char *text;
    size_t size;
};

struct run {
    int status;
    unsigned calls[2]; /* in the first process, in others */
    long failed;       /* number of the call that failed, -1 if none did */
    struct output out, err;
};

static struct output read_all(int file)
{
    const off_t size = lseek(file, 0, SEEK_END);
    struct output output = {malloc((size_t)size + 1), (size_t)size};
    output.text[pread(file, output.text, output.size, 0)] = '\0';
    close(file);
    return output;
}

/* Answers until all processes have ended. The call that fails is number FAILING, from 1, of those in OTHERS. */
static void answer(int listener, struct run *run, bool others, unsigned failing)
{
    struct seccomp_notif asked;
    struct seccomp_notif_resp reply;
    for (;;) {
        struct pollfd wait = {.fd = listener, .events = POLLIN};
        if (poll(&wait, 1, -1) < 0)
            continue;
        if (!(wait.revents & POLLIN))
            return;
        memset(&asked, 0, sizeof asked);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0)
            continue;
        reply = (struct seccomp_notif_resp){.id = asked.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        const bool elsewhere = !in_first_process((pid_t)asked.pid);
        if (by_runtime((pid_t)asked.pid, asked.data.instruction_pointer) && ++run->calls[elsewhere] == failing &&
            elsewhere == others) {
            run->failed = asked.data.nr;
            reply.flags = 0;
            for (int i = 0; i < CALLS; i++)
                if (calls[i].number == (unsigned)asked.data.nr)
                    reply.error = -calls[i].error;
        }
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply);
    }
}

static struct run run_once(char **argv, bool others, unsigned failing)
{
    struct run run = {.failed = -1};
    const int out = memfd_create("out", MFD_CLOEXEC), err = memfd_create("err", MFD_CLOEXEC);
    int tell[2], number = -1;
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, tell) == 0, "socketpair");
    runtime_first = runtime_end = 0;
    child = fork();
    must(child >= 0, "fork");
    if (child == 0)
        run_child(argv, out, err, tell[1]);
    close(tell[1]);
    setpgid(child, child);
    must(recv(tell[0], &number, sizeof number, 0) == sizeof number && number >= 0, "seccomp");
    const int pidfd = (int)syscall(SYS_pidfd_open, child, 0),
              listener = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
    must(listener >= 0 && send(tell[0], "", 1, 0) == 1, "pidfd_getfd");
    close(tell[0]);
    alarm(60);
    answer(listener, &run, others, failing);
    alarm(0);
    waitpid(child, &run.status, 0);
    close(pidfd);
    close(listener);
    run.out = read_all(out);
    run.err = read_all(err);
    return run;
}

/* ---- what is wrong ---- */

static bool only_heapwise_speaks(const char *text)
{
    for (; *text; text += strcspn(text, "\n") + 1)
        if (strncmp(text, "heapwise: ", 10) != 0)
            return false;
    return true;
}

/* Whether FILE is read, or refused, by the verb that takes least time. */
static bool is_read(const char *file)
{
    char merged[4200];
    int status;
    snprintf(merged, sizeof merged, "%s.merged", directory);
    const pid_t reader = fork();
    if (reader == 0) {
        const int nowhere = open("/dev/null", O_RDWR);
        dup2(nowhere, 1);
        dup2(nowhere, 2);
        execl(heapwise, heapwise, "merge", "-q", "-f", "-o", merged, file, (char *)NULL);
        _exit(126);
    }
    waitpid(reader, &status, 0);
    return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 2);
}

static const char *judge(const struct run *run, const struct run *whole)
{
    const char *wrong = NULL;
    char pattern[4200];
    glob_t files;
    if (too_long)
        wrong = "it does not end";
    else if (WIFSIGNALED(run->status))
        wrong = "it crashes";
    else if (run->status != whole->status && strstr(run->err.text, "no address space to count accesses in"))
        wrong = NULL; /* code that counts cannot do without, and says so */
    else if (run->status != whole->status)
        wrong = "it ends with another code";
    else if (run->out.size != whole->out.size || memcmp(run->out.text, whole->out.text, run->out.size) != 0)
        wrong = "it prints something else";
    else if (!only_heapwise_speaks(run->err.text))
        wrong = "it has errors";
    snprintf(pattern, sizeof pattern, "%s/*", directory);
    if (glob(pattern, 0, NULL, &files) == 0) {
        for (size_t i = 0; i < files.gl_pathc; i++) {
            if (!wrong && !is_read(files.gl_pathv[i]))
                wrong = "its profile cannot be read";
            unlink(files.gl_pathv[i]);
        }
        globfree(&files);
    }
    return wrong;
}

int main(int argc, char **argv)
{
    must(argc > 5, "arguments");
    const unsigned all = (unsigned)atoi(argv[1]), step = (unsigned)atoi(argv[2]);
    heapwise = argv[3];
    directory = argv[4];
    argv += 5;
    signal(SIGALRM, on_alarm);
    const struct run whole = run_once(argv, false, 0);
    unsigned runs = 0, failed = 0, wrong_runs = 0;
    const char *wrong = judge(&whole, &whole);
    if (wrong || !WIFEXITED(whole.status)) {
        printf("without failures %s (status %x): %s", wrong ? wrong : "it crashes", (unsigned)whole.status,
               whole.err.text);
        return 1;
    }
    for (int others = 0; others < 2; others++)
        for (unsigned failing = 1; failing <= whole.calls[others]; failing += failing < all ? 1 : step) {
            struct run run = run_once(argv, others, failing);
            wrong = judge(&run, &whole);
            if (wrong) {
                printf("call %u%s (system call %ld): %s (status %x): %.1000s%.1000s\n", failing,
                       others ? " of another process" : "", run.failed, wrong, (unsigned)run.status, run.out.text,
                       run.err.text);
                wrong_runs++;
            }
            too_long = 0;
            runs++;
            failed += run.failed >= 0;
            free(run.out.text);
            free(run.err.text);
        }
    printf("%u runs, %u calls, %u failed\n", runs, whole.calls[0] + whole.calls[1], failed);
    return wrong_runs != 0;
}
