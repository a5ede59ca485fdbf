/* Merging, on random profiles: sums do not depend on order or grouping, down to the bytes of the file; nothing is lost;
 * what cannot be mixed is refused. */
#include "support/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profile/merge/merge.h"
#include "random_profiles.h"

/* ---- merging ---- */

/* The sum of COUNT profiles as a file. */
static struct bytes merged(struct hw_profile *const *profiles, size_t count)
{
    struct hw_merge *merge = hw_merge_new();
    struct hw_arena arena = {0};
    struct hw_tables tables;
    struct hw_error error = {""};
    assert_non_null(merge);
    for (size_t i = 0; i < count; i++)
        if (!hw_merge_add(merge, profiles[i], &error))
            fail_msg("%s", error.message);
    if (!hw_merge_finish(merge, &arena, &tables, &error))
        fail_msg("%s", error.message);
    const struct bytes bytes = serialize(&tables, false);
    hw_merge_free(merge);
    hw_arena_free(&arena);
    return bytes;
}

static struct hw_profile *merged_profile(struct hw_profile *const *profiles, size_t count)
{
    struct bytes bytes = merged(profiles, count);
    struct hw_profile *profile = read_back(&bytes);
    free(bytes.data);
    return profile;
}

static void assert_same(const struct bytes *expected, struct bytes actual, const char *what)
{
    if (expected->size != actual.size || memcmp(expected->data, actual.data, actual.size))
        fail_msg("%s: the files differ", what);
    free(actual.data);
}

/* ---- the laws ---- */

enum kind { HEAP, COARSE, FINE, WORDS, ALLOCATOR, MIXED, RAW, INDEXED, KINDS };
enum { OWN_KINDS = MIXED + 1 };
static const uint32_t granule_of[OWN_KINDS] = {[COARSE] = 64, [FINE] = 8, [WORDS] = 4, [ALLOCATOR] = OBSERVES};

static struct hw_profile *make_any(enum kind kind)
{
    const struct placing placing = {0x400000 * (1 + below(100)), below(2)};
    if (kind == MIXED) /* modes that go together */
        kind = below(2) ? HEAP : ALLOCATOR;
    return kind == RAW       ? read_any(make_raw())
           : kind == INDEXED ? read_any(make_indexed())
                             : make_own(granule_of[kind], &placing);
}

static void check_laws(enum kind kind)
{
    struct hw_profile *p[4];
    for (size_t i = 0; i < 4; i++)
        p[i] = make_any(kind);
    struct bytes all = merged(p, 4);
    assert_same(&all, merged((struct hw_profile *[]){p[3], p[1], p[0], p[2]}, 4), "another order");
    struct hw_profile *left = merged_profile(p, 3), *right = merged_profile(p + 2, 2),
                      *middle = merged_profile(p + 1, 2), *one = merged_profile(p, 1);
    assert_same(&all, merged((struct hw_profile *[]){left, p[3]}, 2), "(a b c) d");
    assert_same(&all, merged((struct hw_profile *[]){p[1], right, p[0]}, 3), "b (c d) a");
    assert_same(&all, merged((struct hw_profile *[]){p[3], one, middle}, 3), "d (a) (b c)");
    struct hw_profile *again = read_back(&all);
    assert_same(&all, merged(&again, 1), "a merged one alone");
    struct bytes once = merged(p, 1);
    assert_same(&once, merged(&one, 1), "one alone, twice over");
    free(once.data);
    free(all.data);
    hw_profile_free(left);
    hw_profile_free(right);
    hw_profile_free(middle);
    hw_profile_free(one);
    hw_profile_free(again);
    for (size_t i = 0; i < 4; i++)
        hw_profile_free(p[i]);
}

static void test_order_and_grouping(void **unused)
{
    for (uint64_t seed = 1; seed <= 400; seed++) {
        state = seed * 0x9e3779b97f4a7c15u;
        check_laws((enum kind)(seed % KINDS));
    }
}

/* The same content at other addresses, its modules in another order. */
static void test_placing(void **unused)
{
    static const struct placing placings[2] = {{0x400000, false}, {0x7f0000000000, true}};
    for (uint64_t seed = 1; seed <= 80; seed++) {
        struct hw_profile *p[2];
        for (int i = 0; i < 2; i++) {
            state = seed * 0x9e3779b97f4a7c15u;
            p[i] = make_own(granule_of[seed % OWN_KINDS], &placings[i]);
        }
        struct bytes first = merged(&p[0], 1);
        assert_same(&first, merged(&p[1], 1), "elsewhere");
        free(first.data);
        hw_profile_free(p[0]);
        hw_profile_free(p[1]);
    }
}

