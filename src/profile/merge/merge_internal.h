/* merge_internal.h - what the files of the merge share; see merge.h. */
#ifndef HW_PROFILE_MERGE_MERGE_INTERNAL_H
#define HW_PROFILE_MERGE_MERGE_INTERNAL_H

#include <pthread.h>

#include "base/index.h"
#include "profile/container/container.h"
#include "profile/llvm/llvm.h"
#include "profile/merge/merge.h"

/* What cannot be mixed. */
enum hw_merge_class { HW_MERGE_NOTHING, HW_MERGE_OWN, HW_MERGE_RAW, HW_MERGE_INDEXED };

/* A file with code, or all code that was generated at run time. */
struct hw_merge_module {
    uint8_t build_id[32];
    uint32_t build_id_size;
    char *path;                      /* the smallest of those it was seen at */
    uint64_t start, end;             /* addresses of its code in the file */
    uint64_t offset;                 /* of `start` in the file */
    uint64_t loaded_ns, unloaded_ns; /* unloaded: 0 when it stayed in some process */
    uint32_t unseen_operations;      /* the most of any of its maps */
    uint32_t flags;                  /* enum hw_map_flags */
    uint32_t rank;                   /* when finishing: its index in the result */
};

/* A frame in the tree of calls. */
struct hw_merge_node {
    uint64_t offset; /* in the module's file; in LLVM's indexed profiles the number of the frame */
    uint32_t module; /* HW_NONE: not known */
    uint32_t parent; /* 0: the root */
    uint32_t id;     /* when finishing: its index in the result, 0: not there yet */
};

struct hw_merge_llvm_frame {
    struct hw_llvm_frame frame; /* `name` is the smallest one; owned */
    uint32_t rank;
};

/* A context: a call stack, apart for blocks of pools. Its index in its shard and the shard make a reference. */
struct hw_merge_entry {
    uint32_t node;  /* at which the stack ends; set last, under the tree's lock */
    uint32_t flags; /* enum hw_context_flags */
    bool pool;
    bool told;      /* blocks were counted; else only free stacks name it */
    uint32_t id;    /* when finishing: in the result */
    uint32_t input; /* the latest that has it, and the threads of that one: */
    uint64_t input_alloc_threads, input_free_threads;
    union {
        struct hw_profile_context own; /* lifetimes and ages saturate; `access` is allocated when first needed */
        struct hw_llvm_mib llvm;       /* the only member of which there is room in merges of LLVM's files */
    } sum;
};

struct hw_merge_free_stack {
    uint32_t alloc_context, free_context; /* references */
    uint64_t count, bytes;
};

struct hw_merge_note {
    uint32_t code;
    char *text;
    uint64_t count, first_ns;
};

struct hw_merge_region {
    struct hw_region sum; /* but for its name; times in ns */
    char *name;
};

struct hw_merge_run {
    struct hw_run run; /* but for its strings */
    char *executable, *allocator;
};

/* A text that all inputs agree on. */
struct hw_merge_text {
    char *text;
    size_t size; /* with its end; of a command: of all arguments */
    uint32_t count;
    bool set, differs;
};

#define HW_MERGE_SHARD_BITS 6
#define HW_MERGE_SHARDS     (1u << HW_MERGE_SHARD_BITS)
#define HW_MERGE_ENTRY_BITS (32 - HW_MERGE_SHARD_BITS)

struct hw_merge_shard {
    pthread_mutex_t lock;
    struct hw_store entries;
} __attribute__((aligned(64)));

