/* human.h - numbers as people read them. Each function writes into BUFFER (HW_HUMAN bytes) and returns it; the macros
 * bring a buffer along that lives as long as the enclosing block. */
#ifndef HW_REPORT_TEXT_HUMAN_H
#define HW_REPORT_TEXT_HUMAN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "report/buffer.h"

#define HW_HUMAN 48

const char *hw_human_bytes(char *buffer, uint64_t bytes);                /* "512 B", "61.2 MiB" */
const char *hw_human_count(char *buffer, uint64_t count);                /* "1,204,221" */
const char *hw_human_many(char *buffer, uint64_t count);                 /* "9,204,221", "12.0 M", "1.23 G" */
const char *hw_human_ratio(char *buffer, double ratio);                  /* "1,204", "12.3", "0.04", "<0.01" */
const char *hw_human_of(char *buffer, uint64_t count, const char *noun); /* "1 block", "1,204 blocks" */
const char *hw_human_ns(char *buffer, uint64_t ns, bool utf8); /* "850 ns", "12.1 µs", "1.52 s", "2 min 03 s" */
/* "94.9 %", "<0.1 %", "-" when it is not known. Shares (analysis/share.h) are at most 100 %. */
const char *hw_human_percent(char *buffer, double part, double whole);
const char *hw_human_hundredths(char *buffer, double ratio);
/* What became of OLD, which is above 0: "+4.4 %", "-0.3 %", "120 times"; "" when nothing changed. */
const char *hw_human_change(char *buffer, double old, double new);

#define HW_BYTES(bytes)         hw_human_bytes((char[HW_HUMAN]){0}, (bytes))
#define HW_COUNT(count)         hw_human_count((char[HW_HUMAN]){0}, (count))
#define HW_MANY(count)          hw_human_many((char[HW_HUMAN]){0}, (count))
#define HW_RATIO(ratio)         hw_human_ratio((char[HW_HUMAN]){0}, (ratio))
#define HW_OF(count, noun)      hw_human_of((char[HW_HUMAN]){0}, (count), (noun))
#define HW_NS(ns, utf8)         hw_human_ns((char[HW_HUMAN]){0}, (ns), (utf8))
#define HW_PERCENT(part, whole) hw_human_percent((char[HW_HUMAN]){0}, (part), (whole))
#define HW_HUNDREDTHS(ratio)    hw_human_hundredths((char[HW_HUMAN]){0}, (ratio))

/* For "%*s": TEXT in COLUMNS code points, as printf counts bytes ("µs" has three). */
#define HW_RIGHT(columns, text) (int)((columns) + strlen(text) - hw_text_width(text)), (text)

/* Live counts are sums of thread-local deltas: below zero only for events in flight. */
static inline uint64_t hw_not_negative(int64_t value)
{
    return value > 0 ? (uint64_t)value : 0;
}

#endif
