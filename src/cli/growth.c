/* growth.c - see growth.h. */
#include "cli/growth.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/growing.h"
#include "cli/pager.h"
#include "report/view/merged.h"

static const char extension[] = ".hwprof";

/* ---- files ---- */

/* The length of what PATH and its sisters begin with: without ".hwprof", and without ".dumpN" before it. */
static size_t stem_of(const char *path)
{
    size_t size = strlen(path);
    if (size >= sizeof extension && !strcmp(path + size - (sizeof extension - 1), extension))
        size -= sizeof extension - 1;
    size_t digits = size;
    while (digits && isdigit((unsigned char)path[digits - 1]))
        digits--;
    const size_t word = strlen(".dump");
    return digits < size && digits > word && !strncmp(path + digits - word, ".dump", word) ? digits - word : size;
}

/* Whether NAME is STEM (SIZE bytes), perhaps ".dump" and a number, and the extension. */
static bool is_sister(const char *name, const char *stem, size_t size)
{
    if (strncmp(name, stem, size))
        return false;
    name += size;
    if (!strncmp(name, ".dump", 5)) {
        const size_t digits = strspn(name + 5, "0123456789");
        if (!digits)
            return false;
        name += 5 + digits;
    }
    return !strcmp(name, extension);
}

static bool add_file(struct hw_growth_run *run, const char *path, const struct hw_moment *moment)
{
    if (!HW_GROW(run->files, run->room, run->count + 1))
        return false;
    run->files[run->count++] = (struct hw_growth_file){.path = path, .moment = *moment};
    return true;
}

/* Adds the sisters of the first file. */
static bool find_sisters(struct hw_growth_run *run, const char *verb)
{
    const char *path = run->files[0].path, *slash = strrchr(path, '/');
    const struct hw_moment given = run->files[0].moment;
    const size_t folder = slash ? (size_t)(slash - path) + 1 : 0, stem = stem_of(path) - folder;
    char *directory = strndup(folder ? path : "./", folder ? folder : 2);
    DIR *list = directory ? opendir(directory) : NULL;
    bool fine = directory != NULL;
    size_t room = 0, count = 0;
    for (struct dirent *entry; fine && list && (entry = readdir(list));) {
        struct hw_error error;
        struct hw_moment moment;
        char *sister;
        if (!is_sister(entry->d_name, path + folder, stem) || !strcmp(entry->d_name, path + folder))
            continue;
        fine =
            HW_GROW(run->paths, room, count + 2) && asprintf(&sister, "%.*s%s", (int)folder, path, entry->d_name) >= 0;
        if (!fine)
            break;
        run->paths[count++] = sister;
        run->paths[count] = NULL;
        if (!hw_moment_read(sister, &moment, &error)) {
            hw_say("%s: %s: it is left out", verb, error.message);
            run->damaged = true;
            fine = add_file(run, sister, &(struct hw_moment){0});
            if (fine)
                run->files[run->count - 1].use = HW_GROWTH_DAMAGED;
        } else if (hw_moment_same_run(&given, &moment)) {
            fine = add_file(run, sister, &moment);
        }
    }
    if (list)
        closedir(list);
    free(directory);
    return fine;
}

/* Why a run cannot be followed over its dumps; NULL: it can. */
static const char *refusal(const struct hw_moment *moment)
{
    return moment->process.flags & HW_PROCESS_LLVM     ? "LLVM's heap profiles do not say what was live when"
           : moment->process.flags & HW_PROCESS_MERGED ? "it is a sum of several runs"
           : moment->process.mode == HW_MODE_ALLOCATOR
               ? "in allocator mode live bytes of places are estimates, and their error is not recorded; record the "
                 "dumps without --mode allocator"
               : NULL;
}

