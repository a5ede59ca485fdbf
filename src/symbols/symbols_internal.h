/* symbols_internal.h - what the files of this folder share; nothing outside includes it.
 *
 * The way of an address:
 *
 *     symbolizer.c   tickets, one pass over modules (index), one pass over units (resolve), on several threads
 *     module.c       which units of a module's debug information cover which addresses; what is wrong with the module
 *     debug_file.c   one thread's open libdwfl handle on a module; build id check; separate debug files
 *     inline_chain.c one unit: functions and inlined functions at sorted addresses, from the DIE tree
 *     source_line.c  one unit: file, line and column, from the line table
 *     data.c         variables, sections of data, names of types
 *     field_names.c  fields of variables
 *     call_types.c   types of what allocating functions return: the units, the functions, what was found
 *     call_flow.c    one function: where the result of a call goes, instruction by instruction
 *     dwarf_types.c  types in debug information
 *     struct_layout.c a struct's members, taken apart
 *     elf_symbols.c  names from .symtab, .dynsym, .gnu_debugdata and the PLT
 *     names.c        interned strings, shared by all threads
 *     demangle.c     C++ and Rust names
 *     locate.c       files by build id, all functions of a file
 *
 * libdw handles serve one thread at a time, so whatever holds one (hw_debug_file, hw_unit) belongs to a single worker.
 * What outlives a pass (hw_module, hw_names) is plain data. Functions that can only fail for want of memory return
 * false or NULL. */
#ifndef HW_SYMBOLS_SYMBOLS_INTERNAL_H
#define HW_SYMBOLS_SYMBOLS_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include "symbols/symbols.h"

/* ---- demangle.c ---- */

/* The readable form of a C++ (Itanium) or Rust (legacy and v0) linkage name, to be freed with free(); NULL when the
 * name is in no known scheme, is damaged, or there is no memory. */
char *hw_demangle(const char *linkage_name);

/* ---- names.c ---- */

/* All functions are safe to call from several threads. Strings live until hw_names_free. */
struct hw_names;

struct hw_names *hw_names_new(void);
void hw_names_free(struct hw_names *names);

/* The one copy of TEXT; NULL when there is no memory. */
const char *hw_names_intern(struct hw_names *names, const char *text);

/* The readable form of LINKAGE_NAME, interned: demangled where that is possible, else the name itself. Each name is
 * demangled once. NULL when there is no memory. */
const char *hw_names_readable(struct hw_names *names, const char *linkage_name);

/* ---- elf_symbols.c ---- */

struct hw_elf_symbols;

/* Reads the function symbols of a module. NULL when there is no memory; a module without symbols gives an empty table.
 */
struct hw_elf_symbols *hw_elf_symbols_read(Dwfl_Module *module);
void hw_elf_symbols_free(struct hw_elf_symbols *symbols);
size_t hw_elf_symbols_count(const struct hw_elf_symbols *symbols);

/* The linkage name (without @VERSION) of the function that holds ADDRESS, or NULL. */
const char *hw_elf_symbols_find(const struct hw_elf_symbols *symbols, uint64_t address);

/* ---- debug_file.c ---- */

/* Where files are looked for; read only once the symbolizer is made. */
struct hw_debug_paths {
    const char *sysroot;      /* "" when there is none */
    char *search;             /* libdwfl's search path for separate debug files */
    Dwfl_Callbacks callbacks; /* refers to SEARCH: do not move the struct */
};

/* One thread's view of a module. DWARF is NULL when there is no debug information. */
struct hw_debug_file {
    Dwfl *dwfl;
    Dwfl_Module *module;
    Dwarf *dwarf;
    uint64_t bias;       /* address in the module = DWARF's address + bias */
    uint64_t text_start; /* lowest address of executable code: what DWARF puts below was dropped by the linker */
};

bool hw_debug_paths_init(struct hw_debug_paths *paths, const char *sysroot);
void hw_debug_paths_free(struct hw_debug_paths *paths);

/* Opens PATH if its build id is BUILD_ID, else a separate debug file that has this build id. PROBLEM (an empty string
 * when there is nothing to say) gets a sentence without the path. False when no file serves. */
bool hw_debug_file_open(struct hw_debug_file *file, const struct hw_debug_paths *paths, const char *path,
                        const uint8_t *build_id, size_t build_id_size, char *problem, size_t problem_size);
void hw_debug_file_close(struct hw_debug_file *file);

/* Opens PATH alone, without debug information, if its build id is BUILD_ID. Returns its descriptor, to be closed after
 * elf_end(*ELF); -1 when it does not serve. */
int hw_debug_file_plain(const struct hw_debug_paths *paths, const char *path, const uint8_t *build_id,
                        size_t build_id_size, Elf **elf);

/* ---- data.c ---- */

struct hw_type {
    uint64_t id;
    const char *name; /* interned */
};

struct hw_types {
    struct hw_type *type; /* sorted by id after hw_types_sort */
    size_t count, capacity;
};

/* Fills DATA from the symbol tables. False when there is no memory. */
bool hw_data_read(struct hw_data *data, const struct hw_debug_file *file, struct hw_names *names);

/* A type's id: the hash of its name (base/abi.h). */
uint64_t hw_type_id(const char *name, size_t length);

/* Adds the names in ELF's section of types, if it has one, and finds out whether its code counts accesses. False when
 * there is no memory. */
bool hw_marks_read(struct hw_types *types, enum hw_counting *counting, Elf *elf, struct hw_names *names);
void hw_types_sort(struct hw_types *types);
const char *hw_types_find(const struct hw_types *types, uint64_t id);

