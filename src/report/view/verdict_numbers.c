/* verdict_numbers.c - from the profile to the numbers that a verdict is made of (analysis/verdict.h). */
#include "report/view/verdict_numbers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log_histogram.h"
#include "report/view/frame_roles.h"

static void add_cost(struct hw_operation_cost *cost, const struct hw_profile_operation *operation, double seconds)
{
    cost->count = cost->count == HW_NOT_OBSERVED ? operation->count : cost->count + operation->count;
    if (isnan(cost->seconds))
        cost->seconds = 0;
    cost->seconds += hw_profile_operation_total(operation) * seconds;
}

/* Variance of the estimate of OPERATION's time: each timed one stands for w others, w being weight / samples
 * (Horvitz and Thompson: sum of w (w - 1) x^2 over the samples, x^2 by the middle of its bin). */
static double variance(const struct hw_profile_operation *operation)
{
    double squares = 0;
    if (!operation->samples || operation->weight <= operation->samples)
        return 0;
    for (uint32_t bin = 0; bin < HW_TIME_BINS; bin++) {
        const double middle = 0.5 * ((double)hw_time_bin_least(bin) + (double)hw_time_bin_least(bin + 1));
        squares += (double)operation->histogram[bin] * middle * middle;
    }
    return ((double)operation->weight / (double)operation->samples - 1) * squares;
}

#define WHOLE_PAGE 4096u /* bytes: what is set to zero, or copied, takes longer than the operation itself */

static void take_operations(struct hw_verdict_input *input, const struct hw_profile_allocator *allocator,
                            double seconds)
{
    double ticks = 0, error = 0;
    for (int phase = 0; phase < HW_PHASES; phase++)
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
            for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++) {
                const struct hw_profile_operation *operation = hw_profile_operation(allocator, phase, kind, bucket);
                const enum hw_size_group group = hw_profile_size_group(allocator, bucket);
                if (!operation->count)
                    continue;
                ticks += hw_profile_operation_total(operation);
                input->count += operation->count;
                error += variance(operation);
                if (bucket != HW_SIZE_BUCKET_UNKNOWN && hw_size_bucket_least(bucket) >= WHOLE_PAGE) {
                    if (kind == HW_OPERATION_CALLOC)
                        add_cost(&input->clearing, operation, seconds);
                    else if (kind == HW_OPERATION_REALLOC)
                        add_cost(&input->copying, operation, seconds);
                }
                if (group == HW_SIZE_LARGE)
                    add_cost(&input->large, operation, seconds);
                else if (kind == HW_OPERATION_NEW)
                    add_cost(&input->fresh, operation, seconds);
                else if (kind == HW_OPERATION_REUSED)
                    add_cost(&input->reused, operation, seconds);
                if (bucket != HW_SIZE_BUCKET_UNKNOWN && kind != HW_OPERATION_FREE)
                    input->largest = bucket == HW_SIZE_BUCKET_LAST ? hw_size_bucket_least(bucket)
                                     : hw_size_bucket_most(bucket) > input->largest || input->largest == HW_NOT_OBSERVED
                                         ? hw_size_bucket_most(bucket)
                                         : input->largest;
            }
    if (!allocator->info.timed)
        return;
    input->operations = ticks * seconds;
    input->error = ticks > 0 ? sqrt(error) / ticks : NAN;
    input->critical = hw_profile_critical_ticks(allocator) * seconds;
    input->own = hw_profile_own_critical_ticks(allocator) * seconds;
    input->runnable = (double)allocator->info.runnable_ns * 1e-9;
    input->threads = hw_profile_thread_ticks(allocator) * seconds;
}

/* ---- inside operations ---- */

