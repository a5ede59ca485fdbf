/* not_observed.h - what the numbers of a profile do not say, as sentences for the person who reads them.
 *
 * A report that is silent about its gaps reads as if it had none. */
#ifndef HW_REPORT_WORDS_NOT_OBSERVED_H
#define HW_REPORT_WORDS_NOT_OBSERVED_H

#include "report/buffer.h"
#include "report/view/view.h"

/* Appends the sentences to BUFFER, each on a line of its own ("\n" at its end), most important first. */
void hw_not_observed(const struct hw_view *view, struct hw_buffer *buffer);

/* Appends a sentence that names all modules whose code does not count accesses (FIELDS: those to fields), those first
 * that matter most, or nothing. */
void hw_add_uncounted(const struct hw_view *view, bool fields, struct hw_buffer *out);

/* "table-store" … for JSON; "other" for a code this version does not know. */
const char *hw_note_name(uint32_t code);

#endif
