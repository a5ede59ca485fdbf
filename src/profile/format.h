/* format.h - the profile file, as the runtime writes it and the reader reads it.
 *
 * This header is the whole contract between the process that is profiled and everything after the run. It has no
 * code and no dependency but <stddef.h>, <stdint.h> and its parts: sections.def, numbers.def, format_access.h and
 * format_allocator.h; docs/development/profile-format.md explains it with an annotated sample.
 *
 * Rules that hold at every moment of the file's life, so that it can be read while the program runs and after kill -9:
 *
 *  - All integers are little-endian and naturally aligned. Offsets are from the start of the file.
 *  - The file is one 4096-byte first page (struct hw_file_header, then the directory), then section extents.
 *  - An extent is appended, never moved and never shrunk while the process lives. `used` is raised after the bytes it
 *    covers are written: what lies below `used` is valid. It never falls, but for TIMELINE, which is thinned out.
 *  - Several extents of one type are one section: concatenated in directory order. Entries never straddle extents.
 *  - A reader skips types it does not know, and fields behind those it knows (`entry_size` may grow).
 *  - While HW_FILE_SEALED is not set there are no checksums: the process still runs or was killed. Sealing computes
 *    XXH64 (seed 0) of every extent's used bytes, then of the first page with `checksum` as zero.
 *
 * Times are ticks of the process's clock (hw_process_info.clock_*), counted from its start; readers convert to ns.
 */
#ifndef HW_PROFILE_FORMAT_H
#define HW_PROFILE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#define HW_FILE_MAGIC         0x0a464f5250574889ull /* bytes 89 48 57 50 52 4f 46 0a: "\x89HWPROF\n" */
#define HW_FILE_VERSION_MAJOR 1                     /* a reader refuses a greater one */
#define HW_FILE_VERSION_MINOR 1                     /* a reader accepts a greater one, skipping what it does not know */
#define HW_FILE_PAGE          4096u
#define HW_NONE               0xffffffffu /* "no index" in every u32 index field */

enum hw_file_flags {
    HW_FILE_SEALED = 1u << 0, /* the process closed the file; checksums hold */
    HW_FILE_EXITED = 1u << 1, /* exit_kind and exit_value of hw_process_info are known */
};

/* Offset 0. The first six fields are the header of MemProf's raw format; the three offsets are those of the first
 * extent of the section, 0 when there is none yet. */
struct hw_file_header {
    uint64_t magic;
    uint32_t version_major, version_minor;
    uint64_t total_size; /* end of the last extent: bytes behind it mean nothing */
    uint64_t map_offset, mib_offset, stack_offset;
    uint32_t flags; /* enum hw_file_flags */
    uint32_t page_size;
    uint32_t directory_used;     /* entries in use in the first directory */
    uint32_t directory_capacity; /* entries there is room for in the first directory */
    uint64_t session;            /* random number of the `heapwise record` that started this tree of processes, or 0 */
    uint64_t checksum;           /* XXH64 of bytes 0..4095 with this field as 0; only when sealed */
    uint64_t reserved[22];
}; /* the directory follows */

/* What sections there are, and what is said of each: sections.def.
 *
 * HW_TAG(tag, predictor, members) behind a member: its tag in packed extents, never to be given to another one, and
 * what the writer predicts it from (pack.h); VALUE, where nothing is said. pack_fields.awk makes the tables of this. */
#define HW_TAG(...)
enum hw_section_type {
#define HW_SECTION(number, name, ...) HW_SECTION_##name = number,
#include "profile/sections.def"
};

enum hw_section_flags {
    HW_SECTION_PACKED = 1u << 0,   /* the extent holds its entries packed (pack.h): only in sealed files. entry_size is
                                    * that of the entries; offset and capacity are multiples of 8 */
    HW_SECTION_MUST_KNOW = 0xff00, /* a reader that does not know one of these bits must not use the extent */
};

/* A directory entry. 60 fit into the first page; entries that are not used have type 0; a further directory lies behind
 * the one that leads to it. */
struct hw_section {
    uint32_t type; /* enum hw_section_type */
    uint16_t version;
    uint16_t flags;      /* enum hw_section_flags */
    uint64_t offset;     /* multiple of 4096; of 8 in a file with packed extents */
    uint64_t capacity;   /* bytes reserved for this extent */
    uint64_t used;       /* bytes that are valid */
    uint32_t entry_size; /* bytes of one entry, 1 for strings */
    uint32_t reserved0;
    uint64_t checksum; /* XXH64 of the used bytes; only when the file is sealed */
    uint64_t entries;  /* packed: how many; else 0 */
    uint64_t reserved1;
};

enum hw_exit_kind { HW_EXIT_UNKNOWN = 0, HW_EXIT_CODE = 1, HW_EXIT_SIGNAL = 2, HW_EXIT_EXEC = 3, HW_EXIT_DETACHED = 4 };
enum hw_mode { HW_MODE_HEAP = 0, HW_MODE_ACCESS = 1, HW_MODE_ALLOCATOR = 2 };
enum hw_block_store { HW_STORE_MAP = 0, HW_STORE_TABLE = 1 };
enum hw_process_flags {
    HW_PROCESS_FORKED = 1u << 0, /* a forked child: there may be an INHERITED section */
    HW_PROCESS_DUMP = 1u << 1,   /* a snapshot, taken at end_tick, of a process that went on; its own file is another */
    HW_PROCESS_RESET = 1u << 2,  /* what was counted before reset_tick was forgotten: see there */
    HW_PROCESS_MERGED = 1u << 3, /* a sum over processes: see RUNS and `runs` */
    HW_PROCESS_LLVM = 1u << 4,   /* made from profiles of LLVM's: only what llvm_known says was measured */
    HW_PROCESS_BARS = 1u << 5,   /* sizes and lifetimes are recorded as distributions: see SIZE_BARS (merged: of every
                                  * run) */
    HW_PROCESS_ATTACHED = 1u << 6, /* the recording began in the middle of the run: older blocks are not known */
};

/* llvm_kind and llvm_flags of hw_process_info. */
enum hw_llvm_source_kind { HW_LLVM_KIND_RAW = 1, HW_LLVM_KIND_INDEXED = 2 };
enum hw_llvm_source_flags {
    HW_LLVM_CLANG_RUNTIME = 1u << 0, /* raw: written by clang's runtime (some of them) */
};

enum hw_counting_state {
    HW_COUNTING_ALWAYS = 0,  /* from the start of the program to its end */
    HW_COUNTING_WAITS = 1,   /* nothing so far */
    HW_COUNTING_ON = 2,      /* a period is under way */
    HW_COUNTING_STOPPED = 3, /* the latest one has ended, at end_tick */
};
enum hw_period_request {
    HW_PERIOD_START = 0,
    HW_PERIOD_STOP = 1,
    HW_PERIOD_START_ANEW = 2, /* the period before is not written to a dump */
    HW_PERIOD_WHAT = 3,       /* mask */
    HW_PERIOD_NUMBER = 4,
};
enum hw_period_result {
    HW_PERIOD_ALREADY = -5001, /* it counts, or does not */
    HW_PERIOD_NO_MEMORY = -5002,
};

