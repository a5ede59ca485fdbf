/* symbol_tables.h - private to what makes symbolised profiles: builders of their sections.
 *
 * Where an index is returned, HW_NONE means that there is no memory (or no room in 32 bits). Zero-initialised where
 * there is no function that makes it; freed with its own function. Same calls in the same order give the same bytes. */
#ifndef HW_PROFILE_MODEL_SYMBOL_TABLES_H
#define HW_PROFILE_MODEL_SYMBOL_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "profile/tables.h"

/* ---- strings ---- */

/* The STRINGS section with further strings behind those that it has. What is there is not added again. */
struct hw_string_table {
    char *bytes; /* SIZE of them, and a zero byte behind */
    size_t size, capacity;
    struct hw_index index; /* the offset of each */
};

/* Begins with the SIZE bytes of a section. False when there is no memory. */
bool hw_string_table_make(struct hw_string_table *table, const char *bytes, size_t size);
void hw_string_table_free(struct hw_string_table *table);
/* The offset of TEXT; 0 for NULL and "". */
uint32_t hw_string_table_add(struct hw_string_table *table, const char *text);
/* Puts SIZE bytes (strings that belong together, with their ends) at the end, whatever is there; their offset. */
uint32_t hw_string_table_append(struct hw_string_table *table, const char *bytes, size_t size);

/* ---- source paths ---- */

/* The FILES section: a forest of path components, each linked to the directory that it lies in. */
struct hw_file_tree {
    struct hw_file_node *nodes; /* node 0 is the root */
    size_t count, capacity;
    struct hw_index index; /* by name and parent */
};

void hw_file_tree_free(struct hw_file_tree *tree);
/* The leaf for PATH; 0 for NULL. */
uint32_t hw_file_tree_add(struct hw_file_tree *tree, struct hw_string_table *strings, const char *path);

/* ---- functions ---- */

/* The hash of a function's name in the FUNCTIONS section. */
uint64_t hw_function_hash(const char *name);

/* Fills the sections FUNCTIONS and POSTINGS of TABLES from CONTEXTS, STACKS, MAPS, LOCATIONS, FRAMES and STRINGS, in
 * ARENA: a context belongs to each function of its leaf's inline chain, by its readable name and by its linkage name.
 * Indexes are checked. False when there is no memory. */
bool hw_function_index_build(struct hw_tables *tables, struct hw_arena *arena);

#endif
