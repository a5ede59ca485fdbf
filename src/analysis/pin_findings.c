/* pin_findings.c - findings on pages that few blocks keep resident (record --pinned): what an arena of their own for
 * the blocks of some places would free. docs/pinned.md has the model.
 *
 * Pages that only the chosen contexts have blocks on become free, and their blocks need other pages instead. What is
 * freed is at most what others had at the peak: holes that the contexts left themselves are in each arena. A context
 * alone may free nothing where two share pages, so that the search goes from one set of contexts that share pages to
 * the next. */
#include "analysis/internal.h"

#include <math.h>

#define PAGE      4096.0
#define SEEDS     256 /* groups that are tried at each step: those of most free bytes */
#define STEP_GAIN 1.05
#define ARENAS    4 /* findings */
#define CONTEXTS  HW_PAGE_GROUP_CONTEXTS

struct arena {
    uint32_t ids[CONTEXTS]; /* as the file has them */
    size_t count;
    double freed;     /* pages that only they keep */
    double packed;    /* pages that their blocks need side by side */
    double scattered; /* …if their arena was as large as their bytes at the peak, and blocks were freed in it in no
                       * order; at least packed */
    double peak_bytes; /* of all their blocks */
};

struct search {
    const struct hw_analysis_input *input;
    const struct hw_profile *profile;
    const struct hw_pin **pins; /* by id */
    bool *taken;                /* by id: is in an arena already, or in no report */
    size_t seeds[SEEDS], seed_count;
};

static double gain_of(const struct search *search, const struct arena *arena)
{
    const double gain = (arena->freed - arena->scattered) * PAGE;
    const double others = (double)search->profile->process.peak_bytes - arena->peak_bytes;
    return gain < others ? gain : others;
}

static bool is_in(const struct arena *arena, uint32_t id)
{
    for (size_t i = 0; i < arena->count; i++)
        if (arena->ids[i] == id)
            return true;
    return false;
}

static bool is_subset(const struct hw_page_group *group, const struct arena *arena)
{
    for (size_t i = 0; i < CONTEXTS && group->contexts[i] != HW_NONE; i++)
        if (!is_in(arena, group->contexts[i]))
            return false;
    return true;
}

/* Pages that blocks need in an arena, without those that one block fills: these are not in `freed` either. Blocks that
 * were there at the peak and are gone left holes: a page of the arena stays if any of the blocks on it does, of which
 * the first one begins on the page before it. */
static void add_pages_of(const struct search *search, uint32_t id, struct arena *arena)
{
    const struct hw_pin *pin = search->pins[id];
    if (!pin || !pin->packed_bytes)
        return;
    const struct hw_profile_context *sum = search->input->contexts[search->input->context_of[id]];
    arena->peak_bytes += sum->peak_bytes > 0 ? (double)sum->peak_bytes : 0;
    const double bytes = (double)pin->packed_bytes, least = ceil(bytes / PAGE);
    /* Of its bytes at the peak, what is still there. */
    const double share = sum->peak_bytes > sum->live_bytes && sum->live_bytes > 0
                             ? (double)sum->live_bytes / (double)sum->peak_bytes
                             : 1;
    const double size = pin->packed_blocks ? bytes / (double)pin->packed_blocks : bytes;
    const double on_page = (size < PAGE ? PAGE / size : 1) + 1;
    const double pages = bytes / share / PAGE * (1 - pow(1 - share, on_page));
    arena->packed += least;
    arena->scattered += share < 1 && pages > least ? pages : least;
}

static void measure(const struct search *search, struct arena *arena)
{
    const struct hw_profile *profile = search->profile;
    arena->freed = arena->packed = arena->scattered = arena->peak_bytes = 0;
    for (size_t i = 0; i < profile->page_group_count; i++)
        if (is_subset(&profile->page_groups[i], arena))
            arena->freed += (double)profile->page_groups[i].pages;
    for (size_t i = 0; i < arena->count; i++)
        add_pages_of(search, arena->ids[i], arena);
}

