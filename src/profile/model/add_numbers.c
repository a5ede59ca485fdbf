/* add_numbers.c - sums of contexts and of counted accesses: see add_numbers.h. */
#include "profile/add_numbers.h"

#define LIFETIME_MOST (((unsigned __int128)1 << 96) - 1) /* what a MIB can hold */

/* Of the same moment the greater CPU: no matter which comes first. */
static void keep_last(uint64_t *time, uint32_t *cpu, uint64_t other_time, uint32_t other_cpu)
{
    if (other_time < *time || (other_time == *time && other_cpu <= *cpu))
        return;
    *time = other_time;
    *cpu = other_cpu;
}

static void add_lifetimes(struct hw_profile_context *to, const struct hw_profile_context *from)
{
    const unsigned __int128 more = from->lifetime_total_ns < LIFETIME_MOST ? from->lifetime_total_ns : LIFETIME_MOST;
    to->lifetime_total_ns = to->lifetime_total_ns < LIFETIME_MOST - more ? to->lifetime_total_ns + more : LIFETIME_MOST;
}

void hw_profile_context_add(struct hw_profile_context *to, const struct hw_profile_context *from)
{
#define HW_NUMBER(type, member, adds, of, ...) HW_BOUND_##adds(to, from, member, member, of)
#include "profile/numbers.def"
#define HW_NUMBER(type, member, adds, of, ...) HW_TOTAL_##adds(to, from, member, member, of)
#include "profile/numbers.def"
    if (from->allocations)
        keep_last(&to->last_alloc_ns, &to->last_alloc_cpu, from->last_alloc_ns, from->last_alloc_cpu);
    if (from->frees) { /* else an estimate may have rounded them to 0 */
        keep_last(&to->last_free_ns, &to->last_free_cpu, from->last_free_ns, from->last_free_cpu);
        add_lifetimes(to, from);
    }
    to->flags |= from->flags;
    to->pool |= from->pool;
    to->types_differ |= from->types_differ || (to->type && from->type && to->type != from->type);
    if (!to->type) {
        to->type_evidence = from->type_evidence;
        to->type_size = from->type_size;
    }
    to->type_many |= from->type_many;
    to->type = to->type && (!from->type || to->type < from->type) ? to->type : from->type;
    for (size_t i = 0; i < sizeof to->starts / sizeof *to->starts; i++)
        to->starts[i] = hw_add_saturating(to->starts[i], from->starts[i]);
}

void hw_profile_access_add(struct hw_profile_access *to, const struct hw_profile_access *from)
{
#define HW_ACCESS(type, member, adds, of, ...) HW_BOUND_##adds(to, from, member, member, of)
#include "profile/numbers.def"
    bool full = false;
#define HW_FULL_SUM(member) full |= to->member == UINT64_MAX;
#define HW_FULL_LEAST(member)
#define HW_FULL_MOST(member)
#define HW_ACCESS(type, member, adds, of, ...) HW_TOTAL_##adds(to, from, member, member, of) HW_FULL_##adds(member)
#include "profile/numbers.def"
    to->overflown |= from->overflown || full;
    to->flags |= from->flags;
    if (to->type && from->type && to->type != from->type)
        to->flags |= HW_ACCESS_TYPES_DIFFER;
    to->type = to->type && (!from->type || to->type < from->type) ? to->type : from->type;
}

void hw_profile_accesses_add(struct hw_profile_accesses *to, const struct hw_profile_accesses *from)
{
    hw_profile_access_add(&to->all, &from->all);
    hw_profile_access_add(&to->live, &from->live);
}

void hw_profile_totals_add(struct hw_thread_entry *to, const struct hw_thread_entry *from)
{
#define ADD(rule, member) HW_TOTAL_##rule(to, from, member, member, )
    /* clang-format off */
    ADD(SUM, allocations) ADD(SUM, frees) ADD(SUM, reallocations) ADD(SUM, temporary) ADD(SUM, bytes)
    ADD(SIGNED, live_bytes) ADD(SIGNED, live_blocks)
    ADD(SUM, foreign_frees) ADD(SUM, foreign_reallocs) ADD(SUM, failed) ADD(SUM, nested) ADD(SUM, lost)
    ADD(SUM, walks) ADD(SUM, verified) ADD(SUM, incomplete_walks)
    /* clang-format on */
}
