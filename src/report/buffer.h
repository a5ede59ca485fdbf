/* buffer.h - a string that grows, and what makes foreign bytes fit to be shown.
 *
 * Running out of memory sets `failed` and drops the addition: callers check once, at the end. */
#ifndef HW_REPORT_BUFFER_H
#define HW_REPORT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Zero-initialise. `data` is NUL-terminated as soon as anything was added; hw_buffer_text is never NULL. */
struct hw_buffer {
    char *data;
    size_t used, capacity;
    bool failed;
};

/* What may stay in text that comes from the profiled program. */
enum hw_clean {
    HW_CLEAN_JSON,  /* valid UTF-8; control characters stay (JSON escapes them itself) */
    HW_CLEAN_UTF8,  /* valid UTF-8 without control characters: safe on a terminal */
    HW_CLEAN_ASCII, /* printable ASCII only */
};

void hw_buffer_bytes(struct hw_buffer *buffer, const char *data, size_t size);
__attribute__((format(printf, 2, 3))) void hw_buffer_add(struct hw_buffer *buffer, const char *format, ...);

/* Appends a decimal number: much faster than by a format. */
void hw_buffer_number(struct hw_buffer *buffer, uint64_t number);

/* Appends TEXT; bytes that may not stay become \xNN. */
void hw_buffer_clean(struct hw_buffer *buffer, const char *text, enum hw_clean clean);
/* Appends COUNT bytes in quotes, as a string of C: controls, what is not UTF-8, quotes and backslashes are escaped. */
void hw_buffer_quote(struct hw_buffer *buffer, const void *bytes, size_t count, enum hw_clean clean);
/* How many of COUNT bytes there are before a character that is cut at the end; *ODD: controls other than \t, \n and \r,
 * and bytes that are not UTF-8. */
size_t hw_text_bytes(const void *bytes, size_t count, size_t *odd);

/* Appends VALUE as JSON; it may be NULL, which fails. json_dumps leaves parts out when there is no memory for them. */
struct json_t;
void hw_buffer_json(struct hw_buffer *buffer, const struct json_t *value, size_t flags);

/* A stream that appends to BUFFER what is written to it, until fclose; NULL when there is no memory. Unlike that of
 * open_memstream of glibc 2.36 it has an error (ferror), and BUFFER has failed, where there was no memory for a part. */
FILE *hw_buffer_stream(struct hw_buffer *buffer);

const char *hw_buffer_text(const struct hw_buffer *buffer);
/* Keeps the first SIZE bytes. */
void hw_buffer_cut(struct hw_buffer *buffer, size_t size);
void hw_buffer_clear(struct hw_buffer *buffer);
void hw_buffer_free(struct hw_buffer *buffer);

/* What a finding says. Zero-initialise. */
struct hw_advice {
    struct hw_buffer title; /* "struct node: fields used together lie apart" */
    struct hw_buffer why;   /* the evidence */
    struct hw_buffer what;  /* to do */
    struct hw_buffer gain;  /* "3.9 G cache lines (249.1 GiB) not brought in"; "" when it is not known */
};

void hw_advice_clear(struct hw_advice *advice);
/* False when there was no memory at any time. */
bool hw_advice_free(struct hw_advice *advice);

/* Columns that valid UTF-8 text takes: one for each code point. */
size_t hw_text_width(const char *text);

/* Bytes of TEXT that fit into COLUMNS. */
size_t hw_text_cut(const char *text, size_t columns);

#endif
