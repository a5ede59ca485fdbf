/* decode.c - which memory the next instruction touches: prefixes, registers, addresses. See decode.h. */
#include "base/arch/x86_64/decode.h"

#include "base/arch/x86_64/forms.inc"

enum { RAX = 0, RCX = 1, RBX = 3, RSP = 4, RBP = 5, RSI = 6, RDI = 7 };
enum { FLAG_DIRECTION = 1u << 10 };

struct instruction {
    const uint8_t *code;
    size_t size, at;
    bool cut; /* the bytes do not suffice */
    /* prefixes */
    bool size_16, address_32;
    uint8_t repeat; /* 0, 1: F3, 2: F2 */
    uint8_t segment;
    bool wide;                               /* REX.W, VEX.W */
    uint8_t reg_high, index_high, base_high; /* 8 where the bit is set */
    uint8_t index_highest;                   /* EVEX: 16 */
    bool vex, evex;
    uint8_t length, mask, vvvv;
    bool broadcast;
    unsigned map, opcode;
    /* ModRM */
    uint8_t mod, reg, rm;
    const struct hw_form *form;
    /* the address, without an index that is a vector */
    uint64_t address;
    bool stack, thread;
    uint8_t vector_index, scale;
};

static uint8_t next_byte(struct instruction *in)
{
    if (in->at >= in->size) {
        in->cut = true;
        return 0;
    }
    return in->code[in->at++];
}

static int64_t next_signed(struct instruction *in, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)next_byte(in) << (8 * i);
    unsigned shift = 64 - 8 * bytes;
    return (int64_t)(value << shift) >> shift;
}

/* ---- prefixes and opcode ---- */

static void read_vex(struct instruction *in, uint8_t first, unsigned *page)
{
    uint8_t one = next_byte(in), pp, two;
    in->vex = true;
    in->reg_high = one & 0x80 ? 0 : 8;
    in->map = 1;
    two = one;
    if (first == 0xc4) {
        in->index_high = one & 0x40 ? 0 : 8;
        in->base_high = one & 0x20 ? 0 : 8;
        in->map = one & 31;
        two = next_byte(in);
        in->wide = two & 0x80;
    }
    in->vvvv = (uint8_t)(~(two >> 3) & 15);
    in->length = two >> 2 & 1;
    pp = two & 3;
    in->opcode = next_byte(in);
    *page = in->map >= 1 && in->map <= 3 ? hw_form_page_vex(in->map, pp, in->wide, in->length) : HW_FORM_PAGES;
}

static void read_evex(struct instruction *in, unsigned *page)
{
    uint8_t one = next_byte(in), two = next_byte(in), three = next_byte(in);
    in->vex = in->evex = true;
    in->reg_high = one & 0x80 ? 0 : 8;
    in->index_high = one & 0x40 ? 0 : 8;
    in->base_high = one & 0x20 ? 0 : 8;
    in->map = one & 7;
    in->wide = two & 0x80;
    in->vvvv = (uint8_t)(~(two >> 3) & 15);
    in->index_highest = three & 8 ? 0 : 16; /* V': of an index that is a vector */
    in->length = three >> 5 & 3;
    in->broadcast = three & 0x10;
    in->mask = three & 7;
    in->opcode = next_byte(in);
    bool known = (in->map >= 1 && in->map <= 3) || in->map == 5 || in->map == 6;
    if (in->length == 3) /* of registers alone: a way of rounding */
        in->length = 2;
    *page = known ? hw_form_page_evex(in->map, two & 3, in->wide, in->length, in->broadcast) : HW_FORM_PAGES;
}

