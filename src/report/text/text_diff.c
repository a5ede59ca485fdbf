/* text_diff.c - two profiles side by side, for a person. */
#include "report/compare/diff.h"

#include <stdlib.h>
#include <string.h>

#include "report/compare/diff_allocator.h"
#include "report/text/human.h"
#include "report/view/keeps.h"
#include "report/view/merged.h"
#include "report/text/text.h"

struct diff_text {
    const struct hw_diff *diff;
    const struct hw_diff_options *options;
    struct hw_text side[HW_SIDES]; /* the same page: stacks come from either */
};

/* ---- numbers ---- */

/* "+1.4 MiB". */
static const char *change(char *buffer, enum hw_measure_id id, uint64_t old, uint64_t new, bool utf8)
{
    char number[HW_HUMAN];
    snprintf(buffer, HW_HUMAN + 2, "%s%s",
             new > old   ? "+"
             : new < old ? "-"
                         : "",
             hw_text_measure(id, new > old ? new - old : old - new, utf8, number));
    return buffer;
}

/* "+4.4 %", "new", "gone". */
static const char *share(char *buffer, uint64_t old, uint64_t new)
{
    if (old != new && (!old || !new))
        return strcpy(buffer, new ? "new" : "gone");
    return hw_human_change(buffer, (double)old, (double)new);
}

/* ---- the summary ---- */

static void print_title(struct diff_text *text)
{
    const struct hw_page *page = &text->side[HW_NEW].page;
    hw_page_print(page, HW_HEADING, "Heap profiles compared");
    fputc('\n', page->stream);
    for (unsigned i = 0; i < page->width; i++)
        fputs(page->utf8 ? "\u2550" : "=", page->stream);
    fputc('\n', page->stream);
}

static void print_files(struct diff_text *text)
{
    static const char *const labels[] = {[HW_OLD] = "Old", [HW_NEW] = "New"};
    for (int side = 0; side < HW_SIDES; side++) {
        struct hw_text *of = &text->side[side];
        const struct hw_profile *profile = of->view->profile;
        const char *program = basename(profile->executable ? profile->executable : "");
        hw_buffer_clear(&of->line);
        hw_buffer_add(&of->line, "%s", hw_page_clean(&of->page, &of->cleaned, profile->path ? profile->path : ""));
        if (*program)
            hw_buffer_add(&of->line, ": %s", hw_page_clean(&of->page, &of->cleaned, program));
        if (hw_is_merged(profile))
            hw_buffer_add(&of->line, ", %s", HW_OF(profile->process.runs, "run"));
        else if (profile->duration_ns)
            hw_buffer_add(&of->line, ", %s", HW_NS(profile->duration_ns, of->page.utf8));
        hw_page_item(&of->page, labels[side], hw_buffer_text(&of->line));
    }
}

static void print_total(const struct hw_page *page, const char *label, enum hw_measure_id id, uint64_t old,
                        uint64_t new)
{
    char first[HW_HUMAN], second[HW_HUMAN], difference[HW_HUMAN + 2], part[HW_HUMAN + 8];
    hw_page_print(page, HW_STRONG, "%s", label);
    hw_page_pad(page, 26 - hw_text_width(label));
    fprintf(page->stream, "%*s %*s ", HW_RIGHT(13, hw_text_measure(id, old, page->utf8, first)),
            HW_RIGHT(13, hw_text_measure(id, new, page->utf8, second)));
    hw_page_print(page, old == new ? HW_PLAIN : HW_STRONG, "%*s",
                  HW_RIGHT(13, change(difference, id, old, new, page->utf8)));
    share(part, old, new);
    fprintf(page->stream, *part ? " %11s\n" : "%s\n", part);
}

