/* call_flow.c - where the result of a call goes: the code behind the call is read instruction by instruction.
 *
 * What is known of a register or of a word on the stack is that it is the result plus a constant, or that it is a
 * pointer of a declared type. Wherever the result is, a variable that the debug information puts there has it, too;
 * where it is stored through a pointer to a struct, the member says what it is. Both branches of conditional jumps are
 * followed, but not the one that is taken when the result is NULL: that code often does not return. Nothing is assumed
 * of instructions that are not known here but that they write their operands. */
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>

#include <Zydis/Zydis.h>

#include "symbols/call_flow.h"
#include "symbols/dwarf_types.h"

enum {
    STEPS_MOST = 400,  /* instructions behind a call */
    BRANCHES_MOST = 12,
    APPROACH_MOST = 4096, /* bytes of code before it */
    SLOTS_MOST = 24,
    DEPTH_MOST = 32,
    RAX = 0,
    RDI = 5,
    RBP = 6,
    RSP = 7,
    REGISTERS = 16
};

enum kind { NOTHING, BLOCK, POINTER };

struct value {
    enum kind kind;
    int64_t offset;   /* BLOCK: from the result; POINTER: in the object that it points to */
    Dwarf_Die target; /* POINTER: the type of that object */
};

struct slot {
    int64_t at; /* from the canonical frame address */
    struct value value;
};

struct state {
    uint64_t pc;
    struct value reg[REGISTERS];
    struct slot slot[SLOTS_MOST];
    size_t slots;
    int tested; /* register with the block that the latest test compared with NULL; -1: none */
};

struct flow {
    struct hw_function *function;
    const struct hw_flow_sink *sink;
    uint64_t call; /* an address in the call */
    ZydisDecoder decoder;
    uint64_t seen[STEPS_MOST];
    size_t seen_count;
    struct state waiting[BRANCHES_MOST];
    size_t waiting_count, branches;
    struct state now;
};

/* ---- types ---- */

static bool same_type(Dwarf_Die *a, Dwarf_Die *b)
{
    Dwarf_Die to_a, to_b;
    return hw_die_type(a, &to_a) && hw_die_type(b, &to_b) && to_a.addr == to_b.addr;
}

static bool pointer_within(Dwarf_Die *type, uint64_t offset, Dwarf_Die *pointer, int depth)
{
    Dwarf_Die member, of;
    Dwarf_Word size;
    bool found = false;
    if (depth == DEPTH_MOST)
        return false;
    switch (dwarf_tag(type)) {
    case DW_TAG_array_type:
        return hw_die_type(type, &of) && dwarf_aggregate_size(&of, &size) == 0 && size &&
               pointer_within(&of, offset % size, pointer, depth + 1);
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
        if (dwarf_child(type, &member) != 0)
            return false;
        do {
            const int tag = dwarf_tag(&member);
            uint64_t at;
            Dwarf_Die other;
            if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) || !hw_member_offset(&member, &at) ||
                !hw_die_type(&member, &of) || offset < at ||
                (dwarf_aggregate_size(&of, &size) == 0 && size && offset - at >= size) ||
                !pointer_within(&of, offset - at, &other, depth + 1))
                continue;
            if (found && !same_type(pointer, &other))
                return false;
            *pointer = other;
            found = true;
        } while (dwarf_siblingof(&member, &member) == 0);
        return found;
    default:
        *pointer = *type;
        return !offset && hw_is_pointer(dwarf_tag(type));
    }
}

bool hw_pointer_at(Dwarf_Die *type, uint64_t offset, Dwarf_Die *pointer)
{
    return pointer_within(type, offset, pointer, 0);
}

/* The type of the elements of arrays. */
static Dwarf_Die element_of(Dwarf_Die *type)
{
    Dwarf_Die element = *type, of;
    for (int i = 0; i < DEPTH_MOST && dwarf_tag(&element) == DW_TAG_array_type && hw_die_type(&element, &of); i++)
        element = of;
    return element;
}

/* The pointer that lies OFFSET behind the begin of a TARGET, which may be the first element of an array. INDEXED: and
 * a multiple of something behind that. */
