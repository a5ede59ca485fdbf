/* not_observed.c - see not_observed.h. */
#include "report/words/not_observed.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "report/text/human.h"
#include "report/view/merged.h"

/* ---- notes the runtime left in the file ---- */

static const struct {
    uint32_t code;
    const char *name;
    const char *sentence; /* the note's text, if any, follows after a colon; NULL: add_accesses says it */
    bool counted;         /* how often it happened is worth saying */
} notes[] = {
    {HW_NOTE_TABLE_STORE, "table-store",
     "The address space had no room for the map of blocks (a limit, or mappings of the program), so blocks were kept in a "
     "table: nothing is lost, but each event took longer",
     false},
    {HW_NOTE_FILE_FULL, "file-full",
     "The profile file could not grow: allocations of new call stacks after that are in the totals only", true},
    {HW_NOTE_NO_MEMORY, "no-memory", "Heapwise itself got no memory: allocations during that time were not counted",
     true},
    {HW_NOTE_EXEC_UNPROFILED, "exec-unprofiled", "The process started a program that cannot be profiled", true},
    {HW_NOTE_STATIC_ALLOCATOR, "static-allocator", "An allocator that is linked into the program could not be observed",
     false},
    {HW_NOTE_NO_UNWIND, "no-unwind",
     "A module has no unwind tables: stacks through it were read by frame pointers and may lack frames", false},
    {HW_NOTE_BLOCK_REPLACED, "block-replaced",
     "Blocks were freed unseen: their lifetimes end when their memory was allocated again", true},
    {HW_NOTE_CLOCK, "clock", "The processor's time stamp counter is not usable: times come from clock_gettime", false},
    {HW_NOTE_JIT, "jit", "Stacks end at code that was generated at run time: their callers are not known", true},
    {HW_NOTE_RESET, "reset",
     "The program called heapwise_reset: counts and times begin there; blocks that were live then are called inherited",
     true},
    {HW_NOTE_PLANES_SHARED, "planes-shared", NULL, false},
    {HW_NOTE_NOT_OWNED, "not-owned", NULL, false},
    {HW_NOTE_FOLDED, "folded", "Distant areas of memory share counters: accesses to one may be counted for the other",
     true},
    {HW_NOTE_NOT_SWEPT, "not-swept",
     "The program computed for 4 s or more without allocating: if one thread read or wrote 64 bytes more than 4.2 "
     "billion times meanwhile, their count is too low",
     true},
    {HW_NOTE_NO_DISPATCH, "no-dispatch",
     "System calls inside the allocator were not observed, nor waits for locks that are not of pthreads", false},
    {HW_NOTE_NO_EVENTS, "no-events", "Instructions, cache misses and TLB misses of operations were not counted", false},
    {HW_NOTE_LEFT, "left",
     "The program left calls of the allocator by a jump (siglongjmp, cancellation); such calls may be counted only in "
     "part",
     true},
    {HW_NOTE_BARS_LOST, "bars-lost",
     "There was no room for all bars of the distributions of sizes and lifetimes: these blocks are shown as not known",
     true},
    {HW_NOTE_DUMP_AT, "dump-at", NULL, false},
    {HW_NOTE_OTHER, "other", "Note of the runtime", true},
};

#define NOTES (sizeof notes / sizeof *notes)

static size_t find_note(uint32_t code)
{
    size_t i = 0;
    while (i < NOTES - 1 && notes[i].code != code)
        i++;
    return i;
}

const char *hw_note_name(uint32_t code)
{
    return notes[find_note(code)].name;
}

static void add_notes(const struct hw_profile *profile, struct hw_buffer *out)
{
    for (size_t i = 0; i < profile->note_count; i++) {
        const struct hw_note *note = &profile->notes[i];
        const size_t known = find_note(note->code);
        const char *text = hw_profile_string(profile, note->text);
        if (!notes[known].sentence)
            continue;
        hw_buffer_add(out, "%s", notes[known].sentence);
        if (notes[known].counted && note->count > 1)
            hw_buffer_add(out, " (%s)", HW_OF(note->count, "time"));
        hw_buffer_add(out, "%s", *text ? ": " : ".");
        for (; *text; text++) /* a sentence is a line */
            hw_buffer_bytes(out, *text == '\n' ? " " : text, 1);
        hw_buffer_add(out, "\n");
    }
}

/* ---- the run as a whole ---- */