static void print_totals(struct diff_text *text)
{
    static const struct {
        const char *label;
        enum hw_measure_id id;
    } rows[] = {{"Live at the peak", HW_MEASURE_PEAK},       {"Allocated", HW_MEASURE_BYTES},
                {"Allocations", HW_MEASURE_COUNT},           {"Not freed", HW_MEASURE_LEAKED},
                {"Blocks not freed", HW_MEASURE_LIVE_COUNT}, {"Temporary blocks", HW_MEASURE_TEMPORARY},
                {"Reallocations", HW_MEASURE_REALLOC},       {"Accesses", HW_MEASURE_ACCESSES},
                {"Never touched", HW_MEASURE_UNTOUCHED}};
    const struct hw_diff *diff = text->diff;
    const struct hw_page *page = &text->side[HW_NEW].page;
    fprintf(page->stream, "\n%39s %13s %13s\n", "old", "new", "change");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!hw_diff_unknown(diff, rows[i].id))
            print_total(page, rows[i].label, rows[i].id, diff->total[HW_OLD][rows[i].id],
                        diff->total[HW_NEW][rows[i].id]);
    const uint64_t old = hw_view_peak_rss(diff->view[HW_OLD]->profile),
                   new = hw_view_peak_rss(diff->view[HW_NEW]->profile);
    const uint64_t old_own = hw_view_own_memory(diff->view[HW_OLD]->profile),
                   new_own = hw_view_own_memory(diff->view[HW_NEW]->profile);
    const bool apart = old_own && new_own && old_own < old && new_own < new;
    if (apart)
        print_total(page, "Resident at most, about", HW_MEASURE_BYTES, old - old_own, new - new_own);
    if (old && new)
        print_total(page, apart ? "  with Heapwise's memory" : "Resident at most", HW_MEASURE_BYTES, old, new);
}

static void print_notes(struct diff_text *text)
{
    struct hw_text *of = &text->side[HW_NEW];
    struct hw_buffer notes = {0};
    hw_diff_notes(text->diff, &notes);
    if (notes.used)
        fputc('\n', of->page.stream);
    for (const char *at = hw_buffer_text(&notes); *at;) {
        const size_t size = strcspn(at, "\n");
        hw_buffer_clear(&of->line);
        hw_buffer_bytes(&of->line, at, size);
        hw_page_wrap(&of->page, 2, of->page.utf8 ? "\u2022" : "-",
                     hw_page_clean(&of->page, &of->cleaned, hw_buffer_text(&of->line)));
        at += size + (at[size] != '\0');
    }
    of->failed |= notes.failed;
    hw_buffer_free(&notes);
}

/* ---- places ---- */

static void add_fact(struct hw_buffer *facts, const struct hw_diff *diff, const struct hw_diff_place *place,
                     enum hw_measure_id id, bool utf8)
{
    const uint64_t old = place->value[HW_OLD][id], new = place->value[HW_NEW][id];
    char first[HW_HUMAN], second[HW_HUMAN];
    if (hw_diff_unknown(diff, id) || (!old && !new))
        return;
    const char *arrow = utf8 ? "\u2192" : "->";
    if (place->context[HW_OLD] == HW_NONE || place->context[HW_NEW] == HW_NONE)
        hw_buffer_add(facts, "%s %s\n", hw_measures[id].title, hw_text_measure(id, old ? old : new, utf8, first));
    else if (old == new)
        hw_buffer_add(facts, "%s %s as before\n", hw_measures[id].title, hw_text_measure(id, old, utf8, first));
    else
        hw_buffer_add(facts, "%s %s %s %s\n", hw_measures[id].title, hw_text_measure(id, old, utf8, first), arrow,
                      hw_text_measure(id, new, utf8, second));
}

/* Where the place is: in the new profile if it is there. */
static enum hw_diff_side side_of(const struct hw_diff_place *place)
{
    return place->context[HW_NEW] != HW_NONE ? HW_NEW : HW_OLD;
}

static void print_headline(struct diff_text *text, const struct hw_diff_place *place, size_t rank)
{
    const enum hw_measure_id id = text->options->sort;
    const enum hw_diff_side side = side_of(place);
    struct hw_text *of = &text->side[side];
    const struct hw_page *page = &of->page;
    const uint64_t old = place->value[HW_OLD][id], new = place->value[HW_NEW][id];
    char difference[HW_HUMAN + 2], part[HW_HUMAN + 8];
    hw_page_print(page, HW_PLAIN, "%3zu. ", rank);
    hw_page_print(page, new > old ? HW_ALERT : HW_STRONG, "%*s",
                  HW_RIGHT(11, change(difference, id, old, new, page->utf8)));
    fprintf(page->stream, " %9s  ", share(part, old, new));
    if (!hw_text_load(of, of->view->contexts[place->context[side]].sum.leaf)) {
        hw_page_print(page, HW_NAME, "(stack not known)\n");
        return;
    }
    const struct hw_view_frame *frame = &of->stack.frames[of->fold.headline];
    if (!frame->symbol->function && frame->module && hw_diff_is_nameless(text->diff, place)) {
        hw_page_print(page, HW_NAME, "%s: code without names\n",
                      hw_page_clean(page, &of->cleaned, frame->module->name));
        return;
    }
    bool placed;
    hw_text_named(of, frame, page->width - 28, &placed);
    fputc('\n', page->stream);
}

