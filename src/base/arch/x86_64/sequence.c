/* sequence.c - a restartable sequence (rseq) of two instructions that nobody executes: see hw_arch_watch. The kernel
 * wants to find its signature before the place to go to. */
#include "base/arch/x86_64/arch.h"

__asm__(".pushsection .text\n"
        "1: nop\n"
        "nop\n"
        "2: .long 0x53053053\n" /* glibc registers this one */
        "3: ud2\n"
        ".popsection\n"
        ".pushsection .data.rel.ro,\"aw\",@progbits\n"
        ".balign 32\n"
        ".globl hw_arch_no_sequence\n"
        ".hidden hw_arch_no_sequence\n"
        "hw_arch_no_sequence:\n"
        ".long 0, 0\n" /* version, flags */
        ".quad 1b, 2b - 1b, 3b\n"
        ".popsection\n");
