/* format_access.h - sections of counted accesses and fields, sampled accesses and shared lines. Part of format.h, which
 * includes it: same rules. */
#ifndef HW_PROFILE_FORMAT_ACCESS_H
#define HW_PROFILE_FORMAT_ACCESS_H

#include <stdint.h>

/* ---- counted accesses ---- */

enum hw_access_info_flags {
    HW_ACCESS_SPLIT = 1u << 0,     /* reads and writes are distinguished (in some code at least) */
    HW_ACCESS_UNSPLIT = 1u << 1,   /* objects of clang -fmemory-profile take part: theirs are in `unsplit` */
    HW_ACCESS_HARVESTED = 1u << 2, /* the cells of live blocks and globals were read: at the end, or for a dump */
    HW_ACCESS_CALLBACKS = 1u << 3, /* code built by gcc takes part */
};

/* How accesses were counted. A file without HW_ACCESS_HARVESTED (kill -9) lacks what lay in cells: accesses to blocks
 * that were live, and to globals. */
struct hw_access_info {
    uint32_t flags HW_TAG(1);        /* enum hw_access_info_flags */
    uint32_t granule HW_TAG(2);      /* bytes: 64, 8 or 4 */
    uint32_t planes HW_TAG(3);       /* that were in use */
    uint32_t planes_most HW_TAG(4);  /* how many there can be */
    uint64_t harvest_tick HW_TAG(5); /* when live blocks and globals were read */
    /* threads that got a plane which another one had at the same time: counts may be lost */
    uint64_t threads_sharing HW_TAG(6);
    uint64_t modules HW_TAG(7); /* instrumented modules */
    /* With HW_PROCESS_MERGED: processes whose cells were not read at the end, and contexts whose live part was left out
     * because blocks were freed after the harvest, counted in each process. */
    uint64_t unharvested_runs, unharvested_contexts;
    /* With 4-byte granules, where it is not counted how often a word is used, but in how many periods of a sampler:
     * reads and writes of all sections are then numbers of periods, added up over words. */
    uint64_t word_period_ns;  /* as asked for */
    uint64_t word_rounds;     /* finished scans of the whole shadow */
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
    uint32_t context HW_TAG(1, PREVIOUS);
    uint32_t flags HW_TAG(2);          /* enum hw_access_flags */
    uint64_t type HW_TAG(3, PREVIOUS); /* id of the blocks' type (base/abi.h), 0 when it is not known */
    uint64_t blocks HW_TAG(4);         /* harvested */
    uint64_t reads HW_TAG(5), writes HW_TAG(6);
    uint64_t unsplit HW_TAG(7); /* accesses of which it is not known which of the two */
    /* of one block: reads + writes + unsplit. min: UINT64_MAX while blocks == 0 */
    uint64_t accesses_min HW_TAG(8, FIELD, accesses_max), accesses_max HW_TAG(9);
    uint64_t granules HW_TAG(10), granules_touched HW_TAG(11, FIELD, granules); /* sums over blocks */
    uint64_t utilization_total HW_TAG(12, PRODUCT, utilization_max, blocks);
    /* min: UINT32_MAX while blocks == 0 */
    uint32_t utilization_min HW_TAG(13, FIELD, utilization_max), utilization_max HW_TAG(14);
    uint64_t density_total HW_TAG(15, PRODUCT, density_max, blocks), density_min HW_TAG(16, FIELD, density_max),
        density_max HW_TAG(17);
    uint64_t lifetime_density_total HW_TAG(18, FIELD, lifetime_density_max),
        lifetime_density_min HW_TAG(19, FIELD, lifetime_density_max), lifetime_density_max HW_TAG(20);
    uint64_t never_accessed HW_TAG(21); /* blocks */
    /* blocks with writes, without a read; none of them with `unsplit` accesses */
    uint64_t written_never_read HW_TAG(22);
    uint64_t shared_granules HW_TAG(23); /* touched by two or more threads… */
    uint64_t shared_written HW_TAG(24);  /* …at least one of which wrote */
    uint64_t shared_writers HW_TAG(25);  /* …at least two of which wrote */
    /* 8- and 4-byte granules: 64-byte lines shared and written, in which no word is shared and written. Threads (and
     * their uses of a word) count here that use some word of the line (that word) at least a sixteenth as often as
     * another thread does, unless they only go once through words that others use */
    uint64_t lines_false_shared HW_TAG(26);
    uint64_t lines_true_shared HW_TAG(27); /* …in which some word is */
    uint64_t saturated_cells HW_TAG(28); /* 8- and 4-byte granules: cells at their limit: all counts are lower bounds */
    uint64_t not_owned HW_TAG(29);       /* blocks that shared cells with others */
    /* lines used by several threads and written, of which one at most counts: it was filled by one and used by another.
     * 64-byte granules: part of shared_writers */
    uint64_t lines_handed_over HW_TAG(30);
    /* so often, at most, lines in lines_false_shared went from one thread to another; 64-byte granules: those in
     * shared_writers that were not handed over. 4-byte granules: in periods. 0 with such lines: not known, the file is
     * of an older version */
    uint64_t line_passes HW_TAG(31);
    /* lines in lines_false_shared of which that is not known: two threads' counts of a word are at their limit (8-byte
     * granules), or 3 periods at least (4-byte granules) */
    uint64_t lines_hot HW_TAG(32);
    /* blocks whose first bytes were watched, and to which somebody wrote where no counted code has touched them: code
     * that does not count uses blocks of this context */
    uint64_t unseen_writes HW_TAG(33);
    uint64_t reserved[1];
};

