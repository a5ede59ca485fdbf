/* text_contents.c - what live blocks hold: copies, zeros, unused ends. */
#include "report/text/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "report/text/human.h"
#include "report/view/contents.h"
#include "report/view/measure.h"

#define USUAL_PLACES    10
#define USUAL_EXAMPLES  3
#define EXAMPLE_COLUMNS 42
#define EXAMPLE_LEAST   12

static void print_sum(struct hw_text *text, const char *name, uint64_t bytes, uint64_t all, const char *what)
{
    fprintf(text->page.stream, "%-14s %12s %6.1f %%  %s\n", name, HW_BYTES(bytes),
            all ? 100.0 * (double)bytes / (double)all : 0, what);
}

static void print_search(struct hw_text *text, const struct hw_contents *all)
{
    const struct hw_content_info *info = text->view->profile->content_search;
    struct hw_buffer *line = &text->line;
    hw_buffer_clear(line);
    hw_buffer_add(line, "Examined %s in %s, in %s.", HW_BYTES(info->bytes), HW_OF(info->blocks, "block"),
                  HW_NS(info->duration_ns, text->page.utf8));
    if (info->moment == HW_MOMENT_PEAK && text->view->profile->process.peak_bytes > info->bytes / 8 * 9)
        hw_buffer_add(line,
                      " The peak came later and is %s: Heapwise limits examining to a tenth of the run time, and the "
                      "program grew faster.",
                      HW_BYTES(text->view->profile->process.peak_bytes));
    if (info->sampled)
        hw_buffer_add(line,
                      " The table of contents had no room for all: of small ones that occur rarely one in %u was "
                      "compared. Copies are an estimate: %s, %s more or less (95 %% confidence).",
                      1u << (info->sampled & 31), HW_BYTES(all->identical_bytes), HW_BYTES(info->identical_error));
    if (info->unread_bytes)
        hw_buffer_add(line, " %s were not read (swap, mapped files, or protected).", HW_BYTES(info->unread_bytes));
    if (!(info->flags & HW_CONTENT_FILLED))
        hw_buffer_add(line, " Small blocks that were never written are known only with --contents=fill.");
    if (info->threads_missed)
        hw_buffer_add(line, " %s could not be stopped (%s).", HW_OF(info->threads_missed, "thread"),
                      strerror((int)info->missed_error));
    if (info->unwritten_bytes)
        hw_buffer_add(line, " The file had no room for %s of them.", HW_BYTES(info->unwritten_bytes));
    if (info->flags & HW_CONTENT_SAMPLES)
        hw_buffer_add(line, " The profile holds bytes of blocks, which may be private; record --no-samples leaves "
                            "them out.");
    hw_page_wrap(&text->page, 0, "", hw_buffer_text(line));
}

static void print_example(struct hw_text *text, const struct hw_content_example *example)
{
    struct hw_buffer bytes = {0};
    const bool quoted = hw_content_quote(example, &bytes, text->page.utf8 ? HW_CLEAN_UTF8 : HW_CLEAN_ASCII);
    const int used =
        fprintf(text->page.stream, "%15s  %s times %s", "", HW_MANY(example->copies), HW_BYTES(example->size));
    if (example->shown) {
        const bool unwritten = example->shown < example->size && example->shown < sizeof example->bytes &&
                               text->view->profile->content_search->flags & HW_CONTENT_FILLED;
        const char *const kind = quoted ? "  " : "  hex ", *const after = unwritten ? ", then never written" : "";
        const int rest = (int)text->page.width - used - (int)strlen(kind) - (int)strlen(after);
        const size_t room = rest > EXAMPLE_COLUMNS ? EXAMPLE_COLUMNS : rest > EXAMPLE_LEAST ? rest : EXAMPLE_LEAST;
        fprintf(text->page.stream, "%s%s%s", kind,
                text->options->full ? hw_buffer_text(&bytes)
                                    : hw_page_cut(&text->page, &text->line, hw_buffer_text(&bytes), room),
                after);
    }
    fputc('\n', text->page.stream);
    text->failed |= bytes.failed;
    hw_buffer_free(&bytes);
}

static void print_examples(struct hw_text *text, uint32_t context, size_t most)
{
    size_t count;
    const struct hw_content_example *examples = hw_contents_examples(text->view, context, &count);
    for (size_t i = 0; i < count && i < most; i++)
        print_example(text, &examples[i]);
}

/* What no part above counts: of avoidable bytes those that were never written. */
static uint64_t never_written(const struct hw_contents *sum)
{
    const uint64_t parts =
        hw_add_saturating(hw_add_saturating(sum->avoidable_copies, sum->avoidable_zeros), sum->avoidable_ends);
    return sum->avoidable_bytes > parts ? sum->avoidable_bytes - parts : 0;
}

