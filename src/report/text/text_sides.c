/* text_sides.c - who uses lines that threads share, in a text report: a line or two for each role of threads. */
#include "report/text/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "report/text/human.h"

#define SIDES_MOST  4
#define RANGES_MOST 3

static const char *name_of(struct hw_text *text, uint32_t location, size_t columns)
{
    const struct hw_view_location *at = &text->view->locations[location];
    const struct hw_view_frame frame = {.symbol = at->frames.frame,
                                        .module = at->module == HW_NONE ? NULL : &text->view->modules[at->module],
                                        .address = at->address,
                                        .location = location};
    return hw_text_function(text, &frame, columns);
}

static const char *place_of(struct hw_text *text, uint32_t location)
{
    const struct hw_view_location *at = &text->view->locations[location];
    const struct hw_view_frame frame = {.symbol = at->frames.frame,
                                        .module = at->module == HW_NONE ? NULL : &text->view->modules[at->module],
                                        .address = at->address,
                                        .location = location};
    return hw_text_place(text, &frame);
}

/* "left_side (2 threads), started by main (sides.c:95)". */
static void add_thread(struct hw_text *text, uint32_t number, struct hw_buffer *out)
{
    const struct hw_view_role *role = &text->view->roles[number];
    if (number == HW_ROLE_MAIN || number == HW_ROLE_UNKNOWN) {
        hw_buffer_add(out, number == HW_ROLE_MAIN ? "the main thread" : "unknown threads");
        return;
    }
    hw_buffer_add(out, "%s", role->routine == HW_NONE ? "a thread" : name_of(text, role->routine, 40));
    if (role->threads > 1)
        hw_buffer_add(out, " (%s)", HW_OF(role->threads, "thread"));
    if (!role->leaf || !hw_text_load(text, role->leaf))
        return;
    const struct hw_view_frame *frame = &text->stack.frames[text->fold.headline];
    hw_buffer_add(out, ", started by %s", hw_text_function(text, frame, 40));
    const char *place = hw_text_place(text, frame);
    if (*place)
        hw_buffer_add(out, " (%s)", place);
}

static int compare_offsets(const void *left, const void *right)
{
    const struct hw_side *a = left, *b = right;
    return HW_ORDER(a->offset, b->offset);
}

/* "bytes 0 to 7, 32 to 39": where writes (else reads) fell. False: nowhere. */
static bool add_ranges(const struct hw_side *rows, size_t count, bool writes, struct hw_buffer *out)
{
    size_t ranges = 0;
    for (size_t i = 0; i < count;) {
        uint64_t first = rows[i].offset, end = first;
        bool any = false;
        for (; i < count && (writes ? rows[i].writes : rows[i].reads) && (!any || rows[i].offset <= end); i++) {
            any = true;
            end = hw_add_saturating(rows[i].offset, rows[i].bytes);
            if (end < first)
                end = first;
        }
        if (!any) {
            i++;
            continue;
        }
        if (ranges++ < RANGES_MOST)
            hw_buffer_add(out, "%s%llu to %llu", ranges == 1 ? " bytes " : ", ", (unsigned long long)first,
                          (unsigned long long)(end - 1));
    }
    if (ranges > RANGES_MOST)
        hw_buffer_add(out, " and %s", HW_OF(ranges - RANGES_MOST, "more place"));
    return ranges != 0;
}

static void add_uses(struct hw_text *text, const struct hw_view_side *side, struct hw_buffer *out)
{
    const bool sampled = side->entries->kind == HW_SIDE_SAMPLED;
    const char *noun = sampled ? "sample" : hw_profile_counts_periods(text->view->profile) ? "word period" : NULL;
    struct hw_side *rows = malloc((side->count + 1) * sizeof *rows);
    if (!rows) {
        text->failed = true;
        return;
    }
    memcpy(rows, side->entries, side->count * sizeof *rows);
    qsort(rows, side->count, sizeof *rows, compare_offsets);
    for (int writes = 1; writes >= 0; writes--) {
        const uint64_t count = writes ? side->writes : side->reads;
        if (!count)
            continue;
        hw_buffer_add(out, writes ? " writes" : side->writes ? "; reads" : " reads");
        add_ranges(rows, side->count, writes, out);
        hw_buffer_add(out, " (%s)", noun ? HW_OF(count, noun) : HW_OF(count, writes ? "write" : "read"));
    }
    free(rows);
}

/* ", in write_left (sides.c:42)": the code that most samples fell on. */
static void add_code(struct hw_text *text, const struct hw_view_side *side, struct hw_buffer *out)
{
    size_t best = 0;
    uint64_t most = 0;
    for (size_t i = 0; i < side->count;) {
        const size_t first = i;
        uint64_t sum = 0;
        for (; i < side->count && side->entries[i].map == side->entries[first].map; i++)
            sum = hw_add_saturating(sum, hw_add_saturating(side->entries[i].reads, side->entries[i].writes));
        if (sum > most) {
            most = sum;
            best = first;
        }
    }
    if (side->entries->kind != HW_SIDE_SAMPLED || side->entries[best].map == HW_NONE)
        return;
    const uint32_t location = side->entries[best].map;
    hw_buffer_add(out, ", in %s", name_of(text, location, 40));
    const char *place = place_of(text, location);
    if (*place)
        hw_buffer_add(out, " (%s)", place);
}

void hw_text_sides(struct hw_text *text, const struct hw_finding *finding)
{
    struct hw_view_side sides[HW_VIEW_SIDES];
    struct hw_buffer out = {0};
    const enum hw_side_sharing sharing =
        finding->kind == HW_FINDING_FALSE_SHARING ? HW_SHARING_FALSE : HW_SHARING_UNTOLD;
    const size_t count = hw_view_sides(text->view, finding->contexts[0], sharing, sides, HW_VIEW_SIDES);
    bool sampled = false;
    for (size_t i = 0; i < count && i < SIDES_MOST; i++) {
        hw_buffer_clear(&out);
        add_thread(text, sides[i].entries->role, &out);
        hw_buffer_add(&out, ":");
        add_uses(text, &sides[i], &out);
        add_code(text, &sides[i], &out);
        sampled |= sides[i].entries->kind == HW_SIDE_SAMPLED;
        hw_page_wrap(&text->page, 7, text->page.utf8 ? "     •" : "     -",
                     hw_page_clean(&text->page, &text->cleaned, hw_buffer_text(&out)));
    }
    hw_buffer_clear(&out);
    if (count > SIDES_MOST)
        hw_buffer_add(&out, "%s and %s. ", hw_page_ellipsis(&text->page), HW_OF(count - SIDES_MOST, "more"));
    hw_buffer_add(&out, !count    ? "Which threads do so was not recorded."
                        : sampled ? "Threads and code without a sample are missing."
                                  : "Which code does so is not known: heapwise record --sample-accesses shows it, with "
                                    "a build that does not count.");
    hw_page_wrap(&text->page, 5, "", hw_buffer_text(&out));
    text->failed |= out.failed;
    hw_buffer_free(&out);
}
