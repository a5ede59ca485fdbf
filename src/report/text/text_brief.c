/* text_brief.c - the report that is read first: what the process did, why RSS is larger than the heap, what to do, and
 * the places of the list that matters here. On a page of 80 columns or more it has at most HW_BRIEF_LINES lines; it
 * ends with what was left out. */
#include "report/text/text.h"

#include <stdlib.h>
#include <string.h>

#include "report/text/human.h"

#define LIST(key) (1ull << (HW_REPORT_LISTS + (key)))

#define SUMMARY_LINES 18
#define VERDICT_LINES 15
#define SAMPLE_LINES  12
#define ACCESS_LINES  14

/* ---- what matters ---- */

/* The list that shows the places of a finding. */
static const uint8_t list_of_finding[HW_FINDING_KINDS] = {
    [HW_FINDING_LAYOUT] = HW_SORT_ACCESSES,        [HW_FINDING_ASTRIDE] = HW_SORT_ACCESSES,
    [HW_FINDING_PADDING] = HW_SORT_PEAK,           [HW_FINDING_UNUSED_FIELDS] = HW_SORT_UNTOUCHED,
    [HW_FINDING_UNREAD_FIELDS] = HW_SORT_ACCESSES, [HW_FINDING_SPARSE] = HW_SORT_UNTOUCHED,
    [HW_FINDING_UNUSED_WORDS] = HW_SORT_UNTOUCHED, [HW_FINDING_HEADER] = HW_SORT_ACCESSES,
    [HW_FINDING_FALSE_SHARING] = HW_SORT_SHARING,  [HW_FINDING_SHARED_WRITES] = HW_SORT_SHARING,
    [HW_FINDING_COPIES] = HW_SORT_PEAK,            [HW_FINDING_ZEROS] = HW_SORT_PEAK,
    [HW_FINDING_ENDS] = HW_SORT_PEAK,              [HW_FINDING_UNWRITTEN] = HW_SORT_PEAK,
    [HW_FINDING_PINNED] = HW_SORT_LEAKED,          [HW_FINDING_OUT_OF_MEMORY] = HW_SORT_LEAKED,
};

/* A part of what was live at the peak that was never freed, though the process had time to. */
static bool leaks(const struct hw_view *view)
{
    const struct hw_profile *profile = view->profile;
    const uint64_t bytes = hw_not_negative(view->totals.live_bytes);
    return !profile->running && !(profile->process.flags & HW_PROCESS_DUMP) && bytes >= 4096 &&
           bytes >= profile->process.peak_bytes / 5;
}

/* Most allocations end at once, and many times what was ever live at once goes through them. */
static bool churns(const struct hw_view *view)
{
    const struct hw_thread_entry *totals = &view->totals;
    return totals->allocations >= 10000 && totals->temporary >= totals->allocations / 2 &&
           totals->bytes / 20 >= view->profile->process.peak_bytes;
}

static enum hw_sort_key choose_list(const struct hw_text *text, uint64_t sections)
{
    const struct hw_view *view = text->view;
    const struct hw_analysis *analysis = text->analysis;
    if (sections & 1ull << HW_REPORT_FINDINGS && analysis->finding_count) {
        const enum hw_sort_key key = list_of_finding[analysis->findings[0].kind];
        if (sections & LIST(key))
            return key;
    }
    if (sections & LIST(HW_SORT_LEAKED) && leaks(view))
        return HW_SORT_LEAKED;
    if (sections & LIST(HW_SORT_TEMPORARY) && churns(view))
        return HW_SORT_TEMPORARY;
    return sections & LIST(HW_SORT_PEAK) ? HW_SORT_PEAK : HW_SORT_BYTES;
}

/* ---- lines ---- */

