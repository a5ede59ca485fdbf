/* parts.c - the parts of the runtime and what each does in the life of a process, in one table.
 *
 * Slow events only: fast paths call what they need directly. A moment goes through the rows from the first to the last
 * and calls those that are on and have something there, so that the order of rows is the order of every moment. Where
 * two moments need different orders a subject has two rows, and the second one says why.
 *
 * What is not here, since it is of another kind: the process section and the file come before everything (lifecycle.c);
 * samples of accesses begin when the state is ON (hw_trap_start, hw_trap_fork: a sample before would find no context);
 * operations may refuse a reset, and are asked before anything is forgotten (reset.c); giving up system calls
 * has an order of its own, the last call being that which lets go of the file (limits.c). */
#include "runtime/access/access.h"
#include "runtime/allocator/places.h"
#include "runtime/core/core.h"
#include "runtime/core/mappings.h"
#include "runtime/core/memory.h"
#include "runtime/core/modules.h"
#include "runtime/core/thread_list.h"
#include "runtime/core/threads.h"
#include "runtime/graph/graph.h"
#include "runtime/hooks/hooks.h"
#include "runtime/samples/samples.h"

struct part {
    const char *name;
    bool (*on)(void); /* NULL: always */
    /* At the start, and in a forked child when it has a file. False: this process has no profile. */
    void (*start)(void);
    bool (*try_start)(void);
    /* In a forked child, before it has a file: what belonged to threads of the parent. Alone, no lock. */
    void (*forget)(void);
    void (*fork)(void);
    bool (*try_fork)(void);
    /* Lock held, from here on. A point in time is added to the timeline. */
    void (*tick)(uint64_t tick);
    /* A profile of the run so far, or the last one, is about to be written: what is only known where the program left
     * it. STOPPED: nobody is in the middle of an event. Then either of the next two; after a dump it is taken out. */
    void (*harvest)(bool stopped);
    void (*dump)(void);
    void (*end)(void);
    void (*forget_harvest)(void);
    /* heapwise_reset: counts from zero. Nobody is in the middle of an event, but for usual operations. Before the row
     * "period" everybody empties sections of his own. */
    void (*reset)(void);
};

static bool is_allocator_mode(void)
{
    return hw_runtime.mode == HW_MODE_ALLOCATOR;
}

static bool has_fields(void)
{
    return hw_shadow.fields != 0;
}

static bool is_access_mode(void)
{
    return hw_access_on();
}

static bool is_sampled(void)
{
    return hw_options.sample_bytes != 0;
}

static bool has_places(void)
{
    return hw_places.even != NULL;
}

static bool has_contents(void)
{
    return hw_options.contents != 0;
}

static void start_contents(void)
{
    if (hw_options.contents_fill && !hw_runtime.weighted)
        hw_fill_start();
}

static bool has_requests(void)
{
    return hw_options.valgrind_requests && !hw_runtime.weighted;
}

static bool has_block_log(void)
{
    return hw_options.block_log != 0;
}

static bool has_pinned(void)
{
    return hw_options.pinned != 0;
}

