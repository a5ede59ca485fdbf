/* tunables.c - settings of allocators that act against what a run was found to suffer from.
 *
 * Names are those of glibc 2.36 (GLIBC_TUNABLES), jemalloc 5.3 (MALLOC_CONF), gperftools 2.10, and mimalloc 2.0
 * and 2.1. */
#include "analysis/verdict.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MIB (1024.0 * 1024.0)

enum value { NO_VALUE, LARGEST, HEAP, THREADS, CACHE };

/* Of one allocator against one cause. FORMAT has a %PRIu64 where VALUE is not NO_VALUE. */
static const struct tunable {
    const char *allocator;  /* the name begins with it */
    unsigned since, before; /* versions that have it: 100 * major + minor; 0: any */
    enum hw_verdict_cause cause;
    enum value value;
    const char *format;
} tunables[] = {
    /* Setting any of the three turns the moving threshold off: both are given. */
    {"glibc", 0, 0, HW_CAUSE_MAPPING, LARGEST,
     "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=%1$" PRIu64 ":glibc.malloc.trim_threshold=%2$" PRIu64},
    {"glibc", 0, 0, HW_CAUSE_HEAP_END, HEAP,
     "GLIBC_TUNABLES=glibc.malloc.trim_threshold=%1$" PRIu64 ":glibc.malloc.top_pad=16777216"},
    {"glibc", 0, 0, HW_CAUSE_ADVICE, HEAP, "GLIBC_TUNABLES=glibc.malloc.trim_threshold=%1$" PRIu64},
    {"glibc", 0, 0, HW_CAUSE_LOCKS, THREADS, "GLIBC_TUNABLES=glibc.malloc.arena_max=%1$" PRIu64},
    {"glibc", 235, 0, HW_CAUSE_NEW_MEMORY, NO_VALUE, "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"},
    {"glibc", 0, 0, HW_CAUSE_BLOWUP, NO_VALUE, "GLIBC_TUNABLES=glibc.malloc.arena_max=1"},
    {"glibc", 235, 0, HW_CAUSE_SMALL_PAGES, NO_VALUE, "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"},
    {"glibc", 0, 0, HW_CAUSE_LASTING, NO_VALUE, "GLIBC_TUNABLES=glibc.malloc.trim_threshold=131072"},
    {"jemalloc", 0, 0, HW_CAUSE_ADVICE, NO_VALUE, "MALLOC_CONF=dirty_decay_ms:60000,muzzy_decay_ms:60000"},
    {"jemalloc", 0, 0, HW_CAUSE_MAPPING, LARGEST, "MALLOC_CONF=oversize_threshold:0,dirty_decay_ms:60000"},
    {"jemalloc", 0, 0, HW_CAUSE_LOCKS, THREADS, "MALLOC_CONF=narenas:%1$" PRIu64},
    {"jemalloc", 0, 0, HW_CAUSE_NEW_MEMORY, NO_VALUE, "MALLOC_CONF=thp:always,dirty_decay_ms:60000"},
    {"jemalloc", 0, 0, HW_CAUSE_BLOWUP, NO_VALUE, "MALLOC_CONF=narenas:1,dirty_decay_ms:0"},
    {"jemalloc", 0, 0, HW_CAUSE_KEPT, NO_VALUE, "MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0"},
    {"jemalloc", 501, 0, HW_CAUSE_SMALL_PAGES, NO_VALUE, "MALLOC_CONF=thp:always"},
    {"jemalloc", 0, 0, HW_CAUSE_LASTING, NO_VALUE, "MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0"},
    {"tcmalloc", 0, 0, HW_CAUSE_ADVICE, NO_VALUE, "TCMALLOC_RELEASE_RATE=0"},
    {"tcmalloc", 0, 0, HW_CAUSE_LOCKS, CACHE, "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=%1$" PRIu64},
    {"tcmalloc", 0, 0, HW_CAUSE_BLOWUP, NO_VALUE, "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=4194304"},
    {"tcmalloc", 0, 0, HW_CAUSE_KEPT, NO_VALUE, "TCMALLOC_AGGRESSIVE_DECOMMIT=t"},
    {"tcmalloc", 0, 0, HW_CAUSE_LASTING, NO_VALUE, "TCMALLOC_AGGRESSIVE_DECOMMIT=t"},
    {"mimalloc", 0, 201, HW_CAUSE_ADVICE, NO_VALUE, "MIMALLOC_ALLOW_DECOMMIT=0"},
    {"mimalloc", 0, 201, HW_CAUSE_MAPPING, NO_VALUE, "MIMALLOC_ALLOW_DECOMMIT=0"},
    {"mimalloc", 0, 201, HW_CAUSE_KEPT, NO_VALUE, "MIMALLOC_PAGE_RESET=1"},
    {"mimalloc", 0, 201, HW_CAUSE_LASTING, NO_VALUE, "MIMALLOC_PAGE_RESET=1"},
    {"mimalloc", 0, 201, HW_CAUSE_NEW_MEMORY, NO_VALUE, "MIMALLOC_LARGE_OS_PAGES=1"},
    {"mimalloc", 0, 201, HW_CAUSE_SMALL_PAGES, NO_VALUE, "MIMALLOC_LARGE_OS_PAGES=1"},
    {"mimalloc", 201, 0, HW_CAUSE_ADVICE, NO_VALUE, "MIMALLOC_PURGE_DELAY=-1"},
    {"mimalloc", 201, 0, HW_CAUSE_MAPPING, NO_VALUE, "MIMALLOC_PURGE_DELAY=-1"},
    {"mimalloc", 201, 0, HW_CAUSE_KEPT, NO_VALUE, "MIMALLOC_PURGE_DELAY=0"},
    {"mimalloc", 201, 0, HW_CAUSE_LASTING, NO_VALUE, "MIMALLOC_PURGE_DELAY=0"},
    {"mimalloc", 201, 0, HW_CAUSE_NEW_MEMORY, NO_VALUE, "MIMALLOC_ALLOW_LARGE_OS_PAGES=1"},
    {"mimalloc", 201, 0, HW_CAUSE_SMALL_PAGES, NO_VALUE, "MIMALLOC_ALLOW_LARGE_OS_PAGES=1"},
};

