/* container.h - private to src/profile: the container of a profile file, between the bytes and the model.
 *
 *   problems.c   arena and the list of problems
 *   container.c  first page and directories: bytes -> checked extents
 *   reader.c     extents -> checked tables in memory
 *   model.c      tables -> struct hw_profile
 *   model_access.c     …its part of counted accesses
 *   model_fields.c     …its part of counted fields
 *   symbolised.c …and of symbols (symbolised.h)
 *   close.c      seals the file of a process that has ended
 *   llvm_model.c tables from LLVM's files instead (llvm.h)
 *   snapshot.c   copies the file of a process that goes on
 *   write.c      tables -> a sealed file (write.h)
 *   pack.c, unpack.c, pack_schema.c, section.c, repack.c   packed extents (pack.h)
 *
 * Nothing here trusts a byte of the file. Nothing here keeps state outside its arguments, so files can be read in
 * several threads at once. */
#ifndef HW_PROFILE_CONTAINER_CONTAINER_H
#define HW_PROFILE_CONTAINER_CONTAINER_H

#include "profile/error.h"
#include "profile/format.h"
#include "profile/profile.h"

/* ---- problems.c ---- */

/* Memory that lives as long as the profile and is freed at once. */
struct hw_arena {
    struct hw_arena_block *blocks;
    bool failed; /* an allocation was refused: whatever was built is incomplete */
};

/* COUNT * SIZE zeroed bytes; NULL (and `failed`) when there is no room or the product overflows. */
void *hw_arena_allocate(struct hw_arena *arena, size_t count, size_t size);
char *hw_arena_copy(struct hw_arena *arena, const char *string);
void hw_arena_free(struct hw_arena *arena);

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

/* Types below this number are known: the size of a union in which section N has N + 1 bytes. */
union hw_section_numbers {
#define HW_SECTION(number, name, ...) char name[number + 1];
#include "profile/sections.def"
};
#define HW_SECTION_KNOWN ((uint32_t)sizeof(union hw_section_numbers))

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
    bool trusted;       /* the directory it comes from is undamaged, as far as that can be told */
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
/* XXH64 of the first page with its checksum field as zero. */
uint64_t hw_container_page_checksum(const unsigned char *page);
/* XXH64 of SIZE bytes at OFFSET. False with errno (0: the file ends before) when they cannot be read. */
bool hw_container_checksum(int fd, uint64_t offset, uint64_t size, uint64_t *checksum);

/* True when process PID lives, was started at START_TIME (field 22 of /proc/PID/stat), and, as far as that can be
 * looked up, still maps the file that is open as FD and named PATH. */
bool hw_process_writes(uint32_t pid, uint64_t start_time, int fd, const char *path);

/* ---- reader.c ---- */

struct hw_hole {
    size_t first, end; /* entries [first, end) are zero: their extent is damaged or missing */
};

/* All entries of one section type, fitted to the structure this reader knows: longer entries are cut, shorter ones
 * filled up with zeros. */
struct hw_table {
    void *entries; /* in the arena */
    size_t count;
    struct hw_hole *holes; /* ascending; only in indexed sections */
    size_t hole_count;
    bool damaged; /* not all of it could be read */
};

struct hw_tables {
    struct hw_table of[HW_SECTION_KNOWN];
    size_t extents_read; /* extents of known types of which something could be read, directories not counted */
};

/* An empty table of COUNT zeroed entries in place of the section's; returns the entries. NULL when there is no memory:
 * the arena has failed then. */
void *hw_table_make(struct hw_tables *tables, struct hw_arena *arena, uint32_t type, size_t count);

/* Copies all sections in an order that makes references resolvable while the file grows. False with ERROR when the
 * memory does not suffice or nothing could be read. Loads CONTAINER (again, as often as needed). */
bool hw_tables_read(struct hw_container *container, struct hw_arena *arena, struct hw_tables *tables,
                    struct hw_error *error);
/* ---- llvm_model.c ---- */

/* True when the open file begins like one of LLVM's. */
bool hw_llvm_recognized(int fd);
/* Reads it whole and fills TABLES as a file of Heapwise's own would. NULL with ERROR. */
const struct hw_profile_llvm *hw_llvm_tables_read(int fd, const char *path, struct hw_arena *arena,
                                                  struct hw_tables *tables, struct hw_error *error);

/* Reads the tables of a sealed, undamaged file, to write it anew with them: file flags and session go into WRITE, and
 * whether it is packed. False with ERROR, also when it is of a newer version, of which something would be lost. */
