/* call_flow.h - between call_types.c and call_flow.c; nothing else includes it. */
#ifndef HW_SYMBOLS_CALL_FLOW_H
#define HW_SYMBOLS_CALL_FLOW_H

#include "symbols/symbols_internal.h"

/* Where a variable, or a part of it, is kept while the code at [start, end) runs. */
enum hw_keeping {
    HW_IN_REGISTER, /* it is register + offset */
    HW_IN_FRAME,    /* memory at register + offset */
    HW_IN_CFA,      /* memory at the canonical frame address + offset */
    HW_IN_MEMORY,   /* memory at address */
};
struct hw_kept_part {
    uint64_t start, end; /* as in the ELF file */
    Dwarf_Die type;      /* of the variable, without typedefs */
    uint64_t within;     /* where the part lies in the variable */
    uint64_t size;       /* of the part */
    int64_t offset;
    uint64_t address;
    enum hw_keeping keeping;
    uint8_t reg;     /* as DWARF numbers them */
    bool object;     /* the object that a member function is called on */
    uint64_t scope_start, scope_end; /* of the inlined function that has the variable */
};

/* A function's code, and where it keeps its variables. */
struct hw_function {
    const struct hw_debug_file *file;
    struct hw_module *module;
    const uint8_t *code; /* of the section */
    uint64_t code_start, code_size;
    uint64_t low[8], high[8]; /* ranges of the function */
    size_t ranges;
    struct hw_kept_part *part;
    size_t part_count, part_room;
    const struct hw_kept_part *global; /* variables of the unit */
    size_t global_count;
    /* rules of the frame at [rules_start, rules_end) */
    uint64_t rules_start, rules_end;
    int cfa_register; /* -1: not known */
    int64_t cfa_offset;
};

struct hw_flow_sink {
    void *closure;
    /* POINTER to a block, at OFFSET from the result. */
    void (*found)(void *closure, Dwarf_Die *pointer, int64_t offset, enum hw_type_evidence evidence);
    /* It is argument NUMBER, of those in general registers, of the function at ADDRESS. */
    void (*passed)(void *closure, uint64_t address, unsigned number, int64_t offset);
    void (*returned)(void *closure, int64_t offset);
};

/* Follows what is in rax when the code at ADDRESS, in FUNCTION, begins. */
void hw_flow_follow(struct hw_function *function, uint64_t address, const struct hw_flow_sink *sink);

/* The pointer at OFFSET in TYPE; false: there is none, or several in a union. */
bool hw_pointer_at(Dwarf_Die *type, uint64_t offset, Dwarf_Die *pointer);

#endif
