/* profile.h - a profile in memory: what every verb after the run works on.
 *
 * hw_profile_read reads a file of any state (sealed, still being written, left behind by kill -9), checks everything
 * it relies on, merges the MIBs of one context and converts ticks to nanoseconds. Nothing here knows symbols. */
#ifndef HW_PROFILE_PROFILE_H
#define HW_PROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log_histogram.h"
#include "base/size_bucket.h"
#include "base/error.h"
#include "profile/format.h"

/* Counted accesses of the blocks of one context (see struct hw_access), merged. Minima and maxima are 0 when `blocks`
 * is. Sums stop at UINT64_MAX instead of wrapping, and `overflown` is set. */
struct hw_profile_access {
    uint64_t type;  /* id of the blocks' type, the least if they have several; 0 when it is not known */
    uint32_t flags; /* enum hw_access_flags */
    bool overflown;
#define HW_ACCESS(type, member, ...) type member;
#include "profile/numbers.def"
};

/* `all` holds `live`: blocks that were live at the harvest. The rest of `all` are freed ones. */
struct hw_profile_accesses {
    struct hw_profile_access all, live;
};

/* Accesses by position in the blocks of a context, of one run of words. Sums stop at UINT64_MAX. */
struct hw_profile_histogram {
    uint32_t context;
    uint32_t first_word; /* multiple of HW_HISTOGRAM_WORDS */
    uint64_t saturated;
    uint64_t words[HW_HISTOGRAM_WORDS];
};

/* Used words by position in the blocks of a context: see struct hw_words. Sums stop at UINT64_MAX. */
struct hw_profile_words {
    uint32_t context;
    uint32_t first_word;   /* multiple of HW_WORDS_RUN */
    uint32_t free_context; /* HW_NONE in `words`; in `freed_words` where they were freed */
    uint64_t saturated;
    uint64_t read_periods[HW_WORDS_RUN], written_periods[HW_WORDS_RUN];
    uint64_t read_blocks[HW_WORDS_RUN], written_blocks[HW_WORDS_RUN];
};

/* ---- counted fields of structs (heapwise cc --fields) ----
 *
 * Entries of the file that are of one type are merged. Indexes are into the arrays of struct hw_profile. All sums stop
 * at UINT64_MAX. */

/* See struct hw_field. Strings are never NULL. */
struct hw_profile_field {
    const char *name, *type_name, *declaration;
    uint32_t flags; /* enum hw_field_flags */
    uint32_t alignment, line;
    uint32_t bit_offset, bit_size;
    uint64_t offset, size; /* offset + size does not overflow; sorted by offset and bit_offset in a struct */
    uint64_t member_offset, member_size;
    uint32_t member_alignment;
    uint64_t part; /* struct hw_field */
    uint32_t part_offset;
    uint64_t reads, writes;                     /* all: also as part of the whole */
    uint64_t inherited_reads, inherited_writes; /* of them, by the type of an object that this one is part of */
    uint64_t apart_reads, apart_writes;         /* of them, in no group */
    /* Further ones that may be to it, through pointers to the types that it lies in a part of: "by", whose part it is,
     * is not known of them. UNSEEN: code that does not count may access it, too. */
    uint64_t possible_reads, possible_writes;
    bool unseen;
    double share_error; /* sampled: two standard errors of its share of the struct's accesses; -1: too few bursts */
};

struct hw_profile_struct {
    uint64_t identity;
    uint64_t type; /* id of a type of that name: hw_profile_context.type of the contexts that allocate it */
    const char *name, *file;
    uint32_t line, flags; /* enum hw_struct_flags */
    uint32_t alignment;
    uint64_t size;
    size_t first_field, field_count;
    size_t first_group, group_count;
    size_t first_window, window_count;
    uint64_t reads, writes;                     /* accesses: one to several fields at once is one for each of them */
    uint64_t inherited_reads, inherited_writes; /* of them, as above */
    uint64_t whole_reads, whole_writes;         /* of them as a whole: times, not times fields */
};

struct hw_profile_group_member {
    uint32_t field;         /* HW_NONE: each field of the struct */
    uint32_t reads, writes; /* at an execution */
};

