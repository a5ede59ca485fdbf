/* page.c - see page.h. */
#include "report/page/page.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

static const char *const styles[] = {
    [HW_PLAIN] = "",          [HW_HEADING] = "\033[1m", [HW_STRONG] = "\033[1m",
    [HW_NAME] = "\033[1;36m", [HW_FAINT] = "\033[2m",   [HW_ALERT] = "\033[1;31m",
};

void hw_page_print(const struct hw_page *page, enum hw_style style, const char *format, ...)
{
    const bool colored = page->color && style != HW_PLAIN;
    if (colored)
        fputs(styles[style], page->stream);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(page->stream, format, arguments);
    va_end(arguments);
    if (colored)
        fputs("\033[0m", page->stream);
}

void hw_page_pad(const struct hw_page *page, size_t count)
{
    fprintf(page->stream, "%*s", (int)count, "");
}

void hw_page_heading(const struct hw_page *page, const char *title)
{
    fputc('\n', page->stream);
    hw_page_print(page, HW_HEADING, "%s", title);
    fputc('\n', page->stream);
    for (unsigned i = 0; i < page->width; i++)
        fputs(page->utf8 ? "\u2500" : "-", page->stream);
    fputc('\n', page->stream);
}

/* Whether WORD (SIZE bytes) is a unit that stays with the number before it. */
static bool is_unit(const char *word, size_t size)
{
    static const char *const units[] = {"B",       "KiB", "MiB", "GiB", "TiB", "%",  "ns", "us",
                                        "\u00b5s", "ms",  "s",   "min", "h",   "%,", "%;"};
    while (size && strchr(".,;:)", word[size - 1]))
        size--;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i]) == size && !strncmp(word, units[i], size))
            return true;
    return false;
}

static size_t columns_of(const char *text, size_t size)
{
    size_t columns = 0;
    for (size_t i = 0; i < size; i++)
        columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    return columns;
}

/* Bytes of the piece at TEXT that must stay on one line: a word, and the units that follow a number. */
static size_t piece(const char *text)
{
    size_t size = strcspn(text, " \n");
    while (size && isdigit((unsigned char)text[size - 1]) && text[size] == ' ') {
        const size_t next = strcspn(text + size + 1, " \n");
        if (!is_unit(text + size + 1, next))
            break;
        size += 1 + next;
    }
    return size;
}

/* Sentences that JSON has, too, write microseconds with a micro sign. */
static void write_piece(const struct hw_page *page, const char *text, size_t size)
{
    static const char micro[] = "\u00b5";
    for (const char *end = text + size; text < end;) {
        const bool sign = !page->utf8 && strncmp(text, micro, sizeof micro - 1) == 0;
        fputc(sign ? 'u' : *text, page->stream);
        text += sign ? sizeof micro - 1 : 1;
    }
}

#define WIDEST_TEXT 120 /* lines of sentences are hard to follow beyond */

/* Wraps TEXT; the cursor stands at COLUMN, lines after the first begin at INDENT. Ends the last line. */
static void wrap(const struct hw_page *page, size_t column, size_t indent, const char *text)
{
    const size_t width = page->width < WIDEST_TEXT ? page->width : WIDEST_TEXT;
    bool begun = false;
    while (*text) {
        const size_t size = piece(text), columns = columns_of(text, size);
        if (begun && column + 1 + columns > width) {
            fputc('\n', page->stream);
            hw_page_pad(page, indent);
            column = indent;
        } else if (begun) {
            fputc(' ', page->stream);
            column++;
        }
        write_piece(page, text, size);
        column += columns;
        begun = true;
        text += size;
        if (*text == '\n') {
            fputc('\n', page->stream);
            if (text[1])
                hw_page_pad(page, indent);
            column = indent;
            begun = false;
        }
        text += *text != '\0';
    }
    if (begun)
        fputc('\n', page->stream);
}

#define LABEL_WIDTH 12

void hw_page_item(const struct hw_page *page, const char *label, const char *text)
{
    hw_page_marked(page, HW_STRONG, label, text);
}

void hw_page_marked(const struct hw_page *page, enum hw_style style, const char *label, const char *text)
{
    hw_page_print(page, style, "%s", label);
    const size_t width = hw_text_width(label), pad = width < LABEL_WIDTH ? LABEL_WIDTH - width : 1;
    hw_page_pad(page, pad);
    wrap(page, width + pad, LABEL_WIDTH, text);
}

void hw_page_wrap(const struct hw_page *page, unsigned indent, const char *bullet, const char *text)
{
    const size_t width = hw_text_width(bullet);
    fputs(bullet, page->stream);
    if (width < indent)
        hw_page_pad(page, indent - width);
    wrap(page, indent, indent, text);
}

void hw_page_facts(const struct hw_page *page, unsigned indent, const char *facts)
{
    size_t column = 0;
    while (*facts) {
        const size_t size = strcspn(facts, "\n"), columns = columns_of(facts, size);
        const bool more = facts[size] && facts[size + 1];
        if (column && column + 1 + columns + more > page->width) {
            fputc('\n', page->stream);
            column = 0;
        }
        if (column)
            fputc(' ', page->stream);
        else
            hw_page_pad(page, indent);
        column += columns + (column ? 1 : indent);
        fwrite(facts, 1, size, page->stream);
        if (more)
            fputc(';', page->stream);
        column += more;
        facts += size + (facts[size] != '\0');
    }
    if (column)
        fputc('\n', page->stream);
}

const char *hw_page_ellipsis(const struct hw_page *page)
{
    return page->utf8 ? "\u2026" : "...";
}

const char *hw_page_cut(const struct hw_page *page, struct hw_buffer *buffer, const char *text, size_t columns)
{
    hw_buffer_clear(buffer);
    const size_t mark = hw_text_width(hw_page_ellipsis(page));
    if (hw_text_width(text) <= columns || columns <= mark) {
        hw_buffer_bytes(buffer, text, strlen(text));
    } else {
        hw_buffer_bytes(buffer, text, hw_text_cut(text, columns - mark));
        hw_buffer_add(buffer, "%s", hw_page_ellipsis(page));
    }
    return hw_buffer_text(buffer);
}

const char *hw_page_clean(const struct hw_page *page, struct hw_buffer *buffer, const char *text)
{
    hw_buffer_clear(buffer);
    hw_buffer_clean(buffer, text, page->utf8 ? HW_CLEAN_UTF8 : HW_CLEAN_ASCII);
    return hw_buffer_text(buffer);
}