static void sum_calls(const struct hw_profile_inside *inside, enum hw_system_call call, double seconds, uint64_t *calls,
                      double *time, uint64_t *bytes)
{
    *calls = *calls == HW_NOT_OBSERVED ? 0 : *calls;
    *time = isnan(*time) ? 0 : *time;
    for (int phase = 0; phase < HW_PHASES; phase++)
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++) {
            *calls += inside->calls[call][phase][kind].count;
            *time += (double)inside->calls[call][phase][kind].ticks * seconds;
            *bytes = hw_add_saturating(*bytes, inside->calls[call][phase][kind].bytes);
        }
}

/* Less what operations of KIND spend in system calls, and wait. */
static void subtract_inside(struct hw_operation_cost *cost, const struct hw_profile_inside *inside, int kind,
                            double seconds)
{
    uint64_t ticks = 0;
    for (int phase = 0; phase < HW_PHASES; phase++) {
        for (int call = 0; call < HW_SYSTEM_CALLS; call++)
            ticks = hw_add_saturating(ticks, inside->calls[call][phase][kind].ticks);
        for (size_t i = 0; i < inside->lock_count; i++)
            if (inside->locks[i].kind != HW_LOCK_FUTEX)
                ticks = hw_add_saturating(ticks, inside->locks[i].use[phase][kind].wait_ticks);
    }
    cost->seconds -= (double)ticks * seconds;
}

static void take_inside(struct hw_verdict_input *input, const struct hw_profile_inside *inside, double seconds)
{
    uint64_t ignored = 0;
    if (!inside->present)
        return;
    subtract_inside(&input->clearing, inside, HW_OPERATION_CALLOC, seconds);
    subtract_inside(&input->copying, inside, HW_OPERATION_REALLOC, seconds);
    input->waiting = input->exact = 0;
    input->acquired = input->contended = 0;
    for (size_t i = 0; i < inside->lock_count; i++)
        for (int phase = 0; phase < HW_PHASES; phase++)
            for (int kind = 0; kind < HW_OPERATION_KINDS; kind++) {
                const struct hw_lock_use *use = &inside->locks[i].use[phase][kind];
                input->waiting += (double)use->wait_ticks * seconds;
                if (inside->locks[i].kind == HW_LOCK_FUTEX)
                    continue;
                input->exact += (double)use->wait_ticks * seconds;
                input->acquired += use->count;
                input->contended += use->contended;
            }
    if (!inside->calls_observed)
        return;
    sum_calls(inside, HW_CALL_MMAP, seconds, &input->map.calls, &input->map.seconds, &input->map.bytes);
    sum_calls(inside, HW_CALL_MUNMAP, seconds, &input->map.calls, &input->map.seconds, &input->map.bytes);
    sum_calls(inside, HW_CALL_MREMAP, seconds, &input->map.calls, &input->map.seconds, &input->map.bytes);
    sum_calls(inside, HW_CALL_BRK, seconds, &input->heap_end.calls, &input->heap_end.seconds, &input->heap_end.bytes);
    sum_calls(inside, HW_CALL_MADVISE, seconds, &input->advise.calls, &input->advise.seconds, &input->advise.bytes);
    sum_calls(inside, HW_CALL_MPROTECT, seconds, &input->protect.calls, &input->protect.seconds, &input->protect.bytes);
    input->in_syscalls = 0;
    for (int call = 0; call < HW_SYSTEM_CALLS; call++)
        sum_calls(inside, (enum hw_system_call)call, seconds, &ignored, &input->in_syscalls, &ignored);
    input->exact += input->in_syscalls; /* waits of futexes are system calls, those of pthreads' locks are not seen */
    /* Spinning that gives way or sleeps is waiting, too. */
    sum_calls(inside, HW_CALL_SCHED_YIELD, seconds, &ignored, &input->waiting, &ignored);
    sum_calls(inside, HW_CALL_SLEEP, seconds, &ignored, &input->waiting, &ignored);
}

