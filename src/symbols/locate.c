/* locate.c - files by build id, for profiles that do not say where their modules were; and all functions of a file. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dwarf.h>
#include <elfutils/libdwelf.h>

#include "symbols/symbols_internal.h"

enum { FILES_MOST = 20000 };

struct candidate {
    char *path;
    uint8_t build_id[64];
    size_t build_id_size;
};

/* Places are searched one after the other, and only while something is missing. */
struct hw_locator {
    char **place; /* files and directories */
    size_t place_count, looked_at;
    struct candidate *candidate;
    size_t candidate_count;
};

static bool add_place(struct hw_locator *locator, const char *path, size_t size)
{
    char **larger = realloc(locator->place, (locator->place_count + 1) * sizeof *larger);
    if (!larger)
        return false;
    locator->place = larger;
    larger[locator->place_count] = strndup(path, size);
    return larger[locator->place_count] && ++locator->place_count;
}

/* The directory of every library of this process: where the system has its own. */
static int add_library_directory(struct dl_phdr_info *info, size_t size, void *closure)
{
    struct hw_locator *locator = closure;
    const char *slash = strrchr(info->dlpi_name, '/');
    if (!slash || slash == info->dlpi_name)
        return 0;
    const size_t length = (size_t)(slash - info->dlpi_name);
    for (size_t i = 0; i < locator->place_count; i++)
        if (!strncmp(locator->place[i], info->dlpi_name, length) && !locator->place[i][length])
            return 0;
    return add_place(locator, info->dlpi_name, length) ? 0 : -1;
}

struct hw_locator *hw_locator_new(const char *const *files, size_t count, const char *profile)
{
    struct hw_locator *locator = calloc(1, sizeof *locator);
    const char *slash = profile ? strrchr(profile, '/') : NULL;
    bool fine = locator != NULL;
    elf_version(EV_CURRENT);
    for (size_t i = 0; fine && i < count; i++)
        fine = add_place(locator, files[i], strlen(files[i]));
    if (fine && slash)
        fine = add_place(locator, profile, slash == profile ? 1 : (size_t)(slash - profile));
    fine = fine && add_place(locator, ".", 1) && dl_iterate_phdr(add_library_directory, locator) == 0;
    if (fine)
        return locator;
    hw_locator_free(locator);
    return NULL;
}

void hw_locator_free(struct hw_locator *locator)
{
    if (!locator)
        return;
    for (size_t i = 0; i < locator->place_count; i++)
        free(locator->place[i]);
    for (size_t i = 0; i < locator->candidate_count; i++)
        free(locator->candidate[i].path);
    free(locator->place);
    free(locator->candidate);
    free(locator);
}

static void add_candidate(struct hw_locator *locator, const char *path, const void *build_id, size_t size)
{
    if ((locator->candidate_count & (locator->candidate_count - 1)) == 0) {
        const size_t capacity = locator->candidate_count ? locator->candidate_count * 2 : 1;
        struct candidate *larger = realloc(locator->candidate, capacity * sizeof *larger);
        if (!larger)
            return;
        locator->candidate = larger;
    }
    struct candidate *made = &locator->candidate[locator->candidate_count];
    made->path = strdup(path);
    made->build_id_size = size;
    memcpy(made->build_id, build_id, size);
    locator->candidate_count += made->path != NULL;
}

static void look_at_file(struct hw_locator *locator, const char *path)
{
    struct stat status;
    char magic[4] = "";
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && read(fd, magic, 4) == 4 && !memcmp(magic, ELFMAG, 4)) {
        Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
        const void *build_id = NULL;
        const ssize_t size = elf ? dwelf_elf_gnu_build_id(elf, &build_id) : -1;
        if (size > 0 && size <= (ssize_t)sizeof locator->candidate->build_id)
            add_candidate(locator, path, build_id, (size_t)size);
        elf_end(elf);
    }
    close(fd);
}

static void look_at(struct hw_locator *locator, const char *place)
{
    DIR *directory = opendir(place);
    const struct dirent *entry;
    if (!directory) {
        look_at_file(locator, place);
        return;
    }
    for (int i = 0; i < FILES_MOST && (entry = readdir(directory)); i++) {
        char path[4096];
        if (entry->d_type != DT_DIR && (size_t)snprintf(path, sizeof path, "%s/%s", place, entry->d_name) < sizeof path)
            look_at_file(locator, path);
    }
    closedir(directory);
}

const char *hw_locator_find(struct hw_locator *locator, const uint8_t *build_id, size_t size)
{
    for (size_t i = 0; size;) {
        for (; i < locator->candidate_count; i++)
            if (locator->candidate[i].build_id_size == size && !memcmp(locator->candidate[i].build_id, build_id, size))
                return locator->candidate[i].path;
        if (locator->looked_at == locator->place_count)
            return NULL;
        look_at(locator, locator->place[locator->looked_at++]);
    }
    return NULL;
}

/* ---- all functions of a file ---- */

struct listing {
    hw_function_sink *sink;
    void *closure;
    const char *directory;
    Dwarf_Files *files;
    size_t file_count;
};

static int list_function(Dwarf_Die *die, void *closure)
{
    const struct listing *listing = closure;
    Dwarf_Attribute attribute;
    int line = 0;
    char path[4096];
    const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute));
    if (!name)
        name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &attribute));
    Dwarf_Word index = 0;
    const char *file = NULL; /* not dwarf_decl_file: to that the first file of DWARF 5 is none */
    if (dwarf_formudata(dwarf_attr_integrate(die, DW_AT_decl_file, &attribute), &index) == 0 &&
        index < listing->file_count)
        file = dwarf_filesrc(listing->files, index, NULL, NULL);
    if (!name || dwarf_decl_line(die, &line) != 0)
        line = 0;
    if (file && *file != '/' && listing->directory &&
        (size_t)snprintf(path, sizeof path, "%s/%s", listing->directory, file) < sizeof path)
        file = path;
    return !name || listing->sink(listing->closure, name, file, line > 0 ? (uint32_t)line : 0) ? DWARF_CB_OK
                                                                                               : DWARF_CB_ABORT;
}

bool hw_list_functions(const char *path, hw_function_sink *sink, void *closure)
{
    struct hw_debug_paths paths;
    struct hw_debug_file file;
    char problem[512];
    elf_version(EV_CURRENT);
    if (!hw_debug_paths_init(&paths, ""))
        return false;
    const bool open = hw_debug_file_open(&file, &paths, path, NULL, 0, problem, sizeof problem);
    if (open && file.dwarf) {
        Dwarf_CU *unit = NULL;
        Dwarf_Die die;
        uint8_t type = 0;
        Dwarf_Attribute attribute;
        while (dwarf_get_units(file.dwarf, unit, &unit, NULL, &type, &die, NULL) == 0) {
            struct listing listing = {.sink = sink,
                                      .closure = closure,
                                      .directory = dwarf_formstring(dwarf_attr(&die, DW_AT_comp_dir, &attribute))};
            if (type == DW_UT_compile && dwarf_getsrcfiles(&die, &listing.files, &listing.file_count) != 0)
                listing.file_count = 0;
            if (type == DW_UT_compile && dwarf_getfuncs(&die, list_function, &listing, 0) < 0)
                continue;
        }
    }
    if (open)
        hw_debug_file_close(&file);
    hw_debug_paths_free(&paths);
    return open;
}