struct hw_merge {
    /* ---- by admissions only ---- */
    enum hw_merge_class class;
    bool failed;                     /* no memory: part of an input was added */
    uint32_t granule;                /* 0: no input has counted accesses so far */
    char *granule_path, *class_path; /* of the inputs that decided, for messages */
    uint32_t inputs;
    struct hw_process_info process; /* sums; strings are beside it */
    struct hw_thread_entry totals;
    struct hw_access_info access_info;
    bool access_counted; /* in some input */
    uint64_t duration_ns;
    struct hw_merge_symbols *symbols;    /* merge_symbols.c; NULL: no input has any */
    struct hw_merge_fields *fields;      /* merge_fields.c; NULL: none */
    struct hw_merge_allocator *observed; /* merge_allocator.c; NULL: none */
    struct hw_merge_places *places;      /* merge_places.c; NULL: none */
    bool sampled;                        /* in some input accesses were sampled */
    struct hw_sample_info sample_info;
    struct hw_merge_text executable, allocator, allocator_path, options, command;
    struct hw_store modules, frames, notes, regions, runs, threads; /* merge_threads.c: struct hw_merge_thread */
    /* ---- contexts ---- */
    struct hw_merge_shard shard[HW_MERGE_SHARDS];
    pthread_mutex_t tree_lock; /* for nodes */
    struct hw_store nodes;
    pthread_mutex_t lock;                             /* for what follows */
    struct hw_store free_stacks, globals, histograms; /* globals: `map` is a module; elsewhere it and contexts are… */
    struct hw_store size_bars, life_bars;      /* merge_distributions.c: struct hw_profile_size_bar, …life_bar */
    struct hw_store words;                     /* …references. merge_words.c: struct hw_profile_words */
    struct hw_store roles, sides;              /* merge_sharing.c: struct hw_thread_role, hw_side */
    struct hw_store samples, sampled_contexts; /* merge_samples.c: struct hw_sample_count, hw_sample_context */
};

/* merge_threads.c: of all threads of a name and a start function; `map` is a module. */
struct hw_merge_thread {
    struct hw_thread_entry entry;
    struct hw_thread_detail detail;
};

/* How a map of the input lies. */
struct hw_merge_map {
    uint32_t module;
    bool skipped;   /* Heapwise's own runtime */
    bool generated; /* addresses mean nothing beyond the run */
    uint64_t start, end, bias;
};

struct hw_merge_input {
    const struct hw_profile *profile; /* one of the two */
    const struct hw_llvm_profile *llvm;
    uint32_t serial;
    struct hw_merge_map *map; /* by map or segment */
    size_t map_count;
    uint32_t *frame; /* by LLVM frame: its number in the merge */
    size_t frame_count;
};

/* ---- small sums ---- */

static inline void hw_sum(uint64_t *sum, uint64_t value)
{
    *sum = hw_add_saturating(*sum, value);
}

static inline void hw_sum_signed(int64_t *sum, int64_t value)
{
    *sum = (int64_t)((uint64_t)*sum + (uint64_t)value);
}

static inline void hw_keep_smaller(uint64_t *least, uint64_t value)
{
    *least = value < *least ? value : *least;
}

static inline void hw_keep_greater(uint64_t *most, uint64_t value)
{
    *most = value > *most ? value : *most;
}

static inline void hw_keep_greater_short(uint32_t *most, uint32_t value)
{
    *most = value > *most ? value : *most;
}

/* What is in ALL but not in PART. A sum that has reached its end stays there. */
static inline uint64_t hw_without(uint64_t all, uint64_t part)
{
    return all == UINT64_MAX ? all : all > part ? all - part : 0;
}

/* MODULE's place among those of the result, when they are sorted. */
static inline uint32_t hw_merge_rank(const struct hw_merge *merge, uint32_t module)
{
    return module == HW_NONE ? HW_NONE : ((struct hw_merge_module *)hw_store_at(&merge->modules, module))->rank;
}

static inline struct hw_merge_entry *hw_merge_entry_at(const struct hw_merge *merge, uint32_t reference)
{
    return hw_store_at(&merge->shard[reference >> HW_MERGE_ENTRY_BITS].entries,
                       reference & ((1u << HW_MERGE_ENTRY_BITS) - 1));
}

/* ---- merge_symbols.c ---- */

struct hw_merge_symbols;
void hw_merge_symbols_free(struct hw_merge_symbols *symbols);
/* By admissions, when the input's maps and frames are there. */
bool hw_merge_symbols_add(struct hw_merge *merge, const struct hw_merge_input *input, const struct hw_profile *profile);
/* Puts the symbols into TABLES, in which everything else is. */
bool hw_merge_symbols_finish(struct hw_merge *merge, struct hw_arena *arena, struct hw_tables *tables);

/* ---- merge_fields.c ---- */

