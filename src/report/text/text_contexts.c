/* text_contexts.c - the lists of a text report: contexts by one key. */
#include "report/text/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "report/text/human.h"
#include "report/view/measure.h"
#include "report/view/merged.h"

const char *hw_text_end(const struct hw_profile *profile)
{
    if (profile->process.flags & HW_PROCESS_DUMP)
        return "at the dump";
    if (profile->process.counting == HW_COUNTING_STOPPED)
        return "at the stop";
    if (profile->running)
        return "now";
    if (hw_is_merged(profile))
        return "at the ends";
    return profile->process.exit_kind == HW_EXIT_CODE ? "at exit" : "at the end";
}

void hw_text_sentence(struct hw_text *text, const char *sentence)
{
    hw_buffer_clear(&text->line);
    hw_buffer_add(&text->line, "%c%s.", toupper((unsigned char)*sentence), sentence + 1);
    hw_page_wrap(&text->page, 0, "", hw_buffer_text(&text->line));
}

/* ---- what a list is about ---- */

static void peak_title(const struct hw_text *text, struct hw_buffer *out)
{
    const struct hw_profile *profile = text->view->profile;
    if (hw_is_merged(profile)) {
        hw_buffer_add(out, "Live at the processes' peaks: %s", HW_BYTES(profile->process.peak_bytes));
        return;
    }
    hw_buffer_add(out, "Live at the peak: %s after %s", HW_BYTES(profile->process.peak_bytes),
                  HW_NS(profile->peak_time_ns, text->page.utf8));
}

static void bytes_title(const struct hw_text *text, struct hw_buffer *out)
{
    hw_buffer_add(out, "Allocated over the whole run: %s", HW_BYTES(text->view->totals.bytes));
}

static void count_title(const struct hw_text *text, struct hw_buffer *out)
{
    hw_buffer_add(out, "Number of allocations: %s", HW_COUNT(text->view->totals.allocations));
}

static void leaked_title(const struct hw_text *text, struct hw_buffer *out)
{
    const struct hw_profile *profile = text->view->profile;
    hw_buffer_add(out, profile->running ? "Live now: " : "Not freed %s: ", hw_text_end(profile));
    hw_buffer_add(out, "%s in %s", HW_BYTES(hw_not_negative(text->view->totals.live_bytes)),
                  HW_OF(hw_not_negative(text->view->totals.live_blocks), "block"));
}

static void lost_title(const struct hw_text *text, struct hw_buffer *out)
{
    hw_buffer_add(out, "Lost, directly or indirectly: %s in %s", HW_BYTES(hw_measure_total(text->view, HW_MEASURE_LOST)),
                  HW_OF(hw_measure_total(text->view, HW_MEASURE_LOST_COUNT), "block"));
}

static void temporary_title(const struct hw_text *text, struct hw_buffer *out)
{
    const struct hw_thread_entry *totals = &text->view->totals;
    hw_buffer_add(out, "Temporary, freed before the thread allocated again");
    if (hw_view_sampled(text->view))
        return;
    hw_buffer_add(out, ": %s", HW_COUNT(totals->temporary));
    if (totals->temporary)
        hw_buffer_add(out, " (%s)", HW_PERCENT((double)totals->temporary, (double)totals->allocations));
}

static void lifetime_title(const struct hw_text *text, struct hw_buffer *out)
{
    hw_buffer_add(out, "Longest lives of freed blocks, on average");
}

static void realloc_title(const struct hw_text *text, struct hw_buffer *out)
{
    hw_buffer_add(out, "Number of reallocations");
    if (!hw_view_sampled(text->view))
        hw_buffer_add(out, ": %s", HW_COUNT(text->view->totals.reallocations));
}

static void threads_title(const struct hw_text *text, struct hw_buffer *out)
{
    const struct hw_process_info *process = &text->view->profile->process;
    hw_buffer_add(out, "Places by number of threads (%s used the heap, at most %s at once)",
                  HW_OF(process->threads_seen, "thread"), HW_COUNT(process->threads_most));
}

static void pools_title(const struct hw_text *text, struct hw_buffer *out)
{
    hw_buffer_add(out, "In pools of the program: part of memory that the other lists count");
}

enum value_kind { VALUE_BYTES, VALUE_COUNT, VALUE_NS, VALUE_THREADS, VALUE_MANY, VALUE_PER_BYTE, VALUE_GRANULES };

