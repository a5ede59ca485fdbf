/* measure.c - see measure.h. */
#include "report/view/measure.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "report/text/human.h"

const struct hw_measure hw_measures[HW_MEASURES] = {
#define HW_BOTH(id, key_, json_, title_, name_, unit_, needs, value, sentence_)                                        \
    [HW_MEASURE_##id] = {key_, json_, title_, name_, HW_UNIT_##unit_, sentence_},
#define HW_VALUE HW_BOTH
#include "report/view/measures.def"
};

const struct hw_list_key hw_list_keys[HW_SORT_KEYS] = {
#define HW_BOTH(id, key_, json_, title_, name_, unit_, needs, value, sentence_) [HW_SORT_##id] = {key_, sentence_},
#define HW_LIST(id, key_, value, sentence_)                                     [HW_SORT_##id] = {key_, sentence_},
#include "report/view/measures.def"
};

enum hw_measure_id hw_measure_find(const char *name, const char **now)
{
    *now = NULL;
    for (enum hw_measure_id id = 0; id < HW_MEASURES; id++)
        if (!strcmp(hw_measures[id].key, name) || (hw_measures[id].json && !strcmp(hw_measures[id].json, name)))
            return id;
#define HW_OLD_VALUE(old, id)                                                                                          \
    if (!strcmp(old, name)) {                                                                                          \
        *now = hw_measures[HW_MEASURE_##id].key;                                                                       \
        return HW_MEASURE_##id;                                                                                        \
    }
#include "report/view/measures.def"
    return HW_MEASURES;
}

static bool is_key(const char *key, const char *name, size_t size)
{
    return strlen(key) == size && !strncmp(key, name, size);
}

enum hw_sort_key hw_list_find(const char *name, size_t size, const char **now)
{
    *now = NULL;
    for (enum hw_sort_key key = 0; key < HW_SORT_KEYS; key++)
        if (is_key(hw_list_keys[key].key, name, size))
            return key;
#define HW_OLD_LIST(old, id)                                                                                           \
    if (is_key(old, name, size)) {                                                                                     \
        *now = hw_list_keys[HW_SORT_##id].key;                                                                         \
        return HW_SORT_##id;                                                                                           \
    }
#include "report/view/measures.def"
    return HW_SORT_KEYS;
}

const char *hw_measure_keys(char *buffer, size_t size)
{
    size_t used = 0;
    *buffer = '\0';
    for (size_t i = 0; i < HW_MEASURES && used < size; i++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%s", i ? ", " : "", hw_measures[i].key);
    return buffer;
}

const char *hw_measure_unit_name(enum hw_measure_unit unit)
{
    static const char *const names[] = {
        [HW_UNIT_BYTES] = "bytes", [HW_UNIT_COUNT] = "count", [HW_UNIT_NS] = "nanoseconds"};
    return names[unit];
}

static const char *access_unknown(const struct hw_view *view, enum hw_measure_id id)
{
    const struct hw_profile *profile = view->profile;
    const bool of_granules = id >= HW_MEASURE_UNTOUCHED;
    if (!profile->access_counted)
        return "accesses were not counted (heapwise cc)";
    if (of_granules && !hw_view_measured(view, HW_MEASURED_GRANULES))
        return "this kind of profile does not record it";
    if (!of_granules && hw_profile_counts_periods(profile))
        return "it was made with --granule=4, which does not count accesses";
    if ((id == HW_MEASURE_READS || id == HW_MEASURE_WRITES || id == HW_MEASURE_NEVER_READ) &&
        !(profile->access_info.flags & HW_ACCESS_SPLIT) && profile->access.all.unsplit)
        return "reads and writes were not distinguished";
    return NULL;
}

/* Among the runtime's options, as it got them: NAME=… */
static bool has_option(const char *options, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = options; at; at = strchr(at, ':'), at += at != NULL)
        if (!strncmp(at, name, length) && at[length] == '=')
            return true;
    return false;
}

/* What is done only at the end, and only where an option asks for it. */
struct asked {
    const char *option, *said; /* said: how a note of the runtime begins */
    const char *unasked, *early, *exec, *killed, *signal, *full, *other;
};
#define ENDED(said)                                                                                                    \
    .exec = said ": the process became another program (exec)", .killed = said ": SIGKILL ended the program",          \
    .signal = said ": a signal ended the program at once (its stack had overflowed, and there was no other one: "      \
                   "sigaltstack)",                                                                             \
    .full = said ": the profile could not grow (no space left on device, or a limit of file sizes)",                   \
    .other = said ": the program had given up system calls (seccomp), or its end was not seen"

/* The text of a note of that code that begins with SAID, or NULL. */
static const char *note_of(const struct hw_profile *profile, uint32_t code, const char *said)
{
    for (size_t i = 0; i < profile->note_count; i++) {
        const char *text = hw_profile_string(profile, profile->notes[i].text);
        if (profile->notes[i].code == code && !strncmp(text, said, strlen(said)))
            return text;
    }
    return NULL;
}

static const char *why_not(const struct hw_profile *profile, const struct asked *asked)
{
    const struct hw_process_info *process = &profile->process;
    const char *note = note_of(profile, HW_NOTE_OTHER, asked->said);
    if (note)
        return note;
    if (!has_option(hw_profile_string(profile, process->options), asked->option))
        return asked->unasked;
    if (process->flags & HW_PROCESS_DUMP || profile->running)
        return asked->early;
    if (process->exit_kind == HW_EXIT_EXEC)
        return asked->exec;
    if (process->exit_kind == HW_EXIT_SIGNAL && process->exit_value == SIGKILL)
        return asked->killed;
    if (process->exit_kind == HW_EXIT_SIGNAL)
        return asked->signal;
    return note_of(profile, HW_NOTE_FILE_FULL, "") ? asked->full : asked->other;
}

const char *hw_not_searched(const struct hw_profile *profile)
{
    static const struct asked asked = {
        .option = "leaks",
        .said = "leaks were not searched for",
        .unasked = "pointers were not searched for (heapwise record --leaks)",
        .early = "leaks are searched for at the end (before that: heapwise leaks PID)",
        ENDED("leaks were not searched for"),
    };
    return why_not(profile, &asked);
}

const char *hw_not_examined(const struct hw_profile *profile)
{
    static const struct asked asked = {
        .option = "contents",
        .said = "contents were not examined",
        .unasked = "contents were not examined: heapwise record --contents does that",
        .early = "contents were not examined: that is done at the end and in dumps",
        ENDED("contents were not examined"),
    };
    return why_not(profile, &asked);
}

/* Keepers are searched for after leaks: what prevented that prevented both. */
const char *hw_not_kept(const struct hw_profile *profile)
{
    static const struct asked asked = {
        .option = "keeps",
        .said = "who keeps blocks was not searched for",
        .unasked = "who keeps blocks was not searched for: heapwise record --keeps does that",
        .early = "who keeps blocks is searched for at the end (before that: heapwise leaks PID --keeps)",
        ENDED("who keeps blocks was not searched for"),
    };
    const char *leaks = note_of(profile, HW_NOTE_OTHER, "leaks were not searched for");
    return leaks && has_option(hw_profile_string(profile, profile->process.options), asked.option)
               ? leaks
               : why_not(profile, &asked);
}

const char *hw_not_walked(const struct hw_profile *profile)
{
    static const struct asked asked = {
        .option = "pinned",
        .said = "pages were not examined",
        .unasked = "pages were not examined: heapwise record --pinned does that",
        .early = "pages were not examined: only the process itself does that, at its end and in dumps",
        ENDED("pages were not examined"),
    };
    return profile->heap_pages ? "pages were not examined: a thread was in the middle of an allocation"
                               : why_not(profile, &asked);
}

const char *hw_measure_unknown(const struct hw_view *view, enum hw_measure_id id)
{
    if (id >= HW_MEASURE_ACCESSES)
        return access_unknown(view, id);
    if (hw_view_sampled(view) && (id == HW_MEASURE_TEMPORARY || id == HW_MEASURE_REALLOC))
        return "the run was sampled";
    static const enum hw_measured needed[HW_MEASURES] = {
#define HW_BOTH(id, key, json, title, name, unit, needs, ...) [HW_MEASURE_##id] = HW_MEASURED_##needs,
#define HW_VALUE                                              HW_BOTH
#include "report/view/measures.def"
    };
    if (needed[id] == HW_MEASURED_LEAKS && !hw_view_measured(view, HW_MEASURED_LEAKS))
        return hw_not_searched(view->profile);
    return hw_view_measured(view, needed[id]) ? NULL
           : view->profile->llvm              ? "this kind of profile does not record it"
           : view->profile->totals_lost       ? "that part of the file is damaged"
           : view->profile->process_lost
               ? "that part of the file is damaged"
               : "the address space had no room (ulimit -v, or mappings of the program), so sizes of freed blocks "
                 "are not known";
}

/* What the rows say; GRANULE is 1 where granules are counted. */
static uint64_t measure_value(enum hw_measure_id id, const struct hw_profile_context *sum,
                              const struct hw_profile_access *access, uint64_t granule)
{
    switch (id) {
#define HW_BOTH(id, key, json, title, name, unit, needs, value, ...)                                                   \
    case HW_MEASURE_##id:                                                                                              \
        return value;
#define HW_VALUE HW_BOTH
#include "report/view/measures.def"
    default:
        return 0;
    }
}

static const struct hw_profile_access no_access;

uint64_t hw_measure_value(const struct hw_view *view, enum hw_measure_id id, const struct hw_view_context *context)
{
    const struct hw_profile_context *sum = &context->sum;
    if (id < HW_MEASURE_POOLS && sum->pool)
        return 0;
    return measure_value(id, sum, sum->access ? &sum->access->all : &no_access, view->profile->access_info.granule);
}

uint64_t hw_sort_value(enum hw_sort_key key, const struct hw_view_context *context)
{
    const struct hw_profile_context *sum = &context->sum;
    const struct hw_profile_access *access = sum->access ? &sum->access->all : &no_access;
    const uint64_t granule = 1;
    if (key < HW_SORT_POOLS && sum->pool)
        return 0;
    switch (key) {
#define HW_BOTH(id, key, json, title, name, unit, needs, value, ...)                                                   \
    case HW_SORT_##id:                                                                                                 \
        return value;
#define HW_LIST(id, key, value, ...)                                                                                   \
    case HW_SORT_##id:                                                                                                 \
        return (uint64_t)(value);
#include "report/view/measures.def"
    default:
        return 0;
    }
}

uint64_t hw_measure_total(const struct hw_view *view, enum hw_measure_id id)
{
    uint64_t total = 0;
    for (size_t i = 0; i < view->context_count; i++)
        total = hw_add_saturating(total, hw_measure_value(view, id, &view->contexts[i]));
    return total;
}

uint64_t hw_measure_whole(const struct hw_view *view, enum hw_measure_id id)
{
    const struct hw_thread_entry *totals = &view->totals;
    if (view->function)
        return hw_measure_total(view, id);
    switch (id) {
    case HW_MEASURE_PEAK:
        return view->profile->process.peak_bytes;
    case HW_MEASURE_BYTES:
        return totals->bytes;
    case HW_MEASURE_COUNT:
        return totals->allocations;
    case HW_MEASURE_LEAKED:
        return hw_not_negative(totals->live_bytes);
    case HW_MEASURE_LIVE_COUNT:
        return hw_not_negative(totals->live_blocks);
    default:
        return hw_measure_total(view, id);
    }
}

/* The probability that a block of a context is in the sample: by its size, or, where blocks were not drawn by size, by
 * their number. */
static double drawn(const struct hw_view *view, const struct hw_profile_context *sum)
{
    const double distance = (double)view->profile->process.sample_bytes;
    if (distance > 0)
        return -expm1(-(double)sum->bytes / (double)sum->allocations / distance);
    return sum->samples < sum->allocations ? (double)sum->samples / (double)sum->allocations : 1;
}

/* Blocks taken for ones of their context's mean size: value / weight of them, each in the sample or not. */
static double rough_variance(const struct hw_view *view, enum hw_measure_id id, const struct hw_profile_context *sum,
                             double value)
{
    const double size = (double)sum->bytes / (double)sum->allocations, p = drawn(view, sum);
    const double weight = hw_measures[id].unit == HW_UNIT_BYTES ? size : 1;
    return p > 0 ? weight * value * (1 - p) / p : 0;
}

/* By the sums that sampled runs keep: what is live is what is not freed; the peak is taken to have the context's usual
 * mix of sizes. */
static double kept_variance(enum hw_measure_id id, const struct hw_profile_context *sum, double value)
{
    const double count = (double)sum->count_variance / HW_COUNT_VARIANCE_UNIT;
    const double freed = (double)sum->freed_count_variance / HW_COUNT_VARIANCE_UNIT;
    const double bytes = (double)sum->bytes_variance * HW_BYTES_VARIANCE_UNIT;
    const double freed_bytes = (double)sum->freed_bytes_variance * HW_BYTES_VARIANCE_UNIT;
    const double older = (double)sum->inherited_count_variance / HW_COUNT_VARIANCE_UNIT;
    const double older_bytes = (double)sum->inherited_bytes_variance * HW_BYTES_VARIANCE_UNIT;
    switch (id) {
    case HW_MEASURE_COUNT:
        return count;
    case HW_MEASURE_FREES:
        return freed;
    case HW_MEASURE_LIVE_COUNT:
        return count + older > freed ? count + older - freed : 0;
    case HW_MEASURE_LEAKED:
        return bytes + older_bytes > freed_bytes ? bytes + older_bytes - freed_bytes : 0;
    case HW_MEASURE_BYTES:
        return bytes;
    case HW_MEASURE_PEAK:
        return (bytes + older_bytes) * value / ((double)sum->bytes + (double)hw_not_negative(sum->inherited_bytes));
    default:
        return sum->allocations ? count * value / (double)sum->allocations : 0;
    }
}

/* Allocator mode counts some numbers of the process apart from its samples; other runs that are merged with it are
 * exact if they are not sampled. */
static bool counted_apart(const struct hw_view *view, enum hw_measure_id id)
{
    const struct hw_profile *profile = view->profile;
    const struct hw_profile_allocator *observed = profile->observed;
    const bool merged = profile->process.flags & HW_PROCESS_MERGED;
    const bool others = merged && observed && observed->runs != profile->process.runs;
    if (!observed || view->function || (others && profile->process.sample_bytes))
        return false;
    switch (id) {
    case HW_MEASURE_COUNT:
    case HW_MEASURE_FREES:
        return true;
    case HW_MEASURE_BYTES:
        return hw_profile_bytes_exact(profile);
    case HW_MEASURE_PEAK:
    case HW_MEASURE_LEAKED:
    case HW_MEASURE_LIVE_COUNT:
        return hw_profile_measured(profile, HW_MEASURED_LIVE);
    default:
        return false;
    }
}

double hw_measure_uncertainty(const struct hw_view *view, enum hw_measure_id id)
{
    double variance = 0, third = 0;
    if (counted_apart(view, id) || !hw_view_sampled(view))
        return 0;
    const struct hw_process_info *process = &view->profile->process;
    /* Older files have no sums; with mixed sizes the truth was up to 2.6 times as uncertain as the mean size says. */
    const double wider = process->sample_bytes ? 2.6 * 2.6 : 1;
    for (size_t i = 0; i < view->context_count; i++) {
        const struct hw_profile_context *sum = &view->contexts[i].sum;
        const double value = (double)hw_measure_value(view, id, &view->contexts[i]);
        double own = 0;
        if (!(value > 0))
            continue;
        if (sum->count_variance | sum->bytes_variance | sum->inherited_count_variance | sum->inherited_bytes_variance)
            own = kept_variance(id, sum, value);
        else if (sum->allocations && sum->bytes)
            own = wider * rough_variance(view, id, sum, value);
        variance += own;
        third += own * own / value; /* as of blocks of one size */
    }
    if (id == HW_MEASURE_PEAK && !view->function && process->peak_variance) {
        const double peak = (double)process->peak_variance * HW_BYTES_VARIANCE_UNIT;
        if (!(process->flags & HW_PROCESS_MERGED) || peak > variance) /* some of them may be older files */
            return 2 * sqrt(peak);
    }
    const bool counts = id == HW_MEASURE_COUNT || id == HW_MEASURE_FREES || id == HW_MEASURE_LIVE_COUNT;
    return hw_measure_within(variance, third, counts ? (double)process->sample_bytes / HW_MEASURE_TINY : 0);
}

enum hw_measure_id hw_measure_usual(const struct hw_view *view)
{
    return !hw_measure_unknown(view, HW_MEASURE_PEAK) && hw_measure_total(view, HW_MEASURE_PEAK) ? HW_MEASURE_PEAK
                                                                                                 : HW_MEASURE_BYTES;
}
