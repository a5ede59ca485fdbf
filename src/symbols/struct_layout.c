/* struct_layout.c - the members of a struct, taken apart: from debug information to fields with offsets and sizes.
 *
 * The fields are those that heapwise cc --fields counts (pass/field_types.cpp), with one difference: what lies at the
 * same bytes (members of a union, variants of an enum of Rust, bit-fields of one unit) is one field, as an address
 * does not say which of them is meant. */
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>

#include "base/growing.h"
#include "base/order.h"
#include "profile/profile.h"
#include "symbols/dwarf_types.h"
#include "symbols/symbols_internal.h"

enum { DEPTH_MOST = 24, FIELDS_MOST = 4096, ENTRIES_MOST = 100000, NAMES_SHOWN = 3 };

#define LARGEST ((uint64_t)1 << 40) /* bytes of a struct: no sum overflows */

struct taking {
    struct hw_names *names;
    struct hw_profile_struct *to;
    struct hw_profile_field *field;
    size_t count, room;
    size_t entries_left;
    bool cplusplus, no_memory;
};

/* What fields are in: the member of the struct itself, the name in front of theirs. */
struct around {
    const struct hw_profile_field *member; /* NULL: they are members themselves */
    const char *prefix;
    uint64_t bits; /* from the begin of the struct */
    uint32_t flags;
    int depth;
};

static const char *intern(struct taking *taking, const char *text)
{
    const char *kept = hw_names_intern(taking->names, text);
    taking->no_memory |= !kept;
    return kept ? kept : "";
}

/* ---- declarations: "const char *(*names)[4]" ---- */

static bool put(char *text, const char *a, const char *b, const char *c)
{
    char joined[HW_TYPE_BYTES] = "";
    if (!hw_append(joined, sizeof joined, a) || !hw_append(joined, sizeof joined, b) ||
        !hw_append(joined, sizeof joined, c))
        return false;
    memcpy(text, joined, sizeof joined);
    return true;
}

/* TYPE in front of what TEXT has, which may be empty. */
static bool put_name(char *text, const char *name)
{
    const bool close = !*text || *text == '[' || (text[0] == '(' && text[1] == ')');
    return put(text, name, close ? "" : " ", text);
}

static bool add_dimensions(char *text, Dwarf_Die *array)
{
    Dwarf_Die range;
    if (dwarf_child(array, &range) != 0)
        return false;
    do {
        Dwarf_Attribute attribute;
        Dwarf_Word count = 0;
        Dwarf_Sword upper;
        char dimension[32] = "[]";
        if (dwarf_tag(&range) != DW_TAG_subrange_type)
            continue;
        if (dwarf_attr(&range, DW_AT_count, &attribute) && dwarf_formudata(&attribute, &count) == 0)
            snprintf(dimension, sizeof dimension, "[%llu]", (unsigned long long)count);
        else if (dwarf_attr(&range, DW_AT_upper_bound, &attribute) && dwarf_formsdata(&attribute, &upper) == 0)
            snprintf(dimension, sizeof dimension, "[%lld]", (long long)upper + 1);
        if (!hw_append(text, HW_TYPE_BYTES, dimension))
            return false;
    } while (dwarf_siblingof(&range, &range) == 0);
    return true;
}

static bool declare(char *text, Dwarf_Die *type, int depth);

static bool declare_behind(char *text, Dwarf_Die *type, int depth)
{
    Dwarf_Attribute attribute;
    Dwarf_Die of;
    if (!dwarf_attr(type, DW_AT_type, &attribute))
        return put_name(text, "void");
    return dwarf_formref_die(&attribute, &of) && declare(text, &of, depth + 1);
}

