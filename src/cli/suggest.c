/* suggest.c - see suggest.h. */
#include "cli/suggest.h"

#include <string.h>

#define LONGEST 48 /* longer words are no slips */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t hw_word_distance(const char *a, size_t size, const char *b)
{
    const size_t other = strlen(b);
    size_t rows[3][LONGEST + 1]; /* of the table of distances between beginnings: this one, the last, the one before */
    if (size > LONGEST || other > LONGEST)
        return size > other ? size : other;
    for (size_t k = 0; k <= other; k++)
        rows[0][k] = k;
    for (size_t i = 1; i <= size; i++) {
        size_t *row = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t k = 1; k <= other; k++) {
            row[k] = least(least(last[k], row[k - 1]) + 1, last[k - 1] + (a[i - 1] != b[k - 1]));
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                row[k] = least(row[k], before[k - 2] + 1);
        }
    }
    return rows[size % 3][other];
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
