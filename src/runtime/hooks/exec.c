/* exec.c - programs that the process turns into, or starts from a vfork child.
 *
 * The new program writes a profile of its own, if the runtime gets loaded into it. Here the old profile records that it
 * ended by exec, and which programs cannot be profiled, with the reason. */
#include "runtime/allocator/allocator.h"
#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/core/memory.h"
#include "runtime/hooks/hooks.h"
#include "runtime/stacks/stacks.h"

#include <elf.h>
#include <stdarg.h>
#include <sys/stat.h>

extern char **environ __attribute__((weak));

/* What of a program's file matters here. */
struct target {
    const char *why;       /* it would not load the runtime, or NULL */
    bool linked;           /* the runtime is among the libraries that it names itself (heapwise cc) */
    char interpreter[256]; /* the path after "#!" */
};

/* The offset in the file of ADDRESS; 0: it is in none of the segments. */
static uint64_t file_offset(const Elf64_Phdr *segments, unsigned count, uint64_t address)
{
    for (unsigned i = 0; i < count; i++)
        if (segments[i].p_type == PT_LOAD && address - segments[i].p_vaddr < segments[i].p_filesz)
            return address - segments[i].p_vaddr + segments[i].p_offset;
    return 0;
}

static bool names_runtime(int fd, const Elf64_Phdr *segments, unsigned count, const Elf64_Phdr *dynamic)
{
    static const char soname[] = "libheapwise.so";
    static Elf64_Dyn entries[256]; /* under the lock */
    uint64_t strings = 0, size = dynamic->p_filesz < sizeof entries ? dynamic->p_filesz : sizeof entries;
    long got = hw_sys(SYS_pread64, fd, entries, size, dynamic->p_offset);
    size_t known = got > 0 ? (size_t)got / sizeof *entries : 0;
    for (size_t i = 0; i < known; i++)
        if (entries[i].d_tag == DT_STRTAB)
            strings = file_offset(segments, count, entries[i].d_un.d_ptr);
    for (size_t i = 0; strings && i < known; i++) {
        char name[sizeof soname];
        if (entries[i].d_tag == DT_NEEDED &&
            hw_sys(SYS_pread64, fd, name, sizeof name, strings + entries[i].d_un.d_val) == (long)sizeof name &&
            hw_starts_with(name, soname))
            return true;
    }
    return false;
}