/* Up to and with the opcode; the page of the tables that it is in, HW_FORM_PAGES when it is in none. */
static unsigned read_opcode(struct instruction *in)
{
    uint8_t byte, rex = 0;
    for (;;) {
        byte = next_byte(in);
        if ((byte & 0xf0) == 0x40) {
            rex = byte;
            if (in->at > 14)
                return HW_FORM_PAGES;
            continue;
        }
        if (byte == 0x66)
            in->size_16 = true;
        else if (byte == 0x67)
            in->address_32 = true;
        else if (byte == 0xf3 || byte == 0xf2)
            in->repeat = byte == 0xf3 ? 1 : 2;
        else if (byte == 0x64 || byte == 0x65)
            in->segment = byte;
        else if (byte != 0xf0 && byte != 0x26 && byte != 0x2e && byte != 0x36 && byte != 0x3e)
            break;
        rex = 0; /* it counts only directly before the opcode */
        if (in->cut || in->at > 14)
            return HW_FORM_PAGES;
    }
    unsigned page = HW_FORM_PAGES;
    if (byte == 0xc4 || byte == 0xc5) {
        read_vex(in, byte, &page);
        return page;
    }
    if (byte == 0x62) {
        read_evex(in, &page);
        return page;
    }
    in->wide = rex & 8;
    in->reg_high = rex & 4 ? 8 : 0;
    in->index_high = rex & 2 ? 8 : 0;
    in->base_high = rex & 1 ? 8 : 0;
    if (byte == 0x0f) {
        in->map = 1;
        byte = next_byte(in);
        if (byte == 0x38 || byte == 0x3a) {
            in->map = byte == 0x38 ? 2 : 3;
            byte = next_byte(in);
        }
    }
    in->opcode = byte;
    return hw_form_page_legacy(in->map, in->size_16, in->repeat, in->wide);
}

/* ---- addresses ---- */

static uint64_t cut_to_address(const struct instruction *in, uint64_t address)
{
    return in->address_32 ? (uint32_t)address : address;
}

static uint64_t segment_base(struct instruction *in, const struct hw_machine *machine)
{
    in->thread = in->segment != 0;
    return in->segment == 0x64 ? machine->fs : in->segment == 0x65 ? machine->gs : 0;
}

static void read_address(struct instruction *in, const struct hw_machine *machine)
{
    unsigned base = in->rm, index = 4, scale = 0;
    bool has_base = true, relative = false, vector = in->form->flags & HW_FORM_VSIB;
    if (in->rm == 4) {
        uint8_t sib = next_byte(in);
        scale = sib >> 6;
        index = (sib >> 3 & 7u) | in->index_high;
        base = sib & 7;
    }
    if (in->mod == 0 && base == 5) {
        has_base = false;
        relative = in->rm == 5;
    }
    base |= in->base_high;
    int64_t displacement = 0;
    if (in->mod == 1) {
        displacement = next_signed(in, 1);
        if (in->evex)
            displacement *= 1 << in->form->scale;
    } else if (in->mod == 2 || !has_base) {
        displacement = next_signed(in, 4);
    }
    uint64_t address = (uint64_t)displacement;
    if (has_base)
        address += machine->general[base];
    if (relative)
        address += machine->pc + in->at + in->form->immediate;
    if (vector) {
        in->vector_index = (uint8_t)(index | in->index_highest);
        in->scale = (uint8_t)scale;
    } else if (in->rm == 4 && index != 4) {
        address += machine->general[index] << scale;
    }
    in->stack = has_base && base == RSP;
    if (!vector)
        address = cut_to_address(in, address);
    in->address = address + segment_base(in, machine);
}

/* ---- vector registers ---- */

enum { PART_SSE = 1, PART_YMM = 2, PART_MASK = 5, PART_ZMM = 6, PART_HIGH_ZMM = 7 };

static uint64_t little_endian(const uint8_t *bytes, unsigned size)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < size; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

/* SIZE bytes at OFFSET of vector register NUMBER; what is not kept is zero. */
static uint64_t vector_part(const struct hw_machine *machine, unsigned number, unsigned offset, unsigned size)
{
    const uint8_t *area = machine->vectors;
    unsigned part, where;
    if (!area)
        return 0;
    if (number >= 16) {
        part = PART_HIGH_ZMM;
        where = machine->high_zmm_offset ? machine->high_zmm_offset + (number - 16) * 64 + offset : 0;
    } else if (offset < 16) {
        part = PART_SSE;
        where = 160 + number * 16 + offset;
    } else if (offset < 32) {
        part = PART_YMM;
        where = machine->ymm_offset ? machine->ymm_offset + number * 16 + offset - 16 : 0;
    } else {
        part = PART_ZMM;
        where = machine->zmm_offset ? machine->zmm_offset + number * 32 + offset - 32 : 0;
    }
    return where && machine->present >> part & 1 ? little_endian(area + where, size) : 0;
}

