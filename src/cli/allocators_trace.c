/* allocators_trace.c - the traced run of heapwise allocators: under libheapwise-tracer.so, into a temporary folder. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/allocators.h"
#include "cli/cli.h"
#include "base/preload.h"

#define TRACER "libheapwise-tracer.so"
#define PACKER "libheapwise-packer.so"

/* Operations of a trace, recorded or not; 0: it is none. */
static uint64_t operations_of(const char *path)
{
    struct hw_trace_header header;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const bool fine = file >= 0 && read(file, &header, sizeof header) == (ssize_t)sizeof header;
    if (file >= 0)
        close(file);
    return fine && header.magic == HW_TRACE_MAGIC ? header.taken + header.operations : 0;
}

static uint64_t live_most(void)
{
    const long pages = sysconf(_SC_AVPHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size / 4 : 64u << 20;
}

/* Makes the course of the trace that has most; removes all traces. */
static bool take_busiest(struct hw_traced *traced, struct hw_error *error)
{
    char pattern[PATH_MAX + 16], path[PATH_MAX + 16];
    const char *best = NULL;
    glob_t found = {0};
    uint64_t most = 0;
    snprintf(pattern, sizeof pattern, "%s/*.trace", traced->folder);
    glob(pattern, 0, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const uint64_t operations = operations_of(found.gl_pathv[i]);
        if (operations > most) {
            most = operations;
            best = found.gl_pathv[i];
        }
    }
    hw_error_set(error, "no operations of the program could be traced");
    snprintf(path, sizeof path, "%s/course", traced->folder);
    const bool fine =
        best && strlen(path) < sizeof traced->path && hw_course_make(best, path, live_most(), &traced->course, error);
    snprintf(traced->path, sizeof traced->path, "%.*s", (int)sizeof traced->path - 1, path);
    for (size_t i = 0; i < found.gl_pathc; i++)
        unlink(found.gl_pathv[i]);
    globfree(&found);
    return fine;
}

static bool run_traced(struct hw_traced *traced, const struct hw_run_request *plain, const char *tracer,
                       struct hw_run_cost *cost, struct hw_error *error)
{
    struct hw_run_request request = *plain;
    request.preload = tracer;
    if (setenv(HW_TRACE_VARIABLE, traced->folder, 1) != 0) {
        hw_error_set(error, "not enough memory");
        return false;
    }
    const bool fine = hw_run_measure(&request, cost, error);
    unsetenv(HW_TRACE_VARIABLE);
    return fine;
}

/* Where LIBRARY of ours is. False with ERROR. */
static bool find_library(struct hw_preload *preload, const char *library, struct hw_error *error)
{
    char path[PATH_MAX], relative[128];
    preload->folder[0] = preload->path[0] = '\0';
    snprintf(relative, sizeof relative, HEAPWISE_LIBDIR "/%s", library);
    if (hw_installed_path(path, sizeof path, relative))
        return hw_preload_init(preload, path, error);
    hw_error_set(error, "cannot find %s: %s", library, strerror(errno));
    return false;
}

static void find_packer(struct hw_traced *traced, const struct hw_allocator *present)
{
    struct hw_error ignored;
    struct hw_allocator *packed = &traced->packed;
    const char *behind = present->preload.path;
    if (!find_library(&traced->packer, PACKER, &ignored))
        return;
    snprintf(packed->name, sizeof packed->name, "packed");
    if ((size_t)snprintf(packed->preload.path, sizeof packed->preload.path, "%s%s%s", traced->packer.path,
                         *behind ? ":" : "", behind) >= sizeof packed->preload.path) {
        hw_preload_free(&traced->packer);
        traced->packer.path[0] = '\0';
    }
}

bool hw_comparison_trace(struct hw_traced *traced, const struct hw_run_request *plain,
                         const struct hw_allocator *present, struct hw_run_cost *cost, struct hw_error *error)
{
    struct hw_preload preload;
    memset(traced, 0, sizeof *traced);
    memset(cost, 0, sizeof *cost);
    if (!find_library(&preload, TRACER, error))
        return false;
    bool fine = hw_comparison_folder(traced->folder, sizeof traced->folder);
    if (!fine) {
        hw_error_set(error, "no temporary folder can be made: %s", strerror(errno));
        traced->folder[0] = '\0';
    }
    fine = fine && run_traced(traced, plain, preload.path, cost, error) && !cost->interrupted &&
           take_busiest(traced, error);
    hw_preload_free(&preload);
    if (fine)
        find_packer(traced, present);
    else
        hw_comparison_trace_free(traced);
    return fine;
}

void hw_comparison_trace_free(struct hw_traced *traced)
{
    if (traced->path[0])
        unlink(traced->path);
    if (traced->folder[0])
        rmdir(traced->folder);
    traced->folder[0] = traced->path[0] = '\0';
    hw_preload_free(&traced->packer);
}