/* Accesses to one object that are executed together. Those of a struct lie together, most executions first. */
struct hw_profile_field_group {
    uint32_t structure;
    uint32_t line;
    const char *function, *file;
    size_t first_member, member_count;
    uint32_t object; /* groups with the same number access the same object; 0: not known */
    bool inherited;  /* the object was accessed as part of another one: a group of that one's type says so, too */
    uint64_t executions;
};

struct hw_profile_field_window {
    uint32_t structure;
    uint32_t field_a, field_b; /* a < b */
    uint64_t weight;
};

struct hw_profile_fields {
    bool counted; /* what follows means something */
    bool sampled; /* accesses and executions are numbers of samples, and groups what bursts saw of an object */
    struct hw_fields_info info;
    uint64_t harvest_ns;
    struct hw_profile_struct *structs; /* sorted by name, then identity */
    size_t struct_count;
    struct hw_profile_field *fields;
    size_t field_count;
    struct hw_profile_field_group *groups;
    size_t group_count;
    struct hw_profile_group_member *members;
    size_t member_count;
    struct hw_profile_field_window *windows;
    size_t window_count;
    uint64_t attributed_reads, attributed_writes;     /* of all structs */
    uint64_t unattributed_reads, unattributed_writes; /* it is not known to what */
};

/* ---- the allocator itself (record --mode allocator) ---- */

/* Operations of one phase, kind and size. */
struct hw_profile_operation {
    uint64_t count; /* exact */
    /* Estimates, from `samples` operations that were timed; in ticks. All sums stop at UINT64_MAX. */
    uint64_t samples, weight;
    uint64_t ticks; /* weighted */
    uint64_t most;
    uint64_t inside_ticks, exact_ticks; /* as in struct hw_operation_times */
    uint64_t histogram[HW_TIME_BINS];   /* weights */
};

/* Sizes as the allocator distinguishes them. */
enum hw_size_group { HW_SIZE_SMALL, HW_SIZE_MEDIUM, HW_SIZE_LARGE, HW_SIZE_NOT_KNOWN, HW_SIZE_GROUPS };

/* System calls of one kind inside operations of one phase and kind. */
struct hw_profile_call {
    uint64_t count, errors, ticks, bytes;
};

/* Events during a sample of the operations of one phase, kind and size. */
struct hw_profile_events {
    uint64_t samples, sum[HW_OPERATION_EVENTS];
};

/* What was seen inside operations. Times are ticks. */
struct hw_profile_inside {
    bool present;            /* somebody looked: locks, at least */
    bool calls_present;      /* there is something on system calls, perhaps that there were none */
    bool calls_observed;     /* system calls were observed, perhaps not to the end (HW_NOTE_NO_DISPATCH) */
    bool calls_seen;         /* there were some */
    uint32_t events_present; /* bits 1 << enum hw_operation_event */
    struct hw_profile_call calls[HW_SYSTEM_CALLS][HW_PHASES][HW_OPERATION_KINDS];
    struct hw_operation_lock *locks; /* those that were used, the longest waited for first; map is valid or HW_NONE */
    size_t lock_count;
    struct hw_profile_events events[HW_PHASES][HW_OPERATION_KINDS][HW_SIZE_BUCKETS];
};

