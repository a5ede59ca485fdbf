/* test_decode.c - which memory an instruction touches: against Zydis, and against the processor itself.
 *
 * The decoder is the runtime's own source. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ucontext.h>

#include <Zydis/Zydis.h>
#include <cpuid.h>
#include <signal.h>

#include "base/arch/x86_64/decode.c"
#include "support/check.h"

static uint64_t random_state = 88172645463325252ull;

static uint64_t random_64(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* ---- against Zydis ---- */

static const ZydisRegister general_names[16] = {
    ZYDIS_REGISTER_RAX, ZYDIS_REGISTER_RCX, ZYDIS_REGISTER_RDX, ZYDIS_REGISTER_RBX,
    ZYDIS_REGISTER_RSP, ZYDIS_REGISTER_RBP, ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDI,
    ZYDIS_REGISTER_R8,  ZYDIS_REGISTER_R9,  ZYDIS_REGISTER_R10, ZYDIS_REGISTER_R11,
    ZYDIS_REGISTER_R12, ZYDIS_REGISTER_R13, ZYDIS_REGISTER_R14, ZYDIS_REGISTER_R15};

static uint64_t register_value(const struct hw_machine *machine, ZydisRegister name, uint64_t next)
{
    if (name == ZYDIS_REGISTER_RIP || name == ZYDIS_REGISTER_EIP)
        return next;
    for (int i = 0; i < 16; i++)
        if (ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, name) == general_names[i])
            return machine->general[i];
    return 0;
}

static uint64_t address_by_zydis(const struct hw_machine *machine, const ZydisDecodedInstruction *instruction,
                                 const ZydisDecodedOperand *operand)
{
    uint64_t address = (uint64_t)operand->mem.disp.value;
    address += register_value(machine, operand->mem.base, machine->pc + instruction->length);
    if (operand->mem.index != ZYDIS_REGISTER_NONE)
        address += register_value(machine, operand->mem.index, 0) * operand->mem.scale;
    if (instruction->address_width == 32)
        address = (uint32_t)address;
    return address + (operand->mem.segment == ZYDIS_REGISTER_FS   ? machine->fs
                      : operand->mem.segment == ZYDIS_REGISTER_GS ? machine->gs
                                                                  : 0);
}

/* Something that looks like code: prefixes, an opcode of each kind, anything behind it. */
static void make_code(uint8_t code[15])
{
    static const uint8_t prefixes[] = {0x66, 0x67, 0xf3, 0xf2, 0x64, 0x65, 0xf0, 0x2e};
    size_t n = 0;
    uint64_t r = random_64();
    for (int i = 0; i < 15; i++)
        code[i] = (uint8_t)random_64();
    while ((r & 3) == 0 && n < 3) {
        code[n++] = prefixes[r >> 2 & 7];
        r = random_64();
    }
    switch (r >> 8 & 7) {
    case 0: /* VEX of two bytes */
        code[n] = 0xc5;
        break;
    case 1:
        code[n] = 0xc4;
        code[n + 1] = (uint8_t)((code[n + 1] & 0xe0) | (1 + (r >> 16) % 3));
        break;
    case 2: {
        static const uint8_t maps[] = {1, 2, 3, 5, 6};
        code[n] = 0x62;
        code[n + 1] = (uint8_t)((code[n + 1] & 0xf0) | maps[(r >> 16) % 5]);
        code[n + 2] |= 4;
        if (r >> 32 & 1)
            code[n + 2] |= 0x78;
        code[n + 3] &= 0xf8; /* no mask: what is masked is looked at elsewhere */
        if (r >> 33 & 1)
            code[n + 3] = (uint8_t)((code[n + 3] & 0x70) | 8);
        break;
    }
    case 3:
    case 4:
        code[n++] = (uint8_t)(0x40 | (r >> 16 & 15));
        break;
    case 5:
        code[n] = 0x0f;
        break;
    default:
        break;
    }
}

static void describe(const uint8_t *code, const char *what)
{
    char text[64];
    for (int i = 0; i < 15; i++)
        snprintf(text + 3 * i, 4, "%02x ", code[i]);
    print_message("%s: %s\n", what, text);
}

