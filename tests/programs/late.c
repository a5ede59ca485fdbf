/* late.c - a program that counts nothing opens a library that counts (by hand, as access.c). LIBRARY: the library. */
#include "base/abi.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef LIBRARY
#ifndef GRANULE
#define GRANULE 64
#endif
#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)
__asm__(".pushsection " HW_ABI_NOTE_SECTION ",\"a\",@note\n"
        ".balign 4\n.long 9, 16, " TEXT(HW_ABI_NOTE_TYPE) "\n.asciz \"" HW_ABI_NOTE_NAME "\"\n.balign 4\n"
                                                          ".long " TEXT(HW_ABI_VERSION) ", " TEXT(
                                                              GRANULE) ", 0, 0\n.popsection");

extern __thread uintptr_t __heapwise_plane __attribute__((tls_model("initial-exec")));
void __heapwise_init_v1(uint32_t granule);
__attribute__((constructor(101))) static void start(void)
{
    __heapwise_init_v1(GRANULE);
}

int late_global[16] __attribute__((aligned(64)));

static void reads(const void *p, int n)
{
    while (n--)
        *(volatile uint32_t *)(__heapwise_plane + ((uintptr_t)p >> 6 << 3)) += 1;
}

__attribute__((noinline)) static void *late_block(size_t size)
{
    void *p = malloc(size);
    __asm__ volatile("" : "+r"(p));
    return p;
}

void late_read(const char *old)
{
    reads(old, 1);
}

void late_work(char *old)
{
    char *p = late_block(100);
    reads(old, 10);
    reads(p, 7);
    free(p);
    reads(late_global, 3);
    reads(late_block(5), 1);
}
#else
__attribute__((noinline)) static void *early_block(size_t size)
{
    void *p = malloc(size);
    __asm__ volatile("" : "+r"(p));
    return p;
}

/* Small ones side by side, which share granules. */
enum { PAIRS = 100 };

__attribute__((noinline)) static void *early_cold(void)
{
    void *p = malloc(24);
    __asm__ volatile("" : "+r"(p));
    return p;
}

__attribute__((noinline)) static void *early_hot(void)
{
    void *p = malloc(24);
    __asm__ volatile("" : "+r"(p));
    return p;
}

int main(int argc, char **argv)
{
    char *block[2000], *cold[PAIRS], *hot[PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        cold[i] = early_cold();
        hot[i] = early_hot();
    }
    for (int i = 0; i < 2000; i++)
        block[i] = early_block(10 + (size_t)i);
    for (int k = 0; k < 3; k++) {
        void *library = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW);
        if (!library) {
            puts(dlerror());
            return 2;
        }
        void (*work)(char *) = (void (*)(char *))dlsym(library, "late_work");
        work(block[0]);
        void (*read)(const char *) = (void (*)(const char *))dlsym(library, "late_read");
        for (int i = 0; i < PAIRS; i++)
            read(hot[i]);
        dlclose(library);
    }
    for (int i = 0; i < 2000; i++)
        block[i] = realloc(block[i], 20 + 2 * (size_t)i);
    for (int i = 0; i < 1999; i++)
        free(block[i]);
    for (int i = 0; i < PAIRS; i++)
        free(cold[i]);
    for (int i = 0; i < PAIRS; i++)
        free(hot[i]);
    return 0;
}
#endif
