/* growth_text.c - places that grew over the dumps of a run, for a person. */
#include "report/compare/growth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/text/human.h"
#include "report/text/text.h"
#include "report/view/keeps.h"

#define USUAL_OTHERS 5 /* of what does not grow steadily */
#define USUAL_GROUPS 20
#define KEEPERS_MOST 3
#define GIB          0x1p30

/* ---- numbers ---- */

static uint64_t whole_number(double value)
{
    return value < 0 ? 0 : value < 0x1p63 ? (uint64_t)llround(value) : UINT64_MAX;
}

static const char *bytes_text(double value, char *buffer)
{
    return hw_human_bytes(buffer, whole_number(value));
}

#define BYTES_OF(value) bytes_text((value), (char[HW_HUMAN]){0})

static const char *moment_text(const struct hw_growth *growth, size_t at, char *buffer)
{
    return hw_human_ns(buffer, whole_number(growth->times[at] * 1e9), true);
}

/* "850 s", "3 h 20 min", "12 days": how long until so much more. */
static void add_span(struct hw_buffer *out, double seconds)
{
    const uint64_t minutes = whole_number(seconds / 60);
    if (seconds < 120)
        hw_buffer_add(out, "%.0f s", seconds);
    else if (minutes < 120)
        hw_buffer_add(out, "%s min", HW_COUNT(minutes));
    else if (minutes < 48 * 60)
        hw_buffer_add(out, "%s h", HW_COUNT(whole_number(seconds / 3600)));
    else if (seconds < 1e9)
        hw_buffer_add(out, "%s days", HW_COUNT(whole_number(seconds / 86400)));
    else
        hw_buffer_add(out, "over 30 years");
}

/* ", 1 GiB more in 17 min (16 min to 18 min)": only of what certainly grows. */
static void add_forecast(struct hw_buffer *out, const struct hw_trend *trend)
{
    if (trend->pattern != HW_TREND_GROWS)
        return;
    hw_buffer_add(out, "1 GiB more in ");
    add_span(out, GIB / trend->rate);
    struct hw_buffer early = {0}, late = {0};
    add_span(&early, GIB / trend->high);
    add_span(&late, GIB / trend->low);
    if (strcmp(hw_buffer_text(&early), hw_buffer_text(&late)))
        hw_buffer_add(out, " (%s to %s)", hw_buffer_text(&early), hw_buffer_text(&late));
    hw_buffer_add(out, " at this rate\n");
    out->failed |= early.failed || late.failed;
    hw_buffer_free(&early);
    hw_buffer_free(&late);
}

/* "1.0 MiB/s (95 % confidence: 0.9 MiB/s to 1.1 MiB/s)". */
static void add_interval(struct hw_buffer *out, const struct hw_trend *trend, bool bytes)
{
    hw_growth_add_rate(out, trend->rate, bytes);
    if (isnan(trend->low))
        return;
    hw_buffer_add(out, " (95 %% confidence: ");
    hw_growth_add_rate(out, trend->low, bytes);
    hw_buffer_add(out, " to ");
    hw_growth_add_rate(out, trend->high, bytes);
    hw_buffer_add(out, ")");
}

/* Whether a rate says more than the words: not where all moments behind the knee have one value, nor where few moments
 * leave open whether it grew at all. */
static bool rate_says_more(const struct hw_trend *trend)
{
    if (trend->pattern == HW_TREND_FEW)
        return trend->low > 0 || trend->high < 0;
    return trend->pattern != HW_TREND_CONSTANT && !(trend->rate == 0 && trend->low == 0 && trend->high == 0);
}

/* ": 1.0 MiB/s (...)"; of few moments the difference. */
static void add_rate(struct hw_buffer *out, const struct hw_growth *growth, const struct hw_trend *trend,
                     const double *values)
{
    const double change = values[growth->moments - 1] - values[0];
    if (rate_says_more(trend)) {
        hw_buffer_add(out, ": ");
        add_interval(out, trend, true);
    } else if (trend->pattern == HW_TREND_FEW) {
        hw_buffer_add(out, ": %s%s; the rate is not certain", change < 0 ? "-" : "+", BYTES_OF(fabs(change)));
    }
}

