/* plot.h - the timeline as a picture of a few lines. */
#ifndef HW_REPORT_TEXT_PLOT_H
#define HW_REPORT_TEXT_PLOT_H

#include "profile/profile.h"
#include "report/page/page.h"

/* Prints live bytes as an area and RSS as dots above it. False, and prints nothing, when there are too few points. */
bool hw_plot_timeline(const struct hw_page *page, const struct hw_profile *profile);

#endif
