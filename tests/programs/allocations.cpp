// allocations.cpp - one block lost by each function that allocates, also by those of libc that call malloc themselves:
// Valgrind writes suppressions for all of them, see test_leaks.c.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>
#include <vector>

#include "program.h"

struct alignas(64) line {
    char bytes[64];
};

#define LOSES(name, allocation)                                                                                        \
    NOINLINE static void name()                                                                                        \
    {                                                                                                                  \
        void *volatile block = allocation;                                                                             \
        block = nullptr;                                                                                               \
        (void)block;                                                                                                   \
    }

NOINLINE static void *by_posix_memalign()
{
    void *block;
    MUST(posix_memalign(&block, 64, 100) == 0);
    return block;
}
NOINLINE static void *by_asprintf()
{
    char *text;
    MUST(asprintf(&text, "%d", 12345) == 5);
    return text;
}
static inline __attribute__((always_inline)) void *inlined_into_another()
{
    return malloc(100);
}

LOSES(by_malloc, malloc(100))
LOSES(by_calloc, calloc(10, 10))
LOSES(by_realloc, realloc(nullptr, 100))
LOSES(by_reallocarray, reallocarray(nullptr, 10, 10))
LOSES(by_memalign, memalign(64, 100))
LOSES(by_posix, by_posix_memalign())
LOSES(by_aligned_alloc, aligned_alloc(64, 128))
LOSES(by_valloc, valloc(100))
LOSES(by_new, new int)
LOSES(by_array, new int[25])
LOSES(by_nothrow, new (std::nothrow) int)
LOSES(by_nothrow_array, new (std::nothrow) int[25])
LOSES(by_aligned, new line)
LOSES(by_aligned_array, new line[2])
LOSES(by_aligned_nothrow, new (std::nothrow) line)
LOSES(by_aligned_nothrow_array, new (std::nothrow) line[2])
LOSES(by_strdup, strdup("0123456789"))
LOSES(by_strndup, strndup("0123456789", 5))
LOSES(by_text, by_asprintf())
LOSES(by_inlined, inlined_into_another())
LOSES(by_vector, new std::vector<int>(25)) // two blocks, neither of which points to the other: the compiler sees no use

NOINLINE static void scrub()
{
    volatile char bytes[16384];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = 0;
}

int main()
{
    static void (*const all[])() = {by_malloc,
                                    by_calloc,
                                    by_realloc,
                                    by_reallocarray,
                                    by_memalign,
                                    by_posix,
                                    by_aligned_alloc,
                                    by_valloc,
                                    by_new,
                                    by_array,
                                    by_nothrow,
                                    by_nothrow_array,
                                    by_aligned,
                                    by_aligned_array,
                                    by_aligned_nothrow,
                                    by_aligned_nothrow_array,
                                    by_strdup,
                                    by_strndup,
                                    by_text,
                                    by_inlined,
                                    by_vector};
    for (auto lose : all)
        lose();
    scrub();
    return 0;
}
