/* text_fields.c - structs as they lie in cache lines: a bar a field, and a better layout where there is one. */
#include <inttypes.h>
#include <string.h>

#include "report/view/analyse.h"
#include "report/view/merged.h"
#include "report/view/sampled_fields.h"
#include "report/text/human.h"
#include "report/words/not_observed.h"
#include "report/text/text.h"

#define USUAL_STRUCTS 5
#define NAME_COLUMNS  22
#define BAR_COLUMNS   14
#define SAMPLED_BAR   8 /* beside the uncertainty */
#define SEVERAL_ROWS  3 /* fields nobody accesses that follow one another: more become one row */

/* ---- one struct: its head ---- */

static void add_objects(const struct hw_struct_analysis *of, struct hw_buffer *out)
{
    const struct hw_objects *objects = &of->objects;
    if (objects->placement == HW_PLACE_UNKNOWN) {
        hw_buffer_add(out, "number of objects not known");
        return;
    }
    hw_buffer_add(out, "%s at once (%s), %s", HW_OF(objects->live, "object"), HW_BYTES(objects->live_bytes),
                  objects->placement == HW_PLACE_ARRAY ? "in arrays" : "a block each");
    if (objects->by_size)
        hw_buffer_add(out, ", matched by block size, not by type");
}

static void print_head(struct hw_text *text, const struct hw_struct_analysis *of)
{
    const struct hw_page *page = &text->page;
    const struct hw_profile_struct *structure = of->structure;
    const uint64_t accesses = hw_add_saturating(structure->reads, structure->writes);
    struct hw_buffer facts = {0};
    hw_buffer_add(&facts, "%s in %s\n", HW_OF(structure->size, "byte"),
                  HW_OF((structure->size + HW_LINE - 1) / HW_LINE, "line"));
    add_objects(of, &facts);
    const bool sampled = hw_view_fields(text->view)->sampled;
    hw_buffer_add(&facts, "\n%s (%s reads)\n",
                  sampled ? HW_OF(accesses, accesses == 1 ? "sampled access" : "sampled accesse")
                          : HW_OF(accesses, accesses == 1 ? "access" : "accesse"),
                  HW_PERCENT((double)structure->reads, (double)accesses));
    const uint64_t inherited = hw_add_saturating(structure->inherited_reads, structure->inherited_writes);
    if (inherited)
        hw_buffer_add(&facts, "%s of them as part of other types\n", HW_PERCENT((double)inherited, (double)accesses));
    if (of->lines.per_use > 0) {
        hw_buffer_add(&facts, "%s, each %s lines for %s bytes\n",
                      HW_OF(hw_count_of(of->visits.executions), sampled ? "sampled use" : "use"),
                      HW_RATIO(of->lines.per_use), HW_RATIO(of->lines.bytes_needed));
        if (of->objects.starts_assumed)
            hw_buffer_add(&facts, "a mean over all places in a line where they can begin\n");
        if (of->fragmentation >= 0.0005)
            hw_buffer_add(&facts, "%s of the bytes loaded into the cache are not used\n",
                          HW_PERCENT(of->fragmentation, 1));
    }
    if (text->options->full)
        hw_buffer_add(&facts, "adjacent-field ratio (EfficiencySanitizer): %s\n", HW_COUNT(of->rfc_ratio));
    hw_page_facts(page, 0, hw_buffer_text(&facts));
    text->failed |= facts.failed;
    hw_buffer_free(&facts);
}

/* ---- one struct: its fields ---- */