static bool pointer_behind(Dwarf_Die *target, int64_t offset, bool indexed, Dwarf_Die *found)
{
    Dwarf_Die element = element_of(target);
    Dwarf_Word size;
    if (hw_is_pointer(dwarf_tag(&element))) {
        *found = element;
        return offset % (int64_t)sizeof(uint64_t) == 0;
    }
    return !indexed && offset >= 0 && dwarf_aggregate_size(target, &size) == 0 && size &&
           hw_pointer_at(target, (uint64_t)offset % size, found);
}

/* ---- the stack frame ---- */

static void read_rules(struct hw_function *function, uint64_t pc)
{
    Dwarf_Addr bias = 0;
    function->cfa_register = -1;
    function->rules_start = pc;
    function->rules_end = pc + 1;
    for (int eh = 1; eh >= 0 && function->cfa_register < 0; eh--) {
        Dwarf_CFI *table = eh ? dwfl_module_eh_cfi(function->file->module, &bias)
                              : dwfl_module_dwarf_cfi(function->file->module, &bias);
        Dwarf_Frame *rules = NULL;
        Dwarf_Op *op = NULL;
        size_t ops = 0;
        Dwarf_Addr start, end;
        bool signal;
        if (!table || dwarf_cfi_addrframe(table, pc - bias, &rules) != 0)
            continue;
        if (dwarf_frame_cfa(rules, &op, &ops) == 0 && ops == 1) {
            if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
                function->cfa_register = op->atom - DW_OP_breg0;
                function->cfa_offset = (int64_t)op->number;
            } else if (op->atom == DW_OP_bregx && op->number < REGISTERS) {
                function->cfa_register = (int)op->number;
                function->cfa_offset = (int64_t)op->number2;
            }
        }
        if (dwarf_frame_info(rules, &start, &end, &signal) >= 0 && pc - bias >= start && pc - bias < end) {
            function->rules_start = start + bias;
            function->rules_end = end + bias;
        }
        free(rules);
    }
}

/* Where register + OFFSET lies, from the canonical frame address; false: not in the frame, as far as is known. */
static bool in_frame(struct hw_function *function, uint64_t pc, int reg, int64_t offset, int64_t *at)
{
    if (pc < function->rules_start || pc >= function->rules_end)
        read_rules(function, pc);
    if (function->cfa_register != reg || (reg != RSP && reg != RBP))
        return false;
    *at = offset - function->cfa_offset;
    return true;
}

/* ---- variables ---- */

static bool part_at(struct hw_function *function, const struct hw_kept_part *part, uint64_t pc, int64_t at,
                    uint64_t *within)
{
    int64_t begin = part->offset;
    if (pc < part->start || pc >= part->end || (part->keeping != HW_IN_CFA && part->keeping != HW_IN_FRAME))
        return false;
    if (part->keeping == HW_IN_FRAME && !in_frame(function, pc, part->reg, part->offset, &begin))
        return false;
    *within = part->within + (uint64_t)(at - begin);
    return at >= begin && (uint64_t)(at - begin) < part->size;
}

/* The declared pointer in the frame at AT. */
static const struct hw_kept_part *pointer_in_frame(struct hw_function *function, uint64_t pc, int64_t at,
                                                   Dwarf_Die *pointer)
{
    uint64_t within;
    for (size_t i = function->part_count; i-- > 0;) { /* inner scopes come later */
        struct hw_kept_part *part = &function->part[i];
        if (part_at(function, part, pc, at, &within) && hw_pointer_at(&part->type, within, pointer))
            return part;
    }
    return NULL;
}

static const struct hw_kept_part *global_at(const struct hw_function *function, uint64_t address)
{
    for (size_t i = 0; i < function->global_count; i++)
        if (address >= function->global[i].address && address - function->global[i].address < function->global[i].size)
            return &function->global[i];
    return NULL;
}

static bool pointer_in_memory(const struct hw_function *function, uint64_t address, Dwarf_Die *pointer)
{
    const struct hw_kept_part *global = global_at(function, address);
    Dwarf_Die type;
    if (!global)
        return false;
    type = global->type;
    return hw_pointer_at(&type, address - global->address, pointer);
}

