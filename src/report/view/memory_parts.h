/* memory_parts.h - what RSS is divided into, and the kinds of the ledger's rows. Reports, JSON, SQLite and the page
 * have the same parts in the same order. */
#ifndef HW_REPORT_VIEW_MEMORY_PARTS_H
#define HW_REPORT_VIEW_MEMORY_PARTS_H

#include "report/buffer.h"
#include "report/view/view.h"

/* The sum of all parts is RSS. A part below zero is memory that the parts before it count and that is not resident. */
struct hw_memory_part {
    const char *key;   /* fixed: JSON and SQLite */
    const char *label; /* a line of a table */
    const char *words; /* in the middle of a sentence; NULL: not a reason why RSS is more than the blocks */
    int64_t (*value)(const struct hw_memory_breakdown *memory);
};
extern const struct hw_memory_part hw_memory_parts[];
extern const size_t hw_memory_part_count;

/* By enum hw_ledger_kind. */
struct hw_ledger_kind_words {
    const char *key;   /* fixed: JSON and SQLite */
    const char *words; /* a name may follow */
};
extern const struct hw_ledger_kind_words hw_ledger_kinds[HW_LEDGER_KINDS];

/* The words of a row with its name, cleaned: "stack of worker". Where the program mapped it, its call stack says more.
 */
void hw_ledger_title(const struct hw_profile *profile, const struct hw_ledger_row *row, struct hw_buffer *title);

#endif
