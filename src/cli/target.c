/* target.c - see target.h.
 *
 * Rebuilds, without executing anything, what the kernel and execvp do to find the file that runs: PATH, `#!` chains,
 * the ELF header, set-user-id bits and capabilities. Must never be stricter than they are, except where the runtime
 * cannot be loaded. */
#include "cli/target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/sanitizers.h"
#include "cli/cli.h"

#define SCRIPT_LEVELS 5   /* the kernel's own limit of interpreters that are scripts themselves */
#define LINE_SIZE     256 /* BINPRM_BUF_SIZE: what the kernel reads of a file to see what it is */

static int fail(int code, struct hw_error *error, const char *path, const char *why)
{
    hw_error_set(error, "%s: %s", path, why);
    return code;
}

/* May this file be executed? Returns 0 or an errno. */
static int executable(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return errno;
    if (S_ISDIR(status.st_mode))
        return EISDIR;
    if (!S_ISREG(status.st_mode))
        return EACCES;
    return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

/* One folder of PATH; a folder named "" is the current one. */
static bool in_folder(const char *folder, size_t length, const char *program, char path[PATH_MAX])
{
    const char *slash = length > 0 ? "/" : "";
    return snprintf(path, PATH_MAX, "%.*s%s%s", (int)length, folder, slash, program) < PATH_MAX;
}

static int find_in_path(const char *program, char path[PATH_MAX], struct hw_error *error)
{
    const char *folders = getenv("PATH");
    if (!folders)
        folders = "/bin:/usr/bin"; /* as execvp does */
    bool denied = false;
    while (true) {
        size_t length = strcspn(folders, ":");
        if (in_folder(folders, length, program, path)) {
            int problem = executable(path);
            if (problem == 0)
                return 0;
            denied |= problem == EACCES;
        }
        if (folders[length] == '\0')
            break;
        folders += length + 1;
    }
    if (denied)
        return fail(HW_VERB_NOT_EXECUTABLE, error, program, "found, but it may not be executed");
    if (executable(program) == 0) {
        hw_error_set(error, "%s: program not found in PATH: did you mean ./%s?", program, program);
        return HW_VERB_NOT_FOUND;
    }
    return fail(HW_VERB_NOT_FOUND, error, program, "program not found");
}

int hw_find_program(const char *program, char path[PATH_MAX], struct hw_error *error)
{
    if (*program == '\0')
        return fail(HW_VERB_NOT_FOUND, error, "''", "program not found");
    if (!strchr(program, '/'))
        return find_in_path(program, path, error);
    if (snprintf(path, PATH_MAX, "%s", program) >= PATH_MAX)
        return fail(HW_VERB_NOT_EXECUTABLE, error, program, strerror(ENAMETOOLONG));
    int problem = executable(path);
    if (problem == 0)
        return 0;
    if (problem == ENOENT || problem == ENOTDIR)
        return fail(HW_VERB_NOT_FOUND, error, program, strerror(problem));
    struct stat status;
    if (problem == EACCES && stat(path, &status) == 0 && S_ISREG(status.st_mode) && !(status.st_mode & 0111))
        return fail(HW_VERB_NOT_EXECUTABLE, error, program, "it is not executable (chmod +x makes it so)");
    return fail(HW_VERB_NOT_EXECUTABLE, error, program, strerror(problem));
}

/* Takes the interpreter out of the first line of a script, as the kernel does. False: there is none. */
static bool parse_script(const char *line, size_t length, char interpreter[LINE_SIZE])
{
    size_t start = 2;
    while (start < length && (line[start] == ' ' || line[start] == '\t'))
        start++;
    size_t end = start;
    while (end < length && !strchr(" \t\n", line[end])) /* NUL ends it too */
        end++;
    if (end == start || end == LINE_SIZE)
        return false; /* nothing there, or cut off */
    memcpy(interpreter, line + start, end - start);
    interpreter[end - start] = '\0';
    return true;
}

static const char *machine_name(unsigned machine, unsigned class)
{
    static const struct {
        unsigned machine;
        const char *name;
    } names[] = {
        {EM_386, "i386"},        {EM_X86_64, "x86-64"},       {EM_ARM, "arm"},
        {EM_AARCH64, "aarch64"}, {EM_RISCV, "riscv"},         {EM_PPC64, "ppc64"},
        {EM_PPC, "powerpc"},     {EM_S390, "s390"},           {EM_MIPS, "mips"},
        {EM_SPARCV9, "sparc"},   {EM_LOONGARCH, "loongarch"},
    };
    if (machine == EM_X86_64 && class == ELFCLASS32)
        return "x32";
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].machine == machine)
            return names[i].name;
    }
    return "another machine";
}

