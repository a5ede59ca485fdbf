/* signal.c - where signal handlers return to (signal.h).
 *
 * The table says where the kernel has left the interrupted registers, relative to the stack pointer at the return from
 * the handler, which is where the ucontext begins. It starts one byte early, since unwinders look up return addresses
 * less one. The instructions are those that debuggers and unwinders without tables look for. */
#include "base/arch/x86_64/signal.h"

/* DW_CFA_expression: REGISTER lies at stack pointer + OFFSET, LOW and HIGH being the bytes of that (sleb128). */
#define AT(register, low)        ".cfi_escape 0x10, " #register ", 2, 0x77, " #low "\n\t"
#define FAR(register, low, high) ".cfi_escape 0x10, " #register ", 3, 0x77, " #low ", " #high "\n\t"

// clang-format off
__asm__(".text\n\t"
        ".p2align 4\n\t"
        ".cfi_startproc\n\t"
        ".cfi_signal_frame\n\t"
        ".cfi_escape 0x0f, 4, 0x77, 0xa0, 0x01, 0x06\n\t" /* the CFA is the interrupted stack pointer */
        FAR(0, 0x90, 0x01) /* rax */
        FAR(1, 0x88, 0x01) /* rdx */
        FAR(2, 0x98, 0x01) /* rcx */
        FAR(3, 0x80, 0x01) /* rbx */
        FAR(4, 0xf0, 0x00) /* rsi */
        FAR(5, 0xe8, 0x00) /* rdi */
        FAR(6, 0xf8, 0x00) /* rbp */
        FAR(7, 0xa0, 0x01) /* rsp */
        AT(8, 0x28)
        AT(9, 0x30)
        AT(10, 0x38)
        FAR(11, 0xc0, 0x00)
        FAR(12, 0xc8, 0x00)
        FAR(13, 0xd0, 0x00)
        FAR(14, 0xd8, 0x00)
        FAR(15, 0xe0, 0x00)
        FAR(16, 0xa8, 0x01) /* rip */
        "nop\n\t"
        ".p2align 4\n\t"
        ".globl hw_arch_restorer\n\t"
        ".hidden hw_arch_restorer\n\t"
        ".type hw_arch_restorer, @function\n"
        "hw_arch_restorer:\n\t"
        "mov $15, %rax\n\t" /* rt_sigreturn */
        "syscall\n\t"
        ".cfi_endproc\n\t"
        ".size hw_arch_restorer, . - hw_arch_restorer\n");
// clang-format on
