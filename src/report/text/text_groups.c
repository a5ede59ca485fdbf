/* text_groups.c - tables of sums in a text report: by function, file, module …, and who calls a function. */
#include "report/text/text.h"

#include <string.h>

#include "report/text/human.h"
#include "report/view/groups.h"

#define USUAL_ROWS 20

const char *hw_text_measure(enum hw_measure_id measure, uint64_t value, bool utf8, char *buffer)
{
    switch (hw_measures[measure].unit) {
    case HW_UNIT_BYTES:
        return hw_human_bytes(buffer, value);
    case HW_UNIT_NS:
        return hw_human_ns(buffer, value, utf8);
    default:
        return hw_human_many(buffer, value);
    }
}

struct hw_view_frame hw_text_frame(const struct hw_view *view, uint32_t location, uint32_t frame)
{
    const struct hw_view_location *at = &view->locations[location];
    return (struct hw_view_frame){.symbol = &at->frames.frame[frame],
                                  .module = at->module == HW_NONE ? NULL : &view->modules[at->module],
                                  .address = at->address,
                                  .location = location};
}

static void print_value(struct hw_text *text, enum hw_measure_id measure, uint64_t value, uint64_t whole)
{
    char number[HW_HUMAN];
    hw_text_measure(measure, value, text->page.utf8, number);
    fprintf(text->page.stream, "%*s %8s", HW_RIGHT(10, number), HW_PERCENT((double)value, (double)whole));
}

/* ---- names of groups ---- */

/* The end of a path, at most COLUMNS wide. */
static const char *end_of_path(struct hw_text *text, const char *path, uint32_t line, size_t columns)
{
    const char *ellipsis = hw_page_ellipsis(&text->page);
    hw_page_clean(&text->page, &text->name, path);
    if (line)
        hw_buffer_add(&text->name, ":%u", (unsigned)line);
    const char *name = hw_buffer_text(&text->name);
    const size_t width = hw_text_width(name), mark = hw_text_width(ellipsis);
    if (text->options->full || width <= columns || columns <= mark)
        return name;
    hw_buffer_clear(&text->cleaned);
    hw_buffer_add(&text->cleaned, "%s%s", ellipsis, name + hw_text_cut(name, width - columns + mark));
    return hw_buffer_text(&text->cleaned);
}

/* A module, or what stands for code without one. WHY: what is missing, or "". */
static const char *module_name(struct hw_text *text, const struct hw_view_module *module, const char *why)
{
    hw_buffer_clear(&text->name);
    if (!module || module->kind == HW_MODULE_GENERATED)
        hw_buffer_add(&text->name, "(%s)", module ? "generated code" : "in no known module");
    else
        hw_page_clean(&text->page, &text->name, text->options->full ? module->path : module->name);
    hw_buffer_add(&text->name, "%s", why);
    return hw_buffer_text(&text->name);
}

const char *hw_text_group(struct hw_text *text, enum hw_by by, const struct hw_group *group, size_t columns)
{
    static const char not_known[] = "(not known)";
    struct hw_view_frame frame = {0};
    if (group->location != HW_NONE)
        frame = hw_text_frame(text->view, group->location, group->frame);
    switch (by) {
    case HW_BY_FILE:
    case HW_BY_LINE:
        return frame.symbol->file
                   ? end_of_path(text, frame.symbol->file, by == HW_BY_LINE ? frame.symbol->line : 0, columns)
                   : module_name(text, frame.module, " (no source known)");
    case HW_BY_MODULE:
        return module_name(text, frame.module, "");
    case HW_BY_TYPE:
        return group->name ? end_of_path(text, group->name, 0, columns) : not_known;
    case HW_BY_SIZE:
        hw_buffer_clear(&text->name);
        if (group->size_most > 16)
            hw_buffer_add(&text->name, "over %s, up to %s", HW_BYTES(group->size_most / 2), HW_BYTES(group->size_most));
        else
            hw_buffer_add(&text->name, group->size_most ? "up to 16 B" : not_known);
        return hw_buffer_text(&text->name);
    case HW_BY_THREAD:
        if (group->thread) {
            struct hw_buffer name = {0};
            const struct hw_view_thread *thread = &text->view->threads[group->thread - 1];
            hw_text_thread_name(text, thread, group->threads, group->names, columns, &name);
            hw_buffer_clear(&text->place);
            hw_buffer_add(&text->place, "%s", hw_buffer_text(&name));
            text->failed |= name.failed;
            hw_buffer_free(&name);
            return hw_buffer_text(&text->place);
        }
        if (group->main)
            return "the main thread";
        return frame.symbol ? hw_text_function(text, &frame, columns) : not_known;
    default:
        return hw_text_function(text, &frame, columns);
    }
}

