/* pairs.c - see pairs.h. */
#include "report/view/pairs.h"

#include <stdlib.h>

bool hw_pairs_make(struct hw_pairs *pairs, size_t expected)
{
    size_t size = 64;
    while (size < expected * 2)
        size *= 2;
    pairs->places = malloc(size * sizeof *pairs->places);
    pairs->mask = size - 1;
    for (size_t i = 0; pairs->places && i < size; i++)
        pairs->places[i].index = UINT32_MAX;
    return pairs->places != NULL;
}

void hw_pairs_free(struct hw_pairs *pairs)
{
    free(pairs->places);
    pairs->places = NULL;
}

uint32_t hw_pairs_intern(struct hw_pairs *pairs, uint64_t a, uint32_t b, uint32_t next, bool *new)
{
    uint64_t hash = (a ^ (uint64_t)b << 32 ^ b) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
    hash *= 0xbf58476d1ce4e5b9ull;
    size_t at = (size_t)(hash >> 20) & pairs->mask;
    while (pairs->places[at].index != UINT32_MAX && (pairs->places[at].a != a || pairs->places[at].b != b))
        at = (at + 1) & pairs->mask;
    struct hw_pair *place = &pairs->places[at];
    *new = place->index == UINT32_MAX;
    if (*new)
        *place = (struct hw_pair){a, b, next};
    return place->index;
}