static uint64_t twice(uint64_t value)
{
    return hw_add_saturating(value, value);
}

static void assert_doubled(const struct hw_profile_context *one, const struct hw_profile_context *two)
{
    assert_int_equal(two->leaf, one->leaf);
    assert_int_equal(two->pool, one->pool);
    assert_int_equal(two->flags, one->flags);
    assert_int_equal(two->allocations, twice(one->allocations));
    assert_int_equal(two->bytes, twice(one->bytes));
    assert_int_equal(two->frees, twice(one->frees));
    assert_int_equal(two->temporary, twice(one->temporary));
    assert_int_equal(two->samples, twice(one->samples));
    assert_int_equal(two->peak_bytes, (int64_t)(2 * (uint64_t)one->peak_bytes));
    assert_int_equal(two->peak_blocks, (int64_t)(2 * (uint64_t)one->peak_blocks));
    assert_int_equal(two->live_bytes, (int64_t)(2 * (uint64_t)one->live_bytes));
    assert_int_equal(two->live_age_total_ns, twice(one->live_age_total_ns));
    assert_int_equal(two->alloc_threads, 2 * one->alloc_threads);
    assert_int_equal(two->inherited_blocks, (int64_t)(2 * (uint64_t)one->inherited_blocks));
    assert_int_equal(two->size_min, one->size_min);
    assert_int_equal(two->size_max, one->size_max);
    assert_int_equal(two->lifetime_min_ns, one->lifetime_min_ns);
    assert_int_equal(two->lifetime_max_ns, one->lifetime_max_ns);
    assert_int_equal(two->last_alloc_ns, one->last_alloc_ns);
    assert_int_equal(two->last_alloc_cpu, one->last_alloc_cpu);
    assert_int_equal(two->first_ns, one->first_ns);
    const unsigned __int128 most = ((unsigned __int128)1 << 96) - 1, sum = 2 * one->lifetime_total_ns;
    assert_true(two->lifetime_total_ns == (sum < most ? sum : most));
    assert_int_equal(two->access != NULL, one->access != NULL);
    if (!one->access)
        return;
    assert_int_equal(two->access->all.reads, twice(one->access->all.reads));
    assert_int_equal(two->access->live.writes, twice(one->access->live.writes));
    assert_int_equal(two->access->all.blocks, twice(one->access->all.blocks));
    assert_int_equal(two->access->all.granules_touched, twice(one->access->all.granules_touched));
    assert_int_equal(two->access->all.accesses_min, one->access->all.accesses_min);
    assert_int_equal(two->access->all.accesses_max, one->access->all.accesses_max);
    assert_int_equal(two->access->live.density_min, one->access->live.density_min);
}

static void assert_doubled_words(const struct hw_profile_words *one, const struct hw_profile_words *two, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(two[i].free_context, one[i].free_context);
        assert_int_equal(two[i].first_word, one[i].first_word);
        assert_int_equal(two[i].saturated, twice(one[i].saturated));
        for (size_t k = 0; k < HW_WORDS_RUN; k++) {
            assert_int_equal(two[i].read_periods[k], twice(one[i].read_periods[k]));
            assert_int_equal(two[i].written_periods[k], twice(one[i].written_periods[k]));
            assert_int_equal(two[i].read_blocks[k], twice(one[i].read_blocks[k]));
            assert_int_equal(two[i].written_blocks[k], twice(one[i].written_blocks[k]));
        }
    }
}

