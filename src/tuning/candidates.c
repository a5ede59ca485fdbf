/* candidates.c - see candidates.h. */
#include "tuning/candidates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTINGS_MOST 64 /* of an allocator */

void hw_known_facts_of_run(struct hw_known_facts *facts, const struct hw_profile *profile,
                           const struct hw_run_cost *cost)
{
    hw_known_facts_of_machine(facts);
    hw_known_fact_set(facts, "seconds", cost->wall_s);
    if (cost->wall_s > 0)
        hw_known_fact_set(facts, "page-faults-per-second",
                          (double)(cost->minor_faults + cost->major_faults) / cost->wall_s);
    if (!profile || !profile->observed)
        return;
    uint64_t largest = 0;
    for (size_t i = 0; i < profile->context_count; i++)
        if (profile->contexts[i].size_max > largest)
            largest = profile->contexts[i].size_max;
    hw_known_fact_set(facts, "heap", (double)profile->process.peak_bytes);
    hw_known_fact_set(facts, "threads", (double)profile->process.threads_most);
    if (largest)
        hw_known_fact_set(facts, "largest-block", (double)largest);
    const struct hw_profile_allocator *observed = profile->observed;
    if (cost->wall_s > 0)
        hw_known_fact_set(facts, "operations-per-second",
                          (double)(observed->allocations + observed->frees + observed->reallocations) / cost->wall_s);
}

/* ARRAY with room for one more of SIZE bytes. NULL with ERROR. */
static void *grown(void *array, size_t count, size_t size, struct hw_error *error)
{
    void *more = (count & (count - 1)) == 0 ? realloc(array, (count ? 2 * count : 1) * size) : array;
    if (!more)
        hw_error_set(error, "not enough memory");
    return more;
}

bool hw_candidates_add(struct hw_candidates *candidates, const struct hw_configuration *configuration,
                       struct hw_error *error)
{
    if (candidates->count == HW_RACE_MOST) {
        hw_error_set(error, "more than %d configurations", HW_RACE_MOST);
        return false;
    }
    struct hw_configuration *more = grown(candidates->of, candidates->count, sizeof *candidates->of, error);
    if (!more)
        return false;
    candidates->of = more;
    candidates->of[candidates->count++] = *configuration;
    return true;
}

bool hw_candidates_add_untried(struct hw_candidates *candidates, const char *name, const char *why,
                               struct hw_error *error)
{
    struct hw_untried *more = grown(candidates->untried, candidates->untried_count, sizeof *candidates->untried, error);
    if (!more)
        return false;
    candidates->untried = more;
    struct hw_untried *untried = &candidates->untried[candidates->untried_count++];
    snprintf(untried->name, sizeof untried->name, "%s", name);
    snprintf(untried->why, sizeof untried->why, "%s", why);
    return true;
}

/* BASE with each value of SETTING, or that it is not tried. */
static bool add_setting(struct hw_candidates *candidates, const struct hw_configuration *base,
                        const struct hw_setting *setting, const struct hw_known_facts *facts, struct hw_error *error)
{
    struct hw_untried untried;
    if (!hw_setting_may_help(setting, facts, untried.why, sizeof untried.why)) {
        snprintf(untried.name, sizeof untried.name, "%s %s", setting->allocator, setting->name);
        return hw_candidates_add_untried(candidates, untried.name, untried.why, error);
    }
    for (size_t i = 0; i < setting->value_count; i++) {
        struct hw_configuration configuration = *base;
        if (!hw_configuration_set(&configuration, setting, setting->values[i], error) ||
            !hw_candidates_add(candidates, &configuration, error))
            return false;
    }
    return true;
}

static bool add_settings(struct hw_candidates *candidates, const struct hw_settings *settings,
                         const struct hw_configuration *base, const char *of, const char *version,
                         const struct hw_known_facts *facts, struct hw_error *error)
{
    const struct hw_setting *found[SETTINGS_MOST];
    const size_t count = hw_settings_of(settings, of, version, found, SETTINGS_MOST);
    for (size_t i = 0; i < count; i++)
        if (!add_setting(candidates, base, found[i], facts, error))
            return false;
    return true;
}

bool hw_candidates_make(struct hw_candidates *candidates, const struct hw_settings *settings,
                        const struct hw_allocators *allocators, size_t present, bool preload,
                        const struct hw_known_facts *facts, struct hw_error *error)
{
    struct hw_configuration configuration;
    *candidates = (struct hw_candidates){0};
    const struct hw_allocator *own = present < allocators->count ? &allocators->of[present] : NULL;
    hw_configuration_init(&configuration, HW_CONFIGURATION_OWN, own ? own->facts.name : NULL, NULL);
    if (!hw_candidates_add(candidates, &configuration, error))
        return false;
    if (own && !add_settings(candidates, settings, &configuration, own->facts.name, own->facts.version, facts, error))
        return false;
    if (!add_settings(candidates, settings, &configuration, HW_SETTINGS_KERNEL, "", facts, error))
        return false;
    for (size_t i = 0; preload && i < allocators->count; i++) {
        const struct hw_allocator *allocator = &allocators->of[i];
        if (i == present)
            continue;
        if (!allocator->facts.name[0]) {
            if (!hw_candidates_add_untried(candidates, allocator->name, allocator->problem, error))
                return false;
            continue;
        }
        hw_configuration_init(&configuration, allocator->name, allocator->facts.name, allocator->preload.path);
        if (!hw_candidates_add(candidates, &configuration, error) ||
            !add_settings(candidates, settings, &configuration, allocator->facts.name, allocator->facts.version, facts,
                          error))
            return false;
    }
    return true;
}

void hw_candidates_free(struct hw_candidates *candidates)
{
    free(candidates->of);
    free(candidates->untried);
    *candidates = (struct hw_candidates){0};
}
