/* verb_dump.c - heapwise dump: a complete profile of a process that goes on running.
 *
 * The process's own profile is found through its mapping of the file. Where blocks only are counted, the file is all
 * there is: it is copied from outside and the process is not touched. Where accesses are counted, what they were since
 * the latest harvest lies in the process's memory: it is asked to write the dump itself, by the signal that it handles
 * for this (its profile says which). Nothing is sent to a thread that does not handle it. */
#include "cli/cli.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cli/options.h"
#include "profile/profile.h"

#define DUMPS_MOST       1000000u
#define USUAL_TIMEOUT_S  10
#define POLL_NS          2000000
#define SEND_AGAIN_POLLS 100 /* a signal may come where nothing can be done, in an allocator call that never ends */

struct dump {
    /* as asked for */
    pid_t pid;
    const char *output;
    bool force, quiet;
    uint64_t timeout_s;
    /* as found */
    int profile;               /* the process's own, open for reading */
    char path[PATH_MAX];       /* as the process names it */
    char reach[PATH_MAX + 64]; /* under which it can be reached from here */
    struct hw_process_info process;
    uint64_t process_offset;
    char written[PATH_MAX + 64];
    struct hw_error error;
};

static const char help[] = "Usage: heapwise dump [OPTION...] PID\n"
                           "\n"
                           "Writes a complete profile of a process that is being recorded, as it is at this\n"
                           "moment, and prints the name of the file. The process continues. Read the file\n"
                           "with heapwise report.\n"
                           "\n"
                           "  -o, --output=FILE   name of the dump (default: that of the process's profile\n"
                           "                      with .dump1, .dump2 … before the extension)\n"
                           "  -f, --force         overwrite FILE\n"
                           "      --timeout=N     wait at most N seconds for the process to answer, where\n"
                           "                      accesses are counted (default 10)\n"
                           "  -q, --quiet         no note about what the dump lacks\n"
                           "  -h, --help          this text\n"
                           "\n"
                           "Exits with 0, or with 2 for wrong usage and if no dump was written.\n";

static bool fail(struct dump *dump, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(struct dump *dump, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(dump->error.message, sizeof dump->error.message, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- the process, as /proc shows it ---- */

static bool read_proc(pid_t pid, const char *name, char *buffer, size_t size)
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
static const char *status_value(const char *status, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = status; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) == 0 && line[length] == ':')
            return line + length + 1 + strspn(line + length + 1, " \t");
    }
    return NULL;
}

static uint64_t status_kilobytes(const char *status, const char *name)
{
    const char *value = status_value(status, name);
    return value ? strtoull(value, NULL, 10) * 1024 : 0;
}

/* The pid that the process itself sees: the last of its namespaces. */
static uint32_t inner_pid(pid_t pid, const char *status)
{
    const char *value = status_value(status, "NSpid");
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
    const char *value = status_value(status, "Uid");
    uid_t uid = value ? (uid_t)strtoul(value, NULL, 10) : 0;
    const struct passwd *user = getpwuid(uid);
    snprintf(text, sizeof text, "%s", user ? user->pw_name : "");
    if (!*text)
        snprintf(text, sizeof text, "the user with the number %u", (unsigned)uid);
    return text;
}

/* Why nothing can be read of it. */
static bool say_unreachable(struct dump *dump, int error)
{
    char status[4096];
    if (!read_proc(dump->pid, "status", status, sizeof status))
        return fail(dump, "there is no process %d", (int)dump->pid);
    const char *state = status_value(status, "State");
    if (state && (*state == 'Z' || *state == 'X'))
        return fail(dump, "process %d has ended (its parent has not collected it yet)", (int)dump->pid);
    if ((error == EACCES || error == EPERM) && geteuid() == 0)
        return fail(
            dump,
            "no permission to look into process %d, although this is root: a container without CAP_SYS_PTRACE, "
            "or a setting of the kernel (kernel.yama.ptrace_scope, hidepid), forbids it. Run this command where "
            "the process was started, or on the host",
            (int)dump->pid);
    if (error == EACCES || error == EPERM)
        return fail(dump, "no permission to look into process %d of %s: run this command as that user, or as root",
                    (int)dump->pid, user_name(status));
    return fail(dump, "cannot look into process %d: %s", (int)dump->pid, strerror(error));
}

