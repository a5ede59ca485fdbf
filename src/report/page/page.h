/* page.h - a text page: width, colour, wrapping. Knows nothing of profiles.
 *
 * Text handed to the functions must be clean already (hw_page_clean); columns are code points. */
#ifndef HW_REPORT_PAGE_PAGE_H
#define HW_REPORT_PAGE_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "report/buffer.h"

struct hw_page {
    FILE *stream;
    unsigned width; /* columns */
    bool color;     /* escape sequences may be used */
    bool utf8;      /* else plain ASCII */
};

enum hw_style { HW_PLAIN, HW_HEADING, HW_STRONG, HW_NAME, HW_FAINT, HW_ALERT };

/* Prints in a style, without a line end. */
__attribute__((format(printf, 3, 4))) void hw_page_print(const struct hw_page *page, enum hw_style style,
                                                         const char *format, ...);

/* An empty line, the title, and a rule below it. */
void hw_page_heading(const struct hw_page *page, const char *title);

/* "Label      text", the text wrapped at words and aligned behind the label. */
void hw_page_item(const struct hw_page *page, const char *label, const char *text);

/* The same with the label in a style. */
void hw_page_marked(const struct hw_page *page, enum hw_style style, const char *label, const char *text);

/* TEXT wrapped at words, each line indented; the first one begins with BULLET, which is at most INDENT wide. A number
 * is not parted from its unit. A line of its own begins after each newline in TEXT. */
void hw_page_wrap(const struct hw_page *page, unsigned indent, const char *bullet, const char *text);

/* FACTS (separated by newlines) joined with "; ", broken between facts where they do not fit into a line. */
void hw_page_facts(const struct hw_page *page, unsigned indent, const char *facts);

/* TEXT cut to COLUMNS with an ellipsis, into BUFFER (cleared first). Returns its text. */
const char *hw_page_cut(const struct hw_page *page, struct hw_buffer *buffer, const char *text, size_t columns);

/* Foreign text made fit for the page, into BUFFER (cleared first). Returns its text. */
const char *hw_page_clean(const struct hw_page *page, struct hw_buffer *buffer, const char *text);

const char *hw_page_ellipsis(const struct hw_page *page);

/* COUNT spaces. */
void hw_page_pad(const struct hw_page *page, size_t count);

#endif
