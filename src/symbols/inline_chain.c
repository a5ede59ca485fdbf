/* inline_chain.c - the functions at many addresses of one compile unit.
 *
 * Asking libdw for the scopes of one address after the other walks the unit's whole tree each time. Here the tree is
 * walked once: each function's and each inlined call's ranges are looked up among the sorted addresses, a function
 * without any of them is not entered, and every address keeps the deepest entry that covers it. The chain of an address
 * is then that entry and its parents. Names follow abstract origins and specifications, into other units and dwz's
 * files.
 *
 * Damaged trees end the walk early (depth and number of entries are bounded, siblings must go forward); addresses that
 * got nothing from it fall back to the symbol table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>

#include "base/growing.h"
#include "base/index.h"
#include "symbols/symbols_internal.h"

enum { DW_AT_discriminator_of_call = 0x2136 }; /* DW_AT_GNU_discriminator, which elfutils does not name */

enum {
    DEEPEST_TREE = 256,
    LONGEST_CHAIN = DEEPEST_TREE,
    MOST_ENTRIES = 20 * 1000 * 1000, /* of a unit whose size is not known */
    MOST_SCOPE_STEPS = 1 << 18,      /* DIEs that a unit may visit in search of scopes: some 10 ms */
    LONGEST_NAME = 4096,
    NOTHING = -1,
};

/* A function or an inlined call that covers at least one of the addresses. */
struct entry {
    Dwarf_Die die;
    int32_t parent; /* the entry it was inlined into, or NOTHING */
    int16_t depth;  /* in the tree: among entries that cover an address the deepest is right */
    bool inlined, resolved;
    bool transparent; /* a wrapper that its author wants to be seen as a part of its caller: attribute artificial */
    const char *function, *linkage_name; /* interned, once resolved */
    const char *call_file;
    uint32_t call_line, call_column, call_discriminator;
    uint32_t start_line;
};

/* Interned names of a DIE: many inlined calls share one origin. */
struct name_memo {
    const char *function, *linkage_name;
};

struct unit {
    struct hw_module *module;
    const struct hw_debug_file *file;
    struct hw_names *names;
    Dwarf_Die line_die; /* the unit that has the line table */
    Dwarf_Die tree_die; /* the unit that has the functions: the same, or the one in the .dwo file */
    int language;

    const uint64_t *address; /* sorted, of the module */
    int32_t *deepest;        /* for each address: an entry, or NOTHING */
    size_t address_count;
    uint32_t *wanted; /* the addresses (their indices, ascending) that this walk is for */
    size_t wanted_count;
    bool enter_all;           /* the second walk */
    unsigned functions_above; /* subprograms between the unit and where the walk is */

    struct entry *entry;
    size_t entry_count, entry_capacity;
    struct name_memo *memo;
    size_t memo_count, memo_capacity;
    struct hw_index memo_index; /* by the DIE's address */
    struct hw_path_memo paths;
    uint64_t entries_left; /* DIEs that may still be visited */
    uint32_t scope_steps;  /* DIEs that were visited in search of scopes */
    bool no_memory;
};

/* ---- the walk ---- */

static bool is_c(int language)
{
    return language == DW_LANG_C89 || language == DW_LANG_C || language == DW_LANG_C99 || language == DW_LANG_C11;
}

static bool is_c_plus_plus(int language)
{
    return language == DW_LANG_C_plus_plus || language == DW_LANG_C_plus_plus_03 ||
           language == DW_LANG_C_plus_plus_11 || language == DW_LANG_C_plus_plus_14;
}

