/* text.c - the report for a person: the summary, and which parts follow it. */
#include "report/text/text.h"

#include <stdlib.h>
#include <string.h>

#include "report/view/analyse.h"
#include "report/text/human.h"
#include "report/view/measure.h"
#include "report/view/block_types.h"
#include "report/view/merged.h"
#include "report/words/not_observed.h"
#include "report/words/selection.h"

const char *const hw_report_section_names[HW_REPORT_SECTIONS] = {
    [HW_REPORT_SUMMARY] = "summary",     [HW_REPORT_TIMELINE] = "timeline", [HW_REPORT_MEMORY] = "memory",
    [HW_REPORT_FUNCTIONS] = "functions", [HW_REPORT_ACCESS] = "access",     [HW_REPORT_SAMPLES] = "sampled",
    [HW_REPORT_ALLOCATOR] = "allocator", [HW_REPORT_REGIONS] = "regions",   [HW_REPORT_GLOBALS] = "globals",
    [HW_REPORT_FINDINGS] = "findings",   [HW_REPORT_FIELDS] = "fields",     [HW_REPORT_SIZES] = "sizes",
    [HW_REPORT_LIFETIMES] = "lifetimes", [HW_REPORT_LEAKS] = "leaks",       [HW_REPORT_KEEPS] = "keeps",
    [HW_REPORT_CONTENTS] = "contents",   [HW_REPORT_PINNED] = "pinned",
    [HW_REPORT_PERF] = "perf",
    [HW_REPORT_TYPES] = "types",         [HW_REPORT_NOT_OBSERVED] = "not-observed",
#define HW_BOTH(id, key, ...) [HW_REPORT_LISTS + HW_SORT_##id] = key,
#define HW_LIST(id, key, ...) [HW_REPORT_LISTS + HW_SORT_##id] = key,
#include "report/view/measures.def"
};

#define LIST(key) (1ull << (HW_REPORT_LISTS + (key)))

/* Lists of long lives, reallocations and threads are shown on request only: the facts are with each context. */
static const uint64_t usual_sections =
    1ull << HW_REPORT_SUMMARY | 1ull << HW_REPORT_TIMELINE | 1ull << HW_REPORT_MEMORY | 1ull << HW_REPORT_FUNCTIONS |
    LIST(HW_SORT_PEAK) | LIST(HW_SORT_BYTES) | LIST(HW_SORT_COUNT) | LIST(HW_SORT_LEAKED) | LIST(HW_SORT_TEMPORARY) |
    1ull << HW_REPORT_SIZES | 1ull << HW_REPORT_LIFETIMES | 1ull << HW_REPORT_NOT_OBSERVED;

/* Added where accesses were counted. */
static const uint64_t access_sections = 1ull << HW_REPORT_ACCESS | LIST(HW_SORT_ACCESSES) | LIST(HW_SORT_COLD) |
                                        LIST(HW_SORT_UNTOUCHED) | LIST(HW_SORT_NEVER_ACCESSED) |
                                        LIST(HW_SORT_NEVER_READ) | LIST(HW_SORT_SHARING) | 1ull << HW_REPORT_GLOBALS;

/* ---- summary ---- */

/* Why it was written, if the runtime noted it: the latest such note. */
static void describe_dump(const struct hw_profile *profile, struct hw_buffer *out)
{
    const char *why = NULL;
    for (size_t i = 0; i < profile->note_count; i++)
        if (profile->notes[i].code == HW_NOTE_DUMP_AT)
            why = hw_profile_string(profile, profile->notes[i].text);
    hw_buffer_add(out, "dumped while it was running");
    if (why)
        hw_buffer_add(out, "; %s", why);
}

