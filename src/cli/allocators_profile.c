/* allocators_profile.c - the profiled run of heapwise allocators: by heapwise record, into a temporary folder. */
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/allocators.h"
#include "cli/cli.h"

bool hw_comparison_folder(char *folder, size_t size)
{
    const char *place = getenv("TMPDIR");
    if (!place || *place != '/' || strchr(place, '%'))
        place = "/tmp";
    return (size_t)snprintf(folder, size, "%s/heapwise-XXXXXX", place) < size && mkdtemp(folder) != NULL;
}

static void remove_folder(const char *folder, const glob_t *found)
{
    for (size_t i = 0; i < found->gl_pathc; i++)
        unlink(found->gl_pathv[i]);
    rmdir(folder);
}

/* Of all processes that the program became, the one that used its allocator most. */
static struct hw_profile *busiest(const glob_t *found, struct hw_error *error)
{
    struct hw_profile *best = NULL;
    for (size_t i = 0; i < found->gl_pathc; i++) {
        struct hw_profile *profile = hw_profile_read(found->gl_pathv[i], error);
        if (!profile || !profile->observed) {
            hw_profile_free(profile);
        } else if (!best || profile->observed->allocations > best->observed->allocations) {
            hw_profile_free(best);
            best = profile;
        } else {
            hw_profile_free(profile);
        }
    }
    return best;
}

static bool run_record(const struct hw_run_request *plain, const struct hw_runner *runner, const char *folder,
                       struct hw_run_cost *cost, struct hw_error *error)
{
    static char self[] = "/proc/self/exe", verb[] = "record", quiet[] = "-q", mode[] = "--mode=allocator",
                no_prediction[] = "--no-prediction", no_pack[] = "--no-pack", output[] = "-o", end[] = "--";
    char path[PATH_MAX], pattern[PATH_MAX];
    const ssize_t length = readlink(self, path, sizeof path - 1);
    size_t count = 0;
    while (plain->arguments[count])
        count++;
    char **arguments = calloc(count + 16, sizeof *arguments);
    if (!arguments || length < 0) {
        hw_error_set(error, "not enough memory");
        free(arguments);
        return false;
    }
    path[length] = '\0';
    snprintf(pattern, sizeof pattern, "%.4000s/%%p.%%n.hwprof", folder);
    char *const first[] = {path, verb, quiet, mode, no_prediction, no_pack, output, pattern, end};
    const size_t own = sizeof first / sizeof *first;
    memcpy(arguments, first, sizeof first);
    memcpy(arguments + own, plain->arguments, count * sizeof *arguments);
    struct hw_run_request request = *plain;
    request.path = path;
    request.arguments = arguments;
    request.text = false;
    const bool fine =
        runner ? runner->run(runner->closure, &request, cost, error) : hw_run_measure(&request, cost, error);
    free(arguments);
    return fine;
}

struct hw_profile *hw_comparison_profile(const struct hw_run_request *plain, const struct hw_runner *runner,
                                         struct hw_run_cost *cost, size_t *processes, struct hw_error *error)
{
    char folder[PATH_MAX], pattern[PATH_MAX + 16];
    glob_t found = {0};
    struct hw_profile *profile = NULL;
    *processes = 0;
    memset(cost, 0, sizeof *cost);
    if (!hw_comparison_folder(folder, sizeof folder)) {
        hw_error_set(error, "no temporary folder can be made: %s", strerror(errno));
        return NULL;
    }
    const bool ran = run_record(plain, runner, folder, cost, error);
    snprintf(pattern, sizeof pattern, "%s/*.hwprof", folder);
    glob(pattern, 0, NULL, &found);
    if (ran) {
        hw_error_set(error, "heapwise record left no profile of it");
        profile = busiest(&found, error);
        *processes = found.gl_pathc;
    }
    remove_folder(folder, &found);
    globfree(&found);
    return profile;
}

bool hw_take_allocator(void *added, const char *value, const struct hw_option *option)
{
    struct hw_added *all = added;
    if (all->count < HW_ADDED_MOST) {
        all->names[all->count++] = value;
        return true;
    }
    hw_say("--%s: at most %d can be added", option->name, HW_ADDED_MOST);
    return false;
}

bool hw_same_file(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}
