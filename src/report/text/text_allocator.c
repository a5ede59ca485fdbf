/* text_allocator.c - what was observed of the allocator itself, in a text report. */
#include "report/text/text.h"

#include <math.h>
#include <stdlib.h>

#include "report/text/human.h"

static const char *const sizes[HW_SIZE_GROUPS] = {"small", "medium", "large", "unknown"};

/* A number of ticks, or "-"; in BUFFER. */
static const char *cycles(char buffer[HW_HUMAN], double ticks)
{
    if (isnan(ticks))
        return "-";
    return hw_human_count(buffer, (uint64_t)(ticks + 0.5));
}
#define TEXT_OF_(number) #number
#define TEXT_OF(number)  TEXT_OF_(number)
#define CYCLES(ticks)    cycles((char[HW_HUMAN]){0}, (ticks))

/* False: too few were timed for an estimate. */
static bool print_operation(struct hw_text *text, int kind, int size, const struct hw_profile_operation *sum,
                            double ticks, double all)
{
    const bool known = sum->samples >= HW_VIEW_TIMED_LEAST || sum->samples >= sum->count;
    hw_page_print(&text->page, HW_PLAIN, "  %-14s %-7s %13s %7s %9s %9s %9s\n", hw_operation_kind_names[kind],
                  sizes[size], HW_COUNT(sum->count), known ? HW_PERCENT(ticks, all) : "-",
                  CYCLES(known ? hw_profile_operation_mean(sum) : NAN),
                  CYCLES(known ? hw_profile_operation_percentile(sum, 0.5) : NAN),
                  CYCLES(known ? hw_profile_operation_percentile(sum, 0.99) : NAN));
    return known;
}

static void print_operations(struct hw_text *text)
{
    const struct hw_profile_allocator *allocator = text->view->profile->observed;
    struct hw_profile_operation *sum = malloc(sizeof *sum);
    if (!sum) {
        text->failed = true;
        return;
    }
    const double all = hw_profile_operations_ticks(allocator);
    bool few = false;
    hw_page_print(&text->page, HW_FAINT, "  %-14s %-7s %13s %7s %9s %9s %9s\n", "operation", "size", "count", "share",
                  "mean", "median", "99 %");
    for (int phase = 0; phase < HW_PHASES; phase++) {
        bool begun = false;
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
            for (int size = 0; size < HW_SIZE_GROUPS; size++) {
                *sum = (struct hw_profile_operation){0};
                double ticks = 0;
                for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++)
                    if ((int)hw_profile_size_group(allocator, bucket) == size) {
                        const struct hw_profile_operation *one = hw_profile_operation(allocator, phase, kind, bucket);
                        hw_profile_operation_add(sum, one);
                        ticks += hw_profile_operation_total(one);
                    }
                if (!sum->count)
                    continue;
                if (!begun)
                    hw_page_print(&text->page, HW_FAINT, "  while %s alive\n",
                                  phase ? "several threads were" : "one thread was");
                begun = true;
                few |= !print_operation(text, kind, size, sum, ticks, all);
            }
    }
    if (few)
        hw_page_wrap(&text->page, 2, "", "-: fewer than " TEXT_OF(HW_VIEW_TIMED_LEAST) " of these were timed.");
    free(sum);
}

/* How many were timed, and what all of them took. */
static void print_timing(struct hw_text *text)
{
    const struct hw_profile_allocator *allocator = text->view->profile->observed;
    const uint64_t all = allocator->allocations + allocator->frees + allocator->reallocations;
    struct hw_buffer words = {0};
    hw_buffer_add(&words, "%s, counted exactly; ", HW_OF(all, "operation"));
    if (allocator->info.timed == 0)
        hw_buffer_add(&words, "none was timed.");
    else if (!allocator->info.shift_most)
        hw_buffer_add(&words, "every one was timed but the first allocation of each thread.");
    else
        hw_buffer_add(&words, "%s of them were timed, drawn at random: times, in cycles, are estimates.",
                      HW_COUNT(allocator->info.timed));
    if (allocator->info.timed)
        hw_buffer_add(
            &words, " All together took about %s.",
            HW_NS((uint64_t)(hw_profile_operations_ticks(allocator) * allocator->ns_per_tick), text->page.utf8));
    hw_page_wrap(&text->page, 2, "", hw_buffer_text(&words));
    text->failed |= words.failed;
    hw_buffer_free(&words);
}

/* What is left out of the list, and why. */
static void print_unranked(struct hw_text *text, double all)
{
    const struct hw_view *view = text->view;
    double part = 0;
    uint64_t most = 0;
    const size_t count = view->site_count - view->sites_ranked;
    for (size_t i = view->sites_ranked; i < view->site_count; i++) {
        part += (double)view->sites[i].ticks;
        most = view->sites[i].samples > most ? view->sites[i].samples : most;
    }
    if (!count)
        return;
    struct hw_buffer words = {0};
    hw_buffer_add(&words, "%s %s not ranked: too few timed calls (%s%s; at least %d are needed). ",
                  HW_OF(count, view->sites_ranked ? "more call stack" : "call stack"), count > 1 ? "are" : "is",
                  count > 1 ? "up to " : "", HW_COUNT(most), HW_VIEW_TIMED_LEAST);
    hw_buffer_add(&words, "Together they took about %s of the time.", HW_PERCENT(part, all));
    hw_page_wrap(&text->page, 2, "", hw_buffer_text(&words));
    text->failed |= words.failed;
    hw_buffer_free(&words);
}

/* Where most of the time goes, one line a call site and kind. */
static void print_sites(struct hw_text *text)
{
    const struct hw_view *view = text->view;
    const size_t count = view->sites_ranked < hw_text_top(text) ? view->sites_ranked : hw_text_top(text);
    double all = 0;
    for (size_t i = 0; i < view->site_count; i++)
        all += (double)view->sites[i].ticks;
    if (all <= 0)
        return;
    hw_page_heading(&text->page, "Time in the allocator, by call stack");
    for (size_t i = 0; i < count && !text->failed; i++) {
        const struct hw_view_site *site = &view->sites[i];
        hw_page_print(&text->page, HW_STRONG, "%3zu. %7s", i + 1, HW_PERCENT((double)site->ticks, all));
        hw_page_print(&text->page, HW_PLAIN, "  %s, about %s calls of %s cycles each (%s timed)\n",
                      hw_operation_kind_names[site->kind], HW_COUNT(site->weight),
                      HW_COUNT(site->weight ? site->ticks / site->weight : 0), HW_COUNT(site->samples));
        if (hw_text_load(text, site->context))
            hw_text_stack(text);
    }
    print_unranked(text, all);
}

void hw_text_allocator(struct hw_text *text)
{
    if (!text->view->profile->observed)
        return;
    hw_text_verdict(text);
    hw_page_heading(&text->page, "Operations of the allocator");
    print_timing(text);
    print_operations(text);
    hw_text_inside(text);
    hw_text_heap(text);
    hw_text_allocator_facts(text);
    print_sites(text);
}
