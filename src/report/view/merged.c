/* merged.c - see merged.h. */
#include "report/view/merged.h"

#include <string.h>

#include "report/text/human.h"

static bool same_program(const struct hw_profile *profile, const struct hw_run *a, const struct hw_run *b)
{
    return !strcmp(hw_profile_string(profile, a->executable), hw_profile_string(profile, b->executable)) &&
           a->build_id_size == b->build_id_size && !memcmp(a->build_id, b->build_id, a->build_id_size);
}

/* Different programs; builds of one are several. */
static size_t count_programs(const struct hw_profile *profile)
{
    size_t count = 0;
    for (size_t i = 0; i < profile->run_count; i++) {
        size_t k = 0;
        while (k < i && !same_program(profile, &profile->runs[i], &profile->runs[k]))
            k++;
        count += k == i;
    }
    return count;
}

/* Sums over all kinds of runs. */
static struct hw_run all_runs(const struct hw_profile *profile)
{
    struct hw_run all = {0};
    for (size_t i = 0; i < profile->run_count; i++) {
        const struct hw_run *run = &profile->runs[i];
        all.runs = hw_add_saturating(all.runs, run->runs);
        all.duration_total_ns = hw_add_saturating(all.duration_total_ns, run->duration_total_ns);
        all.exited_zero = hw_add_saturating(all.exited_zero, run->exited_zero);
        all.exited_nonzero = hw_add_saturating(all.exited_nonzero, run->exited_nonzero);
        all.signalled = hw_add_saturating(all.signalled, run->signalled);
        if (run->duration_max_ns > all.duration_max_ns)
            all.duration_max_ns = run->duration_max_ns;
    }
    return all;
}

/* How many ended by exec, or nobody knows how. */
static uint64_t unknown_ends(const struct hw_run *all)
{
    const uint64_t known = hw_add_saturating(hw_add_saturating(all->exited_zero, all->exited_nonzero), all->signalled);
    return all->runs > known ? all->runs - known : 0;
}

/* "3 processes", "2 profiles of LLVM's". */
static void add_count(const struct hw_profile *profile, struct hw_buffer *out)
{
    if (profile->llvm)
        hw_buffer_add(out, "%s of LLVM's (%s)", HW_OF(profile->process.runs, "heap profile"), profile->llvm->kind);
    else
        hw_buffer_add(out, "%s", HW_OF(profile->process.runs, "process"));
}

void hw_merged_run(const struct hw_profile *profile, bool utf8, struct hw_buffer *out)
{
    const struct hw_run all = all_runs(profile);
    const size_t programs = count_programs(profile);
    hw_buffer_add(out, "merged from ");
    add_count(profile, out);
    if (programs > 1)
        hw_buffer_add(out, " of %s", HW_OF(programs, "program"));
    if (profile->llvm)
        return;
    hw_buffer_add(out, ": %s in all", HW_NS(all.duration_total_ns, utf8));
    if (profile->process.runs > 1)
        hw_buffer_add(out, ", the longest %s", HW_NS(all.duration_max_ns, utf8));
    if (all.exited_nonzero)
        hw_buffer_add(out, "; %s ended with an exit code other than 0", HW_COUNT(all.exited_nonzero));
    if (all.signalled)
        hw_buffer_add(out, "; %s killed by a signal", HW_COUNT(all.signalled));
}

void hw_merged_peak(const struct hw_profile *profile, struct hw_buffer *out)
{
    hw_buffer_add(out, "%s, the sum of the processes' own peaks; the greatest is %s",
                  HW_BYTES(profile->process.peak_bytes), HW_BYTES(profile->process.peak_bytes_most));
}

/* In how many of them the allocator was observed, and what they do not agree on. */
static void add_observed(const struct hw_profile *profile, const struct hw_run *all, struct hw_buffer *out)
{
    const struct hw_profile_allocator *allocator = profile->observed;
    if (!allocator)
        return;
    const struct hw_allocator_info *info = &allocator->info;
    const uint64_t placed = profile->places ? profile->places->info.runs : 0;
    if (allocator->runs < all->runs)
        hw_buffer_add(out,
                      "The allocator was observed in only %s of the processes: operations, and allocations estimated "
                      "by call stack, are of these.\n",
                      HW_COUNT(allocator->runs));
    if (placed && placed < allocator->runs)
        hw_buffer_add(out, "The allocator's use of memory was recorded in only %s of the processes.\n",
                      HW_COUNT(placed));
    if ((double)info->rate_most > 1.01 * (double)info->rate_least)
        hw_buffer_add(out,
                      "The clocks of the machines run at different rates (%.2f to %.2f GHz): cycles are each machine's "
                      "own, times are by the mean rate.\n",
                      (double)info->rate_least / 1e9, (double)info->rate_most / 1e9);
    if (info->flags & HW_ALLOCATOR_FACTS_DIFFER)
        hw_buffer_add(out, "The processes do not agree on how the allocator works: small, medium and large sizes are "
                           "those of glibc.\n");
    if (info->flags & HW_ALLOCATOR_PREDICTIONS_DIFFER)
        hw_buffer_add(out, "The speed with other allocators is predicted for each process, in its own profile.\n");
    if (allocator->inside.lock_count)
        hw_buffer_add(out, "Locks that are in no module's data lie elsewhere in each process: they are added up by "
                           "kind.\n");
}

