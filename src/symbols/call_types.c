/* call_types.c - what the result of a call is used as: from the code and the debug information of the caller.
 *
 * Queries are sorted by unit and address, so that the tree of a unit is walked once. For each call the variables of the
 * function, with the places they are kept in, and the code behind the call are given to call_flow.c; what it finds
 * becomes a list of types. First arguments of functions (constructors) are looked up afterwards, as those are in any
 * unit. A damaged tree ends early, and then less is known. */
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>
#include <gelf.h>

#include "base/growing.h"
#include "base/index.h"
#include "base/order.h"
#include "profile/profile.h"
#include "symbols/call_flow.h"
#include "symbols/dwarf_types.h"

enum {
    TYPES_MOST = 12,     /* of one call */
    DEPTH_MOST = 64,     /* of scopes in a function */
    ENTRIES_MOST = 200000, /* of a function, or variables of a unit */
    PARTS_MOST = 20000
};

struct answer {
    struct answer *next;
    struct hw_call_type type[TYPES_MOST];
    Dwarf_Die entry[TYPES_MOST];
};

struct passed {
    struct hw_call_query *query;
    uint64_t address;
    unsigned number;
    int64_t offset;
};

struct hw_call_types {
    struct hw_symbolizer *symbolizer;
    struct hw_debug_file *file; /* by module; dwfl is NULL while it is not open */
    bool *tried;
    size_t modules;
    struct answer *answers;
};

/* Queries of one module. */
struct asking {
    struct hw_call_types *all;
    struct hw_module *module;
    struct hw_debug_file *file;
    struct hw_names *names;
    struct hw_call_query **query; /* of a unit, by address */
    struct hw_call_query *current;
    struct answer *answer; /* of the current query */
    struct passed *passed;
    size_t passed_count, passed_room, passed_first;
    struct hw_function function;
    const void *function_entry; /* the function that `function` is of */
    struct hw_kept_part *global;
    size_t global_count, global_room;
    const void *global_unit;
    uint64_t scope_start, scope_end; /* of the inlined function that is being read */
    size_t entries_left;
    bool no_memory;
};

/* ---- types ---- */

