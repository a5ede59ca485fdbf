/* model_access.c - counted accesses: sections ACCESS_INFO to HISTOGRAM_LIVE -> the profile's contexts, globals,
 * histogram.
 *
 * Entries of freed blocks grow during the run; those of live blocks and of globals are as of the latest harvest. Blocks
 * that were freed after it are in both. So where a context has seen a free since, which only happens in files of
 * processes that run or were killed, its live part is left out: too few accesses can be said, too many would be wrong.
 */
#include "profile/model/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

struct taker {
    struct hw_profile *profile;
    struct hw_arena *arena;
    const struct hw_tables *tables;
    struct hw_problems *problems;
};

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- entries ---- */

#define UTILIZATION_WHOLE 10000u

/* True when the parts of an entry can be of one whole. */
static bool entry_is_sane(const struct hw_access *entry)
{
#define HW_SANE_SUM_OF(entry, member, whole)
#define HW_SANE_CUT(entry, member, whole)
#define HW_SANE_CODE(entry, member, whole)
#define HW_SANE_PART(entry, member, whole)                 (entry)->member <= (entry)->whole &&
#define HW_SANE_BOUND(entry, member, whole)                (!(entry)->blocks || (entry)->member <= (entry)->whole) &&
#define HW_ACCESS(type, member, adds, of, stored, as, ...) HW_SANE_##stored(entry, member, as)
    return
#include "profile/numbers.def"
        (!entry->blocks || entry->utilization_max <= UTILIZATION_WHOLE);
}

/* The entry as the model has it. Parts that are greater than their whole, as they are for a moment while the process
 * writes, are cut to it. */
static struct hw_profile_access convert(const struct hw_access *entry)
{
    struct hw_profile_access access = {.type = entry->type, .flags = entry->flags & HW_ACCESS_TYPES_DIFFER};
    const uint64_t most =
        entry->blocks > UINT64_MAX / UTILIZATION_WHOLE ? UINT64_MAX : entry->blocks * UTILIZATION_WHOLE;
    access.utilization_total = smaller(entry->utilization_total, most);
    struct hw_access bounds = *entry;
    if (bounds.utilization_max > UTILIZATION_WHOLE)
        bounds.utilization_max = UTILIZATION_WHOLE;
        /* What is too much for a counter stops at its end, with the writer, too. */
#define HW_TAKE_SUM_OF(type, member, whole)                                                                            \
    access.member = entry->member, access.overflown |= entry->member == UINT64_MAX;
#define HW_TAKE_PART(type, member, whole) access.member = smaller(entry->member, entry->whole);
#define HW_TAKE_CUT(type, member, whole)  access.member = smaller(entry->member, access.whole);
#define HW_TAKE_BOUND(type, member, whole)                                                                             \
    access.member = entry->blocks ? (type)smaller(bounds.member, bounds.whole) : 0;
#define HW_TAKE_CODE(type, member, whole)
#define HW_ACCESS(type, member, adds, of, stored, as, ...) HW_TAKE_##stored(type, member, as)
#include "profile/numbers.def"
    return access;
}

static bool entry_is_empty(const struct hw_access *entry)
{
    return !(entry->blocks | entry->reads | entry->writes | entry->unsplit | entry->saturated_cells);
}

static int compare_id(const void *key, const void *element)
{
    const uint32_t id = *(const uint32_t *)key, other = ((const struct hw_profile_context *)element)->id;
    return HW_ORDER(id, other);
}

/* The context that an entry's numbers belong to. NULL: they are in the totals only. */
static struct hw_profile_context *context_of(struct taker *taker, uint32_t id, const char *section)
{
    struct hw_profile *profile = taker->profile;
    if (id >= profile->context_entry_count) {
        hw_problem(taker->problems,
                   "The %s section is damaged: it names a context that does not exist; its numbers count as of an "
                   "unknown stack.",
                   section);
        id = 0;
    }
    struct hw_profile_context *context =
        profile->context_count
            ? bsearch(&id, profile->contexts, profile->context_count, sizeof *profile->contexts, compare_id)
            : NULL;
    if (!context && profile->sealed)
        hw_problem(taker->problems,
                   "The %s section counts accesses to blocks of a context without allocations; they are in the totals "
                   "only.",
                   section);
    return context;
}

/* Blocks of this context were freed after the harvest: what was live then may be counted among the freed ones now. */
static bool is_stale(const struct hw_profile *profile, const struct hw_profile_context *context)
{
    return context && context->frees && context->last_free_ns > profile->harvest_ns;
}

