/* verdict_words.c - see verdict_words.h. */
#include "report/words/verdict_words.h"

#include <math.h>
#include <string.h>

#include "report/text/human.h"

/* Seconds as a time people read. A page without UTF-8 writes "us" for microseconds. */
#define TIME(seconds) HW_NS((uint64_t)((seconds)*1e9), true)
#define SIZE(bytes)   HW_BYTES((uint64_t)((bytes) > 0 ? (bytes) : 0))

static const char *name_of(const struct hw_verdict_input *input)
{
    return input->allocator && *input->allocator ? input->allocator : "the allocator";
}

/* ---- the whole ---- */

#define ROUGH     0.5  /* of the time in operations: two standard errors beyond which they are no range around it */
#define OWN_LEAST 0.01 /* of the run: what Heapwise took is worth a word */

static void add_time(struct hw_buffer *out, const struct hw_verdict *verdict, const struct hw_verdict_input *input)
{
    if (verdict->time == HW_VERDICT_NOT_KNOWN) {
        hw_buffer_add(out, "How much of the time is spent in %s was not observed. ", name_of(input));
        return;
    }
    static const char *const judged[][2] = {[HW_VERDICT_NO] = {"is not what", "time is spent on"},
                                            [HW_VERDICT_SOMEWHAT] = {"takes enough of", "time to be worth examining"},
                                            [HW_VERDICT_YES] = {"takes much of", "time"}};
    const bool named = input->allocator && *input->allocator;
    hw_buffer_add(out, "%s %s %s %s: %s of %s%s", named ? input->allocator : "The allocator", judged[verdict->time][0],
                  input->runs == 1 ? "this run's" : "these runs'", judged[verdict->time][1],
                  HW_PERCENT(input->critical, input->run), input->run < input->wall ? "about " : "", TIME(input->run));
    if (2 * input->error > ROUGH)
        hw_buffer_add(out, ", a rough estimate, since few operations were timed: at most %s",
                      HW_PERCENT(fmin(input->critical * (1 + 2 * input->error), input->run), input->run));
    else if (input->error > 0.005)
        hw_buffer_add(out, ", with a standard error of %s", HW_PERCENT(input->critical * input->error, input->run));
    hw_buffer_add(out, ". ");
    if (input->threads_most > 1)
        hw_buffer_add(out, "The slowest thread counts; all threads together: %s. ", TIME(input->operations));
    if (input->own >= OWN_LEAST * input->wall)
        hw_buffer_add(out, "Heapwise's own %s are subtracted. ", TIME(input->own));
    if (input->runnable >= OWN_LEAST * input->wall)
        hw_buffer_add(out, "Time in which other threads had the processor is subtracted: %s. ", TIME(input->runnable));
}

/* The moment of the memory figures, and a space. */
static void add_moment(struct hw_buffer *out, const struct hw_verdict_input *input, bool begins)
{
    if (isnan(input->memory_at))
        hw_buffer_add(out, "%ct %s ", begins ? 'A' : 'a', input->runs == 1 ? "the peak" : "their peaks");
    else if (input->memory_at_end)
        hw_buffer_add(out, "%ct the end, when more is resident than at the peak, ", begins ? 'A' : 'a');
    else
        hw_buffer_add(out, "%cfter %s, when most is resident, ", begins ? 'A' : 'a', TIME(input->memory_at));
}

static void add_memory(struct hw_buffer *out, const struct hw_verdict *verdict, const struct hw_verdict_input *input)
{
    if (verdict->memory == HW_VERDICT_NOT_KNOWN) {
        hw_buffer_add(out, "How much memory it wastes was not observed. ");
        return;
    }
    static const char *const judged[] = {[HW_VERDICT_NO] = "It wastes little memory",
                                         [HW_VERDICT_SOMEWHAT] = "It holds clearly more memory than was requested",
                                         [HW_VERDICT_YES] = "Most of the memory it holds was not requested"};
    const double waste = input->total > input->real ? input->total - input->real : 0;
    const bool large_share = verdict->memory == HW_VERDICT_NO && waste > input->total / 4;
    hw_buffer_add(
        out,
        "%s: ", large_share ? "The program uses so little memory that waste hardly matters" : judged[verdict->memory]);
    add_moment(out, input, false);
    hw_buffer_add(out, "%s of %s were not requested for blocks (%s)", SIZE(waste), SIZE(input->total),
                  HW_PERCENT(waste, input->total));
    if (input->memory_runs < input->runs)
        hw_buffer_add(out, ", in %s of the %s; of the others that is not known", HW_COUNT(input->memory_runs),
                      HW_OF(input->runs, "run"));
    hw_buffer_add(out, ". ");
}