enum hw_global_flags {
    HW_GLOBAL_SHARED = 1u << 0,    /* by threads */
    HW_GLOBAL_WRITTEN = 1u << 1,   /* and written */
    HW_GLOBAL_WRITERS = 1u << 2,   /* by two or more */
    HW_GLOBAL_SATURATED = 1u << 3, /* a cell at its limit */
    /* Of the line that the granule lies in: as lines_… of struct hw_access. */
    HW_GLOBAL_FALSE = 1u << 4,
    HW_GLOBAL_TRUE = 1u << 5,
    HW_GLOBAL_HANDED = 1u << 6,
    HW_GLOBAL_HOT = 1u << 7,
};

/* One granule with a symbol's bytes in it that was touched: data of an executable or a library. */
struct hw_global_granule {
    uint32_t map HW_TAG(1, PREVIOUS);    /* index into MAPS, of the module's code */
    uint32_t flags HW_TAG(2);            /* enum hw_global_flags */
    uint64_t offset HW_TAG(3, PREVIOUS); /* address - bias of the granule's first byte */
    uint64_t reads HW_TAG(4), writes HW_TAG(5), unsplit HW_TAG(6);
};

/* Accesses by position in the block: a run of words of all blocks of one context. Entries for the same words add up. */
#define HW_HISTOGRAM_WORDS 62
struct hw_histogram {
    uint32_t context HW_TAG(1, PREVIOUS);
    /* multiple of HW_HISTOGRAM_WORDS; word i is bytes 8 i to 8 i + 7 of the block */
    uint32_t first_word HW_TAG(2, PREVIOUS);
    uint64_t saturated HW_TAG(3); /* cells among them that were at their limit */
    uint64_t words[HW_HISTOGRAM_WORDS];
};

/* Used words by position in the block, for all blocks of one context; with FREE_STACKS apart by where they were freed.
 * Entries for the same words add up. */
