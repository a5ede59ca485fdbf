/* intern.h - strings that get numbers: equal ones the same. */
#ifndef HW_REPORT_VIEW_INTERN_H
#define HW_REPORT_VIEW_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "report/buffer.h"

/* Zero-initialise; free with hw_intern_free. Number 0 is the empty string. */
struct hw_intern {
    struct hw_buffer text; /* all strings, NUL-terminated */
    struct hw_index index;
    size_t *at, room; /* by number: in text */
    uint32_t count;
    bool failed; /* no memory: numbers mean nothing */
};

uint32_t hw_intern(struct hw_intern *strings, const char *text);

/* The string of a number, as long as no other is added. */
static inline const char *hw_interned(const struct hw_intern *strings, uint32_t number)
{
    return number ? strings->text.data + strings->at[number - 1] : "";
}

void hw_intern_free(struct hw_intern *strings);

#endif