/* What it does, as a sentence without its end. */
static void add_pattern(struct hw_buffer *out, const struct hw_growth *growth, const struct hw_trend *trend,
                        const double *values)
{
    char moment[HW_HUMAN];
    switch (trend->pattern) {
    case HW_TREND_GROWS:
        hw_buffer_add(out, "grows steadily");
        if (!isnan(trend->before_rate)) {
            hw_buffer_add(out, " since %s, after ", moment_text(growth, trend->first, moment));
            hw_growth_add_rate(out, trend->before_rate, true);
            hw_buffer_add(out, " before");
        } else if (trend->first) {
            hw_buffer_add(out, " since %s", moment_text(growth, trend->first, moment));
        }
        break;
    case HW_TREND_STOPPED:
        hw_buffer_add(out, "stopped growing at about %s", moment_text(growth, trend->first, moment));
        break;
    case HW_TREND_SHRINKS:
        hw_buffer_add(out, "shrinks steadily");
        break;
    case HW_TREND_FALLS:
        hw_buffer_add(out, "rises and falls back");
        break;
    case HW_TREND_CONSTANT:
        hw_buffer_add(out, "did not change");
        break;
    case HW_TREND_UNCLEAR:
        hw_buffer_add(out, "no steady trend");
        if (!isnan(trend->before_rate)) {
            hw_buffer_add(out, " since %s, after ", moment_text(growth, trend->first, moment));
            hw_growth_add_rate(out, trend->before_rate, true);
            hw_buffer_add(out, " before");
        }
        break;
    default:
        hw_buffer_add(out, values[growth->moments - 1] > values[0] ? "grew" : "shrank or changed in between");
        break;
    }
}

/* ---- the top ---- */

static void print_title(struct hw_text *text, const struct hw_growth *growth)
{
    const struct hw_page *page = &text->page;
    const struct hw_profile *profile = growth->view->profile;
    const char *program = basename(profile->executable ? profile->executable : "");
    hw_page_print(page, HW_HEADING, "Growth of %s",
                  *program ? hw_page_clean(page, &text->cleaned, program) : "the heap");
    fputc('\n', page->stream);
    for (unsigned i = 0; i < page->width; i++)
        fputs(page->utf8 ? "\u2550" : "=", page->stream);
    fputc('\n', page->stream);
}

static const struct hw_growth_file *used_file(const struct hw_growth *growth, bool last)
{
    const struct hw_growth_file *found = NULL;
    for (size_t i = 0; i < growth->file_count; i++)
        if (growth->files[i].use == HW_GROWTH_USED) {
            found = &growth->files[i];
            if (!last)
                break;
        }
    return found;
}

static void print_files(struct hw_text *text, const struct hw_growth *growth)
{
    const struct hw_page *page = &text->page;
    const size_t last = growth->moments - 1;
    char one[HW_HUMAN], other[HW_HUMAN];
    hw_buffer_clear(&text->line);
    hw_buffer_add(&text->line, "process %u, %s from %s to %s", (unsigned)growth->view->profile->process.pid,
                  HW_OF(growth->moments, "moment"), moment_text(growth, 0, one), moment_text(growth, last, other));
    hw_page_item(page, "Run", hw_buffer_text(&text->line));
    hw_buffer_clear(&text->line);
    hw_buffer_add(&text->line, "%s", hw_page_clean(page, &text->cleaned, used_file(growth, false)->path));
    hw_buffer_add(&text->line, "%s %s", growth->moments > 2 ? " to" : " and",
                  hw_page_clean(page, &text->cleaned, used_file(growth, true)->path));
    if (growth->file_count > growth->moments)
        hw_buffer_add(&text->line, "; names are from %s",
                      hw_page_clean(page, &text->cleaned, growth->files[growth->file_count - 1].path));
    hw_page_item(page, "Files", hw_buffer_text(&text->line));
    if (text->options->full)
        for (size_t i = 0; i < growth->file_count; i++) {
            const struct hw_growth_file *file = &growth->files[i];
            hw_buffer_clear(&text->line);
            const bool damaged = file->use == HW_GROWTH_DAMAGED;
            hw_buffer_add(
                &text->line, "%s, %s%s", damaged ? "damaged" : hw_human_ns(one, file->moment.time_ns, page->utf8),
                hw_page_clean(page, &text->cleaned, file->path), file->use == HW_GROWTH_USED ? "" : ": not used");
            hw_page_item(page, "", hw_buffer_text(&text->line));
        }
}

