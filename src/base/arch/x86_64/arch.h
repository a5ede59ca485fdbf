/* arch.h - all that the runtime knows about x86-64: system calls, clock, processor number, thread pointer, registers.
 * Nothing outside runtime/arch may assume the architecture. */
#ifndef HW_RUNTIME_ARCH_H
#define HW_RUNTIME_ARCH_H

#include <cpuid.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kernel's answer, -errno on failure; errno of the program is never touched. */
static inline long hw_syscall6(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* Time stamp counter. Not serializing: a few cycles of reordering do not matter beside its 9 ns. */
static inline uint64_t hw_arch_ticks(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return ((uint64_t)high << 32) | low;
}

/* Time stamp counter when everything before has been done, and nothing that follows has begun. */
static inline uint64_t hw_arch_ticks_fenced(void)
{
    uint32_t low, high, cpu;
    __asm__ volatile("rdtscp\n\tlfence" : "=a"(low), "=d"(high), "=c"(cpu) : : "memory");
    return ((uint64_t)high << 32) | low;
}

/* Processor number from the counter's auxiliary register, as Linux sets it. */
static inline uint32_t hw_arch_cpu(void)
{
    uint32_t low, high, aux;
    __asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(aux));
    return aux & 0xfff;
}

/* An invariant counter: constant rate in all power states. Whether the kernel trusts it is asked separately. */
static inline bool hw_arch_ticks_invariant(void)
{
    uint32_t a, b, c, d;
    if (!__get_cpuid(0x80000000u, &a, &b, &c, &d) || a < 0x80000007u)
        return false;
    __get_cpuid(0x80000007u, &a, &b, &c, &d);
    return (d & (1u << 8)) != 0;
}

/* Calls FUNCTION on another stack, which ends at TOP (a multiple of 16). */
static inline void hw_arch_call_on_stack(void *top, void (*function)(void))
{
    __asm__ volatile("mov %%rsp, %%rbx\n\t"
                     "mov %0, %%rsp\n\t"
                     "call *%1\n\t"
                     "mov %%rbx, %%rsp"
                     :
                     : "r"(top), "r"(function)
                     : "rbx", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2",
                       "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
                       "xmm14", "xmm15", "cc", "memory");
}

/* Address of the thread control block. With glibc and musl it lies above the stack, in the same mapping, in every
 * thread but the first. */
static inline uintptr_t hw_arch_thread_pointer(void)
{
    uintptr_t pointer;
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
    return pointer;
}

/* 32 bits at OFFSET from the thread pointer (for the rseq area). */
static inline uint32_t hw_arch_thread_u32(intptr_t offset)
{
    uint32_t value;
    __asm__ volatile("movl %%fs:(%1), %0" : "=r"(value) : "r"(offset));
    return value;
}

/* *TARGET += VALUE; the sum. One instruction: atomic as to signals of this thread, not as to other threads. */
static inline int64_t hw_arch_add(int64_t *target, int64_t value)
{
    int64_t old = value;
    __asm__("xaddq %0, %1" : "+r"(old), "+m"(*target));
    return old + value;
}

/* *TARGET += 1, in the same way. */
static inline void hw_arch_increment(uint64_t *target)
{
    __asm__("addq $1, %0" : "+m"(*target) : : "cc");
}

static inline void hw_arch_increase(uint64_t *target, uint64_t value)
{
    __asm__("addq %1, %0" : "+m"(*target) : "er"(value) : "cc");
}

/* Each in one instruction, which a signal cannot interrupt half-way; not for several threads. */
static inline void hw_arch_set_bits(uint64_t *word, uint64_t bits)
{
    __asm__("orq %1, %0" : "+m"(*word) : "r"(bits) : "cc");
}

static inline void hw_arch_keep_bits(uint64_t *word, uint64_t bits)
{
    __asm__("andq %1, %0" : "+m"(*word) : "r"(bits) : "cc");
}

/* Adds NUMBER to a byte that stays at 255: a signal handler that comes between and does the same loses nothing. */
static inline void hw_arch_add_saturating(uint8_t *byte, uint8_t number)
{
    __asm__("addb %1, %0\n\t"
            "jae 1f\n\t"
            "movb $255, %0\n"
            "1:"
            : "+m"(*byte)
            : "qi"(number)
            : "cc");
}

