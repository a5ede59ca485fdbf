/* parked.c - see parked.h. Nothing here touches vector registers; calls do, and the room's code restores them. */
#include "base/parked.h"

#include <stddef.h>

_Static_assert(offsetof(struct hw_parked, begin) == 56, "as below");
_Static_assert(offsetof(struct hw_parked, leave) == 80, "as below");
_Static_assert(offsetof(struct hw_parked, moment) == 88, "as below");
_Static_assert(offsetof(struct hw_parked, xsave) == 128, "as below");
_Static_assert(offsetof(struct hw_gate, room) == 8 && offsetof(struct hw_gate, room_bytes) == 16, "as below");
_Static_assert(offsetof(struct hw_gate, all) == 24 && offsetof(struct hw_gate, signals) == 32, "as below");
_Static_assert(offsetof(struct hw_gate, registers) == 40 && sizeof(struct hw_gate) == 184, "as below");

#define GATE(offset)      "hw_gate+" #offset "(%rip)"
#define DATA(offset)      "hw_parked_code+4096+" #offset "(%rip)"
#define LOAD(index, name) "mov hw_gate+40+8*" #index "(%rip), %" name "\n"
/* Waits 100 microseconds, or 10 milliseconds when only SLOW rounds of COUNTER are left: a busy machine makes short
 * waits long. rdx: two words for the time. ppoll leaves no call behind that has to be begun again. */
#define SLOW "1500"
#define WAIT(counter)                                                                                                  \
    "movq $0, (%rdx)\n"                                                                                                \
    "movq $100000, 8(%rdx)\n"                                                                                          \
    "cmpq $" SLOW ", " counter "\n"                                                                                    \
    "jg 9f\n"                                                                                                          \
    "movq $10000000, 8(%rdx)\n"                                                                                        \
    "9: "                                                                                                              \
    "xor %edi, %edi\n"                                                                                                 \
    "xor %esi, %esi\n"                                                                                                 \
    "xor %r10d, %r10d\n"                                                                                               \
    "mov $8, %r8d\n"                                                                                                   \
    "mov $271, %eax\n"                                                                                                 \
    "syscall\n"
/* rsi: the set that is blocked from now on */
#define BLOCK                                                                                                          \
    "mov $2, %edi\n" /* SIG_SETMASK */                                                                                 \
    "xor %edx, %edx\n"                                                                                                 \
    "mov $8, %r10d\n"                                                                                                  \
    "mov $14, %eax\n" /* rt_sigprocmask */                                                                             \
    "syscall\n"