/* The run as a whole. Live values are updated in place. Strings are offsets into the STRINGS section. */
struct hw_process_info {
    uint32_t pid, parent_pid;
    uint32_t mode;                                           /* enum hw_mode */
    uint32_t flags;                                          /* enum hw_process_flags */
    uint32_t executable, allocator, allocator_path, options; /* strings */
    uint32_t command; /* string: arguments, one NUL-terminated string after the other */
    uint32_t command_count;
    uint32_t cpus;
    uint32_t block_store;        /* enum hw_block_store */
    uint64_t start_realtime_ns;  /* CLOCK_REALTIME at tick 0 */
    uint64_t start_time_jiffies; /* field 22 of /proc/PID/stat: with pid it shows whether this process still runs */
    /* ns = ticks * clock_ns / clock_ticks: the pair is refreshed during the run and is exact at its own moment.
     * clock_ns is CLOCK_MONOTONIC since tick 0. Both are 1 when ticks are nanoseconds already. */
    uint64_t clock_ticks, clock_ns;
    uint64_t end_tick;       /* of the latest refresh; of the end, when the process closed the file */
    uint32_t exit_kind;      /* enum hw_exit_kind */
    int32_t exit_value;      /* exit code or signal */
    uint64_t peak_rss_bytes; /* VmHWM, as of the latest refresh */
    uint64_t sample_bytes;   /* mean distance of sampled allocations; 0: every allocation is counted (exact) */
    uint64_t table_entries;  /* table=N; 0: unbounded */
    /* live bytes of all threads. Threads flush deltas: the exact value is the sum over THREADS of live_bytes. */
    int64_t live_bytes;
    int64_t live_blocks;
    uint64_t peak_bytes;                       /* greatest total of live bytes */
    uint64_t peak_tick;                        /* when */
    uint64_t peak_epoch;                       /* number of the current peak, see hw_mib.peak_epoch */
    uint64_t threads_seen;                     /* threads that allocated or freed so far */
    uint64_t threads_most;                     /* most of them at once */
    uint64_t timeline_interval_ticks;          /* present distance of timeline points */
    uint64_t startup_ns;                       /* time the runtime took to start, for the report of its own cost */
    int64_t inherited_blocks, inherited_bytes; /* live in the parent at fork */
    uint64_t evictions;                        /* of the bounded table */
    /* With HW_PROCESS_RESET: counts of events, lifetimes and accesses begin here. Live figures and the peak are those
     * of all blocks, also of older ones. INHERITED says what was live at this moment; frees of such blocks are counted
     * as inherited_frees. */
    uint64_t reset_tick;
    /* heapwise dump: it raises dump_request and sends dump_signal (0: the process handles none). The process writes a
     * dump, then dump_result (number N of the file NAME.dumpN.hwprof, or -errno), then sets dump_answer to the request.
     */
    uint32_t dump_signal, dump_request, dump_answer;
    int32_t dump_result;
    /* With HW_PROCESS_MERGED: how many processes, and the greatest peak of one of them. peak_bytes is then the sum of
     * the processes' own peaks, each at its own moment, and the contexts' shares are shares of that sum. */
    uint64_t runs, peak_bytes_most;
    /* With HW_PROCESS_LLVM: bits 1 << enum hw_llvm_field; enum hw_llvm_source_kind; the newest version; how many dumps
     * there were in all; enum hw_llvm_source_flags. */
    uint32_t llvm_known;
    uint16_t llvm_kind, llvm_version;
    uint32_t llvm_dumps, llvm_flags;
    /* Forked children that could not write a profile, counted by themselves; errno of the first, merged: the greatest
     * one (0: the process had given up system calls). */
    uint32_t children_lost, children_error;
    /* Sampled runs, see sampling.c: the samples fall into two halves that know nothing of each other. By each half,
     * what was live when the other one knew most, in bytes, and its variance in units of 2^20 bytes squared; and the
     * most that sampled blocks took together, which is certain. All 0: an older file, or nothing was sampled. */
    int64_t peak_by_half[2], peak_half_variance[2];
    uint64_t peak_seen_bytes;
    uint64_t peak_variance; /* merged: that of peak_bytes */
    uint64_t added;         /* bits 1 << enum hw_added_number: those that MIBS has (merged: of every run) */
    uint64_t visit;         /* address of a struct hw_visit (profile/visit.h) in the process; 0: there is none */
    /* start=off. In a period everything is as after a reset at its begin, and nothing was inherited; the clock and all
     * counts stand still from its end. heapwise start and stop raise period_request, by HW_PERIOD_NUMBER, with an enum
     * hw_period_request, and send dump_signal. The process puts what came of it into period_result, then the request
     * into period_answer. */
    uint32_t counting, periods; /* enum hw_counting_state; how many began */
    uint32_t period_request, period_answer;
    int32_t period_result; /* enum hw_period_result, -errno, or N: the period before was written to NAME.dumpN.hwprof */
    /* With exit_kind HW_EXIT_UNKNOWN or signal 9: how many processes of its cgroup the kernel's OOM killer ended during
     * the run; 0: none, or it is not known. */
    uint32_t oom_kills;
    /* With HW_PROCESS_ATTACHED: bytes of blocks in use when the recording began, as the allocator counts them: rounded
     * up, in glibc with what threads keep in their caches; 0: it does not say. */
    uint64_t older_bytes;
};

#define HW_PROCESS_LEAST offsetof(struct hw_process_info, counting) /* bytes of it in older files */

/* An executable mapping, also one that is gone. The first four fields are those of MemProf's raw format. */
struct hw_map_entry {
    uint64_t start HW_TAG(1, PREVIOUS), end HW_TAG(2, FIELD, start); /* addresses of the executable segment */
    uint64_t offset HW_TAG(3);                                       /* of the segment's start in the file */
    uint64_t bias HW_TAG(4, FIELD, start); /* address - bias = address in the ELF file (p_vaddr) */
    uint8_t build_id[32];
    uint32_t build_id_size HW_TAG(5);
    uint32_t path HW_TAG(6, PREVIOUS); /* string; "[vdso]" for the vDSO, "" for anonymous code */
    uint64_t loaded_tick HW_TAG(7, PREVIOUS), unloaded_tick HW_TAG(8); /* unloaded_tick is 0 while it is mapped */
    uint32_t flags HW_TAG(9);                                          /* enum hw_map_flags */
    uint32_t unseen_operations HW_TAG(10); /* of its code, on memory, that cannot be counted: where it counts */
    uint64_t reserved[4];
};

enum hw_map_flags {
    HW_MAP_MAIN = 1u << 0,            /* the executable */
    HW_MAP_RUNTIME = 1u << 1,         /* Heapwise's own runtime: frames there are never stored */
    HW_MAP_ALLOCATOR = 1u << 2,       /* the module whose malloc is used */
    HW_MAP_ANONYMOUS = 1u << 3,       /* code without a file: generated at run time */
    HW_MAP_NOTES_READ = 1u << 4,      /* whether its code counts was looked for: the next ones hold */
    HW_MAP_COUNTS = 1u << 5,          /* …accesses to memory */
    HW_MAP_COUNTS_FIELDS = 1u << 6,   /* …accesses to fields of structs */
    HW_MAP_COUNTS_BY_CALLS = 1u << 7, /* part of its code is gcc's: what is unseen in it is not known */
};

/* A frame in the tree of call stacks: a stack is a leaf and its parents, leaf first. */
struct hw_stack_node {
    /* return address - 1, inside the call instruction; the exact pc where a signal interrupted */
    uint64_t pc HW_TAG(1);
    uint32_t map HW_TAG(2, PREVIOUS);    /* index into MAPS, or HW_NONE */
    uint32_t parent HW_TAG(3, PREVIOUS); /* node index, always smaller than the own one; 0 at the root */
};

enum hw_context_flags {
    HW_CONTEXT_TRUNCATED = 1u << 0,  /* deeper than the limit of frames */
    HW_CONTEXT_INCOMPLETE = 1u << 1, /* the walk stopped before the thread's start: see `stop` */
    HW_CONTEXT_FREE = 1u << 2,       /* only seen as a free stack */
    HW_CONTEXT_GAP = 1u << 3, /* callers may be missing in the middle: of code without tables, whose frame pointer may
                                 be its caller's */
};

#define HW_CONTEXT_NOT_WHOLE (HW_CONTEXT_TRUNCATED | HW_CONTEXT_INCOMPLETE | HW_CONTEXT_GAP)

struct hw_context_entry {
    uint32_t leaf HW_TAG(1, PREVIOUS);       /* stack node; 0: nothing is known of the stack */
    uint16_t depth HW_TAG(2, PREVIOUS);      /* frames */
    uint16_t flags HW_TAG(3);                /* enum hw_context_flags */
    uint64_t first_tick HW_TAG(4, PREVIOUS); /* when it was seen first */
};