static void assert_doubled_samples(const struct hw_profile *one, const struct hw_profile *two)
{
    assert_int_equal(two->accesses_sampled, one->accesses_sampled);
    assert_int_equal(two->sample_info.source, one->sample_info.source);
    assert_int_equal(two->sample_info.period, one->sample_info.period);
    assert_int_equal(two->sample_info.ended, one->sample_info.ended);
    assert_int_equal(two->sample_info.runs, 2 * one->sample_info.runs);
    assert_int_equal(two->sample_info.runs_ended, 2 * one->sample_info.runs_ended);
    assert_int_equal(two->sample_info.reads, twice(one->sample_info.reads));
    assert_int_equal(two->sample_info.heap_reads, twice(one->sample_info.heap_reads));
    assert_int_equal(two->sample_info.thread_writes, twice(one->sample_info.thread_writes));
    assert_int_equal(two->sample_context_count, one->sample_context_count);
    for (size_t i = 0; i < one->sample_context_count; i++) {
        assert_int_equal(two->sample_contexts[i].context, one->sample_contexts[i].context);
        assert_int_equal(two->sample_contexts[i].writes, twice(one->sample_contexts[i].writes));
        assert_int_equal(two->sample_contexts[i].lines_false_shared, twice(one->sample_contexts[i].lines_false_shared));
    }
    assert_int_equal(two->sample_count_count, one->sample_count_count);
    for (size_t i = 0; i < one->sample_count_count; i++) {
        assert_int_equal(two->sample_counts[i].context, one->sample_counts[i].context);
        assert_int_equal(two->sample_counts[i].offset, one->sample_counts[i].offset);
        assert_int_equal(two->sample_counts[i].reads, twice(one->sample_counts[i].reads));
    }
    assert_int_equal(two->sampled_global_count, one->sampled_global_count);
    for (size_t i = 0; i < one->sampled_global_count; i++)
        assert_int_equal(two->sampled_globals[i].writes, twice(one->sampled_globals[i].writes));
}

static void assert_doubled_sides(const struct hw_profile *one, const struct hw_profile *two)
{
    assert_int_equal(two->role_count, one->role_count);
    for (size_t i = 0; i < one->role_count; i++) {
        assert_int_equal(two->roles[i].routine, one->roles[i].routine);
        assert_int_equal(two->roles[i].context, one->roles[i].context);
        assert_int_equal(two->roles[i].threads, twice(one->roles[i].threads));
    }
    assert_int_equal(two->side_count, one->side_count);
    for (size_t i = 0; i < one->side_count; i++) {
        assert_int_equal(two->sides[i].role, one->sides[i].role);
        assert_int_equal(two->sides[i].code, one->sides[i].code);
        assert_int_equal(two->sides[i].reads, twice(one->sides[i].reads));
        assert_int_equal(two->sides[i].lines, twice(one->sides[i].lines));
    }
}

static void assert_doubled_uses(const struct hw_lock_use *one, const struct hw_lock_use *two)
{
    assert_int_equal(two->count, twice(one->count));
    assert_int_equal(two->contended, twice(one->contended));
    assert_int_equal(two->wait_ticks, twice(one->wait_ticks));
    assert_int_equal(two->critical_ticks, twice(one->critical_ticks));
}

static void assert_doubled_inside(const struct hw_profile_inside *one, const struct hw_profile_inside *two)
{
    assert_int_equal(two->present, one->present);
    assert_int_equal(two->calls_present, one->calls_present);
    assert_int_equal(two->events_present, one->events_present);
    for (int call = 0; call < HW_SYSTEM_CALLS; call++)
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++) {
            assert_int_equal(two->calls[call][1][kind].count, twice(one->calls[call][1][kind].count));
            assert_int_equal(two->calls[call][0][kind].ticks, twice(one->calls[call][0][kind].ticks));
        }
    assert_int_equal(two->lock_count, one->lock_count);
    for (size_t i = 0; i < one->lock_count; i++) { /* saturated sums may change their order */
        size_t k = 0;
        while (k < two->lock_count &&
               (two->locks[k].kind != one->locks[i].kind || two->locks[k].map != one->locks[i].map ||
                two->locks[k].offset != one->locks[i].offset))
            k++;
        assert_true(k < two->lock_count);
        assert_int_equal(two->locks[k].locks, 2 * one->locks[i].locks);
        assert_int_equal(two->locks[k].wait_ticks_most, one->locks[i].wait_ticks_most);
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
            assert_doubled_uses(&one->locks[i].use[1][kind], &two->locks[k].use[1][kind]);
    }
}

