/* property.h - what the programs made by generate.c are written in: C17 and C++17 alike.
 *
 * Every access to a block of the heap goes through one of the macros below, so that one text can be built as
 *
 *   (nothing)      the program itself: plain accesses, for compilers to optimise
 *   -DALIGNED      its blocks start on a granule, so that what copies touch does not depend on where blocks lie
 *   -DVOLATILE     every access is volatile and copies are loops of bytes: no optimiser may drop or add an access
 *   -DSELF         the program counts its own accesses, block by block, and prints them: the independent count
 *
 * An lvalue that is handed to a macro has no side effects and no access in it: it may be evaluated twice. */
#ifndef TESTS_PROPERTY_H
#define TESTS_PROPERTY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, used))
#define UNUSED   __attribute__((unused))
#define KEEP(p)  __asm__ volatile("" : : "r"(p) : "memory")
#define GLOBAL   __attribute__((aligned(64), used))

UNUSED static void say(const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (write(1, text, (size_t)length) < 0)
        _exit(99);
}

/* Fills memory by code that counts nothing. */
static void *(*volatile fill)(void *, int, size_t) = memset;

#ifdef SELF
/* The independent count. A block is looked for by address among those that live. */
struct self_block {
    uintptr_t start;
    size_t size;
    int site;
    uint64_t reads, writes;
};
struct self_site {
    uint64_t blocks, reads, writes, least, most;
};
static struct self_block self_blocks[65536];
static size_t self_count, self_last;
static struct self_site self_sites[256];

static void self_new(int site, void *block, size_t size)
{
    if (self_count == sizeof self_blocks / sizeof *self_blocks)
        abort();
    self_blocks[self_count].start = (uintptr_t)block;
    self_blocks[self_count].size = size;
    self_blocks[self_count].site = site;
    self_blocks[self_count].reads = self_blocks[self_count].writes = 0;
    self_count++;
}

static struct self_block *self_find(uintptr_t address)
{
    if (self_last < self_count && address - self_blocks[self_last].start < self_blocks[self_last].size)
        return &self_blocks[self_last];
    for (size_t i = self_count; i-- > 0;) {
        if (address - self_blocks[i].start < self_blocks[i].size) {
            self_last = i;
            return &self_blocks[i];
        }
    }
    return NULL;
}

static void self_add(const volatile void *address, unsigned reads, unsigned writes)
{
    struct self_block *block = self_find((uintptr_t)address);
    if (block) {
        block->reads += reads;
        block->writes += writes;
    }
}

/* Once in each granule. */
UNUSED static void self_touch(const volatile void *start, size_t bytes, unsigned reads, unsigned writes)
{
    uintptr_t first = (uintptr_t)start, end = first + bytes;
    for (uintptr_t at = first; at < end; at = (at | 63) + 1)
        self_add((const void *)at, reads, writes);
}

static void self_end(struct self_block *block)
{
    struct self_site *site = &self_sites[block->site];
    uint64_t all = block->reads + block->writes;
    if (site->blocks == 0 || all < site->least)
        site->least = all;
    if (all > site->most)
        site->most = all;
    site->blocks++;
    site->reads += block->reads;
    site->writes += block->writes;
}

static void self_free(void *address)
{
    struct self_block *block = self_find((uintptr_t)address);
    if (!block)
        return;
    self_end(block);
    *block = self_blocks[--self_count];
}

UNUSED static void *self_realloc(void *address, size_t size)
{
    struct self_block *block = self_find((uintptr_t)address);
    void *moved = realloc(address, size);
    block->start = (uintptr_t)moved;
    block->size = size;
    return moved;
}

