/* patch.h - what patch.c and client_requests.c share: writing code. */
#ifndef HW_RUNTIME_PATCH_H
#define HW_RUNTIME_PATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether 32-bit distances lead from FROM to TO. */
static inline bool hw_arch_reaches(const void *from, const void *to)
{
    intptr_t distance = (intptr_t)to - (intptr_t)from;
    return distance == (int32_t)distance;
}

/* Writes a distance of 32 bits. */
static inline void hw_arch_put32(uint8_t *at, int64_t value)
{
    int32_t narrow = (int32_t)value;
    __builtin_memcpy(at, &narrow, 4);
}

/* A new page, readable and writable, that TARGET reaches; NULL: there is none. */
uint8_t *hw_arch_page_near(const uint8_t *target);
/* jmp *0(%rip), and TO behind it; the address behind both. */
uint8_t *hw_arch_put_jump(uint8_t *at, const void *to);
/* Changes code. False: it may not be written. */
bool hw_arch_write_code(uint8_t *target, const uint8_t *bytes, size_t size);

#endif
