/* source.c - see source.h. */
#include "report/view/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/growing.h"
#include "base/order.h"
#include "report/buffer.h"
#include "report/view/frame_roles.h"
#include "report/view/function_names.h"

/* A line with numbers. */
struct wanted {
    const struct hw_frame *symbol;
    uint32_t module; /* HW_NONE: not known */
    uint64_t self, total;
    uint32_t file; /* of the source's */
    bool asked;    /* else it is shown if it is near one that is */
};

struct reading {
    const struct hw_view *view;
    const struct hw_source_options *options;
    struct hw_source *source;
    struct wanted *wanted;
    size_t count;
    size_t bytes; /* of lines, so far */
    struct hw_buffer line;
    bool failed;
};

/* ---- which lines ---- */

static struct hw_key key_of(const struct hw_frame *symbol)
{
    return hw_key_of(symbol->file, strlen(symbol->file), &symbol->line, sizeof symbol->line);
}

/* Fills LINES with those of the function WANTED. False when there is no memory; *FOUND is whether there is one. */
static bool lines_of(const struct hw_view *view, const char *wanted, struct hw_index *lines, bool *found)
{
    bool new;
    *found = false;
    for (int level = 0; level < HW_NAME_LEVELS && !*found; level++)
        for (size_t i = 0; i < view->location_count; i++)
            for (uint32_t k = 0; k < view->locations[i].frames.count; k++) {
                const struct hw_frame *symbol = &view->locations[i].frames.frame[k];
                if (!hw_is_called(symbol, wanted, level))
                    continue;
                *found = true;
                if (symbol->file && hw_index_intern(lines, key_of(symbol), 0, &new) == HW_INDEX_NONE)
                    return false;
            }
    return true;
}

static bool is_wanted(const struct reading *reading, const struct hw_index *lines, const struct hw_group *group)
{
    const struct hw_view_location *at = &reading->view->locations[group->location];
    const struct hw_frame *symbol = &at->frames.frame[group->frame];
    if (!symbol->file || !symbol->line)
        return false;
    if (reading->options->function)
        return hw_index_find(lines, key_of(symbol)) != HW_INDEX_NONE;
    return at->module != HW_NONE && reading->view->modules[at->module].kind == HW_MODULE_PROGRAM &&
           !(hw_location_role(at, group->frame) & HW_FRAME_LIBRARY);
}

static int compare_wanted(const void *left, const void *right)
{
    const struct wanted *a = left, *b = right;
    return HW_ORDER(a->file, b->file) ?: HW_ORDER(a->symbol->line, b->symbol->line);
}

/* The number of the file of a line; HW_INDEX_NONE: it is not in the source. NEW: it is put there. */
static uint32_t file_of(struct reading *reading, struct hw_index *files, const struct hw_frame *symbol, bool new)
{
    struct hw_source *source = reading->source;
    const struct hw_key key = hw_key_of(symbol->file, strlen(symbol->file), "", 0);
    uint32_t file = hw_index_find(files, key);
    if (file != HW_INDEX_NONE || !new)
        return file;
    file = hw_index_intern(files, key, (uint32_t)source->count, &new);
    if (file == HW_INDEX_NONE || !HW_GROW(source->file, source->room, source->count + 1))
        reading->failed = true;
    else
        source->file[source->count++] = (struct hw_source_file){.name = symbol->file};
    return file;
}

/* Numbers files in the order in which GROUPS has lines of them that are asked for; then takes all lines of these. */
static void want(struct reading *reading, const struct hw_groups *groups, const struct hw_index *lines)
{
    struct hw_index files = {0};
    reading->wanted = malloc((groups->count + 1) * sizeof *reading->wanted);
    reading->failed |= !reading->wanted;
    for (int all = 0; all < 2; all++)
        for (size_t i = 0; i < groups->count && !reading->failed; i++) {
            const struct hw_group *group = &groups->group[i];
            const struct hw_view_location *at = &reading->view->locations[group->location];
            const struct hw_frame *symbol = &at->frames.frame[group->frame];
            const bool asked = is_wanted(reading, lines, group);
            if (!symbol->file || !symbol->line || (!all && !asked))
                continue;
            const uint32_t file = file_of(reading, &files, symbol, !all);
            if (all && file != HW_INDEX_NONE)
                reading->wanted[reading->count++] =
                    (struct wanted){symbol, at->module, group->self, group->total, file, asked};
        }
    hw_index_free(&files);
    if (!reading->failed)
        qsort(reading->wanted, reading->count, sizeof *reading->wanted, compare_wanted);
}