static void describe_end(const struct hw_profile *profile, struct hw_buffer *out)
{
    const struct hw_process_info *process = &profile->process;
    const char *signal = process->exit_kind == HW_EXIT_SIGNAL ? sigabbrev_np(process->exit_value) : NULL;
    if (process->exit_kind == HW_EXIT_CODE)
        hw_buffer_add(out, "ended with exit code %d", process->exit_value);
    else if (process->exit_kind == HW_EXIT_SIGNAL && signal)
        hw_buffer_add(out, "killed by signal %d (SIG%s)%s", process->exit_value, signal,
                      process->oom_kills ? ": out of memory (the kernel's OOM killer)" : "");
    else if (process->exit_kind == HW_EXIT_SIGNAL)
        hw_buffer_add(out, "killed by signal %d", process->exit_value);
    else if (process->exit_kind == HW_EXIT_EXEC)
        hw_buffer_add(out, "became another program by exec");
    else if (process->exit_kind == HW_EXIT_DETACHED)
        hw_buffer_add(out, "until heapwise detach; the process continued");
    else if (process->flags & HW_PROCESS_DUMP)
        describe_dump(profile, out);
    else if (profile->running)
        hw_buffer_add(out, "still running");
    else
        hw_buffer_add(out, profile->sealed ? "ended; its exit status is not known"
                                           : "end not known: killed, or still running elsewhere");
}

static void add_run(const struct hw_text *text, struct hw_buffer *out)
{
    const struct hw_profile *profile = text->view->profile;
    if (hw_is_merged(profile)) {
        hw_merged_run(profile, text->page.utf8, out);
        return;
    }
    if (profile->llvm) {
        hw_buffer_add(out, "not known: LLVM's %s heap profile, version %u", profile->llvm->kind,
                      (unsigned)profile->llvm->version);
        return;
    }
    if (profile->process_lost) {
        hw_buffer_add(out, "not known: that part of the file is damaged");
        return;
    }
    hw_buffer_add(out, "process %u, %s, ", (unsigned)profile->process.pid,
                  HW_NS(profile->duration_ns, text->page.utf8));
    describe_end(profile, out);
    if (profile->process.flags & HW_PROCESS_FORKED)
        hw_buffer_add(out, "; forked from process %u", (unsigned)profile->process.parent_pid);
}

static void add_allocated(const struct hw_text *text, struct hw_buffer *out)
{
    const struct hw_thread_entry *totals = &text->view->totals;
    const struct hw_profile *profile = text->view->profile;
    if (!hw_view_measured(text->view, HW_MEASURED_TOTALS))
        hw_buffer_add(out, "not known: that part of the file is damaged");
    else if (totals->allocations)
        hw_buffer_add(
            out, "%s%s in %s",
            profile->observed && profile->observed->bytes_known && !hw_profile_bytes_exact(profile) ? "at least " : "",
            HW_BYTES(totals->bytes), HW_OF(totals->allocations, "block"));
    else if (hw_view_sampled(text->view))
        hw_buffer_add(out, "not known: none of the blocks was in the sample");
    else
        hw_buffer_add(out, "nothing");
    if (totals->reallocations)
        hw_buffer_add(out, "; %s", HW_OF(totals->reallocations, "reallocation"));
    if (totals->failed)
        hw_buffer_add(out, "; %s failed", HW_OF(totals->failed, "allocation"));
}

static void add_peak(const struct hw_text *text, struct hw_buffer *out)
{
    const struct hw_profile *profile = text->view->profile;
    const char *unknown = hw_measure_unknown(text->view, HW_MEASURE_PEAK);
    if (unknown && !profile->llvm)
        hw_buffer_add(out, "not known: %s", unknown);
    if (unknown || !profile->process.peak_bytes)
        return;
    if (hw_is_merged(profile)) {
        hw_merged_peak(profile, out);
        return;
    }
    hw_buffer_add(out, "%s live after %s (%s into the run)", HW_BYTES(profile->process.peak_bytes),
                  HW_NS(profile->peak_time_ns, text->page.utf8),
                  HW_PERCENT((double)profile->peak_time_ns, (double)profile->duration_ns));
}