static double faults_of_new(const struct hw_profile_allocator *allocator)
{
    double sum = 0, samples = 0;
    if (!(allocator->inside.events_present & 1u << HW_EVENT_PAGE_FAULTS))
        return NAN;
    for (int phase = 0; phase < HW_PHASES; phase++)
        for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++) {
            const struct hw_profile_events *events = &allocator->inside.events[phase][HW_OPERATION_NEW][bucket];
            if (hw_profile_size_group(allocator, bucket) == HW_SIZE_LARGE)
                continue;
            sum += (double)events->sum[HW_EVENT_PAGE_FAULTS];
            samples += (double)events->samples;
        }
    return samples > 0 ? sum / samples : NAN;
}

/* ---- memory and lines ---- */

static void take_worst_class(struct hw_verdict_input *input, const struct hw_profile_places *places)
{
    for (size_t i = 0; i < places->class_count; i++) {
        const struct hw_usable_class *class = &places->classes[i];
        const struct hw_usable_class_state *state = input->memory_at_end ? &class->now : &class->peak;
        const double wasted = (double)state->usable_bytes - (double)state->live_bytes - (double)state->untouched_bytes;
        if (wasted > 0 && !(wasted <= input->worst_class.wasted)) { /* NAN at first */
            input->worst_class.least = class->usable_least;
            input->worst_class.most = class->usable_most;
            input->worst_class.wasted = wasted;
        }
    }
}

static void take_pinned(struct hw_verdict_input *input, const struct hw_profile *profile)
{
    const struct hw_profile_places *places = profile->places;
    for (size_t i = 0; i < places->pinned_count; i++) {
        const struct hw_pinned *pinned = &places->pinned[i]; /* most bytes first */
        if (pinned->moment != (uint32_t)(input->memory_at_end ? HW_MOMENT_END : HW_MOMENT_PEAK))
            continue;
        if (isnan(input->pinned)) {
            input->pinned = 0;
            input->pinning_site = profile->context_entries[pinned->context].leaf;
        }
        input->pinned += (double)pinned->bytes;
    }
}

/* Merged profiles: of those runs in which the resident heap was read near the peak, as it was then. */
static void take_some_runs(struct hw_verdict_input *input, const struct hw_profile_places *places)
{
    const struct hw_places_moment *moment = hw_profile_places_moment(places, HW_MOMENT_PEAK);
    if (!places->info.runs || !moment || !moment->runs_read || !moment->resident_bytes)
        return;
    input->memory_runs = moment->runs_read;
    input->total = (double)moment->resident_bytes;
    input->real = (double)moment->requested_bytes - (double)moment->absent_requested;
    input->internal = (double)moment->internal_bytes;
    input->blowup = (double)moment->blowup_bytes;
    input->external = input->total - input->real - input->internal - input->blowup;
}

static void take_parts(struct hw_verdict_input *input, const struct hw_heap_parts *parts)
{
    /* What was never touched costs nothing: it is no waste, and not in the whole either. */
    input->total = (double)parts->total;
    input->real = (double)parts->real - (double)parts->absent;
    input->internal = (double)parts->internal;
    input->blowup = (double)parts->blowup;
    input->external = (double)parts->external;
    input->memory_runs = input->runs;
}

/* What is free in pages without live blocks: of what is free, that which does not share pages with live blocks. How
 * much does was estimated from followed blocks; where none was live it is at most two pages for each live block. */
static void take_kept(struct hw_verdict_input *input, const struct hw_profile_places *places,
                      enum hw_memory_moment kind)
{
    const struct hw_places_moment *moment = hw_profile_places_moment(places, kind);
    if (!moment || moment->runs || !(input->external > 0))
        return;
    double live = 0;
    for (size_t i = 0; i < places->class_count; i++)
        live += (double)(kind == HW_MOMENT_END ? places->classes[i].now : places->classes[i].peak).live_blocks;
    const double shared =
        moment->pages_looks ? (double)moment->pages_free - (double)moment->internal_bytes : 2.0 * WHOLE_PAGE * live;
    const double kept = (double)moment->free_bytes - (double)moment->absent_free - (double)moment->blowup_bytes -
                        (shared > 0 ? shared : 0);
    input->kept = kept < 0 ? 0 : kept < input->external ? kept : input->external;
}