/* The next power of two, at least LEAST. */
static uint64_t round_up(double value, uint64_t least)
{
    uint64_t power = least;
    while ((double)power < value && power < (1ull << 40))
        power *= 2;
    return power;
}

static uint64_t value_of(const struct hw_verdict_input *input, enum value value)
{
    const double total = input->total > 0 ? input->total : 64 * MIB;
    switch (value) {
    case LARGEST: { /* glibc takes no threshold above 32 MiB (HEAP_MAX_SIZE / 2) */
        const double largest = input->largest == HW_NOT_OBSERVED ? 0 : (double)input->largest + 1;
        return round_up(largest < 32 * MIB ? largest : 32 * MIB, 1u << 20);
    }
    case HEAP:
        return round_up(total / 4, 16u << 20);
    case THREADS: /* as many as run at once; by itself glibc has eight for each processor */
        return input->threads_most > 1 ? input->threads_most * 2 : 2;
    case CACHE:
        return round_up(2 * MIB * (input->threads_most ? input->threads_most : 1), 64u << 20);
    default:
        return 0;
    }
}

/* "glibc 2.36" -> 236; 0: not known, taken as new. */
static unsigned version_of(const char *allocator)
{
    unsigned major, minor;
    return sscanf(allocator, "%*s %u.%u", &major, &minor) == 2 ? 100 * major + minor : 0;
}

static bool has(const struct tunable *tunable, const char *allocator)
{
    const unsigned version = version_of(allocator);
    return strncmp(allocator, tunable->allocator, strlen(tunable->allocator)) == 0 &&
           (!version || version >= tunable->since) && (!tunable->before || (version && version < tunable->before));
}

void hw_tunable(char *out, size_t size, const struct hw_verdict_input *input, enum hw_verdict_cause cause)
{
    out[0] = '\0';
    if (!input->allocator)
        return;
    for (size_t i = 0; i < sizeof tunables / sizeof *tunables; i++)
        if (tunables[i].cause == cause && has(&tunables[i], input->allocator)) {
            const uint64_t value = value_of(input, tunables[i].value);
            snprintf(out, size, tunables[i].format, value, value * 4);
            return;
        }
}