/* The first of the wanted. */
static size_t first_at_or_after(const struct unit *unit, uint64_t address)
{
    size_t low = 0, high = unit->wanted_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (unit->address[unit->wanted[middle]] < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int32_t add_entry(struct unit *unit, const Dwarf_Die *die, int32_t parent, int depth, bool inlined)
{
    if (unit->entry_count >= INT32_MAX || !HW_GROW(unit->entry, unit->entry_capacity, unit->entry_count + 1)) {
        unit->no_memory = true;
        return NOTHING;
    }
    unit->entry[unit->entry_count] =
        (struct entry){.die = *die, .parent = parent, .depth = (int16_t)depth, .inlined = inlined};
    return (int32_t)unit->entry_count++;
}

/* Makes an entry of DIE if it covers any address, and gives it those that no deeper entry has. */
static int32_t claim(struct unit *unit, Dwarf_Die *die, int32_t parent, int depth, bool inlined)
{
    Dwarf_Addr base = 0, start = 0, end = 0;
    ptrdiff_t offset = 0;
    int32_t claimed = NOTHING;
    while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
        start += unit->file->bias;
        end += unit->file->bias;
        if (start < unit->file->text_start)
            continue;
        for (size_t i = first_at_or_after(unit, start); i < unit->wanted_count; i++) {
            uint32_t wanted = unit->wanted[i];
            if (unit->address[wanted] >= end)
                break;
            if (claimed == NOTHING && (claimed = add_entry(unit, die, parent, depth, inlined)) == NOTHING)
                return NOTHING;
            int32_t *deepest = &unit->deepest[wanted];
            if (*deepest == NOTHING || unit->entry[*deepest].depth < depth)
                *deepest = claimed;
        }
    }
    return claimed;
}

static void walk_children(struct unit *unit, Dwarf_Die *die, int32_t parent, int depth);

static void visit(struct unit *unit, Dwarf_Die *die, int32_t parent, int depth)
{
    int32_t claimed = NOTHING;
    switch (dwarf_tag(die)) {
    case DW_TAG_subprogram:
        claimed = claim(unit, die, NOTHING, depth, false);
        if (claimed == NOTHING && !unit->enter_all)
            break;
        unit->functions_above++;
        walk_children(unit, die, claimed, depth + 1);
        unit->functions_above--;
        break;
    case DW_TAG_inlined_subroutine:
        claimed = claim(unit, die, parent, depth, true);
        if (claimed != NOTHING)
            walk_children(unit, die, claimed, depth + 1);
        break;
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
    case DW_TAG_interface_type:
    case DW_TAG_variant_part:
    case DW_TAG_variant:
        /* In C and C++ only local types hold more than declarations; Rust, D and others define functions in any. */
        if (unit->functions_above || !(is_c(unit->language) || is_c_plus_plus(unit->language)))
            walk_children(unit, die, parent, depth + 1);
        break;
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
    case DW_TAG_with_stmt:
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_common_block:
        walk_children(unit, die, parent, depth + 1);
        break;
    default: /* partial units that are imported hold no code: what has addresses cannot be shared */
        break;
    }
}

static void walk_children(struct unit *unit, Dwarf_Die *die, int32_t parent, int depth)
{
    Dwarf_Die child;
    if (depth >= DEEPEST_TREE || dwarf_child(die, &child) != 0)
        return;
    while (!unit->no_memory && unit->entries_left > 0) {
        unit->entries_left--;
        visit(unit, &child, parent, depth);
        Dwarf_Die next;
        if (dwarf_siblingof(&child, &next) != 0 || next.addr <= child.addr)
            return;
        child = next;
    }
}

/* ---- names ---- */

static const char *string_attribute(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    return dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
}

/* Where the function of DIE is declared: at the end of its abstract origins and specifications. */
static Dwarf_Die declaration_of(const Dwarf_Die *die)
{
    Dwarf_Die declaration = *die, next;
    Dwarf_Attribute attribute;
    for (int i = 0; i < 16; i++) {
        if (!dwarf_formref_die(dwarf_attr(&declaration, DW_AT_abstract_origin, &attribute), &next) &&
            !dwarf_formref_die(dwarf_attr(&declaration, DW_AT_specification, &attribute), &next))
            break;
        declaration = next;
    }
    return declaration;
}

/* The name of a type or namespace, NULL for what is no such scope. FUNCTION: the name of a function within. */
static const char *scope_name(Dwarf_Die *die, const char *function)
{
    const char *name = dwarf_diename(die);
    switch (dwarf_tag(die)) {
    case DW_TAG_namespace:
        return name ? name : "(anonymous namespace)";
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
        return name ? name : strncmp(function, "operator()", 10) == 0 ? "{lambda}" : "{unnamed}";
    default:
        return NULL;
    }
}

/* The last child of SCOPE that does not begin behind TARGET: it is TARGET or around it. False when there is none. */
static bool child_around(struct unit *unit, Dwarf_Die *scope, const Dwarf_Die *target, Dwarf_Die *child)
{
    Dwarf_Die next;
    if (scope->addr >= target->addr || dwarf_child(scope, child) != 0)
        return false;
    while (unit->scope_steps < MOST_SCOPE_STEPS && dwarf_siblingof(child, &next) == 0 && next.addr > child->addr &&
           next.addr <= target->addr) {
        unit->scope_steps++;
        *child = next;
    }
    return unit->scope_steps < MOST_SCOPE_STEPS && child->addr <= target->addr;
}

enum { DEEPEST_SCOPE = 4 }; /* functions within functions whose own declarations are elsewhere */

/* Writes NAME with the namespaces, types and functions around DIE's declaration in front (QUALIFIED: LONGEST_NAME
 * bytes). DIEs do not know their parents, so this comes down from the unit. */
static void qualify(struct unit *unit, const Dwarf_Die *die, const char *name, char *qualified, int nesting)
{
    Dwarf_Die declaration = declaration_of(die), scope, child;
    size_t length = 0;
    if (!dwarf_diecu(&declaration, &scope, NULL, NULL))
        scope = declaration;
    while (child_around(unit, &scope, &declaration, &child) && child.addr != declaration.addr) {
        const char *part = scope_name(&child, name);
        if (dwarf_tag(&child) == DW_TAG_subprogram && nesting < DEEPEST_SCOPE) {
            const char *function = string_attribute(&child, DW_AT_name);
            qualify(unit, &child, function ? function : "{unnamed}", qualified, nesting + 1);
            length = strlen(qualified) <= LONGEST_NAME / 2 ? strlen(qualified) : 0;
            length += (size_t)sprintf(qualified + length, "::");
        } else if (part && length + strlen(part) + strlen(name) + 3 < LONGEST_NAME / 2) {
            length += (size_t)sprintf(qualified + length, "%s::", part);
        }
        scope = child;
    }
    if (unit->scope_steps >= MOST_SCOPE_STEPS)
        length = 0; /* half a path would mislead */
    snprintf(qualified + length, LONGEST_NAME - length, "%s", name);
}

/* False when there is no memory. Names that are not in the DIE or its origins stay NULL. */
static bool read_names(struct unit *unit, Dwarf_Die *die, struct name_memo *memo)
{
    const char *name = string_attribute(die, DW_AT_name);
    const char *linkage_name = string_attribute(die, DW_AT_linkage_name);
    if (!linkage_name)
        linkage_name = string_attribute(die, DW_AT_MIPS_linkage_name);
    if (linkage_name) {
        memo->linkage_name = hw_names_intern(unit->names, linkage_name);
        memo->function = hw_names_readable(unit->names, linkage_name);
        if (!memo->linkage_name || !memo->function)
            return false;
        if (memo->function != memo->linkage_name || !name)
            return true; /* demangled: says more than DW_AT_name */
    }
    if (!name)
        return true;
    char qualified[LONGEST_NAME];
    if (!linkage_name && !is_c(unit->language)) {
        qualify(unit, die, name, qualified, 0);
        name = qualified;
    }
    memo->function = hw_names_intern(unit->names, name);
    return memo->function != NULL;
}

/* Whether READABLE (of a symbol) can be the function that DWARF calls NAME: template arguments are written differently.
 */
static bool same_function(const char *readable, const char *name)
{
    const char *found = readable;
    size_t length = strcspn(name, "<(");
    while (length && (found = strchr(found, name[0])) && strncmp(found, name, length) != 0)
        found++;
    return found != NULL;
}

/* gcc gives functions that involve lambdas or local types no linkage name in DWARF. The name of those that were not
 * inlined is that of their symbol; in C both names are the same. ADDRESS: one that the entry covers. */
static bool complete_linkage_name(struct unit *unit, struct entry *entry, uint64_t address)
{
    if (entry->linkage_name)
        return true;
    if (entry->function && is_c(unit->language))
        entry->linkage_name = entry->function;
    if (entry->linkage_name || entry->inlined)
        return true;
    const struct hw_elf_symbols *symbols = hw_module_symbols(unit->module, unit->file);
    const char *symbol = symbols ? hw_elf_symbols_find(symbols, address) : NULL;
    if (!symbol)
        return symbols != NULL;
    const char *readable = hw_names_readable(unit->names, symbol);
    if (!readable)
        return false;
    const char *name = string_attribute(&entry->die, DW_AT_name);
    if (name && !same_function(readable, name))
        return true; /* another function: identical code was folded */
    entry->linkage_name = hw_names_intern(unit->names, symbol);
    entry->function = readable;
    return entry->linkage_name != NULL;
}

static void read_call_site(struct unit *unit, struct entry *entry)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    Dwarf_Files *files = NULL;
    size_t file_count = 0;
    if (dwarf_formudata(dwarf_attr(&entry->die, DW_AT_call_line, &attribute), &value) == 0)
        entry->call_line = (uint32_t)value;
    if (dwarf_formudata(dwarf_attr(&entry->die, DW_AT_call_column, &attribute), &value) == 0)
        entry->call_column = (uint32_t)value;
    if (dwarf_formudata(dwarf_attr(&entry->die, DW_AT_discriminator_of_call, &attribute), &value) == 0)
        entry->call_discriminator = (uint32_t)value;
    if (dwarf_formudata(dwarf_attr(&entry->die, DW_AT_call_file, &attribute), &value) == 0 &&
        dwarf_getsrcfiles(&unit->tree_die, &files, &file_count) == 0 && value < file_count)
        entry->call_file =
            hw_source_path(unit->names, &unit->paths, &unit->line_die, dwarf_filesrc(files, value, NULL, NULL));
}

