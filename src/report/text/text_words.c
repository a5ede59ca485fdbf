/* text_words.c - the words of a context's blocks at a glance: a sign each, the higher the more often it was used, a row
 * for 64 bytes. Where granules have 4 or 8 bytes. */
#include "report/text/text.h"

#include <stdlib.h>

#include "report/text/human.h"

#define ROW_BYTES 64
#define ROWS_MOST 8 /* of a list; --full: */
#define ROWS_FULL 64
#define LEVELS    8

struct words {
    uint64_t *count; /* by word of WORD bytes from the block's start */
    size_t words, word;
    uint64_t size, most, all;
};

/* Of --granule 4 how many periods; a word that was used counts at least 1. */
static void take_periods(const struct hw_view *view, size_t context, struct words *words)
{
    size_t runs;
    const struct hw_profile_words *run = hw_view_words(view, context, &runs);
    for (size_t i = 0; i < runs; i++)
        for (size_t k = 0; k < HW_WORDS_RUN && run[i].first_word + k < words->words; k++) {
            const uint64_t periods = hw_add_saturating(run[i].read_periods[k], run[i].written_periods[k]);
            words->count[run[i].first_word + k] =
                periods ? periods : (run[i].read_blocks[k] | run[i].written_blocks[k]) != 0;
        }
}

static void take_counts(const struct hw_view *view, size_t context, struct words *words)
{
    size_t runs;
    const struct hw_profile_histogram *run = hw_view_histogram(view, context, &runs);
    for (size_t i = 0; i < runs; i++)
        for (size_t k = 0; k < HW_HISTOGRAM_WORDS && run[i].first_word + k < words->words; k++)
            words->count[run[i].first_word + k] = run[i].words[k];
}

static bool take(struct hw_text *text, const struct hw_view_context *context, size_t rows, struct words *words)
{
    *words = (struct words){.word = hw_text_granule(text->view), .size = context->sum.size_max};
    const uint64_t bytes = words->size < rows * ROW_BYTES ? words->size : rows * ROW_BYTES;
    words->words = (size_t)(bytes + words->word - 1) / words->word;
    words->count = calloc(words->words + 1, sizeof *words->count);
    if (!words->count) {
        text->failed = true;
        return false;
    }
    (words->word == 4 ? take_periods : take_counts)(text->view, context->index, words);
    for (size_t i = 0; i < words->words; i++) {
        words->all = hw_add_saturating(words->all, words->count[i]);
        words->most = words->count[i] > words->most ? words->count[i] : words->most;
    }
    return true;
}

static const char *sign_of(const struct hw_page *page, uint64_t count, uint64_t most)
{
    static const char *const bars[LEVELS + 1] = {"\u00b7", "\u2581", "\u2582", "\u2583", "\u2584",
                                                 "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char *const digits[LEVELS + 1] = {".", "1", "2", "3", "4", "5", "6", "7", "8"};
    /* Every use shows: rounded up. */
    const double part = most ? (double)count / (double)most * LEVELS : 0;
    const unsigned whole = (unsigned)part, level = whole < part && whole < LEVELS ? whole + 1 : whole;
    return (page->utf8 ? bars : digits)[level];
}

static void print_row(struct hw_text *text, const struct words *words, size_t row)
{
    const struct hw_page *page = &text->page;
    const size_t first = row * ROW_BYTES / words->word, end = first + ROW_BYTES / words->word;
    uint64_t sum = 0;
    hw_buffer_clear(&text->line);
    for (size_t i = first; i < end; i++) {
        const bool gap = i > first && i % 4 == 0;
        hw_buffer_add(&text->line, "%s%s", gap ? " " : "",
                      i < words->words ? sign_of(page, words->count[i], words->most) : " ");
        sum = i < words->words ? hw_add_saturating(sum, words->count[i]) : sum;
    }
    fprintf(page->stream, "     %6zu  %s  %7s\n", row * ROW_BYTES, hw_buffer_text(&text->line),
            HW_PERCENT((double)sum, (double)words->all));
}

static bool is_unused(const struct words *words, size_t row)
{
    const size_t first = row * ROW_BYTES / words->word;
    for (size_t i = first; i < first + ROW_BYTES / words->word && i < words->words; i++)
        if (words->count[i])
            return false;
    return true;
}

/* Rows that nobody used, two or more of them, are one. */
static void print_rows(struct hw_text *text, const struct words *words)
{
    const size_t rows = (words->words * words->word + ROW_BYTES - 1) / ROW_BYTES;
    for (size_t row = 0; row < rows;) {
        size_t end = row;
        while (end < rows && is_unused(words, end))
            end++;
        if (end < row + 2) {
            print_row(text, words, row++);
            continue;
        }
        fprintf(text->page.stream, "     %6zu  never used, up to byte %zu\n", row * ROW_BYTES, end * ROW_BYTES - 1);
        row = end;
    }
    if (words->size > rows * ROW_BYTES)
        fprintf(text->page.stream, "     %6s  %s of the block (%s)\n", hw_page_ellipsis(&text->page),
                HW_BYTES(words->size - rows * ROW_BYTES), text->options->full ? "JSON has all" : "--full shows more");
}

void hw_text_words(struct hw_text *text, const struct hw_view_context *context)
{
    const unsigned granule = hw_text_granule(text->view);
    struct words words;
    if (granule == 64 || !context->sum.access ||
        !take(text, context, text->options->full ? ROWS_FULL : ROWS_MOST, &words))
        return;
    if (words.all) {
        hw_buffer_clear(&text->line);
        hw_buffer_add(&text->line, "Words of %u bytes, %u bytes a row: how often each is used (%s: never)", granule,
                      ROW_BYTES, sign_of(&text->page, 0, 1));
        hw_page_wrap(&text->page, 5, "", hw_buffer_text(&text->line));
        print_rows(text, &words);
    }
    free(words.count);
}
