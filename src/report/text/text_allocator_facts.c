/* text_allocator_facts.c - how the allocator works, and what others would do, in a text report. */
#include "report/text/text.h"

#include "report/text/human.h"

static void print_sizes(struct hw_text *text, const struct hw_profile_allocator *allocator)
{
    const struct hw_allocator_facts *facts = &allocator->facts;
    struct hw_buffer *line = &text->line;
    hw_buffer_clear(line);
    if (facts->step) {
        hw_buffer_add(line, "%s and steps of %s, %s between blocks", HW_BYTES(facts->least), HW_BYTES(facts->step),
                      HW_BYTES(facts->header));
    } else if (allocator->class_count) {
        hw_buffer_add(line, "%s:", HW_OF(allocator->class_count, "class"));
        for (size_t i = 0; i < allocator->class_count && i < 8; i++)
            hw_buffer_add(line, " %s", HW_COUNT(allocator->classes[i].size));
        if (allocator->class_count > 8)
            hw_buffer_add(line, " ... %s", HW_COUNT(allocator->classes[allocator->class_count - 1].size));
    } else {
        return;
    }
    hw_page_item(&text->page, "Sizes", hw_buffer_text(line));
}

static void print_thresholds(struct hw_text *text, const struct hw_allocator_facts *facts)
{
    struct hw_buffer *line = &text->line;
    hw_buffer_clear(line);
    if (facts->medium)
        hw_buffer_add(line, "medium from %s", HW_COUNT(facts->medium));
    if (facts->large)
        hw_buffer_add(line, "%slarge (memory of their own, by %s) from %s bytes", facts->medium ? ", " : "",
                      facts->flags & HW_FACTS_LARGE_BY_BRK ? "brk" : "mmap", HW_COUNT(facts->large));
    if (facts->large && facts->large_rises_to)
        hw_buffer_add(line, ", rising up to %s", HW_BYTES(facts->large_rises_to));
    if (line->used)
        hw_page_item(&text->page, "Thresholds", hw_buffer_text(line));
}

static void print_facts(struct hw_text *text, const struct hw_profile_allocator *allocator)
{
    static const char *const styles[] = {NULL, "sequential: blocks of all sizes side by side",
                                         "BiBOP: pages with blocks of one size"};
    static const char *const caches[] = {NULL, "none: a freed block goes to the next thread that asks",
                                         "a freed block stays with the thread that freed it",
                                         "a freed block goes back to the thread that it came from"};
    const struct hw_allocator_facts *facts = &allocator->facts;
    if (styles[facts->style])
        hw_page_item(&text->page, "Style", styles[facts->style]);
    print_sizes(text, allocator);
    print_thresholds(text, facts);
    if (caches[facts->thread_cache])
        hw_page_item(&text->page, "Threads", caches[facts->thread_cache]);
    if (facts->why[0]) {
        hw_buffer_clear(&text->line);
        hw_buffer_add(&text->line, "%s", hw_page_clean(&text->page, &text->cleaned, facts->why));
        hw_page_item(&text->page, "Not known", hw_buffer_text(&text->line));
    }
}

static void print_predictions(struct hw_text *text, const struct hw_profile_allocator *allocator)
{
    hw_page_heading(&text->page, "Predicted: the program's speed with other allocators, from a replay here");
    for (size_t i = 0; i < allocator->prediction_count; i++) {
        const struct hw_allocator_prediction *prediction = &allocator->predictions[i];
        hw_buffer_clear(&text->line);
        hw_buffer_add(&text->line, "%s%s%s", prediction->allocator, prediction->version[0] ? " " : "",
                      prediction->version);
        const char *name = hw_page_clean(&text->page, &text->name, hw_buffer_text(&text->line));
        hw_page_print(&text->page, HW_NAME, "  %s", name);
        hw_page_pad(&text->page, hw_text_width(name) < 24 ? 24 - hw_text_width(name) : 0);
        if (prediction->replays)
            hw_page_print(&text->page, HW_PLAIN, " %.2f times as fast (%.2f to %.2f)\n",
                          (double)prediction->speedup * 1e-6, (double)prediction->low * 1e-6,
                          (double)prediction->high * 1e-6);
        else
            hw_page_print(&text->page, HW_FAINT, " not predicted: %s\n",
                          hw_page_clean(&text->page, &text->cleaned, prediction->problem));
    }
}

void hw_text_allocator_facts(struct hw_text *text)
{
    const struct hw_profile_allocator *allocator = text->view->profile->observed;
    if (!allocator)
        return;
    if (allocator->facts_known) {
        hw_page_heading(&text->page, "How the allocator works");
        print_facts(text, allocator);
    }
    if (allocator->prediction_count)
        print_predictions(text, allocator);
}