/* LLVM counts lines of a function from here. An instance of a function has the line of its origin. */
static void read_start_line(struct entry *entry)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    if (dwarf_formudata(dwarf_attr_integrate(&entry->die, DW_AT_decl_line, &attribute), &value) == 0 &&
        value <= UINT32_MAX)
        entry->start_line = (uint32_t)value;
}

/* Whether the author has marked a function as artificial: one of C or C-like code, local to its file. Members that a
 * C++ compiler makes by itself, and the bodies of lambdas, carry the same mark: they are external, say so at their
 * declaration, have an object, or, with lines only (-g1), no more than their name. */
static bool is_wrapper(Dwarf_Die *function)
{
    const char *name = dwarf_diename(function);
    return dwarf_hasattr(function, DW_AT_artificial) && !dwarf_hasattr(function, DW_AT_external) &&
           !dwarf_hasattr(function, DW_AT_specification) && !dwarf_hasattr(function, DW_AT_object_pointer) && name &&
           strncmp(name, "operator", 8) != 0;
}

/* NULL when there is no memory: then nothing more is asked of the unit. */
static const struct name_memo *memo_of(struct unit *unit, Dwarf_Die *die)
{
    const struct hw_key key = {(uintptr_t)die->addr, 0};
    bool added;
    if (!HW_GROW(unit->memo, unit->memo_capacity, unit->memo_count + 1))
        return NULL;
    const uint32_t number = hw_index_intern(&unit->memo_index, key, (uint32_t)unit->memo_count, &added);
    if (number == HW_INDEX_NONE)
        return NULL;
    if (added) {
        unit->memo[number] = (struct name_memo){0};
        unit->memo_count++;
        if (!read_names(unit, die, &unit->memo[number]))
            return NULL;
    }
    return &unit->memo[number];
}

