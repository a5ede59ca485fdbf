/* doctor_machine.c - what the processor and the kernel allow: the checks of heapwise doctor about this machine. */
#include "cli/doctor.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/permitted_calls.h"
#include "report/text/human.h"
#include "report/view/view.h"
#include "runtime/samples/perf_source.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_ON           1
#endif

/* The first line of a file, without the newline. False when it cannot be read. */
static bool read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool got = fgets(line, (int)size, file) != NULL;
    fclose(file);
    if (got)
        line[strcspn(line, "\n")] = '\0';
    return got;
}

void hw_check_architecture(struct hw_finding *finding)
{
    struct utsname name;
    if (uname(&name) != 0)
        return;
    char cpus[32];
    snprintf(cpus, sizeof cpus, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    if (strcmp(name.machine, "x86_64") == 0)
        hw_finding_set(finding, HW_CHECK_OK, "%s, %s processors", name.machine, cpus);
    else
        hw_finding_set(finding, HW_CHECK_MISSING, "%s: the runtime exists for x86-64 only", name.machine);
}

void hw_check_kernel(struct hw_finding *finding)
{
    struct utsname name;
    unsigned major = 0, minor = 0;
    if (uname(&name) != 0 || sscanf(name.release, "%u.%u", &major, &minor) != 2)
        return;
    unsigned version = major * 1000 + minor;
    if (version < 4014)
        hw_finding_set(finding, HW_CHECK_MISSING,
                       "Linux %s: 4.14 is needed, with older ones a forked child cannot be recognised", name.release);
    else if (version < 5011)
        hw_finding_set(finding, HW_CHECK_LIMITED, "Linux %s: without syscall user dispatch, which came with 5.11",
                       name.release);
    else
        hw_finding_set(finding, HW_CHECK_OK, "Linux %s", name.release);
}

/* Does the first processor have FLAG? */
static bool cpu_has(const char *flag)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file)
        return false;
    char *line = NULL;
    size_t size = 0;
    bool found = false;
    while (getline(&line, &size, file) > 0) {
        if (strncmp(line, "flags", 5) != 0)
            continue;
        char *rest = NULL;
        for (char *word = strtok_r(line, " \t\n:", &rest); word && !found; word = strtok_r(NULL, " \t\n", &rest))
            found = strcmp(word, flag) == 0;
        break;
    }
    free(line);
    fclose(file);
    return found;
}

void hw_check_clock(struct hw_finding *finding)
{
    char source[64] = "unknown";
    read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", source, sizeof source);
    bool constant = cpu_has("constant_tsc"), nonstop = cpu_has("nonstop_tsc");
    if (constant && nonstop && strcmp(source, "tsc") == 0)
        hw_finding_set(finding, HW_CHECK_OK, "time stamp counter (constant, nonstop, the kernel's own clock source)");
    else
        hw_finding_set(finding, HW_CHECK_LIMITED,
                       "clock_gettime is used, which costs more than the time stamp counter: %s, %s, the kernel's "
                       "clock source is %s",
                       constant ? "constant" : "not constant", nonstop ? "nonstop" : "not nonstop", source);
}

void hw_check_rseq(struct hw_finding *finding)
{
    const unsigned *size = dlsym(RTLD_DEFAULT, "__rseq_size");
    if (size && *size)
        hw_finding_set(finding, HW_CHECK_OK,
                       "registered by the C library: reading the processor's number costs nothing");
    else
        hw_finding_set(finding, HW_CHECK_LIMITED, "not registered by the C library (%s): the processor's number is %s",
                       size ? "switched off" : "older than glibc 2.35", "read in another, slower way");
}

void hw_check_address_space(struct hw_finding *finding)
{
    char mode[16] = "?";
    read_line("/proc/sys/vm/overcommit_memory", mode, sizeof mode);
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    getrlimit(RLIMIT_AS, &limit);
    if (limit.rlim_cur != RLIM_INFINITY)
        hw_finding_set(finding, HW_CHECK_LIMITED,
                       "limited to %s (ulimit -v): blocks are kept in a table, which is slower than the address map",
                       HW_BYTES(limit.rlim_cur));
    else if (mode[0] == '2')
        hw_finding_set(finding, HW_CHECK_LIMITED,
                       "vm.overcommit_memory is 2: blocks are kept in a table, which is slower than the address map");
    else
        hw_finding_set(finding, HW_CHECK_OK, "not limited, vm.overcommit_memory is %s: blocks are found by address map",
                       mode);
}

