/* symbolised.h - the symbols that a symbolised profile brings along: names without the binaries.
 *
 * What a module's file said when the profile was symbolised, keyed by the first map of the module (the first of those
 * with its path and build id) and the address in the ELF file. Everything is checked when the profile is read: indexes
 * are in range, lists are sorted, strings end. Lives as long as the profile. */
#ifndef HW_PROFILE_MODEL_SYMBOLISED_H
#define HW_PROFILE_MODEL_SYMBOLISED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/format.h"

/* More frames than this at one address are damage, not a chain of inlined functions. */
#define HW_CHAIN_MOST 1024u
/* Longer source paths than this, and all beyond so many bytes of them, are damage. */
#define HW_SOURCE_PATH_MOST  16384u
#define HW_SOURCE_PATHS_MOST (256u << 20)

struct hw_symbolised {
    const struct hw_location *locations; /* sorted by map and address, each once */
    size_t location_count;
    const struct hw_symbol_frame *frames; /* `file` is an index into paths */
    size_t frame_count;
    const char *const *paths; /* source paths by file; NULL: not known, or of no frame */
    size_t path_count;
    const struct hw_type_name *types; /* sorted by id */
    size_t type_count;
    const struct hw_data_name *data; /* sorted by map, flags and address */
    size_t data_count;
    const struct hw_module_mark *modules; /* sorted by map */
    size_t module_count;
};

/* Groups maps into modules: those with the same path and build id. FIRST_MAP (by map) becomes the first map of the
 * module. Strings beyond STRING_SIZE count as empty. False when there is no memory. */
bool hw_first_maps(const struct hw_map_entry *maps, size_t count, const char *strings, size_t string_size,
                   uint32_t *first_map);

/* The answer for an address, or NULL: then nobody has looked. MAP may be HW_NONE. */
const struct hw_location *hw_symbolised_location(const struct hw_symbolised *symbols, uint32_t map, uint64_t address);

/* What is known of the module whose first map this is, or NULL. */
const struct hw_module_mark *hw_symbolised_module(const struct hw_symbolised *symbols, uint32_t map);

/* The name of a type (string), 0 when it is not known. */
uint32_t hw_symbolised_type(const struct hw_symbolised *symbols, uint64_t id);

/* The names with FLAGS (enum hw_data_name_flags; 0: variables) of a module: returns the first, sets COUNT. */
const struct hw_data_name *hw_symbolised_data(const struct hw_symbolised *symbols, uint32_t map, uint32_t flags,
                                              size_t *count);

#endif
