/* string.c - memcpy and its kin for the runtime itself, and for what it copies on behalf of the program.
 *
 * They are libc's, looked up at the start. The runtime must not refer to them by name: it names no libc that it depends
 * on, so the dynamic linker may bind its symbols before libc is ready to say which memcpy is the right one for this
 * processor (an IFUNC). Before the start, and when there is no libc, the processor's own string instructions serve. */
#include "runtime/core/core.h"

extern void *dlsym(void *, const char *) __attribute__((weak));

static struct {
    void *(*copy)(void *, const void *, size_t);
    void *(*move)(void *, const void *, size_t);
    void *(*set)(void *, int, size_t);
} libc;

void hw_string_start(void)
{
    if (!dlsym)
        return;
    *(void **)&libc.copy = dlsym(NULL, "memcpy");
    *(void **)&libc.move = dlsym(NULL, "memmove");
    *(void **)&libc.set = dlsym(NULL, "memset");
}

HW_HIDDEN void *memcpy(void *to, const void *from, size_t bytes);
HW_HIDDEN void *memmove(void *to, const void *from, size_t bytes);
HW_HIDDEN void *memset(void *to, int value, size_t bytes);

void *memcpy(void *to, const void *from, size_t bytes)
{
    if (hw_likely(libc.copy != NULL))
        return libc.copy(to, from, bytes);
    hw_arch_copy(to, from, bytes);
    return to;
}

void *memmove(void *to, const void *from, size_t bytes)
{
    if (hw_likely(libc.move != NULL))
        return libc.move(to, from, bytes);
    if ((uintptr_t)to - (uintptr_t)from >= bytes)
        hw_arch_copy(to, from, bytes);
    else
        for (size_t i = bytes; i-- > 0;)
            ((volatile char *)to)[i] = ((const char *)from)[i];
    return to;
}

void *memset(void *to, int value, size_t bytes)
{
    if (hw_likely(libc.set != NULL))
        return libc.set(to, value, bytes);
    hw_arch_fill(to, (unsigned char)value, bytes);
    return to;
}
