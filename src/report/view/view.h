/* view.h - a profile joined with its symbols: what every kind of report is made from.
 *
 * Frames of Heapwise's own runtime are taken out, every distinct address is resolved once, and contexts whose stacks
 * are the same addresses in the same modules (path and build id) become one: a library that was loaded, unloaded and
 * loaded elsewhere does not split its contexts. Frames have roles (frame_roles.h): who reads stacks folds allocation
 * wrappers. Rules of the user (rules.h) leave out contexts and frames.
 *
 * Memory and time grow linearly with nodes, maps and contexts. Read-only after hw_view_new; the profile must outlive
 * it. */
#ifndef HW_REPORT_VIEW_VIEW_H
#define HW_REPORT_VIEW_VIEW_H

#include "profile/profile.h"
#include "base/index.h"
#include "symbols/symbols.h"

/* Whose code a module is. */
enum hw_module_kind {
    HW_MODULE_PROGRAM,  /* the executable, and libraries that are no system libraries */
    HW_MODULE_SYSTEM,   /* C and C++ run-time libraries, dynamic linker, vDSO, the allocator */
    HW_MODULE_GENERATED /* code without a file */
};

/* A file that was mapped, however often and wherever. */
struct hw_view_module {
    const char *path; /* "" for generated code */
    const char *name; /* its last component */
    const uint8_t *build_id;
    uint32_t build_id_size;
    uint32_t flags;             /* enum hw_map_flags of all its maps */
    uint32_t unseen_operations; /* struct hw_map_entry */
    enum hw_module_kind kind;
    uint32_t map;                               /* the first of its maps */
    int symbols;                                /* number in the symbolizer, or -1 */
    bool used;                                  /* some frame lies in it */
    bool uncounted;                             /* accesses are counted, but not those of its code */
    bool fields_uncounted;                      /* the same of fields */
    bool examined;                              /* its file was read: the next members hold */
    bool usable, has_debug_info;                /* its file, or a debug file, was read; with files and lines */
    enum hw_counting counting, counting_fields; /* of its code, where accesses are counted; fields */
    const char *problem;                 /* why its names are poor, one sentence that starts with its path; or NULL */
    uint64_t loaded_tick, unloaded_tick; /* of the first and the last time; unloaded_tick is 0 while it is mapped */
    uint64_t code_start, code_end;       /* addresses of its code, as in the ELF file */
    uint64_t bias;                       /* of its first map: address in memory - address in the ELF file */
};

/* A distinct address. */
struct hw_view_location {
    uint64_t address; /* as in the ELF file; as in memory where MODULE is HW_NONE or generated; of an LLVM profile
                         without addresses the number of its frame */
    uint32_t module;  /* index, or HW_NONE */
    bool answered;    /* by a file or by the profile's own symbols: what has no name has none */
    struct hw_frames frames;
    uint8_t *roles; /* enum hw_frame_role of each frame; NULL: not decided */
};

/* The tree of calls without the runtime's frames; node 0 is the root. */
struct hw_view_node {
    uint32_t parent; /* always smaller than the own index */
    uint32_t location;
};

struct hw_view_context {
    struct hw_profile_context sum; /* id: the smallest of those merged; leaf: index into the VIEW's nodes */
    uint32_t merged;               /* number of the profile's contexts in it */
    uint32_t index;                /* of this context in the view */
    uint32_t stacks;               /* 1; more in sums of call_paths.h */
};

/* One function of a stack: an entry of a location's inline chain. */
struct hw_view_frame {
    const struct hw_frame *symbol;       /* never NULL */
    const struct hw_view_module *module; /* NULL when unknown */
    uint64_t address;
    uint32_t location;
    uint8_t role; /* enum hw_frame_role */
};

/* A stack, leaf first. Zero-initialise, use for any number of stacks, free with hw_view_stack_free. */
struct hw_view_stack {
    struct hw_view_frame *frames;
    size_t count, capacity;
    bool unfolded; /* of the view: allocation wrappers are not passed by */
};

/* Who freed the blocks of a context. */
struct hw_view_free_stack {
    uint32_t context; /* index into contexts */
    uint32_t leaf;    /* node */
    uint64_t count, bytes;
};

