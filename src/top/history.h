/* history.h - what changed from one reading of a running process's profile to the next, and which call stacks are first
 * by it. */
#ifndef HW_TOP_HISTORY_H
#define HW_TOP_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/live.h"

/* Columns of the table; keys of --sort, in the same order as hw_top_keys. */
enum hw_top_column { HW_TOP_LIVE, HW_TOP_GROWTH, HW_TOP_ALLOCATIONS, HW_TOP_CHURN, HW_TOP_BLOCKS, HW_TOP_COLUMNS };

/* Live bytes of each context at a moment. */
struct hw_top_moment {
    int64_t *bytes;
    size_t count, room;
    uint64_t time_ns; /* of struct hw_live; 0: there was none */
};

struct hw_top_point {
    uint64_t time_ns, live_bytes, rss_bytes;
};

#define HW_TOP_POINTS    3600                  /* own readings that are kept for the graph */
#define HW_TOP_GROWTH_NS ((uint64_t)10000000000) /* growth is counted over 10 s, once they have passed */

struct hw_top_history {
    struct hw_live *live;
    /* The reading before this one: rates are counted from it. */
    struct hw_live_count *before, total_before;
    size_t before_count, before_room;
    struct hw_live_thread *threads_before;
    size_t threads_before_count, threads_before_room;
    uint64_t before_ns; /* 0: this is the first reading */
    struct hw_top_moment earlier[2]; /* growth counts from the first; the second takes its place after 10 s */
    struct hw_top_moment mark;       /* instead, once the user has set it */
    struct hw_top_point points[HW_TOP_POINTS];
    size_t point_count; /* all that there were; the latest are kept */
};

/* To be called before LIVE is read again. False when there is no memory: rates and growth go on from older numbers. */
bool hw_top_before(struct hw_top_history *history);
/* And after it. */
void hw_top_after(struct hw_top_history *history);
bool hw_top_set_mark(struct hw_top_history *history);
void hw_top_clear_mark(struct hw_top_history *history);
void hw_top_history_free(struct hw_top_history *history);

/* Since when growth is counted; 0: there is only one reading. */
uint64_t hw_top_growth_since(const struct hw_top_history *history);
/* Numbers a second since the reading before; -1: there is none. */
double hw_top_rate(const struct hw_top_history *history, uint64_t before, uint64_t now);

/* The value of a context in a column: bytes, blocks, or thousandths of a number a second. */
int64_t hw_top_value(const struct hw_top_history *history, uint32_t context, enum hw_top_column column);

/* The MOST contexts with the greatest values other than 0, greatest first, into BEST, and how many into FOUND. WANTED
 * says which count, or NULL: all. False when there is no memory. */
bool hw_top_best(const struct hw_top_history *history, enum hw_top_column column, uint32_t *best, size_t most,
                 size_t *found, bool (*wanted)(void *closure, uint32_t context), void *closure);

#endif
