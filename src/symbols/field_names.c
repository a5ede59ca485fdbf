/* field_names.c - what lies at an address in a variable, as a programmer writes it: fields of structs, elements of
 * arrays, bases of classes, from the types of variables; and what a pointer there is declared to point to. Variables
 * that functions keep are looked for last. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>

#include "symbols/dwarf_types.h"
#include "symbols/symbols_internal.h"

#define DEPTH_MOST 32
#define PATH_BYTES 512

/* Bytes of .debug_info that are read: of a very large program only the first units, so that a report does not take
 * much longer for it. */
#define ALL_MOST       (512ul << 20)
#define FUNCTIONS_MOST (128ul << 20)

struct search {
    const struct hw_debug_file *file;
    struct hw_names *names;
    struct hw_field_query *query;
    size_t count, open; /* queries; those without an answer */
    bool in_functions, failed;
};

/* ---- fields ---- */

enum rank { NOT_FOUND, SOMETHING, POINTER };

/* POINTED: where a POINTER is found, its type. */
static enum rank describe(Dwarf_Die *type, uint64_t offset, char *path, Dwarf_Die *pointed, int depth);

static bool append(char *path, const char *text)
{
    return hw_append(path, PATH_BYTES, text);
}

/* The field that has OFFSET; of those of a union the one that is a pointer there. */
static enum rank describe_fields(Dwarf_Die *type, uint64_t offset, char *path, Dwarf_Die *pointed, int depth)
{
    Dwarf_Die field, of;
    enum rank best = NOT_FOUND;
    char found[PATH_BYTES];
    const size_t used = strlen(path);
    if (dwarf_child(type, &field) != 0)
        return NOT_FOUND;
    do {
        const int tag = dwarf_tag(&field);
        uint64_t at;
        Dwarf_Word size;
        if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) || !hw_member_offset(&field, &at) || !hw_die_type(&field, &of) ||
            dwarf_aggregate_size(&of, &size) != 0 || offset < at || offset - at >= size)
            continue;
        const char *name = tag == DW_TAG_member ? dwarf_diename(&field) : NULL;
        path[used] = '\0';
        if (name && (!append(path, ".") || !append(path, name)))
            continue;
        const enum rank rank = describe(&of, offset - at, path, pointed, depth + 1);
        if (rank > best) {
            best = rank;
            memcpy(found, path, strlen(path) + 1);
        }
    } while (best != POINTER && dwarf_siblingof(&field, &field) == 0);
    memcpy(path + used, best ? found + used : "", best ? strlen(found + used) + 1 : 1);
    return best;
}

/* Of arrays of several dimensions the first one is divided by the elements of the others. */
static enum rank describe_element(Dwarf_Die *type, uint64_t offset, char *path, Dwarf_Die *pointed, int depth)
{
    Dwarf_Die of, range;
    Dwarf_Word size, whole;
    uint64_t dimension[8], count = 0;
    if (!hw_die_type(type, &of) || dwarf_aggregate_size(&of, &size) != 0 || !size ||
        dwarf_aggregate_size(type, &whole) != 0 || offset >= whole || dwarf_child(type, &range) != 0)
        return NOT_FOUND;
    do {
        Dwarf_Attribute attribute;
        Dwarf_Word value = 0;
        if (dwarf_tag(&range) != DW_TAG_subrange_type)
            continue;
        if (count == sizeof dimension / sizeof *dimension)
            return NOT_FOUND;
        if (dwarf_attr(&range, DW_AT_count, &attribute) && dwarf_formudata(&attribute, &value) == 0)
            dimension[count++] = value;
        else if (dwarf_attr(&range, DW_AT_upper_bound, &attribute) && dwarf_formudata(&attribute, &value) == 0)
            dimension[count++] = value + 1;
        else
            return NOT_FOUND;
    } while (dwarf_siblingof(&range, &range) == 0);
    uint64_t element = offset / size, below = 1;
    for (uint64_t i = 1; i < count; i++)
        if (!dimension[i] || __builtin_mul_overflow(below, dimension[i], &below))
            return NOT_FOUND;
    for (uint64_t i = 0; i < count; i++) {
        char index[32];
        snprintf(index, sizeof index, "[%llu]", (unsigned long long)(element / below));
        if (!append(path, index))
            return NOT_FOUND;
        element %= below;
        if (i + 1 < count)
            below /= dimension[i + 1];
    }
    return describe(&of, offset % size, path, pointed, depth + 1);
}

static enum rank describe(Dwarf_Die *type, uint64_t offset, char *path, Dwarf_Die *pointed, int depth)
{
    if (depth == DEPTH_MOST)
        return NOT_FOUND;
    switch (dwarf_tag(type)) {
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
        return describe_fields(type, offset, path, pointed, depth);
    case DW_TAG_array_type:
        return describe_element(type, offset, path, pointed, depth);
    default:
        if (offset)
            return NOT_FOUND;
        if (!hw_is_pointer(dwarf_tag(type)))
            return SOMETHING;
        *pointed = *type;
        return POINTER;
    }
}

/* ---- names of types ---- */