#define HW_WORDS_RUN 32
struct hw_words {
    uint32_t context HW_TAG(1, PREVIOUS);
    uint32_t free_context HW_TAG(2);         /* HW_NONE: not recorded, or live */
    uint32_t first_word HW_TAG(3, PREVIOUS); /* multiple of HW_WORDS_RUN; word i is bytes 4 i to 4 i + 3 of the block */
    uint32_t reserved0 HW_TAG(4);
    uint64_t saturated HW_TAG(5); /* cells among them that were at their limit: periods are lower bounds */
    uint64_t reserved1;
    uint64_t read_periods[HW_WORDS_RUN], written_periods[HW_WORDS_RUN]; /* added up over blocks and threads */
    uint64_t read_blocks[HW_WORDS_RUN], written_blocks[HW_WORDS_RUN]; /* blocks in which it was read, written at all */
    /* Blocks that are not in the sums above: REPEATS of them, whose cells of these words were alike. A cell stands for
     * (cell & 127) + (cell >> 7) periods, and for no use when it is 0. */
    uint64_t repeats;
    uint32_t pattern_reads, pattern_writes; /* periods of the cells, added up: for the runtime */
    uint64_t pattern_touched;               /* the same of words that were used */
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
    HW_STRUCT_FREE_ORDER = 1u << 12, /* the compiler chooses the order of members: Rust */
    HW_STRUCT_OUTSIDE = 1u << 11,  /* pointers to it go to functions of modules that do not count: they may use it */
};

/* A type by its identity: FNV-1a (64 bits; base/abi.h says of which bytes) of name, size and all fields. Several
 * entries of one identity, from several modules or processes, are one type; one name with two identities is two. */
struct hw_struct {
    uint64_t identity HW_TAG(1);
    uint64_t size HW_TAG(2); /* bytes */
    /* strings: with namespaces and template arguments; where it is declared */
    uint32_t name HW_TAG(3, PREVIOUS), file HW_TAG(4, PREVIOUS);
    uint32_t line HW_TAG(5, PREVIOUS); /* 0: not known, as the file */
    uint32_t flags HW_TAG(6);          /* enum hw_struct_flags */
    uint32_t alignment HW_TAG(7);      /* bytes */
    /* in FIELDS, sorted by offset; 0 fields: none is known */
    uint32_t first_field HW_TAG(8, PREVIOUS), field_count HW_TAG(9);
    uint32_t reserved0 HW_TAG(10);
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
    uint32_t name HW_TAG(1, PREVIOUS), type_name HW_TAG(2, PREVIOUS); /* strings */
    /* string: of the member, as C has it, without the semicolon: "struct vec pos" */
    uint32_t declaration HW_TAG(3, PREVIOUS);
    uint32_t flags HW_TAG(4);                            /* enum hw_field_flags */
    uint64_t offset HW_TAG(5, PREVIOUS), size HW_TAG(6); /* bytes; of a bit-field: those that it touches */
    uint32_t bit_offset HW_TAG(7);      /* of a bit-field: its first bit, counted from the first bit of byte `offset` */
    uint32_t bit_size HW_TAG(8);        /* of a bit-field; else 0 */
    uint32_t alignment HW_TAG(9);       /* of its type */
    uint32_t line HW_TAG(10, PREVIOUS); /* 0: not known */
    uint64_t member_offset HW_TAG(11, FIELD, offset), member_size HW_TAG(12, FIELD, size);
    uint32_t member_alignment HW_TAG(13, FIELD, alignment);
    uint32_t part_offset HW_TAG(14);              /* where in the struct the part begins that the field lies in */
    uint64_t reads HW_TAG(15), writes HW_TAG(16); /* that are in no group */
    /* identity of the type of that part, the largest one that has a name: a base, or a struct by value; 0: none.
     * Through pointers to it the field is accessed, too */
    uint64_t part HW_TAG(17);
};

/* Accesses to one object that are executed together: each execution is as many accesses as the members say. In a group
 * without a struct they are accesses that could not be attributed to one. Groups that agree in everything but the
 * executions add up. */
