/* installed.c - see installed.h. */
#include "allocators/installed.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocators/helper.h"

#define PROBE         "heapwise-probe"
#define PROBE_SECONDS 30
#define REVISION      1 /* of what the probe finds out: cached facts of others are not used */
#define COMPLETE      "# complete\n"

/* What Debian calls them, library and package; of those of one name the first that can be loaded counts. The C library
 * is asked for by its name: a program may have brought another allocator. */
static const struct {
    const char *name, *library, *package;
    const char *family; /* whose settings it has, if that has another name */
} usual[] = {
    {"glibc", "libc.so.6", "libc6", NULL},
    {"jemalloc", "libjemalloc.so.2", "libjemalloc2", NULL},
    {"tcmalloc", "libtcmalloc_minimal.so.4", "libtcmalloc-minimal4", NULL},
    {"tcmalloc", "libtcmalloc.so.4", "libgoogle-perftools4", NULL},
    {"mimalloc", "libmimalloc.so.2", "libmimalloc2.0", NULL},
    {"mimalloc", "libmimalloc.so.3", "libmimalloc3", NULL},
    {"tbbmalloc", "libtbbmalloc_proxy.so.2", "libtbbmalloc2", NULL},
    /* Where both are installed: of one name only the first counts. */
    {"tcmalloc-full", "libtcmalloc.so.4", "libgoogle-perftools4", "tcmalloc"},
    {"mimalloc3", "libmimalloc.so.3", "libmimalloc3", "mimalloc"},
};

/* ---- cache ---- */

/* What users configure allocators by changes the facts: it is part of the name. */
static uint64_t hash_of_settings(void)
{
    static const char *const prefixes[] = {"MALLOC_",   "GLIBC_TUNABLES=", "TCMALLOC_",
                                           "MIMALLOC_", "TBB_MALLOC_",     "LD_LIBRARY_PATH="};
    uint64_t hash = 0xcbf29ce484222325u;
    for (char **entry = environ; entry && *entry; entry++)
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
            if (strncmp(*entry, prefixes[i], strlen(prefixes[i])) == 0)
                for (const char *at = *entry; *at; at++)
                    hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    char link[256];
    const ssize_t length = readlink("/etc/malloc.conf", link, sizeof link); /* jemalloc's */
    for (ssize_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)link[i]) * 0x100000001b3u;
    return hash;
}

static bool cache_folder(char *folder, size_t size)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && *cache == '/')
        return (size_t)snprintf(folder, size, "%s/heapwise", cache) < size;
    return home && *home == '/' && (size_t)snprintf(folder, size, "%s/.cache/heapwise", home) < size;
}

/* False: facts of this allocator are not cached. */
static bool cache_path(char *path, size_t size, const struct hw_facts *facts)
{
    char folder[PATH_MAX];
    return facts->build_id[0] && cache_folder(folder, sizeof folder) &&
           (size_t)snprintf(path, size, "%s/%s-%016" PRIx64 "-%d.facts", folder, facts->build_id, hash_of_settings(),
                            REVISION) < size;
}

static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777); /* those that are there stay; whether it worked shows when the file is made */
        *slash = '/';
    }
}

/* A cache that cannot be written is none. */
static void write_cache(const char *path, const char *text)
{
    char folders[PATH_MAX], aside[PATH_MAX + 32];
    snprintf(folders, sizeof folders, "%s", path);
    make_folders(folders);
    snprintf(aside, sizeof aside, "%s.%d", path, (int)getpid());
    const int file = open(aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0)
        return;
    const size_t size = strlen(text);
    bool fine = write(file, text, size) == (ssize_t)size &&
                write(file, COMPLETE, strlen(COMPLETE)) == (ssize_t)strlen(COMPLETE);
    fine &= close(file) == 0;
    if (!fine || rename(aside, path) != 0)
        unlink(aside);
}

static bool ends_complete(const char *path)
{
    char end[sizeof COMPLETE] = "";
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    const off_t size = lseek(file, 0, SEEK_END);
    const bool fine = size >= (off_t)strlen(COMPLETE) &&
                      pread(file, end, strlen(COMPLETE), size - (off_t)strlen(COMPLETE)) == (ssize_t)strlen(COMPLETE);
    close(file);
    return fine && strcmp(end, COMPLETE) == 0;
}

/* ---- probing ---- */

bool hw_facts_where(struct hw_facts *facts, const char *preload, struct hw_error *error)
{
    static const char *const arguments[] = {"--where", NULL};
    char *text = hw_helper_run(PROBE, arguments, preload, NULL, PROBE_SECONDS, HW_FACTS_TEXT_MOST, error);
    const bool known = text && hw_facts_parse(facts, text, PROBE, error);
    free(text);
    return known;
}

bool hw_facts_find(struct hw_facts *facts, const char *preload, struct hw_error *error)
{
    char path[PATH_MAX], *text;
    struct hw_facts here;
    memset(facts, 0, sizeof *facts);
    if (!hw_facts_where(&here, preload, error))
        return false;
    const bool cached = cache_path(path, sizeof path, &here);
    struct hw_error ignored;
    if (cached && ends_complete(path) && hw_facts_read(facts, path, &ignored) &&
        strcmp(facts->build_id, here.build_id) == 0) {
        memcpy(facts->path, here.path, sizeof facts->path); /* the same build may have moved */
        return true;
    }
    text = hw_facts_text(preload, error);
    const bool fine = text && hw_facts_parse(facts, text, PROBE, error);
    if (fine && cached)
        write_cache(path, text);
    free(text);
    if (!fine)
        *facts = here;
    return fine;
}

char *hw_facts_text(const char *preload, struct hw_error *error)
{
    return hw_helper_run(PROBE, NULL, preload, NULL, PROBE_SECONDS, HW_FACTS_TEXT_MOST, error);
}

