/* text_regions.c - what the program measured itself (heapwise_region_begin) and named (heapwise_mark). */
#include "report/text/text.h"

#include <string.h>

#include "report/text/human.h"

#define NAME_LEAST 20
#define NUMBERS    60 /* columns behind the name */

static const char *signed_bytes(char buffer[static HW_HUMAN + 1], int64_t bytes)
{
    buffer[0] = bytes < 0 ? '-' : '+';
    hw_human_bytes(buffer + 1, bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes);
    return bytes ? buffer : buffer + 1;
}
#define SIGNED(bytes) signed_bytes((char[HW_HUMAN + 1]){0}, (bytes))

/* NAME, cut to COLUMNS at its end. */
static const char *name_of(struct hw_text *text, const char *name, size_t columns)
{
    hw_page_clean(&text->page, &text->name, *name ? name : "(no name)");
    const char *clean = hw_buffer_text(&text->name);
    const char *ellipsis = hw_page_ellipsis(&text->page);
    if (text->options->full || hw_text_width(clean) <= columns)
        return clean;
    const size_t kept = hw_text_cut(clean, columns - hw_text_width(ellipsis));
    hw_buffer_clear(&text->cleaned);
    hw_buffer_add(&text->cleaned, "%.*s%s", (int)kept, clean, ellipsis);
    return hw_buffer_text(&text->cleaned);
}

static void print_name(struct hw_text *text, const char *name, size_t columns)
{
    const char *shown = name_of(text, name, columns);
    const size_t width = hw_text_width(shown);
    fprintf(text->page.stream, "%s%*s", shown, (int)(width < columns ? columns - width : 0), "");
}

static void print_regions(struct hw_text *text, size_t columns)
{
    const struct hw_profile *profile = text->view->profile;
    bool estimated = false, open = false;
    hw_page_print(&text->page, HW_FAINT, "%-*s %7s %7s %11s %11s %10s %9s\n", (int)columns, "", "scope", "times",
                  "allocations", "bytes", "kept", "peak");
    for (size_t i = 0; i < profile->region_count; i++) {
        const struct hw_profile_region *region = &profile->regions[i];
        const struct hw_region *sum = &region->sum;
        estimated |= (sum->flags & HW_REGION_ESTIMATED) != 0;
        open |= sum->begun > sum->ended;
        print_name(text, region->name, columns);
        fprintf(text->page.stream, " %7s %7s", sum->flags & HW_REGION_THREAD ? "thread" : "process",
                HW_MANY(sum->ended));
        if (sum->ended)
            fprintf(text->page.stream, " %11s %11s %10s %9s\n", HW_MANY(sum->allocations), HW_BYTES(sum->bytes),
                    SIGNED(sum->live_bytes), HW_BYTES(sum->peak_bytes));
        else
            fprintf(text->page.stream, " %11s %11s %10s %9s\n", "-", "-", "-", "-");
    }
    hw_page_wrap(
        &text->page, 0, "",
        "Numbers are sums over all regions of a name; the peak is the greatest rise of the live bytes in one of "
        "them. Kept: live bytes at the end minus those at the start.");
    if (open)
        hw_page_wrap(&text->page, 0, "",
                     "Some regions did not end, or could not be measured: no number includes them.");
    if (estimated)
        hw_page_wrap(&text->page, 0, "", "Numbers are estimates: of a sampled run, or of threads that did not stop.");
}

static void print_marks(struct hw_text *text, size_t columns)
{
    const struct hw_profile *profile = text->view->profile;
    const size_t shown = text->options->full ? profile->mark_count : hw_text_top(text);
    hw_page_print(&text->page, HW_FAINT, "%s%-*s %10s %11s\n", profile->region_count ? "\n" : "", (int)columns, "mark",
                  "time", "live");
    for (size_t i = 0; i < profile->mark_count && i < shown; i++) {
        const struct hw_profile_mark *mark = &profile->marks[i];
        const uint64_t live = mark->live_bytes > 0 ? (uint64_t)mark->live_bytes : 0;
        char time[HW_HUMAN];
        hw_human_ns(time, mark->time_ns, text->page.utf8);
        print_name(text, mark->name, columns);
        fprintf(text->page.stream, " %*s %11s\n", HW_RIGHT(10, time), HW_BYTES(live));
    }
    if (profile->mark_count > shown)
        fprintf(text->page.stream, "%s and %zu more: --full\n", hw_page_ellipsis(&text->page),
                profile->mark_count - shown);
}

void hw_text_regions(struct hw_text *text)
{
    const struct hw_profile *profile = text->view->profile;
    const unsigned width = text->options->width;
    const size_t columns = width > NUMBERS + NAME_LEAST ? width - NUMBERS - 1 : NAME_LEAST;
    hw_page_heading(&text->page, "Regions and marks of the program");
    if (!profile->region_count && !profile->mark_count)
        fputs("The program measured no region and set no mark (heapwise/heapwise.h).\n", text->page.stream);
    if (profile->region_count)
        print_regions(text, columns < 40 ? columns : 40);
    if (profile->mark_count)
        print_marks(text, columns < 40 ? columns : 40);
}
