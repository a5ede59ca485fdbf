/* analyse.c - see analyse.h. */
#include "report/analyse.h"

#include <stdlib.h>

static bool is_unseen(const void *closure, size_t context)
{
    const struct hw_view *view = closure;
    return hw_view_uncounted_owner(view, &view->contexts[context].sum) != NULL;
}

bool hw_view_analyse(struct hw_view_analysis *of, const struct hw_view *view, struct hw_error *error)
{
    *of = (struct hw_view_analysis){.contexts = calloc(view->context_count + 1, sizeof *of->contexts)};
    if (!of->contexts) {
        hw_error_set(error, "not enough memory for the analysis");
        return false;
    }
    for (size_t i = 0; i < view->context_count; i++)
        of->contexts[i] = &view->contexts[i].sum;
    const struct hw_analysis_input input = {.profile = view->profile,
                                            .contexts = of->contexts,
                                            .context_count = view->context_count,
                                            .histogram = view->histogram,
                                            .histogram_count = view->histogram_count,
                                            .unseen = is_unseen,
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
    *of = (struct hw_view_analysis){0};
}
