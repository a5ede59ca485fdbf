/* page_template.c - the built viewer with profiles in it: see page_data.h.
 *
 * Nothing but base64 is ever put into the page: no name of the profiled program can be taken for markup. */
#include <stdlib.h>
#include <string.h>

#include "report/page/page_data.h"

/* Where the streams go; separated by spaces. */
static const char mark[] = "@HEAPWISE-PROFILES-1@";

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

char *hw_page_fill(const char *template, size_t template_size, const unsigned char *const *streams, const size_t *sizes,
                   size_t count, size_t *size, struct hw_error *error)
{
    const char *place = memmem(template, template_size, mark, sizeof mark - 1);
    if (!place) {
        hw_error_set(error, "the page template is not that of this version of heapwise; is the installation complete?");
        return NULL;
    }
    size_t needed = template_size;
    for (size_t i = 0; i < count; i++)
        needed += (sizes[i] + 2) / 3 * 4 + 1;
    char *page = malloc(needed), *out = page;
    if (!page) {
        hw_error_set(error, "not enough memory for the page");
        return NULL;
    }
    out = mempcpy(out, template, (size_t)(place - template));
    for (size_t i = 0; i < count; i++) {
        if (i)
            *out++ = ' ';
        out = add_base64(out, streams[i], sizes[i]);
    }
    const char *rest = place + sizeof mark - 1;
    out = mempcpy(out, rest, (size_t)(template + template_size - rest));
    *size = (size_t)(out - page);
    return page;
}