static void assert_doubled_operations(const struct hw_profile_allocator *one, const struct hw_profile_allocator *two)
{
    assert_int_equal(two->runs, 2 * one->runs);
    assert_int_equal(two->info.timed, twice(one->info.timed));
    assert_int_equal(two->info.shift_most, one->info.shift_most);
    assert_int_equal(two->info.flags, one->info.flags);
    assert_int_equal(two->facts_known, one->facts_known);
    assert_int_equal(two->large_least, one->large_least);
    assert_int_equal(two->class_count, one->class_count);
    assert_int_equal(two->prediction_count, one->prediction_count);
    assert_true(two->ns_per_tick == one->ns_per_tick);
    for (int phase = 0; phase < HW_PHASES; phase++)
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
            for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++) {
                const struct hw_profile_operation *a = hw_profile_operation(one, phase, kind, bucket),
                                                  *b = hw_profile_operation(two, phase, kind, bucket);
                assert_int_equal(b->count, twice(a->count));
                assert_int_equal(b->weight, twice(a->weight));
                assert_int_equal(b->most, a->most);
                for (size_t bin = 0; bin < HW_TIME_BINS; bin++)
                    assert_int_equal(b->histogram[bin], twice(a->histogram[bin]));
            }
    assert_int_equal(two->site_count, one->site_count);
    assert_int_equal(two->lives_count, one->lives_count);
    for (size_t i = 0; i < one->lives_count; i++)
        assert_int_equal(two->lives[i].freed, twice(one->lives[i].freed));
    /* The slowest are the same, each twice, as far as there is room. */
    assert_int_equal(two->slowest_count, 2 * one->slowest_count < HW_SLOWEST ? 2 * one->slowest_count : HW_SLOWEST);
    for (size_t i = 0; i < two->slowest_count; i++)
        assert_int_equal(two->slowest[i].ticks, one->slowest[i / 2].ticks);
    assert_int_equal(two->stage_count, 0);
    assert_doubled_inside(&one->inside, &two->inside);
}

static void assert_doubled_places(const struct hw_profile_places *one, const struct hw_profile_places *two)
{
    struct hw_heap_parts a, b;
    assert_int_equal(two->info.runs, 2 * one->info.runs);
    assert_int_equal(two->info.active_lines, twice(one->info.active_lines));
    assert_int_equal(two->class_count, one->class_count);
    for (size_t i = 0; i < one->class_count; i++) {
        assert_int_equal(two->classes[i].usable_most, one->classes[i].usable_most);
        assert_int_equal(two->classes[i].peak.live_blocks, (int64_t)(2 * (uint64_t)one->classes[i].peak.live_blocks));
    }
    assert_int_equal(two->point_count, 0);
    assert_int_equal(two->pinned_count, one->pinned_count);
    assert_int_equal(two->pair_count, one->pair_count);
    assert_true(hw_profile_heap_parts(one, HW_MOMENT_PEAK, &a) && hw_profile_heap_parts(two, HW_MOMENT_PEAK, &b));
    assert_int_equal(b.measured, a.measured);
    assert_int_equal(b.real, 2 * a.real);
    assert_int_equal(b.blowup, (int64_t)(2 * (uint64_t)a.blowup));
}

static void test_doubling(void **unused)
{
    for (uint64_t seed = 1; seed <= 80; seed++) {
        state = seed * 0x2545f4914f6cdd1du;
        struct hw_profile *profile = make_any((enum kind)(seed % OWN_KINDS));
        struct hw_profile *pair[2] = {profile, profile};
        struct hw_profile *one = merged_profile(pair, 1), *two = merged_profile(pair, 2);
        assert_int_equal(two->process.runs, 2);
        assert_int_equal(two->process.peak_bytes, twice(one->process.peak_bytes));
        assert_int_equal(two->process.peak_bytes_most, one->process.peak_bytes_most);
        assert_int_equal(two->totals.allocations, twice(one->totals.allocations));
        assert_int_equal(two->context_count, one->context_count);
        assert_int_equal(two->node_count, one->node_count);
        for (size_t i = 0; i < one->context_count; i++)
            assert_doubled(&one->contexts[i], &two->contexts[i]);
        assert_int_equal(two->global_count, one->global_count);
        for (size_t i = 0; i < one->global_count; i++)
            assert_int_equal(two->globals[i].reads, twice(one->globals[i].reads));
        assert_int_equal(two->histogram_count, one->histogram_count);
        for (size_t i = 0; i < one->histogram_count; i++)
            assert_int_equal(two->histogram[i].words[7], twice(one->histogram[i].words[7]));
        assert_int_equal(two->word_count, one->word_count);
        assert_int_equal(two->freed_word_count, one->freed_word_count);
        assert_doubled_words(one->words, two->words, one->word_count);
        assert_doubled_words(one->freed_words, two->freed_words, one->freed_word_count);
        assert_doubled_samples(one, two);
        assert_int_equal(two->observed != NULL, one->observed != NULL);
        if (one->observed)
            assert_doubled_operations(one->observed, two->observed);
        assert_int_equal(two->places != NULL, one->places != NULL);
        if (one->places)
            assert_doubled_places(one->places, two->places);
        assert_doubled_sides(one, two);
        assert_int_equal(two->free_stack_count, one->free_stack_count);
        for (size_t i = 0; i < one->free_stack_count; i++)
            assert_int_equal(two->free_stacks[i].count, twice(one->free_stacks[i].count));
        hw_profile_free(one);
        hw_profile_free(two);
        hw_profile_free(profile);
    }
}