static bool is_compound(int tag)
{
    return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

/* Writes the name of what lies behind typedefs, or the typedef's if that has none; so also of what pointers point to:
 * one type has one name. */
static bool write_name(char *text, Dwarf_Die *declared, Dwarf_Die *type, int depth)
{
    Dwarf_Die named = *type;
    Dwarf_Attribute attribute;
    if (dwarf_tag(type) == DW_TAG_pointer_type) {
        if (depth == DEPTH_MOST || !dwarf_attr(type, DW_AT_type, &attribute))
            return hw_append(text, HW_TYPE_BYTES, "void *");
        return hw_die_type(type, &named) && write_name(text, type, &named, depth + 1) &&
               hw_append(text, HW_TYPE_BYTES, text[strlen(text) - 1] == '*' ? "*" : " *");
    }
    if (!dwarf_diename(&named)) {
        named = *declared;
        for (int i = 0; i < DEPTH_MOST && dwarf_tag(&named) != DW_TAG_typedef; i++)
            if (!dwarf_attr(&named, DW_AT_type, &attribute) || !dwarf_formref_die(&attribute, &named))
                return false;
    }
    if (dwarf_tag(&named) == DW_TAG_base_type)
        return hw_append(text, HW_TYPE_BYTES, hw_number_name(dwarf_diename(&named)));
    return hw_append_type(text, &named, true) && *text;
}

/* As std::string is written in source. */
static void shorten_strings(char *text)
{
    static const char whole[] =
        "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
    for (char *at; (at = strstr(text, whole));) {
        memcpy(at, "std::string", 11);
        memmove(at + 11, at + sizeof whole - 1, strlen(at + sizeof whole - 1) + 1);
    }
}

static const char *name_of(struct asking *asking, Dwarf_Die *declared, Dwarf_Die *type)
{
    char text[HW_TYPE_BYTES] = "";
    if (!write_name(text, declared, type, 0))
        return NULL;
    shorten_strings(text);
    const char *name = hw_names_intern(asking->names, text);
    asking->no_memory |= !name;
    return name;
}

/* An array at the end of a struct of which blocks may have more elements than declared: [], [0] or [1]. */
static void find_tail(Dwarf_Die *type, struct hw_call_type *to)
{
    Dwarf_Die member, last = {0}, array, range, of;
    Dwarf_Attribute attribute;
    Dwarf_Word bound = 0, size;
    uint64_t at;
    if (dwarf_tag(type) == DW_TAG_union_type || dwarf_child(type, &member) != 0)
        return;
    do
        if (dwarf_tag(&member) == DW_TAG_member && !dwarf_hasattr(&member, DW_AT_external))
            last = member;
    while (dwarf_siblingof(&member, &member) == 0);
    if (!last.addr || !hw_member_offset(&last, &at) || !hw_die_type(&last, &array) ||
        dwarf_tag(&array) != DW_TAG_array_type || dwarf_child(&array, &range) != 0 || !hw_die_type(&array, &of) ||
        dwarf_aggregate_size(&of, &size) != 0 || !size)
        return;
    if (dwarf_attr(&range, DW_AT_count, &attribute) && dwarf_formudata(&attribute, &bound) == 0) {
        if (bound > 1)
            return;
    } else if (dwarf_attr(&range, DW_AT_upper_bound, &attribute)) {
        Dwarf_Sword upper = 0;
        if (dwarf_formsdata(&attribute, &upper) != 0 || upper > 0)
            return;
    }
    to->tail = at;
    to->tail_size = size;
}

static void find_first_parts(struct asking *asking, Dwarf_Die type, struct hw_call_type *to)
{
    for (int i = 0; i < HW_FIRST_PARTS && is_compound(dwarf_tag(&type)); i++) {
        Dwarf_Die member, of;
        uint64_t at = 1;
        if (dwarf_child(&type, &member) != 0)
            return;
        while ((dwarf_tag(&member) != DW_TAG_member && dwarf_tag(&member) != DW_TAG_inheritance) ||
               !hw_member_offset(&member, &at) || at || !hw_die_type(&member, &of))
            if (dwarf_siblingof(&member, &member) != 0)
                return;
        to->first[i] = name_of(asking, &member, &of);
        type = of;
    }
}

/* Adds what POINTER points to. */
static void add_type(struct asking *asking, struct hw_call_query *query, struct answer *answer, Dwarf_Die *declared,
                     Dwarf_Die *type, int64_t offset, enum hw_type_evidence evidence)
{
    Dwarf_Word size = 0;
    const int tag = dwarf_tag(type);
    const bool compound = is_compound(tag);
    if ((!compound && tag != DW_TAG_base_type && tag != DW_TAG_pointer_type && tag != DW_TAG_enumeration_type) ||
        dwarf_hasattr(type, DW_AT_declaration) || dwarf_aggregate_size(type, &size) != 0 || !size)
        return;
    const char *name = name_of(asking, declared, type);
    for (uint32_t i = 0; name && i < query->count; i++)
        if (answer->type[i].name == name && answer->type[i].offset == offset) {
            answer->type[i].evidence |= 1u << evidence;
            return;
        }
    if (!name || query->count == TYPES_MOST)
        return;
    answer->entry[query->count] = *type;
    struct hw_call_type *to = &answer->type[query->count];
    *to = (struct hw_call_type){.name = name,
                                .size = size,
                                .offset = offset,
                                .evidence = 1u << evidence,
                                .scalar = !compound,
                                .entry = &answer->entry[query->count++]};
    if (compound) {
        find_tail(type, to);
        find_first_parts(asking, *type, to);
    }
}

static void add_pointed(struct asking *asking, struct hw_call_query *query, struct answer *answer, Dwarf_Die *pointer,
                        int64_t offset, enum hw_type_evidence evidence)
{
    Dwarf_Die type, of;
    if (!hw_die_type(pointer, &type))
        return;
    if (dwarf_tag(&type) == DW_TAG_array_type) { /* T (*)[n] */
        if (hw_die_type(&type, &of))
            add_type(asking, query, answer, &type, &of, offset, evidence);
        return;
    }
    add_type(asking, query, answer, pointer, &type, offset, evidence);
}

static void found(void *closure, Dwarf_Die *pointer, int64_t offset, enum hw_type_evidence evidence)
{
    struct asking *asking = closure;
    add_pointed(asking, asking->current, asking->answer, pointer, offset, evidence);
}

static void passed(void *closure, uint64_t address, unsigned number, int64_t offset)
{
    struct asking *asking = closure;
    if (!HW_GROW(asking->passed, asking->passed_room, asking->passed_count + 1)) {
        asking->no_memory = true;
        return;
    }
    asking->passed[asking->passed_count++] = (struct passed){asking->current, address, number, offset};
}

static void returned(void *closure, int64_t offset)
{
    struct asking *asking = closure;
    asking->current->returned = true;
    asking->current->returned_offset = offset;
}

/* ---- where variables are kept ---- */

static struct hw_kept_part *new_part(struct asking *asking, struct hw_kept_part part)
{
    struct hw_function *function = &asking->function;
    if (function->part_count == PARTS_MOST)
        return NULL;
    if (!HW_GROW(function->part, function->part_room, function->part_count + 1)) {
        asking->no_memory = true;
        return NULL;
    }
    function->part[function->part_count] = part;
    return &function->part[function->part_count++];
}

/* One location without pieces: its first operation and how many they are. False: not understood. */
static bool take_simple(struct hw_kept_part *part, const Dwarf_Op *op, size_t ops, const struct hw_kept_part *base)
{
    const bool value = ops == 2 && op[1].atom == DW_OP_stack_value;
    if (ops == 1 && op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg15) {
        part->keeping = HW_IN_REGISTER;
        part->reg = op->atom - DW_OP_reg0;
        return true;
    }
    if ((ops == 1 || value) && op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg15) {
        part->keeping = value ? HW_IN_REGISTER : HW_IN_FRAME;
        part->reg = op->atom - DW_OP_breg0;
        part->offset = (int64_t)op->number;
        return true;
    }
    if (ops == 1 && op->atom == DW_OP_fbreg && (base->keeping == HW_IN_CFA || base->keeping == HW_IN_FRAME)) {
        part->keeping = base->keeping;
        part->reg = base->reg;
        part->offset = base->offset + (int64_t)op->number;
        return true;
    }
    return false;
}

/* Pieces follow one another: simple, DW_OP_piece, simple, DW_OP_piece … */
static void take_location(struct asking *asking, const struct hw_kept_part *variable, const Dwarf_Op *op, size_t ops,
                          const struct hw_kept_part *base)
{
    struct hw_kept_part part = *variable;
    size_t first = 0;
    uint64_t within = 0;
    for (size_t i = 0; i < ops; i++) {
        if (op[i].atom != DW_OP_piece)
            continue;
        part = *variable;
        part.within = within;
        part.size = op[i].number;
        if (i > first && take_simple(&part, &op[first], i - first, base))
            new_part(asking, part);
        within += op[i].number;
        first = i + 1;
    }
    if (!first && take_simple(&part, op, ops, base))
        new_part(asking, part);
}

/* "this". */
static bool is_object(Dwarf_Die *die)
{
    Dwarf_Attribute artificial;
    const char *name = dwarf_diename(die);
    return dwarf_tag(die) == DW_TAG_formal_parameter && name && !strcmp(name, "this") &&
           dwarf_attr_integrate(die, DW_AT_artificial, &artificial);
}

static void take_variable(struct asking *asking, Dwarf_Die *die, const struct hw_kept_part *base, uint64_t start,
                          uint64_t end)
{
    Dwarf_Attribute attribute;
    Dwarf_Word size = 0;
    struct hw_kept_part part = {0};
    Dwarf_Addr from = 0, low, high;
    ptrdiff_t next = 0;
    Dwarf_Op *op;
    size_t ops;
    if (!dwarf_attr(die, DW_AT_location, &attribute) || !hw_die_type(die, &part.type) ||
        dwarf_aggregate_size(&part.type, &size) != 0 || !size)
        return;
    const int tag = dwarf_tag(&part.type);
    if (!hw_is_pointer(tag) && !is_compound(tag) && tag != DW_TAG_array_type)
        return;
    part.object = is_object(die);
    part.scope_start = asking->scope_start;
    part.scope_end = asking->scope_end;
    const uint64_t bias = asking->file->bias;
    for (int i = 0; i < 1000 && (next = dwarf_getlocations(&attribute, next, &from, &low, &high, &op, &ops)) > 0; i++) {
        const bool always = low == 0 && high == (Dwarf_Addr)-1;
        part.start = always ? start : low + bias;
        part.end = always ? end : high + bias;
        part.size = size;
        if (ops)
            take_location(asking, &part, op, ops, base);
    }
}

/* The addresses of a scope, from the first to the last; of one that says nothing those of the scope around it. */
static void range_of(const struct asking *asking, Dwarf_Die *die, uint64_t *start, uint64_t *end)
{
    Dwarf_Addr base = 0, low = 0, high = 0;
    ptrdiff_t next = 0;
    uint64_t first = UINT64_MAX, last = 0;
    for (int i = 0; i < 1000 && (next = dwarf_ranges(die, next, &base, &low, &high)) > 0; i++) {
        first = low + asking->file->bias < first ? low + asking->file->bias : first;
        last = high + asking->file->bias > last ? high + asking->file->bias : last;
    }
    if (first < last) {
        *start = first;
        *end = last;
    }
}

static void take_scope(struct asking *asking, Dwarf_Die *scope, const struct hw_kept_part *base, uint64_t start,
                       uint64_t end, int depth)
{
    Dwarf_Die child, next;
    if (depth == DEPTH_MOST || dwarf_child(scope, &child) != 0)
        return;
    for (;;) {
        if (!asking->entries_left || asking->no_memory)
            return;
        asking->entries_left--;
        switch (dwarf_tag(&child)) {
        case DW_TAG_variable:
        case DW_TAG_formal_parameter:
            take_variable(asking, &child, base, start, end);
            break;
        case DW_TAG_lexical_block:
        case DW_TAG_inlined_subroutine:
        case DW_TAG_try_block:
        case DW_TAG_catch_block: {
            const uint64_t scope_start = asking->scope_start, scope_end = asking->scope_end;
            uint64_t low = start, high = end;
            range_of(asking, &child, &low, &high);
            if (dwarf_tag(&child) == DW_TAG_inlined_subroutine) {
                asking->scope_start = low;
                asking->scope_end = high;
            }
            take_scope(asking, &child, base, low, high, depth + 1);
            asking->scope_start = scope_start;
            asking->scope_end = scope_end;
            break;
        }
        default:
            break;
        }
        if (dwarf_siblingof(&child, &next) != 0 || next.addr <= child.addr)
            return;
        child = next;
    }
}

static void take_frame_base(Dwarf_Die *function, struct hw_kept_part *base)
{
    Dwarf_Attribute attribute;
    Dwarf_Op *op;
    size_t ops;
    *base = (struct hw_kept_part){.keeping = HW_IN_REGISTER};
    if (!dwarf_attr(function, DW_AT_frame_base, &attribute) || dwarf_getlocation(&attribute, &op, &ops) != 0 || ops != 1)
        return;
    if (op->atom == DW_OP_call_frame_cfa) {
        base->keeping = HW_IN_CFA;
    } else if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg15) {
        base->keeping = HW_IN_FRAME;
        base->reg = op->atom - DW_OP_reg0;
    } else if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg15) {
        base->keeping = HW_IN_FRAME;
        base->reg = op->atom - DW_OP_breg0;
        base->offset = (int64_t)op->number;
    }
}