/* This executable's own header: the runtime is built for the same machine. */
static bool own_header(Elf64_Ehdr *header)
{
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    bool whole = pread(file, header, sizeof *header, 0) == (ssize_t)sizeof *header;
    close(file);
    return whole;
}

static int check_machine(const char *path, const Elf64_Ehdr *header, struct hw_error *error)
{
    Elf64_Ehdr own;
    if (!own_header(&own))
        return 0; /* no /proc: then the dynamic linker decides */
    bool same_class = header->e_ident[EI_CLASS] == own.e_ident[EI_CLASS];
    if (same_class && header->e_machine == own.e_machine && header->e_ident[EI_DATA] == own.e_ident[EI_DATA])
        return 0;
    unsigned class = header->e_ident[EI_CLASS];
    hw_error_set(error, "%s is a %d-bit program for %s: this Heapwise can only be loaded into %d-bit programs for %s",
                 path, class == ELFCLASS32 ? 32 : 64, machine_name(header->e_machine, class),
                 own.e_ident[EI_CLASS] == ELFCLASS32 ? 32 : 64, machine_name(own.e_machine, own.e_ident[EI_CLASS]));
    return HW_VERB_CANNOT_START;
}

/* The rights that executing this file would give and the caller has not; NULL: none. */
static const char *privileges_of(int file)
{
    struct statvfs mount;
    struct stat status;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 || (fstatvfs(file, &mount) == 0 && (mount.f_flag & ST_NOSUID)) ||
        fstat(file, &status) != 0)
        return NULL; /* neither the bits nor the capabilities count then */
    if ((status.st_mode & S_ISUID) && status.st_uid != getuid())
        return "set-user-id";
    if ((status.st_mode & S_ISGID) && (status.st_mode & S_IXGRP) && status.st_gid != getgid())
        return "set-group-id";
    struct vfs_ns_cap_data capabilities;
    memset(&capabilities, 0, sizeof capabilities);
    if (getuid() != 0 && fgetxattr(file, "security.capability", &capabilities, sizeof capabilities) > 0 &&
        ((capabilities.magic_etc & VFS_CAP_FLAGS_EFFECTIVE) || capabilities.data[0].permitted ||
         capabilities.data[1].permitted))
        return "given capabilities of its own";
    return NULL;
}

const char *hw_target_privileges(const char *path)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    const char *what = file < 0 ? NULL : privileges_of(file);
    if (file >= 0)
        close(file);
    return what;
}

/* With such rights the dynamic linker ignores LD_PRELOAD. */
static int check_privileges(int file, const char *path, struct hw_error *error)
{
    const char *what = privileges_of(file);
    if (!what)
        return 0;
    hw_error_set(error,
                 "%s is %s: for such programs the system ignores LD_PRELOAD, so Heapwise cannot be loaded into it; "
                 "record a copy without these rights (cp drops them), or record as the user it runs as",
                 path, what);
    return HW_VERB_CANNOT_START;
}

/* The dynamic linker may be run as a program, with the program as its argument; it reads LD_PRELOAD. */
static bool is_dynamic_linker(const char *path)
{
    const char *name = basename(path);
    return strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld-musl-", 8) == 0 || strncmp(name, "ld.so", 5) == 0 ||
           (strncmp(name, "ld-", 3) == 0 && strstr(name, ".so"));
}

static bool read_segment(int file, const Elf64_Ehdr *header, unsigned index, Elf64_Phdr *segment)
{
    off_t offset = (off_t)(header->e_phoff + index * sizeof *segment);
    return pread(file, segment, sizeof *segment, offset) == (ssize_t)sizeof *segment;
}

/* Finds the dynamic linker's name. 1: there is one, 0: none, -1: not an ELF file that could be executed. */
static int read_interpreter(int file, const Elf64_Ehdr *header, char name[PATH_MAX])
{
    if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum == 0)
        return -1;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        if (!read_segment(file, header, i, &segment))
            return -1;
        if (segment.p_type != PT_INTERP)
            continue;
        if (segment.p_filesz < 2 || segment.p_filesz > PATH_MAX ||
            pread(file, name, segment.p_filesz, (off_t)segment.p_offset) != (ssize_t)segment.p_filesz ||
            name[segment.p_filesz - 1] != '\0')
            return -1;
        return 1;
    }
    return 0;
}