struct hw_merge_fields;
void hw_merge_fields_free(struct hw_merge_fields *fields);
/* By admissions. */
bool hw_merge_fields_add(struct hw_merge *merge, const struct hw_profile *profile);
/* Puts the sections of counted fields into TABLES, in which the strings of all others are; before the symbols. */
bool hw_merge_fields_finish(struct hw_merge *merge, struct hw_arena *arena, struct hw_tables *tables);

/* ---- merge.c ---- */

/* VALUE of an input: SIZE bytes with COUNT things. TEXT is marked as differing if an earlier input had another value.
 * False when there is no memory. */
bool hw_merge_agree(struct hw_merge_text *text, const char *value, size_t size, uint32_t count);

/* ---- merge_allocator.c ---- */

struct hw_merge_allocator;
void hw_merge_allocator_free(struct hw_merge_allocator *all);
/* By admissions, when the input's maps are there: all that belongs to no call stack. */
bool hw_merge_allocator_admit(struct hw_merge *merge, const struct hw_merge_input *input,
                              const struct hw_profile *profile);
/* By sums, with the lock held: what does. REFERENCE: by context of the input. */
bool hw_merge_allocator_add(struct hw_merge *merge, const struct hw_profile *profile, const uint32_t *reference);
/* Puts the sections into TABLES; modules and contexts have their places in the result. */
bool hw_merge_allocator_finish(struct hw_merge *merge, struct hw_arena *arena, struct hw_tables *tables);

/* ---- merge_threads.c ---- */

/* By admissions, when the input's maps are there. */
bool hw_merge_threads_admit(struct hw_merge *merge, const struct hw_merge_input *input,
                            const struct hw_profile *profile);
/* Puts the sections of threads into TABLES; modules have their places in the result. */
bool hw_merge_threads_finish(struct hw_merge *merge, struct hw_arena *arena, struct hw_tables *tables);

/* ---- merge_places.c ---- */

struct hw_merge_places;
void hw_merge_places_free(struct hw_merge_places *all);
/* Likewise. */
bool hw_merge_places_admit(struct hw_merge *merge, const struct hw_profile *profile);
bool hw_merge_places_add(struct hw_merge *merge, const struct hw_profile *profile, const uint32_t *reference);
bool hw_merge_places_finish(struct hw_merge *merge, struct hw_arena *arena, struct hw_tables *tables);

/* ---- merge_samples.c ---- */

/* By admissions: how accesses were sampled. */
void hw_merge_samples_admit(struct hw_merge *merge, const struct hw_profile *profile);
/* By sums, with the lock held: where the samples fell. REFERENCE: by context of the input, HW_NONE where there is none.
 */
bool hw_merge_samples_add(struct hw_merge *merge, const struct hw_merge_input *input, const uint32_t *reference);
/* Puts the sections of samples into TABLES; modules and contexts have their places in the result. */
bool hw_merge_samples_finish(struct hw_merge *merge, struct hw_arena *arena, struct hw_tables *tables);

/* ---- merge_sharing.c ---- */

/* What threads do in lines that they share. */
bool hw_merge_sharing_add(struct hw_merge *merge, const struct hw_merge_input *input, const uint32_t *reference);
bool hw_merge_sharing_finish(struct hw_merge *merge, struct hw_arena *arena, struct hw_tables *tables);

/* ---- merge_distributions.c ---- */

/* Sizes and lifetimes as distributions. */
bool hw_merge_distributions_add(struct hw_merge *merge, const struct hw_profile *profile, const uint32_t *reference);
/* Completes MIBS. */
bool hw_merge_distributions_finish(struct hw_merge *merge, struct hw_arena *arena, struct hw_tables *tables);

/* ---- merge_words.c ---- */

/* Used words by position. */
bool hw_merge_words_add(struct hw_merge *merge, const struct hw_profile *profile, const uint32_t *reference);
bool hw_merge_words_finish(struct hw_merge *merge, struct hw_arena *arena, struct hw_tables *tables);

/* ---- merge_contexts.c ---- */

bool hw_merge_contexts_start(struct hw_merge *merge); /* once the class is known */
bool hw_merge_sum_profile(struct hw_merge *merge, const struct hw_merge_input *input);
bool hw_merge_sum_llvm(struct hw_merge *merge, const struct hw_merge_input *input);

#endif
