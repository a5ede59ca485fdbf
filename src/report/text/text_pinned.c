/* text_pinned.c - what keeps pages resident: totals, how full pages are, and places by what they pin. */
#include "report/text/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "report/text/human.h"
#include "report/view/measure.h"
#include "report/view/pins.h"

#define USUAL_PLACES 10
#define NEIGHBOURS   3
#define SOUGHT       12 /* neighbours, of which several may have one name */

static void print_sum(struct hw_text *text, const char *name, const char *sign, uint64_t bytes, const char *what)
{
    if (bytes)
        fprintf(text->page.stream, "%-26s %1s%12s  %s\n", name, sign, HW_BYTES(bytes), what);
}

/* Their sum is what is resident. */
static void print_sums(struct hw_text *text, const struct hw_heap_pages *heap)
{
    /* As in the section memory. */
    const uint64_t least = heap->rounding_bytes < heap->absent_bytes ? heap->rounding_bytes : heap->absent_bytes;
    const uint64_t absent = heap->absent_rounding_bytes < least ? heap->absent_rounding_bytes : least;
    print_sum(text, "Blocks, as requested", "", heap->requested_bytes, "");
    print_sum(text, "Rounding", "+", heap->rounding_bytes - absent, "sizes rounded up, where in memory");
    print_sum(text, "Headers", "+", heap->header_bytes, "");
    print_sum(text, "Not in memory", "-", heap->absent_bytes - absent, "never touched, returned, or in swap");
    print_sum(text, "Pinned", "+", heap->free_bytes, "free, in pages with a live block");
    print_sum(text, "Kept by the allocator", "+", heap->kept_bytes, "free, in pages without one");
    print_sum(text, "Resident", "=", heap->resident_bytes, "in mappings with live blocks");
}

static void print_search(struct hw_text *text, const struct hw_heap_pages *heap)
{
    struct hw_buffer *line = &text->line;
    hw_buffer_clear(line);
    hw_buffer_add(line, "%s in %s were examined in %s.", HW_OF(heap->blocks, "block"),
                  HW_OF(heap->live_pages, "resident page"), HW_NS(heap->walk_ns, text->page.utf8));
    if (heap->below_top_bytes)
        hw_buffer_add(line,
                      " Of what is kept %s lie below the last block of [heap]: glibc gives them back only with "
                      "malloc_trim(0).",
                      HW_BYTES(heap->below_top_bytes));
    if (heap->arena_bytes)
        hw_buffer_add(line, " %s are kept in arenas of threads.", HW_BYTES(heap->arena_bytes));
    if (!(heap->flags & HW_HEAP_PAGES_ROUNDING))
        hw_buffer_add(line, " Rounding is not known with this allocator: it counts as free.");
    if (heap->flags & HW_HEAP_PAGES_MINCORE)
        hw_buffer_add(line, " /proc/self/pagemap could not be read: pages in swap count as not in memory.");
    if (heap->swapped_bytes)
        hw_buffer_add(line, " %s are in swap.", HW_BYTES(heap->swapped_bytes));
    if (heap->unwritten_bytes)
        hw_buffer_add(line, " The file had no room for places that pin %s.", HW_BYTES(heap->unwritten_bytes));
    if (heap->ungrouped_pages)
        hw_buffer_add(line, " %s %s blocks of more than %u places: what an arena would free does not count them.",
                      HW_OF(heap->ungrouped_pages, "page"), heap->ungrouped_pages == 1 ? "holds" : "hold", HW_PAGE_GROUP_CONTEXTS);
    hw_page_wrap(&text->page, 0, "", hw_buffer_text(line));
}

