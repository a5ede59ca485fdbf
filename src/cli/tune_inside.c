/* tune_inside.c - heapwise tune: what a configuration changes inside the allocator, from a profile of each. */
#include <math.h>
#include <stdio.h>

#include "cli/pairs_report.h"
#include "cli/tune.h"
#include "report/text/human.h"

enum { TIME, CALLS, WAITS, WASTE };

static const struct {
    const char *key, *title;
} rows[HW_INSIDE] = {
    [TIME] = {"allocator_s", "time in operations"},
    [CALLS] = {"system_calls", "system calls in them"},
    [WAITS] = {"lock_waits", "waits for locks"},
    [WASTE] = {"waste_at_peak_bytes", "waste at the peak"},
};

void hw_tuned_inside_take(struct hw_tuned_inside *inside, const struct hw_profile *profile)
{
    struct hw_heap_parts parts;
    for (int i = 0; i < HW_INSIDE; i++)
        inside->of[i] = NAN;
    inside->known = profile && profile->observed;
    if (!inside->known)
        return;
    const struct hw_profile_allocator *observed = profile->observed;
    double ticks = 0;
    for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
        ticks += hw_profile_kind_of(observed, (enum hw_operation_kind)kind).ticks;
    if (ticks > 0)
        inside->of[TIME] = ticks * observed->ns_per_tick * 1e-9;
    if (observed->inside.calls_observed) {
        inside->of[CALLS] = 0;
        for (int call = 0; call < HW_SYSTEM_CALLS; call++)
            inside->of[CALLS] += (double)hw_profile_call_of(&observed->inside, (enum hw_system_call)call, -1).count;
    }
    if (observed->inside.present) {
        inside->of[WAITS] = 0;
        for (size_t i = 0; i < observed->inside.lock_count; i++)
            inside->of[WAITS] += (double)hw_lock_use_of(&observed->inside.locks[i]).contended;
    }
    if (profile->places && hw_profile_heap_parts(profile->places, HW_MOMENT_PEAK, &parts) && parts.measured &&
        parts.total > parts.real)
        inside->of[WASTE] = (double)(parts.total - parts.real);
}

static const char *amount(char *buffer, int row, double value)
{
    if (isnan(value))
        snprintf(buffer, HW_CHANGE_TEXT, "-");
    else if (row == TIME)
        snprintf(buffer, HW_CHANGE_TEXT, value < 1 ? "%.1f ms" : "%.3f s", value < 1 ? value * 1e3 : value);
    else
        snprintf(buffer, HW_CHANGE_TEXT, "%s", row == WASTE ? HW_BYTES((uint64_t)value) : HW_MANY((uint64_t)value));
    return buffer;
}

void hw_tuned_inside_print(const struct hw_tuned_inside inside[2])
{
    char a[HW_CHANGE_TEXT], b[HW_CHANGE_TEXT];
    if (!inside[0].known || !inside[1].known)
        return;
    printf("\nInside the allocator, from one profiled run of each\n  %-21s %10s %10s\n", "", "as it is", "best");
    for (int i = 0; i < HW_INSIDE; i++)
        if (!isnan(inside[0].of[i]) || !isnan(inside[1].of[i]))
            printf("  %-21s %10s %10s\n", rows[i].title, amount(a, i, inside[0].of[i]), amount(b, i, inside[1].of[i]));
}

json_t *hw_tuned_inside_json(const struct hw_tuned_inside *inside)
{
    if (!inside->known)
        return json_null();
    json_t *object = json_object();
    for (int i = 0; i < HW_INSIDE; i++)
        json_object_set_new(object, rows[i].key, isnan(inside->of[i]) ? json_null() : json_real(inside->of[i]));
    return object;
}