struct hw_profile_allocator {
    struct hw_allocator_info info; /* all zero when it is missing */
    uint64_t runs;                 /* of how many this is the sum: 1 unless it is merged */
    double ns_per_tick;            /* of times of operations, and in them; moments are those of the profile */
    struct hw_profile_inside inside;
    /* Where medium (0: there are none) and large sizes begin. */
    uint64_t medium_least, large_least;
    bool facts_known;                /* how the allocator works was found out: what follows */
    struct hw_allocator_facts facts; /* its texts are terminated */
    const struct hw_size_class *classes;
    size_t class_count;
    const struct hw_allocator_prediction *predictions; /* their texts are terminated */
    size_t prediction_count;
    /* Of all kinds; exact. Frees are of blocks that are known, where what lies where was followed. */
    uint64_t allocations, frees, reallocations;
    uint64_t foreign_frees;
    bool bytes_known; /* what follows; exact, but for what reallocations added where nothing was followed */
    uint64_t bytes[HW_PHASES][HW_SIZE_BUCKETS];
    bool bytes_freed_known;
    uint64_t bytes_freed;
    /* By hw_profile_operation; those without operations are there, too. */
    struct hw_profile_operation *operations;
    const struct hw_operation_site *sites; /* most ticks first; contexts exist */
    size_t site_count;
    const struct hw_operation_lives *lives; /* by bucket, each once */
    size_t lives_count;
    const struct hw_slow_operation *slowest; /* slowest first; contexts exist */
    size_t slowest_count;
    const struct hw_operation_stage *stages; /* by stage and begin; open ones end with the run */
    size_t stage_count;
};

static inline struct hw_profile_operation *hw_profile_operation(const struct hw_profile_allocator *allocator, int phase,
                                                                int kind, uint32_t bucket)
{
    return &allocator->operations[((uint32_t)phase * HW_OPERATION_KINDS + (uint32_t)kind) * HW_SIZE_BUCKETS + bucket];
}

/* ---- what lies where (record --mode allocator) ---- */

struct hw_profile_places {
    struct hw_places_info info;
    const struct hw_usable_class *classes; /* sorted by size */
    size_t class_count;
    const struct hw_places_point *points; /* sorted by time */
    size_t point_count;
    const struct hw_places_moment *moments;
    size_t moment_count;
    const struct hw_pinned *pinned; /* of contexts that exist; most bytes first */
    size_t pinned_count;
    const struct hw_line_pair *pairs; /* of contexts that exist, or HW_NONE; most blocks first */
    size_t pair_count;
};

/* The heap of one moment in parts: real - absent + internal + blowup + external = total. Bytes. */
struct hw_heap_parts {
    int64_t real;     /* requested by live blocks */
    int64_t absent;   /* of it, in pages that are not there: never touched */
    int64_t internal; /* beyond it in live blocks */
    int64_t blowup;   /* in free ones that were not freed recently, by size class */
    int64_t external; /* the rest: fragmentation between blocks, metadata, what was freed recently. Below 0 where
                         smaller blocks were not touched either */
    int64_t total;
    bool measured;    /* near enough to that moment; else what follows, absent, external and total are not known */
    int64_t resident; /* as it was read, when `measured_real` bytes were live */
    int64_t measured_real;
    int64_t elsewhere; /* resident in anonymous mappings without blocks */
    int64_t free_bytes;
    uint64_t tick;
};

/* All that is known of one context, summed over threads: the numbers of numbers.def. Times in ns since the start of the
 * process, lifetimes in ns. */
struct hw_profile_context {
    uint32_t id;
    uint32_t leaf; /* index into nodes, 0: unknown stack */
    uint32_t depth;
    uint32_t flags; /* enum hw_context_flags */
    /* Minima and maxima are 0 when there is none; samples are as hw_mib says. A sum that is UINT64_MAX is too much to
     * be known. */
#define HW_NUMBER(type, member, ...) type member;
#include "profile/numbers.def"
    bool pool;         /* blocks of an allocator of the program's own: in memory that is counted already, in no total */
    uint64_t type;     /* id of the blocks' type, the least if they have several; 0 when it is not known */
    bool types_differ; /* they have several */
    uint32_t type_evidence;             /* how the type is known: enum hw_type_evidence; 0: the program said it */
    bool type_many;                     /* the blocks are arrays of it */
    uint64_t type_size;                 /* sizeof, 0: not known */
    uint64_t starts[8];                 /* see struct hw_context_type; all 0: not known */
    struct hw_profile_accesses *access; /* NULL when accesses were not counted */
};

/* Blocks of a context whose sizes lie in one bucket (base/size_bucket.h); HW_SIZE_BUCKET_UNKNOWN: of which it is not
 * known, as there was no room. Each column adds up to the number of the context. See struct hw_size_bar. */
struct hw_profile_size_bar {
    uint32_t context, bucket;
    uint64_t allocations, reallocations, bytes;
    int64_t live_blocks, live_bytes, peak_blocks, peak_bytes;
};

