/* verdict.c - see verdict.h.
 *
 * Thresholds. A gain below 3 % of the run's time cannot be distinguished from noise. MemPerf calls a slowdown of more
 * than 5 % medium, one of more than 20 % large. Of memory a quarter is usual for general allocators (size classes of an
 * eighth to a quarter, and pages that are partly used); less than 8 MiB in all (of several runs: each) is nobody's
 * problem. */
#include "analysis/verdict.h"

#include <string.h>

#include "analysis/share.h"

#define TIME_SOME          0.03
#define TIME_MUCH          0.10
#define MEMORY_SOME        0.25
#define MEMORY_MUCH        0.50
#define MEMORY_LEAST       (8.0 * 1024 * 1024)
#define CAUSE_SHARE        0.10 /* of the time in operations, or of the memory: what is named as a cause */
#define CAUSE_SHARE_OF_RUN 0.02 /* the same of the run: where the time in operations is not well known */
#define NEW_FACTOR         3.0  /* as in MemPerf: a new place costs more than this many reused ones */
#define NEW_FAULTS         0.05 /* page faults in an operation from which they are the reason */
#define RATE_MOST          5e-6 /* seconds: an operation that takes longer is slow by itself */
#define LINES_SHARE        0.01
#define GAIN_LEAST         0.03
/* Seconds that a page fault takes beyond what the same memory takes in huge pages, and by which one less is faster:
 * least on hardware, most in a virtual machine that others use too (docs/allocators.md has what was measured). */
#define FAULT_LEAST     0.1e-6
#define FAULT_MOST      3e-6
#define FAULTS_MOST     0.8 /* of the run: huge pages take at least a fifth of the time that small ones take */
#define PAGE            4096.0
#define SMALL_PAGES     (16 * MEMORY_LEAST / 8) /* bytes of a heap from which huge pages serve it */
#define SETTING_REMOVES 0.5                     /* of calls, at least, by a setting against them */

const char *const hw_verdict_cause_names[HW_CAUSES] = {
    [HW_CAUSE_MAPPING] = "mapping",
    [HW_CAUSE_HEAP_END] = "heap-end",
    [HW_CAUSE_ADVICE] = "advice",
    [HW_CAUSE_LOCKS] = "locks",
    [HW_CAUSE_NEW_MEMORY] = "new-memory",
    [HW_CAUSE_RATE] = "rate",
    [HW_CAUSE_CLEARING] = "clearing",
    [HW_CAUSE_COPYING] = "copying",
    [HW_CAUSE_SLOW] = "slow-operations",
    [HW_CAUSE_INTERNAL] = "internal",
    [HW_CAUSE_BLOWUP] = "blowup",
    [HW_CAUSE_EXTERNAL] = "external",
    [HW_CAUSE_KEPT] = "kept",
    [HW_CAUSE_LASTING] = "lasting",
    [HW_CAUSE_FALSE_SHARING] = "false-sharing",
    [HW_CAUSE_SMALL_PAGES] = "small-pages",
};
const char *const hw_verdict_answer_names[] = {
    [HW_VERDICT_NOT_KNOWN] = "unknown",
    [HW_VERDICT_NO] = "no",
    [HW_VERDICT_SOMEWHAT] = "somewhat",
    [HW_VERDICT_YES] = "yes",
};

struct hw_verdict_input hw_verdict_input_none(void)
{
    struct hw_verdict_input input = {
        .runs = 1,
        .wall = NAN,
        .own = NAN,
        .runnable = NAN,
        .run = NAN,
        .threads = NAN,
        .operations = NAN,
        .critical = NAN,
        .error = NAN,
        .fresh = {HW_NOT_OBSERVED, NAN},
        .reused = {HW_NOT_OBSERVED, NAN},
        .large = {HW_NOT_OBSERVED, NAN},
        .clearing = {HW_NOT_OBSERVED, NAN},
        .copying = {HW_NOT_OBSERVED, NAN},
        .in_syscalls = NAN,
        .exact = NAN,
        .map = {HW_NOT_OBSERVED, 0, NAN},
        .advise = {HW_NOT_OBSERVED, 0, NAN},
        .heap_end = {HW_NOT_OBSERVED, 0, NAN},
        .protect = {HW_NOT_OBSERVED, 0, NAN},
        .waiting = NAN,
        .acquired = HW_NOT_OBSERVED,
        .contended = HW_NOT_OBSERVED,
        .faults = NAN,
        .memory_runs = 1,
        .memory_at = NAN,
        .total = NAN,
        .real = NAN,
        .internal = NAN,
        .blowup = NAN,
        .external = NAN,
        .worst_class = {HW_NOT_OBSERVED, HW_NOT_OBSERVED, NAN},
        .pinned = NAN,
        .kept = NAN,
        .lasting = NAN,
        .lasting_total = NAN,
        .lasting_seconds = NAN,
        .active_lines = HW_NOT_OBSERVED,
        .passive_lines = HW_NOT_OBSERVED,
        .lines = HW_NOT_OBSERVED,
        .site = SIZE_MAX,
        .site_seconds = NAN,
        .site_count = HW_NOT_OBSERVED,
        .clearing_site = SIZE_MAX,
        .copying_site = SIZE_MAX,
        .pinning_site = SIZE_MAX,
        .best_gain = NAN,
        .best_low = NAN,
        .best_high = NAN,
    };
    for (size_t i = 0; i < HW_VERDICT_CAUSES_MOST; i++)
        input.when[i].since = input.when[i].until = NAN;
    return input;
}
_Static_assert((int)HW_CAUSES <= HW_VERDICT_CAUSES_MOST, "each cause has its place");

