/* export.h - a view in formats of other people's tools. docs/exports.md says what each format holds and what it cannot.
 *
 * Each format is a file of its own, export_NAME.c, with one function that appends the whole output to a buffer. What
 * was not measured is left out, values of sampled runs are the estimates that reports show, and names of the profiled
 * program are hostile text everywhere: invalid UTF-8 and, where a format has no way to quote them, control characters
 * and separators become \xNN. */
#ifndef HW_REPORT_EXPORT_EXPORT_H
#define HW_REPORT_EXPORT_EXPORT_H

#include "base/error.h"
#include "report/buffer.h"
#include "report/view/measure.h"
#include "report/view/view.h"

struct hw_export_options {
    enum hw_measure_id value; /* the measure, or what is shown first; HW_MEASURES: what is usual */
    const char *version;      /* of Heapwise, for formats that name who wrote them */
};

/* Appends the output to OUT. False with ERROR when there is no memory or the format cannot hold the profile. VIEW must
 * know the measure (hw_measure_unknown). */
typedef bool hw_export_format(const struct hw_view *view, const struct hw_export_options *options,
                              struct hw_buffer *out, struct hw_error *error);

hw_export_format hw_export_pprof;      /* gzip'd profile.proto: every measure that is known */
hw_export_format hw_export_dhat;       /* JSON of Valgrind's DHAT, version 2 */
hw_export_format hw_export_collapsed;  /* "main;work;malloc 4096": one measure */
hw_export_format hw_export_speedscope; /* JSON: every measure that is known */
hw_export_format hw_export_sqlite;     /* a database: everything; docs/sqlite.md */
hw_export_format hw_export_csv;        /* a line for each context: everything */

/* ---- export.c: what they share ---- */

/* The measure that OPTIONS ask for. */
enum hw_measure_id hw_export_value(const struct hw_view *view, const struct hw_export_options *options);

/* Appends the name of an entry of a location's inline chain: the function, else module+0xoffset or 0xaddress. */
void hw_export_function(struct hw_buffer *out, const struct hw_view *view, const struct hw_view_location *location,
                        uint32_t index, enum hw_clean clean);

/* Appends TEXT as a JSON string, quotes included; null when TEXT is NULL. */
void hw_export_json(struct hw_buffer *out, const char *text);

/* Appends the command line as words of a shell, cleaned; the executable where it is not known; "" when neither is. */
void hw_export_command(struct hw_buffer *out, const struct hw_view *view, enum hw_clean clean);

/* Appends sentences, each with "\n" at its end, that a reader of the values must know: that they are estimates, sums
 * of several runs, of a damaged file. */
void hw_export_notes(struct hw_buffer *out, const struct hw_view *view);

/* True unless a buffer has failed; then ERROR says that there is no memory. */
bool hw_export_done(const struct hw_view *view, bool fine, struct hw_error *error);

/* Whether some stack of a context goes through a location, by its index; to be freed. NULL when there is no memory. */
bool *hw_export_used(const struct hw_view *view);

/* The names of a location by its index, its inline chain root first, parted by ';'; in names ';' and control characters
 * are \xNN. NULL when there is no memory. */
struct hw_buffer *hw_export_names(const struct hw_view *view);
void hw_export_names_free(const struct hw_view *view, struct hw_buffer *names);

/* Appends the names of a stack, root first, parted by ';'; nothing for one that is not known. PATH has room for all
 * nodes of the view. */
void hw_export_stack(struct hw_buffer *out, const struct hw_view *view, const struct hw_buffer *names, uint32_t leaf,
                     uint32_t *path);

#endif
