/* write.h - tables in memory -> a sealed profile file.
 *
 * Everything that makes a profile after the run goes through here: dumps taken from outside, packed, merged and
 * symbolised profiles. The layout is that of docs/development/profile-format.md with one extent a section and one
 * directory. */
#ifndef HW_PROFILE_CONTAINER_WRITE_H
#define HW_PROFILE_CONTAINER_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct hw_tables;

struct hw_write_options {
    bool packed;            /* sections become packed extents where that makes them smaller (pack.h) */
    int zstd_level;         /* of their chunks, 1 to 19; 0: not compressed */
    uint32_t file_flags;    /* enum hw_file_flags; HW_FILE_SEALED is added */
    uint64_t session;       /* 0: of none */
    uint32_t version_minor; /* of the file that the sections come from, when that may be a newer one's; else 0 */
};

/* One section as it is to be written: SIZE bytes of entries. Types that are not known are written as they are. */
struct hw_section_source {
    uint32_t type, entry_size;
    uint16_t version;
    const void *bytes;
    size_t size;
};

/* The sections, in this order, as a sealed profile. Returns bytes to be freed and their number in *SIZE; the same
 * sections give the same bytes. PROCESS has to come first: it is looked for on the first page. NULL with ERROR (no
 * memory, more sections than one directory holds). */
unsigned char *hw_sections_serialize(const struct hw_section_source *sections, size_t count,
                                     const struct hw_write_options *options, size_t *size, struct hw_error *error);

/* The same of all sections of TABLES that have entries, sorted by type. */
unsigned char *hw_tables_serialize(const struct hw_tables *tables, const struct hw_write_options *options, size_t *size,
                                   struct hw_error *error);

/* Writes the sealed profile PATH anew with the sections ADDED, which take the places of sections of their types, in
 * place: aside and renamed. STRINGS are put behind those that there are; references to them in ADDED count from their
 * begin, where an empty string lies. Files that are packed, damaged or not sealed are refused and stay as they are. */
bool hw_profile_add_sections(const char *path, const struct hw_section_source *added, size_t count,
                             struct hw_error *error);

/* Writes the file PATH aside and renames it, so that nobody ever sees half of it. A file that exists is refused unless
 * OVERWRITE; then the new one takes over its permissions, and where PATH is no regular file (a pipe, /dev/null) it is
 * written into. False with ERROR. */
bool hw_file_write(const char *path, bool overwrite, const void *bytes, size_t size, struct hw_error *error);

/* All SIZE bytes at OFFSET of an open file, or as a stream when OFFSET is -1. False with errno. */
bool hw_write_all(int fd, const void *bytes, size_t size, int64_t offset);

#endif
