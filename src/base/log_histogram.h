/* log_histogram.h - times in bins: eight for each doubling. The runtime counts in them, readers compute from them. */
#ifndef HW_BASE_LOG_HISTOGRAM_H
#define HW_BASE_LOG_HISTOGRAM_H

#include <stdint.h>

#define HW_TIME_BINS 240u

/* The bin of TICKS: one for each value up to 15, then eight for each doubling; the last one, from 15 * 2^30 on (some
 * seconds), takes all that is larger. */
static inline uint32_t hw_time_bin(uint64_t ticks)
{
    if (ticks < 16)
        return (uint32_t)ticks;
    uint32_t log = 63u - (uint32_t)__builtin_clzll(ticks); /* from 4 */
    uint32_t bin = 16 + (log - 4) * 8 + ((uint32_t)(ticks >> (log - 3)) & 7);
    return bin < HW_TIME_BINS ? bin : HW_TIME_BINS - 1;
}

/* The smallest number of ticks of BIN, which may be HW_TIME_BINS: the end of the last but one. */
static inline uint64_t hw_time_bin_least(uint32_t bin)
{
    return bin < 16 ? bin : (uint64_t)(8 + (bin - 16) % 8) << ((bin - 16) / 8 + 1);
}

/* Lifetimes: a bar for each doubling, named by its log2 of nanoseconds. The first one has all that is shorter: what
 * malloc and free take themselves is about that. */
#define HW_LIFETIME_FIRST 6u
#define HW_LIFETIME_BARS  64u

static inline uint32_t hw_lifetime_bar(uint64_t ns)
{
    return 63u - (uint32_t)__builtin_clzll(ns | 1u << HW_LIFETIME_FIRST);
}

/* The shortest lifetime of BAR, in ns; that behind the last one is UINT64_MAX. */
static inline uint64_t hw_lifetime_bar_least(uint32_t bar)
{
    return bar <= HW_LIFETIME_FIRST ? 0 : bar < HW_LIFETIME_BARS ? 1ull << bar : UINT64_MAX;
}

#endif
