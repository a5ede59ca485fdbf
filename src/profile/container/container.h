/* container.h - private to src/profile: the container of a profile file, between the bytes and the tables (tables.h).
 *
 *   problems.c   arena and the list of problems
 *   container.c  first page and directories: bytes -> checked extents; what is known of sections
 *   reader.c     extents -> checked tables in memory
 *   close.c      seals the file of a process that has ended
 *   snapshot.c   copies the file of a process that still runs
 *   write.c      tables -> a sealed file (write.h)
 *   pack.c, unpack.c, pack_schema.c, section.c, repack.c   packed extents (pack.h)
 *
 * Nothing here trusts a byte of the file. Nothing here keeps state outside its arguments, so files can be read in
 * several threads at once. */
#ifndef HW_PROFILE_CONTAINER_CONTAINER_H
#define HW_PROFILE_CONTAINER_CONTAINER_H

#include "base/error.h"
#include "profile/format.h"
#include "profile/profile.h"
#include "profile/tables.h"

/* ---- problems.c ---- */

/* Sentences for the user. The same sentence is kept once, and not more than HW_PROBLEMS_MOST of them: a damaged file
 * must not flood the terminal. */
#define HW_PROBLEMS_MOST 40
struct hw_problems {
    struct hw_arena *arena;
    char **sentences;
    size_t count;
    bool left_out; /* there were more */
};

__attribute__((format(printf, 2, 3))) void hw_problem(struct hw_problems *problems, const char *format, ...);
/* Appends a sentence that says that some were left out, if any were. Call once, at the end. */
void hw_problems_finish(struct hw_problems *problems);

/* ---- container.c ---- */

#define HW_ENTRY_SIZE_MOST      65536u
#define HW_FIRST_DIRECTORY_MOST ((HW_FILE_PAGE - sizeof(struct hw_file_header)) / sizeof(struct hw_section))
/* Of a file that is written: what the first directory has no room for is in a second one. */
#define HW_SECTIONS_MOST (2 * HW_FIRST_DIRECTORY_MOST - 1)

enum hw_rule_flags { HW_RULE_INDEXED = 1, HW_RULE_STAYS = 2 };
enum hw_look_up { HW_LOOK_UP_BLOCKS, HW_LOOK_UP_WHOLE, HW_LOOK_UP_IGNORED, HW_LOOK_UP_HINDERS };
enum hw_turn { HW_TURN_NONE = 0, HW_TURN_FIRST = 1, HW_TURN_ANY = 2, HW_TURN_REFERRED = 3, HW_TURN_LAST = 10 };

/* What is known of a section type: its row in sections.def. */
struct hw_section_rule {
    const char *name;
    uint32_t smallest; /* entry_size in version 1.0: a writer never goes below */
    uint32_t size;     /* of the structure as this reader knows it */
    uint8_t turn;      /* enum hw_turn, or one between */
    bool indexed;      /* other sections refer to entries by index: a missing extent must leave a hole */
    bool stays;        /* a model uses the entries where they are */
    uint8_t look_up;   /* enum hw_look_up */
    uint16_t few;      /* entries in a packed chunk where functions are looked up; 0: as in other files */
};

/* NULL for a type that is not known. */
const struct hw_section_rule *hw_section_rule(uint32_t type);

/* The member at OFFSET in the entries of section FROM is an index into section TO, or an offset in STRINGS. */
struct hw_reference {
    const char *name; /* of section FROM, as in sections.def */
    uint32_t from, to;
    size_t offset;
};
extern const struct hw_reference hw_references[];
extern const size_t hw_reference_count;

/* An extent whose directory entry has been checked: the sum of offset and capacity does not overflow, used <= capacity,
 * the entry size is possible for its type, and it overlaps no other extent. */
struct hw_extent {
    struct hw_section entry;
    uint64_t position;  /* offset in the file of the directory entry itself */
    uint64_t available; /* how many of the used bytes the file is long enough to hold */
    bool trusted;       /* the directory it comes from is undamaged, as far as is known */
};

struct hw_container {
    int fd;
    const char *path;
    unsigned char page[HW_FILE_PAGE]; /* the first page, as it was read */
    struct hw_file_header header;
    uint64_t file_size; /* looked up after the first page was read: a growing file is never taken for a cut one */
    bool sealed;        /* checksums hold */
    bool cut;           /* shorter than it says */
    struct hw_extent *extents; /* in directory order, directories included; malloc'ed */
    size_t extent_count, extent_room;
    struct hw_problems *problems;
};

/* Opens PATH if it is a regular file. WRITABLE: for reading and writing. -1 with ERROR. */
int hw_container_open(const char *path, bool writable, struct hw_error *error);
/* A nameless file with a copy of the bytes. -1 with ERROR. */
int hw_container_open_bytes(const void *bytes, size_t size, const char *name, struct hw_error *error);
/* Reads first page and directories from `fd` (fd, path and problems are set by the caller, the rest is zero, or comes
 * from an earlier load and is replaced). False with ERROR when the file is no profile or cannot be read at all. */
bool hw_container_load(struct hw_container *container, struct hw_error *error);
void hw_container_free(struct hw_container *container);
/* Bytes read, fewer than SIZE only at the end of the file; -1 with errno. */
int64_t hw_container_read(int fd, void *buffer, size_t size, uint64_t offset);
/* XXH64 of SIZE bytes at OFFSET. False with errno (0: the file ends before) when they cannot be read. */
bool hw_container_checksum(int fd, uint64_t offset, uint64_t size, uint64_t *checksum);

/* Start time (field 22 of /proc/PID/stat) of a process that lives; false when there is none or it is a zombie. */
bool hw_process_started(uint32_t pid, uint64_t *start_time);
/* True when process PID lives, was started at START_TIME (field 22 of /proc/PID/stat), and, as far as that can be
 * looked up, still maps the file that is open as FD and named PATH. */
bool hw_process_writes(uint32_t pid, uint64_t start_time, int fd, const char *path);

/* ---- reader.c ---- */

/* Copies all sections in an order that makes references resolvable while the file grows. False with ERROR when the
 * memory does not suffice or nothing could be read. Loads CONTAINER (again, as often as needed). */
bool hw_tables_read(struct hw_container *container, struct hw_arena *arena, struct hw_tables *tables,
                    struct hw_error *error);
bool hw_table_missing(const struct hw_table *table, size_t index);

#endif
