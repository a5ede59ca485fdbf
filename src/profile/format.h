/* format.h - the profile file, as the runtime writes it and the reader reads it.
 *
 * This header is the whole contract between the process that is profiled and everything after the run. It has no
 * code and no dependency but <stdint.h>; docs/profile-format.md explains it with an annotated sample.
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

enum hw_section_type {
    HW_SECTION_DIRECTORY = 1, /* an extent of further directory entries; always the last entry of its directory */
    HW_SECTION_PROCESS = 2,   /* one struct hw_process_info */
    HW_SECTION_STRINGS = 3,   /* NUL-terminated UTF-8 strings, addressed by their offset; offset 0 is "" */
    HW_SECTION_MAPS = 4,      /* struct hw_map_entry */
    HW_SECTION_STACKS = 5,    /* struct hw_stack_node; node 0 is the root and stands for "no frame" */
    HW_SECTION_CONTEXTS = 6,  /* struct hw_context_entry; the index is the context id; context 0 is "unknown stack" */
    HW_SECTION_MIBS = 7,      /* struct hw_mib, any number for one context: the reader adds them up */
    HW_SECTION_THREADS = 8,   /* struct hw_thread_entry, one a slot; exited threads leave their slot to later ones */
    HW_SECTION_TIMELINE = 9,  /* struct hw_timeline_point, sorted by time, at most HW_TIMELINE_POINTS */
    HW_SECTION_FREE_STACKS = 10, /* struct hw_free_stack, optional */
    HW_SECTION_MEMORY = 11,      /* struct hw_memory_breakdown: what RSS is made of, at some moments */
    HW_SECTION_NOTES = 12,       /* struct hw_note: what was lost or could not be observed */
    HW_SECTION_INHERITED = 13,   /* struct hw_inherited, in a forked child only */
    HW_SECTION_ACCESS_INFO = 14, /* one struct hw_access_info; only when accesses are counted, as the next ones */
    HW_SECTION_ACCESS = 15,      /* struct hw_access; entry i belongs to entry i of MIBS: blocks that were freed */
    HW_SECTION_ACCESS_LIVE = 16, /* struct hw_access, one for each context: blocks live at access_info.harvest_tick */
    HW_SECTION_GLOBALS = 17,     /* struct hw_global_granule, as of the harvest */
    HW_SECTION_HISTOGRAM = 18,   /* struct hw_histogram of freed blocks, only with 8-byte granules */
    HW_SECTION_HISTOGRAM_LIVE = 19, /* struct hw_histogram of live blocks, as of the harvest */
    HW_SECTION_RUNS = 20,           /* struct hw_run, in merged profiles: what was merged */
    HW_SECTION_LOCATIONS = 21,      /* struct hw_location, sorted by map and address: symbols of a symbolised profile */
    HW_SECTION_FRAMES = 22,         /* struct hw_symbol_frame: the inline chains of locations */
    HW_SECTION_FILES = 23,          /* struct hw_file_node: source paths as a tree; node 0 is the root */
    HW_SECTION_FUNCTIONS = 24,      /* struct hw_function_slot: a hash table by name, a power of two of slots */
    HW_SECTION_POSTINGS = 25,       /* struct hw_posting: the contexts of a function */
    HW_SECTION_TYPES = 26,          /* struct hw_type_name, sorted by id */
    HW_SECTION_DATA_SYMBOLS = 27,   /* struct hw_data_name, sorted by map, flags and address: data that was accessed */
    HW_SECTION_LLVM_FRAMES = 28,    /* struct hw_llvm_frame_entry: in profiles made from LLVM's indexed ones */
    HW_SECTION_MODULES = 29,        /* struct hw_module_mark, sorted by map: the files that symbols came from */
    HW_SECTION_STRUCTS = 30,        /* struct hw_struct: types whose fields are counted, as the next ones */
    HW_SECTION_FIELDS = 31,         /* struct hw_field: those of one struct lie together */
    HW_SECTION_FIELD_GROUPS = 32,   /* struct hw_field_group: accesses that are executed together */
    HW_SECTION_GROUP_MEMBERS = 33,  /* struct hw_group_member: those of one group lie together */
    HW_SECTION_FIELD_WINDOWS = 34,  /* struct hw_field_window: fields that were used at nearly the same time */
    HW_SECTION_FIELDS_INFO = 35,    /* one struct hw_fields_info */
    HW_SECTION_CONTEXT_TYPES = 36,  /* struct hw_context_type: where fields, but no granules, are counted */
    HW_SECTION_SAMPLE_INFO = 40,    /* one struct hw_sample_info: only when accesses were sampled, as the next two */
    HW_SECTION_SAMPLE_CONTEXTS = 41, /* struct hw_sample_context, one for each context with samples */
    HW_SECTION_SAMPLE_COUNTS = 42,   /* struct hw_sample_count: where the samples fell, and what made the accesses */
    HW_SECTION_ROLES = 43,           /* struct hw_thread_role: when accesses are counted or sampled, as the next two */
    HW_SECTION_SIDES = 44,      /* struct hw_side of freed blocks, and of samples: who uses lines that threads share */
    HW_SECTION_SIDES_LIVE = 45, /* struct hw_side of live blocks, as of the harvest */
    HW_SECTION_WORDS = 50,      /* struct hw_words of freed blocks, only with 4-byte granules */
    HW_SECTION_WORDS_LIVE = 51, /* struct hw_words of live blocks, as of the harvest */
    HW_SECTION_ALLOCATOR_INFO = 60,   /* one struct hw_allocator_info: only in allocator mode, as the next ones */
    HW_SECTION_OPERATION_COUNTS = 61, /* struct hw_operation_counts, HW_SIZE_BUCKETS (192) for each slot of a thread */
    HW_SECTION_OPERATION_CALLS = 65,  /* struct hw_operation_call: system calls inside operations */
    HW_SECTION_OPERATION_LOCKS = 66,  /* struct hw_operation_lock: locks used there; entry 0: those without one */
    HW_SECTION_OPERATION_EVENTS = 67, /* struct hw_operation_events: what the processor counted during some of them */
    HW_SECTION_PLACES = 68, /* one struct hw_places_info: what the allocator made of its memory, as the next ones */
    HW_SECTION_PLACE_CLASSES = 69,   /* struct hw_usable_class, by class */
    HW_SECTION_PLACES_TIME = 70,     /* struct hw_places_point, sorted by time */
    HW_SECTION_PLACES_MOMENTS = 71,  /* struct hw_places_moment: parts of the resident heap, at some moments */
    HW_SECTION_PINNED = 72,          /* struct hw_pinned: whose blocks keep pages that are otherwise free */
    HW_SECTION_LINE_PAIRS = 73,      /* struct hw_line_pair: whose blocks share cache lines */
    HW_SECTION_ALLOCATOR_FACTS = 74, /* one struct hw_allocator_facts: how the allocator works; added after the run */
    HW_SECTION_SIZE_CLASSES = 75,    /* struct hw_size_class, ascending: the sizes that its blocks have */
    HW_SECTION_PREDICTIONS = 76,     /* struct hw_allocator_prediction: what others would do; added after the run */
    HW_SECTION_OPERATION_TIMES = 62, /* struct hw_operation_times: how long timed operations took */
    HW_SECTION_OPERATION_SITES = 63, /* struct hw_operation_site: the same by call stack */
    HW_SECTION_OPERATION_LIVES = 64, /* struct hw_operation_lives: how long blocks live, by size */
    HW_SECTION_SLOWEST = 77,         /* struct hw_slow_operation, at most HW_SLOWEST, in any order */
    HW_SECTION_STAGES = 78,          /* struct hw_operation_stage: what threads did while one or several were alive */
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
    uint64_t start_time_jiffies; /* field 22 of /proc/PID/stat: with pid tells whether this very process still runs */
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
    uint64_t reserved[9];
};