/* ---- the list ---- */

const char *hw_allocator_library(const char *name)
{
    const char *first = NULL;
    struct hw_facts facts, libc;
    struct hw_error ignored;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        if (strcmp(usual[i].name, name) != 0)
            continue;
        if (i == 0)
            return "";
        if (hw_facts_where(&facts, usual[i].library, &ignored) && hw_facts_where(&libc, usual[0].library, &ignored) &&
            strcmp(facts.path, libc.path) != 0)
            return usual[i].library;
        first = first ? first : usual[i].library;
    }
    return first;
}

int hw_kernel_huge_pages(void)
{
    char line[64] = "";
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
    const bool fine = file && fgets(line, sizeof line, file);
    if (file)
        fclose(file);
    return !fine ? -1 : strstr(line, "[always]") ? 2 : strstr(line, "[madvise]") ? 1 : 0;
}

const char *hw_allocator_family(const char *name)
{
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (usual[i].family && strcmp(usual[i].name, name) == 0)
            return usual[i].family;
    return name;
}

const char *hw_allocator_package(const char *library)
{
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (strcmp(usual[i].library, library) == 0)
            return usual[i].package;
    return NULL;
}

static struct hw_allocator *named(const struct hw_allocators *allocators, const char *name)
{
    for (size_t i = 0; i < allocators->count; i++)
        if (strcmp(allocators->of[i].name, name) == 0)
            return &allocators->of[i];
    return NULL;
}

static struct hw_allocator *add(struct hw_allocators *allocators, const char *name)
{
    struct hw_allocator *same = named(allocators, name);
    if (same) {
        hw_preload_free(&same->preload);
    } else {
        if (allocators->count == HW_ALLOCATORS_MOST)
            return NULL;
        same = &allocators->of[allocators->count++];
    }
    memset(same, 0, sizeof *same);
    snprintf(same->name, sizeof same->name, "%s", name);
    return same;
}

static void find_facts(struct hw_allocator *allocator)
{
    struct hw_error error = {""};
    if (!hw_facts_find(&allocator->facts, allocator->preload.path, &error))
        snprintf(allocator->problem, sizeof allocator->problem, "%.250s", error.message);
}

/* A preloaded library that does not bring a malloc leaves the C library's in place. */
static bool is_there(const struct hw_allocator *allocator, const struct hw_allocators *allocators)
{
    return allocator->facts.path[0] &&
           (allocator == allocators->of || strcmp(allocator->facts.path, allocators->of[0].facts.path) != 0);
}

/* Whether one before the last is the same library under another name. */
static bool is_twice(const struct hw_allocators *allocators)
{
    const char *path = allocators->of[allocators->count - 1].facts.path;
    for (size_t i = 0; i + 1 < allocators->count; i++)
        if (strcmp(allocators->of[i].facts.path, path) == 0)
            return true;
    return false;
}

static bool add_usual(struct hw_allocators *allocators)
{
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        if (named(allocators, usual[i].name))
            continue;
        struct hw_allocator *allocator = add(allocators, usual[i].name);
        if (!allocator)
            return false;
        snprintf(allocator->preload.path, sizeof allocator->preload.path, "%s", usual[i].library);
        find_facts(allocator);
        if (i > 0 && (!is_there(allocator, allocators) || is_twice(allocators)))
            allocators->count--;
        else if (allocator->facts.name[0] && !allocator->facts.version[0]) /* it cannot say who it is */
            snprintf(allocator->facts.name, sizeof allocator->facts.name, "%s", usual[i].name);
    }
    return true;
}

/* "NAME=PATH" */
static bool add_told(struct hw_allocators *allocators, const char *told, struct hw_error *error)
{
    const char *equals = strchr(told, '=');
    char name[64];
    if (!equals || equals == told || !equals[1] || (size_t)(equals - told) >= sizeof name) {
        hw_error_set(error, "--allocator=%s: NAME=PATH is needed, such as mine=/opt/lib/libmine.so", told);
        return false;
    }
    memcpy(name, told, (size_t)(equals - told));
    name[equals - told] = '\0';
    char path[PATH_MAX];
    const bool is_file = strchr(equals + 1, '/') != NULL; /* else a name for the dynamic linker to find */
    if (is_file && (!realpath(equals + 1, path) || access(path, R_OK) != 0)) {
        hw_error_set(error, "--allocator=%s: %s", told, strerror(errno));
        return false;
    }
    struct hw_allocator *allocator = add(allocators, name);
    if (!allocator) {
        hw_error_set(error, "--allocator=%s: no more than %d allocators", told, HW_ALLOCATORS_MOST);
        return false;
    }
    if (!hw_preload_init(&allocator->preload, is_file ? path : equals + 1, error))
        return false;
    find_facts(allocator);
    if (is_there(allocator, allocators))
        return true;
    hw_error_set(error, "--allocator=%s: %s", told,
                 allocator->problem[0] ? allocator->problem : "it cannot be loaded, or has no malloc");
    return false;
}

bool hw_allocators_find(struct hw_allocators *allocators, const char *const added[], struct hw_error *error)
{
    *allocators = (struct hw_allocators){.of = calloc(HW_ALLOCATORS_MOST, sizeof *allocators->of)};
    if (!allocators->of || !add_usual(allocators)) {
        hw_error_set(error, "not enough memory");
        return false;
    }
    for (; added && *added; added++)
        if (!add_told(allocators, *added, error))
            return false;
    return true;
}

void hw_allocators_free(struct hw_allocators *allocators)
{
    for (size_t i = 0; allocators->of && i < allocators->count; i++)
        hw_preload_free(&allocators->of[i].preload);
    free(allocators->of);
    *allocators = (struct hw_allocators){0};
}