static void add_live(const struct hw_text *text, struct hw_buffer *out)
{
    const struct hw_profile *profile = text->view->profile;
    const struct hw_thread_entry *totals = &text->view->totals;
    const char *unknown = hw_measure_unknown(text->view, HW_MEASURE_LEAKED);
    if (unknown && !profile->llvm)
        hw_buffer_add(out, "not known: %s", unknown);
    if (unknown || !totals->allocations)
        return;
    if (!totals->live_blocks) {
        hw_buffer_add(out, profile->running ? "nothing is live" : "nothing: every block was freed");
        return;
    }
    hw_buffer_add(out, "%s in %s %s", HW_BYTES(hw_not_negative(totals->live_bytes)),
                  HW_OF(hw_not_negative(totals->live_blocks), "block"), hw_text_end(profile));
    const uint64_t lost = hw_measure_total(text->view, HW_MEASURE_LOST_COUNT);
    if (hw_view_measured(text->view, HW_MEASURED_LEAKS))
        hw_buffer_add(out, ": %s lost in %s", HW_BYTES(hw_measure_total(text->view, HW_MEASURE_LOST)),
                      HW_OF(lost, "block"));
    else if (!profile->running)
        hw_buffer_add(out, " (may still be reachable)");
}

/* What a forked child had from its parent. */
static void add_inherited(const struct hw_text *text, struct hw_buffer *out)
{
    const struct hw_process_info *process = &text->view->profile->process;
    uint64_t frees = 0;
    if (!(process->flags & (HW_PROCESS_FORKED | HW_PROCESS_RESET)) ||
        (process->counting && process->flags & HW_PROCESS_RESET && !process->inherited_blocks)) /* from nothing */
        return;
    for (size_t i = 0; i < text->view->context_count; i++)
        frees += text->view->contexts[i].sum.inherited_frees;
    if (process->flags & HW_PROCESS_RESET) {
        hw_buffer_add(out, "%s in %s live at the reset", HW_BYTES(hw_not_negative(process->inherited_bytes)),
                      HW_OF(hw_not_negative(process->inherited_blocks), "block"));
        if (!text->view->profile->observed) /* there frees of all blocks are one number */
            hw_buffer_add(out, ", %s of them freed since", HW_COUNT(frees));
        hw_buffer_add(out, "; counted as live, not as allocated");
        return;
    }
    hw_buffer_add(out, "%s in %s of the parent, %s of them freed here; not in the other numbers",
                  HW_BYTES(hw_not_negative(process->inherited_bytes)),
                  HW_OF(hw_not_negative(process->inherited_blocks), "block"), HW_COUNT(frees));
}

static void add_temporary(const struct hw_text *text, struct hw_buffer *out)
{
    const struct hw_thread_entry *totals = &text->view->totals;
    if (hw_view_sampled(text->view) || !hw_view_measured(text->view, HW_MEASURED_EVENTS))
        return;
    if (totals->allocations && !totals->temporary)
        hw_buffer_add(out, "none");
    else if (totals->allocations)
        hw_buffer_add(out, "%s (%s), freed before their thread allocated again", HW_OF(totals->temporary, "block"),
                      HW_PERCENT((double)totals->temporary, (double)totals->allocations));
}

static void add_threads(const struct hw_text *text, struct hw_buffer *out)
{
    const struct hw_process_info *process = &text->view->profile->process;
    if (process->threads_seen > 1)
        hw_buffer_add(out, "%s used the heap, at most %s at once", HW_COUNT(process->threads_seen),
                      HW_COUNT(process->threads_most));
    else if (process->threads_seen)
        hw_buffer_add(out, "1");
}

static void add_resident(const struct hw_text *text, struct hw_buffer *out)
{
    const uint64_t bytes = hw_view_peak_rss(text->view->profile), own = hw_view_own_memory(text->view->profile);
    if (own && own < bytes)
        hw_buffer_add(out, "about %s at most (heap, code, stacks and the rest); RSS with Heapwise's own memory: %s",
                      HW_BYTES(bytes - own), HW_BYTES(bytes));
    else if (bytes)
        hw_buffer_add(out,
                      hw_is_merged(text->view->profile)
                          ? "%s at most in one process (RSS: heap, code, stacks and the rest)"
                          : "%s at most (RSS: heap, code, stacks and the rest)",
                      HW_BYTES(bytes));
    else
        hw_buffer_add(out, "not known");
}