/* So much more was resident than at the peak that it is this that counts. */
#define MUCH_MORE      1.1
#define MUCH_MORE_MORE (8.0 * 1024 * 1024)

static bool is_much_more(const struct hw_verdict_input *input, double total)
{
    return !(input->total > 0) || total > MUCH_MORE * input->total + MUCH_MORE_MORE;
}

/* The moment at which most was resident, if that was not the peak; 0: it was. */
static uint64_t take_worst_moment(struct hw_verdict_input *input, const struct hw_profile *profile)
{
    const struct hw_profile_places *places = profile->places;
    const struct hw_places_point *most = NULL;
    struct hw_heap_parts end;
    uint64_t tick = 0;
    for (size_t i = 0; i < places->point_count; i++)
        if (places->points[i].resident_bytes > (most ? most->resident_bytes : 0))
            most = &places->points[i];
    if (most && is_much_more(input, (double)most->resident_bytes)) {
        tick = most->tick;
        input->total = (double)most->resident_bytes;
        input->internal = (double)most->internal_bytes;
        input->blowup = (double)most->blowup_bytes;
        input->external = (double)most->external_bytes;
        input->real = input->total - input->internal - input->blowup - input->external;
        input->memory_runs = input->runs;
    }
    if (hw_profile_heap_parts(places, HW_MOMENT_END, &end) && end.measured &&
        (is_much_more(input, (double)end.total) || (tick && end.total > input->total))) {
        tick = end.tick;
        take_parts(input, &end);
        take_kept(input, places, HW_MOMENT_END);
        input->memory_at_end = true;
    }
    return tick;
}

/* Returns the moment that the parts are of, in ticks. */
static uint64_t take_places(struct hw_verdict_input *input, const struct hw_profile *profile)
{
    const struct hw_profile_places *places = profile->places;
    struct hw_heap_parts peak;
    uint64_t at = 0;
    if (!places)
        return 0;
    if (hw_profile_heap_parts(places, HW_MOMENT_PEAK, &peak) && peak.measured) {
        take_parts(input, &peak);
        take_kept(input, places, HW_MOMENT_PEAK);
    } else {
        take_some_runs(input, places);
    }
    if (!places->info.runs)
        at = take_worst_moment(input, profile);
    if (at)
        input->memory_at = (double)hw_profile_ticks_to_ns(profile, at) * 1e-9;
    if (!at || input->memory_at_end) {
        take_worst_class(input, places);
        take_pinned(input, profile);
    }
    input->active_lines = places->info.active_lines;
    input->passive_lines = places->info.passive_lines;
    input->lines = input->total > 0 ? (uint64_t)(input->total / 64) : HW_NOT_OBSERVED;
    return at ? at : places->info.peak_tick;
}

/* ---- the rest ---- */

static void take_predictions(struct hw_verdict_input *input, const struct hw_profile_allocator *allocator)
{
    for (size_t i = 0; i < allocator->prediction_count; i++) {
        const struct hw_allocator_prediction *one = &allocator->predictions[i];
        if (!one->replays || !one->speedup || !one->low)
            continue;
        const double gain = 1 - 1e6 / (double)one->speedup;
        if (input->best_gain != input->best_gain)
            input->best_gain = 0;
        if (gain <= input->best_gain)
            continue;
        input->best = one->allocator;
        input->best_gain = gain;
        input->best_low = 1 - 1e6 / (double)one->low;
        input->best_high = 1 - 1e6 / (double)one->high;
    }
}

/* Where most time in operations of KIND is spent, or of all (-1), as far as enough were timed. */
static size_t site_of(const struct hw_view *view, int kind)
{
    for (size_t i = 0; i < view->sites_ranked; i++)
        if (view->sites[i].context && (kind < 0 || view->sites[i].kind == (uint32_t)kind)) /* most ticks first */
            return i;
    return SIZE_MAX;
}