static const struct {
    const char *name;                                                 /* for a list that cannot be given */
    void (*title)(const struct hw_text *text, struct hw_buffer *out); /* NULL: hw_text_access_title */
    const char *nothing;                                              /* said when the list is empty */
    enum value_kind kind;
    bool shared; /* the values add up to a total */
} lists[HW_SORT_KEYS] = {
    [HW_SORT_PEAK] = {"Live at the peak", peak_title, "Nothing was live.", VALUE_BYTES, true},
    [HW_SORT_BYTES] = {"Allocated over the whole run", bytes_title, "Nothing was allocated.", VALUE_BYTES, true},
    [HW_SORT_COUNT] = {"Number of allocations", count_title, "Nothing was allocated.", VALUE_COUNT, true},
    [HW_SORT_LEAKED] = {"Not freed", leaked_title, "Everything was freed.", VALUE_BYTES, true},
    [HW_SORT_LOST] = {"Lost", lost_title, "Nothing was lost.", VALUE_BYTES, true},
    [HW_SORT_TEMPORARY] = {"Temporary, freed before the thread allocated again", temporary_title, "There were none.",
                           VALUE_COUNT, true},
    [HW_SORT_MEAN_LIFETIME] = {"Lifetimes", lifetime_title, "No block was freed.", VALUE_NS, false},
    [HW_SORT_REALLOC] = {"Reallocations", realloc_title, "There were none.", VALUE_COUNT, true},
    [HW_SORT_THREADS] = {"Places by number of threads", threads_title, "Nothing was allocated.", VALUE_THREADS, false},
    [HW_SORT_POOLS] = {"In pools of the program", pools_title, "The program announces none (heapwise/heapwise.h).",
                       VALUE_BYTES, true},
    [HW_SORT_ACCESSES] = {"Most accesses", NULL, "There were none.", VALUE_MANY, true},
    [HW_SORT_DENSITY] = {"Most accesses per byte", NULL, "There were none.", VALUE_PER_BYTE, false},
    [HW_SORT_COLD] = {"Cold blocks", NULL, "There are none.", VALUE_BYTES, true},
    [HW_SORT_UNTOUCHED] = {"Never touched", NULL, "Every granule was touched.", VALUE_GRANULES, true},
    [HW_SORT_NEVER_ACCESSED] = {"Never accessed", NULL, "Every block was accessed.", VALUE_COUNT, true},
    [HW_SORT_NEVER_READ] = {"Written but never read", NULL, "There are none.", VALUE_COUNT, true},
    [HW_SORT_SHARING] = {"Shared between threads", NULL, "There are none.", VALUE_MANY, true},
};

/* What the shares of a list refer to. Contexts and totals agree but for events in flight: never less than the sum. */
static uint64_t list_total(const struct hw_view *view, enum hw_sort_key key, uint64_t sum)
{
    const struct hw_thread_entry *totals = &view->totals;
    const struct hw_profile_access *access = &view->profile->access.all;
    const uint64_t values[HW_SORT_KEYS] = {
        [HW_SORT_PEAK] = view->profile->process.peak_bytes,
        [HW_SORT_BYTES] = totals->bytes,
        [HW_SORT_COUNT] = totals->allocations,
        [HW_SORT_LEAKED] = hw_not_negative(totals->live_bytes),
        [HW_SORT_LOST] = hw_measure_total(view, HW_MEASURE_LOST),
        [HW_SORT_TEMPORARY] = totals->temporary,
        [HW_SORT_REALLOC] = totals->reallocations,
        [HW_SORT_ACCESSES] = hw_profile_access_total(access),
        [HW_SORT_COLD] = view->profile->process.peak_bytes,
        [HW_SORT_UNTOUCHED] = hw_untouched_granules(access),
        [HW_SORT_NEVER_ACCESSED] = access->never_accessed,
        [HW_SORT_NEVER_READ] = access->written_never_read,
        [HW_SORT_SHARING] = hw_profile_access_shared(access),
    };
    return values[key] > sum ? values[key] : sum;
}

