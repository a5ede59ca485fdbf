/* client_requests.c - requests to Valgrind, redirected where they stand in the code of programs.
 *
 * Valgrind's headers put the same 19 bytes at every request: four rotations of %rdi by 128 bits in all, and
 * "xchg %rbx, %rbx". They do nothing; only Valgrind knows them. %rax points to the request, %rdx holds the answer that
 * the program gets when nobody answers. (Valgrind's manual, "The Client Request mechanism"; valgrind.h.)
 *
 * 19 bytes are room for a call that passes over the red zone, the 128 bytes below the stack pointer where a function
 * that calls nothing may keep its data:
 *
 *     lea -128(%rsp), %rsp        48 8d 64 24 80
 *     call near                   e8 rel32
 *     lea 128(%rsp), %rsp         48 8d a4 24 80 00 00 00
 *     nop                         90
 *
 * So no instruction has to be moved, and no table of places is needed. `near` is a jump to the entry below, on a page
 * of its own that the code reaches. The bytes stand in one asm statement: no jump leads into their middle. That bytes
 * of data in the code are the same 19 by chance is out of the question (152 bits).
 *
 * The entry saves what a function may change: requests stand in code that expects no register to change. The runtime's
 * own code uses the low halves of 16 vector registers. But in the first event of a thread, and of a forked child, it
 * calls libc, which uses more: then XSAVE saves all, which takes some hundreds of cycles. `hw_self`, the state of the
 * thread, begins with its gate: if that is open, it is no such event.
 *
 * The unwind table of the entry says where the return address lies. Between the two leas and the call, the table of the
 * program's function is 128 bytes off if it counts from the stack pointer: a signal handler that unwinds from one of
 * these two instructions gets a wrong or short stack. */
#include "base/arch/x86_64/client_requests.h"

#include "base/arch/x86_64/patch.h"
#include "base/sys.h"

#define REQUEST_BYTES 19u
#define NEAR_PAGES    16u /* one serves all libraries that lie together, another one the program */
#define JUMP_BYTES    5u
#define STATE_PARTS   0xe7u /* x87, SSE, AVX, AVX-512: of XSAVE's components what code without special rights uses */
#define STATE_LEAST   576u  /* the legacy area and the header */
#define STATE_MOST    4096u

static const uint8_t request_bytes[REQUEST_BYTES] = {0x48, 0xc1, 0xc7, 0x03, 0x48, 0xc1, 0xc7, 0x0d, 0x48, 0xc1,
                                                     0xc7, 0x3d, 0x48, 0xc1, 0xc7, 0x33, 0x48, 0x87, 0xdb};

/* Bytes on the stack that the entry saves vector registers in. */
uint64_t hw_arch_request_state __attribute__((visibility("hidden")));

/* An entry: NAME is jumped to by a call that left the return address at the CFA - AT_RETURN. DO calls the function.
 * FIRST may do all that lies between the pushes and label 2, or jump to label 1. */