static const struct part parts[] = {
    /* Whose events are counted. A child has one thread, in no event: everything else is set up on that ground. */
    {.name = "threads", .start = hw_threads_start, .forget = hw_threads_fork},
    {.name = "planes", .forget = hw_shadow_fork},
    {.name = "globals", .forget = hw_globals_reset},
    {.name = "new threads", .forget = hw_thread_create_fork},
    {.name = "thread list", .forget = hw_thread_list_fork, .dump = hw_thread_list_names, .end = hw_thread_list_names},
    /* Where code is: unwinding and the allocator's name ask for it. */
    {.name = "modules", .start = hw_modules_start, .fork = hw_modules_fork},
    {.name = "unwinding", .start = hw_unwind_start},
    /* While there is one thread: before the rows that may start one. */
    {.name = "requests to Valgrind", .on = has_requests, .start = hw_requests_start, .end = hw_requests_end},
    /* Before blocks: what their store, and places, may assume of addresses. */
    {.name = "allocator's name", .start = hw_describe_allocator},
    /* MIB 0 is made here: before contexts, which threads count by it when there is no room. */
    {.name = "heap", .start = hw_heap_start, .fork = hw_heap_start},
    {.name = "contexts", .try_start = hw_contexts_start, .try_fork = hw_contexts_rebuild},
    {.name = "blocks", .try_start = hw_blocks_start},
    {.name = "log of blocks", .on = has_block_log, .start = hw_block_log_start, .fork = hw_block_log_start},
    /* A child that cannot rebuild its contexts has no profile, and nothing to be described in. */
    {.name = "allocator's name, in a child", .fork = hw_describe_allocator},
    /* Blocks are there by now, and get their layout; fields lie in the planes of accesses. */
    {.name = "access",
     .on = is_access_mode,
     .try_start = hw_access_start,
     .fork = hw_access_fork,
     .harvest = hw_access_harvest,
     .forget_harvest = hw_access_forget_harvest,
     .reset = hw_access_reset},
    {.name = "fields",
     .on = has_fields,
     .try_start = hw_fields_start,
     .fork = hw_fields_fork,
     .harvest = hw_fields_harvest,
     .reset = hw_fields_reset},
    {.name = "operations",
     .on = is_allocator_mode,
     .try_start = hw_operations_start,
     .fork = hw_operations_fork,
     .dump = hw_operations_dump},
    /* Its sections are made for accesses, or for samples of them. */
    {.name = "sharing", .start = hw_sharing_start, .fork = hw_sharing_fork, .reset = hw_sharing_reset},
    {.name = "samples", .reset = hw_samples_reset},
    /* All counts without times are zero by now; what follows starts at this moment. */
    {.name = "period", .reset = hw_reset_begin_period},
    {.name = "sampled peaks", .on = is_sampled, .reset = hw_sample_peaks_reset},
    {.name = "places", .on = has_places, .tick = hw_places_tick, .reset = hw_places_restart},
    /* What is live now: places know it exactly. */
    {.name = "inherited blocks", .fork = hw_fork_inherit},
    /* Contexts are there by now. */
    {.name = "mappings",
     .start = hw_mappings_start,
     .forget = hw_mappings_forget,
     .fork = hw_mappings_fork,
     .tick = hw_mappings_tick,
     .dump = hw_mappings_catch_up,
     .end = hw_mappings_catch_up,
     .reset = hw_mappings_reset},
    {.name = "regions", .forget = hw_regions_forget, .reset = hw_regions_forget},
    {.name = "timeline",
     .start = hw_timeline_start,
     .fork = hw_timeline_start,
     .end = hw_timeline_end,
     .reset = hw_timeline_reset},
    /* After the last reading of the clock: stages last until the end of the run. */
    {.name = "operations, at the end", .on = is_allocator_mode, .end = hw_operations_end},
    {.name = "contents",
     .on = has_contents,
     .start = start_contents,
     .fork = hw_contents_restart,
     .forget_harvest = hw_contents_forget_dump,
     .reset = hw_contents_restart},
    {.name = "pages",
     .on = has_pinned,
     .start = hw_pages_start,
     .harvest = hw_pages_harvest,
     .forget_harvest = hw_pages_forget},
    {.name = "visitors", .start = hw_visit_start, .forget = hw_visit_fork, .fork = hw_visit_start},
    {.name = "periods", .start = hw_periods_start, .fork = hw_periods_fork},
    /* Last: from now on signals may ask for a dump, or for a period to begin. */
    {.name = "dumps", .start = hw_dump_start, .forget = hw_dump_fork, .fork = hw_dump_start, .reset = hw_dump_at_start},
};

enum { COUNT = sizeof parts / sizeof *parts };

static bool is_on(const struct part *part)
{
    return !part->on || part->on();
}

/* What each row has at MOMENT. */
#define CALL(moment, ...)                                                                                              \
    do {                                                                                                               \
        for (const struct part *part = parts; part < parts + COUNT; part++)                                            \
            if (part->moment && is_on(part))                                                                           \
                part->moment(__VA_ARGS__);                                                                             \
    } while (0)

bool hw_parts_start(void)
{
    for (const struct part *part = parts; part < parts + COUNT; part++) {
        if (part->start && is_on(part))
            part->start();
        if (part->try_start && is_on(part) && !part->try_start())
            return false;
    }
    return true;
}

void hw_parts_forget(void)
{
    CALL(forget);
}

bool hw_parts_fork(void)
{
    for (const struct part *part = parts; part < parts + COUNT; part++) {
        if (part->fork && is_on(part))
            part->fork();
        if (part->try_fork && is_on(part) && !part->try_fork())
            return false;
    }
    return true;
}

void hw_parts_tick(uint64_t tick)
{
    CALL(tick, tick);
}

void hw_parts_harvest(bool stopped)
{
    CALL(harvest, stopped);
}

void hw_parts_forget_harvest(void)
{
    CALL(forget_harvest);
}

void hw_parts_dump(void)
{
    CALL(dump);
}

void hw_parts_end(void)
{
    CALL(end);
}

void hw_parts_reset(void)
{
    CALL(reset);
}