bool hw_profile_freed_since_harvest(const struct hw_profile *profile, uint32_t id)
{
    return profile->context_count && is_stale(profile, bsearch(&id, profile->contexts, profile->context_count,
                                                               sizeof *profile->contexts, compare_id));
}

static void take_entries(struct taker *taker, uint32_t type)
{
    struct hw_profile *profile = taker->profile;
    const struct hw_table *table = &taker->tables->of[type];
    const struct hw_table *mibs = &taker->tables->of[HW_SECTION_MIBS];
    const struct hw_access *entries = table->entries;
    const char *name = hw_section_rule(type)->name;
    const bool live = type == HW_SECTION_ACCESS_LIVE;
    for (size_t i = 0; i < table->count; i++) {
        const struct hw_access *entry = &entries[i];
        uint32_t id = entry->context;
        if (entry_is_empty(entry))
            continue;
        if (profile->sealed && !entry_is_sane(entry))
            hw_problem(taker->problems, "The %s section has an entry whose numbers contradict each other.", name);
        /* The entry names its context itself, so that a lost extent of either section does no harm. */
        if (!live && id == 0 && i < mibs->count)
            id = ((const struct hw_mib *)mibs->entries)[i].context;
        struct hw_profile_context *context = context_of(taker, id, name);
        if (live && is_stale(profile, context)) {
            profile->unharvested_contexts++;
            continue;
        }
        struct hw_profile_accesses accesses = {.all = convert(entry)};
        if (live)
            accesses.live = accesses.all;
        if (context)
            hw_profile_accesses_add(context->access, &accesses);
        hw_profile_accesses_add(&profile->access, &accesses);
    }
    profile->access.all.type = profile->access.live.type = 0; /* of one context it means something */
}

/* ---- globals ---- */

static int compare_granules(const void *left, const void *right)
{
    const struct hw_global_granule *a = left, *b = right;
    return HW_ORDER(a->map, b->map) ?: HW_ORDER(a->offset, b->offset);
}

static void take_globals(struct taker *taker)
{
    struct hw_profile *profile = taker->profile;
    const struct hw_table *table = &taker->tables->of[HW_SECTION_GLOBALS];
    const struct hw_table *maps = &taker->tables->of[HW_SECTION_MAPS];
    struct hw_global_granule *granules = table->entries;
    size_t kept = 0, merged = 0;
    for (size_t i = 0; i < table->count; i++) {
        struct hw_global_granule granule = granules[i];
        if (!(granule.reads | granule.writes | granule.unsplit))
            continue;
        if (granule.map != HW_NONE && granule.map >= maps->count) {
            hw_problem(taker->problems, "The globals section is damaged: data lies in a module that is not listed.");
            granule.map = HW_NONE;
        } else if (granule.map != HW_NONE && hw_table_missing(maps, granule.map)) {
            granule.map = HW_NONE;
        }
        if (granule.offset > UINT64_MAX - 64) {
            hw_problem(taker->problems, "The globals section is damaged: an address is impossible.");
            continue;
        }
        granules[kept++] = granule;
    }
    if (kept)
        qsort(granules, kept, sizeof *granules, compare_granules);
    for (size_t i = 0; i < kept; i++) {
        struct hw_global_granule *to = merged ? &granules[merged - 1] : NULL;
        if (!to || compare_granules(to, &granules[i]) != 0) {
            granules[merged++] = granules[i];
            continue;
        }
        to->reads = hw_add_saturating(to->reads, granules[i].reads);
        to->writes = hw_add_saturating(to->writes, granules[i].writes);
        to->unsplit = hw_add_saturating(to->unsplit, granules[i].unsplit);
        to->flags |= granules[i].flags;
    }
    profile->globals = granules;
    profile->global_count = merged;
}

/* ---- histogram ---- */

static int compare_histograms(const void *left, const void *right)
{
    const struct hw_profile_histogram *a = left, *b = right;
    return HW_ORDER(a->context, b->context) ?: HW_ORDER(a->first_word, b->first_word);
}

