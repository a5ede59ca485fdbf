/* parked.c - see parked.h. The code is copied into the other process; its data lies HW_PARKED_CODE bytes behind it. */
#include "base/parked.h"

#include <stddef.h>

_Static_assert(offsetof(struct hw_parked, registers) == 80, "as below");
_Static_assert(offsetof(struct hw_parked, moment) == 224, "as below");
_Static_assert(offsetof(struct hw_parked, xsave) == 256, "as below");

#define DATA(offset)      "hw_parked_code+4096+" #offset "(%rip)"
#define LOAD(index, name) "mov hw_parked_code+4096+80+8*" #index "(%rip), %" name "\n"
__asm__(".pushsection .rodata\n"
        ".balign 64\n"
        ".globl hw_parked_code, hw_parked_code_end\n"
        ".hidden hw_parked_code, hw_parked_code_end\n"
        "hw_parked_code:\n"
        "1: mov " DATA(0) ", %rax\n"
        "test %rax, %rax\n"
        "jz 2f\n"
        "mov " DATA(8) ", %rdi\n"
        "mov " DATA(16) ", %rsi\n"
        "mov " DATA(24) ", %rdx\n"
        "xor %ebp, %ebp\n"
        "call *%rax\n"
        "mov %rax, " DATA(32) "\n"
        "movq $0, " DATA(0) "\n"
        "movq $100000, " DATA(48) "\n"
        "movq $1, " DATA(40) "\n"
        "jmp 1b\n"
        "2: movq $0, " DATA(224) "\n" /* ppoll: it leaves no call behind that has to be begun again */
        "movq $100000, " DATA(232) "\n"
        "xor %edi, %edi\n"
        "xor %esi, %esi\n"
        "lea " DATA(224) ", %rdx\n"
        "xor %r10d, %r10d\n"
        "mov $8, %r8d\n"
        "mov $271, %eax\n"
        "syscall\n"
        "decq " DATA(48) "\n"
        "jnz 1b\n"
        "mov " DATA(64) ", %rax\n" /* nobody comes any more */
        "test %rax, %rax\n"
        "jz 3f\n"
        "mov " DATA(72) ", %rcx\n"
        "mov %ecx, (%rax)\n"
        "3: mov $2, %edi\n" /* rt_sigprocmask */
        "lea " DATA(56) ", %rsi\n"
        "xor %edx, %edx\n"
        "mov $8, %r10d\n"
        "mov $14, %eax\n"
        "syscall\n"
        "mov $-1, %eax\n"
        "mov $-1, %edx\n"
        "xrstor64 " DATA(256) "\n"
        "pushq " DATA(80+8*17) "\n"
        "popfq\n" /* nothing below changes flags */
        LOAD(0, "rax") LOAD(1, "rbx") LOAD(2, "rcx") LOAD(3, "rdx") LOAD(4, "rsi") LOAD(5, "rdi") LOAD(6, "rbp")
            LOAD(7, "rsp") LOAD(8, "r8") LOAD(9, "r9") LOAD(10, "r10") LOAD(11, "r11") LOAD(12, "r12") LOAD(13, "r13")
                LOAD(14, "r14") LOAD(15, "r15") "jmp *" DATA(80+8*16) "\n"
        "hw_parked_code_end:\n"
        ".popsection\n");