static void take_site(struct hw_verdict_input *input, const struct hw_view *view, double seconds)
{
    input->clearing_site = site_of(view, HW_OPERATION_CALLOC);
    input->copying_site = site_of(view, HW_OPERATION_REALLOC);
    input->site = site_of(view, -1);
    if (input->site == SIZE_MAX)
        return;
    input->site_seconds = (double)view->sites[input->site].ticks * seconds;
    input->site_count = view->sites[input->site].weight;
}

/* ---- when it was ---- */

/* Of what adds up, nearly all: but for so much at the begin, and at the end. */
#define WHEN_REST 0.05
/* Of the run: between two points. */
#define WHEN_GAP 0.1
/* The same between two readings of the resident heap, which take time; the verdict counts them. */
#define WHEN_LOOK_GAP 0.2

static double seconds_at(const struct hw_profile *profile, uint64_t tick)
{
    return (double)hw_profile_ticks_to_ns(profile, tick) * 1e-9;
}

static uint64_t events_at(const struct hw_places_point *point, enum hw_verdict_cause cause)
{
    return cause == HW_CAUSE_MAPPING      ? point->mapping_ticks
           : cause == HW_CAUSE_HEAP_END   ? point->heap_end_ticks
           : cause == HW_CAUSE_ADVICE     ? point->advice_ticks
           : cause == HW_CAUSE_NEW_MEMORY ? point->handed_out_new
           : cause == HW_CAUSE_RATE       ? point->handed_out
           : cause == HW_CAUSE_LOCKS      ? point->waiting_ticks
                                          : point->shared_lines;
}

/* From point FIRST to point LAST, unless there is so long a time without points at either side that it says nothing. */
static void set_when(struct hw_verdict_input *input, const struct hw_profile *profile, enum hw_verdict_cause cause,
                     size_t first, size_t last)
{
    const struct hw_places_point *point = profile->places->points;
    const double since = first ? seconds_at(profile, point[first].tick) : input->begin,
                 until = seconds_at(profile, point[last].tick);
    if (seconds_at(profile, point[first + 1].tick) - since > WHEN_GAP * input->wall ||
        (last > 0 && until - seconds_at(profile, point[last - 1].tick) > WHEN_GAP * input->wall))
        return;
    input->when[cause].since = since;
    input->when[cause].until = until;
}

/* Between which points all but the rest of it happened. */
static void when_of_events(struct hw_verdict_input *input, const struct hw_profile *profile,
                           enum hw_verdict_cause cause)
{
    const struct hw_places_point *point = profile->places->points;
    const size_t count = profile->places->point_count;
    const double all = (double)events_at(&point[count - 1], cause);
    size_t first = 0, last = count - 1;
    if (all <= 0)
        return;
    while (first + 2 < count && (double)events_at(&point[first + 1], cause) < WHEN_REST * all)
        first++;
    while (last > first && (double)events_at(&point[last - 1], cause) > (1 - WHEN_REST) * all)
        last--;
    set_when(input, profile, cause, first, last);
}

/* Around TICK, as long as there was at least half as much of it as then. */
static void when_of_state(struct hw_verdict_input *input, const struct hw_profile *profile, enum hw_verdict_cause cause,
                          uint64_t tick)
{
    const struct hw_places_point *point = profile->places->points;
    const size_t count = profile->places->point_count;
    const double enough = 0.5 * (cause == HW_CAUSE_INTERNAL ? input->internal : input->blowup);
    size_t at = 0, first, last;
    if (!(enough > 0))
        return;
    while (at + 2 < count && point[at + 1].tick <= tick)
        at++;
#define THERE(i) ((double)(cause == HW_CAUSE_INTERNAL ? point[i].internal_bytes : point[i].blowup_bytes) >= enough)
    for (first = at; first > 0 && THERE(first - 1);)
        first--;
    for (last = at; last + 1 < count && THERE(last + 1);)
        last++;
#undef THERE
    set_when(input, profile, cause, first, last);
}

