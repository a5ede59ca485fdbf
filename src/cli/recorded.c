/* recorded.c - see recorded.h. */
#include "cli/recorded.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/target_code.h"
#include "profile/attach.h"
#include "profile/profile.h"

static bool fail(struct hw_recorded *recorded, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(struct hw_recorded *recorded, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(recorded->error.message, sizeof recorded->error.message, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- the process, as /proc shows it ---- */

bool hw_read_proc(pid_t pid, const char *name, char *buffer, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    size_t used = 0;
    for (ssize_t got; used + 1 < size && (got = read(file, buffer + used, size - 1 - used)) > 0;)
        used += (size_t)got;
    buffer[used] = '\0';
    close(file);
    return used > 0;
}

/* The value of a line "NAME:\tvalue" of a status file, or NULL. */
const char *hw_status_value(const char *status, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = status; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) == 0 && line[length] == ':')
            return line + length + 1 + strspn(line + length + 1, " \t");
    }
    return NULL;
}

/* The pid that the process itself sees: the last of its namespaces. */
uint32_t hw_inner_pid(pid_t pid, const char *status)
{
    const char *value = hw_status_value(status, "NSpid");
    uint32_t inner = (uint32_t)pid;
    while (value && isdigit((unsigned char)*value)) {
        char *end;
        inner = (uint32_t)strtoul(value, &end, 10);
        value = end + strspn(end, " \t");
    }
    return inner;
}

static const char *user_name(const char *status)
{
    static char text[64];
    const char *value = hw_status_value(status, "Uid");
    uid_t uid = value ? (uid_t)strtoul(value, NULL, 10) : 0;
    const struct passwd *user = getpwuid(uid);
    snprintf(text, sizeof text, "%s", user ? user->pw_name : "");
    if (!*text)
        snprintf(text, sizeof text, "the user with the number %u", (unsigned)uid);
    return text;
}

/* Why nothing can be read of it. */
static bool say_unreachable(struct hw_recorded *recorded, int error)
{
    char status[4096];
    if (!hw_read_proc(recorded->pid, "status", status, sizeof status))
        return fail(recorded, "there is no process %d", (int)recorded->pid);
    const char *state = hw_status_value(status, "State");
    if (state && (*state == 'Z' || *state == 'X'))
        return fail(recorded, "process %d has ended (its parent has not collected it yet)", (int)recorded->pid);
    if ((error == EACCES || error == EPERM) && geteuid() == 0)
        return fail(
            recorded,
            "no permission to look into process %d, although this is root: a container without CAP_SYS_PTRACE, "
            "or a setting of the kernel (kernel.yama.ptrace_scope, hidepid), forbids it. Run this command where "
            "the process was started, or on the host",
            (int)recorded->pid);
    if (error == EACCES || error == EPERM)
        return fail(recorded, "no permission to look into process %d of %s: run this command as that user, or as root",
                    (int)recorded->pid, user_name(status));
    return fail(recorded, "cannot look into process %d: %s", (int)recorded->pid, strerror(error));
}

/* ---- its profile ---- */

static bool is_inode(int file, uint64_t inode)
{
    struct stat status;
    return file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_ino == inode;
}

/* Opens the mapped file PATH by any of the ways that lead to it: its name where the process sees it, its name here, a
 * descriptor or the mapping itself (a deleted file has no name). */