static const char *value_text(const struct hw_text *text, enum value_kind kind, uint64_t value, char *buffer)
{
    switch (kind) {
    case VALUE_BYTES:
        return hw_human_bytes(buffer, value);
    case VALUE_NS:
        return hw_human_ns(buffer, value, text->page.utf8);
    case VALUE_MANY:
        return hw_human_many(buffer, value);
    case VALUE_PER_BYTE:
        return hw_human_ratio(buffer, (double)value / 1000);
    case VALUE_GRANULES:
        return hw_human_bytes(buffer, value * hw_text_granule(text->view));
    default:
        return hw_human_count(buffer, value);
    }
}

/* ---- one context ---- */

#define LONGEST_CALLER 32

static void size_facts(const struct hw_text *text, const struct hw_profile_context *sum, struct hw_buffer *facts)
{
    hw_buffer_add(facts, "%s, %s in all\n", HW_OF(sum->allocations, "allocation"), HW_BYTES(sum->bytes));
    if (!sum->allocations)
        return;
    const uint64_t mean = sum->bytes / sum->allocations;
    if (!hw_view_measured(text->view, HW_MEASURED_SIZE_RANGE)) {
        hw_buffer_add(facts, "mean %s\n", HW_BYTES(mean));
        return;
    }
    /* Of estimates the sum is fitted to the totals, and the sizes are those of the sampled blocks. */
    if (!hw_view_mean_fits(text->view, sum)) {
        hw_buffer_add(facts, "those in the sample %s", HW_BYTES(sum->size_min));
        if (sum->size_min != sum->size_max)
            hw_buffer_add(facts, " to %s", HW_BYTES(sum->size_max));
        hw_buffer_add(facts, " each\n");
        return;
    }
    if (sum->size_min == sum->size_max) {
        if (sum->allocations > 1)
            hw_buffer_add(facts, "%s each\n", HW_BYTES(sum->size_min));
        return;
    }
    if (sum->allocations == 1) { /* it was reallocated */
        hw_buffer_add(facts, "%s to %s in size\n", HW_BYTES(sum->size_min), HW_BYTES(sum->size_max));
        return;
    }
    hw_buffer_add(facts, "%s to %s each", HW_BYTES(sum->size_min), HW_BYTES(sum->size_max));
    if (mean <= sum->size_max) /* blocks that shrink and grow again can have asked for more than they ever were */
        hw_buffer_add(facts, ", mean %s", HW_BYTES(mean));
    hw_buffer_add(facts, "\n");
}

/* The blocks of a place that are in one class, with their ages. */
static void leak_fact(const struct hw_text *text, const struct hw_profile_context *sum, enum hw_leak_class class,
                      uint64_t blocks, uint64_t bytes, struct hw_buffer *facts)
{
    static const char *const words[] = {[HW_LEAK_DEFINITE] = "lost",
                                        [HW_LEAK_INDIRECT] = "indirectly lost",
                                        [HW_LEAK_POSSIBLE] = "possibly lost"};
    const struct hw_profile *profile = text->view->profile;
    uint64_t oldest = UINT64_MAX, newest = 0; /* ticks */
    if (!blocks)
        return;
    hw_buffer_add(facts, "%s %s in %s", words[class], HW_BYTES(bytes), HW_OF(blocks, "block"));
    for (size_t i = 0; i < profile->leak_count; i++) {
        const struct hw_leak *leak = &profile->leaks[i];
        const struct hw_view_context *context =
            leak->kind == class ? hw_view_context_of(text->view, leak->context) : NULL;
        if (!context || context->sum.id != sum->id)
            continue;
        oldest = leak->oldest_tick < oldest ? leak->oldest_tick : oldest;
        newest = leak->newest_tick > newest ? leak->newest_tick : newest;
    }
    const uint64_t first = hw_profile_ticks_to_ns(profile, oldest), last = hw_profile_ticks_to_ns(profile, newest),
                   end = profile->duration_ns;
    if (oldest <= newest && last <= end && blocks == 1)
        hw_buffer_add(facts, ", %s old", HW_NS(end - last, text->page.utf8));
    else if (oldest <= newest && last <= end)
        hw_buffer_add(facts, ", %s to %s old", HW_NS(end - last, text->page.utf8),
                      HW_NS(end - first, text->page.utf8));
    hw_buffer_add(facts, "\n");
}