static void self_print(void)
{
    while (self_count)
        self_end(&self_blocks[--self_count]);
    for (int i = 0; i < 256; i++)
        if (self_sites[i].blocks)
            say("site %d %llu %llu %llu %llu %llu\n", i, (unsigned long long)self_sites[i].blocks,
                (unsigned long long)self_sites[i].reads, (unsigned long long)self_sites[i].writes,
                (unsigned long long)self_sites[i].least, (unsigned long long)self_sites[i].most);
}
#define COUNT(l, r, w)          self_add(&(l), r, w)
#define COUNT_AT(p, r, w)       self_add(p, r, w)
#define COUNT_RANGE(p, n, r, w) self_touch(p, n, r, w)
#else
#define self_new(site, block, size)
#define self_free(block)
#define self_realloc realloc
#define self_print()
#define COUNT(l, r, w)          (void)0
#define COUNT_AT(p, r, w)       (void)0
#define COUNT_RANGE(p, n, r, w) (void)0
#endif

#ifdef VOLATILE
#define AT(l) (*(volatile __typeof__(l) *)&(l))
#define IN(p) ((volatile __typeof__(*(p)) *)(p))
#else
#define AT(l) (l)
#define IN(p) (p)
#endif

/* Reads, writes, reads and writes. */
#define LD(l) (COUNT(l, 1, 0), AT(l))
#define ST(l, v)                                                                                                       \
    do {                                                                                                               \
        COUNT(l, 0, 1);                                                                                                \
        AT(l) = (__typeof__(l))(v);                                                                                    \
    } while (0)
#define UPD(l, v)                                                                                                      \
    do {                                                                                                               \
        COUNT(l, 1, 1);                                                                                                \
        AT(l) = (__typeof__(l))(AT(l) + (__typeof__(l))(v));                                                           \
    } while (0)

/* Fields of some bits: the unit that they are in is read and, to change it, written as well. */
#define LDB(p, f) (COUNT_AT(p, 1, 0), (uint64_t)IN(p)->f)
#define STB(p, f, v)                                                                                                   \
    do {                                                                                                               \
        COUNT_AT(p, 1, 1);                                                                                             \
        IN(p)->f = (uint32_t)(v)&31;                                                                                   \
    } while (0)

/* Atomic operations. */
#define LDA(l) (COUNT(l, 1, 0), __atomic_load_n(&(l), __ATOMIC_ACQUIRE))
#define STA(l, v)                                                                                                      \
    do {                                                                                                               \
        COUNT(l, 0, 1);                                                                                                \
        __atomic_store_n(&(l), (__typeof__(l))(v), __ATOMIC_RELEASE);                                                  \
    } while (0)
#define ADDA(l, v) (COUNT(l, 1, 1), __atomic_fetch_add(&(l), (__typeof__(l))(v), __ATOMIC_RELAXED))
#define CASA(l, e, v)                                                                                                  \
    do {                                                                                                               \
        __typeof__(l) expected = (__typeof__(l))(e);                                                                   \
        COUNT(l, 1, 1);                                                                                                \
        (void)__atomic_compare_exchange_n(&(l), &expected, (__typeof__(l))(v), 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED); \
    } while (0)

/* Copies and fillings. */
#ifdef VOLATILE
#define COPY(d, s, n)                                                                                                  \
    do {                                                                                                               \
        uint8_t *copy_to = (uint8_t *)(d), *copy_from = (uint8_t *)(s);                                                \
        size_t copy_size = (n);                                                                                        \
        for (size_t c = 0; c < copy_size; c++) {                                                                       \
            uint8_t copied = LD(copy_from[c]);                                                                         \
            ST(copy_to[c], copied);                                                                                    \
        }                                                                                                              \
    } while (0)
#define SET(d, v, n)                                                                                                   \
    do {                                                                                                               \
        uint8_t *set_to = (uint8_t *)(d);                                                                              \
        size_t set_size = (n);                                                                                         \
        for (size_t c = 0; c < set_size; c++)                                                                          \
            ST(set_to[c], v);                                                                                          \
    } while (0)