static bool is_special(const ZydisDecodedInstruction *instruction)
{
    switch (instruction->mnemonic) {
    case ZYDIS_MNEMONIC_BT:
    case ZYDIS_MNEMONIC_BTS:
    case ZYDIS_MNEMONIC_BTR:
    case ZYDIS_MNEMONIC_BTC: /* the register moves the address */
    case ZYDIS_MNEMONIC_MOVDIR64B:
    case ZYDIS_MNEMONIC_ENQCMD:
    case ZYDIS_MNEMONIC_ENQCMDS:
    case ZYDIS_MNEMONIC_UMONITOR:
    case ZYDIS_MNEMONIC_TILELOADD:
    case ZYDIS_MNEMONIC_TILELOADDT1:
    case ZYDIS_MNEMONIC_TILESTORED:
    case ZYDIS_MNEMONIC_VMASKMOVPS:
    case ZYDIS_MNEMONIC_VMASKMOVPD:
    case ZYDIS_MNEMONIC_VPMASKMOVD:
    case ZYDIS_MNEMONIC_VPMASKMOVQ:
    case ZYDIS_MNEMONIC_MASKMOVQ:
    case ZYDIS_MNEMONIC_MASKMOVDQU:
    case ZYDIS_MNEMONIC_VMASKMOVDQU:
    case ZYDIS_MNEMONIC_XLAT:
        return true;
    default:
        return instruction->meta.category == ZYDIS_CATEGORY_STRINGOP ||
               instruction->meta.category == ZYDIS_CATEGORY_IOSTRINGOP;
    }
}

static void agrees_with_zydis(void **state)
{
    ZydisDecoder decoder;
    size_t compared = 0, with_memory = 0, wrong = 0, by_kind[3] = {0};
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    for (int round = 0; round < 2000000 && wrong < 10; round++) {
        uint8_t code[15];
        struct hw_machine machine = {.pc = random_64() >> 20, .fs = random_64() >> 17, .gs = random_64() >> 17};
        struct hw_decoded decoded;
        ZydisDecodedInstruction instruction;
        ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
        for (int i = 0; i < 16; i++)
            machine.general[i] = random_64();
        make_code(code);
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, sizeof code, &instruction, operands)) ||
            is_special(&instruction) || instruction.encoding == ZYDIS_INSTRUCTION_ENCODING_3DNOW ||
            instruction.encoding == ZYDIS_INSTRUCTION_ENCODING_XOP ||
            instruction.encoding == ZYDIS_INSTRUCTION_ENCODING_MVEX ||
            instruction.meta.category == ZYDIS_CATEGORY_PADLOCK)
            continue;
        hw_decode(code, sizeof code, &machine, &decoded);
        const ZydisDecodedOperand *memory = NULL;
        for (int i = 0; i < instruction.operand_count; i++)
            if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
                operands[i].visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT &&
                operands[i].mem.type == ZYDIS_MEMOP_TYPE_MEM && operands[i].size)
                memory = &operands[i];
        if (decoded.next == HW_NEXT_SYSCALL || decoded.next == HW_NEXT_DELICATE)
            continue;
        compared++;
        if (decoded.next == HW_NEXT_UNKNOWN) {
            describe(code, "not known");
            wrong++;
            continue;
        }
        if (!memory)
            continue;
        switch (instruction.meta.category) {
        case ZYDIS_CATEGORY_NOP:
        case ZYDIS_CATEGORY_WIDENOP:
        case ZYDIS_CATEGORY_PREFETCH:
        case ZYDIS_CATEGORY_PREFETCHWT1:
        case ZYDIS_CATEGORY_CLDEMOTE:
        case ZYDIS_CATEGORY_CLFLUSHOPT:
        case ZYDIS_CATEGORY_CLWB:
        case ZYDIS_CATEGORY_XSAVE:
        case ZYDIS_CATEGORY_XSAVEOPT:
            continue;
        default:
            break;
        }
        if (instruction.mnemonic == ZYDIS_MNEMONIC_CLFLUSH || instruction.mnemonic == ZYDIS_MNEMONIC_INVLPG)
            continue;
        with_memory++;
        by_kind[instruction.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX  ? 2
                : instruction.encoding == ZYDIS_INSTRUCTION_ENCODING_VEX ? 1
                                                                         : 0]++;
        uint32_t flags = (memory->actions & ZYDIS_OPERAND_ACTION_MASK_READ ? HW_TOUCH_READ : 0u) |
                         (memory->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? HW_TOUCH_WRITE : 0u);
        if (decoded.count != 1 || decoded.touch[0].size != memory->size / 8 ||
            decoded.touch[0].address != address_by_zydis(&machine, &instruction, memory) ||
            (decoded.touch[0].flags & 3) != flags || decoded.length != instruction.length) {
            describe(code, ZydisMnemonicGetString(instruction.mnemonic));
            print_message("  count %u size %u/%u address %lx/%lx flags %x/%x length %u/%u\n", decoded.count,
                          decoded.touch[0].size, memory->size / 8, decoded.touch[0].address,
                          address_by_zydis(&machine, &instruction, memory), decoded.touch[0].flags, flags,
                          decoded.length, instruction.length);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
    assert_true(compared > 300000 && with_memory > 100000);
    for (int i = 0; i < 3; i++)
        assert_true(by_kind[i] > 3000);
}