/* Sums of all counts of all contexts, in the order of the structure. */
enum { SUMS = 48 };

static void add_up(const struct hw_profile *profile, uint64_t sums[SUMS])
{
    memset(sums, 0, SUMS * sizeof *sums);
    for (size_t i = 0; i < profile->context_count; i++) {
        const struct hw_profile_context *c = &profile->contexts[i];
        static const struct hw_profile_accesses none;
        const struct hw_profile_accesses *a = c->access ? c->access : &none;
        const uint64_t values[] = {c->allocations,
                                   c->frees,
                                   c->reallocations,
                                   c->temporary,
                                   c->bytes,
                                   c->samples,
                                   c->migrated_cpu,
                                   c->lifetime_overlaps,
                                   c->same_alloc_cpu,
                                   c->same_free_cpu,
                                   c->realloc_moved,
                                   c->realloc_grown_bytes,
                                   c->realloc_shrunk_bytes,
                                   c->inherited_frees,
                                   c->inherited_freed_bytes,
                                   a->all.reads,
                                   a->all.writes,
                                   a->all.unsplit,
                                   a->all.blocks,
                                   a->live.blocks,
                                   a->all.granules,
                                   a->all.granules_touched,
                                   a->all.density_total,
                                   a->all.lifetime_density_total,
                                   a->all.never_accessed,
                                   a->all.written_never_read,
                                   a->all.shared_granules,
                                   a->all.shared_writers,
                                   a->all.lines_false_shared,
                                   a->all.not_owned,
                                   a->live.reads,
                                   a->all.utilization_total,
                                   a->all.lines_handed_over,
                                   a->all.line_passes,
                                   a->all.lines_hot,
                                   a->live.lines_hot,
                                   c->count_variance,
                                   c->bytes_variance,
                                   c->freed_count_variance,
                                   c->freed_bytes_variance,
                                   c->starts[0],
                                   c->starts[1],
                                   c->starts[2],
                                   c->starts[3],
                                   c->starts[4],
                                   c->starts[5],
                                   c->starts[6],
                                   c->starts[7]};
        _Static_assert(sizeof values == SUMS * sizeof *sums, "sums");
        for (size_t k = 0; k < SUMS; k++)
            sums[k] = hw_add_saturating(sums[k], values[k]);
    }
}

enum { MORE = 16 };

/* Likewise of words, samples and sides. */
static void add_up_more(const struct hw_profile *profile, uint64_t sums[MORE])
{
    memset(sums, 0, MORE * sizeof *sums);
    for (size_t i = 0; i < profile->side_count; i++) {
        const struct hw_side *side = &profile->sides[i];
        sums[12] = hw_add_saturating(sums[12], side->writes);
        sums[13 + (side->role < HW_ROLE_FIRST)] =
            hw_add_saturating(sums[13 + (side->role < HW_ROLE_FIRST)], side->reads);
        sums[15] = hw_add_saturating(sums[15], side->kind == HW_SIDE_SAMPLED ? side->lines : 0);
    }
    const struct hw_profile_words *const rows[2] = {profile->words, profile->freed_words};
    const size_t counts[2] = {profile->word_count, profile->freed_word_count};
    for (size_t kind = 0; kind < 2; kind++)
        for (size_t i = 0; i < counts[kind]; i++)
            for (size_t k = 0; k < HW_WORDS_RUN; k++) {
                sums[kind] = hw_add_saturating(sums[kind], rows[kind][i].read_periods[k]);
                sums[kind + 2] = hw_add_saturating(sums[kind + 2], rows[kind][i].written_blocks[k]);
            }
    for (size_t i = 0; i < profile->sample_context_count; i++) {
        sums[4] = hw_add_saturating(sums[4], profile->sample_contexts[i].reads);
        sums[5] = hw_add_saturating(sums[5], profile->sample_contexts[i].lines_writers);
    }
    for (size_t i = 0; i < profile->sample_count_count; i++) {
        const struct hw_sample_count *count = &profile->sample_counts[i];
        sums[6 + (count->kind == HW_SAMPLE_PLACE)] =
            hw_add_saturating(sums[6 + (count->kind == HW_SAMPLE_PLACE)], count->reads);
        sums[8] = hw_add_saturating(sums[8], count->writes);
    }
    for (size_t i = 0; i < profile->sampled_global_count; i++)
        sums[9] = hw_add_saturating(sums[9], profile->sampled_globals[i].reads);
    sums[10] = profile->sample_info.steps;
    sums[11] = profile->access_info.word_rounds;
}

