/* dwarf_types.c - types in debug information: what lies behind typedefs, where members are, what a type is called. */
#include <string.h>

#include <dwarf.h>

#include "symbols/dwarf_types.h"

#define DEPTH_MOST 32

/* ---- types ---- */

bool hw_die_type(Dwarf_Die *die, Dwarf_Die *type)
{
    Dwarf_Attribute attribute;
    if (!dwarf_attr_integrate(die, DW_AT_type, &attribute) || !dwarf_formref_die(&attribute, type))
        return false;
    for (int i = 0; i < DEPTH_MOST; i++)
        switch (dwarf_tag(type)) {
        case DW_TAG_typedef:
        case DW_TAG_const_type:
        case DW_TAG_volatile_type:
        case DW_TAG_restrict_type:
        case DW_TAG_atomic_type:
            if (!dwarf_attr(type, DW_AT_type, &attribute) || !dwarf_formref_die(&attribute, type))
                return false;
            break;
        default:
            return true;
        }
    return false;
}

bool hw_is_pointer(int tag)
{
    return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type;
}

bool hw_member_offset(Dwarf_Die *field, uint64_t *offset)
{
    Dwarf_Attribute attribute;
    Dwarf_Word word = 0;
    *offset = 0;
    if (dwarf_hasattr(field, DW_AT_data_bit_offset) || dwarf_hasattr(field, DW_AT_external) ||
        dwarf_hasattr(field, DW_AT_bit_size))
        return false;
    if (!dwarf_attr(field, DW_AT_data_member_location, &attribute))
        return dwarf_tag(field) == DW_TAG_member; /* of a union */
    if (dwarf_formudata(&attribute, &word) != 0) {
        Dwarf_Op *op;
        size_t ops;
        if (dwarf_getlocation(&attribute, &op, &ops) != 0 || ops != 1 || op->atom != DW_OP_plus_uconst)
            return false;
        word = op->number;
    }
    *offset = word;
    return true;
}

bool hw_append(char *text, size_t size, const char *piece)
{
    const size_t used = strlen(text), more = strlen(piece);
    if (used + more >= size)
        return false;
    memcpy(text + used, piece, more + 1);
    return true;
}

/* ---- names of types ---- */

const char *hw_number_name(const char *name)
{
    static const char *const numbers[][2] = {{"long unsigned int", "unsigned long"},
                                             {"long int", "long"},
                                             {"long long unsigned int", "unsigned long long"},
                                             {"long long int", "long long"},
                                             {"short unsigned int", "unsigned short"},
                                             {"short int", "short"}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(name, numbers[i][0]))
            return numbers[i][1];
    return name;
}

enum language { OTHER_LANGUAGE, C, CPP, RUST };

/* Later than the oldest dwarf.h. */
enum { LANG_C17 = 0x2c, LANG_C23 = 0x3e, LANG_CPP_17 = 0x2a, LANG_CPP_20 = 0x2b, LANG_CPP_23 = 0x3a };

static enum language language_of(Dwarf_Die *unit)
{
    switch (dwarf_srclang(unit)) {
    case DW_LANG_C89:
    case DW_LANG_C:
    case DW_LANG_C99:
    case DW_LANG_C11:
    case LANG_C17:
    case LANG_C23:
        return C;
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case LANG_CPP_17:
    case LANG_CPP_20:
    case LANG_CPP_23:
        return CPP;
    case DW_LANG_Rust:
        return RUST;
    default:
        return OTHER_LANGUAGE;
    }
}

bool hw_is_c(Dwarf_Die *unit)
{
    return language_of(unit) == C;
}

/* Appends "std::", "Server::" of what the entry at OFFSET below PARENT lies in. */
static bool append_scopes(char *text, Dwarf_Die *parent, Dwarf_Off offset)
{
    Dwarf_Die die, next;
    for (int depth = 0; depth < DEPTH_MOST; depth++) {
        if (dwarf_child(parent, &die) != 0)
            return false;
        while (dwarf_siblingof(&die, &next) == 0 && dwarf_dieoffset(&next) <= offset)
            die = next;
        if (dwarf_dieoffset(&die) == offset)
            return true;
        const char *name = dwarf_tag(&die) == DW_TAG_subprogram ? NULL : dwarf_diename(&die);
        if (name && (!hw_append(text, HW_TYPE_BYTES, name) || !hw_append(text, HW_TYPE_BYTES, "::")))
            return false;
        *parent = die;
    }
    return false;
}

static bool append_type(char *text, Dwarf_Die *type, bool rust, int depth)
{
    Dwarf_Die of, unit;
    Dwarf_Attribute attribute;
    const int tag = dwarf_tag(type);
    const bool further = dwarf_attr(type, DW_AT_type, &attribute) && dwarf_formref_die(&attribute, &of);
    if (depth == DEPTH_MOST || !dwarf_diecu(type, &unit, NULL, NULL))
        return false;
    enum language language = language_of(&unit);
    if (language == RUST && !rust) /* pointers of its vectors are to bytes, whatever lies there */
        language = OTHER_LANGUAGE;
    const char *name = dwarf_diename(type);
    switch (tag) {
    case DW_TAG_const_type:
    case DW_TAG_volatile_type:
    case DW_TAG_restrict_type:
    case DW_TAG_atomic_type:
        return further && append_type(text, &of, rust, depth + 1);
    case DW_TAG_pointer_type:
        if (language == OTHER_LANGUAGE ||
            !(further ? append_type(text, &of, rust, depth + 1) : hw_append(text, HW_TYPE_BYTES, "void")))
            return false;
        return hw_append(text, HW_TYPE_BYTES, text[strlen(text) - 1] == '*' ? "*" : " *");
    case DW_TAG_typedef: /* of void or a function: as without it */
        if (!hw_die_type(type, &of) || dwarf_tag(&of) == DW_TAG_subroutine_type)
            return false;
        break;
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
    case DW_TAG_base_type:
        break;
    default:
        return false;
    }
    if (!name || language == OTHER_LANGUAGE)
        return false;
    if (language == CPP || language == RUST)
        return append_scopes(text, &unit, dwarf_dieoffset(type)) && hw_append(text, HW_TYPE_BYTES, name);
    const char *kind = tag == DW_TAG_structure_type     ? "struct "
                       : tag == DW_TAG_union_type       ? "union "
                       : tag == DW_TAG_enumeration_type ? "enum "
                                                        : "";
    return hw_append(text, HW_TYPE_BYTES, kind) && hw_append(text, HW_TYPE_BYTES, name);
}

bool hw_append_type(char *text, Dwarf_Die *type, bool rust)
{
    return append_type(text, type, rust, 0);
}
