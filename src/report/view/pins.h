/* pins.h - what keeps pages resident (record --pinned), for reports. */
#ifndef HW_REPORT_VIEW_PINS_H
#define HW_REPORT_VIEW_PINS_H

#include "report/view/view.h"

/* The sums over all pages; NULL: not recorded, or not known. */
const struct hw_heap_pages *hw_pins_pages(const struct hw_profile *profile);
/* "at the end", "at the dump" */
const char *hw_pins_moment(const struct hw_profile *profile);
/* Entries of contexts that the view has, those that pin most first. To be freed; *COUNT. NULL: no memory. */
const struct hw_pin **hw_pins_sorted(const struct hw_view *view, size_t *count);
/* "page", "huge_page", … (fixed: JSON and SQLite), and words for the same. */
extern const char *const hw_piece_keys[HW_PIECE_UNITS];
extern const char *const hw_piece_words[HW_PIECE_UNITS];

#endif
