/* llvm_names.h - names for frames of LLVM's indexed profiles, which know functions by the MD5 of their names only. */
#ifndef HW_REPORT_VIEW_LLVM_NAMES_H
#define HW_REPORT_VIEW_LLVM_NAMES_H

#include "report/view/view.h"

struct hw_view_names;

/* Gives every location of VIEW its frame, and names and lines to those whose functions are in one of the BINARIES.
 * False when there is no memory. */
bool hw_view_name_frames(struct hw_view *view, size_t binary_count, const char *const *binaries);
void hw_view_names_free(struct hw_view_names *names);

#endif