struct hw_field_group {
    uint32_t structure HW_TAG(1, PREVIOUS); /* index into STRUCTS, or HW_NONE */
    /* string: linkage name of the function with the accesses, before it was inlined */
    uint32_t function HW_TAG(2, PREVIOUS);
    uint32_t line HW_TAG(3, PREVIOUS); /* of the first one, in `file` */
    uint32_t file HW_TAG(4, PREVIOUS); /* string */
    uint32_t first_member HW_TAG(5, PREVIOUS), member_count HW_TAG(6);
    uint64_t executions HW_TAG(7);
    uint32_t object; /* groups with the same number access the same object, by the same pointer: those that are executed
                        while it stays what it is are one visit. A hash of the function and of the pointer in it; 0: not
                        known */
    uint32_t reserved0;
};

enum hw_group_member_flags {
    HW_MEMBER_INHERITED = 1u << 0, /* the object is part of another one, by whose type it was accessed: the accesses are
                                      in a group of that type as well, and all members of this group are marked */
};

struct hw_group_member {
    /* index into FIELDS; HW_NONE: each field of the struct, which is copied or set whole */
    uint32_t field HW_TAG(1, PREVIOUS);
    uint32_t reads HW_TAG(2), writes HW_TAG(3); /* at an execution */
    uint32_t flags HW_TAG(4);                   /* enum hw_group_member_flags */
};

/* The sampler reads all counters twice, a short window apart. WEIGHT is the sum, over windows and threads, of the
 * smaller of the numbers of accesses to the two fields in that window. */
struct hw_field_window {
    uint32_t structure HW_TAG(1, PREVIOUS);
    uint32_t field_a HW_TAG(2, PREVIOUS), field_b HW_TAG(3, PREVIOUS); /* indexes into FIELDS, a < b */
    uint32_t reserved0 HW_TAG(4);
    uint64_t weight HW_TAG(5);
};

struct hw_fields_info {
    uint32_t flags HW_TAG(1); /* none yet */
    uint32_t modules HW_TAG(2);
    uint64_t harvest_tick HW_TAG(3);        /* when the counters were read */
    uint64_t before_registration HW_TAG(4); /* executions of groups whose module had not yet been registered */
    uint64_t windows HW_TAG(5);             /* that were taken */
    uint64_t period_ns HW_TAG(6), window_ns HW_TAG(7); /* from one to the next, and how long, on average; 0: none */
    uint64_t groups HW_TAG(8), groups_lost HW_TAG(9);  /* with a counter; those that there was no room for */
    uint64_t reserved[8];
};

enum hw_context_type_flags {
    HW_CONTEXT_TYPES_DIFFER = 1u << 0, /* there are others */
};