void hw_merged_not_observed(const struct hw_profile *profile, struct hw_buffer *out)
{
    const struct hw_run all = all_runs(profile);
    uint64_t sampled = 0, counted = 0;
    for (size_t i = 0; i < profile->run_count; i++) {
        sampled += profile->runs[i].sample_bytes ? profile->runs[i].runs : 0;
        counted += profile->runs[i].mode == HW_MODE_ACCESS ? profile->runs[i].runs : 0;
    }
    if (profile->llvm) {
        hw_buffer_add(out, "This is a sum over ");
        add_count(profile, out);
        hw_buffer_add(out, ": times and CPUs of the last allocation are those of the latest moment in any of them.\n");
        return;
    }
    hw_buffer_add(out, "This is a sum over ");
    add_count(profile, out);
    hw_buffer_add(out, ": there is no timeline, and what resident memory consists of is not in it%s.\n",
                  profile->observed ? ", nor are stages of one and of several threads, and memory over time" : "");
    hw_buffer_add(out, "The peak is the sum of the processes' own peaks, each at its own moment, and the shares are "
                       "shares of that sum: so much may never have been live at once.\n");
    if (sampled && sampled < all.runs)
        hw_buffer_add(out,
                      "%s of the processes were sampled, in the others every allocation was counted: sums are "
                      "estimates.\n",
                      HW_COUNT(sampled));
    if (profile->access_counted && counted < all.runs)
        hw_buffer_add(out, "Accesses were counted in %s of the processes only.\n", HW_COUNT(counted));
    add_observed(profile, &all, out);
    if (unknown_ends(&all))
        hw_buffer_add(out,
                      "How %s of the processes ended is not known (killed, replaced by another program, or still "
                      "running): their last events may be missing.\n",
                      HW_COUNT(unknown_ends(&all)));
}

static json_t *number(uint64_t value)
{
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

static json_t *number_or_null(uint64_t value)
{
    return value ? number(value) : json_null();
}

static json_t *run_json(const struct hw_profile *profile, const struct hw_run *run,
                        json_t *(*text)(void *closure, const char *text), void *closure)
{
    const char *executable = hw_profile_string(profile, run->executable),
               *allocator = hw_profile_string(profile, run->allocator), *mode = hw_mode_name(run->mode);
    char build_id[2 * sizeof run->build_id + 1];
    hw_hex(build_id, run->build_id, run->build_id_size);
    const bool timed = !profile->llvm;
    return json_pack(
        "{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "executable",
        text(closure, *executable ? executable : NULL), "build_id", *build_id ? json_string(build_id) : json_null(),
        "allocator", text(closure, *allocator ? allocator : NULL), "mode", mode ? json_string(mode) : json_null(),
        "sample_bytes", number_or_null(run->sample_bytes), "runs", number(run->runs), "duration_ns",
        timed ? json_pack("{s:o,s:o}", "total", number(run->duration_total_ns), "max", number(run->duration_max_ns))
              : json_null(),
        "first_started_ns", number_or_null(run->first_start_realtime_ns), "last_started_ns",
        number_or_null(run->last_start_realtime_ns), "peak_bytes_max",
        timed ? number(run->peak_bytes_max) : json_null(), "peak_rss_bytes_max",
        number_or_null(run->peak_rss_max_bytes), "exit",
        timed ? json_pack("{s:o,s:o,s:o}", "zero", number(run->exited_zero), "nonzero", number(run->exited_nonzero),
                          "signal", number(run->signalled))
              : json_null());
}

json_t *hw_merged_json(const struct hw_profile *profile, json_t *(*text)(void *closure, const char *text),
                       void *closure)
{
    json_t *array = json_array();
    for (size_t i = 0; array && i < profile->run_count; i++)
        if (json_array_append_new(array, run_json(profile, &profile->runs[i], text, closure))) {
            json_decref(array);
            array = NULL;
        }
    return array;
}
