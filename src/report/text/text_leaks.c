/* text_leaks.c - live blocks by whether the program could still reach them. */
#include "report/text/text.h"

#include <string.h>

#include "report/text/human.h"
#include "report/view/measure.h"
#include "report/view/suppressions.h"

struct class
{
    const char *name, *why;
    uint64_t (*blocks)(const struct hw_profile_context *sum);
    uint64_t (*bytes)(const struct hw_profile_context *sum);
};

#define CLASS(class)                                                                                                   \
    static uint64_t class##_blocks(const struct hw_profile_context *sum)                                               \
    {                                                                                                                  \
        return sum->class##_blocks;                                                                                    \
    }                                                                                                                  \
    static uint64_t class##_bytes(const struct hw_profile_context *sum)                                                \
    {                                                                                                                  \
        return sum->class##_bytes;                                                                                     \
    }
CLASS(definite)
CLASS(indirect)
CLASS(possible)
CLASS(reachable)

static const struct class classes[] = {
    {"Definitely lost", "nothing points to them", definite_blocks, definite_bytes},
    {"Indirectly lost", "only lost blocks point to them", indirect_blocks, indirect_bytes},
    {"Possibly lost", "only pointers into the middle", possible_blocks, possible_bytes},
    {"Still reachable", "by pointers to the start", reachable_blocks, reachable_bytes},
};

static void print_class(struct hw_text *text, const struct class *class)
{
    const struct hw_view *view = text->view;
    uint64_t blocks = 0, bytes = 0;
    for (size_t i = 0; i < view->context_count; i++) {
        blocks = hw_add_saturating(blocks, class->blocks(&view->contexts[i].sum));
        bytes = hw_add_saturating(bytes, class->bytes(&view->contexts[i].sum));
    }
    char size[HW_HUMAN], count[HW_HUMAN];
    hw_human_bytes(size, bytes);
    hw_human_count(count, blocks);
    fprintf(text->page.stream, "%-16s %12s %14s  %s\n", class->name, size, count, class->why);
}

static void print_search(struct hw_text *text)
{
    const struct hw_leak_info *info = text->view->profile->leak_search;
    struct hw_buffer *line = &text->line;
    hw_buffer_clear(line);
    hw_buffer_add(line, "Searched %s of data and stacks and %s of blocks in %s, with %s.", HW_BYTES(info->root_bytes),
                  HW_BYTES(info->scanned_bytes), HW_NS(info->scan_ns, text->page.utf8), HW_OF(info->threads, "thread"));
    if (info->inside_blocks)
        hw_buffer_add(line,
                      " To %s in %s of those still reachable only pointers lead that C++ and Rust have inside of blocks "
                      "(arrays, second base classes, hash tables).",
                      HW_BYTES(info->inside_bytes), HW_OF(info->inside_blocks, "block"));
    if (info->stopped_ns)
        hw_buffer_add(line, " The program stood still for %s.", HW_NS(info->stopped_ns, text->page.utf8));
    if (info->threads_missed)
        hw_buffer_add(line,
                      " %s could not be stopped (%s): pointers on stacks and in registers are missing, and "
                      "blocks may be called lost that are not.",
                      HW_OF(info->threads_missed, "thread"), strerror((int)info->missed_error));
    if (!info->calm)
        hw_buffer_add(line, " A thread was in the middle of an allocation.");
    if (info->unwritten_bytes)
        hw_buffer_add(line, " The file had no room for %s of them.", HW_BYTES(info->unwritten_bytes));
    hw_page_wrap(&text->page, 0, "", hw_buffer_text(line));
}

static void print_suppressed(struct hw_text *text)
{
    const struct hw_view *view = text->view;
    struct hw_buffer *line = &text->line;
    for (int used = 1; view->suppressions && used >= 0; used--)
        for (size_t i = 0; i < view->suppressions->count; i++) {
            const struct hw_suppression *by = &view->suppressions->of[i];
            const struct hw_suppressed *sum = &view->suppressed[i];
            hw_buffer_clear(line);
            if (used && sum->blocks)
                hw_buffer_add(line, "Suppressed: %s in %s, by \"%s\" (%s:%u)", HW_BYTES(sum->bytes),
                              HW_OF(sum->blocks, "block"), by->name, by->file, by->line);
            else if (!used && !sum->blocks)
                hw_buffer_add(line, "Suppresses nothing: \"%s\" (%s:%u)", by->name, by->file, by->line);
            else
                continue;
            const char *const doubt = hw_suppression_doubt(by, sum->blocks);
            if (doubt)
                hw_buffer_add(line, ": %s", doubt);
            hw_page_wrap(&text->page, 0, "", hw_buffer_text(line));
        }
}

void hw_text_leaks(struct hw_text *text)
{
    const struct hw_profile *profile = text->view->profile;
    const struct hw_page *page = &text->page;
    hw_buffer_clear(&text->name);
    hw_buffer_add(&text->name, "What the program could still reach %s", hw_text_end(profile));
    hw_page_heading(page, hw_buffer_text(&text->name));
    if (!profile->leak_search) {
        hw_text_sentence(text, hw_not_searched(profile));
        return;
    }
    hw_page_print(page, HW_FAINT, "%-16s %12s %14s\n", "", "bytes", "blocks");
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        print_class(text, &classes[i]);
    print_search(text);
    print_suppressed(text);
    hw_text_list(text, HW_SORT_LOST);
}
