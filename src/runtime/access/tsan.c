/* tsan.c - the callbacks of objects that were built with -fsanitize=thread, on Heapwise's own counters.
 *
 * gcc has no plugin here, but its ThreadSanitizer instrumentation calls a function for each access: these. Nothing of
 * ThreadSanitizer itself is in here, programs do not link libtsan. Atomic operations are calls, too, and have to be
 * done: each as strong as it was asked for or stronger. What counts as one access: base/abi.h. An aggregate that is
 * copied whole (…_range) counts like memcpy, once in each granule.
 *
 * The same calls come from clang -fsanitize=thread. The runtime decides at its start how large a granule is. */
#include "runtime/access/count.h"
#include "runtime/core/core.h"

static inline void touch(const volatile void *address, uint64_t bytes, uint64_t reads, uint64_t writes)
{
    if (hw_unlikely(hw_shadow.granule == 4))
        __heapwise_touch_4((const void *)address, bytes, reads, writes);
    else if (hw_unlikely(hw_shadow.granule == 8))
        __heapwise_touch_8((const void *)address, bytes, reads, writes);
    else
        __heapwise_touch_64((const void *)address, bytes, reads, writes);
}

/* ---- plain accesses ---- */

#define ACCESS(name, bytes, reads, writes)                                                                             \
    HW_EXPORTED(void, __tsan_##name, (const volatile void *address))                                                   \
    {                                                                                                                  \
        hw_count(address, bytes, reads, writes);                                                                       \
    }
#define ACCESS_SIZES(prefix, reads, writes)                                                                            \
    ACCESS(prefix##1, 1, reads, writes)                                                                                \
    ACCESS(prefix##2, 2, reads, writes)                                                                                \
    ACCESS(prefix##4, 4, reads, writes)                                                                                \
    ACCESS(prefix##8, 8, reads, writes)                                                                                \
    ACCESS(prefix##16, 16, reads, writes)

ACCESS_SIZES(read, 1, 0)
ACCESS_SIZES(write, 0, 1)
ACCESS_SIZES(read_write, 1, 1)
ACCESS_SIZES(unaligned_read, 1, 0)
ACCESS_SIZES(unaligned_write, 0, 1)
ACCESS_SIZES(unaligned_read_write, 1, 1)
ACCESS_SIZES(volatile_read, 1, 0)
ACCESS_SIZES(volatile_write, 0, 1)
ACCESS_SIZES(unaligned_volatile_read, 1, 0)
ACCESS_SIZES(unaligned_volatile_write, 0, 1)
ACCESS(vptr_read, 8, 1, 0)

/* Comes instead of a write callback. */
HW_EXPORTED(void, __tsan_vptr_update, (void **address, void *value))
{
    hw_count(address, sizeof value, 0, 1);
}

/* Copies of aggregates; but gcc also reports unaligned accesses of one word in this way. */
static inline bool is_word(size_t bytes)
{
    return bytes <= 16 && !(bytes & (bytes - 1));
}

HW_EXPORTED(void, __tsan_read_range, (const void *address, size_t bytes))
{
    if (is_word(bytes))
        hw_count(address, bytes, 1, 0);
    else
        touch(address, bytes, 1, 0);
}

HW_EXPORTED(void, __tsan_write_range, (const void *address, size_t bytes))
{
    if (is_word(bytes))
        hw_count(address, bytes, 0, 1);
    else
        touch(address, bytes, 0, 1);
}

/* ---- what else such objects call ---- */

HW_EXPORTED(void, __tsan_init, (void))
{
    hw_start(); /* with which granule says the object's other constructor */
}

HW_EXPORTED(void, __tsan_func_entry, (void *caller))
{
}

HW_EXPORTED(void, __tsan_func_exit, (void))
{
}

HW_EXPORTED(void, __tsan_atomic_thread_fence, (int order))
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

HW_EXPORTED(void, __tsan_atomic_signal_fence, (int order))
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* ---- memory intrinsics ---- */

extern void *memcpy(void *, const void *, size_t);
extern void *memmove(void *, const void *, size_t);
extern void *memset(void *, int, size_t);
extern void __chk_fail(void) __attribute__((weak, noreturn));

/* <heapwise/gcc.h> gives memcpy these names; clang -fsanitize=thread calls __tsan_memcpy. */
#define INTRINSICS(prefix)                                                                                             \
    HW_EXPORTED(void *, prefix##memcpy, (void *to, const void *from, size_t bytes))                                    \
    {                                                                                                                  \
        touch(from, bytes, 1, 0);                                                                                      \
        touch(to, bytes, 0, 1);                                                                                        \
        return memcpy(to, from, bytes);                                                                                \
    }                                                                                                                  \
    HW_EXPORTED(void *, prefix##memmove, (void *to, const void *from, size_t bytes))                                   \
    {                                                                                                                  \
        touch(from, bytes, 1, 0);                                                                                      \
        touch(to, bytes, 0, 1);                                                                                        \
        return memmove(to, from, bytes);                                                                               \
    }                                                                                                                  \
    HW_EXPORTED(void *, prefix##memset, (void *to, int value, size_t bytes))                                           \
    {                                                                                                                  \
        touch(to, bytes, 0, 1);                                                                                        \
        return memset(to, value, bytes);                                                                               \
    }

INTRINSICS(__heapwise_)
INTRINSICS(__tsan_)

/* What _FORTIFY_SOURCE makes of them. ROOM is the size of the destination. */
static void check_room(size_t bytes, size_t room)
{
    if (hw_likely(bytes <= room))
        return;
    if (__chk_fail)
        __chk_fail();
    __builtin_trap();
}

HW_EXPORTED(void *, __heapwise_memcpy_chk, (void *to, const void *from, size_t bytes, size_t room))
{
    check_room(bytes, room);
    return __heapwise_memcpy(to, from, bytes);
}

HW_EXPORTED(void *, __heapwise_memmove_chk, (void *to, const void *from, size_t bytes, size_t room))
{
    check_room(bytes, room);
    return __heapwise_memmove(to, from, bytes);
}

HW_EXPORTED(void *, __heapwise_memset_chk, (void *to, int value, size_t bytes, size_t room))
{
    check_room(bytes, room);
    return __heapwise_memset(to, value, bytes);
}

/* ---- <heapwise/gcc_x86.h> ---- */

HW_EXPORTED(void, __heapwise_lanes,
            (const volatile void *base, const void *index, const void *signs, uint64_t mask, uint64_t shape))
{
    const unsigned bytes = shape & 255, lanes = shape >> 8 & 255, index_bytes = shape >> 16 & 255;
    const int64_t scale = shape >> 24 & 255;
    const unsigned kinds = shape >> 32 & 255, reads = kinds & 1, writes = kinds >> 1 & 1;
    const bool packed = kinds & 4;
    uintptr_t next = (uintptr_t)base;
    for (unsigned lane = 0; lane < lanes; lane++) {
        const bool on = signs ? ((const int8_t *)signs)[(lane + 1) * bytes - 1] < 0 : mask >> lane & 1;
        uintptr_t address = next;
        if (index)
            address += (uint64_t)scale *
                       (uint64_t)(index_bytes == 4 ? ((const int32_t *)index)[lane] : ((const int64_t *)index)[lane]);
        if (on)
            hw_count((const void *)address, bytes, reads, writes);
        if (!index && (on || !packed))
            next += bytes;
    }
}

/* ---- atomic operations ----
 *
 * Orders are those of <stdatomic.h>. All but stores are done with the strongest one: on machines where that costs, it
 * is little beside the call. */

#define FETCH(bits, type, name, operation)                                                                             \
    HW_EXPORTED(type, __tsan_atomic##bits##_fetch_##name, (volatile type * address, type value, int order))            \
    {                                                                                                                  \
        hw_count(address, bits / 8, 1, 1);                                                                             \
        return operation(address, value, __ATOMIC_SEQ_CST);                                                            \
    }

#define ATOMIC(bits, type, load, store, exchange, compare_exchange)                                                    \
    HW_EXPORTED(type, __tsan_atomic##bits##_load, (const volatile type *address, int order))                           \
    {                                                                                                                  \
        hw_count(address, bits / 8, 1, 0);                                                                             \
        return load((volatile type *)address);                                                                         \
    }                                                                                                                  \
    HW_EXPORTED(void, __tsan_atomic##bits##_store, (volatile type * address, type value, int order))                   \
    {                                                                                                                  \
        hw_count(address, bits / 8, 0, 1);                                                                             \
        store(address, value, order);                                                                                  \
    }                                                                                                                  \
    HW_EXPORTED(type, __tsan_atomic##bits##_exchange, (volatile type * address, type value, int order))                \
    {                                                                                                                  \
        hw_count(address, bits / 8, 1, 1);                                                                             \
        return exchange(address, value, __ATOMIC_SEQ_CST);                                                             \
    }                                                                                                                  \
    HW_EXPORTED(int, __tsan_atomic##bits##_compare_exchange_strong,                                                    \
                (volatile type * address, type * expected, type desired, int order, int failure_order))                \
    {                                                                                                                  \
        hw_count(address, bits / 8, 1, 1);                                                                             \
        return compare_exchange(address, expected, desired);                                                           \
    }                                                                                                                  \
    HW_EXPORTED(int, __tsan_atomic##bits##_compare_exchange_weak,                                                      \
                (volatile type * address, type * expected, type desired, int order, int failure_order))                \
    {                                                                                                                  \
        hw_count(address, bits / 8, 1, 1);                                                                             \
        return compare_exchange(address, expected, desired);                                                           \
    }                                                                                                                  \
    HW_EXPORTED(type, __tsan_atomic##bits##_compare_exchange_val,                                                      \
                (volatile type * address, type expected, type desired, int order, int failure_order))                  \
    {                                                                                                                  \
        hw_count(address, bits / 8, 1, 1);                                                                             \
        compare_exchange(address, &expected, desired);                                                                 \
        return expected;                                                                                               \
    }

#define LOAD(address) __atomic_load_n(address, __ATOMIC_SEQ_CST)
#define COMPARE(address, expected_at, desired)                                                                         \
    __atomic_compare_exchange_n(address, expected_at, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
#define STORE(address, value, order)                                                                                   \
    do {                                                                                                               \
        if ((order) == __ATOMIC_RELAXED || (order) == __ATOMIC_RELEASE)                                                \
            __atomic_store_n(address, value, __ATOMIC_RELEASE);                                                        \
        else                                                                                                           \
            __atomic_store_n(address, value, __ATOMIC_SEQ_CST);                                                        \
    } while (0)

#define ATOMIC_SIZE(bits, type)                                                                                        \
    ATOMIC(bits, type, LOAD, STORE, __atomic_exchange_n, COMPARE)                                                      \
    FETCH(bits, type, add, __atomic_fetch_add)                                                                         \
    FETCH(bits, type, sub, __atomic_fetch_sub)                                                                         \
    FETCH(bits, type, and, __atomic_fetch_and)                                                                         \
    FETCH(bits, type, or, __atomic_fetch_or)                                                                           \
    FETCH(bits, type, xor, __atomic_fetch_xor)                                                                         \
    FETCH(bits, type, nand, __atomic_fetch_nand)

ATOMIC_SIZE(8, uint8_t)
ATOMIC_SIZE(16, uint16_t)
ATOMIC_SIZE(32, uint32_t)
ATOMIC_SIZE(64, uint64_t)

/* ---- 128 bits: all of them out of one compare-and-exchange, without libatomic ---- */

typedef unsigned __int128 wide;

static inline bool compare_wide(volatile wide *address, wide *expected, wide desired)
{
    return hw_arch_compare_exchange_128(address, expected, desired);
}

/* The old value; each of NEW_VALUE's operations is computed from `old` and `value`. */
#define WIDE(name, new_value)                                                                                          \
    static inline wide wide_##name(volatile wide *address, wide value, int order)                                      \
    {                                                                                                                  \
        wide old = 0;                                                                                                  \
        while (!compare_wide(address, &old, new_value))                                                                \
            ;                                                                                                          \
        return old;                                                                                                    \
    }
WIDE(exchange, value)
WIDE(add, old + value)
WIDE(sub, old - value)
WIDE(and, old &value)
WIDE(or, old | value)
WIDE(xor, old ^ value)
WIDE(nand, ~(old &value))

/* Puts 0 in place of 0: the memory has to be writable, as with libatomic. */
static inline wide wide_load(volatile wide *address)
{
    wide old = 0;
    compare_wide(address, &old, 0);
    return old;
}

#define WIDE_STORE(address, value, order) (void)wide_exchange(address, value, order)

ATOMIC(128, wide, wide_load, WIDE_STORE, wide_exchange, compare_wide)
FETCH(128, wide, add, wide_add)
FETCH(128, wide, sub, wide_sub)
FETCH(128, wide, and, wide_and)
FETCH(128, wide, or, wide_or)
FETCH(128, wide, xor, wide_xor)
FETCH(128, wide, nand, wide_nand)
