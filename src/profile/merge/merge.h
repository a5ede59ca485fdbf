/* merge.h - adds up profiles, of any number of processes, into one.
 *
 *   merge.c           what is known of the processes as a whole: modules, totals, runs, notes
 *   merge_allocator.c what was observed of the allocator itself
 *   merge_contexts.c  call stacks and what was counted for them
 *   merge_fields.c    counted fields of structs
 *   merge_places.c    what the allocator made of its memory
 *   merge_samples.c   sampled accesses
 *   merge_sharing.c   who uses lines that threads share
 *   merge_symbols.c   names, where inputs bring them along
 *   merge_tables.c    the sum as the tables of a profile file (HW_PROCESS_MERGED), from which write.h makes the file
 *   merge_words.c     used words by position
 *
 * A frame is known by its module (build id, or path where there is none) and its address in the module's file, so that
 * neither the addresses nor the order at and in which modules were loaded matter. Sums do not depend on the order of
 * what is added nor on its grouping: merging merged profiles gives the same bytes as merging all of them at once.
 * What does not add up (timeline, memory breakdown, stages, memory over time) is left out. Memory grows with the
 * different contexts only. */
#ifndef HW_PROFILE_MERGE_MERGE_H
#define HW_PROFILE_MERGE_MERGE_H

#include <stdbool.h>

#include "base/error.h"

struct hw_arena;
struct hw_llvm_profile;
struct hw_profile;
struct hw_tables;

struct hw_merge;
struct hw_merge_input;

/* NULL when there is no memory. */
struct hw_merge *hw_merge_new(void);
void hw_merge_free(struct hw_merge *merge);

/* Adds PROFILE. False with ERROR and nothing added when it is of another kind than what was added before: accesses
 * counted by other granules, Heapwise's own and LLVM's, LLVM's raw and indexed ones. False as well without memory: then
 * the merge is of no use any more. Profiles with problems are the caller's to refuse. */
bool hw_merge_add(struct hw_merge *merge, const struct hw_profile *profile, struct hw_error *error);

/* The same in two steps, for several threads: admissions follow one another, in the order of inputs; sums run at the
 * same time as each other and as admissions. What was admitted must be summed, and stay until then. hw_merge_sum frees
 * INPUT; when it fails (no memory) the merge is of no use any more. */
/* One of LLVM's files, without the way over a struct hw_profile. PATH is for messages. */
struct hw_merge_input *hw_merge_admit_llvm(struct hw_merge *merge, const struct hw_llvm_profile *profile,
                                           const char *path, struct hw_error *error);
bool hw_merge_sum(struct hw_merge *merge, struct hw_merge_input *input, struct hw_error *error);

/* A file that may be merged: Heapwise's own in any state, or one of LLVM's. */
struct hw_merge_source {
    const char *path;
    struct hw_profile *profile;   /* one of the two */
    struct hw_llvm_profile *llvm; /* as it was read, without the way over a struct hw_profile */
};
/* False with ERROR when it cannot be read, is no profile, or is damaged, even if part of it could be saved. */
bool hw_merge_read(const char *path, struct hw_merge_source *source, struct hw_error *error);
void hw_merge_source_free(struct hw_merge_source *source);
struct hw_merge_input *hw_merge_admit_source(struct hw_merge *merge, const struct hw_merge_source *source,
                                             struct hw_error *error);

/* The sum in TABLES, whose entries are in ARENA. False with ERROR: no memory, more contexts than indexes can name, or
 * nothing was added. MERGE is used up. */
bool hw_merge_finish(struct hw_merge *merge, struct hw_arena *arena, struct hw_tables *tables, struct hw_error *error);

#endif
