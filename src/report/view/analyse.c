/* analyse.c - see analyse.h. */
#include "report/view/analyse.h"

#include <stdlib.h>

#include "report/view/contents.h"
#include "report/view/sampled_fields.h"

static bool is_unseen(const void *closure, size_t context)
{
    const struct hw_view *view = closure;
    return hw_view_used_unseen(view, &view->contexts[context].sum);
}

static bool words_of(const void *closure, size_t context, uint64_t *words, size_t count)
{
    size_t run_count;
    const struct hw_profile_histogram *runs = hw_view_histogram(closure, context, &run_count);
    for (size_t i = 0; i < run_count; i++)
        for (size_t k = 0; k < HW_HISTOGRAM_WORDS && runs[i].first_word + k < count; k++)
            words[runs[i].first_word + k] = hw_add_saturating(words[runs[i].first_word + k], runs[i].words[k]);
    return run_count != 0;
}

/* Periods in which a word was read or written, added up over blocks: 0 only where no block had it used. */
static bool periods_of(const void *closure, size_t context, uint64_t *words, size_t count)
{
    size_t run_count;
    const struct hw_profile_words *runs = hw_view_words(closure, context, &run_count);
    for (size_t i = 0; i < run_count; i++)
        for (size_t k = 0; k < HW_WORDS_RUN && runs[i].first_word + k < count; k++) {
            uint64_t *word = &words[runs[i].first_word + k];
            const uint64_t periods = hw_add_saturating(runs[i].read_periods[k], runs[i].written_periods[k]);
            const bool used = runs[i].read_blocks[k] || runs[i].written_blocks[k];
            *word = hw_add_saturating(*word, periods ? periods : used);
        }
    return run_count != 0;
}

static uint64_t shared_samples(const void *closure, size_t context, uint64_t *lines)
{
    struct hw_view_side sides[HW_VIEW_SIDES];
    const struct hw_view *view = closure;
    const size_t count = hw_view_sides(view, context, HW_SHARING_FALSE, sides, HW_VIEW_SIDES);
    uint64_t samples = 0;
    for (size_t i = 0; i < count; i++)
        if (sides[i].entries->kind == HW_SIDE_SAMPLED)
            samples = hw_add_saturating(samples, hw_add_saturating(sides[i].reads, sides[i].writes));
    *lines = view->sampled ? view->sampled[context].lines_false_shared : 0;
    return samples;
}

/* How many accesses one stands for. Bursts of single steps do not say it: as if an instruction took a nanosecond. */
static double weight_of_samples(const struct hw_profile *profile)
{
    const struct hw_sample_info *info = &profile->sample_info;
    if (profile->fields.counted || !profile->accesses_sampled)
        return 1;
    const double steps = (double)info->frequency * (double)info->burst_length;
    return info->period ? (double)info->period : steps > 0 ? 1e9 / steps : 1;
}

/* OF: the index of each context, by its id. */
static const uint32_t *add_pins(const struct hw_view *view, uint32_t *of)
{
    if (!view->profile->heap_pages)
        return NULL;
    for (uint32_t id = 0; id < view->profile->context_entry_count; id++) {
        const struct hw_view_context *context = hw_view_context_of(view, id);
        of[id] = context && !context->sum.pool ? (uint32_t)(context - view->contexts) : HW_NONE;
    }
    return of;
}

bool hw_view_analyse(struct hw_view_analysis *of, const struct hw_view *view, struct hw_error *error)
{
    *of = (struct hw_view_analysis){.contexts = calloc(view->context_count + 1, sizeof *of->contexts),
                                    .contents = hw_contents_by_context(view),
                                    .context_of =
                                        calloc(view->profile->context_entry_count + 1, sizeof *of->context_of)};
    if (!of->contexts || !of->contents || !of->context_of) {
        hw_view_analysis_free(of);
        hw_error_set(error, "not enough memory for the analysis");
        return false;
    }
    for (size_t i = 0; i < view->context_count; i++)
        of->contexts[i] = &view->contexts[i].sum;
    const uint32_t granule = view->profile->access_info.granule;
    const bool periods = hw_profile_counts_periods(view->profile);
    const struct hw_analysis_input input = {
        .profile = view->profile,
        .fields = hw_view_fields(view),
        .field_weight = weight_of_samples(view->profile),
        .contexts = of->contexts,
        .context_count = view->context_count,
        .words = periods ? periods_of : words_of,
        .word_bytes = periods || granule == 8 ? granule : 0,
        .periods = periods,
        .unseen = is_unseen,
        .shared_samples = view->sampled ? shared_samples : NULL,
        .samples = hw_add_saturating(view->profile->sample_info.heap_reads, view->profile->sample_info.heap_writes),
        .sample_weight = view->profile->sample_info.period,
        .global_lines = view->profile->access_counted ? view->global_hot_lines : 0,
        .contents = view->profile->content_search ? of->contents : NULL,
        .context_of = add_pins(view, of->context_of),
        .closure = view};
    of->analysis = hw_analysis_new(&input, error);
    if (!of->analysis)
        hw_view_analysis_free(of);
    return of->analysis != NULL;
}

void hw_view_analysis_free(struct hw_view_analysis *of)
{
    hw_analysis_free(of->analysis);
    free(of->contexts);
    free(of->contents);
    free(of->context_of);
    *of = (struct hw_view_analysis){0};
}