static int open_mapped(struct hw_recorded *recorded, const char *path, uint64_t inode, const char *range)
{
    char *reach = recorded->reach;
    size_t size = sizeof recorded->reach;
    for (int way = 0; way < 3; way++) {
        if (way == 0)
            snprintf(reach, size, "/proc/%d/root%s", (int)recorded->alive, path);
        else if (way == 1)
            snprintf(reach, size, "%s", path);
        else
            snprintf(reach, size, "/proc/%d/map_files/%s", (int)recorded->alive, range);
        int file = open(reach, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (is_inode(file, inode)) {
            if (way == 0) { /* the shorter name, when it leads there too */
                int here = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
                if (is_inode(here, inode))
                    snprintf(reach, size, "%s", path);
                if (here >= 0)
                    close(here);
            }
            return file;
        }
        if (file >= 0)
            close(file);
    }
    char folder[64];
    snprintf(folder, sizeof folder, "/proc/%d/fd", (int)recorded->alive);
    DIR *list = opendir(folder);
    int file = -1;
    for (struct dirent *entry; list && file < 0 && (entry = readdir(list));) {
        snprintf(reach, size, "%s/%s", folder, entry->d_name);
        file = *entry->d_name == '.' ? -1 : open(reach, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (file >= 0 && !is_inode(file, inode)) {
            close(file);
            file = -1;
        }
    }
    if (list)
        closedir(list);
    return file;
}

/* Reads one line of maps: is it the first page of a profile of this process? *FORKED: of its parent. */
static bool try_mapping(struct hw_recorded *recorded, const char *line, uint32_t pid, bool *seen)
{
    char range[64], mode[8];
    uint64_t offset, inode;
    int begin = 0;
    if (sscanf(line, "%63s %7s %" SCNx64 " %*s %" SCNu64 " %n", range, mode, &offset, &inode, &begin) < 4 ||
        mode[3] != 's' || offset != 0 || !begin || line[begin] != '/')
        return false;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.*s", (int)strcspn(line + begin, "\n"), line + begin);
    static const char deleted[] = " (deleted)";
    size_t length = strlen(path);
    if (length > sizeof deleted - 1 && strcmp(path + length - (sizeof deleted - 1), deleted) == 0)
        path[length - (sizeof deleted - 1)] = '\0';
    int file = open_mapped(recorded, path, inode, range);
    uint64_t magic = 0;
    if (file < 0 || pread(file, &magic, sizeof magic, 0) != (ssize_t)sizeof magic || magic != HW_FILE_MAGIC) {
        if (file < 0 && strstr(path, ".hwprof"))
            fail(recorded, "the profile of process %d, %s, cannot be read: %s", (int)recorded->pid, path,
                 strerror(errno));
        if (file >= 0)
            close(file);
        return false;
    }
    *seen = true;
    if (hw_profile_process(file, path, &recorded->process, &recorded->process_offset, &recorded->error) &&
        (recorded->process.pid == pid || recorded->process.pid == (uint32_t)recorded->pid)) {
        recorded->profile = file;
        snprintf(recorded->path, sizeof recorded->path, "%s", path);
        return true;
    }
    close(file);
    return false;
}

/* A thread that has not ended. */
static pid_t find_alive(pid_t pid)
{
    char path[64], status[4096];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *list = opendir(path);
    pid_t alive = 0;
    for (struct dirent *entry; list && !alive && (entry = readdir(list));) {
        const pid_t tid = isdigit((unsigned char)*entry->d_name) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
        const char *state =
            tid && hw_read_proc(tid, "status", status, sizeof status) ? hw_status_value(status, "State") : NULL;
        alive = state && *state != 'Z' && *state != 'X' ? tid : 0;
    }
    if (list)
        closedir(list);
    return alive ? alive : pid;
}

/* Whether the runtime in it came by heapwise attach, and rests since heapwise detach. False where that cannot be read. */
static bool was_detached(const struct hw_recorded *recorded)
{
    struct hw_error ignored;
    struct hw_stop stop = {.pid = recorded->pid, .alive = recorded->alive, .error = &ignored};
    struct hw_target_code code;
    struct hw_attach attach;
    bool detached = false;
    hw_target_code_read(&code, &stop);
    for (size_t i = 0; i < code.count && !detached; i++) {
        const bool runtime = code.images[i].path && strstr(code.images[i].path, "libheapwise");
        const uint64_t at = runtime ? hw_image_symbol(&stop, &code.images[i], HW_ATTACH_VARIABLE) : 0;
        detached = at && hw_stop_read(&stop, at, &attach, sizeof attach) && attach.version == HW_ATTACH_VERSION &&
                   attach.stage == HW_ATTACH_IDLE && attach.rounds;
    }
    hw_target_code_free(&code);
    return detached;
}

/* Finds and opens the process's own profile. */
bool hw_recorded_find(struct hw_recorded *recorded)
{
    char status[4096], path[64], *line = NULL;
    size_t room = 0;
    recorded->alive = find_alive(recorded->pid);
    snprintf(path, sizeof path, "/proc/%d/maps", (int)recorded->alive);
    FILE *maps = fopen(path, "re");
    if (!maps || !hw_read_proc(recorded->pid, "status", status, sizeof status)) {
        int error = errno;
        if (maps)
            fclose(maps);
        return say_unreachable(recorded, error);
    }
    uint32_t pid = hw_inner_pid(recorded->pid, status);
    bool found = false, seen = false, runtime = false, any = false;
    recorded->error.message[0] = '\0';
    errno = 0;
    while (!found && getline(&line, &room, maps) > 0) {
        any = true;
        runtime |= strstr(line, "libheapwise") != NULL;
        found = try_mapping(recorded, line, pid, &seen);
        errno = 0;
    }
    int error = errno;
    free(line);
    fclose(maps);
    if (found)
        return true;
    if (!any)
        return say_unreachable(recorded, error);
    if (seen)
        return fail(recorded,
                    "process %d was forked from a recorded one and has not used its heap yet: it has no profile of "
                    "its own",
                    (int)recorded->pid);
    if (recorded->error.message[0])
        return false;
    return fail(recorded, "process %d is not recorded%s", (int)recorded->pid,
                runtime && was_detached(recorded) ? " any more, since heapwise detach"
                : runtime ? ": the runtime is loaded, but stepped aside (HEAPWISE_OPTIONS=verbose=1 lets it say why)"
                          : ": start it with heapwise record, build it with heapwise cc, or use heapwise attach");
}

mode_t hw_recorded_mode(const struct hw_recorded *recorded)
{
    struct stat status;
    return fstat(recorded->profile, &status) == 0 && !(status.st_mode & (S_IRWXG | S_IRWXO)) ? 0600 : 0666;
}
