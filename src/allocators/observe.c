/* observe.c - see observe.h. */
#include "allocators/observe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocators/installed.h"
#include "profile/write.h"

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

static void fill_facts(struct hw_allocator_facts *to, const struct hw_facts *from, uint32_t flags)
{
    *to = (struct hw_allocator_facts){
        .flags = flags | (from->large_by_brk ? HW_FACTS_LARGE_BY_BRK : 0) |
                 (from->large_returned ? HW_FACTS_LARGE_RETURNED : 0),
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

/* ---- the sections ---- */

struct observing {
    struct hw_facts facts;
    struct hw_allocator_facts entry;
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

static bool observe(struct observing *observing, const struct hw_profile *profile, const char *path,
                    const struct hw_observe_options *options, struct hw_error *error)
{
    bool probed = false;
    if (options->told)
        observing->facts = *options->told;
    else
        hw_facts_of_profile(profile, &observing->facts, &probed);
    fill_facts(&observing->entry, &observing->facts, options->told ? HW_FACTS_TOLD : probed ? HW_FACTS_PROBED : 0);
    add_section(observing, HW_SECTION_ALLOCATOR_FACTS, sizeof observing->entry, &observing->entry, 1);
    add_section(observing, HW_SECTION_SIZE_CLASSES, sizeof(struct hw_size_class), observing->facts.classes,
                observing->facts.class_count);
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