/* Accesses to one granule of a module's data. */
struct hw_view_granule {
    uint32_t module;
    uint32_t flags; /* as in struct hw_global_granule */
    uint64_t address;
    uint64_t reads, writes, unsplit;
};

/* A variable, variables that share granules, or data without a symbol, with what was counted there. Each granule is in
 * exactly one of them. */
struct hw_view_global {
    uint32_t module; /* index, or HW_NONE */
    uint32_t symbol_count;
    const struct hw_data_symbol
        *symbols;           /* 1: all granules belong to this variable alone. More: the granules hold parts
                             * of each of them, and which one was meant is not known. 0: no symbol */
    const char *section;    /* where there is no symbol; or NULL */
    uint64_t address, size; /* as in the ELF file; of the variable, else of the granules */
    uint64_t reads, writes, unsplit;
    uint64_t in_shared_granules; /* further accesses, to granules that this variable shares with others: some of them
                                  * may be its own. They are counted in another entry */
    uint64_t shared_granules, shared_written, shared_writers, saturated; /* of its granules, by threads */
    uint64_t lines_false, lines_true, lines_handed, lines_hot; /* 64-byte lines with granules of it, by threads */
    size_t granule, granule_count;                             /* its granules: a range of the view's */
};

/* `context` is an index into contexts, `free_context` a leaf or HW_NONE; sorted by both, then by first_word. */
struct hw_view_words {
    struct hw_profile_words *runs;
    size_t count;
};

/* A lock that was used inside operations of the allocator. */
struct hw_view_lock {
    const struct hw_operation_lock *lock;
    uint32_t module;                     /* whose data it is: index, or HW_NONE */
    const struct hw_data_symbol *symbol; /* the variable it is or lies in; NULL: not known */
};

/* Threads that were started with the same routine by the same call stack. */
struct hw_view_role {
    uint32_t routine; /* index into locations; HW_NONE: not known */
    uint32_t leaf;    /* node, of the stack that started them; 0: not known */
    uint64_t threads;
};

/* A thread of the profile, or several that were added up. */
struct hw_view_thread {
    const struct hw_profile_thread *is;
    uint32_t location, frame; /* its start function; HW_NONE: not known */
    uint32_t started;         /* leaf of the stack that started it, 0: not known */
};

/* What kinds of operations are called, by enum hw_operation_kind: in JSON, and for people. */
extern const char *const hw_operation_kind_keys[], *const hw_operation_kind_names[];

/* Sums of some contexts; pools are in COUNT alone. */
struct hw_view_part {
    size_t count;
    uint64_t peak, bytes, leaked, allocations;
};

/* Operations of one kind and call stack, by their timed ones. With n of them the standard error of what they took is
 * about sqrt((1 + v) / n), v being the variance of one by the square of its mean: 1 or more for operations of an
 * allocator, of which a few are much slower than the rest. So n = 7 gives +- 107 % (two errors), 30 gives +- 52 %: then
 * twice as much is more. Fewer are not ranked, unless all were timed, so that nothing is estimated. */
#define HW_VIEW_TIMED_LEAST 30
struct hw_view_site {
    uint32_t context; /* a node of the view */
    uint32_t kind;    /* enum hw_operation_kind */
    uint64_t samples, weight, ticks, most;
    uint64_t bytes;
    bool ranked;
};

