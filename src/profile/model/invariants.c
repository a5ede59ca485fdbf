/* invariants.c - what must be so in every profile, whatever the program did: what is live was obtained and not freed,
 * nothing was greater at the peak than it ever was, parts are not more than the whole. A profile that violates one is
 * wrong somewhere; every reader says so (hw_profile.contradictions).
 *
 * What may differ for a reason: of a process that was killed, still runs or was copied from outside each thread may be
 * in the middle of one event, which is in one number and not yet in another. With several threads the peak is exact to
 * 1 %, and a context's share in it to what the others were allocating or freeing in that moment (docs/accuracy.md). In
 * allocator mode what is live is written now and then: until the process has come to rest its totals are of several
 * moments, and are not compared. An event that the program left by a jump is in some numbers and not in others. A file
 * of which something was lost says so by itself. */
#include "profile/model/model.h"

#include <inttypes.h>
#include <stdio.h>

struct check {
    const struct hw_profile *profile;
    struct hw_problems *problems;
    double events;   /* that may be under way */
    double bytes;    /* and the bytes of so many of the largest blocks */
    double peak;     /* as a factor: what the peak is exact to */
    double moment;   /* bytes: what a share in the peak is exact to */
    double rounding; /* contexts are estimates beside exact totals */
    bool threads, estimated;
    double vanished; /* blocks: allocator mode saw no free of them, or does not know which they were */
};

static bool has_note(const struct hw_profile *profile, uint32_t code)
{
    for (size_t i = 0; i < profile->note_count; i++)
        if (profile->notes[i].code == code)
            return true;
    return false;
}

static double count_of(const struct hw_profile *profile, uint32_t code)
{
    double count = 0;
    for (size_t i = 0; i < profile->note_count; i++)
        if (profile->notes[i].code == code)
            count += (double)profile->notes[i].count;
    return count;
}

/* Whether all threads were between two events when the file was complete. */
static bool came_to_rest(const struct hw_profile *profile)
{
    const struct hw_process_info *process = &profile->process;
    for (size_t i = 0; i < profile->run_count; i++)
        if (profile->runs[i].exited_zero + profile->runs[i].exited_nonzero < profile->runs[i].runs)
            return false;
    const bool merged = process->flags & HW_PROCESS_MERGED;
    return !profile->running && !(process->flags & HW_PROCESS_DUMP) && (merged || process->exit_kind == HW_EXIT_CODE) &&
           (merged ? process->threads_most : profile->threads_left) <= 1; /* others may have been at work at the end */
}

static double greatest_size(const struct hw_profile *profile)
{
    uint64_t most = 0;
    for (size_t i = 0; i < profile->context_count; i++)
        most = profile->contexts[i].size_max > most ? profile->contexts[i].size_max : most;
    return (double)most;
}

/* CONTEXT: whose numbers they are, NULL: the whole profile's. */
static void say(const struct check *check, const struct hw_profile_context *context, const char *what, double value,
                const char *than, double other)
{
    char whose[40] = "";
    if (context)
        snprintf(whose, sizeof whose, " of context %" PRIu32, context->id);
    hw_problem(check->problems, "Numbers%s contradict each other: %s are %.0f, %s are %.0f.", whose, what, value, than,
               other);
}

static void at_most(const struct check *check, const struct hw_profile_context *context, const char *what, double value,
                    const char *than, double most, double slack)
{
    if (value > most + slack)
        say(check, context, what, value, than, most);
}

static void equal(const struct check *check, const struct hw_profile_context *context, const char *what, double value,
                  const char *than, double other, double slack)
{
    if (value > other + slack || value < other - slack)
        say(check, context, what, value, than, other);
}

/* Merged: of some runs what was inherited is among the live blocks, and of others not. */
static double mixed(const struct check *check, int64_t blocks, uint64_t frees)
{
    return check->profile->process.flags & HW_PROCESS_MERGED && blocks > 0 ? (double)blocks + (double)frees : 0;
}

