/* text_distributions.c - how many blocks have which size, and lived how long: bars in text. */
#include "report/text/text.h"

#include <stdlib.h>

#include "report/text/human.h"

#define BAR_MOST 40

/* A bar for PART, and the end of the line: MOST fills COLUMNS columns. */
static void print_bar(const struct hw_page *page, double part, double most, size_t columns)
{
    static const char *const eighths[] = {"", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a", "\u2589"};
    columns = columns < BAR_MOST ? columns : BAR_MOST;
    const double length = most > 0 && part > 0 ? part / most * (double)columns : 0;
    size_t full = (size_t)length;
    char bar[4 * BAR_MOST + 8] = "";
    for (size_t i = 0; i < full && i < columns; i++)
        strcat(bar, page->utf8 ? "\u2588" : "#");
    if (page->utf8 && full < columns)
        strcat(bar, eighths[(size_t)((length - (double)full) * 8)]);
    if (!page->utf8 && !full && part > 0)
        strcat(bar, ".");
    if (*bar)
        hw_page_print(page, HW_NAME, "  %s", bar);
    fputc('\n', page->stream);
}

static bool not_recorded(const struct hw_text *text, const char *title)
{
    hw_page_heading(&text->page, title);
    if (hw_view_measured(text->view, HW_MEASURED_BARS))
        return false;
    hw_page_wrap(&text->page, 0, "", "Not recorded: the profile was made by an older version, or by another program.");
    return true;
}

/* ---- sizes ---- */

/* Bytes in as few digits as say them exactly: limits of buckets are round numbers. */
static void add_limit(struct hw_buffer *out, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    int unit = -1;
    double value = (double)bytes;
    while (value >= 1024 && unit < 3) {
        value /= 1024;
        unit++;
    }
    if (unit < 0)
        hw_buffer_add(out, "%llu B", (unsigned long long)bytes);
    else
        hw_buffer_add(out, "%g %s", value, units[unit]);
}

/* "17 to 32 B", "over 1 KiB to 1.25 KiB": from the buckets FIRST to LAST. */
static void add_size(struct hw_buffer *out, uint32_t first, uint32_t last)
{
    const uint64_t least = hw_size_bucket_least(first), most = hw_size_bucket_most(last);
    if (last == HW_SIZE_BUCKET_UNKNOWN) {
        hw_buffer_add(out, "not known");
    } else if (!most) {
        hw_buffer_add(out, "0 B");
    } else if (most == UINT64_MAX) {
        hw_buffer_add(out, "over ");
        add_limit(out, least - 1);
    } else if (most <= HW_SIZE_SMALL_MOST) {
        hw_buffer_add(out, "%llu to %llu B", (unsigned long long)least, (unsigned long long)most);
    } else {
        hw_buffer_add(out, "to ");
        add_limit(out, most);
    }
}

/* The last bucket of the row that begins with BUCKET: rows end at powers of two. */
static uint32_t end_of_row(uint32_t bucket, bool each)
{
    if (each || bucket == 0 || bucket >= HW_SIZE_BUCKET_LAST)
        return bucket;
    uint64_t most = 16;
    while (most < hw_size_bucket_most(bucket))
        most *= 2;
    return hw_size_bucket(most);
}

static void print_size(struct hw_text *text, uint32_t first, uint32_t last, const struct hw_profile_size_bar *row,
                       const struct hw_profile_size_bar *all, uint64_t most)
{
    const struct hw_page *page = &text->page;
    hw_buffer_clear(&text->line);
    add_size(&text->line, first, last);
    fprintf(page->stream, "%*s %11s %7s %11s %7s %10s", HW_RIGHT(15, hw_buffer_text(&text->line)),
            HW_MANY(row->allocations), HW_PERCENT((double)row->allocations, (double)all->allocations),
            HW_BYTES(row->bytes), HW_PERCENT((double)row->bytes, (double)all->bytes),
            hw_view_measured(text->view, HW_MEASURED_PEAK) ? HW_BYTES(hw_not_negative(row->peak_bytes)) : "-");
    print_bar(page, (double)row->bytes, (double)most, page->width > 68 ? page->width - 68 : 0);
}

void hw_text_sizes(struct hw_text *text)
{
    const struct hw_page *page = &text->page;
    struct hw_profile_size_bar bars[HW_SIZE_BUCKETS], all = {0};
    const bool estimated = hw_view_sampled(text->view);
    if (not_recorded(text, estimated ? "Sizes of blocks (estimated)" : "Sizes of blocks"))
        return;
    hw_view_sum_sizes(text->view, bars);
    for (uint32_t i = 0; i < HW_SIZE_BUCKETS; i++)
        hw_size_bar_add(&all, &bars[i]);
    hw_page_print(page, HW_FAINT, "%15s %11s %7s %11s %7s %10s", "size", "allocations", "share", "bytes", "share",
                  "at peak");
    fputc('\n', page->stream);
    uint64_t most = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t first = 0, last; first < HW_SIZE_BUCKETS; first = last + 1) {
            struct hw_profile_size_bar row = {0};
            last = end_of_row(first, text->options->full);
            for (uint32_t i = first; i <= last; i++)
                hw_size_bar_add(&row, &bars[i]);
            if (pass && hw_size_bar_used(&row))
                print_size(text, first, last, &row, &all, most);
            most = row.bytes > most ? row.bytes : most;
        }
    }
    hw_buffer_clear(&text->line);
    hw_buffer_add(&text->line, "%15s %11s %7s %11s %7s %10s", "all", HW_MANY(all.allocations), "", HW_BYTES(all.bytes),
                  "", hw_view_measured(text->view, HW_MEASURED_PEAK) ? HW_BYTES(hw_not_negative(all.peak_bytes)) : "-");
    hw_page_print(page, HW_STRONG, "%s", hw_buffer_text(&text->line));
    fputs("\n\n", page->stream);
    hw_buffer_clear(&text->line);
    if (all.reallocations)
        hw_buffer_add(&text->line,
                      "%s: a block is counted under its first size; the bytes that a reallocation adds are counted "
                      "under the new size. ",
                      HW_OF(all.reallocations, "reallocation"));
    hw_buffer_add(&text->line, "The bars show bytes.%s", text->options->full ? "" : " --full shows each size class.");
    hw_page_wrap(page, 0, "", hw_buffer_text(&text->line));
}