/* Freed blocks of a context that lived as long as hw_lifetime_bar says; HW_LIFETIME_UNKNOWN: of which it is not known.
 * `frees` adds up to that of the context. BYTES: of these blocks when they were freed. */
struct hw_profile_life_bar {
    uint32_t context, life;
    uint64_t frees, bytes;
};
#define HW_LIFETIME_UNKNOWN HW_LIFETIME_BARS

/* Timeline with times in ns. */
struct hw_profile_point {
    uint64_t time_ns;
    int64_t live_bytes;
    uint64_t rss_bytes; /* 0: not read */
    uint64_t allocations, frees;
};

/* What the program measured itself: see struct hw_region. Of its ticks: nanoseconds. */
struct hw_profile_region {
    struct hw_region sum;
    const char *name;
    uint64_t total_ns, longest_ns, first_ns, last_ns;
};

/* A moment that it has named. */
struct hw_profile_mark {
    uint64_t time_ns;
    int64_t live_bytes;
    const char *name;
};

/* A file of LLVM's instead of Heapwise's own: docs/llvm.md says what such files hold. */
struct hw_profile_llvm {
    const char *kind;   /* "raw" or "indexed" */
    uint32_t version;   /* of it */
    uint32_t known;     /* bits 1 << enum hw_llvm_field (llvm.h): what its blocks have */
    size_t dumps;       /* raw: blocks that lived through several dumps of one file are counted by each */
    bool clang_runtime; /* raw: written by clang's runtime */
    const struct hw_llvm_frame *frames; /* indexed: the pc of a stack node is an index into them; else NULL */
    size_t frame_count;
    const struct hw_llvm_mib *mibs; /* by context id: sums of all that the file says of it, as LLVM has them */
};

/* What Heapwise's own files hold and others may not. Own ones lack what a damaged part of them held, and those of
 * allocator mode with limited address space what is live. */
enum hw_measured {
    HW_MEASURED_PROCESS,    /* pid, command, start, duration, exit, threads, timeline, RSS */
    HW_MEASURED_GRANULES,   /* which parts of blocks were accessed, by whom, and whether a block was at all; globals */
    HW_MEASURED_TOTALS,     /* how many blocks and bytes were allocated in all */
    HW_MEASURED_LIVE,       /* what is live, or was at the end */
    HW_MEASURED_PEAK,       /* what was live at the peak */
    HW_MEASURED_EVENTS,     /* frees apart from the end of lives, reallocations, temporary */
    HW_MEASURED_SIZE_RANGE, /* size_min, size_max */
    HW_MEASURED_LIFETIMES,  /* lifetime_total_ns */
    HW_MEASURED_LIFETIME_RANGE, /* lifetime_min_ns, lifetime_max_ns */
    HW_MEASURED_LAST,           /* last_alloc_ns, last_free_ns and their CPUs */
    HW_MEASURED_BARS,           /* size_bars, life_bars */
    HW_MEASURED_CPUS,           /* migrated_cpu, lifetime_overlaps, same_alloc_cpu, same_free_cpu */
    HW_MEASURED_LEAKS,          /* which live blocks the program could still reach */
};

/* A thread; or several that were added up, as it says. What is live is of the blocks that it allocated, whoever freed
 * others of them. In sampled runs, and in allocator mode, all counts are estimates. */
struct hw_profile_thread {
    const char *name;  /* any bytes; "": not known */
    uint32_t flags;    /* enum hw_thread_flags */
    uint32_t map;      /* of the routine it was started with, HW_NONE: not known */
    uint64_t routine;  /* address - bias */
    uint64_t threads;  /* how many it is: 1, or those that were added up */
    uint64_t start_ns; /* its first event; of several: the first one of all */
    uint64_t end_ns;   /* 0: it has not ended before the process, or some of them have not */
    uint32_t slot;     /* what hw_mib.slot says of it, less 1; HW_NONE: not known */
    uint32_t starter;  /* index of the thread that started it; HW_NONE: not known, or several did */
    uint32_t context;  /* id: where; 0: not known, or at several places */
    uint64_t allocations, frees, reallocations, temporary, bytes;
    int64_t live_blocks, live_bytes, peak_bytes;
    uint64_t freed_by_others, freed_by_others_bytes; /* its blocks */
    uint64_t freed_of_others, freed_of_others_bytes; /* by it */
    uint64_t owner_unknown;                          /* blocks freed by it of which nobody knows whose they were */
};

