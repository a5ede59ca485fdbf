/* suggest.h - which of the known words somebody may have meant. */
#ifndef HW_CLI_SUGGEST_H
#define HW_CLI_SUGGEST_H

#include <stddef.h>

/* hw_edit_distance of the SIZE bytes at A, and B. */
size_t hw_word_distance(const char *a, size_t size, const char *b);

/* How far WORD may be from what was meant: one letter in short words, a third of long ones. */
size_t hw_word_slip(const char *word);

/* The word nearest to WORD in LIST, which is separated by ", ": its place, and *SIZE of it; NULL when none is near. */
const char *hw_nearest_in(const char *word, const char *list, size_t *size);

#endif