/* Where in the file the byte with this address is; 0: nowhere. */
static uint64_t file_offset(int file, const Elf64_Ehdr *header, uint64_t address)
{
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        if (read_segment(file, header, i, &segment) && segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
            address - segment.p_vaddr < segment.p_filesz)
            return segment.p_offset + (address - segment.p_vaddr);
    }
    return 0;
}

/* What the file demands of the dynamic linker; nothing if it is damaged. */
struct dynamic {
    Elf64_Dyn entries[256]; /* far more than there ever are */
    size_t count;
    uint64_t strings, strings_size; /* names of libraries and symbols; where they are in the file, 0: nowhere */
};

static void read_dynamic(int file, const Elf64_Ehdr *header, struct dynamic *dynamic)
{
    Elf64_Phdr segment = {.p_type = PT_NULL};
    memset(dynamic, 0, sizeof *dynamic);
    for (unsigned i = 0; i < header->e_phnum && segment.p_type != PT_DYNAMIC; i++) {
        if (!read_segment(file, header, i, &segment))
            return;
    }
    ssize_t got = segment.p_type == PT_DYNAMIC
                      ? pread(file, dynamic->entries, sizeof dynamic->entries, (off_t)segment.p_offset)
                      : 0;
    const size_t most = got > 0 ? (size_t)got / sizeof dynamic->entries[0] : 0;
    for (; dynamic->count < most && dynamic->entries[dynamic->count].d_tag != DT_NULL; dynamic->count++) {
        const Elf64_Dyn *entry = &dynamic->entries[dynamic->count];
        if (entry->d_tag == DT_STRTAB)
            dynamic->strings = file_offset(file, header, entry->d_un.d_ptr);
        else if (entry->d_tag == DT_STRSZ)
            dynamic->strings_size = entry->d_un.d_val;
    }
}

/* Does the program ask for a library whose name begins with PREFIX? */
static bool needs_library(int file, const struct dynamic *dynamic, const char *prefix)
{
    const size_t length = strlen(prefix);
    for (size_t i = 0; dynamic->strings && i < dynamic->count; i++) {
        char name[64];
        if (dynamic->entries[i].d_tag == DT_NEEDED &&
            pread(file, name, length, (off_t)(dynamic->strings + dynamic->entries[i].d_un.d_val)) == (ssize_t)length &&
            memcmp(name, prefix, length) == 0)
            return true;
    }
    return false;
}

/* Is SYMBOL among the names of dynamic symbols, defined or not? */
static bool names_symbol(int file, const struct dynamic *dynamic, const char *symbol)
{
    char names[16384];
    const size_t size = strlen(symbol) + 1; /* with its NUL; the one before it is that of another name */
    uint64_t at = 0;
    while (dynamic->strings && at + size < dynamic->strings_size) {
        uint64_t most = dynamic->strings_size - at;
        ssize_t got = pread(file, names, most < sizeof names ? most : sizeof names, (off_t)(dynamic->strings + at));
        if (got <= (ssize_t)size)
            return false;
        for (const char *found = names; (found = memmem(found, (size_t)(names + got - found), symbol, size)); found++)
            if (found > names && found[-1] == '\0')
                return true;
        at += (uint64_t)got - size;
    }
    return false;
}

/* Sanitizers bring an allocator of their own. That of gcc for addresses ends the program when it is not the first
 * library that is loaded; those for threads and memory, when somebody else has the addresses that they want. clang
 * links its own into the program; the one for addresses does no harm there, and the report says that it could not be
 * observed. */
static int check_sanitizer(int file, const Elf64_Ehdr *header, const char *path, struct hw_error *error)
{
    struct dynamic dynamic;
    read_dynamic(file, header, &dynamic);
    for (const struct hw_sanitizer *sanitizer = hw_sanitizers; sanitizer < hw_sanitizers + HW_SANITIZERS; sanitizer++) {
        const char *const *library = sanitizer->library;
        if (!(library[0] && needs_library(file, &dynamic, library[0])) &&
            !(library[1] && needs_library(file, &dynamic, library[1])) &&
            (sanitizer->may_be_preloaded || !names_symbol(file, &dynamic, sanitizer->function)))
            continue;
        hw_error_set(error,
                     "%s is built with %s, which has an allocator of its own and conflicts with libraries that are "
                     "loaded before it: record a build without it",
                     path, sanitizer->name);
        return HW_VERB_CANNOT_START;
    }
    return 0;
}

