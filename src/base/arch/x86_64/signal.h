/* signal.h - signal frames and system calls that the kernel hands to a handler, on x86-64. */
#ifndef HW_RUNTIME_ARCH_SIGNAL_H
#define HW_RUNTIME_ARCH_SIGNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/ucontext.h>

/* How the kernel takes and gives what sigaction is about. */
struct hw_arch_action {
    void *handler;
    uint64_t flags;
    void *restorer;
    uint64_t mask;
};
#define HW_ARCH_SA_RESTORER 0x04000000ull

/* Where handlers return to: the system call that ends them lies in the runtime's own code. For hw_arch_action.restorer;
 * not to be called. Unwinders and debuggers know it by its bytes and its table. */
void hw_arch_restorer(void);

/* Of a system call that was not executed: the frame stands behind its instruction. */
static inline long hw_arch_call_number(const ucontext_t *context)
{
    return (long)context->uc_mcontext.gregs[REG_RAX];
}
static inline void hw_arch_call_arguments(const ucontext_t *context, long arguments[6])
{
    static const uint8_t order[6] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};
    for (int i = 0; i < 6; i++)
        arguments[i] = (long)context->uc_mcontext.gregs[order[i]];
}
/* The program continues as if it had been executed, with this result of the kernel's. */
static inline void hw_arch_call_done(ucontext_t *context, long result)
{
    context->uc_mcontext.gregs[REG_RAX] = (greg_t)result;
}
/* The program executes it when the handler returns. */
static inline void hw_arch_call_again(ucontext_t *context)
{
    context->uc_mcontext.gregs[REG_RIP] -= 2;
}

/* Whether Valgrind translates this code: what its manual says that clients may ask. */
static inline bool hw_arch_on_valgrind(void)
{
    volatile uint64_t request[6] = {0x1001 /* RUNNING_ON_VALGRIND */};
    uint64_t result = 0;
    __asm__ volatile("rolq $3, %%rdi\n\t"
                     "rolq $13, %%rdi\n\t"
                     "rolq $61, %%rdi\n\t"
                     "rolq $51, %%rdi\n\t"
                     "xchgq %%rbx, %%rbx"
                     : "+d"(result)
                     : "a"(request)
                     : "cc", "memory");
    return result != 0;
}

#endif