/* ---- what measures of several kinds say, in agreement ---- */

#define OWN_MOST 0.95 /* of the run: more is not believed */

static void at_most(double *part, double whole)
{
    if (*part > whole)
        *part = whole;
}

static void scale(struct hw_verdict_input *input, double by)
{
    double *const estimates[] = {&input->operations,     &input->critical,         &input->fresh.seconds,
                                 &input->reused.seconds, &input->clearing.seconds, &input->copying.seconds,
                                 &input->large.seconds,  &input->site_seconds};
    for (size_t i = 0; i < sizeof estimates / sizeof *estimates; i++)
        *estimates[i] *= by;
}

void hw_verdict_settle(struct hw_verdict_input *input)
{
    if (!(input->runnable > 0 && input->runnable < input->wall))
        input->runnable = 0;
    input->run = input->wall - input->runnable;
    if (!(input->own > 0 && input->own < OWN_MOST * input->run))
        input->own = 0;
    input->run -= input->own;
    double *const inside[] = {
        &input->in_syscalls,      &input->exact,           &input->map.seconds,      &input->advise.seconds,
        &input->heap_end.seconds, &input->protect.seconds, &input->clearing.seconds, &input->copying.seconds,
        &input->waiting};
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        at_most(inside[i], input->threads);
    /* Timed one by one, operations do not overlap with what comes before and after: short ones look longer. */
    if (input->critical > input->run)
        scale(input, input->run / input->critical);
    at_most(&input->operations, input->threads);
    if (input->operations > 0 && input->exact > input->operations) { /* what sampling has missed */
        input->critical *= input->exact / input->operations;
        input->operations = input->exact;
    }
    at_most(&input->critical, input->operations);
    at_most(&input->critical, input->run);
    if (input->exact > 0) {
        at_most(&input->clearing.seconds, input->operations - input->exact);
        at_most(&input->copying.seconds, input->operations - input->exact);
    }
}

static enum hw_verdict_answer answer(double share, double some, double much)
{
    return isnan(share)    ? HW_VERDICT_NOT_KNOWN
           : share >= much ? HW_VERDICT_YES
           : share >= some ? HW_VERDICT_SOMEWHAT
                           : HW_VERDICT_NO;
}

static struct hw_verdict_finding *add(struct hw_verdict *verdict, const struct hw_verdict_input *input,
                                      enum hw_verdict_cause cause, double share)
{
    struct hw_verdict_finding *finding = &verdict->findings[verdict->finding_count++];
    *finding = (struct hw_verdict_finding){
        .cause = cause, .share = share, .seconds = NAN, .gain = NAN, .gain_least = NAN, .bytes = NAN, .site = SIZE_MAX};
    finding->when = input->when[cause];
    hw_tunable(finding->tunable, sizeof finding->tunable, input, cause);
    return finding;
}

/* ---- time ---- */

static struct hw_verdict_finding *add_seconds(struct hw_verdict *verdict, const struct hw_verdict_input *input,
                                              enum hw_verdict_cause cause, double seconds)
{
    struct hw_verdict_finding *finding = add(verdict, input, cause, hw_share(seconds, input->operations));
    finding->seconds = seconds;
    finding->gain = seconds < input->critical ? seconds : input->critical;
    return finding;
}

/* Calls that a setting makes superfluous: besides them, the pages that they take away need no new page faults, which
 * the program has outside of operations. */