/* Whether the runtime saw how the program gave up system calls: from then on it makes none itself. */
static bool gave_up_calls(const struct hw_profile *profile)
{
    for (size_t i = 0; i < profile->note_count; i++)
        if (strstr(hw_profile_string(profile, profile->notes[i].text), "gave up system calls (seccomp)"))
            return true;
    return false;
}

static void add_state(const struct hw_profile *profile, struct hw_buffer *out)
{
    for (size_t i = 0; i < profile->problem_count; i++)
        hw_buffer_add(out, "%s\n", profile->problems[i]);
    if (profile->problem_count && profile->sealed)
        hw_buffer_add(out, "All other numbers were checked and are as recorded. Sums that lack the lost parts are too "
                           "low.\n");
    for (size_t i = 0; i < profile->contradiction_count; i++)
        hw_buffer_add(out, "%s That is a defect of Heapwise: do not rely on this profile, and report it.\n",
                      profile->contradictions[i]);
    if (profile->running)
        hw_buffer_add(out, "The process is still running: the numbers are of the moment when the file was read.\n");
    else if (!profile->sealed && profile->process.exit_kind != HW_EXIT_CODE &&
             profile->process.exit_kind != HW_EXIT_DETACHED)
        hw_buffer_add(out, "The process did not close the file%s: the last events before its end may be missing.\n",
                      profile->process.exit_kind == HW_EXIT_UNKNOWN ? " (it was killed, or it runs on another machine)"
                                                                    : "");
    if (profile->process.flags & HW_PROCESS_ATTACHED) {
        hw_buffer_add(out,
                      profile->process.flags & HW_PROCESS_FORKED && !(profile->process.flags & HW_PROCESS_MERGED)
                          ? "The process was forked by one that was recorded since heapwise attach: blocks from before "
                            "that are not known, and are in no number"
                          : "The recording began while the program ran (heapwise attach): blocks from before are not "
                            "known, and are in no number");
        if (profile->process.older_bytes)
            hw_buffer_add(out, "; the allocator had %s of them then", HW_BYTES(profile->process.older_bytes));
        hw_buffer_add(out,
                      ".\nSuch a recording has the heap only: not where the program maps memory by mmap, names and "
                      "origins of threads, or programs that it executes.\n");
    }
    if (profile->process.exit_kind == HW_EXIT_SIGNAL && profile->process.exit_value == SIGSYS &&
        !gave_up_calls(profile))
        hw_buffer_add(out, "A filter (seccomp) killed the program for a system call. Heapwise did not see how the "
                           "filter was set, so the call may have been Heapwise's own.\n");
}

static void add_sampling(const struct hw_view *view, struct hw_buffer *out)
{
    if (!hw_view_sampled(view))
        return;
    if (view->profile->process.mode == HW_MODE_ALLOCATOR) {
        hw_buffer_add(
            out, "Call stacks are known for %s, drawn at random: blocks and bytes by call stack are estimates.%s\n",
            HW_OF(view->samples, "block"), view->profile->observed ? " Numbers of operations are exact." : "");
        return;
    }
    hw_buffer_add(
        out,
        "Only a sample of the allocations was observed, one for every %s on average (%s in all): counts, bytes "
        "and shares are estimates, and places that allocate less than that may be missing. A reallocation counts as a "
        "free and an allocation; which "
        "allocations were temporary is not known.\n",
        HW_BYTES(view->profile->process.sample_bytes), HW_COUNT(view->samples));
}

/* How the allocator works, and what others would do. */
static void add_facts(const struct hw_profile *profile, struct hw_buffer *out)
{
    const struct hw_profile_allocator *allocator = profile->observed;
    if (!allocator)
        return;
    const struct hw_allocator_facts *facts = &allocator->facts;
    const bool differ = allocator->info.flags & HW_ALLOCATOR_FACTS_DIFFER; /* merged.c says so */
    if (!allocator->facts_known && !differ)
        hw_buffer_add(out, "The properties of the allocator were not measured: small, medium and large sizes are "
                           "those of glibc.\n");
    else if (!differ && !(facts->flags & (HW_FACTS_PROBED | HW_FACTS_TOLD)))
        hw_buffer_add(out,
                      "The properties of the allocator are not known: %s. Small, medium and large sizes are those of "
                      "glibc.\n",
                      facts->why);
    else if (!differ && (!facts->medium || !facts->large))
        hw_buffer_add(out, "The size from which blocks are %s is not known.\n",
                      facts->medium  ? "large"
                      : facts->large ? "medium"
                                     : "medium and large");
    if (allocator->prediction_count && (allocator->predictions[0].flags & HW_PREDICTION_FEWER_PROCESSORS))
        hw_buffer_add(out, "The program had more running threads than the machine of the replays has processors: the "
                           "prediction takes too little account of how threads slow each other down.\n");
    if (allocator->prediction_count == 0 && !(allocator->info.flags & HW_ALLOCATOR_PREDICTIONS_DIFFER))
        hw_buffer_add(out, "The speed with other allocators was not predicted: no replay was made, or no other "
                           "allocator is installed.\n");
}

