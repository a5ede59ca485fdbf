/* text_functions.c - tables of a text report with one line a function: its memory, and the accesses to it. */
#include "report/text/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "report/text/human.h"

#define FUNCTION_COLUMN 46

/* All contexts that one function names. */
struct by_function {
    const void *key;  /* its interned name, or the location of a nameless one */
    uint32_t context; /* one of them */
    uint64_t peak, bytes, allocations;
    struct hw_profile_access access; /* all zero when accesses were not counted */
};

static int compare_keys(const void *left, const void *right)
{
    const struct by_function *a = left, *b = right;
    if (a->key != b->key)
        return (uintptr_t)a->key < (uintptr_t)b->key ? -1 : 1;
    return HW_ORDER(a->context, b->context);
}

static int compare_sums(const void *left, const void *right)
{
    const struct by_function *a = left, *b = right;
    return HW_ORDER(b->peak, a->peak) ?: HW_ORDER(b->bytes, a->bytes) ?: HW_ORDER(a->context, b->context);
}

static int compare_accesses(const void *left, const void *right)
{
    const struct by_function *a = left, *b = right;
    const uint64_t x = hw_profile_access_total(&a->access), y = hw_profile_access_total(&b->access);
    return HW_ORDER(y, x) ?: compare_sums(left, right);
}

/* Sums of the contexts by the function that names them, in the order of COMPARE; COUNT of them. */
static struct by_function *sum_functions(struct hw_text *text, int (*compare)(const void *, const void *),
                                         size_t *count)
{
    const struct hw_view *view = text->view;
    struct by_function *sums = malloc((text->places.count + 1) * sizeof *sums);
    *count = 0;
    for (size_t i = 0; sums && i < text->places.count; i++) {
        const struct hw_profile_context *from = &text->places.place[i].sum;
        if (!hw_view_stack(view, from->leaf, &text->stack)) {
            free(sums);
            return NULL;
        }
        const struct hw_view_frame *frame =
            text->stack.count ? &text->stack.frames[hw_stack_headline(&text->stack)] : NULL;
        const void *key = !frame                    ? NULL
                          : frame->symbol->function ? (const void *)frame->symbol->function
                                                    : (const void *)&view->locations[frame->location];
        sums[i] = (struct by_function){.key = key,
                                       .context = (uint32_t)i,
                                       .peak = from->pool ? 0 : hw_not_negative(from->peak_bytes),
                                       .bytes = from->pool ? 0 : from->bytes,
                                       .allocations = from->pool ? 0 : from->allocations};
        if (from->access)
            sums[i].access = from->access->all;
    }
    if (!sums)
        return NULL;
    qsort(sums, text->places.count, sizeof *sums, compare_keys);
    for (size_t i = 0; i < text->places.count; i++) {
        if (*count && sums[*count - 1].key == sums[i].key) {
            struct by_function *to = &sums[*count - 1];
            to->peak += sums[i].peak;
            to->bytes += sums[i].bytes;
            to->allocations += sums[i].allocations;
            hw_profile_access_add(&to->access, &sums[i].access);
        } else {
            sums[(*count)++] = sums[i];
        }
    }
    qsort(sums, *count, sizeof *sums, compare);
    return sums;
}

static void print_name(struct hw_text *text, const struct by_function *sum)
{
    const struct hw_page *page = &text->page;
    if (!hw_text_load(text, text->places.place[sum->context].sum.leaf)) {
        fputs("(stack not known)\n", page->stream);
        return;
    }
    const struct hw_view_frame *frame = &text->stack.frames[text->fold.headline];
    hw_page_print(page, HW_NAME, "%s", hw_text_function(text, frame, page->width - FUNCTION_COLUMN));
    fputc('\n', page->stream);
}