static size_t convert_histogram(struct taker *taker, uint32_t type, struct hw_profile_histogram *into)
{
    struct hw_profile *profile = taker->profile;
    const struct hw_table *table = &taker->tables->of[type];
    const struct hw_histogram *entries = table->entries;
    const char *name = hw_section_rule(type)->name;
    size_t kept = 0;
    for (size_t i = 0; i < table->count; i++) {
        const struct hw_histogram *entry = &entries[i];
        uint64_t any = entry->saturated;
        for (size_t word = 0; word < HW_HISTOGRAM_WORDS; word++)
            any |= entry->words[word];
        if (!any)
            continue;
        if (entry->first_word % HW_HISTOGRAM_WORDS) {
            hw_problem(taker->problems, "The %s section is damaged: an entry begins in the middle of another one.",
                       name);
            continue;
        }
        struct hw_profile_context *context = context_of(taker, entry->context, name);
        if (!context || (type == HW_SECTION_HISTOGRAM_LIVE && is_stale(profile, context)))
            continue;
        into[kept].context = context->id;
        into[kept].first_word = entry->first_word;
        into[kept].saturated = entry->saturated;
        memcpy(into[kept].words, entry->words, sizeof entry->words);
        kept++;
    }
    return kept;
}

static bool take_histograms(struct taker *taker)
{
    struct hw_profile *profile = taker->profile;
    const size_t room =
        taker->tables->of[HW_SECTION_HISTOGRAM].count + taker->tables->of[HW_SECTION_HISTOGRAM_LIVE].count;
    struct hw_profile_histogram *all = hw_arena_allocate(taker->arena, room + 1, sizeof *all);
    size_t merged = 0;
    if (!all)
        return false;
    size_t count = convert_histogram(taker, HW_SECTION_HISTOGRAM, all);
    count += convert_histogram(taker, HW_SECTION_HISTOGRAM_LIVE, all + count);
    if (count)
        qsort(all, count, sizeof *all, compare_histograms);
    for (size_t i = 0; i < count; i++) {
        struct hw_profile_histogram *to = merged ? &all[merged - 1] : NULL;
        if (!to || compare_histograms(to, &all[i]) != 0) {
            all[merged++] = all[i];
            continue;
        }
        to->saturated = hw_add_saturating(to->saturated, all[i].saturated);
        for (size_t word = 0; word < HW_HISTOGRAM_WORDS; word++)
            to->words[word] = hw_add_saturating(to->words[word], all[i].words[word]);
    }
    profile->histogram = all;
    profile->histogram_count = merged;
    return true;
}

/* ---- words ---- */

int hw_profile_words_compare(const void *left, const void *right)
{
    const struct hw_profile_words *a = left, *b = right;
    return HW_ORDER(a->context, b->context) ?: HW_ORDER(a->free_context, b->free_context) ?:
           HW_ORDER(a->first_word, b->first_word);
}

void hw_profile_words_add(struct hw_profile_words *to, const struct hw_profile_words *from)
{
    to->saturated = hw_add_saturating(to->saturated, from->saturated);
    for (size_t i = 0; i < HW_WORDS_RUN; i++) {
        to->read_periods[i] = hw_add_saturating(to->read_periods[i], from->read_periods[i]);
        to->written_periods[i] = hw_add_saturating(to->written_periods[i], from->written_periods[i]);
        to->read_blocks[i] = hw_add_saturating(to->read_blocks[i], from->read_blocks[i]);
        to->written_blocks[i] = hw_add_saturating(to->written_blocks[i], from->written_blocks[i]);
    }
}

/* Adds the blocks that an entry keeps as a pattern. */
static void add_pattern(uint64_t *periods, uint64_t *blocks, const uint8_t *cells, uint64_t repeats)
{
    for (size_t i = 0; i < HW_WORDS_RUN; i++) {
        uint64_t more = 0;
        if (!cells[i])
            continue;
        if (__builtin_mul_overflow(repeats, (cells[i] & 127u) + (cells[i] >> 7), &more))
            more = UINT64_MAX;
        periods[i] = hw_add_saturating(periods[i], more);
        blocks[i] = hw_add_saturating(blocks[i], repeats);
    }
}

