/* text_diff_allocator.c - what was observed of two allocators side by side, for a person. */
#include <inttypes.h>
#include <math.h>

#include "report/compare/diff_allocator.h"
#include "report/text/human.h"

enum unit { COUNT, SECONDS, BYTES, SHARE };

struct cell {
    char text[HW_HUMAN + 2];
};

/* "-" for what is not known. SIGN: "+" in front of what is above 0. */
static const char *cell(struct cell *cell, double value, enum unit unit, bool sign, bool utf8)
{
    char number[HW_HUMAN];
    const double size = fabs(value);
    if (isnan(value) || size >= 0x1p63)
        return "-";
    switch (unit) {
    case COUNT:
        hw_human_many(number, (uint64_t)(size + 0.5));
        break;
    case SECONDS:
        hw_human_ns(number, (uint64_t)(size * 1e9 + 0.5), utf8);
        break;
    case BYTES:
        hw_human_bytes(number, (uint64_t)size);
        break;
    case SHARE:
        if (sign)
            snprintf(number, sizeof number, "%.1f points", 100 * size);
        else
            hw_human_percent(number, size, 1);
        break;
    }
    snprintf(cell->text, sizeof cell->text, "%s%s", value < 0 ? "-" : sign && value > 0 ? "+" : "", number);
    return cell->text;
}

/* Nothing where there was nothing. */
static const char *relative(struct cell *cell, double old, double new)
{
    return isnan(old) || isnan(new) || old <= 0 || new < 0 ? "" : hw_human_change(cell->text, old, new);
}

static void print_row(const struct hw_page *page, const char *label, double old, double new, enum unit unit)
{
    struct cell first, second, change, part;
    if (isnan(old) && isnan(new))
        return;
    hw_page_print(page, HW_STRONG, "%s", label);
    hw_page_pad(page, 26 - hw_text_width(label));
    fprintf(page->stream, "%*s %*s ", HW_RIGHT(13, cell(&first, old, unit, false, page->utf8)),
            HW_RIGHT(13, cell(&second, new, unit, false, page->utf8)));
    hw_page_print(page, old == new ? HW_PLAIN : HW_STRONG, "%*s",
                  HW_RIGHT(13, cell(&change, new - old, unit, true, page->utf8)));
    const char *by = unit == SHARE ? "" : relative(&part, old, new);
    fprintf(page->stream, *by ? " %11s\n" : "%s\n", by);
}

/* NAN for what was not observed. */
static double counted(uint64_t count)
{
    return count == HW_NOT_OBSERVED ? (double)NAN : (double)count;
}

static void print_sums(const struct hw_page *page, const struct hw_diff_allocator *side)
{
    const struct hw_verdict_input *old = &side[HW_OLD].of.input, *new = &side[HW_NEW].of.input;
    fprintf(page->stream, "%39s %13s %13s\n", "old", "new", "change");
    print_row(page, "Operations", (double)side[HW_OLD].operations, (double)side[HW_NEW].operations, COUNT);
    print_row(page, "Time in operations", old->operations, new->operations, SECONDS);
    print_row(page, "  of it in system calls", old->in_syscalls, new->in_syscalls, SECONDS);
    print_row(page, "  of it waiting", old->waiting, new->waiting, SECONDS);
    print_row(page, "Share of the run's time", side[HW_OLD].of.verdict.time_share, side[HW_NEW].of.verdict.time_share,
              SHARE);
    static const char *const parts[HW_DIFF_PARTS] = {"Heap at the peak", "  requested, and touched",
                                                     "  internal fragmentation", "  blowup", "  between blocks, rest"};
    for (int part = 0; part < HW_DIFF_PARTS; part++)
        print_row(page, parts[part], side[HW_OLD].memory[part], side[HW_NEW].memory[part], BYTES);
    print_row(page, "Lines of two threads", counted(old->active_lines) + counted(old->passive_lines),
              counted(new->active_lines) + counted(new->passive_lines), COUNT);
}

