/* page_data.c - see page_data.h. Columns hold what their names say, as struct hw_profile_context has it; docs/json.md
 * explains the same figures. */
#include "report/page/page_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/page/page_stream.h"
#include "report/view/frame_roles.h"
#include "report/view/numbers.h"

struct writer {
    const struct hw_view *view;
    struct hw_page_stream stream;
};

static uint32_t string_number(struct writer *writer, const char *text)
{
    return hw_page_string(&writer->stream, text);
}

static void add_number(struct writer *writer, uint64_t value)
{
    hw_page_number(&writer->stream, value);
}

static void add_step(struct writer *writer, uint64_t value)
{
    hw_page_step(&writer->stream, value);
}

static void end_numbers(struct writer *writer, const char *name)
{
    hw_page_part(&writer->stream, name, HW_PART_NUMBERS);
}

static void end_steps(struct writer *writer, const char *name)
{
    hw_page_part(&writer->stream, name, HW_PART_STEPS);
}

/* A part of VALUE for each I below COUNT. */
#define NUMBERS(writer, name, count, value)                                                                            \
    do {                                                                                                               \
        for (size_t i = 0; i < (count); i++)                                                                           \
            add_number(writer, value);                                                                                 \
        end_numbers(writer, name);                                                                                     \
    } while (0)
#define STEPS(writer, name, count, value)                                                                              \
    do {                                                                                                               \
        for (size_t i = 0; i < (count); i++)                                                                           \
            add_step(writer, value);                                                                                   \
        end_steps(writer, name);                                                                                       \
    } while (0)

/* ---- modules, frames, locations, nodes ---- */

static void add_modules(struct writer *writer)
{
    const struct hw_view *view = writer->view;
    NUMBERS(writer, "module.path", view->module_count, string_number(writer, view->modules[i].path));
    NUMBERS(writer, "module.kind", view->module_count, view->modules[i].kind);
    NUMBERS(writer, "module.problem", view->module_count,
            string_number(writer, view->modules[i].used ? view->modules[i].problem : NULL));
}

enum frame_column { FRAME_FUNCTION, FRAME_FILE, FRAME_LINE, FRAME_COLUMN, FRAME_COLUMNS };

static uint64_t frame_value(struct writer *writer, const struct hw_frame *frame, enum frame_column column)
{
    return column == FRAME_FUNCTION ? string_number(writer, frame->function)
           : column == FRAME_FILE   ? string_number(writer, frame->file)
           : column == FRAME_LINE   ? frame->line
                                    : frame->column;
}

static uint64_t is_wrapper(const struct hw_view *view, const struct hw_view_location *location, uint32_t frame)
{
    return !view->unfolded && hw_location_role(location, frame) & HW_FRAME_WRAPPER;
}

/* The frames of all locations, one location after the other. */
static void add_frames(struct writer *writer)
{
    static const char *const names[FRAME_COLUMNS] = {"frame.function", "frame.file", "frame.line", "frame.column"};
    const struct hw_view *view = writer->view;
    for (enum frame_column column = FRAME_FUNCTION; column < FRAME_COLUMNS; column++) {
        for (size_t i = 0; i < view->location_count; i++)
            for (uint32_t k = 0; k < view->locations[i].frames.count; k++)
                add_number(writer, frame_value(writer, &view->locations[i].frames.frame[k], column));
        end_numbers(writer, names[column]);
    }
    for (size_t i = 0; i < view->location_count; i++)
        for (uint32_t k = 0; k < view->locations[i].frames.count; k++)
            add_number(writer, is_wrapper(view, &view->locations[i], k));
    end_numbers(writer, "frame.wrapper"); /* folded where all frames nearer to the allocator are wrappers, too */
}

