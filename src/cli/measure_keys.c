/* measure_keys.c - see measure_keys.h. */
#include "cli/measure_keys.h"

#include <string.h>

#include "cli/cli.h"
#include "report/buffer.h"

static void say_renamed(const char *verb, const char *value, size_t size, const char *now)
{
    if (now)
        hw_say("%s: '%.*s' is now called '%s'", verb, (int)size, value, now);
}

enum hw_measure_id hw_take_measure(const char *verb, const char *value)
{
    const char *now;
    const enum hw_measure_id id = hw_measure_find(value, &now);
    say_renamed(verb, value, strlen(value), now);
    return id;
}

enum hw_sort_key hw_take_list(const char *verb, const char *value, size_t size)
{
    const char *now;
    const enum hw_sort_key key = hw_list_find(value, size, &now);
    say_renamed(verb, value, size, now);
    return key;
}

/* ---- help ---- */

#define INDENT 19
#define WIDTH  79

struct lines {
    struct hw_buffer *out;
    size_t column;
};

static void add_word(struct lines *lines, const char *word, const char *behind)
{
    const size_t size = strlen(word) + strlen(behind);
    const bool fits = lines->column && lines->column + 1 + size <= WIDTH;
    if (!fits)
        hw_buffer_add(lines->out, "%s%*s", lines->column ? "\n" : "", INDENT, "");
    hw_buffer_add(lines->out, "%s%s%s", fits ? " " : "", word, behind);
    lines->column = (fits ? lines->column + 1 : INDENT) + size;
}

static void add_key(struct lines *lines, const char *key, bool first_of_access, bool before_those, bool last)
{
    static const char *const words[] = {"where", "accesses", "were", "counted", "also"};
    for (size_t i = 0; first_of_access && i < sizeof words / sizeof *words; i++)
        add_word(lines, words[i], "");
    add_word(lines, key, before_those ? ";" : last ? "" : ",");
}

const char *hw_help_with_keys(const char *help)
{
    static struct hw_buffer out;
    static const char lists[] = "{lists}", measures[] = "{measures}";
    struct lines lines = {&out, 0};
    const bool of_lists = strstr(help, lists) != NULL;
    const char *at = strstr(help, of_lists ? lists : measures);
    hw_buffer_clear(&out);
    hw_buffer_bytes(&out, help, (size_t)(at - help));
    for (unsigned i = 0; of_lists && i < HW_SORT_KEYS; i++)
        add_key(&lines, hw_list_keys[i].key, i == HW_SORT_ACCESSES, i + 1 == HW_SORT_ACCESSES, i + 1 == HW_SORT_KEYS);
    for (unsigned i = 0; !of_lists && i < HW_MEASURES; i++)
        add_key(&lines, hw_measures[i].key, i == HW_MEASURE_ACCESSES, i + 1 == HW_MEASURE_ACCESSES,
                i + 1 == HW_MEASURES);
    hw_buffer_add(&out, "%s", at + strlen(of_lists ? lists : measures));
    return hw_buffer_text(&out);
}