static void print_facts(struct diff_text *text, const struct hw_diff_place *place)
{
    static const enum hw_measure_id ids[] = {HW_MEASURE_PEAK, HW_MEASURE_BYTES, HW_MEASURE_COUNT, HW_MEASURE_LEAKED,
                                             HW_MEASURE_ACCESSES};
    const enum hw_diff_side side = side_of(place);
    struct hw_text *of = &text->side[side];
    struct hw_buffer facts = {0};
    if (place->context[HW_OLD] == HW_NONE)
        hw_buffer_add(&facts, "appeared\n");
    else if (place->context[HW_NEW] == HW_NONE)
        hw_buffer_add(&facts, "gone\n");
    bool listed = false;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        listed |= ids[i] == text->options->sort;
        add_fact(&facts, text->diff, place, ids[i], of->page.utf8);
    }
    if (!listed)
        add_fact(&facts, text->diff, place, text->options->sort, of->page.utf8);
    if (place->contexts[HW_OLD] && place->contexts[HW_NEW] && place->contexts[HW_OLD] + place->contexts[HW_NEW] > 2)
        hw_buffer_add(&facts, "sum of %s before and %s now\n", HW_OF(place->contexts[HW_OLD], "stack"),
                      HW_COUNT(place->contexts[HW_NEW]));
    else if (place->contexts[side] > 1)
        hw_buffer_add(&facts, "sum of %s\n", HW_OF(place->contexts[side], "stack"));
    hw_page_facts(&of->page, 5, hw_buffer_text(&facts));
    of->failed |= facts.failed;
    hw_buffer_free(&facts);
}

#define KEEPERS_MOST 3

/* Who keeps more or less of it than before; or who keeps it now, if that is all that was recorded. */
static void print_keepers(struct diff_text *text, uint32_t index)
{
    const struct hw_diff *diff = text->diff;
    struct hw_text *of = &text->side[HW_NEW];
    const bool both = diff->view[HW_OLD]->keeps && diff->view[HW_NEW]->keeps;
    struct hw_buffer facts = {0}, name = {0};
    size_t count = 0;
    struct hw_diff_keeper *keepers = diff->view[HW_NEW]->keeps ? hw_diff_keepers(diff, index, &count) : NULL;
    of->failed |= diff->view[HW_NEW]->keeps && !keepers;
    for (size_t i = 0; i < count && i < KEEPERS_MOST; i++) {
        const struct hw_diff_keeper *keeper = &keepers[i];
        const enum hw_diff_side side = keeper->keeper[HW_NEW] != HW_NONE ? HW_NEW : HW_OLD;
        const uint32_t module = diff->view[side]->keeps->keepers[keeper->keeper[side]].module;
        const uint64_t old = keeper->bytes[HW_OLD], new = keeper->bytes[HW_NEW];
        if (both && old == new)
            break;
        hw_buffer_clear(&name);
        hw_diff_keeper_name(diff, keeper, &name);
        if (module != HW_NONE)
            hw_buffer_add(&name, " (%s)", diff->view[side]->modules[module].name);
        hw_buffer_add(&facts, "%s%s ", i ? "" : "kept by ",
                      hw_page_clean(&of->page, &of->cleaned, hw_buffer_text(&name)));
        if (both)
            hw_buffer_add(&facts, "%s %s ", HW_BYTES(old), of->page.utf8 ? "\u2192" : "->");
        hw_buffer_add(&facts, "%s\n", HW_BYTES(new));
    }
    if (facts.used)
        hw_page_facts(&of->page, 5, hw_buffer_text(&facts));
    of->failed |= facts.failed || name.failed;
    hw_buffer_free(&facts);
    hw_buffer_free(&name);
    free(keepers);
}

