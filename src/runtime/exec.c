/* exec.c - programs that the process turns into, or starts from a vfork child.
 *
 * The new program writes a profile of its own, if the runtime gets loaded into it. Here the old one's file is told that
 * it ended by exec, and what will not be profiled is noted with the reason. */
#include "runtime/runtime.h"

#include <elf.h>
#include <stdarg.h>
#include <sys/stat.h>

extern char **environ __attribute__((weak));

/* Why the program in this file would not load the runtime, or NULL. INTERPRETER gets the path after "#!". */
static const char *why_unprofiled(const char *path, char *interpreter, size_t size)
{
    static char head[HW_PAGE]; /* under the lock */
    struct stat status;
    interpreter[0] = 0;
    int fd = hw_open(path, O_RDONLY | O_NONBLOCK, 0); /* it may be a pipe */
    if (fd < 0)
        return NULL; /* exec itself will say so, or it cannot be read: nothing is known */
    long length = hw_read_full(fd, head, sizeof head - 1);
    bool set_id = hw_sys(SYS_fstat, fd, &status) == 0 &&
                  (((status.st_mode & S_ISUID) && status.st_uid != (uid_t)hw_sys(SYS_geteuid)) ||
                   ((status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
                    status.st_gid != (gid_t)hw_sys(SYS_getegid)));
    hw_close(fd);
    if (length < (long)sizeof(Elf64_Ehdr))
        length = length < 0 ? 0 : length;
    head[length] = 0;
    if (head[0] == '#' && head[1] == '!') {
        const char *c = head + 2;
        struct hw_text text;
        hw_text_init(&text, interpreter, size);
        while (*c == ' ' || *c == '\t')
            c++;
        while (*c && *c != ' ' && *c != '\t' && *c != '\n')
            hw_text_char(&text, *c++);
        return NULL;
    }
    const Elf64_Ehdr *elf = (const Elf64_Ehdr *)head;
    if (length < (long)sizeof *elf || !hw_starts_with(head, "\177ELF"))
        return NULL;
    if (elf->e_ident[EI_CLASS] != ELFCLASS64 || elf->e_machine != HW_ARCH_ELF_MACHINE)
        return "it is built for another architecture";
    if (set_id)
        return "it runs with other rights (set-user-ID or set-group-ID)";
    for (unsigned i = 0; i < elf->e_phnum && elf->e_phoff + (i + 1) * sizeof(Elf64_Phdr) <= (uint64_t)length; i++)
        if (((const Elf64_Phdr *)(head + elf->e_phoff))[i].p_type == PT_INTERP)
            return NULL;
    return "it is statically linked";
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
        if (hw_sys(SYS_access, buffer, 1 /* X_OK */) == 0)
            return buffer;
        path += *path == ':';
    }
    return name;
}

static void note_target(const char *name, char *const *environment)
{
    char path[1024], interpreter[256], again[256], text[1400];
    const char *program = find_program(name, path, sizeof path);
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    const char *why = why_unprofiled(program, interpreter, sizeof interpreter);
    if (interpreter[0])
        why = why_unprofiled(interpreter, again, sizeof again);
    hw_lock_drop(&hw_runtime.lock, old);
    if (!why && !preloads(environment))
        why = "its environment does not hand the runtime on (LD_PRELOAD)";
    if (!why)
        return;
    struct hw_text to;
    hw_text_init(&to, text, sizeof text);
    hw_text_string(&to, program);
    hw_text_string(&to, ": ");
    hw_text_string(&to, why);
    hw_note(HW_NOTE_EXEC_UNPROFILED, text);
}

/* True when the file was told that the process ends by exec; a failed exec takes that back. */
static bool begin(const char *name, char *const *environment)
{
    hw_limits_for_exec(true);
    hw_handlers_for_exec(true);
    if (hw_runtime.state != HW_STATE_ON || hw_quiet || hw_fork_pending() || !name)
        return false;
    note_target(name, environment);
    if ((uint32_t)hw_sys(SYS_getpid) != hw_runtime.pid) /* a vfork child: the process itself goes on */
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

HW_EXPORT int execve(const char *path, char *const arguments[], char *const environment[]);
HW_EXPORT int execve(const char *path, char *const arguments[], char *const environment[])
{
    HW_REAL(int, execve, (const char *, char *const[], char *const[]));
    bool begun = begin(path, environment);
    int result = real(path, arguments, environment);
    failed(begun);
    return result;
}

HW_EXPORT int execv(const char *path, char *const arguments[]);
HW_EXPORT int execv(const char *path, char *const arguments[])
{
    HW_REAL(int, execv, (const char *, char *const[]));
    bool begun = begin(path, &environ ? environ : NULL);
    int result = real(path, arguments);
    failed(begun);
    return result;
}

HW_EXPORT int execvp(const char *file, char *const arguments[]);
HW_EXPORT int execvp(const char *file, char *const arguments[])
{
    HW_REAL(int, execvp, (const char *, char *const[]));
    bool begun = begin(file, &environ ? environ : NULL);
    int result = real(file, arguments);
    failed(begun);
    return result;
}

HW_EXPORT int execvpe(const char *file, char *const arguments[], char *const environment[]);
HW_EXPORT int execvpe(const char *file, char *const arguments[], char *const environment[])
{
    HW_REAL(int, execvpe, (const char *, char *const[], char *const[]));
    bool begun = begin(file, environment);
    int result = real(file, arguments, environment);
    failed(begun);
    return result;
}

HW_EXPORT int fexecve(int fd, char *const arguments[], char *const environment[]);
HW_EXPORT int fexecve(int fd, char *const arguments[], char *const environment[])
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

HW_EXPORT int execl(const char *path, const char *first, ...);
HW_EXPORT int execl(const char *path, const char *first, ...)
{
    LIST_TO_VECTOR(vector, first);
    va_end(list);
    return execv(path, vector);
}

HW_EXPORT int execlp(const char *file, const char *first, ...);
HW_EXPORT int execlp(const char *file, const char *first, ...)
{
    LIST_TO_VECTOR(vector, first);
    va_end(list);
    return execvp(file, vector);
}

HW_EXPORT int execle(const char *path, const char *first, ...);
HW_EXPORT int execle(const char *path, const char *first, ...)
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

/* Started beside this one: it may be one that cannot be profiled. */
HW_EXPORT int posix_spawn(int *pid, const char *path, const void *actions, const void *attributes,
                          char *const arguments[], char *const environment[]);
HW_EXPORT int posix_spawn(int *pid, const char *path, const void *actions, const void *attributes,
                          char *const arguments[], char *const environment[])
{
    HW_REAL(int, posix_spawn, (int *, const char *, const void *, const void *, char *const[], char *const[]));
    if (hw_runtime.state == HW_STATE_ON && !hw_fork_pending() && path)
        note_target(path, environment);
    return real(pid, path, actions, attributes, arguments, environment);
}

HW_EXPORT int posix_spawnp(int *pid, const char *file, const void *actions, const void *attributes,
                           char *const arguments[], char *const environment[]);
HW_EXPORT int posix_spawnp(int *pid, const char *file, const void *actions, const void *attributes,
                           char *const arguments[], char *const environment[])
{
    HW_REAL(int, posix_spawnp, (int *, const char *, const void *, const void *, char *const[], char *const[]));
    if (hw_runtime.state == HW_STATE_ON && !hw_fork_pending() && file)
        note_target(file, environment);
    return real(pid, file, actions, attributes, arguments, environment);
}
