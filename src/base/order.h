/* order.h - which of two numbers comes first, for comparisons of qsort and bsearch; and where a number is among entries
 * that are sorted by it. */
#ifndef HW_BASE_ORDER_H
#define HW_BASE_ORDER_H

#include <stddef.h>
#include <stdint.h>

/* Below 0, 0 or above 0, ascending; descending with the two exchanged. By several keys: HW_ORDER(a->x, b->x) ?:
 * HW_ORDER(a->y, b->y). */
#define HW_ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* The first of COUNT entries whose MEMBER, a uint32_t that they are sorted by, is not below VALUE; and how many of them
 * have VALUE there. */
#define HW_RUN(entries, count, member, value, length)                                                                  \
    ((void)sizeof(char[sizeof(entries)->member == sizeof(uint32_t) ? 1 : -1]),                                         \
     hw_run((entries), (count), sizeof *(entries), offsetof(__typeof__(*(entries)), member), (value), (length)))

static inline size_t hw_run(const void *entries, size_t count, size_t size, size_t offset, uint64_t value,
                            size_t *length)
{
    const char *member = (const char *)entries + offset;
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (*(const uint32_t *)(const void *)(member + middle * size) < value)
            low = middle + 1;
        else
            high = middle;
    }
    for (*length = 0; low + *length < count; ++*length)
        if (*(const uint32_t *)(const void *)(member + (low + *length) * size) != value)
            break;
    return low;
}

/* The first of COUNT entries whose MEMBER, a uint64_t that they are sorted by, is not below VALUE; COUNT: none is. */
#define HW_AT_LEAST(entries, count, member, value)                                                                     \
    ((void)sizeof(char[sizeof(entries)->member == sizeof(uint64_t) ? 1 : -1]),                                         \
     hw_at_least((entries), (count), sizeof *(entries), offsetof(__typeof__(*(entries)), member), (value)))

static inline size_t hw_at_least(const void *entries, size_t count, size_t size, size_t offset, uint64_t value)
{
    const char *member = (const char *)entries + offset;
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (*(const uint64_t *)(const void *)(member + middle * size) < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#endif
