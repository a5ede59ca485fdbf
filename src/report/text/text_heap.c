/* text_heap.c - what the allocator makes of its memory, in a text report. */
#include "report/text/text.h"

#include "report/text/human.h"

static const char *signed_bytes(char *buffer, int64_t bytes)
{
    if (bytes >= 0)
        return hw_human_bytes(buffer, (uint64_t)bytes);
    buffer[0] = '-';
    char digits[HW_HUMAN];
    const char *text = hw_human_bytes(digits, -(uint64_t)bytes);
    size_t i = 0;
    for (; text[i] && i + 2 < HW_HUMAN; i++)
        buffer[i + 1] = text[i];
    buffer[i + 1] = 0;
    return buffer;
}
#define SIGNED(bytes) signed_bytes((char[HW_HUMAN]){0}, (bytes))

static void print_part(struct hw_text *text, const char *name, const struct hw_heap_parts *peak,
                       const struct hw_heap_parts *end, int64_t at_peak, int64_t at_end, bool measured)
{
    const struct hw_heap_parts *const moments[] = {peak, end};
    const int64_t values[] = {at_peak, at_end};
    hw_page_print(&text->page, HW_PLAIN, "%-50s", name);
    for (int i = 0; i < 2; i++) {
        const bool there = moments[i] && (!measured || moments[i]->measured);
        hw_page_print(&text->page, HW_PLAIN, " %12s", there ? SIGNED(values[i]) : "-");
    }
    fputc('\n', text->page.stream);
}

static void print_parts(struct hw_text *text)
{
    const struct hw_profile_places *places = text->view->profile->places;
    struct hw_heap_parts peak, end;
    const bool has_peak = hw_profile_heap_parts(places, HW_MOMENT_PEAK, &peak);
    const bool has_end = hw_profile_heap_parts(places, HW_MOMENT_END, &end);
    const struct hw_heap_parts *const p = has_peak ? &peak : NULL, *const e = has_end ? &end : NULL;
    hw_page_heading(&text->page, "How the allocator uses its memory");
    hw_page_print(&text->page, HW_FAINT, "%-50s %12s %12s\n", "", "at peak", hw_text_end(text->view->profile));
    print_part(text, "Requested by live blocks", p, e, peak.real, end.real, false);
    if ((p && peak.absent) || (e && end.absent))
        print_part(text, "  of it in pages that were never touched", p, e, -peak.absent, -end.absent, true);
    print_part(text, "Internal fragmentation: rounding up", p, e, peak.internal, end.internal, false);
    print_part(text, "Blowup: freed, not used again by its size class", p, e, peak.blowup, end.blowup, false);
    print_part(text, "Between blocks, freed recently, metadata: the rest", p, e, peak.external, end.external, true);
    print_part(text, "Resident heap", p, e, peak.total, end.total, true);
    if (p && peak.measured && peak.real > 0)
        hw_page_print(&text->page, HW_FAINT, "The resident heap was read when %s of the peak were live: %s.\n",
                      HW_PERCENT((double)peak.measured_real, (double)peak.real), SIGNED(peak.resident));
}

/* Sizes with the most waste at the peak. */
static void print_classes(struct hw_text *text)
{
    const struct hw_profile_places *places = text->view->profile->places;
    const size_t top = hw_text_top(text);
    hw_page_print(&text->page, HW_FAINT, "\n  %-20s %11s %11s %11s %11s %9s\n", "size, at the peak", "live blocks",
                  "requested", "rounding", "free", "blocks");
    double last = 0;
    const struct hw_usable_class *shown = NULL;
    for (size_t n = 0; n < top; n++) {
        const struct hw_usable_class *next = NULL;
        double most = -1;
        for (size_t i = 0; i < places->class_count; i++) {
            const struct hw_usable_class *class = &places->classes[i];
            const double waste = (double)class->peak.usable_bytes - (double)class->peak.live_bytes -
                                 (double)class->peak.untouched_bytes + (double)class->peak.free_bytes;
            const bool later = !shown || waste < last || (waste == last && class > shown);
            if (waste > most && waste > 0 && later) {
                most = waste;
                next = class;
            }
        }
        if (!next)
            break;
        shown = next;
        last = most;
        const struct hw_usable_class_state *state = &next->peak;
        const double internal =
            (double)state->usable_bytes - (double)state->live_bytes - (double)state->untouched_bytes;
        hw_page_print(&text->page, HW_PLAIN, "  %-20s %11s %11s %11s %11s %9s\n", HW_BYTES(next->usable_most),
                      HW_COUNT(hw_not_negative(state->live_blocks)), HW_BYTES(hw_not_negative(state->live_bytes)),
                      HW_BYTES(internal > 0 ? (uint64_t)internal : 0), HW_BYTES(hw_not_negative(state->free_bytes)),
                      HW_COUNT(hw_not_negative(state->free_blocks)));
    }
}