/* start=off: what the periods are. */
static void add_waiting(const struct hw_profile *profile, struct hw_buffer *out)
{
    const struct hw_process_info *process = &profile->process;
    if (process->counting == HW_COUNTING_WAITS)
        hw_buffer_add(out, profile->running
                               ? "Nothing is counted yet: the process waits for heapwise start.\n"
                               : "Nothing was counted: the process waited for heapwise start, which never came.\n");
    if (process->counting && process->flags & HW_PROCESS_RESET)
        hw_buffer_add(out,
                      "Counting began %s after the start of the program (heapwise start): blocks that it allocated "
                      "before are not known.\n",
                      HW_NS(hw_profile_counted_from_ns(profile), true));
    if (process->counting == HW_COUNTING_STOPPED)
        hw_buffer_add(out,
                      "Counting ended %s after the start of the program (heapwise stop): blocks that were live then "
                      "stay live here, even if the program freed them later.\n",
                      HW_NS(hw_profile_ticks_to_ns(profile, process->end_tick), true));
    if (process->periods > 1)
        hw_buffer_add(out, "What earlier periods of this process counted (%s) is not in this profile.\n",
                      HW_OF(process->periods - 1, "period"));
}

static void add_events(const struct hw_view *view, struct hw_buffer *out)
{
    const struct hw_profile *profile = view->profile;
    const struct hw_thread_entry *totals = &profile->totals;
    if (totals->lost)
        hw_buffer_add(out, "%s found no room in the profile: no list includes them.\n", HW_OF(totals->lost, "event"));
    if (totals->foreign_frees || totals->foreign_reallocs)
        hw_buffer_add(
            out,
            "%s and %s of blocks whose allocation was not seen (older than the profile, or from another allocator): "
            "no other number includes them.\n",
            HW_OF(totals->foreign_frees, "free"), HW_OF(totals->foreign_reallocs, "reallocation"));
    if (totals->nested)
        hw_buffer_add(out,
                      "%s from inside an allocator call (the allocator's own work, signal handlers): not counted.\n",
                      HW_OF(totals->nested, "call"));
    const uint64_t in_contexts = profile->context_totals.allocations;
    if (totals->allocations > in_contexts && !profile->running && !view->function && !view->left_out.count)
        hw_buffer_add(out, "%s in the totals, but without a call stack.\n",
                      HW_OF(totals->allocations - in_contexts, "allocation"));
    if (profile->process.evictions)
        hw_buffer_add(
            out,
            "The table of contexts was limited to %s entries; entries were moved to the file %s: counts are complete, "
            "but overlapping lifetimes and repeated CPUs are counted from 0 after each move.\n",
            HW_COUNT(profile->process.table_entries), HW_OF(profile->process.evictions, "time"));
    if ((profile->process.flags & HW_PROCESS_FORKED) && !(profile->process.flags & HW_PROCESS_RESET))
        hw_buffer_add(out,
                      hw_is_merged(profile)
                          ? "At forks, %s (%s) of the parents were live: they count only as \"inherited\".\n"
                          : "At the fork, %s (%s) of the parent were live: they count only as \"inherited\".\n",
                      HW_OF(hw_not_negative(profile->process.inherited_blocks), "block"),
                      HW_BYTES(hw_not_negative(profile->process.inherited_bytes)));
}

static void add_children(const struct hw_profile *profile, struct hw_buffer *out)
{
    const struct hw_process_info *process = &profile->process;
    if (process->children_lost)
        hw_buffer_add(out, "No profile was written of %s that it forked: %s.\n",
                      HW_OF(process->children_lost, "process"),
                      process->children_error ? strerror((int)process->children_error)
                                              : "it had given up system calls before (seccomp)");
}

/* ---- stacks and names ---- */

