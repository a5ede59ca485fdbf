/* visit.c - where a thread enters that a visitor has sent here (profile/visit.h), and leaves again with the registers
 * that it had. The stack that it was on is not touched. */
#include "base/arch/x86_64/arch.h"

#include <stdint.h>

char hw_arch_visit_stack[HW_ARCH_VISIT_STACK] __attribute__((aligned(64)));

/* hw_visit begins with the registers, in the order of enum HW_VISIT_RAX. */
#define LOAD(index, name) "mov hw_visit+8*" #index "(%rip), %" name "\n"
__asm__(".pushsection .text\n"
        ".globl hw_arch_visit_enter, hw_arch_visit_end\n"
        ".hidden hw_arch_visit_enter, hw_arch_visit_end, hw_visit\n"
        ".type hw_arch_visit_enter, @function\n"
        "hw_arch_visit_enter:\n"
        "lea hw_arch_visit_stack+65536-576(%rip), %rsp\n"
        "cld\n"
        "xor %ebp, %ebp\n"
        "fxsave64 (%rsp)\n"
        "call hw_visit_received\n"
        "fxrstor64 (%rsp)\n"
        "pushq hw_visit+8*17(%rip)\n"
        "popfq\n" /* nothing below changes flags */
        LOAD(0, "rax") LOAD(1, "rbx") LOAD(2, "rcx") LOAD(3, "rdx") LOAD(4, "rsi") LOAD(5, "rdi") LOAD(6, "rbp")
            LOAD(7, "rsp") LOAD(8, "r8") LOAD(9, "r9") LOAD(10, "r10") LOAD(11, "r11") LOAD(12, "r12") LOAD(13, "r13")
                LOAD(14, "r14") LOAD(15, "r15") "jmp *hw_visit+8*16(%rip)\n"
                                                "hw_arch_visit_end:\n"
                                                ".size hw_arch_visit_enter, . - hw_arch_visit_enter\n"
                                                ".popsection\n");