/* ---- code ---- */

/* The section with the code at ADDRESS. */
static bool find_code(struct hw_function *function, uint64_t address)
{
    GElf_Addr bias = 0;
    Elf *elf = dwfl_module_getelf(function->file->module, &bias);
    GElf_Ehdr header;
    if (!elf || !gelf_getehdr(elf, &header) || header.e_machine != EM_X86_64 || gelf_getclass(elf) != ELFCLASS64)
        return false;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr shape;
        if (!gelf_getshdr(section, &shape) || !(shape.sh_flags & SHF_EXECINSTR) || shape.sh_type != SHT_PROGBITS ||
            address < shape.sh_addr + bias || address - shape.sh_addr - bias >= shape.sh_size)
            continue;
        const Elf_Data *data = elf_rawdata(section, NULL);
        function->code = data ? data->d_buf : NULL;
        function->code_start = shape.sh_addr + bias;
        function->code_size = data ? data->d_size : 0;
        return function->code != NULL;
    }
    return false;
}

static bool take_function(struct asking *asking, Dwarf_Die *die, uint64_t address)
{
    struct hw_function *function = &asking->function;
    struct hw_kept_part base;
    Dwarf_Addr from = 0, low, high;
    ptrdiff_t next = 0;
    if (asking->function_entry == die->addr)
        return function->code != NULL;
    asking->function_entry = die->addr;
    function->file = asking->file;
    function->module = asking->module;
    function->part_count = function->ranges = 0;
    function->rules_end = 0;
    function->code = NULL;
    function->global = asking->global;
    function->global_count = asking->global_count;
    while (function->ranges < 8 && (next = dwarf_ranges(die, next, &from, &low, &high)) > 0) {
        function->low[function->ranges] = low + asking->file->bias;
        function->high[function->ranges++] = high + asking->file->bias;
    }
    if (!function->ranges || !find_code(function, address))
        return false;
    take_frame_base(die, &base);
    asking->entries_left = ENTRIES_MOST;
    asking->scope_start = 0;
    asking->scope_end = UINT64_MAX;
    take_scope(asking, die, &base, 0, UINT64_MAX, 0);
    return true;
}

