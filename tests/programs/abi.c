/* abi.c - accesses in exactly known numbers, whatever the optimiser does: all that count are volatile, atomic, or calls
 * of memcpy and its kin with lengths the compiler does not know. Each block has a function of its own that allocates
 * it.
 *
 * Built by gcc with calls for each access, by clang with its own -fmemory-profile. `abi dump` writes dumps on the way.
 * -DEARLY counts before any constructor: in .preinit_array. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK(name, bytes)                                                                                             \
    static __attribute__((noinline, unused)) void *name(void)                                                          \
    {                                                                                                                  \
        void *block = aligned_alloc(64, bytes);                                                                        \
        __asm__ volatile("# " #name : "+r"(block)); /* so that no two are alike */                                     \
        return block;                                                                                                  \
    }
BLOCK(plain_block, 640)
BLOCK(hot_block, 64)
BLOCK(cold_block, 640)
BLOCK(width_block, 64)
BLOCK(crossing_block, 128)
BLOCK(copy_source, 1024)
BLOCK(copy_target, 1024)
BLOCK(move_block, 1024)
BLOCK(struct_source, 192)
BLOCK(struct_target, 192)
BLOCK(atomic_block, 64)
BLOCK(wide_block, 64)
BLOCK(shared_block, 64)
BLOCK(thread_block, 64)
BLOCK(live_block, 128)

/* What was stored there may still be looked at. */
#define KEEP(block) __asm__ volatile("" : : "r"(block) : "memory")

static volatile size_t unknown = 1024; /* on nobody's account: a global */
static volatile long sink;
static int failures;

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            failures++;                                                                                                \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                                    \
        }                                                                                                              \
    } while (0)

/* 160 reads, 80 writes, all of 10 granules. Then 1000 of each in one. */
static void plain(void)
{
    volatile long *block = plain_block();
    long sum = 0;
    for (int i = 0; i < 80; i++)
        block[i] = i;
    for (int i = 0; i < 160; i++)
        sum += block[i % 80];
    CHECK(sum == 80 * 79);
    free((void *)block);
    block = hot_block();
    *block = 0;
    for (int i = 1; i < 1000; i++)
        *block = *block + 1;
    CHECK(*block == 999);
    free((void *)block);
    block = cold_block();
    sink = (long)block[79];
    free((void *)block);
}

struct __attribute__((packed)) odd {
    char before[62];
    volatile int number;
};

/* One access each, of 1, 2, 4, 8 bytes: 4 writes, 4 reads. One that lies in two granules counts in the first. */
static void widths(void)
{
    volatile char *block = width_block();
    block[0] = 1;
    *(volatile short *)(block + 8) = 2;
    *(volatile int *)(block + 16) = 3;
    *(volatile long *)(block + 24) = 4;
    sink = block[0] + *(volatile short *)(block + 8) + *(volatile int *)(block + 16) + *(volatile long *)(block + 24);
    free((void *)block);
    struct odd *odd = crossing_block();
    odd->number = 1;
    sink = odd->number;
    free(odd);
}

struct aggregate {
    long part[5];
};

/* Once in each granule. Source: 16 writes (memset) and 16 reads; target: 16 writes. The block that is moved in itself
 * by 64 bytes: 16 writes, then 15 reads and 15 writes, then a move of nothing. Structures of 40 bytes at multiples
 * of 64. */
static void intrinsics(void)
{
    char *source = copy_source(), *target = copy_target();
    CHECK(memset(source, 7, unknown) == source);
    CHECK(memcpy(target, source, unknown) == target);
    KEEP(source);
    KEEP(target);
    free(source);
    free(target);
    char *block = move_block();
    memset(block, 1, unknown);
    CHECK(memmove(block + 64, block, unknown - 64) == block + 64);
    memmove(block, block + 64, unknown - 1024);
    KEEP(block);
    free(block);
    struct aggregate *from = struct_source(), *to = struct_target();
    memset(from, 1, 192 + unknown - 1024);
    for (int i = 0; i < 3; i++)
        *(struct aggregate *)((char *)to + 64 * i) = *(struct aggregate *)((char *)from + 64 * i);
    KEEP(to);
    free(from);
    free(to);
}

