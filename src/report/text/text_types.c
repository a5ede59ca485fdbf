/* text_types.c - the heap by type, and what a place's blocks are, in a text report. */
#include "report/text/text.h"

#include <stdlib.h>

#include "report/text/human.h"
#include "report/view/block_types.h"

#define USUAL_ROWS 20

void hw_text_type_fact(struct hw_text *text, const struct hw_profile_context *sum, struct hw_buffer *facts)
{
    const char *type = hw_view_type(text->view, sum);
    if (!type)
        return;
    type = hw_page_clean(&text->page, &text->cleaned, type);
    if (!sum->type_many || sum->type_size == 1)
        hw_buffer_add(facts, "type %s\n", type);
    else if (sum->size_min == sum->size_max && sum->type_size && sum->size_min / sum->type_size > 1)
        hw_buffer_add(facts, "type %s, an array of %s\n", type, HW_COUNT(sum->size_min / sum->type_size));
    else
        hw_buffer_add(facts, "type %s, arrays\n", type);
}

void hw_text_types(struct hw_text *text)
{
    const struct hw_page *page = &text->page;
    const struct hw_view *view = text->view;
    const bool peak = hw_view_measured(view, HW_MEASURED_PEAK);
    const uint64_t whole = peak ? view->profile->process.peak_bytes : view->totals.bytes;
    size_t count;
    struct hw_type_sum *sums = hw_type_sums(view, &count);
    text->failed |= !sums;
    hw_page_heading(page, peak ? "Heap by type: bytes at the peak" : "Heap by type: bytes over the whole run");
    if (!count) {
        hw_page_wrap(page, 0, "",
                     "No types are known. The program needs debug information (compile it with -g), or has to be "
                     "built with heapwise cc.");
        free(sums);
        return;
    }
    hw_page_print(page, HW_FAINT, "%10s %8s %12s %10s  type", peak ? "peak" : "bytes", "share", "allocations", "sizeof");
    fputc('\n', page->stream);
    const size_t top = text->options->top ? text->options->top : USUAL_ROWS;
    uint64_t known = 0;
    for (size_t i = 0; i < count; i++) {
        const struct hw_type_sum *type = &sums[i];
        const uint64_t bytes = peak ? hw_not_negative(type->sum.peak_bytes) : type->sum.bytes;
        char size[HW_HUMAN] = "";
        known = hw_add_saturating(known, bytes);
        if (i >= top)
            continue;
        if (type->size)
            hw_human_bytes(size, type->size);
        fprintf(page->stream, "%*s %8s %12s %*s  ", HW_RIGHT(10, HW_BYTES(bytes)),
                HW_PERCENT((double)bytes, (double)whole), HW_COUNT(type->sum.allocations), HW_RIGHT(10, size));
        const char *name = hw_page_clean(page, &text->name, type->name);
        hw_page_print(page, HW_NAME, "%s",
                      text->options->full ? name : hw_page_cut(page, &text->line, name, page->width - 45));
        fputc('\n', page->stream);
    }
    if (count > top)
        fprintf(page->stream, "%45s%s and %s\n", "", hw_page_ellipsis(page), HW_OF(count - top, "more type"));
    free(sums);
    fprintf(page->stream, "%*s %8s %12s %10s  (not known)\n", HW_RIGHT(10, HW_BYTES(whole > known ? whole - known : 0)),
            HW_PERCENT((double)(whole > known ? whole - known : 0), (double)whole), "", "");
}