static void assert_same_parts(const struct hw_profile *from, const struct hw_profile *to, enum hw_memory_moment moment)
{
    struct hw_heap_parts a, b;
    const bool known = hw_profile_heap_parts(from->places, moment, &a);
    assert_int_equal(hw_profile_heap_parts(to->places, moment, &b), known);
    if (!known)
        return;
    assert_int_equal(a.measured, b.measured);
    assert_int_equal(a.real, b.real);
    assert_int_equal(a.internal, b.internal);
    assert_int_equal(a.blowup, b.blowup);
    assert_int_equal(a.free_bytes, b.free_bytes);
    if (!a.measured)
        return;
    assert_int_equal(a.external, b.external);
    assert_int_equal(a.absent, b.absent);
    assert_int_equal(a.total, b.total);
}

static void assert_same_observed(const struct hw_profile *from, const struct hw_profile *to)
{
    assert_int_equal(to->observed != NULL, from->observed != NULL);
    assert_int_equal(to->places != NULL, from->places != NULL);
    if (from->places) {
        assert_same_parts(from, to, HW_MOMENT_PEAK);
        assert_same_parts(from, to, HW_MOMENT_END);
    }
    if (!from->observed)
        return;
    const struct hw_profile_allocator *a = from->observed, *b = to->observed;
    uint64_t weights[2] = {0}, most = (uint64_t)1 << 52;
    assert_int_equal(b->runs, 1);
    assert_int_equal(b->allocations, a->allocations);
    assert_int_equal(b->frees, a->frees);
    assert_int_equal(b->reallocations, a->reallocations);
    assert_int_equal(b->slowest_count, a->slowest_count);
    for (size_t i = 0; i < a->slowest_count; i++)
        assert_int_equal(b->slowest[i].ticks, a->slowest[i].ticks);
    for (size_t i = 0; i < a->site_count; i++)
        weights[0] = hw_add_saturating(weights[0], a->sites[i].weight);
    for (size_t i = 0; i < b->site_count; i++)
        weights[1] = hw_add_saturating(weights[1], b->sites[i].weight);
    assert_int_equal(weights[0], weights[1]);
    assert_int_equal(b->inside.calls_observed, a->inside.calls_observed);
    const double critical = hw_profile_critical_ticks(a);
    if (critical < (double)most)
        assert_true(fabs(hw_profile_critical_ticks(b) - critical) <= 1);
}

