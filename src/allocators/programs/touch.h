/* touch.h - what replays do to their blocks: as programs do, so that page faults and cache misses which an allocator
 * causes are part of what it costs. For heapwise-replay and heapwise-course, each of which is one file. */
#ifndef HW_ALLOCATORS_PROGRAMS_TOUCH_H
#define HW_ALLOCATORS_PROGRAMS_TOUCH_H

#include <stddef.h>
#include <stdint.h>

#define HW_TOUCH_LINE  64u
#define HW_TOUCH_PAGE  4096u
#define HW_TOUCH_WRITE (16u << 20) /* bytes of a block beyond which nothing is written */
#define HW_TOUCH_READ  256u        /* read in the same way */

static volatile uint64_t hw_touch_sink;

/* A new block of SIZE bytes: one byte in each line of its first page, then in each page. */
static inline void hw_touch_new(char *block, size_t size)
{
    size_t at = 0;
    for (; at < size && at < HW_TOUCH_PAGE; at += HW_TOUCH_LINE)
        block[at] = 1;
    for (; at < size && at < HW_TOUCH_WRITE; at += HW_TOUCH_PAGE)
        block[at] = 1;
}

/* Of a block of SIZE bytes, those in its first page. */
static inline size_t hw_touch_first(const char *block, size_t size)
{
    const size_t first = HW_TOUCH_PAGE - ((uintptr_t)block & (HW_TOUCH_PAGE - 1));
    return size < first ? size : first;
}

/* A new block of SIZE bytes of which the program touched so many PAGES: as above, as many from its begin on. */
static inline void hw_touch_pages(char *block, size_t size, size_t pages)
{
    const size_t first = hw_touch_first(block, size);
    for (size_t at = 0; at < first; at += HW_TOUCH_LINE)
        block[at] = 1;
    for (size_t at = first; at < size && pages > 1; at += HW_TOUCH_PAGE, pages--)
        block[at] = 1;
}

/* A block of SIZE bytes that is about to be freed. */
static inline void hw_touch_last(const volatile char *block, size_t size)
{
    uint64_t sum = 0;
    for (size_t at = 0; at < size && at < HW_TOUCH_READ; at += HW_TOUCH_LINE)
        sum += (unsigned char)block[at];
    hw_touch_sink = sum;
}

#endif
