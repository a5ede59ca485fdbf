/* diff_allocator.c - see diff_allocator.h: the numbers. */
#include "report/compare/diff_allocator.h"

#include <math.h>

/* Without what was never touched, as in verdicts; as far as that is known. */
static void take_memory(struct hw_diff_allocator *side, const struct hw_profile_places *places)
{
    struct hw_heap_parts peak;
    for (int part = 0; part < HW_DIFF_PARTS; part++)
        side->memory[part] = (double)NAN;
    if (!hw_profile_heap_parts(places, HW_MOMENT_PEAK, &peak))
        return;
    side->memory[HW_DIFF_REAL] = (double)peak.real - (peak.measured ? (double)peak.absent : 0);
    side->memory[HW_DIFF_INTERNAL] = (double)peak.internal;
    side->memory[HW_DIFF_BLOWUP] = (double)peak.blowup;
    if (!peak.measured)
        return;
    side->memory[HW_DIFF_TOTAL] = (double)peak.total;
    side->memory[HW_DIFF_EXTERNAL] = (double)peak.external;
}

bool hw_diff_allocator(struct hw_diff_allocator *side, const struct hw_view *view)
{
    const struct hw_profile_allocator *allocator = view->profile->observed;
    *side = (struct hw_diff_allocator){0};
    if (!hw_view_verdict(&side->of, view))
        return false;
    take_memory(side, view->profile->places);
    side->operations =
        hw_add_saturating(hw_add_saturating(allocator->allocations, allocator->frees), allocator->reallocations);
    for (int kind = 0; kind < HW_OPERATION_KINDS; kind++) {
        const struct hw_profile_kind sum = hw_profile_kind_of(allocator, (enum hw_operation_kind)kind);
        const double mean = sum.timed ? sum.ticks / (double)sum.timed : (double)NAN;
        side->kind[kind] = (struct hw_diff_operation){.count = sum.count, .mean_ns = mean * allocator->ns_per_tick};
    }
    return true;
}

double hw_diff_allocator_change(const struct hw_diff_allocator side[HW_SIDES], double *error)
{
    double squares = 0;
    for (int i = 0; i < HW_SIDES; i++) {
        const struct hw_verdict_input *input = &side[i].of.input;
        squares += input->operations * input->error * input->operations * input->error;
    }
    *error = 2 * sqrt(squares);
    return side[HW_NEW].of.input.operations - side[HW_OLD].of.input.operations;
}

bool hw_diff_allocator_names(const struct hw_diff_allocator *side, enum hw_verdict_cause cause)
{
    for (size_t i = 0; i < side->of.verdict.finding_count; i++)
        if (side->of.verdict.findings[i].cause == cause)
            return true;
    return false;
}