/* ADDRESS: one that the entry covers. */
static bool resolve_entry(struct unit *unit, struct entry *entry, uint64_t address)
{
    if (entry->resolved)
        return true;
    Dwarf_Attribute attribute;
    Dwarf_Die origin = entry->die;
    if (entry->inlined)
        dwarf_formref_die(dwarf_attr(&entry->die, DW_AT_abstract_origin, &attribute), &origin);
    const struct name_memo *memo = memo_of(unit, &origin);
    if (!memo)
        return false;
    entry->function = memo->function;
    entry->linkage_name = memo->linkage_name;
    if (entry->inlined)
        read_call_site(unit, entry);
    read_start_line(entry);
    entry->transparent = entry->inlined && is_wrapper(&origin);
    entry->resolved = true;
    return complete_linkage_name(unit, entry, address);
}

/* ---- chains ---- */

static struct hw_frame at_line(struct hw_source_line line)
{
    return (struct hw_frame){
        .file = line.file, .line = line.line, .column = line.column, .discriminator = line.discriminator};
}

/* Fills FRAME, innermost first; returns the number of frames, 0 without memory. */
static uint32_t build_chain(struct unit *unit, size_t index, struct hw_frame frame[LONGEST_CHAIN])
{
    uint64_t address = unit->address[index];
    struct hw_source_line line = {0};
    if (unit->line_die.addr)
        line = hw_source_line_find(unit->names, &unit->paths, &unit->line_die, address - unit->file->bias);
    uint32_t count = 0;
    for (int32_t i = unit->deepest[index]; i != NOTHING && count < LONGEST_CHAIN; i = unit->entry[i].parent) {
        struct entry *entry = &unit->entry[i];
        if (!resolve_entry(unit, entry, address))
            return 0;
        if (!entry->transparent) {
            frame[count] = at_line(line);
            frame[count].function = entry->function;
            frame[count].linkage_name = entry->linkage_name;
            frame[count].start_line = entry->start_line;
            frame[count++].inlined = entry->parent != NOTHING;
        }
        line =
            (struct hw_source_line){entry->call_file, entry->call_line, entry->call_column, entry->call_discriminator};
    }
    if (count > 0 && frame[count - 1].function)
        return count;
    /* No function, or one without a name: assembler code, or damage. */
    struct hw_frame symbol;
    if (!hw_symbol_frame(unit->module, unit->file, unit->names, address, &symbol))
        return 0;
    if (count == 0)
        frame[count++] = at_line(line);
    frame[count - 1].function = symbol.function;
    frame[count - 1].linkage_name = symbol.linkage_name;
    return count;
}

