/* cfi.c - call frame information: .eh_frame evaluated in place.
 *
 * hw_cfi_rule compiles what holds at one pc into 64 bits (the caller caches it by pc, so that each call site is
 * compiled once); hw_cfi_step evaluates everything else: signal frames, other registers, DWARF expressions. The tables
 * are read where the loader mapped them: no lock, no memory, nothing of libc. References: DWARF 5 section 6.4; Linux
 * Standard Base, "Exception frames" (.eh_frame, .eh_frame_hdr). */
#include "runtime/core/modules.h"
#include "runtime/stacks/stacks.h"

/* ---- reading ---- */

struct reader {
    const uint8_t *at, *end;
    bool bad; /* read past the end */
};

static uint64_t read_bytes(struct reader *r, unsigned size)
{
    if ((size_t)(r->end - r->at) < size) {
        r->bad = true;
        r->at = r->end;
        return 0;
    }
    uint64_t value = 0;
    __builtin_memcpy(&value, r->at, size);
    r->at += size;
    return value;
}

static uint64_t read_uleb(struct reader *r)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = (uint8_t)read_bytes(r, 1);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80) || r->bad)
            return value;
    }
}

static int64_t read_sleb(struct reader *r)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = (uint8_t)read_bytes(r, 1);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while ((byte & 0x80) && !r->bad);
    if (shift < 64 && (byte & 0x40))
        value |= ~0ull << shift;
    return (int64_t)value;
}

/* DW_EH_PE pointer encodings: low nibble the format, then what it is relative to. */
static uint64_t read_encoded(struct reader *r, uint8_t encoding, uintptr_t data_base)
{
    uintptr_t place = (uintptr_t)r->at;
    uint64_t value;
    switch (encoding & 0x0f) {
    case 0x01:
        value = read_uleb(r);
        break;
    case 0x02:
        value = read_bytes(r, 2);
        break;
    case 0x03:
        value = read_bytes(r, 4);
        break;
    case 0x00:
    case 0x04:
    case 0x0c:
        value = read_bytes(r, 8);
        break;
    case 0x09:
        value = (uint64_t)read_sleb(r);
        break;
    case 0x0a:
        value = (uint64_t)(int16_t)read_bytes(r, 2);
        break;
    case 0x0b:
        value = (uint64_t)(int32_t)read_bytes(r, 4);
        break;
    default:
        r->bad = true;
        return 0;
    }
    switch (encoding & 0x70) {
    case 0x00:
        return value;
    case 0x10:
        return value + place;
    case 0x30:
        return value + data_base;
    default:
        r->bad = true;
        return 0;
    }
}

/* ---- finding the entry ---- */

struct entry {
    struct reader cie_program, fde_program;
    uintptr_t start, end; /* code that it covers */
    uint64_t code_align;
    int64_t data_align;
    uint64_t return_column;
    bool signal_frame;
};

static bool inside(const struct hw_module *module, uintptr_t address, size_t size)
{
    return address >= module->image_start && address <= module->image_end && size <= module->image_end - address;
}

static bool parse_cie(const struct hw_module *module, uintptr_t at, struct entry *entry, uint8_t *encoding)
{
    if (!inside(module, at, 4))
        return false;
    struct reader r = {(const uint8_t *)at, (const uint8_t *)module->image_end, false};
    uint64_t length = read_bytes(&r, 4);
    if (length == 0xffffffff)
        length = read_bytes(&r, 8);
    if (length > (size_t)(r.end - r.at))
        return false;
    r.end = r.at + length;
    read_bytes(&r, 4); /* id */
    uint8_t version = (uint8_t)read_bytes(&r, 1);
    const char *augmentation = (const char *)r.at;
    while (read_bytes(&r, 1) && !r.bad) {
    }
    entry->code_align = read_uleb(&r);
    entry->data_align = read_sleb(&r);
    entry->return_column = version == 1 ? read_bytes(&r, 1) : read_uleb(&r);
    *encoding = 0;
    if (*augmentation == 'z') {
        uint64_t size = read_uleb(&r);
        const uint8_t *program = r.at + size;
        for (const char *c = augmentation + 1; *c && !r.bad; c++) {
            if (*c == 'R')
                *encoding = (uint8_t)read_bytes(&r, 1);
            else if (*c == 'L')
                read_bytes(&r, 1);
            else if (*c == 'P') {
                uint8_t personality = (uint8_t)read_bytes(&r, 1);
                read_encoded(&r, personality & 0x0f, 0);
            } else if (*c == 'S')
                entry->signal_frame = true;
        }
        if (size > (size_t)(r.end - r.at) + size)
            return false;
        r.at = program;
    } else if (*augmentation)
        return false;
    entry->cie_program = r;
    return !r.bad && r.at <= r.end && entry->return_column == HW_REG_PC;
}