/* What the threads of a slot did in a context. */
struct hw_profile_thread_place {
    uint32_t context; /* id */
    uint32_t thread;  /* one of them */
    bool several;     /* there were others of its start function */
    bool resized;     /* threads reallocated blocks of other threads of this context */
    uint64_t allocations, frees, bytes, freed_by_others;
    int64_t live_bytes, peak_bytes; /* what these threads did: live if others freed nothing there, nor reallocated */
};

struct hw_profile {
    char *path;
    const struct hw_profile_llvm *llvm; /* NULL: the file is Heapwise's own */
    struct hw_file_header header;
    struct hw_process_info process;
    bool sealed;
    bool running;          /* the process that writes it still lives on this machine (pid and start time agree) */
    bool cut;              /* the file is shorter than it says: what was there has been read, see problems */
    uint64_t threads_left; /* had not ended when the process did; of a merged profile: not known */
    bool process_lost, totals_lost; /* of a damaged file: what the process was; all numbers of allocations */
    double ns_per_tick;
    uint64_t duration_ns; /* of the run so far */
    uint64_t peak_time_ns;
    const char *executable, *allocator, *allocator_path, *options;
    const char **command; /* command_count strings */
    size_t command_count;
    const struct hw_profile_thread *threads; /* in the order of the file; empty: an older file, or one of LLVM's */
    size_t thread_count;
    /* Where more than one thread is known, and their file is not merged: sorted by context and thread. */
    const struct hw_profile_thread_place *thread_places;
    size_t thread_place_count;
    struct hw_thread_entry totals;         /* sum of the THREADS section, of no thread */
    struct hw_thread_entry context_totals; /* from the MIBs: the two agree, but for events in flight */
    const struct hw_map_entry *maps;
    size_t map_count;
    const struct hw_stack_node *nodes;
    size_t node_count;
    struct hw_profile_context *contexts; /* those with any events or counts; sorted by id */
    size_t context_count;
    const struct hw_context_entry *context_entries; /* all, by id (free stacks are found here too) */
    size_t context_entry_count;
    struct hw_profile_point *timeline;
    size_t timeline_count;
    const struct hw_free_stack *free_stacks;
    size_t free_stack_count;
    const struct hw_memory_breakdown *memory; /* as stored: ticks */
    size_t memory_count;
    const struct hw_ledger_row *ledger; /* as stored; indexes are valid */
    size_t ledger_count;
    const struct hw_mapping *mappings; /* likewise */
    size_t mapping_count;
    const struct hw_leak *leaks; /* as stored, of contexts that exist */
    size_t leak_count;
    const struct hw_leak_info *leak_search; /* NULL: nobody looked what can still be reached */
    const struct hw_keep_info *keep_search; /* NULL: nobody looked who keeps what; indexes of the next are valid */
    const struct hw_keeper *keepers;
    size_t keeper_count;
    const struct hw_kept *kept;
    size_t kept_count;
    const struct hw_keep_edge *keep_edges;
    size_t keep_edge_count;
    const struct hw_content_info *content_search; /* NULL: nobody looked what blocks hold */
    const struct hw_contents *contents;
    size_t content_count;
    const struct hw_content_example *content_examples;
    size_t content_example_count;
    const struct hw_heap_pages *heap_pages; /* NULL: nobody looked; contexts of the next exist */
    const struct hw_pin *pins;              /* by context */
    size_t pin_count;
    const struct hw_occupancy *occupancy;
    size_t occupancy_count;
    const struct hw_page_group *page_groups;
    size_t page_group_count;
    const struct hw_perf_info *perf; /* NULL: no samples of perf were imported; contexts of the next exist */
    const struct hw_perf_count *perf_counts;
    size_t perf_count;
    const struct hw_perf_side *perf_sides; /* by line */
    size_t perf_side_count;
    const struct hw_run *runs; /* of a merged profile: what was merged */
    size_t run_count;
    const struct hw_note *notes;
    size_t note_count;
    const struct hw_profile_region *regions; /* most bytes first, then by name; each name and scope once */
    size_t region_count;
    const struct hw_profile_mark *marks; /* sorted by time */
    size_t mark_count;
    bool access_counted;               /* what follows up to histogram_count means something */
    struct hw_access_info access_info; /* all zero when it is missing */
    struct hw_profile_accesses access; /* sum of all contexts */
    uint64_t harvest_ns;               /* when live blocks and globals were read */
    uint64_t unharvested_contexts;     /* with live blocks of which the harvest came too early: see model_access.c */
    const struct hw_global_granule *globals; /* sorted by map and offset, each granule once; map may be HW_NONE */
    size_t global_count;
    const struct hw_profile_histogram *histogram; /* freed and live blocks together; sorted by context and word */
    size_t histogram_count;
    /* With 4-byte granules (access_info.granule), instead of the histogram: freed and live blocks together, sorted by
     * context and word; and, where free stacks were recorded, freed blocks by where they were freed, sorted by that as
     * well. Reads and writes everywhere are numbers of periods then: hw_profile_counts_periods. */
    const struct hw_profile_words *words, *freed_words;
    size_t word_count, freed_word_count;
    struct hw_profile_fields fields;
    const struct hw_symbolised *symbolised; /* symbolised.h; NULL: names have to be looked for in the binaries */
    /* Sampled accesses: estimates of shares, in no count above. The two lists are sorted, each thing once. */
    bool accesses_sampled; /* they were asked for: sample_info says what came of it */
    struct hw_sample_info sample_info;
    const struct hw_sample_context *sample_contexts; /* by context */
    size_t sample_context_count;
    const struct hw_sample_count *sample_counts; /* words, then places; by context, map, offset */
    size_t sample_count_count;
    const struct hw_sample_access *sample_accesses; /* single ones, those of a burst together */
    size_t sample_access_count;
    const struct hw_global_granule *sampled_globals; /* in 8 bytes each; sorted by map and offset */
    size_t sampled_global_count;
    const struct hw_profile_allocator *observed; /* NULL: the allocator itself was not */
    /* Lines that threads share, and at least one of them writes: who does. Sorted (hw_side_compare), each thing once;
     * with 4-byte granules reads and writes of counted ones are periods. Roles 0 and 1 are always there. */
    const struct hw_thread_role *roles;
    size_t role_count;
    const struct hw_side *sides;
    size_t side_count;
    const struct hw_profile_places *places; /* NULL: nor was what lies where */
    /* How sizes and lifetimes are distributed; sorted by context, then by size and lifetime, each bar once. */
    bool bars_recorded; /* not by older versions, nor LLVM's runtime */
    struct hw_profile_size_bar *size_bars;
    size_t size_bar_count;
    struct hw_profile_life_bar *life_bars;
    size_t life_bar_count;
    const char *strings;
    size_t string_size;
    char **problems; /* sentences: what is damaged or missing in the file and what was saved of it */
    size_t problem_count;
    /* Numbers that cannot all be true (invariants.c). Readers report them, and show the numbers all the same. */
    char **contradictions;
    size_t contradiction_count;
    void *storage; /* private */
};

