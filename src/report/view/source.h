/* source.h - lines of the program's own source files with what is allocated there: as far as the files can be read here
 * and now. Nothing says for sure that a file is what the program was built from: what speaks against it is said.
 *
 * Of a file there are the lines with numbers, each with some lines around it: from the declaration of its function on,
 * where that is near. */
#ifndef HW_REPORT_VIEW_SOURCE_H
#define HW_REPORT_VIEW_SOURCE_H

#include "report/view/groups.h"

#define HW_SOURCE_AROUND 8   /* lines before and behind a line with numbers */
#define HW_SOURCE_ABOVE  40  /* lines above it up to the declaration of the function: if there are not more, those */
#define HW_SOURCE_WIDEST 400 /* columns of a line */
#define HW_SOURCE_MOST   ((size_t)4 << 20)  /* bytes of lines, of all files */
#define HW_SOURCE_FILE   ((size_t)32 << 20) /* bytes of a file that is read */

/* Files whose paths begin with OLD, a whole number of their parts, are at NEW. */
struct hw_source_path {
    char *old, *new;
};

struct hw_source_options {
    const struct hw_source_path *paths;
    size_t path_count;
    const char *sysroot;  /* files may be below it; or NULL */
    const char *function; /* only lines of this function, of any module; NULL: of all own files of the program */
};

struct hw_source_line {
    uint32_t number;
    bool counted; /* something is allocated there, or in what is called from there */
    uint64_t self, total;
    char *text; /* without control characters, tabs expanded, at most HW_SOURCE_WIDEST columns; NULL: not read */
};

struct hw_source_file {
    const char *name;            /* as the frames have it */
    char *path;                  /* what was read; NULL: nothing */
    char *problem;               /* what is wrong with it, one sentence that begins with its name; NULL: nothing */
    struct hw_source_line *line; /* ascending; of a file that was not read those that are counted */
    size_t line_count;
};

struct hw_source {
    struct hw_source_file *file; /* the greatest total of a line first */
    size_t count, room;
    uint64_t whole; /* of the measure, in the view */
};

/* Numbers are the groups HW_BY_LINE. NULL with ERROR when there is no memory, or no such function. */
struct hw_source *hw_source_new(const struct hw_view *view, enum hw_measure_id measure, bool full,
                                const struct hw_source_options *options, struct hw_error *error);
void hw_source_free(struct hw_source *source);

#endif
