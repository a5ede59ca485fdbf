/* patch.c - redirecting a function that calls reach directly, because it is linked into the executable.
 *
 * Its first bytes are replaced by a jump to the hook; the instructions that lay there are moved to a trampoline which
 * continues behind them: that is the way to the original. Only instructions that are understood are moved, and only
 * when nothing in the function jumps into them. Reference: Intel SDM volume 2, appendix A (opcode maps). */
#include "base/arch/x86_64/patch.h"
#include "base/sys.h"

#define JUMP_BYTES HW_ARCH_JUMP /* e9 rel32 */
#define TRAMPOLINE 128u         /* bytes for one function: moved code, jump back, jump to the hook */

/* ---- instruction lengths ---- */

struct instruction {
    uint8_t length;
    uint8_t opcode_at;   /* offset of the opcode's last byte */
    uint8_t map;         /* 0: one byte, 1: 0f, 2: 0f 38, 3: 0f 3a */
    uint8_t relative_at; /* offset of an address relative to the next instruction, 0 none */
    uint8_t relative_size;
    bool rip_operand; /* it is a memory operand's displacement, not a branch */
};

/* Immediate bytes and ModRM of the one-byte opcodes: bits 0-3 immediate, 4 ModRM, 5 operand-sized immediate (4),
 * 6 branch, 7 not understood. */
enum { M = 0x10, Z = 0x20, B = 0x40, X = 0x80 };

static uint8_t one_byte(uint8_t op)
{
    if (op < 0x40)
        return (uint8_t[]){M, M, M, M, 1, Z, X, X}[op & 7];
    if (op >= 0x50 && op <= 0x5f)
        return 0;
    if (op >= 0x70 && op <= 0x7f)
        return B | 1;
    if (op >= 0x84 && op <= 0x8f)
        return M;
    if (op >= 0x90 && op <= 0x9f)
        return op == 0x9a ? X : 0;
    if (op >= 0xb0 && op <= 0xb7)
        return 1;
    if (op >= 0xb8 && op <= 0xbf)
        return Z;
    if (op >= 0xd8 && op <= 0xdf)
        return M;
    static const struct {
        uint8_t op, form;
    } others[] = {
        {0x63, M},     {0x68, Z},     {0x69, M | Z}, {0x6a, 1},     {0x6b, M | 1}, {0x80, M | 1}, {0x81, M | Z},
        {0x83, M | 1}, {0xa4, 0},     {0xa5, 0},     {0xa8, 1},     {0xa9, Z},     {0xaa, 0},     {0xab, 0},
        {0xac, 0},     {0xad, 0},     {0xae, 0},     {0xaf, 0},     {0xc0, M | 1}, {0xc1, M | 1}, {0xc2, 2},
        {0xc3, 0},     {0xc6, M | 1}, {0xc7, M | Z}, {0xc9, 0},     {0xcc, 0},     {0xd0, M},     {0xd1, M},
        {0xd2, M},     {0xd3, M},     {0xe8, B | 4}, {0xe9, B | 4}, {0xeb, B | 1}, {0xf4, 0},     {0xf5, 0},
        {0xf6, M},     {0xf7, M},     {0xf8, 0},     {0xf9, 0},     {0xfc, 0},     {0xfd, 0},     {0xfe, M},
        {0xff, M},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].op == op)
            return others[i].form;
    return X;
}

static uint8_t two_byte(uint8_t op)
{
    if (op >= 0x80 && op <= 0x8f)
        return B | 4;
    if (op >= 0xc8 && op <= 0xcf)
        return 0;
    switch (op) {
    case 0x05:
    case 0x0b:
    case 0x31:
    case 0x77:
    case 0xa2:
        return 0;
    case 0x70:
    case 0x71:
    case 0x72:
    case 0x73:
    case 0xa4:
    case 0xac:
    case 0xba:
    case 0xc2:
    case 0xc4:
    case 0xc5:
    case 0xc6:
        return M | 1;
    case 0x06:
    case 0x07:
    case 0x08:
    case 0x09:
    case 0x0a:
    case 0x30:
    case 0x32:
    case 0x33:
    case 0x34:
    case 0x35:
    case 0x36:
    case 0x37:
    case 0xa0:
    case 0xa1:
    case 0xa8:
    case 0xa9:
    case 0xaa:
        return X;
    default:
        return M;
    }
}

