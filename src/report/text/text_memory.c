/* text_memory.c - heap beside resident memory: over time, and what the difference is made of. */
#include "report/text/text.h"

#include <string.h>

#include "report/text/human.h"
#include "report/text/plot.h"

void hw_text_timeline(struct hw_text *text)
{
    hw_page_heading(&text->page, "Heap and resident memory over time");
    if (!hw_plot_timeline(&text->page, text->view->profile))
        fputs("There are too few points in time for a timeline.\n", text->page.stream);
}

/* ---- the parts of RSS ---- */

static int64_t live_part(const struct hw_memory_breakdown *memory)
{
    return memory->live_bytes;
}

/* Resident heap beyond the requested bytes; below zero where requested memory was never touched. */
static int64_t overhead(const struct hw_memory_breakdown *memory)
{
    return (int64_t)memory->heap - memory->live_bytes;
}

static int64_t kept_part(const struct hw_memory_breakdown *memory)
{
    return overhead(memory) > 0 ? overhead(memory) : 0;
}

static int64_t untouched_part(const struct hw_memory_breakdown *memory)
{
    return overhead(memory) < 0 ? overhead(memory) : 0;
}

static int64_t file_part(const struct hw_memory_breakdown *memory)
{
    return (int64_t)memory->file;
}

static int64_t stack_part(const struct hw_memory_breakdown *memory)
{
    return (int64_t)memory->stack;
}

static int64_t runtime_part(const struct hw_memory_breakdown *memory)
{
    return (int64_t)memory->runtime;
}

static int64_t other_part(const struct hw_memory_breakdown *memory)
{
    return (int64_t)memory->other;
}

/* A line of the table: RSS is the sum of all parts. */
static const struct part {
    const char *label;
    const char *words; /* in the middle of a sentence; NULL: not a reason why RSS is more than the blocks */
    int64_t (*value)(const struct hw_memory_breakdown *memory);
} parts[] = {
    {"Heap blocks, as requested", NULL, live_part},
    {"Heap around them: headers, rounding, freed blocks", "memory that the allocator keeps around the blocks",
     kept_part},
    {"Requested but never touched, so not resident", NULL, untouched_part},
    {"Code and data of program and libraries, files", "code, static data and mapped files", file_part},
    {"Stacks of threads", "stacks of threads", stack_part},
    {"Heapwise's own memory", "Heapwise's own memory", runtime_part},
    {"Other (shared memory, vDSO)", "shared memory and other mappings", other_part},
};

#define PARTS       (sizeof parts / sizeof *parts)
#define LABEL_WIDTH 50

/* A size with its sign: -1.2 MiB. */
static const char *signed_bytes(char buffer[static HW_HUMAN + 1], int64_t bytes)
{
    buffer[0] = '-';
    hw_human_bytes(buffer + 1, bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes);
    return bytes < 0 ? buffer : buffer + 1;
}

struct moment {
    const char *name;
    const struct hw_memory_breakdown *memory;
};

static void print_line(const struct hw_page *page, const char *label, const struct moment *moments, size_t count,
                       const struct part *part)
{
    char value[HW_HUMAN + 1];
    fprintf(page->stream, "%-*s", LABEL_WIDTH, label);
    for (size_t i = 0; i < count; i++)
        fprintf(page->stream, " %13s",
                signed_bytes(value, part ? part->value(moments[i].memory) : (int64_t)moments[i].memory->rss));
    fputc('\n', page->stream);
}

static void print_table(const struct hw_page *page, const struct moment *moments, size_t count)
{
    char line[LABEL_WIDTH + 64];
    size_t at = (size_t)snprintf(line, sizeof line, "%-*s", LABEL_WIDTH, "");
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(line + at, sizeof line - at, " %13s", moments[i].name);
    hw_page_print(page, HW_FAINT, "%s", line);
    fputc('\n', page->stream);
    for (size_t i = 0; i < PARTS; i++) {
        bool any = false;
        for (size_t k = 0; k < count; k++)
            any = any || parts[i].value(moments[k].memory);
        if (any)
            print_line(page, parts[i].label, moments, count, &parts[i]);
    }
    print_line(page, "Resident memory (RSS)", moments, count, NULL);
}