/* ---- against the processor: the address that it faults at ---- */

#define FORBIDDEN_BYTES (1ul << 20)
static uint8_t *forbidden;
static struct {
    bool seen, write;
    uint64_t address;
    struct hw_decoded decoded;
} fault;
static sigjmp_buf back;

static void fill_machine(struct hw_machine *machine, const ucontext_t *context)
{
    static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                  REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    unsigned a, b, c, d;
    *machine = (struct hw_machine){.pc = (uint64_t)context->uc_mcontext.gregs[REG_RIP],
                                   .flags = (uint64_t)context->uc_mcontext.gregs[REG_EFL],
                                   .vectors = (const uint8_t *)context->uc_mcontext.fpregs};
    for (int i = 0; i < 16; i++)
        machine->general[i] = (uint64_t)context->uc_mcontext.gregs[order[i]];
    machine->present = *(const uint64_t *)(machine->vectors + 512);
    __asm__("mov %%fs:0, %0" : "=r"(machine->fs));
    uint32_t *offsets[] = {&machine->ymm_offset, &machine->mask_offset, &machine->zmm_offset,
                           &machine->high_zmm_offset};
    static const unsigned parts[] = {2, 5, 6, 7};
    for (int i = 0; i < 4; i++) {
        __cpuid_count(13, parts[i], a, b, c, d);
        *offsets[i] = a ? b : 0;
    }
}

static void on_fault(int number, siginfo_t *information, void *closure)
{
    const ucontext_t *context = closure;
    struct hw_machine machine;
    fault.seen = true;
    fault.address = (uint64_t)information->si_addr;
    fault.write = context->uc_mcontext.gregs[REG_ERR] & 2;
    fill_machine(&machine, context);
    hw_decode((const uint8_t *)machine.pc, 15, &machine, &fault.decoded);
    siglongjmp(back, number);
}

/* Runs the instruction that the assembly makes with operands in memory that nobody may touch. */
#define FAULTS(assembly, ...)                                                                                          \
    do {                                                                                                               \
        fault.seen = false;                                                                                            \
        if (sigsetjmp(back, 1) == 0)                                                                                   \
            __asm__ volatile(assembly                                                                                  \
                             :                                                                                         \
                             : __VA_ARGS__                                                                             \
                             : "memory", "cc", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "xmm0", "xmm1", "xmm2",  \
                               "xmm3");                                                                                \
        assert_true(fault.seen);                                                                                       \
        if (fault.decoded.count < 1 || fault.decoded.touch[0].address != fault.address)                                \
            fail_msg("%s: touches %u, %lx instead of %lx", assembly, fault.decoded.count,                              \
                     fault.decoded.touch[0].address, fault.address);                                                   \
        if (fault.write)                                                                                               \
            assert_true(fault.decoded.touch[0].flags &HW_TOUCH_WRITE);                                                 \
        else                                                                                                           \
            assert_true(fault.decoded.touch[0].flags &HW_TOUCH_READ);                                                  \
    } while (0)