/* A profile alone leaves much open: how fast the program itself gets to blocks that lie elsewhere. */
static void add_another(struct hw_buffer *out, const struct hw_verdict *verdict, const struct hw_verdict_input *input)
{
    if (verdict->another)
        hw_buffer_add(out, "With %s the run is predicted to take %s less time (at least %s)", input->best,
                      HW_HUNDREDTHS(input->best_gain), HW_HUNDREDTHS(input->best_low));
    else if (input->best && verdict->time > HW_VERDICT_NO && input->best_low < 0)
        hw_buffer_add(out, "With %s the run is predicted to take %s less time (range: %s less to %s more)", input->best,
                      HW_HUNDREDTHS(input->best_gain), HW_HUNDREDTHS(input->best_high),
                      HW_HUNDREDTHS(-input->best_low));
    else if (input->best_gain == input->best_gain)
        hw_buffer_add(out, "No other installed allocator is predicted to be clearly faster");
    else
        return;
    hw_buffer_add(out, verdict->time > HW_VERDICT_NO ? ". To measure: heapwise allocators -- PROGRAM." : ".");
}

void hw_verdict_summary(struct hw_buffer *out, const struct hw_verdict *verdict, const struct hw_verdict_input *input)
{
    add_time(out, verdict, input);
    add_memory(out, verdict, input);
    add_another(out, verdict, input);
}

/* ---- one finding ---- */

static void add_calls(struct hw_buffer *out, const char *names, uint64_t calls, double seconds)
{
    if (calls != HW_NOT_OBSERVED)
        hw_buffer_add(out, "%s calls of %s took %s, ", HW_COUNT(calls), names, TIME(seconds));
    else
        hw_buffer_add(out, "Calls of %s took %s, ", names, TIME(seconds));
}

static void add_site(struct hw_buffer *out, const struct hw_verdict_input *input, const char *site)
{
    if (*site && input->site_count != HW_NOT_OBSERVED)
        hw_buffer_add(out, "%s operations are called by %s and take %s. In all, this cause is ",
                      HW_COUNT(input->site_count), site, TIME(input->site_seconds));
}

static void add_bulk(struct hw_buffer *out, const char *function, const char *doing,
                     const struct hw_operation_cost *cost, const char *site)
{
    hw_buffer_add(out, "%s calls of %s for 4 KiB and more took %s each", HW_COUNT(cost->count), function,
                  TIME(cost->seconds / (double)cost->count));
    hw_buffer_add(out, *site ? ", %s, most of it called by %s: " : ", %s: ", doing, site);
}

