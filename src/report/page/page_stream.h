/* page_stream.h - the stream of named parts that a page reads (page_data.h says what it looks like), being written. */
#ifndef HW_REPORT_PAGE_PAGE_STREAM_H
#define HW_REPORT_PAGE_PAGE_STREAM_H

#define ZLIB_CONST
#include <zlib.h>

#include "base/error.h"
#include "report/buffer.h"
#include "report/view/intern.h"

enum hw_page_part { HW_PART_TEXT, HW_PART_STRINGS, HW_PART_NUMBERS, HW_PART_SIGNED, HW_PART_STEPS };

/* Parts go through the compressor one after the other. */
struct hw_page_stream {
    z_stream deflate;
    unsigned char *out; /* what is compressed so far */
    size_t used, capacity;
    struct hw_buffer part; /* the current part */
    struct hw_buffer cleaned;
    struct hw_intern strings;
    size_t strings_out; /* bytes of these that the stream before the cut has */
    bool continued;     /* there is one */
    bool failed;
    uint64_t last; /* of a column of steps */
};

/* False when there is no memory; hw_page_stream_end is to be called in any case. */
bool hw_page_stream_begin(struct hw_page_stream *stream);

/* The current part, number by number; then its name. */
void hw_page_number(struct hw_page_stream *stream, uint64_t value);
void hw_page_signed(struct hw_page_stream *stream, int64_t value);
void hw_page_step(struct hw_page_stream *stream, uint64_t value);
void hw_page_part(struct hw_page_stream *stream, const char *name, enum hw_page_part kind);

/* The number of TEXT, for columns of texts; 0 for NULL and for the empty string. */
uint32_t hw_page_string(struct hw_page_stream *stream, const char *text);

/* Ends what is compressed so far as a stream of its own, to be freed, *SIZE bytes; what comes goes into another one,
 * which continues the numbers of texts. NULL when there was no memory: the stream has failed. */
unsigned char *hw_page_stream_cut(struct hw_page_stream *stream, size_t *size);

/* Ends the stream: to be freed, *SIZE bytes. NULL when there was no memory, or when it is not FINE. */
unsigned char *hw_page_stream_end(struct hw_page_stream *stream, bool fine, size_t *size);

#endif
