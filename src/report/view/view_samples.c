/* view_samples.c - the view's part of sampled accesses: by context of the view, with the places that made them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/view/view.h"

static int compare(const void *left, const void *right)
{
    return hw_sample_count_compare(left, right);
}

/* The code of places among the view's locations. */
static bool add_places(struct hw_view *view, const uint32_t *module_of)
{
    struct hw_view_adder adder;
    bool done = hw_view_adder_make(&adder, view, module_of, view->sample_count_count);
    for (size_t i = 0; done && i < view->sample_count_count; i++) {
        struct hw_sample_count *count = &view->sample_counts[i];
        if (count->kind != HW_SAMPLE_PLACE)
            continue;
        count->map = hw_view_adder_add(&adder, count->map, count->offset);
        count->offset = 0;
    }
    hw_view_adder_free(&adder);
    return done;
}

/* Each thing once, in order. */
static void sum_up(struct hw_view *view)
{
    size_t kept = 0;
    struct hw_sample_count *all = view->sample_counts;
    qsort(all, view->sample_count_count, sizeof *all, compare);
    for (size_t i = 0; i < view->sample_count_count; i++) {
        if (kept && hw_sample_count_compare(&all[kept - 1], &all[i]) == 0) {
            all[kept - 1].reads = hw_add_saturating(all[kept - 1].reads, all[i].reads);
            all[kept - 1].writes = hw_add_saturating(all[kept - 1].writes, all[i].writes);
        } else {
            all[kept++] = all[i];
        }
    }
    view->sample_count_count = kept;
}

bool hw_view_make_samples(struct hw_view *view, const uint32_t *module_of, const uint32_t *context_of, size_t ids)
{
    const struct hw_profile *profile = view->profile;
    if (!profile->accesses_sampled)
        return true;
    view->sampled = calloc(view->context_count + 1, sizeof *view->sampled);
    view->sample_counts = malloc((profile->sample_count_count + 1) * sizeof *view->sample_counts);
    if (!view->sampled || !view->sample_counts)
        return false;
    for (size_t i = 0; i < profile->sample_context_count; i++) {
        const struct hw_sample_context *from = &profile->sample_contexts[i];
        if (from->context < ids && context_of[from->context] != HW_NONE)
            hw_sample_context_add(&view->sampled[context_of[from->context]], from);
    }
    for (size_t i = 0; i < profile->sample_count_count; i++) {
        const struct hw_sample_count *from = &profile->sample_counts[i];
        if (from->context >= ids || context_of[from->context] == HW_NONE)
            continue;
        view->sample_counts[view->sample_count_count] = *from;
        view->sample_counts[view->sample_count_count++].context = context_of[from->context];
    }
    if (!add_places(view, module_of))
        return false;
    sum_up(view);
    return true;
}

const struct hw_sample_count *hw_view_sample_counts(const struct hw_view *view, enum hw_sample_kind kind,
                                                    size_t context, size_t *count)
{
    const struct hw_sample_count key = {.kind = kind, .context = (uint32_t)context};
    size_t low = 0, high = view->sample_count_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (hw_sample_count_compare(&view->sample_counts[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *count = 0;
    while (low + *count < view->sample_count_count && view->sample_counts[low + *count].kind == (uint32_t)kind &&
           view->sample_counts[low + *count].context == context)
        ++*count;
    return view->sample_counts + low;
}

const char *hw_sample_ended(const struct hw_sample_info *info)
{
    switch (info->ended) {
    case HW_SAMPLE_GOES_ON:
        return NULL;
    case HW_SAMPLE_DEBUGGER:
        return "a debugger or tracer was attached, which needs the trap for itself";
    case HW_SAMPLE_TRAP_TAKEN:
        return "the program handles SIGTRAP itself";
    case HW_SAMPLE_SIGNAL_TAKEN:
        return "the program uses the signal that starts samples";
    case HW_SAMPLE_SECCOMP:
        return "the program gave up system calls (seccomp)";
    case HW_SAMPLE_ADDRESS_SPACE:
        return "the address space had no room (a limit, or mappings of the program) for the table that finds blocks by an address inside them";
    case HW_SAMPLE_NO_SIGNAL:
        return "no signal was free";
    case HW_SAMPLE_NO_TIMER:
        return "the kernel granted no timer";
    case HW_SAMPLE_COUNTED:
        return "the program counts its accesses exactly";
    default:
        return "the runtime gave up";
    }
}

const char *hw_sample_no_pmu(int error)
{
    switch (error) {
    case ENODEV:
    case ENOENT:
    case ENXIO:
    case EOPNOTSUPP:
        return "this machine has no such events (PEBS, IBS), like most virtual machines";
    case EACCES:
    case EPERM:
        return "not allowed: kernel.perf_event_paranoid, kernel.perf_event_mlock_kb, or a container's filter of system "
               "calls";
    case ECANCELED:
        return "single steps were requested";
    case ENOSYS:
        return "the kernel is older than 5.18, or was built without perf events";
    case EMFILE:
    case ENFILE:
        return "no descriptor was left";
    case EBUSY:
    case ENOSPC:
        return "another program uses the counters";
    case EINVAL:
    case E2BIG:
        return "the kernel does not support these events, or does not permit them";
    default:
        return strerror(error);
    }
}