static void add_stacks(const struct hw_view *view, struct hw_buffer *out)
{
    const struct hw_profile *profile = view->profile;
    uint64_t unknown = 0, truncated = 0, incomplete = 0, gaps = 0, all = 0;
    for (size_t i = 0; i < view->context_count; i++) {
        const struct hw_profile_context *sum = &view->contexts[i].sum;
        all += sum->allocations;
        unknown += sum->leaf ? 0 : sum->allocations;
        truncated += sum->flags & HW_CONTEXT_TRUNCATED ? sum->allocations : 0;
        gaps += sum->leaf && sum->flags & HW_CONTEXT_GAP ? sum->allocations : 0;
        incomplete += sum->leaf && sum->flags & HW_CONTEXT_INCOMPLETE ? sum->allocations : 0;
    }
    if (unknown)
        hw_buffer_add(out, "Unknown stacks: %s (%s).\n", HW_OF(unknown, "allocation"),
                      HW_PERCENT((double)unknown, (double)all));
    if (incomplete)
        hw_buffer_add(out,
                      "Stacks that stop before the start of the thread, so that outer callers are missing: %s (%s).\n",
                      HW_OF(incomplete, "allocation"), HW_PERCENT((double)incomplete, (double)all));
    else if (profile->totals.incomplete_walks)
        hw_buffer_add(out, "Stacks that could not be followed to the start of the thread: %s.\n",
                      HW_COUNT(profile->totals.incomplete_walks));
    if (gaps)
        hw_buffer_add(out,
                      "Stacks in which callers of code without unwind tables (assembly) may be missing: %s (%s).\n",
                      HW_OF(gaps, "allocation"), HW_PERCENT((double)gaps, (double)all));
    if (truncated)
        hw_buffer_add(out, "Stacks cut at the limit of frames, so that outer callers are missing: %s (%s).\n",
                      HW_OF(truncated, "allocation"), HW_PERCENT((double)truncated, (double)all));
}

#define NAMED_MODULES 5 /* of those that share a problem */

