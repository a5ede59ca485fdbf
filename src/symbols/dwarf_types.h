/* dwarf_types.h - types in debug information; nothing outside this folder includes it. */
#ifndef HW_SYMBOLS_DWARF_TYPES_H
#define HW_SYMBOLS_DWARF_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>

#define HW_TYPE_BYTES 1024 /* names that are longer are not written */

/* The type that DIE (of a variable, a member, a pointer) has, without typedefs, const and the like. False: none. */
bool hw_die_type(Dwarf_Die *die, Dwarf_Die *type);

bool hw_is_pointer(int tag);

/* Where a member or base lies in its struct; false: nowhere that is constant, or it is a bit-field. */
bool hw_member_offset(Dwarf_Die *member, uint64_t *offset);

/* Appends PIECE to TEXT, which has SIZE bytes; false: no room. */
bool hw_append(char *text, size_t size, const char *piece);

/* Appends the name of TYPE to TEXT, of HW_TYPE_BYTES, as the source has it, without const; false: it has none, or is no
 * type of a block. Languages other than C and C++ have no names here, but for RUST if that is asked for. */
bool hw_append_type(char *text, Dwarf_Die *type, bool rust);

/* The name of a base type as clang has it: "unsigned long" for gcc's "long unsigned int". */
const char *hw_number_name(const char *name);

/* Whether UNIT is in C. */
bool hw_is_c(Dwarf_Die *unit);

#endif