/* Variables of a unit that have an address. */
static void take_globals(struct asking *asking, Dwarf_Die *scope, int depth)
{
    Dwarf_Die child, next;
    if (depth == DEPTH_MOST || dwarf_child(scope, &child) != 0)
        return;
    for (;;) {
        Dwarf_Attribute attribute;
        struct hw_kept_part part = {.keeping = HW_IN_MEMORY};
        Dwarf_Op *op;
        size_t ops;
        if (!asking->entries_left || asking->no_memory)
            return;
        asking->entries_left--;
        if (dwarf_tag(&child) == DW_TAG_namespace)
            take_globals(asking, &child, depth + 1);
        if (dwarf_tag(&child) == DW_TAG_variable && dwarf_attr(&child, DW_AT_location, &attribute) &&
            dwarf_getlocation(&attribute, &op, &ops) == 0 && ops == 1) {
            Dwarf_Attribute indexed;
            Dwarf_Addr address = op->number;
            Dwarf_Word size = 0;
            const bool plain = op->atom == DW_OP_addr || (dwarf_getlocation_attr(&attribute, op, &indexed) == 0 &&
                                                          dwarf_formaddr(&indexed, &address) == 0);
            if (plain && hw_die_type(&child, &part.type) && dwarf_aggregate_size(&part.type, &size) == 0 && size) {
                part.address = address + asking->file->bias;
                part.size = size;
                if (HW_GROW(asking->global, asking->global_room, asking->global_count + 1))
                    asking->global[asking->global_count++] = part;
                else
                    asking->no_memory = true;
            }
        }
        if (dwarf_siblingof(&child, &next) != 0 || next.addr <= child.addr)
            return;
        child = next;
    }
}