/* What is wrong with a module, without its path, or NULL. */
static const char *module_problem(const struct hw_view *view, size_t index)
{
    const struct hw_view_module *module = &view->modules[index];
    const char *problem = module->problem;
    const size_t size = strlen(module->path);
    if (problem && !strncmp(problem, module->path, size) && !strncmp(problem + size, ": ", 2))
        return problem + size + 2;
    return problem;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* "/usr/bin/perl: no debug information…", or "perl, libc.so.6: no debug information…" for all modules from FIRST on
 * that share PROBLEM. */
static void add_problem(const struct hw_view *view, size_t first, const char *problem, struct hw_buffer *out)
{
    size_t count = 0, named = 0;
    for (size_t i = first; i < view->module_count; i++) {
        const char *other = module_problem(view, i);
        count += other && !strcmp(other, problem);
    }
    if (count == 1)
        hw_buffer_add(out, "%s", view->modules[first].path);
    for (size_t i = first; count > 1 && i < view->module_count && named < NAMED_MODULES; i++) {
        const char *other = module_problem(view, i);
        if (other && !strcmp(other, problem))
            hw_buffer_add(out, "%s%s", named++ ? ", " : "", base_name(view->modules[i].path));
    }
    if (count > NAMED_MODULES)
        hw_buffer_add(out, " and %zu more", count - named);
    hw_buffer_add(out, ": %s", problem);
    if (!strncmp(problem, "no debug information", 20))
        hw_buffer_add(out, " (packages with debug symbols, or DEBUGINFOD_URLS, provide them)");
    const size_t length = strlen(problem);
    hw_buffer_add(out, "%s\n", count == 1 && length && problem[length - 1] == '.' ? "" : ".");
}

static void add_modules(const struct hw_view *view, struct hw_buffer *out)
{
    for (size_t i = 0; i < view->module_count; i++) {
        const char *problem = module_problem(view, i);
        bool told = false;
        for (size_t k = 0; problem && k < i && !told; k++) {
            const char *other = module_problem(view, k);
            told = other && !strcmp(other, problem);
        }
        if (problem && !told)
            add_problem(view, i, problem, out);
    }
}

/* ---- counted accesses ---- */

static uint64_t note_count(const struct hw_profile *profile, uint32_t code)
{
    uint64_t count = 0;
    for (size_t i = 0; i < profile->note_count; i++)
        if (profile->notes[i].code == code)
            count += profile->notes[i].count ? profile->notes[i].count : 1;
    return count;
}

/* How much a module's accesses are missed: the program itself, somebody's code, system code. -1: its code counts. */
static int uncounted_rank(const struct hw_view_module *module, bool fields)
{
    if (!(fields ? module->fields_uncounted : module->uncounted))
        return -1;
    return module->flags & HW_MAP_MAIN ? 0 : module->kind == HW_MODULE_PROGRAM ? 1 : 2;
}

void hw_add_uncounted(const struct hw_view *view, bool fields, struct hw_buffer *out)
{
    size_t named = 0;
    for (int rank = 0; rank <= 2; rank++)
        for (size_t i = 0; i < view->module_count; i++) {
            const struct hw_view_module *module = &view->modules[i];
            if (uncounted_rank(module, fields) != rank)
                continue;
            if (!named)
                hw_buffer_add(out, fields ? "Built without heapwise cc --fields, so that their accesses to fields are "
                                            "not counted: "
                                          : "Built without heapwise cc, so that their accesses are not counted: ");
            hw_buffer_add(out, "%s%s%s", named++ ? ", " : "", module->name, rank ? "" : " (the program itself)");
        }
    hw_buffer_add(out, named ? ".\n" : "");
}

/* Modules that count, but not all that they do. */
static void add_unseen(const struct hw_view *view, struct hw_buffer *out)
{
    size_t named = 0, by_calls = 0;
    for (size_t i = 0; i < view->module_count; i++) {
        const struct hw_view_module *module = &view->modules[i];
        if (!module->unseen_operations)
            continue;
        if (!named)
            hw_buffer_add(out, "Instructions whose accesses could not be counted (assembly that takes addresses, "
                               "tiles), with their number in the code: ");
        hw_buffer_add(out, "%s%s (%s)", named++ ? ", " : "", module->name, HW_COUNT(module->unseen_operations));
    }
    hw_buffer_add(out, named ? ".\n" : "");
    for (size_t i = 0; i < view->module_count; i++)
        if (view->modules[i].flags & HW_MAP_COUNTS_BY_CALLS)
            hw_buffer_add(out, "%s%s", by_calls++ ? ", " : "Assembly in code compiled by gcc is not counted: ",
                          view->modules[i].name);
    hw_buffer_add(out, by_calls ? ".\n" : "");
}

static void add_harvest(const struct hw_profile *profile, struct hw_buffer *out)
{
    if (profile->access_info.unharvested_runs)
        hw_buffer_add(out,
                      "%s ended before the counts of live blocks and global variables could be read: these accesses "
                      "are missing.\n",
                      profile->access_info.unharvested_runs == 1
                          ? "1 process"
                          : HW_OF(profile->access_info.unharvested_runs, "process"));
    else if (!(profile->access_info.flags & HW_ACCESS_HARVESTED))
        hw_buffer_add(out, profile->running
                               ? "The counts of live blocks and global variables were not read yet: these accesses "
                                 "are missing (heapwise dump writes a complete profile now).\n"
                               : "The process ended before the counts of live blocks and global variables could be "
                                 "read: these accesses are missing.\n");
    if (profile->unharvested_contexts)
        hw_buffer_add(out,
                      "Blocks of %s were freed after live blocks were last read: the counts of their live blocks are "
                      "left out, since they may be counted already.\n",
                      HW_OF(profile->unharvested_contexts, "place"));
}

static void add_limits(const struct hw_profile *profile, struct hw_buffer *out)
{
    const struct hw_profile_access *all = &profile->access.all;
    const struct hw_access_info *info = &profile->access_info;
    uint64_t sharing = note_count(profile, HW_NOTE_PLANES_SHARED);
    if (info->threads_sharing > sharing)
        sharing = info->threads_sharing;
    if (sharing) {
        hw_buffer_add(out, "There were more threads at once than sets of counters (%u): %s",
                      (unsigned)info->planes_most, HW_OF(sharing, "thread"));
        if (profile->process.threads_seen >= sharing)
            hw_buffer_add(out, " (%s of those seen)",
                          HW_PERCENT((double)sharing, (double)profile->process.threads_seen));
        hw_buffer_add(out, " shared a set with another thread. Accesses that both count in one granule at the same "
                           "instant may be lost, and a granule that only these two share is not seen as shared. All "
                           "other threads lose nothing.\n");
    }
    if (all->saturated_cells && info->granule == 4)
        hw_buffer_add(out, "%s reached the limit of their counters: their periods are lower bounds.\n",
                      HW_OF(all->saturated_cells, "word"));
    else if (all->saturated_cells)
        hw_buffer_add(out,
                      "%s of 8 bytes reached the limit of a counter (255): the numbers of their blocks are lower "
                      "bounds. "
                      "64-byte granules have no such limit.\n",
                      HW_OF(all->saturated_cells, "granule"));
    else if (all->overflown)
        hw_buffer_add(out, "Sums of accesses were too large to be stored: they are lower bounds.\n");
    const uint64_t noted = note_count(profile, HW_NOTE_NOT_OWNED),
                   blocks = all->not_owned > noted ? all->not_owned : noted;
    if (blocks)
        hw_buffer_add(out,
                      "Blocks without granules of their own (older than the counting, or placed by an allocator of the "
                      "program): %s. Accesses to their neighbours may be counted for them.\n",
                      HW_COUNT(blocks));
    if (info->flags & HW_ACCESS_UNSPLIT)
        hw_buffer_add(out, "Objects of clang -fmemory-profile do not distinguish reads and writes, and accesses that "
                           "two threads count in one granule at the same instant may be lost.\n");
}

/* 4-byte granules. */
static void add_periods(const struct hw_profile *profile, struct hw_buffer *out)
{
    const struct hw_access_info *info = &profile->access_info;
    if (!hw_profile_counts_periods(profile))
        return;
    hw_buffer_add(out, "Accesses were not counted: built with --granule=4 the program only records in which periods "
                       "each word was read and written, not how often in each.");
    const uint64_t mean = info->word_rounds ? info->word_span_ns / info->word_rounds : 0;
    if (info->word_rounds == 0)
        hw_buffer_add(out, " The run ended before the first period of %s: each used word counts 1.",
                      HW_NS(info->word_period_ns, false));
    else if (mean > info->word_period_ns + info->word_period_ns / 4)
        hw_buffer_add(out, " A period was %s on average, %s at most, instead of the requested %s.", HW_NS(mean, false),
                      HW_NS(info->word_longest_ns > mean ? info->word_longest_ns : mean, false),
                      HW_NS(info->word_period_ns, false));
    else
        hw_buffer_add(out, " A period was %s on average.", HW_NS(mean, false));
    hw_buffer_add(out, "\n");
}

static void add_accesses(const struct hw_view *view, struct hw_buffer *out)
{
    if (!view->profile->access_counted || view->profile->llvm)
        return;
    if (hw_view_sampled(view))
        hw_buffer_add(out, "Accesses are those of the sampled blocks alone: their sums are not scaled up.\n");
    add_periods(view->profile, out);
    add_harvest(view->profile, out);
    add_limits(view->profile, out);
    hw_add_uncounted(view, false, out);
    hw_buffer_add(out, "Accesses to stacks and thread-local variables, by the C library itself (strlen, printf, "
                       "qsort) and by the kernel are not counted.\n");
}

/* Accesses that the processor picked. */
static void add_picked(const struct hw_sample_info *info, struct hw_buffer *out)
{
    const char *samples = HW_OF(hw_add_saturating(info->reads, info->writes), "sample");
    if (info->period)
        hw_buffer_add(
            out,
            "Accesses were sampled by the processor (%s, one for every %s accesses): shares are estimates, and "
            "places with few samples may be missing.\n",
            samples, HW_COUNT(info->period));
    else
        hw_buffer_add(
            out,
            "Accesses were sampled by the processor (%s), which does not say how many of them a sample stands "
            "for: shares are estimates, and reads cannot be compared with writes.\n",
            samples);
    hw_buffer_add(out,
                  "Samples miss accesses by the kernel and by threads made by a bare clone; for an instruction that "
                  "reads and writes memory the processor may report only one of the two.\n");
    if (info->throttled)
        hw_buffer_add(out, "The kernel slowed the sampling down %s: busy moments count too little.\n",
                      HW_OF(info->throttled, "time"));
}

/* Accesses that were seen step by step. */
static void add_bursts(const struct hw_sample_info *info, struct hw_buffer *out)
{
    hw_buffer_add(
        out,
        "Accesses were sampled (%s): shares are estimates, and places with few samples may be missing. Samples are "
        "drawn by time: slow code gets more samples than fast code. The number of accesses is not known.\n",
        HW_OF(hw_add_saturating(info->reads, info->writes), "sample"));
    hw_buffer_add(out, "Samples miss accesses by the kernel and by threads made by a bare clone; accesses soon after "
                       "a system call are sampled less often.\n");
}

/* Of merged processes, those of one and those of the other. */
static void add_both(const struct hw_sample_info *info, struct hw_buffer *out)
{
    hw_buffer_add(
        out,
        "Accesses were sampled (%s), in some processes by the processor, in others in bursts of single steps: "
        "shares are estimates, and samples of both kinds are added up, although they stand for different numbers of "
        "accesses. Samples miss accesses by the kernel and by threads made by a bare clone.\n",
        HW_OF(hw_add_saturating(info->reads, info->writes), "sample"));
}

/* What samples of accesses cannot show. */
static void add_samples(const struct hw_view *view, struct hw_buffer *out)
{
    const struct hw_sample_info *info = &view->profile->sample_info;
    const char *ended = hw_sample_ended(info);
    if (!view->profile->accesses_sampled)
        return;
    const bool any = info->bursts || info->instructions, by_timer = info->ended == HW_SAMPLE_NO_TIMER;
    const bool merged = view->profile->process.flags & HW_PROCESS_MERGED;
    if (ended && merged)
        hw_buffer_add(out, "Sampling of accesses failed or ended early in %s of %s: %s%s%s.\n",
                      HW_COUNT(info->runs_ended), HW_OF(info->runs, "process"), ended, by_timer ? ": " : "",
                      by_timer ? strerror(info->error) : "");
    else if (ended)
        hw_buffer_add(out, "%s: %s%s%s.\n", any ? "Sampling of accesses ended early" : "Accesses could not be sampled",
                      ended, by_timer ? ": " : "", by_timer ? strerror(info->error) : "");
    if (merged && info->runs < view->profile->process.runs)
        hw_buffer_add(out, "Accesses were sampled in %s of the processes only.\n", HW_COUNT(info->runs));
    if (info->source == HW_SAMPLE_TRAP && info->error && !by_timer)
        hw_buffer_add(out, "Accesses were not sampled by the processor itself: %s.\n", hw_sample_no_pmu(info->error));
    if (!any)
        return;
    if (info->source == HW_SAMPLE_PMU)
        add_picked(info, out);
    else if (info->source == HW_SAMPLE_BOTH)
        add_both(info, out);
    else
        add_bursts(info, out);
    if (info->lost)
        hw_buffer_add(out, "%s found no room.\n", HW_OF(info->lost, "sample"));
}

/* ---- what lies where ---- */

static void add_places(const struct hw_view *view, struct hw_buffer *out)
{
    const struct hw_profile *profile = view->profile;
    const struct hw_profile_places *places = profile->places;
    if (!profile->observed)
        return;
    if (!places) {
        hw_buffer_add(out, "The allocator's use of memory was not recorded: the address space had no room for it "
                           "(ulimit -v, or mappings of the program), or the process was killed before writing it.\n");
        return;
    }
    const struct hw_places_info *info = &places->info;
    struct hw_heap_parts peak;
    const struct hw_places_moment *moment = hw_profile_places_moment(places, HW_MOMENT_PEAK);
    const bool unread = hw_profile_heap_parts(places, HW_MOMENT_PEAK, &peak) && !peak.measured;
    if (!info->samples)
        hw_buffer_add(out, "Sample accesses to see how much of cache lines and pages is used, and which threads write "
                           "shared lines: record --mode allocator --sample-accesses.\n");
    if (moment && unread && info->runs) {
        hw_buffer_add(out,
                      "The resident heap was read near the peak in only %s of %s (the other peaks were too short): "
                      "the memory between blocks is not known for all of them.\n",
                      HW_COUNT(moment->runs_read), HW_OF(info->runs, "process"));
    } else if (unread)
        hw_buffer_add(out,
                      "The resident heap was not read near the peak, which was too short: the memory between blocks "
                      "at the peak is not known.\n");
    if (info->unaligned)
        hw_buffer_add(out, "%s at addresses that are not multiples of 8 were ignored.\n",
                      HW_OF(info->unaligned, "block"));
    if (info->unseen_frees)
        hw_buffer_add(out, "The free of %s was not seen, only that their memory was allocated again.\n",
                      HW_OF(info->unseen_frees, "block"));
    if (info->skipped)
        hw_buffer_add(out, "The cache lines of %s that signal handlers allocated were not checked.\n",
                      HW_OF(info->skipped, "block"));
    if (info->flags & HW_PLACES_WRAPPED)
        hw_buffer_add(
            out,
            "There were more than 16,381 threads: false sharing between threads that share a number is missing.\n");
}

/* ---- what this mode does not observe ---- */

/* LLVM's profiles contain less. */
static void add_llvm(const struct hw_view *view, struct hw_buffer *out)
{
    const struct hw_profile_llvm *llvm = view->profile->llvm;
    hw_buffer_add(
        out,
        "LLVM's %s heap profile (version %u) has blocks by call stack only: not the process, threads, "
        "reallocations, what was live when, or which blocks were never freed (their lives end with the run).\n",
        llvm->kind, (unsigned)llvm->version);
    hw_buffer_add(out, "Lifetimes are of whole milliseconds.\n");
    if (view->profile->access_counted && llvm->clang_runtime)
        hw_buffer_add(out, "Accesses are as clang's runtime counts them: reads and writes together; accesses of "
                           "threads at the same instant may be lost; blocks of less than 64 bytes may share a counter "
                           "with a neighbour.\n");
    else if (view->profile->access_counted)
        hw_buffer_add(out, "Reads and writes are not distinguished.\n");
    else
        hw_buffer_add(out, "The file has no accesses to blocks.\n");
    if (hw_is_merged(view->profile) && llvm->dumps > view->profile->process.runs)
        hw_buffer_add(out,
                      "The files consist of %s: blocks that lived through several of one file are counted by each.\n",
                      HW_OF(llvm->dumps, "dump"));
    else if (llvm->dumps > 1 && !hw_is_merged(view->profile))
        hw_buffer_add(out, "The file consists of %s: blocks that lived through several of them are counted by each.\n",
                      HW_OF(llvm->dumps, "dump"));
    if (!hw_view_measured(view, HW_MEASURED_SIZE_RANGE))
        hw_buffer_add(out,
                      "The file was written without the smallest and largest sizes and lifetimes, and without CPUs "
                      "(llvm-profdata merge --memprof-full-schema keeps them).\n");
    if (llvm->frames)
        hw_buffer_add(out, "Functions are known only by the MD5 of their names, and lines by their distance from the "
                           "start of the function: --binary FILE gives the names of a program or library.\n");
}

static void add_scope(const struct hw_view *view, struct hw_buffer *out)
{
    if (hw_is_merged(view->profile))
        hw_merged_not_observed(view->profile, out);
    if (view->profile->llvm) {
        add_llvm(view, out);
        return;
    }
    const uint64_t distance = view->profile->process.sample_bytes;
    if (!view->profile->observed && !view->context_count && !view->function && !view->left_out.count &&
        !view->profile->problem_count && view->profile->process.counting != HW_COUNTING_WAITS)
        hw_buffer_add(out,
                      "No allocation was seen%s: the program makes none, or its allocator could not be observed%s.\n",
                      distance ? "" : " at all",
                      distance ? ", or it allocates so little that none was in the sample (record it with a smaller "
                                 "--sample-bytes, or without)"
                               : "");
    const bool merged = hw_is_merged(view->profile);
    if (!merged && view->context_count && view->profile->timeline_count < 2)
        hw_buffer_add(out, "There are too few points in time for a timeline.\n");
    if (!merged && !hw_view_memory(view, HW_MOMENT_PEAK) && !hw_view_memory(view, HW_MOMENT_END) &&
        !hw_view_memory(view, HW_MOMENT_DUMP))
        hw_buffer_add(out, "The parts of resident memory were not recorded.\n");
    else if (!merged && view->context_count && !hw_view_memory(view, HW_MOMENT_PEAK) &&
             !hw_view_memory(view, HW_MOMENT_DUMP))
        hw_buffer_add(out, "The parts of resident memory at the peak were not recorded.\n");
    if (view->profile->process.mode == HW_MODE_HEAP && !view->profile->access_counted &&
        !view->profile->accesses_sampled)
        hw_buffer_add(out, "Reads and writes of blocks were not counted (mode heap).\n");
    hw_buffer_add(out,
                  "Memory that the program maps itself (mmap), static data and stacks are not heap blocks: they are "
                  "part of resident memory only.\n");
}

void hw_not_observed(const struct hw_view *view, struct hw_buffer *buffer)
{
    add_state(view->profile, buffer);
    add_sampling(view, buffer);
    add_facts(view->profile, buffer);
    add_notes(view->profile, buffer);
    add_waiting(view->profile, buffer);
    add_events(view, buffer);
    add_children(view->profile, buffer);
    add_places(view, buffer);
    add_stacks(view, buffer);
    add_modules(view, buffer);
    add_accesses(view, buffer);
    hw_add_uncounted(view, true, buffer);
    add_unseen(view, buffer);
    add_samples(view, buffer);
    add_scope(view, buffer);
}