struct hw_view {
    const struct hw_profile *profile;
    const char *function;                            /* of the options: only its contexts are kept */
    const char *(*type)(void *closure, uint64_t id); /* of the options */
    void *closure;
    struct hw_view_module *modules;
    size_t module_count;
    struct hw_view_location *locations;
    size_t location_count;
    struct hw_view_node *nodes;
    size_t node_count;
    struct hw_view_context *contexts; /* sorted by id; only those with blocks */
    size_t context_count;
    uint32_t *index_of; /* by id of the profile: index of the context it is in, HW_NONE: none */
    size_t id_count;
    struct hw_view_free_stack *free_stacks; /* sorted by context, greatest count first */
    size_t free_stack_count;
    struct hw_profile_accesses *accesses;   /* of the contexts; NULL when accesses were not counted */
    struct hw_profile_histogram *histogram; /* `context` is an index into contexts; sorted by it, then by first_word */
    size_t histogram_count;
    struct hw_profile_size_bar *size_bars; /* `context` is an index into contexts; sorted by it, then by size */
    size_t size_bar_count;
    struct hw_profile_life_bar *life_bars; /* likewise, then by lifetime */
    size_t life_bar_count;
    struct hw_view_words words, freed_words; /* of all blocks; of freed ones by where they were freed */
    struct hw_view_granule *granules;        /* sorted by module and address */
    size_t granule_count;
    struct hw_view_global *globals; /* most accesses first */
    size_t global_count;
    uint64_t global_reads, global_writes, global_unsplit;
    uint64_t global_hot_lines; /* with globals, which threads share falsely and often */
    /* Sampled accesses; NULL when there are none. */
    struct hw_sample_context *sampled;     /* by index of the context: sums */
    struct hw_sample_count *sample_counts; /* words and places; `context` is an index into contexts, `map` of places one
                                            * into locations; sorted as in the profile */
    size_t sample_count_count;
    struct hw_sampled_fields *sampled_fields; /* sampled_fields.h; NULL: not known */
    struct hw_view_lock *locks; /* in the order of the profile's */
    size_t lock_count;
    /* Allocator mode; of both `context` is a node of the view. */
    struct hw_view_site *sites; /* those that can be ranked first, most ticks first */
    size_t site_count, sites_ranked;
    struct hw_slow_operation *slowest; /* slowest first */
    size_t slowest_count;
    /* view_sides.c: what threads do in lines that they share and write. */
    struct hw_view_thread *threads; /* as in the profile; view_threads.c */
    size_t thread_count;
    uint32_t *thread_leaves; /* by thread place of the profile: the leaf of its stack, 0: not known */
    struct hw_view_role *roles; /* as in the profile */
    size_t role_count;
    struct hw_side *sides; /* `context` is an index into contexts, `map` one into locations or HW_NONE, `code` is 0;
                            * sorted as in the profile */
    size_t side_count;
    struct hw_view_keeps *keeps; /* keeps.h; NULL: not recorded */
    uint32_t *ledger_leaves, *mapping_leaves; /* stacks of what is in the profile's ledger and mappings */
    struct hw_data *data; /* by module; NULL, or empty for modules without globals, locks and keepers */
    bool *data_loaded;    /* by module */
    bool data_is_own;
    struct hw_symbolizer *symbolizer; /* NULL when no binary was needed or allowed */
    bool names_sought;                /* in the profile and in binaries, rather than not at all or by `resolve` */
    struct hw_frame *frames;          /* those of the profile's own symbols */
    struct hw_locator *locator;       /* has paths of modules, where the profile has not */
    struct hw_view_names *names;      /* has the frames of a profile without addresses */
    uint64_t samples;                 /* sampled allocations, in sampled runs */
    struct hw_thread_entry totals;    /* the profile's, or sums of the contexts where a damaged file has lost them */
    bool unfolded;                    /* of the options: no_fold */
    const struct hw_rules *rules;     /* of the options */
    uint8_t *roles_of_frames;         /* private to frame_roles.c */
    struct hw_view_cut *cut;          /* private to cut.c */
    struct hw_view_frame *structural; /* wrappers by structure alone (structure.c): one frame of each */
    size_t structural_count;
    struct hw_view_part named[2]; /* contexts of `function`: those where it allocates itself, those it is a caller in */
    struct hw_view_part left_out; /* by the rules: contexts that are not in the view */
    size_t hidden;                /* contexts with frames that the rules hide */
    const struct hw_suppressions *suppressions; /* of the options; NULL also where nobody searched */
    struct hw_suppressed *suppressed;           /* by each of them */
};