/* ---- field_names.c ---- */

/* Answers what FILE's debug information knows. False when there is no memory. */
bool hw_fields_find(const struct hw_debug_file *file, struct hw_names *names, struct hw_field_query *query, size_t count);

/* ---- struct_layout.c ---- */

/* What TYPE, called NAME, consists of. FIELDS (to.field_count of them, to be freed) are sorted, and none lies in another;
 * all empty if it is no struct, class or union. Strings are interned in NAMES. False when there is no memory. */
struct hw_profile_struct;
struct hw_profile_field;
bool hw_struct_layout(struct hw_names *names, Dwarf_Die *type, const char *name, struct hw_profile_struct *to,
                      struct hw_profile_field **fields);

/* ---- module.c ---- */

#define HW_NO_UNIT UINT32_MAX

/* A compile unit of the module that has code. */
struct hw_unit_entry {
    uint64_t die_offset;   /* of the unit's DIE in .debug_info */
    uint64_t entries_size; /* bytes up to the next unit: bounds the number of DIEs in it */
};

struct hw_unit_range {
    uint64_t start, end; /* addresses in the module */
    uint64_t reach;      /* the greatest END of this range and all before it */
    uint32_t unit;       /* index of hw_unit_entry */
};

/* Owned by the symbolizer. Written by the thread that indexes it, then read by all; what is below LOCK is guarded by
 * it. */
struct hw_module {
    char *path;
    uint8_t *build_id;
    size_t build_id_size;

    bool indexed, usable, has_debug_info;
    enum hw_counting counting;
    struct hw_unit_entry *unit;
    size_t unit_count;
    struct hw_unit_range *range; /* sorted by start */
    size_t range_count;

    pthread_mutex_t lock;
    struct hw_elf_symbols *symbols; /* read when first needed */
    char *problem;
};

/* False when there is no memory. */
bool hw_module_init(struct hw_module *module, const char *path, const uint8_t *build_id, size_t build_id_size);
void hw_module_clear(struct hw_module *module);

/* Opens FILE for the module and lists its units. FILE is open afterwards exactly when module->usable. Call once. */
bool hw_module_index(struct hw_module *module, const struct hw_debug_paths *paths, struct hw_debug_file *file);

/* The unit with code at ADDRESS, or HW_NO_UNIT. */
uint32_t hw_module_find_unit(const struct hw_module *module, uint64_t address);

/* Records what is wrong with the module unless something was recorded before. */
void hw_module_note_problem(struct hw_module *module, const char *problem);

/* The module's symbols, read through FILE by the first caller. NULL when there is no memory. Thread-safe. */
const struct hw_elf_symbols *hw_module_symbols(struct hw_module *module, const struct hw_debug_file *file);

/* ---- symbolizer.c, for call_types.c ---- */

struct hw_module *hw_symbolizer_module(struct hw_symbolizer *symbolizer, int module); /* NULL: no such number */
struct hw_names *hw_symbolizer_names(struct hw_symbolizer *symbolizer);
/* Opens the module's file; false: it does not serve. */
bool hw_symbolizer_open(struct hw_symbolizer *symbolizer, int module, struct hw_debug_file *file);

/* ---- source_line.c ---- */

struct hw_source_line {
    const char *file; /* interned, or NULL */
    uint32_t line, column, discriminator;
};

/* Interned paths by the pointer libdw gave for them. Zero-initialise. */
struct hw_path_memo {
    const char *raw[64], *interned[64];
};

/* PATH interned, made absolute with the compilation directory of UNIT_DIE. NULL for NULL, or without memory. */
const char *hw_source_path(struct hw_names *names, struct hw_path_memo *memo, Dwarf_Die *unit_die, const char *path);

/* The line at ADDRESS (DWARF's, bias taken off) of the unit; all unknown when the line table has none. */
struct hw_source_line hw_source_line_find(struct hw_names *names, struct hw_path_memo *memo, Dwarf_Die *unit_die,
                                          uint64_t address);

/* ---- inline_chain.c ---- */

/* Called for each address with its chain, which is valid during the call only. False ends the unit. */
typedef bool hw_chain_sink(void *closure, size_t index, const struct hw_frame *frame, uint32_t count);

/* Resolves COUNT sorted addresses (of the module) in one unit and hands each to SINK; every address is handed over,
 * also if nothing is known of it. False: out of memory, or SINK returned false. */
bool hw_unit_resolve(struct hw_module *module, const struct hw_debug_file *file, uint32_t unit, struct hw_names *names,
                     const uint64_t *address, size_t count, hw_chain_sink *sink, void *closure);

/* Called for each address with the function that it is in, inlined ones first; none when that is not known. UNIT: the
 * unit they are in. */
typedef bool hw_scope_sink(void *closure, size_t index, Dwarf_Die *unit, Dwarf_Die *scope, uint32_t count);

/* As hw_unit_resolve, with entries instead of names. */
bool hw_unit_scopes(struct hw_module *module, const struct hw_debug_file *file, uint32_t unit, struct hw_names *names,
                    const uint64_t *address, size_t count, hw_scope_sink *sink, void *closure);

/* The frame for an address that no unit knows: the symbol's name, or nothing. False when there is no memory. */
bool hw_symbol_frame(struct hw_module *module, const struct hw_debug_file *file, struct hw_names *names,
                     uint64_t address, struct hw_frame *frame);

#endif