static void agrees_with_the_processor(void **state)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER}, old;
    forbidden = mmap(NULL, FORBIDDEN_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(forbidden, MAP_FAILED);
    sigaction(SIGSEGV, &action, &old);
    uint8_t *p = forbidden + FORBIDDEN_BYTES / 2;
    uint64_t i = 37;
    FAULTS("mov (%0), %%rax", "r"(p + 8));
    FAULTS("movb $1, 5(%0)", "r"(p));
    FAULTS("mov %%eax, -70000(%0)", "r"(p));
    FAULTS("mov (%0,%1,4), %%eax", "r"(p), "r"(i));
    FAULTS("mov %%r8w, 0x123(%0,%1,8)", "r"(p), "r"(i));
    FAULTS("addq $0x12345, 0x40(%0)", "r"(p));
    FAULTS("lock xadd %%rax, (%0)", "r"(p));
    FAULTS("lock cmpxchg16b (%0)", "r"(p));
    FAULTS("mov %0, %%r9\n mov -8(%%r9), %%r8", "r"(p));
    FAULTS("mov %0, %%rsi\n lodsb", "r"(p + 3));
    FAULTS("mov %0, %%rdi\n mov $5, %%ecx\n rep stosq", "r"(p + 16));
    assert_int_equal(fault.decoded.next, HW_NEXT_REPEATED);
    assert_int_equal(fault.decoded.iterations, 5);
    FAULTS("mov %0, %%rsi\n lea 64(%0), %%rdi\n mov $9, %%ecx\n rep movsb", "r"(p));
    assert_int_equal(fault.decoded.count, 2);
    FAULTS("movups (%0), %%xmm1", "r"(p + 1));
    assert_int_equal(fault.decoded.touch[0].size, 16);
    FAULTS("movnti %%rax, 8(%0)", "r"(p));
    FAULTS("btsq %1, (%0)", "r"(p), "r"(-1000l));
    FAULTS("btl %k1, (%0)", "r"(p), "r"(777l));
    FAULTS("mov %0, %%rcx\n mov %%fs:0, %%rax\n sub %%rax, %%rcx\n mov %%fs:(%%rcx), %%eax", "r"(p));
    assert_true(fault.decoded.touch[0].flags & HW_TOUCH_THREAD);
    FAULTS("fldt 16(%0)", "r"(p));
    FAULTS("crc32b 1(%0), %%eax", "r"(p));
    sigaction(SIGSEGV, &old, NULL);
    munmap(forbidden, FORBIDDEN_BYTES);
}

static void relative_addresses(void **state)
{
    /* cmpl $0x11223344, 0x100(%rip): the immediate lies between the displacement and the next instruction. */
    static const uint8_t code[] = {0x81, 0x3d, 0x00, 0x01, 0, 0, 0x44, 0x33, 0x22, 0x11};
    struct hw_machine machine = {.pc = 0x401000};
    struct hw_decoded decoded;
    hw_decode(code, sizeof code, &machine, &decoded);
    assert_int_equal(decoded.count, 1);
    assert_int_equal(decoded.touch[0].address, 0x401000 + 10 + 0x100);
}

__attribute__((target("avx2"))) static void gathers(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER}, old;
    static const int32_t indexes[8] = {5, -3, 100, 7, 0, 1, 2, 4000}, mask[8] = {0, -1, 0, -1, 0, 0, 0, -1};
    forbidden = mmap(NULL, FORBIDDEN_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGSEGV, &action, &old);
    uint8_t *p = forbidden + FORBIDDEN_BYTES / 2;
    if (sigsetjmp(back, 1) == 0)
        __asm__ volatile("vmovdqu (%1), %%ymm1\n vmovdqu (%2), %%ymm2\n vgatherdps %%ymm2, (%0,%%ymm1,4), %%ymm0"
                         :
                         : "r"(p), "r"(indexes), "r"(mask)
                         : "ymm0", "ymm1", "ymm2", "memory");
    assert_int_equal(fault.decoded.count, 3);
    assert_int_equal(fault.decoded.touch[0].address, (uint64_t)(p - 12));
    assert_int_equal(fault.decoded.touch[1].address, (uint64_t)(p + 28));
    assert_int_equal(fault.decoded.touch[2].address, (uint64_t)(p + 16000));
    assert_true(fault.address == (uint64_t)(p - 12));
    if (sigsetjmp(back, 1) == 0)
        __asm__ volatile("vmovdqu (%1), %%ymm2\n vmaskmovps %%ymm2, %%ymm2, (%0)"
                         :
                         : "r"(p), "r"(mask)
                         : "ymm2", "memory");
    assert_int_equal(fault.decoded.count, 3);
    assert_int_equal(fault.decoded.touch[0].address, (uint64_t)(p + 4));
    assert_int_equal(fault.decoded.touch[0].flags, HW_TOUCH_WRITE);
    sigaction(SIGSEGV, &old, NULL);
    munmap(forbidden, FORBIDDEN_BYTES);
}