/* ---- lifetimes ---- */

/* "256 to 511 ns" would be wrong by the rounding of larger units: only the begin is said. */
static void add_life(struct hw_buffer *out, uint32_t life, bool utf8)
{
    if (life >= HW_LIFETIME_UNKNOWN)
        hw_buffer_add(out, "not known");
    else if (life <= HW_LIFETIME_FIRST)
        hw_buffer_add(out, "below %s", HW_NS(hw_lifetime_bar_least(HW_LIFETIME_FIRST + 1), utf8));
    else
        hw_buffer_add(out, "from %s", HW_NS(hw_lifetime_bar_least(life), utf8));
}

void hw_text_lifetimes(struct hw_text *text)
{
    const struct hw_page *page = &text->page;
    struct hw_profile_life_bar bars[HW_LIFETIME_UNKNOWN + 1], all = {0};
    uint32_t first = HW_LIFETIME_UNKNOWN, last = 0;
    uint64_t live = 0, live_bytes = 0, most = 0;
    const bool estimated = hw_view_sampled(text->view);
    if (not_recorded(text, estimated ? "Lifetimes of freed blocks (estimated)" : "Lifetimes of freed blocks"))
        return;
    hw_view_sum_lives(text->view, bars);
    for (uint32_t i = 0; i <= HW_LIFETIME_UNKNOWN; i++) {
        all.frees += bars[i].frees;
        all.bytes += bars[i].bytes;
        most = bars[i].frees > most ? bars[i].frees : most;
        if (bars[i].frees && i < HW_LIFETIME_UNKNOWN) {
            first = i < first ? i : first;
            last = i;
        }
    }
    for (size_t i = 0; i < text->view->context_count; i++) {
        const struct hw_profile_context *sum = &text->view->contexts[i].sum;
        live += sum->pool ? 0 : hw_not_negative(sum->live_blocks);
        live_bytes += sum->pool ? 0 : hw_not_negative(sum->live_bytes);
    }
    hw_page_print(page, HW_FAINT, "%15s %11s %7s %11s %7s", "lifetime", "frees", "share", "bytes", "share");
    fputc('\n', page->stream);
    for (uint32_t i = first; i <= HW_LIFETIME_UNKNOWN; i = i == last ? HW_LIFETIME_UNKNOWN : i + 1) {
        if (i == HW_LIFETIME_UNKNOWN && !bars[i].frees)
            break;
        hw_buffer_clear(&text->line);
        add_life(&text->line, i, page->utf8);
        fprintf(page->stream, "%*s %11s %7s %11s %7s", HW_RIGHT(15, hw_buffer_text(&text->line)),
                HW_MANY(bars[i].frees), HW_PERCENT((double)bars[i].frees, (double)all.frees), HW_BYTES(bars[i].bytes),
                HW_PERCENT((double)bars[i].bytes, (double)all.bytes));
        print_bar(page, (double)bars[i].frees, (double)most, page->width > 57 ? page->width - 57 : 0);
        if (i == HW_LIFETIME_UNKNOWN)
            break;
    }
    hw_buffer_clear(&text->line);
    hw_buffer_add(&text->line, "%15s %11s %7s %11s", "all", HW_MANY(all.frees), "", HW_BYTES(all.bytes));
    hw_page_print(page, HW_STRONG, "%s", hw_buffer_text(&text->line));
    fputs("\n\n", page->stream);
    hw_buffer_clear(&text->line);
    if (hw_view_measured(text->view, HW_MEASURED_LIVE))
        hw_buffer_add(&text->line, "Not freed, and in no line: %s in %s. ", HW_BYTES(live_bytes), HW_OF(live, "block"));
    hw_buffer_add(&text->line, "A line ends at twice the time that it begins with. The bars show frees.");
    hw_page_wrap(page, 0, "", hw_buffer_text(&text->line));
}