void hw_check_descriptors(struct hw_finding *finding)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    if (limit.rlim_cur >= 128)
        hw_finding_set(finding, HW_CHECK_OK, "%s",
                       limit.rlim_cur == RLIM_INFINITY ? "not limited" : HW_COUNT(limit.rlim_cur));
    else
        hw_finding_set(finding, HW_CHECK_LIMITED,
                       "only %s (ulimit -n): the runtime keeps none for itself and opens the profile again to grow it",
                       HW_COUNT(limit.rlim_cur));
}

void hw_check_proc(struct hw_finding *finding)
{
    static const char *const files[] = {"/proc/self/maps", "/proc/self/smaps", "/proc/self/statm", "/proc/self/stat",
                                        "/proc/self/environ"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        int file = open(files[i], O_RDONLY | O_CLOEXEC);
        char byte;
        bool good = file >= 0 && read(file, &byte, 1) >= 0;
        int problem = errno;
        if (file >= 0)
            close(file);
        if (!good) {
            hw_finding_set(finding, HW_CHECK_LIMITED, "%s: %s: resident memory is not known, modules may be missing",
                           files[i], strerror(problem));
            return;
        }
    }
    hw_finding_set(finding, HW_CHECK_OK, "readable");
}

/* Tries on a file what the runtime does to a profile. Returns what failed, or NULL. */
static const char *try_mapping(int file)
{
    const size_t size = 65536;
    if (fallocate(file, 0, 0, (off_t)size) != 0)
        return "fallocate";
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED)
        return "mmap";
    memset(memory, 1, size);
    bool synced = msync(memory, size, MS_SYNC) == 0;
    munmap(memory, size);
    return synced ? NULL : "msync";
}

void hw_check_directory(struct hw_finding *finding)
{
    char name[] = ".heapwise-doctor-XXXXXX";
    int file = mkostemp(name, O_CLOEXEC);
    if (file < 0) {
        hw_finding_set(finding, HW_CHECK_MISSING, "no file can be made in the current directory: %s; use record -o",
                       strerror(errno));
        return;
    }
    unlink(name);
    const char *failed = try_mapping(file);
    int problem = errno;
    close(file);
    struct statvfs disk;
    uint64_t space = statvfs(".", &disk) == 0 ? (uint64_t)disk.f_bavail * disk.f_frsize : 0;
    if (!failed)
        hw_finding_set(finding, HW_CHECK_OK, "profiles can be written to the current one, %s free", HW_BYTES(space));
    else if (strcmp(failed, "fallocate") == 0 && (problem == EOPNOTSUPP || problem == ENOSYS))
        hw_finding_set(finding, HW_CHECK_LIMITED,
                       "the current one's file system has no fallocate: room is made by writing zeros");
    else
        hw_finding_set(finding, HW_CHECK_MISSING, "the current one cannot hold a profile: %s: %s; use record -o",
                       failed, strerror(problem));
}

/* Opens a counter of this thread and closes it again. Returns 0 or an errno. */
static int try_perf_event(uint32_t type, uint64_t config)
{
    struct perf_event_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.size = sizeof attributes;
    attributes.type = type;
    attributes.config = config;
    attributes.sample_period = 1000000;
    attributes.sample_type = PERF_SAMPLE_IP;
    attributes.exclude_kernel = 1;
    attributes.exclude_hv = 1;
    attributes.disabled = 1;
    int file = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (file < 0)
        return errno;
    close(file);
    return 0;
}

static const char *why_no_perf_event(int problem, bool hardware)
{
    switch (problem) {
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
        return hardware ? "this machine has no performance counters, like most virtual machines"
                        : "the kernel has none";
    case EACCES:
    case EPERM:
        return "not allowed: kernel.perf_event_paranoid, or a container's filter of system calls";
    case ENOSYS:
        return "the kernel was built without perf events";
    default:
        return strerror(problem);
    }
}

