/* function_names.c - see function_names.h. */
#include "report/view/function_names.h"

#include <string.h>
#include <strings.h>

#include "base/edit_distance.h"
#include "report/buffer.h"
#include "report/view/frame_roles.h"

/* NAME without the returned type and the parameters: where it begins, and its SIZE. */
static const char *plain_name(const char *name, size_t *size)
{
    static const char anonymous[] = "(anonymous namespace)";
    const char *at = hw_qualified_name(name);
    int depth = 0;
    *size = 0;
    while (at[*size]) {
        const char here = at[*size];
        if (here == '(' && depth == 0 && *size && strncmp(at + *size, anonymous, sizeof anonymous - 1))
            break;
        depth += here == '<' ? 1 : here == '>' ? -1 : 0;
        ++*size;
    }
    return at;
}

/* The part behind the last "::" that is not between brackets. */
static const char *last_part(const char *name, size_t *size)
{
    size_t from = 0;
    int depth = 0;
    for (size_t i = 0; i + 1 < *size; i++) {
        depth += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
        if (depth == 0 && name[i] == ':' && name[i + 1] == ':')
            from = i + 2;
    }
    *size -= from;
    return name + from;
}

bool hw_is_called(const struct hw_frame *symbol, const char *wanted, int level)
{
    size_t size;
    if (!symbol->function)
        return false;
    if (level == 0)
        return !strcmp(symbol->function, wanted) || (symbol->linkage_name && !strcmp(symbol->linkage_name, wanted));
    const char *name = plain_name(symbol->function, &size);
    if (level == 2)
        name = last_part(name, &size);
    return strlen(wanted) == size && !strncmp(name, wanted, size);
}

/* ---- names that are near ---- */

#define NEAREST 3

static bool contains(const char *text, size_t size, const char *part)
{
    const size_t length = strlen(part);
    for (size_t i = 0; i + length <= size; i++)
        if (!strncasecmp(text + i, part, length))
            return true;
    return false;
}

/* How far FUNCTION is from WANTED: letters to change, and beyond them names that have it in them; SIZE_MAX: too far. */
static size_t how_far(const char *function, const char *wanted)
{
    const size_t length = strlen(wanted), most = length / 3 < 2 ? 2 : length / 3;
    size_t size;
    const char *name = plain_name(function, &size);
    size_t part_size = size;
    const char *part = last_part(name, &part_size);
    const size_t whole = hw_edit_distance(name, size, wanted, length);
    const size_t last = hw_edit_distance(part, part_size, wanted, length);
    const size_t apart = whole < last ? whole : last;
    if (apart <= most)
        return apart;
    return length > 2 && contains(name, size, wanted) ? most + 1 + (size > length ? size - length : 0) : SIZE_MAX;
}

struct nearest {
    const char *name[NEAREST];
    size_t apart[NEAREST];
};

static void consider(struct nearest *best, const char *function, const char *wanted)
{
    size_t at = 0;
    for (size_t i = 0; i < NEAREST; i++)
        if (best->name[i] && !strcmp(best->name[i], function))
            return;
    const size_t apart = how_far(function, wanted);
    while (at < NEAREST && apart >= best->apart[at])
        at++;
    for (size_t i = NEAREST - 1; i > at && at < NEAREST; i--) {
        best->name[i] = best->name[i - 1];
        best->apart[i] = best->apart[i - 1];
    }
    if (at < NEAREST) {
        best->name[at] = function;
        best->apart[at] = apart;
    }
}

void hw_say_no_function(const struct hw_view *view, const char *wanted, struct hw_error *error)
{
    struct nearest best = {.apart = {SIZE_MAX, SIZE_MAX, SIZE_MAX}};
    struct hw_buffer text = {0};
    const char *last = NULL;
    for (size_t i = 0; i < view->location_count; i++)
        for (uint32_t k = 0; k < view->locations[i].frames.count; k++) {
            const char *function = view->locations[i].frames.frame[k].function;
            if (function && function != last)
                consider(&best, function, wanted);
            last = function;
        }
    for (size_t i = 0; i < NEAREST && best.name[i]; i++) {
        hw_buffer_add(&text, "%s", i ? ", " : "; nearest: ");
        hw_buffer_clean(&text, best.name[i], HW_CLEAN_UTF8);
    }
    if (!best.name[0])
        hw_buffer_add(&text, "; write the name as the report shows it");
    hw_error_set(error, "%s: no place has '%s' on its stack%s", view->profile->path ? view->profile->path : "profile",
                 wanted, hw_buffer_text(&text));
    hw_buffer_free(&text);
}