static void life_facts(const struct hw_text *text, const struct hw_profile_context *sum, struct hw_buffer *facts)
{
    const struct hw_profile *profile = text->view->profile;
    const bool utf8 = text->page.utf8;
    if (sum->peak_bytes > 0)
        hw_buffer_add(facts, "at the peak %s in %s\n", HW_BYTES((uint64_t)sum->peak_bytes),
                      HW_OF(hw_not_negative(sum->peak_blocks), "block"));
    if (sum->live_blocks > 0) {
        hw_buffer_add(facts, "%s %s in %s", profile->running ? "live" : "not freed",
                      HW_BYTES(hw_not_negative(sum->live_bytes)), HW_OF((uint64_t)sum->live_blocks, "block"));
        if (sum->live_age_total_ns != UINT64_MAX)
            hw_buffer_add(facts, ", mean age %s", HW_NS(sum->live_age_total_ns / (uint64_t)sum->live_blocks, utf8));
        hw_buffer_add(facts, "\n");
    } else if (hw_view_measured(text->view, HW_MEASURED_LIVE)) {
        hw_buffer_add(facts, "all freed\n");
    }
    leak_fact(text, sum, HW_LEAK_DEFINITE, sum->definite_blocks, sum->definite_bytes, facts);
    leak_fact(text, sum, HW_LEAK_INDIRECT, sum->indirect_blocks, sum->indirect_bytes, facts);
    leak_fact(text, sum, HW_LEAK_POSSIBLE, sum->possible_blocks, sum->possible_bytes, facts);
    if (!hw_view_measured(text->view, HW_MEASURED_LIFETIMES))
        return;
    if (sum->frees && !hw_view_measured(text->view, HW_MEASURED_LIFETIME_RANGE))
        hw_buffer_add(facts, "lived %s on average\n", HW_NS(sum->lifetime_total_ns / sum->frees, utf8));
    else if (sum->frees && sum->lifetime_min_ns == sum->lifetime_max_ns)
        hw_buffer_add(facts, "lived %s\n", HW_NS(sum->lifetime_min_ns, utf8));
    else if (sum->frees)
        hw_buffer_add(facts, "lived %s to %s, mean %s\n", HW_NS(sum->lifetime_min_ns, utf8),
                      HW_NS(sum->lifetime_max_ns, utf8), HW_NS(hw_view_mean_lifetime(sum), utf8));
    if (sum->temporary && !hw_view_sampled(text->view))
        hw_buffer_add(facts, "%s temporary\n", HW_PERCENT((double)sum->temporary, (double)sum->allocations));
}

static void realloc_facts(const struct hw_profile_context *sum, struct hw_buffer *facts)
{
    if (!sum->reallocations)
        return;
    hw_buffer_add(facts, "reallocated %s (%s moved", HW_OF(sum->reallocations, "time"), HW_COUNT(sum->realloc_moved));
    if (sum->realloc_moved_bytes)
        hw_buffer_add(facts, " %s", HW_BYTES(sum->realloc_moved_bytes));
    if (sum->realloc_grown_bytes)
        hw_buffer_add(facts, ", grew by %s", HW_BYTES(sum->realloc_grown_bytes));
    if (sum->realloc_shrunk_bytes)
        hw_buffer_add(facts, ", shrank by %s", HW_BYTES(sum->realloc_shrunk_bytes));
    hw_buffer_add(facts, ")\n");
}

static void thread_facts(const struct hw_profile_context *sum, struct hw_buffer *facts)
{
    if (sum->alloc_threads <= 1 && sum->free_threads <= 1)
        hw_buffer_add(facts, "1 thread\n");
    else
        hw_buffer_add(facts, "allocated by %s, freed by %s\n", HW_OF(sum->alloc_threads, "thread"),
                      HW_COUNT(sum->free_threads));
}

static void free_stack_facts(struct hw_text *text, size_t index, struct hw_buffer *facts)
{
    size_t count;
    const struct hw_view_free_stack *stacks = hw_view_free_stacks(text->view, text->places.place[index].index, &count);
    uint64_t all = 0;
    for (size_t i = 0; i < count; i++)
        all += stacks[i].count;
    for (size_t i = 0; i < count && i < 2; i++) {
        if (!hw_view_stack(text->view, stacks[i].leaf, &text->stack)) {
            text->failed = true;
            return;
        }
        if (!text->stack.count)
            continue;
        const struct hw_view_frame *frame = &text->stack.frames[hw_stack_headline(&text->stack)];
        hw_buffer_add(facts, "%s freed by %s", HW_PERCENT((double)stacks[i].count, (double)all),
                      hw_text_function(text, frame, 40));
        const char *place = hw_text_place(text, frame);
        hw_buffer_add(facts, *place ? " (%s)\n" : "%s\n", place);
    }
    if (count > 2)
        hw_buffer_add(facts, "the rest by %s\n", HW_OF(count - 2, "other stack"));
}