/* Memory info block: all that was measured about one context by one thread slot. The reader merges the entries of one
 * context: sums for counts, minimum and maximum for those, the entry with the latest tick for the `last_*` fields.
 *
 * In sampled runs (sample_bytes != 0) every count is weighted: an estimate without bias (docs/accuracy.md); `samples`
 * says on how many allocations it rests. In exact runs samples == allocations.
 *
 * Blocks keep the context of their first allocation when realloc grows, shrinks or moves them.
 *
 * "previous" in the fields of MemProf's heap info block means: the block of this context that was freed before this
 * one, by a thread of the same slot.
 *
 * peak: while hw_process_info.peak_epoch == peak_epoch, peak_bytes and peak_blocks are what was live here at the
 * moment of the process's peak. When the epochs differ, nothing has changed here since: then live_* are it.
 *
 * Written by the thread that owns the slot only (or under the set's lock in bounded tables); 5 cache lines: those an
 * allocation touches first. */
struct hw_mib {
    /* line 0: allocation */
    uint32_t context HW_TAG(1, PREVIOUS);
    uint16_t last_alloc_cpu HW_TAG(2, PREVIOUS), last_free_cpu HW_TAG(3, PREVIOUS);
    uint64_t allocations HW_TAG(4); /* blocks obtained; reallocation of a block does not count */
    uint64_t bytes HW_TAG(5, PRODUCT, size_max, allocations);         /* requested, plus what reallocations added */
    uint64_t size_min HW_TAG(6, FIELD, size_max), size_max HW_TAG(7); /* size_min is UINT64_MAX while there is none */
    int64_t live_bytes HW_TAG(8, PRODUCT, size_max, live_blocks);
    int64_t live_blocks HW_TAG(9, DIFFERENCE, allocations, frees);
    uint64_t last_alloc_tick HW_TAG(10, PREVIOUS);
    /* line 1: peak, live ages, threads */
    uint64_t peak_epoch HW_TAG(11, PREVIOUS);
    int64_t peak_bytes HW_TAG(12, PRODUCT, size_max, peak_blocks);
    int64_t peak_blocks HW_TAG(13, SIGNED);
    /* sum (mod 2^64) of allocation ticks of live blocks: age total = live_blocks * now - live_ticks */
    uint64_t live_ticks HW_TAG(14, PRODUCT, last_alloc_tick, live_blocks);
    /* serial of the thread that did so last */
    uint32_t alloc_thread HW_TAG(15, PREVIOUS), free_thread HW_TAG(16, PREVIOUS);
    uint32_t alloc_threads HW_TAG(17, PREVIOUS), free_threads HW_TAG(18, PREVIOUS); /* how many distinct threads did */
    uint64_t samples HW_TAG(19, FIELD, allocations);
    uint64_t temporary HW_TAG(20); /* freed with no allocation between, in the same thread */
    /* line 2: free */
    uint64_t frees HW_TAG(21, FIELD, allocations);
    uint64_t lifetime_total HW_TAG(22, PRODUCT, lifetime_max, frees), lifetime_min HW_TAG(23, FIELD, lifetime_max),
        lifetime_max HW_TAG(24); /* ticks, of freed blocks; min is UINT64_MAX while there is none */
    uint64_t last_free_tick HW_TAG(25, SUM, last_alloc_tick, lifetime_min);
    uint64_t migrated_cpu HW_TAG(26);                 /* freed on another CPU than allocated */
    uint64_t lifetime_overlaps HW_TAG(27);            /* allocated before the previous block was freed */
    uint64_t same_alloc_cpu HW_TAG(28, FIELD, frees); /* allocated on the CPU the previous block was allocated on */
    /* line 3: free and reallocation */
    uint64_t same_free_cpu HW_TAG(29, FIELD, frees); /* freed on the CPU the previous block was freed on */
    uint16_t previous_alloc_cpu HW_TAG(30, FIELD, last_free_cpu);
    uint16_t flags HW_TAG(31); /* enum hw_mib_flags */
    /* bits 64 to 95 of lifetime_total: a million blocks fill 64 bits in two hours */
    uint32_t lifetime_total_high HW_TAG(32);
    /* In sampled runs a reallocation is a free and an allocation. There the same places hold sums over the samples that
     * estimate variances: of the numbers of allocations and of freed blocks, in sixteenths; of their bytes, in units of
     * 2^20 bytes squared. Freed ones: also those from before a reset, whose variances INHERITED has. All 0: an older
     * file, or nothing is uncertain. */
    union {
        struct {
            uint64_t reallocations HW_TAG(33);
            uint64_t realloc_moved HW_TAG(34, FIELD, reallocations); /* of them to a new address */
            uint64_t realloc_grown_bytes HW_TAG(35), realloc_shrunk_bytes HW_TAG(36);
        };
        struct {
            uint64_t count_variance, bytes_variance;
            uint64_t freed_count_variance, freed_bytes_variance;
        };
    };
    /* blocks of the parent, freed here: in no other count */
    uint64_t inherited_frees HW_TAG(37), inherited_freed_bytes HW_TAG(38);
    /* line 4, not in older files: numbers that were added since, in the order of their rows in numbers.def; the rest of
     * the line is 0 */
    union {
        uint64_t room[6]; /* the first, so that initializers clear it all */
        struct {
#define HW_ADDED_MIB(type, member)
#define HW_ADDED_TICKS(type, member)
#define HW_ADDED_EVENT(type, member)
#define HW_ADDED_CODE(type, member)
#define HW_ADDED_ADDED(type, member)                   type member;
#define HW_NUMBER(type, member, adds, of, stored, ...) HW_ADDED_##stored(type, member)
#include "profile/numbers.def"
#undef HW_ADDED_ADDED
        };
        struct {
            uint64_t numbers[5];
            uint32_t slot HW_TAG(60, PREVIOUS); /* + 1: of THREAD_LIST, whose threads counted here; 0: not known */
            uint32_t home HW_TAG(61, PREVIOUS); /* the runtime's own: what blocks of this MIB remember */
        };
    };
    /* with HW_PROCESS_BARS: what is in no entry of SIZE_BARS is of size_first's bucket, what is in none of
     * LIFETIME_BARS of the bar first_life */
    uint64_t size_first HW_TAG(62, FIELD, size_max); /* of the first block that was seen; UINT64_MAX: of none */
    uint16_t first_bucket HW_TAG(64, PREVIOUS);      /* that of size_first */
    uint16_t first_life HW_TAG(63, PREVIOUS);        /* log2 of nanoseconds, HW_LIFETIME_FIRST for less; 0: none yet.
                                                      * HW_NO_FIRST_LIFE: all have entries, as there was a reset */
    uint32_t links HW_TAG(65, PREVIOUS);             /* the runtime's own */
};

#define HW_NO_FIRST_LIFE 0xffffu

/* Bits of hw_process_info.added: they belong to their numbers for ever. */
enum hw_added_number {
#define HW_ADDED_ADDED(type, member)                   HW_ADDED_##member,
#define HW_NUMBER(type, member, adds, of, stored, ...) HW_ADDED_##stored(type, member)
#include "profile/numbers.def"
#undef HW_ADDED_ADDED
    HW_ADDED_NUMBERS
};
#define HW_ADDED_BIT(member) (1ull << HW_ADDED_##member)
#define HW_ADDED_ALL         ((1ull << HW_ADDED_NUMBERS) - 1)

#define HW_COUNT_VARIANCE_UNIT 16.
#define HW_BYTES_VARIANCE_UNIT 0x1p20

enum hw_mib_flags {
    HW_MIB_EVICTED = 1u << 0,  /* pushed out of a bounded table */
    HW_MIB_POOL = 1u << 1,     /* blocks of the program's own allocator (heapwise_pool_alloc): in memory that is counted
                                * already, so that they are in no total of a thread or the process */
    HW_MIB_LIVE_AGE = 1u << 2, /* merged: live_ticks is the sum of the ages itself; UINT64_MAX: too much to be known */
    HW_MIB_SIZES_MIXED = 1u << 3, /* there was no room for a bar: what is in no entry of SIZE_BARS is of any size */
    HW_MIB_LIVES_MIXED = 1u << 4, /* the same of LIFETIME_BARS */
    HW_MIB_RESIZED = 1u << 5,     /* blocks that another thread had allocated were reallocated */
};

