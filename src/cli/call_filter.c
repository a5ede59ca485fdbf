/* call_filter.c - see call_filter.h. */
#include "cli/call_filter.h"

#include <string.h>

struct machine {
    uint32_t a, x, memory[BPF_MEMWORDS];
};

static bool load(const struct hw_filtered_call *call, uint32_t offset, uint32_t *word)
{
    if (offset % 4 || offset >= sizeof call->data || call->unknown >> (offset / 4) & 1)
        return false;
    memcpy(word, (const char *)&call->data + offset, sizeof *word);
    return true;
}

/* False: the kernel has no such instruction. Division by 0 is the caller's. */
static bool calculate(struct machine *machine, unsigned code, uint32_t value)
{
    switch (BPF_OP(code)) {
    case BPF_ADD:
        machine->a += value;
        return true;
    case BPF_SUB:
        machine->a -= value;
        return true;
    case BPF_MUL:
        machine->a *= value;
        return true;
    case BPF_DIV:
        machine->a /= value;
        return true;
    case BPF_AND:
        machine->a &= value;
        return true;
    case BPF_OR:
        machine->a |= value;
        return true;
    case BPF_XOR:
        machine->a ^= value;
        return true;
    case BPF_LSH:
        machine->a <<= value & 31;
        return true;
    case BPF_RSH:
        machine->a >>= value & 31;
        return true;
    case BPF_NEG:
        machine->a = -machine->a;
        return true;
    default:
        return false;
    }
}

/* How many instructions it skips; -1: the kernel has no such jump. */
static int64_t jump(const struct machine *machine, const struct sock_filter *at)
{
    const uint32_t value = BPF_SRC(at->code) == BPF_X ? machine->x : at->k;
    switch (BPF_OP(at->code)) {
    case BPF_JA:
        return at->k;
    case BPF_JEQ:
        return machine->a == value ? at->jt : at->jf;
    case BPF_JGT:
        return machine->a > value ? at->jt : at->jf;
    case BPF_JGE:
        return machine->a >= value ? at->jt : at->jf;
    case BPF_JSET:
        return machine->a & value ? at->jt : at->jf;
    default:
        return -1;
    }
}

/* Loads, stores and moves. */
static bool move(struct machine *machine, const struct sock_filter *at, const struct hw_filtered_call *call)
{
    const bool in_memory = at->k < BPF_MEMWORDS;
    switch (at->code) {
    case BPF_LD | BPF_W | BPF_ABS:
        return load(call, at->k, &machine->a);
    case BPF_LD | BPF_W | BPF_LEN:
        machine->a = sizeof call->data;
        return true;
    case BPF_LDX | BPF_W | BPF_LEN:
        machine->x = sizeof call->data;
        return true;
    case BPF_LD | BPF_IMM:
        machine->a = at->k;
        return true;
    case BPF_LDX | BPF_IMM:
        machine->x = at->k;
        return true;
    case BPF_LD | BPF_MEM:
        machine->a = in_memory ? machine->memory[at->k] : 0;
        return in_memory;
    case BPF_LDX | BPF_MEM:
        machine->x = in_memory ? machine->memory[at->k] : 0;
        return in_memory;
    case BPF_ST:
    case BPF_STX:
        if (in_memory)
            machine->memory[at->k] = at->code == BPF_ST ? machine->a : machine->x;
        return in_memory;
    case BPF_MISC | BPF_TAX:
        machine->x = machine->a;
        return true;
    case BPF_MISC | BPF_TXA:
        machine->a = machine->x;
        return true;
    default:
        return false;
    }
}

bool hw_call_filter_run(const struct sock_filter *code, size_t count, const struct hw_filtered_call *call,
                        uint32_t *action)
{
    struct machine machine = {0};
    for (size_t i = 0; i < count; i++) {
        const struct sock_filter *at = &code[i];
        const unsigned kind = BPF_CLASS(at->code);
        const uint32_t value = BPF_SRC(at->code) == BPF_X ? machine.x : at->k;
        if (kind == BPF_RET) {
            *action = BPF_RVAL(at->code) == BPF_A ? machine.a : at->k;
            return true;
        }
        if (kind == BPF_ALU && BPF_OP(at->code) == BPF_DIV && !value) {
            *action = 0; /* as the kernel: the filter ends */
            return true;
        }
        if (kind == BPF_JMP) {
            const int64_t skipped = jump(&machine, at);
            if (skipped < 0)
                return false;
            i += (uint64_t)skipped;
        } else if (!(kind == BPF_ALU ? calculate(&machine, at->code, value) : move(&machine, at, call)))
            return false;
    }
    return false;
}

uint32_t hw_call_filter_stronger(uint32_t older, uint32_t newer)
{
    return (int32_t)(newer & SECCOMP_RET_ACTION_FULL) <= (int32_t)(older & SECCOMP_RET_ACTION_FULL) ? newer : older;
}