/* What a register is declared to point to; BLOCK and NOTHING: no such thing. */
static struct value pointer_in_register(const struct flow *flow, int reg)
{
    const struct hw_function *function = flow->function;
    const uint64_t pc = flow->now.pc;
    struct value value = flow->now.reg[reg];
    for (size_t i = function->part_count; value.kind == NOTHING && i-- > 0;) {
        struct hw_kept_part part = function->part[i];
        Dwarf_Die pointer;
        if (part.keeping != HW_IN_REGISTER || part.reg != reg || pc < part.start || pc >= part.end ||
            !hw_pointer_at(&part.type, part.within, &pointer) || !hw_die_type(&pointer, &value.target))
            continue;
        value.kind = POINTER;
        value.offset = -part.offset;
    }
    return value;
}

static void found(struct flow *flow, Dwarf_Die *pointer, int64_t offset, enum hw_type_evidence evidence)
{
    flow->sink->found(flow->sink->closure, pointer, offset, evidence);
}

/* Variables of functions that the call is not in, which were inlined, are their arguments. */
static enum hw_type_evidence evidence_of(const struct flow *flow, const struct hw_kept_part *part)
{
    return part->object ? HW_TYPE_CONSTRUCTOR
           : flow->call >= part->scope_start && flow->call < part->scope_end ? HW_TYPE_VARIABLE
                                                                              : HW_TYPE_ARGUMENT;
}

/* Variables in registers with the block. */
static void look_at_registers(struct flow *flow)
{
    const struct hw_function *function = flow->function;
    const uint64_t pc = flow->now.pc;
    for (size_t i = function->part_count; i-- > 0;) {
        struct hw_kept_part part = function->part[i];
        Dwarf_Die pointer;
        if (part.keeping != HW_IN_REGISTER || pc < part.start || pc >= part.end || part.reg >= REGISTERS ||
            flow->now.reg[part.reg].kind != BLOCK || !hw_pointer_at(&part.type, part.within, &pointer))
            continue;
        found(flow, &pointer, flow->now.reg[part.reg].offset + part.offset, evidence_of(flow, &part));
    }
}

/* ---- instructions ---- */

/* As DWARF numbers them; -1: none of them, or not all of it. */
static int register_of(ZydisRegister reg)
{
    static const int8_t numbers[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};
    return reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15 ? numbers[reg - ZYDIS_REGISTER_RAX] : -1;
}

/* The register that it is a part of. */
static int widest_of(ZydisRegister reg)
{
    return register_of(ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg));
}

static struct value *slot_at(struct state *state, int64_t at)
{
    for (size_t i = 0; i < state->slots; i++)
        if (state->slot[i].at == at)
            return &state->slot[i].value;
    return NULL;
}

enum memory { ELSEWHERE, FRAME, GLOBAL, BASED };

/* Where an operand in memory lies: AT in the frame, the global ADDRESS, or *AT behind what register *BASE points to. */
static enum memory place_of(struct flow *flow, const ZydisDecodedInstruction *instruction,
                            const ZydisDecodedOperand *operand, int64_t *at, uint64_t *address, int *base)
{
    const ZydisDecodedOperandMem *memory = &operand->mem;
    if (memory->segment == ZYDIS_REGISTER_FS || memory->segment == ZYDIS_REGISTER_GS)
        return ELSEWHERE;
    *at = memory->disp.has_displacement ? memory->disp.value : 0;
    if (memory->base == ZYDIS_REGISTER_RIP) {
        *address = flow->now.pc + instruction->length + (uint64_t)*at;
        return GLOBAL;
    }
    *base = register_of(memory->base);
    if (*base < 0)
        return ELSEWHERE;
    if (memory->index == ZYDIS_REGISTER_NONE && in_frame(flow->function, flow->now.pc, *base, *at, at))
        return FRAME;
    if (*base == RSP)
        return ELSEWHERE;
    return BASED;
}

