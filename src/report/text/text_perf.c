/* text_perf.c - samples of perf by block: where data came from, how long loads took, and which lines threads share. */
#include "report/text/text.h"

#include <inttypes.h>
#include <stdlib.h>

#include "report/text/human.h"
#include "report/view/perf.h"

#define USUAL_PLACES 10
#define USUAL_WORDS  8
#define USUAL_LINES  10

static void print_scope(struct hw_text *text, enum hw_perf_scope scope)
{
    const struct hw_profile *profile = text->view->profile;
    const struct hw_perf_count *sum = hw_perf_scope_sum(profile, scope), *all = hw_perf_scope_sum(profile, HW_PERF_ALL);
    if (!sum || (!sum->samples && scope != HW_PERF_ALL))
        return;
    fprintf(text->page.stream, "%-22s %10s %8s", hw_perf_scope_words[scope], HW_COUNT(sum->samples),
            HW_PERCENT((double)sum->samples, all ? (double)all->samples : 0));
    if (profile->perf->flags & HW_PERF_SOURCES)
        fprintf(text->page.stream, " %10s %10s", HW_COUNT(sum->loads), HW_COUNT(sum->stores));
    if (profile->perf->flags & HW_PERF_WEIGHTS)
        fprintf(text->page.stream, " %14s", sum->weighted ? HW_COUNT(sum->weight_median) : "");
    fputc('\n', text->page.stream);
}

static void print_scopes(struct hw_text *text)
{
    const struct hw_perf_info *info = text->view->profile->perf;
    hw_page_print(&text->page, HW_FAINT, "%-22s %10s %8s", "", "samples", "share");
    if (info->flags & HW_PERF_SOURCES)
        hw_page_print(&text->page, HW_FAINT, " %10s %10s", "loads", "stores");
    if (info->flags & HW_PERF_WEIGHTS)
        hw_page_print(&text->page, HW_FAINT, " %14s", "median latency");
    fputc('\n', text->page.stream);
    for (int scope = HW_PERF_ALL; scope <= HW_PERF_ELSEWHERE; scope++)
        print_scope(text, (enum hw_perf_scope)scope);
}

static void print_doubts(struct hw_text *text)
{
    const struct hw_perf_info *info = text->view->profile->perf;
    struct hw_buffer *line = &text->line;
    hw_buffer_clear(line);
    if (info->flags & HW_PERF_OWN_CLOCK)
        hw_buffer_add(line, "Perf recorded without -k CLOCK_MONOTONIC: its own clock may differ, and samples may be in the "
                            "wrong blocks. ");
    if (info->flags & HW_PERF_SYNC)
        hw_buffer_add(line,
                      "%s fell where a block was at another time, more than into live blocks: if perf's clock was not "
                      "CLOCK_MONOTONIC, these numbers are wrong. ",
                      HW_OF(info->was_block, "sample"));
    if (info->log_full)
        hw_buffer_add(line, "%s came after the log of blocks was full. ", HW_OF(info->log_full, "sample"));
    if (!(info->flags & HW_PERF_MAPPINGS))
        hw_buffer_add(line, "Perf's mappings were not given: stack and mapped files count as elsewhere. ");
    if (!(info->flags & HW_PERF_SOURCES))
        hw_buffer_add(line, "The samples do not say where data came from. ");
    if (!(info->flags & HW_PERF_WEIGHTS))
        hw_buffer_add(line, "The samples have no latencies. ");
    if (info->other_time)
        hw_buffer_add(line, "%s of the process came before or after this run. ", HW_OF(info->other_time, "sample"));
    if (info->no_address)
        hw_buffer_add(line, "%s had no address of the program's data. ", HW_OF(info->no_address, "sample"));
    hw_page_wrap(&text->page, 0, "", hw_buffer_text(line));
}

static void add_levels(const struct hw_perf_count *count, struct hw_buffer *out)
{
    const char *separator = "";
    for (int level = 0; level < HW_PERF_LEVELS; level++)
        if (count->levels[level]) {
            hw_buffer_add(out, "%s%s %s", separator, hw_perf_level_words[level],
                          HW_PERCENT((double)count->levels[level], (double)count->samples));
            separator = ", ";
        }
}

