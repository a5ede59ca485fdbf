/* debug_file.c - opens the file that a module was mapped from, and its separate debug information, through libdwfl.
 *
 * libdwfl finds the separate file: by build id, by .gnu_debuglink, from debuginfod; it also unpacks .gnu_debugdata and
 * follows links to dwz's shared files. Here it is decided whether the module's own file may be used at all. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>
#include <gelf.h>

#include "symbols/symbols_internal.h"

static const char debug_directory[] = "/usr/lib/debug";

bool hw_debug_paths_init(struct hw_debug_paths *paths, const char *sysroot)
{
    *paths = (struct hw_debug_paths){.sysroot = sysroot};
    int length = *sysroot ? asprintf(&paths->search, ":.debug:%s%s:%s", sysroot, debug_directory, debug_directory)
                          : asprintf(&paths->search, ":.debug:%s", debug_directory);
    if (length < 0) {
        paths->search = NULL;
        return false;
    }
    paths->callbacks = (Dwfl_Callbacks){.find_elf = dwfl_build_id_find_elf,
                                        .find_debuginfo = dwfl_standard_find_debuginfo,
                                        .section_address = dwfl_offline_section_address,
                                        .debuginfo_path = &paths->search};
    return true;
}

void hw_debug_paths_free(struct hw_debug_paths *paths)
{
    free(paths->search);
}

/* This process's vDSO as a file, because libdwfl wants one. -1 when there is none. */
static int open_vdso(void)
{
    const char *image = (const char *)getauxval(AT_SYSINFO_EHDR); /* NOLINT(performance-no-int-to-ptr) */
    if (!image)
        return -1;
    Elf64_Ehdr header;
    memcpy(&header, image, sizeof header);
    if (header.e_ident[EI_CLASS] != ELFCLASS64)
        return -1;
    /* The kernel's image ends with its section headers, or with its last section. */
    size_t size = header.e_shoff + (size_t)header.e_shnum * header.e_shentsize;
    for (size_t i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, image + header.e_shoff + i * header.e_shentsize, sizeof section);
        if (section.sh_type != SHT_NOBITS && section.sh_offset + section.sh_size > size)
            size = section.sh_offset + section.sh_size;
    }
    int fd = memfd_create("vdso", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, image, size) != (ssize_t)size) {
        close(fd);
        return -1;
    }
    return fd;
}

/* A descriptor of a regular file, or -1 with PROBLEM. Never blocks on a FIFO or a device. */
static int open_regular(const char *path, char *problem, size_t problem_size)
{
    if (strcmp(path, "[vdso]") == 0) {
        int fd = open_vdso();
        if (fd < 0)
            snprintf(problem, problem_size, "this process has no vDSO to read");
        return fd;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    if (fd < 0) {
        snprintf(problem, problem_size, "cannot open: %s", strerror(errno));
        return -1;
    }
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        snprintf(problem, problem_size, "not a regular file");
        close(fd);
        return -1;
    }
    return fd;
}

static bool check_build_id(Elf *elf, const uint8_t *build_id, size_t size, char *problem, size_t problem_size)
{
    if (size == 0)
        return true;
    const void *found = NULL;
    ssize_t found_size = dwelf_elf_gnu_build_id(elf, &found);
    if (found_size == (ssize_t)size && memcmp(found, build_id, size) == 0)
        return true;
    if (found_size > 0)
        snprintf(problem, problem_size, "the file has changed since the run (another build id)");
    else
        snprintf(problem, problem_size, "the file has changed since the run (it has no build id now)");
    return false;
}

/* Where code starts by the segments, and whether the file holds all of them. */
static void look_at_segments(Elf *elf, size_t file_size, uint64_t *text_start, bool *cut_short)
{
    size_t count = 0;
    GElf_Ehdr header;
    *text_start = UINT64_MAX;
    *cut_short =
        gelf_getehdr(elf, &header) && header.e_shoff + (uint64_t)header.e_shnum * header.e_shentsize > file_size;
    elf_getphdrnum(elf, &count);
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr segment;
        if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_type != PT_LOAD || !(segment.p_flags & PF_X))
            continue;
        if (segment.p_vaddr < *text_start)
            *text_start = segment.p_vaddr;
    }
    if (*text_start == 0 || *text_start == UINT64_MAX)
        *text_start = 1; /* the ELF header's own address is never code */
}