/* ---- one context ---- */

#define FACTS 2 /* bars that a context's facts name: a fact is one line */

static int most_bytes(const void *left, const void *right)
{
    const struct hw_profile_size_bar *a = *(const struct hw_profile_size_bar *const *)left,
                                     *b = *(const struct hw_profile_size_bar *const *)right;
    return a->bytes != b->bytes ? (a->bytes < b->bytes) - (a->bytes > b->bytes) : a->bucket < b->bucket ? -1 : 1;
}

static int most_frees(const void *left, const void *right)
{
    const struct hw_profile_life_bar *a = *(const struct hw_profile_life_bar *const *)left,
                                     *b = *(const struct hw_profile_life_bar *const *)right;
    return a->frees != b->frees ? (a->frees < b->frees) - (a->frees > b->frees) : a->life < b->life ? -1 : 1;
}

void hw_text_distribution_facts(struct hw_text *text, size_t context, struct hw_buffer *facts)
{
    const struct hw_profile_context *sum = &text->view->contexts[context].sum;
    const struct hw_profile_size_bar *size[HW_SIZE_BUCKETS];
    const struct hw_profile_life_bar *life[HW_LIFETIME_UNKNOWN + 1];
    size_t count;
    if (!text->view->size_bars)
        return;
    const struct hw_profile_size_bar *sizes = hw_view_size_bars(text->view, context, &count);
    for (size_t i = 0; i < count; i++)
        size[i] = &sizes[i];
    if (count > 1) {
        qsort(size, count, sizeof *size, most_bytes);
        hw_buffer_add(facts, "sizes:");
        for (size_t i = 0; i < count && i < FACTS; i++) {
            hw_buffer_add(facts, "%s ", i ? "," : "");
            add_size(facts, size[i]->bucket, size[i]->bucket);
            hw_buffer_add(facts, " %s", HW_PERCENT((double)size[i]->bytes, (double)sum->bytes));
        }
        hw_buffer_add(facts, " of its bytes\n");
    }
    const struct hw_profile_life_bar *lives = hw_view_life_bars(text->view, context, &count);
    for (size_t i = 0; i < count; i++)
        life[i] = &lives[i];
    if (count > 1) {
        qsort(life, count, sizeof *life, most_frees);
        hw_buffer_add(facts, "lifetimes:");
        for (size_t i = 0; i < count && i < FACTS; i++) {
            hw_buffer_add(facts, "%s ", i ? "," : "");
            add_life(facts, life[i]->life, text->page.utf8);
            hw_buffer_add(facts, " %s", HW_PERCENT((double)life[i]->frees, (double)sum->frees));
        }
        hw_buffer_add(facts, " of its frees\n");
    }
}