static void add_facts(const struct hw_perf_info *info, const struct hw_perf_count *count, struct hw_buffer *facts)
{
    if (count->scope == HW_PERF_PLACE)
        hw_buffer_add(facts, "in %s\n", HW_OF(count->blocks, "block"));
    if (info->flags & HW_PERF_SOURCES) {
        hw_buffer_add(facts, "%s, %s\n", HW_OF(count->loads, "load"), HW_OF(count->stores, "store"));
        hw_buffer_add(facts, "data from ");
        add_levels(count, facts);
        hw_buffer_add(facts, "\n");
    }
    if (count->weighted)
        hw_buffer_add(facts, "latency: median %s, 90 %% up to %s, 99 %% up to %s, greatest %s\n",
                      HW_COUNT(count->weight_median), HW_COUNT(count->weight_p90), HW_COUNT(count->weight_p99),
                      HW_COUNT(count->weight_most));
    if (count->hitm_local || count->hitm_remote)
        hw_buffer_add(facts, "HITM: %s, of them %s from another socket\n",
                      HW_COUNT(count->hitm_local + count->hitm_remote), HW_COUNT(count->hitm_remote));
}

static void print_name(struct hw_text *text, uint32_t id)
{
    const struct hw_view_context *context = id == HW_NONE ? NULL : hw_view_context_of(text->view, id);
    bool placed;
    if (!context || !hw_text_load(text, context->sum.leaf))
        fputs(id == HW_NONE ? "(no known block)" : "(unknown stack)", text->page.stream);
    else
        hw_text_named(text, &text->stack.frames[text->fold.headline],
                      text->page.width > 60 ? text->page.width - 16 : 44, &placed);
}

static int compare_samples(const void *left, const void *right)
{
    const struct hw_perf_count *a = *(const struct hw_perf_count *const *)left,
                               *b = *(const struct hw_perf_count *const *)right;
    return (a->samples < b->samples) - (a->samples > b->samples) ?: (a->word > b->word) - (a->word < b->word);
}

static int compare_words(const void *left, const void *right)
{
    const struct hw_perf_count *a = *(const struct hw_perf_count *const *)left,
                               *b = *(const struct hw_perf_count *const *)right;
    return (a->word > b->word) - (a->word < b->word);
}

/* The words with most samples, by offset. */
static void print_words(struct hw_text *text, const struct hw_perf_count *place)
{
    const struct hw_perf_info *info = text->view->profile->perf;
    FILE *stream = text->page.stream;
    size_t count;
    const struct hw_perf_count *words = hw_perf_words(text->view->profile, place, &count);
    const struct hw_perf_count *most[HW_PERF_WORDS];
    count = count < HW_PERF_WORDS ? count : HW_PERF_WORDS;
    for (size_t i = 0; i < count; i++)
        most[i] = &words[i];
    const size_t shown = count < USUAL_WORDS ? count : USUAL_WORDS;
    qsort(most, count, sizeof *most, compare_samples);
    qsort(most, shown, sizeof *most, compare_words);
    if (place->words < 2)
        return;
    hw_page_print(&text->page, HW_FAINT, "%14s %10s", "offset", "samples");
    if (info->flags & HW_PERF_SOURCES)
        hw_page_print(&text->page, HW_FAINT, " %8s %8s %8s %8s", "loads", "stores", "DRAM", "HITM");
    if (info->flags & HW_PERF_WEIGHTS)
        hw_page_print(&text->page, HW_FAINT, " %8s %8s", "median", "99 %");
    fputc('\n', stream);
    for (size_t i = 0; i < shown; i++) {
        const struct hw_perf_count *word = most[i];
        char offset[HW_HUMAN];
        snprintf(offset, sizeof offset, "+%" PRIu64, word->word * 8);
        fprintf(stream, "%14s %10s", offset, HW_COUNT(word->samples));
        if (info->flags & HW_PERF_SOURCES)
            fprintf(stream, " %8s %8s %8s %8s", HW_COUNT(word->loads), HW_COUNT(word->stores),
                    HW_COUNT(word->levels[HW_PERF_DRAM] + word->levels[HW_PERF_REMOTE_DRAM]),
                    HW_COUNT(word->hitm_local + word->hitm_remote));
        if (info->flags & HW_PERF_WEIGHTS && word->weighted)
            fprintf(stream, " %8s %8s", HW_COUNT(word->weight_median), HW_COUNT(word->weight_p99));
        fputc('\n', stream);
    }
    if (place->words > shown)
        fprintf(stream, "%14s and %s\n", hw_page_ellipsis(&text->page), HW_OF(place->words - shown, "more word"));
}