static struct value load(struct flow *flow, const ZydisDecodedInstruction *instruction,
                         const ZydisDecodedOperand *operand)
{
    struct value value = {NOTHING};
    Dwarf_Die pointer;
    int64_t at;
    uint64_t address;
    int base;
    bool known = false;
    switch (place_of(flow, instruction, operand, &at, &address, &base)) {
    case FRAME: {
        const struct value *slot = slot_at(&flow->now, at);
        if (slot)
            return *slot;
        known = pointer_in_frame(flow->function, flow->now.pc, at, &pointer) != NULL;
        break;
    }
    case GLOBAL:
        known = pointer_in_memory(flow->function, address, &pointer);
        break;
    case BASED: {
        struct value through = pointer_in_register(flow, base);
        known = through.kind == POINTER && pointer_behind(&through.target, through.offset + at,
                                                          operand->mem.index != ZYDIS_REGISTER_NONE, &pointer);
        break;
    }
    default:
        break;
    }
    if (known && hw_die_type(&pointer, &value.target))
        value.kind = POINTER;
    return value;
}

static void store(struct flow *flow, const ZydisDecodedInstruction *instruction, const ZydisDecodedOperand *operand,
                  const struct value *value)
{
    struct state *now = &flow->now;
    Dwarf_Die pointer;
    struct value through;
    int64_t at;
    uint64_t address;
    int base;
    switch (place_of(flow, instruction, operand, &at, &address, &base)) {
    case FRAME: {
        struct value *slot = slot_at(now, at);
        if (!slot && value->kind == BLOCK && now->slots < SLOTS_MOST) {
            now->slot[now->slots].at = at;
            slot = &now->slot[now->slots++].value;
        }
        if (slot)
            *slot = *value;
        /* What a variable has from here on: its range begins behind the instruction. */
        const struct hw_kept_part *part =
            value->kind == BLOCK ? pointer_in_frame(flow->function, now->pc + instruction->length, at, &pointer) : NULL;
        if (part)
            found(flow, &pointer, value->offset, evidence_of(flow, part));
        break;
    }
    case GLOBAL:
        if (value->kind == BLOCK && pointer_in_memory(flow->function, address, &pointer))
            found(flow, &pointer, value->offset, HW_TYPE_MEMBER);
        break;
    case BASED:
        through = pointer_in_register(flow, base);
        if (value->kind == BLOCK && through.kind == POINTER &&
            pointer_behind(&through.target, through.offset + at, operand->mem.index != ZYDIS_REGISTER_NONE, &pointer))
            found(flow, &pointer, value->offset, HW_TYPE_MEMBER);
        break;
    default:
        break;
    }
}

static bool within_function(const struct hw_function *function, uint64_t address)
{
    for (size_t i = 0; i < function->ranges; i++)
        if (address >= function->low[i] && address < function->high[i])
            return true;
    return false;
}

static const char *name_at(const struct hw_function *function, uint64_t address)
{
    const struct hw_elf_symbols *symbols = hw_module_symbols(function->module, function->file);
    const char *name = symbols ? hw_elf_symbols_find(symbols, address) : NULL;
    return name ? name : "";
}

static bool begins(const char *text, const char *beginning)
{
    return !strncmp(text, beginning, strlen(beginning));
}