/* ---- one call ---- */

/* Functions of the C++ library whose result is what they allocate. */
static bool is_allocate(const char *name)
{
    static const char *const names[] = {"allocate",       "_M_allocate",    "_M_get_node",          "_M_create_node",
                                        "_S_allocate",    "allocate_at_least", "__libcpp_allocate", "_M_allocate_node",
                                        "_M_allocate_map", "_M_allocate_buckets", "__allocate_at_least"};
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

static const char *linkage_of(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    if (!dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) &&
        !dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
        return "";
    const char *name = dwarf_formstring(&attribute);
    return name ? name : "";
}

/* The type that a function of Rust's library allocates: its parameter T. */
static bool rust_parameter(Dwarf_Die *die, Dwarf_Die *type)
{
    static const char *const folders[] = {"5alloc5boxed", "5alloc7raw_vec", "5alloc2rc",
                                          "5alloc4sync",  "5alloc3vec",     "5alloc11collections"};
    const char *linkage = linkage_of(die);
    Dwarf_Die origin = *die, child;
    Dwarf_Attribute attribute;
    bool library = false;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        library |= strstr(linkage, folders[i]) != NULL;
    if (!library)
        return false;
    if (dwarf_attr(die, DW_AT_abstract_origin, &attribute))
        dwarf_formref_die(&attribute, &origin);
    for (int specified = 0; specified < 2; specified++) {
        if (dwarf_child(&origin, &child) == 0)
            do {
                const char *name = dwarf_diename(&child);
                if (dwarf_tag(&child) == DW_TAG_template_type_parameter && name && !strcmp(name, "T"))
                    return hw_die_type(&child, type);
            } while (dwarf_siblingof(&child, &child) == 0);
        if (!dwarf_attr(&origin, DW_AT_specification, &attribute) || !dwarf_formref_die(&attribute, &origin))
            break;
    }
    return false;
}

/* What the functions around the call declare. INLINED ones only if their name says that they return the block. */
static void look_at_functions(struct asking *asking, Dwarf_Die *scope, uint32_t count)
{
    struct hw_call_query *query = asking->current;
    for (uint32_t i = 0; i < count; i++) {
        Dwarf_Die type;
        const bool outer = i + 1 == count;
        if (rust_parameter(&scope[i], &type)) {
            add_type(asking, query, asking->answer, &type, &type, 0, HW_TYPE_ALLOCATOR);
            continue;
        }
        if (!hw_die_type(&scope[i], &type) || !hw_is_pointer(dwarf_tag(&type)))
            continue;
        const bool allocate = is_allocate(dwarf_diename(&scope[i]));
        if (outer && query->returned) {
            Dwarf_Die of;
            query->returns_type = hw_die_type(&type, &of);
            add_pointed(asking, query, asking->answer, &type, query->returned_offset,
                        allocate ? HW_TYPE_ALLOCATOR : HW_TYPE_RESULT);
        } else if (!outer && allocate) {
            add_pointed(asking, query, asking->answer, &type, 0, HW_TYPE_ALLOCATOR);
        }
    }
}

/* Whether the call instruction that ends at NEXT calls operator new(unsigned long). */
static bool is_single(struct asking *asking, uint64_t next)
{
    const struct hw_function *function = &asking->function;
    int32_t distance;
    if (next < function->code_start + 5 || next - function->code_start > function->code_size ||
        function->code[next - function->code_start - 5] != 0xe8)
        return false;
    memcpy(&distance, function->code + (next - function->code_start - 4), sizeof distance);
    const struct hw_elf_symbols *symbols = hw_module_symbols(asking->module, asking->file);
    const char *name = symbols ? hw_elf_symbols_find(symbols, next + (uint64_t)(int64_t)distance) : NULL;
    return name && !strncmp(name, "_Znw", 4);
}

static bool take_call(void *closure, size_t index, Dwarf_Die *unit, Dwarf_Die *scope, uint32_t count)
{
    struct asking *asking = closure;
    struct hw_call_query *query = asking->query[index];
    if (!count)
        return true;
    if (asking->global_unit != unit->addr) {
        asking->global_unit = unit->addr;
        asking->global_count = 0;
        asking->entries_left = ENTRIES_MOST;
        take_globals(asking, unit, 0);
        asking->function_entry = NULL;
    }
    asking->answer = calloc(1, sizeof *asking->answer);
    if (!asking->answer)
        return false;
    asking->answer->next = asking->all->answers;
    asking->all->answers = asking->answer;
    asking->current = query;
    query->types = asking->answer->type;
    if (take_function(asking, &scope[count - 1], query->address)) {
        const struct hw_flow_sink sink = {asking, found, passed, returned};
        query->known = true;
        query->single = is_single(asking, query->address + 1);
        hw_flow_follow(&asking->function, query->address + 1, &sink);
    }
    look_at_functions(asking, scope, count);
    return !asking->no_memory;
}

/* ---- arguments ---- */

static struct answer *answer_of(const struct hw_call_query *query)
{
    return (struct answer *)(void *)((char *)(uintptr_t)query->types - offsetof(struct answer, type));
}

static int compare_passed(const void *left, const void *right)
{
    const struct passed *a = left, *b = right;
    return HW_ORDER(a->address, b->address);
}

/* Parameter NUMBER of those that are passed in general registers; false: it is not known which that is. */
static bool find_parameter(Dwarf_Die *function, unsigned number, Dwarf_Die *parameter)
{
    Dwarf_Die type;
    if ((hw_die_type(function, &type) && is_compound(dwarf_tag(&type))) || dwarf_child(function, parameter) != 0)
        return false; /* the address of the result may come first */
    do {
        Dwarf_Attribute attribute;
        Dwarf_Word encoding = 0;
        if (dwarf_tag(parameter) != DW_TAG_formal_parameter)
            continue;
        if (!hw_die_type(parameter, &type) || is_compound(dwarf_tag(&type)))
            return false;
        if (dwarf_attr(&type, DW_AT_encoding, &attribute) && dwarf_formudata(&attribute, &encoding) == 0 &&
            (encoding == DW_ATE_float || encoding == DW_ATE_complex_float))
            continue;
        if (!number--)
            return true;
    } while (dwarf_siblingof(parameter, parameter) == 0);
    return false;
}

/* What is passed to the function at the address has its parameter's type. */
static bool take_callee(void *closure, size_t index, Dwarf_Die *unit, Dwarf_Die *scope, uint32_t count)
{
    struct asking *asking = closure;
    const struct passed *argument = &asking->passed[asking->passed_first + index];
    struct hw_call_query *query = argument->query;
    Dwarf_Die parameter, type;
    Dwarf_Addr entry;
    (void)unit;
    Dwarf_Die *function = count ? &scope[count - 1] : NULL;
    if (!function || dwarf_entrypc(function, &entry) != 0 || entry + asking->file->bias != argument->address ||
        !find_parameter(function, argument->number, &parameter) || !hw_die_type(&parameter, &type) ||
        !hw_is_pointer(dwarf_tag(&type)))
        return true;
    add_pointed(asking, query, answer_of(query), &type, argument->offset,
                is_object(&parameter) ? HW_TYPE_CONSTRUCTOR : HW_TYPE_ARGUMENT);
    return !asking->no_memory;
}

/* ---- all of them ---- */

static bool find_callees(struct asking *asking)
{
    uint64_t *address = malloc((asking->passed_count + 1) * sizeof *address);
    bool fine = address != NULL;
    if (fine && asking->passed_count)
        qsort(asking->passed, asking->passed_count, sizeof *asking->passed, compare_passed);
    for (size_t first = 0, end; fine && first < asking->passed_count; first = end) {
        const uint32_t unit = hw_module_find_unit(asking->module, asking->passed[first].address);
        for (end = first; end < asking->passed_count; end++) {
            if (end > first && hw_module_find_unit(asking->module, asking->passed[end].address) != unit)
                break;
            address[end - first] = asking->passed[end].address;
        }
        asking->passed_first = first;
        if (unit != HW_NO_UNIT)
            fine = hw_unit_scopes(asking->module, asking->file, unit, asking->names, address, end - first, take_callee,
                                  asking);
    }
    free(address);
    return fine;
}

struct sorted_query {
    struct hw_call_query *query;
    uint32_t unit;
};

static int compare_queries(const void *left, const void *right)
{
    const struct sorted_query *a = left, *b = right;
    return HW_ORDER(a->unit, b->unit) ?: HW_ORDER(a->query->address, b->query->address);
}

static bool ask(struct asking *asking, struct hw_call_query *query, size_t count)
{
    struct sorted_query *sorted = malloc((count + 1) * sizeof *sorted);
    uint64_t *address = malloc((count + 1) * sizeof *address);
    asking->query = malloc((count + 1) * sizeof *asking->query);
    bool fine = sorted && address && asking->query;
    for (size_t i = 0; fine && i < count; i++)
        sorted[i] = (struct sorted_query){&query[i], hw_module_find_unit(asking->module, query[i].address)};
    if (fine && count)
        qsort(sorted, count, sizeof *sorted, compare_queries);
    for (size_t first = 0, end; fine && first < count; first = end) {
        for (end = first; end < count && sorted[end].unit == sorted[first].unit; end++) {
            asking->query[end - first] = sorted[end].query;
            address[end - first] = sorted[end].query->address;
        }
        if (sorted[first].unit != HW_NO_UNIT)
            fine = hw_unit_scopes(asking->module, asking->file, sorted[first].unit, asking->names, address,
                                  end - first, take_call, asking);
    }
    fine = fine && find_callees(asking);
    free(sorted);
    free(address);
    free(asking->query);
    free(asking->passed);
    free(asking->function.part);
    free(asking->global);
    return fine;
}

struct hw_call_types *hw_call_types_new(struct hw_symbolizer *symbolizer, struct hw_error *error)
{
    struct hw_call_types *types = calloc(1, sizeof *types);
    if (types)
        types->symbolizer = symbolizer;
    else
        hw_error_set(error, "cannot find types of blocks: out of memory");
    return types;
}

void hw_call_types_free(struct hw_call_types *types)
{
    if (!types)
        return;
    for (size_t i = 0; i < types->modules; i++)
        hw_debug_file_close(&types->file[i]);
    for (struct answer *answer = types->answers, *next; answer; answer = next) {
        next = answer->next;
        free(answer);
    }
    free(types->file);
    free(types->tried);
    free(types);
}

static bool make_room(struct hw_call_types *types, size_t modules)
{
    if (modules <= types->modules)
        return true;
    struct hw_debug_file *file = realloc(types->file, modules * sizeof *file);
    types->file = file ? file : types->file;
    bool *tried = realloc(types->tried, modules * sizeof *tried);
    types->tried = tried ? tried : types->tried;
    if (!file || !tried)
        return false;
    memset(file + types->modules, 0, (modules - types->modules) * sizeof *file);
    memset(tried + types->modules, 0, (modules - types->modules) * sizeof *tried);
    types->modules = modules;
    return true;
}

bool hw_call_types_ask(struct hw_call_types *types, int module, struct hw_call_query *query, size_t count,
                       struct hw_error *error)
{
    struct hw_module *from = hw_symbolizer_module(types->symbolizer, module);
    bool fine = true;
    if (!from || !from->usable || !from->range_count)
        return true;
    fine = make_room(types, (size_t)module + 1);
    if (fine && !types->tried[module]) {
        types->tried[module] = true;
        hw_symbolizer_open(types->symbolizer, module, &types->file[module]);
    }
    if (fine && types->file[module].dwarf) {
        struct asking asking = {.all = types,
                                .module = from,
                                .file = &types->file[module],
                                .names = hw_symbolizer_names(types->symbolizer)};
        fine = ask(&asking, query, count);
    }
    if (!fine)
        hw_error_set(error, "cannot find types of blocks: out of memory");
    return fine;
}

bool hw_call_types_layout(struct hw_call_types *types, const struct hw_call_type *type, struct hw_profile_struct *to,
                          struct hw_profile_field **fields, struct hw_error *error)
{
    const Dwarf_Die *entry = type->entry;
    *to = (struct hw_profile_struct){.name = type->name, .file = ""};
    *fields = NULL;
    if (!entry || type->scalar)
        return true;
    const char *name = type->name;
    name += !strncmp(name, "struct ", 7) ? 7 : !strncmp(name, "union ", 6) ? 6 : 0;
    Dwarf_Die die = *entry;
    if (hw_struct_layout(hw_symbolizer_names(types->symbolizer), &die, name, to, fields))
        return true;
    hw_error_set(error, "cannot read the members of types: out of memory");
    return false;
}
