/* measure_keys.h - keys of lists and measures (report/view/measures.def) on command lines. */
#ifndef HW_CLI_MEASURE_KEYS_H
#define HW_CLI_MEASURE_KEYS_H

#include "report/view/measure.h"

/* VALUE of an option of VERB. An old key is taken, and what it is called now is said on stderr. HW_MEASURES,
 * HW_SORT_KEYS: there is no such key; saying so is left to the caller. */
enum hw_measure_id hw_take_measure(const char *verb, const char *value);
enum hw_sort_key hw_take_list(const char *verb, const char *value, size_t size);

/* HELP with the keys in place of the line "{lists}" or "{measures}". Lives until the next call. */
const char *hw_help_with_keys(const char *help);

#endif
