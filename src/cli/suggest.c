/* suggest.c - see suggest.h. */
#include "cli/suggest.h"

#include <string.h>

#include "base/edit_distance.h"

size_t hw_word_distance(const char *a, size_t size, const char *b)
{
    return hw_edit_distance(a, size, b, strlen(b));
}

size_t hw_word_slip(const char *word)
{
    const size_t third = strlen(word) / 3;
    return third > 1 ? third : 1;
}

const char *hw_nearest_in(const char *word, const char *list, size_t *size)
{
    const char *nearest = NULL;
    size_t best = hw_word_slip(word) + 1;
    while (*list) {
        const size_t length = strcspn(list, ",");
        const size_t distance = hw_word_distance(list, length, word);
        if (distance < best && distance < strlen(word)) {
            best = distance;
            nearest = list;
            *size = length;
        }
        list += length;
        list += strspn(list, ", ");
    }
    return nearest;
}