/* ---- where a file is ---- */

static void trouble(struct reading *reading, struct hw_source_file *file, const char *text)
{
    free(file->problem);
    file->problem = strdup(text);
    reading->failed |= !file->problem;
}

/* NAME with NEW for OLD in front, into PATH. */
static bool moved(const struct hw_source_path *to, const char *name, struct hw_buffer *path)
{
    const size_t size = strlen(to->old);
    if (strncmp(name, to->old, size) || (name[size] && name[size] != '/' && size && to->old[size - 1] != '/'))
        return false;
    const char *rest = name + size + strspn(name + size, "/");
    hw_buffer_add(path, "%s%s%s", to->new, *rest && to->new[strlen(to->new) - 1] != '/' ? "/" : "", rest);
    return true;
}

/* The paths that a file may have, one after the other; false behind the last one. If it was moved, only to where the
 * options say. */
static bool candidate(const struct reading *reading, const char *name, size_t index, struct hw_buffer *path)
{
    const struct hw_source_options *options = reading->options;
    size_t places = 0;
    for (size_t i = 0; i < options->path_count; i++) {
        hw_buffer_clear(path);
        if (moved(&options->paths[i], name, path) && places++ == index)
            return true;
    }
    hw_buffer_clear(path);
    if (places)
        return false;
    const bool below = options->sysroot && *name == '/';
    hw_buffer_add(path, "%s%s", below && !index ? options->sysroot : "", name);
    return index < 1u + below;
}

/* The contents of a regular file, NUL-terminated, to be freed; NULL with WHY. */
static char *contents(const char *path, struct stat *status, const char **why, bool *failed)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    char *text = NULL;
    *why = NULL;
    if (fd < 0 || fstat(fd, status))
        *why = strerror(errno);
    else if (!S_ISREG(status->st_mode))
        *why = "not a regular file";
    else if ((size_t)status->st_size > HW_SOURCE_FILE)
        *why = "larger than 32 MiB";
    else if (!(text = malloc((size_t)status->st_size + 1)))
        *failed = true;
    size_t used = 0;
    for (ssize_t got = 1; text && got > 0 && used<(size_t)status->st_size; used += got> 0 ? (size_t)got : 0)
        if ((got = read(fd, text + used, (size_t)status->st_size - used)) < 0)
            *why = strerror(errno);
    if (text)
        text[used] = '\0';
    if (text && !*why && strlen(text) < used)
        *why = "not a text file";
    if (fd >= 0)
        close(fd);
    if (*why) {
        free(text);
        text = NULL;
    }
    return text;
}

/* The file as far as it can be found; it has a path then, else a problem. */
static char *find(struct reading *reading, struct hw_source_file *file, struct stat *status)
{
    struct hw_buffer path = {0}, tried = {0}, said = {0};
    char *text = NULL;
    const char *why = NULL;
    bool elsewhere = false;
    for (size_t i = 0; !text && !reading->failed && candidate(reading, file->name, i, &path); i++) {
        text = contents(hw_buffer_text(&path), status, &why, &reading->failed);
        elsewhere |= strcmp(hw_buffer_text(&path), file->name) != 0;
        hw_buffer_add(&tried, i ? ", " : "");
        hw_buffer_clean(&tried, hw_buffer_text(&path), HW_CLEAN_UTF8);
        hw_buffer_add(&tried, " (%s)", why ? why : "");
    }
    if (text) {
        file->path = strdup(hw_buffer_text(&path));
        reading->failed |= !file->path;
    } else {
        hw_buffer_clean(&said, file->name, HW_CLEAN_UTF8);
        hw_buffer_add(&said, ": %s%s",
                      elsewhere ? "cannot be read; tried "
                      : why     ? why
                                : "",
                      elsewhere ? hw_buffer_text(&tried) : "");
        trouble(reading, file, hw_buffer_text(&said));
    }
    reading->failed |= path.failed || tried.failed || said.failed;
    hw_buffer_free(&path);
    hw_buffer_free(&tried);
    hw_buffer_free(&said);
    return text;
}