static bool parse_fde(const struct hw_module *module, uintptr_t at, struct entry *entry)
{
    if (!inside(module, at, 8))
        return false;
    struct reader r = {(const uint8_t *)at, (const uint8_t *)module->image_end, false};
    uint64_t length = read_bytes(&r, 4);
    if (length == 0xffffffff)
        length = read_bytes(&r, 8);
    if (length < 8 || length > (size_t)(r.end - r.at))
        return false;
    r.end = r.at + length;
    uintptr_t place = (uintptr_t)r.at;
    uint32_t back = (uint32_t)read_bytes(&r, 4);
    uint8_t encoding;
    *entry = (struct entry){0};
    if (!back || !parse_cie(module, place - back, entry, &encoding))
        return false;
    entry->start = read_encoded(&r, encoding, 0);
    entry->end = entry->start + read_encoded(&r, encoding & 0x0f, 0);
    uint64_t augmentation = read_uleb(&r); /* every CIE with 'z' has this; parse_cie takes no others but "" */
    if (augmentation > (size_t)(r.end - r.at))
        return false;
    r.at += augmentation;
    entry->fde_program = r;
    return !r.bad;
}

/* Of the program's own .eh_frame_hdr all is in the image; one that heapwise record made lies elsewhere, and is whole. */
static bool table_inside(const struct hw_module *module, uintptr_t address, size_t size)
{
    const uintptr_t header = (uintptr_t)module->eh_frame_hdr;
    return inside(module, header, 0) ? inside(module, address, size)
                                     : address - header <= module->eh_frame_hdr_size &&
                                           size <= module->eh_frame_hdr_size - (address - header);
}

/* The FDE of PC by the binary search table of .eh_frame_hdr. */
static bool find_entry(const struct hw_module *module, uintptr_t pc, struct entry *entry)
{
    const uint8_t *header = module->eh_frame_hdr;
    if (!header || !table_inside(module, (uintptr_t)header, 12) || header[0] != 1 || header[3] != 0x3b)
        return false;
    struct reader r = {header + 4, header + module->eh_frame_hdr_size, false};
    read_encoded(&r, header[1], (uintptr_t)header);
    uint64_t count = read_encoded(&r, header[2], (uintptr_t)header);
    const int32_t(*table)[2] = (const int32_t(*)[2])r.at;
    if (r.bad || !count || count > (size_t)(r.end - r.at) / 8 || !table_inside(module, (uintptr_t)table, count * 8))
        return false;
    uint64_t low = 0, high = count;
    while (high - low > 1) {
        uint64_t middle = (low + high) / 2;
        if (pc < (uintptr_t)header + (intptr_t)table[middle][0])
            high = middle;
        else
            low = middle;
    }
    return parse_fde(module, (uintptr_t)header + (intptr_t)table[low][1], entry) && pc >= entry->start &&
           pc < entry->end;
}

bool hw_cfi_covers(const struct hw_module *module, uintptr_t pc)
{
    struct entry entry;
    return find_entry(module, pc, &entry);
}

/* ---- running the program ---- */

enum how { SAME = 0, UNDEFINED, OFFSET, VAL_OFFSET, REGISTER, EXPRESSION, VAL_EXPRESSION };
struct rule {
    uint8_t how;
    union {
        int64_t value;             /* offset or register */
        const uint8_t *expression; /* block: length, then operations */
    };
};
struct row {
    bool cfa_is_expression;
    uint64_t cfa_register;
    int64_t cfa_offset;
    const uint8_t *cfa_expression;
    struct rule rule[HW_REG_COUNT];
};

static void set_rule(struct row *row, uint64_t reg, uint8_t how, int64_t value)
{
    if (reg < HW_REG_COUNT)
        row->rule[reg] = (struct rule){.how = how, .value = value};
}

static void set_expression(struct row *row, uint64_t reg, uint8_t how, const uint8_t *expression)
{
    if (reg < HW_REG_COUNT)
        row->rule[reg] = (struct rule){.how = how, .expression = expression};
}

static const uint8_t *skip_block(struct reader *r)
{
    const uint8_t *block = r->at;
    uint64_t length = read_uleb(r);
    if (length > (size_t)(r->end - r->at))
        r->bad = true;
    else
        r->at += length;
    return block;
}

#define REMEMBERED 4 /* small: this lies on the program's stack */
struct machine {
    struct row row, initial, stack[REMEMBERED];
    unsigned depth;
    uintptr_t location;
};