static void time_words(struct hw_advice *words, const struct hw_verdict_finding *finding,
                       const struct hw_verdict_input *input, const char *site)
{
    const struct hw_operation_cost *fresh = &input->fresh, *reused = &input->reused;
    switch (finding->cause) {
    case HW_CAUSE_MAPPING:
        hw_buffer_add(&words->title, "Blocks are mapped and unmapped one by one");
        add_calls(&words->why, "mmap, munmap and mremap", input->map.calls, input->map.seconds);
        hw_buffer_add(&words->what, "Keep such blocks instead of freeing them, or let the allocator keep their memory");
        break;
    case HW_CAUSE_HEAP_END:
        hw_buffer_add(&words->title, "The end of the heap moves back and forth");
        add_calls(&words->why, "brk", input->heap_end.calls, input->heap_end.seconds);
        hw_buffer_add(&words->what, "Let the allocator keep more memory at the end of the heap");
        break;
    case HW_CAUSE_ADVICE:
        hw_buffer_add(&words->title, "Pages are returned to the system and requested again");
        add_calls(&words->why, "madvise", input->advise.calls, input->advise.seconds);
        hw_buffer_add(&words->what, "Let the allocator keep free pages longer");
        break;
    case HW_CAUSE_LOCKS:
        hw_buffer_add(&words->title, "Threads wait for each other in the allocator");
        hw_buffer_add(&words->why, "Waiting took %s", TIME(input->waiting));
        if (input->acquired != HW_NOT_OBSERVED && input->acquired)
            hw_buffer_add(&words->why, " (%s of %s acquired locks were taken)", HW_COUNT(input->contended),
                          HW_COUNT(input->acquired));
        hw_buffer_add(&words->why, ", ");
        hw_buffer_add(&words->what,
                      "Allocate and free in the same thread, or use an allocator with caches for threads");
        break;
    case HW_CAUSE_NEW_MEMORY:
        hw_buffer_add(&words->title, "New memory is much slower than reused memory");
        hw_buffer_add(&words->why, "A block at a new address costs %s, one at a reused address %s: ",
                      TIME(fresh->seconds / (double)fresh->count), TIME(reused->seconds / (double)reused->count));
        hw_buffer_add(&words->what, "Free and reuse memory earlier, or let the kernel give larger pages");
        break;
    case HW_CAUSE_CLEARING:
        hw_buffer_add(&words->title, "Large blocks are set to zero when they are allocated");
        add_bulk(&words->why, "calloc", "setting their memory to zero, and touching it first", &input->clearing, site);
        hw_buffer_add(&words->what, "Use malloc for what is written anyway, and keep such blocks to use them again");
        break;
    case HW_CAUSE_COPYING:
        hw_buffer_add(&words->title, "Large blocks are copied when they grow");
        add_bulk(&words->why, "realloc", "copying, and touching the new memory first", &input->copying, site);
        hw_buffer_add(&words->what, "Request the final size at once, or grow in larger steps");
        break;
    case HW_CAUSE_SLOW:
        hw_buffer_add(&words->title, "Operations take long, in the allocator's own code");
        hw_buffer_add(&words->why, "Beyond what the causes above explain, an operation takes %s on average. ",
                      TIME(finding->seconds / (double)input->count));
        add_site(&words->why, input, site);
        hw_buffer_add(&words->what,
                      "Read the list of the slowest operations (report --json), or try another allocator");
        break;
    case HW_CAUSE_SMALL_PAGES:
        hw_buffer_add(&words->title, "The heap consists of small pages");
        add_moment(&words->why, input, true);
        hw_buffer_add(&words->why,
                      "%s of the heap are resident. That takes %s page faults of 4 KiB, where huge pages take one "
                      "for 2 MiB. The gain by fewer TLB misses is not part of the prediction.",
                      SIZE(input->total), HW_COUNT((uint64_t)(input->total / 4096)));
        hw_buffer_add(&words->what,
                      "Request transparent huge pages, which this kernel gives to those that ask (madvise)");
        break;
    default:
        hw_buffer_add(&words->title, "There are many operations, none of them slow by itself");
        add_site(&words->why, input, site);
        hw_buffer_add(&words->what, *site
                                        ? "Allocate there in batches, from a pool, or not at all"
                                        : "Allocate in batches or from pools, or try an allocator with a faster path");
        break;
    }
    if (finding->cause != HW_CAUSE_SMALL_PAGES)
        hw_buffer_add(&words->why, "%s of the time in operations.", HW_PERCENT(finding->share, 1));
    if (finding->gain_least > 0)
        hw_buffer_add(&words->gain, "%s to %s of %s, with this setting", TIME(finding->gain_least), TIME(finding->gain),
                      TIME(input->run));
    else
        hw_buffer_add(&words->gain, "at most %s", TIME(finding->gain));
}