static uint64_t mask_register(const struct hw_machine *machine, unsigned number)
{
    if (!machine->vectors || !machine->mask_offset || !(machine->present >> PART_MASK & 1))
        return 0;
    return little_endian(machine->vectors + machine->mask_offset + number * 8, 8);
}

/* ---- what is touched ---- */

static void add_touch(struct hw_decoded *decoded, const struct instruction *in, uint64_t address, uint32_t size,
                      uint32_t direction)
{
    if (decoded->count < HW_TOUCHES_MOST)
        decoded->touch[decoded->count++] = (struct hw_touch){
            .address = address,
            .size = size,
            .flags = direction | (in->stack ? HW_TOUCH_STACK : 0) | (in->thread ? HW_TOUCH_THREAD : 0),
        };
}

static uint32_t direction_of(const struct hw_form *form)
{
    return (form->flags & HW_FORM_READ ? HW_TOUCH_READ : 0) | (form->flags & HW_FORM_WRITE ? HW_TOUCH_WRITE : 0);
}

/* AVX and AVX2: vmaskmov and vpmaskmov, gathers. The sign bits of a vector are the mask. */
static bool vector_is_mask(const struct instruction *in)
{
    if (!in->vex || in->evex || in->map != 2)
        return false;
    return (in->opcode >= 0x2c && in->opcode <= 0x2f) || in->opcode == 0x8c || in->opcode == 0x8e ||
           (in->form->flags & HW_FORM_VSIB);
}

static bool lane_is_on(const struct instruction *in, const struct hw_machine *machine, unsigned lane, unsigned element)
{
    if (vector_is_mask(in))
        return vector_part(machine, in->vvvv, lane * element + element - 1, 1) >> 7;
    return mask_register(machine, in->mask) >> lane & 1;
}

static void add_lanes(struct hw_decoded *decoded, const struct instruction *in, const struct hw_machine *machine)
{
    const struct hw_form *form = in->form;
    unsigned element = form->element ? form->element : 4, vector = 16u << in->length, lanes;
    bool gathers = form->flags & HW_FORM_VSIB;
    /* vpexpand, vpcompress: the lanes that are on lie one behind the other. */
    bool packed = in->evex && in->map == 2 &&
                  ((in->opcode >= 0x88 && in->opcode <= 0x8b) || in->opcode == 0x62 || in->opcode == 0x63);
    if (gathers)
        lanes = vector / (form->index > element ? form->index : element);
    else
        lanes = form->size / element;
    for (unsigned lane = 0, used = 0; lane < lanes; lane++) {
        if (!lane_is_on(in, machine, lane, element))
            continue;
        uint64_t address = in->address + (packed ? used : lane) * element;
        if (gathers) {
            uint64_t index = vector_part(machine, in->vector_index, lane * form->index, form->index);
            if (form->index == 4)
                index = (uint64_t)(int64_t)(int32_t)index;
            address = cut_to_address(in, in->address + (index << in->scale));
        }
        add_touch(decoded, in, address, element, direction_of(form));
        used++;
    }
}

static void add_memory(struct hw_decoded *decoded, struct instruction *in, const struct hw_machine *machine)
{
    const struct hw_form *form = in->form;
    bool masked = (in->evex && in->mask && !in->broadcast) || vector_is_mask(in);
    uint32_t size = form->size;
    /* bt, bts, btr and btc with a register reach beyond their operand. */
    if (in->map == 1 && !in->vex &&
        (in->opcode == 0xa3 || in->opcode == 0xab || in->opcode == 0xb3 || in->opcode == 0xbb)) {
        uint64_t bit = machine->general[in->reg | in->reg_high];
        int64_t offset = size == 8 ? (int64_t)bit : size == 4 ? (int32_t)bit : (int16_t)bit;
        unsigned log = size == 8 ? 3 : size == 4 ? 2 : 1;
        in->address = cut_to_address(in, in->address + (uint64_t)((offset >> (log + 3)) * (int64_t)(1 << log)));
    }
    if (masked && (machine->vectors || !in->evex))
        add_lanes(decoded, in, machine);
    else
        add_touch(decoded, in, in->address, size, direction_of(form));
    /* movdir64b, enqcmd: their other operand in memory is where a register points. */
    if (in->map == 2 && !in->vex && in->opcode == 0xf8)
        add_touch(decoded, in, cut_to_address(in, machine->general[in->reg | in->reg_high]), 64, HW_TOUCH_WRITE);
}

