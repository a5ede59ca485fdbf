/* inside_names.h - names for what was seen inside operations of the allocator. */
#ifndef HW_REPORT_VIEW_INSIDE_NAMES_H
#define HW_REPORT_VIEW_INSIDE_NAMES_H

#include "report/buffer.h"
#include "report/view/view.h"

/* "mmap", "futex wait"; of those without a name of their own "other", "unseen". */
const char *hw_system_call_name(enum hw_system_call call);
/* "mutex", "futex" … */
const char *hw_lock_kind_name(uint32_t kind);
/* "instructions", "page_faults" … */
const char *hw_operation_event_name(enum hw_operation_event event);
/* Appends the variable that a lock is or lies in, with its module: "arena+0x40 in libx.so"; else what is known of it.
 * Not cleaned. */
void hw_lock_name(const struct hw_view *view, const struct hw_view_lock *lock, struct hw_buffer *out);

#endif