/* The heap at the peak (HW_MOMENT_PEAK), exact but for what has to be measured; at the end (HW_MOMENT_END). False: not
 * known. */
bool hw_profile_heap_parts(const struct hw_profile_places *places, enum hw_memory_moment moment,
                           struct hw_heap_parts *parts);
/* As it is in the file; NULL when there is none. */
const struct hw_places_moment *hw_profile_places_moment(const struct hw_profile_places *places,
                                                        enum hw_memory_moment moment);
/* Allocator mode: whether totals.bytes is exact. Where it was not followed what lies where, what reallocations added is
 * missing; profiles of older versions estimate it. */
static inline bool hw_profile_bytes_exact(const struct hw_profile *profile)
{
    const struct hw_profile_allocator *observed = profile->observed;
    return observed && observed->bytes_known &&
           (observed->info.flags & HW_ALLOCATOR_PLACES || !observed->reallocations);
}
enum hw_size_group hw_profile_size_group(const struct hw_profile_allocator *allocator, uint32_t bucket);
/* Sums of all phases, and of all kinds unless KIND (enum hw_operation_kind) is not negative. */
struct hw_profile_call hw_profile_call_of(const struct hw_profile_inside *inside, enum hw_system_call call, int kind);
void hw_lock_use_add(struct hw_lock_use *to, const struct hw_lock_use *from);
struct hw_lock_use hw_lock_use_of(const struct hw_operation_lock *lock);
void hw_profile_events_add(struct hw_profile_events *to, const struct hw_profile_events *from);
void hw_profile_operation_add(struct hw_profile_operation *to, const struct hw_profile_operation *from);
/* Mean ticks of an operation, and the number of ticks that a share of them (0 to 1) does not exceed; NAN when none was
 * timed. Percentiles are interpolated within bins of 9 % width, and never above the longest one. */