/* The code to which a signal handler returns: libc gives it no name, but marks its unwind information. */
static bool is_signal_trampoline(const struct hw_debug_file *file, uint64_t address)
{
    Dwarf_Addr bias = 0;
    Dwarf_CFI *table = dwfl_module_eh_cfi(file->module, &bias);
    Dwarf_Frame *rules = NULL;
    bool marked = false;
    if (table && dwarf_cfi_addrframe(table, address - bias, &rules) == 0)
        dwarf_frame_info(rules, NULL, NULL, &marked);
    free(rules);
    return marked;
}

bool hw_symbol_frame(struct hw_module *module, const struct hw_debug_file *file, struct hw_names *names,
                     uint64_t address, struct hw_frame *frame)
{
    *frame = (struct hw_frame){0};
    const struct hw_elf_symbols *symbols = hw_module_symbols(module, file);
    const char *name = symbols ? hw_elf_symbols_find(symbols, address) : NULL;
    if (symbols && (!name || strcmp(name, "__restore_rt") == 0) && is_signal_trampoline(file, address)) {
        frame->function = hw_names_intern(names, HW_SIGNAL_FRAME);
        return frame->function != NULL;
    }
    if (!name)
        return symbols != NULL;
    frame->linkage_name = hw_names_intern(names, name);
    frame->function = hw_names_readable(names, name);
    return frame->linkage_name && frame->function;
}

/* Finds the unit's DIE and, for split DWARF, the one in the .dwo file: then returns true. The
 * DIEs of a unit that cannot be read have no address. */