/* Resident bytes by how full their page, or larger piece, is. */
static void print_occupancy(struct hw_text *text)
{
    const struct hw_profile *profile = text->view->profile;
    uint64_t resident[HW_PIECE_UNITS][11] = {0}, any[HW_PIECE_UNITS] = {0};
    FILE *stream = text->page.stream;
    for (size_t i = 0; i < profile->occupancy_count; i++) {
        const struct hw_occupancy *in = &profile->occupancy[i];
        resident[in->unit][in->tenths] = hw_add_saturating(resident[in->unit][in->tenths], in->resident_bytes);
        any[in->unit] |= in->resident_bytes;
    }
    fputs("Resident bytes by how full their pages, or larger pieces, are with live blocks:\n", stream);
    fprintf(stream, "%-14s", "  full");
    for (int unit = 0; unit < HW_PIECE_UNITS; unit++)
        if (any[unit])
            fprintf(stream, " %14s", hw_piece_words[unit]);
    fputc('\n', stream);
    for (unsigned tenths = 0; tenths <= 10; tenths++) {
        uint64_t row = 0;
        for (int unit = 0; unit < HW_PIECE_UNITS; unit++)
            row |= resident[unit][tenths];
        if (!row)
            continue;
        fprintf(stream, tenths ? "  up to %3u %% " : "  no block   ", tenths * 10);
        for (int unit = 0; unit < HW_PIECE_UNITS; unit++)
            if (any[unit])
                fprintf(stream, " %14s", resident[unit][tenths] ? HW_BYTES(resident[unit][tenths]) : "");
        fputc('\n', stream);
    }
}

static const struct hw_view_frame *headline(struct hw_text *text, const struct hw_view_context *context)
{
    return hw_text_load(text, context->sum.leaf) ? &text->stack.frames[text->fold.headline] : NULL;
}

struct neighbour {
    uint32_t context;
    uint64_t pages;
};

/* The places that share most pages with CONTEXT: at most SOUGHT, returns how many. */
static size_t neighbours_of(struct hw_text *text, uint32_t context, struct neighbour most[SOUGHT])
{
    const struct hw_profile *profile = text->view->profile;
    uint64_t *pages = calloc(profile->context_entry_count + 1, sizeof *pages);
    size_t count = 0;
    text->failed |= !pages;
    for (size_t i = 0; pages && i < profile->page_group_count; i++) {
        const struct hw_page_group *group = &profile->page_groups[i];
        bool has = false;
        for (size_t k = 0; k < HW_PAGE_GROUP_CONTEXTS; k++)
            has |= group->contexts[k] == context;
        for (size_t k = 0; has && k < HW_PAGE_GROUP_CONTEXTS && group->contexts[k] != HW_NONE; k++)
            if (group->contexts[k] != context)
                pages[group->contexts[k]] += group->pages;
    }
    for (uint32_t i = 0; pages && i < profile->context_entry_count; i++) {
        size_t at = count;
        for (; at && most[at - 1].pages < pages[i]; at--)
            if (at < SOUGHT)
                most[at] = most[at - 1];
        if (pages[i] && at < SOUGHT) {
            most[at] = (struct neighbour){i, pages[i]};
            count += count < SOUGHT;
        }
    }
    free(pages);
    return count;
}

/* Of several with one name the first one, which has most pages. */
static void add_neighbours(struct hw_text *text, uint32_t context, struct hw_buffer *out)
{
    struct neighbour most[SOUGHT];
    const size_t count = neighbours_of(text, context, most);
    char *names[NEIGHBOURS];
    size_t named = 0;
    for (size_t i = 0; i < count && named < NEIGHBOURS; i++) {
        const struct hw_view_context *other = hw_view_context_of(text->view, most[i].context);
        const struct hw_view_frame *frame = other ? headline(text, other) : NULL;
        const char *name = frame ? hw_text_function(text, frame, 40) : NULL;
        size_t same = 0;
        while (name && same < named && strcmp(names[same], name))
            same++;
        if (!name || same < named || !(names[named] = strdup(name)))
            continue;
        hw_buffer_add(out, "%s%s (%s)", named++ ? ", " : " With it on pages: ", name,
                      HW_OF(most[i].pages, "page"));
    }
    if (named)
        hw_buffer_add(out, ".");
    while (named)
        free(names[--named]);
}