/* ---- its profile ---- */

static bool is_inode(int file, uint64_t inode)
{
    struct stat status;
    return file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_ino == inode;
}

/* Opens the mapped file PATH by any of the ways that lead to it: its name where the process sees it, its name here, a
 * descriptor or the mapping itself (a deleted file has no name). */
static int open_mapped(struct dump *dump, const char *path, uint64_t inode, const char *range)
{
    char *reach = dump->reach;
    size_t size = sizeof dump->reach;
    for (int way = 0; way < 3; way++) {
        if (way == 0)
            snprintf(reach, size, "/proc/%d/root%s", (int)dump->pid, path);
        else if (way == 1)
            snprintf(reach, size, "%s", path);
        else
            snprintf(reach, size, "/proc/%d/map_files/%s", (int)dump->pid, range);
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
    snprintf(folder, sizeof folder, "/proc/%d/fd", (int)dump->pid);
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
static bool try_mapping(struct dump *dump, const char *line, uint32_t pid, bool *seen)
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
    int file = open_mapped(dump, path, inode, range);
    uint64_t magic = 0;
    if (file < 0 || pread(file, &magic, sizeof magic, 0) != (ssize_t)sizeof magic || magic != HW_FILE_MAGIC) {
        if (file < 0 && strstr(path, ".hwprof"))
            fail(dump, "the profile of process %d, %s, cannot be read: %s", (int)dump->pid, path, strerror(errno));
        if (file >= 0)
            close(file);
        return false;
    }
    *seen = true;
    if (hw_profile_process(file, path, &dump->process, &dump->process_offset, &dump->error) &&
        (dump->process.pid == pid || dump->process.pid == (uint32_t)dump->pid)) {
        dump->profile = file;
        snprintf(dump->path, sizeof dump->path, "%s", path);
        return true;
    }
    close(file);
    return false;
}

/* Finds and opens the process's own profile. */
static bool find_profile(struct dump *dump)
{
    char status[4096], path[64], *line = NULL;
    size_t room = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)dump->pid);
    FILE *maps = fopen(path, "re");
    if (!maps || !read_proc(dump->pid, "status", status, sizeof status)) {
        int error = errno;
        if (maps)
            fclose(maps);
        return say_unreachable(dump, error);
    }
    uint32_t pid = inner_pid(dump->pid, status);
    bool found = false, seen = false, runtime = false, any = false;
    dump->error.message[0] = '\0';
    errno = 0;
    while (!found && getline(&line, &room, maps) > 0) {
        any = true;
        runtime |= strstr(line, "libheapwise") != NULL;
        found = try_mapping(dump, line, pid, &seen);
        errno = 0;
    }
    int error = errno;
    free(line);
    fclose(maps);
    if (found)
        return true;
    if (!any)
        return say_unreachable(dump, error);
    if (seen)
        return fail(dump,
                    "process %d was forked from a recorded one and has not used its heap yet: it has no profile of "
                    "its own",
                    (int)dump->pid);
    if (dump->error.message[0])
        return false;
    return fail(dump, "process %d is not recorded%s", (int)dump->pid,
                runtime ? ": the runtime is loaded, but stepped aside (HEAPWISE_OPTIONS=verbose=1 lets it say why)"
                        : ": start it with heapwise record, or build it with heapwise cc");
}

/* ---- the new file ---- */

static int create(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
}

/* The name without its extension. */
static int stem_length(const char *path)
{
    size_t length = strlen(path), extension = strlen(".hwprof");
    return (int)(length > extension && strcmp(path + length - extension, ".hwprof") == 0 ? length - extension : length);
}

