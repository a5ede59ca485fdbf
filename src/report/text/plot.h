/* plot.h - the timeline as a picture of a few lines. */
#ifndef HW_REPORT_TEXT_PLOT_H
#define HW_REPORT_TEXT_PLOT_H

#include "profile/profile.h"
#include "report/page/page.h"

/* Prints live bytes as an area and RSS as dots above it. False, and prints nothing, when there are too few points. */
bool hw_plot_timeline(const struct hw_page *page, const struct hw_profile *profile);

/* How a plot of live and resident bytes is scaled. */
struct hw_plot_scale {
    uint64_t most; /* bytes at the top, above 0 */
    unsigned rows;
    bool rss, utf8; /* whether resident memory is shown */
};
/* The character of a column with LIVE and RSS bytes in row ROW, 0 being the lowest one. */
const char *hw_plot_cell(const struct hw_plot_scale *scale, uint64_t live, uint64_t rss, unsigned row);

#endif