/* ---- instructions whose addresses are not in ModRM ---- */

static bool string_instruction(struct hw_decoded *decoded, struct instruction *in, const struct hw_machine *machine)
{
    unsigned opcode = in->opcode, size = opcode & 1 ? (in->wide ? 8 : in->size_16 ? 2 : 4) : 1;
    bool source, destination, stores;
    if (in->map || in->vex)
        return false;
    switch (opcode & ~1u) {
    case 0xa4: /* movs */
        source = destination = stores = true;
        break;
    case 0xa6: /* cmps */
        source = destination = true;
        stores = false;
        break;
    case 0xaa: /* stos */
        source = false;
        destination = stores = true;
        break;
    case 0xac: /* lods */
        source = true;
        destination = stores = false;
        break;
    case 0xae: /* scas */
        source = stores = false;
        destination = true;
        break;
    default:
        return false;
    }
    decoded->iterations = 1;
    decoded->backward = machine->flags & FLAG_DIRECTION;
    if (in->repeat) {
        decoded->next = HW_NEXT_REPEATED;
        decoded->iterations = in->address_32 ? (uint32_t)machine->general[RCX] : machine->general[RCX];
        if (!decoded->iterations)
            return true;
    }
    if (source)
        add_touch(decoded, in, cut_to_address(in, machine->general[RSI]) + segment_base(in, machine), size,
                  HW_TOUCH_READ);
    in->thread = false;
    if (destination)
        add_touch(decoded, in, cut_to_address(in, machine->general[RDI]), size,
                  stores ? HW_TOUCH_WRITE : HW_TOUCH_READ);
    return true;
}

static void other_implicit(struct hw_decoded *decoded, struct instruction *in, const struct hw_machine *machine)
{
    if (in->map == 0 && !in->vex && in->opcode == 0xd7) { /* xlat */
        uint64_t address = machine->general[RBX] + (machine->general[RAX] & 0xff);
        add_touch(decoded, in, cut_to_address(in, address) + segment_base(in, machine), 1, HW_TOUCH_READ);
    } else if (in->map == 1 && in->opcode == 0xf7 && in->mod == 3 && !in->evex) { /* maskmovdqu, maskmovq */
        uint64_t address = cut_to_address(in, machine->general[RDI]) + segment_base(in, machine);
        if (!in->size_16 && !in->vex) { /* MMX registers are not read: all bytes */
            add_touch(decoded, in, address, 8, HW_TOUCH_WRITE);
            return;
        }
        unsigned first = 16, last = 0;
        for (unsigned i = 0; i < 16; i++)
            if (vector_part(machine, in->rm | in->base_high, i, 1) >> 7) {
                first = first < i ? first : i;
                last = i;
            }
        if (first < 16)
            add_touch(decoded, in, address + first, last - first + 1, HW_TOUCH_WRITE);
    }
}

/* mov between al/ax/eax/rax and an absolute address */
static void absolute_move(struct hw_decoded *decoded, struct instruction *in, const struct hw_machine *machine)
{
    uint64_t address = in->address_32 ? (uint32_t)next_signed(in, 4) : (uint64_t)next_signed(in, 8);
    unsigned size = !(in->opcode & 1) ? 1 : in->wide ? 8 : in->size_16 ? 2 : 4;
    in->at -= in->form->immediate; /* which the address is to the tables */
    if (!in->cut)
        add_touch(decoded, in, address + segment_base(in, machine), size,
                  in->opcode < 0xa2 ? HW_TOUCH_READ : HW_TOUCH_WRITE);
}