static void print_place(struct hw_text *text, const struct hw_pin *pin)
{
    const struct hw_page *page = &text->page;
    const struct hw_view_context *context = hw_view_context_of(text->view, pin->context);
    struct hw_buffer facts = {0};
    bool placed;
    hw_page_print(page, HW_STRONG, "%12s", HW_BYTES(pin->pinned_bytes));
    fputs("  ", page->stream);
    const struct hw_view_frame *frame = headline(text, context);
    if (frame)
        hw_text_named(text, frame, page->width > 60 ? page->width - 16 : 44, &placed);
    else
        fputs("(unknown stack)", page->stream);
    fputc('\n', page->stream);
    const bool one = pin->pages == 1;
    hw_buffer_add(&facts, "%s of %s on %s, which %s %s full; ", HW_OF(pin->blocks, "block"), HW_BYTES(pin->own_bytes),
                  HW_OF(pin->pages, "page"), one ? "is" : "are",
                  HW_PERCENT((double)pin->live_bytes, (double)pin->pages * 4096));
    if (one)
        hw_buffer_add(&facts, "it is %sthe only place there.", pin->sole_pages ? "" : "not ");
    else
        hw_buffer_add(&facts, "on %s of them it is the only place.",
                      pin->sole_pages ? HW_COUNT(pin->sole_pages) : "none");
    if (context->sum.frees)
        hw_buffer_add(&facts, " %s of this place were freed, after %s on average.", HW_MANY(context->sum.frees),
                      HW_NS((uint64_t)(context->sum.lifetime_total_ns / context->sum.frees), page->utf8));
    add_neighbours(text, pin->context, &facts);
    hw_page_wrap(page, 14, "", hw_buffer_text(&facts));
    text->failed |= facts.failed;
    hw_buffer_free(&facts);
}

static uint64_t gone(const struct hw_view_context *context)
{
    const int64_t peak = context->sum.peak_bytes, live = context->sum.live_bytes;
    return !context->sum.pool && peak > live ? (uint64_t)peak - (uint64_t)(live > 0 ? live : 0) : 0;
}

static int compare_gone(const void *left, const void *right)
{
    const struct hw_view_context *a = *(const struct hw_view_context *const *)left,
                                 *b = *(const struct hw_view_context *const *)right;
    return HW_ORDER(gone(b), gone(a)) ?: HW_ORDER(a->sum.id, b->sum.id);
}

/* Whose blocks filled these pages: what was live at the peak and is not any more. */
static void print_gone(struct hw_text *text)
{
    const struct hw_view *view = text->view;
    const struct hw_view_context **sorted = calloc(view->context_count + 1, sizeof *sorted);
    text->failed |= !sorted;
    for (size_t i = 0; sorted && i < view->context_count; i++)
        sorted[i] = &view->contexts[i];
    if (sorted)
        qsort(sorted, view->context_count, sizeof *sorted, compare_gone);
    for (size_t i = 0; sorted && i < NEIGHBOURS && i < view->context_count && gone(sorted[i]) >= 4096; i++) {
        const struct hw_view_frame *frame = headline(text, sorted[i]);
        struct hw_buffer line = {0};
        if (!i)
            fputs("Freed since the peak, most by:\n", text->page.stream);
        hw_buffer_add(&line, "%s  %s", HW_BYTES(gone(sorted[i])),
                      frame ? hw_text_function(text, frame, 48) : "(unknown stack)");
        if (sorted[i]->sum.frees)
            hw_buffer_add(&line, ", lived %s on average",
                          HW_NS((uint64_t)(sorted[i]->sum.lifetime_total_ns / sorted[i]->sum.frees), text->page.utf8));
        hw_page_wrap(&text->page, 2, "", hw_buffer_text(&line));
        text->failed |= line.failed;
        hw_buffer_free(&line);
    }
    free(sorted);
}

void hw_text_pinned(struct hw_text *text)
{
    const struct hw_profile *profile = text->view->profile;
    const struct hw_heap_pages *heap = hw_pins_pages(profile);
    size_t count;
    hw_buffer_clear(&text->name);
    hw_buffer_add(&text->name, "What keeps pages resident%s%s", heap ? " " : "", heap ? hw_pins_moment(profile) : "");
    hw_page_heading(&text->page, hw_buffer_text(&text->name));
    if (!heap) {
        hw_text_sentence(text, hw_not_walked(profile));
        return;
    }
    print_sums(text, heap);
    print_search(text, heap);
    print_occupancy(text);
    const struct hw_pin **sorted = hw_pins_sorted(text->view, &count);
    const size_t top = text->options->top ? text->options->top : USUAL_PLACES;
    text->failed |= !sorted;
    for (size_t i = 0; sorted && i < count && i < top && sorted[i]->pinned_bytes; i++)
        print_place(text, sorted[i]);
    free(sorted);
    print_gone(text);
}