/* Blocks of a context whose sizes lie in one bucket (base/size_bucket.h), where it is not the first one of the MIB:
 * most contexts have one size, and need no entry. Any number for the same; see hw_mib for the peak. */
struct hw_size_bar {
    uint32_t context HW_TAG(1, PREVIOUS);
    uint16_t first HW_TAG(2, PREVIOUS), bucket HW_TAG(3, PREVIOUS); /* that of size_first, and the own one */
    uint64_t allocations HW_TAG(4);                                 /* blocks that were obtained with such a size */
    uint64_t reallocations HW_TAG(5);                               /* of blocks to such a size, from any */
    uint64_t bytes HW_TAG(6);                                       /* requested, plus what these reallocations added */
    int64_t live_blocks HW_TAG(7, SIGNED), live_bytes HW_TAG(8, SIGNED); /* that have such a size now */
    uint64_t peak_epoch HW_TAG(9, PREVIOUS);
    int64_t peak_blocks HW_TAG(10, SIGNED), peak_bytes HW_TAG(11, SIGNED);
};

/* Freed blocks of a context that lived 2^life up to less than 2^(life + 1) ns, where that is not the first one of the
 * MIB. */
struct hw_lifetime_bar {
    uint32_t context HW_TAG(1, PREVIOUS);
    uint16_t first HW_TAG(2, PREVIOUS), life HW_TAG(3, PREVIOUS); /* first_life, and the own one */
    uint64_t frees HW_TAG(4);
    uint64_t bytes HW_TAG(5); /* of these blocks when they were freed */
};

/* A slot for one thread at a time: sums over all threads that have had it. Independent of the MIBs: both must agree. */
struct hw_thread_entry {
    uint32_t serial HW_TAG(1, PREVIOUS); /* of the present thread, from 1; 0: the slot is free */
    uint32_t tid HW_TAG(2, PREVIOUS);
    uint64_t allocations HW_TAG(3), frees HW_TAG(4), reallocations HW_TAG(5), temporary HW_TAG(6);
    uint64_t bytes HW_TAG(7); /* as hw_mib.bytes */
    int64_t live_bytes HW_TAG(8, SIGNED), live_blocks HW_TAG(9, DIFFERENCE, allocations, frees);
    uint64_t foreign_frees HW_TAG(10); /* of blocks that the runtime has not seen allocated; passed through */
    uint64_t foreign_reallocs HW_TAG(11);
    uint64_t failed HW_TAG(12);                     /* allocations that returned NULL */
    uint64_t nested HW_TAG(13);                     /* calls from inside an allocator call: passed through uncounted */
    uint64_t walks HW_TAG(14), verified HW_TAG(15); /* stacks walked anew, stacks that were recognised */
    uint64_t incomplete_walks HW_TAG(16);
    uint64_t lost HW_TAG(17); /* events that found no room (see notes) */
};

enum hw_thread_flags {
    HW_THREAD_MAIN = 1u << 0,
    HW_THREAD_ROUTINE = 1u << 1,  /* map and routine are known */
    HW_THREAD_NAMES = 1u << 2,    /* threads of several names were added up: the name is that of one of them */
    HW_THREAD_ROUTINES = 1u << 3, /* and of several routines */
    /* no thread: events of signal handlers that came in the middle of another event, and of threads that had ended as
     * far as libc knows */
    HW_THREAD_HANDLERS = 1u << 4,
    HW_THREAD_INHERITED = 1u << 5, /* no thread: what a forked child inherited, and has among its live blocks */
    HW_THREAD_NEXT = 1u << 6,      /* another thread had its slot before */
};

#define HW_THREAD_NAME 16 /* as in the kernel: 15 bytes and a NUL */

/* The threads that were counted in an entry of THREADS: entry i belongs to entry i there. Usually that is one. When
 * many threads have ended, those of the same name and routine are added up.
 *
 * What is live of the blocks that a thread allocated: live_bytes of THREADS (which counts what the thread does,
 * whosever the blocks are) + freed_of_others_bytes - resized_of_others - freed_by_others_bytes + resized_by_others; and
 * blocks likewise, which reallocations do not change. */
struct hw_thread_detail {
    char name[HW_THREAD_NAME]; /* comm: any bytes; at the end, or as of the latest change that was seen */
    uint32_t flags;            /* enum hw_thread_flags */
    uint32_t map;              /* of the routine: index into MAPS, or HW_NONE */
    uint64_t routine;          /* address - bias: given to pthread_create or thrd_create */
    uint64_t threads;          /* how many; 0: the entry is not in use */
    uint64_t start_tick;       /* of the first one: when it allocated or freed first */
    uint64_t end_tick;         /* of the last one; 0: some have not ended */
    uint32_t slot;             /* hw_mib.slot - 1 of what they counted; HW_NONE: of several */
    uint32_t serial;           /* of the first one */
    uint32_t previous;         /* entry of the thread that had the slot before, or HW_NONE */
    uint32_t starter;          /* serial of the thread that started it; 0: not known, or several did */
    uint64_t freed_of_others, freed_of_others_bytes; /* blocks of other threads, freed by it */
    uint64_t owner_unknown;                          /* blocks freed by it of which the thread is not known */
    /* as peak_epoch of hw_mib: what it had allocated and nobody but others freed, at the peak */
    uint64_t peak_epoch;
    int64_t peak_bytes;
    uint32_t context; /* call stack of pthread_create or thrd_create; 0: not known, or several */
    uint32_t reserved0;
    int64_t resized_of_others; /* bytes by which it made blocks of other threads larger, less those by which smaller */
    /* a line that other threads write: its blocks, freed by them; and up to the peak */
    uint64_t freed_by_others, freed_by_others_bytes;
    uint64_t others_epoch;
    uint64_t others_peak_bytes; /* freed_by_others_bytes - resized_by_others */
    int64_t resized_by_others;  /* as resized_of_others: its blocks, by other threads */
    uint64_t reserved[3];
};
_Static_assert(offsetof(struct hw_thread_detail, freed_by_others) % 64 == 0, "a line of its own");

#define HW_TIMELINE_POINTS 4096
struct hw_timeline_point {
    uint64_t tick HW_TAG(1, PREVIOUS);
    int64_t live_bytes HW_TAG(2, PREVIOUS);
    uint64_t rss_bytes HW_TAG(3, PREVIOUS);                              /* 0: not read */
    uint64_t allocations HW_TAG(4, PREVIOUS), frees HW_TAG(5, PREVIOUS); /* up to this moment */
};

/* How often a free stack freed blocks of an allocation context (on request: free-stacks=1). */
struct hw_free_stack {
    uint32_t alloc_context HW_TAG(1, PREVIOUS), free_context HW_TAG(2, FIELD, alloc_context);
    uint64_t count HW_TAG(3), bytes HW_TAG(4);
};

/* HW_MOMENT_TIME: one of several, sorted by time. Of the others a later entry replaces an earlier one. */
enum hw_memory_moment { HW_MOMENT_PEAK = 0, HW_MOMENT_END = 1, HW_MOMENT_DUMP = 2, HW_MOMENT_TIME = 3 };

enum hw_memory_known {
    HW_MEMORY_LEDGER = 1u << 0,      /* allocator to ended_stacks, page_tables, pss, huge */
    HW_MEMORY_CGROUP = 1u << 1,      /* cgroup, cgroup_peak */
    HW_MEMORY_CGROUP_PEAK = 1u << 2, /* the kernel keeps the peak */
    HW_MEMORY_PARTS = 1u << 3,       /* used to metadata */
};