static size_t convert_words(struct taker *taker, uint32_t type, struct hw_profile_words *into)
{
    struct hw_profile *profile = taker->profile;
    const struct hw_table *table = &taker->tables->of[type];
    const struct hw_words *entries = table->entries;
    const char *name = hw_section_rule(type)->name;
    size_t kept = 0;
    for (size_t i = 0; i < table->count; i++) {
        const struct hw_words *entry = &entries[i];
        if (entry->first_word % HW_WORDS_RUN) {
            hw_problem(taker->problems, "The %s section is damaged: an entry begins in the middle of another one.",
                       name);
            continue;
        }
        struct hw_profile_context *context = context_of(taker, entry->context, name);
        if (!context || (type == HW_SECTION_WORDS_LIVE && is_stale(profile, context)))
            continue;
        struct hw_profile_words *to = &into[kept++];
        to->context = context->id;
        to->free_context = type == HW_SECTION_WORDS ? entry->free_context : HW_NONE;
        if (to->free_context != HW_NONE && to->free_context >= profile->context_entry_count) {
            hw_problem(taker->problems,
                       "The %s section is damaged: blocks were freed by a call stack that does not exist.", name);
            to->free_context = HW_NONE;
        }
        to->first_word = entry->first_word;
        to->saturated = entry->saturated;
        memcpy(to->read_periods, entry->read_periods, sizeof entry->read_periods);
        memcpy(to->written_periods, entry->written_periods, sizeof entry->written_periods);
        memcpy(to->read_blocks, entry->read_blocks, sizeof entry->read_blocks);
        memcpy(to->written_blocks, entry->written_blocks, sizeof entry->written_blocks);
        add_pattern(to->read_periods, to->read_blocks, entry->read_cells, entry->repeats);
        add_pattern(to->written_periods, to->written_blocks, entry->written_cells, entry->repeats);
    }
    return kept;
}

/* Sorts COUNT entries and adds up those of the same words; how many are left. */
static size_t join_words(struct hw_profile_words *all, size_t count)
{
    size_t merged = 0;
    if (count)
        qsort(all, count, sizeof *all, hw_profile_words_compare);
    for (size_t i = 0; i < count; i++) {
        if (merged && hw_profile_words_compare(&all[merged - 1], &all[i]) == 0)
            hw_profile_words_add(&all[merged - 1], &all[i]);
        else
            all[merged++] = all[i];
    }
    return merged;
}

static bool take_words(struct taker *taker)
{
    struct hw_profile *profile = taker->profile;
    const struct hw_table *of = taker->tables->of;
    const size_t room = of[HW_SECTION_WORDS].count + of[HW_SECTION_WORDS_LIVE].count;
    struct hw_profile_words *all = hw_arena_allocate(taker->arena, room + 1, sizeof *all);
    struct hw_profile_words *freed = hw_arena_allocate(taker->arena, of[HW_SECTION_WORDS].count + 1, sizeof *freed);
    if (!all || !freed)
        return false;
    size_t count = convert_words(taker, HW_SECTION_WORDS, all), by_free = 0;
    for (size_t i = 0; i < count; i++)
        if (all[i].free_context != HW_NONE)
            freed[by_free++] = all[i];
    count += convert_words(taker, HW_SECTION_WORDS_LIVE, all + count);
    for (size_t i = 0; i < count; i++)
        all[i].free_context = HW_NONE;
    profile->words = all;
    profile->word_count = join_words(all, count);
    profile->freed_words = freed;
    profile->freed_word_count = join_words(freed, by_free);
    return true;
}

/* ---- the whole ---- */

static void take_info(struct taker *taker)
{
    struct hw_profile *profile = taker->profile;
    const struct hw_table *table = &taker->tables->of[HW_SECTION_ACCESS_INFO];
    struct hw_access_info *info = &profile->access_info;
    profile->access_counted = profile->process.mode == HW_MODE_ACCESS || table->count > 0;
    if (!profile->access_counted)
        return;
    if (table->count)
        memcpy(info, table->entries, sizeof *info);
    else
        hw_problem(taker->problems, "The access info section is missing: how accesses were counted is not known.");
    if (table->count && info->granule != 64 && info->granule != 8 && info->granule != 4) {
        hw_problem(taker->problems, "The access info section is damaged: granules of %u bytes do not exist.",
                   (unsigned)info->granule);
        info->granule = 0;
    }
    profile->unharvested_contexts = info->unharvested_contexts;
    profile->harvest_ns = hw_profile_ticks_to_ns(profile, info->harvest_tick);
}

bool hw_profile_take_accesses(struct hw_profile *profile, struct hw_arena *arena, const struct hw_tables *tables,
                              struct hw_problems *problems)
{
    struct taker taker = {profile, arena, tables, problems};
    take_info(&taker);
    if (!profile->access_counted)
        return true;
    struct hw_profile_accesses *accesses = hw_arena_allocate(arena, profile->context_count + 1, sizeof *accesses);
    if (!accesses)
        return false;
    for (size_t i = 0; i < profile->context_count; i++)
        profile->contexts[i].access = &accesses[i];
    take_entries(&taker, HW_SECTION_ACCESS);
    take_entries(&taker, HW_SECTION_ACCESS_LIVE);
    take_globals(&taker);
    return take_histograms(&taker) && take_words(&taker);
}