struct hw_view_options {
    bool no_symbols;              /* leave every frame as module + offset */
    const char *function;         /* only the contexts of this function (keep.c), and no globals; or NULL */
    const struct hw_rules *rules; /* rules.h; or NULL. Must outlive the view */
    const struct hw_suppressions *suppressions; /* suppressions.h; likewise */
    bool no_fold;                 /* allocation wrappers name contexts like any other function */
    bool cut_wrappers;            /* folded frames are taken out of the stacks: for exports */
    bool keep_frames;             /* no frames are taken out of the stacks, whatever the rules say */
    struct hw_symbolizer_options symbolizer;
    /* For profiles that lack the paths of modules, or the names of functions: programs and libraries to read first.
     */
    const char *const *binaries;
    size_t binary_count;
    /* When set, answers instead of the symbolizer (tests). Frames must live as long as the view. */
    struct hw_frames (*resolve)(void *closure, const char *module, uint64_t address);
    struct hw_data (*data)(void *closure, const char *module); /* the same; nothing of it is freed; may be NULL */
    const char *(*type)(void *closure, uint64_t id);           /* the same */
    void *closure;
};

/* NULL with ERROR when there is no memory. OPTIONS may be NULL. */
struct hw_view *hw_view_new(const struct hw_profile *profile, const struct hw_view_options *options,
                            struct hw_error *error);
void hw_view_free(struct hw_view *view);

/* The function of a frame at LOCATION: equal keys mean the same one. Code without a name is one at each address. */
static inline struct hw_key hw_view_function_key(const struct hw_view *view, const struct hw_view_location *location,
                                                 const struct hw_frame *symbol)
{
    return symbol->function ? (struct hw_key){(uintptr_t)symbol->function, location->module}
                            : (struct hw_key){(uintptr_t)(location - view->locations), HW_NONE - 1};
}

/* Fills STACK with the frames from LEAF to the root. False when there is no memory. */
bool hw_view_stack(const struct hw_view *view, uint32_t leaf, struct hw_view_stack *stack);
void hw_view_stack_free(struct hw_view_stack *stack);

/* The context with that id; NULL: none is shown. */
const struct hw_view_context *hw_view_context_of(const struct hw_view *view, uint32_t id);

/* The free stacks of a context: returns the first, sets COUNT. */
const struct hw_view_free_stack *hw_view_free_stacks(const struct hw_view *view, size_t context, size_t *count);

/* The name of the type of a context's blocks; NULL when it is not known, or when its blocks had several. */
const char *hw_view_type(const struct hw_view *view, const struct hw_profile_context *context);

/* The module that allocated when its own code does not count accesses, so that it may have used the blocks unseen; else
 * NULL. */
const struct hw_view_module *hw_view_uncounted_owner(const struct hw_view *view, const struct hw_profile_context *sum);
/* Code that does not count uses its blocks: it allocates them, was seen to write to some of them, or is known to handle
 * their type. What counted code does not touch may be used then. */
bool hw_view_used_unseen(const struct hw_view *view, const struct hw_profile_context *sum);
/* The number of modules, system libraries excepted, that do not count (FIELDS: fields): they may well use the program's
 * blocks; the first of them, or NULL. The C library is none. */
size_t hw_view_uncounted_libraries(const struct hw_view *view, bool fields, const struct hw_view_module **first);

/* The runs of words of a context: returns the first, sets COUNT. */
const struct hw_profile_histogram *hw_view_histogram(const struct hw_view *view, size_t context, size_t *count);

/* ---- view_distributions.c: sizes and lifetimes as distributions ---- */

/* The bars of a context: returns the first, sets COUNT. */
const struct hw_profile_size_bar *hw_view_size_bars(const struct hw_view *view, size_t context, size_t *count);
const struct hw_profile_life_bar *hw_view_life_bars(const struct hw_view *view, size_t context, size_t *count);
/* Sums over all contexts but pools, whose blocks lie in others; by bucket and by lifetime. Not sorted otherwise. */
void hw_view_sum_sizes(const struct hw_view *view, struct hw_profile_size_bar sums[HW_SIZE_BUCKETS]);
void hw_view_sum_lives(const struct hw_view *view, struct hw_profile_life_bar sums[HW_LIFETIME_UNKNOWN + 1]);
void hw_size_bar_add(struct hw_profile_size_bar *to, const struct hw_profile_size_bar *from);
/* Whether there is anything in it. */
static inline bool hw_size_bar_used(const struct hw_profile_size_bar *bar)
{
    return (bar->allocations | bar->reallocations | bar->bytes) || bar->live_blocks > 0 || bar->peak_blocks > 0;
}
/* For view.c: fills the bars. CONTEXT_OF has IDS entries: context by id. */
bool hw_view_make_distributions(struct hw_view *view, const uint32_t *context_of, size_t ids);