/* Functions that do not return: the code behind is another path's. */
static bool never_returns(const char *name)
{
    static const char *const names[] = {"abort",           "exit",         "_exit",           "__assert_fail",
                                        "__cxa_throw",     "__cxa_rethrow", "_Unwind_Resume", "__stack_chk_fail",
                                        "_ZSt9terminatev", "longjmp",      "quick_exit",      "_Exit"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (begins(name, names[i]) && (!name[strlen(names[i])] || strchr("@_", name[strlen(names[i])])))
            return true;
    return begins(name, "_ZSt") && strstr(name, "__throw_");
}

/* Those that return their first argument. */
static bool returns_argument(const char *name)
{
    return begins(name, "memset") || begins(name, "memcpy") || begins(name, "memmove") || begins(name, "strcpy") ||
           begins(name, "__memset_chk") || begins(name, "__memcpy_chk");
}

static void pass(struct flow *flow, uint64_t target)
{
    static const uint8_t order[] = {5, 4, 1, 2, 8, 9}; /* rdi, rsi, rdx, rcx, r8, r9 */
    for (unsigned i = 0; i < sizeof order; i++)
        if (flow->now.reg[order[i]].kind == BLOCK)
            flow->sink->passed(flow->sink->closure, target, i, flow->now.reg[order[i]].offset);
}

/* False: the path ends. */
static bool call(struct flow *flow, const ZydisDecodedInstruction *instruction, const ZydisDecodedOperand *operand)
{
    static const uint8_t lost[] = {0, 1, 2, 4, 5, 8, 9, 10, 11};
    const struct value argument = flow->now.reg[RDI];
    const char *name = "";
    if (operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        const uint64_t target = flow->now.pc + instruction->length + (uint64_t)operand->imm.value.s;
        name = name_at(flow->function, target);
        if (never_returns(name))
            return false;
        pass(flow, target);
    }
    /* What is passed to free or realloc ends there. */
    if (argument.kind == BLOCK && (begins(name, "free") || begins(name, "realloc") || begins(name, "_Zd")))
        return false;
    for (size_t i = 0; i < sizeof lost; i++)
        flow->now.reg[lost[i]].kind = NOTHING;
    if (argument.kind == BLOCK && returns_argument(name))
        flow->now.reg[RAX] = argument;
    return true;
}

/* Both ways of a conditional jump, or one if the other is for NULL. TAKEN: set to where to go on. */
static void branch(struct flow *flow, ZydisMnemonic mnemonic, uint64_t target, uint64_t next)
{
    struct state *now = &flow->now;
    const bool null_jumps = mnemonic == ZYDIS_MNEMONIC_JZ, null_stays = mnemonic == ZYDIS_MNEMONIC_JNZ;
    const bool tested = now->tested >= 0;
    now->pc = next;
    if (tested && null_jumps)
        return;
    if (tested && null_stays) {
        now->pc = target;
        return;
    }
    if (flow->branches < BRANCHES_MOST && within_function(flow->function, target)) {
        flow->branches++;
        flow->waiting[flow->waiting_count] = *now;
        flow->waiting[flow->waiting_count++].pc = target;
    }
}

static void write_register(struct state *now, const ZydisDecodedOperand *operand, struct value value)
{
    const int whole = register_of(operand->reg.value), reg = widest_of(operand->reg.value);
    if (reg >= 0)
        now->reg[reg] = whole >= 0 ? value : (struct value){NOTHING};
}

static struct value value_of(struct flow *flow, const ZydisDecodedInstruction *instruction,
                             const ZydisDecodedOperand *operand)
{
    struct value value = {NOTHING};
    if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY && operand->size == 64)
        return load(flow, instruction, operand);
    const int reg = operand->type == ZYDIS_OPERAND_TYPE_REGISTER ? register_of(operand->reg.value) : -1;
    return reg >= 0 ? pointer_in_register(flow, reg) : value;
}

/* With an index added: what it points to is like the first element, if those are pointers. */
static struct value of_elements(struct value value)
{
    Dwarf_Die pointer;
    return value.kind == POINTER && pointer_behind(&value.target, value.offset, true, &pointer)
               ? value
               : (struct value){NOTHING};
}