static bool declare_pointer(char *text, Dwarf_Die *type, const char *sign, int depth)
{
    Dwarf_Attribute attribute;
    Dwarf_Die of;
    const bool wraps = dwarf_attr(type, DW_AT_type, &attribute) && dwarf_formref_die(&attribute, &of) &&
                       (dwarf_tag(&of) == DW_TAG_array_type || dwarf_tag(&of) == DW_TAG_subroutine_type);
    return put(text, wraps ? "(" : "", sign, text) && (!wraps || hw_append(text, HW_TYPE_BYTES, ")")) &&
           declare_behind(text, type, depth);
}

/* "char *const name", but "const char name". */
static bool declare_qualified(char *text, Dwarf_Die *type, const char *word, int depth)
{
    Dwarf_Attribute attribute;
    Dwarf_Die of;
    if (dwarf_attr(type, DW_AT_type, &attribute) && dwarf_formref_die(&attribute, &of) && hw_is_pointer(dwarf_tag(&of)))
        return put_name(text, word) && declare(text, &of, depth + 1);
    return declare_behind(text, type, depth) && put(text, word, " ", text);
}

static bool declare_function(char *text, Dwarf_Die *type, int depth)
{
    Dwarf_Die child;
    bool any = false;
    if (!hw_append(text, HW_TYPE_BYTES, "("))
        return false;
    if (dwarf_child(type, &child) == 0)
        do {
            char one[HW_TYPE_BYTES] = "";
            if (dwarf_tag(&child) == DW_TAG_unspecified_parameters
                    ? !hw_append(one, sizeof one, "...")
                    : dwarf_tag(&child) != DW_TAG_formal_parameter || !declare_behind(one, &child, depth))
                return false;
            if ((any && !hw_append(text, HW_TYPE_BYTES, ", ")) || !hw_append(text, HW_TYPE_BYTES, one))
                return false;
            any = true;
        } while (dwarf_siblingof(&child, &child) == 0);
    return hw_append(text, HW_TYPE_BYTES, any ? ")" : "void)") && declare_behind(text, type, depth);
}

/* Puts TYPE around what TEXT names, as C does; false: it cannot be said, or is too long. */
static bool declare(char *text, Dwarf_Die *type, int depth)
{
    char name[HW_TYPE_BYTES] = "";
    const int tag = dwarf_tag(type);
    if (depth == DEPTH_MOST)
        return false;
    switch (tag) {
    case DW_TAG_const_type:
        return declare_qualified(text, type, "const", depth);
    case DW_TAG_volatile_type:
        return declare_qualified(text, type, "volatile", depth);
    case DW_TAG_restrict_type:
        return declare_qualified(text, type, "restrict", depth);
    case DW_TAG_pointer_type:
        return declare_pointer(text, type, "*", depth);
    case DW_TAG_reference_type:
        return declare_pointer(text, type, "&", depth);
    case DW_TAG_rvalue_reference_type:
        return declare_pointer(text, type, "&&", depth);
    case DW_TAG_array_type:
        return add_dimensions(text, type) && declare_behind(text, type, depth);
    case DW_TAG_subroutine_type:
        return declare_function(text, type, depth);
    case DW_TAG_typedef:
        return dwarf_diename(type) && put_name(text, dwarf_diename(type));
    case DW_TAG_base_type:
        return dwarf_diename(type) && put_name(text, hw_number_name(dwarf_diename(type)));
    default:
        return hw_append_type(name, type, true) && put_name(text, name);
    }
}

static const char *declaration_of(struct taking *taking, Dwarf_Die *type, const char *name, uint32_t bits)
{
    char text[HW_TYPE_BYTES] = "", width[24];
    if (!hw_append(text, sizeof text, name) || !declare(text, type, 0))
        return "";
    snprintf(width, sizeof width, " : %u", bits);
    if (bits && !hw_append(text, sizeof text, width))
        return "";
    return intern(taking, text);
}

/* ---- sizes ---- */

