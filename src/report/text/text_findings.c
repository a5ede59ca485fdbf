/* text_findings.c - what to do, in the order of what it gains. */
#include <string.h>

#include "report/view/analyse.h"
#include "report/view/sampled_fields.h"
#include "report/text/human.h"
#include "report/text/text.h"

#define USUAL_FINDINGS 5
#define BRIEF_FINDINGS 3

/* "Allocated by new_node (tree.c:17).", of the greatest context; nothing when the stack is not known. */
static void add_allocator(struct hw_text *text, const struct hw_finding *finding, struct hw_buffer *out)
{
    const struct hw_view *view = text->view;
    const struct hw_view_context *greatest = NULL;
    for (size_t i = 0; i < finding->context_count; i++) {
        const struct hw_view_context *context = &view->contexts[finding->contexts[i]];
        if (!greatest || (finding->kind != HW_FINDING_OUT_OF_MEMORY && context->sum.bytes > greatest->sum.bytes))
            greatest = context;
    }
    if (!greatest || !hw_text_load(text, greatest->sum.leaf))
        return;
    const struct hw_view_frame *frame = &text->stack.frames[text->fold.headline];
    const char *place = hw_text_place(text, frame);
    const bool end = finding->kind == HW_FINDING_OUT_OF_MEMORY;
    hw_buffer_add(out, "%s by %s", end ? " Most of what was live then was allocated" : " Allocated", hw_text_function(text, frame, 48));
    if (*place)
        hw_buffer_add(out, " (%s)", place);
    if (finding->context_count > 1 && !end)
        hw_buffer_add(out, " and %s", HW_OF(finding->context_count - 1, "other place"));
    hw_buffer_add(out, ".");
}

void hw_text_gain(struct hw_text *text, const struct hw_advice *advice)
{
    if (!advice->gain.used)
        return;
    hw_buffer_clear(&text->line);
    hw_buffer_add(&text->line, "Gain: %s.", hw_buffer_text(&advice->gain));
    hw_page_wrap(&text->page, 5, "", hw_buffer_text(&text->line));
}

void hw_text_advice(struct hw_text *text, const struct hw_advice *advice)
{
    const struct hw_page *page = &text->page;
    hw_page_wrap(page, 5, "", hw_buffer_text(&advice->why));
    hw_page_wrap(page, 5, "", hw_buffer_text(&advice->what));
    hw_text_gain(text, advice);
}

static void print_finding(struct hw_text *text, size_t rank, const struct hw_finding *finding, struct hw_advice *words)
{
    const struct hw_page *page = &text->page;
    hw_finding_words(text->view, text->analysis, finding, page->utf8 ? HW_CLEAN_UTF8 : HW_CLEAN_ASCII, words);
    fprintf(page->stream, "%3zu. ", rank);
    hw_page_print(
        page, HW_NAME, "%s",
        hw_page_cut(page, &text->line, hw_buffer_text(&words->title), text->options->full ? 4096 : page->width - 5));
    fputc('\n', page->stream);
    if (text->options->brief && finding->kind != HW_FINDING_OUT_OF_MEMORY) {
        hw_text_gain(text, words);
        return;
    }
    add_allocator(text, finding, &words->why);
    hw_text_advice(text, words);
    if (finding->context_count &&
        (finding->kind == HW_FINDING_FALSE_SHARING || finding->kind == HW_FINDING_SHARED_WRITES))
        hw_text_sides(text, finding);
}

void hw_text_findings(struct hw_text *text)
{
    const struct hw_page *page = &text->page;
    const struct hw_analysis *analysis = text->analysis;
    const size_t top = text->options->top ? text->options->top : text->options->brief ? BRIEF_FINDINGS : USUAL_FINDINGS;
    struct hw_advice words = {0};
    size_t shown = 0, wanted = 0;
    if (text->options->fields && !hw_view_fields(text->view)->counted)
        return; /* nothing was analysed, as the next section says */
    hw_page_heading(page, "What to do");
    for (size_t i = 0; i < analysis->finding_count && !text->failed; i++) {
        if (!hw_report_wants_finding(text->options, analysis, &analysis->findings[i]) || wanted++ >= top)
            continue;
        if (shown++ && !text->options->brief)
            fputc('\n', page->stream);
        print_finding(text, i + 1, &analysis->findings[i], &words);
    }
    if (!wanted)
        fputs("Nothing was found that is worth a change.\n", page->stream);
    if (shown < wanted)
        fprintf(page->stream, "%s     %s and %s\n", text->options->brief ? "" : "\n", hw_page_ellipsis(page),
                HW_OF(wanted - shown, "more finding"));
    text->failed |= !hw_advice_free(&words);
}
