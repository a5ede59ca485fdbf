/* format_perf.h - the log of blocks, and samples that perf took of the same run. Part of format.h, which includes it. */
#ifndef HW_PROFILE_FORMAT_PERF_H
#define HW_PROFILE_FORMAT_PERF_H

#include <stdint.h>

/* record --log-blocks: a block begins, or ends. A reallocation is an end and a begin. Threads write in pieces of their
 * own, so that entries are sorted by time only within a thread, and entries with address 0 are not used. */
struct hw_block_event {
    uint64_t address; /* bits 48 to 63: bits 32 to 47 of the size. Written last */
    uint64_t tick;    /* 0: in a forked child, a block of its parent's */
    uint32_t context; /* of the first allocation; HW_NONE: the block ends */
    uint32_t size;    /* as requested; of an end: 0 */
};
#define HW_EVENT_ADDRESS(event) ((event)->address & 0xffffffffffff)
#define HW_EVENT_SIZE(event)    ((event)->address >> 48 << 32 | (event)->size)

struct hw_block_log_info {
    uint64_t start_monotonic_ns; /* CLOCK_MONOTONIC at tick 0 */
    uint64_t full_tick;          /* from then on nothing is in the log; 0: it is whole */
    uint64_t most_bytes;         /* of the log, as asked for */
    uint64_t reserved[3];
};

/* heapwise import perf: one entry, how samples and blocks were matched. Samples of the process within its run are in one
 * of the four: in_blocks, in_stack, in_modules, elsewhere. */
enum hw_perf_flags {
    HW_PERF_MAPPINGS = 1u << 0, /* the text had perf's mappings: stack and modules are known */
    HW_PERF_SOURCES = 1u << 1,  /* samples say whether they load or store, and where the data came from */
    HW_PERF_WEIGHTS = 1u << 2,  /* loads say how long they took */
    HW_PERF_CLOCK = 1u << 3,    /* perf.data says that its clock is CLOCK_MONOTONIC */
    HW_PERF_OWN_CLOCK = 1u << 5, /* perf.data says that no clock was chosen */
    HW_PERF_SYNC = 1u << 4,     /* of addresses that were in some block, most were not at that time: wrong clock? */
};
struct hw_perf_info {
    uint32_t flags, reserved0;
    uint64_t samples; /* of the process, within its run, with an address */
    uint64_t in_blocks, in_stack, in_modules, elsewhere;
    uint64_t log_full;                 /* of elsewhere: after the log of blocks was full */
    uint64_t was_block;                /* of elsewhere: an address that is in a block at another time */
    uint64_t no_address;               /* of the process, within its run, without an address of the program's */
    uint64_t other_time, other_process; /* not of `samples` */
    uint64_t unread_lines;             /* that are no sample */
    uint64_t blocks;                   /* in the log */
    uint64_t reserved[4];
};

/* Where the data of an access came from. The keys of JSON are in the same order. */
enum hw_perf_level {
    HW_PERF_L1,
    HW_PERF_LFB, /* line fill buffer: the line was already on its way */
    HW_PERF_L2,
    HW_PERF_L3,
    HW_PERF_DRAM,
    HW_PERF_REMOTE_CACHE,
    HW_PERF_REMOTE_DRAM,
    HW_PERF_OTHER_MEMORY, /* uncached, I/O, persistent or attached memory */
    HW_PERF_MISS,  /* a miss of a cache; what served it was not recorded */
    HW_PERF_UNKNOWN,
    HW_PERF_LEVELS,
};

enum hw_perf_scope {
    HW_PERF_ALL,
    HW_PERF_BLOCKS,
    HW_PERF_STACK,
    HW_PERF_MODULES,
    HW_PERF_ELSEWHERE,
    HW_PERF_PLACE, /* blocks of a context */
    HW_PERF_WORD,  /* eight bytes of these blocks */
    HW_PERF_SCOPES,
};

/* Latencies are of samples with a weight that are no stores, in the unit of perf's weight: mostly cycles. */
#define HW_PERF_BARS 16
struct hw_perf_count {
    uint32_t scope; /* enum hw_perf_scope */
    uint32_t context; /* HW_NONE, where the scope is none of blocks of a place */
    uint64_t word;    /* offset in the block / 8 */
    uint64_t samples, loads, stores; /* what is neither: atomic, prefetch, or not known */
    uint64_t levels[HW_PERF_LEVELS];
    uint64_t hitm_local, hitm_remote; /* loads of a line that another core had changed: of this socket, of another */
    uint64_t weighted, weight_sum, weight_median, weight_p90, weight_p99, weight_most;
    uint64_t blocks;             /* PLACE: how many had a sample */
    uint64_t words;              /* PLACE: how many have samples; at most HW_PERF_WORDS have an entry */
    uint32_t bars[HW_PERF_BARS]; /* of weights: bar n counts 2^n to 2^(n+1) - 1, the first one also 0, the last one more */
};
#define HW_PERF_WORDS 64

/* Who used a cache line with HITM: one entry for each word and line. Lines that lie in the same way in blocks of the
 * same places are one. */
struct hw_perf_side {
    uint32_t line;    /* number, most HITM first */
    uint32_t context; /* of the block; HW_NONE: in none */
    uint64_t word;    /* offset in that block / 8; else address / 8 */
    uint64_t lines;   /* of the whole: how many such lines */
    uint64_t loads, stores, hitm;
    uint64_t threads;    /* how many had samples, in one line at most */
    uint64_t first_thread; /* thread id of one of them */
};

#endif