/* The sampled words or places of a context: returns the first, sets COUNT. */
const struct hw_sample_count *hw_view_sample_counts(const struct hw_view *view, enum hw_sample_kind kind,
                                                    size_t context, size_t *count);

/* Why sampling of accesses ended, or did not begin; NULL when there was no reason. */
const char *hw_sample_ended(const struct hw_sample_info *info);
/* Why the processor cannot sample accesses itself; ERROR as the runtime had it. */
const char *hw_sample_no_pmu(int error);
/* view_words.c: the same with 4-byte granules; of those that stack FREE_LEAF has freed. */
const struct hw_profile_words *hw_view_words(const struct hw_view *view, size_t context, size_t *count);
const struct hw_profile_words *hw_view_freed_words(const struct hw_view *view, size_t context, uint32_t free_leaf,
                                                   size_t *count);
/* Of the words of a block of SIZE bytes: how many were used in no block of the context. */
uint64_t hw_view_words_never_touched(const struct hw_view *view, size_t context, uint64_t size);
/* view_ledger.c, for view.c. */
bool hw_view_make_ledger(struct hw_view *view, const uint32_t *canonical);
void hw_view_free_ledger(struct hw_view *view);
/* view_operations.c, for view.c. */
bool hw_view_make_operations(struct hw_view *view, const uint32_t *canonical);
void hw_view_free_operations(struct hw_view *view);
/* For view.c and keep.c. */
bool hw_view_make_words(struct hw_view *view, const uint32_t *canonical, const uint32_t *context_of, size_t ids);
void hw_view_keep_words(struct hw_view *view, const uint32_t *kept);
void hw_view_free_words(struct hw_view *view);

/* What contexts can be sorted by: the lists of a report. Those from HW_SORT_ACCESSES on need counted accesses. */
enum hw_sort_key {
#define HW_BOTH(id, ...) HW_SORT_##id,
#define HW_LIST(id, ...) HW_SORT_##id,
#include "report/view/measures.def"
    HW_SORT_KEYS,
    HW_SORT_FIRST_OF_ACCESS = HW_SORT_ACCESSES
};

/* measure.c: 0 for contexts of pools in the lists before that of pools. */
uint64_t hw_sort_value(enum hw_sort_key key, const struct hw_view_context *context);

struct hw_ranked {
    uint64_t value;
    uint32_t index;
};

/* Indexes by value, greatest first, equal ones by index; to be freed. Frees RANKED. NULL when there is no memory, also
 * for RANKED. */
uint32_t *hw_ranked_indexes(struct hw_ranked *ranked, size_t count);

/* Indexes of the contexts with a value above zero (all contexts when ALL), greatest first, equal ones by id; *COUNT of
 * them. To be freed. NULL when there is no memory. */
uint32_t *hw_view_sorted(const struct hw_view_context *contexts, size_t context_count, enum hw_sort_key key, bool all,
                         size_t *count);

/* hw_profile_context_add, with the accesses. */
void hw_view_add_context(struct hw_profile_context *to, const struct hw_profile_context *from);

/* The latest breakdown of RSS at a moment, or NULL. */
const struct hw_memory_breakdown *hw_view_memory(const struct hw_view *view, enum hw_memory_moment moment);
/* "peak", "end" or "dump", as JSON and SQLite have it; NULL: it is none of them. */
const char *hw_view_moment_key(uint32_t moment);

/* The greatest resident size that was read: the kernel's own maximum is kept up to date only roughly, so that a point
 * of the timeline may lie above it. 0: not known. */
uint64_t hw_view_peak_rss(const struct hw_profile *profile);
/* Heapwise's own part of it, as of the reading with most resident memory; 0: it was not read, or PROFILE is a sum. */
uint64_t hw_view_own_memory(const struct hw_profile *profile);

/* The frame of a location in an LLVM profile without addresses; NULL in all others. */
const struct hw_llvm_frame *hw_view_llvm_frame(const struct hw_view *view, const struct hw_view_location *location);