__asm__(
    ".pushsection .rodata\n"
    ".balign 64\n"
    ".globl hw_gate, hw_gate_entry, hw_gate_failed, hw_gate_unmap, hw_gate_out, hw_gate_end\n"
    ".hidden hw_gate, hw_gate_entry, hw_gate_failed, hw_gate_unmap, hw_gate_out, hw_gate_end\n"
    "hw_gate:\n"
    ".skip 184\n"
    "hw_gate_entry:\n"
    "cld\n"
    "lea " GATE(24) ", %rsi\n" BLOCK "mov " GATE(
        8) ", %rdi\n"
           "mov " GATE(
               16) ", %rsi\n"
                   "mov $3, %edx\n"
                   "mov $0x100022, %r10d\n" /* MAP_PRIVATE, MAP_ANONYMOUS, MAP_FIXED_NOREPLACE */
                   "mov $-1, %r8\n"
                   "xor %r9d, %r9d\n"
                   "mov $9, %eax\n" /* mmap */
                   "syscall\n"
                   "mov %rax, %rbx\n"
                   "xor %r13d, %r13d\n" /* there is no room */
                   "cmp %rax, " GATE(
                       8) "\n"
                          "jne hw_gate_failed\n"
                          "mov $1, %r13d\n"
                          "mov %rax, %rdi\n"
                          "mov $4096, %esi\n"
                          "mov $5, %edx\n"
                          "mov $10, %eax\n" /* mprotect */
                          "syscall\n"
                          "mov %rax, %rbx\n"
                          "test %rax, %rax\n"
                          "jnz hw_gate_failed\n"
                          "mov $3500, %r12d\n"
                          "1: mov " GATE(
                              8) ", %r14\n"
                                 "cmpq $0, 4096+56(%r14)\n"
                                 "je 2f\n"
                                 "mov %r14, %rsp\n"
                                 "add " GATE(
                                     16) ", %rsp\n"
                                         "sub $64, %rsp\n"
                                         "jmp *%r14\n"
                                         "2: lea 4096+88(%r14), %rdx\n" WAIT(
                                             "%r12") "dec %r12d\n"
                                                     "jnz 1b\n"
                                                     "jmp hw_gate_unmap\n"
                                                     "hw_gate_failed:\n"
                                                     "mov $3500, %r12d\n"
                                                     "3: lea -256(%rsp), %rdx\n" WAIT(
                                                         "%r12") "dec %r12d\n"
                                                                 "jnz 3b\n"
                                                                 "hw_gate_out:\n"
                                                                 "test %r13d, %r13d\n"
                                                                 "jz 4f\n"
                                                                 "hw_gate_unmap:\n"
                                                                 "mov " GATE(
                                                                     40 +
                                                                     8 * 7) ", %rsp\n"
                                                                            "sub $256, %rsp\n"
                                                                            "mov " GATE(
                                                                                8) ", %rdi\n"
                                                                                   "mov " GATE(
                                                                                       16) ", %rsi\n"
                                                                                           "mov $11, %eax\n"
                                                                                           "syscall\n"
                                                                                           "4: mov " GATE(
                                                                                               40 +
                                                                                               8 * 7) ", %rsp\n"
                                                                                                      "sub $256, %rsp\n"
                                                                                                      "lea " GATE(
                                                                                                          32) ", %rsi\n" BLOCK
                                                                                                              "pushq " GATE(
                                                                                                                  40 +
                                                                                                                  8 * 17) "\n"
                                                                                                                          "popfq\n" /* nothing below changes flags */
    LOAD(0, "rax") LOAD(1, "rbx") LOAD(2, "rcx") LOAD(3, "rdx") LOAD(4, "rsi") LOAD(5, "rdi") LOAD(6, "rbp") LOAD(
        8, "r8") LOAD(9, "r9") LOAD(10, "r10") LOAD(11, "r11") LOAD(12, "r12") LOAD(13, "r13") LOAD(14, "r14")
        LOAD(15, "r15") LOAD(7, "rsp") "jmp *" GATE(
            40 +
            8 * 16) "\n"
                    "hw_gate_end:\n"

                    ".balign 64\n"
                    ".globl hw_parked_code, hw_parked_leave, hw_parked_code_end\n"
                    ".hidden hw_parked_code, hw_parked_leave, hw_parked_code_end\n"
                    "hw_parked_code:\n"
                    "movq $2, " DATA(
                        56) "\n"
                            "1: mov " DATA(
                                0) ", %rax\n"
                                   "test %rax, %rax\n"
                                   "jz 2f\n"
                                   "mov " DATA(
                                       8) ", %rdi\n"
                                          "mov " DATA(
                                              16) ", %rsi\n"
                                                  "mov " DATA(
                                                      24) ", %rdx\n"
                                                          "xor %ebp, %ebp\n"
                                                          "call *%rax\n"
                                                          "mov %rax, " DATA(
                                                              32) "\n"
                                                                  "movq $0, " DATA(
                                                                      0) "\n"
                                                                         "movq $3500, " DATA(
                                                                             48) "\n"
                                                                                 "movq $1, " DATA(
                                                                                     40) "\n"
                                                                                         "jmp 1b\n"
                                                                                         "2: lea " DATA(88) ", %rdx\n" WAIT(DATA(48)) "decq " DATA(
                                                                                             48) "\n"
                                                                                                 "jg 1b\n"
                                                                                                 "hw_parked_leave:\n"
                                                                                                 "mov " DATA(
                                                                                                     64) ", %rax\n"
                                                                                                         "test %rax, %rax\n"
                                                                                                         "jz 3f\n"
                                                                                                         "mov " DATA(
                                                                                                             72) ", %rcx\n"
                                                                                                                 "mov %ecx, (%rax)\n"
                                                                                                                 "3: mov $-1, %eax\n"
                                                                                                                 "mov $-1, %edx\n"
                                                                                                                 "xrstor64 " DATA(
                                                                                                                     128) "\n"
                                                                                                                          "jmp *" DATA(
                                                                                                                              80) "\n"
                                                                                                                                  "hw_parked_code_end:\n"
                                                                                                                                  ".popsection\n");