/* False: too many, or one of them is taken. */
static bool add_group(const struct search *search, struct arena *arena, const struct hw_page_group *group)
{
    for (size_t i = 0; i < CONTEXTS && group->contexts[i] != HW_NONE; i++) {
        if (is_in(arena, group->contexts[i]))
            continue;
        if (arena->count == CONTEXTS || search->taken[group->contexts[i]])
            return false;
        arena->ids[arena->count++] = group->contexts[i];
    }
    return true;
}

static double free_in(const struct hw_page_group *group)
{
    return (double)group->pages * PAGE - (double)group->live_bytes;
}

static void choose_seeds(struct search *search)
{
    const struct hw_page_group *groups = search->profile->page_groups;
    for (size_t i = 0; i < search->profile->page_group_count; i++) {
        size_t at = search->seed_count;
        for (; at && free_in(&groups[search->seeds[at - 1]]) < free_in(&groups[i]); at--)
            if (at < SEEDS)
                search->seeds[at] = search->seeds[at - 1];
        if (at < SEEDS) {
            search->seeds[at] = i;
            search->seed_count += search->seed_count < SEEDS;
        }
    }
}

static struct arena find_arena(const struct search *search)
{
    struct arena best = {.count = 0};
    for (bool better = true; better;) {
        const struct arena from = best;
        better = false;
        for (size_t i = 0; i < search->seed_count; i++) {
            struct arena arena = from;
            if (!add_group(search, &arena, &search->profile->page_groups[search->seeds[i]]) ||
                arena.count == from.count)
                continue;
            measure(search, &arena);
            const double gain = gain_of(search, &arena);
            if (gain > gain_of(search, &from) * STEP_GAIN && gain > gain_of(search, &best)) {
                best = arena;
                better = true;
            }
        }
    }
    return best;
}

static void add(struct hw_finder *finder, struct search *search, const struct arena *arena)
{
    struct hw_finding *finding = hw_finding_add(finder, HW_FINDING_PINNED, gain_of(search, arena));
    uint32_t *contexts = hw_pool_take(finder->pool, arena->count, sizeof *contexts);
    if (!finding || !contexts)
        return;
    double blocks = 0, bytes = 0;
    for (size_t i = 0; i < arena->count; i++) {
        contexts[i] = search->input->context_of[arena->ids[i]];
        search->taken[arena->ids[i]] = true;
        blocks += (double)search->pins[arena->ids[i]]->packed_blocks;
        bytes += (double)search->pins[arena->ids[i]]->packed_bytes;
    }
    finding->certain = true;
    finding->contexts = contexts;
    finding->context_count = arena->count;
    finding->bytes = gain_of(search, arena);
    finding->blocks = hw_count_of(blocks);
    finding->block_bytes = blocks > 0 ? hw_count_of(bytes / blocks + 0.5) : 0;
    finding->part = hw_count_of(arena->freed * PAGE);
    finding->whole = search->profile->heap_pages->resident_bytes;
    finding->arena_bytes = hw_count_of(arena->packed * PAGE);
    finding->arena_most_bytes = hw_count_of(arena->scattered * PAGE);
}

void hw_pin_findings(struct hw_finder *finder)
{
    const struct hw_analysis_input *input = &finder->analysis->input;
    const struct hw_profile *profile = input->profile;
    if (!profile->heap_pages || profile->heap_pages->flags & HW_HEAP_PAGES_MISSED || !input->context_of)
        return;
    const size_t count = profile->context_entry_count;
    struct search search = {.input = input,
                            .profile = profile,
                            .pins = hw_pool_take(finder->pool, count, sizeof(const struct hw_pin *)),
                            .taken = hw_pool_take(finder->pool, count, sizeof(bool))};
    if (!search.pins || !search.taken)
        return;
    for (size_t i = 0; i < profile->pin_count; i++)
        search.pins[profile->pins[i].context] = &profile->pins[i];
    for (size_t id = 0; id < count; id++)
        search.taken[id] = !search.pins[id] || input->context_of[id] >= input->context_count;
    choose_seeds(&search);
    for (int i = 0; i < ARENAS; i++) {
        const struct arena arena = find_arena(&search);
        if (!arena.count || !hw_is_worth(finder, gain_of(&search, &arena)))
            return;
        add(finder, &search, &arena);
    }
}
