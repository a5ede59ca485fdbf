/* text_samples.c - sampled accesses in a text report. */
#include "report/text/text.h"

#include <stdlib.h>

#include "base/order.h"
#include "report/text/human.h"

static uint64_t total(uint64_t reads, uint64_t writes)
{
    return hw_add_saturating(reads, writes);
}

static int compare_totals(const void *left, const void *right)
{
    const struct hw_sample_count *a = left, *b = right;
    const uint64_t x = total(a->reads, a->writes), y = total(b->reads, b->writes);
    return HW_ORDER(y, x) ?: hw_sample_count_compare(a, b);
}

/* The counts of one kind of a context, greatest first; to be freed. */
static struct hw_sample_count *sorted_counts(struct hw_text *text, enum hw_sample_kind kind, size_t context,
                                             size_t *count)
{
    const struct hw_sample_count *from = hw_view_sample_counts(text->view, kind, context, count);
    struct hw_sample_count *sorted = malloc((*count + 1) * sizeof *sorted);
    for (size_t i = 0; sorted && i < *count; i++)
        sorted[i] = from[i];
    if (sorted)
        qsort(sorted, *count, sizeof *sorted, compare_totals);
    else
        text->failed = true;
    return sorted;
}

static void print_words(struct hw_text *text, size_t context, uint64_t whole)
{
    size_t count;
    struct hw_sample_count *words = sorted_counts(text, HW_SAMPLE_WORD, context, &count);
    hw_buffer_clear(&text->line);
    for (size_t i = 0; words && i < count && i < 6; i++)
        hw_buffer_add(&text->line, "%s%s%llu: %s", i ? ", " : "at byte ", words[i].bytes > 8 ? "4 KiB from " : "",
                      (unsigned long long)words[i].offset,
                      HW_PERCENT((double)total(words[i].reads, words[i].writes), (double)whole));
    if (words && count > 6)
        hw_buffer_add(&text->line, ", … %s in all", HW_OF(count, "word"));
    if (words && count)
        hw_page_wrap(&text->page, 5, "", hw_page_clean(&text->page, &text->cleaned, hw_buffer_text(&text->line)));
    free(words);
}

static void print_places(struct hw_text *text, size_t context, uint64_t whole)
{
    const struct hw_view *view = text->view;
    size_t count;
    struct hw_sample_count *places = sorted_counts(text, HW_SAMPLE_PLACE, context, &count);
    for (size_t i = 0; places && i < count && i < 3; i++) {
        const struct hw_view_location *location = &view->locations[places[i].map];
        const struct hw_view_frame frame = {.symbol = location->frames.frame,
                                            .module =
                                                location->module == HW_NONE ? NULL : &view->modules[location->module],
                                            .address = location->address,
                                            .location = places[i].map};
        hw_buffer_clear(&text->line);
        hw_buffer_add(&text->line, "%s by %s",
                      HW_PERCENT((double)total(places[i].reads, places[i].writes), (double)whole),
                      hw_text_function(text, &frame, 40));
        const char *place = hw_text_place(text, &frame);
        if (*place)
            hw_buffer_add(&text->line, " (%s)", place);
        hw_page_wrap(&text->page, 5, "", hw_page_clean(&text->page, &text->cleaned, hw_buffer_text(&text->line)));
    }
    free(places);
}

struct ranked {
    uint64_t total;
    uint32_t context;
};

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    return HW_ORDER(b->total, a->total) ?: HW_ORDER(a->context, b->context);
}

static void print_context(struct hw_text *text, uint32_t index, size_t rank, uint64_t heap)
{
    const struct hw_view_context *context = &text->view->contexts[index];
    const struct hw_sample_context *sum = &text->view->sampled[index];
    const uint64_t own = total(sum->reads, sum->writes);
    hw_buffer_clear(&text->line);
    hw_buffer_add(&text->line, "#%zu  %s of the sampled accesses to blocks: ", rank,
                  HW_PERCENT((double)own, (double)heap));
    hw_buffer_add(&text->line, "%s, %s reads", HW_OF(own, "sample"), HW_PERCENT((double)sum->reads, (double)own));
    if (sum->lines_false_shared)
        hw_buffer_add(&text->line, "; %s falsely shared by threads", HW_OF(sum->lines_false_shared, "line"));
    if (sum->lines_true_shared)
        hw_buffer_add(&text->line, "; %s written and used by several threads", HW_OF(sum->lines_true_shared, "line"));
    hw_page_wrap(&text->page, 2, "", hw_page_clean(&text->page, &text->cleaned, hw_buffer_text(&text->line)));
    print_words(text, index, own);
    print_places(text, index, own);
    if (hw_text_load(text, context->sum.leaf))
        hw_text_stack(text);
}