/* Puts DESIRED at ADDRESS (aligned to 16) if *EXPECTED is there, else sets *EXPECTED to what is; whether it did. A full
 * barrier. Every x86-64 since 2006 has the instruction; the compiler would call libatomic. */
static inline bool hw_arch_compare_exchange_128(volatile unsigned __int128 *address, unsigned __int128 *expected,
                                                unsigned __int128 desired)
{
    uint64_t low = (uint64_t)*expected, high = (uint64_t)(*expected >> 64);
    bool done;
    __asm__ volatile("lock cmpxchg16b %1"
                     : "=@ccz"(done), "+m"(*address), "+a"(low), "+d"(high)
                     : "b"((uint64_t)desired), "c"((uint64_t)(desired >> 64))
                     : "memory");
    *expected = (unsigned __int128)high << 64 | low;
    return done;
}

/* A new thread that runs FUNCTION on the stack which ends at TOP (a multiple of 16), and then ends. TLS is its thread
 * pointer. The kernel's answer: its number, or -errno. */
static inline long hw_arch_clone(unsigned long flags, void *top, int *parent_tid, int *child_tid, uintptr_t tls,
                                 void (*function)(void))
{
    register long r10 __asm__("r10") = (long)child_tid;
    register long r8 __asm__("r8") = (long)tls;
    register long r9 __asm__("r9") = (long)function;
    long result;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "call *%%r9\n\t"
                     "xor %%edi, %%edi\n\t"
                     "mov $60, %%eax\n\t" /* exit, of this thread */
                     "syscall\n\t"
                     "hlt\n"
                     "1:"
                     : "=a"(result)
                     : "a"(56 /* clone */), "D"(flags), "S"(top), "d"(parent_tid), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory", "cc");
    return result;
}

/* visit.c: where a thread enters that a visitor sends (profile/visit.h). It calls hw_visit_received on a stack of this
 * size, and goes on as hw_visit says. */
#define HW_ARCH_VISIT_STACK 65536
extern char hw_arch_visit_stack[HW_ARCH_VISIT_STACK] __attribute__((visibility("hidden")));
extern const char hw_arch_visit_enter[] __attribute__((visibility("hidden")));
extern const char hw_arch_visit_end[] __attribute__((visibility("hidden")));

/* The registers that a function has to keep for its caller. */
static inline void hw_arch_save_registers(uint64_t registers[6])
{
    __asm__ volatile("mov %%rbx, 0(%0)\n\tmov %%rbp, 8(%0)\n\tmov %%r12, 16(%0)\n\t"
                     "mov %%r13, 24(%0)\n\tmov %%r14, 32(%0)\n\tmov %%r15, 40(%0)"
                     :
                     : "r"(registers)
                     : "memory");
}

static inline void hw_arch_copy(void *to, const void *from, uint64_t bytes)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

static inline void hw_arch_fill(void *to, unsigned char value, uint64_t bytes)
{
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(value) : "memory");
}

/* Whether the calling thread keeps the processor, from _watch to _watched (true: it did not, or a signal came): a
 * restartable sequence (rseq) is announced which the program counter is never in, and the kernel takes it back whenever
 * something else ran. OFFSET: of rseq_cs from the thread pointer; 0: not known. A sequence of the program's own is
 * left alone. */
extern const char hw_arch_no_sequence[] __attribute__((visibility("hidden")));
static inline void hw_arch_watch(intptr_t offset)
{
    uint64_t none = 0;
    if (offset)
        __asm__ volatile("cmpq %1, %%fs:(%0)\n\t"
                         "jne 1f\n\t"
                         "movq %2, %%fs:(%0)\n"
                         "1:"
                         :
                         : "r"(offset), "r"(none), "r"(hw_arch_no_sequence)
                         : "memory", "cc");
}
static inline bool hw_arch_watched(intptr_t offset)
{
    uint64_t now;
    if (!offset)
        return false;
    __asm__ volatile("movq %%fs:(%1), %0" : "=r"(now) : "r"(offset) : "memory");
    if (now == (uint64_t)hw_arch_no_sequence)
        __asm__ volatile("movq $0, %%fs:(%0)" : : "r"(offset) : "memory");
    return !now;
}