/* The type of the blocks of a context; a context with several has several entries, or says so. */
struct hw_context_type {
    uint32_t context HW_TAG(1, PREVIOUS);
    uint32_t flags HW_TAG(2); /* enum hw_context_type_flags */
    uint64_t type HW_TAG(3);  /* as hw_access.type */
    /* blocks of that type by where they begin in a line of 64 bytes: at byte 8 i to 8 i + 7; 0: not counted, the file
     * is of an older version */
    uint64_t starts[8] HW_TAG(4);
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
    uint32_t source HW_TAG(1); /* enum hw_sample_source */
    uint32_t ended HW_TAG(2);  /* enum hw_sample_end */
    int32_t error HW_TAG(3);   /* positive errno, with HW_SAMPLE_NO_TIMER; or why there is no PMU */
    uint32_t signal HW_TAG(4);
    uint64_t frequency HW_TAG(5);                 /* samples or bursts asked for, by second of a thread's CPU time */
    uint64_t burst_length HW_TAG(6);              /* instructions of a full burst; 0: no bursts */
    uint64_t period HW_TAG(7);                    /* accesses that a sample stands for; 0: not known, shares only */
    uint64_t threads HW_TAG(8);                   /* threads that were sampled */
    uint64_t bursts HW_TAG(9);                    /* begun */
    uint64_t instructions HW_TAG(10);             /* of the program that were stepped through */
    uint64_t steps HW_TAG(11);                    /* with those of the runtime in between, which are in no count */
    uint64_t reads HW_TAG(12), writes HW_TAG(13); /* all samples; what both reads and writes is in both */
    /* The same by where they fell: reads and writes. The rest is elsewhere: mappings of the program's own, metadata of
     * the allocator. */
    uint64_t heap_reads HW_TAG(14), heap_writes HW_TAG(15);
    uint64_t global_reads HW_TAG(16), global_writes HW_TAG(17);
    uint64_t stack_reads HW_TAG(18), stack_writes HW_TAG(19);   /* stacks of threads */
    uint64_t thread_reads HW_TAG(20), thread_writes HW_TAG(21); /* thread-local variables */
    /* Moments that were drawn and given up: in the runtime; in a system call; SIGTRAP was blocked. */
    uint64_t in_runtime HW_TAG(22), in_kernel HW_TAG(23), blocked HW_TAG(24);
    uint64_t cut HW_TAG(25);       /* bursts that ended early: at a system call that could not be stepped over, … */
    uint64_t unknown HW_TAG(26);   /* instructions that could not be decoded: also ends of bursts */
    uint64_t lost HW_TAG(27);      /* samples that found no room */
    uint64_t throttled HW_TAG(28); /* PMU: times the kernel slowed the samples down */
    /* With HW_PROCESS_MERGED: processes in which accesses were to be sampled, and those of them in which that ended
     * early, or never began; `ended` and `error` are of one of these. */
    uint64_t runs HW_TAG(29), runs_ended HW_TAG(30);
    uint64_t accesses_from HW_TAG(31); /* entries of SAMPLE_ACCESSES before this one are from before a reset */
    uint64_t accesses_lost HW_TAG(32); /* accesses to blocks that found no room there */
    uint64_t reserved[2];
};

/* Lines: 64 bytes of a block, as long as it lived. A line is shared when samples show two or more threads at it;
 * falsely when it was written and no 8-byte word in it was seen used by two. Sampling misses threads: these are lower
 * bounds. */
struct hw_sample_context {
    uint32_t context HW_TAG(1, PREVIOUS);
    uint32_t flags HW_TAG(2); /* 0 */
    uint64_t reads HW_TAG(3), writes HW_TAG(4);
    uint64_t lines HW_TAG(5);              /* with samples */
    uint64_t lines_shared HW_TAG(6);       /* by two or more threads, of which none was seen writing */
    uint64_t lines_true_shared HW_TAG(7);  /* written, and some word used by two */
    uint64_t lines_false_shared HW_TAG(8); /* written, and none */
    uint64_t lines_writers HW_TAG(9);      /* written by two or more */
    uint64_t reserved[2];
};

enum hw_sample_kind {
    HW_SAMPLE_WORD = 1,   /* by position in the blocks of `context`: `bytes` from `offset` on */
    HW_SAMPLE_PLACE = 2,  /* by the instruction, at `offset` (address - bias) in `map`, on blocks of `context` */
    HW_SAMPLE_GLOBAL = 3, /* the 8 bytes at `offset` (address - bias) in `map`: data of an executable or library */
};

/* Entries for the same thing add up. */
struct hw_sample_count {
    uint32_t kind HW_TAG(1, PREVIOUS);    /* enum hw_sample_kind */
    uint32_t context HW_TAG(2, PREVIOUS); /* HW_NONE with HW_SAMPLE_GLOBAL */
    /* index into MAPS; HW_NONE with HW_SAMPLE_WORD, and where the code is in no module */
    uint32_t map HW_TAG(3, PREVIOUS);
    uint32_t bytes HW_TAG(4); /* of what it stands for: 8, or 4096 far from the beginning of large blocks */
    uint64_t offset HW_TAG(5, PREVIOUS);
    uint64_t reads HW_TAG(6), writes HW_TAG(7);
};

