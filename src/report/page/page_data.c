/* page_data.c - see page_data.h. Columns hold what their names say, as struct hw_profile_context has it; docs/json.md
 * explains the same figures. */
#include "report/page/page_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/page/page_stream.h"
#include "report/view/contents.h"
#include "report/view/frame_roles.h"
#include "report/view/numbers.h"
#include "report/words/selection.h"

struct writer {
    const struct hw_view *view;
    struct hw_page_stream stream;
    struct hw_buffer rest; /* columns of contexts that the second stream has */
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

/* Columns of the frames of all locations, one location after the other. */
static void add_frame_columns(struct writer *writer, enum frame_column from, enum frame_column to)
{
    static const char *const names[FRAME_COLUMNS] = {"frame.function", "frame.file", "frame.line", "frame.column"};
    const struct hw_view *view = writer->view;
    for (enum frame_column column = from; column < to; column++) {
        for (size_t i = 0; i < view->location_count; i++)
            for (uint32_t k = 0; k < view->locations[i].frames.count; k++)
                add_number(writer, frame_value(writer, &view->locations[i].frames.frame[k], column));
        end_numbers(writer, names[column]);
    }
}

static void add_frames(struct writer *writer)
{
    const struct hw_view *view = writer->view;
    add_frame_columns(writer, FRAME_FUNCTION, FRAME_FILE);
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

/* Whether a number that every profile has is 0 everywhere: what was inherited, mostly. */
static bool is_nothing(const struct hw_view *view, const struct hw_number *number)
{
    size_t zeros = 0;
    while (zeros < view->context_count && !number->value(&view->contexts[zeros].sum))
        zeros++;
    return number->known == HW_KNOWN_ALWAYS && zeros && zeros == view->context_count;
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

/* Notes at the nodes of LEAF's stack, from the frame END on, how many of their outermost frames are start code. */
static void note_start(const struct hw_view *view, uint32_t leaf, size_t end, uint32_t *start)
{
    size_t at = 0; /* frames nearer to the allocator */
    for (uint32_t node = leaf; node; node = view->nodes[node].parent) {
        const uint32_t count = view->locations[view->nodes[node].location].frames.count;
        at += count;
        const size_t beyond = at > end ? at - end : 0, most = beyond < count ? beyond : count;
        if (most > start[node])
            start[node] = (uint32_t)most;
    }
}

/* Code that starts processes and threads: sums by function leave it out, as those of the terminal do (view/groups.c).
 */
static void add_start_code(struct writer *writer)
{
    const struct hw_view *view = writer->view;
    struct hw_view_stack stack = {0};
    uint32_t *start = calloc(view->node_count + 1, sizeof *start);
    bool fine = start != NULL;
    for (size_t i = 0; fine && i < view->context_count; i++) {
        const uint32_t leaf = view->contexts[i].sum.leaf;
        fine = hw_view_stack(view, leaf, &stack);
        if (!fine || !stack.count)
            continue;
        const size_t headline = hw_stack_headline(&stack), end = hw_stack_without_start(&stack);
        note_start(view, leaf, end > headline ? end : headline + 1, start);
    }
    for (size_t i = 0; fine && i < view->node_count; i++)
        if (start[i])
            add_step(writer, i);
    end_steps(writer, "start.node");
    for (size_t i = 0; fine && i < view->node_count; i++)
        if (start[i])
            add_number(writer, start[i]);
    end_numbers(writer, "start.frames");
    writer->stream.failed |= !fine;
    free(start);
    hw_view_stack_free(&stack);
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

/* The overview shows the first value that is not 0 everywhere (viewer/src/measures.ts): live at the peak, or bytes. */
static bool is_first(const struct hw_view *view, const struct hw_number *number)
{
    if (!strcmp(number->page, "allocations") || !strcmp(number->page, "peak_bytes"))
        return true;
    for (size_t i = 0; i < view->context_count; i++)
        if (view->contexts[i].sum.peak_bytes > 0 && !view->contexts[i].sum.pool)
            return false;
    return !strcmp(number->page, "bytes");
}

static void add_columns(struct writer *writer, bool first)
{
    const struct hw_view *view = writer->view;
    for (size_t i = 0; i < hw_number_count; i++) {
        const struct hw_number *number = &hw_numbers[i];
        if (!has_column(view, number) || is_nothing(view, number))
            continue;
        if (is_first(view, number) == first)
            add_column(writer, number);
        else if (first)
            hw_buffer_add(&writer->rest, "%s\n", number->page);
    }
}

/* Which columns of contexts the rest has: to the overview they are not unknown, but to come. */
static void add_columns_to_come(struct writer *writer)
{
    hw_buffer_add(&writer->stream.part, "%sincomplete\ntype\nsampled_reads\nsampled_writes\n",
                  hw_buffer_text(&writer->rest));
    writer->stream.failed |= writer->rest.failed;
    hw_page_part(&writer->stream, "to come", HW_PART_TEXT);
}

static void add_contexts(struct writer *writer)
{
    const struct hw_view *view = writer->view;
    STEPS(writer, "context.id", view->context_count, view->contexts[i].sum.id);
    STEPS(writer, "context.leaf", view->context_count, view->contexts[i].sum.leaf);
    NUMBERS(writer, "context.pool", view->context_count, view->contexts[i].sum.pool);
    add_headlines(writer);
    add_columns(writer, true);
    add_columns_to_come(writer);
}

static void add_contexts_rest(struct writer *writer)
{
    const struct hw_view *view = writer->view;
    NUMBERS(writer, "context.incomplete", view->context_count, is_incomplete(&view->contexts[i].sum));
    add_columns(writer, false);
    NUMBERS(writer, "context.type", view->context_count,
            string_number(writer, hw_view_type(view, &view->contexts[i].sum)));
    if (!view->sampled)
        return;
    NUMBERS(writer, "context.sampled_reads", view->context_count, view->sampled[i].reads);
    NUMBERS(writer, "context.sampled_writes", view->context_count, view->sampled[i].writes);
}

/* What the blocks hold: what is avoidable, and its parts. */
static void add_contents(struct writer *writer)
{
    const struct hw_contents **of = hw_contents_by_context(writer->view);
    const size_t count = of && writer->view->profile->content_search ? writer->view->context_count : 0;
    writer->stream.failed |= !of;
    if (count) {
        NUMBERS(writer, "context.avoidable_bytes", count, of[i] ? of[i]->avoidable_bytes : 0);
        NUMBERS(writer, "context.avoidable_copies", count, of[i] ? of[i]->avoidable_copies : 0);
        NUMBERS(writer, "context.avoidable_zeros", count, of[i] ? of[i]->avoidable_zeros : 0);
        NUMBERS(writer, "context.avoidable_ends", count, of[i] ? of[i]->avoidable_ends : 0);
    }
    free(of);
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

/* ---- lines of source ---- */

static void add_source(struct writer *writer, const struct hw_source *source)
{
    const size_t count = source->count;
    NUMBERS(writer, "source.file", count, string_number(writer, source->file[i].name)); /* as in frame.file */
    NUMBERS(writer, "source.path", count, string_number(writer, source->file[i].path));
    NUMBERS(writer, "source.problem", count, string_number(writer, source->file[i].problem));
    NUMBERS(writer, "source.lines", count, source->file[i].path ? source->file[i].line_count : 0);
    for (int text = 0; text < 2; text++) {
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; source->file[i].path && k < source->file[i].line_count; k++)
                if (text)
                    add_number(writer, string_number(writer, source->file[i].line[k].text));
                else
                    add_step(writer, source->file[i].line[k].number);
        if (text)
            end_numbers(writer, "line.text");
        else
            end_steps(writer, "line.number");
    }
}

/* ---- sizes and lifetimes: bars, by context. Those of a context with one bar are its own numbers ---- */

static bool stands_alone(const uint32_t *context, size_t index, size_t count, size_t size)
{
    const char *at = (const char *)context + index * size;
    const uint32_t own = *(const uint32_t *)(const void *)at;
    return !(index && *(const uint32_t *)(const void *)(at - size) == own) &&
           !(index + 1 < count && *(const uint32_t *)(const void *)(at + size) == own);
}

static void add_sizes(struct writer *writer)
{
    const struct hw_view *view = writer->view;
    const size_t count = view->size_bar_count;
    struct hw_profile_size_bar *bars = malloc((count + 1) * sizeof *bars);
    uint8_t *only = calloc(view->context_count + 1, 1);
    size_t several = 0;
    for (size_t i = 0; bars && only && i < count; i++)
        if (stands_alone(&view->size_bars->context, i, count, sizeof *view->size_bars))
            only[view->size_bars[i].context] = (uint8_t)(view->size_bars[i].bucket + 1);
        else
            bars[several++] = view->size_bars[i];
    if (bars && only) {
        NUMBERS(writer, "context.only_size", view->context_count, only[i]); /* bucket + 1; 0: several, or none */
        STEPS(writer, "sizes.context", several, bars[i].context);
        NUMBERS(writer, "sizes.bucket", several, bars[i].bucket);
        NUMBERS(writer, "sizes.allocations", several, bars[i].allocations);
        NUMBERS(writer, "sizes.reallocations", several, bars[i].reallocations);
        NUMBERS(writer, "sizes.bytes", several, bars[i].bytes);
        NUMBERS(writer, "sizes.live_blocks", several, (uint64_t)(bars[i].live_blocks > 0 ? bars[i].live_blocks : 0));
        NUMBERS(writer, "sizes.live_bytes", several, (uint64_t)(bars[i].live_bytes > 0 ? bars[i].live_bytes : 0));
        NUMBERS(writer, "sizes.peak_blocks", several, (uint64_t)(bars[i].peak_blocks > 0 ? bars[i].peak_blocks : 0));
        NUMBERS(writer, "sizes.peak_bytes", several, (uint64_t)(bars[i].peak_bytes > 0 ? bars[i].peak_bytes : 0));
    } else {
        writer->stream.failed = true;
    }
    free(bars);
    free(only);
}

static void add_distributions(struct writer *writer)
{
    const struct hw_view *view = writer->view;
    const struct hw_profile_life_bar *lives = view->life_bars;
    if (!view->size_bars)
        return;
    /* The limits of buckets, so that the page need not know how they are made: the greatest size of each. */
    NUMBERS(writer, "size_limits.most", HW_SIZE_BUCKET_LAST, hw_size_bucket_most((uint32_t)i));
    add_sizes(writer);
    STEPS(writer, "lifetimes.context", view->life_bar_count, lives[i].context);
    NUMBERS(writer, "lifetimes.bar", view->life_bar_count, lives[i].life);
    NUMBERS(writer, "lifetimes.frees", view->life_bar_count, lives[i].frees);
    NUMBERS(writer, "lifetimes.bytes", view->life_bar_count, lives[i].bytes);
}

/* ---- places by thread ---- */

/* Rows of those that are one context of the profile. Of the others the threads' parts are not known here. */
static void add_threads(struct writer *writer)
{
    const struct hw_view *view = writer->view;
    const struct hw_profile *profile = view->profile;
    const struct hw_profile_thread_place *place = profile->thread_places;
    struct row {
        const struct hw_profile_thread_place *place;
        uint32_t context;
        bool others; /* these freed or reallocated blocks of the place: what is live of the thread's is not known */
    } *rows = malloc((profile->thread_place_count + 1) * sizeof *rows);
    size_t count = 0, at = 0;
    writer->stream.failed |= !rows;
    for (uint32_t i = 0; rows && i < view->context_count; i++) {
        const struct hw_view_context *context = &view->contexts[i];
        while (at < profile->thread_place_count && place[at].context < context->sum.id)
            at++;
        for (size_t k = at; context->merged == 1 && k < profile->thread_place_count; k++) {
            if (place[k].context != context->sum.id)
                break;
            const bool others = (context->sum.freed_by_others && place[k].allocations) || place[k].resized;
            rows[count++] = (struct row){&place[k], i, others};
        }
    }
    if (count) {
        STEPS(writer, "by_thread.context", count, rows[i].context);
        NUMBERS(writer, "by_thread.thread", count, rows[i].place->thread); /* index in "threads" of the report */
        NUMBERS(writer, "by_thread.several", count, rows[i].place->several);
        NUMBERS(writer, "by_thread.others", count, rows[i].others);
        NUMBERS(writer, "by_thread.allocations", count, rows[i].place->allocations);
        NUMBERS(writer, "by_thread.frees", count, rows[i].place->frees);
        NUMBERS(writer, "by_thread.bytes", count, rows[i].place->bytes);
        for (size_t i = 0; i < count; i++)
            hw_page_signed(&writer->stream, rows[i].others ? 0 : rows[i].place->live_bytes);
        hw_page_part(&writer->stream, "by_thread.live_bytes", HW_PART_SIGNED);
        for (size_t i = 0; i < count; i++)
            hw_page_signed(&writer->stream, rows[i].others ? 0 : rows[i].place->peak_bytes);
        hw_page_part(&writer->stream, "by_thread.peak_bytes", HW_PART_SIGNED);
    }
    free(rows);
}

/* ---- the short parts ---- */

#define BIT(section) (1ull << (section))

/* Everything but the lists of contexts. */
static bool add_report(struct writer *writer, struct hw_error *error)
{
    const uint64_t lists = (BIT(HW_REPORT_GLOBALS) - BIT(HW_REPORT_LISTS)) | BIT(HW_REPORT_FUNCTIONS) |
                           BIT(HW_REPORT_ACCESS) | BIT(HW_REPORT_KEEPS) | BIT(HW_REPORT_CONTENTS);
    const struct hw_report_options options = {.sections = ~lists, .threads = true};
    FILE *stream = hw_buffer_stream(&writer->stream.part);
    bool made = stream && hw_report_json(writer->view, &options, stream, error);
    if (stream && fclose(stream) != 0)
        made = false;
    if (made)
        hw_page_part(&writer->stream, "report", HW_PART_TEXT);
    return made;
}

/* A line for each sentence. */
static void add_sentences(struct writer *writer, const char *name,
                          void (*say)(const struct hw_view *view, struct hw_buffer *out))
{
    struct hw_buffer sentences = {0};
    say(writer->view, &sentences);
    hw_buffer_bytes(&writer->stream.part, hw_buffer_text(&sentences), sentences.used);
    hw_page_part(&writer->stream, name, HW_PART_TEXT);
    writer->stream.failed |= sentences.failed;
    hw_buffer_free(&sentences);
}

/* What the overview shows, of a whole run. */
static void add_first(struct writer *writer)
{
    add_sentences(writer, "left out", hw_left_out); /* by the user's rules */
    add_sentences(writer, "selection", hw_selection);
    add_modules(writer);
    add_frames(writer);
    add_locations(writer);
    add_nodes(writer);
    add_contexts(writer);
}

static void add_rest(struct writer *writer, const struct hw_source *source)
{
    add_frame_columns(writer, FRAME_FILE, FRAME_COLUMNS);
    add_start_code(writer);
    add_contexts_rest(writer);
    add_contents(writer);
    add_free_stacks(writer);
    add_histogram(writer);
    add_words(writer);
    add_sampled_words(writer);
    add_distributions(writer);
    add_threads(writer);
    hw_page_keeps(writer->view, &writer->stream);
    if (source)
        add_source(writer, source);
}

bool hw_page_data(const struct hw_view *view, const char *runs, const struct hw_source *source,
                  struct hw_page_bytes *first, struct hw_page_bytes *rest, struct hw_error *error)
{
    struct writer writer = {.view = view};
    *first = *rest = (struct hw_page_bytes){.bytes = NULL};
    hw_error_set(error, "%s: not enough memory for the page", view->profile->path ? view->profile->path : "profile");
    bool fine = hw_page_stream_begin(&writer.stream) && add_report(&writer, error);
    if (fine && runs) {
        hw_buffer_bytes(&writer.stream.part, runs, strlen(runs));
        hw_page_part(&writer.stream, "runs", HW_PART_TEXT);
    }
    if (fine) {
        add_first(&writer);
        first->bytes = hw_page_stream_cut(&writer.stream, &first->size);
        fine = first->bytes != NULL;
    }
    if (fine)
        add_rest(&writer, source);
    rest->bytes = hw_page_stream_end(&writer.stream, fine, &rest->size);
    hw_buffer_free(&writer.rest);
    if (rest->bytes)
        return true;
    free(first->bytes);
    first->bytes = NULL;
    return false;
}