static void predict_calls(struct hw_verdict *verdict, const struct hw_verdict_input *input, double seconds,
                          uint64_t bytes)
{
    struct hw_verdict_finding *finding = &verdict->findings[verdict->finding_count - 1];
    if (!finding->tunable[0])
        return;
    finding->gain_least = SETTING_REMOVES * finding->gain;
    finding->gain = fmin(seconds + FAULT_MOST * (double)bytes / PAGE, input->run);
}

static bool add_time(struct hw_verdict *verdict, const struct hw_verdict_input *input, enum hw_verdict_cause cause,
                     double seconds, double *explained)
{
    if (!(hw_share(seconds, input->operations) >= CAUSE_SHARE ||
          hw_share(seconds, input->run) >= CAUSE_SHARE_OF_RUN)) /* NAN, too */
        return false;
    add_seconds(verdict, input, cause, seconds);
    *explained += seconds;
    return true;
}

/* What new places cost beyond what reused ones of these sizes do. */
static double cost_of_newness(const struct hw_verdict_input *input)
{
    const struct hw_operation_cost *fresh = &input->fresh, *reused = &input->reused;
    if (fresh->count == HW_NOT_OBSERVED || reused->count == HW_NOT_OBSERVED || !fresh->count || !reused->count ||
        !(fresh->seconds > 0) || !(reused->seconds > 0))
        return NAN;
    const double each = reused->seconds / (double)reused->count;
    return fresh->seconds / (double)fresh->count >= NEW_FACTOR * each ? fresh->seconds - each * (double)fresh->count
                                                                      : NAN;
}

static void time_findings(struct hw_verdict *verdict, const struct hw_verdict_input *input)
{
    double explained = 0;
    if (add_time(verdict, input, HW_CAUSE_MAPPING, input->map.seconds, &explained))
        predict_calls(verdict, input, input->map.seconds, input->map.bytes);
    if (add_time(verdict, input, HW_CAUSE_HEAP_END, input->heap_end.seconds, &explained))
        predict_calls(verdict, input, input->heap_end.seconds, input->heap_end.bytes);
    if (add_time(verdict, input, HW_CAUSE_ADVICE, input->advise.seconds, &explained))
        predict_calls(verdict, input, input->advise.seconds, input->advise.bytes);
    add_time(verdict, input, HW_CAUSE_LOCKS, input->waiting, &explained);
    if (isnan(input->faults) || input->faults >= NEW_FAULTS)
        add_time(verdict, input, HW_CAUSE_NEW_MEMORY, cost_of_newness(input), &explained);
    const struct {
        enum hw_verdict_cause cause;
        const struct hw_operation_cost *cost;
        size_t site;
    } bulk[] = {{HW_CAUSE_CLEARING, &input->clearing, input->clearing_site},
                {HW_CAUSE_COPYING, &input->copying, input->copying_site}};
    uint64_t slow = 0;
    for (size_t i = 0; i < sizeof bulk / sizeof *bulk; i++)
        if (add_time(verdict, input, bulk[i].cause, bulk[i].cost->seconds, &explained)) {
            slow += bulk[i].cost->count;
            verdict->findings[verdict->finding_count - 1].site = bulk[i].site;
        }
    /* What is left is the way through the allocator itself: as many times as it is asked, unless it takes long. */
    const double rest = input->operations - explained;
    if (rest / input->operations < 0.5 || 2 * input->error * input->operations > rest)
        return;
    const uint64_t others = input->count > slow ? input->count - slow : 0;
    const bool each = others && rest > RATE_MOST * (double)others;
    struct hw_verdict_finding *finding = add_seconds(verdict, input, each ? HW_CAUSE_SLOW : HW_CAUSE_RATE, rest);
    if (hw_share(input->site_seconds, input->operations) >= CAUSE_SHARE)
        finding->site = input->site;
}

/* Each page of the heap was touched for a first time, mostly outside of operations. How much faster the program's own
 * accesses are with fewer misses of the TLB is not known. */
static void page_finding(struct hw_verdict *verdict, const struct hw_verdict_input *input)
{
    const double pages = input->total / PAGE;
    if (!input->small_pages || !(input->total >= SMALL_PAGES * (double)input->memory_runs) ||
        !(hw_share(FAULT_MOST * pages, input->run) >= CAUSE_SHARE_OF_RUN))
        return;
    for (size_t i = 0; i < verdict->finding_count; i++)
        if (verdict->findings[i].cause == HW_CAUSE_NEW_MEMORY) /* the same setting */
            return;
    struct hw_verdict_finding *finding =
        add(verdict, input, HW_CAUSE_SMALL_PAGES, hw_share(FAULT_MOST * pages, input->run));
    finding->gain_least = FAULT_LEAST * pages;
    finding->gain = fmin(FAULT_MOST * pages, FAULTS_MOST * input->run);
    if (!finding->tunable[0])
        verdict->finding_count--;
}