/* The greatest part, and what can be done about it. */
static void add_advice(struct hw_buffer *out, const struct hw_contents *sum)
{
    const uint64_t never = never_written(sum), copies = sum->avoidable_copies, zeros = sum->avoidable_zeros,
                   ends = sum->avoidable_ends;
    if (!sum->avoidable_bytes)
        return;
    if (copies >= zeros && copies >= ends && copies >= never) {
        hw_buffer_add(out, "%s are copies of other blocks", HW_BYTES(copies));
        if (sum->repeated && sum->repeated <= sum->identical_blocks)
            hw_buffer_add(out, " (each content occurs %s times on average)",
                          HW_RATIO(1 + (double)sum->identical_blocks / (double)sum->repeated));
        hw_buffer_add(out, ": share them (intern strings, reference counts).");
    } else if (zeros >= ends && zeros >= never)
        hw_buffer_add(out, "%s are zeros only: allocate when they are needed.", HW_BYTES(zeros));
    else if (ends >= never && sum->unused_tail_bytes > 2 * ends)
        hw_buffer_add(out,
                      "%s of address space at the end of blocks are unused; %s of them are resident: reserve less, or "
                      "shrink_to_fit or realloc when they are complete.",
                      HW_BYTES(sum->unused_tail_bytes), HW_BYTES(ends));
    else if (ends >= never)
        hw_buffer_add(out,
                      "%s at the end of blocks are zeros or were never written: reserve less, or shrink_to_fit or "
                      "realloc when they are complete.",
                      HW_BYTES(ends));
    else
        hw_buffer_add(out, "%s were never written: allocate less, or when they are needed.", HW_BYTES(never));
}

static void print_place(struct hw_text *text, const struct hw_contents *sum)
{
    const struct hw_page *page = &text->page;
    const struct hw_view_context *context = hw_view_context_of(text->view, sum->context);
    bool placed;
    hw_page_print(page, HW_STRONG, "%12s", HW_BYTES(sum->avoidable_bytes));
    fprintf(page->stream, " of %12s  ", HW_BYTES(sum->bytes));
    if (hw_text_load(text, context->sum.leaf))
        hw_text_named(text, &text->stack.frames[text->fold.headline], page->width > 60 ? page->width - 34 : 26,
                      &placed);
    else
        fputs("(unknown stack)", page->stream);
    fputc('\n', page->stream);
    hw_buffer_clear(&text->line);
    add_advice(&text->line, sum);
    hw_page_wrap(page, 17, "", hw_buffer_text(&text->line));
    print_examples(text, sum->context, text->options->full ? SIZE_MAX : USUAL_EXAMPLES);
}

void hw_text_contents(struct hw_text *text)
{
    const struct hw_page *page = &text->page;
    const struct hw_content_info *info = text->view->profile->content_search;
    size_t count;
    hw_buffer_clear(&text->name);
    hw_buffer_add(&text->name, "What is in the blocks %s", info ? hw_contents_moment(text->view->profile) : "");
    hw_page_heading(page, hw_buffer_text(&text->name));
    if (!info || info->flags & HW_CONTENT_BLIND) {
        const char *why = info ? "contents were not examined: the process could not read /proc/self/pagemap (it had "
                                 "changed its user, or had no /proc), so it was not known which pages are in memory"
                               : hw_not_examined(text->view->profile);
        hw_buffer_clear(&text->line);
        hw_buffer_add(&text->line, "%c%s.", toupper((unsigned char)*why), why + 1);
        hw_page_wrap(page, 0, "", hw_buffer_text(&text->line));
        return;
    }
    const bool filled = info->flags & HW_CONTENT_FILLED;
    const struct hw_contents all = hw_contents_sum(text->view);
    print_sum(text, "Copies", all.identical_bytes, all.bytes, "identical to another block, but the first");
    print_sum(text, "Zeros", all.zero_bytes, all.bytes, "blocks, and pages of blocks, of zeros only");
    print_sum(text, "Unused ends", all.unused_tail_bytes, all.bytes, "zeros or never written, 16 bytes or more");
    print_sum(text, "Not in memory", all.absent_bytes, all.bytes, "never written, or freed since (madvise)");
    if (filled)
        print_sum(text, "Never written", all.never_written_bytes - all.absent_bytes, all.bytes,
                  "in memory, but the program never wrote it");
    else
        fprintf(page->stream, "%-14s %12s %8s  %s\n", "Never written", "-", "",
                "not known for small blocks, see below");
    print_sum(text, "Avoidable", all.avoidable_bytes, all.bytes, "resident, of the above, each counted once");
    print_search(text, &all);
    const struct hw_contents **sorted = hw_contents_sorted(text->view, &count);
    const size_t top = text->options->top ? text->options->top : USUAL_PLACES;
    text->failed |= !sorted;
    for (size_t i = 0; sorted && i < count && i < top && sorted[i]->avoidable_bytes; i++)
        print_place(text, sorted[i]);
    free(sorted);
    if (text->view->profile->content_example_count) {
        fputs("Most frequent contents:\n", page->stream);
        print_examples(text, HW_NONE, SIZE_MAX);
    }
}
