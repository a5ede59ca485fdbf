/* tables.h - the sections of a profile in memory: between the file and the model, for writers of a new profile. */
#ifndef HW_PROFILE_TABLES_H
#define HW_PROFILE_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "profile/format.h"

struct hw_write_options;

/* Memory that lives as long as the profile and is freed at once. */
struct hw_arena {
    struct hw_arena_block *blocks;
    bool failed; /* an allocation was refused: whatever was built is incomplete */
};

/* COUNT * SIZE zeroed bytes; NULL (and `failed`) when there is no room or the product overflows. */
void *hw_arena_allocate(struct hw_arena *arena, size_t count, size_t size);
char *hw_arena_copy(struct hw_arena *arena, const char *string);
void hw_arena_free(struct hw_arena *arena);

/* Types below this number are known: the size of a union in which section N has N + 1 bytes. */
union hw_section_numbers {
#define HW_SECTION(number, name, ...) char name[number + 1];
#include "profile/sections.def"
};
#define HW_SECTION_KNOWN ((uint32_t)sizeof(union hw_section_numbers))

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

/* Reads the tables of a sealed, undamaged file, to write it anew with them: file flags and session go into WRITE, and
 * whether it is packed. False with ERROR, also when it is of a newer version, of which something would be lost. */
struct hw_write_options;
bool hw_tables_load(const char *path, struct hw_arena *arena, struct hw_tables *tables, struct hw_write_options *write,
                    struct hw_error *error);
struct hw_profile;
/* A profile of TABLES. ARENA, which their entries are in, and which was allocated itself, becomes the profile's; when
 * it is NULL the tables stay as they are, but for entries that point nowhere, and must outlive the profile. NULL with
 * ERROR; ARENA is freed then, too. */
struct hw_profile *hw_profile_from_tables(const struct hw_tables *tables, struct hw_arena *arena, const char *name,
                                          struct hw_error *error);

#endif
