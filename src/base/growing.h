/* growing.h - an array that grows, for everything outside the runtime. No code of its own. */
#ifndef HW_BASE_GROWING_H
#define HW_BASE_GROWING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* True when there is room for NEEDED elements in ARRAY, a pointer to malloc'ed ones; the size_t ROOM says for how many
 * there is. The array moves if it has to. False when there is no memory: then it is as it was. */
#define HW_GROW(array, room, needed) hw_grow(&(array), &(room), (needed), sizeof *(array))

static inline bool hw_grow(void *array, size_t *room, size_t needed, size_t size)
{
    void *elements;
    size_t larger, bytes;
    if (needed <= *room)
        return true;
    memcpy(&elements, array, sizeof elements);
    if (__builtin_mul_overflow(needed < 32 ? 32 : needed, (size_t)2, &larger) ||
        __builtin_mul_overflow(larger, size, &bytes))
        return false;
    elements = realloc(elements, bytes);
    if (!elements)
        return false;
    memcpy(array, &elements, sizeof elements);
    *room = larger;
    return true;
}

#endif
