/* attachable.c - see attachable.h. */
#include "cli/attachable.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/recorded.h"

#define FAIL(...) (hw_error_set(stop->error, __VA_ARGS__), false)

static bool is_same_link(pid_t pid, const char *name)
{
    char path[64];
    struct stat its, own;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    if (stat(path, &its) != 0)
        return false;
    snprintf(path, sizeof path, "/proc/self/%s", name);
    return stat(path, &own) == 0 && its.st_ino == own.st_ino && its.st_dev == own.st_dev;
}

static unsigned long status_number(const char *status, const char *name)
{
    const char *value = hw_status_value(status, name);
    return value ? strtoul(value, NULL, 10) : 0;
}

/* What the kernel has told the program: AT_… */
static bool read_auxv(pid_t pid, uint64_t *base, uint64_t *secure)
{
    Elf64_auxv_t entry[64];
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/auxv", (int)pid);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = file >= 0 ? read(file, entry, sizeof entry) : -1;
    if (file >= 0)
        close(file);
    for (ssize_t i = 0; i < got / (ssize_t)sizeof *entry; i++) {
        *base = entry[i].a_type == AT_BASE ? entry[i].a_un.a_val : *base;
        *secure = entry[i].a_type == AT_SECURE ? entry[i].a_un.a_val : *secure;
    }
    return got > 0;
}

bool hw_sees_other_files(pid_t pid)
{
    return !is_same_link(pid, "ns/mnt") || !is_same_link(pid, "root");
}

int hw_open_inside(pid_t pid, const char *path)
{
    const struct open_how how = {.flags = O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, .resolve = RESOLVE_IN_ROOT};
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/root", (int)pid);
    const int root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int file = root >= 0 ? (int)syscall(SYS_openat2, root, path, &how, sizeof how) : -1;
    if (root >= 0)
        close(root);
    return file;
}

bool hw_is_attachable(struct hw_stop *stop, uint64_t *base)
{
    const pid_t pid = stop->pid;
    char status[8192], path[64], link[PATH_MAX], header[20] = "";
    uint64_t secure = 0;
    if (!hw_read_proc(pid, "status", status, sizeof status))
        return FAIL("there is no process %d", (int)pid);
    if (status_number(status, "Tgid") != (unsigned long)pid)
        return FAIL("%d is a thread of process %lu: give that number", (int)pid, status_number(status, "Tgid"));
    const char *state = hw_status_value(status, "State");
    if (state && (*state == 'Z' || *state == 'X'))
        return FAIL("process %d has ended (its parent has not collected it yet)", (int)pid);
    if (pid == getpid())
        return FAIL("process %d is this command itself", (int)pid);
    if (status_number(status, "Kthread"))
        return FAIL("process %d is a thread of the kernel: it has no heap", (int)pid);
    if (status_number(status, "TracerPid"))
        return FAIL("process %d is traced by process %lu (a debugger, strace, or another heapwise)", (int)pid,
                    status_number(status, "TracerPid"));
    if (state && *state == 'T')
        return FAIL("process %d is stopped: let it continue first (kill -CONT %d)", (int)pid, (int)pid);
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    if (readlink(path, link, sizeof link) < 0)
        return errno == ENOENT ? FAIL("process %d is a thread of the kernel: it has no heap", (int)pid)
                               : hw_stop_say_why(stop, errno);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || !read_auxv(pid, base, &secure)) {
        const int error = errno;
        if (file >= 0)
            close(file);
        return hw_stop_say_why(stop, error);
    }
    const bool known = read(file, header, sizeof header) == (ssize_t)sizeof header;
    close(file);
    if (!known || header[EI_CLASS] != ELFCLASS64 || header[18] != EM_X86_64)
        return FAIL("process %d is no 64-bit program for x86-64: it cannot be recorded", (int)pid);
    if (secure)
        return FAIL("process %d runs with other rights than those of its user (set-user-ID or file capabilities): it "
                    "is not recorded",
                    (int)pid);
    if (!*base)
        return FAIL("process %d is a statically linked program: record it from its start with heapwise record",
                    (int)pid);
    return true;
}