/* Creates the dump's file: the name that was asked for, or the first number that is free. -1: the reason has been set.
 */
static int create_output(struct dump *dump)
{
    int file = -1;
    if (dump->output) {
        snprintf(dump->written, sizeof dump->written, "%s", dump->output);
        struct stat status;
        if (stat(dump->output, &status) == 0 && S_ISDIR(status.st_mode)) {
            fail(dump, "%s is a directory: -o takes the name of a file", dump->output);
            return -1;
        }
        if (dump->force && lstat(dump->output, &status) == 0 && S_ISREG(status.st_mode))
            unlink(dump->output);
        file = create(dump->output);
        if (file < 0 && errno == EEXIST)
            fail(dump, "%s exists already: choose another name, or use -f to overwrite it", dump->output);
        else if (file < 0)
            fail(dump, "the dump cannot be written to %s: %s", dump->output, strerror(errno));
        return file;
    }
    for (uint32_t number = 1; number <= DUMPS_MOST; number++) {
        snprintf(dump->written, sizeof dump->written, "%.*s.dump%" PRIu32 ".hwprof", stem_length(dump->reach),
                 dump->reach, number);
        file = create(dump->written);
        if (file >= 0 || errno != EEXIST)
            break;
    }
    if (file < 0)
        fail(dump, "the dump cannot be written to %s: %s; choose another place with -o", dump->written,
             strerror(errno));
    return file;
}

/* ---- from outside ---- */

static bool copy_from_outside(struct dump *dump)
{
    char status[4096];
    struct hw_snapshot_memory memory = {0, 0};
    if (read_proc(dump->pid, "status", status, sizeof status)) {
        memory.rss_bytes = status_kilobytes(status, "VmRSS");
        memory.peak_rss_bytes = status_kilobytes(status, "VmHWM");
    }
    int file = create_output(dump);
    if (file < 0)
        return false;
    bool fine = hw_profile_snapshot(dump->profile, dump->path, &memory, file, &dump->error);
    if (close(file) < 0 && fine)
        fine = fail(dump, "the dump cannot be written to %s: %s", dump->written, strerror(errno));
    if (!fine)
        unlink(dump->written);
    return fine;
}

/* ---- by the process itself ---- */

static bool signal_in(const char *status, const char *set, uint32_t number)
{
    const char *value = status_value(status, set);
    return value && (strtoull(value, NULL, 16) >> (number - 1) & 1);
}

/* How little a signal disturbs a thread: 2 when it runs, or sleeps in a call that goes on afterwards; 1 when its call
 * may return early; 0 when it would not get the signal. */
static int thread_fitness(pid_t pid, pid_t thread, uint32_t number)
{
    static const long restarted[] = {SYS_read,   SYS_write,   SYS_readv,   SYS_writev, SYS_futex,    SYS_wait4,
                                     SYS_waitid, SYS_recvmsg, SYS_sendmsg, SYS_accept, SYS_recvfrom, SYS_flock};
    char name[64], text[4096];
    snprintf(name, sizeof name, "task/%d/status", (int)thread);
    if (!read_proc(pid, name, text, sizeof text) || signal_in(text, "SigBlk", number))
        return 0;
    snprintf(name, sizeof name, "task/%d/syscall", (int)thread);
    if (!read_proc(pid, name, text, sizeof text))
        return 1;
    if (strncmp(text, "running", 7) == 0)
        return 2;
    long call = strtol(text, NULL, 10);
    for (size_t i = 0; i < sizeof restarted / sizeof *restarted; i++)
        if (call == restarted[i])
            return 2;
    return 1;
}

/* The thread to send it to; 0: none would get it. */
static pid_t choose_thread(pid_t pid, uint32_t number)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *list = opendir(path);
    pid_t best = 0;
    int best_fitness = 0;
    for (struct dirent *entry; list && best_fitness < 2 && (entry = readdir(list));) {
        if (!isdigit((unsigned char)*entry->d_name))
            continue;
        pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
        int fitness = thread_fitness(pid, thread, number);
        if (fitness > best_fitness) {
            best_fitness = fitness;
            best = thread;
        }
    }
    if (list)
        closedir(list);
    return best;
}