static int read_heads(struct hw_growth_run *run, const struct hw_view_arguments *names, char **paths, int count)
{
    int code = HW_VERB_FINE;
    for (int i = 0; i < count; i++) {
        struct hw_error error = {""};
        struct hw_moment moment;
        const char *why = NULL;
        if (!hw_moment_read(paths[i], &moment, &error)) {
            hw_say("%s: %s", names->verb, error.message);
            code = HW_VERB_USAGE;
        } else if ((why = refusal(&moment))) {
            hw_say("%s: %s: growth is not known: %s", names->verb, paths[i], why);
            code = HW_VERB_USAGE;
        } else if (run->count && !hw_moment_same_run(&run->files[0].moment, &moment)) {
            hw_say("%s: %s and %s are of different runs: heapwise diff compares those", names->verb, run->files[0].path,
                   paths[i]);
            code = HW_VERB_USAGE;
        } else if (!add_file(run, paths[i], &moment)) {
            hw_say("%s: not enough memory", names->verb);
            code = HW_VERB_USAGE;
        }
    }
    if (!code && count == 1 && !find_sisters(run, names->verb)) {
        hw_say("%s: not enough memory", names->verb);
        code = HW_VERB_USAGE;
    }
    return code;
}

static size_t count_used(const struct hw_growth_run *run)
{
    size_t used = 0;
    for (size_t i = 0; i < run->count; i++)
        used += run->files[i].use == HW_GROWTH_USED;
    return used;
}

int hw_growth_run_find(struct hw_growth_run *run, const struct hw_view_arguments *names, char **paths, int count,
                       size_t least)
{
    *run = (struct hw_growth_run){.count = 0};
    const int code = read_heads(run, names, paths, count);
    if (code)
        return code;
    hw_growth_order(run->files, run->count);
    if (count_used(run) >= least)
        return HW_VERB_FINE;
    hw_say("%s: %s: growth needs %s moments of a run or more: dumps by heapwise dump PID, or by "
           "HEAPWISE_OPTIONS=dump-interval=SECONDS",
           names->verb, paths[0], least == 2 ? "two" : "five");
    return HW_VERB_USAGE;
}

int hw_growth_run_open(struct hw_growth_run *run, const struct hw_view_arguments *names, char **paths, int count)
{
    const int code = hw_growth_run_find(run, names, paths, count, 2);
    if (code)
        return code;
    const int opened = hw_open_view(&run->newest, names, run->files[run->count - 1].path);
    return opened ? opened : run->damaged ? HW_VERB_USAGE : HW_VERB_FINE;
}

void hw_growth_run_close(struct hw_growth_run *run)
{
    hw_opened_close(&run->newest);
    for (size_t i = 0; run->paths && run->paths[i]; i++)
        free(run->paths[i]);
    free(run->paths);
    free(run->files);
}

/* ---- the report ---- */

static int print(struct hw_reporting *command, const struct hw_growth_run *run)
{
    struct hw_error error = {""};
    const struct hw_report_options *options = &command->report;
    const enum hw_by by = options->sums.shape == HW_SUMS_GROUPS ? options->sums.by : HW_BYS;
    int code = HW_VERB_FINE;
    struct hw_growth *growth = hw_growth_new(run->newest.view, run->files, run->count, by, options->full, &error);
    if (growth)
        hw_reporting_page(command);
    if (!growth || !(command->json ? hw_growth_json : hw_growth_text)(growth, options, stdout, &error)) {
        hw_say("%s: %s", command->names.verb, error.message);
        code = HW_VERB_USAGE;
    }
    hw_growth_free(growth);
    return code;
}

int hw_growth_report(struct hw_reporting *command)
{
    struct hw_growth_run run;
    struct hw_error error = {""};
    hw_reporting_terminal(command);
    int code = hw_growth_run_open(&run, &command->names, command->files, command->file_count);
    const struct hw_view *view = run.newest.view;
    if (view && command->names.view.function && !view->context_count) {
        hw_say_no_function(view, command->names.view.function, &error);
        hw_say("%s: %s", command->names.verb, error.message);
        code = HW_VERB_USAGE;
    } else if (view) {
        const int outcome = print(command, &run);
        code = code ? code : outcome;
    }
    hw_growth_run_close(&run);
    if (hw_pager_runs())
        hw_pager_end();
    return code;
}
