/* check.c - see check.h. */
#include "report/compare/check.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/text/human.h"
#include "report/json/json.h"
#include "report/text/text.h"
#include "report/view/pins.h"

/* ---- the decision ---- */

/* Puts a context into its rank among those shown. */
static void rank(struct hw_check *check, uint32_t context, uint64_t share)
{
    size_t at = check->context_count;
    while (at && check->shares[at - 1] < share)
        at--;
    if (at == HW_CHECK_SHOWN || !share)
        return;
    check->context_count += check->context_count < HW_CHECK_SHOWN;
    for (size_t i = check->context_count - 1; i > at; i--) {
        check->contexts[i] = check->contexts[i - 1];
        check->shares[i] = check->shares[i - 1];
    }
    check->contexts[at] = context;
    check->shares[at] = share;
}

static void rank_contexts(const struct hw_view *view, const struct hw_diff *diff, struct hw_check *check)
{
    if (!check->baseline) {
        for (size_t i = 0; i < view->context_count; i++)
            rank(check, (uint32_t)i, hw_measure_value(view, check->id, &view->contexts[i]));
        return;
    }
    for (size_t i = 0; i < diff->count; i++) {
        const struct hw_diff_place *place = &diff->places[i];
        const uint64_t old = place->value[HW_OLD][check->id], new = place->value[HW_NEW][check->id];
        if (place->context[HW_NEW] != HW_NONE && new > old)
            rank(check, place->context[HW_NEW], new - old);
    }
}

static void decide(const struct hw_view *view, const struct hw_diff *diff, struct hw_check *check)
{
    check->value = hw_measure_whole(view, check->id);
    check->uncertainty = hw_measure_uncertainty(view, check->id);
    if (check->baseline) {
        const double part = 1 + check->tolerance / 100;
        check->old = diff->total[HW_OLD][check->id];
        const double most = (double)check->old * part;
        check->limit = most < 0x1p64 ? (uint64_t)most : UINT64_MAX;
        check->uncertainty = hypot(check->uncertainty, part * hw_measure_uncertainty(diff->view[HW_OLD], check->id));
    }
    const double over = (double)check->value - (double)check->limit;
    check->verdict = over > check->uncertainty                              ? HW_BROKEN
                     : check->uncertainty > 0 && over > -check->uncertainty ? HW_UNCERTAIN
                     : check->value > check->limit                          ? HW_BROKEN
                                                                            : HW_KEPT;
    check->context_count = 0;
    if (check->verdict != HW_KEPT)
        rank_contexts(view, diff, check);
}

/* A rate breaks its limit if its whole interval is above it. It is that of the whole heap, or, where they are known
 * better, of the places that grow steadily: what rises and falls in others would hide them. */
static void decide_growth(struct hw_check *check)
{
    const struct hw_growth *growth = check->growth;
    const struct hw_trend *whole = &growth->whole.trend;
    const double limit = (double)check->limit;
    double rate = whole->rate, low = whole->low, high = whole->high;
    check->steady = growth->steady && growth->steady_low > low;
    if (check->steady) {
        rate = growth->steady_rate;
        low = growth->steady_low;
        high = growth->steady_high;
    }
    check->value = rate > 0 ? (uint64_t)llround(rate) : 0;
    check->uncertainty = fmax(high - rate, rate - low);
    check->verdict = low > limit ? HW_BROKEN : high > limit || whole->high > limit ? HW_UNCERTAIN : HW_KEPT;
    check->context_count = 0;
    for (size_t i = 0; check->verdict != HW_KEPT && i < growth->steady; i++)
        rank(check, growth->rows[i].context, (uint64_t)llround(growth->rows[i].trend.rate));
}

/* Free bytes in pages with a live block: exact, and not in the list of measures, as it is of one moment. */
static void decide_pinned(const struct hw_view *view, struct hw_check *check)
{
    const struct hw_heap_pages *heap = hw_pins_pages(view->profile);
    check->value = heap ? heap->free_bytes : 0;
    check->verdict = check->value > check->limit ? HW_BROKEN : HW_KEPT;
    check->context_count = 0;
    for (size_t i = 0; check->verdict == HW_BROKEN && i < view->profile->pin_count; i++) {
        const struct hw_pin *pin = &view->profile->pins[i];
        const struct hw_view_context *context = hw_view_context_of(view, pin->context);
        if (context)
            rank(check, (uint32_t)(context - view->contexts), pin->pinned_bytes);
    }
}

void hw_check_run(const struct hw_view *view, const struct hw_diff *diff, struct hw_check *checks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (checks[i].growth)
            decide_growth(&checks[i]);
        else if (checks[i].pinned)
            decide_pinned(view, &checks[i]);
        else
            decide(view, diff, &checks[i]);
}

/* ---- words ---- */

static const char *amount(char *buffer, const struct hw_check *check, uint64_t value)
{
    if (hw_measures[check->id].unit != HW_UNIT_BYTES)
        return hw_human_count(buffer, value);
    hw_human_bytes(buffer, value);
    return check->growth ? strcat(buffer, "/s") : buffer;
}