static void add_sampled(const struct hw_text *text, struct hw_buffer *out)
{
    const struct hw_view *view = text->view;
    if (view->profile->process.mode == HW_MODE_ALLOCATOR)
        hw_buffer_add(out, "blocks and bytes by call stack are estimated from %s that were followed",
                      HW_OF(view->samples, "block"));
    else if (hw_view_sampled(view))
        hw_buffer_add(out, "counts and bytes are estimated from %s, one for every %s on average",
                      HW_OF(view->samples, "sample"), HW_BYTES(view->profile->process.sample_bytes));
}

static void add_accesses(const struct hw_text *text, struct hw_buffer *out)
{
    const struct hw_view *view = text->view;
    const struct hw_profile_access *all = &view->profile->access.all;
    if (!view->profile->access_counted)
        return;
    const bool periods = hw_profile_counts_periods(view->profile);
    if (periods)
        hw_buffer_add(out, "%s in blocks", HW_OF(hw_profile_access_total(all), "word period"));
    else {
        hw_text_add_accesses(out, all->reads, all->writes, all->unsplit, "", all->saturated_cells || all->overflown);
        hw_buffer_add(out, " to blocks");
    }
    const uint64_t globals =
        hw_add_saturating(hw_add_saturating(view->global_reads, view->global_writes), view->global_unsplit);
    if (globals)
        hw_buffer_add(out, ", %s %s global variables", HW_COUNT(globals), periods ? "in" : "to");
    if (view->profile->access_info.granule)
        hw_buffer_add(out, "; in granules of %u bytes", (unsigned)view->profile->access_info.granule);
}

static void add_allocator(const struct hw_text *text, struct hw_buffer *out)
{
    const char *allocator = text->view->profile->allocator;
    hw_buffer_clean(out, allocator && *allocator ? allocator : "not known",
                    text->page.utf8 ? HW_CLEAN_UTF8 : HW_CLEAN_ASCII);
}

#define LONGEST_COMMAND 300 /* columns; --full shows all */

/* The command, or the executable where it is not known. */
static void add_command(const struct hw_text *text, struct hw_buffer *out)
{
    const struct hw_profile *profile = text->view->profile;
    const enum hw_clean clean = text->page.utf8 ? HW_CLEAN_UTF8 : HW_CLEAN_ASCII;
    for (size_t i = 0; i < profile->command_count; i++) {
        const char *word = profile->command[i];
        const bool quote = !*word || word[strcspn(word, " \t\n\"'\\$`*?|&;<>(){}[]#~!")];
        hw_buffer_add(out, "%s%s", i ? " " : "", quote ? "'" : "");
        hw_buffer_clean(out, word, clean);
        hw_buffer_add(out, "%s", quote ? "'" : "");
        if (!text->options->full && out->used > LONGEST_COMMAND && !out->failed) {
            hw_buffer_cut(out, hw_text_cut(out->data, LONGEST_COMMAND));
            hw_buffer_add(out, "%s", hw_page_ellipsis(&text->page));
            return;
        }
    }
    if (!profile->command_count)
        hw_buffer_clean(out, profile->executable, clean);
}

static void print_summary(struct hw_text *text)
{
    static const struct {
        const char *label;
        void (*add)(const struct hw_text *text, struct hw_buffer *out); /* adds nothing: no line */
    } lines[] = {{"Command", add_command},     {"Run", add_run},
                 {"Allocator", add_allocator}, {"Sampled", add_sampled},
                 {"Allocated", add_allocated}, {"Peak", add_peak},
                 {"Not freed", add_live},      {"Temporary", add_temporary},
                 {"Accesses", add_accesses},   {"Inherited", add_inherited},
                 {"Threads", add_threads},     {"Resident", add_resident}};
    const struct hw_profile *profile = text->view->profile;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        hw_buffer_clear(&text->line);
        lines[i].add(text, &text->line);
        const char *label = lines[i].add == add_live && profile->running ? "Live" : lines[i].label;
        if (text->line.used)
            hw_page_item(&text->page, label, hw_buffer_text(&text->line));
    }
}

