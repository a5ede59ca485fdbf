/* write.c - see write.h. */
#include "profile/container/write.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "profile/container/container.h"
#include "profile/container/pack.h"

/* ---- sections -> bytes ---- */

struct first_page {
    struct hw_file_header header;
    struct hw_section directory[HW_FIRST_DIRECTORY_MOST];
};
_Static_assert(sizeof(struct first_page) == HW_FILE_PAGE, "first page");

static uint64_t *first_offset(struct hw_file_header *header, uint32_t type)
{
    return type == HW_SECTION_MAPS     ? &header->map_offset
           : type == HW_SECTION_MIBS   ? &header->mib_offset
           : type == HW_SECTION_STACKS ? &header->stack_offset
                                       : NULL;
}

static uint64_t round_up(uint64_t value, uint64_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

/* A section as it is written: packed or not. */
struct piece {
    const void *bytes;
    unsigned char *packed; /* to be freed */
    size_t size;
};

/* False when the memory does not suffice. */
static bool pack_sections(struct piece *pieces, const struct hw_section_source *sections, size_t count,
                          const struct hw_write_options *options)
{
    bool indexed = false;
    for (size_t i = 0; i < count; i++)
        indexed |= sections[i].type == HW_SECTION_FUNCTIONS;
    for (size_t i = 0; i < count; i++) {
        const struct hw_section_source *section = &sections[i];
        pieces[i] = (struct piece){.bytes = section->bytes, .size = section->size};
        if (!options->packed)
            continue;
        size_t size;
        pieces[i].packed = hw_pack(section->type, section->entry_size, section->bytes, section->size,
                                   options->zstd_level, indexed, &size);
        if (pieces[i].packed) {
            pieces[i].bytes = pieces[i].packed;
            pieces[i].size = size;
        } else if (size != SIZE_MAX) {
            return false;
        }
    }
    return true;
}

/* Gives each section its place in DIRECTORY. False when the sizes cannot be. */
static bool lay_out(struct hw_file_header *header, struct hw_section *directory,
                    const struct hw_section_source *sections, const struct piece *pieces, size_t count,
                    uint64_t alignment)
{
    uint64_t end = HW_FILE_PAGE;
    for (size_t i = 0; i < count; i++) {
        const struct hw_section_source *section = &sections[i];
        const struct piece *piece = &pieces[i];
        if (piece->size > INT64_MAX - HW_FILE_PAGE - end)
            return false;
        directory[i] = (struct hw_section){
            .type = section->type,
            .version = section->version,
            .flags = piece->packed ? HW_SECTION_PACKED : 0,
            .offset = end,
            .capacity = round_up(piece->size, alignment),
            .used = piece->size,
            .entry_size = section->entry_size,
            .checksum = XXH64(piece->bytes, piece->size, 0),
            .entries = piece->packed ? section->size / section->entry_size : 0,
        };
        uint64_t *first = first_offset(header, section->type);
        if (first && *first == 0)
            *first = end;
        end += directory[i].capacity;
    }
    header->total_size = end;
    return true;
}

/* Puts what has room into the first page, and the REST last in the file. */
static void fill_directories(struct first_page *page, const struct hw_section *directory, size_t count, size_t rest)
{
    const size_t first = count - rest;
    memcpy(page->directory, directory, first * sizeof *directory);
    page->header.directory_used = (uint32_t)(first + (rest != 0));
    page->header.directory_capacity = HW_FIRST_DIRECTORY_MOST;
    if (!rest)
        return;
    const uint64_t size = rest * sizeof *directory;
    page->directory[first] = (struct hw_section){
        .type = HW_SECTION_DIRECTORY,
        .version = 1,
        .offset = page->header.total_size,
        .capacity = size,
        .used = size,
        .entry_size = sizeof *directory,
        .checksum = XXH64(directory + first, size, 0),
    };
    page->header.total_size += size;
}

static unsigned char *assemble(const struct first_page *page, const struct hw_section *directory,
                               const struct piece *pieces, size_t count, size_t rest)
{
    unsigned char *bytes = calloc(1, page->header.total_size);
    if (!bytes)
        return NULL;
    memcpy(bytes, page, sizeof *page);
    for (size_t i = 0; i < count; i++)
        if (pieces[i].size)
            memcpy(bytes + directory[i].offset, pieces[i].bytes, pieces[i].size);
    if (rest)
        memcpy(bytes + page->directory[count - rest].offset, directory + count - rest, rest * sizeof *directory);
    return bytes;
}

unsigned char *hw_sections_serialize(const struct hw_section_source *sections, size_t count,
                                     const struct hw_write_options *options, size_t *size, struct hw_error *error)
{
    struct first_page page;
    struct hw_section directory[HW_SECTIONS_MOST];
    struct piece pieces[HW_SECTIONS_MOST] = {0};
    unsigned char *bytes = NULL;
    memset(&page, 0, sizeof page);
    if (count > HW_SECTIONS_MOST) {
        hw_error_set(error, "cannot write a profile: it has too many sections");
        return NULL;
    }
    page.header = (struct hw_file_header){
        .magic = HW_FILE_MAGIC,
        .version_major = HW_FILE_VERSION_MAJOR,
        .version_minor =
            options->version_minor > HW_FILE_VERSION_MINOR ? options->version_minor : HW_FILE_VERSION_MINOR,
        .flags = HW_FILE_SEALED | options->file_flags,
        .page_size = HW_FILE_PAGE,
        .session = options->session,
    };
    if (pack_sections(pieces, sections, count, options) &&
        lay_out(&page.header, directory, sections, pieces, count, options->packed ? 8 : HW_FILE_PAGE)) {
        const size_t rest = count > HW_FIRST_DIRECTORY_MOST ? count - (HW_FIRST_DIRECTORY_MOST - 1) : 0;
        fill_directories(&page, directory, count, rest);
        page.header.checksum = XXH64(&page, sizeof page, 0);
        bytes = assemble(&page, directory, pieces, count, rest);
        *size = page.header.total_size;
    }
    if (!bytes)
        hw_error_set(error, "cannot write a profile: not enough memory");
    for (size_t i = 0; i < count; i++)
        free(pieces[i].packed);
    return bytes;
}

unsigned char *hw_tables_serialize(const struct hw_tables *tables, const struct hw_write_options *options, size_t *size,
                                   struct hw_error *error)
{
    struct hw_section_source sections[HW_SECTION_KNOWN];
    size_t count = 0;
    for (uint32_t type = 0; type < HW_SECTION_KNOWN; type++) {
        const struct hw_section_rule *rule = hw_section_rule(type);
        const struct hw_table *table = &tables->of[type];
        if (!rule || type == HW_SECTION_DIRECTORY || table->count == 0)
            continue;
        sections[count++] = (struct hw_section_source){
            .type = type,
            .entry_size = rule->size,
            .version = 1,
            .bytes = table->entries,
            .size = table->count * rule->size,
        };
    }
    return hw_sections_serialize(sections, count, options, size, error);
}

/* ---- bytes -> file ---- */

bool hw_write_all(int fd, const void *bytes, size_t size, int64_t offset)
{
    for (size_t done = 0; done < size;) {
        const char *rest = (const char *)bytes + done;
        ssize_t put =
            offset < 0 ? write(fd, rest, size - done) : pwrite(fd, rest, size - done, (off_t)(offset + (int64_t)done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put == 0)
            errno = ENOSPC;
        if (put <= 0)
            return false;
        done += (size_t)put;
    }
    return true;
}

static bool cannot_write(const char *path, struct hw_error *error)
{
    hw_error_set(error, "cannot write '%s': %s", path, strerror(errno));
    return false;
}

static bool exists_already(const char *path, struct hw_error *error)
{
    hw_error_set(error, "'%s' exists already (-f overwrites it)", path);
    return false;
}

/* Renames FROM to TO, which must not exist, nor have appeared since the check, if the file system supports that. */
static bool rename_new(const char *from, const char *to)
{
    struct stat status;
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return true;
    if (errno != EINVAL && errno != ENOSYS)
        return false;
    if (lstat(to, &status) == 0) {
        errno = EEXIST;
        return false;
    }
    return rename(from, to) == 0;
}

/* Fills the new file FD, which then has the owner and mode of OLD, if there is one. Closes it. */
static bool fill(int fd, const void *bytes, size_t size, const struct stat *old)
{
    bool fine = true;
    /* Where the owner cannot be kept, nobody else gets to read it. */
    if (old)
        fine = fchmod(fd, fchown(fd, old->st_uid, old->st_gid) == 0 ? old->st_mode & 07777 : old->st_mode & 0700) == 0;
    fine = fine && hw_write_all(fd, bytes, size, -1);
    const int why = errno;
    if (close(fd) != 0)
        return false;
    errno = why;
    return fine;
}

static bool write_into(const char *path, const void *bytes, size_t size, struct hw_error *error)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || !fill(fd, bytes, size, NULL))
        return cannot_write(path, error);
    return true;
}

bool hw_file_write(const char *path, bool overwrite, const void *bytes, size_t size, struct hw_error *error)
{
    char real[PATH_MAX], aside[PATH_MAX + 32];
    struct stat status;
    if (!overwrite && lstat(path, &status) == 0)
        return exists_already(path, error);
    const bool exists = stat(path, &status) == 0;
    if (exists && !S_ISREG(status.st_mode))
        return write_into(path, bytes, size, error);
    const char *target = exists && realpath(path, real) ? real : path; /* a link stays one */
    if ((size_t)snprintf(aside, sizeof aside, "%s.%ld.part", target, (long)getpid()) >= sizeof aside) {
        errno = ENAMETOOLONG;
        return cannot_write(path, error);
    }
    const int fd = open(aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, exists ? 0600 : 0666);
    if (fd < 0)
        return cannot_write(errno == EEXIST ? aside : path, error);
    if (fill(fd, bytes, size, exists ? &status : NULL) &&
        (overwrite ? rename(aside, target) == 0 : rename_new(aside, target)))
        return true;
    const int why = errno;
    unlink(aside);
    errno = why;
    return why == EEXIST ? exists_already(path, error) : cannot_write(path, error);
}