/* ---- memory ---- */

static void add_memory(struct hw_verdict *verdict, const struct hw_verdict_input *input, enum hw_verdict_cause cause,
                       double bytes, size_t site)
{
    const double share = hw_share(bytes, input->total);
    if (!(share >= CAUSE_SHARE) || bytes < MEMORY_LEAST * (double)input->memory_runs)
        return;
    struct hw_verdict_finding *finding = add(verdict, input, cause, share);
    finding->bytes = bytes;
    finding->site = site;
}

/* A heap that does not shrink is no news at its peak. It is where it shrank long before the end, and its memory stayed.
 */
static void lasting_finding(struct hw_verdict *verdict, const struct hw_verdict_input *input)
{
    const double at_peak = input->total > input->real ? input->total - input->real : 0;
    const double more = input->lasting - at_peak, share = hw_share(input->lasting, input->lasting_total);
    if (!(share >= MEMORY_SOME) || !(more >= MEMORY_LEAST) || !(hw_share(more, input->lasting_total) >= CAUSE_SHARE))
        return;
    struct hw_verdict_finding *finding = add(verdict, input, HW_CAUSE_LASTING, share);
    finding->bytes = input->lasting;
}

static void line_finding(struct hw_verdict *verdict, const struct hw_verdict_input *input)
{
    if (input->active_lines == HW_NOT_OBSERVED || input->passive_lines == HW_NOT_OBSERVED ||
        input->lines == HW_NOT_OBSERVED)
        return;
    const double share = hw_share((double)input->active_lines + (double)input->passive_lines, (double)input->lines);
    if (share >= LINES_SHARE)
        add(verdict, input, HW_CAUSE_FALSE_SHARING, share);
}

/* ---- the whole ---- */

/* Time first, then memory, then lines; the greater share of each first. */
static int section_of(enum hw_verdict_cause cause)
{
    return cause == HW_CAUSE_FALSE_SHARING ? 2 : cause >= HW_CAUSE_INTERNAL;
}

static void sort(struct hw_verdict *verdict)
{
    for (size_t i = 1; i < verdict->finding_count; i++)
        for (size_t k = i; k > 0; k--) {
            struct hw_verdict_finding *a = &verdict->findings[k - 1], *b = &verdict->findings[k];
            const int order = section_of(a->cause) - section_of(b->cause);
            if (order < 0 || (order == 0 && a->share >= b->share))
                break;
            const struct hw_verdict_finding swap = *a;
            *a = *b;
            *b = swap;
        }
}

void hw_verdict_make(struct hw_verdict *verdict, const struct hw_verdict_input *input)
{
    memset(verdict, 0, sizeof *verdict);
    verdict->time_share = hw_share(input->critical, input->run);
    verdict->memory_share = hw_share(input->total - input->real, input->total);
    /* What is beyond doubt: an estimate less its error; time in system calls is exact. */
    double sure = input->critical * (1 - (input->error < 1 ? input->error : isnan(input->error) ? 0 : 1));
    if (input->in_syscalls < input->critical && input->in_syscalls > sure)
        sure = input->in_syscalls;
    verdict->time = answer(hw_share(sure, input->run), TIME_SOME, TIME_MUCH);
    verdict->memory = answer(verdict->memory_share, MEMORY_SOME, MEMORY_MUCH);
    if (verdict->memory > HW_VERDICT_NO && input->total - input->real < MEMORY_LEAST * (double)input->memory_runs)
        verdict->memory = HW_VERDICT_NO;
    if (verdict->time > HW_VERDICT_NO)
        time_findings(verdict, input);
    page_finding(verdict, input);
    if (verdict->memory > HW_VERDICT_NO) {
        add_memory(verdict, input, HW_CAUSE_INTERNAL, input->internal, SIZE_MAX);
        add_memory(verdict, input, HW_CAUSE_BLOWUP, input->blowup, SIZE_MAX);
        const double kept = input->kept > 0 ? input->kept : 0;
        add_memory(verdict, input, HW_CAUSE_EXTERNAL, input->external - kept, input->pinning_site);
        add_memory(verdict, input, HW_CAUSE_KEPT, kept, SIZE_MAX);
    }
    lasting_finding(verdict, input);
    line_finding(verdict, input);
    sort(verdict);
    verdict->another = input->best && input->best_gain >= GAIN_LEAST && input->best_low > 0;
}
