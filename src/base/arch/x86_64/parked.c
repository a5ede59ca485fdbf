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

#define ROOM        "hw_gate+8(%rip)"
#define ROOM_BYTES  "hw_gate+16(%rip)"
#define ALL_SIGNALS "hw_gate+24(%rip)"
#define SIGNALS     "hw_gate+32(%rip)"
#define RSP         "hw_gate+40+8*7(%rip)"
#define FLAGS       "hw_gate+40+8*17(%rip)"
#define RIP         "hw_gate+40+8*16(%rip)"
#define FUNCTION    "hw_parked_code+4096+0(%rip)"
#define FIRST       "hw_parked_code+4096+8(%rip)"
#define SECOND      "hw_parked_code+4096+16(%rip)"
#define THIRD       "hw_parked_code+4096+24(%rip)"
#define RESULT      "hw_parked_code+4096+32(%rip)"
#define DONE        "hw_parked_code+4096+40(%rip)"
#define PATIENCE    "hw_parked_code+4096+48(%rip)"
#define BEGIN       "hw_parked_code+4096+56(%rip)"
#define ERROR_PLACE "hw_parked_code+4096+64(%rip)"
#define ERROR       "hw_parked_code+4096+72(%rip)"
#define LEAVE       "hw_parked_code+4096+80(%rip)"
#define MOMENT      "hw_parked_code+4096+88(%rip)"
#define XSAVE       "hw_parked_code+4096+128(%rip)"
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
#define WAIT_R12      WAIT("%r12")
#define WAIT_PATIENCE WAIT(PATIENCE)
/* rsi: the set that is blocked from now on */
#define BLOCK                                                                                                          \
    "mov $2, %edi\n" /* SIG_SETMASK */                                                                                 \
    "xor %edx, %edx\n"                                                                                                 \
    "mov $8, %r10d\n"                                                                                                  \
    "mov $14, %eax\n" /* rt_sigprocmask */                                                                             \
    "syscall\n"

__asm__(".pushsection .rodata\n"
        ".balign 64\n"
        ".globl hw_gate, hw_gate_entry, hw_gate_failed, hw_gate_unmap, hw_gate_out, hw_gate_end\n"
        ".hidden hw_gate, hw_gate_entry, hw_gate_failed, hw_gate_unmap, hw_gate_out, hw_gate_end\n"
        "hw_gate:\n"
        ".skip 184\n"
        "hw_gate_entry:\n"
        "cld\n"
        "lea " ALL_SIGNALS ", %rsi\n" BLOCK "mov " ROOM ", %rdi\n"
        "mov " ROOM_BYTES ", %rsi\n"
        "mov $3, %edx\n"
        "mov $0x100022, %r10d\n" /* MAP_PRIVATE, MAP_ANONYMOUS, MAP_FIXED_NOREPLACE */
        "mov $-1, %r8\n"
        "xor %r9d, %r9d\n"
        "mov $9, %eax\n" /* mmap */
        "syscall\n"
        "mov %rax, %rbx\n"
        "xor %r13d, %r13d\n" /* there is no room */
        "cmp %rax, " ROOM "\n"
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
        "1: mov " ROOM ", %r14\n"
        "cmpq $0, 4096+56(%r14)\n"
        "je 2f\n"
        "mov %r14, %rsp\n"
        "add " ROOM_BYTES ", %rsp\n"
        "sub $64, %rsp\n"
        "jmp *%r14\n"
        "2: lea 4096+88(%r14), %rdx\n" WAIT_R12 "dec %r12d\n"
        "jnz 1b\n"
        "jmp hw_gate_unmap\n"
        "hw_gate_failed:\n"
        "mov $3500, %r12d\n"
        "3: lea -256(%rsp), %rdx\n" WAIT_R12 "dec %r12d\n"
        "jnz 3b\n"
        "hw_gate_out:\n"
        "test %r13d, %r13d\n"
        "jz 4f\n"
        "hw_gate_unmap:\n"
        "mov " RSP ", %rsp\n"
        "sub $256, %rsp\n"
        "mov " ROOM ", %rdi\n"
        "mov " ROOM_BYTES ", %rsi\n"
        "mov $11, %eax\n"
        "syscall\n"
        "4: mov " RSP ", %rsp\n"
        "sub $256, %rsp\n"
        "lea " SIGNALS ", %rsi\n" BLOCK "pushq " FLAGS "\n"
        "popfq\n" /* nothing below changes flags */
        "mov hw_gate+40+8*0(%rip), %rax\n"
        "mov hw_gate+40+8*1(%rip), %rbx\n"
        "mov hw_gate+40+8*2(%rip), %rcx\n"
        "mov hw_gate+40+8*3(%rip), %rdx\n"
        "mov hw_gate+40+8*4(%rip), %rsi\n"
        "mov hw_gate+40+8*5(%rip), %rdi\n"
        "mov hw_gate+40+8*6(%rip), %rbp\n"
        "mov hw_gate+40+8*8(%rip), %r8\n"
        "mov hw_gate+40+8*9(%rip), %r9\n"
        "mov hw_gate+40+8*10(%rip), %r10\n"
        "mov hw_gate+40+8*11(%rip), %r11\n"
        "mov hw_gate+40+8*12(%rip), %r12\n"
        "mov hw_gate+40+8*13(%rip), %r13\n"
        "mov hw_gate+40+8*14(%rip), %r14\n"
        "mov hw_gate+40+8*15(%rip), %r15\n"
        "mov hw_gate+40+8*7(%rip), %rsp\n"
        "jmp *" RIP "\n"
        "hw_gate_end:\n"

        ".balign 64\n"
        ".globl hw_parked_code, hw_parked_leave, hw_parked_code_end\n"
        ".hidden hw_parked_code, hw_parked_leave, hw_parked_code_end\n"
        "hw_parked_code:\n"
        "movq $2, " BEGIN "\n"
        "1: mov " FUNCTION ", %rax\n"
        "test %rax, %rax\n"
        "jz 2f\n"
        "movq $3500, " PATIENCE "\n"
        "mov " FIRST ", %rdi\n"
        "mov " SECOND ", %rsi\n"
        "mov " THIRD ", %rdx\n"
        "xor %ebp, %ebp\n"
        "call *%rax\n"
        "mov %rax, " RESULT "\n"
        "movq $0, " FUNCTION "\n"
        "movq $1, " DONE "\n"
        "jmp 1b\n"
        "2: cmpq $0, " PATIENCE "\n"
        "jle hw_parked_leave\n"
        "lea " MOMENT ", %rdx\n" WAIT_PATIENCE "decq " PATIENCE "\n"
        "jg 1b\n"
        "hw_parked_leave:\n"
        "mov " ERROR_PLACE ", %rax\n"
        "test %rax, %rax\n"
        "jz 3f\n"
        "mov " ERROR ", %rcx\n"
        "mov %ecx, (%rax)\n"
        "3: mov $-1, %eax\n"
        "mov $-1, %edx\n"
        "xrstor64 " XSAVE "\n"
        "jmp *" LEAVE "\n"
        "hw_parked_code_end:\n"
        ".popsection\n");