static void add_locations(struct writer *writer)
{
    const struct hw_view *view = writer->view;
    NUMBERS(writer, "location.frames", view->location_count, view->locations[i].frames.count);
    NUMBERS(writer, "location.module", view->location_count,
            view->locations[i].module == HW_NONE ? 0
                                                 : (uint64_t)view->locations[i].module + 1); /* from 1 on; 0: unknown */
    STEPS(writer, "location.address", view->location_count, view->locations[i].address);
}

static void add_nodes(struct writer *writer)
{
    const struct hw_view *view = writer->view;
    NUMBERS(writer, "node.above", view->node_count,
            i ? i - view->nodes[i].parent : 0); /* how far above the parent stands */
    STEPS(writer, "node.location", view->node_count, i ? view->nodes[i].location : 0);
}

/* ---- contexts ---- */

static uint64_t is_incomplete(const struct hw_profile_context *sum)
{
    return !sum->leaf || sum->flags & HW_CONTEXT_NOT_WHOLE;
}

/* The page shows periods as reads and writes, and divides lifetimes by frees. */
static bool has_column(const struct hw_view *view, const struct hw_number *number)
{
    const bool always =
        number->known == HW_KNOWN_FREES || (number->known == HW_KNOWN_SPLIT && view->profile->access_counted);
    return number->page && (always || hw_number_measured(view, number));
}

static void add_column(struct writer *writer, const struct hw_number *number)
{
    const struct hw_view *view = writer->view;
    char name[64];
    for (size_t i = 0; i < view->context_count; i++) {
        const uint64_t value = number->value(&view->contexts[i].sum);
        if (number->is_signed)
            hw_page_signed(&writer->stream, (int64_t)value);
        else
            add_number(writer, value);
    }
    snprintf(name, sizeof name, "context.%s", number->page);
    hw_page_part(&writer->stream, name, number->is_signed ? HW_PART_SIGNED : HW_PART_NUMBERS);
}

/* The frame that names a context: its place in the stack, inlined functions counted, from the leaf on. */
static void add_headlines(struct writer *writer)
{
    const struct hw_view *view = writer->view;
    struct hw_view_stack stack = {0};
    for (size_t i = 0; i < view->context_count; i++) {
        if (!hw_view_stack(view, view->contexts[i].sum.leaf, &stack)) {
            writer->stream.failed = true;
            break;
        }
        add_number(writer, stack.count ? hw_stack_headline(&stack) : 0);
    }
    hw_view_stack_free(&stack);
    end_numbers(writer, "context.headline");
}

static void add_contexts(struct writer *writer)
{
    const struct hw_view *view = writer->view;
    STEPS(writer, "context.id", view->context_count, view->contexts[i].sum.id);
    STEPS(writer, "context.leaf", view->context_count, view->contexts[i].sum.leaf);
    NUMBERS(writer, "context.incomplete", view->context_count, is_incomplete(&view->contexts[i].sum));
    NUMBERS(writer, "context.pool", view->context_count, view->contexts[i].sum.pool);
    for (size_t i = 0; i < hw_number_count; i++)
        if (has_column(view, &hw_numbers[i]))
            add_column(writer, &hw_numbers[i]);
    add_headlines(writer);
    NUMBERS(writer, "context.type", view->context_count,
            string_number(writer, hw_view_type(view, &view->contexts[i].sum)));
    if (!view->sampled)
        return;
    NUMBERS(writer, "context.sampled_reads", view->context_count, view->sampled[i].reads);
    NUMBERS(writer, "context.sampled_writes", view->context_count, view->sampled[i].writes);
}

static void add_free_stacks(struct writer *writer)
{
    const struct hw_view *view = writer->view;
    const struct hw_view_free_stack *stacks = view->free_stacks;
    const size_t count = view->free_stack_count;
    if (!count)
        return;
    STEPS(writer, "free.context", count, stacks[i].context);
    NUMBERS(writer, "free.leaf", count, stacks[i].leaf);
    NUMBERS(writer, "free.count", count, stacks[i].count);
    NUMBERS(writer, "free.bytes", count, stacks[i].bytes);
}