static void check_perf_event(struct hw_finding *finding, uint32_t type, uint64_t config)
{
    bool hardware = type == PERF_TYPE_HARDWARE;
    char paranoid[16] = "?";
    read_line("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof paranoid);
    int problem = try_perf_event(type, config);
    if (problem)
        hw_finding_set(finding, HW_CHECK_MISSING, "%s (kernel.perf_event_paranoid is %s)",
                       why_no_perf_event(problem, hardware), paranoid);
    else
        hw_finding_set(finding, HW_CHECK_OK, "perf_event_open %s (kernel.perf_event_paranoid is %s)",
                       hardware ? "counts processor cycles" : "delivers the processor's clock", paranoid);
}

void hw_check_hardware_counters(struct hw_finding *finding)
{
    check_perf_event(finding, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
}

void hw_check_software_events(struct hw_finding *finding)
{
    check_perf_event(finding, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
}

/* Opens the events that SOURCE needs, as the runtime would. Returns 0 or an errno. */
static int try_source(const struct hw_perf_source *source)
{
    int group = -1, problem = 0, file[HW_PERF_EVENTS];
    uint32_t count = 0;
    for (; count < source->count && !problem; count++) {
        struct perf_event_attr attributes;
        hw_perf_attributes(&source->event[count], 1000003u & ~15u, 0, &attributes);
        file[count] = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
        problem = file[count] < 0 ? errno : 0;
        group = source->event[count].leader ? file[count] : -1;
    }
    while (count > 0)
        if (file[--count] >= 0)
            close(file[count]);
    return problem;
}

/* The processor's own samples of accesses: 0 and *NAME, or an errno as the runtime would have it. */
static int try_picking(const char **name)
{
    static struct hw_perf_source source;
    struct utsname kernel;
    if (uname(&kernel) != 0 || !hw_perf_kernel_will_do(kernel.release))
        return ENOSYS;
    if (!hw_perf_source_find(HW_PERF_DEVICES, false, &source))
        return ENODEV;
    *name = source.name;
    int problem = try_source(&source);
    if (problem && source.estimated_loads && hw_perf_source_find(HW_PERF_DEVICES, true, &source) &&
        try_source(&source) == 0)
        return 0;
    return problem;
}

/* record --sample-accesses: the processor's own, or timers on a thread's CPU time; and nobody who traces. */
void hw_check_access_samples(struct hw_finding *finding)
{
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    timer_t timer;
    char line[256], tracer[32] = "0";
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof line, status))
        sscanf(line, "TracerPid: %31s", tracer);
    if (status)
        fclose(status);
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0) {
        hw_finding_set(finding, HW_CHECK_MISSING, "the kernel grants no timer on a thread's CPU time: %s",
                       strerror(errno));
        return;
    }
    timer_delete(timer);
    if (strcmp(tracer, "0") != 0)
        hw_finding_set(finding, HW_CHECK_MISSING,
                       "not while process %s traces this one: the tracer needs single "
                       "steps itself",
                       tracer);
    else {
        const char *name = NULL;
        int problem = try_picking(&name);
        char paranoid[16] = "?";
        read_line("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof paranoid);
        if (!problem)
            hw_finding_set(finding, HW_CHECK_OK, "sampled by the processor (%s; record --sample-accesses)", name);
        else
            hw_finding_set(finding, HW_CHECK_OK,
                           "sampled by bursts of single steps (record --sample-accesses); the processor cannot do "
                           "it%s%s: %s (kernel.perf_event_paranoid is %s)",
                           name ? " by " : "", name ? name : "", hw_sample_no_pmu(problem), paranoid);
    }
}

/* In a child: once it is on, every system call of the thread reads the selector. */
void hw_check_syscall_dispatch(struct hw_finding *finding)
{
    pid_t child = fork();
    if (child < 0)
        return;
    if (child == 0) {
        static volatile char selector; /* 0: let system calls through */
        int problem = prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &selector) == 0 ? 0 : errno;
        _exit(problem < 255 ? problem : 255);
    }
    int status;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return;
    if (WEXITSTATUS(status) == 0)
        hw_finding_set(finding, HW_CHECK_OK, "system calls inside the allocator can be observed");
    else
        hw_finding_set(finding, HW_CHECK_MISSING, "system calls inside the allocator cannot be observed: prctl: %s",
                       strerror(WEXITSTATUS(status)));
}

void hw_check_call_filters(struct hw_finding *finding)
{
    const char *why = hw_why_no_filters();
    if (why)
        hw_finding_set(
            finding, HW_CHECK_LIMITED,
            "heapwise attach refuses processes with a filter of system calls (seccomp), as in containers: what "
            "it permits cannot be read here: %s",
            why);
    else
        hw_finding_set(finding, HW_CHECK_OK,
                       "heapwise attach can read the filters of system calls (seccomp) of others");
}