/* RSS taken apart, from /proc/self/smaps. All in bytes. */
struct hw_memory_breakdown {
    uint64_t tick HW_TAG(1, PREVIOUS);
    uint32_t moment HW_TAG(2); /* enum hw_memory_moment */
    uint32_t reserved0 HW_TAG(3);
    uint64_t rss HW_TAG(4);
    /* resident in [heap] and anonymous mappings that hold tracked blocks or came from the program */
    uint64_t heap HW_TAG(5);
    uint64_t file HW_TAG(6);    /* code, read-only and private data of executables and libraries, other mapped files */
    uint64_t stack HW_TAG(7);   /* stacks of threads, as far as they can be identified */
    uint64_t runtime HW_TAG(8); /* Heapwise's own memory */
    uint64_t other HW_TAG(9);   /* shared memory, vDSO, the rest */
    int64_t live_bytes HW_TAG(10, SIGNED); /* requested and not freed at this moment */
    uint64_t swap HW_TAG(11);
    uint32_t known HW_TAG(12); /* enum hw_memory_known: what of the rest was measured */
    uint32_t reserved1 HW_TAG(13);
    uint64_t allocator HW_TAG(14), mapped HW_TAG(15); /* of `heap`: the allocator's, mapped by the program itself; */
    uint64_t unexplained HW_TAG(16);                  /* …and by calls that were not seen */
    uint64_t modules HW_TAG(17);                      /* of `file`: executables and libraries, with their data */
    uint64_t shared HW_TAG(18);                       /* of `other`: shared memory without a file */
    uint64_t shared_files HW_TAG(19);                 /* of `other`: files mapped as shared */
    uint64_t ended_stacks HW_TAG(20);                 /* of `stack`: of threads that have ended */
    uint64_t page_tables HW_TAG(21);                  /* beside RSS */
    uint64_t pss HW_TAG(22), huge HW_TAG(23);         /* of `rss`: proportional; in transparent huge pages */
    uint64_t cgroup HW_TAG(24), cgroup_peak HW_TAG(25), cgroup_limit HW_TAG(26); /* the limit is 0: there is none */
    /* Of `allocator`: blocks as requested and resident, rounding, free in pages with blocks, free in others, the rest
     */
    uint64_t used HW_TAG(27), rounding HW_TAG(28), pinned HW_TAG(29), kept HW_TAG(30), metadata HW_TAG(31);
    uint64_t reserved[3];
};

enum hw_ledger_kind {
    HW_LEDGER_OTHER = 0, /* vDSO, … */
    HW_LEDGER_ALLOCATOR = 1,
    HW_LEDGER_MAPPED = 2,    /* anonymous memory that the program mapped itself */
    HW_LEDGER_UNSEEN = 3,    /* anonymous memory of which nobody knows who mapped it */
    HW_LEDGER_MODULE = 4,    /* an executable or library, with its data */
    HW_LEDGER_FILE = 5,      /* another file */
    HW_LEDGER_SHARED = 6,    /* shared memory without a file of its own: memfd, shm_open, System V */
    HW_LEDGER_STACK = 7,     /* of a thread */
    HW_LEDGER_OLD_STACK = 8, /* of one that has ended: the C library keeps some for the next */
    HW_LEDGER_RUNTIME = 9,   /* Heapwise's own memory */
    HW_LEDGER_LOADER = 10,   /* thread-local data of the first thread, beside what else the loader maps */
    HW_LEDGER_KINDS = 11,
};

/* A part of RSS at one of the moments of MEMORY, taken apart by who mapped it. */
struct hw_ledger_row {
    uint64_t tick HW_TAG(1, PREVIOUS);
    uint32_t moment HW_TAG(2), kind HW_TAG(3); /* enum hw_memory_moment, enum hw_ledger_kind */
    uint32_t name HW_TAG(4, PREVIOUS);         /* string: of a file, or a thread; 0: several, or none */
    uint32_t context HW_TAG(5, PREVIOUS);      /* call stack of mmap; 0: not known, or several */
    uint32_t tid HW_TAG(6, PREVIOUS);          /* of a stack; 0: several */
    uint32_t mappings HW_TAG(7);
    uint64_t bytes HW_TAG(8), resident HW_TAG(9); /* of address space; of RSS */
    uint64_t own HW_TAG(10), pss HW_TAG(11);      /* of `resident`: in no other process; proportional */
    uint64_t swap HW_TAG(12), huge HW_TAG(13), reserved HW_TAG(14);
};

/* What the program has mapped and unmapped, by the call stack of mmap, mremap or sbrk. Bytes of address space. */
struct hw_mapping {
    uint32_t context HW_TAG(1, PREVIOUS), reserved0 HW_TAG(2);
    uint64_t calls HW_TAG(3), bytes HW_TAG(4);             /* over the whole run */
    uint64_t mapped_bytes HW_TAG(5), peak_bytes HW_TAG(6); /* still mapped at the end, at most */
    uint64_t reserved HW_TAG(7);
};

enum hw_note_code {
    HW_NOTE_TABLE_STORE = 1, /* the address space had no room for a map: blocks are in a table */
    HW_NOTE_FILE_FULL = 2,   /* the file could not grow (text says why): new contexts were counted as unknown */
    HW_NOTE_NO_MEMORY = 3,   /* the runtime got no memory: events were passed through uncounted */
    /* 4 was never written: exit_kind says that a process became another program */
    HW_NOTE_EXEC_UNPROFILED = 5,  /* another program was started that cannot be profiled: text says which and why */
    HW_NOTE_STATIC_ALLOCATOR = 6, /* an allocator linked into the program could not be hooked: text says why */
    HW_NOTE_NO_UNWIND = 7, /* a module without unwind tables: stacks through it rest on frame pointers: text = path */
    HW_NOTE_BLOCK_REPLACED = 8, /* blocks that vanished without a free that could be seen */
    /* 9 was never written */
    HW_NOTE_CLOCK = 10, /* the time stamp counter is not usable: clock_gettime served */
    HW_NOTE_JIT = 11,   /* stacks end at code generated at run time */
    HW_NOTE_OTHER = 12,
    HW_NOTE_PLANES_SHARED = 13, /* more threads than planes: some threads counted into one plane (count: threads) */
    HW_NOTE_NOT_OWNED = 14,     /* blocks that do not own their cells (count): allocated before counting began, … */
    /* 15 was never written: enum hw_map_flags says which modules do not count */
    HW_NOTE_FOLDED = 16,      /* two areas of memory share cells: they lie a multiple of the planes' distance apart */
    HW_NOTE_RESET = 17,       /* the program called heapwise_reset: what was before is not in here */
    HW_NOTE_NOT_SWEPT = 18,   /* seconds of computing passed between two looks for cells about to overflow */
    HW_NOTE_NO_DISPATCH = 19, /* system calls inside the allocator were not seen, or not any more: text says why */
    HW_NOTE_NO_EVENTS = 20,   /* the processor's events during operations could not be counted: text says why */
    HW_NOTE_LEFT = 21,        /* calls of the allocator that were left by a jump (count): each may be counted in part */
    HW_NOTE_BARS_LOST = 22,   /* entries of MIBS (count) for which there was no room in SIZE_BARS or LIFETIME_BARS */
    HW_NOTE_DUMP_AT = 23, /* nothing is lost: memory passed a share of its limit, and a dump was written (dump-at) */
};

struct hw_note {
    uint32_t code HW_TAG(1);           /* enum hw_note_code */
    uint32_t text HW_TAG(2, PREVIOUS); /* string */
    uint64_t count HW_TAG(3);          /* how often; may still rise */
    uint64_t tick HW_TAG(4, PREVIOUS); /* when first */
};

enum hw_region_flags {
    HW_REGION_THREAD = 1u << 0,    /* events of one thread; else of the process */
    HW_REGION_ESTIMATED = 1u << 1, /* the numbers are estimates, of some regions at least */
};