/* An executable mapping, also one that is gone. The first four fields are those of MemProf's raw format. */
struct hw_map_entry {
    uint64_t start, end; /* addresses of the executable segment */
    uint64_t offset;     /* of the segment's start in the file */
    uint64_t bias;       /* address - bias = address in the ELF file (p_vaddr) */
    uint8_t build_id[32];
    uint32_t build_id_size;
    uint32_t path;                       /* string; "[vdso]" for the vDSO, "" for anonymous code */
    uint64_t loaded_tick, unloaded_tick; /* unloaded_tick is 0 while it is mapped */
    uint32_t flags;                      /* enum hw_map_flags */
    uint32_t reserved0;
    uint64_t reserved[4];
};

enum hw_map_flags {
    HW_MAP_MAIN = 1u << 0,      /* the executable */
    HW_MAP_RUNTIME = 1u << 1,   /* Heapwise's own runtime: frames there are never stored */
    HW_MAP_ALLOCATOR = 1u << 2, /* the module whose malloc is used */
    HW_MAP_ANONYMOUS = 1u << 3, /* code without a file: generated at run time */
};

/* A frame in the tree of call stacks: a stack is a leaf and its parents, leaf first. */
struct hw_stack_node {
    uint64_t pc;     /* return address - 1, inside the call instruction; the exact pc where a signal interrupted */
    uint32_t map;    /* index into MAPS, or HW_NONE */
    uint32_t parent; /* node index, always smaller than the own one; 0 at the root */
};

enum hw_context_flags {
    HW_CONTEXT_TRUNCATED = 1u << 0,  /* deeper than the limit of frames */
    HW_CONTEXT_INCOMPLETE = 1u << 1, /* the walk stopped before the thread's start: see `stop` */
    HW_CONTEXT_FREE = 1u << 2,       /* only seen as a free stack */
};