/* Executes instructions until PC is reached. */
static bool run(struct machine *m, struct reader *r, const struct entry *entry, uintptr_t pc)
{
    struct row *row = &m->row;
    while (r->at < r->end && !r->bad) {
        uint8_t op = (uint8_t)read_bytes(r, 1);
        uint64_t reg = op & 0x3f;
        switch (op >> 6) {
        case 1: /* advance_loc */
            m->location += reg * entry->code_align;
            if (m->location > pc)
                return true;
            continue;
        case 2: /* offset */
            set_rule(row, reg, OFFSET, (int64_t)read_uleb(r) * entry->data_align);
            continue;
        case 3: /* restore */
            if (reg < HW_REG_COUNT)
                row->rule[reg] = m->initial.rule[reg];
            continue;
        }
        switch (op) {
        case 0x00: /* nop */
            break;
        case 0x01: /* set_loc */
            m->location = read_bytes(r, 8);
            break;
        case 0x02: /* advance_loc1, 2, 4 */
            m->location += read_bytes(r, 1) * entry->code_align;
            break;
        case 0x03:
            m->location += read_bytes(r, 2) * entry->code_align;
            break;
        case 0x04:
            m->location += read_bytes(r, 4) * entry->code_align;
            break;
        case 0x05: /* offset_extended */
            reg = read_uleb(r);
            set_rule(row, reg, OFFSET, (int64_t)read_uleb(r) * entry->data_align);
            break;
        case 0x06: /* restore_extended */
            reg = read_uleb(r);
            if (reg < HW_REG_COUNT)
                row->rule[reg] = m->initial.rule[reg];
            break;
        case 0x07: /* undefined */
            set_rule(row, read_uleb(r), UNDEFINED, 0);
            break;
        case 0x08: /* same_value */
            set_rule(row, read_uleb(r), SAME, 0);
            break;
        case 0x09: /* register */
            reg = read_uleb(r);
            set_rule(row, reg, REGISTER, (int64_t)read_uleb(r));
            break;
        case 0x0a: /* remember_state */
            if (m->depth == REMEMBERED)
                return false;
            m->stack[m->depth++] = *row;
            break;
        case 0x0b: /* restore_state */
            if (!m->depth)
                return false;
            *row = m->stack[--m->depth];
            break;
        case 0x0c: /* def_cfa */
            row->cfa_is_expression = false;
            row->cfa_register = read_uleb(r);
            row->cfa_offset = (int64_t)read_uleb(r);
            break;
        case 0x0d: /* def_cfa_register */
            row->cfa_is_expression = false;
            row->cfa_register = read_uleb(r);
            break;
        case 0x0e: /* def_cfa_offset */
            row->cfa_offset = (int64_t)read_uleb(r);
            break;
        case 0x0f: /* def_cfa_expression */
            row->cfa_is_expression = true;
            row->cfa_expression = skip_block(r);
            break;
        case 0x10: /* expression */
            reg = read_uleb(r);
            set_expression(row, reg, EXPRESSION, skip_block(r));
            break;
        case 0x11: /* offset_extended_sf */
            reg = read_uleb(r);
            set_rule(row, reg, OFFSET, read_sleb(r) * entry->data_align);
            break;
        case 0x12: /* def_cfa_sf */
            row->cfa_is_expression = false;
            row->cfa_register = read_uleb(r);
            row->cfa_offset = read_sleb(r) * entry->data_align;
            break;
        case 0x13: /* def_cfa_offset_sf */
            row->cfa_offset = read_sleb(r) * entry->data_align;
            break;
        case 0x14: /* val_offset */
            reg = read_uleb(r);
            set_rule(row, reg, VAL_OFFSET, (int64_t)read_uleb(r) * entry->data_align);
            break;
        case 0x16: /* val_expression */
            reg = read_uleb(r);
            set_expression(row, reg, VAL_EXPRESSION, skip_block(r));
            break;
        case 0x2e: /* GNU_args_size */
            read_uleb(r);
            break;
        default:
            return false;
        }
        if (op >= 0x01 && op <= 0x04 && m->location > pc)
            return true;
    }
    return !r->bad;
}

static bool row_at(const struct entry *entry, uintptr_t pc, struct row *row)
{
    struct machine m;
    m.depth = 0;
    m.location = entry->start;
    m.row = (struct row){0};
    struct reader cie = entry->cie_program, fde = entry->fde_program;
    if (!run(&m, &cie, entry, UINTPTR_MAX))
        return false;
    m.initial = m.row;
    m.location = entry->start;
    if (!run(&m, &fde, entry, pc))
        return false;
    *row = m.row;
    return true;
}