static bool is_prefix(uint8_t byte)
{
    return byte == 0x66 || byte == 0x67 || byte == 0xf0 || byte == 0xf2 || byte == 0xf3 || byte == 0x2e ||
           byte == 0x36 || byte == 0x3e || byte == 0x26 || byte == 0x64 || byte == 0x65;
}

/* False when the instruction at CODE is not understood. */
static bool decode(const uint8_t *code, struct instruction *in)
{
    *in = (struct instruction){0};
    uint32_t at = 0;
    bool operand16 = false, wide = false;
    for (; is_prefix(code[at]); at++) {
        operand16 |= code[at] == 0x66;
        if (code[at] == 0x67 || at > 4)
            return false;
    }
    uint8_t form;
    if (code[at] == 0xc5 || code[at] == 0xc4) { /* VEX */
        in->map = code[at] == 0xc5 ? 1 : code[at + 1] & 0x1f;
        at += code[at] == 0xc5 ? 2 : 3;
        if (in->map < 1 || in->map > 3)
            return false;
    } else {
        if ((code[at] & 0xf0) == 0x40)
            wide = (code[at++] & 8) != 0;
        if (code[at] == 0x0f) {
            in->map = 1;
            at++;
            if (code[at] == 0x38 || code[at] == 0x3a)
                in->map = code[at++] == 0x38 ? 2 : 3;
        }
    }
    uint8_t op = code[at];
    in->opcode_at = (uint8_t)at++;
    form = in->map == 0 ? one_byte(op) : in->map == 1 ? two_byte(op) : in->map == 2 ? M : (uint8_t)(M | 1);
    if (form & X)
        return false;
    uint32_t immediate = form & 15;
    if (form & Z)
        immediate = op >= 0xb8 && op <= 0xbf && in->map == 0 && wide ? 8 : operand16 ? 2 : 4;
    if (form & M) {
        uint8_t modrm = code[at++], mod = modrm >> 6, rm = modrm & 7;
        if (in->map == 0 && (op == 0xf6 || op == 0xf7) && (modrm >> 3 & 7) < 2)
            immediate = op == 0xf6 ? 1 : operand16 ? 2 : 4;
        if (mod != 3 && rm == 4 && (code[at++] & 7) == 5 && mod == 0)
            at += 4;
        else if (mod == 0 && rm == 5) {
            in->relative_at = (uint8_t)at;
            in->relative_size = 4;
            in->rip_operand = true;
            at += 4;
        }
        at += mod == 1 ? 1 : mod == 2 ? 4 : 0;
    }
    if (form & B) {
        in->relative_at = (uint8_t)at;
        in->relative_size = (uint8_t)immediate;
    }
    in->length = (uint8_t)(at + immediate);
    return in->length <= 15;
}

static int64_t relative(const uint8_t *code, const struct instruction *in)
{
    int32_t value;
    if (in->relative_size == 1)
        return (int8_t)code[in->relative_at];
    __builtin_memcpy(&value, code + in->relative_at, 4);
    return value;
}

/* Does anything in the function branch into its first bytes, behind the first one? */
static bool branches_into_start(const uint8_t *code, size_t size)
{
    struct instruction in;
    for (size_t at = 0; at < size && decode(code + at, &in); at += in.length) {
        if (!in.relative_at || in.rip_operand)
            continue;
        int64_t to = (int64_t)at + in.length + relative(code + at, &in);
        if (to > 0 && to < (int64_t)JUMP_BYTES)
            return true;
    }
    return false;
}

/* ---- trampolines ---- */

static HW_KEPT struct {
    uint8_t *page; /* near the executable, so that 32-bit distances reach */
    uint32_t used;
    struct {
        uint8_t *target, *original;
        uint8_t jump[JUMP_BYTES];
    } done[64]; /* functions of one address (aliases) are redirected once */
    uint32_t count;
} near = {0};

uint8_t *hw_arch_page_near(const uint8_t *target)
{
    for (intptr_t step = 1; step < 1000; step++)
        for (int sign = -1; sign <= 1; sign += 2) {
            intptr_t hint = ((intptr_t)target + sign * step * 0x100000) & ~(intptr_t)(HW_PAGE - 1);
            if (hint < 0x10000)
                continue;
            long got = hw_mmap(hint, HW_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                               -1, 0);
            if (hw_sys_failed(got))
                continue;
            if (hw_arch_reaches(target, (void *)got))
                return (uint8_t *)got;
            hw_munmap(got, HW_PAGE);
        }
    return NULL;
}

static bool find_page(const uint8_t *target)
{
    if (near.page)
        return hw_arch_reaches(target, near.page) && near.used + TRAMPOLINE <= HW_PAGE;
    near.page = hw_arch_page_near(target);
    return near.page != NULL;
}

