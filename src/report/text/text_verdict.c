/* text_verdict.c - is it the allocator? First in the part of a text report that is about the allocator. */
#include "report/text/human.h"
#include "report/text/text.h"
#include "report/view/verdict_numbers.h"

static void print_finding(struct hw_text *text, size_t rank, const struct hw_view_verdict *of,
                          const struct hw_verdict_finding *finding, struct hw_advice *words)
{
    const struct hw_page *page = &text->page;
    struct hw_buffer site = {0};
    const enum hw_clean clean = page->utf8 ? HW_CLEAN_UTF8 : HW_CLEAN_ASCII;
    text->failed |= !hw_view_verdict_site(text->view, finding, clean, &site) || site.failed;
    hw_verdict_finding_words(words, finding, &of->input, hw_buffer_text(&site));
    hw_buffer_free(&site);
    fprintf(page->stream, "%s%3zu. ", text->options->brief ? "" : "\n", rank);
    hw_page_print(page, HW_NAME, "%s\n", hw_buffer_text(&words->title));
    (text->options->brief ? hw_text_gain : hw_text_advice)(text, words);
}

void hw_text_verdict(struct hw_text *text)
{
    struct hw_view_verdict of;
    struct hw_advice words = {0};
    struct hw_buffer summary = {0};
    const size_t most = text->options->brief ? 3 : SIZE_MAX;
    if (!hw_view_verdict(&of, text->view))
        return;
    hw_page_heading(&text->page, "Is it the allocator?");
    hw_verdict_summary(&summary, &of.verdict, &of.input);
    hw_page_wrap(&text->page, 0, "", hw_buffer_text(&summary));
    text->failed |= summary.failed;
    hw_buffer_free(&summary);
    for (size_t i = 0; i < of.verdict.finding_count && i < most && !text->failed; i++)
        print_finding(text, i + 1, &of, &of.verdict.findings[i], &words);
    text->failed |= !hw_advice_free(&words);
}