/* Prints PART into memory, to be freed; NULL when there is no memory. */
static char *printed(struct hw_text *text, void (*part)(struct hw_text *))
{
    FILE *stream = text->page.stream;
    struct hw_buffer lines = {.data = NULL};
    text->page.stream = hw_buffer_stream(&lines);
    if (text->page.stream)
        part(text);
    const bool fine = text->page.stream && fclose(text->page.stream) == 0 && !lines.failed;
    text->page.stream = stream;
    hw_buffer_bytes(&lines, "", 0);
    if (fine && !lines.failed)
        return lines.data;
    text->failed = true;
    hw_buffer_free(&lines);
    return NULL;
}

/* Prints the first MOST lines of PART, and how many there are more. */
static void print_some(struct hw_text *text, void (*part)(struct hw_text *), size_t most, const char *section)
{
    char *lines = printed(text, part);
    size_t count = 0, shown = 0;
    for (const char *at = lines; at && *at; at++)
        count += *at == '\n';
    for (const char *at = lines; at && *at && (count <= most || shown + 1 < most); shown++) {
        const size_t size = strcspn(at, "\n");
        fwrite(at, 1, size, text->page.stream);
        fputc('\n', text->page.stream);
        at += size + (at[size] != '\0');
    }
    if (shown < count)
        fprintf(text->page.stream, "%s %s: --section %s\n", hw_page_ellipsis(&text->page),
                HW_OF(count - shown, "more line"), section);
    free(lines);
}

/* ---- the parts ---- */

static void print_beginning(struct hw_text *text)
{
    hw_text_sections(text, 1ull << HW_REPORT_SUMMARY);
}

static void print_samples(struct hw_text *text)
{
    hw_text_sections(text, 1ull << HW_REPORT_SAMPLES);
}

/* What was found beyond this: the sections in SECTIONS that are not in SHOWN. */
static void print_left_out(struct hw_text *text, uint64_t sections, uint64_t shown)
{
    hw_buffer_clear(&text->line);
    hw_buffer_add(&text->line, "Not shown: ");
    bool any = false;
    for (unsigned i = 0; i < HW_REPORT_SECTIONS; i++)
        if (sections & ~shown & 1ull << i) {
            hw_buffer_add(&text->line, "%s%s", any ? ", " : "", hw_report_section_names[i]);
            any = true;
        }
    if (!any)
        hw_buffer_add(&text->line, "whole stacks");
    hw_buffer_add(&text->line, ". --all shows everything, --section NAME one of these.");
    fputc('\n', text->page.stream);
    hw_page_wrap(&text->page, 0, "", hw_buffer_text(&text->line));
}

void hw_text_brief(struct hw_text *text, uint64_t sections)
{
    const enum hw_sort_key key = choose_list(text, sections);
    const bool places = sections & LIST(key);
    uint64_t shown = 1ull << HW_REPORT_SUMMARY | LIST(key);
    print_some(text, print_beginning, SUMMARY_LINES, "summary");
    if (sections & 1ull << HW_REPORT_MEMORY) {
        hw_text_memory(text);
        shown |= 1ull << HW_REPORT_MEMORY;
    }
    if (sections & 1ull << HW_REPORT_FINDINGS)
        hw_text_findings(text);
    else if (sections & 1ull << HW_REPORT_ACCESS) {
        print_some(text, hw_text_accesses, ACCESS_LINES, "access");
        shown |= 1ull << HW_REPORT_ACCESS;
    }
    if (sections & 1ull << HW_REPORT_ALLOCATOR)
        print_some(text, hw_text_verdict, VERDICT_LINES, "allocator");
    if (sections & 1ull << HW_REPORT_SAMPLES)
        print_some(text, print_samples, SAMPLE_LINES, "sampled");
    if (sections & LIST(HW_SORT_THREADS) && hw_text_threads_matter(text->view))
        hw_text_threads_brief(text);
    if (places)
        hw_text_sections(text, LIST(key));
    if (sections & 1ull << HW_REPORT_NOT_OBSERVED)
        hw_text_not_observed(text);
    print_left_out(text, sections, shown);
}