/* ---- compiled rules ---- */

/* "*(rbp + n)": how gcc describes functions that realign their stack. */
static bool is_load_from_fp(const uint8_t *block, int64_t *offset)
{
    struct reader r = {block, block + 16, false};
    uint64_t length = read_uleb(&r);
    const uint8_t *end = r.at + length;
    if (length < 3 || length > 8 || read_bytes(&r, 1) != 0x70 + HW_REG_FP)
        return false;
    *offset = read_sleb(&r);
    return r.at + 1 == end && *r.at == 0x06; /* DW_OP_deref */
}

uint64_t hw_cfi_rule(const struct hw_module *module, uintptr_t pc)
{
    struct entry entry;
    struct row row;
    if (!find_entry(module, pc, &entry))
        return HW_RULE_NONE;
    if (entry.signal_frame || !row_at(&entry, pc, &row))
        return HW_RULE_COMPLEX;
    const struct rule *ra = &row.rule[HW_REG_PC], *fp = &row.rule[HW_REG_FP];
    if (ra->how == UNDEFINED)
        return HW_RULE_END;
    if (ra->how != OFFSET || ra->value != -8 || row.rule[HW_REG_SP].how != SAME)
        return HW_RULE_COMPLEX;
    uint64_t rule = HW_RULE_SIMPLE;
    int64_t offset = row.cfa_offset;
    if (row.cfa_is_expression) {
        if (!is_load_from_fp(row.cfa_expression, &offset))
            return HW_RULE_COMPLEX;
        rule |= 1 << 3 | 1 << 4;
    } else if (row.cfa_register == HW_REG_FP)
        rule |= 1 << 3;
    else if (row.cfa_register != HW_REG_SP)
        return HW_RULE_COMPLEX;
    if (fp->how == OFFSET && fp->value < 0 && -fp->value / 8 < 65536 && fp->value % 8 == 0)
        rule |= 1 << 5 | (uint64_t)(-fp->value / 8) << 16;
    else if (fp->how == EXPRESSION) {
        /* Realigned frames save the frame pointer at *(rbp + 0). */
        struct reader r = {fp->expression, fp->expression + 8, false};
        if (!(read_uleb(&r) == 2 && read_bytes(&r, 1) == 0x70 + HW_REG_FP && read_sleb(&r) == 0))
            return HW_RULE_COMPLEX;
        rule |= 1 << 6;
    } else if (fp->how != SAME)
        return HW_RULE_COMPLEX;
    if (offset != (int32_t)offset)
        return HW_RULE_COMPLEX;
    return rule | (uint64_t)(uint32_t)offset << 32;
}

/* ---- everything else: one step with all registers ---- */

static bool load(const struct hw_cfi_memory *memory, uint64_t address, uint64_t *value)
{
    if ((address & 7) || !memory->may_read(memory->closure, address))
        return false;
    *value = *(const uint64_t *)address;
    return true;
}