static void print_bar(struct hw_text *text, uint64_t value, uint64_t most, unsigned columns)
{
    const struct hw_page *page = &text->page;
    static const char *const eighths[] = {"", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a", "\u2589"};
    const unsigned parts = page->utf8 ? 8 : 1;
    unsigned units = most ? (unsigned)((double)value / (double)most * columns * parts + 0.5) : 0;
    if (value && !units)
        units = 1;
    hw_page_print(page, HW_NAME, "%s", "");
    struct hw_buffer bar = {0};
    for (unsigned i = 0; i < units / parts; i++)
        hw_buffer_add(&bar, "%s", page->utf8 ? "\u2588" : "#");
    hw_buffer_add(&bar, "%s", eighths[units % parts]);
    hw_page_print(page, value * 4 > most ? HW_ALERT : HW_NAME, "%s", hw_buffer_text(&bar));
    hw_page_pad(page, columns - units / parts - (units % parts != 0));
    text->failed |= bar.failed;
    hw_buffer_free(&bar);
}

/* "── line 1 ────────". */
static void print_line_border(struct hw_text *text, uint64_t line)
{
    const struct hw_page *page = &text->page;
    char label[48];
    const int width = snprintf(label, sizeof label, "line %" PRIu64 " ", line);
    struct hw_buffer rule = {0};
    hw_buffer_add(&rule, "%s %s", page->utf8 ? "\u2500\u2500" : "--", label);
    for (unsigned i = 3 + (unsigned)width; i < page->width; i++)
        hw_buffer_add(&rule, "%s", page->utf8 ? "\u2500" : "-");
    hw_page_print(page, HW_FAINT, "%s\n", hw_buffer_text(&rule));
    text->failed |= rule.failed;
    hw_buffer_free(&rule);
}

struct rows {
    struct hw_text *text;
    const struct hw_struct_analysis *of;
    uint64_t most, all; /* accesses: of the hottest field, of all */
    uint64_t end;       /* bytes below are shown */
    uint64_t line;      /* the next border to print */
    bool sampled;
};

static void cross_lines(struct rows *rows, uint64_t offset)
{
    const uint64_t line = offset / HW_LINE;
    if (line < rows->line)
        return;
    print_line_border(rows->text, line);
    rows->line = line + 1;
}

static void print_padding(struct rows *rows, uint64_t to)
{
    const struct hw_page *page = &rows->text->page;
    while (rows->end < to) { /* apart for each line */
        const uint64_t border = (rows->end / HW_LINE + 1) * HW_LINE, end = to < border ? to : border;
        cross_lines(rows, rows->end);
        hw_page_print(page, HW_FAINT, "%6" PRIu64 " %6" PRIu64 "  (padding)", rows->end, end - rows->end);
        fputc('\n', page->stream);
        rows->end = end + (to - end) / HW_LINE * HW_LINE; /* whole lines of it are one row */
        if (rows->end > to)
            rows->end = to;
    }
}

static uint64_t accesses_of(const struct hw_profile_field *field)
{
    return hw_add_saturating(field->reads, field->writes);
}

static const char *field_name(struct rows *rows, const struct hw_profile_field *field)
{
    struct hw_text *text = rows->text;
    const bool full = text->options->full;
    hw_buffer_clear(&text->name);
    hw_buffer_add(&text->name, "%s%s", field->flags & HW_FIELD_UNION ? "| " : "",
                  hw_page_clean(&text->page, &text->cleaned, field->name));
    if (field->size && field->offset / HW_LINE != (field->offset + field->size - 1) / HW_LINE && field->size < HW_LINE)
        hw_buffer_add(&text->name, " (astride)");
    if (full)
        return hw_buffer_text(&text->name);
    return hw_page_cut(&text->page, &text->line, hw_buffer_text(&text->name), NAME_COLUMNS);
}

/* By pointers to the base, or to the struct by value, that it lies in: whose part that is then, is not known. */
static bool is_possibly_used(const struct hw_profile_field *field)
{
    return field->possible_reads || field->possible_writes;
}

/* Two standard errors, in percentage points, in 7 columns. */
static void print_error(const struct rows *rows, const struct hw_profile_field *field)
{
    const struct hw_page *page = &rows->text->page;
    if (field->share_error < 0)
        fprintf(page->stream, page->utf8 ? "  \u00b1?   " : " +-?   ");
    else
        fprintf(page->stream, page->utf8 ? "  \u00b1%-4.1f" : " +-%-4.1f", 100 * field->share_error);
}

static void print_field(struct rows *rows, const struct hw_profile_field *field)
{
    const struct hw_page *page = &rows->text->page;
    const uint64_t accesses = accesses_of(field);
    print_padding(rows, field->offset);
    cross_lines(rows, field->offset);
    char size[32];
    if (field->flags & HW_FIELD_BITS)
        snprintf(size, sizeof size, ":%u", (unsigned)field->bit_size);
    else
        snprintf(size, sizeof size, "%" PRIu64, field->size);
    fprintf(page->stream, "%6" PRIu64 " %6s  ", field->offset, size);
    const char *name = field_name(rows, field);
    hw_page_print(page, accesses ? HW_PLAIN : HW_FAINT, "%s", name);
    const size_t width = hw_text_width(name);
    if (accesses) {
        hw_page_pad(page, 1 + (width < NAME_COLUMNS ? NAME_COLUMNS - width : 0));
        print_bar(rows->text, accesses, rows->most, rows->sampled ? SAMPLED_BAR : BAR_COLUMNS);
        fprintf(page->stream, " %7s", HW_PERCENT((double)accesses, (double)rows->all));
        if (rows->sampled)
            print_error(rows, field);
        fprintf(page->stream, rows->sampled ? " %8s %8s" : " %9s %9s", field->reads ? HW_MANY(field->reads) : "-",
                field->writes ? HW_MANY(field->writes) : "-");
    } else {
        hw_page_pad(page, 1 + (width < NAME_COLUMNS ? NAME_COLUMNS - width : 0));
        hw_page_print(page, HW_FAINT,
                      rows->sampled                     ? "no samples"
                      : field->unseen                   ? "not by code that counts"
                      : is_possibly_used(field)         ? "as a part alone"
                      : field->flags & HW_FIELD_ESCAPES ? "only its address is passed on"
                      : field->flags & HW_FIELD_ARRAY   ? "never accessed directly"
                                                        : "never accessed");
    }
    fputc('\n', page->stream);
    if (field->offset + field->size > rows->end)
        rows->end = field->offset + field->size;
}

/* Fields from FIRST on that nobody accesses and that lie in one line, without padding between them. */
static size_t unused_run(const struct hw_struct_analysis *of, size_t first)
{
    const struct hw_profile_field *fields = of->units.fields;
    size_t i = first;
    while (i < of->structure->field_count && !accesses_of(&fields[i]) && !(fields[i].flags & HW_FIELD_ESCAPES) &&
           !fields[i].unseen && !is_possibly_used(&fields[i]) &&
           fields[i].offset / HW_LINE == fields[first].offset / HW_LINE)
        i++;
    return i - first;
}

static void print_unused(struct rows *rows, size_t first, size_t count)
{
    const struct hw_page *page = &rows->text->page;
    const struct hw_profile_field *from = &rows->of->units.fields[first], *last = from + count - 1;
    const uint64_t end = last->offset + last->size;
    print_padding(rows, from->offset);
    cross_lines(rows, from->offset);
    hw_page_print(page, HW_FAINT, "%6" PRIu64 " %6" PRIu64 "  %zu fields (%s", from->offset, end - from->offset, count,
                  hw_page_cut(page, &rows->text->line, hw_page_clean(page, &rows->text->cleaned, from->name), 20));
    hw_page_print(page, HW_FAINT, " to %s): %s\n",
                  hw_page_cut(page, &rows->text->line, hw_page_clean(page, &rows->text->cleaned, last->name), 20),
                  rows->sampled ? "no samples" : "never accessed");
    if (end > rows->end)
        rows->end = end;
}

static void print_fields(struct hw_text *text, const struct hw_struct_analysis *of)
{
    const struct hw_profile_field *fields = of->units.fields;
    const bool sampled = hw_view_fields(text->view)->sampled;
    struct rows rows = {.text = text,
                        .of = of,
                        .all = hw_add_saturating(of->structure->reads, of->structure->writes),
                        .sampled = sampled};
    for (size_t i = 0; i < of->structure->field_count; i++)
        if (accesses_of(&fields[i]) > rows.most)
            rows.most = accesses_of(&fields[i]);
    if (sampled)
        hw_page_print(&text->page, HW_FAINT, "%6s %6s  %-*s %-*s%7s %8s %8s", "offset", "bytes", NAME_COLUMNS, "field",
                      SAMPLED_BAR + 8, "samples", "", "reads", "writes");
    else
        hw_page_print(&text->page, HW_FAINT, "%6s %6s  %-*s %-*s %7s %9s %9s", "offset", "bytes", NAME_COLUMNS,
                      "field", BAR_COLUMNS, "accesses", "", "reads", "writes");
    fputc('\n', text->page.stream);
    for (size_t i = 0; i < of->structure->field_count;) {
        const size_t unused = text->options->full ? 0 : unused_run(of, i);
        if (unused > SEVERAL_ROWS)
            print_unused(&rows, i, unused);
        else
            print_field(&rows, &fields[i]);
        i += unused > SEVERAL_ROWS ? unused : 1;
    }
    if (!(of->structure->flags & HW_STRUCT_FLEXIBLE))
        print_padding(&rows, of->structure->size);
}

/* ---- one struct: what follows ---- */

#define USUAL_USES 3

/* What is used together: the most frequent uses. */
static void print_uses(struct hw_text *text, const struct hw_struct_analysis *of)
{
    const struct hw_visits *visits = &of->visits;
    const size_t most = text->options->full ? visits->count : USUAL_USES, names = text->options->full ? SIZE_MAX : 8;
    struct hw_buffer line = {0};
    for (size_t i = 0; i < visits->count && i < most; i++) {
        const struct hw_visit *visit = &visits->visits[i];
        if (i && !text->options->full && visit->executions < visits->executions / 1000)
            break;
        hw_buffer_add(&line, "%s%s ", i ? "\n" : "", HW_PERCENT(visit->executions, visits->executions));
        for (size_t k = 0; k < visit->touch_count && k < names; k++)
            hw_buffer_add(&line, "%s%s", k ? ", " : "",
                          hw_page_clean(&text->page, &text->cleaned,
                                        of->units.fields[visits->touches[visit->first_touch + k].field].name));
        if (visit->touch_count > names)
            hw_buffer_add(&line, " and %zu more", visit->touch_count - names);
    }
    if (line.used)
        hw_page_item(&text->page, "Uses", hw_buffer_text(&line));
    text->failed |= line.failed;
    hw_buffer_free(&line);
}

/* Pairs as sampled windows saw them. */
static void print_windows(struct hw_text *text, const struct hw_struct_analysis *of)
{
    struct hw_buffer line = {0};
    hw_buffer_add(&line, "accesses in %s:", HW_OF(hw_view_fields(text->view)->info.windows, "window"));
    size_t shown = 0;
    for (size_t i = 0; i < of->affinity_count; i++) {
        const struct hw_affinity *pair = &of->affinity[i];
        if (!pair->weight)
            continue;
        hw_buffer_add(&line, "%s %s", shown++ ? ";" : "",
                      hw_page_clean(&text->page, &text->cleaned, of->units.fields[pair->a].name));
        hw_buffer_add(&line, " + %s %s", hw_page_clean(&text->page, &text->cleaned, of->units.fields[pair->b].name),
                      HW_MANY(pair->weight));
    }
    if (shown)
        hw_page_item(&text->page, "Windows", hw_buffer_text(&line));
    text->failed |= line.failed;
    hw_buffer_free(&line);
}

/* "new_order (program.c:19)", in OUT. */
static void add_place(struct hw_text *text, const struct hw_view_context *context, struct hw_buffer *out)
{
    if (!hw_text_load(text, context->sum.leaf)) {
        hw_buffer_add(out, "(stack not known)");
        return;
    }
    const struct hw_view_frame *frame = &text->stack.frames[text->fold.headline];
    hw_buffer_add(out, "%s", hw_text_function(text, frame, 48));
    const char *place = hw_text_place(text, frame);
    hw_buffer_add(out, *place ? " (%s)" : "%s", place);
}

#define PLACES 4

/* Whose structs these are: the places that allocate them, the first ones. */
static void print_contexts(struct hw_text *text, const struct hw_struct_analysis *of)
{
    const struct hw_objects *objects = &of->objects;
    struct hw_buffer names[PLACES] = {0}, name = {0}, line = {0};
    uint64_t blocks[PLACES] = {0}, rest = 0;
    size_t count = 0;
    for (size_t i = 0; i < objects->context_count && !text->failed; i++) {
        const struct hw_view_context *context = &text->view->contexts[objects->contexts[i]];
        size_t at = 0;
        hw_buffer_clear(&name);
        add_place(text, context, &name);
        while (at < count && strcmp(hw_buffer_text(&names[at]), hw_buffer_text(&name)))
            at++;
        if (at == count && count < PLACES)
            hw_buffer_add(&names[count++], "%s", hw_buffer_text(&name));
        uint64_t *sum = at < count ? &blocks[at] : &rest;
        *sum = hw_add_saturating(*sum, context->sum.allocations);
    }
    for (size_t i = 0; i < count; i++)
        hw_buffer_add(&line, "%s%s, %s", i ? "; " : "", hw_buffer_text(&names[i]), HW_OF(blocks[i], "block"));
    if (rest)
        hw_buffer_add(&line, "; elsewhere %s", HW_OF(rest, "block"));
    if (count)
        hw_page_item(&text->page, "Allocated", hw_buffer_text(&line));
    text->failed |= line.failed || name.failed;
    for (size_t i = 0; i < PLACES; i++) {
        text->failed |= names[i].failed;
        hw_buffer_free(&names[i]);
    }
    hw_buffer_free(&name);
    hw_buffer_free(&line);
}

static void print_definition(struct hw_text *text, const struct hw_struct_analysis *of)
{
    const struct hw_page *page = &text->page;
    struct hw_buffer definition = {0};
    hw_add_definition(&definition, of);
    for (const char *at = hw_buffer_text(&definition); *at;) {
        const size_t size = strcspn(at, "\n");
        fprintf(page->stream, size ? "    %.*s\n" : "\n", (int)size, at);
        at += size + (at[size] != '\0');
    }
    text->failed |= definition.failed;
    hw_buffer_free(&definition);
}

static void print_suggestion(struct hw_text *text, const struct hw_struct_analysis *of)
{
    const struct hw_suggestion *suggestion = &of->suggestion;
    const char *reason = hw_layout_reason(of->units.verdict);
    struct hw_buffer line = {0};
    if (!reason && hw_view_fields(text->view)->sampled && of->visits.executions < HW_SAMPLED_USES) {
        hw_buffer_add(&line, "None: %d sampled uses are needed for that.", HW_SAMPLED_USES);
    } else if (suggestion->kind == HW_SUGGEST_NOTHING) {
        hw_buffer_add(&line, reason ? "The order stays: %s." : "No other order is better.%s", reason ? reason : "");
    } else {
        hw_buffer_add(&line, "%s lines per use instead of %s", HW_RATIO(suggestion->lines.per_use),
                      HW_RATIO(of->lines.per_use));
        if (suggestion->hot.size != of->structure->size)
            hw_buffer_add(&line, ", %" PRIu64 " bytes instead of %" PRIu64, suggestion->hot.size, of->structure->size);
        if (suggestion->kind == HW_SUGGEST_SPLIT)
            hw_buffer_add(&line, " and a second part of %" PRIu64, suggestion->cold.size);
        hw_buffer_add(&line, ":");
    }
    hw_page_item(&text->page, "Suggestion", hw_buffer_text(&line));
    text->failed |= line.failed;
    hw_buffer_free(&line);
    if (suggestion->kind != HW_SUGGEST_NOTHING)
        print_definition(text, of);
}

static void print_struct(struct hw_text *text, const struct hw_struct_analysis *of)
{
    const struct hw_page *page = &text->page;
    const struct hw_profile_struct *structure = of->structure;
    struct hw_buffer title = {0};
    hw_add_struct_name(&title, structure, page->utf8 ? HW_CLEAN_UTF8 : HW_CLEAN_ASCII);
    if (*structure->file)
        hw_buffer_add(
            &title, "  %s:%" PRIu32,
            hw_page_clean(page, &text->cleaned, text->options->full ? structure->file : basename(structure->file)),
            structure->line);
    hw_page_heading(page, text->options->full ? hw_buffer_text(&title)
                                              : hw_page_cut(page, &text->line, hw_buffer_text(&title), page->width));
    text->failed |= title.failed;
    hw_buffer_free(&title);
    print_head(text, of);
    fputc('\n', page->stream);
    print_fields(text, of);
    fputc('\n', page->stream);
    print_uses(text, of);
    if (text->options->full)
        print_windows(text, of);
    print_contexts(text, of);
    print_suggestion(text, of);
}

/* ---- all structs ---- */

bool hw_report_wants_struct(const struct hw_report_options *options, const struct hw_profile_struct *structure)
{
    const char *name = options->structure;
    if (!name)
        return true;
    if (strncmp(name, "struct ", 7) == 0)
        name += 7;
    return strcmp(name, structure->name) == 0;
}

bool hw_report_wants_finding(const struct hw_report_options *options, const struct hw_analysis *analysis,
                             const struct hw_finding *finding)
{
    if (finding->structure == SIZE_MAX)
        return !options->structure;
    return hw_report_wants_struct(options, analysis->structs[finding->structure].structure);
}

/* Brings lines in, or has a thousandth of the accesses. */
static bool is_notable(const struct hw_profile_fields *fields, const struct hw_struct_analysis *of)
{
    const uint64_t all = hw_add_saturating(fields->attributed_reads, fields->attributed_writes);
    return of->lines.missed > 0.001 * (double)all ||
           hw_add_saturating(of->structure->reads, of->structure->writes) >= all / 1000;
}

/* Why there are neither counted nor sampled fields. */
static void print_none(struct hw_text *text)
{
    const struct hw_profile *profile = text->view->profile;
    const char *why =
        !profile->accesses_sampled
            ? "Fields were not counted: build the program with heapwise cc --fields, or sample the accesses of any program "
              "that has debug information: heapwise record --fields -- PROGRAM"
        : hw_is_merged(profile) ? "In merged profiles there are no sampled fields: use the profiles of the single runs."
        : !profile->sample_access_count
            ? "No sampled access fell on a block of the heap: let the program run longer, or sample more often "
              "(heapwise record --fields=250)."
            : "The types of blocks were not looked for: that needs the program and its libraries, with debug information.";
    hw_page_wrap(&text->page, 0, "", why);
}

static const char *share_of(uint64_t part, uint64_t whole)
{
    return HW_PERCENT((double)part, (double)whole);
}

/* What the samples are, and what is not in the structs. */
static void print_sampled(struct hw_text *text)
{
    const struct hw_sampled_fields *sampled = text->view->sampled_fields;
    const struct hw_sampled_kinds *kinds = &sampled->kinds;
    const uint64_t rest = kinds->all - kinds->fields - kinds->scalars - kinds->unknown;
    struct hw_buffer line = {0};
    hw_buffer_add(&line, "Sampled: %s to the heap, in %s. %s of them are to fields of structs",
                  HW_OF(kinds->all, kinds->all == 1 ? "access" : "accesse"), HW_OF(sampled->bursts, "burst"),
                  share_of(kinds->fields, kinds->all));
    hw_buffer_add(&line, ", %s to arrays of numbers and pointers", share_of(kinds->scalars, kinds->all));
    if (rest)
        hw_buffer_add(&line, ", %s beside known fields", share_of(rest, kinds->all));
    hw_buffer_add(&line, ", %s to blocks of unknown type.", share_of(kinds->unknown, kinds->all));
    fputc('\n', text->page.stream);
    hw_page_wrap(&text->page, 0, "", hw_buffer_text(&line));
    if (sampled->fields.struct_count)
        hw_page_wrap(&text->page, 0, "",
                 "\u00b1 is two standard errors of a share, in percentage points. A use is what one burst of samples saw of an "
                 "object. Samples do not show code that depends on the order of members (fwrite, memcmp, casts): look for "
                 "it before you change a struct.");
    if (kinds->unknown > kinds->all / 2)
        hw_page_wrap(&text->page, 0, "",
                     "Types of blocks are known where the code that allocates them has debug information (-g, or a package "
                     "with debug symbols); the beginning of heapwise report names what lacks it.");
    text->failed |= line.failed;
    hw_buffer_free(&line);
}

void hw_text_fields(struct hw_text *text)
{
    const struct hw_page *page = &text->page;
    const struct hw_analysis *analysis = text->analysis;
    const struct hw_profile_fields *fields = hw_view_fields(text->view);
    const size_t top = text->options->top ? text->options->top : USUAL_STRUCTS;
    size_t shown = 0, wanted = 0;
    if (!fields->counted) {
        hw_page_heading(page, "Fields of structs");
        print_none(text);
        return;
    }
    for (size_t i = 0; i < analysis->struct_count && !text->failed; i++) {
        if (!hw_report_wants_struct(text->options, analysis->structs[i].structure))
            continue;
        wanted++;
        if (text->options->structure ||
            (shown < top && (text->options->top || text->options->full || is_notable(fields, &analysis->structs[i])))) {
            print_struct(text, &analysis->structs[i]);
            shown++;
        }
    }
    if (shown < wanted)
        fprintf(page->stream, "\n%s and %s (--top N shows more, --struct NAME one)\n", hw_page_ellipsis(page),
                HW_OF(wanted - shown, "more struct"));
    if (!wanted)
        fputs(text->options->structure ? "\nThere were no accesses to a struct of that name.\n"
                                       : "\nThere were no accesses to structs.\n",
              page->stream);
    if (fields->sampled) {
        print_sampled(text);
        return;
    }
    const uint64_t unknown = hw_add_saturating(fields->unattributed_reads, fields->unattributed_writes);
    const uint64_t known = hw_add_saturating(fields->attributed_reads, fields->attributed_writes);
    if (unknown)
        fprintf(page->stream, "\n%s of the accesses that were checked are in no known struct.\n",
                HW_PERCENT((double)unknown, (double)hw_add_saturating(unknown, known)));
    struct hw_buffer uncounted = {0};
    hw_add_uncounted(text->view, true, &uncounted);
    if (uncounted.used) {
        hw_buffer_cut(&uncounted, uncounted.used - 1);
        fputc('\n', page->stream);
        hw_page_wrap(page, 0, "", hw_page_clean(&text->page, &text->cleaned, hw_buffer_text(&uncounted)));
    }
    text->failed |= uncounted.failed;
    hw_buffer_free(&uncounted);
}