static void print_facts(struct hw_text *text, size_t index)
{
    const struct hw_view_context *context = &text->places.place[index];
    const struct hw_profile_context *sum = &context->sum;
    struct hw_buffer facts = {0};
    if (hw_view_sampled(text->view))
        hw_buffer_add(&facts, "estimated from %s\n", HW_OF(sum->samples, "sample"));
    if (sum->pool)
        hw_buffer_add(&facts, "in a pool\n");
    if (sum->access)
        hw_text_access_facts(text, sum, &facts);
    else
        hw_text_type_fact(text, sum, &facts);
    size_facts(text, sum, &facts);
    life_facts(text, sum, &facts);
    if (context->stacks == 1 && context->merged == 1)
        hw_text_distribution_facts(text, context->index, &facts);
    realloc_facts(sum, &facts);
    if (hw_view_measured(text->view, HW_MEASURED_EVENTS))
        thread_facts(sum, &facts);
    if (sum->inherited_blocks > 0)
        hw_buffer_add(&facts, "inherited %s in %s, %s freed here\n", HW_BYTES(hw_not_negative(sum->inherited_bytes)),
                      HW_OF((uint64_t)sum->inherited_blocks, "block"), HW_COUNT(sum->inherited_frees));
    if (context->stacks > 1)
        hw_buffer_add(&facts, "sum of %s that recurse through these functions\n", HW_OF(context->stacks, "stack"));
    if (context->merged > 1)
        hw_buffer_add(&facts, "the module was mapped at several addresses\n");
    if (context->stacks == 1)
        free_stack_facts(text, index, &facts);
    hw_page_facts(&text->page, 5, hw_buffer_text(&facts));
    text->failed = text->failed || facts.failed;
    hw_buffer_free(&facts);
}

/* The same in the brief report: how many, how large. */
static void print_brief_facts(struct hw_text *text, enum hw_sort_key key, const struct hw_view_context *context)
{
    const struct hw_profile_context *sum = &context->sum;
    struct hw_buffer facts = {0};
    if (key == HW_SORT_PEAK && sum->peak_blocks > 0)
        hw_buffer_add(&facts, "%s at the peak\n", HW_OF((uint64_t)sum->peak_blocks, "block"));
    if (key == HW_SORT_LEAKED && sum->live_blocks > 0)
        hw_buffer_add(&facts, "%s not freed\n", HW_OF((uint64_t)sum->live_blocks, "block"));
    if (!sum->access)
        hw_text_type_fact(text, sum, &facts);
    size_facts(text, sum, &facts);
    hw_page_facts(&text->page, 5, hw_buffer_text(&facts));
    text->failed = text->failed || facts.failed;
    hw_buffer_free(&facts);
}

/* "called by luaH_newkey < luaH_set < ...": as many callers of the loaded stack as a line has room for. */
static void print_callers(struct hw_text *text)
{
    const struct hw_page *page = &text->page;
    static const char begin[] = "     called by ";
    size_t column = sizeof begin - 1;
    bool behind = false, any = false, gap = false;
    for (size_t i = 0; i < text->fold.count; i++) {
        const struct hw_fold_item *item = &text->fold.items[i];
        const bool frame = item->kind == HW_FOLD_FRAME;
        if (gap && !frame)
            continue;
        if (!behind) {
            behind = frame && item->frame == text->fold.headline;
            continue;
        }
        const char *name =
            frame ? hw_text_function(text, &text->stack.frames[item->frame], LONGEST_CALLER) : hw_page_ellipsis(page);
        const size_t width = hw_text_width(name) + (any ? 3 : 0);
        if (column + width + 4 + hw_text_width(hw_page_ellipsis(page)) > page->width) {
            if (!gap)
                fprintf(page->stream, any ? " < %s" : "%s", hw_page_ellipsis(page));
            break;
        }
        hw_page_print(page, HW_FAINT, "%s%s", any ? " < " : begin, name);
        column += width;
        any = true;
        gap = !frame;
    }
    if (any)
        fputc('\n', page->stream);
}