/* "31.6 MiB live at the peak, more than 30.0 MiB". */
static void describe(const struct hw_check *check, struct hw_buffer *out)
{
    char value[HW_HUMAN], limit[HW_HUMAN], old[HW_HUMAN], around[HW_HUMAN];
    amount(limit, check, check->limit);
    hw_buffer_add(out, "%s %s", amount(value, check, check->value),
                  check->steady   ? "is how fast places grow steadily"
                  : check->growth ? "is how fast the heap grows"
                  : check->pinned ? "free in pages that live blocks pin"
                                  : hw_measures[check->id].title);
    if (check->uncertainty > 0)
        hw_buffer_add(out, " (estimated to within %s)", amount(around, check, (uint64_t)ceil(check->uncertainty)));
    if (check->verdict == HW_UNCERTAIN)
        hw_buffer_add(out, ": too close to the limit of %s to decide", limit);
    else
        hw_buffer_add(out, ", %s %s", check->verdict == HW_BROKEN ? "more than" : "at most", limit);
    if (check->baseline)
        hw_buffer_add(out, " (%s before + %g %%)", amount(old, check, check->old), check->tolerance);
}

/* ---- text ---- */

static void print_context(struct hw_text *text, const struct hw_check *check, size_t index)
{
    const struct hw_page *page = &text->page;
    const struct hw_view_context *context = &text->view->contexts[check->contexts[index]];
    char value[HW_HUMAN + 1] = "+";
    amount(value + (check->baseline || check->growth), check, check->shares[index]);
    fprintf(page->stream, "            %11s %8s  ", value,
            HW_PERCENT((double)check->shares[index], (double)(check->baseline ? check->old : check->value)));
    if (!hw_text_load(text, context->sum.leaf)) {
        hw_page_print(page, HW_NAME, "(stack not known)\n");
        return;
    }
    const struct hw_view_frame *frame = &text->stack.frames[text->fold.headline];
    const size_t room = page->width - 34;
    bool placed;
    hw_text_named(text, frame, room, &placed);
    if (!placed) {
        fputc('\n', page->stream);
        hw_page_print(page, HW_PLAIN, "     %s", hw_buffer_text(&text->place));
    }
    fputc('\n', page->stream);
    /* One function may allocate for many: its caller distinguishes the stacks. */
    if (text->fold.headline + 1 >= hw_stack_without_start(&text->stack))
        return;
    frame = &text->stack.frames[text->fold.headline + 1];
    hw_page_pad(page, 34);
    hw_page_print(page, HW_FAINT, "called by %s", hw_text_function(text, frame, room - 10));
    const char *place = hw_text_place(text, frame);
    if (*place && hw_text_width(hw_buffer_text(&text->name)) + 12 + hw_text_width(place) <= room)
        hw_page_print(page, HW_FAINT, "  %s", place);
    fputc('\n', page->stream);
}

static bool finish(struct hw_text *text, struct hw_error *error)
{
    if (hw_text_done(text))
        return true;
    hw_error_set(error, "not enough memory for the report");
    return false;
}

bool hw_check_text(const struct hw_view *view, const struct hw_check *checks, size_t count,
                   const struct hw_report_options *options, FILE *stream, struct hw_error *error)
{
    static const char *const words[HW_VERDICTS] = {[HW_KEPT] = "OK", [HW_UNCERTAIN] = "unsure", [HW_BROKEN] = "BROKEN"};
    struct hw_text text = hw_text_begin(view, options, stream);
    if (count)
        hw_text_selection(&text, "Shown");
    for (size_t i = 0; i < count; i++) {
        const struct hw_check *check = &checks[i];
        hw_buffer_clear(&text.line);
        hw_buffer_add(&text.line, "%s: ", check->name);
        describe(check, &text.line);
        hw_page_marked(&text.page,
                       check->verdict == HW_BROKEN ? HW_ALERT
                       : check->verdict == HW_KEPT ? HW_FAINT
                                                   : HW_STRONG,
                       words[check->verdict], hw_buffer_text(&text.line));
        for (size_t k = 0; k < check->context_count; k++)
            print_context(&text, check, k);
    }
    return finish(&text, error);
}

/* ---- JSON ---- */

static void print_check(struct json_writer *writer, const struct hw_check *check)
{
    static const char *const verdicts[HW_VERDICTS] = {
        [HW_KEPT] = "kept", [HW_UNCERTAIN] = "uncertain", [HW_BROKEN] = "broken"};
    fprintf(writer->stream,
            "{\"name\":\"%s\",\"measure\":\"%s\",\"verdict\":\"%s\",\"value\":%" PRIu64 ",\"limit\":%" PRIu64,
            check->name, check->growth ? "growth" : check->pinned ? "pinned" : hw_measures[check->id].key, verdicts[check->verdict], check->value,
            check->limit);
    if (check->baseline)
        fprintf(writer->stream, ",\"baseline\":%" PRIu64 ",\"tolerance_percent\":%g", check->old, check->tolerance);
    if (check->uncertainty > 0)
        fprintf(writer->stream, ",\"uncertainty\":%.0f", check->uncertainty);
    fputs(",\"contexts\":[", writer->stream);
    for (size_t i = 0; i < check->context_count; i++) {
        const struct hw_view_context *context = &writer->view->contexts[check->contexts[i]];
        fprintf(writer->stream, "%s{\"id\":%u,\"%s\":%" PRIu64 ",", i ? ",\n" : "\n", (unsigned)context->sum.id,
                check->baseline || check->growth ? "grown" : "value", check->shares[i]);
        hw_json_stack(writer, context->sum.leaf);
        fputc('}', writer->stream);
    }
    fputs("]}", writer->stream);
}