enum sent { SENT, ALL_BLOCK_IT, NOT_HANDLED, NOT_SENT };

static enum sent send_signal(struct dump *dump, uint32_t request)
{
    char status[4096];
    uint32_t number = dump->process.dump_signal;
    if (!read_proc(dump->pid, "status", status, sizeof status) || number > 64 ||
        !signal_in(status, "SigCgt", number)) /* it would kill the process */
        return NOT_HANDLED;
    pid_t thread = choose_thread(dump->pid, number);
    if (!thread)
        return ALL_BLOCK_IT;
    siginfo_t information = {.si_signo = (int)number, .si_code = SI_QUEUE};
    information.si_pid = getpid();
    information.si_uid = getuid();
    information.si_value.sival_int = (int)request; /* it may be answered already when the signal arrives */
    return syscall(SYS_rt_tgsigqueueinfo, dump->pid, thread, number, &information) == 0 ? SENT : NOT_SENT;
}

static bool process_is_there(const struct dump *dump)
{
    char status[4096];
    const char *state;
    return read_proc(dump->pid, "status", status, sizeof status) && (state = status_value(status, "State")) &&
           *state != 'Z' && *state != 'X';
}

static bool read_process(struct dump *dump)
{
    return pread(dump->profile, &dump->process, sizeof dump->process, (off_t)dump->process_offset) ==
           (ssize_t)sizeof dump->process;
}

static bool raise_request(struct dump *dump, uint32_t request)
{
    int file = open(dump->reach, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    off_t offset = (off_t)(dump->process_offset + offsetof(struct hw_process_info, dump_request));
    bool fine = file >= 0 && pwrite(file, &request, sizeof request, offset) == (ssize_t)sizeof request;
    if (!fine)
        fail(dump, "cannot ask process %d for a dump: its profile %s cannot be written to: %s", (int)dump->pid,
             dump->reach, strerror(errno));
    if (file >= 0)
        close(file);
    return fine;
}

static bool say_no_answer(struct dump *dump, enum sent sent)
{
    if (sent == ALL_BLOCK_IT)
        return fail(dump,
                    "process %d did not answer within %" PRIu64
                    " s: all its threads block signal %u, and none has used the heap meanwhile",
                    (int)dump->pid, dump->timeout_s, dump->process.dump_signal);
    return fail(dump, "process %d did not answer within %" PRIu64 " s: is it stopped, or in the middle of a long call?",
                (int)dump->pid, dump->timeout_s);
}

/* Asks the process for a dump and waits until it is written. */
static bool ask(struct dump *dump)
{
    const struct timespec moment = {.tv_nsec = POLL_NS};
    uint32_t request = dump->process.dump_request + 1;
    uint64_t polls = dump->timeout_s * (1000000000 / POLL_NS);
    enum sent sent = SENT;
    if (!raise_request(dump, request))
        return false;
    for (uint64_t poll = 0; poll < polls; poll++) {
        if (poll % SEND_AGAIN_POLLS == 0) {
            sent = send_signal(dump, request);
            if (sent == NOT_SENT && errno == EPERM)
                return fail(dump, "no permission to send a signal to process %d: run this command as its user",
                            (int)dump->pid);
        }
        nanosleep(&moment, NULL);
        if (!read_process(dump))
            return fail(dump, "%s cannot be read any more", dump->path);
        if ((int32_t)(dump->process.dump_answer - request) >= 0)
            return true;
        if (poll % SEND_AGAIN_POLLS == 0 && !process_is_there(dump))
            return fail(dump, "process %d ended before it could be dumped; its profile is %s", (int)dump->pid,
                        dump->path);
    }
    return say_no_answer(dump, sent);
}

static bool copy_file(struct dump *dump, const char *from)
{
    static char buffer[1 << 16];
    int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), out = -1;
    if (in < 0)
        return fail(dump, "the dump %s cannot be read: %s", from, strerror(errno));
    ssize_t got = -1;
    out = create_output(dump);
    while (out >= 0 && (got = read(in, buffer, sizeof buffer)) > 0) {
        if (write(out, buffer, (size_t)got) != got) {
            fail(dump, "the dump cannot be written to %s: %s", dump->written, strerror(errno));
            break;
        }
    }
    bool fine = out >= 0 && got == 0;
    if (out >= 0)
        close(out);
    if (out >= 0 && !fine)
        unlink(dump->written);
    close(in);
    return fine;
}

