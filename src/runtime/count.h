/* count.h - the functions of count.c: base/abi.h has their contract. */
#ifndef HW_RUNTIME_COUNT_H
#define HW_RUNTIME_COUNT_H

#include <stdint.h>

/* Of shadow.c: the plane of this thread, and numbers that may be too great for HALF (0 reads, 1 writes) of CELL. */
extern __thread uintptr_t __heapwise_plane __attribute__((visibility("default"), tls_model("initial-exec")));
void hw_shadow_carry(void *cell, unsigned half, uint64_t amount);

void __heapwise_add_64(const void *address, uint64_t reads, uint64_t writes);
void __heapwise_add_8(const void *address, uint64_t reads, uint64_t writes);
void __heapwise_range_64(const void *start, int64_t stride, uint64_t count, uint64_t reads, uint64_t writes);
void __heapwise_range_8(const void *start, int64_t stride, uint64_t count, uint64_t reads, uint64_t writes);
void __heapwise_touch_64(const void *start, uint64_t bytes, uint64_t reads, uint64_t writes);
void __heapwise_touch_8(const void *start, uint64_t bytes, uint64_t reads, uint64_t writes);
void __heapwise_copy_64(const void *destination, const void *source, uint64_t bytes);
void __heapwise_copy_8(const void *destination, const void *source, uint64_t bytes);

#endif