/* "… 18.9 MiB more than its heap blocks: mostly memory that the allocator keeps around the blocks (12.0 MiB) and …" */
static void print_sentence(struct hw_text *text, const struct moment *moment)
{
    const struct hw_memory_breakdown *memory = moment->memory;
    const int64_t more = (int64_t)memory->rss - memory->live_bytes;
    struct hw_buffer *line = &text->line;
    hw_buffer_clear(line);
    hw_buffer_add(line, "RSS is %s %s than the heap blocks %s", HW_BYTES(more < 0 ? -(uint64_t)more : (uint64_t)more),
                  more < 0 ? "less" : "more", moment->name);
    if (more < 0) {
        hw_buffer_add(line, ": the program requested memory that it %s.",
                      memory->swap ? "has not touched, or that is swapped out" : "has not touched");
    } else {
        const struct part *first = NULL, *second = NULL;
        for (size_t i = 0; i < PARTS; i++) {
            const struct part *part = &parts[i];
            if (!part->words || part->value(memory) <= 0)
                continue;
            if (!first || part->value(memory) > first->value(memory)) {
                second = first;
                first = part;
            } else if (!second || part->value(memory) > second->value(memory)) {
                second = part;
            }
        }
        if (first)
            hw_buffer_add(line, ": mostly %s (%s)", first->words, HW_BYTES((uint64_t)first->value(memory)));
        if (second)
            hw_buffer_add(line, " and %s (%s)", second->words, HW_BYTES((uint64_t)second->value(memory)));
        hw_buffer_add(line, ".");
    }
    if (memory->swap)
        hw_buffer_add(line, " %s more are swapped out.", HW_BYTES(memory->swap));
    hw_page_wrap(&text->page, 0, "", hw_buffer_text(line));
}

/* RSS is read now and then: the look that counts as the one at the peak may be a little before it. */
static bool at_peak(const struct hw_view *view, const struct hw_memory_breakdown *memory)
{
    const uint64_t peak = view->profile->process.peak_bytes, live = hw_not_negative(memory->live_bytes);
    return live >= peak - peak / 50;
}

static void print_when(struct hw_text *text, const struct hw_memory_breakdown *memory)
{
    hw_buffer_clear(&text->line);
    hw_buffer_add(&text->line, "The figures near the peak are from %s into the run, when %s were live.",
                  HW_NS(hw_profile_ticks_to_ns(text->view->profile, memory->tick), text->page.utf8),
                  HW_BYTES(hw_not_negative(memory->live_bytes)));
    hw_page_wrap(&text->page, 0, "", hw_buffer_text(&text->line));
}

void hw_text_memory(struct hw_text *text)
{
    const struct hw_view *view = text->view;
    const struct hw_memory_breakdown *peak = hw_view_memory(view, HW_MOMENT_PEAK);
    const bool near = peak && !at_peak(view, peak);
    const struct moment all[] = {{near ? "near the peak" : "at the peak", peak},
                                 {"at the dump", hw_view_memory(view, HW_MOMENT_DUMP)},
                                 {hw_text_end(view->profile), hw_view_memory(view, HW_MOMENT_END)}};
    struct moment moments[3];
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].memory)
            moments[count++] = all[i];
    hw_page_heading(&text->page, "Why RSS differs from the heap");
    if (!count) {
        fputs("The parts of resident memory were not recorded.\n", text->page.stream);
        return;
    }
    print_table(&text->page, moments, count < 2 ? count : 2);
    print_sentence(text, &moments[0]);
    if (near)
        print_when(text, peak);
}