/* A profile and what merging it alone makes of it say the same. */
static void test_nothing_is_lost(void **unused)
{
    for (uint64_t seed = 1; seed <= 80; seed++) {
        state = seed * 0xd1342543de82ef95u;
        struct hw_profile *from = make_any((enum kind)(seed % OWN_KINDS)), *to = merged_profile(&from, 1);
        uint64_t allocations[2] = {0}, bytes[2] = {0}, reads[2] = {0}, words[2] = {0}, freed[2] = {0}, noted[2] = {0};
        struct hw_profile *const both[2] = {from, to};
        for (int k = 0; k < 2; k++) {
            for (size_t i = 0; i < both[k]->context_count; i++) {
                allocations[k] = hw_add_saturating(allocations[k], both[k]->contexts[i].allocations);
                bytes[k] = hw_add_saturating(bytes[k], both[k]->contexts[i].bytes);
                if (both[k]->contexts[i].access)
                    reads[k] = hw_add_saturating(reads[k], both[k]->contexts[i].access->all.reads);
            }
            for (size_t i = 0; i < both[k]->histogram_count; i++)
                words[k] = hw_add_saturating(words[k], both[k]->histogram[i].words[3]);
            for (size_t i = 0; i < both[k]->free_stack_count; i++)
                freed[k] = hw_add_saturating(freed[k], both[k]->free_stacks[i].count);
            for (size_t i = 0; i < both[k]->note_count; i++)
                noted[k] = hw_add_saturating(noted[k], both[k]->notes[i].count);
        }
        uint64_t sums[2][SUMS];
        uint64_t signed_sums[2][6] = {{0}}; /* modulo 2^64 */
        for (int k = 0; k < 2; k++) {
            add_up(both[k], sums[k]);
            for (size_t i = 0; i < both[k]->context_count; i++) {
                const struct hw_profile_context *c = &both[k]->contexts[i];
                const int64_t values[] = {c->live_blocks, c->live_bytes,       c->peak_blocks,
                                          c->peak_bytes,  c->inherited_blocks, c->inherited_bytes};
                for (size_t v = 0; v < 6; v++)
                    signed_sums[k][v] += (uint64_t)values[v];
            }
        }
        for (size_t k = 0; k < SUMS; k++)
            if (sums[0][k] != sums[1][k])
                fail_msg("sum %zu: %#llx became %#llx", k, (unsigned long long)sums[0][k],
                         (unsigned long long)sums[1][k]);
        assert_memory_equal(signed_sums[0], signed_sums[1], sizeof signed_sums[0]);
        uint64_t more[2][MORE];
        for (int k = 0; k < 2; k++)
            add_up_more(both[k], more[k]);
        for (size_t k = 0; k < MORE; k++)
            if (more[0][k] != more[1][k])
                fail_msg("sum %zu of words, samples and sides: %#llx became %#llx", k, (unsigned long long)more[0][k],
                         (unsigned long long)more[1][k]);
        assert_same_observed(from, to);
        assert_int_equal(allocations[0], allocations[1]);
        assert_int_equal(bytes[0], bytes[1]);
        assert_int_equal(reads[0], reads[1]);
        assert_int_equal(words[0], words[1]);
        assert_int_equal(freed[0], freed[1]);
        assert_int_equal(noted[0], noted[1]);
        assert_int_equal(from->duration_ns, to->duration_ns);
        assert_int_equal(from->totals.allocations, to->totals.allocations);
        hw_profile_free(from);
        hw_profile_free(to);
    }
}

/* ---- LLVM's files ---- */

/* What LLVM's own rules make of all blocks of one stack is what the merged file has; the way past the model gives the
 * same bytes as the way through it. */
static void test_llvm_both_ways(void **unused)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct hw_llvm_profile raw[2];
        struct hw_profile *profiles[2];
        struct hw_merge *merge = hw_merge_new();
        struct hw_arena arena = {0};
        struct hw_tables tables;
        struct hw_error error = {""};
        state = seed * 0x9e3779b97f4a7c15u;
        for (int i = 0; i < 2; i++) {
            struct bytes bytes = seed % 2 ? make_raw() : make_indexed();
            assert_true(
                (seed % 2 ? hw_llvm_raw_read : hw_llvm_indexed_read)(bytes.data, bytes.size, "x", &raw[i], &error));
            profiles[i] = read_any(bytes);
            struct hw_merge_input *input = hw_merge_admit_llvm(merge, &raw[i], "x", &error);
            assert_non_null(input);
            assert_true(hw_merge_sum(merge, input, &error));
        }
        assert_true(hw_merge_finish(merge, &arena, &tables, &error));
        struct bytes past = serialize(&tables, false);
        assert_same(&past, merged(profiles, 2), "the way through the model");
        free(past.data);
        hw_merge_free(merge);
        hw_arena_free(&arena);
        for (int i = 0; i < 2; i++) {
            hw_llvm_profile_free(&raw[i]);
            hw_profile_free(profiles[i]);
        }
    }
}