static int check_elf(int file, const char *path, struct hw_target *target, struct hw_error *error)
{
    Elf64_Ehdr header;
    if (pread(file, &header, sizeof header, 0) != (ssize_t)sizeof header)
        return fail(HW_VERB_NOT_EXECUTABLE, error, path, "cannot be executed: the file is cut short");
    int code = check_machine(path, &header, error);
    if (code)
        return code;
    char linker[PATH_MAX];
    int dynamic = read_interpreter(file, &header, linker);
    if ((header.e_type != ET_EXEC && header.e_type != ET_DYN) || dynamic < 0)
        return fail(HW_VERB_NOT_EXECUTABLE, error, path, "cannot be executed: not a program, or damaged");
    target->is_static = dynamic == 0 && !is_dynamic_linker(target->image);
    if (dynamic == 1) {
        if (access(linker, F_OK) != 0) {
            hw_error_set(error, "%s: its dynamic linker %s: %s", path, linker, strerror(errno));
            return HW_VERB_NOT_FOUND;
        }
        target->musl = strncmp(basename(linker), "ld-musl-", 8) == 0;
    }
    code = check_privileges(file, path, error);
    return code ? code : check_sanitizer(file, &header, path, error);
}

/* What begins like a line of text without NUL is handed to the shell, by shells and execvp alike. */
static bool looks_like_text(const char *line, size_t length)
{
    const char *end = memchr(line, '\n', length);
    return !memchr(line, '\0', end ? (size_t)(end - line) : length);
}

static int check_image(const char *path, int level, struct hw_target *target, struct hw_error *error);

static int check_interpreter(const char *script, const char *interpreter, int level, struct hw_target *target,
                             struct hw_error *error)
{
    if (level + 1 > SCRIPT_LEVELS)
        return fail(HW_VERB_NOT_EXECUTABLE, error, script, "too many levels of scripts as interpreters of scripts");
    int problem = executable(interpreter);
    if (problem == 0)
        return check_image(interpreter, level + 1, target, error);
    size_t length = strlen(interpreter);
    bool carriage_return = length > 0 && interpreter[length - 1] == '\r';
    hw_error_set(error, "%s: its interpreter %.*s: %s%s", script, (int)(length - carriage_return), interpreter,
                 strerror(problem), carriage_return ? " (the first line ends in a carriage return)" : "");
    return problem == ENOENT || problem == ENOTDIR ? HW_VERB_NOT_FOUND : HW_VERB_NOT_EXECUTABLE;
}

/* Looks into a file that may be executed, and follows `#!`. */
static int check_image(const char *path, int level, struct hw_target *target, struct hw_error *error)
{
    if (!realpath(path, target->image))
        snprintf(target->image, sizeof target->image, "%s", path);
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (file < 0) {
        target->unchecked = true;
        return 0;
    }
    char line[LINE_SIZE];
    char interpreter[LINE_SIZE];
    ssize_t got = pread(file, line, sizeof line, 0);
    size_t length = got > 0 ? (size_t)got : 0;
    int code = 0;
    if (length >= SELFMAG && memcmp(line, ELFMAG, SELFMAG) == 0) {
        code = check_elf(file, path, target, error);
    } else if (length >= 2 && memcmp(line, "#!", 2) == 0 && parse_script(line, length, interpreter)) {
        close(file);
        return check_interpreter(path, interpreter, level, target, error);
    } else if (looks_like_text(line, length) && level == 0) {
        target->text = true;
        close(file);
        return check_interpreter(path, "/bin/sh", level, target, error);
    }
    /* Anything else: the kernel may have a handler for it (binfmt_misc); if not, execve says so. */
    close(file);
    return code;
}

int hw_target_resolve(const char *program, struct hw_target *target, struct hw_error *error)
{
    memset(target, 0, sizeof *target);
    int code = hw_find_program(program, target->path, error);
    return code ? code : check_image(target->path, 0, target, error);
}