static void print_sharing(struct hw_text *text)
{
    const struct hw_places_info *info = &text->view->profile->places->info;
    struct hw_buffer *line = &text->line;
    hw_buffer_clear(line);
    if (!(info->flags & HW_PLACES_THREADS)) {
        hw_buffer_add(line, "none: one thread used the heap");
    } else if (!info->active_blocks && !info->passive_blocks) {
        hw_buffer_add(line, "none: no block was handed out on a cache line with another thread's");
    } else {
        hw_buffer_add(line, "%s handed out fresh on %s with another thread's (active); %s",
                      HW_OF(info->active_blocks, "block"), HW_OF(info->active_lines, "cache line"),
                      HW_OF(info->passive_blocks, "block"));
        hw_buffer_add(line, " reused on %s (passive)", HW_OF(info->passive_lines, "cache line"));
    }
    fputc('\n', text->page.stream);
    hw_page_item(&text->page, "Sharing", hw_buffer_text(line));
    if (!info->samples)
        return;
    hw_buffer_clear(line);
    hw_buffer_add(line,
                  "where the program accesses memory, %s of the bytes of a line and %s of a page are requested and "
                  "live",
                  HW_PERCENT((double)info->line_bytes, (double)info->samples * 64),
                  HW_PERCENT((double)info->page_bytes, (double)info->samples * 4096));
    hw_buffer_add(line, " (%s)", HW_OF(info->samples, "sample"));
    hw_page_item(&text->page, "Used", hw_buffer_text(line));
    const double contended =
        (double)info->contended_blocks + (double)info->contended_object + (double)info->contended_word;
    hw_buffer_clear(line);
    hw_buffer_add(line, "%s of %s to lines that another thread wrote last", HW_PERCENT(contended, (double)info->writes),
                  HW_OF(info->writes, "sampled write"));
    hw_buffer_add(line, ": %s between blocks, %s inside one, %s to one word", HW_COUNT(info->contended_blocks),
                  HW_COUNT(info->contended_object), HW_COUNT(info->contended_word));
    hw_page_item(&text->page, "Contended", hw_buffer_text(line));
}

static void print_pinned(struct hw_text *text)
{
    const struct hw_profile *profile = text->view->profile;
    const struct hw_profile_places *places = profile->places;
    const size_t top = hw_text_top(text) < 5 ? hw_text_top(text) : 5;
    size_t shown = 0;
    for (size_t i = 0; i < places->pinned_count && shown < top; i++) {
        const struct hw_pinned *pinned = &places->pinned[i];
        if (!shown++)
            hw_page_print(&text->page, HW_FAINT,
                          "\nPages kept by few blocks (estimated from samples), by the place of those blocks:\n");
        hw_page_print(&text->page, HW_PLAIN, "  %11s %s, %s in %s\n", HW_BYTES(pinned->bytes),
                      pinned->moment == HW_MOMENT_PEAK ? "at the peak" : hw_text_end(profile),
                      HW_OF(pinned->blocks, "block"), HW_OF(pinned->samples, "sample"));
        const struct hw_context_entry *entry = &profile->context_entries[pinned->context];
        if (hw_text_load(text, entry->leaf))
            hw_text_stack(text);
    }
}

void hw_text_heap(struct hw_text *text)
{
    if (!text->view->profile->places)
        return;
    print_parts(text);
    print_classes(text);
    print_sharing(text);
    print_pinned(text);
}