#define ASSIGN(a, b) COPY(&(a), &(b), sizeof(a))
#else
#define COPY(d, s, n)                                                                                                  \
    do {                                                                                                               \
        COUNT_RANGE(s, n, 1, 0);                                                                                       \
        COUNT_RANGE(d, n, 0, 1);                                                                                       \
        memmove(d, s, n);                                                                                              \
    } while (0)
#define SET(d, v, n)                                                                                                   \
    do {                                                                                                               \
        COUNT_RANGE(d, n, 0, 1);                                                                                       \
        memset(d, v, n);                                                                                               \
    } while (0)
#define ASSIGN(a, b)                                                                                                   \
    do {                                                                                                               \
        COUNT_RANGE(&(b), sizeof(a), 1, 0);                                                                            \
        COUNT_RANGE(&(a), sizeof(a), 0, 1);                                                                            \
        (a) = (b);                                                                                                     \
    } while (0)
#endif

/* Blocks, filled with zeros. A site is a function of its own: SITE(7) makes site_7. */
#ifdef ALIGNED
NOINLINE static void *obtain_aligned(size_t size)
{
    void *block;
    return posix_memalign(&block, 64, size) == 0 ? block : NULL;
}
#define OBTAIN(size) obtain_aligned(size)
#else
#define OBTAIN(size) malloc(size)
#endif
#define SITE(number)                                                                                                   \
    NOINLINE static void *site_##number(size_t size)                                                                   \
    {                                                                                                                  \
        void *block = OBTAIN(size);                                                                                    \
        if (!block)                                                                                                    \
            abort();                                                                                                   \
        fill(block, 0, size);                                                                                          \
        self_new(number, block, size);                                                                                 \
        KEEP(block);                                                                                                   \
        return block;                                                                                                  \
    }
#define FREE(block)                                                                                                    \
    do {                                                                                                               \
        self_free(block);                                                                                              \
        free(block);                                                                                                   \
    } while (0)
#define GROW(type, block, size) ((block) = (type *)self_realloc(block, size))

/* Leaving a kernel from somewhere below it: by an exception or longjmp. TRY … CATCH stands inside a kernel. */
#ifdef __cplusplus
#define LEAVE(value) throw(int)(value)
#define TRY          try {
#define CATCH                                                                                                          \
    }                                                                                                                  \
    catch (int thrown)                                                                                                 \
    {                                                                                                                  \
        acc += (uint64_t)thrown;                                                                                       \
    }
/* Adds 1 when its scope is left, whichever way. */
struct guard {
    uint64_t *counter;
    ~guard()
    {
        UPD(*counter, 1);
    }
};
#define GUARD(name, pointer)                                                                                           \
    guard name;                                                                                                        \
    name.counter = (pointer)
#else
static jmp_buf escape_point;
#define LEAVE(value)         longjmp(escape_point, value)
#define TRY                  {
#define CATCH                }
#define GUARD(name, pointer) (void)0
#endif

static volatile uint64_t total; /* of what the kernels returned: the program's result */

UNUSED __attribute__((noreturn, noinline)) static void finish(int code)
{
    self_print();
    say("result %llu\n", (unsigned long long)total);
    exit(code);
}

/* Runs a kernel. */
#ifdef __cplusplus
#define RUN(kernel, n)                                                                                                 \
    try {                                                                                                              \
        uint64_t result = kernel(n);                                                                                   \
        total = total * 31 + result;                                                                                   \
    } catch (int thrown) {                                                                                             \
        total = total + (uint64_t)thrown;                                                                              \
    }
#else
#define RUN(kernel, n)                                                                                                 \
    {                                                                                                                  \
        int thrown = setjmp(escape_point);                                                                             \
        if (!thrown) {                                                                                                 \
            uint64_t result = kernel(n);                                                                               \
            total = total * 31 + result;                                                                               \
        } else {                                                                                                       \
            total = total + (uint64_t)thrown;                                                                          \
        }                                                                                                              \
    }
#endif

#endif