/* "Heapwise report for lua5.4", with the file where there is room for it. */
static void print_title(struct hw_text *text)
{
    const struct hw_page *page = &text->page;
    const struct hw_profile *profile = text->view->profile;
    const char *slash = strrchr(profile->executable, '/');
    const char *name = hw_page_clean(page, &text->name, slash && slash[1] ? slash + 1 : profile->executable);
    if (!*name && hw_is_merged(profile))
        name = profile->llvm ? "merged runs" : "several programs";
    if (!*name)
        name = "a program that is not known";
    const char *file = hw_page_clean(page, &text->place, profile->path ? profile->path : "");
    const char *what = text->options->fields ? "Fields of structs" : "Heap profile";
    const size_t used = hw_text_width(what) + 4 + hw_text_width(name), width = hw_text_width(file);
    hw_page_print(page, HW_HEADING, "%s of %s", what, name);
    if (width && used + 2 + width <= page->width) {
        hw_page_pad(page, page->width - used - width);
        hw_page_print(page, HW_FAINT, "%s", file);
    }
    fputc('\n', page->stream);
    for (unsigned i = 0; i < page->width; i++)
        fputs(page->utf8 ? "\u2550" : "=", page->stream);
    fputc('\n', page->stream);
}

void hw_text_selection(struct hw_text *text, const char *label)
{
    struct hw_buffer sentences = {0}, clean = {0};
    hw_selection(text->view, &sentences);
    for (const char *at = hw_buffer_text(&sentences); *at;) {
        const size_t size = strcspn(at, "\n");
        hw_buffer_clear(&text->line);
        hw_buffer_bytes(&text->line, at, size);
        hw_buffer_add(&clean, "%s%s", clean.used ? "\n" : "",
                      hw_page_clean(&text->page, &text->cleaned, hw_buffer_text(&text->line)));
        at += size + 1;
    }
    if (clean.used)
        hw_page_item(&text->page, label, hw_buffer_text(&clean));
    text->failed = text->failed || sentences.failed || clean.failed;
    hw_buffer_free(&sentences);
    hw_buffer_free(&clean);
}

/* ---- what was not observed ---- */

/* The first sentences of the brief report, so many lines of each: */
#define BRIEF_SENTENCES 3
#define BRIEF_LINES     2

/* SENTENCE as far as there is room for, in whole words. */
static const char *cut_sentence(struct hw_text *text, const char *sentence)
{
    const size_t most =
        BRIEF_LINES * (text->page.width - 2) - 16; /* words that do not fit leave room at a line's end */
    if (hw_text_width(sentence) <= most)
        return sentence;
    size_t size = hw_text_cut(sentence, most);
    while (size && sentence[size] != ' ')
        size--;
    hw_buffer_clear(&text->line);
    hw_buffer_bytes(&text->line, sentence, size);
    hw_buffer_add(&text->line, " %s", hw_page_ellipsis(&text->page));
    return hw_buffer_text(&text->line);
}

