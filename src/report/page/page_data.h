/* page_data.h - a profile as the page of heapwise view reads it.
 *
 * The page gets streams of named parts, deflated (zlib format) and in base64:
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
 * nodes (the tree of calls; parents come first), contexts, free stacks, words of blocks, lines of source. A column is
 * left out when this kind of profile does not have it. viewer/src/model.ts is the reader; parts that it does not know
 * are no harm.
 *
 * A profile is two of them: what the overview shows, and the rest, which the page reads when that is on the screen. The
 * second one continues the strings of the first.
 *
 * With a baseline there are three streams beside the rests: the profile, the baseline, and what heapwise diff says of
 * both ("comparison", in columns): places with their values in both, and the stacks as they are matched. The page
 * compares nothing itself. Its reader is viewer/src/comparison.ts.
 *
 * With dumps of the process one more stream follows ("dump" and "at", page_moments.c): there are two streams or four
 * then. Its reader is viewer/src/moments.ts. */
#ifndef HW_REPORT_PAGE_PAGE_DATA_H
#define HW_REPORT_PAGE_PAGE_DATA_H

#include "report/compare/diff.h"
#include "report/report.h"
#include "report/view/source.h"

struct hw_page_bytes {
    unsigned char *bytes; /* to be freed */
    size_t size;
};

/* Both streams of a profile. RUNS is what heapwise allocators --json says of the program, SOURCE has lines
 * of its files; or NULL. False with ERROR when there is no memory. */
bool hw_page_data(const struct hw_view *view, const char *runs, const struct hw_source *source,
                  struct hw_page_bytes *first, struct hw_page_bytes *rest, struct hw_error *error);

/* ---- page_comparison.c ---- */

/* The third stream; as hw_page_data. */
unsigned char *hw_page_comparison(const struct hw_diff *diff, size_t *size, struct hw_error *error);

/* ---- page_keeps.c ---- */

struct hw_page_stream;
/* Parts of the second stream: who keeps the blocks (keeps, keeper, keeps_place, kept, pointed, way). None where it was
 * not recorded. The greatest rows only. */
void hw_page_keeps(const struct hw_view *view, struct hw_page_stream *stream);

/* ---- page_moments.c ---- */

/* Whether DUMP is one of the process of OF, of the same counts and before its end. */
bool hw_page_is_dump(const struct hw_profile *dump, const struct hw_profile *of);

/* The last stream: what the places of VIEW had at each of COUNT dumps, in the order of their times; as hw_page_data. */
unsigned char *hw_page_moments(const struct hw_view *view, const struct hw_view *const *dumps, size_t count,
                               size_t *size, struct hw_error *error);

/* ---- page_template.c ---- */

/* A page around profiles: TEMPLATE is the built viewer, STREAMS are COUNT streams, the profile to show first; then its
 * baseline, the comparison and the dumps. RESTS are those of the profile and of its baseline. To be freed. NULL with
 * ERROR: no memory, or TEMPLATE is not that of this version. */
char *hw_page_fill(const char *template, size_t template_size, const struct hw_page_bytes *streams, size_t count,
                   const struct hw_page_bytes *rests, size_t rest_count, size_t *size, struct hw_error *error);

#endif