/* ---- whether it is the right file ---- */

static uint64_t changed_ns(const struct stat *status)
{
    return status->st_mtim.tv_sec < 0
               ? 0
               : (uint64_t)status->st_mtim.tv_sec * 1000000000 + (uint64_t)status->st_mtim.tv_nsec;
}

/* Whether a file of STATUS was changed when the program was built already, or, where that is not known, had begun. */
static void check_age(struct reading *reading, struct hw_source_file *file, uint32_t number, const struct stat *status)
{
    const struct hw_view *view = reading->view;
    const struct hw_view_module *module = number == HW_NONE ? NULL : &view->modules[number];
    const char *sysroot = reading->options->sysroot;
    struct hw_buffer path = {0}, said = {0};
    struct stat program;
    if (module)
        hw_buffer_add(&path, "%s%s", sysroot ? sysroot : "", module->path);
    const bool built = module && module->usable && stat(hw_buffer_text(&path), &program) == 0;
    const uint64_t then = built ? changed_ns(&program) : view->profile->process.start_realtime_ns;
    if (then && changed_ns(status) > then) {
        hw_buffer_clean(&said, file->name, HW_CLEAN_UTF8);
        hw_buffer_add(&said, ": changed after ");
        hw_buffer_clean(&said, built ? module->name : "the run began", HW_CLEAN_UTF8);
        hw_buffer_add(&said, "%s: lines may have moved", built ? " was built" : "");
        trouble(reading, file, hw_buffer_text(&said));
    }
    reading->failed |= path.failed || said.failed;
    hw_buffer_free(&path);
    hw_buffer_free(&said);
}

static void check_lines(struct reading *reading, struct hw_source_file *file, uint32_t last, size_t lines)
{
    struct hw_buffer said = {0};
    if (last <= lines)
        return;
    hw_buffer_clean(&said, file->name, HW_CLEAN_UTF8);
    hw_buffer_add(&said, ": has %zu line%s, the program was built from at least %u: not the same file", lines,
                  lines == 1 ? "" : "s", (unsigned)last);
    trouble(reading, file, hw_buffer_text(&said));
    reading->failed |= said.failed;
    hw_buffer_free(&said);
}

/* ---- its lines ---- */

#define TAB 8

/* Fit to be shown anywhere: NULL when there is no memory. */
static char *shown_text(struct hw_buffer *line, const char *text)
{
    hw_buffer_clear(line);
    char *piece = strdup(text), *rest = piece, *part;
    if (!piece)
        return NULL;
    for (bool first = true; (part = strsep(&rest, "\t")); first = false) {
        const size_t width = hw_text_width(hw_buffer_text(line));
        if (!first)
            hw_buffer_add(line, "%*s", (int)(TAB - width % TAB), "");
        if (width < HW_SOURCE_WIDEST)
            hw_buffer_clean(line, part, HW_CLEAN_UTF8);
    }
    free(piece);
    const size_t fits = hw_text_cut(hw_buffer_text(line), HW_SOURCE_WIDEST);
    if (fits < line->used) {
        hw_buffer_cut(line, fits);
        hw_buffer_add(line, " …");
    }
    return line->failed ? NULL : strdup(hw_buffer_text(line));
}

/* The first line that is shown above WANTED's, whose file has the lines from 1 on. */
static uint32_t first_above(const struct wanted *wanted)
{
    const uint32_t line = wanted->symbol->line, start = wanted->symbol->start_line;
    const uint32_t near = line > HW_SOURCE_AROUND ? line - HW_SOURCE_AROUND : 1;
    return start && start <= line && line - start <= HW_SOURCE_ABOVE ? start : near;
}