static inline void hw_arch_pause(void)
{
    __builtin_ia32_pause();
}

/* DWARF register numbers. The return address is column 16. */
enum {
    HW_REG_RBX = 3,
    HW_REG_FP = 6,
    HW_REG_SP = 7,
    HW_REG_R12 = 12,
    HW_REG_PC = 16,
    HW_REG_COUNT = 17,
};

/* frame.c: the frame of a function, as seen from a place in it. Offsets in bytes. */
struct hw_arch_frame {
    bool from_fp;  /* the CFA is the frame pointer + cfa, not the stack pointer + cfa */
    bool fp_saved; /* the caller's frame pointer is at the CFA + fp_slot; else it is in its register */
    int64_t cfa, fp_slot;
};
/* By the instructions from PC on, in the code [start, end). False: they do not show it. */
bool hw_arch_frame_of(uintptr_t pc, uintptr_t start, uintptr_t end, struct hw_arch_frame *frame);
/* Does a call stand right before PC, in code that begins at START? *TARGET: what it calls, 0 when it does not say. */
bool hw_arch_is_behind_call(uintptr_t pc, uintptr_t start, uintptr_t *target);

/* The registers of the calling function at this place, by DWARF number; caller-saved ones are not known (0). */
static inline __attribute__((always_inline)) void hw_arch_capture(uint64_t registers[HW_REG_COUNT])
{
    for (int i = 0; i < HW_REG_COUNT; i++)
        registers[i] = 0;
    __asm__ volatile("movq %%rbx, 24(%0)\n\t"
                     "movq %%rbp, 48(%0)\n\t"
                     "movq %%rsp, 56(%0)\n\t"
                     "movq %%r12, 96(%0)\n\t"
                     "movq %%r13, 104(%0)\n\t"
                     "movq %%r14, 112(%0)\n\t"
                     "movq %%r15, 120(%0)\n\t"
                     "leaq 0(%%rip), %%rcx\n\t"
                     "movq %%rcx, 128(%0)\n\t"
                     :
                     : "a"(registers)
                     : "rcx", "memory");
}

/* The same from what ptrace says (struct user_regs_struct), and from a ucontext_t (its gregs). */
static inline void hw_arch_registers_of_ptrace(const uint64_t *from, uint64_t registers[HW_REG_COUNT])
{
    static const uint8_t at[HW_REG_COUNT] = {10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16};
    for (int i = 0; i < HW_REG_COUNT; i++)
        registers[i] = from[at[i]];
}
static inline void hw_arch_registers_of_signal(const uint64_t *from, uint64_t registers[HW_REG_COUNT])
{
    static const uint8_t at[HW_REG_COUNT] = {13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7, 16};
    for (int i = 0; i < HW_REG_COUNT; i++)
        registers[i] = from[at[i]];
}

/* A function keeps its caller's frame pointer at [frame], its return address at [frame + 8]; the caller's stack
 * pointer after the return is frame + 16. */
static inline uintptr_t hw_arch_frame_return(uintptr_t frame)
{
    return *(const uintptr_t *)(frame + 8);
}
static inline uintptr_t hw_arch_frame_caller_fp(uintptr_t frame)
{
    return *(const uintptr_t *)frame;
}
static inline uintptr_t hw_arch_frame_caller_sp(uintptr_t frame)
{
    return frame + 16;
}

#define HW_ARCH_ELF_MACHINE  62 /* EM_X86_64 */
#define HW_ARCH_ADDRESS_BITS 47

/* ---- patch.c: hooking allocators that are linked into the executable ---- */

/* Redirects the function at TARGET to HOOK and returns a way to call the original, or NULL with *WHY. */
void *hw_arch_patch(void *target, size_t size, const void *hook, const char **why);
/* Makes the way to the original, and leaves the function as it is: *JUMP are the HW_ARCH_JUMP bytes that redirect it.
 * No thread may be behind its first byte, and before the byte behind them, when they are written. */
void *hw_arch_patch_prepare(void *target, size_t size, const void *hook, const uint8_t **jump, const char **why);
#define HW_ARCH_JUMP 5u
/* Where the ways to originals are. */
void hw_arch_patch_trampolines(uintptr_t *start, uintptr_t *end);

#endif