/* The nearest point before FROM, or behind it (STEP 1), at which the resident heap was read; SIZE_MAX: none. */
static size_t next_look(const struct hw_profile_places *places, size_t from, size_t step)
{
    for (size_t i = from + step; i < places->point_count; i += step)
        if (places->points[i].resident_bytes)
            return i;
    return SIZE_MAX;
}

/* The same around the reading near the peak, but known only where the resident heap was read. */
static void when_of_external(struct hw_verdict_input *input, const struct hw_profile *profile)
{
    const struct hw_profile_places *places = profile->places;
    const struct hw_places_moment *peak = hw_profile_places_moment(places, HW_MOMENT_PEAK);
    struct hw_verdict_when *when = &input->when[HW_CAUSE_EXTERNAL];
    const double enough = 0.5 * input->external;
    size_t ends[2], at = SIZE_MAX;
    uint64_t looks = 0;
    if (!peak || !(enough > 0))
        return;
    for (size_t i = next_look(places, SIZE_MAX, 1); i != SIZE_MAX; i = next_look(places, i, 1)) {
        looks++;
        at = places->points[i].tick <= peak->tick ? i : at;
    }
    if (at == SIZE_MAX || (double)places->points[at].external_bytes < enough)
        return;
    for (int side = 0; side < 2; side++) {
        const size_t step = side ? 1 : SIZE_MAX;
        size_t last = at, beyond = next_look(places, at, step);
        while (beyond != SIZE_MAX && (double)places->points[beyond].external_bytes >= enough) {
            last = beyond;
            beyond = next_look(places, last, step);
        }
        const double edge =
            beyond != SIZE_MAX ? seconds_at(profile, places->points[beyond].tick) : input->begin + side * input->wall;
        if (fabs(edge - seconds_at(profile, places->points[last].tick)) > WHEN_LOOK_GAP * input->wall)
            return; /* so far apart that they say nothing */
        ends[side] = last;
    }
    *when = (struct hw_verdict_when){.since = seconds_at(profile, places->points[ends[0]].tick),
                                     .until = seconds_at(profile, places->points[ends[1]].tick),
                                     .looks = looks};
}

/* A part of the run that is worth a word. */
#define LASTING        0.2
#define LASTING_NEARLY 0.9 /* as many bytes count for the same time */

struct waste {
    double bytes, resident, seconds;
};

static int by_waste(const void *a, const void *b)
{
    const struct waste *one = a, *other = b;
    return (one->bytes < other->bytes) - (one->bytes > other->bytes);
}

/* How much was resident beyond what was requested, for a fifth of the run. What is resident at a point at which it
 * was not read is what the next reading says, less what may have been added until then: as much as is requested more.
 */
static void take_lasting(struct hw_verdict_input *input, const struct hw_profile *profile)
{
    const struct hw_places_point *point = profile->places->points;
    const size_t points = profile->places->point_count;
    struct waste *waste = calloc(points, sizeof *waste);
    double resident = 0, requested = 0, until = input->begin + input->wall, seconds = 0, nearly = 0;
    size_t count = 0;
    for (size_t i = points; waste && i-- > 0;) {
        const double at = seconds_at(profile, point[i].tick), here = (double)point[i].requested_bytes;
        if (point[i].resident_bytes)
            resident = (double)point[i].resident_bytes;
        requested = point[i].resident_bytes ? here : fmax(requested, here);
        struct waste *one = &waste[count++];
        one->bytes = point[i].resident_bytes ? (double)point[i].internal_bytes + (double)point[i].blowup_bytes +
                                                   (double)point[i].external_bytes
                                             : resident - requested;
        one->resident = resident - (requested - here);
        one->seconds = until > at ? fmin(until - at, WHEN_LOOK_GAP * input->wall) : 0;
        until = at;
    }
    if (count)
        qsort(waste, count, sizeof *waste, by_waste);
    for (size_t i = 0; i < count; i++) {
        const bool known = input->lasting > 0;
        if (waste[i].bytes <= 0 || (known && waste[i].bytes < nearly))
            break;
        seconds += waste[i].seconds;
        if (seconds < LASTING * input->wall)
            continue;
        nearly = known ? nearly : LASTING_NEARLY * waste[i].bytes;
        input->lasting = waste[i].bytes;
        input->lasting_total = waste[i].resident;
        input->lasting_seconds = seconds;
    }
    free(waste);
}