static void print_title_of_list(struct diff_text *text, size_t count)
{
    const struct hw_measure *measure = &hw_measures[text->options->sort];
    struct hw_text *of = &text->side[HW_NEW];
    size_t appeared = 0, gone = 0;
    for (size_t i = 0; i < text->diff->count; i++) {
        appeared += text->diff->places[i].context[HW_OLD] == HW_NONE;
        gone += text->diff->places[i].context[HW_NEW] == HW_NONE;
    }
    hw_buffer_clear(&of->line);
    hw_buffer_add(&of->line, "What changed: %s", measure->title);
    hw_page_heading(&of->page, hw_buffer_text(&of->line));
    hw_buffer_clear(&of->line);
    hw_buffer_add(&of->line, "%s of %s changed; %s appeared, %s gone.", HW_COUNT(count),
                  HW_OF(text->diff->count, "place"), HW_COUNT(appeared), HW_COUNT(gone));
    hw_page_wrap(&of->page, 0, "", hw_buffer_text(&of->line));
    fputc('\n', of->page.stream);
}

static void print_places(struct diff_text *text)
{
    const size_t top = text->options->report.top ? text->options->report.top : 10;
    size_t count;
    uint32_t *order = hw_diff_sorted(text->diff, text->options->sort, &count);
    struct hw_text *of = &text->side[HW_NEW];
    if (!order) {
        of->failed = true;
        return;
    }
    print_title_of_list(text, count);
    for (size_t i = 0; i < count && i < top; i++) {
        const struct hw_diff_place *place = &text->diff->places[order[i]];
        struct hw_text *side = &text->side[side_of(place)];
        print_headline(text, place, i + 1);
        print_facts(text, place);
        print_keepers(text, order[i]);
        side->summed = place->contexts[side_of(place)] > 1;
        if (!hw_diff_is_nameless(text->diff, place) &&
            hw_text_load(side, side->view->contexts[place->context[side_of(place)]].sum.leaf))
            hw_text_stack(side);
    }
    if (count > top)
        hw_page_print(&of->page, HW_FAINT, "     %s and %s that changed (--top)\n", hw_page_ellipsis(&of->page),
                      HW_OF(count - top, "more place"));
    free(order);
}

/* ---- limits ---- */

static void print_limits(struct diff_text *text)
{
    const struct hw_page *page = &text->side[HW_NEW].page;
    if (!text->options->limit_count)
        return;
    hw_page_heading(page, "Limits");
    for (size_t i = 0; i < text->options->limit_count; i++) {
        const struct hw_diff_limit *limit = &text->options->limits[i];
        char difference[HW_HUMAN + 2];
        struct hw_buffer line = {0};
        hw_buffer_add(&line, "%s: %s, allowed are +%s", hw_measures[limit->id].key,
                      change(difference, limit->id, text->diff->total[HW_OLD][limit->id],
                             text->diff->total[HW_NEW][limit->id], page->utf8),
                      limit->text);
        hw_page_marked(page, limit->broken ? HW_ALERT : HW_FAINT, limit->broken ? "BROKEN" : "OK",
                       hw_buffer_text(&line));
        text->side[HW_NEW].failed |= line.failed;
        hw_buffer_free(&line);
    }
}

bool hw_diff_text(const struct hw_diff *diff, const struct hw_diff_options *options, FILE *stream,
                  struct hw_error *error)
{
    struct diff_text text = {.diff = diff, .options = options};
    for (int side = 0; side < HW_SIDES; side++)
        text.side[side] = hw_text_begin(diff->view[side], &options->report, stream);
    print_title(&text);
    print_files(&text);
    print_totals(&text);
    print_notes(&text);
    print_limits(&text);
    hw_diff_allocator_text(diff, &text.side[HW_NEW]);
    print_places(&text);
    bool failed = false;
    for (int side = 0; side < HW_SIDES; side++)
        failed |= !hw_text_done(&text.side[side]);
    if (failed)
        hw_error_set(error, "not enough memory for the report");
    return !failed;
}