struct hw_write_options;
bool hw_tables_load(const char *path, struct hw_arena *arena, struct hw_tables *tables, struct hw_write_options *write,
                    struct hw_error *error);
/* What a merged file that was made from LLVM's says of them. NULL when there is no memory. */
const struct hw_profile_llvm *hw_llvm_merged_source(struct hw_arena *arena, const struct hw_tables *tables);

bool hw_table_missing(const struct hw_table *table, size_t index);

/* ---- model.c ---- */

/* A profile of TABLES. ARENA, which their entries are in, and which was allocated itself, becomes the profile's; when
 * it is NULL the tables stay as they are, but for entries that point nowhere, and must outlive the profile. NULL with
 * ERROR; ARENA is freed then, too. */
struct hw_profile *hw_profile_from_tables(const struct hw_tables *tables, struct hw_arena *arena, const char *name,
                                          struct hw_error *error);

/* ---- symbolised.c ---- */

/* Fills PROFILE's symbols, if there are any in TABLES; strings and maps of PROFILE are there already. False when the
 * memory does not suffice. */
bool hw_profile_take_symbols(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                             struct hw_problems *problems);

/* ---- model_samples.c ---- */

/* Fills PROFILE's part of sampled accesses, likewise. */
bool hw_profile_take_samples(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                             struct hw_problems *problems);

/* ---- model_allocator.c ---- */

/* What becomes of an entry of a section. */
enum hw_taken { HW_TAKEN, HW_TAKEN_NOT, HW_TAKEN_DAMAGED };
/* A copy of those entries of TABLE, of SIZE bytes, which TAKE (it may change them) wants, sorted by COMPARE, and how
 * many there are. If some are damaged the sentence DAMAGE is a problem. NULL when there is no memory. */
void *hw_profile_take_list(struct hw_arena *arena, const struct hw_table *table, size_t size,
                           enum hw_taken (*take)(const void *closure, void *entry), const void *closure,
                           int (*compare)(const void *, const void *), struct hw_problems *problems, const char *damage,
                           size_t *count);

/* Fills PROFILE's part of what was observed of the allocator; process and contexts are there already. END_TICK: the
 * latest moment that the file speaks of. False when the memory does not suffice. */
bool hw_profile_take_allocator(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                               struct hw_problems *problems, uint64_t end_tick);

/* ---- model_sharing.c ---- */

/* Fills PROFILE's part of what threads do in shared lines; when counted accesses are there. Likewise. */
bool hw_profile_take_sharing(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                             struct hw_problems *problems);

/* ---- model_inside.c ---- */

/* Fills INSIDE; maps and notes of PROFILE are there already. False when the memory does not suffice. */
bool hw_profile_take_inside(struct hw_profile_inside *inside, const struct hw_profile *profile, struct hw_arena *arena,
                            const struct hw_tables *tables);

/* Makes what contexts are estimated to have agree with the totals that are known exactly. Last of all. */
void hw_profile_fit_observed(struct hw_profile *profile);
/* Sampled runs: makes the peak, its variance and the shares of contexts of what the two halves say. */
void hw_profile_fit_sampled_peak(struct hw_profile *profile);

/* ---- invariants.c ---- */

/* Sets the contradictions of a profile that is complete otherwise. */
void hw_profile_check_invariants(struct hw_profile *profile, struct hw_arena *arena);

/* ---- model_places.c ---- */

/* Likewise of what lies where; contexts are there already. */
bool hw_profile_take_places(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                            struct hw_problems *problems);

/* ---- model_access.c ---- */

/* Fills PROFILE's part of counted accesses from TABLES; maps, contexts and clock of PROFILE are there already. False
 * when the memory does not suffice. */
bool hw_profile_take_accesses(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                              struct hw_problems *problems);

/* Whether blocks of context ID were freed after live ones were looked at: then what was seen of them may be counted
 * twice. */
bool hw_profile_freed_since_harvest(const struct hw_profile *profile, uint32_t id);

/* ---- model_fields.c ---- */

/* Fills PROFILE's part of counted fields, and the types of contexts; strings, contexts with their accesses, and clock
 * are there already. False when the memory does not suffice. */
bool hw_profile_take_fields(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                            struct hw_problems *problems);

/* ---- model_allocator_facts.c ---- */

/* Fills what ALLOCATOR says of how the allocator works and what others would do. False when the memory does not
 * suffice. */
bool hw_profile_take_facts(struct hw_profile_allocator *allocator, struct hw_arena *arena,
                           const struct hw_tables *tables, struct hw_problems *problems);

#endif
