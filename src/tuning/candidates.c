/* candidates.c - see candidates.h. */
#include "tuning/candidates.h"

#include <math.h>
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
        if (!found[i]->on_request && !add_setting(candidates, base, found[i], facts, error))
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

/* ---- combinations ---- */

#define PARTS_MOST 3 /* settings of an allocator that are combined */
#define PART_GAIN  0.99

/* An allocator, and its best settings. */
struct family {
    size_t bare; /* the allocator as it comes; the first of the family */
    double best; /* value of the best of the family */
    size_t parts[PARTS_MOST], part_count;
};

static double value_of(const struct hw_race *race, size_t index)
{
    const struct hw_entrant *entrant = &race->of[index];
    if (index == HW_RACE_PLAIN)
        return 1;
    return entrant->state != HW_RACE_EXCLUDED && entrant->selected.value > 0 ? entrant->selected.value : INFINITY;
}

static bool is_kernels(const struct hw_configuration *configuration)
{
    return configuration->count == 1 && strcmp(configuration->of[0].setting->allocator, HW_SETTINGS_KERNEL) == 0;
}

static bool same_target(const struct hw_configuration *one, const struct hw_configuration *other)
{
    return one->of[0].setting->way == other->of[0].setting->way &&
           strcmp(one->of[0].setting->target, other->of[0].setting->target) == 0;
}

/* Puts the setting of configuration INDEX among the best of FAMILY, where another value of it is worse. */
static void add_part(struct family *family, const struct hw_candidates *candidates, const struct hw_race *race,
                     size_t index)
{
    for (size_t i = 0; i < family->part_count; i++)
        if (same_target(&candidates->of[family->parts[i]], &candidates->of[index])) {
            if (value_of(race, index) < value_of(race, family->parts[i]))
                family->parts[i] = index;
            return;
        }
    if (family->part_count < PARTS_MOST) {
        family->parts[family->part_count++] = index;
        return;
    }
    size_t worst = 0;
    for (size_t i = 1; i < PARTS_MOST; i++)
        if (value_of(race, family->parts[i]) > value_of(race, family->parts[worst]))
            worst = i;
    if (value_of(race, index) < value_of(race, family->parts[worst]))
        family->parts[worst] = index;
}

static struct family family_of(const struct hw_candidates *candidates, const struct hw_race *race, size_t bare)
{
    struct family family = {.bare = bare, .best = value_of(race, bare)};
    const struct hw_configuration *first = &candidates->of[bare];
    const double without = value_of(race, bare);
    for (size_t i = bare + 1; i < race->single_count; i++) {
        const struct hw_configuration *one = &candidates->of[i];
        if (one->count != 1 || strcmp(one->allocator, first->allocator) != 0 || is_kernels(one))
            continue;
        const double value = value_of(race, i);
        if (value < family.best)
            family.best = value;
        if (value < without * PART_GAIN)
            add_part(&family, candidates, race, i);
    }
    for (size_t i = 1; i < family.part_count; i++) /* best first */
        for (size_t k = i; k > 0 && value_of(race, family.parts[k]) < value_of(race, family.parts[k - 1]); k--) {
            const size_t other = family.parts[k];
            family.parts[k] = family.parts[k - 1];
            family.parts[k - 1] = other;
        }
    return family;
}

/* The family's allocator with those of its best settings whose bits are in WHICH, and with KERNEL (HW_RACE_PLAIN: not).
 */
static void add_combination(struct hw_candidates *candidates, const struct family *family, unsigned which,
                            size_t kernel)
{
    struct hw_error ignored;
    struct hw_configuration made = candidates->of[family->bare];
    for (unsigned i = 0; i < family->part_count; i++)
        if (which >> i & 1 && !hw_configuration_set(&made, candidates->of[family->parts[i]].of[0].setting,
                                                    candidates->of[family->parts[i]].of[0].value, &ignored))
            return;
    if (kernel != HW_RACE_PLAIN && !hw_configuration_set(&made, candidates->of[kernel].of[0].setting,
                                                         candidates->of[kernel].of[0].value, &ignored))
        return;
    for (size_t i = 0; i < candidates->count; i++)
        if (hw_configuration_equal(&candidates->of[i], &made))
            return;
    hw_candidates_add(candidates, &made, &ignored);
}

size_t hw_candidates_combine(struct hw_candidates *candidates, const struct hw_race *race)
{
    static const unsigned sets[] = {3, 7, 5, 6};
    struct family first = {.best = INFINITY}, second = {.best = INFINITY};
    size_t kernel = HW_RACE_PLAIN;
    const size_t before = candidates->count;
    for (size_t i = 0; i < race->single_count; i++) {
        if (is_kernels(&candidates->of[i]) && value_of(race, i) < PART_GAIN &&
            (kernel == HW_RACE_PLAIN || value_of(race, i) < value_of(race, kernel)))
            kernel = i;
        if (candidates->of[i].count > 0)
            continue;
        const struct family family = family_of(candidates, race, i);
        if (family.best < first.best) {
            second = first;
            first = family;
        } else if (family.best < second.best) {
            second = family;
        }
    }
    for (const struct family *family = &first;; family = &second) {
        const size_t most = before + (family == &first ? HW_RACE_COMBINED - 2 : HW_RACE_COMBINED);
        if (isfinite(family->best)) {
            if (kernel != HW_RACE_PLAIN)
                for (unsigned which = 0; which < 2u << (family->part_count > 1) && candidates->count < most; which++)
                    add_combination(candidates, family, which == 2 ? 3 : which, kernel);
            for (size_t i = 0; i < sizeof sets / sizeof *sets && candidates->count < most; i++)
                if (sets[i] >> family->part_count == 0)
                    add_combination(candidates, family, sets[i], HW_RACE_PLAIN);
        }
        if (family == &second)
            break;
    }
    return candidates->count;
}

void hw_candidates_free(struct hw_candidates *candidates)
{
    free(candidates->of);
    free(candidates->untried);
    *candidates = (struct hw_candidates){0};
}