/* The operations that occur in call frame information. */
static bool evaluate(const uint8_t *block, const uint64_t *registers, uint64_t first, bool has_first,
                     const struct hw_cfi_memory *memory, uint64_t *result)
{
    uint64_t stack[32];
    unsigned n = 0;
    struct reader r = {block, block + 10, false};
    uint64_t length = read_uleb(&r);
    r.end = r.at + length;
    if (has_first)
        stack[n++] = first;
    while (r.at < r.end && !r.bad) {
        uint8_t op = (uint8_t)read_bytes(&r, 1);
        uint64_t a, b;
        if (n > 28)
            return false;
        if (op >= 0x30 && op <= 0x4f) { /* lit */
            stack[n++] = op - 0x30u;
            continue;
        }
        if (op >= 0x70 && op <= 0x8f) { /* breg */
            unsigned reg = op - 0x70u;
            if (reg >= HW_REG_COUNT)
                return false;
            stack[n++] = registers[reg] + (uint64_t)read_sleb(&r);
            continue;
        }
        static const uint8_t sizes[] = {1, 1, 2, 2, 4, 4, 8, 8};
        if (op >= 0x08 && op <= 0x0f) { /* const1u … const8s */
            unsigned size = sizes[op - 0x08];
            uint64_t value = read_bytes(&r, size);
            if ((op & 1) && size < 8)
                value = (uint64_t)((int64_t)(value << (64 - 8 * size)) >> (64 - 8 * size));
            stack[n++] = value;
            continue;
        }
        if (op == 0x10 || op == 0x11) {
            stack[n++] = op == 0x10 ? read_uleb(&r) : (uint64_t)read_sleb(&r);
            continue;
        }
        if (op == 0x96) /* nop */
            continue;
        if (!n)
            return false;
        a = stack[n - 1];
        switch (op) {
        case 0x06: /* deref */
            if (!load(memory, a, &stack[n - 1]))
                return false;
            continue;
        case 0x12: /* dup */
            stack[n++] = a;
            continue;
        case 0x13: /* drop */
            n--;
            continue;
        case 0x23: /* plus_uconst */
            stack[n - 1] = a + read_uleb(&r);
            continue;
        case 0x1f: /* neg */
            stack[n - 1] = -a;
            continue;
        case 0x20: /* not */
            stack[n - 1] = ~a;
            continue;
        }
        if (n < 2)
            return false;
        b = stack[n - 2]; /* b op a */
        n--;
        uint64_t *top = &stack[n - 1];
        switch (op) {
        case 0x1a:
            *top = b & a;
            break;
        case 0x1c:
            *top = b - a;
            break;
        case 0x1e:
            *top = b * a;
            break;
        case 0x21:
            *top = b | a;
            break;
        case 0x22:
            *top = b + a;
            break;
        case 0x24:
            *top = a < 64 ? b << a : 0;
            break;
        case 0x25:
            *top = a < 64 ? b >> a : 0;
            break;
        case 0x27:
            *top = b ^ a;
            break;
        case 0x29:
            *top = b == a;
            break;
        case 0x2a:
            *top = (int64_t)b >= (int64_t)a;
            break;
        case 0x2b:
            *top = (int64_t)b > (int64_t)a;
            break;
        case 0x2c:
            *top = (int64_t)b <= (int64_t)a;
            break;
        case 0x2d:
            *top = (int64_t)b < (int64_t)a;
            break;
        case 0x2e:
            *top = b != a;
            break;
        default:
            return false;
        }
    }
    if (!n || r.bad)
        return false;
    *result = stack[n - 1];
    return true;
}

static bool apply(const struct rule *rule, uint64_t old, uint64_t cfa, const uint64_t *registers,
                  const struct hw_cfi_memory *memory, uint64_t *value)
{
    uint64_t address;
    switch (rule->how) {
    case OFFSET:
        return load(memory, cfa + (uint64_t)rule->value, value);
    case VAL_OFFSET:
        *value = cfa + (uint64_t)rule->value;
        return true;
    case REGISTER:
        *value = (uint64_t)rule->value < HW_REG_COUNT ? registers[rule->value] : 0;
        return true;
    case EXPRESSION:
        return evaluate(rule->expression, registers, cfa, true, memory, &address) && load(memory, address, value);
    case VAL_EXPRESSION:
        return evaluate(rule->expression, registers, cfa, true, memory, value);
    case UNDEFINED:
        *value = 0;
        return true;
    default:
        *value = old;
        return true;
    }
}

enum hw_step hw_cfi_step(const struct hw_module *module, uintptr_t pc, uint64_t registers[HW_REG_COUNT],
                         const struct hw_cfi_memory *memory, bool *signal_frame)
{
    struct entry entry;
    struct row row;
    if (!find_entry(module, pc, &entry))
        return HW_STEP_NO_TABLE;
    if (!row_at(&entry, pc, &row))
        return HW_STEP_FAILED;
    *signal_frame = entry.signal_frame;
    if (row.rule[HW_REG_PC].how == UNDEFINED)
        return HW_STEP_END;
    uint64_t cfa;
    if (row.cfa_is_expression) {
        if (!evaluate(row.cfa_expression, registers, 0, false, memory, &cfa))
            return HW_STEP_FAILED;
    } else if (row.cfa_register < HW_REG_COUNT)
        cfa = registers[row.cfa_register] + (uint64_t)row.cfa_offset;
    else
        return HW_STEP_FAILED;
    uint64_t next[HW_REG_COUNT];
    for (int i = 0; i < HW_REG_COUNT; i++) {
        bool wanted = i == HW_REG_RBX || i == HW_REG_FP || i >= HW_REG_R12 || i == HW_REG_SP;
        next[i] = registers[i];
        if (i == HW_REG_SP && row.rule[i].how == SAME)
            next[i] = cfa;
        else if (!apply(&row.rule[i], registers[i], cfa, registers, memory, &next[i]) && wanted)
            return HW_STEP_FAILED;
    }
    for (int i = 0; i < HW_REG_COUNT; i++)
        registers[i] = next[i];
    return HW_STEP_OK;
}