/* Of each size: 2 loads, 2 stores, 1 exchange, 6 read-modify-writes, 2 compare-exchanges: 11 reads, 11 writes. */
#define ATOMIC(type, at)                                                                                               \
    do {                                                                                                               \
        type *p = (type *)(at), expected = 5;                                                                          \
        __atomic_store_n(p, 5, __ATOMIC_RELEASE);                                                                      \
        CHECK(__atomic_load_n(p, __ATOMIC_ACQUIRE) == 5);                                                              \
        CHECK(__atomic_compare_exchange_n(p, &expected, 9, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));                    \
        CHECK(!__atomic_compare_exchange_n(p, &expected, 1, 1, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));                   \
        CHECK(expected == 9);                                                                                          \
        CHECK(__atomic_fetch_add(p, 3, __ATOMIC_RELAXED) == 9);                                                        \
        CHECK(__atomic_fetch_sub(p, 2, __ATOMIC_ACQUIRE) == 12);                                                       \
        CHECK(__atomic_fetch_and(p, 6, __ATOMIC_RELEASE) == 10);                                                       \
        CHECK(__atomic_fetch_or(p, 4, __ATOMIC_SEQ_CST) == 2);                                                         \
        CHECK(__atomic_fetch_xor(p, 5, __ATOMIC_SEQ_CST) == 6);                                                        \
        CHECK(__atomic_fetch_nand(p, 1, __ATOMIC_SEQ_CST) == 3);                                                       \
        CHECK(__atomic_exchange_n(p, 4, __ATOMIC_SEQ_CST) == (type) ~(type)1);                                         \
        __atomic_store_n(p, 7, __ATOMIC_SEQ_CST);                                                                      \
        CHECK(__atomic_load_n(p, __ATOMIC_SEQ_CST) == 7);                                                              \
    } while (0)

static void atomics(void)
{
    char *block = atomic_block();
    ATOMIC(uint8_t, block);
    ATOMIC(uint16_t, block + 8);
    ATOMIC(uint32_t, block + 16);
    ATOMIC(uint64_t, block + 24);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    free(block);
#ifdef WIDE
    block = wide_block();
    ATOMIC(unsigned __int128, block);
    free(block);
#endif
}

/* Four threads: 100000 reads and writes of a block of its own each, 100000 reads of one that they share. */
static volatile long *shared;

static void *work(void *unused)
{
    volatile long *own = thread_block();
    *own = 0;
    for (int i = 0; i < 100000; i++) {
        *own = *own + 1;
        sink = *shared;
    }
    free((void *)own);
    return unused;
}

static void threads(void)
{
    pthread_t thread[4];
    shared = shared_block();
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, work, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    free((void *)shared);
}

#ifdef EARLY
static volatile long early[8];
static void very_early(int argc, char **argv, char **envp)
{
    for (int i = 0; i < 8; i++)
        early[i]++;
}
__attribute__((section(".preinit_array"), used)) static void (*const hook)(int, char **, char **) = very_early;
#endif

extern int __memprof_profile_dump(void) __attribute__((weak));
extern void __memprof_print_accumulated_stats(void) __attribute__((weak));

int main(int argc, char **argv)
{
    volatile long *live = live_block(); /* 10 reads and 10 writes until the end, half of it is touched */
    for (int i = 0; i < 5; i++)
        *live = 1, sink = *live;
    if (argc > 1 && __memprof_profile_dump)
        CHECK(__memprof_profile_dump() == 0);
    for (int i = 0; i < 5; i++)
        *live = 1, sink = *live;
    if (argc > 1 && __memprof_print_accumulated_stats)
        __memprof_print_accumulated_stats();
    plain();
    widths();
    intrinsics();
    atomics();
    threads();
#ifdef EARLY
    CHECK(early[7] == 1);
#endif
    return failures != 0;
}