/* " 1.   58.1 MiB  94.9 %  luaH_resize  ltable.c:554" */
static void print_headline(struct hw_text *text, enum hw_sort_key key, size_t rank, size_t index, uint64_t total)
{
    const struct hw_page *page = &text->page;
    const struct hw_view_context *context = &text->places.place[index];
    const uint64_t value = hw_sort_value(key, context);
    char number[HW_HUMAN];
    hw_page_print(page, HW_PLAIN, "%3zu. ", rank);
    hw_page_print(page, HW_STRONG, "%*s", HW_RIGHT(10, value_text(text, lists[key].kind, value, number)));
    if (lists[key].shared)
        fprintf(page->stream, " %8s", HW_PERCENT((double)value, (double)total));
    size_t column = lists[key].shared ? 24 : 15;
    hw_buffer_clear(&text->line);
    if (text->shown[index])
        hw_buffer_add(&text->line, "see %s %u", hw_report_section_names[HW_REPORT_LISTS + text->shown_in[index]],
                      text->shown[index]);
    const size_t note = hw_text_width(hw_buffer_text(&text->line));
    fputs("  ", page->stream);
    column += 2;
    if (!hw_text_load(text, context->sum.leaf)) {
        hw_page_print(page, HW_NAME, "(stack not known)");
        column += 17;
    } else {
        const struct hw_view_frame *frame = &text->stack.frames[text->fold.headline];
        const size_t room = page->width - column - (note ? note + 2 : 0);
        bool placed;
        column += hw_text_named(text, frame, room, &placed);
        if (!placed && text->options->brief) { /* else the stack has it */
            fprintf(page->stream, "\n     %s", hw_buffer_text(&text->place));
            column = page->width;
        }
    }
    if (note) {
        hw_page_pad(page, column + note < page->width ? page->width - column - note : 1);
        hw_page_print(page, HW_FAINT, "%s", hw_buffer_text(&text->line));
    }
    fputc('\n', page->stream);
}

static void print_context(struct hw_text *text, enum hw_sort_key key, size_t rank, size_t index, uint64_t total)
{
    print_headline(text, key, rank, index, total);
    if (text->shown[index])
        return;
    text->shown[index] = rank < UINT16_MAX ? (uint16_t)rank : UINT16_MAX;
    text->shown_in[index] = (uint8_t)key;
    if (text->options->brief) {
        print_brief_facts(text, key, &text->places.place[index]);
        if (hw_text_load(text, text->places.place[index].sum.leaf))
            print_callers(text);
        return;
    }
    print_facts(text, index);
    if (key >= HW_SORT_FIRST_OF_ACCESS && text->places.place[index].stacks == 1)
        hw_text_words(text, &text->places.place[index]);
    text->summed = text->places.place[index].stacks > 1;
    if (hw_text_load(text, text->places.place[index].sum.leaf))
        hw_text_stack(text);
}

/* How many contexts the list shows: without --top those that are next to nothing, of the whole and beside the first,
 * are left to the last line. */
static size_t shown_count(const struct hw_text *text, enum hw_sort_key key, const uint32_t *order, size_t count,
                          uint64_t total)
{
    const size_t top = hw_text_top(text);
    size_t shown = count < top ? count : top;
    /* a small leak is one, too */
    if (text->options->top || !lists[key].shared || key == HW_SORT_LOST || !shown)
        return shown;
    const uint64_t first = hw_sort_value(key, &text->places.place[order[0]]) / 100;
    const uint64_t least = first < total / 1000 ? first : total / 1000;
    while (hw_sort_value(key, &text->places.place[order[shown - 1]]) < least)
        shown--;
    return shown;
}