#define TEXT(x)  #x
#define VALUE(x) TEXT(x)
// clang-format off
#define ENTRY(name, cfa, cfa_pushed, at_return, first, do)                                                             \
    ".globl " name "\n.hidden " name "\n.type " name ", @function\n"                                                   \
    ".p2align 4\n" name ":\n"                                                                                          \
    ".cfi_startproc\n"                                                                                                 \
    ".cfi_def_cfa 7, " cfa "\n"                                                                                        \
    ".cfi_offset 16, -" at_return "\n"                                                                                 \
    "endbr64\n"                                                                                                        \
    "push %rbp\n"                                                                                                      \
    ".cfi_def_cfa 7, " cfa_pushed "\n"                                                                                 \
    ".cfi_offset 6, -" cfa_pushed "\n"                                                                                 \
    "mov %rsp, %rbp\n"                                                                                                 \
    ".cfi_def_cfa 6, " cfa_pushed "\n"                                                                                 \
    "push %rax\npush %rcx\npush %rdx\npush %rsi\npush %rdi\npush %r8\npush %r9\npush %r10\npush %r11\n"                \
    first                                                                                                              \
    "1: sub hw_arch_request_state(%rip), %rsp\n"                                                                       \
    "and $-64, %rsp\n"                                                                                                 \
    "xor %edx, %edx\n" /* the header has to be zero */                                                                 \
    "mov %rdx, 512(%rsp)\nmov %rdx, 520(%rsp)\nmov %rdx, 528(%rsp)\nmov %rdx, 536(%rsp)\n"                             \
    "mov %rdx, 544(%rsp)\nmov %rdx, 552(%rsp)\nmov %rdx, 560(%rsp)\nmov %rdx, 568(%rsp)\n"                             \
    "mov $" VALUE(STATE_PARTS) ", %eax\n"                                                                              \
    "xsave64 (%rsp)\n"                                                                                                 \
    do                                                                                                                 \
    "mov $" VALUE(STATE_PARTS) ", %eax\n"                                                                              \
    "xor %edx, %edx\n"                                                                                                 \
    "xrstor64 (%rsp)\n"                                                                                                \
    "2: lea -72(%rbp), %rsp\n"                                                                                         \
    "pop %r11\npop %r10\npop %r9\npop %r8\npop %rdi\npop %rsi\npop %rdx\npop %rcx\npop %rax\n"                         \
    "pop %rbp\n"                                                                                                       \
    ".cfi_restore 6\n"                                                                                                 \
    ".cfi_def_cfa 7, " cfa "\n"                                                                                        \
    "ret\n"                                                                                                            \
    ".cfi_endproc\n"                                                                                                   \
    ".size " name ", . - " name "\n"
#define EACH_XMM(name)                                                                                                 \
    name(0) name(1) name(2) name(3) name(4) name(5) name(6) name(7) name(8) name(9) name(10) name(11) name(12)         \
    name(13) name(14) name(15)
#define SAVE(index) "movaps %xmm" #index ", 16*" #index "(%rsp)\n"
#define LOAD(index) "movaps 16*" #index "(%rsp), %xmm" #index "\n"
#define RECEIVE                                                                                                        \
    "mov -8(%rbp), %rdi\nmov -24(%rbp), %rsi\nmov 8(%rbp), %rdx\nlea 144(%rbp), %rcx\nmov (%rbp), %r8\n"               \
    "call hw_request_received\n"                                                                                       \
    "mov %rax, -24(%rbp)\n"

#ifdef __AVX__ /* the runtime was built for this processor alone, and changes all of a vector register */
#define FAST ""
#else
#define FAST                                                                                                           \
    "mov hw_self@gottpoff(%rip), %rax\n"                                                                               \
    "mov %fs:(%rax), %rax\n"                                                                                           \
    "test %rax, %rax\n"                                                                                                \
    "jz 1f\n"                                                                                                          \
    "cmpq $1, (%rax)\n" /* HW_GATE_OPEN */                                                                             \
    "jne 1f\n"                                                                                                         \
    "sub $256, %rsp\n"                                                                                                 \
    "and $-16, %rsp\n"                                                                                                 \
    EACH_XMM(SAVE)                                                                                                     \
    RECEIVE                                                                                                            \
    EACH_XMM(LOAD)                                                                                                     \
    "jmp 2f\n"
#endif

__asm__(".pushsection .text\n"
        ".hidden hw_arch_request_state, hw_request_received, hw_libraries_changed, hw_self\n"
        ENTRY("hw_arch_request_enter", "136", "144", "136", FAST, RECEIVE)
        ENTRY("hw_arch_libraries_enter", "8", "16", "8", "", "call hw_libraries_changed\n")
        ".popsection\n");
// clang-format on

extern const char hw_arch_request_enter[] __attribute__((visibility("hidden")));
extern const char hw_arch_libraries_enter[] __attribute__((visibility("hidden")));

/* Pages with a jump to each of the two. */
static struct {
    uint8_t *page[NEAR_PAGES];
    uint32_t count;
} near;

enum { TO_REQUEST = 0, TO_LIBRARIES = 16 };