uint8_t *hw_arch_put_jump(uint8_t *at, const void *to)
{
    static const uint8_t jump[] = {0xff, 0x25, 0, 0, 0, 0};
    __builtin_memcpy(at, jump, sizeof jump);
    __builtin_memcpy(at + sizeof jump, &to, 8);
    return at + sizeof jump + 8;
}

/* Moves one instruction; the end of the copy, NULL when it cannot be moved. */
static uint8_t *move(const uint8_t *code, const struct instruction *in, uint8_t *to)
{
    if (!in->relative_at) {
        __builtin_memcpy(to, code, in->length);
        return to + in->length;
    }
    const uint8_t *goal = code + in->length + relative(code, in);
    if (in->relative_size == 1) { /* short branches become long ones */
        uint8_t op = code[in->opcode_at];
        if (op == 0xeb)
            *to++ = 0xe9;
        else {
            *to++ = 0x0f;
            *to++ = (uint8_t)(op + 0x10);
        }
        hw_arch_put32(to, goal - (to + 4));
        return hw_arch_reaches(to, goal) ? to + 4 : NULL;
    }
    __builtin_memcpy(to, code, in->length);
    if (!hw_arch_reaches(to + in->length, goal))
        return NULL;
    hw_arch_put32(to + in->relative_at, goal - (to + in->length));
    return to + in->length;
}

bool hw_arch_write_code(uint8_t *target, const uint8_t *bytes, size_t size)
{
    uintptr_t start = (uintptr_t)target & ~(HW_PAGE - 1), end = HW_ALIGN_UP((uintptr_t)target + size, HW_PAGE);
    if (hw_mprotect(start, end - start, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
        return false;
    __builtin_memcpy(target, bytes, size);
    hw_mprotect(start, end - start, PROT_READ | PROT_EXEC);
    return true;
}

void *hw_arch_patch_prepare(void *function, size_t size, const void *hook, const uint8_t **jump, const char **why)
{
    uint8_t *target = function;
    for (uint32_t i = 0; i < near.count; i++)
        if (near.done[i].target == target) {
            *jump = near.done[i].jump;
            return near.done[i].original;
        }
    if (near.count == sizeof near.done / sizeof *near.done || !find_page(target)) {
        *why = "there is no room for a trampoline near it";
        return NULL;
    }
    if (size && (size < JUMP_BYTES || branches_into_start(target, size))) {
        *why = "its first instructions cannot be moved";
        return NULL;
    }
    /* Executable all the time: other threads may run through the trampolines that are there already. */
    if (hw_mprotect(near.page, HW_PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
        *why = "its trampoline cannot be written";
        return NULL;
    }
    uint8_t *original = near.page + near.used, *to = original;
    size_t moved = 0;
    while (moved < JUMP_BYTES && to) {
        struct instruction in;
        uint8_t first = target[moved];
        if (!decode(target + moved, &in) ||
            (moved + in.length < JUMP_BYTES && (first == 0xc3 || first == 0xe9 || first == 0xeb))) {
            to = NULL;
            break;
        }
        to = move(target + moved, &in, to);
        moved += in.length;
    }
    if (to) {
        uint8_t *to_hook = hw_arch_put_jump(to, target + moved), *bytes = near.done[near.count].jump;
        hw_arch_put_jump(to_hook, hook);
        near.used += TRAMPOLINE;
        bytes[0] = 0xe9;
        hw_arch_put32(bytes + 1, to_hook - (target + JUMP_BYTES));
        near.done[near.count].target = target;
        near.done[near.count++].original = original;
        *jump = bytes;
    } else
        *why = "its first instructions cannot be moved";
    hw_mprotect(near.page, HW_PAGE, PROT_READ | PROT_EXEC);
    return to ? original : NULL;
}

void *hw_arch_patch(void *function, size_t size, const void *hook, const char **why)
{
    const uint32_t before = near.count;
    const uint8_t *jump;
    void *original = hw_arch_patch_prepare(function, size, hook, &jump, why);
    if (!original || near.count == before || hw_arch_write_code(function, jump, JUMP_BYTES))
        return original;
    near.count = before;
    *why = "its code cannot be written to";
    return NULL;
}

void hw_arch_patch_trampolines(uintptr_t *start, uintptr_t *end)
{
    *start = (uintptr_t)near.page;
    *end = *start + (near.page ? HW_PAGE : 0);
}
