/* screen.h - what `heapwise top` shows, drawn to anything that can put text at a place. */
#ifndef HW_TOP_SCREEN_H
#define HW_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "top/canvas.h"
#include "top/history.h"
#include "top/labels.h"

enum hw_top_window { HW_TOP_WHOLE_RUN, HW_TOP_LAST_10_MINUTES, HW_TOP_LAST_MINUTE, HW_TOP_WINDOWS };
enum hw_top_page { HW_TOP_CALL_STACKS, HW_TOP_THREADS, HW_TOP_ONE_STACK, HW_TOP_HELP };

struct hw_top_screen {
    struct hw_top_history history;
    const struct hw_symbolised *symbolised; /* struct hw_label_request */
    enum hw_top_page page;
    enum hw_top_column sort;
    enum hw_top_window window;
    bool paused, once;
    bool selective;      /* there are rules "ignore" or "focus": what has no name yet is not shown */
    bool failed;         /* no memory, in the latest drawing */
    const char *message; /* in the last line, instead of the keys; or NULL */
    const char *trouble; /* why the numbers are old; or NULL */
    const char *entry;   /* what the user is typing as the filter; NULL: nothing */
    char filter[HW_LABEL_FILTER]; /* "": none */
    size_t first;        /* row of the table on top */
    size_t chosen;       /* row */
    uint32_t opened;     /* HW_TOP_ONE_STACK: the context */
    /* Names by context, with room for label_room of them; private, except that who answers requests fills them in. */
    struct hw_label *labels;
    size_t label_count, label_room;
    unsigned label_columns; /* for which they are made */
    char label_filter[HW_LABEL_FILTER]; /* likewise */
    size_t named_count;                 /* answers for that filter */
    /* What was drawn last. */
    uint32_t *rows; /* contexts, or entries of threads */
    size_t row_count, row_room;
    int table_line, table_lines, columns_end[HW_TOP_COLUMNS];
    uint32_t *unnamed; /* contexts whose names are wanted, most important first */
    size_t unnamed_count, unnamed_room;
};

/* Short and long names of columns, "live", … */
extern const char *const hw_top_keys[HW_TOP_COLUMNS];

/* Draws everything, and notes in `unnamed` which names are missing. False when there is no memory. */
bool hw_top_draw(struct hw_top_screen *screen, struct hw_canvas *canvas);
/* Lines that hw_top_draw needs with `once`, beside the rows of the table. */
#define HW_TOP_AROUND (5 + HW_TOP_PLOT_LINES)
#define HW_TOP_PLOT_LINES 6
/* Takes the answers of REQUEST (which is as it was before, without labels). */
bool hw_top_take_labels(struct hw_top_screen *screen, struct hw_label_request *request);
void hw_top_screen_free(struct hw_top_screen *screen);

#endif