/* What POINTER is declared to point to; NULL: nothing says it. */
static const char *name_of_target(struct search *search, Dwarf_Die *pointer)
{
    Dwarf_Die type;
    Dwarf_Attribute attribute;
    char text[HW_TYPE_BYTES] = "";
    if (!dwarf_attr(pointer, DW_AT_type, &attribute) || !dwarf_formref_die(&attribute, &type) ||
        !hw_append_type(text, &type, false))
        return NULL;
    const char *name = hw_names_intern(search->names, text);
    search->failed |= !name;
    return name;
}

/* ---- variables ---- */

/* Where a variable lies: in the module, or in its thread-local data. */
static bool address_of(const struct search *search, Dwarf_Die *die, uint64_t *address, bool *local)
{
    Dwarf_Attribute attribute, value;
    Dwarf_Op *op;
    size_t ops;
    Dwarf_Addr found = 0;
    Dwarf_Word word = 0;
    if (!dwarf_attr(die, DW_AT_location, &attribute) || dwarf_getlocation(&attribute, &op, &ops) != 0 || !ops ||
        ops > 2)
        return false;
    *local = ops == 2;
    if (*local && op[1].atom != DW_OP_form_tls_address && op[1].atom != DW_OP_GNU_push_tls_address)
        return false;
    if (op->atom == DW_OP_addr || (*local && (op->atom == DW_OP_const8u || op->atom == DW_OP_const4u)))
        found = op->number;
    else if (dwarf_getlocation_attr(&attribute, op, &value) == 0 && dwarf_formaddr(&value, &found) == 0)
        ;
    else if (*local && dwarf_getlocation_attr(&attribute, op, &value) == 0 && dwarf_formudata(&value, &word) == 0)
        found = word;
    else
        return false;
    *address = *local ? found : found + search->file->bias;
    return true;
}

/* Whether all of a variable are pointers of one type, which is POINTER. */
static bool all_pointers(const Dwarf_Die *type, Dwarf_Die *pointer)
{
    *pointer = *type;
    for (int i = 0; i < DEPTH_MOST && dwarf_tag(pointer) == DW_TAG_array_type; i++) {
        Dwarf_Die of;
        if (!hw_die_type(pointer, &of))
            return false;
        *pointer = of;
    }
    return hw_is_pointer(dwarf_tag(pointer));
}

static void answer(struct search *search, struct hw_field_query *query, Dwarf_Die *die, Dwarf_Die *type,
                   uint64_t offset, const char *function)
{
    char path[PATH_BYTES] = "", variable[PATH_BYTES];
    const char *name = dwarf_diename(die);
    Dwarf_Die pointer;
    if (!name)
        return;
    const enum rank rank =
        query->whole ? (all_pointers(type, &pointer) ? POINTER : SOMETHING) : describe(type, offset, path, &pointer, 0);
    if (rank == NOT_FOUND)
        return;
    if (rank == POINTER)
        query->type = name_of_target(search, &pointer);
    snprintf(variable, sizeof variable, "%s%s%s", function ? function : "", function ? "()::" : "", name);
    query->variable = hw_names_intern(search->names, variable);
    query->path = hw_names_intern(search->names, path);
    search->failed |= !query->variable || !query->path;
    search->open--;
}

static void look_at_variable(struct search *search, Dwarf_Die *die, const char *function)
{
    uint64_t address;
    bool local;
    Dwarf_Die type;
    Dwarf_Word size;
    if (!address_of(search, die, &address, &local) || !hw_die_type(die, &type) || dwarf_aggregate_size(&type, &size) != 0)
        return;
    for (size_t i = 0; i < search->count; i++) {
        struct hw_field_query *query = &search->query[i];
        if (!query->path && query->local == local && query->address >= address && query->address - address < size)
            answer(search, query, die, &type, query->address - address, function);
    }
}

static void look_below(struct search *search, Dwarf_Die *parent, const char *function, int depth)
{
    Dwarf_Die die;
    if (depth == DEPTH_MOST || dwarf_child(parent, &die) != 0)
        return;
    do {
        switch (dwarf_tag(&die)) {
        case DW_TAG_variable:
            if (search->in_functions == (function != NULL))
                look_at_variable(search, &die, function);
            break;
        case DW_TAG_namespace:
            look_below(search, &die, function, depth + 1);
            break;
        case DW_TAG_subprogram:
            if (search->in_functions)
                look_below(search, &die, dwarf_diename(&die), depth + 1);
            break;
        case DW_TAG_lexical_block:
            look_below(search, &die, function, depth + 1);
            break;
        default:
            break;
        }
    } while (search->open && !search->failed && dwarf_siblingof(&die, &die) == 0);
}

bool hw_fields_find(const struct hw_debug_file *file, struct hw_names *names, struct hw_field_query *query,
                    size_t count)
{
    struct search search = {.file = file, .names = names, .query = query, .count = count, .open = count};
    for (int round = 0; file->dwarf && round < 2; round++) {
        Dwarf_CU *unit = NULL;
        Dwarf_Die die;
        search.in_functions = round;
        while (search.open && !search.failed &&
               dwarf_get_units(file->dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0 &&
               (uint64_t)dwarf_dieoffset(&die) < (round ? FUNCTIONS_MOST : ALL_MOST))
            look_below(&search, &die, NULL, 0);
    }
    return !search.failed;
}
