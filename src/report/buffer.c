/* buffer.c - see buffer.h. */
#include "report/buffer.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static bool make_room(struct hw_buffer *buffer, size_t more)
{
    if (buffer->failed)
        return false;
    if (buffer->capacity - buffer->used > more)
        return true;
    size_t capacity = buffer->capacity ? buffer->capacity : 64;
    while (capacity - buffer->used <= more)
        capacity *= 2;
    char *data = realloc(buffer->data, capacity);
    if (!data) {
        buffer->failed = true;
        return false;
    }
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

void hw_buffer_bytes(struct hw_buffer *buffer, const char *data, size_t size)
{
    if (!make_room(buffer, size))
        return;
    if (size)
        memcpy(buffer->data + buffer->used, data, size);
    buffer->used += size;
    buffer->data[buffer->used] = '\0';
}

void hw_buffer_add(struct hw_buffer *buffer, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (size < 0)
        buffer->failed = true;
    else if (make_room(buffer, (size_t)size)) {
        vsnprintf(buffer->data + buffer->used, (size_t)size + 1, format, again);
        buffer->used += (size_t)size;
    }
    va_end(again);
}

void hw_buffer_number(struct hw_buffer *buffer, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    hw_buffer_bytes(buffer, digits + at, sizeof digits - at);
}

/* Length of the UTF-8 sequence at TEXT, of which LEFT bytes are there, with its code point; 0 when it is not one
 * (overlong, surrogate, too great, cut). */
static size_t decode(const unsigned char *text, size_t left, uint32_t *point)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    for (size_t more = 0; more < sizeof forms / sizeof *forms && more < left; more++) {
        if ((text[0] & forms[more].mask) != forms[more].lead)
            continue;
        uint32_t value = text[0] & (unsigned char)~forms[more].mask;
        for (size_t i = 1; i <= more; i++) {
            if ((text[i] & 0xc0) != 0x80)
                return 0;
            value = value << 6 | (text[i] & 0x3f);
        }
        if (value < forms[more].least || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
            return 0;
        *point = value;
        return more + 1;
    }
    return 0;
}

static bool is_control(uint32_t point)
{
    return point < 0x20 || (point >= 0x7f && point < 0xa0);
}

/* Also what changes the direction of what follows, and separators of lines. */
static bool is_hidden(uint32_t point)
{
    return is_control(point) || point == 0x61c || point == 0x200e || point == 0x200f ||
           (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

void hw_buffer_clean(struct hw_buffer *buffer, const char *text, enum hw_clean clean)
{
    const unsigned char *at = (const unsigned char *)text, *plain = at;
    const unsigned char *const end = at + strlen(text);
    while (at < end) {
        uint32_t point = 0;
        size_t size = decode(at, (size_t)(end - at), &point);
        bool keep = size && (clean == HW_CLEAN_JSON || !is_control(point)) && (clean != HW_CLEAN_ASCII || point < 0x7f);
        if (keep) {
            at += size;
            continue;
        }
        hw_buffer_bytes(buffer, (const char *)plain, (size_t)(at - plain));
        for (size_t i = 0; i < (size ? size : 1); i++)
            hw_buffer_add(buffer, "\\x%02x", *at++);
        plain = at;
    }
    hw_buffer_bytes(buffer, (const char *)plain, (size_t)(at - plain));
}

void hw_buffer_quote(struct hw_buffer *buffer, const void *bytes, size_t count, enum hw_clean clean)
{
    const unsigned char *at = bytes, *const end = at + count;
    hw_buffer_bytes(buffer, "\"", 1);
    while (at < end) {
        uint32_t point = 0;
        size_t size = decode(at, (size_t)(end - at), &point);
        if (size && !is_hidden(point) && (clean != HW_CLEAN_ASCII || point < 0x7f)) {
            if (point == '"' || point == '\\')
                hw_buffer_bytes(buffer, "\\", 1);
            hw_buffer_bytes(buffer, (const char *)at, size);
            at += size;
            continue;
        }
        size = size ? size : 1;
        if (point == '\n' || point == '\t' || point == '\r') {
            hw_buffer_add(buffer, "\\%c", point == '\n' ? 'n' : point == '\t' ? 't' : 'r');
            at++;
            continue;
        }
        for (; size--; at++)
            hw_buffer_add(buffer, "\\x%02x", *at);
    }
    hw_buffer_bytes(buffer, "\"", 1);
}

size_t hw_text_bytes(const void *bytes, size_t count, size_t *odd)
{
    const unsigned char *at = bytes, *const end = at + count;
    *odd = 0;
    while (at < end) {
        uint32_t point = 0;
        const size_t size = decode(at, (size_t)(end - at), &point);
        if (!size && (size_t)(end - at) < 4 && *at >= 0xc2)
            break;
        *odd += !size || (is_hidden(point) && point != '\n' && point != '\t' && point != '\r');
        at += size ? size : 1;
    }
    return (size_t)(at - (const unsigned char *)bytes);
}

static int add_json(const char *text, size_t size, void *buffer)
{
    hw_buffer_bytes(buffer, text, size);
    return 0;
}

void hw_buffer_json(struct hw_buffer *buffer, const struct json_t *value, size_t flags)
{
    buffer->failed |= !value || json_dump_callback(value, add_json, buffer, flags) != 0;
}

static ssize_t write_bytes(void *buffer, const char *bytes, size_t size)
{
    hw_buffer_bytes(buffer, bytes, size);
    return ((const struct hw_buffer *)buffer)->failed ? 0 : (ssize_t)size; /* 0: an error */
}

FILE *hw_buffer_stream(struct hw_buffer *buffer)
{
    return fopencookie(buffer, "w", (cookie_io_functions_t){.write = write_bytes});
}

const char *hw_buffer_text(const struct hw_buffer *buffer)
{
    return buffer->data ? buffer->data : "";
}

void hw_buffer_cut(struct hw_buffer *buffer, size_t size)
{
    if (size > buffer->used)
        return;
    buffer->used = size;
    if (buffer->data)
        buffer->data[size] = '\0';
}

void hw_buffer_clear(struct hw_buffer *buffer)
{
    hw_buffer_cut(buffer, 0);
}

void hw_buffer_free(struct hw_buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct hw_buffer){0};
}

void hw_advice_clear(struct hw_advice *advice)
{
    hw_buffer_clear(&advice->title);
    hw_buffer_clear(&advice->why);
    hw_buffer_clear(&advice->what);
    hw_buffer_clear(&advice->gain);
}

bool hw_advice_free(struct hw_advice *advice)
{
    const bool failed = advice->title.failed || advice->why.failed || advice->what.failed || advice->gain.failed;
    hw_buffer_free(&advice->title);
    hw_buffer_free(&advice->why);
    hw_buffer_free(&advice->what);
    hw_buffer_free(&advice->gain);
    return !failed;
}

size_t hw_text_width(const char *text)
{
    size_t columns = 0;
    for (; *text; text++)
        columns += ((unsigned char)*text & 0xc0) != 0x80;
    return columns;
}

size_t hw_text_cut(const char *text, size_t columns)
{
    size_t i = 0;
    for (; text[i]; i++) {
        if (((unsigned char)text[i] & 0xc0) == 0x80)
            continue;
        if (columns-- == 0)
            break;
    }
    return i;
}