__attribute__((target("avx512f"))) static void wide_gathers(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER}, old;
    static const int64_t indexes[8] = {1, 2, 3, 4, 500, 6, 7, -8};
    forbidden = mmap(NULL, FORBIDDEN_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGSEGV, &action, &old);
    uint8_t *p = forbidden + FORBIDDEN_BYTES / 2;
    if (sigsetjmp(back, 1) == 0)
        __asm__ volatile("vmovdqu64 (%1), %%zmm17\n mov $0x91, %%eax\n kmovw %%eax, %%k2\n"
                         "vpscatterqq %%zmm3, 64(%0,%%zmm17,8)%{%%k2%}"
                         :
                         : "r"(p), "r"(indexes)
                         : "rax", "memory");
    assert_int_equal(fault.decoded.count, 3);
    assert_int_equal(fault.decoded.touch[0].address, (uint64_t)(p + 64 + 8));
    assert_int_equal(fault.decoded.touch[1].address, (uint64_t)(p + 64 + 4000));
    assert_int_equal(fault.decoded.touch[2].address, (uint64_t)(p + 64 - 64));
    assert_int_equal(fault.decoded.touch[0].flags, HW_TOUCH_WRITE);
    if (sigsetjmp(back, 1) == 0)
        __asm__ volatile("mov $0x8002, %%eax\n kmovw %%eax, %%k1\n vmovups 128(%0), %%zmm18%{%%k1%}"
                         :
                         : "r"(p)
                         : "rax", "memory");
    assert_int_equal(fault.decoded.count, 2);
    assert_int_equal(fault.decoded.touch[0].address, (uint64_t)(p + 128 + 4));
    assert_int_equal(fault.decoded.touch[1].address, (uint64_t)(p + 128 + 60));
    sigaction(SIGSEGV, &old, NULL);
    munmap(forbidden, FORBIDDEN_BYTES);
}

static void vectors(void **state)
{
    if (__builtin_cpu_supports("avx2"))
        gathers();
    if (__builtin_cpu_supports("avx512f"))
        wide_gathers();
}

static void what_must_not_be_stepped_over(void **state)
{
    static const struct {
        uint8_t code[5];
        enum hw_next next;
    } cases[] = {
        {{0x9c}, HW_NEXT_DELICATE},                   /* pushf */
        {{0x9d}, HW_NEXT_DELICATE},                   /* popf */
        {{0x66, 0x9c}, HW_NEXT_DELICATE},             /* pushfw */
        {{0x48, 0xcf}, HW_NEXT_DELICATE},             /* iretq */
        {{0xcd, 0x80}, HW_NEXT_DELICATE},             /* int 0x80 */
        {{0xcc}, HW_NEXT_DELICATE},                   /* int3 */
        {{0xf1}, HW_NEXT_DELICATE},                   /* int1 */
        {{0xc7, 0xf8, 0, 0, 0}, HW_NEXT_DELICATE},    /* xbegin */
        {{0x0f, 0x34}, HW_NEXT_DELICATE},             /* sysenter */
        {{0xf3, 0x0f, 0xae, 0xd0}, HW_NEXT_DELICATE}, /* wrfsbase %eax */
        {{0x0f, 0x05}, HW_NEXT_SYSCALL},
        {{0x48, 0x0f, 0x05}, HW_NEXT_SYSCALL},
        {{0x90}, HW_NEXT_PLAIN},
        {{0x50}, HW_NEXT_PLAIN},       /* push */
        {{0x8d, 0x00}, HW_NEXT_PLAIN}, /* lea */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hw_machine machine = {0};
        struct hw_decoded decoded;
        hw_decode(cases[i].code, sizeof cases[i].code, &machine, &decoded);
        if (decoded.next != cases[i].next)
            fail_msg("case %zu: %d instead of %d", i, decoded.next, cases[i].next);
        assert_int_equal(decoded.count, 0);
    }
    struct hw_machine machine = {0};
    struct hw_decoded decoded;
    hw_decode((const uint8_t[]){0x8b, 0x80, 0, 0}, 4, &machine, &decoded); /* cut short */
    assert_int_equal(decoded.next, HW_NEXT_UNKNOWN);
    hw_decode((const uint8_t[]){0x50}, 1, &machine, &decoded);
    assert_int_equal(decoded.stack, HW_FORM_STACK_WRITE);
    hw_decode((const uint8_t[]){0xc3}, 1, &machine, &decoded);
    assert_int_equal(decoded.stack, HW_FORM_STACK_READ);
}

TEST_LIST(cmocka_unit_test(agrees_with_zydis), cmocka_unit_test(agrees_with_the_processor),
          cmocka_unit_test(relative_addresses), cmocka_unit_test(vectors),
          cmocka_unit_test(what_must_not_be_stepped_over))