static void look_at(const char *path, struct target *target)
{
    static char head[HW_PAGE]; /* under the lock */
    struct stat status;
    *target = (struct target){.why = NULL};
    int fd = hw_open(path, O_RDONLY | O_NONBLOCK, 0); /* it may be a pipe */
    if (fd < 0)
        return; /* exec itself will say so, or it cannot be read: nothing is known */
    long length = hw_read_full(fd, head, sizeof head - 1);
    bool set_id = hw_sys(SYS_fstat, fd, &status) == 0 &&
                  (((status.st_mode & S_ISUID) && status.st_uid != (uid_t)hw_sys(SYS_geteuid)) ||
                   ((status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
                    status.st_gid != (gid_t)hw_sys(SYS_getegid)));
    if (length < 0)
        length = 0;
    head[length] = 0;
    if (head[0] == '#' && head[1] == '!') {
        const char *c = head + 2;
        struct hw_text text;
        hw_text_init(&text, target->interpreter, sizeof target->interpreter);
        while (*c == ' ' || *c == '\t')
            c++;
        while (*c && *c != ' ' && *c != '\t' && *c != '\n')
            hw_text_char(&text, *c++);
    }
    const Elf64_Ehdr *elf = (const Elf64_Ehdr *)head;
    if (length >= (long)sizeof *elf && hw_starts_with(head, "\177ELF")) {
        const Elf64_Phdr *segments = (const Elf64_Phdr *)(head + elf->e_phoff);
        unsigned count = 0;
        bool interpreted = false;
        while (count < elf->e_phnum && elf->e_phoff < (uint64_t)length &&
               elf->e_phoff + (count + 1) * sizeof *segments <= (uint64_t)length)
            interpreted |= segments[count++].p_type == PT_INTERP;
        target->why = elf->e_ident[EI_CLASS] != ELFCLASS64 || elf->e_machine != HW_ARCH_ELF_MACHINE
                          ? "it is built for another architecture"
                      : set_id       ? "it runs with other rights (set-user-ID or set-group-ID)"
                      : !interpreted ? "it is statically linked"
                                     : NULL;
        for (unsigned i = 0; i < count && !target->why; i++)
            if (segments[i].p_type == PT_DYNAMIC)
                target->linked |= names_runtime(fd, segments, count, &segments[i]);
    }
    hw_close(fd);
}

static bool preloads(char *const *environment)
{
    for (; environment && *environment; environment++)
        if (hw_starts_with(*environment, "LD_PRELOAD="))
            for (const char *c = *environment; *c; c++)
                if (hw_starts_with(c, "heapwise"))
                    return true;
    return false;
}

/* The file that execvp would take: the first in PATH that can be opened. */
static const char *find_program(const char *name, char *buffer, size_t size)
{
    for (const char *c = name; *c; c++)
        if (*c == '/')
            return name;
    const char *path = "/usr/local/bin:/usr/bin:/bin";
    for (char **variable = &environ ? environ : NULL; variable && *variable; variable++)
        if (hw_starts_with(*variable, "PATH="))
            path = *variable + 5;
    while (*path) {
        struct hw_text text;
        hw_text_init(&text, buffer, size);
        while (*path && *path != ':')
            hw_text_char(&text, *path++);
        hw_text_char(&text, '/');
        hw_text_string(&text, name);
        if (hw_sys(SYS_access, buffer, X_OK) == 0)
            return buffer;
        path += *path == ':';
    }
    return name;
}

void hw_note_about(enum hw_note_code code, const char *subject, const char *separator, const char *what)
{
    char buffer[1400];
    struct hw_text text;
    hw_text_init(&text, buffer, sizeof buffer);
    hw_text_string(&text, subject);
    hw_text_string(&text, separator);
    hw_text_string(&text, what);
    hw_note(code, buffer);
}

static void note_target(const char *name, char *const *environment)
{
    char path[1024];
    if (!hw_readable((uintptr_t)name) || (environment && !hw_readable((uintptr_t)environment)))
        return; /* which the kernel says */
    const char *program = find_program(name, path, sizeof path);
    struct target target, interpreter;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    look_at(program, &target);
    if (target.interpreter[0]) {
        look_at(target.interpreter, &interpreter);
        target = interpreter;
    }
    hw_lock_drop(&hw_runtime.lock, old);
    const char *why = target.why;
    if (!why && !target.linked && !preloads(environment))
        why = "its environment does not hand the runtime on (LD_PRELOAD)";
    if (why)
        hw_note_about(HW_NOTE_EXEC_UNPROFILED, program, ": ", why);
}

/* After the program gave up system calls nothing can be checked, and the new program may not be able to report what it
 * lacks. */
static void note_quiet(const char *name)
{
    if (hw_fork_pending()) /* a child of which nothing else is known */
        hw_file_fork_quiet();
    else
        hw_note_about(HW_NOTE_OTHER, name, "",
                      " was started after system calls had been given up (seccomp): it has no profile if they include "
                      "those that make a file");
}

/* True if the file now says that the process ends by exec; a failed exec takes that back. */
static bool begin(const char *name, char *const *environment)
{
    hw_limits_for_exec(true);
    hw_handlers_for_exec(true);
    if (hw_runtime.state == HW_STATE_ON && hw_quiet && name)
        note_quiet(name);
    if (hw_runtime.state != HW_STATE_ON || hw_quiet || hw_fork_pending() || !name)
        return false;
    note_target(name, environment);
    if (hw_getpid() != hw_runtime.pid) /* a vfork child: the process itself goes on */
        return false;
    hw_process_end(HW_EXIT_EXEC, 0);
    return true;
}

static void failed(bool begun)
{
    hw_handlers_for_exec(false);
    hw_limits_for_exec(false);
    if (begun)
        hw_process_goes_on();
}

#define EXEC_HOOK(name, parameters, arguments, program, environment)                                                   \
    HW_EXPORTED(int, name, parameters)                                                                                 \
    {                                                                                                                  \
        HW_REAL(int, name, parameters);                                                                                \
        bool begun = begin(program, environment);                                                                      \
        int result = real arguments;                                                                                   \
        failed(begun);                                                                                                 \
        return result;                                                                                                 \
    }
#define OWN_ENVIRONMENT (&environ ? environ : NULL)

EXEC_HOOK(execve, (const char *path, char *const arguments[], char *const environment[]),
          (path, arguments, environment), path, environment)
EXEC_HOOK(execv, (const char *path, char *const arguments[]), (path, arguments), path, OWN_ENVIRONMENT)
EXEC_HOOK(execvp, (const char *file, char *const arguments[]), (file, arguments), file, OWN_ENVIRONMENT)
EXEC_HOOK(execvpe, (const char *file, char *const arguments[], char *const environment[]),
          (file, arguments, environment), file, environment)

/* The stack of a vfork child may be small, and there is nothing to record of it. */
int hw_static_execve(const char *path, char *const arguments[], char *const environment[])
{
    HW_REAL(int, execve, (const char *, char *const[], char *const[]));
    const bool own = hw_runtime.state == HW_STATE_ON && hw_getpid() == hw_runtime.pid;
    return own ? execve(path, arguments, environment) : real(path, arguments, environment);
}

HW_EXPORTED(int, fexecve, (int fd, char *const arguments[], char *const environment[]))
{
    HW_REAL(int, fexecve, (int, char *const[], char *const[]));
    char path[32];
    struct hw_text text;
    hw_text_init(&text, path, sizeof path);
    hw_text_string(&text, "/proc/self/fd/");
    hw_text_u64(&text, (uint64_t)fd);
    bool begun = begin(path, environment);
    int result = real(fd, arguments, environment);
    failed(begun);
    return result;
}

/* The list forms: their arguments as a vector, then as above. */
static size_t count_list(const char *first, va_list rest)
{
    size_t count = 0;
    for (const char *argument = first; argument; argument = va_arg(rest, const char *))
        count++;
    return count;
}

static void fill_list(char **vector, const char *first, va_list rest)
{
    size_t n = 0;
    for (const char *argument = first; argument; argument = va_arg(rest, const char *))
        vector[n++] = (char *)argument;
    vector[n] = NULL;
}

#define LIST_TO_VECTOR(vector, first)                                                                                  \
    va_list list;                                                                                                      \
    va_start(list, first);                                                                                             \
    char **vector = __builtin_alloca((count_list(first, list) + 1) * sizeof *vector);                                  \
    va_end(list);                                                                                                      \
    va_start(list, first);                                                                                             \
    fill_list(vector, first, list)

HW_EXPORTED(int, execl, (const char *path, const char *first, ...))
{
    LIST_TO_VECTOR(vector, first);
    va_end(list);
    return execv(path, vector);
}

HW_EXPORTED(int, execlp, (const char *file, const char *first, ...))
{
    LIST_TO_VECTOR(vector, first);
    va_end(list);
    return execvp(file, vector);
}

HW_EXPORTED(int, execle, (const char *path, const char *first, ...))
{
    LIST_TO_VECTOR(vector, first);
    va_end(list);
    va_start(list, first);
    if (first)
        while (va_arg(list, const char *)) {
        }
    char *const *environment = va_arg(list, char *const *);
    va_end(list);
    return execve(path, vector, environment);
}

static void note_started(const char *name, char *const *environment)
{
    if (hw_runtime.state != HW_STATE_ON || hw_fork_pending() || !name)
        return;
    if (hw_quiet)
        note_quiet(name);
    else
        note_target(name, environment);
}

static int tell_started(int *pid, int started, int error)
{
    if (error)
        return error;
    hw_limits_of_started(started);
    if (pid)
        *pid = started;
    return 0;
}

/* Started beside this one: it may be one that cannot be profiled. */
#define SPAWN_HOOK(name)                                                                                               \
    HW_EXPORTED(int, name,                                                                                             \
                (int *pid, const char *program, const void *actions, const void *attributes, char *const arguments[],  \
                 char *const environment[]))                                                                           \
    {                                                                                                                  \
        HW_REAL(int, name, (int *, const char *, const void *, const void *, char *const[], char *const[]));           \
        note_started(program, environment);                                                                            \
        int started = 0, error = real(&started, program, actions, attributes, arguments, environment);                 \
        return tell_started(pid, started, error);                                                                      \
    }
SPAWN_HOOK(posix_spawn)
SPAWN_HOOK(posix_spawnp)