struct hw_context_entry {
    uint32_t leaf;       /* stack node; 0: nothing is known of the stack */
    uint16_t depth;      /* frames */
    uint16_t flags;      /* enum hw_context_flags */
    uint64_t first_tick; /* when it was seen first */
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
 * Written by the thread that owns the slot only (or under the set's lock in bounded tables); 4 cache lines: those an
 * allocation touches first. */
struct hw_mib {
    /* line 0: allocation */
    uint32_t context;
    uint16_t last_alloc_cpu, last_free_cpu;
    uint64_t allocations;        /* blocks obtained; reallocation of a block does not count */
    uint64_t bytes;              /* requested, plus what reallocations added */
    uint64_t size_min, size_max; /* size_min is UINT64_MAX while there is none */
    int64_t live_bytes;
    int64_t live_blocks;
    uint64_t last_alloc_tick;
    /* line 1: peak, live ages, threads */
    uint64_t peak_epoch;
    int64_t peak_bytes;
    int64_t peak_blocks;
    uint64_t
        live_ticks; /* sum (mod 2^64) of allocation ticks of live blocks: age total = live_blocks * now - live_ticks */
    uint32_t alloc_thread, free_thread;   /* serial of the thread that did so last */
    uint32_t alloc_threads, free_threads; /* how many distinct threads did */
    uint64_t samples;
    uint64_t temporary; /* freed with no allocation between, in the same thread */
    /* line 2: free */
    uint64_t frees;
    uint64_t lifetime_total, lifetime_min,
        lifetime_max; /* ticks, of freed blocks; min is UINT64_MAX while there is none */
    uint64_t last_free_tick;
    uint64_t migrated_cpu;      /* freed on another CPU than allocated */
    uint64_t lifetime_overlaps; /* allocated before the previous block was freed */
    uint64_t same_alloc_cpu;    /* allocated on the CPU the previous block was allocated on */
    /* line 3: free and reallocation */
    uint64_t same_free_cpu; /* freed on the CPU the previous block was freed on */
    uint16_t previous_alloc_cpu;
    uint16_t flags;               /* enum hw_mib_flags */
    uint32_t lifetime_total_high; /* bits 64 to 95 of lifetime_total: a million blocks fill 64 bits in two hours */
    uint64_t reallocations;
    uint64_t realloc_moved; /* of them to a new address */
    uint64_t realloc_grown_bytes, realloc_shrunk_bytes;
    uint64_t inherited_frees, inherited_freed_bytes; /* blocks of the parent, freed here: in no other count */
};

enum hw_mib_flags {
    HW_MIB_EVICTED = 1u << 0,  /* pushed out of a bounded table */
    HW_MIB_POOL = 1u << 1,     /* blocks of the program's own allocator (heapwise_pool_alloc): in memory that is counted
                                * already, so that they are in no total of a thread or the process */
    HW_MIB_LIVE_AGE = 1u << 2, /* merged: live_ticks is the sum of the ages itself; UINT64_MAX: too much to be known */
};

/* A slot for one thread at a time: sums over all threads that have had it. Independent of the MIBs: both must agree. */
struct hw_thread_entry {
    uint32_t serial; /* of the present thread, from 1; 0: the slot is free */
    uint32_t tid;
    uint64_t allocations, frees, reallocations, temporary;
    uint64_t bytes; /* as hw_mib.bytes */
    int64_t live_bytes, live_blocks;
    uint64_t foreign_frees; /* of blocks that the runtime has not seen allocated; passed through */
    uint64_t foreign_reallocs;
    uint64_t failed;          /* allocations that returned NULL */
    uint64_t nested;          /* calls from inside an allocator call: passed through uncounted */
    uint64_t walks, verified; /* stacks walked anew, stacks that were recognised */
    uint64_t incomplete_walks;
    uint64_t lost; /* events that found no room (see notes) */
};

#define HW_TIMELINE_POINTS 4096
struct hw_timeline_point {
    uint64_t tick;
    int64_t live_bytes;
    uint64_t rss_bytes;          /* 0: not read */
    uint64_t allocations, frees; /* up to this moment */
};

/* How often a free stack freed blocks of an allocation context (on request: free-stacks=1). */
struct hw_free_stack {
    uint32_t alloc_context, free_context;
    uint64_t count, bytes;
};

enum hw_memory_moment { HW_MOMENT_PEAK = 0, HW_MOMENT_END = 1, HW_MOMENT_DUMP = 2 };

/* RSS taken apart, from /proc/self/smaps. All in bytes. */
struct hw_memory_breakdown {
    uint64_t tick;
    uint32_t moment; /* enum hw_memory_moment; a later entry of a moment replaces an earlier one */
    uint32_t reserved0;
    uint64_t rss;
    uint64_t heap;    /* resident in [heap] and anonymous mappings that hold tracked blocks or came from the program */
    uint64_t file;    /* code, read-only and private data of executables and libraries, other mapped files */
    uint64_t stack;   /* stacks of threads, as far as they can be told apart */
    uint64_t runtime; /* Heapwise's own memory */
    uint64_t other;   /* shared memory, vDSO, the rest */
    int64_t live_bytes; /* requested and not freed at this moment */
    uint64_t swap;
};

enum hw_note_code {
    HW_NOTE_TABLE_STORE = 1, /* address space is limited: blocks are kept in a table */
    HW_NOTE_FILE_FULL = 2,   /* the file could not grow (text says why): new contexts were counted as unknown */
    HW_NOTE_NO_MEMORY = 3,   /* the runtime got no memory: events were passed through uncounted */
    HW_NOTE_EXEC = 4,        /* the process started another program (text) by exec: that one has a file of its own */
    HW_NOTE_EXEC_UNPROFILED = 5,  /* …but it cannot be profiled: text says which and why */
    HW_NOTE_STATIC_ALLOCATOR = 6, /* an allocator linked into the program could not be hooked: text says why */
    HW_NOTE_NO_UNWIND = 7, /* a module without unwind tables: stacks through it rest on frame pointers: text = path */
    HW_NOTE_BLOCK_REPLACED = 8,  /* blocks that vanished without a free that could be seen */
    HW_NOTE_THREADS_AT_EXIT = 9, /* threads still ran when the process ended */
    HW_NOTE_CLOCK = 10,          /* the time stamp counter is not usable: clock_gettime served */
    HW_NOTE_JIT = 11,            /* stacks end at code generated at run time */
    HW_NOTE_OTHER = 12,
    HW_NOTE_PLANES_SHARED = 13,  /* more threads than planes: some threads counted into one plane (count: threads) */
    HW_NOTE_NOT_OWNED = 14,      /* blocks that do not own their cells (count): allocated before counting began, … */
    HW_NOTE_UNCOUNTED_CODE = 15, /* a module (text) whose code does not count */
    HW_NOTE_FOLDED = 16,      /* two areas of memory share cells: they lie a multiple of the planes' distance apart */
    HW_NOTE_RESET = 17,       /* the program called heapwise_reset: what was before is not in here */
    HW_NOTE_NOT_SWEPT = 18,   /* seconds of computing passed between two looks for cells about to overflow */
    HW_NOTE_NO_DISPATCH = 19, /* system calls inside the allocator were not seen, or not any more: text says why */
    HW_NOTE_NO_EVENTS = 20,   /* the processor's events during operations could not be counted: text says why */
};

struct hw_note {
    uint32_t code;  /* enum hw_note_code */
    uint32_t text;  /* string */
    uint64_t count; /* how often; may still rise */
    uint64_t tick;  /* when first */
};

/* Live blocks a forked child inherited, by context (the child's own id). */
struct hw_inherited {
    uint32_t context, reserved0;
    int64_t blocks, bytes;
};

/* ---- counted accesses ---- */

enum hw_access_info_flags {
    HW_ACCESS_SPLIT = 1u << 0,     /* reads are told from writes (at least some code does) */
    HW_ACCESS_UNSPLIT = 1u << 1,   /* objects of clang -fmemory-profile take part: theirs are in `unsplit` */
    HW_ACCESS_HARVESTED = 1u << 2, /* the cells of live blocks and globals were read: at the end, or for a dump */
    HW_ACCESS_CALLBACKS = 1u << 3, /* code built by gcc takes part */
};

/* How accesses were counted. A file without HW_ACCESS_HARVESTED (kill -9) lacks what lay in cells: accesses to blocks
 * that were live, and to globals. */
struct hw_access_info {
    uint32_t flags;           /* enum hw_access_info_flags */
    uint32_t granule;         /* bytes: 64, 8 or 4 */
    uint32_t planes;          /* that were in use */
    uint32_t planes_most;     /* how many there can be */
    uint64_t harvest_tick;    /* when live blocks and globals were read */
    uint64_t threads_sharing; /* threads that got a plane which another one had at the same time: counts may be lost */
    uint64_t modules;         /* instrumented modules */
    /* With HW_PROCESS_MERGED: processes whose cells were not read at the end, and contexts whose live part was left out
     * because blocks were freed after the harvest, counted in each process. */
    uint64_t unharvested_runs, unharvested_contexts;
    /* With 4-byte granules, where it is not counted how often a word is used, but in how many periods of a sampler:
     * reads and writes of all sections are then numbers of periods, added up over words. */
    uint64_t word_period_ns;  /* as asked for */
    uint64_t word_rounds;     /* looks at all of the shadow that were finished */
    uint64_t word_span_ns;    /* from the sampler's start to the end of the latest of them: periods were as long as that
                                 divided by the rounds */
    uint64_t word_longest_ns; /* the longest of them, from begin to begin */
    uint64_t word_cost_ns;    /* processor time of the sampler */
    uint64_t reserved[3];
};

enum hw_access_flags {
    HW_ACCESS_TYPES_DIFFER = 1u << 0, /* blocks of this context had several types: `type` is the first */
};

/* What was counted for the blocks of one context. The reader merges entries of one context like MIBs. A block that was
 * moved by realloc takes its counts with it. Per-block figures (…_min, …_max, utilisation, densities) are of blocks at
 * the end of their life, or at the harvest.
 *
 * Utilisation of a block: granules touched / granules it reaches into, in hundredths of a percent (0..10000).
 * Access density: accesses per byte requested (of at least 1), in thousandths. Lifetime access density: accesses per
 * byte and second of life, in thousandths. (MemProf's figures are 100 * accesses / size, and that * 1000 /
 * milliseconds.)
 *
 * Shared granules: touched by two or more threads during the life of the block. */
struct hw_access {
    uint32_t context;
    uint32_t flags;  /* enum hw_access_flags */
    uint64_t type;   /* id of the blocks' type (base/abi.h), 0 when it is not known */
    uint64_t blocks; /* harvested */
    uint64_t reads, writes;
    uint64_t unsplit;                    /* accesses of which it is not known which of the two */
    uint64_t accesses_min, accesses_max; /* of one block: reads + writes + unsplit. min: UINT64_MAX while blocks == 0 */
    uint64_t granules, granules_touched; /* sums over blocks */
    uint64_t utilization_total;
    uint32_t utilization_min, utilization_max; /* min: UINT32_MAX while blocks == 0 */
    uint64_t density_total, density_min, density_max;
    uint64_t lifetime_density_total, lifetime_density_min, lifetime_density_max;
    uint64_t never_accessed;     /* blocks */
    uint64_t written_never_read; /* blocks with writes, without a read; none of them with `unsplit` accesses */
    uint64_t shared_granules;    /* touched by two or more threads… */
    uint64_t shared_written;     /* …at least one of which wrote */
    uint64_t shared_writers;     /* …at least two of which wrote */
    uint64_t lines_false_shared; /* 8- and 4-byte granules: 64-byte lines shared and written, in which no word is shared
                                    and written. Threads (and their uses of a word) count here that use some word of the
                                    line (that word) at least a sixteenth as often as another thread does */
    uint64_t lines_true_shared;  /* …in which some word is */
    uint64_t saturated_cells;    /* 8- and 4-byte granules: cells at their limit: all counts are lower bounds */
    uint64_t not_owned;          /* blocks that shared cells with others */
    uint64_t reserved[5];
};

/* One granule with a symbol's bytes in it that was touched: data of an executable or a library. */
struct hw_global_granule {
    uint32_t map;    /* index into MAPS, of the module's code */
    uint32_t flags;  /* bit 0: shared by threads; bit 1: and written; bit 2: by two or more; bit 3: a saturated cell */
    uint64_t offset; /* address - bias of the granule's first byte */
    uint64_t reads, writes, unsplit;
};

/* Accesses by position in the block: a run of words of all blocks of one context. Entries for the same words add up. */
#define HW_HISTOGRAM_WORDS 62
struct hw_histogram {
    uint32_t context;
    uint32_t first_word; /* multiple of HW_HISTOGRAM_WORDS; word i is bytes 8 i to 8 i + 7 of the block */
    uint64_t saturated;  /* cells among them that were at their limit */
    uint64_t words[HW_HISTOGRAM_WORDS];
};

/* Used words by position in the block, for all blocks of one context; with FREE_STACKS apart by where they were freed.
 * Entries for the same words add up. */
#define HW_WORDS_RUN 32
struct hw_words {
    uint32_t context;
    uint32_t free_context; /* HW_NONE: not recorded, or live */
    uint32_t first_word;   /* multiple of HW_WORDS_RUN; word i is bytes 4 i to 4 i + 3 of the block */
    uint32_t reserved0;
    uint64_t saturated; /* cells among them that were at their limit: periods are lower bounds */
    uint64_t reserved1;
    uint64_t read_periods[HW_WORDS_RUN], written_periods[HW_WORDS_RUN]; /* added up over blocks and threads */
    uint64_t read_blocks[HW_WORDS_RUN], written_blocks[HW_WORDS_RUN]; /* blocks in which it was read, written at all */
    /* Blocks that are not in the sums above: REPEATS of them, whose cells of these words were alike. A cell stands for
     * (cell & 127) + (cell >> 7) periods, and for no use when it is 0. */
    uint64_t repeats;
    uint32_t pattern_reads, pattern_writes; /* periods of the cells, added up: for the runtime */
    uint64_t pattern_touched;               /* words that were used: likewise */
    uint64_t reserved2;
    uint8_t read_cells[HW_WORDS_RUN], written_cells[HW_WORDS_RUN];
};

/* ---- counted fields of structs (heapwise cc --fields) ---- */

enum hw_struct_flags {
    HW_STRUCT_UNION = 1u << 0,       /* a union */
    HW_STRUCT_PACKED = 1u << 1,      /* some field lies where its type may not */
    HW_STRUCT_FLEXIBLE = 1u << 2,    /* the last field is an array without a length */
    HW_STRUCT_BIT_FIELDS = 1u << 3,  /* has bit-fields */
    HW_STRUCT_POLYMORPHIC = 1u << 4, /* has a pointer to virtual functions */
    HW_STRUCT_BASES = 1u << 5,       /* has base classes */
    HW_STRUCT_WHOLE = 1u << 6, /* code that was counted takes it for bytes: to read, write, compare or hash it, to copy
                                  it from or to a buffer; not where it is only assigned, passed or cleared */
    HW_STRUCT_ESCAPES = 1u << 7, /* the address of a field goes where it can no longer be followed: see hw_field */
    HW_STRUCT_ABI = 1u << 8,     /* marked HEAPWISE_ABI: its layout is agreed upon with others */
    HW_STRUCT_CPLUSPLUS = 1u << 9,
    HW_STRUCT_NO_NAMES = 1u << 10, /* compiled without debugging information: only offsets are known */
};

/* A type by its identity: FNV-1a (64 bits; base/abi.h says of which bytes) of name, size and all fields. Several
 * entries of one identity, from several modules or processes, are one type; one name with two identities is two. */
struct hw_struct {
    uint64_t identity;
    uint64_t size;                     /* bytes */
    uint32_t name, file;               /* strings: with namespaces and template arguments; where it is declared */
    uint32_t line;                     /* 0: not known, as the file */
    uint32_t flags;                    /* enum hw_struct_flags */
    uint32_t alignment;                /* bytes */
    uint32_t first_field, field_count; /* in FIELDS, sorted by offset; 0 fields: none is known */
    uint32_t reserved0;
    uint64_t reserved[2];
};

enum hw_field_flags {
    HW_FIELD_UNION = 1u << 0,    /* one of several at the same place */
    HW_FIELD_BITS = 1u << 1,     /* a bit-field */
    HW_FIELD_FLEXIBLE = 1u << 2, /* an array without a length; size 0 */
    HW_FIELD_ARRAY = 1u << 3,
    HW_FIELD_BASE = 1u << 4,    /* of a base class */
    HW_FIELD_VPTR = 1u << 5,    /* the pointer to the table of virtual functions */
    HW_FIELD_ESCAPES = 1u << 6, /* its address is passed on: who uses it elsewhere is counted there, if at all */
    HW_FIELD_POINTER = 1u << 7,
};

/* A leaf of the struct, nested ones taken apart: "pos.x", "Base::id", "a" of an array as one. `member` is what it
 * belongs to in the definition of the struct itself: fields with one member_offset move together. */
struct hw_field {
    uint32_t name, type_name; /* strings */
    uint32_t declaration;     /* string: of the member, as C has it, without the semicolon: "struct vec pos" */
    uint32_t flags;           /* enum hw_field_flags */
    uint64_t offset, size;    /* bytes; of a bit-field: those that it touches */
    uint32_t bit_offset;      /* of a bit-field: its first bit, counted from the first bit of byte `offset` */
    uint32_t bit_size;        /* of a bit-field; else 0 */
    uint32_t alignment;       /* of its type */
    uint32_t line;            /* 0: not known */
    uint64_t member_offset, member_size;
    uint32_t member_alignment;
    uint32_t reserved0;
    uint64_t reads, writes; /* that are in no group */
    uint64_t reserved[1];
};

/* Accesses to one object that are executed together: each execution is as many accesses as the members say. In a group
 * without a struct they are accesses that could not be attributed to one. Groups that agree in everything but the
 * executions add up. */
struct hw_field_group {
    uint32_t structure; /* index into STRUCTS, or HW_NONE */
    uint32_t function;  /* string: linkage name of the function with the accesses, before it was inlined */
    uint32_t line;      /* of the first one, in `file` */
    uint32_t file;      /* string */
    uint32_t first_member, member_count;
    uint64_t executions;
    uint32_t object; /* groups with the same number access the same object, by the same pointer: those that are executed
                        while it stays what it is are one visit. A hash of the function and of the pointer in it; 0: not
                        known */
    uint32_t reserved0;
};

struct hw_group_member {
    uint32_t field;         /* index into FIELDS; HW_NONE: each field of the struct, which is copied or set whole */
    uint32_t reads, writes; /* at an execution */
    uint32_t reserved0;
};

/* The sampler looks at all counters twice, a short window apart. WEIGHT is the sum, over windows and threads, of the
 * smaller of the numbers of accesses to the two fields in that window. */
struct hw_field_window {
    uint32_t structure;
    uint32_t field_a, field_b; /* indexes into FIELDS, a < b */
    uint32_t reserved0;
    uint64_t weight;
};

struct hw_fields_info {
    uint32_t flags; /* none yet */
    uint32_t modules;
    uint64_t harvest_tick;         /* when the counters were read */
    uint64_t before_registration;  /* executions of groups whose module had not yet been registered */
    uint64_t windows;              /* that were taken */
    uint64_t period_ns, window_ns; /* from one to the next, and how long, on average; 0: none */
    uint64_t groups, groups_lost;  /* with a counter; those that there was no room for */
    uint64_t reserved[8];
};

enum hw_context_type_flags {
    HW_CONTEXT_TYPES_DIFFER = 1u << 0, /* there are others */
};

/* The type of the blocks of a context; a context with several has several entries, or says so. */
struct hw_context_type {
    uint32_t context;
    uint32_t flags; /* enum hw_context_type_flags */
    uint64_t type;  /* as hw_access.type */
};

/* ---- sampled accesses (sample-accesses=): estimates, never mixed with counted ones ---- */

enum hw_sample_source {
    HW_SAMPLE_TRAP = 1, /* bursts of single steps at random moments: each says what a run of instructions touched */
    HW_SAMPLE_PMU = 2,  /* every period-th access, picked by the processor */
    HW_SAMPLE_BOTH = 3, /* merged: the one in some processes, the other in others */
};

/* Why there are no (more) samples. */
enum hw_sample_end {
    HW_SAMPLE_GOES_ON = 0,
    HW_SAMPLE_DEBUGGER = 1,      /* a debugger or tracer needs the trap for itself */
    HW_SAMPLE_TRAP_TAKEN = 2,    /* the program handles SIGTRAP itself */
    HW_SAMPLE_SIGNAL_TAKEN = 3,  /* the program handles (or waits for) the signal that bursts begin with */
    HW_SAMPLE_SECCOMP = 4,       /* the program gave up system calls */
    HW_SAMPLE_ADDRESS_SPACE = 5, /* no room to find blocks by an address inside them */
    HW_SAMPLE_NO_SIGNAL = 6,     /* no signal is free */
    HW_SAMPLE_NO_TIMER = 7,      /* the kernel grants no timer: error */
    HW_SAMPLE_COUNTED = 8,       /* the program counts its accesses exactly (heapwise cc) */
};

/* How accesses were sampled. `bursts` and what follows may still rise. */
struct hw_sample_info {
    uint32_t source; /* enum hw_sample_source */
    uint32_t ended;  /* enum hw_sample_end */
    int32_t error;   /* positive errno, with HW_SAMPLE_NO_TIMER; or why there is no PMU */
    uint32_t signal;
    uint64_t frequency;     /* samples or bursts asked for, by second of a thread's CPU time */
    uint64_t burst_length;  /* instructions of a full burst; 0: no bursts */
    uint64_t period;        /* accesses that a sample stands for; 0: not known, shares only */
    uint64_t threads;       /* threads that were sampled */
    uint64_t bursts;        /* begun */
    uint64_t instructions;  /* of the program that were looked at */
    uint64_t steps;         /* with those of the runtime in between, which are in no count */
    uint64_t reads, writes; /* all samples; what both reads and writes is in both */
    /* The same by where they fell: reads and writes. The rest is elsewhere: mappings of the program's own, metadata of
     * the allocator. */
    uint64_t heap_reads, heap_writes;
    uint64_t global_reads, global_writes;
    uint64_t stack_reads, stack_writes;   /* stacks of threads */
    uint64_t thread_reads, thread_writes; /* thread-local variables */
    /* Moments that were drawn and given up: in the runtime; in a system call; SIGTRAP was blocked. */
    uint64_t in_runtime, in_kernel, blocked;
    uint64_t cut;       /* bursts that ended early: at a system call that could not be stepped over, … */
    uint64_t unknown;   /* instructions that could not be decoded: also ends of bursts */
    uint64_t lost;      /* samples that found no room */
    uint64_t throttled; /* PMU: times the kernel slowed the samples down */
    /* With HW_PROCESS_MERGED: processes in which accesses were to be sampled, and those of them in which that ended
     * early, or never began; `ended` and `error` are of one of these. */
    uint64_t runs, runs_ended;
    uint64_t reserved[4];
};

/* Lines: 64 bytes of a block, as long as it lived. A line is shared when samples show two or more threads at it;
 * falsely when it was written and no 8-byte word in it was seen used by two. Sampling misses threads: these are lower
 * bounds. */
struct hw_sample_context {
    uint32_t context;
    uint32_t flags; /* 0 */
    uint64_t reads, writes;
    uint64_t lines;              /* with samples */
    uint64_t lines_shared;       /* by two or more threads, of which none was seen writing */
    uint64_t lines_true_shared;  /* written, and some word used by two */
    uint64_t lines_false_shared; /* written, and none */
    uint64_t lines_writers;      /* written by two or more */
    uint64_t reserved[2];
};

enum hw_sample_kind {
    HW_SAMPLE_WORD = 1,   /* by position in the blocks of `context`: `bytes` from `offset` on */
    HW_SAMPLE_PLACE = 2,  /* by the instruction, at `offset` (address - bias) in `map`, on blocks of `context` */
    HW_SAMPLE_GLOBAL = 3, /* the 8 bytes at `offset` (address - bias) in `map`: data of an executable or library */
};

/* Entries for the same thing add up. */
struct hw_sample_count {
    uint32_t kind;    /* enum hw_sample_kind */
    uint32_t context; /* HW_NONE with HW_SAMPLE_GLOBAL */
    uint32_t map;     /* index into MAPS; HW_NONE with HW_SAMPLE_WORD, and where the code is in no module */
    uint32_t bytes;   /* of what it stands for: 8, or 4096 far from the beginning of large blocks */
    uint64_t offset;
    uint64_t reads, writes;
};

/* ---- the allocator itself (mode=allocator) ----
 *
 * An operation is a call of the allocator by the program: not one that the allocator makes itself. */

enum hw_operation_kind {
    HW_OPERATION_NEW = 0,     /* malloc and operator new: an address that was not handed out before; or none (failed) */
    HW_OPERATION_REUSED = 1,  /* likewise, one that was */
    HW_OPERATION_FREE = 2,    /* free and operator delete, not of NULL */
    HW_OPERATION_CALLOC = 3,  /* whatever its address */
    HW_OPERATION_REALLOC = 4, /* realloc and reallocarray, also of NULL and to size 0; the new size counts */
    HW_OPERATION_ALIGNED = 5, /* memalign and the like, and the forms of operator new with an alignment */
    HW_OPERATION_KINDS = 6,
};
#define HW_OPERATION_KINDS_ROOM 8

enum hw_phase {
    HW_PHASE_SERIAL = 0,   /* one thread was alive */
    HW_PHASE_PARALLEL = 1, /* several */
    HW_PHASES = 2,
};

enum hw_allocator_flags {
    HW_ALLOCATOR_PLACES = 1u << 0, /* what lies where was followed: NEW is told from REUSED, sizes of frees are known */
};

/* Times are ticks, of the real call alone: what reading the clock costs (clock_ticks) has been subtracted, and
 * Heapwise's own time inside it.
 *
 * Each operation is timed with a chance of 1 / 2^shift, drawn anew for each; a timed one has the weight 2^shift, so
 * that sums of weights and of weighted ticks are estimates without bias. With shift 0 all are timed. Shifts are chosen
 * thread by thread, so that timing takes little of its time; large operations have a smaller one. The first allocation
 * of each thread is never timed. */
struct hw_allocator_info {
    uint32_t flags;          /* enum hw_allocator_flags */
    uint32_t phase;          /* enum hw_phase, now */
    uint64_t clock_ticks;    /* that reading the clock twice takes */
    uint64_t timed;          /* operations */
    uint64_t timed_weight;   /* sum of their weights */
    uint32_t shift_most;     /* the greatest shift that any thread has had; 0: every operation was timed */
    uint32_t threads_alive;  /* now, also of those that have done no operation */
    uint64_t own_ticks;      /* what timing took */
    uint64_t first_left_out; /* first allocations of threads */
    uint64_t interrupted;    /* timed ones inside which another thread had the processor, although they waited for
                              * nothing: short ones are in no time, long ones with their processor time */
    uint64_t interrupted_ticks;
    uint64_t tracked, tracked_live; /* blocks whose life is followed, so far and now; they are those of the MIBs */
    uint64_t stages;                /* so far, with the present one */
    uint64_t reserved[20];
};

/* Exact numbers of operations of one slot for one size bucket (base/size_bucket.h): entry i is bucket i modulo
 * HW_SIZE_BUCKETS. By phase and kind. Slots are those of threads that did an operation, one after the other, in any
 * order; the reader adds them up. Frees are counted by the size that was requested for the block; the last bucket is
 * for blocks whose size is not known, since they are older than the profile. */
struct hw_operation_counts {
    uint64_t count[HW_PHASES][HW_OPERATION_KINDS_ROOM];
};

enum hw_allocator_style { HW_STYLE_UNKNOWN = 0, HW_STYLE_SEQUENTIAL = 1, HW_STYLE_BIBOP = 2 };

enum hw_reuse_order {
    HW_REUSE_UNKNOWN = 0,
    HW_REUSE_LIFO = 1,
    HW_REUSE_FIFO = 2,
    HW_REUSE_MIXED = 3,
    HW_REUSE_DEFERRED = 4, /* freed blocks do not come back at once */
};

enum hw_thread_cache {
    HW_CACHE_UNKNOWN = 0,
    HW_CACHE_NONE = 1,    /* a freed block goes to whoever asks next */
    HW_CACHE_FREEING = 2, /* to the thread that freed it */
    HW_CACHE_OWNING = 3,  /* back to the thread that allocated it */
};

enum hw_allocator_facts_flags {
    HW_FACTS_PROBED = 1u << 0,         /* the allocator was tried out; else only what it is called is known */
    HW_FACTS_TOLD = 1u << 1,           /* they come from a file (record --facts) */
    HW_FACTS_LARGE_BY_BRK = 1u << 2,   /* large blocks are taken from the end of the heap, not by mmap */
    HW_FACTS_LARGE_RETURNED = 1u << 3, /* their memory goes back to the system when they are freed */
};

/* How the allocator of the run works: docs/allocators.md. Sizes in bytes, as requested; 0: not known. */
struct hw_allocator_facts {
    char name[64], version[64]; /* "" when not known */
    char build_id[136];         /* of the file it is in, hexadecimal */
    char why[256];              /* a reason for something that is not known */
    uint32_t flags;             /* enum hw_allocator_facts_flags */
    uint32_t style;             /* enum hw_allocator_style */
    uint32_t reuse;             /* enum hw_reuse_order: of blocks of 64 bytes, in one thread */
    uint32_t thread_cache;      /* enum hw_thread_cache */
    uint64_t alignment;         /* divides the address of every block of more than 8 bytes */
    uint64_t alignment_small;   /* of every block */
    uint64_t medium;            /* the smallest size that takes another path than small ones */
    uint64_t large;             /* the smallest size of which each block has memory mapped for itself */
    uint64_t large_rises_to;    /* freeing such a block raises the threshold to its size, up to this; 0: it does not */
    uint64_t least, step;       /* sequential: usable sizes are least + k * step */
    uint64_t header;            /* sequential: bytes between blocks */
    uint64_t classes_step;      /* beyond the last of SIZE_CLASSES: multiples of this; 0: not known */
    uint64_t reserved[8];
};

struct hw_size_class {
    uint64_t size; /* usable bytes of a block */
};

enum hw_prediction_flags {
    HW_PREDICTION_FEWER_PROCESSORS = 1u << 0, /* than threads of the program worked at once: contention is not seen */
};

/* What the run would have been with another allocator; or that nothing was predicted (`replays` 0), and why. */
struct hw_allocator_prediction {
    char allocator[64], version[64];
    char problem[256];
    uint32_t replays;
    uint32_t flags;     /* enum hw_prediction_flags */
    uint64_t speedup;   /* time now by the time then, in millionths: above 1,000,000 it is faster */
    uint64_t low, high; /* its range */
    uint64_t reserved[8];
};

/* System calls, as far as they are told apart. */
enum hw_system_call {
    HW_CALL_OTHER = 0,
    HW_CALL_UNSEEN = 1, /* calls that could not be carried out for the program (clone, exec, …): after each of them, no
                         * more were seen in the same operation */
    HW_CALL_MMAP = 2,
    HW_CALL_MUNMAP = 3,
    HW_CALL_MREMAP = 4,
    HW_CALL_BRK = 5,
    HW_CALL_MADVISE = 6,
    HW_CALL_MPROTECT = 7,
    HW_CALL_FUTEX_WAIT = 8, /* of locks that libc or the allocator made by themselves, as the next two */
    HW_CALL_FUTEX_WAKE = 9,
    HW_CALL_FUTEX_OTHER = 10,
    HW_CALL_SCHED_YIELD = 11,
    HW_CALL_SLEEP = 12, /* nanosleep, clock_nanosleep */
    HW_CALL_GETRANDOM = 13,
    HW_CALL_OPEN = 14,
    HW_CALL_READ = 15,
    HW_SYSTEM_CALLS = 16,
};

/* Exact. Entries for the same thing add up. */
struct hw_operation_call {
    uint32_t call;        /* enum hw_system_call */
    uint16_t phase, kind; /* enum hw_phase, enum hw_operation_kind */
    uint64_t count, errors;
    uint64_t ticks; /* in the kernel; without what it costs to observe */
    uint64_t bytes; /* the lengths that were asked for; of brk by how much the end moved */
    uint64_t reserved[3];
};

enum hw_lock_kind {
    HW_LOCK_OTHERS = 0, /* all that found no entry of their own */
    HW_LOCK_MUTEX = 1,
    HW_LOCK_SPIN = 2,
    HW_LOCK_RWLOCK = 3, /* taken for reading or writing */
    HW_LOCK_FUTEX = 4,  /* one that libc or the allocator made by itself: only waits and wakes are known */
};

struct hw_lock_use {
    uint64_t count;          /* acquisitions; of FUTEX wakes */
    uint64_t contended;      /* of them, those that had to wait; of FUTEX waits */
    uint64_t refused;        /* attempts (trylock) that found it taken */
    uint64_t wait_ticks;     /* for contended ones, waiting and trying */
    uint64_t held_ticks;     /* between acquisition and release in the same operation */
    uint64_t critical_ticks; /* of sections in which one lock or several were held, and this one was the first */
};

/* Exact: a lock that was used inside operations. Locks at one address that are of one kind are one. */
struct hw_operation_lock {
    uint64_t address;
    uint64_t offset;       /* address - bias in its module; the address where it is in none */
    uint32_t map;          /* index into MAPS of the module whose data it is; HW_NONE: of none */
    uint32_t kind;         /* enum hw_lock_kind */
    uint64_t waiting_most; /* threads at once */
    uint64_t wait_ticks_most, critical_ticks_most; /* in one operation */
    uint64_t reserved[2];
    struct hw_lock_use use[HW_PHASES][HW_OPERATION_KINDS];
};

enum hw_operation_event {
    HW_EVENT_INSTRUCTIONS = 0, /* of the program, as all of them */
    HW_EVENT_CACHE_MISSES = 1, /* of the last level */
    HW_EVENT_DTLB_MISSES = 2,  /* of loads */
    HW_EVENT_PAGE_FAULTS = 3,
    HW_EVENT_CPU_NS = 4,
    HW_EVENT_SWITCHES = 5, /* to other threads */
    HW_OPERATION_EVENTS = 6,
};

/* Sums over a sample of the operations of one size bucket, phase and kind. */
struct hw_operation_events {
    uint32_t bucket;      /* base/size_bucket.h */
    uint16_t phase, kind; /* enum hw_phase, enum hw_operation_kind */
    uint64_t present;     /* bits 1 << enum hw_operation_event: what was counted */
    uint64_t samples;
    uint64_t sum[HW_OPERATION_EVENTS];
    uint64_t reserved[3];
};

/* The times of one phase, kind and bucket; entries for the same thing add up. */
struct hw_operation_times {
    uint32_t phase, kind, bucket;
    uint32_t reserved0;
    uint64_t samples;
    uint64_t weight; /* sum of weights: how many operations they stand for */
    uint64_t ticks;  /* sum of ticks, weighted */
    uint64_t most;   /* the longest one that was timed */
    uint64_t reserved[10];
    uint64_t histogram[240]; /* weights, by hw_time_bin (base/log_histogram.h) */
};

/* The times of one kind by call stack; entries for the same thing add up. */
struct hw_operation_site {
    uint32_t context; /* of the call, also of free */
    uint32_t kind;
    uint64_t samples, weight, ticks, most;
    uint64_t bytes; /* sum of sizes, weighted: 0 for blocks of which it is not known */
};

#define HW_LIFE_BINS 48

/* Lives of followed blocks of one bucket (of the size at their allocation), weighted. Lives are counted in operations
 * of the thread that allocated the block, done between its allocation and its end. */
struct hw_operation_lives {
    uint32_t bucket;
    uint32_t reserved0;
    uint64_t samples, weight; /* allocations */
    uint64_t freed;           /* of `weight` */
    uint64_t freed_elsewhere; /* of those, by another thread */
    uint64_t reserved[3];
    uint64_t histogram[HW_LIFE_BINS]; /* of freed ones: bin 0 for 0, bin n for 2^(n-1) up to 2^n - 1 */
};

#define HW_SLOWEST 64

struct hw_slow_operation {
    uint64_t ticks; /* that it took; 0: the entry is not in use */
    uint64_t tick;  /* when it began */
    uint64_t size;  /* UINT64_MAX: not known */
    uint32_t context;
    uint32_t kind, phase;
    uint32_t thread; /* serial */
    uint32_t shift;  /* of its weight: others as slow may not have been timed */
    uint32_t reserved0;
};

enum hw_stage_flags {
    HW_STAGE_REST = 1u << 0, /* stands for several: there were too many. `begin` and `end` are as far apart as those
                              * took together, of parallel ones each time the slowest thread */
};

struct hw_stage_kind {
    uint64_t count; /* exact */
    uint64_t ticks; /* estimated, as in struct hw_operation_times */
};

/* What one thread did in one stage: a stage ends when the second thread begins, or the last but one ends. The thread
 * took part from `begin` to `end`, ticks from the start. Stages that still go on have no entry. */
struct hw_operation_stage {
    uint32_t stage; /* number, from 0 */
    uint32_t phase;
    uint32_t thread; /* serial */
    uint32_t flags;  /* enum hw_stage_flags */
    uint64_t begin, end;
    struct hw_stage_kind kind[HW_OPERATION_KINDS];
};

/* ---- lines that several threads use, and at least one writes ---- */

enum hw_role_number {
    HW_ROLE_UNKNOWN = 0, /* threads that were not seen starting, or of which it is not known which one it was */
    HW_ROLE_MAIN = 1,    /* the main thread */
    HW_ROLE_FIRST = 2,   /* from here on: as their entries say */
};

/* Threads that were started with the same routine by the same call stack. */
struct hw_thread_role {
    uint32_t map;     /* index into MAPS, of the routine; HW_NONE: not known */
    uint32_t context; /* index into CONTEXTS, of the call that started them; HW_NONE: not known */
    uint64_t routine; /* address - bias */
    uint64_t threads; /* started so far */
    uint64_t reserved;
};

enum hw_side_kind {
    HW_SIDE_COUNTED = 1, /* exact; what code it was is not known. With 4-byte granules reads and writes are periods */
    HW_SIDE_SAMPLED = 2, /* samples, taken when the line was known to be shared, by instruction */
};
enum hw_side_sharing {
    HW_SHARING_FALSE = 1,  /* no word of the line is used by two threads and written */
    HW_SHARING_TRUE = 2,   /* some word is: only in samples */
    HW_SHARING_UNTOLD = 3, /* 64-byte granules, written by two threads: words are not told apart */
};

/* What threads of one role did in the shared lines of the blocks of a context, by position in the block; what was
 * done less than a sixteenth as often as the most in the line is left out where it was counted. Entries for the
 * same thing add up. */
struct hw_side {
    uint32_t context;
    uint32_t role;    /* index into ROLES */
    uint16_t kind;    /* enum hw_side_kind */
    uint16_t sharing; /* enum hw_side_sharing */
    uint32_t map;     /* of the code: index into MAPS; HW_NONE: not known */
    uint64_t code;    /* the instruction, address - bias; 0: not known */
    uint64_t offset;  /* in the block */
    uint32_t bytes;   /* what it stands for from there on: a granule, 8 of samples, 4096 far from the beginning */
    uint32_t reserved0;
    uint64_t reads, writes;
    uint64_t lines; /* counted: in so many lines */
};

/* ---- what lies where (mode=allocator): exact unless it says otherwise ---- */

enum hw_places_flags {
    HW_PLACES_THREADS =
        1u << 0, /* there were several threads: greatest numbers are told in steps, see docs/places.md */
    HW_PLACES_WRAPPED = 1u << 1, /* so many threads that two had one number: false sharing between these is not seen */
};

/* Sums over all blocks. Values of events are of the whole run; the others as of `tick`. */
struct hw_places_info {
    uint32_t flags; /* enum hw_places_flags */
    uint32_t reserved0;
    uint64_t tick;
    int64_t requested_bytes; /* live */
    uint64_t peak_bytes, peak_tick;
    /* Lines on which a block was handed out while another thread's lived there: at a new address (active), at one that
     * was handed out before (passive); and those blocks. */
    uint64_t active_lines, passive_lines, active_blocks, passive_blocks;
    uint64_t unaligned;    /* blocks that were not followed: at no multiple of 8, or beyond the address space */
    uint64_t unseen_frees; /* blocks whose memory was handed out again although no free was seen */
    uint64_t skipped;      /* blocks whose lines a signal handler could not look at */
    /* Sampled accesses to live blocks: how many, and the sums of requested live bytes in their lines and pages. */
    uint64_t samples, line_bytes, page_bytes;
    /* Sampled writes to live blocks; those to lines that were last seen written by another thread: both within one
     * block, in one 8-byte word (true sharing) or not (sharing inside an object); of different blocks. */
    uint64_t writes, contended_word, contended_object, contended_blocks;
    /* Sampled writes to lines on which active or passive false sharing has happened, and the contended ones of these.
     */
    uint64_t active_writes, active_contended, passive_writes, passive_contended;
    uint64_t reserved[13];
};

/* One class of usable sizes, at one moment. */
struct hw_usable_class_state {
    int64_t live_blocks, live_bytes; /* bytes: requested */
    int64_t usable_bytes;            /* of the live blocks, by the allocator's own account */
    int64_t untouched_bytes; /* of these: whole pages at the end of blocks, behind all that was ever asked for there */
    int64_t free_blocks, free_bytes;   /* freed, and their memory not handed out since */
    int64_t most_blocks;               /* the most that were live at once, up to then */
    int64_t new_blocks, reused_blocks; /* handed out so far: at new addresses, at those that were handed out before */
};

struct hw_usable_class {
    uint64_t usable_least, usable_most;
    struct hw_usable_class_state now, peak; /* as of hw_places_info.tick; when most bytes were live */
};

struct hw_places_point {
    uint64_t tick;
    int64_t requested_bytes, internal_bytes, blowup_bytes, free_bytes;
    uint64_t resident_bytes; /* of mappings with blocks; 0: not read */
};

/* The heap taken apart. All of one moment: resident = requested - absent_requested + internal + blowup + the rest. */
struct hw_places_moment {
    uint64_t tick;
    uint32_t moment; /* enum hw_memory_moment; HW_MOMENT_PEAK: the latest one before the peak; a later entry replaces an
                        earlier one */
    uint32_t reserved0;
    int64_t requested_bytes, internal_bytes, blowup_bytes;
    int64_t free_bytes;        /* freed, and their memory not handed out since: blowup is a part of it */
    uint64_t absent_requested; /* requested bytes of blocks of 64 KiB and more in pages that are not there */
    uint64_t absent_free;      /* likewise of freed ones */
    uint64_t resident_bytes;   /* of anonymous mappings that hold blocks, [heap] included; 0: could not be read */
    uint64_t elsewhere_bytes;  /* of those that hold none: the program's own, memory that the allocator keeps */
    uint64_t reserved[5];
};

/* Sampled blocks, weighted: estimates. A page counts when at most a quarter of it is requested and live; each of the
 * blocks on it pins its share of the rest. */
struct hw_pinned {
    uint32_t context;
    uint32_t moment; /* enum hw_memory_moment */
    uint64_t blocks; /* that are on such pages, weighted */
    uint64_t bytes;  /* that they pin, weighted */
    uint64_t samples;
};

/* A block of `context` was handed out on a line on which one of `other` lived, of another thread. */
struct hw_line_pair {
    uint32_t context, other; /* HW_NONE: not known */
    uint64_t active, passive;
};

/* ---- merged and symbolised profiles (heapwise merge) ---- */

/* Processes of one program that were merged: those that agree in everything up to sample_bytes. Sorted by it. */
struct hw_run {
    uint32_t executable, allocator; /* strings */
    uint32_t mode;                  /* enum hw_mode */
    uint32_t build_id_size;
    uint8_t build_id[32]; /* of the executable */
    uint64_t sample_bytes;
    uint64_t runs;
    uint64_t duration_total_ns, duration_max_ns;
    uint64_t first_start_realtime_ns, last_start_realtime_ns; /* 0: not known */
    uint64_t peak_bytes_max, peak_rss_max_bytes;
    uint64_t exited_zero, exited_nonzero, signalled; /* the rest: replaced by exec, or not known how they ended */
    uint64_t reserved[4];
};

/* Where a stack node's pc lies, symbolised. */
struct hw_location {
    uint64_t address;                  /* pc - bias of the map; pc where map is HW_NONE, or code without a file */
    uint32_t map;                      /* index into MAPS: the first one of the module; or HW_NONE */
    uint32_t first_frame, frame_count; /* in FRAMES, innermost first; the last is not inlined */
    uint32_t reserved0;
};

enum hw_symbol_frame_flags {
    HW_SYMBOL_INLINED = 1u << 0, /* into the next frame of the chain */
};

struct hw_symbol_frame {
    uint32_t function, linkage_name; /* strings; 0: not known */
    uint32_t file;                   /* index into FILES; 0: not known */
    uint32_t line, column, discriminator;
    uint32_t start_line, relative_line; /* of the function; see struct hw_frame */
    uint32_t flags;                     /* enum hw_symbol_frame_flags */
    uint32_t reserved0;
};

/* A component of a path; a path is a leaf and its parents up to, not including, the root, joined by '/': that of
 * "/a/b" begins with a nameless component. The root is nameless and its own parent. */
struct hw_file_node {
    uint32_t name;   /* string */
    uint32_t parent; /* smaller than the own index */
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
    uint32_t first_context, count;
};

struct hw_type_name {
    uint64_t id; /* hw_access.type */
    uint32_t name;
    uint32_t reserved0;
};

enum hw_data_name_flags {
    HW_DATA_SECTION = 1u << 0, /* not a variable, but the section of the ELF file where none is */
};

struct hw_data_name {
    uint64_t address, size; /* address - bias */
    uint32_t map;           /* as in struct hw_location */
    uint32_t flags;         /* enum hw_data_name_flags */
    uint32_t name;          /* string */
    uint32_t reserved0;
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
    uint32_t map;     /* index into MAPS: the first one of the module */
    uint32_t flags;   /* enum hw_module_mark_flags */
    uint32_t path;    /* string: of the file, where MAPS does not tell it; 0: as in MAPS */
    uint32_t problem; /* string: why its names are poor, one sentence; 0: nothing to say */
};

struct hw_llvm_frame_entry {
    uint64_t function; /* GUID */
    uint32_t line_offset, column;
    uint32_t name; /* string; 0: not known */
    uint32_t inlined;
};

_Static_assert(sizeof(struct hw_struct) == 64, "struct");
_Static_assert(sizeof(struct hw_field) == 96, "field");
_Static_assert(sizeof(struct hw_field_group) == 40, "field group");
_Static_assert(sizeof(struct hw_group_member) == 16, "group member");
_Static_assert(sizeof(struct hw_field_window) == 24, "field window");
_Static_assert(sizeof(struct hw_fields_info) == 128, "fields info");
_Static_assert(sizeof(struct hw_context_type) == 16, "context type");
_Static_assert(sizeof(struct hw_sample_info) == 256, "sample info");
_Static_assert(sizeof(struct hw_sample_context) == 80, "sample context");
_Static_assert(sizeof(struct hw_sample_count) == 40, "sample count");
_Static_assert(sizeof(struct hw_allocator_info) == 256, "allocator info");
_Static_assert(sizeof(struct hw_operation_counts) == 128, "operation counts");
_Static_assert(sizeof(struct hw_allocator_facts) == 672, "allocator facts");
_Static_assert(sizeof(struct hw_size_class) == 8, "size class");
_Static_assert(sizeof(struct hw_allocator_prediction) == 480, "prediction");
_Static_assert(sizeof(struct hw_operation_call) == 64, "operation call");
_Static_assert(sizeof(struct hw_operation_lock) == 640, "operation lock");
_Static_assert(sizeof(struct hw_operation_events) == 96, "operation events");
_Static_assert(sizeof(struct hw_operation_times) == 2048, "operation times");
_Static_assert(sizeof(struct hw_operation_site) == 48, "operation site");
_Static_assert(sizeof(struct hw_operation_lives) == 448, "operation lives");
_Static_assert(sizeof(struct hw_slow_operation) == 48, "slow operation");
_Static_assert(sizeof(struct hw_operation_stage) == 128, "operation stage");
_Static_assert(sizeof(struct hw_thread_role) == 32, "thread role");
_Static_assert(sizeof(struct hw_side) == 64, "side");
_Static_assert(sizeof(struct hw_places_info) == 288, "places info");
_Static_assert(sizeof(struct hw_usable_class) == 160, "usable class");
_Static_assert(sizeof(struct hw_places_point) == 48, "places point");
_Static_assert(sizeof(struct hw_places_moment) == 120, "places moment");
_Static_assert(sizeof(struct hw_pinned) == 32, "pinned");
_Static_assert(sizeof(struct hw_line_pair) == 24, "line pair");
_Static_assert(sizeof(struct hw_run) == 168, "run");
_Static_assert(sizeof(struct hw_location) == 24, "location");
_Static_assert(sizeof(struct hw_symbol_frame) == 40, "symbol frame");
_Static_assert(sizeof(struct hw_file_node) == 8, "file node");
_Static_assert(sizeof(struct hw_function_slot) == 24, "function slot");
_Static_assert(sizeof(struct hw_posting) == 8, "posting");
_Static_assert(sizeof(struct hw_type_name) == 16, "type name");
_Static_assert(sizeof(struct hw_data_name) == 32, "data name");
_Static_assert(sizeof(struct hw_module_mark) == 16, "module mark");
_Static_assert(sizeof(struct hw_llvm_frame_entry) == 24, "LLVM frame");
_Static_assert(sizeof(struct hw_access_info) == 120, "access info");
_Static_assert(sizeof(struct hw_access) == 256, "access");
_Static_assert(sizeof(struct hw_global_granule) == 40, "global granule");
_Static_assert(sizeof(struct hw_histogram) == 512, "histogram");
_Static_assert(sizeof(struct hw_words) == 1152, "words");
_Static_assert(sizeof(struct hw_file_header) == 256, "header");
_Static_assert(sizeof(struct hw_section) == 64, "section");
_Static_assert(sizeof(struct hw_map_entry) == 128, "map entry");
_Static_assert(sizeof(struct hw_stack_node) == 16, "stack node");
_Static_assert(sizeof(struct hw_context_entry) == 16, "context");
_Static_assert(sizeof(struct hw_mib) == 256, "mib");
_Static_assert(sizeof(struct hw_thread_entry) == 128, "thread");
_Static_assert(sizeof(struct hw_timeline_point) == 40, "timeline");
_Static_assert(sizeof(struct hw_free_stack) == 24, "free stack");
_Static_assert(sizeof(struct hw_memory_breakdown) == 80, "memory");
_Static_assert(sizeof(struct hw_note) == 24, "note");
_Static_assert(sizeof(struct hw_inherited) == 24, "inherited");

#endif