static void print_whole(struct hw_text *text, const struct hw_growth *growth)
{
    const struct hw_page *page = &text->page;
    const struct hw_growth_row *whole = &growth->whole;
    const size_t last = growth->moments - 1;
    struct hw_buffer forecast = {0};
    hw_buffer_clear(&text->line);
    hw_buffer_add(&text->line, "%s in %s, then %s in %s; ", BYTES_OF(whole->bytes[0]),
                  HW_OF(whole_number(whole->blocks[0]), "block"), BYTES_OF(whole->bytes[last]),
                  HW_OF(whole_number(whole->blocks[last]), "block"));
    add_pattern(&text->line, growth, &whole->trend, whole->bytes);
    add_rate(&text->line, growth, &whole->trend, whole->bytes);
    add_forecast(&forecast, &whole->trend);
    if (forecast.used)
        hw_buffer_add(&text->line, "; %.*s", (int)(forecast.used - 1), hw_buffer_text(&forecast));
    text->failed |= forecast.failed;
    hw_buffer_free(&forecast);
    hw_page_item(page, "Live heap", hw_buffer_text(&text->line));
}

/* The name of a place, cut to COLUMNS, in text->name. */
static const char *place_name(struct hw_text *text, uint32_t context, size_t columns)
{
    return hw_text_load(text, text->view->contexts[context].sum.leaf)
               ? hw_text_function(text, &text->stack.frames[text->fold.headline], columns)
               : "(unknown stack)";
}

static void print_verdict(struct hw_text *text, const struct hw_growth *growth)
{
    const char *what = growth->by == HW_BYS ? "place" : "group";
    struct hw_buffer line = {0};
    if (growth->moments < HW_TREND_LEAST)
        hw_buffer_add(&line, "%zu of %s grew; %zu moments are too few to call it steady.",
                      growth->row_count - growth->falling, HW_OF(growth->row_count + growth->unchanged, what),
                      growth->moments);
    else if (!growth->steady)
        hw_buffer_add(&line, "No %s grows steadily; %s changed.", what, HW_OF(growth->row_count, what));
    else {
        hw_buffer_add(&line, "%s steadily", HW_OF(growth->steady, what));
        hw_buffer_add(&line, growth->steady == 1 ? ": " : "; fastest: ");
        if (growth->by == HW_BYS)
            hw_buffer_add(&line, "%s, ", place_name(text, growth->rows[0].context, 60));
        add_interval(&line, &growth->rows[0].trend, true);
        if (growth->steady > 1 && growth->by == HW_BYS) {
            hw_buffer_add(&line, "; together ");
            hw_growth_add_rate(&line, growth->steady_rate, true);
        }
        hw_buffer_add(&line, ".");
    }
    hw_page_marked(&text->page, growth->steady ? HW_ALERT : HW_STRONG, growth->steady ? "Grows" : "Result",
                   hw_buffer_text(&line));
    text->failed |= line.failed;
    hw_buffer_free(&line);
}

static void print_notes(struct hw_text *text, const struct hw_growth *growth)
{
    struct hw_buffer notes = {0};
    hw_growth_notes(growth, &notes);
    if (notes.used)
        fputc('\n', text->page.stream);
    for (const char *at = hw_buffer_text(&notes); *at;) {
        const size_t size = strcspn(at, "\n");
        hw_buffer_clear(&text->line);
        hw_buffer_bytes(&text->line, at, size);
        hw_page_wrap(&text->page, 2, text->page.utf8 ? "\u2022" : "-", hw_buffer_text(&text->line));
        at += size + (at[size] != '\0');
    }
    text->failed |= notes.failed;
    hw_buffer_free(&notes);
}

/* ---- places ---- */

#define BARS_MOST 48

