/* selection.h - which contexts and frames of a profile are shown, and which are not, for the person who reads it. */
#ifndef HW_REPORT_WORDS_SELECTION_H
#define HW_REPORT_WORDS_SELECTION_H

#include "report/buffer.h"
#include "report/view/view.h"

/* Appends sentences, each with "\n" at its end: where the function that was asked for stands, what rules leave out,
 * with its share, and which functions are folded as wrappers although no name says that they are. Nothing when all is
 * shown and no such function was found. */
void hw_selection(const struct hw_view *view, struct hw_buffer *out);

/* The same without functions that are folded. */
void hw_left_out(const struct hw_view *view, struct hw_buffer *out);

#endif
