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
 * HW_TAG(tag, predictor, members) behind a member: its tag in packed extents, never to be given to another one, and what
 * the writer predicts it from (pack.h); VALUE, where nothing is said. pack_fields.awk makes the tables of this. */
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

enum hw_exit_kind { HW_EXIT_UNKNOWN = 0, HW_EXIT_CODE = 1, HW_EXIT_SIGNAL = 2, HW_EXIT_EXEC = 3 };
enum hw_mode { HW_MODE_HEAP = 0, HW_MODE_ACCESS = 1, HW_MODE_ALLOCATOR = 2 };
enum hw_block_store { HW_STORE_MAP = 0, HW_STORE_TABLE = 1 };
enum hw_process_flags {
    HW_PROCESS_FORKED = 1u << 0, /* a forked child: there may be an INHERITED section */
    HW_PROCESS_DUMP = 1u << 1,   /* a snapshot, taken at end_tick, of a process that went on; its own file is another */
    HW_PROCESS_RESET = 1u << 2,  /* what was counted before reset_tick was forgotten: see there */
    HW_PROCESS_MERGED = 1u << 3, /* a sum over processes: see RUNS and `runs` */
    HW_PROCESS_LLVM = 1u << 4,   /* made from profiles of LLVM's: only what llvm_known says was measured */
};

/* llvm_kind and llvm_flags of hw_process_info. */
enum hw_llvm_source_kind { HW_LLVM_KIND_RAW = 1, HW_LLVM_KIND_INDEXED = 2 };
enum hw_llvm_source_flags {
    HW_LLVM_CLANG_RUNTIME = 1u << 0, /* raw: written by clang's runtime (some of them) */
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
    uint64_t reserved;
};

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
        uint64_t room[8]; /* the first, so that initializers clear it all */
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
    };
};

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

enum hw_memory_moment { HW_MOMENT_PEAK = 0, HW_MOMENT_END = 1, HW_MOMENT_DUMP = 2 };

/* RSS taken apart, from /proc/self/smaps. All in bytes. */
struct hw_memory_breakdown {
    uint64_t tick HW_TAG(1, PREVIOUS);
    uint32_t moment HW_TAG(2); /* enum hw_memory_moment; a later entry of a moment replaces an earlier one */
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
};

struct hw_note {
    uint32_t code HW_TAG(1);           /* enum hw_note_code */
    uint32_t text HW_TAG(2, PREVIOUS); /* string */
    uint64_t count HW_TAG(3);          /* how often; may still rise */
    uint64_t tick HW_TAG(4, PREVIOUS); /* when first */
};

/* Live blocks a forked child inherited, by context (the child's own id). */
struct hw_inherited {
    uint32_t context HW_TAG(1, PREVIOUS), reserved0 HW_TAG(2);
    int64_t blocks HW_TAG(3, SIGNED), bytes HW_TAG(4, SIGNED);
    uint64_t count_variance HW_TAG(5), bytes_variance HW_TAG(6); /* of these, in sampled runs: as in hw_mib */
};

#include "profile/format_access.h"
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

enum hw_data_name_flags {
    HW_DATA_SECTION = 1u << 0, /* not a variable, but the section of the ELF file where none is */
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