/* Why the file cannot answer the list's question, or NULL. */
static const char *unanswered(const struct hw_view *view, enum hw_sort_key key)
{
    const enum hw_measured needed = key == HW_SORT_PEAK || key == HW_SORT_COLD ? HW_MEASURED_PEAK
                                    : key == HW_SORT_LEAKED                    ? HW_MEASURED_LIVE
                                    : key == HW_SORT_LOST                      ? HW_MEASURED_LEAKS
                                    : key == HW_SORT_TEMPORARY || key == HW_SORT_REALLOC || key == HW_SORT_THREADS
                                        ? HW_MEASURED_EVENTS
                                    : key == HW_SORT_MEAN_LIFETIME ? HW_MEASURED_LIFETIMES
                                                                   : HW_MEASURED_TOTALS;
    const bool granules = key == HW_SORT_UNTOUCHED || key == HW_SORT_NEVER_ACCESSED || key == HW_SORT_NEVER_READ ||
                          key == HW_SORT_SHARING;
    if (hw_profile_counts_periods(view->profile) && (key == HW_SORT_DENSITY || key == HW_SORT_COLD))
        return "With 4-byte granules it is not counted how often words are used.";
    if (hw_view_sampled(view) && (key == HW_SORT_TEMPORARY || key == HW_SORT_REALLOC))
        return "A sample of the allocations does not show it.";
    if (needed == HW_MEASURED_LEAKS && !hw_view_measured(view, needed))
        return "Pointers were not searched for: heapwise record --leaks does that.";
    if (hw_view_measured(view, needed) && (!granules || hw_view_measured(view, HW_MEASURED_GRANULES)))
        return NULL;
    return view->profile->llvm ? "LLVM's heap profiles do not record it."
           : view->profile->totals_lost || view->profile->process_lost
               ? "That part of the file is damaged."
               : "The address space had no room (ulimit -v, or mappings of the program): sizes "
                 "of freed blocks are not known.";
}

void hw_text_list(struct hw_text *text, enum hw_sort_key key)
{
    const struct hw_page *page = &text->page;
    const struct hw_view *view = text->view;
    size_t count;
    uint32_t *order = hw_view_sorted(text->places.place, text->places.count, key, false, &count);
    if (!order) {
        text->failed = true;
        return;
    }
    const char *reason = unanswered(view, key);
    hw_buffer_clear(&text->line);
    if (reason)
        hw_buffer_add(&text->line, "%s", lists[key].name);
    else if (lists[key].title)
        lists[key].title(text, &text->line);
    else
        hw_text_access_title(text, key, &text->line);
    hw_page_heading(page, hw_buffer_text(&text->line));
    if (key >= HW_SORT_FIRST_OF_ACCESS && !view->profile->access_counted) {
        hw_text_not_counted(text);
        free(order);
        return;
    }
    if (reason) {
        fprintf(page->stream, "%s\n", reason);
        free(order);
        return;
    }
    hw_text_uncounted(text, key);
    if (!count)
        fprintf(page->stream, "%s\n",
                key == HW_SORT_POOLS && view->profile->process.flags & HW_PROCESS_ATTACHED
                    ? "A recording by heapwise attach does not see what a program announces."
                    : lists[key].nothing);
    uint64_t sum = 0, rest = 0;
    for (size_t i = 0; i < count; i++)
        sum += hw_sort_value(key, &text->places.place[order[i]]);
    const uint64_t total = list_total(view, key, sum);
    const size_t shown = shown_count(text, key, order, count, total);
    bool after_stack = false;
    for (size_t i = 0; i < shown && !text->failed; i++) {
        const bool with_stack = !text->shown[order[i]] && !text->options->brief;
        if (i && (with_stack || after_stack)) /* entries of one line stay together */
            fputc('\n', page->stream);
        print_context(text, key, i + 1, order[i], total);
        after_stack = with_stack;
    }
    for (size_t i = shown; i < count; i++)
        rest += hw_sort_value(key, &text->places.place[order[i]]);
    if (shown < count) {
        char number[HW_HUMAN];
        fprintf(page->stream, "%s     %s and %s", text->options->brief ? "" : "\n", hw_page_ellipsis(page),
                HW_OF(count - shown, "more place"));
        if (lists[key].shared)
            fprintf(page->stream, ": %s (%s)", value_text(text, lists[key].kind, rest, number),
                    HW_PERCENT((double)rest, (double)total));
        fputc('\n', page->stream);
    }
    if (lists[key].shared && key != HW_SORT_COLD &&
        total - sum > total / 1000) { /* the profile could not grow, or is damaged */
        char number[HW_HUMAN];
        fprintf(page->stream, "\n     %s and %s: %s (%s)\n", hw_page_ellipsis(page),
                view->function         ? "in other functions"
                : view->left_out.count ? "left out, or without a call stack"
                                       : "without a call stack",
                value_text(text, lists[key].kind, total - sum, number),
                HW_PERCENT((double)(total - sum), (double)total));
    }
    free(order);
}