#define HW_SAMPLE_ACCESSES_MOST (1u << 21) /* entries; later accesses are in the counts alone */

/* A sampled access to a block, in the order in which bursts ended; those of a burst lie together, in their own order. */
struct hw_sample_access {
    uint32_t context HW_TAG(1, PREVIOUS);
    uint32_t burst HW_TAG(2, PREVIOUS);  /* numbered from 1 on; what the processor picks is alone in its burst */
    uint64_t offset HW_TAG(3, PREVIOUS); /* of its first byte in the block */
    uint64_t code HW_TAG(4, PREVIOUS);   /* the instruction: address - bias in `map`; in no module its address */
    uint32_t map HW_TAG(5, PREVIOUS);    /* index into MAPS, or HW_NONE */
    uint8_t block HW_TAG(6);             /* within the burst: accesses to one block have the same number */
    uint8_t bytes HW_TAG(7);             /* 255: that many or more; 0: not known */
    uint8_t flags HW_TAG(8);             /* 1: it reads; 2: it writes; 16 * n: the block begins at byte 8 n of a line */
    uint8_t step HW_TAG(9);              /* in the burst: instructions before it; 255: that many or more */
};

/* ---- lines that several threads use, and at least one writes ---- */

enum hw_role_number {
    HW_ROLE_UNKNOWN = 0, /* threads that were not seen starting, or of which it is not known which one it was */
    HW_ROLE_MAIN = 1,    /* the main thread */
    HW_ROLE_FIRST = 2,   /* from here on: as their entries say */
};

/* Threads that were started with the same routine by the same call stack. */
struct hw_thread_role {
    uint32_t map HW_TAG(1, PREVIOUS); /* index into MAPS, of the routine; HW_NONE: not known */
    uint32_t context HW_TAG(2);       /* index into CONTEXTS, of the call that started them; HW_NONE: not known */
    uint64_t routine HW_TAG(3);       /* address - bias */
    uint64_t threads HW_TAG(4);       /* started so far */
    uint64_t reserved HW_TAG(5);
};

enum hw_side_kind {
    HW_SIDE_COUNTED = 1, /* exact; what code it was is not known. With 4-byte granules reads and writes are periods */
    HW_SIDE_SAMPLED = 2, /* samples, taken when the line was known to be shared, by instruction */
};
enum hw_side_sharing {
    HW_SHARING_FALSE = 1,  /* no word of the line is used by two threads and written */
    HW_SHARING_TRUE = 2,   /* some word is: only in samples */
    HW_SHARING_UNTOLD = 3, /* 64-byte granules, written by two threads: words are not distinguished */
};

/* What threads of one role did in the shared lines of the blocks of a context, by position in the block; what was
 * done less than a sixteenth as often as the most in the line is left out where it was counted. Entries for the
 * same thing add up. */
struct hw_side {
    uint32_t context HW_TAG(1, PREVIOUS);
    uint32_t role HW_TAG(2, PREVIOUS);    /* index into ROLES */
    uint16_t kind HW_TAG(3, PREVIOUS);    /* enum hw_side_kind */
    uint16_t sharing HW_TAG(4, PREVIOUS); /* enum hw_side_sharing */
    uint32_t map HW_TAG(5, PREVIOUS);     /* of the code: index into MAPS; HW_NONE: not known */
    uint64_t code HW_TAG(6, PREVIOUS);    /* the instruction, address - bias; 0: not known */
    uint64_t offset HW_TAG(7, PREVIOUS);  /* in the block */
    /* what it stands for from there on: a granule, 8 of samples, 4096 far from the beginning */
    uint32_t bytes HW_TAG(8, PREVIOUS);
    uint32_t reserved0 HW_TAG(12);
    uint64_t reads HW_TAG(9), writes HW_TAG(10);
    uint64_t lines HW_TAG(11); /* counted: in so many lines */
};

#endif
