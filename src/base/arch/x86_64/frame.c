/* frame.c - the frame of a function without unwind tables (hand-written assembly, mostly), from its instructions: what
 * is between a place in it and its `ret` says how far the return address is from the stack pointer, or from the frame
 * pointer, and where the caller's frame pointer was saved.
 *
 * Branches are followed both ways until some way reaches a `ret`: on all of them it finds the same stack. Calls come
 * back with the stack pointer as it was. What else changes the stack pointer ends a way. A way may be wrong where a
 * call does not return (what follows it is other code): callers check that a return address is there
 * (hw_arch_is_behind_call). */
#include "base/arch/x86_64/arch.h"

#include "base/arch/x86_64/decode.h"

#define WAYS_MOST  16
#define STEPS_MOST 4096

enum { RSP = 4, RBP = 5 };

struct way {
    const uint8_t *at;
    bool from_fp; /* the stack pointer is the frame pointer's value at the beginning + offset, else its own */
    int64_t offset;
    bool fp_loaded;  /* the frame pointer has been loaded */
    bool fp_from_fp; /* from there */
    int64_t fp_offset;
};

/* The parts of an instruction of a byte or two that matter here. */
struct parts {
    const uint8_t *opcode, *operand; /* operand: ModRM, or what else follows the opcode */
    bool wide, rex_b, rex_r, two_bytes, vector;
};

static struct parts parts_of(const uint8_t *at, const uint8_t *end)
{
    struct parts parts = {0};
    while (at < end && (*at == 0x66 || *at == 0xf2 || *at == 0xf3 || *at == 0x2e || *at == 0x3e || *at == 0x26 ||
                        *at == 0x36 || *at == 0x64 || *at == 0x65 || *at == 0xf0))
        at++;
    if (at < end && (*at & 0xf0) == 0x40) {
        parts.wide = *at & 8;
        parts.rex_r = *at & 4;
        parts.rex_b = *at++ & 1;
    }
    parts.vector = at < end && (*at == 0xc4 || *at == 0xc5 || *at == 0x62);
    parts.two_bytes = at + 1 < end && *at == 0x0f;
    parts.opcode = parts.two_bytes ? at + 1 : at;
    parts.operand = parts.opcode + 1;
    return parts;
}

static int64_t signed_at(const uint8_t *at, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return (int64_t)(value << (64 - 8 * bytes)) >> (64 - 8 * bytes);
}

static void load_fp(struct way *way, bool from_fp, int64_t offset)
{
    way->fp_loaded = true;
    way->fp_from_fp = from_fp;
    way->fp_offset = offset;
}

/* The stack pointer becomes the frame pointer + OFFSET. */
static bool stack_from_fp(struct way *way, int64_t offset)
{
    if (way->fp_loaded)
        return false;
    way->from_fp = true;
    way->offset = offset;
    return true;
}

/* "disp(%rsp)" or "disp(%rbp)" at ModRM: true, with which and how far. */
static bool is_near_stack(const uint8_t *modrm, bool *of_fp, int64_t *displacement)
{
    const unsigned mod = *modrm >> 6, rm = *modrm & 7;
    *of_fp = rm == RBP;
    if (mod == 3 || (rm == RBP && mod == 0) || (rm != RBP && (rm != RSP || modrm[1] != 0x24)))
        return false;
    const uint8_t *at = modrm + 1 + (rm == RSP);
    *displacement = mod == 0 ? 0 : signed_at(at, mod == 1 ? 1 : 4);
    return true;
}

enum effect { GOES_ON, RETURNS, JUMPS, BRANCHES, STOPS };

/* What an instruction with ModRM does to the stack and frame pointers. */
static enum effect modrm_effect(const struct parts *parts, struct way *way)
{
    const uint8_t op = *parts->opcode, *modrm = parts->operand;
    const unsigned mod = *modrm >> 6, reg = (*modrm >> 3 & 7) | (parts->rex_r ? 8 : 0),
                   rm = (*modrm & 7) | (parts->rex_b ? 8 : 0);
    bool of_fp;
    int64_t displacement;
    switch (op) {
    case 0x81:
    case 0x83:
        if (mod != 3 || rm != RSP || reg == 7)
            return GOES_ON;
        displacement = signed_at(modrm + 1, op == 0x83 ? 1 : 4);
        way->offset += reg == 0 ? displacement : -displacement;
        return parts->wide && (reg == 0 || reg == 5) ? GOES_ON : STOPS;
    case 0x8d:
        if (reg != RSP)
            return GOES_ON;
        if (!parts->wide || parts->rex_b || !is_near_stack(modrm, &of_fp, &displacement))
            return STOPS;
        if (of_fp)
            return stack_from_fp(way, displacement) ? GOES_ON : STOPS;
        way->offset += displacement;
        return GOES_ON;
    case 0x89:
    case 0x8b: {
        const unsigned to = op == 0x89 ? rm : reg, from = op == 0x89 ? reg : rm;
        if (mod == 3 && to == RSP)
            return parts->wide && from == RBP && stack_from_fp(way, 0) ? GOES_ON : STOPS;
        if (mod == 3 && to == RBP && from == RSP)
            return STOPS; /* a frame begins: most likely that of another function */
        if (op == 0x8b && reg == RSP)
            return STOPS;
        if (op == 0x8b && mod != 3 && reg == RBP && parts->wide && !parts->rex_b &&
            is_near_stack(modrm, &of_fp, &displacement) && !(of_fp && way->fp_loaded))
            load_fp(way, of_fp || way->from_fp, of_fp ? displacement : way->offset + displacement);
        return GOES_ON;
    }
    case 0x8f:
        way->offset += 8;
        return GOES_ON;
    case 0xff:
        if ((reg & 7) == 6)
            way->offset -= 8;
        return (reg & 7) == 4 || (reg & 7) == 5 ? STOPS : GOES_ON; /* where an indirect jump goes is not known */
    }
    /* The other arithmetic: into the stack pointer? */
    if (op < 0x40 && op >> 3 != 7 && ((op & 7) == 1 ? mod == 3 && rm == RSP : (op & 7) == 3 && reg == RSP))
        return STOPS;
    return (op == 0x87 || op == 0x63 || op == 0xc7) && mod == 3 && (rm == RSP || (op != 0xc7 && reg == RSP)) ? STOPS
                                                                                                             : GOES_ON;
}

