/* model.h - private to this folder: the parts from which model.c makes a profile of tables, a file each. */
#ifndef HW_PROFILE_MODEL_MODEL_H
#define HW_PROFILE_MODEL_MODEL_H

#include "profile/container/container.h"

/* ---- symbolised.c ---- */

/* Fills PROFILE's symbols, if there are any in TABLES; strings and maps of PROFILE are there already. False when the
 * memory does not suffice. */
bool hw_profile_take_symbols(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                             struct hw_problems *problems);

/* ---- model.c ---- */

struct hw_profile_builder {
    struct hw_profile *profile;
    struct hw_arena *arena;
    struct hw_tables *tables;
    struct hw_problems *problems;
    uint32_t *depths;   /* frames of the stack that ends in a node */
    bool *broken;       /* the stack that ends in a node has lost frames */
    uint64_t last_tick; /* latest moment that anything in the file speaks of */
};

static inline void hw_profile_note_tick(struct hw_profile_builder *builder, uint64_t tick)
{
    if (tick > builder->last_tick)
        builder->last_tick = tick;
}

/* ---- model_contexts.c ---- */

/* Fills the profile's contexts; its process, clock and context entries are there already. False when the memory does
 * not suffice. */
bool hw_profile_take_contexts(struct hw_profile_builder *builder);

/* ---- model_threads.c ---- */

/* Fills PROFILE's threads; its process, maps and contexts are there already. False when the memory does not suffice. */
bool hw_profile_take_threads(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                             struct hw_problems *problems);

/* ---- model_keeps.c ---- */

/* Fills who keeps blocks; maps and context entries are there already. */
void hw_profile_take_perf(struct hw_profile *profile, const struct hw_tables *tables, struct hw_problems *problems);
void hw_profile_take_pins(struct hw_profile *profile, const struct hw_tables *tables, struct hw_problems *problems);
void hw_profile_take_keeps(struct hw_profile *profile, const struct hw_tables *tables, struct hw_problems *problems);

/* ---- model_contents.c ---- */

/* Fills what blocks hold; context entries are there already. */
void hw_profile_take_contents(struct hw_profile *profile, const struct hw_tables *tables, struct hw_problems *problems);

/* ---- model_samples.c ---- */

/* Fills PROFILE's part of sampled accesses in the same way. */
bool hw_profile_take_samples(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                             struct hw_problems *problems);

/* ---- model_allocator.c ---- */

/* What becomes of an entry of a section. */
enum hw_taken { HW_TAKEN, HW_TAKEN_NOT, HW_TAKEN_DAMAGED };
/* A copy of those entries of TABLE, of SIZE bytes, which TAKE (it may change them) wants, sorted by COMPARE, and how
 * many there are. If some are damaged the sentence DAMAGE is a problem. NULL when there is no memory. */
void *hw_profile_take_list(struct hw_arena *arena, const struct hw_table *table, size_t size,
                           enum hw_taken (*take)(const void *closure, void *entry), const void *closure,
                           int (*compare)(const void *, const void *), struct hw_problems *problems, const char *damage,
                           size_t *count);

/* Fills PROFILE's part of what was observed of the allocator; process and contexts are there already. END_TICK: the
 * latest moment that the file speaks of. False when the memory does not suffice. */
bool hw_profile_take_allocator(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                               struct hw_problems *problems, uint64_t end_tick);
/* Makes what contexts are estimated to have agree with the totals that are known exactly. Last of all. */
void hw_profile_fit_observed(struct hw_profile *profile);

/* ---- model_sharing.c ---- */

/* Fills what threads do in shared lines; needs the counted accesses. */
bool hw_profile_take_sharing(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                             struct hw_problems *problems);

/* ---- model_inside.c ---- */

/* Fills INSIDE; maps and notes of PROFILE are there already. False when the memory does not suffice. */
bool hw_profile_take_inside(struct hw_profile_inside *inside, const struct hw_profile *profile, struct hw_arena *arena,
                            const struct hw_tables *tables);

/* ---- sampled_peak.c ---- */

/* Sampled runs: makes the peak, its variance and the shares of contexts of what the two halves say. */
void hw_profile_fit_sampled_peak(struct hw_profile *profile);

/* ---- model_distributions.c ---- */

/* Fills the bars of sizes and lifetimes; contexts have their final numbers. */
bool hw_profile_take_distributions(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                                   struct hw_problems *problems);

/* ---- invariants.c ---- */

/* Sets the contradictions of a profile that is complete otherwise. */
void hw_profile_check_invariants(struct hw_profile *profile, struct hw_arena *arena);

/* ---- model_places.c ---- */

/* Fills what lies where; contexts are there already. */
bool hw_profile_take_places(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                            struct hw_problems *problems);

/* ---- model_access.c ---- */

/* Fills PROFILE's part of counted accesses from TABLES; maps, contexts and clock of PROFILE are there already. False
 * when the memory does not suffice. */
bool hw_profile_take_accesses(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                              struct hw_problems *problems);

/* Whether blocks of context ID were freed after live ones were read: then their counts may be counted
 * twice. */
bool hw_profile_freed_since_harvest(const struct hw_profile *profile, uint32_t id);

/* ---- model_fields.c ---- */

/* Fills PROFILE's part of counted fields, and the types of contexts; strings, contexts with their accesses, and clock
 * are there already. False when the memory does not suffice. */
bool hw_profile_take_fields(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                            struct hw_problems *problems);

/* ---- model_allocator_facts.c ---- */

/* Fills what ALLOCATOR says of how the allocator works and what others would do. False when the memory does not
 * suffice. */
bool hw_profile_take_facts(struct hw_profile_allocator *allocator, struct hw_arena *arena,
                           const struct hw_tables *tables, struct hw_problems *problems);

#endif
