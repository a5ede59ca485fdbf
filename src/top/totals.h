/* totals.h - what `heapwise top` shows above its table: which process it is, its totals, and the plot. */
#ifndef HW_TOP_TOTALS_H
#define HW_TOP_TOTALS_H

#include "report/text/human.h"
#include "top/screen.h"

#define HW_TOP_LEAST_HEIGHT 4 /* lines: title, heading, a row, keys */

/* RATE: a number a second, or -1: "-". BUFFER has HW_HUMAN bytes. */
const char *hw_top_rate_text(char *buffer, double rate);
const char *hw_top_bytes_rate(char *buffer, double rate);

#define HW_TOP_RATE(rate)       hw_top_rate_text((char[HW_HUMAN]){0}, (rate))
#define HW_TOP_BYTES_RATE(rate) hw_top_bytes_rate((char[HW_HUMAN]){0}, (rate))

/* The first line. False when there is no memory. */
bool hw_top_draw_title(const struct hw_top_screen *screen, struct hw_canvas *canvas);
/* Returns the line below. */
int hw_top_draw_totals(const struct hw_top_screen *screen, struct hw_canvas *canvas);
/* HW_TOP_PLOT_LINES lines from LINE on. False when there is no memory. */
bool hw_top_draw_plot(const struct hw_top_screen *screen, struct hw_canvas *canvas, int line);

#endif