/* The blocks of a merged file are what they were; fields that are not known stay so. */
static void test_llvm_blocks(void **unused)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        state = seed * 0x9e3779b97f4a7c15u;
        struct hw_profile *from = read_any(seed % 2 ? make_raw() : make_indexed()), *to = merged_profile(&from, 1);
        assert_non_null(to->llvm);
        assert_string_equal(to->llvm->kind, from->llvm->kind);
        assert_int_equal(to->llvm->known, from->llvm->known);
        assert_int_equal(to->llvm->dumps, from->llvm->dumps);
        assert_int_equal(to->llvm->clang_runtime, from->llvm->clang_runtime);
        struct hw_llvm_mib sum[2] = {0};
        struct hw_profile *const both[2] = {from, to};
        for (int k = 0; k < 2; k++)
            for (size_t i = 0; i < both[k]->context_count; i++)
                hw_llvm_mib_add(&sum[k], &both[k]->llvm->mibs[both[k]->contexts[i].id]);
        for (int field = 1; field < HW_LLVM_FIELDS; field++) {
            const uint64_t most = field == HW_LLVM_TOTAL_DENSITY || field == HW_LLVM_TOTAL_LIFETIME_DENSITY
                                      ? UINT64_MAX / 10
                                      : UINT64_MAX;
            const bool cpu = field == HW_LLVM_ALLOC_CPU || field == HW_LLVM_FREE_CPU;
            if (from->llvm->known >> field & 1 && sum[0].field[field] <= most && !cpu)
                assert_int_equal(sum[1].field[field], sum[0].field[field]);
        }
        hw_profile_free(from);
        hw_profile_free(to);
    }
}

/* ---- what cannot be mixed ---- */

static void assert_refused(enum kind first, enum kind second, const char *why)
{
    struct hw_merge *merge = hw_merge_new();
    struct hw_error error = {""};
    state = 12345;
    struct hw_profile *a = make_any(first), *b = make_any(second);
    assert_true(hw_merge_add(merge, a, &error));
    assert_false(hw_merge_add(merge, b, &error));
    if (!strstr(error.message, why))
        fail_msg("'%s' was to be said, not '%s'", why, error.message);
    /* What was refused has left no trace. */
    struct hw_arena arena = {0};
    struct hw_tables tables;
    assert_true(hw_merge_finish(merge, &arena, &tables, &error));
    struct bytes bytes = serialize(&tables, false);
    assert_same(&bytes, merged(&a, 1), "after a refusal");
    free(bytes.data);
    hw_arena_free(&arena);
    hw_merge_free(merge);
    hw_profile_free(a);
    hw_profile_free(b);
}

static void test_refusals(void **unused)
{
    assert_refused(COARSE, FINE, "granules of 8 bytes and cannot be merged with profiles by granules of 64");
    assert_refused(WORDS, FINE, "granules of 8 bytes and cannot be merged with profiles by granules of 4");
    assert_refused(HEAP, RAW, "one of LLVM's raw heap profiles and cannot be merged with a profile of Heapwise");
    assert_refused(RAW, INDEXED, "one of LLVM's indexed heap profiles and cannot be merged with one of LLVM's raw");
    assert_refused(INDEXED, FINE, "a profile of Heapwise and cannot be merged with one of LLVM's indexed");
    struct hw_merge *merge = hw_merge_new();
    struct hw_arena arena = {0};
    struct hw_tables tables;
    struct hw_error error = {""};
    assert_false(hw_merge_finish(merge, &arena, &tables, &error));
    assert_string_equal(error.message, "nothing was merged");
    hw_merge_free(merge);
}

/* Profiles with and without accesses add up: what was counted in one of them is known of its blocks. */
static void test_partly_counted(void **unused)
{
    state = 99;
    struct hw_profile *p[2] = {make_any(HEAP), make_any(FINE)};
    struct hw_profile *sum = merged_profile(p, 2);
    assert_true(sum->access_counted);
    assert_int_equal(sum->access_info.granule, 8);
    assert_int_equal(sum->process.mode, HW_MODE_ACCESS);
    assert_int_equal(sum->process.runs, 2);
    hw_profile_free(sum);
    hw_profile_free(p[0]);
    hw_profile_free(p[1]);
}

TEST_LIST(cmocka_unit_test(test_order_and_grouping), cmocka_unit_test(test_placing), cmocka_unit_test(test_doubling),
          cmocka_unit_test(test_nothing_is_lost), cmocka_unit_test(test_llvm_both_ways),
          cmocka_unit_test(test_llvm_blocks), cmocka_unit_test(test_refusals), cmocka_unit_test(test_partly_counted))
