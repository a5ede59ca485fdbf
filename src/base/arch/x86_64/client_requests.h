/* client_requests.h - requests that programs address to Valgrind ("client requests"), redirected where they stand. */
#ifndef HW_RUNTIME_CLIENT_REQUESTS_H
#define HW_RUNTIME_CLIENT_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

/* False: this processor or kernel cannot save all registers, and nothing may be redirected. Called once, before the
 * others. */
bool hw_arch_requests_start(void);

struct hw_arch_requests {
    uint32_t found, failed; /* of these, how many could not be redirected */
};
/* Redirects the requests in the code [start, end), which must be readable, and which no other thread executes. Those
 * that were redirected before are not found again. */
struct hw_arch_requests hw_arch_requests_redirect(uintptr_t start, uintptr_t end);

/* Redirects FUNCTION, which does nothing but return, to hw_libraries_changed. False: it is not such a function, there
 * is no room behind it, or code cannot be changed. No other thread executes it. */
bool hw_arch_redirect_empty(void *function);

/* What redirected code calls, with all registers saved. REQUEST has six words: its number and arguments; the answer is
 * USUAL without Valgrind. PC, SP and FP: the return address, the stack pointer and the frame pointer of the code. */
uint64_t hw_request_received(const uint64_t *request, uint64_t usual, uintptr_t pc, uintptr_t sp, uintptr_t fp);
void hw_libraries_changed(void);

#endif