double hw_profile_operation_mean(const struct hw_profile_operation *operation);
double hw_profile_operation_percentile(const struct hw_profile_operation *operation, double share);
/* Ticks that all of them took: mean times count; 0 when none was timed. */
double hw_profile_operation_total(const struct hw_profile_operation *operation);
/* All phases and sizes of one kind. */
struct hw_profile_kind {
    uint64_t count, timed; /* operations; those of phases and sizes of which any was timed */
    double ticks;          /* that all of these took */
};
struct hw_profile_kind hw_profile_kind_of(const struct hw_profile_allocator *allocator, enum hw_operation_kind kind);
/* Ticks that all operations took; those on the critical way: of serial stages, and of parallel ones the slowest thread
 * (without stages all of them); that threads were alive, added up (NAN: not known). */
double hw_profile_operations_ticks(const struct hw_profile_allocator *allocator);
double hw_profile_critical_ticks(const struct hw_profile_allocator *allocator);
double hw_profile_thread_ticks(const struct hw_profile_allocator *allocator);
/* Ticks that Heapwise itself took on that critical path, as far as known: usual operations, checks of system calls,
 * timing. */
double hw_profile_own_critical_ticks(const struct hw_profile_allocator *allocator);
/* A time inside operations. */
uint64_t hw_profile_operation_ns(const struct hw_profile_allocator *allocator, uint64_t ticks);
/* Sums of two for the same call stack and kind; sorts COUNT of them by these and adds up those for the same, returns
 * how many are left. */
size_t hw_operation_sites_join(struct hw_operation_site *sites, size_t count);
void hw_operation_lives_add(struct hw_operation_lives *to, const struct hw_operation_lives *from);
void hw_profile_call_add(struct hw_profile_call *to, const struct hw_profile_call *from);

int hw_sample_count_compare(const struct hw_sample_count *a, const struct hw_sample_count *b);
/* Their order, by everything but the counts (for qsort); the sum of two for the same thing; sorts COUNT of them and
 * adds up those, returns how many are left. */
int hw_side_compare(const void *left, const void *right);
void hw_side_add(struct hw_side *to, const struct hw_side *from);
size_t hw_sides_join(struct hw_side *sides, size_t count);
void hw_sample_context_add(struct hw_sample_context *to, const struct hw_sample_context *from);

/* True unless the numbers are not in the file. What was not measured is never shown as 0. Where events are not measured
 * `frees` is the number of blocks whose lifetime is known. */
bool hw_profile_measured(const struct hw_profile *profile, enum hw_measured what);

/* Reads the file, also one of LLVM's (raw versions 3 to 5, indexed versions 2 to 4). NULL with ERROR when it is not a
 * profile or nothing can be saved of it. When it is damaged but part of it can be read, returns that part with
 * `problems`. Verbs then print them and exit with 2 after their output. */