static void print_kinds(const struct hw_page *page, const struct hw_diff_allocator *side)
{
    hw_page_print(page, HW_FAINT, "\n%-16s %13s %13s %11s %11s\n", "operation", "count: old", "new", "each: old",
                  "new");
    for (int kind = 0; kind < HW_OPERATION_KINDS; kind++) {
        const struct hw_diff_operation *old = &side[HW_OLD].kind[kind], *new = &side[HW_NEW].kind[kind];
        struct cell cells[5];
        if (!old->count && !new->count)
            continue;
        fprintf(page->stream, "%-16s %13s %13s %*s %*s", hw_operation_kind_names[kind],
                cell(&cells[0], (double)old->count, COUNT, false, page->utf8),
                cell(&cells[1], (double)new->count, COUNT, false, page->utf8),
                HW_RIGHT(11, cell(&cells[2], old->mean_ns * 1e-9, SECONDS, false, page->utf8)),
                HW_RIGHT(11, cell(&cells[3], new->mean_ns * 1e-9, SECONDS, false, page->utf8)));
        const char *by = relative(&cells[4], old->mean_ns, new->mean_ns);
        fprintf(page->stream, *by ? " %11s\n" : "%s\n", by);
    }
}

static void add_answer(struct hw_buffer *out, const char *what, enum hw_verdict_answer old, enum hw_verdict_answer new,
                       bool utf8)
{
    const char *const *names = hw_verdict_answer_names;
    if (old == new)
        hw_buffer_add(out, "%s: %s, as before", what, names[old]);
    else
        hw_buffer_add(out, "%s: %s %s %s", what, names[old], utf8 ? "\u2192" : "->", names[new]);
}

static void add_causes(struct hw_buffer *out, const struct hw_diff_allocator *side, bool in_old, bool in_new,
                       const char *label)
{
    bool first = true;
    for (enum hw_verdict_cause cause = 0; cause < HW_CAUSES; cause++)
        if (hw_diff_allocator_names(&side[HW_OLD], cause) == in_old &&
            hw_diff_allocator_names(&side[HW_NEW], cause) == in_new) {
            hw_buffer_add(out, "%s%s", first ? label : ", ", hw_verdict_cause_names[cause]);
            first = false;
        }
}

static void print_verdict(struct hw_text *text, const struct hw_diff_allocator *side)
{
    const struct hw_page *page = &text->page;
    struct hw_buffer words = {0};
    fputc('\n', page->stream);
    add_answer(&words, "time", side[HW_OLD].of.verdict.time, side[HW_NEW].of.verdict.time, page->utf8);
    add_answer(&words, "; memory", side[HW_OLD].of.verdict.memory, side[HW_NEW].of.verdict.memory, page->utf8);
    hw_page_item(page, "A problem?", hw_buffer_text(&words));
    text->failed |= words.failed;
    hw_buffer_clear(&words);
    add_causes(&words, side, false, true, "new: ");
    if (words.used)
        hw_buffer_add(&words, "\n");
    const size_t used = words.used;
    add_causes(&words, side, true, false, "gone: ");
    if (words.used > used)
        hw_buffer_add(&words, "\n");
    add_causes(&words, side, true, true, "as before: ");
    if (words.used && words.data[words.used - 1] == '\n')
        words.data[--words.used] = '\0';
    hw_page_item(page, "Causes", words.used ? hw_buffer_text(&words) : "none is named");
    text->failed |= words.failed;
    hw_buffer_clear(&words);
    double error;
    const double change = hw_diff_allocator_change(side, &error);
    if (fabs(change) <= error) {
        hw_buffer_add(&words,
                      "Times of operations are estimates: their change may be chance (two standard errors are %s).",
                      HW_NS((uint64_t)(error * 1e9), page->utf8));
        hw_page_wrap(page, 2, page->utf8 ? "\u2022" : "-", hw_buffer_text(&words));
    }
    text->failed |= words.failed;
    hw_buffer_free(&words);
}

void hw_diff_allocator_text(const struct hw_diff *diff, struct hw_text *text)
{
    struct hw_diff_allocator side[HW_SIDES];
    if (!hw_diff_allocator(&side[HW_OLD], diff->view[HW_OLD]) || !hw_diff_allocator(&side[HW_NEW], diff->view[HW_NEW]))
        return;
    hw_page_heading(&text->page, "The allocator");
    print_sums(&text->page, side);
    print_kinds(&text->page, side);
    print_verdict(text, side);
}