/* ---- the process ---- */

/* Whether what lies where was written when the process ended: not where it might make no system call any more. */
static bool places_are_last(const struct hw_profile *profile)
{
    return !profile->places || profile->process.flags & HW_PROCESS_MERGED ||
           profile->places->info.tick >= profile->process.end_tick;
}

static void check_totals(const struct check *check)
{
    const struct hw_profile *profile = check->profile;
    const struct hw_thread_entry *totals = &profile->totals;
    const struct hw_process_info *process = &profile->process;
    const bool reset = process->flags & HW_PROCESS_RESET;
    const bool older = reset || (profile->observed && process->flags & HW_PROCESS_FORKED); /* among the live ones */
    double inherited = older ? (double)process->inherited_blocks : 0;
    const double inherited_bytes = older ? (double)process->inherited_bytes : 0;
    for (size_t i = 0; reset && !profile->observed && i < profile->context_count; i++)
        inherited -= profile->contexts[i].pool ? 0 : (double)profile->contexts[i].inherited_frees;
    if (profile->places || !profile->observed) {
        equal(check, NULL, "allocations less frees, with what was inherited,",
              (double)totals->allocations - (double)totals->frees + inherited, "live blocks",
              (double)totals->live_blocks,
              check->events + check->vanished + mixed(check, process->inherited_blocks, 0));
        at_most(check, NULL, "bytes live at the end", (double)totals->live_bytes, "all bytes",
                (double)totals->bytes + inherited_bytes, check->bytes);
        at_most(check, NULL, "bytes at the peak", (double)process->peak_bytes * (2 - check->peak), "all bytes",
                (double)totals->bytes + inherited_bytes, check->bytes);
        at_most(check, NULL, "bytes live at the end", (double)totals->live_bytes, "those at the peak",
                (double)process->peak_bytes * check->peak, check->bytes);
    }
    if (totals->temporary > totals->frees)
        at_most(check, NULL, "temporary blocks", (double)totals->temporary, "frees", (double)totals->frees,
                check->events);
}

/* ---- contexts ---- */

static void check_context(const struct check *check, const struct hw_profile_context *context)
{
    const bool reset = check->profile->process.flags & HW_PROCESS_RESET;
    const bool one_number = check->profile->observed && reset; /* frees: of all blocks */
    const double older = reset ? (double)context->inherited_blocks : 0;
    const double older_bytes = reset ? (double)context->inherited_bytes : 0;
    const double older_frees = reset && !one_number ? (double)context->inherited_frees : 0;
    const double both = mixed(check, context->inherited_blocks, context->inherited_frees);
    equal(check, context, "allocations less frees, with what was inherited,",
          (double)context->allocations - (double)context->frees + older - older_frees, "live blocks",
          (double)context->live_blocks, check->events + check->rounding + both);
    at_most(check, context, "bytes live at the end", (double)context->live_bytes, "all bytes",
            (double)context->bytes + older_bytes, check->bytes);
    at_most(check, context, "bytes at the peak", (double)context->peak_bytes, "all bytes",
            (double)context->bytes + older_bytes, check->bytes + check->moment);
    at_most(check, context, "temporary blocks", (double)context->temporary, "frees", (double)context->frees,
            check->events);
}

static void check_parts(const struct check *check)
{
    const struct hw_profile *profile = check->profile;
    double allocations = 0, frees = 0, bytes = 0, live = 0, peak = 0;
    for (size_t i = 0; i < profile->context_count; i++) {
        const struct hw_profile_context *context = &profile->contexts[i];
        if (context->pool)
            continue;
        allocations += (double)context->allocations;
        frees += (double)context->frees;
        bytes += (double)context->bytes;
        live += (double)context->live_bytes;
        peak += context->peak_bytes > 0 ? (double)context->peak_bytes : 0;
    }
    at_most(check, NULL, "allocations of all contexts", allocations, "those of the process",
            (double)profile->totals.allocations, check->events + check->rounding);
    at_most(check, NULL, "frees of all contexts", frees, "those of the process", (double)profile->totals.frees,
            check->events + check->rounding + check->vanished);
    at_most(check, NULL, "bytes of all contexts", bytes, "those of the process", (double)profile->totals.bytes,
            check->bytes + check->rounding);
    at_most(check, NULL, "bytes of all contexts live at the end", live, "those of the process",
            (double)profile->totals.live_bytes, check->bytes + check->rounding);
    at_most(check, NULL, "bytes of all contexts at the peak", peak, "those of the process",
            (double)profile->process.peak_bytes * check->peak, check->bytes + check->moment + check->rounding);
}