/* The process writes beside its own profile; -o takes it from there. */
static bool dump_by_process(struct dump *dump)
{
    if (!ask(dump))
        return false;
    if (dump->process.dump_result < 0)
        return fail(dump, "process %d could not write the dump beside %s: %s", (int)dump->pid, dump->path,
                    strerror(-dump->process.dump_result));
    char path[sizeof dump->written];
    snprintf(path, sizeof path, "%.*s.dump%d.hwprof", stem_length(dump->reach), dump->reach, dump->process.dump_result);
    if (!dump->output) {
        snprintf(dump->written, sizeof dump->written, "%s", path);
        return true;
    }
    bool fine = copy_file(dump, path);
    if (fine)
        unlink(path);
    return fine;
}

/* ---- the verb ---- */

static bool take_timeout(void *seconds, const char *value, const struct hw_option *option)
{
    return hw_parse_number(value, 1, 86400, seconds) ||
           hw_option_needs(option, value, "a number of seconds from 1 to 86400");
}

static const struct hw_option verb_options[] = {
    HW_OPTION_TEXT("output", 'o', struct dump, output),
    HW_OPTION_FLAG("force", 'f', struct dump, force),
    HW_OPTION_FLAG("quiet", 'q', struct dump, quiet),
    HW_OPTION_KEPT("timeout", 0, take_timeout, uint64_t, struct dump, timeout_s),
    HW_OPTION_HELP('h'),
    {0},
};

/* Returns -1 to go on, or the exit code. */
static int read_options(struct dump *dump, int argc, char **argv)
{
    const int code = hw_options_take(verb_options, false, help, argc, argv, dump);
    if (code)
        return code < 0 ? HW_VERB_FINE : code;
    uint64_t pid = 0;
    if (optind + 1 != argc) {
        hw_say(optind < argc ? "dump: one process at a time, not %d" : "dump: which PID? (see heapwise dump --help)",
               argc - optind);
        return HW_VERB_USAGE;
    }
    if (!hw_parse_number(argv[optind], 1, INT_MAX, &pid)) {
        hw_say("dump: '%s' is not the number of a process", argv[optind]);
        return HW_VERB_USAGE;
    }
    dump->pid = (pid_t)pid;
    return -1;
}

int hw_verb_dump(int argc, char **argv)
{
    static struct dump dump;
    dump = (struct dump){.timeout_s = USUAL_TIMEOUT_S, .profile = -1};
    int code = read_options(&dump, argc, argv);
    if (code >= 0)
        return code;
    if (!find_profile(&dump)) {
        hw_say("dump: %s", dump.error.message);
        return HW_VERB_USAGE;
    }
    bool fine;
    if (dump.process.dump_signal) {
        fine = dump_by_process(&dump);
    } else {
        fine = copy_from_outside(&dump);
        if (fine && dump.process.mode == HW_MODE_ACCESS && !dump.quiet)
            hw_say(
                "dump: process %d handles no signal for dumps (dump-signal=0, or it uses that signal itself): accesses "
                "to live blocks and globals are not in the dump",
                (int)dump.pid);
    }
    close(dump.profile);
    if (fine)
        puts(dump.written);
    else
        hw_say("dump: %s", dump.error.message);
    return fine ? HW_VERB_FINE : HW_VERB_USAGE;
}