static bool is_compound(int tag)
{
    return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

static uint64_t word_of(Dwarf_Die *die, unsigned attribute_name, uint64_t otherwise)
{
    Dwarf_Attribute attribute;
    Dwarf_Word word;
    return dwarf_attr(die, attribute_name, &attribute) && dwarf_formudata(&attribute, &word) == 0 ? word : otherwise;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Of a type without typedefs; the System V ABI for x86-64. */
static uint32_t alignment_of(struct taking *taking, Dwarf_Die *type, int depth)
{
    const int tag = dwarf_tag(type);
    uint64_t alignment = word_of(type, DW_AT_alignment, 1), most = 1u << 20;
    Dwarf_Word size = 0;
    Dwarf_Die child, of;
    if (depth == DEPTH_MOST || !taking->entries_left)
        return 1;
    if (hw_is_pointer(tag) || tag == DW_TAG_ptr_to_member_type)
        return 8;
    if (tag == DW_TAG_array_type)
        return hw_die_type(type, &of) ? (uint32_t)greater(alignment, alignment_of(taking, &of, depth + 1)) : 1;
    if (dwarf_aggregate_size(type, &size) != 0)
        size = 0;
    if (tag == DW_TAG_base_type || tag == DW_TAG_enumeration_type) {
        if (word_of(type, DW_AT_encoding, 0) == DW_ATE_complex_float)
            size /= 2;
        if (size && !(size & (size - 1)))
            alignment = greater(alignment, size < 16 ? size : 16);
    } else if (is_compound(tag) && dwarf_child(type, &child) == 0) {
        do {
            uint64_t at = 0;
            const int part = dwarf_tag(&child);
            taking->entries_left -= taking->entries_left != 0;
            if ((part != DW_TAG_member && part != DW_TAG_inheritance) || dwarf_hasattr(&child, DW_AT_external) ||
                !hw_die_type(&child, &of))
                continue;
            const uint64_t here =
                greater(word_of(&child, DW_AT_alignment, 1), alignment_of(taking, &of, depth + 1));
            if (!hw_member_offset(&child, &at) || at % here == 0)
                alignment = greater(alignment, here);
        } while (dwarf_siblingof(&child, &child) == 0);
        if (size % alignment)
            alignment = 1;
    }
    return (uint32_t)(alignment && alignment < most ? alignment : 1);
}

/* ---- fields ---- */

/* Where a member begins, in bits; false: nowhere that is constant. */
static bool find_bits(Dwarf_Die *member, uint64_t storage, uint64_t *bits, uint64_t *width)
{
    Dwarf_Attribute attribute;
    Dwarf_Word from_end = 0, location = 0;
    uint64_t at = 0;
    *width = word_of(member, DW_AT_bit_size, 0);
    if (!*width) {
        *bits = 0;
        if (!hw_member_offset(member, &at) || at > UINT64_MAX / 16)
            return false;
        *bits = at * 8;
        return true;
    }
    if (*width > 128)
        return false;
    if (dwarf_attr(member, DW_AT_data_bit_offset, &attribute)) {
        *bits = word_of(member, DW_AT_data_bit_offset, 0);
        return *bits <= UINT64_MAX / 16;
    }
    /* Until DWARF 4: from the most significant bit of the storage on. */
    if (dwarf_attr(member, DW_AT_data_member_location, &attribute) && dwarf_formudata(&attribute, &location) != 0)
        return false;
    storage = word_of(member, DW_AT_byte_size, storage);
    from_end = word_of(member, DW_AT_bit_offset, 0);
    if (!storage || storage > 16 || from_end + *width > storage * 8 || location > UINT64_MAX / 16)
        return false;
    *bits = location * 8 + storage * 8 - from_end - *width;
    return true;
}

static void take_parts(struct taking *taking, Dwarf_Die *type, const struct around *around);

static void add_field(struct taking *taking, const struct hw_profile_field *field)
{
    if (taking->count == FIELDS_MOST)
        return;
    if (HW_GROW(taking->field, taking->room, taking->count + 1))
        taking->field[taking->count++] = *field;
    else
        taking->no_memory = true;
}

static bool has_elements(Dwarf_Die *array)
{
    Dwarf_Die range;
    if (dwarf_child(array, &range) != 0)
        return false;
    do {
        Dwarf_Attribute attribute;
        Dwarf_Sword upper = -1;
        if (dwarf_tag(&range) != DW_TAG_subrange_type)
            continue;
        if (dwarf_attr(&range, DW_AT_upper_bound, &attribute) && dwarf_formsdata(&attribute, &upper) != 0)
            return false;
        if (upper < 0 && !word_of(&range, DW_AT_count, 0))
            return false;
    } while (dwarf_siblingof(&range, &range) == 0);
    return true;
}

static void take_member(struct taking *taking, Dwarf_Die *member, const struct around *around)
{
    Dwarf_Die type, declared;
    Dwarf_Attribute attribute;
    Dwarf_Word size = 0;
    uint64_t bits, width;
    const bool base = dwarf_tag(member) == DW_TAG_inheritance;
    const char *name = base ? "" : dwarf_diename(member) ? dwarf_diename(member) : "";
    char text[HW_TYPE_BYTES] = "";
    if (dwarf_hasattr(member, DW_AT_external) || !hw_die_type(member, &type) ||
        !dwarf_attr(member, DW_AT_type, &attribute) || !dwarf_formref_die(&attribute, &declared))
        return;
    const bool sized = dwarf_aggregate_size(&type, &size) == 0;
    if (!find_bits(member, size, &bits, &width) || __builtin_add_overflow(bits, around->bits, &bits) ||
        size >= LARGEST || bits / 8 >= LARGEST) /* damaged */
        return;
    const int tag = dwarf_tag(&type);
    struct hw_profile_field field = {.offset = bits / 8,
                                     .size = size,
                                     .line = (uint32_t)word_of(member, DW_AT_decl_line, 0),
                                     .alignment = (uint32_t)greater(word_of(member, DW_AT_alignment, 1),
                                                                    alignment_of(taking, &type, 0)),
                                     .flags = around->flags | (base ? HW_FIELD_BASE : 0) |
                                              (hw_is_pointer(tag) ? HW_FIELD_POINTER : 0)};
    if (width) {
        field.flags |= HW_FIELD_BITS;
        field.bit_offset = bits % 8;
        field.bit_size = (uint32_t)width;
        field.size = (field.bit_offset + width + 7) / 8;
        taking->to->flags |= HW_STRUCT_BIT_FIELDS;
    } else if (field.offset % field.alignment) {
        taking->to->flags |= HW_STRUCT_PACKED;
    }
    if (base)
        taking->to->flags |= HW_STRUCT_BASES;
    if (!strncmp(name, "_vptr", 5)) {
        name = "_vptr";
        field.flags |= HW_FIELD_VPTR;
        taking->to->flags |= HW_STRUCT_POLYMORPHIC;
    }
    if (tag == DW_TAG_array_type) {
        field.flags |= HW_FIELD_ARRAY;
        if (!has_elements(&type)) {
            field.flags |= HW_FIELD_FLEXIBLE;
            field.size = 0;
            taking->to->flags |= HW_STRUCT_FLEXIBLE;
        }
    }
    const struct hw_profile_field *from = around->member ? around->member : &field;
    if (!around->member)
        field.declaration = declaration_of(taking, &declared, name, field.bit_size);
    else
        field.declaration = from->declaration;
    field.member_offset = around->member ? from->member_offset : field.offset;
    field.member_size = around->member ? from->member_size : field.size;
    field.member_alignment = around->member ? from->member_alignment : field.alignment;
    if (is_compound(tag) && !dwarf_hasattr(&type, DW_AT_declaration)) {
        const char *shown = base && dwarf_diename(&type) ? dwarf_diename(&type) : name;
        const struct around inside = {
            .member = from,
            .prefix = text,
            .bits = bits,
            .flags = field.flags | (tag == DW_TAG_union_type ? HW_FIELD_UNION : 0),
            .depth = around->depth + 1,
        };
        const size_t before = taking->count;
        if (!hw_append(text, sizeof text, around->prefix) ||
            (*shown && (!hw_append(text, sizeof text, shown) || !hw_append(text, sizeof text, base ? "::" : "."))))
            return;
        take_parts(taking, &type, &inside);
        if (taking->count > before || base)
            return;
        *text = '\0';
    }
    if ((sized && !field.size && !(field.flags & HW_FIELD_FLEXIBLE)) || !hw_append(text, sizeof text, around->prefix) ||
        !hw_append(text, sizeof text, name))
        return;
    field.name = intern(taking, text);
    field.type_name = declaration_of(taking, &declared, "", 0);
    add_field(taking, &field);
}

static void take_parts(struct taking *taking, Dwarf_Die *type, const struct around *around)
{
    Dwarf_Die part;
    if (around->depth == DEPTH_MOST || dwarf_child(type, &part) != 0)
        return;
    do {
        struct around variant = *around;
        if (!taking->entries_left || taking->no_memory)
            return;
        taking->entries_left--;
        variant.depth++;
        switch (dwarf_tag(&part)) {
        case DW_TAG_member:
        case DW_TAG_inheritance:
            take_member(taking, &part, around);
            break;
        case DW_TAG_variant_part: /* enums of Rust */
        case DW_TAG_variant:
            variant.flags |= HW_FIELD_UNION;
            take_parts(taking, &part, &variant);
            break;
        default:
            break;
        }
    } while (dwarf_siblingof(&part, &part) == 0);
}

/* ---- what lies at the same bytes ---- */

static int compare_fields(const void *left, const void *right)
{
    const struct hw_profile_field *a = left, *b = right;
    return HW_ORDER(a->offset, b->offset) ?: HW_ORDER(a->bit_offset, b->bit_offset) ?: HW_ORDER(b->size, a->size) ?:
           strcmp(a->name, b->name);
}

static uint64_t unit_of(const struct hw_profile_field *field)
{
    const uint64_t unit = field->alignment ? field->alignment : 1;
    return field->flags & HW_FIELD_BITS ? field->offset / unit : UINT64_MAX;
}

static void join(struct taking *taking, struct hw_profile_field *to, const struct hw_profile_field *from, size_t *names)
{
    const bool bits = to->flags & from->flags & HW_FIELD_BITS;
    char text[HW_TYPE_BYTES] = "";
    const uint64_t end = to->offset + to->size, other = from->offset + from->size;
    if (bits && to->member_size <= to->size && *to->declaration && *from->declaration && *names < 8 &&
        hw_append(text, sizeof text, to->declaration) && hw_append(text, sizeof text, "; ") &&
        hw_append(text, sizeof text, from->declaration))
        to->declaration = intern(taking, text);
    if (bits) {
        to->bit_size = (uint32_t)(from->offset * 8 + from->bit_offset + from->bit_size - to->offset * 8 - to->bit_offset);
    } else {
        to->flags &= ~(uint32_t)HW_FIELD_BITS;
        to->bit_size = to->bit_offset = 0;
        to->alignment = to->alignment > from->alignment ? to->alignment : from->alignment;
    }
    if (bits && to->member_size <= to->size)
        to->member_size = greater(end, other) - to->offset;
    to->size = greater(end, other) - to->offset;
    to->flags |= from->flags & HW_FIELD_ARRAY;
    to->flags &= ~(uint32_t)HW_FIELD_POINTER | from->flags;
    to->type_name = strcmp(to->type_name, from->type_name) ? "" : to->type_name;
    *text = '\0';
    ++*names;
    if (*names <= NAMES_SHOWN && hw_append(text, sizeof text, to->name) &&
        hw_append(text, sizeof text, bits ? ", " : " | ") && hw_append(text, sizeof text, from->name))
        to->name = intern(taking, text);
    else if (*names == NAMES_SHOWN + 1 && hw_append(text, sizeof text, to->name) &&
             hw_append(text, sizeof text, bits ? ", ..." : " | ..."))
        to->name = intern(taking, text);
}

static void join_fields(struct taking *taking)
{
    size_t kept = 0, names = 1;
    for (size_t i = 0; i < taking->count; i++) {
        struct hw_profile_field *last = kept ? &taking->field[kept - 1] : NULL;
        const struct hw_profile_field *field = &taking->field[i];
        const bool unit = last && unit_of(last) == unit_of(field) && unit_of(field) != UINT64_MAX;
        if (last && (unit || field->offset < last->offset + last->size) && !(field->flags & HW_FIELD_FLEXIBLE)) {
            const struct hw_profile_field copy = *field;
            join(taking, last, &copy, &names);
        } else {
            taking->field[kept++] = *field;
            names = 1;
        }
    }
    taking->count = kept;
}

/* Members whose type is declared elsewhere reach up to the next one. */
static void fill_sizes(struct taking *taking)
{
    for (size_t i = 0; i < taking->count; i++) {
        struct hw_profile_field *field = &taking->field[i];
        const uint64_t end = i + 1 < taking->count ? taking->field[i + 1].offset : taking->to->size;
        if (field->size || field->flags & HW_FIELD_FLEXIBLE)
            continue;
        field->size = end > field->offset ? end - field->offset : 1;
        if (!field->member_size)
            field->member_size = field->size;
    }
}

bool hw_struct_layout(struct hw_names *names, Dwarf_Die *type, const char *name, struct hw_profile_struct *to,
                      struct hw_profile_field **fields)
{
    Dwarf_Die unit;
    Dwarf_Word size = 0;
    struct hw_path_memo memo = {0};
    struct taking taking = {.names = names, .to = to, .entries_left = ENTRIES_MOST};
    *to = (struct hw_profile_struct){.name = name, .file = ""};
    *fields = NULL;
    if (!is_compound(dwarf_tag(type)) || dwarf_aggregate_size(type, &size) != 0 || !size ||
        size >= LARGEST ||
        !dwarf_diecu(type, &unit, NULL, NULL))
        return true;
    const bool c = hw_is_c(&unit);
    to->size = size;
    to->line = (uint32_t)word_of(type, DW_AT_decl_line, 0);
    to->flags = (c ? 0 : HW_STRUCT_CPLUSPLUS) | (dwarf_tag(type) == DW_TAG_union_type ? HW_STRUCT_UNION : 0) |
                (dwarf_srclang(&unit) == DW_LANG_Rust ? HW_STRUCT_FREE_ORDER : 0);
    to->alignment = alignment_of(&taking, type, 0);
    const char *path = dwarf_decl_file(type);
    to->file = path ? hw_source_path(names, &memo, &unit, path) : "";
    taking.no_memory |= !to->file;
    taking.entries_left = ENTRIES_MOST;
    const struct around whole = {.prefix = "", .flags = to->flags & HW_STRUCT_UNION ? HW_FIELD_UNION : 0};
    take_parts(&taking, type, &whole);
    if (taking.count)
        qsort(taking.field, taking.count, sizeof *taking.field, compare_fields);
    fill_sizes(&taking);
    join_fields(&taking);
    /* What reaches beyond the struct is damaged. */
    while (taking.count && taking.field[taking.count - 1].offset + taking.field[taking.count - 1].size > size)
        taking.count--;
    for (size_t i = 0; i < taking.count; i++)
        taking.field[i].flags &= ~(uint32_t)HW_FIELD_UNION;
    to->field_count = taking.count;
    *fields = taking.field;
    if (!taking.no_memory)
        return true;
    free(taking.field);
    *fields = NULL;
    return false;
}