static enum effect effect_of(const struct parts *parts, struct way *way, const uint8_t *next, const uint8_t **target)
{
    const uint8_t op = *parts->opcode;
    if (parts->vector)
        return GOES_ON;
    if (parts->two_bytes) {
        if (op == 0x0b || op == 0xb9 || op == 0xff) /* ud2 */
            return STOPS;
        if (op == 0xa0 || op == 0xa8 || op == 0xa1 || op == 0xa9) /* push, pop fs, gs */
            way->offset += op & 1 ? 8 : -8;
        if (op >> 4 != 8)
            return GOES_ON;
        *target = next + signed_at(parts->operand, 4);
        return BRANCHES;
    }
    if (op >> 4 == 5) {
        if (op >= 0x58 && !parts->rex_b && (op & 7) == RBP)
            load_fp(way, way->from_fp, way->offset);
        way->offset += op >= 0x58 ? 8 : -8;
        return op == 0x58 + RSP && !parts->rex_b ? STOPS : GOES_ON;
    }
    if (op >> 4 == 7 || (op >= 0xe0 && op <= 0xe3)) {
        *target = next + signed_at(parts->operand, 1);
        return BRANCHES;
    }
    switch (op) {
    case 0xc2:
    case 0xc3:
        return RETURNS;
    case 0x68:
    case 0x6a:
    case 0x9c:
        way->offset -= 8;
        return GOES_ON;
    case 0x9d:
        way->offset += 8;
        return GOES_ON;
    case 0xc9: /* leave */
        if (!stack_from_fp(way, 8))
            return STOPS;
        load_fp(way, true, 0);
        return GOES_ON;
    case 0xe9:
    case 0xeb:
        *target = next + signed_at(parts->operand, op == 0xe9 ? 4 : 1);
        return JUMPS;
    case 0xc8: /* enter, hlt, int3, returns of other kinds */
    case 0xf4:
    case 0xcc:
    case 0xca:
    case 0xcb:
    case 0xcf:
    case 0x94:
        return STOPS;
    }
    return modrm_effect(parts, way);
}

bool hw_arch_frame_of(uintptr_t pc, uintptr_t start, uintptr_t end, struct hw_arch_frame *frame)
{
    struct way ways[WAYS_MOST] = {{.at = (const uint8_t *)pc}};
    unsigned count = 1, steps = 0;
    while (count) {
        struct way way = ways[--count];
        for (unsigned here = 0; here < STEPS_MOST / WAYS_MOST && steps < STEPS_MOST; here++, steps++) {
            static const struct hw_machine machine;
            struct hw_decoded decoded;
            const uint8_t *last = (const uint8_t *)end, *target = NULL;
            if (way.at < (const uint8_t *)start || way.at >= last)
                break;
            hw_decode(way.at, (size_t)(last - way.at) < 15 ? (size_t)(last - way.at) : 15, &machine, &decoded);
            if (!decoded.length || decoded.next == HW_NEXT_UNKNOWN || way.at + decoded.length > last)
                break;
            const struct parts parts = parts_of(way.at, way.at + decoded.length);
            way.at += decoded.length;
            const enum effect effect = effect_of(&parts, &way, way.at, &target);
            if (effect == STOPS)
                break;
            if (effect == RETURNS) {
                *frame = (struct hw_arch_frame){.from_fp = way.from_fp, .cfa = way.offset + 8};
                if (!way.fp_loaded)
                    return true;
                frame->fp_saved = way.fp_from_fp == way.from_fp;
                frame->fp_slot = way.fp_offset - frame->cfa;
                return frame->fp_saved; /* else one rule cannot express it */
            }
            if (effect == BRANCHES && count < WAYS_MOST) {
                ways[count] = way;
                ways[count++].at = target;
            }
            if (effect == JUMPS)
                way.at = target;
        }
    }
    return false;
}

bool hw_arch_is_behind_call(uintptr_t pc, uintptr_t start, uintptr_t *target)
{
    const uint8_t *at = (const uint8_t *)pc;
    const size_t before = pc - start;
    *target = 0;
    if (before >= 5 && at[-5] == 0xe8) {
        *target = pc + (uintptr_t)signed_at(at - 4, 4);
        return true;
    }
    for (unsigned length = 2; length <= 7 && length <= before; length++) {
        const uint8_t modrm = at[1 - (int)length];
        const unsigned mod = modrm >> 6, rm = modrm & 7, base = length > 2 ? at[2 - (int)length] & 7 : 0;
        if (at[-(int)length] != 0xff || (modrm >> 3 & 7) != 2)
            continue;
        unsigned bytes = 2 + (mod != 3 && rm == RSP);
        bytes += mod == 1 ? 1 : mod == 2 || (mod == 0 && (rm == RBP || (rm == RSP && base == RBP))) ? 4 : 0;
        if (bytes == length)
            return true;
    }
    return false;
}
