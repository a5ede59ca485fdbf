/* suppressions.h - lost blocks that are not to be reported, as files of LeakSanitizer and Valgrind say it. */
#ifndef HW_REPORT_VIEW_SUPPRESSIONS_H
#define HW_REPORT_VIEW_SUPPRESSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct hw_view;

struct hw_suppression {
    char *name;       /* Valgrind's; of LeakSanitizer "leak:PATTERN" */
    const char *file; /* and line, where it begins */
    unsigned line;
    uint32_t kinds; /* bits 1 << enum hw_leak_class */
    char *pattern;  /* LeakSanitizer's, or NULL: then Valgrind's frames */
    struct hw_suppression_frame *frames;
    size_t frame_count;
};

/* Zero-initialise; free with hw_suppressions_free. */
struct hw_suppressions {
    struct hw_suppression *of;
    size_t count, room;
};

/* Adds what the file PATH says, which must outlive SUPPRESSIONS: LeakSanitizer's or Valgrind's, by its content. False
 * with ERROR, which names file and line. */
bool hw_suppressions_read(struct hw_suppressions *suppressions, const char *path, struct hw_error *error);
void hw_suppressions_free(struct hw_suppressions *suppressions);

/* What a user may not expect of SUPPRESSION, which took out that many BLOCKS, as it names only the allocator; or NULL. */
const char *hw_suppression_doubt(const struct hw_suppression *suppression, uint64_t blocks);

/* What a suppression took out of a view. */
struct hw_suppressed {
    uint64_t blocks, bytes;
};

/* Takes lost blocks out of the contexts of VIEW, whose names are known: view->suppressed. Of several suppressions the
 * first one counts. False when there is no memory. */
bool hw_view_suppress(struct hw_view *view, const struct hw_suppressions *suppressions);

#endif