/* ---- distributions: parts add up to the whole, and to what so many blocks of such sizes have ---- */

static void at_least(const struct check *check, const struct hw_profile_context *context, const char *what,
                     double value, const char *than, double least, double slack)
{
    if (value < least - slack)
        say(check, context, what, value, than, least);
}

/* BLOCKS of the sizes of a bar have BYTES. GROWN: of them, bytes of so many reallocations count, but not the rest. */
static void check_bytes(const struct check *check, const struct hw_profile_context *context,
                        const struct hw_profile_size_bar *bar, const char *what, double blocks, double grown,
                        double bytes)
{
    const double most = (double)hw_size_bucket_most(bar->bucket), least = (double)hw_size_bucket_least(bar->bucket);
    const double slack = check->bytes + (check->threads ? check->moment : 0);
    if (bar->bucket >= HW_SIZE_BUCKET_LAST)
        return;
    at_least(check, context, what, bytes, "bytes of the smallest such blocks", blocks * least, slack);
    at_most(check, context, what, bytes, "bytes of the largest such blocks", (blocks + grown) * most, slack);
}

static void check_sizes(const struct check *check, const struct hw_profile_context *context,
                        const struct hw_profile_size_bar *bars, size_t count)
{
    struct hw_profile_size_bar sum = {0};
    for (size_t i = 0; i < count; i++) {
        const struct hw_profile_size_bar *bar = &bars[i];
        sum.allocations += bar->allocations;
        sum.reallocations += bar->reallocations;
        sum.bytes += bar->bytes;
        sum.live_blocks += bar->live_blocks;
        sum.live_bytes += bar->live_bytes;
        sum.peak_blocks += bar->peak_blocks;
        sum.peak_bytes += bar->peak_bytes;
        if (check->estimated || check->events > 0)
            continue;
        check_bytes(check, context, bar, "bytes of blocks of one size", (double)bar->allocations,
                    (double)bar->reallocations, (double)bar->bytes);
        check_bytes(check, context, bar, "live bytes of blocks of one size", (double)bar->live_blocks, 0,
                    (double)bar->live_bytes);
        if (!check->threads)
            check_bytes(check, context, bar, "bytes of blocks of one size at the peak", (double)bar->peak_blocks, 0,
                        (double)bar->peak_bytes);
    }
    equal(check, context, "allocations of all sizes", (double)sum.allocations, "allocations",
          (double)context->allocations, 0);
    equal(check, context, "reallocations to all sizes", (double)sum.reallocations, "reallocations",
          (double)context->reallocations, 0);
    equal(check, context, "bytes of all sizes", (double)sum.bytes, "bytes", (double)context->bytes, 0);
    equal(check, context, "live bytes of all sizes", (double)sum.live_bytes, "bytes live", (double)context->live_bytes,
          0);
    equal(check, context, "bytes of all sizes at the peak", (double)sum.peak_bytes, "bytes at the peak",
          (double)context->peak_bytes, 0);
}

/* A lifetime near the end of a bar may be in the next one: the ratio of clocks became known during the run. */
#define CLOCK_SLACK 1.02

