/* growth.h - what was live at several moments of one run, by place: which places grew, how fast, and whether they still
 * do (analysis/trend.h).
 *
 * Places, their names and who keeps them are those of the newest file. Of the others only what was live is read: 16
 * bytes for each context and moment (32 in sampled runs). */
#ifndef HW_REPORT_COMPARE_GROWTH_H
#define HW_REPORT_COMPARE_GROWTH_H

#include <stdio.h>

#include "analysis/trend.h"
#include "base/error.h"
#include "profile/moment.h"
#include "report/buffer.h"
#include "report/compare/keepers.h"
#include "report/report.h"
#include "report/view/groups.h"
#include "report/view/view.h"

/* A file, in the order of time. */
struct hw_growth_file {
    const char *path;
    struct hw_moment moment;
    enum hw_growth_use {
        HW_GROWTH_USED,
        HW_GROWTH_END,     /* the program had ended: it frees memory then that it held all the time */
        HW_GROWTH_SAME,    /* of the same time as another one */
        HW_GROWTH_THINNED, /* there are more than HW_GROWTH_MOMENTS */
        HW_GROWTH_FOREIGN, /* a forked child: what it inherited was not known yet */
        HW_GROWTH_DAMAGED, /* found beside the others, and cannot be read: its moment is not known */
        HW_GROWTH_USES
    } use;
};

/* As JSON has them. */
extern const char *const hw_growth_uses[HW_GROWTH_USES];

#define HW_GROWTH_MOMENTS 200 /* more say nothing more, and pairs of them are many */

/* What one place, or a group of places, has at the moments that are used. */
struct hw_growth_row {
    uint32_t context;             /* of the view; HW_NONE: it is a group */
    struct hw_group group;        /* its sums are those of the last moment */
    const double *bytes, *blocks; /* by moment; BLOCKS is NULL in groups */
    const double *self;           /* of groups of frames: what is allocated in it itself; else NULL */
    struct hw_trend trend, blocks_trend;
};

struct hw_growth {
    struct hw_view *view; /* of the newest file */
    struct hw_growth_file *files;
    size_t file_count;
    enum hw_by by; /* HW_BYS: places */
    double *times; /* seconds, of the moments that are used */
    size_t moments;
    struct hw_growth_row whole;        /* of the process, whatever is shown */
    struct hw_growth_row *rows;        /* those that changed: steady growth first, fastest first; then by difference */
    size_t row_count, steady, falling; /* FALLING: of the others those that have less at the end */
    double steady_rate, steady_low, steady_high; /* of the STEADY ones together; of places */
    size_t unchanged;
    struct hw_kept_places kept; /* private */
    double *numbers;            /* private: what rows of places point to; those of groups have their own */
};

/* Sorts FILES, which are of one run, and decides what is used, but of those that are damaged; these come first. The
 * last one is the newest. */
void hw_growth_order(struct hw_growth_file *files, size_t count);

/* VIEW is that of the last of the FILES (hw_growth_order); both must outlive it. BY: HW_BYS, or what places are added
 * up by, but threads. FULL: as in hw_groups_make. NULL with ERROR: a file is damaged, or there is no memory. */
struct hw_growth *hw_growth_new(struct hw_view *view, struct hw_growth_file *files, size_t count, enum hw_by by,
                                bool full, struct hw_error *error);
void hw_growth_free(struct hw_growth *growth);

/* Appends sentences, each with "\n", about what was left out and how certain this is. */
void hw_growth_notes(const struct hw_growth *growth, struct hw_buffer *out);

/* Who keeps the blocks of a place, as of the newest file: most bytes first, to be freed; *COUNT of them, *BYTES of all
 * blocks of the place there. Where each pointer keeps little alone, the variables and threads that have them. NULL:
 * there is no memory, or that was not recorded (*COUNT is 0). */
struct hw_place_keeper *hw_growth_keepers(const struct hw_growth *growth, uint32_t context, size_t *count,
                                          uint64_t *bytes);

/* Print to STREAM, as hw_report_text and hw_report_json. */
bool hw_growth_text(const struct hw_growth *growth, const struct hw_report_options *options, FILE *stream,
                    struct hw_error *error);
bool hw_growth_json(const struct hw_growth *growth, const struct hw_report_options *options, FILE *stream,
                    struct hw_error *error);

/* "1.0 MiB/s", "12.0 KiB/h" of so much by second. */
void hw_growth_add_rate(struct hw_buffer *out, double rate, bool bytes);

#endif