struct hw_profile *hw_profile_read(const char *path, struct hw_error *error);
/* The same for a file in memory; NAME stands for its path. The bytes are copied. */
struct hw_profile *hw_profile_read_bytes(const void *bytes, size_t size, const char *name, struct hw_error *error);
void hw_profile_free(struct hw_profile *profile);

/* The string at OFFSET, "" when out of range. Lives as long as the profile. */
const char *hw_profile_string(const struct hw_profile *profile, uint32_t offset);

/* Whether code of a library handles objects of this type, which its headers define: library_types.def. */
bool hw_profile_is_library_type(const char *name);

/* Whether accesses are not counted, but the periods of a sampler in which each word was used, added up over words. */
static inline bool hw_profile_counts_periods(const struct hw_profile *profile)
{
    return profile->access_counted && profile->access_info.granule == 4;
}

/* Adds what is known of other blocks, by the rules of numbers.def: all but the accesses. Threads may be the same ones
 * in both: the greater count is what is known. */
void hw_profile_context_add(struct hw_profile_context *to, const struct hw_profile_context *from);
/* Adds what was counted for other blocks. */
void hw_profile_access_add(struct hw_profile_access *to, const struct hw_profile_access *from);
void hw_profile_accesses_add(struct hw_profile_accesses *to, const struct hw_profile_accesses *from);
void hw_profile_totals_add(struct hw_thread_entry *to, const struct hw_thread_entry *from);
/* Runs of words: their order, by context, free context and place (for qsort), and the sum of two of one place. */
int hw_profile_words_compare(const void *left, const void *right);
void hw_profile_words_add(struct hw_profile_words *to, const struct hw_profile_words *from);

/* A + B, UINT64_MAX when that does not fit. */
static inline uint64_t hw_add_saturating(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Reads, writes, and those of which it is not known which of the two. */
static inline uint64_t hw_profile_access_total(const struct hw_profile_access *access)
{
    return hw_add_saturating(hw_add_saturating(access->reads, access->writes), access->unsplit);
}

/* What threads share of the blocks: granules, or lines of which they use different granules. */
static inline uint64_t hw_profile_access_shared(const struct hw_profile_access *access)
{
    return access->shared_granules ? access->shared_granules : access->lines_false_shared;
}

/* The peak of a sampled run without the bias of the greatest of many estimates; of another one what it says. For the
 * process section as the process wrote it; hw_profile.process has it already. */
uint64_t hw_sampled_peak(const struct hw_process_info *process, int64_t live_bytes);
uint64_t hw_profile_ticks_to_ns(const struct hw_profile *profile, uint64_t ticks);
uint64_t hw_process_ns(const struct hw_process_info *process, uint64_t ticks);
/* When counts of events begin: at the start, or at the latest reset. Of one run; 0 for merged ones. */
uint64_t hw_profile_counted_from_ns(const struct hw_profile *profile);

/* Right after the process has ended: records how (exit code or signal) and when in the file of a process that could not
 * do so itself, cuts off the unused tail, and seals it. Used by `heapwise record`. False with ERROR on failure. A file
 * that is sealed already only gets the exit status if it has none. OOM_KILLS: of its cgroup during the run; only kept
 * where the OOM killer may have ended this process. */
bool hw_profile_close(const char *path, enum hw_exit_kind kind, int value, uint64_t peak_rss_bytes, uint32_t oom_kills,
                      struct hw_error *error);

/* What a process needs now, as the kernel says; 0: not known. */
struct hw_snapshot_memory {
    uint64_t rss_bytes, peak_rss_bytes;
};
/* Writes a sealed copy of the profile that is open as PROFILE (PATH is for messages) into the new file that is open as
 * FILE, while the process may go on writing it. The process is not touched. False with ERROR on failure: what is in
 * FILE then is no profile. */
bool hw_profile_snapshot(int profile, const char *path, const struct hw_snapshot_memory *memory, int file,
                         struct hw_error *error);
/* The process section of the open profile, as it is at this moment, and where in the file it lies. */
bool hw_profile_process(int profile, const char *path, struct hw_process_info *process, uint64_t *offset,
                        struct hw_error *error);

#endif