/* xgetbv, xtest, rdpkru, rdtscp */
static bool is_harmless_system(const struct instruction *in)
{
    unsigned which = in->reg << 3 | in->rm;
    return which == 0x10 || which == 0x16 || which == 0x2e || which == 0x39;
}

/* Stepping over these would show the trap flag to the program, set it for good, or leave for where there is no coming
 * back from. */
static bool is_delicate(const struct instruction *in)
{
    unsigned opcode = in->opcode;
    if (in->vex)
        return false;
    if (in->map == 0)
        switch (opcode) {
        case 0x9c: /* pushf */
        case 0x9d: /* popf */
        case 0xca: /* far return */
        case 0xcb:
        case 0xcc: /* int3 */
        case 0xcd: /* int */
        case 0xce:
        case 0xcf: /* iret */
        case 0xf1: /* int1 */
        case 0x17:
        case 0x8e: /* mov to a segment register */
            return true;
        case 0xc7: /* xbegin */
        case 0xc6: /* xabort */
            return in->reg == 7;
        case 0xff: /* far call, far jump */
            return in->reg == 3 || in->reg == 5;
        default:
            return opcode >= 0x6c && opcode <= 0x6f; /* ins, outs */
        }
    if (in->map == 1)
        return opcode == 0x34 || opcode == 0x35 || opcode == 0x07 ||
               (opcode == 0x01 && in->mod == 3 && !is_harmless_system(in)) || /* enclu, vmcall, wrpkru … */
               (opcode == 0xae && in->mod == 3 && in->repeat == 1 && in->reg >= 2 && in->reg <= 3) || /* wrfsbase */
               opcode == 0xa1 || opcode == 0xa9 || opcode == 0xb2 || opcode == 0xb4 || opcode == 0xb5;
    return false;
}

void hw_decode(const uint8_t *code, size_t size, const struct hw_machine *machine, struct hw_decoded *decoded)
{
    struct instruction in = {.code = code, .size = size < 15 ? size : 15};
    decoded->next = HW_NEXT_UNKNOWN;
    decoded->count = 0;
    decoded->length = 0;
    decoded->iterations = 0;
    decoded->backward = false;
    decoded->stack = 0;
    unsigned page = read_opcode(&in);
    if (in.cut || page == HW_FORM_PAGES)
        return;
    const uint16_t *row = form_rows[form_pages[form_page_index[page]][in.opcode]];
    in.form = &forms[row[0]];
    for (unsigned i = 1; i < 8 && !(in.form->flags & HW_FORM_VALID); i++)
        in.form = &forms[row[i]];
    bool has_modrm = in.form->flags & HW_FORM_MODRM;
    decoded->next = HW_NEXT_PLAIN;
    if (has_modrm) {
        uint8_t modrm = next_byte(&in);
        in.mod = modrm >> 6;
        in.reg = modrm >> 3 & 7;
        in.rm = modrm & 7;
        in.form = &forms[row[in.reg]];
    }
    decoded->stack = in.form->stack;
    if (in.map == 1 && in.opcode == 0x05 && !in.vex)
        decoded->next = HW_NEXT_SYSCALL;
    else if (is_delicate(&in))
        decoded->next = HW_NEXT_DELICATE;
    else if (!(in.form->flags & HW_FORM_VALID) && !(in.mod == 3 && has_modrm))
        decoded->next = HW_NEXT_UNKNOWN;
    else if (string_instruction(decoded, &in, machine))
        ; /* that is all */
    else if (in.map == 0 && !in.vex && in.opcode >= 0xa0 && in.opcode <= 0xa3)
        absolute_move(decoded, &in, machine);
    else if (has_modrm && in.mod != 3) {
        read_address(&in, machine);
        if ((in.form->flags & HW_FORM_MEMORY) && !in.cut)
            add_memory(decoded, &in, machine);
    } else {
        other_implicit(decoded, &in, machine);
    }
    decoded->length = (uint32_t)in.at + in.form->immediate;
    if (in.cut) {
        decoded->next = HW_NEXT_UNKNOWN;
        decoded->count = 0;
    }
}
