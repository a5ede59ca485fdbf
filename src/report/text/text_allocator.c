/* text_allocator.c - what was observed of the allocator itself, in a text report. */
#include "report/text/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/order.h"
#include "report/text/human.h"
#include "report/view/frame_roles.h"

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

/* Two standard errors of a share that SAMPLES timed operations show, if these differ by as much as their mean. */
static double doubt(double share, uint64_t samples)
{
    return 2 * share * sqrt(2 / (double)samples);
}

/* Call stacks with few timed calls each, added up by the function that calls the allocator. */
struct function {
    const char *name;
    uint64_t stacks, samples, weight, ticks;
};

static int by_ticks(const void *left, const void *right)
{
    const struct function *a = left, *b = right;
    return HW_ORDER(b->ticks, a->ticks) ?: strcmp(a->name, b->name);
}

/* Of SITE; NULL: not known. The text stays the view's. */
static const char *function_of(struct hw_text *text, const struct hw_view_site *site)
{
    struct hw_view_stack stack = {0};
    const char *name = NULL;
    if (site->context && !hw_view_stack(text->view, site->context, &stack))
        text->failed = true;
    else if (stack.count)
        name = stack.frames[hw_stack_headline(&stack)].symbol->function;
    hw_view_stack_free(&stack);
    return name;
}

/* Returns the functions of unranked sites, most time first; to be freed. NULL, and COUNT 0: none, or no memory. */
static struct function *merge_unranked(struct hw_text *text, size_t *count)
{
    const struct hw_view *view = text->view;
    struct function *of = calloc(view->site_count + 1, sizeof *of);
    struct hw_index index = {0};
    *count = 0;
    text->failed |= !of;
    for (size_t i = view->sites_ranked; of && i < view->site_count && !text->failed; i++) {
        const struct hw_view_site *site = &view->sites[i];
        const char *name = function_of(text, site);
        bool added;
        if (!name)
            continue;
        const uint32_t at = hw_index_intern(&index, hw_key_of(name, strlen(name), "", 0), (uint32_t)*count, &added);
        text->failed |= at == HW_INDEX_NONE;
        if (text->failed)
            break;
        *count += added;
        of[at].name = name;
        of[at].stacks++;
        of[at].samples += site->samples;
        of[at].weight += site->weight;
        of[at].ticks += site->ticks;
    }
    hw_index_free(&index);
    if (*count)
        qsort(of, *count, sizeof *of, by_ticks);
    return of;
}

/* What is left out of the list: by function, where enough calls of a function were timed; the rest in one sentence. */
static void print_unranked(struct hw_text *text, double all)
{
    const struct hw_view *view = text->view;
    double part = 0;
    size_t functions, left = view->site_count - view->sites_ranked, printed = 0;
    if (!left)
        return;
    struct function *of = merge_unranked(text, &functions);
    for (size_t i = view->sites_ranked; i < view->site_count; i++)
        part += (double)view->sites[i].ticks;
    for (size_t i = 0; of && i < functions && printed < hw_text_top(text); i++) {
        if (of[i].samples < HW_VIEW_TIMED_LEAST)
            continue;
        struct hw_buffer name = {0};
        hw_buffer_clean(&name, of[i].name, text->page.utf8 ? HW_CLEAN_UTF8 : HW_CLEAN_ASCII);
        if (!printed++)
            hw_page_wrap(&text->page, 2, "",
                         "Call stacks with few timed calls, added up by the function that calls the allocator:");
        hw_page_print(&text->page, HW_PLAIN, "  %7s (%s %s)  ", HW_PERCENT((double)of[i].ticks, all),
                      text->page.utf8 ? "±" : "+-", HW_PERCENT(doubt((double)of[i].ticks, of[i].samples), all));
        hw_page_print(&text->page, HW_NAME, "%s", hw_buffer_text(&name));
        hw_page_print(&text->page, HW_PLAIN, ": %s calls in %s (%s timed)\n", HW_COUNT(of[i].weight),
                      HW_OF(of[i].stacks, "call stack"), HW_COUNT(of[i].samples));
        text->failed |= name.failed;
        hw_buffer_free(&name);
        part -= (double)of[i].ticks;
        left -= of[i].stacks;
    }
    free(of);
    if (!left)
        return;
    struct hw_buffer words = {0};
    hw_buffer_add(&words, "%s %s not ranked: too few timed calls (at least %d are needed). ",
                  HW_OF(left, view->sites_ranked || printed ? "more call stack" : "call stack"),
                  left > 1 ? "are" : "is", HW_VIEW_TIMED_LEAST);
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
        if (text->view->profile->observed->info.shift_most)
            hw_page_print(&text->page, HW_PLAIN, " (%s %s)", text->page.utf8 ? "±" : "+-",
                          HW_PERCENT(doubt((double)site->ticks, site->samples), all));
        hw_page_print(&text->page, HW_PLAIN, "  %s: %s calls of %s cycles (%s timed)\n",
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