/* What an instruction that computes with the operands leaves in the first one. */
static struct value computed(struct flow *flow, const ZydisDecodedInstruction *instruction,
                             const ZydisDecodedOperand *operand)
{
    const bool subtract = instruction->mnemonic == ZYDIS_MNEMONIC_SUB;
    struct value value = value_of(flow, instruction, &operand[0]);
    if (operand[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        value.offset += subtract ? -operand[1].imm.value.s : operand[1].imm.value.s;
        return value;
    }
    struct value other = value_of(flow, instruction, &operand[1]);
    if (subtract || (value.kind == NOTHING) == (other.kind == NOTHING))
        return (struct value){NOTHING};
    return of_elements(value.kind == NOTHING ? other : value);
}

static struct value address_of(struct flow *flow, const ZydisDecodedInstruction *instruction,
                               const ZydisDecodedOperand *operand)
{
    struct value value = {NOTHING};
    int64_t at;
    uint64_t address, within;
    int base;
    switch (place_of(flow, instruction, operand, &at, &address, &base)) {
    case GLOBAL: {
        const struct hw_kept_part *global = global_at(flow->function, address);
        if (global)
            value = (struct value){POINTER, (int64_t)(address - global->address), global->type};
        break;
    }
    case FRAME:
        for (size_t i = flow->function->part_count; i-- > 0 && value.kind == NOTHING;)
            if (part_at(flow->function, &flow->function->part[i], flow->now.pc, at, &within))
                value = (struct value){POINTER, (int64_t)within, flow->function->part[i].type};
        break;
    case BASED:
        value = pointer_in_register(flow, base);
        value.offset += at;
        if (operand->mem.index != ZYDIS_REGISTER_NONE)
            value = of_elements(value);
        break;
    default:
        break;
    }
    return value;
}

/* Registers and words of the frame that the instruction writes. */
static void forget_written(struct flow *flow, const ZydisDecodedInstruction *instruction,
                           const ZydisDecodedOperand *operand)
{
    static const struct value nothing = {NOTHING};
    for (unsigned i = 0; i < instruction->operand_count; i++) {
        if (!(operand[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
            continue;
        if (operand[i].type == ZYDIS_OPERAND_TYPE_REGISTER)
            write_register(&flow->now, &operand[i], nothing);
        else if (operand[i].type == ZYDIS_OPERAND_TYPE_MEMORY && instruction->mnemonic != ZYDIS_MNEMONIC_PUSH)
            store(flow, instruction, &operand[i], &nothing);
    }
}

/* The block is compared with NULL: test r, r, or cmp r, 0. */
static int tested_register(const struct flow *flow, const ZydisDecodedInstruction *instruction,
                           const ZydisDecodedOperand *operand)
{
    const int reg = operand[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? register_of(operand[0].reg.value) : -1;
    if (reg < 0 || flow->now.reg[reg].kind != BLOCK)
        return -1;
    if (instruction->mnemonic == ZYDIS_MNEMONIC_TEST)
        return operand[1].type == ZYDIS_OPERAND_TYPE_REGISTER && operand[1].reg.value == operand[0].reg.value ? reg : -1;
    return operand[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && !operand[1].imm.value.s ? reg : -1;
}

/* Executes an instruction; false: the path ends. */
static bool step(struct flow *flow, const ZydisDecodedInstruction *instruction, const ZydisDecodedOperand *operand)
{
    struct state *now = &flow->now;
    const uint64_t next = now->pc + instruction->length;
    const bool direct =
        instruction->operand_count_visible && operand[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
    const uint64_t target = direct ? next + (uint64_t)operand[0].imm.value.s : 0;
    const bool register_first =
        instruction->operand_count_visible && operand[0].type == ZYDIS_OPERAND_TYPE_REGISTER;
    struct value value;
    switch (instruction->mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
        value = value_of(flow, instruction, &operand[1]);
        if (register_first)
            write_register(now, &operand[0], value);
        else
            store(flow, instruction, &operand[0], &value);
        break;
    case ZYDIS_MNEMONIC_LEA:
        write_register(now, &operand[0], address_of(flow, instruction, &operand[1]));
        break;
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_SUB:
        if (!register_first || register_of(operand[0].reg.value) == RSP) {
            forget_written(flow, instruction, operand);
            break;
        }
        value = computed(flow, instruction, operand);
        write_register(now, &operand[0], value);
        break;
    case ZYDIS_MNEMONIC_TEST:
    case ZYDIS_MNEMONIC_CMP:
        now->tested = -1;
        if (operand[0].type == ZYDIS_OPERAND_TYPE_MEMORY && operand[0].size == 64 &&
            instruction->mnemonic == ZYDIS_MNEMONIC_CMP && operand[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
            !operand[1].imm.value.s && load(flow, instruction, &operand[0]).kind == BLOCK)
            now->tested = REGISTERS;
        else
            now->tested = tested_register(flow, instruction, operand);
        break;
    case ZYDIS_MNEMONIC_CALL:
        if (!call(flow, instruction, &operand[0]))
            return false;
        break;
    case ZYDIS_MNEMONIC_JMP:
        if (!direct)
            return false;
        if (!within_function(flow->function, target)) {
            pass(flow, target);
            return false;
        }
        now->pc = target;
        return true;
    case ZYDIS_MNEMONIC_RET:
        if (now->reg[RAX].kind == BLOCK)
            flow->sink->returned(flow->sink->closure, now->reg[RAX].offset);
        return false;
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_INT3:
        return false;
    default:
        if (instruction->meta.category == ZYDIS_CATEGORY_COND_BR) {
            if (!direct)
                return false;
            branch(flow, instruction->mnemonic, target, next);
            now->tested = -1;
            return true;
        }
        forget_written(flow, instruction, operand);
        break;
    }
    now->pc = next;
    return true;
}

static bool anything_left(const struct state *state)
{
    for (int i = 0; i < REGISTERS; i++)
        if (state->reg[i].kind == BLOCK)
            return true;
    for (size_t i = 0; i < state->slots; i++)
        if (state->slot[i].value.kind == BLOCK)
            return true;
    return false;
}

static bool was_seen(struct flow *flow, uint64_t pc)
{
    for (size_t i = 0; i < flow->seen_count; i++)
        if (flow->seen[i] == pc)
            return true;
    flow->seen[flow->seen_count++] = pc;
    return false;
}

static void follow_path(struct flow *flow)
{
    const struct hw_function *function = flow->function;
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
    while (flow->seen_count < STEPS_MOST && anything_left(&flow->now)) {
        const uint64_t pc = flow->now.pc;
        if (!within_function(function, pc) || pc < function->code_start ||
            pc - function->code_start >= function->code_size || was_seen(flow, pc))
            return;
        look_at_registers(flow);
        const uint64_t at = pc - function->code_start;
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&flow->decoder, function->code + at, function->code_size - at,
                                                 &instruction, operand)) ||
            !step(flow, &instruction, operand))
            return;
    }
}

/* What registers point to before the call: the code of the function is read in its order. What comes behind a jump
 * that is always taken belongs to another path. */
static void approach(struct flow *flow, uint64_t address)
{
    const struct hw_function *function = flow->function;
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
    struct state *now = &flow->now;
    for (size_t i = 0; i < function->ranges; i++)
        if (address >= function->low[i] && address < function->high[i])
            now->pc = function->low[i];
    if (now->pc < function->code_start || address - now->pc > APPROACH_MOST ||
        address - function->code_start > function->code_size) {
        now->pc = address;
        return;
    }
    while (now->pc < address) {
        const uint64_t pc = now->pc;
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&flow->decoder, function->code + (pc - function->code_start),
                                                 address - pc, &instruction, operand)) ||
            !step(flow, &instruction, operand) || instruction.mnemonic == ZYDIS_MNEMONIC_JMP)
            memset(now->reg, 0, sizeof now->reg);
        now->pc = pc + (instruction.length ? instruction.length : 1);
    }
    flow->waiting_count = flow->branches = 0;
    now->pc = address;
    now->tested = -1;
    for (int i = 0; i < REGISTERS; i++)
        if (i != 3 && i != RBP && i < 12) /* all but those that functions preserve */
            now->reg[i].kind = NOTHING;
}

void hw_flow_follow(struct hw_function *function, uint64_t address, const struct hw_flow_sink *sink)
{
    struct flow flow = {.function = function, .sink = sink, .call = address - 1, .now = {.pc = address, .tested = -1}};
    ZydisDecoderInit(&flow.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    approach(&flow, address);
    flow.now.reg[RAX] = (struct value){.kind = BLOCK};
    follow_path(&flow);
    while (flow.waiting_count) {
        flow.now = flow.waiting[--flow.waiting_count];
        follow_path(&flow);
    }
}
