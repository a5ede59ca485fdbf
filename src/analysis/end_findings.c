/* end_findings.c - a process that ran out of memory: the kernel's OOM killer ended it, or may have. Not a gain, but the
 * first thing to know; what was live then, most of it first. */
#include <math.h>
#include <signal.h>

#include "analysis/internal.h"

#define NEAR     0.9 /* of a limit */
#define MOST     0.5 /* of a limit that is the process's own memory: other parts of the cgroup may be cached files */
#define CONTEXTS 5

static bool noted(const struct hw_profile *profile)
{
    for (size_t i = 0; i < profile->note_count; i++)
        if (profile->notes[i].code == HW_NOTE_DUMP_AT)
            return true;
    return false;
}

/* The latest RSS is read more often than the cgroup. */
static uint64_t last_rss(const struct hw_profile *profile)
{
    for (size_t i = profile->timeline_count; i--;)
        if (profile->timeline[i].rss_bytes)
            return profile->timeline[i].rss_bytes;
    return 0;
}

/* The latest reading of the cgroup that knows a limit, or NULL. */
static const struct hw_memory_breakdown *last_reading(const struct hw_profile *profile)
{
    const struct hw_memory_breakdown *last = NULL;
    for (size_t i = 0; i < profile->memory_count; i++) {
        const struct hw_memory_breakdown *memory = &profile->memory[i];
        if (memory->known & HW_MEMORY_CGROUP && memory->cgroup_limit && (!last || memory->tick >= last->tick))
            last = memory;
    }
    return last;
}

static uint32_t *most_live(const struct hw_analysis_input *input, struct hw_pool *pool, size_t *count)
{
    uint32_t *most = hw_pool_take(pool, CONTEXTS, sizeof *most);
    *count = 0;
    for (size_t i = 0; most && i < input->context_count; i++) {
        const int64_t bytes = input->contexts[i]->live_bytes;
        if (bytes <= 0 || input->contexts[i]->pool)
            continue;
        size_t at = *count;
        for (; at && input->contexts[most[at - 1]]->live_bytes < bytes; at--)
            if (at < CONTEXTS)
                most[at] = most[at - 1];
        if (at < CONTEXTS) {
            most[at] = (uint32_t)i;
            *count += *count < CONTEXTS;
        }
    }
    return most;
}

void hw_end_findings(struct hw_finder *finder)
{
    const struct hw_analysis_input *input = &finder->analysis->input;
    const struct hw_profile *profile = input->profile;
    const struct hw_process_info *process = &profile->process;
    const bool unknown = process->exit_kind == HW_EXIT_UNKNOWN,
               killed = process->exit_kind == HW_EXIT_SIGNAL && process->exit_value == SIGKILL;
    if (profile->running || process->flags & (HW_PROCESS_DUMP | HW_PROCESS_MERGED | HW_PROCESS_LLVM) ||
        profile->process_lost || (!unknown && !killed))
        return;
    const struct hw_memory_breakdown *last = last_reading(profile);
    const double limit = last ? (double)last->cgroup_limit : 0, rss = (double)last_rss(profile);
    const bool near = noted(profile) || (last && (rss >= NEAR * limit || ((double)last->cgroup >= NEAR * limit &&
                                                                          (double)last->rss >= MOST * limit)));
    /* Where `heapwise record` lived to see the end, it has counted. */
    if (!process->oom_kills && (profile->sealed || !unknown || !near))
        return;
    struct hw_finding *finding = hw_finding_add(finder, HW_FINDING_OUT_OF_MEMORY, HUGE_VAL);
    size_t count;
    uint32_t *contexts = most_live(input, finder->pool, &count);
    if (!finding || !contexts)
        return;
    finding->certain = killed && process->oom_kills;
    finding->contexts = contexts;
    finding->context_count = count;
    finding->part = last ? last->cgroup : 0;
    finding->whole = last ? last->cgroup_limit : 0;
}