/* What was allocated between heapwise_region_begin and heapwise_region_end: sums over all regions of a name. */
struct hw_region {
    uint32_t name HW_TAG(1, PREVIOUS);         /* string */
    uint32_t flags HW_TAG(2);                  /* enum hw_region_flags */
    uint64_t begun HW_TAG(3), ended HW_TAG(4); /* the numbers are of those that were ended, and could be measured */
    uint64_t allocations HW_TAG(5), frees HW_TAG(6), reallocations HW_TAG(7);
    uint64_t bytes HW_TAG(8);                                             /* as hw_mib.bytes */
    int64_t live_blocks HW_TAG(9, SIGNED), live_bytes HW_TAG(10, SIGNED); /* at the end less at the begin */
    /* Of one region, the greatest: rise of the live bytes over those at its begin, allocations, bytes, live bytes */
    uint64_t peak_bytes HW_TAG(11), most_allocations HW_TAG(12), most_bytes HW_TAG(13);
    int64_t most_live_bytes HW_TAG(14, SIGNED);
    uint64_t ticks HW_TAG(15), most_ticks HW_TAG(16);     /* from begin to end: all of them, the longest */
    uint64_t first_tick HW_TAG(17), last_tick HW_TAG(18); /* first begin, last end */
    uint64_t reserved[3];
};

/* heapwise_mark: a moment that the program has named. */
struct hw_mark {
    uint64_t tick HW_TAG(1, PREVIOUS);
    int64_t live_bytes HW_TAG(2, PREVIOUS);
    uint32_t name HW_TAG(3, PREVIOUS); /* string */
    uint32_t reserved0 HW_TAG(4);
};

/* Live blocks a forked child inherited, by context (the child's own id). */
struct hw_inherited {
    uint32_t context HW_TAG(1, PREVIOUS), reserved0 HW_TAG(2);
    int64_t blocks HW_TAG(3, SIGNED), bytes HW_TAG(4, SIGNED);
    uint64_t count_variance HW_TAG(5), bytes_variance HW_TAG(6); /* of these, in sampled runs: as in hw_mib */
};

/* Live blocks by whether the program could still reach them, at the moment of LEAK_INFO. */
enum hw_leak_class {
    HW_LEAK_DEFINITE = 0,  /* lost: no pointer to it anywhere */
    HW_LEAK_INDIRECT = 1,  /* lost: only other lost blocks point to it */
    HW_LEAK_POSSIBLE = 2,  /* on each way to it some pointer leads into the middle of a block */
    HW_LEAK_REACHABLE = 3, /* by pointers to the begins of blocks */
    HW_LEAK_CLASSES = 4,
};
struct hw_leak {
    uint32_t context HW_TAG(1, PREVIOUS), kind HW_TAG(2); /* enum hw_leak_class */
    uint64_t blocks HW_TAG(3), bytes HW_TAG(4);
    uint64_t oldest_tick HW_TAG(5), newest_tick HW_TAG(6); /* when these were allocated; 0: before this process */
};
struct hw_leak_info {
    uint64_t tick HW_TAG(1), scan_ns HW_TAG(2);                 /* the moment, and how long it took */
    uint64_t root_bytes HW_TAG(3), scanned_bytes HW_TAG(4);     /* that were searched: roots, and blocks */
    uint64_t unwritten_bytes HW_TAG(5);                         /* of blocks that are missing in LEAKS */
    uint32_t threads HW_TAG(6), threads_missed HW_TAG(7);       /* with their registers and stacks; and without */
    uint32_t missed_error HW_TAG(8);                            /* errno: why */
    uint32_t calm HW_TAG(9);                                    /* 0: some thread was in the middle of an allocation */
    uint64_t stopped_ns HW_TAG(10);                             /* how long the program waited; 0: as long as it took */
    uint64_t inside_blocks HW_TAG(11), inside_bytes HW_TAG(12); /* reachable by pointers as C++ has them inside only */
};

/* Who keeps the blocks that the program can reach (record --keeps), at the moment of KEEP_INFO. Keepers are a tree:
 * each block belongs to the keeper that all pointers to it come from, straight or by way of other blocks, or to the
 * nearest keeper above those that they come from. Stacks and registers keep what no lasting keeper does. */
enum hw_keeper_kind {
    HW_KEEPER_NONE = 0,              /* entry 0: nothing */
    HW_KEEPER_SEVERAL = 1,           /* entry 1: above all lasting ones */
    HW_KEEPER_SEVERAL_MOMENTARY = 2, /* entry 2: above threads */
    HW_KEEPER_VARIABLE = 3,          /* data of a module: a symbol's, or pointers close together where there is none */
    HW_KEEPER_SLOT = 4,              /* a pointer in it, or in thread-local data */
    HW_KEEPER_THREAD_LOCAL = 5,      /* thread-local data of a thread */
    HW_KEEPER_POOLS = 6,             /* blocks of pools that the program announced */
    HW_KEEPER_LINKER = 7,            /* the dynamic linker */
    HW_KEEPER_OTHER = 8,             /* variables that had no room of their own */
    HW_KEEPER_THREAD = 9,            /* above: */
    HW_KEEPER_STACK = 10,
    HW_KEEPER_REGISTERS = 11,
    HW_KEEPER_FRAME = 12,  /* of a stack: of the function that `address` lies in */
    HW_KEEPER_TARGET = 13, /* the block that a pointer in a variable points to, where others point to it, too */
    HW_KEEPER_KINDS = 14,
};
enum hw_keeper_flags {
    HW_KEEPER_IN_TLS = 1u << 0, /* `address` is an offset in the thread-local data of the module */
};
/* `parent` is smaller than the own index; `map` that of variables, their pointers and frames, else HW_NONE; `tid` of
 * what belongs to a thread, `name` (string) the thread's. `address` - bias (see HW_KEEPER_IN_TLS); of a thread-local
 * pointer whose module is not known what it is beyond the thread pointer, modulo 2^64. `pointers`: words in it that
 * point to blocks. */
struct hw_keeper {
    uint32_t parent HW_TAG(1, PREVIOUS), kind HW_TAG(2); /* enum hw_keeper_kind */
    uint32_t map HW_TAG(3, PREVIOUS), tid HW_TAG(4, PREVIOUS);
    uint64_t address HW_TAG(5, PREVIOUS), size HW_TAG(6);
    uint64_t pointers HW_TAG(7);
    uint32_t name HW_TAG(8, PREVIOUS), flags HW_TAG(9); /* enum hw_keeper_flags */
};
/* Blocks of a context that belong to a keeper. */
struct hw_kept {
    uint32_t context HW_TAG(1, PREVIOUS), keeper HW_TAG(2, PREVIOUS);
    uint64_t blocks HW_TAG(3), bytes HW_TAG(4);
};
enum hw_keep_edge_flags {
    HW_KEEP_FROM_KEEPER = 1u << 0, /* `from` is an index into KEEPERS, else into KEPT */
    HW_KEEP_MOMENTARY = 1u << 1,   /* from stacks to what lasting keepers keep */
};
/* Pointers from a keeper, or from blocks, to blocks. `offset` is that of the first pointer in its block. Each block
 * counts in `blocks` and `bytes` of one edge: that of the first pointer to it that was found. */
struct hw_keep_edge {
    uint32_t from HW_TAG(1, PREVIOUS), to HW_TAG(2, PREVIOUS); /* `to` is an index into KEPT */
    uint32_t flags HW_TAG(3), offset HW_TAG(4);                /* enum hw_keep_edge_flags */
    uint64_t pointers HW_TAG(5), blocks HW_TAG(6), bytes HW_TAG(7);
};
struct hw_keep_info {
    uint64_t tick HW_TAG(1), duration_ns HW_TAG(2);
    uint64_t blocks HW_TAG(3), bytes HW_TAG(4);           /* that are kept */
    uint64_t memory_bytes HW_TAG(5);                      /* of the process, for the search for keepers */
    uint64_t lost_blocks HW_TAG(6), lost_bytes HW_TAG(7); /* kept, without an entry in KEPT */
    uint64_t lost_pointers HW_TAG(8);                     /* without an entry in KEEP_EDGES */
    uint64_t folded_variables HW_TAG(9);                  /* that had no room of their own: HW_KEEPER_OTHER */
    uint64_t reserved[1];
};