/* From exact counts over time, and from readings: samples have no times. */
static void take_times(struct hw_verdict_input *input, const struct hw_profile *profile, uint64_t at)
{
    if (!profile->places || profile->places->point_count < 4)
        return;
    for (enum hw_verdict_cause cause = 0; cause <= HW_CAUSE_RATE; cause++)
        when_of_events(input, profile, cause);
    when_of_events(input, profile, HW_CAUSE_FALSE_SHARING);
    when_of_state(input, profile, HW_CAUSE_INTERNAL, at);
    when_of_state(input, profile, HW_CAUSE_BLOWUP, at);
    if (isnan(input->memory_at))
        when_of_external(input, profile);
    if (input->wall > 0 && !profile->places->info.runs)
        take_lasting(input, profile);
}

bool hw_view_verdict(struct hw_view_verdict *of, const struct hw_view *view)
{
    const struct hw_profile *profile = view->profile;
    const struct hw_profile_allocator *allocator = profile->observed;
    if (!allocator)
        return false;
    const double seconds = allocator->ns_per_tick * 1e-9;
    struct hw_verdict_input *input = &of->input;
    *input = hw_verdict_input_none();
    input->runs = allocator->runs;
    input->begin = (double)hw_profile_counted_from_ns(profile) * 1e-9;
    input->wall = (double)(allocator->info.runs ? allocator->info.duration_ns : profile->duration_ns) * 1e-9;
    input->wall -= input->wall > input->begin ? input->begin : 0;
    input->allocator = profile->allocator;
    input->threads_most = (unsigned)profile->process.threads_most;
    take_operations(input, allocator, seconds);
    take_inside(input, &allocator->inside, seconds);
    input->faults = faults_of_new(allocator);
    input->small_pages = allocator->facts_known && (allocator->facts.flags & HW_FACTS_SMALL_PAGES);
    take_times(input, profile, take_places(input, profile));
    take_predictions(input, allocator);
    take_site(input, view, seconds);
    hw_verdict_settle(input);
    hw_verdict_make(&of->verdict, input);
    return true;
}

/* The stack that FINDING names, 0: none. */
static uint32_t stack_of(const struct hw_view *view, const struct hw_verdict_finding *finding)
{
    if (finding->site == SIZE_MAX)
        return 0;
    return finding->cause == HW_CAUSE_EXTERNAL ? (uint32_t)finding->site : view->sites[finding->site].context;
}

static void add_frame(struct hw_buffer *out, const struct hw_view_frame *frame, enum hw_clean clean)
{
    const struct hw_frame *symbol = frame->symbol;
    if (symbol->function) {
        hw_buffer_clean(out, symbol->function, clean);
    } else {
        if (frame->module)
            hw_buffer_clean(out, frame->module->name, clean);
        hw_buffer_add(out, "+0x%" PRIx64, frame->address);
    }
    if (!symbol->file)
        return;
    hw_buffer_add(out, " (");
    hw_buffer_clean(out, basename(symbol->file), clean);
    hw_buffer_add(out, ":%" PRIu32 ")", symbol->line);
}

bool hw_view_verdict_site(const struct hw_view *view, const struct hw_verdict_finding *finding, enum hw_clean clean,
                          struct hw_buffer *out)
{
    const uint32_t leaf = stack_of(view, finding);
    struct hw_view_stack stack = {0};
    if (!leaf)
        return true;
    const bool loaded = hw_view_stack(view, leaf, &stack);
    if (loaded && stack.count)
        add_frame(out, &stack.frames[hw_stack_headline(&stack)], clean);
    hw_view_stack_free(&stack);
    return loaded;
}
