/* edit_distance.c - see edit_distance.h. */
#include "base/edit_distance.h"

#include <stdbool.h>

#define LONGEST 63

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static char lower(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? (char)(letter + 'a' - 'A') : letter;
}

static bool same(char a, char b)
{
    return lower(a) == lower(b);
}

size_t hw_edit_distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
    size_t rows[3][LONGEST + 1]; /* of the table of distances between beginnings: this one, the last, the one before */
    if (a_size > LONGEST || b_size > LONGEST)
        return a_size > b_size ? a_size : b_size;
    for (size_t k = 0; k <= b_size; k++)
        rows[0][k] = k;
    for (size_t i = 1; i <= a_size; i++) {
        size_t *row = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t k = 1; k <= b_size; k++) {
            row[k] = least(least(last[k], row[k - 1]) + 1, last[k - 1] + !same(a[i - 1], b[k - 1]));
            if (i > 1 && k > 1 && same(a[i - 1], b[k - 2]) && same(a[i - 2], b[k - 1]))
                row[k] = least(row[k], before[k - 2] + 1);
        }
    }
    return rows[a_size % 3][b_size];
}