/* What is in live blocks (record --contents), by context, at the moment of CONTENT_INFO. A byte may count in several of
 * these numbers, and once in `avoidable_bytes`. */
struct hw_contents {
    uint32_t context HW_TAG(1, PREVIOUS), flags HW_TAG(2);          /* 0 */
    uint64_t blocks HW_TAG(3), bytes HW_TAG(4);                     /* that were examined */
    uint64_t identical_blocks HW_TAG(5), identical_bytes HW_TAG(6); /* copies of another block, beyond the first one */
    uint64_t repeated HW_TAG(7);                          /* contents with copies whose first block is one of these */
    uint64_t zero_blocks HW_TAG(8), zero_bytes HW_TAG(9); /* blocks of zeros only */
    uint64_t never_written_bytes HW_TAG(10); /* on pages that are not there, or as they were filled at the allocation */
    uint64_t absent_bytes HW_TAG(11);        /* of them on pages that are not there */
    uint64_t tail_blocks HW_TAG(12);         /* others whose end is zeros, or was never written, */
    uint64_t unused_tail_bytes HW_TAG(13);   /* and how much of them */
    uint64_t avoidable_bytes HW_TAG(14);     /* in any of these numbers, and in memory */
    uint64_t unread_bytes HW_TAG(15);        /* in swap, not readable, or of a mapped file */
    /* What the avoidable bytes are, each once; the rest was never written. Since 2026-11-23, else 0. */
    uint64_t avoidable_copies HW_TAG(16), avoidable_zeros HW_TAG(17), avoidable_ends HW_TAG(18);
    uint64_t identical_error HW_TAG(19); /* identical_bytes is an estimate: so much more or less, in 95 % of cases */
};
/* A content that several blocks have. */
struct hw_content_example {
    uint32_t context, shown; /* HW_NONE: one of the most frequent of all; how many of `bytes` are known */
    uint64_t size, copies;   /* of a block; blocks of all contexts */
    uint64_t here;           /* of them of the context, at least, beside the first one; 0: not counted */
    uint8_t bytes[64];       /* the begin, else 0 */
};
enum hw_content_flags {
    HW_CONTENT_FILLED = 1u << 0,  /* new blocks were filled: small ones are known to be written or not */
    HW_CONTENT_SAMPLES = 1u << 1, /* examples have bytes */
    HW_CONTENT_CALM = 1u << 2,    /* no thread was in the middle of an allocation */
    HW_CONTENT_BLIND = 1u << 3,   /* it could not be found out which pages are there */
};
struct hw_content_info {
    uint64_t tick HW_TAG(1), duration_ns HW_TAG(2);
    uint64_t blocks HW_TAG(3), bytes HW_TAG(4); /* that were examined, without those of pools */
    uint64_t memory_bytes HW_TAG(5);            /* of the process, for the table of contents */
    uint32_t moment HW_TAG(6), flags HW_TAG(7); /* enum hw_memory_moment, enum hw_content_flags */
    uint32_t sampled HW_TAG(8); /* 0: all contents were compared; else at last those with one hash in 2^sampled */
    uint32_t threads_missed HW_TAG(9), missed_error HW_TAG(10), reserved0 HW_TAG(11); /* not stopped; errno */
    uint64_t distinct HW_TAG(12);                                 /* contents in the table at last */
    uint64_t unread_bytes HW_TAG(13), unwritten_bytes HW_TAG(14); /* not read; of contexts without an entry */
    uint64_t swapped_bytes HW_TAG(15);                            /* of those not read: in swap */
    uint64_t threshold HW_TAG(16);       /* near the peak: asked for from so many live bytes on */
    uint64_t identical_error HW_TAG(17); /* as in struct hw_contents, of the sum over all contexts */
};

/* The live heap page by page (record --pinned), at the moment of HEAP_PAGES. Resident pages of 4 KiB count, in mappings
 * that hold a live block. What a block takes of them is its extent: what was requested, what it is rounded up to, and
 * its header where that is known.
 *
 *   requested + rounding + headers - absent + free in pages with live bytes + kept = resident */
enum hw_heap_pages_flags {
    HW_HEAP_PAGES_GLIBC = 1u << 0,    /* headers are known, and so are [heap] and arenas */
    HW_HEAP_PAGES_MINCORE = 1u << 1,  /* no pagemap: pages in swap count as absent */
    HW_HEAP_PAGES_ROUNDING = 1u << 2, /* what blocks are rounded up to is known */
    HW_HEAP_PAGES_MISSED = 1u << 3,   /* a thread was in the middle of an allocation: nothing was read */
};
struct hw_heap_pages {
    uint64_t tick HW_TAG(1), walk_ns HW_TAG(2);      /* the moment, and how long it took */
    uint32_t flags HW_TAG(3), top_context HW_TAG(4); /* HW_NONE, or whose block is the last one in [heap] */
    uint64_t blocks HW_TAG(5), requested_bytes HW_TAG(6), rounding_bytes HW_TAG(7), header_bytes HW_TAG(8);
    uint64_t absent_bytes HW_TAG(9);    /* of these three: in pages that are not resident */
    uint64_t swapped_bytes HW_TAG(10);  /* pages of these mappings that are in swap */
    uint64_t resident_bytes HW_TAG(11); /* of mappings with live blocks */
    uint64_t live_pages HW_TAG(12);     /* resident ones with bytes of a live block */
    uint64_t free_bytes HW_TAG(13);     /* in them: of no live block */
    uint64_t kept_bytes HW_TAG(14);     /* in resident pages without */
    /* of kept_bytes, with glibc: in [heap] behind the last block; before it, which only malloc_trim gives back; in
     * other arenas */
    uint64_t top_bytes HW_TAG(15), below_top_bytes HW_TAG(16), arena_bytes HW_TAG(17);
    uint64_t top_held_bytes HW_TAG(18);  /* resident bytes of [heap] between the last block of another context and that
                                          * of  top_context */
    uint64_t ungrouped_pages HW_TAG(19); /* live pages that are in no entry of PAGE_GROUPS: more contexts are on them */
    uint64_t unwritten_bytes HW_TAG(20); /* pinned by contexts that are missing in PINS */
    uint64_t large_bytes HW_TAG(21);     /* in live pages that one block fills: in no entry of PAGE_GROUPS, nor in
                                          * `packed_bytes` of PINS */
    uint64_t absent_rounding_bytes HW_TAG(22); /* of absent_bytes; headers are always written */
    uint64_t reserved[3];
};
/* What blocks of a context keep resident. The free bytes of a page are shared equally among the contexts with a block
 * on it. */
struct hw_pin {
    uint32_t context HW_TAG(1, PREVIOUS), reserved0 HW_TAG(2);
    uint64_t blocks HW_TAG(3), own_bytes HW_TAG(4);           /* extents, in resident pages */
    uint64_t pages HW_TAG(5), live_bytes HW_TAG(6);           /* on which it has bytes; all contexts' bytes on them */
    uint64_t pinned_bytes HW_TAG(7);                          /* its share of their free bytes */
    uint64_t sole_pages HW_TAG(8), sole_free_bytes HW_TAG(9); /* on which no other context has a block; free on them */
    uint64_t packed_bytes HW_TAG(10), packed_blocks HW_TAG(11); /* own_bytes, and begins of blocks, on pages that no one
                                                                 * block fills */
    uint64_t classes HW_TAG(12);                                /* bit 4 * log2 + quarter - 16, of sizes up to 1 MiB */
};
/* How full pieces of the heap are: `tenths` 0: no live byte; else more than tenths - 1 and up to `tenths` tenths of
 * the resident bytes. */
