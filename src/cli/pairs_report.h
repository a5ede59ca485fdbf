/* pairs_report.h - pairs of runs as text and JSON. */
#ifndef HW_CLI_PAIRS_REPORT_H
#define HW_CLI_PAIRS_REPORT_H

#include <jansson.h>

#include "tuning/pairs.h"

#define HW_CHANGE_TEXT 64

/* "+4.4 %", "5.2 times". Returns BUFFER. */
const char *hw_change_text(char buffer[HW_CHANGE_TEXT], double ratio);
/* "(+3.1 to +5.8 %)", "(1.0 to 5.8 times)", "" when it is not known. Returns BUFFER. */
const char *hw_interval_text(char buffer[HW_CHANGE_TEXT], const struct hw_ratio *ratio);

/* A line with the columns, and one for METRIC, both indented; none for what was measured on neither side, except for
 * times, peak and page faults. */
void hw_pairs_print_head(const char *a, const char *b);
void hw_pairs_print_row(const struct hw_pairs *pairs, enum hw_metric metric);

/* {"value", "low", "high"}; null when it is not known. */
json_t *hw_ratio_json(const struct hw_ratio *ratio);
/* null for what is not above 0. */
json_t *hw_known_json(double value);
json_t *hw_text_json(const char *text);

#endif
