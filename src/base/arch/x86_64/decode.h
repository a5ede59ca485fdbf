/* decode.h - which memory the next instruction touches.
 *
 * For the sampler of accesses: no allocation, no lock, no system call, safe in signal handlers. Prefixes, registers and
 * addresses are worked out here; what an opcode does comes from tables that are made from Zydis's when Heapwise is
 * built (make_forms.c, forms.inc). */
#ifndef HW_RUNTIME_DECODE_H
#define HW_RUNTIME_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the tables ---- */

enum hw_form_flags {
    HW_FORM_VALID = 1,
    HW_FORM_MODRM = 2,
    HW_FORM_MEMORY = 4, /* its operand in memory, if ModRM says that there is one, is read or written: */
    HW_FORM_READ = 8,
    HW_FORM_WRITE = 16,
    HW_FORM_VSIB = 32, /* gathers and scatters */
};
enum { HW_FORM_STACK_READ = 1, HW_FORM_STACK_WRITE = 2 };

struct hw_form {
    uint8_t flags;     /* enum hw_form_flags */
    uint8_t stack;     /* what it does to the stack beside: push, call, … */
    uint16_t size;     /* bytes of the operand in memory */
    uint8_t immediate; /* bytes that follow the address */
    uint8_t element;   /* bytes of an element: of what a mask switches on and off */
    uint8_t index;     /* VSIB: bytes of an index */
    uint8_t scale;     /* EVEX: log2 of what 8-bit displacements are multiplied by */
};

/* A page for each combination of what changes the meaning of an opcode. */
#define HW_FORM_PAGES (48 + 48 + 240)
static inline unsigned hw_form_page_legacy(unsigned map, unsigned size, unsigned repeat, unsigned wide)
{
    return map * 12 + size * 6 + repeat * 2 + wide;
}
static inline unsigned hw_form_page_vex(unsigned map, unsigned pp, unsigned wide, unsigned length)
{
    return 48 + ((map - 1) * 4 + pp) * 4 + wide * 2 + length;
}
static inline unsigned hw_form_page_evex(unsigned map, unsigned pp, unsigned wide, unsigned length, unsigned broadcast)
{
    unsigned m = map > 3 ? map - 2 : map - 1; /* 1, 2, 3, 5, 6 */
    return 96 + ((m * 4 + pp) * 2 + wide) * 6 + length * 2 + broadcast;
}

/* ---- decoding ---- */

/* What the instruction needs of the thread's state. General registers by their number in encodings: rax, rcx, rdx, rbx,
 * rsp, rbp, rsi, rdi, r8 … */
struct hw_machine {
    uint64_t general[16];
    uint64_t pc, flags;
    uint64_t fs, gs;
    /* The XSAVE area of a signal frame, NULL: vector registers are not known. Offsets of its parts, 0: not there. */
    const uint8_t *vectors;
    uint64_t present; /* XSTATE_BV: parts that are not in it are zero */
    uint32_t ymm_offset, mask_offset, zmm_offset, high_zmm_offset;
};

enum hw_touch_flags {
    HW_TOUCH_READ = 1,
    HW_TOUCH_WRITE = 2,
    HW_TOUCH_STACK = 4,  /* addressed through the stack pointer */
    HW_TOUCH_THREAD = 8, /* through fs or gs */
};
struct hw_touch {
    uint64_t address;
    uint32_t size, flags;
};

enum hw_next {
    HW_NEXT_PLAIN,
    HW_NEXT_REPEATED, /* a string instruction with a repeat prefix; `iterations` says how often */
    HW_NEXT_SYSCALL,
    HW_NEXT_DELICATE, /* must not be stepped over: it shows or sets the trap flag, enters the kernel, … */
    HW_NEXT_UNKNOWN,
};

#define HW_TOUCHES_MOST 64
struct hw_decoded {
    enum hw_next next;
    uint32_t length;
    uint32_t count;      /* of touches */
    uint64_t iterations; /* repeated: as many as are left; `touch` is that of the first one */
    bool backward;       /* string instructions go down */
    uint8_t stack;       /* HW_FORM_STACK_…: pushes and pops, which are not in `touch` */
    struct hw_touch touch[HW_TOUCHES_MOST];
};

/* CODE holds the instruction at machine->pc; no more than its bytes are read, and never more than SIZE. */
void hw_decode(const uint8_t *code, size_t size, const struct hw_machine *machine, struct hw_decoded *decoded);

#endif