/* False when the file cannot serve. A file that is cut short still serves as far as it goes, with PROBLEM set. */
static bool examine(int fd, const uint8_t *build_id, size_t build_id_size, uint64_t *text_start, char *problem,
                    size_t problem_size)
{
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    struct stat status;
    GElf_Ehdr header;
    bool cut_short = false, usable = false;
    if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header) || fstat(fd, &status) != 0) {
        snprintf(problem, problem_size, "not an ELF file");
    } else if (header.e_type != ET_EXEC && header.e_type != ET_DYN) {
        snprintf(problem, problem_size, "neither a program nor a shared library");
    } else {
        look_at_segments(elf, (size_t)status.st_size, text_start, &cut_short);
        usable = check_build_id(elf, build_id, build_id_size, problem, problem_size);
        if (cut_short)
            snprintf(problem, problem_size, "the file is cut short");
    }
    elf_end(elf);
    return usable;
}

static bool open_exactly(struct hw_debug_file *file, const struct hw_debug_paths *paths, const char *path,
                         const uint8_t *build_id, size_t build_id_size, char *problem, size_t problem_size)
{
    *file = (struct hw_debug_file){0};
    int fd = open_regular(path, problem, problem_size);
    if (fd < 0)
        return false;
    if (!examine(fd, build_id, build_id_size, &file->text_start, problem, problem_size)) {
        close(fd);
        return false;
    }
    file->dwfl = dwfl_begin(&paths->callbacks);
    if (file->dwfl) {
        file->module = dwfl_report_elf(file->dwfl, path, path, fd, 0, true);
        dwfl_report_end(file->dwfl, NULL, NULL);
    }
    if (!file->module) {
        if (!*problem)
            snprintf(problem, problem_size, "damaged ELF file (%s)", dwfl_errmsg(-1));
        dwfl_end(file->dwfl);
        close(fd); /* libdwfl owns the descriptor only if it made a module of it */
        file->dwfl = NULL;
        return false;
    }
    Dwarf_Addr bias = 0;
    file->dwarf = dwfl_module_getdwarf(file->module, &bias);
    file->bias = bias;
    return true;
}

/* The debug file that was installed for the build that ran, though its program is gone. */
static bool open_by_build_id(struct hw_debug_file *file, const struct hw_debug_paths *paths, const char *root,
                             const uint8_t *build_id, size_t build_id_size)
{
    char path[4096], ignored[256] = "";
    int length = snprintf(path, sizeof path, "%s%s/.build-id/%02x/", root, debug_directory, build_id[0]);
    for (size_t i = 1; i < build_id_size && length > 0 && (size_t)length + 9 < sizeof path; i++)
        length += snprintf(path + length, sizeof path - (size_t)length, "%02x", build_id[i]);
    if (length < 0 || (size_t)length + 9 >= sizeof path)
        return false;
    snprintf(path + length, sizeof path - (size_t)length, ".debug");
    return open_exactly(file, paths, path, build_id, build_id_size, ignored, sizeof ignored);
}

bool hw_debug_file_open(struct hw_debug_file *file, const struct hw_debug_paths *paths, const char *path,
                        const uint8_t *build_id, size_t build_id_size, char *problem, size_t problem_size)
{
    char rooted[4096];
    problem[0] = '\0';
    bool special = path[0] == '[';
    if ((size_t)snprintf(rooted, sizeof rooted, "%s%s", special ? "" : paths->sysroot, path) >= sizeof rooted) {
        snprintf(problem, problem_size, "the path is too long");
        return false;
    }
    if (open_exactly(file, paths, rooted, build_id, build_id_size, problem, problem_size))
        return true;
    if (build_id_size < 2 || special)
        return false;
    if (!(*paths->sysroot && open_by_build_id(file, paths, paths->sysroot, build_id, build_id_size)) &&
        !open_by_build_id(file, paths, "", build_id, build_id_size))
        return false;
    size_t length = strlen(problem);
    snprintf(problem + length, problem_size - length, "; names from its separate debug file");
    return true;
}

int hw_debug_file_plain(const struct hw_debug_paths *paths, const char *path, const uint8_t *build_id,
                        size_t build_id_size, Elf **elf)
{
    char rooted[4096], ignored[256] = "";
    *elf = NULL;
    if (path[0] == '[' || (size_t)snprintf(rooted, sizeof rooted, "%s%s", paths->sysroot, path) >= sizeof rooted)
        return -1;
    int fd = open_regular(rooted, ignored, sizeof ignored);
    if (fd < 0)
        return -1;
    *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    if (*elf && elf_kind(*elf) == ELF_K_ELF && check_build_id(*elf, build_id, build_id_size, ignored, sizeof ignored))
        return fd;
    elf_end(*elf);
    *elf = NULL;
    close(fd);
    return -1;
}

void hw_debug_file_close(struct hw_debug_file *file)
{
    if (file->dwfl)
        dwfl_end(file->dwfl);
    *file = (struct hw_debug_file){0};
}