static bool open_unit(struct unit *unit, uint64_t die_offset)
{
    uint8_t type = 0;
    if (!dwarf_offdie(unit->file->dwarf, die_offset, &unit->line_die))
        unit->line_die = (Dwarf_Die){0};
    unit->tree_die = unit->line_die;
    if (!unit->line_die.addr || dwarf_cu_info(unit->line_die.cu, NULL, &type, NULL, NULL, NULL, NULL, NULL) != 0 ||
        type != DW_UT_skeleton)
        return false;
    Dwarf_Die split = {0};
    dwarf_cu_info(unit->line_die.cu, NULL, NULL, NULL, &split, NULL, NULL, NULL);
    if (split.addr)
        unit->tree_die = split;
    else
        hw_module_note_problem(unit->module,
                               "split debug information (.dwo) is missing, inlined functions are not shown");
    return split.addr != NULL;
}

static bool resolve_all(struct unit *unit, hw_chain_sink *sink, void *closure)
{
    struct hw_frame frame[LONGEST_CHAIN];
    for (size_t i = 0; i < unit->address_count; i++) {
        uint32_t count = build_chain(unit, i, frame);
        if (count == 0 || !sink(closure, i, frame, count))
            return false;
    }
    return true;
}

/* Both walks. */
static void walk(struct unit *unit, uint64_t entries_size)
{
    uint64_t bound = entries_size ? entries_size : MOST_ENTRIES;
    for (size_t i = 0; i < unit->address_count; i++) {
        unit->deepest[i] = NOTHING;
        unit->wanted[unit->wanted_count++] = (uint32_t)i;
    }
    if (!unit->tree_die.addr)
        return;
    unit->language = dwarf_srclang(&unit->tree_die);
    unit->entries_left = bound;
    walk_children(unit, &unit->tree_die, NOTHING, 0);

    unit->wanted_count = 0;
    for (size_t i = 0; i < unit->address_count; i++) {
        if (unit->deepest[i] == NOTHING)
            unit->wanted[unit->wanted_count++] = (uint32_t)i;
    }
    unit->entries_left = bound;
    unit->enter_all = true;
    if (unit->wanted_count)
        walk_children(unit, &unit->tree_die, NOTHING, 0);
}

bool hw_unit_resolve(struct hw_module *module, const struct hw_debug_file *file, uint32_t index, struct hw_names *names,
                     const uint64_t *address, size_t count, hw_chain_sink *sink, void *closure)
{
    const struct hw_unit_entry *known = &module->unit[index];
    struct unit unit = {.module = module, .file = file, .names = names, .address = address, .address_count = count};
    unit.deepest = malloc((count + 1) * sizeof *unit.deepest);
    unit.wanted = malloc((count + 1) * sizeof *unit.wanted);
    bool ok = unit.deepest && unit.wanted;
    if (ok) {
        bool split = open_unit(&unit, known->die_offset);
        walk(&unit, split ? 0 : known->entries_size);
        ok = !unit.no_memory && resolve_all(&unit, sink, closure);
    }
    free(unit.deepest);
    free(unit.wanted);
    free(unit.entry);
    free(unit.memo);
    hw_index_free(&unit.memo_index);
    return ok;
}

bool hw_unit_scopes(struct hw_module *module, const struct hw_debug_file *file, uint32_t index, struct hw_names *names,
                    const uint64_t *address, size_t count, hw_scope_sink *sink, void *closure)
{
    const struct hw_unit_entry *known = &module->unit[index];
    struct unit unit = {.module = module, .file = file, .names = names, .address = address, .address_count = count};
    Dwarf_Die scope[LONGEST_CHAIN];
    unit.deepest = malloc((count + 1) * sizeof *unit.deepest);
    unit.wanted = malloc((count + 1) * sizeof *unit.wanted);
    bool ok = unit.deepest && unit.wanted;
    if (ok) {
        const bool split = open_unit(&unit, known->die_offset);
        walk(&unit, split ? 0 : known->entries_size);
        ok = !unit.no_memory;
    }
    for (size_t i = 0; i < count && ok; i++) {
        uint32_t scopes = 0;
        for (int32_t k = unit.deepest[i]; k != NOTHING && scopes < LONGEST_CHAIN; k = unit.entry[k].parent)
            scope[scopes++] = unit.entry[k].die;
        ok = sink(closure, i, &unit.tree_die, scope, scopes);
    }
    free(unit.deepest);
    free(unit.wanted);
    free(unit.entry);
    return ok;
}