static void print_where(struct hw_text *text)
{
    const struct hw_sample_info *info = &text->view->profile->sample_info;
    const uint64_t all = total(info->reads, info->writes);
    const uint64_t parts[] = {
        total(info->heap_reads, info->heap_writes), total(info->global_reads, info->global_writes),
        total(info->stack_reads, info->stack_writes), total(info->thread_reads, info->thread_writes)};
    hw_buffer_clear(&text->line);
    hw_buffer_add(&text->line, "%s", HW_OF(all, "sample"));
    if (info->bursts)
        hw_buffer_add(&text->line, " from %s of up to %llu instructions", HW_OF(info->bursts, "burst"),
                      (unsigned long long)info->burst_length);
    if (all) {
        uint64_t rest = all;
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            rest -= parts[i] < rest ? parts[i] : rest;
        hw_buffer_add(&text->line,
                      ", %s reads: heap blocks %s, global variables %s, stacks %s, thread-local %s, elsewhere %s.",
                      HW_PERCENT((double)info->reads, (double)all), HW_PERCENT((double)parts[0], (double)all),
                      HW_PERCENT((double)parts[1], (double)all), HW_PERCENT((double)parts[2], (double)all),
                      HW_PERCENT((double)parts[3], (double)all), HW_PERCENT((double)rest, (double)all));
        if (info->period)
            hw_buffer_add(&text->line, " The processor took them: each stands for %s accesses.",
                          HW_COUNT(info->period));
        else
            hw_buffer_add(&text->line,
                          info->source == HW_SAMPLE_PMU
                              ? " The processor took them; numbers count samples, not accesses."
                          : info->source == HW_SAMPLE_BOTH
                              ? " In some processes the processor took them; in the others shares are of CPU "
                                "time around the accesses. Numbers count samples, not accesses."
                              : " Shares are of CPU time around the accesses; numbers count samples, not "
                                "accesses.");
    } else
        hw_buffer_add(&text->line, ".");
    hw_page_wrap(&text->page, 0, "", hw_page_clean(&text->page, &text->cleaned, hw_buffer_text(&text->line)));
}

static void print_globals(struct hw_text *text)
{
    const struct hw_view *view = text->view;
    const uint64_t whole = total(view->global_reads, view->global_writes);
    for (size_t i = 0; !view->profile->access_counted && i < view->global_count && i < hw_text_top(text); i++) {
        const struct hw_view_global *global = &view->globals[i];
        const uint64_t own = total(global->reads, global->writes);
        if (own < whole / 100)
            break;
        hw_buffer_clear(&text->line);
        hw_buffer_add(&text->line, "%s of the sampled accesses to global variables: %s",
                      HW_PERCENT((double)own, (double)whole),
                      global->symbol_count ? global->symbols->name
                      : global->section    ? global->section
                                           : "no symbol");
        if (global->module != HW_NONE)
            hw_buffer_add(&text->line, " in %s", view->modules[global->module].name);
        hw_page_wrap(&text->page, 2, "", hw_page_clean(&text->page, &text->cleaned, hw_buffer_text(&text->line)));
    }
}

void hw_text_samples(struct hw_text *text)
{
    const struct hw_view *view = text->view;
    const struct hw_sample_info *info = &view->profile->sample_info;
    hw_page_heading(&text->page, "Sampled accesses");
    if (!view->profile->accesses_sampled) {
        hw_page_wrap(&text->page, 0, "", "Accesses were not sampled: heapwise record --sample-accesses does it.");
        return;
    }
    print_where(text);
    struct ranked *order = malloc((view->context_count + 1) * sizeof *order);
    size_t count = 0;
    for (uint32_t i = 0; order && i < view->context_count; i++) {
        const uint64_t own = total(view->sampled[i].reads, view->sampled[i].writes);
        if (own)
            order[count++] = (struct ranked){own, i};
    }
    if (order)
        qsort(order, count, sizeof *order, compare_ranked);
    else
        text->failed = true;
    for (size_t i = 0; order && i < count && i < hw_text_top(text) && !text->failed; i++)
        print_context(text, order[i].context, i + 1, total(info->heap_reads, info->heap_writes));
    free(order);
    print_globals(text);
}