static void print_function(struct hw_text *text, const struct by_function *sum, uint64_t peak)
{
    FILE *stream = text->page.stream;
    if (hw_view_measured(text->view, HW_MEASURED_PEAK))
        fprintf(stream, "%10s %8s", HW_BYTES(sum->peak), HW_PERCENT((double)sum->peak, (double)peak));
    else
        fprintf(stream, "%10s %8s", "-", HW_PERCENT((double)sum->bytes, (double)text->view->totals.bytes));
    fprintf(stream, " %10s %13s  ", HW_BYTES(sum->bytes), HW_COUNT(sum->allocations));
    print_name(text, sum);
}

static void print_more(const struct hw_page *page, size_t count)
{
    fprintf(page->stream, "%*s%s and %s\n", FUNCTION_COLUMN, "", hw_page_ellipsis(page), HW_OF(count, "more function"));
}

void hw_text_functions(struct hw_text *text)
{
    const struct hw_page *page = &text->page;
    size_t count;
    struct by_function *sums = sum_functions(text, compare_sums, &count);
    if (!sums) {
        text->failed = true;
        return;
    }
    const uint64_t whole = text->view->profile->process.peak_bytes;
    uint64_t peak = 0;
    for (size_t i = 0; i < count; i++)
        peak += sums[i].peak;
    const size_t top = hw_text_top(text);
    hw_page_heading(page, "By function: the innermost frame in your own code");
    hw_page_print(page, HW_FAINT, "%10s %8s %10s %13s  %s", "at peak", "share", "in all", "allocations", "function");
    fputc('\n', page->stream);
    size_t shown = count < top ? count : top;
    while (!text->options->top && shown > 1 && sums[shown - 1].peak < peak / 1000 &&
           sums[shown - 1].bytes < text->view->totals.bytes / 1000)
        shown--; /* sorted by peak: ends at the last one that matters */
    for (size_t i = 0; i < shown && !text->failed; i++)
        print_function(text, &sums[i], whole > peak ? whole : peak);
    if (count > shown)
        print_more(page, count - shown);
    free(sums);
}

/* ---- accesses ---- */

static void print_accesses(struct hw_text *text, const struct by_function *sum, uint64_t whole)
{
    const struct hw_profile_access *access = &sum->access;
    const uint64_t accesses = hw_profile_access_total(access), told = hw_add_saturating(access->reads, access->writes);
    fprintf(text->page.stream, "%10s %8s %8s %7s %7s  ", HW_MANY(accesses), HW_PERCENT((double)accesses, (double)whole),
            access->blocks && !hw_profile_counts_periods(text->view->profile) ? HW_RATIO(hw_text_per_byte(access))
                                                                              : "-",
            access->unsplit > told / 100 ? "-" : HW_PERCENT((double)access->reads, (double)told),
            HW_PERCENT((double)access->granules_touched, (double)access->granules));
    print_name(text, sum);
}

void hw_text_accesses(struct hw_text *text)
{
    const struct hw_page *page = &text->page;
    size_t count, shown = 0;
    if (!text->view->profile->access_counted) {
        hw_page_heading(page, "Accesses by function");
        hw_text_not_counted(text);
        return;
    }
    struct by_function *sums = sum_functions(text, compare_accesses, &count);
    if (!sums) {
        text->failed = true;
        return;
    }
    const uint64_t whole = hw_profile_access_total(&text->view->profile->access.all);
    const size_t top = hw_text_top(text);
    const bool periods = hw_profile_counts_periods(text->view->profile);
    hw_page_heading(page, periods ? "Use of blocks, in word periods, by the function that allocated them"
                                  : "Accesses to blocks by the function that allocated them");
    hw_page_print(page, HW_FAINT, "%10s %8s %8s %7s %7s  %s", periods ? "periods" : "accesses", "share", "per byte",
                  "reads", "touched", "function");
    fputc('\n', page->stream);
    while (shown < count && shown < top && !text->failed &&
           (text->options->top || !shown || hw_profile_access_total(&sums[shown].access) >= whole / 1000))
        print_accesses(text, &sums[shown++], whole);
    if (count > shown)
        print_more(page, count - shown);
    hw_text_access_totals(text);
    free(sums);
}
