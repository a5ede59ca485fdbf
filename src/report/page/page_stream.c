/* page_stream.c - see page_stream.h. */
#include "report/page/page_stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/growing.h"

#define OUT_LEAST 32768 /* bytes of room for what zlib writes */

static void deflate_bytes(struct hw_page_stream *to, const void *bytes, size_t size, int flush)
{
    z_stream *stream = &to->deflate;
    stream->next_in = bytes;
    do {
        const size_t piece = size > UINT32_MAX ? UINT32_MAX : size;
        stream->avail_in = (uInt)piece;
        size -= piece;
        do {
            if (to->used == to->capacity && !HW_GROW(to->out, to->capacity, to->used + OUT_LEAST)) {
                to->failed = true;
                return;
            }
            const size_t room = to->capacity - to->used;
            const uInt given = room > UINT32_MAX ? UINT32_MAX : (uInt)room;
            stream->next_out = to->out + to->used;
            stream->avail_out = given;
            deflate(stream, size ? Z_NO_FLUSH : flush);
            to->used += given - stream->avail_out;
        } while (stream->avail_out == 0);
    } while (size);
}

static size_t varint(unsigned char *out, uint64_t value)
{
    size_t size = 0;
    for (; value > 127; value >>= 7)
        out[size++] = (unsigned char)(value | 128);
    out[size++] = (unsigned char)value;
    return size;
}

bool hw_page_stream_begin(struct hw_page_stream *stream)
{
    *stream = (struct hw_page_stream){.out = NULL};
    stream->failed = deflateInit(&stream->deflate, Z_BEST_COMPRESSION) != Z_OK;
    return !stream->failed;
}

void hw_page_part(struct hw_page_stream *stream, const char *name, enum hw_page_part kind)
{
    unsigned char head[80];
    const size_t length = strlen(name);
    size_t size = varint(head, length);
    memcpy(head + size, name, length);
    size += length;
    head[size++] = (unsigned char)kind;
    size += varint(head + size, stream->part.used);
    deflate_bytes(stream, head, size, Z_NO_FLUSH);
    deflate_bytes(stream, stream->part.data, stream->part.used, Z_NO_FLUSH);
    hw_buffer_clear(&stream->part);
    stream->last = 0;
}

void hw_page_number(struct hw_page_stream *stream, uint64_t value)
{
    unsigned char bytes[10];
    hw_buffer_bytes(&stream->part, (const char *)bytes, varint(bytes, value));
}

void hw_page_signed(struct hw_page_stream *stream, int64_t value)
{
    hw_page_number(stream, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

void hw_page_step(struct hw_page_stream *stream, uint64_t value)
{
    hw_page_signed(stream, (int64_t)(value - stream->last));
    stream->last = value;
}

uint32_t hw_page_string(struct hw_page_stream *stream, const char *text)
{
    if (!text || !*text)
        return 0;
    hw_buffer_clear(&stream->cleaned);
    hw_buffer_clean(&stream->cleaned, text, HW_CLEAN_JSON);
    return hw_intern(&stream->strings, hw_buffer_text(&stream->cleaned));
}

/* Texts since the last time, and the end of what is compressed. */
static void finish(struct hw_page_stream *stream)
{
    const struct hw_buffer *text = &stream->strings.text;
    if (!stream->continued)
        hw_buffer_bytes(&stream->part, "", 1);
    hw_buffer_bytes(&stream->part, hw_buffer_text(text) + stream->strings_out, text->used - stream->strings_out);
    stream->strings_out = text->used;
    hw_page_part(stream, "strings", HW_PART_STRINGS);
    deflate_bytes(stream, "", 0, Z_FINISH);
}

unsigned char *hw_page_stream_cut(struct hw_page_stream *stream, size_t *size)
{
    finish(stream);
    stream->failed |= deflateReset(&stream->deflate) != Z_OK;
    stream->continued = true;
    unsigned char *out = stream->out;
    *size = stream->used;
    stream->out = NULL;
    stream->used = stream->capacity = 0;
    if (!stream->failed)
        return out;
    free(out);
    return NULL;
}

unsigned char *hw_page_stream_end(struct hw_page_stream *stream, bool fine, size_t *size)
{
    if (fine)
        finish(stream);
    const bool failed =
        !fine || stream->failed || stream->part.failed || stream->strings.failed || stream->cleaned.failed;
    deflateEnd(&stream->deflate);
    hw_buffer_free(&stream->part);
    hw_intern_free(&stream->strings);
    hw_buffer_free(&stream->cleaned);
    *size = stream->used;
    if (!failed)
        return stream->out;
    free(stream->out);
    return NULL;
}
