/* symbol_order.h - see symbol_order.c. */
#ifndef HW_REPORT_EXPORT_SYMBOL_ORDER_H
#define HW_REPORT_EXPORT_SYMBOL_ORDER_H

#include "base/error.h"
#include "report/buffer.h"
#include "report/view/view.h"

/* Appends the order of the variables of MODULES (names or paths; none: of the program) to OUT and sentences about it to
 * NOTES. False with ERROR: accesses to variables are not known, or there is no memory. */
bool hw_export_symbol_order(const struct hw_view *view, const char *const *modules, size_t module_count,
                            struct hw_buffer *out, struct hw_buffer *notes, struct hw_error *error);

#endif