/* Of the blocks that were freed. Of estimates sum and number are rounded apart: never outside of the range that was
 * recorded. */
static inline uint64_t hw_view_mean_lifetime(const struct hw_profile_context *sum)
{
    const uint64_t mean = sum->frees ? (uint64_t)(sum->lifetime_total_ns / sum->frees) : 0;
    return mean < sum->lifetime_min_ns   ? sum->lifetime_min_ns
           : mean > sum->lifetime_max_ns ? sum->lifetime_max_ns
                                         : mean;
}

static inline bool hw_view_measured(const struct hw_view *view, enum hw_measured what)
{
    return hw_profile_measured(view->profile, what);
}

/* Granules of a context's blocks that were never touched. */
static inline uint64_t hw_untouched_granules(const struct hw_profile_access *access)
{
    return access->granules - access->granules_touched;
}

/* Fewer accesses than one for each COLD_BYTES bytes that were allocated, over the whole run. */
#define HW_COLD_BYTES 8
bool hw_view_is_cold(const struct hw_profile_context *context);

/* ---- resolve.c ---- */

/* Gives locations their frames, and modules and types what is known of them. A symbolised profile has the answers;
 * what it lacks is read from the binaries. False with ERROR when there is no memory. */
bool hw_view_resolve(struct hw_view *view, const struct hw_view_options *options, struct hw_error *error);

/* The symbolizer, made when it is first needed, and MODULE in it; -1 when there is no memory. */
int hw_view_symbols(struct hw_view *view, struct hw_view_module *module, const struct hw_view_options *options,
                    struct hw_error *error);

/* The name of a type, NULL when it is not known. */
const char *hw_view_type_name(const struct hw_view *view, uint64_t id);

/* Copies the symbolizer's results about its modules. Call after the last query. */
void hw_view_examine_modules(struct hw_view *view);

/* ---- structure.c: after roles are known. False when there is no memory ---- */

/* Gives functions the role of a wrapper that have none by name but the structure of one. */
bool hw_view_find_wrappers(struct hw_view *view);
/* What is a wrapper by structure in one of two profiles is one in both: else it would be the difference. */
bool hw_view_share_wrappers(struct hw_view *one, struct hw_view *other);

/* ---- keep.c ---- */

/* Leaves only the contexts whose stacks have the view's function, by its readable or its linkage name, and what the
 * rules leave. False when there is no memory. */
bool hw_view_keep(struct hw_view *view);

/* ---- cut.c ---- */

/* Takes out of the stacks what the rules hide and, with WRAPPERS, what is folded. False when there is no memory. */
bool hw_view_cut_stacks(struct hw_view *view, bool wrappers);
void hw_view_free_cut(struct hw_view *view);

/* ---- view_samples.c ---- */

/* Fills the sampled-access arrays; adds to the locations. CONTEXT_OF has IDS entries: context by id. */
bool hw_view_make_samples(struct hw_view *view, const uint32_t *module_of, const uint32_t *context_of, size_t ids);

/* ---- view_sides.c ---- */

/* Adds code that is in no stack to the locations: room for MOST of them. */
struct hw_view_adder {
    struct hw_view *view;
    const uint32_t *module_of; /* module by map */
    struct hw_index known;
};
bool hw_view_adder_make(struct hw_view_adder *adder, struct hw_view *view, const uint32_t *module_of, size_t most);
/* The location of the code at OFFSET (address - bias) in MAP. */
uint32_t hw_view_adder_add(struct hw_view_adder *adder, uint32_t map, uint64_t offset);
void hw_view_adder_free(struct hw_view_adder *adder);

/* ---- view_threads.c ---- */

/* Fills threads; adds to the locations. Before names are known, and after. False when there is no memory. */
bool hw_view_make_threads(struct hw_view *view, const uint32_t *canonical, const uint32_t *module_of);
bool hw_view_name_threads(struct hw_view *view);
/* More than one is known, and no view of a part. */
bool hw_view_has_threads(const struct hw_view *view);
/* What the thread is, for people: "main thread", "signal handlers" …; NULL: its start function says it. */
const char *hw_view_thread_kind(const struct hw_view_thread *thread);