/* ---- the tables ---- */

static size_t rows_shown(const struct hw_text *text, const struct hw_group *group, size_t count, uint64_t whole)
{
    const size_t top = text->options->top ? text->options->top : USUAL_ROWS;
    size_t shown = count < top ? count : top;
    while (!text->options->top && shown > 1 && group[shown - 1].total < whole / 1000)
        shown--;
    return shown;
}

static void print_heading(struct hw_text *text, enum hw_measure_id measure, const char *what)
{
    hw_buffer_clear(&text->line);
    hw_buffer_add(&text->line, "%s: %s%s", what, hw_measures[measure].sentence,
                  hw_view_sampled(text->view) ? " (estimated)" : "");
    hw_page_heading(&text->page, hw_page_cut(&text->page, &text->name, hw_buffer_text(&text->line), text->page.width));
}

/* What the table does not show, or cannot. */
static void print_notes(struct hw_text *text, enum hw_by by, bool threads)
{
    static const char *const notes[HW_BYS] = {
        [HW_BY_TYPE] = "Types are those that the allocating code uses the blocks as, where its debug information and the sizes "
                       "say it, or what programs built with heapwise cc say.",
        [HW_BY_THREAD] =
            "A thread is named after its start function, where call stacks reach that. Threads with the same "
            "start function are one row: for this value, and for parts of a profile, it is not recorded which of them "
            "allocated.",
        [HW_BY_SIZE] = "By the mean block size of each place: single blocks may be smaller or larger."};
    const struct hw_page *page = &text->page;
    fputc('\n', page->stream);
    if (threads)
        hw_page_wrap(page, 0, "", "A thread has its name and its start function. --section threads says more.");
    else if (notes[by])
        hw_page_wrap(page, 0, "", notes[by]);
    else
        hw_page_wrap(page, 0, "",
                     text->options->full
                         ? "Self: allocated in it. Total: also in what it calls; each call stack counts once."
                         : "Self: allocated in it. Total: also in what it calls; each call stack counts once. "
                           "--full adds allocation wrappers and start-up code.");
}

static bool print_groups(struct hw_text *text, enum hw_measure_id measure, void (*title)(struct hw_text *))
{
    const struct hw_page *page = &text->page;
    const enum hw_by by = text->options->sums.by;
    const bool of_frames = hw_by_keys[by].of_frames;
    const size_t column = of_frames ? 41 : 21;
    struct hw_groups groups;
    char what[32];
    if (!hw_groups_make(&groups, text->view, by, measure, text->options->full))
        return false;
    uint64_t whole = hw_measure_whole(text->view, measure);
    whole = whole > groups.total ? whole : groups.total;
    title(text);
    snprintf(what, sizeof what, "By %s", hw_by_keys[by].key);
    print_heading(text, measure, what);
    if (of_frames)
        hw_page_print(page, HW_FAINT, "%10s %8s ", "self", "share");
    hw_page_print(page, HW_FAINT, "%10s %8s  %s", "total", "share", hw_by_keys[by].title);
    fputc('\n', page->stream);
    const size_t shown = rows_shown(text, groups.group, groups.count, whole);
    for (size_t i = 0; i < shown; i++) {
        const struct hw_group *group = &groups.group[i];
        if (of_frames) {
            print_value(text, measure, group->self, whole);
            fputc(' ', page->stream);
        }
        print_value(text, measure, group->total, whole);
        fputs("  ", page->stream);
        const char *name = hw_text_group(text, by, group, page->width - column);
        hw_page_print(page, HW_NAME, "%s",
                      text->options->full ? name : hw_page_cut(page, &text->line, name, page->width - column));
        fputc('\n', page->stream);
    }
    if (groups.count > shown)
        fprintf(page->stream, "%*s%s and %s more\n", (int)column, "", hw_page_ellipsis(page),
                HW_COUNT(groups.count - shown));
    const uint64_t none = whole - groups.total + (of_frames ? groups.none : 0);
    if (none > whole / 1000) {
        print_value(text, measure, none, whole);
        fputs("  without a call stack, or not shown\n", page->stream);
    }
    print_notes(text, by, groups.count && groups.group[0].thread);
    hw_groups_free(&groups);
    return true;
}

