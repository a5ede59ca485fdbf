/* page_data.h - a profile as the page of heapwise view reads it.
 *
 * The page gets one stream of named parts, deflated (zlib format) and in base64:
 *
 *     part: name length, name, kind, byte count, bytes      numbers are LEB128, unsigned
 *
 *     kind        bytes
 *     0 text      UTF-8
 *     1 strings   each ends with a zero byte; the first one is the empty string, which stands for "not known"
 *     2 numbers   LEB128, one after the other
 *     3 signed    LEB128, zigzag
 *     4 steps     LEB128, zigzag: what is added to the number before
 *
 * "report" is the object of heapwise report --json without its long lists (contexts, modules). What is as long as the
 * profile is in columns, one part each, named TABLE.COLUMN: strings, modules, frames, locations (one or more frames),
 * nodes (the tree of calls; parents come first), contexts, free stacks, words of blocks. A column is left out when
 * this kind of profile does not have it. viewer/src/model.ts is the reader; parts that it does not know are no harm.
 *
 * With a baseline there are three streams: the profile, the baseline, and what heapwise diff says of both
 * ("comparison", in columns): places with their values in both, and the stacks as they are matched. The page compares
 * nothing itself. Its reader is viewer/src/comparison.ts. */
#ifndef HW_REPORT_PAGE_PAGE_DATA_H
#define HW_REPORT_PAGE_PAGE_DATA_H

#include "report/compare/diff.h"
#include "report/report.h"

/* The stream, to be freed, *SIZE bytes. RUNS is what heapwise allocators --json says of the program, or NULL. NULL with
 * ERROR when there is no memory. */
unsigned char *hw_page_data(const struct hw_view *view, const char *runs, size_t *size, struct hw_error *error);

/* ---- page_comparison.c ---- */

/* The third stream; as hw_page_data. */
unsigned char *hw_page_comparison(const struct hw_diff *diff, size_t *size, struct hw_error *error);

/* ---- page_template.c ---- */

/* A page around profiles: TEMPLATE is the built viewer, STREAMS are COUNT streams of hw_page_data, the profile to show
 * first; then its baseline, and the comparison. To be freed. NULL with ERROR: no memory, or TEMPLATE is not that of
 * this version. */
char *hw_page_fill(const char *template, size_t template_size, const unsigned char *const *streams, const size_t *sizes,
                   size_t count, size_t *size, struct hw_error *error);

#endif