enum hw_piece_unit {
    HW_PIECE_PAGE = 0,       /* 4 KiB */
    HW_PIECE_HUGE_PAGE = 1,  /* 2 MiB, aligned: resident bytes in it */
    HW_PIECE_GLIBC_HEAP = 2, /* up to 64 MiB of an arena other than the main one */
    HW_PIECE_SEGMENT = 3,    /* 32 MiB, aligned: mimalloc's */
    HW_PIECE_UNITS = 4,
};
struct hw_occupancy {
    uint32_t unit HW_TAG(1), tenths HW_TAG(2); /* enum hw_piece_unit */
    uint64_t pieces HW_TAG(3), resident_bytes HW_TAG(4), live_bytes HW_TAG(5);
};
/* Live pages on which exactly these contexts have blocks: ascending, HW_NONE behind the last. */
#define HW_PAGE_GROUP_CONTEXTS 8u
struct hw_page_group {
    uint32_t contexts[HW_PAGE_GROUP_CONTEXTS];
    uint64_t pages, live_bytes;
};

#include "profile/format_access.h"
#include "profile/format_perf.h"
#include "profile/format_allocator.h"

/* ---- merged and symbolised profiles (heapwise merge) ---- */

/* Processes of one program that were merged: those that agree in everything up to sample_bytes. Sorted by it. */
struct hw_run {
    uint32_t executable HW_TAG(1), allocator HW_TAG(2); /* strings */
    uint32_t mode HW_TAG(3);                            /* enum hw_mode */
    uint32_t build_id_size HW_TAG(4);
    uint8_t build_id[32]; /* of the executable */
    uint64_t sample_bytes HW_TAG(5);
    uint64_t runs HW_TAG(6);
    uint64_t duration_total_ns HW_TAG(7), duration_max_ns HW_TAG(8);
    uint64_t first_start_realtime_ns HW_TAG(9), last_start_realtime_ns HW_TAG(10); /* 0: not known */
    uint64_t peak_bytes_max HW_TAG(11), peak_rss_max_bytes HW_TAG(12);
    /* the rest: replaced by exec, or not known how they ended */
    uint64_t exited_zero HW_TAG(13), exited_nonzero HW_TAG(14), signalled HW_TAG(15);
    uint64_t reserved[4];
};

/* Where a stack node's pc lies, symbolised. */
struct hw_location {
    uint64_t address HW_TAG(1, PREVIOUS); /* pc - bias of the map; pc where map is HW_NONE, or code without a file */
    uint32_t map HW_TAG(2, PREVIOUS);     /* index into MAPS: the first one of the module; or HW_NONE */
    /* in FRAMES, innermost first; the last is not inlined */
    uint32_t first_frame HW_TAG(3, PREVIOUS), frame_count HW_TAG(4);
    uint32_t reserved0 HW_TAG(5);
};

enum hw_symbol_frame_flags {
    HW_SYMBOL_INLINED = 1u << 0, /* into the next frame of the chain */
};

struct hw_symbol_frame {
    uint32_t function HW_TAG(1, PREVIOUS), linkage_name HW_TAG(2, FIELD, function); /* strings; 0: not known */
    uint32_t file HW_TAG(3, PREVIOUS);                                              /* index into FILES; 0: not known */
    uint32_t line HW_TAG(4, PREVIOUS), column HW_TAG(5), discriminator HW_TAG(6);
    /* of the function; see struct hw_frame */
    uint32_t start_line HW_TAG(7, FIELD, line), relative_line HW_TAG(8, DIFFERENCE, line, start_line);
    uint32_t flags HW_TAG(9); /* enum hw_symbol_frame_flags */
    uint32_t reserved0 HW_TAG(10);
};

/* A component of a path; a path is a leaf and its parents up to, not including, the root, joined by '/': that of
 * "/a/b" begins with a nameless component. The root is nameless and its own parent. */
struct hw_file_node {
    uint32_t name HW_TAG(1, PREVIOUS);   /* string */
    uint32_t parent HW_TAG(2, PREVIOUS); /* smaller than the own index */
};

/* Open addressing: the slot of a name is the first one, from (hash & (slots - 1)) on, that holds it; an empty one
 * (name 0) ends the search. Names are readable ones and linkage names. A context belongs to each function of its
 * leaf's inline chain. Never packed, so that a look-up reads a slot or two. */
struct hw_function_slot {
    uint64_t hash; /* XXH64 (seed 0) of the name */
    uint32_t name; /* string */
    uint32_t first_posting, posting_count;
    uint32_t reserved0;
};

/* Contexts [first, first + count). */
struct hw_posting {
    uint32_t first_context HW_TAG(1, PREVIOUS), count HW_TAG(2);
};

struct hw_type_name {
    uint64_t id HW_TAG(1, PREVIOUS); /* hw_access.type */
    uint32_t name HW_TAG(2, PREVIOUS);
    uint32_t reserved0 HW_TAG(3);
};

enum hw_block_type_flags {
    HW_BLOCK_TYPE_EVIDENCE = 0xff, /* enum hw_type_evidence (symbols/symbols.h) */
    HW_BLOCK_TYPE_MANY = 1u << 8,  /* blocks are arrays of it */
};

/* What the blocks of a context are, by the code that allocates them. */
struct hw_block_type {
    uint32_t context HW_TAG(1, PREVIOUS);
    uint32_t flags HW_TAG(2, PREVIOUS); /* enum hw_block_type_flags */
    uint64_t type HW_TAG(3);            /* hw_type_name.id */
    uint64_t size HW_TAG(4);            /* sizeof */
};

enum hw_data_name_flags {
    HW_DATA_SECTION = 1u << 0,  /* not a variable, but the section of the ELF file where none is */
    HW_DATA_LOCAL = 1u << 1,    /* address in the thread-local data of the module */
    HW_DATA_FIELD_OF = 1u << 2, /* the variable that a keeper's pointer is in, as debug information calls it */
    HW_DATA_FIELD = 1u << 3,    /* the field of it: ".db". None: the variable itself */
    HW_DATA_TYPE = 1u << 4,     /* what a keeper's pointer is declared to point to */
    HW_DATA_WHOLE = 1u << 5,    /* with HW_DATA_TYPE: all pointers of the variable */
    HW_DATA_FLAGS = (1u << 6) - 1,
};

struct hw_data_name {
    uint64_t address HW_TAG(1, PREVIOUS), size HW_TAG(2); /* address - bias */
    uint32_t map HW_TAG(3, PREVIOUS);                     /* as in struct hw_location */
    uint32_t flags HW_TAG(4);                             /* enum hw_data_name_flags */
    uint32_t name HW_TAG(5, PREVIOUS);                    /* string */
    uint32_t reserved0 HW_TAG(6);
};

enum hw_module_mark_flags {
    HW_MARK_USABLE = 1u << 0,     /* its file, or its debug file, could be read: what has no name in here has none */
    HW_MARK_DEBUG_INFO = 1u << 1, /* with files and lines */
    HW_MARK_COUNTS = 1u << 2,     /* its code counts its accesses */
    HW_MARK_COUNTS_NOT = 1u << 3, /* it does not. Neither of the two: not known */
    HW_MARK_DATA = 1u << 4,       /* DATA_SYMBOLS has all of its variables that were accessed */
};

/* What was found out about a module when it was symbolised. */
struct hw_module_mark {
    uint32_t map HW_TAG(1);     /* index into MAPS: the first one of the module */
    uint32_t flags HW_TAG(2);   /* enum hw_module_mark_flags */
    uint32_t path HW_TAG(3);    /* string: of the file, where MAPS does not have it; 0: as in MAPS */
    uint32_t problem HW_TAG(4); /* string: why its names are poor, one sentence; 0: nothing to say */
};

struct hw_llvm_frame_entry {
    uint64_t function HW_TAG(1); /* GUID */
    uint32_t line_offset HW_TAG(2, PREVIOUS), column HW_TAG(3);
    uint32_t name HW_TAG(4, PREVIOUS); /* string; 0: not known */
    uint32_t inlined HW_TAG(5);
};

_Static_assert(sizeof(struct hw_file_header) == 256, "header");
#define HW_SECTION(number, name, entry, size, ...) _Static_assert(sizeof(entry) == (size), #name);
#include "profile/sections.def"
_Static_assert(offsetof(struct hw_mib, room) == 256, "what older files have stays where it is");

#endif
