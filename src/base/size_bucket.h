/* size_bucket.h - requested sizes in buckets: operations are counted by them. Buckets are exact for the size classes of
 * real allocators below 1 KiB (steps of 16), and within a fifth above. */
#ifndef HW_BASE_SIZE_BUCKET_H
#define HW_BASE_SIZE_BUCKET_H

#include <stdint.h>

#define HW_SIZE_BUCKETS        192u
#define HW_SIZE_BUCKET_UNKNOWN 191u /* the size is not known: a block that was allocated before anybody looked */
#define HW_SIZE_BUCKET_LAST    190u /* all that is larger than the others: from 2.75 TiB */
#define HW_SIZE_SMALL_MOST     1024u
#define HW_SIZE_SMALL_LAST     64u /* the bucket of that */

/* The bucket of SIZE: 0 is for size 0, up to 1024 bytes one for each 16 (1 to 16, 17 to 32, …), above four for each
 * doubling (1025 to 1280, to 1536, to 1792, to 2048, …). */
static inline uint32_t hw_size_bucket(uint64_t size)
{
    if (size <= HW_SIZE_SMALL_MOST)
        return (uint32_t)(size + 15) >> 4;
    uint64_t last = size - 1;
    uint32_t log = 63u - (uint32_t)__builtin_clzll(last); /* from 10 */
    uint32_t bucket = HW_SIZE_SMALL_LAST + 1 + (log - 10) * 4 + ((uint32_t)(last >> (log - 2)) & 3);
    return bucket < HW_SIZE_BUCKET_LAST ? bucket : HW_SIZE_BUCKET_LAST;
}

/* The greatest size of BUCKET; UINT64_MAX of the last one, and of the one that stands for unknown sizes. */
static inline uint64_t hw_size_bucket_most(uint32_t bucket)
{
    if (bucket <= HW_SIZE_SMALL_LAST)
        return bucket * 16u;
    if (bucket >= HW_SIZE_BUCKET_LAST)
        return UINT64_MAX;
    uint32_t step = bucket - HW_SIZE_SMALL_LAST - 1;
    return (uint64_t)(5 + step % 4) << (8 + step / 4);
}

/* The smallest one. */
static inline uint64_t hw_size_bucket_least(uint32_t bucket)
{
    return bucket == 0 || bucket >= HW_SIZE_BUCKET_UNKNOWN ? 0 : hw_size_bucket_most(bucket - 1) + 1;
}

#endif
