/* count.h - the functions of count.c: base/abi.h has their contract. */
#ifndef HW_RUNTIME_ACCESS_COUNT_H
#define HW_RUNTIME_ACCESS_COUNT_H

#include "runtime/access/access.h"

void __heapwise_add_64(const void *address, uint64_t reads, uint64_t writes);
void __heapwise_add_8(const void *address, uint64_t reads, uint64_t writes);
void __heapwise_range_64(const void *start, int64_t stride, uint64_t count, uint64_t reads, uint64_t writes);
void __heapwise_range_8(const void *start, int64_t stride, uint64_t count, uint64_t reads, uint64_t writes);
void __heapwise_touch_64(const void *start, uint64_t bytes, uint64_t reads, uint64_t writes);
void __heapwise_touch_8(const void *start, uint64_t bytes, uint64_t reads, uint64_t writes);
void __heapwise_copy_64(const void *destination, const void *source, uint64_t bytes);
void __heapwise_copy_8(const void *destination, const void *source, uint64_t bytes);

/* count_words.c */
void __heapwise_range_4(const void *start, int64_t stride, uint64_t count, uint64_t bytes, uint64_t kinds);
void __heapwise_touch_4(const void *start, uint64_t bytes, uint64_t reads, uint64_t writes);
void __heapwise_copy_4(const void *destination, const void *source, uint64_t bytes);

/* tsan.c: memcpy and its kin, counted; in either granule. */
void *__heapwise_memcpy(void *to, const void *from, size_t bytes);
void *__heapwise_memmove(void *to, const void *from, size_t bytes);
void *__heapwise_memset(void *to, int value, size_t bytes);

/* One access of BYTES bytes, with the granule that the process has. One addition to memory: a signal handler that comes
 * between loses nothing. */
static inline void hw_count(const volatile void *address, uint64_t bytes, bool reads, bool writes)
{
    typedef uint32_t half __attribute__((may_alias));
    typedef uint64_t whole __attribute__((may_alias));
    uintptr_t at = (uintptr_t)address, cell = __heapwise_plane + (at >> 6 << 3);
    if (hw_unlikely(hw_shadow.granule == 4))
        __heapwise_touch_4((const void *)at, bytes, reads, writes);
    else if (hw_unlikely(hw_shadow.granule == 8))
        __heapwise_add_8((const void *)at, reads, writes);
    else if (reads && writes)
        *(whole *)cell += 1 + (1ull << 32);
    else
        ((half *)cell)[writes]++;
}

#endif
