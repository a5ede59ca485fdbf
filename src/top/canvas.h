/* canvas.h - anything that can put text at a place: a terminal, or paper. */
#ifndef HW_TOP_CANVAS_H
#define HW_TOP_CANVAS_H

#include <stdbool.h>

enum hw_top_style { HW_TOP_PLAIN, HW_TOP_BAR, HW_TOP_STRONG, HW_TOP_FAINT, HW_TOP_ALERT, HW_TOP_PLOT, HW_TOP_CHOSEN };

struct hw_canvas {
    int width, height; /* columns, lines */
    bool utf8;
    /* TEXT is clean, and fits into the line from COLUMN on. */
    void (*put)(struct hw_canvas *canvas, int line, int column, enum hw_top_style style, const char *text);
};

/* TEXT at a place, cut at the end of the line. Returns the column behind it. */
int hw_canvas_put(struct hw_canvas *canvas, int line, int column, enum hw_top_style style, const char *text);
__attribute__((format(printf, 5, 6))) int hw_canvas_print(struct hw_canvas *canvas, int line, int column,
                                                          enum hw_top_style style, const char *format, ...);
/* A line in one style, from edge to edge. */
void hw_canvas_bar(struct hw_canvas *canvas, int line, const char *text);

#endif