/* The same as a key: "main", "started", "handlers", "inherited", "unknown". FLAGS: of the thread. */
const char *hw_view_thread_key(uint32_t flags);

enum hw_thread_names { HW_NAMES_ONE, HW_NAMES_NUMBERED, HW_NAMES_DIFFER }; /* NUMBERED: they differ in digits */

/* Threads of one name and one start function: for tables that would be too long with each of them. */
struct hw_view_thread_row {
    const struct hw_view_thread *thread; /* one of them */
    uint32_t index;                      /* its index */
    enum hw_thread_names names;
    uint8_t joined;               /* 0: it is one thread; 1: those of its name; 2: of names that differ in digits */
    struct hw_profile_thread sum; /* its counts are those of all */
};
#define HW_THREADS_EACH 30 /* usual for MOST */
/* Rows of all threads, of most bytes at the peak first: one each, or (when there are more than MOST) one for each name
 * and start function, and (NUMBERED, if these are still more) for names that differ in digits. To be freed; *COUNT. NULL
 * when there is no memory. */
struct hw_view_thread_row *hw_view_thread_rows(const struct hw_view *view, size_t most, bool numbered, size_t *count);
bool hw_view_thread_in_row(const struct hw_view *view, uint32_t thread, const struct hw_view_thread_row *row);

/* Fills roles and sides; adds to the locations. CANONICAL: node by node of the profile. */
bool hw_view_make_sides(struct hw_view *view, const uint32_t *canonical, const uint32_t *module_of,
                        const uint32_t *context_of, size_t ids);

/* What one role of threads did in the shared lines of a context's blocks: entries that follow one another. */
struct hw_view_side {
    const struct hw_side *entries; /* of one sharing, kind and role */
    size_t count;
    uint64_t reads, writes, lines; /* sums; lines: of the entry with most */
    uint64_t first_byte, end_byte; /* from the first to behind the last of them */
};
/* The sides of CONTEXT with that SHARING (0: any), those of most writes first, at most CAPACITY; returns their number.
 */
#define HW_VIEW_SIDES 64 /* a capacity: more sides are hardly useful */
size_t hw_view_sides(const struct hw_view *view, size_t context, enum hw_side_sharing sharing,
                     struct hw_view_side *sides, size_t capacity);

/* ---- view_globals.c ---- */

/* Fills granules and globals. MODULE_OF: module by map. False with ERROR when there is no memory. */
bool hw_view_make_globals(struct hw_view *view, const uint32_t *module_of, const struct hw_view_options *options,
                          struct hw_error *error);
/* Bytes of a granule of globals. */
uint32_t hw_view_global_granule(const struct hw_view *view);
/* Loads the symbols of the module's data into view->data. */
bool hw_view_load_data(struct hw_view *view, uint32_t module, const struct hw_view_options *options,
                       struct hw_error *error);
void hw_view_free_globals(struct hw_view *view);

/* ---- view_locks.c ---- */

/* Fills locks. As hw_view_make_globals. */
/* The variable that holds ADDRESS, or NULL. */
const struct hw_data_symbol *hw_view_symbol_at(const struct hw_data *data, uint64_t address);
bool hw_view_make_locks(struct hw_view *view, const uint32_t *module_of, const struct hw_view_options *options,
                        struct hw_error *error);

/* Every count of a sampled run is an estimate. */
static inline bool hw_view_sampled(const struct hw_view *view)
{
    return view->profile->process.sample_bytes != 0 || view->profile->process.mode == HW_MODE_ALLOCATOR;
}
/* Sampled runs: whether the mean size of blocks lies among the sizes that were seen. Numbers and bytes are estimated
 * apart, so that it may not; then no mean is reported. */
static inline bool hw_view_mean_fits(const struct hw_view *view, const struct hw_profile_context *sum)
{
    const uint64_t mean = sum->allocations ? sum->bytes / sum->allocations : 0;
    return !hw_view_sampled(view) || (mean + 1 >= sum->size_min && mean <= sum->size_max);
}

/* "heap", "access", "allocator"; NULL: none of these. */
const char *hw_mode_name(uint32_t mode);
/* Two digits for each of SIZE bytes. */
void hw_hex(char *text, const uint8_t *bytes, uint32_t size);

#endif