static void print_place(struct hw_text *text, const struct hw_perf_count *place)
{
    struct hw_buffer facts = {0};
    hw_page_print(&text->page, HW_STRONG, "%12s", HW_COUNT(place->samples));
    fputs("  ", text->page.stream);
    print_name(text, place->context);
    fputc('\n', text->page.stream);
    add_facts(text->view->profile->perf, place, &facts);
    hw_page_facts(&text->page, 14, hw_buffer_text(&facts));
    print_words(text, place);
    text->failed |= facts.failed;
    hw_buffer_free(&facts);
}

static void print_lines(struct hw_text *text)
{
    const struct hw_profile *profile = text->view->profile;
    const struct hw_perf_side *sides = profile->perf_sides;
    const size_t top = text->options->top ? text->options->top : USUAL_LINES;
    size_t lines = 0;
    if (profile->perf_side_count)
        fputs("\nCache lines that cores took from each other, and who used them at that time:\n", text->page.stream);
    for (size_t i = 0, next; i < profile->perf_side_count; i = next) {
        uint64_t hitm = 0, alike = 0;
        for (next = i; next < profile->perf_side_count && sides[next].line == sides[i].line; next++) {
            hitm += sides[next].hitm;
            alike = sides[next].lines > alike ? sides[next].lines : alike;
        }
        if (lines++ >= top)
            continue;
        hw_page_print(&text->page, HW_STRONG, "%12s", HW_COUNT(hitm));
        fprintf(text->page.stream, "  HITM%s%s\n", alike > 1 ? " in lines alike: " : "", alike > 1 ? HW_COUNT(alike) : "");
        for (size_t k = i; k < next; k++) {
            struct hw_buffer facts = {0};
            fputs("              ", text->page.stream);
            print_name(text, sides[k].context);
            fputc('\n', text->page.stream);
            if (sides[k].context == HW_NONE)
                hw_buffer_add(&facts, "address %#" PRIx64 "\n", sides[k].word * 8);
            else
                hw_buffer_add(&facts, "offset +%" PRIu64 "\n", sides[k].word * 8);
            hw_buffer_add(&facts, "%s, %s\n%s HITM\n%s\n", HW_OF(sides[k].loads, "load"),
                          HW_OF(sides[k].stores, "store"), HW_COUNT(sides[k].hitm),
                          HW_OF(sides[k].threads, "thread"));
            hw_page_facts(&text->page, 16, hw_buffer_text(&facts));
            text->failed |= facts.failed;
            hw_buffer_free(&facts);
        }
    }
    if (lines > top)
        fprintf(text->page.stream, "%12s  and %s\n", hw_page_ellipsis(&text->page), HW_OF(lines - top, "more line"));
}

void hw_text_perf(struct hw_text *text)
{
    const struct hw_profile *profile = text->view->profile;
    size_t count;
    hw_page_heading(&text->page, "Memory accesses sampled by perf");
    if (!profile->perf) {
        hw_page_wrap(&text->page, 0, "",
                     "This profile has no samples of perf. Record with perf mem record and heapwise record "
                     "--log-blocks, then use heapwise import perf.");
        return;
    }
    print_scopes(text);
    print_doubts(text);
    const struct hw_perf_count **places = hw_perf_places(text->view, &count);
    const size_t top = text->options->top ? text->options->top : USUAL_PLACES;
    text->failed |= !places;
    if (places && count)
        fputs("\nBy place that allocated the block:\n", text->page.stream);
    for (size_t i = 0; places && i < count && i < top; i++)
        print_place(text, places[i]);
    if (places && count > top)
        fprintf(text->page.stream, "%12s  and %s\n", hw_page_ellipsis(&text->page), HW_OF(count - top, "more place"));
    free(places);
    print_lines(text);
}