static void check_lives(const struct check *check, const struct hw_profile_context *context,
                        const struct hw_profile_life_bar *bars, size_t count)
{
    double frees = 0, least = 0;
    for (size_t i = 0; i < count; i++) {
        const double begin = bars[i].life < HW_LIFETIME_UNKNOWN ? (double)hw_lifetime_bar_least(bars[i].life) : 0;
        frees += (double)bars[i].frees;
        least += begin * (double)bars[i].frees;
    }
    equal(check, context, "frees after all lifetimes", frees, "frees", (double)context->frees, check->events);
    if (!check->estimated && !(check->events > 0))
        at_most(check, context, "nanoseconds of the shortest such lifetimes", least, "all lifetimes",
                (double)context->lifetime_total_ns * CLOCK_SLACK, 1e9 * check->events + 1e3);
}

static void check_distributions(const struct check *check)
{
    const struct hw_profile *profile = check->profile;
    size_t size = 0, life = 0;
    for (size_t i = 0; i < profile->context_count; i++) {
        const uint32_t id = profile->contexts[i].id;
        const size_t first_size = size, first_life = life;
        while (size < profile->size_bar_count && profile->size_bars[size].context <= id)
            size++;
        while (life < profile->life_bar_count && profile->life_bars[life].context <= id)
            life++;
        check_sizes(check, &profile->contexts[i], &profile->size_bars[first_size], size - first_size);
        check_lives(check, &profile->contexts[i], &profile->life_bars[first_life], life - first_life);
    }
}

/* ---- accesses ---- */

static void check_accesses(const struct check *check, const struct hw_profile_access *access)
{
    const struct {
        const char *what;
        uint64_t part;
        const char *than;
        uint64_t whole;
    } parts[] = {{"blocks never accessed", access->never_accessed, "all blocks", access->blocks},
                 {"blocks written and never read", access->written_never_read, "all blocks", access->blocks},
                 {"granules touched", access->granules_touched, "all granules", access->granules},
                 {"shared granules", access->shared_granules, "all granules", access->granules}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        at_most(check, NULL, parts[i].what, (double)parts[i].part, parts[i].than, (double)parts[i].whole,
                check->events);
}

void hw_profile_check_invariants(struct hw_profile *profile, struct hw_arena *arena)
{
    const struct hw_process_info *process = &profile->process;
    struct hw_problems problems = {.arena = arena};
    const bool threads = process->threads_most > 1 || process->flags & HW_PROCESS_MERGED;
    const double runs = process->flags & HW_PROCESS_MERGED ? (double)process->runs : 1;
    const double at_once = (double)(process->threads_most ? process->threads_most : 1) * runs;
    struct check check = {.profile = profile, .problems = &problems, .peak = threads ? 1.01 : 1, .threads = threads};
    const struct hw_profile_allocator *observed = profile->observed;
    if (profile->llvm || profile->problem_count || profile->cut || profile->totals.lost ||
        has_note(profile, HW_NOTE_FILE_FULL) || has_note(profile, HW_NOTE_NO_MEMORY) ||
        (observed && !observed->bytes_known))
        return;
    const bool rest = came_to_rest(profile) && places_are_last(profile);
    check.rounding = observed ? 1 : 0;
    check.events = (rest || observed ? 0 : at_once) + count_of(profile, HW_NOTE_LEFT);
    check.bytes = check.events * greatest_size(profile);
    if (profile->places)
        check.vanished = (double)profile->places->info.unaligned;
    check.moment = threads ? at_once * greatest_size(profile) : 0;
    if (rest || !observed) {
        check_totals(&check);
        check_parts(&check);
    }
    for (size_t i = 0; i < profile->context_count; i++)
        check_context(&check, &profile->contexts[i]);
    check.estimated = process->sample_bytes || observed;
    if (profile->bars_recorded && !has_note(profile, HW_NOTE_BARS_LOST))
        check_distributions(&check);
    if (profile->access_counted)
        check_accesses(&check, &profile->access.all);
    hw_problems_finish(&problems);
    profile->contradictions = problems.sentences;
    profile->contradiction_count = problems.count;
}
