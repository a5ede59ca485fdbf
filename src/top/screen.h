/* screen.h - what `heapwise top` shows, drawn to anything that can put text at a place. */
#ifndef HW_TOP_SCREEN_H
#define HW_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "top/history.h"
#include "top/labels.h"

enum hw_top_style { HW_TOP_PLAIN, HW_TOP_BAR, HW_TOP_STRONG, HW_TOP_FAINT, HW_TOP_ALERT, HW_TOP_PLOT, HW_TOP_CHOSEN };

struct hw_canvas {
    int width, height; /* columns, lines */
    bool utf8;
    /* TEXT is clean, and fits into the line from COLUMN on. */
    void (*put)(struct hw_canvas *canvas, int line, int column, enum hw_top_style style, const char *text);
};

enum hw_top_window { HW_TOP_WHOLE_RUN, HW_TOP_LAST_10_MINUTES, HW_TOP_LAST_MINUTE, HW_TOP_WINDOWS };
enum hw_top_page { HW_TOP_CALL_STACKS, HW_TOP_THREADS, HW_TOP_ONE_STACK, HW_TOP_HELP };

struct hw_top_screen {
    struct hw_top_history history;
    const char *name; /* of the program; clean */
    const struct hw_symbolised *symbolised; /* struct hw_label_request */
    enum hw_top_page page;
    enum hw_top_column sort;
    enum hw_top_window window;
    bool paused, once;
    bool failed;         /* no memory, in the latest drawing */
    const char *message; /* in the last line, instead of the keys; or NULL */
    const char *trouble; /* why the numbers are old; or NULL */
    const char *entry;   /* what the user is typing as the filter; NULL: nothing */
    char filter[128];    /* "": none */
    size_t first;        /* row of the table on top */
    size_t chosen;       /* row */
    uint32_t opened;     /* HW_TOP_ONE_STACK: the context */
    /* Names by context, with room for label_room of them; private, except that who answers requests fills them in. */
    struct hw_label *labels;
    size_t label_count, label_room;
    unsigned label_columns; /* for which they are made */
    /* What was drawn last. */
    uint32_t *rows; /* contexts, or entries of threads */
    size_t row_count, row_room;
    size_t all_rows; /* shown or not */
    int table_line, table_lines, columns_end[HW_TOP_COLUMNS];
    uint32_t *unnamed; /* contexts whose names are wanted, most important first */
    size_t unnamed_count, unnamed_room;
};

/* Short and long names of columns, "live", … */
extern const char *const hw_top_keys[HW_TOP_COLUMNS];

/* Draws everything, and notes in `unnamed` which names are missing. False when there is no memory. */
bool hw_top_draw(struct hw_top_screen *screen, struct hw_canvas *canvas);
/* Lines that the table needs beside its rows. */
int hw_top_lines_around(const struct hw_top_screen *screen, int height);
/* Takes the answers of REQUEST (which is as it was before, without labels). */
bool hw_top_take_labels(struct hw_top_screen *screen, struct hw_label_request *request);
void hw_top_screen_free(struct hw_top_screen *screen);

#endif