bool hw_check_json(const struct hw_view *view, const struct hw_check *checks, size_t count,
                   const struct hw_report_options *options, FILE *stream, struct hw_error *error)
{
    struct json_writer writer;
    size_t broken = 0;
    if (hw_json_writer_begin(&writer, view, options, stream)) {
        fputs("{\"format\":1,\n\"file\":", stream);
        print_value(&writer, text_value(&writer, view->profile->path));
        fprintf(stream, ",\n\"sampled\":%s,\n\"checks\":[", hw_view_sampled(view) ? "true" : "false");
        for (size_t i = 0; i < count; i++) {
            fputs(i ? ",\n" : "\n", stream);
            print_check(&writer, &checks[i]);
            broken += checks[i].verdict == HW_BROKEN;
        }
        fprintf(stream, "\n],\n\"broken\":%zu}\n", broken);
    }
    if (hw_json_writer_end(&writer))
        return true;
    hw_error_set(error, "not enough memory for the report");
    return false;
}

/* ---- annotations ---- */

/* Writes TEXT as a command's data, or with PROPERTY as a property of it, where ':' and ',' have a meaning, too. */
static void add_escaped(struct hw_buffer *out, const char *text, bool property)
{
    for (; *text; text++) {
        const bool escape = strchr("%\r\n", *text) || (property && strchr(":,", *text));
        if (escape)
            hw_buffer_add(out, "%%%02X", (unsigned)(unsigned char)*text);
        else
            hw_buffer_bytes(out, text, 1);
    }
}

/* Where the first of the contexts is that are in a source file. */
static void add_place(struct hw_text *text, const struct hw_check *check, const char *workspace, struct hw_buffer *out)
{
    const size_t size = workspace ? strlen(workspace) : 0;
    for (size_t i = 0; i < check->context_count; i++) {
        if (!hw_text_load(text, text->view->contexts[check->contexts[i]].sum.leaf))
            continue;
        const struct hw_frame *symbol = text->stack.frames[text->fold.headline].symbol;
        if (!symbol->file)
            continue;
        const char *file = symbol->file;
        if (size && !strncmp(file, workspace, size) && (file[size] == '/' || file[size - 1] == '/'))
            file += size + (file[size] == '/');
        hw_buffer_add(out, "file=");
        add_escaped(out, hw_page_clean(&text->page, &text->cleaned, file), true);
        if (symbol->line)
            hw_buffer_add(out, ",line=%" PRIu32, symbol->line);
        hw_buffer_add(out, ",");
        return;
    }
}

static void print_annotation(struct hw_text *text, const struct hw_check *check, const char *workspace)
{
    struct hw_buffer out = {0}, message = {0};
    hw_buffer_add(&out, "::%s ", check->verdict == HW_BROKEN ? "error" : "warning");
    add_place(text, check, workspace, &out);
    hw_buffer_add(&out, "title=heapwise %s::", check->name);
    describe(check, &message);
    for (size_t i = 0; i < check->context_count; i++) {
        char value[HW_HUMAN];
        hw_buffer_add(&message, "%s%s by ",
                      i                                  ? ", "
                      : check->baseline || check->growth ? "; grown: "
                                                         : "; most of it: ",
                      amount(value, check, check->shares[i]));
        if (!hw_text_load(text, text->view->contexts[check->contexts[i]].sum.leaf)) {
            hw_buffer_add(&message, "an unknown stack");
            continue;
        }
        const struct hw_view_frame *frame = &text->stack.frames[text->fold.headline];
        hw_buffer_add(&message, "%s", hw_text_function(text, frame, 120));
        const char *place = hw_text_place(text, frame);
        if (*place)
            hw_buffer_add(&message, " (%s)", place);
    }
    add_escaped(&out, hw_buffer_text(&message), false);
    fprintf(text->page.stream, "%s\n", hw_buffer_text(&out));
    text->failed |= out.failed || message.failed;
    hw_buffer_free(&out);
    hw_buffer_free(&message);
}

bool hw_check_github(const struct hw_view *view, const struct hw_check *checks, size_t count, const char *workspace,
                     FILE *stream, struct hw_error *error)
{
    const struct hw_report_options options = {.width = 120, .utf8 = true};
    struct hw_text text = hw_text_begin(view, &options, stream);
    for (size_t i = 0; i < count; i++)
        if (checks[i].verdict != HW_KEPT)
            print_annotation(&text, &checks[i], workspace);
    return finish(&text, error);
}
