/* symbolise.h - puts what the binaries say into a profile, so that it can be read without them. */
#ifndef HW_REPORT_VIEW_SYMBOLISE_H
#define HW_REPORT_VIEW_SYMBOLISE_H

#include "profile/tables.h"
#include "report/view/view.h"

/* Adds the sections LOCATIONS, FRAMES, FILES, FUNCTIONS, POSTINGS, TYPES, BLOCK_TYPES, DATA_SYMBOLS and MODULES to TABLES (of a
 * profile that nobody writes any more), in ARENA, and strings to STRINGS; sorts MIBS and ACCESS by context. Symbols
 * that TABLES has already are kept: only what has no answer yet is looked for in binaries. Of OPTIONS, which may be
 * NULL, `symbolizer`, `binaries` and `binary_count` count. NAME is for messages. False with ERROR when there is no
 * memory; binaries that cannot be read are no error. */
bool hw_symbolise(struct hw_tables *tables, struct hw_arena *arena, const char *name,
                  const struct hw_view_options *options, struct hw_error *error);

/* Symbolises the sealed profile at PATH: written aside and renamed. False with ERROR, and the file as it was, when it
 * is not sealed, is damaged, or cannot be written. */
bool hw_symbolise_file(const char *path, const struct hw_view_options *options, struct hw_error *error);

#endif