void hw_text_not_observed(struct hw_text *text)
{
    const struct hw_page *page = &text->page;
    struct hw_buffer sentences = {0};
    hw_not_observed(text->view, &sentences);
    hw_page_heading(page, "What was not observed");
    const bool brief = text->options->brief;
    size_t left = 0;
    for (const char *at = hw_buffer_text(&sentences), *next; *at; at = next) {
        const size_t size = strcspn(at, "\n");
        next = at + size + (at[size] != '\0');
        if (brief && left++ >= BRIEF_SENTENCES)
            continue;
        hw_buffer_clear(&text->name);
        hw_buffer_bytes(&text->name, at, size);
        const char *sentence = hw_page_clean(page, &text->cleaned, hw_buffer_text(&text->name));
        if (brief)
            sentence = cut_sentence(text, sentence);
        hw_page_wrap(page, 2, page->utf8 ? "\u2022" : "-", sentence);
    }
    if (left > BRIEF_SENTENCES)
        fprintf(page->stream, "  %s and %zu more: --section not-observed\n", hw_page_ellipsis(page),
                left - BRIEF_SENTENCES);
    text->failed = text->failed || sentences.failed;
    hw_buffer_free(&sentences);
}

/* ---- the whole ---- */

void hw_text_sections(struct hw_text *text, uint64_t sections)
{
    static void (*const print[HW_REPORT_SECTIONS])(struct hw_text *) = {
        [HW_REPORT_SUMMARY] = print_summary,       [HW_REPORT_TIMELINE] = hw_text_timeline,
        [HW_REPORT_MEMORY] = hw_text_memory,       [HW_REPORT_FUNCTIONS] = hw_text_functions,
        [HW_REPORT_LEAKS] = hw_text_leaks,         [HW_REPORT_KEEPS] = hw_text_keeps,
        [HW_REPORT_CONTENTS] = hw_text_contents,   [HW_REPORT_PINNED] = hw_text_pinned,
        [HW_REPORT_NOT_OBSERVED] = hw_text_not_observed, [HW_REPORT_TYPES] = hw_text_types,
        [HW_REPORT_PERF] = hw_text_perf,
        [HW_REPORT_ACCESS] = hw_text_accesses,     [HW_REPORT_GLOBALS] = hw_text_globals,
        [HW_REPORT_FINDINGS] = hw_text_findings,   [HW_REPORT_FIELDS] = hw_text_fields,
        [HW_REPORT_SAMPLES] = hw_text_samples,     [HW_REPORT_ALLOCATOR] = hw_text_allocator,
        [HW_REPORT_REGIONS] = hw_text_regions,     [HW_REPORT_SIZES] = hw_text_sizes,
        [HW_REPORT_LIFETIMES] = hw_text_lifetimes, [HW_REPORT_LISTS + HW_SORT_THREADS] = hw_text_threads,
    };
    /* With the summary the tables of functions are the answer on the first screen. Who counted accesses asks for them.
     */
    static const uint8_t order[HW_REPORT_SECTIONS] = {HW_REPORT_SUMMARY,
                                                      HW_REPORT_FINDINGS,
                                                      HW_REPORT_FIELDS,
                                                      HW_REPORT_FUNCTIONS,
                                                      HW_REPORT_TYPES,
                                                      HW_REPORT_ACCESS,
                                                      HW_REPORT_LISTS + HW_SORT_ACCESSES,
                                                      HW_REPORT_LISTS + HW_SORT_DENSITY,
                                                      HW_REPORT_LISTS + HW_SORT_COLD,
                                                      HW_REPORT_LISTS + HW_SORT_UNTOUCHED,
                                                      HW_REPORT_LISTS + HW_SORT_NEVER_ACCESSED,
                                                      HW_REPORT_LISTS + HW_SORT_NEVER_READ,
                                                      HW_REPORT_LISTS + HW_SORT_SHARING,
                                                      HW_REPORT_GLOBALS,
                                                      HW_REPORT_SAMPLES,
                                                      HW_REPORT_PERF,
                                                      HW_REPORT_ALLOCATOR,
                                                      HW_REPORT_REGIONS,
                                                      HW_REPORT_LEAKS,
                                                      HW_REPORT_LISTS + HW_SORT_LOST,
                                                      HW_REPORT_KEEPS,
                                                      HW_REPORT_CONTENTS,
                                                      HW_REPORT_PINNED,
                                                      HW_REPORT_TIMELINE,
                                                      HW_REPORT_MEMORY,
                                                      HW_REPORT_LISTS + HW_SORT_PEAK,
                                                      HW_REPORT_LISTS + HW_SORT_BYTES,
                                                      HW_REPORT_LISTS + HW_SORT_COUNT,
                                                      HW_REPORT_LISTS + HW_SORT_LEAKED,
                                                      HW_REPORT_LISTS + HW_SORT_TEMPORARY,
                                                      HW_REPORT_LISTS + HW_SORT_MEAN_LIFETIME,
                                                      HW_REPORT_LISTS + HW_SORT_REALLOC,
                                                      HW_REPORT_LISTS + HW_SORT_THREADS,
                                                      HW_REPORT_LISTS + HW_SORT_POOLS,
                                                      HW_REPORT_SIZES,
                                                      HW_REPORT_LIFETIMES,
                                                      HW_REPORT_NOT_OBSERVED};
    for (unsigned i = 0; i < HW_REPORT_SECTIONS && !text->failed; i++) {
        const unsigned section = order[i];
        if (!(sections & 1ull << section))
            continue;
        if (print[section])
            print[section](text);
        else
            hw_text_list(text, (enum hw_sort_key)(section - HW_REPORT_LISTS));
    }
}

