/* view_pins.c - see pins.h. */
#include "report/view/pins.h"

#include <stdlib.h>

#include "base/order.h"

const char *const hw_piece_keys[HW_PIECE_UNITS] = {[HW_PIECE_PAGE] = "page",
                                                   [HW_PIECE_HUGE_PAGE] = "huge_page",
                                                   [HW_PIECE_GLIBC_HEAP] = "glibc_heap",
                                                   [HW_PIECE_SEGMENT] = "mimalloc_segment"};
const char *const hw_piece_words[HW_PIECE_UNITS] = {[HW_PIECE_PAGE] = "4 KiB pages",
                                                    [HW_PIECE_HUGE_PAGE] = "2 MiB pages",
                                                    [HW_PIECE_GLIBC_HEAP] = "glibc's heaps",
                                                    [HW_PIECE_SEGMENT] = "segments"};

const struct hw_heap_pages *hw_pins_pages(const struct hw_profile *profile)
{
    const struct hw_heap_pages *pages = profile->heap_pages;
    return pages && !(pages->flags & HW_HEAP_PAGES_MISSED) ? pages : NULL;
}

const char *hw_pins_moment(const struct hw_profile *profile)
{
    return profile->process.flags & HW_PROCESS_DUMP ? "at the dump" : "at the end";
}

static int compare(const void *left, const void *right)
{
    const struct hw_pin *a = *(const struct hw_pin *const *)left, *b = *(const struct hw_pin *const *)right;
    return HW_ORDER(b->pinned_bytes, a->pinned_bytes) ?: HW_ORDER(b->pages, a->pages) ?:
           HW_ORDER(a->context, b->context);
}

const struct hw_pin **hw_pins_sorted(const struct hw_view *view, size_t *count)
{
    const struct hw_profile *profile = view->profile;
    const struct hw_pin **sorted = calloc(profile->pin_count + 1, sizeof *sorted);
    *count = 0;
    for (size_t i = 0; sorted && hw_pins_pages(profile) && i < profile->pin_count; i++)
        if (hw_view_context_of(view, profile->pins[i].context))
            sorted[(*count)++] = &profile->pins[i];
    if (sorted)
        qsort(sorted, *count, sizeof *sorted, compare);
    return sorted;
}