bool hw_arch_requests_start(void)
{
    uint32_t a, b, c, d, end = STATE_LEAST;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & 1u << 27)) /* OSXSAVE */
        return false;
    for (uint32_t part = 2; part < 8; part++) {
        if (!(STATE_PARTS & 1u << part))
            continue;
        if (!__get_cpuid_count(13, part, &a, &b, &c, &d))
            return false;
        end = a && a + b > end ? a + b : end; /* bytes, and where they begin */
    }
    hw_arch_request_state = HW_ALIGN_UP((uint64_t)end, 64);
    return end <= STATE_MOST;
}

static uint8_t *page_near(const uint8_t *code)
{
    for (uint32_t i = 0; i < near.count; i++)
        if (hw_arch_reaches(code, near.page[i]))
            return near.page[i];
    uint8_t *page = near.count < NEAR_PAGES ? hw_arch_page_near(code) : NULL;
    if (!page)
        return NULL;
    hw_arch_put_jump(page + TO_REQUEST, hw_arch_request_enter);
    hw_arch_put_jump(page + TO_LIBRARIES, hw_arch_libraries_enter);
    if (hw_mprotect(page, HW_PAGE, PROT_READ | PROT_EXEC) != 0) {
        hw_munmap(page, HW_PAGE);
        return NULL;
    }
    near.page[near.count++] = page;
    return page;
}

static bool redirect(uint8_t *site)
{
    uint8_t code[REQUEST_BYTES] = {0x48, 0x8d, 0x64, 0x24, 0x80, 0xe8, 0, 0, 0,   0,
                                   0x48, 0x8d, 0xa4, 0x24, 0x80, 0,    0, 0, 0x90};
    const uint8_t *page = page_near(site);
    if (!page)
        return false;
    hw_arch_put32(code + 6, page + TO_REQUEST - (site + 10));
    return hw_arch_write_code(site, code, sizeof code);
}

/* Boyer and Moore, as Horspool simplified it: most bytes of code are never read. */
struct hw_arch_requests hw_arch_requests_redirect(uintptr_t start, uintptr_t end)
{
    struct hw_arch_requests requests = {0};
    uint8_t skip[256];
    const uint32_t last = REQUEST_BYTES - 1;
    for (uint32_t i = 0; i < 256; i++)
        skip[i] = REQUEST_BYTES;
    for (uint32_t i = 0; i < last; i++)
        skip[request_bytes[i]] = (uint8_t)(last - i);
    for (uintptr_t at = start; at + REQUEST_BYTES <= end;) {
        const uint8_t *code = (const uint8_t *)at;
        uint32_t same = 0;
        while (same < REQUEST_BYTES && code[last - same] == request_bytes[last - same])
            same++;
        if (same < REQUEST_BYTES) {
            at += skip[code[last]];
            continue;
        }
        requests.found++;
        requests.failed += !redirect((uint8_t *)at);
        at += REQUEST_BYTES;
    }
    return requests;
}

/* Bytes of an instruction that does nothing, as assemblers fill gaps with; 0: it is none. */
static uint32_t padding(const uint8_t *code)
{
    uint32_t at = 0;
    while (at < 8 && (code[at] == 0x66 || code[at] == 0x2e))
        at++;
    if (code[at] == 0x90 || code[at] == 0xcc)
        return at + 1;
    if (code[at] != 0x0f || code[at + 1] != 0x1f)
        return 0;
    const uint8_t modrm = code[at + 2], mod = modrm >> 6;
    return mod > 2 ? 0 : at + 3 + ((modrm & 7) == 4) + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

bool hw_arch_redirect_empty(void *function)
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    uint8_t *code = function;
    uint32_t at = __builtin_memcmp(code, endbr64, sizeof endbr64) == 0 ? sizeof endbr64 : 0;
    if (code[at++] != 0xc3)
        return false;
    while (at < JUMP_BYTES) {
        const uint32_t length = padding(code + at);
        if (!length)
            return false;
        at += length;
    }
    const uint8_t *page = page_near(code);
    uint8_t jump[JUMP_BYTES] = {0xe9};
    if (!page)
        return false;
    hw_arch_put32(jump + 1, page + TO_LIBRARIES - (code + JUMP_BYTES));
    return hw_arch_write_code(code, jump, sizeof jump);
}