/* Those of counted accesses that say more than their total. */
static uint64_t access_sections_with_content(const struct hw_view *view)
{
    const struct hw_profile_access *all = &view->profile->access.all;
    uint64_t sections = access_sections;
    uint64_t cold = 0;
    for (size_t i = 0; i < view->context_count; i++)
        cold += hw_sort_value(HW_SORT_COLD, &view->contexts[i]);
    if (cold <= view->profile->process.peak_bytes / 50)
        sections &= ~LIST(HW_SORT_COLD);
    if (hw_untouched_granules(all) <= all->granules / 50)
        sections &= ~LIST(HW_SORT_UNTOUCHED);
    if (all->never_accessed <= all->blocks / 100)
        sections &= ~LIST(HW_SORT_NEVER_ACCESSED);
    if (all->written_never_read <= all->blocks / 100)
        sections &= ~LIST(HW_SORT_NEVER_READ);
    if (!hw_profile_access_shared(all))
        sections &= ~LIST(HW_SORT_SHARING);
    if (!view->global_count)
        sections &= ~(1ull << HW_REPORT_GLOBALS);
    return sections;
}

/* The usual sections without those that would be empty or say next to nothing. */
static uint64_t sections_with_content(const struct hw_view *view, bool findings)
{
    uint64_t sections = usual_sections;
    if (view->profile->timeline_count < 2)
        sections &= ~(1ull << HW_REPORT_TIMELINE);
    if (!view->profile->memory_count)
        sections &= ~(1ull << HW_REPORT_MEMORY);
    if (hw_view_sampled(view) || view->totals.temporary < view->totals.allocations / 100)
        sections &= ~LIST(HW_SORT_TEMPORARY); /* the summary has the number */
    if (!hw_view_measured(view, HW_MEASURED_EVENTS))
        sections &= ~LIST(HW_SORT_TEMPORARY);
    if (!hw_view_measured(view, HW_MEASURED_BARS))
        sections &= ~(1ull << HW_REPORT_SIZES | 1ull << HW_REPORT_LIFETIMES);
    if (!hw_view_measured(view, HW_MEASURED_LIVE))
        sections &= ~LIST(HW_SORT_LEAKED);
    if (!hw_view_measured(view, HW_MEASURED_PEAK))
        sections &= ~(LIST(HW_SORT_PEAK) | LIST(HW_SORT_COLD));
    for (size_t i = 0; i < view->context_count; i++)
        if (view->contexts[i].sum.pool)
            sections |= LIST(HW_SORT_POOLS);
    if (hw_view_has_types(view))
        sections |= 1ull << HW_REPORT_TYPES;
    if (hw_view_has_threads(view))
        sections |= LIST(HW_SORT_THREADS);
    if (hw_view_measured(view, HW_MEASURED_LEAKS))
        sections |= 1ull << HW_REPORT_LEAKS;
    if (view->keeps)
        sections |= 1ull << HW_REPORT_KEEPS;
    if (view->profile->content_search)
        sections |= 1ull << HW_REPORT_CONTENTS;
    if (view->profile->heap_pages)
        sections |= 1ull << HW_REPORT_PINNED;
    if (view->profile->perf)
        sections |= 1ull << HW_REPORT_PERF;
    if (view->sampled)
        sections |= 1ull << HW_REPORT_SAMPLES;
    if (view->profile->observed)
        sections |= 1ull << HW_REPORT_ALLOCATOR;
    if (view->profile->access_counted)
        sections |= access_sections_with_content(view);
    if (findings)
        sections |= 1ull << HW_REPORT_FINDINGS;
    if (view->profile->region_count || view->profile->mark_count)
        sections |= 1ull << HW_REPORT_REGIONS;
    if (view->function) /* what is about the process as a whole */
        sections &= ~(1ull << HW_REPORT_REGIONS | 1ull << HW_REPORT_TIMELINE | 1ull << HW_REPORT_MEMORY |
                      1ull << HW_REPORT_ACCESS | 1ull << HW_REPORT_GLOBALS | 1ull << HW_REPORT_FINDINGS |
                      1ull << HW_REPORT_NOT_OBSERVED);
    if (!view->context_count)
        sections &= 1ull << HW_REPORT_SUMMARY | 1ull << HW_REPORT_REGIONS | 1ull << HW_REPORT_TIMELINE |
                    1ull << HW_REPORT_MEMORY | 1ull << HW_REPORT_GLOBALS | 1ull << HW_REPORT_FINDINGS |
                    1ull << HW_REPORT_ALLOCATOR | 1ull << HW_REPORT_LEAKS | 1ull << HW_REPORT_NOT_OBSERVED;
    return sections;
}

