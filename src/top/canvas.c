/* canvas.c - see canvas.h. */
#include "top/canvas.h"

#include <stdarg.h>
#include <stdio.h>

#include "report/buffer.h"

#define LINE 512

int hw_canvas_put(struct hw_canvas *canvas, int line, int column, enum hw_top_style style, const char *text)
{
    char cut[4 * LINE];
    if (line >= canvas->height || column >= canvas->width)
        return column;
    const size_t room = (size_t)(canvas->width - column), bytes = hw_text_cut(text, room);
    snprintf(cut, sizeof cut, "%.*s", (int)(bytes < sizeof cut ? bytes : sizeof cut - 1), text);
    canvas->put(canvas, line, column, style, cut);
    return column + (int)hw_text_width(cut);
}

int hw_canvas_print(struct hw_canvas *canvas, int line, int column, enum hw_top_style style, const char *format, ...)
{
    char text[LINE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return hw_canvas_put(canvas, line, column, style, text);
}

void hw_canvas_bar(struct hw_canvas *canvas, int line, const char *text)
{
    char blanks[LINE];
    const int used = hw_canvas_put(canvas, line, 0, HW_TOP_BAR, text);
    snprintf(blanks, sizeof blanks, "%*s", canvas->width - used, "");
    if (used < canvas->width)
        hw_canvas_put(canvas, line, used, HW_TOP_BAR, blanks);
}