/* The lines of TEXT that are shown, COUNT of WANTED among them; those that it does not have stay without a text. */
static void take_lines(struct reading *reading, struct hw_source_file *file, const struct wanted *wanted, size_t count,
                       char *text, const struct stat *status)
{
    size_t room = 0, lines = 0, next = 0;
    uint32_t until = 0; /* the last line that is shown behind one with numbers */
    char *rest = text && *text ? text : NULL, *at;
    while (!reading->failed && (at = strsep(&rest, "\n"))) {
        if (!rest && !*at)
            break; /* behind the last line end */
        const uint32_t number = (uint32_t)++lines;
        const bool counted = next < count && wanted[next].symbol->line == number;
        bool shown = number <= until;
        for (size_t i = next; i < count && !shown && wanted[i].symbol->line <= number + HW_SOURCE_ABOVE; i++)
            shown = wanted[i].asked && first_above(&wanted[i]) <= number;
        if (counted && wanted[next].asked)
            until = number + HW_SOURCE_AROUND;
        if (!shown) {
            next += counted;
            continue;
        }
        reading->failed |= !HW_GROW(file->line, room, file->line_count + 1);
        at[strcspn(at, "\r")] = '\0';
        char *line = reading->failed ? NULL : shown_text(&reading->line, at);
        reading->failed |= !line;
        if (reading->failed)
            break;
        reading->bytes += strlen(line) + 1;
        file->line[file->line_count++] = (struct hw_source_line){.number = number,
                                                                 .counted = counted,
                                                                 .self = counted ? wanted[next].self : 0,
                                                                 .total = counted ? wanted[next].total : 0,
                                                                 .text = line};
        next += counted;
    }
    if (text)
        check_age(reading, file, wanted[0].module, status);
    if (text)
        check_lines(reading, file, wanted[count - 1].symbol->line, lines);
    reading->failed |= !HW_GROW(file->line, room, file->line_count + (count - next) + 1);
    for (; next < count && !reading->failed; next++)
        if (wanted[next].asked)
            file->line[file->line_count++] = (struct hw_source_line){.number = wanted[next].symbol->line,
                                                                     .counted = true,
                                                                     .self = wanted[next].self,
                                                                     .total = wanted[next].total};
}

static void read_file(struct reading *reading, struct hw_source_file *file, const struct wanted *wanted, size_t count)
{
    struct stat status = {0};
    char *text = NULL;
    if (reading->bytes < HW_SOURCE_MOST) {
        text = find(reading, file, &status);
    } else {
        hw_buffer_clear(&reading->line);
        hw_buffer_clean(&reading->line, file->name, HW_CLEAN_UTF8);
        hw_buffer_add(&reading->line, ": left out: the lines of other files take %zu MiB already",
                      HW_SOURCE_MOST >> 20);
        trouble(reading, file, hw_buffer_text(&reading->line));
    }
    if (!reading->failed)
        take_lines(reading, file, wanted, count, text, &status);
    free(text);
}

/* ---- all of it ---- */

struct hw_source *hw_source_new(const struct hw_view *view, enum hw_measure_id measure, bool full,
                                const struct hw_source_options *options, struct hw_error *error)
{
    struct reading reading = {.view = view, .options = options, .source = calloc(1, sizeof *reading.source)};
    struct hw_groups groups = {0};
    struct hw_index lines = {0};
    bool found = true;
    reading.failed = !reading.source || (options->function && !lines_of(view, options->function, &lines, &found));
    if (!reading.failed && found) {
        reading.failed = !hw_groups_make(&groups, view, HW_BY_LINE, measure, full);
        if (!reading.failed)
            want(&reading, &groups, &lines);
        const uint64_t whole = hw_measure_whole(view, measure);
        reading.source->whole = whole > groups.total ? whole : groups.total;
    }
    for (size_t i = 0, count; i < reading.count && !reading.failed; i += count) {
        const uint32_t file = reading.wanted[i].file;
        for (count = 1; i + count < reading.count && reading.wanted[i + count].file == file;)
            count++;
        read_file(&reading, &reading.source->file[file], reading.wanted + i, count);
    }
    if (!reading.failed && !found)
        hw_say_no_function(view, options->function, error);
    else if (reading.failed)
        hw_error_set(error, "not enough memory for source lines");
    hw_index_free(&lines);
    hw_groups_free(&groups);
    free(reading.wanted);
    reading.failed |= reading.line.failed || !found;
    hw_buffer_free(&reading.line);
    if (!reading.failed)
        return reading.source;
    hw_source_free(reading.source);
    return NULL;
}

void hw_source_free(struct hw_source *source)
{
    for (size_t i = 0; source && i < source->count; i++) {
        struct hw_source_file *file = &source->file[i];
        for (size_t k = 0; k < file->line_count; k++)
            free(file->line[k].text);
        free(file->line);
        free(file->path);
        free(file->problem);
    }
    if (source)
        free(source->file);
    free(source);
}
