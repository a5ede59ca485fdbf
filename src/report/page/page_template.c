/* page_template.c - the built viewer with profiles in it: see page_data.h.
 *
 * Nothing but base64 is ever put into the page: no name of the profiled program can be taken for markup. */
#include <stdlib.h>
#include <string.h>

#include "report/page/page_data.h"

/* Where the streams go, separated by spaces; the script that reads them stands between the two. */
static const char mark[] = "@HEAPWISE-PROFILES-2@", rest_mark[] = "@HEAPWISE-RESTS-2@";

static char *add_base64(char *out, const unsigned char *bytes, size_t size)
{
    static const char digits[64] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        const size_t left = size - i;
        const unsigned group =
            (unsigned)bytes[i] << 16 | (left > 1 ? (unsigned)bytes[i + 1] << 8 : 0) | (left > 2 ? bytes[i + 2] : 0);
        *out++ = digits[group >> 18];
        *out++ = digits[group >> 12 & 63];
        *out++ = left > 1 ? digits[group >> 6 & 63] : '=';
        *out++ = left > 2 ? digits[group & 63] : '=';
    }
    return out;
}

static size_t length(const struct hw_page_bytes *streams, size_t count)
{
    size_t needed = 0;
    for (size_t i = 0; i < count; i++)
        needed += (streams[i].size + 2) / 3 * 4 + 1;
    return needed;
}

static char *add_streams(char *out, const struct hw_page_bytes *streams, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i)
            *out++ = ' ';
        out = add_base64(out, streams[i].bytes, streams[i].size);
    }
    return out;
}

char *hw_page_fill(const char *template, size_t template_size, const struct hw_page_bytes *streams, size_t count,
                   const struct hw_page_bytes *rests, size_t rest_count, size_t *size, struct hw_error *error)
{
    const char *end = template + template_size;
    const char *place = memmem(template, template_size, mark, sizeof mark - 1);
    const char *after = place ? place + sizeof mark - 1 : NULL;
    const char *rest = after ? memmem(after, (size_t)(end - after), rest_mark, sizeof rest_mark - 1) : NULL;
    if (!rest) {
        hw_error_set(error, "the page template is not that of this version of heapwise; is the installation complete?");
        return NULL;
    }
    char *page = malloc(template_size + length(streams, count) + length(rests, rest_count)), *out = page;
    if (!page) {
        hw_error_set(error, "not enough memory for the page");
        return NULL;
    }
    out = mempcpy(out, template, (size_t)(place - template));
    out = add_streams(out, streams, count);
    out = mempcpy(out, after, (size_t)(rest - after));
    out = add_streams(out, rests, rest_count);
    rest += sizeof rest_mark - 1;
    out = mempcpy(out, rest, (size_t)(end - rest));
    *size = (size_t)(out - page);
    return page;
}