/* ---- the sandwich ---- */

static void print_side(struct hw_text *text, enum hw_measure_id measure, const struct hw_sandwich *sandwich,
                       const char *heading, const struct hw_group *group, size_t count)
{
    const struct hw_page *page = &text->page;
    const uint64_t whole = sandwich->function.total;
    const size_t shown = rows_shown(text, group, count, whole);
    fputc('\n', page->stream);
    hw_page_print(page, HW_STRONG, "%s", heading);
    fputc('\n', page->stream);
    for (size_t i = 0; i < shown; i++) {
        print_value(text, measure, group[i].total, whole);
        fputs("  ", page->stream);
        hw_page_print(page, HW_NAME, "%s", hw_text_group(text, HW_BY_FUNCTION, &group[i], page->width - 21));
        fputc('\n', page->stream);
    }
    if (count > shown)
        fprintf(page->stream, "%*s%s and %s\n", 21, "", hw_page_ellipsis(page), HW_OF(count - shown, "more function"));
}

static void print_rest(struct hw_text *text, enum hw_measure_id measure, uint64_t value, uint64_t whole,
                       const char *what)
{
    if (!value)
        return;
    print_value(text, measure, value, whole);
    fprintf(text->page.stream, "  %s\n", what);
}

static void print_sandwich(struct hw_text *text, enum hw_measure_id measure, const struct hw_sandwich *sandwich)
{
    const struct hw_page *page = &text->page;
    const struct hw_group *function = &sandwich->function;
    const uint64_t whole = hw_measure_whole(text->view, measure);
    char total[HW_HUMAN], self[HW_HUMAN];
    hw_buffer_clear(&text->place);
    hw_buffer_add(&text->place, "%s",
                  hw_text_group(text, HW_BY_FUNCTION, function, page->width > 60 ? page->width - 40 : 20));
    if (sandwich->functions > 1)
        hw_buffer_add(&text->place, " and %zu more of that name", sandwich->functions - 1);
    print_heading(text, measure, hw_buffer_text(&text->place));
    if (!function->total) {
        hw_page_wrap(page, 0, "",
                     text->options->full
                         ? "Nothing of this is allocated in it or in what it calls."
                         : "Nothing of this is allocated in it or in what it calls. Allocation wrappers and start-up "
                           "code are left out: --full adds them.");
        return;
    }
    fprintf(page->stream, "Total %s, %s of the whole; self %s.\n",
            hw_text_measure(measure, function->total, page->utf8, total),
            HW_PERCENT((double)function->total, (double)whole),
            hw_text_measure(measure, function->self, page->utf8, self));
    print_side(text, measure, sandwich, "Called by", sandwich->callers, sandwich->caller_count);
    print_rest(text, measure, sandwich->uncalled, function->total, "(no caller known)");
    print_side(text, measure, sandwich, "Calls", sandwich->callees, sandwich->callee_count);
    print_rest(text, measure, function->self, function->total, "(self)");
    fputc('\n', page->stream);
    hw_page_wrap(page, 0, "",
                 "Shares are of the function's total. If it calls itself, callers are those of its outermost call, "
                 "callees those of its innermost one.");
}

/* ---- which of them ---- */

bool hw_text_sums(struct hw_text *text, void (*title)(struct hw_text *), struct hw_error *error)
{
    const struct hw_sums *sums = &text->options->sums;
    const enum hw_measure_id measure = hw_sums_measure(text->view, sums, error);
    struct hw_sandwich sandwich;
    if (measure == HW_MEASURES)
        return false;
    switch (sums->shape) {
    case HW_SUMS_SANDWICH:
        if (!hw_sandwich_make(&sandwich, text->view, sums->function, measure, text->options->full, error))
            return false;
        title(text);
        print_sandwich(text, measure, &sandwich);
        hw_sandwich_free(&sandwich);
        return true;
    case HW_SUMS_SOURCE:
        return hw_text_source(text, measure, title, error);
    case HW_SUMS_TREE:
        text->failed |= !hw_text_tree(text, measure, title);
        return true;
    default:
        text->failed |= !print_groups(text, measure, title);
        return true;
    }
}
