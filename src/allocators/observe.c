/* observe.c - see observe.h. */
#include "allocators/observe.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocators/program.h"
#include "profile/container/write.h"

/* ---- facts ---- */

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static bool same_file(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* Name and version as the profile has them: "glibc 2.36". */
static void take_title(const struct hw_profile *profile, struct hw_facts *facts)
{
    const char *title = profile->allocator, *space = strrchr(title, ' ');
    const bool versioned = space && space[1] >= '0' && space[1] <= '9';
    snprintf(facts->name, sizeof facts->name, "%.*s", (int)(versioned ? space - title : (long)strlen(title)), title);
    snprintf(facts->version, sizeof facts->version, "%.60s", versioned ? space + 1 : "");
    snprintf(facts->path, sizeof facts->path, "%s", profile->allocator_path);
}

/* Why an allocator cannot be tried out; NULL: it can. */
static const char *why_not(const struct hw_profile *profile)
{
    const char *path = profile->allocator_path;
    if (!*path)
        return "it is not known which file it is in";
    if (same_file(path, profile->executable))
        return "it is linked into the executable and cannot be loaded into another program";
    if (access(path, R_OK) != 0)
        return "its file is not there any more";
    if (strstr(path, "ld-musl") || ends_with(path, "/libc.so"))
        return "it is that of musl, with which the probe cannot run";
    return NULL;
}

void hw_facts_of_profile(const struct hw_profile *profile, struct hw_facts *facts, bool *probed)
{
    struct hw_error error = {""};
    struct hw_preload preload = {.folder = ""};
    const char *reason = why_not(profile);
    *probed = !reason && hw_preload_init(&preload, profile->allocator_path, &error) &&
              hw_facts_find(facts, preload.path, &error);
    hw_preload_free(&preload);
    if (*probed && strcmp(facts->path, profile->allocator_path) != 0 &&
        !same_file(facts->path, profile->allocator_path)) {
        *probed = false;
        reason = "it cannot be loaded into another program";
    }
    if (*probed)
        return;
    memset(facts, 0, sizeof *facts);
    take_title(profile, facts);
    snprintf(facts->why, sizeof facts->why, "%.250s", reason ? reason : error.message);
}

/* Whether the run had small pages where it could have had huge ones: by this machine and this environment, which are
 * those of the run. */
static bool small_pages(void)
{
    static const char *const asking[][2] = {{"GLIBC_TUNABLES", "glibc.malloc.hugetlb="},
                                            {"MALLOC_CONF", "thp:always"},
                                            {"MIMALLOC_LARGE_OS_PAGES", ""},
                                            {"MIMALLOC_ALLOW_LARGE_OS_PAGES", ""}};
    for (size_t i = 0; i < sizeof asking / sizeof *asking; i++) {
        const char *value = getenv(asking[i][0]);
        if (value && strstr(value, asking[i][1]))
            return false;
    }
    return hw_kernel_huge_pages() == 1;
}

static void fill_facts(struct hw_allocator_facts *to, const struct hw_facts *from, uint32_t flags)
{
    *to = (struct hw_allocator_facts){
        .flags = flags | (from->large_by_brk ? HW_FACTS_LARGE_BY_BRK : 0) |
                 (from->large_returned ? HW_FACTS_LARGE_RETURNED : 0) | (small_pages() ? HW_FACTS_SMALL_PAGES : 0),
        .style = from->style,
        .reuse = from->reuse,
        .thread_cache = from->thread_cache,
        .alignment = from->alignment,
        .alignment_small = from->alignment_small,
        .medium = from->medium,
        .large = from->large,
        .large_rises_to = from->large_rises_to,
        .least = from->least,
        .step = from->step,
        .header = from->header,
        .classes_step = from->classes_step,
    };
    snprintf(to->name, sizeof to->name, "%s", from->name);
    snprintf(to->version, sizeof to->version, "%s", from->version);
    snprintf(to->build_id, sizeof to->build_id, "%s", from->build_id);
    snprintf(to->why, sizeof to->why, "%s", from->why);
}

/* ---- predictions ---- */

#define REPLAYS        7
#define UNTOUCHED_MOST 0.25 /* part of the requested bytes at the peak */

static unsigned processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

static uint64_t millionths(double value)
{
    return value > 0 && value < 1e9 ? (uint64_t)llround(value * 1e6) : 0;
}

/* The program's allocator, to be replayed with. False with ERROR. */
static bool take_present(const struct hw_profile *profile, struct hw_allocator *present, struct hw_error *error)
{
    const char *reason = why_not(profile);
    if (!reason)
        return hw_preload_init(&present->preload, profile->allocator_path, error);
    hw_error_set(error, "the program's own allocator cannot be replayed: %s", reason);
    return false;
}

/* Replays of a profile touch all of every block, since it is not known which parts the program has touched. False with
 * ERROR: that would be another program. */
static bool touches_its_memory(const struct hw_profile *profile, struct hw_error *error)
{
    struct hw_heap_parts parts;
    if (!profile->places || !hw_profile_heap_parts(profile->places, HW_MOMENT_PEAK, &parts) || !parts.measured ||
        !((double)parts.absent > (double)parts.real * UNTOUCHED_MOST))
        return true;
    hw_error_set(
        error,
        "the program leaves %.0f %% of the memory untouched that it requests, but the replay of a profile would touch "
        "it (heapwise allocators does not)",
        100 * (double)parts.absent / (double)parts.real);
    return false;
}

struct predicting {
    struct hw_program_data *data;
    struct hw_allocator present;
    const struct hw_allocator *of[HW_ALLOCATORS_MOST + 1]; /* the present one first */
    struct hw_replays results[HW_ALLOCATORS_MOST + 1];
    char problems[HW_ALLOCATORS_MOST + 1][256];
    size_t count;
};

static void predict_one(const struct predicting *predicting, size_t index, double now_ticks,
                        struct hw_allocator_prediction *prediction)
{
    const struct hw_replays *present = &predicting->results[0], *x = &predicting->results[index];
    if (present->count == 0 || x->count == 0) {
        snprintf(prediction->problem, sizeof prediction->problem, "%s",
                 predicting->problems[present->count == 0 ? 0 : index]);
        return;
    }
    const struct hw_speedup speedup = hw_predict(&predicting->data->program, now_ticks, present, x);
    prediction->speedup = millionths(speedup.value);
    prediction->low = millionths(speedup.low);
    prediction->high = millionths(speedup.high);
    prediction->replays = (uint32_t)x->count;
    if (predicting->data->threads_most > processors())
        prediction->flags |= HW_PREDICTION_FEWER_PROCESSORS;
}

size_t hw_predict_profile(const struct hw_profile *profile, const struct hw_allocators *allocators, double now_s,
                          struct hw_allocator_prediction predictions[HW_PREDICTIONS_MOST])
{
    struct hw_error error = {"not enough memory"};
    struct predicting *predicting = calloc(1, sizeof *predicting);
    const double ns_per_tick = profile->ns_per_tick > 0 ? profile->ns_per_tick : 1;
    bool fine = predicting && take_present(profile, &predicting->present, &error) &&
                touches_its_memory(profile, &error) &&
                (predicting->data = hw_program_data_new(profile, processors(), &error)) != NULL;
    size_t count = 0;
    for (size_t i = 0; i < allocators->count; i++) {
        const struct hw_allocator *one = &allocators->of[i];
        if (same_file(one->facts.path, profile->allocator_path))
            continue;
        struct hw_allocator_prediction *prediction = &predictions[count++];
        memset(prediction, 0, sizeof *prediction);
        snprintf(prediction->allocator, sizeof prediction->allocator, "%s", one->name);
        snprintf(prediction->version, sizeof prediction->version, "%s", one->facts.version);
        if (fine)
            predicting->of[count] = one;
    }
    if (fine) {
        predicting->of[0] = &predicting->present;
        hw_replay_all(&predicting->data->mix, ns_per_tick, predicting->of, count + 1, REPLAYS, predicting->results,
                      predicting->problems);
    }
    for (size_t i = 0; i < count; i++) {
        if (fine)
            predict_one(predicting, i + 1, now_s * 1e9 / ns_per_tick, &predictions[i]);
        else
            snprintf(predictions[i].problem, sizeof predictions[i].problem, "%.250s", error.message);
    }
    if (predicting) {
        hw_preload_free(&predicting->present.preload);
        hw_program_data_free(predicting->data);
    }
    free(predicting);
    return count;
}

bool hw_fewer_processors(const struct hw_profile *profile)
{
    struct hw_error error;
    struct hw_program_data *data = hw_program_data_new(profile, processors(), &error);
    const bool fewer = data && data->threads_most > processors();
    hw_program_data_free(data);
    return fewer;
}

/* ---- the sections ---- */

struct observing {
    struct hw_facts facts;
    struct hw_allocator_facts entry;
    struct hw_allocator_prediction predictions[HW_PREDICTIONS_MOST];
    struct hw_section_source sections[3];
    size_t count;
};

static void add_section(struct observing *observing, uint32_t type, uint32_t entry_size, const void *bytes,
                        size_t entries)
{
    if (entries)
        observing->sections[observing->count++] =
            (struct hw_section_source){type, entry_size, 1, bytes, entries * entry_size};
}

static void find_facts(const struct hw_profile *profile, struct hw_remembered_facts *known, struct hw_facts *facts,
                       bool *probed)
{
    const bool same = known && strcmp(known->path, profile->allocator_path) == 0 && !why_not(profile);
    if (same) {
        *facts = known->facts;
        *probed = known->probed;
        return;
    }
    hw_facts_of_profile(profile, facts, probed);
    if (known && !why_not(profile)) {
        snprintf(known->path, sizeof known->path, "%s", profile->allocator_path);
        known->facts = *facts;
        known->probed = *probed;
    }
}

static bool observe(struct observing *observing, const struct hw_profile *profile, const char *path,
                    const struct hw_observe_options *options, struct hw_error *error)
{
    bool probed = false;
    if (options->told)
        observing->facts = *options->told;
    else
        find_facts(profile, options->known, &observing->facts, &probed);
    fill_facts(&observing->entry, &observing->facts, options->told ? HW_FACTS_TOLD : probed ? HW_FACTS_PROBED : 0);
    add_section(observing, HW_SECTION_ALLOCATOR_FACTS, sizeof observing->entry, &observing->entry, 1);
    add_section(observing, HW_SECTION_SIZE_CLASSES, sizeof(struct hw_size_class), observing->facts.classes,
                observing->facts.class_count);
    if (options->predict) {
        struct hw_allocators allocators;
        size_t count = 0;
        if (hw_allocators_find(&allocators, NULL, error))
            count = hw_predict_profile(profile, &allocators, 0, observing->predictions);
        hw_allocators_free(&allocators);
        add_section(observing, HW_SECTION_PREDICTIONS, sizeof *observing->predictions, observing->predictions, count);
    }
    return hw_profile_add_sections(path, observing->sections, observing->count, error);
}

bool hw_observe(const char *path, const struct hw_observe_options *options, struct hw_error *error)
{
    struct observing *observing = calloc(1, sizeof *observing);
    struct hw_profile *profile = observing ? hw_profile_read(path, error) : NULL;
    if (!observing)
        hw_error_set(error, "not enough memory");
    const bool fine = profile && (!profile->observed || observe(observing, profile, path, options, error));
    hw_profile_free(profile);
    free(observing);
    return fine;
}
