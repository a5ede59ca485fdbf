/* edit_distance.h - how far two words are apart: what somebody may have meant. */
#ifndef HW_BASE_EDIT_DISTANCE_H
#define HW_BASE_EDIT_DISTANCE_H

#include <stddef.h>

/* Letters to insert, delete, change or swap with their neighbour to make one of the other, as if all were small ones.
 * Of words that are too long to be a slip of the other, the length of the longer one. */
size_t hw_edit_distance(const char *a, size_t a_size, const char *b, size_t b_size);

#endif