static void memory_words(struct hw_advice *words, const struct hw_verdict_finding *finding,
                         const struct hw_verdict_input *input, const char *site)
{
    switch (finding->cause) {
    case HW_CAUSE_INTERNAL:
        hw_buffer_add(&words->title, "Blocks are larger than requested");
        add_moment(&words->why, input, true);
        hw_buffer_add(&words->why, "%s", SIZE(finding->bytes));
        if (input->worst_class.wasted > 0)
            hw_buffer_add(&words->why, ", most of it (%s) in blocks of %s to %s bytes", SIZE(input->worst_class.wasted),
                          HW_COUNT(input->worst_class.least), HW_COUNT(input->worst_class.most));
        hw_buffer_add(&words->what, "Allocate several such objects at once, or make them fit a size of the allocator");
        break;
    case HW_CAUSE_BLOWUP:
        hw_buffer_add(&words->title, "Free blocks are not reused");
        add_moment(&words->why, input, true);
        hw_buffer_add(&words->why, "%s of free blocks are kept that no allocation reused", SIZE(finding->bytes));
        hw_buffer_add(&words->what, "Free in the thread that allocates, or let the allocator give free memory back");
        break;
    case HW_CAUSE_KEPT:
        hw_buffer_add(&words->title, "Free pages are kept");
        add_moment(&words->why, input, true);
        hw_buffer_add(&words->why, "%s are resident in pages without any live block", SIZE(finding->bytes));
        hw_buffer_add(&words->what, "Let the allocator give free pages back sooner (%s)",
                      input->allocator && strncmp(input->allocator, "glibc", 5) == 0 ? "malloc_trim"
                                                                                     : "by its settings");
        break;
    case HW_CAUSE_LASTING:
        hw_buffer_add(&words->title, "Memory stays after it was freed");
        hw_buffer_add(&words->why, "For %s at least %s of %s were not requested for live blocks",
                      TIME(input->lasting_seconds), SIZE(finding->bytes), SIZE(input->lasting_total));
        hw_buffer_add(&words->what, "%s, or allocate what stays apart from what is freed",
                      input->allocator && strncmp(input->allocator, "glibc", 5) == 0
                          ? "Call malloc_trim after much was freed"
                          : "Let the allocator return free memory sooner (by its settings)");
        break;
    default: {
        const bool few = input->pinned >= finding->bytes / 2;
        hw_buffer_add(&words->title, few ? "Pages are kept by few blocks" : "Memory lies between blocks");
        add_moment(&words->why, input, true);
        hw_buffer_add(
            &words->why,
            "%s lie between blocks, in pages that live blocks share with free ones, or hold the allocator's own data",
            SIZE(finding->bytes));
        if (input->pinned > 0)
            hw_buffer_add(&words->why, "; %s of it in pages that are nearly free",
                          SIZE(fmin(input->pinned, finding->bytes)));
        if (*site && few)
            hw_buffer_add(&words->why, ", most of them kept by blocks of %s", site);
        hw_buffer_add(&words->what,
                      "Keep blocks that live long apart from those that do not: allocate them first, or from a pool");
        break;
    }
    }
    hw_buffer_add(&words->why, " (%s of its memory).", HW_PERCENT(finding->share, 1));
    hw_buffer_add(&words->gain, "at most %s", SIZE(finding->bytes));
}

static void line_words(struct hw_advice *words, const struct hw_verdict_finding *finding,
                       const struct hw_verdict_input *input)
{
    hw_buffer_add(&words->title, "Threads have blocks on the same cache lines");
    hw_buffer_add(
        &words->why,
        "%s were handed out new to several threads, %s reached another thread by reuse: %s of the heap's at the "
        "peak. Only sampled accesses (--sample-accesses) show whether they are written at the "
        "same time.",
        HW_OF(input->active_lines, "line"), HW_OF(input->passive_lines, "line"), HW_PERCENT(finding->share, 1));
    hw_buffer_add(&words->what, "%s",
                  input->active_lines >= input->passive_lines
                      ? "Align and round up to 64 bytes what threads write often (aligned_alloc)"
                      : "Free blocks in the thread that allocated them, or align to 64 bytes what threads write often");
}

/* A part of the run so small that it is none: begins and ends within it are those of the run. */
#define WHEN_EDGE 0.1

static void add_when(struct hw_buffer *out, const struct hw_verdict_finding *finding,
                     const struct hw_verdict_input *input)
{
    const double since = finding->when.since, until = finding->when.until;
    if (isnan(since) || isnan(until) || !(input->wall > 0))
        return;
    const bool from_start = since - input->begin <= WHEN_EDGE * input->wall,
               to_end = until - input->begin >= (1 - WHEN_EDGE) * input->wall;
    if (from_start && to_end)
        hw_buffer_add(out, " It lasts the whole run");
    else if (to_end)
        hw_buffer_add(out, " It lasts from %s to the end", TIME(since));
    else if (from_start)
        hw_buffer_add(out, " It lasts for the first %s", TIME(until));
    else
        hw_buffer_add(out, " It lasts from %s to %s", TIME(since), TIME(until));
    if (finding->when.looks)
        hw_buffer_add(out, ", by %s of the resident heap", HW_OF(finding->when.looks, "reading"));
    hw_buffer_add(out, ".");
}

void hw_verdict_finding_words(struct hw_advice *words, const struct hw_verdict_finding *finding,
                              const struct hw_verdict_input *input, const char *site)
{
    hw_advice_clear(words);
    if (finding->cause < HW_CAUSE_INTERNAL)
        time_words(words, finding, input, site);
    else if (finding->cause < HW_CAUSE_FALSE_SHARING)
        memory_words(words, finding, input, site);
    else
        line_words(words, finding, input);
    add_when(&words->why, finding, input);
    if (*finding->tunable)
        hw_buffer_add(&words->what, "; with %s: %s", name_of(input), finding->tunable);
    hw_buffer_add(&words->what, ".");
}