static void print_top(struct hw_text *text)
{
    print_title(text);
    hw_text_selection(text, "Shown");
}

/* Sums instead of sections. */
static bool report_sums(const struct hw_view *view, const struct hw_report_options *options, FILE *stream,
                        struct hw_error *error)
{
    struct hw_text text = hw_text_begin(view, options, stream);
    const bool known = hw_text_sums(&text, print_top, error), fine = hw_text_done(&text);
    if (!fine)
        hw_error_set(error, "%s: not enough memory for the report",
                     view->profile->path ? view->profile->path : "profile");
    return known && fine;
}

bool hw_report_text(const struct hw_view *view, const struct hw_report_options *options, FILE *stream,
                    struct hw_error *error)
{
    if (options->sums.shape != HW_SUMS_NONE)
        return report_sums(view, options, stream, error);
    struct hw_text text = hw_text_begin(view, options, stream);
    text.shown = calloc(view->context_count + 1, sizeof *text.shown);
    text.shown_in = calloc(view->context_count + 1, sizeof *text.shown_in);
    struct hw_view_analysis analysis;
    if (!hw_view_analyse(&analysis, view, error))
        text.failed = true;
    text.analysis = analysis.analysis;
    text.failed |= !text.shown || !text.shown_in || !hw_places_make(&text.places, view, options->full);
    if (!text.failed) {
        print_top(&text);
        const bool brief = options->brief && !options->sections;
        const uint64_t sections =
            options->sections ? options->sections : sections_with_content(view, analysis.analysis->finding_count != 0);
        if (options->packages && !options->sections)
            hw_text_missing_symbols(&text);
        (brief ? hw_text_brief : hw_text_sections)(&text, sections);
    }
    const bool fine = hw_text_done(&text);
    if (!fine)
        hw_error_set(error, "%s: not enough memory for the report",
                     view->profile->path ? view->profile->path : "profile");
    hw_places_free(&text.places);
    hw_view_analysis_free(&analysis);
    free(text.shown);
    free(text.shown_in);
    return fine;
}