/* What was live, as a line of bars from 0 up. */
static void print_bars(struct hw_text *text, const struct hw_growth *growth, const struct hw_growth_row *row)
{
    static const char *const bars[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                       "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char *const plain[] = {" ", ".", ".", ":", ":", "+", "+", "#", "#"};
    const struct hw_page *page = &text->page;
    const size_t count = growth->moments < BARS_MOST ? growth->moments : BARS_MOST;
    double most = 0;
    for (size_t i = 0; i < growth->moments; i++)
        most = fmax(most, row->bytes[i]);
    if (growth->moments < 3 || most <= 0)
        return;
    fputs("     ", page->stream);
    for (size_t i = 0; i < count; i++) {
        const double value = row->bytes[i * (growth->moments - 1) / (count - 1)];
        const size_t level = value > 0 ? 1 + (size_t)(value / most * 7.0) : 0;
        hw_page_print(page, HW_FAINT, "%s", (page->utf8 ? bars : plain)[level]);
    }
    fputc('\n', page->stream);
}

static void print_facts(struct hw_text *text, const struct hw_growth *growth, const struct hw_growth_row *row)
{
    const size_t last = growth->moments - 1;
    const struct hw_trend *trend = &row->trend;
    struct hw_buffer facts = {0};
    char moment[HW_HUMAN];
    add_pattern(&facts, growth, trend, row->bytes);
    if (growth->moments > 2)
        add_rate(&facts, growth, trend, row->bytes);
    hw_buffer_add(&facts, "\n%s in %s at %s", BYTES_OF(row->bytes[0]), HW_OF(whole_number(row->blocks[0]), "block"),
                  moment_text(growth, 0, moment));
    hw_buffer_add(&facts, "\n%s in %s at %s\n", BYTES_OF(row->bytes[last]),
                  HW_OF(whole_number(row->blocks[last]), "block"), moment_text(growth, last, moment));
    if (trend->pattern == HW_TREND_GROWS && row->blocks_trend.pattern == HW_TREND_GROWS) {
        hw_growth_add_rate(&facts, row->blocks_trend.rate, false);
        hw_buffer_add(&facts, "\n");
    }
    add_forecast(&facts, trend);
    hw_page_facts(&text->page, 5, hw_buffer_text(&facts));
    text->failed |= facts.failed;
    hw_buffer_free(&facts);
}

static void print_keepers(struct hw_text *text, const struct hw_growth *growth, const struct hw_growth_row *row)
{
    uint64_t bytes;
    size_t count;
    struct hw_place_keeper *keepers = hw_growth_keepers(growth, row->context, &count, &bytes);
    text->failed |= text->view->keeps && !keepers;
    struct hw_buffer facts = {0}, raw = {0};
    for (size_t i = 0; i < count && i < KEEPERS_MOST; i++) {
        const struct hw_view_keeper *keeper = &text->view->keeps->keepers[keepers[i].keeper];
        hw_buffer_clear(&raw);
        if (keeper->kind <= HW_KEEPER_SEVERAL_MOMENTARY)
            hw_buffer_add(&raw, "several keepers together");
        else
            hw_keeper_name(text->view, keepers[i].keeper, &raw);
        if (keeper->module != HW_NONE)
            hw_buffer_add(&raw, " (%s)", text->view->modules[keeper->module].name);
        hw_buffer_add(&facts, "%s%s %s\n", i ? "" : "kept by ",
                      hw_page_clean(&text->page, &text->cleaned, hw_buffer_text(&raw)),
                      HW_PERCENT((double)keepers[i].bytes, (double)bytes));
    }
    if (count)
        hw_page_facts(&text->page, 5, hw_buffer_text(&facts));
    text->failed |= facts.failed || raw.failed;
    hw_buffer_free(&facts);
    hw_buffer_free(&raw);
    free(keepers);
}

static void print_place(struct hw_text *text, const struct hw_growth *growth, const struct hw_growth_row *row,
                        size_t rank, bool stack)
{
    const struct hw_page *page = &text->page;
    struct hw_buffer rate = {0};
    const size_t last = growth->moments - 1;
    const bool steady = row->trend.pattern == HW_TREND_GROWS;
    if (steady) {
        hw_buffer_add(&rate, "+");
        hw_growth_add_rate(&rate, row->trend.rate, true);
    } else {
        const double change = row->bytes[last] - row->bytes[0];
        hw_buffer_add(&rate, "%s%s", change > 0 ? "+" : change < 0 ? "-" : "", BYTES_OF(fabs(change)));
    }
    hw_page_print(page, HW_PLAIN, "%3zu. ", rank);
    hw_page_print(page, steady ? HW_ALERT : HW_STRONG, "%*s", HW_RIGHT(13, hw_buffer_text(&rate)));
    fputs("  ", page->stream);
    const bool known = hw_text_load(text, text->view->contexts[row->context].sum.leaf);
    bool placed;
    if (known)
        hw_text_named(text, &text->stack.frames[text->fold.headline], page->width - 20, &placed);
    else
        hw_page_print(page, HW_NAME, "(stack not known)");
    fputc('\n', page->stream);
    print_facts(text, growth, row);
    print_bars(text, growth, row);
    print_keepers(text, growth, row);
    if (known && stack && hw_text_load(text, text->view->contexts[row->context].sum.leaf))
        hw_text_stack(text);
    text->failed |= rate.failed;
    hw_buffer_free(&rate);
}

static void print_more(struct hw_text *text, size_t count, const char *what)
{
    if (count)
        hw_page_print(&text->page, HW_FAINT, "     %s and %s (--top)\n", hw_page_ellipsis(&text->page),
                      HW_OF(count, what));
}

static void print_places(struct hw_text *text, const struct hw_growth *growth)
{
    const struct hw_page *page = &text->page;
    const size_t top = hw_text_top(text), others = growth->row_count - growth->steady;
    const size_t most = text->options->top ? text->options->top : growth->moments < HW_TREND_LEAST ? 10 : USUAL_OTHERS;
    if (growth->steady) {
        hw_buffer_clear(&text->line);
        hw_buffer_add(&text->line, "What grows steadily: %s", HW_OF(growth->steady, "place"));
        hw_page_heading(page, hw_buffer_text(&text->line));
    }
    for (size_t i = 0; i < growth->steady && i < top; i++)
        print_place(text, growth, &growth->rows[i], i + 1, true);
    if (growth->steady > top)
        print_more(text, growth->steady - top, "more place");
    if (!others)
        return;
    hw_buffer_clear(&text->line);
    hw_buffer_add(&text->line, growth->moments < HW_TREND_LEAST ? "What changed: %s" : "What changed otherwise: %s",
                  HW_OF(others, "place"));
    hw_page_heading(page, hw_buffer_text(&text->line));
    for (size_t i = 0; i < others && i < most; i++)
        print_place(text, growth, &growth->rows[growth->steady + i], i + 1, growth->moments < HW_TREND_LEAST);
    if (others > most)
        print_more(text, others - most, "more place");
}

/* ---- groups ---- */

static void print_groups(struct hw_text *text, const struct hw_growth *growth)
{
    const struct hw_page *page = &text->page;
    const bool of_frames = hw_by_keys[growth->by].of_frames;
    const size_t top = text->options->top ? text->options->top : USUAL_GROUPS, last = growth->moments - 1;
    struct hw_buffer rate = {0}, pattern = {0};
    hw_buffer_clear(&text->line);
    hw_buffer_add(&text->line, "By %s: live bytes", hw_by_keys[growth->by].key);
    hw_page_heading(page, hw_buffer_text(&text->line));
    if (of_frames)
        hw_page_print(page, HW_FAINT, "%11s ", "self");
    hw_page_print(page, HW_FAINT, "%11s %13s  %s", "total", "rate", hw_by_keys[growth->by].title);
    fputc('\n', page->stream);
    for (size_t i = 0; i < growth->row_count && i < top; i++) {
        const struct hw_growth_row *row = &growth->rows[i];
        const double self = row->self ? row->self[last] - row->self[0] : 0, total = row->bytes[last] - row->bytes[0];
        const bool steady = row->trend.pattern == HW_TREND_GROWS;
        char number[HW_HUMAN + 1];
        hw_buffer_clear(&rate);
        hw_buffer_clear(&pattern);
        if (steady)
            hw_growth_add_rate(&rate, row->trend.rate, true);
        add_pattern(&pattern, growth, &row->trend, row->bytes);
        for (int column = !of_frames; column < 2; column++) {
            const double change = column ? total : self;
            *number = change > 0 ? '+' : change < 0 ? '-' : ' ';
            bytes_text(fabs(change), number + 1);
            fprintf(page->stream, "%*s ", HW_RIGHT(11, number));
        }
        hw_page_print(page, steady ? HW_ALERT : HW_PLAIN, "%*s", HW_RIGHT(13, hw_buffer_text(&rate)));
        const size_t room = page->width - (of_frames ? 39 : 27);
        const char *name = hw_text_group(text, growth->by, &row->group, room);
        fputs("  ", page->stream);
        hw_page_print(page, HW_NAME, "%s", text->options->full ? name : hw_page_cut(page, &text->line, name, room));
        fputc('\n', page->stream);
        if (row->trend.pattern != HW_TREND_STOPPED && !(steady && row->trend.first))
            continue; /* the rate says it */
        hw_page_print(page, HW_FAINT, "%*s%s", of_frames ? 39 : 27, "", hw_buffer_text(&pattern));
        fputc('\n', page->stream);
    }
    if (growth->row_count > top)
        print_more(text, growth->row_count - top, "more group");
    text->failed |= rate.failed || pattern.failed;
    hw_buffer_free(&rate);
    hw_buffer_free(&pattern);
}

bool hw_growth_text(const struct hw_growth *growth, const struct hw_report_options *options, FILE *stream,
                    struct hw_error *error)
{
    struct hw_text text = hw_text_begin(growth->view, options, stream);
    print_title(&text, growth);
    print_files(&text, growth);
    print_whole(&text, growth);
    print_verdict(&text, growth);
    hw_text_selection(&text, "Shown");
    print_notes(&text, growth);
    if (growth->by == HW_BYS)
        print_places(&text, growth);
    else
        print_groups(&text, growth);
    if (hw_text_done(&text))
        return true;
    hw_error_set(error, "not enough memory for the report");
    return false;
}