/* ---- words of blocks: runs of neighbours, by context ---- */

static void add_histogram(struct writer *writer)
{
    const struct hw_view *view = writer->view;
    const size_t count = view->histogram_count;
    if (!count)
        return;
    STEPS(writer, "words8.context", count, view->histogram[i].context);
    NUMBERS(writer, "words8.first", count, view->histogram[i].first_word);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < HW_HISTOGRAM_WORDS; k++)
            add_number(writer, view->histogram[i].words[k]);
    end_numbers(writer, "words8.accesses"); /* HW_HISTOGRAM_WORDS of each run */
}

static void add_words(struct writer *writer)
{
    const struct hw_view *view = writer->view;
    const struct hw_view_words *words = &view->words;
    if (!words->count)
        return;
    STEPS(writer, "words4.context", words->count, words->runs[i].context);
    NUMBERS(writer, "words4.first", words->count, words->runs[i].first_word);
    for (size_t i = 0; i < words->count; i++)
        for (size_t k = 0; k < HW_WORDS_RUN; k++)
            add_number(writer, words->runs[i].read_periods[k]);
    end_numbers(writer, "words4.reads");
    for (size_t i = 0; i < words->count; i++)
        for (size_t k = 0; k < HW_WORDS_RUN; k++)
            add_number(writer, words->runs[i].written_periods[k]);
    end_numbers(writer, "words4.writes");
}

/* Sampled ones: what was hit, of 8 bytes each, or of more where blocks are large. */
static void add_sampled_words(struct writer *writer)
{
    const struct hw_view *view = writer->view;
    const struct hw_sample_count *counts = view->sample_counts;
    size_t count = 0; /* words come first */
    while (count < view->sample_count_count && counts[count].kind == HW_SAMPLE_WORD)
        count++;
    if (!count)
        return;
    STEPS(writer, "samples.context", count, counts[i].context);
    STEPS(writer, "samples.offset", count, counts[i].offset);
    NUMBERS(writer, "samples.bytes", count, counts[i].bytes);
    NUMBERS(writer, "samples.reads", count, counts[i].reads);
    NUMBERS(writer, "samples.writes", count, counts[i].writes);
}

/* ---- the short parts ---- */

#define BIT(section) (1u << (section))

/* Everything but the lists of contexts. */
static bool add_report(struct writer *writer, struct hw_error *error)
{
    const uint32_t lists =
        (BIT(HW_REPORT_GLOBALS) - BIT(HW_REPORT_LISTS)) | BIT(HW_REPORT_FUNCTIONS) | BIT(HW_REPORT_ACCESS);
    const struct hw_report_options options = {.sections = ~lists};
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    bool made = stream && hw_report_json(writer->view, &options, stream, error);
    if (stream && fclose(stream))
        made = false;
    if (made) {
        hw_buffer_bytes(&writer->stream.part, text, size);
        hw_page_part(&writer->stream, "report", HW_PART_TEXT);
    }
    free(text);
    return made;
}

static void add_tables(struct writer *writer)
{
    add_modules(writer);
    add_frames(writer);
    add_locations(writer);
    add_nodes(writer);
    add_contexts(writer);
    add_free_stacks(writer);
    add_histogram(writer);
    add_words(writer);
    add_sampled_words(writer);
}

unsigned char *hw_page_data(const struct hw_view *view, const char *runs, size_t *size, struct hw_error *error)
{
    struct writer writer = {.view = view};
    hw_error_set(error, "%s: not enough memory for the page", view->profile->path ? view->profile->path : "profile");
    const bool fine = hw_page_stream_begin(&writer.stream) && add_report(&writer, error);
    if (fine && runs) {
        hw_buffer_bytes(&writer.stream.part, runs, strlen(runs));
        hw_page_part(&writer.stream, "runs", HW_PART_TEXT);
    }
    if (fine)
        add_tables(&writer);
    return hw_page_stream_end(&writer.stream, fine, size);
}
